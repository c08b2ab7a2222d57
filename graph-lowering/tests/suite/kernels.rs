//! How many kernels functions become.

use crate::common::{assert_close, everywhere, noise, other_devices};
use tilewright_graph_lowering::optim::AdamW;
use tilewright_graph_lowering::{DType, Explanation, Options, Reduction, Tensor, compile, grad, value_and_grad};

fn one(what: &str, explanation: &Explanation) {
    assert_eq!(explanation.kernels, 1, "{what}\n{explanation}");
}

#[test]
fn softmax_is_one_kernel() {
    for dims in [&[5, 37][..], &[3, 4, 64], &[1, 1], &[2, 1000]] {
        let (_, e) = everywhere("softmax", |x: &Tensor| x.softmax(dims.len() - 1), &noise(1, dims), 1e-6);
        one("softmax", &e);
    }
    let (_, e) = everywhere("softmax of columns", |x: &Tensor| x.softmax(0), &noise(1, &[33, 20]), 1e-6);
    one("softmax of columns", &e);
    let (_, e) = everywhere("log_softmax", |x: &Tensor| x.log_softmax(1), &noise(2, &[7, 50]), 1e-6);
    one("log_softmax", &e);
}

#[test]
fn norms_are_one_kernel() {
    let x = (noise(1, &[6, 48]), noise(2, &[48]), noise(3, &[48]));
    let layer = |(x, w, b): &(Tensor, Tensor, Tensor)| x.layer_norm(Some(w), Some(b), 1e-5);
    one("layer_norm", &everywhere("layer_norm", layer, &x, 1e-5).1);
    let rms = |(x, w, _): &(Tensor, Tensor, Tensor)| x.rms_norm(Some(w), 1e-5);
    one("rms_norm", &everywhere("rms_norm", rms, &x, 1e-5).1);
    let half = |(x, w, b): &(Tensor, Tensor, Tensor)| x.layer_norm(Some(w), Some(b), 1e-5);
    let x = (x.0.cast(DType::F16), x.1.cast(DType::F16), x.2.cast(DType::F16));
    one("layer_norm of halves", &everywhere("layer_norm of halves", half, &x, 2e-3).1);
}

#[test]
fn pointwise_chains_are_one_kernel() {
    let x = (noise(1, &[9, 31]), noise(2, &[9, 31]));
    one("swiglu", &everywhere("swiglu", |(a, b): &(Tensor, Tensor)| a.silu() * b, &x, 1e-6).1);
    let gelus = |(a, b): &(Tensor, Tensor)| a.gelu() + b.gelu_tanh();
    one("gelu", &everywhere("gelu", gelus, &x, 1e-6).1);
    let bias = (noise(1, &[9, 31]), noise(2, &[31]));
    let f = |(a, b): &(Tensor, Tensor)| ((a + b).relu(), (a + b).sum(&[1]));
    one("bias, relu and row sums", &everywhere("bias", f, &bias, 1e-5).1);
}

#[test]
fn what_is_computed_again_elsewhere_keeps_its_coordinates() {
    // The second kernel computes `y` again at one place; the product meets both kernels, which must not become one then.
    let f = |x: &Tensor| {
        let y = x * 0.5 + 0.1;
        let z = &y + x;
        (&z + y.narrow(0, 1, 1)) * &z
    };
    everywhere("a slice of what is computed again", f, &Tensor::vector(&[1.0f32, 2.0]), 1e-6);
}

#[test]
fn adamw_is_one_kernel() {
    let x =
        [noise(1, &[40, 3]), noise(2, &[40, 3]), noise(3, &[40, 3]), noise(4, &[40, 3]).abs(), Tensor::scalar(3.0f32)];
    let f = |[p, g, m, v, t]: &[Tensor; 5]| AdamW::default().step(p, g, m, v, t);
    one("adamw", &everywhere("adamw", f, &x, 1e-5).1);
}

#[test]
fn matrix_products_take_their_epilogue() {
    let x = (noise(1, &[20, 33]), noise(2, &[17, 33]), noise(3, &[17]));
    let linear = |(x, w, b): &(Tensor, Tensor, Tensor)| x.linear(w, Some(b)).gelu();
    one("linear and gelu", &everywhere("linear and gelu", linear, &x, 1e-5).1);
    let batched = (noise(1, &[2, 3, 5, 8]), noise(2, &[2, 3, 8, 4]));
    let f = |(a, b): &(Tensor, Tensor)| a.matmul(b) * 2.0;
    one("batched product", &everywhere("batched product", f, &batched, 1e-5).1);
    // Rows of several dimensions, with a residual and a bias, are one matrix.
    let rows = (noise(1, &[3, 7, 12]), noise(2, &[5, 12]), noise(3, &[5]), noise(4, &[3, 7, 5]));
    let f = |(x, w, b, r): &(Tensor, Tensor, Tensor, Tensor)| r + x.linear(w, Some(b)).silu();
    one("rows of several dimensions", &everywhere("rows", f, &rows, 1e-5).1);
    let f = |(x, w, b, r): &(Tensor, Tensor, Tensor, Tensor)| {
        r.permute(&[1, 0, 2]) + x.permute(&[1, 0, 2]).linear(w, Some(b))
    };
    everywhere("rows in another order", f, &rows, 1e-5);
    let f = |(x, w, b, r): &(Tensor, Tensor, Tensor, Tensor)| {
        let place = Tensor::iota(DType::F32, &[3, 7, 5], 1);
        Tensor::cat(&[&(x.linear(w, Some(b)) + place), r], 1)
    };
    everywhere("parts of rows", f, &rows, 1e-5);
    let deep = (noise(1, &[3, 700]), noise(2, &[700, 2]));
    everywhere("long product", |(a, b): &(Tensor, Tensor)| a.matmul(b), &deep, 1e-4);
}

#[test]
fn permutations_are_stored_as_asked() {
    let x = (noise(1, &[9, 12]), noise(2, &[12, 5]));
    let f = |(a, b): &(Tensor, Tensor)| (a.matmul(b).transpose(), a.exp().transpose());
    let (_, e) = everywhere("transposed results", f, &x, 1e-5);
    assert_eq!(e.kernels, 2, "{e}");
    let f = |(a, b): &(Tensor, Tensor)| {
        let p = a.matmul(b);
        (p.transpose().reshape(&[15, 3]) + 1.0, p.clone(), p.transpose())
    };
    everywhere("both orders", f, &x, 1e-5);
}

#[test]
fn what_is_computed_anew_elsewhere_is_no_member() {
    // One of the kernels that meet in the last product has the sum, the other computes one element of it anew.
    let f = |x: &Tensor| {
        let y = x * 0.5 + 0.1;
        let z = &y + x;
        (&z + y.narrow(0, 1, 1)) * z
    };
    everywhere("an element repeated", f, &noise(1, &[2]), 1e-6);
}

#[test]
fn long_rows_are_read_in_pieces() {
    let x = noise(1, &[2, 20000]);
    everywhere("softmax of long rows", |x: &Tensor| x.softmax(1), &x, 1e-5);
    everywhere("layer norm of long rows", |x: &Tensor| x.layer_norm(None, None, 1e-5), &x, 1e-4);
    everywhere("argmax of long rows", |x: &Tensor| (x.argmax(1), x.argmin(1), x.max(&[1])), &x, 0.0);
    everywhere("sum of all", |x: &Tensor| x.sum(&[0, 1]), &x, 1e-4);
    everywhere(
        "sum and maximum of a matrix",
        |x: &Tensor| (x.exp().sum(&[0, 1]), x.max(&[0, 1])),
        &noise(3, &[130, 200]),
        1e-4,
    );
    everywhere("sum of a prime number", |x: &Tensor| x.sum(&[0]), &noise(4, &[20011]), 1e-4);
    everywhere("sum of columns", |x: &Tensor| x.sum(&[0]), &noise(2, &[20000, 3]), 1e-4);
}

#[test]
fn many_long_rows_are_gone_through_again_in_one_kernel() {
    // Longer than a tile on any device.
    let x = noise(1, &[130, 16500]);
    let (_, e) = everywhere("softmax of many long rows", |x: &Tensor| x.softmax(1), &x, 1e-5);
    one("softmax of many long rows", &e);
    let target = Tensor::vector(&(0..130).map(|i| i * 126).collect::<Vec<i32>>());
    let f = |x: &Tensor| grad(|x| x.cross_entropy(&target, None, Reduction::Sum), x).unwrap();
    let (_, e) = everywhere("gradient of a loss of long rows", f, &x, 1e-5);
    assert_eq!(e.kernels, 1, "{e}");
    let f = |x: &Tensor| (x.softmax(1).argmax(1), x - x.max(&[1]).unsqueeze(1));
    everywhere("long rows in several ways", f, &x, 1e-5);
}

#[test]
fn long_columns_are_shared_by_several_programs() {
    for dims in [&[2048, 3][..], &[4, 600, 5], &[1030, 2], &[4096, 40]] {
        let all: Vec<usize> = (0..dims.len() - 1).collect();
        let (_, e) = everywhere("long columns", |x: &Tensor| (x.sum(&all), x.max(&all)), &noise(1, dims), 1e-4);
        // A tile of this device holds all of the smaller ones.
        assert!(dims[0] < 4096 || e.groups.iter().any(|g| g.programs > 16), "{e}");
    }
    // What is added is computed where it is added, also if its rows have several dimensions.
    let x = (noise(3, &[8, 512, 6]), noise(4, &[8, 512, 6]).cast(DType::BF16));
    let f = |(x, y): &(Tensor, Tensor)| ((x * 2.0).sum(&[0, 1]), y.cast(DType::F32).exp().sum(&[0, 1]));
    let (_, e) = everywhere("long columns of what is computed", f, &x, 1e-3);
    assert_eq!(e.kernels, 4, "{e}");
    // Halves are rounded once.
    let x = (noise(2, &[4096, 3]) + 1.0).cast(DType::BF16);
    everywhere("long columns of halves", |x: &Tensor| x.sum(&[0]), &x, 1e-2);
}

#[test]
fn sums_into_rows_take_the_updates_in_their_order() {
    // More updates than a tile has on any device; some have no row.
    let numbers: Vec<i32> = (0..9000).map(|i| i * 31 % 11 - 2).collect();
    let x = (noise(1, &[9000, 3]), Tensor::vector(&numbers));
    let f = |(x, at): &(Tensor, Tensor)| (x.scatter_add(at, 7), (x * 100.0).cast(DType::I32).scatter_add(at, 8));
    everywhere("sums into rows", f, &x, 1e-5);
    let halves = (x.0.slice(&[0, 0], &[300, 3], &[1, 1]).cast(DType::F16), Tensor::vector(&numbers[..300]));
    everywhere("sums of halves into rows", |(x, at)| x.scatter_add(at, 9), &halves, 2e-3);
    // Of every shape, also transposed and stored so.
    let x = (noise(2, &[2, 3, 4, 5]), Tensor::new(&[0i64, 3, 3, 1, 0, 3], &[2, 3]));
    let f = |(x, at): &(Tensor, Tensor)| {
        let sums = x.permute(&[0, 1, 3, 2]).scatter_add(at, 4);
        (sums.permute(&[2, 0, 1]), sums.reshape(&[4, 20]).exp(), Tensor::cat(&[&sums, &sums], 2))
    };
    everywhere("sums of matrices into rows", f, &x, 1e-5);
    for n in [0usize, 1, 2] {
        let x = (noise(3, &[n, 4]), Tensor::new(&vec![1i32; n], &[n]));
        everywhere("sums of few updates", |(x, at)| x.scatter_add(at, 3), &x, 1e-6);
        everywhere("sums into one row", |(x, at)| x.scatter_add(&(at - 1), 1), &x, 1e-6);
    }
    for device in other_devices() {
        let x = (noise(1, &[1500, 3]), Tensor::vector(&numbers[..1500]));
        let f = |(x, at): &(Tensor, Tensor)| x.scatter_add(at, 7);
        let got = compile(f, Options::new().device(&device)).unwrap().call(&x).unwrap();
        assert_close(&format!("sums into rows on {device}"), &got, &f(&x), 1e-5);
    }
}

#[test]
fn what_is_cheap_to_compute_again_is_not_stored() {
    let x = (noise(1, &[96, 64]), noise(2, &[64, 64]), noise(3, &[96, 64]));
    let one = 96 * 64 * 4;
    let f = |(x, w, seed): &(Tensor, Tensor, Tensor)| {
        grad(|x: &Tensor| (x.linear(w, None).gelu_tanh() * seed).sum(&[0, 1]), x).unwrap()
    };
    let (_, e) = everywhere("gradient of gelu", f, &x, 1e-4);
    // The product reads x and w and stores its result; the gradient's product reads that, the seed and w again.
    assert!(e.bytes <= 8 * one, "{} bytes\n{e}", e.bytes);
    // Normalisation keeps its argument and the rows' numbers, not what is between.
    let f = |(x, _, seed): &(Tensor, Tensor, Tensor)| {
        let y = x.layer_norm(None, None, 1e-5);
        (grad(|x: &Tensor| (x.layer_norm(None, None, 1e-5) * seed).sum(&[0, 1]), x).unwrap(), y)
    };
    let (_, e) = everywhere("gradient of a norm", f, &x, 1e-4);
    assert!(e.bytes <= 5 * one, "{} bytes\n{e}", e.bytes);
}

#[test]
fn what_is_computed_again_elsewhere_keeps_its_place() {
    // The kernel of the last product merges that of `y`, and another that computed a part of `y` again.
    let f = |x: &Tensor| {
        let y = x * 0.5 + 0.1;
        let z = &y + x;
        (&z + y.narrow(0, 1, 1)) * z
    };
    everywhere("a part computed again", f, &noise(1, &[2]), 1e-6);
}

#[test]
fn gradients_of_parts_are_put_side_by_side() {
    let f = |x: &Tensor| {
        let part = |i: usize| x.narrow(1, 4 * i, 4);
        (part(0) * part(1).tanh() + part(2).exp()).sum(&[0, 1])
    };
    let (_, e) = everywhere("gradient of parts", |x: &Tensor| grad(f, x).unwrap(), &noise(1, &[6, 12]), 1e-5);
    assert!(!e.groups.iter().any(|g| g.primitives.iter().any(|p| p.contains("pad"))), "{e}");
    assert!(e.bytes < 4 * 6 * 12 * 4, "{e}");
}

#[test]
fn a_classifier_trains_in_few_kernels() {
    let target = Tensor::vector(&[1i32, 0, 3, 2, 1, 1]);
    let x = (noise(1, &[6, 10]), noise(2, &[4, 10]), noise(3, &[4]));
    let f = |(x, w, b): &(Tensor, Tensor, Tensor)| {
        let loss = |p: &(Tensor, Tensor)| x.linear(&p.0, Some(&p.1)).cross_entropy(&target, None, Reduction::Mean);
        let (value, (dw, db)) = value_and_grad(loss, &(w.clone(), b.clone())).unwrap();
        (value, w - dw * 0.1, b - db * 0.1)
    };
    let (_, e) = everywhere("classifier", f, &x, 1e-5);
    assert!(e.kernels <= 8, "{e}");
}

#[test]
fn kernels_meet_only_if_they_need_values_at_the_same_places() {
    let f = |x: &Tensor| {
        let y = x * 0.5 + 0.1;
        let z = &y + x;
        // `y` is computed anew for one of its elements, by a kernel that then meets the one that has all of `y`.
        let sum = &z + y.narrow(0, 1, 1).broadcast_to(&[2]);
        sum * z
    };
    everywhere("one element everywhere", f, &noise(1, &[2]), 1e-6);
}

#[test]
fn other_devices_agree() {
    for device in other_devices() {
        let x = (noise(1, &[20, 33]), noise(2, &[17, 33]), noise(3, &[17]));
        let f = |(x, w, b): &(Tensor, Tensor, Tensor)| {
            (x.linear(w, Some(b)).gelu_tanh().softmax(1), x.layer_norm(None, None, 1e-5), x.argmax(1), x.sum(&[0]))
        };
        let compiled = compile(f, Options::new().device(&device)).unwrap();
        let (a, b, c, d) = compiled.call(&x).unwrap();
        let expected = f(&x);
        assert_close(&format!("softmax on {device}"), &a, &expected.0, 1e-4);
        assert_close(&format!("layer norm on {device}"), &b, &expected.1, 1e-4);
        assert_close(&format!("argmax on {device}"), &c, &expected.2, 0.0);
        assert_close(&format!("sum on {device}"), &d, &expected.3, 1e-4);
    }
}

#[test]
fn large_matrix_products_agree() {
    // More tiles than programs that run at once, with a last group of rows that is not full.
    let x = (noise(1, &[1300, 20]), noise(2, &[20, 900]));
    let (a, b) = (x.0.to_vec::<f32>().unwrap(), x.1.to_vec::<f32>().unwrap());
    let compiled = compile(|(a, b): &(Tensor, Tensor)| a.matmul(b) + 1.0, Options::new().device("cpu")).unwrap();
    let got = compiled.call(&x).unwrap().to_f64s().unwrap();
    for (i, g) in got.iter().enumerate() {
        let (row, column) = (i / 900, i % 900);
        let expected: f64 =
            1.0 + (0..20).map(|k| f64::from(a[row * 20 + k]) * f64::from(b[k * 900 + column])).sum::<f64>();
        assert!((g - expected).abs() < 1e-5, "element {i} is {g}, expected {expected}");
    }
    assert!(compiled.explain().groups[0].ir.contains("rem"), "the tiles are grouped");
}

#[test]
fn halves_agree() {
    for dtype in [DType::F16, DType::BF16] {
        let tolerance = if dtype == DType::F16 { 2e-3 } else { 2e-2 };
        let half = |seed, dims: &[usize]| noise(seed, dims).cast(dtype);
        let x = (half(1, &[2, 20, 33]), half(2, &[17, 33]), half(3, &[17]));
        let f = |(x, w, b): &(Tensor, Tensor, Tensor)| x.linear(w, Some(b)).gelu();
        let (y, e) = everywhere("linear of halves", f, &x, tolerance);
        one("linear of halves", &e);
        assert_eq!(y.dtype(), dtype);
        let reductions = |x: &Tensor| (x.softmax(1), x.sum(&[0]), x.mean(&[1]), x.max(&[0]), x.cumsum(1), x.prod(&[1]));
        everywhere("reductions of halves", reductions, &half(5, &[30, 7]), tolerance);
    }
}
