//! Giving up slow configurations early: the fewer are left, the more often the good ones can be timed.

use crate::measure::{median, quantile};

/// How many times slower than the fastest a configuration may be after its n-th round to stay. The first timing is rough;
/// each further one may be trusted more.
const LIMITS: [f64; 4] = [2.0, 1.3, 1.15, 1.08];

/// The rounds after which what is left goes to the run-off.
pub const ROUNDS: usize = LIMITS.len();

/// How many samples a configuration has before it is given up: one may be disturbed tenfold.
pub const LEAST: usize = 3;

/// Is a configuration with these samples out after `round` rounds (from 1), given the fastest median? Judged by its faster
/// samples, so that one disturbed round does not throw out a good one.
pub fn is_out(samples: &[f64], fastest: f64, round: usize) -> bool {
    let limit = LIMITS[round.clamp(1, ROUNDS) - 1];
    samples.len() >= LEAST && quantile(samples, 0.25) > fastest * limit
}

/// The fastest of several medians.
pub fn fastest<'a>(all: impl IntoIterator<Item = &'a [f64]>) -> f64 {
    all.into_iter().map(median).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn found_t13_three_samples_decide_and_no_fewer() {
        for round in 1..=ROUNDS {
            assert!(!is_out(&[1e9], 1.0, round) && !is_out(&[1e9; 2], 1.0, round));
            assert!(is_out(&[1e9; 3], 1.0, round));
        }
        // Of which two disturbed ones are not enough.
        assert!(!is_out(&[9.0, 1.0, 1.0], 1.0, 1));
    }

    #[test]
    fn limits_tighten() {
        assert!(!is_out(&[1.9; 3], 1.0, 1));
        assert!(is_out(&[1.9; 3], 1.0, 2));
        assert!(is_out(&[1.1; 5], 1.0, 9));
        assert!(!is_out(&[1.05; 5], 1.0, 9));
        // One round out of four disturbed by something else.
        assert!(!is_out(&[1.0, 1.0, 9.0, 1.0], 1.0, 4));
        assert_eq!(fastest([&[3.0][..], &[1.0, 2.0, 9.0]]), 2.0);
    }
}
