//! The rules of folding for single ops.

use super::super::cse::is_commutative;
use super::super::rewrite::emit;
use super::{Fold, Step};
use crate::analysis::int;
use crate::dtype::{DType, Kind};
use crate::interp::scalar::eval_elementwise;
use crate::tile::{BinaryOp, Cmp, Constant, Op, OpId, ReduceOp, Shape, UnaryOp, Value};

impl Fold<'_> {
    /// Applies the first rule that fits.
    pub(super) fn simplify(&mut self, id: OpId, out: &mut Vec<OpId>) -> Step {
        let data = self.data(id);
        let operands = data.operands.clone();
        let Some(&result) = data.results.first() else {
            return if data.op == Op::Store { self.access(id, 2, out) } else { Step::Keep };
        };
        let op = data.op.clone();
        if op.is_elementwise() {
            if let Some(value) = self.evaluate(&op, &operands, result) {
                return self.become_const(id, value);
            }
            if let Some(step) = self.before_broadcast(id, &op, &operands, out) {
                return step;
            }
        }
        match &op {
            Op::Unary(u) => self.unary(id, *u, operands[0]),
            Op::Binary(b) => self.binary(id, *b, operands[0], operands[1], out),
            Op::Compare(c) => self.compare(id, *c, operands[0], operands[1]),
            Op::Select => self.select(id, operands[0], operands[1], operands[2]),
            Op::Cast => self.cast(id, operands[0], result),
            Op::Bitcast => match self.operand_of(operands[0], &Op::Bitcast) {
                Some(x) if self.func.ty(x) == self.func.ty(result) => Step::Replace(x),
                Some(x) => self.rewrite(id, Op::Bitcast, vec![x]),
                None => Step::Keep,
            },
            Op::PtrAdd if self.int_const(operands[1]) == Some(0) => Step::Replace(operands[0]),
            Op::Broadcast | Op::Reshape | Op::Permute(_) => self.shape(id, &op, operands[0], result),
            Op::Reduce { op, axis } => self.reduce(id, Some(*op), *axis, operands[0]),
            Op::ArgReduce { axis, .. } => self.reduce(id, None, *axis, operands[0]),
            Op::Load => self.access(id, 1, out),
            _ => Step::Keep,
        }
    }

    /// The value of an elementwise op on constants.
    fn evaluate(&self, op: &Op, operands: &[Value], result: Value) -> Option<Constant> {
        let bits: Vec<u64> = operands.iter().map(|&v| self.func.const_of(v).map(|c| c.0)).collect::<Option<_>>()?;
        let types: Vec<DType> = operands.iter().map(|&v| self.dtype(v)).collect();
        eval_elementwise(op, &types, &bits, self.dtype(result)).map(Constant)
    }

    /// An op on tiles repeated from one shape, and constants, is done in that shape and its result is repeated.
    fn before_broadcast(&mut self, id: OpId, op: &Op, operands: &[Value], out: &mut Vec<OpId>) -> Option<Step> {
        let mut shape: Option<Shape> = None;
        for &v in operands {
            if self.func.const_of(v).is_some() {
                continue;
            }
            let source = self.operand_of(v, &Op::Broadcast)?;
            let source = &self.func.ty(source).shape;
            // A scalar can be repeated to any shape.
            match &shape {
                Some(known) if known == source || source.rank() == 0 => {}
                Some(known) if known.rank() > 0 => return None,
                _ => shape = Some(source.clone()),
            }
        }
        let shape = shape?;
        let (result, loc) = (self.data(id).results[0], self.data(id).loc);
        let mut small = Vec::new();
        for &v in operands {
            let ty = self.func.ty(v).with_shape(shape.clone());
            small.push(match (self.func.const_of(v), self.operand_of(v, &Op::Broadcast)) {
                (Some(c), _) => emit(self.func, out, Op::Const(c), vec![], ty, loc),
                (_, Some(x)) if *self.func.ty(x) == ty => x,
                (_, Some(x)) => emit(self.func, out, Op::Broadcast, vec![x], ty, loc),
                (None, None) => return None,
            });
        }
        let ty = self.func.ty(result).with_shape(shape);
        let value = emit(self.func, out, op.clone(), small, ty, loc);
        // The new op is simplified like any other.
        let new = out.pop().expect("the op was just appended");
        self.simple(new, out);
        let value = self.subst.resolve(value);
        Some(self.rewrite(id, Op::Broadcast, vec![value]))
    }

    fn unary(&mut self, id: OpId, op: UnaryOp, x: Value) -> Step {
        // Of an unsigned type a negation wraps, and the result is what it is.
        if op == UnaryOp::Abs && self.dtype(x).kind() == Kind::Unsigned {
            return Step::Replace(x);
        }
        let Some(inner) = self.def(x) else { return Step::Keep };
        match (op, &inner.op) {
            (UnaryOp::Not | UnaryOp::Neg, Op::Unary(same)) if op == *same => Step::Replace(inner.operands[0]),
            (UnaryOp::Abs, Op::Unary(UnaryOp::Abs)) => Step::Replace(x),
            (UnaryOp::Abs, Op::Unary(UnaryOp::Neg)) => {
                let x = inner.operands[0];
                self.rewrite(id, Op::Unary(UnaryOp::Abs), vec![x])
            }
            (UnaryOp::Not, Op::Compare(cmp)) => {
                // With a NaN both `lt` and `ge` are false; only `eq` and `ne` are opposites of floats.
                let floats = self.dtype(inner.operands[0]).is_float();
                let opposite = match cmp {
                    Cmp::Eq => Cmp::Ne,
                    Cmp::Ne => Cmp::Eq,
                    _ if floats => return Step::Keep,
                    Cmp::Lt => Cmp::Ge,
                    Cmp::Ge => Cmp::Lt,
                    Cmp::Gt => Cmp::Le,
                    Cmp::Le => Cmp::Gt,
                };
                let operands = inner.operands.clone();
                self.rewrite(id, Op::Compare(opposite), operands)
            }
            _ => Step::Keep,
        }
    }

    fn binary(&mut self, id: OpId, op: BinaryOp, x: Value, y: Value, out: &mut Vec<OpId>) -> Step {
        let (cx, cy) = (self.func.const_of(x), self.func.const_of(y));
        if cx.is_some() && cy.is_none() && is_commutative(&Op::Binary(op)) {
            return self.rewrite(id, Op::Binary(op), vec![y, x]);
        }
        if x == y && matches!(op, BinaryOp::Min | BinaryOp::Max | BinaryOp::FMin | BinaryOp::FMax) {
            return Step::Replace(x);
        }
        if self.dtype(x).is_float() { self.binary_float(id, op, x, y, out) } else { self.binary_int(id, op, x, y, out) }
    }

    fn binary_int(&mut self, id: OpId, op: BinaryOp, x: Value, y: Value, out: &mut Vec<OpId>) -> Step {
        use BinaryOp as B;
        let (d, loc) = (self.dtype(x), self.data(id).loc);
        let (least, greatest) = int::limits(d);
        // All ones: -1, or the greatest of an unsigned type.
        let ones = int::wrap(d, -1);
        let zero = Constant(0);
        if x == y {
            match op {
                B::Sub | B::Xor | B::Rem | B::FloorMod => return self.become_const(id, zero),
                B::And | B::Or => return Step::Replace(x),
                _ => {}
            }
        }
        if self.int_const(x) == Some(0) {
            match op {
                B::Div | B::Rem | B::FloorDiv | B::FloorMod | B::Shl | B::Shr => return self.become_const(id, zero),
                B::Sub => return self.rewrite(id, Op::Unary(UnaryOp::Neg), vec![y]),
                _ => {}
            }
        }
        let Some(c) = self.int_const(y) else { return Step::Keep };
        match op {
            B::Add | B::Sub | B::Or | B::Xor if c == 0 => Step::Replace(x),
            B::Mul | B::Div | B::FloorDiv if c == 1 => Step::Replace(x),
            B::Mul | B::MulHi | B::And | B::Div | B::FloorDiv if c == 0 => self.become_const(id, zero),
            B::Rem | B::FloorMod if c == 0 => Step::Replace(x),
            B::Rem | B::FloorMod if c == 1 => self.become_const(id, zero),
            B::And if c == ones => Step::Replace(x),
            B::Or if c == ones => self.become_const(id, int::to_constant(d, ones)),
            B::Xor if c == ones => self.rewrite(id, Op::Unary(UnaryOp::Not), vec![x]),
            B::Shl | B::Shr if c & i128::from(d.bits() - 1) == 0 => Step::Replace(x),
            B::Min if c == greatest => Step::Replace(x),
            B::Max if c == least => Step::Replace(x),
            B::Min if c == least => self.become_const(id, int::to_constant(d, least)),
            B::Max if c == greatest => self.become_const(id, int::to_constant(d, greatest)),
            B::Mul if c == ones && d.is_signed() => self.rewrite(id, Op::Unary(UnaryOp::Neg), vec![x]),
            // Of signed types only: of unsigned ones the range of `x + (2^n - c)` would be lost.
            B::Sub if d.is_signed() => {
                let negated = self.constant(y, int::to_constant(d, -c), loc, out);
                self.rewrite(id, Op::Binary(B::Add), vec![x, negated])
            }
            B::Add | B::Mul => {
                let Some(inner) = self.def(x).filter(|i| i.op == Op::Binary(op)) else { return Step::Keep };
                let (base, second) = (inner.operands[0], inner.operands[1]);
                let Some(other) = self.int_const(second) else { return Step::Keep };
                let Some(both) = int::binary(op, d, c, other) else { return Step::Keep };
                let both = self.constant(y, int::to_constant(d, both), loc, out);
                self.rewrite(id, Op::Binary(op), vec![base, both])
            }
            _ => Step::Keep,
        }
    }

    fn binary_float(&mut self, id: OpId, op: BinaryOp, x: Value, y: Value, out: &mut Vec<OpId>) -> Step {
        use BinaryOp as B;
        let (d, loc) = (self.dtype(x), self.data(id).loc);
        let Some(c) = self.func.const_of(y) else { return Step::Keep };
        let is = |value: f64| c == Constant::from_f64(d, value);
        match op {
            // The sign of zero tells them apart: -0.0 + 0.0 is 0.0, but -0.0 + -0.0 is -0.0.
            B::Add if is(-0.0) => Step::Replace(x),
            B::Sub if is(0.0) => Step::Replace(x),
            B::Mul | B::Div if is(1.0) => Step::Replace(x),
            B::Mul if is(-1.0) => self.rewrite(id, Op::Unary(UnaryOp::Neg), vec![x]),
            B::Div => match exact_inverse(d, c) {
                Some(inverse) => {
                    let inverse = self.constant(y, inverse, loc, out);
                    self.rewrite(id, Op::Binary(B::Mul), vec![x, inverse])
                }
                None => Step::Keep,
            },
            _ => Step::Keep,
        }
    }

    fn compare(&mut self, id: OpId, op: Cmp, x: Value, y: Value) -> Step {
        if self.func.const_of(x).is_some() && self.func.const_of(y).is_none() {
            let swapped = match op {
                Cmp::Eq | Cmp::Ne => op,
                Cmp::Lt => Cmp::Gt,
                Cmp::Gt => Cmp::Lt,
                Cmp::Le => Cmp::Ge,
                Cmp::Ge => Cmp::Le,
            };
            return self.rewrite(id, Op::Compare(swapped), vec![y, x]);
        }
        if x == y && !self.dtype(x).is_float() {
            return self.become_const(id, Constant(int::compare(op, 0, 0).into()));
        }
        let Some(c) = self.int_const(y) else { return Step::Keep };
        let (least, greatest) = int::limits(self.dtype(x));
        match op {
            Cmp::Lt if c == least => self.become_const(id, Constant(0)),
            Cmp::Ge if c == least => self.become_const(id, Constant(1)),
            Cmp::Gt if c == greatest => self.become_const(id, Constant(0)),
            Cmp::Le if c == greatest => self.become_const(id, Constant(1)),
            _ => Step::Keep,
        }
    }

    fn select(&mut self, id: OpId, condition: Value, x: Value, y: Value) -> Step {
        if let Some(c) = self.func.const_of(condition) {
            return Step::Replace(if c.0 != 0 { x } else { y });
        }
        if x == y {
            return Step::Replace(x);
        }
        match self.operand_of(condition, &Op::Unary(UnaryOp::Not)) {
            Some(opposite) => self.rewrite(id, Op::Select, vec![opposite, y, x]),
            None => Step::Keep,
        }
    }

    fn cast(&mut self, id: OpId, x: Value, result: Value) -> Step {
        if self.func.ty(x) == self.func.ty(result) {
            return Step::Replace(x);
        }
        let Some(source) = self.operand_of(x, &Op::Cast) else { return Step::Keep };
        let (a, b, c) = (self.dtype(source), self.dtype(x), self.dtype(result));
        // Through a float a number too great for C saturates; directly it would wrap.
        let by_float = a.is_int() && b.is_float() && c.is_int();
        let value_kept = keeps_values(a, b) && (!by_float || a == c);
        let low_bits_kept = a.is_int() && b.is_int() && c.is_int() && c.bits() <= b.bits();
        if !value_kept && !low_bits_kept {
            Step::Keep
        } else if a == c {
            Step::Replace(source)
        } else {
            self.rewrite(id, Op::Cast, vec![source])
        }
    }

    /// `broadcast`, `reshape` and `permute` of constants and of one another.
    fn shape(&mut self, id: OpId, op: &Op, x: Value, result: Value) -> Step {
        if let Some(c) = self.func.const_of(x) {
            return self.become_const(id, c);
        }
        let (from, to) = (self.func.ty(x).clone(), self.func.ty(result).clone());
        let only_moves_ones = |perm: &[u8]| {
            let mut kept = perm.iter().copied().filter(|&p| from.shape.dims()[usize::from(p)] > 1);
            let mut last = None;
            kept.all(|p| last.replace(p).is_none_or(|before| before < p))
        };
        match op {
            Op::Permute(perm) if perm.iter().enumerate().all(|(i, &p)| i == usize::from(p)) => {
                return Step::Replace(x);
            }
            Op::Permute(perm) if only_moves_ones(perm) => return self.rewrite(id, Op::Reshape, vec![x]),
            Op::Permute(_) => {}
            _ if from == to => return Step::Replace(x),
            _ => {}
        }
        let Some(inner) = self.def(x) else { return Step::Keep };
        let source = inner.operands.first().copied();
        let Some(source) = source else { return Step::Keep };
        let from_scalar = self.func.ty(source).is_scalar();
        match (op, &inner.op) {
            // One number repeated is the same in any shape.
            (_, Op::Broadcast) if from_scalar && to.is_scalar() => Step::Replace(source),
            (_, Op::Broadcast) if from_scalar => self.rewrite(id, Op::Broadcast, vec![source]),
            (Op::Broadcast, Op::Reshape) if from_scalar => self.rewrite(id, Op::Broadcast, vec![source]),
            (Op::Broadcast, Op::Broadcast) => self.rewrite(id, Op::Broadcast, vec![source]),
            (Op::Reshape, Op::Reshape) => self.rewrite(id, Op::Reshape, vec![source]),
            (Op::Permute(outer), Op::Permute(inner)) => {
                let both = outer.iter().map(|&p| inner[usize::from(p)]).collect();
                self.rewrite(id, Op::Permute(both), vec![source])
            }
            _ => Step::Keep,
        }
    }

    /// Reductions (`None`: of the index) of one element, and of constants.
    fn reduce(&mut self, id: OpId, op: Option<ReduceOp>, axis: u8, x: Value) -> Step {
        let ty = self.func.ty(x);
        let (n, d) = (ty.shape.dims()[usize::from(axis)], ty.dtype());
        let constant = self.func.const_of(x);
        let Some(op) = op else {
            // Of equals the first wins; so it does where all are NaN.
            return if n == 1 || constant.is_some() { self.become_const(id, Constant(0)) } else { Step::Keep };
        };
        if n == 1 {
            return self.rewrite(id, Op::Reshape, vec![x]);
        }
        let Some(c) = constant else { return Step::Keep };
        match op {
            ReduceOp::Min | ReduceOp::Max | ReduceOp::And | ReduceOp::Or => self.become_const(id, c),
            ReduceOp::Sum => match int::of_constant(d, c) {
                Some(v) => self.become_const(id, int::to_constant(d, int::wrap(d, v * n as i128))),
                None => Step::Keep,
            },
            // The extent is even.
            ReduceOp::Xor => self.become_const(id, Constant(0)),
            ReduceOp::Prod => Step::Keep,
        }
    }

    /// Loads and stores whose mask (operand number `mask`) is known.
    fn access(&mut self, id: OpId, mask: usize, out: &mut Vec<OpId>) -> Step {
        let operands = self.data(id).operands.clone();
        let Some(known) = operands.get(mask).and_then(|&m| self.func.const_of(m)) else { return Step::Keep };
        if known.0 != 0 {
            self.func.ops[id].operands.truncate(mask);
            return Step::Again;
        }
        let Some(&result) = self.data(id).results.first() else { return Step::Remove };
        let loc = self.data(id).loc;
        match operands.get(mask + 1) {
            Some(&other) => Step::Replace(other),
            None => Step::Replace(self.constant(result, Constant(0), loc, out)),
        }
    }
}

/// `1 / c` if that is a normal number of the type and exact: `c` is a power of two.
fn exact_inverse(dtype: DType, c: Constant) -> Option<Constant> {
    let value = c.as_f64(dtype);
    let power_of_two = value.is_normal() && value.to_bits() & ((1 << 52) - 1) == 0;
    let least_normal = match dtype {
        DType::F16 => 2f64.powi(-14),
        DType::F64 => f64::MIN_POSITIVE,
        _ => f64::from(f32::MIN_POSITIVE),
    };
    let inverse = 1.0 / value;
    (power_of_two && inverse.is_finite() && inverse.abs() >= least_normal && value.abs() >= least_normal)
        .then(|| Constant::from_f64(dtype, inverse))
}

/// Does a cast from `from` to `to` keep every value?
fn keeps_values(from: DType, to: DType) -> bool {
    use DType as D;
    // Significant bits of floats.
    let precision = |d: DType| match d {
        D::F16 => 11,
        D::BF16 => 8,
        D::F32 => 24,
        _ => 53,
    };
    match (from, to) {
        (D::Bool, _) => true,
        (_, D::Bool) => from == to,
        _ if from.is_int() && to.is_int() => {
            let ((from_lo, from_hi), (to_lo, to_hi)) = (int::limits(from), int::limits(to));
            to_lo <= from_lo && from_hi <= to_hi
        }
        _ if from.is_int() => from.bits() - u32::from(from.is_signed()) <= precision(to),
        _ if to.is_int() => false,
        _ => from == to || to == D::F64 || (to == D::F32 && from != D::F64),
    }
}
