//! Errors in units in the last place against double precision, over all exponents and where formulas change.

use super::{fmod, unary};
use crate::target::Caps;
use crate::thread::{AbiParam, AbiTy, Access, Builder, Function, Ty, Value, eval::Bits, machine::run};
use crate::tile::ops::UnaryOp;
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_PI_2, FRAC_PI_4, PI, SQRT_2, TAU};

/// The function of the parameters that `build` makes.
fn function(ty: AbiTy, n: usize, build: impl Fn(&mut Builder, &[Value]) -> Value) -> Function {
    let params = (0..n).map(|i| AbiParam { name: format!("x{i}"), ty }).collect();
    let mut b = Builder::new("test", params, 32, 32);
    let x: Vec<_> = (0..n as u32).map(|i| b.param(i)).collect();
    let r = build(&mut b, &x);
    let address = b.i64(0);
    b.global_store(Access { bits: b.ty(r).bits() as u8, n: 1, offset: 0 }, address, &[r], None);
    b.finish()
}

fn call(func: &Function, x: &[Bits]) -> Bits {
    run(func, x)[0]
}

fn exact(op: UnaryOp, x: f64) -> f64 {
    match op {
        UnaryOp::Exp => x.exp(),
        UnaryOp::Exp2 | UnaryOp::Exp2Approx => x.exp2(),
        UnaryOp::Log => x.ln(),
        UnaryOp::Log2 => x.log2(),
        UnaryOp::Sin => x.sin(),
        UnaryOp::Cos => x.cos(),
        UnaryOp::Tanh => x.tanh(),
        UnaryOp::Erf => libm::erf(x),
        UnaryOp::Rsqrt => 1.0 / x.sqrt(),
        UnaryOp::Sqrt => x.sqrt(),
        UnaryOp::Floor => x.floor(),
        UnaryOp::Ceil => x.ceil(),
        UnaryOp::Trunc => x.trunc(),
        UnaryOp::Round => x.round_ties_even(),
        UnaryOp::Neg => -x,
        UnaryOp::Abs => x.abs(),
        UnaryOp::Not => unreachable!("floats have no `not`"),
    }
}

/// Every op with the numbers near which its formula changes or its result overflows.
const FUNCTIONS: [(UnaryOp, &[f64]); 16] = [
    (UnaryOp::Exp, &[0.0, 88.722_839, -87.336_54, -103.972_08, 709.782_712, -708.396_4, -745.133_2, 0.346_573_6, 1.0]),
    (UnaryOp::Exp2, &[0.0, 128.0, -126.0, -149.0, -150.0, 1024.0, -1022.0, -1074.0, -1075.0, 0.5, 1.0]),
    (UnaryOp::Log, &[1.0, FRAC_1_SQRT_2, SQRT_2, 2.0, 1.18e-38, 2.3e-308]),
    (UnaryOp::Log2, &[1.0, FRAC_1_SQRT_2, SQRT_2, 2.0, 1.18e-38, 2.3e-308]),
    (UnaryOp::Sin, &[FRAC_PI_4, FRAC_PI_2, PI, TAU, 355.0, 48_000.0, 1e6, 16_367_173.0, 1e22]),
    (UnaryOp::Cos, &[FRAC_PI_4, FRAC_PI_2, PI, 3.0 * FRAC_PI_2, 355.0, 48_000.0, 1e6, 16_367_173.0, 1e22]),
    (UnaryOp::Tanh, &[0.65, 0.625, 9.0, 20.0]),
    (UnaryOp::Erf, &[0.843_75, 1.25, 2.857_142_8, 6.0, 0.927_734_4, 3.9]),
    (UnaryOp::Rsqrt, &[1.0, 2.0, 1.18e-38]),
    (UnaryOp::Sqrt, &[2.0]),
    (UnaryOp::Floor, &[1.0, -1.5]),
    (UnaryOp::Ceil, &[1.0, -1.5]),
    (UnaryOp::Trunc, &[1.0, -1.5]),
    (UnaryOp::Round, &[1.5, 2.5, -0.5]),
    (UnaryOp::Neg, &[0.0]),
    (UnaryOp::Abs, &[0.0]),
];

fn f32_operands(near: &[f64]) -> Vec<f32> {
    let mut all: Vec<f32> = (0..u32::MAX).step_by(99_991).map(f32::from_bits).collect();
    for &x in near {
        for sign in [1.0, -1.0] {
            let bits = (sign * x as f32).to_bits();
            all.extend((0..400u32).map(|i| f32::from_bits(bits.wrapping_add(i).wrapping_sub(200))));
        }
    }
    // Where most kernels are, more densely.
    all.extend((-20_000..20_000).map(|i| i as f32 * 1.237e-3));
    all.extend([0.0, -0.0, 1.0, -1.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MAX, f32::MIN]);
    all.extend([f32::from_bits(1), -f32::from_bits(1), f32::MIN_POSITIVE, f32::from_bits(0x7f_ffff)]);
    all
}

/// The distance of `r` to `exact` in units of the last place of an `F32`.
fn ulps_f32(r: f32, exact: f64) -> f64 {
    let near = exact as f32;
    if near.is_nan() || near.is_infinite() || r.is_nan() || r.is_infinite() {
        let same = r == near || (r.is_nan() && near.is_nan());
        // The nearest may be infinite by a hair.
        let hair = exact.is_finite() && r.abs() >= f32::MAX && exact.abs() > 3.402_823e38;
        return if same || hair { 0.0 } else { f64::INFINITY };
    }
    if exact == 0.0 && r == 0.0 {
        return if exact.is_sign_negative() == r.is_sign_negative() { 0.0 } else { f64::INFINITY };
    }
    let exponent = (near.abs().max(f32::MIN_POSITIVE).to_bits() >> 23) as i32 - 150;
    (f64::from(r) - exact).abs() / f64::from(exponent).exp2()
}

fn worst_f32(op: UnaryOp, near: &[f64], caps: &Caps) -> (f64, f32) {
    let func = function(AbiTy::F32, 1, |b, x| unary(b, caps, op, x[0]));
    let mut worst = (0.0, 0.0);
    for x in f32_operands(near) {
        let e = exact(op, x.into());
        let r = f32::from_bits(call(&func, &[x.to_bits().into()]) as u32);
        let error = ulps_f32(r, e);
        if error > worst.0 {
            worst = (error, x);
        }
    }
    worst
}

#[test]
fn f32_within_two_ulps() {
    let caps = Caps::opencl("test", 1, 0, true);
    for (op, near) in FUNCTIONS {
        let (error, x) = worst_f32(op, near, &caps);
        println!("{op}: {error:.2} ulp at {x:e}");
        assert!(error <= 2.0, "{op}: {error} ulp at {x:e} ({:x})", x.to_bits());
    }
}

#[test]
fn f32_with_approximations_within_two_ulps() {
    // The approximations themselves are evaluated exactly here; what they may add is in the formulas' margin.
    let caps = Caps::ptx(90);
    for (op, near) in FUNCTIONS {
        let (error, x) = worst_f32(op, near, &caps);
        println!("{op}: {error:.2} ulp at {x:e}");
        assert!(error <= 2.0, "{op}: {error} ulp at {x:e} ({:x})", x.to_bits());
    }
}

#[test]
fn f64_within_four_ulps() {
    let caps = Caps::opencl("test", 1, 0, true);
    for (op, near) in FUNCTIONS {
        let func = function(AbiTy::F64, 1, |b, x| unary(b, &caps, op, x[0]));
        let mut operands: Vec<f64> =
            (0..u64::MAX - (1 << 50)).step_by(0x0001_f3d1_0a7b_3457).map(f64::from_bits).collect();
        for &x in near {
            for sign in [1.0, -1.0] {
                let bits = (sign * x).to_bits();
                operands.extend((0..100u64).map(|i| f64::from_bits(bits.wrapping_add(i).wrapping_sub(50))));
                operands.extend((0..100).map(|i| sign * x * (1.0 + f64::from(i - 50) * 1e-9)));
            }
        }
        operands.extend((-5_000..5_000).map(|i| f64::from(i) * 5.237e-3));
        operands.extend([0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, f64::MAX, f64::MIN, 5e-324, -5e-324]);
        let mut worst = (0, 0.0);
        for x in operands {
            let e = exact(op, x);
            let r = f64::from_bits(call(&func, &[x.to_bits()]));
            let distance = if e.is_nan() || r.is_nan() {
                if e.is_nan() && r.is_nan() { 0 } else { u64::MAX }
            } else {
                ordered(e).abs_diff(ordered(r))
            };
            if distance > worst.0 {
                worst = (distance, x);
            }
        }
        println!("{op}: {} ulp at {:e}", worst.0, worst.1);
        // One less than promised, as the reference itself may be off by one.
        assert!(worst.0 <= 3, "{op}: {} ulp at {:e} ({:x})", worst.0, worst.1, worst.1.to_bits());
    }
}

/// Numbers in order, neighbours one apart; the two zeros too.
fn ordered(x: f64) -> i64 {
    let bits = x.to_bits() as i64;
    if bits < 0 { i64::MIN.wrapping_sub(bits).wrapping_sub(1) } else { bits }
}

#[test]
fn hardest_arguments_of_sine() {
    // The F64 closest to a multiple of pi / 2, and large ones; results from exact arithmetic.
    let caps = Caps::opencl("test", 1, 0, true);
    let cos = function(AbiTy::F64, 1, |b, x| unary(b, &caps, UnaryOp::Cos, x[0]));
    let sin = function(AbiTy::F64, 1, |b, x| unary(b, &caps, UnaryOp::Sin, x[0]));
    let hardest = 6_381_956_970_095_103.0 * 2f64.powi(797);
    for (func, x, exact) in [
        (&cos, hardest, -4.687165924254628e-19),
        (&sin, 1e22, -0.8522008497671888),
        (&sin, f64::MAX, 0.004961954789184062),
    ] {
        let r = f64::from_bits(call(func, &[x.to_bits()]));
        assert!(ordered(r).abs_diff(ordered(exact)) <= 1, "{x:e}: {r:e}, not {exact:e}");
    }
}

#[test]
fn fmod_is_exact() {
    let f32_func = function(AbiTy::F32, 2, |b, x| fmod(b, x[0], x[1]));
    let f64_func = function(AbiTy::F64, 2, |b, x| fmod(b, x[0], x[1]));
    let f32s: Vec<f32> = (0..u32::MAX)
        .step_by(32_123_457)
        .chain([0, 1, 2, 3, 0x7f_ffff, 0x80_0000, 0x80_0001, 0x7f7f_ffff, 0x7f80_0000, 0x7fc0_0000, 0x8000_0000])
        .chain([5.5f32, -5.5, 2.0, 3.0, 0.1, 1e10, -7.0, 1e-40, 16_777_215.0].map(f32::to_bits))
        .map(f32::from_bits)
        .collect();
    let same32 = |a: f32, b: f32| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
    for &x in &f32s {
        for &y in &f32s {
            let r = f32::from_bits(call(&f32_func, &[x.to_bits().into(), y.to_bits().into()]) as u32);
            assert!(same32(r, x % y), "{x:e} % {y:e}: {r:e}, not {:e}", x % y);
        }
    }
    let f64s: Vec<f64> = f32s.iter().step_by(4).map(|&x| f64::from(x) * 1.000_000_000_123).collect();
    let f64s =
        f64s.into_iter().chain([5e-324, f64::MAX, f64::MIN_POSITIVE, 3e-310, f64::INFINITY, f64::NAN, -0.0, 0.1]);
    let f64s: Vec<_> = f64s.collect();
    for &x in &f64s {
        for &y in &f64s {
            let r = f64::from_bits(call(&f64_func, &[x.to_bits(), y.to_bits()]));
            assert!(r.to_bits() == (x % y).to_bits() || (r.is_nan() && (x % y).is_nan()), "{x:e} % {y:e}: {r:e}");
        }
    }
}

#[test]
fn constants_fold() {
    let caps = Caps::opencl("test", 1, 0, true);
    for op in FUNCTIONS.map(|f| f.0) {
        for x in [0.75, 1e30] {
            let mut b = Builder::new("test", vec![], 32, 1);
            let c = b.fconst(Ty::F32, x);
            let r = unary(&mut b, &caps, op, c);
            let bits = b.bits(r).expect("a function of a constant is a constant");
            assert!(ulps_f32(f32::from_bits(bits as u32), exact(op, f64::from(x as f32))) <= 2.0, "{op} {x}");
        }
    }
}
