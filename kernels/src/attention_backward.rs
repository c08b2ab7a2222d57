//! The gradients of attention, from the scores computed again: no weights are kept from the forward pass.
//!
//! One kernel for the queries, which goes through the keys, and one for keys and values, which goes through the queries.
//! With `weight = exp(score - most - log_sum)`, `delta` the sum of each row of `g out`, and `ds = weight (g vᵀ - delta)`: `dv = weightsᵀ g`,
//! `dq = scale ds k` and `dk = scale dsᵀ q` (Dao et al., 2022, <https://arxiv.org/abs/2205.14135>).

use crate::attention::{AttentionTiles, masked};
use std::f32::consts::LOG2_E;
use tilewright_runtime::Element;
use tilewright_runtime::dsl::*;

/// What both kernels read.
#[derive(Clone, Copy)]
pub(crate) struct Saved<T, M> {
    pub q: In<T, 4>,
    pub k: In<T, 4>,
    pub v: In<T, 4>,
    /// The gradient of the result.
    pub g: In<T, 4>,
    /// Each query's greatest score, as scores are compared.
    pub most: In<f32, 3>,
    /// The logarithm of its sum of exponentials relative to that.
    pub log_sum: In<f32, 3>,
    pub delta: In<f32, 3>,
    pub mask: Option<In<M, 4>>,
}

/// Weights of a tile of scores, by its products: `rows` and `columns` are the places along its two dimensions, of queries and keys
/// in either order.
#[device_fn]
fn weights<M: Element>(
    tiles: AttentionTiles,
    products: Tile<f32>,
    mask: Option<Tile<M>>,
    seen: Option<Tile<bool>>,
    [most, log_sum]: [Tile<f32>; 2],
) -> Tile<f32> {
    let scaling = tiles.scaling(mask.map(|_| M::DTYPE));
    let mut s = masked(products, scaling, mask);
    if let Some(seen) = seen {
        s = where_(seen, s, -inf());
    }
    exp2_approx(fma(s - most, scaling.after, log_sum * -LOG2_E))
}

/// The gradient of a tile of queries.
#[device_fn]
pub(crate) fn grad_q<T: Float + DotElement, M: Element>(s: Saved<T, M>, out: &[Out<T, 4>], tiles: AttentionTiles) {
    let AttentionTiles { bm, bn, width, value_width, causal, scale } = tiles;
    let blocks = cdiv(s.q.dim(2), bm);
    let pid = program_id(0);
    let row = pid / blocks;
    let (b, h) = (row / s.q.dim(1), row % s.q.dim(1));
    let kv = h / (s.q.dim(1) / s.k.dim(1));
    // Later queries see more keys: the longest work first.
    let m0 = if comptime(causal) { (blocks - 1 - pid % blocks) * bm } else { pid % blocks * bm };
    let q = reshape(s.q.load([b, h, m0, 0], [1, 1, bm, width]), [bm, width]);
    let g = reshape(s.g.load([b, h, m0, 0], [1, 1, bm, value_width]), [bm, value_width]);
    let most = reshape(s.most.load([b, h, m0], [1, 1, bm]), [bm, 1]);
    let log_sum = reshape(s.log_sum.load([b, h, m0], [1, 1, bm]), [bm, 1]);
    let keys = s.k.dim(2);
    let end = if comptime(causal) { minimum(keys, m0 + bm) } else { keys };
    let mut acc = zeros::<f32>([bm, width]);
    for j0 in (0..end).step_by(bn) {
        let k = reshape(s.k.load([b, kv, j0, 0], [1, 1, bn, width]), [bn, width]);
        let v = reshape(s.v.load([b, kv, j0, 0], [1, 1, bn, value_width]), [bn, value_width]);
        let products = dot(q, permute(k, [1, 0]), zeros::<f32>([bm, bn]));
        let key = expand_dims(arange(0, bn) + j0, 0);
        let mut seen = key < keys;
        if comptime(causal) {
            seen = seen && key <= expand_dims(arange(0, bm) + m0, 1);
        }
        let mut mask = None;
        if let Some(m) = s.mask {
            mask = Some(reshape(m.load([b, h, m0, j0], [1, 1, bm, bn]), [bm, bn]));
        }
        let p = weights(tiles, products, mask, Some(seen), [most, log_sum]);
        let dp = dot(g, permute(v, [1, 0]), zeros::<f32>([bm, bn]));
        // Loaded where it is used, which a cache answers: kept through the loop, it does not fit the registers beside the rest.
        let delta = reshape(s.delta.load([b, h, m0], [1, 1, bm]), [bm, 1]);
        acc = dot((p * (dp - delta)).to::<T>(), k, acc);
    }
    let dq = reshape((acc * scale).to::<T>(), [1, 1, bm, width]);
    for out in out {
        out.store([b, h, m0, 0], dq);
    }
}

/// The gradients of a tile of keys and of its values: `bn` of them, against `bm` queries at a time.
#[device_fn]
pub(crate) fn grad_kv<T: Float + DotElement, M: Element>(
    s: Saved<T, M>,
    dk: &[Out<T, 4>],
    dv: &[Out<T, 4>],
    tiles: AttentionTiles,
) {
    let AttentionTiles { bm, bn, width, value_width, causal, scale } = tiles;
    let (queries, keys) = (s.q.dim(2), s.k.dim(2));
    let blocks = cdiv(keys, bn);
    let pid = program_id(0);
    let j0 = pid % blocks * bn;
    let row = pid / blocks;
    let (b, kv) = (row / s.k.dim(1), row % s.k.dim(1));
    let group = s.q.dim(1) / s.k.dim(1);
    let k = reshape(s.k.load([b, kv, j0, 0], [1, 1, bn, width]), [bn, width]);
    let v = reshape(s.v.load([b, kv, j0, 0], [1, 1, bn, value_width]), [bn, value_width]);
    // Queries before the first key see none of these.
    let start = if comptime(causal) { j0 / bm * bm } else { scalar::<i32>(0) };
    let mut dk_sum = zeros::<f32>([bn, width]);
    let mut dv_sum = zeros::<f32>([bn, value_width]);
    for h in (kv * group)..(kv * group + group) {
        for m0 in (start..queries).step_by(bm) {
            let q = reshape(s.q.load([b, h, m0, 0], [1, 1, bm, width]), [bm, width]);
            let g = reshape(s.g.load([b, h, m0, 0], [1, 1, bm, value_width]), [bm, value_width]);
            let most = reshape(s.most.load([b, h, m0], [1, 1, bm]), [1, bm]);
            let log_sum = reshape(s.log_sum.load([b, h, m0], [1, 1, bm]), [1, bm]);
            let delta = reshape(s.delta.load([b, h, m0], [1, 1, bm]), [1, bm]);
            // Transposed, so that they are left operands as they are.
            let products = dot(k, permute(q, [1, 0]), zeros::<f32>([bn, bm]));
            let mut seen = None;
            if comptime(causal) {
                seen = Some(expand_dims(arange(0, bn) + j0, 1) <= expand_dims(arange(0, bm) + m0, 0));
            }
            let mut mask = None;
            if let Some(m) = s.mask {
                mask = Some(permute(reshape(m.load([b, h, m0, j0], [1, 1, bm, bn]), [bm, bn]), [1, 0]));
            }
            let p = weights(tiles, products, mask, seen, [most, log_sum]);
            // What lies beyond the last query is 0 in g and delta, and so adds nothing.
            dv_sum = dot(p.to::<T>(), g, dv_sum);
            let dp = dot(v, permute(g, [1, 0]), zeros::<f32>([bn, bm]));
            dk_sum = dot((p * (dp - delta)).to::<T>(), q, dk_sum);
        }
    }
    let x = reshape((dk_sum * scale).to::<T>(), [1, 1, bn, width]);
    for out in dk {
        out.store([b, kv, j0, 0], x);
    }
    let x = reshape(dv_sum.to::<T>(), [1, 1, bn, value_width]);
    for out in dv {
        out.store([b, kv, j0, 0], x);
    }
}
