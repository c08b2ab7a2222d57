//! Launches prepared for many submissions: each has a kernel object of its own, which keeps its arguments.

use super::context::Context;
use super::kernel::{Kernel, enqueue, set_argument};
use crate::backend::{RawGraph, RawLaunch, RawStream};
use crate::error::Result;
use ocl::core::ffi::{self, cl_kernel};
use std::sync::Arc;

pub(super) struct Graph {
    context: Arc<Context>,
    launches: Vec<Stored>,
}

struct Stored {
    kernel: cl_kernel,
    /// Bytes of each argument.
    sizes: Vec<usize>,
    words: Vec<u64>,
    threads: usize,
    grid: [u32; 3],
}

// SAFETY: OpenCL's objects may be used from any thread; the kernel objects by one at a time: only `&mut self` gives them to
// the driver.
unsafe impl Send for Graph {}
// SAFETY: as above.
unsafe impl Sync for Graph {}

impl Graph {
    /// Of these launches.
    pub fn new(context: Arc<Context>, launches: &[RawLaunch<'_>]) -> Result<Graph> {
        // From here on `Drop` releases what is there.
        let mut this = Graph { context, launches: Vec::with_capacity(launches.len()) };
        for launch in launches {
            let of = launch.kernel.as_any().downcast_ref::<Kernel>().expect("kernels of one device are of one kind");
            let (kernel, sizes, words) = (of.another()?, of.sizes.clone(), launch.words.to_vec());
            this.launches.push(Stored { kernel, sizes, words, threads: of.threads, grid: launch.grid });
            for (i, (word, &size)) in launch.words.iter().zip(&of.sizes).enumerate() {
                set_argument(&this.context, kernel, i, word, size)?;
            }
        }
        Ok(this)
    }
}

impl RawGraph for Graph {
    fn update(&mut self, index: usize, launch: &RawLaunch<'_>) -> Result<()> {
        let stored = &mut self.launches[index];
        for (i, (old, new)) in stored.words.iter_mut().zip(launch.words).enumerate() {
            if old != new {
                set_argument(&self.context, stored.kernel, i, new, stored.sizes[i])?;
                *old = *new;
            }
        }
        Ok(())
    }

    fn launch(&mut self, _stream: RawStream) -> Result<()> {
        for l in &self.launches {
            enqueue(&self.context, l.kernel, l.grid, l.threads)?;
        }
        self.context.flush()
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        for l in &self.launches {
            // SAFETY: ours, released once; launches in flight hold references of their own.
            unsafe { ffi::clReleaseKernel(l.kernel) };
        }
    }
}
