//! Reductions over each axis, in several types.

use crate::common::{assert_same, bits, garbage, on_every_device, uniform, upload};
use std::fmt::Debug;
use tilewright::dsl::*;
use tilewright::{Device, Element as HostElement};

const DIMS: [usize; 3] = [4, 8, 16];

/// Sum, greatest, least and their places along one axis.
#[kernel]
fn along<T: Num, S: Element>(
    x: In<T, 3>,
    total: Out<S, 3>,
    most: Out<T, 3>,
    place: Out<i32, 3>,
    #[comptime] axis: usize,
) {
    let v = x.load([0, 0, 0], [4, 8, 16]);
    total.store([0, 0, 0], sum(v, axis).to::<S>());
    most.store([0, 0, 0], max(v, axis));
    place.store([0, 0, 0], argmax(v, axis) * 100 + argmin(v, axis));
}

/// The indices of a line along `axis`, for each of the lines in order.
fn lines(axis: usize) -> Vec<Vec<usize>> {
    let strides = [DIMS[1] * DIMS[2], DIMS[2], 1];
    let all: usize = DIMS.iter().product();
    let starts = (0..all).filter(|i| (i / strides[axis]).is_multiple_of(DIMS[axis]));
    starts.map(|start| (0..DIMS[axis]).map(|j| start + j * strides[axis]).collect()).collect()
}

fn check<T, S>(dev: &Device, host: &[T], sum: impl Fn(&[T]) -> S, less: impl Fn(T, T) -> bool)
where
    T: HostElement + Num + PartialEq + Debug,
    S: HostElement + PartialEq + Debug,
{
    for axis in 0..3 {
        let lines = lines(axis);
        let mut kept = DIMS;
        kept[axis] = 1;
        let x = upload(dev, host);
        let (total, most, place) =
            (garbage::<S>(dev, lines.len()), garbage::<T>(dev, lines.len()), garbage::<i32>(dev, lines.len()));
        along(
            x.view(DIMS).unwrap(),
            total.view(kept).unwrap(),
            most.view(kept).unwrap(),
            place.view(kept).unwrap(),
            axis,
        )
        .grid([1])
        .launch()
        .unwrap();
        let (mut sums, mut greatest, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for line in lines {
            let values: Vec<T> = line.iter().map(|&i| host[i]).collect();
            // The first of equals.
            let find = |better: &dyn Fn(T, T) -> bool| {
                (1..values.len()).fold(0, |best, i| if better(values[i], values[best]) { i } else { best })
            };
            let (top, bottom) = (find(&|a, b| less(b, a)), find(&|a, b| less(a, b)));
            sums.push(sum(&values));
            greatest.push(values[top]);
            places.push((top * 100 + bottom) as i32);
        }
        let what = |which: &str| format!("{which} along axis {axis} of {}", T::DTYPE);
        assert_same(&what("sum"), &total.to_vec().unwrap(), &sums);
        assert_same(&what("greatest"), &most.to_vec().unwrap(), &greatest);
        assert_same(&what("places"), &place.to_vec().unwrap(), &places);
    }
}

#[test]
fn every_axis() {
    on_every_device(|dev| {
        let n = DIMS.iter().product::<usize>() as u64;
        let random = (0..n).map(bits);
        // Few values, so that there are equals; whole numbers, so that sums of floats are exact in any order.
        let few: Vec<f32> = random.clone().map(|b| (b % 41) as f32 - 20.0).collect();
        check(dev, &few, |v| v.iter().sum::<f32>(), |a, b| a < b);
        let half: Vec<f16> = few.iter().map(|&v| f16::from_f32(v)).collect();
        check(dev, &half, |v| f16::from_f32(v.iter().map(|v| v.to_f32()).sum()), |a, b| a < b);
        let brain: Vec<bf16> = few.iter().map(|&v| bf16::from_f32(v)).collect();
        check(dev, &brain, |v| bf16::from_f32(v.iter().map(|v| v.to_f32()).sum()), |a, b| a < b);
        let ints: Vec<i32> = random.clone().map(|b| b as i32).collect();
        check(dev, &ints, |v| v.iter().fold(0i32, |s, v| s.wrapping_add(*v)), |a, b| a < b);
        let bytes: Vec<i8> = random.clone().map(|b| b as i8).collect();
        check(dev, &bytes, |v| v.iter().map(|v| i32::from(*v)).sum::<i32>(), |a, b| a < b);
        let wide: Vec<u64> = random.clone().collect();
        check(dev, &wide, |v| v.iter().fold(0u64, |s, v| s.wrapping_add(*v)), |a, b| a < b);
        let shorts: Vec<u16> = random.map(|b| b as u16).collect();
        check(dev, &shorts, |v| v.iter().map(|v| u32::from(*v)).sum::<u32>(), |a, b| a < b);
    });
}

/// Truths: how many, whether any, whether all; and exclusive or.
#[kernel]
fn truths(x: In<i32, 1>, out: Ptr<i32>, #[comptime] block: usize) {
    let v = x.load([0], [block]);
    out.store(sum(v > 0, 0));
    (out + 1).store(any(v > 98, 0).to::<i32>());
    (out + 2).store(all(v > -100, 0).to::<i32>());
    (out + 3).store(xor_sum(v, 0));
    (out + 4).store(prod(v | 1, 0));
}

#[test]
fn truths_are_counted_in_i32() {
    on_every_device(|dev| {
        let host: Vec<i32> = (0..2048).map(|i| (bits(i) % 200) as i32 - 99).collect();
        let (x, y) = (upload(dev, &host), garbage::<i32>(dev, 5));
        truths(x.view([2048]).unwrap(), y.slice(..).unwrap(), 2048).grid([1]).launch().unwrap();
        let expected = [
            host.iter().filter(|v| **v > 0).count() as i32,
            host.iter().any(|v| *v > 98).into(),
            host.iter().all(|v| *v > -100).into(),
            host.iter().fold(0, |a, b| a ^ b),
            host.iter().fold(1i32, |a, b| a.wrapping_mul(b | 1)),
        ];
        assert_same("truths", &y.to_vec().unwrap(), &expected);
    });
}

#[kernel]
fn extremes(x: In<f32, 1>, place: Ptr<i32>, value: Ptr<f32>, #[comptime] block: usize) {
    let v = x.load_or([0], [block], -inf());
    place.store(argmax(v, 0));
    (place + 1).store(argmin(v, 0));
    value.store(max(v, 0));
    (value + 1).store(min(v, 0));
}

#[test]
fn the_first_nan_is_the_greatest_and_the_least() {
    on_every_device(|dev| {
        for nans in [vec![], vec![777], vec![500, 3, 999], vec![0, 1]] {
            let mut host: Vec<f32> = (0..1000).map(|i| uniform(i) as f32).collect();
            for &i in &nans {
                host[i] = f32::NAN;
            }
            let (x, place, value) = (upload(dev, &host), garbage::<i32>(dev, 2), garbage::<f32>(dev, 2));
            extremes(x.view([1000]).unwrap(), place.slice(..).unwrap(), value.slice(..).unwrap(), 1024)
                .grid([1])
                .launch()
                .unwrap();
            let (place, value) = (place.to_vec().unwrap(), value.to_vec().unwrap());
            if let Some(first) = nans.iter().min() {
                assert!(value[0].is_nan() && value[1].is_nan(), "{value:?}");
                assert_eq!(place, [*first as i32; 2]);
            } else {
                let at = |v: f32| host.iter().position(|x| *x == v).unwrap() as i32;
                let most = host.iter().copied().fold(f32::MIN, f32::max);
                assert_eq!((value[0], place[0]), (most, at(most)));
                // What lies beyond the row reads minus infinity.
                assert_eq!((value[1], place[1]), (f32::NEG_INFINITY, 1000));
            }
        }
    });
}
