//! The text of the Tile IR as a whole: printing and parsing are inverse, the parser and the verifier never panic,
//! random functions are valid and cover everything.

use std::collections::HashSet;
use tilewright_compiler::entity::Entity;
use tilewright_compiler::tile::generate::{self, Argument, Config, Floats, Runnable, random_function};
use tilewright_compiler::tile::parse::every_op;
use tilewright_compiler::tile::{
    Constant, Function, Op, OpId, ParamHint, ParamKind, Region, TileType, Value, ValueDef, parse, print_errors,
    print_with_locs, verify,
};
use tilewright_compiler::{DType, Error};

/// A small generator of its own, so that the tests do not lean on what they test.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n
    }
}

fn configs() -> Vec<Config> {
    let floats = vec![DType::F16, DType::BF16, DType::F32, DType::F64];
    vec![
        Config::default(),
        Config::runnable(),
        Config { ops: 100, max_nesting: 4, ..Config::default() },
        Config { floats: Floats::All, dtypes: floats, ..Config::runnable() },
        Config { max_elements: 1, max_nesting: 0, dtypes: vec![], address_values: false, ..Config::default() },
        Config { runnable: Some(Runnable { elements: 16, grid: [1; 3] }), ..Config::runnable() },
    ]
}

fn functions(n: u64) -> impl Iterator<Item = (u64, Config, Function)> {
    let configs = configs();
    (0..n).map(move |seed| {
        let config = configs[seed as usize % configs.len()].clone();
        let func = random_function(seed, &config);
        (seed, config, func)
    })
}

#[test]
fn random_functions_are_valid() {
    for (seed, _, func) in functions(900) {
        if let Err(e) = verify(&func, "generate") {
            panic!("seed {seed}: {e}\n{func}");
        }
    }
}

#[test]
fn printing_and_parsing_are_inverse() {
    for (seed, _, func) in functions(900) {
        let first = parse(&func.to_string()).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{func}"));
        assert_eq!(shape_of(&func), shape_of(&first), "seed {seed}: parsing keeps all but the numbers");
        verify(&first, "parse").unwrap_or_else(|e| panic!("seed {seed}: {e}\n{func}"));
        let text = first.to_string();
        let second = parse(&text).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{text}"));
        assert_eq!(second.to_string(), text, "seed {seed}");
    }
}

/// Everything in a function but the numbers of values, ops and regions, and places.
fn shape_of(func: &Function) -> Vec<(Op, Vec<TileType>, Vec<TileType>, usize)> {
    let mut ops = Vec::new();
    func.walk(func.body, &mut |op| {
        let data = &func.ops[op];
        let types = |values: &[Value]| values.iter().map(|&v| func.ty(v).clone()).collect();
        ops.push((data.op.clone(), types(&data.operands), types(&data.results), data.regions.len()));
    });
    ops
}

#[test]
fn random_functions_depend_on_the_seed_alone() {
    let config = Config::default();
    assert_eq!(random_function(7, &config), random_function(7, &config));
    assert_ne!(random_function(7, &config).to_string(), random_function(8, &config).to_string());
}

#[test]
fn random_functions_cover_all_ops_and_types() {
    let (mut ops, mut types, mut ranks) = (HashSet::new(), HashSet::new(), HashSet::new());
    for seed in 0..600 {
        let func = random_function(seed, &Config { ops: 60, ..Config::default() });
        func.walk(func.body, &mut |op| {
            let data = &func.ops[op];
            ops.insert(data.op.mnemonic());
            for &v in &data.results {
                types.insert(func.ty(v).elem.to_string());
                ranks.insert(func.ty(v).shape.rank());
            }
        });
    }
    let missing: Vec<_> = every_op().iter().map(Op::mnemonic).filter(|m| !ops.contains(m)).collect();
    assert!(missing.is_empty(), "never made: {missing:?}");
    for dtype in DType::ALL {
        assert!(types.contains(dtype.name()) && types.contains(&format!("*{dtype}")), "no values of {dtype}");
    }
    assert!((0..=3).all(|rank| ranks.contains(&rank)), "{ranks:?}");
}

#[test]
fn the_configuration_is_obeyed() {
    let config = Config {
        max_elements: 32,
        max_nesting: 0,
        dtypes: vec![DType::F32],
        allow: |op| !matches!(op, Op::Unary(_) | Op::ViewLoad { .. } | Op::Load | Op::Dot { .. }),
        ..Config::default()
    };
    for seed in 0..200 {
        let func = random_function(seed, &config);
        for (_, data) in func.ops.iter() {
            assert!((config.allow)(&data.op), "seed {seed}\n{func}");
            assert!(data.regions.is_empty(), "seed {seed}\n{func}");
        }
        for (v, data) in func.values.iter() {
            assert!(data.ty.shape.elements() <= 32, "seed {seed}: {v}\n{func}");
            assert!(matches!(data.ty.dtype(), DType::Bool | DType::I32 | DType::F32), "seed {seed}: {v}\n{func}");
        }
    }
}

#[test]
fn exact_functions_do_without_inexact_ops() {
    for seed in 0..300 {
        let func = random_function(seed, &Config::runnable());
        for (_, data) in func.ops.iter() {
            let float =
                |v: &&Value| func.ty(**v).elem.to_string().starts_with(['f', 'b']) && func.ty(**v).dtype().is_float();
            if data.operands.iter().chain(&data.results).find(float).is_some() {
                let text = data.op.mnemonic();
                let inexact = ["exp", "sqrt", "div", "rem", "dot", "reduce_sum", "reduce_prod", "bitcast", "sin"];
                assert!(!inexact.contains(&&text[..]), "seed {seed}: {text}\n{func}");
            }
        }
    }
}

/// The contract on order: each output has one store at most, and is never read.
#[test]
fn runnable_functions_store_once_to_each_output_and_never_read_it() {
    for seed in 0..300 {
        let func = random_function(seed, &Config::runnable());
        let mut stores = 0;
        for param in 0..func.params.len() {
            if !func.params[param].name.starts_with("out") {
                continue;
            }
            let mut reached: HashSet<Value> = HashSet::from([func.flat_params(param)[0]]);
            let mut writes = 0;
            func.walk(func.body, &mut |op| {
                let data = &func.ops[op];
                let Some(&first) = data.operands.first().filter(|v| reached.contains(v)) else {
                    assert!(!data.operands.iter().any(|v| reached.contains(v)), "seed {seed}: {op}\n{func}");
                    return;
                };
                assert!(!data.operands[1..].contains(&first));
                match data.op {
                    Op::PtrAdd | Op::Broadcast => reached.extend(&data.results),
                    Op::Store | Op::ViewStore { .. } => writes += 1,
                    _ => panic!("seed {seed}: {op} does something else with an output\n{func}"),
                }
            });
            assert!(writes <= 1, "seed {seed}\n{func}");
            stores += writes;
        }
        assert!(stores > 0, "seed {seed}: nothing is stored\n{func}");
    }
}

#[test]
fn arguments_agree_with_parameters_and_hints() {
    for (seed, config, func) in functions(300).filter(|(_, config, _)| config.runnable.is_some()) {
        let arguments = generate::arguments(&func, &config);
        assert_eq!(arguments.len(), func.params.len());
        let mut flat = 0;
        for (param, argument) in func.params.iter().zip(&arguments) {
            let hint: &ParamHint = &func.hints[flat];
            match (&param.kind, argument) {
                (ParamKind::Scalar(dtype), Argument::Scalar { dtype: d, value }) => {
                    assert_eq!(dtype, d);
                    assert!(hint.known.is_none_or(|k| k == *value), "seed {seed}");
                    assert_eq!(value % i64::from(hint.divisor), 0, "seed {seed}");
                }
                (ParamKind::Ptr { dtype }, Argument::Ptr { dtype: d, elements, .. }) => {
                    assert_eq!(dtype, d);
                    assert!(*elements > 0 && hint.divisor <= 16);
                }
                (ParamKind::View { dtype, rank }, Argument::View { dtype: d, dims, strides, elements, .. }) => {
                    assert_eq!(dtype, d);
                    assert!(dims.len() == usize::from(*rank) && strides.len() == dims.len());
                    let last: usize = dims.iter().zip(strides).map(|(d, s)| (d - 1) * s).sum();
                    assert!(last < *elements, "seed {seed}: {dims:?} {strides:?} {elements}");
                    for (i, extent) in dims.iter().chain(strides).enumerate() {
                        assert!(func.hints[flat + 1 + i].known.is_none_or(|k| k == *extent as i64), "seed {seed}");
                    }
                }
                other => panic!("seed {seed}: {other:?}"),
            }
            flat += param.kind.flat_len();
        }
    }
}

#[test]
fn constants_keep_their_bits() {
    let mut dice = Dice(3);
    for dtype in DType::ALL {
        let mask = u64::MAX >> (64 - dtype.bits());
        let special =
            [0, 1, mask, mask >> 1, (mask >> 1) + 1, 0x7e00, 0x7e01, 0x7c00, 0xfc00, 0x7fc0_0000, 0x7f80_0001];
        let random = (0..300).map(|_| (dice.below(1 << 31) as u64) << 33 ^ (dice.below(1 << 31) as u64));
        for bits in special.into_iter().chain(random.collect::<Vec<_>>()).map(|bits| bits & mask) {
            let mut b = tilewright_compiler::tile::Builder::new("c");
            b.full(TileType::scalar(dtype), Constant(bits)).expect("constants of numbers are valid");
            let func = b.finish();
            let again = parse(&func.to_string()).expect("constants are parsed");
            let found = again.ops.iter().find_map(|(_, d)| if let Op::Const(c) = d.op { Some(c) } else { None });
            assert_eq!(found, Some(Constant(bits)), "{func}");
        }
    }
}

#[test]
fn names_of_any_kind_are_kept() {
    for name in ["f", "", "a b", "quote\"d", "back\\slash", "new\nline", "µ", "; comment", "9", "kernel", "v1"] {
        let mut b = tilewright_compiler::tile::Builder::new(name);
        b.param_scalar(name, DType::I32, ParamHint { divisor: 8, known: Some(-8), alias_class: 0 });
        let func = b.finish();
        let again = parse(&func.to_string()).unwrap_or_else(|e| panic!("{e}\n{func}"));
        assert_eq!((&again.name, &again.params, &again.hints), (&func.name, &func.params, &func.hints));
    }
}

#[test]
fn places_are_printed_on_request() {
    let func = parse("kernel @f() {\n  v0: i32 = program_id 0\n  if v1 {\n yield } else { yield }\n  v1: bool = const true\n yield }")
        .expect("the text is right");
    let text = print_with_locs(&func);
    assert!(text.contains("v0: i32 = program_id 0 ; op0, <ir>:2:3\n"), "{text}");
    assert!(text.contains("if v1 { ; op1, <ir>:3:3\n"), "{text}");
    assert!(!func.to_string().contains("<ir>"));
    assert_eq!(parse(&text).expect("places are comments").to_string(), func.to_string());
}

#[test]
fn the_parser_never_panics_on_random_bytes() {
    let mut dice = Dice(11);
    let words = [
        "kernel",
        "@f",
        "(",
        ")",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "=",
        "*",
        "%x",
        "v0",
        "v1",
        "v4294967295",
        "v99999999999",
        "i32",
        "f16",
        "view",
        "raw",
        "for",
        "while",
        "if",
        "else",
        "do",
        "carry",
        "to",
        "step",
        "yield",
        "condition",
        "const",
        "arange",
        "-1",
        "0x",
        "0xff",
        "1e999",
        "nan",
        "reduce_sum",
        "axis",
        "permute",
        "dot",
        "precision",
        "rank",
        "view_load",
        "dims",
        "strides",
        "at",
        "pad",
        "value",
        "div",
        "known",
        "alias",
        "@\"",
        "\"",
        "\\",
        ";",
        "\n",
        "256",
        "18446744073709551615",
        "-9223372036854775808",
        "fp_fusion",
        "µ",
        "\u{0}",
        "-",
        "?",
        "load",
        "add",
    ];
    for _ in 0..3000 {
        let bytes: Vec<u8> = (0..dice.below(80)).map(|_| dice.below(256) as u8).collect();
        let _ = parse(&String::from_utf8_lossy(&bytes));
        let n = dice.below(60);
        let soup: Vec<&str> = (0..n).map(|_| words[dice.below(words.len())]).collect();
        for text in
            [soup.join(" "), format!("kernel @f() {{ {}", soup.join(" ")), format!("kernel @f({}", soup.join(" "))]
        {
            if let Ok(func) = parse(&text) {
                let _ = (verify(&func, "fuzz"), func.to_string());
            }
        }
    }
}

#[test]
fn the_parser_and_the_verifier_never_panic_on_mutated_text() {
    let mut dice = Dice(5);
    let (mut parsed, mut valid) = (0, 0);
    for (_, _, func) in functions(120) {
        let text = func.to_string();
        let lines: Vec<&str> = text.lines().collect();
        for _ in 0..12 {
            let mut mutant: Vec<String> = lines.iter().map(|&l| l.to_owned()).collect();
            let at = dice.below(lines.len());
            match dice.below(6) {
                0 => drop(mutant.remove(at)),
                1 => mutant.swap(at, dice.below(lines.len())),
                2 => mutant.insert(at, lines[dice.below(lines.len())].to_owned()),
                3 => mutant.truncate(at),
                _ => {
                    // Another word in place of one.
                    let from: Vec<&str> = lines[at].split_inclusive(' ').collect();
                    let other: Vec<&str> = lines[dice.below(lines.len())].split_inclusive(' ').collect();
                    if !from.is_empty() && !other.is_empty() {
                        let mut words = from.clone();
                        words[dice.below(from.len())] = other[dice.below(other.len())];
                        mutant[at] = words.concat();
                    }
                }
            }
            match parse(&mutant.join("\n")) {
                Ok(func) => {
                    parsed += 1;
                    valid += usize::from(verify(&func, "fuzz").is_ok());
                    // Also what is not valid has a text, which stands for it.
                    let text = func.to_string();
                    let again = parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
                    assert_eq!(again.to_string(), text);
                    let _ = print_errors(&func, &verify::violations(&func));
                }
                Err(Error::Parse(d)) => assert!(d.loc.is_known(), "{d}"),
                Err(e) => panic!("{e}"),
            }
        }
    }
    assert!(
        parsed > 100 && valid > 0 && valid < parsed,
        "the mutants are of all kinds: {parsed} parsed, {valid} valid"
    );
}

#[test]
fn the_verifier_never_panics_on_corrupt_functions() {
    let mut dice = Dice(9);
    let mut refused = 0;
    for (_, _, good) in functions(300) {
        for _ in 0..10 {
            let mut func = good.clone();
            for _ in 0..1 + dice.below(3) {
                corrupt(&mut func, &mut dice);
            }
            let violations = verify::violations(&func);
            refused += usize::from(!violations.is_empty());
            let text = print_errors(&func, &violations);
            assert!(violations.is_empty() || text.contains("error:"), "{text}");
            let _ = func.to_string();
        }
    }
    assert!(refused > 2000, "most corruptions are found: {refused} of 3000");
}

/// Breaks something.
fn corrupt(func: &mut Function, dice: &mut Dice) {
    let (values, ops, regions) = (func.values.len(), func.ops.len(), func.regions.len());
    let value = Value::new(dice.below(values + 2));
    let op = OpId::new(dice.below(ops));
    let region = Region::new(dice.below(regions));
    let other_op = OpId::new(dice.below(ops + 2));
    let other_region = Region::new(dice.below(regions + 2));
    let change = |list: &mut Vec<Value>, dice: &mut Dice| match dice.below(3) {
        0 => list.push(value),
        1 => drop(list.pop()),
        _ => {
            if !list.is_empty() {
                let at = dice.below(list.len());
                list[at] = value;
            }
        }
    };
    match dice.below(12) {
        0 | 1 => change(&mut func.ops[op].operands, dice),
        2 => change(&mut func.ops[op].results, dice),
        3 => change(&mut func.regions[region].params, dice),
        4 => func.regions[region].ops.insert(0, other_op),
        5 => drop(func.regions[region].ops.pop()),
        6 => func.ops[op].regions.push(other_region),
        7 => drop(func.ops[op].regions.pop()),
        8 => {
            let value = Value::new(dice.below(values));
            let extents = [0, 1, 2, 3, 64, 1 << 20, usize::MAX];
            let dims: Vec<usize> = (0..dice.below(10)).map(|_| extents[dice.below(extents.len())]).collect();
            func.values[value].ty =
                TileType::new(DType::ALL[dice.below(13)], tilewright_compiler::tile::Shape::new(dims));
        }
        9 => {
            let all = every_op();
            func.ops[op].op = all[dice.below(all.len())].clone();
        }
        10 => func.values[Value::new(dice.below(values))].def = ValueDef::Result { op: other_op, index: 3 },
        _ => match dice.below(3) {
            0 => func.body = other_region,
            1 => drop(func.hints.pop()),
            _ => func.params.clear(),
        },
    }
}

#[test]
fn a_region_inside_itself_is_refused() {
    let mut func = parse("kernel @f(%c: bool = v0: bool) { if v0 { yield } else { yield } yield }").expect("right");
    let op = func.regions[func.body].ops[0];
    func.ops[op].regions[1] = func.body;
    let text = print_errors(&func, &verify::violations(&func));
    assert!(text.contains("error: region0 stands in more than one place"), "{text}");
}

#[test]
fn an_op_in_two_places_is_refused() {
    let mut func = parse("kernel @f() { v0: i32 = program_id 0 yield }").expect("right");
    let (body, op) = (func.body, func.regions[func.body].ops[0]);
    func.regions[body].ops.insert(0, op);
    let found = verify::violations(&func);
    assert!(found.iter().any(|v| v.message == "op0 stands in more than one place"), "{found:?}");
}

#[test]
fn a_value_that_was_taken_out_is_refused() {
    let mut func = parse("kernel @f() { v0: i32 = program_id 0 v1: i32 = neg v0 yield }").expect("right");
    let body = func.body;
    func.regions[body].ops.remove(0);
    let found = verify::violations(&func);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].message, "v0 is used before its definition");
}

#[test]
fn hints_must_be_as_many_as_flattened_parameters() {
    let mut func = parse("kernel @f(%c: bool = v0: bool) { yield }").expect("right");
    func.hints.clear();
    let found = verify::violations(&func);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].message, "0 hints for 1 flattened parameter");
}

#[test]
fn nesting_is_limited() {
    let text = |n: usize| {
        let (open, close) = ("if v0 {".repeat(n), " yield } else { yield }".repeat(n));
        format!("kernel @f(%c: bool = v0: bool) {{ {open} {close} yield }}")
    };
    let func = parse(&text(verify::MAX_NESTING)).expect("nested as deep as is allowed");
    verify(&func, "parse").expect("nested as deep as is allowed");
    let error = parse(&text(verify::MAX_NESTING + 1)).expect_err("nested too deep").to_string();
    assert!(error.contains("regions are nested more than 128 deep"), "{error}");
    assert!(parse(&text(100_000)).is_err());

    let mut b = tilewright_compiler::tile::Builder::new("deep");
    let c = b.param_scalar("c", DType::Bool, ParamHint::default());
    for _ in 0..=verify::MAX_NESTING {
        b.begin_if(c).expect("a scalar condition");
    }
    for _ in 0..=verify::MAX_NESTING {
        b.begin_else(&[]);
        b.end_if(&[]).expect("no results");
    }
    let found = verify::violations(&b.finish());
    assert!(found.iter().all(|v| v.message == "regions are nested more than 128 deep"), "{found:?}");
    assert!(!found.is_empty());
}

#[test]
fn all_errors_are_collected_in_one() {
    let func = parse("kernel @f() { v0: i32 = program_id 3 v1: f32 = neg v0 yield v1 }").expect("right");
    let Err(Error::Verify { function, stage, diagnostics }) = verify(&func, "test") else {
        panic!("the function is not valid");
    };
    assert_eq!((&function[..], &stage[..], diagnostics.len()), ("f", "test", 3));
    assert!(diagnostics[0].message.contains("in `v0: i32 = program_id 3`"), "{diagnostics:?}");
}
