//! Cutting a joint graph of values and gradients in two: what runs forward, and what runs when gradients are asked for.
//!
//! Everything that does not depend on the gradients coming in is computable in either half. What the second half needs of it is
//! either *saved* by the first or computed again: views, casts, pointwise functions and made tensors (random numbers among them, which
//! are functions of a key) may be computed again from what is saved; reductions, products, attention, gathers and scatters may not, and
//! so are saved if they are needed. Among all such choices the one that saves the fewest bytes is taken: a minimum cut. Arguments
//! cost nothing, for the caller has them.

use super::Moved;
use crate::error::Result;
use crate::graph::{Graph, Node, NodeId};
use crate::prim::{Class, Op};
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use tilewright_compiler::entity::Entity;

/// The two halves of a joint graph.
#[derive(Clone, PartialEq, Debug)]
pub struct Halves {
    /// Takes the arguments; gives the values, then what is saved that is no argument.
    pub forward: Graph,
    /// Takes what is saved (arguments, then the rest), then the gradients of the values; gives those of the arguments.
    pub backward: Graph,
    /// Which arguments the second half takes, by their place among the first half's.
    pub arguments: Vec<usize>,
}

/// Cuts `joint`, whose inputs `seeds` are the gradients coming in and whose first `values` outputs are the values.
///
/// # Errors
/// A broken invariant.
pub fn partition(joint: &Graph, values: usize, seeds: std::ops::Range<usize>) -> Result<Halves> {
    let n = joint.nodes.len();
    let mut late = vec![false; n];
    for &i in &joint.inputs[seeds.clone()] {
        late[i.index()] = true;
    }
    for (id, node) in joint.nodes.iter() {
        late[id.index()] |= node.args.iter().any(|a| late[a.index()]);
    }
    let (outputs, gradients) = joint.outputs.split_at(values);
    // What the second half needs of the first.
    let mut needed: BTreeSet<NodeId> = gradients.iter().copied().filter(|g| !late[g.index()]).collect();
    let live = super::live(joint);
    for (id, node) in joint.nodes.iter() {
        if late[id.index()] && live[id.index()] {
            needed.extend(node.args.iter().copied().filter(|a| !late[a.index()]));
        }
    }
    let saved = minimum_cut(joint, &needed);
    let is_input = |id: &NodeId| joint.nodes[*id].op == Op::Input;
    let (saved_inputs, kept): (Vec<NodeId>, Vec<NodeId>) = saved.into_iter().partition(is_input);
    let first_inputs: Vec<NodeId> =
        joint.inputs.iter().enumerate().filter(|(i, _)| !seeds.contains(i)).map(|(_, &n)| n).collect();
    let forward = extract(joint, &first_inputs, &[outputs, &kept].concat())?;
    let second_inputs = [&saved_inputs, &kept, &joint.inputs[seeds]].concat();
    let backward = extract(joint, &second_inputs, gradients)?;
    let place: HashMap<NodeId, usize> = first_inputs.iter().enumerate().map(|(i, &n)| (n, i)).collect();
    Ok(Halves { forward, backward, arguments: saved_inputs.iter().filter_map(|n| place.get(n).copied()).collect() })
}

/// May the second half compute this again?
fn again(node: &Node) -> bool {
    matches!(node.op.class(), Class::View | Class::Create | Class::Pointwise)
}

/// The nodes from which all of `needed` can be computed again that have the fewest bytes together.
fn minimum_cut(joint: &Graph, needed: &BTreeSet<NodeId>) -> Vec<NodeId> {
    // A node is an edge from its front (2 i) to its back (2 i + 1), as wide as it has bytes; what it is made of is an edge without
    // limit from the operand's back to its front. What may not be computed again hangs on the source, what is needed on the sink.
    let n = joint.nodes.len();
    let (source, sink) = (2 * n, 2 * n + 1);
    let mut flow = Flow::new(2 * n + 2);
    let mut reached = vec![false; n];
    let mut todo: Vec<NodeId> = needed.iter().copied().collect();
    while let Some(id) = todo.pop() {
        if std::mem::replace(&mut reached[id.index()], true) {
            continue;
        }
        let node = &joint.nodes[id];
        let (front, back) = (2 * id.index(), 2 * id.index() + 1);
        let width = match node.op.class() {
            // Not 0, so that nothing is kept for nothing.
            Class::Input => 1,
            Class::Create => 0,
            _ => 2 + node.ty.bytes() as u64,
        };
        flow.edge(front, back, width);
        if again(node) {
            for &a in &node.args {
                flow.edge(2 * a.index() + 1, front, u64::MAX);
                todo.push(a);
            }
        } else {
            flow.edge(source, front, u64::MAX);
        }
        if needed.contains(&id) {
            flow.edge(back, sink, u64::MAX);
        }
    }
    flow.run(source, sink);
    // The cut nearest to the sink: nodes whose front cannot reach it any more, though their back can.
    let reaches = flow.reaching(sink);
    let cut = |id: &NodeId| reached[id.index()] && reaches[2 * id.index() + 1] && !reaches[2 * id.index()];
    let all = joint.nodes.iter().map(|(id, _)| id).filter(cut);
    all.filter(|&id| joint.nodes[id].op.class() != Class::Create).collect()
}

/// A flow network: Dinitz's algorithm, which sends along all shortest ways at once.
struct Flow {
    /// Edges out of each vertex; each edge lies beside its reverse.
    out: Vec<Vec<usize>>,
    to: Vec<usize>,
    left: Vec<u64>,
}

impl Flow {
    fn new(vertices: usize) -> Self {
        Self { out: vec![Vec::new(); vertices], to: Vec::new(), left: Vec::new() }
    }

    fn edge(&mut self, from: usize, to: usize, width: u64) {
        for (a, b, width) in [(from, to, width), (to, from, 0)] {
            self.out[a].push(self.to.len());
            self.to.push(b);
            self.left.push(width);
        }
    }

    /// Sends as much as there is room for.
    fn run(&mut self, source: usize, sink: usize) {
        loop {
            let level = self.levels(source);
            if level[sink] == usize::MAX {
                return;
            }
            // The next edge to try of each vertex: what led nowhere in this round is not tried again.
            let mut next = vec![0; self.out.len()];
            let mut path: Vec<usize> = Vec::new();
            loop {
                let at = path.last().map_or(source, |&e| self.to[e]);
                if at == sink {
                    let most = path.iter().map(|&e| self.left[e]).min().unwrap_or(0);
                    // A way without limit: what may not be computed again is always as wide as its bytes, so there is none.
                    for &e in &path {
                        if self.left[e] != u64::MAX {
                            self.left[e] -= most;
                        }
                        self.left[e ^ 1] = self.left[e ^ 1].saturating_add(most);
                    }
                    // Back to where there is room left.
                    let Some(full) = path.iter().position(|&e| self.left[e] == 0) else { return };
                    path.truncate(full);
                    continue;
                }
                let onward = |e: usize| self.left[e] > 0 && level[self.to[e]] == level[at] + 1;
                match self.out[at][next[at]..].iter().position(|&e| onward(e)) {
                    Some(i) => {
                        next[at] += i;
                        path.push(self.out[at][next[at]]);
                    }
                    None => {
                        next[at] = self.out[at].len();
                        let Some(e) = path.pop() else { break };
                        next[self.to[e ^ 1]] += 1;
                    }
                }
            }
        }
    }

    /// How many edges with room left lead to each vertex, at least; the greatest number if none do.
    fn levels(&self, source: usize) -> Vec<usize> {
        let mut level = vec![usize::MAX; self.out.len()];
        level[source] = 0;
        let mut queue = VecDeque::from([source]);
        while let Some(v) = queue.pop_front() {
            for &e in &self.out[v] {
                let to = self.to[e];
                if self.left[e] > 0 && level[to] == usize::MAX {
                    level[to] = level[v] + 1;
                    queue.push_back(to);
                }
            }
        }
        level
    }

    /// The vertices from which there is room left on a way to the sink.
    fn reaching(&self, sink: usize) -> Vec<bool> {
        let mut seen = vec![false; self.out.len()];
        let mut todo = vec![sink];
        while let Some(v) = todo.pop() {
            if std::mem::replace(&mut seen[v], true) {
                continue;
            }
            todo.extend(self.out[v].iter().filter(|&&e| self.left[e ^ 1] > 0).map(|&e| self.to[e]));
        }
        seen
    }
}

/// The part of a graph that computes `outputs` from `inputs`.
fn extract(graph: &Graph, inputs: &[NodeId], outputs: &[NodeId]) -> Result<Graph> {
    let mut wanted = vec![false; graph.nodes.len()];
    let given: HashSet<NodeId> = inputs.iter().copied().collect();
    let mut todo = outputs.to_vec();
    while let Some(id) = todo.pop() {
        if !std::mem::replace(&mut wanted[id.index()], true) && !given.contains(&id) {
            todo.extend(&graph.nodes[id].args);
        }
    }
    let mut part = Graph::new();
    let mut moved = Moved::new(graph);
    for &i in inputs {
        let node = part.add_input(graph.ty(i).clone(), graph.nodes[i].loc);
        moved.set(i, node);
    }
    for (id, node) in graph.nodes.iter() {
        if wanted[id.index()] && !given.contains(&id) {
            let args = node.args.iter().map(|&a| moved.get(a)).collect::<Result<Vec<_>>>()?;
            let new = part.nodes.push(Node { args, ..node.clone() });
            moved.set(id, new);
        }
    }
    part.outputs = outputs.iter().map(|&o| moved.get(o)).collect::<Result<_>>()?;
    Ok(part)
}
