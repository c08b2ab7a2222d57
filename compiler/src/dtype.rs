//! Element types of tiles and buffers.

use std::fmt;
use std::str::FromStr;

/// The element type of a tile or a buffer.
///
/// `Bool` is stored as one byte, 0 or 1; a byte other than 0 reads as true.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum DType {
    /// Truth value, one byte in memory.
    Bool,
    /// Signed 8-bit integer.
    I8,
    /// Signed 16-bit integer.
    I16,
    /// Signed 32-bit integer.
    I32,
    /// Signed 64-bit integer.
    I64,
    /// Unsigned 8-bit integer.
    U8,
    /// Unsigned 16-bit integer.
    U16,
    /// Unsigned 32-bit integer.
    U32,
    /// Unsigned 64-bit integer.
    U64,
    /// IEEE 754 binary16.
    F16,
    /// bfloat16: the upper half of an IEEE 754 binary32.
    BF16,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
}

/// What family of operations a type takes part in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// `Bool`.
    Bool,
    /// Two's complement integers.
    Signed,
    /// Unsigned integers.
    Unsigned,
    /// Floating point.
    Float,
}

impl DType {
    /// Every type, in order.
    pub const ALL: [DType; 13] = [
        DType::Bool,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::U8,
        DType::U16,
        DType::U32,
        DType::U64,
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::F64,
    ];

    /// The name in IR text and in messages: `bool`, `i8` .. `u64`, `f16`, `bf16`, `f32`, `f64`.
    pub const fn name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::I8 => "i8",
            DType::I16 => "i16",
            DType::I32 => "i32",
            DType::I64 => "i64",
            DType::U8 => "u8",
            DType::U16 => "u16",
            DType::U32 => "u32",
            DType::U64 => "u64",
            DType::F16 => "f16",
            DType::BF16 => "bf16",
            DType::F32 => "f32",
            DType::F64 => "f64",
        }
    }

    /// Bytes of one element in memory.
    pub const fn bytes(self) -> usize {
        match self {
            DType::Bool | DType::I8 | DType::U8 => 1,
            DType::I16 | DType::U16 | DType::F16 | DType::BF16 => 2,
            DType::I32 | DType::U32 | DType::F32 => 4,
            DType::I64 | DType::U64 | DType::F64 => 8,
        }
    }

    /// Bits of a value: 1 for `Bool`, else 8 times [`DType::bytes`].
    pub const fn bits(self) -> u32 {
        match self {
            DType::Bool => 1,
            _ => self.bytes() as u32 * 8,
        }
    }

    /// The family of the type.
    pub const fn kind(self) -> Kind {
        match self {
            DType::Bool => Kind::Bool,
            DType::I8 | DType::I16 | DType::I32 | DType::I64 => Kind::Signed,
            DType::U8 | DType::U16 | DType::U32 | DType::U64 => Kind::Unsigned,
            DType::F16 | DType::BF16 | DType::F32 | DType::F64 => Kind::Float,
        }
    }

    /// Is this a floating-point type?
    pub const fn is_float(self) -> bool {
        matches!(self.kind(), Kind::Float)
    }

    /// Is this an integer type (`Bool` is not)?
    pub const fn is_int(self) -> bool {
        matches!(self.kind(), Kind::Signed | Kind::Unsigned)
    }

    /// Is this a signed integer type?
    pub const fn is_signed(self) -> bool {
        matches!(self.kind(), Kind::Signed)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for DType {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        DType::ALL.into_iter().find(|d| d.name() == s).ok_or_else(|| {
            let names: Vec<_> = DType::ALL.iter().map(|d| d.name()).collect();
            format!("unknown element type `{s}`; known are {}", names.join(", "))
        })
    }
}

/// `value` rounded to the nearest `f16`, ties to even. Use it in place of `half::f16::from_f64`, which drops the lower half
/// of the mantissa before it rounds, and so takes numbers just above a tie for the tie.
pub fn f16_from_f64(value: f64) -> half::f16 {
    if value.is_nan() { half::f16::from_f64(value) } else { half::f16::from_f32(to_odd(value)) }
}

/// `value` rounded to the nearest `bf16`, ties to even; in place of `half::bf16::from_f64` as [`f16_from_f64`].
pub fn bf16_from_f64(value: f64) -> half::bf16 {
    if value.is_nan() { half::bf16::from_f64(value) } else { half::bf16::from_f32(to_odd(value)) }
}

/// `value` as `f32`, and if that is inexact, the one of its two neighbours whose last bit is 1. Rounding that to a type with
/// at least two bits less is the same as rounding `value` itself (Boldo and Melquiond, "When double rounding is odd").
fn to_odd(value: f64) -> f32 {
    let nearest = value as f32;
    let back = f64::from(nearest);
    if back == value {
        return nearest;
    }
    // One less in the bits is one nearer to zero, for both signs.
    let toward_zero = if back.abs() > value.abs() { nearest.to_bits() - 1 } else { nearest.to_bits() };
    f32::from_bits(toward_zero | 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every number half-way between neighbours, and the two doubles next to it.
    fn check_ties(bits: std::ops::Range<u16>, to_f64: fn(u16) -> f64, round: fn(f64) -> u16) {
        for b in bits {
            let (low, high) = (to_f64(b), to_f64(b + 1));
            let tie = low + (high - low) / 2.0;
            let even = b + (b & 1);
            for (value, expected) in [(low, b), (tie.next_down(), b), (tie, even), (tie.next_up(), b + 1)] {
                assert_eq!(round(value), expected, "{value:e} between {low:e} and {high:e}");
                assert_eq!(round(-value), expected | 0x8000, "-{value:e}");
            }
        }
    }

    #[test]
    fn doubles_are_rounded_once_to_half_precision() {
        check_ties(0..0x7bff, |b| half::f16::from_bits(b).to_f64(), |x| f16_from_f64(x).to_bits());
        assert_eq!(f16_from_f64(65520f64.next_down()), half::f16::MAX);
        assert_eq!(f16_from_f64(65520.0), half::f16::INFINITY);
        assert_eq!(f16_from_f64(f64::NEG_INFINITY), half::f16::NEG_INFINITY);
        assert!(f16_from_f64(f64::NAN).is_nan());
    }

    #[test]
    fn doubles_are_rounded_once_to_bfloat16() {
        check_ties(0..0x7f7f, |b| half::bf16::from_bits(b).to_f64(), |x| bf16_from_f64(x).to_bits());
        assert_eq!(bf16_from_f64(f64::MAX), half::bf16::INFINITY);
        assert_eq!(bf16_from_f64(5e-324), half::bf16::ZERO);
        assert!(bf16_from_f64(f64::NAN).is_nan());
    }
}
