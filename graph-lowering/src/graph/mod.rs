//! The graph IR: tensors as typed nodes in an arena.
//!
//! **In**: recorded by the tracer of [`crate::tensor`], or loaded from JSON. **Out**: a [`Graph`] that the passes improve,
//! the interpreter executes and the fuser cuts into kernels. **Holds**: a graph that passes [`verify()`] lists every node
//! after its operands, and every node's type is the one its primitive infers ([`mod@verify`] lists all rules).

pub mod interpret;
pub mod json;
pub mod print;
pub mod varying;
pub mod verify;

use crate::prim::Op;
use std::fmt;
use tilewright_compiler::DType;
use tilewright_compiler::entity::Arena;
use tilewright_compiler::error::Loc;
pub use varying::Varying;
pub use verify::verify;

tilewright_compiler::entity! {
    /// A node: one primitive applied to other nodes, giving one tensor.
    NodeId, "n"
}

/// Element type and extents of a tensor. Printed as `f32[2, 3]`.
///
/// Extents are numbers known at capture; [`Graph::varying`] says which are others at the next.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct TensorType {
    /// The element type.
    pub dtype: DType,
    /// The extents, outermost first; empty for a single number.
    pub dims: Vec<usize>,
}

impl TensorType {
    /// A type.
    pub fn new(dtype: DType, dims: impl Into<Vec<usize>>) -> Self {
        Self { dtype, dims: dims.into() }
    }

    /// How many dimensions.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// How many elements.
    pub fn elements(&self) -> usize {
        self.dims.iter().product()
    }

    /// Bytes of all elements.
    pub fn bytes(&self) -> usize {
        self.elements() * self.dtype.bytes()
    }

    /// The same extents with another element type.
    #[must_use]
    pub fn with_dtype(&self, dtype: DType) -> Self {
        Self { dtype, dims: self.dims.clone() }
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dims: Vec<_> = self.dims.iter().map(ToString::to_string).collect();
        write!(f, "{}[{}]", self.dtype, dims.join(", "))
    }
}

impl fmt::Debug for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Row-major strides, in elements; an extent of 0 counts as 1, so that every dimension has a stride.
pub(crate) fn strides(dims: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; dims.len()];
    for i in (0..dims.len().saturating_sub(1)).rev() {
        strides[i] = strides[i + 1] * dims[i + 1].max(1);
    }
    strides
}

/// The coordinates of element `i`, row-major.
pub(crate) fn coordinates(mut i: usize, dims: &[usize]) -> Vec<usize> {
    let mut at = vec![0; dims.len()];
    for (a, &d) in at.iter_mut().zip(dims).rev() {
        *a = i % d.max(1);
        i /= d.max(1);
    }
    at
}

/// One node.
#[derive(Clone, PartialEq, Debug)]
pub struct Node {
    /// What it computes.
    pub op: Op,
    /// Its operands.
    pub args: Vec<NodeId>,
    /// The type of its result.
    pub ty: TensorType,
    /// The user's expression it comes from.
    pub loc: Loc,
}

/// A function of tensors as a graph of primitives, in order of evaluation.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Graph {
    /// All nodes; each comes after its operands.
    pub nodes: Arena<NodeId, Node>,
    /// The nodes that stand for the arguments, in order.
    pub inputs: Vec<NodeId>,
    /// The nodes whose values are the results, in order.
    pub outputs: Vec<NodeId>,
    /// The numbers that kernels take as parameters. Passes do not keep them.
    pub varying: Varying,
}

impl Graph {
    /// An empty graph.
    pub fn new() -> Self {
        Self::default()
    }

    /// The type of a node's value.
    pub fn ty(&self, node: NodeId) -> &TensorType {
        &self.nodes[node].ty
    }

    /// Appends an argument.
    pub fn add_input(&mut self, ty: TensorType, loc: Loc) -> NodeId {
        let id = self.nodes.push(Node { op: Op::Input, args: vec![], ty, loc });
        self.inputs.push(id);
        id
    }

    /// Appends a node after inferring its type.
    ///
    /// # Errors
    /// What the primitive's shape rule says.
    pub fn add(&mut self, op: Op, args: Vec<NodeId>, loc: Loc) -> Result<NodeId, String> {
        let types: Vec<&TensorType> = args.iter().map(|&a| self.ty(a)).collect();
        let ty = op.infer(&types)?;
        Ok(self.nodes.push(Node { op, args, ty, loc }))
    }

    /// For each node, the nodes that use it.
    pub fn users(&self) -> Vec<Vec<NodeId>> {
        use tilewright_compiler::entity::Entity;
        let mut users = vec![Vec::new(); self.nodes.len()];
        for (id, node) in self.nodes.iter() {
            for a in &node.args {
                users[a.index()].push(id);
            }
        }
        users
    }
}

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&print::text(self))
    }
}
