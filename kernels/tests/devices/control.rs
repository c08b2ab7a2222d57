//! Loops and branches on device values.

use crate::common::{assert_same, bits, garbage, on_every_device, upload};
use tilewright::dsl::*;

/// A scalar per program: the steps of `n -> n / 2` or `3 n + 1` until 1.
#[kernel]
fn collatz(x: Ptr<i32>, steps: Ptr<i32>) {
    let i = program_id(0);
    let mut v = (x + i).load();
    let mut count = scalar::<i32>(0);
    while v > 1 && count < 1000 {
        if v % 2 == 0 {
            v = v / 2;
        } else {
            v = v * 3 + 1;
        }
        count += 1;
    }
    (steps + i).store(count);
}

fn collatz_steps(mut v: i32) -> i32 {
    let mut count = 0;
    while v > 1 && count < 1000 {
        v = if v % 2 == 0 { v / 2 } else { v * 3 + 1 };
        count += 1;
    }
    count
}

#[test]
fn while_and_if_on_scalars() {
    on_every_device(|dev| {
        let host: Vec<i32> = (-3..60).collect();
        let (x, y) = (upload(dev, &host), garbage::<i32>(dev, host.len()));
        collatz(x.slice(..).unwrap(), y.slice(..).unwrap()).grid([host.len()]).launch().unwrap();
        let expected: Vec<i32> = host.into_iter().map(collatz_steps).collect();
        assert_same("steps", &y.to_vec().unwrap(), &expected);
    });
}

/// Sums of loops in both directions, with bounds known and not.
#[kernel]
fn ranges(out: Ptr<i32>, lo: i32, hi: i32, step: i32) {
    let mut known = scalar::<i32>(0);
    for i in range(88, -1, -8) {
        known += i;
    }
    let mut up = scalar::<i32>(0);
    for i in range(lo, hi, 3) {
        up += i * 2 + 1;
    }
    let mut down = scalar::<i32>(0);
    for i in range(hi, lo, -5) {
        down += i * 2 + 1;
    }
    let mut any = scalar::<i32>(0);
    for i in (lo..hi).step_by(7) {
        any += i ^ step;
    }
    out.store(known);
    (out + 1).store(up);
    (out + 2).store(down);
    (out + 3).store(any);
}

#[test]
fn loops_in_both_directions() {
    on_every_device(|dev| {
        let y = garbage::<i32>(dev, 4);
        for (lo, hi) in [(0, 10), (-20, 31), (5, 5), (9, 2), (i32::MAX - 10, i32::MAX)] {
            ranges(y.slice(..).unwrap(), lo, hi, 12).grid([1]).launch().unwrap();
            let (wide_lo, wide_hi) = (i64::from(lo), i64::from(hi));
            let odd = |i: i64| (i as i32).wrapping_mul(2).wrapping_add(1);
            let sum = |items: &mut dyn Iterator<Item = i32>| items.fold(0i32, i32::wrapping_add);
            let up = sum(&mut (wide_lo..wide_hi).step_by(3).map(odd));
            let down = sum(&mut (0..).map(|n| wide_hi - 5 * n).take_while(|i| *i > wide_lo).map(odd));
            let any = sum(&mut (wide_lo..wide_hi).step_by(7).map(|i| i as i32 ^ 12));
            assert_same(&format!("{lo}..{hi}"), &y.to_vec().unwrap(), &[(0..=88).step_by(8).sum(), up, down, any]);
        }
    });
}

/// A triangle: the inner bound depends on the outer index; tiles are carried through both loops; the branch is uniform.
#[kernel]
fn triangle(x: In<i32, 1>, y: Out<i32, 1>, n: i32, #[comptime] block: usize) {
    let mut acc = zeros::<i32>([block]);
    let mut swapped = x.load([0], [block]);
    for i in range(0, n, 1) {
        for j in range(0, i, 1) {
            acc += swapped * j;
            if (i + j) % 3 == 0 {
                swapped = swapped ^ i;
                acc = acc + 1;
            }
        }
        (acc, swapped) = (swapped, acc);
    }
    y.store([0], acc);
}

#[test]
fn nested_loops_carry_tiles() {
    on_every_device(|dev| {
        let block = 256;
        let host: Vec<i32> = (0..block as u64).map(|i| bits(i) as i32).collect();
        let (x, y) = (upload(dev, &host), garbage::<i32>(dev, block));
        for n in [0, 1, 2, 9] {
            triangle(x.view([block]).unwrap(), y.view([block]).unwrap(), n, block).grid([1]).launch().unwrap();
            let expected: Vec<i32> = host
                .iter()
                .map(|&v| {
                    let (mut acc, mut swapped) = (0i32, v);
                    for i in 0..n {
                        for j in 0..i {
                            acc = acc.wrapping_add(swapped.wrapping_mul(j));
                            if (i + j) % 3 == 0 {
                                swapped ^= i;
                                acc = acc.wrapping_add(1);
                            }
                        }
                        (acc, swapped) = (swapped, acc);
                    }
                    acc
                })
                .collect();
            assert_same(&format!("{n} rounds"), &y.to_vec().unwrap(), &expected);
        }
    });
}

#[device_fn]
fn halve_or<T: Int>(x: Tile<T>, other: Tile<T>) -> Tile<T> {
    where_(x % 2 == 0, x / 2, other)
}

/// Comptime control, helpers and closures; and a store in one branch only.
#[kernel]
fn helpers(x: In<i32, 1>, y: Out<i32, 1>, #[comptime] block: usize, #[comptime] twice: bool) {
    let pid = program_id(0);
    let start = pid * block;
    let mut v = x.load([start], [block]);
    let add = |t: Tile<i32>, k: i32| t + k;
    for k in unroll(0..3) {
        v = add(halve_or(v, v * 3 + 1), k);
    }
    if twice {
        v = v * 2;
    }
    if pid % 2 == 0 {
        y.store([start], v);
    } else if pid % 3 == 0 {
        y.store([start], -v);
    }
}

#[test]
fn comptime_control_helpers_and_stores_in_branches() {
    on_every_device(|dev| {
        let (block, programs) = (64, 7);
        let n = block * programs;
        let host: Vec<i32> = (0..n as u64).map(|i| bits(i) as i32 >> 8).collect();
        for twice in [false, true] {
            let (x, y) = (upload(dev, &host), upload(dev, &vec![77; n]));
            helpers(x.view([n]).unwrap(), y.view([n]).unwrap(), block, twice).grid([programs]).launch().unwrap();
            let expected: Vec<i32> = (0..n)
                .map(|i| {
                    let mut v = host[i];
                    for k in 0..3 {
                        v = if v % 2 == 0 { v / 2 } else { v * 3 + 1 } + k;
                    }
                    let v = if twice { v * 2 } else { v };
                    match i / block {
                        p if p % 2 == 0 => v,
                        p if p % 3 == 0 => -v,
                        _ => 77,
                    }
                })
                .collect();
            assert_same(&format!("twice: {twice}"), &y.to_vec().unwrap(), &expected);
        }
    });
}
