//! The error function and the hyperbolic tangent: an odd polynomial near 0, an exponential beyond.

use super::Math;
use crate::thread::{Cmp, FBin, FUn, Value};

/// `(tanh(x) - x) / x^3` in powers of x^2 on [0, 0.65], within 3e-9.
const TANH_F32: [f64; 6] = [
    -0.3333333308402023,
    0.13333290745796622,
    -0.05395634939676749,
    0.021746187089059184,
    -0.008272456732589646,
    0.0022149027425040586,
];

/// The same on [0, 0.625] as a quotient: Cephes' `tanh.c`.
const TANH_F64: [&[f64]; 2] = [
    &[-1614.6876844170845, -99.28772310019185, -0.9643991794250523],
    &[4844.063053251255, 2235.4883906010045, 112.81167849163293, 1.0],
];

/// `erf(x) / x - 1` in powers of x^2 on [0, 0.93], and `ln(1 - erf(x)) + x` over x beyond, for `F32`: fits by
/// N. Juffa, https://stackoverflow.com/questions/35148198.
const ERF_F32: [f64; 6] = [0.128379166, -0.376125336, 0.112819925, -0.0267681349, 0.00499119423, -0.000596761703];
const ERFC_F32: [f64; 6] = [-0.128717512, -0.634846687, -0.106777877, 0.0242546219, -0.00388396438, 0.000383197126];
const ERFC_F32_LAST: f64 = -1.7285347e-05;

/// `F64`, from FreeBSD msun's `s_erf.c`: numerator and denominator on [0, 0.84375], [0.84375, 1.25], [1.25, 1/0.35]
/// and beyond.
const ERF_F64: [[&[f64]; 2]; 4] = [
    [
        &[
            0.12837916709551256,
            -0.3250421072470015,
            -0.02848174957559851,
            -0.005770270296489442,
            -2.3763016656650163e-05,
        ],
        &[
            1.0,
            0.39791722395915535,
            0.0650222499887673,
            0.005081306281875766,
            0.00013249473800432164,
            -3.960228278775368e-06,
        ],
    ],
    [
        &[
            -0.0023621185607526594,
            0.41485611868374833,
            -0.3722078760357013,
            0.31834661990116175,
            -0.11089469428239668,
            0.035478304325618236,
            -0.002166375594868791,
        ],
        &[
            1.0,
            0.10642088040084423,
            0.540397917702171,
            0.07182865441419627,
            0.12617121980876164,
            0.01363708391202905,
            0.011984499846799107,
        ],
    ],
    [
        &[
            -0.009864944034847148,
            -0.6938585727071818,
            -10.558626225323291,
            -62.375332450326006,
            -162.39666946257347,
            -184.60509290671104,
            -81.2874355063066,
            -9.814329344169145,
        ],
        &[
            1.0,
            19.651271667439257,
            137.65775414351904,
            434.56587747522923,
            645.3872717332679,
            429.00814002756783,
            108.63500554177944,
            6.570249770319282,
            -0.0604244152148581,
        ],
    ],
    [
        &[
            -0.0098649429247001,
            -0.799283237680523,
            -17.757954917754752,
            -160.63638485582192,
            -637.5664433683896,
            -1025.0951316110772,
            -483.5191916086514,
        ],
        &[
            1.0,
            30.33806074348246,
            325.7925129965739,
            1536.729586084437,
            3199.8582195085955,
            2553.0504064331644,
            474.52854120695537,
            -22.44095244658582,
        ],
    ],
];

/// `erf(1)` to 24 bits; `ERF_F64` has the rest in its second row.
const ERF_1: f64 = 0.8450629115104675;

impl Math<'_> {
    pub(super) fn tanh(&mut self, x: Value) -> Value {
        let z = self.mul(x, x);
        let p = if self.double() {
            let (p, q) = (self.poly(z, TANH_F64[0]), self.poly(z, TANH_F64[1]));
            self.div(p, q)
        } else {
            self.poly(z, &TANH_F32)
        };
        let magnitude = self.fun(FUn::Abs, x);
        let cube = self.mul(z, magnitude);
        let small = self.fma(cube, p, magnitude);

        // 1 - 2 / (e^(2 |x|) + 1); the quotient is 0 where the exponential is infinite.
        let e = if self.approx {
            // Its error counts for less the greater it is.
            let x = self.mul_c(magnitude, 2.0 * std::f64::consts::LOG2_E);
            self.fun(FUn::Exp2Approx, x)
        } else {
            let twice = self.add(magnitude, magnitude);
            self.exp(twice)
        };
        let (one, two) = (self.c(1.0), self.c(2.0));
        let e = self.add(e, one);
        let minus = if self.approx {
            let r = self.fun(FUn::RcpApprox, e);
            self.mul_c(r, -2.0)
        } else {
            let q = self.div(two, e);
            self.fun(FUn::Neg, q)
        };
        let large = self.add(one, minus);
        let limit = if self.double() { 0.625 } else { 0.65 };
        let r = self.pick(magnitude, Cmp::Lt, limit, small, large);
        self.with_sign(r, x)
    }

    pub(super) fn erf(&mut self, x: Value) -> Value {
        if self.double() { self.erf_f64(x) } else { self.erf_f32(x) }
    }

    fn erf_f32(&mut self, x: Value) -> Value {
        let z = self.mul(x, x);
        let p = self.poly(z, &ERF_F32);
        let small = self.fma(p, x, x);

        // Beyond 10 the result is 1; infinity would give NaN.
        let ten = self.c(10.0);
        let magnitude = self.fun(FUn::Abs, x);
        let t = self.b.fbin(FBin::MinNan, magnitude, ten);
        let square = self.mul(t, t);
        // Horner's scheme with the two highest terms apart: the coefficients were fitted for this order of rounding.
        let high = self.poly(t, &[ERFC_F32[5], ERFC_F32_LAST]);
        let next = self.poly(t, &[ERFC_F32[3], ERFC_F32[4]]);
        let r = self.fma(high, square, next);
        let r = ERFC_F32[..3].iter().rev().fold(r, |r, &c| {
            let c = self.c(c);
            self.fma(r, t, c)
        });
        let minus = self.fun(FUn::Neg, t);
        let r = self.fma(r, t, minus);
        let e = self.exp(r);
        let one = self.c(1.0);
        let large = self.sub(one, e);
        let large = self.with_sign(large, x);
        self.pick(magnitude, Cmp::Le, 475.0 / 512.0, small, large)
    }

    fn erf_f64(&mut self, x: Value) -> Value {
        let magnitude = self.fun(FUn::Abs, x);
        let ranges: Vec<_> =
            [0.84375, 1.25, 1.0 / 0.35].iter().map(|&limit| self.cmp(Cmp::Lt, magnitude, limit)).collect();
        let by_range = |m: &mut Self, values: [Value; 4]| {
            let [a, b, c, d] = values;
            let r = m.b.select(ranges[2], c, d);
            let r = m.b.select(ranges[1], b, r);
            m.b.select(ranges[0], a, r)
        };
        let (one, six) = (self.c(1.0), self.c(6.0));
        let square = self.mul(x, x);
        let beyond_one = self.sub(magnitude, one);
        // Beyond 6 the result is 1.
        let bounded = self.b.fbin(FBin::MinNan, magnitude, six);
        let bounded_square = self.mul(bounded, bounded);
        let inverse = self.div(one, bounded_square);
        let argument = by_range(self, [square, beyond_one, inverse, inverse]);
        let [numerator, denominator] = [0, 1].map(|part| {
            let terms = ERF_F64.iter().map(|r| r[part].len()).max().unwrap_or(0);
            let coefficients: Vec<_> = (0..terms)
                .map(|k| {
                    let rows = [0, 1, 2, 3].map(|r| ERF_F64[r][part].get(k).copied().unwrap_or(0.0));
                    let rows = rows.map(|c| self.c(c));
                    by_range(self, rows)
                })
                .collect();
            self.poly_of(argument, &coefficients)
        });
        let quotient = self.div(numerator, denominator);

        let small = self.fma(quotient, magnitude, magnitude);
        let erf_1 = self.c(ERF_1);
        let middle = self.add(erf_1, quotient);
        // 1 - e^(-x^2 - 0.5625 + R / S) / x. The subtrahend is below 0.08, so that its own error counts little.
        let minus = self.fun(FUn::Neg, bounded);
        let offset = self.c(-0.5625);
        let exponent = self.add(quotient, offset);
        let exponent = self.fma(minus, bounded, exponent);
        let e = self.exp(exponent);
        let rest = self.div(e, bounded);
        let large = self.sub(one, rest);
        let r = by_range(self, [small, middle, large, large]);
        self.with_sign(r, x)
    }
}
