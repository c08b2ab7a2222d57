//! What became of a compiled function.

use std::fmt;
use std::time::Duration;

/// What was captured, and what it became.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Explanation {
    /// Graphs captured so far.
    pub graphs: usize,
    /// Primitives of the last graph.
    pub primitives: usize,
    /// Kernels of the last graph: launches of one call.
    pub kernels: usize,
    /// The device of the last graph.
    pub device: String,
    /// Bytes that the last graph's kernels read and write.
    pub bytes: u64,
    /// Most bytes of results and intermediate tensors of the last graph alive at once.
    pub peak_bytes: u64,
    /// How long the last graph took to capture.
    pub capture_time: Duration,
    /// How long it took to improve, to cut into kernels and to generate them; their compilation is not part of it.
    pub plan_time: Duration,
    /// The kernels of the last graph, in order.
    pub groups: Vec<KernelInfo>,
    /// Why primitives of the last graph did not share a kernel.
    pub refusals: Vec<String>,
    /// What each graph was captured for.
    pub guards: Vec<String>,
    /// Why graphs after the first were captured.
    pub recompiles: Vec<String>,
    /// Why functions could not be captured.
    pub breaks: Vec<String>,
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
            "{} graphs; the last: {} primitives in {} kernels on {}, {} bytes moved",
            self.graphs, self.primitives, self.kernels, self.device, self.bytes
        )?;
        for (i, k) in self.groups.iter().enumerate() {
            writeln!(f, "kernel {i}: {} ({} programs)", k.name, k.programs)?;
            for p in &k.primitives {
                writeln!(f, "    {p}")?;
            }
        }
        for (title, lines) in [
            ("not fused", &self.refusals),
            ("guards", &self.guards),
            ("recompiled for", &self.recompiles),
            ("not captured", &self.breaks),
        ] {
            for line in lines {
                writeln!(f, "{title}: {line}")?;
            }
        }
        Ok(())
    }
}
