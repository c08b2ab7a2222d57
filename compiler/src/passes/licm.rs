//! Loop-invariant code: pure ops of a loop whose operands are defined outside of it move in front of it.
//!
//! **Before**: valid IR. **After**: the same meaning; directly in a loop (not in a branch inside it) no pure op has only
//! operands from outside. An op may then run though the loop is never entered, which pure ops allow. Loads stay: the loop
//! may store. What lies in a branch stays there: it may be there because it is seldom needed.

use super::rewrite::Walk;
use crate::analysis::Depths;
use crate::tile::{Function, Op, OpId, Region};

/// Runs the pass; true if it changed anything.
pub fn run(func: &mut Function) -> bool {
    let mut pass = Licm { depths: Depths::new(func), func, changed: false };
    pass.walk(pass.func.body);
    pass.changed
}

struct Licm<'a> {
    func: &'a mut Function,
    depths: Depths,
    changed: bool,
}

impl Walk for Licm<'_> {
    fn func(&mut self) -> &mut Function {
        self.func
    }

    // Inner loops first: what leaves them may leave this one, too.
    fn left(&mut self, id: OpId, inner: Region, outer: Region, out: &mut Vec<OpId>) {
        if matches!(self.func.ops[id].op, Op::For | Op::While) {
            self.hoist(inner, self.depths.of_region(outer), out);
        }
    }
}

impl Licm<'_> {
    /// Moves what can leave `inner` to the end of `out`, whose depth is `depth`.
    fn hoist(&mut self, inner: Region, depth: u32, out: &mut Vec<OpId>) {
        let Self { func, depths, changed } = self;
        let mut ops = std::mem::take(&mut func.regions[inner].ops);
        ops.retain(|&id| {
            let data = &func.ops[id];
            let invariant = data.op.is_pure() && data.operands.iter().all(|&v| depths.of(v) <= depth);
            if invariant {
                data.results.iter().for_each(|&v| depths.set(v, depth));
                out.push(id);
                *changed = true;
            }
            !invariant
        });
        func.regions[inner].ops = ops;
    }
}
