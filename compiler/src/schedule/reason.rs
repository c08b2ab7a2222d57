//! Why a decision is not a faster one, as a value that can be put into words.
//!
//! No variant is called as a type of the language is: rustc writes out the path of a type in messages whose name is not unique.

use crate::dtype::DType;
use crate::tile::{DotPrecision, OpId, Value};

/// Why a product is not done by some instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "a variant says what its fields are")]
pub enum DotReason {
    /// The device has no such instruction.
    NoInstruction,
    /// The instruction does not take these elements, or not in this precision.
    Elements(DType, DotPrecision),
    /// It takes warps of 32 lanes.
    Lanes(u32),
    /// It takes groups of four warps.
    Warps(u32),
    /// It takes at least so many rows.
    Rows { found: usize, least: usize },
    /// It takes at least so many columns.
    Columns { found: usize, least: usize },
    /// It takes at least so many terms of each sum.
    Depth { found: usize, least: usize },
    /// There are more groups of warps than rows for them, and too few columns for the others.
    Groups { groups: u32, rows: usize, columns: usize },
    /// Its result becomes an operand of another product, or it takes one's, and that one cannot be done so.
    Chain(OpId),
}

/// Why a load in a loop is not started rounds ahead of its use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "a variant says what its fields are")]
pub enum AheadReason {
    /// `num_stages` is 1.
    OneStage,
    /// The device does not copy to shared memory while it computes.
    NoCopies,
    /// It is in a `while` loop, of which no round is known before it begins.
    While,
    /// It is inside of an `if`, of which is not known ahead if it happens.
    Branch,
    /// What it reads outside of its mask or view is not 0.
    Padding,
    /// It reads fewer than 4 bytes at a time.
    Bytes(usize),
    /// Its tile is smaller than the program: several threads would copy the same.
    Repeated,
    /// Neighbouring elements are not neighbours in memory.
    Scattered,
    /// Nothing uses it.
    Unused,
    /// This op uses it, too, or (`false`) no product does.
    Use(OpId, bool),
    /// The product that uses it takes its operands from registers.
    Fma(OpId),
    /// It is what this product adds to.
    Accumulator(OpId),
    /// The loop stores here, perhaps to the same memory.
    Store(OpId),
    /// Its address takes what this op gives, which is not computed ahead.
    Address(OpId),
    /// Its address is carried from round to round in another layout than it is used in.
    Carried,
}

/// Why an access to memory moves fewer than 16 bytes at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "a variant says what its fields are")]
pub enum WidthReason {
    /// Neighbouring elements are not known to be neighbours in memory.
    Scattered,
    /// No dimension of the view is known to be contiguous.
    NoUnitStride,
    /// Only runs of so many elements are known to be consecutive.
    Run(u64),
    /// Addresses are known to be multiples of so many bytes only.
    Alignment(u64),
    /// The mask is known to be the same for only so many elements.
    Mask(u64),
    /// The extent of this dimension of the view is known to be a multiple of so much only.
    Extent { dim: usize, value: Value, divisor: u64 },
    /// So is its stride.
    Stride { dim: usize, value: Value, divisor: u64 },
    /// So is where the tile begins.
    Begin { dim: usize, divisor: u64 },
    /// The tile has so few elements along the contiguous dimension.
    Short(usize),
    /// The program has more threads than such pieces.
    Threads(u32),
}
