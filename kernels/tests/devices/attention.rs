//! Attention against doubles.

use crate::common::{Real, bits, doubles, garbage, on_every_device, uniform, upload};
use tilewright::dsl::{bf16, f16};
use tilewright::{DType, Device, DeviceKind, Options};
use tilewright_kernels::reference::{self, AttentionDims};
use tilewright_kernels::{Attention, AttentionConfig, attention, attention_with};

/// What hides keys.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Mask {
    None,
    /// Truth values, one for each query and key, the same for all heads.
    Truth,
    /// Numbers to add, one for each key of a sequence, the same for all heads and queries; some are minus infinity.
    Numbers,
}

#[derive(Clone, Copy, Debug)]
struct Case {
    dims: AttentionDims,
    how: Attention,
    mask: Mask,
    config: Option<AttentionConfig>,
    /// Do q, k and v lie side by side in one buffer, `[batch, rows, heads, width]`, as a projection leaves them?
    packed: bool,
}

const fn dims(batch: usize, heads: usize, kv_heads: usize, queries: usize, keys: usize, width: usize) -> AttentionDims {
    AttentionDims { batch, heads, kv_heads, queries, keys, width, value_width: width }
}

const PLAIN: Attention = Attention { causal: false, scale: None };
const CAUSAL: Attention = Attention { causal: true, scale: None };

const fn case(dims: AttentionDims, how: Attention) -> Case {
    Case { dims, how, mask: Mask::None, config: None, packed: false }
}

fn numbers<T: Real>(n: usize, seed: u64) -> Vec<T> {
    (0..n as u64).map(|i| T::of(uniform(seed + i))).collect()
}

/// One tensor of `[batch, heads, rows, width]`, with its place in memory.
struct Placed<T> {
    host: Vec<T>,
    strides: [isize; 4],
    dims: [usize; 4],
}

impl<T: Real> Placed<T> {
    fn new(dims: [usize; 4], rows_first: bool, seed: u64) -> Self {
        let [_, h, t, w] = dims.map(|d| d as isize);
        let strides = if rows_first { [t * h * w, w, h * w, 1] } else { [h * t * w, t * w, w, 1] };
        Self { host: numbers(dims.iter().product(), seed), strides, dims }
    }

    /// In row-major order of the dimensions.
    fn doubles(&self) -> Vec<f64> {
        let ([b, h, t, w], s) = (self.dims, self.strides.map(|s| s as usize));
        let mut out = Vec::new();
        for i in 0..b * h * t * w {
            let at = [i / (h * t * w), i / (t * w) % h, i / w % t, i % w];
            out.push(self.host[at.iter().zip(s).map(|(x, s)| x * s).sum::<usize>()].double());
        }
        out
    }
}

fn check<T: Real>(dev: &Device, case: Case) {
    let AttentionDims { batch, heads, kv_heads, queries, keys, width, value_width } = case.dims;
    let q = Placed::<T>::new([batch, heads, queries, width], case.packed, 1);
    let k = Placed::<T>::new([batch, kv_heads, keys, width], case.packed, 1 << 40);
    let v = Placed::<T>::new([batch, kv_heads, keys, value_width], case.packed, 1 << 41);
    let out = Placed::<T>::new([batch, heads, queries, value_width], case.packed, 1 << 42);
    let (dq, dk, dv) = (upload(dev, &q.host), upload(dev, &k.host), upload(dev, &v.host));
    let (dy, dl) = (garbage::<T>(dev, out.host.len()), garbage::<f32>(dev, batch * heads * queries));
    let truth: Vec<bool> = (0..queries * keys).map(|i| !bits(i as u64).is_multiple_of(3)).collect();
    let added: Vec<f32> = (0..batch * keys)
        .map(|i| if bits(7 + i as u64).is_multiple_of(5) { f32::NEG_INFINITY } else { uniform(i as u64) as f32 * 3.0 })
        .collect();
    let (dtruth, dadded) = (upload(dev, &truth), upload(dev, &added));
    let config = case.config.unwrap_or_else(|| {
        AttentionConfig::heuristic(
            dev,
            T::DTYPE,
            queries,
            keys,
            width.max(value_width),
            !matches!(case.mask, Mask::None),
        )
    });
    let (vq, vk) = (dq.view_strided(0, q.dims, q.strides).unwrap(), dk.view_strided(0, k.dims, k.strides).unwrap());
    let (vv, vy) = (dv.view_strided(0, v.dims, v.strides).unwrap(), dy.view_strided(0, out.dims, out.strides).unwrap());
    let vl = dl.view([batch, heads, queries]).unwrap();
    let all = [batch, heads, queries, keys];
    let launch = match case.mask {
        Mask::None => attention_with::<T, f32>(vq, vk, vv, None, vy, Some(vl), case.how, config),
        Mask::Truth => {
            let m = dtruth.view_strided(0, all, [0, 0, keys as isize, 1]).unwrap();
            attention_with(vq, vk, vv, Some(m), vy, Some(vl), case.how, config)
        }
        Mask::Numbers => {
            let m = dadded.view_strided(0, all, [keys as isize, 0, 0, 1]).unwrap();
            attention_with(vq, vk, vv, Some(m), vy, Some(vl), case.how, config)
        }
    };
    launch.unwrap().launch().unwrap_or_else(|e| panic!("{e} ({case:?})"));

    let scale = case.how.scale.unwrap_or(1.0 / (width as f64).sqrt());
    let (expected, lse) =
        reference::attention(&q.doubles(), &k.doubles(), &v.doubles(), case.dims, scale, |b, _, i, j| {
            let seen = !(case.how.causal && j > i);
            match case.mask {
                Mask::Truth if !truth[i * keys + j] => f64::NEG_INFINITY,
                _ if !seen => f64::NEG_INFINITY,
                Mask::Numbers => f64::from(added[b * keys + j]),
                _ => 0.0,
            }
        });
    let got = Placed { host: dy.to_vec().unwrap(), ..out }.doubles();
    let what = format!("{} {case:?}", T::DTYPE);
    // A score is a sum of `width` products of numbers up to 1: off by up to that many roundings, twice where they are cut off. A
    // weight is then off by as much relatively, and by a rounding to T; so is their sum of up to `keys` terms. Values are
    // up to 1, so that these are absolute errors of the result, twice for numerator and denominator.
    let score = 2.0 * (width + 1) as f64 * f32::ROUNDING * width as f64 * scale.abs().max(1.0 / 64.0);
    let relative = 2.0 * (score + T::ROUNDING + (keys as f64 + 32.0) * f32::ROUNDING);
    for (i, (g, e)) in got.iter().zip(&expected).enumerate() {
        let within = relative + T::ROUNDING * e.abs() + T::TINY;
        assert!((g - e).abs() <= within, "{what}: element {i} is {g:e}, expected {e:e} within {within:e}");
    }
    for (i, (g, e)) in dl.to_vec().unwrap().into_iter().zip(lse).enumerate() {
        let g = f64::from(g);
        let close = if e.is_infinite() { g == e } else { (g - e).abs() <= relative + 4e-7 * e.abs() };
        assert!(close, "{what}: the logarithm {i} is {g:e}, expected {e:e}");
    }
}

/// Extents that are and are not multiples of any tile, few and many heads, one query, one key. Software devices, which compile
/// slowly, get the last three.
fn shapes<T: Real>(dev: &Device) {
    let first = if matches!(dev.info().kind, DeviceKind::Cuda | DeviceKind::Cpu) { 0 } else { 7 };
    for how in [PLAIN, CAUSAL] {
        let all = [
            dims(1, 1, 1, 1, 1, 16),
            dims(2, 3, 3, 64, 64, 32),
            dims(1, 2, 2, 100, 77, 64),
            dims(1, 2, 1, 17, 130, 40),
            dims(2, 4, 2, 130, 50, 64),
            dims(1, 1, 1, 1, 200, 128),
            AttentionDims { value_width: 24, ..dims(1, 2, 2, 33, 65, 80) },
            dims(1, 1, 1, 70, 70, 256),
            dims(2, 4, 2, 50, 40, 16),
            AttentionDims { value_width: 24, ..dims(1, 2, 2, 33, 65, 40) },
            dims(1, 2, 1, 17, 130, 20),
        ];
        for d in &all[first..] {
            check::<T>(dev, case(*d, how));
        }
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
fn masks() {
    on_every_device(|dev| {
        for mask in [Mask::Truth, Mask::Numbers] {
            for how in [PLAIN, CAUSAL] {
                check::<f32>(dev, Case { mask, ..case(dims(2, 2, 2, 50, 70, 32), how) });
                check::<f16>(dev, Case { mask, ..case(dims(2, 2, 1, 100, 130, 64), how) });
            }
        }
    });
}

#[test]
fn scales() {
    on_every_device(|dev| {
        for scale in [0.25, 0.0, -0.5] {
            let how = Attention { scale: Some(scale), causal: true };
            check::<f32>(dev, case(dims(1, 1, 1, 40, 40, 16), how));
            check::<f16>(dev, Case { mask: Mask::Numbers, ..case(dims(1, 1, 1, 40, 40, 16), how) });
        }
    });
}

#[test]
fn packed_projections_are_read_and_written_in_place() {
    on_every_device(|dev| {
        for how in [PLAIN, CAUSAL] {
            check::<f16>(dev, Case { packed: true, ..case(dims(2, 3, 3, 80, 80, 64), how) });
            check::<f32>(dev, Case { packed: true, ..case(dims(2, 3, 1, 30, 50, 20), how) });
        }
    });
}

/// Tiles, warps and stages, all that a GPU is tuned over; software devices get the smallest.
#[test]
fn any_configuration() {
    on_every_device(|dev| {
        let all = dev.info().kind == DeviceKind::Cuda;
        let tiles = [(16, 16), (32, 64), (64, 16), (64, 64), (128, 32), (128, 64), (64, 128), (128, 128)];
        let warps_and_stages = [(4, 2), (1, 1), (8, 3), (2, 4)];
        for (i, (bm, bn)) in tiles.into_iter().enumerate() {
            for (j, (num_warps, num_stages)) in warps_and_stages.into_iter().enumerate() {
                if !all && (i, j) != (0, 0) {
                    continue;
                }
                let config = Some(AttentionConfig { bm, bn, options: Options { num_warps, num_stages } });
                for how in [PLAIN, CAUSAL] {
                    check::<f16>(dev, Case { config, ..case(dims(1, 2, 2, 150, 200, 64), how) });
                }
                check::<bf16>(dev, Case { config, mask: Mask::Truth, ..case(dims(1, 1, 1, 150, 90, 32), CAUSAL) });
            }
        }
    });
}

#[test]
fn a_query_that_sees_nothing_gives_zeros() {
    on_every_device(|dev| {
        let n = 40;
        let x = upload(dev, &vec![f16::ONE; n * 16]);
        let (y, lse) = (garbage::<f16>(dev, n * 16), garbage::<f32>(dev, n));
        // Odd queries see nothing.
        let mask = upload(dev, &(0..n * n).map(|i| i / n % 2 == 0).collect::<Vec<_>>());
        let v = x.view([1, 1, n, 16]).unwrap();
        let config = AttentionConfig::heuristic(dev, DType::F16, n, n, 16, true);
        attention_with(
            v,
            v,
            v,
            Some(mask.view([1, 1, n, n]).unwrap()),
            y.view([1, 1, n, 16]).unwrap(),
            Some(lse.view([1, 1, n]).unwrap()),
            PLAIN,
            config,
        )
        .unwrap()
        .launch()
        .unwrap();
        for (i, x) in y.to_vec().unwrap().into_iter().enumerate() {
            assert_eq!(x.to_f32(), if i / 16 % 2 == 0 { 1.0 } else { 0.0 }, "element {i}");
        }
        for (i, x) in lse.to_vec().unwrap().into_iter().enumerate() {
            assert_eq!(x == f32::NEG_INFINITY, i % 2 == 1, "query {i}: {x}");
        }
        // No keys at all, and no queries.
        let none = upload::<f16>(dev, &[]);
        let empty = none.view([1, 1, 0, 16]).unwrap();
        attention(v, empty, empty, y.view([1, 1, n, 16]).unwrap(), PLAIN).unwrap().launch().unwrap();
        assert!(y.to_vec().unwrap().iter().all(|x| x.to_bits() == 0));
        attention(empty, v, v, empty, PLAIN).unwrap().launch().unwrap();
    });
}

#[test]
fn large_scores_do_not_overflow_and_nan_stays_in_its_row() {
    on_every_device(|dev| {
        let n = 32;
        let mut q: Vec<f32> = (0..n * 16).map(|i| uniform(i as u64) as f32 * 1e3).collect();
        let k: Vec<f32> = (0..n * 16).map(|i| uniform(99 + i as u64) as f32 * 1e3).collect();
        q[3 * 16 + 5] = f32::NAN;
        let (dq, dk, dy) = (upload(dev, &q), upload(dev, &k), garbage::<f32>(dev, n * 16));
        let all = [1, 1, n, 16];
        attention(dq.view(all).unwrap(), dk.view(all).unwrap(), dk.view(all).unwrap(), dy.view(all).unwrap(), PLAIN)
            .unwrap()
            .launch()
            .unwrap();
        for (i, x) in dy.to_vec().unwrap().into_iter().enumerate() {
            assert_eq!(x.is_nan(), i / 16 == 3, "element {i}: {x}");
        }
        let (expected, _) = reference::attention(
            &doubles(&q.iter().map(|x| if x.is_nan() { 0.0 } else { *x }).collect::<Vec<f32>>()),
            &doubles(&k),
            &doubles(&k),
            dims(1, 1, 1, n, n, 16),
            0.25,
            |_, _, _, _| 0.0,
        );
        for (i, (g, e)) in dy.to_vec().unwrap().into_iter().zip(expected).enumerate().filter(|(i, _)| i / 16 != 3) {
            // Scores of up to 4e6 are off by up to 4e6 * 17 * 2^-24 = 4: the winner is certain, weights below it are not.
            assert!(g.abs() <= 1e3 && (f64::from(g) - e).abs() <= 100.0, "element {i}: {g} and {e}");
        }
    });
}

#[test]
fn the_same_bits_every_time() {
    on_every_device(|dev| {
        let d = dims(2, 2, 2, 200, 200, 64);
        let n = d.batch * d.heads * d.queries * d.width;
        let [q, k, v] = [1, 1 << 40, 1 << 41].map(|seed| upload(dev, &numbers::<f16>(n, seed)));
        let all = [d.batch, d.heads, d.queries, d.width];
        let mut first = None;
        for run in 0..10 {
            let y = garbage::<f16>(dev, n);
            attention(q.view(all).unwrap(), k.view(all).unwrap(), v.view(all).unwrap(), y.view(all).unwrap(), CAUSAL)
                .unwrap()
                .launch()
                .unwrap();
            let bits: Vec<u16> = y.to_vec().unwrap().into_iter().map(f16::to_bits).collect();
            assert_eq!(*first.get_or_insert_with(|| bits.clone()), bits, "run {run}");
        }
    });
}

#[test]
fn extents_that_do_not_fit_are_refused() {
    on_every_device(|dev| {
        let x = upload(dev, &[0.0f32; 240]);
        let v = |dims| x.view(dims).unwrap();
        for (q, k, value, out) in [
            ([1, 2, 5, 16], [1, 2, 5, 8], [1, 2, 5, 16], [1, 2, 5, 16]),
            ([1, 2, 5, 16], [1, 2, 4, 16], [1, 2, 5, 16], [1, 2, 5, 16]),
            ([1, 3, 5, 16], [1, 2, 5, 16], [1, 2, 5, 16], [1, 3, 5, 16]),
            ([1, 2, 5, 16], [1, 2, 5, 16], [1, 2, 5, 16], [1, 2, 4, 16]),
        ] {
            let e = attention(v(q), v(k), v(value), v(out), PLAIN).unwrap_err().to_string();
            assert!(e.contains("[batch, kv_heads, keys, width]") && e.contains(&format!("{k:?}")), "{e}");
        }
    });
}
