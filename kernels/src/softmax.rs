//! Softmax over the rows of a matrix, any length: in one tile where a row fits, else in pieces.

use crate::config::{row_config, same_dims};
use tilewright_runtime::dsl::*;
use tilewright_runtime::{Element, Launch, Result, View};

/// One row a program, in one tile of `block` columns, computed in `f32`.
#[kernel]
pub fn softmax_row<T: Float>(x: In<T, 2>, y: Out<T, 2>, #[comptime] block: usize) {
    let row = program_id(0);
    let v = x.load_or([row, 0], [1, block], -inf()).to::<f32>();
    let e = exp(v - max(v, 1));
    // One division a row instead of one an element.
    let scale = 1.0 / sum(e, 1);
    y.store([row, 0], (e * scale).to::<T>());
}

/// One row a program, in pieces of `block` columns: the greatest element, then the sum, then the result. Only the first
/// reading comes from memory where a row fits into a cache.
#[kernel]
pub fn softmax_long<T: Float>(x: In<T, 2>, y: Out<T, 2>, #[comptime] block: usize) {
    let row = program_id(0);
    let n = x.dim(1);
    // Each lane keeps its own; they are combined once, at the end.
    let mut most = full::<f32>([1, block], -inf());
    for start in (0..n).step_by(block) {
        most = maximum(most, x.load_or([row, start], [1, block], -inf()).to::<f32>());
    }
    let top = max(most, 1);
    let mut total = zeros::<f32>([1, block]);
    for start in (0..n).step_by(block) {
        total = total + exp(x.load_or([row, start], [1, block], -inf()).to::<f32>() - top);
    }
    let scale = 1.0 / sum(total, 1);
    for start in (0..n).step_by(block) {
        let e = exp(x.load_or([row, start], [1, block], -inf()).to::<f32>() - top);
        y.store([row, start], (e * scale).to::<T>());
    }
}

/// `y[i, j] = exp(x[i, j]) / sum over j of exp(x[i, j])`, computed in `f32` without overflow. A row whose greatest element is
/// infinite or NaN gives NaN.
///
/// # Errors
/// [`tilewright_runtime::Error::Arguments`] if the extents differ.
pub fn softmax<'a, T: Float + Element>(x: View<'a, T, 2>, y: View<'a, T, 2>) -> Result<Launch<'a>> {
    same_dims("softmax", x, y)?;
    let [rows, columns] = x.dims();
    Ok(match row_config(x.device().info().kind, x.dtype(), columns) {
        Ok(c) => softmax_row(x, y, c.block).grid([rows]).num_warps(c.num_warps),
        Err(c) => softmax_long(x, y, c.block).grid([rows]).num_warps(c.num_warps),
    })
}
