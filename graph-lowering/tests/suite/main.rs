//! The graph compiler against itself: the same functions eagerly, interpreted, as single kernels and fused.

// Where `#[kernel]` looks for what it needs.
extern crate tilewright_runtime as tilewright;

mod allocated;
mod attention;
mod attention_edges;
mod cache;
mod capture;
mod common;
mod dynamic;
mod found;
mod fuzz;
mod fuzz_special;
mod generated;
mod golden;
mod gradients;
mod growth;
mod host_values;
mod kernels;
mod model;
mod modes;
mod oracle;
mod pullback;
mod weights;

#[global_allocator]
static ALLOCATOR: allocated::Counting = allocated::Counting;
