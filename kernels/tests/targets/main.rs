//! The library's kernels compiled for targets that need not be there: NVIDIA chips from sm_80 to sm_120, Vulkan devices with
//! subgroups of any width, OpenCL. The code is assembled and validated by the vendors' tools, simulated, and compared with
//! golden files.

extern crate tilewright_runtime as tilewright;

mod assembled;
mod cases;
mod facts;
mod golden;
mod hopper;
