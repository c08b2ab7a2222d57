//! Dead code: ops whose results nothing needs are removed, and with them the carried values of loops and the results of
//! branches that only feed themselves.
//!
//! **Before**: valid IR. **After**: the same stores. What is left is needed by a store, or decides whether one is reached.
//! Loads whose value is not needed go, masked or not; so does a loop that stores nothing and whose results are not
//! needed, even a `while` that nothing proves to end.

use crate::entity::Entity;
use crate::tile::{Function, Op, OpId, Region, Value, ValueDef};

/// Runs the pass; true if it changed anything.
pub fn run(func: &mut Function) -> bool {
    let mut live = Liveness {
        ops: vec![false; func.ops.len()],
        values: vec![false; func.values.len()],
        parents: vec![None; func.regions.len()],
        work: Vec::new(),
        func,
    };
    live.find(live.func.body);
    while let Some(value) = live.work.pop() {
        live.needed(value);
    }
    let Liveness { ops, values, .. } = live;
    let mut sweep = Sweep { func, ops, values, changed: false };
    sweep.region(sweep.func.body);
    sweep.changed
}

struct Liveness<'a> {
    func: &'a Function,
    ops: Vec<bool>,
    values: Vec<bool>,
    /// The op that each region belongs to, and the region that one lies in.
    parents: Vec<Option<(OpId, Region)>>,
    /// Values found to be needed, whose definitions have not been looked at.
    work: Vec<Value>,
}

impl Liveness<'_> {
    /// Starts from the ops that write memory.
    fn find(&mut self, region: Region) {
        for &op in &self.func.regions[region].ops {
            for &inner in &self.func.ops[op].regions {
                self.parents[inner.index()] = Some((op, region));
                self.find(inner);
            }
            if self.func.ops[op].op.writes_memory() {
                self.op(op);
                self.reached(region);
            }
        }
    }

    /// Something in the region is needed, and so is whatever decides that it runs.
    fn reached(&mut self, region: Region) {
        let mut region = region;
        while let Some((parent, outer)) = self.parents[region.index()] {
            if self.ops[parent.index()] {
                return;
            }
            self.op(parent);
            region = outer;
        }
    }

    fn value(&mut self, value: Value) {
        if !self.values[value.index()] {
            self.values[value.index()] = true;
            self.work.push(value);
        }
    }

    /// The op runs: it needs its operands, except those that only feed carried values.
    fn op(&mut self, op: OpId) {
        if std::mem::replace(&mut self.ops[op.index()], true) {
            return;
        }
        let func = self.func;
        let data = &func.ops[op];
        match data.op {
            Op::For => data.operands[..3].iter().for_each(|&v| self.value(v)),
            Op::While => self.value(func.ops[func.terminator(data.regions[0])].operands[0]),
            _ => data.operands.iter().for_each(|&v| self.value(v)),
        }
    }

    fn needed(&mut self, value: Value) {
        match self.func.values[value].def {
            ValueDef::Result { op, index } => {
                self.op(op);
                self.slot(op, index as usize);
            }
            ValueDef::Param { region, index } => {
                let Some((parent, _)) = self.parents[region.index()] else { return };
                self.op(parent);
                match self.func.ops[parent].op {
                    Op::For if index == 0 => {}
                    Op::For => self.slot(parent, index as usize - 1),
                    _ => self.slot(parent, index as usize),
                }
            }
        }
    }

    /// Carried value or result number `i` of an op with regions is needed, and so is what flows into it.
    fn slot(&mut self, op: OpId, i: usize) {
        let func = self.func;
        let data = &func.ops[op];
        let yielded = |region: Region| func.ops[func.terminator(region)].operands[i];
        match data.op {
            Op::For => {
                self.value(data.results[i]);
                self.value(data.operands[3 + i]);
                self.value(yielded(data.regions[0]));
            }
            Op::While => {
                self.value(data.results[i]);
                self.value(data.operands[i]);
                self.value(yielded(data.regions[1]));
            }
            Op::If => {
                self.value(yielded(data.regions[0]));
                self.value(yielded(data.regions[1]));
            }
            _ => {}
        }
    }
}

struct Sweep<'a> {
    func: &'a mut Function,
    ops: Vec<bool>,
    values: Vec<bool>,
    changed: bool,
}

impl Sweep<'_> {
    fn region(&mut self, region: Region) {
        let mut ops = std::mem::take(&mut self.func.regions[region].ops);
        let before = ops.len();
        ops.retain(|&op| self.ops[op.index()] || self.func.ops[op].op.is_terminator());
        self.changed |= ops.len() != before;
        for &op in &ops {
            if !self.func.ops[op].regions.is_empty() {
                self.prune(op);
                for inner in self.func.ops[op].regions.clone() {
                    self.region(inner);
                }
            }
        }
        self.func.regions[region].ops = ops;
    }

    /// Removes the carried values and results that nothing needs.
    fn prune(&mut self, op: OpId) {
        let results = self.func.ops[op].results.clone();
        let keep: Vec<bool> = results.iter().map(|r| self.values[r.index()]).collect();
        if keep.iter().all(|k| *k) {
            return;
        }
        self.changed = true;
        self.func.keep_slots(op, &keep);
    }
}
