//! Every public function of `Tensor`, and its gradient, against NumPy and PyTorch: `tests/golden/values.jsonl`, which
//! `tests/golden/make.py` writes.
//!
//! `TILEWRIGHT_ORACLE_DEVICES=opencl:0,vulkan:0` compares with these devices, too, and `TILEWRIGHT_ORACLE_ONLY=exp`
//! takes the functions of this name alone.

mod accuracy;
mod apply;
mod coverage;

use apply::apply;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::str::FromStr;
use tilewright_graph_lowering::graph::TensorType;
use tilewright_graph_lowering::{DType, Dynamic, Literal, Options, Tensor, compile, vjp};

const DATA: &str = include_str!("../golden/values.jsonl");

/// A tensor on disk: type, extents, elements in hexadecimal, little-endian.
#[derive(Deserialize)]
struct Packed {
    t: String,
    d: Vec<usize>,
    w: String,
}

impl Packed {
    fn literal(&self) -> Literal {
        let ty = TensorType::new(DType::from_str(&self.t).unwrap(), &self.d[..]);
        let byte = |i: usize| u8::from_str_radix(&self.w[2 * i..2 * i + 2], 16).unwrap();
        Literal::from_bytes(ty, (0..self.w.len() / 2).map(byte).collect()).unwrap()
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// The function.
    f: String,
    /// Its arguments that are no tensors.
    p: Vec<Value>,
    x: Vec<Packed>,
    y: Vec<Packed>,
    /// Seeds, if `y` are gradients.
    g: Option<Vec<Packed>>,
    /// Units in the last place of the result.
    #[serde(default)]
    ulp: u64,
    #[serde(default)]
    abs: f64,
    /// Do signs of zeros count?
    #[serde(default = "yes")]
    zero: bool,
    /// The difference it shows, and what NumPy or PyTorch gives.
    differs: Option<String>,
    theirs: Option<Vec<Packed>>,
}

fn yes() -> bool {
    true
}

fn cases() -> Vec<Case> {
    let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    DATA.lines().skip(1).map(parse).collect()
}

impl Case {
    /// What the function gives, or the gradients of its float operands.
    fn run(&self, x: &[Tensor], seeds: &[Tensor]) -> Vec<Tensor> {
        if self.g.is_none() {
            return apply(&self.f, x, &self.p);
        }
        let x = x.to_vec();
        let (_, pull) = vjp(|x: &Vec<Tensor>| apply(&self.f, x, &self.p), &x)
            .unwrap_or_else(|e| panic!("gradient of {}: {e}", self.f));
        pull(&seeds.to_vec()).into_iter().filter(|t| t.dtype().is_float()).collect()
    }

    /// Is `got` what it should be?
    fn agrees(&self, got: &Literal, expected: &Literal) -> Result<(), String> {
        if got.ty() != expected.ty() {
            return Err(format!("gives {}, expected {}", got.ty(), expected.ty()));
        }
        for i in 0..got.ty().elements() {
            if !self.close(got, expected, i) {
                let (g, e) = (shown(got, i), shown(expected, i));
                return Err(format!("element {i} of {} is {g}, expected {e}", got.ty()));
            }
        }
        Ok(())
    }

    fn close(&self, got: &Literal, expected: &Literal, i: usize) -> bool {
        let dtype = got.ty().dtype;
        if !dtype.is_float() || got.word(i) == expected.word(i) {
            return got.word(i) == expected.word(i);
        }
        let (g, e) = (got.f64(i), expected.f64(i));
        if g.is_nan() || e.is_nan() {
            return g.is_nan() && e.is_nan();
        }
        if g == 0.0 && e == 0.0 {
            return !self.zero || self.abs > 0.0;
        }
        if g.is_infinite() || e.is_infinite() {
            return g == e;
        }
        steps(dtype, got.word(i)).abs_diff(steps(dtype, expected.word(i))) <= self.ulp || (g - e).abs() <= self.abs
    }
}

/// The bits of a float as a number that grows with it by 1 for each unit in the last place.
fn steps(dtype: DType, word: u64) -> i64 {
    let sign = 1u64 << (dtype.bits() - 1);
    let size = (word & (sign - 1)) as i64;
    if word & sign == 0 { size } else { -size }
}

fn shown(l: &Literal, i: usize) -> String {
    l.i64(i).map_or_else(|| format!("{:?}", l.f64(i)), |v| v.to_string())
}

fn tensors(all: &[Packed]) -> Vec<Tensor> {
    all.iter().map(|p| p.literal().into()).collect()
}

/// The way in which extents that have been seen to differ are parameters.
const AUTO: &str = "dynamic by itself";

/// Operands with other extents that the function takes as well, if twice the same is such: what [`AUTO`] has to see
/// first.
fn longer(case: &Case, x: &[Tensor]) -> Option<Vec<Tensor>> {
    let twice = |t: &Tensor| if t.rank() > 0 { Tensor::cat(&[t, t], 0) } else { t.clone() };
    let x: Vec<Tensor> = x.iter().map(twice).collect();
    // Arguments of the function may say which extents the operands have.
    let y = std::panic::catch_unwind(AssertUnwindSafe(|| apply(&case.f, &x, &case.p))).ok()?;
    y.iter().all(|t| t.check().is_ok()).then_some(x)
}

/// All ways to run a function; the first is the one that defines what it means.
fn ways() -> Vec<(String, Option<Options>)> {
    let cpu = || Options::new().device("cpu");
    let mut all = vec![
        ("eager".to_owned(), None),
        ("interpreter".to_owned(), Some(Options::new().backend("interpreter"))),
        ("unfused".to_owned(), Some(cpu().fusion(false))),
        ("fused".to_owned(), Some(cpu().dynamic(Dynamic::Never))),
        ("dynamic".to_owned(), Some(cpu().dynamic(Dynamic::Always))),
        (AUTO.to_owned(), Some(cpu().dynamic(Dynamic::Auto))),
    ];
    let devices = std::env::var("TILEWRIGHT_ORACLE_DEVICES").unwrap_or_default();
    all.extend(devices.split(',').filter(|d| !d.is_empty()).map(|d| (d.to_owned(), Some(Options::new().device(d)))));
    all
}

/// Compares all cases of the functions in `part` of `parts`; several cases are compiled together, which saves time.
fn compare(part: usize, parts: usize) {
    const TOGETHER: usize = 12;
    let only = std::env::var("TILEWRIGHT_ORACLE_ONLY").ok();
    let mut functions: BTreeMap<String, Vec<Case>> = BTreeMap::new();
    for case in cases() {
        functions.entry(case.f.clone()).or_default().push(case);
    }
    let mine = functions.values().enumerate().filter(|(i, _)| i % parts == part).map(|(_, cases)| cases);
    let mut wrong = Vec::new();
    for cases in mine.flat_map(|cases| cases.chunks(TOGETHER)) {
        if only.as_ref().is_some_and(|o| *o != cases[0].f) {
            continue;
        }
        let x: Vec<Vec<Tensor>> = cases.iter().map(|c| tensors(&c.x)).collect();
        let seeds: Vec<Vec<Tensor>> = cases.iter().map(|c| tensors(c.g.as_deref().unwrap_or_default())).collect();
        let f = |(x, seeds): &(Vec<Vec<Tensor>>, Vec<Vec<Tensor>>)| -> Vec<Vec<Tensor>> {
            cases.iter().zip(x).zip(seeds).map(|((c, x), seeds)| c.run(x, seeds)).collect()
        };
        let other = |(case, x): (&Case, &Vec<Tensor>)| match case.g {
            None => longer(case, x).unwrap_or_else(|| x.clone()),
            Some(_) => x.clone(),
        };
        let others = (cases.iter().zip(&x).map(other).collect::<Vec<_>>(), seeds.clone());
        let args = (x, seeds);
        for (way, options) in ways() {
            let results = match options {
                None => Ok(f(&args)),
                Some(options) => compile(f, options).and_then(|c| {
                    if way == AUTO {
                        c.call(&others)?;
                    }
                    c.call(&args)
                }),
            };
            let results = match results {
                Ok(results) => results,
                Err(e) => {
                    wrong.push(format!("{}, {way}: {e}", cases[0].f));
                    continue;
                }
            };
            for (case, got) in cases.iter().zip(&results) {
                assert_eq!(got.len(), case.y.len(), "{}, {way}: results", case.f);
                for (g, e) in got.iter().zip(&case.y) {
                    let (kind, p) = (if case.g.is_some() { "gradient of " } else { "" }, &case.p);
                    let x: Vec<String> = case.x.iter().map(|x| format!("{}{:?}", x.t, x.d)).collect();
                    let verdict = match g.to_literal() {
                        Ok(l) => case.agrees(&l, &e.literal()),
                        Err(e) => Err(e.to_string()),
                    };
                    if let Err(what) = verdict {
                        let what = format!("{kind}{} {p:?} of {}, {way}: {what}", case.f, x.join(", "));
                        // The devices' drivers may take minutes: what is wrong is said at once.
                        println!("{what}");
                        wrong.push(what);
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn functions_mean_what_numpy_and_pytorch_mean_1() {
    compare(0, 4);
}

#[test]
fn functions_mean_what_numpy_and_pytorch_mean_2() {
    compare(1, 4);
}

#[test]
fn functions_mean_what_numpy_and_pytorch_mean_3() {
    compare(2, 4);
}

#[test]
fn functions_mean_what_numpy_and_pytorch_mean_4() {
    compare(3, 4);
}

#[test]
fn there_are_as_many_values_as_the_data_says() {
    let head: Value = serde_json::from_str(DATA.lines().next().unwrap()).unwrap();
    let values: usize = cases().iter().flat_map(|c| &c.y).map(|y| y.d.iter().product::<usize>()).sum();
    assert_eq!(head["values"], values);
    assert!(values > 70_000, "{values}");
}

#[test]
fn differences_are_in_the_guide() {
    let guide = include_str!("../../../docs/compile.md");
    let (mut listed, mut shown) = (BTreeSet::new(), BTreeSet::new());
    let table =
        guide.split("## Where it differs from NumPy and PyTorch").nth(1).expect("the guide has a table of differences");
    for row in table.lines().skip_while(|l| !l.starts_with("|--")).skip(1).take_while(|l| l.starts_with('|')) {
        listed.insert(row.split('|').nth(1).unwrap().trim().to_owned());
    }
    for case in cases().into_iter().filter(|c| c.differs.is_some()) {
        let theirs = case.theirs.as_ref().unwrap();
        let same = |(a, b): (&Packed, &Packed)| case.agrees(&a.literal(), &b.literal()).is_ok();
        let differs = case.differs.clone().unwrap();
        assert!(!case.y.iter().zip(theirs).all(same), "{differs}: there is no difference any more");
        shown.insert(differs);
    }
    assert_eq!(listed, shown, "the guide's table, and the cases with `differs`");
}
