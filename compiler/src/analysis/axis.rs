//! Contiguity, divisibility and constancy of tiles along each dimension: what vector accesses, masks and coalescing rest on.
//!
//! # Lattice
//! For a tile with extent `n` along dimension `d` there are, at every choice of the other coordinates, the aligned runs
//! `[0, r), [r, 2r), ..` along `d` for each power of two `r <= n`. The facts of a dimension are:
//! - **contiguity** `c`: in each aligned run of `c` elements each is the one before plus 1 (addresses: plus one element),
//!   *modulo 2 to the width of the type*;
//! - **divisibility** `D`: a power of two (at most [`MAX_DIVISIBILITY`]) that divides the first element of each of these
//!   runs; of addresses in bytes. With a contiguity of 1 it divides every element;
//! - **constancy** `k`: the elements of each aligned run of `k` are equal;
//! - **likely contiguity**: the contiguity if no index ever wraps. It is for choosing among correct layouts, never for
//!   deciding what is correct.
//!
//! Besides, the tile may be one known integer throughout. Nothing known is 1, 1, 1. The meet takes the lesser `c` and
//! `k`, and the divisibility that holds at multiples of that `c`.
//!
//! A scalar has one virtual dimension of extent 1: its divisibility is that of its value. Dimensions of extent 1 of
//! larger tiles likewise have contiguity 1, and a divisibility that holds for every element. Of floats only constancy is
//! known.
//!
//! # Transfer
//! **Whenever contiguity shrinks, divisibility is weakened with it**: the elements at multiples of `c' < c` are a
//! multiple of `D` plus a multiple of `c'`, so only `min(D, c')` divides them (`div_at`). Every rule goes through that.
//!
//! Sums, products and bit operations respect divisibility and contiguity modulo 2 to the width, so they need no care
//! about wrapping. What looks at the value as a number (a cast to a wider type, an offset of an address, a comparison, a
//! quotient) does: there only runs that do not straddle the wrap count. A run of `r` elements whose start is a multiple of
//! `r` never does, for `r` up to half the number of values of the type; and no run of a tile does that, by its range, leaves
//! out one end of the type. Both are used; nothing is assumed about overflow.
//!
//! Quotients and remainders by a positive multiple of `g`: `x = g m + j` with `0 <= j < g` gives `floor(x / (g q)) =
//! floor(m / q)`, the same for the whole run, and `x mod (g q) = g (m mod q) + j`, which is contiguous. Truncating division
//! agrees where x is not negative. In the same way `x < g q` is `m < q`.

use super::forward::{self, Analysis, Facts};
use super::int;
use super::range::{self, Ranges};
use crate::dtype::DType;
use crate::entity::Entity;
use crate::tile::{BinaryOp, Cmp, Elem, Function, Op, OpData, ReduceOp, Shape, TileType, UnaryOp, Value};
use std::fmt;

/// The greatest divisibility that is told apart: that of zero, too.
pub const MAX_DIVISIBILITY: u64 = 1 << 30;

/// What is known of one value. The vectors have one entry for each dimension, and one for a scalar.
#[derive(Clone, PartialEq, Debug)]
pub struct AxisFacts {
    /// Length of aligned runs of consecutive elements.
    pub contiguity: Vec<u32>,
    /// Power of two that divides the first element of each such run (addresses: in bytes).
    pub divisibility: Vec<u64>,
    /// Length of aligned runs of equal elements.
    pub constancy: Vec<u32>,
    /// Contiguity if no index wraps: a hint for layouts, not a proof.
    pub likely_contiguity: Vec<u32>,
    /// The integer that every element is (a `bool` is 0 or 1).
    pub constant: Option<i64>,
}

impl fmt::Display for AxisFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { contiguity, divisibility, constancy, likely_contiguity, constant } = self;
        write!(f, "contiguity {contiguity:?}, divisibility {divisibility:?}, constancy {constancy:?}")?;
        if likely_contiguity != contiguity {
            write!(f, ", likely contiguity {likely_contiguity:?}")?;
        }
        constant.map_or(Ok(()), |c| write!(f, ", constant {c}"))
    }
}

/// The facts of every value of a function.
#[derive(Clone, PartialEq, Debug)]
pub struct AxisInfo(Vec<AxisFacts>);

impl AxisInfo {
    /// The facts of a value.
    pub fn of(&self, value: Value) -> &AxisFacts {
        &self.0[value.index()]
    }
}

/// Analyses a function.
pub fn axis_info(func: &Function) -> AxisInfo {
    let rules = Rules { ranges: range::ranges(func) };
    AxisInfo(forward::run(&rules, func).into_iter().map(Fact::publish).collect())
}

/// The facts of one dimension.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Dim {
    contiguity: u32,
    divisibility: u64,
    constancy: u32,
    likely: u32,
}

impl Dim {
    const UNKNOWN: Dim = Dim { contiguity: 1, divisibility: 1, constancy: 1, likely: 1 };

    fn equal(run: u32) -> Dim {
        Dim { constancy: run, ..Dim::UNKNOWN }
    }

    /// What divides the elements at multiples of `run`; `unit` is what consecutive elements differ by.
    fn div_at(&self, run: u32, unit: u64) -> u64 {
        if run >= self.contiguity { self.divisibility } else { self.divisibility.min(u64::from(run) * unit) }
    }

    /// The same facts claimed of runs of at most `run` consecutive elements.
    fn cut(&self, run: u32, unit: u64) -> Dim {
        let contiguity = self.contiguity.min(run);
        Dim { contiguity, divisibility: self.div_at(contiguity, unit), ..*self }
    }

    /// The longest runs of consecutive integers that start at a multiple of their length; none straddles the wrap.
    fn aligned_run(&self, dtype: DType) -> u32 {
        let half = 1u64 << (dtype.bits() - 1);
        u64::from(self.contiguity).min(self.divisibility).min(half) as u32
    }
}

#[derive(Clone, PartialEq, Debug)]
struct Fact {
    dims: Vec<Dim>,
    constant: Option<i64>,
}

impl Fact {
    fn publish(self) -> AxisFacts {
        AxisFacts {
            contiguity: self.dims.iter().map(|d| d.contiguity).collect(),
            divisibility: self.dims.iter().map(|d| d.divisibility).collect(),
            constancy: self.dims.iter().map(|d| d.constancy).collect(),
            likely_contiguity: self.dims.iter().map(|d| d.likely).collect(),
            constant: self.constant,
        }
    }

    fn new(dims: Vec<Dim>) -> Self {
        Self { dims, constant: None }
    }

    fn unknown(ty: &TileType) -> Self {
        Self::new(extents(&ty.shape).map(|_| Dim { divisibility: unit(ty), ..Dim::UNKNOWN }).collect())
    }

    /// A tile all of whose elements are one integer.
    fn constant(ty: &TileType, value: i128) -> Self {
        let dims = extents(&ty.shape).map(|n| Dim { divisibility: pow2_divisor(value), ..Dim::equal(n) });
        Self { dims: dims.collect(), constant: i64::try_from(value).ok() }
    }

    /// What divides every element.
    fn all_div(&self, unit: u64) -> u64 {
        self.dims.iter().map(|d| d.div_at(1, unit)).max().unwrap_or(1)
    }

    /// Uses in every dimension what divides all elements.
    fn sharpened(mut self, unit: u64) -> Self {
        let all = self.all_div(unit);
        for dim in &mut self.dims {
            dim.divisibility = dim.divisibility.max(all);
            dim.likely = dim.likely.max(dim.contiguity);
        }
        self
    }
}

/// The extents of a shape, with the virtual one of a scalar.
fn extents(shape: &Shape) -> impl Iterator<Item = u32> {
    let scalar = (shape.rank() == 0).then_some(1);
    shape.dims().iter().map(|&n| n as u32).chain(scalar)
}

/// What consecutive elements differ by: 1, or for addresses the bytes of what is pointed to.
fn unit(ty: &TileType) -> u64 {
    match ty.elem {
        Elem::Ptr(d) => d.bytes() as u64,
        Elem::Scalar(_) => 1,
    }
}

/// The greatest power of two that divides a number, as far as it is told apart.
fn pow2_divisor(value: i128) -> u64 {
    if value == 0 { MAX_DIVISIBILITY } else { (1u64 << value.trailing_zeros().min(62)).min(MAX_DIVISIBILITY) }
}

struct Rules {
    ranges: Ranges,
}

impl Rules {
    /// Can no run of consecutive elements of this tile wrap? True if one end of the type is never reached.
    fn never_wraps(&self, func: &Function, value: Value) -> bool {
        let full = range::Range::full(func.ty(value).dtype());
        self.ranges.of(value).is_some_and(|r| r.lo > full.lo || r.hi < full.hi)
    }

    /// Runs of consecutive elements that are consecutive as numbers, not only modulo 2 to the width.
    fn number_run(&self, func: &Function, value: Value, dim: &Dim) -> u32 {
        if self.never_wraps(func, value) { dim.contiguity } else { dim.aligned_run(func.ty(value).dtype()) }
    }
}

impl Analysis for Rules {
    type Fact = Fact;

    fn unknown(&self, func: &Function, value: Value) -> Fact {
        Fact::unknown(func.ty(value))
    }

    fn param(&self, func: &Function, index: usize, value: Value) -> Fact {
        let ty = func.ty(value);
        let hint = func.hints.get(index).copied().unwrap_or_default();
        let mut fact = Fact::unknown(ty);
        // Only 0 is a multiple of 0; such a hint is taken to say nothing.
        let divisor = if hint.divisor == 0 { 1 } else { pow2_divisor(hint.divisor.into()) };
        if ty.elem.is_ptr() {
            fact.dims[0].divisibility = divisor.max(unit(ty));
        } else if ty.dtype().is_int() {
            if let Some(known) = hint.known {
                return Fact::constant(ty, int::wrap(ty.dtype(), known.into()));
            }
            fact.dims[0].divisibility = divisor;
        }
        fact
    }

    fn meet(&self, func: &Function, value: Value, a: &Fact, b: &Fact) -> Fact {
        let unit = unit(func.ty(value));
        let dims = a.dims.iter().zip(&b.dims).map(|(a, b)| {
            let contiguity = a.contiguity.min(b.contiguity);
            Dim {
                contiguity,
                divisibility: a.div_at(contiguity, unit).min(b.div_at(contiguity, unit)),
                constancy: a.constancy.min(b.constancy),
                likely: a.likely.min(b.likely),
            }
        });
        Fact { dims: dims.collect(), constant: a.constant.filter(|_| a.constant == b.constant) }
    }

    fn widen(&self, func: &Function, value: Value, old: &Fact, new: Fact) -> Fact {
        // Contiguity, constancy and the constant fall in few steps; only divisibility can creep down bit by bit.
        let mut wide = new;
        let least = unit(func.ty(value));
        for (dim, old) in wide.dims.iter_mut().zip(&old.dims) {
            if dim.divisibility != old.divisibility {
                dim.divisibility = least;
            }
        }
        wide
    }

    fn induction(&self, func: &Function, op: &OpData, facts: &Facts<Fact>) -> Fact {
        let [lo, step] = [0, 2].map(|i| facts.of(op.operands[i]).all_div(1));
        let mut fact = Fact::unknown(func.ty(op.operands[0]));
        fact.dims[0].divisibility = lo.min(step);
        fact
    }

    fn transfer(&self, func: &Function, op: &OpData, facts: &Facts<Fact>) -> Fact {
        let ty = func.ty(op.results[0]);
        if let Some(value) = self.ranges.of(op.results[0]).and_then(range::Range::constant) {
            return Fact::constant(ty, value);
        }
        let of = |i: usize| facts.of(op.operands[i]);
        let fact = match &op.op {
            Op::Const(_) => Fact::new(extents(&ty.shape).map(Dim::equal).collect()),
            Op::Arange { start } => {
                let n = ty.shape.elements() as u32;
                let divisibility = pow2_divisor((*start).into());
                Fact::new(vec![Dim { contiguity: n, divisibility, constancy: 1, likely: n }])
            }
            Op::Binary(b) if ty.dtype().is_int() => self.binary(func, *b, op, facts),
            Op::Unary(u) if ty.dtype().is_int() => self.unary(*u, op, facts),
            Op::Compare(c) => self.compare(func, *c, op, facts),
            Op::Select => match of(0).constant {
                Some(c) => return of(if c != 0 { 1 } else { 2 }).clone(),
                None => select(of(0), of(1), of(2), unit(ty)),
            },
            Op::Cast => self.cast(func, op, facts),
            Op::Bitcast if ty.dtype().is_int() && func.ty(op.operands[0]).dtype().is_int() => {
                Fact::new(of(0).dims.clone())
            }
            Op::PtrAdd => self.ptr_add(func, op, facts),
            Op::Broadcast => broadcast(of(0), &func.ty(op.operands[0]).shape, ty),
            Op::Reshape => reshape(of(0), &func.ty(op.operands[0]).shape, ty),
            Op::Permute(perm) => Fact::new(perm.iter().map(|&p| of(0).dims[usize::from(p)]).collect()),
            Op::Reduce { op: reduce, axis } => reduction(Some(*reduce), usize::from(*axis), of(0), ty),
            Op::ArgReduce { axis, .. } => reduction(None, usize::from(*axis), of(0), ty),
            Op::Unary(_) | Op::Binary(_) | Op::Fma | Op::Bitcast => equal_operands(op, facts),
            _ => Fact::unknown(ty),
        };
        fact.sharpened(unit(ty))
    }
}

/// Elementwise: where all operands are equal, so are the results.
fn equal_operands(op: &OpData, facts: &Facts<Fact>) -> Fact {
    let dims = (0..facts.of(op.operands[0]).dims.len())
        .map(|i| op.operands.iter().map(|&v| facts.of(v).dims[i].constancy).min().unwrap_or(1));
    Fact::new(dims.map(Dim::equal).collect())
}

fn select(condition: &Fact, x: &Fact, y: &Fact, unit: u64) -> Fact {
    let dims = condition.dims.iter().zip(x.dims.iter().zip(&y.dims)).map(|(m, (a, b))| {
        let contiguity = m.constancy.min(a.contiguity).min(b.contiguity);
        Dim {
            contiguity,
            divisibility: a.div_at(contiguity, unit).min(b.div_at(contiguity, unit)),
            constancy: m.constancy.min(a.constancy).min(b.constancy),
            likely: m.constancy.min(a.likely).min(b.likely),
        }
    });
    Fact::new(dims.collect())
}

fn reduction(op: Option<ReduceOp>, axis: usize, x: &Fact, ty: &TileType) -> Fact {
    let mut dims = x.dims.clone();
    let all = x.all_div(1);
    dims.remove(axis);
    if dims.is_empty() {
        dims.push(Dim::UNKNOWN);
    }
    // Sums of floats may be taken in another order at each coordinate; all else depends on the elements alone.
    let ordered = ty.dtype().is_float() && matches!(op, Some(ReduceOp::Sum | ReduceOp::Prod));
    let divisibility = match op {
        Some(ReduceOp::Sum | ReduceOp::Min | ReduceOp::Max | ReduceOp::And | ReduceOp::Or | ReduceOp::Xor)
            if ty.dtype().is_int() =>
        {
            all
        }
        _ => 1,
    };
    let facts = dims.iter().map(|d| Dim { divisibility, ..Dim::equal(if ordered { 1 } else { d.constancy }) });
    Fact::new(facts.collect())
}

fn broadcast(x: &Fact, from: &Shape, ty: &TileType) -> Fact {
    let all = x.all_div(unit(ty));
    let dims = extents(&ty.shape).enumerate().map(|(i, n)| {
        if from.rank() == 0 || from.dims()[i] as u32 != n {
            Dim { divisibility: all, ..Dim::equal(n) }
        } else {
            x.dims[i]
        }
    });
    Fact { dims: dims.collect(), constant: x.constant }
}

/// Matches groups of dimensions with equal products; each group is flattened, then split.
fn reshape(x: &Fact, from: &Shape, ty: &TileType) -> Fact {
    let unit = unit(ty);
    // Dimensions of extent 1 carry nothing but what divides every element.
    let unit_dim = |all: u64| Dim { divisibility: all, ..Dim::UNKNOWN };
    let all = x.all_div(unit);
    let mut dims: Vec<Dim> = extents(&ty.shape).map(|_| unit_dim(all)).collect();
    let source: Vec<(usize, u64)> = nontrivial(from);
    let target: Vec<(usize, u64)> = nontrivial(&ty.shape);
    let (mut s, mut t) = (0, 0);
    while s < source.len() && t < target.len() {
        let (mut s_end, mut t_end) = (s + 1, t + 1);
        let (mut s_size, mut t_size) = (source[s].1, target[t].1);
        while s_size != t_size {
            if s_size < t_size {
                s_size *= source[s_end].1;
                s_end += 1;
            } else {
                t_size *= target[t_end].1;
                t_end += 1;
            }
        }
        let flat = flatten(x, &source[s..s_end]);
        split(&flat, &target[t..t_end], &mut dims, unit);
        (s, t) = (s_end, t_end);
    }
    Fact { dims, constant: x.constant }
}

/// The dimensions whose extent is not 1, with their extents.
fn nontrivial(shape: &Shape) -> Vec<(usize, u64)> {
    shape.dims().iter().enumerate().filter(|(_, n)| **n > 1).map(|(i, n)| (i, *n as u64)).collect()
}

/// The facts along several adjacent dimensions taken as one.
fn flatten(x: &Fact, group: &[(usize, u64)]) -> Dim {
    let (&(inner, n), outer) = group.split_last().expect("a group has at least one dimension");
    let mut flat = x.dims[inner];
    let mut size = n;
    for &(d, n) in outer.iter().rev() {
        // Runs go on across rows only if whole rows are equal, and equal to one another.
        if u64::from(flat.constancy) < size {
            break;
        }
        flat.constancy *= x.dims[d].constancy;
        size *= n;
    }
    flat
}

/// Splits one dimension into the adjacent dimensions of `group`.
fn split(flat: &Dim, group: &[(usize, u64)], dims: &mut [Dim], unit: u64) {
    let mut stride = 1;
    for &(d, n) in group.iter().rev() {
        let n = n as u32;
        let constancy = (flat.constancy / stride).clamp(1, n);
        dims[d] = if stride == 1 {
            Dim { constancy, likely: flat.likely.min(n), ..flat.cut(n, unit) }
        } else {
            Dim { divisibility: flat.div_at(1, unit), ..Dim::equal(constancy) }
        };
        stride *= n;
    }
}

impl Rules {
    fn ptr_add(&self, func: &Function, op: &OpData, facts: &Facts<Fact>) -> Fact {
        let (p, offset) = (facts.of(op.operands[0]), facts.of(op.operands[1]));
        let bytes = unit(func.ty(op.operands[0]));
        let wide = func.ty(op.operands[1]).dtype().bits() == 64;
        let dims = p.dims.iter().zip(&offset.dims).map(|(a, b)| {
            // The offset is extended to 64 bits: its runs must be consecutive as numbers.
            let run = if wide { b.contiguity } else { self.number_run(func, op.operands[1], b) };
            let contiguity = a.contiguity.min(b.constancy).max(a.constancy.min(run));
            let moved = (b.div_at(contiguity, 1) * bytes).min(MAX_DIVISIBILITY);
            Dim {
                contiguity,
                divisibility: a.div_at(contiguity, bytes).min(moved),
                constancy: a.constancy.min(b.constancy),
                likely: a.likely.min(b.constancy).max(a.constancy.min(b.likely)),
            }
        });
        Fact::new(dims.collect())
    }

    fn cast(&self, func: &Function, op: &OpData, facts: &Facts<Fact>) -> Fact {
        let (from, to) = (func.ty(op.operands[0]).dtype(), func.ty(op.results[0]).dtype());
        if !from.is_int() || !to.is_int() {
            return equal_operands(op, facts);
        }
        let x = facts.of(op.operands[0]);
        let dims = x.dims.iter().map(|dim| {
            if to.bits() <= from.bits() { *dim } else { dim.cut(self.number_run(func, op.operands[0], dim), 1) }
        });
        Fact::new(dims.collect())
    }

    fn compare(&self, func: &Function, op: Cmp, data: &OpData, facts: &Facts<Fact>) -> Fact {
        let (vx, vy) = (data.operands[0], data.operands[1]);
        let dtype = func.ty(vx).dtype();
        let dims = facts.of(vx).dims.iter().zip(&facts.of(vy).dims).map(|(a, b)| {
            let mut run = a.constancy.min(b.constancy);
            if dtype.is_int() && !matches!(op, Cmp::Eq | Cmp::Ne) {
                // Both go up together: their difference stays.
                run = run.max(self.number_run(func, vx, a).min(self.number_run(func, vy, b)));
                // One goes up to or from a bound that is a multiple of the run.
                let steps = |moving: &Dim, bound: &Dim| {
                    let bound_div = bound.div_at(1, 1).min(u64::from(bound.constancy)) as u32;
                    moving.aligned_run(dtype).min(bound_div)
                };
                match op {
                    Cmp::Lt | Cmp::Ge => run = run.max(steps(a, b)),
                    _ => run = run.max(steps(b, a)),
                }
            }
            Dim::equal(run)
        });
        Fact::new(dims.collect())
    }

    fn unary(&self, op: UnaryOp, data: &OpData, facts: &Facts<Fact>) -> Fact {
        let x = facts.of(data.operands[0]);
        match op {
            UnaryOp::Abs if self.ranges.is_non_negative(data.operands[0]) => x.clone(),
            UnaryOp::Abs | UnaryOp::Neg => {
                let dims = x.dims.iter().map(|d| Dim { divisibility: d.div_at(1, 1), ..Dim::equal(d.constancy) });
                Fact::new(dims.collect())
            }
            _ => equal_operands(data, facts),
        }
    }

    fn binary(&self, func: &Function, op: BinaryOp, data: &OpData, facts: &Facts<Fact>) -> Fact {
        let (vx, vy) = (data.operands[0], data.operands[1]);
        let (x, y) = (facts.of(vx), facts.of(vy));
        let dtype = func.ty(vx).dtype();
        match (op, x.constant, y.constant) {
            (BinaryOp::Mul | BinaryOp::Div | BinaryOp::FloorDiv, _, Some(1)) => return x.clone(),
            (BinaryOp::Mul, Some(1), _) => return y.clone(),
            (BinaryOp::Shl | BinaryOp::Shr, _, Some(0)) => return x.clone(),
            _ => {}
        }
        // A quotient or remainder is that of floor division, by a divisor that is not negative.
        let floors = self.ranges.is_non_negative(vy)
            && (self.ranges.is_non_negative(vx) || matches!(op, BinaryOp::FloorDiv | BinaryOp::FloorMod));
        let dims = x.dims.iter().zip(&y.dims).map(|(a, b)| {
            let equal = Dim::equal(a.constancy.min(b.constancy));
            match op {
                BinaryOp::Add => sum(a, b),
                BinaryOp::Sub => {
                    let contiguity = a.contiguity.min(b.constancy);
                    Dim {
                        contiguity,
                        divisibility: a.div_at(contiguity, 1).min(b.div_at(contiguity, 1)),
                        constancy: equal.constancy.max(a.contiguity.min(b.contiguity)),
                        likely: a.likely.min(b.constancy),
                    }
                }
                BinaryOp::Mul => Dim { divisibility: (a.div_at(1, 1) * b.div_at(1, 1)).min(MAX_DIVISIBILITY), ..equal },
                BinaryOp::Div | BinaryOp::FloorDiv => quotient(a, b, y.constant, dtype, floors),
                BinaryOp::Rem | BinaryOp::FloorMod => remainder(a, b, dtype, floors),
                BinaryOp::And => and(a, b, x.constant, y.constant),
                BinaryOp::Or | BinaryOp::Xor => {
                    // Low bits that are 0 in one operand pass through from the other.
                    let run = |m: &Dim, fixed: &Dim| {
                        let low = fixed.div_at(1, 1).min(u64::from(fixed.constancy)) as u32;
                        m.contiguity.min(m.divisibility as u32).min(low)
                    };
                    let contiguity = run(a, b).max(run(b, a)).max(1);
                    let divisibility = a.div_at(contiguity, 1).min(b.div_at(contiguity, 1));
                    Dim { contiguity, divisibility, ..equal }
                }
                BinaryOp::Shl => {
                    let shift = y.constant.map_or(0, |s| s as u32 & (dtype.bits() - 1));
                    let divisibility = u128::from(a.div_at(1, 1)) << shift;
                    Dim { divisibility: divisibility.min(MAX_DIVISIBILITY.into()) as u64, ..equal }
                }
                BinaryOp::Shr => match y.constant.map(|s| s as u32 & (dtype.bits() - 1)) {
                    // A shift to the right is a floor division.
                    Some(shift) => {
                        let divisor = 1i64.checked_shl(shift).filter(|d| *d > 0);
                        let bound = Dim { divisibility: pow2_divisor(1i128 << shift), ..Dim::equal(u32::MAX) };
                        let q = quotient(a, &bound, divisor, dtype, true);
                        Dim { constancy: q.constancy.max(a.constancy), ..q }
                    }
                    None => equal,
                },
                BinaryOp::Min | BinaryOp::Max => {
                    // Where both go up together, one of them stays the lesser.
                    let run = self.number_run(func, vx, a).min(self.number_run(func, vy, b));
                    Dim {
                        contiguity: run,
                        divisibility: a.div_at(run, 1).min(b.div_at(run, 1)),
                        likely: a.likely.min(b.likely),
                        ..equal
                    }
                }
                BinaryOp::MulHi | BinaryOp::FMin | BinaryOp::FMax => equal,
            }
        });
        Fact::new(dims.collect())
    }
}

fn sum(a: &Dim, b: &Dim) -> Dim {
    let contiguity = a.contiguity.min(b.constancy).max(a.constancy.min(b.contiguity));
    Dim {
        contiguity,
        divisibility: a.div_at(contiguity, 1).min(b.div_at(contiguity, 1)),
        constancy: a.constancy.min(b.constancy),
        likely: a.likely.min(b.constancy).max(a.constancy.min(b.likely)),
    }
}

/// `a / b`; `floors` says that it is rounded down and `b` is not negative.
fn quotient(a: &Dim, b: &Dim, divisor: Option<i64>, dtype: DType, floors: bool) -> Dim {
    let mut dim = Dim::equal(a.constancy.min(b.constancy));
    if floors {
        let step = b.div_at(1, 1).min(u64::from(b.constancy)) as u32;
        dim.constancy = dim.constancy.max(a.aligned_run(dtype).min(step));
    }
    // Exact where a power of two divides both, whatever the rounding.
    if let Some(d) = divisor
        && d > 0
        && (d as u64).is_power_of_two()
    {
        dim.divisibility = (a.div_at(1, 1) / d as u64).max(1);
    }
    dim
}

/// `a % b`; `floors` says that it is that of floor division and `b` is not negative.
fn remainder(a: &Dim, b: &Dim, dtype: DType, floors: bool) -> Dim {
    let step = b.div_at(1, 1).min(u64::from(b.constancy)) as u32;
    let contiguity = if floors { a.aligned_run(dtype).min(step) } else { 1 };
    Dim {
        contiguity,
        // x - y * (x / y), whatever the rounding.
        divisibility: a.div_at(contiguity, 1).min(b.div_at(contiguity, 1)),
        constancy: a.constancy.min(b.constancy),
        likely: a.likely.min(step),
    }
}

fn and(a: &Dim, b: &Dim, x: Option<i64>, y: Option<i64>) -> Dim {
    let mut dim = Dim::equal(a.constancy.min(b.constancy));
    let mut one_side = |moving: &Dim, fixed: &Dim, mask: Option<i64>| {
        let aligned = u64::from(moving.contiguity).min(moving.divisibility);
        // Low bits that the mask clears do not matter ..
        let cleared = fixed.div_at(1, 1).min(u64::from(fixed.constancy));
        dim.constancy = dim.constancy.max(aligned.min(cleared) as u32);
        // .. and those that it keeps pass through.
        let kept = mask.map_or(1, |m| 1u64 << m.trailing_ones().min(30));
        dim.contiguity = dim.contiguity.max(aligned.min(kept) as u32);
    };
    one_side(a, b, y);
    one_side(b, a, x);
    dim.divisibility = a.div_at(dim.contiguity, 1).max(b.div_at(dim.contiguity, 1));
    dim
}
