//! Scaled dot-product attention, what it leaves of each row for the backward pass, and its gradients.
//!
//! Scores are `q kᵀ scale`, plus the mask if it is one of numbers; minus infinity where a mask of truth values is false, or where
//! a causal attention looks ahead. Extents are those of [`tilewright_kernels::attention()`]: q `[batch, heads, queries, width]`, k
//! `[batch, kv_heads, keys, width]`, v `[batch, kv_heads, keys, value_width]`, a mask `[batch, heads, queries, keys]`.
//!
//! The gradients need no weights kept from the forward pass: they are `exp(score - most - log_sum)` again, where `most` is a
//! query's greatest score and `log_sum` the logarithm of its sum of exponentials relative to that ([`AttentionRow`]). These are
//! two numbers because their sum is not enough: beside a greatest score of 1e10, an `f32` has no room for the logarithm of a sum. With
//! `ds = weight (g vᵀ - delta)` and `delta = sum(g out)` the gradients are `dv = weightsᵀ g`, `dq = scale ds k` and
//! `dk = scale dsᵀ q` (Dao et al., 2022, <https://arxiv.org/abs/2205.14135>).
//!
//! Scores are rounded to `f32` before they are compared, in every way of execution: beside a mask of -1e10 they are all alike. They
//! are compared *before* they are scaled where that keeps their order ([`Scores::factor`]), so that scaling cannot overflow.

use super::{Class, Op, Primitive};
use crate::autodiff;
use crate::graph::TensorType;
use crate::literal::{Literal, word_of};
use crate::tensor::{Tensor, trace};
use serde::{Deserialize, Serialize};
use tilewright_compiler::DType;
use tilewright_compiler::error::Loc;
use tilewright_compiler::tile::ReduceOp;

/// What all of attention's primitives are told.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Scores {
    /// Does query `i` see only keys up to `i`?
    pub causal: bool,
    /// The bits, as `f64`, of what products are multiplied by.
    pub scale_word: u64,
    /// Is there a mask among the operands?
    pub masked: bool,
}

/// The weighted means of values: `softmax(scores) v`. Computed in `f32` or better and rounded once; kernels may round weights to the
/// type of the values. A query that sees nothing gives zeros. Operands: q, k, v, then the mask.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Attention(pub Scores);

/// What is kept of each query's scores, `f32`. Operands: q, k, then the mask.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct AttentionRow {
    /// As in the forward pass.
    pub scores: Scores,
    /// Which of the two.
    pub what: Row,
}

/// What is kept of a query's scores.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Row {
    /// The greatest score, as they are compared ([`Scores::factor`]); 0 where nothing is seen.
    Most,
    /// The logarithm of the sum of exponentials relative to it; 0 where nothing is seen.
    LogSum,
}

/// The gradient of one operand. Operands: q, k, v, the gradient of the result, the greatest scores, the logarithms of sums, delta,
/// then the mask.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct AttentionGrad {
    /// As in the forward pass.
    pub scores: Scores,
    /// Of which operand.
    pub of: Of,
}

/// An operand of attention.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Of {
    /// q.
    Query,
    /// k.
    Key,
    /// v.
    Value,
}

/// Types that attention is computed in.
pub fn takes(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16 | DType::F32)
}

/// Types of masks.
pub fn takes_mask(dtype: DType) -> bool {
    dtype == DType::Bool || takes(dtype)
}

impl Scores {
    /// What products are multiplied by.
    pub fn scale(&self) -> f64 {
        f64::from_bits(self.scale_word)
    }

    fn attributes(&self) -> String {
        let causal = if self.causal { ", causal" } else { "" };
        format!("scale {:?}{causal}", self.scale())
    }

    /// Checks q, k and the mask; gives `[batch, heads, queries, keys]`.
    fn infer(&self, q: &TensorType, k: &TensorType, mask: Option<&&TensorType>) -> Result<[usize; 4], String> {
        let ([b, h, m, d], [b2, g, n, d2]) = (four(q)?, four(k)?);
        let fits = b == b2 && d == d2 && ((g > 0 && h % g == 0) || h == 0);
        if !fits || q.dtype != k.dtype || !takes(q.dtype) {
            return Err(format!(
                "{q} and {k} are not [batch, heads, queries, width] and [batch, kv_heads, keys, width] of one float type of at \
                 most 32 bits, heads a multiple of kv_heads"
            ));
        }
        if mask.is_some() != self.masked {
            return Err(format!("a mask is {}expected", if self.masked { "" } else { "not " }));
        }
        if let Some(mask) = mask
            && (mask.dims != [b, h, m, n] || !takes_mask(mask.dtype))
        {
            return Err(format!("the mask {mask} is not of [{b}, {h}, {m}, {n}] truth values or floats"));
        }
        Ok([b, h, m, n])
    }

    /// What is left to multiply scores with after they were compared: the scale, if there is no mask of numbers and scaling keeps
    /// their order; else 1.
    pub fn factor(&self, mask: Option<DType>) -> f64 {
        let (scale, numbers) = (self.scale(), mask.is_some_and(|m| m != DType::Bool));
        if numbers || !tilewright_kernels::keeps_order(scale) { 1.0 } else { scale }
    }

    /// The scores of one query as they are compared, by the operands' places.
    fn row(&self, q: &Wide, k: &Wide, mask: Option<&Literal>, [b, h, i]: [usize; 3]) -> Vec<f64> {
        let kv = h / (q.dims[1] / k.dims[1]);
        let query = q.row([b, h, i]);
        let scale = if self.factor(mask.map(|m| m.ty().dtype)) == 1.0 { self.scale() } else { 1.0 };
        (0..k.dims[2])
            .map(|j| {
                if self.causal && j > i {
                    return f64::NEG_INFINITY;
                }
                let key = k.row([b, kv, j]);
                let product = round(query.iter().zip(key).map(|(x, y)| x * y).sum::<f64>());
                let place = || ((b * q.dims[1] + h) * q.dims[2] + i) * k.dims[2] + j;
                match mask {
                    Some(m) if m.ty().dtype == DType::Bool => {
                        if m.word(place()) == 0 {
                            f64::NEG_INFINITY
                        } else {
                            round(product * scale)
                        }
                    }
                    Some(m) => round(product * scale + m.f64(place())),
                    None => round(product * scale),
                }
            })
            .collect()
    }

    /// The scores as an expression, as they are compared: `f32` of `[batch, heads, queries, keys]`.
    fn expression(&self, q: &Tensor, k: &Tensor, mask: Option<&Tensor>) -> Tensor {
        let heads = q.dims()[1];
        let mut s = q.cast(DType::F32).dot_strict(&repeated(k, heads).transpose());
        if self.factor(mask.map(Tensor::dtype)) == 1.0 {
            s = s * self.scale();
        }
        let mut seen: Option<Tensor> = None;
        if let Some(m) = mask {
            if m.dtype() == DType::Bool {
                seen = Some(m.clone());
            } else {
                s = s + m.cast(DType::F32);
            }
        }
        if self.causal {
            let dims = s.dims();
            let below = Tensor::iota(DType::I32, &dims, 3).le(Tensor::iota(DType::I32, &dims, 2));
            seen = Some(seen.map_or(below.clone(), |m| m.and(&below)));
        }
        match seen {
            Some(seen) => seen.where_(&s, f64::NEG_INFINITY),
            None => s,
        }
    }

    /// The scores as an expression, and the greatest of each row (0 where nothing is seen) with an extent of 1 for the keys. There
    /// is at least one key.
    fn expression_and_most(&self, q: &Tensor, k: &Tensor, mask: Option<&Tensor>) -> (Tensor, Tensor) {
        let s = self.expression(q, k, mask);
        let most = kept(&s.reduce_strict(ReduceOp::Max, &[3])).detach();
        // A row that sees nothing has the greatest score -inf; 0 in its place makes all its weights 0.
        let most = most.eq_(f64::NEG_INFINITY).where_(0.0, &most);
        (s, most)
    }

    /// Exponentials of scores relative to the greatest of their rows.
    fn exponentials(&self, s: &Tensor, most: &Tensor, mask: Option<&Tensor>) -> Tensor {
        ((s - most) * self.factor(mask.map(Tensor::dtype))).exp()
    }
}

/// As `f32`: what overflows there does so in every way of execution.
fn round(x: f64) -> f64 {
    f64::from(x as f32)
}

/// Extents of rank 4.
fn four(t: &TensorType) -> Result<[usize; 4], String> {
    <[usize; 4]>::try_from(&t.dims[..]).map_err(|_| format!("{t} has not 4 dimensions"))
}

/// Heads of keys or values, repeated to as many as queries have, as `f32`.
fn repeated(x: &Tensor, heads: usize) -> Tensor {
    let x = x.cast(DType::F32);
    let [b, g, n, d] = [0, 1, 2, 3].map(|i: usize| x.dims()[i]);
    if g == heads {
        return x;
    }
    x.broadcast_in_dim(&[b, g, heads / g.max(1), n, d], &[0, 1, 3, 4]).reshape(&[b, heads, n, d])
}

/// The sum over the heads that share keys and values: the transpose of [`repeated`].
fn gathered(x: &Tensor, kv_heads: usize) -> Tensor {
    let [b, h, n, d] = [0, 1, 2, 3].map(|i: usize| x.dims()[i]);
    if h == kv_heads {
        return x.clone();
    }
    x.reshape(&[b, kv_heads, h / kv_heads.max(1), n, d]).reduce_strict(ReduceOp::Sum, &[2])
}

/// A tensor of rank 4 as doubles.
struct Wide {
    dims: [usize; 4],
    values: Vec<f64>,
}

impl Wide {
    fn new(l: &Literal) -> Self {
        let dims = four(l.ty()).unwrap_or_default();
        Self { dims, values: (0..l.ty().elements()).map(|i| l.f64(i)).collect() }
    }

    fn row(&self, [b, h, i]: [usize; 3]) -> &[f64] {
        let width = self.dims[3];
        &self.values[((b * self.dims[1] + h) * self.dims[2] + i) * width..][..width]
    }
}

/// All (batch, head, query), in order.
fn queries([b, h, m, _]: [usize; 4]) -> impl Iterator<Item = [usize; 3]> {
    (0..b).flat_map(move |b| (0..h).flat_map(move |h| (0..m).map(move |i| [b, h, i])))
}

/// The greatest score, or 0 if all are minus infinity; and the sum of exponentials relative to it. As rows of kernels leave them.
fn most_and_total(scores: &[f64], factor: f64) -> (f64, f64) {
    // A NaN stays.
    let most = scores.iter().fold(f64::NEG_INFINITY, |m: f64, &s| if s > m || s.is_nan() { s } else { m });
    let origin = if most == f64::NEG_INFINITY { 0.0 } else { most };
    (origin, scores.iter().map(|s| ((s - origin) * factor).exp()).sum())
}

impl Primitive for Attention {
    fn name(&self) -> String {
        "attention".into()
    }
    fn attributes(&self) -> String {
        self.0.attributes()
    }
    fn class(&self) -> Class {
        Class::Attention
    }
    fn infer(&self, args: &[&TensorType]) -> Result<TensorType, String> {
        let [q, k, v, mask @ ..] = args else {
            return Err(format!("it takes q, k and v, not {} operands", args.len()));
        };
        let [b, h, m, n] = self.0.infer(q, k, mask.first())?;
        let [b2, g, n2, e] = four(v)?;
        if (b2, n2, v.dtype) != (b, n, q.dtype) || g != k.dims[1] || mask.len() > 1 {
            return Err(format!("the values {v} do not go with the keys {k}"));
        }
        Ok(TensorType::new(q.dtype, [b, h, m, e]))
    }
    fn eval(&self, args: &[&Literal], out: &TensorType) -> Result<Literal, String> {
        let [q, k, v] = [0, 1, 2].map(|i| Wide::new(args[i]));
        let factor = self.0.factor(args.get(3).map(|m| m.ty().dtype));
        let mut words = Vec::with_capacity(out.elements());
        for at in queries(q.dims) {
            let scores = self.0.row(&q, &k, args.get(3).copied(), at);
            let (most, total) = most_and_total(&scores, factor);
            let mut sums = vec![0.0; v.dims[3]];
            let kv = at[1] / (q.dims[1] / v.dims[1]);
            for (j, s) in scores.iter().enumerate() {
                let weight = ((s - most) * factor).exp();
                for (sum, x) in sums.iter_mut().zip(v.row([at[0], kv, j])) {
                    *sum += weight * x;
                }
            }
            let divisor = if total == 0.0 { 1.0 } else { total };
            words.extend(sums.iter().map(|s| word_of(out.dtype, s / divisor)));
        }
        Ok(Literal::from_fn(out.clone(), |i| words[i]))
    }
    fn vjp(&self, args: &[Tensor], out: &Tensor, g: &Tensor) -> Vec<Option<Tensor>> {
        let (q, k, v, mask) = (&args[0], &args[1], &args[2], args.get(3));
        let mut of_scores = vec![q, k];
        of_scores.extend(mask);
        let row = |what| {
            let op = Op::AttentionRow(AttentionRow { scores: self.0.clone(), what });
            trace::apply_at(op, &of_scores, Loc::UNKNOWN)
        };
        let (most, log_sum) = (row(Row::Most), row(Row::LogSum));
        let delta = (g.cast(DType::F32) * out.cast(DType::F32)).reduce_strict(ReduceOp::Sum, &[3]);
        let mut operands = vec![q, k, v, g, &most, &log_sum, &delta];
        operands.extend(mask);
        let gradient = |of| {
            let op = Op::AttentionGrad(AttentionGrad { scores: self.0.clone(), of });
            Some(trace::apply_at(op, &operands, Loc::UNKNOWN))
        };
        let mut all = vec![gradient(Of::Query), gradient(Of::Key), gradient(Of::Value)];
        if let Some(mask) = mask {
            // Its gradient has as many elements as there are weights: there is nothing to be saved.
            let of_mask = || {
                let (p, dp) = weights_and_gradient(&self.0, [q, k, v, g, &most, &log_sum], Some(mask));
                (p * (dp - kept(&delta))).cast(mask.dtype())
            };
            all.push(mask.dtype().is_float().then(of_mask));
        }
        all
    }
    fn flops(&self, args: &[&TensorType], out: &TensorType) -> u64 {
        let (width, keys) = (args[0].dims.last(), args[1].dims.get(2));
        let pairs = args[0].elements() / width.copied().unwrap_or(1).max(1) * keys.copied().unwrap_or(1);
        let value_width = out.dims.last().copied().unwrap_or(1);
        2 * (pairs * (width.copied().unwrap_or(1) + value_width)) as u64
    }
    fn decompose(&self, args: &[Tensor]) -> Option<Tensor> {
        let (q, k, v, mask) = (&args[0], &args[1], &args[2], args.get(3));
        if k.dims()[2] == 0 {
            return Some(nothing_seen(v.dtype(), q, v.dims()[3]));
        }
        let (s, most) = self.0.expression_and_most(q, k, mask);
        let e = self.0.exponentials(&s, &most, mask);
        let total = kept(&e.reduce_strict(ReduceOp::Sum, &[3]));
        let weights = e / total.eq_(0.0).where_(1.0, &total);
        Some(weights.dot_strict(&repeated(v, q.dims()[1])).cast(v.dtype()))
    }
}

/// Zeros with a row of so many for each query.
fn nothing_seen(dtype: DType, q: &Tensor, width: usize) -> Tensor {
    Tensor::zeros(dtype, &[&q.dims()[..3], &[width]].concat())
}

/// With an extent of 1 for the keys.
fn kept(x: &Tensor) -> Tensor {
    x.reshape(&[&x.dims()[..], &[1]].concat())
}

/// The weights, and their gradients before the softmax: `[batch, heads, queries, keys]`. Of q, k, v, the gradient of the result, the
/// greatest scores and the logarithms of sums.
fn weights_and_gradient(scores: &Scores, of: [&Tensor; 6], mask: Option<&Tensor>) -> (Tensor, Tensor) {
    let [q, k, v, g, most, log_sum] = of;
    let s = scores.expression(q, k, mask);
    let relative = (s - kept(most)) * scores.factor(mask.map(Tensor::dtype));
    let p = (relative - kept(log_sum)).exp();
    let dp = g.cast(DType::F32).dot_strict(&repeated(v, q.dims()[1]).transpose());
    (p, dp)
}

impl Primitive for AttentionRow {
    fn name(&self) -> String {
        match self.what {
            Row::Most => "attention_most".into(),
            Row::LogSum => "attention_log_sum".into(),
        }
    }
    fn attributes(&self) -> String {
        self.scores.attributes()
    }
    fn class(&self) -> Class {
        Class::Attention
    }
    fn infer(&self, args: &[&TensorType]) -> Result<TensorType, String> {
        let [q, k, mask @ ..] = args else { return Err(format!("it takes q and k, not {} operands", args.len())) };
        let [b, h, m, _] = self.scores.infer(q, k, mask.first())?;
        if mask.len() > 1 {
            return Err(format!("it takes q, k and a mask, not {} operands", args.len()));
        }
        Ok(TensorType::new(DType::F32, [b, h, m]))
    }
    fn eval(&self, args: &[&Literal], out: &TensorType) -> Result<Literal, String> {
        let [q, k] = [0, 1].map(|i| Wide::new(args[i]));
        let mask = args.get(2).copied();
        let factor = self.scores.factor(mask.map(|m| m.ty().dtype));
        let mut words = Vec::with_capacity(out.elements());
        for at in queries(q.dims) {
            let (most, total) = most_and_total(&self.scores.row(&q, &k, mask, at), factor);
            let value = match self.what {
                Row::Most => most,
                Row::LogSum if total == 0.0 => 0.0,
                Row::LogSum => total.ln(),
            };
            words.push(word_of(out.dtype, value));
        }
        Ok(Literal::from_fn(out.clone(), |i| words[i]))
    }
    fn vjp(&self, args: &[Tensor], _: &Tensor, g: &Tensor) -> Vec<Option<Tensor>> {
        match self.what {
            // Weights do not depend on what scores are taken relative to, and the sums take it for a constant, too.
            Row::Most => args.iter().map(|_| None).collect(),
            Row::LogSum => through_decomposition(self, args, g),
        }
    }
    fn flops(&self, args: &[&TensorType], _: &TensorType) -> u64 {
        2 * (args[0].elements() * args[1].dims.get(2).copied().unwrap_or(1)) as u64
    }
    fn decompose(&self, args: &[Tensor]) -> Option<Tensor> {
        let (q, k, mask) = (&args[0], &args[1], args.get(2));
        if k.dims()[2] == 0 {
            return Some(Tensor::zeros(DType::F32, &q.dims()[..3]));
        }
        let (s, most) = self.scores.expression_and_most(q, k, mask);
        if self.what == Row::Most {
            return Some(most.reshape(&q.dims()[..3]));
        }
        let total = self.scores.exponentials(&s, &most, mask).reduce_strict(ReduceOp::Sum, &[3]);
        Some(total.eq_(0.0).where_(0.0, total.log()))
    }
}

impl Primitive for AttentionGrad {
    fn name(&self) -> String {
        let of = match self.of {
            Of::Query => "q",
            Of::Key => "k",
            Of::Value => "v",
        };
        format!("attention_grad_{of}")
    }
    fn attributes(&self) -> String {
        self.scores.attributes()
    }
    fn class(&self) -> Class {
        Class::Attention
    }
    fn infer(&self, args: &[&TensorType]) -> Result<TensorType, String> {
        let [q, k, v, g, most, log_sum, delta, mask @ ..] = args else {
            return Err(format!("it takes q, k, v, g, most, log_sum and delta, not {} operands", args.len()));
        };
        let mut forward = vec![*q, k, v];
        forward.extend(mask);
        let out = Attention(self.scores.clone()).infer(&forward)?;
        let sums = TensorType::new(DType::F32, &q.dims[..3]);
        if **g != out || [most, log_sum, delta].iter().any(|t| ***t != sums) {
            return Err(format!("{g}, {most}, {log_sum} and {delta} are not {out} and three times {sums}"));
        }
        Ok(match self.of {
            Of::Query => (*q).clone(),
            Of::Key => (*k).clone(),
            Of::Value => (*v).clone(),
        })
    }
    fn eval(&self, args: &[&Literal], out: &TensorType) -> Result<Literal, String> {
        let [q, k, v, g] = [0, 1, 2, 3].map(|i| Wide::new(args[i]));
        let (most, log_sum, delta, mask) = (args[4], args[5], args[6], args.get(7).copied());
        let factor = self.scores.factor(mask.map(|m| m.ty().dtype));
        let dims = four(out)?;
        let mut sums = vec![0.0; out.elements()];
        for (i, at) in queries(q.dims).enumerate() {
            let [b, h, _] = at;
            let kv = h / (q.dims[1] / k.dims[1]);
            for (j, s) in self.scores.row(&q, &k, mask, at).into_iter().enumerate() {
                let weight = ((s - most.f64(i)) * factor - log_sum.f64(i)).exp();
                let dp: f64 = g.row(at).iter().zip(v.row([b, kv, j])).map(|(x, y)| x * y).sum();
                let ds = weight * round(round(dp) - delta.f64(i)) * self.scores.scale();
                let (place, factor, row) = match self.of {
                    Of::Query => (at, ds, k.row([b, kv, j])),
                    Of::Key => ([b, kv, j], ds, q.row(at)),
                    Of::Value => ([b, kv, j], weight, g.row(at)),
                };
                let first = ((place[0] * dims[1] + place[1]) * dims[2] + place[2]) * dims[3];
                for (sum, x) in sums[first..first + dims[3]].iter_mut().zip(row) {
                    *sum += factor * x;
                }
            }
        }
        Ok(Literal::from_fn(out.clone(), |i| word_of(out.dtype, sums[i])))
    }
    fn vjp(&self, args: &[Tensor], _: &Tensor, g: &Tensor) -> Vec<Option<Tensor>> {
        through_decomposition(self, args, g)
    }
    fn flops(&self, args: &[&TensorType], _: &TensorType) -> u64 {
        let products = if self.of == Of::Value { 2 } else { 3 };
        2 * products * (args[0].elements() * args[1].dims.get(2).copied().unwrap_or(1)) as u64
    }
    fn decompose(&self, args: &[Tensor]) -> Option<Tensor> {
        let [q, k, v, g, most, log_sum, delta, mask @ ..] = args else { return None };
        if k.dims()[2] == 0 {
            let of = match self.of {
                Of::Query => q,
                Of::Key => k,
                Of::Value => v,
            };
            return Some(of.zeros_like());
        }
        let (p, dp) = weights_and_gradient(&self.scores, [q, k, v, g, most, log_sum], mask.first());
        if self.of == Of::Value {
            let dv = p.transpose().dot_strict(&g.cast(DType::F32));
            return Some(gathered(&dv, v.dims()[1]).cast(v.dtype()));
        }
        let ds = p * (dp - kept(delta)) * self.scores.scale();
        Some(if self.of == Of::Query {
            ds.dot_strict(&repeated(k, q.dims()[1])).cast(q.dtype())
        } else {
            gathered(&ds.transpose().dot_strict(&q.cast(DType::F32)), k.dims()[1]).cast(k.dtype())
        })
    }
}

/// Gradients of gradients: those of the same in other primitives.
fn through_decomposition(p: &dyn Primitive, args: &[Tensor], g: &Tensor) -> Vec<Option<Tensor>> {
    let expression = |args: &Vec<Tensor>| {
        p.decompose(args)
            .unwrap_or_else(|| crate::tensor::fail(Loc::UNKNOWN, format!("`{}` has no expression", p.name())))
    };
    match autodiff::vjp(expression, &args.to_vec()) {
        Ok((_, pull)) => pull(g).into_iter().map(Some).collect(),
        Err(e) => {
            let failed = crate::tensor::failed(std::sync::Arc::new(e), g.ty().clone());
            args.iter().map(|_| Some(failed.clone())).collect()
        }
    }
}
