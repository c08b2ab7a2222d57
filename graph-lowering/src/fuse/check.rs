//! Is a plan that was read from a file one of this graph? The rules:
//!
//! 1. every node that it names is one of the graph's;
//! 2. the loop variables of a group are those of its reductions, matrix product, sums or attention, and every member has its
//!    place among them;
//! 3. what a kernel needs and does not compute is an input, or stored as a whole by earlier kernels;
//! 4. a node is stored as itself, as a permutation of it, or in its place of an assembled tensor;
//! 5. each output of the graph is an input, or stored as a whole.
//!
//! A plan that keeps them can be lowered without a panic. That its kernels are good ones is not checked.

use super::attention::{Kernels, share_kernel};
use super::group::{Group, Limits, Plan, Read, Store, canonical};
use super::map::Affine;
use super::operands::{Step, operand_coordinates, reduction, step, storage};
use crate::graph::{Graph, NodeId};
use crate::prim::assemble::Place;
use crate::prim::{Class, Op};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use tilewright_compiler::entity::Entity;

/// Checks the rules.
///
/// # Errors
/// A broken rule, in words.
pub(crate) fn check(graph: &Graph, plan: &Plan, limits: Limits) -> Result<(), String> {
    for group in &plan.groups {
        let stores = group.stores.iter().flat_map(|s| [s.node, s.target]);
        let operands = group.attention.iter().flat_map(|a| a.operands.iter().map(|r| r.node));
        let mut named = group.nodes.iter().chain(&group.leaves).chain(&group.dot).chain(&group.scatter).copied();
        if named.any(|n| unknown(graph, n)) || stores.chain(operands).any(|n| unknown(graph, n)) {
            return Err("a group names a node that the graph does not have".into());
        }
    }
    let mut checker = Checker { graph, plan, kernels: Kernels::of(graph), stored: BTreeMap::new() };
    for (i, group) in plan.groups.iter().enumerate() {
        checker.group(group, limits).map_err(|why| format!("group {i}: {why}"))?;
    }
    let roots: Vec<NodeId> = graph.outputs.iter().map(|&o| storage(graph, o)).collect();
    if roots != plan.outputs || !roots.iter().all(|&r| checker.ready(r)) {
        return Err("an output is not stored".into());
    }
    Ok(())
}

fn unknown(graph: &Graph, node: NodeId) -> bool {
    node.index() >= graph.nodes.len()
}

struct Checker<'a> {
    graph: &'a Graph,
    plan: &'a Plan,
    kernels: Kernels<'a>,
    /// What the groups so far have stored, by target.
    stored: BTreeMap<NodeId, BTreeSet<&'a Store>>,
}

/// A rule, and what is said if it is broken.
fn rule(holds: bool, otherwise: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise.to_owned()) }
}

impl<'a> Checker<'a> {
    fn op(&self, node: NodeId) -> &'a Op {
        &self.graph.nodes[node].op
    }

    fn dims(&self, node: NodeId) -> &'a [usize] {
        &self.graph.ty(node).dims
    }

    /// Is all of a node's buffer written?
    fn ready(&self, node: NodeId) -> bool {
        let class = self.op(node).class();
        if class == Class::Input {
            return true;
        }
        let Some(stored) = self.stored.get(&node) else { return false };
        if class != Class::Assemble || stored.iter().any(|s| s.node == node) {
            return true;
        }
        let filled = match self.op(node) {
            Op::Pad(pad) => self.plan.fills.get(&node) == Some(&pad.word),
            _ => true,
        };
        let parts = self.parts(node);
        filled
            && parts
                .iter()
                .all(|(part, place)| stored.iter().any(|s| s.node == *part && s.place.as_ref() == Some(place)))
    }

    /// The parts of an assembled tensor, and where they lie.
    fn parts(&self, node: NodeId) -> Vec<(NodeId, Place)> {
        let data = &self.graph.nodes[node];
        let mut start = 0;
        let place = |&part: &NodeId| match &data.op {
            Op::Cat(cat) => {
                let place = cat.place(data.ty.rank(), start);
                start += self.dims(part)[cat.axis];
                Some((part, place))
            }
            Op::Pad(pad) => Some((part, pad.place())),
            _ => None,
        };
        data.args.iter().filter_map(place).collect()
    }

    fn group(&mut self, group: &'a Group, limits: Limits) -> Result<(), String> {
        self.space(group, limits)?;
        for &node in &group.nodes {
            if group.attention.is_none() {
                self.member(group, node)?;
            }
        }
        for store in &group.stores {
            if group.attention.is_some() {
                // The library's kernel has each result in its own extents.
                rule(group.nodes.contains(&store.node), "attention stores other nodes than its own")?;
            } else {
                let at = group.place(self.dims(store.node)).ok_or("a stored node has no place")?;
                if !group.nodes.contains(&store.node) {
                    self.needs(group, vec![(store.node, at)])?;
                }
            }
            let fits = match (&store.place, self.op(store.target)) {
                (_, Op::Input) => false,
                (None, _) if store.target == store.node => true,
                (None, Op::Permute(_)) => self.graph.nodes[store.target].args[0] == store.node,
                (None, _) => false,
                (Some(place), _) => self.parts(store.target).iter().any(|(n, p)| *n == store.node && p == place),
            };
            rule(fits, "a node is stored where it does not belong")?;
        }
        for store in &group.stores {
            self.stored.entry(store.target).or_default().insert(store);
        }
        Ok(())
    }

    /// The loop variables.
    fn space(&self, group: &Group, limits: Limits) -> Result<(), String> {
        let (space, rank) = (&group.space, group.space.len());
        let nodes = &group.nodes;
        rule(nodes.iter().all(|n| self.op(*n).class() != Class::Input), "an input is computed")?;
        rule(space.iter().all(|&d| i32::try_from(d).is_ok()), "an extent is too large")?;
        let kinds = [(Class::Dot, group.dot), (Class::Scatter, group.scatter)];
        for (class, named) in kinds {
            let found: Vec<NodeId> = nodes.iter().copied().filter(|n| self.op(*n).class() == class).collect();
            rule(found == Vec::from_iter(named), "its matrix product or its sums are not those it names")?;
        }
        let attention = nodes.iter().any(|n| self.op(*n).class() == Class::Attention);
        rule(attention == group.attention.is_some(), "attention has no operands")?;
        if let Some(dot) = group.dot {
            rule(rank >= 3 && (1..=rank - 2).contains(&group.row_variables), "the rows of its matrix product")?;
            let k = self.dims(self.graph.nodes[dot].args[0]).last();
            let elements = space[..rank - 1].iter().try_fold(1usize, |n, &d| n.checked_mul(d));
            rule(
                k == space.last() && group.reduced == [rank - 1] && elements.is_some(),
                "the matrix product's extents",
            )?;
            rule(group.looped && group.scatter.is_none() && !attention, "a matrix product loops")?;
        } else {
            rule(group.row_variables == 0, "rows without a matrix product")?;
        }
        if let Some(scatter) = group.scatter {
            let data = &self.graph.nodes[scatter];
            let (own, updates) = (data.ty.rank(), self.graph.ty(data.args[1]).elements());
            let extents = [&data.ty.dims[..], &[updates, updates]].concat();
            rule(*space == extents && group.reduced == [own, own + 1] && nodes.len() == 1, "the sums' extents")?;
        }
        if let Some(how) = &group.attention {
            let first = nodes.first().ok_or("attention without attention")?;
            let main = &self.graph.nodes[*first];
            let mut rest = nodes.iter().skip(1).map(|n| &self.graph.nodes[*n]);
            let operands = how.operands.iter().zip(&main.args);
            rule(self.kernels.has(main) && rest.all(|n| share_kernel(main, n)), "attention of several kinds")?;
            rule(!matches!(main.op, Op::AttentionRow(_)), "what attention leaves of rows without attention")?;
            rule(*space == main.ty.dims && group.reduced.is_empty() && !group.looped, "the extents of attention")?;
            rule(how.operands.len() == main.args.len(), "attention lacks operands")?;
            for (read, &arg) in operands {
                rule(self.ready(read.node) && self.is_seen_as(arg, read), "an operand of attention is not there")?;
            }
        }
        if group.dot.is_none() && group.scatter.is_none() && !attention {
            let mut any = false;
            for (operand, axes) in nodes.iter().filter_map(|&n| reduction(self.graph, n)) {
                any = true;
                rule(self.dims(operand) == space && axes == group.reduced, "a reduction of another space")?;
            }
            rule(any || group.reduced.is_empty(), "reduced variables without a reduction")?;
            let rows: usize = group.reduced.iter().map(|&a| space[a].next_power_of_two()).product();
            let long = any && rows > limits.of(space, &group.reduced);
            rule(group.looped == long, "what is a tile and what is a loop")?;
        }
        Ok(())
    }

    /// A node at its place.
    fn member(&self, group: &Group, node: NodeId) -> Result<(), String> {
        let class = self.op(node).class();
        rule(
            !matches!(class, Class::Assemble | Class::Composite | Class::Attention),
            "a node that no kernel computes",
        )?;
        let at = group.place(self.dims(node));
        rule(at.is_some() || class == Class::Reduce && !group.reduced.is_empty(), "a node has no place")?;
        let mut operands = operand_coordinates(self.graph, node, group).ok_or("a node has no coordinates")?;
        if class == Class::Gather {
            let (table, _) = operands.remove(0);
            rule(self.ready(storage(self.graph, table)), "a table is not there")?;
        }
        self.needs(group, operands)
    }

    /// What a kernel needs at these coordinates. Each node is seen once at the same ones, however many ways lead to it.
    fn needs(&self, group: &Group, operands: Vec<(NodeId, Vec<Affine>)>) -> Result<(), String> {
        let mut seen = HashSet::new();
        let mut todo = operands;
        while let Some((node, at)) = todo.pop() {
            let at = canonical(&at, &group.space);
            if !seen.insert((node, at.clone())) {
                continue;
            }
            if group.nodes.contains(&node) {
                let own = group.place(self.dims(node));
                rule(own.is_some_and(|own| own == at), "an operand is needed at other coordinates than its own")?;
            } else if group.leaves.contains(&node) {
                rule(self.ready(node), "what is read is not there")?;
            } else {
                match step(self.graph, node, &at, &group.space) {
                    Step::Made => rule(self.op(node).class() == Class::Create, "what is needed is not there")?,
                    Step::Through(args) => todo.extend(args),
                    Step::Stored(root) => rule(self.ready(root), "what a reshape shows is not there")?,
                }
            }
        }
        Ok(())
    }

    /// Is this how a tensor is read where it lies?
    fn is_seen_as(&self, tensor: NodeId, read: &Read) -> bool {
        let space = self.dims(tensor);
        let (mut node, mut at): (NodeId, Vec<Affine>) = (tensor, (0..space.len()).map(Affine::variable).collect());
        loop {
            let same = |root: NodeId, at: &[Affine]| {
                read.node == root && read.dims == self.dims(node) && read.at == canonical(at, space)
            };
            if node == read.node {
                return same(node, &at);
            }
            if self.op(node).class() != Class::View {
                return false;
            }
            match step(self.graph, node, &at, space) {
                Step::Through(args) => (node, at) = args[0].clone(),
                Step::Stored(root) => return same(root, &at),
                Step::Made => return false,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuse::plan;
    use crate::graph::TensorType;
    use crate::prim::{Dot, Reduce};
    use tilewright_compiler::DType;
    use tilewright_compiler::error::Loc;
    use tilewright_compiler::tile::{ReduceOp, UnaryOp};

    const LIMITS: Limits = Limits { row: 64, column: 64 };

    /// A product, a function of it, and the sums of its rows.
    fn sample() -> (Graph, Plan) {
        let mut g = Graph::new();
        let x = g.add_input(TensorType::new(DType::F32, [4, 8]), Loc::UNKNOWN);
        let y = g.add_input(TensorType::new(DType::F32, [8, 4]), Loc::UNKNOWN);
        let dot = g.add(Op::Dot(Dot), vec![x, y], Loc::UNKNOWN).unwrap();
        let e = g.add(Op::Unary(UnaryOp::Exp), vec![dot], Loc::UNKNOWN).unwrap();
        let sum = g.add(Op::Reduce(Reduce { op: ReduceOp::Sum, axes: vec![1] }), vec![e], Loc::UNKNOWN).unwrap();
        g.outputs = vec![e, sum];
        let plan = plan(&g, true, LIMITS).unwrap();
        assert_eq!(plan.groups.len(), 2);
        assert_eq!(check(&g, &plan, LIMITS), Ok(()));
        (g, plan)
    }

    #[test]
    fn plans_that_break_a_rule_are_refused() {
        let (g, good) = sample();
        let n = NodeId::new;
        type Damage = fn(&mut Plan);
        let breaks: [(&str, Damage); 17] = [
            ("no groups", |p| p.groups.clear()),
            ("another order", |p| p.groups.reverse()),
            ("no first group", |p| drop(p.groups.remove(0))),
            ("an unknown member", |p| p.groups[0].nodes.extend([NodeId::new(99)])),
            ("an unknown leaf", |p| p.groups[0].leaves.extend([NodeId::new(99)])),
            ("an unknown target", |p| p.groups[0].stores[0].target = NodeId::new(99)),
            ("a store of another", |p| p.groups[0].stores[0].target = NodeId::new(3)),
            ("a store into an input", |p| p.groups[0].stores[0].target = NodeId::new(0)),
            ("no stores", |p| p.groups[0].stores.clear()),
            ("no space", |p| p.groups[0].space.clear()),
            ("a large space", |p| p.groups[0].space[0] = usize::MAX),
            ("other rows", |p| p.groups[0].row_variables = 7),
            ("another product", |p| p.groups[0].dot = None),
            ("another axis", |p| p.groups[1].reduced = vec![0]),
            ("an axis too many", |p| p.groups[1].reduced.push(5)),
            ("a loop", |p| p.groups[1].looped = true),
            ("no outputs", |p| p.outputs.clear()),
        ];
        for (what, damage) in breaks {
            let mut bad = good.clone();
            damage(&mut bad);
            assert_ne!(bad, good, "{what}");
            assert!(check(&g, &bad, LIMITS).is_err(), "{what}");
        }
        let mut bad = good.clone();
        bad.groups[1].nodes = BTreeSet::from([n(0)]);
        assert!(check(&g, &bad, LIMITS).is_err());
    }
}
