//! Common subexpressions: an op that repeats an earlier one is dropped.
//!
//! **Before**: valid IR. **After**: the same meaning; no two pure ops of equal kind, operands and result type where the
//! first is visible from the second. Loads are left alone: memory may have changed between them.

use super::rewrite::Subst;
use crate::tile::{BinaryOp, Function, Op, Region, TileType, Value};
use std::collections::HashMap;

type Key = (Op, Vec<Value>, TileType);

/// Runs the pass; true if it changed anything.
pub fn run(func: &mut Function) -> bool {
    let mut pass = Cse { subst: Subst::new(func), func, seen: HashMap::new(), changed: false };
    pass.region(pass.func.body);
    pass.changed
}

struct Cse<'a> {
    func: &'a mut Function,
    subst: Subst,
    seen: HashMap<Key, Value>,
    changed: bool,
}

/// Is `x op y` the same as `y op x`?
pub(super) fn is_commutative(op: &Op) -> bool {
    use BinaryOp as B;
    matches!(op, Op::Binary(B::Add | B::Mul | B::MulHi | B::And | B::Or | B::Xor | B::Min | B::Max | B::FMin | B::FMax))
}

impl Cse<'_> {
    fn region(&mut self, region: Region) {
        let mut ops = std::mem::take(&mut self.func.regions[region].ops);
        // What this region defines is not visible outside of it.
        let mut added = Vec::new();
        ops.retain(|&id| {
            self.subst.apply(self.func, id);
            for inner in self.func.ops[id].regions.clone() {
                self.region(inner);
            }
            let data = &self.func.ops[id];
            if !data.op.is_pure() {
                return true;
            }
            let result = data.results[0];
            let mut operands = data.operands.clone();
            if is_commutative(&data.op) {
                operands.sort_unstable();
            }
            let key = (data.op.clone(), operands, self.func.ty(result).clone());
            if let Some(&earlier) = self.seen.get(&key) {
                self.subst.set(result, earlier);
                self.changed = true;
                return false;
            }
            added.push(key.clone());
            self.seen.insert(key, result);
            true
        });
        for key in added {
            self.seen.remove(&key);
        }
        self.func.regions[region].ops = ops;
    }
}
