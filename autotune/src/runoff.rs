//! The run-off: the finalists timed in turns, so that whatever disturbs the machine disturbs them alike.

use crate::measure::median;

/// Most finalists.
pub const FINALISTS: usize = 4;
/// A finalist is at most this many times slower than the fastest so far.
pub const CLOSE: f64 = 1.08;
/// Rounds of the run-off.
pub const ROUNDS: usize = 7;

/// In which order the finalists take their turns in a round: every one is first, second, ... equally often, so that what one
/// leaves to the next (a warm cache, a hot chip) favours nobody.
pub fn order(finalists: usize, round: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..finalists).map(|i| (i + round / 2) % finalists.max(1)).collect();
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

/// The medians by paired comparison. `rounds[r][i]` is finalist `i`'s median in round `r`. The first finalist keeps the median of
/// its own; each other's is that times the median of the ratios within each round, which cancels what changes between rounds.
pub fn paired(rounds: &[Vec<f64>]) -> Vec<f64> {
    let finalists = rounds.first().map_or(0, Vec::len);
    let base = median(&rounds.iter().map(|r| r[0]).collect::<Vec<_>>());
    (0..finalists)
        .map(|i| {
            let ratios: Vec<f64> = rounds.iter().filter(|r| r[0] > 0.0).map(|r| r[i] / r[0]).collect();
            // A clock that sees nothing leaves nothing to compare.
            if ratios.is_empty() {
                median(&rounds.iter().map(|r| r[i]).collect::<Vec<_>>())
            } else {
                base * median(&ratios)
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drift_between_rounds_cancels() {
        // The machine slows down fourfold; the second is 5 % faster in every round but one.
        let rounds = [vec![1.0, 0.95], vec![2.0, 1.9], vec![3.0, 2.85], vec![4.0, 3.8], vec![1.0, 4.0]];
        let p = paired(&rounds);
        assert_eq!(p[0], 2.0);
        assert!((p[1] - 1.9).abs() < 1e-12, "{p:?}");
        assert_eq!(paired(&[]), Vec::<f64>::new());
        assert_eq!(paired(&[vec![0.0, 1.0]]), [0.0, 1.0]);
    }

    #[test]
    fn turns_are_fair() {
        let mut first = [0; 4];
        for round in 0..8 {
            let o = order(4, round);
            let mut sorted = o.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3]);
            first[o[0]] += 1;
        }
        assert_eq!(first, [2, 2, 2, 2]);
        assert!(order(0, 3).is_empty());
    }
}
