//! An allocator that counts, so that an input which takes gigabytes is a fault like a panic.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The system's allocator with a count of the bytes in use and of the most there were.
pub struct Counting;

static USED: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
/// Beyond this many bytes in use an allocation fails, which ends the process: the machine is not to be filled first.
static CEILING: AtomicUsize = AtomicUsize::new(usize::MAX);

fn took(bytes: usize) {
    let now = USED.fetch_add(bytes, Relaxed) + bytes;
    PEAK.fetch_max(now, Relaxed);
}

fn allowed(bytes: usize) -> bool {
    USED.load(Relaxed).saturating_add(bytes) <= CEILING.load(Relaxed)
}

// SAFETY: every call is passed on to the system's allocator with the same arguments; a null pointer says that there is no
// memory, as the trait allows.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !allowed(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller's promises are the ones the system's allocator asks for.
        let p = unsafe { System.alloc(layout) };
        if !p.is_null() {
            took(layout.size());
        }
        p
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !allowed(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: as above.
        let p = unsafe { System.alloc_zeroed(layout) };
        if !p.is_null() {
            took(layout.size());
        }
        p
    }

    unsafe fn dealloc(&self, p: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(p, layout) };
        USED.fetch_sub(layout.size(), Relaxed);
    }

    unsafe fn realloc(&self, p: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !allowed(size.saturating_sub(layout.size())) {
            return std::ptr::null_mut();
        }
        // SAFETY: as above.
        let new = unsafe { System.realloc(p, layout, size) };
        if !new.is_null() {
            USED.fetch_sub(layout.size(), Relaxed);
            took(size);
        }
        new
    }
}

/// Bytes in use now; from here the peak is counted, and `above` bytes more are the most that may be allocated.
pub fn start(above: usize) -> usize {
    let now = USED.load(Relaxed);
    PEAK.store(now, Relaxed);
    CEILING.store(now.saturating_add(above), Relaxed);
    now
}

/// The most bytes in use since [`start`]; from here nothing is limited.
pub fn stop() -> usize {
    CEILING.store(usize::MAX, Relaxed);
    PEAK.load(Relaxed)
}
