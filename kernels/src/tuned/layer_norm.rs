//! `layer_norm`, tuned: the tile of a row, and its warps.

use super::for_dtype;
use super::softmax::{row_heuristic, row_space};
use crate::{layer_norm_long, layer_norm_row};
use std::sync::LazyLock;
use tilewright_autotune::{Config, Instance, Problem, Tunable, Tuner, Work, instance};
use tilewright_runtime::dsl::Float;
use tilewright_runtime::{DType, Element, Launch, Result, View};

/// [`crate::layer_norm`] in the best configuration known.
///
/// # Errors
/// As there.
pub fn layer_norm<'a, T: Float + Element>(
    x: View<'a, T, 2>,
    weight: View<'a, T, 1>,
    bias: View<'a, T, 1>,
    y: View<'a, T, 2>,
    eps: f32,
) -> Result<Launch<'a>> {
    // Checks the arguments, at the cost of a launch that is not made.
    let _ = crate::layer_norm(x, weight, bias, y, eps)?;
    let [rows, cols] = x.dims();
    let dims = [rows as i64, cols as i64];
    Tuner::global().launch(tunable(), &x.device(), T::DTYPE, &dims, |c| launch(x, weight, bias, y, eps, c))
}

fn launch<'a, T: Float>(
    x: View<'a, T, 2>,
    weight: View<'a, T, 1>,
    bias: View<'a, T, 1>,
    y: View<'a, T, 2>,
    eps: f32,
    c: &Config,
) -> Result<Launch<'a>> {
    let block = c.get::<usize>("block")?;
    let [rows, cols] = x.dims();
    let launch = if block >= cols {
        layer_norm_row(x, weight, bias, y, eps, block)
    } else {
        layer_norm_long(x, weight, bias, y, eps, block, 16 / x.dtype().bytes())
    };
    Ok(launch.grid([rows]).options(c.options()))
}

pub(super) fn tunable() -> &'static Tunable {
    static T: LazyLock<Tunable> = LazyLock::new(|| {
        Tunable::new("layer_norm", &["rows", "cols"], row_space())
            .dtypes(&[DType::F32, DType::F16, DType::BF16, DType::F64])
            .heuristic(|device, dtype, d| row_heuristic(device, dtype, d.size("cols")))
            .inputs(|p| for_dtype!(p, make))
            .work(|d, dtype| Work {
                bytes: 2.0 * d.get("rows") as f64 * d.get("cols") as f64 * dtype.bytes() as f64,
                flops: 0.0,
            })
            .example(&[1024, 1000])
    });
    &T
}

fn make<T: Float + Element>(p: &Problem) -> Result<Box<dyn Instance>> {
    let (rows, cols) = (p.dims.size("rows"), p.dims.size("cols"));
    let matrices = (p.random::<T>(0, &[rows, cols])?, p.zeros::<T>(&[rows, cols])?);
    let vectors = (p.random::<T>(1, &[cols])?, p.random::<T>(2, &[cols])?);
    Ok(instance((matrices, vectors, rows, cols), |((x, y), (weight, bias), rows, cols), c| {
        let dims = [*rows, *cols];
        launch(x.view(dims)?, weight.view([*cols])?, bias.view([*cols])?, y.view(dims)?, 1e-5, c)
    }))
}
