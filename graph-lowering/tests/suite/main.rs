//! The graph compiler against itself: the same functions eagerly, interpreted, as single kernels and fused.

mod capture;
mod common;
mod fuzz;
mod golden;
mod gradients;
mod kernels;
