//! Counters of a device.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A snapshot of a device's counters since it was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Kernel variants made ready: by compilation or from the cache on disk.
    pub variants: u64,
    /// Kernels compiled from Tile IR.
    pub compilations: u64,
    /// Kernels whose code came from the cache on disk.
    pub disk_hits: u64,
    /// Entries of the cache on disk that were damaged or foreign, and taken as absent.
    pub disk_corrupt: u64,
    /// Writes to the cache on disk that failed; launches work on without it.
    pub disk_write_failures: u64,
    /// Launches, those of an empty grid not counted.
    pub launches: u64,
    /// Submissions of device graphs, whose launches are counted as launches too.
    pub graph_launches: u64,
    /// Bytes in buffers now.
    pub bytes_in_use: u64,
    /// Most bytes in buffers at once.
    pub bytes_peak: u64,
    /// Buffers allocated.
    pub allocations: u64,
    /// Buffers freed.
    pub frees: u64,
}

/// The counters themselves.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub variants: AtomicU64,
    pub compilations: AtomicU64,
    pub disk_hits: AtomicU64,
    pub disk_corrupt: AtomicU64,
    pub disk_write_failures: AtomicU64,
    pub launches: AtomicU64,
    pub graph_launches: AtomicU64,
    bytes_in_use: AtomicU64,
    bytes_peak: AtomicU64,
    allocations: AtomicU64,
    frees: AtomicU64,
}

impl Counters {
    pub fn allocated(&self, bytes: u64) {
        self.allocations.fetch_add(1, Relaxed);
        let now = self.bytes_in_use.fetch_add(bytes, Relaxed) + bytes;
        self.bytes_peak.fetch_max(now, Relaxed);
    }

    pub fn freed(&self, bytes: u64) {
        self.frees.fetch_add(1, Relaxed);
        self.bytes_in_use.fetch_sub(bytes, Relaxed);
    }

    pub fn snapshot(&self) -> Stats {
        Stats {
            variants: self.variants.load(Relaxed),
            compilations: self.compilations.load(Relaxed),
            disk_hits: self.disk_hits.load(Relaxed),
            disk_corrupt: self.disk_corrupt.load(Relaxed),
            disk_write_failures: self.disk_write_failures.load(Relaxed),
            launches: self.launches.load(Relaxed),
            graph_launches: self.graph_launches.load(Relaxed),
            bytes_in_use: self.bytes_in_use.load(Relaxed),
            bytes_peak: self.bytes_peak.load(Relaxed),
            allocations: self.allocations.load(Relaxed),
            frees: self.frees.load(Relaxed),
        }
    }
}
