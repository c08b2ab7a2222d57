//! The functions a kernel calls: making tiles, mathematics, reductions, shapes.
//!
//! Reductions keep the rank: the axis stays with extent 1, so that the result broadcasts against the operand
//! (`v - max(v, 1)`). Reducing a tile of one dimension gives a scalar, which broadcasts against everything.
//! [`squeeze`] drops an axis of extent 1.

use super::context::{Raw, emit, mistake, with};
use super::element::{Bits, DotElement, Element, Float, HostNumber, Int, Num};
use super::tile::{Operand, Tile, binary, broadcast_raw, compare, unary};
use crate::dtype::DType;
use crate::tile::{BinaryOp, Builder, Built, Cmp, Constant, DotPrecision, ReduceOp, Shape, TileType, UnaryOp, Value};

/// Where a range of a tile begins or ends: a host integer.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not known while the kernel is built, and shapes of tiles are",
    label = "expected a host integer",
    note = "give the kernel the number as a `#[comptime]` parameter; add a device value to the range: `arange(0, 64) + start`"
)]
pub trait HostExtent {
    /// The number; the greatest `i64` if it is above that.
    #[doc(hidden)]
    fn number(self) -> i64;
}

macro_rules! host_extents {
    ($($ty:ty),*) => { $(
        impl HostExtent for $ty {
            fn number(self) -> i64 {
                self.try_into().unwrap_or(i64::MAX)
            }
        }
    )* };
}
host_extents!(i8, i16, i32, i64, isize, u8, u16, u32, u64, usize);

/// The shape of a tile: `[usize; N]`, a `usize` for one dimension, a `Vec<usize>`, or a [`Shape`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the shape of a tile",
    label = "expected a shape such as `[64, 128]`",
    note = "the extents of a tile are host values (`usize`): literals, or `#[comptime]` parameters of the kernel"
)]
pub trait IntoShape {
    /// The shape.
    fn into_shape(self) -> Shape;
}

impl IntoShape for Shape {
    fn into_shape(self) -> Shape {
        self
    }
}

impl IntoShape for usize {
    fn into_shape(self) -> Shape {
        Shape::new([self])
    }
}

impl<const N: usize> IntoShape for [usize; N] {
    fn into_shape(self) -> Shape {
        Shape::new(self)
    }
}

impl IntoShape for Vec<usize> {
    fn into_shape(self) -> Shape {
        Shape::new(self)
    }
}

impl IntoShape for &[usize] {
    fn into_shape(self) -> Shape {
        Shape::new(self)
    }
}

/// A host number as a scalar constant; a number that `T` cannot hold is a mistake.
#[track_caller]
pub(crate) fn constant<T: Element, H: HostNumber>(value: H) -> Tile<T> {
    let dtype = T::DTYPE;
    let bits = match value.int() {
        Some(int) if !dtype.is_float() => {
            let (min, max): (i128, i128) = match (dtype, dtype.is_signed(), dtype.bits()) {
                (DType::Bool, ..) => (0, 1),
                (_, true, bits) => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
                (_, false, bits) => (0, (1 << bits) - 1),
            };
            if !(min..=max).contains(&int) {
                mistake(
                    format!("the number {int} does not fit in {dtype}, which holds {min} to {max}"),
                    "convert the tile to a wider type with `.to::<..>()` first",
                );
            }
            // Truncation to 64 bits keeps every number of the checked range.
            Constant::from_i64(dtype, int as i64)
        }
        int => {
            let exact = value.float();
            let bits = Constant::from_f64(dtype, exact);
            let back = bits.as_f64(dtype);
            if exact.is_finite() && !back.is_finite() {
                mistake(
                    format!("the number {exact} does not fit in {dtype}"),
                    "convert the tile to a wider type with `.to::<..>()`; write `inf()` for infinity",
                );
            } else if int.is_some_and(|i| back as i128 != i) {
                mistake(
                    format!("the integer {exact} is not exact in {dtype}; the nearest is {back}"),
                    format!("write `{exact:?}` if the nearest number will do"),
                );
            }
            bits
        }
    };
    Tile::new(emit(&[], |_| TileType::scalar(dtype), |b, _| b.full(TileType::scalar(dtype), bits)))
}

// ---- making tiles -------------------------------------------------------------------------------------------------

/// A number as a device scalar of type `T`.
#[track_caller]
pub fn scalar<T: Element>(value: impl Operand<T>) -> Tile<T> {
    value.tile()
}

/// This program's coordinate along `axis` (0, 1 or 2) of the grid.
#[track_caller]
pub fn program_id(axis: u8) -> Tile<i32> {
    Tile::new(emit(&[], |_| TileType::scalar(DType::I32), |b, _| b.program_id(axis)))
}

/// The grid's extent along `axis` (0, 1 or 2).
#[track_caller]
pub fn num_programs(axis: u8) -> Tile<i32> {
    Tile::new(emit(&[], |_| TileType::scalar(DType::I32), |b, _| b.num_programs(axis)))
}

/// `start, start + 1, .., end - 1`; both are host numbers, and their distance is a power of two.
#[track_caller]
pub fn arange(start: impl HostExtent, end: impl HostExtent) -> Tile<i32> {
    let (start, end) = (start.number(), end.number());
    let n = end.saturating_sub(start);
    let fits = i32::try_from(start).is_ok() && i32::try_from(end).is_ok();
    Tile::new(emit(
        &[],
        |_| TileType::new(DType::I32, [usize::try_from(n).unwrap_or(1)]),
        |b, _| match (i32::try_from(start), usize::try_from(n)) {
            (Ok(first), Ok(n)) if fits && n > 0 => b.arange(first, n),
            _ => Err(b
                .error(format!("arange from {start} to {end} has no elements, or leaves the range of i32"))
                .help("the end lies above the start, and both fit in i32")),
        },
    ))
}

/// A tile all of whose elements are `value`.
#[track_caller]
pub fn full<T: Element>(shape: impl IntoShape, value: impl Operand<T>) -> Tile<T> {
    let shape = shape.into_shape();
    let value = value.tile();
    let ty = TileType::new(T::DTYPE, shape);
    Tile::new(emit(
        &[value.raw],
        |_| ty.clone(),
        |b, v| match b.func().const_of(v[0]) {
            Some(c) if b.ty(v[0]).is_scalar() => b.full(ty.clone(), c),
            _ => b.broadcast(v[0], ty.shape.clone()),
        },
    ))
}

/// A tile of zeros (`false` for `bool`).
#[track_caller]
pub fn zeros<T: Element>(shape: impl IntoShape) -> Tile<T> {
    splat(shape, 0)
}

/// A tile of ones (`true` for `bool`).
#[track_caller]
pub fn ones<T: Element>(shape: impl IntoShape) -> Tile<T> {
    splat(shape, 1)
}

#[track_caller]
fn splat<T: Element>(shape: impl IntoShape, value: i64) -> Tile<T> {
    let ty = TileType::new(T::DTYPE, shape.into_shape());
    Tile::new(emit(&[], |_| ty.clone(), |b, _| b.full(ty.clone(), Constant::from_i64(T::DTYPE, value))))
}

/// Positive infinity, as a host number: stands wherever a tile of floats is expected.
pub const fn inf() -> f64 {
    f64::INFINITY
}

/// A quiet NaN, as a host number.
pub const fn nan() -> f64 {
    f64::NAN
}

// ---- elementwise --------------------------------------------------------------------------------------------------

macro_rules! unary_functions {
    ($($(#[$doc:meta])* $name:ident: $bound:ident, $op:ident;)*) => { $(
        $(#[$doc])*
        #[track_caller]
        pub fn $name<T: $bound>(x: Tile<T>) -> Tile<T> {
            unary(UnaryOp::$op, x)
        }
    )* };
}

unary_functions! {
    /// The absolute value; wraps for the least integer.
    abs: Num, Abs;
    /// e to the power x.
    exp: Float, Exp;
    /// 2 to the power x.
    exp2: Float, Exp2;
    /// 2 to the power x in a hurry: relative error up to 2^-22, and 0 for results below 2^-126. For the inner loops of softmax
    /// and the like, whose results are sums that such differences do not reach.
    exp2_approx: Float, Exp2Approx;
    /// The natural logarithm: NaN below zero, minus infinity at zero.
    log: Float, Log;
    /// The logarithm to base 2.
    log2: Float, Log2;
    /// The sine of radians.
    sin: Float, Sin;
    /// The cosine of radians.
    cos: Float, Cos;
    /// The hyperbolic tangent.
    tanh: Float, Tanh;
    /// The error function.
    erf: Float, Erf;
    /// The square root.
    sqrt: Float, Sqrt;
    /// `1 / sqrt(x)`.
    rsqrt: Float, Rsqrt;
    /// The greatest integer not above x.
    floor: Float, Floor;
    /// The least integer not below x.
    ceil: Float, Ceil;
    /// Toward zero.
    trunc: Float, Trunc;
    /// To the nearest integer, ties to even.
    round: Float, Round;
}

macro_rules! binary_functions {
    ($($(#[$doc:meta])* $name:ident: $bound:ident, $op:ident;)*) => { $(
        $(#[$doc])*
        #[track_caller]
        pub fn $name<T: $bound>(x: impl Operand<T>, y: impl Operand<T>) -> Tile<T> {
            binary(BinaryOp::$op, x.tile(), y.tile())
        }
    )* };
}

binary_functions! {
    /// The smaller of each two elements; NaN if one is NaN.
    minimum: Num, Min;
    /// The greater of each two elements; NaN if one is NaN.
    maximum: Num, Max;
    /// The smaller of each two elements; the other if one is NaN.
    fmin: Float, FMin;
    /// The greater of each two elements; the other if one is NaN.
    fmax: Float, FMax;
    /// The quotient rounded toward minus infinity; 0 for a zero divisor.
    floor_div: Int, FloorDiv;
    /// The remainder with the sign of the divisor; `x` for a zero divisor.
    floor_mod: Int, FloorMod;
    /// The upper half of the double-width product.
    mul_hi: Int, MulHi;
}

/// The quotient rounded up, for all signs; 0 for a zero divisor. `MIN / -1` wraps to `MIN`.
#[track_caller]
pub fn cdiv<T: Int>(x: impl Operand<T>, y: impl Operand<T>) -> Tile<T> {
    let (x, y) = (x.tile(), y.tile());
    let zero = scalar::<T>(0i32);
    let (quotient, rest) = (binary(BinaryOp::Div, x, y), binary(BinaryOp::Rem, x, y));
    // Division truncates: a positive quotient with a rest is one too small, and has a rest of the divisor's sign.
    let more = match host_sign(y) {
        Some(sign) => compare(if sign < 0 { Cmp::Lt } else { Cmp::Gt }, rest, zero),
        None => {
            let both = |op| binary(BinaryOp::And, compare(op, rest, zero), compare(op, y, zero));
            match T::DTYPE.is_signed() {
                true => binary(BinaryOp::Or, both(Cmp::Gt), both(Cmp::Lt)),
                false => both(Cmp::Gt),
            }
        }
    };
    binary(BinaryOp::Add, quotient, more.to::<T>())
}

/// The sign of a tile that is one constant other than 0.
fn host_sign<T: Element>(x: Tile<T>) -> Option<i64> {
    with(|c| {
        let value = *c.values(&[x.raw]).first()?;
        let number = c.builder.func().const_of(value)?.as_i64(T::DTYPE)?;
        match T::DTYPE.is_signed() {
            true => (number != 0).then(|| number.signum()),
            false => (number != 0).then_some(1),
        }
    })
    .flatten()
}

/// `x * y + z`, rounded once.
#[track_caller]
pub fn fma<T: Float>(x: impl Operand<T>, y: impl Operand<T>, z: impl Operand<T>) -> Tile<T> {
    let operands = [x.tile().raw, y.tile().raw, z.tile().raw];
    Tile::elementwise(&operands, |b, v| b.fma(v[0], v[1], v[2]))
}

/// `x` brought into `lo..=hi`; NaN if one of them is NaN.
#[track_caller]
pub fn clamp<T: Num>(x: impl Operand<T>, lo: impl Operand<T>, hi: impl Operand<T>) -> Tile<T> {
    let low = binary(BinaryOp::Max, x.tile(), lo.tile());
    binary(BinaryOp::Min, low, hi.tile())
}

/// `x` where `condition` holds, else `y`, element by element. Both are evaluated.
#[track_caller]
pub fn where_<T: Element>(condition: impl Operand<bool>, x: impl Operand<T>, y: impl Operand<T>) -> Tile<T> {
    let operands = [condition.tile().raw, x.tile().raw, y.tile().raw];
    Tile::elementwise(&operands, |b, v| b.select(v[0], v[1], v[2]))
}

/// The same bits as another type of the same width.
#[track_caller]
pub fn bitcast<U: Element>(x: Tile<impl Element>) -> Tile<U> {
    x.bitcast::<U>()
}

// ---- reductions ---------------------------------------------------------------------------------------------------

/// Emits a reduction that keeps the axis with extent 1, except that a tile of rank 1 gives a scalar.
#[track_caller]
fn reduction<U: Element>(x: Raw, axis: usize, f: impl FnOnce(&mut Builder, Value) -> Built) -> Tile<U> {
    let kept = |shape: &Shape| {
        let mut dims = shape.dims().to_vec();
        if dims.len() < 2 {
            return Shape::SCALAR;
        }
        if let Some(d) = dims.get_mut(axis) {
            *d = 1;
        }
        Shape::new(dims)
    };
    Tile::new(emit(
        &[x],
        |t| TileType::new(U::DTYPE, kept(&t[0].shape)),
        |b, v| {
            let shape = kept(&b.ty(v[0]).shape);
            let reduced = f(b, v[0])?;
            b.reshape(reduced, shape)
        },
    ))
}

macro_rules! reductions {
    ($($(#[$doc:meta])* $name:ident: $bound:ident, $op:ident, $out:ty;)*) => { $(
        $(#[$doc])*
        #[track_caller]
        pub fn $name<T: $bound>(x: Tile<T>, axis: usize) -> Tile<$out> {
            reduction(x.raw, axis, |b, v| b.reduce(ReduceOp::$op, v, axis))
        }
    )* };
}

reductions! {
    /// The sum along `axis`, which stays with extent 1. `bool` and integers below 32 bits widen to 32 bits.
    sum: Element, Sum, T::Sum;
    /// The product along `axis`, with the rules of [`sum`].
    prod: Element, Prod, T::Sum;
    /// The greatest element along `axis`, which stays with extent 1; NaN if one is NaN. (Of two tiles: [`maximum`].)
    max: Num, Max, T;
    /// The least element along `axis`, which stays with extent 1; NaN if one is NaN. (Of two tiles: [`minimum`].)
    min: Num, Min, T;
    /// Bitwise exclusive or along `axis`, which stays with extent 1.
    xor_sum: Bits, Xor, T;
}

/// Does it hold for any element along `axis`, which stays with extent 1?
#[track_caller]
pub fn any(x: Tile<bool>, axis: usize) -> Tile<bool> {
    reduction(x.raw, axis, |b, v| b.reduce(ReduceOp::Or, v, axis))
}

/// Does it hold for all elements along `axis`, which stays with extent 1?
#[track_caller]
pub fn all(x: Tile<bool>, axis: usize) -> Tile<bool> {
    reduction(x.raw, axis, |b, v| b.reduce(ReduceOp::And, v, axis))
}

/// The index of the greatest element along `axis`, which stays with extent 1: the first of equals; the first NaN wins.
#[track_caller]
pub fn argmax<T: Num>(x: Tile<T>, axis: usize) -> Tile<i32> {
    reduction(x.raw, axis, |b, v| b.arg_reduce(true, v, axis))
}

/// The index of the least element along `axis`, which stays with extent 1: the first of equals; the first NaN wins.
#[track_caller]
pub fn argmin<T: Num>(x: Tile<T>, axis: usize) -> Tile<i32> {
    reduction(x.raw, axis, |b, v| b.arg_reduce(false, v, axis))
}

/// The product of two matrices, added: `acc + a b`. Operands of f16, bf16 and f32 accumulate in f32, f64 in f64, i8 and
/// u8 in i32. Exact f32 products for f32 operands; see [`dot_tf32`].
#[track_caller]
pub fn dot<T: DotElement, A: Num>(a: Tile<T>, b: Tile<T>, acc: Tile<A>) -> Tile<A> {
    matrix_product(a, b, acc, DotPrecision::Ieee)
}

/// [`dot`] that may round f32 operands to tf32 (10 bits of mantissa), where the device has units for it.
#[track_caller]
pub fn dot_tf32<T: DotElement, A: Num>(a: Tile<T>, b: Tile<T>, acc: Tile<A>) -> Tile<A> {
    matrix_product(a, b, acc, DotPrecision::Tf32)
}

#[track_caller]
fn matrix_product<T: DotElement, A: Num>(a: Tile<T>, b: Tile<T>, acc: Tile<A>, precision: DotPrecision) -> Tile<A> {
    Tile::new(emit(
        &[a.raw, b.raw, acc.raw],
        |t| TileType::new(A::DTYPE, t[2].shape.clone()),
        |builder, v| builder.dot(v[0], v[1], v[2], precision),
    ))
}

// ---- shapes -------------------------------------------------------------------------------------------------------

/// Swaps the two dimensions of a matrix.
#[track_caller]
pub fn trans<T: Element>(x: Tile<T>) -> Tile<T> {
    Tile::new(emit(&[x.raw], |t| t[0].clone(), |b, v| b.transpose(v[0])))
}

/// Dimension `i` of the result is dimension `perm[i]` of `x`.
#[track_caller]
pub fn permute<T: Element, const N: usize>(x: Tile<T>, perm: [usize; N]) -> Tile<T> {
    Tile::new(emit(&[x.raw], |t| t[0].clone(), |b, v| b.permute(v[0], &perm)))
}

/// The same elements, row-major, in another shape.
#[track_caller]
pub fn reshape<T: Element>(x: Tile<T>, shape: impl IntoShape) -> Tile<T> {
    let shape = shape.into_shape();
    let guess = shape.clone();
    Tile::new(emit(&[x.raw], |t| t[0].with_shape(guess), |b, v| b.reshape(v[0], shape)))
}

/// Inserts a dimension of extent 1 before dimension `axis`.
#[track_caller]
pub fn expand_dims<T: Element>(x: Tile<T>, axis: usize) -> Tile<T> {
    Tile::new(emit(&[x.raw], |t| t[0].clone(), |b, v| b.expand_dims(v[0], axis)))
}

/// Drops dimension `axis`, which has extent 1.
#[track_caller]
pub fn squeeze<T: Element>(x: Tile<T>, axis: usize) -> Tile<T> {
    Tile::new(emit(
        &[x.raw],
        |t| t[0].clone(),
        |b, v| {
            let shape = b.ty(v[0]).shape.clone();
            if shape.dims().get(axis) != Some(&1) {
                return Err(b
                    .error(format!(
                        "cannot drop dimension {axis} of a tile of type {}: its extent is not 1",
                        b.ty(v[0])
                    ))
                    .help("only dimensions of extent 1 can be dropped; reduce the dimension first"));
            }
            b.reshape(v[0], shape.without(axis))
        },
    ))
}

/// Repeats `x` along its extents of 1 (a scalar: to anything) until it has `shape`.
#[track_caller]
pub fn broadcast_to<T: Element>(x: Tile<T>, shape: impl IntoShape) -> Tile<T> {
    Tile::new(broadcast_raw(x.raw, shape.into_shape()))
}
