//! What became of a compiled function.

use std::fmt;
use std::time::Duration;

/// What was captured, and what it became.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Explanation {
    /// Programs made so far, one for each graph but those that differ in numbers alone.
    pub graphs: usize,
    /// How often the function was captured.
    pub captures: usize,
    /// How many of these run as a program that was there, with other numbers or other captured tensors.
    pub renumbered: usize,
    /// Kernels generated for these graphs.
    pub generated: usize,
    /// Kernels of these graphs that had been generated for an earlier one.
    pub reused: usize,
    /// Which extents of the last arguments are parameters of kernels. Equal ones have one name.
    pub dynamic: Vec<String>,
    /// Primitives of the last graph.
    pub primitives: usize,
    /// Kernels of the last graph: launches of one call.
    pub kernels: usize,
    /// The device of the last graph.
    pub device: String,
    /// Bytes that the last graph's kernels read and write.
    pub bytes: u64,
    /// What the last graph is made fast for: see [`super::Mode`].
    pub mode: &'static str,
    /// Memory for the values between the kernels of the last graph.
    pub memory: MemoryUse,
    /// What tuning chose for the kernels of the last graph; empty if they were not tuned.
    pub tuned: Vec<String>,
    /// Most bytes of results and intermediate tensors of the last graph alive at once.
    pub peak_bytes: u64,
    /// How long the last graph took to capture.
    pub capture_time: Duration,
    /// How long it took to improve, to cut into kernels and to generate them; their compilation is not part of it.
    pub plan_time: Duration,
    /// What the cache of graphs on disk did for the last graph.
    pub graph_cache: GraphCacheUse,
    /// Graphs that were read from it.
    pub cached_graphs: usize,
    /// The kernels of the last graph, in order.
    pub groups: Vec<KernelInfo>,
    /// Why primitives of the last graph did not share a kernel.
    pub refusals: Vec<String>,
    /// What each graph was captured for; the last 64.
    pub guards: Vec<String>,
    /// Why graphs after the first were captured; the last 64.
    pub recompiles: Vec<String>,
    /// Where a function was found to use other tensors or numbers of its own than before: it is captured at every call since.
    pub changes: Vec<String>,
    /// Why functions could not be captured.
    pub breaks: Vec<String>,
}

/// What the cache of graphs on disk did for a graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum GraphCacheUse {
    /// Nothing: it is off, the graph is small, or the backend makes no plans.
    #[default]
    Unused,
    /// The simplified graph and its plan were read.
    Hit,
    /// They were made, and written.
    Stored,
    /// They were made, and could not be written.
    NotStored,
}

impl fmt::Display for GraphCacheUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            GraphCacheUse::Unused => "unused",
            GraphCacheUse::Hit => "hit",
            GraphCacheUse::Stored => "stored",
            GraphCacheUse::NotStored => "could not be written",
        })
    }
}

/// Bytes of memory for what one kernel leaves to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemoryUse {
    /// As planned: values that are not needed at the same time share memory.
    pub planned: usize,
    /// If each value had its own.
    pub separate: usize,
    /// The most that is needed at the same time.
    pub least: usize,
}

/// One generated kernel.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct KernelInfo {
    /// Its name.
    pub name: String,
    /// The primitives in it.
    pub primitives: Vec<String>,
    /// Programs of its grid.
    pub programs: usize,
    /// Bytes it reads and writes.
    pub bytes: u64,
    /// Operations on elements.
    pub flops: u64,
    /// Its `#[kernel]` source.
    pub source: String,
    /// Its Tile IR.
    pub ir: String,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} graphs, {} kernels generated, {} reused; the last: {} primitives in {} kernels on {}, {} bytes moved",
            self.graphs, self.generated, self.reused, self.primitives, self.kernels, self.device, self.bytes
        )?;
        if self.captures > self.graphs {
            writeln!(f, "captured {} times, {} of them for other numbers", self.captures, self.renumbered)?;
        }
        let m = self.memory;
        writeln!(
            f,
            "mode {}; values between kernels in {} bytes ({} if each had its own, {} at the same time)",
            self.mode, m.planned, m.separate, m.least
        )?;
        if self.graph_cache != GraphCacheUse::Unused {
            writeln!(f, "graph cache: {}", self.graph_cache)?;
        }
        for (i, k) in self.groups.iter().enumerate() {
            writeln!(f, "kernel {i}: {} ({} programs)", k.name, k.programs)?;
            for p in &k.primitives {
                writeln!(f, "    {p}")?;
            }
        }
        for (title, lines) in [
            ("tuned", &self.tuned),
            ("dynamic", &self.dynamic),
            ("not fused", &self.refusals),
            ("guards", &self.guards),
            ("recompiled for", &self.recompiles),
            ("captured at every call", &self.changes),
            ("not captured", &self.breaks),
        ] {
            for line in lines {
                writeln!(f, "{title}: {line}")?;
            }
        }
        Ok(())
    }
}
