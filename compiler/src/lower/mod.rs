//! Under construction.

pub mod half;
pub mod math;
