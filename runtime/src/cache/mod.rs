//! Compiled code on disk, addressed by content.
//!
//! **In**: everything that decides the code: Tile IR, options, target, compiler, driver ([`key`]). **Out**: the compiled
//! kernel, with the driver's binary where there is one ([`entry`], [`store`]). **Holds**: an entry is read whole and
//! verified, or it is absent; a cache that cannot be read or written costs time, never an answer. Several processes share
//! one directory.

pub(crate) mod entry;
pub(crate) mod key;
pub(crate) mod store;
