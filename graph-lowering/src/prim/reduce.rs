//! Reductions. Types are kept: what widens sums of small integers is the tensor's `sum`.

use super::{Class, Primitive, arity};
use crate::graph::{TensorType, coordinates, strides};
use crate::literal::{Literal, word_of};
use crate::tensor::Tensor;
use serde::{Deserialize, Serialize};
use tilewright_compiler::DType;
use tilewright_compiler::interp::scalar::eval_elementwise;
use tilewright_compiler::tile::{BinaryOp, Constant, Op as TileOp, ReduceOp};

/// The extents without those of some axes.
pub(crate) fn kept_dims(dims: &[usize], axes: &[usize]) -> Vec<usize> {
    (0..dims.len()).filter(|i| !axes.contains(i)).map(|i| dims[i]).collect()
}

/// Combines the elements along some axes, which go away.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Reduce {
    /// How.
    #[serde(with = "super::by_name")]
    pub op: ReduceOp,
    /// Along which axes, ascending.
    pub axes: Vec<usize>,
}

impl Reduce {
    /// The operation that combines two elements.
    pub fn combine(&self) -> BinaryOp {
        match self.op {
            ReduceOp::Sum => BinaryOp::Add,
            ReduceOp::Prod => BinaryOp::Mul,
            ReduceOp::Min => BinaryOp::Min,
            ReduceOp::Max => BinaryOp::Max,
            ReduceOp::And => BinaryOp::And,
            ReduceOp::Or => BinaryOp::Or,
            ReduceOp::Xor => BinaryOp::Xor,
        }
    }

    /// The element that changes nothing.
    pub fn identity(&self, dtype: DType) -> Constant {
        let least = |max: bool| {
            if dtype.is_float() {
                return Constant::from_f64(dtype, if max { f64::NEG_INFINITY } else { f64::INFINITY });
            }
            let bits = dtype.bits();
            let ones = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
            Constant(match (dtype.is_signed(), max) {
                (true, true) => 1 << (bits - 1),
                (true, false) => ones >> 1,
                (false, true) => 0,
                (false, false) => ones,
            })
        };
        match self.op {
            ReduceOp::Sum | ReduceOp::Or | ReduceOp::Xor => Constant(0),
            ReduceOp::Prod => Constant::from_i64(dtype, 1),
            ReduceOp::Max => least(true),
            ReduceOp::Min => least(false),
            ReduceOp::And => Constant::from_i64(dtype, if dtype == DType::Bool { 1 } else { -1 }),
        }
    }
}

/// Elements up to which a reduction of everything stays in one program.
const ONE_PROGRAM: usize = 1 << 14;

impl Reduce {
    /// Should several programs share what it combines to one number, or to few columns of many rows? A sum of halves to one number is
    /// not split: the sums of the parts would be rounded.
    pub(crate) fn is_split(&self, x: &TensorType) -> bool {
        self.axes.len() == x.rank() && x.elements() > ONE_PROGRAM && !self.rounds(x.dtype)
            || self.column_parts(x).is_some()
    }

    /// Would sums of parts be rounded?
    fn rounds(&self, dtype: DType) -> bool {
        matches!(self.op, ReduceOp::Sum | ReduceOp::Prod) && matches!(dtype, DType::F16 | DType::BF16)
    }

    /// The extents that a reduction of long columns is seen in, and its first axis to be reduced there: parts of the rows, so that there
    /// are more programs than one for each few columns. Only the last of the reduced dimensions is divided if that will do, since what
    /// was computed in the others' extents can then join.
    fn column_parts(&self, x: &TensorType) -> Option<(Vec<usize>, usize)> {
        /// Rows of a part, and parts, from which on and to which it is worth it.
        const ROWS: usize = 128;
        const MOST: usize = 64;
        let count = self.axes.len();
        let leading = count > 0 && count < x.rank() && self.axes.iter().copied().eq(0..count);
        let rows: usize = x.dims[..count].iter().product();
        let columns: usize = x.dims[count..].iter().product();
        if !leading || columns < 2 || rows < 8 * ROWS {
            return None;
        }
        let divided = |outer: usize, last: usize| {
            let most = (MOST / outer).min(last / ROWS).max(1);
            (1..=most).rev().find(|p| last.is_multiple_of(*p) && outer * p > 1)
        };
        let (last, outer) = (x.dims[count - 1], rows / x.dims[count - 1]);
        let (before, parts, length) = match divided(outer, last).filter(|_| outer <= MOST) {
            Some(p) => (&x.dims[..count - 1], p, last / p),
            None => (&x.dims[..0], divided(1, rows)?, rows / divided(1, rows)?),
        };
        let dims = [before, &[parts, length], &x.dims[count..]].concat();
        // The verifier's limit on dimensions.
        (dims.len() <= tilewright_runtime::MAX_RANK).then_some((dims, before.len() + 1))
    }
}

fn check_axes(x: &TensorType, axes: &[usize]) -> Result<(), String> {
    if !axes.windows(2).all(|w| w[0] < w[1]) || axes.iter().any(|&a| a >= x.rank()) {
        return Err(format!("{axes:?} are not distinct axes of {x}"));
    }
    Ok(())
}

impl Primitive for Reduce {
    fn name(&self) -> String {
        format!("reduce_{}", self.op)
    }
    fn attributes(&self) -> String {
        format!("axes {:?}", self.axes)
    }
    fn class(&self) -> Class {
        Class::Reduce
    }
    fn infer(&self, args: &[&TensorType]) -> Result<TensorType, String> {
        arity(args, 1)?;
        let x = args[0];
        check_axes(x, &self.axes)?;
        let fits = match self.op {
            ReduceOp::Sum | ReduceOp::Prod | ReduceOp::Min | ReduceOp::Max => x.dtype != DType::Bool,
            ReduceOp::And | ReduceOp::Or | ReduceOp::Xor => !x.dtype.is_float(),
        };
        if !fits {
            return Err(format!("`{}` is not defined for elements of type {}", self.op, x.dtype));
        }
        if matches!(self.op, ReduceOp::Min | ReduceOp::Max) && self.axes.iter().any(|&a| x.dims[a] == 0) {
            return Err(format!("`{}` of no elements: {x} has an extent of 0 along {:?}", self.op, self.axes));
        }
        Ok(TensorType::new(x.dtype, kept_dims(&x.dims, &self.axes)))
    }
    fn eval(&self, args: &[&Literal], out: &TensorType) -> Result<Literal, String> {
        let x = args[0];
        let dims = &x.ty().dims;
        let kept: Vec<usize> = (0..dims.len()).filter(|i| !self.axes.contains(i)).collect();
        let steps = strides(&out.dims);
        let target = |i: usize| {
            let at = coordinates(i, dims);
            kept.iter().zip(&steps).map(|(&k, s)| at[k] * s).sum::<usize>()
        };
        let dtype = out.dtype;
        if dtype.is_float() && matches!(self.op, ReduceOp::Sum | ReduceOp::Prod) {
            // Summed in double precision and rounded once: the reference the devices are measured by.
            let sum = self.op == ReduceOp::Sum;
            let mut totals = vec![if sum { 0.0 } else { 1.0 }; out.elements()];
            for i in 0..x.ty().elements() {
                let t: &mut f64 = &mut totals[target(i)];
                if sum { *t += x.f64(i) } else { *t *= x.f64(i) }
            }
            return Ok(Literal::from_fn(out.clone(), |i| word_of(dtype, totals[i])));
        }
        let op = TileOp::Binary(self.combine());
        let mut result = Literal::from_fn(out.clone(), |_| self.identity(dtype).0);
        for i in 0..x.ty().elements() {
            let t = target(i);
            let word = eval_elementwise(&op, &[dtype, dtype], &[result.word(t), x.word(i)], dtype);
            result.set(t, word.ok_or_else(|| format!("`{}` is not defined for {dtype}", self.op))?);
        }
        Ok(result)
    }
    fn vjp(&self, args: &[Tensor], out: &Tensor, g: &Tensor) -> Vec<Option<Tensor>> {
        let x = &args[0];
        let dims = x.dims();
        let axes: Vec<usize> = (0..dims.len()).filter(|i| !self.axes.contains(i)).collect();
        let spread = |t: &Tensor| t.broadcast_in_dim(&dims, &axes);
        vec![match self.op {
            ReduceOp::Sum => Some(spread(g)),
            // The greatest elements share the gradient evenly. Their number is beyond what halves can count.
            ReduceOp::Max | ReduceOp::Min => {
                let chosen = x.eq_(spread(out));
                let wide = if x.dtype() == DType::F64 { DType::F64 } else { DType::F32 };
                let count = chosen.cast(DType::I32).reduce_strict(ReduceOp::Sum, &self.axes).cast(wide);
                let share = (g.cast(wide) / count).cast(x.dtype());
                Some(chosen.cast(x.dtype()) * spread(&share))
            }
            // The product of the others: by division where no factor is 0; with one 0, it alone has a gradient.
            ReduceOp::Prod => {
                let zero = x.eq_(0.0);
                let others = zero.where_(1.0, x).reduce_strict(ReduceOp::Prod, &self.axes);
                let zeros = zero.cast(DType::I32).reduce_strict(ReduceOp::Sum, &self.axes);
                let (others, zeros) = (spread(&others), spread(&zeros));
                let at_zero = zeros.eq_(1).where_(&others, 0.0);
                let elsewhere = zeros.eq_(0).where_(&(&others / zero.where_(1.0, x)), 0.0);
                Some(spread(g) * zero.where_(&at_zero, &elsewhere))
            }
            ReduceOp::And | ReduceOp::Or | ReduceOp::Xor => None,
        }]
    }
    fn flops(&self, args: &[&TensorType], _: &TensorType) -> u64 {
        args[0].elements() as u64
    }
    /// Rows first, each by a program of its own, then the results of the rows. Of columns: parts of their rows first.
    fn decompose(&self, args: &[Tensor]) -> Option<Tensor> {
        const ROWS: usize = 16;
        let x = &args[0];
        if !self.is_split(x.ty()) {
            return None;
        }
        if let Some((dims, axis)) = self.column_parts(x.ty()) {
            let split = x.reshape(&dims);
            let wide = if self.rounds(x.dtype()) { split.cast(DType::F32) } else { split };
            let parts = wide.reduce_strict(self.op, &[axis]);
            return Some(parts.reduce_strict(self.op, &(0..axis).collect::<Vec<_>>()).cast(x.dtype()));
        }
        let (dims, n) = (x.dims(), x.elements());
        let last = dims.len() - 1;
        let x = if n / dims[last] >= ROWS {
            x.clone()
        } else {
            let rows = (ROWS..=32 * ROWS).rev().find(|r| n.is_multiple_of(*r))?;
            x.reshape(&[rows, n / rows])
        };
        let last = x.rank() - 1;
        Some(x.reduce_strict(self.op, &[last]).reduce_strict(self.op, &(0..last).collect::<Vec<_>>()))
    }
}

/// The index of the greatest or least element along an axis, as `i32`: the first of equals; the first NaN wins.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct ArgReduce {
    /// Greatest, or least?
    pub max: bool,
    /// Along which axis.
    pub axis: usize,
}

impl Primitive for ArgReduce {
    fn name(&self) -> String {
        if self.max { "argmax".into() } else { "argmin".into() }
    }
    fn attributes(&self) -> String {
        format!("axis {}", self.axis)
    }
    fn class(&self) -> Class {
        Class::Reduce
    }
    fn infer(&self, args: &[&TensorType]) -> Result<TensorType, String> {
        arity(args, 1)?;
        let x = args[0];
        check_axes(x, &[self.axis])?;
        if x.dtype == DType::Bool {
            return Err("truth values have no greatest; cast them to a number type".into());
        }
        if x.dims[self.axis] == 0 {
            return Err(format!("{x} has no elements along axis {}", self.axis));
        }
        Ok(TensorType::new(DType::I32, kept_dims(&x.dims, &[self.axis])))
    }
    fn eval(&self, args: &[&Literal], out: &TensorType) -> Result<Literal, String> {
        let x = args[0];
        let (dims, dtype) = (&x.ty().dims, x.ty().dtype);
        let n = dims[self.axis];
        let inner: usize = dims[self.axis + 1..].iter().product();
        let less = |a: u64, b: u64| {
            let cmp = tilewright_compiler::tile::Cmp::Lt;
            eval_elementwise(&TileOp::Compare(cmp), &[dtype, dtype], &[a, b], DType::Bool) == Some(1)
        };
        let nan = |w: u64| dtype.is_float() && Constant(w).as_f64(dtype).is_nan();
        Ok(Literal::from_fn(out.clone(), |o| {
            let base = o / inner.max(1) * n * inner + o % inner.max(1);
            let at = |k: usize| x.word(base + k * inner);
            let mut best = 0;
            for k in 1..n {
                let (b, w) = (at(best), at(k));
                let better = if self.max { less(b, w) } else { less(w, b) };
                if !nan(b) && (nan(w) || better) {
                    best = k;
                }
            }
            best as u64
        }))
    }
    fn vjp(&self, _: &[Tensor], _: &Tensor, _: &Tensor) -> Vec<Option<Tensor>> {
        vec![None]
    }
    fn flops(&self, args: &[&TensorType], _: &TensorType) -> u64 {
        args[0].elements() as u64
    }
}
