//! What the passes share: a table of replaced values, applied as a pass walks the function once, and fresh ops.

use crate::entity::Entity;
use crate::error::Loc;
use crate::tile::{Constant, Function, Op, OpId, Region, TileType, Value};

/// Which value stands in for which. Definitions come before uses, so one walk in order sees every replacement in time.
pub(super) struct Subst(Vec<Option<Value>>);

impl Subst {
    pub(super) fn new(func: &Function) -> Self {
        Self(vec![None; func.values.len()])
    }

    /// From now on `to` is used where `from` was.
    pub(super) fn set(&mut self, from: Value, to: Value) {
        let to = self.resolve(to);
        assert!(to != from, "a value is not replaced by itself");
        if self.0.len() <= from.index() {
            self.0.resize(from.index() + 1, None);
        }
        self.0[from.index()] = Some(to);
    }

    /// The value that stands in for `value`, maybe itself.
    pub(super) fn resolve(&self, mut value: Value) -> Value {
        while let Some(&Some(to)) = self.0.get(value.index()) {
            value = to;
        }
        value
    }

    /// Replaces the operands of an op.
    pub(super) fn apply(&self, func: &mut Function, op: OpId) {
        for operand in &mut func.ops[op].operands {
            *operand = self.resolve(*operand);
        }
    }
}

/// Appends a new op with one result to a list of ops under construction.
pub(super) fn emit(
    func: &mut Function,
    out: &mut Vec<OpId>,
    op: Op,
    operands: Vec<Value>,
    ty: TileType,
    loc: Loc,
) -> Value {
    let id = func.create_op(op, operands, vec![ty], Vec::new(), loc);
    out.push(id);
    func.ops[id].results[0]
}

/// Appends a constant.
pub(super) fn emit_const(func: &mut Function, out: &mut Vec<OpId>, ty: TileType, value: Constant, loc: Loc) -> Value {
    emit(func, out, Op::Const(value), Vec::new(), ty, loc)
}

/// A pass that goes through a function once, innermost regions first, and makes the list of each region's ops anew.
pub(super) trait Walk {
    /// The function.
    fn func(&mut self) -> &mut Function;

    /// Called after the walk through `inner`, a region of op `id`, which lies in `outer`. `out` are the ops of `outer` so far.
    fn left(&mut self, _id: OpId, _inner: Region, _outer: Region, _out: &mut Vec<OpId>) {}

    /// Called for each op, after the walk through its regions. What is put into `out` comes before it.
    fn op(&mut self, _id: OpId, _out: &mut Vec<OpId>) {}

    /// The walk, from `region` on.
    fn walk(&mut self, region: Region) {
        let ops = std::mem::take(&mut self.func().regions[region].ops);
        let mut out = Vec::with_capacity(ops.len());
        for id in ops {
            for inner in self.func().ops[id].regions.clone() {
                self.walk(inner);
                self.left(id, inner, region, &mut out);
            }
            self.op(id, &mut out);
            out.push(id);
        }
        self.func().regions[region].ops = out;
    }
}
