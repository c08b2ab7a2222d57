//! Optimiser steps as functions of tensors, to be captured together with the gradient.

use crate::tensor::Tensor;

/// Stochastic gradient descent.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sgd {
    /// Step width.
    pub lr: f64,
    /// How much of the last step goes on.
    pub momentum: f64,
}

impl Sgd {
    /// The next parameters and velocities.
    #[track_caller]
    pub fn step(&self, params: &[Tensor], grads: &[Tensor], velocity: &[Tensor]) -> (Vec<Tensor>, Vec<Tensor>) {
        let next: Vec<Tensor> = velocity.iter().zip(grads).map(|(v, g)| v * self.momentum + g).collect();
        let moved = params.iter().zip(&next).map(|(p, v)| p - v * self.lr).collect();
        (moved, next)
    }
}

/// Adam with decoupled weight decay (Loshchilov and Hutter, 2019).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AdamW {
    /// Step width.
    pub lr: f64,
    /// Decay of the mean of gradients.
    pub beta1: f64,
    /// Decay of the mean of their squares.
    pub beta2: f64,
    /// Keeps the divisor from 0.
    pub eps: f64,
    /// Decay of the parameters, relative to the step width.
    pub weight_decay: f64,
}

impl Default for AdamW {
    fn default() -> Self {
        Self { lr: 1e-3, beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: 0.01 }
    }
}

impl AdamW {
    /// The next parameter, mean and mean square of one tensor. `step` is one float: 1 for the first step.
    #[track_caller]
    pub fn step(&self, p: &Tensor, g: &Tensor, m: &Tensor, v: &Tensor, step: &Tensor) -> (Tensor, Tensor, Tensor) {
        let m = m * self.beta1 + g * (1.0 - self.beta1);
        let v = v * self.beta2 + g * g * (1.0 - self.beta2);
        // 1 - beta^step, by way of the logarithm, and without loss where beta is nearly 1.
        let decayed = |beta: f64| (step * beta.ln()).expm1().neg();
        let divisor = (&v / decayed(self.beta2)).sqrt() + self.eps;
        let moved = &m / decayed(self.beta1) / divisor * self.lr;
        let p = p * (1.0 - self.lr * self.weight_decay) - moved;
        (p, m, v)
    }
}
