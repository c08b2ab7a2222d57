//! Tensors made of parts, each written to its place in one buffer by a kernel of its own.

use super::{Class, Primitive, arity};
use crate::graph::{TensorType, coordinates, strides};
use crate::literal::Literal;
use crate::tensor::Tensor;
use serde::{Deserialize, Serialize};

/// Where the part of an assembled tensor lies: its first element and the distances of its elements, for each dimension.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Place {
    /// Coordinates of the first element.
    pub start: Vec<usize>,
    /// Distance of the elements.
    pub step: Vec<usize>,
}

fn put(out: &mut Literal, part: &Literal, place: &Place) {
    let steps = strides(&out.ty().dims);
    for i in 0..part.ty().elements() {
        let at = coordinates(i, &part.ty().dims);
        let index = (0..at.len()).map(|d| (place.start[d] + at[d] * place.step[d]) * steps[d]).sum();
        out.set(index, part.word(i));
    }
}

/// A tensor within a larger one: `low` elements before, `high` after, and `interior` between each two, of one number.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Pad {
    /// Elements before, for each dimension.
    pub low: Vec<usize>,
    /// Elements after, for each dimension.
    pub high: Vec<usize>,
    /// Elements between each two, for each dimension.
    pub interior: Vec<usize>,
    /// The bits of the number.
    pub word: u64,
}

impl Pad {
    /// Where the operand lies.
    pub fn place(&self) -> Place {
        Place { start: self.low.clone(), step: self.interior.iter().map(|i| i + 1).collect() }
    }
}

impl Primitive for Pad {
    fn name(&self) -> String {
        "pad".into()
    }
    fn attributes(&self) -> String {
        format!("low {:?}, high {:?}, interior {:?}, bits {:#x}", self.low, self.high, self.interior, self.word)
    }
    fn class(&self) -> Class {
        Class::Assemble
    }
    fn infer(&self, args: &[&TensorType]) -> Result<TensorType, String> {
        arity(args, 1)?;
        let x = args[0];
        if [&self.low, &self.high, &self.interior].iter().any(|v| v.len() != x.rank()) {
            return Err(format!("{x} needs {} paddings", x.rank()));
        }
        let dims: Option<Vec<usize>> = (0..x.rank())
            .map(|i| {
                let inner = x.dims[i].checked_add(x.dims[i].saturating_sub(1).checked_mul(self.interior[i])?)?;
                inner.checked_add(self.low[i])?.checked_add(self.high[i])
            })
            .collect();
        Ok(TensorType::new(x.dtype, dims.ok_or("the result would be too large")?))
    }
    fn eval(&self, args: &[&Literal], out: &TensorType) -> Result<Literal, String> {
        let mut result = Literal::from_fn(out.clone(), |_| self.word);
        put(&mut result, args[0], &self.place());
        Ok(result)
    }
    fn vjp(&self, args: &[Tensor], _: &Tensor, g: &Tensor) -> Vec<Option<Tensor>> {
        let dims = args[0].dims();
        let step: Vec<usize> = self.interior.iter().map(|i| i + 1).collect();
        let span = |i: usize| if dims[i] == 0 { 0 } else { (dims[i] - 1) * step[i] + 1 };
        let limit: Vec<usize> = (0..dims.len()).map(|i| self.low[i] + span(i)).collect();
        vec![Some(g.slice_strict(&self.low, &limit, &step))]
    }
}

/// Tensors one after another along an axis.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Cat {
    /// The axis.
    pub axis: usize,
}

impl Cat {
    /// Where an operand lies that begins at `start` along the axis.
    pub fn place(&self, rank: usize, start: usize) -> Place {
        let mut place = Place { start: vec![0; rank], step: vec![1; rank] };
        place.start[self.axis] = start;
        place
    }
}

impl Primitive for Cat {
    fn name(&self) -> String {
        "cat".into()
    }
    fn attributes(&self) -> String {
        format!("axis {}", self.axis)
    }
    fn class(&self) -> Class {
        Class::Assemble
    }
    fn infer(&self, args: &[&TensorType]) -> Result<TensorType, String> {
        let Some(&first) = args.first() else { return Err("there is nothing to concatenate".into()) };
        if self.axis >= first.rank() {
            return Err(format!("axis {} is out of range for {first}", self.axis));
        }
        let mut out = first.clone();
        for &t in &args[1..] {
            let others = |t: &TensorType| {
                let mut t = t.clone();
                if let Some(d) = t.dims.get_mut(self.axis) {
                    *d = 0;
                }
                t
            };
            if others(t) != others(first) {
                return Err(format!("{t} does not continue {first} along axis {}", self.axis));
            }
            out.dims[self.axis] += t.dims[self.axis];
        }
        Ok(out)
    }
    fn eval(&self, args: &[&Literal], out: &TensorType) -> Result<Literal, String> {
        let mut result = Literal::zeros(out.clone());
        let mut start = 0;
        for part in args {
            put(&mut result, part, &self.place(out.rank(), start));
            start += part.ty().dims[self.axis];
        }
        Ok(result)
    }
    fn vjp(&self, args: &[Tensor], _: &Tensor, g: &Tensor) -> Vec<Option<Tensor>> {
        let mut at = 0;
        args.iter()
            .map(|a| {
                let (mut start, mut limit) = (vec![0; g.rank()], g.dims());
                start[self.axis] = at;
                at += a.dims()[self.axis];
                limit[self.axis] = at;
                Some(g.slice_strict(&start, &limit, &vec![1; g.rank()]))
            })
            .collect()
    }
}
