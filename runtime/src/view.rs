//! Views and slices: what of a buffer a kernel gets.

use crate::buffer::{Buffer, Memory};
use crate::element::Element;
use crate::error::{Error, Result};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use tilewright_compiler::DType;

/// Most dimensions of a view.
pub const MAX_RANK: usize = tilewright_compiler::tile::Shape::MAX_RANK;

/// A strided tensor in a buffer: base, extents, strides in elements. Every element lies inside the buffer.
pub struct View<'a, T, const R: usize> {
    pub(crate) memory: &'a Arc<Memory>,
    pub(crate) shape: Strided,
    dims: [usize; R],
    elements: PhantomData<fn() -> T>,
}

/// The checked geometry of a view, of any rank.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Strided {
    pub dtype: DType,
    pub rank: u8,
    /// Bytes from the start of the memory to element `[0, 0, ..]`.
    pub base: u64,
    /// The bytes the elements lie in, `lo..hi`; empty without elements.
    pub lo: u64,
    pub hi: u64,
    /// The largest distance of an element from the base, in elements.
    pub reach: u64,
    pub dims: [i32; MAX_RANK],
    pub strides: [i64; MAX_RANK],
}

impl Strided {
    /// Checks a geometry against memory of `bytes`.
    pub fn new(bytes: u64, dtype: DType, offset: usize, dims: &[usize], strides: &[isize]) -> Result<Self> {
        let rank = dims.len();
        if !(1..=MAX_RANK).contains(&rank) || strides.len() != rank {
            return Err(Error::View(format!(
                "a view has 1 to {MAX_RANK} dimensions and one stride for each, not {rank} extents and {} strides",
                strides.len()
            )));
        }
        let mut s = Strided {
            dtype,
            rank: rank as u8,
            base: 0,
            lo: 0,
            hi: 0,
            reach: 0,
            dims: [0; MAX_RANK],
            strides: [0; MAX_RANK],
        };
        // Offsets of the first and last element in memory order; i128 cannot overflow: 8 terms below 2^31 * 2^63.
        let (mut low, mut high) = (offset as i128, offset as i128);
        let mut empty = false;
        for (i, (&dim, &stride)) in dims.iter().zip(strides).enumerate() {
            s.dims[i] = i32::try_from(dim).map_err(|_| {
                Error::View(format!(
                    "extent {dim} of dimension {i} is over {}; split the tensor, or view it with more dimensions",
                    i32::MAX
                ))
            })?;
            s.strides[i] = stride as i64;
            empty |= dim == 0;
            let last = (dim as i128 - 1).max(0) * stride as i128;
            if last < 0 { low += last } else { high += last }
        }
        let size = dtype.bytes() as u64;
        let len = bytes / size;
        if empty {
            // Nothing is accessed; the base stays inside so that it is a plausible address.
            s.base = (offset as u64).min(len) * size;
            (s.lo, s.hi) = (s.base, s.base);
            return Ok(s);
        }
        if low < 0 || high >= i128::from(len) {
            return Err(Error::View(format!(
                "extents {dims:?} with strides {strides:?} from element {offset} reach elements {low} to {high}, but the buffer has {len} elements of {dtype}"
            )));
        }
        s.base = offset as u64 * size;
        s.lo = low as u64 * size;
        s.hi = (high as u64 + 1) * size;
        s.reach = (offset as i128 - low).max(high - offset as i128) as u64;
        Ok(s)
    }
}

impl<'a, T, const R: usize> View<'a, T, R> {
    pub(crate) fn new(
        memory: &'a Arc<Memory>,
        dtype: DType,
        offset: usize,
        dims: [usize; R],
        strides: [isize; R],
    ) -> Result<Self> {
        let shape = Strided::new(memory.bytes(), dtype, offset, &dims, &strides)?;
        Ok(Self { memory, shape, dims, elements: PhantomData })
    }

    /// The extents, outermost first.
    pub fn dims(&self) -> [usize; R] {
        self.dims
    }

    /// The strides in elements.
    pub fn strides(&self) -> [isize; R] {
        std::array::from_fn(|i| self.shape.strides[i] as isize)
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.shape.dtype
    }

    /// The device whose memory this is.
    pub fn device(&self) -> crate::Device {
        self.memory.device()
    }
}

impl<T, const R: usize> Clone for View<'_, T, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, const R: usize> Copy for View<'_, T, R> {}

impl<T, const R: usize> fmt::Debug for View<'_, T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "View({} {:?}, strides {:?})", self.dtype(), self.dims, self.strides())
    }
}

/// A part of a buffer, as a kernel's pointer argument. The pointer is the address of its first element.
pub struct Slice<'a, T> {
    buffer: &'a Buffer<T>,
    pub(crate) memory: &'a Arc<Memory>,
    pub(crate) dtype: DType,
    start: usize,
    len: usize,
}

impl<'a, T: Element> Slice<'a, T> {
    pub(crate) fn new(buffer: &'a Buffer<T>, start: usize, len: usize) -> Self {
        Self { buffer, memory: buffer.memory(), dtype: T::DTYPE, start, len }
    }

    /// A copy of the elements, after the work submitted before.
    ///
    /// # Errors
    /// What the driver says.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let mut host = Vec::with_capacity(self.len);
        self.buffer.read_into(self.start, self.len, host.as_mut_ptr())?;
        // SAFETY: `read_into` has initialised `len` elements.
        unsafe { host.set_len(self.len) };
        Ok(host)
    }

    /// Copies all elements from `host`, after the work submitted before.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], or what the driver says.
    pub fn copy_from(&self, host: &[T]) -> Result<()> {
        if host.len() != self.len {
            return Err(Error::LengthMismatch { what: "from the host", buffer: self.len, host: host.len() });
        }
        self.buffer.write_at(self.start, host)
    }
}

impl<T> Slice<'_, T> {
    /// How many elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Has it no elements?
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes of the slice within its memory.
    pub(crate) fn byte_range(&self) -> (u64, u64) {
        let size = self.dtype.bytes() as u64;
        (self.start as u64 * size, (self.start + self.len) as u64 * size)
    }
}

impl<T> Clone for Slice<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Slice<'_, T> {}

impl<T> fmt::Debug for Slice<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Slice({} {}..{})", self.dtype, self.start, self.start + self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strided(len: usize, offset: usize, dims: &[usize], strides: &[isize]) -> Result<Strided> {
        Strided::new(len as u64 * 4, DType::F32, offset, dims, strides)
    }

    #[test]
    fn every_element_must_lie_inside() {
        let s = strided(12, 0, &[3, 4], &[4, 1]).unwrap();
        assert_eq!((s.base, s.lo, s.hi, s.reach), (0, 0, 48, 11));
        assert!(strided(11, 0, &[3, 4], &[4, 1]).is_err());
        assert!(strided(12, 1, &[3, 4], &[4, 1]).is_err());
        let reversed = strided(12, 11, &[12], &[-1]).unwrap();
        assert_eq!((reversed.base, reversed.lo, reversed.hi, reversed.reach), (44, 0, 48, 11));
        assert!(strided(12, 10, &[12], &[-1]).is_err());
        let repeated = strided(4, 0, &[1000, 4], &[0, 1]).unwrap();
        assert_eq!((repeated.hi, repeated.reach), (16, 3));
    }

    #[test]
    fn extremes_are_errors_not_overflows() {
        assert!(strided(1, usize::MAX, &[1], &[1]).is_err());
        assert!(strided(1, 0, &[i32::MAX as usize; 8], &[isize::MAX; 8]).is_err());
        assert!(strided(1, 0, &[i32::MAX as usize; 8], &[isize::MIN; 8]).is_err());
        let e = strided(1, 0, &[1 << 31], &[0]).unwrap_err().to_string();
        assert!(e.contains("2147483648"), "{e}");
        assert!(strided(1, 0, &[], &[]).is_err());
        assert!(strided(1, 0, &[1; 9], &[1; 9]).is_err());
    }

    #[test]
    fn empty_views_reach_nothing() {
        let s = strided(4, usize::MAX, &[0, 5], &[isize::MAX, 1]).unwrap();
        assert_eq!((s.base, s.lo, s.hi, s.reach), (16, 16, 16, 0));
    }
}
