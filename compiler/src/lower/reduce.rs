//! Reductions: over a thread's registers, then over the lanes of a warp by shuffles, then over warps through shared memory.
//!
//! The order is fixed by the layout: pairs of registers from the lowest bit up, pairs of lanes, groups of warps. All
//! threads that hold a copy of a result hold the same bits, because both partners of an exchange combine the same two values
//! and every combination used is commutative to the bit.

use super::memory::Space;
use super::{Lowering, Regs};
use crate::dtype::DType;
use crate::error::Result;
use crate::layout::Layout;
use crate::layout::distributed::axis_mask;
use crate::thread::{Cmp, Value};
use crate::tile::{BinaryOp, Elem, OpId, ReduceOp};

/// At most this many partial results are combined by one thread between two barriers.
const FAN_IN_BITS: usize = 3;

/// One partial result: the registers that make it up (a number; or a number and its index).
type Partial = Vec<Value>;

/// How partial results are combined.
struct Combine {
    kind: Kind,
    /// The types partial results have in shared memory.
    elems: Vec<Elem>,
}

enum Kind {
    Number { op: ReduceOp, dtype: DType },
    Index { max: bool, dtype: DType },
}

impl Lowering<'_> {
    pub(super) fn reduce(&mut self, op: OpId, reduce: ReduceOp, axis: usize) -> Result<()> {
        let data = &self.func.ops[op];
        let (x, result) = (data.operands[0], data.results[0]);
        let dtype = self.func.ty(x).dtype();
        let source = self.schedule.reductions[&op].clone();
        let regs = self.regs(x, &source)?;
        // Sums of halves are taken in F32 and rounded once.
        let wide = match dtype {
            DType::F16 | DType::BF16 => DType::F32,
            d => d,
        };
        let start: Vec<Partial> = regs.iter().map(|&r| vec![self.widen(dtype, r)]).collect();
        let combine = Combine { kind: Kind::Number { op: reduce, dtype: wide }, elems: vec![Elem::Scalar(wide)] };
        let partials = self.reduce_partials(start, &source, axis, &combine);
        let regs: Regs = partials.into_iter().map(|p| self.narrow(dtype, p[0])).collect();
        self.define(result, source.without(axis), regs);
        Ok(())
    }

    pub(super) fn arg_reduce(&mut self, op: OpId, max: bool, axis: usize) -> Result<()> {
        let data = &self.func.ops[op];
        let (x, result) = (data.operands[0], data.results[0]);
        let dtype = self.func.ty(x).dtype();
        let source = self.schedule.reductions[&op].clone();
        let regs = self.regs(x, &source)?;
        let coord = self.thread_coord(&source, axis);
        let start: Vec<Partial> = regs
            .iter()
            .enumerate()
            .map(|(r, &value)| {
                let index = self.b.add_imm(coord, source.reg_coord(r, axis).into());
                vec![self.widen(dtype, value), index]
            })
            .collect();
        let wide = match dtype {
            DType::F16 | DType::BF16 => DType::F32,
            d => d,
        };
        let combine = Combine {
            kind: Kind::Index { max, dtype: wide },
            elems: vec![Elem::Scalar(wide), Elem::Scalar(DType::I32)],
        };
        let partials = self.reduce_partials(start, &source, axis, &combine);
        let regs: Regs = partials.into_iter().map(|p| p[1]).collect();
        self.define(result, source.without(axis), regs);
        Ok(())
    }

    /// Reduces along `axis`; gives one partial result for each register of `layout.without(axis)`.
    fn reduce_partials(
        &mut self,
        mut partials: Vec<Partial>,
        layout: &Layout,
        axis: usize,
        combine: &Combine,
    ) -> Vec<Partial> {
        let mask = axis_mask(&layout.shape, axis);
        // Registers: the lowest bit along the axis first, so that the tree does not depend on other dimensions.
        let mut bits: Vec<u32> = layout.reg.clone();
        while let Some(bit) = bits.iter().position(|b| b & mask != 0) {
            let half = 1 << bit;
            partials = (0..partials.len() / 2)
                .map(|i| {
                    let low = (i & (half - 1)) | (i & !(half - 1)) << 1;
                    self.combine(combine, &partials[low], &partials[low | half])
                })
                .collect();
            bits.remove(bit);
        }
        for (bit, _) in layout.lane.iter().enumerate().filter(|&(_, b)| b & mask != 0) {
            for p in &mut partials {
                let other: Partial =
                    p.iter().map(|&v| self.shuffled(v, &mut |l, v| l.b.shuffle_xor(v, 1 << bit))).collect();
                *p = self.combine(combine, p, &other);
            }
        }
        let across: Vec<usize> =
            layout.warp.iter().enumerate().filter(|&(_, b)| b & mask != 0).map(|(bit, _)| bit).collect();
        let mut done = Vec::new();
        for round in across.chunks(FAN_IN_BITS) {
            partials = self.reduce_warps(partials, layout, axis, combine, round, &done);
            done.extend_from_slice(round);
        }
        partials
    }

    /// Combines the partial results of the warps that differ in the bits `round`; those that differ in `done` hold
    /// copies already.
    fn reduce_warps(
        &mut self,
        partials: Vec<Partial>,
        layout: &Layout,
        axis: usize,
        combine: &Combine,
        round: &[usize],
        done: &[usize],
    ) -> Vec<Partial> {
        let mask = axis_mask(&layout.shape, axis);
        let kept = layout.without(axis);
        // An element of the buffer for each element of the result, each warp that has a say in it.
        let later: Vec<usize> = (0..layout.warp.len())
            .filter(|bit| layout.warp[*bit] & mask != 0 && !round.contains(bit) && !done.contains(bit))
            .collect();
        let (now_bits, later_bits) = (round.len(), later.len());
        let results = kept.shape.elements() as u32;
        // Those that are combined lie side by side, so that a thread with one result reads them at once. A thread with many
        // results reads several of them at once: then results lie side by side, and no two lanes meet in a bank.
        let many = kept.registers() >= 1 << now_bits;
        let (result_shift, warp_shift) =
            if many { (0, results.trailing_zeros()) } else { ((now_bits + later_bits) as u32, 0) };
        let slot = |bit: usize, with_now: bool| -> u32 {
            if let Some(i) = round.iter().position(|&b| b == bit) {
                if with_now { 1 << i << warp_shift } else { 0 }
            } else if let Some(i) = later.iter().position(|&b| b == bit) {
                1 << (now_bits + i) << warp_shift
            } else {
                kept.warp[bit] << result_shift
            }
        };
        let bytes: Vec<u32> = combine.elems.iter().map(|e| e.bytes() as u32).collect();
        let buffers: Vec<_> = bytes
            .iter()
            .map(|&size| {
                let total = ((results << (now_bits + later_bits)) * size).next_multiple_of(16);
                self.shared.open(&mut self.b, total, size as u8 * 8)
            })
            .collect();
        if self.hazards.before_shared_write() {
            self.barrier();
        }
        // One of the threads that hold copies writes: those that differ in lanes along the axis, in reduced warps, and
        // in bits that were copies from the start.
        let mut copies = kept.clone();
        for bit in round.iter().chain(&later) {
            copies.warp[*bit] = 1;
        }
        let guard = self.is_first_copy(&copies);
        let lane_bases: Vec<u32> = kept.lane.iter().map(|b| b << result_shift).collect();
        let warp_bases = |with_now| (0..layout.warp.len()).map(|bit| slot(bit, with_now)).collect::<Vec<u32>>();
        // Results of neighbouring registers that move together, if results lie side by side.
        let together = |size: u32| {
            let widest = if many && self.caps.untyped_shared { 16 / size } else { 1 };
            let neighbours = kept.reg.iter().zip(0..).take_while(|&(&base, bit)| base == 1 << bit).count();
            widest.min(1 << neighbours) as usize
        };
        let widths: Vec<usize> = bytes.iter().map(|&size| together(size)).collect();
        let at = self.thread_part(&lane_bases, &warp_bases(true));
        for (i, &elem) in combine.elems.iter().enumerate() {
            let byte = self.b.mul_imm(at, bytes[i].into());
            for (first, group) in (0..).step_by(widths[i]).zip(partials.chunks(widths[i])) {
                let offset = ((kept.reg_index(first) << result_shift) * bytes[i]) as i32;
                let raw: Vec<_> = group.iter().map(|partial| self.storage_of(elem, partial[i])).collect();
                self.store_vec(Space::Shared(buffers[i], byte, offset), elem, &raw, guard);
            }
        }
        self.barrier();
        let from = self.thread_part(&lane_bases, &warp_bases(false));
        let starts: Vec<_> = bytes.iter().map(|&size| self.b.mul_imm(from, size.into())).collect();
        // Results that are loaded together, as many for numbers as for their indices.
        let group = if many { widths.iter().copied().max().unwrap_or(1) } else { 1 };
        let mut out = Vec::with_capacity(partials.len());
        for first in (0..partials.len()).step_by(group) {
            // For each result: what its warps have to say.
            let mut lists: Vec<Vec<Partial>> = vec![vec![Vec::new(); 1 << now_bits]; group];
            for (i, &elem) in combine.elems.iter().enumerate() {
                let widest = if self.caps.untyped_shared { 16 / bytes[i] as usize } else { 1 };
                let (registers, warps) = if many { (widths[i], 1) } else { (1, widest.min(1 << now_bits)) };
                for r in (0..group).step_by(registers) {
                    for warp in (0..1usize << now_bits).step_by(warps) {
                        let index = (kept.reg_index(first + r) << result_shift) + ((warp as u32) << warp_shift);
                        let space = Space::Shared(buffers[i], starts[i], (index * bytes[i]) as i32);
                        for (j, raw) in self.load_vec(space, elem, registers * warps, None).into_iter().enumerate() {
                            let value = self.register_of(elem, raw);
                            let (r, warp) = if many { (r + j, warp) } else { (r, warp + j) };
                            lists[r][warp].push(value);
                        }
                    }
                }
            }
            for mut list in lists {
                while list.len() > 1 {
                    list = list.chunks(2).map(|pair| self.combine(combine, &pair[0], &pair[1])).collect();
                }
                out.append(&mut list);
            }
        }
        for buf in buffers {
            self.free_shared(buf, None);
        }
        out
    }

    fn combine(&mut self, combine: &Combine, x: &Partial, y: &Partial) -> Partial {
        match combine.kind {
            Kind::Number { op, dtype } => vec![self.combine_numbers(op, dtype, x[0], y[0])],
            Kind::Index { max, dtype } => self.combine_indices(max, dtype, x, y),
        }
    }

    fn combine_numbers(&mut self, op: ReduceOp, dtype: DType, x: Value, y: Value) -> Value {
        let op = match op {
            ReduceOp::Sum => BinaryOp::Add,
            ReduceOp::Prod => BinaryOp::Mul,
            ReduceOp::Min => BinaryOp::Min,
            ReduceOp::Max => BinaryOp::Max,
            ReduceOp::And => BinaryOp::And,
            ReduceOp::Or => BinaryOp::Or,
            ReduceOp::Xor => BinaryOp::Xor,
        };
        self.binary(op, dtype, x, y)
    }

    /// The better of two numbers with its index: NaN before all, then the greater (or lesser), then the one that
    /// stands first.
    fn combine_indices(&mut self, max: bool, dtype: DType, x: &Partial, y: &Partial) -> Partial {
        let (a, b) = (x[0], y[0]);
        let better = if max { crate::tile::Cmp::Gt } else { crate::tile::Cmp::Lt };
        let x_better = self.compare(better, dtype, a, b);
        let y_better = self.compare(better, dtype, b, a);
        let x_first = self.b.icmp_s(Cmp::Lt, x[1], y[1]);
        let (x_wins, y_wins) = if dtype.is_float() {
            let (x_nan, y_nan) = (self.b.fcmp(Cmp::Ne, a, a), self.b.fcmp(Cmp::Ne, b, b));
            let (x_number, y_number) = (self.b.not(x_nan), self.b.not(y_nan));
            let only_x = self.b.and(x_nan, y_number);
            let only_y = self.b.and(y_nan, x_number);
            (self.b.or(x_better, only_x), self.b.or(y_better, only_y))
        } else {
            (x_better, y_better)
        };
        // Neither wins: equal, or both NaN; then the place decides.
        let not_y = self.b.not(y_wins);
        let tie = self.b.and(x_first, not_y);
        let take_x = self.b.or(x_wins, tie);
        vec![self.b.select(take_x, x[0], y[0]), self.b.select(take_x, x[1], y[1])]
    }
}
