//! Why a configuration cannot be used: facts to record, not errors to stop at.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;
use tilewright_compiler::Error as CompileError;
use tilewright_runtime::Error;

/// What kind of failure it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// It needs more shared memory, registers or threads than the device has.
    Resources,
    /// It does not compile for the device.
    Compile,
    /// Its launch was refused, or it made an illegal access.
    Launch,
    /// Its result differs from that of the reference configuration.
    WrongResult,
    /// It leaves parts of the result unwritten.
    PartialWrite,
    /// It did not end in time.
    Timeout,
    /// It ended its process, or lost the device.
    Crash,
}

impl FailureKind {
    /// The kind as it stands in records and tables.
    pub fn name(self) -> &'static str {
        match self {
            FailureKind::Resources => "resources",
            FailureKind::Compile => "compile",
            FailureKind::Launch => "launch",
            FailureKind::WrongResult => "wrong_result",
            FailureKind::PartialWrite => "partial_write",
            FailureKind::Timeout => "timeout",
            FailureKind::Crash => "crash",
        }
    }
}

/// A failure with its story, in at most a few lines.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Failure {
    /// What kind.
    pub kind: FailureKind,
    /// What happened.
    pub message: String,
    /// For [`FailureKind::Timeout`]: the time it was given, in milliseconds. With more it may be tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_ms: Option<u64>,
}

impl Failure {
    /// A failure; a long message is cut.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        let mut message: String = message.into();
        // A driver's log may fill pages; the first lines tell the reason.
        let cut = message.char_indices().nth(600).map(|(i, _)| i);
        let lines = message.match_indices('\n').nth(5).map(|(i, _)| i);
        if let Some(end) = [cut, lines].into_iter().flatten().min() {
            message.truncate(end);
            message.push_str(" ...");
        }
        Self { kind, message, limit_ms: None }
    }

    /// That something did not end within a time.
    pub fn timeout(limit: Duration, message: impl Into<String>) -> Self {
        let limit_ms = Some(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX));
        Self { limit_ms, ..Self::new(FailureKind::Timeout, message) }
    }

    /// The failure that an error of a compilation or a launch is.
    pub fn of(error: &Error) -> Self {
        let text = error.to_string();
        if let Error::TimedOut { limit, .. } = error {
            return Self::timeout(*limit, text);
        }
        let kind = match error {
            Error::Compile(CompileError::Execution { .. }) => FailureKind::Launch,
            Error::Compile(CompileError::Unsupported { what, .. }) if what.contains("bytes of shared memory") => {
                FailureKind::Resources
            }
            Error::Compile(_) => FailureKind::Compile,
            Error::OutOfMemory { .. } => FailureKind::Resources,
            Error::DeviceLost { .. } => FailureKind::Crash,
            // The driver's names for a launch or a kernel that asks for too much.
            Error::Driver { .. }
                if ["OUT_OF_RESOURCES", "TOO_MANY_RESOURCES"].iter().any(|w| text.to_uppercase().contains(w)) =>
            {
                FailureKind::Resources
            }
            _ => FailureKind::Launch,
        };
        Self::new(kind, text)
    }

    /// The first line of the message.
    pub fn line(&self) -> &str {
        self.message.lines().next().unwrap_or_default()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.name(), self.line())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_sorted_into_kinds() {
        let shared = CompileError::Unsupported {
            kernel: "k".into(),
            target: "t".into(),
            what: "it needs 300000 bytes of shared memory, the device has 1000".into(),
            help: None,
        };
        assert_eq!(Failure::of(&Error::Compile(shared)).kind, FailureKind::Resources);
        let lost = Error::DeviceLost { device: "cuda:0".into(), cause: "illegal address".into() };
        assert_eq!(Failure::of(&lost).kind, FailureKind::Crash);
        let driver = Error::Driver {
            device: "cuda:0".into(),
            call: "cuLaunchKernel",
            message: "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES".into(),
        };
        assert_eq!(Failure::of(&driver).kind, FailureKind::Resources);
        let long = Failure::new(FailureKind::Compile, "é".repeat(10_000));
        assert!(long.message.chars().count() < 700);
        let pages = Failure::new(FailureKind::Compile, "line\n".repeat(100));
        assert_eq!(pages.message.lines().count(), 6);
    }
}
