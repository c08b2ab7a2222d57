//! Values now, gradients later: a compiled function in two programs, with what the second needs of the first kept in between.

use super::Compiled;
use super::entries::Held;
use crate::autodiff;
use crate::compile::backend::Program;
use crate::error::{Error, Result};
use crate::graph::TensorType;
use crate::passes::{self, partition::partition};
use crate::tensor::{Structure, Tensor, trace};
use std::sync::{Arc, PoisonError};

/// The two programs of a function for one kind of arguments.
pub(super) struct Halves<O> {
    guard: String,
    forward: Box<dyn Program>,
    backward: Box<dyn Program>,
    /// Which of the arguments and captured tensors the second takes.
    arguments: Vec<usize>,
    captured: Vec<Held>,
    template: O,
}

/// Takes gradients of a function's values to gradients of its arguments, as often as wanted. Keeps what is needed for that.
pub struct Pullback<I, O> {
    halves: Arc<Halves<O>>,
    saved: Vec<Tensor>,
    types: Vec<TensorType>,
    x: I,
}

impl<F, I, O> Compiled<F, I, O>
where
    F: Fn(&I) -> O,
    I: Structure,
    O: Structure,
{
    /// The value at `x`, and the function that takes a gradient of the value to that of `x`. Both are compiled ahead of time, from one
    /// graph of values and gradients that is cut where the fewest bytes have to be kept: see [`mod@crate::passes::partition`].
    ///
    /// # Errors
    /// The mistakes of the function's expressions; what the device says; [`Error::ReadBack`] if it reads values; [`Error::Options`]
    /// if it runs eagerly: [`crate::vjp`] does that.
    pub fn vjp(&self, x: &I) -> Result<(O, Pullback<I, O>)> {
        if self.backend.as_ref().is_none_or(|b| b.name() == "eager") || trace::is_capturing() {
            let what = "a function that runs eagerly, or inside another that is captured, has no programs of its own";
            return Err(Error::Options(format!("{what}; use `vjp` of the function itself")));
        }
        let mut args = x.tensors();
        for t in &args {
            t.check()?;
        }
        let halves = self.halves(x, &args)?;
        let gone = || Error::CapturesChanged { loc: self.loc };
        args.extend(halves.captured.iter().map(|h| h.get().ok_or_else(gone)).collect::<Result<Vec<_>>>()?);
        let mut results = halves.forward.run(&args)?;
        let values = halves.template.tensors();
        let kept = results.split_off(values.len());
        let saved = halves.arguments.iter().map(|&i| args[i].clone()).chain(kept).collect();
        let types = values.iter().map(|t| t.ty().clone()).collect();
        let value = halves.template.rebuild(&mut results.into_iter());
        Ok((value, Pullback { halves, saved, types, x: x.clone() }))
    }

    fn halves(&self, x: &I, args: &[Tensor]) -> Result<Arc<Halves<O>>> {
        let mut guard = String::new();
        x.describe(&mut guard);
        // Held during capture, so that two threads do not capture the same thing.
        let mut all = self.halves.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = all.iter().position(|h| h.guard == guard) {
            // What was used last comes last. If a captured tensor is gone, the function has another one.
            let known = all.remove(at);
            if known.captured.iter().all(|h| h.get().is_some()) {
                all.push(known.clone());
                return Ok(known);
            }
        }
        let mut types: Vec<_> = args.iter().map(|t| t.ty().clone()).collect();
        let first = types.len();
        // Once for the types of the values, once with gradients of these types coming in.
        let (template, _) = trace::capture(&types, args, self.loc, |tensors| {
            let y = (self.f)(&x.rebuild(&mut tensors.iter().cloned()));
            let outputs = y.tensors();
            (y, outputs)
        })?;
        let values = template.tensors();
        types.extend(values.iter().map(|t| t.ty().clone()));
        let (failed, captured) = trace::capture(&types, args, self.loc, |tensors| {
            let (given, seeds) = tensors.split_at(first);
            match autodiff::vjp(&self.f, &x.rebuild(&mut given.iter().cloned())) {
                Ok((y, pull)) => {
                    let gradients = pull(&y.rebuild(&mut seeds.iter().cloned()));
                    (None, [y.tensors(), gradients.tensors()].concat())
                }
                Err(e) => (Some(e), vec![]),
            }
        })?;
        if let Some(e) = failed {
            return Err(e);
        }
        if let Some(loc) = captured.read_back {
            return Err(Error::ReadBack { loc });
        }
        let backend = self.backend.as_ref().ok_or_else(|| Error::Internal("there is no backend".into()))?;
        let cut = partition(&passes::optimise(&captured.graph)?, values.len(), first..first + values.len())?;
        let compiled = |graph| backend.compile(&passes::optimise(graph)?, &self.options);
        let halves = Arc::new(Halves {
            guard,
            forward: compiled(&cut.forward)?,
            backward: compiled(&cut.backward)?,
            arguments: cut.arguments,
            captured: captured.captured.into_iter().map(|t| Held::new(t, 1)).collect(),
            template,
        });
        if all.len() >= self.options.most_graphs() {
            all.remove(0);
        }
        all.push(halves.clone());
        Ok(halves)
    }
}

impl<I: Structure, O: Structure> Pullback<I, O> {
    /// The gradient of the arguments, given that of the values.
    ///
    /// # Errors
    /// [`Error::Options`] if the gradient is not like the values; what the device says.
    pub fn call(&self, gradient: &O) -> Result<I> {
        let seeds = gradient.tensors();
        for t in &seeds {
            t.check()?;
        }
        if !seeds.iter().map(Tensor::ty).eq(&self.types) {
            let given: Vec<_> = seeds.iter().map(|t| t.ty().to_string()).collect();
            let wanted: Vec<_> = self.types.iter().map(ToString::to_string).collect();
            return Err(Error::Options(format!(
                "the gradient is ({}) and the values are ({}); they must agree",
                given.join(", "),
                wanted.join(", ")
            )));
        }
        let args: Vec<Tensor> = self.saved.iter().cloned().chain(seeds).collect();
        let gradients = self.halves.backward.run(&args)?;
        Ok(self.x.rebuild(&mut gradients.into_iter()))
    }

    /// What is kept: arguments of the function first, then what was computed.
    pub fn saved(&self) -> &[Tensor] {
        &self.saved
    }

    /// How many of the tensors kept are arguments of the function.
    pub fn saved_arguments(&self) -> usize {
        self.halves.arguments.len()
    }
}

impl<I, O> std::fmt::Debug for Pullback<I, O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kept: Vec<_> = self.saved.iter().map(|t| t.ty().to_string()).collect();
        write!(f, "Pullback(keeps {})", kept.join(", "))
    }
}
