//! Tilewright: a Triton-like GPU kernel language and compiler for Rust.
//!
//! Write a kernel for one *program* that works on *tiles*; Tilewright compiles it when it is first launched, to PTX, SPIR-V or
//! OpenCL C, or interprets it on the CPU:
//! ```
//! use tilewright::dsl::*;
//! use tilewright::Device;
//!
//! /// `out = x + y`, `block` elements a program.
//! #[kernel]
//! fn add(x: In<f32, 1>, y: In<f32, 1>, out: Out<f32, 1>, #[comptime] block: usize) {
//!     let start = program_id(0) * block;
//!     out.store([start], x.load([start], [block]) + y.load([start], [block]));
//! }
//!
//! # fn main() -> tilewright::Result<()> {
//! let dev = Device::best()?; // CUDA, Vulkan, OpenCL or the CPU
//! let x = dev.buffer_from(&[1.0f32; 1000])?;
//! let y = dev.buffer_from(&[2.0f32; 1000])?;
//! let out = dev.zeros::<f32>(1000)?;
//! add(x.view([1000])?, y.view([1000])?, out.view([1000])?, 256).grid([1000usize.div_ceil(256)]).launch()?;
//! assert_eq!(out.to_vec()?, [3.0; 1000]);
//! # Ok(())
//! # }
//! ```
//!
//! | where | what |
//! |---|---|
//! | [`dsl`] | the language: `#[kernel]`, `#[device_fn]`, tiles, views, pointers, and everything that can be done with them |
//! | this page | devices, buffers, launches ([`Device`], [`Buffer`], [`Launch`]) |
//! | [`kernels`] | ready-made kernels: vector add, softmax, layer norm, matmul |
//! | [`mod@autotune`] | the autotuner: spaces, the store of results, tuned launches, and the command |
//! | [`graph`] | tensors, `compile`, gradients: functions of tensors as fused generated kernels |
//! | [`guide`] | the language, explained step by step |
//! | [`compiler`] | the Tile IR, its interpreter, passes, layouts, lowering and emitters |

/// The autotuner, with the library's kernels registered.
pub mod autotune {
    pub use tilewright_autotune::*;

    /// The command `autotune`, as the `main` of a program: it lists and tunes this library's kernels and those of the program.
    pub fn main() -> std::process::ExitCode {
        // Named here so that the linker keeps their registrations.
        let _ = tilewright_kernels::tuned::all();
        cli::main()
    }
}

pub use tilewright_compiler as compiler;
pub use tilewright_graph_lowering as graph;
pub use tilewright_kernels as kernels;
pub use tilewright_runtime::*;

/// A guide to the language. (Documentation only: there is no code in this module.)
pub mod guide {
    #![doc = include_str!("../docs/language.md")]
}

/// The code blocks of the README are tests, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// So are those of the page about `compile`.
#[cfg(doctest)]
#[doc = include_str!("../docs/compile.md")]
struct CompilePage;

/// So are those of the guide to the autotuner.
#[cfg(doctest)]
#[doc = include_str!("../docs/autotuning.md")]
struct AutotuningGuide;
