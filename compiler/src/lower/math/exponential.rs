//! Exponentials and logarithms.

use super::Math;
use crate::thread::{Cmp, Conv, FBin, FUn, IBin, Value};
use std::f64::consts::{LN_2, LOG2_E};

/// What the nearest `F32` or `F64` to ln 2 and to log2 e leave out.
const LN_2_REST: [f64; 2] = [-1.9046542121259336e-09, 2.3190468138462996e-17];
const LOG2_E_REST: [f64; 2] = [1.925963033500011e-08, 2.0355273740931033e-17];

/// `(2^f - 1) / f` on [-1/2, 1/2], within 8e-9.
const EXP2_F32: [f64; 6] = [
    0.6931471880262288,
    0.24022650760568126,
    0.055503571142190775,
    0.009618082557277852,
    0.0013390863364671234,
    0.0001545316294512069,
];

/// The same within 2e-19.
const EXP2_F64: [f64; 12] = [
    LN_2,
    0.24022650695910072,
    0.055504108664821625,
    0.00961812910762848,
    0.001333355814640647,
    0.00015403530393370734,
    1.5252733841556773e-05,
    1.3215486808705563e-06,
    1.0178057087733941e-07,
    7.0548973041554995e-09,
    4.4558179083360645e-10,
    2.5729324177362305e-11,
];

/// `(e^f - 1 - f) / f^2` on [-ln 2 / 2, ln 2 / 2], within 7e-8.
const EXP_F32: [f64; 5] = [0.5, 0.16666576989698775, 0.041666554617204574, 0.008363179052722578, 0.0013926183587713494];

/// The same within 2e-18.
const EXP_F64: [f64; 11] = [
    0.5,
    0.1666666666666667,
    0.04166666666666667,
    0.008333333333326136,
    0.0013888888888883748,
    0.00019841269874820624,
    2.4801587325547743e-05,
    2.7557255400206422e-06,
    2.75572736431103e-07,
    2.5105217004720745e-08,
    2.0914686968086876e-09,
];

/// `(ln(1 + f) - f + f^2 / 2) / f^3` on [sqrt(1/2) - 1, sqrt(2) - 1], within 3.0e-8.
const LOG_F32: [f64; 9] = [
    0.33333331180030046,
    -0.24999996957950882,
    0.20000715748892103,
    -0.16667802319501254,
    0.1424905764569748,
    -0.12425687331451106,
    0.1168541992348674,
    -0.11479733846637637,
    0.06971611471451178,
];

/// `(ln(1 + f) - 2 s) / s` in even powers of `s = f / (2 + f)`: FreeBSD msun's `e_log.c`.
const LOG_F64: [f64; 7] = [
    0.6666666666666735,
    0.3999999999940942,
    0.2857142874366239,
    0.22222198432149784,
    0.1818357216161805,
    0.15313837699209373,
    0.14798198605116586,
];

impl Math<'_> {
    fn integer(&mut self, n: Value) -> Value {
        self.b.conv(Conv::FToS, n, self.bits_ty())
    }

    /// `r` within the range of finite results, 0 below it and infinity above.
    fn bounded(&mut self, x: Value, r: Value, below: f64, above: f64) -> Value {
        let (zero, infinity) = (self.c(0.0), self.c(f64::INFINITY));
        let r = self.pick(x, Cmp::Lt, below, zero, r);
        self.pick(x, Cmp::Gt, above, infinity, r)
    }

    pub(super) fn exp2(&mut self, x: Value) -> Value {
        if self.approx {
            // The instruction gives 0 for what is below the normal numbers: such results are taken 2^64 too large.
            let (up, none) = (self.c(64.0), self.c(0.0));
            let (down, one) = (self.c(f64::from_bits((1023 - 64) << 52)), self.c(1.0));
            let shift = self.pick(x, Cmp::Lt, -125.0, up, none);
            let scale = self.pick(x, Cmp::Lt, -125.0, down, one);
            let x = self.add(x, shift);
            let r = self.fun(FUn::Exp2Approx, x);
            return self.mul(r, scale);
        }
        let n = self.fun(FUn::RoundEven, x);
        let f = self.sub(x, n);
        let p = self.poly(f, if self.double() { &EXP2_F64 } else { &EXP2_F32 });
        let one = self.c(1.0);
        let p = self.fma(p, f, one);
        let n = self.integer(n);
        let r = self.scale(p, n);
        // Half the least subnormal, which rounds to 0; the least power of two that is too large.
        let (below, above) = if self.double() { (-1075.0, 1024.0) } else { (-150.0, 128.0) };
        self.bounded(x, r, below, above)
    }

    pub(super) fn exp(&mut self, x: Value) -> Value {
        if self.approx {
            return self.exp_approx(x);
        }
        let which = usize::from(self.double());
        let log2_e = self.c(LOG2_E);
        let n = self.mul(x, log2_e);
        let n = self.fun(FUn::RoundEven, n);
        let (ln2, rest) = (self.c2(-f64::from(LN_2 as f32), -LN_2), self.c(-LN_2_REST[which]));
        let f = self.fma(n, ln2, x);
        let f = self.fma(n, rest, f);
        let q = self.poly(f, if self.double() { &EXP_F64 } else { &EXP_F32 });
        let square = self.mul(f, f);
        let p = self.fma(square, q, f);
        let one = self.c(1.0);
        let p = self.add(p, one);
        let n = self.integer(n);
        let r = self.scale(p, n);
        let (below, above) = if self.double() { (-746.0, 710.0) } else { (-104.0, 89.0) };
        self.bounded(x, r, below, above)
    }

    /// `2^f 2^n` where `x = (f + n) ln 2` and `n` is the nearest integer that is the exponent of a normal number. So
    /// `f` is between -1/2 and 1/2 but for results near overflow and below 2^-126, which come out right too, and
    /// the approximation is within its own error.
    fn exp_approx(&mut self, x: Value) -> Value {
        // Added to 1.5 * 2^23, a number is rounded to an integer, which is then in the low bits.
        let magic = f64::from(3 << 22) + 127.0;
        let (log2_e, rest) = (self.c(LOG2_E), self.c(LOG2_E_REST[0]));
        let [least, zero, most] = [-126.0, 0.0, 127.0].map(|n| self.c(magic + n));
        let sum = self.fma(x, log2_e, zero);
        let sum = self.b.fbin(FBin::MaxNan, sum, least);
        let sum = self.b.fbin(FBin::MinNan, sum, most);
        let minus_n = self.sub(zero, sum);
        let f = self.fma(x, log2_e, minus_n);
        let f = self.fma(x, rest, f);
        let power = self.fun(FUn::Exp2Approx, f);
        let bits = self.bits_of(sum);
        let bits = self.b.shift_imm(IBin::Shl, bits, 23);
        let scale = self.float_of(bits);
        self.mul(power, scale)
    }

    /// `(e, f)` with `x = 2^e (1 + f)` and `1 + f` between sqrt(1/2) and sqrt(2), for positive finite `x`.
    fn split(&mut self, x: Value) -> (Value, Value) {
        let (digits, int) = (self.mantissa_bits(), self.bits_ty());
        let least = if self.double() { f64::MIN_POSITIVE } else { f32::MIN_POSITIVE.into() };
        let shift = f64::from(digits + 1);
        let scaled = self.mul_c(x, shift.exp2());
        let small = self.cmp(Cmp::Lt, x, least);
        let x = self.b.select(small, scaled, x);
        let (down, zero) = (self.c(-shift), self.c(0.0));
        let down = self.b.select(small, down, zero);
        let root = if self.double() { 0.5f64.sqrt().to_bits() as i64 } else { 0.5f32.sqrt().to_bits().into() };
        let bits = self.bits_of(x);
        let bits = self.b.add_imm(bits, -root);
        let e = self.b.shift_imm(IBin::ShrS, bits, digits);
        let e = self.b.conv(Conv::SToF, e, self.ty);
        let e = self.add(e, down);
        let fraction = self.b.iconst(int, (1 << digits) - 1);
        let fraction = self.b.and(bits, fraction);
        let fraction = self.b.add_imm(fraction, root);
        let m = self.float_of(fraction);
        let minus = self.c(-1.0);
        (e, self.add(m, minus))
    }

    /// `r`, but for operands of a logarithm without a finite result.
    fn logarithm_of(&mut self, x: Value, r: Value) -> Value {
        let (nan, infinity, minus) = (self.c(f64::NAN), self.c(f64::INFINITY), self.c(f64::NEG_INFINITY));
        let r = self.pick(x, Cmp::Eq, 0.0, minus, r);
        let r = self.pick(x, Cmp::Eq, f64::INFINITY, infinity, r);
        let negative = self.cmp(Cmp::Lt, x, 0.0);
        let unordered = self.b.fcmp(Cmp::Ne, x, x);
        let p = self.b.or(negative, unordered);
        self.b.select(p, nan, r)
    }

    /// `ln(1 + f) - f`: for `F32`, and for `F64` as `(f^2 / 2, s (f^2 / 2 + R))`, the second minus the first.
    fn log_rest(&mut self, f: Value) -> (Value, Value) {
        let half = self.c(0.5);
        let square = self.mul(f, f);
        let half_square = self.mul(half, square);
        if !self.double() {
            let p = self.poly(f, &LOG_F32);
            let cube = self.mul(square, f);
            return (half_square, self.mul(cube, p));
        }
        let two = self.c(2.0);
        let sum = self.add(two, f);
        let s = self.div(f, sum);
        let z = self.mul(s, s);
        let p = self.poly(z, &LOG_F64);
        let r = self.mul(z, p);
        let r = self.add(half_square, r);
        (half_square, self.mul(s, r))
    }

    pub(super) fn log(&mut self, x: Value) -> Value {
        let (e, f) = self.split(x);
        let (half_square, r) = self.log_rest(f);
        let which = usize::from(self.double());
        let (ln2, rest) = (self.c(LN_2), self.c(LN_2_REST[which]));
        let low = self.fma(e, rest, r);
        let low = self.sub(low, half_square);
        let sum = self.add(low, f);
        let sum = self.fma(e, ln2, sum);
        self.logarithm_of(x, sum)
    }

    pub(super) fn log2(&mut self, x: Value) -> Value {
        let (e, f) = self.split(x);
        let (half_square, r) = self.log_rest(f);
        let (log2_e, rest) = (self.c(LOG2_E), self.c(LOG2_E_REST[usize::from(self.double())]));
        // ln(1 + f) as a sum: what the first addend loses is put into the second.
        let (high, low) = if self.double() {
            let high = self.sub(f, half_square);
            let lost = self.sub(f, high);
            let lost = self.sub(lost, half_square);
            (high, self.add(lost, r))
        } else {
            (f, self.sub(r, half_square))
        };
        let small = self.mul(high, rest);
        let small = self.fma(low, log2_e, small);
        let product = self.mul(high, log2_e);
        let minus = self.fun(FUn::Neg, product);
        let lost = self.fma(high, log2_e, minus);
        let small = self.add(small, lost);
        let sum = self.add(e, product);
        // |e| is 0 or at least the product's size, so this is what the sum lost.
        let lost = self.sub(e, sum);
        let lost = self.add(lost, product);
        let small = self.add(small, lost);
        let sum = self.add(sum, small);
        self.logarithm_of(x, sum)
    }
}
