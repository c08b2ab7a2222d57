//! The errors of functions that kernels compute by sequences of their own, over many numbers.

use super::steps;
use crate::common::other_devices;
use tilewright_graph_lowering::{DType, Number, Options, Tensor, compile};

/// A function of tensors with its name, the same in double precision, and the most units in the last place it may be
/// off: of `f32`, of `f64`, and of `f32` where `exp` is an approximation of the hardware's (CUDA).
type Row = (&'static str, fn(&Tensor) -> Tensor, fn(f64) -> f64, [u64; 3]);

const FUNCTIONS: [Row; 3] = [
    ("log1p", Tensor::log1p, libm::log1p, [2, 2, 2]),
    ("expm1", Tensor::expm1, libm::expm1, [2, 2, 2]),
    ("erfc", Tensor::erfc, libm::erfc, [4, 5, 5]),
];

/// Numbers of all sizes, and dense where the functions are curved.
fn numbers() -> Vec<f64> {
    let sizes = (0..6000).map(|i| (f64::from(i) / 6000.0 * 40.0 - 30.0).exp2());
    let dense = (0..9000).map(|i| f64::from(i) * 0.003_01);
    sizes.chain(dense).flat_map(|x| [x, -x]).collect()
}

/// The largest error on a device and where it is; `wide` are the numbers `x` as doubles.
fn worst<T: Number>(device: &str, (_, f, exact, _): &Row, x: &[T], wide: &[f64], least: f64) -> (u64, f64) {
    let dtype = T::DTYPE;
    let x = Tensor::vector(x);
    let got = compile(f, Options::new().device(device)).unwrap().call(&x).unwrap().to_literal().unwrap();
    let mut worst = (0, 0.0);
    for (i, &x) in wide.iter().enumerate() {
        let e = exact(x);
        // Results below the least normal number have fewer digits.
        if e.is_nan() || e.abs() < least {
            continue;
        }
        let expected = Tensor::full(dtype, &[], e).to_literal().unwrap().word(0);
        worst = std::cmp::max_by(worst, (steps(dtype, got.word(i)).abs_diff(steps(dtype, expected)), x), |a, b| {
            a.0.cmp(&b.0)
        });
    }
    worst
}

#[test]
fn functions_of_several_operations_are_as_accurate_as_they_say() {
    let wide = numbers();
    let narrow: Vec<f32> = wide.iter().map(|&x| x as f32).collect();
    let rounded: Vec<f64> = narrow.iter().map(|&x| f64::from(x)).collect();
    let devices = [vec!["cpu".to_owned()], other_devices()].concat();
    for row in FUNCTIONS {
        let (name, f, _, most) = row;
        for device in &devices {
            let (error, at) = worst(device, &row, &narrow, &rounded, f64::from(f32::MIN_POSITIVE));
            println!("{name} of f32 on {device}: {error} at {at:e}");
            let most_f32 = if device.starts_with("cuda") { most[2] } else { most[0] };
            assert!(error <= most_f32, "{name} of f32 on {device}: {error} units at {at:e}");
            // Vulkan's own precision of `exp`, `log` and `fma` of doubles is not that of the other devices.
            if !device.starts_with("vulkan") {
                let (error, at) = worst(device, &row, &wide, &wide, f64::MIN_POSITIVE);
                println!("{name} of f64 on {device}: {error} at {at:e}");
                assert!(error <= most[1], "{name} of f64 on {device}: {error} units at {at:e}");
            }
        }
        let half = Tensor::vector(&narrow).cast(DType::F16);
        let got = compile(f, Options::new().device("cpu")).unwrap().call(&half).unwrap().to_f64s().unwrap();
        for (g, e) in got.iter().zip(f(&half).to_f64s().unwrap()) {
            assert!(
                (g - e).abs() <= e.abs() / 1024.0 || *g == e || (g.is_nan() && e.is_nan()),
                "{name} of f16: {g}, {e}"
            );
        }
    }
}
