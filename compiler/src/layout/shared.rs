//! Layouts of tiles in shared memory.

use super::Layout;

/// Row-major with a gap after every `row` elements: `byte = index * elem_bytes + (index / row) * pad`. Since `row` is a
/// power of two, the bytes of sums of disjoint bits are sums of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Padded {
    /// Bytes of an element.
    pub elem_bytes: u32,
    /// Elements between gaps, a power of two.
    pub row: u32,
    /// Bytes of a gap.
    pub pad: u32,
}

impl Padded {
    /// Where the element of this row-major index lies.
    pub fn byte(&self, index: u32) -> u32 {
        index * self.elem_bytes + (index / self.row) * self.pad
    }

    /// Bytes that `elements` take.
    pub fn bytes(&self, elements: u32) -> u32 {
        self.byte(elements - 1) + self.elem_bytes
    }

    /// The gap with the fewest bank conflicts when tiles in `layouts` are accessed `vecs` elements at a time. Gaps are
    /// multiples of the widest access, so that accesses stay aligned.
    pub fn choose(elem_bytes: u32, accesses: &[(&Layout, u32)]) -> Self {
        let shape = &accesses[0].0.shape;
        let row = shape.dims().last().copied().unwrap_or(1).max((128 / elem_bytes) as usize) as u32;
        let widest = accesses.iter().map(|&(_, vec)| vec * elem_bytes).max().unwrap_or(4).max(4);
        let candidates = [0, 4, 8, 16, 32, 64].into_iter().filter(|pad| pad % widest == 0);
        let cost = |pad: u32| {
            let layout = Self { elem_bytes, row, pad };
            let wavefronts: u32 = accesses.iter().map(|&(l, vec)| layout.wavefronts(l, vec)).sum();
            (wavefronts, pad)
        };
        Self { elem_bytes, row, pad: candidates.min_by_key(|&p| cost(p)).unwrap_or(0) }
    }

    /// How many passes over the 32 banks of 4 bytes one access of `vec` elements by the first warp takes.
    fn wavefronts(&self, layout: &Layout, vec: u32) -> u32 {
        let lanes = 1usize << layout.lane.len();
        let access = vec * self.elem_bytes;
        // A warp is served in groups of lanes that together ask for 128 bytes.
        let group = (128 / access.max(4)).max(1) as usize;
        let mut total = 0;
        for first in (0..lanes).step_by(group) {
            let mut words: Vec<u32> = (first..(first + group).min(lanes))
                .flat_map(|lane| {
                    let byte = self.byte(layout.index(0, lane, 0));
                    byte / 4..(byte + access).div_ceil(4)
                })
                .collect();
            words.sort_unstable();
            words.dedup();
            let mut banks = [0u32; 32];
            for word in words {
                banks[(word % 32) as usize] += 1;
            }
            total += banks.into_iter().max().unwrap_or(0);
        }
        total
    }
}

/// A matrix of 16-byte chunks whose place in a row is exchanged by the row, so that both rows and columns of chunks fall
/// into different banks: byte `row * row_bytes + ((chunk ^ f(row)) * 16)`, as `ldmatrix`, TMA and wgmma have it. A matrix
/// wider than a row is cut into blocks of columns, one after the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Swizzle {
    /// Bytes of a row: a power of two, 16 to 128.
    pub row_bytes: u32,
    /// Bytes of a block, which is all rows of it.
    pub block_bytes: u32,
    /// Bytes of a row of the matrix.
    pub width: u32,
}

impl Swizzle {
    /// For a matrix of so many rows of `width` bytes.
    pub fn new(rows: u32, width: u32) -> Self {
        let row_bytes = width.min(128);
        Self { row_bytes, block_bytes: rows * row_bytes, width }
    }

    /// The chunks of a row of a block; a power of two.
    pub fn chunks(self) -> u32 {
        self.row_bytes.div_ceil(16)
    }

    /// Is the matrix wider than a block?
    pub fn has_blocks(self) -> bool {
        self.width > self.row_bytes
    }

    /// `f(row)` is `(row >> shift) & mask`.
    pub fn shift_and_mask(self) -> (u32, u32) {
        match self.row_bytes {
            16 => (3, 0),
            32 => (2, 1),
            64 => (1, 3),
            _ => (0, 7),
        }
    }

    /// Where chunk `chunk` of row `row` lies.
    pub fn byte(self, row: u32, chunk: u32) -> u32 {
        let (shift, mask) = self.shift_and_mask();
        let (block, chunk) = (chunk / self.chunks(), chunk % self.chunks());
        block * self.block_bytes + row * self.row_bytes + ((chunk ^ ((row >> shift) & mask)) * 16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tile::Shape;

    #[test]
    fn swizzled_columns_fall_into_different_banks() {
        for row_bytes in [32, 64, 128, 256, 512] {
            let s = Swizzle::new(16, row_bytes);
            let mut all: Vec<_> = (0..16).flat_map(|r| (0..row_bytes / 16).map(move |c| s.byte(r, c))).collect();
            for chunk in 0..row_bytes / 16 {
                // The eight rows of one 8x8 matrix of `ldmatrix`.
                let mut banks: Vec<_> = (0..8).map(|row| s.byte(row, chunk) % 128 / 16).collect();
                banks.sort_unstable();
                banks.dedup();
                assert_eq!(banks.len(), 8, "rows of {row_bytes} bytes, chunk {chunk}");
            }
            all.sort_unstable();
            all.dedup();
            assert_eq!(all.len() as u32, row_bytes, "each chunk has its own place");
        }
    }

    #[test]
    fn padding_removes_conflicts() {
        // The accumulator of mma.m16n8: rows by groups of 4 lanes, two columns a lane.
        let shape = Shape::from([16, 64]);
        let acc = Layout { shape: shape.clone(), reg: vec![1, 512], lane: vec![2, 4, 64, 128, 256], warp: vec![] };
        let rows = Layout::blocked(&shape, &[1, 0], 4, 32, 1);
        let p = Padded::choose(4, &[(&acc, 2), (&rows, 4)]);
        assert_eq!(p.wavefronts(&acc, 2), 2);
        assert_eq!(p.wavefronts(&rows, 4), 4);
        assert_eq!(p.byte(64) - p.byte(63), 4 + p.pad);
    }
}
