//! What the analyses claim is checked against every element of every value, in every iteration, of random functions.

use super::axis::{AxisFacts, axis_info};
use super::int;
use super::range::{Range, ranges};
use super::testing::{Generator, Machine, Rng, lines, seeds};
use crate::tile::{Constant, Elem, Function, Shape, TileType, Value};

fn check_range(ty: &TileType, range: Option<Range>, tile: &[u64]) -> Result<(), String> {
    let Elem::Scalar(d) = ty.elem else { return Ok(()) };
    let Some(range) = range else { return Ok(()) };
    let outside =
        tile.iter().filter_map(|&bits| int::of_constant(d, Constant(bits))).find(|v| *v < range.lo || *v > range.hi);
    outside.map_or(Ok(()), |v| Err(format!("{v} is not in {range:?}")))
}

/// Checks the definition of each fact, literally.
fn check_axis(ty: &TileType, facts: &AxisFacts, tile: &[u64]) -> Result<(), String> {
    let shape = if ty.is_scalar() { Shape::from([1]) } else { ty.shape.clone() };
    let (unit, mask) = match ty.elem {
        Elem::Ptr(d) => (d.bytes() as u64, u64::MAX),
        Elem::Scalar(d) => (1, u64::MAX >> (64 - d.bits())),
    };
    if let Some(constant) = facts.constant {
        let bits = int::to_constant(ty.dtype(), constant.into()).0;
        if tile.iter().any(|&x| x != bits) {
            return Err(format!("not {constant} everywhere"));
        }
    }
    let is_number = ty.elem.is_ptr() || ty.dtype().is_int();
    for axis in 0..shape.rank() {
        let (c, k) = (facts.contiguity[axis] as usize, facts.constancy[axis] as usize);
        let n = shape.dims()[axis];
        if n % c != 0 || n % k != 0 {
            return Err(format!("axis {axis}: runs of {c} and {k} do not divide the extent {n}"));
        }
        for line in lines(&shape, axis) {
            let line: Vec<u64> = line.map(|i| tile[i]).collect();
            for run in line.chunks(k) {
                if run.iter().any(|&x| x != run[0]) {
                    return Err(format!("axis {axis}: constancy {k} does not hold of {line:?}"));
                }
            }
            if !is_number {
                continue;
            }
            for run in line.chunks(c) {
                if run.windows(2).any(|w| w[1] != w[0].wrapping_add(unit) & mask) {
                    return Err(format!("axis {axis}: contiguity {c} does not hold of {line:?}"));
                }
                if run[0] % facts.divisibility[axis] != 0 {
                    return Err(format!(
                        "axis {axis}: {} does not divide {line:?} in runs of {c}",
                        facts.divisibility[axis]
                    ));
                }
            }
        }
    }
    Ok(())
}

/// How many values had a fact worth having: a test of nothing but "nothing known" would show little.
#[derive(Default, Debug)]
struct Strength {
    values: usize,
    contiguous: usize,
    divisible: usize,
    constant_runs: usize,
    bounded: usize,
}

fn check(seed: u64, func: &Function, runs: usize, strength: &mut Strength) {
    let (axis, range) = (axis_info(func), ranges(func));
    for value in func.values.keys() {
        let (facts, ty) = (axis.of(value), func.ty(value));
        strength.values += 1;
        strength.contiguous += usize::from(facts.contiguity.iter().any(|&c| c > 1));
        strength.divisible += usize::from(facts.divisibility.iter().any(|&d| d > 8));
        strength.constant_runs += usize::from(facts.constancy.iter().any(|&k| k > 1));
        strength.bounded += usize::from(range.of(value).is_some_and(|r| r != Range::full(ty.dtype())));
    }
    let mut rng = Rng::new(seed ^ 0x5eed);
    for _ in 0..runs {
        let args = Generator::arguments(func, &mut rng);
        let program = [0; 3].map(|_| rng.pick(&[0, 1, 5, 1 << 20, i32::MAX - 1]));
        let mut failure = None;
        Machine::run(func, &args, program, &mut |value: Value, tile: &[u64]| {
            let ty = func.ty(value);
            let checked = check_axis(ty, axis.of(value), tile).and_then(|()| check_range(ty, range.of(value), tile));
            if let Err(what) = checked
                && failure.is_none()
            {
                failure = Some(format!("{value}: {ty}: {what}\nclaimed: {:?}", axis.of(value)));
            }
        });
        if let Some(failure) = failure {
            panic!("seed {seed}, program {program:?}, arguments {args:?}: {failure}\n{}", listing(func, &axis));
        }
    }
}

/// The ops of a function, one a line, with what is claimed of their results.
fn listing(func: &Function, axis: &super::AxisInfo) -> String {
    let mut text = String::new();
    func.walk(func.body, &mut |op| {
        let data = &func.ops[op];
        let results = data.results.iter().map(|&v| format!("{v}: {} {:?}", func.ty(v), axis.of(v)));
        let results = results.collect::<Vec<_>>().join(", ");
        text += &format!("{:?} {:?} -> {results}\n", data.op, data.operands);
    });
    text
}

#[test]
fn claims_hold_in_random_functions() {
    let mut strength = Strength::default();
    for seed in seeds(0, 1500) {
        let ops = [4, 8, 16, 40][seed as usize % 4];
        check(seed, &Generator::function(seed, ops), 6, &mut strength);
    }
    let Strength { values, contiguous, divisible, constant_runs, bounded } = strength;
    println!("{strength:?}");
    assert!(contiguous * 30 > values, "too few contiguous tiles of {values}: {contiguous}");
    assert!(divisible * 6 > values, "too few divisible values of {values}: {divisible}");
    assert!(constant_runs * 15 > values, "too few runs of equal elements in {values}: {constant_runs}");
    assert!(bounded * 5 > values, "too few bounded values of {values}: {bounded}");
}
