//! NVIDIA GPUs through the CUDA driver, which is loaded when present.
//!
//! | file | what |
//! |---|---|
//! | `driver` | finding the driver and its devices; its errors as ours |
//! | `context` | one device: memory, streams, events |
//! | `assembler` | PTX to machine code: ptxas if there is one, else the driver's compiler |
//! | `kernel` | loading and launching |
//! | `graph` | many launches as one |
//!
//! Work is asynchronous: a fault of a kernel is reported by the next call that waits, and from then on every call says that
//! the device is lost, which is what the driver means by a sticky error.

mod assembler;
mod context;
mod driver;
mod graph;
mod kernel;

pub(crate) use context::open;
pub(crate) use driver::list;
