//! The schedule: every decision the lowering executes, as a value that can be printed.
//!
//! **In**: Tile IR, its [`AxisInfo`], and what the target can do. **Out**: a [`Schedule`].
//! **Holds**: every tile value with a *home* is computed where it stands in the program, in that layout; values without one
//! (made of constants, ranges and the like, or repeated from smaller tiles) are computed where and as they are needed. Every access
//! to memory has a layout in which neighbouring threads touch neighbouring addresses.

mod access;
mod ahead;
mod dot;
mod explain;
mod plan;
mod reason;
mod rounds;

pub use access::MemoryAccess;
pub use dot::{DotPlan, DotReasons, MmaPlan, WgmmaPlan};
pub use explain::Remark;
pub use reason::{AheadReason, DotReason, WidthReason};
pub use rounds::{InFlight, Moment, Step};

use crate::analysis::axis::AxisInfo;
use crate::entity::Entity;
use crate::error::Result;
use crate::layout::Layout;
use crate::pipeline::Options;
use crate::target::Caps;
use crate::tile::{Function, OpId, Value};
use std::collections::HashMap;
use std::fmt;

/// A loop whose loads run ahead of their use.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PipelinePlan {
    /// Buffers for each load: this iteration's, and those of the loads under way.
    pub stages: u32,
    /// The loads, in program order; each feeds only dots.
    pub loads: Vec<OpId>,
    /// Which carried values their addresses are made of, such as pointers that move on each round: a copy of each runs ahead.
    pub carried: Vec<usize>,
    /// How many rounds ahead of their use copies are started.
    pub distance: u32,
    /// Products that stay in flight from one round to the next.
    pub in_flight: Vec<InFlight>,
    /// What a round does beside its ops, and when.
    pub steps: Vec<(Moment, Step)>,
}

/// Every decision about one function.
#[derive(Clone, PartialEq, Debug)]
pub struct Schedule {
    /// Lanes of a warp.
    pub lanes: u32,
    /// Warps of a program.
    pub warps: u32,
    /// Where values live that are computed where they stand.
    pub homes: HashMap<Value, Layout>,
    /// How loads and stores touch memory.
    pub accesses: HashMap<OpId, MemoryAccess>,
    /// How matrix products are done.
    pub dots: HashMap<OpId, DotPlan>,
    /// Layouts that reductions take their operand in.
    pub reductions: HashMap<OpId, Layout>,
    /// Loops with loads under way.
    pub pipelines: HashMap<OpId, PipelinePlan>,
    /// Why matrix products are not done faster.
    pub dot_reasons: HashMap<OpId, DotReasons>,
    /// Why loads in loops do not run ahead of their use.
    pub ahead_reasons: HashMap<OpId, AheadReason>,
}

impl Schedule {
    /// Decides everything about `func`.
    ///
    /// # Errors
    /// [`crate::Error::Unsupported`] if the target cannot run the function in any way.
    pub fn plan(func: &Function, axis: &AxisInfo, caps: &Caps, options: &Options) -> Result<Self> {
        plan::plan(func, axis, caps, options)
    }

    /// Threads of a program.
    pub fn threads(&self) -> u32 {
        self.lanes * self.warps
    }

    /// The layout of a scalar.
    pub fn scalar(&self) -> Layout {
        Layout::scalar(self.lanes, self.warps)
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} warps of {} lanes", self.warps, self.lanes)?;
        let mut homes: Vec<_> = self.homes.iter().collect();
        homes.sort_by_key(|(v, _)| v.index());
        for (v, layout) in homes.into_iter().filter(|(_, l)| l.shape.rank() > 0) {
            writeln!(f, "{v} lives in {layout}")?;
        }
        let mut accesses: Vec<_> = self.accesses.iter().collect();
        accesses.sort_by_key(|(op, _)| op.index());
        for (op, access) in accesses {
            writeln!(f, "{op} moves {} elements at a time in {}", access.vec, access.layout)?;
        }
        let mut dots: Vec<_> = self.dots.iter().collect();
        dots.sort_by_key(|(op, _)| op.index());
        for (op, dot) in dots {
            writeln!(f, "{op} is {dot}")?;
        }
        let mut reductions: Vec<_> = self.reductions.iter().collect();
        reductions.sort_by_key(|(op, _)| op.index());
        for (op, layout) in reductions {
            writeln!(f, "{op} reduces {layout}")?;
        }
        let mut pipelines: Vec<_> = self.pipelines.iter().collect();
        pipelines.sort_by_key(|(op, _)| op.index());
        for (op, p) in pipelines {
            writeln!(f, "{op} {p}")?;
        }
        Ok(())
    }
}
