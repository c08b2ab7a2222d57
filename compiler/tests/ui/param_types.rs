#![allow(unused)]
#[path = "../support/mod.rs"]
mod tilewright;
use tilewright::dsl::*;

#[kernel(crate = crate::tilewright)]
fn tile(x: Tile<f32>) {}

#[kernel(crate = crate::tilewright)]
fn no_rank(x: In<f32>) {}

#[kernel(crate = crate::tilewright)]
fn no_element(x: Ptr) {}

#[kernel(crate = crate::tilewright)]
fn reference(x: &In<f32, 1>) {}

#[kernel(crate = crate::tilewright)]
fn closure(f: impl Fn(Tile<f32>) -> Tile<f32>) {}

#[kernel(crate = crate::tilewright)]
fn pattern((a, b): (f32, f32)) {}

fn main() {}
