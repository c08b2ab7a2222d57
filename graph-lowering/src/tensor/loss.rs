//! Losses.

use super::{Tensor, fail};
use tilewright_compiler::DType;
use tilewright_compiler::error::Loc;

/// What becomes of the losses of single samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reduction {
    /// Their mean over the samples that count.
    Mean,
    /// Their sum.
    Sum,
    /// Nothing.
    None,
}

impl Tensor {
    /// `-log(softmax(x))` at the class each sample has. This tensor is `[samples.., classes]`, `target` holds classes; a
    /// target equal to `ignore` does not count. The mean of no samples is NaN.
    #[track_caller]
    pub fn cross_entropy(&self, target: &Tensor, ignore: Option<i64>, reduction: Reduction) -> Tensor {
        let r = self.rank();
        if r == 0 || target.ty().dims != self.ty().dims[..r - 1] || !target.dtype().is_int() {
            if let Err(e) = self.check().and(target.check()) {
                return super::failed(std::sync::Arc::new(e), self.ty().clone());
            }
            return fail(
                Loc::caller(),
                format!(
                    "cross_entropy of {} with targets {}: expected one integer for each row",
                    self.ty(),
                    target.ty()
                ),
            );
        }
        let logp = self.cast(if self.dtype() == DType::F64 { DType::F64 } else { DType::F32 }).log_softmax(r - 1);
        // Picking by comparison, not by address, keeps the row in one kernel.
        let number = Tensor::iota(target.dtype(), &self.dims(), r - 1);
        let hit = target.unsqueeze(r - 1).eq_(&number);
        let picked = hit.where_(&logp, 0.0).sum(&[r - 1]).neg();
        let all: Vec<usize> = (0..r - 1).collect();
        let counted = ignore.map(|i| target.ne_(i));
        let losses = counted.as_ref().map_or(picked.clone(), |c| c.where_(&picked, 0.0));
        match reduction {
            Reduction::None => losses,
            Reduction::Sum => losses.sum(&all),
            Reduction::Mean => match counted {
                Some(c) => losses.sum(&all) / c.cast(losses.dtype()).sum(&all),
                None => losses.mean(&all),
            },
        }
    }

    /// The mean of the squared differences.
    #[track_caller]
    pub fn mse_loss(&self, target: &Tensor) -> Tensor {
        let d = self - target;
        let all: Vec<usize> = (0..d.rank()).collect();
        (&d * &d).mean(&all)
    }
}
