//! Element types: which host type stands for which [`DType`], and what may be done with it.

use super::ops::scalar;
use super::tile::{Operand, Tile};
use crate::dtype::DType;
use half::{bf16, f16};

mod sealed {
    pub trait Sealed {}
}

/// A type that tiles and buffers hold: `bool`, `i8` to `i64`, `u8` to `u64`, `f16`, `bf16`, `f32`, `f64`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an element type of tiles",
    label = "not an element type",
    note = "element types are bool, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32 and f64",
    note = "a host value (a size, a flag, a string) is a kernel parameter marked `#[comptime]`"
)]
pub trait Element: sealed::Sealed + Copy + Send + Sync + 'static {
    /// The element type in the IR.
    const DTYPE: DType;
    /// The type sums and products of this type are taken in.
    type Sum: Element;
}

/// Numbers: everything but `bool`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a number type of tiles",
    label = "arithmetic needs integers or floats",
    note = "convert a tile of `bool` with `.to::<i32>()` first; a type parameter needs the bound `Num`, `Int` or `Float`"
)]
pub trait Num: Element {}

/// Integers.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an integer type of tiles",
    label = "this operation is for integers",
    note = "convert with `.to::<i32>()` first; a type parameter needs the bound `Int`"
)]
pub trait Int: Num + Bits {}

/// Floats: `f16`, `bf16`, `f32`, `f64`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a floating-point type of tiles",
    label = "this operation is for floats",
    note = "convert with `.to::<f32>()` first; a type parameter needs the bound `Float`"
)]
pub trait Float: Num<Sum = Self> + DotElement {
    /// A constant of this type, rounded to the nearest.
    #[track_caller]
    fn lit(value: f64) -> Tile<Self> {
        scalar::<Self>(value)
    }
}

/// Types with bitwise operations: `bool` and the integers.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no bitwise operations",
    label = "`&`, `|`, `^` and `!` are for bool and integers"
)]
pub trait Bits: Element {}

/// Types whose matrices `dot` multiplies: `f16`, `bf16`, `f32`, `f64`, `i8`, `u8`.
#[diagnostic::on_unimplemented(
    message = "`dot` does not multiply matrices of `{Self}`",
    label = "not an operand type of `dot`",
    note = "`dot` takes f16, bf16, f32, f64, i8 and u8"
)]
pub trait DotElement: Num {}

macro_rules! elements {
    ($($ty:ty, $dtype:ident, $sum:ty, [$($trait:ident),*];)*) => { $(
        impl sealed::Sealed for $ty {}
        impl Element for $ty {
            const DTYPE: DType = DType::$dtype;
            type Sum = $sum;
        }
        $(impl $trait for $ty {})*
    )* };
}

elements! {
    bool, Bool, i32, [Bits];
    i8, I8, i32, [Num, Int, Bits, DotElement];
    i16, I16, i32, [Num, Int, Bits];
    i32, I32, i32, [Num, Int, Bits];
    i64, I64, i64, [Num, Int, Bits];
    u8, U8, u32, [Num, Int, Bits, DotElement];
    u16, U16, u32, [Num, Int, Bits];
    u32, U32, u32, [Num, Int, Bits];
    u64, U64, u64, [Num, Int, Bits];
    f16, F16, f16, [Num, Float, DotElement];
    bf16, BF16, bf16, [Num, Float, DotElement];
    f32, F32, f32, [Num, Float, DotElement];
    f64, F64, f64, [Num, Float, DotElement];
}

/// A host number or truth value that becomes a constant of type `T`.
pub(crate) trait HostNumber: Copy {
    /// As an integer, if it is one.
    fn int(self) -> Option<i128>;
    /// As a double.
    fn float(self) -> f64;
}

macro_rules! host {
    ($($ty:ty, |$v:ident| $int:expr, $float:expr;)*) => { $(
        impl HostNumber for $ty {
            fn int(self) -> Option<i128> {
                let $v = self;
                $int
            }
            fn float(self) -> f64 {
                let $v = self;
                $float
            }
        }
    )* };
}

macro_rules! host_floats {
    ($($ty:ty, |$v:ident| $float:expr;)*) => { $(
        impl HostNumber for $ty {
            fn int(self) -> Option<i128> {
                None
            }
            fn float(self) -> f64 {
                let $v = self;
                $float
            }
        }
    )* };
}

host! {
    bool, |v| Some(i128::from(v)), f64::from(u8::from(v));
    i8, |v| Some(v.into()), v.into();
    i16, |v| Some(v.into()), v.into();
    i32, |v| Some(v.into()), v.into();
    i64, |v| Some(v.into()), v as f64;
    isize, |v| Some(v as i128), v as f64;
    u8, |v| Some(v.into()), v.into();
    u16, |v| Some(v.into()), v.into();
    u32, |v| Some(v.into()), v.into();
    u64, |v| Some(v.into()), v as f64;
    usize, |v| Some(v as i128), v as f64;
}

host_floats! {
    f16, |v| v.to_f64();
    bf16, |v| v.to_f64();
    f32, |v| v.into();
    f64, |v| v;
}

macro_rules! operand {
    ($bound:ident: $($ty:ty),*) => { $(
        impl<T: $bound> Operand<T> for $ty {
            #[track_caller]
            fn tile(self) -> Tile<T> {
                super::ops::constant(self)
            }
        }
    )* };
}

operand!(Num: i8, i16, i32, i64, isize, u8, u16, u32, u64, usize);
operand!(Float: f32, f64);

macro_rules! operand_exact {
    ($($ty:ty),*) => { $(
        impl Operand<$ty> for $ty {
            #[track_caller]
            fn tile(self) -> Tile<$ty> {
                super::ops::constant(self)
            }
        }
    )* };
}

operand_exact!(bool, f16, bf16);
