//! The engine of the forward analyses: facts flow from operands to results, and around loops to a fixpoint.
//!
//! The whole function is swept in order until nothing changes. A loop's carried value starts, optimistically, with the
//! fact of its initial value and is met with that of the value yielded; it only ever loses information. Sweeping the
//! whole function (instead of iterating each loop by itself) keeps the cost linear in the depth of the nest. After
//! [`WIDEN_AFTER`] sweeps a fact that still changes is widened; after [`GIVE_UP_AFTER`] nothing more is assumed of any
//! carried value. The facts are those of a sweep that changed nothing, so they are sound even where a transfer rule is
//! not monotone.

use crate::tile::{Function, Op, OpData, OpId, Region, Value};

const WIDEN_AFTER: usize = 2;
const GIVE_UP_AFTER: usize = 8;

/// The rules of one analysis.
pub(super) trait Analysis {
    /// What is known of a value.
    type Fact: Clone + PartialEq;

    /// Nothing known, beyond the type. Meeting it with anything must give it back.
    fn unknown(&self, func: &Function, value: Value) -> Self::Fact;
    /// What is known of flattened kernel parameter number `index`.
    fn param(&self, func: &Function, index: usize, value: Value) -> Self::Fact;
    /// What holds of `value` if it has one fact or the other.
    fn meet(&self, func: &Function, value: Value, a: &Self::Fact, b: &Self::Fact) -> Self::Fact;
    /// A fact no stronger than `new` in a chain that ends soon.
    fn widen(&self, func: &Function, value: Value, old: &Self::Fact, new: Self::Fact) -> Self::Fact;
    /// The fact of the only result of an op without regions.
    fn transfer(&self, func: &Function, op: &OpData, facts: &Facts<Self::Fact>) -> Self::Fact;
    /// The fact of the induction variable of a `for`.
    fn induction(&self, func: &Function, op: &OpData, facts: &Facts<Self::Fact>) -> Self::Fact;
}

/// The facts found so far.
pub(super) struct Facts<F>(Vec<Option<F>>);

impl<F> Facts<F> {
    /// The fact of a value.
    pub(super) fn of(&self, value: Value) -> &F {
        self.0[index(value)].as_ref().expect("a value is defined before it is used")
    }
}

fn index(value: Value) -> usize {
    crate::entity::Entity::index(value)
}

/// The facts of every value, by its index; "nothing known" for values that no reachable op defines.
pub(super) fn run<A: Analysis>(analysis: &A, func: &Function) -> Vec<A::Fact> {
    let mut engine = Engine { analysis, func, facts: Facts(vec![None; func.values.len()]), sweep: 0, changed: true };
    for (i, &param) in func.regions[func.body].params.iter().enumerate() {
        engine.facts.0[index(param)] = Some(analysis.param(func, i, param));
    }
    while engine.changed {
        engine.changed = false;
        engine.region(func.body);
        engine.sweep += 1;
    }
    let facts = engine.facts.0.into_iter().zip(func.values.keys());
    facts.map(|(fact, value)| fact.unwrap_or_else(|| analysis.unknown(func, value))).collect()
}

struct Engine<'a, A: Analysis> {
    analysis: &'a A,
    func: &'a Function,
    facts: Facts<A::Fact>,
    sweep: usize,
    changed: bool,
}

impl<A: Analysis> Engine<'_, A> {
    fn region(&mut self, region: Region) {
        let func = self.func;
        for &id in &func.regions[region].ops {
            self.op(id);
        }
    }

    fn op(&mut self, id: OpId) {
        let func = self.func;
        let data = &func.ops[id];
        match data.op {
            Op::For => {
                let body = data.regions[0];
                let params = &func.regions[body].params;
                self.set(params[0], self.analysis.induction(func, data, &self.facts));
                self.join_all(&params[1..], &data.operands[3..]);
                self.region(body);
                self.join_all(&params[1..], &func.ops[func.terminator(body)].operands);
                self.copy_all(&data.results, &params[1..]);
            }
            Op::While => {
                let (condition, body) = (data.regions[0], data.regions[1]);
                let params = &func.regions[condition].params;
                self.join_all(params, &data.operands);
                self.region(condition);
                self.copy_all(&func.regions[body].params, params);
                self.region(body);
                self.join_all(params, &func.ops[func.terminator(body)].operands);
                self.copy_all(&data.results, params);
            }
            Op::If => {
                self.region(data.regions[0]);
                self.region(data.regions[1]);
                let yields = [0, 1].map(|i| &func.ops[func.terminator(data.regions[i])].operands);
                for (i, &result) in data.results.iter().enumerate() {
                    let (a, b) = (self.facts.of(yields[0][i]), self.facts.of(yields[1][i]));
                    self.set(result, self.analysis.meet(func, result, a, b));
                }
            }
            _ => {
                if let Some(&result) = data.results.first() {
                    self.set(result, self.analysis.transfer(func, data, &self.facts));
                }
            }
        }
    }

    fn set(&mut self, value: Value, fact: A::Fact) {
        self.facts.0[index(value)] = Some(fact);
    }

    fn copy_all(&mut self, to: &[Value], from: &[Value]) {
        for (&to, &from) in to.iter().zip(from) {
            self.set(to, self.facts.of(from).clone());
        }
    }

    /// Meets each carried value with what flows into it.
    fn join_all(&mut self, carried: &[Value], incoming: &[Value]) {
        for (&value, &from) in carried.iter().zip(incoming) {
            let new = self.facts.of(from);
            let joined = match &self.facts.0[index(value)] {
                None => new.clone(),
                Some(old) => {
                    let mut met = self.analysis.meet(self.func, value, old, new);
                    if self.sweep >= GIVE_UP_AFTER {
                        met = self.analysis.unknown(self.func, value);
                    } else if met != *old && self.sweep >= WIDEN_AFTER {
                        met = self.analysis.widen(self.func, value, old, met);
                    }
                    if met == *old {
                        continue;
                    }
                    self.changed = true;
                    met
                }
            };
            self.set(value, joined);
        }
    }
}
