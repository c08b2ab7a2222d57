//! Races between the programs of a grid, and between the lanes of one store: found while the interpreter runs, because programs
//! run in any order elsewhere.
//!
//! For each element of writable memory it is noted which program stored to it last, and which programs loaded it. A race is
//! - a load of what another program stores in the same launch,
//! - a store of another value than is there, to an element that another program loads or stores,
//! - two lanes of one store with different values for one element.
//!
//! Stores of the value that is there already are no race among each other: the outcome does not depend on their order. A kernel that
//! races is found whatever the order that programs happen to run in here.

use super::memory::Memory;
use crate::error::Loc;
use crate::tile::Elem;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// Most elements that are watched (some 400 MB of notes); launches with more are not checked.
const MOST: u64 = 1 << 24;
/// In [`Note::reader`]: several programs.
const MANY: u32 = u32::MAX;

/// What is known of one element. Programs are numbered from 1; 0 is none.
#[derive(Default)]
struct Note {
    writer: AtomicU32,
    /// Which store of the writer: so that two lanes of one store are told from two stores.
    store: AtomicU32,
    /// Where the store stands.
    written_at: AtomicU32,
    reader: AtomicU32,
    read_at: AtomicU32,
}

/// Writable memory and the notes on its elements.
struct Watched {
    start: u64,
    end: u64,
    notes: Vec<Note>,
}

/// The notes of one launch.
pub(super) struct Races {
    watched: Vec<Watched>,
    /// Bytes of the narrowest element: what one note stands for.
    granule: u64,
    grid: [u32; 3],
    places: Mutex<Vec<Loc>>,
}

/// Who accesses memory, and where in the source.
#[derive(Clone, Copy)]
pub(super) struct Access {
    /// Numbered from 1.
    pub program: u32,
    /// Counts the stores of a program.
    pub store: u32,
    /// From [`Races::place`].
    pub place: u32,
}

/// How an access meets another one.
pub(super) struct Meeting {
    /// The other program's number from 1, [`MANY`] for one of several, or the accessing program itself: another lane.
    other: u32,
    stores: bool,
    place: u32,
}

impl Races {
    /// Notes for a launch; `None` where nothing can race, or there is too much to be watched.
    pub fn new(memory: &Memory, params: impl Iterator<Item = Elem>, grid: [u32; 3], programs: u64) -> Option<Self> {
        let granule = params.filter(|e| e.is_ptr()).map(|e| e.dtype().bytes() as u64).min()?;
        let mut watched: Vec<Watched> = Vec::new();
        for (start, end) in memory.writable() {
            // Arguments may overlap: an element has one note.
            match watched.last_mut().filter(|w| start < w.end) {
                Some(last) => last.end = last.end.max(end),
                None => watched.push(Watched { start: start / granule * granule, end, notes: Vec::new() }),
            }
        }
        let notes = |w: &Watched| (w.end - w.start).div_ceil(granule);
        if programs >= u64::from(MANY) || watched.iter().map(notes).sum::<u64>() > MOST {
            return None;
        }
        for w in &mut watched {
            w.notes.resize_with(notes(w) as usize, Note::default);
        }
        Some(Self { watched, granule, grid, places: Mutex::default() })
    }

    /// A number for a place in the source.
    pub fn place(&self, loc: Loc) -> u32 {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let known = places.iter().position(|p| *p == loc);
        known.unwrap_or_else(|| {
            places.push(loc);
            places.len() - 1
        }) as u32
    }

    fn notes(&self, address: u64, bytes: usize) -> &[Note] {
        let Some(w) = self.watched.iter().find(|w| (w.start..w.end).contains(&address)) else { return &[] };
        let first = ((address - w.start) / self.granule) as usize;
        let n = bytes.div_ceil(self.granule as usize);
        &w.notes[first..(first + n).min(w.notes.len())]
    }

    /// Notes the load of an element. Gives the store of another program that it meets.
    pub fn load(&self, address: u64, bytes: usize, access: Access) -> Option<Meeting> {
        for note in self.notes(address, bytes) {
            let before = note.reader.load(Ordering::Relaxed);
            if before != access.program && before != MANY {
                let now = if before == 0 { access.program } else { MANY };
                note.read_at.store(access.place, Ordering::Relaxed);
                note.reader.store(now, Ordering::SeqCst);
            }
            let writer = note.writer.load(Ordering::SeqCst);
            if writer != 0 && writer != access.program {
                return Some(Meeting { other: writer, stores: true, place: note.written_at.load(Ordering::Relaxed) });
            }
        }
        None
    }

    /// Notes the store of an element; does it `change` what is there? Gives what it meets.
    pub fn store(&self, address: u64, bytes: usize, change: bool, access: Access) -> Option<Meeting> {
        for note in self.notes(address, bytes) {
            let written_at = note.written_at.swap(access.place, Ordering::Relaxed);
            let store = note.store.swap(access.store, Ordering::Relaxed);
            let writer = note.writer.swap(access.program, Ordering::SeqCst);
            let reader = note.reader.load(Ordering::SeqCst);
            if !change {
                continue;
            }
            let lanes_meet = writer == access.program && store == access.store;
            if lanes_meet || (writer != 0 && writer != access.program) {
                return Some(Meeting { other: writer, stores: true, place: written_at });
            }
            if reader != 0 && reader != access.program {
                let place = note.read_at.load(Ordering::Relaxed);
                return Some(Meeting { other: reader, stores: false, place });
            }
        }
        None
    }

    /// What happened, and what to do. `what` is the element, `stores` says what the access does.
    pub fn explain(&self, meeting: &Meeting, access: Access, stores: bool, what: &str) -> (String, &'static str) {
        let one = if stores { "store to" } else { "load of" };
        let place = {
            let places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
            places.get(meeting.place as usize).copied().unwrap_or(Loc::UNKNOWN)
        };
        if meeting.other == access.program {
            return (
                format!("{one} {what} that another lane of the same store gives another value"),
                "which lane comes last is not defined: let one lane alone store, or combine the values by a reduction",
            );
        }
        let who = match meeting.other {
            MANY => "another program".to_owned(),
            n => {
                let (n, [gx, gy, _]) = (u64::from(n - 1), self.grid.map(u64::from));
                format!("program [{}, {}, {}]", n % gx, n / gx % gy, n / gx / gy)
            }
        };
        let other = if meeting.stores { "stores to" } else { "loads" };
        (
            format!("race: {one} {what} that {who} {other} at {place}"),
            "programs run in any order: give each its own elements, or combine partial results in a second launch; \
             TILEWRIGHT_RACES=off turns this check off",
        )
    }
}
