//! The `#[kernel]`, `#[device_fn]` and `#[autotune]` attribute macros, `#[derive(Carry)]` and
//! `#[derive(Comptime)]`.
//!
//! They rewrite a function into ordinary Rust that builds Tile IR when it runs; what each construct becomes is told in
//! `body` (expressions) and `control` (`if`, `while`, `for`). All logic takes and gives `proc_macro2` streams, so that
//! unit tests can run it. On a mistake the macros give spanned errors together with an item of the same name and
//! signature, so that one mistake does not hide the rest of the crate from the compiler or an editor.

mod analysis;
mod args;
mod autotune;
mod body;
mod carry;
mod comptime;
mod control;
mod diag;
mod kernel;
#[cfg(test)]
mod tests;

use proc_macro::TokenStream;

/// Makes a function a kernel: see the crate `tilewright` for the language.
///
/// `#[kernel]`, `#[kernel(fp_fusion)]` (products and sums written apart may be contracted),
/// `#[kernel(crate = path)]` (where the crate `tilewright` is found; `::tilewright` by default).
#[proc_macro_attribute]
pub fn kernel(attr: TokenStream, item: TokenStream) -> TokenStream {
    kernel::expand_kernel(attr.into(), item.into()).into()
}

/// Makes a function callable from kernels with the same language in its body.
///
/// `#[device_fn]`, `#[device_fn(crate = path)]`.
#[proc_macro_attribute]
pub fn device_fn(attr: TokenStream, item: TokenStream) -> TokenStream {
    kernel::expand_device_fn(attr.into(), item.into()).into()
}

/// Registers a kernel with the autotuner, and gives it `NAME::tuned(..)`, a launch in the best configuration known.
///
/// Stands above `#[kernel]`. See the guide `docs/autotuning.md`.
/// ```text
/// #[autotune(
///     space = space! { block: [256, 512, 1024], num_warps: [1, 2, 4] }, // comptime parameters, num_warps, num_stages
///     key = [n = x.dims()[0]],            // sizes that decide; `=> exact`, `=> multiple(64)` instead of powers of two
///     grid = [n.div_ceil(block)],         // sizes and parameters are in scope
///     prune = block > 2 * n,              // what is not worth a try; optional
///     dtypes = [f32, f16],                // for kernels with a type parameter
///     args = { x: [n], y: [n], eps: 1e-5 }, // how the command makes arguments; optional
///     example = [4096],                   // sizes that `autotune run --all` takes; optional
///     tolerance = 1e-5,                   // how far results may lie apart; optional
/// )]
/// ```
#[proc_macro_attribute]
pub fn autotune(attr: TokenStream, item: TokenStream) -> TokenStream {
    autotune::expand(attr.into(), item.into()).into()
}

/// Lets a struct of tiles and pointers be changed by device loops and branches.
///
/// `#[carry(crate = path)]` says where the crate `tilewright` is found.
#[proc_macro_derive(Carry, attributes(carry))]
pub fn derive_carry(item: TokenStream) -> TokenStream {
    carry::expand(item.into()).into()
}

/// Lets values of a struct or enum be `#[comptime]` arguments, told apart by all their fields.
///
/// Types with `Eq` and `Hash` need no derive. `#[comptime(crate = path)]` says where the crate `tilewright` is found.
#[proc_macro_derive(Comptime, attributes(comptime))]
pub fn derive_comptime(item: TokenStream) -> TokenStream {
    comptime::expand(item.into()).into()
}
