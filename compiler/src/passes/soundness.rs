//! Passes keep what random functions store, bit for bit.

use super::{by_name, names, optimize};
use crate::analysis::testing::{Generator, Machine, Rng, seeds};
use crate::dtype::DType;
use crate::tile::generate::{Config, random_function};
use crate::tile::{BinaryOp, Builder, Function, ParamHint};

/// Runs both functions on arguments that keep to the hints, and compares what they store.
fn same_stores(seed: u64, what: &str, before: &Function, after: &Function) {
    let mut rng = Rng::new(seed ^ 0xa11);
    for _ in 0..4 {
        let args = Generator::arguments(before, &mut rng);
        let program = [0; 3].map(|_| rng.pick(&[0, 1, 5, 1 << 20, i32::MAX - 1]));
        let expected = Machine::run(before, &args, program, &mut |_, _| {});
        let got = Machine::run(after, &args, program, &mut |_, _| {});
        assert_eq!(expected, got, "seed {seed}: {what} changes what is stored, for {args:?} in program {program:?}");
    }
}

fn valid(func: &Function, what: &str) {
    if let Err(broken) = crate::tile::verify::verify(func, what) {
        panic!("{broken}");
    }
}

#[test]
fn each_pass_keeps_what_is_stored() {
    for seed in seeds(0, 400) {
        let func = Generator::function(seed, [6, 12, 30][seed as usize % 3]);
        valid(&func, "generated");
        for name in names() {
            let mut after = func.clone();
            by_name(name).expect("a pass has its name")(&mut after);
            valid(&after, name);
            same_stores(seed, name, &func, &after);
        }
    }
}

#[test]
fn all_passes_together_keep_what_is_stored_and_come_to_an_end() {
    let (mut before, mut after) = (0, 0);
    for seed in seeds(10_000, 600) {
        let func = Generator::function(seed, [6, 12, 30][seed as usize % 3]);
        let mut optimized = func.clone();
        optimize(&mut optimized).expect("valid IR after every pass");
        valid(&optimized, "all passes");
        same_stores(seed, "all passes", &func, &optimized);
        func.walk(func.body, &mut |_| before += 1);
        optimized.walk(optimized.body, &mut |_| after += 1);
    }
    assert!(after * 3 < before * 2, "random functions shrink by a third: {before} ops to {after}");
}

/// Loops in loops, each carrying what the outer one carries: the analyses sweep a fixed number of times, not once for
/// each combination.
#[test]
fn deep_nests_take_linear_time() {
    let mut b = Builder::new("nest");
    let n = b.param_scalar("n", DType::I32, ParamHint::default());
    let p = b.param_ptr("p", DType::I32, ParamHint::default());
    let mut carried = vec![b.const_i64(DType::I32, 1 << 20).expect("a constant"), n];
    let step = b.const_i64(DType::I32, 3).expect("a constant");
    const DEPTH: usize = 100;
    for _ in 0..DEPTH {
        let (iv, inside) = b.begin_for(n, carried[1], step, &carried).expect("a loop");
        carried = vec![b.binary(BinaryOp::Add, inside[0], iv).expect("a sum"), inside[1]];
        carried[1] = b.binary(BinaryOp::Mul, inside[1], carried[0]).expect("a product");
    }
    for _ in 0..DEPTH {
        carried.swap(0, 1);
        carried = b.end_for(&carried).expect("a body");
    }
    b.store(p, carried[0], None).expect("a store");
    let mut func = b.finish();
    let start = std::time::Instant::now();
    let facts = crate::analysis::describe(&func);
    assert!(facts.lines().count() > 5 * DEPTH, "{facts}");
    optimize(&mut func).expect("valid IR after every pass");
    // A second is hundreds of times what it takes, and far less than exponential time would.
    assert!(start.elapsed().as_secs() < 1, "{:?}", start.elapsed());
}

#[test]
fn every_op_stays_valid() {
    for seed in seeds(0, 400) {
        let func = random_function(seed, &Config { ops: 40, ..Config::default() });
        assert!(!crate::analysis::describe(&func).is_empty());
        for name in names() {
            let mut after = func.clone();
            by_name(name).expect("a pass has its name")(&mut after);
            valid(&after, name);
        }
        let mut optimized = func.clone();
        optimize(&mut optimized).expect("valid IR after every pass");
    }
}
