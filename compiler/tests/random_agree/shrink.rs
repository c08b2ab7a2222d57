//! Makes a kernel that fails smaller while it fails in the same way.

use crate::families::Typed;
use std::collections::HashSet;
use tilewright_compiler::passes;
use tilewright_compiler::tile::{Constant, Function, Op, OpId, Region, Value, verify};

/// Tries at most this many smaller kernels.
const MAX_TRIES: usize = 3000;

/// The smallest kernel found of which `fails` still holds.
pub fn shrink(typed: &Typed, fails: &dyn Fn(&Typed) -> bool) -> Typed {
    let mut best = typed.clone();
    let mut tries = 0;
    loop {
        let before = tries;
        let mut smaller = false;
        let mut ops = Vec::new();
        best.case.func.walk(best.case.func.body, &mut |op| ops.push(op));
        for op in ops.into_iter().rev() {
            for change in [without, as_constant, as_operand] {
                let mut func = best.case.func.clone();
                if !change(&mut func, op) {
                    continue;
                }
                tidy(&mut func);
                if size(&func) >= size(&best.case.func) || verify(&func, "shrinking").is_err() {
                    continue;
                }
                tries += 1;
                let mut candidate = best.clone();
                candidate.case.func = func;
                if fails(&candidate) {
                    best = candidate;
                    smaller = true;
                    break;
                }
                if tries > MAX_TRIES {
                    return best;
                }
            }
        }
        if !smaller || tries == before {
            return best;
        }
    }
}

fn tidy(func: &mut Function) {
    if let Some(dce) = passes::by_name("dce") {
        dce(func);
    }
}

/// Ops, those that are not constants counted twice.
fn size(func: &Function) -> usize {
    let mut n = 0;
    func.walk(func.body, &mut |op| n += if matches!(func.ops[op].op, Op::Const(_)) { 1 } else { 2 });
    n
}

fn region_of(func: &Function, op: OpId) -> Option<(Region, usize)> {
    func.regions.keys().find_map(|r| func.regions[r].ops.iter().position(|&o| o == op).map(|i| (r, i)))
}

/// What addresses of stores and the ends of `while` loops depend on: without it stores might collide, or loops not end.
fn kept(func: &Function) -> HashSet<Value> {
    let mut todo = Vec::new();
    func.walk(func.body, &mut |op| {
        let data = &func.ops[op];
        match data.op {
            Op::Store => todo.push(data.operands[0]),
            Op::ViewStore { rank } => todo.extend(&data.operands[..1 + 3 * usize::from(rank)]),
            Op::While => {
                todo.extend(&func.ops[func.terminator(data.regions[0])].operands);
                todo.extend(
                    func.ops[func.terminator(data.regions[1])].operands.iter().filter(|&&v| func.ty(v).is_scalar()),
                );
            }
            _ => {}
        }
    });
    let mut kept = HashSet::new();
    while let Some(v) = todo.pop() {
        if kept.insert(v)
            && let Some(op) = func.def_op(v)
        {
            todo.extend(&func.ops[op].operands);
        }
    }
    kept
}

/// Drops an op that stores or has regions; constants stand for what it gave.
fn without(func: &mut Function, op: OpId) -> bool {
    let data = func.ops[op].clone();
    if !matches!(data.op, Op::Store | Op::ViewStore { .. } | Op::For | Op::While | Op::If) {
        return false;
    }
    let kept = kept(func);
    if data.results.iter().any(|v| kept.contains(v) || func.ty(*v).elem.is_ptr()) {
        return false;
    }
    let Some((region, at)) = region_of(func, op) else { return false };
    func.regions[region].ops.remove(at);
    for &v in &data.results {
        let ty = func.ty(v).clone();
        let c = func.create_op(Op::Const(Constant(0)), vec![], vec![ty], vec![], data.loc);
        func.regions[region].ops.insert(at, c);
        let new = func.ops[c].results[0];
        func.replace_uses(v, new);
    }
    true
}

/// Puts a constant in place of what an op computes.
fn as_constant(func: &mut Function, op: OpId) -> bool {
    let data = &func.ops[op];
    let pure = data.results.len() == 1 && data.regions.is_empty() && !matches!(data.op, Op::Const(_));
    if !pure || kept(func).contains(&data.results[0]) || func.ty(data.results[0]).elem.is_ptr() {
        return false;
    }
    func.ops[op].op = Op::Const(Constant(0));
    func.ops[op].operands.clear();
    true
}

/// Puts an operand of the same type in place of what an op computes.
fn as_operand(func: &mut Function, op: OpId) -> bool {
    let data = &func.ops[op];
    let (&[result], true) = (&data.results[..], data.regions.is_empty()) else { return false };
    if kept(func).contains(&result) {
        return false;
    }
    let Some(&x) = data.operands.iter().find(|&&x| func.ty(x) == func.ty(result)) else { return false };
    func.replace_uses(result, x);
    true
}
