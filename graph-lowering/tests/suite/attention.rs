//! Attention: one kernel, whatever its operands are views of; its gradients are two, which keep no weights.

use crate::common::{assert_close, everywhere, noise, other_devices};
use tilewright_graph_lowering::{DType, Options, Tensor, compile, grad, value_and_grad};

type Three = [Tensor; 3];

fn three(dims: &[usize]) -> Three {
    [1, 2, 3].map(|seed| noise(seed, dims))
}

/// Runs `f` in every way; it must be so many kernels.
fn kernels<I: tilewright_graph_lowering::Structure>(
    what: &str,
    count: usize,
    f: impl Fn(&I) -> Tensor,
    x: &I,
    tolerance: f64,
) -> Tensor {
    let (y, e) = everywhere(what, f, x, tolerance);
    assert_eq!(e.kernels, count, "{what}\n{e}");
    y
}

#[test]
fn attention_is_one_kernel() {
    for causal in [false, true] {
        let f = |[q, k, v]: &Three| q.attention(k, v, None, causal, None);
        kernels("attention", 1, f, &three(&[2, 3, 9, 8]), 1e-5);
        kernels("of matrices", 1, f, &three(&[150, 20]), 1e-5);
        kernels("of 3 dimensions", 1, f, &three(&[4, 17, 16]), 1e-5);
        let other = [noise(1, &[2, 2, 33, 16]), noise(2, &[2, 2, 140, 16]), noise(3, &[2, 2, 140, 24])];
        kernels("of more keys than queries", 1, f, &other, 1e-5);
    }
    let f = |[q, k, v]: &Three| q.attention(k, v, None, true, Some(-0.3));
    kernels("a negative scale", 1, f, &three(&[2, 3, 9, 8]), 1e-5);
}

#[test]
fn packed_heads_are_read_and_written_in_place() {
    // The heads of one projection, as transformers lay them out, and back.
    let heads = |x: &Tensor| {
        let part = |i: usize| x.narrow(2, 12 * i, 12).reshape(&[2, 5, 3, 4]).permute(&[0, 2, 1, 3]);
        part(0).attention(&part(1), &part(2), None, true, None).permute(&[0, 2, 1, 3]).reshape(&[2, 5, 12])
    };
    kernels("heads", 1, heads, &noise(4, &[2, 5, 36]), 1e-5);
    let projected = |(x, w, o): &(Tensor, Tensor, Tensor)| {
        let all = x.linear(w, None).reshape(&[2, 5, 3, 3, 4]).permute(&[2, 0, 3, 1, 4]);
        let part = |i: usize| all.narrow(0, i, 1).reshape(&[2, 3, 5, 4]);
        let y = part(0).attention(&part(1), &part(2), None, true, None);
        y.permute(&[0, 2, 1, 3]).reshape(&[2, 5, 12]).linear(o, None)
    };
    let x = (noise(4, &[2, 5, 12]), noise(5, &[36, 12]), noise(6, &[12, 12]));
    kernels("projection, attention, projection", 3, projected, &x, 1e-5);
    let both = |[q, k, v]: &Three| {
        let y = q.attention(k, v, None, false, None);
        Tensor::cat(&[&y.permute(&[1, 0, 2]).reshape(&[24, 3]), &y.reshape(&[24, 3])], 0)
    };
    everywhere("in two orders", both, &three(&[3, 4, 6]), 1e-5);
    let made = |v: &Tensor| {
        let q = Tensor::iota(DType::F32, &[7, 6], 1) * 0.1;
        q.attention(&q, &(v.exp() + 1.0), None, false, None)
    };
    everywhere("operands that are computed", made, &noise(1, &[7, 6]), 1e-5);
}

#[test]
fn groups_of_heads_share_keys() {
    for kv_heads in [1, 2, 4] {
        let x = [noise(1, &[2, 4, 9, 8]), noise(2, &[2, kv_heads, 11, 8]), noise(3, &[2, kv_heads, 11, 8])];
        let f = |[q, k, v]: &Three| q.attention(k, v, None, false, None);
        let y = kernels("groups of heads", 1, f, &x, 1e-5);
        let repeat =
            |x: &Tensor| x.unsqueeze(2).broadcast_to(&[2, kv_heads, 4 / kv_heads, 11, 8]).reshape(&[2, 4, 11, 8]);
        assert_close("repeated", &y, &f(&[x[0].clone(), repeat(&x[1]), repeat(&x[2])]), 1e-6);
    }
    let e = noise(1, &[2, 4, 9, 8]).attention(&noise(2, &[2, 3, 9, 8]), &noise(3, &[2, 3, 9, 8]), None, false, None);
    assert!(e.check().unwrap_err().to_string().contains("do not broadcast"));
}

#[test]
fn masks_agree() {
    let x = (three(&[2, 3, 9, 8]), noise(7, &[9, 9]), noise(8, &[2, 1, 1, 9]));
    let truth = |(x, m, _): &(Three, Tensor, Tensor)| {
        let [q, k, v] = x;
        q.attention(k, v, Some(&m.gt(-0.2)), true, None)
    };
    everywhere("truth values", truth, &x, 1e-5);
    let added = |(x, _, m): &(Three, Tensor, Tensor)| {
        let [q, k, v] = x;
        q.attention(k, v, Some(m), false, None)
    };
    kernels("numbers, repeated", 1, added, &x, 1e-5);
    // Rows 3 and on see nothing.
    let nothing = |(x, _, _): &(Three, Tensor, Tensor)| {
        let [q, k, v] = x;
        let seen = Tensor::iota(DType::I32, &[9, 9], 0).lt(3);
        q.attention(k, v, Some(&seen), false, None)
    };
    let y = everywhere("rows that see nothing", nothing, &x, 1e-5).0.to_f64s().unwrap();
    for (i, v) in y.iter().enumerate() {
        assert_eq!(*v == 0.0, i / 8 % 9 >= 3, "element {i} is {v}");
    }
    let e = x.0[0].attention(&x.0[1], &x.0[2], Some(&noise(1, &[5, 9])), false, None);
    assert!(e.check().unwrap_err().to_string().contains("does not broadcast to the scores"));
}

#[test]
fn types_agree() {
    for (dtype, tolerance) in [(DType::F16, 2e-3), (DType::BF16, 2e-2)] {
        let x = three(&[2, 9, 8]).map(|x| x.cast(dtype));
        let y = kernels("halves", 1, |[q, k, v]: &Three| q.attention(k, v, None, true, None), &x, tolerance);
        assert_eq!(y.dtype(), dtype);
    }
    let x = three(&[2, 9, 8]).map(|x| x.cast(DType::F64));
    let (y, _) = everywhere("doubles", |[q, k, v]: &Three| q.attention(k, v, None, true, None), &x, 1e-12);
    assert_eq!(y.dtype(), DType::F64);
}

/// The sum of the result's elements times noise.
fn loss(y: &Tensor) -> Tensor {
    (y * noise(9, &y.dims()).cast(y.dtype())).sum(&(0..y.rank()).collect::<Vec<_>>())
}

#[test]
fn gradients_agree_and_keep_no_weights() {
    for (what, causal, kv_heads) in [("plain", false, 4), ("causal", true, 4), ("groups of heads", true, 2)] {
        let x = [noise(1, &[2, 4, 40, 16]), noise(2, &[2, kv_heads, 50, 16]), noise(3, &[2, kv_heads, 50, 16])];
        let f = |[q, k, v]: &Three| loss(&q.attention(k, v, None, causal, None));
        let (_, e) = everywhere(what, |x: &Three| value_and_grad(f, x).unwrap(), &x, 2e-5);
        // Attention, the loss, the gradient's rows summed, two kernels of gradients.
        assert!(e.kernels <= 6, "{what}\n{e}");
        // Without products of matrices on their own, whose results would be as large as the weights.
        assert!(e.groups.iter().all(|g| !g.name.contains("dot")), "{e}");
    }
    let x = (three(&[2, 9, 8]), noise(7, &[9, 9]));
    let masked = |(x, m): &(Three, Tensor)| {
        let [q, k, v] = x;
        loss(&q.attention(k, v, Some(m), false, None))
    };
    everywhere("of a mask", |x: &(Three, Tensor)| grad(masked, x).unwrap(), &x, 2e-5);
    let hidden = |(x, m): &(Three, Tensor)| {
        let [q, k, v] = x;
        loss(&q.attention(k, v, Some(&m.gt(0.3)), true, Some(0.7)))
    };
    everywhere("under truth values", |x: &(Three, Tensor)| grad(hidden, x).unwrap(), &x, 2e-5);
    for (dtype, tolerance) in [(DType::F16, 4e-3), (DType::BF16, 4e-2)] {
        let x = three(&[2, 40, 16]).map(|x| x.cast(dtype));
        let f = |[q, k, v]: &Three| loss(&q.attention(k, v, None, true, None));
        everywhere("of halves", |x: &Three| grad(f, x).unwrap(), &x, tolerance);
    }
}

#[test]
fn gradients_are_those_of_the_expression() {
    // In double precision attention has no primitive of its own.
    let x = three(&[2, 7, 5]);
    let f = |[q, k, v]: &Three| loss(&q.attention(k, v, None, true, None));
    let got = grad(f, &x).unwrap();
    let expected = grad(f, &x.clone().map(|x| x.cast(DType::F64))).unwrap();
    for (g, e) in got.iter().zip(&expected) {
        assert_close("gradient", &g.cast(DType::F64), e, 1e-6);
    }
    // And gradients of gradients.
    let second = |x: &Three| loss(&grad(f, x).unwrap()[0]);
    let got = grad(second, &x).unwrap();
    let expected = grad(second, &x.clone().map(|x| x.cast(DType::F64))).unwrap();
    for (g, e) in got.iter().zip(&expected) {
        assert_close("second order", &g.cast(DType::F64), e, 1e-5);
    }
}

#[test]
fn finite_differences_agree() {
    let x = three(&[6, 4]);
    let f = |[q, k, v]: &Three| loss(&q.attention(k, v, None, true, None).cast(DType::F64));
    let got = grad(f, &x).unwrap();
    for which in 0..3 {
        let g = got[which].to_f64s().unwrap();
        let base = x[which].to_vec::<f32>().unwrap();
        for i in 0..base.len() {
            let at = |d: f32| {
                let mut values = base.clone();
                values[i] += d;
                let mut moved = x.clone();
                moved[which] = Tensor::new(&values, &[6, 4]);
                f(&moved).to_f64s().unwrap()[0]
            };
            // The host computes in double precision and rounds each result to f32.
            let expected = (at(1e-2) - at(-1e-2)) / 2e-2;
            assert!((g[i] - expected).abs() < 1e-3, "operand {which}, element {i}: {} and {expected}", g[i]);
        }
    }
}

#[test]
fn other_devices_agree() {
    for device in other_devices() {
        let x = [noise(1, &[2, 4, 20, 16]), noise(2, &[2, 2, 30, 16]), noise(3, &[2, 2, 30, 16])];
        let f = |[q, k, v]: &Three| q.attention(k, v, None, true, None);
        let both = |x: &Three| (f(x), grad(|x: &Three| loss(&f(x)), x).unwrap());
        let compiled = compile(both, Options::new().device(&device)).unwrap();
        let (y, g) = compiled.call(&x).unwrap();
        let (expected, gradients) = both(&x);
        assert_close(&format!("attention on {device}"), &y, &expected, 1e-4);
        for (g, e) in g.iter().zip(&gradients) {
            assert_close(&format!("gradient on {device}"), g, e, 1e-4);
        }
    }
}
