//! OpenCL devices, through the C interface of the installed platforms.
//!
//! | file | what |
//! |---|---|
//! | `platform` | finding devices, and what each can do; errors |
//! | `context` | one device: memory, copies, events |
//! | `kernel` | building and launching |
//! | `graph` | many launches as one submission |
//!
//! All streams are one in-order queue. Kernels take memory by handle and byte offset: each pointer parameter is two
//! arguments of the kernel, a `__global uchar *` and a `ulong` that is added to it.

mod context;
mod graph;
mod kernel;
mod platform;

pub(crate) use context::open;
pub(crate) use platform::list;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Held while devices are asked for, contexts made and programs built. The standard lets threads do that side by side, but
/// PoCL was then seen to crash in a string it was asked for (3.1, and the one that brings libpocl 2.12), likely while another
/// thread was still setting it up.
fn one_at_a_time() -> MutexGuard<'static, ()> {
    static SETTING_UP: Mutex<()> = Mutex::new(());
    SETTING_UP.lock().unwrap_or_else(PoisonError::into_inner)
}
