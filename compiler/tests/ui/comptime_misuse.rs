#![allow(unused)]
#[path = "../support/mod.rs"]
mod tilewright;
use tilewright::dsl::*;

#[kernel(crate = crate::tilewright)]
fn memory(#[comptime] x: In<f32, 1>) {}

#[kernel(crate = crate::tilewright)]
fn borrowed(#[comptime] name: &str) {}

struct Opaque;

#[kernel(crate = crate::tilewright)]
fn not_printable(#[comptime] value: Opaque) {}

#[kernel(crate = crate::tilewright)]
fn device_value(x: Ptr<f32>, n: i32) {
    if comptime(n > 0) {
        x.store(1.0);
    }
}

fn main() {}
