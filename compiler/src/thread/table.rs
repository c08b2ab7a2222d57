//! What each op is called, what it does besides computing results, and the types it takes and gives: one row an op.
//!
//! Printer and parser ask for the name, the passes for the effect, the verifier for the types. A new op does not compile until
//! it has its row, and none is pure unless its row says so.

use super::ops::{Cmp, Conv, FBin, FUn, IBin, MmaKind, Op, Shuffle, Special, Ty, WgmmaLeft, WgmmaMatrix};
use super::{Access, Shared};
use crate::entity::Entity;
use std::fmt;

/// What an op does besides computing its results.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Effect {
    /// Nothing: it may be removed if unused, shared if repeated with equal operands, and stand wherever its operands exist.
    None,
    /// This thread reads memory.
    Read,
    /// This thread writes memory.
    Write,
    /// It orders what this thread does and what others do, or starts something that is waited for.
    Order,
    /// Lanes or warps work together: all of them must come here.
    Together,
    /// Runs blocks.
    Control,
    /// Ends a block.
    End,
}

/// A type in a signature.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Slot {
    /// This type.
    Is(Ty),
    /// `I32` or `I64`, the same wherever it stands in the signature.
    I,
    /// `F32` or `F64`, the same wherever it stands in the signature.
    F,
    /// Any type, the same wherever it stands in the signature.
    B,
}

impl Slot {
    fn takes(self, ty: Ty) -> bool {
        match self {
            Slot::Is(only) => ty == only,
            Slot::I => ty.is_int(),
            Slot::F => ty.is_float(),
            Slot::B => true,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Slot::Is(ty) => ty.name(),
            Slot::I => "I",
            Slot::F => "F",
            Slot::B => "B",
        }
    }
}

/// Operands and results.
pub type Form = (&'static [Slot], &'static [Slot]);

/// The types of an op.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Signature {
    /// One of these.
    Fixed(&'static [Form]),
    /// As many operands and results as attributes or blocks say: the verifier knows.
    Counted,
}

impl Signature {
    /// Are operands and results of these types right? Also if the verifier is to say.
    pub fn allows(self, operands: &[Ty], results: &[Ty]) -> bool {
        match self {
            Signature::Fixed(forms) => forms.iter().any(|f| fits(f, operands, results)),
            Signature::Counted => true,
        }
    }
}

fn fits((o, r): &Form, operands: &[Ty], results: &[Ty]) -> bool {
    let mut bound: [Option<Ty>; 3] = [None; 3];
    let mut one = |(slot, &ty): (&Slot, &Ty)| {
        let place = match slot {
            Slot::Is(_) => None,
            Slot::I => Some(0),
            Slot::F => Some(1),
            Slot::B => Some(2),
        };
        slot.takes(ty) && place.is_none_or(|p: usize| *bound[p].get_or_insert(ty) == ty)
    };
    o.len() == operands.len()
        && r.len() == results.len()
        && o.iter().zip(operands).all(&mut one)
        && r.iter().zip(results).all(&mut one)
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Signature::Fixed(forms) = self else { return f.write_str("(values) -> values") };
        let names = |slots: &[Slot]| slots.iter().map(|s| s.name()).collect::<Vec<_>>().join(", ");
        for (i, (operands, results)) in forms.iter().enumerate() {
            write!(f, "{}({}) -> ", if i > 0 { " or " } else { "" }, names(operands))?;
            match results {
                [one @ (Slot::I | Slot::F | Slot::B)] => f.write_str(one.name())?,
                _ => write!(f, "({})", names(results))?,
            }
        }
        Ok(())
    }
}

/// A row of the table.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Info {
    /// The name in IR text, before the attributes.
    pub name: &'static str,
    /// What it does besides computing its results.
    pub effect: Effect,
    /// Its types.
    pub signature: Signature,
}

const PRED: Slot = Slot::Is(Ty::Pred);
const I32: Slot = Slot::Is(Ty::I32);
const I64: Slot = Slot::Is(Ty::I64);
const F32: Slot = Slot::Is(Ty::F32);
const F64: Slot = Slot::Is(Ty::F64);
const I: Slot = Slot::I;
const F: Slot = Slot::F;
const B: Slot = Slot::B;

const fn row(name: &'static str, effect: Effect, forms: &'static [Form]) -> Info {
    Info { name, effect, signature: Signature::Fixed(forms) }
}

const fn pure(name: &'static str, forms: &'static [Form]) -> Info {
    row(name, Effect::None, forms)
}

const fn counted(name: &'static str, effect: Effect) -> Info {
    Info { name, effect, signature: Signature::Counted }
}

const NOTHING: &[Form] = &[(&[], &[])];

/// The name of a comparison: of its kind, and what it asks.
const fn compare(op: Cmp, names: [&'static str; 6]) -> &'static str {
    match op {
        Cmp::Eq => names[0],
        Cmp::Ne => names[1],
        Cmp::Lt => names[2],
        Cmp::Le => names[3],
        Cmp::Gt => names[4],
        Cmp::Ge => names[5],
    }
}

impl Op {
    /// The op's row.
    pub const fn info(&self) -> Info {
        use Effect::{Control, End, None, Order, Read, Together, Write};
        match self {
            Op::Const(_) => pure("const", &[(&[], &[B])]),
            Op::Param(_) => counted("param", None),
            Op::Special(special) => pure(
                match special {
                    Special::Thread => "thread",
                    Special::Lane => "lane",
                    Special::Warp => "warp",
                    Special::ProgramId(_) => "program_id",
                    Special::NumPrograms(_) => "num_programs",
                },
                &[(&[], &[I32])],
            ),
            Op::IBin(op @ (IBin::And | IBin::Or | IBin::Xor)) => {
                pure(op.name(), &[(&[I, I], &[I]), (&[PRED, PRED], &[PRED])])
            }
            Op::IBin(op) => pure(op.name(), &[(&[I, I], &[I])]),
            Op::FBin(op) => pure(op.name(), &[(&[F, F], &[F])]),
            Op::FUn(op @ (FUn::Exp2Approx | FUn::Log2Approx | FUn::RcpApprox | FUn::RsqrtApprox)) => {
                pure(op.name(), &[(&[F32], &[F32])])
            }
            Op::FUn(op) => pure(op.name(), &[(&[F], &[F])]),
            Op::Fma => pure("fma", &[(&[F, F, F], &[F])]),
            Op::ICmpS(c) => {
                let names = ["icmp_s.eq", "icmp_s.ne", "icmp_s.lt", "icmp_s.le", "icmp_s.gt", "icmp_s.ge"];
                pure(compare(*c, names), &[(&[I, I], &[PRED])])
            }
            Op::ICmpU(c) => {
                let names = ["icmp_u.eq", "icmp_u.ne", "icmp_u.lt", "icmp_u.le", "icmp_u.gt", "icmp_u.ge"];
                pure(compare(*c, names), &[(&[I, I], &[PRED])])
            }
            Op::FCmp(c) => {
                let names = ["fcmp.eq", "fcmp.ne", "fcmp.lt", "fcmp.le", "fcmp.gt", "fcmp.ge"];
                pure(compare(*c, names), &[(&[F, F], &[PRED])])
            }
            Op::Not => pure("not", &[(&[PRED], &[PRED])]),
            Op::Select => pure("select", &[(&[PRED, B, B], &[B])]),
            Op::Conv(c) => pure(c.name(), conversion(*c)),
            Op::Pack16 => pure("pack16", &[(&[I32, I32], &[I32])]),
            Op::GlobalLoad(_) => counted("global_load", Read),
            Op::GlobalStore(_) => counted("global_store", Write),
            Op::SharedLoad(..) => counted("shared_load", Read),
            Op::SharedStore(..) => counted("shared_store", Write),
            Op::CpAsync { .. } => row("cp_async", Order, &[(&[I32, I64], &[]), (&[I32, I64, PRED], &[])]),
            Op::CpAsyncCommit => row("cp_async_commit", Order, NOTHING),
            Op::CpAsyncWait(_) => row("cp_async_wait", Order, NOTHING),
            Op::LdMatrix { .. } => counted("ldmatrix", Together),
            Op::Mma(kind) => {
                let floats: &[Form] = &[(&[I32, I32, I32, I32, I32, I32, F32, F32, F32, F32], &[F32, F32, F32, F32])];
                let whole: &[Form] = &[(&[I32; 10], &[I32; 4])];
                match kind {
                    MmaKind::F16 => row("mma.f16", Together, floats),
                    MmaKind::Bf16 => row("mma.bf16", Together, floats),
                    MmaKind::Tf32 => row("mma.tf32", Together, floats),
                    MmaKind::S8 => row("mma.s8", Together, whole),
                    MmaKind::U8 => row("mma.u8", Together, whole),
                }
            }
            Op::Wgmma { kind, .. } => counted(
                match kind {
                    MmaKind::F16 => "wgmma.f16",
                    MmaKind::Bf16 => "wgmma.bf16",
                    MmaKind::Tf32 => "wgmma.tf32",
                    MmaKind::S8 => "wgmma.s8",
                    MmaKind::U8 => "wgmma.u8",
                },
                Together,
            ),
            Op::WgmmaFence => row("wgmma_fence", Order, NOTHING),
            Op::WgmmaCommit => row("wgmma_commit", Order, NOTHING),
            Op::WgmmaWait(_) => counted("wgmma_wait", Order),
            Op::Hold => counted("hold", Order),
            Op::AsyncProxyFence => row("async_proxy_fence", Order, NOTHING),
            Op::Shuffle(Shuffle::Xor(_)) => row("shuffle.xor", Together, &[(&[I32], &[I32]), (&[F32], &[F32])]),
            Op::Shuffle(Shuffle::Index) => {
                row("shuffle.index", Together, &[(&[I32, I32], &[I32]), (&[F32, I32], &[F32])])
            }
            Op::Barrier => row("barrier", Together, NOTHING),
            Op::WarpBarrier => row("warp_barrier", Together, NOTHING),
            Op::If => counted("if", Control),
            Op::Loop => counted("loop", Control),
            Op::Yield => counted("yield", End),
            Op::Condition => row("condition", End, &[(&[PRED], &[])]),
        }
    }

    /// What it does besides computing its results.
    pub const fn effect(&self) -> Effect {
        self.info().effect
    }

    /// May the op be removed if unused, and shared if repeated with equal operands?
    pub const fn is_pure(&self) -> bool {
        matches!(self.effect(), Effect::None)
    }

    /// Does the op end a block?
    pub const fn is_terminator(&self) -> bool {
        matches!(self.effect(), Effect::End)
    }

    /// How many blocks it has.
    pub const fn blocks(&self) -> usize {
        if matches!(self.effect(), Effect::Control) { 2 } else { 0 }
    }
}

const fn conversion(c: Conv) -> &'static [Form] {
    match c {
        Conv::SExt64 | Conv::ZExt64 => &[(&[I32], &[I64])],
        Conv::Trunc32 => &[(&[I64], &[I32])],
        Conv::SExt8 | Conv::SExt16 => &[(&[I32], &[I32])],
        Conv::SToF | Conv::UToF => &[(&[I], &[F])],
        Conv::FToS | Conv::FToU => &[(&[F], &[I])],
        Conv::F32ToF64 => &[(&[F32], &[F64])],
        Conv::F64ToF32 => &[(&[F64], &[F32])],
        Conv::F16LoToF32 | Conv::F16HiToF32 => &[(&[I32], &[F32])],
        Conv::F32ToF16 | Conv::F32ToBf16 | Conv::F32ToTf32 => &[(&[F32], &[I32])],
        Conv::Bitcast => &[(&[I32], &[F32]), (&[F32], &[I32]), (&[I64], &[F64]), (&[F64], &[I64])],
        Conv::PredToI32 => &[(&[PRED], &[I32])],
    }
}

/// One op for each name, with attributes of no matter: what a name in IR text may mean.
pub fn every_op() -> Vec<Op> {
    let buf = Shared::new(0);
    let access = Access { bits: 32, n: 1, offset: 0 };
    let b = WgmmaMatrix { buf, offset: 0, swizzle: 128, k_inner: false, block: 0 };
    let mut ops = vec![
        Op::Const(0),
        Op::Param(0),
        Op::Special(Special::Thread),
        Op::Special(Special::Lane),
        Op::Special(Special::Warp),
        Op::Special(Special::ProgramId(0)),
        Op::Special(Special::NumPrograms(0)),
        Op::Fma,
        Op::Not,
        Op::Select,
        Op::Pack16,
        Op::GlobalLoad(access),
        Op::GlobalStore(access),
        Op::SharedLoad(buf, access),
        Op::SharedStore(buf, access),
        Op::CpAsync { buf, bytes: 4, shared_offset: 0, global_offset: 0 },
        Op::CpAsyncCommit,
        Op::CpAsyncWait(0),
        Op::LdMatrix { buf, n: 1, trans: false, offset: 0 },
        Op::WgmmaFence,
        Op::WgmmaCommit,
        Op::WgmmaWait(0),
        Op::Hold,
        Op::AsyncProxyFence,
        Op::Shuffle(Shuffle::Xor(0)),
        Op::Shuffle(Shuffle::Index),
        Op::Barrier,
        Op::WarpBarrier,
        Op::If,
        Op::Loop,
        Op::Yield,
        Op::Condition,
    ];
    ops.extend(IBin::ALL.iter().map(|&op| Op::IBin(op)));
    ops.extend(FBin::ALL.iter().map(|&op| Op::FBin(op)));
    ops.extend(FUn::ALL.iter().map(|&op| Op::FUn(op)));
    ops.extend(Conv::ALL.iter().map(|&op| Op::Conv(op)));
    ops.extend(Cmp::ALL.iter().flat_map(|&c| [Op::ICmpS(c), Op::ICmpU(c), Op::FCmp(c)]));
    ops.extend(MmaKind::ALL.iter().map(|&kind| Op::Mma(kind)));
    ops.extend(MmaKind::ALL.iter().map(|&kind| Op::Wgmma { kind, n: 8, a: WgmmaLeft::Registers, b }));
    ops
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_are_unique() {
        let ops = every_op();
        let names: HashSet<_> = ops.iter().map(|op| op.info().name).collect();
        assert_eq!(names.len(), ops.len());
    }

    #[test]
    fn every_op_has_its_line() {
        // By the variants of the enum as it is written, so that one left out here is missed.
        let source = include_str!("ops.rs");
        let body = source.split_once("pub enum Op {").and_then(|(_, s)| s.split_once("\n}\n")).expect("the enum").0;
        let variants: HashSet<&str> = body
            .lines()
            .filter_map(|l| l.strip_prefix("    ").filter(|l| l.starts_with(|c: char| c.is_ascii_uppercase())))
            .filter_map(|l| l.split(|c: char| !c.is_ascii_alphanumeric()).next())
            .collect();
        let here: Vec<String> = every_op().iter().map(|op| format!("{op:?}")).collect();
        let here: HashSet<&str> =
            here.iter().filter_map(|t| t.split(|c: char| !c.is_ascii_alphanumeric()).next()).collect();
        assert_eq!(variants, here);
    }

    #[test]
    fn what_is_pure_can_be_evaluated() {
        // The evaluator is the meaning of pure ops: what it knows nothing of is not pure but for where a thread stands.
        for op in every_op() {
            let Signature::Fixed(forms) = op.info().signature else { continue };
            for (operands, results) in forms {
                let ty = |s: &Slot| match s {
                    Slot::Is(ty) => *ty,
                    Slot::I => Ty::I32,
                    Slot::F | Slot::B => Ty::F32,
                };
                let types: Vec<Ty> = operands.iter().map(ty).collect();
                let bits = vec![1; types.len()];
                let Some(result) = results.first().map(ty) else { continue };
                let known = super::super::eval::eval(&op, &types, &bits, result).is_some();
                let given = matches!(op, Op::Special(_));
                assert_eq!(known || given, op.is_pure(), "{op:?}");
            }
        }
    }

    #[test]
    fn signatures_bind_their_letters() {
        let add = Op::IBin(IBin::Add).info().signature;
        assert!(add.allows(&[Ty::I32, Ty::I32], &[Ty::I32]) && add.allows(&[Ty::I64, Ty::I64], &[Ty::I64]));
        assert!(!add.allows(&[Ty::I32, Ty::I64], &[Ty::I32]) && !add.allows(&[Ty::Pred; 2], &[Ty::Pred]));
        assert_eq!(add.to_string(), "(I, I) -> I");
        assert_eq!(Op::IBin(IBin::And).info().signature.to_string(), "(I, I) -> I or (pred, pred) -> (pred)");
    }
}
