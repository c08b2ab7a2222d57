//! Under construction.
pub mod scalar;
