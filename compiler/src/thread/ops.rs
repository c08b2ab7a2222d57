//! The table of Thread IR operations.
//!
//! Operand and result types are written `(a, b) -> c`; `I` is `I32` or `I64`, `F` is `F32` or `F64`, `B` is any type.

use super::function::Shared;
use crate::names::names;
use std::fmt;

/// The type of a register.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Ty {
    /// A truth value.
    Pred,
    /// 32 bits; integers of either sign, and the bits of narrower numbers.
    I32,
    /// 64 bits; integers of either sign, and addresses in global memory.
    I64,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
}

impl Ty {
    /// Every one.
    pub const ALL: [Ty; 5] = [Ty::Pred, Ty::I32, Ty::I64, Ty::F32, Ty::F64];

    /// The name in IR text.
    pub const fn name(self) -> &'static str {
        match self {
            Ty::Pred => "pred",
            Ty::I32 => "i32",
            Ty::I64 => "i64",
            Ty::F32 => "f32",
            Ty::F64 => "f64",
        }
    }

    /// Bits of a register; 1 for a truth value.
    pub const fn bits(self) -> u32 {
        match self {
            Ty::Pred => 1,
            Ty::I32 | Ty::F32 => 32,
            Ty::I64 | Ty::F64 => 64,
        }
    }

    /// `I32` or `I64`?
    pub const fn is_int(self) -> bool {
        matches!(self, Ty::I32 | Ty::I64)
    }

    /// `F32` or `F64`?
    pub const fn is_float(self) -> bool {
        matches!(self, Ty::F32 | Ty::F64)
    }
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Where a thread stands; all are `I32`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Special {
    /// `0..threads`: `warp * warp_width + lane`.
    Thread,
    /// `0..warp_width`.
    Lane,
    /// `0..threads / warp_width`.
    Warp,
    /// The program's coordinate along an axis of the grid.
    ProgramId(u8),
    /// The grid's extent along an axis.
    NumPrograms(u8),
}

names! {
    /// Integer functions of two operands: `(I, I) -> I` of one type.
    IBin {
        /// Wrapping sum.
        Add = "add",
        /// Wrapping difference.
        Sub = "sub",
        /// Wrapping product.
        Mul = "mul",
        /// Upper half of the signed product.
        MulHiS = "mul_hi_s",
        /// Upper half of the unsigned product.
        MulHiU = "mul_hi_u",
        /// Signed quotient, truncating. The lowering never lets the divisor be 0, nor MIN be divided by -1.
        DivS = "div_s",
        /// Unsigned quotient. The divisor is never 0.
        DivU = "div_u",
        /// Signed remainder, as for `DivS`.
        RemS = "rem_s",
        /// Unsigned remainder, as for `DivU`.
        RemU = "rem_u",
        /// Signed minimum.
        MinS = "min_s",
        /// Unsigned minimum.
        MinU = "min_u",
        /// Signed maximum.
        MaxS = "max_s",
        /// Unsigned maximum.
        MaxU = "max_u",
        /// And; also `(Pred, Pred) -> Pred`.
        And = "and",
        /// Or; also of `Pred`.
        Or = "or",
        /// Exclusive or; also of `Pred` (where it is "differ").
        Xor = "xor",
        /// Left shift. The amount, of the same type, is below the width.
        Shl = "shl",
        /// Arithmetic right shift, amount as for `Shl`.
        ShrS = "shr_s",
        /// Logical right shift, amount as for `Shl`.
        ShrU = "shr_u",
    }
}

names! {
    /// Float functions of two operands: `(F, F) -> F`, rounded to nearest even where inexact. Never contracted.
    FBin {
        /// Sum.
        Add = "fadd",
        /// Difference.
        Sub = "fsub",
        /// Product.
        Mul = "fmul",
        /// Quotient.
        Div = "fdiv",
        /// Minimum ignoring NaN (IEEE 754-2019 minimumNumber); -0 below +0.
        Min = "fmin",
        /// Maximum ignoring NaN; +0 above -0.
        Max = "fmax",
        /// Minimum, NaN if either is NaN; -0 below +0.
        MinNan = "fmin_nan",
        /// Maximum, NaN if either is NaN; +0 above -0.
        MaxNan = "fmax_nan",
    }
}

names! {
    /// Float functions of one operand: `(F) -> F`.
    FUn {
        /// Sign flipped, also of NaN and zero.
        Neg = "fneg",
        /// Sign cleared.
        Abs = "fabs",
        /// Square root, correctly rounded where the target can.
        Sqrt = "fsqrt",
        /// Toward minus infinity.
        Floor = "ffloor",
        /// Toward plus infinity.
        Ceil = "fceil",
        /// Toward zero.
        Trunc = "ftrunc",
        /// To nearest, ties to even.
        RoundEven = "fround_even",
        /// `F32` only, if [`crate::target::Caps::approx`]: 2 to the x within 2 ulp. In this and the next three, operands
        /// and results below 2^-126 may count as 0.
        Exp2Approx = "exp2_approx",
        /// As `Exp2Approx`: logarithm to base 2; absolute error 2^-22 near 1.
        Log2Approx = "log2_approx",
        /// As `Exp2Approx`: reciprocal within 1 ulp.
        RcpApprox = "rcp_approx",
        /// As `Exp2Approx`: reciprocal square root within 2^-22.9 relative.
        RsqrtApprox = "rsqrt_approx",
    }
}

names! {
    /// Comparisons. Of floats: false for NaN, but `Ne` true.
    Cmp {
        /// Equal.
        Eq = "eq",
        /// Not equal.
        Ne = "ne",
        /// Less.
        Lt = "lt",
        /// Less or equal.
        Le = "le",
        /// Greater.
        Gt = "gt",
        /// Greater or equal.
        Ge = "ge",
    }
}

impl Cmp {
    /// The comparison that says the same with its operands exchanged.
    pub fn swapped(self) -> Self {
        match self {
            Cmp::Eq | Cmp::Ne => self,
            Cmp::Lt => Cmp::Gt,
            Cmp::Le => Cmp::Ge,
            Cmp::Gt => Cmp::Lt,
            Cmp::Ge => Cmp::Le,
        }
    }
}

names! {
    /// Conversions of one register to another.
    Conv {
        /// `I32 -> I64`, keeping the sign.
        SExt64 = "sext64",
        /// `I32 -> I64`, zeros above.
        ZExt64 = "zext64",
        /// `I64 -> I32`, the low half.
        Trunc32 = "trunc32",
        /// `I32 -> I32`: bit 7 repeated above.
        SExt8 = "sext8",
        /// `I32 -> I32`: bit 15 repeated above.
        SExt16 = "sext16",
        /// `I -> F`: a signed integer, rounded to nearest even. The result type says which F.
        SToF = "s_to_f",
        /// `I -> F`: an unsigned integer.
        UToF = "u_to_f",
        /// `F -> I`: toward zero, saturating to the signed range of the result type, NaN to 0.
        FToS = "f_to_s",
        /// `F -> I`: likewise to the unsigned range.
        FToU = "f_to_u",
        /// `F32 -> F64`, exact.
        F32ToF64 = "f32_to_f64",
        /// `F64 -> F32`, to nearest even.
        F64ToF32 = "f64_to_f32",
        /// `I32 -> F32`: the `f16` in the low half. If [`crate::target::Caps::f16_convert`]; so are the next four.
        F16LoToF32 = "f16_lo_to_f32",
        /// `I32 -> F32`: the `f16` in the high half.
        F16HiToF32 = "f16_hi_to_f32",
        /// `F32 -> I32`: to `f16`, nearest even, overflow to infinity; zeros in the high half.
        F32ToF16 = "f32_to_f16",
        /// `F32 -> I32`: to `bf16`, nearest even; zeros in the high half. If [`crate::target::Caps::bf16_convert`].
        F32ToBf16 = "f32_to_bf16",
        /// `F32 -> I32`: the nearest `tf32`, ties away from zero, as `F32` bits. If [`crate::target::Caps::mma_sync`].
        F32ToTf32 = "f32_to_tf32",
        /// `I32 <-> F32`, `I64 <-> F64`: the same bits as the result type.
        Bitcast = "bitcast",
        /// `Pred -> I32`: 0 or 1.
        PredToI32 = "pred_to_i32",
    }
}

names! {
    /// The tensor-core instruction `mma.sync.aligned`: shapes and types. Registers per thread: `a`, `b`, `c`.
    MmaKind {
        /// m16n8k16, `f16` into `F32`: 4 `I32`, 2 `I32`, 4 `F32`.
        F16 = "f16",
        /// m16n8k16, `bf16` into `F32`: as `F16`.
        Bf16 = "bf16",
        /// m16n8k8, `tf32` into `F32`: as `F16`.
        Tf32 = "tf32",
        /// m16n8k32, `i8` into `i32`: 4 `I32`, 2 `I32`, 4 `I32`.
        S8 = "s8",
        /// m16n8k32, `u8` into `i32`.
        U8 = "u8",
    }
}

/// A matrix in shared memory as `wgmma` reads it: rows of `swizzle` bytes, whose chunks of 16 bytes are exchanged by the
/// address bits 7 and up; what is wider is cut into blocks of columns.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct WgmmaMatrix {
    /// Where it is; aligned to 1024 bytes.
    pub buf: Shared,
    /// Added to the byte index.
    pub offset: i32,
    /// Bytes of a row: 32, 64 or 128.
    pub swizzle: u8,
    /// Does a row go along k? If not, it goes along the other dimension of the matrix.
    pub k_inner: bool,
    /// Bytes from one block of columns to the next.
    pub block: u32,
}

/// Where `wgmma` finds its left operand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WgmmaLeft {
    /// In shared memory.
    Shared(WgmmaMatrix),
    /// In registers: each warp has 16 of the 64 rows, as `Mma` has them.
    Registers,
}

impl WgmmaLeft {
    /// How many of the product's operands it is: the byte of a matrix, or four registers.
    pub const fn operands(self) -> usize {
        match self {
            WgmmaLeft::Shared(_) => 1,
            WgmmaLeft::Registers => 4,
        }
    }
}

/// How a value moves between the lanes of a warp.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Shuffle {
    /// From lane `lane ^ mask`.
    Xor(u32),
    /// From the lane in the second operand (`I32`, below the warp width).
    Index,
}

/// Width of one memory access of one thread.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Access {
    /// Bits of one element: 8, 16, 32 or 64. Elements of 8 and 16 bits are `I32` registers, zero-extended on load;
    /// of 32 bits `I32` or `F32`; of 64 bits `I64` or `F64`.
    pub bits: u8,
    /// Consecutive elements: 1, 2 or 4; at most 16 bytes in all. The address is aligned to `bits * n / 8` bytes.
    pub n: u8,
    /// Bytes added to the address operand.
    pub offset: i32,
}

/// An operation of one thread.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Op {
    /// `() -> B`: these bits (in the low bits; a truth value is 0 or 1).
    Const(u64),
    /// `() -> I32 | I64 | F32 | F64`: a kernel parameter, by its index.
    Param(u32),
    /// `() -> I32`.
    Special(Special),
    /// Integer arithmetic.
    IBin(IBin),
    /// Float arithmetic.
    FBin(FBin),
    /// Float functions.
    FUn(FUn),
    /// `(F, F, F) -> F`: `a * b + c`, rounded once.
    Fma,
    /// `(I, I) -> Pred`, signed.
    ICmpS(Cmp),
    /// `(I, I) -> Pred`, unsigned.
    ICmpU(Cmp),
    /// `(F, F) -> Pred`.
    FCmp(Cmp),
    /// `(Pred) -> Pred`.
    Not,
    /// `(Pred, B, B) -> B`: the second operand if the first holds, else the third.
    Select,
    /// Conversions.
    Conv(Conv),
    /// `(I32, I32) -> I32`: the low half of the first in the low half, the low half of the second in the high half.
    Pack16,
    /// `(address: I64 [, Pred, other x n]) -> n registers`. Where the predicate is false no memory is touched and the
    /// others are read.
    GlobalLoad(Access),
    /// `(address: I64, n registers [, Pred])`.
    GlobalStore(Access),
    /// `(byte: I32) -> n registers`: from byte `byte + offset` of the buffer.
    SharedLoad(Shared, Access),
    /// `(byte: I32, n registers [, Pred])`.
    SharedStore(Shared, Access),
    /// `(byte: I32, address: I64 [, Pred])`: starts an asynchronous copy of `bytes` (4, 8 or 16) from global memory to
    /// `byte + shared_offset` of the buffer; zeros where the predicate is false. If [`crate::target::Caps::cp_async`].
    CpAsync {
        /// Where to.
        buf: Shared,
        /// How many: 4, 8 or 16.
        bytes: u8,
        /// Added to the shared byte index.
        shared_offset: i32,
        /// Added to the global address.
        global_offset: i32,
    },
    /// Ends a group of asynchronous copies of this thread (possibly an empty one).
    CpAsyncCommit,
    /// Waits until at most `n` of this thread's groups are pending. Other threads see the data after a barrier.
    CpAsyncWait(u8),
    /// `(byte: I32) -> n of I32`: `ldmatrix` of `n` (1, 2, 4) 8x8 matrices of 16-bit elements; lanes `8 i .. 8 i + 8`
    /// give the row addresses (16-byte aligned) of matrix `i`. If [`crate::target::Caps::mma_sync`].
    LdMatrix {
        /// Where from.
        buf: Shared,
        /// How many matrices.
        n: u8,
        /// Transposed?
        trans: bool,
        /// Added to the byte index.
        offset: i32,
    },
    /// `(a.., b.., c..) -> (d..)`: `a b + c` over a warp, fragments as in the PTX manual. If
    /// [`crate::target::Caps::mma_sync`].
    Mma(MmaKind),
    /// `(a: I32, b: I32 [, c: F32 x n/2]) -> (d: F32 x n/2)`, or with four registers for `a`: starts `a b + c`, or `a b`, over
    /// four warps, of the m64 x `n` x k16 matrices at these bytes of shared memory; fragments as in the PTX manual. The results
    /// are in flight: only another `Wgmma` may take them, as `c`, and `WgmmaWait`; registers of `a` keep what they hold until
    /// the product is waited for. If [`crate::target::Caps::wgmma`]; so are the next five.
    Wgmma {
        /// `F16` or `Bf16`.
        kind: MmaKind,
        /// Columns: 8 to 256, a multiple of 8.
        n: u16,
        /// 64 rows.
        a: WgmmaLeft,
        /// `n` columns.
        b: WgmmaMatrix,
    },
    /// Registers written before are seen by `Wgmma` after it, which may write them, too.
    WgmmaFence,
    /// Ends a group of products of this thread's four warps.
    WgmmaCommit,
    /// `(values..) -> (values..)`: waits until at most so many groups are pending. The values, in flight before, are then
    /// finished; shared memory that the finished groups read may be written again after a barrier.
    WgmmaWait(u8),
    /// `(values..) -> ()`: the values are computed before what stands after it: no compiler of what is printed moves a wait for
    /// products up past it.
    Hold,
    /// What this thread wrote to shared memory is seen by `Wgmma` (of other threads: after a barrier).
    AsyncProxyFence,
    /// `(I32 | F32 [, I32]) -> same`: the value of another lane.
    Shuffle(Shuffle),
    /// All threads of the program arrive before any goes on; their accesses to shared and global memory before it
    /// are visible to all after it.
    Barrier,
    /// The same among the lanes of a warp.
    WarpBarrier,
    /// `(Pred) -> (results..)`: two blocks, each ended by `Yield` of the results.
    If,
    /// `(inits..) -> (carried..)`: two blocks with the carried values as parameters: the first is ended by `Condition`,
    /// the second, run while the condition holds, by `Yield` of the next carried values.
    Loop,
    /// `(values..)`: ends a block.
    Yield,
    /// `(Pred)`: ends the first block of a loop.
    Condition,
}
