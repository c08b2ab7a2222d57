//! Attention and its gradients as kernels of the library: groups that nothing joins. Operands are read where they lie, through
//! views; results are stored in the order asked for.

use super::group::{Group, Read};
use super::kernel::{Body, Kernel, Param, finish, intern, kernel_name, stored_at};
use super::map::Affine;
use super::operands::address;
use crate::error::{Error, Result};
use crate::graph::{Graph, Node, NodeId};
use crate::prim::Op;
use crate::prim::attention::{Of, Row, Scores};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tilewright_compiler::dsl::Specialization;
use tilewright_compiler::error::Result as CompilerResult;
use tilewright_compiler::tile::Function;
use tilewright_kernels::{Attention as How, AttentionConfig, AttentionKernel, AttentionPass, AttentionTiles};
use tilewright_runtime::{Access, Device};

/// Widest queries and values that the kernels take.
const MAX_WIDTH: usize = 256;

/// What a group of attention reads.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Attention {
    /// The operands, in order, in their own coordinates.
    pub operands: Vec<Read>,
}

/// What a node computes, if it is one of attention's.
fn scores(node: &Node) -> Option<&Scores> {
    match &node.op {
        Op::Attention(a) => Some(&a.0),
        Op::AttentionRow(a) => Some(&a.scores),
        Op::AttentionGrad(a) => Some(&a.scores),
        _ => None,
    }
}

/// Which of a graph's nodes there are kernels for.
pub(crate) struct Kernels<'g> {
    graph: &'g Graph,
    /// What attention that has a kernel takes: the scores, and q, k and the mask.
    forward: HashSet<(&'g Scores, Vec<NodeId>)>,
}

impl<'g> Kernels<'g> {
    /// Of a graph.
    pub fn of(graph: &'g Graph) -> Self {
        let mut forward = HashSet::new();
        for (_, node) in graph.nodes.iter() {
            if let (Op::Attention(a), [q, k, _, mask @ ..]) = (&node.op, &node.args[..])
                && Self::fits(graph, node)
            {
                forward.insert((&a.0, [&[*q, *k], mask].concat()));
            }
        }
        Self { graph, forward }
    }

    fn fits(graph: &Graph, node: &Node) -> bool {
        node.args.iter().take(3).filter_map(|&a| graph.ty(a).dims.last()).all(|&w| w <= MAX_WIDTH)
    }

    /// Is there a kernel for this node? What is kept of rows is left by that of their attention.
    pub fn has(&self, node: &Node) -> bool {
        match &node.op {
            Op::Attention(_) | Op::AttentionGrad(_) => Self::fits(self.graph, node),
            Op::AttentionRow(r) => self.forward.contains(&(&r.scores, node.args.clone())),
            _ => false,
        }
    }
}

/// Is `second` a result of the kernel of `first`?
pub(super) fn share_kernel(first: &Node, second: &Node) -> bool {
    if scores(first) != scores(second) {
        return false;
    }
    match (&first.op, &second.op) {
        (Op::Attention(_), Op::AttentionRow(_)) => {
            let [q, k, _, mask @ ..] = &first.args[..] else { return false };
            second.args.first() == Some(q) && second.args.get(1) == Some(k) && second.args[2..] == *mask
        }
        (Op::AttentionGrad(a), Op::AttentionGrad(b)) => {
            a.of != Of::Query && b.of != Of::Query && a.of != b.of && first.args == second.args
        }
        _ => false,
    }
}

impl Attention {
    /// The node that a group is named after, and its scores.
    fn main<'g>(graph: &'g Graph, group: &Group) -> Result<(&'g Node, &'g Scores)> {
        let node = group.nodes.first().map(|&n| &graph.nodes[n]);
        let found = node.and_then(|n| Some((n, scores(n)?)));
        found.ok_or_else(|| Error::Internal("a group of attention without attention".into()))
    }

    /// What results the stores are of: their numbers in the order that the library's kernel has them in.
    fn results(graph: &Graph, group: &Group) -> Result<Vec<Vec<usize>>> {
        let (main, _) = Self::main(graph, group)?;
        let mut lists = match &main.op {
            Op::AttentionGrad(g) if g.of == Of::Query => vec![vec![]],
            Op::AttentionGrad(_) => vec![vec![]; 2],
            _ => vec![vec![]; 3],
        };
        for (i, store) in group.stores.iter().enumerate() {
            let list = match &graph.nodes[store.node].op {
                Op::AttentionRow(r) if r.what == Row::Most => 1,
                Op::AttentionRow(_) => 2,
                Op::AttentionGrad(g) if g.of == Of::Value => 1,
                _ => 0,
            };
            match lists.get_mut(list) {
                Some(list) => list.push(i),
                None => return Err(Error::Internal(format!("{} is no result of its kernel", store.node))),
            }
        }
        Ok(lists)
    }

    fn library_kernel(graph: &Graph, group: &Group, config: AttentionConfig) -> Result<AttentionKernel> {
        let (main, scores) = Self::main(graph, group)?;
        let counts: Vec<usize> = Self::results(graph, group)?.iter().map(Vec::len).collect();
        let (pass, mask) = match (&main.op, &counts[..]) {
            (Op::Attention(_), &[outs, most, log_sums]) => {
                (AttentionPass::Forward { outs, most, log_sums }, main.args.get(3))
            }
            (Op::AttentionGrad(_), &[outs]) => (AttentionPass::GradQuery { outs }, main.args.get(7)),
            (Op::AttentionGrad(_), &[keys, values]) => (AttentionPass::GradKeyValue { keys, values }, main.args.get(7)),
            _ => return Err(Error::Internal(format!("{} has no kernel", main.op))),
        };
        let width = |i: usize| graph.ty(main.args[i]).dims[3];
        let how = How { causal: scores.causal, scale: Some(scores.scale()) };
        Ok(AttentionKernel {
            pass,
            dtype: graph.ty(main.args[0]).dtype,
            mask: mask.map(|&m| graph.ty(m).dtype),
            tiles: AttentionTiles::new(config, how, width(0), width(2)),
        })
    }

    /// The kernel of a group on a device.
    ///
    /// # Errors
    /// A broken invariant.
    pub(super) fn kernel(&self, graph: &Arc<Graph>, group: &Group, device: &Device) -> Result<Kernel> {
        let (main, _) = Self::main(graph, group)?;
        let (q, k, v) = (graph.ty(main.args[0]), graph.ty(main.args[1]), graph.ty(main.args[2]));
        let width = q.dims[3].max(v.dims[3]);
        let config = match &main.op {
            Op::AttentionGrad(g) => {
                AttentionConfig::backward(device, q.dtype, q.dims[2], k.dims[2], width, g.of != Of::Query)
            }
            _ => AttentionConfig::heuristic(device, q.dtype, q.dims[2], k.dims[2], width, main.args.len() > 3),
        };
        let mut params = Vec::new();
        for (i, read) in self.operands.iter().enumerate() {
            params.push(param(graph, &format!("x{i}"), read.node, main.args[i], Access::In, &address(read)));
        }
        let lists = Self::results(graph, group)?;
        let mut stores = vec![0; group.stores.len()];
        for &i in lists.iter().flatten() {
            let store = &group.stores[i];
            let at: Vec<Affine> = (0..graph.ty(store.node).rank()).map(Affine::variable).collect();
            stores[i] = params.len();
            let (name, place) = (format!("y{}", params.len()), stored_at(graph, store, &at));
            params.push(param(graph, &name, store.target, store.node, Access::Out, &place));
        }
        let grid = match &main.op {
            Op::AttentionGrad(g) if g.of != Of::Query => k.dims[2].div_ceil(config.bn) * k.dims[0] * k.dims[1],
            _ => q.dims[2].div_ceil(config.bm) * q.dims[0] * q.dims[1],
        };
        let body = Body {
            graph: graph.clone(),
            group: group.clone(),
            name: intern(&kernel_name(graph, group)),
            variables: vec![],
            last_of: HashMap::new(),
            params,
            loads: HashMap::new(),
            tables: HashMap::new(),
            stores,
            varies: false,
            attention: Some(Self::library_kernel(graph, group, config)?),
        };
        finish(body, Some(grid), config.options)
    }
}

/// The Tile IR of the library's kernel with the parameters of `body`.
pub(super) fn function(kernel: &AttentionKernel, body: &Body, spec: &Specialization) -> CompilerResult<Function> {
    let names: Vec<&'static str> = body.params.iter().map(|p| p.name).collect();
    kernel.build(body.name, &names, spec)
}

/// A view with the extents of `shown` into the buffer of `node`, `place` being the function of its coordinates.
fn param(graph: &Graph, name: &str, node: NodeId, shown: NodeId, access: Access, place: &Affine) -> Param {
    let dims = graph.ty(shown).dims.clone();
    Param {
        name: intern(name),
        node,
        dtype: graph.ty(node).dtype,
        access,
        offset: place.offset as usize,
        variables: vec![],
        strides: (0..dims.len()).map(|i| place.of(i) as isize).collect(),
        dims,
        // The library's kernels take extents from their views.
        varies: graph.varying.any_dim(node) || graph.varying.any_dim(shown),
    }
}
