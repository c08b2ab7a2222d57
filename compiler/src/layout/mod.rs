//! Layouts: which thread and register holds which element of a tile, and where an element lies in shared memory.
//!
//! A [`Layout`] is a linear map over GF(2): the bits of the register number, of the lane and of the warp are each given
//! the element (as bits of its row-major index) that they contribute by exclusive or. Extents are powers of two, so that
//! a row-major index is the concatenation of the coordinates' bits; hence a reshape changes nothing, a
//! permutation of dimensions permutes bits, and dropping a dimension drops its bits.
//!
//! All layouts made here give each register, lane and warp bit either *one* bit of the index or none (all threads that
//! differ in such a bit hold copies). Bits are then disjoint, exclusive or is a sum, and the index a thread's register
//! holds is the thread's own index plus a constant of the register.

pub mod distributed;
pub mod shared;

#[cfg(test)]
pub(crate) mod soundness;

pub use distributed::Layout;
pub use shared::{Padded, Swizzle};
