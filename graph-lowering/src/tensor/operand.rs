//! What may stand beside a tensor: other tensors and host numbers, and the type that both then have.
//!
//! The type of a result follows from types alone, never from the value of a host number: a fraction (`f64`) beside
//! integers gives `f32`, an integer takes the tensor's type and must fit in it.

use super::{Tensor, fail, trace::apply};
use crate::prim::Op;
use tilewright_compiler::DType;
use tilewright_compiler::dtype::Kind;
use tilewright_compiler::error::Loc;
use tilewright_compiler::tile::Cmp;

/// The type that elements of two types meet in: floats win over integers, wider over narrower; `f16` with `bf16` gives
/// `f32`; a signed and an unsigned integer give the next wider signed one (`i64` at most).
pub fn promote(a: DType, b: DType) -> DType {
    if a == b {
        return a;
    }
    let signed = |bytes: usize| match bytes {
        1 => DType::I8,
        2 => DType::I16,
        4 => DType::I32,
        _ => DType::I64,
    };
    match (a.kind(), b.kind()) {
        (Kind::Bool, _) => b,
        (_, Kind::Bool) => a,
        (Kind::Float, Kind::Float) if a.bytes() == b.bytes() => DType::F32,
        (Kind::Float, Kind::Signed | Kind::Unsigned) => a,
        (Kind::Signed | Kind::Unsigned, Kind::Float) => b,
        (Kind::Signed, Kind::Unsigned) if a.bytes() <= b.bytes() => signed(b.bytes() * 2),
        (Kind::Unsigned, Kind::Signed) if b.bytes() <= a.bytes() => signed(a.bytes() * 2),
        _ if a.bytes() > b.bytes() => a,
        _ => b,
    }
}

/// What may stand beside a tensor in an expression: a tensor, or a host number. Beside floats a number takes their
/// type. Beside integers an integer takes their type, and is a mistake if it does not fit; beside truth values it is
/// `i64`. A fraction beside either is `f32`, whatever its value.
pub trait Operand: Sized {
    /// The operand as a tensor.
    fn operand(self, beside: &Tensor) -> Tensor;

    /// The operand as a bound of the tensor's values: an integer outside their type's range is the nearest in it.
    #[track_caller]
    fn bound(self, beside: &Tensor) -> Tensor {
        self.operand(beside)
    }

    /// The tensor and the operand, to be compared. An integer outside the range of the tensor's type is above, or
    /// below, all.
    #[track_caller]
    fn compared(self, beside: &Tensor) -> (Tensor, Tensor) {
        (beside.clone(), self.operand(beside))
    }
}

impl Operand for &Tensor {
    fn operand(self, _: &Tensor) -> Tensor {
        self.clone()
    }
}

impl Operand for Tensor {
    fn operand(self, _: &Tensor) -> Tensor {
        self
    }
}

impl Operand for f64 {
    #[track_caller]
    fn operand(self, beside: &Tensor) -> Tensor {
        let dtype = if beside.dtype().is_float() { beside.dtype() } else { DType::F32 };
        Tensor::full(dtype, &[], self)
    }
}

impl Operand for f32 {
    #[track_caller]
    fn operand(self, beside: &Tensor) -> Tensor {
        f64::from(self).operand(beside)
    }
}

macro_rules! int_operand {
    ($($t:ty),*) => { $(
        impl Operand for $t {
            #[track_caller]
            fn operand(self, beside: &Tensor) -> Tensor {
                integer(self as i128, beside.dtype())
            }

            #[track_caller]
            fn bound(self, beside: &Tensor) -> Tensor {
                let value = self as i128;
                match range(beside.dtype()) {
                    Some((least, greatest)) => integer(value.clamp(least, greatest), beside.dtype()),
                    None => integer(value, beside.dtype()),
                }
            }

            #[track_caller]
            fn compared(self, beside: &Tensor) -> (Tensor, Tensor) {
                let value = self as i128;
                match range(beside.dtype()) {
                    Some((least, greatest)) if beside.check().is_ok() && !(least..=greatest).contains(&value) => {
                        let side = if value > greatest { 1 } else { -1 };
                        (Tensor::full_int(DType::I32, &beside.dims(), 0), Tensor::full_int(DType::I32, &[], side))
                    }
                    _ => (beside.clone(), integer(value, beside.dtype())),
                }
            }
        }
    )* };
}
int_operand!(i32, i64, u32, u64, usize);

/// The least and the greatest of an integer type.
pub(super) fn range(dtype: DType) -> Option<(i128, i128)> {
    let bits = dtype.bits();
    match dtype.kind() {
        Kind::Signed => Some((-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)),
        Kind::Unsigned => Some((0, (1i128 << bits) - 1)),
        Kind::Bool | Kind::Float => None,
    }
}

/// A host integer beside elements of a type.
#[track_caller]
fn integer(value: i128, beside: DType) -> Tensor {
    let dtype = match beside.kind() {
        Kind::Bool => DType::I64,
        Kind::Float => return Tensor::full(beside, &[], value as f64),
        Kind::Signed | Kind::Unsigned => beside,
    };
    match range(dtype) {
        Some((least, greatest)) if !(least..=greatest).contains(&value) => fail(
            Loc::caller(),
            format!(
                "the number {value} beside elements of type {beside}: {dtype} goes from {least} to {greatest}; cast \
                 the tensor to a wider type first"
            ),
        ),
        // The bits of numbers above `i64::MAX`, which only `u64` has, are those of the wrapped one.
        _ => Tensor::full_int(dtype, &[], value as u64 as i64),
    }
}

/// A comparison of `u64` with signed integers, which have no common type: below 0 the signed one is the lesser.
#[track_caller]
pub(super) fn compare_signs(cmp: Cmp, x: &Tensor, y: &Tensor) -> Option<Tensor> {
    let (unsigned_first, signed) = match (x.dtype(), y.dtype()) {
        (DType::U64, other) if other.kind() == Kind::Signed => (true, y),
        (other, DType::U64) if other.kind() == Kind::Signed => (false, x),
        _ => return None,
    };
    let greater_holds = matches!(cmp, Cmp::Gt | Cmp::Ge | Cmp::Ne);
    let less_holds = matches!(cmp, Cmp::Lt | Cmp::Le | Cmp::Ne);
    let answer = if unsigned_first { greater_holds } else { less_holds };
    let both = match x.cast(DType::U64).pair(&y.cast(DType::U64)) {
        Ok((x, y)) => apply(Op::Compare(cmp), &[&x, &y]),
        Err(failed) => failed,
    };
    let answer = Tensor::full_int(DType::Bool, &[], i64::from(answer));
    Some(signed.lt(0i64).where_(answer, both))
}

/// An operand of [`Tensor::where_`]: a tensor or a host number.
#[derive(Debug)]
pub enum Choice {
    /// A tensor.
    Tensor(Tensor),
    /// A fraction: takes the type of a float tensor, and is `f32` beside others.
    Number(f64),
    /// An integer: takes the type of the other operand.
    Integer(i64),
}

impl Choice {
    #[track_caller]
    pub(super) fn pair(x: Choice, y: Choice) -> (Tensor, Tensor) {
        match (x, y) {
            (Choice::Tensor(x), y) => {
                let y = y.beside(&x);
                (x, y)
            }
            (x, Choice::Tensor(y)) => (x.beside(&y), y),
            (Choice::Integer(x), Choice::Integer(y)) => {
                (Tensor::full_int(DType::I64, &[], x), Tensor::full_int(DType::I64, &[], y))
            }
            (x, y) => {
                let float = Tensor::full(DType::F32, &[], 0.0);
                (x.beside(&float), y.beside(&float))
            }
        }
    }

    #[track_caller]
    fn beside(self, other: &Tensor) -> Tensor {
        match self {
            Choice::Tensor(t) => t,
            Choice::Number(v) => v.operand(other),
            Choice::Integer(v) => v.operand(other),
        }
    }
}

impl From<&Tensor> for Choice {
    fn from(t: &Tensor) -> Self {
        Choice::Tensor(t.clone())
    }
}

impl From<Tensor> for Choice {
    fn from(t: Tensor) -> Self {
        Choice::Tensor(t)
    }
}

impl From<f64> for Choice {
    fn from(v: f64) -> Self {
        Choice::Number(v)
    }
}

impl From<i32> for Choice {
    fn from(v: i32) -> Self {
        Choice::Integer(i64::from(v))
    }
}

impl From<i64> for Choice {
    fn from(v: i64) -> Self {
        Choice::Integer(v)
    }
}
