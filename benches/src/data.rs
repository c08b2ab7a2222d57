//! Random inputs, poisoned outputs, and the comparison with a reference in double precision.

use half::{bf16, f16};
use tilewright_kernels::reference;
use tilewright_runtime::dsl::Float;
use tilewright_runtime::{Buffer, Device, Result};

/// The floats that are measured.
pub trait Number: Float {
    /// Rounded from `f32`.
    fn of(value: f32) -> Self;
    /// Exact.
    fn wide(self) -> f64;
    /// Is it no number? Faster than asking the exact value.
    fn is_nan(self) -> bool;
    /// The largest error of a result computed in `f32` and rounded once, relative to the largest magnitude.
    const TOLERANCE: f64;
}

impl Number for f32 {
    fn of(value: f32) -> Self {
        value
    }
    fn wide(self) -> f64 {
        self.into()
    }
    fn is_nan(self) -> bool {
        f32::is_nan(self)
    }
    const TOLERANCE: f64 = 1e-5;
}

impl Number for f16 {
    fn of(value: f32) -> Self {
        f16::from_f32(value)
    }
    fn wide(self) -> f64 {
        self.to_f64()
    }
    fn is_nan(self) -> bool {
        f16::is_nan(self)
    }
    // Half a unit in the 11th bit is 4.9e-4.
    const TOLERANCE: f64 = 1e-3;
}

impl Number for bf16 {
    fn of(value: f32) -> Self {
        bf16::from_f32(value)
    }
    fn wide(self) -> f64 {
        self.to_f64()
    }
    fn is_nan(self) -> bool {
        bf16::is_nan(self)
    }
    // Half a unit in the 8th bit is 3.9e-3.
    const TOLERANCE: f64 = 8e-3;
}

/// How far a result is from the reference.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Check {
    /// The largest error, relative to the largest magnitude expected; NaN if an element was not written.
    pub error: f64,
    /// What is allowed.
    pub tolerance: f64,
}

impl Check {
    /// Is it small enough? NaN is not.
    pub fn passed(&self) -> bool {
        self.error <= self.tolerance
    }
}

/// Numbers after which the random ones repeat: odd and larger than any row, so that rows differ.
const PERIOD: usize = (1 << 20) + 7;

/// `n` random numbers of a normal distribution with mean 0 and deviation 1.
pub fn normal<T: Number>(seed: u64, n: usize) -> Vec<T> {
    let mut state = seed;
    let mut uniform = || {
        // SplitMix64, by Steele, Lea and Flood: https://doi.org/10.1145/2714064.2660195
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        // Never 0, whose logarithm is infinite.
        (((z ^ (z >> 31)) >> 40) as f32 + 0.5) / (1u64 << 24) as f32
    };
    // Box and Muller's method.
    let base: Vec<T> = (0..n.min(PERIOD))
        .map(|_| T::of((-2.0 * uniform().ln()).sqrt() * (std::f32::consts::TAU * uniform()).cos()))
        .collect();
    let mut all = Vec::with_capacity(n);
    while all.len() < n {
        all.extend_from_slice(&base[..base.len().min(n - all.len())]);
    }
    all
}

/// A buffer of `n` NaNs, to be overwritten.
///
/// # Errors
/// What the device says.
pub fn poisoned<T: Number>(dev: &Device, n: usize) -> Result<Buffer<T>> {
    dev.buffer_from(&vec![T::of(f32::NAN); n])
}

/// As `f64`.
pub fn wide<T: Number>(values: &[T]) -> Vec<f64> {
    values.iter().map(|v| v.wide()).collect()
}

/// Is an element NaN: not written, or wrong?
pub fn has_nan<T: Number>(values: &[T]) -> bool {
    values.iter().any(|v| v.is_nan())
}

/// A few rows spread over `rows`, the first and the last among them.
pub fn some_rows(rows: usize, count: usize) -> Vec<usize> {
    let mut some: Vec<_> = (0..count).map(|i| i * rows.saturating_sub(1) / (count - 1).max(1)).collect();
    some.dedup();
    some
}

/// The chosen rows of `columns` elements, one after the other, as `f64`.
pub fn gather<T: Number>(values: &[T], columns: usize, rows: &[usize]) -> Vec<f64> {
    rows.iter().flat_map(|r| wide(&values[r * columns..(r + 1) * columns])).collect()
}

/// Compares the chosen rows of `got` with what is expected of them; every element of `got` must have been written.
pub fn compare<T: Number>(got: &[T], columns: usize, rows: &[usize], expected: &[f64]) -> Check {
    let error = if has_nan(got) { f64::NAN } else { reference::largest_error(&gather(got, columns, rows), expected) };
    Check { error, tolerance: T::TOLERANCE }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_numbers_have_mean_0_and_deviation_1() {
        let x: Vec<f32> = normal(1, 2_000_000);
        let mean = x.iter().map(|v| v.wide()).sum::<f64>() / x.len() as f64;
        let variance = x.iter().map(|v| v.wide().powi(2)).sum::<f64>() / x.len() as f64;
        assert!(mean.abs() < 0.01 && (variance - 1.0).abs() < 0.01, "{mean} {variance}");
        assert!(x.iter().all(|v| v.is_finite()));
        assert_ne!(normal::<f32>(2, 10), normal::<f32>(1, 10));
    }

    #[test]
    fn an_element_not_written_fails_the_check() {
        let got = [1.0f32, f32::NAN, 3.0, 4.0];
        assert!(!compare(&got, 2, &[1], &[3.0, 4.0]).passed());
        let got = [1.0f32, 2.0, 3.0, 4.0];
        assert!(compare(&got, 2, &[1], &[3.0, 4.0]).passed());
        assert!(!compare(&got, 2, &[1], &[3.0, 4.1]).passed());
    }

    #[test]
    fn chosen_rows_are_inside() {
        assert_eq!(some_rows(1, 4), [0]);
        assert_eq!(some_rows(10, 4), [0, 3, 6, 9]);
    }
}
