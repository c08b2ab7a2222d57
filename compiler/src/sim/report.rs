//! What a kernel did, counted.

/// Memory instructions and the bytes they moved.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Accesses {
    /// Instructions, each counted once for every warp of which a lane takes part.
    pub instructions: u64,
    /// Bytes, summed over lanes.
    pub bytes: u64,
}

/// What a kernel did, summed over all programs. "Instructions" are counted once for every warp that takes part.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Report {
    /// Loads from global memory, those of asynchronous copies among them.
    pub global_loads: Accesses,
    /// Stores to global memory.
    pub global_stores: Accesses,
    /// Loads from shared memory, `ldmatrix` among them.
    pub shared_loads: Accesses,
    /// Stores to shared memory, those of asynchronous copies among them.
    pub shared_stores: Accesses,
    /// Sectors of 32 bytes that the global accesses of each warp touch, summed.
    pub sectors: u64,
    /// The least number of sectors that hold the same number of bytes.
    pub ideal_sectors: u64,
    /// Passes over 32 banks of 4 bytes that the shared accesses of each warp take.
    pub wavefronts: u64,
    /// The same without bank conflicts.
    pub ideal_wavefronts: u64,
    /// Barriers of programs.
    pub barriers: u64,
    /// Barriers of warps.
    pub warp_barriers: u64,
    /// Shuffle instructions.
    pub shuffles: u64,
    /// `mma` instructions.
    pub mmas: u64,
    /// `wgmma` instructions, counted once for every four warps.
    pub wgmmas: u64,
    /// `ldmatrix` instructions.
    pub ldmatrices: u64,
    /// Asynchronous copy instructions.
    pub async_copies: u64,
    /// Instructions run, each counted once for all threads of a program.
    pub steps: u64,
}

impl Report {
    /// Wavefronts more than without bank conflicts.
    pub fn bank_conflicts(&self) -> u64 {
        self.wavefronts - self.ideal_wavefronts
    }

    /// Do the global accesses touch no more sectors than their bytes need?
    pub fn is_coalesced(&self) -> bool {
        self.sectors == self.ideal_sectors
    }

    /// Counts the global access of one warp: the addresses of its lanes, `size` bytes each.
    pub(super) fn global_access(&mut self, addresses: &[u64], size: u64) {
        let (mut sectors, mut bytes) = (0, 0);
        let mut sorted = addresses.to_vec();
        sorted.sort_unstable();
        let (mut next_byte, mut next_sector) = (0, 0);
        for a in sorted {
            // Only what earlier lanes did not count: lanes may overlap.
            let (from, to) = (a.max(next_byte), a + size);
            bytes += to.saturating_sub(from);
            let (first, end) = ((a / 32).max(next_sector), (to - 1) / 32 + 1);
            sectors += end.saturating_sub(first);
            (next_byte, next_sector) = (next_byte.max(to), next_sector.max(end));
        }
        self.sectors += sectors;
        self.ideal_sectors += u64::div_ceil(bytes, 32);
    }

    /// Counts the shared access of one warp: byte addresses of its lanes, `size` bytes each. The hardware serves 128
    /// bytes at once: 32 lanes of up to 4 bytes, 16 of 8, or 8 of 16; lanes that read one word are served together.
    pub(super) fn shared_access(&mut self, lanes: &[(u32, usize)], size: usize) {
        let per_pass = 128 / size.max(4);
        let mut rest = lanes;
        while let Some(&(first, _)) = rest.first() {
            let group = first as usize / per_pass;
            let end = rest.iter().position(|&(lane, _)| lane as usize / per_pass != group).unwrap_or(rest.len());
            let (pass, after) = rest.split_at(end);
            self.wavefronts += wavefronts(pass.iter().map(|&(_, at)| at), size);
            self.ideal_wavefronts += 1;
            rest = after;
        }
    }
}

/// The most different words that one bank has to give.
fn wavefronts(addresses: impl Iterator<Item = usize>, size: usize) -> u64 {
    let mut words: Vec<usize> = addresses.flat_map(|at| at / 4..=(at + size - 1) / 4).collect();
    words.sort_unstable();
    words.dedup();
    let mut banks = [0; 32];
    for w in words {
        banks[w % 32] += 1;
    }
    banks.into_iter().max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conflicts(size: usize, address: impl Fn(u32) -> usize) -> (u64, u64) {
        let lanes: Vec<_> = (0..32).map(|l| (l, address(l))).collect();
        let mut r = Report::default();
        r.shared_access(&lanes, size);
        (r.wavefronts, r.ideal_wavefronts)
    }

    #[test]
    fn bank_conflicts_are_counted_by_pass() {
        assert_eq!(conflicts(4, |l| 4 * l as usize), (1, 1));
        assert_eq!(conflicts(4, |_| 64), (1, 1), "one word for all");
        assert_eq!(conflicts(4, |l| 8 * l as usize), (2, 1));
        assert_eq!(conflicts(4, |l| 128 * l as usize), (32, 1));
        assert_eq!(conflicts(4, |l| 132 * l as usize), (1, 1), "padded by a word");
        assert_eq!(conflicts(2, |l| 2 * l as usize), (1, 1), "two lanes share a word");
        assert_eq!(conflicts(8, |l| 8 * l as usize), (2, 2));
        assert_eq!(conflicts(16, |l| 16 * l as usize), (4, 4));
        assert_eq!(conflicts(16, |l| 128 * l as usize), (32, 4));
        assert_eq!(conflicts(16, |l| 128 * l as usize + 16 * (l as usize % 8)), (4, 4), "swizzled");
    }

    #[test]
    fn sectors_are_counted_once() {
        let count = |size: u64, address: fn(u64) -> u64| {
            let mut r = Report::default();
            r.global_access(&(0..32).map(address).collect::<Vec<_>>(), size);
            (r.sectors, r.ideal_sectors)
        };
        assert_eq!(count(4, |l| 4 * l), (4, 4));
        assert_eq!(count(4, |l| 16 + 4 * l), (5, 4));
        assert_eq!(count(4, |l| 4 * (31 - l)), (4, 4));
        assert_eq!(count(4, |l| 64 * l), (32, 4));
        assert_eq!(count(16, |l| 16 * l), (16, 16));
        assert_eq!(count(4, |_| 8), (1, 1));
    }
}
