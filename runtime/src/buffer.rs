//! Device memory: typed buffers with checked copies.

use crate::backend::RawMem;
use crate::device::{Device, DeviceInner};
use crate::element::{Element, bytes_of, sanitize};
use crate::error::{Error, Result};
use crate::view::{Slice, View};
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;
use tilewright_compiler::DType;

/// One allocation on a device, untyped. Freed when its last owner is gone and the work submitted till then is done.
pub struct Memory {
    pub(crate) device: Arc<DeviceInner>,
    /// `None` for no bytes.
    raw: Option<RawMem>,
}

impl Memory {
    fn alloc(device: &Device, bytes: u64) -> Result<Arc<Memory>> {
        let raw = if bytes == 0 { None } else { Some(device.inner.live()?.alloc(bytes)?) };
        if raw.is_some() {
            device.inner.counters.allocated(bytes);
        }
        Ok(Arc::new(Memory { device: device.inner.clone(), raw }))
    }

    /// Bytes.
    pub fn bytes(&self) -> u64 {
        self.raw.map_or(0, |m| m.bytes)
    }

    /// The device it is on.
    pub fn device(&self) -> Device {
        Device { inner: self.device.clone() }
    }

    pub(crate) fn addr(&self) -> u64 {
        self.raw.map_or(0, |m| m.addr)
    }

    pub(crate) fn handle(&self) -> u64 {
        self.raw.map_or(0, |m| m.handle)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Some(raw) = self.raw {
            self.device.counters.freed(raw.bytes);
            if let Ok(backend) = self.device.live() {
                backend.free(raw);
            }
        }
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Memory({}, {} bytes)", self.device.backend.info().name, self.bytes())
    }
}

/// Elements of type `T` in device memory. Cloning shares the memory.
///
/// Launches write through shared references: what a buffer holds is only as defined as the order of the work submitted.
#[derive(Clone)]
pub struct Buffer<T> {
    memory: Arc<Memory>,
    len: usize,
    elements: PhantomData<fn() -> T>,
}

impl<T: Element> Buffer<T> {
    pub(crate) fn alloc(device: &Device, len: usize) -> Result<Self> {
        // `isize::MAX` is the bound on host slices too, so a buffer that can be copied never exceeds it.
        let bytes = len.checked_mul(T::DTYPE.bytes()).filter(|&b| isize::try_from(b).is_ok());
        let bytes = bytes.ok_or_else(|| {
            let (free, total) = device.memory();
            Error::OutOfMemory { device: device.name().to_owned(), requested: u64::MAX, free, total }
        })?;
        Ok(Self { memory: Memory::alloc(device, bytes as u64)?, len, elements: PhantomData })
    }

    /// How many elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Has it no elements?
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        T::DTYPE
    }

    /// The device it is on.
    pub fn device(&self) -> Device {
        self.memory.device()
    }

    /// The memory, untyped.
    pub fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// A copy of all elements, after the work submitted before.
    ///
    /// # Errors
    /// What the driver says; a fault of an earlier launch is reported here too.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let mut host = Vec::with_capacity(self.len);
        self.read_into(0, self.len, host.as_mut_ptr())?;
        // SAFETY: `read_into` has initialised `len` elements.
        unsafe { host.set_len(self.len) };
        Ok(host)
    }

    /// Copies all elements to `host`, after the work submitted before.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], or what the driver says.
    pub fn copy_to(&self, host: &mut [T]) -> Result<()> {
        self.same_len("to the host", host.len())?;
        self.read_into(0, self.len, host.as_mut_ptr())
    }

    /// Copies all elements from `host`, after the work submitted before.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], or what the driver says.
    pub fn copy_from(&self, host: &[T]) -> Result<()> {
        self.same_len("from the host", host.len())?;
        self.write_at(0, host)
    }

    /// Copies all elements of `other`, which is on the same device.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::DifferentDevices`], or what the driver says.
    pub fn copy_from_buffer(&self, other: &Buffer<T>) -> Result<()> {
        crate::stream::same_device("the two buffers", &self.memory.device, &other.memory.device)?;
        self.same_len("between buffers", other.len)?;
        match (self.memory.raw, other.memory.raw) {
            (Some(to), Some(from)) if !Arc::ptr_eq(&self.memory, &other.memory) => {
                self.memory.device.live()?.copy(from, 0, to, 0, to.bytes)
            }
            _ => Ok(()),
        }
    }

    /// Sets every byte.
    pub(crate) fn fill_bytes(&self, value: u8) -> Result<()> {
        match self.memory.raw {
            Some(raw) => self.memory.device.live()?.fill(raw, 0, raw.bytes, value),
            None => Ok(()),
        }
    }

    /// A contiguous (row-major) view of the first elements.
    ///
    /// # Errors
    /// [`Error::View`] if the buffer has fewer elements than the product of `dims`, or an extent is over `i32::MAX`.
    pub fn view<const R: usize>(&self, dims: [usize; R]) -> Result<View<'_, T, R>> {
        let mut strides = [1isize; R];
        for i in (0..R.saturating_sub(1)).rev() {
            // A product too large is found by the bounds check, where it saturates too.
            strides[i] = strides[i + 1].saturating_mul(isize::try_from(dims[i + 1]).unwrap_or(isize::MAX).max(1));
        }
        View::new(&self.memory, T::DTYPE, 0, dims, strides)
    }

    /// A view whose element `[i, j, ..]` is element `offset + i * strides[0] + j * strides[1] + ..` of the buffer.
    /// Strides may be 0 (repeated) or negative.
    ///
    /// # Errors
    /// [`Error::View`] if an element lies outside the buffer, or an extent is over `i32::MAX`.
    pub fn view_strided<const R: usize>(
        &self,
        offset: usize,
        dims: [usize; R],
        strides: [isize; R],
    ) -> Result<View<'_, T, R>> {
        View::new(&self.memory, T::DTYPE, offset, dims, strides)
    }

    /// A part of the buffer, for kernels that take a pointer, and for copies.
    ///
    /// # Errors
    /// [`Error::View`] if the range is not inside the buffer.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<Slice<'_, T>> {
        let start = match range.start_bound() {
            Bound::Included(&s) => Some(s),
            Bound::Excluded(&s) => s.checked_add(1),
            Bound::Unbounded => Some(0),
        };
        let end = match range.end_bound() {
            Bound::Included(&e) => e.checked_add(1),
            Bound::Excluded(&e) => Some(e),
            Bound::Unbounded => Some(self.len),
        };
        match (start, end) {
            (Some(start), Some(end)) if start <= end && end <= self.len => Ok(Slice::new(self, start, end - start)),
            _ => Err(Error::View(format!(
                "the range from {:?} to {:?} is not inside a buffer of {} elements",
                range.start_bound(),
                range.end_bound(),
                self.len
            ))),
        }
    }

    fn same_len(&self, what: &'static str, host: usize) -> Result<()> {
        if host == self.len { Ok(()) } else { Err(Error::LengthMismatch { what, buffer: self.len, host }) }
    }

    pub(crate) fn write_at(&self, offset: usize, host: &[T]) -> Result<()> {
        match self.memory.raw {
            Some(raw) if !host.is_empty() => {
                self.memory.device.live()?.write(raw, (offset * T::DTYPE.bytes()) as u64, bytes_of(host))
            }
            _ => Ok(()),
        }
    }

    /// Reads `len` elements from `offset`, inside the buffer, to `host`, which has room for them.
    pub(crate) fn read_into(&self, offset: usize, len: usize, host: *mut T) -> Result<()> {
        let Some(raw) = self.memory.raw else { return Ok(()) };
        if len == 0 {
            return Ok(());
        }
        let size = T::DTYPE.bytes();
        // The bytes may not be valid values before `sanitize`: where that does anything they take a detour, so that a
        // failed read leaves no invalid value behind.
        if T::DTYPE == DType::Bool {
            let mut bytes = vec![0u8; len * size];
            self.memory.device.live()?.read(raw, (offset * size) as u64, &mut bytes)?;
            sanitize(T::DTYPE, &mut bytes);
            // SAFETY: `host` has room for `len` elements, which are these bytes, made valid.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), host.cast(), bytes.len()) };
            return Ok(());
        }
        // SAFETY: `host` has room for `len` elements; zeroing initialises them, and every bit pattern is a value of the
        // numeric types.
        let bytes = unsafe {
            std::ptr::write_bytes(host, 0, len);
            std::slice::from_raw_parts_mut(host.cast::<u8>(), len * size)
        };
        self.memory.device.live()?.read(raw, (offset * size) as u64, bytes)
    }
}

impl<T> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} elements, {:?})", self.len, self.memory)
    }
}
