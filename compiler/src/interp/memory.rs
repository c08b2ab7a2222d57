//! The host memory a kernel may touch, and the check of every access against it.
//!
//! All reads and writes of a running kernel go through a [`Window`], so this file holds the interpreter's only unsafe
//! memory accesses (beside the matrix product's).

use crate::dtype::DType;
use std::ptr;

/// A piece of host memory that a kernel may read, and perhaps write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemRegion {
    /// Exposed address of the first byte: an integer, so that regions can be shared between threads.
    start: usize,
    bytes: usize,
    writable: bool,
}

impl MemRegion {
    /// The `bytes` bytes from `start` on.
    ///
    /// # Safety
    /// While a kernel runs with the region:
    /// - the memory stays allocated and is initialised, and may be read (and written, if `writable`) from any thread;
    /// - no Rust reference to memory of a writable region is used, and nobody else writes memory of any region.
    ///
    /// Programs of one grid that write one address, or read what another writes, race, as they do on a GPU. The
    /// interpreter then copies bytes through raw pointers, without references and without order; a caller who
    /// cannot rule such kernels out runs them with [`super::Program::run_serial`].
    pub unsafe fn new(start: *mut u8, bytes: usize, writable: bool) -> Self {
        Self { start: start.expose_provenance(), bytes, writable }
    }

    fn window(&self) -> Window {
        Window { start: self.start as u64, bytes: self.bytes as u64, writable: self.writable }
    }

    /// The memory of a slice, for reading.
    ///
    /// # Safety
    /// The slice outlives every run with the region, and nobody writes it meanwhile.
    pub unsafe fn read_only<T: bytemuck::NoUninit>(slice: &[T]) -> Self {
        // SAFETY: the caller vouches for the memory; a region that is not writable is never written through.
        unsafe { Self::new(slice.as_ptr().cast_mut().cast(), size_of_val(slice), false) }
    }

    /// The memory of a slice, for reading and writing.
    ///
    /// # Safety
    /// The slice outlives every run with the region, and nobody uses it meanwhile.
    pub unsafe fn writable<T: bytemuck::Pod>(slice: &mut [T]) -> Self {
        // SAFETY: the caller vouches for the memory.
        unsafe { Self::new(slice.as_mut_ptr().cast(), size_of_val(slice), true) }
    }
}

/// The memory of a launch: every access of the kernel must lie in one of the regions.
///
/// An access through a view must lie in the region that holds the view's base. Of other addresses it is not known where
/// they come from: one that leaves its region and lands in another passes.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Memory {
    regions: Vec<MemRegion>,
    /// Are races between programs looked for?
    pub(super) check_races: bool,
}

impl Memory {
    /// Memory of these regions. They may overlap.
    pub fn new(regions: Vec<MemRegion>) -> Self {
        Self { regions, check_races: false }
    }

    /// The same memory, in whose use races between the programs of a launch are errors.
    #[must_use]
    pub fn checking_races(mut self, on: bool) -> Self {
        self.check_races = on;
        self
    }

    /// Start and end of each writable region, in the order of their starts.
    pub(super) fn writable(&self) -> Vec<(u64, u64)> {
        let regions = self.regions.iter().filter(|r| r.writable && r.bytes > 0);
        let mut all: Vec<_> = regions.map(|r| (r.start as u64, (r.start + r.bytes) as u64)).collect();
        all.sort_unstable();
        all
    }

    /// The element of `bytes` bytes at an address of these regions, in words.
    pub(super) fn element(&self, address: u64, dtype: DType) -> String {
        let bytes = dtype.bytes();
        match self.regions.iter().find(|r| r.window().contains(address, bytes)) {
            Some(r) => {
                let index = (address - r.start as u64) / bytes as u64;
                format!("element {index} of a buffer of {} {dtype}", r.bytes / bytes)
            }
            None => format!("{dtype} at address {address:#x}"),
        }
    }

    /// The regions that an access may lie in: those that hold the address `base`, if it is known and in a region.
    fn candidates(&self, base: Option<u64>) -> impl Iterator<Item = &MemRegion> {
        let holds = |r: &MemRegion, base: u64| r.window().contains(base, 1);
        let base = base.filter(|&base| self.regions.iter().any(|r| holds(r, base)));
        self.regions.iter().filter(move |r| base.is_none_or(|base| holds(r, base)))
    }

    /// The region that holds the `bytes` bytes from `address` on, if one does and allows the access. `base` is the
    /// address of the view that is accessed, if one is.
    pub(super) fn window(&self, address: u64, bytes: usize, write: bool, base: Option<u64>) -> Option<Window> {
        let allowed = self.candidates(base).filter(|r| r.writable || !write);
        allowed.map(MemRegion::window).find(|w| w.contains(address, bytes))
    }

    /// Says what is wrong with an access that no window allows, and what to do. `address` is exact, also when it does
    /// not fit an address.
    pub(super) fn explain(
        &self,
        address: i128,
        dtype: DType,
        write: bool,
        base: Option<u64>,
    ) -> (String, &'static str) {
        let size = dtype.bytes() as i128;
        let access = if write { "store" } else { "load" };
        let Some((distance, nearest)) = self
            .candidates(base)
            .map(|r| {
                let (start, end) = (r.start as i128, r.start as i128 + r.bytes as i128);
                ((start - address).max(address + size - end).max(0), r)
            })
            .min_by_key(|(distance, r)| (*distance, r.start))
        else {
            return (
                format!("{access} of {dtype} at address {address:#x}, but the launch has no buffers"),
                "pass the buffers that the kernel uses as arguments",
            );
        };
        let offset = address - nearest.start as i128;
        let index = offset.div_euclid(size);
        let buffer = format!("a buffer of {} {dtype}", nearest.bytes / dtype.bytes());
        if address.rem_euclid(size) != 0 {
            return (
                format!("{access} of {dtype} at address {address:#x}, which is not a multiple of {size}"),
                "addresses are aligned to the element size: check the base address of the buffer and what was cast to it",
            );
        }
        if distance == 0 {
            return (
                format!("{access} of {dtype} to element {index} of {buffer} that is read-only"),
                "pass the buffer as an output",
            );
        }
        // Farther than any buffer is long: the address has nothing to do with the nearest one.
        if distance > 1 << 44 {
            return (
                format!("{access} of {dtype} at address {address:#x}, which is far from every buffer of the launch"),
                "the address was not computed from a pointer argument, or the offset overflowed",
            );
        }
        (
            format!("{access} of {dtype} out of bounds: element {index} of {buffer}"),
            "mask the lanes that lie outside, or use a view, whose accesses are checked against its extents",
        )
    }
}

/// A readable stretch of memory, writable too if obtained for writing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    start: u64,
    bytes: u64,
    writable: bool,
}

impl Window {
    /// Contains nothing.
    pub const NONE: Window = Window { start: 0, bytes: 0, writable: false };

    /// Do the `bytes` bytes from `address` on lie inside?
    #[inline(always)]
    pub fn contains(&self, address: u64, bytes: usize) -> bool {
        // An address below the start wraps to a huge distance; a region never spans more than isize::MAX bytes.
        let offset = address.wrapping_sub(self.start);
        offset <= self.bytes && self.bytes - offset >= bytes as u64
    }

    /// Copies memory from `address` on into `out`.
    #[inline(always)]
    pub fn read(&self, address: u64, out: &mut [u8]) {
        assert!(self.contains(address, out.len()), "a window is only read inside");
        let from = ptr::with_exposed_provenance::<u8>(address as usize);
        // SAFETY: the bytes lie in a region, whose constructor's contract makes them readable; `out` is the
        // interpreter's own buffer, which is in no region.
        unsafe { copy_small(from, out.as_mut_ptr(), out.len()) }
    }

    /// Does each of `n` elements of `bytes` bytes lie inside, the first at `address`, each `step` bytes after the last?
    pub fn contains_strided(&self, address: u64, step: i64, n: usize, bytes: usize) -> bool {
        // The last is as far as it goes; what lies between lies inside, too.
        let last = i128::from(address) + i128::from(step) * (n.max(1) as i128 - 1);
        self.contains(address, bytes) && u64::try_from(last).is_ok_and(|last| self.contains(last, bytes))
    }

    /// Copies elements of `T`, the first at `address`, each `step` bytes after the last, into `out`.
    pub fn read_strided<T: bytemuck::Pod>(&self, address: u64, step: i64, out: &mut [T]) {
        let inside = self.contains_strided(address, step, out.len(), size_of::<T>());
        assert!(inside, "a window is only read inside");
        let mut from = ptr::with_exposed_provenance::<u8>(address as usize);
        for o in out {
            // SAFETY: the element lies in a region, between the two whose places were checked; its constructor's
            // contract makes it readable. Any bytes are a `T`.
            *o = unsafe { from.cast::<T>().read_unaligned() };
            from = from.wrapping_offset(step as isize);
        }
    }

    /// Copies elements of `data` to memory, the first to `address`, each `step` bytes after the last.
    pub fn write_strided<T: bytemuck::Pod>(&self, address: u64, step: i64, data: &[T]) {
        let inside = self.writable && self.contains_strided(address, step, data.len(), size_of::<T>());
        assert!(inside, "a window for writing is only written inside");
        let mut to = ptr::with_exposed_provenance_mut::<u8>(address as usize);
        for &x in data {
            // SAFETY: the element lies in a writable region, between the two whose places were checked; its
            // constructor's contract makes it writable.
            unsafe { to.cast::<T>().write_unaligned(x) };
            to = to.wrapping_offset(step as isize);
        }
    }

    /// Copies `data` to memory from `address` on.
    #[inline(always)]
    pub fn write(&self, address: u64, data: &[u8]) {
        assert!(self.writable && self.contains(address, data.len()), "a window for writing is only written inside");
        let to = ptr::with_exposed_provenance_mut::<u8>(address as usize);
        // SAFETY: the bytes lie in a writable region, whose constructor's contract makes them writable; `data` is the
        // interpreter's own buffer, which is in no region.
        unsafe { copy_small(data.as_ptr(), to, data.len()) }
    }
}

/// Copies bytes; a single element as one move rather than a call.
///
/// # Safety
/// As `ptr::copy_nonoverlapping` of bytes.
#[inline(always)]
unsafe fn copy_small(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: the caller's; every arm copies exactly `bytes` bytes.
    unsafe {
        match bytes {
            1 => ptr::copy_nonoverlapping(from, to, 1),
            2 => ptr::copy_nonoverlapping(from, to, 2),
            4 => ptr::copy_nonoverlapping(from, to, 4),
            8 => ptr::copy_nonoverlapping(from, to, 8),
            n => ptr::copy_nonoverlapping(from, to, n),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_ends_where_its_region_ends() {
        let data = [1u32, 2, 3];
        // SAFETY: `data` lives to the end of the test and is not written.
        let memory = Memory::new(vec![unsafe { MemRegion::read_only(&data) }]);
        let start = data.as_ptr() as u64;
        assert!(memory.window(start, 12, false, None).is_some());
        assert!(memory.window(start + 12, 0, false, None).is_some());
        assert!(memory.window(start, 13, false, None).is_none());
        assert!(memory.window(start - 1, 1, false, None).is_none());
        assert!(memory.window(start + 9, 4, false, None).is_none());
        assert!(memory.window(start, 4, true, None).is_none(), "read-only");
        let mut out = [0; 4];
        memory.window(start + 4, 4, false, None).unwrap().read(start + 4, &mut out);
        assert_eq!(u32::from_ne_bytes(out), 2);
    }
}
