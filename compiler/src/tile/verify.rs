//! The verifier: what must hold of a [`Function`] between any two stages.
//!
//! The rules, all of which are checked so that every mistake is reported at once:
//!
//! **Structure.**
//! 1. Every op, value and region referred to exists.
//! 2. An op stands in one place of one region; a region belongs to one op, or is the body. So nothing contains itself.
//! 3. Regions are nested at most [`MAX_NESTING`] deep.
//! 4. `for` has one region, `while` and `if` have two, every other op none.
//! 5. A region ends in its one terminator: the first region of `while` in `condition`, every other in `yield`.
//! 6. Every result and every region parameter knows that it is defined there, hence it is defined once.
//!
//! **Values.**
//! 7. A value is used after its definition, in the region of the definition or one inside it.
//! 8. Tile extents are powers of two, ranks and sizes within the limits of [`super::Shape`].
//! 9. The bits of a constant fit its type.
//! 10. Operands, results and attributes of each op follow the typing rules of [`rules::check`].
//!
//! **Regions.**
//! 11. `for` has the parameters (induction variable of the bounds' type, carried values), both regions of `while` the
//!     carried values, those of `if` none.
//! 12. `yield` gives what the op around it carries or results in; that of the body gives nothing.
//!
//! **Parameters.**
//! 13. The body's parameters are those of the kernel's parameters, flattened as [`ParamKind`] says, with its types.
//! 14. There is one hint for each flattened parameter. A divisor is a power of two; a known value is of an integer, in
//!     the range of its type, and a multiple of the divisor; alias classes are of addresses.

use super::function::{Function, OpId, ParamHint, ParamKind, Region, Value, ValueDef};
use super::ops::{Constant, Op};
use super::print::{self, Notes};
use super::rules;
use super::types::{Elem, Shape, TileType};
use crate::dtype::DType;
use crate::entity::Entity;
use crate::error::{Diagnostic, Error, Loc, Result};
use std::collections::HashSet;

/// How deep regions may be nested, so that stages can follow them by recursion.
pub const MAX_NESTING: usize = 128;

/// A broken rule, with the op that breaks it.
#[derive(Clone, PartialEq, Debug)]
pub struct Violation {
    /// The op; `None` for what concerns the parameters or the body as a whole.
    pub op: Option<OpId>,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
    /// Where in the user's source.
    pub loc: Loc,
}

/// Checks every rule; `stage` is what made the function as it is now, for the message.
///
/// # Errors
/// [`Error::Verify`] with all broken rules.
pub fn verify(func: &Function, stage: &str) -> Result<()> {
    let violations = violations(func);
    if violations.is_empty() {
        return Ok(());
    }
    let diagnostic = |v: Violation| {
        let message = match v.op {
            Some(op) => format!("{}\n  in `{}`", v.message, print::print_op(func, op)),
            None => v.message,
        };
        Diagnostic { message, loc: v.loc, help: v.help }
    };
    Err(Error::Verify {
        function: func.name.clone(),
        stage: stage.to_owned(),
        diagnostics: violations.into_iter().map(diagnostic).collect(),
    })
}

/// The broken rules, in the order of the function's text; empty for a valid function. Never panics.
pub fn violations(func: &Function) -> Vec<Violation> {
    let mut verifier = Verifier {
        func,
        found: Vec::new(),
        regions: HashSet::new(),
        ops: HashSet::new(),
        scope: vec![Scope::Unseen; func.values.len()],
    };
    verifier.params();
    verifier.region(func.body, None, 0);
    verifier.found
}

/// The text of a function with what is wrong in it, as comments after the lines that are at fault.
pub fn print_errors(func: &Function, violations: &[Violation]) -> String {
    let mut notes = Notes::default();
    for v in violations {
        let list = match v.op {
            Some(op) => notes.ops.entry(op).or_default(),
            None => &mut notes.function,
        };
        list.push(format!("^ error: {}", v.message));
        list.extend(v.help.as_ref().map(|help| format!("  help: {help}")));
    }
    print::print_with_notes(func, notes)
}

/// Whether a value may be used here.
#[derive(Clone, Copy, PartialEq)]
enum Scope {
    /// Its definition has not been reached.
    Unseen,
    /// It may.
    Open,
    /// The region that defines it has ended.
    Closed,
}

struct Verifier<'a> {
    func: &'a Function,
    found: Vec<Violation>,
    /// Regions and ops met so far.
    regions: HashSet<Region>,
    ops: HashSet<OpId>,
    scope: Vec<Scope>,
}

impl Verifier<'_> {
    fn report(&mut self, op: Option<OpId>, message: impl Into<String>) {
        self.report_help(op, message, None);
    }

    fn report_help(&mut self, op: Option<OpId>, message: impl Into<String>, help: Option<String>) {
        let loc = op.and_then(|op| self.func.ops.get(op)).map_or(Loc::UNKNOWN, |data| data.loc);
        self.found.push(Violation { op, message: message.into(), help, loc });
    }

    // ---- parameters -------------------------------------------------------------------------------------------

    fn params(&mut self) {
        let func = self.func;
        let Some(body) = func.regions.get(func.body) else {
            return; // reported with the body
        };
        let flat = &body.params;
        if func.hints.len() != flat.len() {
            self.report(
                None,
                format!("{} for {}", counted(func.hints.len(), "hint"), counted(flat.len(), "flattened parameter")),
            );
        }
        let expected: usize = func.params.iter().map(|p| p.kind.flat_len()).sum();
        if expected != flat.len() {
            self.report(
                None,
                format!("the parameters stand for {}, but the body has {}", counted(expected, "value"), flat.len()),
            );
        }
        let mut rest = &flat[..];
        for param in &func.params {
            let (values, others) = rest.split_at(rest.len().min(param.kind.flat_len()));
            rest = others;
            self.param(&param.name, &param.kind, values);
        }
        for (&value, hint) in flat.iter().zip(&func.hints) {
            if let Some(data) = func.values.get(value)
                && let Some(problem) = hint_problem(hint, data.ty.elem)
            {
                self.report(None, format!("the hint of {value}: {}: {problem}", data.ty));
            }
        }
    }

    /// Do the values have the types of their kernel parameter?
    fn param(&mut self, name: &str, kind: &ParamKind, values: &[Value]) {
        let rank = match kind {
            ParamKind::View { rank, .. } => usize::from(*rank),
            _ => 1,
        };
        if !(1..=Shape::MAX_RANK).contains(&rank) {
            self.report(None, format!("parameter `{name}` is a view of {rank} dimensions"));
        }
        let mut stride = None;
        for (i, &value) in values.iter().enumerate() {
            let Some(data) = self.func.values.get(value) else {
                continue; // reported with the body
            };
            let (what, expected) = match kind {
                ParamKind::Scalar(dtype) => ("value", TileType::scalar(*dtype)),
                ParamKind::Ptr { dtype } => ("address", TileType::ptr(*dtype, Shape::SCALAR)),
                ParamKind::View { dtype, .. } if i == 0 => ("base", TileType::ptr(*dtype, Shape::SCALAR)),
                ParamKind::View { .. } if i <= rank => ("extent", TileType::scalar(DType::I32)),
                ParamKind::View { .. } => {
                    // The first stride says whether all are `i32` or `i64`.
                    let is_i64 = data.ty == TileType::scalar(DType::I64);
                    let first = if is_i64 { DType::I64 } else { DType::I32 };
                    ("stride", TileType::scalar(*stride.get_or_insert(first)))
                }
            };
            if data.ty != expected {
                let message = format!("the {what} of parameter `{name}` is {value}: {}, expected {expected}", data.ty);
                self.report(None, message);
            }
        }
    }

    // ---- regions ----------------------------------------------------------------------------------------------

    /// Checks a region of `owner` (the body, if none) and all in it.
    fn region(&mut self, region: Region, owner: Option<OpId>, depth: usize) {
        let func = self.func;
        let Some(data) = func.regions.get(region) else {
            return self.report(owner, format!("{region} does not exist"));
        };
        if !self.regions.insert(region) {
            return self.report(owner, format!("{region} stands in more than one place"));
        }
        if depth > MAX_NESTING {
            return self.report(owner, format!("regions are nested more than {MAX_NESTING} deep"));
        }
        let mut defined = Vec::new();
        for (index, &value) in data.params.iter().enumerate() {
            let def = ValueDef::Param { region, index: index as u32 };
            self.define(value, def, owner, &mut defined);
        }
        for (i, &id) in data.ops.iter().enumerate() {
            let Some(op) = func.ops.get(id) else {
                self.report(owner, format!("{id} does not exist"));
                continue;
            };
            if !self.ops.insert(id) {
                self.report(Some(id), format!("{id} stands in more than one place"));
                continue;
            }
            let last = i + 1 == data.ops.len();
            if op.op.is_terminator() && !last {
                self.report(Some(id), format!("`{}` is not the last op of its region", op.op.mnemonic()));
            }
            self.op(id, owner, last, region, depth);
            for (index, &value) in op.results.iter().enumerate() {
                self.define(value, ValueDef::Result { op: id, index: index as u32 }, Some(id), &mut defined);
            }
        }
        let terminator = if self.is_while_condition(region, owner) { "condition" } else { "yield" };
        let end = data.ops.last().copied();
        let is_ended = end.and_then(|id| func.ops.get(id)).is_some_and(|op| op.op.mnemonic() == terminator);
        if !is_ended {
            let message = match end {
                Some(_) => format!("the region ends here without `{terminator}`"),
                None => format!("a region is empty: it must end in `{terminator}`"),
            };
            self.report(end.or(owner), message);
        }
        for value in defined {
            self.scope[value.index()] = Scope::Closed;
        }
    }

    fn is_while_condition(&self, region: Region, owner: Option<OpId>) -> bool {
        let op = owner.and_then(|op| self.func.ops.get(op));
        op.is_some_and(|data| data.op == Op::While && data.regions.first() == Some(&region))
    }

    fn define(&mut self, value: Value, def: ValueDef, op: Option<OpId>, defined: &mut Vec<Value>) {
        let Some(data) = self.func.values.get(value) else {
            return self.report(op, format!("{value} does not exist"));
        };
        if data.def != def {
            return self.report(op, format!("{value} is defined here, but says it is defined by {}", origin(data.def)));
        }
        if let Err(why) = data.ty.shape.check() {
            let help = "tile extents are powers of two; use a larger tile and a mask, or a view, for ragged sizes";
            self.report_help(op, format!("the type of {value}: {why}"), Some(help.into()));
        }
        self.scope[value.index()] = Scope::Open;
        defined.push(value);
    }

    // ---- ops --------------------------------------------------------------------------------------------------

    /// Checks one op: `owner` is the op around it, `last` whether it ends `region`.
    fn op(&mut self, id: OpId, owner: Option<OpId>, last: bool, region: Region, depth: usize) {
        let func = self.func;
        let data = &func.ops[id];
        for &value in &data.operands {
            if func.values.get(value).is_none() {
                self.report(Some(id), format!("{value} does not exist"));
                continue;
            }
            match self.scope[value.index()] {
                Scope::Open => {}
                Scope::Closed => {
                    self.report(Some(id), format!("{value} is used outside of the region that defines it"));
                }
                Scope::Unseen => self.report_help(
                    Some(id),
                    format!("{value} is used before its definition"),
                    Some("what defines it comes later, or was taken out of the function".into()),
                ),
            }
        }
        let (operands, results) = (self.types(&data.operands), self.types(&data.results));
        if let (Some(operands), Some(results)) = (&operands, &results) {
            if let Err(problem) = rules::check(&data.op, operands, results) {
                self.report_help(Some(id), problem.message, problem.help);
            }
            if let (Op::Const(c), [ty]) = (&data.op, &results[..])
                && let Elem::Scalar(dtype) = ty.elem
                && !fits(*c, dtype)
            {
                self.report(Some(id), format!("the bits {:#x} do not fit {dtype}", c.0));
            }
        }
        let count = data.op.info().regions;
        if data.regions.len() != count {
            let message =
                format!("`{}` has {}, expected {count}", data.op.mnemonic(), counted(data.regions.len(), "region"));
            self.report(Some(id), message);
        }
        if let Some(operands) = &operands {
            self.region_params(id, operands);
            if last && data.op == Op::Yield && !self.is_while_condition(region, owner) {
                self.yielded(id, owner, operands);
            }
        }
        for &inner in &data.regions {
            self.region(inner, Some(id), depth + 1);
        }
    }

    /// The types of values; `None` if one does not exist or has a shape that the typing rules cannot reckon with.
    fn types(&self, values: &[Value]) -> Option<Vec<TileType>> {
        let ty = |&v: &Value| self.func.values.get(v).filter(|d| d.ty.shape.check().is_ok()).map(|d| d.ty.clone());
        values.iter().map(ty).collect()
    }

    /// Do the regions of a loop or branch have the parameters they must?
    fn region_params(&mut self, id: OpId, operands: &[TileType]) {
        let data = &self.func.ops[id];
        let expected: Vec<TileType> = match data.op {
            // The induction variable is of the type of the bounds, the rest of those of the initial values.
            Op::For if operands.len() >= 3 => [&operands[..1], &operands[3..]].concat(),
            Op::While => operands.to_vec(),
            Op::If => Vec::new(),
            _ => return,
        };
        for &region in &data.regions {
            let Some(params) = self.func.regions.get(region).map(|r| &r.params) else {
                continue; // reported with the region
            };
            if params.len() != expected.len() {
                let message = format!(
                    "a region of `{}` has {}, expected {}",
                    data.op.mnemonic(),
                    counted(params.len(), "parameter"),
                    expected.len()
                );
                self.report(Some(id), message);
                continue;
            }
            for (&param, expected) in params.iter().zip(&expected) {
                if let Some(found) = self.func.values.get(param)
                    && found.ty != *expected
                {
                    self.report(Some(id), format!("the region's parameter {param}: {} must be {expected}", found.ty));
                }
            }
        }
    }

    /// Does `yield` give what the op around it expects?
    fn yielded(&mut self, id: OpId, owner: Option<OpId>, operands: &[TileType]) {
        let Some(owner) = owner.and_then(|op| self.func.ops.get(op)) else {
            if !operands.is_empty() {
                self.report(
                    Some(id),
                    format!("the kernel gives {}, but has no results", counted(operands.len(), "value")),
                );
            }
            return;
        };
        let Some(expected) = self.types(&owner.results) else {
            return; // reported with the results
        };
        let what = owner.op.mnemonic();
        if operands.len() != expected.len() {
            let message =
                format!("`yield` gives {} to `{what}`, expected {}", counted(operands.len(), "value"), expected.len());
            return self.report(Some(id), message);
        }
        for (i, (found, expected)) in operands.iter().zip(&expected).enumerate() {
            if found != expected {
                self.report(Some(id), format!("`yield` gives {found} as value {i} of `{what}`, expected {expected}"));
            }
        }
    }
}

/// `1 value`, `2 values`.
fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

fn origin(def: ValueDef) -> String {
    match def {
        ValueDef::Result { op, index } => format!("{op} as result {index}"),
        ValueDef::Param { region, index } => format!("{region} as parameter {index}"),
    }
}

/// Are the bits those of an element of this type?
fn fits(c: Constant, dtype: DType) -> bool {
    dtype.bits() == 64 || c.0 >> dtype.bits() == 0
}

fn hint_problem(hint: &ParamHint, elem: Elem) -> Option<String> {
    let ParamHint { divisor, known, alias_class } = *hint;
    if !divisor.is_power_of_two() {
        return Some(format!("divisor {divisor} is not a power of two"));
    }
    if alias_class != 0 && !elem.is_ptr() {
        return Some("only addresses have alias classes".into());
    }
    let is_int = matches!(elem, Elem::Scalar(d) if d.is_int());
    if divisor != 1 && !elem.is_ptr() && !is_int {
        return Some("only integers and addresses have divisors".into());
    }
    let known = known?;
    let Elem::Scalar(dtype) = elem else {
        return Some("the value of an address is never known".into());
    };
    if !is_int && dtype != DType::Bool {
        return Some("only values of integers are known".into());
    }
    if Constant::from_i64(dtype, known).as_i64(dtype) != Some(known) {
        return Some(format!("the known value {known} is beyond the range of {dtype}"));
    }
    if known % i64::from(divisor) != 0 {
        return Some(format!("the known value {known} is not a multiple of {divisor}"));
    }
    None
}
