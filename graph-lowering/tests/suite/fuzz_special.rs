//! Random functions of special values: infinities, NaN, signed zeros, the largest and least numbers of every type; of extents 0, 1 and
//! primes; and attention under masks of all kinds with its gradients. All ways of execution must agree, NaN and all.
//!
//! `TILEWRIGHT_FUZZ_SEEDS` is how many functions of each family are run (the default run takes few), `TILEWRIGHT_FUZZ_FROM` the first
//! seed, `TILEWRIGHT_FUZZ_FAMILY` the family. With `--nocapture` the test tells how many graphs it ran of each:
//! `TILEWRIGHT_FUZZ_SEEDS=5000 cargo test --release -p tilewright-graph-lowering --test suite fuzz_special -- --nocapture`.

use crate::common::ways;
use crate::fuzz::Choices;
use tilewright_graph_lowering::{DType, Loaded, Options, Tensor, compile, vjp};

/// A family: its name, and the function of a seed with its arguments. Results agree within the tolerance.
struct Family {
    name: &'static str,
    arguments: fn(u64) -> Vec<Tensor>,
    function: fn(u64, &[Tensor]) -> Vec<Tensor>,
    tolerance: f64,
}

const FAMILIES: [Family; 4] = [
    Family { name: "exact", arguments: special_arguments, function: exact, tolerance: 0.0 },
    Family { name: "long", arguments: special_arguments, function: long, tolerance: 0.0 },
    Family { name: "attention", arguments: of_attention, function: attention, tolerance: 2e-4 },
    Family { name: "gradients", arguments: special_floats, function: gradients, tolerance: 0.0 },
];

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|s| s.parse().ok()).unwrap_or(otherwise)
}

fn extent(c: &mut Choices) -> usize {
    [0, 1, 1, 2, 3, 4, 5, 7, 13, 16][c.below(10)]
}

fn any_type(c: &mut Choices) -> DType {
    DType::ALL[c.below(DType::ALL.len())]
}

fn special(c: &mut Choices) -> f64 {
    match c.below(14) {
        0 => f64::INFINITY,
        1 => f64::NEG_INFINITY,
        2 => f64::NAN,
        3 => -0.0,
        4 => f64::from(f32::MAX),
        5 => f64::from(f32::MIN_POSITIVE),
        6 => 65504.0,
        7 => -1e10,
        8 => 127.0,
        9 => -128.0,
        _ => c.below(9) as f64 - 4.0,
    }
}

fn made(c: &mut Choices, dtype: DType, dims: &[usize]) -> Tensor {
    let values: Vec<f64> = (0..dims.iter().product()).map(|_| special(c)).collect();
    Tensor::new(&values, dims).cast(dtype)
}

fn special_arguments(seed: u64) -> Vec<Tensor> {
    let mut c = Choices::new(seed ^ 0x51ec);
    let dims = [extent(&mut c), extent(&mut c)];
    let types = [any_type(&mut c), any_type(&mut c), any_type(&mut c)];
    vec![made(&mut c, types[0], &dims), made(&mut c, types[1], &dims[1..]), made(&mut c, types[2], &[dims[0], 1])]
}

fn special_floats(seed: u64) -> Vec<Tensor> {
    let mut c = Choices::new(seed ^ 0x7e57);
    let dims = [extent(&mut c), extent(&mut c)];
    let float = |c: &mut Choices| DType::FLOATS[c.below(DType::FLOATS.len())];
    let types = [float(&mut c), float(&mut c)];
    vec![made(&mut c, types[0], &dims), made(&mut c, types[1], &dims[1..])]
}

/// One operation whose result does not depend on the order of anything.
fn grow(c: &mut Choices, all: &[Tensor]) -> Tensor {
    let x = all[all.len() - 1 - c.below(all.len().min(5))].clone();
    let fits = |t: &&Tensor| {
        let (d, dims) = (t.dims(), x.dims());
        d.len() <= dims.len() && d.iter().rev().zip(dims.iter().rev()).all(|(a, b)| a == b || *a == 1)
    };
    let others: Vec<&Tensor> = all.iter().filter(fits).collect();
    let y = others[c.below(others.len())].clone();
    let (r, axis) = (x.rank(), c.below(x.rank().max(1)));
    let some = r > 0 && x.dims()[axis] > 0;
    match c.below(20) {
        0 => &x + y,
        1 => &x - y,
        2 => &x * y,
        3 => x.maximum(y),
        4 => x.minimum(y),
        5 => x.lt(&y).where_(&x, &y),
        6 => x.eq_(&y).cast(x.dtype()),
        7 => x.cast(any_type(c)),
        8 if x.dtype().is_float() => x.neg().abs(),
        9 if x.dtype().is_float() => &x / y,
        10 if some => x.max(&[axis]),
        11 if some => x.min(&[axis]),
        12 if some => x.argmax(axis),
        13 if r > 1 => x.transpose(),
        14 if r > 0 => x.reshape(&[x.elements()]),
        15 if some => x.narrow(axis, 0, x.dims()[axis].div_ceil(2)),
        16 if r > 0 && r < 4 => {
            let mut low = vec![0; r];
            low[axis] = c.below(3);
            x.pad(&low, &vec![c.below(2); r], 1.0)
        }
        17 if r > 0 && x.dims()[axis] < 9 => Tensor::cat(&[&x, &x], axis),
        18 if r < 3 => x.unsqueeze(0).broadcast_to(&[&[extent(c)], &x.dims()[..]].concat()),
        19 if r > 0 && x.dims()[0] > 0 => x.gather_rows(&Tensor::vector(&[0i32, -1, 0])),
        _ => x.ne_(&x).or(x.gt(0i64)),
    }
}

fn program(seed: u64, x: &[Tensor], steps: usize) -> Vec<Tensor> {
    let mut c = Choices::new(seed);
    let mut all = x.to_vec();
    for _ in 0..steps + c.below(8) {
        let next = grow(&mut c, &all);
        // (Some types have no order.)
        if next.check().is_ok() && next.elements() <= 600 {
            all.push(next);
        }
    }
    all.split_off(all.len() - 2)
}

fn exact(seed: u64, x: &[Tensor]) -> Vec<Tensor> {
    program(seed, x, 3)
}

/// Long enough for the cache of graphs.
fn long(seed: u64, x: &[Tensor]) -> Vec<Tensor> {
    program(seed, x, 60)
}

fn of_attention(seed: u64) -> Vec<Tensor> {
    let mut c = Choices::new(seed ^ 0xa77e);
    let kv = 1 + c.below(2);
    let (b, h, m, n) = (c.below(3).max(1), kv * (1 + c.below(2)), extent(&mut c), extent(&mut c));
    let (d, e) = (1 + c.below(5), 1 + c.below(5));
    let dtype = DType::FLOATS[c.below(DType::FLOATS.len())];
    // Powers of two times small integers: scores are exact, and ties are ties.
    let size = [1.0, 1.0, 0.5, 1024.0, 2f64.powi(34), 2f64.powi(50)][c.below(if dtype == DType::F16 { 4 } else { 6 })];
    let integers = |c: &mut Choices, dims: &[usize], size: f64| {
        let values: Vec<f64> = (0..dims.iter().product()).map(|_| (c.below(7) as f64 - 3.0) * size).collect();
        Tensor::new(&values, dims).cast(dtype)
    };
    let q = integers(&mut c, &[b, h, m, d], size);
    let (k, v) = (integers(&mut c, &[b, kv, n, d], 1.0), integers(&mut c, &[b, kv, n, e], 1.0));
    let g = integers(&mut c, &[b, h, m, e], 1.0);
    let of = [DType::Bool, DType::F16, DType::BF16, DType::F32, DType::F64][c.below(5)];
    // Large scores beside a mask of numbers are told apart by their last digits alone.
    let of = if size > 1.0 { DType::Bool } else { of };
    let least = [-65504.0, -1e10, f64::from(f32::MIN), f64::MIN, f64::NEG_INFINITY][c.below(5)];
    let dims = [[1, 1, m, n], [b, 1, 1, n], [b, h, m, n], [1, h, m, 1]][c.below(4)];
    let rows = c.below(3) == 0;
    let hidden: Vec<f64> =
        (0..dims.iter().product()).map(|_| if rows || c.below(2) == 0 { least } else { 0.0 }).collect();
    let mask = Tensor::new(&hidden, &dims);
    let mask = if of == DType::Bool { mask.eq_(0.0) } else { mask.cast(of) };
    vec![q, k, v, g, mask]
}

fn attention(seed: u64, x: &[Tensor]) -> Vec<Tensor> {
    let mut c = Choices::new(seed ^ 0xc0de);
    let (masked, causal) = (c.below(3) > 0, c.below(3) == 0);
    // Of powers of two, so that scaling is exact.
    let scale = [1.0, 0.5, 0.125, 2.0][c.below(4)];
    let mask = masked.then(|| x[4].clone());
    let f = |x: &Vec<Tensor>| x[0].attention(&x[1], &x[2], mask.as_ref(), causal, Some(scale));
    match vjp(f, &x[..3].to_vec()) {
        Ok((y, pull)) => [vec![y], pull(&x[3])].concat(),
        Err(e) => panic!("seed {seed}: {e}"),
    }
}

/// Gradients of what is exact: those of products, quotients, choices, greatest elements and views.
fn gradients(seed: u64, x: &[Tensor]) -> Vec<Tensor> {
    let f = |x: &Vec<Tensor>| {
        let mut c = Choices::new(seed);
        let mut y = x[0].clone();
        for _ in 0..1 + c.below(4) {
            y = match c.below(8) {
                0 => y.relu(),
                1 => y.abs(),
                2 => y.neg(),
                3 => &y * 0.5,
                4 => y.maximum(0.25),
                5 => y.gt(0.0).where_(&y, y.neg()),
                6 => y.transpose(),
                _ => y.clamp(-2.0, 3.0),
            };
        }
        y
    };
    match vjp(f, &x.to_vec()) {
        Ok((y, pull)) => {
            let seed = Tensor::full(y.dtype(), &y.dims(), 2.0);
            [vec![y], pull(&seed)].concat()
        }
        Err(e) => panic!("seed {seed}: {e}"),
    }
}

/// Are these the same elements, NaN and all?
fn difference(got: &Tensor, expected: &Tensor, tolerance: f64) -> Option<String> {
    if got.ty() != expected.ty() {
        return Some(format!("{} instead of {}", got.ty(), expected.ty()));
    }
    let tolerance = match expected.dtype() {
        DType::F16 if tolerance > 0.0 => 1e-2,
        DType::BF16 if tolerance > 0.0 => 6e-2,
        _ => tolerance,
    };
    let (g, e) = (got.to_f64s().unwrap(), expected.to_f64s().unwrap());
    let largest = e.iter().filter(|e| e.is_finite()).fold(1.0f64, |m, e| m.max(e.abs()));
    g.iter().zip(&e).enumerate().find_map(|(i, (g, e))| {
        let same = g == e || (g.is_nan() && e.is_nan()) || (g - e).abs() <= tolerance * largest;
        (!same).then(|| format!("element {i} of {} is {g}, expected {e}", expected.ty()))
    })
}

fn check(family: &Family, seed: u64, directory: &std::path::Path) -> usize {
    let x = (family.arguments)(seed);
    let f = |x: &Vec<Tensor>| (family.function)(seed, x);
    let expected = f(&x);
    if let Some(e) = expected.iter().find_map(|t| t.check().err()) {
        panic!("{}, seed {seed}: {e}", family.name);
    }
    let agree = |way: &str, got: &[Tensor], about: &dyn Fn() -> String| {
        assert_eq!(got.len(), expected.len());
        for (i, (g, e)) in got.iter().zip(&expected).enumerate() {
            if let Some(what) = difference(g, e, family.tolerance) {
                panic!("{}, seed {seed}, {way}, result {i}: {what}\n{}", family.name, about());
            }
        }
    };
    let cached = Options::new().device("cpu").graph_cache_dir(directory);
    let off = |options: Options| options.graph_cache(false);
    let all = ways().into_iter().map(|(way, options)| (way, off(options)));
    let mut graphs = 0;
    for (way, options) in all.chain([("written to the cache", cached.clone()), ("read from the cache", cached)]) {
        let compiled = compile(f, options).unwrap();
        let got = compiled.call(&x).unwrap_or_else(|e| panic!("{}, seed {seed}, {way}: {e}", family.name));
        agree(way, &got, &|| format!("{}\n{}", compiled.graph().unwrap(), compiled.explain()));
        graphs += 1;
        if way == "fused" {
            let text = compiled.to_json().unwrap().unwrap();
            let loaded = Loaded::from_json(&text, Options::new().device("cpu")).unwrap();
            agree("loaded", &loaded.call(&x).unwrap(), &|| loaded.graph().to_string());
            graphs += 1;
        }
    }
    graphs
}

#[test]
fn random_functions_of_special_values_agree() {
    let (from, wanted) = (number("TILEWRIGHT_FUZZ_FROM", 0), std::env::var("TILEWRIGHT_FUZZ_FAMILY").ok());
    let directory = tempfile::tempdir().unwrap();
    for family in FAMILIES.iter().filter(|f| wanted.as_ref().is_none_or(|w| w == f.name)) {
        let otherwise = if family.name == "long" { 10 } else { 60 };
        let graphs: usize = (from..from + number("TILEWRIGHT_FUZZ_SEEDS", otherwise))
            .map(|seed| check(family, seed, directory.path()))
            .sum();
        println!("{}: {graphs} graphs agree", family.name);
    }
}
