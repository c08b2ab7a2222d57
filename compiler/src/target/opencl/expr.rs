//! Pure ops as expressions.

use super::stmt::Emitter;
use super::{argument, signed_name, type_name};
use crate::thread::{AbiTy, Cmp, Conv, FBin, FUn, IBin, InstData, Op, Special, Ty};
use crate::{Error, Result};

/// A constant by its bits.
pub(super) fn constant(ty: Ty, bits: u64) -> String {
    match ty {
        Ty::Pred => (if bits & 1 == 1 { "true" } else { "false" }).to_owned(),
        Ty::I32 => format!("{}u", bits as u32),
        Ty::I64 => format!("{bits}ul"),
        Ty::F32 => format!("as_float(0x{:08x}u)", bits as u32),
        Ty::F64 => format!("as_double(0x{bits:016x}ul)"),
    }
}

fn compare(op: Cmp) -> &'static str {
    match op {
        Cmp::Eq => "==",
        Cmp::Ne => "!=",
        Cmp::Lt => "<",
        Cmp::Le => "<=",
        Cmp::Gt => ">",
        Cmp::Ge => ">=",
    }
}

impl Emitter<'_> {
    /// The value of a pure op of one result, but for the conversions from and to `f16`, which are statements.
    pub(super) fn expression(&self, inst: &InstData) -> Result<String> {
        let func = self.func;
        let ty = func.ty(inst.results[0]);
        let a: Vec<String> = inst.operands.iter().map(|&v| self.operand(v)).collect();
        let from = inst.operands.first().map_or(ty, |&v| func.ty(v));
        Ok(match inst.op {
            Op::Param(i) => {
                let name = argument(i as usize);
                match func.params[i as usize].ty {
                    AbiTy::I32 => format!("(uint){name}"),
                    AbiTy::I64 => format!("(ulong){name}"),
                    AbiTy::Ptr => format!("(ulong){name} + {name}_offset"),
                    AbiTy::F32 | AbiTy::F64 => name,
                }
            }
            Op::Special(s) => match s {
                Special::Thread => "(uint)get_local_id(0)".to_owned(),
                Special::Lane => format!("(uint)get_local_id(0) & {}u", func.warp_width - 1),
                Special::Warp => format!("(uint)get_local_id(0) / {}u", func.warp_width),
                Special::ProgramId(axis) => format!("(uint)get_group_id({axis})"),
                Special::NumPrograms(axis) => format!("(uint)get_num_groups({axis})"),
            },
            Op::IBin(op) => integer(op, ty, &a[0], &a[1]),
            Op::FBin(op) => float(op, &a[0], &a[1]),
            Op::FUn(op) => self.function(op, &a[0])?,
            Op::Fma => format!("fma({}, {}, {})", a[0], a[1], a[2]),
            Op::ICmpS(c) => {
                let s = signed_name(from);
                format!("({s}){} {} ({s}){}", a[0], compare(c), a[1])
            }
            Op::ICmpU(c) | Op::FCmp(c) => format!("{} {} {}", a[0], compare(c), a[1]),
            Op::Not => format!("!{}", a[0]),
            Op::Select => format!("{} ? {} : {}", a[0], a[1], a[2]),
            Op::Conv(c) => convert(c, ty, &a[0])?,
            Op::Pack16 => format!("({} & 0xffffu) | ({} << 16)", a[0], a[1]),
            ref op => return Err(Error::Internal(format!("{op:?} is not a pure op"))),
        })
    }

    fn function(&self, op: FUn, a: &str) -> Result<String> {
        let name = match op {
            FUn::Neg => "-",
            FUn::Abs => "fabs",
            FUn::Sqrt => "sqrt",
            FUn::Floor => "floor",
            FUn::Ceil => "ceil",
            FUn::Trunc => "trunc",
            FUn::RoundEven => "rint",
            FUn::Exp2Approx | FUn::Log2Approx | FUn::RcpApprox | FUn::RsqrtApprox => {
                return Err(Error::Internal(format!("{op:?} has no OpenCL C")));
            }
        };
        Ok(format!("{name}({a})"))
    }
}

fn integer(op: IBin, ty: Ty, a: &str, b: &str) -> String {
    let (u, s) = (type_name(ty), signed_name(ty));
    let pred = ty == Ty::Pred;
    match op {
        IBin::Add => format!("{a} + {b}"),
        IBin::Sub => format!("{a} - {b}"),
        IBin::Mul => format!("{a} * {b}"),
        IBin::MulHiS => format!("({u})mul_hi(({s}){a}, ({s}){b})"),
        IBin::MulHiU => format!("mul_hi({a}, {b})"),
        IBin::DivS => format!("({u})(({s}){a} / ({s}){b})"),
        IBin::DivU => format!("{a} / {b}"),
        IBin::RemS => format!("({u})(({s}){a} % ({s}){b})"),
        IBin::RemU => format!("{a} % {b}"),
        IBin::MinS => format!("({u})min(({s}){a}, ({s}){b})"),
        IBin::MinU => format!("min({a}, {b})"),
        IBin::MaxS => format!("({u})max(({s}){a}, ({s}){b})"),
        IBin::MaxU => format!("max({a}, {b})"),
        IBin::And if pred => format!("{a} && {b}"),
        IBin::And => format!("{a} & {b}"),
        IBin::Or if pred => format!("{a} || {b}"),
        IBin::Or => format!("{a} | {b}"),
        IBin::Xor if pred => format!("{a} != {b}"),
        IBin::Xor => format!("{a} ^ {b}"),
        IBin::Shl => format!("{a} << {b}"),
        IBin::ShrS => format!("({u})(({s}){a} >> {b})"),
        IBin::ShrU => format!("{a} >> {b}"),
    }
}

fn float(op: FBin, a: &str, b: &str) -> String {
    // Of two zeros the negative one is the lesser.
    let least = format!("{a} < {b} || ({a} == {b} && signbit({a})) ? {a} : {b}");
    let greatest = format!("{a} > {b} || ({a} == {b} && !signbit({a})) ? {a} : {b}");
    match op {
        FBin::Add => format!("{a} + {b}"),
        FBin::Sub => format!("{a} - {b}"),
        FBin::Mul => format!("{a} * {b}"),
        FBin::Div => format!("{a} / {b}"),
        FBin::Min => format!("{a} != {a} ? {b} : {b} != {b} ? {a} : {least}"),
        FBin::Max => format!("{a} != {a} ? {b} : {b} != {b} ? {a} : {greatest}"),
        FBin::MinNan => format!("{a} != {a} || {b} != {b} ? {a} + {b} : {least}"),
        FBin::MaxNan => format!("{a} != {a} || {b} != {b} ? {a} + {b} : {greatest}"),
    }
}

fn convert(op: Conv, to: Ty, a: &str) -> Result<String> {
    let (u, s) = (type_name(to), signed_name(to));
    Ok(match op {
        Conv::SExt64 => format!("(ulong)(long)(int){a}"),
        Conv::ZExt64 => format!("(ulong){a}"),
        Conv::Trunc32 => format!("(uint){a}"),
        Conv::SExt8 => format!("(uint)(int)(char){a}"),
        Conv::SExt16 => format!("(uint)(int)(short){a}"),
        Conv::FToS => format!("{a} != {a} ? 0 : ({u})convert_{s}_sat_rtz({a})"),
        Conv::FToU => format!("{a} != {a} ? 0 : convert_{u}_sat_rtz({a})"),
        Conv::F32ToF64 => format!("(double){a}"),
        Conv::F64ToF32 => format!("convert_float_rte({a})"),
        Conv::Bitcast => format!("as_{u}({a})"),
        Conv::PredToI32 => format!("{a} ? 1u : 0u"),
        Conv::UToF => format!("convert_{u}_rte({a})"),
        Conv::SToF | Conv::F16LoToF32 | Conv::F16HiToF32 | Conv::F32ToF16 | Conv::F32ToBf16 | Conv::F32ToTf32 => {
            return Err(Error::Internal(format!("{op:?} has no OpenCL C expression")));
        }
    })
}
