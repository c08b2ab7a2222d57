#![allow(unused)]
#[path = "../support/mod.rs"]
mod tilewright;
use tilewright::dsl::*;

#[kernel(crate = crate::tilewright)]
fn k(x: Ptr<f32>, n: i32, #[comptime] maybe: Option<usize>) {
    loop {
        x.store(1.0);
    }
    let size = maybe?;
    unsafe { x.store(1.0) };
    let later = async { 1 };
}

fn main() {}
