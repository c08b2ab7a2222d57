//! Matrix products on the tensor cores of four warps: `wgmma`, which reads its operands from swizzled shared memory, the left one
//! also from registers: there the result of another product lies as it is wanted.

use super::Lowering;
use super::mma::of_warps;
use super::pipelined::Staged;
use crate::error::Result;
use crate::layout::Layout;
use crate::schedule::WgmmaPlan;
use crate::thread::{IBin, Op, Shared, Special, Ty, Value, WgmmaLeft, WgmmaMatrix};
use crate::tile::{self, OpId};

/// Rows of one instruction.
const ROWS: u32 = 64;
/// Its extent of k.
const DEPTH: u32 = 16;
/// Bytes of an element.
const ELEMENT: u32 = 2;

/// An operand in shared memory.
struct Operand {
    staged: Staged,
    /// Byte of the first element that this group of warps reads.
    start: Value,
    k_inner: bool,
}

impl Operand {
    /// The part of the matrix that begins at these rows (of the other dimension than k) and this k.
    fn at(&self, outer: u32, k: u32) -> WgmmaMatrix {
        let swizzle = self.staged.swizzle;
        let (row, column) = if self.k_inner { (outer, k * ELEMENT) } else { (k, outer * ELEMENT) };
        let (block, within) = (column / swizzle.row_bytes, column % swizzle.row_bytes);
        WgmmaMatrix {
            buf: self.staged.buf,
            offset: (block * swizzle.block_bytes + row * swizzle.row_bytes + within) as i32,
            swizzle: swizzle.row_bytes as u8,
            k_inner: self.k_inner,
            block: swizzle.block_bytes,
        }
    }
}

impl Lowering<'_> {
    pub(super) fn dot_wgmma(&mut self, op: OpId, plan: &WgmmaPlan) -> Result<()> {
        let result = self.func.ops[op].results[0];
        if let Some(early) = self.early.as_ref().filter(|early| early.op == op) {
            let sums = early.sums.as_slice().into();
            self.define(result, plan.acc.clone(), sums);
            return Ok(());
        }
        let (mut sums, made) = self.start_wgmma(op, plan)?;
        if !self.in_flight.contains(&op) {
            let others = self.finish_with.remove(&op).unwrap_or_default();
            sums = self.finish_wgmma(&sums, others)?;
        }
        for buf in made {
            self.free_shared(buf, None);
        }
        self.define(result, plan.acc.clone(), sums.into());
        Ok(())
    }

    /// Waits for all products in flight: gives these sums, finished, and redefines the values that are `others`.
    fn finish_wgmma(&mut self, sums: &[Value], others: Vec<(tile::Value, Layout)>) -> Result<Vec<Value>> {
        let mut values = sums.to_vec();
        for (v, layout) in &others {
            values.extend_from_slice(&self.regs(*v, layout)?);
        }
        let finished = self.b.wgmma_wait(0, &values);
        let (own, mut rest) = finished.split_at(sums.len());
        for (v, layout) in others {
            let (mine, after) = rest.split_at(layout.registers());
            self.redefine(v, layout, mine.into());
            rest = after;
        }
        Ok(own.to_vec())
    }

    /// Waits for sums in flight that `op` takes, when its other operands are there: what these are made of is computed meanwhile.
    pub(super) fn finish_sums_before(&mut self, op: OpId, sums: Vec<(tile::Value, Layout)>) -> Result<()> {
        let data = &self.func.ops[op];
        if data.op.is_elementwise()
            && let Some(home) = self.schedule.homes.get(&data.results[0]).cloned()
        {
            let mut ready: Vec<Value> = Vec::new();
            for x in data.operands.iter().filter(|x| sums.iter().all(|(sum, _)| sum != *x)) {
                ready.extend_from_slice(&self.regs(*x, &home)?);
            }
            ready.retain(|&v| self.b.bits(v).is_none() && matches!(self.b.ty(v), Ty::I32 | Ty::F32));
            ready.sort_unstable();
            ready.dedup();
            self.b.emit(Op::Hold, ready, &[]);
        }
        self.finish_wgmma(&[], sums).map(drop)
    }

    /// Starts a product; gives its sums, in flight, and the buffers made for its operands.
    pub(super) fn start_wgmma(&mut self, op: OpId, plan: &WgmmaPlan) -> Result<(Vec<Value>, Vec<Shared>)> {
        let func = self.func;
        let data = &func.ops[op];
        let acc = &plan.acc;
        let left = data.operands[0];
        let mut sums = self.regs(data.operands[2], acc)?.to_vec();
        let fragments = if plan.a_in_registers {
            let regs = self.regs(left, &plan.a_fragments(&func.ty(left).shape))?;
            Some(regs.chunks(2).map(|pair| self.b.pack16(pair[0], pair[1])).collect::<Vec<_>>())
        } else {
            None
        };
        let from_shared = usize::from(fragments.is_some())..2;
        let (staged, made) = self.mma_operands(&data.operands[from_shared], true)?;
        let depth = func.ty(left).shape.dims()[1] as u32;

        // The group's number, known to be the same in all its lanes.
        let warp = self.uniform_warp.unwrap_or_else(|| self.b.special(Special::Warp));
        let of_groups = |axis: usize| {
            let mut bases = of_warps(acc, axis);
            bases[..2].fill(0);
            bases
        };
        let (row, column) = (self.spread_bits(warp, &of_groups(0)), self.spread_bits(warp, &of_groups(1)));
        let a = match staged[..] {
            [a, _] => Some(self.operand(a, row, 1)),
            _ => None,
        };
        let b = self.operand(staged[staged.len() - 1], column, 0);

        // An instruction has 2 registers for each 8 x 8 of its rows of a warp.
        let registers = plan.n as usize / 2;
        let groups = of_groups(1).iter().filter(|&&b| b != 0).count();
        let across = (acc.shape.dims()[1] as u32 >> groups) / plan.n;
        let from_zero = sums.iter().all(|&c| self.b.bits(c) == Some(0));
        if self.early.as_ref().is_some_and(|early| early.before == op) {
            self.issue_early()?;
        }
        self.b.emit(Op::WgmmaFence, vec![], &[]);
        for k in (0..depth).step_by(DEPTH as usize) {
            for (i, sum) in (0..).zip(sums.chunks_mut(registers)) {
                let (m, n) = (i / across * ROWS, i % across * plan.n);
                let (left, a_operands) = match (&a, &fragments) {
                    (Some(a), _) => (WgmmaLeft::Shared(a.at(m, k)), vec![a.start]),
                    (None, Some(packed)) => {
                        // Of each 64 rows and 16 of k, four registers.
                        let first = 4 * (m / ROWS * (depth / DEPTH) + k / DEPTH) as usize;
                        (WgmmaLeft::Registers, packed[first..first + 4].to_vec())
                    }
                    (None, None) => unreachable!("the left operand is in shared memory or in registers"),
                };
                let c = (k > 0 || !from_zero).then_some(&*sum);
                let d = self.b.wgmma(plan.kind, plan.n as u16, (left, &a_operands), (b.at(n, k), b.start), c);
                sum.copy_from_slice(&d);
            }
        }
        self.b.emit(Op::WgmmaCommit, vec![], &[]);
        Ok((sums, made))
    }

    /// An operand of which this group of warps begins at `outer`, in rows of the other dimension than k; `k_axis` is that of k.
    fn operand(&mut self, staged: Staged, outer: Value, k_axis: usize) -> Operand {
        let k_inner = staged.inner == k_axis;
        let swizzle = staged.swizzle;
        let bytes = if k_inner {
            self.b.mul_imm(outer, swizzle.row_bytes.into())
        } else {
            // Whole blocks: the groups' parts are multiples of them.
            let blocks = self.b.mul_imm(outer, ELEMENT.into());
            let blocks = self.b.shift_imm(IBin::ShrU, blocks, swizzle.row_bytes.trailing_zeros());
            self.b.mul_imm(blocks, swizzle.block_bytes.into())
        };
        Operand { staged, start: self.b.add(bytes, staged.start), k_inner }
    }
}
