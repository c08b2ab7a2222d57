//! The closed set of primitives, each with everything there is to know of it in one file: its rule of shapes and types,
//! its meaning on the host, its gradient, its cost, and how it is lowered.
//!
//! Primitives are strict: nothing is broadcast, no type is promoted. [`crate::tensor`] does both, by explicit primitives.
//!
//! | file | primitives |
//! |---|---|
//! | [`pointwise`] | the functions of one and two operands, comparisons, select, cast, detach |
//! | [`elementary`] | log1p, expm1, erfc, remainder |
//! | [`create`] | full, iota |
//! | [`views`] | reshape, permute, broadcast_in_dim, slice: no arithmetic, other coordinates |
//! | [`assemble`] | pad, cat: a tensor made of parts |
//! | [`reduce`] | sum, prod, max, min, all, any, xor; argmax, argmin |
//! | [`dot`] | batched matrix products |
//! | [`attention`] | attention, its sums of exponentials, its gradients |
//! | [`index`] | gather and scatter-add of rows |
//! | [`scan`] | cumulative sums |

pub mod assemble;
pub mod attention;
pub mod create;
pub mod dot;
pub mod elementary;
pub mod index;
pub mod pointwise;
pub mod reduce;
pub mod scan;
pub mod views;

use crate::fuse::map::Affine;
use crate::graph::TensorType;
use crate::literal::Literal;
use crate::tensor::Tensor;
pub use assemble::{Cat, Pad};
pub use attention::{Attention, AttentionGrad, AttentionRow};
pub use create::{Full, Iota};
pub use dot::Dot;
pub use elementary::{Elementary, Remainder};
pub use index::{Gather, ScatterAdd};
pub use pointwise::{Cast, Detach, Select};
pub use reduce::{ArgReduce, Reduce};
pub use scan::Cumsum;
use serde::{Deserialize, Serialize};
use std::fmt;
use tilewright_compiler::tile::{BinaryOp, Builder, Built, Cmp, UnaryOp, Value};
pub use views::{Broadcast, Permute, Reshape, Slice};

/// A primitive with its attributes.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// An argument of the graph.
    Input,
    /// A tensor of one number repeated.
    Full(Full),
    /// Coordinates along one axis.
    Iota(Iota),
    /// A function of one operand, element by element.
    Unary(#[serde(with = "by_name")] UnaryOp),
    /// A function of one operand that takes several ops of the Tile IR, element by element.
    Elementary(#[serde(with = "by_name")] Elementary),
    /// The remainder of floats with the sign of the divisor.
    Remainder(Remainder),
    /// A function of two operands, element by element.
    Binary(#[serde(with = "by_name")] BinaryOp),
    /// A comparison, element by element.
    Compare(#[serde(with = "by_name")] Cmp),
    /// One of two operands, element by element.
    Select(Select),
    /// Rust's `as`, element by element.
    Cast(Cast),
    /// The same value without a gradient.
    Detach(Detach),
    /// Other extents.
    Reshape(Reshape),
    /// Dimensions in another order.
    Permute(Permute),
    /// Repetition along new dimensions.
    Broadcast(Broadcast),
    /// A part.
    Slice(Slice),
    /// A larger tensor around.
    Pad(Pad),
    /// Several tensors, one after another.
    Cat(Cat),
    /// A reduction.
    Reduce(Reduce),
    /// The place of the greatest or least.
    ArgReduce(ArgReduce),
    /// Matrix products.
    Dot(Dot),
    /// Weighted means of values.
    Attention(Attention),
    /// The logarithms of the sums that attention divides by.
    AttentionRow(AttentionRow),
    /// The gradient of an operand of attention.
    AttentionGrad(AttentionGrad),
    /// Rows of a table.
    Gather(Gather),
    /// Sums into rows of a table.
    ScatterAdd(ScatterAdd),
    /// Sums so far.
    Cumsum(Cumsum),
}

/// How a primitive takes part in fusion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// An argument.
    Input,
    /// Costs nothing to make anew wherever it is needed.
    Create,
    /// Reads its operand at other coordinates.
    View,
    /// Each element from the elements at the same coordinates.
    Pointwise,
    /// Each element from rows at computed coordinates.
    Gather,
    /// Combines along dimensions.
    Reduce,
    /// Matrix product.
    Dot,
    /// Sums into rows at computed places.
    Scatter,
    /// Attention, or one of the results that come with it.
    Attention,
    /// Written part by part into one buffer.
    Assemble,
    /// Rewritten into other primitives before lowering.
    Composite,
}

/// What a primitive costs at least.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cost {
    /// Operations on elements.
    pub flops: u64,
    /// Bytes read and written if nothing is fused.
    pub bytes: u64,
}

/// Everything there is to know of a primitive.
pub trait Primitive {
    /// The name in graph text.
    fn name(&self) -> String;
    /// The attributes in graph text; empty if there are none.
    fn attributes(&self) -> String {
        String::new()
    }
    /// How it takes part in fusion.
    fn class(&self) -> Class;
    /// The type of the result, or why the operands do not fit.
    fn infer(&self, args: &[&TensorType]) -> Result<TensorType, String>;
    /// The result for operands that fit, or what is wrong with their values.
    fn eval(&self, args: &[&Literal], out: &TensorType) -> Result<Literal, String>;
    /// The gradients of the operands, from that of the result; `None` where there is none to pass on.
    fn vjp(&self, args: &[Tensor], out: &Tensor, grad: &Tensor) -> Vec<Option<Tensor>>;
    /// Operations on elements.
    fn flops(&self, _args: &[&TensorType], out: &TensorType) -> u64 {
        out.elements() as u64
    }
    /// Lowering of pointwise primitives: the tile of the result from tiles of the operands.
    fn emit(&self, b: &mut Builder, _args: &[Value]) -> Built {
        Err(b.error(format!("`{}` is not pointwise", self.name())))
    }
    /// Lowering of views: the coordinates in the operand for coordinates of the result (each an affine function of the
    /// loop variables, whose extents are given); `None` if they are not affine.
    fn source(&self, _arg: &TensorType, _out: &TensorType, _at: &[Affine], _extents: &[usize]) -> Option<Vec<Affine>> {
        None
    }
    /// Lowering of composite primitives: the same in other primitives.
    fn decompose(&self, _args: &[Tensor]) -> Option<Tensor> {
        None
    }
}

struct Input;

impl Primitive for Input {
    fn name(&self) -> String {
        "input".into()
    }
    fn class(&self) -> Class {
        Class::Input
    }
    fn infer(&self, _: &[&TensorType]) -> Result<TensorType, String> {
        Err("the type of an input is given, not inferred".into())
    }
    fn eval(&self, _: &[&Literal], _: &TensorType) -> Result<Literal, String> {
        Err("the value of an input is given, not computed".into())
    }
    fn vjp(&self, _: &[Tensor], _: &Tensor, _: &Tensor) -> Vec<Option<Tensor>> {
        vec![]
    }
    fn flops(&self, _: &[&TensorType], _: &TensorType) -> u64 {
        0
    }
}

impl Op {
    /// The primitive behind the enum.
    pub fn primitive(&self) -> &dyn Primitive {
        match self {
            Op::Input => &Input,
            Op::Full(p) => p,
            Op::Iota(p) => p,
            Op::Unary(p) => p,
            Op::Elementary(p) => p,
            Op::Remainder(p) => p,
            Op::Binary(p) => p,
            Op::Compare(p) => p,
            Op::Select(p) => p,
            Op::Cast(p) => p,
            Op::Detach(p) => p,
            Op::Reshape(p) => p,
            Op::Permute(p) => p,
            Op::Broadcast(p) => p,
            Op::Slice(p) => p,
            Op::Pad(p) => p,
            Op::Cat(p) => p,
            Op::Reduce(p) => p,
            Op::ArgReduce(p) => p,
            Op::Dot(p) => p,
            Op::Attention(p) => p,
            Op::AttentionRow(p) => p,
            Op::AttentionGrad(p) => p,
            Op::Gather(p) => p,
            Op::ScatterAdd(p) => p,
            Op::Cumsum(p) => p,
        }
    }

    /// How it takes part in fusion.
    pub fn class(&self) -> Class {
        self.primitive().class()
    }

    /// The type of the result.
    ///
    /// # Errors
    /// Why the operands do not fit.
    pub fn infer(&self, args: &[&TensorType]) -> Result<TensorType, String> {
        self.primitive().infer(args)
    }

    /// The result for operands that fit.
    ///
    /// # Errors
    /// What is wrong with the operands' values.
    pub fn eval(&self, args: &[&Literal], out: &TensorType) -> Result<Literal, String> {
        self.primitive().eval(args, out)
    }

    /// What it costs.
    pub fn cost(&self, args: &[&TensorType], out: &TensorType) -> Cost {
        let bytes = args.iter().map(|t| t.bytes()).sum::<usize>() + out.bytes();
        Cost { flops: self.primitive().flops(args, out), bytes: bytes as u64 }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, attributes) = (self.primitive().name(), self.primitive().attributes());
        if attributes.is_empty() { f.write_str(&name) } else { write!(f, "{name}[{attributes}]") }
    }
}

/// Fails unless there are `n` operands.
fn arity(args: &[&TensorType], n: usize) -> Result<(), String> {
    if args.len() == n { Ok(()) } else { Err(format!("it takes {n} operands, not {}", args.len())) }
}

/// Serialisation of the compiler's enums by their names.
mod by_name {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use std::{fmt::Display, str::FromStr};

    pub fn serialize<T: Display, S: Serializer>(value: &T, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(value)
    }

    pub fn deserialize<'d, T: FromStr, D: Deserializer<'d>>(d: D) -> Result<T, D::Error> {
        let name = String::deserialize(d)?;
        name.parse().map_err(|_| D::Error::custom(format!("`{name}` is not known")))
    }
}
