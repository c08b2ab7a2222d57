//! Tiles that change their shape.

use crate::common::{assert_same, garbage, on_every_device, upload};
use tilewright::dsl::*;

#[kernel]
fn transpose<T: Element>(x: In<T, 2>, y: Out<T, 2>, #[comptime] rows: usize, #[comptime] columns: usize) {
    let (i, j) = (program_id(0) * rows, program_id(1) * columns);
    y.store([j, i], trans(x.load([i, j], [rows, columns])));
}

fn transposes<T: Element + PartialEq + std::fmt::Debug>(
    dev: &tilewright::Device,
    number: impl Fn(usize) -> T,
    tile: [usize; 2],
    [m, n]: [usize; 2],
) {
    let host: Vec<T> = (0..m * n).map(number).collect();
    let (x, y) = (upload(dev, &host), garbage::<T>(dev, m * n));
    transpose(x.view([m, n]).unwrap(), y.view([n, m]).unwrap(), tile[0], tile[1])
        .grid([m.div_ceil(tile[0]), n.div_ceil(tile[1])])
        .launch()
        .unwrap();
    let expected: Vec<T> = (0..m * n).map(|i| host[i % m * n + i / m]).collect();
    assert_same(&format!("{m} x {n} {} by {tile:?}", T::DTYPE), &y.to_vec().unwrap(), &expected);
}

#[test]
fn transposes_of_every_width() {
    on_every_device(|dev| {
        transposes(dev, |i| i as f32, [32, 32], [96, 64]);
        transposes(dev, |i| i as f32, [64, 16], [70, 45]);
        transposes(dev, |i| i as u8, [64, 64], [128, 64]);
        transposes(dev, |i| f16::from_bits(i as u16), [32, 64], [64, 128]);
        transposes(dev, |i| i as i64, [16, 32], [33, 31]);
        transposes(dev, |i| i % 3 == 0, [32, 16], [40, 40]);
    });
}

#[kernel]
fn permuted(x: In<i32, 3>, y: Out<i32, 3>, #[comptime] a: usize, #[comptime] b: usize, #[comptime] c: usize) {
    y.store([0, 0, 0], permute(x.load([0, 0, 0], [4, 8, 16]), [a, b, c]));
}

#[test]
fn every_permutation_of_three_axes() {
    on_every_device(|dev| {
        let dims = [4, 8, 16];
        let host: Vec<i32> = (0..512).collect();
        let x = upload(dev, &host);
        for p in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let out = p.map(|axis| dims[axis]);
            let y = garbage::<i32>(dev, 512);
            permuted(x.view(dims).unwrap(), y.view(out).unwrap(), p[0], p[1], p[2]).grid([1]).launch().unwrap();
            let mut expected = Vec::new();
            for i in 0..out[0] {
                for j in 0..out[1] {
                    for k in 0..out[2] {
                        let mut at = [0; 3];
                        (at[p[0]], at[p[1]], at[p[2]]) = (i, j, k);
                        expected.push(((at[0] * 8 + at[1]) * 16 + at[2]) as i32);
                    }
                }
            }
            assert_same(&format!("{p:?}"), &y.to_vec().unwrap(), &expected);
        }
    });
}

/// A vector as a matrix, its rows' sums spread over the columns again, and back to a vector.
#[kernel]
fn folded(x: In<i32, 1>, y: Out<i32, 1>) {
    let m = reshape(x.load([0], [512]), [16, 32]);
    let sums = broadcast_to(sum(m, 1), [16, 32]);
    let columns = expand_dims(arange(0, 32), 0);
    y.store([0], reshape(trans(m) + trans(sums * columns), [512]));
}

#[test]
fn reshape_broadcast_and_expand() {
    on_every_device(|dev| {
        let host: Vec<i32> = (0..512).map(|i| i * i % 97).collect();
        let (x, y) = (upload(dev, &host), garbage::<i32>(dev, 512));
        folded(x.view([512]).unwrap(), y.view([512]).unwrap()).grid([1]).launch().unwrap();
        let sums: Vec<i32> = host.chunks(32).map(|row| row.iter().sum()).collect();
        let expected: Vec<i32> = (0..512)
            .map(|i| {
                let (row, column) = (i % 16, i / 16);
                host[row * 32 + column] + sums[row] * column as i32
            })
            .collect();
        assert_same("folded", &y.to_vec().unwrap(), &expected);
    });
}
