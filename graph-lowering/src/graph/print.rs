//! The text of a graph: one line a node, the same for the same graph.

use super::Graph;
use std::fmt::Write;

/// The graph as text.
pub fn text(graph: &Graph) -> String {
    let mut out = String::new();
    let list =
        |ids: &[super::NodeId]| ids.iter().map(|&i| format!("{i}: {}", graph.ty(i))).collect::<Vec<_>>().join(", ");
    // Writing to a String cannot fail.
    let _ = writeln!(out, "graph({}) {{", list(&graph.inputs));
    for (id, node) in graph.nodes.iter() {
        if node.op == crate::prim::Op::Input {
            continue;
        }
        let args: Vec<_> = node.args.iter().map(ToString::to_string).collect();
        let _ = writeln!(out, "  {id}: {} = {}({})", node.ty, node.op, args.join(", "));
    }
    let results: Vec<_> = graph.outputs.iter().map(ToString::to_string).collect();
    let _ = write!(out, "  return {}\n}}", results.join(", "));
    out
}
