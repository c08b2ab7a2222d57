//! Gradients: conventions at the edges, and finite differences.

use crate::common::{everywhere, noise};
use tilewright_graph_lowering::{DType, Tensor, grad};

/// The gradient of `f` at `x` in every way of execution.
fn gradient(what: &str, f: impl Fn(&Tensor) -> Tensor, x: &[f32]) -> Vec<f64> {
    let g = |x: &Tensor| grad(|x: &Tensor| f(x).sum(&(0..f(x).rank()).collect::<Vec<_>>()), x).unwrap();
    everywhere(what, g, &Tensor::vector(x), 1e-6).0.to_f64s().unwrap()
}

fn same(a: &[f64], b: &[f64]) {
    let equal = a.len() == b.len() && a.iter().zip(b).all(|(x, y)| x == y || (x.is_nan() && y.is_nan()));
    assert!(equal, "{a:?} instead of {b:?}");
}

#[test]
fn conventions_at_the_edges() {
    let nan = f32::NAN;
    same(&gradient("amax", |x| x.max(&[0]), &[2.0, 2.0, 1.0]), &[0.5, 0.5, 0.0]);
    same(&gradient("maximum", |x| x.maximum(1.0), &[1.0, 2.0, 0.0]), &[0.5, 1.0, 0.0]);
    same(&gradient("relu", Tensor::relu, &[0.0, nan, 1.0, -1.0]), &[0.0, 1.0, 1.0, 0.0]);
    same(&gradient("abs", Tensor::abs, &[0.0, nan, -2.0]), &[0.0, 0.0, -1.0]);
    same(&gradient("clamp", |x| x.clamp(0.0, 1.0), &[0.0, 1.0, 0.5, 2.0]), &[0.0, 0.0, 1.0, 0.0]);
    same(&gradient("sqrt", Tensor::sqrt, &[0.0, 4.0]), &[f64::INFINITY, 0.25]);
    same(&gradient("norm", |x| x.norm(&[0]), &[0.0, 0.0]), &[0.0, 0.0]);
    same(&gradient("std", |x| x.std(&[0], 1), &[2.0, 2.0]), &[0.0, 0.0]);
    same(&gradient("prod", |x| x.prod(&[0]), &[0.0, 2.0, 3.0]), &[6.0, 0.0, 0.0]);
    same(&gradient("prod", |x| x.prod(&[0]), &[0.0, 0.0, 3.0]), &[0.0, 0.0, 0.0]);
    same(&gradient("square", |x| x * x, &[0.0]), &[0.0]);
    let log = |x: &Tensor| x.gt(0.0).where_(x.log(), 0.0);
    let g = gradient("where", log, &[0.0, -1.0, 2.0]);
    same(&g, &[f64::NAN, 0.0, 0.5]);
    assert!(g[1].is_sign_negative(), "0 / -1 is -0");
    let g = gradient("sigmoid", Tensor::sigmoid, &[100.0, -100.0, 0.0]);
    assert!(g[0] < 1e-40 && g[1] < 1e-40 && g[2] == 0.25, "{g:?}");
    same(&gradient("softplus", Tensor::softplus, &[100.0]), &[1.0]);
    let spread = |x: &Tensor| x.broadcast_to(&[3, 2]) * Tensor::arange(DType::F32, 6).reshape(&[3, 2]);
    same(&gradient("expand", spread, &[1.0, 1.0]), &[6.0, 9.0]);
    let twice = |x: &Tensor| x.gather_rows(&Tensor::vector(&[1i32, 1, 0]));
    same(&gradient("duplicates", twice, &[1.0, 1.0, 1.0]), &[1.0, 2.0, 0.0]);
}

/// The gradient of a weighted sum of `f` against differences, in double precision.
fn differences(what: &str, f: impl Fn(&Tensor) -> Tensor, dims: &[usize]) {
    let x = noise(5, dims).cast(DType::F64) * 0.8 + 1.3;
    let weighted = |x: &Tensor| {
        let y = f(x);
        let all: Vec<usize> = (0..y.rank()).collect();
        (&y * noise(9, &y.dims()).cast(DType::F64)).sum(&all)
    };
    let got = grad(weighted, &x).unwrap().to_f64s().unwrap();
    let base = x.to_vec::<f64>().unwrap();
    let h = 1e-5;
    for i in 0..base.len() {
        let at = |d: f64| {
            let mut v = base.clone();
            v[i] += d;
            weighted(&Tensor::new(&v, dims)).to_f64s().unwrap()[0]
        };
        let expected = (at(h) - at(-h)) / (2.0 * h);
        let error = (got[i] - expected).abs();
        assert!(error < 1e-6 * (1.0 + expected.abs()), "{what}: element {i} is {}, expected {expected}", got[i]);
    }
}

#[test]
fn finite_differences_agree() {
    type F = fn(&Tensor) -> Tensor;
    let all: &[(&str, F)] = &[
        ("exp", Tensor::exp),
        ("exp2", Tensor::exp2),
        ("log", Tensor::log),
        ("log2", Tensor::log2),
        ("sin", Tensor::sin),
        ("cos", Tensor::cos),
        ("tanh", Tensor::tanh),
        ("erf", Tensor::erf),
        ("sqrt", Tensor::sqrt),
        ("rsqrt", Tensor::rsqrt),
        ("abs", Tensor::abs),
        ("gelu", Tensor::gelu),
        ("gelu_tanh", Tensor::gelu_tanh),
        ("silu", Tensor::silu),
        ("softplus", Tensor::softplus),
        ("division", |x| (x + 2.0) / (x * x)),
        ("remainder", |x| x.rem_(0.37)),
        ("softmax", |x| x.softmax(1)),
        ("log_softmax", |x| x.log_softmax(0)),
        ("layer_norm", |x| x.layer_norm(None, None, 1e-5)),
        ("rms_norm", |x| x.rms_norm(None, 1e-5)),
        ("mean", |x| x.mean(&[0])),
        ("var", |x| x.var(&[1], 1)),
        ("std", |x| x.std(&[1], 1)),
        ("norm", |x| x.norm(&[0])),
        ("logsumexp", |x| x.logsumexp(1)),
        ("logaddexp", |x| x.logaddexp(x.sin())),
        ("xlogy", |x| x.xlogy(x.exp())),
        ("max", |x| x.max(&[1])),
        ("prod", |x| x.prod(&[0])),
        ("cumsum", |x| x.cumsum(1)),
        ("matmul", |x| x.matmul(&x.transpose())),
        ("views", |x| x.permute(&[1, 0]).reshape(&[2, 6]).slice(&[0, 1], &[2, 6], &[1, 2])),
        ("pad", |x| x.pad(&[1, 0], &[0, 2], 0.5)),
        ("cat", |x| Tensor::cat(&[x, &x.exp()], 0)),
        ("gather", |x| x.gather_rows(&Tensor::vector(&[2i64, 0, 2]))),
        ("scatter", |x| x.scatter_add(&Tensor::vector(&[1i64, 0, 1]), 2)),
        ("attention", |x| x.attention(x, x, None, true, None)),
        ("cross_entropy", |x| {
            x.cross_entropy(&Tensor::vector(&[1i32, 3, 0]), Some(3), tilewright_graph_lowering::Reduction::Mean)
        }),
        // The gradient of a gradient.
        ("second order", |x| grad(|x: &Tensor| x.tanh().sum(&[0, 1]), x).unwrap()),
    ];
    for (what, f) in all {
        differences(what, f, &[3, 4]);
    }
}

#[test]
fn gradients_of_what_is_no_number_are_errors() {
    let e = grad(|x: &Tensor| x.exp(), &noise(1, &[2])).unwrap_err().to_string();
    assert!(e.contains("not one float"), "{e}");
    assert!(grad(|x: &Tensor| x.reshape(&[7]), &noise(1, &[2])).is_err());
}
