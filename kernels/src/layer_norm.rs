//! Layer normalisation of the rows of a matrix: mean 0, variance 1, then scaled and shifted.

use crate::config::{row_config, same_dims};
use tilewright_runtime::dsl::*;
use tilewright_runtime::{Element, Error, Launch, Result, View};

/// One row a program, in one tile. The variance is that of the differences from the mean, so that it loses no digits.
#[kernel]
pub fn layer_norm_row<T: Float>(
    x: In<T, 2>,
    weight: In<T, 1>,
    bias: In<T, 1>,
    y: Out<T, 2>,
    eps: f32,
    #[comptime] block: usize,
) {
    let row = program_id(0);
    let n = x.dim(1);
    let count = n.to::<f32>();
    let v = x.load([row, 0], [1, block]).to::<f32>();
    let mean = sum(v, 1) / count;
    let inside = expand_dims(arange(0, block), 0) < n;
    let d = where_(inside, v - mean, 0.0);
    let scale = rsqrt(sum(d * d, 1) / count + eps);
    let w = expand_dims(weight.load([0], [block]), 0).to::<f32>();
    let b = expand_dims(bias.load([0], [block]), 0).to::<f32>();
    y.store([row, 0], (d * scale * w + b).to::<T>());
}

/// One row a program, in pieces.
#[kernel]
pub fn layer_norm_long<T: Float>(
    x: In<T, 2>,
    weight: In<T, 1>,
    bias: In<T, 1>,
    y: Out<T, 2>,
    eps: f32,
    #[comptime] block: usize,
) {
    let row = program_id(0);
    let n = x.dim(1);
    let count = n.to::<f32>();
    let mut total = zeros::<f32>([1, block]);
    for start in (0..n).step_by(block) {
        total = total + x.load([row, start], [1, block]).to::<f32>();
    }
    let mean = sum(total, 1) / count;
    let lanes = expand_dims(arange(0, block), 0);
    let mut squares = zeros::<f32>([1, block]);
    for start in (0..n).step_by(block) {
        let v = x.load([row, start], [1, block]).to::<f32>();
        let d = where_(start + lanes < n, v - mean, 0.0);
        squares = squares + d * d;
    }
    let scale = rsqrt(sum(squares, 1) / count + eps);
    for start in (0..n).step_by(block) {
        let d = x.load([row, start], [1, block]).to::<f32>() - mean;
        let w = expand_dims(weight.load([start], [block]), 0).to::<f32>();
        let b = expand_dims(bias.load([start], [block]), 0).to::<f32>();
        y.store([row, start], (d * scale * w + b).to::<T>());
    }
}

/// `y = (x - mean) / sqrt(variance + eps) * weight + bias` along each row, computed in `f32`; the variance is that of the row
/// as a whole population (divided by its length).
///
/// # Errors
/// [`Error::Arguments`] if extents differ, or `weight` or `bias` is not as long as a row.
pub fn layer_norm<'a, T: Float + Element>(
    x: View<'a, T, 2>,
    weight: View<'a, T, 1>,
    bias: View<'a, T, 1>,
    y: View<'a, T, 2>,
    eps: f32,
) -> Result<Launch<'a>> {
    same_dims("layer_norm", x, y)?;
    let [rows, columns] = x.dims();
    for (what, v) in [("weight", weight), ("bias", bias)] {
        if v.dims() != [columns] {
            return Err(Error::Arguments {
                kernel: "layer_norm".into(),
                message: format!("{what} has {} elements, but rows have {columns}", v.dims()[0]),
            });
        }
    }
    Ok(match row_config(x.device().info().kind, x.dtype(), columns) {
        Ok(c) => layer_norm_row(x, weight, bias, y, eps, c.block).grid([rows]).num_warps(c.num_warps),
        Err(c) => layer_norm_long(x, weight, bias, y, eps, c.block).grid([rows]).num_warps(c.num_warps),
    })
}
