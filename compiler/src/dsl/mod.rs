//! The language: typed handles that build Tile IR while a `#[kernel]` function runs.

pub mod def;

pub use def::{ComptimeValue, KernelDef, KernelId, Specialization};
