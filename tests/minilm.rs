//! The example `minilm` beside the original implementation: see `data/minilm/make.py`.
//!
//! The weights are downloaded once. Where they cannot be, the tests pass with a message, unless `TILEWRIGHT_REQUIRE_TOOLS=1`.

#[path = "../examples/minilm/model/mod.rs"]
mod model;

use model::files::{Files, Missing};
use model::{Encoder, similarity};
use std::sync::OnceLock;
use tilewright::Device;
use tilewright::graph::{Loaded, Options, Tensor};

const REFERENCE: &str = include_str!("data/minilm/reference.json");

struct Case {
    sentence: String,
    tokens: Vec<u32>,
    embedding: Vec<f32>,
}

fn reference() -> Vec<Case> {
    let file: serde_json::Value = serde_json::from_str(REFERENCE).unwrap();
    let numbers = |v: &serde_json::Value| v.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect::<Vec<_>>();
    let case = |c: &serde_json::Value| Case {
        sentence: c["sentence"].as_str().unwrap().to_owned(),
        tokens: numbers(&c["tokens"]).into_iter().map(|t| t as u32).collect(),
        embedding: numbers(&c["embedding"]).into_iter().map(|x| x as f32).collect(),
    };
    file["cases"].as_array().unwrap().iter().map(case).collect()
}

/// The model's files, or `None` after a message.
fn files() -> Option<&'static Files> {
    static FILES: OnceLock<Option<Files>> = OnceLock::new();
    let found = FILES.get_or_init(|| match Files::find() {
        Ok(files) => Some(files),
        Err(Missing::Unavailable(_)) if std::env::var("TILEWRIGHT_REQUIRE_TOOLS").as_deref() != Ok("1") => None,
        Err(e) => panic!("{e}"),
    });
    if found.is_none() {
        eprintln!("skipped: the weights of MiniLM are not here and cannot be downloaded");
    }
    found.as_ref()
}

/// All sentences of at most so many tokens, of very different lengths, in one call.
fn agrees_on(device: &str, most_tokens: usize) {
    if !Device::list().iter().any(|d| d.name == device && d.unusable.is_none()) {
        eprintln!("skipped: there is no {device}");
        return;
    }
    let Some(files) = files() else { return };
    let encoder = Encoder::new(files, Options::new().device(device)).unwrap();
    let mut cases = reference();
    cases.retain(|c| c.tokens.len() <= most_tokens);
    assert!(cases.len() > 4);
    let sentences: Vec<&str> = cases.iter().map(|c| c.sentence.as_str()).collect();
    let embeddings = encoder.encode(&sentences).unwrap();
    assert_eq!(embeddings.len(), cases.len());
    for (case, embedding) in cases.iter().zip(&embeddings) {
        let distance = 1.0 - similarity(&case.embedding, embedding);
        assert!(distance.abs() < 1e-4, "{device}: {:?} is {distance:.1e} away from the original", case.sentence);
        let length: f64 = embedding.iter().map(|&x| f64::from(x).powi(2)).sum();
        assert!((length - 1.0).abs() < 1e-4, "{device}: {:?} has length {length}", case.sentence);
        let largest = case.embedding.iter().zip(embedding).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(largest < 1e-4, "{device}: an element of {:?} is off by {largest:.1e}", case.sentence);
    }
}

#[test]
fn sentences_on_the_cpu() {
    agrees_on("cpu", 256);
}

#[test]
fn sentences_on_opencl() {
    agrees_on("opencl:0", 256);
}

#[test]
fn sentences_on_vulkan() {
    // A processor that plays Vulkan device takes a minute for the longest.
    let gpu = Device::list().iter().any(|d| d.name == "vulkan:0" && d.gpu);
    agrees_on("vulkan:0", if gpu { 256 } else { 40 });
}

#[test]
fn sentences_on_cuda() {
    agrees_on("cuda:0", 256);
}

#[test]
fn tokens_are_those_of_the_original() {
    let Some(files) = files() else { return };
    let encoder = Encoder::new(files, Options::new().device("cpu")).unwrap();
    for case in reference() {
        assert_eq!(encoder.tokens(&case.sentence).unwrap(), case.tokens, "{:?}", case.sentence);
    }
}

#[test]
fn the_network_is_saved_and_loaded() {
    let Some(files) = files() else { return };
    let encoder = Encoder::new(files, Options::new().device("cpu")).unwrap();
    let case = &reference()[0];
    let embedding = encoder.encode(&[&case.sentence]).unwrap().remove(0);
    let folder = tempfile::tempdir().unwrap();
    encoder.network().save(folder.path()).unwrap();
    drop(encoder);

    let loaded = Loaded::open(folder.path(), Options::new().device("cpu")).unwrap();
    let (mut ids, mut mask) = (vec![0i32; 16], vec![0.0f32; 16]);
    for (i, &token) in case.tokens.iter().enumerate() {
        (ids[i], mask[i]) = (token as i32, 1.0);
    }
    let result = loaded.call(&(Tensor::new(&ids, &[1, 16]), Tensor::new(&mask, &[1, 16]))).unwrap();
    assert_eq!(result.len(), 1);
    assert_eq!(result[0].to_vec::<f32>().unwrap(), embedding, "the same kernels give the same bits");
    // Another number of tokens is another graph, which was not saved.
    let error = loaded.call(&(Tensor::new(&ids[..8], &[1, 8]), Tensor::new(&mask[..8], &[1, 8]))).unwrap_err();
    assert!(error.to_string().contains("i32[1, 16]"), "{error}");
}
