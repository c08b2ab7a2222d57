#![allow(unused)]
#[path = "../support/mod.rs"]
mod tilewright;
use tilewright::dsl::*;

#[kernel(crate = crate::tilewright)]
fn k(x: Ptr<f32>, #[comptime] list: Vec<usize>) {
    while is_long(&list) {
        x.store(1.0);
    }
}

fn is_long(list: &[usize]) -> bool {
    list.len() > 3
}

fn main() {}
