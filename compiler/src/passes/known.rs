//! Known values: an integer that can only be one number becomes a constant, also a kernel parameter that is specialised.
//!
//! **Before**: valid IR. **After**: the same meaning for launches that keep to the hints; every used integer or truth
//! value whose range ([`crate::analysis::range`]) is a single number is defined by `const`.

use super::rewrite::{Subst, emit_const};
use crate::analysis::{Ranges, UseCounts, int, ranges};
use crate::error::Loc;
use crate::tile::{Function, Op, OpId, Region, Value};

/// Runs the pass; true if it changed anything.
pub fn run(func: &mut Function) -> bool {
    let (ranges, uses) = (ranges(func), UseCounts::new(func));
    let mut pass = Known { ranges, uses, subst: Subst::new(func), func, changed: false };
    pass.region(pass.func.body);
    pass.changed
}

struct Known<'a> {
    func: &'a mut Function,
    ranges: Ranges,
    uses: UseCounts,
    subst: Subst,
    changed: bool,
}

impl Known<'_> {
    fn region(&mut self, region: Region) {
        let ops = std::mem::take(&mut self.func.regions[region].ops);
        let mut out = Vec::with_capacity(ops.len());
        for param in self.func.regions[region].params.clone() {
            self.define(param, Loc::UNKNOWN, &mut out);
        }
        for id in ops {
            self.subst.apply(self.func, id);
            for inner in self.func.ops[id].regions.clone() {
                self.region(inner);
            }
            out.push(id);
            let data = &self.func.ops[id];
            let loc = data.loc;
            if !data.op.is_pure() {
                for result in data.results.clone() {
                    self.define(result, loc, &mut out);
                }
            } else if !matches!(data.op, Op::Const(_))
                && let Some(value) = self.ranges.of(data.results[0]).and_then(|r| r.constant())
            {
                let constant = int::to_constant(self.func.ty(data.results[0]).dtype(), value);
                let data = &mut self.func.ops[id];
                data.op = Op::Const(constant);
                data.operands.clear();
                self.changed = true;
            }
        }
        self.func.regions[region].ops = out;
    }

    /// Puts a constant in the place of a used value that is no result of a pure op.
    fn define(&mut self, value: Value, loc: Loc, out: &mut Vec<OpId>) {
        if self.uses.of(value) > 0
            && let Some(known) = self.ranges.of(value).and_then(|r| r.constant())
        {
            let ty = self.func.ty(value).clone();
            let constant = int::to_constant(ty.dtype(), known);
            let constant = emit_const(self.func, out, ty, constant, loc);
            self.subst.set(value, constant);
            self.changed = true;
        }
    }
}
