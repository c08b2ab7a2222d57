//! Which nodes are computed again in every kernel that needs them, rather than stored and read.

use crate::graph::{Graph, NodeId, TensorType};
use crate::prim::{Class, Op};
use std::collections::BTreeSet;
use tilewright_compiler::entity::Entity;

/// Pointwise nodes that cost less to compute than to store and read: a few operations on made-up tensors (masks, positions),
/// and widening casts of inputs.
pub(super) fn cheap(graph: &Graph) -> Vec<bool> {
    const MOST: u32 = 8;
    // Operations since nothing, for nodes that need no input.
    let mut made: Vec<Option<u32>> = Vec::with_capacity(graph.nodes.len());
    let mut cheap = Vec::with_capacity(graph.nodes.len());
    for (_, node) in graph.nodes.iter() {
        let sum = node.args.iter().try_fold(0u32, |n, a| Some(n + made[a.index()]?));
        let own = match node.op.class() {
            Class::Create => Some(0),
            Class::View => sum,
            Class::Pointwise => sum.map(|n| n + 1).filter(|&n| n <= MOST),
            _ => None,
        };
        let widening = matches!(node.op, Op::Cast(_)) && {
            let mut source = node.args[0];
            while graph.nodes[source].op.class() == Class::View {
                source = graph.nodes[source].args[0];
            }
            graph.nodes[source].op == Op::Input && graph.ty(source).dtype.bytes() < node.ty.dtype.bytes()
        };
        made.push(own);
        cheap.push(node.op.class() == Class::Pointwise && (own.is_some() || widening));
    }
    cheap
}

/// Pointwise single numbers of few operations, counted along every way to them since the last that is stored. Others have a place in
/// memory, so that what is computed anew in every kernel, and looked through for it, is never long.
pub(super) fn single(graph: &Graph) -> Vec<bool> {
    const MOST: u32 = 32;
    let mut operations: Vec<u32> = Vec::with_capacity(graph.nodes.len());
    let mut single = Vec::with_capacity(graph.nodes.len());
    for (_, node) in graph.nodes.iter() {
        let sum = node.args.iter().fold(0u32, |n, a| n.saturating_add(operations[a.index()]));
        let (count, is_single) = match node.op.class() {
            Class::View => (sum, false),
            Class::Pointwise if node.ty.elements() == 1 && sum < MOST => (sum + 1, true),
            _ => (0, false),
        };
        operations.push(count);
        single.push(is_single);
    }
    single
}

/// Pointwise nodes that read no more bytes when computed again than they have: a few operations on one large tensor (or on two
/// of half its bytes) and on small ones. Kernels that do not compute them anyway do it again, and nobody stores them.
pub(super) fn anew(graph: &Graph) -> Vec<bool> {
    // A GPU computes about 30 while it writes and reads back two bytes.
    const MOST_OPERATIONS: u32 = 32;
    const MOST_LEAVES: usize = 5;
    // A tensor with so many times fewer elements counts for nothing.
    const SMALL: usize = 8;
    struct Cone {
        operations: u32,
        leaves: BTreeSet<NodeId>,
    }
    let mut cones: Vec<Option<Cone>> = Vec::with_capacity(graph.nodes.len());
    for (_, node) in graph.nodes.iter() {
        if node.op.class() != Class::Pointwise {
            cones.push(None);
            continue;
        }
        let mut cone = Cone { operations: 1, leaves: BTreeSet::new() };
        for &a in &node.args {
            let mut source = a;
            while graph.nodes[source].op.class() == Class::View {
                source = graph.nodes[source].args[0];
            }
            match (&cones[source.index()], graph.nodes[source].op.class()) {
                (Some(inner), _) => {
                    cone.operations += inner.operations;
                    cone.leaves.extend(&inner.leaves);
                }
                (None, Class::Create) => {}
                (None, _) => {
                    cone.leaves.insert(source);
                }
            }
        }
        let elements = node.ty.elements();
        let large = cone.leaves.iter().map(|&l| graph.ty(l)).filter(|t| t.elements() * SMALL > elements);
        let read: usize = large.map(TensorType::bytes).sum();
        let fits = cone.operations <= MOST_OPERATIONS && cone.leaves.len() <= MOST_LEAVES && read <= node.ty.bytes();
        cones.push(fits.then_some(cone));
    }
    cones.into_iter().map(|c| c.is_some()).collect()
}
