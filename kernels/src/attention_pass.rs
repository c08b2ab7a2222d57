//! Attention's kernels for callers that know element types and the number of results only at run time.

use crate::attention::{AttentionTiles, Outs, attend};
use crate::attention_backward::{Saved, grad_kv, grad_q};
use half::{bf16, f16};
use tilewright_compiler::dsl::{DotElement, Float, In, KernelParam, Loc, Out, Params, Specialization, build};
use tilewright_compiler::error::{Error, Result};
use tilewright_compiler::tile::Function;
use tilewright_runtime::{DType, Element};

/// What a kernel computes, and into how many tensors (which differ in their places in memory) it stores each result.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AttentionPass {
    /// The result, and of each row of scores the greatest, and the logarithm of the sum of exponentials relative to it. Parameters: q,
    /// k, v, the mask if there is one, results, greatest scores, logarithms. The greatest are those of the products of q and k before
    /// they are scaled if the scale keeps their order ([`crate::keeps_order`]) and the mask, if there is one, is of truth values.
    /// Where nothing is seen both are 0.
    Forward {
        /// How often the result is stored.
        outs: usize,
        /// How often the greatest scores are.
        most: usize,
        /// How often the logarithms are.
        log_sums: usize,
    },
    /// The gradient of the queries. Parameters: q, k, v, the gradient of the result, greatest scores, logarithms, the sums along rows of
    /// the result times its gradient, the mask if there is one, results. One program for each `bm` queries of a head.
    GradQuery {
        /// How often the result is stored.
        outs: usize,
    },
    /// The gradients of keys and values. Parameters as before, results for keys, results for values. One program for each `bn` keys of
    /// a head of keys.
    GradKeyValue {
        /// How often the keys' gradient is stored.
        keys: usize,
        /// How often the values' is.
        values: usize,
    },
}

/// One of attention's kernels.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AttentionKernel {
    /// What it computes.
    pub pass: AttentionPass,
    /// The type of q, k, v and results: `f16`, `bf16` or `f32`.
    pub dtype: DType,
    /// The type of the mask, if there is one: `bool`, `f16`, `bf16` or `f32`.
    pub mask: Option<DType>,
    /// What it is compiled for.
    pub tiles: AttentionTiles,
}

impl AttentionKernel {
    /// Its Tile IR; all parameters are views, named in order by `names`.
    ///
    /// # Errors
    /// [`Error::Kernel`] for tiles that cannot be; [`Error::Internal`] for types or names that are not as said.
    pub fn build(&self, name: &'static str, names: &[&'static str], spec: &Specialization) -> Result<Function> {
        match self.dtype {
            DType::F16 => self.typed::<f16>(name, names, spec),
            DType::BF16 => self.typed::<bf16>(name, names, spec),
            DType::F32 => self.typed::<f32>(name, names, spec),
            other => Err(Error::Internal(format!("attention of {other}"))),
        }
    }

    fn typed<T: Float + DotElement>(
        &self,
        name: &'static str,
        names: &[&'static str],
        spec: &Specialization,
    ) -> Result<Function> {
        match self.mask {
            None | Some(DType::F32) => self.masked::<T, f32>(name, names, spec),
            Some(DType::Bool) => self.masked::<T, bool>(name, names, spec),
            Some(DType::F16) => self.masked::<T, f16>(name, names, spec),
            Some(DType::BF16) => self.masked::<T, bf16>(name, names, spec),
            Some(other) => Err(Error::Internal(format!("attention with a mask of {other}"))),
        }
    }

    fn masked<T: Float + DotElement, M: Element>(
        &self,
        name: &'static str,
        names: &[&'static str],
        spec: &Specialization,
    ) -> Result<Function> {
        let (reads, stores) = match self.pass {
            AttentionPass::Forward { outs, most, log_sums } => (3, outs + most + log_sums),
            AttentionPass::GradQuery { outs } => (7, outs),
            AttentionPass::GradKeyValue { keys, values } => (7, keys + values),
        };
        if names.len() != reads + usize::from(self.mask.is_some()) + stores {
            return Err(Error::Internal(format!("{} names for {:?}", names.len(), self.pass)));
        }
        let mut left = names.iter().copied();
        let mut next = || left.next().unwrap_or_default();
        build(name, Loc::caller(), spec, false, |params| {
            let [q, k, v] = [next(), next(), next()].map(|n| In::<T, 4>::param(params, n));
            let mask = |params: &mut Params<'_>, n| self.mask.map(|_| In::<M, 4>::param(params, n));
            if let AttentionPass::Forward { outs, most, log_sums } = self.pass {
                let mask = if self.mask.is_some() { mask(params, next()) } else { None };
                let outs: Vec<_> = (0..outs).map(|_| Out::<T, 4>::param(params, next())).collect();
                let [most, log_sums] =
                    [most, log_sums].map(|n| (0..n).map(|_| Out::<f32, 3>::param(params, next())).collect::<Vec<_>>());
                let outs = Outs { outs: &outs, lses: &[], most: &most, log_sums: &log_sums };
                attend(q, k, v, mask, outs, self.tiles);
                return;
            }
            let g = In::<T, 4>::param(params, next());
            let [most, log_sum, delta] = [next(), next(), next()].map(|n| In::<f32, 3>::param(params, n));
            let mask = if self.mask.is_some() { mask(params, next()) } else { None };
            let saved = Saved { q, k, v, g, most, log_sum, delta, mask };
            let mut outs = |n: usize| (0..n).map(|_| Out::<T, 4>::param(params, next())).collect::<Vec<_>>();
            match self.pass {
                AttentionPass::GradKeyValue { keys, values } => {
                    let (dk, dv) = (outs(keys), outs(values));
                    grad_kv(saved, &dk, &dv, self.tiles);
                }
                AttentionPass::GradQuery { outs: n } | AttentionPass::Forward { outs: n, .. } => {
                    let dq = outs(n);
                    grad_q(saved, &dq, self.tiles);
                }
            }
        })
    }
}
