//! Pointwise primitives. Their meaning is that of the Tile IR's ops of the same names, so that a fused kernel, an unfused
//! one and the host agree bit for bit (elementary functions: to the device's accuracy).

use super::{Class, Primitive, arity};
use crate::graph::TensorType;
use crate::literal::Literal;
use crate::tensor::Tensor;
use serde::{Deserialize, Serialize};
use tilewright_compiler::DType;
use tilewright_compiler::interp::scalar::eval_elementwise;
use tilewright_compiler::tile::{BinaryOp, Builder, Built, Cmp, Op as TileOp, TileType, UnaryOp, Value, rules};

/// Asks the Tile IR's typing rules.
fn check(op: &TileOp, args: &[&TensorType], out: DType) -> Result<(), String> {
    let tiles: Vec<_> = args.iter().map(|t| TileType::scalar(t.dtype)).collect();
    rules::check(op, &tiles, &[TileType::scalar(out)]).map_err(|p| p.message)
}

fn same_dims(args: &[&TensorType]) -> Result<(), String> {
    match args.iter().find(|t| t.dims != args[0].dims) {
        Some(t) => Err(format!("operands have different extents: {} and {t}", args[0])),
        None => Ok(()),
    }
}

fn eval(op: &TileOp, args: &[&Literal], out: &TensorType) -> Result<Literal, String> {
    let types: Vec<_> = args.iter().map(|a| a.ty().dtype).collect();
    let mut words = vec![0; args.len()];
    let mut failed = false;
    let literal = Literal::from_fn(out.clone(), |i| {
        for (w, a) in words.iter_mut().zip(args) {
            *w = a.word(i);
        }
        eval_elementwise(op, &types, &words, out.dtype).unwrap_or_else(|| {
            failed = true;
            0
        })
    });
    if failed { Err(format!("{} is not defined for {types:?}", op.mnemonic())) } else { Ok(literal) }
}

impl Primitive for UnaryOp {
    fn name(&self) -> String {
        UnaryOp::name(*self).into()
    }
    fn class(&self) -> Class {
        Class::Pointwise
    }
    fn infer(&self, args: &[&TensorType]) -> Result<TensorType, String> {
        arity(args, 1)?;
        check(&TileOp::Unary(*self), args, args[0].dtype)?;
        Ok(args[0].clone())
    }
    fn eval(&self, args: &[&Literal], out: &TensorType) -> Result<Literal, String> {
        eval(&TileOp::Unary(*self), args, out)
    }
    fn emit(&self, b: &mut Builder, args: &[Value]) -> Built {
        b.unary(*self, args[0])
    }
    fn vjp(&self, args: &[Tensor], out: &Tensor, g: &Tensor) -> Vec<Option<Tensor>> {
        let x = &args[0];
        vec![match self {
            UnaryOp::Neg => Some(g.neg()),
            // At 0 and at NaN the sign is 0, and so is the gradient.
            UnaryOp::Abs => Some(g * x.sign()),
            UnaryOp::Exp => Some(g * out),
            UnaryOp::Exp2 | UnaryOp::Exp2Approx => Some(g * out * std::f64::consts::LN_2),
            UnaryOp::Log => Some(g / x),
            UnaryOp::Log2 => Some(g / x / std::f64::consts::LN_2),
            UnaryOp::Sin => Some(g * x.cos()),
            UnaryOp::Cos => Some((g * x.sin()).neg()),
            UnaryOp::Tanh => Some(g * (1.0 - out * out)),
            UnaryOp::Erf => Some(g * (x * x).neg().exp() * std::f64::consts::FRAC_2_SQRT_PI),
            UnaryOp::Sqrt => Some(g * 0.5 / out),
            UnaryOp::Rsqrt => Some(g * out * out * out * -0.5),
            UnaryOp::Not | UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Trunc | UnaryOp::Round => None,
        }]
    }
}

impl Primitive for BinaryOp {
    fn name(&self) -> String {
        BinaryOp::name(*self).into()
    }
    fn class(&self) -> Class {
        Class::Pointwise
    }
    fn infer(&self, args: &[&TensorType]) -> Result<TensorType, String> {
        arity(args, 2)?;
        same_dims(args)?;
        check(&TileOp::Binary(*self), args, args[0].dtype)?;
        Ok(args[0].clone())
    }
    fn eval(&self, args: &[&Literal], out: &TensorType) -> Result<Literal, String> {
        eval(&TileOp::Binary(*self), args, out)
    }
    fn emit(&self, b: &mut Builder, args: &[Value]) -> Built {
        b.binary(*self, args[0], args[1])
    }
    fn vjp(&self, args: &[Tensor], out: &Tensor, g: &Tensor) -> Vec<Option<Tensor>> {
        let (x, y) = (&args[0], &args[1]);
        // The gradient goes to the operand that was chosen; half to each of equal ones.
        let unless = |first_lost: Tensor, second_lost: Tensor| {
            let (half, zero) = (g * 0.5, g.zeros_like());
            let tie = x.eq_(y).where_(&half, g);
            vec![Some(first_lost.where_(&zero, &tie)), Some(second_lost.where_(&zero, &tie))]
        };
        // `fmax` passes over NaN, unless both are.
        let first_nan = || x.ne_(x).and(y.eq_(y));
        match self {
            BinaryOp::Add => vec![Some(g.clone()), Some(g.clone())],
            BinaryOp::Sub => vec![Some(g.clone()), Some(g.neg())],
            BinaryOp::Mul => vec![Some(g * y), Some(g * x)],
            BinaryOp::Div => vec![Some(g / y), Some((g * out / y).neg())],
            // The quotient that was taken; `x / y` may round up to the next one.
            BinaryOp::Rem => vec![Some(g.clone()), Some((g * ((x - out) / y).round()).neg())],
            BinaryOp::Max => unless(x.lt(y), x.gt(y)),
            BinaryOp::Min => unless(x.gt(y), x.lt(y)),
            BinaryOp::FMax => unless(x.lt(y).or(first_nan()), x.gt(y).or(y.ne_(y))),
            BinaryOp::FMin => unless(x.gt(y).or(first_nan()), x.lt(y).or(y.ne_(y))),
            BinaryOp::FloorDiv
            | BinaryOp::FloorMod
            | BinaryOp::MulHi
            | BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Xor
            | BinaryOp::Shl
            | BinaryOp::Shr => vec![None, None],
        }
    }
}

impl Primitive for Cmp {
    fn name(&self) -> String {
        Cmp::name(*self).into()
    }
    fn class(&self) -> Class {
        Class::Pointwise
    }
    fn infer(&self, args: &[&TensorType]) -> Result<TensorType, String> {
        arity(args, 2)?;
        same_dims(args)?;
        check(&TileOp::Compare(*self), args, DType::Bool)?;
        Ok(args[0].with_dtype(DType::Bool))
    }
    fn eval(&self, args: &[&Literal], out: &TensorType) -> Result<Literal, String> {
        eval(&TileOp::Compare(*self), args, out)
    }
    fn emit(&self, b: &mut Builder, args: &[Value]) -> Built {
        b.compare(*self, args[0], args[1])
    }
    fn vjp(&self, _: &[Tensor], _: &Tensor, _: &Tensor) -> Vec<Option<Tensor>> {
        vec![None, None]
    }
}

/// `(condition: bool, x, y)`: x where the condition holds, else y.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Select;

impl Primitive for Select {
    fn name(&self) -> String {
        "select".into()
    }
    fn class(&self) -> Class {
        Class::Pointwise
    }
    fn infer(&self, args: &[&TensorType]) -> Result<TensorType, String> {
        arity(args, 3)?;
        same_dims(args)?;
        check(&TileOp::Select, args, args[1].dtype)?;
        Ok(args[1].clone())
    }
    fn eval(&self, args: &[&Literal], out: &TensorType) -> Result<Literal, String> {
        eval(&TileOp::Select, args, out)
    }
    fn emit(&self, b: &mut Builder, args: &[Value]) -> Built {
        b.select(args[0], args[1], args[2])
    }
    fn vjp(&self, args: &[Tensor], _: &Tensor, g: &Tensor) -> Vec<Option<Tensor>> {
        let zero = g.zeros_like();
        vec![None, Some(args[0].where_(g, &zero)), Some(args[0].where_(&zero, g))]
    }
}

/// The same value, through which no gradient passes.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Detach;

impl Primitive for Detach {
    fn name(&self) -> String {
        "detach".into()
    }
    fn class(&self) -> Class {
        Class::Pointwise
    }
    fn infer(&self, args: &[&TensorType]) -> Result<TensorType, String> {
        arity(args, 1)?;
        Ok(args[0].clone())
    }
    fn eval(&self, args: &[&Literal], _: &TensorType) -> Result<Literal, String> {
        Ok(args[0].clone())
    }
    fn emit(&self, _: &mut Builder, args: &[Value]) -> Built {
        Ok(args[0])
    }
    fn vjp(&self, _: &[Tensor], _: &Tensor, _: &Tensor) -> Vec<Option<Tensor>> {
        vec![None]
    }
}

/// The value in another type, by the rules of Rust's `as`.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Cast {
    /// The type of the result.
    #[serde(with = "super::by_name")]
    pub to: DType,
}

impl Primitive for Cast {
    fn name(&self) -> String {
        "cast".into()
    }
    fn class(&self) -> Class {
        Class::Pointwise
    }
    fn infer(&self, args: &[&TensorType]) -> Result<TensorType, String> {
        arity(args, 1)?;
        Ok(args[0].with_dtype(self.to))
    }
    fn eval(&self, args: &[&Literal], out: &TensorType) -> Result<Literal, String> {
        eval(&TileOp::Cast, args, out)
    }
    fn emit(&self, b: &mut Builder, args: &[Value]) -> Built {
        b.cast(args[0], self.to)
    }
    fn vjp(&self, args: &[Tensor], _: &Tensor, g: &Tensor) -> Vec<Option<Tensor>> {
        let from = args[0].dtype();
        vec![(from.is_float() && self.to.is_float()).then(|| g.cast(from))]
    }
}
