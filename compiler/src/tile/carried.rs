//! The carried values of loops and the results of branches: where each stands, and how some of them are removed.

use super::function::{Function, OpId, Region, Value, ValueDef};
use super::ops::Op;
use std::collections::HashMap;

/// Where the carried values of an op with regions stand.
struct Slots {
    /// The first operand that is one; `None` for a branch, which takes none.
    operands: Option<usize>,
    /// The first parameter of its regions that is one.
    params: Option<usize>,
    /// The first region that ends with the next values.
    body: usize,
}

impl Slots {
    fn of(op: &Op) -> Self {
        match op {
            // The first operands and parameters of a `for` are not carried.
            Op::For => Slots { operands: Some(3), params: Some(1), body: 0 },
            // The condition of `while` ends in one operand of its own.
            Op::While => Slots { operands: Some(0), params: Some(0), body: 1 },
            _ => Slots { operands: None, params: None, body: 0 },
        }
    }
}

impl Function {
    /// Removes the carried values or results of `op` that `keep` does not say. Nothing may use them any more.
    pub fn keep_slots(&mut self, op: OpId, keep: &[bool]) {
        let slots = Slots::of(&self.ops[op].op);
        let regions = self.ops[op].regions.clone();
        let data = &mut self.ops[op];
        retain(&mut data.results, 0, keep);
        if let Some(at) = slots.operands {
            retain(&mut data.operands, at, keep);
        }
        for (i, result) in self.ops[op].results.clone().into_iter().enumerate() {
            self.values[result].def = ValueDef::Result { op, index: i as u32 };
        }
        for (i, &region) in regions.iter().enumerate() {
            if let Some(at) = slots.params {
                retain(&mut self.regions[region].params, at, keep);
                for (i, param) in self.regions[region].params.clone().into_iter().enumerate() {
                    self.values[param].def = ValueDef::Param { region, index: i as u32 };
                }
            }
            if i >= slots.body {
                let end = self.terminator(region);
                retain(&mut self.ops[end].operands, 0, keep);
            }
        }
    }

    /// Removes the carried values that every step of a loop leaves as they were, and the results of a branch that are the
    /// same on both sides; gives for each result of `op` what stands for it now. Nothing may use the results yet.
    pub fn drop_unchanged(&mut self, op: OpId) -> Vec<Value> {
        let slots = Slots::of(&self.ops[op].op);
        let data = &self.ops[op];
        let (mut stands, regions) = (data.results.clone(), data.regions.clone());
        let next: Vec<Vec<Value>> =
            regions[slots.body..].iter().map(|&r| self.ops[self.terminator(r)].operands.clone()).collect();
        let mut keep = vec![true; stands.len()];
        let mut instead = HashMap::new();
        for i in 0..stands.len() {
            let unchanged = match (slots.operands, slots.params) {
                (Some(operands), Some(params)) => {
                    let init = data.operands[operands + i];
                    let inside = |r: Region| self.regions[r].params[params + i];
                    let same = next[0][i] == init || next[0][i] == inside(regions[slots.body]);
                    if same {
                        instead.extend(regions.iter().map(|&r| (inside(r), init)));
                    }
                    same.then_some(init)
                }
                // Visible on both sides, so made before the branch.
                _ => (next[0][i] == next[1][i]).then_some(next[0][i]),
            };
            if let Some(value) = unchanged {
                (keep[i], stands[i]) = (false, value);
            }
        }
        if keep.contains(&false) {
            self.keep_slots(op, &keep);
            regions.iter().for_each(|&r| self.replace_in(r, &instead));
        }
        stands
    }

    fn replace_in(&mut self, region: Region, instead: &HashMap<Value, Value>) {
        if instead.is_empty() {
            return;
        }
        let mut ops = Vec::new();
        self.walk(region, &mut |op| ops.push(op));
        for op in ops {
            for operand in &mut self.ops[op].operands {
                *operand = instead.get(operand).copied().unwrap_or(*operand);
            }
        }
    }
}

/// Keeps the elements from `at` on that `keep` says.
fn retain(list: &mut Vec<Value>, at: usize, keep: &[bool]) {
    let mut i = 0;
    list.retain(|_| {
        i += 1;
        i <= at || keep[i - 1 - at]
    });
}
