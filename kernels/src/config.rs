//! What the kernels' configurations have in common.

use tilewright_runtime::{DType, DeviceKind, Element, Error, Result, View};

/// How a row of a matrix is spread over a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowConfig {
    /// Columns of one tile, a power of two.
    pub block: usize,
    /// Warps of a program.
    pub num_warps: u32,
}

/// The largest row kept in registers as one tile, in bytes of its elements: beyond it a program has so many
/// registers that too few run at once.
const ROW_BYTES: usize = 32 << 10;

/// How softmax and layer norm spread a row on a kind of device: as one tile, if it is short enough; else `Err` with the tile
/// for going through it piece by piece.
pub fn row_config(kind: DeviceKind, dtype: DType, columns: usize) -> Result<RowConfig, RowConfig> {
    if kind == DeviceKind::Cpu {
        // The interpreter has no registers to run out of; its tiles should just fit its caches.
        let block = columns.next_power_of_two();
        let most = 1 << 14;
        let whole = RowConfig { block: block.min(most), num_warps: 1 };
        return if block <= most { Ok(whole) } else { Err(whole) };
    }
    // As many threads as have 16 bytes each, up to 8 warps with several vectors each.
    let lanes = |block: usize| (block * dtype.bytes() / 16).div_ceil(32).next_power_of_two() as u32;
    let block = columns.next_power_of_two();
    if block * dtype.bytes().max(4) <= ROW_BYTES {
        let vectors = if dtype.bytes() >= 4 { 4 } else { 2 };
        let warps = (lanes(block) / vectors).clamp(1, 8);
        Ok(RowConfig { block, num_warps: warps })
    } else if kind == DeviceKind::Cuda {
        // Many threads a row, so that the rows under way, which are read again, fit the cache together. Measured on an
        // H200: rows of 24 KiB like 16 bytes in each of 512 threads, those of 64 KiB twice that in each of 1024.
        let vector = 16 / dtype.bytes();
        if columns * dtype.bytes() < 48 << 10 {
            Err(RowConfig { block: 512 * vector, num_warps: 16 })
        } else {
            Err(RowConfig { block: 2 * 1024 * vector, num_warps: 32 })
        }
    } else {
        Err(RowConfig { block: 4096, num_warps: 8 })
    }
}

/// Fails unless two views have the same extents.
pub fn same_dims<T: Element, const R: usize>(what: &str, x: View<'_, T, R>, y: View<'_, T, R>) -> Result<()> {
    if x.dims() == y.dims() {
        return Ok(());
    }
    Err(Error::Arguments {
        kernel: what.into(),
        message: format!("the input is {:?} and the output {:?}; they must agree", x.dims(), y.dims()),
    })
}
