//! The Tile IR: one program of a kernel, as operations on whole tiles.
//!
//! **In**: built by [`crate::dsl`] (typed handles), by hand through [`Builder`], or parsed from text.
//! **Out**: a [`Function`], which the passes improve, the interpreter executes and the lowering turns into Thread IR.
//! **Holds**: a function that passes [`verify()`] is in SSA form, every op's operands and results have the types that
//! [`ops`] states, regions are structured and end in their terminator ([`mod@verify`] lists all rules). [`mod@print`] and
//! [`mod@parse`] are inverse to each other.

pub mod builder;
mod carried;
pub mod function;
pub mod generate;
pub mod ops;
pub mod parse;
pub mod print;
pub mod rules;
pub mod table;
pub mod types;
pub mod verify;

pub use builder::{Builder, Built, ViewValue};
pub use function::{
    Function, OpData, OpId, Param, ParamHint, ParamKind, Region, RegionData, Value, ValueData, ValueDef,
};
pub use ops::{BinaryOp, Cmp, Constant, DotPrecision, Op, ReduceOp, UnaryOp};
pub use parse::parse;
pub use print::print_with_locs;
pub use types::{Elem, Shape, TileType};
pub use verify::{print_errors, verify};
