//! `compile`: a function of tensors, captured once for each kind of arguments and run as fused kernels.

mod backend;
mod explain;
mod options;

use crate::error::{Error, Result};
use crate::graph::{Graph, json};
use crate::literal::Literal;
use crate::passes;
use crate::tensor::{Structure, Tensor, trace};
pub use backend::{Backend, Program, list_backends, register_backend};
pub use explain::{Explanation, KernelInfo, MemoryUse};
pub use options::{Mode, Options};
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};
use tilewright_compiler::error::Loc;

/// Most graphs kept for one function; the oldest is dropped for another.
const MOST_GRAPHS: usize = 64;

/// A function that runs as captured graphs.
pub struct Compiled<F, I, O> {
    f: F,
    options: Options,
    backend: Option<Arc<dyn Backend>>,
    loc: Loc,
    entries: Mutex<State<O>>,
    types: PhantomData<fn(&I) -> O>,
}

struct State<O> {
    entries: Vec<Arc<Entry<O>>>,
    explanation: Explanation,
}

/// One captured graph.
struct Entry<O> {
    guard: String,
    /// `None`: the function reads values back and runs eagerly.
    program: Option<Box<dyn Program>>,
    graph: Graph,
    captured: Vec<Tensor>,
    template: O,
}

/// Makes a function run as captured graphs. Nothing is captured before the first call.
///
/// # Errors
/// [`Error::Options`] for an option, backend or device that does not exist.
#[track_caller]
pub fn compile<F, I, O>(f: F, options: Options) -> Result<Compiled<F, I, O>>
where
    F: Fn(&I) -> O,
    I: Structure,
    O: Structure,
{
    let loc = Loc::caller();
    options.check()?;
    let backend = backend::find(options.backend_name())?;
    let entries = Mutex::new(State { entries: Vec::new(), explanation: Explanation::default() });
    Ok(Compiled { f, options, backend: Some(backend), loc, entries, types: PhantomData })
}

/// A function that is never captured by itself: its calls run eagerly. Inside another captured function it is part of that.
#[track_caller]
pub fn disable<F, I, O>(f: F) -> Compiled<F, I, O>
where
    F: Fn(&I) -> O,
    I: Structure,
    O: Structure,
{
    let entries = Mutex::new(State { entries: Vec::new(), explanation: Explanation::default() });
    Compiled { f, options: Options::new(), backend: None, loc: Loc::caller(), entries, types: PhantomData }
}

impl<F, I, O> Compiled<F, I, O>
where
    F: Fn(&I) -> O,
    I: Structure,
    O: Structure,
{
    /// Calls the function: as the graph captured for such arguments, which is captured now if there is none.
    ///
    /// # Errors
    /// The mistakes of the function's expressions; what the device says; [`Error::ReadBack`] under `fullgraph`.
    pub fn call(&self, x: &I) -> Result<O> {
        let eager = self.backend.as_ref().is_none_or(|b| b.name() == "eager");
        // Inside another capture the function's operations become part of that graph.
        if eager || trace::is_capturing() {
            return self.eager(x);
        }
        let args = x.tensors();
        for t in &args {
            t.check()?;
        }
        let mut guard = String::new();
        x.describe(&mut guard);
        let entry = self.entry(&guard, x, &args)?;
        let Some(program) = &entry.program else { return self.eager(x) };
        let mut all = args;
        all.extend(entry.captured.iter().cloned());
        let results = program.run(&all)?;
        Ok(entry.template.rebuild(&mut results.into_iter()))
    }

    fn eager(&self, x: &I) -> Result<O> {
        let y = (self.f)(x);
        for t in y.tensors() {
            t.check()?;
        }
        Ok(y)
    }

    fn entry(&self, guard: &str, x: &I, args: &[Tensor]) -> Result<Arc<Entry<O>>> {
        // Held during capture, so that two threads do not capture the same thing.
        let mut state = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = state.entries.iter().find(|e| e.guard == guard) {
            return Ok(entry.clone());
        }
        let types: Vec<_> = args.iter().map(|t| t.ty().clone()).collect();
        let (template, captured) = trace::capture(&types, self.loc, |tensors| {
            let y = (self.f)(&x.rebuild(&mut tensors.iter().cloned()));
            let outputs = y.tensors();
            (y, outputs)
        })?;
        if let Some(last) = state.entries.last() {
            let reason = format!("arguments {guard} where the last graph was captured for {}", last.guard);
            state.explanation.recompiles.push(reason);
        }
        state.explanation.guards.push(guard.to_owned());
        let entry = if let Some(loc) = captured.read_back {
            if self.options.is_fullgraph() {
                return Err(Error::ReadBack { loc });
            }
            state.explanation.breaks.push(format!("values are read back at {loc}: the function runs eagerly"));
            Entry { guard: guard.to_owned(), program: None, graph: Graph::new(), captured: vec![], template }
        } else {
            let graph = passes::optimise(&captured.graph)?;
            let backend = self.backend.as_ref().ok_or_else(|| Error::Internal("there is no backend".into()))?;
            let program = backend.compile(&graph, &self.options)?;
            state.explanation.graphs += 1;
            state.explanation.primitives = graph.nodes.len() - graph.inputs.len();
            Entry { guard: guard.to_owned(), program: Some(program), graph, captured: captured.captured, template }
        };
        let entry = Arc::new(entry);
        if state.entries.len() == MOST_GRAPHS {
            let oldest = state.entries.remove(0);
            state
                .explanation
                .recompiles
                .push(format!("more than {MOST_GRAPHS} graphs: that for {} was dropped", oldest.guard));
        }
        state.entries.push(entry.clone());
        Ok(entry)
    }

    /// What was captured so far, and what became of it. Numbers of kernels and primitives are those of the last graph.
    pub fn explain(&self) -> Explanation {
        let state = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let mut explanation = state.explanation.clone();
        // Sources and IR are written out only for those who ask: a first call has no use for them.
        if let Some(program) = state.entries.iter().rev().find_map(|e| e.program.as_ref()) {
            program.explain(&mut explanation);
        }
        explanation
    }

    /// The last captured graph, simplified.
    pub fn graph(&self) -> Option<Graph> {
        let state = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        state.entries.last().map(|e| e.graph.clone())
    }

    /// The last captured graph as JSON, with the values of the tensors the function captured.
    ///
    /// # Errors
    /// What the device says when values are read.
    pub fn to_json(&self) -> Result<Option<String>> {
        let last = self.entries.lock().unwrap_or_else(PoisonError::into_inner).entries.last().cloned();
        let Some(entry) = last else { return Ok(None) };
        let values = entry.captured.iter().map(Tensor::to_literal).collect::<Result<Vec<_>>>()?;
        let values: Vec<&Literal> = values.iter().map(AsRef::as_ref).collect();
        json::to_json(&entry.graph, &values).map(Some)
    }
}

impl<F, I, O> std::fmt::Debug for Compiled<F, I, O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Compiled(function at {}, {:?})", self.loc, self.options)
    }
}
