#![allow(unused)]
#[path = "../support/mod.rs"]
mod tilewright;
use tilewright::dsl::*;

#[device_fn(crate = crate::tilewright)]
fn k(x: Tile<f32>, n: Tile<i32>) -> Tile<f32> {
    if n > 0 {
        return x;
    }
    loop {}
}

fn main() {}
