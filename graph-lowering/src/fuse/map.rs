//! Coordinates as affine functions of the loop variables of a kernel.
//!
//! A kernel visits a space of loop variables. Going from its results to its operands, each node is read at coordinates that
//! are affine in these variables; views only change the functions. Where a reshape would need a division that does not come
//! out even, the node cannot be read in place and is stored instead.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `offset + sum of coefficient * variable`.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
pub struct Affine {
    /// The constant part.
    pub offset: i64,
    /// Coefficients that are not 0, by the number of the variable.
    pub terms: BTreeMap<usize, i64>,
}

impl Affine {
    /// The same everywhere.
    pub fn constant(offset: i64) -> Self {
        Self { offset, terms: BTreeMap::new() }
    }

    /// A variable itself.
    pub fn variable(i: usize) -> Self {
        Self { offset: 0, terms: BTreeMap::from([(i, 1)]) }
    }

    /// `factor` times this.
    #[must_use]
    pub fn scale(&self, factor: i64) -> Self {
        if factor == 0 {
            return Self::default();
        }
        Self { offset: self.offset * factor, terms: self.terms.iter().map(|(&v, c)| (v, c * factor)).collect() }
    }

    /// This and a constant.
    #[must_use]
    pub fn plus(&self, offset: i64) -> Self {
        Self { offset: self.offset + offset, terms: self.terms.clone() }
    }

    /// The sum of two.
    #[must_use]
    pub fn add(&self, other: &Affine) -> Self {
        let mut sum = self.clone();
        sum.offset += other.offset;
        for (&v, &c) in &other.terms {
            let t = sum.terms.entry(v).or_insert(0);
            *t += c;
            if *t == 0 {
                sum.terms.remove(&v);
            }
        }
        sum
    }

    /// The coefficient of a variable.
    pub fn of(&self, variable: usize) -> i64 {
        self.terms.get(&variable).copied().unwrap_or(0)
    }

    /// Quotient and remainder by `d`, if both are affine over variables of these extents.
    fn divide(&self, d: i64, extents: &[usize]) -> Option<(Affine, Affine)> {
        let (mut quotient, mut rest) =
            (Affine::constant(self.offset.div_euclid(d)), Affine::constant(self.offset.rem_euclid(d)));
        let mut most = rest.offset;
        for (&v, &c) in &self.terms {
            if extents[v] <= 1 {
                continue;
            }
            if c % d == 0 {
                quotient.terms.insert(v, c / d);
            } else if c > 0 {
                rest.terms.insert(v, c);
                most += c * (extents[v] as i64 - 1);
            } else {
                return None;
            }
        }
        (most < d).then_some((quotient, rest))
    }
}

/// The function that is 0 at the origin and counts elements row-major: the place in a contiguous buffer.
pub fn linear(at: &[Affine], dims: &[usize]) -> Affine {
    let steps = crate::graph::strides(dims);
    at.iter().zip(&steps).fold(Affine::default(), |sum, (a, &s)| sum.add(&a.scale(s as i64)))
}

/// Coordinates in extents `to` of what lies at coordinates `at` in extents `from`: the operand of a reshape.
pub fn reshape(at: &[Affine], from: &[usize], to: &[usize], extents: &[usize]) -> Option<Vec<Affine>> {
    // Extents of 1 say nothing; the others are matched in the smallest groups of equal products, so that a group that
    // cannot be divided does not spoil the others.
    let mut result = vec![Affine::default(); to.len()];
    let source: Vec<usize> = (0..from.len()).filter(|&i| from[i] != 1).collect();
    let target: Vec<usize> = (0..to.len()).filter(|&i| to[i] != 1).collect();
    let (mut i, mut j) = (0, 0);
    while i < source.len() && j < target.len() {
        let (first_i, first_j) = (i, j);
        let (mut p, mut q) = (from[source[i]], to[target[j]]);
        (i, j) = (i + 1, j + 1);
        while p != q {
            if p < q {
                p *= from[*source.get(i)?];
                i += 1;
            } else {
                q *= to[*target.get(j)?];
                j += 1;
            }
        }
        let group: Vec<Affine> = source[first_i..i].iter().map(|&k| at[k].clone()).collect();
        let dims: Vec<usize> = source[first_i..i].iter().map(|&k| from[k]).collect();
        let mut rest = linear(&group, &dims);
        for &t in target[first_j..j].iter().rev().take(j - first_j - 1) {
            let (quotient, remainder) = rest.divide(to[t] as i64, extents)?;
            result[t] = remainder;
            rest = quotient;
        }
        result[target[first_j]] = rest;
    }
    (i == source.len() && j == target.len()).then_some(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vars(n: usize) -> Vec<Affine> {
        (0..n).map(Affine::variable).collect()
    }

    #[test]
    fn merged_dimensions_are_linear() {
        // [6, 4] read as [24]: the place is 4 i + j.
        let at = reshape(&vars(2), &[6, 4], &[24], &[6, 4]).unwrap();
        assert_eq!(at[0].terms, BTreeMap::from([(0, 4), (1, 1)]));
    }

    #[test]
    fn divided_dimensions_need_variables_that_come_out_even() {
        // One variable of 24 cannot be divided, two of 6 and 4 can.
        assert_eq!(reshape(&vars(1), &[24], &[6, 4], &[24]), None);
        let joined = vec![Affine::variable(0).scale(4).add(&Affine::variable(1))];
        assert_eq!(reshape(&joined, &[24], &[6, 4], &[6, 4]).unwrap(), vars(2));
        // Extents of 1 come and go.
        let at = reshape(&vars(3), &[5, 1, 7], &[1, 5, 7], &[5, 1, 7]).unwrap();
        assert_eq!(at, [Affine::default(), Affine::variable(0), Affine::variable(2)]);
    }
}
