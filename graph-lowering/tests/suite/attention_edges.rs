//! Attention of scores and masks of any size, in every way of execution, beside what torch gives.

use crate::common::{assert_close, everywhere, everywhere_and_dynamic, other_devices};
use tilewright_graph_lowering::{DType, Options, Structure, Tensor, compile, grad, vjp};

/// The result's sum, so that its gradient is 1 everywhere.
fn total(y: &Tensor) -> Tensor {
    y.cast(DType::F32).sum(&(0..y.rank()).collect::<Vec<_>>())
}

/// One query that sees two keys, both under a mask of one number; and the gradient of the query.
fn masked(dtype: DType, mask_type: DType, mask: f64) -> (Vec<f64>, Vec<f64>) {
    let q = Tensor::new(&[1.0f32, 1.0], &[1, 2]).cast(dtype);
    let kv = Tensor::new(&[1.0f32, 2.0, 3.0, 4.0], &[2, 2]).cast(dtype);
    let what = format!("{dtype} under {mask} of {mask_type}");
    let mask = Tensor::full(mask_type, &[1, 2], mask);
    let f = |(q, kv, m): &(Tensor, Tensor, Tensor)| {
        let attend = |q: &Tensor| q.attention(kv, kv, Some(m), false, None);
        (attend(q), grad(|q: &Tensor| total(&attend(q)), q).unwrap())
    };
    let tolerance = if matches!(dtype, DType::F16 | DType::BF16) { 1e-2 } else { 1e-5 };
    let x = (q, kv, mask);
    let ((y, g), _) = everywhere_and_dynamic(&what, f, &x, tolerance);
    // Software devices take long to compile.
    let elsewhere = dtype == DType::F32 || mask_type == dtype;
    for device in other_devices().into_iter().filter(|_| elsewhere) {
        let got = compile(f, Options::new().device(&device)).unwrap().call(&x).unwrap();
        assert_close(&format!("{what} on {device}"), &got.0, &y, tolerance);
        assert_close(&format!("{what} on {device}, gradient"), &got.1, &g, tolerance);
    }
    (y.to_f64s().unwrap(), g.to_f64s().unwrap())
}

fn near(what: &str, got: &[f64], expected: &[f64], tolerance: f64) {
    let same = got.len() == expected.len() && got.iter().zip(expected).all(|(g, e)| (g - e).abs() <= tolerance);
    assert!(same, "{what}: {got:?} instead of {expected:?}");
}

/// The least finite number of a type, which models write for what is not to be seen.
fn least(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => -65504.0,
        DType::BF16 => -3.389_531_389_251_535_5e38,
        DType::F32 => f64::from(f32::MIN),
        _ => f64::MIN,
    }
}

#[test]
fn found_g1() {
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        let (y, g) = masked(dtype, DType::F32, -1e10);
        // Double precision still tells scores from each other beside 1e10: 1 / (1 + exp(2 sqrt(2))) of the first key is left.
        let (y2, g2) =
            if dtype == DType::F64 { ([2.888, 3.888], 0.298) } else { ([2.0, 3.0], std::f64::consts::SQRT_2) };
        near("values", &y, &y2, 1e-2);
        near("gradient", &g, &[g2, g2], 2e-2);
    }
}

#[test]
fn found_g2() {
    for dtype in [DType::F16, DType::BF16, DType::F32] {
        for of in [DType::F16, DType::BF16, DType::F32, DType::F64] {
            // Beside the least f16 an f32 still tells scores from each other.
            let (y2, g2) =
                if of == DType::F16 { ([2.888, 3.888], 0.298) } else { ([2.0, 3.0], std::f64::consts::SQRT_2) };
            let (y, g) = masked(dtype, of, least(of));
            near("values", &y, &y2, 2e-2);
            near("gradient", &g, &[g2, g2], 2e-2);
        }
        // Where nothing is seen the result and all gradients are 0.
        for of in [DType::F16, DType::BF16, DType::F32, DType::F64, DType::Bool] {
            let (y, g) = masked(dtype, of, if of == DType::Bool { 0.0 } else { f64::NEG_INFINITY });
            near("nothing seen", &y, &[0.0, 0.0], 0.0);
            near("nothing seen", &g, &[0.0, 0.0], 0.0);
        }
    }
    let (y, _) = masked(DType::F64, DType::F64, f64::MIN);
    near("f64", &y, &[2.0, 3.0], 1e-9);
}

#[test]
fn found_g3() {
    for size in [1e3f32, 1e8, 1.3e8, 2.7e8, 1e9, 1e10, 1e12, 3e38, f32::MAX] {
        for sign in [1.0, -1.0] {
            for scale in [None, Some(0.125), Some(-1.0)] {
                let q = Tensor::new(&[size * sign], &[1, 1]);
                let (k, v) = (Tensor::new(&[1.0f32, 0.0], &[2, 1]), Tensor::new(&[1.0f32, 2.0], &[2, 1]));
                let f = |(q, k, v): &(Tensor, Tensor, Tensor)| {
                    let y = |x: &(Tensor, Tensor, Tensor)| x.0.attention(&x.1, &x.2, None, false, scale);
                    let x = (q.clone(), k.clone(), v.clone());
                    (y(&x), grad(|x: &(Tensor, Tensor, Tensor)| total(&y(x)), &x).unwrap())
                };
                let x = (q, k, v);
                let what = format!("a score of {} scaled by {scale:?}", size * sign);
                let ((y, g), _) = everywhere_and_dynamic(&what, f, &x, 1e-5);
                let first = (sign > 0.0) == scale.is_none_or(|s| s > 0.0);
                near(&what, &y.to_f64s().unwrap(), &[if first { 1.0 } else { 2.0 }], 0.0);
                near(&what, &g.0.to_f64s().unwrap(), &[0.0], 0.0);
                near(&what, &g.2.to_f64s().unwrap(), if first { &[1.0, 0.0] } else { &[0.0, 1.0] }, 0.0);
                // Software devices take long to compile.
                let elsewhere = [1e10, f32::MAX].contains(&size) && scale.is_none();
                for device in other_devices().into_iter().filter(|_| elsewhere) {
                    let got = compile(f, Options::new().device(&device)).unwrap().call(&x).unwrap();
                    for (g, e) in got.tensors().iter().zip((y.clone(), g.clone()).tensors()) {
                        assert_close(&format!("{what} on {device}"), g, &e, 1e-5);
                    }
                }
            }
        }
    }
}

#[test]
fn found_g17_attention() {
    for dtype in [DType::F16, DType::F32, DType::F64] {
        for (mask, causal) in [(None, false), (None, true), (Some(DType::Bool), false), (Some(DType::F32), false)] {
            let x = [vec![2, 3, 4], vec![2, 0, 4], vec![2, 0, 5]].map(|d| Tensor::full(dtype, &d, 1.0));
            let f = |[q, k, v]: &[Tensor; 3]| {
                let mask = mask.map(|m| Tensor::zeros(m, &[3, 0]));
                let y = |[q, k, v]: &[Tensor; 3]| q.attention(k, v, mask.as_ref(), causal, None);
                let x = [q.clone(), k.clone(), v.clone()];
                (y(&x), grad(|x: &[Tensor; 3]| total(&y(x)), &x).unwrap())
            };
            let ((y, g), _) = everywhere_and_dynamic("no keys", f, &x, 0.0);
            assert_eq!(y.dims(), [2, 3, 5]);
            assert!([&y, &g[0]].iter().all(|t| t.to_f64s().unwrap().iter().all(|&v| v == 0.0)));
        }
    }
}

/// One case of `data/attention.txt`.
struct Case {
    name: String,
    x: [Tensor; 3],
    mask: Option<Tensor>,
    causal: bool,
    scale: f64,
    seed: Tensor,
    /// The result, and the gradients of q, k and v.
    expected: [Tensor; 4],
}

fn cases() -> Vec<Case> {
    let text = include_str!("data/attention.txt");
    let mut lines = text.lines().filter(|l| !l.starts_with('#'));
    let mut all = Vec::new();
    while let Some(head) = lines.next() {
        let part: Vec<&str> = head.split(' ').collect();
        let n = |i: usize| part[i].parse::<usize>().unwrap();
        let (h, kv, m, keys, d) = (n(1), n(2), n(3), n(4), n(5));
        let mut tensor = |dims: &[usize]| {
            let line = lines.next().unwrap();
            let values: Vec<f32> = line.split(' ').map(|v| v.parse().unwrap_or(f32::NAN)).collect();
            if line == "-" { None } else { Some(Tensor::new(&values, dims)) }
        };
        let mut full = |dims: &[usize]| tensor(dims).unwrap();
        let x = [full(&[1, h, m, d]), full(&[1, kv, keys, d]), full(&[1, kv, keys, 3])];
        let mask = tensor(&[1, h, m, keys]);
        let mask = if part[8] == "bool" { mask.map(|m| m.ne_(0.0)) } else { mask };
        let mut full = |dims: &[usize]| tensor(dims).unwrap();
        let (of_y, of_q, of_k, of_v) = ([1, h, m, 3], [1, h, m, d], [1, kv, keys, d], [1, kv, keys, 3]);
        let seed = full(&of_y);
        let expected = [full(&of_y), full(&of_q), full(&of_k), full(&of_v)];
        let (name, causal, scale) = (part[0].to_owned(), part[6] == "1", part[7].parse().unwrap());
        all.push(Case { name, x, mask, causal, scale, seed, expected });
    }
    all
}

/// Random operands with infinities, NaN and numbers near the largest, masks of all kinds, rows that see nothing. A NaN must be where
/// torch has one, and nowhere else.
#[test]
fn found_g1_g2_g3_as_torch() {
    let all = cases();
    assert!(all.len() > 50);
    for c in all {
        let f = |(x, seed): &([Tensor; 3], Tensor)| {
            let f = |[q, k, v]: &[Tensor; 3]| q.attention(k, v, c.mask.as_ref(), c.causal, Some(c.scale));
            let (y, pull) = vjp(f, x).unwrap();
            let [dq, dk, dv] = pull(seed);
            [y, dq, dk, dv]
        };
        let x = (c.x.clone(), c.seed.clone());
        let (got, _) = everywhere(&c.name, f, &x, 1e-4);
        for (i, (g, e)) in got.iter().zip(&c.expected).enumerate() {
            assert_close(&format!("{} beside torch, {i}", c.name), g, e, 1e-4);
        }
    }
}
