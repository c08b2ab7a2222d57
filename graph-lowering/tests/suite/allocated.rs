//! How many bytes a thread has asked for: what work needs of memory, however other tests run beside it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, which counts for each thread.
pub struct Counting;

thread_local! {
    // Without a destructor and without memory of its own: it may be asked while a thread begins and ends.
    static BYTES: Cell<u64> = const { Cell::new(0) };
}

/// The bytes that this thread has asked for since it began, those that it gave back included.
pub fn bytes() -> u64 {
    BYTES.get()
}

fn count(bytes: usize) {
    BYTES.set(BYTES.get() + bytes as u64);
}

// SAFETY: every call is passed on to the system's allocator with the same arguments.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's promises are the ones the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, p: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(p, layout) }
    }

    unsafe fn realloc(&self, p: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size.saturating_sub(layout.size()));
        // SAFETY: as above.
        unsafe { System.realloc(p, layout, size) }
    }
}
