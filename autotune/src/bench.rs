//! What the tuner asks of whoever runs configurations: in this process ([`Local`]), or in another ([`crate::worker`]).

use crate::arena::Arena;
use crate::check::Reference;
use crate::config::Config;
use crate::failure::{Failure, FailureKind};
use crate::legality;
use crate::measure::{CachePolicy, Clock};
use crate::outputs::{CANDIDATE_POISON, Outputs, POISONS};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tilewright_compiler::dsl::{KernelDef, Specialization};
use tilewright_runtime::{CompiledKernel, Device, DeviceKind, Error, Launch, Prepared, Result};

/// What is known of a compiled configuration.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Facts {
    /// Hash of its Tile IR before specialisation: changes when the kernel's source does.
    pub source: String,
    /// Hash of the code that runs: configurations with the same are the same.
    pub code: String,
    /// Threads of one program.
    pub threads: u32,
    /// Bytes of shared memory of one program.
    pub shared_bytes: u32,
    /// Registers of one thread, if the driver tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registers: Option<u32>,
    /// Bytes spilled, if the driver tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spill_bytes: Option<u32>,
    /// Milliseconds of compilation.
    pub compile_ms: f64,
}

/// Runs configurations of one kernel on one problem.
pub trait Bench {
    /// Compiles configurations, in parallel where that helps; one answer for each.
    fn compile(&mut self, configs: &[Config]) -> Vec<Result<Facts, Failure>>;
    /// Makes a configuration the one whose results the others must give.
    ///
    /// # Errors
    /// Why it cannot be.
    fn reference(&mut self, config: &Config) -> Result<(), Failure>;
    /// Runs a compiled configuration once and compares its results with the reference's.
    ///
    /// # Errors
    /// What is wrong.
    fn check(&mut self, config: &Config) -> Result<(), Failure>;
    /// Times launches, in microseconds.
    ///
    /// # Errors
    /// If it fails after all.
    fn sample(&mut self, config: &Config, runs: usize) -> Result<Vec<f64>, Failure>;
    /// Can the bench go on? Not after a device is lost in this very process.
    fn usable(&self) -> bool {
        true
    }
    /// Why no configuration can be run at all, if so: nothing that a configuration is to blame for.
    fn broken(&self) -> Option<&Failure> {
        None
    }
    /// From this moment on no step is worth to be waited for: it is ended where it can be, and [`Bench::out_of_time`] says so.
    fn end_at(&mut self, until: Option<Instant>) {
        let _ = until;
    }
    /// Was the last failure the end of the time, for which no configuration is to blame?
    fn out_of_time(&self) -> bool {
        false
    }
    /// What launches find in the device's cache.
    fn policy(&self) -> CachePolicy;
}

/// How much longer the first launch of a configuration may take on devices whose drivers may compile in it.
pub const COLD: Duration = Duration::from_secs(10);

/// How many times longer than the reference's first run a launch may take, if that is more than the limit.
pub const PATIENCE: u32 = 5;

/// Makes a launch of a configuration.
pub type Source<'s, 'a> = dyn Fn(&Config) -> Result<Launch<'a>> + 's;

/// Runs configurations in this process.
///
/// They run on copies of the launches' memory, which stays as it is.
pub struct Local<'s, 'a> {
    device: Device,
    source: &'s Source<'s, 'a>,
    arena: Arena,
    outputs: Outputs,
    clock: Clock,
    ready: HashMap<Config, Prepared>,
    reference: Option<Reference>,
    tolerance: Option<f64>,
    limit: Duration,
    lost: bool,
    until: Option<Instant>,
    late: bool,
}

impl<'s, 'a> Local<'s, 'a> {
    /// A bench for launches that `source` makes; `first` is any configuration it accepts. A launch that takes longer than `limit`
    /// has failed; on devices that cannot end it, nothing more can be run here.
    ///
    /// # Errors
    /// If the launch cannot be made, or there is no memory for copies of its arguments.
    pub fn new(
        source: &'s Source<'s, 'a>,
        first: &Config,
        policy: CachePolicy,
        tolerance: Option<f64>,
        limit: Duration,
    ) -> Result<Self> {
        let launch = source(first)?;
        let device = launch.target()?;
        let mut arena = Arena::new(&device);
        arena.cover(&launch)?;
        let outputs = Outputs::of(&arena.relocate(&launch)?, &arena)?;
        arena.watch(&outputs.pieces())?;
        Ok(Self {
            clock: Clock::new(&device, policy),
            device,
            source,
            arena,
            outputs,
            ready: HashMap::new(),
            reference: None,
            tolerance,
            limit,
            lost: false,
            until: None,
            late: false,
        })
    }

    /// How long a launch may take now. What cannot be ended is not cut short by the end of the time.
    fn allowed(&self, limit: Duration) -> Duration {
        let left = self.until.map_or(Duration::MAX, |u| u.saturating_duration_since(Instant::now()));
        if self.can_end() { limit.min(left) } else { limit }
    }

    fn can_end(&self) -> bool {
        self.device.info().kind == DeviceKind::Cpu
    }

    fn prepared(&mut self, config: &Config) -> Result<&Prepared> {
        if !self.ready.contains_key(config) {
            let launch = (self.source)(config)?;
            self.arena.cover(&launch)?;
            let kernel = self.arena.relocate(&launch)?.prepare()?;
            self.ready.insert(config.clone(), kernel);
        }
        Ok(&self.ready[config])
    }

    /// What a run leaves in the outputs, and what it did elsewhere.
    fn run(&mut self, config: &Config, poison: u8) -> Result<(Vec<Vec<u8>>, Option<Failure>)> {
        self.outputs.ready(poison)?;
        // A driver may compile in the first launch.
        let cold = if self.can_end() { Duration::ZERO } else { COLD };
        let limit = self.allowed(self.limit.saturating_add(cold));
        self.prepared(config)?.launch_within(limit)?;
        self.device.synchronize()?;
        let got = self.outputs.read()?;
        Ok((got, self.arena.damage()?))
    }

    fn cover(&mut self, launch: Launch<'a>) -> Result<Launch<'a>, Failure> {
        self.arena.cover(&launch).map_err(|e| Failure::of(&e))?;
        Ok(launch)
    }

    fn fact<T>(&mut self, result: Result<T>) -> Result<T, Failure> {
        result.map_err(|e| {
            let over = self.until.is_some_and(|u| Instant::now() >= u);
            self.late = over && self.can_end() && matches!(e, Error::TimedOut { .. });
            // After a launch that cannot be ended every call says so.
            let gone = |e: &Error| matches!(e, Error::DeviceLost { .. });
            self.lost |= gone(&e) || self.device.synchronize().is_err_and(|e| gone(&e));
            Failure::of(&e)
        })
    }
}

impl Bench for Local<'_, '_> {
    fn compile(&mut self, configs: &[Config]) -> Vec<Result<Facts, Failure>> {
        // Launches are made here, for the source need not be shareable; the compiling is what takes time.
        let made: Vec<_> = configs.iter().map(|c| guarded(|| (self.source)(c))).collect();
        let covered: Vec<_> = made.into_iter().map(|l| l.and_then(|l| self.cover(l))).collect();
        let move_there = |l| self.arena.relocate(&l).map_err(|e| Failure::of(&e));
        let launches: Vec<_> = covered.into_iter().map(|l| l.and_then(move_there)).collect();
        let results: Mutex<Vec<Option<Result<Facts, Failure>>>> = Mutex::new(configs.iter().map(|_| None).collect());
        let next = AtomicUsize::new(0);
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get()).min(configs.len());
        let work = || {
            loop {
                let i = next.fetch_add(1, Relaxed);
                let Some(launch) = launches.get(i) else { break };
                let result = match launch {
                    Ok(launch) => guarded_failure(|| compile_one(launch, &self.device)),
                    Err(failure) => Err(failure.clone()),
                };
                results.lock().unwrap_or_else(std::sync::PoisonError::into_inner)[i] = Some(result);
            }
        };
        std::thread::scope(|s| {
            (1..threads).for_each(|_| {
                s.spawn(work);
            });
            work();
        });
        let results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        results.into_iter().map(|r| r.expect("every configuration was taken by a thread")).collect()
    }

    fn reference(&mut self, config: &Config) -> Result<(), Failure> {
        let mut run = || {
            let start = Instant::now();
            let first = self.run(config, POISONS[0])?;
            let took = start.elapsed();
            Ok((first, self.run(config, POISONS[1])?, took))
        };
        let both = run();
        let ((first, damage), (second, again), took) = self.fact(both)?;
        if let Some(failure) = damage.or(again) {
            return Err(failure);
        }
        self.limit = self.limit.max(took * PATIENCE);
        self.reference = Some(Reference::new(&self.outputs, first, &second, self.tolerance));
        Ok(())
    }

    fn check(&mut self, config: &Config) -> Result<(), Failure> {
        let result = self.run(config, CANDIDATE_POISON);
        let (got, damage) = self.fact(result)?;
        if let Some(failure) = damage {
            return Err(failure);
        }
        let reference = self.reference.as_ref();
        let missing = || Failure::new(FailureKind::WrongResult, "there is no reference to compare with");
        reference.ok_or_else(missing)?.compare(&self.outputs, &got)
    }

    fn sample(&mut self, config: &Config, runs: usize) -> Result<Vec<f64>, Failure> {
        let result = self.prepared(config).map(drop);
        self.fact(result)?;
        let limit = self.allowed(self.limit);
        let result = self.clock.time(&self.ready[config], &self.outputs, runs, limit, self.until);
        self.fact(result)
    }

    fn end_at(&mut self, until: Option<Instant>) {
        self.until = until;
        self.late = false;
    }

    fn out_of_time(&self) -> bool {
        self.late
    }

    fn usable(&self) -> bool {
        !self.lost
    }

    fn policy(&self) -> CachePolicy {
        self.clock.policy()
    }
}

/// A panic of a user's function is a failure of that configuration.
fn guarded<T>(f: impl FnOnce() -> Result<T>) -> Result<T, Failure> {
    guarded_failure(|| f().map_err(|e| Failure::of(&e)))
}

fn guarded_failure<T>(f: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        Err(Failure::new(FailureKind::Compile, format!("panic: {}", text.unwrap_or("without a message"))))
    })
}

fn compile_one(launch: &Launch<'_>, device: &Device) -> Result<Facts, Failure> {
    let start = Instant::now();
    let fail = |e: tilewright_compiler::Error| Failure::of(&Error::Compile(e));
    let func = launch.def().build(&Specialization::general()).map_err(fail)?;
    if let Some(caps) = device.caps() {
        // Judged as it will be compiled: what the arguments' alignment allows decides what goes through shared memory.
        let text = launch.ir().map_err(|e| Failure::of(&e))?;
        let specialised = tilewright_compiler::tile::parse(&text).map_err(fail)?;
        legality::before_compile(&specialised, caps, &launch.current_options())?;
    }
    let kernel = launch.compile().map_err(|e| Failure::of(&e))?;
    legality::after_compile(kernel.metadata(), device.caps())?;
    let m = kernel.metadata();
    Ok(Facts {
        source: hash(&[&func.to_string()]),
        code: code_hash(launch, &kernel).map_err(|e| Failure::of(&e))?,
        threads: m.threads,
        shared_bytes: m.shared_bytes,
        registers: m.resources.registers,
        spill_bytes: m.resources.spill_bytes,
        compile_ms: start.elapsed().as_secs_f64() * 1e3,
    })
}

fn code_hash(launch: &Launch<'_>, kernel: &CompiledKernel) -> Result<String> {
    let text = match kernel.compiled() {
        Some(c) => format!("{} {} {}", c.threads, c.shared_bytes, c.code.text()),
        None => launch.ir()?,
    };
    Ok(hash(&[&text]))
}

/// The identity of a kernel's source in one configuration: a hash of its Tile IR before specialisation.
///
/// # Errors
/// The mistakes in the kernel.
pub fn source_hash(def: &KernelDef) -> Result<String> {
    Ok(hash(&[&def.build(&Specialization::general())?.to_string()]))
}

/// The first 64 bits of SHA-256, in hexadecimal digits.
pub fn hash(parts: &[&str]) -> String {
    let mut h = Sha256::new();
    for part in parts {
        h.update((part.len() as u64).to_le_bytes());
        h.update(part.as_bytes());
    }
    h.finalize().iter().take(8).map(|b| format!("{b:02x}")).collect()
}
