#![allow(unused)]
#[path = "../support/mod.rs"]
mod tilewright;
use tilewright::dsl::*;

#[kernel(crate = crate::tilewright)]
fn no_mut(x: In<f32, 1>, y: Out<f32, 1>, n: i32) {
    let s = 0.0;
    for k in 0..n {
        s += x.load([k], [1]);
    }
    y.store([0], s);
}

#[kernel(crate = crate::tilewright)]
fn casts(x: In<f32, 1>, y: Out<f32, 1>, n: i32) {
    let at = program_id(0) as usize;
    let wide = n as f64;
    y.store([n as u8], x.load([0], [1]));
}

#[kernel(crate = crate::tilewright)]
fn indexed(x: In<f32, 1>, y: Out<f32, 1>, n: i32) {
    let v = x.load([0], [4]);
    let w = v[None];
}

fn main() {}
