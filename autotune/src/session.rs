//! One tuning: from candidates and what is known of them to new entries.
//!
//! **In**: candidates, the record so far, a [`Bench`]. **Out**: an entry for each candidate that was tried, given to `save` in
//! small portions, so that whatever ends the run, what was measured is kept. **Holds**: no candidate's failure is an
//! error of the session.

use crate::bench::{Bench, Facts};
use crate::config::Config;
use crate::eliminate;
use crate::failure::{Failure, FailureKind};
use crate::measure::{median, quantile, runs_for};
use crate::record::{Entry, Outcome, Record, Timing, now};
use crate::runoff;
use crate::search::{self, Search};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tilewright_runtime::{Device, DeviceKind};

/// How long a launch may take where it can be ended: on the CPU device, and in worker processes. A driver may compile the kernel in its
/// first launch.
pub const LIMIT: Duration = Duration::from_secs(20);
/// How long a launch may take where it cannot be ended.
pub const LAST_RESORT: Duration = Duration::from_secs(60);

/// What the reference and its first times may take however small the budget is: without them nothing is known.
pub const FIRST: Duration = Duration::from_secs(1);

/// How to tune.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How long it may take. What has begun is ended then where it can be: on the CPU device and in worker processes; the reference
    /// has at least [`FIRST`].
    pub budget: Duration,
    /// How long one launch of a candidate may take, or one step of it in a worker process. Five times the reference's first run
    /// if that is more. What takes longer has failed. By default [`LIMIT`], or [`LAST_RESORT`] where the device is lost with such
    /// a launch.
    pub limit: Option<Duration>,
    /// In which order candidates are tried.
    pub search: Search,
    /// For random orders and inputs.
    pub seed: u64,
    /// Measure what is already known too?
    pub force: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { budget: Duration::from_secs(30), limit: None, search: Search::auto(), seed: 1, force: false }
    }
}

/// How long a launch in this process may take on a device if nobody says.
pub(crate) fn limit_on(device: &Device) -> Duration {
    if device.info().kind == DeviceKind::Cpu { LIMIT } else { LAST_RESORT }
}

/// What goes on, for a progress bar.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Candidates dealt with.
    pub done: usize,
    /// Candidates to deal with.
    pub total: usize,
    /// What is done now.
    pub stage: &'static str,
    /// The best so far, with its median in microseconds.
    pub best: Option<(Config, f64)>,
    /// Time left of the budget.
    pub left: Duration,
}

/// What a session did.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Summary {
    /// Candidates measured, in this session.
    pub measured: usize,
    /// Candidates that failed, in this session.
    pub failed: usize,
    /// Candidates that have the code of another one.
    pub same: usize,
    /// Candidates known before.
    pub known: usize,
    /// Candidates that the budget did not reach.
    pub left_out: usize,
    /// Was not even the reference through when the time was up?
    pub too_short: bool,
    /// Was it ended from outside?
    pub interrupted: bool,
    /// The reference configuration.
    pub reference: Option<Config>,
    /// Why no configuration could be the reference, if none could.
    pub hopeless: Option<Failure>,
    /// Why the session ended early, if no configuration is to blame.
    pub broken: Option<Failure>,
    /// Has the device been lost to a candidate, in this very process? Then the rest could not be tried.
    pub lost: bool,
    /// Finalists of the run-off.
    pub finalists: usize,
}

/// The parts a session works with.
pub struct Session<'a> {
    /// The candidates, each allowed and in canonical form.
    pub candidates: &'a [Config],
    /// What to compare with; tried first.
    pub reference: Config,
    /// What is known.
    pub record: &'a Record,
    /// The exact problem, for the entries.
    pub problem: String,
    /// How to tune.
    pub settings: &'a Settings,
    /// Set to end early.
    pub stop: &'a AtomicBool,
}

/// A candidate that is right, with its samples.
struct Live {
    config: Config,
    facts: Facts,
    samples: Vec<f64>,
    out_in_round: Option<usize>,
    finalist: bool,
    corrected: Option<f64>,
    /// Known from before, and here only to be compared with.
    incumbent: bool,
}

impl Session<'_> {
    /// Candidates without a result; all of them under `force`.
    pub fn open(&self) -> Vec<Config> {
        let limit = self.settings.limit.map_or(0, |l| u64::try_from(l.as_millis()).unwrap_or(u64::MAX));
        // What others measured is to be seen here first.
        let own = |c: &Config| self.record.entry(c).filter(|e| !e.imported);
        let known = |c: &Config| match own(c).map(|e| &e.outcome) {
            // With more time it may end, if more is given on purpose.
            Some(Outcome::Failed(f)) => f.limit_ms.is_none_or(|given| given >= limit),
            other => other.is_some(),
        };
        let mut open: Vec<Config> =
            self.candidates.iter().filter(|c| self.settings.force || !known(c)).cloned().collect();
        // What was fastest elsewhere is the first to be tried, behind the reference.
        let elsewhere = |c: &Config| {
            let entry = self.record.entry(c).filter(|e| e.imported);
            entry.and_then(Entry::median).unwrap_or(f64::INFINITY)
        };
        open.sort_by(|a, b| elsewhere(a).total_cmp(&elsewhere(b)));
        open
    }

    /// Tunes.
    pub fn run(
        &self,
        bench: &mut dyn Bench,
        progress: &mut dyn FnMut(&Progress),
        save: &mut dyn FnMut(&[Entry]),
    ) -> Summary {
        let start = Instant::now();
        let open = self.open();
        let mut summary = Summary { known: self.candidates.len() - open.len(), ..Summary::default() };
        if open.is_empty() {
            return summary;
        }
        let budget = self.settings.budget;
        // A part is kept for timing what has been found.
        let until_search = start + budget.mul_f64(0.6);
        let until = start + budget;
        let stopped = || self.stop.load(Relaxed);
        let mut live: Vec<Live> = Vec::new();
        let mut codes: HashMap<String, Config> = HashMap::new();
        let mut tell = |done: usize, stage: &'static str, live: &[Live]| {
            let best = live.iter().map(|l| (l.config.clone(), median(&l.samples))).min_by(|a, b| a.1.total_cmp(&b.1));
            progress(&Progress {
                done,
                total: open.len(),
                stage,
                best,
                left: until.saturating_duration_since(Instant::now()),
            });
        };
        tell(0, "reference", &live);
        bench.end_at(Some(start + budget.max(FIRST)));
        let mut refused = HashSet::new();
        let chosen = self.choose_reference(bench, &open, &mut refused, &mut summary, save);
        let Some(reference) = chosen else { return summary };
        summary.reference = Some(reference.clone());

        // Compile, check, and time roughly, batch by batch; the reference first, for it is the heuristic's choice.
        let mut searcher = self.settings.search.searcher(&open, self.settings.seed);
        let mut tried = false;
        let first = open.iter().position(|c| *c == reference);
        let mut queue: Vec<usize> = first.into_iter().collect();
        let mut handed_out = vec![false; open.len()];
        queue.iter().for_each(|&i| handed_out[i] = true);
        let batch = std::thread::available_parallelism().map_or(2, |n| 2 * n.get()).min(16);
        // Seconds of compilation of one configuration, as far as is known.
        let mut each = 0.0f64;
        let mut done = summary.failed;
        loop {
            let mut idle = 0;
            // What cannot be compiled in time would be for nothing.
            let left = until_search.saturating_duration_since(Instant::now()).as_secs_f64();
            let batch = if each > 0.0 { ((left / each) as usize).clamp(1, batch) } else { batch.min(2) };
            while queue.len() < batch && idle <= open.len() {
                let Some(i) = searcher.ask(&open) else { break };
                // A searcher that has nothing new to say is not asked for ever.
                idle += 1;
                if i >= open.len() || std::mem::replace(&mut handed_out[i], true) {
                    continue;
                }
                if refused.contains(&open[i]) {
                    searcher.tell(i, &open[i], search::Outcome::Failed);
                } else {
                    queue.push(i);
                    idle = 0;
                }
            }
            if queue.is_empty() || stopped() || !bench.usable() || (Instant::now() >= until_search && tried) {
                break;
            }
            tell(done, "compile", &live);
            let configs: Vec<Config> = queue.iter().map(|&i| open[i].clone()).collect();
            let begun = Instant::now();
            let compiled = bench.compile(&configs);
            each = each.max(begun.elapsed().as_secs_f64() / configs.len().max(1) as f64);
            let mut new = Vec::new();
            let mut left = queue.len();
            for (&i, (config, result)) in queue.iter().zip(configs.iter().zip(compiled)) {
                // Failures of compilation are known by now; the others may wait for another session.
                if bench.broken().is_some() {
                    break;
                }
                if result.is_ok() && (stopped() || !bench.usable() || (Instant::now() >= until && tried)) {
                    break;
                }
                tell(done, "check", &live);
                let fastest = eliminate::fastest(live.iter().map(|l| &l.samples[..]));
                let tried_one = self.try_one(bench, config, result, &mut codes, fastest);
                if tried_one.is_err() && self.nobody_to_blame(bench, &tried_one) {
                    break;
                }
                bench.end_at(Some(until));
                left -= 1;
                done += 1;
                tried = true;
                match tried_one {
                    Ok(l) => {
                        searcher.tell(i, config, search::Outcome::Time(median(&l.samples)));
                        new.push(self.timing_entry(&l, bench));
                        live.push(l);
                    }
                    Err(entry) => {
                        let outcome = match &entry.outcome {
                            Outcome::SameAs(_) => {
                                summary.same += 1;
                                search::Outcome::Same
                            }
                            _ => {
                                summary.failed += 1;
                                search::Outcome::Failed
                            }
                        };
                        searcher.tell(i, config, outcome);
                        new.push(*entry);
                    }
                }
            }
            save(&new);
            queue.clear();
            if left > 0 {
                break;
            }
        }
        summary.measured = live.len();
        summary.left_out = open.len().saturating_sub(summary.measured + summary.failed + summary.same);

        self.add_incumbent(bench, &mut live);
        self.rounds(bench, &mut live, until, &mut |live| tell(done, "measure", live), &mut summary);
        self.run_off(bench, &mut live, until, &mut |live| tell(done, "run-off", live), &mut summary);
        bench.end_at(None);
        summary.interrupted = stopped();
        summary.lost = !bench.usable() && bench.broken().is_none();
        summary.broken = bench.broken().cloned();
        let entries: Vec<Entry> =
            live.iter().filter(|l| !l.incumbent || l.finalist).map(|l| self.timing_entry(l, bench)).collect();
        save(&entries);
        summary
    }

    /// Did this fail for the end of the time, or because the run is being ended from outside, or is there nothing to run it in?
    fn nobody_to_blame(&self, bench: &dyn Bench, tried: &Result<Live, Box<Entry>>) -> bool {
        let Err(entry) = tried else { return false };
        // The signal that ends the run may have reached a worker first.
        let ended = |f: &Failure| matches!(f.kind, FailureKind::Crash | FailureKind::Timeout);
        let failed = matches!(&entry.outcome, Outcome::Failed(f) if self.stop.load(Relaxed) && ended(f));
        bench.broken().is_some() || bench.out_of_time() || failed
    }

    /// The configuration to compare with: the wished one, or else the first that runs. One that fails has failed for good.
    fn choose_reference(
        &self,
        bench: &mut dyn Bench,
        open: &[Config],
        refused: &mut HashSet<Config>,
        summary: &mut Summary,
        save: &mut dyn FnMut(&[Entry]),
    ) -> Option<Config> {
        let rest = self.candidates.iter().filter(|c| **c != self.reference && !self.failed_as_reference(c));
        let mut first_failure = None;
        for config in std::iter::once(&self.reference).chain(rest) {
            if self.stop.load(Relaxed) || !bench.usable() {
                summary.interrupted = self.stop.load(Relaxed);
                break;
            }
            let compiled = bench.compile(std::slice::from_ref(config)).pop();
            let result = match compiled {
                Some(Ok(_)) => bench.reference(config),
                Some(Err(failure)) => Err(failure),
                None => Err(Failure::new(FailureKind::Compile, "no answer")),
            };
            match result {
                Ok(()) => return Some(config.clone()),
                Err(_) if bench.broken().is_some() => {
                    summary.broken = bench.broken().cloned();
                    break;
                }
                Err(_) if bench.out_of_time() => {
                    summary.too_short = true;
                    break;
                }
                Err(f) if self.stop.load(Relaxed) && matches!(f.kind, FailureKind::Crash | FailureKind::Timeout) => {
                    summary.interrupted = true;
                    break;
                }
                Err(failure) => {
                    if open.contains(config) && refused.insert(config.clone()) {
                        summary.failed += 1;
                        save(&[self.entry(config, Outcome::Failed(failure.clone()), None)]);
                    }
                    first_failure.get_or_insert(failure);
                }
            }
        }
        summary.hopeless = first_failure;
        summary.lost = !bench.usable() && summary.broken.is_none();
        summary.left_out = open.len().saturating_sub(summary.failed);
        None
    }

    fn failed_as_reference(&self, config: &Config) -> bool {
        let failed =
            matches!(self.record.entry(config), Some(Entry { outcome: Outcome::Failed(_), imported: false, .. }));
        failed && !self.settings.force
    }

    fn try_one(
        &self,
        bench: &mut dyn Bench,
        config: &Config,
        compiled: Result<Facts, Failure>,
        codes: &mut HashMap<String, Config>,
        fastest: f64,
    ) -> Result<Live, Box<Entry>> {
        let fail = |f: Failure, facts| Box::new(self.entry(config, Outcome::Failed(f), facts));
        let facts = compiled.map_err(|f| fail(f, None))?;
        if let Some(same) = codes.get(&facts.code) {
            return Err(Box::new(self.entry(config, Outcome::SameAs(same.clone()), Some(facts))));
        }
        bench.check(config).map_err(|f| fail(f, Some(facts.clone())))?;
        // The first launch was the check; some more warm up and say how long a sample may be.
        let mut samples = bench.sample(config, eliminate::LEAST).map_err(|f| fail(f, Some(facts.clone())))?;
        if !eliminate::is_out(&samples, fastest, 1) {
            let more = bench.sample(config, runs_for(median(&samples)));
            // Short launches get warm with the first ones; of long ones every time counts.
            match more {
                Ok(more) if more.len() >= eliminate::LEAST => samples = more,
                Ok(more) => samples.extend(more),
                // What it has is enough.
                Err(_) if bench.out_of_time() => {}
                Err(f) => return Err(fail(f, Some(facts))),
            }
        }
        codes.insert(facts.code.clone(), config.clone());
        let out_in_round = eliminate::is_out(&samples, fastest, 1).then_some(1);
        Ok(Live {
            config: config.clone(),
            facts,
            samples,
            out_in_round,
            finalist: false,
            corrected: None,
            incumbent: false,
        })
    }

    /// The best of before takes part if something new comes close to it, for times of two sessions cannot be compared.
    fn add_incumbent(&self, bench: &mut dyn Bench, live: &mut Vec<Live>) {
        let fastest = eliminate::fastest(live.iter().map(|l| &l.samples[..]));
        let Some(entry) = self.record.winner() else { return };
        let known = entry.median().unwrap_or(f64::INFINITY);
        let present = live.iter().any(|l| l.config == entry.config);
        if present || !self.candidates.contains(&entry.config) || fastest > known * 1.5 || !bench.usable() {
            return;
        }
        let mut time = || {
            let facts = bench.compile(std::slice::from_ref(&entry.config)).pop()?.ok()?;
            bench.sample(&entry.config, 1).ok()?;
            Some((facts, bench.sample(&entry.config, runs_for(known)).ok()?))
        };
        if let Some((facts, samples)) = time() {
            let config = entry.config.clone();
            live.push(Live {
                config,
                facts,
                samples,
                out_in_round: None,
                finalist: false,
                corrected: None,
                incumbent: true,
            });
        }
    }

    /// Samples what is left in turns, giving up what is slow.
    fn rounds(
        &self,
        bench: &mut dyn Bench,
        live: &mut [Live],
        until: Instant,
        tell: &mut dyn FnMut(&[Live]),
        summary: &mut Summary,
    ) {
        for round in 2..=eliminate::ROUNDS {
            let fastest = eliminate::fastest(live.iter().map(|l| &l.samples[..]));
            for l in live.iter_mut().filter(|l| l.out_in_round.is_none()) {
                if eliminate::is_out(&l.samples, fastest, round - 1) {
                    l.out_in_round = Some(round - 1);
                }
            }
            let staying: Vec<usize> = (0..live.len()).filter(|&i| live[i].out_in_round.is_none()).collect();
            if staying.len() < 2 {
                return;
            }
            for k in runoff::order(staying.len(), round) {
                if self.stop.load(Relaxed) || Instant::now() >= until || !bench.usable() {
                    return;
                }
                tell(live);
                self.sample_more(bench, live, staying[k], summary);
            }
        }
    }

    fn run_off(
        &self,
        bench: &mut dyn Bench,
        live: &mut [Live],
        until: Instant,
        tell: &mut dyn FnMut(&[Live]),
        summary: &mut Summary,
    ) {
        let fastest = eliminate::fastest(live.iter().map(|l| &l.samples[..]));
        let mut order: Vec<usize> = (0..live.len()).filter(|&i| live[i].out_in_round.is_none()).collect();
        order.retain(|&i| median(&live[i].samples) <= fastest * runoff::CLOSE);
        order.sort_by(|&a, &b| median(&live[a].samples).total_cmp(&median(&live[b].samples)));
        order.truncate(runoff::FINALISTS);
        if order.len() < 2 {
            return;
        }
        // Long launches get fewer rounds: their times are steady.
        let rounds = if fastest > 50_000.0 { 3 } else { runoff::ROUNDS };
        let mut medians: Vec<Vec<f64>> = Vec::new();
        'rounds: for round in 0..rounds {
            let mut now = vec![f64::NAN; order.len()];
            for k in runoff::order(order.len(), round) {
                if self.stop.load(Relaxed) || !bench.usable() {
                    return;
                }
                if Instant::now() >= until {
                    break 'rounds;
                }
                tell(live);
                let i = order[k];
                let from = live[i].samples.len();
                if !self.sample_more(bench, live, i, summary) {
                    return;
                }
                now[k] = median(&live[i].samples[from..]);
            }
            medians.push(now);
        }
        // Comparisons in fewer turns than these say nothing that the times before do not.
        if medians.len() < eliminate::LEAST {
            return;
        }
        summary.finalists = order.len();
        for (&i, corrected) in order.iter().zip(runoff::paired(&medians)) {
            live[i].finalist = true;
            live[i].corrected = Some(corrected);
        }
    }

    /// Adds samples; a candidate that fails only now is out, with what it had.
    fn sample_more(&self, bench: &mut dyn Bench, live: &mut [Live], i: usize, summary: &mut Summary) -> bool {
        let runs = runs_for(median(&live[i].samples));
        match bench.sample(&live[i].config, runs) {
            Ok(more) => {
                live[i].samples.extend(more);
                true
            }
            // What it had still counts.
            Err(_) if bench.broken().is_some() || bench.out_of_time() => false,
            Err(f) if self.stop.load(Relaxed) && matches!(f.kind, FailureKind::Crash | FailureKind::Timeout) => false,
            Err(_) => {
                live[i].samples = vec![f64::INFINITY];
                live[i].out_in_round = Some(0);
                summary.failed += 1;
                false
            }
        }
    }

    fn timing_entry(&self, l: &Live, bench: &dyn Bench) -> Entry {
        let outcome = if l.samples.iter().all(|s| s.is_finite()) {
            Outcome::Measured(Timing {
                median_us: l.corrected.unwrap_or_else(|| median(&l.samples)),
                min_us: l.samples.iter().copied().fold(f64::INFINITY, f64::min),
                p20_us: quantile(&l.samples, 0.2),
                p80_us: quantile(&l.samples, 0.8),
                samples: l.samples.len(),
                eliminated_in_round: l.out_in_round,
                finalist: l.finalist,
                cache: bench.policy(),
            })
        } else {
            Outcome::Failed(Failure::new(FailureKind::Launch, "it ran at first, but failed when it was timed again"))
        };
        self.entry(&l.config, outcome, Some(l.facts.clone()))
    }

    fn entry(&self, config: &Config, outcome: Outcome, facts: Option<Facts>) -> Entry {
        // Later than what is known of it, whatever the clock says: it was measured after that was read.
        let at = self.record.entry(config).map_or(0, |e| e.at.saturating_add(1)).max(now());
        Entry { config: config.clone(), outcome, facts, problem: self.problem.clone(), at, imported: false }
    }
}
