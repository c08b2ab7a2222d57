//! Multiply-adds that are rounded once, for devices that round twice; and zeros that a driver cannot see through.
//!
//! After Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008.

use super::Emitter;
use crate::thread::{Cmp, FBin, Ty};
use rspirv::spirv::{Op, Word};

/// Is this constant a zero of either sign, of a float type?
pub(super) fn is_zero(ty: Ty, bits: u64) -> bool {
    match ty {
        Ty::F32 => bits as u32 & 0x7fff_ffff == 0,
        Ty::F64 => bits & (u64::MAX >> 1) == 0,
        _ => false,
    }
}

impl Emitter<'_> {
    /// `a * b + c` of `F32`. The product is exact in `F64`; the sum is rounded to odd there, so that the second rounding, of
    /// 53 bits to 24, sees where the exact sum lies.
    pub(super) fn fma_through_f64(&mut self, o: &[Word]) -> Word {
        let wide: Vec<Word> = o.iter().map(|&x| self.typed(Op::FConvert, Ty::F64, &[x])).collect();
        let product = self.fbin(FBin::Mul, Ty::F64, wide[0], wide[1]);
        let odd = self.sum_to_odd(product, wide[2]);
        self.typed(Op::FConvert, Ty::F32, &[odd])
    }

    /// `a * b + c` of `F64`: the exact product as two numbers, and a sum of three of which the last but one addition
    /// is rounded to odd. Right while no part overflows or loses bits to subnormals; where the operands are that
    /// large or small, or special, it is a product and a sum, rounded twice. The sum of a product of finite numbers,
    /// which may overflow, and an infinite c is c.
    pub(super) fn fma_of_f64(&mut self, a: Word, b: Word, c: Word) -> Word {
        let product = self.fbin(FBin::Mul, Ty::F64, a, b);
        let twice = self.fbin(FBin::Add, Ty::F64, product, c);
        let finite = [a, b, c].map(|x| self.below(x, 1024));
        let only_c = self.typed(Op::LogicalNot, Ty::Pred, &[finite[2]]);
        let only_c = finite[..2].iter().fold(only_c, |all, &f| self.typed(Op::LogicalAnd, Ty::Pred, &[all, f]));
        let twice = self.typed(Op::Select, Ty::F64, &[only_c, c, twice]);
        // Dekker's product: each factor in two halves of 26 bits.
        let ((a1, a2), (b1, b2)) = (self.halves(a), self.halves(b));
        let mut rest = self.fbin(FBin::Mul, Ty::F64, a1, b1);
        rest = self.fbin(FBin::Sub, Ty::F64, rest, product);
        for (x, y) in [(a1, b2), (a2, b1), (a2, b2)] {
            let part = self.fbin(FBin::Mul, Ty::F64, x, y);
            rest = self.fbin(FBin::Add, Ty::F64, rest, part);
        }
        let (high, low) = self.two_sum(c, rest);
        let (sum, middle) = self.two_sum(product, high);
        let odd = self.sum_to_odd(low, middle);
        let once = self.fbin(FBin::Add, Ty::F64, sum, odd);

        let mut safe = self.below(product, 900);
        for (x, exponent) in [(a, 400), (b, 400), (c, 900)] {
            let bounded = self.below(x, exponent);
            safe = self.typed(Op::LogicalAnd, Ty::Pred, &[safe, bounded]);
        }
        let tiny = self.below(product, -900);
        let normal = self.typed(Op::LogicalNot, Ty::Pred, &[tiny]);
        let safe = self.typed(Op::LogicalAnd, Ty::Pred, &[safe, normal]);
        self.typed(Op::Select, Ty::F64, &[safe, once, twice])
    }

    /// Is the magnitude below `2^exponent`? False of NaN.
    fn below(&mut self, x: Word, exponent: i32) -> Word {
        let limit = self.module.constant(Ty::F64, 2f64.powi(exponent).to_bits());
        let magnitude = self.typed(Op::Bitcast, Ty::I64, &[x]);
        let mask = self.module.constant(Ty::I64, i64::MAX as u64);
        let magnitude = self.typed(Op::BitwiseAnd, Ty::I64, &[magnitude, mask]);
        let magnitude = self.typed(Op::Bitcast, Ty::F64, &[magnitude]);
        self.fcmp(Cmp::Lt, magnitude, limit)
    }

    /// The upper and the lower 26 bits of a number (Veltkamp).
    fn halves(&mut self, x: Word) -> (Word, Word) {
        let factor = self.module.constant(Ty::F64, f64::from((1 << 27) + 1).to_bits());
        let scaled = self.fbin(FBin::Mul, Ty::F64, x, factor);
        let below = self.fbin(FBin::Sub, Ty::F64, scaled, x);
        let upper = self.fbin(FBin::Sub, Ty::F64, scaled, below);
        (upper, self.fbin(FBin::Sub, Ty::F64, x, upper))
    }

    /// A sum, and what it lost, exactly (Knuth). What it lost is NaN if the sum is not finite.
    fn two_sum(&mut self, x: Word, y: Word) -> (Word, Word) {
        let sum = self.fbin(FBin::Add, Ty::F64, x, y);
        let added = self.fbin(FBin::Sub, Ty::F64, sum, x);
        let kept = self.fbin(FBin::Sub, Ty::F64, sum, added);
        let (lost_x, lost_y) = (self.fbin(FBin::Sub, Ty::F64, x, kept), self.fbin(FBin::Sub, Ty::F64, y, added));
        (sum, self.fbin(FBin::Add, Ty::F64, lost_x, lost_y))
    }

    /// A sum rounded to odd: an inexact one with an even last bit moves to the neighbour on the side of the exact sum.
    fn sum_to_odd(&mut self, x: Word, y: Word) -> Word {
        let (sum, lost) = self.two_sum(x, y);
        let zero = self.module.constant(Ty::F64, 0);
        let (more, less) = (self.fcmp(Cmp::Gt, lost, zero), self.fcmp(Cmp::Lt, lost, zero));
        let inexact = self.typed(Op::LogicalOr, Ty::Pred, &[more, less]);
        let (_, bits) = self.bits(Ty::F64, sum);
        let (none, one) = (self.module.constant(Ty::I64, 0), self.module.constant(Ty::I64, 1));
        let last = self.typed(Op::BitwiseAnd, Ty::I64, &[bits, one]);
        let even = self.typed(Op::IEqual, Ty::Pred, &[last, none]);
        let moves = self.typed(Op::LogicalAnd, Ty::Pred, &[inexact, even]);
        // Away from zero if the lost part has the sign of the sum, which is not zero where anything was lost.
        let positive = self.typed(Op::SGreaterThanEqual, Ty::Pred, &[bits, none]);
        let outward = self.typed(Op::LogicalEqual, Ty::Pred, &[more, positive]);
        let minus_one = self.module.constant(Ty::I64, u64::MAX);
        let step = self.typed(Op::Select, Ty::I64, &[outward, one, minus_one]);
        let moved = self.typed(Op::IAdd, Ty::I64, &[bits, step]);
        let odd = self.typed(Op::Select, Ty::I64, &[moves, moved, bits]);
        self.typed(Op::Bitcast, Ty::F64, &[odd])
    }

    /// A zero as a number that only the launch knows: the top bit of the number of programs, which are fewer than 2^31.
    pub(super) fn opaque_zero(&mut self, ty: Ty, bits: u64) -> Word {
        let programs = self.num_programs();
        let top = self.module.constant(Ty::I32, 31);
        let mut zero = self.typed(Op::ShiftRightLogical, Ty::I32, &[programs, top]);
        let int = if ty == Ty::F32 { Ty::I32 } else { Ty::I64 };
        if int == Ty::I64 {
            zero = self.typed(Op::UConvert, Ty::I64, &[zero]);
        }
        if bits != 0 {
            let sign = self.module.constant(int, bits);
            zero = self.typed(Op::BitwiseOr, int, &[zero, sign]);
        }
        self.typed(Op::Bitcast, ty, &[zero])
    }
}
