//! The schedule in the user's words: what is done, where in the source, and why not faster.

use super::{AheadReason, DotPlan, DotReason, Schedule, WidthReason};
use crate::dtype::DType;
use crate::entity::Entity;
use crate::error::Loc;
use crate::tile::{Function, Op, OpId, Value};
use std::collections::{HashMap, HashSet};
use std::fmt;

/// One decision in words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Remark {
    /// What it is about, in a word: `dot`, `load`, `store`.
    pub what: String,
    /// Where that is.
    pub loc: Loc,
    /// What was decided, and why.
    pub text: String,
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}: {}", self.what, at(self.loc), self.text)
    }
}

/// ` at file:line`, if that is known.
fn at(loc: Loc) -> String {
    if loc.is_known() { format!(" at {}:{}", loc.file, loc.line) } else { String::new() }
}

impl Schedule {
    /// What was decided about each product, load and store of `func`, in the order of the program, and why nothing faster was.
    /// `known` gives the values of parameters, as far as they are known: they make reasons plainer.
    pub fn explain(&self, func: &Function, known: &dyn Fn(Value) -> Option<i64>) -> Vec<Remark> {
        let explainer = Explainer { schedule: self, func, known, ahead: self.stages_of_loads() };
        let mut remarks: Vec<Remark> = Vec::new();
        func.walk(func.body, &mut |op| remarks.extend(explainer.remark(op)));
        // What is unrolled, or generated for several tiles, says the same of one place.
        let mut counts: Vec<(Remark, usize)> = Vec::new();
        let mut seen: HashMap<String, usize> = HashMap::new();
        for remark in remarks {
            let place = *seen.entry(remark.to_string()).or_insert(counts.len());
            match counts.get_mut(place) {
                Some((_, n)) => *n += 1,
                None => counts.push((remark, 1)),
            }
        }
        let several = |(mut r, n): (Remark, usize)| {
            if n > 1 {
                r.text += &format!(" ({n} of them)");
            }
            r
        };
        counts.into_iter().map(several).collect()
    }

    /// The tiles that take most registers of a thread, each with the place that computes it, at most `most` of them: what to make
    /// smaller where registers are short.
    pub fn largest(&self, func: &Function, most: usize) -> Vec<(Remark, usize)> {
        let mut found: Vec<(Remark, usize)> = Vec::new();
        let mut seen = HashSet::new();
        func.walk(func.body, &mut |op| {
            let data = &func.ops[op];
            for &result in &data.results {
                let Some(layout) = self.homes.get(&result) else { continue };
                let ty = func.ty(result);
                let wide = ty.elem.is_ptr() || ty.dtype().bits() == 64;
                let registers = layout.registers() * if wide { 2 } else { 1 };
                let remark = Remark { what: word(&data.op), loc: data.loc, text: format!("{ty}") };
                if seen.insert(format!("{remark}")) {
                    found.push((remark, registers));
                }
            }
        });
        // Stable: of equals, the first in the program.
        found.sort_by_key(|(_, registers)| std::cmp::Reverse(*registers));
        found.truncate(most);
        found
    }

    fn stages_of_loads(&self) -> HashMap<OpId, u32> {
        self.pipelines.values().flat_map(|p| p.loads.iter().map(|&load| (load, p.stages))).collect()
    }
}

struct Explainer<'a> {
    schedule: &'a Schedule,
    func: &'a Function,
    known: &'a dyn Fn(Value) -> Option<i64>,
    /// Stages of the loads that run ahead.
    ahead: HashMap<OpId, u32>,
}

impl Explainer<'_> {
    fn remark(&self, op: OpId) -> Option<Remark> {
        let data = &self.func.ops[op];
        let text = match data.op {
            Op::Dot { .. } => self.dot(op),
            Op::Load | Op::Store | Op::ViewLoad { .. } | Op::ViewStore { .. } => self.access(op)?,
            _ => return None,
        };
        Some(Remark { what: word(&data.op), loc: data.loc, text })
    }

    /// An op that a reason names.
    fn other(&self, op: OpId) -> String {
        let data = &self.func.ops[op];
        format!("`{}`{}", word(&data.op), at(data.loc))
    }

    fn dot(&self, op: OpId) -> String {
        let plan = &self.schedule.dots[&op];
        let reasons = self.schedule.dot_reasons.get(&op).copied().unwrap_or_default();
        let mut text = match plan {
            DotPlan::Wgmma(w) => {
                format!("wgmma m64n{} of {:?}{}", w.n, w.kind, left(w.a_in_registers))
            }
            DotPlan::Mma(m) => {
                format!("mma.sync of {:?} on {} x {} warps{}", m.kind, m.warps_m, m.warps_n, left(m.a_in_registers))
            }
            DotPlan::Fma(_) => "multiply-adds of each thread".to_owned(),
        };
        // What the device has not is no news, unless it has nothing.
        let not = [("wgmma", reasons.wgmma), ("mma.sync", reasons.mma)];
        let missing = |r: Option<DotReason>| r.is_none_or(|r| r == DotReason::NoInstruction);
        let told: Vec<String> = not
            .into_iter()
            .filter(|(_, r)| !missing(*r))
            .filter_map(|(name, r)| Some(format!(", not {name}: {}", self.dot_reason(name, r?))))
            .collect();
        if told.is_empty() && matches!(plan, DotPlan::Fma(_)) {
            text += ": the device has no matrix instruction that Tilewright uses";
        }
        // The same reason holds of both: say it once.
        match &told[..] {
            [a, b] if a.split_once(": ").map(|x| x.1) == b.split_once(": ").map(|x| x.1) => {
                text += &format!(", not wgmma or{}", b.trim_start_matches(", not"));
            }
            _ => text += &told.concat(),
        }
        text
    }

    fn dot_reason(&self, name: &str, reason: DotReason) -> String {
        match reason {
            DotReason::NoInstruction => "the device does not have it".into(),
            DotReason::Elements(dtype, precision) => {
                let f32 = dtype == DType::F32;
                let precision = if f32 { format!(" in precision {precision}") } else { String::new() };
                let advice =
                    if f32 && name == "mma.sync" { "; `dot_tf32` would let it round factors to 11 bits" } else { "" };
                format!("it does not take {dtype}{precision}{advice}")
            }
            DotReason::Lanes(n) => format!("warps have {n} lanes, and it takes 32"),
            DotReason::Warps(n) => format!("{}; it takes groups of 4", count(n as usize, "warp")),
            DotReason::Rows { found, least } => format!("{}; it takes {least} or more", count(found, "row")),
            DotReason::Columns { found, least } => format!("{}; it takes {least} or more", count(found, "column")),
            DotReason::Depth { found, least } => {
                format!("{} in each sum; it takes {least} or more", count(found, "term"))
            }
            DotReason::Groups { groups, rows, columns } => {
                format!("{groups} groups of 4 warps have no share each of {rows} rows and {columns} columns")
            }
            DotReason::Chain(op) => {
                format!("what it shares with {} stays in registers, and that cannot", self.other(op))
            }
        }
    }

    fn access(&self, op: OpId) -> Option<String> {
        let access = self.schedule.accesses.get(&op)?;
        let bytes = self.element_bytes(op);
        let mut text = format!("{} ({} bytes) at a time", count(access.vec, "element"), access.vec * bytes);
        if let Some(why) = access.narrow {
            text += &format!(", not {}: {}", 16 / bytes, self.width_reason(why));
        }
        if let Some(stages) = self.ahead.get(&op) {
            text += &format!("; copied ahead, {stages} stages");
        } else if let Some(&why) = self.schedule.ahead_reasons.get(&op) {
            text += &format!("; not run ahead: {}", self.ahead_reason(why));
        }
        Some(text)
    }

    fn element_bytes(&self, op: OpId) -> usize {
        self.func.ty(self.func.ops[op].operands[0]).dtype().bytes()
    }

    fn width_reason(&self, reason: WidthReason) -> String {
        let multiple = |divisor: u64| match divisor {
            1 => "known to be a multiple of nothing".to_owned(),
            n => format!("known to be a multiple of {n} only"),
        };
        let number = |what: &str, dim: usize, value: Value, divisor: u64| {
            let name = self.parameter_of(value).map_or(String::new(), |p| format!(" of `{p}`"));
            let what = format!("{what} {dim}{name}");
            match (self.known)(value) {
                Some(n) if n % (2 * divisor as i64) != 0 => {
                    format!("{what} is {n}, which is no multiple of {}", 2 * divisor)
                }
                _ => format!("{what} is {}", multiple(divisor)),
            }
        };
        match reason {
            WidthReason::Scattered => "neighbouring elements are not known to be neighbours in memory".into(),
            WidthReason::NoUnitStride => "no dimension of the view has a stride that is known to be 1".into(),
            WidthReason::Run(n) => format!("only runs of {n} are known to be consecutive"),
            WidthReason::Alignment(bytes) => format!("addresses are known to be multiples of {bytes} bytes only"),
            WidthReason::Mask(1) => "the mask may differ from element to element".into(),
            WidthReason::Mask(n) => format!("the mask is known to be the same for {n} elements only"),
            WidthReason::Extent { dim, value, divisor } => number("extent", dim, value, divisor),
            WidthReason::Stride { dim, value, divisor } => number("stride", dim, value, divisor),
            WidthReason::Begin { dim, divisor } => {
                format!("where the tile begins in dimension {dim} is {}", multiple(divisor))
            }
            WidthReason::Short(n) => format!("the tile has {} in a row", count(n, "element")),
            WidthReason::Threads(n) => format!("{n} threads share the tile"),
        }
    }

    fn ahead_reason(&self, reason: AheadReason) -> String {
        match reason {
            AheadReason::OneStage => "`num_stages` is 1".into(),
            AheadReason::NoCopies => "the device has no asynchronous copies that Tilewright uses".into(),
            AheadReason::While => "it is in a `while` loop, whose next round is not known before it begins".into(),
            AheadReason::Branch => "it is inside of an `if`".into(),
            AheadReason::Padding => {
                "copies give 0 outside of the mask or the view, and it asks for something else".into()
            }
            AheadReason::Bytes(n) => format!("copies are of 4 bytes or more, and it moves {n}"),
            AheadReason::Repeated => "the tile has fewer elements than the program has threads".into(),
            AheadReason::Scattered => "neighbouring elements are not neighbours in memory".into(),
            AheadReason::Unused => "nothing uses it".into(),
            AheadReason::Use(op, true) => format!("it also feeds {}", self.other(op)),
            AheadReason::Use(op, false) => format!("it feeds {}, not only products", self.other(op)),
            AheadReason::Fma(op) => format!("{} takes its operands from registers", self.other(op)),
            AheadReason::Accumulator(op) => format!("it is what {} adds to", self.other(op)),
            AheadReason::Store(op) => format!("{} may write to the same memory", self.other(op)),
            AheadReason::Address(op) => format!("its address takes the result of {}", self.other(op)),
            AheadReason::Carried => "its address is carried from round to round in another layout".into(),
        }
    }

    /// The parameter that a value is a part of.
    fn parameter_of(&self, value: Value) -> Option<&str> {
        let flat = &self.func.regions[self.func.body].params;
        let place = flat.iter().position(|&v| v.index() == value.index())?;
        let mut end = 0;
        self.func.params.iter().find_map(|p| {
            end += p.kind.flat_len();
            (place < end).then_some(p.name.as_str())
        })
    }
}

/// What an op is called in the language.
fn word(op: &Op) -> String {
    match op {
        Op::ViewLoad { .. } => "load".into(),
        Op::ViewStore { .. } => "store".into(),
        other => other.mnemonic(),
    }
}

fn left(in_registers: bool) -> &'static str {
    if in_registers { ", left operand in registers" } else { "" }
}

fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
