//! The meaning of every elementwise op on one element: pure functions, used by the tile loops of the interpreter and,
//! through [`eval_elementwise`], by constant folding. There is no other definition of these ops in the compiler.
//!
//! What [`crate::tile::ops`] leaves to this file:
//! - `f16` and `bf16` ops are computed in `f32` and rounded once more, also `fma` (one `f32` fma, then the rounding);
//! - functions of `f32` without an exact `f32` counterpart that is fast (`erf`, `tanh`, `rsqrt`) are computed in `f64`;
//! - a NaN result is some NaN: neither its sign nor its payload means anything.

use crate::dtype::{DType, odd_f32};
use crate::tile::{BinaryOp, Cmp, Op, UnaryOp};
use half::{bf16, f16};

/// A truth value as tiles store it: one byte, 0 or 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct Bool(pub u8);

impl From<bool> for Bool {
    #[inline(always)]
    fn from(b: bool) -> Self {
        Bool(u8::from(b))
    }
}

/// A Rust type that holds one element of a [`DType`].
pub trait Element: bytemuck::Pod + PartialOrd + Send + Sync {
    /// The type it is an element of.
    const DTYPE: DType;
    /// The element whose bits are the low ones of `bits`.
    fn from_bits64(bits: u64) -> Self;
    /// Its bits, in the low ones; the others are 0.
    fn to_bits64(self) -> u64;
    /// `op` of it, if defined for the type.
    fn unary(op: UnaryOp, x: Self) -> Option<Self>;
    /// `op` of two, if defined for the type.
    fn binary(op: BinaryOp, x: Self, y: Self) -> Option<Self>;
    /// `x * y + z` rounded once, if defined for the type.
    fn fma(x: Self, y: Self, z: Self) -> Option<Self>;
}

/// The element types' `as`: see the module [`crate::tile::ops`].
pub trait CastTo<T> {
    /// The value as the other type.
    fn cast_to(self) -> T;
}

/// Evaluates `$body` with the type `$T` standing for the Rust type of the [`DType`] `$dtype`.
macro_rules! dispatch {
    ($dtype:expr, $T:ident => $body:expr) => {{
        use $crate::dtype::DType as D;
        use $crate::interp::scalar::Bool;
        macro_rules! arm {
            ($t:ty) => {{
                type $T = $t;
                $body
            }};
        }
        match $dtype {
            D::Bool => arm!(Bool),
            D::I8 => arm!(i8),
            D::I16 => arm!(i16),
            D::I32 => arm!(i32),
            D::I64 => arm!(i64),
            D::U8 => arm!(u8),
            D::U16 => arm!(u16),
            D::U32 => arm!(u32),
            D::U64 => arm!(u64),
            D::F16 => arm!(half::f16),
            D::BF16 => arm!(half::bf16),
            D::F32 => arm!(f32),
            D::F64 => arm!(f64),
        }
    }};
}
pub(crate) use dispatch;

/// The value of an elementwise op other than `ptr_add` on one element of each operand, as bits in the low bits of a
/// word; `None` if the op is not elementwise or not defined for these types. `result` is the type of the result.
pub fn eval_elementwise(op: &Op, operand_types: &[DType], bits: &[u64], result: DType) -> Option<u64> {
    if operand_types.len() != bits.len() {
        return None;
    }
    let first = *operand_types.first()?;
    let same = operand_types.iter().all(|&d| d == first);
    match (op, bits) {
        (Op::Unary(u), &[x]) if result == first => {
            dispatch!(first, T => T::unary(*u, T::from_bits64(x)).map(T::to_bits64))
        }
        (Op::Binary(b), &[x, y]) if same && result == first => {
            dispatch!(first, T => T::binary(*b, T::from_bits64(x), T::from_bits64(y)).map(T::to_bits64))
        }
        (Op::Compare(c), &[x, y]) if same && result == DType::Bool => {
            Some(dispatch!(first, T => u64::from(compare(*c, T::from_bits64(x), T::from_bits64(y)))))
        }
        (Op::Select, &[c, x, y]) if first == DType::Bool && operand_types[1..] == [result; 2] => {
            let chosen = if c & 0xff != 0 { x } else { y };
            Some(dispatch!(result, T => T::from_bits64(chosen).to_bits64()))
        }
        (Op::Fma, &[x, y, z]) if same && result == first => {
            dispatch!(first, T => T::fma(T::from_bits64(x), T::from_bits64(y), T::from_bits64(z)).map(T::to_bits64))
        }
        (Op::Cast, &[x]) => Some(dispatch!(first, S => dispatch!(result, T => {
            let value: T = S::from_bits64(x).cast_to();
            value.to_bits64()
        }))),
        (Op::Bitcast, &[x]) if first.bits() == result.bits() => {
            Some(dispatch!(first, T => T::from_bits64(x).to_bits64()))
        }
        _ => None,
    }
}

/// A comparison; all but `ne` are false of a NaN.
#[inline(always)]
pub fn compare<T: PartialOrd>(op: Cmp, x: T, y: T) -> bool {
    match op {
        Cmp::Eq => x == y,
        Cmp::Ne => x != y,
        Cmp::Lt => x < y,
        Cmp::Le => x <= y,
        Cmp::Gt => x > y,
        Cmp::Ge => x >= y,
    }
}

// ---- bool -------------------------------------------------------------------------------------------------------

impl Element for Bool {
    const DTYPE: DType = DType::Bool;

    #[inline(always)]
    fn from_bits64(bits: u64) -> Self {
        Bool::from(bits & 0xff != 0)
    }

    #[inline(always)]
    fn to_bits64(self) -> u64 {
        u64::from(self.0)
    }

    #[inline(always)]
    fn unary(op: UnaryOp, x: Self) -> Option<Self> {
        (op == UnaryOp::Not).then_some(Bool(x.0 ^ 1))
    }

    #[inline(always)]
    fn binary(op: BinaryOp, x: Self, y: Self) -> Option<Self> {
        match op {
            BinaryOp::And => Some(Bool(x.0 & y.0)),
            BinaryOp::Or => Some(Bool(x.0 | y.0)),
            BinaryOp::Xor => Some(Bool(x.0 ^ y.0)),
            _ => None,
        }
    }

    #[inline(always)]
    fn fma(_: Self, _: Self, _: Self) -> Option<Self> {
        None
    }
}

// ---- integers ---------------------------------------------------------------------------------------------------

macro_rules! int_element {
    ($($t:ident $unsigned:ident $wide:ident $dtype:ident),*) => {$(
        impl Element for $t {
            const DTYPE: DType = DType::$dtype;

            #[inline(always)]
            fn from_bits64(bits: u64) -> Self {
                bits as $t
            }

            #[inline(always)]
            fn to_bits64(self) -> u64 {
                self as $unsigned as u64
            }

            #[inline(always)]
            fn unary(op: UnaryOp, x: Self) -> Option<Self> {
                Some(match op {
                    UnaryOp::Neg => x.wrapping_neg(),
                    UnaryOp::Not => !x,
                    #[allow(unused_comparisons, reason = "the same text serves unsigned types, which are their own absolute value")]
                    UnaryOp::Abs => if x < 0 { x.wrapping_neg() } else { x },
                    _ => return None,
                })
            }

            #[inline(always)]
            #[allow(unused_comparisons, reason = "the same text serves unsigned types, whose division needs no correction")]
            fn binary(op: BinaryOp, x: Self, y: Self) -> Option<Self> {
                Some(match op {
                    BinaryOp::Add => x.wrapping_add(y),
                    BinaryOp::Sub => x.wrapping_sub(y),
                    BinaryOp::Mul => x.wrapping_mul(y),
                    BinaryOp::Div => if y == 0 { 0 } else { x.wrapping_div(y) },
                    BinaryOp::Rem => if y == 0 { x } else { x.wrapping_rem(y) },
                    BinaryOp::FloorDiv => {
                        if y == 0 {
                            0
                        } else {
                            let below = x.wrapping_rem(y) != 0 && (x < 0) != (y < 0);
                            x.wrapping_div(y).wrapping_sub(<$t>::from(below))
                        }
                    }
                    BinaryOp::FloorMod => {
                        if y == 0 {
                            x
                        } else {
                            let rest = x.wrapping_rem(y);
                            if rest != 0 && (rest < 0) != (y < 0) { rest.wrapping_add(y) } else { rest }
                        }
                    }
                    BinaryOp::MulHi => ((x as $wide * y as $wide) >> <$t>::BITS) as $t,
                    BinaryOp::And => x & y,
                    BinaryOp::Or => x | y,
                    BinaryOp::Xor => x ^ y,
                    // Both shift by `y` modulo the width, a power of two, so that the low bits of `y` suffice.
                    BinaryOp::Shl => x.wrapping_shl(y as u32),
                    BinaryOp::Shr => x.wrapping_shr(y as u32),
                    BinaryOp::Min => x.min(y),
                    BinaryOp::Max => x.max(y),
                    BinaryOp::FMin | BinaryOp::FMax => return None,
                })
            }

            #[inline(always)]
            fn fma(_: Self, _: Self, _: Self) -> Option<Self> {
                None
            }
        }
    )*};
}

int_element!(
    i8 u8 i16 I8, i16 u16 i32 I16, i32 u32 i64 I32, i64 u64 i128 I64,
    u8 u8 u16 U8, u16 u16 u32 U16, u32 u32 u64 U32, u64 u64 u128 U64
);

// ---- floats -----------------------------------------------------------------------------------------------------

macro_rules! real_element {
    ($t:ident $bits:ident $dtype:ident tanh: $tanh:expr, erf: $erf:expr, rsqrt: $rsqrt:expr) => {
        impl Element for $t {
            const DTYPE: DType = DType::$dtype;

            #[inline(always)]
            fn from_bits64(bits: u64) -> Self {
                $t::from_bits(bits as $bits)
            }

            #[inline(always)]
            fn to_bits64(self) -> u64 {
                u64::from(self.to_bits())
            }

            #[inline(always)]
            fn unary(op: UnaryOp, x: Self) -> Option<Self> {
                Some(match op {
                    UnaryOp::Neg => -x,
                    UnaryOp::Not => return None,
                    UnaryOp::Abs => x.abs(),
                    UnaryOp::Exp => x.exp(),
                    UnaryOp::Exp2 | UnaryOp::Exp2Approx => x.exp2(),
                    UnaryOp::Log => x.ln(),
                    UnaryOp::Log2 => x.log2(),
                    UnaryOp::Sin => x.sin(),
                    UnaryOp::Cos => x.cos(),
                    UnaryOp::Tanh => ($tanh)(x),
                    UnaryOp::Erf => ($erf)(x),
                    UnaryOp::Sqrt => x.sqrt(),
                    UnaryOp::Rsqrt => ($rsqrt)(x),
                    UnaryOp::Floor => x.floor(),
                    UnaryOp::Ceil => x.ceil(),
                    UnaryOp::Trunc => x.trunc(),
                    UnaryOp::Round => x.round_ties_even(),
                })
            }

            #[inline(always)]
            fn binary(op: BinaryOp, x: Self, y: Self) -> Option<Self> {
                // Equal operands differ at most in the sign of a zero: the `or` of their bits is then the negative
                // one, the `and` the positive one. Written as selects, so that loops over tiles vectorise.
                let lesser = |x: $t, y: $t| {
                    let m = if x < y { x } else { y };
                    if x == y { $t::from_bits(x.to_bits() | y.to_bits()) } else { m }
                };
                let greater = |x: $t, y: $t| {
                    let m = if x > y { x } else { y };
                    if x == y { $t::from_bits(x.to_bits() & y.to_bits()) } else { m }
                };
                Some(match op {
                    BinaryOp::Add => x + y,
                    BinaryOp::Sub => x - y,
                    BinaryOp::Mul => x * y,
                    BinaryOp::Div => x / y,
                    BinaryOp::Rem => x % y,
                    // A NaN in y comes out of the comparison, which is then false.
                    BinaryOp::Min => {
                        if x.is_nan() {
                            x
                        } else {
                            lesser(x, y)
                        }
                    }
                    BinaryOp::Max => {
                        if x.is_nan() {
                            x
                        } else {
                            greater(x, y)
                        }
                    }
                    BinaryOp::FMin => {
                        if y.is_nan() {
                            x
                        } else {
                            lesser(x, y)
                        }
                    }
                    BinaryOp::FMax => {
                        if y.is_nan() {
                            x
                        } else {
                            greater(x, y)
                        }
                    }
                    BinaryOp::FloorDiv
                    | BinaryOp::FloorMod
                    | BinaryOp::MulHi
                    | BinaryOp::And
                    | BinaryOp::Or
                    | BinaryOp::Xor
                    | BinaryOp::Shl
                    | BinaryOp::Shr => return None,
                })
            }

            #[inline(always)]
            fn fma(x: Self, y: Self, z: Self) -> Option<Self> {
                Some(x.mul_add(y, z))
            }
        }
    };
}

real_element!(f32 u32 F32
    tanh: |x: f32| f64::from(x).tanh() as f32,
    erf: |x: f32| libm::erf(f64::from(x)) as f32,
    rsqrt: |x: f32| (1.0 / f64::from(x).sqrt()) as f32);
real_element!(f64 u64 F64
    tanh: |x: f64| x.tanh(),
    erf: libm::erf,
    rsqrt: |x: f64| 1.0 / x.sqrt());

/// Implements a 16-bit float through `f32`.
macro_rules! half_element {
    ($($t:ident $dtype:ident),*) => {$(
        impl Element for $t {
            const DTYPE: DType = DType::$dtype;

            #[inline(always)]
            fn from_bits64(bits: u64) -> Self {
                $t::from_bits(bits as u16)
            }

            #[inline(always)]
            fn to_bits64(self) -> u64 {
                u64::from(self.to_bits())
            }

            #[inline(always)]
            fn unary(op: UnaryOp, x: Self) -> Option<Self> {
                f32::unary(op, x.to_f32()).map($t::from_f32)
            }

            #[inline(always)]
            fn binary(op: BinaryOp, x: Self, y: Self) -> Option<Self> {
                f32::binary(op, x.to_f32(), y.to_f32()).map($t::from_f32)
            }

            #[inline(always)]
            fn fma(x: Self, y: Self, z: Self) -> Option<Self> {
                f32::fma(x.to_f32(), y.to_f32(), z.to_f32()).map($t::from_f32)
            }
        }
    )*};
}

half_element!(f16 F16, bf16 BF16);

// ---- casts ------------------------------------------------------------------------------------------------------

/// A double that rounds to any float of at most 16 bits as `x` itself does.
#[inline(always)]
fn to_odd_f64(x: u64) -> f64 {
    if x >> 53 == 0 {
        return x as f64;
    }
    // What is shifted out leaves its trace in the last of the 53 bits that remain.
    let sticky = u64::from(x & 0x7ff != 0);
    ((x >> 11) | sticky) as f64 * 2048.0
}

macro_rules! native_casts {
    ($from:ident => $($to:ident)*) => {
        $(impl CastTo<$to> for $from {
            #[inline(always)]
            fn cast_to(self) -> $to {
                self as $to
            }
        })*
    };
}

macro_rules! casts_through {
    ($from:ident as |$x:ident| $through:expr => $($to:ident)*) => {
        $(impl CastTo<$to> for $from {
            #[inline(always)]
            fn cast_to(self) -> $to {
                let $x = self;
                $through.cast_to()
            }
        })*
    };
}

macro_rules! all_native_casts {
    ($($from:ident)*) => {$(
        native_casts!($from => i8 i16 i32 i64 u8 u16 u32 u64 f32 f64);
        impl CastTo<Bool> for $from {
            #[inline(always)]
            fn cast_to(self) -> Bool {
                Bool::from(self != <$from>::default())
            }
        }
    )*};
}

all_native_casts!(i8 i16 i32 i64 u8 u16 u32 u64 f32 f64);
casts_through!(Bool as |x| x.0 => i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 f16 bf16 Bool);
casts_through!(f16 as |x| x.to_f32() => Bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 f16 bf16);
casts_through!(bf16 as |x| x.to_f32() => Bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 f16 bf16);

macro_rules! casts_to_half {
    ($($t:ident)*) => {$(
        impl CastTo<$t> for f32 {
            #[inline(always)]
            fn cast_to(self) -> $t {
                $t::from_f32(self)
            }
        }
        impl CastTo<$t> for f64 {
            #[inline(always)]
            fn cast_to(self) -> $t {
                $t::from_f32(odd_f32(self))
            }
        }
        impl CastTo<$t> for u64 {
            #[inline(always)]
            fn cast_to(self) -> $t {
                to_odd_f64(self).cast_to()
            }
        }
        impl CastTo<$t> for i64 {
            #[inline(always)]
            fn cast_to(self) -> $t {
                let magnitude = to_odd_f64(self.unsigned_abs());
                (if self < 0 { -magnitude } else { magnitude }).cast_to()
            }
        }
        casts_through!(i32 as |x| f64::from(x) => $t);
        casts_through!(u32 as |x| f64::from(x) => $t);
        // Exact in f32.
        casts_through!(i8 as |x| f32::from(x) => $t);
        casts_through!(i16 as |x| f32::from(x) => $t);
        casts_through!(u8 as |x| f32::from(x) => $t);
        casts_through!(u16 as |x| f32::from(x) => $t);
    )*};
}

casts_to_half!(f16 bf16);
