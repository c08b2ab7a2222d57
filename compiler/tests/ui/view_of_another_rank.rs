#![allow(unused)]
#[path = "../support/mod.rs"]
mod tilewright;
use tilewright::dsl::*;

#[kernel(crate = crate::tilewright)]
fn k(x: In<f32, 2>, y: Out<f16, 2>) {
    let v = x.load([0], [16]);
    y.store([0, 0], x.load([0, 0], [4, 4]));
    x.store([0, 0], x.load([0, 0], [4, 4]));
    let w = y.load([0, 0], [4, 4]);
}

fn main() {}
