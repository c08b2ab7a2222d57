//! Attention: broadcasting and masks around the primitive.

use super::operand::promote;
use super::ops::broadcast_dims;
use super::trace::apply_at;
use super::{Tensor, fail};
use crate::prim::attention::{Scores, takes, takes_mask};
use crate::prim::{Attention, Op};
use tilewright_compiler::DType;
use tilewright_compiler::error::Loc;

impl Tensor {
    /// Attention: `softmax(q kᵀ scale + mask) v` over the last two dimensions of `[.., rows, width]` (this tensor is q). A
    /// mask of truth values says which keys are seen; one of numbers is added. With `causal`, row `i` sees keys up to `i`.
    /// `scale` is `1 / sqrt(width)` if not given. A row that sees nothing gives zeros.
    ///
    /// The dimensions before broadcast; besides, the third last of k and v, their heads, may divide that of q: groups of heads then
    /// share keys and values. `f16`, `bf16` and `f32` are computed in `f32` and rounded once; other types in `f64`.
    #[track_caller]
    pub fn attention(&self, k: &Tensor, v: &Tensor, mask: Option<&Tensor>, causal: bool, scale: Option<f64>) -> Tensor {
        let loc = Loc::caller();
        let mut all = vec![self, k, v];
        all.extend(mask);
        if let Some(failed) = super::first_failed(&all) {
            return failed;
        }
        if all[..3].iter().any(|t| t.rank() < 2) {
            return fail(
                loc,
                format!("attention of {}, {} and {}: each needs rows and columns", self.ty(), k.ty(), v.ty()),
            );
        }
        let result = promote(promote(self.dtype(), k.dtype()), v.dtype());
        let result = if result.is_float() { result } else { DType::F32 };
        match four_dimensions([self, k, v], mask) {
            Err(what) => fail(loc, what),
            Ok((dims, _)) if !takes(result) => wide(self, k, v, mask, (causal, scale), &dims, loc).cast(result),
            Ok((dims, [q, k, v])) => {
                let word = scale.unwrap_or(1.0 / (self.dims()[self.rank() - 1] as f64).sqrt()).to_bits();
                let mut operands = vec![q.cast(result), k.cast(result), v.cast(result)];
                if let Some(mask) = mask {
                    let mask = if takes_mask(mask.dtype()) { mask.clone() } else { narrowed(mask) };
                    let full = [&dims[..], &[q.dims()[2], k.dims()[2]]].concat();
                    operands.push(mask.broadcast_to(&full).reshape(&[
                        q.dims()[0],
                        q.dims()[1],
                        full[full.len() - 2],
                        full[full.len() - 1],
                    ]));
                }
                let scores = Scores { causal, scale_word: word, masked: mask.is_some() };
                let operands: Vec<&Tensor> = operands.iter().collect();
                let out = apply_at(Op::Attention(Attention(scores)), &operands, loc);
                out.reshape(&[&dims[..], &[q.dims()[2], v.dims()[3]]].concat())
            }
        }
    }
}

/// A mask of a type that kernels do not take, as `f32`: what is finite stays finite, so that the least `f64` hides a key no more
/// than the least `f32` does, and a query all of whose keys it hides sees them evenly.
fn narrowed(mask: &Tensor) -> Tensor {
    if mask.dtype() != DType::F64 {
        return mask.cast(DType::F32);
    }
    let most = f64::from(f32::MAX);
    let near = mask.maximum(-most).minimum(most);
    mask.abs().eq_(f64::INFINITY).where_(mask, &near).cast(DType::F32)
}

type Operands = (Vec<usize>, [Tensor; 3]);

/// The extents before rows and columns that all broadcast to, and q, k and v with 4 dimensions.
fn four_dimensions([q, k, v]: [&Tensor; 3], mask: Option<&Tensor>) -> Result<Operands, String> {
    let batch = |t: &Tensor| t.dims()[..t.rank() - 2].to_vec();
    let heads = |t: &Tensor| batch(t).last().copied().unwrap_or(1);
    let (of_keys, of_values) = (heads(k), heads(v));
    let kv_heads = of_keys.max(of_values);
    let fits = |h: usize| h == 1 || h == kv_heads;
    let grouped = kv_heads > 1 && fits(of_keys) && fits(of_values) && heads(q).is_multiple_of(kv_heads);
    let mut dims = batch(q);
    for t in [k, v] {
        let mut other = batch(t);
        if grouped && let Some(last) = other.last_mut() {
            *last = 1;
        }
        dims = broadcast_dims(&dims, &other).ok_or_else(|| {
            format!("attention of {}, {} and {}: their dimensions do not broadcast", q.ty(), k.ty(), v.ty())
        })?;
    }
    if let Some(m) = mask {
        let full = [&dims[..], &[q.dims()[q.rank() - 2], k.dims()[k.rank() - 2]]].concat();
        if broadcast_dims(&full, &m.dims()).as_ref() != Some(&full) {
            return Err(format!("the mask {} does not broadcast to the scores, {full:?}", m.ty()));
        }
    }
    let (outer, inner) = dims.split_at(dims.len().saturating_sub(1));
    let all_heads = inner.first().copied().unwrap_or(1);
    let kv_heads = if grouped || kv_heads == 1 { kv_heads } else { all_heads };
    let four = |t: &Tensor, heads: usize| {
        let tail = &t.dims()[t.rank() - 2..];
        let full = if inner.is_empty() { tail.to_vec() } else { [outer, &[heads], tail].concat() };
        t.broadcast_to(&full).reshape(&[outer.iter().product(), heads, tail[0], tail[1]])
    };
    Ok((dims.clone(), [four(q, all_heads), four(k, kv_heads), four(v, kv_heads)]))
}

/// Attention of types that have no kernel, in other primitives: as `f64`.
fn wide(
    q: &Tensor,
    k: &Tensor,
    v: &Tensor,
    mask: Option<&Tensor>,
    (causal, scale): (bool, Option<f64>),
    dims: &[usize],
    loc: Loc,
) -> Tensor {
    let (rows, keys) = (q.dims()[q.rank() - 2], k.dims()[k.rank() - 2]);
    let heads = dims.last().copied().unwrap_or(1);
    // Heads that share keys and values each get their own.
    let own = |t: &Tensor| {
        let d = t.dims();
        let r = d.len();
        if r < 3 || d[r - 3] == 1 || d[r - 3] == heads {
            return t.cast(DType::F64);
        }
        let (before, after) = d.split_at(r - 2);
        let spread = [before, &[heads / d[r - 3]], after].concat();
        let axes: Vec<usize> = (0..r - 2).chain([r - 1, r]).collect();
        t.cast(DType::F64).broadcast_in_dim(&spread, &axes).reshape(&[&d[..r - 3], &[heads], after].concat())
    };
    let scale = scale.unwrap_or(1.0 / (q.dims()[q.rank() - 1] as f64).sqrt());
    let mut scores = q.cast(DType::F64).matmul(&own(k).transpose()) * scale;
    let mut seen: Option<Tensor> = None;
    if let Some(m) = mask {
        if m.dtype() == DType::Bool {
            seen = Some(m.clone());
        } else {
            scores = scores + m;
        }
    }
    if causal {
        let below = Tensor::iota(DType::I32, &[rows, keys], 1).le(Tensor::iota(DType::I32, &[rows, keys], 0));
        seen = Some(seen.map_or(below.clone(), |s| s.and(&below)));
    }
    if let Some(s) = seen {
        scores = s.where_(&scores, f64::NEG_INFINITY);
    }
    let axis = scores.rank() - 1;
    if keys == 0 {
        return scores.matmul(&own(v));
    }
    let mut kept = scores.dims();
    kept[axis] = 1;
    let top = scores.max(&[axis]).reshape(&kept);
    // A row that sees nothing has the greatest score -inf; 0 in its place makes all its weights 0.
    let top = top.eq_(f64::NEG_INFINITY).where_(0.0, &top);
    let e = (scores - top).exp();
    let total = e.sum(&[axis]).reshape(&kept);
    let weights = e / total.eq_(0.0).where_(1.0, &total);
    let out = weights.matmul(&own(v));
    out.check().map_or_else(|e| fail(loc, e.to_string()), |()| out.clone())
}
