//! Random numbers: a function of a key and of each element's place, so that they are the same on every device and again when
//! computed anew. The generator is Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).

use super::{Tensor, fail};
use crate::graph::{TensorType, verify::check_size};
use tilewright_compiler::DType;
use tilewright_compiler::error::Loc;

const M: [i64; 2] = [0xD251_1F53, 0xCD9E_8D57];
const W: [i64; 2] = [0x9E37_79B9, 0xBB67_AE85];

/// Random bits, `u32[dims]`. `key` is one `u32`; `stream` tells apart draws of one key.
#[track_caller]
pub fn bits(key: &Tensor, stream: u32, dims: &[usize]) -> Tensor {
    let ty = TensorType::new(DType::U32, dims);
    if let Err(message) = check_size(&ty) {
        return fail(Loc::caller(), message);
    }
    let n = ty.elements();
    let counter = Tensor::arange(DType::U32, n);
    let zero = counter.zeros_like();
    let key = key.cast(DType::U32).broadcast_to(&[n]);
    let mut c = [counter, zero.clone(), zero.clone(), zero.clone()];
    let mut k = [key, Tensor::full_int(DType::U32, &[n], i64::from(stream))];
    for _ in 0..10 {
        let m = |i: usize| Tensor::full_int(DType::U32, &[], M[i]);
        let (hi0, lo0) = (c[0].mul_hi(m(0)), c[0].mul_(m(0)));
        let (hi1, lo1) = (c[2].mul_hi(m(1)), c[2].mul_(m(1)));
        c = [hi1.xor(&c[1]).xor(&k[0]), lo1, hi0.xor(&c[3]).xor(&k[1]), lo0];
        k = [&k[0] + W[0], &k[1] + W[1]];
    }
    c[0].reshape(dims)
}

/// Uniform in `0 <= x < 1`, `f32[dims]`, in steps of 2^-24.
#[track_caller]
pub fn uniform(key: &Tensor, stream: u32, dims: &[usize]) -> Tensor {
    bits(key, stream, dims).shr(8i64).cast(DType::F32) * (1.0 / f64::from(1 << 24))
}

impl Tensor {
    /// Each element is 0 with probability `p`, else divided by `1 - p`.
    #[track_caller]
    pub fn dropout(&self, p: f64, key: &Tensor, stream: u32) -> Tensor {
        if p >= 1.0 {
            return self.as_float().zeros_like();
        }
        uniform(key, stream, &self.dims()).ge(p).where_(&(self / (1.0 - p)), 0.0)
    }
}
