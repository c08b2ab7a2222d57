//! Cumulative sums.

use super::{Class, Primitive, arity};
use crate::graph::TensorType;
use crate::literal::{Literal, word_of};
use crate::tensor::Tensor;
use serde::{Deserialize, Serialize};
use tilewright_compiler::DType;
use tilewright_compiler::tile::Constant;

/// The sum of all elements up to and with each one along an axis; from the end if `reverse`.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Cumsum {
    /// The axis.
    pub axis: usize,
    /// From the end?
    pub reverse: bool,
}

impl Primitive for Cumsum {
    fn name(&self) -> String {
        "cumsum".into()
    }
    fn attributes(&self) -> String {
        format!("axis {}{}", self.axis, if self.reverse { ", reverse" } else { "" })
    }
    fn class(&self) -> Class {
        Class::Composite
    }
    fn infer(&self, args: &[&TensorType]) -> Result<TensorType, String> {
        arity(args, 1)?;
        if self.axis >= args[0].rank() || args[0].dtype == DType::Bool {
            return Err(format!("{} has no numbers along axis {}", args[0], self.axis));
        }
        Ok(args[0].clone())
    }
    fn eval(&self, args: &[&Literal], out: &TensorType) -> Result<Literal, String> {
        let x = args[0];
        let n = out.dims[self.axis];
        let inner: usize = out.dims[self.axis + 1..].iter().product();
        let mut result = x.clone();
        let lines = out.elements().checked_div(n).unwrap_or(0);
        for line in 0..lines {
            let base = line / inner * n * inner + line % inner;
            let (mut float, mut int) = (0.0, 0i64);
            for step in 0..n {
                let k = if self.reverse { n - 1 - step } else { step };
                let at = base + k * inner;
                let word = if let Some(v) = x.i64(at) {
                    int = int.wrapping_add(v);
                    Constant::from_i64(out.dtype, int).0
                } else {
                    float += x.f64(at);
                    word_of(out.dtype, float)
                };
                result.set(at, word);
            }
        }
        Ok(result)
    }
    fn vjp(&self, _: &[Tensor], _: &Tensor, g: &Tensor) -> Vec<Option<Tensor>> {
        vec![Some(g.cumsum_strict(self.axis, !self.reverse))]
    }
    /// Sums of neighbours at distances 1, 2, 4, ..: as many steps as the extent has bits.
    fn decompose(&self, args: &[Tensor]) -> Option<Tensor> {
        let dtype = args[0].dtype();
        // Halves would be rounded at every step.
        let wide = if matches!(dtype, DType::F16 | DType::BF16) { DType::F32 } else { dtype };
        let mut x = args[0].cast(wide);
        let dims = x.dims();
        let (rank, n) = (dims.len(), dims[self.axis]);
        let mut distance = 1;
        while distance < n {
            let (mut start, mut limit) = (vec![0; rank], dims.clone());
            let (mut low, mut high) = (vec![0; rank], vec![0; rank]);
            if self.reverse {
                start[self.axis] = distance;
                high[self.axis] = distance;
            } else {
                limit[self.axis] = n - distance;
                low[self.axis] = distance;
            }
            let moved = x.slice_strict(&start, &limit, &vec![1; rank]);
            x = &x + moved.pad_strict(&low, &high, &vec![0; rank], 0.0);
            distance *= 2;
        }
        Some(x.cast(dtype))
    }
}
