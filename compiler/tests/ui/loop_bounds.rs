#![allow(unused)]
#[path = "../support/mod.rs"]
mod tilewright;
use tilewright::dsl::*;

#[kernel(crate = crate::tilewright)]
fn k(x: Ptr<f32>, n: i32, m: i64, f: f32) {
    for i in n..m {}
    for i in 0..f {}
}

fn main() {}
