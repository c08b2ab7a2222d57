//! Graphs and plans on disk.

use crate::common::{assert_close, noise, other_devices};
use std::path::{Path, PathBuf};
use tilewright_graph_lowering::compile::GraphCacheUse::{self, Hit, NotStored, Stored, Unused};
use tilewright_graph_lowering::optim::AdamW;
use tilewright_graph_lowering::{
    DType, Dynamic, Explanation, Options, Reduction, Structure, Tensor, compile, value_and_grad,
};

const WIDTH: usize = 16;
const LENGTH: usize = 8;
const TOKENS: usize = 11;

/// Weights, numbers of tokens, and those that follow.
type Input = (Vec<Tensor>, Tensor, Tensor);

fn input(layers: usize, batch: usize) -> Input {
    let shapes = [[3 * WIDTH, WIDTH], [WIDTH, WIDTH], [4 * WIDTH, WIDTH], [WIDTH, 4 * WIDTH]];
    let mut weights = vec![noise(1, &[TOKENS, WIDTH]) * 0.3];
    for layer in 0..layers {
        weights.extend(shapes.iter().enumerate().map(|(i, s)| noise((10 * layer + i) as u64, s) * 0.3));
        weights.extend([Tensor::full(DType::F32, &[WIDTH], 1.0), Tensor::zeros(DType::F32, &[WIDTH])]);
    }
    let text: Vec<i32> = (0..=(batch * LENGTH) as i32).map(|i| i * i % TOKENS as i32).collect();
    let tokens = |from: usize| Tensor::new(&text[from..from + batch * LENGTH], &[batch, LENGTH]);
    (weights, tokens(0), tokens(1))
}

/// A step of training a decoder: the loss, the next weights, and padded parts that no training needs.
fn step((weights, index, target): &Input, rate: f64) -> (Tensor, Vec<Tensor>) {
    let batch = index.dims()[0];
    let loss = |w: &Vec<Tensor>| {
        let mut x = w[0].embedding(index);
        for w in w[1..].chunks(6) {
            let qkv = x.layer_norm(Some(&w[4]), Some(&w[5]), 1e-5).linear(&w[0], None);
            let part = |i: usize| {
                let part = qkv.narrow(2, i * WIDTH, WIDTH);
                part.reshape(&[batch, LENGTH, 2, WIDTH / 2]).permute(&[0, 2, 1, 3])
            };
            let mixed = part(0).attention(&part(1), &part(2), None, true, None).permute(&[0, 2, 1, 3]);
            x = x + mixed.reshape(&[batch, LENGTH, WIDTH]).linear(&w[1], None);
            x = &x + x.rms_norm(None, 1e-5).linear(&w[2], None).gelu_tanh().linear(&w[3], None);
        }
        x.linear(&w[0], None).cross_entropy(target, None, Reduction::Mean)
    };
    let (loss, gradient) = value_and_grad(loss, weights).unwrap();
    let optimiser = AdamW { lr: rate, ..AdamW::default() };
    let mut next = Vec::new();
    for (p, g) in weights.iter().zip(&gradient) {
        let zeros = Tensor::zeros(DType::F32, &p.dims());
        next.push(optimiser.step(p, g, &zeros, &zeros, &Tensor::scalar(1.0f32)).0);
    }
    next.push(Tensor::cat(
        &[&weights[0].tanh().pad(&[1, 0], &[2, 3], -1.5), &weights[0].exp().pad(&[0, 2], &[0, 1], 0.0)],
        0,
    ));
    (loss, next)
}

fn options(device: &str, dir: &Path) -> Options {
    Options::new().device(device).graph_cache_dir(dir)
}

type Outcome = (Vec<Tensor>, Explanation);

/// A compiled function of its own, as another process has it.
fn run(options: Options, x: &Input, rate: f64) -> Outcome {
    let f = compile(move |x: &Input| step(x, rate), options.clone().fullgraph(true)).unwrap();
    let results = f.call(x).unwrap().tensors();
    (results, f.explain())
}

fn assert_same(what: &str, a: &Outcome, b: &Outcome) {
    for (a, b) in a.0.iter().zip(&b.0) {
        assert_close(what, a, b, 0.0);
    }
    assert!(!a.1.groups.is_empty() && a.1.groups.len() == b.1.groups.len(), "{what}: other kernels");
    for (a, b) in a.1.groups.iter().zip(&b.1.groups) {
        // Their sources may differ in comments: primitives that a pass made lose their place in the source.
        assert_eq!((&a.ir, &a.primitives, a.programs), (&b.ir, &b.primitives, b.programs), "{what}: another kernel");
        assert_eq!((a.bytes, a.flops), (b.bytes, b.flops), "{what}: another kernel");
    }
    assert_eq!((&a.1.refusals, a.1.memory, a.1.primitives), (&b.1.refusals, b.1.memory, b.1.primitives), "{what}");
}

/// The entries in a directory.
fn entries(dir: &Path) -> Vec<PathBuf> {
    let folders = std::fs::read_dir(dir).unwrap().map(|f| f.unwrap().path());
    folders.flat_map(|f| std::fs::read_dir(f).unwrap().map(|e| e.unwrap().path())).collect()
}

#[test]
fn the_second_time_graph_and_plan_are_read() {
    let x = input(1, 2);
    for device in std::iter::once("cpu".to_owned()).chain(other_devices()) {
        // (Single kernels are many, and drivers compile them for long.)
        for fusion in if device == "cpu" { vec![true, false] } else { vec![true] } {
            let dir = tempfile::tempdir().unwrap();
            let options = || options(&device, dir.path()).fusion(fusion);
            let what = format!("{device}, fusion {fusion}");
            let first = run(options(), &x, 0.1);
            assert_eq!((first.1.graph_cache, first.1.cached_graphs), (Stored, 0), "{what}");
            let second = run(options(), &x, 0.1);
            assert_eq!((second.1.graph_cache, second.1.cached_graphs), (Hit, 1), "{what}");
            assert!(second.1.to_string().contains("graph cache: hit"), "{}", second.1);
            assert_same(&what, &first, &second);
            let off = run(options().set("graph_cache", "off"), &x, 0.1);
            assert_eq!(off.1.graph_cache, Unused, "{what}");
            assert_same(&what, &first, &off);
            if fusion {
                let text = first.1.groups.iter().flat_map(|g| g.primitives.clone()).collect::<String>();
                assert!(text.contains("attention") && text.contains("scatter") && text.contains("gather"), "{text}");
            }
        }
    }
}

#[test]
fn damaged_entries_are_misses_and_are_replaced() {
    let (x, dir) = (input(1, 1), tempfile::tempdir().unwrap());
    let go = || run(options("cpu", dir.path()), &x, 0.1);
    let first = go();
    let path = entries(dir.path()).remove(0);
    let good = std::fs::read(&path).unwrap();
    let flipped = |at: usize| {
        let mut bad = good.clone();
        bad[at] ^= 4;
        bad
    };
    // The magic, the schema, the key, the checksum, the graph, the plan; cut short, empty, longer, another file.
    let mut all: Vec<Vec<u8>> = [0, 8, 12, 44, 200, good.len() - 2].map(flipped).to_vec();
    all.extend([good[..good.len() / 2].to_vec(), vec![], [&good[..], b" "].concat(), b"not ours".to_vec()]);
    for (i, bad) in all.iter().enumerate() {
        std::fs::write(&path, bad).unwrap();
        let again = go();
        assert_eq!(again.1.graph_cache, Stored, "damage {i}");
        assert_same("damaged", &first, &again);
        assert!(std::fs::read(&path).unwrap() == good, "damage {i} is not replaced");
    }
    assert_eq!(go().1.graph_cache, Hit);
}

#[test]
fn what_decides_the_plan_decides_the_entry() {
    let dir = tempfile::tempdir().unwrap();
    let mut count = 0;
    let mut expect = |what: &str, options: Options, x: &Input, rate: f64, outcome: GraphCacheUse| {
        assert_eq!(run(options, x, rate).1.graph_cache, outcome, "{what}");
        count += usize::from(outcome == Stored);
        assert_eq!(entries(dir.path()).len(), count, "{what}");
    };
    let (x, base) = (input(1, 1), || options("cpu", dir.path()));
    expect("first", base(), &x, 0.1, Stored);
    expect("a constant", base(), &x, 0.2, Stored);
    expect("fusion", base().fusion(false), &x, 0.1, Stored);
    expect("extents", base(), &input(1, 3), 0.1, Stored);
    expect("more nodes", base(), &input(2, 1), 0.1, Stored);
    // What varies makes other kernels of the same plan.
    expect("dynamic", base().dynamic(Dynamic::Always), &x, 0.1, Hit);
    expect("mode", base().mode("reduce-overhead"), &x, 0.1, Hit);
}

#[test]
fn a_directory_that_cannot_be_written_is_no_error() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let (results, e) = run(options("cpu", &file.join("below")), &input(1, 1), 0.1);
    assert_eq!(e.graph_cache, NotStored);
    assert_close("loss", &results[0], &step(&input(1, 1), 0.1).0, 1e-5);
}

#[test]
fn small_graphs_are_not_kept() {
    let dir = tempfile::tempdir().unwrap();
    let f = compile(|x: &Tensor| x.softmax(0), options("cpu", dir.path())).unwrap();
    f.call(&noise(1, &[8])).unwrap();
    assert_eq!(f.explain().graph_cache, Unused);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

/// Prints the time to simplify, plan and generate with and without an entry. Run it in release.
#[test]
#[ignore = "measures time, which says something in release on a quiet machine alone"]
fn what_an_entry_saves() {
    for layers in [1, 4, 12] {
        let x = input(layers, 2);
        let mut times = [const { Vec::new() }; 3];
        for _ in 0..7 {
            let dir = tempfile::tempdir().unwrap();
            let off = options("cpu", dir.path()).graph_cache(false);
            let all = [off, options("cpu", dir.path()), options("cpu", dir.path())];
            for ((options, times), outcome) in all.into_iter().zip(&mut times).zip([Unused, Stored, Hit]) {
                let f = compile(|x: &Input| step(x, 0.1), options).unwrap();
                f.plan(&x).unwrap();
                let e = f.explain();
                assert_eq!(e.graph_cache, outcome);
                times.push((e.plan_time, e.primitives, e.kernels, e.capture_time));
            }
        }
        let least = times.map(|t| t.into_iter().min().unwrap());
        println!("{layers} layers: off {:?}, stored {:?}, hit {:?}", least[0], least[1], least[2]);
    }
}
