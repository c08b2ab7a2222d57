//! Functions that the Tile IR has no op for, each as a sequence of its ops: so they cost one node, are computed
//! again instead of stored where that is cheaper, and have gradients of their own. Halves are computed in `f32` and
//! rounded once.
//!
//! Errors as tested, in units in the last place of results that are not subnormal (`f32` / `f64`): `log1p` and `expm1`
//! 2 / 2, `erfc` 5 / 5 (4 but on CUDA).

use super::{Class, Primitive, arity};
use crate::graph::TensorType;
use crate::literal::{Literal, word_of};
use crate::tensor::Tensor;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use tilewright_compiler::DType;
use tilewright_compiler::tile::{BinaryOp, Builder, Built, Cmp, UnaryOp, Value};

/// Functions that lose all digits if they are written by `log`, `exp` and `erf`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Elementary {
    /// `log(1 + x)`, accurate near 0.
    Log1p,
    /// `exp(x) - 1`, accurate near 0.
    Expm1,
    /// `1 - erf(x)`, accurate where that is tiny.
    Erfc,
}

impl Elementary {
    const ALL: [Elementary; 3] = [Elementary::Log1p, Elementary::Expm1, Elementary::Erfc];

    fn text(self) -> &'static str {
        match self {
            Elementary::Log1p => "log1p",
            Elementary::Expm1 => "expm1",
            Elementary::Erfc => "erfc",
        }
    }
}

impl fmt::Display for Elementary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl FromStr for Elementary {
    type Err = ();
    fn from_str(s: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|e| e.text() == s).ok_or(())
    }
}

impl Primitive for Elementary {
    fn name(&self) -> String {
        self.text().into()
    }
    fn class(&self) -> Class {
        Class::Pointwise
    }
    fn infer(&self, args: &[&TensorType]) -> Result<TensorType, String> {
        arity(args, 1)?;
        if !args[0].dtype.is_float() {
            return Err(format!("it is defined for floats, not for {}", args[0]));
        }
        Ok(args[0].clone())
    }
    fn eval(&self, args: &[&Literal], out: &TensorType) -> Result<Literal, String> {
        let f = match self {
            Elementary::Log1p => libm::log1p,
            Elementary::Expm1 => libm::expm1,
            Elementary::Erfc => libm::erfc,
        };
        Ok(Literal::from_fn(out.clone(), |i| word_of(out.dtype, f(args[0].f64(i)))))
    }
    fn emit(&self, b: &mut Builder, args: &[Value]) -> Built {
        let own = b.ty(args[0]).dtype();
        let dtype = if own == DType::F64 { own } else { DType::F32 };
        let x = b.cast(args[0], dtype)?;
        let mut f = Formula { b, dtype };
        let y = match self {
            Elementary::Log1p => f.log1p(x)?,
            Elementary::Expm1 => f.expm1(x)?,
            Elementary::Erfc => f.erfc(x)?,
        };
        b.cast(y, own)
    }
    fn vjp(&self, args: &[Tensor], _: &Tensor, g: &Tensor) -> Vec<Option<Tensor>> {
        let x = &args[0];
        vec![Some(match self {
            Elementary::Log1p => g / (x + 1.0),
            Elementary::Expm1 => g * x.exp(),
            Elementary::Erfc => g * (x * x).neg().exp() * -std::f64::consts::FRAC_2_SQRT_PI,
        })]
    }
}

/// `(x, y)`: the remainder of floats with the sign of y, also if it is 0. Of integers it is an op of the Tile IR.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Remainder;

impl Primitive for Remainder {
    fn name(&self) -> String {
        "remainder".into()
    }
    fn class(&self) -> Class {
        Class::Pointwise
    }
    fn infer(&self, args: &[&TensorType]) -> Result<TensorType, String> {
        arity(args, 2)?;
        if args[0] != args[1] || !args[0].dtype.is_float() {
            return Err(format!("{} and {}: expected floats of one type and the same extents", args[0], args[1]));
        }
        Ok(args[0].clone())
    }
    fn eval(&self, args: &[&Literal], out: &TensorType) -> Result<Literal, String> {
        Ok(Literal::from_fn(out.clone(), |i| {
            let (x, y) = (args[0].f64(i), args[1].f64(i));
            let rest = x % y;
            let rest = if rest == 0.0 { 0f64.copysign(y) } else { rest };
            word_of(out.dtype, if (rest < 0.0) != (y < 0.0) && rest != 0.0 { rest + y } else { rest })
        }))
    }
    fn emit(&self, b: &mut Builder, args: &[Value]) -> Built {
        let (x, y) = (args[0], args[1]);
        let dtype = b.ty(x).dtype();
        let (zero, minus) = (b.const_f64(dtype, 0.0)?, b.const_f64(dtype, -0.0)?);
        let rest = b.binary(BinaryOp::Rem, x, y)?;
        let moved = b.binary(BinaryOp::Add, rest, y)?;
        let (low, below) = (b.compare(Cmp::Lt, rest, zero)?, b.compare(Cmp::Lt, y, zero)?);
        let opposite = b.binary(BinaryOp::Xor, low, below)?;
        let some = b.select(opposite, moved, rest)?;
        let none = b.select(below, minus, zero)?;
        let even = b.compare(Cmp::Eq, rest, zero)?;
        b.select(even, none, some)
    }
    fn vjp(&self, args: &[Tensor], out: &Tensor, g: &Tensor) -> Vec<Option<Tensor>> {
        // The quotient that was taken; `x / y` may round up to the next one.
        let quotient = ((&args[0] - out) / &args[1]).round();
        vec![Some(g.clone()), Some((g * quotient).neg())]
    }
}

/// `(1 + 2 x) exp(x^2) erfc(x)` in powers of `(x - 3) / (x + 3)` for x from 0 to infinity, within 3e-9: a Chebyshev
/// fit, as M. M. Shepherd and J. G. Laframboise propose in "Chebyshev approximation of (1 + 2x) exp(x^2) erfc x", 1981.
const ERFC_F32: [f64; 14] = [
    1.253008058,
    -0.1356211059,
    -0.04756229258,
    0.1296451356,
    -0.1192736926,
    0.06830839969,
    -0.02377032915,
    0.002527115521,
    0.001888102396,
    -0.0007731099389,
    -0.000104121541,
    0.000114629957,
    3.858826871e-06,
    -1.148164147e-05,
];

/// The same in powers of `(x - 3.75) / (x + 3.75)`, within 1e-17.
const ERFC_F64: [f64; 26] = [
    1.2375126308378275,
    -0.14024059858554702,
    0.0035854154854644583,
    0.08227673849015109,
    -0.10880393014175023,
    0.09230432116019638,
    -0.05869339858961116,
    0.02836227742154398,
    -0.009746579558275152,
    0.0017556258321915355,
    0.0002937136669846131,
    -0.0002901539781378384,
    5.1649093885821704e-05,
    2.238390827660038e-05,
    -1.1444134389658475e-05,
    -9.728413451815077e-07,
    1.7516189406943677e-06,
    -5.827501862768691e-08,
    -2.586489910718322e-07,
    2.4301839484503084e-08,
    3.866242066283792e-08,
    -4.396921916762906e-09,
    -5.169080644815932e-09,
    5.485084520083625e-10,
    4.2433038251096756e-10,
    -3.7980647235900285e-11,
];

/// Formulas in `f32` or `f64`.
struct Formula<'a> {
    b: &'a mut Builder,
    dtype: DType,
}

impl Formula<'_> {
    fn number(&mut self, value: f64) -> Built {
        self.b.const_f64(self.dtype, value)
    }

    fn two(&mut self, op: BinaryOp, x: Value, y: Value) -> Built {
        self.b.binary(op, x, y)
    }

    /// The polynomial with these coefficients, the constant first.
    fn polynomial(&mut self, x: Value, coefficients: &[f64]) -> Built {
        let mut sum = self.number(coefficients[coefficients.len() - 1])?;
        for &c in coefficients[..coefficients.len() - 1].iter().rev() {
            let c = self.number(c)?;
            sum = self.b.fma(sum, x, c)?;
        }
        Ok(sum)
    }

    /// `log(u)` with `u = 1 + x` rounded, and what the rounding took: `(x - (u - 1)) / u`, where there is any. At 0 x
    /// itself, for the sake of its sign.
    fn log1p(&mut self, x: Value) -> Built {
        let one = self.number(1.0)?;
        let zero = self.number(0.0)?;
        let u = self.two(BinaryOp::Add, x, one)?;
        let log = self.b.unary(UnaryOp::Log, u)?;
        let taken = self.two(BinaryOp::Sub, u, one)?;
        let rest = self.two(BinaryOp::Sub, x, taken)?;
        let quotient = self.two(BinaryOp::Div, rest, u)?;
        let sum = self.two(BinaryOp::Add, log, quotient)?;
        // Nothing was taken at -1; of infinity the difference is NaN.
        let size = self.b.unary(UnaryOp::Abs, rest)?;
        let some = self.b.compare(Cmp::Gt, size, zero)?;
        let y = self.b.select(some, sum, log)?;
        let same = self.b.compare(Cmp::Eq, u, one)?;
        self.b.select(same, x, y)
    }

    /// From -0.7 to 1 the series; beyond, the subtraction loses at most one bit.
    fn expm1(&mut self, x: Value) -> Built {
        // 1 / 2!, 1 / 3!, ..: the next term is below half a unit in the last place at 1.
        let terms = if self.dtype == DType::F64 { 18 } else { 10 };
        let mut coefficients = vec![0.5];
        for k in 1..terms {
            coefficients.push(coefficients[k - 1] / (k as f64 + 2.0));
        }
        let one = self.number(1.0)?;
        let zero = self.number(0.0)?;
        let lowest = self.number(-0.7)?;
        let square = self.two(BinaryOp::Mul, x, x)?;
        let series = self.polynomial(x, &coefficients)?;
        let series = self.b.fma(square, series, x)?;
        let exp = self.b.unary(UnaryOp::Exp, x)?;
        let far = self.two(BinaryOp::Sub, exp, one)?;
        let above = self.b.compare(Cmp::Gt, x, lowest)?;
        let below = self.b.compare(Cmp::Lt, x, one)?;
        let near = self.two(BinaryOp::And, above, below)?;
        let y = self.b.select(near, series, far)?;
        let tiny = self.b.compare(Cmp::Eq, square, zero)?;
        self.b.select(tiny, x, y)
    }

    /// A polynomial times the exponential of `-x^2`, which is computed to more than one word.
    fn erfc(&mut self, x: Value) -> Built {
        let double = self.dtype == DType::F64;
        let (centre, end) = if double { (3.75, 28.0) } else { (3.0, 11.0) };
        let zero = self.number(0.0)?;
        let one = self.number(1.0)?;
        let two = self.number(2.0)?;
        // Beyond the end the result is 0 in this type.
        let end = self.number(end)?;
        let size = self.b.unary(UnaryOp::Abs, x)?;
        let size = self.two(BinaryOp::Min, size, end)?;
        let centre = self.number(centre)?;
        let below = self.two(BinaryOp::Sub, size, centre)?;
        let above = self.two(BinaryOp::Add, size, centre)?;
        let t = self.two(BinaryOp::Div, below, above)?;
        let p = self.polynomial(t, if double { &ERFC_F64 } else { &ERFC_F32 })?;
        let divisor = self.b.fma(two, size, one)?;
        let p = self.two(BinaryOp::Div, p, divisor)?;
        // exp(-x^2) = exp(-h) exp(-l), where h is x^2 to one word and l the rest.
        let (high, factor) = if double { self.square_f64(size)? } else { self.square_f32(size)? };
        let minus = self.b.unary(UnaryOp::Neg, high)?;
        let e = self.b.unary(UnaryOp::Exp, minus)?;
        let p = self.b.fma(p, factor, p)?;
        let y = self.two(BinaryOp::Mul, e, p)?;
        let other = self.two(BinaryOp::Sub, two, y)?;
        let negative = self.b.compare(Cmp::Lt, x, zero)?;
        let far = self.b.select(negative, other, y)?;
        // Near 0 the difference cancels nothing.
        let erf = self.b.unary(UnaryOp::Erf, x)?;
        let near = self.two(BinaryOp::Sub, one, erf)?;
        let third = self.number(0.35)?;
        let small = self.b.compare(Cmp::Lt, size, third)?;
        self.b.select(small, near, far)
    }

    /// `x^2` rounded, and `exp(-l) - 1` for what the rounding took: that is below 2^-17 here, where one term will do.
    fn square_f32(&mut self, x: Value) -> Built<(Value, Value)> {
        let high = self.two(BinaryOp::Mul, x, x)?;
        let minus = self.b.unary(UnaryOp::Neg, high)?;
        let low = self.b.fma(x, x, minus)?;
        Ok((high, self.b.unary(UnaryOp::Neg, low)?))
    }

    /// The same without relying on `fma`, which some devices do not have in `f64`: the square of the upper 26 bits of x
    /// is exact. What is left is below 2^-15, and takes three terms.
    fn square_f64(&mut self, x: Value) -> Built<(Value, Value)> {
        let bits = self.b.bitcast(x, DType::I64)?;
        let mask = self.b.const_i64(DType::I64, !((1 << 27) - 1))?;
        let bits = self.two(BinaryOp::And, bits, mask)?;
        let upper = self.b.bitcast(bits, DType::F64)?;
        let high = self.two(BinaryOp::Mul, upper, upper)?;
        let lower = self.two(BinaryOp::Sub, upper, x)?;
        let both = self.two(BinaryOp::Add, upper, x)?;
        let l = self.two(BinaryOp::Mul, lower, both)?;
        let series = self.polynomial(l, &[1.0, 0.5, 1.0 / 6.0])?;
        Ok((high, self.two(BinaryOp::Mul, l, series)?))
    }
}
