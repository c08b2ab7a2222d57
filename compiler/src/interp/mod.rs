//! The interpreter of the Tile IR: the meaning of every op, and the embedded `cpu` device.

pub mod scalar;
