//! Matrix products: every case with the configuration the library chooses, and one of them with many.

use crate::cases::Case;
use crate::data::{self, Check, Number};
use crate::report::Measurement;
use crate::timing::{self, Effort};
use tilewright_kernels::{MatmulConfig, matmul_with, reference};
use tilewright_runtime::{Buffer, Device, Options, Result};

/// The matrices of one case: several sets, and what is expected of some rows.
pub struct Product<T> {
    case: Case,
    dims: [usize; 3],
    sets: Vec<[Buffer<T>; 3]>,
    some: Vec<usize>,
    expected: Vec<f64>,
}

impl<T: Number> Product<T> {
    /// Random matrices on the device.
    ///
    /// # Errors
    /// What the device says.
    pub fn new(dev: &Device, case: &Case) -> Result<Self> {
        let [m, n, k] = [case.dims[0], case.dims[1], case.dims[2]];
        let (a, b) = (data::normal::<T>(41, m * k), data::normal::<T>(42, k * n));
        let mut sets = Vec::new();
        for _ in 0..timing::sets(dev.info().gpu, case.bytes()) {
            sets.push([dev.buffer_from(&a)?, dev.buffer_from(&b)?, data::poisoned::<T>(dev, m * n)?]);
        }
        let some = data::some_rows(m, 4);
        let expected = reference::matmul(&data::gather(&a, k, &some), &data::wide(&b), [some.len(), n, k]);
        Ok(Self { case: case.clone(), dims: [m, n, k], sets, some, expected })
    }

    /// In one configuration, by default the one the library chooses.
    ///
    /// # Errors
    /// What the device says; a configuration may be too large for it.
    pub fn measure(
        &self,
        dev: &Device,
        effort: Effort,
        config: Option<MatmulConfig>,
        name: String,
        group: &'static str,
    ) -> Result<Measurement> {
        let [m, n, k] = self.dims;
        let config = config.unwrap_or_else(|| MatmulConfig::heuristic(dev, T::DTYPE, self.dims));
        let mut kernels = Vec::new();
        for [a, b, c] in &self.sets {
            let launch = matmul_with(a.view([m, k])?, b.view([k, n])?, c.view([m, n])?, config)?;
            kernels.push(launch.prepare()?);
        }
        let poison = vec![T::of(f32::NAN); m * n];
        for [_, _, c] in &self.sets {
            c.copy_from(&poison)?;
        }
        let time = timing::time(dev, effort, |i| kernels[i % kernels.len()].launch())?;
        let mut worst = Check { error: 0.0, tolerance: T::TOLERANCE };
        for [_, _, c] in self.sets.iter().take(kernels.len()) {
            let check = data::compare(&c.to_vec()?, n, &self.some, &self.expected);
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

/// Such as `128x128x32 w4 s4`: tile, warps, stages.
pub fn config_name(c: &MatmulConfig) -> String {
    format!("{}x{}x{} w{} s{}", c.bm, c.bn, c.bk, c.options.num_warps, c.options.num_stages)
}

/// Configurations to choose from, for large half-precision products on a GPU; a few for software devices.
pub fn sweep(gpu: bool, quick: bool) -> Vec<MatmulConfig> {
    let large: &[[usize; 5]] = &[
        [128, 256, 64, 8, 4],
        [256, 128, 64, 8, 4],
        [128, 128, 64, 8, 4],
        [128, 128, 64, 4, 4],
        [128, 256, 64, 8, 3],
        [128, 256, 32, 8, 4],
        [128, 128, 32, 4, 4],
        [64, 256, 64, 4, 4],
        // From here on not in a quick run.
        [128, 128, 64, 8, 5],
        [128, 128, 64, 4, 3],
        [128, 128, 64, 8, 3],
        [128, 128, 128, 8, 3],
        [256, 128, 64, 8, 3],
        [256, 128, 64, 16, 4],
        [128, 256, 64, 16, 4],
        [256, 64, 64, 8, 4],
        [64, 128, 64, 4, 4],
        [128, 64, 64, 4, 4],
        [128, 64, 64, 8, 4],
        [64, 64, 64, 4, 4],
        [64, 64, 128, 4, 4],
        [64, 32, 128, 4, 4],
    ];
    let small: &[[usize; 5]] = &[[32, 32, 16, 2, 1], [64, 32, 32, 4, 2]];
    let all = if gpu { &large[..if quick { 8 } else { large.len() }] } else { small };
    all.iter()
        .map(|&[bm, bn, bk, warps, stages]| MatmulConfig {
            bm,
            bn,
            bk,
            group: 8,
            options: Options { num_warps: warps as u32, num_stages: stages as u32 },
        })
        .collect()
}
