//! Emitted OpenCL C on the first OpenCL device.

use super::{access, caps, emit, kernel, reverse};
use crate::lower::math::{fmod, unary};
use crate::thread::AbiTy;
use crate::thread::{
    Builder, Cmp, Conv, FBin, FUn, Function, IBin, Op, Special, Ty, Value,
    eval::{Bits, eval, truncate},
    machine,
};
use crate::tile::ops::UnaryOp;
use ocl::{Buffer, Context, Device, Kernel, Platform, Program, Queue};
use std::sync::{Mutex, PoisonError};

/// PoCL fails now and then when several contexts are made at once.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Runs a function on buffers of 64-bit words and a number, or gives `None` if there is no device.
fn run(func: &Function, groups: usize, input: &[u64], outputs: usize, count: i32) -> Option<Vec<u64>> {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let Ok(platforms) = ocl::core::get_platform_ids() else {
        eprintln!("skipped: no OpenCL platform");
        return None;
    };
    let platform = Platform::new(*platforms.first()?);
    let device = Device::first(platform).unwrap();
    let context = Context::builder().platform(platform).devices(device).build().unwrap();
    let queue = Queue::new(&context, device, None).unwrap();
    let text = emit(func, &caps()).unwrap();
    let program = Program::builder().src(&text).devices(device).build(&context);
    let program = program.unwrap_or_else(|e| panic!("{e}\n{text}"));
    let from = Buffer::<u64>::builder().queue(queue.clone()).len(input.len()).copy_host_slice(input).build().unwrap();
    let to = Buffer::<u64>::builder().queue(queue.clone()).len(outputs).fill_val(0).build().unwrap();
    let threads = func.threads as usize;
    let mut builder = Kernel::builder();
    builder.program(&program).name(&func.name).queue(queue).global_work_size(groups * threads);
    builder.local_work_size(threads).arg(&from).arg(0u64).arg(&to).arg(0u64);
    if func.params.len() > 2 {
        builder.arg(count);
    }
    // SAFETY: the tests' kernels stay within the two buffers, which are as long as their callers say.
    unsafe { builder.build().unwrap().enq().unwrap() };
    let mut result = vec![0; outputs];
    to.read(&mut result).enq().unwrap();
    Some(result)
}

/// A value of type `ty` from 64-bit bits.
fn of_bits(b: &mut Builder, bits: Value, ty: Ty) -> Value {
    let word = if ty.bits() <= 32 { b.conv(Conv::Trunc32, bits, Ty::I32) } else { bits };
    if ty.is_float() { b.bitcast(word, ty) } else { word }
}

/// 64-bit bits of a value.
fn to_bits(b: &mut Builder, v: Value) -> Value {
    let v = match b.ty(v) {
        Ty::Pred => b.conv(Conv::PredToI32, v, Ty::I32),
        Ty::F32 => b.bitcast(v, Ty::I32),
        Ty::F64 => b.bitcast(v, Ty::I64),
        _ => v,
    };
    if b.ty(v) == Ty::I32 { b.conv(Conv::ZExt64, v, Ty::I64) } else { v }
}

fn is_nan(ty: Ty, bits: Bits) -> bool {
    match ty {
        Ty::F32 => f32::from_bits(bits as u32).is_nan(),
        Ty::F64 => f64::from_bits(bits).is_nan(),
        _ => false,
    }
}

/// Runs ops of operands of type `ty` (at most two, and for three the first again) on all pairs of `values`.
fn check(ty: Ty, values: &[u64], ops: &[(Op, usize, Ty)]) {
    const THREADS: usize = 16;
    let mut pairs: Vec<(u64, u64)> = values.iter().flat_map(|&x| values.iter().map(move |&y| (x, y))).collect();
    while !pairs.len().is_multiple_of(THREADS) {
        pairs.push(pairs[0]);
    }
    let mut b = kernel(&[AbiTy::Ptr, AbiTy::Ptr], THREADS as u32);
    let (from, to) = (b.param(0), b.param(1));
    let (group, thread) = (b.special(Special::ProgramId(0)), b.special(Special::Thread));
    let index = b.mul_imm(group, THREADS as i64);
    let index = b.add(index, thread);
    let index = b.conv(Conv::ZExt64, index, Ty::I64);
    let (in_byte, out_byte) = (b.mul_imm(index, 16), b.mul_imm(index, 8 * ops.len() as i64));
    let (from, to) = (b.add(from, in_byte), b.add(to, out_byte));
    let loaded = b.global_load(access(64, 2, 0), Ty::I64, from, None);
    let [x, y] = [0, 1].map(|i| of_bits(&mut b, loaded[i], ty));
    for (k, (op, operands, result)) in ops.iter().enumerate() {
        let list = [x, y, x][..*operands].to_vec();
        // Integer division is only for operands that have a quotient, shifts for amounts below the width.
        let list = match op {
            Op::IBin(IBin::DivS | IBin::DivU | IBin::RemS | IBin::RemU) => {
                let (zero, minus, three) = (b.iconst(ty, 0), b.iconst(ty, -1), b.iconst(ty, 3));
                let (p, q) = (b.icmp_u(Cmp::Eq, y, zero), b.icmp_u(Cmp::Eq, y, minus));
                let bad = b.or(p, q);
                let y = b.select(bad, three, y);
                vec![x, y]
            }
            Op::IBin(IBin::Shl | IBin::ShrS | IBin::ShrU) => {
                let y = b.and_imm(y, i64::from(ty.bits()) - 1);
                vec![x, y]
            }
            _ => list,
        };
        let r = b.pure(op.clone(), list, *result);
        let r = to_bits(&mut b, r);
        b.global_store(access(64, 1, 8 * k as i32), to, &[r], None);
    }
    let func = b.finish();
    let input: Vec<u64> = pairs.iter().flat_map(|&(x, y)| [x, y]).collect();
    let Some(result) = run(&func, pairs.len() / THREADS, &input, pairs.len() * ops.len(), 0) else { return };
    for (i, &(x, y)) in pairs.iter().enumerate() {
        for (k, (op, operands, result_ty)) in ops.iter().enumerate() {
            let (x, y) = (truncate(ty, x), truncate(ty, y));
            let y = match op {
                Op::IBin(IBin::DivS | IBin::DivU | IBin::RemS | IBin::RemU) => {
                    if y == 0 || y == truncate(ty, u64::MAX) { 3 } else { y }
                }
                Op::IBin(IBin::Shl | IBin::ShrS | IBin::ShrU) => y % u64::from(ty.bits()),
                _ => y,
            };
            let expected = eval(op, &[ty; 3], &[x, y, x][..*operands], *result_ty).unwrap();
            let got = result[i * ops.len() + k];
            let f16 = matches!(op, Op::Conv(Conv::F32ToF16));
            let nan = (is_nan(*result_ty, expected) && is_nan(*result_ty, got))
                || (f16 && [expected, got].iter().all(|&h| half::f16::from_bits(h as u16).is_nan()));
            assert!(nan || got == expected, "{op:?} of {ty} {x:#x}, {y:#x}: {got:#x}, not {expected:#x}");
        }
    }
}

const COMPARES: [Cmp; 6] = [Cmp::Eq, Cmp::Ne, Cmp::Lt, Cmp::Le, Cmp::Gt, Cmp::Ge];

#[test]
fn integer_ops_give_what_eval_gives() {
    use IBin::*;
    let all =
        [Add, Sub, Mul, MulHiS, MulHiU, DivS, DivU, RemS, RemU, MinS, MinU, MaxS, MaxU, And, Or, Xor, Shl, ShrS, ShrU];
    let i32s = [0, 1, 2, 3, 7, 31, 127, 128, 255, 256, 32_767, 32_768, 65_535, 65_536, 0x1234_5678, 0x7fff_ffff];
    let i32s: Vec<u64> = i32s.into_iter().flat_map(|x: u64| [x, !x & 0xffff_ffff]).collect();
    let i64s: Vec<u64> =
        i32s.iter().flat_map(|&x| [x, x << 32, !x, x << 20 | 0x8000_0000_0000_0001]).step_by(3).collect();
    for (ty, values) in [(Ty::I32, &i32s), (Ty::I64, &i64s)] {
        let mut ops: Vec<_> = all.iter().map(|&op| (Op::IBin(op), 2, ty)).collect();
        for c in COMPARES {
            ops.extend([(Op::ICmpS(c), 2, Ty::Pred), (Op::ICmpU(c), 2, Ty::Pred)]);
        }
        for to in [Ty::F32, Ty::F64] {
            ops.extend([(Op::Conv(Conv::SToF), 1, to), (Op::Conv(Conv::UToF), 1, to)]);
        }
        if ty == Ty::I32 {
            ops.push((Op::Pack16, 2, Ty::I32));
            for (c, to) in [
                (Conv::SExt64, Ty::I64),
                (Conv::ZExt64, Ty::I64),
                (Conv::SExt8, Ty::I32),
                (Conv::SExt16, Ty::I32),
                (Conv::Bitcast, Ty::F32),
                (Conv::F16LoToF32, Ty::F32),
                (Conv::F16HiToF32, Ty::F32),
            ] {
                ops.push((Op::Conv(c), 1, to));
            }
        } else {
            ops.extend([(Op::Conv(Conv::Trunc32), 1, Ty::I32), (Op::Conv(Conv::Bitcast), 1, Ty::F64)]);
        }
        check(ty, values, &ops);
    }
}

#[test]
fn float_ops_give_what_eval_gives() {
    use FBin::*;
    let numbers = [
        0.0,
        1.0,
        1.5,
        0.5,
        2.5,
        3.0,
        0.1,
        65_504.0,
        65_519.9,
        65_520.0,
        6.1e-5,
        3e-8,
        1e-40,
        1.4e-45,
        1.2e-38,
        3.4e38,
        2_147_483_647.0,
        2_147_483_648.0,
        4_294_967_295.5,
        4_294_967_296.0,
        9.223_372e18,
        9.3e18,
        1.85e19,
        1e300,
        5e-324,
        f64::INFINITY,
        f64::NAN,
    ];
    for ty in [Ty::F32, Ty::F64] {
        let of = |x: f64| if ty == Ty::F32 { u64::from((x as f32).to_bits()) } else { x.to_bits() };
        let values: Vec<_> = numbers.iter().flat_map(|&x| [of(x), of(-x)]).collect();
        let mut ops: Vec<_> =
            [Add, Sub, Mul, Div, MinNan, MaxNan, Min, Max].iter().map(|&op| (Op::FBin(op), 2, ty)).collect();
        for op in [FUn::Neg, FUn::Abs, FUn::Sqrt, FUn::Floor, FUn::Ceil, FUn::Trunc, FUn::RoundEven] {
            ops.push((Op::FUn(op), 1, ty));
        }
        ops.push((Op::Fma, 3, ty));
        ops.extend(COMPARES.map(|c| (Op::FCmp(c), 2, Ty::Pred)));
        for to in [Ty::I32, Ty::I64] {
            ops.extend([(Op::Conv(Conv::FToS), 1, to), (Op::Conv(Conv::FToU), 1, to)]);
        }
        if ty == Ty::F32 {
            ops.extend([(Op::Conv(Conv::F32ToF64), 1, Ty::F64), (Op::Conv(Conv::F32ToF16), 1, Ty::I32)]);
            ops.push((Op::Conv(Conv::Bitcast), 1, Ty::I32));
        } else {
            ops.extend([(Op::Conv(Conv::F64ToF32), 1, Ty::F32), (Op::Conv(Conv::Bitcast), 1, Ty::I64)]);
        }
        check(ty, &values, &ops);
    }
}

#[test]
fn truth_values_select_and_combine() {
    let mut b = kernel(&[AbiTy::Ptr, AbiTy::Ptr], 1);
    let (from, to) = (b.param(0), b.param(1));
    let x = b.global_load(access(64, 2, 0), Ty::I64, from, None);
    let (less, same) = (b.icmp_s(Cmp::Lt, x[0], x[1]), b.icmp_s(Cmp::Eq, x[0], x[1]));
    let yes = b.pred(true);
    let all = [b.and(less, same), b.or(less, same), b.xor(less, same), b.not(less), b.select(same, less, yes)];
    for (k, &p) in all.iter().enumerate() {
        let r = b.select(p, x[0], x[1]);
        b.global_store(access(64, 1, 8 * k as i32), to, &[r], None);
    }
    let func = b.finish();
    let Some(r) = run(&func, 1, &[3, 5], 5, 0) else { return };
    assert_eq!(r, [5, 3, 3, 5, 3]);
}

#[test]
fn control_flow_shared_memory_and_guards_run() {
    let input: Vec<u32> = (0..32).map(|i| 100 + i).collect();
    let words: Vec<u64> = input.chunks(2).map(|c| u64::from(c[0]) | u64::from(c[1]) << 32).collect();
    let count = 6;
    let Some(result) = run(&reverse(), 1, &words, 16, count) else { return };
    let result: Vec<u32> = result.iter().flat_map(|&w| [w as u32, (w >> 32) as u32]).collect();
    for t in 0..8u32 {
        let row = &result[4 * t as usize..4 * t as usize + 4];
        if t >= count as u32 {
            assert_eq!(row, [0; 4], "nothing is stored where the guard is false");
            continue;
        }
        let m = 7 - t;
        let other = |i: u32| if m < count as u32 { 100 + 4 * m + i } else { (-1 - i as i32) as u32 };
        let (a, b) = if t % 2 == 0 { (other(0), other(1)) } else { (other(1), other(0)) };
        let fourth = if t < 4 { t.wrapping_neg() } else { other(3) };
        assert_eq!(row, [a, b, t, fourth], "thread {t}");
    }
}

#[test]
fn narrow_and_wide_accesses_run() {
    let mut b = kernel(&[AbiTy::Ptr, AbiTy::Ptr], 1);
    let (from, to) = (b.param(0), b.param(1));
    let mut at = 0;
    for (bits, n, ty) in [
        (8, 1, Ty::I32),
        (8, 2, Ty::I32),
        (8, 4, Ty::I32),
        (16, 1, Ty::I32),
        (16, 2, Ty::I32),
        (16, 4, Ty::I32),
        (32, 2, Ty::F32),
        (32, 4, Ty::I32),
        (64, 1, Ty::F64),
        (64, 2, Ty::I64),
    ] {
        let a = access(bits, n, at);
        let v = b.global_load(a, ty, from, None);
        b.global_store(a, to, &v, None);
        at += 16;
    }
    let input: Vec<u64> = (0..20).map(|i| 0xf1e2_d3c4_b5a6_9788u64.wrapping_mul(2 * i + 1)).collect();
    let Some(r) = run(&b.finish(), 1, &input, 20, 0) else { return };
    let bytes = |w: &[u64]| w.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<_>>();
    let (input, r) = (bytes(&input), bytes(&r));
    for (k, size) in [1, 2, 4, 2, 4, 8, 8, 16, 8, 16].into_iter().enumerate() {
        let (i, o) = (&input[16 * k..16 * k + 16], &r[16 * k..16 * k + 16]);
        assert_eq!(o[..size], i[..size], "access {k}");
        assert!(o[size..].iter().all(|&b| b == 0), "access {k} writes no more");
    }
}

/// Elementary functions are made of exact ops, so the device gives the very bits that folding gives.
#[test]
fn elementary_functions_give_the_same_bits() {
    const THREADS: usize = 16;
    let names = [
        UnaryOp::Exp,
        UnaryOp::Exp2,
        UnaryOp::Log,
        UnaryOp::Log2,
        UnaryOp::Sin,
        UnaryOp::Cos,
        UnaryOp::Tanh,
        UnaryOp::Erf,
        UnaryOp::Rsqrt,
    ];
    let build = |b: &mut Builder, x: Value, y: Value| {
        let mut all: Vec<_> = names.iter().map(|&op| unary(b, &caps(), op, x)).collect();
        all.push(fmod(b, x, y));
        all.iter().map(|&v| to_bits(b, v)).collect::<Vec<_>>()
    };
    for (ty, abi) in [(Ty::F32, AbiTy::F32), (Ty::F64, AbiTy::F64)] {
        let of = |x: f64| if ty == Ty::F32 { u64::from((x as f32).to_bits()) } else { x.to_bits() };
        let numbers = (0..800).map(|i| (f64::from(i) - 400.0) * 0.173 * 10f64.powi(i % 40 - 12));
        let edges = [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e-40, -1e-310, f64::MAX];
        let words: Vec<_> = numbers.chain(edges).map(of).collect();
        let pairs: Vec<_> = words.iter().enumerate().map(|(i, &x)| (x, words[(i * 7 + 3) % words.len()])).collect();
        let pairs = &pairs[..pairs.len() / THREADS * THREADS];

        let mut b = kernel(&[AbiTy::Ptr, AbiTy::Ptr], THREADS as u32);
        let (from, to) = (b.param(0), b.param(1));
        let (group, thread) = (b.special(Special::ProgramId(0)), b.special(Special::Thread));
        let index = b.mul_imm(group, THREADS as i64);
        let index = b.add(index, thread);
        let index = b.conv(Conv::ZExt64, index, Ty::I64);
        let count = names.len() + 1;
        let (in_byte, out_byte) = (b.mul_imm(index, 16), b.mul_imm(index, 8 * count as i64));
        let (from, to) = (b.add(from, in_byte), b.add(to, out_byte));
        let loaded = b.global_load(access(64, 2, 0), Ty::I64, from, None);
        let [x, y] = [0, 1].map(|i| of_bits(&mut b, loaded[i], ty));
        for (k, v) in build(&mut b, x, y).into_iter().enumerate() {
            b.global_store(access(64, 1, 8 * k as i32), to, &[v], None);
        }
        let input: Vec<u64> = pairs.iter().flat_map(|&(x, y)| [x, y]).collect();
        let Some(result) = run(&b.finish(), pairs.len() / THREADS, &input, pairs.len() * count, 0) else { return };

        let mut b = kernel(&[abi, abi], 1);
        let (x, y, zero) = (b.param(0), b.param(1), b.i64(0));
        for v in build(&mut b, x, y) {
            b.global_store(access(64, 1, 0), zero, &[v], None);
        }
        let func = b.finish();
        for (i, &(x, y)) in pairs.iter().enumerate() {
            for (k, expected) in machine::run(&func, &[x, y]).into_iter().enumerate() {
                let got = result[i * count + k];
                let what = names.get(k).map_or("fmod", |op| op.name());
                let nan = is_nan(ty, expected) && is_nan(ty, got);
                assert!(nan || got == expected, "{what} of {ty} {x:#x}, {y:#x}: {got:#x}, not {expected:#x}");
            }
        }
    }
}
