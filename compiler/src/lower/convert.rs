//! From one layout to another: by renaming registers, by shuffles within a warp, or through shared memory.

use super::memory::{Space, vector_group};
use super::{Lowering, Regs, reg_ty};
use crate::error::{Error, Result};
use crate::layout::{Layout, Padded};
use crate::thread::{Cmp, Conv, IBin, Special, Ty, Value};
use crate::tile::Elem;

/// Exchanges of a register bit with a lane bit, then a permutation of lanes: a conversion within warps.
struct ShufflePlan {
    /// `(register bit, lane bit)` to exchange, in order.
    swaps: Vec<(usize, usize)>,
    /// Lane bit `i` of the source lane is bit `from[i]` of this lane; empty if lanes stay.
    lanes: Vec<usize>,
    /// The layout after the swaps and the lane permutation.
    after: Layout,
}

impl Lowering<'_> {
    /// The registers of a tile in `to`, given those in `from`.
    pub(super) fn convert(&mut self, regs: &Regs, from: &Layout, to: &Layout, elem: Elem) -> Result<Regs> {
        debug_assert_eq!(from.shape, to.shape, "a conversion keeps the shape");
        if let Some(map) = renaming(from, to) {
            return Ok(map.into_iter().map(|r| regs[r]).collect());
        }
        if self.schedule.lanes > 1
            && let Some(plan) = shuffle_plan(from, to)
        {
            return self.convert_by_shuffles(regs, &plan, to);
        }
        self.convert_through_shared(regs, from, to, elem)
    }

    /// The value of another lane, for registers of every type.
    pub(super) fn shuffled(&mut self, x: Value, shuffle: &mut dyn FnMut(&mut Self, Value) -> Value) -> Value {
        match self.b.ty(x) {
            Ty::I32 | Ty::F32 => shuffle(self, x),
            Ty::Pred => {
                let bits = self.b.conv(Conv::PredToI32, x, Ty::I32);
                let moved = shuffle(self, bits);
                let zero = self.b.i32(0);
                self.b.icmp_u(Cmp::Ne, moved, zero)
            }
            ty @ (Ty::I64 | Ty::F64) => {
                let bits = self.b.bitcast(x, Ty::I64);
                let low = self.b.conv(Conv::Trunc32, bits, Ty::I32);
                let high = self.b.shift_imm(IBin::ShrU, bits, 32);
                let high = self.b.conv(Conv::Trunc32, high, Ty::I32);
                let (low, high) = (shuffle(self, low), shuffle(self, high));
                let low = self.b.conv(Conv::ZExt64, low, Ty::I64);
                let high = self.b.conv(Conv::ZExt64, high, Ty::I64);
                let high = self.b.shift_imm(IBin::Shl, high, 32);
                let bits = self.b.or(low, high);
                self.b.bitcast(bits, ty)
            }
        }
    }

    fn convert_by_shuffles(&mut self, regs: &Regs, plan: &ShufflePlan, to: &Layout) -> Result<Regs> {
        let lane = self.b.special(Special::Lane);
        let mut regs = regs.to_vec();
        for &(reg_bit, lane_bit) in &plan.swaps {
            let set = self.b.and_imm(lane, 1 << lane_bit);
            let zero = self.b.i32(0);
            let upper = self.b.icmp_u(Cmp::Ne, set, zero);
            for low in (0..regs.len()).filter(|r| r >> reg_bit & 1 == 0) {
                let high = low | 1 << reg_bit;
                // Each lane keeps the half that stays and sends the other to its partner.
                let send = self.b.select(upper, regs[low], regs[high]);
                let received = self.shuffled(send, &mut |l, v| l.b.shuffle_xor(v, 1 << lane_bit));
                let (a, b) = (regs[low], regs[high]);
                regs[low] = self.b.select(upper, received, a);
                regs[high] = self.b.select(upper, b, received);
            }
        }
        if !plan.lanes.is_empty() {
            let bases: Vec<u32> = {
                // Bit plan.lanes[i] of this lane becomes bit i of the source lane.
                let mut bases = vec![0; plan.lanes.len()];
                for (i, &from) in plan.lanes.iter().enumerate() {
                    bases[from] = 1 << i;
                }
                bases
            };
            let source = self.spread_bits(lane, &bases);
            for r in &mut regs {
                *r = self.shuffled(*r, &mut |l, v| l.b.shuffle_index(v, source));
            }
        }
        let map = renaming(&plan.after, to)
            .ok_or_else(|| Error::Internal(format!("shuffles lead to {}, not to {to}", plan.after)))?;
        Ok(map.into_iter().map(|r| regs[r]).collect())
    }

    fn convert_through_shared(&mut self, regs: &Regs, from: &Layout, to: &Layout, elem: Elem) -> Result<Regs> {
        let elem_bytes = elem.bytes() as u32;
        let last = from.shape.rank().checked_sub(1);
        let widest = 16 / elem_bytes as usize;
        let vec = |l: &Layout| match last {
            Some(axis) if self.caps.untyped_shared => l.run_along(axis).min(widest),
            _ => 1,
        };
        let (write, read) = (vec(from), vec(to));
        let place = Padded::choose(elem_bytes, &[(from, write as u32), (to, read as u32)]);
        let elements = from.shape.elements() as u32;
        let buf = self.shared.open(&mut self.b, place.bytes(elements).next_multiple_of(16), elem_bytes as u8 * 8);
        if self.hazards.before_shared_write() {
            self.barrier();
        }
        let guard = self.is_first_copy(from);
        let base = self.padded_base(from, place);
        for first in (0..from.registers()).step_by(write) {
            let group = vector_group(from, last, write, first);
            let raw: Vec<_> = group.iter().map(|&r| self.packed(elem, regs[r])).collect();
            let offset = place.byte(from.reg_index(first)) as i32;
            self.store_vec(Space::Shared(buf, base, offset), elem, &raw, guard);
        }
        self.hazards.shared_written();
        self.barrier();
        let base = self.padded_base(to, place);
        let mut out = Vec::with_capacity(to.registers());
        for first in (0..to.registers()).step_by(read) {
            let offset = place.byte(to.reg_index(first)) as i32;
            for raw in self.load_vec(Space::Shared(buf, base, offset), elem, read, None) {
                out.push(self.unpacked(elem, raw));
            }
        }
        self.hazards.shared_read();
        self.shared.close(buf);
        debug_assert!(out.iter().all(|&r| self.b.ty(r) == reg_ty(elem)), "elements come back as they went");
        Ok(out.into())
    }

    /// The byte of this thread's register 0 in a padded tile.
    pub(super) fn padded_base(&mut self, layout: &Layout, place: Padded) -> Value {
        let bytes = |bases: &[u32]| bases.iter().map(|&b| place.byte(b)).collect::<Vec<_>>();
        self.thread_part(&bytes(&layout.lane), &bytes(&layout.warp))
    }
}

/// If every thread already holds the elements it needs: for each register of `to` the one of `from`.
fn renaming(from: &Layout, to: &Layout) -> Option<Vec<usize>> {
    if from.lane != to.lane || from.warp != to.warp {
        return None;
    }
    (0..to.registers()).map(|r| from.reg_of_index(to.reg_index(r))).collect()
}

/// How to convert within warps, if the warps stay and few registers move.
fn shuffle_plan(from: &Layout, to: &Layout) -> Option<ShufflePlan> {
    if from.warp != to.warp || from.reg.len() != to.reg.len() {
        return None;
    }
    let zeros = |l: &Layout| l.lane.iter().filter(|&&b| b == 0).count();
    if zeros(from) != zeros(to) {
        return None;
    }
    let mut after = from.clone();
    let mut swaps = Vec::new();
    for bit in 0..after.reg.len() {
        if !to.reg.contains(&after.reg[bit]) {
            // This basis belongs to a lane; some lane bit holds one that belongs to a register.
            let lane = after.lane.iter().position(|b| *b != 0 && to.reg.contains(b))?;
            std::mem::swap(&mut after.reg[bit], &mut after.lane[lane]);
            swaps.push((bit, lane));
        }
    }
    // Each swap costs half as many shuffles as there are registers: beyond two, shared memory is no slower.
    if swaps.len() > 2 {
        return None;
    }
    let mut lanes = Vec::new();
    if after.lane != to.lane {
        let mut used = vec![false; after.lane.len()];
        // The source lane's bit i holds basis after.lane[i]: it must be this lane's bit with that basis.
        for &basis in &after.lane {
            let at = to.lane.iter().enumerate().position(|(i, b)| *b == basis && !used[i])?;
            used[at] = true;
            lanes.push(at);
        }
        after.lane.clone_from(&to.lane);
    }
    renaming(&after, to)?;
    Some(ShufflePlan { swaps, lanes, after })
}
