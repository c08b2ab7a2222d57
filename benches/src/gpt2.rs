//! A decoder of GPT-2's size through the graph compiler: how long a call takes, how long the first one, and where the time goes.
//! `peers/gpt2_peer.py` measures the same with PyTorch.

// The model of the example `train_gpt`, so that what is measured is what is shown. (It is documented there.)
#[allow(missing_docs, dead_code)]
#[path = "../../examples/train_gpt/model.rs"]
pub mod model;

use crate::data::Check;
use crate::timing::{Effort, Summary};
use model::{Config, Gpt, gradient};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Instant;
use tilewright::graph::compile::Compiled;
use tilewright::graph::exec::KernelTime;
use tilewright::graph::{DType, Error, Explanation, Options, Result, Structure, Tensor, compile};
use tilewright_runtime::Device;

/// The decoder that is measured: as many weights as GPT-2's smallest, and a head of its own.
pub const FULL: Config =
    Config { vocabulary: 50304, width: 768, heads: 12, layers: 12, context: 1024, dtype: DType::BF16, tied: false };
/// One that a processor runs in no time, and that is compared with the interpreter.
pub const TINY: Config =
    Config { vocabulary: 97, width: 32, heads: 2, layers: 2, context: 16, dtype: DType::BF16, tied: false };

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Case {
    /// Rows of tokens.
    pub batch: usize,
    /// Tokens of a row.
    pub length: usize,
    /// The loss and its gradient, or the logits alone?
    pub train: bool,
}

impl Case {
    /// The cases of a configuration; `peers/gpt2_peer.py` has the same.
    pub fn all(full: bool) -> [Case; 3] {
        let case = |batch, length, train| Case { batch, length, train };
        if full {
            [case(8, 1024, false), case(1, 128, false), case(8, 1024, true)]
        } else {
            [case(2, 16, false), case(1, 8, false), case(2, 16, true)]
        }
    }

    /// Such as `gpt2 8x1024 forward`: what results are compared by.
    pub fn name(&self) -> String {
        let what = if self.train { "forward+backward" } else { "forward" };
        format!("gpt2 {}x{} {what}", self.batch, self.length)
    }

    /// Tokens and targets, always the same.
    fn batch(&self, vocabulary: usize) -> model::Batch {
        let tokens = |sequence: u64| {
            let n = (self.batch * self.length) as u64;
            let all: Vec<i32> = (0..n).map(|i| (model::random_bits(sequence, i) % vocabulary as u64) as i32).collect();
            Tensor::new(&all, &[self.batch, self.length])
        };
        (tokens(1 << 20), tokens(1 << 21))
    }
}

type Input = (Gpt, model::Batch);

/// The two functions that are measured. They are structures of one kind, so that a case is one type: the logits or the loss, and the
/// gradient if there is one.
type Output = (Tensor, Option<Gpt>);

fn forward((model, (index, _)): &Input) -> Output {
    (model.logits(index), None)
}

fn backward(x: &Input) -> Output {
    let (loss, gradient) = gradient(x);
    (loss, Some(gradient))
}

type Function = Compiled<fn(&Input) -> Output, Input, Output>;

fn function(case: &Case, options: Options) -> Result<Function> {
    let f: fn(&Input) -> Output = if case.train { backward } else { forward };
    compile(f, options)
}

/// The options for a device and a mode.
pub fn options(device: &str, mode: &str) -> Options {
    Options::new().fullgraph(true).device(device).set("mode", mode)
}

/// The small decoder on a device beside the interpreter: logits, loss and gradients.
///
/// # Errors
/// What the device says.
pub fn check(device: &str, mode: &str) -> Result<Check> {
    let model = Gpt::new(&TINY);
    let mut worst: f64 = 0.0;
    for case in Case::all(false) {
        let x = (model.clone(), case.batch(TINY.vocabulary));
        let got = function(&case, options(device, mode))?.call(&x)?;
        let expected = function(&case, Options::new().backend("interpreter"))?.call(&x)?;
        for (a, b) in got.tensors().iter().zip(expected.tensors()) {
            let (a, b) = (a.to_f64s()?, b.to_f64s()?);
            let largest = b.iter().fold(f64::MIN_POSITIVE, |m, v| m.max(v.abs()));
            let error = a.iter().zip(&b).map(|(x, y)| (x - y).abs() / largest);
            // `max` would drop a NaN.
            worst = error.fold(worst, |m, e| if e > m || e.is_nan() { e } else { m });
        }
    }
    // Between them lie a dozen roundings to 8 bits, which sums in another order turn the other way now and then.
    Ok(Check { error: worst, tolerance: 0.06 })
}

/// The weights, copied to a device once.
///
/// # Errors
/// What the device says.
pub fn weights(device: &Device, config: &Config) -> Result<Gpt> {
    let host = Gpt::new(config);
    // What a compiled function gives lives on its device.
    let copy = compile(|all: &Vec<Tensor>| all.iter().map(|t| t * 1.0).collect(), options(device.name(), "default"))?;
    let tensors: Vec<Tensor> = copy.call(&host.tensors())?;
    Ok(host.rebuild(&mut tensors.into_iter()))
}

/// One case in one mode.
#[derive(Debug)]
pub struct Outcome {
    /// Milliseconds of a call.
    pub time: Summary,
    /// Facts for the JSON.
    pub facts: Map<String, Value>,
    /// The time of each kernel, if asked for.
    pub kernels: Vec<KernelTime>,
    /// What the loss or the logits should be like.
    pub check: Check,
}

/// Measures a case.
///
/// # Errors
/// What the device says.
pub fn measure(dev: &Device, config: &Config, weights: &Gpt, case: &Case, run: &Run) -> Result<Outcome> {
    let x = (weights.clone(), case.batch(config.vocabulary));
    let f = function(case, options(dev.name(), run.mode))?;
    let before = dev.stats();
    let begin = Instant::now();
    let first = f.call(&x)?;
    dev.synchronize()?;
    let first_call = begin.elapsed().as_secs_f64();
    let check = plausible(dev, config, case, &first.0)?;
    drop(first);
    let time = time(dev, run.effort, || f.call(&x).map(drop))?;
    let after = dev.stats();
    let e = f.explain();
    let mut facts = explained(&e);
    facts.insert("first_call_s".into(), first_call.into());
    facts.insert("variants".into(), (after.variants - before.variants).into());
    facts.insert("compilations".into(), (after.compilations - before.compilations).into());
    facts.insert("bytes_in_use".into(), after.bytes_in_use.into());
    facts.insert("bytes_peak_so_far".into(), after.bytes_peak.into());
    let kernels = if run.profile { f.profile(&x, run.rounds)? } else { vec![] };
    if run.profile {
        let (ours, driver) = compile_times(&kernels);
        facts.insert("compile_s".into(), ours.into());
        facts.insert("driver_s".into(), driver.into());
        facts.insert("kernels_ms".into(), kernels.iter().map(|k| k.ms).sum::<f64>().into());
    }
    Ok(Outcome { time, facts, kernels, check })
}

/// How a case is measured.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The mode of `compile`.
    pub mode: &'a str,
    /// How long.
    pub effort: Effort,
    /// Time each kernel, too?
    pub profile: bool,
    /// Launches of each kernel that its time is the mean of.
    pub rounds: usize,
}

/// A case captured and cut into kernels, without running anything.
///
/// # Errors
/// Mistakes in the model.
pub fn plan(device: &str, config: &Config, case: &Case) -> Result<Explanation> {
    let f = function(case, options(device, "default"))?;
    f.plan(&(Gpt::new(config), case.batch(config.vocabulary)))?;
    Ok(f.explain())
}

/// What there is to say of a plan.
pub fn explained(e: &Explanation) -> Map<String, Value> {
    let flops: u64 = e.groups.iter().map(|g| g.flops).sum();
    let facts = json!({
        "kernels": e.kernels, "primitives": e.primitives, "bytes_moved": e.bytes, "flops": flops,
        "plan_peak_bytes": e.peak_bytes, "capture_s": e.capture_time.as_secs_f64(), "plan_s": e.plan_time.as_secs_f64(),
    });
    facts.as_object().cloned().unwrap_or_default()
}

/// Is the loss of random weights near that of guessing, and are the logits numbers of a plausible size?
fn plausible(dev: &Device, config: &Config, case: &Case, result: &Tensor) -> Result<Check> {
    if case.train {
        let loss = result.to_f64s()?[0];
        let guess = (config.vocabulary as f64).ln();
        return Ok(Check { error: (loss - guess).abs(), tolerance: 0.5 });
    }
    let all: Vec<usize> = (0..result.rank()).collect();
    let largest = compile(move |x: &Tensor| x.abs().max(&all), options(dev.name(), "default"))?;
    let largest = largest.call(result)?.to_f64s()?[0];
    // Also of no use: all zeros. The deviation of a logit is about `SCALE / sqrt(3) * sqrt(width)`.
    let error = if largest > 0.01 { largest } else { f64::NAN };
    Ok(Check { error, tolerance: 20.0 })
}

/// Bytes copied between two calls, so that no cache holds what the next one reads.
const FLUSH: usize = 256 << 20;

/// Milliseconds of a call as Triton's `do_bench` takes them: the cache is flushed before each, and events on the device stand
/// right before and after.
fn time(dev: &Device, effort: Effort, mut call: impl FnMut() -> Result<()>) -> Result<Summary> {
    let bytes = if dev.info().gpu { FLUSH } else { 1 << 20 };
    let (from, to) = (dev.zeros::<u8>(bytes)?, dev.zeros::<u8>(bytes)?);
    let stream = dev.default_stream();
    let mut marks = Vec::new();
    let mut round = |marks: &mut Vec<_>| -> Result<()> {
        to.copy_from_buffer(&from)?;
        let start = stream.record()?;
        call()?;
        marks.push((start, stream.record()?));
        Ok(())
    };
    // So many calls as take 50 ms warm up, and 200 ms are measured; with `--quick` less.
    round(&mut marks)?;
    stream.synchronize()?;
    let one = marks[0].0.elapsed_ms(&marks[0].1)?.max(1e-3);
    let warm_up = (effort.warm_up.as_secs_f64() * 500.0 / one) as usize;
    let rounds = ((5.0 * effort.rounds as f64 / one) as usize).clamp(3, 200);
    for _ in 0..warm_up.min(200) {
        round(&mut marks)?;
    }
    stream.synchronize()?;
    marks.clear();
    for _ in 0..rounds {
        round(&mut marks)?;
    }
    stream.synchronize()?;
    let samples: tilewright_runtime::Result<Vec<f64>> = marks.iter().map(|(a, b)| a.elapsed_ms(b)).collect();
    Ok(Summary::of(samples.map_err(Error::from)?))
}

/// Seconds that compiling all different kernels took: our part, and the assembler's or driver's.
fn compile_times(kernels: &[KernelTime]) -> (f64, f64) {
    let different: BTreeMap<usize, &KernelTime> =
        kernels.iter().map(|k| (std::sync::Arc::as_ptr(&k.compiled).addr(), k)).collect();
    different.values().fold((0.0, 0.0), |(ours, driver), k| {
        let m = k.compiled.metadata();
        (ours + (m.build_time + m.compile_time).as_secs_f64(), driver + m.driver_time.as_secs_f64())
    })
}

/// Kernels that are alike, together.
#[derive(Clone, Debug)]
pub struct Line {
    /// Their name.
    pub name: String,
    /// How many.
    pub count: usize,
    /// Milliseconds of all of them; 0 if they were not run.
    pub ms: f64,
    /// Bytes that all of them move.
    pub bytes: u64,
    /// Operations of all of them.
    pub flops: u64,
    /// Programs of one.
    pub programs: usize,
    /// Registers of a thread, and bytes spilled, where that is known.
    pub resources: String,
    /// Warps, shared memory.
    pub threads: u32,
}

impl Line {
    /// As JSON.
    pub fn json(&self) -> Value {
        json!({
            "name": self.name, "count": self.count, "ms": self.ms, "bytes": self.bytes, "flops": self.flops,
            "programs": self.programs, "threads": self.threads, "resources": self.resources,
        })
    }

    /// For the screen, of kernels that were not run.
    pub fn planned(&self) -> String {
        format!(
            "{:>4} x {:>9.1} MB = {:>9.1} MB  {:>9.1} GFLOP  {:>7} programs  {}",
            self.count,
            self.bytes as f64 / 1e6 / self.count as f64,
            self.bytes as f64 / 1e6,
            self.flops as f64 / 1e9,
            self.programs,
            self.name,
        )
    }

    /// For the screen.
    pub fn text(&self, all: f64) -> String {
        let per = |x: f64| if self.ms > 0.0 { x / self.ms } else { 0.0 };
        format!(
            "{:>9.3} ms {:>5.1} %  {:>4} x {:>9.4} ms  {:>9.1} MB {:>7.0} GB/s  {:>9.1} GFLOP {:>6.1} TFLOP/s  {:>7} programs of {:>4} {:<16} {}",
            self.ms,
            if all > 0.0 { 100.0 * self.ms / all } else { 0.0 },
            self.count,
            self.ms / self.count as f64,
            self.bytes as f64 / 1e6,
            per(self.bytes as f64 / 1e6),
            self.flops as f64 / 1e9,
            per(self.flops as f64 / 1e9),
            self.programs,
            self.threads,
            self.resources,
            self.name,
        )
    }
}

/// Times of kernels, those that are alike together, the longest first.
pub fn lines(kernels: &[KernelTime]) -> Vec<Line> {
    let mut all: BTreeMap<(usize, usize, u64), Line> = BTreeMap::new();
    for k in kernels {
        // The same code for other extents is another line.
        let key = (std::sync::Arc::as_ptr(&k.compiled).addr(), k.programs, k.bytes);
        let m = k.compiled.metadata();
        let resources = match (m.resources.registers, m.resources.spill_bytes) {
            (Some(r), Some(s)) if s > 0 => format!("{r} regs {s} spill"),
            (Some(r), _) => format!("{r} regs"),
            _ => String::new(),
        };
        let line = all.entry(key).or_insert_with(|| Line {
            name: k.name.to_owned(),
            count: 0,
            ms: 0.0,
            bytes: 0,
            flops: 0,
            programs: k.programs,
            resources,
            threads: m.threads,
        });
        line.count += 1;
        line.ms += k.ms;
        line.bytes += k.bytes;
        line.flops += k.flops;
    }
    let mut all: Vec<Line> = all.into_values().collect();
    all.sort_by(|a, b| b.ms.total_cmp(&a.ms));
    all
}

/// The kernels of a plan that was not run, those that are alike together, those that move the most first.
pub fn planned(e: &Explanation) -> Vec<Line> {
    let mut all: BTreeMap<(&str, usize, u64), Line> = BTreeMap::new();
    for g in &e.groups {
        let line = all.entry((&g.ir, g.programs, g.bytes)).or_insert_with(|| Line {
            name: g.name.clone(),
            count: 0,
            ms: 0.0,
            bytes: 0,
            flops: 0,
            programs: g.programs,
            resources: String::new(),
            threads: 0,
        });
        line.count += 1;
        line.bytes += g.bytes;
        line.flops += g.flops;
    }
    let mut all: Vec<Line> = all.into_values().collect();
    all.sort_by_key(|l| std::cmp::Reverse(l.bytes));
    all
}
