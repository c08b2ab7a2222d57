//! The graphs that are kept of a function, and what is known of what they were captured from.

use super::backend::Program;
use super::dynamic::History;
use super::explain::Explanation;
use super::numbers::Rest;
use super::options::CheckCaptures;
use crate::exec::DeviceArray;
use crate::graph::Graph;
use crate::literal::Literal;
use crate::tensor::{Repr, Tensor};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};

/// One captured graph.
pub(super) struct Entry<O> {
    /// What it was captured for.
    pub guard: String,
    /// `None`: the function reads values back and runs eagerly.
    pub code: Option<Code>,
    /// The tensors that the function used that are not its arguments.
    pub captured: Vec<Held>,
    /// The captured graph: all but its numbers, and these.
    pub traced: (Rest, Vec<u64>),
    pub template: O,
    /// Was another graph, or another tensor, found for the same arguments? Then the function is captured at every call.
    pub changes: bool,
    /// Calls that it served before this one.
    pub calls: AtomicU64,
    /// When it was last asked for.
    pub used: AtomicU64,
}

/// What runs a graph.
pub(super) struct Code {
    pub shared: Arc<Shared>,
    /// The numbers of this graph that are inputs of the program.
    pub numbers: Vec<Tensor>,
}

/// A program, for all graphs that differ in numbers that are its inputs.
pub(super) struct Shared {
    pub program: Box<dyn Program>,
    /// The simplified graph.
    pub graph: Graph,
}

/// A tensor that a function captured. If others hold it, too, its end is theirs: then the function captures another one.
pub(super) enum Held {
    /// Nobody else has it: the function made it while it was captured.
    Own(Tensor),
    Host(Weak<Literal>),
    Device(Weak<DeviceArray>),
}

impl Held {
    /// Of a tensor that the library itself holds so many times.
    pub fn new(tensor: Tensor, times: usize) -> Self {
        match &tensor.0 {
            Repr::Host(l) if Arc::strong_count(l) > times => Held::Host(Arc::downgrade(l)),
            Repr::Device(d) if Arc::strong_count(d) > times => Held::Device(Arc::downgrade(d)),
            _ => Held::Own(tensor),
        }
    }

    /// The tensor, if it is still there.
    pub fn get(&self) -> Option<Tensor> {
        match self {
            Held::Own(t) => Some(t.clone()),
            Held::Host(w) => w.upgrade().map(Tensor::from),
            Held::Device(w) => w.upgrade().map(|d| Tensor(Repr::Device(d))),
        }
    }

    /// May it be this tensor? One that the function makes anew at every call may be, if its values are the same.
    pub fn is(&self, tensor: &Tensor) -> bool {
        match (self, &tensor.0) {
            (Held::Host(w), Repr::Host(l)) => std::ptr::eq(w.as_ptr(), Arc::as_ptr(l)),
            (Held::Device(w), Repr::Device(d)) => std::ptr::eq(w.as_ptr(), Arc::as_ptr(d)),
            (Held::Own(Tensor(Repr::Host(a))), Repr::Host(b)) => Arc::ptr_eq(a, b) || a == b,
            _ => false,
        }
    }
}

impl<O> Entry<O> {
    /// The tensors that the program takes after the arguments, if they are still there.
    pub fn tensors(&self) -> Option<Vec<Tensor>> {
        let numbers = self.code.iter().flat_map(|c| c.numbers.iter().cloned());
        self.captured.iter().map(Held::get).chain(numbers.map(Some)).collect()
    }

    /// Is it time to look whether the function still captures the same?
    pub fn is_to_be_checked(&self, how: CheckCaptures) -> bool {
        let calls = self.calls.fetch_add(1, Relaxed) + 1;
        self.code.is_some()
            && match how {
                CheckCaptures::Never => false,
                CheckCaptures::Always => true,
                CheckCaptures::Auto => self.changes || calls.is_power_of_two(),
            }
    }

    /// Was there a call since the function was last looked at?
    pub fn ran_unseen(&self, how: CheckCaptures) -> bool {
        how == CheckCaptures::Auto && !self.changes && self.calls.load(Relaxed) > 2
    }
}

/// All that is kept of a function.
pub(super) struct State<O> {
    entries: HashMap<String, Arc<Entry<O>>>,
    pub last: Option<Arc<Entry<O>>>,
    clock: u64,
    pub history: History,
    /// By the rest of their graphs: programs, and the numbers last seen.
    pub known: HashMap<Rest, Known>,
    /// By graphs at any extents: which numbers were seen to vary.
    pub varying: HashMap<u64, BTreeSet<usize>>,
    /// The kernels of all graphs so far.
    pub kernels: HashSet<u64>,
    /// What there is to say but for the last graph's kernels.
    pub explanation: Explanation,
}

/// What is known of graphs that differ in numbers alone.
pub(super) struct Known {
    pub words: Vec<u64>,
    /// Which numbers are inputs of the program.
    pub inputs: BTreeSet<usize>,
    pub program: Weak<Shared>,
}

impl<O> Default for State<O> {
    fn default() -> Self {
        Self {
            entries: HashMap::new(),
            last: None,
            clock: 0,
            history: History::default(),
            known: HashMap::new(),
            varying: HashMap::new(),
            kernels: HashSet::new(),
            explanation: Explanation::default(),
        }
    }
}

impl<O> State<O> {
    /// The graph that was captured for such arguments.
    pub fn find(&mut self, guard: &str) -> Option<Arc<Entry<O>>> {
        self.clock += 1;
        let entry = self.entries.get(guard)?;
        entry.used.store(self.clock, Relaxed);
        Some(entry.clone())
    }

    /// Keeps a graph, at most so many in all: the one that was asked for longest ago is dropped for another. Gives what it was for.
    pub fn keep(&mut self, entry: Arc<Entry<O>>, most: usize) -> Option<String> {
        self.clock += 1;
        entry.used.store(self.clock, Relaxed);
        self.last = Some(entry.clone());
        self.entries.insert(entry.guard.clone(), entry);
        if self.entries.len() <= most {
            return None;
        }
        let oldest = self.entries.values().min_by_key(|e| e.used.load(Relaxed)).map(|e| e.guard.clone())?;
        self.entries.remove(&oldest);
        self.known.retain(|_, k| k.program.strong_count() > 0);
        if self.varying.len() > most {
            self.varying.clear();
        }
        Some(oldest)
    }
}
