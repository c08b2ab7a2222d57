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

use crate::tile::{Function, Value};
use std::fmt::Write;

/// What is known of each value of a function, one a line in order of definition: for dumps and tests.
pub fn describe(func: &Function) -> String {
    let (axis, ranges, aliases) = (axis_info(func), ranges(func), aliases(func));
    let mut text = String::new();
    let mut line = |value: Value| {
        let ty = func.ty(value);
        let mut facts = vec![axis.of(value).to_string()];
        if let Some(range) = ranges.of(value).filter(|r| *r != Range::full(ty.dtype())) {
            facts.push(format!("range [{}, {}]", range.lo, range.hi));
        }
        if ty.elem.is_ptr() {
            let params = &func.regions[func.body].params;
            let roots = aliases.roots(value).iter().map(|&r| params[r as usize].to_string());
            facts.push(format!("from {}", roots.collect::<Vec<_>>().join(", ")));
        }
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{value}: {ty}: {}", facts.join(", "));
    };
    func.regions[func.body].params.iter().copied().for_each(&mut line);
    func.walk(func.body, &mut |op| {
        let inner = func.ops[op].regions.iter().flat_map(|&r| &func.regions[r].params);
        inner.chain(&func.ops[op].results).copied().for_each(&mut line);
    });
    text
}
