//! The memory a kernel writes: kept safe while configurations are tried, and compared.
//!
//! **In**: a launch on an [`Arena`]'s copies. **Out**: for each piece of memory it may write, the way to bring it to a known
//! state before a run: the original is never written, and is what the copy is put back from.

use crate::arena::Arena;
use std::sync::Arc;
use tilewright_runtime::{DType, Error, Launch, Memory, Result};

/// Bytes that outputs are filled with before a run. Two different ones tell what the reference configuration leaves
/// unwritten; candidates get the one that is NaN in every float type.
pub const POISONS: [u8; 2] = [0xA5, 0x5A];
/// The poison for candidates.
pub const CANDIDATE_POISON: u8 = 0xFF;

/// One piece of written memory.
#[derive(Debug)]
pub struct Output {
    /// The parameter's name.
    pub name: &'static str,
    /// Its element type.
    pub dtype: DType,
    memory: Arc<Memory>,
    at: u64,
    bytes: u64,
    saved: Arc<Memory>,
    saved_at: u64,
    /// Is it only written, so that what it holds before a run cannot matter?
    pub only_written: bool,
}

/// All memory a launch writes.
#[derive(Debug)]
pub struct Outputs(pub Vec<Output>);

impl Outputs {
    /// The pieces that a launch on the arena's copies may write.
    ///
    /// # Errors
    /// If it is a launch on other memory.
    pub fn of(launch: &Launch<'_>, arena: &Arena) -> Result<Self> {
        let reach: Vec<_> = launch.reach().filter(|r| !r.bytes.is_empty()).collect();
        let overlaps = |a: &std::ops::Range<u64>, b: &std::ops::Range<u64>| a.start < b.end && b.start < a.end;
        // Pieces that overlap become one, so that restoring one never undoes another.
        let mut pieces: Vec<(&str, &Arc<Memory>, std::ops::Range<u64>, DType)> = Vec::new();
        let mut names = Vec::new();
        for r in reach.iter().filter(|r| r.access.writes()) {
            let mut range = r.bytes.clone();
            while let Some(i) = pieces.iter().position(|p| Arc::ptr_eq(p.1, r.memory) && overlaps(&p.2, &range)) {
                let p = pieces.swap_remove(i);
                names.swap_remove(i);
                range = range.start.min(p.2.start)..range.end.max(p.2.end);
            }
            pieces.push((r.name, r.memory, range, r.dtype));
            names.push(r.name);
        }
        let mut outputs = Vec::new();
        for ((_, memory, range, dtype), name) in pieces.into_iter().zip(names) {
            let read = |r: &&tilewright_runtime::Reach<'_>| {
                r.access.reads() && Arc::ptr_eq(r.memory, memory) && overlaps(&r.bytes, &range)
            };
            let only_written = !reach.iter().any(|r| read(&r));
            let bytes = range.end - range.start;
            let origin = arena.origin(memory, range.start);
            let (saved, saved_at) = origin.ok_or_else(|| Error::View(format!("`{name}` is no copy of the arena's")))?;
            let (memory, saved, at) = (memory.clone(), saved.clone(), range.start);
            outputs.push(Output { name, dtype, memory, at, bytes, saved, saved_at, only_written });
        }
        Ok(Self(outputs))
    }

    /// Where they are.
    pub fn pieces(&self) -> Vec<(Arc<Memory>, std::ops::Range<u64>)> {
        self.0.iter().map(|o| (o.memory.clone(), o.at..o.at + o.bytes)).collect()
    }

    /// Makes ready for a run: what is only written is poisoned, what is read too is put back.
    ///
    /// # Errors
    /// What the driver says.
    pub fn ready(&self, poison: u8) -> Result<()> {
        self.0
            .iter()
            .try_for_each(|o| if o.only_written { o.memory.fill_range(o.at, o.bytes, poison) } else { o.restore() })
    }

    /// Puts back what is read and written, so that repeated runs all start from the same values.
    ///
    /// # Errors
    /// What the driver says.
    pub fn rewind(&self) -> Result<()> {
        self.0.iter().filter(|o| !o.only_written).try_for_each(Output::restore)
    }

    /// Does any run change what the next one reads?
    pub fn in_place(&self) -> bool {
        self.0.iter().any(|o| !o.only_written)
    }

    /// What the pieces hold now.
    ///
    /// # Errors
    /// What the driver says, faults of the run among it.
    pub fn read(&self) -> Result<Vec<Vec<u8>>> {
        self.0
            .iter()
            .map(|o| {
                let mut host = vec![0; o.bytes as usize];
                o.memory.read_bytes(o.at, &mut host)?;
                Ok(host)
            })
            .collect()
    }
}

impl Output {
    fn restore(&self) -> Result<()> {
        self.memory.copy_range(self.at, &self.saved, self.saved_at, self.bytes)
    }
}
