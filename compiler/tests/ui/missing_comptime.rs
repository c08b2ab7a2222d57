#![allow(unused)]
#[path = "../support/mod.rs"]
mod tilewright;
use tilewright::dsl::*;

#[kernel(crate = crate::tilewright)]
fn sizes(x: Ptr<f32>, block: usize, name: &'static str, flag: char) {}

#[kernel(crate = crate::tilewright)]
fn aliases(x: Ptr<f32>, options: Options) {}

#[derive(Clone, Debug)]
struct Options;

fn main() {}
