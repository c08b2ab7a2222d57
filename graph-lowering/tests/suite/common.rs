//! Running one function in every way.

use tilewright_graph_lowering::{Dynamic, Explanation, Options, Structure, Tensor, compile};

/// Pseudo-random numbers in -1 .. 1.
pub fn noise(seed: u64, dims: &[usize]) -> Tensor {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    let values: Vec<f32> = (0..dims.iter().product()).map(|_| next()).collect();
    Tensor::new(&values, dims)
}

/// Fails unless all elements are equal within the tolerance, relative to the larger one; NaN equals NaN.
pub fn assert_close(what: &str, got: &Tensor, expected: &Tensor, tolerance: f64) {
    assert_eq!(got.ty(), expected.ty(), "{what}: types differ");
    let (a, b) = (got.to_f64s().unwrap(), expected.to_f64s().unwrap());
    for (i, (x, y)) in a.iter().zip(&b).enumerate() {
        let same = x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= tolerance * (1.0 + y.abs());
        assert!(same, "{what}: element {i} of {} is {x}, expected {y}", got.ty());
    }
}

/// The devices to test on: the CPU always, others when they are there.
pub fn other_devices() -> Vec<String> {
    let all = tilewright_runtime::Device::list();
    all.into_iter().filter(|d| d.unusable.is_none() && d.name != "cpu").map(|d| d.name).collect()
}

/// Runs `f` eagerly, interpreted, unfused and fused on the CPU; the results must agree. Gives them and what the fused one
/// became.
pub fn everywhere<I: Structure, O: Structure>(
    what: &str,
    f: impl Fn(&I) -> O,
    x: &I,
    tolerance: f64,
) -> (O, Explanation) {
    in_ways(&ways()[..3], what, f, x, tolerance)
}

/// [`everywhere`], and with extents as parameters. What the fused one became is given.
pub fn everywhere_and_dynamic<I: Structure, O: Structure>(
    what: &str,
    f: impl Fn(&I) -> O,
    x: &I,
    tolerance: f64,
) -> (O, Explanation) {
    in_ways(&ways(), what, f, x, tolerance)
}

/// How a function may be run.
pub fn ways() -> [(&'static str, Options); 4] {
    [
        ("interpreter", Options::new().backend("interpreter")),
        ("unfused", Options::new().device("cpu").fusion(false)),
        ("fused", Options::new().device("cpu")),
        ("dynamic", Options::new().device("cpu").dynamic(Dynamic::Always)),
    ]
}

fn in_ways<I: Structure, O: Structure>(
    ways: &[(&'static str, Options)],
    what: &str,
    f: impl Fn(&I) -> O,
    x: &I,
    tolerance: f64,
) -> (O, Explanation) {
    let expected = f(x);
    for t in expected.tensors() {
        t.check().unwrap_or_else(|e| panic!("{what}: {e}"));
    }
    let mut explanation = Explanation::default();
    for (way, options) in ways.iter().cloned() {
        let compiled = compile(&f, options).unwrap();
        let got = compiled.call(x).unwrap_or_else(|e| panic!("{what}, {way}: {e}"));
        for (g, e) in got.tensors().iter().zip(expected.tensors()) {
            assert_close(&format!("{what}, {way}\n{}", compiled.graph().unwrap()), g, &e, tolerance);
        }
        explanation = compiled.explain();
    }
    (expected, explanation)
}
