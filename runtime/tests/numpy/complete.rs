//! Does the data have every operation of the language, on every type, and the guide every difference?

use crate::data::{Case, DATA};
use std::collections::{BTreeMap, BTreeSet};
use tilewright_compiler::DType;
use tilewright_compiler::tile::parse::every_op;
use tilewright_compiler::tile::{Op, ReduceOp, TileType, rules};

/// Every way to give an operation tiles of these types, of those with operands of one type.
fn takes(op: &Op, x: DType, y: DType) -> bool {
    let vector = |d: DType| TileType::new(d, [4]);
    let (operands, results) = match op {
        Op::Unary(_) | Op::Cast | Op::Bitcast => (vec![vector(x)], vector(y)),
        Op::Broadcast => (vec![TileType::scalar(x)], vector(y)),
        Op::Reshape => (vec![vector(x)], TileType::new(y, [2, 2])),
        // The builder widens what is summed.
        Op::Reduce { op: ReduceOp::Sum | ReduceOp::Prod, .. } => {
            (vec![vector(rules::sum_dtype(x))], TileType::scalar(y))
        }
        Op::Reduce { .. } | Op::ArgReduce { .. } => (vec![vector(x)], TileType::scalar(y)),
        Op::Binary(_) | Op::Compare(_) => (vec![vector(x); 2], vector(y)),
        Op::Fma => (vec![vector(x); 3], vector(y)),
        Op::Select => (vec![vector(DType::Bool), vector(x), vector(x)], vector(y)),
        Op::Dot { .. } => {
            let square = |d: DType| TileType::new(d, [4, 4]);
            (vec![square(x), square(x), square(y)], square(y))
        }
        Op::Const(_) => (Vec::new(), vector(y)),
        _ => return false,
    };
    rules::check(op, &operands, &[results]).is_ok()
}

/// Types of the operand and of the result of which the shape alone counts.
fn is_movement(op: &Op) -> bool {
    matches!(op, Op::Broadcast | Op::Reshape)
}

#[test]
fn every_operation_has_values() {
    let with_values: BTreeSet<&str> = DATA.cases.iter().map(|c| c.f.as_str()).collect();
    let all: BTreeSet<String> = every_op().iter().map(Op::mnemonic).collect();
    let missing: Vec<&String> = all.iter().filter(|f| !with_values.contains(f.as_str())).collect();
    assert!(missing.is_empty(), "operations without values in tests/golden/values.jsonl: {missing:?}; extend make.py");
}

#[test]
fn every_type_that_an_operation_takes_has_values() {
    let mut have: BTreeMap<&str, BTreeSet<(DType, DType)>> = BTreeMap::new();
    for case in DATA.cases.iter().filter(|c| c.program.is_none()) {
        let y = case.y.dtype;
        // The last operand of `select` is of its type; that of `dot` is the accumulator.
        let x = case.operands().get(usize::from(case.f == "select")).map_or(y, |a| a.dtype);
        have.entry(&case.f).or_default().insert((x, y));
    }
    let mut missing = Vec::new();
    for op in every_op() {
        let f = op.mnemonic();
        for (x, y) in DType::ALL.into_iter().flat_map(|x| DType::ALL.map(|y| (x, y))) {
            let one_type = is_movement(&op) || x == y && matches!(op, Op::Cast | Op::Bitcast);
            let constant = matches!(op, Op::Const(_)) && x != y;
            if takes(&op, x, y) && !one_type && !constant && !have.get(f.as_str()).is_some_and(|t| t.contains(&(x, y)))
            {
                missing.push(format!("{f} of {x} to {y}"));
            }
        }
    }
    assert!(missing.is_empty(), "no values in tests/golden/values.jsonl for {missing:?}; extend make.py");
}

/// The guide's table of differences, and the cases that show them.
#[test]
fn differences_are_in_the_guide() {
    let guide = include_str!("../../../docs/language.md");
    let table = guide.split("## Where it differs from NumPy").nth(1).expect("the guide has a table of differences");
    let rows = table.lines().skip_while(|l| !l.starts_with("|--")).skip(1).take_while(|l| l.starts_with('|'));
    let listed: BTreeSet<&str> = rows.map(|row| row.split('|').nth(1).unwrap_or_default().trim()).collect();
    let shown: BTreeSet<&str> = DATA.cases.iter().filter_map(|c| c.differs.as_deref()).collect();
    assert_eq!(listed, shown, "the guide's table, and the cases with `differs`");
    for case in DATA.cases.iter().filter(|c| c.differs.is_some()) {
        assert!(is_different(case), "{}: there is no difference any more", case.what());
    }
}

/// Is everything that NumPy gives differently another number, or of another type?
fn is_different(case: &Case) -> bool {
    let Some(theirs) = &case.theirs else { return false };
    theirs.elements() == case.at.len()
        && case.at.iter().enumerate().all(|(i, &at)| {
            theirs.dtype != case.y.dtype || !case.close(theirs.word(i), at, crate::Allowance::default())
        })
        && !case.at.is_empty()
}
