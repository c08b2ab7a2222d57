//! `attention`, tuned: queries of a program, keys taken at a time, warps and stages. A causal one is a problem of its own.

use super::for_dtype;
use crate::attention::heuristic;
use crate::{Attention, AttentionConfig, attention_with};
use std::sync::LazyLock;
use tilewright_autotune::{Bucket, Config, Instance, Problem, Tunable, Tuner, Work, instance, space};
use tilewright_runtime::dsl::{DotElement, Float};
use tilewright_runtime::{DType, Element, Launch, Result, View};

/// [`crate::attention()`] in the best configuration known.
///
/// # Errors
/// As there.
pub fn attention<'a, T: Float + DotElement + Element>(
    q: View<'a, T, 4>,
    k: View<'a, T, 4>,
    v: View<'a, T, 4>,
    out: View<'a, T, 4>,
    how: Attention,
) -> Result<Launch<'a>> {
    let ([batch, heads, queries, width], [_, _, keys, value_width]) = (q.dims(), v.dims());
    if width != value_width {
        return attention_with(q, k, v, None::<View<'a, f32, 4>>, out, None, how, heuristic(&out.device(), q, v));
    }
    let dims = [batch, heads, queries, keys, width, usize::from(how.causal)].map(|d| d as i64);
    Tuner::global().launch(tunable(), &out.device(), T::DTYPE, &dims, |config| {
        attention_with(q, k, v, None::<View<'a, f32, 4>>, out, None, how, settings(config)?)
    })
}

fn settings(c: &Config) -> Result<AttentionConfig> {
    Ok(AttentionConfig { bm: c.get("bm")?, bn: c.get("bn")?, options: c.options() })
}

fn config(a: &AttentionConfig) -> Config {
    Config::new().with("bm", a.bm).with("bn", a.bn).with_options(a.options)
}

pub(super) fn tunable() -> &'static Tunable {
    static T: LazyLock<Tunable> = LazyLock::new(|| {
        let space = space! {
            bm: [16, 32, 64, 128, 256], bn: [16, 32, 64, 128], num_warps: [1, 2, 4, 8], num_stages: [1, 2, 3, 4]
        };
        let get = |c: &Config, name: &str| c.get::<usize>(name).unwrap_or(0);
        let space = space
            .keep("no tile is more than twice as large as there are queries or keys", move |c, d| {
                let fits = |tile: &str, size: &str| get(c, tile) <= (2 * d.size(size)).next_power_of_two().max(16);
                fits("bm", "queries") && fits("bn", "keys")
            })
            .keep("a warp has 16 to 64 queries", move |c, _| {
                let each = get(c, "bm") / get(c, "num_warps").max(1);
                (16..=64).contains(&each)
            })
            // More were slower on every GPU measured, and take software devices minutes to compile.
            .keep("a thread holds at most 64 scores", move |c, _| {
                get(c, "bm") * get(c, "bn") <= 64 * 32 * get(c, "num_warps")
            })
            .keep("a thread holds at most 256 scores and sums", move |c, d| {
                let columns = get(c, "bn") + d.size("width").next_power_of_two();
                get(c, "bm") * columns <= 256 * 32 * get(c, "num_warps")
            });
        Tunable::new("attention", &["batch", "heads", "queries", "keys", "width", "causal"], space)
            .bucket("batch", Bucket::Pow2)
            .dtypes(&[DType::F16, DType::BF16, DType::F32])
            .heuristic(|device, dtype, d| {
                let [queries, keys, width] = ["queries", "keys", "width"].map(|s| d.size(s));
                config(&AttentionConfig::heuristic(device, dtype, queries, keys, width, false))
            })
            .inputs(|p| for_dtype!(p, make))
            .work(|d, dtype| {
                let [b, h, m, n, w] = ["batch", "heads", "queries", "keys", "width"].map(|s| d.get(s) as f64);
                let seen = if d.get("causal") == 1 { 0.5 } else { 1.0 };
                Work { bytes: 2.0 * b * h * (m + n) * w * dtype.bytes() as f64, flops: 4.0 * b * h * m * n * w * seen }
            })
            .example(&[2, 8, 512, 512, 64, 0])
    });
    &T
}

fn make<T: Float + DotElement + Element>(p: &Problem) -> Result<Box<dyn Instance>> {
    let [batch, heads, queries, keys, width] = ["batch", "heads", "queries", "keys", "width"].map(|s| p.dims.size(s));
    let (of_q, of_k) = ([batch, heads, queries, width], [batch, heads, keys, width]);
    let how = Attention { causal: p.dims.size("causal") == 1, scale: None };
    let buffers = (p.random::<T>(0, &of_q)?, p.random::<T>(1, &of_k)?, p.random::<T>(2, &of_k)?, p.zeros::<T>(&of_q)?);
    Ok(instance((buffers, of_q, of_k, how), |((q, k, v, out), of_q, of_k, how), config| {
        let (q, k, v, out) = (q.view(*of_q)?, k.view(*of_k)?, v.view(*of_k)?, out.view(*of_q)?);
        attention_with(q, k, v, None::<View<'_, f32, 4>>, out, None, *how, settings(config)?)
    }))
}
