//! What the tuner asks of whoever runs configurations: in this process ([`Local`]), or in another ([`crate::worker`]).

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
use tilewright_runtime::{CompiledKernel, Device, Error, Launch, Prepared, Result};

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
    /// What launches find in the device's cache.
    fn policy(&self) -> CachePolicy;
}

/// How many times longer than the reference's first run a launch may take, if that is more than the limit.
pub const PATIENCE: u32 = 5;

/// Makes a launch of a configuration.
pub type Source<'s, 'a> = dyn Fn(&Config) -> Result<Launch<'a>> + 's;

/// Runs configurations in this process.
///
/// The memory that the launches write is saved first and put back when the bench is dropped.
pub struct Local<'s, 'a> {
    device: Device,
    source: &'s Source<'s, 'a>,
    outputs: Outputs,
    clock: Clock,
    ready: HashMap<Config, Prepared>,
    reference: Option<Reference>,
    tolerance: Option<f64>,
    limit: Duration,
    lost: bool,
}

impl<'s, 'a> Local<'s, 'a> {
    /// A bench for launches that `source` makes; `first` is any configuration it accepts. A launch that takes longer than `limit`
    /// has failed; on devices that cannot end it, nothing more can be run here.
    ///
    /// # Errors
    /// If the launch cannot be made, or what it writes cannot be saved.
    pub fn new(
        source: &'s Source<'s, 'a>,
        first: &Config,
        policy: CachePolicy,
        tolerance: Option<f64>,
        limit: Duration,
    ) -> Result<Self> {
        let launch = source(first)?;
        let device = launch.target()?;
        let outputs = Outputs::save(&launch)?;
        let clock = Clock::new(&device, policy);
        let ready = HashMap::new();
        Ok(Self { device, source, outputs, clock, ready, reference: None, tolerance, limit, lost: false })
    }

    fn prepared(&mut self, config: &Config) -> Result<&Prepared> {
        if !self.ready.contains_key(config) {
            let kernel = (self.source)(config)?.prepare()?;
            self.ready.insert(config.clone(), kernel);
        }
        Ok(&self.ready[config])
    }

    fn run(&mut self, config: &Config, poison: u8) -> Result<Vec<Vec<u8>>> {
        self.outputs.ready(poison)?;
        let limit = self.limit;
        self.prepared(config)?.launch_within(limit)?;
        self.device.synchronize()?;
        self.outputs.read()
    }

    fn fact<T>(&mut self, result: Result<T>) -> Result<T, Failure> {
        result.map_err(|e| {
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
        let launches: Vec<_> = configs.iter().map(|c| guarded(|| (self.source)(c))).collect();
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
        let (first, second, took) = self.fact(both)?;
        self.limit = self.limit.max(took * PATIENCE);
        self.reference = Some(Reference::new(&self.outputs, first, &second, self.tolerance));
        Ok(())
    }

    fn check(&mut self, config: &Config) -> Result<(), Failure> {
        let result = self.run(config, CANDIDATE_POISON);
        let got = self.fact(result)?;
        let reference = self.reference.as_ref();
        let missing = || Failure::new(FailureKind::WrongResult, "there is no reference to compare with");
        reference.ok_or_else(missing)?.compare(&self.outputs, &got)
    }

    fn sample(&mut self, config: &Config, runs: usize) -> Result<Vec<f64>, Failure> {
        let result = self.prepared(config).map(drop);
        self.fact(result)?;
        let result = self.clock.time(&self.ready[config], &self.outputs, runs, self.limit);
        self.fact(result)
    }

    fn usable(&self) -> bool {
        !self.lost
    }

    fn policy(&self) -> CachePolicy {
        self.clock.policy()
    }
}

impl Drop for Local<'_, '_> {
    fn drop(&mut self) {
        // If the device is lost there is nothing left to put back.
        let _ = self.outputs.restore();
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
