//! Loops over the elements of tiles, one typed function per op and element type.
//!
//! Each loop applies a function of [`super::scalar`], inlined with a constant op, so that most of them vectorise.

use super::scalar::{Bool, CastTo, Element, compare, dispatch};
use crate::dtype::DType;
use crate::tile::{BinaryOp, Cmp, Op, UnaryOp};
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

/// Computes `out` from up to three operands with as many elements, all as bytes aligned to their element.
pub(super) type Kernel = fn(out: &mut [u8], args: [&[u8]; 3]);

/// Elements that the loops of 16-bit floats widen at a time.
const CHUNK: usize = 256;

/// The loop of an elementwise op; `None` if the op is not elementwise or not defined for these types.
/// `operands` and `result` are element types; `select` moves elements of any kind and has its own [`select_kernel`].
pub(super) fn kernel(op: &Op, operand: DType, result: DType) -> Option<Kernel> {
    match op {
        Op::Unary(u) => match operand {
            DType::F16 => half_unary::<f16>(*u),
            DType::BF16 => half_unary::<bf16>(*u),
            _ => dispatch!(operand, T => unary::<T>(*u)),
        },
        Op::Binary(b) => match operand {
            DType::F16 => half_binary::<f16>(*b),
            DType::BF16 => half_binary::<bf16>(*b),
            _ => dispatch!(operand, T => binary::<T>(*b)),
        },
        Op::Compare(c) => Some(dispatch!(operand, T => compare_kernel::<T>(*c))),
        Op::Fma => match operand {
            DType::F16 => Some(half_fma::<f16>),
            DType::BF16 => Some(half_fma::<bf16>),
            DType::F32 => Some(fma::<f32>),
            DType::F64 => Some(fma::<f64>),
            _ => None,
        },
        Op::Cast => Some(match (operand, result) {
            (DType::F16, DType::F32) => |out, [x, ..]| cast_slice::<f16>(x).convert_to_f32_slice(cast_mut(out)),
            (DType::BF16, DType::F32) => |out, [x, ..]| cast_slice::<bf16>(x).convert_to_f32_slice(cast_mut(out)),
            (DType::F32, DType::F16) => |out, [x, ..]| cast_mut::<f16>(out).convert_from_f32_slice(cast_slice(x)),
            (DType::F32, DType::BF16) => |out, [x, ..]| cast_mut::<bf16>(out).convert_from_f32_slice(cast_slice(x)),
            _ => dispatch!(operand, S => dispatch!(result, T => cast_kernel::<S, T>)),
        }),
        _ => None,
    }
}

/// The loop of `select` for elements of `bytes` bytes.
pub(super) fn select_kernel(bytes: usize) -> Kernel {
    fn select<T: bytemuck::Pod>(out: &mut [u8], [condition, x, y]: [&[u8]; 3]) {
        let (x, y): (&[T], &[T]) = (cast_slice(x), cast_slice(y));
        for (((o, &c), &x), &y) in cast_mut::<T>(out).iter_mut().zip(condition).zip(x).zip(y) {
            *o = if c != 0 { x } else { y };
        }
    }
    match bytes {
        1 => select::<u8>,
        2 => select::<u16>,
        4 => select::<u32>,
        _ => select::<u64>,
    }
}

/// The loop of `ptr_add` for offsets of type `offset` and elements of `bytes` bytes.
pub(super) fn ptr_add_kernel(offset: DType, bytes: usize) -> Option<Kernel> {
    fn ptr_add<T: CastTo<i64> + Element, const SHIFT: u32>(out: &mut [u8], [p, offset, _]: [&[u8]; 3]) {
        let (p, offset): (&[u64], &[T]) = (cast_slice(p), cast_slice(offset));
        for ((o, &p), &x) in cast_mut::<u64>(out).iter_mut().zip(p).zip(offset) {
            // The cast extends by the sign of a signed offset and with zeros an unsigned one.
            *o = p.wrapping_add((x.cast_to() << SHIFT) as u64);
        }
    }
    fn of_width<T: CastTo<i64> + Element>(bytes: usize) -> Kernel {
        match bytes {
            1 => ptr_add::<T, 0>,
            2 => ptr_add::<T, 1>,
            4 => ptr_add::<T, 2>,
            _ => ptr_add::<T, 3>,
        }
    }
    offset.is_int().then(|| dispatch!(offset, T => of_width::<T>(bytes)))
}

pub(super) fn cast_slice<T: bytemuck::Pod>(bytes: &[u8]) -> &[T] {
    bytemuck::cast_slice(bytes)
}

pub(super) fn cast_mut<T: bytemuck::Pod>(bytes: &mut [u8]) -> &mut [T] {
    bytemuck::cast_slice_mut(bytes)
}

#[inline(always)]
fn map1<T: bytemuck::Pod, U: bytemuck::Pod>(out: &mut [u8], x: &[u8], f: impl Fn(T) -> U) {
    for (o, &x) in cast_mut(out).iter_mut().zip(cast_slice(x)) {
        *o = f(x);
    }
}

#[inline(always)]
fn map2<T: bytemuck::Pod, U: bytemuck::Pod>(out: &mut [u8], x: &[u8], y: &[u8], f: impl Fn(T, T) -> U) {
    for ((o, &x), &y) in cast_mut(out).iter_mut().zip(cast_slice(x)).zip(cast_slice(y)) {
        *o = f(x, y);
    }
}

/// Applies `$pick` (a macro) to the variant of `$enum` that `$op` is, so that the op is a constant in the loop.
macro_rules! constant_op {
    ($enum:ident, $op:expr, $pick:ident: $($variant:ident)*) => {
        match $op { $($enum::$variant => $pick!($enum::$variant)),* }
    };
}

macro_rules! constant_unary {
    ($op:expr, $pick:ident) => {
        constant_op!(UnaryOp, $op, $pick: Neg Not Abs Exp Exp2 Exp2Approx Log Log2 Sin Cos Tanh Erf Sqrt Rsqrt Floor Ceil Trunc Round)
    };
}

macro_rules! constant_binary {
    ($op:expr, $pick:ident) => {
        constant_op!(BinaryOp, $op, $pick:
            Add Sub Mul Div Rem FloorDiv FloorMod MulHi And Or Xor Shl Shr Min Max FMin FMax)
    };
}

fn unary<T: Element>(op: UnaryOp) -> Option<Kernel> {
    T::unary(op, T::zeroed())?;
    macro_rules! pick {
        ($op:expr) => {
            |out, [x, ..]| map1::<T, T>(out, x, |x| T::unary($op, x).unwrap_or(x))
        };
    }
    Some(constant_unary!(op, pick))
}

fn binary<T: Element>(op: BinaryOp) -> Option<Kernel> {
    T::binary(op, T::zeroed(), T::zeroed())?;
    macro_rules! pick {
        ($op:expr) => {
            |out, [x, y, _]| map2::<T, T>(out, x, y, |x, y| T::binary($op, x, y).unwrap_or(x))
        };
    }
    Some(constant_binary!(op, pick))
}

fn compare_kernel<T: Element>(op: Cmp) -> Kernel {
    macro_rules! pick {
        ($op:expr) => {
            |out, [x, y, _]| map2::<T, Bool>(out, x, y, |x, y| Bool::from(compare($op, x, y)))
        };
    }
    constant_op!(Cmp, op, pick: Eq Ne Lt Le Gt Ge)
}

fn fma<T: Element>(out: &mut [u8], [x, y, z]: [&[u8]; 3]) {
    let (x, y, z): (&[T], &[T], &[T]) = (cast_slice(x), cast_slice(y), cast_slice(z));
    for (((o, &x), &y), &z) in cast_mut::<T>(out).iter_mut().zip(x).zip(y).zip(z) {
        *o = T::fma(x, y, z).unwrap_or(z);
    }
}

fn cast_kernel<S: Element + CastTo<T>, T: Element>(out: &mut [u8], [x, ..]: [&[u8]; 3]) {
    map1::<S, T>(out, x, S::cast_to);
}

// ---- 16-bit floats: the loops of f32 between two conversions of whole chunks, which the hardware does fast ------------

/// A 16-bit float.
pub(super) trait Half: Element {
    /// Converts a slice; both have one length.
    fn widen(from: &[Self], to: &mut [f32]);
    /// Converts a slice, rounding to nearest even; both have one length.
    fn narrow(from: &[f32], to: &mut [Self]);
}

macro_rules! half {
    ($($t:ident)*) => {$(
        impl Half for $t {
            fn widen(from: &[Self], to: &mut [f32]) {
                from.convert_to_f32_slice(to);
            }
            fn narrow(from: &[f32], to: &mut [Self]) {
                to.convert_from_f32_slice(from);
            }
        }
    )*};
}
half!(f16 bf16);

#[inline(always)]
fn half_map<H: Half, const N: usize>(out: &mut [u8], args: [&[u8]; N], f: impl Fn([f32; N]) -> f32) {
    let out: &mut [H] = cast_mut(out);
    let args: [&[H]; N] = args.map(cast_slice);
    let (mut wide, mut result) = ([[0f32; CHUNK]; N], [0f32; CHUNK]);
    for (c, out) in out.chunks_mut(CHUNK).enumerate() {
        let n = out.len();
        for (wide, arg) in wide.iter_mut().zip(args) {
            H::widen(&arg[c * CHUNK..][..n], &mut wide[..n]);
        }
        for i in 0..n {
            result[i] = f(std::array::from_fn(|j| wide[j][i]));
        }
        H::narrow(&result[..n], out);
    }
}

fn half_unary<H: Half>(op: UnaryOp) -> Option<Kernel> {
    f32::unary(op, 0.0)?;
    macro_rules! pick {
        ($op:expr) => {
            |out, [x, ..]| half_map::<H, 1>(out, [x], |[x]| f32::unary($op, x).unwrap_or(x))
        };
    }
    Some(constant_unary!(op, pick))
}

fn half_binary<H: Half>(op: BinaryOp) -> Option<Kernel> {
    f32::binary(op, 0.0, 0.0)?;
    macro_rules! pick {
        ($op:expr) => {
            |out, [x, y, _]| half_map::<H, 2>(out, [x, y], |[x, y]| f32::binary($op, x, y).unwrap_or(x))
        };
    }
    Some(constant_binary!(op, pick))
}

fn half_fma<H: Half>(out: &mut [u8], args: [&[u8]; 3]) {
    half_map::<H, 3>(out, args, |[x, y, z]| x.mul_add(y, z));
}
