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
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tilewright_compiler::DType;
use tilewright_compiler::error::Loc;

struct Tracer {
    id: u64,
    graph: Graph,
    captured: Vec<Tensor>,
    known: HashMap<Identity, NodeId>,
    read_back: Option<Loc>,
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

/// Captures `f` with arguments of these types. `f` gives its result and the tensors of it.
///
/// # Errors
/// The first mistake among the results.
pub(crate) fn capture<R>(
    types: &[TensorType],
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
    let tracer = Tracer { id, graph, captured: Vec::new(), known: HashMap::new(), read_back: None };
    TRACERS.with_borrow_mut(|t| t.push(tracer));
    let guard = Guard;
    let (result, outputs) = f(&args);
    let finished = TRACERS.with_borrow_mut(|t| -> Result<Captured> {
        let tracer = t.last_mut().ok_or_else(|| Error::Internal("the tracer is gone".into()))?;
        if tracer.read_back.is_none() {
            for o in &outputs {
                o.check()?;
                let node = tracer.node_of(o)?;
                tracer.graph.outputs.push(node);
            }
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

/// Notes that values were asked for during capture.
pub(crate) fn note_read_back(loc: Loc) {
    TRACERS.with_borrow_mut(|t| {
        for tracer in t.iter_mut() {
            tracer.read_back.get_or_insert(loc);
        }
    });
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
