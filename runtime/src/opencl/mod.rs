//! OpenCL devices, through the C interface of the installed platforms.
//!
//! | file | what |
//! |---|---|
//! | `platform` | finding devices, and what each can do; errors |
//! | `context` | one device: memory, copies, events |
//! | `kernel` | building and launching |
//!
//! All streams are one in-order queue. Kernels take memory by handle and byte offset: each pointer parameter is two
//! arguments of the kernel, a `__global uchar *` and a `ulong` that is added to it.

mod context;
mod kernel;
mod platform;

pub(crate) use context::open;
pub(crate) use platform::list;
