//! The Thread IR: what one thread of a program does.
//!
//! **In**: built by [`crate::lower`] through [`Builder`].
//! **Out**: a [`Function`] that the emitters of [`crate::target`] print and [`crate::sim`] executes.
//! **Holds**: scalar SSA in structured control flow; every op exists on the target it was lowered for, so that an
//! emitter makes no decision. A program is run by [`Function::threads`] threads; thread `t` is lane `t % warp_width` of
//! warp `t / warp_width`. Conditions of `if` and loops that contain a barrier, a shuffle or a warp-wide op are
//! the same in all threads of the program.
//!
//! Registers have five types ([`Ty`]). Narrower numbers live in an `I32`: 8 and 16-bit loads zero-extend, stores take the
//! low bits, and the lowering says when to sign-extend. `f16`/`bf16` exist as bits only; arithmetic is `F32` or `F64`.

pub mod builder;
pub mod dce;
pub mod eval;
pub mod function;
#[cfg(test)]
pub(crate) mod machine;
pub mod ops;
pub mod order;
pub mod parse;
pub mod print;
mod syntax;
pub mod table;
pub mod verify;
mod widened;

pub use builder::Builder;
pub use function::{
    AbiParam, AbiTy, Block, BlockData, Function, InstData, InstId, Shared, SharedBuf, Value, ValueData,
};
pub use ops::{Access, Cmp, Conv, FBin, FUn, IBin, MmaKind, Op, Shuffle, Special, Ty, WgmmaLeft, WgmmaMatrix};
pub use parse::parse;
pub use verify::verify;
