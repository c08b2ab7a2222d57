//! In which order configurations are tried: what a budget does not reach is not tried.

use crate::config::Config;
use std::fmt;
use std::str::FromStr;

/// Chooses the next configurations.
pub trait Searcher {
    /// The next configuration to try, as an index into the candidates; `None` when there is nothing left that is worth it.
    /// `tried` holds all that was tried, with the median in microseconds, or `None` if it failed.
    fn next(&mut self, candidates: &[Config], tried: &[(usize, Option<f64>)]) -> Option<usize>;
}

/// The searches there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Search {
    /// Exhaustive in small spaces, random in large ones, where the budget may end before the space.
    #[default]
    Auto,
    /// All, in the order of the space.
    Exhaustive,
    /// All, in random order.
    Random,
}

/// Spaces up to this size are searched in their own order: their writers put the likely ones first.
const SMALL: usize = 64;

impl Search {
    /// The searcher for this many candidates.
    pub fn searcher(self, candidates: usize, seed: u64) -> Box<dyn Searcher> {
        match self {
            Search::Exhaustive => Box::new(InOrder::exhaustive(candidates)),
            Search::Random => Box::new(InOrder::random(candidates, seed)),
            Search::Auto if candidates <= SMALL => Box::new(InOrder::exhaustive(candidates)),
            Search::Auto => Box::new(InOrder::random(candidates, seed)),
        }
    }
}

impl FromStr for Search {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        match s {
            "auto" => Ok(Search::Auto),
            "exhaustive" => Ok(Search::Exhaustive),
            "random" => Ok(Search::Random),
            _ => Err(format!("no search is called `{s}`; there are auto, exhaustive and random")),
        }
    }
}

impl fmt::Display for Search {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Search::Auto => "auto",
            Search::Exhaustive => "exhaustive",
            Search::Random => "random",
        })
    }
}

/// Every candidate once, in an order fixed beforehand.
#[derive(Debug)]
struct InOrder(Vec<usize>);

impl InOrder {
    fn exhaustive(n: usize) -> Self {
        Self((0..n).rev().collect())
    }

    fn random(n: usize, seed: u64) -> Self {
        let mut order: Vec<usize> = (0..n).collect();
        // Fisher-Yates; the slight bias of the remainder is of no consequence here.
        let mut state = seed ^ 0x9e37_79b9_7f4a_7c15;
        for i in (1..n).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            order.swap(i, (state >> 33) as usize % (i + 1));
        }
        Self(order)
    }
}

impl Searcher for InOrder {
    fn next(&mut self, _candidates: &[Config], _tried: &[(usize, Option<f64>)]) -> Option<usize> {
        self.0.pop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_search_visits_all_once() {
        for search in [Search::Auto, Search::Exhaustive, Search::Random] {
            let all = |seed| {
                let mut s = search.searcher(100, seed);
                let mut seen = Vec::new();
                while let Some(i) = s.next(&[], &[]) {
                    seen.push(i);
                }
                seen
            };
            let (a, b) = (all(1), all(2));
            assert_eq!(a, all(1), "the same seed, the same order");
            assert_eq!(a == b, search == Search::Exhaustive);
            let mut sorted = a;
            sorted.sort_unstable();
            assert_eq!(sorted, (0..100).collect::<Vec<_>>());
            assert_eq!(search.to_string().parse(), Ok(search));
        }
    }
}
