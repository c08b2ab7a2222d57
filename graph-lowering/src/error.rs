//! What can go wrong between a tensor expression and its result.

use std::fmt;
use tilewright_compiler::error::{Diagnostic, Loc};

/// An error of the graph compiler: what, where, why, and what to do. Its `Debug` text is its message, for that is what a
/// `main` that returns it, and `unwrap`, print.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A tensor expression that does not make sense: wrong shapes, types or arguments.
    #[error("{0}")]
    Tensor(Diagnostic),
    /// A graph that breaks a rule of the graph IR.
    #[error("invalid graph after {stage}\n{}", problems.join("\n"))]
    Verify {
        /// After which stage or pass.
        stage: String,
        /// The broken rules, with the node.
        problems: Vec<String>,
    },
    /// Values were read back to the host while a function was being captured.
    #[error(
        "a tensor's values are read at {loc} while the function is being captured: they are not known yet\n  help: keep host read-back out of compiled functions, or drop `fullgraph` so that the function runs eagerly"
    )]
    ReadBack {
        /// The place of the read-back.
        loc: Loc,
    },
    /// A compiled function was found to use other tensors or numbers of its own than those it was captured with, some calls ago at most.
    #[error(
        "the function compiled at {loc} uses other tensors or numbers of its own than when it was captured, and may have done so for some calls, which then used the old ones\n  help: give what changes as an argument, or set the option `check_captures` to `always`; from now on this function is captured at every call"
    )]
    CapturesChanged {
        /// The place of `compile`.
        loc: Loc,
    },
    /// An option or backend that does not exist, or a value it cannot take.
    #[error("{0}")]
    Options(String),
    /// A graph file that cannot be read.
    #[error("cannot load the graph: {0}")]
    Load(String),
    /// A saved graph called with arguments of another kind than it was captured for.
    #[error("the graph was saved for arguments {takes}, and is called with {given}")]
    Arguments {
        /// What it takes.
        takes: String,
        /// What it was given.
        given: String,
    },
    /// A function that is to be saved and has no graph.
    #[error(
        "the function compiled at {loc} has no graph to save\n  help: call it once, with arguments of the kind it is to be saved for; `explain()` says whether it reads values back, and so runs without a graph"
    )]
    NotCaptured {
        /// The place of `compile`.
        loc: Loc,
    },
    /// Weights that cannot be read or written, or are not those that are needed.
    #[error("{origin}: {message}")]
    Weights {
        /// The file, or what else they come from.
        origin: String,
        /// What is wrong.
        message: String,
    },
    /// What the runtime says.
    #[error(transparent)]
    Runtime(#[from] tilewright_runtime::Error),
    /// A broken invariant of the graph compiler.
    #[error("internal error of the graph compiler: {0}; please report it with the function's source")]
    Internal(String),
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error {
    /// An error of a tensor expression at a place.
    pub(crate) fn tensor(loc: Loc, message: impl Into<String>) -> Self {
        Error::Tensor(Diagnostic::new(loc, message))
    }
}

impl From<tilewright_compiler::Error> for Error {
    fn from(e: tilewright_compiler::Error) -> Self {
        Error::Runtime(e.into())
    }
}

/// The result of a call of the graph compiler.
pub type Result<T, E = Error> = std::result::Result<T, E>;
