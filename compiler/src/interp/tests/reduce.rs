//! Reductions and argmax.

use super::{Random, input, launch, ok, out};
use crate::dtype::DType;
use crate::tile::{BinaryOp, Builder, Constant, Function, Op, ReduceOp, Value};
use half::f16;

/// A kernel that loads a tile of this shape, applies `f` and stores the result.
fn kernel(d: DType, dims: &[usize], f: impl FnOnce(&mut Builder, Value) -> Value) -> (Function, usize) {
    let mut b = Builder::new("reduce");
    let n: usize = dims.iter().product();
    let from = b.param_ptr("x", d, Default::default());
    let lanes = ok(b.arange(0, n));
    let p = ok(b.ptr_add(from, lanes));
    let x = ok(b.load(p, None, None));
    let x = ok(b.reshape(x, crate::tile::Shape::new(dims)));
    let y = f(&mut b, x);
    let (elements, result) = (b.ty(y).shape.elements(), b.ty(y).dtype());
    let to = b.param_ptr("out", result, Default::default());
    let y = ok(b.reshape(y, [elements]));
    let lanes = ok(b.arange(0, elements));
    let p = ok(b.ptr_add(to, lanes));
    ok(b.store(p, y, None));
    (b.finish(), elements)
}

fn run<T: bytemuck::Pod, U: bytemuck::Pod>(
    d: DType,
    dims: &[usize],
    x: &[T],
    f: impl FnOnce(&mut Builder, Value) -> Value,
) -> Vec<U> {
    let (func, n) = kernel(d, dims, f);
    let mut got = vec![U::zeroed(); n];
    launch(&func, [1, 1, 1], vec![input(x), out(&mut got)]).unwrap();
    got
}

/// The documented order, element by element.
fn in_order<T: Copy>(x: &[T], f: &dyn Fn(T, T) -> T) -> T {
    if x.len() > 1024 {
        let (lower, upper) = x.split_at(x.len() / 2);
        return f(in_order(lower, f), in_order(upper, f));
    }
    let lanes = x.len().min(16);
    let mut partial = x[..lanes].to_vec();
    for (i, &v) in x.iter().enumerate().skip(lanes) {
        partial[i % 16] = f(partial[i % 16], v);
    }
    while partial.len() > 1 {
        let upper = partial.split_off(partial.len() / 2);
        partial = partial.iter().zip(upper).map(|(&a, b)| f(a, b)).collect();
    }
    partial[0]
}

#[test]
fn float_sums_have_the_documented_order_along_every_axis() {
    let mut random = Random(3);
    for len in [1, 2, 8, 16, 32, 256, 1024, 2048, 16_384] {
        let dims = [4, len, 2];
        let x: Vec<f32> = (0..8 * len).map(|_| random.float()).collect();
        // Along the middle axis, and with the axis last: the same bits.
        let middle: Vec<f32> = run(DType::F32, &dims, &x, |b, x| ok(b.reduce(ReduceOp::Sum, x, 1)));
        let last: Vec<f32> = run(DType::F32, &dims, &x, |b, x| {
            let x = ok(b.permute(x, &[0, 2, 1]));
            ok(b.reduce(ReduceOp::Sum, x, 2))
        });
        for i in 0..4 {
            for j in 0..2 {
                let column: Vec<f32> = (0..len).map(|k| x[(i * len + k) * 2 + j]).collect();
                let expected = in_order(&column, &|a, b| a + b);
                assert_eq!(middle[i * 2 + j].to_bits(), expected.to_bits());
                assert_eq!(last[i * 2 + j].to_bits(), expected.to_bits());
            }
        }
    }
}

#[test]
fn long_sums_stay_accurate() {
    let mut random = Random(5);
    let x: Vec<f32> = (0..1 << 20).map(|_| random.float().abs() + 0.1).collect();
    let exact: f64 = x.iter().map(|&v| f64::from(v)).sum();
    let got: Vec<f32> = run(DType::F32, &[1 << 20], &x, |b, x| ok(b.reduce(ReduceOp::Sum, x, 0)));
    let error = (f64::from(got[0]) - exact).abs() / exact;
    assert!(error < 3e-7, "{error}");
}

#[test]
fn sums_of_f16_accumulate_in_f32() {
    // 4096 ones: f16 itself would stop at 2048.
    let x = vec![f16::ONE; 4096];
    let got: Vec<f16> = run(DType::F16, &[4096], &x, |b, x| ok(b.reduce(ReduceOp::Sum, x, 0)));
    assert_eq!(got[0].to_f32(), 4096.0);
    let x: Vec<f16> = (0..512).map(|i| f16::from_f32(i as f32 * 0.3)).collect();
    let got: Vec<f16> = run(DType::F16, &[64, 8], &x, |b, x| ok(b.reduce(ReduceOp::Sum, x, 0)));
    for j in 0..8 {
        let exact: f64 = (0..64).map(|i| x[i * 8 + j].to_f64()).sum();
        assert_eq!(got[j], f16::from_f32(exact as f32));
    }
}

#[test]
fn bool_and_small_integer_sums_widen() {
    let x = [1u8; 256];
    let got: Vec<i32> = run(DType::Bool, &[128, 2], &x, |b, x| {
        let x = ok(b.reduce(ReduceOp::Sum, x, 0));
        ok(b.reduce(ReduceOp::Sum, x, 0))
    });
    assert_eq!(got, [256]);
    // A byte that is neither 0 nor 1 is true, and counts once.
    let x: Vec<u8> = (0..16).map(|i| if i % 4 == 0 { 0 } else { i }).collect();
    let got: Vec<i32> = run(DType::Bool, &[16], &x, |b, x| ok(b.reduce(ReduceOp::Sum, x, 0)));
    assert_eq!(got, [12]);
    let x = [1i8; 512];
    let got: Vec<i32> = run(DType::I8, &[512], &x, |b, x| ok(b.reduce(ReduceOp::Sum, x, 0)));
    assert_eq!(got, [512]);
    let x = [200u8; 64];
    let got: Vec<u32> = run(DType::U8, &[64], &x, |b, x| ok(b.reduce(ReduceOp::Sum, x, 0)));
    assert_eq!(got, [12_800]);
}

#[test]
fn every_reduction_of_every_type_is_the_fold_of_its_op() {
    use crate::interp::scalar::eval_elementwise;
    let mut random = Random(11);
    for d in DType::ALL {
        for (&op, combine) in ReduceOp::ALL.iter().zip([
            BinaryOp::Add,
            BinaryOp::Mul,
            BinaryOp::Min,
            BinaryOp::Max,
            BinaryOp::And,
            BinaryOp::Or,
            BinaryOp::Xor,
        ]) {
            if matches!(op, ReduceOp::Sum | ReduceOp::Prod) && (d.bits() < 32 || d == DType::Bool) {
                continue;
            }
            let f = |a: u64, b: u64| eval_elementwise(&Op::Binary(combine), &[d, d], &[a, b], d);
            if f(0, 0).is_none() {
                continue;
            }
            let elements: Vec<u64> = (0..128)
                .map(|_| match d {
                    DType::Bool => random.bits() & 1,
                    _ if d.is_float() => Constant::from_f64(d, f64::from(random.float()) + 1.5).0,
                    _ => random.bits() >> (64 - d.bits()),
                })
                .collect();
            let mut words = vec![0u64; 128 * d.bytes() / 8];
            for (to, from) in bytemuck::cast_slice_mut::<u64, u8>(&mut words).chunks_mut(d.bytes()).zip(&elements) {
                to.copy_from_slice(&from.to_le_bytes()[..d.bytes()]);
            }
            for axis in [0, 1] {
                let got: Vec<u8> = {
                    let (func, n) = kernel(d, &[4, 32], |b, x| ok(b.reduce(op, x, axis)));
                    let mut got = vec![0u64; (n * d.bytes()).div_ceil(8)];
                    launch(&func, [1, 1, 1], vec![input(&words), out(&mut got)]).unwrap();
                    bytemuck::cast_slice(&got).to_vec()
                };
                for i in 0..[32, 4][axis] {
                    let line: Vec<u64> = match axis {
                        0 => (0..4).map(|k| elements[k * 32 + i]).collect(),
                        _ => elements[i * 32..][..32].to_vec(),
                    };
                    let expected = in_order(&line, &|a, b| f(a, b).unwrap());
                    assert_eq!(
                        got[i * d.bytes()..][..d.bytes()],
                        expected.to_le_bytes()[..d.bytes()],
                        "{op} {d} {axis}"
                    );
                }
            }
        }
    }
}

#[test]
fn minimum_and_maximum_propagate_nan_from_any_place() {
    for at in [0, 5, 16, 31] {
        let mut x: Vec<f32> = (0..32).map(|i| i as f32).collect();
        x[at] = f32::NAN;
        for op in [ReduceOp::Min, ReduceOp::Max] {
            let got: Vec<f32> = run(DType::F32, &[32], &x, |b, x| ok(b.reduce(op, x, 0)));
            assert!(got[0].is_nan(), "{op} with NaN at {at}");
        }
    }
    let zeros = [0.0f32, -0.0, 0.0, -0.0];
    let got: Vec<f32> = run(DType::F32, &[4], &zeros, |b, x| ok(b.reduce(ReduceOp::Min, x, 0)));
    assert!(got[0].is_sign_negative());
    let got: Vec<f32> = run(DType::F32, &[4], &zeros, |b, x| ok(b.reduce(ReduceOp::Max, x, 0)));
    assert!(got[0].is_sign_positive());
}

#[test]
fn argmax_takes_the_first_of_equals_and_the_first_nan() {
    let arg = |max: bool, x: &[f32]| -> i32 {
        let got: Vec<i32> = run(DType::F32, &[x.len()], x, |b, x| ok(b.arg_reduce(max, x, 0)));
        got[0]
    };
    let nan = f32::NAN;
    assert_eq!(arg(true, &[1.0, 3.0, 3.0, 2.0]), 1);
    assert_eq!(arg(false, &[1.0, 3.0, 1.0, 2.0]), 0);
    assert_eq!(arg(true, &[1.0, nan, f32::INFINITY, nan]), 1);
    assert_eq!(arg(false, &[-1.0, f32::NEG_INFINITY, nan, nan]), 2);
    assert_eq!(arg(true, &[nan, 5.0]), 0);
    assert_eq!(arg(true, &[-0.0, 0.0]), 0, "zeros are equal");
    assert_eq!(arg(true, &[f32::NEG_INFINITY; 4]), 0);
    assert_eq!(arg(true, &[4.0]), 0);
    // Along the first axis of a matrix; of integers by their sign.
    let x: Vec<i32> = vec![5, -1, 7, 7, -9, 7, 7, 0];
    let got: Vec<i32> = run(DType::I32, &[4, 2], &x, |b, x| ok(b.arg_reduce(true, x, 0)));
    assert_eq!(got, [1, 1]);
    let got: Vec<i32> = run(DType::U32, &[4, 2], &x, |b, x| ok(b.arg_reduce(true, x, 0)));
    assert_eq!(got, [2, 0], "as unsigned, -1 and -9 are great");
}
