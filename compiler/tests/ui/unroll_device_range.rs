#![allow(unused)]
#[path = "../support/mod.rs"]
mod tilewright;
use tilewright::dsl::*;

#[kernel(crate = crate::tilewright)]
fn k(x: Ptr<f32>, n: i32) {
    for i in unroll(0..n) {
        (x + i).store(1.0);
    }
}

fn main() {}
