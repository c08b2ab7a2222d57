//! Which extents of arguments vary from call to call.
//!
//! A function is captured anew for each set of extents: a host program may look at extents and go another way, so no graph
//! but its own is known to be right for them. Captures are cheap; kernels are not, and are shared: extents that vary are
//! parameters of kernels, and kernels of the same text are one.

use crate::graph::varying::{self, Numbers, Varying};
use crate::graph::{Graph, TensorType};
use std::collections::{BTreeSet, VecDeque};

/// Are extents parameters of kernels, so that other extents need no other kernels?
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Dynamic {
    /// Those that have been seen to differ from call to call.
    #[default]
    Auto,
    /// All extents of arguments, from the first call on. Extents of 0 and 1 are always compiled for.
    Always,
    /// None: every kernel is compiled for its extents.
    Never,
}

impl Dynamic {
    /// The names that `Options::set` knows, in the order of the values.
    pub(super) const NAMES: [&str; 3] = ["auto", "always", "never"];

    /// The value of a name.
    pub(super) fn named(name: &str) -> Option<Self> {
        let all = [Dynamic::Auto, Dynamic::Always, Dynamic::Never];
        Self::NAMES.iter().position(|n| *n == name).map(|i| all[i])
    }
}

/// Most kinds of arguments, and of graphs, that are remembered; the oldest is forgotten for another.
const MOST: usize = 64;

/// What was seen of a function's arguments and graphs.
#[derive(Default)]
pub(super) struct History {
    kinds: VecDeque<Kind>,
    graphs: VecDeque<Shape>,
}

/// Arguments that differ in extents alone.
struct Kind {
    /// Their description without extents.
    text: String,
    last: Vec<Vec<usize>>,
    varying: BTreeSet<(usize, usize)>,
}

/// Graphs that differ in numbers alone.
struct Shape {
    skeleton: u64,
    last: Numbers,
    varying: Varying,
}

impl History {
    /// Notes arguments that are captured for: which of their dimensions vary, and what is new about them.
    pub fn arguments(
        &mut self,
        mode: Dynamic,
        text: &str,
        types: &[TensorType],
    ) -> (BTreeSet<(usize, usize)>, Vec<String>) {
        let mut news = Vec::new();
        let position = self.kinds.iter().position(|k| k.text == text && k.last.len() == types.len());
        let mut kind = position.and_then(|i| self.kinds.remove(i)).unwrap_or_else(|| Kind {
            text: text.to_owned(),
            last: types.iter().map(|t| t.dims.clone()).collect(),
            varying: BTreeSet::new(),
        });
        for (argument, (last, ty)) in kind.last.iter_mut().zip(types).enumerate() {
            for (i, (old, &new)) in last.iter_mut().zip(&ty.dims).enumerate() {
                let known = kind.varying.contains(&(argument, i));
                let always = mode == Dynamic::Always && new > 1;
                if *old != new {
                    let became = match mode {
                        Dynamic::Never => "",
                        _ if new <= 1 => ", which is compiled for",
                        _ if known || *old <= 1 => "",
                        _ => ": now dynamic",
                    };
                    news.push(format!("dimension {i} of argument {argument}: {new}, was {old}{became}"));
                }
                if mode != Dynamic::Never && (always || (new > 1 && *old > 1 && new != *old)) {
                    kind.varying.insert((argument, i));
                }
                if new > 1 || *old <= 1 {
                    *old = new;
                }
            }
        }
        let varying = kind.varying.clone();
        if self.kinds.len() == MOST {
            self.kinds.pop_front();
        }
        self.kinds.push_back(kind);
        (varying, news)
    }

    /// Notes a graph captured for arguments of which these dimensions vary: which of its numbers do. Numbers that differ from
    /// those of an earlier graph of the same skeleton vary; for a graph that is the first of its skeleton it is inferred.
    pub fn graph(&mut self, mode: Dynamic, graph: &Graph, arguments: &BTreeSet<(usize, usize)>) -> Varying {
        if mode == Dynamic::Never {
            return Varying::default();
        }
        let skeleton = varying::skeleton(graph);
        let position = self.graphs.iter().position(|s| s.skeleton == skeleton);
        let shape = match position.and_then(|i| self.graphs.remove(i)) {
            Some(mut known) => {
                let differs = known.last.compare(graph);
                known.varying.extend(&differs);
                if mode == Dynamic::Always {
                    known.varying.extend(&varying::propagate(graph, arguments));
                }
                known
            }
            None => Shape { skeleton, last: Numbers::of(graph), varying: varying::propagate(graph, arguments) },
        };
        let varying = shape.varying.clone();
        if self.graphs.len() == MOST {
            self.graphs.pop_front();
        }
        self.graphs.push_back(shape);
        varying
    }
}

/// The extents that vary, by names: equal extents have one name.
pub(super) fn symbols(varying: &BTreeSet<(usize, usize)>, types: &[TensorType]) -> Vec<String> {
    let mut values: Vec<usize> = Vec::new();
    let mut lines = Vec::new();
    for &(argument, dim) in varying {
        let Some(&extent) = types.get(argument).and_then(|t| t.dims.get(dim)) else { continue };
        if extent <= 1 {
            lines.push(format!("dimension {dim} of argument {argument} = {extent}, which is compiled for"));
            continue;
        }
        let symbol = values.iter().position(|&v| v == extent).unwrap_or_else(|| {
            values.push(extent);
            values.len() - 1
        });
        lines.push(format!("dimension {dim} of argument {argument} = s{symbol} = {extent}"));
    }
    lines
}
