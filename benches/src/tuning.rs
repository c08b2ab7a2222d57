//! Tuning a matrix product over a given list of configurations: how long it takes and what it finds. Triton's autotuner gets the
//! same list (`peers/triton_tune.py`).

use crate::cases::{Case, Op};
use crate::product::{Product, config_name};
use crate::timing::Effort;
use half::f16;
use serde_json::{Value, json};
use std::error::Error;
use std::sync::LazyLock;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use tilewright_autotune::record::Outcome;
use tilewright_autotune::tunable::instance;
use tilewright_autotune::{Bucket, Config, Dims, How, Isolation, Problem, Settings, Space, Store, Tunable, tune};
use tilewright_kernels::{MatmulConfig, matmul_with};
use tilewright_runtime::{DType, Device, Options};

/// Tiles `[bm, bn, bk]`, warps, stages: the list of Triton's tutorial on matrix products, and what does well on an H100 or
/// H200 besides.
const LIST: [[usize; 5]; 24] = [
    [128, 256, 64, 8, 3],
    [64, 256, 32, 4, 4],
    [128, 128, 32, 4, 4],
    [128, 64, 32, 4, 4],
    [64, 128, 32, 4, 4],
    [128, 32, 32, 4, 4],
    [64, 32, 32, 2, 5],
    [32, 64, 32, 2, 5],
    [256, 128, 64, 8, 3],
    [256, 64, 64, 4, 4],
    [64, 256, 64, 4, 4],
    [128, 128, 64, 4, 4],
    [128, 64, 64, 4, 4],
    [64, 128, 64, 4, 4],
    [128, 32, 64, 4, 4],
    [128, 256, 64, 8, 4],
    [256, 128, 64, 8, 4],
    [128, 128, 64, 4, 3],
    [128, 128, 64, 8, 3],
    [128, 128, 32, 4, 3],
    [128, 128, 32, 8, 4],
    [64, 64, 64, 4, 5],
    [64, 64, 64, 4, 4],
    [16, 64, 128, 4, 5],
];

/// A few for software devices, on which warps and stages matter little.
const SMALL: [[usize; 5]; 4] = [[32, 32, 16, 2, 1], [64, 64, 32, 4, 1], [64, 32, 32, 4, 1], [16, 16, 16, 1, 1]];

/// The configurations.
pub fn configs(gpu: bool) -> Vec<MatmulConfig> {
    let list: &[[usize; 5]] = if gpu { &LIST } else { &SMALL };
    let options = |w, s| Options { num_warps: w as u32, num_stages: s as u32 };
    list.iter()
        .map(|&[bm, bn, bk, warps, stages]| MatmulConfig { bm, bn, bk, group: 8, options: options(warps, stages) })
        .collect()
}

/// The products: square, flat and with a short inner extent; small ones for software devices.
pub fn cases(gpu: bool) -> Vec<Case> {
    let dims: &[[usize; 3]] =
        if gpu { &[[4096, 4096, 4096], [8192, 1024, 4096], [512, 4096, 1024]] } else { &[[128; 3], [96, 64, 128]] };
    dims.iter().map(|d| Case { op: Op::Matmul, dtype: DType::F16, dims: d.to_vec() }).collect()
}

/// Cases and configurations, for the peer's script.
pub fn list(gpu: bool) -> Value {
    let config = |c: &MatmulConfig| json!({ "bm": c.bm, "bn": c.bn, "bk": c.bk, "num_warps": c.options.num_warps, "num_stages": c.options.num_stages });
    json!({
        "cases": cases(gpu).iter().map(Case::json).collect::<Vec<_>>(),
        "configs": configs(gpu).iter().map(config).collect::<Vec<_>>(),
    })
}

fn config(c: &MatmulConfig) -> Config {
    [("bm", c.bm), ("bn", c.bn), ("bk", c.bk)]
        .into_iter()
        .fold(Config::new(), |all, (n, v)| all.with(n, v))
        .with_options(c.options)
}

fn back(c: &Config) -> tilewright_runtime::Result<MatmulConfig> {
    Ok(MatmulConfig { bm: c.get("bm")?, bn: c.get("bn")?, bk: c.get("bk")?, group: 8, options: c.options() })
}

fn listed(name: &'static str, gpu: bool) -> Tunable {
    let space = configs(gpu).iter().fold(Space::default(), |space, c| space.and_config(&config(c)));
    Tunable::new(name, &["m", "n", "k"], space)
        .bucket("m", Bucket::Exact)
        .bucket("n", Bucket::Exact)
        .bucket("k", Bucket::Exact)
        .inputs(|p| {
            let [m, n, k] = ["m", "n", "k"].map(|s| p.dims.size(s));
            let buffers = (p.random::<f16>(0, &[m, k])?, p.random::<f16>(1, &[k, n])?, p.zeros::<f16>(&[m, n])?);
            Ok(instance((buffers, [m, n, k]), |((a, b, c), [m, n, k]), config| {
                matmul_with(a.view([*m, *k])?, b.view([*k, *n])?, c.view([*m, *n])?, back(config)?)
            }))
        })
}

fn on_gpu() -> &'static Tunable {
    static T: LazyLock<Tunable> = LazyLock::new(|| listed("matmul_listed", true));
    &T
}

fn elsewhere() -> &'static Tunable {
    static T: LazyLock<Tunable> = LazyLock::new(|| listed("matmul_listed_small", false));
    &T
}

// Worker processes find them by name.
tilewright_autotune::register!(on_gpu, elsewhere);

/// What tuning one product took and gave.
#[derive(Clone, Debug)]
pub struct Tuned {
    /// The case's name.
    pub name: String,
    /// Configurations tried: measured, failed or found to be the same code as another.
    pub tried: usize,
    /// Of these, those that failed.
    pub failed: usize,
    /// Wall time from the call to the winner, in seconds.
    pub seconds: f64,
    /// The winner.
    pub best: String,
    /// Its time, measured afterwards as all products are, in milliseconds.
    pub ms: f64,
    /// The rate that follows.
    pub tflops: f64,
    /// Was its result right, beside a reference in double precision?
    pub right: bool,
}

impl Tuned {
    /// As JSON.
    pub fn json(&self) -> Value {
        json!({
            "name": self.name, "configs": self.tried, "failed": self.failed, "seconds": self.seconds,
            "seconds_per_config": self.seconds / self.tried.max(1) as f64, "best": self.best, "ms": self.ms,
            "tflops": self.tflops, "right": self.right,
        })
    }
}

/// Tunes one product from nothing: a store of its own, which is removed again.
///
/// # Errors
/// What the device says; that no configuration works, or not all could be tried within `budget`.
pub fn measure(dev: &Device, case: &Case, budget: Duration, isolation: Isolation) -> Result<Tuned, Box<dyn Error>> {
    let gpu = dev.info().gpu;
    let tunable = if gpu { on_gpu() } else { elsewhere() };
    let sizes: Vec<i64> = case.dims.iter().map(|&d| d as i64).collect();
    let dims = Dims::new(tunable.dims(), &sizes).ok_or("a product has three extents")?;
    let problem = Problem { device: dev.clone(), dtype: case.dtype, dims, seed: 1 };
    let dir = tempfile::tempdir()?;
    let how = How { settings: Settings { budget, ..Settings::default() }, isolation, ..How::default() };
    let start = Instant::now();
    let report = tune(tunable, &problem, &Store::at(dir.path()), &how, &AtomicBool::new(false), &mut |_| {})?;
    let seconds = start.elapsed().as_secs_f64();
    let s = &report.summary;
    if let Some(failure) = s.broken.as_ref().or(s.hopeless.as_ref()) {
        return Err(failure.message.clone().into());
    }
    if s.left_out > 0 {
        return Err(format!("{} configurations were not tried within {budget:?}", s.left_out).into());
    }
    let best = report.record.winner().ok_or("no configuration works")?;
    let best = back(&best.config)?;
    let failed = report.record.entries.iter().filter(|e| matches!(e.outcome, Outcome::Failed(_))).count();
    let tried = report.record.entries.len();
    let product = Product::<f16>::new(dev, case)?;
    let after = product.measure(dev, Effort::QUICK, Some(best), case.name(), "tune")?;
    Ok(Tuned {
        name: case.name(),
        tried,
        failed,
        seconds,
        best: config_name(&best),
        ms: after.time.median,
        tflops: after.rate.map_or(f64::NAN, |(rate, _)| rate),
        right: after.check.is_some_and(|c| c.error <= c.tolerance),
    })
}
