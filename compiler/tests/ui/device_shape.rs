#![allow(unused)]
#[path = "../support/mod.rs"]
mod tilewright;
use tilewright::dsl::*;

#[kernel(crate = crate::tilewright)]
fn k(x: Ptr<f32>, v: In<f32, 1>, n: i32) {
    let a = zeros::<f32>([n]);
    let b = arange(0, n);
    let c = v.load([0], [n]);
}

fn main() {}
