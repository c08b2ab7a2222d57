//! What each op is called, what it does besides computing results, and how many operands, results and regions it has: one
//! row an op. The types are in [`super::rules`].
//!
//! Printer and parser ask for the name, the passes for the effect, rules and verifier for the counts. A new op does not
//! compile until it has its row, and none is pure unless its row says so.

use super::ops::{BinaryOp, Cmp, Constant, DotPrecision, Op, ReduceOp, UnaryOp};
use std::ops::RangeInclusive;

/// What an op does besides computing its results.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Effect {
    /// Nothing: it may be removed when its results are unused, repeated, moved, or merged with an equal one.
    None,
    /// Reads global memory.
    Read,
    /// Writes global memory.
    Write,
    /// Runs regions.
    Control,
    /// Ends a region.
    End,
}

/// A row of the table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Info {
    /// The mnemonic in IR text.
    pub name: &'static str,
    /// What it does besides computing its results.
    pub effect: Effect,
    /// Does element `i` of the result depend on element `i` of each operand alone?
    pub elementwise: bool,
    /// How many operands it takes; `usize::MAX` for as many as there are.
    pub operands: RangeInclusive<usize>,
    /// How many results it gives.
    pub results: RangeInclusive<usize>,
    /// How many regions it has.
    pub regions: usize,
}

impl Info {
    /// A row of an op without effect, with so many operands and one result.
    const fn pure(name: &'static str, operands: usize) -> Self {
        let operands = operands..=operands;
        Self { name, effect: Effect::None, elementwise: false, operands, results: 1..=1, regions: 0 }
    }

    /// The same, of each element by itself.
    const fn elementwise(name: &'static str, operands: usize) -> Self {
        let operands = operands..=operands;
        Self { name, effect: Effect::None, elementwise: true, operands, results: 1..=1, regions: 0 }
    }

    const fn read(name: &'static str, operands: RangeInclusive<usize>) -> Self {
        Self { name, effect: Effect::Read, elementwise: false, operands, results: 1..=1, regions: 0 }
    }

    const fn write(name: &'static str, operands: RangeInclusive<usize>) -> Self {
        Self { name, effect: Effect::Write, elementwise: false, operands, results: 0..=0, regions: 0 }
    }

    const fn control(name: &'static str, operands: RangeInclusive<usize>, regions: usize) -> Self {
        Self { name, effect: Effect::Control, elementwise: false, operands, results: 0..=ANY, regions }
    }

    const fn end(name: &'static str, operands: RangeInclusive<usize>) -> Self {
        Self { name, effect: Effect::End, elementwise: false, operands, results: 0..=0, regions: 0 }
    }
}

const ANY: usize = usize::MAX;

/// A base, three numbers for each dimension, and what follows.
const fn view(rank: u8, more: RangeInclusive<usize>) -> RangeInclusive<usize> {
    let n = 1 + 3 * rank as usize;
    n + *more.start()..=n + *more.end()
}

impl Op {
    /// The op's row.
    pub const fn info(&self) -> Info {
        match self {
            Op::ProgramId { .. } => Info::pure("program_id", 0),
            Op::NumPrograms { .. } => Info::pure("num_programs", 0),
            Op::Const(_) => Info::pure("const", 0),
            Op::Arange { .. } => Info::pure("arange", 0),
            Op::Unary(op) => Info::elementwise(op.name(), 1),
            Op::Binary(op) => Info::elementwise(op.name(), 2),
            Op::Compare(op) => Info::elementwise(op.name(), 2),
            Op::Select => Info::elementwise("select", 3),
            Op::Fma => Info::elementwise("fma", 3),
            Op::Cast => Info::elementwise("cast", 1),
            Op::Bitcast => Info::elementwise("bitcast", 1),
            Op::Broadcast => Info::pure("broadcast", 1),
            Op::Reshape => Info::pure("reshape", 1),
            Op::Permute(_) => Info::pure("permute", 1),
            Op::PtrAdd => Info::elementwise("ptr_add", 2),
            Op::Load => Info::read("load", 1..=3),
            Op::Store => Info::write("store", 2..=3),
            Op::ViewLoad { rank } => Info::read("view_load", view(*rank, 0..=1)),
            Op::ViewStore { rank } => Info::write("view_store", view(*rank, 1..=1)),
            Op::Reduce { op, .. } => Info::pure(
                match op {
                    ReduceOp::Sum => "reduce_sum",
                    ReduceOp::Prod => "reduce_prod",
                    ReduceOp::Min => "reduce_min",
                    ReduceOp::Max => "reduce_max",
                    ReduceOp::And => "reduce_and",
                    ReduceOp::Or => "reduce_or",
                    ReduceOp::Xor => "reduce_xor",
                },
                1,
            ),
            Op::ArgReduce { max: true, .. } => Info::pure("argmax", 1),
            Op::ArgReduce { max: false, .. } => Info::pure("argmin", 1),
            Op::Dot { .. } => Info::pure("dot", 3),
            Op::For => Info::control("for", 3..=ANY, 1),
            Op::While => Info::control("while", 0..=ANY, 2),
            Op::If => Info::control("if", 1..=1, 2),
            Op::Yield => Info::end("yield", 0..=ANY),
            Op::Condition => Info::end("condition", 1..=1),
        }
    }

    /// The mnemonic in IR text.
    pub fn mnemonic(&self) -> String {
        self.info().name.into()
    }

    /// May the op be removed when its results are unused, repeated, moved, or merged with an equal one?
    pub const fn is_pure(&self) -> bool {
        matches!(self.info().effect, Effect::None)
    }

    /// Does the op read global memory?
    pub const fn reads_memory(&self) -> bool {
        matches!(self.info().effect, Effect::Read)
    }

    /// Does the op write global memory?
    pub const fn writes_memory(&self) -> bool {
        matches!(self.info().effect, Effect::Write)
    }

    /// Does the op end a region?
    pub const fn is_terminator(&self) -> bool {
        matches!(self.info().effect, Effect::End)
    }

    /// Does element `i` of the result depend on element `i` of each operand alone?
    pub const fn is_elementwise(&self) -> bool {
        self.info().elementwise
    }
}

/// One op of every kind, with attributes of no matter: what a mnemonic may mean.
pub fn every_op() -> Vec<Op> {
    let mut ops = vec![
        Op::ProgramId { axis: 0 },
        Op::NumPrograms { axis: 0 },
        Op::Const(Constant(0)),
        Op::Arange { start: 0 },
        Op::Select,
        Op::Fma,
        Op::Cast,
        Op::Bitcast,
        Op::Broadcast,
        Op::Reshape,
        Op::Permute(Vec::new()),
        Op::PtrAdd,
        Op::Load,
        Op::Store,
        Op::ViewLoad { rank: 1 },
        Op::ViewStore { rank: 1 },
        Op::ArgReduce { max: true, axis: 0 },
        Op::ArgReduce { max: false, axis: 0 },
        Op::Dot { precision: DotPrecision::Ieee },
        Op::For,
        Op::While,
        Op::If,
        Op::Yield,
        Op::Condition,
    ];
    ops.extend(UnaryOp::ALL.iter().map(|&op| Op::Unary(op)));
    ops.extend(BinaryOp::ALL.iter().map(|&op| Op::Binary(op)));
    ops.extend(Cmp::ALL.iter().map(|&op| Op::Compare(op)));
    ops.extend(ReduceOp::ALL.iter().map(|&op| Op::Reduce { op, axis: 0 }));
    ops
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_are_unique_and_read_as_they_are_written() {
        let ops = every_op();
        let names: HashSet<_> = ops.iter().map(|op| op.info().name).collect();
        assert_eq!(names.len(), ops.len());
        for op in ReduceOp::ALL {
            assert_eq!(Op::Reduce { op: *op, axis: 0 }.info().name, format!("reduce_{op}"));
        }
    }

    #[test]
    fn every_op_has_its_line() {
        // By the variants of the enum as it is written, so that one left out of the list of all is missed.
        let source = include_str!("ops.rs");
        let body = source.split_once("pub enum Op {").and_then(|(_, s)| s.split_once("\n}\n")).expect("the enum").0;
        let word = |l: &str| l.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default().to_owned();
        let variants: HashSet<String> = body
            .lines()
            .filter_map(|l| l.strip_prefix("    ").filter(|l| l.starts_with(|c: char| c.is_ascii_uppercase())))
            .map(word)
            .collect();
        let here: HashSet<String> = every_op().iter().map(|op| word(&format!("{op:?}"))).collect();
        assert_eq!(variants, here);
    }

    #[test]
    fn rows_agree_with_themselves() {
        for op in every_op() {
            let info = op.info();
            let one = info.results == (1..=1);
            assert!(one || info.effect != Effect::None, "{op:?}: what computes nothing and does nothing");
            assert!(!info.elementwise || (op.is_pure() && *info.operands.start() > 0), "{op:?}");
            assert_eq!(info.regions > 0, info.effect == Effect::Control, "{op:?}");
        }
    }
}
