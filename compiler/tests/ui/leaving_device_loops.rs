#![allow(unused)]
#[path = "../support/mod.rs"]
mod tilewright;
use tilewright::dsl::*;

#[kernel(crate = crate::tilewright)]
fn k(x: Ptr<f32>, n: i32) {
    for i in 0..n {
        if i == 3 {
            break;
        }
        (x + i).store(1.0);
        continue;
    }
    for i in unroll(0..4) {
        if n > i {
            continue;
        }
    }
    if n == 0 {
        return;
    }
    'outer: for i in 0..n {
        (x + i).store(1.0);
        for j in unroll(0..2) {
            continue 'outer;
        }
    }
    let mut k = 0;
    while { k += 1; k < n } {}
}

fn main() {}
