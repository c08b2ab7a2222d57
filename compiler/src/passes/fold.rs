//! Folding: what is known when the kernel is compiled is computed then.
//!
//! **Before**: valid IR. **After**: the same bits stored (NaNs have no particular bits); no elementwise op has only
//! constant operands; a constant operand of a commutative op is the second one; no branch on a constant, no loop without
//! or with a single iteration is left; values carried around a loop unchanged are used directly.
//!
//! - Elementwise ops are evaluated by the interpreter's own definitions ([`crate::interp::scalar`]).
//! - Identities are only those exact for every operand: `x + 0` of integers, but of floats only `x + -0.0` and `x - 0.0`
//!   (as `-0.0 + 0.0` is `0.0`); `x * 1`; division by a power of two is multiplication by its inverse.
//! - An elementwise op on repeated operands is done before they are repeated.
//! - `broadcast`, `reshape`, `permute` compose; a cast of a cast is one cast where the first keeps every value.

mod rules;

use super::rewrite::{Subst, emit_const};
use crate::dtype::DType;
use crate::error::Loc;
use crate::tile::{Constant, Function, Op, OpData, OpId, Region, Value};

/// Runs the pass; true if it changed anything.
pub fn run(func: &mut Function) -> bool {
    let mut fold = Fold { subst: Subst::new(func), func, changed: false };
    fold.region(fold.func.body);
    fold.changed
}

struct Fold<'a> {
    func: &'a mut Function,
    subst: Subst,
    changed: bool,
}

/// What to do with an op after a rule has looked at it.
enum Step {
    /// No rule applies.
    Keep,
    /// The op was changed; other rules may apply now.
    Again,
    /// Its result is this value; the op goes.
    Replace(Value),
    /// The op goes; it has no results.
    Remove,
}

/// How often the rules are applied to one op: a bound no sensible chain of rules reaches.
const MAX_STEPS: usize = 16;

impl Fold<'_> {
    fn region(&mut self, region: Region) {
        let ops = std::mem::take(&mut self.func.regions[region].ops);
        let mut out = Vec::with_capacity(ops.len());
        self.list(ops, &mut out);
        self.func.regions[region].ops = out;
    }

    fn list(&mut self, ops: Vec<OpId>, out: &mut Vec<OpId>) {
        for id in ops {
            self.subst.apply(self.func, id);
            match self.func.ops[id].op {
                Op::For => self.for_loop(id, out),
                Op::While => self.while_loop(id, out),
                Op::If => self.branch(id, out),
                _ => self.simple(id, out),
            }
        }
    }

    fn simple(&mut self, id: OpId, out: &mut Vec<OpId>) {
        for _ in 0..MAX_STEPS {
            match self.simplify(id, out) {
                Step::Keep => break,
                Step::Again => self.changed = true,
                Step::Replace(value) => return self.replace(self.func.ops[id].results[0], value),
                Step::Remove => {
                    self.changed = true;
                    return;
                }
            }
        }
        out.push(id);
    }

    fn replace(&mut self, from: Value, to: Value) {
        self.subst.set(from, to);
        self.changed = true;
    }

    fn replace_all(&mut self, from: &[Value], to: &[Value]) {
        for (&from, &to) in from.iter().zip(to) {
            self.replace(from, to);
        }
    }

    /// The operands of a region's terminator.
    fn yielded(&self, region: Region) -> Vec<Value> {
        self.func.ops[self.func.terminator(region)].operands.iter().map(|&v| self.subst.resolve(v)).collect()
    }

    /// Puts the ops of a region in place; gives what it yields.
    fn inline(&mut self, region: Region, out: &mut Vec<OpId>) -> Vec<Value> {
        let mut ops = std::mem::take(&mut self.func.regions[region].ops);
        let end = ops.pop().expect("a region ends in its terminator");
        self.list(ops, out);
        self.subst.apply(self.func, end);
        self.changed = true;
        self.func.ops[end].operands.clone()
    }

    fn int_const(&self, value: Value) -> Option<i128> {
        crate::analysis::int::of_constant(self.func.ty(value).dtype(), self.func.const_of(value)?)
    }

    fn for_loop(&mut self, id: OpId, out: &mut Vec<OpId>) {
        let OpData { operands, results, regions, .. } = self.func.ops[id].clone();
        let (body, inits) = (regions[0], &operands[3..]);
        let params = self.func.regions[body].params.clone();
        let [lo, hi, step] = [0, 1, 2].map(|i| self.int_const(operands[i]));
        let (lo, hi) = if operands[0] == operands[1] { (Some(0), Some(0)) } else { (lo, hi) };
        let enters = match (lo, hi, step) {
            (_, _, Some(0)) => Some(false),
            (Some(lo), Some(hi), Some(step)) => Some(if step > 0 { lo < hi } else { lo > hi }),
            (Some(lo), Some(hi), None) if lo == hi => Some(false),
            _ => None,
        };
        if enters == Some(false) {
            return self.replace_all(&results, inits);
        }
        if let (Some(lo), Some(hi), Some(step)) = (lo, hi, step)
            && (if step > 0 { lo + step >= hi } else { lo + step <= hi })
        {
            self.replace(params[0], operands[0]);
            self.replace_all(&params[1..], inits);
            let last = self.inline(body, out);
            return self.replace_all(&results, &last);
        }
        self.keep_invariants(&[&params[1..]], &results, inits, body);
        self.region(body);
        out.push(id);
    }

    fn while_loop(&mut self, id: OpId, out: &mut Vec<OpId>) {
        let OpData { operands, results, regions, .. } = self.func.ops[id].clone();
        let params = [0, 1].map(|i| self.func.regions[regions[i]].params.clone());
        self.keep_invariants(&[&params[0], &params[1]], &results, &operands, regions[1]);
        self.region(regions[0]);
        let go_on = self.func.ops[self.func.terminator(regions[0])].operands[0];
        if self.func.const_of(go_on).is_some_and(|c| c.0 == 0) {
            // The condition is evaluated once, for what it may store.
            self.replace_all(&params[0], &operands);
            self.inline(regions[0], out);
            return self.replace_all(&results, &operands);
        }
        self.region(regions[1]);
        out.push(id);
    }

    /// Uses the initial value of what a loop carries unchanged. `params` are the carried values in each region.
    fn keep_invariants(&mut self, params: &[&[Value]], results: &[Value], inits: &[Value], body: Region) {
        let next = self.yielded(body);
        for (i, &next) in next.iter().enumerate() {
            let unchanged = next == inits[i] || params.last().is_some_and(|p| p[i] == next);
            // One that is already replaced everywhere is left to `dce`.
            if unchanged && next != inits[i] {
                params.iter().for_each(|p| self.replace(p[i], inits[i]));
                self.replace(results[i], inits[i]);
            } else if unchanged {
                let used = params.iter().map(|p| p[i]).chain([results[i]]);
                used.for_each(|v| self.subst.set(v, inits[i]));
            }
        }
    }

    fn branch(&mut self, id: OpId, out: &mut Vec<OpId>) {
        let OpData { operands, results, regions, loc, .. } = self.func.ops[id].clone();
        if let Some(condition) = self.func.const_of(operands[0]) {
            let values = self.inline(regions[usize::from(condition.0 == 0)], out);
            return self.replace_all(&results, &values);
        }
        self.region(regions[0]);
        self.region(regions[1]);
        let (then, other) = (self.yielded(regions[0]), self.yielded(regions[1]));
        for (i, &result) in results.iter().enumerate() {
            if then[i] == other[i] {
                // Visible in both branches, so defined before them. The result may be replaced already in an earlier
                // run and wait for `dce`, so this alone is not called a change.
                self.subst.set(result, then[i]);
            } else if let (Some(a), Some(b)) = (self.func.const_of(then[i]), self.func.const_of(other[i]))
                && a == b
            {
                let value = self.constant(result, a, loc, out);
                let ends = [0, 1].map(|b| self.func.terminator(regions[b]));
                ends.iter().for_each(|&end| self.func.ops[end].operands[i] = value);
                self.replace(result, value);
            }
        }
        out.push(id);
    }

    /// A constant of the type of `like`.
    fn constant(&mut self, like: Value, value: Constant, loc: Loc, out: &mut Vec<OpId>) -> Value {
        let ty = self.func.ty(like).clone();
        emit_const(self.func, out, ty, value, loc)
    }

    fn data(&self, id: OpId) -> &OpData {
        &self.func.ops[id]
    }

    /// The op that defines `value`.
    fn def(&self, value: Value) -> Option<&OpData> {
        Some(&self.func.ops[self.func.def_op(value)?])
    }

    /// The operand of the unary-like op `op` that defines `value`.
    fn operand_of(&self, value: Value, op: &Op) -> Option<Value> {
        self.def(value).filter(|d| d.op == *op).map(|d| d.operands[0])
    }

    fn dtype(&self, value: Value) -> DType {
        self.func.ty(value).dtype()
    }

    fn rewrite(&mut self, id: OpId, op: Op, operands: Vec<Value>) -> Step {
        let data = &mut self.func.ops[id];
        data.op = op;
        data.operands = operands;
        Step::Again
    }

    fn become_const(&mut self, id: OpId, value: Constant) -> Step {
        self.rewrite(id, Op::Const(value), Vec::new())
    }
}
