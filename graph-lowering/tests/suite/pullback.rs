//! Values now, gradients later: the results are those of `vjp`, and no more is kept than said.

use crate::common::{assert_close, noise};
use tilewright_graph_lowering::{DType, Options, Structure, Tensor, compile, vjp};

/// Runs both halves and compares with `vjp`; gives the extents of what is computed and kept, and how many arguments are kept.
fn kept<I: Structure>(what: &str, f: impl Fn(&I) -> Tensor, x: &I) -> (Vec<Vec<usize>>, usize) {
    let (expected, pull) = vjp(&f, x).unwrap();
    let seed = noise(77, &expected.dims()).cast(expected.dtype());
    let gradients = pull(&seed).tensors();
    let mut result = None;
    for options in [Options::new().backend("interpreter"), Options::new().device("cpu")] {
        let compiled = compile(&f, options).unwrap();
        for _ in 0..2 {
            let (y, pullback) = compiled.vjp(x).unwrap();
            assert_close(what, &y, &expected, 1e-5);
            for _ in 0..2 {
                for (g, e) in pullback.call(&seed).unwrap().tensors().iter().zip(&gradients) {
                    assert_close(&format!("the gradient of {what}"), g, e, 1e-5);
                }
            }
            let arguments = pullback.saved_arguments();
            result = Some((pullback.saved()[arguments..].iter().map(Tensor::dims).collect(), arguments));
        }
    }
    result.unwrap()
}

#[test]
fn functions_of_arguments_keep_those() {
    let x = noise(1, &[5, 7]);
    assert_eq!(kept("gelu", Tensor::gelu, &x), (vec![], 1));
    assert_eq!(kept("relu", Tensor::relu, &x), (vec![], 1));
    assert_eq!(kept("exp", |x| x.exp() * 2.0, &x), (vec![], 1));
    assert_eq!(kept("sum", |x| x.sum(&[0]), &x), (vec![], 0));
    assert_eq!(kept("views", |x| x.transpose().reshape(&[35]) * 3.0, &x), (vec![], 0));
}

#[test]
fn of_what_is_computed_the_least_is_kept() {
    let x = (noise(1, &[5, 7]), noise(2, &[7, 6]));
    let product = |(x, w): &(Tensor, Tensor)| x.matmul(w);
    assert_eq!(kept("product", product, &x), (vec![], 2));
    let one = |f: fn(&Tensor) -> Tensor| move |x: &(Tensor, Tensor)| f(&product(x));
    for (what, f) in [("tanh", one(Tensor::tanh)), ("gelu", one(Tensor::gelu)), ("relu", one(Tensor::relu))] {
        assert_eq!(kept(what, f, &x), (vec![vec![5, 6]], 2), "{what}");
    }
    // A softmax keeps one tensor of its size, and numbers for each row.
    let (list, _) = kept("softmax", one(|x| x.softmax(1)), &x);
    assert_eq!(list.iter().filter(|d| d.iter().product::<usize>() == 30).count(), 1, "{list:?}");
    // Positions and random numbers are made again.
    let noisy = |(x, w): &(Tensor, Tensor)| {
        let place = Tensor::iota(DType::F32, &[5, 6], 1);
        x.matmul(w).sin() * place.gt(2.0).where_(place.exp(), 0.5)
    };
    assert_eq!(kept("positions", noisy, &x), (vec![vec![5, 6]], 2));
}

#[test]
fn attention_keeps_its_result_and_two_numbers_for_each_query() {
    let x = [1, 2, 3].map(|seed| noise(seed, &[2, 3, 20, 8]));
    let f = |[q, k, v]: &[Tensor; 3]| q.attention(k, v, None, true, None);
    let (mut list, arguments) = kept("attention", f, &x);
    list.sort();
    assert_eq!((list, arguments), (vec![vec![2, 3, 20], vec![2, 3, 20], vec![2, 3, 20, 8]], 3));
}

#[test]
fn several_values_and_captured_tensors() {
    let weight = noise(3, &[7, 4]);
    let f = |(x, b): &(Tensor, Tensor)| (x.matmul(&weight) + b).tanh().softmax(1).sum(&[0]) * b;
    kept("captured weights", f, &(noise(1, &[5, 7]), noise(2, &[4])));
    let two = |x: &Tensor| (x.exp(), x.sum(&[1]).sin());
    let x = noise(4, &[3, 5]);
    let compiled = compile(two, Options::new().device("cpu")).unwrap();
    let (y, pullback) = compiled.vjp(&x).unwrap();
    let seeds = (noise(5, &[3, 5]), noise(6, &[3]));
    let (expected, pull) = vjp(two, &x).unwrap();
    assert_close("first value", &y.0, &expected.0, 1e-6);
    assert_close("second value", &y.1, &expected.1, 1e-6);
    assert_close("gradient", &pullback.call(&seeds).unwrap(), &pull(&seeds), 1e-6);
    let wrong = pullback.call(&(noise(5, &[3, 4]), noise(6, &[3]))).unwrap_err().to_string();
    assert!(wrong.contains("f32[3, 4]") && wrong.contains("f32[3, 5]"), "{wrong}");
    let eager = compile(two, Options::new().backend("eager")).unwrap();
    assert!(eager.vjp(&x).unwrap_err().to_string().contains("use `vjp`"));
}
