//! Matrix products.

use super::{Class, Primitive, arity};
use crate::graph::TensorType;
use crate::literal::{Literal, word_of};
use crate::tensor::Tensor;
use serde::{Deserialize, Serialize};
use tilewright_compiler::DType;
use tilewright_compiler::tile::{Constant, ReduceOp, rules};

/// `[batch.., m, k]` times `[batch.., k, n]` gives `[batch.., m, n]`, for any number of batch dimensions. Other contractions
/// are this one after permutes and reshapes, which cost nothing. Halves are summed in `f32`; integers wrap.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Dot;

impl Primitive for Dot {
    fn name(&self) -> String {
        "dot".into()
    }
    fn class(&self) -> Class {
        Class::Dot
    }
    fn infer(&self, args: &[&TensorType]) -> Result<TensorType, String> {
        arity(args, 2)?;
        let (a, b) = (args[0], args[1]);
        let r = a.rank();
        let fits = r >= 2 && b.rank() == r && a.dims[..r - 2] == b.dims[..r - 2] && a.dims[r - 1] == b.dims[r - 2];
        if !fits || a.dtype != b.dtype || a.dtype == DType::Bool {
            return Err(format!("{a} and {b} are not [batch.., m, k] and [batch.., k, n] of one number type"));
        }
        let mut dims = a.dims.clone();
        dims[r - 1] = b.dims[r - 1];
        Ok(TensorType::new(a.dtype, dims))
    }
    fn eval(&self, args: &[&Literal], out: &TensorType) -> Result<Literal, String> {
        let (a, b) = (args[0], args[1]);
        let r = out.rank();
        let (m, n, k) = (out.dims[r - 2], out.dims[r - 1], a.ty().dims[r - 1]);
        let place = |i: usize| {
            let (batch, rest) = (i / (m * n).max(1), i % (m * n).max(1));
            (batch * m * k + rest / n.max(1) * k, batch * k * n + rest % n.max(1))
        };
        if out.dtype.is_float() {
            let wide = |l: &Literal| (0..l.ty().elements()).map(|i| l.f64(i)).collect::<Vec<f64>>();
            let (x, y) = (wide(a), wide(b));
            return Ok(Literal::from_fn(out.clone(), |i| {
                let (p, q) = place(i);
                word_of(out.dtype, (0..k).map(|j| x[p + j] * y[q + j * n]).sum())
            }));
        }
        let wide = |l: &Literal| (0..l.ty().elements()).map(|i| l.i64(i).unwrap_or(0)).collect::<Vec<i64>>();
        let (x, y) = (wide(a), wide(b));
        Ok(Literal::from_fn(out.clone(), |i| {
            let (p, q) = place(i);
            let sum = (0..k).fold(0i64, |s, j| s.wrapping_add(x[p + j].wrapping_mul(y[q + j * n])));
            Constant::from_i64(out.dtype, sum).0
        }))
    }
    fn vjp(&self, args: &[Tensor], _: &Tensor, g: &Tensor) -> Vec<Option<Tensor>> {
        vec![Some(g.dot_strict(&args[1].transpose())), Some(args[0].transpose().dot_strict(g))]
    }
    fn flops(&self, args: &[&TensorType], out: &TensorType) -> u64 {
        2 * out.elements() as u64 * args[0].dims.last().copied().unwrap_or(1) as u64
    }
    /// Types that the devices' matrix products do not take: a sum of products.
    fn decompose(&self, args: &[Tensor]) -> Option<Tensor> {
        if rules::dot_accumulator(args[0].dtype()).is_some() {
            return None;
        }
        let (a, b) = (args[0].dims(), args[1].dims());
        let r = a.len();
        let mut dims = a.clone();
        dims.insert(r - 1, b[r - 1]);
        // [batch.., m, n, k]
        let axes_a: Vec<usize> = (0..r - 1).chain([r]).collect();
        let axes_b: Vec<usize> = (0..r - 2).chain([r - 1, r]).collect();
        let product = args[0].broadcast_in_dim(&dims, &axes_a) * args[1].transpose().broadcast_in_dim(&dims, &axes_b);
        Some(product.reduce_strict(ReduceOp::Sum, &[r]))
    }
}
