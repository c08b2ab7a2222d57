//! Pure ops on all threads at once. They cannot go wrong, so inactive threads compute too: nobody reads what they get.
//!
//! The meaning is that of [`eval`]. What kernels consist of mostly has loops of its own, for speed.

use super::exec::{Machine, Mask};
use crate::error::Result;
use crate::thread::{Cmp, Conv, FBin, IBin, InstData, InstId, Op, Special, Ty, eval};

fn map1(d: &mut [u64], a: &[u64], f: impl Fn(u64) -> u64) {
    for (d, &a) in d.iter_mut().zip(a) {
        *d = f(a);
    }
}

fn map2(d: &mut [u64], a: &[u64], b: &[u64], f: impl Fn(u64, u64) -> u64) {
    for ((d, &a), &b) in d.iter_mut().zip(a).zip(b) {
        *d = f(a, b);
    }
}

fn f32_of(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

fn of_f32(x: f32) -> u64 {
    u64::from(x.to_bits())
}

/// Runs a pure op of one result.
pub(super) fn run(m: &mut Machine<'_>, inst: &InstData) {
    let result = inst.results[0];
    let mut d = m.take(result);
    let o = |i: usize| m.reg(inst.operands[i]);
    let ty = inst.operands.first().map_or(Ty::I32, |&v| m.func.ty(v));
    match &inst.op {
        Op::Const(bits) => d.fill(*bits),
        Op::Param(i) => d.fill(m.args[*i as usize]),
        Op::Special(s) => special(m, *s, &mut d),
        Op::IBin(op) => ibin(*op, ty, &mut d, o(0), o(1)),
        Op::FBin(op) => fbin(*op, ty, &mut d, o(0), o(1)),
        Op::FUn(op) => map1(&mut d, o(0), |a| eval::fun(*op, ty, a)),
        Op::Fma => {
            let c = o(2);
            for (i, (&a, &b)) in o(0).iter().zip(o(1)).enumerate() {
                d[i] = eval::fma(ty, a, b, c[i]);
            }
        }
        Op::ICmpS(c) if ty == Ty::I32 => compare(*c, &mut d, o(0), o(1), |a| a as u32 as i32),
        Op::ICmpS(c) => compare(*c, &mut d, o(0), o(1), |a| a as i64),
        // Registers of 32 bits are zero above.
        Op::ICmpU(c) => compare(*c, &mut d, o(0), o(1), |a| a),
        Op::FCmp(c) if ty == Ty::F32 => compare(*c, &mut d, o(0), o(1), f32_of),
        Op::FCmp(c) => compare(*c, &mut d, o(0), o(1), f64::from_bits),
        Op::Not => map1(&mut d, o(0), |a| a ^ 1),
        Op::Select => {
            let (c, a, b) = (o(0), o(1), o(2));
            for (i, d) in d.iter_mut().enumerate() {
                *d = if c[i] == 1 { a[i] } else { b[i] };
            }
        }
        Op::Conv(op) => conv(*op, ty, m.func.ty(result), &mut d, o(0)),
        Op::Pack16 => map2(&mut d, o(0), o(1), |a, b| a & 0xffff | (b & 0xffff) << 16),
        op => unreachable!("{op:?} is not pure"),
    }
    m.put(result, d);
}

fn special(m: &Machine<'_>, s: Special, d: &mut [u64]) {
    let width = u64::from(m.func.warp_width);
    match s {
        Special::ProgramId(axis) => return d.fill(m.program[usize::from(axis)].into()),
        Special::NumPrograms(axis) => return d.fill(m.grid[usize::from(axis)].into()),
        Special::Thread | Special::Lane | Special::Warp => {}
    }
    for (t, d) in d.iter_mut().enumerate() {
        let t = t as u64;
        *d = match s {
            Special::Lane => t % width,
            Special::Warp => t / width,
            _ => t,
        };
    }
}

fn ibin(op: IBin, ty: Ty, d: &mut [u64], a: &[u64], b: &[u64]) {
    let ones = eval::truncate(ty, u64::MAX);
    let amounts = u64::from(ty.bits() - 1);
    match op {
        IBin::Add => map2(d, a, b, |a, b| a.wrapping_add(b) & ones),
        IBin::Sub => map2(d, a, b, |a, b| a.wrapping_sub(b) & ones),
        IBin::Mul => map2(d, a, b, |a, b| a.wrapping_mul(b) & ones),
        IBin::And => map2(d, a, b, |a, b| a & b),
        IBin::Or => map2(d, a, b, |a, b| a | b),
        IBin::Xor => map2(d, a, b, |a, b| a ^ b),
        IBin::Shl => map2(d, a, b, |a, b| (a << (b & amounts)) & ones),
        IBin::ShrU => map2(d, a, b, |a, b| a >> (b & amounts)),
        _ => map2(d, a, b, |a, b| eval::ibin(op, ty, a, b)),
    }
}

fn fbin(op: FBin, ty: Ty, d: &mut [u64], a: &[u64], b: &[u64]) {
    match (op, ty) {
        (FBin::Add, Ty::F32) => map2(d, a, b, |a, b| of_f32(f32_of(a) + f32_of(b))),
        (FBin::Sub, Ty::F32) => map2(d, a, b, |a, b| of_f32(f32_of(a) - f32_of(b))),
        (FBin::Mul, Ty::F32) => map2(d, a, b, |a, b| of_f32(f32_of(a) * f32_of(b))),
        _ => map2(d, a, b, |a, b| eval::fbin(op, ty, a, b)),
    }
}

fn compare<T: PartialOrd>(op: Cmp, d: &mut [u64], a: &[u64], b: &[u64], of: impl Fn(u64) -> T) {
    match op {
        Cmp::Eq => map2(d, a, b, |a, b| (of(a) == of(b)).into()),
        Cmp::Ne => map2(d, a, b, |a, b| (of(a) != of(b)).into()),
        Cmp::Lt => map2(d, a, b, |a, b| (of(a) < of(b)).into()),
        Cmp::Le => map2(d, a, b, |a, b| (of(a) <= of(b)).into()),
        Cmp::Gt => map2(d, a, b, |a, b| (of(a) > of(b)).into()),
        Cmp::Ge => map2(d, a, b, |a, b| (of(a) >= of(b)).into()),
    }
}

fn conv(op: Conv, from: Ty, to: Ty, d: &mut [u64], a: &[u64]) {
    match op {
        Conv::SExt64 => map1(d, a, |a| a as u32 as i32 as i64 as u64),
        Conv::ZExt64 | Conv::Bitcast | Conv::PredToI32 => d.copy_from_slice(a),
        Conv::Trunc32 => map1(d, a, |a| a & 0xffff_ffff),
        _ => map1(d, a, |a| eval::conv(op, from, to, a)),
    }
}

impl Machine<'_> {
    /// Reports what the integer ops leave undefined, in active threads.
    pub fn check_integers(&self, id: InstId, inst: &InstData, op: IBin, mask: &Mask) -> Result<()> {
        let ty = self.func.ty(inst.operands[0]);
        let [a, b] = [0, 1].map(|i| self.reg(inst.operands[i]));
        let minimum = 1 << (ty.bits() - 1);
        let (what, wrong): (_, &dyn Fn(usize) -> bool) = match op {
            IBin::DivU | IBin::RemU => ("division by zero", &|t| b[t] == 0),
            IBin::DivS | IBin::RemS if mask.threads().any(|t| b[t] == 0) => ("division by zero", &|t| b[t] == 0),
            IBin::DivS | IBin::RemS => {
                ("the least integer divided by -1", &|t| a[t] == minimum && b[t] == eval::truncate(ty, u64::MAX))
            }
            IBin::Shl | IBin::ShrS | IBin::ShrU => {
                ("a shift by the width of the register or more", &|t| b[t] >= u64::from(ty.bits()))
            }
            _ => return Ok(()),
        };
        if mask.threads().any(wrong) {
            return Err(self.fail(id, what, mask.threads().filter(|&t| wrong(t))));
        }
        Ok(())
    }
}
