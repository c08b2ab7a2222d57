//! Pure ops.

use super::body::Emitter;
use super::{declared, param_name};
use crate::thread::{Cmp, Conv, FBin, FUn, IBin, InstData, Op, Special, Ty, Value};
use crate::{Error, Result};

/// `f32` or `f64`, `s32` or `s64` and so on.
fn typed(letter: char, ty: Ty) -> String {
    format!("{letter}{}", ty.bits())
}

fn compare(op: Cmp) -> &'static str {
    match op {
        Cmp::Eq => "eq",
        Cmp::Ne => "ne",
        Cmp::Lt => "lt",
        Cmp::Le => "le",
        Cmp::Gt => "gt",
        Cmp::Ge => "ge",
    }
}

impl Emitter<'_> {
    /// Prints a pure op. Where it takes several instructions, the last alone writes the result.
    pub(super) fn pure(&mut self, inst: &InstData) -> Result<()> {
        let result = inst.results[0];
        let ty = self.func.ty(result);
        if let Op::Const(bits) = inst.op {
            if self.registers.materialized.contains(&result) {
                let d = self.register(result);
                match ty {
                    Ty::Pred => self.line(format_args!("setp.ne.b32 {d}, {}, 0", bits & 1)),
                    _ => self.line(format_args!("mov.{} {d}, {}", declared(ty), self.operand(result))),
                }
            }
            return Ok(());
        }
        let d = self.register(result);
        let a: Vec<String> = inst.operands.iter().map(|&v| self.operand(v)).collect();
        let from = inst.operands.first().map_or(ty, |&v| self.func.ty(v));
        match inst.op {
            Op::Param(i) => self.line(format_args!("ld.param.{} {d}, [{}]", declared(ty), param_name(i as usize))),
            Op::Special(s) => self.special(s, &d)?,
            Op::IBin(op) => self.integer(op, ty, &d, &a, inst.operands[1]),
            Op::FBin(op) => self.float(op, ty, &d, &a),
            Op::FUn(op) => self.function(op, ty, &d, &a[0]),
            Op::Fma => self.line(format_args!("fma.rn.{} {d}, {}", declared(ty), a.join(", "))),
            Op::ICmpS(c) => self.line(format_args!("setp.{}.{} {d}, {}", compare(c), typed('s', from), a.join(", "))),
            Op::ICmpU(c) => {
                let name = match c {
                    Cmp::Eq => "eq",
                    Cmp::Ne => "ne",
                    Cmp::Lt => "lo",
                    Cmp::Le => "ls",
                    Cmp::Gt => "hi",
                    Cmp::Ge => "hs",
                };
                self.line(format_args!("setp.{name}.{} {d}, {}", typed('u', from), a.join(", ")));
            }
            Op::FCmp(c) => {
                // The unordered form: true for NaN.
                let name = if c == Cmp::Ne { "neu" } else { compare(c) };
                self.line(format_args!("setp.{name}.{} {d}, {}", declared(from), a.join(", ")));
            }
            Op::Not => self.line(format_args!("not.pred {d}, {}", a[0])),
            Op::Select if ty == Ty::Pred => {
                let (yes, no) = (self.temporary(Ty::Pred), self.temporary(Ty::Pred));
                self.line(format_args!("not.pred {no}, {}", a[0]));
                self.line(format_args!("and.pred {no}, {no}, {}", a[2]));
                self.line(format_args!("and.pred {yes}, {}, {}", a[0], a[1]));
                self.line(format_args!("or.pred {d}, {yes}, {no}"));
            }
            Op::Select => self.line(format_args!("selp.{} {d}, {}, {}, {}", declared(ty), a[1], a[2], a[0])),
            Op::Conv(c) => self.convert(c, from, ty, &d, &a[0]),
            Op::Pack16 => self.line(format_args!("prmt.b32 {d}, {}, {}, 0x5410", a[0], a[1])),
            ref op => return Err(Error::Internal(format!("{op:?} is not a pure op"))),
        }
        Ok(())
    }

    fn special(&mut self, special: Special, d: &str) -> Result<()> {
        let axis = |axis: u8| {
            let name = ["x", "y", "z"].get(usize::from(axis));
            name.copied().ok_or_else(|| Error::Internal(format!("grid axis {axis} of `{}`", self.func.name)))
        };
        let (source, then) = match special {
            Special::Thread => ("%tid.x".to_owned(), None),
            Special::Lane => ("%tid.x".to_owned(), Some("and.b32 {d}, {d}, 31")),
            Special::Warp => ("%tid.x".to_owned(), Some("shr.u32 {d}, {d}, 5")),
            Special::ProgramId(a) => (format!("%ctaid.{}", axis(a)?), None),
            Special::NumPrograms(a) => (format!("%nctaid.{}", axis(a)?), None),
        };
        self.line(format_args!("mov.u32 {d}, {source}"));
        if let Some(then) = then {
            self.line(then.replace("{d}", d));
        }
        Ok(())
    }

    fn integer(&mut self, op: IBin, ty: Ty, d: &str, a: &[String], amount: Value) {
        let bits = declared(ty);
        let (name, suffix) = match op {
            IBin::Add => ("add", typed('s', ty)),
            IBin::Sub => ("sub", typed('s', ty)),
            IBin::Mul => ("mul.lo", typed('s', ty)),
            IBin::MulHiS => ("mul.hi", typed('s', ty)),
            IBin::MulHiU => ("mul.hi", typed('u', ty)),
            IBin::DivS => ("div", typed('s', ty)),
            IBin::DivU => ("div", typed('u', ty)),
            IBin::RemS => ("rem", typed('s', ty)),
            IBin::RemU => ("rem", typed('u', ty)),
            IBin::MinS => ("min", typed('s', ty)),
            IBin::MinU => ("min", typed('u', ty)),
            IBin::MaxS => ("max", typed('s', ty)),
            IBin::MaxU => ("max", typed('u', ty)),
            IBin::And => ("and", bits.to_owned()),
            IBin::Or => ("or", bits.to_owned()),
            IBin::Xor => ("xor", bits.to_owned()),
            IBin::Shl => ("shl", bits.to_owned()),
            IBin::ShrS => ("shr", typed('s', ty)),
            IBin::ShrU => ("shr", typed('u', ty)),
        };
        let shift = matches!(op, IBin::Shl | IBin::ShrS | IBin::ShrU);
        if shift && ty == Ty::I64 && !self.registers.constants.contains_key(&amount) {
            // PTX takes the amount in 32 bits.
            let t = self.temporary(Ty::I32);
            self.line(format_args!("cvt.u32.u64 {t}, {}", a[1]));
            self.line(format_args!("{name}.{suffix} {d}, {}, {t}", a[0]));
        } else {
            self.line(format_args!("{name}.{suffix} {d}, {}, {}", a[0], a[1]));
        }
    }

    fn float(&mut self, op: FBin, ty: Ty, d: &str, a: &[String]) {
        let t = declared(ty);
        let name = match op {
            FBin::Add => "add.rn",
            FBin::Sub => "sub.rn",
            FBin::Mul => "mul.rn",
            FBin::Div => "div.rn",
            // PTX orders -0 below +0 in all of these.
            FBin::Min => "min",
            FBin::Max => "max",
            FBin::MinNan if ty == Ty::F32 => "min.NaN",
            FBin::MaxNan if ty == Ty::F32 => "max.NaN",
            FBin::MinNan | FBin::MaxNan => {
                let (sum, least, nan) = (self.temporary(ty), self.temporary(ty), self.temporary(Ty::Pred));
                let name = if op == FBin::MinNan { "min" } else { "max" };
                self.line(format_args!("setp.nan.f64 {nan}, {}, {}", a[0], a[1]));
                self.line(format_args!("add.rn.f64 {sum}, {}, {}", a[0], a[1]));
                self.line(format_args!("{name}.f64 {least}, {}, {}", a[0], a[1]));
                self.line(format_args!("selp.f64 {d}, {sum}, {least}, {nan}"));
                return;
            }
        };
        self.line(format_args!("{name}.{t} {d}, {}, {}", a[0], a[1]));
    }

    fn function(&mut self, op: FUn, ty: Ty, d: &str, a: &str) {
        let t = declared(ty);
        let name = match op {
            FUn::Neg => format!("neg.{t}"),
            FUn::Abs => format!("abs.{t}"),
            FUn::Sqrt => format!("sqrt.rn.{t}"),
            FUn::Floor => format!("cvt.rmi.{t}.{t}"),
            FUn::Ceil => format!("cvt.rpi.{t}.{t}"),
            FUn::Trunc => format!("cvt.rzi.{t}.{t}"),
            FUn::RoundEven => format!("cvt.rni.{t}.{t}"),
            FUn::Exp2Approx => format!("ex2.approx.ftz.{t}"),
            FUn::Log2Approx => format!("lg2.approx.ftz.{t}"),
            FUn::RcpApprox => format!("rcp.approx.ftz.{t}"),
            FUn::RsqrtApprox => format!("rsqrt.approx.ftz.{t}"),
        };
        self.line(format_args!("{name} {d}, {a}"));
    }

    fn convert(&mut self, op: Conv, from: Ty, to: Ty, d: &str, a: &str) {
        let simple = |name: &str| format!("{name} {d}, {a}");
        let line = match op {
            Conv::SExt64 => simple("cvt.s64.s32"),
            Conv::ZExt64 => simple("cvt.u64.u32"),
            Conv::Trunc32 => simple("cvt.u32.u64"),
            Conv::SExt8 => simple("cvt.s32.s8"),
            Conv::SExt16 => simple("cvt.s32.s16"),
            Conv::SToF => simple(&format!("cvt.rn.{}.{}", declared(to), typed('s', from))),
            Conv::UToF => simple(&format!("cvt.rn.{}.{}", declared(to), typed('u', from))),
            Conv::FToS | Conv::FToU => {
                let name = typed(if op == Conv::FToS { 's' } else { 'u' }, to);
                if from == Ty::F32 && to == Ty::I32 {
                    // The only pair for which PTX itself takes NaN to 0.
                    simple(&format!("cvt.rzi.{name}.f32"))
                } else {
                    let (t, number) = (self.temporary(to), self.temporary(Ty::Pred));
                    let from = declared(from);
                    self.line(format_args!("setp.num.{from} {number}, {a}, {a}"));
                    self.line(format_args!("cvt.rzi.{name}.{from} {t}, {a}"));
                    format!("selp.{} {d}, {t}, 0, {number}", declared(to))
                }
            }
            Conv::F32ToF64 => simple("cvt.f64.f32"),
            Conv::F64ToF32 => simple("cvt.rn.f32.f64"),
            Conv::F16LoToF32 | Conv::F16HiToF32 => {
                let half = if op == Conv::F16LoToF32 { "lo" } else { "hi" };
                self.scope(format_args!(".reg .b16 lo, hi; mov.b32 {{lo, hi}}, {a}; cvt.f32.f16 {d}, {half}"));
                return;
            }
            Conv::F32ToF16 => format!("cvt.rn.f16x2.f32 {d}, 0f00000000, {a}"),
            Conv::F32ToBf16 => format!("cvt.rn.bf16x2.f32 {d}, 0f00000000, {a}"),
            Conv::F32ToTf32 => simple("cvt.rna.tf32.f32"),
            Conv::Bitcast => simple(&format!("mov.b{}", to.bits())),
            Conv::PredToI32 => format!("selp.b32 {d}, 1, 0, {a}"),
        };
        self.line(line);
    }

    /// Two conversions to 16 bits in one register.
    pub(super) fn pack_converted(&mut self, conv: Conv, [low, high]: [Value; 2], result: Value) {
        let name = if conv == Conv::F32ToBf16 { "bf16x2" } else { "f16x2" };
        let (d, low, high) = (self.register(result), self.operand(low), self.operand(high));
        self.line(format_args!("cvt.rn.{name}.f32 {d}, {high}, {low}"));
    }
}
