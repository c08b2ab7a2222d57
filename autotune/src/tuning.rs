//! Tuning one kernel for one problem, from the store and back to it. The command and benchmarks call this.

use crate::bench::{Bench, Local};
use crate::config::Config;
use crate::measure::CachePolicy;
use crate::plan::Plan;
use crate::record::{Entry, Record};
use crate::session::{FIRST, LIMIT, Progress, Session, Settings, Summary, limit_on};
use crate::store::{Aside, Store};
use crate::tunable::{Problem, Tunable};
use crate::worker::{self, Program, Remote, Task};
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use tilewright_runtime::{DeviceKind, Error, Result};

/// Where configurations run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Isolation {
    /// In worker processes, where a launch that hangs or crashes ends nothing else, if this program can be started as one
    /// ([`crate::worker::serve_if_asked`]). In this process on the CPU device, whose launches can be ended, and if it cannot.
    #[default]
    Auto,
    /// In worker processes.
    Always,
    /// In this process.
    Never,
}

/// How to tune, beyond the session's settings.
#[derive(Clone, Debug)]
pub struct How {
    /// The session's settings.
    pub settings: Settings,
    /// Where configurations run.
    pub isolation: Isolation,
    /// How workers are started; this program with [`crate::worker::WORKER_ARGUMENT`] by default.
    pub program: Option<Program>,
    /// What launches find in the cache; by default what suits the device.
    pub policy: Option<CachePolicy>,
}

impl Default for How {
    fn default() -> Self {
        Self { settings: Settings::default(), isolation: Isolation::Auto, program: None, policy: None }
    }
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Report {
    /// What there was to tune.
    pub plan: Plan,
    /// The record as it now is, in the store or, if that failed, in memory, less what is not in the kernel's space any more.
    pub record: Record,
    /// What this session did.
    pub summary: Summary,
    /// What was passed over in the store.
    pub aside: Vec<Aside>,
    /// Why the results are not in the store, if they are not.
    pub not_stored: Option<String>,
    /// The configurations measured or failed in this session.
    pub new: Vec<Config>,
}

/// Tunes a kernel for a problem: loads what is known, measures what is not, stores it.
///
/// # Errors
/// If the kernel cannot be built, inputs cannot be made, or nothing is allowed. Failures of candidates are in the
/// report.
pub fn tune(
    tunable: &'static Tunable,
    problem: &Problem,
    store: &Store,
    how: &How,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Report> {
    let isolated = match how.isolation {
        Isolation::Auto => {
            problem.device.info().kind != DeviceKind::Cpu && (how.program.is_some() || worker::serves(tunable))
        }
        Isolation::Always => true,
        Isolation::Never => false,
    };
    let (device, dims, dtype) = (&problem.device, &problem.dims, problem.dtype);
    let begun = Instant::now();
    let instance = tunable.instantiate_by(problem, Some(begun + how.settings.budget.max(FIRST)))?;
    let source = |c: &Config| instance.launch(c);
    let plan = Plan::new(tunable, device, dtype, dims, &source)?;
    let found = store.load(&plan.subject, &plan.conditions);
    let record = found.record.unwrap_or_else(|| Record::new(plan.subject.clone(), plan.conditions.clone()));
    let record = current(record, &plan, &source);
    let mut keep = Keeper { store, plan: &plan, record: record.clone(), new: Vec::new(), error: None };
    // Making the inputs was part of what it may take.
    let left = how.settings.budget.saturating_sub(begun.elapsed());
    let settings = Settings { budget: left, ..how.settings.clone() };
    let session = Session {
        candidates: &plan.candidates,
        reference: plan.default.clone(),
        record: &record,
        problem: dims.to_string(),
        settings: &settings,
        stop,
    };
    if session.open().is_empty() {
        let summary = Summary { known: plan.candidates.len(), ..Summary::default() };
        let record = of_space(record.clone(), &plan);
        return Ok(Report { record, summary, aside: found.aside, not_stored: None, new: Vec::new(), plan });
    }
    let policy = how.policy.unwrap_or(CachePolicy::of(device));
    let mut go = |bench: &mut dyn Bench| session.run(bench, progress, &mut |entries| keep.add(entries));
    let summary = if isolated {
        let program = match &how.program {
            Some(program) => program.clone(),
            None => Program::this().map_err(|e| Error::Arguments {
                kernel: tunable.name().to_owned(),
                message: format!("cannot start worker processes: {e}; tune with `--isolate never`"),
            })?,
        };
        let task = Task {
            kernel: tunable.name().to_owned(),
            device: device.name().to_owned(),
            dtype: dtype.to_string(),
            dims: dims.values().to_vec(),
            seed: problem.seed,
            policy,
            first: plan.default.clone(),
        };
        // The worker has inputs of its own; two of them may not fit on the device.
        drop(instance);
        go(&mut Remote::new(program, task, how.settings.limit.unwrap_or(LIMIT)))
    } else {
        go(&mut Local::new(
            &source,
            &plan.default,
            policy,
            tunable.set_tolerance(),
            how.settings.limit.unwrap_or_else(|| limit_on(device)),
        )?)
    };
    let Keeper { record, new, error, .. } = keep;
    let record = of_space(record, &plan);
    Ok(Report { record, summary, aside: found.aside, not_stored: error, new, plan })
}

/// The record of what the kernel's space has: of the rest nothing can be used, though it stays in the store.
fn of_space(mut record: Record, plan: &Plan) -> Record {
    record.entries.retain(|e| plan.candidates.contains(&e.config));
    record
}

/// The record without entries of a configuration whose code has changed since: they are measured again.
pub(crate) fn current<'a>(
    mut record: Record,
    plan: &Plan,
    source: &dyn Fn(&Config) -> Result<tilewright_runtime::Launch<'a>>,
) -> Record {
    record.entries.retain(|e| {
        let Some(facts) = &e.facts else { return true };
        if !plan.candidates.contains(&e.config) {
            return true;
        }
        // What cannot be built now fails again when it is tried.
        source(&e.config).and_then(|l| crate::bench::source_hash(l.def())).is_ok_and(|h| h == facts.source)
    });
    record
}

/// Takes entries into the record and the store.
pub(crate) struct Keeper<'a> {
    pub store: &'a Store,
    pub plan: &'a Plan,
    pub record: Record,
    pub new: Vec<Config>,
    pub error: Option<String>,
}

impl Keeper<'_> {
    pub fn add(&mut self, entries: &[Entry]) {
        if entries.is_empty() {
            return;
        }
        self.record.merge(entries);
        for e in entries {
            if !self.new.contains(&e.config) {
                self.new.push(e.config.clone());
            }
        }
        match self.store.add(&self.plan.subject, &self.plan.conditions, &self.record.entries) {
            Ok(record) => {
                self.record = record;
                self.error = None;
            }
            Err(e) => self.error = Some(format!("cannot write to {}: {e}", self.store.dir().display())),
        }
    }
}
