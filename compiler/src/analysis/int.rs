//! Integer arithmetic of the Tile IR on exact values.
//!
//! A value of an integer type or of `bool` is an `i128` that holds the number itself: a `u64` above `i64::MAX` is
//! positive, a `bool` is 0 or 1. The analyses reason in this form, because in it overflow is a plain comparison.

use crate::dtype::{DType, Kind};
use crate::tile::{BinaryOp, Cmp, Constant, UnaryOp};

/// The least and greatest value of an integer type or `bool`.
pub fn limits(dtype: DType) -> (i128, i128) {
    let bits = dtype.bits();
    match dtype.kind() {
        Kind::Signed => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
        _ => (0, (1i128 << bits) - 1),
    }
}

/// The value of the type that equals `value` modulo 2 to its width.
pub fn wrap(dtype: DType, value: i128) -> i128 {
    let unused = 128 - dtype.bits();
    match dtype.kind() {
        Kind::Signed => value << unused >> unused,
        _ => ((value as u128) << unused >> unused) as i128,
    }
}

/// The value of a constant; `None` for float types.
pub fn of_constant(dtype: DType, constant: Constant) -> Option<i128> {
    (!dtype.is_float()).then(|| wrap(dtype, i128::from(constant.0)))
}

/// The constant of a value.
pub fn to_constant(dtype: DType, value: i128) -> Constant {
    Constant::from_i64(dtype, value as i64)
}

/// `x / y` rounded toward minus infinity, for a `y` other than 0.
pub fn floor_div(x: i128, y: i128) -> i128 {
    let q = x / y;
    if x % y != 0 && (x < 0) != (y < 0) { q - 1 } else { q }
}

/// An elementwise function of two operands; `None` if it is not one of integers (or of `bool`).
pub fn binary(op: BinaryOp, dtype: DType, x: i128, y: i128) -> Option<i128> {
    let shift = (y & i128::from(dtype.bits() - 1)) as u32;
    let value = match op {
        BinaryOp::Add => x + y,
        BinaryOp::Sub => x - y,
        // The product of two u64 leaves i128, but its low bits are right all the same.
        BinaryOp::Mul => x.wrapping_mul(y),
        BinaryOp::Div => x.checked_div(y).unwrap_or(0),
        BinaryOp::Rem => x.checked_rem(y).unwrap_or(x),
        BinaryOp::FloorDiv if y == 0 => 0,
        BinaryOp::FloorDiv => floor_div(x, y),
        BinaryOp::FloorMod if y == 0 => x,
        BinaryOp::FloorMod => x - y * floor_div(x, y),
        BinaryOp::MulHi if dtype.is_signed() => (x * y) >> dtype.bits(),
        BinaryOp::MulHi => ((x as u128 * y as u128) >> dtype.bits()) as i128,
        BinaryOp::And => x & y,
        BinaryOp::Or => x | y,
        BinaryOp::Xor => x ^ y,
        BinaryOp::Shl => x << shift,
        BinaryOp::Shr => x >> shift,
        BinaryOp::Min => x.min(y),
        BinaryOp::Max => x.max(y),
        BinaryOp::FMin | BinaryOp::FMax => return None,
    };
    (!dtype.is_float()).then(|| wrap(dtype, value))
}

/// An elementwise function of one operand; `None` if it is not one of integers (or of `bool`).
pub fn unary(op: UnaryOp, dtype: DType, x: i128) -> Option<i128> {
    let value = match op {
        UnaryOp::Neg => -x,
        UnaryOp::Not => !x,
        UnaryOp::Abs => x.abs(),
        _ => return None,
    };
    (!dtype.is_float()).then(|| wrap(dtype, value))
}

/// A comparison.
pub fn compare(op: Cmp, x: i128, y: i128) -> bool {
    match op {
        Cmp::Eq => x == y,
        Cmp::Ne => x != y,
        Cmp::Lt => x < y,
        Cmp::Le => x <= y,
        Cmp::Gt => x > y,
        Cmp::Ge => x >= y,
    }
}

/// A cast between integer types and `bool`.
pub fn cast(to: DType, x: i128) -> i128 {
    if to == DType::Bool { i128::from(x != 0) } else { wrap(to, x) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wraps_to_the_width_and_sign_of_the_type() {
        assert_eq!(wrap(DType::I8, 128), -128);
        assert_eq!(wrap(DType::U8, -1), 255);
        assert_eq!(wrap(DType::U64, -1), u64::MAX as i128);
        assert_eq!(wrap(DType::I64, 1 << 63), i64::MIN as i128);
        assert_eq!(of_constant(DType::I32, Constant(0xffff_ffff)), Some(-1));
        assert_eq!(to_constant(DType::U64, u64::MAX as i128), Constant(u64::MAX));
        assert_eq!(limits(DType::Bool), (0, 1));
    }

    #[test]
    fn corner_cases_are_those_of_the_op_table() {
        let min = i32::MIN as i128;
        let eval = |op, x, y| binary(op, DType::I32, x, y);
        assert_eq!(eval(BinaryOp::Div, min, -1), Some(min));
        assert_eq!(eval(BinaryOp::Rem, min, -1), Some(0));
        assert_eq!(eval(BinaryOp::Div, 7, 0), Some(0));
        assert_eq!(eval(BinaryOp::Rem, 7, 0), Some(7));
        assert_eq!(eval(BinaryOp::FloorDiv, -7, 2), Some(-4));
        assert_eq!(eval(BinaryOp::FloorMod, -7, 2), Some(1));
        assert_eq!(eval(BinaryOp::FloorMod, 7, -2), Some(-1));
        assert_eq!(eval(BinaryOp::FloorDiv, 7, 0), Some(0));
        assert_eq!(eval(BinaryOp::Shl, 1, 33), Some(2));
        assert_eq!(eval(BinaryOp::Shr, -8, -31), Some(-4));
        assert_eq!(binary(BinaryOp::MulHi, DType::U64, u64::MAX as i128, u64::MAX as i128), Some(u64::MAX as i128 - 1));
        assert_eq!(unary(UnaryOp::Not, DType::Bool, 1), Some(0));
        assert_eq!(unary(UnaryOp::Abs, DType::I8, -128), Some(-128));
    }
}
