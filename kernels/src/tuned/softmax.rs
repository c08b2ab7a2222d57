//! `softmax`, tuned: the tile of a row, and its warps. A tile as wide as the row keeps it in registers; a narrower one
//! goes through it in pieces.

use super::for_dtype;
use crate::config::{row_config, same_dims};
use crate::{softmax_long, softmax_row};
use std::sync::LazyLock;
use tilewright_autotune::{Bucket, Config, Instance, Problem, Tunable, Tuner, Work, instance, space};
use tilewright_runtime::dsl::Float;
use tilewright_runtime::{DType, Element, Launch, Result, View};

/// [`crate::softmax`] in the best configuration known.
///
/// # Errors
/// As there.
pub fn softmax<'a, T: Float + Element>(x: View<'a, T, 2>, y: View<'a, T, 2>) -> Result<Launch<'a>> {
    same_dims("softmax", x, y)?;
    let [rows, cols] = x.dims();
    let dims = [rows as i64, cols as i64];
    Tuner::global().launch(tunable(), &x.device(), T::DTYPE, &dims, |c| launch(x, y, c))
}

fn launch<'a, T: Float>(x: View<'a, T, 2>, y: View<'a, T, 2>, c: &Config) -> Result<Launch<'a>> {
    let block = c.get::<usize>("block")?;
    let [rows, cols] = x.dims();
    let launch =
        if block >= cols { softmax_row(x, y, block) } else { softmax_long(x, y, block, 16 / x.dtype().bytes()) };
    Ok(launch.grid([rows]).options(c.options()))
}

/// Tiles for rows: as wide as the row or narrower, but not wider than needed.
pub(super) fn row_space() -> tilewright_autotune::Space {
    space! { block: [128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768], num_warps: [1, 2, 4, 8, 16, 32] }
        .keep("a tile is no wider than the row needs", |c, d| {
            let block = c.get::<usize>("block").unwrap_or(0);
            block <= d.size("cols").next_power_of_two().max(128)
        })
        .keep("a row is at most 64 pieces", |c, d| d.size("cols") <= 64 * c.get::<usize>("block").unwrap_or(0))
        .keep("a thread has 1 to 128 elements", |c, _| {
            let (block, warps) = (c.get::<usize>("block").unwrap_or(0), c.get::<usize>("num_warps").unwrap_or(1));
            block >= 32 * warps && block <= 128 * 32 * warps
        })
}

/// What [`row_config`] says, as a configuration.
pub(super) fn row_heuristic(device: &tilewright_runtime::Device, dtype: DType, cols: usize) -> Config {
    let (Ok(c) | Err(c)) = row_config(device.info().kind, dtype, cols);
    Config::new().with("block", c.block).with("num_warps", c.num_warps)
}

pub(super) fn tunable() -> &'static Tunable {
    static T: LazyLock<Tunable> = LazyLock::new(|| {
        Tunable::new("softmax", &["rows", "cols"], row_space())
            .bucket("rows", Bucket::Pow2)
            .bucket("cols", Bucket::Pow2)
            .dtypes(&[DType::F32, DType::F16, DType::BF16, DType::F64])
            .heuristic(|device, dtype, d| row_heuristic(device, dtype, d.size("cols")))
            .inputs(|p| for_dtype!(p, make))
            .work(|d, dtype| Work {
                bytes: 2.0 * d.get("rows") as f64 * d.get("cols") as f64 * dtype.bytes() as f64,
                flops: 0.0,
            })
            .example(&[2048, 1000])
    });
    &T
}

fn make<T: Float + Element>(p: &Problem) -> Result<Box<dyn Instance>> {
    let dims = [p.dims.size("rows"), p.dims.size("cols")];
    let buffers = (p.random::<T>(0, &dims)?, p.zeros::<T>(&dims)?, dims);
    Ok(instance(buffers, |(x, y, dims), c| launch(x.view(*dims)?, y.view(*dims)?, c)))
}
