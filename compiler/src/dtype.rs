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

/// [`DType::ALL`] in a place, so that there are parts of it.
const ALL: &[DType] = &DType::ALL;

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

    /// Every type but `Bool`, in order.
    pub const NUMBERS: &'static [DType] = ALL.split_at(1).1;

    /// Every floating-point type, in order.
    pub const FLOATS: &'static [DType] = ALL.split_at(9).1;

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

/// An `f32` near `x` that rounds to any narrower float as `x` itself does: truncated, with the last bit set if anything
/// was lost ("round to odd"). Going by way of the nearest `f32` instead, as the crate half does on machines with
/// instructions for it, could make a tie of what was none, and round a second time.
#[inline(always)]
pub fn odd_f32(x: f64) -> f32 {
    let near = x as f32;
    let back = f64::from(near);
    if back == x || x.is_nan() {
        return near;
    }
    // Also right for an overflow, whose neighbour below infinity is odd, and for an underflow to zero.
    let bits = near.to_bits() - u32::from(back.abs() > x.abs());
    f32::from_bits(bits | 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_parts_of_one() {
        let those = |wanted: fn(DType) -> bool| DType::ALL.into_iter().filter(|&d| wanted(d)).collect::<Vec<_>>();
        assert_eq!(DType::NUMBERS, those(|d| d != DType::Bool));
        assert_eq!(DType::FLOATS, those(DType::is_float));
    }
}
