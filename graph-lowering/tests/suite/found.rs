//! Small inputs that once went wrong, on every device there is, with the values that NumPy and PyTorch give; every
//! function and many more values are in `oracle.rs`.

use crate::common::other_devices;
use tilewright_graph_lowering::{DType, Options, Reduction, Structure, Tensor, compile, grad};

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

/// The values of `f` eagerly, interpreted, as single kernels, and fused on every device; NaN equals NaN, signs of zeros
/// count.
fn check<I: Structure>(what: &str, f: impl Fn(&I) -> Tensor, x: &I, expected: &[f64], tolerance: f64) {
    let mut all = vec![("eager".to_owned(), f(x))];
    let mut add = |way: String, options: Options| {
        let got = compile(&f, options).unwrap().call(x).unwrap_or_else(|e| panic!("{what}, {way}: {e}"));
        all.push((way, got));
    };
    add("interpreter".into(), Options::new().backend("interpreter"));
    add("cpu unfused".into(), Options::new().device("cpu").fusion(false));
    for device in [vec!["cpu".to_owned()], other_devices()].concat() {
        add(device.clone(), Options::new().device(&device));
    }
    for (way, got) in all {
        let values = got.to_f64s().unwrap_or_else(|e| panic!("{what}, {way}: {e}"));
        let close = |(x, y): (&f64, &f64)| {
            if *x == 0.0 || x.is_infinite() {
                return x == y && x.is_sign_negative() == y.is_sign_negative();
            }
            (x.is_nan() && y.is_nan()) || (x - y).abs() <= tolerance * y.abs()
        };
        let same = values.len() == expected.len() && values.iter().zip(expected).all(close);
        assert!(same, "{what}, {way}: {values:?} instead of {expected:?}");
    }
}

fn of(f: impl Fn(&Tensor) -> Tensor) -> impl Fn(&Tensor) -> Tensor {
    let sum = |y: Tensor| y.sum(&(0..y.rank()).collect::<Vec<_>>());
    move |x: &Tensor| grad(|x: &Tensor| sum(f(x)), x).unwrap()
}

fn message(t: &Tensor) -> String {
    t.check().unwrap_err().to_string()
}

#[test]
fn found_g4() {
    let (zeros, table) = (Tensor::zeros(DType::F32, &[1, 300]), Tensor::arange(DType::F32, 300));
    let f = |(x, table, all): &(Tensor, Tensor, Vec<Tensor>)| {
        let results = all.iter().flat_map(|t| {
            let sums = Tensor::full(DType::F32, &[1], 2.0).scatter_add(t, 300).sum(&[0]);
            let hits = t.one_hot(300).sum(&[1]).cast(DType::F32);
            let loss = x.cross_entropy(t, None, Reduction::Mean);
            [loss.reshape(&[1]), hits, table.embedding(t), sums.reshape(&[1])]
        });
        Tensor::cat(&results.collect::<Vec<_>>().iter().collect::<Vec<_>>(), 0)
    };
    for types in [[DType::U8, DType::I8, DType::I16, DType::U16], [DType::I32, DType::U32, DType::I64, DType::U64]] {
        let targets = types.map(|dtype| Tensor::vector(&[1i32]).cast(dtype)).to_vec();
        let expected = [[300f64.ln(), 1.0, 1.0, 2.0]; 4].concat();
        check("targets of all types", f, &(zeros.clone(), table.clone(), targets), &expected, 1e-6);
    }
    let above = Tensor::vector(&[200u8]);
    check("one_hot", |t: &Tensor| t.one_hot(201).argmax(1), &above, &[200.0], 0.0);
    assert!(message(&Tensor::arange(DType::I8, 129)).contains("do not fit in i8"));
    assert!(message(&Tensor::iota(DType::U8, &[257, 1], 0)).contains("do not fit in u8"));
    assert_eq!(Tensor::arange(DType::I8, 128).to_vec::<i8>().unwrap()[127], 127);
    assert_eq!(Tensor::arange(DType::U8, 256).to_vec::<u8>().unwrap()[255], 255);
}

#[test]
fn found_g5() {
    check("u8", |x: &Tensor| x.clamp(-1, 200), &Tensor::vector(&[100u8, 250]), &[100.0, 200.0], 0.0);
    check("i8", |x: &Tensor| x.clamp(-200, 200), &Tensor::vector(&[100i8, -128]), &[100.0, -128.0], 0.0);
    let far = |x: &Tensor| x.clamp(i64::MIN, u64::MAX);
    check("u64", far, &Tensor::vector(&[0u64, 1 << 40]), &[0.0, (1u64 << 40) as f64], 0.0);
    // Neither do comparisons wrap, nor sums: those are mistakes.
    let x = Tensor::vector(&[0u8, 44, 255]);
    check("lt", |x: &Tensor| x.lt(300), &x, &[1.0; 3], 0.0);
    check("eq", |x: &Tensor| x.eq_(300), &x, &[0.0; 3], 0.0);
    check("ge", |x: &Tensor| x.ge(-1), &x, &[1.0; 3], 0.0);
    let u64s = Tensor::vector(&[u64::MAX, 5, 0]);
    let i64s = Tensor::vector(&[-1i64, 5, 1]);
    let f = |(x, y): &(Tensor, Tensor)| Tensor::cat(&[&x.eq_(y), &x.gt(y), &y.lt(x), &y.ne_(x)], 0);
    let expected = [0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0];
    check("u64 with i64", f, &(u64s, i64s), &expected, 0.0);
    assert!(message(&(&x + 300)).contains("300 beside elements of type u8"), "{}", message(&(&x + 300)));
    assert!(message(&Tensor::full(DType::I8, &[1], 300.0)).contains("i8"));
    assert!(message(&x.pad(&[1], &[1], -1.0)).contains("u8"));
}

#[test]
fn found_g6() {
    let ones = Tensor::full(DType::F16, &[70_000], 1.0);
    let f = |x: &Tensor| of(|x| x.max(&[0]))(x).narrow(0, 69_999, 1);
    // The nearest f16 to 1 / 70000 is subnormal.
    check("gradient of max", f, &ones, &[1.430_511_474_609_375e-5], 0.0);
    let f = |x: &Tensor| of(|x| x.min(&[0]))(x).narrow(0, 0, 1);
    check("gradient of min", f, &Tensor::full(DType::BF16, &[512], 1.0), &[1.0 / 512.0], 0.0);
    // Two zeros among many factors leave no gradient, one leaves one.
    let product = |zeros: usize| Tensor::vector(&(0..40).map(|i| f32::from(i >= zeros)).collect::<Vec<_>>());
    let f = |x: &Tensor| of(|x| x.prod(&[0]))(x).sum(&[0]);
    check("gradient of prod", f, &product(1).cast(DType::F16), &[1.0], 0.0);
    check("gradient of prod", f, &product(2).cast(DType::F16), &[0.0], 0.0);
}

#[test]
fn found_g7() {
    check("none", |x: &Tensor| x.var(&[0], 1), &Tensor::zeros(DType::F32, &[0]), &[NAN], 0.0);
    check("none", |x: &Tensor| x.mean(&[0]), &Tensor::zeros(DType::F32, &[0, 2]), &[NAN, NAN], 0.0);
    check("one", |x: &Tensor| x.var(&[0], 2), &Tensor::vector(&[3f32]), &[NAN], 0.0);
    check("two", |x: &Tensor| x.var(&[0], 3), &Tensor::vector(&[1f32, 2.0]), &[INF], 0.0);
    check("two", |x: &Tensor| x.std(&[0], 2), &Tensor::vector(&[1f32, 2.0]), &[INF], 0.0);
    // The variance of these would overflow.
    let halves = Tensor::vector(&[-600f32, 600.0]).cast(DType::F16);
    check("halves", |x: &Tensor| x.std(&[0], 0), &halves, &[600.0], 0.0);
}

#[test]
fn found_g8() {
    let x = Tensor::vector(&[-20f32, -15.0, 0.0, 30.0]);
    let expected = [2.061_153_62e-9, 3.059_022_7e-7, std::f64::consts::LN_2, 30.0];
    check("softplus", Tensor::softplus, &x, &expected, 4e-7);
    let expected = [-20.0, -15.000_000_3, -std::f64::consts::LN_2, -9.357_622_97e-14];
    check("log_sigmoid", Tensor::log_sigmoid, &x, &expected, 4e-7);
    let x = Tensor::vector(&[0f32, -20.0]);
    let pair = |x: &Tensor| x.narrow(0, 0, 1).logaddexp(x.narrow(0, 1, 1));
    check("logaddexp", pair, &x, &[2.061_153_62e-9], 4e-7);
    let x = Tensor::vector(&[1e-10f32, -1e-10, -0.0, -1.0, f32::INFINITY, -2.0]);
    check("log1p", Tensor::log1p, &x, &[1e-10, -1e-10, -0.0, -INF, INF, NAN], 4e-7);
    let x = Tensor::vector(&[1e-10f32, -1e-10, -0.0, -200.0, f32::INFINITY]);
    check("expm1", Tensor::expm1, &x, &[1e-10, -1e-10, -0.0, -1.0, INF], 4e-7);
    let x = Tensor::vector(&[5f32, -5.0, 0.0, f32::INFINITY, f32::NEG_INFINITY]);
    check("erfc", Tensor::erfc, &x, &[1.537_459_794_43e-12, 2.0, 1.0, 0.0, 2.0], 4e-7);
    let x = Tensor::vector(&[0f32, 1.0, -20.0]);
    let e = std::f64::consts::E;
    check("gradient of softplus", of(Tensor::softplus), &x, &[0.5, e / (e + 1.0), 2.061_153_62e-9], 4e-7);
    check("gradient of log1p", of(Tensor::log1p), &x.narrow(0, 0, 2), &[1.0, 0.5], 4e-7);
    check("gradient of expm1", of(Tensor::expm1), &x, &[1.0, e, 2.061_153_62e-9], 4e-7);
    let slope = -std::f64::consts::FRAC_2_SQRT_PI;
    check("gradient of erfc", of(Tensor::erfc), &x, &[slope, slope / e, -0.0], 4e-7);
}

#[test]
fn found_g9() {
    check("clamp", |x: &Tensor| x.clamp(5.0, 1.0), &Tensor::vector(&[0f32, 3.0, 9.0]), &[1.0; 3], 0.0);
    check("clamp", |x: &Tensor| x.clamp(NAN, 1.0), &Tensor::vector(&[0f32, 3.0]), &[NAN; 2], 0.0);
    check("clamp", |x: &Tensor| x.clamp(0.0, NAN), &Tensor::vector(&[0f32, 3.0]), &[NAN; 2], 0.0);
    let bounds = (Tensor::vector(&[0f32, 3.0]), Tensor::vector(&[f32::NAN, 1.0]));
    check("clamp", |(x, b): &(Tensor, Tensor)| x.clamp(b, 2.0), &bounds, &[NAN, 2.0], 0.0);
    let x = (Tensor::vector(&[1f32, -1.0, 0.0, 1.0, -0.3]), Tensor::vector(&[0f32, 0.0, 0.0, -0.0, 1.0]));
    let f = |(x, y): &(Tensor, Tensor)| x.floor_div(y);
    check("floor_div", f, &x, &[INF, -INF, NAN, -INF, -1.0], 0.0);
    let x = (Tensor::vector(&[1f32, f32::NAN, 2.0]), Tensor::vector(&[f32::NAN, 1.0, 2.0]));
    for least in [false, true] {
        let f = move |x: &Tensor, y: &Tensor| if least { x.fmin(y) } else { x.fmax(y) };
        let first = move |(x, y): &(Tensor, Tensor)| of(|x| f(x, y))(x);
        let second = move |(x, y): &(Tensor, Tensor)| of(|y| f(x, y))(y);
        check("first of fmax or fmin", first, &x, &[1.0, 0.0, 0.5], 0.0);
        check("second of fmax or fmin", second, &x, &[0.0, 1.0, 0.5], 0.0);
    }
}

#[test]
fn found_g10() {
    let x = Tensor::zeros(DType::F32, &[3, 4]);
    let loss = |r| move |(x, t): &(Tensor, Tensor)| x.cross_entropy(t, None, r);
    let ignored = Tensor::vector(&[1i64, -100, 3]);
    let known = 4f64.ln();
    check("mean", loss(Reduction::Mean), &(x.clone(), ignored.clone()), &[known], 1e-6);
    check("none", loss(Reduction::None), &(x.clone(), ignored), &[known, 0.0, known], 1e-6);
    // On the host a number that is no class is a mistake; on a device its loss is NaN.
    let wrong = Tensor::vector(&[1i32, 4, -1]);
    let text = message(&loss(Reduction::None)(&(x.clone(), wrong.clone())));
    assert!(text.contains("target 4, of sample 1, is none of the 4 classes"), "{text}");
    for device in [vec!["cpu".to_owned()], other_devices()].concat() {
        let f = compile(loss(Reduction::None), Options::new().device(&device)).unwrap();
        let losses = f.call(&(x.clone(), wrong.clone())).unwrap().to_f64s().unwrap();
        assert!((losses[0] - known).abs() < 1e-6 && losses[1].is_nan() && losses[2].is_nan(), "{losses:?}");
    }
    let bytes = Tensor::vector(&[255u8, 0, 1]);
    let f = |(x, t): &(Tensor, Tensor)| x.cross_entropy(t, Some(255), Reduction::Mean);
    check("ignored bytes", f, &(x, bytes), &[known], 1e-6);
}

#[test]
fn found_g11() {
    let x = Tensor::vector(&[3i32]);
    for v in [2.0, 2.5, 1e10] {
        assert_eq!((&x * v).dtype(), DType::F32);
    }
    check("large", |x: &Tensor| x * 1e10, &x, &[f64::from(3e10f32)], 0.0);
    assert_eq!((&x * 2).dtype(), DType::I32);
    assert_eq!((Tensor::vector(&[true]) + 1).dtype(), DType::I64);
    assert_eq!((Tensor::vector(&[true]) * 1.0).dtype(), DType::F32);
    assert_eq!(x.gt(0).where_(&x, 0.0).dtype(), DType::F32);
    assert_eq!(x.gt(0).where_(&x, 0).dtype(), DType::I32);
    assert_eq!(x.masked_fill(&x.gt(0), 7.0).dtype(), DType::I32);
    assert_eq!(x.floor().dtype(), DType::I32);
    assert!(message(&(&x + (1i64 << 40))).contains("i32 goes from"));
}

#[test]
fn found_g12() {
    let x = Tensor::vector(&[-7i32, 7, -7, 7, -6]);
    let y = Tensor::vector(&[3i32, -3, -3, 3, 3]);
    let f = |(x, y): &(Tensor, Tensor)| x % y;
    check("integers", f, &(x.clone(), y.clone()), &[2.0, -2.0, -1.0, 1.0, 0.0], 0.0);
    let floats = (x.cast(DType::F32), y.cast(DType::F32));
    check("floats", f, &floats, &[2.0, -2.0, -1.0, 1.0, 0.0], 0.0);
    check("fmod", |(x, y): &(Tensor, Tensor)| x.fmod(y), &floats, &[-1.0, 1.0, -1.0, 1.0, -0.0], 0.0);
    check("zero", f, &(Tensor::vector(&[6f32]), Tensor::vector(&[-3f32])), &[-0.0], 0.0);
    check("infinity", f, &(Tensor::vector(&[-1f32]), Tensor::vector(&[f32::INFINITY])), &[INF], 0.0);
    check("gradient", of(|x| x % 3.0), &Tensor::vector(&[-7f32, 7.0, 6.0]), &[1.0; 3], 0.0);
    let f = |(x, y): &(Tensor, Tensor)| of(|y| x % y)(y);
    check("gradient", f, &floats, &[3.0, 3.0, -2.0, -2.0, 2.0], 0.0);
}

#[test]
fn found_g13() {
    let x = Tensor::arange(DType::I32, 6);
    check("narrow", |x: &Tensor| x.narrow(0, 1, 3), &x, &[1.0, 2.0, 3.0], 0.0);
    check("range", |x: &Tensor| x.slice_axis(0, 1..3), &x, &[1.0, 2.0], 0.0);
    check("range", |x: &Tensor| x.slice_axis(0, ..=1), &x, &[0.0, 1.0], 0.0);
    check("range", |x: &Tensor| x.slice_axis(0, 4..), &x, &[4.0, 5.0], 0.0);
    assert!(message(&x.narrow(0, 4, 3)).contains("4..7"));
    assert!(message(&x.narrow(0, 1, usize::MAX)).contains("no part of dimension 0"));
}

#[test]
fn found_g17() {
    let x = Tensor::zeros(DType::F32, &[2, 0]);
    check("softmax", |x: &Tensor| x.softmax(1), &x, &[], 0.0);
    check("log_softmax", |x: &Tensor| x.log_softmax(1), &x, &[], 0.0);
    check("logsumexp", |x: &Tensor| x.logsumexp(1), &x, &[-INF, -INF], 0.0);
    check("logsumexp", |x: &Tensor| x.logsumexp(0), &x, &[], 0.0);
    check("gradient", of(|x| x.softmax(1)), &x, &[], 0.0);
}

#[test]
fn coordinates_along_a_middle_axis_can_be_a_result() {
    let expected: Vec<f64> = (0..24).map(|i| f64::from(i / 4 % 3)).collect();
    let f = |_: &Tensor| Tensor::iota(DType::I32, &[2, 3, 4], 1);
    check("iota", f, &Tensor::zeros(DType::F32, &[1]), &expected, 0.0);
}

#[test]
fn found_l9_errors_are_readable_and_name_the_callers_place() {
    let x = Tensor::zeros(DType::F32, &[2]);
    let line = line!() + 1;
    let error = x.to_vec::<f64>().unwrap_err();
    // `unwrap`, and a `main` that returns an error, print its `Debug` text.
    let (shown, printed) = (error.to_string(), format!("{error:?}"));
    assert_eq!(shown, printed);
    assert!(shown.contains("were asked for as f64") && shown.contains("help: write `to_vec::<f32>()`"), "{shown}");
    assert!(shown.contains(&format!("suite/found.rs:{line}:")), "{shown}");
}
