//! Composites: functions of tensors in terms of primitives. Normalisations of halves are computed in `f32` and rounded once.

use super::{Operand, Tensor, fail};
use tilewright_compiler::DType;
use tilewright_compiler::error::Loc;
use tilewright_compiler::tile::ReduceOp;

/// `sqrt(2 / pi)`.
const SQRT_2_OVER_PI: f64 = 0.797_884_560_802_865_4;

impl Tensor {
    /// Halves as `f32`, other floats as they are, integers as `f32`.
    pub(super) fn accurate(&self) -> Tensor {
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

    /// How many elements are reduced along `axes`.
    fn count(&self, axes: &[usize]) -> usize {
        axes.iter().map(|&a| self.ty().dims.get(a).copied().unwrap_or(1)).product()
    }

    /// The mean along `axes`; NaN of no elements.
    #[track_caller]
    pub fn mean(&self, axes: &[usize]) -> Tensor {
        let x = self.as_float();
        x.accurate().wide_mean(axes).cast(x.dtype())
    }

    #[track_caller]
    fn wide_mean(&self, axes: &[usize]) -> Tensor {
        let sum = self.sum(axes);
        match self.count(axes) {
            0 => sum + f64::NAN,
            n => sum / n as f64,
        }
    }

    /// The variance along `axes`: squared distances from the mean, divided by their number less `correction`, but not
    /// by less than 0: so it is infinite or NaN if there are too few elements.
    #[track_caller]
    pub fn var(&self, axes: &[usize], correction: usize) -> Tensor {
        let x = self.as_float();
        x.accurate().wide_var(axes, correction).cast(x.dtype())
    }

    #[track_caller]
    fn wide_var(&self, axes: &[usize], correction: usize) -> Tensor {
        let kept: Vec<usize> = (0..self.rank()).filter(|a| !axes.contains(a)).collect();
        let mean = self.wide_mean(axes).broadcast_in_dim(&self.dims(), &kept);
        let distance = self - mean;
        let squares = (&distance * &distance).sum(axes);
        match self.count(axes).saturating_sub(correction) {
            // As division by 0: NaN of 0, since squares are not negative.
            0 => squares * f64::INFINITY,
            n => squares / n as f64,
        }
    }

    /// The root, with the gradient 0 at 0, where that of `sqrt` is infinite.
    fn safe_sqrt(&self) -> Tensor {
        let zero = self.eq_(0.0);
        zero.where_(0.0, zero.where_(1.0, self).sqrt())
    }

    /// The standard deviation along `axes`; see [`Tensor::var`]. The gradient of a constant is 0.
    #[track_caller]
    pub fn std(&self, axes: &[usize], correction: usize) -> Tensor {
        let x = self.as_float();
        x.accurate().wide_var(axes, correction).safe_sqrt().cast(x.dtype())
    }

    /// The Euclidean norm along `axes`. The gradient at 0 is 0.
    #[track_caller]
    pub fn norm(&self, axes: &[usize]) -> Tensor {
        let x = self.as_float();
        let wide = x.accurate();
        (&wide * &wide).sum(axes).safe_sqrt().cast(x.dtype())
    }

    /// Are there no elements along `axis`?
    fn is_empty_along(&self, axis: usize) -> bool {
        self.check().is_ok() && self.ty().dims.get(axis) == Some(&0)
    }

    /// `log(sum(exp(x)))` along `axis`, which goes away, without overflow; minus infinity if all are.
    #[track_caller]
    pub fn logsumexp(&self, axis: usize) -> Tensor {
        if self.is_empty_along(axis) {
            let dims = crate::prim::reduce::kept_dims(&self.dims(), &[axis]);
            return Tensor::full(self.as_float().dtype(), &dims, f64::NEG_INFINITY);
        }
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
        let (x, y) = match self.pair(&other.operand(self)) {
            Ok(pair) => pair,
            Err(failed) => return failed,
        };
        let (own, x, y) = (x.as_float().dtype(), x.accurate(), y.accurate());
        let top = x.maximum(&y);
        // Equal infinities have no difference.
        let infinite = top.abs().eq_(f64::INFINITY);
        let least = x.minimum(&y);
        let distance = infinite.where_(0.0, least - &top);
        infinite.where_(&top, &top + distance.exp().log1p()).cast(own)
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
        if self.is_empty_along(axis) {
            return self.as_float();
        }
        let x = self.accurate();
        let e = (&x - x.top(axis)).exp();
        let total = e.keep(ReduceOp::Sum, axis);
        (e / total).cast(self.as_float().dtype())
    }

    /// The logarithm of [`Tensor::softmax`], accurate where that is tiny.
    #[track_caller]
    pub fn log_softmax(&self, axis: usize) -> Tensor {
        if self.is_empty_along(axis) {
            return self.as_float();
        }
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

    /// `log(1 + exp(x))`, accurate where that is tiny.
    #[track_caller]
    pub fn softplus(&self) -> Tensor {
        // Half the gradient at 0 comes from the maximum.
        self.in_f32(|x| x.maximum(0.0) + x.abs().neg().exp().log1p())
    }

    /// `log(sigmoid(x))`, accurate where that is nearly 0.
    #[track_caller]
    pub fn log_sigmoid(&self) -> Tensor {
        self.in_f32(|x| x.minimum(0.0) - x.abs().neg().exp().log1p())
    }

    /// -1, 0 or 1; 0 for NaN. Truth values as they are.
    #[track_caller]
    pub fn sign(&self) -> Tensor {
        if self.dtype() == DType::Bool {
            return self.clone();
        }
        self.gt(0).cast(self.dtype()) - self.lt(0).cast(self.dtype())
    }

    /// `x` brought into `lo..=hi`: the smaller of `hi` and the greater of `x` and `lo`, so `hi` if that is below `lo`,
    /// and NaN if any of the three is. Integer bounds outside the range of integers bound nothing. The gradient at and
    /// beyond the bounds is 0.
    #[track_caller]
    pub fn clamp(&self, lo: impl Operand, hi: impl Operand) -> Tensor {
        let (lo, hi) = (lo.bound(self), hi.bound(self));
        // A NaN bound is taken, and so is what meets one.
        let beyond = |x: Tensor, bound: &Tensor| if bound.dtype().is_float() { x.or(bound.ne_(bound)) } else { x };
        let raised = beyond(self.le(&lo), &lo).where_(&lo, self);
        beyond(raised.ge(&hi), &hi).where_(&hi, &raised)
    }

    /// `value` where `mask` holds, else `x`, in this tensor's type, see [`Tensor::full`].
    #[track_caller]
    pub fn masked_fill(&self, mask: &Tensor, value: f64) -> Tensor {
        mask.where_(Tensor::full(self.dtype(), &[], value), self)
    }

    /// A new last dimension of extent `classes` with 1 at the place the number says, else 0; `i64`.
    #[track_caller]
    pub fn one_hot(&self, classes: usize) -> Tensor {
        let dims = [&self.dims()[..], &[classes]].concat();
        let place = self.as_index();
        let number = Tensor::iota(place.dtype(), &dims, self.rank());
        place.unsqueeze(self.rank()).eq_(&number).cast(DType::I64)
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
