//! Orders straight-line code so that its values fit the registers.
//!
//! Lowering goes through a tile op by op, so that before the first element of a result is stored a part of everything it is
//! computed from is alive at once. Between barriers the order is free but for accesses to the same memory: where a stretch
//! of code with several stores keeps more alive than there are registers, it is put in the order of its stores, each after what it
//! alone needs, with the loads of the next few stores ahead of it. Assemblers can't: they do not know that loads and
//! stores touch different memory.

use super::function::{AbiTy, Block, Function, InstId, Value};
use super::ops::{IBin, Op, Ty};
use super::table::Effect;
use crate::entity::Entity;
use std::collections::{HashMap, HashSet};

/// How many stores ahead loads are started, the most that fits.
const AHEAD: [usize; 6] = [16, 8, 4, 2, 1, 0];

/// Puts stretches of code that keep more than `most` registers of 32 bits alive into an order that keeps `aim` of them, or as few
/// as it can. `classes[p]` is the alias class of the memory that parameter `p` points into: memory of different classes is disjoint.
pub fn fit_registers(func: &mut Function, classes: &[u32], most: usize, aim: usize) {
    let lives = Lives::of(func, classes);
    let blocks: Vec<Block> = func.blocks.keys().collect();
    for block in blocks {
        let mut insts = func.blocks[block].insts.clone();
        // The last stretch first: what only it needs leaves those before it.
        let mut end = insts.len();
        while end > 0 {
            let begin = insts[..end].iter().rposition(|&i| !is_free(&func.insts[i].op)).map_or(0, |i| i + 1);
            let mut next = begin.saturating_sub(1);
            if insts[begin..end].iter().filter(|&&i| is_store(&func.insts[i].op)).count() > 1 {
                let reach = insts[..begin].iter().rposition(|&i| !func.insts[i].blocks.is_empty()).map_or(0, |i| i + 1);
                let (stay, part) = lives.split(func, &insts[reach..begin], &insts[begin..end]);
                let number = lives.number[&insts[begin]];
                if let Some(order) = Stretch::new(func, &lives, number, &part).order(most, aim) {
                    next = reach + stay.len();
                    insts.splice(reach..end, stay.into_iter().chain(order.into_iter().map(|i| part[i])));
                }
            }
            end = next;
        }
        func.blocks[block].insts = insts;
    }
}

/// May the instruction move among its like, if operands come before their users and accesses to the same memory keep
/// their order?
fn is_free(op: &Op) -> bool {
    matches!(op.effect(), Effect::None | Effect::Read | Effect::Write)
}

fn is_store(op: &Op) -> bool {
    op.effect() == Effect::Write
}

/// What an integer is made from.
#[derive(Clone, Copy, PartialEq)]
enum Root {
    /// From numbers alone.
    Number,
    /// The address in this kernel parameter, and numbers.
    Param(u32),
    /// Not known.
    Unknown,
}

/// Memory that is disjoint from that of other classes; what is not known may be any global memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Class {
    Global(u32),
    Shared,
    Unknown,
}

impl Class {
    fn meets(self, other: Self) -> bool {
        let shared = (self == Self::Shared, other == Self::Shared);
        self == other || (shared == (false, false) && (self == Self::Unknown || other == Self::Unknown))
    }
}

/// Where values are defined and last used, by the number of an instruction in the order of the text, and what they are.
struct Lives {
    def: Vec<usize>,
    last: Vec<usize>,
    number: HashMap<InstId, usize>,
    roots: Vec<Root>,
    /// Instructions that use a value, once for each operand.
    uses: Vec<usize>,
    /// The alias classes of parameters, and those that anything is stored to.
    classes: Vec<u32>,
    stored: HashSet<Class>,
    /// Registers of 32 bits that a value takes: none for constants and parameters, which assemblers have at hand.
    weights: Vec<usize>,
}

impl Lives {
    fn of(func: &Function, classes: &[u32]) -> Self {
        let n = func.values.len();
        let weight = |ty| match ty {
            Ty::Pred => 0,
            Ty::I32 | Ty::F32 => 1,
            Ty::I64 | Ty::F64 => 2,
        };
        let weights = func.values.iter().map(|(_, v)| weight(v.ty)).collect();
        let mut lives = Self {
            def: vec![usize::MAX; n],
            last: vec![0; n],
            number: HashMap::new(),
            roots: vec![Root::Unknown; n],
            uses: vec![0; n],
            classes: classes.to_vec(),
            stored: HashSet::new(),
            weights,
        };
        lives.block(func, func.body);
        let mut stored = HashSet::new();
        func.walk(func.body, &mut |i| {
            if is_store(&func.insts[i].op) {
                stored.extend(lives.class(func, i));
            }
        });
        Self { stored, ..lives }
    }

    fn block(&mut self, func: &Function, block: Block) {
        for p in &func.blocks[block].params {
            self.def[p.index()] = self.number.len();
        }
        for &inst in &func.blocks[block].insts {
            let begin = self.number.len();
            self.number.insert(inst, begin);
            let data = &func.insts[inst];
            for &inner in &data.blocks {
                self.block(func, inner);
            }
            let end = self.number.len();
            for o in &data.operands {
                self.last[o.index()] = self.last[o.index()].max(begin);
                self.uses[o.index()] += 1;
            }
            if matches!(data.op, Op::Loop) {
                // What a loop uses it uses in every round.
                for v in 0..self.def.len() {
                    if self.def[v] < begin && self.last[v] > begin {
                        self.last[v] = end;
                    }
                }
            }
            for r in &data.results {
                self.def[r.index()] = end;
                self.roots[r.index()] = self.root(func, inst);
                if matches!(data.op, Op::Const(_) | Op::Param(_)) {
                    self.weights[r.index()] = 0;
                }
            }
        }
    }

    fn root(&self, func: &Function, inst: InstId) -> Root {
        let data = &func.insts[inst];
        let of = |i: usize| self.roots[data.operands[i].index()];
        match data.op {
            Op::Param(p) if func.params[p as usize].ty == AbiTy::Ptr => Root::Param(p),
            // Addresses have 64 bits, and no conversion gives one.
            Op::Param(_) | Op::Const(_) | Op::Conv(_) | Op::Special(_) => Root::Number,
            Op::IBin(IBin::Add) => match (of(0), of(1)) {
                (root, Root::Number) | (Root::Number, root) => root,
                _ => Root::Unknown,
            },
            Op::IBin(_) if (of(0), of(1)) == (Root::Number, Root::Number) => Root::Number,
            _ => Root::Unknown,
        }
    }

    fn weight(&self, value: Value) -> usize {
        self.weights[value.index()]
    }

    /// The memory that an instruction loads or stores, if it does.
    fn class(&self, func: &Function, inst: InstId) -> Option<Class> {
        let data = &func.insts[inst];
        match data.op {
            Op::SharedLoad(..) | Op::SharedStore(..) => Some(Class::Shared),
            Op::GlobalLoad(_) | Op::GlobalStore(_) => Some(match self.roots[data.operands[0].index()] {
                Root::Param(p) => self.classes.get(p as usize).map_or(Class::Unknown, |&c| Class::Global(c)),
                Root::Number | Root::Unknown => Class::Unknown,
            }),
            _ => None,
        }
    }

    /// Of the instructions `before` a stretch: those that stay, and, before those of the stretch, those that only it needs and
    /// that may as well stand there.
    fn split(&self, func: &Function, before: &[InstId], stretch: &[InstId]) -> (Vec<InstId>, Vec<InstId>) {
        let mut used: HashMap<Value, usize> = HashMap::new();
        for &o in stretch.iter().flat_map(|&i| &func.insts[i].operands) {
            *used.entry(o).or_default() += 1;
        }
        let (mut stay, mut part): (Vec<InstId>, Vec<InstId>) = (vec![], stretch.iter().rev().copied().collect());
        for &inst in before.iter().rev() {
            let data = &func.insts[inst];
            // Memory that nobody stores to is the same on both sides of a barrier.
            let constant = || {
                let class = self.class(func, inst);
                let stored = class.is_none_or(|c| c == Class::Unknown || self.stored.contains(&c));
                matches!(data.op, Op::GlobalLoad(_)) && !stored && !self.stored.contains(&Class::Unknown)
            };
            let here = |r: &Value| used.get(r).copied().unwrap_or(0) == self.uses[r.index()];
            if data.results.iter().all(here) && (data.op.is_pure() || constant()) {
                for &o in &data.operands {
                    *used.entry(o).or_default() += 1;
                }
                part.push(inst);
            } else {
                stay.push(inst);
            }
        }
        stay.reverse();
        part.reverse();
        (stay, part)
    }
}

/// A stretch of free instructions.
struct Stretch<'a> {
    func: &'a Function,
    lives: &'a Lives,
    insts: &'a [InstId],
    /// What each must come after.
    after: Vec<Vec<usize>>,
    /// The stores, those of different memory taking turns.
    stores: Vec<usize>,
    /// Values that are alive all the time: registers.
    through: usize,
    /// For each value used here: whether it comes from before, and whether it is used later.
    outside: HashMap<Value, (bool, bool)>,
}

impl<'a> Stretch<'a> {
    /// Of instructions of one block; `begin` is the number of the first that was not moved there from before.
    fn new(func: &'a Function, lives: &'a Lives, begin: usize, insts: &'a [InstId]) -> Self {
        let mut here = HashMap::new();
        let mut after = vec![Vec::new(); insts.len()];
        let mut accesses: Vec<(usize, Class, bool)> = Vec::new();
        let mut counts: HashMap<Class, usize> = HashMap::new();
        let mut stores: Vec<(usize, usize)> = Vec::new();
        for (i, &inst) in insts.iter().enumerate() {
            let data = &func.insts[inst];
            after[i].extend(data.operands.iter().filter_map(|o| here.get(o).copied()));
            here.extend(data.results.iter().map(|&r| (r, i)));
            let Some(class) = lives.class(func, inst) else { continue };
            let store = is_store(&data.op);
            let meet = accesses.iter().filter(|&&(_, other, wrote)| (wrote || store) && class.meets(other));
            after[i].extend(meet.map(|a| a.0));
            accesses.push((i, class, store));
            if store {
                let count = counts.entry(class).or_default();
                stores.push((*count, i));
                *count += 1;
            }
        }
        stores.sort_unstable();
        let end = insts.iter().map(|i| lives.number[i]).max().unwrap_or(begin);
        let mut outside = HashMap::new();
        for &inst in insts {
            let data = &func.insts[inst];
            for &v in data.operands.iter().chain(&data.results) {
                outside.insert(v, (!here.contains_key(&v), lives.last[v.index()] > end));
            }
        }
        let alive = |v: &Value| lives.def[v.index()] <= begin && lives.last[v.index()] > end;
        let through = func.values.keys().filter(alive).filter(|v| !outside.contains_key(v));
        Self {
            func,
            lives,
            insts,
            after,
            stores: stores.into_iter().map(|s| s.1).collect(),
            through: through.map(|v| lives.weight(v)).sum(),
            outside,
        }
    }

    /// A better order, if the present one does not fit.
    fn order(&self, most: usize, aim: usize) -> Option<Vec<usize>> {
        let now: Vec<usize> = (0..self.insts.len()).collect();
        let peak = self.peak(&now);
        if peak <= most {
            return None;
        }
        let mut best = (peak, now);
        for ahead in AHEAD {
            let order = self.by_stores(ahead);
            let peak = self.peak(&order);
            if peak < best.0 {
                best = (peak, order);
            }
            if best.0 <= aim {
                break;
            }
        }
        (best.0 < peak).then_some(best.1)
    }

    /// In the order of the stores, the loads of so many stores ahead.
    fn by_stores(&self, ahead: usize) -> Vec<usize> {
        let mut order = Order { stretch: self, done: vec![false; self.insts.len()], list: Vec::new() };
        let mut loaded = 0;
        for (k, &store) in self.stores.iter().enumerate() {
            while loaded < self.stores.len() && loaded <= k + ahead {
                order.loads_of(self.stores[loaded]);
                loaded += 1;
            }
            order.place(store);
        }
        (0..self.insts.len()).for_each(|i| order.place(i));
        order.list
    }

    /// The most registers alive at once in an order.
    fn peak(&self, order: &[usize]) -> usize {
        let mut uses: HashMap<Value, usize> = HashMap::new();
        for &inst in self.insts {
            for &o in &self.func.insts[inst].operands {
                *uses.entry(o).or_default() += 1;
            }
        }
        let weight = |v: Value| self.lives.weight(v);
        let before = self.outside.iter().filter(|(_, o)| o.0).map(|(&v, _)| weight(v));
        let mut alive = self.through + before.sum::<usize>();
        let mut most = alive;
        for &i in order {
            let data = &self.func.insts[self.insts[i]];
            let used = data.results.iter().filter(|r| uses.contains_key(r) || self.outside[r].1);
            alive += used.map(|&r| weight(r)).sum::<usize>();
            most = most.max(alive);
            for o in &data.operands {
                let left = uses.entry(*o).or_default();
                *left = left.saturating_sub(1);
                if *left == 0 && !self.outside[o].1 {
                    alive -= weight(*o);
                }
            }
        }
        most
    }
}

/// An order being made.
struct Order<'a> {
    stretch: &'a Stretch<'a>,
    done: Vec<bool>,
    list: Vec<usize>,
}

impl Order<'_> {
    /// Places an instruction after all that it must come after.
    fn place(&mut self, inst: usize) {
        let mut todo = vec![(inst, false)];
        while let Some((i, ready)) = todo.pop() {
            if self.done[i] {
                continue;
            }
            if ready {
                self.done[i] = true;
                self.list.push(i);
            } else {
                todo.push((i, true));
                todo.extend(self.stretch.after[i].iter().rev().map(|&j| (j, false)));
            }
        }
    }

    /// Places the loads that an instruction needs, directly or not.
    fn loads_of(&mut self, inst: usize) {
        let mut seen = vec![false; self.done.len()];
        let mut todo = vec![inst];
        let mut loads = Vec::new();
        while let Some(i) = todo.pop() {
            if self.done[i] || std::mem::replace(&mut seen[i], true) {
                continue;
            }
            let stretch = self.stretch;
            match stretch.func.insts[stretch.insts[i]].op {
                Op::GlobalLoad(_) | Op::SharedLoad(..) => loads.push(i),
                // Nothing is loaded for stores that only come before in the same memory.
                Op::GlobalStore(_) | Op::SharedStore(..) if i != inst => {}
                _ => todo.extend(&stretch.after[i]),
            }
        }
        loads.sort_unstable();
        loads.into_iter().for_each(|i| self.place(i));
    }
}

#[cfg(test)]
mod tests;
