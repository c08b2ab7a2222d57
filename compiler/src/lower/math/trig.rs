//! Sine and cosine: the operand's magnitude is reduced to a quadrant and a rest of at most pi / 4.

use super::Math;
use crate::thread::{Cmp, Conv, FUn, IBin, Ty, Value};

/// pi / 2 as a sum of `F32`, and of `F64`.
const HALF_PI_F32: [f64; 3] = [1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15];
const HALF_PI_F64: [f64; 3] = [std::f64::consts::FRAC_PI_2, 6.123233995736766e-17, -1.4973849048591698e-33];

/// `(sin(x) - x) / x^3` in powers of x^2 on [0, pi / 4]: within 3e-8, and 3e-17.
const SIN_F32: [f64; 3] = [-0.16666664656312208, 0.00833274710466453, -0.0001958763909873762];
const SIN_F64: [f64; 6] = [
    -0.16666666666666666,
    0.008333333333330936,
    -0.00019841269836740532,
    2.7557316093198404e-06,
    -2.5051129896450185e-08,
    1.5917988979397432e-10,
];

/// `(cos(x) - 1 + x^2 / 2) / x^4`: within 3e-9, and 2e-18.
const COS_F32: [f64; 3] = [0.04166666465348879, -0.001388830186756237, 2.454768977246003e-05];
const COS_F64: [f64; 6] = [
    0.041666666666666664,
    -0.001388888888888739,
    2.48015872987544e-05,
    -2.755731726587808e-07,
    2.087614504941318e-09,
    -1.138254464534925e-11,
];

/// The binary digits of 2 / pi after the point.
const TWO_OVER_PI: [u64; 20] = [
    0xa2f9836e4e441529,
    0xfc2757d1f534ddc0,
    0xdb6295993c439041,
    0xfe5163abdebbc561,
    0xb7246e3a424dd2e0,
    0x06492eea09d1921c,
    0xfe1deb1cb129a73e,
    0xe88235f52ebb4484,
    0xe99c7026b45f7e41,
    0x3991d639835339f4,
    0x9c845f8bbdf9283b,
    0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f,
    0x6d367ecf27cb09b7,
    0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b,
    0x3d0739f78a5292ea,
    0x6bfb5fb11f8d5d08,
    0x56033046fc7b6bab,
    0xf0cfbc209af4361d,
];

impl Math<'_> {
    pub(super) fn sin(&mut self, x: Value) -> Value {
        let magnitude = self.fun(FUn::Abs, x);
        let r = self.quadrants(x, magnitude, 0);
        // Odd: the operand's sign flips the result's.
        let (bits, sign) = (self.bits_of(r), self.bits_of(x));
        let mask = if self.double() { i64::MIN } else { i64::from(i32::MIN) };
        let sign = self.b.and_imm(sign, mask);
        let r = self.b.xor(bits, sign);
        self.float_of(r)
    }

    pub(super) fn cos(&mut self, x: Value) -> Value {
        let magnitude = self.fun(FUn::Abs, x);
        self.quadrants(x, magnitude, 1)
    }

    /// The sine of `magnitude + shift pi / 2`, where `magnitude` is the absolute value of `x`.
    fn quadrants(&mut self, x: Value, magnitude: Value, shift: i64) -> Value {
        let common = self.reduce_moderate(magnitude);
        // What `reduce_moderate` is accurate for.
        let limit = if self.double() { 1e6 } else { 48_000.0 };
        let large = self.cmp(Cmp::Gt, magnitude, limit);
        let [quadrant, r] = self.rarely(large, magnitude, common, |m, x| m.reduce_large(x));
        let quadrant = self.b.add_imm(quadrant, shift);

        let z = self.mul(r, r);
        let (s, c) = if self.double() { (&SIN_F64[..], &COS_F64[..]) } else { (&SIN_F32[..], &COS_F32[..]) };
        let sine = self.poly(z, s);
        let cube = self.mul(z, r);
        let sine = self.fma(cube, sine, r);
        let cosine = self.poly(z, c);
        let square = self.mul(z, z);
        let half = self.mul_c(z, 0.5);
        let one = self.c(1.0);
        let w = self.sub(one, half);
        // What that difference lost.
        let lost = self.sub(one, w);
        let lost = self.sub(lost, half);
        let rest = self.fma(square, cosine, lost);
        let cosine = self.add(w, rest);

        let zero = self.b.i32(0);
        let (bit0, bit1) = (self.b.and_imm(quadrant, 1), self.b.and_imm(quadrant, 2));
        let (odd, flip) = (self.b.icmp_u(Cmp::Ne, bit0, zero), self.b.icmp_u(Cmp::Ne, bit1, zero));
        let r = self.b.select(odd, cosine, sine);
        let minus = self.fun(FUn::Neg, r);
        let r = self.b.select(flip, minus, r);
        // Of infinity and NaN the result is NaN.
        let nan = self.sub(x, x);
        self.pick(magnitude, Cmp::Lt, f64::INFINITY, r, nan)
    }

    /// The quadrant (`I32`) and the rest, by subtracting a multiple of pi / 2 with more digits than the operand has
    /// (Cody and Waite). Each product is exact within `fma`.
    fn reduce_moderate(&mut self, x: Value) -> [Value; 2] {
        let n = self.mul_c(x, std::f64::consts::FRAC_2_PI);
        let n = self.fun(FUn::RoundEven, n);
        let parts = if self.double() { HALF_PI_F64 } else { HALF_PI_F32 };
        let r = parts.iter().fold(x, |r, &part| {
            let part = self.c(-part);
            self.fma(n, part, r)
        });
        [self.b.conv(Conv::FToS, n, Ty::I32), r]
    }

    /// The same for any finite operand of at least 1, by multiplying its digits with those digits of 2 / pi that matter
    /// (Payne and Hanek).
    fn reduce_large(&mut self, x: Value) -> [Value; 2] {
        let (int, width, digits) = (self.bits_ty(), self.ty.bits(), self.mantissa_bits());
        let bits = self.bits_of(x);
        // x = significand 2^(e - width), the significand's top bit being set.
        let e = self.b.shift_imm(IBin::ShrU, bits, digits);
        let e = self.b.add_imm(e, 1 - self.bias());
        let significand = self.b.shift_imm(IBin::Shl, bits, width - 1 - digits);
        let top = self.b.iconst(int, if self.double() { i64::MIN } else { i64::from(i32::MIN) });
        let significand = self.b.or(significand, top);

        let index = self.b.shift_imm(IBin::ShrU, e, width.trailing_zeros());
        let within = self.b.and_imm(e, i64::from(width) - 1);
        let words = self.window(index, within);
        let high = self.b.mul(significand, words[0]);
        let middle = self.b.mul(significand, words[1]);
        let middle_up = self.b.ibin(IBin::MulHiU, significand, words[1]);
        let low_up = self.b.ibin(IBin::MulHiU, significand, words[2]);
        let low = self.b.add(middle, low_up);
        let carry = self.b.icmp_u(Cmp::Lt, low, middle);
        let (one, zero) = (self.b.iconst(int, 1), self.b.iconst(int, 0));
        let carry = self.b.select(carry, one, zero);
        let high = self.b.add(high, middle_up);
        let high = self.b.add(high, carry);

        // Two bits of quadrant, then the fraction of a quadrant, to be taken between -1/2 and 1/2.
        let quadrant = self.b.shift_imm(IBin::ShrU, high, width - 2);
        let up = self.b.shift_imm(IBin::Shl, high, 2);
        let down = self.b.shift_imm(IBin::ShrU, low, width - 2);
        let high = self.b.or(up, down);
        let low = self.b.shift_imm(IBin::Shl, low, 2);
        let sign = self.b.shift_imm(IBin::ShrS, high, width - 1);
        let quadrant = self.b.sub(quadrant, sign);
        // The complement is one unit off the negative, which is far below what is kept.
        let (high, low) = (self.b.xor(high, sign), self.b.xor(low, sign));

        // The magnitude as a sum of two floats: all but the last bits of `high`, which a float holds exactly, and those
        // with `low`.
        let keep = width - 1 - digits;
        let first = self.b.and_imm(high, -(1 << keep));
        let first = self.b.conv(Conv::UToF, first, self.ty);
        let second = self.b.shift_imm(IBin::Shl, high, width - keep);
        let below = self.b.shift_imm(IBin::ShrU, low, keep);
        let second = self.b.or(second, below);
        let second = self.b.conv(Conv::UToF, second, self.ty);
        let second = self.mul_c(second, (f64::from(keep) - f64::from(width)).exp2());
        let sum = self.add(first, second);
        let lost = self.sub(sum, first);
        let lost = self.sub(second, lost);

        // Times pi / 2 and the unit of `high`.
        let unit = (-f64::from(width)).exp2();
        let parts = if self.double() { HALF_PI_F64 } else { HALF_PI_F32 };
        let (main, rest) = (self.c(parts[0] * unit), self.c(parts[1] * unit));
        let r = self.mul(sum, main);
        let minus = self.fun(FUn::Neg, r);
        let error = self.fma(sum, main, minus);
        let error = self.fma(sum, rest, error);
        let error = self.fma(lost, main, error);
        let r = self.add(r, error);
        let minus = self.fun(FUn::Neg, r);
        let negative = self.b.icmp_u(Cmp::Ne, sign, zero);
        let r = self.b.select(negative, minus, r);
        let quadrant = if self.double() { self.b.conv(Conv::Trunc32, quadrant, Ty::I32) } else { quadrant };
        [quadrant, r]
    }

    /// Three words of the digits of 1 / (2 pi), from two bits before word `index - 1`, shifted left by `within`.
    fn window(&mut self, index: Value, within: Value) -> [Value; 3] {
        let (int, width) = (self.bits_ty(), self.ty.bits());
        // A quarter of 2 / pi, after a word of zeros.
        let table: Vec<u64> = if self.double() {
            (0..TWO_OVER_PI.len())
                .map(|i| if i == 0 { 0 } else { TWO_OVER_PI[i - 1] << 62 } | TWO_OVER_PI[i] >> 2)
                .collect()
        } else {
            let halves: Vec<u64> = TWO_OVER_PI[..4].iter().flat_map(|w| [w >> 32, w & 0xffff_ffff]).collect();
            (0..7).map(|i| if i == 0 { 0 } else { halves[i - 1] << 30 } | halves[i] >> 2).collect()
        };
        let zero = self.b.iconst(int, 0);
        let mut words = vec![zero];
        words.extend(table.iter().map(|&w| self.b.constant(int, w)));
        // Shift by 2^k words where bit k of the index is set; 4 words are to be left.
        for k in (0..if self.double() { 5 } else { 3 }).rev() {
            let bit = self.b.and_imm(index, 1 << k);
            let p = self.b.icmp_u(Cmp::Ne, bit, zero);
            words = (0..4 + (1 << k) - 1)
                .map(|j| {
                    let [here, there] = [j, j + (1 << k)].map(|j| words.get(j).copied().unwrap_or(zero));
                    self.b.select(p, there, here)
                })
                .collect();
        }
        // A shift by the width is not allowed: shift right by one first.
        let top = self.b.iconst(int, i64::from(width) - 1);
        let back = self.b.sub(top, within);
        [0, 1, 2].map(|i| {
            let up = self.b.ibin(IBin::Shl, words[i], within);
            let down = self.b.shift_imm(IBin::ShrU, words[i + 1], 1);
            let down = self.b.ibin(IBin::ShrU, down, back);
            self.b.or(up, down)
        })
    }
}
