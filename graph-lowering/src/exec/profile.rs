//! Where a graph's time goes: every kernel timed by itself.

use super::{DeviceArray, Executable};
use crate::error::Result;
use std::sync::Arc;
use tilewright_runtime::CompiledKernel;

/// How long one kernel of a graph takes, and what it does meanwhile.
#[derive(Clone, Debug)]
pub struct KernelTime {
    /// Its name.
    pub name: &'static str,
    /// Milliseconds of one launch, by the device's clock.
    pub ms: f64,
    /// Bytes it reads and writes.
    pub bytes: u64,
    /// Operations on elements.
    pub flops: u64,
    /// Programs of its grid.
    pub programs: usize,
    /// The compiled kernel: kernels of a graph that are alike share it.
    pub compiled: Arc<CompiledKernel>,
}

impl Executable {
    /// Runs all kernels, each `rounds` times in a row after a run that is not counted, and tells how long each took. What a
    /// kernel reads may be in the device's caches from the run before.
    ///
    /// # Errors
    /// What the device says.
    pub fn profile(&self, args: &[Arc<DeviceArray>], rounds: usize) -> Result<Vec<KernelTime>> {
        let rounds = rounds.max(1);
        let stream = self.device.default_stream();
        let mut marks = Vec::new();
        self.run_with(args, |kernel, launch| {
            let prepared = launch.prepare()?;
            prepared.launch()?;
            let start = stream.record()?;
            for _ in 0..rounds {
                prepared.launch()?;
            }
            marks.push((kernel.clone(), prepared.kernel().clone(), start, stream.record()?));
            Ok(())
        })?;
        let time = |(kernel, compiled, start, end): (crate::fuse::kernel::Kernel, _, tilewright_runtime::Event, _)| {
            Ok(KernelTime {
                name: kernel.name(),
                ms: start.elapsed_ms(&end)? / rounds as f64,
                bytes: kernel.bytes(),
                flops: kernel.flops(),
                programs: kernel.grid,
                compiled,
            })
        };
        marks.into_iter().map(time).collect()
    }
}
