//! The shared memory of one program: its bytes, and what is remembered of each to find mistakes.

use super::shadow::{Cell, Clock, Race, Touch};
use crate::entity::Entity;
use crate::thread::{Function, Shared, SharedBuf};
use std::collections::{HashMap, VecDeque};

/// A mistake in the use of shared memory, at one byte of a buffer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wrong {
    Outside {
        byte: i64,
        len: usize,
    },
    Unaligned {
        byte: i64,
        align: usize,
    },
    NeverWritten {
        byte: usize,
    },
    OtherBuffer {
        byte: usize,
        writer: Shared,
    },
    /// An asynchronous copy into the byte, of this thread and instruction, is in flight.
    InFlight {
        byte: usize,
        thread: u32,
        inst: u32,
    },
    Race {
        byte: usize,
        race: Race,
    },
    /// A tensor-core product that is in flight reads the byte.
    InUse {
        byte: usize,
    },
    /// No fence has made the byte visible to `wgmma`.
    Unfenced {
        byte: usize,
    },
}

/// Where in shared memory an access is.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    pool: usize,
    /// In the pool.
    pub address: usize,
    /// In the buffer.
    byte: usize,
    buf: Shared,
}

#[derive(Clone, Copy, Default)]
struct SharedCell {
    cell: Cell,
    /// The buffer through which the byte was written, plus 1; 0 if it never was.
    writer: u32,
    /// The thread whose asynchronous copy is in flight, plus 1; 0 if none is.
    in_flight: u32,
    copy_inst: u32,
    /// How many products in flight read it.
    in_use: u32,
    /// Has its writer fenced it for `wgmma`?
    fenced: bool,
}

#[derive(Default)]
struct Pool {
    bytes: Vec<u8>,
    cells: Vec<SharedCell>,
}

/// An asynchronous copy in flight.
struct Copy {
    at: At,
    len: usize,
    data: [u8; 16],
    inst: u32,
}

/// The asynchronous copies of one thread.
#[derive(Default)]
struct Copies {
    open: Vec<Copy>,
    groups: VecDeque<Vec<Copy>>,
}

/// Bytes of the first pool.
type Range = std::ops::Range<usize>;

/// What the products of one warp read: those of the group that is still open, and those of the pending groups.
#[derive(Default)]
struct Products {
    open: Vec<Range>,
    groups: VecDeque<Vec<Range>>,
}

/// Shared memory of one program.
pub(super) struct SharedMemory {
    /// One, or one for each width of elements.
    pools: Vec<Pool>,
    untyped: bool,
    copies: Vec<Copies>,
    /// Of each thread that starts products for its warp.
    products: HashMap<usize, Products>,
    /// For each thread: what it wrote since its last fence for `wgmma`.
    unfenced: Vec<Vec<Range>>,
}

impl SharedMemory {
    pub fn new(func: &Function, untyped: bool) -> Self {
        let widths: &[Option<u8>] = if untyped { &[None] } else { &[Some(8), Some(16), Some(32), Some(64)] };
        let pools = widths.iter().map(|&width| {
            let len = func.shared_bytes(width) as usize;
            Pool { bytes: vec![0; len], cells: vec![SharedCell::default(); len] }
        });
        let copies = (0..func.threads).map(|_| Copies::default()).collect();
        let unfenced = vec![vec![]; func.threads as usize];
        Self { pools: pools.collect(), untyped, copies, products: HashMap::new(), unfenced }
    }

    /// Where `len` bytes from `byte` of a buffer are. They must be inside and aligned to `align`.
    pub fn locate(&self, buf: Shared, data: SharedBuf, byte: i64, len: usize, align: usize) -> Result<At, Wrong> {
        if byte < 0 || byte + len as i64 > i64::from(data.bytes) {
            return Err(Wrong::Outside { byte, len });
        }
        let address = data.offset as usize + byte as usize;
        if !address.is_multiple_of(align) {
            return Err(Wrong::Unaligned { byte, align });
        }
        // The widths 8, 16, 32 and 64 have the pools 0 to 3.
        let pool = if self.untyped { 0 } else { (data.elem_bits / 8).trailing_zeros() as usize };
        Ok(At { pool, address, byte: byte as usize, buf })
    }

    /// The bytes of a read.
    pub fn read(&mut self, at: At, len: usize, now: Touch, clock: &Clock) -> Result<&[u8], Wrong> {
        let pool = &mut self.pools[at.pool];
        for (i, c) in pool.cells[at.address..at.address + len].iter_mut().enumerate() {
            let byte = at.byte + i;
            c.not_in_flight(byte)?;
            if c.writer == 0 {
                return Err(Wrong::NeverWritten { byte });
            }
            // The race is the more basic mistake: a missing barrier between two uses shows as both.
            c.cell.read(now, clock).map_err(|race| Wrong::Race { byte, race })?;
            if c.writer != at.writer() {
                return Err(Wrong::OtherBuffer { byte, writer: Shared::new(c.writer as usize - 1) });
            }
        }
        Ok(&pool.bytes[at.address..at.address + len])
    }

    pub fn write(&mut self, at: At, bytes: &[u8], now: Touch, clock: &Clock) -> Result<(), Wrong> {
        let pool = &mut self.pools[at.pool];
        for (i, c) in pool.cells[at.address..at.address + bytes.len()].iter_mut().enumerate() {
            let byte = at.byte + i;
            c.not_in_flight(byte)?;
            c.not_in_use(byte)?;
            c.cell.write(now, clock).map_err(|race| Wrong::Race { byte, race })?;
            (c.writer, c.fenced) = (at.writer(), false);
        }
        pool.bytes[at.address..at.address + bytes.len()].copy_from_slice(bytes);
        self.unfenced[now.thread as usize].push(at.address..at.address + bytes.len());
        Ok(())
    }

    /// Starts an asynchronous copy of `len` of these bytes by thread `now.thread`.
    pub fn start_copy(&mut self, at: At, data: [u8; 16], len: usize, now: Touch, clock: &Clock) -> Result<(), Wrong> {
        for (i, c) in self.pools[at.pool].cells[at.address..at.address + len].iter_mut().enumerate() {
            let byte = at.byte + i;
            c.not_in_flight(byte)?;
            c.not_in_use(byte)?;
            // Nothing orders the copy after what other threads do now, so it must not race from its start on.
            c.cell.write(now, clock).map_err(|race| Wrong::Race { byte, race })?;
            (c.in_flight, c.copy_inst) = (now.thread + 1, now.inst);
        }
        self.copies[now.thread as usize].open.push(Copy { at, len, data, inst: now.inst });
        Ok(())
    }

    /// Ends the group of copies that the thread started.
    pub fn commit(&mut self, thread: usize) {
        let c = &mut self.copies[thread];
        c.groups.push_back(std::mem::take(&mut c.open));
    }

    /// Lets all but the last `n` groups of the thread arrive.
    pub fn wait(&mut self, thread: usize, n: usize, clock: &Clock) {
        let groups = &mut self.copies[thread].groups;
        while groups.len() > n
            && let Some(group) = groups.pop_front()
        {
            for copy in group {
                let (from, to) = (copy.at.address, copy.at.address + copy.len);
                let pool = &mut self.pools[copy.at.pool];
                pool.bytes[from..to].copy_from_slice(&copy.data[..copy.len]);
                for c in &mut pool.cells[from..to] {
                    // To other threads the bytes are written now: they need a barrier after the wait.
                    c.cell.written(clock.touch(thread, copy.inst));
                    (c.writer, c.in_flight, c.fenced) = (copy.at.writer(), 0, false);
                }
                self.unfenced[thread].push(from..to);
            }
        }
    }

    // ---- tensor-core products of four warps ---------------------------------------------------------------------

    /// The bytes that a product reads, started by `now.thread` for its warp; until the product is waited for, none of
    /// them may be written.
    pub fn read_async(&mut self, at: At, len: usize, now: Touch, clock: &Clock) -> Result<&[u8], Wrong> {
        let range = at.address..at.address + len;
        for (i, c) in self.pools[0].cells[range.clone()].iter_mut().enumerate() {
            if c.writer != 0 && c.in_flight == 0 && !c.fenced {
                return Err(Wrong::Unfenced { byte: at.byte + i });
            }
            c.in_use += 1;
        }
        self.products.entry(now.thread as usize).or_default().open.push(range);
        self.read(at, len, now, clock)
    }

    /// What the thread wrote is seen by products.
    pub fn fence(&mut self, thread: usize) {
        for range in std::mem::take(&mut self.unfenced[thread]) {
            self.pools[0].cells[range].iter_mut().for_each(|c| c.fenced = true);
        }
    }

    /// Ends the group of products that the thread started for its warp.
    pub fn commit_products(&mut self, thread: usize) {
        let p = self.products.entry(thread).or_default();
        p.groups.push_back(std::mem::take(&mut p.open));
    }

    /// Lets all but the last `n` groups of products end.
    pub fn wait_products(&mut self, thread: usize, n: usize) {
        let groups = &mut self.products.entry(thread).or_default().groups;
        while groups.len() > n
            && let Some(group) = groups.pop_front()
        {
            for range in group {
                self.pools[0].cells[range].iter_mut().for_each(|c| c.in_use -= 1);
            }
        }
    }
}

impl At {
    fn writer(self) -> u32 {
        self.buf.index() as u32 + 1
    }

    /// Further on in the same access.
    pub fn plus(self, bytes: usize) -> Self {
        Self { address: self.address + bytes, byte: self.byte + bytes, ..self }
    }
}

impl SharedCell {
    fn not_in_use(&self, byte: usize) -> Result<(), Wrong> {
        if self.in_use == 0 { Ok(()) } else { Err(Wrong::InUse { byte }) }
    }

    fn not_in_flight(&self, byte: usize) -> Result<(), Wrong> {
        match self.in_flight {
            0 => Ok(()),
            thread => Err(Wrong::InFlight { byte, thread: thread - 1, inst: self.copy_inst }),
        }
    }
}
