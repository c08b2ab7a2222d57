//! Softmax against doubles.

use crate::common::{Real, assert_close, doubles, garbage, on_every_device, sum_roundings, uniform, upload};
use tilewright::Device;
use tilewright::dsl::{bf16, f16};
use tilewright_kernels::{reference, softmax};

const COLUMNS: [usize; 11] = [1, 2, 7, 100, 781, 1000, 1024, 4096, 5000, 12_288, 33_000];

/// Errors of f32, in units of its rounding: 2 ulp (4 units) of `exp`, whose operand, at most `spread` in magnitude, is off by
/// one rounding; as much in the sum, with the roundings of the sum itself; the
/// reciprocal and the product. Then one rounding to the type of the result.
fn tolerance<T: Real>(dev: &Device, columns: usize, spread: f64) -> impl Fn(usize, f64) -> f64 {
    let units = 2.0 * (4.0 + spread) + sum_roundings(dev, columns) + 3.0;
    move |_, e| e * (units * f32::ROUNDING + T::ROUNDING) + T::TINY
}

fn check<T: Real>(dev: &Device, what: &str, host: &[T], columns: usize, spread: f64) {
    let rows = host.len() / columns;
    let (x, y) = (upload(dev, host), garbage::<T>(dev, host.len()));
    softmax(x.view([rows, columns]).unwrap(), y.view([rows, columns]).unwrap()).unwrap().launch().unwrap();
    let expected = reference::softmax(&doubles(host), columns);
    let what = format!("{what}, rows of {columns} {}", T::DTYPE);
    assert_close(&what, &y.to_vec().unwrap(), &expected, tolerance::<T>(dev, columns, spread));
}

fn lengths<T: Real>(dev: &Device) {
    for columns in COLUMNS {
        let rows = if columns > 5000 { 2 } else { 3 };
        let host: Vec<T> = (0..rows * columns).map(|i| T::of(uniform(i as u64) * 10.0)).collect();
        check(dev, "random numbers", &host, columns, 20.0);
    }
}

#[test]
fn any_row_length_in_f32() {
    on_every_device(lengths::<f32>);
}

#[test]
fn any_row_length_in_f16() {
    on_every_device(lengths::<f16>);
}

#[test]
fn any_row_length_in_bf16() {
    on_every_device(lengths::<bf16>);
}

/// Rows of one and of several pieces with a special value in the first, a middle and the last column.
fn special<T: Real>(dev: &Device) {
    let inf = f64::INFINITY;
    for columns in [7usize, 1000, 33_000] {
        let base: Vec<T> = (0..columns).map(|i| T::of(uniform(i as u64))).collect();
        for (what, value, spread) in
            [("a minus infinity", -inf, 2.0), ("an infinity", inf, 2.0), ("a NaN", f64::NAN, 2.0), ("3e4", 3e4, 3e4)]
        {
            let mut host = Vec::new();
            for at in [0, columns / 2, columns - 1] {
                let mut row = base.clone();
                row[at] = T::of(value);
                host.extend(row);
            }
            check(dev, what, &host, columns, spread);
        }
        let all = |v: f64| vec![T::of(v); columns];
        check(dev, "only minus infinities", &all(-inf), columns, 0.0);
        check(dev, "all equal and huge", &all(6e4), columns, 0.0);
        check(dev, "all equal and low", &all(-6e4), columns, 0.0);
        let mut host = all(-inf);
        host[columns / 2] = T::of(-5.0);
        check(dev, "one number among minus infinities", &host, columns, 0.0);
    }
}

#[test]
fn infinities_nan_and_huge_values() {
    on_every_device(|dev| {
        special::<f32>(dev);
        special::<f16>(dev);
    });
}

#[test]
fn huge_f32() {
    on_every_device(|dev| {
        let host: Vec<f32> = (0..100).map(|i| if i % 3 == 0 { 3e38 } else { -3e38 }).collect();
        check(dev, "3e38", &host, 100, 0.0);
    });
}

#[test]
fn strided_rows() {
    on_every_device(|dev| {
        // Rows one element longer than what is read of them, and columns three apart.
        for (columns, row_stride, column_stride) in [(100usize, 101isize, 1isize), (100, 300, 3), (5000, 5003, 1)] {
            let rows = 3;
            let room = (rows - 1) * row_stride as usize + (columns - 1) * column_stride as usize + 1;
            let host: Vec<f32> = (0..room).map(|i| uniform(i as u64) as f32 * 5.0).collect();
            let (x, y) = (upload(dev, &host), upload(dev, &host));
            let strides = [row_stride, column_stride];
            softmax(
                x.view_strided(0, [rows, columns], strides).unwrap(),
                y.view_strided(0, [rows, columns], strides).unwrap(),
            )
            .unwrap()
            .launch()
            .unwrap();
            let at = |r: usize, c: usize| r * row_stride as usize + c * column_stride as usize;
            let dense: Vec<f64> = (0..rows * columns).map(|i| f64::from(host[at(i / columns, i % columns)])).collect();
            let result = reference::softmax(&dense, columns);
            let mut expected: Vec<f64> = host.iter().map(|v| f64::from(*v)).collect();
            for (i, v) in result.into_iter().enumerate() {
                expected[at(i / columns, i % columns)] = v;
            }
            let within = tolerance::<f32>(dev, columns, 10.0);
            assert_close("strided rows", &y.to_vec().unwrap(), &expected, |i, e| within(i, e.abs()));
        }
    });
}

#[test]
fn in_place() {
    on_every_device(|dev| {
        for columns in [1000usize, 12_288] {
            let host: Vec<f32> = (0..2 * columns).map(|i| uniform(i as u64) as f32 * 5.0).collect();
            let x = upload(dev, &host);
            let v = x.view([2, columns]).unwrap();
            softmax(v, v).unwrap().launch().unwrap();
            let expected = reference::softmax(&doubles(&host), columns);
            assert_close("in place", &x.to_vec().unwrap(), &expected, tolerance::<f32>(dev, columns, 10.0));
        }
    });
}

#[test]
fn no_rows_and_no_columns() {
    on_every_device(|dev| {
        let (x, y) = (upload::<f32>(dev, &[]), garbage::<f32>(dev, 0));
        for dims in [[0, 5], [5, 0], [0, 0]] {
            softmax(x.view(dims).unwrap(), y.view(dims).unwrap()).unwrap().launch().unwrap();
        }
    });
}
