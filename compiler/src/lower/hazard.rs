//! Where barriers are needed: between accesses of different threads to the same memory, one of which writes.

use crate::analysis::alias::Aliases;
use crate::layout::{Layout, Padded};
use crate::thread::{Block, InstId, Shared};
use crate::tile::Value;

/// What a thread touches: two accesses of the same kind of place by the same thread need no barrier.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Place {
    /// The operands that make up the addresses.
    pub address: Vec<Value>,
    /// Which thread touches which element.
    pub layout: Layout,
}

/// One access to global memory since the last barrier.
#[derive(Clone, PartialEq, Debug)]
struct Access {
    pointer: Value,
    write: bool,
    /// The first thread alone stores a single element, which is in order with what else it stores alone.
    alone: bool,
    /// Unknown for what happened in an earlier round of a loop.
    place: Option<Place>,
}

/// Which thread touches which byte of a shared buffer.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct SharedPlace {
    /// Which thread touches which element.
    pub layout: Layout,
    /// Where the elements are.
    pub padded: Padded,
}

/// A shared buffer that has been touched since the last barrier and is needed no longer: another may get its memory.
#[derive(Clone, PartialEq, Debug)]
struct Freed {
    buf: Shared,
    /// Where it was touched, if that is known.
    place: Option<SharedPlace>,
}

/// What happened since the last barrier.
///
/// Shared buffers that are in use at once lie apart, and what is written into a buffer is read after a barrier of its own. So a
/// buffer that is new is in the way of none but those that are no longer in use.
#[derive(Clone, Default, Debug)]
pub(super) struct Hazards {
    freed: Vec<Freed>,
    /// Another round of a loop may have touched any buffer of the loop.
    other_round: bool,
    global: Vec<Access>,
}

/// A barrier that comes first in a round of a loop, of which only other rounds are the reason.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct RoundBarrier {
    pub block: Block,
    pub inst: InstId,
    /// The buffer that is written after it.
    pub buf: Shared,
    pub place: SharedPlace,
}

impl Hazards {
    /// Must a barrier come before a new shared buffer is written, whose memory others may still read or write as another's?
    pub fn before_shared_write(&self) -> bool {
        self.other_round || !self.freed.is_empty()
    }

    /// The buffer to write to without a barrier, if there is one: each thread has touched it, and no other one, just where it
    /// writes now.
    pub fn reusable(&self, place: &SharedPlace) -> Option<Shared> {
        match &self.freed[..] {
            [one] if !self.other_round && one.place.as_ref() == Some(place) && place.layout.is_injective() => {
                Some(one.buf)
            }
            _ => None,
        }
    }

    /// Is another round of the loop the only reason for a barrier before a new shared buffer is written?
    pub fn only_other_round(&self) -> bool {
        self.other_round && self.freed.is_empty()
    }

    /// At the end of a round: is a barrier not needed, since each thread has last touched, and no other one, just what it writes
    /// after it?
    pub fn redundant(&self, barrier: &RoundBarrier) -> bool {
        self.reusable(&barrier.place) == Some(barrier.buf)
    }

    /// Has nothing happened to shared memory since the last barrier?
    pub fn shared_is_quiet(&self) -> bool {
        !self.before_shared_write()
    }

    /// Must a barrier come before this access to global memory?
    pub fn before_global(&self, aliases: &Aliases, pointer: Value, write: bool, place: &Place) -> bool {
        let alone = write && place.layout.shape.elements() == 1;
        self.global.iter().any(|a| {
            (a.write || write)
                && !(a.alone && alone)
                && aliases.may_alias(a.pointer, pointer)
                && !(a.place.as_ref() == Some(place) && place.layout.is_injective())
        })
    }

    /// A buffer that has been touched is needed no longer.
    pub fn freed(&mut self, buf: Shared, place: Option<SharedPlace>) {
        self.freed.push(Freed { buf, place });
    }

    /// Another round of a loop, in which shared memory is used, may come before.
    pub fn other_round(&mut self) {
        self.other_round = true;
    }

    /// An access to global memory, of so many elements.
    pub fn global(&mut self, pointer: Value, write: bool, elements: usize, place: Option<Place>) {
        self.global.push(Access { pointer, write, alone: write && elements == 1, place });
    }

    /// All threads have arrived.
    pub fn barrier(&mut self) {
        *self = Self::default();
    }

    /// Whatever happened on either of two ways here.
    pub fn merge(&mut self, other: Hazards) {
        self.other_round |= other.other_round;
        for freed in other.freed {
            if !self.freed.contains(&freed) {
                self.freed.push(freed);
            }
        }
        for access in other.global {
            if !self.global.contains(&access) {
                self.global.push(access);
            }
        }
    }

    /// Accesses by address are not the same place in another round of a loop.
    pub fn forget_places(&mut self) {
        for access in &mut self.global {
            access.place = None;
        }
        self.global.sort_by_key(|a| (a.pointer, a.write, a.alone));
        self.global.dedup_by_key(|a| (a.pointer, a.write, a.alone));
    }
}
