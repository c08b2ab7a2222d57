//! Elementwise ops on one register: integers of every width in `I32` and `I64`, `f16`/`bf16` by way of `F32`.

use super::{Lowering, half, math, reg_ty};
use crate::dtype::{DType, Kind};
use crate::error::{Error, Result};
use crate::thread::{Cmp, Conv, FBin, FUn, IBin, Ty, Value};
use crate::tile::{self, BinaryOp, Constant, Elem, Op, OpId, UnaryOp};

/// Signed or unsigned op of a type.
fn by_sign<T>(dtype: DType, signed: T, unsigned: T) -> T {
    if dtype.is_signed() { signed } else { unsigned }
}

impl Lowering<'_> {
    /// The register of a constant.
    pub(super) fn constant(&mut self, dtype: DType, c: Constant) -> Value {
        match dtype {
            DType::Bool => self.b.pred(c.0 & 1 == 1),
            DType::F32 | DType::I64 | DType::U64 | DType::F64 => self.b.constant(reg_ty(Elem::Scalar(dtype)), c.0),
            // Narrow integers are kept extended to 32 bits, so that their 32-bit value is theirs.
            d if d.is_int() => self.b.iconst(Ty::I32, c.as_i64(d).unwrap_or_default()),
            _ => self.b.constant(Ty::I32, c.0),
        }
    }

    /// The register of an element from its bits as memory and parameters hold them (`I32`, `I64`, `F32` or `F64`).
    pub(super) fn register_of(&mut self, elem: Elem, raw: Value) -> Value {
        match elem {
            Elem::Scalar(DType::Bool) => {
                let zero = self.b.i32(0);
                self.b.icmp_u(Cmp::Ne, raw, zero)
            }
            Elem::Scalar(DType::I8) => self.b.conv(Conv::SExt8, raw, Ty::I32),
            Elem::Scalar(DType::I16) => self.b.conv(Conv::SExt16, raw, Ty::I32),
            _ => raw,
        }
    }

    /// The bits of an element as memory holds them; above the element's width anything may stand.
    pub(super) fn storage_of(&mut self, elem: Elem, reg: Value) -> Value {
        match elem {
            Elem::Scalar(DType::Bool) => self.b.conv(Conv::PredToI32, reg, Ty::I32),
            _ => reg,
        }
    }

    /// Wraps an `I32` to a narrower integer type; other registers as they are.
    fn wrap(&mut self, dtype: DType, x: Value) -> Value {
        match dtype {
            DType::I8 => self.b.conv(Conv::SExt8, x, Ty::I32),
            DType::I16 => self.b.conv(Conv::SExt16, x, Ty::I32),
            DType::U8 => self.b.and_imm(x, 0xff),
            DType::U16 => self.b.and_imm(x, 0xffff),
            _ => x,
        }
    }

    /// A float of any type as the `F32` or `F64` that its arithmetic is done in.
    pub(super) fn widen(&mut self, dtype: DType, x: Value) -> Value {
        match dtype {
            DType::F16 => half::f16_to_f32(&mut self.b, self.caps, x),
            DType::BF16 => half::bf16_to_f32(&mut self.b, x),
            _ => x,
        }
    }

    /// The float of type `dtype` nearest to an `F32` (for `F64`: the `F64` itself).
    pub(super) fn narrow(&mut self, dtype: DType, x: Value) -> Value {
        match dtype {
            DType::F16 => half::f32_to_f16(&mut self.b, self.caps, x),
            DType::BF16 => half::f32_to_bf16(&mut self.b, self.caps, x),
            _ => x,
        }
    }

    /// One elementwise op on one register of each operand.
    pub(super) fn elementwise(&mut self, op: OpId, elems: &[Elem], result: Elem, x: &[Value]) -> Result<Value> {
        let dtype = elems[0].dtype();
        let uses_f64 = |e: &Elem| *e == Elem::Scalar(DType::F64);
        if !self.caps.f64 && (elems.iter().any(uses_f64) || uses_f64(&result)) {
            return Err(self.unsupported_at(op, "it computes in f64, which the device does not have", "use f32"));
        }
        match &self.func.ops[op].op {
            Op::Unary(u) => Ok(self.unary(*u, dtype, x[0])),
            Op::Binary(b) => Ok(self.binary(*b, dtype, x[0], x[1])),
            Op::Compare(c) => Ok(self.compare(*c, dtype, x[0], x[1])),
            Op::Select => Ok(self.b.select(x[0], x[1], x[2])),
            Op::Fma => {
                let [a, b, c] = [x[0], x[1], x[2]].map(|v| self.widen(dtype, v));
                let r = self.b.fma(a, b, c);
                Ok(self.narrow(dtype, r))
            }
            Op::Cast => Ok(self.cast(dtype, result.dtype(), x[0])),
            Op::Bitcast => {
                let bits = if dtype.bits() < 32 {
                    // Signed narrow integers are extended differently from unsigned ones and halves.
                    let low = self.b.and_imm(x[0], (1 << dtype.bits()) - 1);
                    self.wrap(result.dtype(), low)
                } else {
                    self.b.bitcast(x[0], reg_ty(result))
                };
                Ok(bits)
            }
            Op::PtrAdd => {
                let Elem::Scalar(offset) = elems[1] else {
                    return Err(Error::Internal("a pointer moves by an integer".into()));
                };
                let wide = match (reg_ty(elems[1]), offset.is_signed()) {
                    (Ty::I64, _) => x[1],
                    (_, true) => self.b.conv(Conv::SExt64, x[1], Ty::I64),
                    (_, false) => self.b.conv(Conv::ZExt64, x[1], Ty::I64),
                };
                let bytes = self.b.mul_imm(wide, dtype.bytes() as i64);
                Ok(self.b.add(x[0], bytes))
            }
            other => Err(Error::Internal(format!("`{}` is not elementwise", other.mnemonic()))),
        }
    }

    fn unary(&mut self, op: UnaryOp, dtype: DType, x: Value) -> Value {
        if !dtype.is_float() {
            let ty = self.b.ty(x);
            let r = match op {
                UnaryOp::Not if ty == Ty::Pred => return self.b.not(x),
                UnaryOp::Not => {
                    let ones = self.b.iconst(ty, -1);
                    self.b.xor(x, ones)
                }
                UnaryOp::Abs if !dtype.is_signed() => return x,
                UnaryOp::Abs => {
                    let minus = self.negate(x);
                    self.b.ibin(IBin::MaxS, x, minus)
                }
                // The rules allow no other op on integers.
                _ => self.negate(x),
            };
            return self.wrap(dtype, r);
        }
        // Signs of halves are bits; arithmetic would make NaNs canonical.
        if matches!(dtype, DType::F16 | DType::BF16) {
            match op {
                UnaryOp::Neg => {
                    let sign = self.b.i32(0x8000);
                    return self.b.xor(x, sign);
                }
                UnaryOp::Abs => return self.b.and_imm(x, 0x7fff),
                _ => {}
            }
        }
        let wide = self.widen(dtype, x);
        let r = match op {
            UnaryOp::Neg => self.b.fun(FUn::Neg, wide),
            UnaryOp::Abs => self.b.fun(FUn::Abs, wide),
            UnaryOp::Sqrt => self.b.fun(FUn::Sqrt, wide),
            UnaryOp::Floor => self.b.fun(FUn::Floor, wide),
            UnaryOp::Ceil => self.b.fun(FUn::Ceil, wide),
            UnaryOp::Trunc => self.b.fun(FUn::Trunc, wide),
            UnaryOp::Round => self.b.fun(FUn::RoundEven, wide),
            _ => math::unary(&mut self.b, self.caps, op, wide),
        };
        self.narrow(dtype, r)
    }

    fn negate(&mut self, x: Value) -> Value {
        let zero = self.b.iconst(self.b.ty(x), 0);
        self.b.sub(zero, x)
    }

    pub(super) fn binary(&mut self, op: BinaryOp, dtype: DType, x: Value, y: Value) -> Value {
        if dtype.is_float() {
            let (a, b) = (self.widen(dtype, x), self.widen(dtype, y));
            let r = self.float_binary(op, a, b);
            return self.narrow(dtype, r);
        }
        let b = |signed, unsigned| by_sign(dtype, signed, unsigned);
        let r = match op {
            BinaryOp::Add => self.b.add(x, y),
            BinaryOp::Sub => self.b.sub(x, y),
            BinaryOp::Mul => self.b.mul(x, y),
            BinaryOp::Div => self.divide(dtype, x, y).0,
            BinaryOp::Rem => self.divide(dtype, x, y).1,
            BinaryOp::FloorDiv => self.floor_divide(dtype, x, y).0,
            BinaryOp::FloorMod => self.floor_divide(dtype, x, y).1,
            BinaryOp::MulHi => match dtype.bits() {
                // The whole product fits in 32 bits.
                bits @ (8 | 16) => {
                    let product = self.b.mul(x, y);
                    self.b.shift_imm(b(IBin::ShrS, IBin::ShrU), product, bits)
                }
                _ => self.b.ibin(b(IBin::MulHiS, IBin::MulHiU), x, y),
            },
            BinaryOp::And => return self.b.and(x, y),
            BinaryOp::Or => return self.b.or(x, y),
            BinaryOp::Xor => return self.b.xor(x, y),
            BinaryOp::Shl | BinaryOp::Shr => {
                let amount = self.b.and_imm(y, i64::from(dtype.bits()) - 1);
                let shift = if op == BinaryOp::Shl { IBin::Shl } else { b(IBin::ShrS, IBin::ShrU) };
                self.b.ibin(shift, x, amount)
            }
            BinaryOp::Min | BinaryOp::FMin => return self.b.ibin(b(IBin::MinS, IBin::MinU), x, y),
            BinaryOp::Max | BinaryOp::FMax => return self.b.ibin(b(IBin::MaxS, IBin::MaxU), x, y),
        };
        self.wrap(dtype, r)
    }

    fn float_binary(&mut self, op: BinaryOp, a: Value, b: Value) -> Value {
        let op = match op {
            BinaryOp::Add => FBin::Add,
            BinaryOp::Sub => FBin::Sub,
            BinaryOp::Mul => FBin::Mul,
            BinaryOp::Div => FBin::Div,
            BinaryOp::Min => FBin::MinNan,
            BinaryOp::Max => FBin::MaxNan,
            BinaryOp::FMin => FBin::Min,
            BinaryOp::FMax => FBin::Max,
            // The rules allow no other op on floats.
            _ => return math::fmod(&mut self.b, a, b),
        };
        self.b.fbin(op, a, b)
    }

    /// Quotient and remainder, truncating; `x / 0 = 0`, `x % 0 = x`, and `MIN / -1` wraps. The hardware's division never sees
    /// a divisor of 0 or, signed, of -1: some targets trap on them.
    fn divide(&mut self, dtype: DType, x: Value, y: Value) -> (Value, Value) {
        let ty = self.b.ty(x);
        let (zero, one) = (self.b.iconst(ty, 0), self.b.iconst(ty, 1));
        let by_zero = self.b.icmp_u(Cmp::Eq, y, zero);
        let (q, r);
        if dtype.is_signed() {
            let ones = self.b.iconst(ty, -1);
            let by_minus_one = self.b.icmp_s(Cmp::Eq, y, ones);
            let special = self.b.or(by_zero, by_minus_one);
            let safe = self.b.select(special, one, y);
            let quotient = self.b.ibin(IBin::DivS, x, safe);
            let minus = self.negate(x);
            q = self.b.select(by_minus_one, minus, quotient);
            r = self.b.ibin(IBin::RemS, x, safe);
        } else {
            let safe = self.b.select(by_zero, one, y);
            q = self.b.ibin(IBin::DivU, x, safe);
            r = self.b.ibin(IBin::RemU, x, safe);
        }
        (self.b.select(by_zero, zero, q), self.b.select(by_zero, x, r))
    }

    /// Quotient rounded down and the remainder that goes with it.
    fn floor_divide(&mut self, dtype: DType, x: Value, y: Value) -> (Value, Value) {
        let (q, r) = self.divide(dtype, x, y);
        if !dtype.is_signed() {
            return (q, r);
        }
        let ty = self.b.ty(x);
        let (zero, ones) = (self.b.iconst(ty, 0), self.b.iconst(ty, -1));
        // A remainder of the other sign than the divisor's: one too few. (For a zero divisor the remainder stays.)
        let differ = self.b.xor(r, y);
        let differ = self.b.icmp_s(Cmp::Lt, differ, zero);
        let inexact = self.b.icmp_s(Cmp::Ne, r, zero);
        let nonzero = self.b.icmp_s(Cmp::Ne, y, zero);
        let both = self.b.and(differ, inexact);
        let down = self.b.and(both, nonzero);
        let q_down = self.b.add(q, ones);
        let r_up = self.b.add(r, y);
        (self.b.select(down, q_down, q), self.b.select(down, r_up, r))
    }

    pub(super) fn compare(&mut self, op: tile::Cmp, dtype: DType, x: Value, y: Value) -> Value {
        let cmp = match op {
            tile::Cmp::Eq => Cmp::Eq,
            tile::Cmp::Ne => Cmp::Ne,
            tile::Cmp::Lt => Cmp::Lt,
            tile::Cmp::Le => Cmp::Le,
            tile::Cmp::Gt => Cmp::Gt,
            tile::Cmp::Ge => Cmp::Ge,
        };
        match dtype.kind() {
            Kind::Float => {
                let (a, b) = (self.widen(dtype, x), self.widen(dtype, y));
                self.b.fcmp(cmp, a, b)
            }
            Kind::Signed => self.b.icmp_s(cmp, x, y),
            Kind::Unsigned => self.b.icmp_u(cmp, x, y),
            Kind::Bool => {
                let (a, b) = (self.b.conv(Conv::PredToI32, x, Ty::I32), self.b.conv(Conv::PredToI32, y, Ty::I32));
                self.b.icmp_u(cmp, a, b)
            }
        }
    }

    /// Rust's `as`.
    pub(super) fn cast(&mut self, from: DType, to: DType, x: Value) -> Value {
        let to_ty = reg_ty(Elem::Scalar(to));
        match (from.kind(), to.kind()) {
            _ if from == to => x,
            (Kind::Float, Kind::Float) => match (from, to) {
                (DType::F64, DType::F32) => self.b.conv(Conv::F64ToF32, x, Ty::F32),
                // Not by way of F32: that would round twice.
                (DType::F64, DType::F16) => half::f64_to_f16(&mut self.b, self.caps, x),
                (DType::F64, _) => half::f64_to_bf16(&mut self.b, self.caps, x),
                (_, DType::F64) => {
                    let wide = self.widen(from, x);
                    self.b.conv(Conv::F32ToF64, wide, Ty::F64)
                }
                _ => {
                    let wide = self.widen(from, x);
                    self.narrow(to, wide)
                }
            },
            (Kind::Float, Kind::Bool) => {
                let wide = self.widen(from, x);
                let zero = self.b.fconst(self.b.ty(wide), 0.0);
                self.b.fcmp(Cmp::Ne, wide, zero)
            }
            (Kind::Float, _) => {
                let wide = self.widen(from, x);
                let op = by_sign(to, Conv::FToS, Conv::FToU);
                let r = self.b.conv(op, wide, to_ty);
                // Saturated to 32 bits; now to the narrower type.
                let (lo, hi) = match to {
                    DType::I8 => (i64::from(i8::MIN), i64::from(i8::MAX)),
                    DType::I16 => (i64::from(i16::MIN), i64::from(i16::MAX)),
                    DType::U8 => (0, i64::from(u8::MAX)),
                    DType::U16 => (0, i64::from(u16::MAX)),
                    _ => return r,
                };
                let (lo, hi) = (self.b.iconst(to_ty, lo), self.b.iconst(to_ty, hi));
                let r = self.b.ibin(by_sign(to, IBin::MinS, IBin::MinU), r, hi);
                if to.is_signed() { self.b.ibin(IBin::MaxS, r, lo) } else { r }
            }
            (Kind::Bool, Kind::Float) => {
                let float = if to == DType::F64 { Ty::F64 } else { Ty::F32 };
                let (one, zero) = (self.b.fconst(float, 1.0), self.b.fconst(float, 0.0));
                let r = self.b.select(x, one, zero);
                self.narrow(to, r)
            }
            (_, Kind::Float) => self.int_to_float(from, to, x),
            (_, Kind::Bool) => {
                let zero = self.b.iconst(self.b.ty(x), 0);
                self.b.icmp_u(Cmp::Ne, x, zero)
            }
            (Kind::Bool, _) => {
                let r = self.b.conv(Conv::PredToI32, x, Ty::I32);
                if to_ty == Ty::I64 { self.b.conv(Conv::ZExt64, r, Ty::I64) } else { r }
            }
            _ => match (self.b.ty(x), to_ty) {
                (Ty::I32, Ty::I64) => {
                    let extend = by_sign(from, Conv::SExt64, Conv::ZExt64);
                    self.b.conv(extend, x, Ty::I64)
                }
                (Ty::I64, Ty::I32) => {
                    let low = self.b.conv(Conv::Trunc32, x, Ty::I32);
                    self.wrap(to, low)
                }
                _ => self.wrap(to, x),
            },
        }
    }

    fn int_to_float(&mut self, from: DType, to: DType, x: Value) -> Value {
        let op = by_sign(from, Conv::SToF, Conv::UToF);
        match to {
            DType::F32 => self.b.conv(op, x, Ty::F32),
            DType::F64 => self.b.conv(op, x, Ty::F64),
            // Integers of up to 24 bits are exact in F32, so that the second rounding is the only one.
            _ if from.bits() <= 16 => {
                let wide = self.b.conv(op, x, Ty::F32);
                self.narrow(to, wide)
            }
            _ => {
                let odd = self.int_to_f32_odd(from, x);
                self.narrow(to, odd)
            }
        }
    }

    /// An integer of 32 or 64 bits as an `F32` rounded to odd: rounding it once more, to fewer than 23 bits, gives what one
    /// rounding would. What lies below the upper 24 bits of the magnitude is gathered in the lowest of them.
    fn int_to_f32_odd(&mut self, from: DType, x: Value) -> Value {
        let ty = self.b.ty(x);
        let zero = self.b.iconst(ty, 0);
        let negative = if from.is_signed() { self.b.icmp_s(Cmp::Lt, x, zero) } else { self.b.pred(false) };
        let minus = self.negate(x);
        let magnitude = self.b.select(negative, minus, x);
        let limit = self.b.iconst(ty, 1 << 24);
        let mut kept = magnitude;
        let mut scale = self.b.fconst(Ty::F32, 1.0);
        // One step of 8 bits for every byte above the lowest three.
        for _ in 0..(ty.bits() / 8 - 3) {
            let large = self.b.icmp_u(Cmp::Ge, kept, limit);
            let low = self.b.and_imm(kept, 0xff);
            let sticky = self.b.icmp_u(Cmp::Ne, low, zero);
            let (one, none) = (self.b.iconst(ty, 1), self.b.iconst(ty, 0));
            let bit = self.b.select(sticky, one, none);
            let high = self.b.shift_imm(IBin::ShrU, kept, 8);
            let next = self.b.or(high, bit);
            kept = self.b.select(large, next, kept);
            let bigger = self.b.fconst(Ty::F32, 256.0);
            let scaled = self.b.fbin(FBin::Mul, scale, bigger);
            scale = self.b.select(large, scaled, scale);
        }
        let float = self.b.conv(Conv::UToF, kept, Ty::F32);
        let float = self.b.fbin(FBin::Mul, float, scale);
        let negated = self.b.fun(FUn::Neg, float);
        self.b.select(negative, negated, float)
    }
}
