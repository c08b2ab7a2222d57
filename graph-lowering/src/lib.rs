//! From tensor expressions to fused kernels.
//!
//! ```
//! use tilewright_graph_lowering::{Options, Tensor, compile};
//! # fn main() -> tilewright_graph_lowering::Result<()> {
//! let swiglu = compile(|(a, b): &(Tensor, Tensor)| a.silu() * b, Options::new().device("cpu"))?;
//! let x = Tensor::vector(&[0.0f32, 1.0, 2.0]);
//! let y = swiglu.call(&(x.clone(), x))?;
//! assert_eq!(y.dims(), [3]);
//! assert_eq!(swiglu.explain().kernels, 1);
//! # Ok(())
//! # }
//! ```
//!
//! | stage | takes | gives |
//! |---|---|---|
//! | [`tensor`] | a running function of [`Tensor`]s | a graph of primitives (or, outside a capture, values) |
//! | [`graph`] | | the graph IR: nodes, printer, verifier, interpreter, JSON |
//! | [`prim`] | | the closed set of primitives, with all facts of each in one place |
//! | [`autodiff`], [`optim`] | a function | its gradient and optimiser steps, as tensor expressions |
//! | [`passes`] | a graph | a better graph with the same meaning |
//! | [`fuse`] | a graph | groups of nodes, and a generated kernel for each |
//! | [`exec`] | groups and kernels | buffers and launches |
//! | [`compile`](mod@compile) | a function and options | all of the above, cached by guards; saved and loaded |
//! | [`weights`] | a safetensors file | tensors by name, and back |

pub mod autodiff;
pub mod compile;
mod error;
pub mod exec;
pub mod fuse;
pub mod graph;
mod literal;
pub mod optim;
pub mod passes;
pub mod prim;
pub mod tensor;
pub mod weights;

pub use autodiff::{grad, value_and_grad, vjp};
pub use compile::{
    CheckCaptures, Compiled, Dynamic, Explanation, Loaded, Mode, Options, Pullback, compile, disable, list_backends,
};
pub use error::{Error, Result};
pub use literal::{Literal, Number};
pub use tensor::{Reduction, Structure, Tensor};
pub use tilewright_compiler::DType;
pub use weights::Weights;
