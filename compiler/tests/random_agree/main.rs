//! The lowering against the interpreter: random kernels of several families, on every target, run by the simulator.
//!
//! What is compared are all bytes of all buffers, exactly; only two NaNs of one type are equal whatever their bits. Kernels
//! are made so that every correct order of evaluation gives the same bits: floats that are summed are small whole numbers.
//! The families of `numeric` say how far apart results may be ([`Tolerance`]).
//!
//! `TILEWRIGHT_FUZZ_SEEDS=n` runs n seeds of each family (else a few hundred), `TILEWRIGHT_FUZZ_FROM=seed` begins there,
//! `TILEWRIGHT_FUZZ_FAMILY=word` runs only the families with `word` in their name. The seeds take turns on the targets;
//! `TILEWRIGHT_FUZZ_TARGETS=all` runs each on all of them. A kernel that fails is made smaller before it is shown.

#[path = "../common/mod.rs"]
mod common;
mod families;
mod generated;
mod kernels;
mod maker;
mod numeric;
mod shrink;

use common::{Failure, targets};
use families::{FAMILIES, Family, Typed, difference, options};
use std::cell::OnceCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use tilewright_compiler::pipeline::Options;
use tilewright_compiler::target::Caps;

thread_local! {
    /// Is this thread running a kernel, so that a panic is a fault that is reported later?
    static JUDGING: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// What a run came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The same bytes.
    Same,
    /// The target cannot run it: too little shared memory, say.
    Skipped,
    /// The first difference.
    Differs(String),
    /// An error.
    Failed(Failure),
    /// A panic.
    Panicked(String),
}

impl Verdict {
    /// Is it the same kind of fault, whatever the details?
    pub fn resembles(&self, other: &Verdict) -> bool {
        match (self, other) {
            (Verdict::Failed(a), Verdict::Failed(b)) => std::mem::discriminant(a) == std::mem::discriminant(b),
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }

    fn is_fault(&self) -> bool {
        !matches!(self, Verdict::Same | Verdict::Skipped)
    }
}

/// Runs one kernel both ways.
pub fn judge(typed: &Typed, caps: &Caps, options: &Options) -> Verdict {
    judge_against(&OnceCell::new(), typed, caps, options)
}

/// What the interpreter leaves, once somebody asked.
type Expected = OnceCell<Result<Vec<Vec<u8>>, Failure>>;

/// Runs one kernel on a target.
fn judge_against(expected: &Expected, typed: &Typed, caps: &Caps, options: &Options) -> Verdict {
    let run = || -> Result<Verdict, Failure> {
        let expected = expected.get_or_init(|| typed.expected()).as_ref().map_err(Clone::clone)?;
        let (got, _) = match typed.case.try_simulate(caps, options) {
            Err(Failure::Unsupported(_)) => return Ok(Verdict::Skipped),
            other => other?,
        };
        for (i, ((e, g), &dtype)) in expected.iter().zip(&got).zip(&typed.dtypes).enumerate() {
            if let Some(why) = difference(dtype, typed.tolerance, e, g) {
                return Ok(Verdict::Differs(format!("buffer {i} of {dtype}: {why}")));
            }
        }
        Ok(Verdict::Same)
    };
    JUDGING.set(true);
    let outcome = catch_unwind(AssertUnwindSafe(run));
    JUDGING.set(false);
    match outcome {
        Ok(result) => result.unwrap_or_else(Verdict::Failed),
        Err(payload) => {
            let text = payload.downcast_ref::<String>().cloned();
            Verdict::Panicked(text.or_else(|| payload.downcast_ref::<&str>().map(|s| (*s).into())).unwrap_or_default())
        }
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn random_kernels_agree() {
    let asked = number("TILEWRIGHT_FUZZ_SEEDS");
    let first = number("TILEWRIGHT_FUZZ_FROM").unwrap_or(0);
    let wanted = std::env::var("TILEWRIGHT_FUZZ_FAMILY").unwrap_or_default();
    // How many targets a seed runs on; by default a test has two, a sweep goes for many seeds.
    let share = match std::env::var("TILEWRIGHT_FUZZ_TARGETS").as_deref() {
        Ok("all") => usize::MAX,
        Ok(other) => panic!("TILEWRIGHT_FUZZ_TARGETS is `{other}`; it can be `all`"),
        Err(_) if asked.is_some() => 1,
        Err(_) => 2,
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let faults = Mutex::new(Vec::new());
    // Panics of the compiler are faults like others, and shown once.
    let shown = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !JUDGING.get() {
            shown(info);
        }
    }));
    let mut counts = String::new();
    for family in FAMILIES.iter().filter(|f| f.name.contains(&wanted)) {
        let last = first + asked.unwrap_or(family.seeds);
        let next = AtomicU64::new(first);
        let (ran, skipped) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|s| {
            for _ in 0..workers {
                s.spawn(|| {
                    loop {
                        let seed = next.fetch_add(1, Ordering::Relaxed);
                        if seed >= last
                            || faults.lock().is_ok_and(|f: std::sync::MutexGuard<'_, Vec<String>>| f.len() >= 5)
                        {
                            break;
                        }
                        let targets = targets();
                        let typed = (family.make)(seed);
                        let options = options(seed);
                        let expected = OnceCell::new();
                        let chosen = |i: usize| (seed as usize + i) % targets.len() < share;
                        for (_, caps) in targets.iter().enumerate().filter(|&(i, _)| chosen(i)) {
                            let verdict = judge_against(&expected, &typed, caps, &options);
                            ran.fetch_add(1, Ordering::Relaxed);
                            skipped.fetch_add((verdict == Verdict::Skipped).into(), Ordering::Relaxed);
                            if verdict.is_fault() {
                                let fault = explain(family, seed, &typed, caps, &options, &verdict);
                                if let Ok(mut faults) = faults.lock() {
                                    faults.push(fault);
                                }
                                break;
                            }
                        }
                    }
                });
            }
        });
        let (ran, skipped) = (ran.into_inner(), skipped.into_inner());
        counts.push_str(&format!("{}: {ran} runs, {skipped} skipped\n", family.name));
        if asked.is_none() {
            assert!(skipped * 4 < ran, "most kernels run: {counts}");
        }
    }
    drop(std::panic::take_hook());
    println!("{counts}");
    let faults = faults.into_inner().unwrap_or_default();
    assert!(faults.is_empty(), "{counts}{}", faults.join("\n"));
}

fn explain(family: &Family, seed: u64, typed: &Typed, caps: &Caps, options: &Options, verdict: &Verdict) -> String {
    let small = shrink::shrink(typed, &|t| judge(t, caps, options).resembles(verdict));
    let again = judge(&small, caps, options);
    format!(
        "== family `{}`, seed {seed}, {}, {options:?}\nat first: {verdict:?}\nmade smaller: {again:?}\n{:?}\n{}\n{}",
        family.name,
        caps.name,
        small.case.args,
        small.case.func,
        small.case.stages(caps, options)
    )
}
