//! Scaled dot-product attention: `softmax(q kᵀ scale + mask) v` in one pass over the keys, whose scores are never stored.

use std::f32::consts::{LN_2, LOG2_E};
use tilewright_runtime::dsl::*;
use tilewright_runtime::{DType, Device, DeviceKind, Element, Error, Launch, Options, Result, View};

/// What [`attention_tiled()`] and its kin are compiled for.
#[derive(Clone, Copy, PartialEq, Debug, Comptime)]
#[comptime(crate = tilewright_runtime)]
pub struct AttentionTiles {
    /// Queries of a program.
    pub bm: usize,
    /// Keys taken at a time.
    pub bn: usize,
    /// The width of a query, rounded up to a power of two, at least 16.
    pub width: usize,
    /// The width of a value, likewise.
    pub value_width: usize,
    /// Does query `i` see only keys up to `i`?
    pub causal: bool,
    /// What scores are multiplied by.
    pub scale: f32,
}

/// Are scores that are multiplied by this number in the same order as before? Then they are compared first, so that multiplying
/// cannot overflow: what it is done to are differences of scores, none of which is above 0.
pub fn keeps_order(scale: f64) -> bool {
    let scale = scale as f32 * LOG2_E;
    scale > 0.0 && scale.is_finite()
}

/// How products of queries and keys become powers of two.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Scaling {
    /// What products are multiplied by before they are compared, if they are.
    pub before: Option<f32>,
    /// What differences of scores are multiplied by: weights are powers of two of that.
    pub after: f32,
}

impl AttentionTiles {
    /// How products become powers of two, with a mask of this type.
    pub(crate) fn scaling(&self, mask: Option<DType>) -> Scaling {
        if mask.is_some_and(|m| m != DType::Bool) || !keeps_order(f64::from(self.scale)) {
            // What is added is in the units of scaled products.
            Scaling { before: Some(self.scale), after: LOG2_E }
        } else {
            Scaling { before: None, after: self.scale * LOG2_E }
        }
    }

    /// For tensors of these widths, scores multiplied by `scale`, `1 / sqrt(width)` if not given.
    pub fn new(config: AttentionConfig, how: Attention, width: usize, value_width: usize) -> Self {
        let of = |extent: usize| extent.next_power_of_two().max(16);
        Self {
            bm: config.bm,
            bn: config.bn,
            width: of(width),
            value_width: of(value_width),
            causal: how.causal,
            scale: how.scale.unwrap_or(1.0 / (width as f64).sqrt()) as f32,
        }
    }
}

/// What is known of a tile's rows after some of the keys.
#[derive(Clone, Copy, Carry)]
struct Rows {
    /// Weighted sums of values, `[bm, value_width]`; weights are relative to `most`.
    acc: Tile<f32>,
    /// The greatest score so far, `[bm, 1]`, as scores are compared ([`AttentionTiles::scaling`]).
    most: Tile<f32>,
    /// The sum of weights, `[bm, 1]`.
    total: Tile<f32>,
}

/// What a program reads.
struct Operands<T, M> {
    q: Tile<T>,
    k: In<T, 4>,
    v: In<T, 4>,
    mask: Option<In<M, 4>>,
    /// Batch, head of the queries, head of keys and values, first query.
    at: [Tile<i32>; 4],
    scaling: Scaling,
    tiles: AttentionTiles,
}

/// Takes in keys from `j0`. `edge`: some of them may lie beyond the last one, or after a query.
#[device_fn]
fn include<T: Float + DotElement, M: Element>(o: &Operands<T, M>, r: Rows, j0: Tile<i32>, edge: bool) -> Rows {
    let AttentionTiles { bm, bn, width, value_width, causal, .. } = o.tiles;
    let [b, h, kv, m0] = o.at;
    let k = reshape(o.k.load([b, kv, j0, 0], [1, 1, bn, width]), [bn, width]);
    let v = reshape(o.v.load([b, kv, j0, 0], [1, 1, bn, value_width]), [bn, value_width]);
    let products = dot(o.q, permute(k, [1, 0]), zeros::<f32>([bm, bn]));
    let mut mask = None;
    if let Some(m) = o.mask {
        mask = Some(reshape(m.load([b, h, m0, j0], [1, 1, bm, bn]), [bm, bn]));
    }
    let mut s = masked(products, o.scaling, mask);
    if comptime(edge) {
        let key = expand_dims(arange(0, bn) + j0, 0);
        let mut seen = key < o.k.dim(2);
        if comptime(causal) {
            seen = seen && key <= expand_dims(arange(0, bm) + m0, 1);
        }
        s = where_(seen, s, -inf());
    }
    let most = maximum(r.most, max(s, 1));
    let origin = origin(most);
    // The difference is taken before it is scaled: it is exact for scores of any size that are near each other. Products of the
    // scores and of the greatest one, each rounded, would differ by more than a weight can bear.
    let p = exp2_approx((s - origin) * o.scaling.after);
    let shrink = exp2_approx((r.most - origin) * o.scaling.after);
    Rows { acc: dot(p.to::<T>(), v, r.acc * shrink), most, total: r.total * shrink + sum(p, 1) }
}

/// What weights are relative to, by the greatest scores. Where nothing was seen so far any finite number does, since all weights
/// are 0.
#[device_fn]
fn origin(most: Tile<f32>) -> Tile<f32> {
    where_(most == -inf(), 0.0, most)
}

/// Scores, as they are compared, by the products of queries and keys. The forward and the backward pass round alike.
pub(crate) fn masked<M: Element>(products: Tile<f32>, scaling: Scaling, mask: Option<Tile<M>>) -> Tile<f32> {
    let scaled = || scaling.before.map_or(products, |scale| products * scale);
    match mask {
        None => scaled(),
        Some(m) if M::DTYPE == DType::Bool => where_(m.to::<bool>(), scaled(), -inf()),
        // One rounding, and no overflow of products that the mask brings back.
        Some(m) => fma(products, scaling.before.unwrap_or(1.0), m.to::<f32>()),
    }
}

/// Where a tile of queries goes.
#[derive(Clone, Copy)]
pub(crate) struct Outs<'a, T> {
    /// The results.
    pub outs: &'a [Out<T, 4>],
    /// The logarithms of sums of exponentials.
    pub lses: &'a [Out<f32, 3>],
    /// The greatest scores, as they are compared; 0 where nothing is seen.
    pub most: &'a [Out<f32, 3>],
    /// The logarithms of sums of exponentials relative to these; 0 where nothing is seen.
    pub log_sums: &'a [Out<f32, 3>],
}

/// A tile of queries against all the keys that they see.
#[device_fn]
#[allow(clippy::too_many_arguments)] // The operands of attention, and where its tile lies.
pub(crate) fn attend<T: Float + DotElement, M: Element>(
    q: In<T, 4>,
    k: In<T, 4>,
    v: In<T, 4>,
    mask: Option<In<M, 4>>,
    outs: Outs<'_, T>,
    tiles: AttentionTiles,
) {
    let AttentionTiles { bm, bn, width, value_width, causal, .. } = tiles;
    let scaling = tiles.scaling(mask.map(|_| M::DTYPE));
    let blocks = cdiv(q.dim(2), bm);
    let pid = program_id(0);
    let block = pid % blocks;
    let row = pid / blocks;
    let (b, h) = (row / q.dim(1), row % q.dim(1));
    // Queries in groups of heads share the keys of one.
    let kv = h / (q.dim(1) / k.dim(1));
    // Later queries see more keys: the longest work first.
    let m0 = if comptime(causal) { (blocks - 1 - block) * bm } else { block * bm };
    let o = Operands {
        q: reshape(q.load([b, h, m0, 0], [1, 1, bm, width]), [bm, width]),
        k,
        v,
        mask,
        at: [b, h, kv, m0],
        scaling,
        tiles,
    };
    let mut r =
        Rows { acc: zeros::<f32>([bm, value_width]), most: full::<f32>([bm, 1], -inf()), total: zeros::<f32>([bm, 1]) };
    let keys = k.dim(2);
    let (whole, end) = if comptime(causal) {
        (minimum(keys, m0 + 1) / bn * bn, minimum(keys, m0 + bm))
    } else {
        (keys / bn * bn, keys)
    };
    for j0 in (0..whole).step_by(bn) {
        r = include(&o, r, j0, false);
    }
    for j0 in (whole..end).step_by(bn) {
        r = include(&o, r, j0, true);
    }
    // A query that sees nothing gives zeros.
    let total = where_(r.total == 0.0, 1.0, r.total);
    let y = reshape((r.acc * (1.0 / total)).to::<T>(), [1, 1, bm, value_width]);
    for out in outs.outs {
        out.store([b, h, m0, 0], y);
    }
    let log_sum = log2(total) * LN_2;
    for lse in outs.lses {
        let l = where_(r.total == 0.0, -inf(), fma(r.most, scaling.after * LN_2, log_sum));
        lse.store([b, h, m0], reshape(l, [1, 1, bm]));
    }
    for most in outs.most {
        most.store([b, h, m0], reshape(origin(r.most), [1, 1, bm]));
    }
    for out in outs.log_sums {
        out.store([b, h, m0], reshape(log_sum, [1, 1, bm]));
    }
}

/// Results, and logarithms of sums.
fn outs<'a, T>(outs: &'a [Out<T, 4>], lses: &'a [Out<f32, 3>]) -> Outs<'a, T> {
    Outs { outs, lses, most: &[], log_sums: &[] }
}

/// Attention without a mask: a tile of queries of one head a program. Extents as for [`attention()`].
#[kernel]
pub fn attention_tiled<T: Float + DotElement>(
    q: In<T, 4>,
    k: In<T, 4>,
    v: In<T, 4>,
    out: Out<T, 4>,
    #[comptime] tiles: AttentionTiles,
) {
    attend(q, k, v, None::<In<f32, 4>>, outs(&[out], &[]), tiles);
}

/// [`attention_tiled()`] that also stores the logarithm of each query's sum of exponentials.
#[kernel]
pub fn attention_lse<T: Float + DotElement>(
    q: In<T, 4>,
    k: In<T, 4>,
    v: In<T, 4>,
    out: Out<T, 4>,
    lse: Out<f32, 3>,
    #[comptime] tiles: AttentionTiles,
) {
    attend(q, k, v, None::<In<f32, 4>>, outs(&[out], &[lse]), tiles);
}

/// [`attention_tiled()`] with a mask.
#[kernel]
pub fn attention_masked<T: Float + DotElement, M: Element>(
    q: In<T, 4>,
    k: In<T, 4>,
    v: In<T, 4>,
    mask: In<M, 4>,
    out: Out<T, 4>,
    #[comptime] tiles: AttentionTiles,
) {
    attend(q, k, v, Some(mask), outs(&[out], &[]), tiles);
}

/// [`attention_lse()`] with a mask.
#[kernel]
pub fn attention_masked_lse<T: Float + DotElement, M: Element>(
    q: In<T, 4>,
    k: In<T, 4>,
    v: In<T, 4>,
    mask: In<M, 4>,
    out: Out<T, 4>,
    lse: Out<f32, 3>,
    #[comptime] tiles: AttentionTiles,
) {
    attend(q, k, v, Some(mask), outs(&[out], &[lse]), tiles);
}

/// Tile sizes and options of [`attention_tiled()`] and its kin.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AttentionConfig {
    /// Queries of a program.
    pub bm: usize,
    /// Keys taken at a time.
    pub bn: usize,
    /// Warps and stages.
    pub options: Options,
}

impl AttentionConfig {
    const fn new(bm: usize, bn: usize, num_warps: u32, num_stages: u32) -> Self {
        Self { bm, bn, options: Options { num_warps, num_stages } }
    }

    /// What suits a device and a type when nothing was tuned; `width` is the greater of those of keys and values.
    pub fn heuristic(device: &Device, dtype: DType, queries: usize, keys: usize, width: usize, masked: bool) -> Self {
        if has_wgmma(device) && is_half(dtype) {
            return Self::of_wgmma(queries, keys, width, masked);
        }
        Self::of_kind(device.info().kind, dtype, queries, keys, width)
    }

    /// For half precision by `wgmma`, whose four warps take 64 queries each.
    pub fn of_wgmma(queries: usize, keys: usize, width: usize, masked: bool) -> Self {
        if !fits_four_warps(queries, keys, width) {
            return Self::of_kind(DeviceKind::Cuda, DType::F16, queries, keys, width);
        }
        // Measured on an H200 with 4096 keys: the best of about ten at widths 64 and 128, causal or not. Several small programs
        // on a processor do better there than one large one.
        let mut best = match width {
            ..=64 => Self::new(64, 64, 4, 3),
            // A tile of a mask needs room, too.
            65..=128 if masked => Self::new(128, 64, 8, 3),
            65..=128 => Self::new(128, 64, 4, 2),
            _ => Self::new(128, 64, 8, 2),
        };
        // No more warps than the queries that are there need.
        best.bm = best.bm.min(queries.next_power_of_two());
        best.options.num_warps = best.options.num_warps.min(best.bm as u32 / 64 * 4);
        best.clamped(queries, keys)
    }

    /// [`AttentionConfig::heuristic`] of a kind of device that need not be there.
    pub fn of_kind(kind: DeviceKind, dtype: DType, queries: usize, keys: usize, width: usize) -> Self {
        let half = is_half(dtype);
        let best = match (kind, half, width) {
            // The interpreter's products are as fast as they get at this size.
            (DeviceKind::Cpu, ..) => Self::new(128, 128, 1, 1),
            // A fragment of keys or values read by a warp of 32 queries serves two instructions: with 16 queries, reading shared
            // memory takes longer than the products.
            (DeviceKind::Cuda, true, ..=64) => Self::new(128, 64, 4, 3),
            (DeviceKind::Cuda, true, ..=128) => Self::new(128, 64, 4, 2),
            (DeviceKind::Cuda, true, _) => Self::new(64, 32, 4, 2),
            (DeviceKind::Cuda, false, ..=64) => Self::new(64, 32, 4, 1),
            (_, _, ..=64) => Self::new(32, 32, 4, 1),
            // More would be much code, which software devices take long to compile; and some have 32 KiB of shared memory.
            (_, _, ..=128) => Self::new(16, 32, 4, 1),
            _ => Self::new(8, 16, 4, 1),
        };
        best.clamped(queries, keys)
    }

    /// The same for the gradients: for that of the queries, `bm` of them a program; or, `of_keys`, for those of keys and values,
    /// `bn` keys a program. These kernels hold two tiles of scores, and for keys and values two sums.
    pub fn backward(device: &Device, dtype: DType, queries: usize, keys: usize, width: usize, of_keys: bool) -> Self {
        if has_wgmma(device) && is_half(dtype) {
            return Self::backward_of_wgmma(queries, keys, width, of_keys);
        }
        Self::backward_of_kind(device.info().kind, dtype, queries, keys, width, of_keys)
    }

    /// [`AttentionConfig::backward`] for half precision by `wgmma`.
    pub fn backward_of_wgmma(queries: usize, keys: usize, width: usize, of_keys: bool) -> Self {
        let (own, others) = if of_keys { (keys, queries) } else { (queries, keys) };
        // Both sums of keys and values as wide as that do not fit registers.
        if !fits_four_warps(own, others, width) || (of_keys && width > 128) {
            return Self::backward_of_kind(DeviceKind::Cuda, DType::F16, queries, keys, width, of_keys);
        }
        let others = match width {
            ..=64 => 64,
            65..=128 if !of_keys => 64,
            _ => 32,
        };
        let (bm, bn) = if of_keys { (others, 64) } else { (64, others) };
        Self::new(bm, bn, 4, 2).clamped(queries, keys)
    }

    /// [`AttentionConfig::backward`] of a kind of device that need not be there.
    pub fn backward_of_kind(
        kind: DeviceKind,
        dtype: DType,
        queries: usize,
        keys: usize,
        width: usize,
        of_keys: bool,
    ) -> Self {
        let half = is_half(dtype);
        let (own, others, warps, stages) = match (kind, half, width) {
            (DeviceKind::Cpu, ..) => (128, 128, 1, 1),
            (DeviceKind::Cuda, true, ..=128) => (64, 32, 4, 2),
            (DeviceKind::Cuda, true, _) if of_keys => (16, 32, 4, 1),
            (DeviceKind::Cuda, true, _) => (32, 32, 4, 1),
            (_, _, ..=64) => (32, 32, 4, 1),
            _ => (16, 16, 4, 1),
        };
        let (bm, bn) = if of_keys { (others, own) } else { (own, others) };
        Self::new(bm, bn, warps, stages).clamped(queries, keys)
    }

    /// No tile larger than there is need for, and none smaller than 16.
    fn clamped(mut self, queries: usize, keys: usize) -> Self {
        let fit = |tile: usize, extent: usize| tile.min(extent.next_power_of_two().max(16));
        (self.bm, self.bn) = (fit(self.bm, queries), fit(self.bn, keys));
        self
    }
}

fn is_half(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16)
}

fn has_wgmma(device: &Device) -> bool {
    device.caps().is_some_and(|caps| caps.wgmma)
}

/// Do products of four warps suit so many rows, taken against so many of the others? They have 64 rows and 32 columns at least.
fn fits_four_warps(rows: usize, others: usize, width: usize) -> bool {
    rows > 32 && others > 16 && width > 16
}

/// What is asked of [`attention()`] beside the products.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Attention {
    /// Does query `i` see only keys up to `i`?
    pub causal: bool,
    /// What scores are multiplied by; `1 / sqrt(width)` if not given.
    pub scale: Option<f64>,
}

/// `out = softmax(q kᵀ scale) v` for q `[batch, heads, queries, width]`, k `[batch, kv_heads, keys, width]`, v
/// `[batch, kv_heads, keys, value_width]` and out `[batch, heads, queries, value_width]`, summed in `f32` and rounded once. Heads are a
/// multiple of `kv_heads`: groups of them share keys and values. Views may be strided: permuted or packed tensors are read and
/// written in place.
///
/// A query that sees no key, or whose scores are all minus infinity, gives zeros. An infinite or NaN value at a key that is
/// not seen may give NaN, as 0 times it is.
///
/// # Errors
/// [`Error::Arguments`] if the extents do not fit together.
pub fn attention<'a, T: Float + DotElement + Element>(
    q: View<'a, T, 4>,
    k: View<'a, T, 4>,
    v: View<'a, T, 4>,
    out: View<'a, T, 4>,
    how: Attention,
) -> Result<Launch<'a>> {
    let config = heuristic(&out.device(), q, v);
    attention_with(q, k, v, None::<View<'a, f32, 4>>, out, None, how, config)
}

/// [`AttentionConfig::heuristic`] of arguments.
pub(crate) fn heuristic<T: Element>(device: &Device, q: View<'_, T, 4>, v: View<'_, T, 4>) -> AttentionConfig {
    let ([_, _, queries, width], [_, _, keys, value_width]) = (q.dims(), v.dims());
    AttentionConfig::heuristic(device, T::DTYPE, queries, keys, width.max(value_width), false)
}

/// [`attention()`] in a configuration of the caller's choice, with a mask of `[batch, heads, queries, keys]` (repeated along
/// dimensions of stride 0): of truth values, which say what is seen, or of floats, which are added to the scaled scores. `lse`, of
/// `[batch, heads, queries]`, takes the logarithm of each query's sum of exponentials, which gradients are made of; minus infinity where
/// nothing is seen.
///
/// # Errors
/// [`Error::Arguments`] if the extents do not fit together.
#[allow(clippy::too_many_arguments)] // The operands of attention, two of them optional, and how it is done.
pub fn attention_with<'a, T: Float + DotElement + Element, M: Element>(
    q: View<'a, T, 4>,
    k: View<'a, T, 4>,
    v: View<'a, T, 4>,
    mask: Option<View<'a, M, 4>>,
    out: View<'a, T, 4>,
    lse: Option<View<'a, f32, 3>>,
    how: Attention,
    config: AttentionConfig,
) -> Result<Launch<'a>> {
    let [batch, heads, queries, width] = q.dims();
    let [_, kv_heads, keys, value_width] = v.dims();
    let fits = k.dims() == [batch, kv_heads, keys, width]
        && v.dims() == [batch, kv_heads, keys, value_width]
        && out.dims() == [batch, heads, queries, value_width]
        && heads.checked_rem(kv_heads).is_none_or(|rest| rest == 0)
        && (kv_heads > 0 || heads == 0)
        && mask.is_none_or(|m| m.dims() == [batch, heads, queries, keys])
        && lse.is_none_or(|l| l.dims() == [batch, heads, queries]);
    if !fits {
        let more = |name: &str, dims: Option<&[usize]>| dims.map_or(String::new(), |d| format!(", {name} {d:?}"));
        return Err(Error::Arguments {
            kernel: "attention".into(),
            message: format!(
                "q is {:?}, k {:?}, v {:?}, out {:?}{}{}; they must be [batch, heads, queries, width], [batch, kv_heads, keys, width], \
                 [batch, kv_heads, keys, value_width], [batch, heads, queries, value_width], and a mask [batch, heads, queries, keys] and lse \
                 [batch, heads, queries], where heads are a multiple of kv_heads",
                q.dims(),
                k.dims(),
                v.dims(),
                out.dims(),
                more("the mask", mask.map(|m| m.dims()).as_ref().map(|d| &d[..])),
                more("lse", lse.map(|m| m.dims()).as_ref().map(|d| &d[..])),
            ),
        });
    }
    let tiles = AttentionTiles::new(config, how, width, value_width);
    let launch = match (mask, lse) {
        (None, None) => attention_tiled(q, k, v, out, tiles),
        (None, Some(lse)) => attention_lse(q, k, v, out, lse, tiles),
        (Some(mask), None) => attention_masked(q, k, v, mask, out, tiles),
        (Some(mask), Some(lse)) => attention_masked_lse(q, k, v, mask, out, lse, tiles),
    };
    Ok(launch.grid([queries.div_ceil(config.bm) * heads * batch]).options(config.options))
}
