//! Matrix products by multiply-adds: each thread computes its block of the result from operands in shared memory.
//!
//! Every element is one chain of fused multiply-adds in the order of k, on every target and in every layout.

use super::memory::{Space, vector_group};
use super::{Lowering, Regs, reg_ty};
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::Layout;
use crate::schedule::DotPlan;
use crate::thread::{Cmp, Shared, Value};
use crate::tile::{self, Elem, OpId};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// An operand in shared memory: row-major, rows `pitch` bytes apart.
struct Operand {
    buf: Shared,
    pitch: u32,
}

impl Lowering<'_> {
    pub(super) fn dot(&mut self, op: OpId) -> Result<()> {
        match self.schedule.dots[&op].clone() {
            DotPlan::Mma(plan) => self.dot_mma(op, &plan),
            DotPlan::Wgmma(plan) => self.dot_wgmma(op, &plan),
            DotPlan::Fma(acc) => self.dot_fma(op, &acc),
        }
    }

    fn dot_fma(&mut self, op: OpId, acc: &Layout) -> Result<()> {
        let func = self.func;
        let data = &func.ops[op];
        let (a, b, c) = (data.operands[0], data.operands[1], data.operands[2]);
        let result = data.results[0];
        let dtype = func.ty(result).dtype();
        let elem = Elem::Scalar(dtype);
        let depth = func.ty(a).shape.dims()[1] as u32;
        let start = self.regs(c, acc)?;
        // Getting at registers may convert, with barriers of its own: all that comes before the first write.
        for v in [a, b] {
            let layout = self.home_or_default(v);
            self.regs(v, &layout)?;
        }
        if self.hazards.before_shared_write() {
            self.barrier();
        }
        // One element more in each row of a, so that the rows that lanes read at once lie in different banks.
        let a = self.stage_wide(a, dtype, 1)?;
        let b = self.stage_wide(b, dtype, 0)?;
        self.barrier();

        let bytes = dtype.bytes() as u32;
        let (row, column) = (self.thread_coord(acc, 0), self.thread_coord(acc, 1));
        let row_byte = self.b.mul_imm(row, a.pitch.into());
        let column_byte = self.b.mul_imm(column, bytes.into());
        let vec = if self.caps.untyped_shared { acc.run_along(1).min(16 / bytes as usize) } else { 1 };
        // A few steps at a time: enough to share the loop's cost, not so many that the code grows large.
        let unroll = (256 / acc.registers() as u32).clamp(1, 4).min(depth);

        let zero = self.b.i32(0);
        let mut inits = vec![zero];
        inits.extend_from_slice(&start);
        let carried = self.b.begin_loop(&inits);
        let end = self.b.i32(depth as i32);
        let go_on = self.b.icmp_u(Cmp::Lt, carried[0], end);
        let carried = self.b.loop_body(go_on);
        let k = carried[0];
        let mut sums = carried[1..].to_vec();
        let a_step = self.b.mul_imm(k, bytes.into());
        let a_at = self.b.add(row_byte, a_step);
        let b_step = self.b.mul_imm(k, b.pitch.into());
        let b_at = self.b.add(column_byte, b_step);
        for u in 0..unroll {
            let mut rows: BTreeMap<u32, Value> = BTreeMap::new();
            let mut columns: BTreeMap<u32, Value> = BTreeMap::new();
            for reg in 0..acc.registers() {
                let (m, n) = (acc.reg_coord(reg, 0), acc.reg_coord(reg, 1));
                if let Entry::Vacant(row) = rows.entry(m) {
                    let space = Space::Shared(a.buf, a_at, (m * a.pitch + u * bytes) as i32);
                    row.insert(self.load_vec(space, elem, 1, None)[0]);
                }
                if !columns.contains_key(&n) {
                    let space = Space::Shared(b.buf, b_at, (u * b.pitch + n * bytes) as i32);
                    for (i, value) in self.load_vec(space, elem, vec, None).into_iter().enumerate() {
                        columns.insert(n + i as u32, value);
                    }
                }
            }
            for (reg, sum) in sums.iter_mut().enumerate() {
                let (x, y) = (rows[&acc.reg_coord(reg, 0)], columns[&acc.reg_coord(reg, 1)]);
                *sum = if dtype.is_float() {
                    self.b.fma(x, y, *sum)
                } else {
                    let product = self.b.mul(x, y);
                    self.b.add(*sum, product)
                };
            }
        }
        let mut next = vec![self.b.add_imm(k, unroll.into())];
        next.extend(sums);
        let results = self.b.end_loop(&next);
        self.free_shared(a.buf, None);
        self.free_shared(b.buf, None);
        let regs: Regs = results[1..].into();
        self.define(result, acc.clone(), regs);
        Ok(())
    }

    /// Writes a matrix to shared memory in the type the product is summed in.
    fn stage_wide(&mut self, x: tile::Value, dtype: DType, pad: u32) -> Result<Operand> {
        let ty = self.func.ty(x).clone();
        let layout = self.home_or_default(x);
        let regs = self.regs(x, &layout)?;
        let elem = Elem::Scalar(dtype);
        let bytes = dtype.bytes() as u32;
        let (rows, columns) = (ty.shape.dims()[0] as u32, ty.shape.dims()[1] as u32);
        let pitch = (columns + pad) * bytes;
        let buf = self.shared.open(&mut self.b, (rows * pitch).next_multiple_of(16), bytes as u8 * 8);
        let (row, column) = (self.thread_coord(&layout, 0), self.thread_coord(&layout, 1));
        let row = self.b.mul_imm(row, pitch.into());
        let column = self.b.mul_imm(column, bytes.into());
        let base = self.b.add(row, column);
        let guard = self.is_first_copy(&layout);
        // With a gap of one element rows are not aligned for wider accesses.
        let vec = if self.caps.untyped_shared && pad == 0 { layout.run_along(1).min(16 / bytes as usize) } else { 1 };
        for first in (0..layout.registers()).step_by(vec) {
            let group = vector_group(&layout, Some(1), vec, first);
            let values: Vec<Value> = group.iter().map(|&r| self.cast(ty.dtype(), dtype, regs[r])).collect();
            debug_assert!(values.iter().all(|&v| self.b.ty(v) == reg_ty(elem)), "operands are widened");
            let offset = layout.reg_coord(first, 0) * pitch + layout.reg_coord(first, 1) * bytes;
            self.store_vec(Space::Shared(buf, base, offset as i32), elem, &values, guard);
        }
        Ok(Operand { buf, pitch })
    }
}
