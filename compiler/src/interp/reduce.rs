//! Reductions along one axis, in a fixed order that vectorises.
//!
//! The order, for every op, type and axis: of `n` elements along the axis, element `i` goes to partial result `i mod 16`
//! (`mod n` if there are fewer), in ascending order; then the upper half of the partial results is combined into
//! the lower half, partial `j` with partial `j + 8`, then `j + 4`, `j + 2`, `j + 1`. Of more than 1024 elements each span of
//! 1024 is reduced so; then neighbouring results are combined in pairs until one is left, so that the rounding errors of long
//! sums stay small. Which axis it is makes no difference.

use super::elementwise::{Half, cast_mut, cast_slice};
use super::scalar::{Element, dispatch};
use crate::dtype::DType;
use crate::tile::{BinaryOp, ReduceOp};
use half::{bf16, f16};

/// Partial results along the axis.
const LANES: usize = 16;

/// Elements reduced in one go.
const SPAN: usize = 1024;

/// A tile seen as `outer` blocks of `len` rows of `inner` elements; the rows of a block are combined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Geometry {
    pub outer: usize,
    pub len: usize,
    pub inner: usize,
}

impl Geometry {
    pub fn new(dims: &[usize], axis: usize) -> Self {
        Self { outer: dims[..axis].iter().product(), len: dims[axis], inner: dims[axis + 1..].iter().product() }
    }
}

/// Reduces `x` to `out`; the scratch memory is grown at need.
pub(super) type Kernel = fn(out: &mut [u8], x: &[u8], geometry: Geometry, scratch: &mut Scratch);

/// Memory for partial results and for widened elements.
pub(super) type Scratch = [Vec<u64>; 2];

/// The loop of a reduction; `None` if it is not defined for the type.
pub(super) fn kernel(op: ReduceOp, dtype: DType) -> Option<Kernel> {
    match dtype {
        DType::F16 => half_kernel::<f16>(op),
        DType::BF16 => half_kernel::<bf16>(op),
        _ => dispatch!(dtype, T => typed_kernel::<T>(op)),
    }
}

/// The loop of argmax (`max`) or argmin.
pub(super) fn arg_kernel(max: bool, dtype: DType) -> Kernel {
    dispatch!(dtype, T => if max { arg_reduce::<T, true> } else { arg_reduce::<T, false> })
}

/// What combines two elements.
const fn combine(op: ReduceOp) -> BinaryOp {
    match op {
        ReduceOp::Sum => BinaryOp::Add,
        ReduceOp::Prod => BinaryOp::Mul,
        ReduceOp::Min => BinaryOp::Min,
        ReduceOp::Max => BinaryOp::Max,
        ReduceOp::And => BinaryOp::And,
        ReduceOp::Or => BinaryOp::Or,
        ReduceOp::Xor => BinaryOp::Xor,
    }
}

macro_rules! constant_reduce {
    ($op:expr, $pick:ident: $($variant:ident)*) => {
        match $op { $(ReduceOp::$variant => $pick!(combine(ReduceOp::$variant))),* }
    };
}

fn typed_kernel<T: Element>(op: ReduceOp) -> Option<Kernel> {
    T::binary(combine(op), T::zeroed(), T::zeroed())?;
    macro_rules! pick {
        ($op:expr) => {
            |out, x, g, scratch| {
                reduce::<T>(cast_mut(out), cast_slice(x), g, &mut scratch[0], |x, y| T::binary($op, x, y).unwrap_or(x))
            }
        };
    }
    Some(constant_reduce!(op, pick: Sum Prod Min Max And Or Xor))
}

/// 16-bit floats: all in `f32`, rounded once at the end.
fn half_kernel<H: Half>(op: ReduceOp) -> Option<Kernel> {
    f32::binary(combine(op), 0.0, 0.0)?;
    macro_rules! pick {
        ($op:expr) => {
            |out, x, g, scratch| {
                let (out, x): (&mut [H], &[H]) = (cast_mut(out), cast_slice(x));
                // The tile and the result in f32.
                let words = (x.len() + out.len()).div_ceil(2);
                let [partial, wide] = scratch;
                if wide.len() < words {
                    wide.resize(words, 0);
                }
                let (wide_x, rest) = cast_mut::<f32>(bytemuck::cast_slice_mut(wide)).split_at_mut(x.len());
                let wide_out = &mut rest[..out.len()];
                H::widen(x, wide_x);
                reduce::<f32>(wide_out, wide_x, g, partial, |x, y| f32::binary($op, x, y).unwrap_or(x));
                H::narrow(wide_out, out);
            }
        };
    }
    Some(constant_reduce!(op, pick: Sum Prod Min Max And Or Xor))
}

#[inline(always)]
fn reduce<T: Element>(out: &mut [T], x: &[T], g: Geometry, scratch: &mut Vec<u64>, f: impl Fn(T, T) -> T + Copy) {
    // Extents are powers of two: spans are whole.
    let span = g.len.min(SPAN);
    let spans = g.len / span;
    if g.inner == 1 && spans == 1 {
        for (o, row) in out.iter_mut().zip(x.chunks_exact(g.len)) {
            *o = reduce_row(row, f);
        }
        return;
    }
    // The partial results of all columns side by side: `lanes` rows. Then the results of the spans, if there are several.
    let block = span.min(LANES) * g.inner;
    let words = ((block + spans * g.inner) * size_of::<T>()).div_ceil(8);
    if scratch.len() < words {
        scratch.resize(words, 0);
    }
    let (partial, rest) = cast_mut::<T>(bytemuck::cast_slice_mut(scratch)).split_at_mut(block);
    let results = &mut rest[..spans * g.inner];
    for (out, x) in out.chunks_exact_mut(g.inner).zip(x.chunks_exact(g.len * g.inner)) {
        for (result, x) in results.chunks_exact_mut(g.inner).zip(x.chunks_exact(span * g.inner)) {
            if let [result] = result {
                *result = reduce_row(x, f);
            } else {
                reduce_rows(result, x, partial, f);
            }
        }
        let mut n = spans;
        while n > 1 {
            n /= 2;
            for i in 0..n {
                for j in 0..g.inner {
                    let (a, b) = (results[2 * i * g.inner + j], results[(2 * i + 1) * g.inner + j]);
                    results[i * g.inner + j] = f(a, b);
                }
            }
        }
        out.copy_from_slice(&results[..g.inner]);
    }
}

/// One span of rows, as long as `out`; `partial` has room for as many rows as there are partial results.
#[inline(always)]
fn reduce_rows<T: Element>(out: &mut [T], x: &[T], partial: &mut [T], f: impl Fn(T, T) -> T) {
    let (first, rest) = x.split_at(partial.len());
    partial.copy_from_slice(first);
    for rows in rest.chunks_exact(partial.len()) {
        for (p, &x) in partial.iter_mut().zip(rows) {
            *p = f(*p, x);
        }
    }
    let mut n = partial.len() / out.len();
    while n > 1 {
        n /= 2;
        let (lower, upper) = partial.split_at_mut(n * out.len());
        for (l, &u) in lower.iter_mut().zip(&*upper) {
            *l = f(*l, u);
        }
    }
    out.copy_from_slice(&partial[..out.len()]);
}

#[inline(always)]
fn reduce_row<T: Element>(row: &[T], f: impl Fn(T, T) -> T) -> T {
    let mut partial = [row[0]; LANES];
    let mut n = row.len().min(LANES);
    let (first, rest) = row.split_at(n);
    partial[..n].copy_from_slice(first);
    for x in rest.chunks_exact(LANES) {
        for j in 0..LANES {
            partial[j] = f(partial[j], x[j]);
        }
    }
    while n > 1 {
        n /= 2;
        for j in 0..n {
            partial[j] = f(partial[j], partial[j + n]);
        }
    }
    partial[0]
}

/// The first of the greatest (least) elements; the first NaN before every number.
fn arg_reduce<T: Element, const MAX: bool>(out: &mut [u8], x: &[u8], g: Geometry, _: &mut Scratch) {
    let (out, x): (&mut [i32], &[T]) = (cast_mut(out), cast_slice(x));
    for (o, out) in out.chunks_exact_mut(g.inner).enumerate() {
        for (j, out) in out.iter_mut().enumerate() {
            let at = |i: usize| x[(o * g.len + i) * g.inner + j];
            let mut best = 0;
            for i in 1..g.len {
                let (candidate, leader) = (at(i), at(best));
                let better = if MAX { candidate > leader } else { candidate < leader };
                let is_nan = |v: T| v.partial_cmp(&v).is_none();
                let first_nan = is_nan(candidate) && !is_nan(leader);
                if better || first_nan {
                    best = i;
                }
            }
            *out = best as i32;
        }
    }
}
