//! Values where tensor compilers have been wrong before.

use crate::common::{everywhere, noise};
use tilewright_graph_lowering::{DType, Reduction, Tensor};

const NAN: f32 = f32::NAN;
const INF: f32 = f32::INFINITY;

fn values(what: &str, f: impl Fn(&Tensor) -> Tensor, x: Tensor) -> Vec<f64> {
    everywhere(what, f, &x, 1e-6).0.to_f64s().unwrap()
}

fn same(what: &str, a: &[f64], b: &[f64]) {
    let equal = a.len() == b.len() && a.iter().zip(b).all(|(x, y)| x == y || (x.is_nan() && y.is_nan()));
    assert!(equal, "{what}: {a:?} instead of {b:?}");
}

#[test]
fn integers_are_as_wide_as_they_say() {
    let f = |x: &Tensor| x * Tensor::vector(&[1_500_000_000i64]);
    same("i64", &values("i64", f, Tensor::arange(DType::I64, 4)), &[0.0, 1.5e9, 3e9, 4.5e9]);
    let wide = |x: &Tensor| (x + x).cast(DType::I64);
    same("i8", &values("i8", wide, Tensor::vector(&[100i8])), &[-56.0]);
    same("i32 max", &values("i32", wide, Tensor::vector(&[i32::MAX])), &[-2.0]);
    same("i32 square", &values("i32", |x| (x * x).cast(DType::I64), Tensor::vector(&[70000i32])), &[605_032_704.0]);
    same("u8", &values("u8", |x| (x - 2i64).cast(DType::I32), Tensor::vector(&[1u8])), &[255.0]);
    same("neg", &values("neg", |x| x.neg().cast(DType::I32), Tensor::vector(&[-128i8])), &[-128.0]);
    same("abs", &values("abs", |x| x.abs().cast(DType::I32), Tensor::vector(&[-128i8])), &[-128.0]);
    same("sum", &values("sum", |x| x.sum(&[0]), Tensor::vector(&[127i8; 300])), &[38100.0]);
    assert_eq!(Tensor::vector(&[1i8]).sum(&[0]).dtype(), DType::I64);
    same("cumsum", &values("cumsum", |x| x.cumsum(0), Tensor::vector(&[true, true, false])), &[1.0, 2.0, 2.0]);
    let narrow = |x: &Tensor| x.cast(DType::I8).reduce_strict(tilewright_compiler::tile::ReduceOp::Sum, &[0]);
    same("i8 sum", &values("i8 sum", narrow, Tensor::vector(&[true; 300])), &[44.0]);
    same("i8 dot", &values("i8 dot", |x| x.matmul(x), Tensor::vector(&[100i8, 100])), &[32.0]);
    same("i32 dot", &values("i32 dot", |x| x.matmul(x), Tensor::vector(&[70000i32])), &[605_032_704.0]);
}

#[test]
fn halves_are_rounded_after_every_operation() {
    let bf16 = |x: &Tensor| x.cast(DType::BF16).cast(DType::F32);
    same("bf16", &values("bf16", bf16, Tensor::vector(&[1.003_906_3_f32, 3.145])), &[1.0, 3.140625]);
    let f = |x: &Tensor| x.cast(DType::F16) * x.cast(DType::F16) / x.cast(DType::F16);
    same("f16", &values("f16", f, Tensor::vector(&[300.0f32])), &[f64::INFINITY]);
    let f = |x: &Tensor| x.cast(DType::BF16) + 1.0 - 256.0;
    same("bf16 sum", &values("bf16 sum", f, Tensor::vector(&[256.0f32])), &[0.0]);
}

#[test]
fn nan_goes_where_it_should() {
    let nan = f64::NAN;
    let x = || Tensor::vector(&[1.0, NAN, 3.0]);
    same("argmax", &values("argmax", |x| x.argmax(0), x()), &[1.0]);
    same("argmax of equals", &values("argmax", |x| x.argmax(0), Tensor::vector(&[3.0f32, 1.0, 3.0])), &[0.0]);
    same("amax", &values("amax", |x| x.max(&[0]), x()), &[nan]);
    same("relu", &values("relu", Tensor::relu, x()), &[1.0, nan, 3.0]);
    same("clamp", &values("clamp", |x| x.clamp(0.0, 1.0), x()), &[1.0, nan, 1.0]);
    same("maximum", &values("maximum", |x| x.maximum(2.0), x()), &[2.0, nan, 3.0]);
    same("fmax", &values("fmax", |x| x.fmax(2.0), x()), &[2.0, 2.0, 3.0]);
    same("sign", &values("sign", Tensor::sign, x()), &[1.0, 0.0, 1.0]);
}

#[test]
fn quotients_round_down() {
    let f = |x: &Tensor| x.floor_div(Tensor::scalar(0.1f32));
    same("floor_div", &values("floor_div", f, Tensor::vector(&[1.0f32])), &[9.0]);
    // 0.3 is a little more than three times 0.1 in f32.
    same("floor_div", &values("floor_div", f, Tensor::vector(&[0.3f32])), &[3.0]);
    let f = |x: &Tensor| x.floor_div(Tensor::scalar(2i32));
    same("floor_div of integers", &values("floor_div", f, Tensor::vector(&[-7i32, 7])), &[-4.0, 3.0]);
}

#[test]
fn activations_keep_their_limits() {
    same("gelu", &values("gelu", Tensor::gelu, Tensor::vector(&[INF])), &[f64::INFINITY]);
    same("gelu_tanh", &values("gelu_tanh", Tensor::gelu_tanh, Tensor::vector(&[INF])), &[f64::INFINITY]);
    let silu = values("silu", Tensor::silu, Tensor::vector(&[-1000.0f32]));
    assert!(silu[0] == 0.0 && silu[0].is_sign_negative(), "{silu:?}");
    let minus = -INF;
    let pair = |x: &Tensor| x.narrow(0, 0, 2).logaddexp(x.narrow(0, 2, 2));
    let got = values("logaddexp", pair, Tensor::vector(&[minus, 1.0, minus, minus]));
    same("logaddexp", &got, &[f64::NEG_INFINITY, 1.0]);
    let got = values("logsumexp", |x| x.logsumexp(1), Tensor::new(&[minus, minus, 1000.0, minus, INF, 1.0], &[3, 2]));
    same("logsumexp", &got, &[f64::NEG_INFINITY, 1000.0, f64::INFINITY]);
    let xlogy = |x: &Tensor| Tensor::zeros(DType::F32, &[3]).xlogy(x);
    same("xlogy", &values("xlogy", xlogy, Tensor::vector(&[0.0, NAN, 2.0])), &[0.0, f64::NAN, 0.0]);
    same("softplus", &values("softplus", Tensor::softplus, Tensor::vector(&[1000.0f32])), &[1000.0]);
    same("sigmoid", &values("sigmoid", Tensor::sigmoid, Tensor::vector(&[1000.0f32, -1000.0])), &[1.0, 0.0]);
}

#[test]
fn losses_and_attention_of_nothing() {
    let none = Tensor::vector(&[-100i64, -100]);
    let f = |x: &Tensor| x.cross_entropy(&none, Some(-100), Reduction::Mean);
    same("all ignored", &values("cross_entropy", f, noise(1, &[2, 3])), &[f64::NAN]);
    let first = Tensor::vector(&[0i64, 0]);
    let f = |x: &Tensor| x.cross_entropy(&first, None, Reduction::Mean);
    same("one class", &values("cross_entropy", f, noise(1, &[2, 1])), &[0.0]);
    let hidden = Tensor::new(&[true, false, false, false], &[2, 2]);
    let f = |x: &Tensor| x.attention(x, x, Some(&hidden), false, None);
    let y = values("attention", f, noise(1, &[2, 3]));
    same("masked row", &y[3..], &[0.0; 3]);
}
