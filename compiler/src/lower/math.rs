//! Elementary functions as Thread IR: the same sequence of exact operations, and so the same bits, on every target
//! (except where [`Caps::approx`] lets the hardware's approximations in).
//!
//! Errors, as tested: F32 at most 2 ulp, F64 at most 4 ulp. Sine and cosine hold that for every finite operand. With
//! [`Caps::approx`], results of `exp2_approx` below 2^-126 are 0; those of `exp2` are right.
//! Coefficients without a named source are Chebyshev fits on the interval stated beside them.

mod erf;
mod exponential;
mod remainder;
#[cfg(test)]
mod tests;
mod trig;

pub use remainder::fmod;

use crate::target::Caps;
use crate::thread::{Builder, Cmp, FBin, FUn, IBin, Op, Ty, Value};
use crate::tile::ops::UnaryOp;

/// A float function of `x`, which is `F32` or `F64`.
///
/// # Panics
/// If `op` is `Not`, which floats do not have.
pub fn unary(b: &mut Builder, caps: &Caps, op: UnaryOp, x: Value) -> Value {
    let ty = b.ty(x);
    let approx = caps.approx && ty == Ty::F32;
    let mut m = Math { b, ty, approx };
    match op {
        UnaryOp::Neg => m.fun(FUn::Neg, x),
        UnaryOp::Abs => m.fun(FUn::Abs, x),
        UnaryOp::Sqrt => m.fun(FUn::Sqrt, x),
        UnaryOp::Floor => m.fun(FUn::Floor, x),
        UnaryOp::Ceil => m.fun(FUn::Ceil, x),
        UnaryOp::Trunc => m.fun(FUn::Trunc, x),
        UnaryOp::Round => m.fun(FUn::RoundEven, x),
        UnaryOp::Exp => m.exp(x),
        UnaryOp::Exp2Approx if m.approx => m.fun(FUn::Exp2Approx, x),
        UnaryOp::Exp2 | UnaryOp::Exp2Approx => m.exp2(x),
        UnaryOp::Log => m.log(x),
        UnaryOp::Log2 => m.log2(x),
        UnaryOp::Sin => m.sin(x),
        UnaryOp::Cos => m.cos(x),
        UnaryOp::Tanh => m.tanh(x),
        UnaryOp::Erf => m.erf(x),
        UnaryOp::Rsqrt => m.rsqrt(x),
        UnaryOp::Not => panic!("`not` is for integers and truth values"),
    }
}

/// Short names for building formulas in one float type.
struct Math<'a> {
    b: &'a mut Builder,
    ty: Ty,
    /// May the hardware's approximations be used?
    approx: bool,
}

impl Math<'_> {
    fn double(&self) -> bool {
        self.ty == Ty::F64
    }

    /// The integer type of the same width.
    fn bits_ty(&self) -> Ty {
        if self.double() { Ty::I64 } else { Ty::I32 }
    }

    /// Bits after the leading one of a significand, as stored.
    fn mantissa_bits(&self) -> u32 {
        if self.double() { 52 } else { 23 }
    }

    fn bias(&self) -> i64 {
        if self.double() { 1023 } else { 127 }
    }

    fn c(&mut self, value: f64) -> Value {
        self.b.fconst(self.ty, value)
    }

    /// One constant for `F32`, another for `F64`.
    fn c2(&mut self, f32: f64, f64: f64) -> Value {
        self.c(if self.double() { f64 } else { f32 })
    }

    fn fun(&mut self, op: FUn, a: Value) -> Value {
        self.b.fun(op, a)
    }

    fn add(&mut self, a: Value, b: Value) -> Value {
        self.b.fbin(FBin::Add, a, b)
    }

    fn sub(&mut self, a: Value, b: Value) -> Value {
        self.b.fbin(FBin::Sub, a, b)
    }

    fn mul(&mut self, a: Value, b: Value) -> Value {
        self.b.fbin(FBin::Mul, a, b)
    }

    fn mul_c(&mut self, a: Value, c: f64) -> Value {
        let c = self.c(c);
        self.mul(a, c)
    }

    fn div(&mut self, a: Value, b: Value) -> Value {
        self.b.fbin(FBin::Div, a, b)
    }

    fn fma(&mut self, a: Value, b: Value, c: Value) -> Value {
        self.b.fma(a, b, c)
    }

    /// `c[0] + c[1] x + c[2] x^2 + ...`
    fn poly(&mut self, x: Value, coefficients: &[f64]) -> Value {
        let coefficients: Vec<_> = coefficients.iter().map(|&c| self.c(c)).collect();
        self.poly_of(x, &coefficients)
    }

    fn poly_of(&mut self, x: Value, coefficients: &[Value]) -> Value {
        let (&last, rest) = coefficients.split_last().expect("a polynomial has a coefficient");
        rest.iter().rev().fold(last, |sum, &c| self.fma(sum, x, c))
    }

    fn cmp(&mut self, op: Cmp, a: Value, c: f64) -> Value {
        let c = self.c(c);
        self.b.fcmp(op, a, c)
    }

    /// `yes` where `x op c`, else `no`.
    fn pick(&mut self, x: Value, op: Cmp, c: f64, yes: Value, no: Value) -> Value {
        let p = self.cmp(op, x, c);
        self.b.select(p, yes, no)
    }

    fn bits_of(&mut self, a: Value) -> Value {
        self.b.bitcast(a, self.bits_ty())
    }

    fn float_of(&mut self, a: Value) -> Value {
        self.b.bitcast(a, self.ty)
    }

    /// The magnitude of `a` with the sign of `sign`. `a` is not negative.
    fn with_sign(&mut self, a: Value, sign: Value) -> Value {
        let (a, sign) = (self.bits_of(a), self.bits_of(sign));
        let mask = if self.double() { i64::MIN } else { i64::from(i32::MIN) };
        let sign = self.b.and_imm(sign, mask);
        let r = self.b.or(a, sign);
        self.float_of(r)
    }

    /// `2^n` for `n`, an integer of the float's width, in the range of normal numbers.
    fn power_of_two(&mut self, n: Value) -> Value {
        let biased = self.b.add_imm(n, self.bias());
        let bits = self.b.shift_imm(IBin::Shl, biased, self.mantissa_bits());
        self.float_of(bits)
    }

    /// `a 2^n`, rounded once, for `n` twice as far out as normal numbers reach.
    fn scale(&mut self, a: Value, n: Value) -> Value {
        let half = self.b.shift_imm(IBin::ShrS, n, 1);
        let rest = self.b.sub(n, half);
        let (half, rest) = (self.power_of_two(half), self.power_of_two(rest));
        let a = self.mul(a, half);
        self.mul(a, rest)
    }

    fn rsqrt(&mut self, x: Value) -> Value {
        if self.approx {
            // The hardware takes subnormals for 0.
            let scaled = self.mul_c(x, 2f64.powi(24));
            let small = self.cmp(Cmp::Lt, x, 2f64.powi(-126));
            let operand = self.b.select(small, scaled, x);
            let r = self.fun(FUn::RsqrtApprox, operand);
            let scaled = self.mul_c(r, 2f64.powi(12));
            return self.b.select(small, scaled, r);
        }
        let (one, root) = (self.c(1.0), self.fun(FUn::Sqrt, x));
        self.div(one, root)
    }

    /// `rare(x)` where `condition` holds, else `common`, without computing `rare` in warps where it does not.
    fn rarely<const N: usize>(
        &mut self,
        condition: Value,
        x: Value,
        common: [Value; N],
        rare: impl FnOnce(&mut Self, Value) -> [Value; N],
    ) -> [Value; N] {
        match self.b.bits(condition) {
            Some(0) => common,
            Some(_) => rare(self, x),
            None => {
                self.b.begin_if(condition);
                // The builder moves pure ops out of blocks they do not depend on; this one stays, and so do its users.
                let (bits, zero) = (self.bits_of(x), self.b.iconst(self.bits_ty(), 0));
                let bits = self.b.emit(Op::IBin(IBin::Or), vec![bits, zero], &[self.bits_ty()])[0];
                let x = self.float_of(bits);
                let r = rare(self, x);
                self.b.begin_else(&r);
                let r = self.b.end_if(&common);
                r.try_into().expect("an `if` gives what its blocks give")
            }
        }
    }
}
