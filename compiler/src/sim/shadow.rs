//! What is remembered of each byte to find races: who touched it last, and when.

use std::collections::HashMap;

/// When and by whom a byte was touched.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Touch {
    pub thread: u32,
    /// The index of the instruction.
    pub inst: u32,
    /// Which interval between barriers, from 1; 0 means never.
    pub epoch: u32,
    /// Which interval between barriers of the thread's warp.
    pub warp_epoch: u32,
}

/// An earlier touch that nothing orders before this one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Race {
    pub earlier: Touch,
    pub wrote: bool,
}

/// The barriers passed so far.
#[derive(Debug)]
pub(super) struct Clock {
    epoch: u32,
    warp_epochs: Vec<u32>,
    /// A thread's warp is the thread shifted right by this.
    shift: u32,
}

impl Clock {
    pub fn new(threads: u32, warp_width: u32) -> Self {
        Self { epoch: 1, warp_epochs: vec![0; (threads / warp_width) as usize], shift: warp_width.trailing_zeros() }
    }

    pub fn barrier(&mut self) {
        self.epoch += 1;
    }

    pub fn warp_barrier(&mut self, warp: usize) {
        self.warp_epochs[warp] += 1;
    }

    pub fn touch(&self, thread: usize, inst: u32) -> Touch {
        Touch { thread: thread as u32, inst, epoch: self.epoch, warp_epoch: self.warp_epochs[thread >> self.shift] }
    }

    fn same_warp(&self, a: Touch, b: Touch) -> bool {
        a.thread >> self.shift == b.thread >> self.shift
    }

    /// Does nothing order `earlier` before `now`?
    fn races(&self, earlier: Touch, now: Touch) -> bool {
        earlier.epoch == now.epoch
            && earlier.thread != now.thread
            && (earlier.warp_epoch == now.warp_epoch || !self.same_warp(earlier, now))
    }
}

/// Who touched a byte. Of the readers since the last write three are enough to find a race with any writer: a reader,
/// another one of its warp in the same interval between warp barriers, and one of another warp.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Cell {
    write: Touch,
    read: Touch,
    read_same_warp: Touch,
    read_other_warp: Touch,
}

impl Cell {
    pub fn read(&mut self, now: Touch, clock: &Clock) -> Result<(), Race> {
        if clock.races(self.write, now) {
            return Err(Race { earlier: self.write, wrote: true });
        }
        if self.read.epoch != now.epoch {
            (self.read, self.read_same_warp, self.read_other_warp) = (now, Touch::default(), Touch::default());
        } else if !clock.same_warp(self.read, now) {
            self.read_other_warp = now;
        } else if self.read.warp_epoch != now.warp_epoch {
            (self.read, self.read_same_warp) = (now, Touch::default());
        } else if self.read.thread != now.thread {
            self.read_same_warp = now;
        }
        Ok(())
    }

    pub fn write(&mut self, now: Touch, clock: &Clock) -> Result<(), Race> {
        if clock.races(self.write, now) {
            return Err(Race { earlier: self.write, wrote: true });
        }
        for earlier in [self.read, self.read_same_warp, self.read_other_warp] {
            if clock.races(earlier, now) {
                return Err(Race { earlier, wrote: false });
            }
        }
        self.written(now);
        Ok(())
    }

    /// Takes note of a write that was checked before.
    pub fn written(&mut self, now: Touch) {
        // What raced with the readers so far also races with this write, which is ordered after them.
        *self = Cell { write: now, ..Cell::default() };
    }
}

const PAGE: u64 = 256;

/// Cells of the bytes of global memory that the program has touched.
#[derive(Debug, Default)]
pub(super) struct GlobalShadow {
    pages: HashMap<u64, Vec<Cell>>,
}

impl GlobalShadow {
    pub fn clear(&mut self) {
        self.pages.clear();
    }

    /// The cells of an aligned access, which lies in one page.
    pub fn cells(&mut self, address: u64, len: usize) -> &mut [Cell] {
        let page = self.pages.entry(address / PAGE).or_insert_with(|| vec![Cell::default(); PAGE as usize]);
        let at = (address % PAGE) as usize;
        &mut page[at..at + len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every race that the three remembered readers find is one of the whole history, and none is missed: random
    /// touches of one byte against a list of all touches.
    #[test]
    fn three_readers_are_enough() {
        let mut seed = 1u64;
        let mut random = |n: u64| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) % n
        };
        let (mut races, mut clean) = (0, 0);
        for _ in 0..2000 {
            let mut clock = Clock::new(8, 4);
            let (mut cell, mut history) = (Cell::default(), Vec::<(Touch, bool)>::new());
            for step in 0..12 {
                match random(8) {
                    0 if random(4) == 0 => clock.barrier(),
                    0 | 1 => clock.warp_barrier(random(2) as usize),
                    kind => {
                        let (now, writes) = (clock.touch(random(8) as usize, step), kind == 2);
                        let expected = history.iter().any(|&(t, w)| (w || writes) && clock.races(t, now));
                        let found = if writes { cell.write(now, &clock) } else { cell.read(now, &clock) };
                        assert_eq!(found.is_err(), expected, "{history:?} {now:?}");
                        if found.is_err() {
                            races += 1;
                            break;
                        }
                        clean += 1;
                        history.push((now, writes));
                    }
                }
            }
        }
        assert!(races > 500 && clean > 500, "{races} races, {clean} clean touches");
    }
}
