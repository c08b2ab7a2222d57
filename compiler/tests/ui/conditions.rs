#![allow(unused)]
#[path = "../support/mod.rs"]
mod tilewright;
use tilewright::dsl::*;

#[kernel(crate = crate::tilewright)]
fn k(x: Ptr<f32>, n: i32, flag: bool) {
    if n {
        x.store(1.0);
    }
    if flag && n {
        x.store(1.0);
    }
}

fn main() {}
