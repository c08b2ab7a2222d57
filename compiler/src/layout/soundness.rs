//! Layouts at random: what holds of them all. See the parents for what each operation means.

use super::{Layout, Padded, Swizzle};
use crate::analysis::testing::seeds;
use crate::layout::distributed::axis_bits;
use crate::tile::Shape;
use std::collections::HashMap;

/// Numbers at random, the same every time (xorshift).
pub(crate) struct Random(pub u64);

impl Random {
    /// Those of a seed.
    pub fn of(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 20) % n as u64) as usize
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }

    /// A shape of one to three dimensions with at most `2^bits` elements.
    pub fn shape(&mut self, bits: usize) -> Shape {
        let mut dims = vec![1; 1 + self.below(3)];
        for _ in 0..self.below(bits + 1) {
            let axis = self.below(dims.len());
            dims[axis] *= 2;
        }
        Shape::new(dims)
    }

    /// Any layout there can be of `shape` on so many lanes and warps: bits and copies anywhere.
    pub fn layout(&mut self, shape: &Shape, lane_bits: usize, warp_bits: usize) -> Layout {
        let mut places: Vec<u32> = (0..shape.elements().ilog2()).map(|b| 1 << b).collect();
        let threads = lane_bits + warp_bits;
        let copies = self.below(threads + 1).max(threads.saturating_sub(places.len()));
        self.shuffle(&mut places);
        let mut thread = vec![0; copies];
        thread.extend(places.drain(..threads - copies));
        self.shuffle(&mut thread);
        let warp = thread.split_off(lane_bits);
        if self.below(2) == 0 {
            places.sort_unstable();
        }
        Layout { shape: shape.clone(), reg: places, lane: thread, warp }
    }
}

/// Element by register, lane and warp.
fn elements(l: &Layout) -> impl Iterator<Item = ((usize, usize, usize), u32)> {
    let (regs, lanes, warps) = (l.registers(), 1usize << l.lane.len(), 1usize << l.warp.len());
    (0..warps)
        .flat_map(move |w| (0..lanes).flat_map(move |n| (0..regs).map(move |r| (r, n, w))))
        .map(|(r, n, w)| ((r, n, w), l.index(r, n, w)))
}

fn coords(shape: &Shape, index: u32) -> Vec<u32> {
    (0..shape.rank())
        .map(|axis| {
            let (low, bits) = axis_bits(shape, axis);
            (index >> low) & ((1 << bits) - 1)
        })
        .collect()
}

#[test]
fn operations_on_layouts_move_elements_as_they_say() {
    for seed in seeds(0, 500) {
        let mut random = Random::of(seed);
        let shape = random.shape(9);
        let (lanes, warps) = (random.below(6), random.below(4));
        let l = random.layout(&shape, lanes, warps);
        let mut owners: HashMap<u32, usize> = HashMap::new();
        elements(&l).for_each(|(_, e)| *owners.entry(e).or_default() += 1);
        assert_eq!(owners.len(), shape.elements(), "{l}");
        assert_eq!(l.is_injective(), owners.values().all(|&n| n == 1), "{l}");
        let (lane_copies, warp_copies) = l.copies();
        assert!(owners.values().all(|&n| n == 1 << (lane_copies.count_ones() + warp_copies.count_ones())), "{l}");

        let rank = shape.rank();
        let mut perm: Vec<u8> = (0..rank as u8).collect();
        random.shuffle(&mut perm);
        let p = l.permute(&perm);
        for ((at, from), (also_at, to)) in elements(&l).zip(elements(&p)) {
            assert_eq!(at, also_at);
            let (from, to) = (coords(&shape, from), coords(&p.shape, to));
            assert!(
                perm.iter().zip(&to).all(|(&axis, &c)| from[usize::from(axis)] == c),
                "{l} permuted by {perm:?} is {p}"
            );
        }
        assert_eq!(p.unpermute(&perm), l);

        let axis = random.below(rank);
        let w = l.without(axis);
        for ((r, n, warp), e) in elements(&l) {
            let mut kept = coords(&shape, e);
            kept.remove(axis);
            // The register is that of the same place without the axis.
            let index = {
                let (low, bits) = axis_bits(&shape, axis);
                let reg = l.reg_index(r);
                (reg & ((1 << low) - 1)) | (reg >> (low + bits) << low)
            };
            let reg = w.reg_of_index(index).unwrap_or_else(|| panic!("{w} has no register for {index} of {l}"));
            assert_eq!(coords(&w.shape, w.index(reg, n, warp)), kept, "{l} without {axis} is {w}");
        }

        let dims: Vec<usize> = shape.dims().iter().map(|&d| if random.below(2) == 0 { 1 } else { d }).collect();
        let from = Shape::new(dims);
        let o = l.broadcast_operand(&from);
        assert_eq!(o.shape, from);
        for ((_, n, warp), e) in elements(&l) {
            let wanted: Vec<u32> =
                coords(&shape, e).iter().zip(from.dims()).map(|(&c, &d)| if d == 1 { 0 } else { c }).collect();
            let found = (0..o.registers()).any(|r| coords(&from, o.index(r, n, warp)) == wanted);
            assert!(found, "{l} needs {wanted:?} in {o}");
        }

        let run = l.run_along(axis) as u32;
        let (low, _) = axis_bits(&shape, axis);
        for ((r, n, warp), e) in elements(&l) {
            let first = r as u32 & !(run - 1);
            assert_eq!(e, l.index(first as usize, n, warp) + ((r as u32 - first) << low), "{l} along {axis}");
        }
    }
}

#[test]
fn blocked_layouts_cover_and_are_fair() {
    for seed in seeds(0, 300) {
        let mut random = Random::of(seed);
        let shape = random.shape(12);
        let mut order: Vec<usize> = (0..shape.rank()).collect();
        random.shuffle(&mut order);
        let (lanes, warps, vec) = (1 << random.below(7), 1 << random.below(6), 1 << random.below(5));
        let l = Layout::blocked(&shape, &order, vec, lanes, warps);
        let threads = (lanes * warps) as usize;
        assert_eq!(l.threads(), threads);
        assert_eq!(l.registers(), shape.elements().div_ceil(threads).max(1), "{l}: as few registers as can be");
        let seen: std::collections::HashSet<u32> = elements(&l).map(|(_, e)| e).collect();
        assert_eq!(seen.len(), shape.elements(), "{l}");
        assert!(
            l.run_along(order[0]) >= vec.min(l.registers()).min(shape.dims()[order[0]]),
            "{l} with {vec} side by side"
        );
    }
}

#[test]
fn padded_places_are_apart_and_aligned() {
    for seed in seeds(0, 300) {
        let mut random = Random::of(seed);
        let shape = random.shape(11);
        let (lanes, warps) = (random.below(6), random.below(4));
        let (from, to) = (random.layout(&shape, lanes, warps), random.layout(&shape, lanes, warps));
        let elem_bytes = 1u32 << random.below(4);
        let last = shape.rank() - 1;
        let vec = |l: &Layout| l.run_along(last).min(16 / elem_bytes as usize) as u32;
        let p = Padded::choose(elem_bytes, &[(&from, vec(&from)), (&to, vec(&to))]);
        let mut end = 0;
        for index in 0..shape.elements() as u32 {
            assert!(p.byte(index) >= end && p.byte(index).is_multiple_of(elem_bytes), "{p:?} at {index}");
            end = p.byte(index) + elem_bytes;
        }
        assert_eq!(p.bytes(shape.elements() as u32), end);
        for l in [&from, &to] {
            let n = vec(l);
            for ((r, lane, warp), e) in elements(l) {
                // The byte of a sum of bits is the sum of their bytes: so registers are constants of an access.
                assert_eq!(p.byte(e), p.byte(l.reg_index(r)) + p.byte(l.index(0, lane, warp)), "{p:?} {l}");
                if (r as u32).is_multiple_of(n) {
                    assert_eq!(p.byte(e) % (n * elem_bytes), 0, "{p:?} {l}: accesses are aligned");
                    assert_eq!(p.byte(e + n - 1), p.byte(e) + (n - 1) * elem_bytes, "{p:?} {l}: and in one piece");
                }
            }
        }
    }
}

#[test]
fn swizzled_places_are_apart() {
    for row_bytes in [16, 32, 64, 128, 256, 512] {
        let rows = 32;
        let s = Swizzle::new(rows, row_bytes);
        let mut all: Vec<u32> = (0..rows).flat_map(|r| (0..row_bytes / 16).map(move |c| s.byte(r, c))).collect();
        all.sort_unstable();
        assert!(all.iter().enumerate().all(|(i, &b)| b == i as u32 * 16), "{row_bytes}");
        // Exchanging is linear in the row: what disjoint bits of rows and chunks contribute is exchanged together.
        for row in 0..rows {
            for bit in [1, 2, 4, 8, 16].into_iter().filter(|b| row & b == 0) {
                for chunk in 0..row_bytes / 16 {
                    let (shift, mask) = s.shift_and_mask();
                    let (block, within) = (chunk / s.chunks(), chunk % s.chunks());
                    let moved = ((bit >> shift) & mask) ^ within ^ ((row >> shift) & mask);
                    let place = block * s.block_bytes + (row | bit) * s.row_bytes + moved * 16;
                    assert_eq!(s.byte(row | bit, chunk), place);
                }
            }
        }
    }
}
