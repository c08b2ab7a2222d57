//! Vector addition: the simplest kernel, and a measure of memory bandwidth.

use crate::config::same_dims;
use tilewright_runtime::dsl::*;
use tilewright_runtime::{DType, DeviceKind, Element, Launch, Result, View};

/// `out = x + y`, `block` elements a program.
#[kernel]
pub fn vector_add_block<T: Num>(x: In<T, 1>, y: In<T, 1>, out: Out<T, 1>, #[comptime] block: usize) {
    let start = program_id(0) * block;
    out.store([start], x.load([start], [block]) + y.load([start], [block]));
}

/// Elements and warps of a program when nothing was tuned. One access of 16 bytes a thread is what a stream likes best; the
/// interpreter likes tiles that fill its caches.
pub(crate) fn block_and_warps(kind: DeviceKind, dtype: DType) -> (usize, u32) {
    match kind {
        DeviceKind::Cpu => (1 << 13, 1),
        _ => (256 * 16 / dtype.bytes(), 8),
    }
}

/// `out = x + y`, element by element; the three have one length.
///
/// # Errors
/// [`tilewright_runtime::Error::Arguments`] if the lengths differ.
pub fn vector_add<'a, T: Num + Element>(
    x: View<'a, T, 1>,
    y: View<'a, T, 1>,
    out: View<'a, T, 1>,
) -> Result<Launch<'a>> {
    same_dims("vector_add", x, y)?;
    same_dims("vector_add", x, out)?;
    let [n] = out.dims();
    let (block, warps) = block_and_warps(out.device().info().kind, out.dtype());
    Ok(vector_add_block(x, y, out, block).grid([n.div_ceil(block)]).num_warps(warps))
}
