//! Sums of tensors that are each padded with zeros to a place of their own, as the gradients of a tensor's slices are: they are the
//! parts put side by side.

use super::Moved;
use crate::error::Result;
use crate::graph::{Graph, Node, NodeId};
use crate::prim::{Cat, Op, Pad};
use tilewright_compiler::tile::BinaryOp;

/// Most parts of one tensor.
const MOST_PARTS: usize = 64;

/// The graph with such sums as concatenations. (A part's -0 stays, where adding 0 would have made it 0.)
///
/// # Errors
/// A broken invariant.
pub fn join_parts(graph: &Graph) -> Result<Graph> {
    let mut new = Graph::new();
    let mut moved = Moved::new(graph);
    for (id, node) in graph.nodes.iter() {
        let (op, old) = match parts(graph, id) {
            Some((cat, parts)) => (Op::Cat(cat), parts),
            None => (node.op.clone(), node.args.clone()),
        };
        let args = old.into_iter().map(|a| moved.get(a)).collect::<Result<Vec<_>>>()?;
        moved.set(id, new.nodes.push(Node { op, args, ty: node.ty.clone(), loc: node.loc }));
    }
    new.inputs = graph.inputs.iter().map(|&i| moved.get(i)).collect::<Result<_>>()?;
    new.outputs = graph.outputs.iter().map(|&o| moved.get(o)).collect::<Result<_>>()?;
    Ok(new)
}

/// The parts whose sum a node is, in order, if they fill it along one axis.
fn parts(graph: &Graph, node: NodeId) -> Option<(Cat, Vec<NodeId>)> {
    if graph.nodes[node].op != Op::Binary(BinaryOp::Add) {
        return None;
    }
    let mut pads: Vec<(&Pad, NodeId)> = Vec::new();
    let mut stack = vec![node];
    while let Some(n) = stack.pop() {
        let data = &graph.nodes[n];
        match &data.op {
            Op::Binary(BinaryOp::Add) => stack.extend(&data.args),
            Op::Pad(pad) if pad.word == 0 && pad.interior.iter().all(|&i| i == 0) => pads.push((pad, data.args[0])),
            _ => return None,
        }
        if pads.len() + stack.len() > MOST_PARTS {
            return None;
        }
    }
    let dims = &graph.ty(node).dims;
    let along = |p: &Pad, a: usize| p.low[a] != 0 || p.high[a] != 0;
    let axis = (0..dims.len()).find(|&a| pads.iter().any(|(p, _)| along(p, a)))?;
    if pads.iter().any(|(p, _)| (0..dims.len()).any(|a| a != axis && along(p, a))) {
        return None;
    }
    pads.sort_by_key(|(p, _)| p.low[axis]);
    let mut end = 0;
    for (pad, part) in &pads {
        if pad.low[axis] != end {
            return None;
        }
        end += graph.ty(*part).dims[axis];
    }
    (end == dims[axis]).then(|| (Cat { axis }, pads.into_iter().map(|(_, part)| part).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::TensorType;
    use tilewright_compiler::DType;
    use tilewright_compiler::error::Loc;

    /// The sum of three tensors of extents `[2, n]`, each padded along axis 1 to begin at a given place of 9.
    fn sum(places: [(usize, usize); 3]) -> Graph {
        let mut g = Graph::new();
        let mut total: Option<NodeId> = None;
        for (start, n) in places {
            let x = g.add_input(TensorType::new(DType::F32, [2, n]), Loc::UNKNOWN);
            let pad = Pad { low: vec![0, start], high: vec![0, 9 - start - n], interior: vec![0, 0], word: 0 };
            let part = g.add(Op::Pad(pad), vec![x], Loc::UNKNOWN).unwrap();
            total = Some(match total {
                None => part,
                Some(t) => g.add(Op::Binary(BinaryOp::Add), vec![t, part], Loc::UNKNOWN).unwrap(),
            });
        }
        g.outputs = total.into_iter().collect();
        g
    }

    #[test]
    fn parts_that_fill_the_tensor_are_put_side_by_side() {
        let g = join_parts(&sum([(4, 2), (0, 4), (6, 3)])).unwrap();
        crate::graph::verify(&g, "join_parts").unwrap();
        let last = &g.nodes[g.outputs[0]];
        assert_eq!(last.op, Op::Cat(Cat { axis: 1 }));
        assert_eq!(last.args, [g.inputs[1], g.inputs[0], g.inputs[2]]);
    }

    #[test]
    fn parts_that_overlap_or_leave_gaps_are_added() {
        for places in [[(4, 3), (0, 4), (6, 3)], [(4, 2), (0, 3), (6, 3)], [(4, 2), (0, 4), (6, 2)]] {
            let g = sum(places);
            assert_eq!(join_parts(&g).unwrap(), g, "{places:?}");
        }
    }
}
