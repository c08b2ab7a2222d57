//! Division and remainder of integers by constants, by multiplication and shifts.
//!
//! **Before**: valid IR. **After**: the same meaning; no `div`, `rem`, `floor_div` or `floor_mod` of integers has a constant
//! divisor. All elements of a tile of divisors are equal, since it is one constant.
//!
//! - 8- and 16-bit operands are widened to `i32`, which holds all their values, and the result is cut back.
//! - Where the dividend is never negative ([`crate::analysis::range`]) the cheaper forms are used. Powers of two in the divisor
//!   are shifted out first, so that runs of equal quotients stay visible to [`crate::analysis::axis`].
//! - The multipliers are those of T. Granlund and P. L. Montgomery, "Division by Invariant Integers using Multiplication",
//!   1994: for `0 <= x < 2^n` and `m d = 2^(w+s) + e`, `floor(x / d) = floor(m x / 2^(w+s))` if `0 <= e 2^n <= 2^(w+s)`.

use super::rewrite::{Subst, emit, emit_const};
use crate::analysis::{Ranges, int, ranges};
use crate::dtype::DType;
use crate::entity::Entity;
use crate::error::Loc;
use crate::tile::{BinaryOp, Function, Op, OpId, Region, TileType, UnaryOp, Value};

/// Runs the pass; true if it changed anything.
pub fn run(func: &mut Function) -> bool {
    let mut pass =
        DivMod { ranges: ranges(func), values: func.values.len(), subst: Subst::new(func), func, changed: false };
    pass.region(pass.func.body);
    pass.changed
}

struct DivMod<'a> {
    func: &'a mut Function,
    ranges: Ranges,
    /// How many values there were when the ranges were found.
    values: usize,
    subst: Subst,
    changed: bool,
}

impl DivMod<'_> {
    fn region(&mut self, region: Region) {
        let ops = std::mem::take(&mut self.func.regions[region].ops);
        let mut out = Vec::with_capacity(ops.len());
        for id in ops {
            self.subst.apply(self.func, id);
            for inner in self.func.ops[id].regions.clone() {
                self.region(inner);
            }
            match self.op(id, &mut out) {
                Some(value) => {
                    self.subst.set(self.func.ops[id].results[0], value);
                    self.changed = true;
                }
                None => out.push(id),
            }
        }
        self.func.regions[region].ops = out;
    }

    /// The value that stands in for the result, if this is a division by a constant.
    fn op(&mut self, id: OpId, out: &mut Vec<OpId>) -> Option<Value> {
        let data = &self.func.ops[id];
        let Op::Binary(op @ (BinaryOp::Div | BinaryOp::Rem | BinaryOp::FloorDiv | BinaryOp::FloorMod)) = data.op else {
            return None;
        };
        let (x, y, loc) = (data.operands[0], data.operands[1], data.loc);
        let ty = self.func.ty(x).clone();
        let d = int::of_constant(ty.dtype(), self.func.const_of(y)?)?;
        let non_negative = if x.index() < self.values {
            self.ranges.is_non_negative(x)
        } else {
            ty.dtype().kind() == crate::dtype::Kind::Unsigned
        };
        let narrow = ty.dtype().bits() < 32;
        let dtype = if narrow { DType::I32 } else { ty.dtype() };
        let bits = ty.dtype().bits().min(dtype.bits() - u32::from(dtype.is_signed()));
        let mut math = Math { func: self.func, out, ty: ty.with_dtype(dtype), loc };
        let wide = if narrow { math.cast(x, &ty.with_dtype(dtype)) } else { x };
        let value = math.divide(op, wide, d, non_negative.then_some(bits));
        Some(if narrow { math.cast(value, &ty) } else { value })
    }
}

/// Appends arithmetic on tiles of one type.
struct Math<'a> {
    func: &'a mut Function,
    out: &'a mut Vec<OpId>,
    ty: TileType,
    loc: Loc,
}

impl Math<'_> {
    /// The quotient or remainder of `x` by `d`; `bits`: x is not negative and has no more than so many bits.
    fn divide(&mut self, op: BinaryOp, x: Value, d: i128, bits: Option<u32>) -> Value {
        let wants_quotient = matches!(op, BinaryOp::Div | BinaryOp::FloorDiv);
        let floors = matches!(op, BinaryOp::FloorDiv | BinaryOp::FloorMod);
        match d {
            0 if wants_quotient => return self.constant(0),
            0 => return x,
            1 if wants_quotient => return x,
            1 | -1 if !wants_quotient => return self.constant(0),
            -1 => return self.unary(UnaryOp::Neg, x),
            _ => {}
        }
        let power = d > 0 && d & (d - 1) == 0;
        if power && (floors || bits.is_some()) {
            return if wants_quotient {
                self.by(BinaryOp::Shr, x, d.trailing_zeros().into())
            } else {
                self.by(BinaryOp::And, x, d - 1)
            };
        }
        if let (Some(bits), true) = (bits, d > 0) {
            let q = self.quotient_non_negative(x, d, bits);
            return if wants_quotient { q } else { self.rest(x, q, d) };
        }
        let q = self.quotient_signed(x, d);
        if !floors {
            return if wants_quotient { q } else { self.rest(x, q, d) };
        }
        // Rounding down is one less where the remainder has not the sign of the divisor.
        let r = self.rest(x, q, d);
        let signed = if d > 0 { r } else { self.unary(UnaryOp::Neg, r) };
        let wrong = self.by(BinaryOp::Shr, signed, i128::from(self.width() - 1));
        if wants_quotient {
            self.binary(BinaryOp::Add, q, wrong)
        } else {
            let correction = self.by(BinaryOp::And, wrong, d);
            self.binary(BinaryOp::Add, r, correction)
        }
    }

    /// `x - q d`.
    fn rest(&mut self, x: Value, q: Value, d: i128) -> Value {
        let product = self.by(BinaryOp::Mul, q, d);
        self.binary(BinaryOp::Sub, x, product)
    }

    /// The quotient of a number of at most `bits` bits that is not negative by a positive one that is no power of two.
    fn quotient_non_negative(&mut self, x: Value, d: i128, bits: u32) -> Value {
        let twos = d.trailing_zeros();
        let x = if twos > 0 { self.by(BinaryOp::Shr, x, twos.into()) } else { x };
        let (d, bits, w) = (d >> twos, bits.saturating_sub(twos), self.width());
        if d == 1 {
            return x;
        }
        // The multiplier must be a number of the type.
        let greatest = int::limits(self.ty.dtype()).1 as u128;
        for s in 0..w {
            let power = 1u128 << (w + s);
            let m = power.div_ceil(d as u128);
            if m > greatest {
                break;
            }
            let error = m * d as u128 - power;
            if error <= power >> bits {
                let high = self.by(BinaryOp::MulHi, x, m as i128);
                return self.by(BinaryOp::Shr, high, s.into());
            }
        }
        if self.ty.dtype().is_signed() {
            return self.quotient_signed(x, d);
        }
        // The multiplier needs one bit more: m = 2^w + low. Halving the difference first keeps the sum in the type.
        let s = 128 - (d as u128 - 1).leading_zeros();
        let low = (((1u128 << s) - d as u128) << w) / d as u128 + 1;
        let high = self.by(BinaryOp::MulHi, x, low as i128);
        let difference = self.binary(BinaryOp::Sub, x, high);
        let half = self.by(BinaryOp::Shr, difference, 1);
        let sum = self.binary(BinaryOp::Add, half, high);
        self.by(BinaryOp::Shr, sum, i128::from(s - 1))
    }

    /// The truncated quotient of a signed number by any but 0, 1 and -1.
    fn quotient_signed(&mut self, x: Value, d: i128) -> Value {
        let (w, size) = (self.width(), d.unsigned_abs());
        let sign = self.by(BinaryOp::Shr, x, i128::from(w - 1));
        let q = if size.is_power_of_two() {
            // Adding 2^k - 1 to negative numbers turns rounding down into truncation.
            let bias = self.by(BinaryOp::And, sign, size as i128 - 1);
            let sum = self.binary(BinaryOp::Add, x, bias);
            self.by(BinaryOp::Shr, sum, size.trailing_zeros().into())
        } else {
            let multiplier = |s: u32| (1u128 << (w + s)) / size + 1;
            let fits = |s: &u32| multiplier(*s) * size - (1u128 << (w + s)) <= 1 << (s + 1);
            let s = (0..w - 1).find(fits).expect("2^(s+1) exceeds the divisor for some s below the width");
            let m = multiplier(s) as i128;
            let wrapped = int::wrap(self.ty.dtype(), m);
            let mut high = self.by(BinaryOp::MulHi, x, wrapped);
            if wrapped != m {
                // The multiplier was taken 2^w too small.
                high = self.binary(BinaryOp::Add, high, x);
            }
            let shifted = self.by(BinaryOp::Shr, high, s.into());
            self.binary(BinaryOp::Sub, shifted, sign)
        };
        if d < 0 { self.unary(UnaryOp::Neg, q) } else { q }
    }

    fn width(&self) -> u32 {
        self.ty.dtype().bits()
    }

    fn constant(&mut self, value: i128) -> Value {
        let constant = int::to_constant(self.ty.dtype(), value);
        emit_const(self.func, self.out, self.ty.clone(), constant, self.loc)
    }

    fn binary(&mut self, op: BinaryOp, x: Value, y: Value) -> Value {
        emit(self.func, self.out, Op::Binary(op), vec![x, y], self.ty.clone(), self.loc)
    }

    fn by(&mut self, op: BinaryOp, x: Value, constant: i128) -> Value {
        let shifts = matches!(op, BinaryOp::Shl | BinaryOp::Shr);
        if shifts && constant == 0 {
            return x;
        }
        let y = self.constant(constant);
        self.binary(op, x, y)
    }

    fn unary(&mut self, op: UnaryOp, x: Value) -> Value {
        emit(self.func, self.out, Op::Unary(op), vec![x], self.ty.clone(), self.loc)
    }

    fn cast(&mut self, x: Value, to: &TileType) -> Value {
        emit(self.func, self.out, Op::Cast, vec![x], to.clone(), self.loc)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::testing::Rng;
    use crate::tile::{Builder, ParamHint, UnaryOp};

    const OPS: [BinaryOp; 4] = [BinaryOp::Div, BinaryOp::Rem, BinaryOp::FloorDiv, BinaryOp::FloorMod];

    /// A kernel that divides its argument by `d` with each op, after the pass. `masked`: the greatest bit of the
    /// dividend is cleared first, so that it is known not to be negative.
    fn divider(dtype: DType, d: i128, masked: bool) -> Function {
        let mut b = Builder::new("divide");
        let x = b.param_scalar("x", dtype, ParamHint::default());
        let p = b.param_ptr("p", dtype, ParamHint::default());
        let divisor = b.const_i64(dtype, d as i64).unwrap();
        let mask = b.const_i64(dtype, int::limits(dtype).1 as i64).unwrap();
        let dividend = if masked { b.binary(BinaryOp::And, x, mask).unwrap() } else { x };
        for op in OPS {
            let value = b.binary(op, dividend, divisor).unwrap();
            b.store(p, value, None).unwrap();
        }
        let mut func = b.finish();
        assert!(run(&mut func), "divisions by a constant are rewritten");
        func.walk(func.body, &mut |op| {
            assert!(!matches!(func.ops[op].op, Op::Binary(op) if OPS.contains(&op)), "no division is left");
        });
        func
    }

    /// What the kernel stores, in order: straight-line integer code on exact numbers.
    fn stored(func: &Function, x: i128, env: &mut Vec<i128>) -> Vec<i128> {
        let mut out = Vec::with_capacity(4);
        env.resize(func.values.len(), 0);
        env[0] = x;
        for &op in &func.regions[func.body].ops {
            let data = &func.ops[op];
            let operand = |i: usize| env[data.operands[i].index()];
            let of = |i: usize| func.ty(data.operands[i]).dtype();
            let value = match &data.op {
                Op::Const(c) => int::of_constant(func.ty(data.results[0]).dtype(), *c).unwrap(),
                Op::Binary(b) => int::binary(*b, of(0), operand(0), operand(1)).unwrap(),
                Op::Unary(UnaryOp::Neg) => int::unary(UnaryOp::Neg, of(0), operand(0)).unwrap(),
                Op::Cast => int::cast(func.ty(data.results[0]).dtype(), operand(0)),
                Op::Store => {
                    out.push(operand(1));
                    continue;
                }
                Op::Yield => break,
                other => panic!("{other:?} is not expected"),
            };
            env[data.results[0].index()] = value;
        }
        out
    }

    fn check(dtype: DType, d: i128, dividends: impl Iterator<Item = i128> + Clone) {
        let mut env = Vec::new();
        for masked in [false, true] {
            let func = divider(dtype, d, masked);
            for x in dividends.clone() {
                let got = stored(&func, x, &mut env);
                let x = if masked { x & int::limits(dtype).1 } else { x };
                let expected = OPS.map(|op| int::binary(op, dtype, x, d).unwrap());
                assert_eq!(got, expected, "{OPS:?} of {x} by {d} in {dtype}, masked: {masked}");
            }
        }
    }

    #[test]
    fn every_8_bit_dividend_by_every_divisor() {
        for dtype in [DType::I8, DType::U8] {
            let (lo, hi) = int::limits(dtype);
            (lo..=hi).for_each(|d| check(dtype, d, lo..=hi));
        }
    }

    /// Quotients by multiplication are monotone on each side of 0, so it is enough to look where they change.
    #[test]
    fn sixteen_bits_by_every_divisor_wherever_the_quotient_changes() {
        for dtype in [DType::I16, DType::U16] {
            let (lo, hi) = int::limits(dtype);
            for d in lo..=hi {
                // For the least divisors that is everywhere: a few of those will do.
                let step = if d.abs() < 32 && d.abs() != 3 { 512 } else { d.abs() };
                let multiples = (lo / step..=hi / step).map(|k| k * step).chain([lo, hi]);
                check(dtype, d, multiples.flat_map(|x| [x - 1, x, x + 1]).filter(|x| (lo..=hi).contains(x)));
            }
        }
    }

    #[test]
    fn wide_types_at_edges_and_at_random() {
        let mut rng = Rng::new(7);
        for dtype in [DType::I32, DType::U32, DType::I64, DType::U64] {
            let (lo, hi) = int::limits(dtype);
            let mut divisors: Vec<i128> =
                (-20..=130).chain([641, 1000, 65_537, lo, lo + 1, hi, hi - 1, hi / 2, hi / 2 + 1]).collect();
            divisors.extend((0..400).map(|_| i128::from(rng.number())));
            for d in divisors {
                let d = int::wrap(dtype, d);
                let mut dividends = vec![0, 1, -1, 2, lo, lo + 1, hi, hi - 1, hi / 2, hi / 2 + 1];
                for _ in 0..40 {
                    let n = i128::from(rng.number());
                    // At and beside multiples the quotient changes.
                    let near = if d == 0 { n } else { int::wrap(dtype, n) / d * d };
                    dividends.extend([n, near, near - 1, near + 1]);
                }
                check(dtype, d, dividends.into_iter().map(|x| int::wrap(dtype, x)));
            }
        }
    }

    #[test]
    fn what_is_never_negative_takes_the_short_way() {
        let ops = |dtype, d, masked| {
            let func = divider(dtype, d, masked);
            func.regions[func.body].ops.iter().filter(|op| matches!(func.ops[**op].op, Op::Binary(_))).count()
        };
        // The mask, then one shift or mask for each of the four.
        assert_eq!(ops(DType::I32, 64, true), 5);
        assert_eq!(ops(DType::U32, 64, false), 4);
        assert!(ops(DType::I32, 7, true) < ops(DType::I32, 7, false));
    }

    /// Indices are often taken apart by division: what vector accesses need to know survives the rewriting.
    #[test]
    fn runs_of_quotients_and_remainders_stay_visible() {
        for (op, expected) in [(BinaryOp::Div, (1, 32)), (BinaryOp::Rem, (32, 1))] {
            let mut b = Builder::new("take_apart");
            let p = b.param_ptr("p", DType::I32, ParamHint::default());
            let (index, divisor) = (b.arange(0, 256).unwrap(), b.const_i64(DType::I32, 96).unwrap());
            let value = b.binary(op, index, divisor).unwrap();
            let places = b.ptr_add(p, index).unwrap();
            b.store(places, value, None).unwrap();
            let mut func = b.finish();
            crate::passes::optimize(&mut func).unwrap();
            let mut stored = None;
            func.walk(func.body, &mut |op| {
                if func.ops[op].op == Op::Store {
                    stored = Some(func.ops[op].operands[1]);
                }
            });
            let info = crate::analysis::axis_info(&func);
            let facts = info.of(stored.unwrap());
            assert_eq!((facts.contiguity[0], facts.constancy[0]), expected, "{op}: {func}");
        }
    }
}
