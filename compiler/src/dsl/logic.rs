//! Comparisons, `&&`, `||` and arithmetic with a literal on the left, chosen by the types of the operands: host values
//! compare to `bool`, tiles to `Tile<bool>`. `#[kernel]` and `#[device_fn]` write these calls; users do not.
//!
//! The choice is made by method look-up, which tries fewer dereferences first: on `&&&Compare(&a, &b)` the trait for a
//! tile on the left, then for a tile on the right, then for two host values.

use super::element::{Bits, Element, Int, Num};
use super::tile::{Operand, Tile, binary, compare};
use crate::tile::{BinaryOp, Cmp};
use std::ops;

/// Two operands, borrowed.
#[doc(hidden)]
#[derive(Debug)]
pub struct Pair<'a, A: ?Sized, B: ?Sized>(pub &'a A, pub &'a B);

macro_rules! comparisons {
    ($($method:ident $op:ident $trait:ident $host:ident;)*) => {
        /// A tile on the left.
        #[doc(hidden)]
        pub trait TileLeft<T, R> { $(
            #[track_caller]
            fn $method(&self) -> Tile<bool> where T: Element, R: Operand<T>;
        )* }
        impl<T, R> TileLeft<T, R> for &&Pair<'_, Tile<T>, R> { $(
            fn $method(&self) -> Tile<bool> where T: Element, R: Operand<T> {
                compare(Cmp::$op, *self.0, self.1.tile())
            }
        )* }

        /// A tile on the right of a host value.
        #[doc(hidden)]
        pub trait TileRight<T, L> { $(
            #[track_caller]
            fn $method(&self) -> Tile<bool> where T: Element, L: Operand<T>;
        )* }
        impl<T, L> TileRight<T, L> for &Pair<'_, L, Tile<T>> { $(
            fn $method(&self) -> Tile<bool> where T: Element, L: Operand<T> {
                compare(Cmp::$op, self.0.tile(), *self.1)
            }
        )* }

        /// Two host values.
        #[doc(hidden)]
        pub trait HostBoth<A: ?Sized, B: ?Sized> { $(
            fn $method(&self) -> bool where A: $trait<B>;
        )* }
        impl<A: ?Sized, B: ?Sized> HostBoth<A, B> for Pair<'_, A, B> { $(
            fn $method(&self) -> bool where A: $trait<B> {
                $trait::$host(self.0, self.1)
            }
        )* }
    };
}

comparisons! {
    tw_eq Eq PartialEq eq;
    tw_ne Ne PartialEq ne;
    tw_lt Lt PartialOrd lt;
    tw_le Le PartialOrd le;
    tw_gt Gt PartialOrd gt;
    tw_ge Ge PartialOrd ge;
}

macro_rules! literal_left {
    ($($method:ident $op:ident $bound:ident $trait:ident $host:ident;)*) => {
        /// A host literal on the left of a tile.
        #[doc(hidden)]
        pub trait LiteralTile<T, L> { $(
            #[track_caller]
            fn $method(&self) -> Tile<T> where T: $bound, L: Operand<T>;
        )* }
        impl<T, L> LiteralTile<T, L> for &Pair<'_, L, Tile<T>> { $(
            fn $method(&self) -> Tile<T> where T: $bound, L: Operand<T> {
                binary(BinaryOp::$op, self.0.tile(), *self.1)
            }
        )* }

        /// A host literal on the left of a host value.
        #[doc(hidden)]
        pub trait LiteralHost<A, B> { $(
            fn $method(&self) -> A::Output where A: Copy + ops::$trait<B>, B: Copy;
        )* }
        impl<A, B> LiteralHost<A, B> for Pair<'_, A, B> { $(
            fn $method(&self) -> A::Output where A: Copy + ops::$trait<B>, B: Copy {
                ops::$trait::$host(*self.0, *self.1)
            }
        )* }
    };
}

literal_left! {
    tw_add Add Num Add add;
    tw_sub Sub Num Sub sub;
    tw_mul Mul Num Mul mul;
    tw_div Div Num Div div;
    tw_rem Rem Num Rem rem;
    tw_and And Bits BitAnd bitand;
    tw_or Or Bits BitOr bitor;
    tw_xor Xor Bits BitXor bitxor;
    tw_shl Shl Int Shl shl;
    tw_shr Shr Int Shr shr;
}

/// The left side of `&&` or `||`: does it decide the result alone? Only a host value can.
#[doc(hidden)]
pub trait Side {
    /// Is `self && ..` false whatever follows?
    fn stops_and(&self) -> bool;
    /// Is `self || ..` true whatever follows?
    fn stops_or(&self) -> bool;
}

impl Side for bool {
    fn stops_and(&self) -> bool {
        !*self
    }
    fn stops_or(&self) -> bool {
        *self
    }
}

impl Side for Tile<bool> {
    fn stops_and(&self) -> bool {
        false
    }
    fn stops_or(&self) -> bool {
        false
    }
}

/// `&&` and `||`: of host values they stop early, of tiles they take both sides. The right side is `None` if the left
/// side decided.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`&&` and `||` do not combine `{Self}` and `{R}`",
    label = "both sides must be `bool` or `Tile<bool>`",
    note = "compare a number with zero first: `x != 0`; bits are combined with `&` and `|`"
)]
pub trait Logic<R> {
    /// The type of the result.
    type Output;
    /// `self && rhs`.
    #[track_caller]
    fn and(self, rhs: Option<R>) -> Self::Output;
    /// `self || rhs`.
    #[track_caller]
    fn or(self, rhs: Option<R>) -> Self::Output;
}

impl Logic<bool> for bool {
    type Output = bool;
    fn and(self, rhs: Option<bool>) -> bool {
        self && rhs.unwrap_or(false)
    }
    fn or(self, rhs: Option<bool>) -> bool {
        self || rhs.unwrap_or(true)
    }
}

macro_rules! device_logic {
    ($($left:ty, $right:ty;)*) => { $(
        impl Logic<$right> for $left {
            type Output = Tile<bool>;
            #[track_caller]
            fn and(self, rhs: Option<$right>) -> Tile<bool> {
                let left = Operand::<bool>::tile(self);
                match rhs {
                    Some(rhs) => binary(BinaryOp::And, left, Operand::<bool>::tile(rhs)),
                    None => left,
                }
            }
            #[track_caller]
            fn or(self, rhs: Option<$right>) -> Tile<bool> {
                let left = Operand::<bool>::tile(self);
                match rhs {
                    Some(rhs) => binary(BinaryOp::Or, left, Operand::<bool>::tile(rhs)),
                    None => left,
                }
            }
        }
    )* };
}

device_logic! {
    Tile<bool>, Tile<bool>;
    Tile<bool>, bool;
    bool, Tile<bool>;
}

/// Says that a value is known while the kernel is built: `if comptime(flag)`, `while comptime(n > 0)` are plain Rust.
pub const fn comptime<T: Host + Copy>(value: T) -> T {
    value
}

/// Host values that steer plain Rust inside a kernel.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not known while the kernel is built",
    label = "`comptime` takes a host `bool` or integer",
    note = "a condition on device values is written without `comptime(..)`"
)]
pub trait Host {}
macro_rules! hosts { ($($ty:ty),*) => { $(impl Host for $ty {})* }; }
hosts!(bool, i8, i16, i32, i64, isize, u8, u16, u32, u64, usize);
