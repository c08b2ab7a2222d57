//! The text: its characters as tokens, and batches of it.

use super::model::{Batch, random_bits};
use tilewright::graph::Tensor;

/// Twelve of Shakespeare's sonnets: 18, 29, 30, 55, 60, 65, 71, 73, 97, 116, 129, 130.
const SONNETS: &str = include_str!("../data/sonnets.txt");

/// The sequence of random numbers that batches are drawn with; the weights have the first ones.
const BATCHES: u64 = 1 << 20;

/// A text as numbers.
pub struct Text {
    /// The characters that occur, in order.
    characters: Vec<char>,
    tokens: Vec<i32>,
}

impl Text {
    /// The sonnets.
    pub fn sonnets() -> Self {
        let mut characters: Vec<char> = SONNETS.chars().collect();
        characters.sort_unstable();
        characters.dedup();
        let mut text = Self { characters, tokens: vec![] };
        text.tokens = text.encode(SONNETS);
        text
    }

    /// How many different characters there are.
    pub fn vocabulary(&self) -> usize {
        self.characters.len()
    }

    /// The numbers of characters; those that do not occur in the text are left out.
    pub fn encode(&self, text: &str) -> Vec<i32> {
        text.chars().filter_map(|c| self.characters.binary_search(&c).ok()).map(|i| i as i32).collect()
    }

    /// The characters of numbers.
    pub fn decode(&self, tokens: &[i32]) -> String {
        tokens.iter().filter_map(|&t| self.characters.get(usize::try_from(t).ok()?)).collect()
    }

    /// The batch of a step: pieces that begin at random places, always the same.
    pub fn batch(&self, step: usize, batch: usize, length: usize) -> Batch {
        let starts = (self.tokens.len() - length) as u64;
        let (mut index, mut target) = (vec![], vec![]);
        for row in 0..batch {
            let at = (random_bits(BATCHES, (step * batch + row) as u64) % starts) as usize;
            index.extend_from_slice(&self.tokens[at..at + length]);
            target.extend_from_slice(&self.tokens[at + 1..at + length + 1]);
        }
        (Tensor::new(&index, &[batch, length]), Tensor::new(&target, &[batch, length]))
    }
}
