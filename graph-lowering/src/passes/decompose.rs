//! Composite primitives in terms of others.

use crate::autodiff::replay;
use crate::error::Result;
use crate::graph::Graph;
use crate::tensor::trace;
use tilewright_compiler::entity::Entity;
use tilewright_compiler::error::Loc;

/// The graph without composite primitives.
///
/// # Errors
/// A broken invariant.
pub fn decompose(graph: &Graph) -> Result<Graph> {
    let wanted = |g: &Graph| g.nodes.iter().any(|(_, n)| needs(g, n));
    if !wanted(graph) {
        return Ok(graph.clone());
    }
    let types: Vec<_> = graph.inputs.iter().map(|&i| graph.ty(i).clone()).collect();
    let ((), captured) = trace::capture(&types, Loc::UNKNOWN, |args| {
        let values = replay(graph, args, &|node, operands| {
            if needs(graph, node) { node.op.primitive().decompose(operands) } else { None }
        });
        let outputs = graph.outputs.iter().map(|o| values[o.index()].clone()).collect();
        ((), outputs)
    })?;
    Ok(captured.graph)
}

fn needs(graph: &Graph, node: &crate::graph::Node) -> bool {
    use crate::prim::{Class, Op, ScatterAdd};
    use tilewright_compiler::tile::rules::dot_accumulator;
    match node.op.class() {
        Class::Composite => true,
        Class::Reduce => matches!(&node.op, Op::Reduce(r) if r.is_split(graph.ty(node.args[0]))),
        Class::Scatter => ScatterAdd::is_rewritten(graph.ty(node.args[1])),
        Class::Dot => dot_accumulator(graph.ty(node.args[0]).dtype).is_none(),
        _ => false,
    }
}
