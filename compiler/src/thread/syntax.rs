//! The text of each op, said once: [`syntax`] is gone through by the printer, which writes what it is told, and by the parser,
//! which expects it.

use super::function::{Shared, Value};
use super::ops::{Access, Op, Shuffle, Special, WgmmaLeft, WgmmaMatrix};

/// A whole number that is part of an op.
pub(super) trait Number: Copy + TryFrom<i128> + Into<i128> {}
impl<T: Copy + TryFrom<i128> + Into<i128>> Number for T {}

/// One of the two ways through the text of an op. Literals that stand between words are given with the spaces that are printed.
pub(super) trait Text {
    /// A mistake in the text; nothing can go wrong in printing.
    type Error;

    /// `.32x4`: bits and elements of an access.
    fn width(&mut self, access: &mut Access) -> Result<(), Self::Error>;
    /// A point, letters, and a number that belong to the op's name: `.x4`.
    fn tagged(&mut self, tag: &'static str, n: &mut impl Number) -> Result<(), Self::Error>;
    /// A point and a word that belong to the op's name, or nothing.
    fn flagged(&mut self, tag: &'static str, set: &mut bool) -> Result<(), Self::Error>;
    /// A word or a character.
    fn literal(&mut self, text: &'static str) -> Result<(), Self::Error>;
    /// The first of two words if `first`, else the second.
    fn either(&mut self, words: [&'static str; 2], first: &mut bool) -> Result<(), Self::Error>;
    /// A number.
    fn number(&mut self, n: &mut impl Number, what: &'static str) -> Result<(), Self::Error>;
    /// The bits of the result's type.
    fn constant(&mut self, bits: &mut u64) -> Result<(), Self::Error>;
    /// The name of a parameter.
    fn param(&mut self, index: &mut u32) -> Result<(), Self::Error>;
    /// A shared buffer.
    fn buffer(&mut self, buf: &mut Shared) -> Result<(), Self::Error>;
    /// The next operand; `?` if it is missing.
    fn operand(&mut self) -> Result<(), Self::Error>;
    /// The next operands, up to `n`, with commas.
    fn operands(&mut self, n: usize) -> Result<(), Self::Error>;
    /// All further operands, with commas.
    fn rest(&mut self) -> Result<(), Self::Error>;
    /// If there are further operands, the literal that stands before them.
    fn more(&mut self, text: &'static str) -> Result<bool, Self::Error>;
    /// Does a register come next, where it may also be a buffer? A printer knows.
    fn is_register(&mut self, known: bool) -> bool;

    /// The next operand in brackets, and what is added to it: `[r1 + 16]`.
    fn place(&mut self, offset: &mut i32) -> Result<(), Self::Error> {
        self.literal("[")?;
        self.operand()?;
        self.offset(offset)?;
        self.literal("]")
    }

    /// ` + 16`, ` - 16` or nothing.
    fn offset(&mut self, by: &mut i32) -> Result<(), Self::Error>;
}

/// What stands after an op's name.
pub(super) fn syntax<T: Text>(op: &mut Op, t: &mut T) -> Result<(), T::Error> {
    match op {
        Op::Const(bits) => t.constant(bits)?,
        Op::Param(index) => t.param(index)?,
        Op::Special(Special::ProgramId(axis) | Special::NumPrograms(axis)) => {
            t.literal(" ")?;
            t.number(axis, "an axis of the grid")?;
        }
        Op::GlobalLoad(a) => {
            t.width(a)?;
            t.literal(" ")?;
            t.place(&mut a.offset)?;
            if t.more(" if ")? {
                t.operand()?;
                if t.more(" else ")? {
                    t.rest()?;
                }
            }
        }
        Op::GlobalStore(a) => {
            t.width(a)?;
            t.literal(" ")?;
            stored(a, t)?;
        }
        Op::SharedLoad(buf, a) => {
            t.width(a)?;
            t.literal(" ")?;
            t.buffer(buf)?;
            t.place(&mut a.offset)?;
        }
        Op::SharedStore(buf, a) => {
            t.width(a)?;
            t.literal(" ")?;
            t.buffer(buf)?;
            stored(a, t)?;
        }
        Op::CpAsync { buf, bytes, shared_offset, global_offset } => {
            t.tagged("", bytes)?;
            t.literal(" ")?;
            t.buffer(buf)?;
            t.place(shared_offset)?;
            t.literal(" = ")?;
            t.place(global_offset)?;
            if t.more(" if ")? {
                t.operand()?;
            }
        }
        Op::CpAsyncWait(n) => {
            t.literal(" ")?;
            t.number(n, "how many groups may be pending")?;
        }
        Op::LdMatrix { buf, n, trans, offset } => {
            t.tagged("x", n)?;
            t.flagged("trans", trans)?;
            t.literal(" ")?;
            t.buffer(buf)?;
            t.place(offset)?;
        }
        Op::Mma(_) => {
            for (i, n) in [4, 2].into_iter().enumerate() {
                t.literal(if i == 0 { " (" } else { ", (" })?;
                t.operands(n)?;
                t.literal(")")?;
            }
            list(", (", t)?;
        }
        Op::Wgmma { n, a, b, .. } => {
            t.tagged("n", n)?;
            t.literal(" (")?;
            left(a, *b, t)?;
            t.literal("), (")?;
            matrix(b, t)?;
            t.literal(")")?;
            list(", (", t)?;
        }
        Op::WgmmaWait(n) => {
            t.literal(" ")?;
            t.number(n, "how many groups may be pending")?;
            list(" (", t)?;
        }
        Op::Shuffle(Shuffle::Xor(mask)) => {
            t.literal(" ")?;
            t.operand()?;
            t.literal(", ")?;
            t.number(mask, "the lanes' distance")?;
        }
        // Results of a loop's carried values stand with their first values: printer and parser know them.
        Op::Loop => return Ok(()),
        Op::Special(Special::Thread | Special::Lane | Special::Warp)
        | Op::IBin(_)
        | Op::FBin(_)
        | Op::FUn(_)
        | Op::Fma
        | Op::ICmpS(_)
        | Op::ICmpU(_)
        | Op::FCmp(_)
        | Op::Not
        | Op::Select
        | Op::Conv(_)
        | Op::Pack16
        | Op::CpAsyncCommit
        | Op::WgmmaFence
        | Op::WgmmaCommit
        | Op::Hold
        | Op::AsyncProxyFence
        | Op::Shuffle(Shuffle::Index)
        | Op::Barrier
        | Op::WarpBarrier
        | Op::If
        | Op::Yield
        | Op::Condition => {
            if t.more(" ")? {
                t.rest()?;
            }
        }
    }
    // More than there should be, which the verifier refuses.
    if t.more(" extra ")? { t.rest() } else { Ok(()) }
}

/// All further operands in parentheses, or nothing.
fn list<T: Text>(open: &'static str, t: &mut T) -> Result<(), T::Error> {
    if t.more(open)? {
        t.rest()?;
        t.literal(")")?;
    }
    Ok(())
}

/// `[r1] = r2, r3 if r4`.
fn stored<T: Text>(a: &mut Access, t: &mut T) -> Result<(), T::Error> {
    t.place(&mut a.offset)?;
    t.literal(" = ")?;
    t.operands(a.n.into())?;
    if t.more(" if ")? { t.operand() } else { Ok(()) }
}

fn left<T: Text>(a: &mut WgmmaLeft, like: WgmmaMatrix, t: &mut T) -> Result<(), T::Error> {
    if t.is_register(*a == WgmmaLeft::Registers) {
        *a = WgmmaLeft::Registers;
        t.operands(a.operands())
    } else {
        let mut m = if let WgmmaLeft::Shared(m) = *a { m } else { like };
        matrix(&mut m, t)?;
        *a = WgmmaLeft::Shared(m);
        Ok(())
    }
}

/// `shared0[r1] k swizzle 128 block 0`.
fn matrix<T: Text>(m: &mut WgmmaMatrix, t: &mut T) -> Result<(), T::Error> {
    t.buffer(&mut m.buf)?;
    t.place(&mut m.offset)?;
    t.either([" k", " mn"], &mut m.k_inner)?;
    t.literal(" swizzle ")?;
    t.number(&mut m.swizzle, "bytes of a row")?;
    t.literal(" block ")?;
    t.number(&mut m.block, "bytes from block to block")
}

/// Is it a name that needs no quotes? Names of registers do.
pub(super) fn is_plain(name: &str) -> bool {
    let register = name.strip_prefix('r').is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    super::verify::is_identifier(name) && !register
}

/// The registers that an op takes, as far as they are there.
pub(super) fn taken(operands: &[Value], from: usize, n: usize) -> &[Value] {
    let from = from.min(operands.len());
    &operands[from..operands.len().min(from.saturating_add(n))]
}
