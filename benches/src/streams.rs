//! What only moves memory: the copy that is everyone's ceiling, and vector addition.

use crate::cases::Case;
use crate::data::{self, Check, Number};
use crate::report::Measurement;
use crate::timing::{self, Effort};
use tilewright_kernels::{reference, vector_add};
use tilewright_runtime::{Device, Result};

/// Device-to-device copy by the driver, read and written bytes counted: the bandwidth that streams are compared with.
///
/// # Errors
/// What the device says.
pub fn copy(dev: &Device, effort: Effort, name: &str) -> Result<Measurement> {
    let n: usize = if dev.info().gpu { 256 << 20 } else { 1 << 20 };
    let host = data::normal::<f32>(11, n);
    let (from, to) = (dev.buffer_from(&host)?, data::poisoned::<f32>(dev, n)?);
    let time = timing::time(dev, effort, |_| to.copy_from_buffer(&from))?;
    let got = to.to_vec()?;
    let error = if got == host { 0.0 } else { f64::NAN };
    Ok(Measurement::new(name, "copy", "ms", time).bytes(2 * 4 * n as u64).checked(Check { error, tolerance: 0.0 }))
}

/// Vector addition of `case.dims[0]` elements.
///
/// # Errors
/// What the device says.
pub fn add<T: Number>(dev: &Device, effort: Effort, case: &Case) -> Result<Measurement> {
    let n = case.dims[0];
    let (a, b) = (data::normal::<T>(21, n), data::normal::<T>(22, n));
    let (mut buffers, mut kernels) = (Vec::new(), Vec::new());
    for _ in 0..timing::sets(dev.info().gpu, case.bytes()) {
        buffers.push((dev.buffer_from(&a)?, dev.buffer_from(&b)?, data::poisoned::<T>(dev, n)?));
    }
    for (x, y, out) in &buffers {
        kernels.push(vector_add(x.view([n])?, y.view([n])?, out.view([n])?)?.prepare()?);
    }
    let time = timing::time(dev, effort, |i| kernels[i % kernels.len()].launch())?;
    let mut worst = Check { error: 0.0, tolerance: T::TOLERANCE };
    // Every 101st element stands for the others; all must have been written.
    let expected: Vec<f64> = a.iter().zip(&b).step_by(101).map(|(a, b)| a.wide() + b.wide()).collect();
    for (_, _, out) in &buffers {
        let got = out.to_vec()?;
        let some: Vec<f64> = got.iter().step_by(101).map(|v| v.wide()).collect();
        let error = if data::has_nan(&got) { f64::NAN } else { reference::largest_error(&some, &expected) };
        // `max` would ignore a NaN.
        worst.error = if error > worst.error || error.is_nan() { error } else { worst.error };
    }
    let bytes = case.bytes();
    Ok(Measurement::new(case.name(), "vector_add", "ms", time).bytes(bytes).checked(worst).kernel(kernels[0].kernel()))
}
