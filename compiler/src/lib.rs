//! The Tilewright compiler: from a block program to the code of a device.
//!
//! The stages, in order; each folder's `mod.rs` says what it takes, what it gives and what holds after it.
//!
//! | stage | takes | gives |
//! |---|---|---|
//! | [`dsl`] | a running `#[kernel]` function | Tile IR |
//! | [`tile`] | | the Tile IR: entities, op table, builder, printer, parser, verifier |
//! | [`interp`] | Tile IR and arguments | results: the meaning of every op |
//! | [`analysis`], [`passes`] | Tile IR | facts about Tile IR; better Tile IR with the same meaning |
//! | [`layout`] | | the algebra of distributed and shared-memory layouts |
//! | [`schedule`] | Tile IR and what the target can do | every decision of the lowering, as a value |
//! | [`lower`] | Tile IR and a [`target::Caps`] | Thread IR |
//! | [`thread`] | | the Thread IR: what one thread does |
//! | [`sim`] | Thread IR and arguments | results, and reports of races and bad accesses |
//! | [`target`] | Thread IR | PTX, SPIR-V or OpenCL C |

pub mod analysis;
pub mod dsl;
pub mod dtype;
pub mod entity;
pub mod error;
pub mod interp;
pub mod layout;
pub mod lower;
mod names;
pub mod passes;
pub mod pipeline;
pub mod schedule;
pub mod sim;
pub mod target;
mod text;
pub mod thread;
pub mod tile;

pub use dtype::DType;
pub use error::{Error, Loc, Result};

/// Changes whenever this crate's sources change: part of the address of cached code.
pub const CODEGEN_FINGERPRINT: &str = env!("TILEWRIGHT_CODEGEN_FINGERPRINT");
