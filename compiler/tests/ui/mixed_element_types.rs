#![allow(unused)]
#[path = "../support/mod.rs"]
mod tilewright;
use tilewright::dsl::*;

#[kernel(crate = crate::tilewright)]
fn k(x: Ptr<f32>, n: i32, m: i64) {
    let a = x.load() + n;
    let b = n + 1.5;
    let c = x.load() < n;
    let d = n * m;
    let e = where_(n > 0, x.load(), n);
    let f = maximum(x.load(), m);
}

fn main() {}
