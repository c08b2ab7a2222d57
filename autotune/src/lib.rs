//! The autotuner of Tilewright: it will choose tile sizes, warps and stages of kernels by measuring, and remember what it
//! found. Nothing of it is here yet.
