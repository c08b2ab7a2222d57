//! Where a graph's time goes: every kernel timed by itself.

use super::{DeviceArray, Executable};
use crate::error::Result;
use crate::graph::NodeId;
use crate::prim::{Class, Op};
use std::collections::BTreeSet;
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
        self.run_with(args, &mut |kernel, launch| {
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

    /// Most bytes of results and intermediate tensors alive at once during a call.
    pub fn peak_bytes(&self) -> u64 {
        let size = |node: NodeId| self.graph.ty(node).bytes() as u64;
        let whole = self.plan.fills.keys().chain(&self.plan.outputs).copied();
        let mut alive: BTreeSet<NodeId> =
            whole.filter(|&n| self.graph.nodes[n].op.class() == Class::Assemble).collect();
        let mut now: u64 = alive.iter().map(|&n| size(n)).sum();
        let mut peak = now;
        for (i, kernel) in self.kernels.iter().enumerate() {
            let own = || kernel.params.iter().map(|p| p.node).filter(|&n| self.graph.nodes[n].op != Op::Input);
            now += own().filter(|&n| alive.insert(n)).map(size).sum::<u64>();
            peak = peak.max(now);
            for node in own().filter(|n| self.last_use.get(n) == Some(&i)) {
                if alive.remove(&node) {
                    now -= size(node);
                }
            }
        }
        peak
    }
}
