//! Whole kernels against references in double precision, and the promise of equal bits.

use super::{Arg, Random, block_start, flatten, int, launch, ok, splat, view};
use crate::dtype::DType;
use crate::interp::Program;
use crate::tile::{BinaryOp, Builder, DotPrecision, Function, ReduceOp, UnaryOp, Value, rules};
use half::{bf16, f16};

fn softmax_kernel(block: usize) -> Function {
    let mut b = Builder::new("softmax");
    let x = b.param_view("x", DType::F32, 2, DType::I32, &[]);
    let y = b.param_view("y", DType::F32, 2, DType::I32, &[]);
    let row = ok(b.program_id(0));
    let zero = int(&mut b, 0);
    let least = ok(b.const_f64(DType::F32, f64::NEG_INFINITY));
    let v = ok(b.view_load(&x, &[row, zero], [1, block], Some(least)));
    let max = ok(b.reduce(ReduceOp::Max, v, 1));
    let max = ok(b.expand_dims(max, 1));
    let v = ok(b.binary(BinaryOp::Sub, v, max));
    let e = ok(b.unary(UnaryOp::Exp, v));
    let sum = ok(b.reduce(ReduceOp::Sum, e, 1));
    let sum = ok(b.expand_dims(sum, 1));
    let v = ok(b.binary(BinaryOp::Div, e, sum));
    ok(b.view_store(&y, &[row, zero], v));
    b.finish()
}

#[test]
fn softmax_of_ragged_rows() {
    let mut random = Random(5);
    let (rows, columns) = (13, 100);
    let mut x: Vec<f32> = (0..rows * columns).map(|_| 20.0 * random.float()).collect();
    let mut got = vec![0f32; rows * columns];
    let dims = [rows as i64, columns as i64];
    let args = vec![view(&mut x, &dims), view(&mut got, &dims)];
    launch(&softmax_kernel(128), [rows as u32, 1, 1], args).unwrap();
    for (x, got) in x.chunks(columns).zip(got.chunks(columns)) {
        let max = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let e: Vec<f64> = x.iter().map(|&v| f64::from(v - max).exp()).collect();
        let sum: f64 = e.iter().sum();
        for (&got, e) in got.iter().zip(&e) {
            assert!((f64::from(got) - e / sum).abs() <= 1e-6 * (e / sum) + 1e-30);
        }
    }
}

#[test]
fn layer_norm_in_two_passes() {
    let (rows, columns, block) = (7, 300, 64);
    let mut b = Builder::new("layer_norm");
    let x = b.param_view("x", DType::F16, 2, DType::I32, &[]);
    let weight = b.param_view("weight", DType::F32, 1, DType::I32, &[]);
    let y = b.param_view("y", DType::F16, 2, DType::I32, &[]);
    let row = ok(b.program_id(0));
    let (zero, step) = (int(&mut b, 0), int(&mut b, block as i64));
    let n = ok(b.cast(x.dims[1], DType::F32));
    let empty = splat(&mut b, DType::F32, &[1, block], 0.0);
    // Sum and sum of squares together.
    let (c, carried) = ok(b.begin_for(zero, x.dims[1], step, &[empty, empty]));
    let t = ok(b.view_load(&x, &[row, c], [1, block], None));
    let t = ok(b.cast(t, DType::F32));
    let sum = ok(b.binary(BinaryOp::Add, carried[0], t));
    let squares = ok(b.fma(t, t, carried[1]));
    let sums = ok(b.end_for(&[sum, squares]));
    let mut mean_of = |v: Value| {
        let v = ok(b.reduce(ReduceOp::Sum, v, 1));
        let v = ok(b.expand_dims(v, 1));
        ok(b.binary(BinaryOp::Div, v, n))
    };
    let (mean, square) = (mean_of(sums[0]), mean_of(sums[1]));
    let of_mean = ok(b.binary(BinaryOp::Mul, mean, mean));
    let variance = ok(b.binary(BinaryOp::Sub, square, of_mean));
    let epsilon = splat(&mut b, DType::F32, &[1, 1], 1e-5);
    let variance = ok(b.binary(BinaryOp::Add, variance, epsilon));
    let scale = ok(b.unary(UnaryOp::Rsqrt, variance));
    let (c, _) = ok(b.begin_for(zero, x.dims[1], step, &[]));
    let t = ok(b.view_load(&x, &[row, c], [1, block], None));
    let t = ok(b.cast(t, DType::F32));
    let w = ok(b.view_load(&weight, &[c], [block], None));
    let w = ok(b.expand_dims(w, 0));
    let t = ok(b.binary(BinaryOp::Sub, t, mean));
    let t = ok(b.binary(BinaryOp::Mul, t, scale));
    let t = ok(b.binary(BinaryOp::Mul, t, w));
    let t = ok(b.cast(t, DType::F16));
    ok(b.view_store(&y, &[row, c], t));
    ok(b.end_for(&[]));
    let func = b.finish();

    let mut random = Random(8);
    let mut x: Vec<f16> = (0..rows * columns).map(|_| f16::from_f32(2.0 * random.float() + 0.5)).collect();
    let mut weight: Vec<f32> = (0..columns).map(|_| random.float()).collect();
    let mut got = vec![f16::ZERO; rows * columns];
    let dims = [rows as i64, columns as i64];
    let args = vec![view(&mut x, &dims), view(&mut weight, &[columns as i64]), view(&mut got, &dims)];
    launch(&func, [rows as u32, 1, 1], args).unwrap();
    for (x, got) in x.chunks(columns).zip(got.chunks(columns)) {
        let n = columns as f64;
        let mean = x.iter().map(|v| v.to_f64()).sum::<f64>() / n;
        let variance = x.iter().map(|v| (v.to_f64() - mean).powi(2)).sum::<f64>() / n;
        for ((x, w), got) in x.iter().zip(&weight).zip(got) {
            let expected = (x.to_f64() - mean) / (variance + 1e-5).sqrt() * f64::from(*w);
            assert!((got.to_f64() - expected).abs() < 1e-3 * expected.abs() + 1e-4, "{got} {expected}");
        }
    }
}

/// `c = a b`, with the sum kept in a tile; `precision` as asked.
fn matmul_kernel(dtype: DType, [bm, bn, bk]: [usize; 3], precision: DotPrecision) -> Function {
    let wide = rules::dot_accumulator(dtype).unwrap();
    let mut b = Builder::new("matmul");
    let x = b.param_view("a", dtype, 2, DType::I32, &[]);
    let y = b.param_view("b", dtype, 2, DType::I32, &[]);
    let out = b.param_view("c", wide, 2, DType::I32, &[]);
    let (m0, n0) = (block_start(&mut b, 0, bm), block_start(&mut b, 1, bn));
    let acc = splat(&mut b, wide, &[bm, bn], 0.0);
    let (lo, step) = (int(&mut b, 0), int(&mut b, bk as i64));
    let (k0, acc) = ok(b.begin_for(lo, x.dims[1], step, &[acc]));
    let x = ok(b.view_load(&x, &[m0, k0], [bm, bk], None));
    let y = ok(b.view_load(&y, &[k0, n0], [bk, bn], None));
    let acc = ok(b.dot(x, y, acc[0], precision));
    let acc = ok(b.end_for(&[acc]));
    ok(b.view_store(&out, &[m0, n0], acc[0]));
    b.finish()
}

/// Multiplies ragged matrices of small integers (for `u8`: of any), whose products are exact in every type.
fn check_matmul<T: bytemuck::Pod, U: bytemuck::Pod>(
    dtype: DType,
    make: impl Fn(i32) -> T,
    number: impl Fn(U) -> f64,
    signed: bool,
) {
    let (m, n, k) = (37, 29, 50);
    let mut random = Random(2);
    let mut small = || if signed { (random.bits() % 7) as i32 - 3 } else { (random.bits() >> 56) as i32 };
    let a: Vec<i32> = (0..m * k).map(|_| small()).collect();
    let b: Vec<i32> = (0..k * n).map(|_| small()).collect();
    let (mut ta, mut tb): (Vec<T>, Vec<T>) =
        (a.iter().map(|&v| make(v)).collect(), b.iter().map(|&v| make(v)).collect());
    for block in [[16, 16, 16], [32, 8, 4], [1, 32, 64], [64, 1, 1]] {
        let mut got = vec![U::zeroed(); m * n];
        let args = vec![
            view(&mut ta, &[m as i64, k as i64]),
            view(&mut tb, &[k as i64, n as i64]),
            view(&mut got, &[m as i64, n as i64]),
        ];
        let grid = [m.div_ceil(block[0]) as u32, n.div_ceil(block[1]) as u32, 1];
        launch(&matmul_kernel(dtype, block, DotPrecision::Tf32), grid, args).unwrap();
        for i in 0..m {
            for j in 0..n {
                let expected: i32 = (0..k).map(|p| a[i * k + p] * b[p * n + j]).sum();
                assert_eq!(number(got[i * n + j]), f64::from(expected), "{dtype} {block:?} at {i}, {j}");
            }
        }
    }
}

#[test]
fn matmul_of_every_type() {
    check_matmul::<f32, f32>(DType::F32, |v| v as f32, f64::from, true);
    check_matmul::<f64, f64>(DType::F64, f64::from, |v| v, true);
    check_matmul::<f16, f32>(DType::F16, |v| f16::from_f32(v as f32), f64::from, true);
    check_matmul::<bf16, f32>(DType::BF16, |v| bf16::from_f32(v as f32), f64::from, true);
    check_matmul::<i8, i32>(DType::I8, |v| v as i8, f64::from, true);
    check_matmul::<u8, i32>(DType::U8, |v| v as u8, f64::from, false);
}

#[test]
fn dot_of_f32_is_as_exact_as_f32_sums() {
    let (m, n, k) = (64, 64, 256);
    let mut random = Random(4);
    let mut a: Vec<f32> = (0..m * k).map(|_| random.float()).collect();
    let mut b: Vec<f32> = (0..k * n).map(|_| random.float()).collect();
    let mut got = vec![0f32; m * n];
    let dims = |r: usize, c: usize| [r as i64, c as i64];
    let args = vec![view(&mut a, &dims(m, k)), view(&mut b, &dims(k, n)), view(&mut got, &dims(m, n))];
    launch(&matmul_kernel(DType::F32, [32, 32, 64], DotPrecision::Ieee), [2, 2, 1], args).unwrap();
    for i in 0..m {
        for j in 0..n {
            let terms = (0..k).map(|p| f64::from(a[i * k + p]) * f64::from(b[p * n + j]));
            let (exact, size) = terms.fold((0.0, 0.0), |(s, t), v| (s + v, t + v.abs()));
            assert!((f64::from(got[i * n + j]) - exact).abs() < 16.0 * f64::from(f32::EPSILON) * size / 2.0);
        }
    }
}

#[test]
fn an_accumulator_used_again_keeps_its_value() {
    // c = acc + a b, and acc is stored, too: its buffer must not be taken for the result.
    let mut b = Builder::new("kernel");
    let [x, c, d] = ["x", "c", "d"].map(|n| b.param_view(n, DType::F32, 2, DType::I32, &[]));
    let zero = int(&mut b, 0);
    let t = ok(b.view_load(&x, &[zero, zero], [4, 4], None));
    let sum = ok(b.dot(t, t, t, DotPrecision::Ieee));
    let twice = ok(b.dot(t, t, sum, DotPrecision::Ieee));
    ok(b.view_store(&c, &[zero, zero], twice));
    ok(b.view_store(&d, &[zero, zero], t));
    let func = b.finish();
    let mut x: Vec<f32> = (0..16).map(|i| i as f32).collect();
    let (mut c, mut d) = (vec![0f32; 16], vec![0f32; 16]);
    let args = vec![view(&mut x, &[4, 4]), view(&mut c, &[4, 4]), view(&mut d, &[4, 4])];
    launch(&func, [1, 1, 1], args).unwrap();
    assert_eq!(d, x);
    for i in 0..4 {
        for j in 0..4 {
            let product: f32 = (0..4).map(|k| x[i * 4 + k] * x[k * 4 + j]).sum();
            assert_eq!(c[i * 4 + j], x[i * 4 + j] + 2.0 * product);
        }
    }
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let (rows, columns) = (301, 1000);
    let mut random = Random(9);
    let x: Vec<f32> = (0..rows * columns).map(|_| 10.0 * random.float()).collect();
    let program = Program::compile(&softmax_kernel(1024)).unwrap();
    let dims = [rows as i64, columns as i64];
    let mut reference: Option<Vec<u32>> = None;
    for threads in [0, 1, 2, 3, 8] {
        for _ in 0..10 {
            let (mut source, mut got) = (x.clone(), vec![0f32; rows * columns]);
            let mut args: Vec<Arg<'_>> = vec![view(&mut source, &dims), view(&mut got, &dims)];
            let (flat, memory) = flatten(&mut args);
            if threads == 0 {
                program.run_serial(&flat, &memory, [rows as u32, 1, 1]).unwrap();
            } else {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| program.run(&flat, &memory, [rows as u32, 1, 1])).unwrap();
            }
            drop(args);
            let bits: Vec<u32> = got.iter().map(|v| v.to_bits()).collect();
            assert!(*reference.get_or_insert_with(|| bits.clone()) == bits, "{threads} threads");
        }
    }
}
