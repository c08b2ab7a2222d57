//! Without `crate = ..` the macros find everything in the crate `tilewright`, here this test itself.

extern crate self as tilewright;

#[path = "support/mod.rs"]
mod support;

pub use support::*;

use dsl::{Carry, In, Out, Ptr, Specialization, Tile, device_fn, kernel, program_id, scalar};
use std::marker::PhantomData;

#[derive(Clone, Carry)]
struct Pair<T: dsl::Num>(Tile<T>, Tile<T>);

#[device_fn]
fn swap<T: dsl::Num>(pair: &mut Pair<T>) {
    if pair.0 > pair.1 {
        *pair = Pair(pair.1, pair.0);
    }
}

/// Sorts two numbers `n` times.
#[kernel]
pub fn sort<T: dsl::Num>(x: In<T, 1>, y: Out<T, 1>, p: Ptr<T>, n: i32) {
    let at = program_id(0);
    let mut pair = Pair(dsl::max(x.load([at], [1]), 0), scalar::<T>(1));
    for _ in 0..n {
        swap(&mut pair);
    }
    p.store(pair.0);
    y.store([at], dsl::full([1], pair.1));
}

#[test]
fn the_default_path_is_the_crate() {
    let launch = sort::<i64>(View(PhantomData), View(PhantomData), Slice(PhantomData), 3);
    let f = launch.def.build(&Specialization::general()).unwrap();
    assert_eq!(f.params.len(), 4);
    assert_eq!(launch.args.len(), 4);
}
