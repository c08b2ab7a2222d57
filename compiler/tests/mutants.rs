//! The simulator finds what is missing: each barrier, fence, commit and wait of some kernels is deleted or weakened, one at a
//! time, and what is left must give an error or other results. What survives is listed, with the reason why it is right without.

mod common;

use common::{Arg, Case, bytes, random_f32};
use tilewright_compiler::DType;
use tilewright_compiler::pipeline::{Options, to_thread};
use tilewright_compiler::target::Caps;
use tilewright_compiler::thread::{Function, InstId, Op};
use tilewright_compiler::tile::{BinaryOp, Builder, Constant, DotPrecision, ParamHint, ReduceOp, TileType};

/// What may be done to a synchronising instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Change {
    Delete,
    /// Waits for one group fewer.
    Weaken,
}

/// The instructions that order others, with what may be done to each.
fn ordering(func: &Function) -> Vec<(InstId, Change)> {
    let mut all = Vec::new();
    func.walk(func.body, &mut |id| match func.insts[id].op {
        Op::Barrier | Op::WarpBarrier | Op::AsyncProxyFence | Op::CpAsyncCommit | Op::WgmmaFence | Op::WgmmaCommit => {
            all.push((id, Change::Delete));
        }
        Op::CpAsyncWait(_) => all.extend([(id, Change::Delete), (id, Change::Weaken)]),
        // Its results carry values: it stays, and waits for nothing.
        Op::WgmmaWait(_) => all.push((id, Change::Weaken)),
        _ => {}
    });
    all
}

fn changed(func: &Function, id: InstId, change: Change) -> Function {
    let mut mutant = func.clone();
    match change {
        Change::Weaken => match &mut mutant.insts[id].op {
            Op::CpAsyncWait(n) | Op::WgmmaWait(n) => *n += 1,
            op => unreachable!("{op:?} does not wait"),
        },
        Change::Delete => {
            for block in mutant.blocks.keys() {
                mutant.blocks[block].insts.retain(|&other| other != id);
            }
        }
    }
    mutant
}

/// How many mutants there were, and those that nothing is seen of.
fn survivors(case: &Case, caps: &Caps, options: &Options) -> (usize, Vec<String>) {
    let (_, _, thread) = to_thread(&case.func, caps, options).unwrap();
    let right = case.simulate_function(&thread, caps).unwrap().0;
    let all = ordering(&thread);
    let mut left = Vec::new();
    for (number, &(id, change)) in all.iter().enumerate() {
        let mutant = changed(&thread, id, change);
        let seen = case.simulate_function(&mutant, caps).map_or(true, |(out, _)| out != right);
        if !seen {
            left.push(format!("{number} of {}: {change:?} {:?}", all.len(), thread.insts[id].op));
        }
    }
    (all.len(), left)
}

fn aligned(class: u32) -> ParamHint {
    ParamHint { divisor: 16, known: None, alias_class: class }
}

/// `c = a b` of f16 with rounds of `bk`, from matrices whose rows follow on.
fn matmul([m, n, k]: [usize; 3], [bm, bn, bk]: [usize; 3]) -> Case {
    let mut b = Builder::new("matmul");
    let by = |x: usize| ParamHint { divisor: 1 << x.trailing_zeros().min(4), known: None, alias_class: 0 };
    let one = ParamHint { divisor: 1, known: Some(1), alias_class: 0 };
    let view = |b: &mut Builder, name, dtype, [r, c]: [usize; 2], class| {
        b.param_view(name, dtype, 2, DType::I32, &[aligned(class), by(r), by(c), by(c), one])
    };
    let x = view(&mut b, "a", DType::F16, [m, k], 1);
    let y = view(&mut b, "b", DType::F16, [k, n], 2);
    let z = view(&mut b, "c", DType::F32, [m, n], 3);
    let acc = b.full(TileType::new(DType::F32, [bm, bn]), Constant(0)).unwrap();
    let (zero, step) = (b.const_i64(DType::I32, 0).unwrap(), b.const_i64(DType::I32, bk as i64).unwrap());
    let (at, inside) = b.begin_for(zero, x.dims[1], step, &[acc]).unwrap();
    let s = b.view_load(&x, &[zero, at], [bm, bk], None).unwrap();
    let t = b.view_load(&y, &[at, zero], [bk, bn], None).unwrap();
    let next = b.dot(s, t, inside[0], DotPrecision::Ieee).unwrap();
    let c = b.end_for(&[next]).unwrap()[0];
    b.view_store(&z, &[zero, zero], c).unwrap();
    let halves = |seed, n| -> Vec<u8> {
        random_f32(seed, n).iter().flat_map(|x| half::f16::from_f32((x * 4.0).round()).to_le_bytes()).collect()
    };
    let mut args = Vec::new();
    for (i, [r, c]) in [[m, k], [k, n], [m, n]].into_iter().enumerate() {
        args.push(Arg::Buf(i, 0));
        args.extend([r, c, c, 1].map(|x| Arg::Bits(x as u64)));
    }
    Case { func: b.finish(), args, buffers: vec![halves(1, m * k), halves(2, k * n), vec![0; 4 * m * n]], grid: [1; 3] }
}

/// `softmax(a b) c` without its division, over blocks of keys: two products, the second of what became of the first.
fn chained([bm, bn, d]: [usize; 3], blocks: usize) -> Case {
    let mut b = Builder::new("chained");
    let by = |x: usize| ParamHint { divisor: 1 << x.trailing_zeros().min(4), known: None, alias_class: 0 };
    let one = ParamHint { divisor: 1, known: Some(1), alias_class: 0 };
    let n = bn * blocks;
    let view = |b: &mut Builder, name, dtype, rows: usize, class| {
        b.param_view(name, dtype, 2, DType::I32, &[aligned(class), by(rows), by(d), by(d), one])
    };
    let [x, y, z] = [("x", bm, 1), ("y", n, 2), ("z", n, 3)].map(|(s, r, c)| view(&mut b, s, DType::F16, r, c));
    let out = view(&mut b, "out", DType::F32, bm, 4);
    let (zero, step) = (b.const_i64(DType::I32, 0).unwrap(), b.const_i64(DType::I32, bn as i64).unwrap());
    let q = b.view_load(&x, &[zero, zero], [bm, d], None).unwrap();
    let acc = b.full(TileType::new(DType::F32, [bm, d]), Constant(0)).unwrap();
    let (at, inside) = b.begin_for(zero, y.dims[0], step, &[acc]).unwrap();
    let (k, v) =
        (b.view_load(&y, &[at, zero], [bn, d], None).unwrap(), b.view_load(&z, &[at, zero], [bn, d], None).unwrap());
    let k = b.transpose(k).unwrap();
    let none = b.full(TileType::new(DType::F32, [bm, bn]), Constant(0)).unwrap();
    let s = b.dot(q, k, none, DotPrecision::Ieee).unwrap();
    let least = b.full(TileType::new(DType::F32, [bm, bn]), Constant::from_f64(DType::F32, -2.0)).unwrap();
    let s = b.binary(BinaryOp::Max, s, least).unwrap();
    let p = b.cast(s, DType::F16).unwrap();
    let next = b.dot(p, v, inside[0], DotPrecision::Ieee).unwrap();
    let acc = b.end_for(&[next]).unwrap()[0];
    b.view_store(&out, &[zero, zero], acc).unwrap();
    let halves = |seed, n| -> Vec<u8> {
        random_f32(seed, n).iter().flat_map(|x| half::f16::from_f32((x * 3.0).round()).to_le_bytes()).collect()
    };
    let mut args = Vec::new();
    for (i, rows) in [bm, n, n, bm].into_iter().enumerate() {
        args.push(Arg::Buf(i, 0));
        args.extend([rows, d, d, 1].map(|x| Arg::Bits(x as u64)));
    }
    let buffers = vec![halves(3, bm * d), halves(4, n * d), halves(5, n * d), vec![0; 4 * bm * d]];
    Case { func: b.finish(), args, buffers, grid: [1; 3] }
}

/// The sum of columns, then of rows, of a tile: partial results of warps go through shared memory twice.
fn sums(rows: usize, columns: usize) -> Case {
    let mut b = Builder::new("sums");
    let x = b.param_ptr("x", DType::F32, aligned(1));
    let out = b.param_ptr("out", DType::F32, aligned(2));
    let lane = b.arange(0, rows * columns).unwrap();
    let lane = b.reshape(lane, [rows, columns]).unwrap();
    let p = b.ptr_add(x, lane).unwrap();
    let v = b.load(p, None, None).unwrap();
    let over = b.reduce(ReduceOp::Sum, v, 0).unwrap();
    let along = b.reduce(ReduceOp::Max, v, 1).unwrap();
    let whole = b.reduce(ReduceOp::Sum, over, 0).unwrap();
    let c = b.arange(0, columns).unwrap();
    let p = b.ptr_add(out, c).unwrap();
    b.store(p, over, None).unwrap();
    let r = b.arange(columns as i32, rows).unwrap();
    let p = b.ptr_add(out, r).unwrap();
    b.store(p, along, None).unwrap();
    let end = b.const_i64(DType::I32, (rows + columns) as i64).unwrap();
    let p = b.ptr_add(out, end).unwrap();
    b.store(p, whole, None).unwrap();
    let numbers: Vec<f32> = random_f32(9, rows * columns).iter().map(|x| (x * 8.0).round()).collect();
    let buffers = vec![bytes(&numbers), vec![0; 4 * (rows + columns + 1)]];
    Case { func: b.finish(), args: vec![Arg::Buf(0, 0), Arg::Buf(1, 0)], buffers, grid: [1; 3] }
}

/// A tile transposed in a loop, in place: layouts are converted through shared memory in each round.
fn transposed() -> Case {
    let mut b = Builder::new("turn");
    let x = b.param_ptr("x", DType::F32, aligned(1));
    let n = b.param_scalar("n", DType::I32, ParamHint::default());
    let lane = b.arange(0, 1024).unwrap();
    let lane = b.reshape(lane, [32, 32]).unwrap();
    let p = b.ptr_add(x, lane).unwrap();
    let v = b.load(p, None, None).unwrap();
    let (zero, one) = (b.const_i64(DType::I32, 0).unwrap(), b.const_i64(DType::I32, 1).unwrap());
    let (_, inside) = b.begin_for(zero, n, one, &[v]).unwrap();
    let t = b.transpose(inside[0]).unwrap();
    let two = b.binary(BinaryOp::Sub, t, inside[0]).unwrap();
    let next = b.binary(BinaryOp::Add, two, t).unwrap();
    let v = b.end_for(&[next]).unwrap()[0];
    b.store(p, v, None).unwrap();
    let numbers: Vec<f32> = random_f32(11, 1024).iter().map(|x| (x * 8.0).round()).collect();
    Case { func: b.finish(), args: vec![Arg::Buf(0, 0), Arg::Bits(3)], buffers: vec![bytes(&numbers)], grid: [1; 3] }
}

/// Checks that nothing survives but what is `known` to be of no consequence.
fn check(name: &str, case: &Case, caps: &Caps, options: Options, least: usize, known: &[&str]) {
    let (n, left) = survivors(case, caps, &options);
    println!("{name}: {n} mutants, {} survive", left.len());
    assert!(n >= least, "{name}: only {n} mutants: is this still the kernel it was?");
    let unknown: Vec<_> = left.iter().filter(|l| !known.iter().any(|k| l.contains(k))).collect();
    assert!(unknown.is_empty(), "{name}: nothing is seen of {unknown:#?}");
}

#[test]
fn sums_of_warps() {
    // The last barrier stands between two stores of different threads to one argument: that they go to different places is
    // known to nobody but the user.
    let known = ["5 of 6: Delete Barrier"];
    check("sums", &sums(64, 32), &Caps::ptx(80), Options { num_warps: 8, num_stages: 1 }, 6, &known);
}

#[test]
fn transposition_in_a_loop() {
    check("transposed", &transposed(), &Caps::ptx(80), Options { num_warps: 4, num_stages: 1 }, 2, &[]);
}

#[test]
fn product_by_mma_sync() {
    let case = matmul([64, 64, 160], [64, 64, 32]);
    check("mma.sync", &case, &Caps::ptx(80), Options { num_warps: 4, num_stages: 3 }, 4, &[]);
}

#[test]
fn product_by_wgmma() {
    let case = matmul([64, 64, 320], [64, 64, 64]);
    check("wgmma", &case, &Caps::ptx(90), Options { num_warps: 4, num_stages: 3 }, 6, &[]);
}

#[test]
fn product_by_wgmma_of_two_groups() {
    let case = matmul([128, 64, 320], [128, 64, 64]);
    check("wgmma, two groups", &case, &Caps::ptx(90), Options { num_warps: 8, num_stages: 4 }, 6, &[]);
}

#[test]
fn chained_products_by_wgmma() {
    let case = chained([64, 64, 64], 4);
    check("chained wgmma", &case, &Caps::ptx(90), Options { num_warps: 4, num_stages: 2 }, 16, &[]);
}
