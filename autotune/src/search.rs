//! In which order configurations are tried: what a budget does not reach is not tried.
//!
//! A [`Searcher`] is asked for the next configuration and told what came of each. The session asks for several at a time, so that
//! they are compiled in parallel: a searcher that waits for an answer before it goes on says so by giving none for now.
//!
//! ```
//! use tilewright_autotune::search::{Outcome, Search, Searcher};
//! use tilewright_autotune::{Config, Settings};
//!
//! /// Tries every other configuration, and their neighbours while they get faster.
//! struct Climb {
//!     coarse: Vec<usize>,
//!     best: Option<(f64, usize)>,
//!     near: Vec<usize>,
//! }
//!
//! impl Searcher for Climb {
//!     fn ask(&mut self, _candidates: &[Config]) -> Option<usize> {
//!         self.near.pop().or_else(|| self.coarse.pop())
//!     }
//!
//!     fn tell(&mut self, candidate: usize, _config: &Config, outcome: Outcome) {
//!         if let Outcome::Time(us) = outcome
//!             && self.best.is_none_or(|(best, _)| us < best)
//!         {
//!             self.best = Some((us, candidate));
//!             self.near = vec![candidate + 1, candidate.saturating_sub(1)];
//!         }
//!     }
//! }
//!
//! let climb = Search::custom("climb", |candidates, _seed| {
//!     Box::new(Climb { coarse: (0..candidates.len()).step_by(2).collect(), best: None, near: Vec::new() })
//! });
//! let settings = Settings { search: climb, ..Settings::default() };
//! assert_eq!(settings.search.name(), "climb");
//! ```

use crate::config::Config;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// What came of a configuration.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Outcome {
    /// It is right; the median of the first samples, in microseconds.
    Time(f64),
    /// It is the same code as one that was tried before.
    Same,
    /// It cannot be used.
    Failed,
}

/// Chooses the next configurations of one session.
pub trait Searcher {
    /// The next configuration to try, as an index into the candidates, which are the same at each call. One that was handed out
    /// before, or that does not exist, is passed over and another is asked for, as often as there are candidates. `None` when nothing more
    /// is worth a try, or nothing before the next [`Searcher::tell`]: the session ends when there is none left to tell of.
    fn ask(&mut self, candidates: &[Config]) -> Option<usize>;

    /// What came of a configuration. The reference is told of too, though nobody asked for it: the session tries it first.
    fn tell(&mut self, candidate: usize, config: &Config, outcome: Outcome) {
        let _ = (candidate, config, outcome);
    }
}

/// Makes a searcher for candidates and a seed.
type Make = dyn Fn(&[Config], u64) -> Box<dyn Searcher> + Send + Sync;

/// A way to search.
#[derive(Clone)]
pub struct Search {
    name: &'static str,
    make: Arc<Make>,
}

/// Spaces up to this size are searched in their own order: their writers put the likely ones first.
const SMALL: usize = 64;

impl Search {
    /// The names of those that are built in.
    pub const NAMES: [&'static str; 3] = ["auto", "exhaustive", "random"];

    /// A way of your own: `make` gets the candidates and the seed, once for each session.
    pub fn custom(
        name: &'static str,
        make: impl Fn(&[Config], u64) -> Box<dyn Searcher> + Send + Sync + 'static,
    ) -> Self {
        Self { name, make: Arc::new(make) }
    }

    /// Exhaustive in small spaces, random in large ones, where the budget may end before the space. The default.
    pub fn auto() -> Self {
        Self::custom("auto", |c, seed| {
            Box::new(if c.len() <= SMALL { InOrder::exhaustive(c.len()) } else { InOrder::random(c.len(), seed) })
        })
    }

    /// All, in the order of the space.
    pub fn exhaustive() -> Self {
        Self::custom("exhaustive", |c, _| Box::new(InOrder::exhaustive(c.len())))
    }

    /// All, in random order.
    pub fn random() -> Self {
        Self::custom("random", |c, seed| Box::new(InOrder::random(c.len(), seed)))
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The searcher for these candidates.
    pub fn searcher(&self, candidates: &[Config], seed: u64) -> Box<dyn Searcher> {
        (self.make)(candidates, seed)
    }
}

impl Default for Search {
    fn default() -> Self {
        Self::auto()
    }
}

impl fmt::Debug for Search {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Search({})", self.name)
    }
}

impl fmt::Display for Search {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl FromStr for Search {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        match s {
            "auto" => Ok(Self::auto()),
            "exhaustive" => Ok(Self::exhaustive()),
            "random" => Ok(Self::random()),
            _ => Err(format!("no search is called `{s}`; there are {}", Self::NAMES.join(", "))),
        }
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
    fn ask(&mut self, _candidates: &[Config]) -> Option<usize> {
        self.0.pop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_search_visits_all_once() {
        let candidates: Vec<Config> = (0..100).map(|i| Config::new().with("i", i)).collect();
        for name in Search::NAMES {
            let search: Search = name.parse().unwrap();
            assert_eq!(search.to_string(), name);
            let all = |seed| {
                let mut s = search.searcher(&candidates, seed);
                std::iter::from_fn(|| s.ask(&candidates)).collect::<Vec<_>>()
            };
            let (a, b) = (all(1), all(2));
            assert_eq!(a, all(1), "the same seed, the same order");
            assert_eq!(a == b, name == "exhaustive");
            let mut sorted = a;
            sorted.sort_unstable();
            assert_eq!(sorted, (0..100).collect::<Vec<_>>());
        }
        assert!("greedy".parse::<Search>().unwrap_err().contains("there are auto, exhaustive, random"));
    }
}
