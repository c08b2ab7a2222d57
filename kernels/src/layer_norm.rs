//! Layer normalisation of the rows of a matrix: mean 0, variance 1, then scaled and shifted.

use crate::config::{RowConfig, row_config, same_dims};
use tilewright_runtime::dsl::*;
use tilewright_runtime::{DType, DeviceKind, Element, Error, Launch, Result, View};

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

/// One row a program, in pieces of `block` columns, read twice: first for mean and variance together, then for the result. Every
/// `chunk` columns that lie in one thread keep a mean and a sum of squares of the differences from it, to which those of
/// the next piece are joined (Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances",
/// 1979); they are combined once, at the end. Whole pieces have all their columns, so that one count does for all chunks.
#[kernel]
pub fn layer_norm_long<T: Float>(
    x: In<T, 2>,
    weight: In<T, 1>,
    bias: In<T, 1>,
    y: Out<T, 2>,
    eps: f32,
    #[comptime] block: usize,
    #[comptime] chunk: usize,
) {
    let row = program_id(0);
    let n = x.dim(1);
    let count = n.to::<f32>();
    let chunks = block / chunk;
    let size = chunk as f32;
    let mut means = zeros::<f32>([chunks, 1]);
    let mut squares = zeros::<f32>([chunks, 1]);
    let mut seen = full::<f32>([], 0.0);
    let whole = n / block * block;
    for start in (0..whole).step_by(block) {
        let v = reshape(x.load([row, start], [1, block]).to::<f32>(), [chunks, chunk]);
        let own_mean = sum(v, 1) * (1.0 / size);
        let d = v - own_mean;
        let part = size / (seen + size);
        let apart = own_mean - means;
        squares = squares + sum(d * d, 1) + apart * apart * (seen * part);
        means = means + apart * part;
        seen += size;
    }
    // The rest of the row, if any: each chunk has a count of its own.
    let mut counts = zeros::<f32>([chunks, 1]) + seen;
    let lanes = reshape(arange(0, block), [chunks, chunk]);
    for start in (whole..n).step_by(block) {
        // What lies beyond the end reads 0, and is no part of any count.
        let v = reshape(x.load([row, start], [1, block]).to::<f32>(), [chunks, chunk]);
        let inside = start + lanes < n;
        let new = sum(inside.to::<f32>(), 1);
        let own_mean = sum(v, 1) / maximum(new, 1.0);
        let d = where_(inside, v - own_mean, 0.0);
        let all = counts + new;
        let part = new / maximum(all, 1.0);
        let apart = own_mean - means;
        squares = squares + sum(d * d, 1) + apart * apart * counts * part;
        means = means + apart * part;
        counts = all;
    }
    let mean = sum(means * counts, 0) / count;
    let apart = means - mean;
    let scale = rsqrt(sum(squares + apart * apart * counts, 0) / count + eps);
    for start in (0..n).step_by(block) {
        let d = x.load([row, start], [1, block]).to::<f32>() - mean;
        let w = expand_dims(weight.load([start], [block]), 0).to::<f32>();
        let b = expand_dims(bias.load([start], [block]), 0).to::<f32>();
        y.store([row, start], fma(d * scale, w, b).to::<T>());
    }
}

/// How a long row is cut, where `otherwise` says it for kernels that compute less: on an H200 rows of 24 KiB ran best with 32 bytes
/// in each of 256 threads, those of 48 KiB and more with as much in each of 512.
fn pieces(kind: DeviceKind, dtype: DType, columns: usize, otherwise: RowConfig) -> RowConfig {
    if kind != DeviceKind::Cuda {
        return otherwise;
    }
    let num_warps = if columns * dtype.bytes() < 48 << 10 { 8 } else { 16 };
    RowConfig { block: num_warps as usize * 32 * 32 / dtype.bytes(), num_warps }
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
        Err(c) => {
            let c = pieces(x.device().info().kind, x.dtype(), columns, c);
            layer_norm_long(x, weight, bias, y, eps, c.block, 16 / x.dtype().bytes())
                .grid([rows])
                .num_warps(c.num_warps)
        }
    })
}
