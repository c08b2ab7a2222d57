#![allow(unused)]
#[path = "../support/mod.rs"]
mod tilewright;
use tilewright::dsl::*;

#[kernel(crate = crate::tilewright)]
fn k(x: Ptr<f32>, n: i32, #[comptime] table: Vec<f32>) {
    for i in 0..table.len() {
        x.store(table[i]);
    }
    x.store(table[n + 1]);
}

fn main() {}
