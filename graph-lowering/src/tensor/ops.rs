//! Primitives as methods: strict ones, and those with NumPy's broadcasting and promotion of types.

use super::operand::{Choice, Operand, compare_signs, promote};
use super::{Tensor, fail, trace::apply};
use crate::prim::{
    ArgReduce, Broadcast, Cast, Cat, Cumsum, Detach, Dot, Elementary, Gather, Op, Pad, Permute, Reduce, Remainder,
    Reshape, ScatterAdd, Select, Slice,
};
use std::ops::{Bound, RangeBounds};
use tilewright_compiler::DType;
use tilewright_compiler::dtype::Kind;
use tilewright_compiler::error::Loc;
use tilewright_compiler::tile::{BinaryOp, Cmp, Constant, ReduceOp, UnaryOp};

/// The extents both broadcast to: aligned at the end; extents agree or are 1.
pub(super) fn broadcast_dims(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    let rank = a.len().max(b.len());
    let at = |d: &[usize], i: usize| if i + d.len() < rank { 1 } else { d[i + d.len() - rank] };
    (0..rank)
        .map(|i| match (at(a, i), at(b, i)) {
            (x, y) if x == y => Some(x),
            (1, y) => Some(y),
            (x, 1) => Some(x),
            _ => None,
        })
        .collect()
}

macro_rules! unary_methods {
    ($($(#[$doc:meta])* $name:ident $op:ident;)*) => { $(
        $(#[$doc])*
        #[track_caller]
        pub fn $name(&self) -> Tensor {
            match UnaryOp::$op {
                UnaryOp::Neg | UnaryOp::Abs => apply(Op::Unary(UnaryOp::$op), &[self]),
                // Integers are round already.
                UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Trunc | UnaryOp::Round if self.dtype().is_int() => {
                    self.clone()
                }
                _ => apply(Op::Unary(UnaryOp::$op), &[&self.as_float()]),
            }
        }
    )* };
}

macro_rules! elementary_methods {
    ($($(#[$doc:meta])* $name:ident $op:ident;)*) => { $(
        $(#[$doc])*
        #[track_caller]
        pub fn $name(&self) -> Tensor {
            apply(Op::Elementary(Elementary::$op), &[&self.as_float()])
        }
    )* };
}

/// The operation that sums, products and extremes of truth values are.
fn of_truth(op: BinaryOp, dtype: DType) -> BinaryOp {
    match op {
        BinaryOp::Add | BinaryOp::Max if dtype == DType::Bool => BinaryOp::Or,
        BinaryOp::Mul | BinaryOp::Min if dtype == DType::Bool => BinaryOp::And,
        _ => op,
    }
}

macro_rules! binary_methods {
    ($($(#[$doc:meta])* $name:ident $op:ident;)*) => { $(
        $(#[$doc])*
        #[track_caller]
        pub fn $name(&self, other: impl Operand) -> Tensor {
            let y = other.operand(self);
            match self.pair(&y) {
                Ok((x, y)) => apply(Op::Binary(of_truth(BinaryOp::$op, x.dtype())), &[&x, &y]),
                Err(failed) => failed,
            }
        }
    )* };
}

macro_rules! compare_methods {
    ($($(#[$doc:meta])* $name:ident $op:ident;)*) => { $(
        $(#[$doc])*
        #[track_caller]
        pub fn $name(&self, other: impl Operand) -> Tensor {
            let (x, y) = other.compared(self);
            if let Some(result) = compare_signs(Cmp::$op, &x, &y) {
                return result;
            }
            match x.pair(&y) {
                Ok((x, y)) => apply(Op::Compare(Cmp::$op), &[&x, &y]),
                Err(failed) => failed,
            }
        }
    )* };
}

impl Tensor {
    unary_methods! {
        /// `-x`.
        neg Neg;
        /// The absolute value.
        abs Abs;
        /// e to the power x.
        exp Exp;
        /// 2 to the power x.
        exp2 Exp2;
        /// The natural logarithm.
        log Log;
        /// The logarithm to base 2.
        log2 Log2;
        /// The sine.
        sin Sin;
        /// The cosine.
        cos Cos;
        /// The hyperbolic tangent.
        tanh Tanh;
        /// The error function.
        erf Erf;
        /// The square root.
        sqrt Sqrt;
        /// `1 / sqrt(x)`.
        rsqrt Rsqrt;
        /// The greatest integer not above x.
        floor Floor;
        /// The least integer not below x.
        ceil Ceil;
        /// Toward zero.
        trunc Trunc;
        /// To the nearest integer, ties to even.
        round Round;
    }

    elementary_methods! {
        /// `log(1 + x)`, accurate near 0.
        log1p Log1p;
        /// `exp(x) - 1`, accurate near 0.
        expm1 Expm1;
        /// `1 - erf(x)`, accurate where that is tiny.
        erfc Erfc;
    }

    binary_methods! {
        /// The sum.
        add_ Add;
        /// The difference.
        sub_ Sub;
        /// The product.
        mul_ Mul;
        /// The remainder with the sign of the dividend, `x - y * trunc(x / y)`; see [`Tensor::rem_`]. Of integers, x
        /// for a divisor of 0.
        fmod Rem;
        /// The smaller; NaN if one is NaN.
        minimum Min;
        /// The greater; NaN if one is NaN.
        maximum Max;
        /// The smaller of floats, ignoring NaN.
        fmin FMin;
        /// The greater of floats, ignoring NaN.
        fmax FMax;
        /// Bitwise and; of truth values, too.
        and And;
        /// Bitwise or; of truth values, too.
        or Or;
        /// Bitwise exclusive or; of truth values, too.
        xor Xor;
        /// Left shift of integers.
        shl Shl;
        /// Right shift of integers.
        shr Shr;
        /// The upper half of the product of integers.
        mul_hi MulHi;
    }

    compare_methods! {
        /// Equal, element by element.
        eq_ Eq;
        /// Not equal.
        ne_ Ne;
        /// Less.
        lt Lt;
        /// Less or equal.
        le Le;
        /// Greater.
        gt Gt;
        /// Greater or equal.
        ge Ge;
    }

    /// Brings two tensors to one type and to common extents.
    #[track_caller]
    pub(super) fn pair(&self, other: &Tensor) -> Result<(Tensor, Tensor), Tensor> {
        let dtype = promote(self.dtype(), other.dtype());
        if let Err(e) = self.check().and(other.check()) {
            return Err(super::failed(std::sync::Arc::new(e), self.ty().clone()));
        }
        let Some(dims) = broadcast_dims(&self.ty().dims, &other.ty().dims) else {
            return Err(fail(Loc::caller(), format!("{} and {} do not broadcast together", self.ty(), other.ty())));
        };
        Ok((self.cast(dtype).broadcast_to(&dims), other.cast(dtype).broadcast_to(&dims)))
    }

    /// Integers and truth values as `f32`; floats as they are.
    #[track_caller]
    pub fn as_float(&self) -> Tensor {
        if self.dtype().is_float() { self.clone() } else { self.cast(DType::F32) }
    }

    /// The quotient. Of integers it is a fraction, in `f32`; see [`Tensor::floor_div`].
    #[track_caller]
    pub fn div_(&self, other: impl Operand) -> Tensor {
        let x = self.as_float();
        let y = other.operand(&x).as_float();
        match x.pair(&y) {
            Ok((x, y)) => apply(Op::Binary(BinaryOp::Div), &[&x, &y]),
            Err(failed) => failed,
        }
    }

    /// The quotient rounded toward minus infinity. Of integers, 0 for a divisor of 0; of floats what `x / 0` is.
    #[track_caller]
    pub fn floor_div(&self, other: impl Operand) -> Tensor {
        let (x, y) = match self.pair(&other.operand(self)) {
            Ok(pair) => pair,
            Err(failed) => return failed,
        };
        if !x.dtype().is_float() {
            return apply(Op::Binary(BinaryOp::FloorDiv), &[&x, &y]);
        }
        let dtype = x.dtype();
        let (x, y) = (x.accurate(), y.accurate());
        // By way of the exact remainder: 1.0 / 0.1 rounds to 10, though 0.1 goes only 9 times into 1.
        let rest = x.fmod(&y);
        let quotient = (&x - &rest) / &y;
        let quotient = opposite(&rest, &y).where_(&quotient - 1.0, &quotient).round();
        let plain = &x / &y;
        // A zero has the sign of the quotient.
        let quotient = quotient.eq_(0.0).where_((&plain * 0.5).trunc(), &quotient);
        y.eq_(0.0).where_(plain, quotient).detach().cast(dtype)
    }

    /// The remainder with the sign of the divisor, `x - y * floor(x / y)`; that of [`Tensor::fmod`] has the dividend's.
    /// Of integers, x for a divisor of 0; of floats NaN.
    #[track_caller]
    pub fn rem_(&self, other: impl Operand) -> Tensor {
        let (x, y) = match self.pair(&other.operand(self)) {
            Ok(pair) => pair,
            Err(failed) => return failed,
        };
        if !x.dtype().is_float() {
            return apply(Op::Binary(BinaryOp::FloorMod), &[&x, &y]);
        }
        apply(Op::Remainder(Remainder), &[&x, &y])
    }

    /// `!x` of truth values and integers.
    #[track_caller]
    pub fn not(&self) -> Tensor {
        apply(Op::Unary(UnaryOp::Not), &[self])
    }

    /// `x` where this holds, else `y`.
    #[track_caller]
    pub fn where_(&self, x: impl Into<Choice>, y: impl Into<Choice>) -> Tensor {
        let (x, y) = Choice::pair(x.into(), y.into());
        let (x, y) = match x.pair(&y) {
            Ok(pair) => pair,
            Err(failed) => return failed,
        };
        let Some(dims) = broadcast_dims(&self.ty().dims, &x.ty().dims) else {
            return fail(Loc::caller(), format!("{} and {} do not broadcast together", self.ty(), x.ty()));
        };
        let all = [self.broadcast_to(&dims), x.broadcast_to(&dims), y.broadcast_to(&dims)];
        apply(Op::Select(Select), &[&all[0], &all[1], &all[2]])
    }

    /// The same values, through which no gradient passes.
    #[track_caller]
    pub fn detach(&self) -> Tensor {
        apply(Op::Detach(Detach), &[self])
    }

    /// The value in another type, by the rules of Rust's `as`.
    #[track_caller]
    pub fn cast(&self, to: DType) -> Tensor {
        if self.dtype() == to { self.clone() } else { apply(Op::Cast(Cast { to }), &[self]) }
    }

    /// The same elements in other extents.
    #[track_caller]
    pub fn reshape(&self, dims: &[usize]) -> Tensor {
        if self.ty().dims == dims { self.clone() } else { apply(Op::Reshape(Reshape { dims: dims.to_vec() }), &[self]) }
    }

    /// Dimension `i` of the result is dimension `perm[i]`.
    #[track_caller]
    pub fn permute(&self, perm: &[usize]) -> Tensor {
        if perm.iter().copied().eq(0..self.rank()) {
            return self.clone();
        }
        apply(Op::Permute(Permute { perm: perm.to_vec() }), &[self])
    }

    /// Swaps the last two dimensions.
    #[track_caller]
    pub fn transpose(&self) -> Tensor {
        let r = self.rank();
        if r < 2 {
            return self.check().map_or_else(
                |_| self.clone(),
                |()| fail(Loc::caller(), format!("{} has no two dimensions to swap", self.ty())),
            );
        }
        let mut perm: Vec<usize> = (0..r).collect();
        perm.swap(r - 2, r - 1);
        self.permute(&perm)
    }

    /// Places dimension `i` at `axes[i]` of `dims` and repeats along the others.
    #[track_caller]
    pub fn broadcast_in_dim(&self, dims: &[usize], axes: &[usize]) -> Tensor {
        if self.ty().dims == dims && axes.iter().copied().eq(0..dims.len()) {
            return self.clone();
        }
        apply(Op::Broadcast(Broadcast { dims: dims.to_vec(), axes: axes.to_vec() }), &[self])
    }

    /// Repeats to fill `dims`, aligned at the end.
    #[track_caller]
    pub fn broadcast_to(&self, dims: &[usize]) -> Tensor {
        let skip = dims.len().saturating_sub(self.rank());
        let axes: Vec<usize> = (skip..skip + self.rank()).collect();
        self.broadcast_in_dim(dims, &axes)
    }

    /// Inserts a dimension of extent 1.
    #[track_caller]
    pub fn unsqueeze(&self, axis: usize) -> Tensor {
        if self.check().is_err() {
            return self.clone();
        }
        let mut dims = self.dims();
        if axis > dims.len() {
            return fail(Loc::caller(), format!("{} has no place for dimension {axis}", self.ty()));
        }
        dims.insert(axis, 1);
        self.reshape(&dims)
    }

    #[track_caller]
    pub(crate) fn slice_strict(&self, start: &[usize], limit: &[usize], step: &[usize]) -> Tensor {
        let slice = Slice { start: start.to_vec(), limit: limit.to_vec(), step: step.to_vec() };
        apply(Op::Slice(slice), &[self])
    }

    #[track_caller]
    pub(crate) fn pad_strict(&self, low: &[usize], high: &[usize], interior: &[usize], value: f64) -> Tensor {
        let word = Constant::from_f64(self.dtype(), value).0;
        let pad = Pad { low: low.to_vec(), high: high.to_vec(), interior: interior.to_vec(), word };
        apply(Op::Pad(pad), &[self])
    }

    /// `length` elements along `axis`, from `start` on. With a range instead: [`Tensor::slice_axis`].
    #[track_caller]
    pub fn narrow(&self, axis: usize, start: usize, length: usize) -> Tensor {
        // A sum beyond all extents is beyond this one, too.
        self.slice_axis(axis, start..start.saturating_add(length))
    }

    /// The elements in `range` along `axis`: `x.slice_axis(1, 2..5)`, `x.slice_axis(0, ..3)`.
    #[track_caller]
    pub fn slice_axis(&self, axis: usize, range: impl RangeBounds<usize>) -> Tensor {
        if self.check().is_err() {
            return self.clone();
        }
        let (mut low, mut high) = (vec![0; self.rank()], self.dims());
        if axis >= low.len() {
            return fail(Loc::caller(), format!("axis {axis} is out of range for {}", self.ty()));
        }
        low[axis] = match range.start_bound() {
            Bound::Included(&start) => start,
            Bound::Excluded(&before) => before.saturating_add(1),
            Bound::Unbounded => 0,
        };
        high[axis] = match range.end_bound() {
            Bound::Included(&last) => last.saturating_add(1),
            Bound::Excluded(&end) => end,
            Bound::Unbounded => high[axis],
        };
        self.slice_strict(&low, &high, &vec![1; self.rank()])
    }

    /// Elements `start, start + step, ..` below `limit`, for each dimension.
    #[track_caller]
    pub fn slice(&self, start: &[usize], limit: &[usize], step: &[usize]) -> Tensor {
        self.slice_strict(start, limit, step)
    }

    /// `low[i]` elements before and `high[i]` after along each dimension, all `value` in this tensor's type, see
    /// [`Tensor::full`].
    #[track_caller]
    pub fn pad(&self, low: &[usize], high: &[usize], value: f64) -> Tensor {
        if self.check().is_ok()
            && let Err(message) = super::fits(self.dtype(), value)
        {
            return fail(Loc::caller(), message);
        }
        self.pad_strict(low, high, &vec![0; self.rank()], value)
    }

    /// Tensors one after another along `axis`, in their common type.
    #[track_caller]
    pub fn cat(parts: &[&Tensor], axis: usize) -> Tensor {
        let dtype = parts.iter().map(|t| t.dtype()).reduce(promote).unwrap_or(DType::F32);
        let parts: Vec<Tensor> = parts.iter().map(|t| t.cast(dtype)).collect();
        apply(Op::Cat(Cat { axis }), &parts.iter().collect::<Vec<_>>())
    }

    /// Combines along `axes`, which go away, without any change of type.
    #[track_caller]
    pub fn reduce_strict(&self, op: ReduceOp, axes: &[usize]) -> Tensor {
        if axes.is_empty() {
            return self.clone();
        }
        let mut axes = axes.to_vec();
        axes.sort_unstable();
        apply(Op::Reduce(Reduce { op, axes }), &[self])
    }

    /// Truth values and integers below 64 bits as `i64` (unsigned ones as `u64`): what sums are taken in.
    fn widened(&self) -> Tensor {
        match self.dtype().kind() {
            Kind::Bool | Kind::Signed => self.cast(DType::I64),
            Kind::Unsigned => self.cast(DType::U64),
            Kind::Float => self.clone(),
        }
    }

    /// The sum along `axes`, which go away. Truth values and small integers are summed in 64 bits.
    #[track_caller]
    pub fn sum(&self, axes: &[usize]) -> Tensor {
        self.widened().reduce_strict(ReduceOp::Sum, axes)
    }

    /// The product along `axes`, with the rules of [`Tensor::sum`].
    #[track_caller]
    pub fn prod(&self, axes: &[usize]) -> Tensor {
        self.widened().reduce_strict(ReduceOp::Prod, axes)
    }

    /// The greatest element along `axes`, true above false; NaN if one is NaN. It is a mistake if there are none.
    #[track_caller]
    pub fn max(&self, axes: &[usize]) -> Tensor {
        self.extreme(ReduceOp::Max, axes)
    }

    /// The least element along `axes`, see [`Tensor::max`].
    #[track_caller]
    pub fn min(&self, axes: &[usize]) -> Tensor {
        self.extreme(ReduceOp::Min, axes)
    }

    #[track_caller]
    fn extreme(&self, op: ReduceOp, axes: &[usize]) -> Tensor {
        if self.dtype() == DType::Bool {
            return self.cast(DType::U8).reduce_strict(op, axes).cast(DType::Bool);
        }
        self.reduce_strict(op, axes)
    }

    /// Is any element along `axes` not 0?
    #[track_caller]
    pub fn any(&self, axes: &[usize]) -> Tensor {
        self.cast(DType::Bool).reduce_strict(ReduceOp::Or, axes)
    }

    /// Are all elements along `axes` not 0?
    #[track_caller]
    pub fn all(&self, axes: &[usize]) -> Tensor {
        self.cast(DType::Bool).reduce_strict(ReduceOp::And, axes)
    }

    /// The index of the greatest element along `axis`, `i32`: the first of equals; the first NaN wins.
    #[track_caller]
    pub fn argmax(&self, axis: usize) -> Tensor {
        apply(Op::ArgReduce(ArgReduce { max: true, axis }), &[self])
    }

    /// The index of the least element along `axis`, `i32`: the first of equals; the first NaN wins.
    #[track_caller]
    pub fn argmin(&self, axis: usize) -> Tensor {
        apply(Op::ArgReduce(ArgReduce { max: false, axis }), &[self])
    }

    #[track_caller]
    pub(crate) fn cumsum_strict(&self, axis: usize, reverse: bool) -> Tensor {
        apply(Op::Cumsum(Cumsum { axis, reverse }), &[self])
    }

    /// The sum of the elements up to and with each one along `axis`, with the types of [`Tensor::sum`].
    #[track_caller]
    pub fn cumsum(&self, axis: usize) -> Tensor {
        apply(Op::Cumsum(Cumsum { axis, reverse: false }), &[&self.widened()])
    }

    #[track_caller]
    pub(crate) fn dot_strict(&self, other: &Tensor) -> Tensor {
        apply(Op::Dot(Dot), &[self, other])
    }

    /// The matrix product, by NumPy's rules: `[.., m, k]` times `[.., k, n]` with the dimensions before broadcast; a vector
    /// is a row on the left and a column on the right.
    #[track_caller]
    pub fn matmul(&self, other: &Tensor) -> Tensor {
        if let Some(failed) = super::first_failed(&[self, other]) {
            return failed;
        }
        let dtype = promote(self.dtype(), other.dtype());
        let (mut a, mut b) = (self.cast(dtype), other.cast(dtype));
        if a.rank() == 0 || b.rank() == 0 {
            return fail(Loc::caller(), format!("{} and {} have no matrix product", self.ty(), other.ty()));
        }
        let (row, column) = (a.rank() == 1, b.rank() == 1);
        if row {
            a = a.unsqueeze(0);
        }
        if column {
            b = b.unsqueeze(1);
        }
        let (da, db) = (a.dims(), b.dims());
        // Rows of all batches are one long matrix if they meet the same second operand.
        let result = if db.len() == 2 && da.len() > 2 {
            let rows = da[..da.len() - 1].iter().product();
            let product = apply(Op::Dot(Dot), &[&a.reshape(&[rows, da[da.len() - 1]]), &b]);
            product.reshape(&[&da[..da.len() - 1], &db[1..]].concat())
        } else {
            let batch = broadcast_dims(&da[..da.len() - 2], &db[..db.len() - 2]);
            let Some(batch) = batch else {
                return fail(Loc::caller(), format!("{} and {} do not broadcast together", self.ty(), other.ty()));
            };
            let a = a.broadcast_to(&[&batch[..], &da[da.len() - 2..]].concat());
            let b = b.broadcast_to(&[&batch[..], &db[db.len() - 2..]].concat());
            apply(Op::Dot(Dot), &[&a, &b])
        };
        let mut dims = result.dims();
        if result.check().is_ok() {
            if column {
                dims.pop();
            }
            if row {
                dims.remove(dims.len() - 1 - usize::from(!column));
            }
        }
        result.reshape(&dims)
    }

    /// Integers as `i32`, or `i64` where those are too few: numbers of rows and classes.
    #[track_caller]
    pub(super) fn as_index(&self) -> Tensor {
        match self.dtype() {
            DType::I8 | DType::I16 | DType::U8 | DType::U16 => self.cast(DType::I32),
            // Above `i64::MAX` the number turns negative, and so stays outside everything.
            DType::U32 | DType::U64 => self.cast(DType::I64),
            _ => self.clone(),
        }
    }

    /// Rows of this table by number, an integer. A number outside reads NaN, or 0 for types without NaN.
    #[track_caller]
    pub fn gather_rows(&self, index: &Tensor) -> Tensor {
        apply(Op::Gather(Gather), &[self, &index.as_index()])
    }

    /// A table of `rows` rows, each the sum of the rows of this tensor whose number it is. A number outside adds
    /// nothing.
    #[track_caller]
    pub fn scatter_add(&self, index: &Tensor, rows: usize) -> Tensor {
        apply(Op::ScatterAdd(ScatterAdd { rows }), &[self, &index.as_index()])
    }
}

/// Where a remainder has not the sign of its divisor.
#[track_caller]
fn opposite(rest: &Tensor, y: &Tensor) -> Tensor {
    rest.lt(0.0).xor(y.lt(0.0)).and(rest.ne_(0.0))
}

macro_rules! operators {
    ($($trait:ident $method:ident $call:ident;)*) => { $(
        impl<R: Operand> std::ops::$trait<R> for &Tensor {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, other: R) -> Tensor {
                self.$call(other)
            }
        }
        impl<R: Operand> std::ops::$trait<R> for Tensor {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, other: R) -> Tensor {
                self.$call(other)
            }
        }
        impl std::ops::$trait<&Tensor> for f64 {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, other: &Tensor) -> Tensor {
                self.operand(other).$call(other)
            }
        }
        impl std::ops::$trait<Tensor> for f64 {
            type Output = Tensor;
            #[track_caller]
            fn $method(self, other: Tensor) -> Tensor {
                self.operand(&other).$call(&other)
            }
        }
    )* };
}

operators! {
    Add add add_;
    Sub sub sub_;
    Mul mul mul_;
    Div div div_;
    Rem rem rem_;
}
