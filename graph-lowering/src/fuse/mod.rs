//! Fusion: which nodes share a kernel.
//!
//! **In**: a graph without composite primitives. **Out**: a [`Plan`]: groups of nodes, each of which becomes one kernel, in an
//! order in which they can run, and which node's values each stores. **Holds**: every node that a kernel reads from memory is
//! an input or stored by an earlier kernel; a group has no path to itself through other groups.
//!
//! Views and made-up tensors belong to no group: they are coordinates ([`map`]) and arithmetic in whichever kernel needs them.
//! Groups grow in the graph's order: a node joins the group of one of its operands if its elements lie in the same space of
//! loop variables and it finds its operands there at its own coordinates; groups that meet in a node are merged.
//!
//! | file | purpose |
//! |---|---|
//! | [`map`] | coordinates as affine functions |
//! | [`group`] | the spaces of groups; what may join |
//! | `operands` | where a group's nodes find their operands |
//! | `check` | is a plan from a file one of this graph? |
//! | `cost` | what is computed again rather than stored |
//! | [`kernel`] | a group as a kernel: loop variables, tiles, launch geometry |
//! | [`varying`] | extents and other numbers that a kernel takes as parameters |
//! | `emit` | the kernel's Tile IR |
//! | `scatter` | that of sums into rows of a table |
//! | `attention` | attention and its gradients: groups of their own, kernels of the library |
//! | [`source`] | the same as `#[kernel]` source |
//! | [`tune`] | tiles chosen by measuring |

pub(crate) mod attention;
mod check;
mod cost;
mod emit;
pub mod group;
pub mod kernel;
pub mod map;
mod operands;
mod scatter;
pub mod source;
pub mod tune;
pub mod varying;

pub(crate) use check::check;
pub use group::{Group, Limits, Plan, Store, plan};
