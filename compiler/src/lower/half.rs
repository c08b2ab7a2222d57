//! Conversions between `f16`/`bf16` bits and wider floats: the target's own where [`Caps`] has them, else integer
//! arithmetic with the same results. Bits are in the low half of an `I32`; the high half is ignored and comes out as
//! zeros.

use crate::target::Caps;
use crate::thread::{Builder, Cmp, Conv, FBin, FUn, IBin, Ty, Value};

/// Splits 32 bits in sign (bit 31) and magnitude.
fn split(b: &mut Builder, bits: Value) -> (Value, Value) {
    (b.and_imm(bits, 0x8000_0000), b.and_imm(bits, 0x7fff_ffff))
}

/// The upper half of `x + 0x7fff + (bit 16)`, and so on for other `drop`: drops low bits, to nearest, ties to even.
fn round_shift(b: &mut Builder, x: Value, drop: u32) -> Value {
    let odd = b.shift_imm(IBin::ShrU, x, drop);
    let odd = b.and_imm(odd, 1);
    let sum = b.add_imm(x, (1 << (drop - 1)) - 1);
    let sum = b.add(sum, odd);
    b.shift_imm(IBin::ShrU, sum, drop)
}

/// `f16` bits to `F32`, exact.
pub fn f16_to_f32(b: &mut Builder, caps: &Caps, bits: Value) -> Value {
    if caps.f16_convert {
        return b.conv(Conv::F16LoToF32, bits, Ty::F32);
    }
    let sign = b.and_imm(bits, 0x8000);
    let sign = b.shift_imm(IBin::Shl, sign, 16);
    let magnitude = b.and_imm(bits, 0x7fff);
    let shifted = b.shift_imm(IBin::Shl, magnitude, 13);
    // The exponent's bias is 15 there and 127 here; infinities and NaN have the greatest exponent in both.
    let normal = b.add_imm(shifted, (127 - 15) << 23);
    let special = b.constant(Ty::I32, 0x7f80_0000);
    let special = b.or(shifted, special);
    // Subnormals count units of 2^-24, which `F32` has as a normal number.
    let count = b.conv(Conv::UToF, magnitude, Ty::F32);
    let unit = b.fconst(Ty::F32, 2f64.powi(-24));
    let small = b.fbin(FBin::Mul, count, unit);
    let small = b.bitcast(small, Ty::I32);

    let (least_normal, infinity) = (b.i32(0x0400), b.i32(0x7c00));
    let is_small = b.icmp_u(Cmp::Lt, magnitude, least_normal);
    let is_special = b.icmp_u(Cmp::Ge, magnitude, infinity);
    let r = b.select(is_special, special, normal);
    let r = b.select(is_small, small, r);
    let r = b.or(r, sign);
    b.bitcast(r, Ty::F32)
}

/// `F32` to `f16` bits: to nearest, ties to even; overflow to infinity; NaN stays NaN.
pub fn f32_to_f16(b: &mut Builder, caps: &Caps, x: Value) -> Value {
    if caps.f16_convert {
        return b.conv(Conv::F32ToF16, x, Ty::I32);
    }
    let bits = b.bitcast(x, Ty::I32);
    let (sign, magnitude) = split(b, bits);
    let sign = b.shift_imm(IBin::ShrU, sign, 16);
    let rebiased = b.add_imm(magnitude, -((127 - 15) << 23));
    let normal = round_shift(b, rebiased, 13);
    // 0.5 has units of 2^-24 in its last place, as `f16` subnormals have: the sum rounds to them.
    let half = b.fconst(Ty::F32, 0.5);
    let magnitude_float = b.fun(FUn::Abs, x);
    let small = b.fbin(FBin::Add, magnitude_float, half);
    let small = b.bitcast(small, Ty::I32);
    let small = b.add_imm(small, -i64::from(0.5f32.to_bits()));

    // 2^-14, the least normal; 65520, halfway to the first number too large; infinity.
    let [least_normal, overflow, infinity] = [0x3880_0000, 0x477f_f000, 0x7f80_0000].map(|c| b.i32(c));
    let (f16_infinity, f16_nan) = (b.i32(0x7c00), b.i32(0x7e00));
    let is_small = b.icmp_u(Cmp::Lt, magnitude, least_normal);
    let is_large = b.icmp_u(Cmp::Ge, magnitude, overflow);
    let is_nan = b.icmp_u(Cmp::Gt, magnitude, infinity);
    let r = b.select(is_small, small, normal);
    let r = b.select(is_large, f16_infinity, r);
    let r = b.select(is_nan, f16_nan, r);
    b.or(r, sign)
}

/// `bf16` bits to `F32`, exact.
pub fn bf16_to_f32(b: &mut Builder, bits: Value) -> Value {
    let bits = b.shift_imm(IBin::Shl, bits, 16);
    b.bitcast(bits, Ty::F32)
}

/// `F32` to `bf16` bits: to nearest, ties to even; overflow to infinity; NaN stays NaN.
pub fn f32_to_bf16(b: &mut Builder, caps: &Caps, x: Value) -> Value {
    if caps.bf16_convert {
        return b.conv(Conv::F32ToBf16, x, Ty::I32);
    }
    let bits = b.bitcast(x, Ty::I32);
    let rounded = round_shift(b, bits, 16);
    // A NaN whose upper bits are those of infinity must keep a bit.
    let nan = b.shift_imm(IBin::ShrU, bits, 16);
    let quiet = b.i32(0x40);
    let nan = b.or(nan, quiet);
    let is_nan = b.fcmp(Cmp::Ne, x, x);
    b.select(is_nan, nan, rounded)
}

/// `F64` to `F32`, inexact results to the neighbour with an odd last bit. Rounding that to fewer than 23 bits gives what
/// rounding the `F64` at once would.
pub fn f64_to_f32_odd(b: &mut Builder, x: Value) -> Value {
    let near = b.conv(Conv::F64ToF32, x, Ty::F32);
    let back = b.conv(Conv::F32ToF64, near, Ty::F64);
    let bits = b.bitcast(near, Ty::I32);
    let (x_magnitude, back_magnitude) = (b.fun(FUn::Abs, x), b.fun(FUn::Abs, back));
    let away = b.fcmp(Cmp::Gt, back_magnitude, x_magnitude);
    let less = b.add_imm(bits, -1);
    let toward_zero = b.select(away, less, bits);
    let one = b.i32(1);
    let odd = b.or(toward_zero, one);
    let exact = b.fcmp(Cmp::Eq, back, x);
    let nan = b.fcmp(Cmp::Ne, x, x);
    let keep = b.or(exact, nan);
    let r = b.select(keep, bits, odd);
    b.bitcast(r, Ty::F32)
}

/// `F64` to `f16` bits, rounded once: to nearest, ties to even.
pub fn f64_to_f16(b: &mut Builder, caps: &Caps, x: Value) -> Value {
    let x = f64_to_f32_odd(b, x);
    f32_to_f16(b, caps, x)
}

/// `F64` to `bf16` bits, rounded once: to nearest, ties to even.
pub fn f64_to_bf16(b: &mut Builder, caps: &Caps, x: Value) -> Value {
    let x = f64_to_f32_odd(b, x);
    f32_to_bf16(b, caps, x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::{bf16, f16};

    /// What `f` gives for a constant.
    fn fold(ty: Ty, bits: u64, f: impl Fn(&mut Builder, &Caps, Value) -> Value) -> u64 {
        let mut b = Builder::new("test", vec![], 1, 1);
        let x = b.constant(ty, bits);
        let caps = Caps::spirv("test", 1, 1, 0);
        let r = f(&mut b, &caps, x);
        b.bits(r).expect("constants fold")
    }

    /// Bits of all exponents, near what rounds up, down and to even, and in between.
    fn floats() -> impl Iterator<Item = u32> {
        let near = (0..=0xffffu32).flat_map(|high| {
            [0, 1, 0x7fff, 0x8000, 0x8001, 0xffff, 0x0fff, 0x1000, 0x1001, 0x2fff, 0x3000, 0x3001]
                .map(|low| high << 16 | low)
        });
        near.step_by(5).chain((0..u32::MAX).step_by(65_521))
    }

    #[test]
    fn f16_is_exact_for_all_bits() {
        for bits in 0..=0xffffu16 {
            let r = f32::from_bits(fold(Ty::I32, u64::from(bits) | 0xabcd_0000, f16_to_f32) as u32);
            let e = f16::from_bits(bits).to_f32();
            assert!(r.to_bits() == e.to_bits() || (r.is_nan() && e.is_nan()), "{bits:x}: {r} {e}");
        }
    }

    #[test]
    fn f32_rounds_to_f16_and_bf16() {
        for bits in floats() {
            let x = f32::from_bits(bits);
            let (r, e) = (fold(Ty::F32, bits.into(), f32_to_f16), f16::from_f32(x));
            assert!(r == u64::from(e.to_bits()) || (x.is_nan() && f16::from_bits(r as u16).is_nan()), "{bits:x}");
            let (r, e) = (fold(Ty::F32, bits.into(), f32_to_bf16), bf16::from_f32(x));
            assert!(r == u64::from(e.to_bits()) || (x.is_nan() && bf16::from_bits(r as u16).is_nan()), "{bits:x}");
            let back = fold(Ty::I32, r, |b, _, x| bf16_to_f32(b, x));
            assert_eq!(back, r << 16);
        }
    }

    /// The nearest of the two 16-bit neighbours of `x`, ties to even, found by comparing distances in `F64`.
    fn nearest(x: f64, of: impl Fn(u16) -> f64, infinity: u16) -> u16 {
        let magnitude = x.abs();
        let (mut lo, mut hi) = (0, infinity);
        while lo + 1 < hi {
            let mid = lo + (hi - lo) / 2;
            if of(mid) <= magnitude { lo = mid } else { hi = mid }
        }
        // Beyond the greatest finite number, rounding goes as if there were a next one.
        let above = if hi == infinity { 2.0 * of(infinity - 1) - of(infinity - 2) } else { of(hi) };
        let (down, up) = (magnitude - of(lo), above - magnitude);
        let r = if down < up || (down == up && lo % 2 == 0) { lo } else { hi };
        r | if x.is_sign_negative() { 0x8000 } else { 0 }
    }

    #[test]
    fn f64_rounds_once() {
        for bits in floats().step_by(7) {
            let exact = f64::from(f32::from_bits(bits));
            for x in [exact, exact.next_up(), exact.next_down(), exact * (1.0 + 1e-12), exact * (1.0 - 1e-9)] {
                let h = fold(Ty::F64, x.to_bits(), f64_to_f16) as u16;
                let n = fold(Ty::F64, x.to_bits(), f64_to_bf16) as u16;
                if x.is_nan() {
                    assert!(f16::from_bits(h).is_nan() && bf16::from_bits(n).is_nan(), "{bits:x}");
                    continue;
                }
                assert_eq!(h, nearest(x, |b| f16::from_bits(b).into(), 0x7c00), "{x:e}");
                assert_eq!(n, nearest(x, |b| bf16::from_bits(b).into(), 0x7f80), "{x:e}");
            }
        }
        for x in [f64::MAX, f64::MIN, 1e-300, -1e-300, f64::INFINITY, f64::MIN_POSITIVE / 4.0] {
            let e = f16::from_f64(x).to_bits();
            assert_eq!(fold(Ty::F64, x.to_bits(), f64_to_f16), e.into(), "{x:e}");
        }
    }
}
