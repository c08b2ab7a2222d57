//! Devices, buffers, streams and kernel launches.
//!
//! ```
//! use tilewright_runtime::Device;
//! # fn main() -> tilewright_runtime::Result<()> {
//! let dev = Device::open("cpu")?; // or `Device::best()`
//! let x = dev.buffer_from(&[1.0f32, 2.0, 3.0])?;
//! assert_eq!(x.to_vec()?, [1.0, 2.0, 3.0]);
//! # Ok(())
//! # }
//! ```
//!
//! One [`Device`] stands for four drivers: `cpu` (the interpreter, always there), `cuda`, `vulkan` and `opencl` (feature
//! `opencl`). Libraries are loaded when present. A `#[kernel]` function gives a [`Launch`]: its arguments are specialised
//! ([`Launch::ir`] shows the result), compiled once for each set of facts, cached in the process and on disk, and run.
//!
//! # Environment
//! | variable | what |
//! |---|---|
//! | `TILEWRIGHT_CACHE=off` | no caches of code and graphs on disk |
//! | `TILEWRIGHT_CACHE_DIR` | its directory; else `tilewright` in `XDG_CACHE_HOME` or `~/.cache` |
//! | `TILEWRIGHT_DUMP=DIR` | writes every stage of each kernel compiled to `DIR` |
//! | `TILEWRIGHT_DUMP_FILTER` | only of kernels whose name contains this |
//! | `TILEWRIGHT_RACES` | `on`, `off`: does the CPU device report programs that race? Else in builds with debug assertions |
//! | `TILEWRIGHT_PTXAS` | the ptxas to use instead of the driver's compiler; `off` for none |

mod args;
mod backend;
mod buffer;
mod cache;
mod compile;
mod cpu;
mod cuda;
mod device;
mod dump;
mod element;
mod error;
mod explain;
pub mod files;
mod graph;
mod launch;
mod metadata;
#[cfg(feature = "opencl")]
mod opencl;
mod reach;
mod small;
mod specialize;
mod stats;
mod stream;
#[cfg(test)]
mod tests;
mod view;
mod vulkan;

pub use args::KernelArg;
pub use buffer::{Buffer, Memory};
pub use cache::store::{Pruned, cache_dir, prune_cache};
pub use device::{Device, DeviceInfo, DeviceKind, Hardware};
pub use element::Element;
pub use error::{Error, Result};
pub use explain::Explanation;
pub use graph::{DeviceGraph, DeviceGraphBuilder};
pub use launch::{CompiledKernel, Grid, Launch, Prepared};
pub use metadata::{CacheOutcome, Metadata, Resources};
pub use reach::Reach;
pub use stats::Stats;
pub use stream::{Event, Stream};
pub use tilewright_compiler::DType;
pub use tilewright_compiler::dsl::{self, Access};
pub use tilewright_compiler::pipeline::Options;
pub use tilewright_dsl_macros::*;
pub use view::{MAX_RANK, Slice, View};

/// What checks from outside need of the code cache's format. No part of the public interface.
#[doc(hidden)]
pub mod __fuzz {
    pub use crate::cache::entry::{reread, samples};
}

/// What the code that `#[kernel]` generates refers to. No part of the public interface.
#[doc(hidden)]
pub mod __private {
    pub use crate::{Access, KernelArg, Launch, Slice, View};
    pub use tilewright_compiler as compiler;
    pub use tilewright_compiler::dsl::{ComptimeValue, KernelDef, KernelId, Specialization};
}
