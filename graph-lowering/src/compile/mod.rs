//! `compile`: a function of tensors, captured once for each kind of arguments and run as fused kernels.

mod backend;
mod dynamic;
mod explain;
mod graph_cache;
mod options;
mod pullback;
mod saved;

use crate::error::{Error, Result};
use crate::exec::KernelTime;
use crate::graph::{Graph, TensorType, json};
use crate::literal::Literal;
use crate::tensor::{Structure, Tensor, trace};
pub use backend::{Backend, Lowered, Program, list_backends, register_backend};
pub use dynamic::Dynamic;
use dynamic::History;
pub use explain::{Explanation, GraphCacheUse, KernelInfo, MemoryUse};
pub(crate) use options::nearest;
pub use options::{Mode, Options};
pub use pullback::Pullback;
pub use saved::Loaded;
use std::collections::HashSet;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
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
    halves: Mutex<Vec<Arc<pullback::Halves<O>>>>,
    types: PhantomData<fn(&I) -> O>,
}

struct State<O> {
    entries: Vec<Arc<Entry<O>>>,
    history: History,
    /// The kernels of all graphs so far.
    kernels: HashSet<u64>,
    /// What there is to say but for the last graph's kernels.
    explanation: Explanation,
}

impl<O> Default for State<O> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            history: History::default(),
            kernels: HashSet::new(),
            explanation: Explanation::default(),
        }
    }
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
    let (entries, halves) = Default::default();
    Ok(Compiled { f, options, backend: Some(backend), loc, entries, halves, types: PhantomData })
}

/// A function that is never captured by itself: its calls run eagerly. Inside another captured function it is part of that.
#[track_caller]
pub fn disable<F, I, O>(f: F) -> Compiled<F, I, O>
where
    F: Fn(&I) -> O,
    I: Structure,
    O: Structure,
{
    let (entries, halves) = Default::default();
    Compiled { f, options: Options::new(), backend: None, loc: Loc::caller(), entries, halves, types: PhantomData }
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
        let (entry, args) = self.entry_for(x)?;
        let Some(program) = &entry.program else { return self.eager(x) };
        let mut all = args;
        all.extend(entry.captured.iter().cloned());
        let results = program.run(&all)?;
        Ok(entry.template.rebuild(&mut results.into_iter()))
    }

    /// Captures and lowers the function for such arguments, if that was not done before, without running it. Kernels are
    /// generated; the device compiles them when they are first launched.
    ///
    /// # Errors
    /// As [`Compiled::call`], but for what only running tells.
    pub fn plan(&self, x: &I) -> Result<()> {
        if self.backend.as_ref().is_some_and(|b| b.name() != "eager") {
            self.entry_for(x)?;
        }
        Ok(())
    }

    /// Runs the function for these arguments and tells how long each of its kernels takes, as the mean of so many rounds.
    ///
    /// # Errors
    /// As [`Compiled::call`]; [`Error::Options`] if it does not run as kernels.
    pub fn profile(&self, x: &I, rounds: usize) -> Result<Vec<KernelTime>> {
        let none = || Error::Options("a function that runs eagerly has no kernels to time".into());
        if self.backend.as_ref().is_none_or(|b| b.name() == "eager") {
            return Err(none());
        }
        let (entry, mut args) = self.entry_for(x)?;
        args.extend(entry.captured.iter().cloned());
        entry.program.as_ref().ok_or_else(none)?.profile(&args, rounds)
    }

    /// The graph for such arguments, and the arguments' tensors.
    fn entry_for(&self, x: &I) -> Result<(Arc<Entry<O>>, Vec<Tensor>)> {
        let args = x.tensors();
        for t in &args {
            t.check()?;
        }
        let mut guard = String::new();
        x.describe(&mut guard);
        Ok((self.entry(&guard, x, &args)?, args))
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
        let begin = Instant::now();
        let types: Vec<_> = args.iter().map(|t| t.ty().clone()).collect();
        let (template, captured) = trace::capture(&types, self.loc, |tensors| {
            let y = (self.f)(&x.rebuild(&mut tensors.iter().cloned()));
            let outputs = y.tensors();
            (y, outputs)
        })?;
        let mode = self.options.is_dynamic();
        let (varying, news) = state.history.arguments(mode, &kind(x, &types), &types);
        if let Some(last) = state.entries.last() {
            let news = if news.is_empty() { String::new() } else { format!(": {}", news.join("; ")) };
            let reason = format!("arguments {guard} where the last graph was captured for {}{news}", last.guard);
            note(&mut state.explanation.recompiles, reason);
        }
        note(&mut state.explanation.guards, guard.to_owned());
        state.explanation.dynamic = dynamic::symbols(&varying, &types);
        let entry = if let Some(loc) = captured.read_back {
            if self.options.is_fullgraph() {
                return Err(Error::ReadBack { loc });
            }
            note(&mut state.explanation.breaks, format!("values are read back at {loc}: the function runs eagerly"));
            Entry { guard: guard.to_owned(), program: None, graph: Graph::new(), captured: vec![], template }
        } else {
            state.explanation.capture_time = begin.elapsed();
            let begin = Instant::now();
            let backend = self.backend.as_ref().ok_or_else(|| Error::Internal("there is no backend".into()))?;
            let vary = &mut |graph: &Graph| state.history.graph(mode, graph, &varying);
            let Lowered { graph, program, cache } = backend.lower(&captured.graph, &self.options, vary)?;
            state.explanation.graph_cache = cache;
            state.explanation.cached_graphs += usize::from(cache == GraphCacheUse::Hit);
            state.explanation.plan_time = begin.elapsed();
            state.explanation.graphs += 1;
            state.explanation.primitives = graph.nodes.len() - graph.inputs.len();
            for identity in program.identities() {
                let new = state.kernels.insert(identity);
                *(if new { &mut state.explanation.generated } else { &mut state.explanation.reused }) += 1;
            }
            Entry { guard: guard.to_owned(), program: Some(program), graph, captured: captured.captured, template }
        };
        let entry = Arc::new(entry);
        if state.entries.len() == MOST_GRAPHS {
            let oldest = state.entries.remove(0);
            let dropped = format!("more than {MOST_GRAPHS} graphs: that for {} was dropped", oldest.guard);
            note(&mut state.explanation.recompiles, dropped);
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
        let Some(entry) = self.last() else { return Ok(None) };
        let value = |t: &Tensor| Ok(json::SavedValue::Inline(t.to_literal()?.as_ref().clone()));
        json::write(&json::Saved {
            graph: entry.graph.clone(),
            takes: Some(entry.guard.clone()),
            checksum: None,
            captured: entry.captured.iter().map(value).collect::<Result<_>>()?,
        })
        .map(Some)
    }

    /// Saves the last captured graph in a folder, which is made if need be: the graph as `graph.json`, the tensors that the
    /// function captured as `weights.safetensors`. [`Loaded::open`] loads them.
    ///
    /// # Errors
    /// [`Error::NotCaptured`] if there is no graph; [`Error::Weights`] if a file cannot be written; what the device says when
    /// values are read.
    pub fn save(&self, folder: impl AsRef<Path>) -> Result<()> {
        let entry = self.last().filter(|e| e.program.is_some());
        let entry = entry.ok_or(Error::NotCaptured { loc: self.loc })?;
        saved::save(folder.as_ref(), &entry.graph, &entry.guard, &entry.captured)
    }

    fn last(&self) -> Option<Arc<Entry<O>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).entries.last().cloned()
    }
}

/// The description of arguments without their extents.
fn kind<I: Structure>(x: &I, types: &[TensorType]) -> String {
    let flat = types.iter().map(|t| Tensor::from(Literal::zeros(TensorType::new(t.dtype, vec![0; t.rank()]))));
    let mut text = String::new();
    x.rebuild(&mut flat.collect::<Vec<_>>().into_iter()).describe(&mut text);
    text
}

/// Adds a line, and forgets the oldest of many.
fn note(lines: &mut Vec<String>, line: String) {
    if lines.len() == MOST_GRAPHS {
        lines.remove(0);
    }
    lines.push(line);
}

impl<F, I, O> std::fmt::Debug for Compiled<F, I, O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Compiled(function at {}, {:?})", self.loc, self.options)
    }
}
