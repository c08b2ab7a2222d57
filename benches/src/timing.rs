//! Times by the device's own clock: warm up, repeat, take the median.

use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tilewright_runtime::{Device, Result};

/// How long is measured.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Measured intervals.
    pub rounds: usize,
    /// Run before, so that clocks have risen and everything is loaded.
    pub warm_up: Duration,
    /// Least milliseconds of one interval: short kernels are launched several times in it.
    pub interval_ms: f64,
}

impl Effort {
    /// For results that are recorded.
    pub const FULL: Effort = Effort { rounds: 41, warm_up: Duration::from_millis(100), interval_ms: 1.0 };
    /// For a first look.
    pub const QUICK: Effort = Effort { rounds: 11, warm_up: Duration::from_millis(20), interval_ms: 0.5 };
}

/// The median of some samples, and how far they spread.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Summary {
    /// The middle one.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
    /// How many there are.
    pub n: usize,
}

impl Summary {
    /// Of at least one sample.
    pub fn of(mut samples: Vec<f64>) -> Self {
        assert!(!samples.is_empty(), "a summary is made of samples that were taken");
        samples.sort_by(f64::total_cmp);
        let n = samples.len();
        Self { median: (samples[(n - 1) / 2] + samples[n / 2]) / 2.0, min: samples[0], max: samples[n - 1], n }
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        json!({"median": self.median, "min": self.min, "max": self.max, "n": self.n})
    }
}

/// Bytes that repeated runs must go through before they meet the same data again, so that a cache does not serve them:
/// several times the largest cache of a GPU.
const ROTATED_BYTES: u64 = 256 << 20;
/// Most sets of buffers.
const MOST_SETS: u64 = 64;

/// How many sets of inputs and outputs of `bytes` to rotate among.
pub fn sets(gpu: bool, bytes: u64) -> usize {
    // On software devices filling many sets would take longer than the runs.
    if !gpu {
        return 2;
    }
    ROTATED_BYTES.div_ceil(bytes.max(1)).clamp(1, MOST_SETS) as usize
}

/// Milliseconds of one submission. `submit(i)` enqueues the `i`-th on the default stream.
///
/// # Errors
/// What `submit` or the device says.
pub fn time(dev: &Device, effort: Effort, mut submit: impl FnMut(usize) -> Result<()>) -> Result<Summary> {
    let stream = dev.default_stream();
    let mut next = 0;
    let mut run = |count: usize| -> Result<()> {
        for _ in 0..count {
            submit(next)?;
            next += 1;
        }
        Ok(())
    };
    // The first run loads the code.
    run(1)?;
    stream.synchronize()?;
    let (begin, mut batch) = (Instant::now(), 1);
    loop {
        let start = stream.record()?;
        run(batch)?;
        let ms = start.elapsed_ms(&stream.record()?)?;
        if begin.elapsed() >= effort.warm_up {
            let one = (ms / batch as f64).max(1e-6);
            batch = (effort.interval_ms / one).ceil().clamp(1.0, 500.0) as usize;
            break;
        }
        batch = (batch * 2).min(64);
    }
    // Nothing waits in between: the device always has work queued, and pays no start-up in an interval.
    let mut marks = Vec::with_capacity(effort.rounds + 1);
    run(batch)?;
    marks.push(stream.record()?);
    for _ in 0..effort.rounds {
        run(batch)?;
        marks.push(stream.record()?);
    }
    stream.synchronize()?;
    let samples: Result<Vec<_>> =
        marks.windows(2).map(|pair| Ok(pair[0].elapsed_ms(&pair[1])? / batch as f64)).collect();
    Ok(Summary::of(samples?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        let s = Summary::of(vec![3.0, 1.0, 2.0]);
        assert_eq!((s.median, s.min, s.max, s.n), (2.0, 1.0, 3.0, 3));
        assert_eq!(Summary::of(vec![4.0, 1.0, 2.0, 3.0]).median, 2.5);
    }

    #[test]
    fn small_data_rotates() {
        assert_eq!((sets(true, 1), sets(true, 64 << 20), sets(true, 1 << 30)), (64, 4, 1));
    }
}
