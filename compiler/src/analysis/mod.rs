//! Facts about Tile IR that hold in every run of the function.
//!
//! **In**: a verified [`crate::tile::Function`]. **Out**: tables indexed by [`crate::tile::Value`].
//! **Holds**: what an analysis claims is true of every element in every run, whatever the arguments (as far as the
//! launch keeps to the function's hints), also where integers wrap. Facts describe the function as it was: after a pass
//! has changed it they are to be computed anew.
//!
//! | analysis | says |
//! |---|---|
//! | [`range`] | the least and greatest value of integers |
//! | [`axis`] | runs of consecutive and of equal elements, and powers of two that divide them, in each dimension |
//! | [`alias`] | which kernel parameters an address comes from |
//! | [`uses`] | how often a value is used, and how deep in the regions it is defined |

pub mod alias;
pub mod axis;
mod forward;
pub mod int;
pub mod range;
#[cfg(test)]
mod soundness;
#[cfg(test)]
pub(crate) mod testing;
pub mod uses;

pub use alias::{Aliases, aliases};
pub use axis::{AxisFacts, AxisInfo, axis_info};
pub use range::{Range, Ranges, ranges};
pub use uses::{Depths, UseCounts};
