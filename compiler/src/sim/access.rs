//! Loads, stores and asynchronous copies.

use super::exec::{Machine, Mask};
use super::memory::Place;
use super::shadow::{Race, Touch};
use super::shared::{At, Wrong};
use crate::entity::Entity;
use crate::error::{Error, Result};
use crate::thread::{Access, InstData, InstId, Shared, Value};
use std::iter::once;

/// The little-endian number in up to 8 bytes.
pub(super) fn number(bytes: &[u8]) -> u64 {
    let mut b = [0; 8];
    b[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(b)
}

fn size(a: Access) -> usize {
    usize::from(a.bits / 8) * usize::from(a.n)
}

fn element(a: Access) -> usize {
    usize::from(a.bits / 8)
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Load,
    Store,
}

impl Machine<'_> {
    pub fn global_load(&mut self, id: InstId, inst: &InstData, a: Access, mask: &Mask) -> Result<()> {
        let mut results: Vec<_> = inst.results.iter().map(|&r| self.take(r)).collect();
        let guard = inst.operands.get(1).copied();
        let mut touched = Vec::new();
        for t in mask.threads() {
            if !self.holds(guard, t) {
                for (r, &other) in results.iter_mut().zip(&inst.operands[2..]) {
                    r[t] = self.reg(other)[t];
                }
                continue;
            }
            let address = self.address(inst.operands[0], a.offset, t);
            let place = self.touch_global(id, t, address, size(a), Kind::Load)?;
            let bytes = self.memory.at(place, size(a));
            for (r, b) in results.iter_mut().zip(bytes.chunks_exact(element(a))) {
                r[t] = number(b);
            }
            touched.push((t, address));
        }
        for (&r, bits) in inst.results.iter().zip(results) {
            self.put(r, bits);
        }
        self.count_global(&touched, size(a), Kind::Load);
        Ok(())
    }

    pub fn global_store(&mut self, id: InstId, inst: &InstData, a: Access, mask: &Mask) -> Result<()> {
        let n = usize::from(a.n);
        let guard = inst.operands.get(1 + n).copied();
        let mut touched = Vec::new();
        for t in mask.threads().filter(|&t| self.holds(guard, t)).collect::<Vec<_>>() {
            let address = self.address(inst.operands[0], a.offset, t);
            let place = self.touch_global(id, t, address, size(a), Kind::Store)?;
            let bytes = self.gather(&inst.operands[1..=n], t, element(a));
            self.memory.at_mut(place, size(a)).copy_from_slice(&bytes[..size(a)]);
            touched.push((t, address));
        }
        self.count_global(&touched, size(a), Kind::Store);
        Ok(())
    }

    pub fn shared_load(&mut self, id: InstId, inst: &InstData, buf: Shared, a: Access, mask: &Mask) -> Result<()> {
        let mut results: Vec<_> = inst.results.iter().map(|&r| self.take(r)).collect();
        let mut touched = Vec::new();
        for t in mask.threads() {
            let at = self.shared_at(id, (buf, inst.operands[0], a.offset), t, size(a))?;
            let now = self.now(t, id);
            match self.shared.read(at, size(a), now, &self.clock) {
                Ok(bytes) => {
                    for (r, b) in results.iter_mut().zip(bytes.chunks_exact(element(a))) {
                        r[t] = number(b);
                    }
                }
                Err(wrong) => return Err(self.shared_error(id, buf, t, wrong, "read")),
            }
            touched.push((t, at.address));
        }
        for (&r, bits) in inst.results.iter().zip(results) {
            self.put(r, bits);
        }
        self.count_shared(&touched, size(a), Kind::Load);
        Ok(())
    }

    pub fn shared_store(&mut self, id: InstId, inst: &InstData, buf: Shared, a: Access, mask: &Mask) -> Result<()> {
        let n = usize::from(a.n);
        let guard = inst.operands.get(1 + n).copied();
        let mut touched = Vec::new();
        for t in mask.threads().filter(|&t| self.holds(guard, t)).collect::<Vec<_>>() {
            let at = self.shared_at(id, (buf, inst.operands[0], a.offset), t, size(a))?;
            let bytes = self.gather(&inst.operands[1..=n], t, element(a));
            let now = self.now(t, id);
            if let Err(wrong) = self.shared.write(at, &bytes[..size(a)], now, &self.clock) {
                return Err(self.shared_error(id, buf, t, wrong, "written"));
            }
            touched.push((t, at.address));
        }
        self.count_shared(&touched, size(a), Kind::Store);
        Ok(())
    }

    pub fn cp_async(
        &mut self,
        id: InstId,
        inst: &InstData,
        buf: Shared,
        bytes: usize,
        (shared_offset, global_offset): (i32, i32),
        mask: &Mask,
    ) -> Result<()> {
        let guard = inst.operands.get(2).copied();
        let (mut from, mut to) = (Vec::new(), Vec::new());
        for t in mask.threads() {
            let at = self.shared_at(id, (buf, inst.operands[0], shared_offset), t, bytes)?;
            let mut data = [0; 16];
            if self.holds(guard, t) {
                let address = self.address(inst.operands[1], global_offset, t);
                let place = self.touch_global(id, t, address, bytes, Kind::Load)?;
                data[..bytes].copy_from_slice(self.memory.at(place, bytes));
                from.push((t, address));
            }
            let now = self.now(t, id);
            if let Err(wrong) = self.shared.start_copy(at, data, bytes, now, &self.clock) {
                return Err(self.shared_error(id, buf, t, wrong, "written"));
            }
            to.push((t, at.address));
        }
        self.report.async_copies += self.warps(to.iter().map(|&(t, _)| t)).len() as u64;
        self.count_global(&from, bytes, Kind::Load);
        self.count_shared(&to, bytes, Kind::Store);
        Ok(())
    }

    /// Where `len` bytes, aligned to as many, of a shared buffer are: at the thread's byte index plus an offset.
    pub fn shared_at(
        &self,
        id: InstId,
        (buf, byte, offset): (Shared, Value, i32),
        thread: usize,
        len: usize,
    ) -> Result<At> {
        let byte = i64::from(self.reg(byte)[thread] as u32 as i32) + i64::from(offset);
        self.shared
            .locate(buf, self.func.shared[buf], byte, len, len)
            .map_err(|wrong| self.shared_error(id, buf, thread, wrong, "touched"))
    }

    pub fn now(&self, thread: usize, id: InstId) -> Touch {
        self.clock.touch(thread, id.index() as u32)
    }

    pub fn count_shared_load(&mut self, touched: &[(usize, usize)], size: usize) {
        self.count_shared(touched, size, Kind::Load);
    }

    /// The error of a mistake in shared memory; `verb` says what this access does.
    pub fn shared_error(&self, id: InstId, buf: Shared, thread: usize, wrong: Wrong, verb: &str) -> Error {
        let what = match wrong {
            Wrong::Outside { byte, len } => {
                let (size, end) = (self.func.shared[buf].bytes, byte + len as i64);
                format!("shared access out of bounds: bytes {byte}..{end} of {buf}, which has {size} bytes")
            }
            Wrong::Unaligned { byte, align } => {
                let offset = self.func.shared[buf].offset;
                format!(
                    "unaligned shared access: byte {byte} of {buf} (which starts at {offset}), needs a multiple of {align}"
                )
            }
            Wrong::NeverWritten { byte } => format!("byte {byte} of {buf} is read before it is written"),
            Wrong::OtherBuffer { byte, writer } => {
                format!("byte {byte} of {buf} is read, but was last written as part of {writer}")
            }
            Wrong::InFlight { byte, thread: other, inst } => {
                let text = self.func.inst_text(InstId::new(inst as usize));
                format!(
                    "byte {byte} of {buf} is {verb} while an asynchronous copy into it is in flight, started by \
                     thread {other} in `{text}`"
                )
            }
            Wrong::InUse { byte } => {
                format!("byte {byte} of {buf} is {verb} while a tensor-core product that reads it is in flight")
            }
            Wrong::Unfenced { byte } => {
                format!(
                    "byte {byte} of {buf} is read by a tensor-core product, but no `async_proxy_fence` follows its write"
                )
            }
            Wrong::Race { byte, race } => self.race(&format!("byte {byte} of {buf}"), race, verb),
        };
        self.fail(id, &what, once(thread))
    }

    fn race(&self, byte: &str, race: Race, verb: &str) -> String {
        let earlier = if race.wrote { "wrote" } else { "read" };
        let (thread, text) = (race.earlier.thread, self.func.inst_text(InstId::new(race.earlier.inst as usize)));
        format!("data race: {byte} is {verb}, and thread {thread} {earlier} it without a barrier between, in `{text}`")
    }

    /// Checks a global access of `len` bytes, aligned to as many, and takes note of it; gives where it is.
    fn touch_global(&mut self, id: InstId, thread: usize, address: u64, len: usize, kind: Kind) -> Result<Place> {
        let name = if kind == Kind::Load { "load" } else { "store" };
        let place = match self.memory.locate(address, len) {
            Ok(place) => place,
            Err(outside) => {
                let what = format!("global {name} out of bounds: {outside}");
                return Err(self.fail(id, &what, once(thread)));
            }
        };
        if !address.is_multiple_of(len as u64) {
            let what = format!("unaligned global {name}: address {address:#x}, needs a multiple of {len}");
            return Err(self.fail(id, &what, once(thread)));
        }
        if self.options.check_global_races {
            let now = self.now(thread, id);
            for (i, cell) in self.global_shadow.cells(address, len).iter_mut().enumerate() {
                let touched = match kind {
                    Kind::Load => cell.read(now, &self.clock),
                    Kind::Store => cell.write(now, &self.clock),
                };
                if let Err(race) = touched {
                    let verb = if kind == Kind::Load { "read" } else { "written" };
                    let what = self.race(&format!("global byte {:#x}", address + i as u64), race, verb);
                    return Err(self.fail(id, &what, once(thread)));
                }
            }
        }
        Ok(place)
    }

    fn holds(&self, guard: Option<Value>, thread: usize) -> bool {
        guard.is_none_or(|g| self.reg(g)[thread] == 1)
    }

    fn address(&self, base: Value, offset: i32, thread: usize) -> u64 {
        self.reg(base)[thread].wrapping_add_signed(offset.into())
    }

    /// The bytes that a thread stores.
    fn gather(&self, values: &[Value], thread: usize, element: usize) -> [u8; 16] {
        let mut bytes = [0; 16];
        for (&v, b) in values.iter().zip(bytes.chunks_exact_mut(element)) {
            b.copy_from_slice(&self.reg(v)[thread].to_le_bytes()[..element]);
        }
        bytes
    }

    /// For each warp that takes part, how many of its threads do. The threads are in order.
    fn warps(&self, threads: impl Iterator<Item = usize>) -> Vec<usize> {
        let width = self.func.warp_width as usize;
        let (mut counts, mut last) = (Vec::new(), None);
        for t in threads {
            if last != Some(t / width) {
                counts.push(0);
                last = Some(t / width);
            }
            if let Some(n) = counts.last_mut() {
                *n += 1;
            }
        }
        counts
    }

    fn count_global(&mut self, touched: &[(usize, u64)], size: usize, kind: Kind) {
        let warps = self.warps(touched.iter().map(|&(t, _)| t));
        let mut rest = touched;
        for &n in &warps {
            let (warp, after) = rest.split_at(n);
            let addresses: Vec<_> = warp.iter().map(|&(_, a)| a).collect();
            self.report.global_access(&addresses, size as u64);
            rest = after;
        }
        let counted = if kind == Kind::Load { &mut self.report.global_loads } else { &mut self.report.global_stores };
        counted.instructions += warps.len() as u64;
        counted.bytes += (touched.len() * size) as u64;
    }

    fn count_shared(&mut self, touched: &[(usize, usize)], size: usize, kind: Kind) {
        let width = self.func.warp_width as usize;
        let warps = self.warps(touched.iter().map(|&(t, _)| t));
        let mut rest = touched;
        for &n in &warps {
            let (warp, after) = rest.split_at(n);
            let lanes: Vec<_> = warp.iter().map(|&(t, at)| ((t % width) as u32, at)).collect();
            self.report.shared_access(&lanes, size);
            rest = after;
        }
        let counted = if kind == Kind::Load { &mut self.report.shared_loads } else { &mut self.report.shared_stores };
        counted.instructions += warps.len() as u64;
        counted.bytes += (touched.len() * size) as u64;
    }
}
