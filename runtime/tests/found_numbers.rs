//! Numbers that once came out wrong on some device, with what is right. The names are those of the records of these faults.

extern crate tilewright_runtime as tilewright;

use tilewright::dsl::*;
use tilewright::{Device, DeviceKind};

fn on_every_device(body: impl Fn(&Device)) {
    for info in Device::list() {
        match &info.unusable {
            Some(why) => eprintln!("skipped {}: {why}", info.name),
            None => {
                eprintln!("on {info}");
                body(&Device::open(&info.name).unwrap());
            }
        }
    }
}

#[kernel]
fn negated_magnitude<T: Int>(x: In<T, 1>, y: Out<T, 1>) {
    let v = x.load([0], [4]);
    y.store([0], abs(v - v - v));
    y.store([4], abs(-v));
}

/// The absolute value of a negated unsigned number is the number as it wrapped.
#[test]
fn found_l2() {
    on_every_device(|dev| {
        let x = dev.buffer_from(&[1u32, 2, 100, u32::MAX]).unwrap();
        let y = dev.zeros::<u32>(8).unwrap();
        negated_magnitude(x.view([4]).unwrap(), y.view([8]).unwrap()).grid([1]).launch().unwrap();
        let right = [4_294_967_295, 4_294_967_294, 4_294_967_196, 1];
        assert_eq!(y.to_vec().unwrap(), [right, right].concat());
        let x = dev.buffer_from(&[1u8, 2, 100, 255]).unwrap();
        let y = dev.zeros::<u8>(8).unwrap();
        negated_magnitude(x.view([4]).unwrap(), y.view([8]).unwrap()).grid([1]).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [255, 254, 156, 1, 255, 254, 156, 1]);
        let x = dev.buffer_from(&[1i16, -2, i16::MIN, i16::MAX]).unwrap();
        let y = dev.zeros::<i16>(8).unwrap();
        negated_magnitude(x.view([4]).unwrap(), y.view([8]).unwrap()).grid([1]).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [1, 2, i16::MIN, i16::MAX, 1, 2, i16::MIN, i16::MAX]);
    });
}

#[kernel]
fn beside_zero<T: Float>(x: In<T, 1>, y: Out<T, 2>) {
    let v = x.load([0], [8]);
    let row = |v: Tile<T>| expand_dims(v, 0);
    y.store([0, 0], row(v * 0.0));
    y.store([1, 0], row(v + 0.0));
    y.store([2, 0], row(0.0 - v));
    y.store([3, 0], row(v / 0.0));
    y.store([4, 0], row(v * -0.0));
    y.store([5, 0], row(v + -0.0));
    y.store([6, 0], row(0.0 / v));
    y.store([7, 0], row(v - v));
    y.store([8, 0], row(fma(v, full([8], 0.0), full([8], 0.0))));
}

/// A constant zero is a number like others: NaN, infinities and the signs of zeros stay.
#[test]
fn found_l3() {
    let inputs = [0.0, -0.0, 1.0, -2.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 5.0];
    let right: Vec<f64> = [
        |v: f64| v * 0.0,
        |v| v + 0.0,
        |v| 0.0 - v,
        |v| v / 0.0,
        |v| v * -0.0,
        |v| v + -0.0,
        |v| 0.0 / v,
        |v| v - v,
        |v: f64| v.mul_add(0.0, 0.0),
    ]
    .iter()
    .flat_map(|f| inputs.map(f))
    .collect();
    // NaN has no sign.
    let text = |v: f64| if v.is_nan() { "NaN".into() } else { format!("{v:?}") };
    let expected: Vec<String> = right.into_iter().map(text).collect();
    macro_rules! check {
        ($dev:expr, $ty:ty, $of:expr, $to:expr) => {{
            let x = $dev.buffer_from(&inputs.map($of)).unwrap();
            let y = $dev.zeros::<$ty>(72).unwrap();
            beside_zero(x.view([8]).unwrap(), y.view([9, 8]).unwrap()).grid([1]).launch().unwrap();
            let got: Vec<String> = y.to_vec().unwrap().into_iter().map(|v| text($to(v))).collect();
            assert_eq!(got, expected, "{}", stringify!($ty));
        }};
    }
    on_every_device(|dev| {
        check!(dev, f16, f16::from_f64, f16::to_f64);
        check!(dev, bf16, bf16::from_f64, bf16::to_f64);
        check!(dev, f32, |v| v as f32, f64::from);
        check!(dev, f64, |v| v, |v| v);
    });
}

#[kernel]
fn extremes<T: Float>(x: In<T, 1>, y: In<T, 1>, out: Out<T, 1>) {
    let (x, y) = (x.load([0], [4]), y.load([0], [4]));
    out.store([0], fmin(x, y));
    out.store([4], fmax(x, y));
}

/// -0 is less than +0, also for `fmin` and `fmax`, whichever comes first.
#[test]
fn found_zeros_of_extremes() {
    on_every_device(|dev| {
        let x = dev.buffer_from(&[0.0f32, -0.0, f32::NAN, -0.0]).unwrap();
        let y = dev.buffer_from(&[-0.0f32, 0.0, -0.0, f32::NAN]).unwrap();
        let out = dev.zeros::<f32>(8).unwrap();
        extremes(x.view([4]).unwrap(), y.view([4]).unwrap(), out.view([8]).unwrap()).grid([1]).launch().unwrap();
        let got: Vec<String> = out.to_vec().unwrap().iter().map(|v| format!("{v:?}")).collect();
        assert_eq!(got, ["-0.0", "-0.0", "-0.0", "-0.0", "0.0", "0.0", "-0.0", "-0.0"]);
    });
}

#[kernel]
fn multiply_add<T: Float>(a: In<T, 1>, b: In<T, 1>, c: In<T, 1>, y: Out<T, 1>) {
    y.store([0], fma(a.load([0], [64]), b.load([0], [64]), c.load([0], [64])));
}

/// `fma` is rounded once.
#[test]
fn found_l4() {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64 * 2.0 - 1.0
    };
    let (mut a, mut b, mut c) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..64i32 {
        let (x, y) = (next() * 2f64.powi(i * 5 - 160), next() * 2f64.powi(40 - i));
        a.push(x);
        b.push(y);
        // Mostly so that the sum cancels, or is decided by the last bits of the product.
        c.push(match i % 4 {
            0 => -(x * y),
            1 => next(),
            2 => x * y * 2f64.powi(53),
            _ => -(x * y) * (1.0 + f64::EPSILON),
        });
    }
    (a[0], b[0], c[0]) = (f64::NAN, 1.0, 1.0);
    (a[1], b[1], c[1]) = (f64::INFINITY, 0.0, 1.0);
    (a[2], b[2], c[2]) = (-0.0, 1.0, -0.0);
    // The product of finite numbers is finite, however large.
    (a[3], b[3], c[3]) = (f64::MAX, -2.0, f64::INFINITY);
    on_every_device(|dev| {
        let [x, y, z] = [&a, &b, &c].map(|v| dev.buffer_from(v).unwrap());
        let out = dev.zeros::<f64>(64).unwrap();
        let n = [64];
        multiply_add(x.view(n).unwrap(), y.view(n).unwrap(), z.view(n).unwrap(), out.view(n).unwrap())
            .grid([1])
            .launch()
            .unwrap();
        for (i, got) in out.to_vec().unwrap().into_iter().enumerate() {
            let right = a[i].mul_add(b[i], c[i]);
            let same = got.to_bits() == right.to_bits() || got.is_nan() && right.is_nan();
            assert!(same, "{i}: fma({}, {}, {}) is {got:e}, not {right:e}", a[i], b[i], c[i]);
        }
    });
}

#[kernel]
fn widened_order(x: In<i32, 1>, y: Out<i64, 2>) {
    let narrow = x.load([0], [8]);
    let v = narrow.to::<i64>();
    let row = |v: Tile<i64>| expand_dims(v, 0);
    y.store([0, 0], row((v < 3).to::<i64>()));
    y.store([1, 0], row((v > 3).to::<i64>()));
    y.store([2, 0], row((v <= -3).to::<i64>()));
    y.store([3, 0], row(maximum(v, 3)));
    y.store([4, 0], row(minimum(v, -3)));
    y.store([5, 0], row((v < 5_000_000_000i64).to::<i64>()));
    y.store([6, 0], row(maximum(v, -5_000_000_000i64)));
    let u = narrow.to::<u32>().to::<i64>();
    y.store([7, 0], row((u < 3).to::<i64>()));
    y.store([8, 0], row((u > 2_147_483_648i64).to::<i64>()));
    y.store([9, 0], row((u > v).to::<i64>()));
}

/// Numbers of 64 bits widened from 32 are ordered as they are.
#[test]
fn found_l10() {
    let x = [0, 1, 3, 4, -3, -4, i32::MAX, i32::MIN];
    let wide = x.map(i64::from);
    let unsigned = x.map(|v| i64::from(v as u32));
    let expected = [
        wide.map(|v| i64::from(v < 3)),
        wide.map(|v| i64::from(v > 3)),
        wide.map(|v| i64::from(v <= -3)),
        wide.map(|v| v.max(3)),
        wide.map(|v| v.min(-3)),
        [1; 8],
        wide,
        unsigned.map(|v| i64::from(v < 3)),
        unsigned.map(|v| i64::from(v > 1 << 31)),
        std::array::from_fn(|i| i64::from(unsigned[i] > wide[i])),
    ]
    .concat();
    on_every_device(|dev| {
        let x = dev.buffer_from(&x).unwrap();
        let y = dev.zeros::<i64>(80).unwrap();
        widened_order(x.view([8]).unwrap(), y.view([10, 8]).unwrap()).grid([1]).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), expected);
    });
}

/// The list above leaves no kind of device of this machine out.
#[test]
fn the_interpreter_is_among_the_devices() {
    assert!(Device::list().iter().any(|d| d.kind == DeviceKind::Cpu && d.unusable.is_none()));
}
