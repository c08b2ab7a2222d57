//! Rows of tables by number. A number outside the table reads NaN (0 for types without NaN) and adds nothing.

use super::{Class, Primitive, arity};
use crate::graph::TensorType;
use crate::literal::{Literal, word_of};
use crate::tensor::Tensor;
use serde::{Deserialize, Serialize};
use tilewright_compiler::DType;
use tilewright_compiler::tile::{Constant, ReduceOp};

/// What a row outside the table reads, as bits.
pub(crate) fn outside(dtype: DType) -> u64 {
    if dtype.is_float() { word_of(dtype, f64::NAN) } else { 0 }
}

/// `(table: T[rows, row..], index: I[at..])` gives `T[at.., row..]`.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Gather;

impl Primitive for Gather {
    fn name(&self) -> String {
        "gather".into()
    }
    fn class(&self) -> Class {
        Class::Gather
    }
    fn infer(&self, args: &[&TensorType]) -> Result<TensorType, String> {
        arity(args, 2)?;
        let (table, index) = (args[0], args[1]);
        if table.rank() == 0 || !matches!(index.dtype, DType::I32 | DType::I64) {
            return Err(format!("{table} at {index}: expected a table of rows and numbers of type i32 or i64"));
        }
        Ok(TensorType::new(table.dtype, [&index.dims[..], &table.dims[1..]].concat()))
    }
    fn eval(&self, args: &[&Literal], out: &TensorType) -> Result<Literal, String> {
        let (table, index) = (args[0], args[1]);
        let rows = table.ty().dims[0];
        let row: usize = table.ty().dims[1..].iter().product();
        Ok(Literal::from_fn(out.clone(), |i| match index.i64(i / row.max(1)) {
            Some(at) if (0..rows as i64).contains(&at) => table.word(at as usize * row + i % row),
            _ => outside(out.dtype),
        }))
    }
    fn vjp(&self, args: &[Tensor], _: &Tensor, g: &Tensor) -> Vec<Option<Tensor>> {
        vec![Some(g.scatter_add(&args[1], args[0].dims()[0])), None]
    }
}

/// `(updates: T[at.., row..], index: I[at..])` gives `T[rows, row..]`: each row is the sum of the updates with its number.
/// Always in the same order.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct ScatterAdd {
    /// Rows of the result.
    pub rows: usize,
}

impl ScatterAdd {
    /// Is it rewritten before lowering? Its kernel takes one list of at least two updates.
    pub(crate) fn is_rewritten(index: &TensorType) -> bool {
        index.rank() != 1 || index.elements() < 2
    }
}

impl Primitive for ScatterAdd {
    fn name(&self) -> String {
        "scatter_add".into()
    }
    fn attributes(&self) -> String {
        format!("rows {}", self.rows)
    }
    fn class(&self) -> Class {
        Class::Scatter
    }
    fn infer(&self, args: &[&TensorType]) -> Result<TensorType, String> {
        arity(args, 2)?;
        let (updates, index) = (args[0], args[1]);
        if !matches!(index.dtype, DType::I32 | DType::I64) || !updates.dims.starts_with(&index.dims) {
            return Err(format!("{updates} has no rows for {index}"));
        }
        if updates.dtype == DType::Bool {
            return Err("truth values cannot be added".into());
        }
        Ok(TensorType::new(updates.dtype, [&[self.rows][..], &updates.dims[index.rank()..]].concat()))
    }
    fn eval(&self, args: &[&Literal], out: &TensorType) -> Result<Literal, String> {
        let (updates, index) = (args[0], args[1]);
        let row: usize = out.dims[1..].iter().product();
        let dtype = out.dtype;
        let mut floats = vec![0.0; out.elements()];
        let mut ints = vec![0i64; out.elements()];
        for i in 0..updates.ty().elements() {
            let Some(at) = index.i64(i / row.max(1)).filter(|at| (0..self.rows as i64).contains(at)) else { continue };
            let t = at as usize * row + i % row;
            match updates.i64(i) {
                Some(v) => ints[t] = ints[t].wrapping_add(v),
                None => floats[t] += updates.f64(i),
            }
        }
        Ok(Literal::from_fn(out.clone(), |i| {
            if dtype.is_float() { word_of(dtype, floats[i]) } else { Constant::from_i64(dtype, ints[i]).0 }
        }))
    }
    fn vjp(&self, args: &[Tensor], _: &Tensor, g: &Tensor) -> Vec<Option<Tensor>> {
        let (index, dims) = (&args[1], args[0].dims());
        let inside = index.ge(0).and(index.lt(self.rows));
        let axes: Vec<usize> = (0..index.rank()).collect();
        let picked = g.gather_rows(index);
        vec![Some(inside.broadcast_in_dim(&dims, &axes).where_(&picked, 0.0)), None]
    }
    fn flops(&self, args: &[&TensorType], _: &TensorType) -> u64 {
        args[0].elements() as u64
    }
    /// One list of updates; a single one is a matter of comparing numbers.
    fn decompose(&self, args: &[Tensor]) -> Option<Tensor> {
        let (updates, index) = (&args[0], &args[1]);
        if !Self::is_rewritten(index.ty()) {
            return None;
        }
        let count: usize = index.dims().iter().product();
        let row: Vec<usize> = updates.dims()[index.rank()..].to_vec();
        let updates = updates.reshape(&[&[count][..], &row].concat());
        let index = index.reshape(&[count]);
        if count > 1 {
            return Some(updates.scatter_add(&index, self.rows));
        }
        // [rows, row.., count]
        let dims = [&[self.rows][..], &row, &[count]].concat();
        let last = dims.len() - 1;
        let order: Vec<usize> = (1..=row.len()).chain([0]).collect();
        let axes: Vec<usize> = (1..dims.len()).collect();
        let spread = updates.permute(&order).broadcast_in_dim(&dims, &axes);
        let number = Tensor::iota(index.dtype(), &dims, 0);
        let mine = index.broadcast_in_dim(&dims, &[last]).eq_(&number);
        Some(mine.where_(&spread, spread.zeros_like()).reduce_strict(ReduceOp::Sum, &[last]))
    }
}
