//! Which kernels are measured at which sizes. The peers' script reads this list, so that both measure the same.

use serde_json::{Value, json};
use tilewright_runtime::DType;

/// A kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    /// `out = x + y`; extents: the length.
    VectorAdd,
    /// Softmax of rows; extents: rows, columns.
    Softmax,
    /// Layer norm of rows; extents: rows, columns.
    LayerNorm,
    /// Matrix product; extents: m, n, k.
    Matmul,
    /// Attention of as many keys as queries; extents: batch, heads, rows, width, and 1 if it is causal, else 0.
    Attention,
}

impl Op {
    /// The name of the kernel, which is also the group of its measurements.
    pub fn name(self) -> &'static str {
        match self {
            Op::VectorAdd => "vector_add",
            Op::Softmax => "softmax",
            Op::LayerNorm => "layer_norm",
            Op::Matmul => "matmul",
            Op::Attention => "attention",
        }
    }
}

/// One kernel at one size.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Case {
    /// The kernel.
    pub op: Op,
    /// The type of inputs and outputs.
    pub dtype: DType,
    /// The extents, as [`Op`] says.
    pub dims: Vec<usize>,
}

impl Case {
    fn new(op: Op, dtype: DType, dims: &[usize]) -> Self {
        Self { op, dtype, dims: dims.to_vec() }
    }

    /// Such as `matmul f16 4096x4096x4096`: what results are compared by.
    pub fn name(&self) -> String {
        let dims: Vec<_> = self.dims.iter().map(usize::to_string).collect();
        format!("{} {} {}", self.op.name(), self.dtype, dims.join("x"))
    }

    /// The fewest bytes that must be moved: each input read once, each output written once.
    pub fn bytes(&self) -> u64 {
        let elements = match (self.op, self.dims.as_slice()) {
            (Op::VectorAdd, [n]) => 3 * n,
            (Op::Softmax, [r, c]) => 2 * r * c,
            (Op::LayerNorm, [r, c]) => 2 * r * c + 2 * c,
            (Op::Matmul, [m, n, k]) => m * k + k * n + m * n,
            (Op::Attention, [b, h, t, d, _]) => 4 * b * h * t * d,
            _ => unreachable!("every case is made with the extents of its kernel"),
        };
        (elements * self.dtype.bytes()) as u64
    }

    /// Multiplications and additions, of matrix products. A causal attention needs half of them.
    pub fn flops(&self) -> Option<f64> {
        match (self.op, self.dims.as_slice()) {
            (Op::Matmul, [m, n, k]) => Some(2.0 * (*m as f64) * (*n as f64) * (*k as f64)),
            (Op::Attention, [b, h, t, d, causal]) => {
                Some(4.0 * (b * h * t * d) as f64 * (*t as f64) / (1 + causal) as f64)
            }
            _ => None,
        }
    }

    /// For the peers' script.
    pub fn json(&self) -> Value {
        json!({
            "name": self.name(), "op": self.op.name(), "dtype": self.dtype.to_string(), "dims": self.dims,
            "bytes": self.bytes(), "flops": self.flops(),
        })
    }
}

/// Types, and extents of so many dimensions.
type Sizes<const N: usize> = &'static [(DType, [usize; N])];

/// The cases for a GPU, or small ones for software devices.
pub fn cases(gpu: bool) -> Vec<Case> {
    use DType::{BF16, F16, F32};
    let (adds, rows, products, attentions): (Sizes<1>, Sizes<2>, Sizes<3>, Sizes<5>) = if gpu {
        (
            &[(F32, [64 << 20]), (F32, [128 << 20]), (F16, [128 << 20]), (F16, [256 << 20])],
            &[
                (F32, [16384, 4096]),
                (F16, [16384, 4096]),
                (F16, [4096, 32768]),
                (BF16, [32768, 12288]),
                (F32, [8192, 781]),
                (F32, [65536, 1024]),
            ],
            &[
                (F16, [1024, 1024, 1024]),
                (F16, [2048, 2048, 2048]),
                (F16, [4096, 4096, 4096]),
                (F16, [8192, 8192, 8192]),
                (F16, [4096, 11008, 4096]),
                (F16, [1000, 1000, 1000]),
                (F16, [16, 4096, 4096]),
                (BF16, [4096, 4096, 4096]),
                (F32, [2048, 2048, 2048]),
            ],
            &[
                (F16, [4, 16, 4096, 64, 0]),
                (F16, [4, 16, 4096, 64, 1]),
                (F16, [4, 16, 4096, 128, 0]),
                (F16, [4, 16, 4096, 128, 1]),
                (F16, [2, 16, 16384, 128, 1]),
                (BF16, [8, 12, 1024, 64, 1]),
            ],
        )
    } else {
        (
            &[(F32, [1 << 20]), (F16, [1 << 20])],
            &[(F32, [64, 781]), (F16, [16, 4096]), (BF16, [8, 12288])],
            &[(F16, [128, 128, 128]), (F16, [100, 100, 100]), (BF16, [128, 128, 128]), (F32, [128, 128, 128])],
            &[(F16, [1, 2, 100, 64, 0]), (BF16, [1, 1, 128, 32, 1]), (F32, [1, 2, 64, 32, 1])],
        )
    };
    let add = adds.iter().map(|(dtype, dims)| Case::new(Op::VectorAdd, *dtype, dims));
    let softmax = rows.iter().map(|(dtype, dims)| Case::new(Op::Softmax, *dtype, dims));
    let norm = rows.iter().map(|(dtype, dims)| Case::new(Op::LayerNorm, *dtype, dims));
    let product = products.iter().map(|(dtype, dims)| Case::new(Op::Matmul, *dtype, dims));
    let attention = attentions.iter().map(|(dtype, dims)| Case::new(Op::Attention, *dtype, dims));
    add.chain(softmax).chain(norm).chain(product).chain(attention).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_bytes_are_counted() {
        for gpu in [false, true] {
            let mut names: Vec<_> = cases(gpu).iter().map(Case::name).collect();
            let count = names.len();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), count);
        }
        let case = Case::new(Op::Matmul, DType::F16, &[16, 32, 64]);
        assert_eq!(case.name(), "matmul f16 16x32x64");
        assert_eq!((case.bytes(), case.flops()), (2 * (16 * 64 + 64 * 32 + 16 * 32), Some(65536.0)));
        let case = Case::new(Op::Attention, DType::F16, &[2, 3, 8, 16, 1]);
        assert_eq!((case.bytes(), case.flops()), (2 * 4 * 2 * 3 * 8 * 16, Some(2.0 * 2.0 * 3.0 * 8.0 * 8.0 * 16.0)));
        assert_eq!(Case::new(Op::VectorAdd, DType::F32, &[64 << 20]).bytes(), 3 * (256 << 20));
    }
}
