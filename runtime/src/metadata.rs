//! What is known of a compiled kernel.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What a kernel takes of the device, as far as its driver or assembler tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Resources {
    /// Registers of one thread.
    pub registers: Option<u32>,
    /// Bytes of registers spilled to memory, of one thread: stores and loads together.
    pub spill_bytes: Option<u32>,
    /// Bytes of local (private) memory of one thread.
    pub local_bytes: Option<u32>,
    /// Bytes of code on the device.
    pub code_bytes: Option<u64>,
}

impl Resources {
    /// These facts, and `other`'s where these say nothing.
    #[must_use]
    pub(crate) fn or(self, other: Resources) -> Resources {
        Resources {
            registers: self.registers.or(other.registers),
            spill_bytes: self.spill_bytes.or(other.spill_bytes),
            local_bytes: self.local_bytes.or(other.local_bytes),
            code_bytes: self.code_bytes.or(other.code_bytes),
        }
    }
}

/// Where compiled code came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CacheOutcome {
    /// Read from the cache on disk.
    Hit,
    /// Compiled, and written to the cache on disk if it is writable.
    Miss,
    /// The cache is off, or the device interprets Tile IR.
    Off,
}

/// What is known of a compiled kernel.
#[derive(Clone, PartialEq, Debug)]
pub struct Metadata {
    /// The kernel's name.
    pub name: String,
    /// The device's name.
    pub device: String,
    /// Threads of one program; 1 on the CPU device.
    pub threads: u32,
    /// Bytes of shared memory of one program.
    pub shared_bytes: u32,
    /// What the kernel takes of the device.
    pub resources: Resources,
    /// Time to build the Tile IR.
    pub build_time: Duration,
    /// Time from Tile IR to code: Tilewright's own part. Zero on a cache hit.
    pub compile_time: Duration,
    /// Time the driver, or an assembler in its place, took to assemble and load the code.
    pub driver_time: Duration,
    /// Where the code came from.
    pub cache: CacheOutcome,
}
