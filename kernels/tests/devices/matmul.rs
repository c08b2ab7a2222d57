//! Matrix products against doubles.

use crate::common::{Real, assert_close, doubles, garbage, on_every_device, uniform, upload};
use tilewright::dsl::{bf16, f16};
use tilewright::{Device, DeviceKind, Options};
use tilewright_kernels::{MatmulConfig, matmul, matmul_with, reference};

/// How the operands lie in memory.
#[derive(Clone, Copy, Debug)]
struct Transposed {
    a: bool,
    b: bool,
}

const PLAIN: Transposed = Transposed { a: false, b: false };

fn transpose<T: Copy>(x: &[T], [rows, columns]: [usize; 2]) -> Vec<T> {
    (0..rows * columns).map(|i| x[i % rows * columns + i / rows]).collect()
}

fn numbers<T: Real>(n: usize, seed: u64) -> Vec<T> {
    (0..n as u64).map(|i| T::of(uniform(seed + i))).collect()
}

/// The classical bound: the sum of `k` products is off by at most `k` roundings of the sum of their magnitudes. Matrix units
/// cut off instead of rounding, which doubles that. Then one rounding to the type of the result.
fn check<T: Real>(dev: &Device, [m, n, k]: [usize; 3], lie: Transposed, config: Option<MatmulConfig>) {
    let (a, b) = (numbers::<T>(m * k, 1), numbers::<T>(k * n, 1 << 40));
    let da = upload(dev, &if lie.a { transpose(&a, [m, k]) } else { a.clone() });
    let db = upload(dev, &if lie.b { transpose(&b, [k, n]) } else { b.clone() });
    let dc = garbage::<T>(dev, m * n);
    let strides = |transposed, [rows, columns]: [usize; 2]| {
        if transposed { [1, rows as isize] } else { [columns as isize, 1] }
    };
    let va = da.view_strided(0, [m, k], strides(lie.a, [m, k])).unwrap();
    let vb = db.view_strided(0, [k, n], strides(lie.b, [k, n])).unwrap();
    let vc = dc.view([m, n]).unwrap();
    let launch = match config {
        Some(config) => matmul_with(va, vb, vc, config),
        None => matmul(va, vb, vc),
    };
    launch.unwrap().launch().unwrap_or_else(|e| panic!("{e} ({config:?})"));

    let (a, b) = (doubles(&a), doubles(&b));
    let expected = reference::matmul(&a, &b, [m, n, k]);
    let size = |x: &[f64]| x.iter().map(|v| v.abs()).collect::<Vec<_>>();
    let sizes = reference::matmul(&size(&a), &size(&b), [m, n, k]);
    let what = format!("{m} x {n} x {k} {}, {lie:?}, {config:?}", T::DTYPE);
    assert_close(&what, &dc.to_vec().unwrap(), &expected, |i, e| {
        2.0 * (k + 1) as f64 * f32::ROUNDING * sizes[i] + T::ROUNDING * e.abs() + T::TINY
    });
}

/// Every extent of 1, 3, 16, 17, 64, 100, 128 and 200 in each place at least once, tiny ones beside large ones.
const SHAPES: [[usize; 3]; 14] = [
    [1, 1, 1],
    [1, 128, 64],
    [3, 17, 100],
    [16, 16, 16],
    [17, 3, 128],
    [64, 64, 64],
    [64, 1, 200],
    [100, 100, 100],
    [128, 200, 17],
    [128, 128, 128],
    [200, 64, 3],
    [200, 16, 1],
    [16, 200, 200],
    [100, 17, 16],
];

fn shapes<T: Real>(dev: &Device) {
    for shape in SHAPES {
        check::<T>(dev, shape, PLAIN, None);
    }
}

#[test]
fn any_shape_in_f32() {
    on_every_device(shapes::<f32>);
}

#[test]
fn any_shape_in_f16() {
    on_every_device(shapes::<f16>);
}

#[test]
fn any_shape_in_bf16() {
    on_every_device(shapes::<bf16>);
}

#[test]
fn large() {
    on_every_device(|dev| check::<f32>(dev, [512, 384, 256], PLAIN, None));
    on_every_device(|dev| check::<f16>(dev, [256, 512, 512], PLAIN, None));
}

#[test]
fn transposed_operands() {
    on_every_device(|dev| {
        for (a, b) in [(true, false), (false, true), (true, true)] {
            check::<f32>(dev, [100, 64, 37], Transposed { a, b }, None);
            check::<f16>(dev, [64, 128, 64], Transposed { a, b }, None);
            check::<f16>(dev, [33, 50, 70], Transposed { a, b }, None);
        }
    });
}

/// Tiles, warps and stages. All that a GPU is tuned over; software devices, which compile slowly, get every second one.
fn configs(dev: &Device) -> impl Iterator<Item = MatmulConfig> {
    let tiles = [(16, 16, 16), (32, 32, 16), (64, 32, 32), (32, 64, 64), (64, 64, 16), (128, 64, 32), (16, 128, 32)];
    let warps_and_stages = [(1, 1), (1, 3), (2, 2), (4, 4), (4, 2), (8, 3), (8, 1)];
    let step = if dev.info().kind == DeviceKind::Cuda { 1 } else { 2 };
    let all = tiles.into_iter().enumerate().flat_map(move |(i, (bm, bn, bk))| {
        warps_and_stages.into_iter().enumerate().filter(move |(j, _)| step == 1 || *j == i % 7).map(
            move |(_, (num_warps, num_stages))| {
                let group = if bm == 32 { 1 } else { 4 };
                MatmulConfig { bm, bn, bk, group, options: Options { num_warps, num_stages } }
            },
        )
    });
    all.collect::<Vec<_>>().into_iter()
}

/// A configuration may need more shared memory than the device has: then it is refused, and says so.
fn shared_memory_suffices<T: Real>(dev: &Device, config: MatmulConfig) -> bool {
    let x = garbage::<T>(dev, 16 * 16);
    let v = x.view([16, 16]).unwrap();
    match matmul_with(v, v, v, config).unwrap().compile() {
        Ok(_) => true,
        Err(e) => {
            assert!(e.to_string().contains("shared memory"), "{e}");
            eprintln!("skipped on {dev}: {e}");
            false
        }
    }
}

#[test]
fn any_configuration() {
    on_every_device(|dev| {
        let mut fit = 0;
        for config in configs(dev) {
            if shared_memory_suffices::<f16>(dev, config) {
                check::<f16>(dev, [144, 160, 208], PLAIN, Some(config));
                fit += 1;
            }
            if shared_memory_suffices::<f32>(dev, config) {
                check::<f32>(dev, [70, 90, 50], PLAIN, Some(config));
                fit += 1;
            }
        }
        assert!(fit >= 8, "only {fit} configurations fit the device");
    });
}

#[test]
fn no_products_give_zeros() {
    on_every_device(|dev| {
        let nothing = upload::<f32>(dev, &[]);
        let c = garbage::<f32>(dev, 20 * 30);
        let (a, b) = (nothing.view([20, 0]).unwrap(), nothing.view([0, 30]).unwrap());
        matmul(a, b, c.view([20, 30]).unwrap()).unwrap().launch().unwrap();
        assert_eq!(c.to_vec().unwrap(), [0.0; 600]);
        // And no results are computed without an error.
        let a = c.view([0, 20]).unwrap();
        matmul(a, c.view([20, 30]).unwrap(), nothing.view([0, 30]).unwrap()).unwrap().launch().unwrap();
    });
}

#[test]
fn f16_overflows_to_infinity() {
    on_every_device(|dev| {
        let (m, n, k) = (32, 48, 64);
        // 64 products of 200 and 200 make 2 560 000, far more than 65504; every other row is negative.
        let a: Vec<f16> = (0..m * k).map(|i| f16::from_f32(if i / k % 2 == 0 { 200.0 } else { -200.0 })).collect();
        let (da, db) = (upload(dev, &a), upload(dev, &vec![f16::from_f32(200.0); k * n]));
        let dc = garbage::<f16>(dev, m * n);
        matmul(da.view([m, k]).unwrap(), db.view([k, n]).unwrap(), dc.view([m, n]).unwrap()).unwrap().launch().unwrap();
        for (i, v) in dc.to_vec().unwrap().into_iter().enumerate() {
            assert_eq!(v, if i / n % 2 == 0 { f16::INFINITY } else { f16::NEG_INFINITY }, "element {i}");
        }
    });
}

#[test]
fn infinities_and_nan_stay_in_their_row_and_column() {
    on_every_device(|dev| {
        let n = 40;
        let mut a = numbers::<f32>(n * n, 1);
        let mut b = numbers::<f32>(n * n, 2);
        a[3 * n + 5] = f32::NAN;
        b[7 * n + 9] = f32::INFINITY;
        let (da, db, dc) = (upload(dev, &a), upload(dev, &b), garbage::<f32>(dev, n * n));
        matmul(da.view([n, n]).unwrap(), db.view([n, n]).unwrap(), dc.view([n, n]).unwrap()).unwrap().launch().unwrap();
        for (i, v) in dc.to_vec().unwrap().into_iter().enumerate() {
            match (i / n, i % n) {
                (3, _) => assert!(v.is_nan(), "({}, {})", i / n, i % n),
                (row, 9) => assert_eq!(v, f32::INFINITY * a[row * n + 7].signum(), "row {row}"),
                (row, column) => assert!(v.is_finite(), "({row}, {column})"),
            }
        }
    });
}

#[test]
fn the_same_bits_every_time() {
    on_every_device(|dev| {
        let (m, n, k) = (128, 96, 300);
        let (a, b) = (upload(dev, &numbers::<f16>(m * k, 1)), upload(dev, &numbers::<f16>(k * n, 2)));
        let mut first = None;
        for run in 0..20 {
            let c = garbage::<f16>(dev, m * n);
            matmul(a.view([m, k]).unwrap(), b.view([k, n]).unwrap(), c.view([m, n]).unwrap())
                .unwrap()
                .launch()
                .unwrap();
            let bits: Vec<u16> = c.to_vec().unwrap().into_iter().map(f16::to_bits).collect();
            assert_eq!(*first.get_or_insert_with(|| bits.clone()), bits, "run {run}");
        }
    });
}

#[test]
fn extents_that_do_not_fit_are_refused() {
    on_every_device(|dev| {
        let x = upload(dev, &[0.0f32; 12]);
        let e =
            matmul(x.view([3, 4]).unwrap(), x.view([3, 4]).unwrap(), x.view([3, 4]).unwrap()).unwrap_err().to_string();
        assert!(e.contains("[3, 4]") && e.contains("[k, n]"), "{e}");
    });
}
