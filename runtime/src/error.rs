//! What can go wrong on the way from a launch to its result.

use std::fmt;
use std::time::Duration;

/// An error of the runtime: what, where, why, and what to do. Its `Debug` text is its message, for that is what a `main` that
/// returns it, and `unwrap`, print.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel cannot be built or compiled.
    #[error(transparent)]
    Compile(#[from] tilewright_compiler::Error),
    /// No device has this name.
    #[error("unknown device `{name}`: {why}\n  available: {available}\n  help: {help}")]
    UnknownDevice {
        /// The name asked for.
        name: String,
        /// Why it names no device here.
        why: String,
        /// The devices of this machine.
        available: String,
        /// What to do.
        help: &'static str,
    },
    /// The device has not this much memory left.
    #[error("out of memory on {device}: {requested} bytes asked for{}\n  help: drop buffers no longer needed, or work in smaller parts", free_text(*free, *total))]
    OutOfMemory {
        /// The device's name.
        device: String,
        /// Bytes asked for.
        requested: u64,
        /// Bytes free, if the driver tells.
        free: Option<u64>,
        /// Bytes in all, if the driver tells.
        total: Option<u64>,
    },
    /// A copy between host and device of two lengths.
    #[error(
        "cannot copy {what}: the buffer has {buffer} elements, the host slice {host}\n  help: copy a part with `slice(range)`, or make the lengths equal"
    )]
    LengthMismatch {
        /// The direction of the copy.
        what: &'static str,
        /// Elements of the buffer.
        buffer: usize,
        /// Elements of the host slice.
        host: usize,
    },
    /// A view or slice that does not fit its buffer.
    #[error("invalid view: {0}")]
    View(String),
    /// Two things that must live on one device live on two.
    #[error("{what} live on different devices: {first} and {second}\n  help: copy one of them to the other's device")]
    DifferentDevices {
        /// What.
        what: String,
        /// One device.
        first: String,
        /// The other device.
        second: String,
    },
    /// The arguments of a launch do not fit the kernel's parameters.
    #[error("cannot launch kernel `{kernel}`: {message}")]
    Arguments {
        /// The kernel's name.
        kernel: String,
        /// What does not fit, and what to do.
        message: String,
    },
    /// A grid the device cannot run.
    #[error(
        "cannot launch kernel `{kernel}`: the grid has {extent} programs along axis {axis}, {device} allows {limit}\n  help: {help}"
    )]
    Grid {
        /// The kernel's name.
        kernel: String,
        /// The device's name.
        device: String,
        /// Which axis, from 0.
        axis: usize,
        /// Programs asked for.
        extent: u64,
        /// Programs allowed.
        limit: u64,
        /// What to do.
        help: &'static str,
    },
    /// A driver refused a call.
    #[error("{device}: {call} failed: {message}")]
    Driver {
        /// The device's name.
        device: String,
        /// The driver's function.
        call: &'static str,
        /// The driver's code and text.
        message: String,
    },
    /// A kernel was still running when the time it was given was up.
    #[error("kernel `{kernel}` did not end within {} s on {device}\n{detail}", limit.as_secs_f64())]
    TimedOut {
        /// The kernel's name.
        kernel: String,
        /// The device's name.
        device: String,
        /// The time it was given.
        limit: Duration,
        /// Where it was, if that is known, and what follows.
        detail: String,
    },
    /// The device was lost to a fault of an earlier launch; nothing on it can be used any more.
    #[error(
        "{device} is lost: {cause}\n  help: a kernel made an illegal access, trapped or did not end; nothing on the device can be used until the process starts anew. Run the same launch on the `cpu` device, which checks every access"
    )]
    DeviceLost {
        /// The device's name.
        device: String,
        /// The call that met the fault, and the driver's text.
        cause: String,
    },
    /// The device cannot do what was asked.
    #[error("{device} cannot {what}\n  help: {help}")]
    Unsupported {
        /// The device's name.
        device: String,
        /// What it cannot do.
        what: String,
        /// What to do.
        help: &'static str,
    },
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn free_text(free: Option<u64>, total: Option<u64>) -> String {
    match (free, total) {
        (Some(free), Some(total)) => format!(", {free} of {total} free"),
        (None, Some(total)) => format!(", {total} in all"),
        (Some(free), None) => format!(", {free} free"),
        (None, None) => String::new(),
    }
}

/// The result of a runtime call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_main_that_fails_prints_the_message() {
        let error = Error::View("too long".into());
        assert_eq!(format!("{error:?}"), "invalid view: too long");
    }
}
