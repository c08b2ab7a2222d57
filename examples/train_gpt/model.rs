//! A decoder in the shape of GPT-2: learned positions, blocks that normalise first, causal attention, gelu by tanh.

use tilewright::graph::optim::AdamW;
use tilewright::graph::{DType, Reduction, Structure, Tensor, structure, value_and_grad};

/// How large a decoder is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Different tokens.
    pub vocabulary: usize,
    /// Numbers that stand for a token.
    pub width: usize,
    /// Parts of the width that attend by themselves.
    pub heads: usize,
    /// Blocks.
    pub layers: usize,
    /// Tokens at most.
    pub context: usize,
    /// The type of weights and of everything between.
    pub dtype: DType,
    /// Does the table of tokens also read them out? Else that has weights of its own.
    pub tied: bool,
}

/// The decoder that the example trains: small enough for a processor.
pub fn small(vocabulary: usize) -> Config {
    Config { vocabulary, width: 128, heads: 4, layers: 4, context: 64, dtype: DType::F32, tied: true }
}

/// Pieces of text that the example takes for a step.
pub const BATCH: usize = 8;

/// Weight `[out, in]` and bias.
type Linear = (Tensor, Tensor);
/// Scale and shift.
type Norm = (Tensor, Tensor);

/// The weights of one block.
#[derive(Clone)]
pub struct Block {
    norm1: Norm,
    qkv: Linear,
    proj: Linear,
    norm2: Norm,
    up: Linear,
    down: Linear,
}
structure!(Block { norm1, qkv, proj, norm2, up, down });

/// The weights of a decoder.
#[derive(Clone)]
pub struct Gpt {
    tokens: Tensor,
    places: Tensor,
    blocks: Vec<Block>,
    norm: Norm,
    head: Option<Tensor>,
    heads: usize,
}
structure!(Gpt { tokens, places, blocks, norm, head, heads });

/// The bits of number `i` of a sequence: SplitMix64, by Steele, Lea and Flood (<https://doi.org/10.1145/2714064.2660195>), at any place
/// of its sequence.
pub fn random_bits(sequence: u64, i: u64) -> u64 {
    let z = ((sequence << 32) + i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Number `i` of a sequence of random numbers, evenly from -1 to 1.
fn uniform(sequence: u64, i: u64) -> f32 {
    (random_bits(sequence, i) >> 40) as f32 / (1u64 << 23) as f32 - 1.0
}

/// The extent of the random weights.
const SCALE: f64 = 0.035;

/// Makes the first weights, one tensor after the other.
struct Start {
    dtype: DType,
    /// How many there are so far: the number of the next tensor's random sequence.
    tensors: u64,
}

impl Start {
    fn random(&mut self, scale: f64, dims: &[usize]) -> Tensor {
        let (sequence, scale) = (self.tensors, scale as f32);
        self.tensors += 1;
        let n: usize = dims.iter().product();
        let values: Vec<f32> = (0..n as u64).map(|i| uniform(sequence, i) * scale).collect();
        Tensor::new(&values, dims).cast(self.dtype)
    }

    fn constant(&mut self, value: f64, n: usize) -> Tensor {
        self.tensors += 1;
        Tensor::full(self.dtype, &[n], value)
    }

    fn norm(&mut self, width: usize) -> Norm {
        (self.constant(1.0, width), self.constant(0.0, width))
    }

    fn linear(&mut self, scale: f64, out: usize, inner: usize) -> Linear {
        (self.random(scale, &[out, inner]), self.constant(0.0, out))
    }
}

impl Gpt {
    /// A decoder with random weights, always the same: tensor `i` in the order of [`Structure::tensors`] has the random sequence `i`.
    /// Biases are 0 and scales of norms 1.
    pub fn new(c: &Config) -> Self {
        let mut start = Start { dtype: c.dtype, tensors: 0 };
        // What is added to the residual stream is smaller, the more often it is.
        let (w, small) = (c.width, SCALE / (2.0 * c.layers as f64).sqrt());
        Self {
            tokens: start.random(SCALE, &[c.vocabulary, w]),
            places: start.random(SCALE, &[c.context, w]),
            blocks: (0..c.layers)
                .map(|_| Block {
                    norm1: start.norm(w),
                    qkv: start.linear(SCALE, 3 * w, w),
                    proj: start.linear(small, w, w),
                    norm2: start.norm(w),
                    up: start.linear(SCALE, 4 * w, w),
                    down: start.linear(small, w, 4 * w),
                })
                .collect(),
            norm: start.norm(w),
            head: (!c.tied).then(|| start.random(SCALE, &[c.vocabulary, w])),
            heads: c.heads,
        }
    }

    /// For each of the tokens `[batch, length]`, the logits of the token after it.
    pub fn logits(&self, index: &Tensor) -> Tensor {
        let (batch, length) = (index.dims()[0], index.dims()[1]);
        let width = self.tokens.dims()[1];
        let mut x = self.tokens.embedding(index) + self.places.narrow(0, 0, length);
        for block in &self.blocks {
            let qkv = linear(&norm(&x, &block.norm1), &block.qkv);
            let part = |i: usize| {
                let heads = [batch, length, self.heads, width / self.heads];
                qkv.narrow(2, i * width, width).reshape(&heads).permute(&[0, 2, 1, 3])
            };
            let mixed = part(0).attention(&part(1), &part(2), None, true, None);
            let mixed = mixed.permute(&[0, 2, 1, 3]).reshape(&[batch, length, width]);
            x = x + linear(&mixed, &block.proj);
            x = &x + linear(&linear(&norm(&x, &block.norm2), &block.up).gelu_tanh(), &block.down);
        }
        norm(&x, &self.norm).linear(self.head.as_ref().unwrap_or(&self.tokens), None)
    }

    /// The mean surprise, in nats, at the tokens that follow.
    pub fn loss(&self, index: &Tensor, target: &Tensor) -> Tensor {
        self.logits(index).cross_entropy(target, None, Reduction::Mean)
    }
}

fn norm(x: &Tensor, (scale, shift): &Norm) -> Tensor {
    x.layer_norm(Some(scale), Some(shift), 1e-5)
}

fn linear(x: &Tensor, (weight, bias): &Linear) -> Tensor {
    x.linear(weight, Some(bias))
}

/// Tokens, and those that follow each of them: both `[batch, length]`.
pub type Batch = (Tensor, Tensor);

/// The loss and its gradient.
///
/// # Panics
/// If the tensors do not fit together.
pub fn gradient((model, (index, target)): &(Gpt, Batch)) -> (Tensor, Gpt) {
    value_and_grad(|model: &Gpt| model.loss(index, target), model).expect("tokens and targets are [batch, length]")
}

/// What training changes: the weights, and the optimiser's means and mean squares of their gradients.
#[derive(Clone)]
pub struct State {
    pub model: Gpt,
    means: Vec<Tensor>,
    squares: Vec<Tensor>,
}
structure!(State { model, means, squares });

impl State {
    /// Before the first step.
    pub fn new(model: Gpt) -> Self {
        let zeros: Vec<Tensor> = model.tensors().iter().map(Tensor::zeros_like).collect();
        Self { model, means: zeros.clone(), squares: zeros }
    }
}

/// The optimiser of the example.
pub const OPTIMISER: AdamW = AdamW { lr: 6e-4, beta1: 0.9, beta2: 0.95, eps: 1e-8, weight_decay: 0.01 };

/// One step of training, the first of which has the number 1: the loss before it, and the state after it.
///
/// # Panics
/// If the tensors do not fit together.
pub fn step((state, number, batch): &(State, Tensor, Batch)) -> (Tensor, State) {
    let (loss, gradient) = gradient(&(state.model.clone(), batch.clone()));
    let mut next = (vec![], vec![], vec![]);
    let moments = state.means.iter().zip(&state.squares);
    for ((p, g), (m, v)) in state.model.tensors().iter().zip(gradient.tensors()).zip(moments) {
        let (p, m, v) = OPTIMISER.step(p, &g, m, v, number);
        next.0.push(p);
        next.1.push(m);
        next.2.push(v);
    }
    (loss, State { model: state.model.rebuild(&mut next.0.into_iter()), means: next.1, squares: next.2 })
}
