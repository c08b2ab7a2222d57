//! The value of pure Thread IR ops on known operands: used by the builder to fold and by the simulator to execute.

use super::ops::{Cmp, Conv, FBin, FUn, IBin, Op, Ty};

/// The bits of a register, in the low bits.
pub type Bits = u64;

fn f32_of(b: Bits) -> f32 {
    f32::from_bits(b as u32)
}

fn f64_of(b: Bits) -> f64 {
    f64::from_bits(b)
}

fn signed(ty: Ty, b: Bits) -> i64 {
    if ty == Ty::I32 { i64::from(b as u32 as i32) } else { b as i64 }
}

fn unsigned(ty: Ty, b: Bits) -> u64 {
    if ty == Ty::I32 { u64::from(b as u32) } else { b }
}

/// Truncates to the width of `ty`.
pub fn truncate(ty: Ty, b: Bits) -> Bits {
    match ty {
        Ty::Pred => b & 1,
        Ty::I32 | Ty::F32 => b & 0xffff_ffff,
        Ty::I64 | Ty::F64 => b,
    }
}

/// The result of an integer op on operands of type `ty`. Division by zero gives 0 (the lowering never divides by zero).
pub fn ibin(op: IBin, ty: Ty, a: Bits, b: Bits) -> Bits {
    let (sa, sb) = (signed(ty, a), signed(ty, b));
    let (ua, ub) = (unsigned(ty, a), unsigned(ty, b));
    let width = ty.bits();
    let shift = (ub & u64::from(width - 1).max(1)) as u32;
    let r = match op {
        IBin::Add => a.wrapping_add(b),
        IBin::Sub => a.wrapping_sub(b),
        IBin::Mul => a.wrapping_mul(b),
        IBin::MulHiS => ((i128::from(sa) * i128::from(sb)) >> width) as u64,
        IBin::MulHiU => ((u128::from(ua) * u128::from(ub)) >> width) as u64,
        IBin::DivS => sa.checked_div(sb).unwrap_or(0) as u64,
        IBin::DivU => ua.checked_div(ub).unwrap_or(0),
        IBin::RemS => sa.checked_rem(sb).unwrap_or(0) as u64,
        IBin::RemU => ua.checked_rem(ub).unwrap_or(0),
        IBin::MinS => sa.min(sb) as u64,
        IBin::MinU => ua.min(ub),
        IBin::MaxS => sa.max(sb) as u64,
        IBin::MaxU => ua.max(ub),
        IBin::And => a & b,
        IBin::Or => a | b,
        IBin::Xor => a ^ b,
        IBin::Shl => ua << shift,
        IBin::ShrS => (sa >> shift) as u64,
        IBin::ShrU => ua >> shift,
    };
    truncate(ty, r)
}

macro_rules! float_min_max {
    ($a:ident, $b:ident, $op:ident) => {{
        // Of two zeros the negative one is the lesser.
        let lesser = if $a < $b || ($a == $b && $a.is_sign_negative()) { $a } else { $b };
        let greater = if $a > $b || ($a == $b && $a.is_sign_positive()) { $a } else { $b };
        match ($op, $a.is_nan(), $b.is_nan()) {
            (FBin::Min | FBin::Max, true, _) => $b,
            (FBin::Min | FBin::Max, false, true) => $a,
            (FBin::MinNan | FBin::MaxNan, true, _) => $a,
            (FBin::MinNan | FBin::MaxNan, _, true) => $b,
            (FBin::Min | FBin::MinNan, ..) => lesser,
            _ => greater,
        }
    }};
}

/// The result of a float op on operands of type `ty`.
pub fn fbin(op: FBin, ty: Ty, a: Bits, b: Bits) -> Bits {
    macro_rules! arithmetic {
        ($a:ident, $b:ident) => {
            match op {
                FBin::Add => $a + $b,
                FBin::Sub => $a - $b,
                FBin::Mul => $a * $b,
                FBin::Div => $a / $b,
                FBin::Min | FBin::Max | FBin::MinNan | FBin::MaxNan => float_min_max!($a, $b, op),
            }
        };
    }
    if ty == Ty::F32 {
        let (a, b) = (f32_of(a), f32_of(b));
        u64::from(arithmetic!(a, b).to_bits())
    } else {
        let (a, b) = (f64_of(a), f64_of(b));
        arithmetic!(a, b).to_bits()
    }
}

/// The result of a float function of one operand. The approximations are computed in double precision.
pub fn fun(op: FUn, ty: Ty, a: Bits) -> Bits {
    macro_rules! function {
        ($x:expr) => {
            match op {
                FUn::Neg => -$x,
                FUn::Abs => $x.abs(),
                FUn::Sqrt => $x.sqrt(),
                FUn::Floor => $x.floor(),
                FUn::Ceil => $x.ceil(),
                FUn::Trunc => $x.trunc(),
                FUn::RoundEven => $x.round_ties_even(),
                FUn::Exp2Approx => (f64::from($x)).exp2() as _,
                FUn::Log2Approx => (f64::from($x)).log2() as _,
                FUn::RcpApprox => (1.0 / f64::from($x)) as _,
                FUn::RsqrtApprox => (1.0 / f64::from($x).sqrt()) as _,
            }
        };
    }
    if ty == Ty::F32 {
        let r: f32 = function!(f32_of(a));
        u64::from(r.to_bits())
    } else {
        let r: f64 = function!(f64_of(a));
        r.to_bits()
    }
}

/// `a * b + c` rounded once.
pub fn fma(ty: Ty, a: Bits, b: Bits, c: Bits) -> Bits {
    if ty == Ty::F32 {
        u64::from(f32_of(a).mul_add(f32_of(b), f32_of(c)).to_bits())
    } else {
        f64_of(a).mul_add(f64_of(b), f64_of(c)).to_bits()
    }
}

fn compare<T: PartialOrd>(op: Cmp, a: T, b: T) -> bool {
    match op {
        Cmp::Eq => a == b,
        Cmp::Ne => a != b,
        Cmp::Lt => a < b,
        Cmp::Le => a <= b,
        Cmp::Gt => a > b,
        Cmp::Ge => a >= b,
    }
}

/// A conversion from `from` to `to`.
pub fn conv(op: Conv, from: Ty, to: Ty, a: Bits) -> Bits {
    let from_f64 = |x: f64| if to == Ty::F32 { u64::from((x as f32).to_bits()) } else { x.to_bits() };
    let as_f64 = |b: Bits| if from == Ty::F32 { f64::from(f32_of(b)) } else { f64_of(b) };
    let r = match op {
        Conv::SExt64 => signed(Ty::I32, a) as u64,
        Conv::ZExt64 | Conv::Trunc32 | Conv::PredToI32 | Conv::Bitcast => a,
        Conv::SExt8 => a as u8 as i8 as i64 as u64,
        Conv::SExt16 => a as u16 as i16 as i64 as u64,
        // 64-bit integers are converted directly: through f64 they would be rounded twice.
        Conv::SToF if to == Ty::F32 => u64::from((signed(from, a) as f32).to_bits()),
        Conv::UToF if to == Ty::F32 => u64::from((unsigned(from, a) as f32).to_bits()),
        Conv::SToF => (signed(from, a) as f64).to_bits(),
        Conv::UToF => (unsigned(from, a) as f64).to_bits(),
        Conv::FToS if to == Ty::I32 => as_f64(a) as i32 as u32 as u64,
        Conv::FToS => as_f64(a) as i64 as u64,
        Conv::FToU if to == Ty::I32 => u64::from(as_f64(a) as u32),
        Conv::FToU => as_f64(a) as u64,
        Conv::F32ToF64 => f64::from(f32_of(a)).to_bits(),
        Conv::F64ToF32 => from_f64(f64_of(a)),
        Conv::F16LoToF32 => u64::from(half::f16::from_bits(a as u16).to_f32().to_bits()),
        Conv::F16HiToF32 => u64::from(half::f16::from_bits((a >> 16) as u16).to_f32().to_bits()),
        Conv::F32ToF16 => u64::from(half::f16::from_f32(f32_of(a)).to_bits()),
        Conv::F32ToBf16 => u64::from(half::bf16::from_f32(f32_of(a)).to_bits()),
        Conv::F32ToTf32 => {
            let bits = a as u32;
            if f32_of(a).is_finite() { u64::from(bits.wrapping_add(0x1000) & !0x1fff) } else { a }
        }
    };
    truncate(to, r)
}

/// The value of a pure op of one result, given its operands' types and bits and its result's type; `None` for ops that
/// depend on more than their operands (`Param`, `Special`) or are not pure.
pub fn eval(op: &Op, types: &[Ty], operands: &[Bits], result: Ty) -> Option<Bits> {
    let (t, o) = (types, operands);
    Some(match op {
        Op::Const(bits) => *bits,
        Op::IBin(b) => ibin(*b, t[0], o[0], o[1]),
        Op::FBin(b) => fbin(*b, t[0], o[0], o[1]),
        Op::FUn(u) => fun(*u, t[0], o[0]),
        Op::Fma => fma(t[0], o[0], o[1], o[2]),
        Op::ICmpS(c) => compare(*c, signed(t[0], o[0]), signed(t[0], o[1])).into(),
        Op::ICmpU(c) => compare(*c, unsigned(t[0], o[0]), unsigned(t[0], o[1])).into(),
        Op::FCmp(c) if t[0] == Ty::F32 => compare(*c, f32_of(o[0]), f32_of(o[1])).into(),
        Op::FCmp(c) => compare(*c, f64_of(o[0]), f64_of(o[1])).into(),
        Op::Not => o[0] ^ 1,
        Op::Select => o[if o[0] & 1 == 1 { 1 } else { 2 }],
        Op::Conv(c) => conv(*c, t[0], result, o[0]),
        Op::Pack16 => (o[0] & 0xffff) | (o[1] & 0xffff) << 16,
        _ => return None,
    })
}
