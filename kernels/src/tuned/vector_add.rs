//! `vector_add`, tuned: how many elements a program adds.

use super::for_dtype;
use crate::vector_add::{block_and_warps, vector_add_block};
use std::sync::LazyLock;
use tilewright_autotune::{Config, Instance, Problem, Tunable, Tuner, Work, instance, space};
use tilewright_runtime::dsl::Num;
use tilewright_runtime::{Buffer, DType, Device, Element, Launch, Result, View};

/// [`crate::vector_add`] in the best configuration known.
///
/// # Errors
/// As there.
pub fn vector_add<'a, T: Num + Element>(
    x: View<'a, T, 1>,
    y: View<'a, T, 1>,
    out: View<'a, T, 1>,
) -> Result<Launch<'a>> {
    crate::config::same_dims("vector_add", x, y)?;
    crate::config::same_dims("vector_add", x, out)?;
    let n = out.dims()[0] as i64;
    Tuner::global().launch(tunable(), &out.device(), T::DTYPE, &[n], |c| launch(x, y, out, c))
}

fn launch<'a, T: Num>(x: View<'a, T, 1>, y: View<'a, T, 1>, out: View<'a, T, 1>, c: &Config) -> Result<Launch<'a>> {
    let block = c.get::<usize>("block")?;
    Ok(vector_add_block(x, y, out, block).grid([out.dims()[0].div_ceil(block)]).options(c.options()))
}

pub(super) fn tunable() -> &'static Tunable {
    static T: LazyLock<Tunable> = LazyLock::new(|| {
        let space = space! { block: [512, 1024, 2048, 4096, 8192, 16384], num_warps: [2, 4, 8] };
        Tunable::new("vector_add", &["n"], space)
            .dtypes(&[DType::F32, DType::F16, DType::BF16, DType::F64])
            .heuristic(|device: &Device, dtype, _| {
                let (block, warps) = block_and_warps(device.info().kind, dtype);
                Config::new().with("block", block).with("num_warps", warps)
            })
            .inputs(|p| for_dtype!(p, make))
            // Nothing is summed: every configuration gives the same bits.
            .tolerance(0.0)
            .work(|d, dtype| Work { bytes: 3.0 * d.get("n") as f64 * dtype.bytes() as f64, flops: 0.0 })
            .example(&[1 << 20])
    });
    &T
}

fn make<T: Num + Element>(p: &Problem) -> Result<Box<dyn Instance>> {
    let n = p.dims.size("n");
    let buffers: [Buffer<T>; 3] = [p.random(0, &[n])?, p.random(1, &[n])?, p.zeros(&[n])?];
    Ok(instance((buffers, n), |([x, y, out], n), c| launch(x.view([*n])?, y.view([*n])?, out.view([*n])?, c)))
}
