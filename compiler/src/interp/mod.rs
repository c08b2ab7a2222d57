//! Under construction.
#[allow(unused_imports)]
pub mod scalar;
