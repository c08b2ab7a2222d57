//! The global memory of the simulated device: buffers at made-up addresses.

/// Above 4 GiB, so that an address cut to 32 bits is outside of every buffer.
const FIRST: u64 = 0x7_0000_0000;
/// Between buffers, so that an index a little wrong is outside of every buffer.
const GAP: u64 = 1 << 20;
/// What devices promise for a fresh allocation.
const ALIGN: u64 = 256;

/// Simulated global memory. Buffers are aligned to 256 bytes and far from each other.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    buffers: Vec<Buffer>,
}

#[derive(Clone, Debug)]
struct Buffer {
    address: u64,
    bytes: Vec<u8>,
}

/// A place in memory: a buffer and an offset in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    buffer: usize,
    offset: usize,
}

impl Memory {
    /// Memory without buffers.
    pub fn new() -> Self {
        Self::default()
    }

    /// A new buffer of zeros; gives its address.
    pub fn alloc(&mut self, bytes: usize) -> u64 {
        self.alloc_with(vec![0; bytes])
    }

    /// A new buffer with these contents; gives its address.
    pub fn alloc_with(&mut self, bytes: impl Into<Vec<u8>>) -> u64 {
        let address =
            self.buffers.last().map_or(FIRST, |b| (b.address + b.bytes.len() as u64 + GAP).next_multiple_of(ALIGN));
        self.buffers.push(Buffer { address, bytes: bytes.into() });
        address
    }

    /// `len` bytes at `address`.
    ///
    /// # Errors
    /// What is wrong with the range, if it is not inside one buffer.
    pub fn read(&self, address: u64, len: usize) -> Result<&[u8], String> {
        let place = self.locate(address, len)?;
        Ok(self.at(place, len))
    }

    /// Overwrites the bytes at `address`.
    ///
    /// # Errors
    /// What is wrong with the range, if it is not inside one buffer.
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), String> {
        let place = self.locate(address, bytes.len())?;
        self.at_mut(place, bytes.len()).copy_from_slice(bytes);
        Ok(())
    }

    /// Where a range of addresses is, if it is inside one buffer.
    pub(super) fn locate(&self, address: u64, len: usize) -> Result<Place, String> {
        // The last buffer that starts at or before the address.
        let next = self.buffers.partition_point(|b| b.address <= address);
        let Some(buffer) = next.checked_sub(1) else {
            return Err(self.outside(address, len, 0));
        };
        let b = &self.buffers[buffer];
        let offset = address - b.address;
        if offset > b.bytes.len() as u64 || b.bytes.len() as u64 - offset < len as u64 {
            return Err(self.outside(address, len, buffer));
        }
        Ok(Place { buffer, offset: offset as usize })
    }

    pub(super) fn at(&self, place: Place, len: usize) -> &[u8] {
        &self.buffers[place.buffer].bytes[place.offset..place.offset + len]
    }

    pub(super) fn at_mut(&mut self, place: Place, len: usize) -> &mut [u8] {
        &mut self.buffers[place.buffer].bytes[place.offset..place.offset + len]
    }

    /// What is wrong with a range, told by the buffer before it and the one after.
    fn outside(&self, address: u64, len: usize, before: usize) -> String {
        let range = format!("{len} bytes at {address:#x}");
        let distance = |b: &Buffer| {
            let end = b.address + b.bytes.len() as u64;
            if address < b.address { b.address - address } else { address.saturating_sub(end) }
        };
        let near = [self.buffers.get(before), self.buffers.get(before + 1)];
        let Some(b) = near.into_iter().flatten().min_by_key(|b| distance(b)) else {
            return format!("{range}, but there are no buffers");
        };
        let (size, start) = (b.bytes.len(), b.address);
        if address < start {
            format!("{range}, {} bytes before the nearest buffer ({size} bytes at {start:#x})", start - address)
        } else {
            format!("{range}, byte {} of the nearest buffer ({size} bytes at {start:#x})", address - start)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_apart_and_keep_their_bytes() {
        let mut m = Memory::new();
        assert_eq!(m.read(0, 1), Err("1 bytes at 0x0, but there are no buffers".into()));
        let (a, b) = (m.alloc(10), m.alloc_with([1, 2, 3]));
        assert!(a.is_multiple_of(256) && b.is_multiple_of(256) && b - a > GAP && a > u64::from(u32::MAX));
        m.write(a + 8, &[7, 8]).expect("inside");
        assert_eq!(m.read(a + 7, 3), Ok(&[0, 7, 8][..]));
        assert_eq!(m.read(b, 3), Ok(&[1, 2, 3][..]));
        assert_eq!(m.read(b + 3, 0), Ok(&[][..]));
    }

    #[test]
    fn ranges_outside_are_told_by_the_nearest_buffer() {
        let mut m = Memory::new();
        let (a, b) = (m.alloc(16), m.alloc(16));
        let message = |r: Result<&[u8], String>| r.expect_err("outside");
        assert_eq!(
            message(m.read(a + 14, 4)),
            "4 bytes at 0x70000000e, byte 14 of the nearest buffer (16 bytes at 0x700000000)"
        );
        assert_eq!(
            message(m.read(b - 4, 4)),
            "4 bytes at 0x7001000fc, 4 bytes before the nearest buffer (16 bytes at 0x700100100)"
        );
        assert_eq!(
            message(m.read(u64::MAX, 4)),
            "4 bytes at 0xffffffffffffffff, byte 18446744043643731711 of the nearest buffer (16 bytes at 0x700100100)"
        );
        assert_eq!(m.write(b + 16, &[0]).expect_err("outside").split(',').next(), Some("1 bytes at 0x700100110"));
    }
}
