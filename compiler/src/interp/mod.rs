//! The interpreter of the Tile IR: the meaning of every op, and the embedded `cpu` device.
//!
//! **In**: a [`crate::tile::Function`] that obeys the rules of the IR, the values of its flattened parameters
//! ([`ArgValue`]), the memory it may touch ([`Memory`]) and a grid. **Out**: that memory, as the kernel leaves it, or an
//! error that says which access of which program was wrong. **Holds**: no access leaves the given memory, whatever the IR;
//! the same inputs give the same bits with any number of threads (programs that race in memory aside).
//!
//! | file | purpose |
//! |---|---|
//! | [`scalar`] | what each elementwise op means for one element; also used by constant folding |
//! | `elementwise`, `reduce`, `dot`, `shape` | the same for whole tiles, as typed loops that vectorise |
//! | `value` | slots: a tile is one number, a formula, or a buffer of elements |
//! | `program` | preparation: the loop of each op, the slot of each value |
//! | `exec` | one program: the loop over instructions, control flow |
//! | `access` | loads and stores, cut into runs of consecutive addresses |
//! | `memory` | the check of every access against the memory given |
//! | `races` | the check that no program depends on another of the same launch |
//! | `launch`, `watch` | all programs of a grid, in parallel; the end of those that do not end by themselves |
//!
//! Where the IR leaves freedom: reductions combine in the fixed order that `reduce` documents; `dot` takes tf32 for full
//! `f32`; elementary functions are those of the platform's math library, except `erf`, which is the crate libm's.

mod access;
mod dot;
mod elementwise;
mod exec;
mod launch;
mod memory;
mod program;
mod races;
mod reduce;
pub mod scalar;
mod shape;
#[cfg(test)]
mod tests;
mod value;
mod watch;

pub use launch::ArgValue;
pub use memory::{MemRegion, Memory};
pub use program::Program;
