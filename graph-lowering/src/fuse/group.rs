//! Groups of nodes and how they grow.

use super::attention::Attention;
use super::cost::{anew, cheap, single};
use super::kernel::Uses;
use super::map::{self, Affine};
use super::operands::{Step, operand_coordinates, reduction, step, storage};
use crate::graph::{Graph, NodeId};
use crate::prim::assemble::Place;
use crate::prim::reduce::kept_dims;
use crate::prim::{Class, Op};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashSet};
use tilewright_compiler::entity::Entity;

/// Most nodes of one kernel.
const MAX_NODES: usize = 128;
/// Most tensors that one kernel reads.
const MAX_READS: usize = 24;

/// Nodes that become one kernel.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Group {
    /// Extents of the loop variables.
    pub space: Vec<usize>,
    /// The variables that reductions remove; empty without reductions.
    pub reduced: Vec<usize>,
    /// The nodes, in the graph's order.
    pub nodes: BTreeSet<NodeId>,
    /// Are the reduced variables too long for one tile, so that the kernel loops over them?
    pub looped: bool,
    /// The matrix product, if there is one. Its space is `[batch.., m.., n, k]`.
    pub dot: Option<NodeId>,
    /// How many variables make up the rows of the matrix product: several if its result is reshaped to `[m.., n]`, so that
    /// what follows in these extents is part of the same kernel.
    pub row_variables: usize,
    /// The sums into rows of a table, if it is a kernel of those. Its space is `[rows, row.., updates, updates]`: once for the
    /// updates' numbers, which it looks through, and once for the updates themselves, which it takes one by one.
    pub scatter: Option<NodeId>,
    /// Attention, if this is its kernel: nothing else joins it.
    pub attention: Option<Attention>,
    /// What it stores, and where.
    pub stores: Vec<Store>,
    /// Tensors read from memory.
    pub leaves: BTreeSet<NodeId>,
}

/// A node whose values a kernel stores.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Store {
    /// Whose values.
    pub node: NodeId,
    /// Into whose buffer: the node's own, that of a permutation of it, or that of a tensor assembled from parts.
    pub target: NodeId,
    /// Where in the buffer; all of it if `None`.
    pub place: Option<Place>,
}

/// What one node reads from memory.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Read {
    /// Whose buffer.
    pub node: NodeId,
    /// The extents it is seen with: those of the node, or of a reshape of it.
    pub dims: Vec<usize>,
    /// The coordinates.
    pub at: Vec<Affine>,
}

/// The kernels of a graph.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Plan {
    /// The groups, in an order in which they can run.
    pub groups: Vec<Group>,
    /// Tensors assembled from parts that must be filled with these bits before.
    pub fills: BTreeMap<NodeId, u64>,
    /// For each output of the graph: the node whose buffer holds it.
    pub outputs: Vec<NodeId>,
    /// Why nodes did not join the group of an operand.
    pub refusals: Vec<String>,
}

impl Group {
    /// Coordinates of a tensor of these extents in the group's variables, if it has its place in the group: all variables, or
    /// those that are not reduced (with or without extents of 1 for the others).
    pub fn place(&self, dims: &[usize]) -> Option<Vec<Affine>> {
        let variable = |i: usize| if self.space[i] == 1 { Affine::default() } else { Affine::variable(i) };
        if self.dot.is_some() {
            let (n, rows) = (self.space.len() - 2, self.rows());
            if dims == &self.space[..=n] {
                return Some((0..=n).map(variable).collect());
            }
            let product = self.space[rows.clone()].iter().product();
            let joined = self.row_variables > 1 && dims == [product, self.space[n]];
            return joined.then(|| canonical(&[self.row(), variable(n)], &self.space));
        }
        if dims == self.space {
            return Some((0..dims.len()).map(variable).collect());
        }
        if self.reduced.is_empty() {
            return None;
        }
        if dims == kept_dims(&self.space, &self.reduced) {
            return Some((0..self.space.len()).filter(|i| !self.reduced.contains(i)).map(variable).collect());
        }
        let unit = |i: usize| if self.reduced.contains(&i) { 1 } else { self.space[i] };
        if dims.len() == self.space.len() && (0..dims.len()).all(|i| dims[i] == unit(i)) {
            let at = |i: usize| if self.reduced.contains(&i) { Affine::default() } else { variable(i) };
            return Some((0..dims.len()).map(at).collect());
        }
        None
    }
}

impl Group {
    /// Is a node one of the group's, read at the coordinates it is computed at? At others it is computed again: so it was in a group
    /// that did not have it, before the two were merged.
    pub(super) fn has(&self, graph: &Graph, node: NodeId, at: &[Affine]) -> bool {
        let place = || self.place(&graph.ty(node).dims).map(|p| canonical(&p, &self.space));
        self.nodes.contains(&node) && place().is_some_and(|p| p == at)
    }

    /// The first node that it computes or stores.
    fn first(&self) -> Option<NodeId> {
        self.nodes.iter().copied().chain(self.stores.iter().map(|s| s.node)).min()
    }

    /// The variables that make up the rows of a matrix product.
    pub(super) fn rows(&self) -> std::ops::Range<usize> {
        let n = self.space.len() - 2;
        n - self.row_variables..n
    }

    /// The row of a matrix product, in its variables.
    pub(super) fn row(&self) -> Affine {
        let variables: Vec<Affine> = self.rows().map(Affine::variable).collect();
        map::linear(&variables, &self.space[self.rows()])
    }

    /// Do all these functions step through the variables of the rows as through one?
    fn rows_agree<'a>(&self, mut all: impl Iterator<Item = &'a Affine>) -> bool {
        let rows: Vec<usize> = self.rows().filter(|&v| self.space[v] != 1).collect();
        all.all(|a| rows.windows(2).all(|w| a.of(w[0]) == a.of(w[1]) * self.space[w[1]] as i64))
    }
}

/// Variables of extent 1 are always 0.
pub(super) fn canonical(at: &[Affine], space: &[usize]) -> Vec<Affine> {
    let one = |a: &Affine| {
        let mut a = a.clone();
        a.terms.retain(|&v, _| space[v] != 1);
        a
    };
    at.iter().map(one).collect()
}

/// Longest reduced extents kept in one tile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Of rows, whose elements lie next to each other.
    pub row: usize,
    /// Of columns: each element is in another row of memory, so a tile has several columns.
    pub column: usize,
}

impl Limits {
    pub(super) fn of(self, space: &[usize], axes: &[usize]) -> usize {
        let last = space.iter().rposition(|&d| d != 1);
        if last.is_some_and(|l| axes.contains(&l)) { self.row } else { self.column }
    }
}

struct Planner<'g> {
    graph: &'g Graph,
    fusion: bool,
    /// Longest reduced extent kept in one tile.
    limits: Limits,
    users: Vec<Vec<NodeId>>,
    /// Pointwise nodes that are computed anew in every kernel that needs them.
    cheap: Vec<bool>,
    /// Single numbers that take few operations: cheaper to compute than to read.
    single: Vec<bool>,
    /// Pointwise nodes that are computed anew in kernels that do not have them, rather than stored and read.
    anew: Vec<bool>,
    groups: Vec<Option<Group>>,
    member: BTreeMap<NodeId, usize>,
    /// For assembled tensors: the groups that write their parts.
    writers: BTreeMap<NodeId, BTreeSet<usize>>,
    plan: Plan,
}

/// Cuts a graph into groups. Without `fusion` every node is one by itself.
///
/// # Errors
/// A broken invariant, in words.
pub fn plan(graph: &Graph, fusion: bool, limits: Limits) -> Result<Plan, String> {
    let mut p = Planner {
        graph,
        fusion,
        limits,
        users: graph.users(),
        cheap: if fusion { cheap(graph) } else { vec![false; graph.nodes.len()] },
        single: if fusion { single(graph) } else { vec![false; graph.nodes.len()] },
        anew: if fusion { anew(graph) } else { vec![false; graph.nodes.len()] },
        groups: Vec::new(),
        member: BTreeMap::new(),
        writers: BTreeMap::new(),
        plan: Plan::default(),
    };
    // What no output needs gets no kernel.
    let live = crate::passes::live(graph);
    for (id, node) in graph.nodes.iter() {
        if !live[id.index()] {
            continue;
        }
        match node.op.class() {
            Class::Input | Class::Create | Class::View => {}
            Class::Pointwise | Class::Gather | Class::Reduce | Class::Dot | Class::Scatter => p.add(id)?,
            Class::Attention => p.attention(id)?,
            Class::Assemble => p.assemble(id)?,
            Class::Composite => return Err(format!("{id} = {} was not decomposed", node.op)),
        }
    }
    for &o in &graph.outputs {
        let root = storage(graph, o);
        if p.graph.nodes[root].op.class() != Class::Input {
            p.ensure_stored(root)?;
        }
        p.plan.outputs.push(root);
    }
    p.finish()
}

impl<'g> Planner<'g> {
    fn op(&self, node: NodeId) -> &'g Op {
        &self.graph.nodes[node].op
    }

    /// Is the node computed in every kernel that needs it?
    fn is_free(&self, node: NodeId) -> bool {
        if self.member.contains_key(&node) {
            return false;
        }
        match self.op(node).class() {
            Class::Create | Class::View => true,
            Class::Pointwise => self.cheap[node.index()] || self.single[node.index()],
            _ => false,
        }
    }

    /// What reading `node` at coordinates `at` reads from memory or from the group. With `anew`, what is cheaper to compute again
    /// than to read is not read.
    fn reads(&self, operands: Vec<(NodeId, Vec<Affine>)>, group: &Group, anew: bool, out: &mut BTreeSet<Read>) {
        let space = &group.space;
        // Each node is seen once at the same coordinates, however many ways lead to it.
        let mut seen: HashSet<(NodeId, Vec<Affine>)> = HashSet::new();
        let mut todo = operands;
        while let Some((node, at)) = todo.pop() {
            let again = anew && self.anew[node.index()] && !group.nodes.contains(&node);
            let root = if again || self.is_free(node) {
                if !seen.insert((node, at.clone())) {
                    continue;
                }
                match step(self.graph, node, &at, space) {
                    Step::Made => continue,
                    Step::Through(args) => {
                        todo.extend(args);
                        continue;
                    }
                    // A reshape that is not affine is read as another shape of its operand's buffer.
                    Step::Stored(root) => root,
                }
            } else {
                node
            };
            out.insert(Read { node: root, dims: self.graph.ty(node).dims.clone(), at: canonical(&at, space) });
        }
    }

    /// Everything a node reads when computed at its place in a group.
    fn reads_of(&self, node: NodeId, group: &Group) -> Option<BTreeSet<Read>> {
        let mut out = BTreeSet::new();
        let mut operands = operand_coordinates(self.graph, node, group)?;
        if self.op(node).class() == Class::Gather {
            // The table is read at computed places, so it must be in memory as it is.
            let (table, at) = operands.remove(0);
            out.insert(Read { node: storage(self.graph, table), dims: self.graph.ty(table).dims.clone(), at });
        }
        // The loops of a matrix product read its operands many times.
        let anew = !matches!(self.op(node).class(), Class::Dot | Class::Scatter);
        self.reads(operands, group, anew, &mut out);
        Some(out)
    }

    /// The groups that must run before `node` can be read from memory.
    fn sources(&self, node: NodeId) -> Vec<usize> {
        let mut all: Vec<usize> = self.member.get(&node).copied().into_iter().collect();
        all.extend(self.writers.get(&node).into_iter().flatten());
        all
    }

    /// Does `from` need `to`, directly or through others?
    fn reaches(&self, from: usize, to: usize) -> bool {
        let first = |g: usize| self.groups[g].as_ref().and_then(Group::first);
        // What lies before all that `to` computes cannot need it: nodes come after their operands.
        let Some(earliest) = first(to) else { return from == to };
        let mut seen = HashSet::new();
        let mut stack = vec![from];
        while let Some(g) = stack.pop() {
            if g == to {
                return true;
            }
            if seen.insert(g)
                && let Some(group) = &self.groups[g]
            {
                stack.extend(group.leaves.range(earliest..).flat_map(|&l| self.sources(l)).filter(|&s| s != g));
            }
        }
        false
    }

    fn add(&mut self, node: NodeId) -> Result<(), String> {
        if self.cheap[node.index()] {
            return Ok(());
        }
        let mut candidates: Vec<usize> = Vec::new();
        if self.fusion && !matches!(self.op(node).class(), Class::Dot | Class::Scatter) {
            let mut seen = HashSet::new();
            let mut stack = self.graph.nodes[node].args.clone();
            while let Some(a) = stack.pop() {
                if !seen.insert(a) {
                    continue;
                }
                match self.member.get(&a) {
                    Some(&g) if !candidates.contains(&g) => candidates.push(g),
                    Some(_) => {}
                    None if self.is_free(a) => stack.extend(&self.graph.nodes[a].args),
                    None => {}
                }
            }
            // The latest group first: it is the likeliest not to be needed by the others.
            candidates.sort_unstable_by(|a, b| b.cmp(a));
            self.merge(node, &mut candidates);
        }
        for &g in &candidates {
            match self.try_join(node, g) {
                Ok(joined) => {
                    self.member.insert(node, g);
                    self.groups[g] = Some(joined);
                    return Ok(());
                }
                Err(why) => {
                    let first = self.groups[g].as_ref().and_then(|g| g.nodes.first().copied());
                    let with = first.map_or_else(String::new, |f| format!("{f} = {}", self.op(f)));
                    self.plan
                        .refusals
                        .push(format!("{node} = {} does not join the kernel of {with}: {why}", self.op(node)));
                }
            }
        }
        // A single number that could not join is computed where it is needed.
        if self.single[node.index()] {
            return Ok(());
        }
        self.start(node).map(|_| ())
    }

    /// The group with one more node, or why not.
    fn try_join(&self, node: NodeId, g: usize) -> Result<Group, String> {
        let mut group = self.groups[g].clone().ok_or("the group was merged into another")?;
        if group.attention.is_some() {
            return Err("attention takes nothing in".into());
        }
        if group.nodes.len() >= MAX_NODES {
            return Err(format!("it has {MAX_NODES} nodes already"));
        }
        if group.scatter.is_some() {
            return Err("sums into rows of a table have a kernel of their own".into());
        }
        if let Some((operand, axes)) = reduction(self.graph, node) {
            if group.dot.is_some() {
                return Err("the elements of a matrix product are spread over many programs".into());
            }
            if group.space != self.graph.ty(operand).dims {
                return Err("the reduction goes over another space".into());
            }
            if !group.reduced.is_empty() && group.reduced != axes {
                return Err("it reduces along other axes".into());
            }
            let rows: usize = axes.iter().map(|&a| group.space[a].next_power_of_two()).product();
            group.looped |= rows > self.limits.of(&group.space, &axes);
            group.reduced = axes;
        }
        let at = group.place(&self.graph.ty(node).dims).ok_or("its extents are others")?;
        group.nodes.insert(node);
        let reads = self.reads_of(node, &group).ok_or("its operands are not at its coordinates")?;
        for read in &reads {
            if group.nodes.contains(&read.node) {
                if self.op(node).class() == Class::Gather
                    && read.node == storage(self.graph, self.graph.nodes[node].args[0])
                {
                    return Err("it looks up rows of a table that the kernel has yet to store".into());
                }
                let place = group.place(&self.graph.ty(read.node).dims).ok_or("an operand has no place in it")?;
                if place != read.at || read.dims != self.graph.ty(read.node).dims {
                    return Err("it needs an operand at other coordinates than its own".into());
                }
                continue;
            }
            let known = self.op(read.node).class() == Class::Input || !self.sources(read.node).is_empty();
            if !known {
                return Err("an operand must be stored by a kernel of its own first".into());
            }
            if self.sources(read.node).iter().any(|&s| self.reaches(s, g)) {
                return Err("another kernel in between needs its results".into());
            }
            group.leaves.insert(read.node);
        }
        if group.leaves.len() > MAX_READS {
            return Err(format!("it would read more than {MAX_READS} tensors"));
        }
        if group.dot.is_some() {
            if self.op(node).class() == Class::Gather {
                return Err("matrix products look up no rows".into());
            }
            if !group.rows_agree(Uses::of(self.graph, &group).all()) {
                return Err("it goes through the rows of the matrix in another way".into());
            }
        }
        // The kernel goes through a long row again for what depends on its reductions. If there are few rows, or these lie
        // side by side, a kernel with more programs is faster.
        if group.looped && group.dot.is_none() && !again(&group) {
            let inner = |at: &[Affine]| at.iter().any(|a| group.reduced.iter().any(|&r| a.of(r) != 0));
            let in_loop = reduction(self.graph, node).is_some() || inner(&at);
            if in_loop && self.after_reduction(node, &group) {
                return Err(
                    "the rows are too few, and too long for one tile: their reduction must be finished first".into()
                );
            }
        }
        Ok(group)
    }

    /// Does a node depend on a reduction of its group?
    fn after_reduction(&self, node: NodeId, group: &Group) -> bool {
        let mut seen = HashSet::new();
        let mut stack = self.graph.nodes[node].args.clone();
        while let Some(a) = stack.pop() {
            if !seen.insert(a) || group.leaves.contains(&a) && !group.nodes.contains(&a) {
                continue;
            }
            if group.nodes.contains(&a) && matches!(self.op(a).class(), Class::Reduce | Class::Dot) {
                return true;
            }
            stack.extend(&self.graph.nodes[a].args);
        }
        false
    }

    /// Merges those of the groups that have one space and do not need each other.
    fn merge(&mut self, node: NodeId, candidates: &mut Vec<usize>) {
        let mut i = 0;
        while i < candidates.len() {
            let mut j = i + 1;
            while j < candidates.len() {
                let (a, b) = (candidates[i], candidates[j]);
                match self.merged(a, b) {
                    // Only if the node itself then fits; else merging gains nothing.
                    Some(group) if self.would_fit(node, &group) => {
                        for &n in &group.nodes {
                            self.member.insert(n, a);
                        }
                        for writers in self.writers.values_mut() {
                            if writers.remove(&b) {
                                writers.insert(a);
                            }
                        }
                        self.groups[a] = Some(group);
                        self.groups[b] = None;
                        candidates.remove(j);
                    }
                    _ => j += 1,
                }
            }
            i += 1;
        }
    }

    fn would_fit(&self, node: NodeId, group: &Group) -> bool {
        match reduction(self.graph, node) {
            Some((operand, axes)) => {
                group.space == self.graph.ty(operand).dims && (group.reduced.is_empty() || group.reduced == axes)
            }
            None => group.place(&self.graph.ty(node).dims).is_some(),
        }
    }

    fn merged(&self, a: usize, b: usize) -> Option<Group> {
        let (x, y) = (self.groups[a].as_ref()?, self.groups[b].as_ref()?);
        let one_way = x.reduced.is_empty() || y.reduced.is_empty() || x.reduced == y.reduced;
        let alone = |g: &Group| g.dot.is_some() || g.scatter.is_some() || g.attention.is_some();
        let fits = x.space == y.space && one_way && !alone(x) && !alone(y);
        if !fits || x.nodes.len() + y.nodes.len() > MAX_NODES || self.reaches(a, b) || self.reaches(b, a) {
            return None;
        }
        let mut group = x.clone();
        group.nodes.extend(&y.nodes);
        group.leaves.extend(&y.leaves);
        group.stores.extend(y.stores.iter().cloned());
        group.looped |= y.looped;
        if group.reduced.is_empty() {
            group.reduced = y.reduced.clone();
        }
        (group.leaves.len() <= MAX_READS && self.agrees(&group)).then_some(group)
    }

    /// Does every node of the group find others of its nodes at its own coordinates? What one group computed again at other
    /// coordinates may be a node of the group it is merged with.
    fn agrees(&self, group: &Group) -> bool {
        let here = |read: &Read| {
            let dims = &self.graph.ty(read.node).dims;
            !group.nodes.contains(&read.node) || (read.dims == *dims && group.place(dims).as_ref() == Some(&read.at))
        };
        group.nodes.iter().all(|&n| self.reads_of(n, group).is_some_and(|reads| reads.iter().all(here)))
    }

    /// A group for one node.
    fn start(&mut self, node: NodeId) -> Result<usize, String> {
        let mut group = Group { nodes: BTreeSet::from([node]), ..Group::default() };
        let data = &self.graph.nodes[node];
        if let Some((operand, axes)) = reduction(self.graph, node) {
            group.space = self.graph.ty(operand).dims.clone();
            let rows: usize = axes.iter().map(|&a| group.space[a].next_power_of_two()).product();
            group.looped = rows > self.limits.of(&group.space, &axes);
            group.reduced = axes;
        } else if data.op.class() == Class::Dot {
            group = self.dot_group(node);
        } else if data.op.class() == Class::Scatter {
            let updates = self.graph.ty(data.args[1]).elements();
            group.space = [&data.ty.dims[..], &[updates, updates]].concat();
            group.reduced = vec![data.ty.rank(), data.ty.rank() + 1];
            group.scatter = Some(node);
        } else {
            group.space = data.ty.dims.clone();
        }
        // The node is a member before its operands are looked at, so that it is not taken for one that is computed anew wherever it is read.
        self.member.insert(node, self.groups.len());
        let reads = self.reads_of(node, &group).ok_or_else(|| format!("{node} = {} has no coordinates", data.op))?;
        for read in reads {
            self.ensure_stored(read.node)?;
            group.leaves.insert(read.node);
        }
        let index = self.groups.len();
        self.member.insert(node, index);
        self.groups.push(Some(group));
        Ok(index)
    }

    /// The space of a matrix product: with the rows in several variables if its result is reshaped so.
    fn dot_group(&self, node: NodeId) -> Group {
        let data = &self.graph.nodes[node];
        let dims = &data.ty.dims;
        let k = self.graph.ty(data.args[0]).dims.last().copied().unwrap_or(1);
        let group = |kept: &[usize], row_variables: usize| Group {
            space: [kept, &[k]].concat(),
            reduced: vec![kept.len()],
            nodes: BTreeSet::from([node]),
            looped: true,
            dot: Some(node),
            row_variables,
            ..Group::default()
        };
        let plain = group(dims, 1);
        if !self.fusion || dims.len() != 2 {
            return plain;
        }
        let wanted = self.users[node.index()].iter().find_map(|&u| match self.op(u) {
            Op::Reshape(r) if r.dims.len() > 2 && r.dims.last() == dims.last() => Some(&r.dims),
            _ => None,
        });
        let Some(kept) = wanted else { return plain };
        let mut split = group(kept, kept.len() - 1);
        let Some(reads) = self.reads_of(node, &split) else { return plain };
        split.leaves = reads.into_iter().map(|r| r.node).collect();
        let agree = split.rows_agree(Uses::of(self.graph, &split).all());
        split.leaves.clear();
        if agree { split } else { plain }
    }

    /// A group for attention; or, for what comes with it, a place in the group of its sibling.
    fn attention(&mut self, node: NodeId) -> Result<(), String> {
        let data = &self.graph.nodes[node];
        let sibling = self.groups.iter().position(|g| {
            let first = g.as_ref().filter(|g| g.attention.is_some()).and_then(|g| g.nodes.first());
            first.is_some_and(|&f| super::attention::share_kernel(&self.graph.nodes[f], data))
        });
        if let Some(g) = sibling {
            self.groups[g].as_mut().ok_or("a group of attention was merged away")?.nodes.insert(node);
            self.member.insert(node, g);
            return Ok(());
        }
        let mut operands = Vec::new();
        for &arg in &data.args {
            let read = self.strided(arg);
            self.ensure_stored(read.node)?;
            operands.push(read);
        }
        self.member.insert(node, self.groups.len());
        self.groups.push(Some(Group {
            space: data.ty.dims.clone(),
            nodes: BTreeSet::from([node]),
            leaves: operands.iter().map(|r| r.node).collect(),
            attention: Some(Attention { operands }),
            ..Group::default()
        }));
        Ok(())
    }

    /// Where a tensor lies in memory, in its own coordinates: views of it are seen through, all else is stored.
    fn strided(&self, mut node: NodeId) -> Read {
        let space = self.graph.ty(node).dims.clone();
        let mut at: Vec<Affine> = (0..space.len()).map(Affine::variable).collect();
        while self.is_free(node) && self.op(node).class() == Class::View {
            match step(self.graph, node, &at, &space) {
                Step::Through(args) => (node, at) = args[0].clone(),
                Step::Stored(root) => {
                    return Read { node: root, dims: self.graph.ty(node).dims.clone(), at: canonical(&at, &space) };
                }
                Step::Made => break,
            }
        }
        Read { node, dims: self.graph.ty(node).dims.clone(), at: canonical(&at, &space) }
    }

    /// Sees to it that a node's values get into memory.
    fn ensure_stored(&mut self, node: NodeId) -> Result<(), String> {
        if self.op(node).class() == Class::Input || self.writers.contains_key(&node) || self.store_permuted(node) {
            return Ok(());
        }
        let g = match self.member.get(&node) {
            Some(&g) => g,
            None => self.start(node)?,
        };
        let group = self.groups[g].as_mut().ok_or("a member's group was merged away")?;
        let store = Store { node, target: node, place: None };
        if !group.stores.contains(&store) {
            group.stores.push(store);
        }
        Ok(())
    }

    /// Stores a permutation of a group's node by the group's own kernel, in the order asked for, instead of copying it.
    fn store_permuted(&mut self, node: NodeId) -> bool {
        let Op::Permute(_) = self.op(node) else { return false };
        let source = self.graph.nodes[node].args[0];
        let Some(&g) = self.member.get(&source).filter(|_| self.fusion) else { return false };
        let Some(group) = self.groups[g].as_mut().filter(|g| g.row_variables < 2) else { return false };
        group.stores.push(Store { node: source, target: node, place: None });
        self.writers.insert(node, BTreeSet::from([g]));
        true
    }

    /// A tensor whose parts are stored by the kernels that compute them.
    fn assemble(&mut self, node: NodeId) -> Result<(), String> {
        let data = &self.graph.nodes[node];
        let mut start = 0;
        let mut writers = BTreeSet::new();
        for &part in &data.args {
            let place = match &data.op {
                Op::Cat(cat) => cat.place(data.ty.rank(), start),
                Op::Pad(pad) => {
                    self.plan.fills.insert(node, pad.word);
                    pad.place()
                }
                op => return Err(format!("{op} has no parts")),
            };
            if let Op::Cat(cat) = &data.op {
                start += self.graph.ty(part).dims[cat.axis];
            }
            let g = match self.member.get(&part) {
                // (The rows of a matrix product must stay together.)
                Some(&g) if self.fusion && self.groups[g].as_ref().is_some_and(|g| g.row_variables < 2) => g,
                // An input, a view, or a tensor with a kernel of its own: a kernel that copies it.
                _ => {
                    let space = self.graph.ty(part).dims.clone();
                    let at: Vec<Affine> = (0..space.len()).map(Affine::variable).collect();
                    let mut reads = BTreeSet::new();
                    let mut group = Group { space, ..Group::default() };
                    self.reads(vec![(part, at)], &group, true, &mut reads);
                    for read in reads {
                        self.ensure_stored(read.node)?;
                        group.leaves.insert(read.node);
                    }
                    self.groups.push(Some(group));
                    self.groups.len() - 1
                }
            };
            let group = self.groups[g].as_mut().ok_or("a member's group was merged away")?;
            group.stores.push(Store { node: part, target: node, place: Some(place) });
            writers.insert(g);
        }
        self.writers.insert(node, writers);
        Ok(())
    }

    /// The groups in an order in which they can run: of those that can, the one that was begun first. Some are missing if they need
    /// each other in a circle.
    fn order(&self) -> Vec<usize> {
        let mut waits: Vec<usize> = vec![0; self.groups.len()];
        let mut users: Vec<Vec<usize>> = vec![Vec::new(); self.groups.len()];
        let mut ready = BinaryHeap::new();
        for (g, group) in self.groups.iter().enumerate() {
            let Some(group) = group else { continue };
            let needs: BTreeSet<usize> =
                group.leaves.iter().flat_map(|&l| self.sources(l)).filter(|&s| s != g).collect();
            waits[g] = needs.len();
            needs.iter().for_each(|&s| users[s].push(g));
            if needs.is_empty() {
                ready.push(Reverse(g));
            }
        }
        let mut order = Vec::new();
        while let Some(Reverse(g)) = ready.pop() {
            order.push(g);
            for &user in &users[g] {
                waits[user] -= 1;
                if waits[user] == 0 {
                    ready.push(Reverse(user));
                }
            }
        }
        order
    }

    /// Adds the stores of what other groups read, and puts the groups in order.
    fn finish(mut self) -> Result<Plan, String> {
        let needed: BTreeSet<NodeId> = self
            .groups
            .iter()
            .flatten()
            .flat_map(|g| g.leaves.iter().copied().filter(|l| !g.nodes.contains(l)))
            .collect();
        for node in needed {
            self.ensure_stored(node)?;
        }
        let order = self.order();
        if order.len() != self.groups.iter().flatten().count() {
            return Err("the groups need each other in a circle".into());
        }
        // A group whose values nobody reads (they were recomputed elsewhere) has no kernel.
        self.plan.groups =
            order.into_iter().filter_map(|g| self.groups[g].take()).filter(|g| !g.stores.is_empty()).collect();
        Ok(self.plan)
    }
}

/// Rows from which on a kernel of looped rows has enough programs.
const MANY_ROWS: usize = 128;

/// May a kernel with rows too long for one tile go through them several times?
fn again(group: &Group) -> bool {
    let rows: usize = kept_dims(&group.space, &group.reduced).iter().product();
    rows >= MANY_ROWS && group.reduced.last() == Some(&(group.space.len() - 1))
}
