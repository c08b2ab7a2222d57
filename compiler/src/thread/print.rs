//! The text of Thread IR: for people, golden tests and messages. Deterministic; [`super::parse()`] reads it back.
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
//! `.32x4` is an access of 4 elements of 32 bits. Comments begin with `;`. A name that is no identifier, or looks like a
//! register's, stands in quotes. An operand that is missing is `?`; those that are too many stand after `extra`.

use super::function::{AbiTy, Block, Function, InstData, InstId, Shared, Value};
use super::ops::{Access, Op, Ty};
use super::syntax::{Number, Text, is_plain, syntax, taken};
use crate::text::quoted;
use std::fmt::{self, Write};

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel {}(", name(&self.name))?;
        for (i, p) in self.params.iter().enumerate() {
            write!(f, "{}{}: {}", if i > 0 { ", " } else { "" }, name(&p.name), p.ty)?;
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

/// A name, in quotes if it is not an identifier.
fn name(name: &str) -> String {
    if is_plain(name) { name.into() } else { quoted(name) }
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

fn list(f: &mut dyn Write, values: &[Value]) -> fmt::Result {
    for (i, v) in values.iter().enumerate() {
        write!(f, "{}{v}", if i > 0 { ", " } else { "" })?;
    }
    Ok(())
}

/// The results, the op and its operands. Wrong numbers of operands are printed too: the verifier's messages need it.
fn head(f: &mut dyn Write, func: &Function, inst: &InstData) -> fmt::Result {
    if !inst.results.is_empty() {
        typed(f, func, &inst.results)?;
        f.write_str(" = ")?;
    }
    f.write_str(inst.op.info().name)?;
    if inst.op == Op::Loop {
        let condition = inst.blocks.first().and_then(|&b| func.blocks.get(b));
        let carried = condition.map_or(&[][..], |b| &b.params);
        if !(carried.is_empty() && inst.operands.is_empty()) {
            f.write_str(" ")?;
            typed(f, func, carried)?;
            f.write_str(" = ")?;
            list(f, &inst.operands)?;
        }
        return Ok(());
    }
    syntax(&mut inst.op.clone(), &mut Writer { out: f, func, inst, at: 0 })
}

/// Writes what follows an op's name.
struct Writer<'a> {
    out: &'a mut dyn Write,
    func: &'a Function,
    inst: &'a InstData,
    /// Operands written.
    at: usize,
}

impl Text for Writer<'_> {
    type Error = fmt::Error;

    fn width(&mut self, access: &mut Access) -> fmt::Result {
        write!(self.out, ".{access}")
    }

    fn tagged(&mut self, tag: &'static str, n: &mut impl Number) -> fmt::Result {
        write!(self.out, ".{tag}{}", (*n).into())
    }

    fn flagged(&mut self, tag: &'static str, set: &mut bool) -> fmt::Result {
        if *set { write!(self.out, ".{tag}") } else { Ok(()) }
    }

    fn literal(&mut self, text: &'static str) -> fmt::Result {
        self.out.write_str(text)
    }

    fn either(&mut self, words: [&'static str; 2], first: &mut bool) -> fmt::Result {
        self.out.write_str(words[usize::from(!*first)])
    }

    fn number(&mut self, n: &mut impl Number, _what: &'static str) -> fmt::Result {
        write!(self.out, "{}", (*n).into())
    }

    fn constant(&mut self, bits: &mut u64) -> fmt::Result {
        let ty = self.inst.results.first().and_then(|&r| self.func.values.get(r)).map(|v| v.ty);
        self.out.write_str(" ")?;
        constant(self.out, ty, *bits)
    }

    fn param(&mut self, index: &mut u32) -> fmt::Result {
        let params = &self.func.params;
        // By its number where a name would mean another.
        match params.get(*index as usize) {
            Some(p) if params.iter().position(|q| q.name == p.name) == Some(*index as usize) => {
                write!(self.out, " {}", name(&p.name))
            }
            _ => write!(self.out, " #{index}"),
        }
    }

    fn buffer(&mut self, buf: &mut Shared) -> fmt::Result {
        write!(self.out, "{buf}")
    }

    fn operand(&mut self) -> fmt::Result {
        self.at += 1;
        match self.inst.operands.get(self.at - 1) {
            Some(v) => write!(self.out, "{v}"),
            None => self.out.write_str("?"),
        }
    }

    fn operands(&mut self, n: usize) -> fmt::Result {
        let values = taken(&self.inst.operands, self.at, n);
        self.at += values.len();
        list(self.out, values)
    }

    fn rest(&mut self) -> fmt::Result {
        self.operands(usize::MAX)
    }

    fn more(&mut self, text: &'static str) -> Result<bool, fmt::Error> {
        let more = self.at < self.inst.operands.len();
        if more {
            self.out.write_str(text)?;
        }
        Ok(more)
    }

    fn is_register(&mut self, known: bool) -> bool {
        known
    }

    fn offset(&mut self, by: &mut i32) -> fmt::Result {
        match *by {
            0 => Ok(()),
            by if by > 0 => write!(self.out, " + {by}"),
            by => write!(self.out, " - {}", by.unsigned_abs()),
        }
    }
}

fn constant(f: &mut dyn Write, ty: Option<Ty>, bits: u64) -> fmt::Result {
    match ty {
        // Bits beyond the type, which the verifier refuses, are shown, too.
        Some(ty) if super::eval::truncate(ty, bits) != bits => write!(f, "{bits:#x}"),
        Some(Ty::Pred) => write!(f, "{}", bits == 1),
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

impl fmt::Display for AbiTy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.n == 1 { write!(f, "{}", self.bits) } else { write!(f, "{}x{}", self.bits, self.n) }
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
