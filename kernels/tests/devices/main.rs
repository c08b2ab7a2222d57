//! The same test bodies on every device of the machine: the CPU, Vulkan, OpenCL (feature `opencl`) and CUDA.
//!
//! Devices are found at run time, so the test binary can be carried to another machine. `TILEWRIGHT_TEST_DEVICES`, a list
//! such as `cuda:0,vulkan:0`, restricts the tests to these, each of which must then be there.

extern crate tilewright_runtime as tilewright;

mod attention;
mod common;
mod control;
mod frontend;
mod integers;
mod language;
mod launches;
mod layer_norm;
mod math;
mod matmul;
mod memory;
mod reductions;
mod shapes;
mod softmax;
mod vector_add;
