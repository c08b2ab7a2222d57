//! Arithmetic, comparisons and conversions.

use super::Emitter;
use super::fma::is_zero;
use crate::error::Result;
use crate::thread::{Cmp, Conv, FBin, FUn, IBin, InstData, Op as ThreadOp, Ty};
use rspirv::spirv::{GlslStd450Op as Glsl, Op, Word};

impl Emitter<'_> {
    /// Emits a pure op other than `Param` and `Special`; gives its value.
    pub(super) fn pure(&mut self, inst: &InstData) -> Result<Word> {
        let o: Vec<Word> = inst.operands.iter().map(|&v| self.value(v)).collect();
        let result = self.func.ty(inst.results[0]);
        let from = inst.operands.first().map_or(result, |&v| self.func.ty(v));
        Ok(match &inst.op {
            ThreadOp::Const(bits) if self.caps.opaque_zeros && is_zero(result, *bits) => {
                self.opaque_zero(result, *bits)
            }
            ThreadOp::Const(bits) => self.module.constant(result, *bits),
            ThreadOp::IBin(op) if result == Ty::Pred => return self.logical(*op, &o),
            ThreadOp::IBin(op) => self.ibin(*op, result, o[0], o[1]),
            ThreadOp::FBin(op) => self.fbin(*op, result, o[0], o[1]),
            ThreadOp::FUn(op) => return self.fun(*op, result, o[0]),
            ThreadOp::Fma if !self.caps.fused_fma && self.caps.f64 => match result {
                Ty::F32 => self.fma_through_f64(&o),
                _ => self.fma_of_f64(o[0], o[1], o[2]),
            },
            ThreadOp::Fma => {
                let ty = self.module.ty(result);
                let r = self.module.glsl(Glsl::Fma, ty, &o);
                self.module.no_contraction(r)
            }
            ThreadOp::ICmpS(cmp) => self.icmp(*cmp, true, o[0], o[1]),
            ThreadOp::ICmpU(cmp) => self.icmp(*cmp, false, o[0], o[1]),
            ThreadOp::FCmp(cmp) => self.fcmp(*cmp, o[0], o[1]),
            ThreadOp::Not => self.typed(Op::LogicalNot, Ty::Pred, &o),
            ThreadOp::Select => self.typed(Op::Select, result, &o),
            ThreadOp::Conv(conv) => return self.conv(*conv, from, result, o[0]),
            ThreadOp::Pack16 => {
                let half = self.module.const_u32(16);
                self.typed(Op::BitFieldInsert, Ty::I32, &[o[0], o[1], half, half])
            }
            op => return Err(self.unsupported(&format!("{op:?}"))),
        })
    }

    pub(super) fn typed(&mut self, op: Op, ty: Ty, operands: &[Word]) -> Word {
        let ty = self.module.ty(ty);
        self.module.op(op, ty, operands)
    }

    fn logical(&mut self, op: IBin, o: &[Word]) -> Result<Word> {
        let op = match op {
            IBin::And => Op::LogicalAnd,
            IBin::Or => Op::LogicalOr,
            IBin::Xor => Op::LogicalNotEqual,
            _ => return Err(self.internal(&format!("{op:?} of truth values"))),
        };
        Ok(self.typed(op, Ty::Pred, o))
    }

    // ---- integers ------------------------------------------------------------------------------------------------

    fn ibin(&mut self, op: IBin, ty: Ty, a: Word, b: Word) -> Word {
        let plain = match op {
            IBin::Add => Op::IAdd,
            IBin::Sub => Op::ISub,
            IBin::Mul => Op::IMul,
            IBin::DivS => Op::SDiv,
            IBin::DivU => Op::UDiv,
            IBin::RemU => Op::UMod,
            IBin::And => Op::BitwiseAnd,
            IBin::Or => Op::BitwiseOr,
            IBin::Xor => Op::BitwiseXor,
            IBin::Shl => Op::ShiftLeftLogical,
            IBin::ShrS => Op::ShiftRightArithmetic,
            IBin::ShrU => Op::ShiftRightLogical,
            IBin::MinS => return self.choose(Op::SLessThan, Glsl::SMin, ty, a, b),
            IBin::MinU => return self.choose(Op::ULessThan, Glsl::UMin, ty, a, b),
            IBin::MaxS => return self.choose(Op::SGreaterThan, Glsl::SMax, ty, a, b),
            IBin::MaxU => return self.choose(Op::UGreaterThan, Glsl::UMax, ty, a, b),
            IBin::MulHiS | IBin::MulHiU if ty == Ty::I64 => return self.mul_hi_64(op == IBin::MulHiS, a, b),
            IBin::MulHiS | IBin::MulHiU => {
                let op = if op == IBin::MulHiS { Op::SMulExtended } else { Op::UMulExtended };
                let u32_ty = self.module.uint(32);
                let pair = self.module.pair(u32_ty);
                let product = self.module.op(op, pair, &[a, b]);
                return self.module.extract(u32_ty, product, 1);
            }
            // Vulkan leaves OpSRem undefined for negative operands; OpSDiv is defined for them.
            IBin::RemS => {
                let quotient = self.typed(Op::SDiv, ty, &[a, b]);
                let product = self.typed(Op::IMul, ty, &[quotient, b]);
                return self.typed(Op::ISub, ty, &[a, product]);
            }
        };
        self.typed(plain, ty, &[a, b])
    }

    /// Minimum or maximum: one instruction for 32 bits; no GPU has one for 64 bits, so there `a` if it compares with `b`.
    fn choose(&mut self, compare: Op, inst: Glsl, ty: Ty, a: Word, b: Word) -> Word {
        if ty == Ty::I32 {
            let ty = self.module.ty(ty);
            return self.module.glsl(inst, ty, &[a, b]);
        }
        let first = self.typed(compare, Ty::Pred, &[a, b]);
        self.typed(Op::Select, ty, &[first, a, b])
    }

    /// The upper half of a 64-bit product from products of 32-bit halves: drivers have OpUMulExtended for 32 bits only.
    fn mul_hi_64(&mut self, signed: bool, a: Word, b: Word) -> Word {
        let half = self.module.constant(Ty::I64, 32);
        let mask = self.module.constant(Ty::I64, 0xffff_ffff);
        let low = |e: &mut Self, x| e.typed(Op::BitwiseAnd, Ty::I64, &[x, mask]);
        let high = |e: &mut Self, x| e.typed(Op::ShiftRightLogical, Ty::I64, &[x, half]);
        let mul = |e: &mut Self, x, y| e.typed(Op::IMul, Ty::I64, &[x, y]);
        let add = |e: &mut Self, x, y| e.typed(Op::IAdd, Ty::I64, &[x, y]);
        let (a0, a1, b0, b1) = (low(self, a), high(self, a), low(self, b), high(self, b));
        let (p00, p01, p10, p11) = (mul(self, a0, b0), mul(self, a0, b1), mul(self, a1, b0), mul(self, a1, b1));
        // The middle column: three numbers below 2^32, so the sum does not wrap.
        let (carry, m0, m1) = (high(self, p00), low(self, p01), low(self, p10));
        let middle = add(self, carry, m0);
        let middle = add(self, middle, m1);
        let (h0, h1, h2) = (high(self, p01), high(self, p10), high(self, middle));
        let mut r = add(self, p11, h0);
        r = add(self, r, h1);
        r = add(self, r, h2);
        if signed {
            // A negative operand is 2^64 less than its unsigned reading.
            for (x, y) in [(a, b), (b, a)] {
                let top = self.module.constant(Ty::I64, 63);
                let negative = self.typed(Op::ShiftRightArithmetic, Ty::I64, &[x, top]);
                let excess = self.typed(Op::BitwiseAnd, Ty::I64, &[negative, y]);
                r = self.typed(Op::ISub, Ty::I64, &[r, excess]);
            }
        }
        r
    }

    fn icmp(&mut self, cmp: Cmp, signed: bool, a: Word, b: Word) -> Word {
        let op = match (cmp, signed) {
            (Cmp::Eq, _) => Op::IEqual,
            (Cmp::Ne, _) => Op::INotEqual,
            (Cmp::Lt, true) => Op::SLessThan,
            (Cmp::Lt, false) => Op::ULessThan,
            (Cmp::Le, true) => Op::SLessThanEqual,
            (Cmp::Le, false) => Op::ULessThanEqual,
            (Cmp::Gt, true) => Op::SGreaterThan,
            (Cmp::Gt, false) => Op::UGreaterThan,
            (Cmp::Ge, true) => Op::SGreaterThanEqual,
            (Cmp::Ge, false) => Op::UGreaterThanEqual,
        };
        self.typed(op, Ty::Pred, &[a, b])
    }

    // ---- floats --------------------------------------------------------------------------------------------------

    pub(super) fn fbin(&mut self, op: FBin, ty: Ty, a: Word, b: Word) -> Word {
        let op = match op {
            FBin::Add => Op::FAdd,
            FBin::Sub => Op::FSub,
            FBin::Mul => Op::FMul,
            FBin::Div if ty == Ty::F32 && !self.caps.divides_by_large => return self.scaled_quotient(a, b),
            FBin::Div => Op::FDiv,
            FBin::Min | FBin::Max => {
                let inst = if op == FBin::Min { Glsl::NMin } else { Glsl::NMax };
                let word = self.module.ty(ty);
                let r = self.module.glsl(inst, word, &[a, b]);
                let r = self.module.no_contraction(r);
                return self.ordered_zeros(op == FBin::Min, ty, (a, b), r);
            }
            FBin::MinNan | FBin::MaxNan => return self.min_max_nan(op == FBin::MinNan, ty, a, b),
        };
        let r = self.typed(op, ty, &[a, b]);
        self.module.no_contraction(r)
    }

    /// A quotient of `F32` whose divisor lies where Vulkan promises something: above 2^126 both are divided by 4 before.
    fn scaled_quotient(&mut self, a: Word, b: Word) -> Word {
        let constant = |e: &mut Self, x: f32| e.module.constant(Ty::F32, x.to_bits().into());
        let (limit, quarter, one) = (constant(self, 2f32.powi(126)), constant(self, 0.25), constant(self, 1.0));
        let magnitude = self.module.constant(Ty::I32, i32::MAX as u64);
        let bits = self.typed(Op::Bitcast, Ty::I32, &[b]);
        let bits = self.typed(Op::BitwiseAnd, Ty::I32, &[bits, magnitude]);
        let size = self.typed(Op::Bitcast, Ty::F32, &[bits]);
        let large = self.fcmp(Cmp::Gt, size, limit);
        let scale = self.typed(Op::Select, Ty::F32, &[large, quarter, one]);
        let [a, b] = [a, b].map(|x| self.fbin(FBin::Mul, Ty::F32, x, scale));
        let quotient = self.typed(Op::FDiv, Ty::F32, &[a, b]);
        self.module.no_contraction(quotient)
    }

    /// The bits of a float as an integer.
    pub(super) fn bits(&mut self, ty: Ty, x: Word) -> (Ty, Word) {
        let int = if ty == Ty::F32 { Ty::I32 } else { Ty::I64 };
        (int, self.typed(Op::Bitcast, int, &[x]))
    }

    /// `extreme` of a and b, but of two zeros, which SPIR-V leaves open, -0 as the lesser. Equal numbers differ at
    /// most in the sign of a zero: the `or` of their bits is then the negative one, the `and` the positive one.
    fn ordered_zeros(&mut self, min: bool, ty: Ty, (a, b): (Word, Word), extreme: Word) -> Word {
        let ((int, x), (_, y)) = (self.bits(ty, a), self.bits(ty, b));
        let combined = self.typed(if min { Op::BitwiseOr } else { Op::BitwiseAnd }, int, &[x, y]);
        let combined = self.typed(Op::Bitcast, ty, &[combined]);
        let equal = self.fcmp(Cmp::Eq, a, b);
        self.typed(Op::Select, ty, &[equal, combined, extreme])
    }

    /// Minimum or maximum that propagates NaN and orders zeros. `a` is taken if it is NaN, if it is beyond `b`, or if both
    /// are equal and the sign of `a` says so (only zeros are equal with different signs); else `b`, also if that is NaN.
    /// NaN and the sign are read from the bits: without `SignedZeroInfNanPreserve` a driver may assume there is no NaN.
    fn min_max_nan(&mut self, min: bool, ty: Ty, a: Word, b: Word) -> Word {
        let (int, bits) = self.bits(ty, a);
        let (magnitude, infinity) = match int {
            Ty::I32 => (0x7fff_ffff, 0x7f80_0000),
            _ => (i64::MAX as u64, 0x7ff0_0000_0000_0000),
        };
        let magnitude = self.module.constant(int, magnitude);
        let infinity = self.module.constant(int, infinity);
        let zero = self.module.constant(int, 0);
        let unsigned = self.typed(Op::BitwiseAnd, int, &[bits, magnitude]);
        let nan = self.typed(Op::UGreaterThan, Ty::Pred, &[unsigned, infinity]);
        let sign = if min { Op::SLessThan } else { Op::SGreaterThanEqual };
        let sign = self.typed(sign, Ty::Pred, &[bits, zero]);
        let equal = self.fcmp(Cmp::Eq, a, b);
        let beyond = self.fcmp(if min { Cmp::Lt } else { Cmp::Gt }, a, b);
        let tie = self.typed(Op::LogicalAnd, Ty::Pred, &[equal, sign]);
        let first = self.typed(Op::LogicalOr, Ty::Pred, &[beyond, tie]);
        let first = self.typed(Op::LogicalOr, Ty::Pred, &[first, nan]);
        self.typed(Op::Select, ty, &[first, a, b])
    }

    pub(super) fn fun(&mut self, op: FUn, ty: Ty, a: Word) -> Result<Word> {
        let inst = match op {
            FUn::Neg => {
                let r = self.typed(Op::FNegate, ty, &[a]);
                return Ok(self.module.no_contraction(r));
            }
            FUn::Abs => Glsl::FAbs,
            FUn::Sqrt => Glsl::Sqrt,
            FUn::Floor => Glsl::Floor,
            FUn::Ceil => Glsl::Ceil,
            // llvmpipe goes through 32-bit integers where the CPU has no AVX-512.
            FUn::Trunc | FUn::RoundEven if ty == Ty::F64 => return Ok(self.whole_f64(op == FUn::Trunc, a)),
            FUn::Trunc => Glsl::Trunc,
            FUn::RoundEven => Glsl::RoundEven,
            FUn::Exp2Approx | FUn::Log2Approx | FUn::RcpApprox | FUn::RsqrtApprox => {
                return Err(self.unsupported(&format!("{op:?}")));
            }
        };
        let ty = self.module.ty(ty);
        let r = self.module.glsl(inst, ty, &[a]);
        Ok(self.module.no_contraction(r))
    }

    /// Toward zero, or to the nearest even: the magnitude rounded down, or pushed to where doubles are whole and back; with the
    /// sign it had.
    fn whole_f64(&mut self, down: bool, a: Word) -> Word {
        let f64 = self.module.ty(Ty::F64);
        let magnitude = self.module.glsl(Glsl::FAbs, f64, &[a]);
        let magnitude = if down {
            self.module.glsl(Glsl::Floor, f64, &[magnitude])
        } else {
            let whole = self.module.constant(Ty::F64, (2f64.powi(52)).to_bits());
            let pushed = self.typed(Op::FAdd, Ty::F64, &[magnitude, whole]);
            let pushed = self.module.no_contraction(pushed);
            let back = self.typed(Op::FSub, Ty::F64, &[pushed, whole]);
            let back = self.module.no_contraction(back);
            let below = self.typed(Op::FOrdLessThan, Ty::Pred, &[magnitude, whole]);
            self.typed(Op::Select, Ty::F64, &[below, back, magnitude])
        };
        let magnitude = self.typed(Op::Bitcast, Ty::I64, &[magnitude]);
        let sign = self.typed(Op::Bitcast, Ty::I64, &[a]);
        let mask = self.module.constant(Ty::I64, 1 << 63);
        let sign = self.typed(Op::BitwiseAnd, Ty::I64, &[sign, mask]);
        let bits = self.typed(Op::BitwiseOr, Ty::I64, &[magnitude, sign]);
        self.typed(Op::Bitcast, Ty::F64, &[bits])
    }

    /// Not to be contracted: a driver may not turn the complement of a comparison into the opposite comparison, which
    /// differs for NaN.
    pub(super) fn fcmp(&mut self, cmp: Cmp, a: Word, b: Word) -> Word {
        let op = match cmp {
            Cmp::Eq => Op::FOrdEqual,
            Cmp::Ne => Op::FUnordNotEqual,
            Cmp::Lt => Op::FOrdLessThan,
            Cmp::Le => Op::FOrdLessThanEqual,
            Cmp::Gt => Op::FOrdGreaterThan,
            Cmp::Ge => Op::FOrdGreaterThanEqual,
        };
        let r = self.typed(op, Ty::Pred, &[a, b]);
        self.module.no_contraction(r)
    }

    // ---- conversions ---------------------------------------------------------------------------------------------

    fn conv(&mut self, conv: Conv, from: Ty, to: Ty, x: Word) -> Result<Word> {
        let op = match conv {
            Conv::SExt64 => Op::SConvert,
            Conv::ZExt64 | Conv::Trunc32 => Op::UConvert,
            Conv::SExt8 | Conv::SExt16 => {
                let (zero, bits) = (self.module.const_u32(0), if conv == Conv::SExt8 { 8 } else { 16 });
                let bits = self.module.const_u32(bits);
                return Ok(self.typed(Op::BitFieldSExtract, Ty::I32, &[x, zero, bits]));
            }
            Conv::SToF => Op::ConvertSToF,
            Conv::UToF => Op::ConvertUToF,
            Conv::FToS => return Ok(self.float_to_int(true, from, to, x)),
            Conv::FToU => return Ok(self.float_to_int(false, from, to, x)),
            Conv::F32ToF64 | Conv::F64ToF32 => Op::FConvert,
            Conv::Bitcast if from == to => return Ok(x),
            Conv::Bitcast => Op::Bitcast,
            Conv::PredToI32 => {
                let (one, zero) = (self.module.const_u32(1), self.module.const_u32(0));
                return Ok(self.typed(Op::Select, Ty::I32, &[x, one, zero]));
            }
            Conv::F16LoToF32 | Conv::F16HiToF32 | Conv::F32ToF16 | Conv::F32ToBf16 | Conv::F32ToTf32 => {
                return Err(self.unsupported(&format!("{conv:?}")));
            }
        };
        Ok(self.typed(op, to, &[x]))
    }

    /// Saturating conversion. The conversion itself is undefined out of range, so it gets 0 there and for NaN; then the
    /// bounds are put in. Both bounds are powers of two, exact in either float type.
    fn float_to_int(&mut self, signed: bool, from: Ty, to: Ty, x: Word) -> Word {
        let float = |e: &mut Self, v: f64| match from {
            Ty::F32 => e.module.constant(from, u64::from((v as f32).to_bits())),
            _ => e.module.constant(from, v.to_bits()),
        };
        let bits = to.bits();
        let (lower, upper) = match signed {
            true => (-(2f64.powi(bits as i32 - 1)), 2f64.powi(bits as i32 - 1)),
            false => (0.0, 2f64.powi(bits as i32)),
        };
        let (lower, upper, zero) = (float(self, lower), float(self, upper), float(self, 0.0));
        let above = self.fcmp(Cmp::Ge, x, upper);
        let not_below = self.fcmp(Cmp::Ge, x, lower);
        let not_above = self.fcmp(Cmp::Lt, x, upper);
        let inside = self.typed(Op::LogicalAnd, Ty::Pred, &[not_below, not_above]);
        let safe = self.typed(Op::Select, from, &[inside, x, zero]);
        let max = if signed { u64::MAX >> (65 - bits) } else { u64::MAX >> (64 - bits) };
        let max = self.module.constant(to, max);
        let convert = if signed { Op::ConvertFToS } else { Op::ConvertFToU };
        let mut r = self.typed(convert, to, &[safe]);
        if signed {
            let below = self.fcmp(Cmp::Lt, x, lower);
            let min = self.module.constant(to, 1 << (bits - 1));
            r = self.typed(Op::Select, to, &[below, min, r]);
        }
        self.typed(Op::Select, to, &[above, max, r])
    }
}
