//! Products of four warps: `wgmma`.
//!
//! Each warp computes its 16 of the 64 rows when the product is started. Until it is waited for, what it reads is guarded by
//! [`super::shared::SharedMemory`], and what it gives is in flight.

use super::exec::{Machine, Mask};
use crate::error::Result;
use crate::thread::{InstData, InstId, MmaKind, Op, Value, WgmmaLeft, WgmmaMatrix};
use std::collections::{HashMap, HashSet, VecDeque};
use std::iter::once;

/// Bytes of a chunk: 8 elements.
const CHUNK: usize = 16;
/// Extent of k of one instruction.
const K: usize = 16;

/// What the products of one warp read of its registers: those of the group that is still open, and those of the pending groups.
#[derive(Default)]
struct Reading {
    open: Vec<Value>,
    groups: VecDeque<Vec<Value>>,
    /// Groups ended so far.
    committed: u64,
}

/// What products in flight read and give, in registers.
#[derive(Default)]
pub(super) struct InFlight {
    /// Results of products, with the group that gives them, counted from the first.
    results: HashMap<Value, u64>,
    /// Registers written since the last fence.
    unfenced: HashSet<Value>,
    /// The results of products whose registers ordinary instructions read since the last fence: the next time that the product is
    /// started it writes them, unordered.
    read: HashSet<Value>,
    /// Of values that stand in the registers of a product's result: that result.
    home: HashMap<Value, Value>,
    /// Was there a fence yet? What is in registers before was written before.
    fenced: bool,
    /// For each warp.
    reading: HashMap<usize, Reading>,
}

impl InFlight {
    /// `to` is given what `from` holds.
    pub fn copied(&mut self, to: Value, from: Value, by_all: bool) {
        self.follow(to, from);
        match self.results.get(&from) {
            Some(&group) => {
                self.results.insert(to, group);
            }
            None => {
                if by_all {
                    self.results.remove(&to);
                }
                self.unfenced.insert(to);
            }
        }
    }

    /// `to` stands where `from` stood.
    fn follow(&mut self, to: Value, from: Value) {
        match self.home.get(&from).copied() {
            Some(home) => self.home.insert(to, home),
            None => self.home.remove(&to),
        };
    }

    /// What is wrong with an instruction that does not wait.
    fn check(&mut self, inst: &InstData, runs: impl Fn(usize) -> bool) -> Option<String> {
        // Carried values may be in flight; their registers are those of the loop's blocks.
        let read = match inst.op {
            Op::Loop | Op::WgmmaWait(_) => &[],
            Op::Wgmma { a, .. } => &inst.operands[..a.operands() + 1],
            _ => &inst.operands[..],
        };
        if let Some(v) = read.iter().find(|v| self.results.contains_key(v)) {
            return Some(format!("{v} is read while the product that gives it is in flight"));
        }
        if let Op::Wgmma { a, .. } = inst.op {
            let places = a.operands();
            let a = if places > 1 { &inst.operands[..places] } else { &[] };
            let unfenced = a.iter().chain(&inst.operands[places + 1..]).find(|v| self.unfenced.contains(v));
            if let Some(v) = unfenced {
                return Some(format!("a product reads {v}, which was written after the last fence"));
            }
            if !self.fenced {
                return Some("a product is started before any fence".into());
            }
            // With a sum the registers are those of the sum, which were looked at.
            let sum = inst.operands.len() > places + 1;
            if let Some(v) = inst.results.iter().find(|v| !sum && self.read.contains(v)) {
                return Some(format!("a product gives {v}, whose registers were read after the last fence"));
            }
            return None;
        }
        let homes = read.iter().filter_map(|v| self.home.get(v));
        self.read.extend(homes);
        for &r in &inst.results {
            let reading = self.reading.iter().filter(|(warp, _)| runs(**warp));
            if reading.flat_map(|(_, reads)| reads.open.iter().chain(reads.groups.iter().flatten())).any(|v| *v == r) {
                return Some(format!("{r} is written while a product in flight reads it"));
            }
            if !matches!(inst.op, Op::Loop | Op::WgmmaWait(_)) {
                self.results.remove(&r);
            }
            self.unfenced.insert(r);
        }
        None
    }
}

impl Machine<'_> {
    /// Results of products in flight are read by products and waits alone, and what products read stays as it is.
    pub fn check_in_flight(&mut self, id: InstId, inst: &InstData, mask: &Mask) -> Result<()> {
        let wrong = self.in_flight.as_mut().and_then(|f| f.check(inst, |warp| mask.has(32 * warp)));
        wrong.map_or(Ok(()), |what| Err(self.fail(id, &what, mask.threads())))
    }

    /// The warps that run an op of groups of four: all of each group must.
    pub fn warp_groups(&self, id: InstId, mask: &Mask) -> Result<Vec<usize>> {
        let warps = self.whole_warps(id, mask)?;
        let whole =
            warps.len().is_multiple_of(4) && warps.chunks(4).all(|g| g[0].is_multiple_of(4) && g[3] == g[0] + 3);
        if whole {
            return Ok(warps);
        }
        Err(self.fail(id, "an op of four warps that not all of a group reach", warps.iter().map(|w| 32 * w)))
    }

    pub fn wgmma(
        &mut self,
        id: InstId,
        inst: &InstData,
        (kind, n): (MmaKind, usize),
        (a, b): (WgmmaLeft, WgmmaMatrix),
        mask: &Mask,
    ) -> Result<()> {
        let warps = self.warp_groups(id, mask)?;
        let mut results: Vec<_> = inst.results.iter().map(|&r| self.take(r)).collect();
        let (left, rest) = inst.operands.split_at(a.operands());
        for &warp in &warps {
            let rows = match a {
                WgmmaLeft::Shared(a) => self.matrix(id, &a, left[0], (16 * (warp % 4), 16), warp, kind)?,
                WgmmaLeft::Registers => self.fragment(left, warp, kind),
            };
            let columns = self.matrix(id, &b, rest[0], (0, n), warp, kind)?;
            for lane in 0..32 {
                let t = 32 * warp + lane;
                for (i, result) in results.iter_mut().enumerate() {
                    let row = lane / 4 + 8 * (i / 2 % 2);
                    let column = 8 * (i / 4) + 2 * (lane % 4) + i % 2;
                    let c = rest.get(1 + i).map_or(0.0, |&c| f32::from_bits(self.reg(c)[t] as u32));
                    // Products are exact in `f64`; their sum and `c` are rounded once.
                    let sum: f64 = rows[row].iter().zip(&columns[column]).map(|(x, y)| x * y).sum();
                    result[t] = ((sum + f64::from(c)) as f32).to_bits().into();
                }
            }
        }
        for (&r, bits) in inst.results.iter().zip(results) {
            self.put(r, bits);
        }
        if let Some(f) = &mut self.in_flight {
            for &warp in &warps {
                let reading = f.reading.entry(warp).or_default();
                if a == WgmmaLeft::Registers {
                    reading.open.extend(left);
                }
                f.results.extend(inst.results.iter().map(|&r| (r, reading.committed)));
                f.home.extend(inst.results.iter().map(|&r| (r, r)));
            }
        }
        self.report.wgmmas += warps.len() as u64 / 4;
        Ok(())
    }

    pub fn wgmma_fence(&mut self, id: InstId, mask: &Mask) -> Result<()> {
        self.warp_groups(id, mask)?;
        if let Some(f) = &mut self.in_flight {
            f.unfenced.clear();
            f.read.clear();
            f.fenced = true;
        }
        Ok(())
    }

    pub fn wgmma_commit(&mut self, id: InstId, mask: &Mask) -> Result<()> {
        for warp in self.warp_groups(id, mask)? {
            self.shared.commit_products(32 * warp);
            if let Some(f) = &mut self.in_flight {
                let reading = f.reading.entry(warp).or_default();
                reading.groups.push_back(std::mem::take(&mut reading.open));
                reading.committed += 1;
            }
        }
        Ok(())
    }

    pub fn wgmma_wait(&mut self, id: InstId, inst: &InstData, pending: usize, mask: &Mask) -> Result<()> {
        let warps = self.warp_groups(id, mask)?;
        for &warp in &warps {
            self.shared.wait_products(32 * warp, pending);
            let Some(f) = &mut self.in_flight else { continue };
            let reading = f.reading.entry(warp).or_default();
            reading.groups.drain(..reading.groups.len().saturating_sub(pending));
            let ended = reading.committed.saturating_sub(pending as u64);
            for (&to, from) in inst.results.iter().zip(&inst.operands) {
                match f.home.get(from).copied() {
                    Some(home) => f.home.insert(to, home),
                    None => f.home.remove(&to),
                };
                match f.results.get(from).copied().filter(|&group| group >= ended) {
                    Some(group) => f.results.insert(to, group),
                    None => f.results.remove(&to),
                };
            }
        }
        for (&to, &from) in inst.results.iter().zip(&inst.operands) {
            let mut d = self.take(to);
            for t in mask.threads() {
                d[t] = self.reg(from)[t];
            }
            self.put(to, d);
        }
        Ok(())
    }

    /// The 16 rows that a warp has in four registers, each K long.
    fn fragment(&self, registers: &[Value], warp: usize, kind: MmaKind) -> Vec<[f64; K]> {
        let mut rows = vec![[0.0; K]; 16];
        for (lane, (r, &v)) in (0..32).flat_map(|lane| registers.iter().enumerate().map(move |r| (lane, r))) {
            let bits = self.reg(v)[32 * warp + lane] as u32;
            for half in 0..2 {
                let column = 2 * (lane % 4) + half + 8 * (r / 2);
                rows[lane / 4 + 8 * (r % 2)][column] = element(kind, (bits >> (16 * half)) as u16);
            }
        }
        rows
    }

    /// `count` rows of `a`, or columns of `b`, from the first on; each K long. They are found as the hardware finds them:
    /// the address is that of rows in order, and then bits 4 to 6 are exchanged by bits 7 to 9.
    fn matrix(
        &mut self,
        id: InstId,
        m: &WgmmaMatrix,
        byte: Value,
        (first, count): (usize, usize),
        warp: usize,
        kind: MmaKind,
    ) -> Result<Vec<[f64; K]>> {
        let t = 32 * warp;
        let start = i64::from(self.reg(byte)[t] as u32 as i32) + i64::from(m.offset);
        let bytes = self.reg(byte)[t..t + 32].iter().position(|&b| b != self.reg(byte)[t]);
        if let Some(lane) = bytes {
            return Err(self.fail(id, "a matrix that is not at one place for all lanes", once(t + lane)));
        }
        let swizzle = i64::from(m.swizzle);
        let mask = swizzle / 16 - 1;
        let data = self.func.shared[m.buf];
        let now = self.now(t, id);
        let mut found = vec![[0.0; K]; count];
        // Chunks along k, or along the rows of the matrix.
        let (outer, chunks) = if m.k_inner { (count, K / 8) } else { (K, count / 8) };
        for (o, chunk) in (0..outer).flat_map(|o| (0..chunks).map(move |chunk| (o, chunk))) {
            let (line, along) = if m.k_inner { (first + o, 16 * chunk) } else { (o, 2 * (first + 8 * chunk)) };
            let (line, along) = (line as i64, along as i64);
            let at = if m.k_inner {
                start + line * swizzle + along
            } else {
                start + (along / swizzle) * i64::from(m.block) + line * swizzle + along % swizzle
            };
            let address = at + i64::from(data.offset);
            let at = at ^ (((address >> 7) & mask) << 4);
            let at = match self.shared.locate(m.buf, data, at, CHUNK, CHUNK) {
                Ok(at) => at,
                Err(wrong) => return Err(self.shared_error(id, m.buf, t, wrong, "read")),
            };
            let bytes: [u8; CHUNK] = match self.shared.read_async(at, CHUNK, now, &self.clock) {
                Ok(bytes) => bytes.try_into().unwrap_or([0; CHUNK]),
                Err(wrong) => return Err(self.shared_error(id, m.buf, t, wrong, "read")),
            };
            for i in 0..8 {
                let value = element(kind, u16::from_le_bytes([bytes[2 * i], bytes[2 * i + 1]]));
                if m.k_inner {
                    found[o][8 * chunk + i] = value;
                } else {
                    found[8 * chunk + i][o] = value;
                }
            }
        }
        Ok(found)
    }
}

/// The number with these bits.
fn element(kind: MmaKind, bits: u16) -> f64 {
    match kind {
        MmaKind::F16 => half::f16::from_bits(bits).to_f64(),
        _ => half::bf16::from_bits(bits).to_f64(),
    }
}
