#![allow(unused)]
#[path = "../support/mod.rs"]
mod tilewright;
use tilewright::dsl::*;

#[kernel(crate = crate::tilewright)]
fn k(x: Ptr<f32>, n: i32) {
    for i in 0..=n {}
    for i in (0..n).rev() {}
    for i in 0.. {}
    for i in 0.0..n {}
    for mut i in 0..n {
        i += 1;
    }
}

fn main() {}
