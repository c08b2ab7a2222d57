//! The network: BERT in the size of MiniLM-L6, then the mean over the tokens, of length 1.

use tilewright::graph::{Result, Tensor, Weights};

const LAYERS: usize = 6;
const HEADS: usize = 12;
const WIDTH: usize = 384;
const INNER: usize = 1536;
const WORDS: usize = 30522;
const POSITIONS: usize = 512;
const EPS: f64 = 1e-12;

struct Linear {
    weight: Tensor,
    bias: Tensor,
}

impl Linear {
    fn load(weights: &Weights, name: &str, to: usize, from: usize) -> Result<Self> {
        let weight = weights.get(&format!("{name}.weight"), &[to, from])?;
        Ok(Self { weight, bias: weights.get(&format!("{name}.bias"), &[to])? })
    }

    fn apply(&self, x: &Tensor) -> Tensor {
        x.linear(&self.weight, Some(&self.bias))
    }
}

struct Norm {
    weight: Tensor,
    bias: Tensor,
}

impl Norm {
    fn load(weights: &Weights, name: &str) -> Result<Self> {
        let part = |part: &str| weights.get(&format!("{name}.LayerNorm.{part}"), &[WIDTH]);
        Ok(Self { weight: part("weight")?, bias: part("bias")? })
    }

    fn apply(&self, x: &Tensor) -> Tensor {
        x.layer_norm(Some(&self.weight), Some(&self.bias), EPS)
    }
}

struct Layer {
    query: Linear,
    key: Linear,
    value: Linear,
    mixed: Linear,
    mixed_norm: Norm,
    up: Linear,
    down: Linear,
    norm: Norm,
}

impl Layer {
    fn load(weights: &Weights, number: usize) -> Result<Self> {
        let name = |part: &str| format!("encoder.layer.{number}.{part}");
        let square = |part: &str| Linear::load(weights, &name(part), WIDTH, WIDTH);
        Ok(Self {
            query: square("attention.self.query")?,
            key: square("attention.self.key")?,
            value: square("attention.self.value")?,
            mixed: square("attention.output.dense")?,
            mixed_norm: Norm::load(weights, &name("attention.output"))?,
            up: Linear::load(weights, &name("intermediate.dense"), INNER, WIDTH)?,
            down: Linear::load(weights, &name("output.dense"), WIDTH, INNER)?,
            norm: Norm::load(weights, &name("output"))?,
        })
    }

    /// `x` is `[batch, tokens, WIDTH]`; `seen` is `[batch, 1, 1, tokens]`.
    fn apply(&self, x: &Tensor, seen: &Tensor) -> Tensor {
        let dims = x.dims();
        let heads = |projection: &Linear| {
            projection.apply(x).reshape(&[dims[0], dims[1], HEADS, WIDTH / HEADS]).permute(&[0, 2, 1, 3])
        };
        let (q, k, v) = (heads(&self.query), heads(&self.key), heads(&self.value));
        let mixed = q.attention(&k, &v, Some(seen), false, None).permute(&[0, 2, 1, 3]).reshape(&dims);
        let x = self.mixed_norm.apply(&(self.mixed.apply(&mixed) + x));
        self.norm.apply(&(self.down.apply(&self.up.apply(&x).gelu()) + &x))
    }
}

pub struct Bert {
    words: Tensor,
    positions: Tensor,
    types: Tensor,
    norm: Norm,
    layers: Vec<Layer>,
}

impl Bert {
    pub fn load(weights: &Weights) -> Result<Self> {
        let table = |name: &str, rows| weights.get(&format!("embeddings.{name}_embeddings.weight"), &[rows, WIDTH]);
        Ok(Self {
            words: table("word", WORDS)?,
            positions: table("position", POSITIONS)?,
            types: table("token_type", 2)?,
            norm: Norm::load(weights, "embeddings")?,
            layers: (0..LAYERS).map(|n| Layer::load(weights, n)).collect::<Result<_>>()?,
        })
    }

    /// Embeddings `[batch, WIDTH]` of length 1, of tokens `i32[batch, tokens]`; `mask` is 1 for tokens and 0 for padding, of
    /// the same extents, `f32`.
    pub fn forward(&self, tokens: &Tensor, mask: &Tensor) -> Tensor {
        let dims = tokens.dims();
        let positions = self.positions.narrow(0, 0, dims[1]);
        // All of it is text of the first type.
        let kind = self.types.narrow(0, 0, 1);
        let mut x = self.norm.apply(&(self.words.embedding(tokens) + positions + kind));
        let seen = mask.gt(0.0).reshape(&[dims[0], 1, 1, dims[1]]);
        for layer in &self.layers {
            x = layer.apply(&x, &seen);
        }
        let mean = (x * mask.unsqueeze(2)).sum(&[1]) / mask.sum(&[1]).maximum(1e-9).unsqueeze(1);
        let length = mean.norm(&[1]).maximum(1e-12).unsqueeze(1);
        mean / length
    }
}
