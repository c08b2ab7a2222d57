//! Tensors made from nothing. They are never stored unless asked for: each kernel makes its own.

use super::{Class, Primitive, arity};
use crate::graph::{TensorType, coordinates};
use crate::literal::{Literal, word_of};
use crate::tensor::Tensor;
use serde::{Deserialize, Serialize};
use tilewright_compiler::DType;
use tilewright_compiler::tile::Constant;

/// One number repeated.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Full {
    /// The type.
    #[serde(with = "super::by_name")]
    pub dtype: DType,
    /// The extents.
    pub dims: Vec<usize>,
    /// The bits of the number.
    pub word: u64,
}

impl Primitive for Full {
    fn name(&self) -> String {
        "full".into()
    }
    fn attributes(&self) -> String {
        let c = Constant(self.word);
        match c.as_i64(self.dtype) {
            Some(i) => i.to_string(),
            None => format!("{:?}", c.as_f64(self.dtype)),
        }
    }
    fn class(&self) -> Class {
        Class::Create
    }
    fn infer(&self, args: &[&TensorType]) -> Result<TensorType, String> {
        arity(args, 0)?;
        Ok(TensorType::new(self.dtype, &self.dims[..]))
    }
    fn eval(&self, _: &[&Literal], out: &TensorType) -> Result<Literal, String> {
        Ok(Literal::from_fn(out.clone(), |_| self.word))
    }
    fn vjp(&self, _: &[Tensor], _: &Tensor, _: &Tensor) -> Vec<Option<Tensor>> {
        vec![]
    }
    fn flops(&self, _: &[&TensorType], _: &TensorType) -> u64 {
        0
    }
}

/// Each element is its coordinate along an axis.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Iota {
    /// The type.
    #[serde(with = "super::by_name")]
    pub dtype: DType,
    /// The extents.
    pub dims: Vec<usize>,
    /// The axis.
    pub axis: usize,
}

impl Primitive for Iota {
    fn name(&self) -> String {
        "iota".into()
    }
    fn attributes(&self) -> String {
        format!("axis {}", self.axis)
    }
    fn class(&self) -> Class {
        Class::Create
    }
    fn infer(&self, args: &[&TensorType]) -> Result<TensorType, String> {
        arity(args, 0)?;
        if self.axis >= self.dims.len() {
            return Err(format!("axis {} is out of range for {} dimensions", self.axis, self.dims.len()));
        }
        if self.dtype == DType::Bool {
            return Err("coordinates are numbers, not truth values".into());
        }
        let (n, bits) = (self.dims[self.axis], self.dtype.bits() - u32::from(self.dtype.is_signed()));
        if self.dtype.is_int() && bits < 64 && n > 1 << bits {
            return Err(format!("coordinates up to {} do not fit in {}: take a wider type", n - 1, self.dtype));
        }
        Ok(TensorType::new(self.dtype, &self.dims[..]))
    }
    fn eval(&self, _: &[&Literal], out: &TensorType) -> Result<Literal, String> {
        Ok(Literal::from_fn(out.clone(), |i| {
            let at = coordinates(i, &self.dims)[self.axis];
            if self.dtype.is_float() {
                word_of(self.dtype, at as f64)
            } else {
                Constant::from_i64(self.dtype, at as i64).0
            }
        }))
    }
    fn vjp(&self, _: &[Tensor], _: &Tensor, _: &Tensor) -> Vec<Option<Tensor>> {
        vec![]
    }
    fn flops(&self, _: &[&TensorType], _: &TensorType) -> u64 {
        0
    }
}
