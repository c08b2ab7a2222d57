//! Errors of the compiler: what, where, why, and what to do.

use std::fmt;

/// A place in a source file. `line` and `col` count from 1; the default value means "unknown".
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Loc {
    /// The file, as the compiler of that file names it; empty if unknown.
    pub file: &'static str,
    /// Line, from 1; 0 if unknown.
    pub line: u32,
    /// Column, from 1; 0 if unknown.
    pub col: u32,
}

impl Loc {
    /// No known place.
    pub const UNKNOWN: Loc = Loc { file: "", line: 0, col: 0 };

    /// The place of the nearest caller that is not `#[track_caller]`.
    #[track_caller]
    pub fn caller() -> Self {
        let l = std::panic::Location::caller();
        Loc { file: l.file(), line: l.line(), col: l.column() }
    }

    /// Is the place known?
    pub fn is_known(self) -> bool {
        self.line != 0
    }
}

impl fmt::Display for Loc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_known() {
            write!(f, "{}:{}:{}", self.file, self.line, self.col)
        } else {
            f.write_str("unknown place")
        }
    }
}

impl fmt::Debug for Loc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// One mistake: what is wrong, where, and what to do about it.
#[derive(Clone, PartialEq, Debug)]
pub struct Diagnostic {
    /// What is wrong and why, with the operands' types and shapes.
    pub message: String,
    /// Where in the user's source.
    pub loc: Loc,
    /// What to do, if there is good advice.
    pub help: Option<String>,
}

impl Diagnostic {
    /// A diagnostic without advice.
    pub fn new(loc: Loc, message: impl Into<String>) -> Self {
        Self { message: message.into(), loc, help: None }
    }

    /// The same with advice.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message)?;
        if self.loc.is_known() {
            write!(f, "\n  --> {}", self.loc)?;
        }
        if let Some(help) = &self.help {
            write!(f, "\n  help: {help}")?;
        }
        Ok(())
    }
}

/// An error of the compiler. Its `Debug` text is its message, for that is what a `main` that returns it, and `unwrap`, print.
#[derive(Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// The kernel's own mistakes, found while its IR was built; at least one.
    #[error("kernel `{kernel}` is not valid\n{}", join(diagnostics))]
    Kernel {
        /// The kernel's name.
        kernel: String,
        /// The mistakes, in order of discovery.
        diagnostics: Vec<Diagnostic>,
    },
    /// The verifier refused the IR: the fault of whoever built it.
    #[error("invalid IR in `{function}` ({stage})\n{}", join(diagnostics))]
    Verify {
        /// The function's name.
        function: String,
        /// After which stage or pass.
        stage: String,
        /// The broken rules.
        diagnostics: Vec<Diagnostic>,
    },
    /// IR text that cannot be parsed.
    #[error("cannot parse IR text\n{0}")]
    Parse(Diagnostic),
    /// A target cannot do what the kernel asks.
    #[error("kernel `{kernel}` cannot run on {target}: {what}{}", help.as_ref().map(|h| format!("\n  help: {h}")).unwrap_or_default())]
    Unsupported {
        /// The kernel's name.
        kernel: String,
        /// The target's name.
        target: String,
        /// What is missing, with the place if one is known.
        what: String,
        /// What to do.
        help: Option<String>,
    },
    /// The kernel went wrong while it was interpreted or simulated (an access out of bounds, a race).
    #[error("kernel `{kernel}` failed\n{diagnostic}")]
    Execution {
        /// The kernel's name.
        kernel: String,
        /// What happened, and where.
        diagnostic: Diagnostic,
    },
    /// The kernel was still running when the time it was given was up.
    #[error("kernel `{kernel}` did not end in time\n{diagnostic}")]
    TimedOut {
        /// The kernel's name.
        kernel: String,
        /// Where it was, and what to do.
        diagnostic: Diagnostic,
    },
    /// A broken invariant of the compiler itself.
    #[error("internal error: {0}; please report it with the kernel's source")]
    Internal(String),
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn join(diagnostics: &[Diagnostic]) -> String {
    diagnostics.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// The result of a compiler stage.
pub type Result<T, E = Error> = std::result::Result<T, E>;
