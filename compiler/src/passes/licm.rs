//! Loop-invariant code: pure ops of a loop whose operands are defined outside of it move in front of it.
//!
//! **Before**: valid IR. **After**: the same meaning; directly in a loop (not in a branch inside it) no pure op has only
//! operands from outside. An op may then run though the loop is never entered, which pure ops allow. Loads stay: the loop
//! may store. What lies in a branch stays there: it may be there because it is seldom needed.

use crate::analysis::Depths;
use crate::tile::{Function, Op, OpId, Region};

/// Runs the pass; true if it changed anything.
pub fn run(func: &mut Function) -> bool {
    let mut pass = Licm { depths: Depths::new(func), func, changed: false };
    pass.region(pass.func.body);
    pass.changed
}

struct Licm<'a> {
    func: &'a mut Function,
    depths: Depths,
    changed: bool,
}

impl Licm<'_> {
    fn region(&mut self, region: Region) {
        let ops = std::mem::take(&mut self.func.regions[region].ops);
        let mut out = Vec::with_capacity(ops.len());
        for id in ops {
            // Inner loops first: what leaves them may leave this one, too.
            for inner in self.func.ops[id].regions.clone() {
                self.region(inner);
                if matches!(self.func.ops[id].op, Op::For | Op::While) {
                    self.hoist(inner, self.depths.of_region(region), &mut out);
                }
            }
            out.push(id);
        }
        self.func.regions[region].ops = out;
    }

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
