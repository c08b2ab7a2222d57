//! Host numbers that vary from call to call: inputs of the program rather than constants, so that another learning rate makes no
//! other program.
//!
//! A host number is a constant of the captured graph, wherever it went and whatever the function made of it. So it is the graphs that
//! are compared: one that differs from an earlier one in constants alone runs as the same program, with these constants as its
//! arguments. Nothing need be known of where a number came from, and a function that went another way because of it has another graph.

use crate::error::{Error, Result};
use crate::graph::{Graph, Node, NodeId, TensorType};
use crate::literal::Literal;
use crate::prim::{Broadcast, Full, Op, Reshape, Slice};
use crate::tensor::Tensor;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use tilewright_compiler::DType;
use tilewright_compiler::error::Loc;

/// A captured graph but for the numbers that may be inputs: equal for graphs that are equal otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Rest([u64; 2]);

/// May this node's number be an input? Truth values decide what is folded away.
fn number(node: &Node) -> Option<&Full> {
    match &node.op {
        Op::Full(f) if f.dtype != DType::Bool => Some(f),
        _ => None,
    }
}

/// The rest of a graph, and its numbers in order.
pub(super) fn split(graph: &Graph) -> (Rest, Vec<u64>) {
    // Two hashes of 64 bits, since what is taken for equal is run as equal.
    let mut hashes = [DefaultHasher::new(), DefaultHasher::new()];
    1u8.hash(&mut hashes[1]);
    let mut words = Vec::new();
    for (_, node) in graph.nodes.iter() {
        for h in &mut hashes {
            match number(node) {
                Some(f) => ("number", f.dtype, &f.dims).hash(h),
                None => node.op.hash(h),
            }
            (&node.args, node.ty.dtype, &node.ty.dims).hash(h);
        }
        words.extend(number(node).map(|f| f.word));
    }
    for h in &mut hashes {
        (&graph.inputs, &graph.outputs).hash(h);
    }
    (Rest(hashes.map(|h| h.finish())), words)
}

/// A hash of the rest of a graph without its extents either: graphs at other extents have the same numbers in the same order.
pub(super) fn at_any_extents(graph: &Graph) -> u64 {
    crate::graph::varying::skeleton(graph)
}

/// The graph with these of its numbers (by their place among all) as further inputs: a vector for each type.
///
/// # Errors
/// A broken invariant.
pub(super) fn as_inputs(graph: &Graph, which: &BTreeSet<usize>) -> Result<Graph> {
    let mut counts: BTreeMap<DType, usize> = BTreeMap::new();
    let mut places: HashMap<NodeId, usize> = HashMap::new();
    let numbers = graph.nodes.iter().filter_map(|(id, n)| Some((id, number(n)?)));
    for (i, (id, f)) in numbers.enumerate() {
        if which.contains(&i) {
            let count = counts.entry(f.dtype).or_default();
            places.insert(id, *count);
            *count += 1;
        }
    }
    let mut new = Graph::new();
    let vectors: BTreeMap<DType, NodeId> =
        counts.iter().map(|(&t, &n)| (t, new.add_input(TensorType::new(t, [n]), Loc::UNKNOWN))).collect();
    let mut moved: HashMap<NodeId, NodeId> = HashMap::new();
    let lost = || Error::Internal("a number has no place among the inputs".into());
    for (id, node) in graph.nodes.iter() {
        let add = |new: &mut Graph, op, arg| new.add(op, vec![arg], node.loc).map_err(Error::Internal);
        let value = match (places.get(&id), &node.op) {
            (Some(&i), Op::Full(f)) => {
                let vector = *vectors.get(&f.dtype).ok_or_else(lost)?;
                let one = Op::Slice(Slice { start: vec![i], limit: vec![i + 1], step: vec![1] });
                let one = add(&mut new, one, vector)?;
                let one = add(&mut new, Op::Reshape(Reshape { dims: vec![] }), one)?;
                add(&mut new, Op::Broadcast(Broadcast { dims: f.dims.clone(), axes: vec![] }), one)?
            }
            _ => {
                let args = node.args.iter().map(|a| moved.get(a).copied().ok_or_else(lost)).collect::<Result<_>>()?;
                new.nodes.push(Node { args, ..node.clone() })
            }
        };
        moved.insert(id, value);
    }
    let place = |n: &NodeId| moved.get(n).copied().ok_or_else(lost);
    new.inputs = graph.inputs.iter().map(place).chain(vectors.values().map(|&v| Ok(v))).collect::<Result<_>>()?;
    new.outputs = graph.outputs.iter().map(place).collect::<Result<_>>()?;
    Ok(new)
}

/// The values of these inputs.
pub(super) fn values(graph: &Graph, which: &BTreeSet<usize>) -> Vec<Tensor> {
    let mut words: BTreeMap<DType, Vec<u64>> = BTreeMap::new();
    for (i, f) in graph.nodes.iter().filter_map(|(_, n)| number(n)).enumerate() {
        if which.contains(&i) {
            words.entry(f.dtype).or_default().push(f.word);
        }
    }
    let vector = |(t, w): (DType, Vec<u64>)| Tensor::from(Literal::from_fn(TensorType::new(t, [w.len()]), |i| w[i]));
    words.into_iter().map(vector).collect()
}
