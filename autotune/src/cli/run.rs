//! `autotune run`.

use super::args::Run;
use super::progress::Bar;
use super::report;
use super::select;
use super::{Exit, Outcome, Stop};
use crate::registry;
use crate::session::Settings;
use crate::store::Store;
use crate::tunable::{Problem, Tunable};
use crate::tuning::{How, Report, tune};
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tilewright_runtime::Device;

pub fn run(args: &Run, store: &Store, out: &mut dyn Write, err: &mut dyn Write) -> Outcome {
    let usage = |e: String| Stop(Exit::Usage, e);
    let kernels: Vec<&'static Tunable> = match &args.kernel {
        Some(name) => vec![registry::find(name).map_err(usage)?],
        None => registry::all().iter().map(|(t, _)| *t).filter(|t| t.has_inputs()).collect(),
    };
    // What the user wrote is checked before a device is opened.
    let mut problems = Vec::new();
    for tunable in kernels {
        let dims = match &args.shape {
            Some(text) => select::dims(tunable, text).map_err(usage)?,
            None => tunable.example_dims().ok_or_else(|| usage("give the sizes with --shape".into()))?,
        };
        problems.push((tunable, dims, select::dtype(tunable, args.dtype.as_deref()).map_err(usage)?));
    }
    let device = match &args.device {
        Some(name) => Device::open(name).map_err(|e| Stop(Exit::Device, e.to_string()))?,
        None => Device::best()?,
    };
    let how = How {
        settings: Settings {
            budget: args.budget,
            limit: args.timeout,
            search: args.search.clone(),
            seed: args.seed,
            force: args.force,
        },
        isolation: args.isolate,
        program: None,
        policy: args.cache,
    };
    let stop = interrupt();
    let mut worst = Exit::Done;
    let mut all = Vec::new();
    for (tunable, dims, dtype) in problems {
        if stop.load(Relaxed) {
            break;
        }
        let problem = Problem { device: device.clone(), dtype, dims, seed: args.seed };
        let bar = Bar::new(tunable.name(), false);
        let result = tune(tunable, &problem, store, &how, stop, &mut |p| bar.show(p));
        drop(bar);
        let exit = match result {
            Ok(report) => {
                let exit = exit_of(&report);
                if args.json {
                    all.push(report::json(&report));
                } else {
                    report::print(tunable, &problem, &report, store, out)?;
                }
                for a in &report.aside {
                    writeln!(err, "note: {a}")?;
                }
                if let Some(failure) = &report.summary.broken {
                    writeln!(err, "error: {}", failure.message)?;
                }
                if let Some(why) = &report.not_stored {
                    writeln!(err, "warning: the results are not stored: {why}")?;
                }
                exit
            }
            // With --all one kernel's trouble is not the others'.
            Err(e) if args.all => {
                writeln!(err, "{}: {e}", tunable.name())?;
                Exit::Failed
            }
            Err(e) => return Err(e.into()),
        };
        worst = if exit == Exit::Done { worst } else { exit };
    }
    if args.json {
        let json = if args.all { serde_json::Value::Array(all) } else { all.pop().unwrap_or_default() };
        writeln!(out, "{json:#}")?;
    }
    Ok(if stop.load(Relaxed) { Exit::Interrupted } else { worst })
}

fn exit_of(report: &Report) -> Exit {
    if report.summary.interrupted {
        Exit::Interrupted
    } else if report.summary.broken.is_some() {
        Exit::Failed
    } else if report.record.winner().is_none() {
        Exit::Nothing
    } else if report.not_stored.is_some() {
        Exit::NotStored
    } else {
        Exit::Done
    }
}

/// Set by Ctrl-C. The second one ends the program at once: a kernel may hang in this very process.
fn interrupt() -> &'static AtomicBool {
    static STOP: OnceLock<AtomicBool> = OnceLock::new();
    STOP.get_or_init(|| {
        // Without a handler Ctrl-C ends the program; results are stored in portions, so little is lost.
        let _ = ctrlc::set_handler(|| {
            if STOP.get().is_none_or(|s| s.swap(true, Relaxed)) {
                std::process::exit(Exit::Interrupted as i32);
            }
        });
        AtomicBool::new(false)
    })
}
