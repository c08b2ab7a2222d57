//! Ops that move elements: broadcast, reshape, permute; of numbers, of formulas and of addresses.

use super::{input, launch, map_kernel, ok, out};
use crate::dtype::DType;
use crate::tile::{BinaryOp, Builder, Value};

/// A tile of `i32` `0..n`, as a formula or loaded, reshaped; then changed by `f` and flattened again.
fn run(n: usize, dims: [usize; 3], dense: bool, f: impl FnOnce(&mut Builder, Value) -> Value) -> Vec<i32> {
    let data: Vec<i32> = (0..n as i32).collect();
    let mut elements = 0;
    let make = |b: &mut Builder, x: Value| {
        let x = ok(b.reshape(x, dims));
        let y = f(b, x);
        elements = b.ty(y).shape.elements();
        ok(b.reshape(y, [b.ty(y).shape.elements()]))
    };
    // The kernel stores as many elements as it makes.
    let mut b = Builder::new("data");
    let from = b.param_ptr("x", DType::I32, Default::default());
    let to = b.param_ptr("out", DType::I32, Default::default());
    let lanes = ok(b.arange(0, n));
    let x = if dense {
        let p = ok(b.ptr_add(from, lanes));
        ok(b.load(p, None, None))
    } else {
        lanes
    };
    let y = make(&mut b, x);
    let lanes = ok(b.arange(0, elements));
    let p = ok(b.ptr_add(to, lanes));
    ok(b.store(p, y, None));
    let func = b.finish();
    let mut got = vec![-1; elements];
    launch(&func, [1, 1, 1], vec![input(&data), out(&mut got)]).unwrap();
    got
}

#[test]
fn permute_reorders_dimensions() {
    let dims = [2, 4, 8];
    for perm in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        for dense in [false, true] {
            let got = run(64, dims, dense, |b, x| ok(b.permute(x, &perm)));
            let to = perm.map(|p| dims[p]);
            let mut expected = Vec::new();
            for i in 0..to[0] {
                for j in 0..to[1] {
                    for k in 0..to[2] {
                        let mut index = [0; 3];
                        for (d, v) in perm.into_iter().zip([i, j, k]) {
                            index[d] = v;
                        }
                        expected.push(((index[0] * 4 + index[1]) * 8 + index[2]) as i32);
                    }
                }
            }
            assert_eq!(got, expected, "{perm:?}, dense: {dense}");
        }
    }
}

#[test]
fn broadcast_repeats_extents_of_one() {
    for (from, to) in [([1, 4, 8], [4, 4, 8]), ([4, 1, 8], [4, 2, 8]), ([4, 8, 1], [4, 8, 4]), ([1, 32, 1], [2, 32, 2])]
    {
        for dense in [false, true] {
            let got = run(32, from, dense, |b, x| ok(b.broadcast(x, to)));
            let mut expected = Vec::new();
            for i in 0..to[0] {
                for j in 0..to[1] {
                    for k in 0..to[2] {
                        let [i, j, k] = [i % from[0], j % from[1], k % from[2]];
                        expected.push(((i * from[1] + j) * from[2] + k) as i32);
                    }
                }
            }
            assert_eq!(got, expected, "{from:?} to {to:?}, dense: {dense}");
        }
    }
}

#[test]
fn reshape_keeps_row_major_order() {
    for dense in [false, true] {
        let got = run(64, [4, 2, 8], dense, |b, x| {
            // A transposed tile is not evenly spaced, so its reshape is no formula.
            let x = ok(b.permute(x, &[2, 0, 1]));
            let x = ok(b.reshape(x, [16, 4]));
            let x = ok(b.expand_dims(x, 1));
            ok(b.reshape(x, [2, 2, 16]))
        });
        let expected: Vec<i32> = (0..8).flat_map(|k| (0..8).map(move |ij| ij * 8 + k)).collect();
        assert_eq!(got, expected);
    }
}

#[test]
fn all_widths_move() {
    for d in [DType::I8, DType::I16, DType::I64, DType::F16] {
        let n = 64;
        let x: Vec<u64> = (0..(n * d.bytes() / 8) as u64).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
        let func = map_kernel(&[d], d, n, |b, v| {
            let x = ok(b.reshape(v[0], [8, 8]));
            let x = ok(b.transpose(x));
            ok(b.reshape(x, [n]))
        });
        let mut got = x.clone();
        launch(&func, [1, 1, 1], vec![input(&x), out(&mut got)]).unwrap();
        let (x, got): (&[u8], &[u8]) = (bytemuck::cast_slice(&x), bytemuck::cast_slice(&got));
        let element = |data: &[u8], i: usize| data[i * d.bytes()..][..d.bytes()].to_vec();
        for i in 0..n {
            assert_eq!(element(got, i), element(x, i % 8 * 8 + i / 8), "{d}, {i}");
        }
    }
}

#[test]
fn addresses_broadcast_and_transpose() {
    // out[j, i] = x[i, j] by transposing the addresses, as formulas and, through a select, written out.
    for dense in [false, true] {
        let mut b = Builder::new("transpose");
        let from = b.param_ptr("x", DType::F32, Default::default());
        let to = b.param_ptr("out", DType::F32, Default::default());
        let lanes = ok(b.arange(0, 8));
        let rows = ok(b.expand_dims(lanes, 1));
        let columns = ok(b.expand_dims(lanes, 0));
        let eight = super::int(&mut b, 8);
        let scaled = ok(b.binary(BinaryOp::Mul, rows, eight));
        let offset = ok(b.binary(BinaryOp::Add, scaled, columns));
        let mut p = ok(b.ptr_add(from, offset));
        if dense {
            let q = ok(b.ptr_add(from, offset));
            let c = ok(b.compare(crate::tile::Cmp::Lt, rows, columns));
            p = ok(b.select(c, p, q));
        }
        let p = ok(b.transpose(p));
        let x = ok(b.load(p, None, None));
        let q = ok(b.ptr_add(to, offset));
        ok(b.store(q, x, None));
        let func = b.finish();
        let x: Vec<f32> = (0..64).map(|i| i as f32).collect();
        let mut got = vec![0f32; 64];
        launch(&func, [1, 1, 1], vec![input(&x), out(&mut got)]).unwrap();
        assert!((0..64).all(|i| got[i] == x[i % 8 * 8 + i / 8]), "dense: {dense}");
    }
}
