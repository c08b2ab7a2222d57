//! From one layout to another: by renaming registers, by shuffles within a warp, or through shared memory.

use super::hazard::{RoundBarrier, SharedPlace};
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
        let touched = |layout: &Layout| SharedPlace { layout: layout.clone(), padded: place };
        let buf = if let Some(buf) = self.hazards.reusable(&touched(from)) {
            self.shared.reopen(buf);
            buf
        } else {
            let only_other_round = self.hazards.only_other_round();
            let barrier = self.hazards.before_shared_write().then(|| self.barrier());
            let bytes = place.bytes(elements).next_multiple_of(16);
            let buf = self.shared.open(&mut self.b, bytes, elem_bytes as u8 * 8);
            if let Some(inst) = barrier.filter(|_| only_other_round) {
                self.round_barrier = Some(RoundBarrier { block: self.b.block(), inst, buf, place: touched(from) });
            }
            buf
        };
        let guard = self.is_first_copy(from);
        let base = self.padded_base(from, place);
        for first in (0..from.registers()).step_by(write) {
            let group = vector_group(from, last, write, first);
            let raw: Vec<_> = group.iter().map(|&r| self.storage_of(elem, regs[r])).collect();
            let offset = place.byte(from.reg_index(first)) as i32;
            self.store_vec(Space::Shared(buf, base, offset), elem, &raw, guard);
        }
        self.barrier();
        let base = self.padded_base(to, place);
        let mut out = Vec::with_capacity(to.registers());
        for first in (0..to.registers()).step_by(read) {
            let offset = place.byte(to.reg_index(first)) as i32;
            for raw in self.load_vec(Space::Shared(buf, base, offset), elem, read, None) {
                out.push(self.register_of(elem, raw));
            }
        }
        self.free_shared(buf, Some(touched(to)));
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

#[cfg(test)]
mod soundness {
    use super::*;
    use crate::analysis::testing::seeds;
    use crate::layout::soundness::Random;

    /// What register `r` of each lane holds after the plan, by its own rules.
    fn follow(plan: &ShufflePlan, from: &Layout, to: &Layout, warp: usize) -> Option<Vec<Vec<u32>>> {
        let lanes = 1usize << from.lane.len();
        let mut held: Vec<Vec<u32>> =
            (0..lanes).map(|lane| (0..from.registers()).map(|r| from.index(r, lane, warp)).collect()).collect();
        for &(reg_bit, lane_bit) in &plan.swaps {
            let before = held.clone();
            for (lane, regs) in held.iter_mut().enumerate() {
                let upper = lane >> lane_bit & 1 == 1;
                for low in (0..from.registers()).filter(|r| r >> reg_bit & 1 == 0) {
                    let high = low | 1 << reg_bit;
                    // What the partner sends: the half that does not stay with it.
                    let partner = &before[lane ^ (1 << lane_bit)];
                    if upper {
                        regs[low] = partner[high];
                    } else {
                        regs[high] = partner[low];
                    }
                }
            }
        }
        if !plan.lanes.is_empty() {
            let before = held.clone();
            for (lane, regs) in held.iter_mut().enumerate() {
                let source: usize = plan.lanes.iter().enumerate().map(|(i, &bit)| (lane >> bit & 1) << i).sum();
                regs.clone_from(&before[source]);
            }
        }
        let map = renaming(&plan.after, to)?;
        Some(held.into_iter().map(|regs| map.iter().map(|&r| regs[r]).collect()).collect())
    }

    #[test]
    fn shuffle_plans_bring_every_element_home() {
        let (mut plans, all) = (0, seeds(0, 6000));
        for seed in all.clone() {
            let mut random = Random::of(seed);
            let shape = random.shape(8);
            let (lanes, warps) = (1 + random.below(5), random.below(3));
            let from = random.layout(&shape, lanes, warps);
            let mut to = random.layout(&shape, lanes, warps);
            if random.below(2) == 0 {
                // Layouts that differ within warps only, which is what plans are for.
                let mut bits: Vec<u32> = from.reg.iter().chain(&from.lane).copied().filter(|&b| b != 0).collect();
                for i in (1..bits.len()).rev() {
                    bits.swap(i, random.below(i + 1));
                }
                let lane = from.lane.iter().map(|&b| if b == 0 { 0 } else { bits.pop().unwrap_or(0) }).collect();
                to = Layout { reg: bits, lane, ..from.clone() };
            }
            let Some(plan) = shuffle_plan(&from, &to) else { continue };
            plans += 1;
            for warp in 0..1 << warps {
                let held = follow(&plan, &from, &to, warp).expect("the plan's last layout is renamed");
                for (lane, regs) in held.iter().enumerate() {
                    for (r, &element) in regs.iter().enumerate() {
                        assert_eq!(element, to.index(r, lane, warp), "{from} to {to}: lane {lane}, register {r}");
                    }
                }
            }
        }
        assert!(plans > (all.end - all.start) / 8, "{plans} of the pairs of {all:?} have a plan");
    }

    #[test]
    fn renaming_finds_the_element() {
        let (mut found, all) = (0, seeds(0, 5000));
        for seed in all.clone() {
            let mut random = Random::of(seed);
            let shape = random.shape(8);
            let from = random.layout(&shape, 3, 2);
            let mut to = from.clone();
            for i in (1..to.reg.len()).rev() {
                to.reg.swap(i, random.below(i + 1));
            }
            if random.below(4) == 0 {
                to = random.layout(&shape, 3, 2);
            }
            let Some(map) = renaming(&from, &to) else { continue };
            found += 1;
            for (r, &source) in map.iter().enumerate() {
                assert_eq!(from.index(source, 5, 2), to.index(r, 5, 2), "{from} to {to}");
            }
        }
        assert!(found > (all.end - all.start) / 2, "{found} of {all:?}");
    }
}
