//! `compile`: a function of tensors, captured once for each kind of arguments and run as fused kernels.

mod backend;
mod dynamic;
mod entries;
mod explain;
mod graph_cache;
mod numbers;
mod options;
mod pullback;
mod saved;

use crate::error::{Error, Result};
use crate::exec::KernelTime;
use crate::graph::{Graph, TensorType, interpret::interpret, json};
use crate::literal::Literal;
use crate::tensor::{Structure, Tensor, trace};
pub use backend::{Backend, Lowered, Program, list_backends, register_backend};
pub use dynamic::Dynamic;
use entries::{Code, Entry, Held, Known, Shared, State};
pub use explain::{Explanation, GraphCacheUse, KernelInfo, MemoryUse};
pub(crate) use options::nearest;
pub use options::{CheckCaptures, Mode, Options};
pub use pullback::Pullback;
pub use saved::Loaded;
use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tilewright_compiler::error::Loc;

/// Most lines of each kind that are kept to be explained.
const MOST_LINES: usize = 64;

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

/// How one call is served.
enum Served<O> {
    /// By the graph, with these tensors after the arguments.
    Graph(Arc<Entry<O>>, Vec<Tensor>),
    /// The function read values back, and ran eagerly. It gave this if it was captured for this very call.
    Eagerly(Option<O>),
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
        let (served, mut args) = self.serve(x)?;
        match served {
            Served::Eagerly(Some(result)) => Ok(result),
            Served::Eagerly(None) => self.eager(x),
            Served::Graph(entry, more) => {
                let Some(code) = &entry.code else { return self.eager(x) };
                args.extend(more);
                let results = code.shared.program.run(&args)?;
                Ok(entry.template.rebuild(&mut results.into_iter()))
            }
        }
    }

    /// Captures and lowers the function for such arguments, if that was not done before, without running it. Kernels are
    /// generated; the device compiles them when they are first launched.
    ///
    /// # Errors
    /// As [`Compiled::call`], but for what only running tells.
    pub fn plan(&self, x: &I) -> Result<()> {
        if self.backend.as_ref().is_some_and(|b| b.name() != "eager") {
            self.serve(x)?;
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
        let (served, mut args) = self.serve(x)?;
        let Served::Graph(entry, more) = served else { return Err(none()) };
        args.extend(more);
        entry.code.as_ref().ok_or_else(none)?.shared.program.profile(&args, rounds)
    }

    /// What serves such arguments, and the arguments' tensors.
    fn serve(&self, x: &I) -> Result<(Served<O>, Vec<Tensor>)> {
        let args = x.tensors();
        for t in &args {
            t.check()?;
        }
        let mut guard = String::new();
        x.describe(&mut guard);
        // Held during capture, so that two threads do not capture the same thing.
        let mut state = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(entry) = state.find(&guard) else {
            return Ok((self.captured(&mut state, &guard, x, &args, None)?, args));
        };
        let how = self.options.checks_captures();
        let due = entry.is_to_be_checked(how);
        match entry.tensors() {
            Some(tensors) if !due => Ok((Served::Graph(entry, tensors), args)),
            found => {
                // A tensor that is gone was there at the last call; what else is another one may have been so for long.
                let unseen = found.is_some() && entry.ran_unseen(how);
                let before = entry.clone();
                let served = self.captured(&mut state, &guard, x, &args, Some(entry))?;
                match &served {
                    Served::Graph(now, _) if unseen && !Arc::ptr_eq(now, &before) => {
                        Err(Error::CapturesChanged { loc: self.loc })
                    }
                    _ => Ok((served, args)),
                }
            }
        }
    }

    fn eager(&self, x: &I) -> Result<O> {
        let y = (self.f)(x);
        for t in y.tensors() {
            t.check()?;
        }
        Ok(y)
    }

    /// Captures the function for these arguments, for which `before` was captured, if it was.
    fn captured(
        &self,
        state: &mut State<O>,
        guard: &str,
        x: &I,
        args: &[Tensor],
        before: Option<Arc<Entry<O>>>,
    ) -> Result<Served<O>> {
        let begin = Instant::now();
        let types: Vec<_> = args.iter().map(|t| t.ty().clone()).collect();
        let (template, captured) = trace::capture(&types, args, self.loc, |tensors| {
            let y = (self.f)(&x.rebuild(&mut tensors.iter().cloned()));
            let outputs = y.tensors();
            (y, outputs)
        })?;
        let traced = numbers::split(&captured.graph);
        let notes = &mut state.explanation;
        notes.captures += 1;
        if let Some(before) = &before {
            let same = before.traced == traced
                && before.captured.len() == captured.captured.len()
                && before.captured.iter().zip(&captured.captured).all(|(a, b)| a.is(b));
            if same && captured.read_back.is_none() {
                let tensors = before.tensors().ok_or_else(|| Error::Internal("a captured tensor is gone".into()))?;
                return Ok(Served::Graph(before.clone(), tensors));
            }
            if !before.changes {
                note(
                    &mut notes.changes,
                    format!("the function captured for {guard} uses other tensors or numbers of its own"),
                );
            }
        } else {
            note(&mut notes.guards, guard.to_owned());
        }
        let mode = self.options.is_dynamic();
        let (varying, news) = state.history.arguments(mode, &kind(x, &types), &types);
        if let Some(last) = state.last.as_ref().filter(|_| before.is_none()) {
            let news = if news.is_empty() { String::new() } else { format!(": {}", news.join("; ")) };
            let reason = format!("arguments {guard} where the last graph was captured for {}{news}", last.guard);
            note(&mut state.explanation.recompiles, reason);
        }
        state.explanation.dynamic = dynamic::symbols(&varying, &types);
        let mut immediate = None;
        let code = if let Some(loc) = captured.read_back {
            if self.options.is_fullgraph() {
                return Err(Error::ReadBack { loc });
            }
            note(&mut state.explanation.breaks, format!("values are read back at {loc}: the function runs eagerly"));
            // It ran on the values of this call, and so has its results.
            let all = args.iter().chain(&captured.captured).map(Tensor::to_literal).collect::<Result<Vec<_>>>()?;
            let results = interpret(&captured.graph, &all)?;
            immediate = Some(template.rebuild(&mut results.into_iter().map(Tensor::from)));
            None
        } else {
            state.explanation.capture_time = begin.elapsed();
            Some(self.code(state, &captured.graph, &traced, &varying)?)
        };
        let read = code.is_none();
        let captured = if read { vec![] } else { captured.captured };
        let mut more = captured.clone();
        more.extend(code.iter().flat_map(|c| c.numbers.iter().cloned()));
        let entry = Arc::new(Entry {
            guard: guard.to_owned(),
            code,
            // The library has each here and in `more`.
            captured: captured.into_iter().map(|t| Held::new(t, 2)).collect(),
            traced,
            template,
            changes: before.is_some(),
            calls: Default::default(),
            used: Default::default(),
        });
        let most = self.options.most_graphs();
        if let Some(oldest) = state.keep(entry.clone(), most) {
            let dropped = format!("more than {most} graphs: that for {oldest} was dropped");
            note(&mut state.explanation.recompiles, dropped);
        }
        Ok(if read { Served::Eagerly(immediate) } else { Served::Graph(entry, more) })
    }

    /// What runs a captured graph: the program of one that differs in numbers that are its inputs, or a new one.
    fn code(
        &self,
        state: &mut State<O>,
        captured: &Graph,
        (rest, words): &(numbers::Rest, Vec<u64>),
        dims: &BTreeSet<(usize, usize)>,
    ) -> Result<Code> {
        let begin = Instant::now();
        let mode = self.options.is_dynamic();
        let inputs = state.varying.entry(numbers::at_any_extents(captured)).or_default();
        let known = state.known.get(rest);
        if mode != Dynamic::Never
            && let Some(known) = known
        {
            inputs.extend((0..words.len()).filter(|&i| known.words[i] != words[i]));
        }
        let inputs = inputs.clone();
        let values = numbers::values(captured, &inputs);
        let fits =
            |k: &&Known| k.inputs == inputs && (0..words.len()).all(|i| inputs.contains(&i) || k.words[i] == words[i]);
        if let Some(shared) = known.filter(fits).and_then(|k| k.program.upgrade()) {
            state.explanation.renumbered += 1;
            return Ok(Code { shared, numbers: values });
        }
        let backend = self.backend.as_ref().ok_or_else(|| Error::Internal("there is no backend".into()))?;
        let State { history, explanation, kernels, .. } = state;
        let vary = &mut |graph: &Graph| history.graph(mode, graph, dims);
        let with_inputs = if inputs.is_empty() { None } else { Some(numbers::as_inputs(captured, &inputs)?) };
        let Lowered { graph, program, cache } =
            backend.lower(with_inputs.as_ref().unwrap_or(captured), &self.options, vary)?;
        explanation.graph_cache = cache;
        explanation.cached_graphs += usize::from(cache == GraphCacheUse::Hit);
        explanation.plan_time = begin.elapsed();
        explanation.graphs += 1;
        explanation.primitives = graph.nodes.len() - graph.inputs.len();
        for identity in program.identities() {
            let new = kernels.insert(identity);
            *(if new { &mut explanation.generated } else { &mut explanation.reused }) += 1;
        }
        let shared = Arc::new(Shared { program, graph });
        let known = Known { words: words.clone(), inputs, program: Arc::downgrade(&shared) };
        state.known.insert(*rest, known);
        Ok(Code { shared, numbers: values })
    }

    /// What was captured so far, and what became of it. Numbers of kernels and primitives are those of the last graph.
    pub fn explain(&self) -> Explanation {
        let state = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let mut explanation = state.explanation.clone();
        // Sources and IR are written out only for those who ask: a first call has no use for them.
        if let Some(code) = state.last.as_ref().and_then(|e| e.code.as_ref()) {
            code.shared.program.explain(&mut explanation);
        }
        explanation
    }

    /// The last captured graph, simplified.
    pub fn graph(&self) -> Option<Graph> {
        let state = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        state.last.as_ref().and_then(|e| e.code.as_ref()).map(|c| c.shared.graph.clone())
    }

    /// The last captured graph as JSON, with the values of the tensors the function captured.
    ///
    /// # Errors
    /// What the device says when values are read.
    pub fn to_json(&self) -> Result<Option<String>> {
        let Some((entry, shared, captured)) = self.last()? else { return Ok(None) };
        let value = |t: &Tensor| Ok(json::SavedValue::Inline(t.to_literal()?.as_ref().clone()));
        json::write(&json::Saved {
            graph: shared.graph.clone(),
            takes: Some(entry.guard.clone()),
            checksum: None,
            captured: captured.iter().map(value).collect::<Result<_>>()?,
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
        let (entry, shared, captured) = self.last()?.ok_or(Error::NotCaptured { loc: self.loc })?;
        saved::save(folder.as_ref(), &shared.graph, &entry.guard, &captured)
    }

    /// The last captured graph, and the tensors that it takes after the arguments.
    #[allow(clippy::type_complexity)] // Three things of one graph.
    fn last(&self) -> Result<Option<(Arc<Entry<O>>, Arc<Shared>, Vec<Tensor>)>> {
        let entry = self.entries.lock().unwrap_or_else(PoisonError::into_inner).last.clone();
        let Some((entry, shared)) = entry.and_then(|e| e.code.as_ref().map(|c| c.shared.clone()).map(|s| (e, s)))
        else {
            return Ok(None);
        };
        let tensors = entry.tensors().ok_or(Error::CapturesChanged { loc: self.loc })?;
        Ok(Some((entry, shared, tensors)))
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
    if lines.len() == MOST_LINES {
        lines.remove(0);
    }
    lines.push(line);
}

impl<F, I, O> std::fmt::Debug for Compiled<F, I, O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Compiled(function at {}, {:?})", self.loc, self.options)
    }
}
