#![allow(unused)]
#[path = "../support/mod.rs"]
mod tilewright;
use tilewright::dsl::*;

#[kernel(crate = crate::tilewright, fast_math)]
fn unknown(x: Ptr<f32>) {}

#[kernel(crate = crate::tilewright)]
struct NotAFunction;

#[device_fn(inline)]
fn unknown_too(x: Tile<f32>) -> Tile<f32> {
    x
}

fn main() {}
