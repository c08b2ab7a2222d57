#![allow(unused)]
#[path = "../support/mod.rs"]
mod tilewright;
use tilewright::dsl::*;

#[kernel(crate = crate::tilewright)]
fn returns(x: Ptr<f32>) -> i32 {
    1
}

#[kernel(crate = crate::tilewright)]
async fn waits(x: Ptr<f32>) {}

#[kernel(crate = crate::tilewright)]
unsafe fn dangerous(x: Ptr<f32>) {}

#[kernel(crate = crate::tilewright)]
extern "C" fn foreign(x: Ptr<f32>) {}

fn main() {}
