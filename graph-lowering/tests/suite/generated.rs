//! The source printed of generated kernels: it compiles, and gives the IR it was printed from.
//!
//! The files in `generated/` are what is printed now; `TILEWRIGHT_BLESS=1` writes them anew.

use crate::common::noise;
use std::path::Path;
use tilewright_compiler::dsl::{KernelDef, Specialization};
use tilewright_compiler::passes::optimize;
use tilewright_graph_lowering::exec::Executable;
use tilewright_graph_lowering::{DType, Dynamic, Options, Structure, Tensor, compile};
use tilewright_runtime::{Device, Launch};

macro_rules! generated {
    ($($name:ident)*) => { $(
        mod $name {
            use tilewright_runtime::dsl::*;
            include!(concat!("generated/", stringify!($name), ".rs"));
        }
    )* };
}
generated!(softmax layer_norm linear_gelu column_sums embedding scatter attention centred_rows_dynamic linear_dynamic);

/// The IR with its values numbered in order of appearance and without the kernel's name.
fn canonical(def: &KernelDef) -> String {
    let mut func = def.build(&Specialization::general()).unwrap();
    optimize(&mut func).unwrap();
    func.name = "kernel".into();
    let text = func.to_string();
    let mut numbers: Vec<String> = Vec::new();
    let mut out = String::new();
    let mut word = String::new();
    for c in text.chars().chain([' ']) {
        if c.is_alphanumeric() || c == '_' {
            word.push(c);
            continue;
        }
        let number = word.strip_prefix('v').filter(|n| !n.is_empty() && n.chars().all(|c| c.is_ascii_digit()));
        if number.is_some() {
            let at = numbers.iter().position(|n| *n == word).unwrap_or_else(|| {
                numbers.push(word.clone());
                numbers.len() - 1
            });
            out.push_str(&format!("v{at}"));
        } else {
            out.push_str(&word);
        }
        word.clear();
        out.push(c);
    }
    out
}

fn check<I: Structure>(
    name: &str,
    printed: &str,
    f: impl Fn(&I) -> Tensor,
    x: &I,
    again: impl FnOnce(&Device) -> KernelDef,
) {
    let dynamic = if name.ends_with("_dynamic") { Dynamic::Always } else { Dynamic::Never };
    let compiled = compile(f, Options::new().device("cpu").dynamic(dynamic)).unwrap();
    compiled.call(x).unwrap();
    let device = Device::open("cpu").unwrap();
    let executable = Executable::new(compiled.graph().unwrap(), &device, true).unwrap();
    let [kernel] = executable.kernels() else { panic!("{name} is one kernel\n{}", compiled.explain()) };
    // Without the places of the expressions, which move when a test is edited.
    let source: String =
        kernel.source().unwrap().lines().map(|l| l.split("  // ").next().unwrap_or(l).to_owned() + "\n").collect();
    let source = source.replace(&format!("\nfn {}(", kernel.name()), "\npub fn generated(");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/suite/generated/{name}.rs"));
    if std::env::var_os("TILEWRIGHT_BLESS").is_some() {
        std::fs::write(&path, &source).unwrap();
        return;
    }
    assert_eq!(source, printed, "{name}: bless with TILEWRIGHT_BLESS=1");
    assert_eq!(canonical(&again(&device)), canonical(&kernel.def), "{name}");
}

fn def(launch: &Launch<'_>) -> KernelDef {
    launch.def().clone()
}

#[test]
fn softmax_source_gives_the_same_ir() {
    check(
        "softmax",
        include_str!("generated/softmax.rs"),
        |x: &Tensor| x.softmax(1),
        &noise(1, &[5, 37]),
        |d| {
            let (x, y) = (d.zeros::<f32>(9).unwrap(), d.zeros::<f32>(9).unwrap());
            def(&softmax::generated(x.view([3, 3]).unwrap(), y.view([3, 3]).unwrap()))
        },
    );
}

#[test]
fn layer_norm_source_gives_the_same_ir() {
    let x = (noise(1, &[6, 48]), noise(2, &[48]), noise(3, &[48]));
    let f = |(x, w, b): &(Tensor, Tensor, Tensor)| x.layer_norm(Some(w), Some(b), 1e-5);
    check("layer_norm", include_str!("generated/layer_norm.rs"), f, &x, |d| {
        let x = d.zeros::<f32>(9).unwrap();
        let (m, v) = (x.view([3, 3]).unwrap(), x.view([9]).unwrap());
        def(&layer_norm::generated(m, v, v, m))
    });
}

#[test]
fn linear_source_gives_the_same_ir() {
    let x = (noise(1, &[20, 33]), noise(2, &[17, 33]), noise(3, &[17]));
    let f = |(x, w, b): &(Tensor, Tensor, Tensor)| x.linear(w, Some(b)).gelu();
    check("linear_gelu", include_str!("generated/linear_gelu.rs"), f, &x, |d| {
        let x = d.zeros::<f32>(9).unwrap();
        let (m, v) = (x.view([3, 3]).unwrap(), x.view([9]).unwrap());
        def(&linear_gelu::generated(m, m, v, m))
    });
}

#[test]
fn column_sums_source_gives_the_same_ir() {
    check(
        "column_sums",
        include_str!("generated/column_sums.rs"),
        |x: &Tensor| x.sum(&[0]),
        // A prime number of rows is not split.
        &noise(1, &[20011, 3]),
        |d| {
            let x = d.zeros::<f32>(9).unwrap();
            def(&column_sums::generated(x.view([3, 3]).unwrap(), x.view([9]).unwrap()))
        },
    );
}

#[test]
fn embedding_source_gives_the_same_ir() {
    let x = (noise(1, &[10, 6]), Tensor::zeros(DType::I32, &[7]));
    let f = |(x, i): &(Tensor, Tensor)| x.embedding(i) * 2.0;
    check("embedding", include_str!("generated/embedding.rs"), f, &x, |d| {
        let (x, i) = (d.zeros::<f32>(9).unwrap(), d.zeros::<i32>(9).unwrap());
        def(&embedding::generated(i.view([9]).unwrap(), x.view([9]).unwrap(), x.view([3, 3]).unwrap()))
    });
}

#[test]
fn scatter_source_gives_the_same_ir() {
    let x = (noise(1, &[100, 6]), Tensor::zeros(DType::I32, &[100]));
    let f = |(x, i): &(Tensor, Tensor)| x.scatter_add(i, 5);
    check("scatter", include_str!("generated/scatter.rs"), f, &x, |d| {
        let (x, i) = (d.zeros::<f32>(9).unwrap(), d.zeros::<i32>(9).unwrap());
        let m = x.view([3, 3]).unwrap();
        def(&scatter::generated(m, i.view([9]).unwrap(), m))
    });
}

#[test]
fn source_of_kernels_with_extents_as_parameters_gives_the_same_ir() {
    let f = |x: &Tensor| x - x.mean(&[1]).unsqueeze(1);
    check("centred_rows_dynamic", include_str!("generated/centred_rows_dynamic.rs"), f, &noise(1, &[5, 37]), |d| {
        let x = d.zeros::<f32>(9).unwrap();
        let m = x.view([3, 3]).unwrap();
        def(&centred_rows_dynamic::generated(m, m, 3.0))
    });
    let x = (noise(1, &[20, 33]), noise(2, &[17, 33]), noise(3, &[17]));
    let f = |(x, w, b): &(Tensor, Tensor, Tensor)| x.linear(w, Some(b)).relu();
    check("linear_dynamic", include_str!("generated/linear_dynamic.rs"), f, &x, |d| {
        let x = d.zeros::<f32>(9).unwrap();
        let (m, v) = (x.view([3, 3]).unwrap(), x.view([9]).unwrap());
        def(&linear_dynamic::generated(m, m, v, m))
    });
}

#[test]
fn attention_source_gives_the_same_ir() {
    let x = [1, 2, 3].map(|seed| noise(seed, &[2, 3, 40, 20]));
    let f = |[q, k, v]: &[Tensor; 3]| q.attention(k, v, None, true, None);
    check("attention", include_str!("generated/attention.rs"), f, &x, |d| {
        let x = d.zeros::<f32>(9).unwrap();
        let v = x.view([1, 1, 3, 3]).unwrap();
        def(&attention::generated(v, v, v, v))
    });
}
