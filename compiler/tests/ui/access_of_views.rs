#![allow(unused)]
#[path = "../support/mod.rs"]
mod tilewright;
use tilewright::dsl::*;

#[kernel(crate = crate::tilewright)]
fn access(x: In<f32, 1>, y: Out<f32, 1>) {
    x.store([0], y.load([0], [4]));
}

fn main() {}
