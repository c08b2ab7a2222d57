//! [`Tile`]: the typed handle of a value, and its operators.

use super::context::{Raw, emit};
use super::element::{Bits, Element, Int, Num};
use crate::tile::{BinaryOp, Builder, Built, Cmp, Shape, TileType, UnaryOp, Value, rules};
use std::fmt;
use std::marker::PhantomData;
use std::ops::{
    Add, AddAssign, BitAnd, BitAndAssign, BitOr, BitOrAssign, BitXor, BitXorAssign, Div, DivAssign, Mul, MulAssign,
    Neg, Not, Rem, RemAssign, Shl, ShlAssign, Shr, ShrAssign, Sub, SubAssign,
};

/// A tile of `T` on the device: its shape is known while the kernel is built, its elements when it runs.
/// A scalar is a tile of rank 0. The handle is small and `Copy`.
pub struct Tile<T> {
    pub(crate) raw: Raw,
    element: PhantomData<fn() -> T>,
}

/// One number on the device: a tile of rank 0 (ranks are checked while the kernel is built).
pub type Scalar<T> = Tile<T>;

impl<T> Clone for Tile<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Tile<T> {}

impl<T: Element> fmt::Debug for Tile<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tile<{}>({:?})", T::DTYPE, self.raw)
    }
}

/// What can stand where a tile of `T` is expected: such a tile, or a host number, which becomes a constant.
/// A host number that `T` cannot hold is reported as a mistake.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot stand where a tile of `{T}` is expected",
    label = "expected a `Tile<{T}>` or a host number",
    note = "tiles of different types do not mix: convert one with `.to::<..>()` (strides are `i64`, program ids and extents `i32`)",
    note = "a float becomes no integer constant by itself, and a host value of a generic type is made a tile by `scalar::<T>(..)`"
)]
pub trait Operand<T>: Copy {
    /// The tile.
    #[track_caller]
    fn tile(self) -> Tile<T>;
}

impl<T: Element> Operand<T> for Tile<T> {
    fn tile(self) -> Tile<T> {
        self
    }
}

impl<T: Element> Operand<T> for &Tile<T> {
    fn tile(self) -> Tile<T> {
        *self
    }
}

/// The type of a failed elementwise op: the shape of the operand with more elements.
pub(crate) fn guess_shape(types: &[TileType]) -> Shape {
    types.iter().map(|t| &t.shape).max_by_key(|s| (s.rank(), s.elements())).cloned().unwrap_or_default()
}

impl<T: Element> Tile<T> {
    pub(crate) fn new(raw: Raw) -> Self {
        Self { raw, element: PhantomData }
    }

    /// An op of these operands whose result has the shape they broadcast to.
    #[track_caller]
    pub(crate) fn elementwise(operands: &[Raw], f: impl FnOnce(&mut Builder, &[Value]) -> Built) -> Self {
        Self::new(emit(operands, |types| TileType::new(T::DTYPE, guess_shape(types)), f))
    }

    /// The extents, outermost first; empty for a scalar. A host value: shapes are known while the kernel is built.
    pub fn shape(self) -> Vec<usize> {
        super::context::with(|c| {
            let (values, _) = c.resolve(&[self.raw]);
            c.builder.ty(values[0]).shape.dims().to_vec()
        })
        .unwrap_or_default()
    }

    /// How many dimensions.
    pub fn rank(self) -> usize {
        self.shape().len()
    }

    /// Converts every element, as Rust's `as` does: floats to integers truncate and saturate, NaN gives 0.
    #[track_caller]
    pub fn to<U: Element>(self) -> Tile<U> {
        Tile::<U>::elementwise(&[self.raw], |b, v| b.cast(v[0], U::DTYPE))
    }

    /// The same bits as another type of the same width.
    #[track_caller]
    pub fn bitcast<U: Element>(self) -> Tile<U> {
        Tile::<U>::elementwise(&[self.raw], |b, v| b.bitcast(v[0], U::DTYPE))
    }
}

#[track_caller]
pub(crate) fn unary<T: Element>(op: UnaryOp, x: Tile<T>) -> Tile<T> {
    Tile::elementwise(&[x.raw], |b, v| b.unary(op, v[0]))
}

#[track_caller]
pub(crate) fn binary<T: Element>(op: BinaryOp, x: Tile<T>, y: Tile<T>) -> Tile<T> {
    Tile::elementwise(&[x.raw, y.raw], |b, v| b.binary(op, v[0], v[1]))
}

#[track_caller]
pub(crate) fn compare<T: Element>(op: Cmp, x: Tile<T>, y: Tile<T>) -> Tile<bool> {
    Tile::elementwise(&[x.raw, y.raw], |b, v| b.compare(op, v[0], v[1]))
}

/// Repeats a tile along its extents of 1 (a scalar: to anything) until it has `shape`.
#[track_caller]
pub(crate) fn broadcast_raw(raw: Raw, shape: Shape) -> Raw {
    let guess = shape.clone();
    emit(
        &[raw],
        |t| t[0].with_shape(guess),
        |b, v| {
            // Asked for before the op is made, so that the message names both shapes.
            if let Err(p) = rules::broadcast_shape(&b.ty(v[0]).shape, &shape) {
                let mut d = b.error(p.message);
                d.help = p.help;
                return Err(d);
            }
            b.broadcast(v[0], shape)
        },
    )
}

macro_rules! operators {
    ($bound:ident: $($trait:ident $method:ident $assign:ident $assign_method:ident $op:ident [$($host:ty),*];)*) => { $(
        impl<T: $bound, R: Operand<T>> $trait<R> for Tile<T> {
            type Output = Tile<T>;
            #[track_caller]
            fn $method(self, rhs: R) -> Tile<T> {
                binary(BinaryOp::$op, self, rhs.tile())
            }
        }

        impl<T: $bound, R: Operand<T>> $trait<R> for &Tile<T> {
            type Output = Tile<T>;
            #[track_caller]
            fn $method(self, rhs: R) -> Tile<T> {
                binary(BinaryOp::$op, *self, rhs.tile())
            }
        }

        impl<T: $bound, R: Operand<T>> $assign<R> for Tile<T> {
            #[track_caller]
            fn $assign_method(&mut self, rhs: R) {
                *self = binary(BinaryOp::$op, *self, rhs.tile());
            }
        }

        $(impl<T: $bound> $trait<Tile<T>> for $host where $host: Operand<T> {
            type Output = Tile<T>;
            #[track_caller]
            fn $method(self, rhs: Tile<T>) -> Tile<T> {
                binary(BinaryOp::$op, self.tile(), rhs)
            }
        })*
    )* };
}

operators! { Num:
    Add add AddAssign add_assign Add [i8, i16, i32, i64, isize, u8, u16, u32, u64, usize, half::f16, half::bf16, f32, f64];
    Sub sub SubAssign sub_assign Sub [i8, i16, i32, i64, isize, u8, u16, u32, u64, usize, half::f16, half::bf16, f32, f64];
    Mul mul MulAssign mul_assign Mul [i8, i16, i32, i64, isize, u8, u16, u32, u64, usize, half::f16, half::bf16, f32, f64];
    Div div DivAssign div_assign Div [i8, i16, i32, i64, isize, u8, u16, u32, u64, usize, half::f16, half::bf16, f32, f64];
    Rem rem RemAssign rem_assign Rem [i8, i16, i32, i64, isize, u8, u16, u32, u64, usize, half::f16, half::bf16, f32, f64];
}

operators! { Bits:
    BitAnd bitand BitAndAssign bitand_assign And [bool, i8, i16, i32, i64, isize, u8, u16, u32, u64, usize];
    BitOr bitor BitOrAssign bitor_assign Or [bool, i8, i16, i32, i64, isize, u8, u16, u32, u64, usize];
    BitXor bitxor BitXorAssign bitxor_assign Xor [bool, i8, i16, i32, i64, isize, u8, u16, u32, u64, usize];
}

operators! { Int:
    Shl shl ShlAssign shl_assign Shl [i8, i16, i32, i64, isize, u8, u16, u32, u64, usize];
    Shr shr ShrAssign shr_assign Shr [i8, i16, i32, i64, isize, u8, u16, u32, u64, usize];
}

impl<T: Num> Neg for Tile<T> {
    type Output = Tile<T>;
    #[track_caller]
    fn neg(self) -> Tile<T> {
        unary(UnaryOp::Neg, self)
    }
}

impl<T: Bits> Not for Tile<T> {
    type Output = Tile<T>;
    #[track_caller]
    fn not(self) -> Tile<T> {
        unary(UnaryOp::Not, self)
    }
}
