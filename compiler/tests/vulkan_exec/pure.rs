//! Every pure op over edge cases, against `thread::eval`.

use super::{access, caps, gpu, launch_at, params};
use crate::device::Gpu;
use tilewright_compiler::target::Caps;
use tilewright_compiler::thread::{AbiTy, Builder, Cmp, Conv, FBin, FUn, IBin, Op, Special, Ty, Value, eval};

const THREADS: u32 = 64;

/// A small generator of random bits (splitmix64).
pub struct Random(pub u64);

impl Random {
    /// The next bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// Edge cases and some random values of a type.
fn values(ty: Ty) -> Vec<u64> {
    let mut random = Random(7);
    let mut v: Vec<u64> = match ty {
        Ty::Pred => return vec![0, 1],
        Ty::I32 | Ty::I64 => {
            let (min, max) =
                if ty == Ty::I32 { (i64::from(i32::MIN), i64::from(i32::MAX)) } else { (i64::MIN, i64::MAX) };
            let edges =
                [0, 1, -1, 2, -2, 3, -7, 31, 63, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 16_777_217, min, max];
            let more = [min + 1, max - 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 0x1_0000_0000, 0x20_0000_0000_0001];
            edges.into_iter().chain(more).map(|x| x as u64).collect()
        }
        Ty::F32 | Ty::F64 => {
            let halves = [0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.5, 3.5, 0.1, 1e-30, 1e30, 8_388_607.5, 16_777_217.0];
            let bounds = [31, 32, 63, 64].map(|e| 2f64.powi(e));
            let near = bounds.map(|b| b - 1.0).into_iter().chain(bounds.map(|b| b - 0.5));
            let all: Vec<f64> = halves.into_iter().chain(bounds).chain(near).chain([f64::INFINITY, f64::NAN]).collect();
            let all = all.iter().flat_map(|&x| [x, -x]);
            if ty == Ty::F32 {
                let special = [f32::MAX, f32::MIN_POSITIVE, f32::from_bits(1), f32::from_bits(0x7f_ffff)];
                let special = special.into_iter().flat_map(|x| [x, -x]);
                let below = bounds.map(|b| f32::from_bits((b as f32).to_bits() - 1));
                all.map(|x| x as f32).chain(special).chain(below).map(|x| u64::from(x.to_bits())).collect()
            } else {
                let special = [f64::MAX, f64::MIN_POSITIVE, f64::from_bits(1), f64::from_bits((1 << 52) - 1)];
                let as_f32 = [f64::from(f32::MAX), 1e-40, 1.0 + 2f64.powi(-24), 1.0 + 3.0 * 2f64.powi(-24)];
                let special = special.into_iter().chain(as_f32).flat_map(|x| [x, -x]);
                let below = bounds.map(|b| f64::from_bits(b.to_bits() - 1));
                all.chain(special).chain(below).map(f64::to_bits).collect()
            }
        }
    };
    v.extend((0..16).map(|_| random.next()));
    // Random numbers of everyday size.
    v.extend((0..16).map(|_| {
        let x = (random.next() >> 40) as f64 / 1e4 - 800.0;
        match ty {
            Ty::F32 => u64::from((x as f32).to_bits()),
            Ty::F64 => x.to_bits(),
            _ => x as i64 as u64,
        }
    }));
    v.into_iter().map(|x| eval::truncate(ty, x)).collect()
}

fn is_subnormal(ty: Ty, bits: u64) -> bool {
    match ty {
        Ty::F32 => f32::from_bits(bits as u32).is_subnormal(),
        Ty::F64 => f64::from_bits(bits).is_subnormal(),
        _ => false,
    }
}

fn is_nan(ty: Ty, bits: u64) -> bool {
    match ty {
        Ty::F32 => f32::from_bits(bits as u32).is_nan(),
        Ty::F64 => f64::from_bits(bits).is_nan(),
        _ => false,
    }
}

/// A register from element `i` of an array of 4 or 8-byte elements.
fn load(b: &mut Builder, ty: Ty, base: Value, i: Value) -> Value {
    let stored = if ty == Ty::Pred { Ty::I32 } else { ty };
    let bytes = b.mul_imm(i, (stored.bits() / 8).into());
    let address = b.add(base, bytes);
    let v = b.global_load(access(stored.bits() as u8, 1), stored, address, None)[0];
    if ty != Ty::Pred {
        return v;
    }
    let zero = b.i32(0);
    b.icmp_u(Cmp::Ne, v, zero)
}

/// Runs `op` on rows of operands; gives the bits of the results.
fn run(gpu: &Gpu, caps: &Caps, op: &Op, types: &[Ty], rows: &[Vec<u64>], result: Ty) -> Vec<u64> {
    let mut b = Builder::new("op", params(&vec![AbiTy::Ptr; types.len() + 1]), THREADS, 1);
    let (program, thread) = (b.special(Special::ProgramId(0)), b.special(Special::Thread));
    let first = b.mul_imm(program, THREADS.into());
    let i = b.add(first, thread);
    let i = b.conv(Conv::ZExt64, i, Ty::I64);
    let operands = (0..types.len()).map(|k| {
        let base = b.param(k as u32);
        load(&mut b, types[k], base, i)
    });
    let operands = operands.collect();
    let mut r = b.pure(op.clone(), operands, result);
    if result == Ty::Pred {
        r = b.conv(Conv::PredToI32, r, Ty::I32);
    }
    let width = result.bits().max(32);
    let (out, bytes) = (b.param(types.len() as u32), b.mul_imm(i, (width / 8).into()));
    let address = b.add(out, bytes);
    b.global_store(access(width as u8, 1), address, &[r], None);
    let func = b.finish();

    let programs = rows.len().div_ceil(THREADS as usize);
    let padded = programs * THREADS as usize;
    let pack = |ty: Ty, column: &mut dyn Iterator<Item = u64>| -> Vec<u8> {
        let bytes = ty.bits().max(32) as usize / 8;
        column.flat_map(|x| x.to_le_bytes()[..bytes].to_vec()).collect()
    };
    // The last row again for threads beyond the rows: never an operand that is not allowed.
    let row = |i: usize| &rows[i.min(rows.len() - 1)];
    let inputs: Vec<_> =
        (0..types.len()).map(|k| gpu.buffer(&pack(types[k], &mut (0..padded).map(|i| row(i)[k])))).collect();
    let out = gpu.buffer(&vec![0xaa; padded * width as usize / 8]);
    let args: Vec<u64> = inputs.iter().chain([&out]).map(|b| b.address).collect();
    launch_at(gpu, caps, &func, &args, [programs as u32, 1, 1], [0; 3]);
    inputs.into_iter().for_each(|b| drop(gpu.take(b)));
    let bytes = gpu.take(out);
    let results = bytes.chunks_exact(width as usize / 8).map(|c| {
        let mut word = [0; 8];
        word[..c.len()].copy_from_slice(c);
        u64::from_le_bytes(word)
    });
    results.take(rows.len()).collect()
}

/// All combinations of the values of the types that `allowed` lets through.
fn combinations(types: &[Ty], allowed: impl Fn(&[u64]) -> bool) -> Vec<Vec<u64>> {
    let mut rows = vec![vec![]];
    for (k, &ty) in types.iter().enumerate() {
        let mut of = values(ty);
        if types.len() == 3 && k > 0 && types[0] != Ty::Pred {
            // Of three operands, a third of the values each.
            of = of.into_iter().skip(k).step_by(3).collect();
        }
        rows = rows.iter().flat_map(|row| of.iter().map(|&x| [&row[..], &[x]].concat())).collect();
    }
    rows.retain(|row| allowed(row));
    rows
}

/// How far the device may be from the meaning, beyond the payload of a NaN.
#[derive(Clone, Copy, PartialEq)]
enum Exactness {
    /// Not at all, also of NaN.
    Bits,
    /// Not at all.
    Value,
    /// Either zero where zeros of both signs are compared.
    ZeroSign,
    /// Rounded once or twice: a device need not have a fused multiply-add.
    Fma,
}

/// What the device may make of `row`, besides `want`.
fn tolerated(device: &str, op: &Op, row: &[u64], types: &[Ty], result: Ty, got: u64, exactness: Exactness) -> bool {
    let zero = |b: u64| b << (64 - result.bits()) << 1 == 0;
    match exactness {
        Exactness::Bits => return false,
        Exactness::ZeroSign if zero(got) && row.iter().all(|&x| zero(x)) => return true,
        Exactness::Fma => {
            let product = eval::fbin(FBin::Mul, result, row[0], row[1]);
            if eval::fbin(FBin::Add, result, product, row[2]) == got {
                return true;
            }
        }
        Exactness::Value | Exactness::ZeroSign => {}
    }
    // llvmpipe rounds quotients and roots right and keeps subnormals; Vulkan asks for neither.
    if device.contains("llvmpipe") {
        return false;
    }
    let want = eval::eval(op, types, row, result).expect("the op is pure");
    let flushed = is_subnormal(result, want) || row.iter().zip(types).any(|(&x, &ty)| is_subnormal(ty, x));
    let rounded = matches!(op, Op::FBin(FBin::Div) | Op::FUn(FUn::Sqrt)) && want.abs_diff(got) <= 3;
    flushed || rounded
}

fn check_on(gpu: &Gpu, op: Op, types: &[Ty], result: Ty, exactness: Exactness, allowed: impl Fn(&[u64]) -> bool) {
    let rows = combinations(types, allowed);
    assert!(!rows.is_empty());
    let mut wrong = Vec::new();
    for (row, got) in rows.iter().zip(run(gpu, &caps(gpu), &op, types, &rows, result)) {
        let want = eval::eval(&op, types, row, result).expect("the op is pure");
        let nan = exactness != Exactness::Bits && is_nan(result, want) && is_nan(result, got);
        if want != got && !nan && !tolerated(&gpu.name, &op, row, types, result, got, exactness) {
            wrong.push(format!("{row:x?}: want {want:x}, got {got:x}"));
        }
    }
    let first = wrong[..wrong.len().min(8)].join("\n");
    assert!(wrong.is_empty(), "{op:?} {types:?} -> {result:?}: {} of {} wrong\n{first}", wrong.len(), rows.len());
}

fn check(op: Op, types: &[Ty], result: Ty, exactness: Exactness) {
    if let Some(gpu) = gpu() {
        check_on(&gpu, op, types, result, exactness, |_| true);
    }
}

#[test]
fn integers() {
    use IBin::*;
    let Some(gpu) = gpu() else { return };
    for ty in [Ty::I32, Ty::I64] {
        let signed = |x: u64| if ty == Ty::I32 { i64::from(x as u32 as i32) } else { x as i64 };
        let min = if ty == Ty::I32 { i64::from(i32::MIN) } else { i64::MIN };
        for op in [
            Add, Sub, Mul, MulHiS, MulHiU, DivS, DivU, RemS, RemU, MinS, MinU, MaxS, MaxU, And, Or, Xor, Shl, ShrS,
            ShrU,
        ] {
            check_on(&gpu, Op::IBin(op), &[ty, ty], ty, Exactness::Bits, |row| match op {
                DivU | RemU => row[1] != 0,
                DivS | RemS => row[1] != 0 && !(signed(row[0]) == min && signed(row[1]) == -1),
                Shl | ShrS | ShrU => row[1] < ty.bits().into(),
                _ => true,
            });
        }
    }
    for op in [And, Or, Xor] {
        check_on(&gpu, Op::IBin(op), &[Ty::Pred, Ty::Pred], Ty::Pred, Exactness::Bits, |_| true);
    }
}

#[test]
fn floats() {
    for ty in [Ty::F32, Ty::F64] {
        for op in [FBin::Add, FBin::Sub, FBin::Mul, FBin::Div, FBin::MinNan, FBin::MaxNan] {
            check(Op::FBin(op), &[ty, ty], ty, Exactness::Value);
        }
        for op in [FBin::Min, FBin::Max] {
            check(Op::FBin(op), &[ty, ty], ty, Exactness::ZeroSign);
        }
        for op in [FUn::Neg, FUn::Abs] {
            check(Op::FUn(op), &[ty], ty, Exactness::Bits);
        }
        for op in [FUn::Sqrt, FUn::Floor, FUn::Ceil, FUn::Trunc, FUn::RoundEven] {
            check(Op::FUn(op), &[ty], ty, Exactness::Value);
        }
        // Whatever the device makes of it; then, for F32, exactly.
        check(Op::Fma, &[ty; 3], ty, Exactness::Fma);
    }
}

#[test]
fn fma_is_rounded_once_where_the_device_rounds_twice() {
    let Some(gpu) = gpu() else { return };
    let caps = Caps { fused_fma: false, ..caps(&gpu) };
    let rows = combinations(&[Ty::F32; 3], |_| true);
    for (row, got) in rows.iter().zip(run(&gpu, &caps, &Op::Fma, &[Ty::F32; 3], &rows, Ty::F32)) {
        let want = eval::fma(Ty::F32, row[0], row[1], row[2]);
        let nan = is_nan(Ty::F32, want) && is_nan(Ty::F32, got);
        // The device may flush subnormal numbers.
        let flushed = !gpu.name.contains("llvmpipe") && row.iter().chain([&want]).any(|&x| is_subnormal(Ty::F32, x));
        assert!(want == got || nan || flushed, "{row:x?}: want {want:x}, got {got:x}");
    }
}

#[test]
fn comparisons_and_selections() {
    check(Op::Not, &[Ty::Pred], Ty::Pred, Exactness::Bits);
    for ty in [Ty::Pred, Ty::I32, Ty::I64, Ty::F32, Ty::F64] {
        check(Op::Select, &[Ty::Pred, ty, ty], ty, Exactness::Bits);
        for cmp in [Cmp::Eq, Cmp::Ne, Cmp::Lt, Cmp::Le, Cmp::Gt, Cmp::Ge] {
            if ty.is_int() {
                check(Op::ICmpS(cmp), &[ty, ty], Ty::Pred, Exactness::Bits);
                check(Op::ICmpU(cmp), &[ty, ty], Ty::Pred, Exactness::Bits);
            }
            if ty.is_float() {
                check(Op::FCmp(cmp), &[ty, ty], Ty::Pred, Exactness::Value);
            }
        }
    }
}

#[test]
fn conversions() {
    let exact = |conv, from, to| check(Op::Conv(conv), &[from], to, Exactness::Bits);
    exact(Conv::SExt64, Ty::I32, Ty::I64);
    exact(Conv::ZExt64, Ty::I32, Ty::I64);
    exact(Conv::Trunc32, Ty::I64, Ty::I32);
    exact(Conv::SExt8, Ty::I32, Ty::I32);
    exact(Conv::SExt16, Ty::I32, Ty::I32);
    for int in [Ty::I32, Ty::I64] {
        for float in [Ty::F32, Ty::F64] {
            exact(Conv::SToF, int, float);
            exact(Conv::UToF, int, float);
            exact(Conv::FToS, float, int);
            exact(Conv::FToU, float, int);
        }
    }
    for (a, b) in [(Ty::I32, Ty::F32), (Ty::I64, Ty::F64)] {
        exact(Conv::Bitcast, a, b);
        exact(Conv::Bitcast, b, a);
    }
    exact(Conv::PredToI32, Ty::Pred, Ty::I32);
    check(Op::Conv(Conv::F32ToF64), &[Ty::F32], Ty::F64, Exactness::Value);
    check(Op::Conv(Conv::F64ToF32), &[Ty::F64], Ty::F32, Exactness::Value);
    check(Op::Pack16, &[Ty::I32, Ty::I32], Ty::I32, Exactness::Bits);
}
