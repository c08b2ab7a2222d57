//! The verifier of graphs. The rules:
//!
//! 1. every operand is a node of the graph, before the node that uses it;
//! 2. the inputs are distinct `input` nodes, and every `input` node is among them;
//! 3. every other node has the type its primitive infers from its operands;
//! 4. every output is a node of the graph;
//! 5. a tensor has at most 8 dimensions and at most 2^31 - 1 elements in each.

use super::Graph;
use crate::error::{Error, Result};
use crate::prim::Op;
use std::collections::HashSet;

/// Checks the rules.
///
/// # Errors
/// [`Error::Verify`] with every broken rule.
pub fn verify(graph: &Graph, stage: &str) -> Result<()> {
    let mut problems = Vec::new();
    for (id, node) in graph.nodes.iter() {
        let what = format!("{id} = {}", node.op);
        if let Some(bad) = node.args.iter().find(|a| **a >= id) {
            problems.push(format!("{what}: operand {bad} does not come before it"));
            continue;
        }
        if let Err(message) = check_size(&node.ty) {
            problems.push(format!("{what}: {message}"));
        }
        if node.op == Op::Input {
            if !graph.inputs.contains(&id) {
                problems.push(format!("{what}: not in the list of inputs"));
            }
            continue;
        }
        let types: Vec<_> = node.args.iter().map(|&a| graph.ty(a)).collect();
        match node.op.infer(&types) {
            Ok(ty) if ty == node.ty => {}
            Ok(ty) => problems.push(format!("{what}: has type {}, but its operands give {ty}", node.ty)),
            Err(message) => problems.push(format!("{what}: {message}")),
        }
    }
    let mut seen = HashSet::new();
    for &input in &graph.inputs {
        if !graph.nodes.get(input).is_some_and(|n| n.op == Op::Input) {
            problems.push(format!("input {input} is no `input` node"));
        }
        if !seen.insert(input) {
            problems.push(format!("input {input} is listed twice"));
        }
    }
    for &output in &graph.outputs {
        if graph.nodes.get(output).is_none() {
            problems.push(format!("output {output} is no node of the graph"));
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(Error::Verify { stage: stage.to_owned(), problems }) }
}

/// Why a tensor of this type is not supported, if it is not.
pub(crate) fn check_size(ty: &super::TensorType) -> std::result::Result<(), String> {
    if ty.rank() > tilewright_runtime::MAX_RANK {
        return Err(format!(
            "{ty} has {} dimensions; at most {} are supported",
            ty.rank(),
            tilewright_runtime::MAX_RANK
        ));
    }
    let elements = ty.dims.iter().try_fold(1usize, |n, &d| n.checked_mul(d.max(1)));
    if elements.is_none_or(|n| i32::try_from(n).is_err()) {
        return Err(format!("{ty} has more than {} elements", i32::MAX));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{NodeId, TensorType};
    use tilewright_compiler::DType;
    use tilewright_compiler::entity::Entity;
    use tilewright_compiler::error::Loc;
    use tilewright_compiler::tile::UnaryOp;

    #[test]
    fn broken_rules_are_all_reported() {
        let mut g = Graph::new();
        let x = g.add_input(TensorType::new(DType::F32, [2]), Loc::UNKNOWN);
        let y = g.add(Op::Unary(UnaryOp::Exp), vec![x], Loc::UNKNOWN).unwrap();
        g.outputs.push(y);
        assert_eq!(verify(&g, "capture"), Ok(()));
        g.nodes[y].ty.dims = vec![3];
        g.outputs.push(NodeId::new(9));
        g.inputs.push(x);
        let text = verify(&g, "capture").unwrap_err().to_string();
        for part in ["has type f32[3], but its operands give f32[2]", "n9 is no node", "listed twice"] {
            assert!(text.contains(part), "{text}");
        }
        g.nodes[y].args = vec![y];
        assert!(verify(&g, "capture").unwrap_err().to_string().contains("does not come before"));
    }
}
