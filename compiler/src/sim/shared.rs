//! The shared memory of one program: its bytes, and what is remembered of each to find mistakes.

use super::shadow::{Cell, Clock, Race, Touch};
use crate::entity::Entity;
use crate::thread::{Function, Shared, SharedBuf};
use std::collections::VecDeque;

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

/// Shared memory of one program.
pub(super) struct SharedMemory {
    /// One, or one for each width of elements.
    pools: Vec<Pool>,
    untyped: bool,
    copies: Vec<Copies>,
}

impl SharedMemory {
    pub fn new(func: &Function, untyped: bool) -> Self {
        let widths: &[Option<u8>] = if untyped { &[None] } else { &[Some(8), Some(16), Some(32), Some(64)] };
        let pools = widths.iter().map(|&width| {
            let len = func.shared_bytes(width) as usize;
            Pool { bytes: vec![0; len], cells: vec![SharedCell::default(); len] }
        });
        let copies = (0..func.threads).map(|_| Copies::default()).collect();
        Self { pools: pools.collect(), untyped, copies }
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
            c.cell.write(now, clock).map_err(|race| Wrong::Race { byte, race })?;
            c.writer = at.writer();
        }
        pool.bytes[at.address..at.address + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    /// Starts an asynchronous copy of `len` of these bytes by thread `now.thread`.
    pub fn start_copy(&mut self, at: At, data: [u8; 16], len: usize, now: Touch, clock: &Clock) -> Result<(), Wrong> {
        for (i, c) in self.pools[at.pool].cells[at.address..at.address + len].iter_mut().enumerate() {
            let byte = at.byte + i;
            c.not_in_flight(byte)?;
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
                    (c.writer, c.in_flight) = (copy.at.writer(), 0);
                }
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
    fn not_in_flight(&self, byte: usize) -> Result<(), Wrong> {
        match self.in_flight {
            0 => Ok(()),
            thread => Err(Wrong::InFlight { byte, thread: thread - 1, inst: self.copy_inst }),
        }
    }
}
