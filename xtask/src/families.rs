//! The families of generated inputs, as a table: one line makes a generator part of `cargo xtask fuzz`.

use crate::bytes;
use crate::children::{self, Tests};
use crate::report::Report;
use crate::targets::Target;
use std::io;
use std::time::{Duration, Instant};

/// A generator with its check.
pub struct Family {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it checks, in a line.
    pub about: &'static str,
    /// How it runs.
    pub work: Work,
}

/// How a family runs.
pub enum Work {
    /// Changed inputs for what reads bytes, in child processes.
    Bytes(&'static Target),
    /// Tests of a crate that take their seeds from the environment.
    Tests(Tests),
    /// A function of this program: runs so many programs from a seed on; a first slice has so many.
    Library { run: fn(seed: u64, programs: u64) -> Report, first: u64 },
}

/// Random `#[kernel]` source against plain Rust.
fn programs(seed: u64, programs: u64) -> Report {
    let report = crate::frontend::run(seed, programs.min(400) as usize);
    let notes = vec![format!("programs: {} runs, on {}", report.programs, report.devices.join(", "))];
    Report { programs: report.programs as u64, notes, faults: report.differences }
}

/// All families.
pub fn all() -> Vec<Family> {
    let mut all: Vec<Family> = crate::targets::TARGETS
        .iter()
        .map(|t| Family {
            name: t.name,
            about: "changed bytes: no panic, no hang, little memory",
            work: Work::Bytes(t),
        })
        .collect();
    let tests = |name, about, tests| Family { name, about, work: Work::Tests(tests) };
    all.extend([
        tests("kernels", "random Tile IR on every target, simulated, against the interpreter", KERNELS),
        tests("passes", "what random functions store before and after each pass", PASSES),
        tests("analyses", "what the analyses claim, against runs", ANALYSES),
        tests("layouts", "operations on random layouts, places in shared memory", LAYOUTS),
        tests("conversions", "shuffles that bring one random layout into another", CONVERSIONS),
        tests("devices", "the same random kernels through the drivers of this machine", DEVICES),
        Family {
            name: "programs",
            about: "random source of kernels against the same text as plain Rust, on every device",
            work: Work::Library { run: programs, first: 100 },
        },
        tests("graphs", "random graphs and gradients, fused and unfused, against the host", GRAPHS),
    ]);
    all
}

const KERNELS: Tests = Tests {
    package: "tilewright-compiler",
    binary: &["--test", "random_agree"],
    features: &[],
    filter: "random_kernels_agree",
    from: "TILEWRIGHT_FUZZ_FROM",
    count: "TILEWRIGHT_FUZZ_SEEDS",
    first: 10,
};
const PASSES: Tests = Tests {
    package: "tilewright-compiler",
    binary: &["--lib"],
    features: &[],
    filter: "passes::soundness::",
    from: "TILEWRIGHT_FUZZ_FROM",
    count: "TILEWRIGHT_FUZZ_SEEDS",
    first: 400,
};
const DEVICES: Tests = Tests {
    package: "tilewright-runtime",
    binary: &["--test", "random_devices"],
    features: &["opencl"],
    first: 30,
    ..KERNELS
};
const LAYOUTS: Tests = Tests { filter: "layout::soundness::", first: 2000, ..PASSES };
const CONVERSIONS: Tests = Tests { filter: "convert::soundness::", ..LAYOUTS };
const ANALYSES: Tests = Tests { filter: "analysis::soundness::", ..PASSES };
const GRAPHS: Tests = Tests {
    package: "tilewright-graph-lowering",
    binary: &["--test", "suite"],
    features: &[],
    filter: "fuzz::",
    from: "TILEWRIGHT_FUZZ_FROM",
    count: "TILEWRIGHT_FUZZ_SEEDS",
    first: 100,
};

impl Family {
    /// Makes ready what is not to count as time of the run.
    ///
    /// # Errors
    /// If a test binary cannot be built.
    pub fn prepare(&self) -> io::Result<()> {
        if let Work::Tests(tests) = &self.work { children::build(tests) } else { Ok(()) }
    }

    /// Runs from a seed on for about this time, or until something is found.
    ///
    /// # Errors
    /// If a process cannot be started.
    pub fn run(&self, seed: u64, time: Duration) -> io::Result<Report> {
        match &self.work {
            Work::Bytes(target) => bytes::run(target, seed, time),
            Work::Tests(tests) => {
                slices(tests.first, seed, time, |seed, count, left| children::run(tests, seed, count, left))
            }
            Work::Library { run, first } => slices(*first, seed, time, |seed, count, _| Ok(run(seed, count))),
        }
    }
}

/// Most seeds of a slice: so that their numbers stay far from overflowing.
const MOST: u64 = 1 << 40;

/// Runs slices of seeds, each as many as the last one's speed lets expect for what is left of the time.
fn slices(
    first: u64,
    seed: u64,
    time: Duration,
    mut run: impl FnMut(u64, u64, Duration) -> io::Result<Report>,
) -> io::Result<Report> {
    let start = Instant::now();
    let (mut report, mut from, mut count) = (Report::default(), seed, first);
    loop {
        let begun = Instant::now();
        let left = time.saturating_sub(start.elapsed());
        report.add(run(from, count, left)?);
        let took = begun.elapsed().as_secs_f64().max(1e-3);
        let left = time.saturating_sub(start.elapsed()).as_secs_f64();
        from = from.wrapping_add(count);
        // A slice that would run over by more than it is long is left out.
        let next = ((count as f64 * (left / took).min(8.0) * 0.8) as u64).min(MOST);
        if !report.faults.is_empty() || next < first.div_ceil(2).max(1) {
            return Ok(report);
        }
        count = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_go_on_where_the_last_one_ended() {
        let mut seen = Vec::new();
        let report = slices(10, 5, Duration::from_millis(60), |seed, count, _| {
            seen.push((seed, count));
            std::thread::sleep(Duration::from_millis(1));
            Ok(Report { programs: count, ..Report::default() })
        });
        assert_eq!(report.unwrap().programs, seen.iter().map(|s| s.1).sum::<u64>());
        assert!(seen.len() > 1 && seen.windows(2).all(|w| w[0].0 + w[0].1 == w[1].0), "{seen:?}");
        let stopped = slices(1, 0, Duration::from_secs(60), |_, count, _| {
            Ok(Report { programs: count, faults: vec!["wrong".into()], ..Report::default() })
        });
        assert_eq!(stopped.unwrap().programs, 1);
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = all().iter().map(|f| f.name).collect();
        let n = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), n);
    }
}
