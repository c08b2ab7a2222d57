//! Where a group's nodes find their operands.

use super::group::{Group, Read, canonical};
use super::map::{self, Affine};
use crate::graph::{Graph, NodeId};
use crate::prim::{Class, Op};

/// How a node that no group has is read.
pub(super) enum Step {
    /// It is made without operands.
    Made,
    /// By reading these nodes at these coordinates.
    Through(Vec<(NodeId, Vec<Affine>)>),
    /// From this node's buffer, seen with the extents of the node itself.
    Stored(NodeId),
}

/// One step from a node toward its operands.
pub(super) fn step(graph: &Graph, node: NodeId, at: &[Affine], space: &[usize]) -> Step {
    let data = &graph.nodes[node];
    match data.op.class() {
        Class::View => {
            let arg = data.args[0];
            match data.op.primitive().source(graph.ty(arg), &data.ty, at, space) {
                Some(at) => Step::Through(vec![(arg, at)]),
                None => Step::Stored(storage(graph, arg)),
            }
        }
        Class::Pointwise => Step::Through(data.args.iter().map(|&a| (a, at.to_vec())).collect()),
        _ => Step::Made,
    }
}

/// Whose buffer holds the values of a node, should they be in memory: reshapes have none of their own.
pub(super) fn storage(graph: &Graph, mut node: NodeId) -> NodeId {
    while let Op::Reshape(_) = graph.nodes[node].op {
        node = graph.nodes[node].args[0];
    }
    node
}

/// The operand and axes of a reduction.
pub(super) fn reduction(graph: &Graph, node: NodeId) -> Option<(NodeId, Vec<usize>)> {
    let data = &graph.nodes[node];
    match &data.op {
        Op::Reduce(r) => Some((data.args[0], r.axes.clone())),
        Op::ArgReduce(r) => Some((data.args[0], vec![r.axis])),
        _ => None,
    }
}

/// The operands of a group's node with the coordinates it reads them at. The table of a gather is read at coordinates
/// that are no function of the variables; it is given with none.
pub(super) fn operand_coordinates(graph: &Graph, node: NodeId, group: &Group) -> Option<Vec<(NodeId, Vec<Affine>)>> {
    let data = &graph.nodes[node];
    let var = Affine::variable;
    match data.op.class() {
        Class::Reduce => {
            Some(vec![(data.args[0], canonical(&(0..group.space.len()).map(var).collect::<Vec<_>>(), &group.space))])
        }
        Class::Dot => {
            let k = group.space.len() - 1;
            let batch: Vec<Affine> = (0..group.rows().start).map(var).collect();
            let with = |last: [Affine; 2]| canonical(&[&batch[..], &last].concat(), &group.space);
            Some(vec![(data.args[0], with([group.row(), var(k)])), (data.args[1], with([var(k), var(k - 1)]))])
        }
        Class::Scatter => {
            let rank = data.ty.rank();
            let update: Vec<Affine> = std::iter::once(rank + 1).chain(1..rank).map(var).collect();
            Some(vec![(data.args[0], canonical(&update, &group.space)), (data.args[1], vec![var(rank)])])
        }
        Class::Gather => {
            let at = group.place(&data.ty.dims)?;
            let rank = graph.ty(data.args[1]).rank();
            let table = vec![Affine::default(); graph.ty(data.args[0]).rank()];
            Some(vec![(data.args[0], table), (data.args[1], at[..rank].to_vec())])
        }
        Class::View => match step(graph, node, &group.place(&data.ty.dims)?, &group.space) {
            Step::Through(args) => Some(args),
            Step::Made | Step::Stored(_) => None,
        },
        _ => {
            let at = group.place(&data.ty.dims)?;
            Some(data.args.iter().map(|&a| (a, at.clone())).collect())
        }
    }
}

/// The place in memory of what a read reads.
pub(super) fn address(read: &Read) -> Affine {
    map::linear(&read.at, &read.dims)
}
