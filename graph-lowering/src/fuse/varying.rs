//! What varies in a kernel: its loop variables' extents, and other numbers that become parameters.

use super::group::Group;
use super::map::Affine;
use super::operands::operand_coordinates;
use crate::graph::{Graph, NodeId};
use std::collections::BTreeSet;
use tilewright_compiler::DType;
use tilewright_compiler::tile::Constant;

/// A number that a kernel takes as a parameter.
#[derive(Clone, PartialEq, Debug)]
pub struct Number {
    /// Its name in the kernel.
    pub name: &'static str,
    /// Its type.
    pub dtype: DType,
    /// Its value.
    pub value: Constant,
}

/// What a number means: one parameter for each meaning, not for each value, so that numbers that happen to be equal do not
/// make another kernel.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Meaning {
    /// The extent of a loop variable that no view has.
    Extent(usize),
    /// A tensor of one number repeated.
    Word(NodeId),
    /// The constant part of a function of the variables.
    Offset(Affine),
    /// The coefficient of a variable in it.
    Coefficient(Affine, usize),
    /// Rows of a table.
    Rows(NodeId),
    /// Elements of a row of a table.
    Row(NodeId),
}

/// Which variables of a group's space have extents that vary: those that are the coordinate of a dimension that does.
pub(super) fn space(graph: &Graph, group: &Group) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    if graph.varying.is_empty() {
        return found;
    }
    // Of coordinates made of several variables it is not known which of them varies.
    let mut unclear = Vec::new();
    let mut visit = |node: NodeId, at: &[Affine]| {
        for (dim, a) in at.iter().enumerate() {
            let variables: BTreeSet<usize> = a.terms.keys().copied().collect();
            if !graph.varying.dim(node, dim) || variables.is_empty() {
                continue;
            }
            match a.terms.len() {
                1 => found.extend(variables),
                _ => unclear.push(variables),
            }
        }
    };
    for &node in group.nodes.iter().chain(group.stores.iter().map(|s| &s.node)) {
        if let Some(at) = group.place(&graph.ty(node).dims) {
            visit(node, &at);
        }
    }
    for &node in &group.nodes {
        for (operand, at) in operand_coordinates(graph, node, group).unwrap_or_default() {
            visit(operand, &at);
        }
    }
    for variables in unclear {
        if variables.is_disjoint(&found) {
            found.extend(variables);
        }
    }
    found
}

/// The extents that one kernel serves as well as any other size between the last and this: 16, 64, 256, ..
pub(super) fn bucket(extent: usize) -> usize {
    let power = extent.max(16).next_power_of_two();
    if power.trailing_zeros().is_multiple_of(2) { power } else { power.saturating_mul(2) }
}
