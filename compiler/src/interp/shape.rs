//! Moving elements within tiles: broadcasting and permuting.

use super::elementwise::{cast_mut, cast_slice};
use crate::tile::Shape;

/// Row-major strides in elements.
pub(super) fn strides(dims: &[usize]) -> [usize; Shape::MAX_RANK] {
    let mut result = [0; Shape::MAX_RANK];
    let mut stride = 1;
    for (r, &d) in result.iter_mut().zip(dims).rev() {
        *r = stride;
        stride *= d;
    }
    result
}

/// For each dimension of `to`: how far apart its elements lie in a tile of shape `from`, 0 where they are repeated.
pub(super) fn broadcast_strides(from: &[usize], to: &[usize]) -> [usize; Shape::MAX_RANK] {
    let mut result = [0; Shape::MAX_RANK];
    if !from.is_empty() {
        let own = strides(from);
        for i in 0..to.len() {
            result[i] = if from[i] == 1 { 0 } else { own[i] };
        }
    }
    result
}

/// Fills `out`, of shape `dims`, with the elements of `x` at these strides.
pub(super) fn rearrange(out: &mut [u8], x: &[u8], dims: &[usize], strides: &[usize; Shape::MAX_RANK], bytes: usize) {
    match bytes {
        1 => typed::<u8>(out, x, dims, strides),
        2 => typed::<u16>(cast_mut(out), cast_slice(x), dims, strides),
        4 => typed::<u32>(cast_mut(out), cast_slice(x), dims, strides),
        _ => typed::<u64>(cast_mut(out), cast_slice(x), dims, strides),
    }
}

fn typed<T: Copy>(out: &mut [T], x: &[T], dims: &[usize], strides: &[usize; Shape::MAX_RANK]) {
    let Some((&inner, outer)) = dims.split_last() else {
        out[0] = x[0];
        return;
    };
    let step = strides[outer.len()];
    for (row, out) in out.chunks_exact_mut(inner).enumerate() {
        let (mut rest, mut start) = (row, 0);
        for (&d, &s) in outer.iter().zip(strides).rev() {
            start += rest % d * s;
            rest /= d;
        }
        match step {
            0 => out.fill(x[start]),
            1 => out.copy_from_slice(&x[start..start + inner]),
            _ => {
                for (o, &x) in out.iter_mut().zip(x[start..].iter().step_by(step)) {
                    *o = x;
                }
            }
        }
    }
}
