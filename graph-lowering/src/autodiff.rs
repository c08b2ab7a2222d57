//! Gradients ahead of time: the function is captured, its nodes are replayed, and their gradients follow in reverse, all as
//! ordinary tensor expressions. Inside a compiled function they become part of its graph (the joint graph); outside they are
//! computed at once. Either way gradients of gradients work.

use crate::error::{Error, Result};
use crate::graph::{Graph, Node};
use crate::prim::Op;
use crate::tensor::{Structure, Tensor, trace};
use std::collections::HashMap;
use std::sync::Arc;
use tilewright_compiler::entity::Entity;
use tilewright_compiler::error::Loc;

/// The gradient of `f`, which gives one float, at `x`. Tensors of other types than float have the gradient 0.
///
/// # Errors
/// The mistakes of `f`, and if its result is not one float.
#[track_caller]
pub fn grad<X: Structure>(f: impl FnOnce(&X) -> Tensor, x: &X) -> Result<X> {
    value_and_grad(f, x).map(|(_, g)| g)
}

/// The value of `f`, which gives one float, and its gradient at `x`.
///
/// # Errors
/// As [`grad`].
#[track_caller]
pub fn value_and_grad<X: Structure>(f: impl FnOnce(&X) -> Tensor, x: &X) -> Result<(Tensor, X)> {
    let loc = Loc::caller();
    let (value, pull) = vjp_at(f, x, loc)?;
    if value.elements() != 1 || !value.dtype().is_float() {
        return Err(Error::tensor(loc, format!("the gradient of a function that gives {}, not one float", value.ty())));
    }
    let seed = Tensor::full(value.dtype(), &value.dims(), 1.0);
    Ok((value, pull(&seed)))
}

/// The value of `f` at `x`, and the function that takes a gradient of the value to that of `x`.
///
/// # Errors
/// The mistakes of `f`.
#[track_caller]
pub fn vjp<X: Structure, Y: Structure>(f: impl FnOnce(&X) -> Y, x: &X) -> Result<(Y, impl FnOnce(&Y) -> X)> {
    vjp_at(f, x, Loc::caller())
}

fn vjp_at<X: Structure, Y: Structure>(f: impl FnOnce(&X) -> Y, x: &X, loc: Loc) -> Result<(Y, impl FnOnce(&Y) -> X)> {
    let inputs = x.tensors();
    for t in &inputs {
        t.check()?;
    }
    let types: Vec<_> = inputs.iter().map(|t| t.ty().clone()).collect();
    let (template, captured) = trace::capture(&types, &inputs, loc, |args| {
        let y = f(&x.rebuild(&mut args.iter().cloned()));
        let outputs = y.tensors();
        (y, outputs)
    })?;
    // Values that `f` read back are those of `x`, so that its way is the one to go back.
    let graph = captured.graph;
    let mut args = inputs.clone();
    args.extend(captured.captured);
    let values = replay(&graph, &args, &|_, _| None);
    let outputs: Vec<Tensor> = graph.outputs.iter().map(|o| values[o.index()].clone()).collect();
    for o in &outputs {
        o.check()?;
    }
    let value = template.rebuild(&mut outputs.into_iter());
    let x = x.clone();
    let pull = move |seed: &Y| {
        let gradients = reverse(&graph, &values, &seed.tensors());
        let of_inputs = graph
            .inputs
            .iter()
            .zip(&inputs)
            .map(|(i, t)| gradients[i.index()].clone().unwrap_or_else(|| t.zeros_like()));
        x.rebuild(&mut of_inputs.collect::<Vec<_>>().into_iter())
    };
    Ok((value, pull))
}

/// The tensors of all nodes, as expressions of the arguments; `instead` may give another expression for a node.
pub(crate) fn replay(
    graph: &Graph,
    args: &[Tensor],
    instead: &dyn Fn(&Node, &[Tensor]) -> Option<Tensor>,
) -> Vec<Tensor> {
    let mut values: Vec<Tensor> = Vec::with_capacity(graph.nodes.len());
    let of_inputs: HashMap<_, _> = graph.inputs.iter().copied().zip(args).collect();
    for (id, node) in graph.nodes.iter() {
        let value = if node.op == Op::Input {
            of_inputs.get(&id).map(|&t| t.clone()).unwrap_or_else(|| {
                let error = Error::Internal(format!("input {id} has no argument"));
                crate::tensor::failed(Arc::new(error), node.ty.clone())
            })
        } else {
            let operands: Vec<Tensor> = node.args.iter().map(|a| values[a.index()].clone()).collect();
            instead(node, &operands)
                .unwrap_or_else(|| trace::apply_at(node.op.clone(), &operands.iter().collect::<Vec<_>>(), node.loc))
        };
        values.push(value);
    }
    values
}

/// The gradients of all nodes that have one.
fn reverse(graph: &Graph, values: &[Tensor], seeds: &[Tensor]) -> Vec<Option<Tensor>> {
    let mut gradients: Vec<Option<Tensor>> = vec![None; graph.nodes.len()];
    let add = |slot: &mut Option<Tensor>, g: Tensor| {
        *slot = Some(match slot.take() {
            Some(old) => old + g,
            None => g,
        });
    };
    // Only what depends on a float argument needs a gradient.
    let mut needed = vec![false; graph.nodes.len()];
    for (id, node) in graph.nodes.iter() {
        let wanted = node.op == Op::Input || node.args.iter().any(|a| needed[a.index()]);
        needed[id.index()] = wanted && node.ty.dtype.is_float();
    }
    for (o, seed) in graph.outputs.iter().zip(seeds) {
        if needed[o.index()] {
            add(&mut gradients[o.index()], seed.clone());
        }
    }
    for (id, node) in graph.nodes.iter().rev() {
        let Some(g) = gradients[id.index()].clone() else { continue };
        if node.op == Op::Input {
            continue;
        }
        let operands: Vec<Tensor> = node.args.iter().map(|a| values[a.index()].clone()).collect();
        let parts = node.op.primitive().vjp(&operands, &values[id.index()], &g);
        for (a, part) in node.args.iter().zip(parts) {
            if let (true, Some(part)) = (needed[a.index()], part) {
                add(&mut gradients[a.index()], part);
            }
        }
    }
    gradients
}
