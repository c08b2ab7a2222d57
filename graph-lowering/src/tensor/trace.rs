//! The tracer: which graph is being captured on this thread, if any.
//!
//! Captures nest (the gradient of a function inside a compiled function): a tensor of an outer capture, or one with values,
//! becomes an additional input of the inner graph.

use super::{Repr, Tensor, fail, failed};
use crate::error::{Error, Result};
use crate::graph::{Graph, NodeId, TensorType, verify::check_size};
use crate::literal::Literal;
use crate::prim::Op;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tilewright_compiler::DType;
use tilewright_compiler::error::Loc;

struct Tracer {
    id: u64,
    graph: Graph,
    /// How many of the graph's first inputs are arguments.
    arguments: usize,
    /// What the function is called with while it is captured, if that is known: values that are read back follow from it.
    given: Vec<Tensor>,
    captured: Vec<Tensor>,
    known: HashMap<Identity, NodeId>,
    read_back: Option<Loc>,
    /// Values that were read back, and what they were made of.
    values: HashMap<NodeId, Arc<Literal>>,
}

/// What makes two captured tensors the same.
#[derive(PartialEq, Eq, Hash)]
enum Identity {
    Memory(usize),
    Node(u64, NodeId),
}

thread_local! {
    static TRACERS: RefCell<Vec<Tracer>> = const { RefCell::new(Vec::new()) };
}
static NEXT: AtomicU64 = AtomicU64::new(1);

/// A captured function.
#[derive(Debug)]
pub(crate) struct Captured {
    /// Its graph; the last inputs are the captured tensors.
    pub graph: Graph,
    /// Tensors the function used that are not its arguments.
    pub captured: Vec<Tensor>,
    /// Where it read values back to the host, if it did.
    pub read_back: Option<Loc>,
}

/// Removes the tracer also when the function panics.
struct Guard;

impl Drop for Guard {
    fn drop(&mut self) {
        TRACERS.with_borrow_mut(|t| {
            t.pop();
        });
    }
}

/// Captures `f` with arguments of these types. `f` gives its result and the tensors of it. `given` are the arguments that it is
/// called with, or the first of them: should `f` read values back, it gets those that follow from them, and goes on as if it ran
/// eagerly. Without them reading is an error.
///
/// # Errors
/// The first mistake among the results.
pub(crate) fn capture<R>(
    types: &[TensorType],
    given: &[Tensor],
    loc: Loc,
    f: impl FnOnce(&[Tensor]) -> (R, Vec<Tensor>),
) -> Result<(R, Captured)> {
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut graph = Graph::new();
    let args: Vec<Tensor> = types
        .iter()
        .map(|ty| {
            let node = graph.add_input(ty.clone(), loc);
            Tensor(Repr::Traced { trace: id, node, ty: Arc::new(ty.clone()) })
        })
        .collect();
    let tracer = Tracer {
        id,
        graph,
        arguments: types.len(),
        given: given.to_vec(),
        captured: Vec::new(),
        known: HashMap::new(),
        read_back: None,
        values: HashMap::new(),
    };
    TRACERS.with_borrow_mut(|t| t.push(tracer));
    let guard = Guard;
    let (result, outputs) = f(&args);
    let finished = TRACERS.with_borrow_mut(|t| -> Result<Captured> {
        let tracer = t.last_mut().ok_or_else(|| Error::Internal("the tracer is gone".into()))?;
        for o in &outputs {
            o.check()?;
            let node = tracer.node_of(o)?;
            tracer.graph.outputs.push(node);
        }
        Ok(Captured {
            graph: std::mem::take(&mut tracer.graph),
            captured: std::mem::take(&mut tracer.captured),
            read_back: tracer.read_back,
        })
    });
    drop(guard);
    Ok((result, finished?))
}

/// Is a function being captured on this thread?
pub(crate) fn is_capturing() -> bool {
    TRACERS.with_borrow(|t| !t.is_empty())
}

/// The values of a tensor of a function that is being captured, as they are for the arguments it is called with. That they were asked
/// for is noted: with other arguments they may be others, and the function go another way.
///
/// # Errors
/// [`Error::ReadBack`] if it is not known what the function is called with; the mistakes of what the values are made of.
pub(crate) fn read_back(trace: u64, node: NodeId, loc: Loc) -> Result<Arc<Literal>> {
    TRACERS.with_borrow_mut(|t| {
        for tracer in t.iter_mut() {
            tracer.read_back.get_or_insert(loc);
        }
        value(t, trace, node, loc)
    })
}

/// The value of a node of one of the graphs being captured.
fn value(tracers: &mut [Tracer], trace: u64, node: NodeId, loc: Loc) -> Result<Arc<Literal>> {
    let outside = || Error::tensor(loc, "a tensor made while a function was captured is used outside that function");
    let at = tracers.iter().position(|t| t.id == trace).ok_or_else(outside)?;
    // What it is made of and is not known yet.
    let mut needed = BTreeSet::new();
    let mut todo = vec![node];
    while let Some(n) = todo.pop() {
        if !tracers[at].values.contains_key(&n) && needed.insert(n) {
            todo.extend(&tracers[at].graph.nodes[n].args);
        }
    }
    for n in needed {
        let tracer = &tracers[at];
        let data = &tracer.graph.nodes[n];
        let result = if data.op == Op::Input {
            let input = tracer.graph.inputs.iter().position(|&i| i == n);
            let tensor = input.and_then(|i| match i.checked_sub(tracer.arguments) {
                Some(i) => tracer.captured.get(i),
                None => tracer.given.get(i),
            });
            match tensor.cloned().ok_or(Error::ReadBack { loc })?.0 {
                Repr::Traced { trace, node, .. } => value(&mut tracers[..at], trace, node, loc)?,
                other => Tensor(other).to_literal()?,
            }
        } else {
            let operands: Vec<&Literal> =
                data.args.iter().filter_map(|a| tracer.values.get(a).map(Arc::as_ref)).collect();
            Arc::new(data.op.eval(&operands, &data.ty).map_err(|message| Error::tensor(data.loc, message))?)
        };
        tracers[at].values.insert(n, result);
    }
    tracers[at].values.get(&node).cloned().ok_or_else(|| Error::Internal(format!("{node} has no value")))
}

impl Tracer {
    fn node_of(&mut self, tensor: &Tensor) -> Result<NodeId> {
        let identity = match &tensor.0 {
            Repr::Failed(e, _) => return Err((**e).clone()),
            Repr::Traced { trace, node, .. } if *trace == self.id => return Ok(*node),
            Repr::Traced { trace, node, .. } => Identity::Node(*trace, *node),
            Repr::Host(l) => Identity::Memory(Arc::as_ptr(l).addr()),
            Repr::Device(d) => Identity::Memory(Arc::as_ptr(d).addr()),
        };
        if let Some(&node) = self.known.get(&identity) {
            return Ok(node);
        }
        let node = self.graph.add_input(tensor.ty().clone(), Loc::UNKNOWN);
        // Keeping the tensor keeps its address from being used for another one.
        self.captured.push(tensor.clone());
        self.known.insert(identity, node);
        Ok(node)
    }
}

/// Applies a primitive: to values at once, else as a node of the graph being captured.
#[track_caller]
pub(crate) fn apply(op: Op, args: &[&Tensor]) -> Tensor {
    apply_at(op, args, Loc::caller())
}

/// [`apply`] for an expression at a known place.
pub(crate) fn apply_at(op: Op, args: &[&Tensor], loc: Loc) -> Tensor {
    for a in args {
        if let Repr::Failed(e, _) = &a.0 {
            return failed(e.clone(), a.ty().clone());
        }
    }
    let types: Vec<&TensorType> = args.iter().map(|a| a.ty()).collect();
    let ty = match op.infer(&types).and_then(|ty| check_size(&ty).map(|()| ty)) {
        Ok(ty) => ty,
        Err(message) => {
            let error = Error::tensor(loc, format!("{}: {message}", op.primitive().name()));
            let guess = types.first().map_or_else(|| TensorType::new(DType::F32, []), |&t| t.clone());
            return failed(Arc::new(error), guess);
        }
    };
    let traced = TRACERS.with_borrow_mut(|t| {
        let tracer = t.last_mut()?;
        let nodes = args.iter().map(|a| tracer.node_of(a)).collect::<Result<Vec<_>>>();
        Some(nodes.map(|nodes| {
            let node = tracer.graph.nodes.push(crate::graph::Node { op: op.clone(), args: nodes, ty: ty.clone(), loc });
            Tensor(Repr::Traced { trace: tracer.id, node, ty: Arc::new(ty.clone()) })
        }))
    });
    match traced {
        Some(Ok(tensor)) => tensor,
        Some(Err(e)) => failed(Arc::new(e), ty),
        None => eager(&op, args, ty, loc),
    }
}

fn eager(op: &Op, args: &[&Tensor], ty: TensorType, loc: Loc) -> Tensor {
    let mut literals: Vec<Arc<Literal>> = Vec::new();
    for a in args {
        match &a.0 {
            Repr::Traced { .. } => {
                return fail(loc, "a tensor made while a function was captured is used outside that function");
            }
            _ => match a.to_literal() {
                Ok(l) => literals.push(l),
                Err(e) => return failed(Arc::new(e), ty),
            },
        }
    }
    let operands: Vec<&Literal> = literals.iter().map(Arc::as_ref).collect();
    match op.eval(&operands, &ty) {
        Ok(l) => l.into(),
        Err(message) => failed(Arc::new(Error::tensor(loc, message)), ty),
    }
}
