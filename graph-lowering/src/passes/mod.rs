//! Passes: from a graph to a better one with the same meaning. Every pass gives a new graph; the verifier runs after each.
//!
//! | pass | what it does |
//! |---|---|
//! | [`simplify`](fn@simplify) | folds what is known, drops views that change nothing, merges equal nodes, drops unused ones |
//! | [`decompose`](fn@decompose) | rewrites composite primitives into others |
//! | [`mod@partition`] | cuts a joint graph of values and gradients in two |
//! | [`join_parts`](fn@join_parts) | makes sums of padded parts concatenations |

mod decompose;
mod join_parts;
pub mod partition;
mod simplify;

use crate::error::{Error, Result};
use crate::graph::{Graph, NodeId, verify};
use tilewright_compiler::entity::Entity;

pub use decompose::{decompose, expand_attention};
pub use join_parts::join_parts;
pub use simplify::simplify;

/// All passes before lowering.
///
/// # Errors
/// [`Error::Verify`] if a pass broke a rule.
pub fn optimise(graph: &Graph) -> Result<Graph> {
    verify(graph, "capture")?;
    let graph = checked(simplify(graph)?, "simplify")?;
    let graph = checked(decompose(&graph)?, "decompose")?;
    let graph = checked(join_parts(&graph)?, "join_parts")?;
    checked(simplify(&graph)?, "simplify")
}

fn checked(graph: Graph, stage: &str) -> Result<Graph> {
    if cfg!(debug_assertions) {
        verify(&graph, stage)?;
    }
    Ok(graph)
}

/// Which nodes an output needs.
pub(crate) fn live(graph: &Graph) -> Vec<bool> {
    let mut live = vec![false; graph.nodes.len()];
    for o in &graph.outputs {
        live[o.index()] = true;
    }
    for (id, node) in graph.nodes.iter().rev() {
        if live[id.index()] {
            for a in &node.args {
                live[a.index()] = true;
            }
        }
    }
    live
}

/// Where old nodes went.
struct Moved(Vec<Option<NodeId>>);

impl Moved {
    fn new(graph: &Graph) -> Self {
        Self(vec![None; graph.nodes.len()])
    }

    fn get(&self, old: NodeId) -> Result<NodeId> {
        self.0[old.index()].ok_or_else(|| Error::Internal(format!("{old} was dropped, but is used")))
    }

    fn set(&mut self, old: NodeId, new: NodeId) {
        self.0[old.index()] = Some(new);
    }
}
