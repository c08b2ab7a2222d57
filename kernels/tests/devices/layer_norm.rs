//! Layer norm against doubles.

use crate::common::{Real, assert_close, doubles, garbage, on_every_device, sum_roundings, uniform, upload};
use tilewright::Device;
use tilewright::dsl::{bf16, f16};
use tilewright_kernels::{layer_norm, reference};

const COLUMNS: [usize; 11] = [1, 2, 7, 100, 781, 1000, 1024, 4096, 5000, 12_288, 33_000];
const EPS: f64 = 1e-5;

/// The mean of a row is off by the roundings of the sum, of the division and of the sum's own operands (3 more), each of a
/// unit of its magnitude, which the scale `1 / sqrt(variance + eps)` multiplies. The variance is that of
/// differences from this mean; its relative error is as small as theirs, whose magnitude the mean does not enter, but for
/// the square of the mean's error. 40 units cover that, `rsqrt` and the last three operations. A naive variance,
/// `mean(x^2) - mean^2`, is off by `mean^2` roundings and fails where the mean is large.
fn check<T: Real>(dev: &Device, what: &str, host: &[T], columns: usize) {
    let rows = host.len() / columns;
    let weight: Vec<T> = (0..columns).map(|i| T::of(1.0 + uniform(i as u64 + 11) / 2.0)).collect();
    let bias: Vec<T> = (0..columns).map(|i| T::of(uniform(i as u64 + 99))).collect();
    let (x, w, b) = (upload(dev, host), upload(dev, &weight), upload(dev, &bias));
    let y = garbage::<T>(dev, host.len());
    layer_norm(
        x.view([rows, columns]).unwrap(),
        w.view([columns]).unwrap(),
        b.view([columns]).unwrap(),
        y.view([rows, columns]).unwrap(),
        EPS as f32,
    )
    .unwrap()
    .launch()
    .unwrap();

    let wide = doubles(host);
    let expected = reference::layer_norm(&wide, &doubles(&weight), &doubles(&bias), f64::from(EPS as f32));
    let scaled: Vec<f64> = wide
        .chunks(columns)
        .map(|row| {
            let mean = row.iter().sum::<f64>() / columns as f64;
            let variance = row.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / columns as f64;
            row.iter().map(|v| v.abs()).sum::<f64>() / columns as f64 / (variance + EPS).sqrt()
        })
        .collect();
    let what = format!("{what}, rows of {columns} {}", T::DTYPE);
    assert_close(&what, &y.to_vec().unwrap(), &expected, |i, e| {
        f32::ROUNDING * (1.5 * (sum_roundings(dev, columns) + 3.0) * scaled[i / columns] + 40.0 * (e.abs() + 1.0))
            + T::ROUNDING * e.abs()
            + T::TINY
    });
}

fn lengths<T: Real>(dev: &Device) {
    for columns in COLUMNS {
        let host: Vec<T> = (0..2 * columns).map(|i| T::of(uniform(i as u64) * 3.0 + 0.5)).collect();
        check(dev, "random numbers", &host, columns);
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

#[test]
fn constant_rows_give_the_bias() {
    on_every_device(|dev| {
        for columns in [1usize, 781, 12_288] {
            for value in [0.0, 3.0, -0.1] {
                check(dev, &format!("all {value}"), &vec![value as f32; 2 * columns], columns);
            }
        }
    });
}

#[test]
fn a_mean_far_larger_than_the_spread() {
    on_every_device(|dev| {
        for columns in [1000usize, 12_288] {
            let host: Vec<f32> = (0..2 * columns).map(|i| (uniform(i as u64) + 1000.0) as f32).collect();
            check(dev, "about 1000", &host, columns);
            let host: Vec<f32> = (0..2 * columns).map(|i| (uniform(i as u64) - 30_000.0) as f32).collect();
            check(dev, "about -30000", &host, columns);
        }
        let host: Vec<f16> = (0..2000).map(|i| f16::from_f64(uniform(i) * 8.0 + 1000.0)).collect();
        check(dev, "about 1000", &host, 1000);
    });
}

#[test]
fn weights_of_another_length_are_refused() {
    on_every_device(|dev| {
        let x = upload(dev, &[0.0f32; 60]);
        let (v, w, b) = (x.view([6, 10]).unwrap(), x.view([10]).unwrap(), x.view([9]).unwrap());
        let e = layer_norm(v, w, b, v, 1e-5).unwrap_err().to_string();
        assert!(e.contains("bias has 9 elements, but rows have 10"), "{e}");
    });
}
