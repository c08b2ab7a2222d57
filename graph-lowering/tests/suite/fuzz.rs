//! Random functions: the host, single kernels and fused kernels must agree.

use crate::common::assert_close;
use tilewright_graph_lowering::{DType, Dynamic, Options, Tensor, compile, grad};

/// Reproducible choices.
#[derive(Clone)]
pub struct Choices(u64);

impl Choices {
    /// Those of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// One of the numbers below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n
    }
}

/// One random operation on what there is.
fn grow(c: &mut Choices, all: &[Tensor]) -> Tensor {
    let pick = |c: &mut Choices| all[all.len() - 1 - c.below(all.len().min(6))].clone();
    let x = pick(c);
    let r = x.rank();
    let axis = c.below(r.max(1));
    match c.below(23) {
        0 => x.sin(),
        1 => x.tanh(),
        2 => x.abs().sqrt(),
        3 => x.relu(),
        4 | 5 => &x + broadcastable(c, all, &x),
        6 => &x * broadcastable(c, all, &x),
        7 => x.maximum(broadcastable(c, all, &x)),
        8 => x.gt(broadcastable(c, all, &x)).where_(&x, x.neg()),
        9 if r > 0 => x.sum(&[axis]) * 0.25,
        10 if r > 0 => x.max(&[axis]),
        11 if r > 0 => x.softmax(axis),
        12 if r > 0 => {
            let mut dims = x.dims();
            dims[axis] = 1;
            &x - x.mean(&[axis]).reshape(&dims)
        }
        13 if r > 1 => {
            let mut perm: Vec<usize> = (0..r).collect();
            perm.swap(axis, c.below(r));
            x.permute(&perm)
        }
        14 => {
            let n = x.elements();
            let d = (1..=n).filter(|d| n.is_multiple_of(*d)).nth(c.below(2)).unwrap_or(1);
            x.reshape(&[d, n / d])
        }
        15 if r > 0 && x.dims()[axis] > 1 => x.slice_axis(axis, 1..),
        16 if r > 0 && r < 4 => {
            let mut low = vec![0; r];
            low[axis] = 1;
            x.pad(&low, &vec![c.below(2); r], 0.5)
        }
        17 if r > 0 && x.dims()[axis] < 8 => Tensor::cat(&[&x, &x.cos()], axis),
        18 if r == 3 => {
            let n = x.dims()[2];
            x.matmul(&Tensor::iota(DType::F32, &[n, n], 1).sin()) * 0.3
        }
        18 if r == 2 => x.matmul(&x.transpose()) * 0.2,
        19 if r > 0 => x.cumsum(axis) * 0.2,
        20 if r > 0 && x.dims()[0] > 1 => x.gather_rows(&Tensor::vector(&[1i32, 0, 1])),
        22 if r > 1 => {
            let y = &x * 0.5;
            let mask = (c.below(2) == 0).then(|| broadcastable(c, all, &x.matmul(&x.transpose())));
            x.attention(&y, &x.sin(), mask.as_ref(), c.below(2) == 0, None)
        }
        21 if r < 3 => x.unsqueeze(0).broadcast_to(&[&[2], &x.dims()[..]].concat()),
        _ => &x * 0.5 + 0.1,
    }
}

/// A tensor that goes with `x` without growing it.
fn broadcastable(c: &mut Choices, all: &[Tensor], x: &Tensor) -> Tensor {
    let dims = x.dims();
    let fits = |t: &&Tensor| {
        let d = t.dims();
        d.len() <= dims.len() && d.iter().rev().zip(dims.iter().rev()).all(|(a, b)| a == b || *a == 1)
    };
    let candidates: Vec<&Tensor> = all.iter().filter(fits).collect();
    candidates.get(c.below(candidates.len().max(1))).map_or_else(|| x.clone(), |t| (*t).clone())
}

/// One random operation on integers, exact in every way of execution.
fn grow_integers(c: &mut Choices, all: &[Tensor]) -> Tensor {
    let x = all[all.len() - 1 - c.below(all.len().min(6))].clone();
    let r = x.rank();
    let axis = c.below(r.max(1));
    let y = broadcastable(c, all, &x);
    match c.below(16) {
        0 => &x + y,
        1 => &x * y,
        2 => &x - y,
        3 => x.floor_div(&y),
        4 => x.rem_(&y),
        5 => x.minimum(&y),
        6 if x.dtype().is_int() => x.shr(1i64),
        7 if x.dtype().is_int() => x.and(7i64).xor(&x),
        8 => x.gt(&y).where_(&x, &y),
        9 if r > 0 => x.sum(&[axis]),
        10 if r > 0 => x.prod(&[axis]),
        11 if r > 0 => x.argmin(axis),
        12 if r > 0 => x.min(&[axis]),
        13 if r > 0 => x.cumsum(axis),
        14 if r == 2 => x.matmul(&x.transpose()),
        15 => {
            let types = [DType::I8, DType::I16, DType::I32, DType::I64, DType::U8, DType::U32];
            x.cast(types[c.below(types.len())])
        }
        _ => x.ge(&y).any(&[]).cast(DType::I32) + x,
    }
}

/// A random function of integers.
fn integer_program(seed: u64, inputs: &(Tensor, Tensor)) -> Vec<Tensor> {
    let mut c = Choices(seed);
    let mut all = vec![inputs.0.clone(), inputs.1.clone()];
    for _ in 0..3 + c.below(8) {
        let next = grow_integers(&mut c, &all);
        if next.elements() <= 600 {
            all.push(next);
        }
    }
    all.split_off(2)
}

/// A random function of two tensors.
fn program(seed: u64, inputs: &(Tensor, Tensor)) -> Vec<Tensor> {
    let mut c = Choices(seed);
    let mut all = vec![inputs.0.clone(), inputs.1.clone()];
    for _ in 0..4 + c.below(10) {
        let next = grow(&mut c, &all);
        if next.elements() <= 600 {
            all.push(next);
        }
    }
    let mut out = vec![all[all.len() - 1].clone()];
    for _ in 0..c.below(3) {
        out.push(all[c.below(all.len())].clone());
    }
    out
}

fn inputs(seed: u64) -> (Tensor, Tensor) {
    let mut c = Choices(seed ^ 0x5555);
    let (a, b) = (1 + c.below(7), 1 + c.below(9));
    (crate::common::noise(seed + 1, &[a, b]), crate::common::noise(seed + 2, &[b]))
}

#[test]
fn three_hundred_random_graphs_agree() {
    for seed in seeds(1) {
        let x = inputs(seed);
        let f = |x: &(Tensor, Tensor)| program(seed, x);
        let expected = f(&x);
        for (way, options) in
            [("unfused", Options::new().device("cpu").fusion(false)), ("fused", Options::new().device("cpu"))]
        {
            let compiled = compile(f, options).unwrap();
            let got = compiled.call(&x).unwrap_or_else(|e| panic!("seed {seed}, {way}: {e}"));
            for (g, e) in got.iter().zip(&expected) {
                assert_eq!(g.dtype(), DType::F32);
                let what = format!("seed {seed}, {way}\n{}\n{}", compiled.graph().unwrap(), compiled.explain());
                assert_close(&what, g, e, 2e-4);
            }
        }
    }
}

/// The seeds of a test that runs one in `part` of them: from `TILEWRIGHT_FUZZ_FROM` on, `TILEWRIGHT_FUZZ_SEEDS` in all.
fn seeds(part: u64) -> std::ops::Range<u64> {
    let first: u64 = std::env::var("TILEWRIGHT_FUZZ_FROM").ok().and_then(|s| s.parse().ok()).unwrap_or(0);
    first..first.saturating_add(count() / part)
}

fn count() -> u64 {
    std::env::var("TILEWRIGHT_FUZZ_SEEDS").ok().and_then(|s| s.parse().ok()).unwrap_or(300)
}

fn ways() -> [(&'static str, Options); 2] {
    [("unfused", Options::new().device("cpu").fusion(false)), ("fused", Options::new().device("cpu"))]
}

#[test]
fn random_functions_of_integers_agree_exactly() {
    for seed in seeds(3) {
        let (a, b) = inputs(seed);
        let x = ((a * 1000.0).cast(DType::I32), (b * 20.0).cast(DType::I32));
        let f = |x: &(Tensor, Tensor)| integer_program(seed, x);
        let expected = f(&x);
        for (way, options) in ways() {
            let compiled = compile(f, options).unwrap();
            let got = compiled.call(&x).unwrap_or_else(|e| panic!("seed {seed}, {way}: {e}"));
            for (g, e) in got.iter().zip(&expected) {
                let same = g.to_literal().unwrap() == e.to_literal().unwrap();
                assert!(same, "seed {seed}, {way}\n{}\n{}", compiled.graph().unwrap(), compiled.explain());
            }
        }
    }
}

#[test]
fn gradients_of_random_functions_agree() {
    for seed in seeds(3) {
        let x = inputs(seed);
        let f = |x: &(Tensor, Tensor)| {
            let loss = |x: &(Tensor, Tensor)| {
                let sum = |y: &Tensor| (y * 0.5).sum(&(0..y.rank()).collect::<Vec<_>>());
                program(seed, x).iter().map(sum).reduce(|a, b| a + b).unwrap_or_else(|| sum(&x.0))
            };
            grad(loss, x).unwrap()
        };
        let expected = f(&x);
        for (way, options) in ways() {
            let compiled = compile(f, options).unwrap();
            let got = compiled.call(&x).unwrap_or_else(|e| panic!("seed {seed}, {way}: {e}"));
            for (g, e) in [(&got.0, &expected.0), (&got.1, &expected.1)] {
                // Roots near 0 have steep gradients, which the order of a sum decides.
                let steep = e.to_f64s().unwrap().iter().any(|v| v.abs() > 1e3 || v.is_nan());
                let what = format!("seed {seed}, {way}\n{}", compiled.graph().unwrap());
                if !steep {
                    assert_close(&what, g, e, 2e-3);
                }
            }
        }
    }
}

/// The same function at other sizes: other arguments, and in part another graph.
fn sizes(seed: u64) -> Vec<(Tensor, Tensor)> {
    let mut c = Choices(seed ^ 0x7777);
    let mut all = vec![inputs(seed)];
    for i in 0..3 {
        let (a, b) = (1 + c.below(9), 1 + c.below(20));
        all.push((crate::common::noise(seed + 3 + i, &[a, b]), crate::common::noise(seed + 4 + i, &[b])));
    }
    all
}

#[test]
fn random_graphs_agree_at_other_sizes() {
    for seed in seeds(2) {
        for dynamic in [Dynamic::Auto, Dynamic::Always] {
            let f = |x: &(Tensor, Tensor)| program(seed, x);
            let compiled = compile(f, Options::new().device("cpu").dynamic(dynamic)).unwrap();
            for x in sizes(seed) {
                let got = compiled.call(&x).unwrap_or_else(|e| panic!("seed {seed}, {dynamic:?}: {e}"));
                for (g, e) in got.iter().zip(&f(&x)) {
                    let what =
                        format!("seed {seed}, {dynamic:?}\n{}\n{}", compiled.graph().unwrap(), compiled.explain());
                    assert_close(&what, g, e, 2e-4);
                }
            }
        }
    }
}

#[test]
fn random_functions_of_integers_agree_at_other_sizes() {
    for seed in seeds(4) {
        for dynamic in [Dynamic::Auto, Dynamic::Always] {
            let f = |x: &(Tensor, Tensor)| integer_program(seed, x);
            let compiled = compile(f, Options::new().device("cpu").dynamic(dynamic)).unwrap();
            for (a, b) in sizes(seed) {
                let x = ((a * 1000.0).cast(DType::I32), (b * 20.0).cast(DType::I32));
                let got = compiled.call(&x).unwrap_or_else(|e| panic!("seed {seed}, {dynamic:?}: {e}"));
                for (g, e) in got.iter().zip(&f(&x)) {
                    let same = g.to_literal().unwrap() == e.to_literal().unwrap();
                    let graph = compiled.graph().unwrap();
                    assert!(same, "seed {seed}, {dynamic:?}\n{graph}\n{}", compiled.explain());
                }
            }
        }
    }
}

#[test]
fn random_graphs_agree_on_other_devices() {
    for device in crate::common::other_devices() {
        for seed in seeds(25) {
            let x = inputs(seed);
            let f = |x: &(Tensor, Tensor)| program(seed, x);
            let compiled = compile(f, Options::new().device(&device)).unwrap();
            let got = compiled.call(&x).unwrap_or_else(|e| panic!("seed {seed} on {device}: {e}"));
            for (g, e) in got.iter().zip(&f(&x)) {
                assert_close(&format!("seed {seed} on {device}\n{}", compiled.graph().unwrap()), g, e, 1e-3);
            }
            let x = ((x.0 * 1000.0).cast(DType::I32), (x.1 * 20.0).cast(DType::I32));
            let f = |x: &(Tensor, Tensor)| integer_program(seed, x);
            let compiled = compile(f, Options::new().device(&device)).unwrap();
            let got = compiled.call(&x).unwrap_or_else(|e| panic!("integers, seed {seed} on {device}: {e}"));
            for (g, e) in got.iter().zip(&f(&x)) {
                let what = format!("integers, seed {seed} on {device}\n{}", compiled.graph().unwrap());
                assert_close(&what, g, e, 0.0);
            }
        }
    }
}
