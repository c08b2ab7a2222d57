//! Attention: every case with the configuration the library chooses, and one of them with many.

use crate::cases::Case;
use crate::data::{self, Check, Number};
use crate::report::Measurement;
use crate::timing::{self, Effort};
use tilewright_kernels::reference::{self, AttentionDims};
use tilewright_kernels::{Attention, AttentionConfig, attention_with};
use tilewright_runtime::dsl::DotElement;
use tilewright_runtime::{Buffer, Device, Options, Result, View};

/// The tensors of one case: several sets, and what is expected of some queries of the first and the last head.
pub struct Attending<T> {
    case: Case,
    dims: [usize; 4],
    how: Attention,
    sets: Vec<[Buffer<T>; 4]>,
    some: Vec<usize>,
    expected: Vec<f64>,
}

impl<T: Number + DotElement> Attending<T> {
    /// Random tensors on the device.
    ///
    /// # Errors
    /// What the device says.
    pub fn new(dev: &Device, case: &Case) -> Result<Self> {
        let dims = [case.dims[0], case.dims[1], case.dims[2], case.dims[3]];
        let [batch, heads, rows, width] = dims;
        let how = Attention { causal: case.dims[4] == 1, scale: None };
        let n = dims.iter().product();
        let [q, k, v] = [51, 52, 53].map(|seed| data::normal::<T>(seed, n));
        let mut sets = Vec::new();
        for _ in 0..timing::sets(dev.info().gpu, case.bytes()) {
            sets.push([dev.buffer_from(&q)?, dev.buffer_from(&k)?, dev.buffer_from(&v)?, data::poisoned::<T>(dev, n)?]);
        }
        let (mut some, mut expected) = (Vec::new(), Vec::new());
        for head in [0, batch * heads - 1] {
            let head_rows: Vec<usize> = (head * rows..(head + 1) * rows).collect();
            let (keys, values) = (data::gather(&k, width, &head_rows), data::gather(&v, width, &head_rows));
            for row in data::some_rows(rows, 16) {
                let one = AttentionDims {
                    batch: 1,
                    heads: 1,
                    kv_heads: 1,
                    queries: 1,
                    keys: rows,
                    width,
                    value_width: width,
                };
                let query = data::gather(&q, width, &[head * rows + row]);
                let hidden = |j: usize| if how.causal && j > row { f64::NEG_INFINITY } else { 0.0 };
                let scale = 1.0 / (width as f64).sqrt();
                let (out, _) = reference::attention(&query, &keys, &values, one, scale, |_, _, _, j| hidden(j));
                some.push(head * rows + row);
                expected.extend(out);
            }
        }
        Ok(Self { case: case.clone(), dims, how, sets, some, expected })
    }

    /// In one configuration, by default the one the library chooses.
    ///
    /// # Errors
    /// What the device says; a configuration may be too large for it.
    pub fn measure(
        &self,
        dev: &Device,
        effort: Effort,
        config: Option<AttentionConfig>,
        name: String,
        group: &'static str,
    ) -> Result<Measurement> {
        let [_, _, rows, width] = self.dims;
        let config = config.unwrap_or_else(|| AttentionConfig::heuristic(dev, T::DTYPE, rows, rows, width, false));
        let mut kernels = Vec::new();
        for [q, k, v, out] in &self.sets {
            let [q, k, v, out] = [q.view(self.dims)?, k.view(self.dims)?, v.view(self.dims)?, out.view(self.dims)?];
            let launch = attention_with(q, k, v, None::<View<'_, f32, 4>>, out, None, self.how, config)?;
            kernels.push(launch.prepare()?);
        }
        let poison = vec![T::of(f32::NAN); self.dims.iter().product()];
        for [.., out] in &self.sets {
            out.copy_from(&poison)?;
        }
        let time = timing::time(dev, effort, |i| kernels[i % kernels.len()].launch())?;
        let mut worst = Check { error: 0.0, tolerance: T::TOLERANCE };
        for [.., out] in &self.sets {
            let check = data::compare(&out.to_vec()?, width, &self.some, &self.expected);
            if check.error > worst.error || check.error.is_nan() {
                worst = check;
            }
        }
        let mut result = Measurement::new(name, group, "ms", time)
            .flops(self.case.flops().unwrap_or_default())
            .checked(worst)
            .kernel(kernels[0].kernel());
        result.extra.insert("config".into(), config_name(&config).into());
        result.extra.insert("bytes".into(), self.case.bytes().into());
        Ok(result)
    }
}

/// Such as `128x64 w4 s2`: queries and keys of a tile, warps, stages.
pub fn config_name(c: &AttentionConfig) -> String {
    format!("{}x{} w{} s{}", c.bm, c.bn, c.options.num_warps, c.options.num_stages)
}

/// Configurations to choose from for a width, on a GPU; a few for software devices.
pub fn sweep(gpu: bool, width: usize) -> Vec<AttentionConfig> {
    // Queries, keys, warps, stages. Of four stages and of three one is a product that is still in flight.
    let narrow: &[[usize; 4]] = &[
        [128, 64, 8, 3],
        [128, 64, 8, 2],
        [128, 64, 8, 4],
        [128, 128, 8, 3],
        [128, 128, 8, 2],
        [64, 64, 4, 3],
        [64, 128, 4, 2],
        [64, 128, 4, 3],
        [128, 64, 4, 2],
        [128, 64, 4, 3],
        [256, 64, 16, 3],
    ];
    let wide: &[[usize; 4]] = &[
        [128, 128, 8, 3],
        [128, 128, 8, 2],
        [128, 64, 8, 3],
        [128, 64, 8, 4],
        [128, 64, 8, 2],
        [64, 64, 4, 2],
        [64, 64, 4, 3],
        [64, 128, 4, 2],
        [128, 64, 4, 2],
    ];
    let all = match (gpu, width) {
        (false, _) => &[[32, 32, 4, 2], [64, 32, 4, 2]],
        (true, ..=64) => narrow,
        (true, _) => wide,
    };
    let config = |&[bm, bn, warps, stages]: &[usize; 4]| {
        let options = Options { num_warps: warps as u32, num_stages: stages as u32 };
        AttentionConfig { bm, bn, options }
    };
    all.iter().map(config).collect()
}
