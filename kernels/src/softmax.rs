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

/// One row a program, in pieces of `block` columns, read twice: first for the greatest element and the sum together, then for
/// the result. Every `chunk` columns that lie in one thread keep a maximum and a sum of their own, rescaled when the
/// maximum grows; they are combined once, at the end.
#[kernel]
pub fn softmax_long<T: Float>(x: In<T, 2>, y: Out<T, 2>, #[comptime] block: usize, #[comptime] chunk: usize) {
    let row = program_id(0);
    let n = x.dim(1);
    let chunks = block / chunk;
    let mut most = full::<f32>([chunks, 1], -inf());
    let mut total = zeros::<f32>([chunks, 1]);
    // Powers of 2 in place of powers of e: 2 to the (x log2 e).
    let log2_e = std::f32::consts::LOG2_E;
    for start in (0..n).step_by(block) {
        let v = reshape(x.load_or([row, start], [1, block], -inf()).to::<f32>(), [chunks, chunk]);
        let grown = maximum(most, max(v, 1) * log2_e);
        // Nothing but -inf so far: any finite number does, since all the powers are 0.
        let origin = where_(grown == -inf(), 0.0, grown);
        total = total * exp2_approx(most - origin) + sum(exp2_approx(fma(v, log2_e, -origin)), 1);
        most = grown;
    }
    let top = max(most, 0);
    let origin = where_(top == -inf(), 0.0, top);
    // A row of nothing but -inf has the sum 0, and gives NaN.
    let scale = 1.0 / sum(total * exp2_approx(most - origin), 0);
    for start in (0..n).step_by(block) {
        let v = x.load_or([row, start], [1, block], -inf()).to::<f32>();
        y.store([row, start], (exp2_approx(fma(v, log2_e, -origin)) * scale).to::<T>());
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
        Err(c) => softmax_long(x, y, c.block, 16 / x.dtype().bytes()).grid([rows]).num_warps(c.num_warps),
    })
}
