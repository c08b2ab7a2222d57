//! The table of Tile IR operations: every op, its operands, its types and its meaning.
//!
//! Elementwise ops take operands of one shape; broadcasting is always an explicit [`Op::Broadcast`].
//! The interpreter ([`crate::interp`]) is the precise meaning; the rules common to all ops are:
//! - integers wrap; signed division truncates toward zero; `x / 0 = 0` and `x % 0 = x`; `MIN / -1 = MIN`, `MIN % -1 = 0`;
//! - a shift by `s` shifts by `s` modulo the width of the type;
//! - `f16` and `bf16` arithmetic is that of `f32`, rounded to the type (to nearest, ties to even) after each op;
//! - no contraction of `a * b + c` unless written as [`Op::Fma`] or [`Op::Dot`];
//! - casts are Rust's `as`: float to integer truncates, saturates, and takes NaN to 0; to `bool` is `!= 0`.

use crate::dtype::{DType, odd_f32};
use crate::names::names;

names! {
    /// Elementwise functions of one operand; the result has the operand's type.
    UnaryOp {
        /// `-x`; integers and floats. Wraps for the least integer.
        Neg = "neg",
        /// Bitwise complement of integers, logical complement of `bool`.
        Not = "not",
        /// Absolute value; wraps for the least integer.
        Abs = "abs",
        /// e to the power x. Floats; so are all below.
        Exp = "exp",
        /// 2 to the power x.
        Exp2 = "exp2",
        /// 2 to the power x in a hurry: relative error up to 2^-22, and 0 for results below 2^-126 (of f64: as `exp2`).
        Exp2Approx = "exp2_approx",
        /// Natural logarithm; NaN below zero, -inf at zero.
        Log = "log",
        /// Logarithm to base 2.
        Log2 = "log2",
        /// Sine of radians, accurate for every finite x.
        Sin = "sin",
        /// Cosine of radians, accurate for every finite x.
        Cos = "cos",
        /// Hyperbolic tangent.
        Tanh = "tanh",
        /// The error function.
        Erf = "erf",
        /// Square root, correctly rounded where the target can.
        Sqrt = "sqrt",
        /// `1 / sqrt(x)`.
        Rsqrt = "rsqrt",
        /// Greatest integer not above x.
        Floor = "floor",
        /// Least integer not below x.
        Ceil = "ceil",
        /// Toward zero.
        Trunc = "trunc",
        /// To the nearest integer, ties to even.
        Round = "round",
    }
}

names! {
    /// Elementwise functions of two operands of one type, which is the result's.
    BinaryOp {
        /// Sum. Integers and floats.
        Add = "add",
        /// Difference. Integers and floats.
        Sub = "sub",
        /// Product. Integers and floats.
        Mul = "mul",
        /// Quotient. Integers (truncating) and floats.
        Div = "div",
        /// Remainder with the sign of the dividend. Integers and floats (C's `fmod`).
        Rem = "rem",
        /// Integer quotient rounded toward minus infinity; 0 for a zero divisor.
        FloorDiv = "floor_div",
        /// `x - y * floor_div(x, y)`: the sign of the divisor; x for a zero divisor.
        FloorMod = "floor_mod",
        /// The upper half of the double-width product of integers.
        MulHi = "mul_hi",
        /// Bitwise and; also of `bool`. Integers; so are the next four.
        And = "and",
        /// Bitwise or; also of `bool`.
        Or = "or",
        /// Bitwise exclusive or; also of `bool`.
        Xor = "xor",
        /// Left shift.
        Shl = "shl",
        /// Right shift: arithmetic for signed types, logical for unsigned.
        Shr = "shr",
        /// Minimum; NaN if either operand is NaN; -0 below +0. Also of integers.
        Min = "min",
        /// Maximum; NaN if either operand is NaN; +0 above -0. Also of integers.
        Max = "max",
        /// Minimum of floats, ignoring NaN: the other operand if one is NaN; -0 below +0.
        FMin = "fmin",
        /// Maximum of floats, ignoring NaN; +0 above -0.
        FMax = "fmax",
    }
}

names! {
    /// Comparisons; the result is `bool`. With a NaN operand all but `ne` are false.
    Cmp {
        /// Equal.
        Eq = "eq",
        /// Not equal.
        Ne = "ne",
        /// Less.
        Lt = "lt",
        /// Less or equal.
        Le = "le",
        /// Greater.
        Gt = "gt",
        /// Greater or equal.
        Ge = "ge",
    }
}

names! {
    /// How [`Op::Reduce`] combines the elements along its axis.
    ReduceOp {
        /// Sum. `f16`/`bf16` accumulate in `f32` and round once; the *builder* widens small integers and `bool` first.
        Sum = "sum",
        /// Product, with the rules of `Sum`.
        Prod = "prod",
        /// Minimum; NaN if any element is NaN.
        Min = "min",
        /// Maximum; NaN if any element is NaN.
        Max = "max",
        /// Bitwise and; `bool`: all.
        And = "and",
        /// Bitwise or; `bool`: any.
        Or = "or",
        /// Bitwise exclusive or.
        Xor = "xor",
    }
}

names! {
    /// How exactly `f32` operands enter [`Op::Dot`].
    DotPrecision {
        /// As they are: products and sums in `f32` (`f64` for `f64` operands).
        Ieee = "ieee",
        /// Rounded to tf32 (10 bits of mantissa) first, where the target has such units.
        Tf32 = "tf32",
    }
}

/// The value of a constant: the bits of one element, in the low bits (a `bool` is 0 or 1, integers are
/// truncated to their width, floats are their IEEE bits).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Constant(pub u64);

impl Constant {
    /// The bits of `value` in an integer or `bool` type; for float types, of the nearest float.
    pub fn from_i64(dtype: DType, value: i64) -> Self {
        match dtype {
            DType::Bool => Self(u64::from(value != 0)),
            d if d.is_float() => Self::from_f64(d, value as f64),
            d => Self(value as u64 & mask(d)),
        }
    }

    /// The bits of `value` rounded to a float type; for integer types, Rust's `as`.
    pub fn from_f64(dtype: DType, value: f64) -> Self {
        Self(match dtype {
            DType::F16 => u64::from(half::f16::from_f32(odd_f32(value)).to_bits()),
            DType::BF16 => u64::from(half::bf16::from_f32(odd_f32(value)).to_bits()),
            DType::F32 => u64::from((value as f32).to_bits()),
            DType::F64 => value.to_bits(),
            DType::Bool => u64::from(value != 0.0),
            DType::I8 => value as i8 as u8 as u64,
            DType::I16 => value as i16 as u16 as u64,
            DType::I32 => value as i32 as u32 as u64,
            DType::I64 => value as i64 as u64,
            DType::U8 => value as u8 as u64,
            DType::U16 => value as u16 as u64,
            DType::U32 => value as u32 as u64,
            DType::U64 => value as u64,
        })
    }

    /// The value as an integer, sign-extended for signed types; `None` for float types.
    /// A `u64` above `i64::MAX` wraps.
    pub fn as_i64(self, dtype: DType) -> Option<i64> {
        Some(match dtype {
            DType::I8 => i64::from(self.0 as i8),
            DType::I16 => i64::from(self.0 as i16),
            DType::I32 => i64::from(self.0 as i32),
            d if d.is_float() => return None,
            _ => self.0 as i64,
        })
    }

    /// The value as a double; exact for every float type.
    pub fn as_f64(self, dtype: DType) -> f64 {
        match dtype {
            DType::F16 => half::f16::from_bits(self.0 as u16).to_f64(),
            DType::BF16 => half::bf16::from_bits(self.0 as u16).to_f64(),
            DType::F32 => f64::from(f32::from_bits(self.0 as u32)),
            DType::F64 => f64::from_bits(self.0),
            DType::U64 => self.0 as f64,
            d => self.as_i64(d).unwrap_or(0) as f64,
        }
    }
}

/// All ones in the width of an integer or float type.
const fn mask(dtype: DType) -> u64 {
    match dtype.bits() {
        64 => u64::MAX,
        bits => (1 << bits) - 1,
    }
}

/// An operation: its kind and attributes. Operands, results and regions are in [`super::OpData`]; names, effects and counts
/// in the table [`super::table`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Op {
    /// `() -> i32`: this program's coordinate along `axis` (0, 1, 2) of the grid.
    ProgramId {
        /// 0, 1 or 2.
        axis: u8,
    },
    /// `() -> i32`: the grid's extent along `axis`.
    NumPrograms {
        /// 0, 1 or 2.
        axis: u8,
    },
    /// `() -> T[shape]`: every element is this number. Not for addresses.
    Const(Constant),
    /// `() -> i32[n]`: `start, start + 1, ..`.
    Arange {
        /// The first element.
        start: i32,
    },
    /// `(x: T) -> T`.
    Unary(UnaryOp),
    /// `(x: T, y: T) -> T`.
    Binary(BinaryOp),
    /// `(x: T, y: T) -> bool`. Not for addresses.
    Compare(Cmp),
    /// `(condition: bool, x: T, y: T) -> T`: x where the condition holds, else y. Same shapes.
    Select,
    /// `(x: T, y: T, z: T) -> T`: `x * y + z` of floats, rounded once (of `f16` and `bf16`: to `f32`, and then to the type).
    Fma,
    /// `(x: T) -> U`: Rust's `as` (see the module). Not for addresses.
    Cast,
    /// `(x: T) -> U`: the same bits; T and U have the same width; not `bool`, not addresses.
    Bitcast,
    /// `(x: T[a]) -> T[b]`: a scalar fills any shape; else ranks agree and extents of 1 are repeated.
    Broadcast,
    /// `(x: T[a]) -> T[b]`: the same elements in row-major order. Also inserts and drops extents of 1.
    Reshape,
    /// `(x: T[a]) -> T[b]`: dimension `i` of the result is dimension `perm[i]` of the operand.
    Permute(Vec<u8>),
    /// `(p: *T, offset: I) -> *T`: p moved by `offset` elements; `offset` is any integer type, same shape.
    /// The sum is exact in 64 bits: signed offsets are sign-extended, unsigned ones zero-extended.
    PtrAdd,
    /// `(p: *T [, mask: bool [, other: T]]) -> T`. A lane whose mask is false touches no memory and reads `other`, or 0.
    Load,
    /// `(p: *T, x: T [, mask: bool])`. A lane whose mask is false touches no memory.
    /// Lanes that store different numbers to one address leave one of them there.
    Store,
    /// `(base: *T, dims: i32 x rank, strides: I x rank, offsets: i32 x rank [, pad: T]) -> T[shape of that rank]`:
    /// element `i` is `base[sum((offsets + i) * strides)]` where `0 <= offsets + i < dims` in each dimension,
    /// else `pad`, or 0. All operands are scalars; strides count elements and are all `i32` or all `i64`.
    ViewLoad {
        /// Dimensions of the view and of the result.
        rank: u8,
    },
    /// `(base: *T, dims: i32 x rank, strides: I x rank, offsets: i32 x rank, x: T[..])`: stores the elements of x
    /// that fall inside the view, drops the others.
    ViewStore {
        /// Dimensions of the view and of the tile stored.
        rank: u8,
    },
    /// `(x: T[a]) -> T[a without axis]`: combines the elements along `axis`.
    Reduce {
        /// The combining operation.
        op: ReduceOp,
        /// The dimension that goes away.
        axis: u8,
    },
    /// `(x: T[a]) -> i32[a without axis]`: the index along `axis` of the greatest (or least) element; the first of
    /// equals; the first NaN wins over every number. Integers and floats.
    ArgReduce {
        /// Greatest, or least?
        max: bool,
        /// The dimension that goes away.
        axis: u8,
    },
    /// `(a: T[m, k], b: T[k, n], acc: U[m, n]) -> U[m, n]`: `acc + a b`. T to U: `f16`, `bf16`, `f32` to `f32`,
    /// `f64` to `f64`, `i8` or `u8` to `i32`. Products are exact or fused, the order of the sum is unspecified but fixed.
    Dot {
        /// What `f32` operands are rounded to.
        precision: DotPrecision,
    },
    /// `(lo: I, hi: I, step: I, inits..) -> (carried..)`; I is `i32` or `i64`. One region with parameters
    /// `(iv: I, carried..)`, ended by `yield` of the next carried values. Visits `lo, lo + step, ..` while below `hi`
    /// (above, for a negative step); never for a zero step. Carried values keep their types.
    For,
    /// `(inits..) -> (carried..)`. Two regions, each with parameters `(carried..)`: the first is ended by
    /// `condition`, the second (the body) by `yield`. The body runs as long as the condition holds.
    While,
    /// `(condition: bool) -> (results..)`. Two regions without parameters, each ended by `yield` of the results.
    If,
    /// `(values..)`: ends a region of `for`, `while` (the body), `if`; and, without values, the function.
    Yield,
    /// `(go_on: bool)`: ends the first region of `while`.
    Condition,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every number half-way between neighbours, and the doubles next to it.
    fn check_ties(dtype: DType, bits: std::ops::Range<u16>) {
        let to_f64 = |b: u16| Constant(u64::from(b)).as_f64(dtype);
        let round = |x: f64| Constant::from_f64(dtype, x).0 as u16;
        for b in bits {
            let (low, high) = (to_f64(b), to_f64(b + 1));
            let tie = low + (high - low) / 2.0;
            let even = b + (b & 1);
            for (value, expected) in [(low, b), (tie.next_down(), b), (tie, even), (tie.next_up(), b + 1)] {
                assert_eq!(round(value), expected, "{value:e} between {low:e} and {high:e} as {dtype}");
                assert_eq!(round(-value), expected | 0x8000, "-{value:e} as {dtype}");
            }
        }
    }

    #[test]
    fn constants_are_rounded_once() {
        check_ties(DType::F16, 0..0x7bff);
        check_ties(DType::BF16, 0..0x7f7f);
        let bits = |dtype, x| Constant::from_f64(dtype, x).0;
        assert_eq!(bits(DType::F16, 65520f64.next_down()), 0x7bff);
        assert_eq!(bits(DType::F16, 65520.0), 0x7c00);
        assert_eq!(bits(DType::F16, f64::NEG_INFINITY), 0xfc00);
        assert_eq!(bits(DType::BF16, f64::MAX), 0x7f80);
        assert_eq!(bits(DType::BF16, 5e-324), 0);
        assert!(Constant(bits(DType::F16, f64::NAN)).as_f64(DType::F16).is_nan());
    }
}
