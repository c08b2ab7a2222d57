//! The matrix product of tiles.
//!
//! `f32` and `f64` use the register-blocked products of the crate `matrixmultiply`, `f16` and `bf16` are widened to
//! `f32` first (exactly). A request for tf32 is no order: the products here are those of full `f32`.

use super::elementwise::{Half, cast_mut, cast_slice};
use crate::dtype::DType;
use half::{bf16, f16};

/// Adds the product of `a` (`m` by `k`) and `b` (`k` by `n`) to `acc` (`m` by `n`), all row-major.
pub(super) type Kernel = fn(acc: &mut [u8], a: &[u8], b: &[u8], [usize; 3], scratch: &mut Vec<u64>);

/// The product for operands of `dtype`, if `dot` takes them; `[m, k, n]` are its extents.
pub(super) fn kernel(dtype: DType) -> Option<Kernel> {
    Some(match dtype {
        DType::F32 => |acc, a, b, dims, _| sgemm(cast_mut(acc), cast_slice(a), cast_slice(b), dims),
        DType::F64 => |acc, a, b, dims, _| dgemm(cast_mut(acc), cast_slice(a), cast_slice(b), dims),
        DType::F16 => half_dot::<f16>,
        DType::BF16 => half_dot::<bf16>,
        DType::I8 => int_dot::<i8>,
        DType::U8 => int_dot::<u8>,
        _ => return None,
    })
}

macro_rules! gemm {
    ($name:ident, $t:ident) => {
        fn $name(acc: &mut [$t], a: &[$t], b: &[$t], [m, k, n]: [usize; 3]) {
            assert!(
                acc.len() == m * n && a.len() == m * k && b.len() == k * n,
                "the slices are as long as the extents say"
            );
            // SAFETY: the pointers and row-major strides stay inside the three slices, whose lengths were just
            // checked; `acc` is borrowed mutably, so it overlaps neither operand.
            unsafe {
                matrixmultiply::$name(
                    m,
                    k,
                    n,
                    1.0,
                    a.as_ptr(),
                    k as isize,
                    1,
                    b.as_ptr(),
                    n as isize,
                    1,
                    1.0,
                    acc.as_mut_ptr(),
                    n as isize,
                    1,
                );
            }
        }
    };
}
gemm!(sgemm, f32);
gemm!(dgemm, f64);

fn half_dot<H: Half>(acc: &mut [u8], a: &[u8], b: &[u8], dims: [usize; 3], scratch: &mut Vec<u64>) {
    let (a, b): (&[H], &[H]) = (cast_slice(a), cast_slice(b));
    let words = (a.len() + b.len()).div_ceil(2);
    if scratch.len() < words {
        scratch.resize(words, 0);
    }
    let wide = &mut bytemuck::cast_slice_mut::<u64, f32>(scratch)[..a.len() + b.len()];
    let (wide_a, wide_b) = wide.split_at_mut(a.len());
    H::widen(a, wide_a);
    H::widen(b, wide_b);
    sgemm(cast_mut(acc), wide_a, wide_b, dims);
}

/// Exact modulo 2^32, as the sum of `i32` is.
fn int_dot<T: bytemuck::Pod + Into<i32>>(acc: &mut [u8], a: &[u8], b: &[u8], dims: [usize; 3], _: &mut Vec<u64>) {
    let (acc, a, b): (&mut [i32], &[T], &[T]) = (cast_mut(acc), cast_slice(a), cast_slice(b));
    let [_, k, n] = dims;
    for (acc, a) in acc.chunks_exact_mut(n).zip(a.chunks_exact(k)) {
        for (&x, b) in a.iter().zip(b.chunks_exact(n)) {
            let x: i32 = x.into();
            for (acc, &y) in acc.iter_mut().zip(b) {
                *acc = acc.wrapping_add(x.wrapping_mul(y.into()));
            }
        }
    }
}
