//! How fast the interpreter is beside plain Rust: vector addition, matrix product, softmax.
//!
//! `cargo run --release -p tilewright-compiler --example interp_speed`. Prints the best time of several runs of each, and
//! the ratio to a plain Rust loop or to `matrixmultiply::sgemm`, on one thread and on all.

use std::time::{Duration, Instant};
use tilewright_compiler::interp::{ArgValue, MemRegion, Memory, Program};
use tilewright_compiler::tile::builder::Built;
use tilewright_compiler::tile::{
    BinaryOp, Builder, Cmp, Constant, DotPrecision, Function, ReduceOp, TileType, UnaryOp,
};
use tilewright_compiler::{DType, Result};

fn main() -> Result<()> {
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a pool of one thread starts");
    println!("threads: {}", rayon::current_num_threads());
    vector_add(&one)?;
    matmul(&one)?;
    softmax(&one)
}

/// The least time of some runs.
fn best(runs: usize, mut f: impl FnMut() -> Result<()>) -> Result<Duration> {
    let mut best = Duration::MAX;
    for _ in 0..runs {
        let start = Instant::now();
        f()?;
        best = best.min(start.elapsed());
    }
    Ok(best)
}

fn report(what: &str, time: Duration, plain: Duration) {
    let (ms, ratio) = (time.as_secs_f64() * 1e3, time.as_secs_f64() / plain.as_secs_f64());
    println!("{what:<44} {ms:9.2} ms   {ratio:6.2} x plain");
}

fn built<T>(value: Built<T>) -> T {
    value.expect("the kernels of this example are valid")
}

/// Prepares a kernel and its memory; gives a closure that runs it.
fn runner<'a>(
    func: &Function,
    args: &'a [ArgValue],
    memory: &'a Memory,
    grid: [u32; 3],
) -> Result<impl Fn() -> Result<()> + Sync + 'a> {
    let program = Program::compile(func)?;
    Ok(move || program.run(args, memory, grid))
}

fn add_through_pointers(block: usize) -> Function {
    let mut b = Builder::new("add");
    let [x, y, out] = ["x", "y", "out"].map(|name| b.param_ptr(name, DType::F32, Default::default()));
    let n = b.param_scalar("n", DType::I32, Default::default());
    let program = built(b.program_id(0));
    let size = built(b.const_i64(DType::I32, block as i64));
    let start = built(b.binary(BinaryOp::Mul, program, size));
    let lane = built(b.arange(0, block));
    let offset = built(b.binary(BinaryOp::Add, start, lane));
    let mask = built(b.compare(Cmp::Lt, offset, n));
    let mut load = |p| {
        let p = built(b.ptr_add(p, offset));
        built(b.load(p, Some(mask), None))
    };
    let (x, y) = (load(x), load(y));
    let sum = built(b.binary(BinaryOp::Add, x, y));
    let p = built(b.ptr_add(out, offset));
    built(b.store(p, sum, Some(mask)));
    b.finish()
}

fn add_through_views(block: usize) -> Function {
    let mut b = Builder::new("add");
    let [x, y, out] = ["x", "y", "out"].map(|name| b.param_view(name, DType::F32, 1, DType::I32, &[]));
    let program = built(b.program_id(0));
    let size = built(b.const_i64(DType::I32, block as i64));
    let start = built(b.binary(BinaryOp::Mul, program, size));
    let x = built(b.view_load(&x, &[start], [block], None));
    let y = built(b.view_load(&y, &[start], [block], None));
    let sum = built(b.binary(BinaryOp::Add, x, y));
    built(b.view_store(&out, &[start], sum));
    b.finish()
}

fn vector_add(one: &rayon::ThreadPool) -> Result<()> {
    use rayon::prelude::*;
    let n = 16 << 20;
    let x: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let y: Vec<f32> = (0..n).map(|i| 0.5 * i as f32).collect();
    let mut out = vec![0f32; n];
    let plain = best(5, || {
        out.iter_mut().zip(&x).zip(&y).for_each(|((o, x), y)| *o = x + y);
        Ok(())
    })?;
    report("add 16M f32: plain loop, 1 thread", plain, plain);
    let parallel = best(5, || {
        out.par_chunks_mut(1 << 16).zip(x.par_chunks(1 << 16)).zip(y.par_chunks(1 << 16)).for_each(|((o, x), y)| {
            o.iter_mut().zip(x).zip(y).for_each(|((o, x), y)| *o = x + y);
        });
        Ok(())
    })?;
    report("add 16M f32: plain loop, all threads", parallel, parallel);
    // SAFETY: the vectors outlive the runs below and are used by nothing else meanwhile; programs write apart.
    let memory =
        Memory::new(unsafe { vec![MemRegion::read_only(&x), MemRegion::read_only(&y), MemRegion::writable(&mut out)] });
    let p = [x.as_ptr(), y.as_ptr(), out.as_ptr()].map(|p| ArgValue::Ptr(p as u64));
    let len = ArgValue::Bits(n as u64);
    for block in [1024, 8192] {
        let grid = [n.div_ceil(block) as u32, 1, 1];
        let args = [p[0], p[1], p[2], len];
        let run = runner(&add_through_pointers(block), &args, &memory, grid)?;
        report(&format!("  pointers, block {block}, 1 thread"), best(5, || one.install(&run))?, plain);
        report(&format!("  pointers, block {block}, all threads"), best(5, &run)?, parallel);
        let stride = ArgValue::Bits(1);
        let args = [p[0], len, stride, p[1], len, stride, p[2], len, stride];
        let run = runner(&add_through_views(block), &args, &memory, grid)?;
        report(&format!("  views, block {block}, 1 thread"), best(5, || one.install(&run))?, plain);
        report(&format!("  views, block {block}, all threads"), best(5, &run)?, parallel);
    }
    Ok(())
}

fn matmul_kernel(dtype: DType, [bm, bn, bk]: [usize; 3]) -> Function {
    let mut b = Builder::new("matmul");
    let [x, y] = ["a", "b"].map(|name| b.param_view(name, dtype, 2, DType::I32, &[]));
    let out = b.param_view("c", DType::F32, 2, DType::I32, &[]);
    let mut start = |axis, size: usize| {
        let program = built(b.program_id(axis));
        let size = built(b.const_i64(DType::I32, size as i64));
        built(b.binary(BinaryOp::Mul, program, size))
    };
    let (m0, n0) = (start(0, bm), start(1, bn));
    let zero = built(b.full(TileType::new(DType::F32, [bm, bn]), Constant::from_f64(DType::F32, 0.0)));
    let lo = built(b.const_i64(DType::I32, 0));
    let step = built(b.const_i64(DType::I32, bk as i64));
    let (k0, acc) = built(b.begin_for(lo, x.dims[1], step, &[zero]));
    let x = built(b.view_load(&x, &[m0, k0], [bm, bk], None));
    let y = built(b.view_load(&y, &[k0, n0], [bk, bn], None));
    let acc = built(b.dot(x, y, acc[0], DotPrecision::Ieee));
    let acc = built(b.end_for(&[acc]));
    built(b.view_store(&out, &[m0, n0], acc[0]));
    b.finish()
}

fn matmul(one: &rayon::ThreadPool) -> Result<()> {
    let n = 1024;
    let x: Vec<f32> = (0..n * n).map(|i| (i % 17) as f32 - 8.0).collect();
    let y: Vec<f32> = (0..n * n).map(|i| (i % 13) as f32 - 6.0).collect();
    let mut out = vec![0f32; n * n];
    let plain = best(3, || {
        let (s, p) = (n as isize, out.as_mut_ptr());
        // SAFETY: three n by n row-major matrices.
        unsafe { matrixmultiply::sgemm(n, n, n, 1.0, x.as_ptr(), s, 1, y.as_ptr(), s, 1, 0.0, p, s, 1) };
        Ok(())
    })?;
    report("matmul 1024^3 f32: sgemm, 1 thread", plain, plain);
    let (hx, hy): (Vec<_>, Vec<_>) =
        (x.iter().map(|&v| half::f16::from_f32(v)).collect(), y.iter().map(|&v| half::f16::from_f32(v)).collect());
    // SAFETY: the vectors outlive the runs below and are used by nothing else meanwhile; programs write apart.
    let memory = Memory::new(unsafe {
        vec![
            MemRegion::read_only(&x),
            MemRegion::read_only(&y),
            MemRegion::read_only(&hx),
            MemRegion::read_only(&hy),
            MemRegion::writable(&mut out),
        ]
    });
    let view = |p: u64| {
        [ArgValue::Ptr(p), ArgValue::Bits(1024), ArgValue::Bits(1024), ArgValue::Bits(1024), ArgValue::Bits(1)]
    };
    for (dtype, [px, py]) in
        [(DType::F32, [x.as_ptr() as u64, y.as_ptr() as u64]), (DType::F16, [hx.as_ptr() as u64, hy.as_ptr() as u64])]
    {
        let args = [view(px), view(py), view(out.as_ptr() as u64)].concat();
        for block in [[64, 64, 32], [128, 128, 64]] {
            let grid = [(n / block[0]) as u32, (n / block[1]) as u32, 1];
            let run = runner(&matmul_kernel(dtype, block), &args, &memory, grid)?;
            report(&format!("  {dtype} tiles {block:?}, 1 thread"), best(3, || one.install(&run))?, plain);
            report(&format!("  {dtype} tiles {block:?}, all threads"), best(3, &run)?, plain);
            // The second matrix column-major, as the keys of attention are.
            let mut args = args.clone();
            args[8..10].reverse();
            let run = runner(&matmul_kernel(dtype, block), &args, &memory, grid)?;
            report(&format!("  {dtype} tiles {block:?}, transposed, 1 thread"), best(3, || one.install(&run))?, plain);
        }
    }
    Ok(())
}

fn softmax_kernel(block: usize) -> Function {
    let mut b = Builder::new("softmax");
    let [x, y] = ["x", "y"].map(|name| b.param_view(name, DType::F32, 2, DType::I32, &[]));
    let row = built(b.program_id(0));
    let zero = built(b.const_i64(DType::I32, 0));
    let least = built(b.const_f64(DType::F32, f64::NEG_INFINITY));
    let v = built(b.view_load(&x, &[row, zero], [1, block], Some(least)));
    let max = built(b.reduce(ReduceOp::Max, v, 1));
    let max = built(b.expand_dims(max, 1));
    let v = built(b.binary(BinaryOp::Sub, v, max));
    let e = built(b.unary(UnaryOp::Exp, v));
    let sum = built(b.reduce(ReduceOp::Sum, e, 1));
    let sum = built(b.expand_dims(sum, 1));
    let v = built(b.binary(BinaryOp::Div, e, sum));
    built(b.view_store(&y, &[row, zero], v));
    b.finish()
}

fn softmax(one: &rayon::ThreadPool) -> Result<()> {
    let (rows, columns) = (4096, 1000);
    let x: Vec<f32> = (0..rows * columns).map(|i| (i % 101) as f32 * 0.1).collect();
    let mut out = vec![0f32; rows * columns];
    let plain = best(3, || {
        for (o, x) in out.chunks_exact_mut(columns).zip(x.chunks_exact(columns)) {
            let max = x.iter().fold(f32::NEG_INFINITY, |m, &v| m.max(v));
            o.iter_mut().zip(x).for_each(|(o, v)| *o = (v - max).exp());
            let sum: f32 = o.iter().sum();
            o.iter_mut().for_each(|o| *o /= sum);
        }
        Ok(())
    })?;
    report("softmax 4096 x 1000 f32: plain, 1 thread", plain, plain);
    // SAFETY: the vectors outlive the runs below and are used by nothing else meanwhile; programs write apart.
    let memory = Memory::new(unsafe { vec![MemRegion::read_only(&x), MemRegion::writable(&mut out)] });
    let [r, c] = [rows, columns].map(|n| ArgValue::Bits(n as u64));
    let view = |p: *const f32| [ArgValue::Ptr(p as u64), r, c, c, ArgValue::Bits(1)];
    let args = [view(x.as_ptr()), view(out.as_ptr())].concat();
    let run = runner(&softmax_kernel(1024), &args, &memory, [rows as u32, 1, 1])?;
    report("  one row of 1024 per program, 1 thread", best(3, || one.install(&run))?, plain);
    report("  one row of 1024 per program, all threads", best(3, &run)?, plain);
    Ok(())
}
