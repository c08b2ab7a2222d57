//! Vulkan compute devices; the loader is loaded when present.
//!
//! | file | what |
//! |---|---|
//! | `instance` | finding devices, and what each can do |
//! | `gpu` | one device: memory, copies, events |
//! | `queue` | command buffers in flight, ordered by a timeline semaphore |
//! | `kernel` | pipelines, push constants, dispatches |
//!
//! All streams are one queue, whose submissions each start with a full memory barrier: work happens in order of submission.
//! Buffers are reached by address, so there are no descriptors.

mod gpu;
mod instance;
mod kernel;
mod queue;

pub(crate) use gpu::open;
pub(crate) use instance::list;
