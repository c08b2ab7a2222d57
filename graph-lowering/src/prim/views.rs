//! Views: the operand's elements at other coordinates. Lowered to the coordinates alone; nothing is copied.

use super::{Class, Primitive, arity};
use crate::fuse::map::{self, Affine};
use crate::graph::{TensorType, coordinates, strides};
use crate::literal::Literal;
use crate::tensor::Tensor;
use serde::{Deserialize, Serialize};

/// The result whose element at coordinates `c` is the operand's at `source(c)`.
fn rearrange(x: &Literal, out: &TensorType, source: impl Fn(&[usize]) -> Vec<usize>) -> Literal {
    let steps = strides(&x.ty().dims);
    Literal::from_fn(out.clone(), |i| {
        let at = source(&coordinates(i, &out.dims));
        x.word(at.iter().zip(&steps).map(|(a, s)| a * s).sum())
    })
}

/// The same elements, row-major, in other extents.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Reshape {
    /// The extents of the result.
    pub dims: Vec<usize>,
}

impl Primitive for Reshape {
    fn name(&self) -> String {
        "reshape".into()
    }
    fn class(&self) -> Class {
        Class::View
    }
    fn infer(&self, args: &[&TensorType]) -> Result<TensorType, String> {
        arity(args, 1)?;
        let out = TensorType::new(args[0].dtype, &self.dims[..]);
        let count = self.dims.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
        if count != Some(args[0].elements()) {
            return Err(format!("{} has {} elements, which do not fill {:?}", args[0], args[0].elements(), self.dims));
        }
        Ok(out)
    }
    fn eval(&self, args: &[&Literal], _: &TensorType) -> Result<Literal, String> {
        Ok(args[0].reshaped(&self.dims))
    }
    fn vjp(&self, args: &[Tensor], _: &Tensor, g: &Tensor) -> Vec<Option<Tensor>> {
        vec![Some(g.reshape(&args[0].dims()))]
    }
    fn flops(&self, _: &[&TensorType], _: &TensorType) -> u64 {
        0
    }
    fn source(&self, arg: &TensorType, out: &TensorType, at: &[Affine], extents: &[usize]) -> Option<Vec<Affine>> {
        map::reshape(at, &out.dims, &arg.dims, extents)
    }
}

/// Dimension `i` of the result is dimension `perm[i]` of the operand.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Permute {
    /// Which dimension of the operand each of the result is.
    pub perm: Vec<usize>,
}

impl Permute {
    /// The permutation that undoes this one.
    pub fn inverse(&self) -> Vec<usize> {
        let mut inverse = vec![0; self.perm.len()];
        for (i, &p) in self.perm.iter().enumerate() {
            inverse[p] = i;
        }
        inverse
    }
}

impl Primitive for Permute {
    fn name(&self) -> String {
        "permute".into()
    }
    fn attributes(&self) -> String {
        format!("{:?}", self.perm)
    }
    fn class(&self) -> Class {
        Class::View
    }
    fn infer(&self, args: &[&TensorType]) -> Result<TensorType, String> {
        arity(args, 1)?;
        let mut sorted = self.perm.clone();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..args[0].rank()) {
            return Err(format!("{:?} does not name each of the dimensions of {} once", self.perm, args[0]));
        }
        let dims: Vec<_> = self.perm.iter().map(|&p| args[0].dims[p]).collect();
        Ok(TensorType::new(args[0].dtype, dims))
    }
    fn eval(&self, args: &[&Literal], out: &TensorType) -> Result<Literal, String> {
        let inverse = self.inverse();
        Ok(rearrange(args[0], out, |c| inverse.iter().map(|&i| c[i]).collect()))
    }
    fn vjp(&self, _: &[Tensor], _: &Tensor, g: &Tensor) -> Vec<Option<Tensor>> {
        vec![Some(g.permute(&self.inverse()))]
    }
    fn flops(&self, _: &[&TensorType], _: &TensorType) -> u64 {
        0
    }
    fn source(&self, _: &TensorType, _: &TensorType, at: &[Affine], _: &[usize]) -> Option<Vec<Affine>> {
        Some(self.inverse().iter().map(|&i| at[i].clone()).collect())
    }
}

/// Dimension `i` of the operand becomes dimension `axes[i]` of the result; an extent of 1 is repeated, and so is everything
/// along the other dimensions.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Broadcast {
    /// The extents of the result.
    pub dims: Vec<usize>,
    /// Where the operand's dimensions go, ascending.
    pub axes: Vec<usize>,
}

impl Primitive for Broadcast {
    fn name(&self) -> String {
        "broadcast_in_dim".into()
    }
    fn attributes(&self) -> String {
        format!("axes {:?}", self.axes)
    }
    fn class(&self) -> Class {
        Class::View
    }
    fn infer(&self, args: &[&TensorType]) -> Result<TensorType, String> {
        arity(args, 1)?;
        let x = args[0];
        let ascending = self.axes.windows(2).all(|w| w[0] < w[1]);
        if self.axes.len() != x.rank() || !ascending || self.axes.iter().any(|&a| a >= self.dims.len()) {
            return Err(format!("{:?} does not place the dimensions of {x} in {:?}", self.axes, self.dims));
        }
        for (&axis, &d) in self.axes.iter().zip(&x.dims) {
            if d != 1 && d != self.dims[axis] {
                return Err(format!("extent {d} of {x} cannot be repeated to {} of {:?}", self.dims[axis], self.dims));
            }
        }
        Ok(TensorType::new(x.dtype, &self.dims[..]))
    }
    fn eval(&self, args: &[&Literal], out: &TensorType) -> Result<Literal, String> {
        let dims = args[0].ty().dims.clone();
        Ok(rearrange(args[0], out, |c| {
            self.axes.iter().zip(&dims).map(|(&a, &d)| if d == 1 { 0 } else { c[a] }).collect()
        }))
    }
    fn vjp(&self, args: &[Tensor], _: &Tensor, g: &Tensor) -> Vec<Option<Tensor>> {
        let dims = args[0].dims();
        let kept = |axis: &usize| self.axes.iter().position(|a| a == axis).is_some_and(|i| dims[i] == self.dims[*axis]);
        let summed: Vec<usize> = (0..self.dims.len()).filter(|a| !kept(a)).collect();
        vec![Some(g.reduce_strict(tilewright_compiler::tile::ReduceOp::Sum, &summed).reshape(&dims))]
    }
    fn flops(&self, _: &[&TensorType], _: &TensorType) -> u64 {
        0
    }
    fn source(&self, arg: &TensorType, _: &TensorType, at: &[Affine], _: &[usize]) -> Option<Vec<Affine>> {
        let place = |(&a, &d): (&usize, &usize)| if d == 1 { Affine::constant(0) } else { at[a].clone() };
        Some(self.axes.iter().zip(&arg.dims).map(place).collect())
    }
}

/// Elements `start, start + step, ..` below `limit` along each dimension.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Slice {
    /// The first element, for each dimension.
    pub start: Vec<usize>,
    /// The end, for each dimension.
    pub limit: Vec<usize>,
    /// The distance, at least 1, for each dimension.
    pub step: Vec<usize>,
}

impl Primitive for Slice {
    fn name(&self) -> String {
        "slice".into()
    }
    fn attributes(&self) -> String {
        // Also of one that is not valid, as its message shows it: the lists may be of three lengths.
        let one = |((start, limit), step): ((&usize, &usize), &usize)| format!("{start}:{limit}:{step}");
        self.start.iter().zip(&self.limit).zip(&self.step).map(one).collect::<Vec<_>>().join(", ")
    }
    fn class(&self) -> Class {
        Class::View
    }
    fn infer(&self, args: &[&TensorType]) -> Result<TensorType, String> {
        arity(args, 1)?;
        let x = args[0];
        if [&self.start, &self.limit, &self.step].iter().any(|v| v.len() != x.rank()) {
            return Err(format!("{x} needs {} starts, limits and steps", x.rank()));
        }
        let mut dims = Vec::new();
        for (i, &d) in x.dims.iter().enumerate() {
            let (start, limit, step) = (self.start[i], self.limit[i], self.step[i]);
            if start > limit || limit > d || step == 0 {
                return Err(format!("{start}..{limit} in steps of {step} is no part of dimension {i} of {x}"));
            }
            dims.push((limit - start).div_ceil(step));
        }
        Ok(TensorType::new(x.dtype, dims))
    }
    fn eval(&self, args: &[&Literal], out: &TensorType) -> Result<Literal, String> {
        Ok(rearrange(args[0], out, |c| (0..c.len()).map(|i| self.start[i] + c[i] * self.step[i]).collect()))
    }
    fn vjp(&self, args: &[Tensor], out: &Tensor, g: &Tensor) -> Vec<Option<Tensor>> {
        let (dims, got) = (args[0].dims(), out.dims());
        let span = |i: usize| if got[i] == 0 { 0 } else { (got[i] - 1) * self.step[i] + 1 };
        let high: Vec<_> = (0..dims.len()).map(|i| dims[i] - self.start[i] - span(i)).collect();
        let interior: Vec<_> = self.step.iter().map(|s| s - 1).collect();
        vec![Some(g.pad_strict(&self.start, &high, &interior, 0.0))]
    }
    fn flops(&self, _: &[&TensorType], _: &TensorType) -> u64 {
        0
    }
    fn source(&self, _: &TensorType, _: &TensorType, at: &[Affine], _: &[usize]) -> Option<Vec<Affine>> {
        Some((0..at.len()).map(|i| at[i].scale(self.step[i] as i64).plus(self.start[i] as i64)).collect())
    }
}
