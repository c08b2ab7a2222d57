//! Folding, canonical views, merging of equal nodes, and dropping of unused ones, in one walk.

use super::{Moved, live};
use crate::error::{Error, Result};
use crate::graph::{Graph, Node, NodeId};
use crate::literal::Literal;
use crate::prim::{Broadcast, Class, Full, Op, Permute, Reshape, Slice};
use std::collections::HashMap;
use tilewright_compiler::DType;
use tilewright_compiler::entity::Entity;
use tilewright_compiler::tile::BinaryOp;

/// The graph, simplified.
///
/// # Errors
/// A broken invariant.
pub fn simplify(graph: &Graph) -> Result<Graph> {
    let live = live(graph);
    let mut new = Graph::new();
    let mut moved = Moved::new(graph);
    let mut known: HashMap<(Op, Vec<NodeId>), NodeId> = HashMap::new();
    for (id, node) in graph.nodes.iter() {
        if node.op == Op::Input {
            // Inputs stay, also those nobody needs: they are the function's arguments.
            let input = new.nodes.push(node.clone());
            moved.set(id, input);
            continue;
        }
        if !live[id.index()] {
            continue;
        }
        let args = node.args.iter().map(|&a| moved.get(a)).collect::<Result<Vec<_>>>()?;
        let mut node = Node { op: node.op.clone(), args, ty: node.ty.clone(), loc: node.loc };
        let result = loop {
            match rewrite(&new, &node) {
                Rewrite::Same => break None,
                Rewrite::Node(op, args) => (node.op, node.args) = (op, args),
                Rewrite::Value(value) => break Some(value),
            }
        };
        let result = match result {
            Some(value) => value,
            None => match known.get(&(node.op.clone(), node.args.clone())) {
                Some(&same) => same,
                None => {
                    let key = (node.op.clone(), node.args.clone());
                    let value = new.nodes.push(node);
                    known.insert(key, value);
                    value
                }
            },
        };
        if new.ty(result) != graph.ty(id) {
            return Err(Error::Internal(format!("simplifying {id} changed its type to {}", new.ty(result))));
        }
        moved.set(id, result);
    }
    new.inputs = graph.inputs.iter().map(|&i| moved.get(i)).collect::<Result<_>>()?;
    new.outputs = graph.outputs.iter().map(|&o| moved.get(o)).collect::<Result<_>>()?;
    Ok(new)
}

enum Rewrite {
    /// Nothing to do.
    Same,
    /// Another operation on other operands.
    Node(Op, Vec<NodeId>),
    /// A node there is already.
    Value(NodeId),
}

/// One step toward the simplest form of a node.
fn rewrite(graph: &Graph, node: &Node) -> Rewrite {
    let arg = |i: usize| &graph.nodes[node.args[i]];
    let full = |i: usize| match &arg(i).op {
        Op::Full(f) => Some(f),
        _ => None,
    };
    match &node.op {
        // Views of one number repeated are that number repeated.
        Op::Reshape(_) | Op::Permute(_) | Op::Broadcast(_) | Op::Slice(_) if full(0).is_some() => {
            let Some(f) = full(0) else { return Rewrite::Same };
            Rewrite::Node(Op::Full(Full { dims: node.ty.dims.clone(), ..f.clone() }), vec![])
        }
        Op::Reshape(_) if node.ty == arg(0).ty => Rewrite::Value(node.args[0]),
        Op::Broadcast(_) | Op::Slice(_) if node.ty == arg(0).ty => Rewrite::Value(node.args[0]),
        Op::Permute(p) if p.perm.iter().copied().eq(0..p.perm.len()) => Rewrite::Value(node.args[0]),
        Op::Reshape(r) => match &arg(0).op {
            Op::Reshape(_) => Rewrite::Node(Op::Reshape(Reshape { dims: r.dims.clone() }), arg(0).args.clone()),
            _ => Rewrite::Same,
        },
        Op::Permute(p) => match &arg(0).op {
            Op::Permute(q) => {
                let perm = p.perm.iter().map(|&i| q.perm[i]).collect();
                Rewrite::Node(Op::Permute(Permute { perm }), arg(0).args.clone())
            }
            _ => Rewrite::Same,
        },
        Op::Broadcast(outer) => match &arg(0).op {
            Op::Broadcast(inner) => {
                let axes = inner.axes.iter().map(|&a| outer.axes[a]).collect();
                Rewrite::Node(Op::Broadcast(Broadcast { dims: outer.dims.clone(), axes }), arg(0).args.clone())
            }
            _ => Rewrite::Same,
        },
        Op::Slice(outer) => match &arg(0).op {
            Op::Slice(inner) => Rewrite::Node(Op::Slice(slice_of_slice(inner, outer)), arg(0).args.clone()),
            _ => Rewrite::Same,
        },
        // Gradients were taken before.
        Op::Detach(_) => Rewrite::Value(node.args[0]),
        Op::Cast(c) if arg(0).ty.dtype == c.to => Rewrite::Value(node.args[0]),
        Op::Binary(op) => {
            if let Some(folded) = fold(graph, node) {
                return folded;
            }
            // `x * 1` and `x / 1` are x for every x, also NaN; `x + 0` is not for -0, so it stays for floats.
            let is = |i: usize, value: f64| {
                full(i).is_some_and(|f| tilewright_compiler::tile::Constant(f.word).as_f64(f.dtype) == value)
            };
            let int = !node.ty.dtype.is_float();
            let truth = |i: usize| full(i).filter(|f| f.dtype == DType::Bool).map(|f| f.word & 1 == 1);
            match op {
                BinaryOp::Mul if is(1, 1.0) => Rewrite::Value(node.args[0]),
                BinaryOp::Mul if is(0, 1.0) => Rewrite::Value(node.args[1]),
                BinaryOp::Div if is(1, 1.0) => Rewrite::Value(node.args[0]),
                BinaryOp::Add if int && is(1, 0.0) => Rewrite::Value(node.args[0]),
                BinaryOp::Add if int && is(0, 0.0) => Rewrite::Value(node.args[1]),
                BinaryOp::And if truth(1) == Some(true) => Rewrite::Value(node.args[0]),
                BinaryOp::And if truth(0) == Some(true) => Rewrite::Value(node.args[1]),
                BinaryOp::Or if truth(1) == Some(false) => Rewrite::Value(node.args[0]),
                BinaryOp::Or if truth(0) == Some(false) => Rewrite::Value(node.args[1]),
                _ => Rewrite::Same,
            }
        }
        Op::Select(_) => match full(0).map(|f| f.word & 1 == 1) {
            Some(true) => Rewrite::Value(node.args[1]),
            Some(false) => Rewrite::Value(node.args[2]),
            None => Rewrite::Same,
        },
        _ if node.op.class() == Class::Pointwise => fold(graph, node).unwrap_or(Rewrite::Same),
        _ => Rewrite::Same,
    }
}

/// A part of a part, as a part of the whole.
fn slice_of_slice(inner: &Slice, outer: &Slice) -> Slice {
    let mut all = Slice { start: vec![], limit: vec![], step: vec![] };
    for i in 0..inner.start.len() {
        let start = inner.start[i] + outer.start[i] * inner.step[i];
        // One beyond the last element, if there is one.
        let last = outer.limit[i].checked_sub(outer.start[i] + 1).map(|n| start + n * inner.step[i]);
        all.start.push(start);
        all.limit.push(last.map_or(start, |l| l + 1));
        all.step.push(inner.step[i] * outer.step[i]);
    }
    all
}

/// A pointwise function of numbers repeated is one number repeated.
fn fold(graph: &Graph, node: &Node) -> Option<Rewrite> {
    let mut one = node.ty.clone();
    one.dims = vec![];
    let mut literals = Vec::new();
    for &a in &node.args {
        let Op::Full(f) = &graph.nodes[a].op else { return None };
        let mut ty = graph.ty(a).clone();
        ty.dims = vec![];
        literals.push(Literal::from_fn(ty, |_| f.word));
    }
    let value = node.op.eval(&literals.iter().collect::<Vec<_>>(), &one).ok()?;
    let full = Full { dtype: node.ty.dtype, dims: node.ty.dims.clone(), word: value.word(0) };
    Some(Rewrite::Node(Op::Full(full), vec![]))
}
