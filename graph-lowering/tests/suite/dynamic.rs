//! Extents that vary: kernels are shared, results are right at every size.

use crate::common::{assert_close, noise, other_devices};
use tilewright_graph_lowering::{DType, Dynamic, Explanation, Options, Reduction, Structure, Tensor, compile};
use tilewright_graph_lowering::{structure, value_and_grad};

fn cpu() -> Options {
    Options::new().device("cpu")
}

/// Calls a compiled function with all these arguments; every result must be that of the host. Gives the explanation after
/// each call.
fn agree<I: Structure, O: Structure>(
    what: &str,
    options: Options,
    f: impl Fn(&I) -> O,
    arguments: &[I],
    tolerance: f64,
) -> Vec<Explanation> {
    let compiled = compile(&f, options).unwrap();
    let mut all = Vec::new();
    for (i, x) in arguments.iter().enumerate() {
        let expected = f(x).tensors();
        let got = compiled.call(x).unwrap_or_else(|e| panic!("{what}, call {i}: {e}"));
        for (g, e) in got.tensors().iter().zip(&expected) {
            let what = format!("{what}, call {i}\n{}\n{}", compiled.graph().unwrap(), compiled.explain());
            assert_close(&what, g, e, tolerance);
        }
        all.push(compiled.explain());
    }
    all
}

#[derive(Clone)]
struct Model {
    norm: (Tensor, Tensor),
    weight: Tensor,
    bias: Tensor,
}
structure!(Model { norm, weight, bias });

const WIDTH: usize = 24;

impl Model {
    fn new() -> Self {
        let norm = (noise(1, &[WIDTH]) + 1.5, noise(2, &[WIDTH]));
        Self { norm, weight: noise(3, &[WIDTH, WIDTH]) * 0.3, bias: noise(4, &[WIDTH]) }
    }

    /// The loss for `[batch, length, WIDTH]` with its gradient: layer norm, linear, softmax along the sequence, mean.
    fn step((model, x): &(Model, Tensor)) -> (Tensor, Model) {
        let loss = |m: &Model| {
            let y = x.layer_norm(Some(&m.norm.0), Some(&m.norm.1), 1e-5).linear(&m.weight, Some(&m.bias));
            let weights = y.matmul(&y.transpose()).softmax(2);
            let mixed = weights.matmul(&y);
            (&mixed * &mixed).mean(&[0, 1, 2])
        };
        value_and_grad(loss, model).unwrap()
    }

    fn arguments(sizes: &[(usize, usize)]) -> Vec<(Model, Tensor)> {
        sizes.iter().map(|&(b, t)| (Model::new(), noise((b * 100 + t) as u64, &[b, t, WIDTH]))).collect()
    }
}

/// Sizes that need the same tiles, and so do their products, over which sums go: primes, even ones and multiples of 16.
const ALIKE: [(usize, usize); 12] =
    [(8, 17), (7, 19), (5, 32), (6, 23), (5, 31), (5, 29), (5, 30), (6, 24), (8, 18), (7, 20), (5, 27), (8, 21)];

#[test]
fn a_model_is_compiled_once_for_many_sizes() {
    let all = agree("model", cpu(), Model::step, &Model::arguments(&ALIKE), 1e-4);
    let first = &all[0];
    assert_eq!((first.graphs, first.generated + first.reused), (1, first.kernels), "{first}");
    // The second size makes batch and length dynamic; from then on nothing is compiled.
    let second = &all[1];
    assert!(second.generated <= 2 * first.kernels, "{second}");
    let last = &all[11];
    assert_eq!((last.graphs, last.generated), (12, second.generated), "{last}");
    assert_eq!(last.generated + last.reused, 12 * first.kernels);
    assert_eq!(last.dynamic, ["dimension 0 of argument 4 = s0 = 8", "dimension 1 of argument 4 = s1 = 21"]);
    let reasons = &second.recompiles[0];
    assert!(reasons.contains("dimension 0 of argument 4: 7, was 8: now dynamic"), "{reasons}");
    assert!(reasons.contains("dimension 1 of argument 4: 19, was 17: now dynamic"), "{reasons}");
    assert!(last.recompiles[10].contains("dimension 0 of argument 4: 8, was 5"), "{last}");
    assert!(!last.recompiles[10].contains("now dynamic"), "{last}");
}

#[test]
fn another_bucket_is_compiled_once() {
    let sizes = [(8, 17), (7, 19), (4, 40), (4, 33), (3, 50), (6, 23), (3, 45)];
    let all = agree("buckets", cpu(), Model::step, &Model::arguments(&sizes), 1e-4);
    let generated: Vec<usize> = all.iter().map(|e| e.generated).collect();
    assert!(generated[2] > generated[1] && generated[2..].iter().all(|&n| n == generated[2]), "{generated:?}");
}

#[test]
fn never_compiles_for_every_size_and_always_from_the_first() {
    let arguments = Model::arguments(&ALIKE[..4]);
    let never = agree("never", cpu().dynamic(Dynamic::Never), Model::step, &arguments, 1e-4);
    let counts: Vec<usize> = never.iter().map(|e| e.generated).collect();
    assert!(counts.windows(2).all(|w| w[1] >= w[0] + 3), "{counts:?}");
    assert!(never[3].dynamic.is_empty() && !never[3].to_string().contains("now dynamic"));
    let always = agree("always", cpu().dynamic(Dynamic::Always), Model::step, &arguments, 1e-4);
    let counts: Vec<usize> = always.iter().map(|e| e.generated).collect();
    assert_eq!(counts, [always[0].generated; 4], "{}", always[3]);
    // Equal extents have one name: those of the weights, too.
    assert!(always[0].dynamic.contains(&"dimension 2 of argument 4 = s0 = 24".to_owned()), "{}", always[0]);
}

#[test]
fn a_function_that_looks_at_extents_is_right_at_every_size() {
    let f = |x: &Tensor| {
        let n = x.dims()[0];
        let y = if n > 128 { x.exp() } else { x * 3.0 };
        let y = if n.is_multiple_of(7) { y.sum(&[1]) / n as f64 } else { y.max(&[1]) * (n * n) as f64 };
        (y, x.slice_axis(0, n / 2..), x.narrow(0, n - 1, 1) + Tensor::iota(DType::F32, &[1, 6], 1))
    };
    let sizes = [100, 7, 128, 129, 140, 2, 1, 3, 14, 127, 256, 97];
    let arguments: Vec<Tensor> = sizes.iter().map(|&n| noise(n as u64, &[n, 6])).collect();
    for dynamic in [Dynamic::Auto, Dynamic::Always] {
        agree("branches", cpu().dynamic(dynamic), f, &arguments, 1e-5);
    }
}

#[test]
fn every_extent_works_for_all_that_depends_on_it() {
    let f = |(x, i): &(Tensor, Tensor)| {
        let (n, m) = (x.dims()[0], x.dims()[1]);
        let table = x.embedding(i) * 2.0;
        let causal = Tensor::iota(DType::I32, &[n, n], 0).ge(Tensor::iota(DType::I32, &[n, n], 1));
        let square = causal.where_(x.matmul(&x.transpose()), -1.0).softmax(1);
        let longer = Tensor::cat(&[x, &x.exp()], 0).pad(&[1, 0], &[0, 2], 0.5);
        let places = Tensor::iota(DType::F32, &[2 * n, m], 0).narrow(0, n, n).reshape(&[n * m]);
        let means = (x.mean(&[0]), x.mean(&[1]), x.var(&[0, 1], 1), x.argmax(0), x.cumsum(0));
        (table, square, longer, places + x.reshape(&[n * m]), means)
    };
    let sizes = [(6, 5), (9, 8), (0, 3), (1, 1), (2, 2), (13, 1), (1, 17), (3, 0), (31, 16), (64, 3), (17, 33)];
    let of = |&(n, m): &(usize, usize)| {
        let index: Vec<i32> = (0..n as i32 * 2).map(|i| i * 7 % 11 - 1).collect();
        (noise(n as u64, &[n, m]), Tensor::new(&index, &[n, 2]))
    };
    // No maximum of nothing.
    let arguments: Vec<_> = sizes.iter().map(of).collect();
    let (empty, full): (Vec<_>, Vec<_>) = arguments.into_iter().partition(|(x, _)| x.elements() == 0);
    for dynamic in [Dynamic::Auto, Dynamic::Always, Dynamic::Never] {
        agree("everything", cpu().dynamic(dynamic), f, &full, 1e-4);
    }
    let g = |(x, _): &(Tensor, Tensor)| (x.exp(), x.sum(&[0]), x.sum(&[1]), x.matmul(&x.transpose()).sum(&[0]));
    let with_empty: Vec<_> = [&full[..2], &empty, &full[2..4], &empty].concat();
    for dynamic in [Dynamic::Auto, Dynamic::Always] {
        agree("empty", cpu().dynamic(dynamic), g, &with_empty, 1e-4);
    }
}

#[test]
fn long_rows_share_kernels() {
    let f = |x: &Tensor| (x.softmax(1), x.sum(&[0]), x.argmax(1));
    let arguments: Vec<Tensor> = [20_000, 17_001, 30_011, 16_385].iter().map(|&n| noise(n as u64, &[2, n])).collect();
    let all = agree("long rows", cpu(), f, &arguments, 1e-4);
    assert_eq!(all[1].generated, all[3].generated, "{}", all[3]);
}

#[test]
fn numbers_that_change_are_parameters_too() {
    let f = |(x, rate): &(Tensor, f64)| (x * *rate + 1.0).exp();
    let arguments: Vec<_> = (1..=6).map(|i| (noise(1, &[20]), f64::from(i) * 0.3)).collect();
    let all = agree("rates", cpu(), f, &arguments, 1e-6);
    assert_eq!((all[5].graphs, all[5].generated, all[5].renumbered), (2, 2, 4), "{}", all[5]);
}

#[test]
fn cross_entropy_and_integers_agree_at_all_sizes() {
    let f = |(x, t): &(Tensor, Tensor)| {
        let counts = t.cast(DType::I64).sum(&[0]) * t.dims()[0] as i64;
        (x.cross_entropy(t, Some(3), Reduction::Mean), counts, t.floor_div(Tensor::scalar(t.dims()[0] as i32)))
    };
    let of = |n: usize| (noise(n as u64, &[n, 9]), Tensor::vector(&(0..n as i32).map(|i| i % 9).collect::<Vec<_>>()));
    let arguments: Vec<_> = [4, 5, 11, 16, 2, 13].map(of).to_vec();
    let all = agree("cross entropy", cpu(), f, &arguments, 1e-5);
    assert_eq!(all[1].generated, all[5].generated, "{}", all[5]);
}

/// A loss of rows of a table through attention, with the gradient of the table.
fn attend((table, index): &(Tensor, Tensor)) -> (Tensor, Tensor) {
    let (b, t) = (index.dims()[0], index.dims()[1]);
    let loss = |table: &Tensor| {
        let x = table.embedding(index).reshape(&[b, 1, t, 16]);
        let y = x.attention(&x, &x, None, true, None);
        (&y * &y).mean(&[0, 1, 2, 3])
    };
    value_and_grad(loss, table).unwrap()
}

fn attended(sizes: &[(usize, usize)]) -> Vec<(Tensor, Tensor)> {
    let index = |n: usize| (0..n as i32).map(|i| i * i % 13).collect::<Vec<_>>();
    sizes.iter().map(|&(b, t)| (noise(1, &[13, 16]), Tensor::new(&index(b * t), &[b, t]))).collect()
}

#[test]
fn attention_and_sums_into_rows_agree_at_all_sizes() {
    let mut sizes = ALIKE.to_vec();
    sizes.extend([(1, 1), (1, 40), (3, 2), (2, 129)]);
    for dynamic in [Dynamic::Auto, Dynamic::Always, Dynamic::Never] {
        let all = agree("attention", cpu().dynamic(dynamic), attend, &attended(&sizes), 1e-4);
        if dynamic != Dynamic::Never {
            assert_eq!(all[1].generated, all[11].generated, "{dynamic:?}: {}", all[11]);
        }
    }
}

#[test]
fn tuned_kernels_are_shared_too() {
    let arguments: Vec<Tensor> = [40, 50, 60, 45].iter().map(|&n| noise(n as u64, &[n, 48])).collect();
    let f = |x: &Tensor| x.softmax(1) * x.dims()[0] as f64;
    let store = std::env::temp_dir().join(format!("tilewright-dynamic-{}", std::process::id()));
    let options = cpu().mode("max-autotune-no-graphs").tuning_store(&store);
    let all = agree("tuned", options, f, &arguments, 1e-5);
    let _ = std::fs::remove_dir_all(&store);
    let counts: Vec<usize> = all.iter().map(|e| e.generated).collect();
    assert_eq!(counts, [1, 2, 2, 2], "{}", all[3]);
    let known: Vec<bool> = all.iter().map(|e| e.tuned[0].contains("known")).collect();
    assert_eq!(known, [false, false, true, true], "{}", all[3]);
}

#[test]
fn other_devices_agree_at_all_sizes() {
    for device in other_devices() {
        let on = |dynamic| Options::new().device(&device).dynamic(dynamic);
        let all = agree(&device, on(Dynamic::Auto), Model::step, &Model::arguments(&ALIKE[..5]), 1e-3);
        assert_eq!(all[1].generated, all[4].generated, "{device}: {}", all[4]);
        let half = |x: &Tensor| {
            let h = x.cast(DType::F16);
            (h.softmax(1).cast(DType::F32), h.mean(&[0]).cast(DType::F32), (h * x.dims()[0] as f64).cast(DType::F32))
        };
        let arguments: Vec<Tensor> =
            [(3, 5), (4, 8), (16, 16), (7, 31)].map(|(a, b)| noise(a, &[a as usize, b])).to_vec();
        agree(&format!("attention on {device}"), on(Dynamic::Auto), attend, &attended(&ALIKE[..3]), 1e-3);
        agree(&format!("halves on {device}"), on(Dynamic::Always), half, &arguments, 2e-2);
    }
}
