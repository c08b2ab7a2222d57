//! What reads bytes that others may have written, and good examples of these.

use crate::mutate::Rng;
use sha2::{Digest, Sha256};
use tilewright_compiler::pipeline;
use tilewright_compiler::target::Caps;
use tilewright_compiler::thread;
use tilewright_compiler::tile::generate::{Config, random_function};
use tilewright_compiler::tile::{Function, parse, verify};
use tilewright_graph_lowering::graph::json;
use tilewright_graph_lowering::{DType, Loaded, Options, Tensor, Weights, compile};

/// Makes a changed input right where its format would have it refused at once.
pub type Repair = fn(&mut Rng, Vec<u8>) -> Vec<u8>;

/// Something that reads bytes.
pub struct Target {
    /// Its name on the command line.
    pub name: &'static str,
    /// Good inputs.
    pub corpus: fn() -> Vec<Vec<u8>>,
    /// Words of the format.
    pub words: &'static [&'static str],
    /// Makes right again what would have every changed input refused at once: a length, a checksum.
    pub repair: Option<Repair>,
    /// Reads it. An input that is refused is no fault; one that is read and not what it was when written again is.
    pub run: fn(&[u8]) -> Result<(), String>,
}

/// All of them.
pub const TARGETS: &[Target] = &[
    Target { name: "tile-text", corpus: tile_corpus, words: TILE_WORDS, repair: None, run: tile_text },
    Target { name: "thread-text", corpus: thread_corpus, words: THREAD_WORDS, repair: None, run: thread_text },
    Target { name: "graph-json", corpus: graph_corpus, words: GRAPH_WORDS, repair: None, run: graph_json },
    Target { name: "graph-load", corpus: graph_corpus, words: GRAPH_WORDS, repair: None, run: graph_load },
    Target { name: "records", corpus: record_corpus, words: RECORD_WORDS, repair: None, run: record },
    Target { name: "code-entries", corpus: code_corpus, words: CODE_WORDS, repair: Some(sign), run: code_entry },
    Target { name: "safetensors", corpus: weights_corpus, words: WEIGHTS_WORDS, repair: Some(measure), run: weights },
    Target { name: "arguments", corpus: arguments_corpus, words: ARGUMENT_WORDS, repair: None, run: arguments },
];

/// A short name of bytes.
pub fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().take(8).map(|b| format!("{b:02x}")).collect()
}

// ---- Tile IR text ------------------------------------------------------------------------------------------------------

const TILE_WORDS: &[&str] = &[
    "f16",
    "bf16",
    "f32",
    "f64",
    "i8",
    "i32",
    "i64",
    "u8",
    "u64",
    "bool",
    "for",
    "while",
    "if",
    "else",
    "yield",
    "condition",
    "tile",
    "reshape",
    "permute",
    "broadcast",
    "arange",
    "const",
    "load",
    "store",
    "dot",
    "view_load",
    "view_store",
    "reduce_sum",
    "cast",
    "bitcast",
    "ptr",
    "func",
    "x",
    "->",
    "inf",
    "nan",
    "0x",
    "raw",
];

fn tile_corpus() -> Vec<Vec<u8>> {
    const FILES: &[&str] = &[
        include_str!("../../compiler/tests/filetests/parse/parameters.tile"),
        include_str!("../../compiler/tests/filetests/parse/control-flow.tile"),
        include_str!("../../compiler/tests/filetests/parse/raw.tile"),
        include_str!("../../compiler/tests/filetests/parse/views.tile"),
        include_str!("../../compiler/tests/filetests/parse/dot.tile"),
        include_str!("../../compiler/tests/filetests/parse/float-constants.tile"),
        include_str!("../../compiler/tests/filetests/lower/softmax-row.tile"),
        include_str!("../../compiler/tests/filetests/lower/pipelined-product.tile"),
    ];
    let mut all: Vec<Vec<u8>> = FILES.iter().map(|f| f.as_bytes().to_vec()).collect();
    let config = Config { ops: 12, ..Config::default() };
    all.extend((0..24).map(|seed| random_function(seed, &config).to_string().into_bytes()));
    all
}

fn tile_text(input: &[u8]) -> Result<(), String> {
    let Ok(text) = std::str::from_utf8(input) else { return Ok(()) };
    let Ok(func) = parse(text) else { return Ok(()) };
    let violations = verify::violations(&func);
    if !violations.is_empty() {
        verify::print_errors(&func, &violations);
        return Ok(());
    }
    let printed = func.to_string();
    let again: Function = printed.parse().map_err(|e| format!("what was printed cannot be read: {e}\n{printed}"))?;
    if again.to_string() != printed {
        return Err(format!("printed twice it is another text:\n{printed}\n{again}"));
    }
    Ok(())
}

// ---- Thread IR text ----------------------------------------------------------------------------------------------------

const THREAD_WORDS: &[&str] = &[
    "kernel",
    "threads",
    "warp",
    "bytes",
    "align",
    "elem",
    "offset",
    "shared0",
    "shared1",
    "pred",
    "i32",
    "i64",
    "f32",
    "f64",
    "ptr",
    "if",
    "else",
    "loop",
    "body",
    "yield",
    "condition",
    "const",
    "param",
    "nan",
    "inf",
    "true",
    "0x",
    "#0",
    "?",
    "extra",
    "global_load.32x4",
    "global_store.16",
    "shared_load.8x2",
    "shared_store.64",
    "cp_async.16",
    "ldmatrix.x4.trans",
    "mma.f16",
    "wgmma.bf16.n8",
    "wgmma_wait",
    "swizzle",
    "block",
    "mn",
    "shuffle.xor",
    "barrier",
    "program_id",
    "select",
    "bitcast",
    "sext64",
];

fn thread_corpus() -> Vec<Vec<u8>> {
    const FILES: &[&str] = &[
        include_str!("../../compiler/tests/filetests/thread/parse/arithmetic.thread"),
        include_str!("../../compiler/tests/filetests/thread/parse/constants.thread"),
        include_str!("../../compiler/tests/filetests/thread/parse/memory.thread"),
        include_str!("../../compiler/tests/filetests/thread/parse/places-and-flow.thread"),
        include_str!("../../compiler/tests/filetests/thread/parse/wgmma.thread"),
        include_str!("../../compiler/tests/filetests/thread/parse/what-the-verifier-refuses.thread"),
        include_str!("../../compiler/tests/filetests/thread/emit/copies-and-mma-ptx.thread"),
        include_str!("../../compiler/tests/filetests/thread/order/stores-before-loads.thread"),
    ];
    let mut all: Vec<Vec<u8>> = FILES.iter().map(|f| f.as_bytes().to_vec()).collect();
    let config = Config { ops: 6, ..Config::default() };
    let lowered = (0..24).filter_map(|seed| {
        let caps = if seed % 2 == 0 { Caps::ptx(90) } else { Caps::spirv("", 8, 1024, 48 << 10) };
        let options = pipeline::Options { num_warps: 1, num_stages: 1 };
        let (_, _, thread) = pipeline::to_thread(&random_function(seed, &config), &caps, &options).ok()?;
        let text = thread.to_string();
        // Changes of a long text are far from each other and seldom meet.
        (text.len() < 20_000).then(|| text.into_bytes())
    });
    all.extend(lowered);
    all
}

fn thread_text(input: &[u8]) -> Result<(), String> {
    let Ok(text) = std::str::from_utf8(input) else { return Ok(()) };
    let Ok(mut func) = thread::parse(text) else { return Ok(()) };
    let printed = func.to_string();
    let again = thread::parse(&printed).map_err(|e| format!("what was printed cannot be read: {e}\n{printed}"))?;
    if again != func {
        return Err(format!("read again it is another function:\n{printed}\n{again}"));
    }
    if thread::verify(&func).is_err() {
        return Ok(());
    }
    if func.renumbered() != func {
        return Err(format!("what is read is not numbered in order:\n{func}"));
    }
    let classes: Vec<u32> = (1..=func.params.len() as u32).collect();
    thread::order::fit_registers(&mut func, &classes, 24, 16);
    thread::dce::remove_unused(&mut func);
    thread::verify(&func).map_err(|e| format!("in another order and without what is unused: {e}\n{func}"))
}

// ---- graphs ------------------------------------------------------------------------------------------------------------

const GRAPH_WORDS: &[&str] = &[
    "f32",
    "f16",
    "i64",
    "bool",
    "nodes",
    "args",
    "dims",
    "dtype",
    "op",
    "inputs",
    "outputs",
    "captured",
    "words",
    "schema",
    "takes",
    "checksum",
    "null",
    "true",
    "sum",
    "dot",
    "iota",
    "pad",
    "narrow",
    "permute",
    "reshape",
    "broadcast",
];

fn graph_corpus() -> Vec<Vec<u8>> {
    let captured = Tensor::iota(DType::F32, &[4, 3], 1).sin();
    type Body = fn(&(Tensor, Tensor), &Tensor) -> Tensor;
    let functions: [Body; 5] = [
        |(x, y), c| (x + y).tanh().matmul(&c.permute(&[1, 0])),
        |(x, y), c| (x * c).softmax(1).sum(&[0]) + y.sum(&[0, 1]),
        |(x, _), c| Tensor::cat(&[x, c], 0).slice_axis(0, 1..5).pad(&[1, 0], &[0, 2], 0.5),
        |(x, y), _| x.gt(y).where_(x, y).max(&[1]).cast(DType::F16),
        |(x, _), _| x.reshape(&[12]).cast(DType::I32).reshape(&[2, 6]),
    ];
    let graph = |f: Body| {
        let held = captured.clone();
        let compiled = compile(move |x: &(Tensor, Tensor)| f(x, &held), Options::new().device("cpu")).ok()?;
        let x = (Tensor::iota(DType::F32, &[4, 3], 0), Tensor::iota(DType::F32, &[4, 3], 1));
        compiled.call(&x).ok()?;
        Some(compiled.to_json().ok()??.into_bytes())
    };
    let all: Vec<_> = functions.into_iter().filter_map(graph).collect();
    assert_eq!(all.len(), functions.len(), "the examples are good graphs");
    all
}

fn graph_json(input: &[u8]) -> Result<(), String> {
    let Ok(text) = std::str::from_utf8(input) else { return Ok(()) };
    let Ok((graph, captured)) = json::from_json(text) else { return Ok(()) };
    let literals: Vec<_> = captured.iter().collect();
    let printed =
        json::to_json(&graph, &literals).map_err(|e| format!("a graph that was read cannot be written: {e}"))?;
    let (again, _) =
        json::from_json(&printed).map_err(|e| format!("what was written cannot be read: {e}\n{printed}"))?;
    if again.to_string() != graph.to_string() {
        return Err(format!("written and read it is another graph:\n{graph}\n{again}"));
    }
    Ok(())
}

/// Beyond this many elements a graph is read, but not made ready: simplifying it may compute that many values.
const LARGE: usize = 1 << 16;

fn graph_load(input: &[u8]) -> Result<(), String> {
    let Ok(text) = std::str::from_utf8(input) else { return Ok(()) };
    let Ok((graph, _)) = json::from_json(text) else { return Ok(()) };
    if graph.nodes.iter().map(|(_, n)| n.ty.elements()).sum::<usize>() > LARGE {
        return Ok(());
    }
    // Refused or made ready: either is an answer.
    let _ = Loaded::from_json(text, Options::new().device("cpu"));
    Ok(())
}

// ---- tuning records ----------------------------------------------------------------------------------------------------

const RECORD_WORDS: &[&str] = &[
    "schema",
    "subject",
    "kernel",
    "conditions",
    "entries",
    "config",
    "outcome",
    "measured",
    "failed",
    "same_as",
    "facts",
    "median_us",
    "samples",
    "num_warps",
    "num_stages",
    "null",
    "true",
    "cold",
    "warm",
    "crash",
    "timeout",
    "\\u001b[2J",
];

fn record_corpus() -> Vec<Vec<u8>> {
    let entry = |config: &str, outcome: &str| {
        format!(
            r#"{{"config":{config},"outcome":{outcome},"facts":{{"source":"00ff","code":"aa11","threads":128,"shared_bytes":4096,
            "registers":40,"spill_bytes":0,"compile_ms":1.5}},"problem":"n=1000","at":1700000000000}}"#
        )
    };
    let timing = r#"{"measured":{"median_us":12.5,"min_us":12.0,"p20_us":12.1,"p80_us":13.0,"samples":20,"finalist":true,"cache":"warm"}}"#;
    let failed = r#"{"failed":{"kind":"timeout","message":"it did not end","limit_ms":2000}}"#;
    let same = r#"{"same_as":{"block":64,"num_stages":1,"num_warps":1}}"#;
    let record = |entries: &[String]| {
        format!(
            r#"{{"schema":1,"subject":{{"kernel":"good","kernel_hash":"0123","device":"cpu/interpreter",
            "key":{{"dtype":"f32","dims":{{"n":"513-1024/8"}}}}}},
            "conditions":{{"tilewright":"0.1.0","codegen":"1-x","driver":"d"}},"entries":[{}]}}"#,
            entries.join(",\n")
        )
    };
    let all = [
        entry(r#"{"block":64,"num_stages":1,"num_warps":1}"#, timing),
        entry(r#"{"block":128,"num_stages":1,"num_warps":1}"#, failed),
        entry(r#"{"block":256,"kind":"fast","swap":true,"num_stages":3,"num_warps":8}"#, same),
    ];
    vec![record(&all).into_bytes(), record(&all[..1]).into_bytes(), record(&[]).into_bytes()]
}

fn record(input: &[u8]) -> Result<(), String> {
    use tilewright_autotune::{plot, store};
    let Ok(record) = store::parse_record(input) else { return Ok(()) };
    for entry in record.ranking() {
        let us = entry.median().unwrap_or(f64::NAN);
        if !(us.is_finite() && us > 0.0) {
            return Err(format!("a median of {us} is ranked"));
        }
    }
    plot::svg(&record);
    record.subject.slug();
    let mut merged = record.clone();
    merged.merge(&record.entries);
    let mut twice = merged.clone();
    twice.merge(&record.entries);
    if merged != twice {
        return Err("merging twice is not as merging once".into());
    }
    let written = serde_json::to_vec(&merged).map_err(|e| format!("a record that was read cannot be written: {e}"))?;
    match store::parse_record(&written) {
        Ok(again) if again == merged => Ok(()),
        Ok(_) => Err("written and read it is another record".into()),
        Err(e) => Err(format!("what was written cannot be read: {e}")),
    }
}

// ---- the code cache ----------------------------------------------------------------------------------------------------

const CODE_WORDS: &[&str] = &[
    "entry",
    "threads",
    "shared_bytes",
    "params",
    "language",
    "ptx",
    "spirv",
    "opencl",
    "ptr",
    "i64",
    "resources",
    "null",
];

fn code_corpus() -> Vec<Vec<u8>> {
    tilewright_runtime::__fuzz::samples()
}

/// Where the payload of an entry begins, and the places of its length and its digest.
const CODE_HEADER: usize = 8 + 4 + 32 + 8 + 32;

/// Makes length and digest right, so that what is inside is looked at, in most inputs.
fn sign(rng: &mut Rng, mut input: Vec<u8>) -> Vec<u8> {
    if input.len() < CODE_HEADER || rng.below(8) == 0 {
        return input;
    }
    let payload = input.split_off(CODE_HEADER);
    let good = &code_corpus()[0];
    input[..44].copy_from_slice(&good[..44]);
    input[44..52].copy_from_slice(&(payload.len() as u64).to_le_bytes());
    input[52..].copy_from_slice(&Sha256::digest(&payload));
    input.extend(payload);
    input
}

fn code_entry(input: &[u8]) -> Result<(), String> {
    match tilewright_runtime::__fuzz::reread(input) {
        Some(again) if tilewright_runtime::__fuzz::reread(&again).as_ref() != Some(&again) => {
            Err("written and read it is another entry".into())
        }
        _ => Ok(()),
    }
}

// ---- weights -----------------------------------------------------------------------------------------------------------

const WEIGHTS_WORDS: &[&str] =
    &["dtype", "shape", "data_offsets", "__metadata__", "F32", "BF16", "BOOL", "F8_E4M3", "I64", "null"];

fn weights_corpus() -> Vec<Vec<u8>> {
    let mut one = Weights::new();
    one.insert("a.weight", Tensor::iota(DType::F32, &[2, 3], 1));
    let mut two = one.clone();
    two.insert("b", Tensor::iota(DType::I64, &[4], 0));
    two.insert("flag", Tensor::iota(DType::F32, &[2], 0).gt(Tensor::iota(DType::F32, &[2], 0)));
    two.metadata_mut().insert("format".into(), "pt".into());
    [one, two].iter().map(|w| w.to_bytes().expect("the examples are good weights")).collect()
}

/// Makes the length of the header right in most inputs.
fn measure(rng: &mut Rng, mut input: Vec<u8>) -> Vec<u8> {
    if input.len() < 8 || rng.below(8) == 0 {
        return input;
    }
    // The data is the last part; the header ends with its last closing brace.
    if let Some(end) = input.iter().rposition(|&b| b == b'}') {
        let length = (end + 1).saturating_sub(8) as u64;
        input[..8].copy_from_slice(&length.to_le_bytes());
    }
    input
}

fn weights(input: &[u8]) -> Result<(), String> {
    let Ok(weights) = Weights::from_bytes(input) else { return Ok(()) };
    let written = weights.to_bytes().map_err(|e| format!("weights that were read cannot be written: {e}"))?;
    let again = Weights::from_bytes(&written).map_err(|e| format!("what was written cannot be read: {e}"))?;
    let names = |w: &Weights| w.iter().map(|(n, t)| format!("{n} {}", t.ty())).collect::<Vec<_>>();
    if names(&weights) != names(&again) || weights.metadata() != again.metadata() {
        return Err("written and read they are other weights".into());
    }
    Ok(())
}

// ---- the command line --------------------------------------------------------------------------------------------------

const ARGUMENT_WORDS: &[&str] = &[
    "run",
    "show",
    "explain",
    "diff",
    "verify",
    "prune",
    "export",
    "import",
    "plot",
    "list",
    "--shape",
    "--dtype",
    "--device",
    "--budget",
    "--timeout",
    "--search",
    "--seed",
    "--json",
    "--all",
    "--isolate",
    "--cache",
    "-o",
    "-",
    "--",
    "1e400s",
    "0s",
];

fn arguments_corpus() -> Vec<Vec<u8>> {
    [
        "autotune\nrun\nsoftmax\n--shape\nrows=2048,cols=1000\n--dtype\nf32\n--device\ncpu\n--budget\n20s\n--json",
        "autotune\nrun\n--all\n--timeout\n1.5m\n--search\nrandom\n--seed\n7\n--isolate\nalways\n--cache\ncold",
        "autotune\n--store\nx\nshow\nmatmul\n--shape\nm=1,n=2,k=3\n--json",
        "autotune\nplot\nsoftmax\n-o\n-",
        "autotune\nexport\n-\nsoftmax",
        "autotune\nprune\n--dry-run",
    ]
    .map(|t| t.as_bytes().to_vec())
    .into()
}

fn arguments(input: &[u8]) -> Result<(), String> {
    let text = String::from_utf8_lossy(input);
    // An answer either way; none of it is carried out.
    let _ = tilewright_autotune::cli::check(text.lines());
    Ok(())
}
