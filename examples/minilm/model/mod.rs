//! The sentence encoder all-MiniLM-L6-v2: sentences to vectors of 384 numbers whose products say how alike they are.
//!
//! | file | what |
//! |---|---|
//! | `files` | where the weights and the tokenizer come from |
//! | `bert` | the network, in tensors |
//! | this one | sentences to tokens, tokens to batches, batches through the compiled network |

mod bert;
pub mod files;

use bert::Bert;
use files::Files;
use std::error::Error;
use tilewright::graph::{Compiled, Options, Tensor, compile};
use tokenizers::{Tokenizer, TruncationParams};

/// Longer sentences are cut, as by the original.
const MOST_TOKENS: usize = 256;
/// Most sentences of one batch.
const MOST_SENTENCES: usize = 32;
/// Tokens of a batch's sentences: a power of two from this on, so that few extents need graphs of their own.
const LEAST_LENGTH: usize = 16;

type Network = Box<dyn Fn(&(Tensor, Tensor)) -> Tensor + Send + Sync>;

pub struct Encoder {
    tokenizer: Tokenizer,
    network: Compiled<Network, (Tensor, Tensor), Tensor>,
}

impl Encoder {
    pub fn new(files: &Files, options: Options) -> Result<Self, Box<dyn Error>> {
        let mut tokenizer = Tokenizer::from_bytes(&files.tokenizer).map_err(|e| format!("the tokenizer: {e}"))?;
        // The file asks for 128 tokens, always; the model takes up to 256, and batches are padded below.
        let truncation = TruncationParams { max_length: MOST_TOKENS, ..TruncationParams::default() };
        tokenizer.with_padding(None).with_truncation(Some(truncation)).map_err(|e| format!("the tokenizer: {e}"))?;
        let bert = Bert::load(&files.weights)?;
        let network: Network = Box::new(move |(tokens, mask)| bert.forward(tokens, mask));
        Ok(Self { tokenizer, network: compile(network, options.fullgraph(true))? })
    }

    /// The numbers of a sentence's tokens.
    pub fn tokens(&self, sentence: &str) -> Result<Vec<u32>, Box<dyn Error>> {
        let encoding =
            self.tokenizer.encode(sentence, true).map_err(|e| format!("cannot tokenise {sentence:?}: {e}"))?;
        Ok(encoding.get_ids().to_vec())
    }

    /// A vector of length 1 for each sentence.
    pub fn encode(&self, sentences: &[&str]) -> Result<Vec<Vec<f32>>, Box<dyn Error>> {
        let tokens = sentences.iter().map(|s| self.tokens(s)).collect::<Result<Vec<_>, _>>()?;
        let length = |i: &usize| tokens[*i].len().next_power_of_two().max(LEAST_LENGTH);
        // Sentences of like length share a batch, so that little of it is padding.
        let mut order: Vec<usize> = (0..sentences.len()).collect();
        order.sort_by_key(|i| tokens[*i].len());
        let mut embeddings = vec![Vec::new(); sentences.len()];
        for same in order.chunk_by(|a, b| length(a) == length(b)) {
            for batch in same.chunks(MOST_SENTENCES) {
                let dims = [batch.len(), length(&batch[0])];
                let (mut ids, mut mask) = (vec![0i32; dims[0] * dims[1]], vec![0.0f32; dims[0] * dims[1]]);
                for (row, &i) in batch.iter().enumerate() {
                    for (column, &token) in tokens[i].iter().enumerate() {
                        ids[row * dims[1] + column] = token as i32;
                        mask[row * dims[1] + column] = 1.0;
                    }
                }
                let rows = self.network.call(&(Tensor::new(&ids, &dims), Tensor::new(&mask, &dims)))?;
                let width = rows.dims()[1];
                for (&i, row) in batch.iter().zip(rows.to_vec::<f32>()?.chunks(width)) {
                    embeddings[i] = row.to_vec();
                }
            }
        }
        Ok(embeddings)
    }

    /// The compiled network: what it was captured for, its kernels; it can be saved.
    pub fn network(&self) -> &Compiled<Network, (Tensor, Tensor), Tensor> {
        &self.network
    }
}

/// How alike two sentences are by their vectors: 1 for the same meaning, about 0 for unrelated ones.
pub fn similarity(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum::<f64>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}
