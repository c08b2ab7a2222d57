//! Timing: device events around single launches, caches flushed or warm.

use crate::outputs::Outputs;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};
use tilewright_runtime::{Buffer, Device, Prepared, Result};

/// What a launch finds in the device's cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CachePolicy {
    /// Nothing of its own: a large buffer is written in between, as if other kernels had run.
    Cold,
    /// What the launch before left.
    Warm,
}

impl CachePolicy {
    /// Cold on GPUs; on software devices there is no cache of the device to flush.
    pub fn of(device: &Device) -> Self {
        if device.info().gpu { CachePolicy::Cold } else { CachePolicy::Warm }
    }
}

/// More than twice the largest second-level cache of a GPU so far (50 MiB on an H100, 126 MB on a B200).
const FLUSH_BYTES: usize = 256 << 20;

/// Measures on one device.
#[derive(Debug)]
pub struct Clock {
    device: Device,
    flush: Option<Buffer<u8>>,
}

impl Clock {
    /// A clock; without memory for the flush buffer it measures warm, and says so.
    pub fn new(device: &Device, policy: CachePolicy) -> Self {
        let flush = match policy {
            CachePolicy::Cold => device.alloc::<u8>(FLUSH_BYTES).ok(),
            CachePolicy::Warm => None,
        };
        Self { device: device.clone(), flush }
    }

    /// What launches really find.
    pub fn policy(&self) -> CachePolicy {
        if self.flush.is_some() { CachePolicy::Cold } else { CachePolicy::Warm }
    }

    /// Times `runs` launches of at most `limit` each, in microseconds; fewer, but at least one, when it is `until`. What they read
    /// and write is put back before each.
    ///
    /// # Errors
    /// What the driver says, faults of the kernel among it.
    pub fn time(
        &self,
        kernel: &Prepared,
        outputs: &Outputs,
        runs: usize,
        limit: Duration,
        until: Option<Instant>,
    ) -> Result<Vec<f64>> {
        let mut times = Vec::with_capacity(runs);
        for _ in 0..runs {
            if !times.is_empty() && until.is_some_and(|u| Instant::now() >= u) {
                break;
            }
            outputs.rewind()?;
            if let Some(flush) = &self.flush {
                flush.memory().fill_range(0, FLUSH_BYTES as u64, 0)?;
            }
            // A clock too coarse to see the launch gives 0; no launch takes less than a nanosecond.
            times.push((kernel.time_within(limit)? * 1e3).max(1e-3));
        }
        self.device.synchronize()?;
        Ok(times)
    }
}

/// How many launches one sample has: enough to be steady, few enough to stay short.
pub fn runs_for(us: f64) -> usize {
    match us {
        _ if us < 100.0 => 20,
        _ if us < 1_000.0 => 10,
        _ if us < 10_000.0 => 4,
        _ if us < 100_000.0 => 2,
        _ => 1,
    }
}

/// The middle value; of an even number the mean of the middle two. NaN for none.
pub fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// The value below which this part of the values lies, interpolated.
pub fn quantile(values: &[f64], part: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let at = part.clamp(0.0, 1.0) * last as f64;
    let (lo, hi) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    lo + (hi - lo) * at.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[1.0, 2.0, 3.0, 10.0]), 2.5);
        assert!(median(&[]).is_nan());
        assert_eq!(quantile(&[0.0, 10.0], 0.2), 2.0);
        assert_eq!(runs_for(50.0), 20);
        assert_eq!(runs_for(f64::NAN), 1);
    }
}
