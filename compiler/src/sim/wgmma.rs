//! Products of four warps: `wgmma`.
//!
//! Each warp computes its 16 of the 64 rows when the product is started. Until it is waited for, what it reads is guarded by
//! [`super::shared::SharedMemory`], and what it gives is in flight.

use super::exec::{Machine, Mask};
use crate::error::Result;
use crate::thread::{InstData, InstId, MmaKind, Value, WgmmaMatrix};
use std::iter::once;

/// Bytes of a chunk: 8 elements.
const CHUNK: usize = 16;
/// Extent of k of one instruction.
const K: usize = 16;

impl Machine<'_> {
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
        [a, b]: [WgmmaMatrix; 2],
        mask: &Mask,
    ) -> Result<()> {
        let warps = self.warp_groups(id, mask)?;
        let mut results: Vec<_> = inst.results.iter().map(|&r| self.take(r)).collect();
        for &warp in &warps {
            let rows = self.matrix(id, &a, inst.operands[0], (16 * (warp % 4), 16), warp, kind)?;
            let columns = self.matrix(id, &b, inst.operands[1], (0, n), warp, kind)?;
            for lane in 0..32 {
                let t = 32 * warp + lane;
                for (i, result) in results.iter_mut().enumerate() {
                    let row = lane / 4 + 8 * (i / 2 % 2);
                    let column = 8 * (i / 4) + 2 * (lane % 4) + i % 2;
                    let c = f32::from_bits(self.reg(inst.operands[2 + i])[t] as u32);
                    // Products are exact in `f64`; their sum and `c` are rounded once.
                    let sum: f64 = rows[row].iter().zip(&columns[column]).map(|(x, y)| x * y).sum();
                    result[t] = ((sum + f64::from(c)) as f32).to_bits().into();
                }
            }
        }
        for (&r, bits) in inst.results.iter().zip(results) {
            self.put(r, bits);
        }
        self.report.wgmmas += warps.len() as u64 / 4;
        Ok(())
    }

    pub fn wgmma_wait(&mut self, id: InstId, inst: &InstData, pending: usize, mask: &Mask) -> Result<()> {
        for warp in self.warp_groups(id, mask)? {
            self.shared.wait_products(32 * warp, pending);
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
        let element = |bytes: &[u8], i: usize| {
            let bits = u16::from_le_bytes([bytes[2 * i], bytes[2 * i + 1]]);
            match kind {
                MmaKind::F16 => half::f16::from_bits(bits).to_f64(),
                _ => half::bf16::from_bits(bits).to_f64(),
            }
        };
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
                let value = element(&bytes, i);
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
