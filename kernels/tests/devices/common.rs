//! What the tests share: devices, element types, numbers.

use std::any::Any;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, OnceLock, PoisonError};
use tilewright::dsl::{self, bf16, f16};
use tilewright::{Buffer, Device, DeviceKind, Element};

/// The devices under test. They stay open until the process ends, and one test at a time uses each: tests measure counters
/// of devices, and software drivers use all cores anyway.
fn devices() -> &'static [(Device, Mutex<()>)] {
    static DEVICES: OnceLock<Vec<(Device, Mutex<()>)>> = OnceLock::new();
    DEVICES.get_or_init(|| {
        let wanted = std::env::var("TILEWRIGHT_TEST_DEVICES").ok().filter(|v| !v.trim().is_empty());
        let names: Vec<String> = match wanted {
            Some(list) => list.split(',').map(|name| name.trim().to_owned()).collect(),
            None => Device::list()
                .into_iter()
                .filter_map(|info| match info.unusable {
                    Some(why) => {
                        eprintln!("skipped {}: {why}", info.name);
                        None
                    }
                    None => Some(info.name),
                })
                .collect(),
        };
        names
            .iter()
            .map(|name| {
                let device = Device::open(name).unwrap_or_else(|e| panic!("{e}"));
                eprintln!("testing {device}");
                (device, Mutex::new(()))
            })
            .collect()
    })
}

/// Runs a test's body on every device; fails at the end with all devices where it failed.
pub fn on_every_device(body: impl Fn(&Device)) {
    let mut failed = Vec::new();
    for (device, turn) in devices() {
        let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| body(device))) {
            failed.push(format!("{}: {}", device.name(), message(panic.as_ref())));
        }
    }
    assert!(failed.is_empty(), "failed on\n{}", failed.join("\n"));
}

fn message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("a panic without a message")
}

/// A buffer on the device.
pub fn upload<T: Element>(dev: &Device, host: &[T]) -> Buffer<T> {
    dev.buffer_from(host).unwrap_or_else(|e| panic!("{e}"))
}

/// A buffer that nothing was written to; in debug builds full of a pattern, so that what a kernel leaves out shows.
pub fn garbage<T: Element>(dev: &Device, len: usize) -> Buffer<T> {
    dev.alloc(len).unwrap_or_else(|e| panic!("{e}"))
}

/// How many roundings the sum of a row may take part in: the levels of a tree and the pieces of a long row; on the CPU, which
/// adds every 16th element one after the other, that many.
pub fn sum_roundings(dev: &Device, columns: usize) -> f64 {
    let one_by_one = if dev.info().kind == DeviceKind::Cpu { columns.min(1 << 14) / 16 } else { 0 };
    (21 + one_by_one) as f64
}

/// Pseudo-random bits, the same everywhere: the finaliser of SplitMix64.
pub fn bits(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A pseudo-random number from -1 to 1.
pub fn uniform(seed: u64) -> f64 {
    (bits(seed) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

/// A float type on the host.
pub trait Real: Element + dsl::Float + dsl::DotElement + PartialEq + Debug {
    /// The greatest relative error of rounding to this type.
    const ROUNDING: f64;
    /// The greatest absolute error of rounding where the type is subnormal.
    const TINY: f64;
    fn of(x: f64) -> Self;
    fn double(self) -> f64;
}

macro_rules! real {
    ($($ty:ty, $digits:expr, $least:expr, $of:expr, $double:expr;)*) => { $(
        impl Real for $ty {
            const ROUNDING: f64 = 1.0 / (1u64 << $digits) as f64;
            const TINY: f64 = $least;
            fn of(x: f64) -> Self {
                ($of)(x)
            }
            fn double(self) -> f64 {
                ($double)(self)
            }
        }
    )* };
}

// Digits of the significand, with the hidden one; half of the least subnormal number. For f32 and bf16, whose subnormal
// numbers a device may flush, the least normal number.
real! {
    f16, 11, 2.98e-8, f16::from_f64, f16::to_f64;
    bf16, 8, 1.18e-38, bf16::from_f64, bf16::to_f64;
    f32, 24, 1.18e-38, |x| x as f32, f64::from;
}

/// As doubles.
pub fn doubles<T: Real>(values: &[T]) -> Vec<f64> {
    values.iter().map(|v| v.double()).collect()
}

/// Fails at the first element that is farther from `expected` than `tolerance(index, expected)`. Infinities and NaN must be
/// as expected.
#[track_caller]
pub fn assert_close<T: Real>(what: &str, got: &[T], expected: &[f64], tolerance: impl Fn(usize, f64) -> f64) {
    assert_eq!(got.len(), expected.len(), "{what}: lengths");
    for (i, (g, &e)) in got.iter().zip(expected).enumerate() {
        let g = g.double();
        let right = if e.is_nan() {
            g.is_nan()
        } else if T::of(e).double().is_infinite() {
            g == T::of(e).double()
        } else {
            (g - e).abs() <= tolerance(i, e)
        };
        assert!(right, "{what}: element {i} is {g:e}, expected {e:e} within {:e}", tolerance(i, e));
    }
}

/// Fails at the first element that differs.
#[track_caller]
pub fn assert_same<T: PartialEq + Debug>(what: &str, got: &[T], expected: &[T]) {
    assert_eq!(got.len(), expected.len(), "{what}: lengths");
    if let Some(i) = (0..got.len()).find(|&i| got[i] != expected[i]) {
        panic!("{what}: element {i} is {:?}, expected {:?}", got[i], expected[i]);
    }
}
