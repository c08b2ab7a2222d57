//! Softmax and layer norm over the rows of a matrix.

use crate::cases::{Case, Op};
use crate::data::{self, Number};
use crate::report::Measurement;
use crate::timing::{self, Effort};
use tilewright_kernels::{layer_norm, reference, softmax};
use tilewright_runtime::{Device, Result};

const EPS: f32 = 1e-5;

/// One of the two, at one size.
///
/// # Errors
/// What the device says.
pub fn measure<T: Number>(dev: &Device, effort: Effort, case: &Case) -> Result<Measurement> {
    let (rows, columns) = (case.dims[0], case.dims[1]);
    let n = rows * columns;
    let host = data::normal::<T>(31, n);
    let (w, b) = (data::normal::<T>(32, columns), data::normal::<T>(33, columns));
    let (weight, bias) = (dev.buffer_from(&w)?, dev.buffer_from(&b)?);
    let mut buffers = Vec::new();
    for _ in 0..timing::sets(dev.info().gpu, case.bytes()) {
        buffers.push((dev.buffer_from(&host)?, data::poisoned::<T>(dev, n)?));
    }
    let mut kernels = Vec::new();
    for (x, y) in &buffers {
        let (x, y) = (x.view([rows, columns])?, y.view([rows, columns])?);
        let launch = match case.op {
            Op::LayerNorm => layer_norm(x, weight.view([columns])?, bias.view([columns])?, y, EPS)?,
            Op::Softmax | Op::VectorAdd | Op::Matmul | Op::Attention => softmax(x, y)?,
        };
        kernels.push(launch.prepare()?);
    }
    let time = timing::time(dev, effort, |i| kernels[i % kernels.len()].launch())?;

    let some = data::some_rows(rows, 64);
    let x = data::gather(&host, columns, &some);
    let expected = match case.op {
        Op::LayerNorm => reference::layer_norm(&x, &data::wide(&w), &data::wide(&b), EPS.into()),
        Op::Softmax | Op::VectorAdd | Op::Matmul | Op::Attention => reference::softmax(&x, columns),
    };
    let mut check = data::compare(&buffers[0].1.to_vec()?, columns, &some, &expected);
    for (_, y) in &buffers[1..] {
        let other = data::compare(&y.to_vec()?, columns, &some, &expected);
        if !other.passed() {
            check = other;
        }
    }
    let bytes = case.bytes();
    Ok(Measurement::new(case.name(), case.op.name(), "ms", time)
        .bytes(bytes)
        .checked(check)
        .kernel(kernels[0].kernel()))
}
