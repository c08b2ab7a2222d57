//! The autotuner: which configuration of a kernel is fastest on which device for which sizes, found once and remembered.
//!
//! | file | what |
//! |---|---|
//! | [`config`], [`mod@space`], [`key`] | configurations, the sets of them, and the buckets of sizes that share a result |
//! | [`tunable`], [`registry`] | kernels that can be tuned, and the list of them in a program |
//! | [`plan`] | candidates for one problem |
//! | [`legality`] | the resource model: what cannot run is not tried |
//! | [`bench`](mod@bench), [`arena`], [`outputs`], [`check`], [`measure`], [`worker`] | compiling, running, comparing and timing them, here or in another process |
//! | [`session`], [`search`], [`eliminate`], [`runoff`] | one tuning: order, early elimination, the paired run-off |
//! | [`record`], [`store`], [`failure`] | what is remembered |
//! | [`tuner`], [`mode`] | launches that use it |
//! | [`cli`], [`plot`] | the command `autotune` |
//!
//! Space -> constraints -> resource model -> compile -> check -> measure -> eliminate -> run-off -> store. A candidate's failure is
//! a fact that is recorded like a time.

#[cfg(test)]
extern crate tilewright_runtime as tilewright;

pub mod arena;
pub mod bench;
pub mod check;
pub mod cli;
pub mod config;
pub mod eliminate;
pub mod failure;
pub mod key;
pub mod legality;
pub mod measure;
pub mod mode;
pub mod outputs;
pub mod plan;
pub mod plot;
pub mod record;
pub mod registry;
pub mod runoff;
pub mod search;
pub mod session;
pub mod space;
pub mod store;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
pub mod tunable;
pub mod tuner;
pub mod tuning;
pub mod worker;

pub use config::{Config, Value};
pub use key::{Bucket, Dims, Key};
pub use mode::Mode;
pub use search::{Search, Searcher};
pub use session::Settings;
pub use space::Space;
pub use store::Store;
pub use tunable::{Instance, Problem, Tunable, Work, instance, noise};
pub use tuner::{Choice, Tuner};
pub use tuning::{How, Isolation, Report, tune};

/// What the code that macros generate refers to. No part of the public interface.
#[doc(hidden)]
pub mod __private {
    pub use inventory;
    pub use tilewright_runtime as runtime;
}
