//! The text of Thread IR: for people, golden tests and messages. Deterministic; never parsed.
//!
//! ```text
//! kernel scale(x: ptr, n: i32) threads 64 warp 32 {
//!   shared0: 256 bytes, align 16, elem 32, offset 0
//!   r0: i64 = param x
//!   r1: i32 = thread
//!   r2: pred = icmp_s.lt r1, r3
//!   r4: f32 = global_load.32 [r0 + 16] if r2 else r5
//!   shared_store.32 shared0[r1] = r4
//!   r6: f32 = if r2 {
//!     yield r4
//!   } else {
//!     yield r5
//!   }
//!   r7: i32 = loop r8: i32 = r1 {
//!     condition r9
//!   } body r10: i32 {
//!     yield r11
//!   }
//!   yield
//! }
//! ```
//! `.32x4` is an access of 4 elements of 32 bits.

use super::function::{AbiTy, Block, Function, InstData, InstId, Value};
use super::ops::{Access, Cmp, Conv, FBin, FUn, IBin, MmaKind, Op, Shuffle, Special, Ty, WgmmaLeft, WgmmaMatrix};
use std::fmt::{self, Write};

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel {}(", self.name)?;
        for (i, p) in self.params.iter().enumerate() {
            write!(f, "{}{}: {}", if i > 0 { ", " } else { "" }, p.name, p.ty)?;
        }
        writeln!(f, ") threads {} warp {} {{", self.threads, self.warp_width)?;
        for (shared, b) in self.shared.iter() {
            let (bytes, align, elem, offset) = (b.bytes, b.align, b.elem_bits, b.offset);
            writeln!(f, "  {shared}: {bytes} bytes, align {align}, elem {elem}, offset {offset}")?;
        }
        block(f, self, self.body, 1)?;
        writeln!(f, "}}")
    }
}

impl Function {
    /// One instruction on one line, without the blocks it may have: for messages.
    pub fn inst_text(&self, inst: InstId) -> String {
        let mut s = String::new();
        // Writing to a string cannot fail.
        let _ = head(&mut s, self, &self.insts[inst]);
        s
    }
}

fn block(f: &mut dyn Write, func: &Function, b: Block, depth: usize) -> fmt::Result {
    let indent = "  ".repeat(depth);
    for &inst in &func.blocks[b].insts {
        let data = &func.insts[inst];
        write!(f, "{indent}")?;
        head(f, func, data)?;
        let separators: &[&str] = match data.op {
            Op::If => &[" {\n", "} else {\n"],
            Op::Loop => &[" {\n", "} body"],
            _ => &[],
        };
        for (i, (&inner, separator)) in data.blocks.iter().zip(separators).enumerate() {
            if i > 0 {
                write!(f, "{indent}")?;
            }
            f.write_str(separator)?;
            if matches!(data.op, Op::Loop) && i == 1 {
                f.write_str(if func.blocks[inner].params.is_empty() { "" } else { " " })?;
                typed(f, func, &func.blocks[inner].params)?;
                f.write_str(" {\n")?;
            }
            block(f, func, inner, depth + 1)?;
        }
        writeln!(f, "{}", if separators.is_empty() { String::new() } else { format!("{indent}}}") })?;
    }
    Ok(())
}

/// `r1: i32, r2: f32`.
fn typed(f: &mut dyn Write, func: &Function, values: &[Value]) -> fmt::Result {
    for (i, &v) in values.iter().enumerate() {
        write!(f, "{}{v}: ", if i > 0 { ", " } else { "" })?;
        match func.values.get(v) {
            Some(data) => write!(f, "{}", data.ty)?,
            None => f.write_str("?")?,
        }
    }
    Ok(())
}

/// `r1, r2`.
fn list(values: &[Value]) -> String {
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// `base` or `base + 4` or `base - 4`.
fn offset(base: &str, by: i32) -> String {
    match by {
        0 => base.into(),
        _ if by > 0 => format!("{base} + {by}"),
        _ => format!("{base} - {}", by.unsigned_abs()),
    }
}

/// The results, the op and its operands. Wrong numbers of operands are printed too: the verifier's messages need it.
fn head(f: &mut dyn Write, func: &Function, inst: &InstData) -> fmt::Result {
    if !inst.results.is_empty() {
        typed(f, func, &inst.results)?;
        f.write_str(" = ")?;
    }
    let o = &inst.operands;
    let nth = |i: usize| o.get(i).map_or("?".into(), ToString::to_string);
    let rest = |i: usize| list(o.get(i..).unwrap_or_default());
    // What follows `n` stored values: nothing, or a predicate.
    let guard = |i: usize| o.get(i).map(|p| format!(" if {p}")).unwrap_or_default();
    match &inst.op {
        Op::Const(bits) => {
            f.write_str("const ")?;
            constant(f, inst.results.first().and_then(|&r| func.values.get(r)).map(|v| v.ty), *bits)
        }
        Op::Param(i) => match func.params.get(*i as usize) {
            Some(p) => write!(f, "param {}", p.name),
            None => write!(f, "param #{i}"),
        },
        Op::Special(s) => write!(f, "{s}"),
        Op::GlobalLoad(a) => {
            write!(f, "global_load.{a} [{}]{}", offset(&nth(0), a.offset), guard(1))?;
            if o.len() > 2 { write!(f, " else {}", rest(2)) } else { Ok(()) }
        }
        Op::GlobalStore(a) => {
            let (values, pred) = stored(o, a);
            write!(f, "global_store.{a} [{}] = {}{pred}", offset(&nth(0), a.offset), list(values))
        }
        Op::SharedLoad(buf, a) => write!(f, "shared_load.{a} {buf}[{}]", offset(&nth(0), a.offset)),
        Op::SharedStore(buf, a) => {
            let (values, pred) = stored(o, a);
            write!(f, "shared_store.{a} {buf}[{}] = {}{pred}", offset(&nth(0), a.offset), list(values))
        }
        Op::CpAsync { buf, bytes, shared_offset, global_offset } => {
            let (to, from) = (offset(&nth(0), *shared_offset), offset(&nth(1), *global_offset));
            write!(f, "cp_async.{bytes} {buf}[{to}] = [{from}]{}", guard(2))
        }
        Op::CpAsyncCommit => f.write_str("cp_async_commit"),
        Op::CpAsyncWait(n) => write!(f, "cp_async_wait {n}"),
        Op::LdMatrix { buf, n, trans, offset: by } => {
            write!(f, "ldmatrix.x{n}{} {buf}[{}]", if *trans { ".trans" } else { "" }, offset(&nth(0), *by))
        }
        Op::Mma(kind) => {
            let part = |from: usize, to: usize| list(o.get(from.min(o.len())..to.min(o.len())).unwrap_or_default());
            write!(f, "mma.{kind} ({}), ({}), ({})", part(0, 4), part(4, 6), part(6, o.len()))
        }
        Op::Wgmma { kind, n, a, b } => {
            let matrix = |m: &WgmmaMatrix, byte: &str| {
                let order = if m.k_inner { "k" } else { "mn" };
                format!("{}[{}] {order} swizzle {} block {}", m.buf, offset(byte, m.offset), m.swizzle, m.block)
            };
            let at = a.operands();
            let a = match a {
                WgmmaLeft::Shared(m) => matrix(m, &nth(0)),
                WgmmaLeft::Registers => list(o.get(..at.min(o.len())).unwrap_or_default()),
            };
            write!(f, "wgmma.{kind}.n{n} ({a}), ({}), ({})", matrix(b, &nth(at)), rest(at + 1))
        }
        Op::WgmmaWait(n) => {
            write!(f, "wgmma_wait {n}")?;
            if o.is_empty() { Ok(()) } else { write!(f, " ({})", list(o)) }
        }
        Op::Shuffle(Shuffle::Xor(mask)) => write!(f, "shuffle.xor {}, {mask}", rest(0)),
        Op::Shuffle(Shuffle::Index) => write!(f, "shuffle.index {}", rest(0)),
        Op::Loop => {
            f.write_str("loop")?;
            if !o.is_empty() {
                f.write_str(" ")?;
                let condition = inst.blocks.first().and_then(|&b| func.blocks.get(b));
                typed(f, func, condition.map_or(&[][..], |b| &b.params))?;
                write!(f, " = {}", list(o))?;
            }
            Ok(())
        }
        op => {
            f.write_str(&name(op))?;
            if o.is_empty() { Ok(()) } else { write!(f, " {}", list(o)) }
        }
    }
}

/// The stored values of a store's operands, and the text of its guard.
fn stored<'a>(operands: &'a [Value], access: &Access) -> (&'a [Value], String) {
    let end = operands.len().min(1 + usize::from(access.n));
    let guard = operands.get(end).map(|p| format!(" if {p}")).unwrap_or_default();
    (operands.get(1..end).unwrap_or_default(), guard)
}

fn constant(f: &mut dyn Write, ty: Option<Ty>, bits: u64) -> fmt::Result {
    match ty {
        Some(Ty::Pred) => write!(f, "{}", bits & 1 == 1),
        Some(Ty::I32) => write!(f, "{}", bits as u32 as i32),
        Some(Ty::I64) => write!(f, "{}", bits as i64),
        // The payload of a NaN is part of the constant.
        Some(Ty::F32) if f32::from_bits(bits as u32).is_nan() => write!(f, "nan {bits:#x}"),
        Some(Ty::F64) if f64::from_bits(bits).is_nan() => write!(f, "nan {bits:#x}"),
        Some(Ty::F32) => write!(f, "{:?}", f32::from_bits(bits as u32)),
        Some(Ty::F64) => write!(f, "{:?}", f64::from_bits(bits)),
        None => write!(f, "{bits:#x}"),
    }
}

/// The name of an op that is printed as its name and its operands.
fn name(op: &Op) -> String {
    match op {
        Op::IBin(b) => ibin(*b).into(),
        Op::FBin(b) => fbin(*b).into(),
        Op::FUn(u) => fun(*u).into(),
        Op::Fma => "fma".into(),
        Op::ICmpS(c) => format!("icmp_s.{}", cmp(*c)),
        Op::ICmpU(c) => format!("icmp_u.{}", cmp(*c)),
        Op::FCmp(c) => format!("fcmp.{}", cmp(*c)),
        Op::Not => "not".into(),
        Op::Select => "select".into(),
        Op::Conv(c) => conv(*c).into(),
        Op::Pack16 => "pack16".into(),
        Op::Barrier => "barrier".into(),
        Op::WarpBarrier => "warp_barrier".into(),
        Op::Hold => "hold".into(),
        Op::WgmmaFence => "wgmma_fence".into(),
        Op::WgmmaCommit => "wgmma_commit".into(),
        Op::AsyncProxyFence => "async_proxy_fence".into(),
        Op::If => "if".into(),
        Op::Yield => "yield".into(),
        Op::Condition => "condition".into(),
        Op::Const(_)
        | Op::Param(_)
        | Op::Special(_)
        | Op::GlobalLoad(_)
        | Op::GlobalStore(_)
        | Op::SharedLoad(..)
        | Op::SharedStore(..)
        | Op::CpAsync { .. }
        | Op::CpAsyncCommit
        | Op::CpAsyncWait(_)
        | Op::LdMatrix { .. }
        | Op::Mma(_)
        | Op::Wgmma { .. }
        | Op::WgmmaWait(_)
        | Op::Shuffle(_)
        | Op::Loop => unreachable!("`head` prints these itself"),
    }
}

impl fmt::Display for AbiTy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            AbiTy::I32 => "i32",
            AbiTy::I64 => "i64",
            AbiTy::F32 => "f32",
            AbiTy::F64 => "f64",
            AbiTy::Ptr => "ptr",
        })
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.n == 1 { write!(f, "{}", self.bits) } else { write!(f, "{}x{}", self.bits, self.n) }
    }
}

impl fmt::Display for Special {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Special::Thread => f.write_str("thread"),
            Special::Lane => f.write_str("lane"),
            Special::Warp => f.write_str("warp"),
            Special::ProgramId(axis) => write!(f, "program_id {axis}"),
            Special::NumPrograms(axis) => write!(f, "num_programs {axis}"),
        }
    }
}

impl fmt::Display for MmaKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            MmaKind::F16 => "f16",
            MmaKind::Bf16 => "bf16",
            MmaKind::Tf32 => "tf32",
            MmaKind::S8 => "s8",
            MmaKind::U8 => "u8",
        })
    }
}

fn ibin(op: IBin) -> &'static str {
    match op {
        IBin::Add => "add",
        IBin::Sub => "sub",
        IBin::Mul => "mul",
        IBin::MulHiS => "mul_hi_s",
        IBin::MulHiU => "mul_hi_u",
        IBin::DivS => "div_s",
        IBin::DivU => "div_u",
        IBin::RemS => "rem_s",
        IBin::RemU => "rem_u",
        IBin::MinS => "min_s",
        IBin::MinU => "min_u",
        IBin::MaxS => "max_s",
        IBin::MaxU => "max_u",
        IBin::And => "and",
        IBin::Or => "or",
        IBin::Xor => "xor",
        IBin::Shl => "shl",
        IBin::ShrS => "shr_s",
        IBin::ShrU => "shr_u",
    }
}

fn fbin(op: FBin) -> &'static str {
    match op {
        FBin::Add => "fadd",
        FBin::Sub => "fsub",
        FBin::Mul => "fmul",
        FBin::Div => "fdiv",
        FBin::Min => "fmin",
        FBin::Max => "fmax",
        FBin::MinNan => "fmin_nan",
        FBin::MaxNan => "fmax_nan",
    }
}

fn fun(op: FUn) -> &'static str {
    match op {
        FUn::Neg => "fneg",
        FUn::Abs => "fabs",
        FUn::Sqrt => "fsqrt",
        FUn::Floor => "ffloor",
        FUn::Ceil => "fceil",
        FUn::Trunc => "ftrunc",
        FUn::RoundEven => "fround_even",
        FUn::Exp2Approx => "exp2_approx",
        FUn::Log2Approx => "log2_approx",
        FUn::RcpApprox => "rcp_approx",
        FUn::RsqrtApprox => "rsqrt_approx",
    }
}

fn cmp(op: Cmp) -> &'static str {
    match op {
        Cmp::Eq => "eq",
        Cmp::Ne => "ne",
        Cmp::Lt => "lt",
        Cmp::Le => "le",
        Cmp::Gt => "gt",
        Cmp::Ge => "ge",
    }
}

fn conv(op: Conv) -> &'static str {
    match op {
        Conv::SExt64 => "sext64",
        Conv::ZExt64 => "zext64",
        Conv::Trunc32 => "trunc32",
        Conv::SExt8 => "sext8",
        Conv::SExt16 => "sext16",
        Conv::SToF => "s_to_f",
        Conv::UToF => "u_to_f",
        Conv::FToS => "f_to_s",
        Conv::FToU => "f_to_u",
        Conv::F32ToF64 => "f32_to_f64",
        Conv::F64ToF32 => "f64_to_f32",
        Conv::F16LoToF32 => "f16_lo_to_f32",
        Conv::F16HiToF32 => "f16_hi_to_f32",
        Conv::F32ToF16 => "f32_to_f16",
        Conv::F32ToBf16 => "f32_to_bf16",
        Conv::F32ToTf32 => "f32_to_tf32",
        Conv::Bitcast => "bitcast",
        Conv::PredToI32 => "pred_to_i32",
    }
}

#[cfg(test)]
mod tests {
    use crate::thread::{AbiParam, AbiTy, Access, Builder, Cmp, IBin, MmaKind, Op, SharedBuf, Special, Ty};

    #[test]
    fn the_text_shows_everything() {
        let params = vec![AbiParam { name: "x".into(), ty: AbiTy::Ptr }, AbiParam { name: "n".into(), ty: AbiTy::I32 }];
        let mut b = Builder::new("demo", params, 64, 32);
        let buf = b.shared(SharedBuf { bytes: 512, align: 16, elem_bits: 16, offset: 128 });
        let (x, n, t) = (b.param(0), b.param(1), b.special(Special::Thread));
        let p = b.icmp_s(Cmp::Lt, t, n);
        let zero = b.i32(0);
        let access = Access { bits: 16, n: 2, offset: 16 };
        let v = b.global_load(access, Ty::I32, x, Some((p, &[zero, zero])));
        let byte = b.shift_imm(IBin::Shl, t, 2);
        b.shared_store(buf, access, byte, &v, Some(p));
        b.emit(Op::CpAsync { buf, bytes: 16, shared_offset: -16, global_offset: 0 }, vec![byte, x, p], &[]);
        b.emit(Op::CpAsyncCommit, vec![], &[]);
        b.emit(Op::CpAsyncWait(1), vec![], &[]);
        b.barrier();
        let m = b.emit(Op::LdMatrix { buf, n: 4, trans: true, offset: 32 }, vec![byte], &[Ty::I32; 4]);
        let c = b.fconst(Ty::F32, 0.5);
        let d = b.mma(MmaKind::F16, &m, &m[..2], &[c; 4]);
        let s = b.shuffle_xor(d[0], 16);
        let r = {
            b.begin_if(p);
            b.begin_else(&[s]);
            b.end_if(&[c])[0]
        };
        let carried = b.begin_loop(&[zero, r]);
        let go_on = b.icmp_s(Cmp::Lt, carried[0], n);
        let carried = b.loop_body(go_on);
        let next = b.add_imm(carried[0], -1);
        let out = b.end_loop(&[next, carried[1]]);
        b.global_store(Access { bits: 32, n: 1, offset: 0 }, x, &[out[1]], None);
        let text = b.finish().to_string();
        let expected = "\
kernel demo(x: ptr, n: i32) threads 64 warp 32 {
  shared0: 512 bytes, align 16, elem 16, offset 128
  r0: i64 = param x
  r1: i32 = param n
  r2: i32 = thread
  r3: pred = icmp_s.lt r2, r1
  r4: i32 = const 0
  r5: i32, r6: i32 = global_load.16x2 [r0 + 16] if r3 else r4, r4
  r7: i32 = const 2
  r8: i32 = shl r2, r7
  shared_store.16x2 shared0[r8 + 16] = r5, r6 if r3
  cp_async.16 shared0[r8 - 16] = [r0] if r3
  cp_async_commit
  cp_async_wait 1
  barrier
  r9: i32, r10: i32, r11: i32, r12: i32 = ldmatrix.x4.trans shared0[r8 + 32]
  r13: f32 = const 0.5
  r14: f32, r15: f32, r16: f32, r17: f32 = mma.f16 (r9, r10, r11, r12), (r9, r10), (r13, r13, r13, r13)
  r18: f32 = shuffle.xor r14, 16
  r19: f32 = if r3 {
    yield r18
  } else {
    yield r13
  }
  r25: i32 = const -1
  r27: i32, r28: f32 = loop r20: i32, r21: f32 = r4, r19 {
    r22: pred = icmp_s.lt r20, r1
    condition r22
  } body r23: i32, r24: f32 {
    r26: i32 = add r23, r25
    yield r26, r24
  }
  global_store.32 [r0] = r28
  yield
}
";
        assert_eq!(text, expected);
    }

    #[test]
    fn constants_are_printed_by_type() {
        let mut b = Builder::new("constants", vec![], 1, 1);
        b.pred(true);
        b.i32(-7);
        b.i64(1 << 40);
        b.constant(Ty::F32, 0x7fc0_0001);
        b.fconst(Ty::F64, 1e300);
        b.fconst(Ty::F32, f64::NEG_INFINITY);
        let text = b.finish().to_string();
        let lines: Vec<_> = text.lines().skip(1).take(6).map(str::trim).collect();
        assert_eq!(
            lines,
            [
                "r0: pred = const true",
                "r1: i32 = const -7",
                "r2: i64 = const 1099511627776",
                "r3: f32 = const nan 0x7fc00001",
                "r4: f64 = const 1e300",
                "r5: f32 = const -inf",
            ]
        );
    }
}
