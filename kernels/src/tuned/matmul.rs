//! `matmul`, tuned: the tile of the result, how much of `k` is taken at a time, warps and stages.

use super::for_dtype;
use crate::{MatmulConfig, matmul_with};
use std::sync::LazyLock;
use tilewright_autotune::{Config, Instance, Problem, Tunable, Tuner, Work, instance, space};
use tilewright_runtime::dsl::{DotElement, Float};
use tilewright_runtime::{DType, Element, Launch, Result, View};

/// [`crate::matmul`] in the best configuration known.
///
/// # Errors
/// As there.
pub fn matmul<'a, T: Float + DotElement + Element>(
    a: View<'a, T, 2>,
    b: View<'a, T, 2>,
    c: View<'a, T, 2>,
) -> Result<Launch<'a>> {
    let ([m, k], [_, n]) = (a.dims(), b.dims());
    let dims = [m as i64, n as i64, k as i64];
    Tuner::global().launch(tunable(), &c.device(), T::DTYPE, &dims, |config| matmul_with(a, b, c, settings(config)?))
}

fn settings(c: &Config) -> Result<MatmulConfig> {
    Ok(MatmulConfig {
        bm: c.get("bm")?,
        bn: c.get("bn")?,
        bk: c.get("bk")?,
        group: c.get("group")?,
        options: c.options(),
    })
}

fn config(m: &MatmulConfig) -> Config {
    let tiles = [("bm", m.bm), ("bn", m.bn), ("bk", m.bk), ("group", m.group)];
    tiles.into_iter().fold(Config::new(), |c, (name, v)| c.with(name, v)).with_options(m.options)
}

pub(super) fn tunable() -> &'static Tunable {
    static T: LazyLock<Tunable> = LazyLock::new(|| {
        let space = space! {
            bm: [32, 64, 128, 256], bn: [32, 64, 128, 256], bk: [16, 32, 64, 128], group: [8],
            num_warps: [2, 4, 8], num_stages: [1, 2, 3, 4, 5]
        };
        let get = |c: &Config, name: &str| c.get::<usize>(name).unwrap_or(0);
        let space = space
            .keep("no tile is more than twice as large as the matrices", move |c, d| {
                let fits = |tile: &str, size: &str| get(c, tile) <= (2 * d.size(size)).next_power_of_two().max(32);
                fits("bm", "m") && fits("bn", "n") && fits("bk", "k")
            })
            .keep("a thread accumulates 8 to 256 elements", move |c, _| {
                let each = get(c, "bm") * get(c, "bn") / (32 * get(c, "num_warps").max(1));
                (8..=256).contains(&each)
            });
        Tunable::new("matmul", &["m", "n", "k"], space)
            .dtypes(&[DType::F16, DType::BF16, DType::F32, DType::F64])
            .heuristic(|device, dtype, d| {
                config(&MatmulConfig::heuristic(device, dtype, [d.size("m"), d.size("n"), d.size("k")]))
            })
            .inputs(|p| for_dtype!(p, make))
            .work(|d, dtype| {
                let [m, n, k] = ["m", "n", "k"].map(|s| d.get(s) as f64);
                Work { bytes: (m * k + k * n + m * n) * dtype.bytes() as f64, flops: 2.0 * m * n * k }
            })
            .example(&[256, 256, 256])
    });
    &T
}

fn make<T: Float + DotElement + Element>(p: &Problem) -> Result<Box<dyn Instance>> {
    let [m, n, k] = ["m", "n", "k"].map(|s| p.dims.size(s));
    let (a, b, c) = (p.random::<T>(0, &[m, k])?, p.random::<T>(1, &[k, n])?, p.zeros::<T>(&[m, n])?);
    Ok(instance((a, b, c, [m, n, k]), |(a, b, c, [m, n, k]), config| {
        matmul_with(a.view([*m, *k])?, b.view([*k, *n])?, c.view([*m, *n])?, settings(config)?)
    }))
}
