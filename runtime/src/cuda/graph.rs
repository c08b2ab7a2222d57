//! CUDA graphs: a chain of kernel nodes, instantiated once, whose arguments can be replaced between launches.
//!
//! The graph is built node by node, not captured from a stream: other threads may be giving work to the device's own stream
//! meanwhile, which a capture would take in.

use super::context::Context;
use super::driver;
use super::kernel::Kernel;
use crate::backend::{RawGraph, RawLaunch, RawStream};
use crate::error::Result;
use cudarc::driver::sys::{self, CUDA_KERNEL_NODE_PARAMS, CUgraph, CUgraphExec, CUgraphNode};
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::Arc;

/// The first driver that has the functions used here in their present form: CUDA 12.0.
const OLDEST_DRIVER: c_int = 12_000;
/// Below this many kernels launching them costs the host no more than launching a graph.
const FEWEST: usize = 2;

pub(super) struct Graph {
    context: Arc<Context>,
    /// Kept for its nodes, by which the instance is changed.
    graph: CUgraph,
    exec: CUgraphExec,
    nodes: Vec<CUgraphNode>,
}

// SAFETY: the driver's handles may be used from any thread, by one at a time: only `&mut self` gives them to the driver.
unsafe impl Send for Graph {}
// SAFETY: as above.
unsafe impl Sync for Graph {}

/// A graph of these launches; `None` if the driver has none or they are too few. The context is current.
pub(super) fn graph(context: &Arc<Context>, launches: &[RawLaunch<'_>]) -> Result<Option<Box<dyn RawGraph>>> {
    let new = driver::init().is_ok_and(|version| version >= OLDEST_DRIVER);
    if !new || launches.len() < FEWEST {
        return Ok(None);
    }
    // From here on `Drop` destroys what is there.
    let mut this = Graph {
        context: context.clone(),
        graph: ptr::null_mut(),
        exec: ptr::null_mut(),
        nodes: Vec::with_capacity(launches.len()),
    };
    // SAFETY: writes one handle; the flags must be 0.
    context.check("cuGraphCreate", unsafe { sys::cuGraphCreate(&mut this.graph, 0) })?;
    for launch in launches {
        let before = this.nodes.last().copied();
        let mut node = ptr::null_mut();
        let code = with_params(launch, |params| {
            let (before, count) = before.as_ref().map_or((ptr::null(), 0), |b| (ptr::from_ref(b), 1));
            // SAFETY: writes one handle; the one dependency is a node of this graph, and the parameters are valid.
            unsafe { sys::cuGraphAddKernelNode_v2(&mut node, this.graph, before, count, params) }
        });
        context.check("cuGraphAddKernelNode", code)?;
        this.nodes.push(node);
    }
    // SAFETY: writes one handle; the graph is complete.
    let code = unsafe { sys::cuGraphInstantiateWithFlags(&mut this.exec, this.graph, 0) };
    context.check("cuGraphInstantiateWithFlags", code)?;
    Ok(Some(Box::new(this)))
}

/// Calls a function with the driver's form of a launch, which is good during the call.
fn with_params<R>(launch: &RawLaunch<'_>, f: impl FnOnce(&CUDA_KERNEL_NODE_PARAMS) -> R) -> R {
    let kernel = launch.kernel.as_any().downcast_ref::<Kernel>().expect("kernels of one device are of one kind");
    let mut pointers: Vec<*mut c_void> =
        launch.words.iter().map(|word| ptr::from_ref(word).cast_mut().cast::<c_void>()).collect();
    f(&CUDA_KERNEL_NODE_PARAMS {
        func: kernel.function,
        gridDimX: launch.grid[0],
        gridDimY: launch.grid[1],
        gridDimZ: launch.grid[2],
        blockDimX: kernel.threads,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: kernel.shared_bytes,
        // The driver copies the values before it returns.
        kernelParams: pointers.as_mut_ptr(),
        extra: ptr::null_mut(),
        kern: ptr::null_mut(),
        ctx: ptr::null_mut(),
    })
}

impl RawGraph for Graph {
    fn update(&mut self, index: usize, launch: &RawLaunch<'_>) -> Result<()> {
        self.context.enter()?;
        // SAFETY: the node is of the graph that the instance was made from, and has the same kernel; the parameters are valid.
        // Launches in flight keep the old values.
        let code = with_params(launch, |params| unsafe {
            sys::cuGraphExecKernelNodeSetParams_v2(self.exec, self.nodes[index], params)
        });
        self.context.check("cuGraphExecKernelNodeSetParams", code)
    }

    fn launch(&mut self, stream: RawStream) -> Result<()> {
        self.context.bind()?;
        let stream = self.context.stream_for(stream)?;
        // SAFETY: the instance is alive, and its kernels are loaded: their owner keeps them longer than this.
        self.context.check("cuGraphLaunch", unsafe { sys::cuGraphLaunch(self.exec, stream) })
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: ours, destroyed once; the driver lets a launch in flight finish first.
            unsafe {
                if !self.exec.is_null() {
                    sys::cuGraphExecDestroy(self.exec);
                }
                if !self.graph.is_null() {
                    sys::cuGraphDestroy(self.graph);
                }
            }
        }
    }
}
