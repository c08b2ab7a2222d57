#![allow(unused)]
#[path = "../support/mod.rs"]
mod tilewright;
use tilewright::dsl::*;

#[kernel(crate = crate::tilewright)]
fn k(x: Ptr<f32>, n: i32) {
    let mut names = vec!["a"];
    let mut count: usize = 0;
    for i in 0..n {
        names = vec!["b"];
        count += 1;
    }
}

fn main() {}
