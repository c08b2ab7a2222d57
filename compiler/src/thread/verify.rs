//! The rules of Thread IR that can be checked without running it.
//!
//! - The number of threads and the width of a warp are powers of two, the width at most the number of threads; names of
//!   the function and its parameters are identifiers, those of the parameters unique.
//! - Shared buffers: elements of 8, 16, 32 or 64 bits, a whole number of them; alignment a power of two, at least the
//!   element's size; the offset is a multiple of the alignment, and the end fits in 32 bits.
//! - Every instruction has the operands, results and blocks that [`Op`] states, of the stated types.
//! - Every register is defined once, before it is used, in the same block or in one around it.
//! - Blocks are nested at most [`MAX_NESTING`] deep.
//! - Every block belongs to one instruction and ends with its terminator, which stands nowhere else: the branches of `If`
//!   and the body of `Loop` with `Yield` of the results' types, the first block of `Loop` with `Condition`, the function
//!   with `Yield` of nothing. Only the blocks of `Loop` have parameters.
//! - Accesses have 8, 16, 32 or 64 bits by 1, 2 or 4 elements, at most 128 bits.
//! - Indices of parameters, axes and shared buffers exist; a constant has no bits beyond its type; a shuffle stays in its
//!   warp; `Mma`, `LdMatrix` and `Wgmma` need warps of 32, `Wgmma` four of them; its matrices are aligned to 1024 bytes.

use super::function::{Block, Function, InstData, InstId, Shared, Value};
use super::ops::{Access, MmaKind, Op, Shuffle, Special, Ty, WgmmaLeft, WgmmaMatrix};
use crate::entity::Entity;
use crate::error::{Diagnostic, Error, Loc, Result};
use std::collections::HashSet;

/// How deep blocks may be nested: what walks through them does so on the stack. Twice what Tile IR may, so that whatever is
/// lowered has room.
pub const MAX_NESTING: usize = 2 * crate::tile::verify::MAX_NESTING;

/// Checks a function against the rules above; reports all that are broken.
///
/// # Errors
/// [`Error::Verify`] with one diagnostic for each broken rule.
pub fn verify(func: &Function) -> Result<()> {
    let mut v = Verifier {
        func,
        problems: Vec::new(),
        defined: vec![false; func.values.len()],
        visible: vec![false; func.values.len()],
        blocks: HashSet::new(),
        depth: 0,
    };
    v.function();
    if v.problems.is_empty() {
        return Ok(());
    }
    Err(Error::Verify { function: func.name.clone(), stage: "Thread IR".into(), diagnostics: v.problems })
}

struct Verifier<'a> {
    func: &'a Function,
    problems: Vec<Diagnostic>,
    /// Values that have a definition so far.
    defined: Vec<bool>,
    /// Values that may be used here.
    visible: Vec<bool>,
    /// Blocks met so far.
    blocks: HashSet<usize>,
    /// Blocks around the one looked at.
    depth: usize,
}

/// What a block must end with.
#[derive(Clone, Copy)]
enum End<'a> {
    Yield(&'a [Ty]),
    Condition,
}

pub(super) fn is_identifier(s: &str) -> bool {
    s.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && s.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn types_text(types: &[Ty]) -> String {
    format!("({})", types.iter().map(|t| t.name()).collect::<Vec<_>>().join(", "))
}

impl Verifier<'_> {
    fn problem(&mut self, message: String) {
        self.problems.push(Diagnostic::new(Loc::UNKNOWN, message));
    }

    fn at(&mut self, inst: InstId, message: impl AsRef<str>) {
        let text = self.func.inst_text(inst);
        self.problem(format!("{}, in `{text}`", message.as_ref()));
    }

    fn function(&mut self) {
        let func = self.func;
        let (threads, width) = (func.threads, func.warp_width);
        if !threads.is_power_of_two() {
            self.problem(format!("the number of threads is {threads}, not a power of two"));
        }
        if !width.is_power_of_two() || width > threads {
            self.problem(format!("the warp width is {width}, not a power of two up to the {threads} threads"));
        }
        if !is_identifier(&func.name) {
            self.problem(format!("the function's name `{}` is not an identifier", func.name));
        }
        let mut names = HashSet::new();
        for p in &func.params {
            if !is_identifier(&p.name) {
                self.problem(format!("the parameter's name `{}` is not an identifier", p.name));
            }
            if !names.insert(&p.name) {
                self.problem(format!("two parameters are named `{}`", p.name));
            }
        }
        for (shared, b) in func.shared.iter() {
            let elem = u32::from(b.elem_bits) / 8;
            if !matches!(b.elem_bits, 8 | 16 | 32 | 64) {
                self.problem(format!("{shared} has elements of {} bits, not of 8, 16, 32 or 64", b.elem_bits));
                continue;
            }
            if !b.bytes.is_multiple_of(elem) {
                self.problem(format!(
                    "{shared} has {} bytes, no whole number of {}-bit elements",
                    b.bytes, b.elem_bits
                ));
            }
            if !b.align.is_power_of_two() || b.align < elem {
                self.problem(format!("{shared} has alignment {}, not a power of two of at least {elem}", b.align));
            } else if !b.offset.is_multiple_of(b.align) {
                self.problem(format!("{shared} starts at {}, no multiple of its alignment {}", b.offset, b.align));
            }
            if b.offset.checked_add(b.bytes).is_none() {
                self.problem(format!("{shared} ends beyond 2^32 bytes"));
            }
        }
        if func.blocks.get(func.body).is_some_and(|b| !b.params.is_empty()) {
            self.problem(format!("the body {} has parameters", func.body));
        }
        self.block(func.body, End::Yield(&[]));
    }

    fn block(&mut self, block: Block, end: End<'_>) {
        if self.func.blocks.get(block).is_none() {
            return self.problem(format!("{block} does not exist"));
        }
        if !self.blocks.insert(block.index()) {
            return self.problem(format!("{block} is used twice"));
        }
        if self.depth > MAX_NESTING {
            return self.problem(format!("blocks are nested more than {MAX_NESTING} deep"));
        }
        let data = &self.func.blocks[block];
        let mut scope = Vec::new();
        for &p in &data.params {
            self.define(p, &mut scope, &format!("parameter of {block}"));
        }
        for (i, &inst) in data.insts.iter().enumerate() {
            if self.func.insts.get(inst).is_none() {
                self.problem(format!("{inst} in {block} does not exist"));
                continue;
            }
            let last = i + 1 == data.insts.len();
            self.inst(inst, if last { Some(end) } else { None });
            for &r in &self.func.insts[inst].results {
                self.define(r, &mut scope, "result");
            }
        }
        let last = data.insts.last().and_then(|&i| self.func.insts.get(i));
        if !last.is_some_and(|i| i.op.is_terminator()) {
            self.problem(format!("{block} does not end with `yield` or `condition`"));
        }
        for v in scope {
            self.visible[v.index()] = false;
        }
    }

    fn define(&mut self, v: Value, scope: &mut Vec<Value>, what: &str) {
        match self.defined.get(v.index()) {
            None => self.problem(format!("the {what} {v} does not exist")),
            Some(true) => self.problem(format!("{v} is defined twice")),
            Some(false) => {
                self.defined[v.index()] = true;
                self.visible[v.index()] = true;
                scope.push(v);
            }
        }
    }

    /// The types of values that all exist.
    fn types(&self, values: &[Value]) -> Option<Vec<Ty>> {
        values.iter().map(|&v| self.func.values.get(v).map(|d| d.ty)).collect()
    }

    fn inst(&mut self, inst: InstId, end: Option<End<'_>>) {
        let data = &self.func.insts[inst];
        for &o in &data.operands {
            if !self.visible.get(o.index()).copied().unwrap_or(false) {
                self.at(inst, format!("{o} is not defined here"));
            }
        }
        let (Some(operands), Some(results)) = (self.types(&data.operands), self.types(&data.results)) else {
            return; // Said above, or when the results are defined.
        };
        if let Err(message) = self.signature(data, &operands, &results) {
            self.at(inst, message);
        }
        match (&data.op, end) {
            (Op::Yield, Some(End::Yield(types))) if operands != types => {
                let (has, wants) = (types_text(&operands), types_text(types));
                self.at(inst, format!("the block yields {has} where {wants} is expected"));
            }
            (Op::Condition, Some(End::Condition)) | (Op::Yield, Some(End::Yield(_))) => {}
            (Op::Yield | Op::Condition, None) => self.at(inst, "a terminator stands before the end of its block"),
            (Op::Yield, Some(End::Condition)) => self.at(inst, "the first block of a loop ends with `condition`"),
            (Op::Condition, Some(End::Yield(_))) => {
                self.at(inst, "only the first block of a loop ends with `condition`")
            }
            _ => {}
        }
        let blocks = data.op.blocks();
        if data.blocks.len() != blocks {
            return self.at(inst, format!("{} blocks where {blocks} are expected", data.blocks.len()));
        }
        for (i, &inner) in data.blocks.iter().enumerate() {
            if let Some(b) = self.func.blocks.get(inner) {
                let wants = if matches!(data.op, Op::Loop) { &operands[..] } else { &[] };
                let has = self.types(&b.params).unwrap_or_default();
                if has != wants {
                    let (has, wants) = (types_text(&has), types_text(wants));
                    self.at(inst, format!("the parameters of {inner} are {has} where {wants} is expected"));
                }
            }
            let end = if matches!(data.op, Op::Loop) && i == 0 { End::Condition } else { End::Yield(&results) };
            self.depth += 1;
            self.block(inner, end);
            self.depth -= 1;
        }
    }

    fn access(a: &Access) -> Result<(), String> {
        if !matches!(a.bits, 8 | 16 | 32 | 64) {
            return Err(format!("elements of {} bits, not of 8, 16, 32 or 64", a.bits));
        }
        if !matches!(a.n, 1 | 2 | 4) {
            return Err(format!("{} elements, not 1, 2 or 4", a.n));
        }
        if u32::from(a.bits) * u32::from(a.n) > 128 {
            return Err(format!("an access of {} bits; 128 is the most", u32::from(a.bits) * u32::from(a.n)));
        }
        Ok(())
    }

    fn buffer(&self, buf: Shared) -> Result<(), String> {
        if self.func.shared.get(buf).is_none() { Err(format!("{buf} does not exist")) } else { Ok(()) }
    }

    /// `n` registers of one type that an access of `bits` can have.
    fn elements(a: &Access, types: &[Ty]) -> Result<(), String> {
        let fits = |t: Ty| match a.bits {
            8 | 16 => t == Ty::I32,
            32 => matches!(t, Ty::I32 | Ty::F32),
            _ => matches!(t, Ty::I64 | Ty::F64),
        };
        if types.len() != usize::from(a.n) || !types.iter().all(|&t| fits(t) && t == types[0]) {
            let wants = match a.bits {
                8 | 16 => "i32",
                32 => "i32 or f32",
                _ => "i64 or f64",
            };
            return Err(format!("the elements are {} where {} of {wants} are expected", types_text(types), a.n));
        }
        Ok(())
    }

    /// Checks operand and result types, and the numbers in the op.
    fn signature(&self, data: &InstData, operands: &[Ty], results: &[Ty]) -> Result<(), String> {
        self.attributes(&data.op)?;
        let signature = data.op.info().signature;
        if !signature.allows(operands, results) {
            let (o, r) = (types_text(operands), types_text(results));
            return Err(format!("the types are {o} -> {r} where {signature} is expected"));
        }
        self.counted(&data.op, operands, results)?;
        match data.op {
            Op::Const(bits) if super::eval::truncate(results[0], bits) != bits => {
                Err(format!("the constant {bits:#x} has bits beyond its type"))
            }
            _ => Ok(()),
        }
    }

    /// The numbers in the op.
    fn attributes(&self, op: &Op) -> Result<(), String> {
        let width = self.func.warp_width;
        let warp32 =
            || if width == 32 { Ok(()) } else { Err(format!("it needs warps of 32 lanes, but they have {width}")) };
        match op {
            Op::Param(i) if self.func.params.get(*i as usize).is_none() => {
                Err(format!("parameter {i} does not exist; there are {}", self.func.params.len()))
            }
            Op::Special(Special::ProgramId(axis) | Special::NumPrograms(axis)) if *axis > 2 => {
                Err(format!("axis {axis} does not exist; a grid has axes 0, 1 and 2"))
            }
            Op::GlobalLoad(a) | Op::GlobalStore(a) => Self::access(a),
            Op::SharedLoad(buf, a) | Op::SharedStore(buf, a) => {
                self.buffer(*buf)?;
                Self::access(a)
            }
            Op::CpAsync { buf, bytes, .. } => {
                self.buffer(*buf)?;
                if matches!(bytes, 4 | 8 | 16) { Ok(()) } else { Err(format!("{bytes} bytes, not 4, 8 or 16")) }
            }
            Op::Wgmma { kind, n, a, b } => {
                warp32()?;
                if let WgmmaLeft::Shared(a) = a {
                    self.wgmma_matrix(a)?;
                }
                self.wgmma_matrix(b)?;
                if !self.func.threads.is_multiple_of(128) {
                    return Err(format!("it needs groups of 128 threads, but there are {}", self.func.threads));
                }
                if !matches!(kind, MmaKind::F16 | MmaKind::Bf16) {
                    return Err("its elements are f16 or bf16".into());
                }
                if !n.is_multiple_of(8) || !(8..=256).contains(n) {
                    return Err(format!("{n} columns, not a multiple of 8 up to 256"));
                }
                Ok(())
            }
            Op::LdMatrix { buf, n, .. } => {
                self.buffer(*buf)?;
                warp32()?;
                if matches!(n, 1 | 2 | 4) { Ok(()) } else { Err(format!("{n} matrices, not 1, 2 or 4")) }
            }
            Op::Mma(_) => warp32(),
            Op::Shuffle(Shuffle::Xor(mask)) if *mask >= width => {
                Err(format!("the mask {mask} leaves the warp of {width} lanes"))
            }
            _ => Ok(()),
        }
    }

    /// The types of ops whose attributes or blocks say how many there are.
    fn counted(&self, op: &Op, o: &[Ty], r: &[Ty]) -> Result<(), String> {
        use Ty::{F32, I32, I64, Pred};
        let ensure = |ok: bool, wants: &str| {
            let (o, r) = (types_text(o), types_text(r));
            if ok { Ok(()) } else { Err(format!("the types are {o} -> {r} where {wants} is expected")) }
        };
        match op {
            Op::Param(i) => {
                let ty = self.func.params[*i as usize].ty.ty();
                ensure(o.is_empty() && *r == [ty], &format!("() -> ({ty})"))
            }
            Op::GlobalLoad(a) => {
                Self::elements(a, r)?;
                let guarded = o.len() == 2 + r.len() && o[1] == Pred && o[2..] == *r;
                ensure(o.first() == Some(&I64) && (o.len() == 1 || guarded), "(i64 [, pred, other x n]) -> n registers")
            }
            Op::GlobalStore(a) => self.store(a, I64, o, r),
            Op::SharedLoad(_, a) => {
                Self::elements(a, r)?;
                ensure(*o == [I32], "(i32) -> n registers")
            }
            Op::SharedStore(_, a) => self.store(a, I32, o, r),
            Op::WgmmaWait(_) => ensure(o == r, "(values) -> the same types"),
            Op::Hold => ensure(o.iter().all(|t| matches!(t, I32 | F32)) && r.is_empty(), "(i32 or f32 values) -> ()"),
            Op::Wgmma { n, a, .. } => {
                let c = usize::from(*n) / 2;
                let places = a.operands() + 1;
                let ok = (o.len() == places || o.len() == places + c)
                    && o[..places].iter().all(|&t| t == I32)
                    && o[places..].iter().all(|&t| t == F32)
                    && *r == vec![F32; c];
                ensure(ok, &format!("({places} of i32 [, {c} of f32]) -> {c} of f32"))
            }
            Op::LdMatrix { n, .. } => {
                let ok = *o == [I32] && r.len() == usize::from(*n) && r.iter().all(|&t| t == I32);
                ensure(ok, "(i32) -> n of i32")
            }
            Op::If => ensure(*o == [Pred], "(pred) -> results"),
            Op::Loop => ensure(o == r, "(inits) -> carried values of the same types"),
            Op::Yield => ensure(r.is_empty(), "(values) -> ()"),
            _ => Ok(()),
        }
    }

    fn wgmma_matrix(&self, m: &WgmmaMatrix) -> Result<(), String> {
        self.buffer(m.buf)?;
        if !matches!(m.swizzle, 32 | 64 | 128) {
            return Err(format!("rows of {} bytes, not 32, 64 or 128", m.swizzle));
        }
        if !self.func.shared[m.buf].align.is_multiple_of(1024) {
            return Err(format!("{} is not aligned to 1024 bytes", m.buf));
        }
        if !m.block.is_multiple_of(16) || m.block >= 1 << 18 {
            return Err(format!("blocks of {} bytes, not a multiple of 16 below 2^18", m.block));
        }
        Ok(())
    }

    fn store(&self, a: &Access, address: Ty, o: &[Ty], r: &[Ty]) -> Result<(), String> {
        let n = usize::from(a.n);
        let ok = o.first() == Some(&address)
            && r.is_empty()
            && (o.len() == 1 + n || (o.len() == 2 + n && o[1 + n] == Ty::Pred));
        if !ok {
            let (has, results) = (types_text(o), types_text(r));
            let wants = format!("({address}, {n} registers [, pred]) -> ()");
            return Err(format!("the types are {has} -> {results} where {wants} is expected"));
        }
        Self::elements(a, &o[1..=n])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread::{AbiParam, AbiTy, Builder, Cmp, Conv, IBin, SharedBuf};

    fn messages(func: &Function) -> Vec<String> {
        match verify(func) {
            Ok(()) => vec![],
            Err(Error::Verify { diagnostics, .. }) => diagnostics.into_iter().map(|d| d.message).collect(),
            Err(e) => panic!("verify gives `Error::Verify`, not {e}"),
        }
    }

    fn builder() -> Builder {
        Builder::new("f", vec![AbiParam { name: "x".into(), ty: AbiTy::Ptr }], 64, 32)
    }

    const BUF: SharedBuf = SharedBuf { bytes: 64, align: 16, elem_bits: 32, offset: 0 };

    /// The messages about a function made of one op on fresh operands of these types.
    fn one(op: Op, operands: &[Ty], results: &[Ty]) -> Vec<String> {
        let mut b = builder();
        b.shared(BUF);
        let operands = operands.iter().map(|&ty| b.emit(Op::Const(0), vec![], &[ty])[0]).collect();
        b.emit(op, operands, results);
        messages(&b.finish())
    }

    #[test]
    fn a_function_with_loops_and_branches_is_valid() {
        let mut b = builder();
        let t = b.special(Special::Thread);
        let limit = b.i32(5);
        let carried = b.begin_loop(&[t]);
        let go_on = b.icmp_s(Cmp::Lt, carried[0], limit);
        let carried = b.loop_body(go_on);
        let small = b.icmp_s(Cmp::Lt, carried[0], t);
        b.begin_if(small);
        let next = b.add_imm(carried[0], 1);
        b.begin_else(&[next]);
        let next = b.end_if(&[t]);
        b.end_loop(&next);
        assert_eq!(messages(&b.finish()), Vec::<String>::new());
    }

    #[test]
    fn headers_are_checked() {
        let mut f = builder().finish();
        f.threads = 48;
        f.warp_width = 64;
        f.name = "a-b".into();
        f.params = ["x", "x", "1"].map(|n| AbiParam { name: n.into(), ty: AbiTy::I32 }).into();
        f.shared.push(SharedBuf { elem_bits: 12, ..BUF });
        f.shared.push(SharedBuf { bytes: 6, align: 2, ..BUF });
        f.shared.push(SharedBuf { offset: 8, ..BUF });
        f.shared.push(SharedBuf { offset: 0xffff_fff0, ..BUF });
        assert_eq!(
            messages(&f),
            [
                "the number of threads is 48, not a power of two",
                "the warp width is 64, not a power of two up to the 48 threads",
                "the function's name `a-b` is not an identifier",
                "two parameters are named `x`",
                "the parameter's name `1` is not an identifier",
                "shared0 has elements of 12 bits, not of 8, 16, 32 or 64",
                "shared1 has 6 bytes, no whole number of 32-bit elements",
                "shared1 has alignment 2, not a power of two of at least 4",
                "shared2 starts at 8, no multiple of its alignment 16",
                "shared3 ends beyond 2^32 bytes",
            ]
        );
    }

    #[test]
    fn signatures_are_checked() {
        use Ty::{F32, F64, I32, I64, Pred};
        let access = |bits, n| Access { bits, n, offset: 0 };
        let buf = Shared::new(0);
        let cases: &[(Op, &[Ty], &[Ty], &str)] = &[
            (Op::IBin(IBin::Add), &[I32, I64], &[I32], "the types are (i32, i64) -> (i32) where (I, I) -> I"),
            (Op::IBin(IBin::Add), &[Pred, Pred], &[Pred], "the types are (pred, pred) -> (pred) where (I, I) -> I"),
            (Op::FBin(crate::thread::FBin::Add), &[I32, I32], &[I32], "the types are (i32, i32) -> (i32)"),
            (Op::FUn(crate::thread::FUn::Exp2Approx), &[F64], &[F64], "the types are (f64) -> (f64) where (f32)"),
            (Op::Fma, &[F32, F32], &[F32], "the types are (f32, f32) -> (f32) where (F, F, F) -> F"),
            (Op::ICmpS(Cmp::Lt), &[I32, I32], &[I32], "the types are (i32, i32) -> (i32) where (I, I) -> (pred)"),
            (Op::FCmp(Cmp::Lt), &[I32, I32], &[Pred], "the types are (i32, i32) -> (pred) where (F, F) -> (pred)"),
            (Op::Not, &[I32], &[Pred], "the types are (i32) -> (pred)"),
            (Op::Select, &[Pred, I32, F32], &[I32], "the types are (pred, i32, f32) -> (i32)"),
            (
                Op::Conv(Conv::Bitcast),
                &[I32],
                &[F64],
                "the types are (i32) -> (f64) where (i32) -> (f32) or (f32) -> (i32)",
            ),
            (Op::Pack16, &[I32], &[I32], "the types are (i32) -> (i32) where (i32, i32) -> (i32)"),
            (Op::Const(2), &[], &[Pred], "the constant 0x2 has bits beyond its type"),
            (Op::Param(1), &[], &[I32], "parameter 1 does not exist; there are 1"),
            (Op::Param(0), &[], &[I32], "the types are () -> (i32) where () -> (i64) is expected"),
            (Op::Special(Special::ProgramId(3)), &[], &[I32], "axis 3 does not exist; a grid has axes 0, 1 and 2"),
            (Op::GlobalLoad(access(64, 4)), &[I64], &[I64; 4], "an access of 256 bits; 128 is the most"),
            (Op::GlobalLoad(access(32, 3)), &[I64], &[I32; 3], "3 elements, not 1, 2 or 4"),
            (Op::GlobalLoad(access(24, 1)), &[I64], &[I32], "elements of 24 bits, not of 8, 16, 32 or 64"),
            (Op::GlobalLoad(access(16, 2)), &[I64], &[F32; 2], "the elements are (f32, f32) where 2 of i32"),
            (Op::GlobalLoad(access(32, 1)), &[I64, Pred], &[I32], "the types are (i64, pred) -> (i32)"),
            (Op::GlobalLoad(access(32, 1)), &[I32], &[I32], "the types are (i32) -> (i32)"),
            (
                Op::GlobalStore(access(32, 2)),
                &[I64, I32],
                &[],
                "the types are (i64, i32) -> () where (i64, 2 registers",
            ),
            (Op::SharedLoad(Shared::new(1), access(32, 1)), &[I32], &[I32], "shared1 does not exist"),
            (Op::SharedLoad(buf, access(32, 1)), &[I64], &[I32], "the types are (i64) -> (i32)"),
            (Op::SharedStore(buf, access(32, 1)), &[I32, I64], &[], "the elements are (i64) where 1 of i32 or f32"),
            (
                Op::CpAsync { buf, bytes: 12, shared_offset: 0, global_offset: 0 },
                &[I32, I64],
                &[],
                "12 bytes, not 4, 8 or 16",
            ),
            (Op::LdMatrix { buf, n: 3, trans: false, offset: 0 }, &[I32], &[I32; 3], "3 matrices, not 1, 2 or 4"),
            (Op::Mma(MmaKind::S8), &[I32; 10], &[F32; 4], "the types are (i32, i32, i32, i32, i32, i32, i32, i32"),
            (Op::Shuffle(Shuffle::Xor(32)), &[I32], &[I32], "the mask 32 leaves the warp of 32 lanes"),
            (Op::Shuffle(Shuffle::Index), &[I64, I32], &[I64], "the types are (i64, i32) -> (i64)"),
            (Op::Barrier, &[I32], &[], "the types are (i32) -> () where () -> () is expected"),
            (Op::Yield, &[], &[], "a terminator stands before the end of its block"),
            (Op::If, &[Pred], &[], "0 blocks where 2 are expected"),
        ];
        for (op, operands, results, message) in cases {
            let found = one(op.clone(), operands, results);
            assert!(found.len() == 1 && found[0].starts_with(message), "{op:?}: {found:#?}");
        }
        assert_eq!(
            one(Op::Not, &[I32], &[Pred]),
            ["the types are (i32) -> (pred) where (pred) -> (pred) is expected, in `r1: pred = not r0`"]
        );
    }

    #[test]
    fn warp_wide_ops_need_their_width() {
        let mut b = Builder::new("f", vec![], 64, 64);
        let x = b.i32(0);
        let c = b.fconst(Ty::F32, 0.0);
        b.mma(MmaKind::F16, &[x; 4], &[x; 2], &[c; 4]);
        let found = messages(&b.finish());
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("it needs warps of 32 lanes, but they have 64"), "{found:?}");
    }

    #[test]
    fn registers_are_used_where_they_are_defined() {
        let mut b = builder();
        let p = b.pred(true);
        b.begin_if(p);
        let inner = b.emit(Op::Special(Special::Lane), vec![], &[Ty::I32])[0];
        b.begin_else(&[]);
        b.emit(Op::IBin(IBin::Add), vec![inner, inner], &[Ty::I32]);
        b.end_if(&[]);
        let mut f = b.finish();
        let text = "r1 is not defined here, in `r2: i32 = add r1, r1`";
        assert_eq!(messages(&f), [text, text]);
        let last = f.blocks[f.body].insts[0];
        f.blocks[f.body].insts.insert(0, last);
        assert_eq!(messages(&f), ["r0 is defined twice", text, text]);
    }

    #[test]
    fn blocks_are_checked() {
        let mut b = builder();
        let zero = b.i32(0);
        let carried = b.begin_loop(&[zero]);
        let go_on = b.icmp_s(Cmp::Lt, carried[0], zero);
        let carried = b.loop_body(go_on);
        b.end_loop(&carried);
        let valid = b.finish();
        assert_eq!(messages(&valid), Vec::<String>::new());
        let inst = *valid.blocks[valid.body].insts.iter().find(|&&i| valid.insts[i].op == Op::Loop).expect("a loop");

        let mut f = valid.clone();
        let body = f.insts[inst].blocks[1];
        f.insts[inst].blocks[0] = body;
        assert_eq!(
            messages(&f),
            [
                "the first block of a loop ends with `condition`, in `yield r3`".to_string(),
                format!("{body} is used twice"),
            ]
        );

        let mut f = valid.clone();
        f.blocks[body].insts.clear();
        assert_eq!(messages(&f), [format!("{body} does not end with `yield` or `condition`")]);

        let mut f = valid.clone();
        f.blocks[body].params.clear();
        let found = messages(&f);
        assert!(found[0].starts_with("the parameters of block2 are () where (i32) is expected"), "{found:?}");

        let mut f = valid;
        let last = *f.blocks[f.body].insts.last().expect("a terminator");
        f.insts[last].operands.push(zero);
        assert_eq!(messages(&f), ["the block yields (i32) where () is expected, in `yield r0`"]);
    }
}
