//! Elementary functions and float arithmetic.

use crate::common::{Real, assert_same, doubles, garbage, on_every_device, uniform, upload};
use tilewright::Device;
use tilewright::dsl::*;

const NAMES: [&str; 16] = [
    "exp", "exp2", "log", "log2", "sin", "cos", "tanh", "erf", "sqrt", "rsqrt", "floor", "ceil", "trunc", "round",
    "abs", "neg",
];

#[kernel]
fn functions<T: Float>(x: In<T, 1>, y: Out<T, 2>, #[comptime] block: usize) {
    let start = program_id(0) * block;
    let v = x.load([start], [block]);
    let results = [
        exp(v),
        exp2(v),
        log(v),
        log2(v),
        sin(v),
        cos(v),
        tanh(v),
        erf(v),
        sqrt(v),
        rsqrt(v),
        floor(v),
        ceil(v),
        trunc(v),
        round(v),
        abs(v),
        -v,
    ];
    for i in unroll(0..16) {
        y.store([i, start], expand_dims(results[i], 0));
    }
}

fn exact(name: &str, x: f64) -> f64 {
    match name {
        "exp" => x.exp(),
        "exp2" => x.exp2(),
        "log" => x.ln(),
        "log2" => x.log2(),
        "sin" => x.sin(),
        "cos" => x.cos(),
        "tanh" => x.tanh(),
        "erf" => libm::erf(x),
        "sqrt" => x.sqrt(),
        "rsqrt" => 1.0 / x.sqrt(),
        "floor" => x.floor(),
        "ceil" => x.ceil(),
        "trunc" => x.trunc(),
        "round" => x.round_ties_even(),
        "abs" => x.abs(),
        _ => -x,
    }
}

/// The error in units in the last place of the exact result.
fn ulps<T: Real>(got: f64, exact: f64) -> f64 {
    if got.is_nan() && exact.is_nan() || got == T::of(exact).double() {
        return 0.0;
    }
    let ulp = (exact.abs().log2().floor().exp2() * 2.0 * T::ROUNDING).max(2.0 * T::TINY);
    (got - exact).abs() / ulp
}

/// `f32`: 2 ulp for all functions that are not exact (the same bound as the compiler's own); 16-bit floats compute in `f32`
/// and round once, which leaves half an ulp and next to nothing.
fn within<T: Real>(dev: &Device, bound: f64) {
    let special =
        [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 1e-3, 88.0, -88.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    let host: Vec<T> = special
        .into_iter()
        .chain((0..1500).map(|i| uniform(i) * 10.0))
        .chain((0..500).map(|i| uniform(i) * 3e4))
        .chain((0..500).map(|i| (uniform(i) * 14.0).exp2()))
        .map(T::of)
        .collect();
    let n = host.len();
    let (x, y) = (upload(dev, &host), garbage::<T>(dev, NAMES.len() * n));
    functions(x.view([n]).unwrap(), y.view([NAMES.len(), n]).unwrap(), 256).grid([n.div_ceil(256)]).launch().unwrap();
    let got = doubles(&y.to_vec().unwrap());
    for (i, name) in NAMES.into_iter().enumerate() {
        let bound = if i < 10 { bound } else { 0.0 };
        for (j, v) in doubles(&host).into_iter().enumerate() {
            let (g, e) = (got[i * n + j], exact(name, v));
            assert!(
                ulps::<T>(g, e) <= bound,
                "{name}({v:e}) is {g:e}, not {e:e}: {} ulp, {}",
                ulps::<T>(g, e),
                T::DTYPE
            );
        }
    }
}

#[test]
fn functions_in_f32_within_two_ulps() {
    on_every_device(|dev| within::<f32>(dev, 2.0));
}

#[test]
fn functions_in_16_bits_round_once() {
    on_every_device(|dev| {
        within::<f16>(dev, 0.51);
        within::<bf16>(dev, 0.51);
    });
}

#[kernel]
fn binary_operations<T: Float>(x: In<T, 1>, y: In<T, 1>, out: Out<T, 2>, #[comptime] block: usize) {
    let (a, b) = (x.load([0], [block]), y.load([0], [block]));
    let results = [
        a + b,
        a - b,
        a * b,
        minimum(a, b),
        maximum(a, b),
        fmin(a, b),
        fmax(a, b),
        fma(a, b, a),
        clamp(a, -1.0, b),
        where_(a < b, a, b),
        a * b + a,
        a / b,
        a % b,
    ];
    for i in unroll(0..13) {
        out.store([i, 0], expand_dims(results[i], 0));
    }
}

/// The bits of each result; any NaN is as good as another.
fn bits_of(v: f32) -> u32 {
    if v.is_nan() { u32::MAX } else { v.to_bits() }
}

/// Zeros of both signs are told apart.
fn least(a: f32, b: f32) -> f32 {
    if a.is_nan() || b.is_nan() {
        f32::NAN
    } else if a < b || (a == b && a.is_sign_negative()) {
        a
    } else {
        b
    }
}

#[test]
fn arithmetic_is_exact_and_nan_spreads_as_documented() {
    on_every_device(|dev| {
        let edges = [0.0f32, -0.0, 1.0, -1.5, 1e30, -1e30, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 3e-3];
        let mut pairs: Vec<(f32, f32)> = edges.iter().flat_map(|&a| edges.iter().map(move |&b| (a, b))).collect();
        pairs.extend((0..156).map(|i| (uniform(2 * i) as f32 * 9.0, uniform(2 * i + 1) as f32 * 4.0)));
        let n = pairs.len();
        let (a, b): (Vec<f32>, Vec<f32>) = pairs.iter().copied().unzip();
        let (x, y, out) = (upload(dev, &a), upload(dev, &b), garbage::<f32>(dev, 13 * n));
        binary_operations(x.view([n]).unwrap(), y.view([n]).unwrap(), out.view([13, n]).unwrap(), 256)
            .grid([1])
            .launch()
            .unwrap();
        let got = out.to_vec().unwrap();
        for (i, &(a, b)) in pairs.iter().enumerate() {
            let greatest = |a: f32, b: f32| -least(-a, -b);
            let ignoring = |f: &dyn Fn(f32, f32) -> f32| match (a.is_nan(), b.is_nan()) {
                (true, _) => b,
                (_, true) => a,
                _ => f(a, b),
            };
            let exact = [
                a + b,
                a - b,
                a * b,
                least(a, b),
                greatest(a, b),
                ignoring(&least),
                ignoring(&greatest),
                a.mul_add(b, a),
                least(greatest(a, -1.0), b),
                if a < b { a } else { b },
                // Nothing is contracted that was not asked to be.
                a * b + a,
            ];
            for (op, e) in exact.into_iter().enumerate() {
                let g = got[op * n + i];
                // Which zero `fmin` and `fmax` give is left open.
                let zeros = (5..7).contains(&op) && g == 0.0 && e == 0.0;
                assert!(bits_of(g) == bits_of(e) || zeros, "operation {op} of {a:e} and {b:e} is {g:e}, not {e:e}");
            }
            // Vulkan and OpenCL devices may divide with an error of 2.5 ulp.
            let (g, e) = (f64::from(got[11 * n + i]), f64::from(a) / f64::from(b));
            assert!(ulps::<f32>(g, e) <= 2.5 || f64::from(e as f32) == g, "{a:e} / {b:e} is {g:e}, not {e:e}");
            let (g, e) = (got[12 * n + i], a % b);
            assert_eq!(bits_of(g), bits_of(e), "{a:e} % {b:e} is {g:e}, not {e:e}");
        }
    });
}

#[kernel]
fn in_f64(x: In<f64, 1>, y: Out<f64, 2>) {
    let v = x.load([0], [128]);
    y.store([0, 0], expand_dims(v * v + 1.0, 0));
    y.store([1, 0], expand_dims(sqrt(abs(v)), 0));
    y.store([2, 0], expand_dims(exp(v), 0));
    y.store([3, 0], expand_dims(v.to::<f32>().to::<f64>(), 0));
}

#[test]
fn f64_is_double_precision() {
    on_every_device(|dev| {
        if dev.caps().is_some_and(|c| !c.f64) {
            eprintln!("skipped on {dev}: it has no f64");
            return;
        }
        let host: Vec<f64> = (0..128).map(|i| uniform(i) * 20.0).collect();
        let (x, y) = (upload(dev, &host), garbage::<f64>(dev, 512));
        in_f64(x.view([128]).unwrap(), y.view([4, 128]).unwrap()).grid([1]).launch().unwrap();
        let got = y.to_vec().unwrap();
        assert_same("x x + 1", &got[..128], &host.iter().map(|v| v * v + 1.0).collect::<Vec<_>>());
        assert_same("to f32", &got[384..], &host.iter().map(|v| f64::from(*v as f32)).collect::<Vec<_>>());
        // 4 ulp, the compiler's own bound for f64.
        let bound = 4.0;
        for (i, v) in host.iter().enumerate() {
            for (g, e) in [(got[128 + i], v.abs().sqrt()), (got[256 + i], v.exp())] {
                assert!((g - e).abs() <= bound * f64::EPSILON * e, "{g:e}, not {e:e}, of {v:e}");
            }
        }
    });
}
