//! Which PTX register each Thread IR value lives in.
//!
//! PTX registers are unlimited, so every value could have its own; but then each loop iteration would copy what the loop
//! carries, and ptxas serialises asynchronous tensor-core instructions whose accumulators are copied. Therefore values
//! joined by a copy (a loop's carried value, its initial and next values, and its result; an `if`'s results; the input
//! and output accumulators of `mma`) share a register whenever no two of them are alive at once.

use crate::entity::Entity;
use crate::thread::{Block, Conv, Function, InstId, MmaKind, Op, Ty, Value, WgmmaLeft};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The register of each value, and which instructions are printed otherwise than one by one.
#[derive(Debug)]
pub(super) struct Registers {
    /// Per value: the number of its register among those of its type.
    number: Vec<u32>,
    counts: [u32; 5],
    /// The bits of values that are constants.
    pub(super) constants: HashMap<Value, u64>,
    /// Constants that are read where PTX takes no immediate.
    pub(super) materialized: HashSet<Value>,
    /// `Pack16` of two conversions, printed as one: the conversion and its low and high operands.
    pub(super) packs: HashMap<InstId, (Conv, [Value; 2])>,
    /// Conversions only read by those.
    pub(super) skipped: HashSet<InstId>,
}

impl Registers {
    /// Assigns registers to all values of a function.
    pub(super) fn assign(func: &Function) -> Self {
        let mut order = vec![];
        func.walk(func.body, &mut |i| order.push(i));
        let constants: HashMap<_, _> = order
            .iter()
            .filter_map(|&i| match func.insts[i].op {
                Op::Const(bits) => Some((func.insts[i].results[0], bits)),
                _ => None,
            })
            .collect();
        let mut materialized = HashSet::new();
        for &i in &order {
            let inst = &func.insts[i];
            for v in inst.operands.iter().filter(|v| constants.contains_key(v)) {
                let needs_register = match inst.op {
                    Op::Mma(_) | Op::Wgmma { .. } | Op::WgmmaWait(_) => true,
                    Op::GlobalLoad(_) | Op::GlobalStore(_) | Op::Shuffle(_) => inst.operands[0] == *v,
                    Op::CpAsync { .. } => inst.operands[1] == *v,
                    _ => false,
                };
                if needs_register || func.ty(*v) == Ty::Pred {
                    materialized.insert(*v);
                }
            }
        }
        let (packs, skipped) = fuse_packs(func, &order);
        let classes = Classes::of(func, &order, &constants, &packs, &skipped);
        let mut registers = Self { number: vec![], counts: [0; 5], constants, materialized, packs, skipped };
        registers.number(func, classes);
        registers
    }

    fn number(&mut self, func: &Function, mut classes: Classes) {
        self.number = vec![u32::MAX; func.values.len()];
        for (v, data) in func.values.iter() {
            if self.constants.contains_key(&v) && !self.materialized.contains(&v) {
                continue;
            }
            let root = classes.root(v.index());
            if self.number[root] == u32::MAX {
                let count = &mut self.counts[data.ty as usize];
                self.number[root] = *count;
                *count += 1;
            }
            self.number[v.index()] = self.number[root];
        }
    }

    /// How many registers of a type there are.
    pub(super) fn count(&self, ty: Ty) -> u32 {
        self.counts[ty as usize]
    }

    /// The number of a value's register among those of its type.
    pub(super) fn of(&self, v: Value) -> u32 {
        self.number[v.index()]
    }
}

type Packs = HashMap<InstId, (Conv, [Value; 2])>;

/// Finds `Pack16` of two conversions to `f16` or to `bf16`: PTX has both in one instruction.
fn fuse_packs(func: &Function, order: &[InstId]) -> (Packs, HashSet<InstId>) {
    let mut conversions = HashMap::new();
    let mut uses: HashMap<Value, u32> = HashMap::new();
    for &i in order {
        let inst = &func.insts[i];
        inst.operands.iter().for_each(|&o| *uses.entry(o).or_default() += 1);
        if let Op::Conv(c @ (Conv::F32ToF16 | Conv::F32ToBf16)) = inst.op {
            conversions.insert(inst.results[0], (i, c, inst.operands[0]));
        }
    }
    let mut packs = HashMap::new();
    for &i in order {
        let inst = &func.insts[i];
        if inst.op != Op::Pack16 {
            continue;
        }
        let [low, high] = [inst.operands[0], inst.operands[1]];
        if let (Some(&(_, c0, x)), Some(&(_, c1, y))) = (conversions.get(&low), conversions.get(&high))
            && c0 == c1
        {
            packs.insert(i, (c0, [x, y]));
            for v in [low, high] {
                uses.entry(v).and_modify(|n| *n -= 1);
            }
        }
    }
    let skipped = conversions.iter().filter(|(v, _)| uses.get(*v) == Some(&0)).map(|(_, &(i, ..))| i).collect();
    (packs, skipped)
}

/// Sets of values that share a register, with the points of the program where the register is taken.
///
/// Instruction `i` (in printing order) reads at point `2 i` and writes at `2 i + 1`; one that is printed as several
/// instructions may write before its last read, and so writes at `2 i`.
struct Classes {
    parent: Vec<usize>,
    /// Of roots: disjoint sorted intervals of points, ends included.
    live: Vec<Vec<(u32, u32)>>,
}

impl Classes {
    fn of(
        func: &Function,
        order: &[InstId],
        constants: &HashMap<Value, u64>,
        packs: &Packs,
        skipped: &HashSet<InstId>,
    ) -> Self {
        let mut liveness = Liveness {
            func,
            packs,
            skipped,
            position: HashMap::new(),
            end: HashMap::new(),
            live: vec![vec![]; func.values.len()],
        };
        let mut next = 0;
        liveness.place(func.body, &mut next);
        liveness.block(func.body, &HashSet::new());
        let live = liveness.live.into_iter().map(normalize).collect();
        let mut classes = Self { parent: (0..func.values.len()).collect(), live };
        classes.join_copies(func, order, constants);
        classes
    }

    fn root(&mut self, mut v: usize) -> usize {
        while self.parent[v] != v {
            self.parent[v] = self.parent[self.parent[v]];
            v = self.parent[v];
        }
        v
    }

    /// Joins two values, unless they are alive at once and `force` is not set.
    fn join(&mut self, a: Value, b: Value, force: bool) {
        let (a, b) = (self.root(a.index()), self.root(b.index()));
        if a == b || (!force && overlap(&self.live[a], &self.live[b])) {
            return;
        }
        let mut both = std::mem::take(&mut self.live[b]);
        both.append(&mut self.live[a]);
        self.live[a] = normalize(both);
        self.parent[b] = a;
    }

    fn join_copies(&mut self, func: &Function, order: &[InstId], constants: &HashMap<Value, u64>) {
        // A loop's carried value in its condition, in its body and after it is one and the same.
        for &i in order.iter().filter(|&&i| func.insts[i].op == Op::Loop) {
            let inst = &func.insts[i];
            for (k, &r) in inst.results.iter().enumerate() {
                self.join(r, func.blocks[inst.blocks[0]].params[k], true);
                self.join(r, func.blocks[inst.blocks[1]].params[k], true);
            }
        }
        // What a product in flight reads has a register of its own: its value is not needed any more, but its register is.
        let left = |i: &InstId| match func.insts[*i].op {
            Op::Wgmma { a: WgmmaLeft::Registers, .. } => &func.insts[*i].operands[..WgmmaLeft::Registers.operands()],
            _ => &[],
        };
        let apart: HashSet<Value> = order.iter().flat_map(left).copied().collect();
        let mut join = |a: Value, b: Value| {
            if !constants.contains_key(&b) && !apart.contains(&a) && !apart.contains(&b) {
                self.join(a, b, false);
            }
        };
        for &i in order {
            let inst = &func.insts[i];
            let updated = match inst.op {
                Op::Mma(kind) => {
                    let (a, b) = mma_operands(kind);
                    &inst.operands[a + b..]
                }
                Op::Wgmma { a, .. } => &inst.operands[a.operands() + 1..],
                Op::WgmmaWait(_) => &inst.operands[..],
                _ => continue,
            };
            inst.results.iter().zip(updated).for_each(|(&d, &c)| join(d, c));
        }
        // Inner blocks first: what is copied most often matters most.
        for &i in order.iter().rev() {
            let inst = &func.insts[i];
            match inst.op {
                Op::Loop => {
                    let next = yielded(func, inst.blocks[1]);
                    inst.results.iter().zip(next).for_each(|(&r, &n)| join(r, n));
                    inst.results.iter().zip(&inst.operands).for_each(|(&r, &n)| join(r, n));
                }
                Op::If => {
                    for &b in &inst.blocks {
                        inst.results.iter().zip(yielded(func, b)).for_each(|(&r, &n)| join(r, n));
                    }
                }
                _ => {}
            }
        }
    }
}

/// How many registers of `a` and of `b` an `mma` takes.
pub(super) fn mma_operands(kind: MmaKind) -> (usize, usize) {
    match kind {
        MmaKind::F16 | MmaKind::Bf16 | MmaKind::Tf32 | MmaKind::S8 | MmaKind::U8 => (4, 2),
    }
}

/// The operands of a block's terminator.
pub(super) fn yielded(func: &Function, block: Block) -> &[Value] {
    func.blocks[block].insts.last().map_or(&[], |&i| &func.insts[i].operands)
}

fn normalize(mut intervals: Vec<(u32, u32)>) -> Vec<(u32, u32)> {
    intervals.sort_unstable();
    let mut merged: Vec<(u32, u32)> = Vec::with_capacity(intervals.len());
    for (start, end) in intervals {
        match merged.last_mut() {
            Some(last) if start <= last.1 + 1 => last.1 = last.1.max(end),
            _ => merged.push((start, end)),
        }
    }
    merged
}

fn overlap(a: &[(u32, u32)], b: &[(u32, u32)]) -> bool {
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        if a[i].1 < b[j].0 {
            i += 1;
        } else if b[j].1 < a[i].0 {
            j += 1;
        } else {
            return true;
        }
    }
    false
}

struct Liveness<'a> {
    func: &'a Function,
    packs: &'a Packs,
    skipped: &'a HashSet<InstId>,
    /// Of instructions, in printing order; an `If` or `Loop` counts as two, before and after its blocks.
    position: HashMap<InstId, u32>,
    end: HashMap<InstId, u32>,
    live: Vec<Vec<(u32, u32)>>,
}

impl Liveness<'_> {
    fn place(&mut self, block: Block, next: &mut u32) {
        for &i in &self.func.blocks[block].insts {
            *next += 1;
            self.position.insert(i, *next);
            for &b in &self.func.insts[i].blocks {
                self.place(b, next);
            }
            if !self.func.insts[i].blocks.is_empty() {
                *next += 1;
                self.end.insert(i, *next);
            }
        }
    }

    fn first(&self, block: Block) -> u32 {
        self.func.blocks[block].insts.first().map_or(0, |i| 2 * self.position[i])
    }

    fn last(&self, block: Block) -> u32 {
        self.func.blocks[block].insts.last().map_or(0, |i| 2 * self.position[i])
    }

    fn take(&mut self, v: Value, from: u32, to: u32) {
        self.live[v.index()].push((from, to.max(from)));
    }

    /// Notes where values are alive in a block after which `after` are; gives those alive before it.
    fn block(&mut self, block: Block, after: &HashSet<Value>) -> HashSet<Value> {
        // A sorted map, so that the result does not depend on hashing.
        let mut alive: BTreeMap<Value, u32> = after.iter().map(|&v| (v, self.last(block) + 1)).collect();
        for &i in self.func.blocks[block].insts.iter().rev() {
            if self.skipped.contains(&i) {
                continue;
            }
            let inst = &self.func.insts[i];
            let at = 2 * self.position[&i];
            match inst.op {
                Op::If => {
                    let end = 2 * self.end[&i];
                    for &r in &inst.results {
                        let to = alive.remove(&r).unwrap_or(end);
                        self.take(r, end, to);
                        for &b in &inst.blocks {
                            let point = self.last(b) + 1;
                            self.take(r, point, point);
                        }
                    }
                    let through = self.pass(&mut alive, end);
                    for &b in &inst.blocks {
                        let before = self.block(b, &through);
                        alive.extend(before.into_iter().map(|v| (v, at)));
                    }
                    alive.extend(through.into_iter().map(|v| (v, at)));
                }
                Op::Loop => {
                    let end = 2 * self.end[&i];
                    for &r in &inst.results {
                        let to = alive.remove(&r).unwrap_or(end);
                        self.take(r, end, to);
                    }
                    let mut through = self.pass(&mut alive, end);
                    through.extend(self.outer(inst.blocks[0]).union(&self.outer(inst.blocks[1])));
                    // Only what is defined in the loop is not alive all through it.
                    for &b in inst.blocks.iter().rev() {
                        self.block(b, &through);
                    }
                    let [condition, body] = [inst.blocks[0], inst.blocks[1]];
                    for &p in &self.func.blocks[condition].params {
                        let (back, test) = (self.last(body) + 1, self.last(condition));
                        self.take(p, at + 1, test + 1);
                        self.take(p, back, back);
                    }
                    alive.extend(through.into_iter().map(|v| (v, at)));
                }
                _ => {
                    let write = if self.writes_early(i) { at } else { at + 1 };
                    for &r in &inst.results {
                        let to = alive.remove(&r).unwrap_or(write);
                        self.take(r, write, to);
                    }
                }
            }
            let operands = self.packs.get(&i).map_or(&inst.operands[..], |(_, pair)| pair);
            for &o in operands {
                alive.entry(o).or_insert(at);
            }
        }
        let first = self.first(block);
        for &p in &self.func.blocks[block].params {
            let to = alive.remove(&p).unwrap_or(first);
            self.take(p, first, to);
        }
        self.pass(&mut alive, first)
    }

    /// Ends what is known of the values alive at a point, and gives them.
    fn pass(&mut self, alive: &mut BTreeMap<Value, u32>, at: u32) -> HashSet<Value> {
        let alive = std::mem::take(alive);
        alive.iter().for_each(|(&v, &to)| self.take(v, at, to));
        alive.into_keys().collect()
    }

    /// Values read in a block and in those inside it, but defined outside.
    fn outer(&self, block: Block) -> HashSet<Value> {
        let (mut read, mut defined) = (HashSet::new(), HashSet::new());
        defined.extend(self.func.blocks[block].params.iter().copied());
        self.func.walk(block, &mut |i| {
            let inst = &self.func.insts[i];
            read.extend(inst.operands.iter().copied());
            if let Some((_, pair)) = self.packs.get(&i) {
                read.extend(pair);
            }
            defined.extend(inst.results.iter().copied());
            for &b in &inst.blocks {
                defined.extend(self.func.blocks[b].params.iter().copied());
            }
        });
        &read - &defined
    }

    /// Is the op printed as several instructions that write a result before the last operand is read? Most that are
    /// several write temporaries first.
    fn writes_early(&self, i: InstId) -> bool {
        let inst = &self.func.insts[i];
        matches!(inst.op, Op::GlobalLoad(_)) && inst.operands.len() > 1
    }
}
