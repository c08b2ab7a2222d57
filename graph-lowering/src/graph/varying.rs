//! Numbers of a graph that are others from capture to capture: extents of arguments, and what follows from them.
//!
//! Kernels take such numbers as parameters. Nothing depends on this being right: a number that varies but is not known to
//! gives another kernel for each of its values; one that is thought to vary but does not is a needless parameter.

use super::{Graph, NodeId, TensorType};
use crate::literal::word_of;
use crate::prim::{Broadcast, Class, Full, Iota, Op, Pad, Reshape, ScatterAdd, Slice};
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use tilewright_compiler::DType;
use tilewright_compiler::entity::Entity;

/// Which numbers of a graph vary. Extents of 0 and 1 never do: what they mean for a kernel is too special.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Varying {
    dims: BTreeSet<(NodeId, usize)>,
    words: BTreeSet<NodeId>,
}

impl Varying {
    /// Does nothing vary?
    pub fn is_empty(&self) -> bool {
        self.dims.is_empty() && self.words.is_empty()
    }

    /// Does the extent of this dimension?
    pub fn dim(&self, node: NodeId, dim: usize) -> bool {
        self.dims.contains(&(node, dim))
    }

    /// Does any extent of the node?
    pub fn any_dim(&self, node: NodeId) -> bool {
        self.dims.range((node, 0)..=(node, usize::MAX)).next().is_some()
    }

    /// Does the number of this `full`?
    pub fn word(&self, node: NodeId) -> bool {
        self.words.contains(&node)
    }

    /// What varies here or there.
    pub fn extend(&mut self, other: &Varying) {
        self.dims.extend(&other.dims);
        self.words.extend(&other.words);
    }

    fn set(&mut self, graph: &Graph, node: NodeId, dim: usize) {
        if graph.ty(node).dims.get(dim).is_some_and(|&d| d > 1) {
            self.dims.insert((node, dim));
        }
    }
}

/// The numbers of a graph in which graphs of one [`skeleton`] may differ.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Numbers {
    dims: Vec<Vec<usize>>,
    words: Vec<Option<u64>>,
}

impl Numbers {
    /// Those of a graph.
    pub fn of(graph: &Graph) -> Self {
        let word = |op: &Op| if let Op::Full(f) = op { Some(f.word) } else { None };
        Self {
            dims: graph.nodes.iter().map(|(_, n)| n.ty.dims.clone()).collect(),
            words: graph.nodes.iter().map(|(_, n)| word(&n.op)).collect(),
        }
    }

    /// What of a graph of the same skeleton differs from these numbers, which become the graph's; extents of 0 and 1, which
    /// are compiled for, stay what they were.
    pub fn compare(&mut self, graph: &Graph) -> Varying {
        let mut varying = Varying::default();
        let new = Self::of(graph);
        let sizes = |n: &Self| n.dims.iter().map(Vec::len).collect::<Vec<_>>();
        if sizes(self) != sizes(&new) {
            *self = new;
            return varying;
        }
        for (id, node) in graph.nodes.iter() {
            for (i, (old, &d)) in self.dims[id.index()].iter_mut().zip(&node.ty.dims).enumerate() {
                if d > 1 {
                    if *old > 1 && *old != d {
                        varying.set(graph, id, i);
                    }
                    *old = d;
                }
            }
            if self.words[id.index()] != new.words[id.index()] && node.ty.dtype != DType::Bool {
                varying.words.insert(id);
            }
        }
        self.words = new.words;
        varying
    }
}

/// A hash of everything in a graph but its numbers: graphs of one skeleton are the same function at other extents.
pub fn skeleton(graph: &Graph) -> u64 {
    let mut h = DefaultHasher::new();
    for (_, node) in graph.nodes.iter() {
        without_numbers(&node.op).hash(&mut h);
        node.args.hash(&mut h);
        (node.ty.dtype, node.ty.rank()).hash(&mut h);
    }
    (&graph.inputs, &graph.outputs).hash(&mut h);
    h.finish()
}

fn without_numbers(op: &Op) -> Op {
    let none = Vec::new;
    match op {
        Op::Full(f) => Op::Full(Full { dims: none(), word: 0, ..f.clone() }),
        Op::Iota(i) => Op::Iota(Iota { dims: none(), ..i.clone() }),
        Op::Reshape(_) => Op::Reshape(Reshape { dims: none() }),
        Op::Broadcast(b) => Op::Broadcast(Broadcast { dims: none(), ..b.clone() }),
        Op::Slice(_) => Op::Slice(Slice { start: none(), limit: none(), step: none() }),
        Op::Pad(p) => Op::Pad(Pad { low: none(), high: none(), interior: none(), ..p.clone() }),
        Op::ScatterAdd(_) => Op::ScatterAdd(ScatterAdd { rows: 0 }),
        op => op.clone(),
    }
}

/// What most likely varies if these dimensions of inputs (by the input's place among them) do: extents by the rules of
/// shapes, and where a view or a made-up tensor states an extent anew, that which is equal to one that varies.
pub fn propagate(graph: &Graph, seeds: &BTreeSet<(usize, usize)>) -> Varying {
    let mut v = Varying::default();
    for &(input, dim) in seeds {
        if let Some(&node) = graph.inputs.get(input) {
            v.set(graph, node, dim);
        }
    }
    let mut values: BTreeSet<usize> = v.dims.iter().map(|&(n, i)| graph.ty(n).dims[i]).collect();
    if values.is_empty() {
        return v;
    }
    // Numbers of elements that sums go over.
    let mut counts = BTreeSet::new();
    for (id, node) in graph.nodes.iter() {
        if node.op != Op::Input {
            for dim in of_node(graph, id, &v, &values) {
                v.set(graph, id, dim);
            }
        }
        values.extend((0..node.ty.rank()).filter(|&i| v.dim(id, i)).map(|i| node.ty.dims[i]));
        if let Op::Reduce(r) = &node.op
            && r.axes.iter().any(|&a| v.dim(node.args[0], a))
        {
            counts.insert(r.axes.iter().map(|&a| graph.ty(node.args[0]).dims[a]).product::<usize>());
        }
    }
    counts.extend(&values);
    for (id, node) in graph.nodes.iter() {
        let Op::Full(f) = &node.op else { continue };
        let is = |x: f64| word_of(f.dtype, x) == f.word;
        // A mean divides by the count or multiplies with its inverse, a variance by one less.
        let derived = |&n: &usize| n > 1 && (is(n as f64) || is(1.0 / n as f64) || (n > 2 && is(n as f64 - 1.0)));
        if f.dtype != DType::Bool && f.word != 0 && counts.iter().any(derived) {
            v.words.insert(id);
        }
    }
    v
}

/// The dimensions of a node that vary with its operands'.
fn of_node(graph: &Graph, id: NodeId, v: &Varying, values: &BTreeSet<usize>) -> Vec<usize> {
    let node = &graph.nodes[id];
    let rank = node.ty.rank();
    let arg = |i: usize| node.args[i];
    let varies = |i: usize, dim: usize| v.dim(arg(i), dim);
    let named = |dim: usize| values.contains(&node.ty.dims[dim]);
    let select = |f: &dyn Fn(usize) -> bool| (0..rank).filter(|&d| f(d)).collect();
    match &node.op {
        Op::Reduce(r) => (0..graph.ty(arg(0)).rank())
            .filter(|d| !r.axes.contains(d))
            .enumerate()
            .filter(|&(_, d)| varies(0, d))
            .map(|(new, _)| new)
            .collect(),
        Op::ArgReduce(r) => select(&|d| varies(0, d + usize::from(d >= r.axis))),
        Op::Dot(_) => select(&|d| if d + 1 == rank { varies(1, d) } else { varies(0, d) }),
        Op::Gather(_) => {
            let at = graph.ty(arg(1)).rank();
            select(&|d| if d < at { varies(1, d) } else { varies(0, d - at + 1) })
        }
        Op::Permute(p) => select(&|d| varies(0, p.perm[d])),
        Op::Broadcast(b) => select(&|d| match b.axes.iter().position(|&a| a == d) {
            Some(i) if graph.ty(arg(0)).dims[i] == node.ty.dims[d] => varies(0, i),
            _ => named(d),
        }),
        // A part that reaches the end, or has an extent that varies.
        Op::Slice(s) => select(&|d| varies(0, d) && (s.limit[d] == graph.ty(arg(0)).dims[d] || named(d))),
        Op::Cat(_) => select(&|d| (0..node.args.len()).any(|i| varies(i, d))),
        Op::Pad(_) => select(&|d| varies(0, d)),
        Op::Reshape(_) => reshaped(graph.ty(arg(0)), &node.ty, &|d| varies(0, d), &named),
        op => match op.class() {
            Class::Pointwise => select(&|d| (0..node.args.len()).any(|i| varies(i, d))),
            _ => select(&named),
        },
    }
}

/// Extents of a reshape that vary: those made of ones that do.
fn reshaped(
    from: &TensorType,
    to: &TensorType,
    varies: &dyn Fn(usize) -> bool,
    named: &dyn Fn(usize) -> bool,
) -> Vec<usize> {
    let long = |ty: &TensorType| (0..ty.rank()).filter(|&i| ty.dims[i] != 1).collect::<Vec<_>>();
    let (source, target) = (long(from), long(to));
    let mut result = Vec::new();
    let (mut i, mut j) = (0, 0);
    while i < source.len() && j < target.len() {
        // The smallest groups of equal products.
        let (first_i, first_j) = (i, j);
        let (mut p, mut q) = (from.dims[source[i]], to.dims[target[j]]);
        (i, j) = (i + 1, j + 1);
        while p != q {
            let (product, next, ty) = if p < q {
                i += 1;
                (&mut p, source.get(i - 1), from)
            } else {
                j += 1;
                (&mut q, target.get(j - 1), to)
            };
            let Some(&next) = next else { return result };
            *product = product.saturating_mul(ty.dims[next]);
        }
        if !source[first_i..i].iter().any(|&d| varies(d)) {
            continue;
        }
        let group = &target[first_j..j];
        let known: Vec<usize> = group.iter().copied().filter(|&d| named(d)).collect();
        // If none is one known to vary, the outermost takes up the rest.
        result.extend(if group.len() == 1 || known.is_empty() { vec![group[0]] } else { known });
    }
    result
}
