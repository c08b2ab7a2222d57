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
        if let Some(insts) = reordered(func, &lives, block, (most, aim)) {
            func.blocks[block].insts = insts;
        }
    }
}

/// The instructions of a block in a better order, if there is one.
fn reordered(func: &Function, lives: &Lives, block: Block, (most, aim): (usize, usize)) -> Option<Vec<InstId>> {
    let insts = &func.blocks[block].insts;
    let mut line = Line::new(func, insts);
    let mut found: Vec<(usize, usize, Vec<InstId>)> = Vec::new();
    // The last stretch first: what only it needs leaves those before it.
    let mut end = insts.len();
    while end > 0 {
        let begin = insts[..end].iter().rposition(|&i| !is_free(&func.insts[i].op)).map_or(0, |i| i + 1);
        let stretch: Vec<InstId> = (begin..end).filter(|&at| !line.moved[at]).map(|at| insts[at]).collect();
        if stretch.iter().filter(|&&i| is_store(&func.insts[i].op)).count() > 1 {
            let pulled = lives.pulled(func, &line, begin, &stretch);
            let part: Vec<InstId> = pulled.iter().map(|&at| insts[at]).chain(stretch.iter().copied()).collect();
            let number = lives.number[&stretch[0]];
            if let Some(order) = Stretch::new(func, lives, number, &part).order(most, aim) {
                pulled.into_iter().for_each(|at| line.moved[at] = true);
                found.push((begin, end, order.into_iter().map(|i| part[i]).collect()));
            }
        }
        end = begin.saturating_sub(1);
    }
    if found.is_empty() {
        return None;
    }
    let mut all = Vec::with_capacity(insts.len());
    let mut at = 0;
    for (begin, end, order) in found.into_iter().rev() {
        all.extend((at..begin).filter(|&at| !line.moved[at]).map(|at| insts[at]));
        all.extend(order);
        at = end;
    }
    all.extend((at..insts.len()).filter(|&at| !line.moved[at]).map(|at| insts[at]));
    Some(all)
}

/// The instructions of a block by their places.
struct Line<'a> {
    insts: &'a [InstId],
    /// Which instruction gives a value.
    maker: HashMap<Value, usize>,
    /// For each place, and the end: where what is after the last instruction with blocks before it begins.
    reach: Vec<usize>,
    /// What went to a later stretch.
    moved: Vec<bool>,
}

impl<'a> Line<'a> {
    fn new(func: &Function, insts: &'a [InstId]) -> Self {
        let (mut maker, mut reach) = (HashMap::new(), vec![0]);
        for (at, &inst) in insts.iter().enumerate() {
            let data = &func.insts[inst];
            maker.extend(data.results.iter().map(|&r| (r, at)));
            reach.push(if data.blocks.is_empty() { reach[at] } else { at + 1 });
        }
        Self { insts, maker, reach, moved: vec![false; insts.len()] }
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
    /// Registers of the values that are alive after the instruction of each number.
    alive: Vec<usize>,
    /// Where values are last used, where they are defined, and their registers, in this order.
    ends: Vec<(usize, usize, usize)>,
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
            alive: Vec::new(),
            ends: Vec::new(),
        };
        lives.block(func, func.body, &mut Vec::new());
        lives.count();
        let mut stored = HashSet::new();
        func.walk(func.body, &mut |i| {
            if is_store(&func.insts[i].op) {
                stored.extend(lives.class(func, i));
            }
        });
        Self { stored, ..lives }
    }

    /// Fills `alive` and `ends`.
    fn count(&mut self) {
        let each = self.def.iter().zip(&self.last).zip(&self.weights).map(|((&def, &last), &w)| (last, def, w));
        self.ends = each.filter(|&(last, def, w)| w > 0 && def < last).collect();
        self.ends.sort_unstable();
        let mut change = vec![0isize; self.number.len() + 2];
        for &(last, def, weight) in &self.ends {
            change[def] += weight as isize;
            change[last] -= weight as isize;
        }
        let sums = change.iter().scan(0isize, |alive, c| {
            *alive += c;
            Some(*alive as usize)
        });
        self.alive = sums.collect();
    }

    /// Takes in a block. `used` are the values that were used so far, in order.
    fn block(&mut self, func: &Function, block: Block, used: &mut Vec<Value>) {
        for p in &func.blocks[block].params {
            self.def[p.index()] = self.number.len();
        }
        for &inst in &func.blocks[block].insts {
            let (begin, first) = (self.number.len(), used.len());
            self.number.insert(inst, begin);
            let data = &func.insts[inst];
            for &inner in &data.blocks {
                self.block(func, inner, used);
            }
            let end = self.number.len();
            for o in &data.operands {
                self.last[o.index()] = self.last[o.index()].max(begin);
                self.uses[o.index()] += 1;
            }
            if matches!(data.op, Op::Loop) {
                // What a loop uses it uses in every round.
                for v in used[first..].iter().map(|v| v.index()) {
                    if self.def[v] < begin {
                        self.last[v] = self.last[v].max(end);
                    }
                }
                // What comes from outside is used by the loops around as well; each value counts once.
                let mut outer: Vec<Value> = used.drain(first..).filter(|v| self.def[v.index()] < begin).collect();
                outer.sort_unstable_by_key(|v| v.index());
                outer.dedup();
                used.extend(outer);
            }
            used.extend(&data.operands);
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

    /// The places of instructions before the stretch that begins at `begin` that only it needs and that may as well stand in it.
    fn pulled(&self, func: &Function, line: &Line<'_>, begin: usize, stretch: &[InstId]) -> Vec<usize> {
        let mut used: HashMap<Value, usize> = HashMap::new();
        let mut pulled: Vec<usize> = Vec::new();
        let mut todo: Vec<InstId> = stretch.to_vec();
        while let Some(inst) = todo.pop() {
            for &operand in &func.insts[inst].operands {
                let count = used.entry(operand).or_default();
                *count += 1;
                if *count != self.uses[operand.index()] {
                    continue;
                }
                let Some(&at) = line.maker.get(&operand) else { continue };
                let data = &func.insts[line.insts[at]];
                let here = |r: &Value| used.get(r).copied().unwrap_or(0) == self.uses[r.index()];
                let before = (line.reach[begin]..begin).contains(&at) && !line.moved[at];
                if before && data.results.iter().all(here) && self.may_wait(func, line.insts[at]) {
                    pulled.push(at);
                    todo.push(line.insts[at]);
                }
            }
        }
        pulled.sort_unstable();
        pulled
    }

    /// Does the instruction give the same on both sides of a barrier?
    fn may_wait(&self, func: &Function, inst: InstId) -> bool {
        let op = &func.insts[inst].op;
        // Memory that nobody stores to does not change.
        let constant = || {
            let class = self.class(func, inst);
            let stored = class.is_none_or(|c| c == Class::Unknown || self.stored.contains(&c));
            matches!(op, Op::GlobalLoad(_)) && !stored && !self.stored.contains(&Class::Unknown)
        };
        op.is_pure() || constant()
    }

    /// The registers of values that are alive throughout, from the instruction of number `begin` to that of number `end`.
    fn through(&self, begin: usize, end: usize) -> usize {
        let first = self.ends.partition_point(|&(last, ..)| last <= begin);
        let within = self.ends[first..].iter().take_while(|&&(last, ..)| last <= end);
        let ending = within.filter(|&&(_, def, _)| def <= begin).map(|&(.., weight)| weight);
        self.alive[begin] - ending.sum::<usize>()
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
        let mut accesses = Accesses::default();
        let mut counts: HashMap<Class, usize> = HashMap::new();
        let mut stores: Vec<(usize, usize)> = Vec::new();
        for (i, &inst) in insts.iter().enumerate() {
            let data = &func.insts[inst];
            after[i].extend(data.operands.iter().filter_map(|o| here.get(o).copied()));
            here.extend(data.results.iter().map(|&r| (r, i)));
            let Some(class) = lives.class(func, inst) else { continue };
            let store = is_store(&data.op);
            accesses.push(i, class, store, &mut after[i]);
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
        let through =
            lives.through(begin, end) - outside.keys().filter(|v| alive(v)).map(|&v| lives.weight(v)).sum::<usize>();
        Self { func, lives, insts, after, stores: stores.into_iter().map(|s| s.1).collect(), through, outside }
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
        let n = self.insts.len();
        let mut order = Order { stretch: self, done: vec![false; n], list: Vec::new(), seen: vec![usize::MAX; n] };
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

/// The accesses to memory so far, of which later ones come after those they meet: at least one of two that meet stores.
#[derive(Default)]
struct Accesses {
    /// Of each class: its loads, and its last store.
    of: Vec<(Class, Vec<usize>, Option<usize>)>,
    /// How many loads of the second class the last store of the first comes after: the next ones come after that store.
    taken: HashMap<(Class, Class), usize>,
}

impl Accesses {
    /// Notes an access, and tells what it comes after, but for what it comes after by way of that.
    fn push(&mut self, access: usize, class: Class, store: bool, after: &mut Vec<usize>) {
        if !self.of.iter().any(|(c, ..)| *c == class) {
            self.of.push((class, Vec::new(), None));
        }
        for (other, loads, last) in self.of.iter().filter(|(c, ..)| c.meets(class)) {
            after.extend(*last);
            if store {
                let taken = self.taken.entry((class, *other)).or_default();
                after.extend(&loads[*taken..]);
                *taken = loads.len();
            }
        }
        let (_, loads, last) = self.of.iter_mut().find(|(c, ..)| *c == class).expect("it was added");
        if store { *last = Some(access) } else { loads.push(access) }
    }
}

/// An order being made.
struct Order<'a> {
    stretch: &'a Stretch<'a>,
    done: Vec<bool>,
    list: Vec<usize>,
    /// For which instruction's loads each was looked at last.
    seen: Vec<usize>,
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
        let mut todo = vec![inst];
        let mut loads = Vec::new();
        while let Some(i) = todo.pop() {
            if self.done[i] || std::mem::replace(&mut self.seen[i], inst) == inst {
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
