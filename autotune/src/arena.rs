//! The memory that configurations run on: copies of the arguments' memory with guard zones around them.
//!
//! **In**: launches. **Out**: the same launches on the copies ([`Arena::relocate`]). **Holds**: the memory of the launches
//! themselves is never written, whatever a configuration does, as far as it writes into the guard zones or inside; what of
//! the copies no configuration may write is looked at after each check ([`Arena::damage`]).

use crate::failure::{Failure, FailureKind};
use std::ops::Range;
use std::sync::Arc;
use tilewright_runtime::{Device, Error, Launch, Memory, Reach, Result};

/// Bytes of each guard zone. A tile that begins inside its argument and ends outside has at most some hundred kilobytes; what
/// writes further away ends its process, sooner or later.
pub const GUARD: u64 = 1 << 20;
/// What guard zones are filled with: no value that kernels tend to write.
const GUARD_BYTE: u8 = 0xC9;
/// Addresses keep their remainder of this, for kernels are specialised for the alignment of their arguments.
const ALIGN: u64 = 256;
/// Bytes looked at at once.
const CHUNK: u64 = 32 << 20;

/// A copy of a piece of memory.
struct Copy {
    name: &'static str,
    origin: Arc<Memory>,
    /// The bytes of the origin.
    bytes: Range<u64>,
    memory: Arc<Memory>,
    /// Where in `memory` the copy is, behind the first guard zone.
    at: u64,
    /// What no configuration may change, with a digest of what is there. Without it: may anything inside be written?
    watched: Vec<(Range<u64>, u64)>,
    written: bool,
}

/// Copies of all memory that the launches of one tuning reach.
pub struct Arena {
    device: Device,
    copies: Vec<Copy>,
}

impl Arena {
    /// No memory yet.
    pub fn new(device: &Device) -> Self {
        Self { device: device.clone(), copies: Vec::new() }
    }

    /// Makes copies of what the launch reaches, where there are none yet.
    ///
    /// # Errors
    /// If there is not enough memory for them; [`Error::View`] for a launch that reaches another part of memory that
    /// other launches write.
    pub fn cover(&mut self, launch: &Launch<'_>) -> Result<()> {
        // Pieces that overlap become one.
        let mut pieces: Vec<(&'static str, Arc<Memory>, Range<u64>, bool)> = Vec::new();
        for r in launch.reach() {
            let (mut range, mut written) = (r.bytes.clone(), r.access.writes());
            if self.find(&r).is_some() {
                continue;
            }
            let same = |p: &(_, Arc<Memory>, Range<u64>, bool), range: &Range<u64>| {
                Arc::ptr_eq(&p.1, r.memory) && p.2.start < range.end && range.start < p.2.end
            };
            while let Some(i) = pieces.iter().position(|p| same(p, &range)) {
                let p = pieces.swap_remove(i);
                range = range.start.min(p.2.start)..range.end.max(p.2.end);
                written |= p.3;
            }
            pieces.push((r.name, r.memory.clone(), range, written));
        }
        for (name, origin, bytes, written) in pieces {
            let apart =
                |c: &Copy| !Arc::ptr_eq(&c.origin, &origin) || c.bytes.start >= bytes.end || bytes.start >= c.bytes.end;
            if !self.copies.iter().all(apart) {
                return Err(Error::View(format!("`{name}` is other memory than the reference configuration's")));
            }
            let copy = self.copy(name, origin, bytes, written)?;
            self.copies.push(copy);
        }
        Ok(())
    }

    fn copy(&self, name: &'static str, origin: Arc<Memory>, bytes: Range<u64>, written: bool) -> Result<Copy> {
        let at = GUARD + bytes.start % ALIGN;
        let length = bytes.end - bytes.start;
        let memory = self.device.alloc::<u8>((at + length + GUARD) as usize)?.memory().clone();
        let mut copy = Copy { name, origin, bytes, memory, at, watched: Vec::new(), written };
        copy.fill()?;
        copy.watch(&[])?;
        Ok(copy)
    }

    /// Says what configurations may write: these pieces of the copies. All else is watched.
    ///
    /// # Errors
    /// What the driver says.
    pub fn watch(&mut self, pieces: &[(Arc<Memory>, Range<u64>)]) -> Result<()> {
        for copy in &mut self.copies {
            let own = pieces.iter().filter(|(memory, _)| Arc::ptr_eq(memory, &copy.memory));
            let own: Vec<Range<u64>> = own.map(|(_, range)| range.clone()).collect();
            copy.watch(&own)?;
        }
        Ok(())
    }

    fn find(&self, r: &Reach<'_>) -> Option<&Copy> {
        let inside = |c: &&Copy| {
            Arc::ptr_eq(&c.origin, r.memory) && c.bytes.start <= r.bytes.start && r.bytes.end <= c.bytes.end
        };
        self.copies.iter().find(inside)
    }

    /// The launch on the copies.
    ///
    /// # Errors
    /// [`Error::View`] if it was not [covered](Arena::cover).
    pub fn relocate<'b>(&'b self, launch: &Launch<'_>) -> Result<Launch<'b>> {
        launch.relocated(|r| {
            let copy = self.find(r).ok_or_else(|| Error::View(format!("`{}` has no copy", r.name)))?;
            Ok((&copy.memory, copy.at + (r.bytes.start - copy.bytes.start)))
        })
    }

    /// The memory that a piece of a copy was made from, and where in it.
    pub fn origin(&self, memory: &Arc<Memory>, at: u64) -> Option<(&Arc<Memory>, u64)> {
        let copy = self.copies.iter().find(|c| Arc::ptr_eq(&c.memory, memory))?;
        Some((&copy.origin, copy.bytes.start + at.checked_sub(copy.at)?))
    }

    /// What the runs since the last look have changed that they must not, if anything; it is put right again.
    ///
    /// # Errors
    /// What the driver says.
    pub fn damage(&self) -> Result<Option<Failure>> {
        let mut first = None;
        for copy in &self.copies {
            let mut whole = true;
            for (range, digest) in &copy.watched {
                let now = copy.digest(range)?;
                if now != *digest {
                    whole = false;
                    let failure = copy.failure(range);
                    first.get_or_insert(failure);
                }
            }
            if !whole {
                copy.fill()?;
            }
        }
        Ok(first)
    }
}

impl Copy {
    fn length(&self) -> u64 {
        self.bytes.end - self.bytes.start
    }

    /// Brings guard zones and copy to their first state.
    fn fill(&self) -> Result<()> {
        let end = self.at + self.length();
        self.memory.fill_range(0, self.at, GUARD_BYTE)?;
        self.memory.fill_range(end, self.memory.bytes() - end, GUARD_BYTE)?;
        self.memory.copy_range(self.at, &self.origin, self.bytes.start, self.length())
    }

    fn watch(&mut self, pieces: &[Range<u64>]) -> Result<()> {
        let end = self.at + self.length();
        let mut ranges = vec![0..self.at, end..self.memory.bytes()];
        // Memory that only some configurations have is written as they like.
        if !(pieces.is_empty() && self.written) {
            let mut pieces = pieces.to_vec();
            pieces.sort_by_key(|p| p.start);
            let mut from = self.at;
            for piece in pieces {
                ranges.push(from..piece.start.max(from));
                from = from.max(piece.end);
            }
            ranges.push(from..end.max(from));
        }
        ranges.retain(|r| !r.is_empty());
        self.watched = ranges.into_iter().map(|r| Ok((r.clone(), self.digest(&r)?))).collect::<Result<_>>()?;
        Ok(())
    }

    fn digest(&self, range: &Range<u64>) -> Result<u64> {
        let mut digest = 0xcbf2_9ce4_8422_2325;
        let mut at = range.start;
        let mut host = Vec::new();
        while at < range.end {
            let n = (range.end - at).min(CHUNK);
            host.resize(n as usize, 0);
            self.memory.read_bytes(at, &mut host)?;
            digest = mix(digest, &host);
            at += n;
        }
        Ok(digest)
    }

    fn failure(&self, range: &Range<u64>) -> Failure {
        let name = self.name;
        if range.end <= self.at || range.start >= self.at + self.length() {
            let side = if range.end <= self.at { "before" } else { "behind" };
            return Failure::new(
                FailureKind::Launch,
                format!("it writes out of bounds, {side} the memory of `{name}`"),
            );
        }
        let message = format!("it changes `{name}` where the reference configuration has nothing to write");
        Failure::new(FailureKind::WrongResult, message)
    }
}

/// A fast digest of bytes; nobody chooses them to collide.
fn mix(mut digest: u64, bytes: &[u8]) -> u64 {
    let (words, tail) = bytes.as_chunks::<8>();
    let add = |h: u64, word: u64| (h.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    for word in words {
        digest = add(digest, u64::from_le_bytes(*word));
    }
    tail.iter().fold(digest, |h, &b| add(h, b.into()))
}
