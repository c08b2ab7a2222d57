//! The whole way from Tile IR to code.

use crate::error::Result;
use crate::target::{Caps, Compiled};
use crate::tile::Function;

/// The choices of a launch that are not the kernel's own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Options {
    /// Warps of 32 threads of one program: a power of two. The number of threads is 32 times this on every target,
    /// whatever the width of its warps, unless the device allows fewer.
    pub num_warps: u32,
    /// Depth of the software pipeline of loads that feed `dot` in loops: 1 means none.
    pub num_stages: u32,
}

impl Default for Options {
    /// 4 warps, 3 stages: Triton's defaults on its first supported chips.
    fn default() -> Self {
        Self { num_warps: 4, num_stages: 3 }
    }
}

/// Compiles a function for a target: passes, lowering, emission.
///
/// # Errors
/// [`crate::Error::Unsupported`] if the target cannot do what the function asks.
pub fn compile(_func: &Function, _caps: &Caps, _options: &Options) -> Result<Compiled> {
    Err(crate::Error::Internal("the lowering is not there yet".into()))
}
