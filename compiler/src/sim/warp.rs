//! Ops of a whole warp: shuffles, `ldmatrix`, `mma`.

use super::access::number;
use super::exec::{Machine, Mask};
use crate::error::Result;
use crate::thread::{InstData, InstId, MmaKind, Shared, Shuffle};
use std::iter::once;

/// Bytes of a row of an 8x8 matrix of 16-bit elements.
const ROW: usize = 16;

impl Machine<'_> {
    pub fn shuffle(&mut self, id: InstId, inst: &InstData, shuffle: Shuffle, mask: &Mask) -> Result<()> {
        let width = self.func.warp_width as usize;
        let warps = self.whole_warps(id, mask)?;
        let mut d = self.take(inst.results[0]);
        for &warp in &warps {
            for lane in 0..width {
                let (first, t) = (warp * width, warp * width + lane);
                let from = match shuffle {
                    Shuffle::Xor(with) => lane ^ with as usize,
                    Shuffle::Index => self.reg(inst.operands[1])[t] as usize,
                };
                if from >= width {
                    let what = format!("a shuffle from lane {} of a warp of {width}", from as u32 as i32);
                    return Err(self.fail(id, &what, once(t)));
                }
                d[t] = self.reg(inst.operands[0])[first + from];
            }
        }
        self.put(inst.results[0], d);
        self.report.shuffles += warps.len() as u64;
        Ok(())
    }

    pub fn ldmatrix(
        &mut self,
        id: InstId,
        inst: &InstData,
        buf: Shared,
        (n, trans, offset): (usize, bool, i32),
        mask: &Mask,
    ) -> Result<()> {
        for warp in self.whole_warps(id, mask)? {
            let first = warp * 32;
            // The addresses of the other lanes are not looked at.
            let mut rows = Vec::new();
            for t in first..first + 8 * n {
                rows.push((t, self.shared_at(id, (buf, inst.operands[0], offset), t, ROW)?));
            }
            for (matrix, &result) in rows.chunks(8).zip(&inst.results) {
                let mut d = self.take(result);
                for lane in 0..32 {
                    let t = first + lane;
                    let now = self.now(t, id);
                    let mut bits = 0;
                    for half in 0..2 {
                        let (along, across) = (lane / 4, 2 * (lane % 4) + half);
                        let (row, column) = if trans { (across, along) } else { (along, across) };
                        // The lane that gets an element reads it, whoever gave the address.
                        let at = matrix[row].1.plus(2 * column);
                        match self.shared.read(at, 2, now, &self.clock) {
                            Ok(bytes) => bits |= number(bytes) << (16 * half),
                            Err(wrong) => return Err(self.shared_error(id, buf, t, wrong, "read")),
                        }
                    }
                    d[t] = bits;
                }
                self.put(result, d);
            }
            let touched: Vec<_> = rows.iter().map(|&(t, at)| (t, at.address)).collect();
            self.count_shared_load(&touched, ROW);
            self.report.ldmatrices += 1;
        }
        Ok(())
    }

    pub fn mma(&mut self, id: InstId, inst: &InstData, kind: MmaKind, mask: &Mask) -> Result<()> {
        let warps = self.whole_warps(id, mask)?;
        let mut results: Vec<_> = inst.results.iter().map(|&r| self.take(r)).collect();
        for &warp in &warps {
            let first = warp * 32;
            let reg = |i: usize, lane: usize| self.reg(inst.operands[i])[first + lane] as u32;
            let d = match kind {
                MmaKind::F16 => floats::<16>(kind, reg),
                MmaKind::Bf16 => floats::<16>(kind, reg),
                MmaKind::Tf32 => floats::<8>(kind, reg),
                MmaKind::S8 | MmaKind::U8 => integers(kind, reg),
            };
            for lane in 0..32 {
                for (i, r) in results.iter_mut().enumerate() {
                    let (row, column) = accumulator(lane, i);
                    r[first + lane] = d[row][column].into();
                }
            }
        }
        for (&r, bits) in inst.results.iter().zip(results) {
            self.put(r, bits);
        }
        self.report.mmas += warps.len() as u64;
        Ok(())
    }
}

/// The row and column of register `i` of a lane's part of the 16x8 accumulator.
fn accumulator(lane: usize, i: usize) -> (usize, usize) {
    (lane / 4 + 8 * (i / 2), 2 * (lane % 4) + i % 2)
}

/// Elements of one register of an operand.
fn unpack(kind: MmaKind, register: u32, i: usize) -> f64 {
    let half = || (register >> (16 * i)) as u16;
    let byte = || (register >> (8 * i)) as u8;
    match kind {
        MmaKind::F16 => half::f16::from_bits(half()).to_f64(),
        MmaKind::Bf16 => half::bf16::from_bits(half()).to_f64(),
        // The hardware does not look at the low 13 bits.
        MmaKind::Tf32 => f32::from_bits(register & !0x1fff).into(),
        MmaKind::S8 => f64::from(byte() as i8),
        MmaKind::U8 => f64::from(byte()),
    }
}

/// The operands as matrices: `a` of 16 x K, `b` of 8 x K (transposed, so that both are walked along K).
fn operands<const K: usize>(kind: MmaKind, reg: impl Fn(usize, usize) -> u32) -> ([[f64; K]; 16], [[f64; K]; 8]) {
    let (mut a, mut b) = ([[0.0; K]; 16], [[0.0; K]; 8]);
    // K is two halves; in each a lane has `per` neighbours, at `per` times its place in the group of four.
    let per = K / 8;
    for lane in 0..32 {
        let (group, k) = (lane / 4, per * (lane % 4));
        for i in 0..per {
            for r in 0..4 {
                a[group + 8 * (r % 2)][k + i + K / 2 * (r / 2)] = unpack(kind, reg(r, lane), i);
            }
            for r in 0..2 {
                b[group][k + i + K / 2 * r] = unpack(kind, reg(4 + r, lane), i);
            }
        }
    }
    (a, b)
}

/// The result as bits of `F32`. Products are exact in `f64`; their sum and `c` are rounded once, which is at least as
/// close as what the hardware does.
fn floats<const K: usize>(kind: MmaKind, reg: impl Fn(usize, usize) -> u32) -> [[u32; 8]; 16] {
    let (a, b) = operands::<K>(kind, &reg);
    let mut d = [[0; 8]; 16];
    for lane in 0..32 {
        for i in 0..4 {
            let (row, column) = accumulator(lane, i);
            let product: f64 = a[row].iter().zip(&b[column]).map(|(x, y)| x * y).sum();
            d[row][column] = ((product + f64::from(f32::from_bits(reg(6 + i, lane)))) as f32).to_bits();
        }
    }
    d
}

/// The result as bits of `I32`. Sums of 32 products of bytes are exact in `f64`; the sum with `c` wraps.
fn integers(kind: MmaKind, reg: impl Fn(usize, usize) -> u32) -> [[u32; 8]; 16] {
    let (a, b) = operands::<32>(kind, &reg);
    let mut d = [[0; 8]; 16];
    for lane in 0..32 {
        for i in 0..4 {
            let (row, column) = accumulator(lane, i);
            let product: f64 = a[row].iter().zip(&b[column]).map(|(x, y)| x * y).sum();
            d[row][column] = (product as i32 as u32).wrapping_add(reg(6 + i, lane));
        }
    }
    d
}
