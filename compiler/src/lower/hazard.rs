//! Where barriers are needed: between accesses of different threads to the same memory, one of which writes.

use crate::analysis::alias::Aliases;
use crate::layout::Layout;
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
    /// Unknown for what happened in an earlier round of a loop.
    place: Option<Place>,
}

/// Accesses since the last barrier.
#[derive(Clone, Default, Debug)]
pub(super) struct Hazards {
    shared_read: bool,
    shared_written: bool,
    global: Vec<Access>,
}

impl Hazards {
    /// Must a barrier come before shared memory that others may still read or write is written?
    pub fn before_shared_write(&self) -> bool {
        self.shared_read || self.shared_written
    }

    /// Must a barrier come before this access to global memory?
    pub fn before_global(&self, aliases: &Aliases, pointer: Value, write: bool, place: &Place) -> bool {
        self.global.iter().any(|a| {
            (a.write || write)
                && aliases.may_alias(a.pointer, pointer)
                && !(a.place.as_ref() == Some(place) && place.layout.is_injective())
        })
    }

    pub fn shared_read(&mut self) {
        self.shared_read = true;
    }

    pub fn shared_written(&mut self) {
        self.shared_written = true;
    }

    pub fn global(&mut self, pointer: Value, write: bool, place: Option<Place>) {
        self.global.push(Access { pointer, write, place });
    }

    /// All threads have arrived.
    pub fn barrier(&mut self) {
        *self = Self::default();
    }

    /// Whatever happened on either of two ways here.
    pub fn merge(&mut self, other: Hazards) {
        self.shared_read |= other.shared_read;
        self.shared_written |= other.shared_written;
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
        self.global.sort_by_key(|a| (a.pointer, a.write));
        self.global.dedup_by_key(|a| (a.pointer, a.write));
    }
}
