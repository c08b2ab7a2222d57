//! Composites: functions of tensors in terms of primitives. Normalisations of halves are computed in `f32` and rounded once.

use super::{Operand, Tensor, fail};
use tilewright_compiler::DType;
use tilewright_compiler::error::Loc;
use tilewright_compiler::tile::ReduceOp;

/// `sqrt(2 / pi)`.
const SQRT_2_OVER_PI: f64 = 0.797_884_560_802_865_4;

impl Tensor {
    /// Halves as `f32`, other floats as they are, integers as `f32`.
    fn accurate(&self) -> Tensor {
        match self.dtype() {
            DType::F32 | DType::F64 => self.clone(),
            _ => self.cast(DType::F32),
        }
    }

    /// The reduction along `axis` that keeps it with extent 1.
    #[track_caller]
    fn keep(&self, op: ReduceOp, axis: usize) -> Tensor {
        if self.check().is_err() {
            return self.clone();
        }
        let mut dims = self.dims();
        if axis >= dims.len() {
            return fail(Loc::caller(), format!("axis {axis} is out of range for {}", self.ty()));
        }
        dims[axis] = 1;
        self.reduce_strict(op, &[axis]).reshape(&dims)
    }

    /// The greatest element along `axis`, kept with extent 1, to be subtracted: what is subtracted makes no difference to the result,
    /// so no gradient passes through it.
    #[track_caller]
    fn top(&self, axis: usize) -> Tensor {
        self.keep(ReduceOp::Max, axis).detach()
    }

    /// The mean along `axes`; NaN of no elements.
    #[track_caller]
    pub fn mean(&self, axes: &[usize]) -> Tensor {
        let x = self.as_float();
        let count: usize = axes.iter().map(|&a| self.ty().dims.get(a).copied().unwrap_or(1)).product();
        (x.accurate().sum(axes) / count as f64).cast(x.dtype())
    }

    /// The variance along `axes`: squared distances from the mean, divided by their number less `correction`.
    #[track_caller]
    pub fn var(&self, axes: &[usize], correction: usize) -> Tensor {
        let x = self.as_float();
        let wide = x.accurate();
        let count: usize = axes.iter().map(|&a| self.ty().dims.get(a).copied().unwrap_or(1)).product();
        let kept: Vec<usize> = (0..x.rank()).filter(|a| !axes.contains(a)).collect();
        let mean = (wide.sum(axes) / count as f64).broadcast_in_dim(&x.dims(), &kept);
        let distance = &wide - mean;
        ((&distance * &distance).sum(axes) / (count as f64 - correction as f64)).cast(x.dtype())
    }

    /// The root, with the gradient 0 at 0, where that of `sqrt` is infinite.
    fn safe_sqrt(&self) -> Tensor {
        let zero = self.eq_(0.0);
        zero.where_(0.0, zero.where_(1.0, self).sqrt())
    }

    /// The standard deviation along `axes`; see [`Tensor::var`]. The gradient of a constant is 0.
    #[track_caller]
    pub fn std(&self, axes: &[usize], correction: usize) -> Tensor {
        self.var(axes, correction).safe_sqrt()
    }

    /// The Euclidean norm along `axes`. The gradient at 0 is 0.
    #[track_caller]
    pub fn norm(&self, axes: &[usize]) -> Tensor {
        let x = self.as_float();
        let wide = x.accurate();
        (&wide * &wide).sum(axes).safe_sqrt().cast(x.dtype())
    }

    /// `log(sum(exp(x)))` along `axis`, which goes away, without overflow; minus infinity if all are.
    #[track_caller]
    pub fn logsumexp(&self, axis: usize) -> Tensor {
        let x = self.accurate();
        let top = x.top(axis);
        // An infinite maximum would make the differences NaN.
        let top = top.abs().eq_(f64::INFINITY).where_(0.0, &top);
        let total = (&x - &top).exp().sum(&[axis]);
        let top = top.reshape(&total.dims());
        (total.log() + top).cast(self.as_float().dtype())
    }

    /// `log(exp(x) + exp(y))` without overflow.
    #[track_caller]
    pub fn logaddexp(&self, other: impl Operand) -> Tensor {
        let other = other.operand(self);
        let (x, y) = (self.as_float(), other.as_float());
        let top = x.maximum(&y);
        // Equal infinities have no difference.
        let infinite = top.abs().eq_(f64::INFINITY);
        let least = x.minimum(&y);
        let distance = infinite.where_(0.0, least - &top);
        infinite.where_(&top, &top + (distance.exp() + 1.0).log())
    }

    /// `x log(y)`; 0 where x is 0, unless y is NaN.
    #[track_caller]
    pub fn xlogy(&self, other: impl Operand) -> Tensor {
        let y = other.operand(self);
        let zero = self.eq_(0.0).and(y.eq_(&y));
        zero.where_(0.0, self * zero.where_(1.0, &y).log())
    }

    /// `exp(x) / sum(exp(x))` along `axis`, without overflow.
    #[track_caller]
    pub fn softmax(&self, axis: usize) -> Tensor {
        let x = self.accurate();
        let e = (&x - x.top(axis)).exp();
        let total = e.keep(ReduceOp::Sum, axis);
        (e / total).cast(self.as_float().dtype())
    }

    /// The logarithm of [`Tensor::softmax`], accurate where that is tiny.
    #[track_caller]
    pub fn log_softmax(&self, axis: usize) -> Tensor {
        let x = self.accurate();
        let shifted = &x - x.top(axis);
        let total = shifted.exp().keep(ReduceOp::Sum, axis);
        (shifted - total.log()).cast(self.as_float().dtype())
    }

    /// The last dimension with mean 0 and variance 1, then scaled and moved.
    #[track_caller]
    pub fn layer_norm(&self, weight: Option<&Tensor>, bias: Option<&Tensor>, eps: f64) -> Tensor {
        if self.check().is_err() {
            return self.clone();
        }
        let Some(axis) = self.rank().checked_sub(1) else {
            return fail(Loc::caller(), "layer_norm of a single number");
        };
        let n = self.dims()[axis] as f64;
        let x = self.accurate();
        let centred = &x - x.keep(ReduceOp::Sum, axis) / n;
        let variance = (&centred * &centred).keep(ReduceOp::Sum, axis) / n;
        scale_and_move(centred * (variance + eps).rsqrt(), weight, bias).cast(self.as_float().dtype())
    }

    /// The last dimension divided by the root of its mean square, then scaled.
    #[track_caller]
    pub fn rms_norm(&self, weight: Option<&Tensor>, eps: f64) -> Tensor {
        if self.check().is_err() {
            return self.clone();
        }
        let Some(axis) = self.rank().checked_sub(1) else {
            return fail(Loc::caller(), "rms_norm of a single number");
        };
        let n = self.dims()[axis] as f64;
        let x = self.accurate();
        let square = (&x * &x).keep(ReduceOp::Sum, axis) / n;
        scale_and_move(&x * (square + eps).rsqrt(), weight, None).cast(self.as_float().dtype())
    }

    /// `x` where positive, else 0; NaN stays. The gradient at 0 is 0.
    #[track_caller]
    pub fn relu(&self) -> Tensor {
        self.le(0.0).where_(0.0, self)
    }

    /// `1 / (1 + exp(-x))`, without overflow.
    #[track_caller]
    pub fn sigmoid(&self) -> Tensor {
        self.in_f32(|x| {
            let positive = x.ge(0.0);
            let e = positive.where_(x.neg(), x).exp();
            let one = 1.0 / (1.0 + &e);
            positive.where_(&one, &(&e * &one))
        })
    }

    /// A function of floats that computes in `f32` for halves and is rounded once, as PyTorch's activations are.
    #[track_caller]
    fn in_f32(&self, f: impl FnOnce(&Tensor) -> Tensor) -> Tensor {
        let x = self.as_float();
        let dtype = x.dtype();
        if matches!(dtype, DType::F16 | DType::BF16) { f(&x.cast(DType::F32)).cast(dtype) } else { f(&x) }
    }

    /// `x sigmoid(x)`, also called swish.
    #[track_caller]
    pub fn silu(&self) -> Tensor {
        self.in_f32(|x| x * x.sigmoid())
    }

    /// `x` times the normal distribution's cumulative function at `x`, by the error function.
    #[track_caller]
    pub fn gelu(&self) -> Tensor {
        self.in_f32(|x| x * (((x * std::f64::consts::FRAC_1_SQRT_2).erf() + 1.0) * 0.5))
    }

    /// [`Tensor::gelu`] by a hyperbolic tangent, as GPT-2 has it.
    #[track_caller]
    pub fn gelu_tanh(&self) -> Tensor {
        self.in_f32(|x| {
            let inner = x * (x * x * (0.044_715 * SQRT_2_OVER_PI) + SQRT_2_OVER_PI);
            x * ((inner.tanh() + 1.0) * 0.5)
        })
    }

    /// `log(1 + exp(x))`; `x` itself above 20.
    #[track_caller]
    pub fn softplus(&self) -> Tensor {
        self.in_f32(|x| {
            let large = x.gt(20.0);
            let small = large.where_(0.0, x);
            large.where_(x, (small.exp() + 1.0).log())
        })
    }

    /// -1, 0 or 1; 0 for NaN.
    #[track_caller]
    pub fn sign(&self) -> Tensor {
        let to = if self.dtype() == DType::Bool { DType::I32 } else { self.dtype() };
        let x = self.cast(to);
        x.gt(0.0).cast(to) - x.lt(0.0).cast(to)
    }

    /// `x` brought into `lo..=hi`; NaN stays. The gradient at and beyond the bounds is 0.
    #[track_caller]
    pub fn clamp(&self, lo: impl Operand, hi: impl Operand) -> Tensor {
        let (lo, hi) = (lo.operand(self), hi.operand(self));
        self.le(&lo).where_(&lo, self.ge(&hi).where_(&hi, self))
    }

    /// `value` where `mask` holds, else `x`.
    #[track_caller]
    pub fn masked_fill(&self, mask: &Tensor, value: f64) -> Tensor {
        mask.where_(value, self)
    }

    /// A new last dimension of extent `classes` with 1 at the place the number says, else 0; `i64`.
    #[track_caller]
    pub fn one_hot(&self, classes: usize) -> Tensor {
        let dims = [&self.dims()[..], &[classes]].concat();
        let number = Tensor::iota(self.dtype(), &dims, self.rank());
        self.unsqueeze(self.rank()).eq_(&number).cast(DType::I64)
    }

    /// `x wᵀ + b` with a weight of extents `[out, in]`.
    #[track_caller]
    pub fn linear(&self, weight: &Tensor, bias: Option<&Tensor>) -> Tensor {
        let product = self.matmul(&weight.transpose());
        match bias {
            Some(b) => product + b,
            None => product,
        }
    }

    /// Rows of this table by number, of any extents.
    #[track_caller]
    pub fn embedding(&self, index: &Tensor) -> Tensor {
        self.gather_rows(index)
    }
}

#[track_caller]
fn scale_and_move(x: Tensor, weight: Option<&Tensor>, bias: Option<&Tensor>) -> Tensor {
    let x = weight.map_or(x.clone(), |w| &x * w.accurate());
    bias.map_or(x.clone(), |b| &x + b.accurate())
}
