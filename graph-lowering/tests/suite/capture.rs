//! Capturing, guards, errors, files.

use crate::common::{assert_close, everywhere, noise};
use tilewright_graph_lowering::graph::{interpret::interpret, json, verify};
use tilewright_graph_lowering::{DType, Error, Options, Tensor, compile, disable, list_backends, structure};

#[derive(Clone)]
struct Layer {
    weight: Tensor,
    bias: Option<Tensor>,
    scale: f64,
}
structure!(Layer { weight, bias, scale });

fn cpu() -> Options {
    Options::new().device("cpu")
}

#[test]
fn graphs_are_captured_once_for_each_kind_of_arguments() {
    let f = compile(|x: &Vec<Tensor>| x[0].exp() + &x[x.len() - 1], cpu()).unwrap();
    let x = vec![noise(1, &[3]), noise(2, &[3])];
    f.call(&x).unwrap();
    f.call(&x).unwrap();
    assert_eq!(f.explain().graphs, 1);
    f.call(&vec![noise(1, &[4]), noise(2, &[4])]).unwrap();
    let e = f.explain();
    assert_eq!((e.graphs, e.recompiles.len()), (2, 1));
    assert!(e.recompiles[0].contains("f32[4]") && e.recompiles[0].contains("f32[3]"), "{e}");
}

#[test]
fn the_oldest_of_many_graphs_is_dropped() {
    let f = compile(|x: &Tensor| x + 1.0, cpu().backend("interpreter").graphs(64)).unwrap();
    for i in 0..70 {
        assert_eq!(f.call(&Tensor::zeros(DType::I32, &[i])).unwrap().dims(), [i]);
    }
    assert_eq!(f.explain().graphs, 70);
    assert!(f.explain().to_string().contains("more than 64 graphs"));
}

#[test]
fn structs_and_their_numbers_are_guarded() {
    let f = compile(|l: &Layer| &l.weight * l.scale + l.bias.clone().unwrap_or(Tensor::scalar(0.0f32)), cpu()).unwrap();
    let layer = Layer { weight: Tensor::vector(&[1.0f32, 2.0]), bias: None, scale: 2.0 };
    assert_eq!(f.call(&layer).unwrap().to_vec::<f32>().unwrap(), [2.0, 4.0]);
    assert_eq!(f.call(&Layer { scale: 3.0, ..layer.clone() }).unwrap().to_vec::<f32>().unwrap(), [3.0, 6.0]);
    let bias = Some(Tensor::vector(&[1.0f32, 1.0]));
    assert_eq!(f.call(&Layer { bias, ..layer }).unwrap().to_vec::<f32>().unwrap(), [3.0, 5.0]);
    assert_eq!(f.explain().graphs, 3);
}

#[test]
fn results_feed_further_calls_without_leaving_the_device() {
    let f = compile(|x: &Tensor| x * 2.0, cpu()).unwrap();
    let mut x = Tensor::vector(&[1.0f32, -1.0]);
    for _ in 0..10 {
        x = f.call(&x).unwrap();
    }
    assert_eq!(x.to_vec::<f32>().unwrap(), [1024.0, -1024.0]);
    // An eager expression of it reads it back.
    assert_eq!((x + 1.0).to_vec::<f32>().unwrap(), [1025.0, -1023.0]);
}

#[test]
fn mistakes_name_the_place() {
    let line = line!() + 1;
    let f = compile(|(a, b): &(Tensor, Tensor)| (a + b).exp(), cpu()).unwrap();
    let e = f.call(&(noise(1, &[2]), noise(1, &[3]))).unwrap_err().to_string();
    assert!(e.contains("f32[2] and f32[3] do not broadcast together"), "{e}");
    assert!(e.contains(&format!("capture.rs:{line}:")), "{e}");
    let e = noise(1, &[2, 3]).matmul(&noise(1, &[2, 3])).check().unwrap_err().to_string();
    assert!(e.contains("f32[2, 3] and f32[2, 3] are not"), "{e}");
    for bad in [
        noise(1, &[2]).permute(&[1]),
        noise(1, &[2]).permute(&[0, 0]),
        noise(1, &[2]).reshape(&[3]),
        noise(1, &[0]).max(&[0]),
        noise(1, &[2]).sum(&[1]),
        noise(1, &[2]).softmax(3),
        noise(1, &[2]).narrow(0, 1, 2),
        noise(1, &[2]).narrow(5, 0, 1),
        noise(1, &[2]).transpose(),
        noise(1, &[2]).unsqueeze(4),
        noise(1, &[2]).argmax(1),
        noise(1, &[2]).cumsum(1),
        Tensor::cat(&[], 0),
        Tensor::zeros(DType::F32, &[usize::MAX, 2]),
        Tensor::new(&[1.0f32], &[2]),
        tilewright_graph_lowering::tensor::random::uniform(&Tensor::scalar(1u32), 0, &[usize::MAX, 2]),
        noise(1, &[2]).cast(DType::I32).one_hot(usize::MAX),
        Tensor::scalar(1.0f32).layer_norm(None, None, 1e-5),
        noise(1, &[2]).broadcast_to(&[]),
        noise(1, &[2]).gather_rows(&noise(1, &[2])),
        noise(1, &[2, 2]).cross_entropy(&noise(1, &[2]), None, tilewright_graph_lowering::Reduction::Mean),
    ] {
        assert!(bad.check().is_err(), "{bad:?}");
        // What is computed from it fails alike.
        let first = bad.check().unwrap_err().to_string();
        let w = noise(1, &[4, 4]);
        for after in [
            bad.exp() + 1.0,
            bad.unsqueeze(2).linear(&w, None),
            w.matmul(&bad).softmax(1),
            bad.layer_norm(None, None, 1e-5).narrow(3, 1, 1),
            w.attention(&bad, &w, None, true, None).transpose(),
            w.where_(&w, &bad).cross_entropy(&w, None, tilewright_graph_lowering::Reduction::Sum),
        ] {
            assert_eq!(after.to_f64s().unwrap_err().to_string(), first);
        }
    }
}

#[test]
fn read_back_is_an_error_only_under_fullgraph() {
    let f = |x: &Tensor| match x.to_f64s() {
        Ok(v) if v[0] > 0.0 => x * 2.0,
        _ => x * 3.0,
    };
    let strict = compile(f, cpu().fullgraph(true)).unwrap();
    let e = strict.call(&Tensor::vector(&[1.0f32])).unwrap_err();
    assert!(matches!(e, Error::ReadBack { .. }) && e.to_string().contains("capture.rs:"), "{e}");
    let loose = compile(f, cpu()).unwrap();
    assert_eq!(loose.call(&Tensor::vector(&[1.0f32])).unwrap().to_vec::<f32>().unwrap(), [2.0]);
    assert_eq!(loose.call(&Tensor::vector(&[-1.0f32])).unwrap().to_vec::<f32>().unwrap(), [-3.0]);
    assert_eq!(loose.explain().breaks.len(), 1);
}

#[test]
fn tensors_do_not_leak_out_of_a_capture() {
    let leaked = std::sync::Mutex::new(None);
    let f = compile(
        |x: &Tensor| {
            let y = x * 2.0;
            *leaked.lock().unwrap() = Some(y.clone());
            y
        },
        cpu(),
    )
    .unwrap();
    f.call(&noise(1, &[2])).unwrap();
    let y = leaked.lock().unwrap().take().unwrap();
    let e = (y + 1.0).check().unwrap_err().to_string();
    assert!(e.contains("used outside that function"), "{e}");
}

#[test]
fn backends_are_listed_and_found() {
    for name in ["eager", "interpreter", "tilewright"] {
        assert!(list_backends().contains(&name.to_owned()));
        let f = compile(|x: &Tensor| x + 1.0, cpu().backend(name)).unwrap();
        assert_eq!(f.call(&Tensor::vector(&[1.0f32])).unwrap().to_vec::<f32>().unwrap(), [2.0]);
    }
    let e = compile(|x: &Tensor| x + 1.0, cpu().backend("tilewrite")).unwrap_err().to_string();
    assert!(e.contains("did you mean `tilewright`?"), "{e}");
    let f = disable(|x: &Tensor| x + 1.0);
    assert_eq!(f.call(&Tensor::vector(&[1.0f32])).unwrap().to_vec::<f32>().unwrap(), [2.0]);
    assert_eq!(f.explain().graphs, 0);
}

#[test]
fn graphs_are_saved_and_loaded() {
    let w = noise(7, &[4, 3]);
    let f = compile(|x: &Tensor| x.matmul(&w).softmax(1), cpu()).unwrap();
    let x = noise(8, &[2, 4]);
    let y = f.call(&x).unwrap();
    let text = f.to_json().unwrap().unwrap();
    let (graph, captured) = json::from_json(&text).unwrap();
    assert_eq!(graph.to_string(), f.graph().unwrap().to_string());
    let mut args = vec![x.to_literal().unwrap()];
    args.extend(captured.into_iter().map(std::sync::Arc::new));
    let loaded: Tensor = interpret(&graph, &args).unwrap().remove(0).into();
    assert_close("loaded", &loaded, &y, 1e-6);
    // Broken files are errors.
    assert!(json::from_json("{").is_err());
    assert!(json::from_json(&text.replace("\"schema\":1", "\"schema\":9")).is_err());
    assert!(json::from_json(&text.replace("\"f32\"", "\"i8\"")).is_err());
    for cut in (0..text.len()).step_by(97) {
        assert!(json::from_json(&text[..cut]).is_err());
    }
}

#[test]
fn the_text_of_a_graph_is_fixed() {
    let f = compile(|x: &Tensor| (x * 1.0 + x * 1.0).sum(&[1]), cpu()).unwrap();
    f.call(&noise(1, &[2, 3])).unwrap();
    let graph = f.graph().unwrap();
    verify(&graph, "test").unwrap();
    let expected = "graph(n0: f32[2, 3]) {\n  n1: f32[2, 3] = add(n0, n0)\n  n2: f32[2] = reduce_sum[axes [1]](n1)\n  return n2\n}";
    assert_eq!(graph.to_string(), expected);
}

#[test]
fn views_creations_and_parts_agree() {
    let x = noise(1, &[4, 6]);
    everywhere("permute", |x: &Tensor| x.permute(&[1, 0]).exp(), &x, 1e-6);
    everywhere("slices", |x: &Tensor| x.slice(&[1, 0], &[4, 6], &[2, 3]) * 2.0, &x, 0.0);
    everywhere("reshape of permute", |x: &Tensor| x.permute(&[1, 0]).reshape(&[3, 8]) + 1.0, &x, 0.0);
    everywhere("view as result", |x: &Tensor| (x.permute(&[1, 0]), x.reshape(&[24]), x.clone()), &x, 0.0);
    everywhere("pad", |x: &Tensor| x.exp().pad(&[1, 0], &[2, 3], -1.5), &x, 1e-6);
    everywhere("cat", |x: &Tensor| Tensor::cat(&[x, &x.exp(), &x.narrow(1, 0, 2)], 1).relu(), &x, 1e-6);
    everywhere("iota", |x: &Tensor| x + Tensor::iota(x.dtype(), &[4, 6], 1), &x, 0.0);
    everywhere("only made", |_: &Tensor| Tensor::arange(DType::I64, 5), &x, 0.0);
    everywhere("cumsum", |x: &Tensor| (x.cumsum(0), x.cumsum(1)), &x, 1e-5);
    everywhere(
        "empty",
        |x: &Tensor| (x.narrow(0, 2, 0).sum(&[0]), x.narrow(0, 2, 0).exp(), x.narrow(1, 0, 0).mean(&[1])),
        &x,
        0.0,
    );
    let index = Tensor::new(&[3i32, 0, 3, 9, -1, 2], &[2, 3]);
    let f = |(x, i): &(Tensor, Tensor)| {
        (x.embedding(i) * 2.0, x.transpose().embedding(i), x.exp().gather_rows(i).sum(&[2]))
    };
    everywhere("embedding", f, &(x.clone(), index.clone()), 1e-5);
    let f = |(x, i): &(Tensor, Tensor)| x.reshape(&[2, 3, 4]).scatter_add(i, 5);
    everywhere("scatter_add", f, &(x, index), 1e-5);
}

#[test]
fn random_numbers_are_the_same_everywhere_and_uniform() {
    let f = |key: &Tensor| tilewright_graph_lowering::tensor::random::uniform(key, 3, &[4000]);
    let (x, e) = everywhere("uniform", f, &Tensor::scalar(42u32), 0.0);
    assert_eq!(e.kernels, 1, "{e}");
    let v = x.to_f64s().unwrap();
    let mean = v.iter().sum::<f64>() / v.len() as f64;
    assert!((mean - 0.5).abs() < 0.02, "{mean}");
    assert!(v.iter().all(|&x| (0.0..1.0).contains(&x)));
    // Known answer: Philox4x32-10 of counter 0 and key 0 begins with 6627e8d5.
    let first = tilewright_graph_lowering::tensor::random::bits(&Tensor::scalar(0u32), 0, &[1]);
    assert_eq!(first.to_vec::<u32>().unwrap(), [0x6627_e8d5]);
    let drop = |x: &Tensor| x.dropout(0.5, &Tensor::scalar(1u32), 0);
    everywhere("dropout", drop, &noise(1, &[100]), 0.0);
    assert_eq!(noise(1, &[3]).dropout(1.0, &Tensor::scalar(1u32), 0).to_f64s().unwrap(), [0.0; 3]);
}
