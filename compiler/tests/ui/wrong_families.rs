#![allow(unused)]
#[path = "../support/mod.rs"]
mod tilewright;
use tilewright::dsl::*;

#[kernel(crate = crate::tilewright)]
fn k(x: Ptr<f32>, n: i32, flag: bool) {
    let a = exp(n);
    let b = flag + flag;
    let c = x.load() & x.load();
    let d = x.load() << 1;
    let e = sum(x, 0);
    let f = x + 1.5;
    let g = dot(n, n, n);
}

#[device_fn(crate = crate::tilewright)]
fn any_number<T: Num>(x: Tile<T>) -> Tile<T> {
    sqrt(x)
}

fn main() {}
