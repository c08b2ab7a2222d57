//! Weights and graphs on disk.

use crate::common::{noise, other_devices};
use std::path::Path;
use tilewright_graph_lowering::graph::TensorType;
use tilewright_graph_lowering::{DType, Error, Literal, Loaded, Options, Tensor, Weights, compile};

fn cpu() -> Options {
    Options::new().device("cpu")
}

/// A file as the format's specification says: 8 bytes of length, a header in JSON, the data.
fn file(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
}

fn message(bytes: &[u8]) -> String {
    let error = Weights::from_bytes(bytes).unwrap_err();
    assert!(matches!(error, Error::Weights { .. }), "{error}");
    error.to_string()
}

#[test]
fn every_type_is_written_and_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("all.safetensors");
    let mut weights = Weights::new();
    let mut state = 1u64;
    for dtype in DType::ALL {
        for dims in [&[][..], &[3, 5], &[2, 0, 4], &[1]] {
            let ty = TensorType::new(dtype, dims);
            // Any bits: also NaN with payloads, and the greatest numbers.
            let literal = Literal::from_fn(ty.clone(), |_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                if dtype == DType::Bool { state >> 63 } else { state.rotate_left(32) }
            });
            weights.insert(ty.to_string(), literal.into());
        }
    }
    weights.metadata_mut().insert("made by".into(), "a test".into());
    weights.write(&path).unwrap();
    let read = Weights::read(&path).unwrap();
    assert_eq!(read.len(), 4 * DType::ALL.len());
    assert_eq!(read.metadata(), weights.metadata());
    for ((name, old), (again, new)) in weights.iter().zip(read.iter()) {
        assert_eq!((name, old.ty()), (again, new.ty()));
        assert_eq!(old.to_literal().unwrap(), new.to_literal().unwrap(), "{name}");
    }
    // Written again, they are the same file.
    assert_eq!(read.to_bytes().unwrap(), std::fs::read(&path).unwrap());
}

#[test]
fn a_file_made_elsewhere_is_read() {
    let header = r#"{"__metadata__":{"format":"pt"},"b.bias":{"dtype":"I16","shape":[2],"data_offsets":[8,12]},
        "a.weight":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]}}"#;
    let data =
        [&1.5f32.to_le_bytes()[..], &(-2.0f32).to_le_bytes(), &7i16.to_le_bytes(), &(-1i16).to_le_bytes()].concat();
    let weights = Weights::from_bytes(&file(header, &data)).unwrap();
    assert_eq!(weights.metadata()["format"], "pt");
    assert_eq!(weights.get("a.weight", &[2, 1]).unwrap().to_vec::<f32>().unwrap(), [1.5, -2.0]);
    assert_eq!(weights.find("b.bias").unwrap().to_vec::<i16>().unwrap(), [7, -1]);
    let error = weights.get("a.weigth", &[2, 1]).unwrap_err().to_string();
    assert!(error.contains("no tensor `a.weigth`") && error.contains("did you mean `a.weight`?"), "{error}");
    let error = weights.get("a.weight", &[1, 2]).unwrap_err().to_string();
    assert!(error.contains("f32[2, 1]") && error.contains("[1, 2]"), "{error}");
}

#[test]
fn broken_files_are_errors() {
    let good = file(r#"{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#, &[0; 8]);
    assert!(Weights::from_bytes(&good).is_ok());
    for cut in 0..good.len() {
        assert!(message(&good[..cut]).contains("no whole safetensors file"));
    }
    assert!(message(&[&good[..], &[0]].concat()).contains("no whole safetensors file"));
    // Any byte of the header may be wrong; some changes (of the name, say) leave another valid file.
    for i in 0..good.len() - 8 {
        for value in [0, b'9', b'{', b'"', 0xff] {
            let mut bad = good.clone();
            bad[i] = value;
            let _ = Weights::from_bytes(&bad);
        }
    }
    let said = |header: &str, data: &[u8], part: &str| {
        let text = message(&file(header, data));
        assert!(text.contains(part), "{text}");
    };
    said("[1]", &[], "header is not readable");
    said(r#"{"x":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[0,1]}}"#, &[0], "`x`: its element type F8_E4M3");
    said(r#"{"x":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}}"#, &[1, 2], "0 or 1, not 2");
    said(r#"{"x":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}"#, &[0; 8], "no whole safetensors file");
    said(r#"{"x":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}"#, &[0; 8], "ends before tensor `x`");
    said(r#"{"x":{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,1]}}"#, &[0], "9 dimensions");
    said(r#"{"x":{"dtype":"U8","shape":[0,4294967296],"data_offsets":[0,0]}}"#, &[], "elements");
    // Offsets whose sum is more than a number of 64 bits holds.
    let big = 1u64 << 61;
    let mut entries: Vec<String> = (0..7)
        .map(|i| format!(r#""t{i}":{{"dtype":"U8","shape":[{big}],"data_offsets":[{},{}]}}"#, i * big, (i + 1) * big))
        .collect();
    entries.push(format!(r#""t7":{{"dtype":"U8","shape":[{}],"data_offsets":[{},{}]}}"#, big - 1, 7 * big, u64::MAX));
    said(&format!("{{{}}}", entries.join(",")), &[], "ends before tensor");

    let folder = tempfile::tempdir().unwrap();
    let error = Weights::read(folder.path().join("none.safetensors")).unwrap_err().to_string();
    assert!(error.contains("none.safetensors: cannot be read"), "{error}");
    let error = Weights::new().write(folder.path().join("no/such/folder")).unwrap_err().to_string();
    assert!(error.contains("cannot be written"), "{error}");
    let mut failed = Weights::new();
    failed.insert("x", Tensor::vector(&[1.0f32]).reshape(&[7]));
    assert!(failed.to_bytes().unwrap_err().to_string().contains("reshape"));
}

/// A function with two captured tensors, saved in a folder; and what it gives for `x`.
fn saved(folder: &Path, seed: u64, x: &Tensor) -> Vec<f32> {
    let (w, b) = (noise(seed, &[4, 8]), noise(seed + 1, &[8]));
    let f = compile(|(x, n): &(Tensor, i32)| (x.matmul(&w) + &b).gelu() * *n, cpu()).unwrap();
    let y = f.call(&(x.clone(), 3)).unwrap();
    f.save(folder).unwrap();
    y.to_vec().unwrap()
}

#[test]
fn a_compiled_function_is_saved_and_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("new/folder");
    let x = noise(5, &[3, 4]);
    let expected = saved(&place, 1, &x);
    let loaded = Loaded::open(&place, cpu()).unwrap();
    let y = loaded.call(&(x.clone(), 3)).unwrap();
    assert_eq!(y.len(), 1);
    assert_eq!(y[0].to_vec::<f32>().unwrap(), expected);
    assert_eq!((loaded.explain().kernels, loaded.explain().device.as_str()), (1, "cpu"));
    let others = other_devices();
    let mut ways: Vec<Options> = others.iter().map(|d| Options::new().device(d)).collect();
    ways.extend([cpu().backend("interpreter"), cpu().fusion(false)]);
    for options in ways {
        let what = format!("{options:?}");
        let y = Loaded::open(&place, options).unwrap().call(&(x.clone(), 3)).unwrap().remove(0);
        for (a, b) in y.to_vec::<f32>().unwrap().iter().zip(&expected) {
            assert!((a - b).abs() < 1e-5, "{what}: {a} and {b}");
        }
    }
    // Arguments of another kind, also numbers that are part of the graph.
    for error in [
        loaded.call(&(x.clone(), 4)).unwrap_err(),
        loaded.call(&(noise(5, &[2, 4]), 3)).unwrap_err(),
        loaded.call(&x).unwrap_err(),
        loaded.call(&vec![x.clone(), x.clone()]).unwrap_err(),
    ] {
        assert!(matches!(error, Error::Arguments { .. }), "{error}");
        assert!(error.to_string().contains("(f32[3, 4], 3, )"), "{error}");
    }
    let error = Loaded::open(&place, cpu().backend("none")).unwrap_err();
    assert!(matches!(error, Error::Options(_)), "{error}");
}

#[test]
fn a_graph_with_its_values_inline_runs_again() {
    let w = noise(1, &[4]);
    let f = compile(|x: &Tensor| (x * &w, x.exp()), cpu()).unwrap();
    let x = noise(2, &[4]);
    let expected = f.call(&x).unwrap();
    let loaded = Loaded::from_json(&f.to_json().unwrap().unwrap(), cpu()).unwrap();
    let y = loaded.call(&x).unwrap();
    for (y, e) in y.iter().zip([expected.0, expected.1]) {
        assert_eq!(y.to_vec::<f32>().unwrap(), e.to_vec::<f32>().unwrap());
    }
    // Inline values need no second file.
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("graph.json"), f.to_json().unwrap().unwrap()).unwrap();
    assert!(Loaded::open(folder.path(), cpu()).unwrap().call(&x).is_ok());
}

#[test]
fn what_has_no_graph_is_not_saved() {
    let folder = tempfile::tempdir().unwrap();
    let f = compile(|x: &Tensor| x.exp(), cpu()).unwrap();
    let error = f.save(folder.path()).unwrap_err();
    assert!(matches!(error, Error::NotCaptured { .. }) && error.to_string().contains("weights.rs"), "{error}");
    let f = compile(|x: &Tensor| x * x.to_vec::<f32>().map_or(1.0, |v| v[0]), cpu()).unwrap();
    f.call(&noise(1, &[2])).unwrap();
    assert!(matches!(f.save(folder.path()).unwrap_err(), Error::NotCaptured { .. }));
}

#[test]
fn files_that_do_not_belong_together_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    let x = noise(5, &[3, 4]);
    saved(&one, 1, &x);
    let other = saved(&two, 7, &x);
    let (graph, weights) = (one.join("graph.json"), one.join("weights.safetensors"));
    let open = || Loaded::open(&one, cpu());
    let said = |part: &str| {
        let error = open().unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
        assert!(matches!(error, Error::Weights { .. } | Error::Load(_) | Error::Verify { .. }), "{error}");
    };
    let (json, bytes) = (std::fs::read_to_string(&graph).unwrap(), std::fs::read(&weights).unwrap());
    for i in (0..bytes.len()).step_by(13) {
        let mut bad = bytes.clone();
        bad[i] ^= 4;
        std::fs::write(&weights, bad).unwrap();
        said("checksum is another");
    }
    std::fs::copy(two.join("weights.safetensors"), &weights).unwrap();
    said("checksum is another");
    std::fs::remove_file(&weights).unwrap();
    said("weights.safetensors: cannot be read");

    // Without a checksum: weights of one's own choice, which must still fit.
    let start = json.find("\"checksum\"").unwrap();
    let end = start + json[start..].find(',').unwrap() + 1;
    std::fs::write(&graph, [&json[..start], &json[end..]].concat()).unwrap();
    std::fs::copy(two.join("weights.safetensors"), &weights).unwrap();
    assert_eq!(open().unwrap().call(&(x.clone(), 3)).unwrap()[0].to_vec::<f32>().unwrap(), other);
    let mut wrong = Weights::read(&weights).unwrap();
    let bias = wrong.find("captured.1").unwrap().clone();
    for (tensor, part) in [
        (bias.cast(DType::F64), "tensor `captured.1` is f64[8], where the graph needs f32[8]"),
        (bias.narrow(0, 0, 7), "tensor `captured.1` is f32[7], where extents [8] are needed"),
    ] {
        wrong.insert("captured.1", tensor);
        wrong.write(&weights).unwrap();
        said(part);
    }
    Weights::new().write(&weights).unwrap();
    said("no tensor `captured.0`");
    std::fs::write(&weights, &bytes[..bytes.len() - 1]).unwrap();
    said("no whole safetensors file");

    std::fs::write(&weights, &bytes).unwrap();
    for cut in (0..json.len()).step_by(29) {
        std::fs::write(&graph, &json[..cut]).unwrap();
        said("cannot load the graph");
    }
    std::fs::write(&graph, json.replace("\"schema\":1", "\"schema\":2")).unwrap();
    said("format has number 2");
    std::fs::write(&graph, json.replace("\"captured.1\"", "\"nobody\"")).unwrap();
    said("no tensor `nobody`");
    std::fs::remove_file(&graph).unwrap();
    said("graph.json cannot be read");
}
