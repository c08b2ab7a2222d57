#![allow(unused)]
#[path = "../support/mod.rs"]
mod tilewright;
use tilewright::dsl::*;

#[kernel(crate = crate::tilewright)]
fn k(x: Ptr<f32>, n: i32) {
    let mut total = scalar::<f32>(0.0);
    let mut add = |v: Tile<f32>| total += v;
    for i in 0..n {
        add(x.load());
    }
}

#[device_fn(crate = crate::tilewright)]
fn each(n: Tile<i32>, mut f: impl FnMut(Tile<i32>)) {
    for i in 0..n {
        f(i);
    }
}

fn main() {}
