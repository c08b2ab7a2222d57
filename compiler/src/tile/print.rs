//! The textual form of a [`Function`]. [`super::parse()`] reads it back.
//!
//! ```text
//! kernel @scale(
//!   %x: view f32 1 = v0: *f32 {div 16, alias 1}, v1: i32, v2: i64 {known 1},
//!   %n: i32 = v3: i32 {div 16},
//! ) fp_fusion {
//!   v4: i32 = program_id 0
//!   v5: f32[64] = const 1.5
//!   v6: f32[64] = view_load v0 dims [v1] strides [v2] at [v4]
//!   v7: f32[64] = mul v6, v5
//!   v8: f32[64] = for v9: i32 = v4 to v3 step v1 carry (v10: f32[64] = v7) {
//!     v11: f32[64] = add v10, v5
//!     yield v11
//!   }
//!   view_store v0 dims [v1] strides [v2] at [v4] value v8
//!   yield
//! }
//! ```
//!
//! - A value is `vN`, N being its number in the arena: printing renumbers nothing. Types are those of
//!   [`super::TileType`]: `i32`, `f16[64, 128]`, `*f32[64]`.
//! - A parameter is `%name: KIND = flattened values`, KIND being `f32`, `*f32` or `view f32 RANK`. Each flattened value
//!   has its type, and in braces what is known of it ([`super::ParamHint`]): `div N`, `known N`, `alias N`.
//! - `@name` and `%name` are `@"any text"` where the name is not made of ASCII letters, digits and `_`.
//! - An op is `results = mnemonic operands attributes`, the results with their types. Attributes: the axis of
//!   `program_id`, the start of `arange`, `axis N` of reductions, `[1, 0]` of `permute`, `precision tf32` of `dot`.
//! - `view_load BASE dims [..] strides [..] at [..] pad V`, `view_store BASE dims [..] strides [..] at [..] value V`.
//! - `for IV: T = LO to HI step STEP carry (NAME: T = INIT, ..) { .. }`,
//!   `while carry (NAME: T = INIT, ..) { .. } do (NAME: T, ..) { .. }`, `if CONDITION { .. } else { .. }`.
//! - A constant is decimal, `true`, `false`, `inf`, `-inf`, `nan`, or in hexadecimal the bits of the element, which is how
//!   floats are printed that a decimal does not give back exactly.
//! - `;` starts a comment, up to the end of the line.
//! - `raw mnemonic attributes (operands) (region parameters) { .. } ..` says any op whatsoever. It is printed
//!   for ops with regions and for view accesses whose parts do not fit together: text for the verifier to refuse.

use super::function::{Function, OpData, OpId, ParamHint, ParamKind, Region, Value};
use super::ops::{Constant, Op};
use super::parse;
use crate::dtype::DType;
use crate::entity::Entity;
use crate::text::quoted;
use std::collections::{HashMap, HashSet};
use std::fmt::{self, Write};

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Printer::new(self).print())
    }
}

/// The text of a function, each op followed by its number, which the text of a schedule names it by, and the place in the user's
/// source that it came from, as a comment.
pub fn print_with_locs(func: &Function) -> String {
    Printer { locs: true, ..Printer::new(func) }.print()
}

/// The text of one op in one line, without what is in its regions. Never fails, however broken the function is.
pub fn print_op(func: &Function, op: OpId) -> String {
    match func.ops.get(op) {
        Some(data) => head(func, data),
        None => format!("{op}, which does not exist"),
    }
}

/// Remarks to be printed as comments inside the text of a function.
#[derive(Default)]
pub(super) struct Notes {
    /// After the line that begins the body.
    pub function: Vec<String>,
    /// After the line of an op.
    pub ops: HashMap<OpId, Vec<String>>,
}

/// The text of a function with remarks in it.
pub(super) fn print_with_notes(func: &Function, notes: Notes) -> String {
    Printer { notes, ..Printer::new(func) }.print()
}

struct Printer<'a> {
    func: &'a Function,
    out: String,
    locs: bool,
    notes: Notes,
    /// Regions begun: each is printed once, so that printing ends even if a broken function contains itself.
    begun: HashSet<Region>,
}

impl<'a> Printer<'a> {
    fn new(func: &'a Function) -> Self {
        Self { func, out: String::new(), locs: false, notes: Notes::default(), begun: HashSet::new() }
    }

    fn print(mut self) -> String {
        let func = self.func;
        self.out.push_str("kernel ");
        self.out.push_str(&name('@', &func.name));
        self.out.push('(');
        self.params();
        self.out.push(')');
        if func.fp_fusion {
            self.out.push_str(" fp_fusion");
        }
        self.out.push_str(" {\n");
        for note in std::mem::take(&mut self.notes.function) {
            self.note(&note, 1);
        }
        self.region(func.body, 1);
        self.out.push_str("}\n");
        self.out
    }

    fn params(&mut self) {
        let func = self.func;
        let flat = func.regions.get(func.body).map_or(&[][..], |r| &r.params);
        let mut next = 0;
        for (i, param) in func.params.iter().enumerate() {
            if i == 0 {
                self.out.push('\n');
            }
            // Values that belong to no parameter (a broken function) are printed with the last one.
            let end =
                if i + 1 == func.params.len() { flat.len() } else { flat.len().min(next + param.kind.flat_len()) };
            let values: Vec<String> = (next..end)
                .map(|i| typed(func, flat[i]) + &hint(func.hints.get(i).copied().unwrap_or_default()))
                .collect();
            next = end;
            let kind = match &param.kind {
                ParamKind::Scalar(dtype) => format!("{dtype}"),
                ParamKind::Ptr { dtype } => format!("*{dtype}"),
                ParamKind::View { dtype, rank } => format!("view {dtype} {rank}"),
            };
            push(&mut self.out, format_args!("  {}: {kind} = {},\n", name('%', &param.name), values.join(", ")));
        }
        if func.params.is_empty() && !flat.is_empty() {
            push(&mut self.out, format_args!("\n  ; of no parameter: {}\n", typed_list(func, flat)));
        }
    }

    /// The ops of a region, one a line.
    fn region(&mut self, region: Region, depth: usize) {
        let Some(data) = self.func.regions.get(region) else {
            return self.note(&format!("{region} does not exist"), depth);
        };
        if !self.begun.insert(region) {
            return self.note(&format!("{region} again"), depth);
        }
        for &op in &data.ops {
            self.op(op, depth);
        }
    }

    fn op(&mut self, id: OpId, depth: usize) {
        let func = self.func;
        self.indent(depth);
        let Some(data) = func.ops.get(id) else {
            return push(&mut self.out, format_args!("; {id} does not exist\n"));
        };
        self.out.push_str(&head(func, data));
        let raw = !is_sugared(func, data);
        let loc = match self.locs {
            true if data.loc.is_known() => format!(" ; {id}, {}", data.loc),
            true => format!(" ; {id}"),
            false => String::new(),
        };
        let mut notes = self.notes.ops.remove(&id).unwrap_or_default();
        if data.regions.is_empty() {
            push(&mut self.out, format_args!("{loc}\n"));
        }
        for (i, &region) in data.regions.iter().enumerate() {
            let params = func.regions.get(region).map_or(&[][..], |r| &r.params);
            match (&data.op, i) {
                _ if raw => push(&mut self.out, format_args!(" ({})", typed_list(func, params))),
                (Op::If, 1) => self.out.push_str(" else"),
                (Op::While, 1) => {
                    self.out.push_str(" do");
                    if !params.is_empty() {
                        push(&mut self.out, format_args!(" ({})", typed_list(func, params)));
                    }
                }
                _ => {}
            }
            push(&mut self.out, format_args!(" {{{}\n", if i == 0 { &loc } else { "" }));
            for note in notes.drain(..) {
                self.note(&note, depth + 1);
            }
            self.region(region, depth + 1);
            self.indent(depth);
            self.out.push('}');
        }
        if !data.regions.is_empty() {
            self.out.push('\n');
        }
        for note in notes {
            self.note(&note, depth);
        }
    }

    fn note(&mut self, text: &str, depth: usize) {
        for line in text.lines() {
            self.indent(depth);
            push(&mut self.out, format_args!("; {line}\n"));
        }
    }

    fn indent(&mut self, depth: usize) {
        self.out.extend(std::iter::repeat_n("  ", depth));
    }
}

/// Appends formatted text.
fn push(out: &mut String, args: fmt::Arguments<'_>) {
    out.write_fmt(args).expect("writing to a string never fails");
}

/// An op up to the brace of its first region.
fn head(func: &Function, data: &OpData) -> String {
    let mut s = String::new();
    if !data.results.is_empty() {
        push(&mut s, format_args!("{} = ", typed_list(func, &data.results)));
    }
    let mnemonic = data.op.mnemonic();
    let dtype = data.results.first().and_then(|&v| func.values.get(v)).map(|v| v.ty.elem);
    let constant_type = match dtype {
        Some(super::Elem::Scalar(d)) => Some(d),
        _ => None,
    };
    let attribute = attribute(&data.op, constant_type);
    if !is_sugared(func, data) {
        push(&mut s, format_args!("raw {mnemonic}"));
        if let Some(attribute) = attribute {
            push(&mut s, format_args!(" {attribute}"));
        }
        push(&mut s, format_args!(" ({})", list(&data.operands)));
        return s;
    }
    s.push_str(&mnemonic);
    let operands = &data.operands;
    let inits = |params: &[Value], inits: &[Value]| {
        let pairs: Vec<_> = params.iter().zip(inits).map(|(&p, i)| format!("{} = {i}", typed(func, p))).collect();
        if pairs.is_empty() { String::new() } else { format!(" carry ({})", pairs.join(", ")) }
    };
    match &data.op {
        Op::For => {
            let params = &func.regions[data.regions[0]].params;
            let (lo, hi, step) = (operands[0], operands[1], operands[2]);
            push(&mut s, format_args!(" {} = {lo} to {hi} step {step}", typed(func, params[0])));
            s.push_str(&inits(&params[1..], &operands[3..]));
        }
        Op::While => s.push_str(&inits(&func.regions[data.regions[0]].params, operands)),
        Op::ViewLoad { rank } | Op::ViewStore { rank } => {
            let rank = usize::from(*rank);
            let [dims, strides, offsets] = [1, 1 + rank, 1 + 2 * rank].map(|at| list(&operands[at..at + rank]));
            push(&mut s, format_args!(" {} dims [{dims}] strides [{strides}] at [{offsets}]", operands[0]));
            if let Some(last) = operands.get(1 + 3 * rank) {
                let word = if data.op.writes_memory() { "value" } else { "pad" };
                push(&mut s, format_args!(" {word} {last}"));
            }
        }
        _ => {
            if !operands.is_empty() {
                push(&mut s, format_args!(" {}", list(operands)));
            }
            if let Some(attribute) = attribute {
                push(&mut s, format_args!(" {attribute}"));
            }
        }
    }
    s
}

/// Do the op's parts fit together so that it can be printed in its own form? If not it is printed `raw`.
fn is_sugared(func: &Function, data: &OpData) -> bool {
    let params = |i: usize| data.regions.get(i).and_then(|&r| func.regions.get(r)).map(|r| r.params.len());
    let operands = data.operands.len();
    match &data.op {
        Op::For => data.regions.len() == 1 && operands >= 3 && params(0) == Some(operands - 2),
        Op::While => data.regions.len() == 2 && params(0) == Some(operands) && params(1).is_some(),
        Op::If => data.regions.len() == 2 && operands == 1 && params(0) == Some(0) && params(1) == Some(0),
        Op::ViewLoad { rank } => {
            let n = 1 + 3 * usize::from(*rank);
            data.regions.is_empty() && (n..=n + 1).contains(&operands)
        }
        Op::ViewStore { rank } => data.regions.is_empty() && operands == 2 + 3 * usize::from(*rank),
        _ => data.regions.is_empty(),
    }
}

/// What an op has beside operands, results and regions. `dtype` is the type of a constant, if known.
fn attribute(op: &Op, dtype: Option<DType>) -> Option<String> {
    match op {
        Op::ProgramId { axis } | Op::NumPrograms { axis } => Some(axis.to_string()),
        Op::Const(c) => Some(constant(*c, dtype)),
        Op::Arange { start } => Some(start.to_string()),
        Op::Permute(perm) => Some(format!("{perm:?}")),
        Op::ViewLoad { rank } | Op::ViewStore { rank } => Some(format!("rank {rank}")),
        Op::Reduce { axis, .. } | Op::ArgReduce { axis, .. } => Some(format!("axis {axis}")),
        Op::Dot { precision } => Some(format!("precision {precision}")),
        Op::Unary(_)
        | Op::Binary(_)
        | Op::Compare(_)
        | Op::Select
        | Op::Fma
        | Op::Cast
        | Op::Bitcast
        | Op::Broadcast
        | Op::Reshape
        | Op::PtrAdd
        | Op::Load
        | Op::Store
        | Op::For
        | Op::While
        | Op::If
        | Op::Yield
        | Op::Condition => None,
    }
}

/// The shortest text that [`parse::number`] takes for exactly these bits.
fn constant(c: Constant, dtype: Option<DType>) -> String {
    let decimal = dtype.map(|d| match d {
        DType::Bool => (c.0 != 0).to_string(),
        DType::U64 => c.0.to_string(),
        DType::F64 => float(f64::from_bits(c.0), |x| format!("{x:?}")),
        // Narrower floats are exact as `f32`, whose shortest decimal is the shorter.
        d if d.is_float() => float(c.as_f64(d), |x| format!("{:?}", x as f32)),
        d => c.as_i64(d).unwrap_or(0).to_string(),
    });
    match (decimal, dtype) {
        (Some(text), Some(dtype)) if parse::number(&text, dtype) == Ok(c) => text,
        _ => format!("{:#x}", c.0),
    }
}

fn float(x: f64, decimal: impl Fn(f64) -> String) -> String {
    if x.is_nan() {
        "nan".into()
    } else if x.is_infinite() {
        if x > 0.0 { "inf".into() } else { "-inf".into() }
    } else {
        decimal(x)
    }
}

fn hint(hint: ParamHint) -> String {
    let ParamHint { divisor, known, alias_class } = hint;
    let mut parts = Vec::new();
    if divisor != 1 {
        parts.push(format!("div {divisor}"));
    }
    if let Some(known) = known {
        parts.push(format!("known {known}"));
    }
    if alias_class != 0 {
        parts.push(format!("alias {alias_class}"));
    }
    if parts.is_empty() { String::new() } else { format!(" {{{}}}", parts.join(", ")) }
}

/// `@name`, in quotes if it is not an identifier.
fn name(sigil: char, name: &str) -> String {
    let plain = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if plain {
        return format!("{sigil}{name}");
    }
    format!("{sigil}{}", quoted(name))
}

fn typed(func: &Function, value: Value) -> String {
    match func.values.get(value) {
        Some(data) => format!("{value}: {}", data.ty),
        None => format!("{value}: ?"),
    }
}

fn typed_list(func: &Function, values: &[Value]) -> String {
    let typed: Vec<_> = values.iter().map(|&v| typed(func, v)).collect();
    typed.join(", ")
}

fn list<E: Entity + fmt::Display>(values: &[E]) -> String {
    let values: Vec<_> = values.iter().map(ToString::to_string).collect();
    values.join(", ")
}
