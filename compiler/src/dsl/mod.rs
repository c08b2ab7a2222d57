//! The language: typed handles that build Tile IR while a `#[kernel]` function runs.
//!
//! **In**: a function rewritten by `#[kernel]` (crate `tilewright-dsl-macros`), its comptime arguments and a
//! [`Specialization`]. **Out**: a [`crate::tile::Function`], or [`crate::Error::Kernel`] with every mistake at its place.
//!
//! | file | what |
//! |---|---|
//! | [`def`] | what a kernel is to the runtime: name, identity, how to build it |
//! | [`element`] | which host types are elements, and the traits `Num`, `Int`, `Float` |
//! | [`tile`], [`ops`] | tiles, their operators and the functions on them |
//! | [`ptr`], [`view`] | memory: pointers with masks, and views |
//! | [`control`], [`carry`], [`watch`] | device loops and branches, and the state they change |
//! | [`logic`] | comparisons and `&&`, `||`, which serve host and device values |
//! | `context` | the build that is going on: mistakes, poison, which value may be used where |
//! | [`mod@comptime`] | `#[comptime]` arguments |

pub mod carry;
pub mod comptime;
mod context;
pub mod control;
pub mod def;
pub mod element;
pub mod logic;
pub mod ops;
pub mod ptr;
pub mod tile;
pub mod view;
pub mod watch;

pub use crate::error::Loc;
pub use carry::Carry;
pub use comptime::Comptime;
pub use context::{Params, build};
pub use control::{DeviceRange, range, unroll};
pub use def::{ComptimeValue, KernelDef, KernelId, Specialization};
pub use element::{Bits, DotElement, Element, Float, Int, Num};
pub use half::{bf16, f16};
pub use logic::comptime;
pub use ops::*;
pub use ptr::{Offset, Ptr};
pub use tile::{Operand, Scalar, Tile};

pub use tilewright_dsl_macros::{Carry, Comptime, autotune, device_fn, kernel};
pub use view::{Access, In, InOut, KernelParam, Out, ViewShape};
