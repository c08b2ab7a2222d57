//! Losses.

use super::{Repr, Tensor, fail};
use tilewright_compiler::DType;
use tilewright_compiler::error::Loc;
use tilewright_compiler::tile::ReduceOp;

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

/// The target that does not count unless another one is given: PyTorch's.
const IGNORED: i64 = -100;

/// What is wrong with targets whose values are known: the first that is neither a class nor ignored.
fn no_class(target: &Tensor, classes: usize, ignore: i64) -> Option<String> {
    let Repr::Host(values) = &target.0 else { return None };
    // As `u64` or `i64`, whichever the type is: neither wraps.
    let unsigned = target.dtype() == DType::U64;
    let wrong = |i: usize| {
        let bits = values.i64(i).unwrap_or(-1);
        let class = if unsigned { i128::from(bits as u64) } else { i128::from(bits) };
        (class != i128::from(ignore) && !(0..classes as i128).contains(&class)).then_some(class)
    };
    let (at, class) = (0..target.elements()).find_map(|i| wrong(i).map(|class| (i, class)))?;
    Some(format!(
        "cross_entropy: target {class}, of sample {at}, is none of the {classes} classes; a target of {ignore} would be \
         ignored"
    ))
}

impl Tensor {
    /// `-log(softmax(x))` at the class each sample has. This tensor is `[samples.., classes]`, `target` holds classes,
    /// integers of any type; a target equal to `ignore`, or to -100 if none is given, does not count. The mean of no
    /// samples is NaN.
    ///
    /// Another target that is no class is a mistake where the targets are on the host; on a device, where they are not
    /// looked at before, the loss of its sample is NaN.
    #[track_caller]
    pub fn cross_entropy(&self, target: &Tensor, ignore: Option<i64>, reduction: Reduction) -> Tensor {
        if let Some(failed) = super::first_failed(&[self, target]) {
            return failed;
        }
        let r = self.rank();
        if r == 0 || target.ty().dims != self.ty().dims[..r - 1] || !target.dtype().is_int() {
            return fail(
                Loc::caller(),
                format!(
                    "cross_entropy of {} with targets {}: expected one integer for each row",
                    self.ty(),
                    target.ty()
                ),
            );
        }
        let (classes, ignore) = (self.dims()[r - 1], ignore.unwrap_or(IGNORED));
        if let Some(message) = no_class(target, classes, ignore) {
            return fail(Loc::caller(), message);
        }
        let target = target.as_index();
        let logp = self.accurate().log_softmax(r - 1);
        // Picking by comparison, not by address, keeps the row in one kernel.
        let number = Tensor::iota(target.dtype(), &self.dims(), r - 1);
        let hit = target.unsqueeze(r - 1).eq_(&number);
        let picked = hit.where_(&logp, 0.0).sum(&[r - 1]).neg();
        let counted = target.ne_(ignore);
        let losses = if (0..classes as i128).contains(&i128::from(ignore)) {
            counted.where_(&picked, 0.0)
        } else {
            // It hit nothing, so that neither its loss nor a gradient is there to be masked.
            picked
        };
        let wrong = target.lt(0).or(target.ge(classes)).and(&counted);
        let losses = &losses + wrong.where_(f64::NAN, losses.zeros_like());
        let all: Vec<usize> = (0..r - 1).collect();
        match reduction {
            Reduction::None => losses,
            Reduction::Sum => losses.sum(&all),
            Reduction::Mean => {
                losses.sum(&all) / counted.cast(DType::I32).reduce_strict(ReduceOp::Sum, &all).cast(losses.dtype())
            }
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
