#![allow(unused)]
#[path = "../support/mod.rs"]
mod tilewright;
use tilewright::dsl::*;

struct S;
impl S {
    #[kernel(crate = crate::tilewright)]
    fn method(&self, x: Ptr<f32>) {}
}

fn main() {}
