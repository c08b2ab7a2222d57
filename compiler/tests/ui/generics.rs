#![allow(unused)]
#[path = "../support/mod.rs"]
mod tilewright;
use tilewright::dsl::*;

#[kernel(crate = crate::tilewright)]
fn unbound<T>(x: Ptr<T>) {}

#[kernel(crate = crate::tilewright)]
fn other_bound<T: Clone>(x: Ptr<T>) {}

#[kernel(crate = crate::tilewright)]
fn lifetime<'a>(x: Ptr<f32>) {}

fn main() {}
