#![allow(unused)]
#[path = "../support/mod.rs"]
mod tilewright;
use tilewright::dsl::*;

#[kernel(crate = crate::tilewright)]
fn k(x: Ptr<f32>, n: i32) {
    match n {
        0 => x.store(1.0),
        _ => x.store(2.0),
    }
    match x.load() {
        _ => {}
    }
}

fn main() {}
