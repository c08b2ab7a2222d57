//! Composite primitives in terms of others.

use crate::autodiff::replay;
use crate::error::Result;
use crate::fuse::attention::Kernels;
use crate::graph::{Graph, Node};
use crate::prim::{Class, Op, ScatterAdd};
use crate::tensor::trace;
use tilewright_compiler::entity::Entity;
use tilewright_compiler::error::Loc;
use tilewright_compiler::tile::rules::dot_accumulator;

/// The graph without composite primitives.
///
/// # Errors
/// A broken invariant.
pub fn decompose(graph: &Graph) -> Result<Graph> {
    let kernels = Kernels::of(graph);
    rewrite(graph, &|node| needs(graph, &kernels, node))
}

/// The graph with attention and its gradients in terms of other primitives.
///
/// # Errors
/// A broken invariant.
pub fn expand_attention(graph: &Graph) -> Result<Graph> {
    decompose(&rewrite(graph, &|node| node.op.class() == Class::Attention)?)
}

/// The graph with the nodes of a kind decomposed.
fn rewrite(graph: &Graph, needs: &dyn Fn(&Node) -> bool) -> Result<Graph> {
    if !graph.nodes.iter().any(|(_, n)| needs(n)) {
        return Ok(graph.clone());
    }
    let types: Vec<_> = graph.inputs.iter().map(|&i| graph.ty(i).clone()).collect();
    let ((), captured) = trace::capture(&types, &[], Loc::UNKNOWN, |args| {
        let values = replay(graph, args, &|node, operands| {
            if needs(node) { node.op.primitive().decompose(operands) } else { None }
        });
        let outputs = graph.outputs.iter().map(|o| values[o.index()].clone()).collect();
        ((), outputs)
    })?;
    Ok(captured.graph)
}

fn needs(graph: &Graph, kernels: &Kernels<'_>, node: &Node) -> bool {
    match node.op.class() {
        Class::Composite => true,
        Class::Reduce => matches!(&node.op, Op::Reduce(r) if r.is_split(graph.ty(node.args[0]))),
        Class::Scatter => ScatterAdd::is_rewritten(graph.ty(node.args[1])),
        // Without the attention that leaves them there is no kernel for rows; nor is there for more than a tile can hold.
        Class::Attention => !kernels.has(node),
        Class::Dot => dot_accumulator(graph.ty(node.args[0]).dtype).is_none(),
        _ => false,
    }
}
