//! The interpreter: the meaning of a graph, on the host.

use super::{Graph, NodeId};
use crate::error::{Error, Result};
use crate::literal::Literal;
use crate::prim::Op;
use std::sync::Arc;
use tilewright_compiler::entity::Entity;

/// The graph's results for these arguments.
///
/// # Errors
/// [`Error::Tensor`] for arguments of other types than the graph's, or for an index out of range.
pub fn interpret(graph: &Graph, args: &[Arc<Literal>]) -> Result<Vec<Arc<Literal>>> {
    let mut values: Vec<Option<Arc<Literal>>> = vec![None; graph.nodes.len()];
    if args.len() != graph.inputs.len() {
        return Err(Error::Internal(format!("{} arguments for {} inputs", args.len(), graph.inputs.len())));
    }
    for (&input, arg) in graph.inputs.iter().zip(args) {
        if arg.ty() != graph.ty(input) {
            return Err(Error::Internal(format!(
                "argument of type {} for input of type {}",
                arg.ty(),
                graph.ty(input)
            )));
        }
        values[input.index()] = Some(arg.clone());
    }
    // A value is dropped after its last use, so that memory is bounded by what is alive.
    let mut last: Vec<usize> = vec![0; graph.nodes.len()];
    for (id, node) in graph.nodes.iter() {
        for a in &node.args {
            last[a.index()] = id.index();
        }
    }
    for &o in &graph.outputs {
        last[o.index()] = usize::MAX;
    }
    for (id, node) in graph.nodes.iter() {
        if node.op != Op::Input {
            let operands = node
                .args
                .iter()
                .map(|a| values[a.index()].as_deref().ok_or_else(|| Error::Internal(format!("{a} is not alive"))))
                .collect::<Result<Vec<_>>>()?;
            let value = node.op.eval(&operands, &node.ty).map_err(|m| Error::tensor(node.loc, m))?;
            values[id.index()] = Some(Arc::new(value));
        }
        for a in &node.args {
            if last[a.index()] == id.index() {
                values[a.index()] = None;
            }
        }
    }
    let take = |&o: &NodeId| values[o.index()].clone().ok_or_else(|| Error::Internal(format!("{o} is not alive")));
    graph.outputs.iter().map(take).collect()
}
