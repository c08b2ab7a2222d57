//! Ranges of integers: the least and greatest value any element of a tile can have.
//!
//! **Lattice**: an interval `[lo, hi]` of exact numbers (see [`super::int`]); nothing known is the whole range of the
//! type; meeting two facts gives the interval that spans both. Floats and addresses have no range.
//!
//! **Transfer**: interval arithmetic on exact numbers; where the result does not fit the type the operation may wrap, and
//! nothing is known. `program_id` and `num_programs` are at least 0 (at least 1) and below 2^31; a known hint is exact.
//! The variable of a `for` lies between its bounds; carried values are widened to the limits of the type (or to 0).

use super::forward::{self, Analysis, Facts};
use super::int;
use crate::dtype::DType;
use crate::entity::Entity;
use crate::tile::{BinaryOp, Cmp, Elem, Function, Op, OpData, ReduceOp, UnaryOp, Value};

/// An interval of integers, both ends included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    /// The least value.
    pub lo: i128,
    /// The greatest value.
    pub hi: i128,
}

impl Range {
    /// One value.
    pub const fn exactly(value: i128) -> Self {
        Self { lo: value, hi: value }
    }

    /// Every value of an integer type or `bool`.
    pub fn full(dtype: DType) -> Self {
        let (lo, hi) = int::limits(dtype);
        Self { lo, hi }
    }

    /// The interval that spans both.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi) }
    }

    /// Do all values of the interval belong to the type?
    pub fn fits(self, dtype: DType) -> bool {
        let full = Self::full(dtype);
        full.lo <= self.lo && self.hi <= full.hi
    }

    /// The only value, if there is but one.
    pub fn constant(self) -> Option<i128> {
        (self.lo == self.hi).then_some(self.lo)
    }

    /// Is no value below 0?
    pub fn is_non_negative(self) -> bool {
        self.lo >= 0
    }

    /// The interval, or the whole type if it does not fit.
    fn or_full(self, dtype: DType) -> Self {
        if self.fits(dtype) { self } else { Self::full(dtype) }
    }

    /// The span of `f` at the corners of two intervals; exact for what is monotone in each operand.
    fn corners(x: Self, y: Self, f: impl Fn(i128, i128) -> Option<i128>) -> Option<Self> {
        let values = [f(x.lo, y.lo)?, f(x.lo, y.hi)?, f(x.hi, y.lo)?, f(x.hi, y.hi)?];
        let [first, rest @ ..] = values;
        Some(rest.into_iter().fold(Self::exactly(first), |r, v| r.union(Self::exactly(v))))
    }
}

/// The ranges of a function's values.
#[derive(Clone, PartialEq, Debug)]
pub struct Ranges(Vec<Option<Range>>);

impl Ranges {
    /// The range of a value; `None` for floats and addresses.
    pub fn of(&self, value: Value) -> Option<Range> {
        self.0[value.index()]
    }

    /// Is the value an integer, no element of which is ever negative?
    pub fn is_non_negative(&self, value: Value) -> bool {
        self.of(value).is_some_and(Range::is_non_negative)
    }
}

/// Finds the range of every integer value.
pub fn ranges(func: &Function) -> Ranges {
    Ranges(forward::run(&Rules, func))
}

struct Rules;

/// The type of the numbers a value holds, if they are integers or truth values.
fn int_type(func: &Function, value: Value) -> Option<DType> {
    match func.ty(value).elem {
        Elem::Scalar(d) if !d.is_float() => Some(d),
        _ => None,
    }
}

impl Analysis for Rules {
    type Fact = Option<Range>;

    fn unknown(&self, func: &Function, value: Value) -> Self::Fact {
        int_type(func, value).map(Range::full)
    }

    fn param(&self, func: &Function, index: usize, value: Value) -> Self::Fact {
        let dtype = int_type(func, value)?;
        let known = func.hints.get(index).and_then(|hint| hint.known);
        Some(known.map_or(Range::full(dtype), |v| Range::exactly(int::cast(dtype, v.into()))))
    }

    fn meet(&self, _: &Function, _: Value, a: &Self::Fact, b: &Self::Fact) -> Self::Fact {
        Some((*a)?.union((*b)?))
    }

    fn widen(&self, func: &Function, value: Value, old: &Self::Fact, new: Self::Fact) -> Self::Fact {
        let (full, old, new) = (Range::full(int_type(func, value)?), (*old)?, new?);
        // Counters go down to 0 more often than below it.
        let lo = if new.lo >= old.lo {
            old.lo
        } else if new.lo >= 0 {
            0
        } else {
            full.lo
        };
        Some(Range { lo, hi: if new.hi <= old.hi { old.hi } else { full.hi } })
    }

    fn induction(&self, func: &Function, op: &OpData, facts: &Facts<Self::Fact>) -> Self::Fact {
        let [lo, hi, step] = [0, 1, 2].map(|i| *facts.of(op.operands[i]));
        let (lo, hi, step) = (lo?, hi?, step?);
        let up = Range { lo: lo.lo, hi: (hi.hi - 1).max(lo.lo) };
        let down = Range { lo: (hi.lo + 1).min(lo.hi), hi: lo.hi };
        let range = match (step.lo >= 0, step.hi <= 0) {
            (true, _) => up,
            (_, true) => down,
            _ => up.union(down),
        };
        // Bounds at the limits of the type: a loop that is never entered has no range to speak of.
        Some(range.or_full(int_type(func, op.operands[0])?))
    }

    fn transfer(&self, func: &Function, op: &OpData, facts: &Facts<Self::Fact>) -> Self::Fact {
        let result = op.results[0];
        let dtype = int_type(func, result)?;
        let full = Range::full(dtype);
        let of = |i: usize| *facts.of(op.operands[i]);
        Some(match &op.op {
            Op::ProgramId { .. } => Range { lo: 0, hi: i128::from(i32::MAX) },
            Op::NumPrograms { .. } => Range { lo: 1, hi: i128::from(i32::MAX) },
            Op::Const(c) => Range::exactly(int::of_constant(dtype, *c)?),
            Op::Arange { start } => {
                let n = func.ty(result).shape.elements() as i128;
                Range { lo: (*start).into(), hi: i128::from(*start) + n - 1 }
            }
            Op::Unary(u) => unary(*u, dtype, of(0)?),
            Op::Binary(b) => binary(*b, dtype, of(0)?, of(1)?),
            Op::Compare(c) => of(0).zip(of(1)).map_or(full, |(x, y)| compare(*c, x, y)),
            Op::Select => match of(0)?.constant() {
                Some(0) => of(2)?,
                Some(_) => of(1)?,
                None => of(1)?.union(of(2)?),
            },
            Op::Cast => match of(0) {
                Some(x) if dtype == DType::Bool => compare(Cmp::Ne, x, Range::exactly(0)),
                Some(x) => x.or_full(dtype),
                None => full,
            },
            Op::Bitcast => of(0).map_or(full, |x| x.or_full(dtype)),
            Op::Broadcast | Op::Reshape | Op::Permute(_) => of(0)?,
            Op::Reduce { op: reduce, axis } => {
                let n = func.ty(op.operands[0]).shape.dims()[usize::from(*axis)] as i128;
                let x = of(0)?;
                match reduce {
                    ReduceOp::Sum => Range { lo: x.lo * n, hi: x.hi * n }.or_full(dtype),
                    ReduceOp::Min | ReduceOp::Max => x,
                    ReduceOp::And | ReduceOp::Or | ReduceOp::Xor if x.is_non_negative() => low_bits(x.hi),
                    _ => full,
                }
            }
            Op::ArgReduce { axis, .. } => {
                let n = func.ty(op.operands[0]).shape.dims()[usize::from(*axis)] as i128;
                Range { lo: 0, hi: n - 1 }
            }
            _ => full,
        })
    }
}

/// Every non-negative number with no more bits than `hi`.
fn low_bits(hi: i128) -> Range {
    let bits = 128 - hi.leading_zeros();
    Range { lo: 0, hi: (1i128 << bits) - 1 }
}

fn compare(op: Cmp, x: Range, y: Range) -> Range {
    let (always, never) = match op {
        Cmp::Lt => (x.hi < y.lo, x.lo >= y.hi),
        Cmp::Le => (x.hi <= y.lo, x.lo > y.hi),
        Cmp::Gt => (x.lo > y.hi, x.hi <= y.lo),
        Cmp::Ge => (x.lo >= y.hi, x.hi < y.lo),
        Cmp::Eq | Cmp::Ne => {
            let equal = x.constant().is_some() && x == y;
            let apart = x.hi < y.lo || y.hi < x.lo;
            if op == Cmp::Eq { (equal, apart) } else { (apart, equal) }
        }
    };
    Range { lo: always.into(), hi: (!never).into() }
}

fn unary(op: UnaryOp, dtype: DType, x: Range) -> Range {
    match op {
        UnaryOp::Neg => Range { lo: -x.hi, hi: -x.lo }.or_full(dtype),
        UnaryOp::Not => Range { lo: int::wrap(dtype, !x.hi), hi: int::wrap(dtype, !x.lo) },
        UnaryOp::Abs => {
            let hi = x.lo.abs().max(x.hi.abs());
            let lo = if x.lo <= 0 && x.hi >= 0 { 0 } else { x.lo.abs().min(x.hi.abs()) };
            Range { lo, hi }.or_full(dtype)
        }
        _ => Range::full(dtype),
    }
}

fn binary(op: BinaryOp, dtype: DType, x: Range, y: Range) -> Range {
    let full = Range::full(dtype);
    let corners = |f: fn(i128, i128) -> Option<i128>| Range::corners(x, y, f);
    let non_negative = x.is_non_negative() && y.is_non_negative();
    match op {
        BinaryOp::Add => Range { lo: x.lo + y.lo, hi: x.hi + y.hi }.or_full(dtype),
        BinaryOp::Sub => Range { lo: x.lo - y.hi, hi: x.hi - y.lo }.or_full(dtype),
        BinaryOp::Mul => corners(i128::checked_mul).map_or(full, |r| r.or_full(dtype)),
        BinaryOp::Min => Range { lo: x.lo.min(y.lo), hi: x.hi.min(y.hi) },
        BinaryOp::Max => Range { lo: x.lo.max(y.lo), hi: x.hi.max(y.hi) },
        // A zero divisor gives 0; for a divisor of one sign the quotient is monotone in each operand.
        BinaryOp::Div | BinaryOp::FloorDiv if y.lo > 0 || y.hi < 0 => {
            let f = if op == BinaryOp::Div {
                |a: i128, b: i128| a.checked_div(b)
            } else {
                |a, b| Some(int::floor_div(a, b))
            };
            corners(f).map_or(full, |r| r.or_full(dtype))
        }
        BinaryOp::Div | BinaryOp::FloorDiv if non_negative => Range { lo: 0, hi: x.hi },
        BinaryOp::Rem | BinaryOp::FloorMod if y.lo > 0 => {
            let below = y.hi - 1;
            if op == BinaryOp::FloorMod {
                let fits = x.lo >= 0 && x.hi < y.lo;
                return if fits { x } else { Range { lo: 0, hi: if x.lo >= 0 { x.hi.min(below) } else { below } } };
            }
            Range { lo: x.lo.max(-below).min(0), hi: x.hi.min(below).max(0) }
        }
        // A zero divisor gives the dividend back.
        BinaryOp::Rem | BinaryOp::FloorMod if non_negative => Range { lo: 0, hi: x.hi },
        BinaryOp::And if non_negative => Range { lo: 0, hi: x.hi.min(y.hi) },
        BinaryOp::And if x.is_non_negative() => Range { lo: 0, hi: x.hi },
        BinaryOp::And if y.is_non_negative() => Range { lo: 0, hi: y.hi },
        BinaryOp::Or if non_negative => Range { lo: x.lo.max(y.lo), hi: low_bits(x.hi.max(y.hi)).hi },
        BinaryOp::Xor if non_negative => low_bits(x.hi.max(y.hi)),
        BinaryOp::Shl | BinaryOp::Shr if y.lo >= 0 && y.hi < i128::from(dtype.bits()) => {
            let f = if op == BinaryOp::Shl {
                |a: i128, s: i128| a.checked_mul(1 << s)
            } else {
                |a: i128, s: i128| Some(a >> s)
            };
            corners(f).map_or(full, |r| r.or_full(dtype))
        }
        _ => full,
    }
}
