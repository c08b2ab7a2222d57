#![allow(unused)]
#[path = "../support/mod.rs"]
mod tilewright;
use tilewright::dsl::*;

#[kernel(crate = crate::tilewright)]
fn k(x: Ptr<f32>, n: i32) {
    let v = if n > 0 { 1.0 } else { 2.0 };
    x.store(v);
}

fn main() {}
