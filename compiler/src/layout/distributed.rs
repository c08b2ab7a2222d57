//! Distributed layouts: tiles in registers.

use crate::tile::Shape;
use std::fmt;

/// How a tile of some shape is spread over the registers, lanes and warps of a program.
///
/// Each basis is what its bit contributes to the row-major index of the element: one power of two, or 0 for a bit in
/// which all hold copies. Register bases are never 0.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Layout {
    /// The tile's shape.
    pub shape: Shape,
    /// Bases of the register number's bits, lowest first.
    pub reg: Vec<u32>,
    /// Bases of the lane's bits, lowest first.
    pub lane: Vec<u32>,
    /// Bases of the warp's bits, lowest first.
    pub warp: Vec<u32>,
}

/// The lowest bit and the number of bits of dimension `axis` in a row-major index.
pub fn axis_bits(shape: &Shape, axis: usize) -> (u32, u32) {
    let low = shape.dims()[axis + 1..].iter().map(|d| d.trailing_zeros()).sum();
    (low, shape.dims()[axis].trailing_zeros())
}

/// The bits of dimension `axis` in a row-major index.
pub fn axis_mask(shape: &Shape, axis: usize) -> u32 {
    let (low, bits) = axis_bits(shape, axis);
    ((1 << bits) - 1) << low
}

impl Layout {
    /// The layout of a scalar: every thread holds a copy in one register.
    pub fn scalar(lanes: u32, warps: u32) -> Self {
        Self {
            shape: Shape::SCALAR,
            reg: vec![],
            lane: vec![0; lanes.trailing_zeros() as usize],
            warp: vec![0; warps.trailing_zeros() as usize],
        }
    }

    /// Hands out the bits of the dimensions in `order` (fastest first): `vec` consecutive elements to registers, then
    /// bits to lanes, to warps, and what is left to registers. `vec` is lowered until every thread has work.
    pub fn blocked(shape: &Shape, order: &[usize], vec: usize, lanes: u32, warps: u32) -> Self {
        let (lane_bits, warp_bits) = (lanes.trailing_zeros(), warps.trailing_zeros());
        let mut bits: Vec<u32> = Vec::new();
        for &axis in order {
            let (low, n) = axis_bits(shape, axis);
            bits.extend((low..low + n).map(|b| 1 << b));
        }
        let fastest = order.first().map_or(0, |&axis| axis_bits(shape, axis).1);
        let spare = (bits.len() as u32).saturating_sub(lane_bits + warp_bits);
        let vec_bits = vec.trailing_zeros().min(fastest).min(spare) as usize;
        let rest = bits.split_off(vec_bits);
        let mut rest = rest.into_iter();
        let mut take = |n: u32| -> Vec<u32> { (0..n).map(|_| rest.next().unwrap_or(0)).collect() };
        let (lane, warp) = (take(lane_bits), take(warp_bits));
        bits.extend(rest);
        Self { shape: shape.clone(), reg: bits, lane, warp }
    }

    /// The usual layout of a tile nobody has wishes for: row-major, up to 4 elements a thread side by side.
    pub fn default_for(shape: &Shape, lanes: u32, warps: u32) -> Self {
        let order: Vec<usize> = (0..shape.rank()).rev().collect();
        Self::blocked(shape, &order, 4, lanes, warps)
    }

    /// How many registers each thread has.
    pub fn registers(&self) -> usize {
        1 << self.reg.len()
    }

    /// How many threads there are.
    pub fn threads(&self) -> usize {
        1 << (self.lane.len() + self.warp.len())
    }

    /// What register `reg` contributes to the row-major index.
    pub fn reg_index(&self, reg: usize) -> u32 {
        apply(&self.reg, reg)
    }

    /// The row-major index of the element that register `reg` of thread `lane` of `warp` holds.
    pub fn index(&self, reg: usize, lane: usize, warp: usize) -> u32 {
        apply(&self.reg, reg) ^ apply(&self.lane, lane) ^ apply(&self.warp, warp)
    }

    /// What register `reg` contributes to the coordinate along `axis`.
    pub fn reg_coord(&self, reg: usize, axis: usize) -> u32 {
        let (low, bits) = axis_bits(&self.shape, axis);
        (self.reg_index(reg) >> low) & ((1 << bits) - 1)
    }

    /// The lane's and the warp's bits in which all hold copies.
    pub fn copies(&self) -> (u32, u32) {
        (zeros(&self.lane), zeros(&self.warp))
    }

    /// Does each element lie in one thread only?
    pub fn is_injective(&self) -> bool {
        self.copies() == (0, 0)
    }

    /// The same elements in another shape (row-major).
    #[must_use]
    pub fn reshape(&self, shape: &Shape) -> Self {
        Self { shape: shape.clone(), ..self.clone() }
    }

    fn map(&self, shape: Shape, f: impl Fn(u32) -> u32) -> Self {
        let map = |bases: &[u32]| bases.iter().map(|&b| f(b)).collect::<Vec<_>>();
        let reg = map(&self.reg).into_iter().filter(|&b| b != 0).collect();
        Self { shape, reg, lane: map(&self.lane), warp: map(&self.warp) }
    }

    /// The layout of the tile whose dimension `i` is dimension `perm[i]` of this one.
    #[must_use]
    pub fn permute(&self, perm: &[u8]) -> Self {
        let dims: Vec<_> = perm.iter().map(|&p| self.shape.dims()[usize::from(p)]).collect();
        let shape = Shape::new(dims);
        let moves: Vec<_> = perm
            .iter()
            .enumerate()
            .map(|(to, &from)| (axis_bits(&self.shape, from.into()), axis_bits(&shape, to).0))
            .collect();
        self.map(shape.clone(), |basis| {
            let mut out = 0;
            for &((low, bits), to) in &moves {
                out |= ((basis >> low) & ((1 << bits) - 1)) << to;
            }
            out
        })
    }

    /// Of the operand of [`Layout::permute`]: the layout that gives `self` as its result.
    #[must_use]
    pub fn unpermute(&self, perm: &[u8]) -> Self {
        let mut inverse = vec![0; perm.len()];
        for (to, &from) in perm.iter().enumerate() {
            inverse[usize::from(from)] = to as u8;
        }
        self.permute(&inverse)
    }

    /// The layout of the tile without dimension `axis`: threads that differ along it hold copies.
    #[must_use]
    pub fn without(&self, axis: usize) -> Self {
        let (low, bits) = axis_bits(&self.shape, axis);
        let below = (1 << low) - 1;
        self.map(self.shape.without(axis), |b| (b & below) | ((b >> (low + bits)) << low))
    }

    /// The layout that an operand of shape `from` needs so that repeating it gives this layout.
    #[must_use]
    pub fn broadcast_operand(&self, from: &Shape) -> Self {
        let mut out = self.clone();
        if from.rank() == 0 {
            return out.map(Shape::SCALAR, |_| 0);
        }
        for axis in 0..from.rank() {
            if from.dims()[axis] != self.shape.dims()[axis] {
                // The extent becomes 1: drop the dimension's bits and close the gap.
                let mut dims = out.shape.dims().to_vec();
                let (low, bits) = axis_bits(&out.shape, axis);
                dims[axis] = 1;
                let below = (1 << low) - 1;
                out = out.map(Shape::new(dims), |b| (b & below) | ((b >> (low + bits)) << low));
            }
        }
        out
    }

    /// The register that holds the same element (relative to the thread's) as register `reg` of `of`, given that `self` is
    /// [`Layout::broadcast_operand`] or [`Layout::without`] of a layout whose register contributes `index` here.
    pub fn reg_of_index(&self, index: u32) -> Option<usize> {
        let mut reg = 0;
        let mut left = index;
        for (bit, &basis) in self.reg.iter().enumerate() {
            if index & basis != 0 {
                reg |= 1 << bit;
                left &= !basis;
            }
        }
        (left == 0).then_some(reg)
    }

    /// How many consecutive elements along `axis`, starting at a multiple of that number, the lowest registers of a
    /// thread hold.
    pub fn run_along(&self, axis: usize) -> usize {
        let (low, bits) = axis_bits(&self.shape, axis);
        let n = (0..bits).take_while(|&i| self.reg.get(i as usize) == Some(&(1 << (low + i)))).count();
        1 << n
    }
}

fn apply(bases: &[u32], number: usize) -> u32 {
    bases.iter().enumerate().filter(|&(bit, _)| number >> bit & 1 == 1).fold(0, |index, (_, &basis)| index ^ basis)
}

fn zeros(bases: &[u32]) -> u32 {
    bases.iter().enumerate().filter(|&(_, &b)| b == 0).fold(0, |mask, (bit, _)| mask | 1 << bit)
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{} reg {:?} lane {:?} warp {:?}}}", self.shape, self.reg, self.lane, self.warp)
    }
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn owners(l: &Layout) -> HashMap<u32, usize> {
        let mut seen = HashMap::new();
        for warp in 0..1 << l.warp.len() {
            for lane in 0..1 << l.lane.len() {
                for reg in 0..l.registers() {
                    *seen.entry(l.index(reg, lane, warp)).or_default() += 1;
                }
            }
        }
        seen
    }

    #[test]
    fn blocked_covers_every_element_equally() {
        for dims in [vec![1], vec![1024], vec![64, 64], vec![128, 32], vec![8, 4, 16], vec![1, 2048], vec![2, 2]] {
            let shape = Shape::new(dims);
            for order in [(0..shape.rank()).rev().collect::<Vec<_>>(), (0..shape.rank()).collect()] {
                for (lanes, warps) in [(32, 4), (1, 128), (8, 16), (64, 2), (32, 1)] {
                    for vec in [1, 4, 8] {
                        let l = Layout::blocked(&shape, &order, vec, lanes, warps);
                        let owners = owners(&l);
                        assert_eq!(owners.len(), shape.elements(), "{l}");
                        let each = l.registers() * l.threads() / shape.elements();
                        assert!(owners.values().all(|&n| n == each), "{l}");
                        let (lane, warp) = l.copies();
                        assert_eq!(each, 1 << (lane.count_ones() + warp.count_ones()), "{l}");
                    }
                }
            }
        }
    }

    #[test]
    fn vectors_lie_along_the_fastest_dimension() {
        let l = Layout::blocked(&Shape::from([64, 64]), &[1, 0], 8, 32, 4);
        assert_eq!(l.run_along(1), 8);
        assert_eq!(l.run_along(0), 1);
        let t = Layout::blocked(&Shape::from([64, 64]), &[0, 1], 8, 32, 4);
        assert_eq!(t.run_along(0), 8);
        assert_eq!(t.permute(&[1, 0]), l);
        // Too few elements for vectors of 8: every thread has work first.
        assert_eq!(Layout::blocked(&Shape::from([256]), &[0], 8, 32, 4).registers(), 2);
    }

    #[test]
    fn permutations_undo() {
        let l = Layout::blocked(&Shape::from([4, 8, 16]), &[2, 0, 1], 4, 32, 4);
        for perm in [[0, 1, 2], [2, 0, 1], [1, 2, 0], [2, 1, 0]] {
            assert_eq!(l.permute(&perm).unpermute(&perm), l);
        }
    }

    #[test]
    fn dropped_dimensions_leave_copies() {
        let l = Layout::blocked(&Shape::from([16, 64]), &[1, 0], 4, 32, 4);
        let rows = l.without(1);
        assert_eq!(rows.shape, Shape::from([16]));
        // 16 lanes lie along a row; the fifth lane bit and the warps lie along the rows.
        assert_eq!(rows.copies(), (0b1111, 0));
        let column = l.broadcast_operand(&Shape::from([16, 1]));
        assert_eq!(column, rows.reshape(&Shape::from([16, 1])));
        assert_eq!(l.broadcast_operand(&Shape::SCALAR).registers(), 1);
        for reg in 0..l.registers() {
            let index = l.reg_index(reg) >> 6;
            assert_eq!(rows.reg_index(rows.reg_of_index(index).unwrap()), index);
        }
    }
}
