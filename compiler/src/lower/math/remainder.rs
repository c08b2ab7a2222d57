//! C's `fmod`, exact: long division of the significands.

use crate::thread::{Builder, Cmp, Conv, IBin, Ty, Value};

/// The remainder of `x / y` rounded toward zero, with the sign of `x`, exact; `F32` or `F64`. NaN if `y` is 0, `x` is
/// infinite or either is NaN.
///
/// Each turn of its loop takes as many bits of the quotient as fit beside a significand in 64 bits: at most 7 turns for
/// `F32` and 187 for `F64`; none if `y` is the larger.
pub fn fmod(b: &mut Builder, x: Value, y: Value) -> Value {
    let ty = b.ty(x);
    let (int, digits, bias) = if ty == Ty::F64 { (Ty::I64, 52, 1023) } else { (Ty::I32, 23, 127) };
    let magnitude_mask = if ty == Ty::F64 { i64::MAX } else { i64::from(i32::MAX) };
    // At most this many bits at once.
    let step = 63 - (digits + 1);

    let (x_bits, y_bits) = (b.bitcast(x, int), b.bitcast(y, int));
    let (ax, ay) = (b.and_imm(x_bits, magnitude_mask), b.and_imm(y_bits, magnitude_mask));
    let (x_significand, x_exponent) = split(b, ax, digits);
    let (y_significand, y_exponent) = split(b, ay, digits);
    // Zero is no divisor; its remainder is NaN in the end.
    let (zero64, one64) = (b.i64(0), b.i64(1));
    let is_zero = b.icmp_u(Cmp::Eq, y_significand, zero64);
    let divisor = b.select(is_zero, one64, y_significand);

    let (zero, step) = (b.i32(0), b.i32(step as i32));
    let ahead = b.sub(x_exponent, y_exponent);
    let ahead = b.ibin(IBin::MaxS, ahead, zero);
    let first = b.ibin(IBin::RemU, x_significand, divisor);
    let carried = b.begin_loop(&[first, ahead]);
    // Once the remainder is 0 it stays so.
    let (more, any) = (b.icmp_s(Cmp::Gt, carried[1], zero), b.icmp_u(Cmp::Ne, carried[0], zero64));
    let go_on = b.and(more, any);
    let carried = b.loop_body(go_on);
    let now = b.ibin(IBin::MinS, carried[1], step);
    let shift = b.conv(Conv::ZExt64, now, Ty::I64);
    let shifted = b.ibin(IBin::Shl, carried[0], shift);
    let next = b.ibin(IBin::RemU, shifted, divisor);
    let left = b.sub(carried[1], now);
    let r = b.end_loop(&[next, left])[0];

    // The remainder counts units of 2^(exponent - bias - digits). As a float of its own it has this exponent:
    let float = b.conv(Conv::SToF, r, ty);
    let float = b.bitcast(float, int);
    let own = b.shift_imm(IBin::ShrU, float, digits);
    let own = narrow(b, own);
    let offset = b.add_imm(y_exponent, -(bias + i64::from(digits)));
    let exponent = b.add(own, offset);
    let offset = widen(b, offset, int);
    let offset = b.shift_imm(IBin::Shl, offset, digits);
    let normal = b.add(float, offset);
    // Subnormals count units of exponent 1. Where the result is normal the amount does not matter, but must be a shift.
    let up = b.add_imm(y_exponent, -1);
    let most = b.i32(digits as i32);
    let up = b.ibin(IBin::MinS, up, most);
    let units = if int == Ty::I64 { r } else { b.conv(Conv::Trunc32, r, Ty::I32) };
    let up = widen(b, up, int);
    let small = b.ibin(IBin::Shl, units, up);
    let is_small = b.icmp_s(Cmp::Le, exponent, zero);
    let result = b.select(is_small, small, normal);
    let (int_zero, none) = (b.iconst(int, 0), b.icmp_u(Cmp::Eq, r, zero64));
    let result = b.select(none, int_zero, result);

    let less = b.icmp_u(Cmp::Lt, ax, ay);
    let result = b.select(less, ax, result);
    let sign = b.iconst(int, !magnitude_mask);
    let sign = b.and(x_bits, sign);
    let result = b.or(result, sign);
    let result = b.bitcast(result, ty);

    let infinity = b.fconst(ty, f64::INFINITY);
    let infinity = b.bitcast(infinity, int);
    let (x_odd, y_nan) = (b.icmp_u(Cmp::Ge, ax, infinity), b.icmp_u(Cmp::Gt, ay, infinity));
    let undefined = b.or(x_odd, y_nan);
    let undefined = b.or(undefined, is_zero);
    let nan = b.fconst(ty, f64::NAN);
    b.select(undefined, nan, result)
}

/// The significand as `I64` and the exponent as stored (1 for subnormals) as `I32`, of a magnitude.
fn split(b: &mut Builder, magnitude: Value, digits: u32) -> (Value, Value) {
    let stored = b.shift_imm(IBin::ShrU, magnitude, digits);
    let stored = narrow(b, stored);
    let fraction = b.and_imm(magnitude, (1 << digits) - 1);
    let fraction = if b.ty(fraction) == Ty::I64 { fraction } else { b.conv(Conv::ZExt64, fraction, Ty::I64) };
    let (zero, one) = (b.i32(0), b.i32(1));
    let subnormal = b.icmp_u(Cmp::Eq, stored, zero);
    let leading = b.i64(1 << digits);
    let full = b.or(fraction, leading);
    (b.select(subnormal, fraction, full), b.select(subnormal, one, stored))
}

fn narrow(b: &mut Builder, v: Value) -> Value {
    if b.ty(v) == Ty::I64 { b.conv(Conv::Trunc32, v, Ty::I32) } else { v }
}

fn widen(b: &mut Builder, v: Value, to: Ty) -> Value {
    if to == Ty::I64 { b.conv(Conv::SExt64, v, Ty::I64) } else { v }
}
