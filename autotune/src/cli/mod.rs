//! The command `autotune`, for any program: `fn main() -> std::process::ExitCode { tilewright::autotune::main() }` makes a
//! binary that lists and tunes the library's kernels and its own.

mod args;
mod manage;
mod progress;
mod report;
mod run;
mod select;
mod terminal;

use crate::store::Store;
use args::{Command, Options};
use clap::Parser;
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

/// How the command ends; the numbers are part of its interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// Done.
    Done = 0,
    /// Something failed that no other code names.
    Failed = 1,
    /// The command line is wrong: an unknown kernel, size, device name or option.
    Usage = 2,
    /// No configuration works, or nothing is stored for what was asked.
    Nothing = 3,
    /// The device cannot be used.
    Device = 4,
    /// Measured, but the results could not be stored.
    NotStored = 5,
    /// `verify` found records that do not hold, or `diff` found other winners.
    Differs = 6,
    /// Ended by Ctrl-C; what was measured is stored.
    Interrupted = 130,
}

/// Why the command ends early: the code, and the text for the standard error.
#[derive(Debug)]
pub(crate) struct Stop(pub Exit, pub String);

pub(crate) type Outcome = Result<Exit, Stop>;

impl From<tilewright_runtime::Error> for Stop {
    fn from(e: tilewright_runtime::Error) -> Self {
        let exit = match e {
            tilewright_runtime::Error::UnknownDevice { .. } => Exit::Device,
            _ => Exit::Failed,
        };
        Stop(exit, e.to_string())
    }
}

impl From<std::io::Error> for Stop {
    fn from(e: std::io::Error) -> Self {
        // Whoever read the output has seen enough.
        if e.kind() == std::io::ErrorKind::BrokenPipe {
            return Stop(Exit::Done, String::new());
        }
        Stop(Exit::Failed, e.to_string())
    }
}

/// The command, with this program's arguments.
pub fn main() -> ExitCode {
    crate::worker::serve_if_asked();
    let (mut out, mut err) = (std::io::stdout(), std::io::stderr());
    ExitCode::from(run_in(std::env::args_os(), &mut out, &mut err, terminal::width()) as u8)
}

/// Are these the arguments of a command? The program's name is the first.
///
/// # Errors
/// What is wrong with them, or the help that they ask for.
pub fn check<A: Into<OsString> + Clone>(arguments: impl IntoIterator<Item = A>) -> Result<(), String> {
    Options::try_parse_from(arguments).map(drop).map_err(|e| e.render().to_string())
}

/// The command with these arguments, the program's name first; results go to `out`, messages to `err`.
pub fn run<A: Into<OsString> + Clone>(
    arguments: impl IntoIterator<Item = A>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Exit {
    run_in(arguments, out, err, None)
}

/// The same in a terminal that has so many columns, or none.
pub(crate) fn run_in<A: Into<OsString> + Clone>(
    arguments: impl IntoIterator<Item = A>,
    out: &mut dyn Write,
    err: &mut dyn Write,
    width: Option<usize>,
) -> Exit {
    let options = match Options::try_parse_from(arguments) {
        Ok(options) => options,
        Err(e) => {
            // Help and version go to the output and are no failure. A closed stream leaves nobody to tell.
            let text = e.render().to_string();
            let _ = if e.use_stderr() { err.write_all(text.as_bytes()) } else { out.write_all(text.as_bytes()) };
            return if e.use_stderr() { Exit::Usage } else { Exit::Done };
        }
    };
    // What programs read is not broken.
    let folded = width.filter(|_| !options.command.is_for_programs());
    let (mut plain, mut notes) = (terminal::Plain::new(out, folded), terminal::Plain::new(err, None));
    let exit = carry_out(&options, &mut plain, &mut notes);
    // A closed stream leaves nobody to tell.
    let _ = (plain.finish(), notes.finish());
    exit
}

fn carry_out(options: &Options, out: &mut dyn Write, err: &mut dyn Write) -> Exit {
    let store = options.store.clone().map_or_else(Store::from_env, Store::at);
    let result = match &options.command {
        Command::List { json } => manage::list(&store, *json, out),
        Command::Run(args) => run::run(args, &store, out, err),
        Command::Show { which, json } => manage::show(&store, which, *json, out, err),
        Command::Explain { which, json } => manage::explain(&store, which, *json, out, err),
        Command::Diff { other } => manage::diff(&store, other, out, err),
        Command::Verify { json } => manage::verify(&store, *json, out, err),
        Command::Prune { dry_run } => manage::prune(&store, *dry_run, out, err),
        Command::Export { file, which } => manage::export(&store, file, which, out, err),
        Command::Import { file } => manage::import(&store, file, out, err),
        Command::Plot { which, output } => manage::plot(&store, which, output.as_deref(), out, err),
    };
    match result {
        Ok(exit) => exit,
        Err(Stop(exit, message)) if message.is_empty() => exit,
        Err(Stop(exit, message)) => {
            let _ = writeln!(err, "error: {message}");
            exit
        }
    }
}
