//! Graphs on disk: JSON, with the values of captured tensors inline.

use super::{Graph, Node, NodeId, TensorType, verify};
use crate::error::{Error, Result};
use crate::literal::Literal;
use crate::prim::Op;
use serde::{Deserialize, Serialize};
use tilewright_compiler::entity::Entity;
use tilewright_compiler::error::Loc;

/// The number of this format; another one is refused.
const SCHEMA: u32 = 1;

#[derive(Serialize, Deserialize)]
struct File {
    schema: u32,
    nodes: Vec<FileNode>,
    inputs: Vec<usize>,
    outputs: Vec<usize>,
    /// Values of the last inputs: those the function captured.
    captured: Vec<FileLiteral>,
}

#[derive(Serialize, Deserialize)]
struct FileNode {
    op: Op,
    args: Vec<usize>,
    dtype: String,
    dims: Vec<usize>,
}

#[derive(Serialize, Deserialize)]
struct FileLiteral {
    dtype: String,
    dims: Vec<usize>,
    /// The bits of each element.
    words: Vec<u64>,
}

fn parse_type(dtype: &str, dims: &[usize]) -> Result<TensorType> {
    let ty = TensorType::new(dtype.parse().map_err(Error::Load)?, dims);
    verify::check_size(&ty).map_err(Error::Load)?;
    Ok(ty)
}

/// The graph as JSON text, with the values of its last `captured.len()` inputs.
pub fn to_json(graph: &Graph, captured: &[&Literal]) -> Result<String> {
    let indices = |ids: &[NodeId]| ids.iter().map(|i| i.index()).collect();
    let file = File {
        schema: SCHEMA,
        nodes: graph
            .nodes
            .iter()
            .map(|(_, n)| FileNode {
                op: n.op.clone(),
                args: indices(&n.args),
                dtype: n.ty.dtype.to_string(),
                dims: n.ty.dims.clone(),
            })
            .collect(),
        inputs: indices(&graph.inputs),
        outputs: indices(&graph.outputs),
        captured: captured
            .iter()
            .map(|l| FileLiteral {
                dtype: l.ty().dtype.to_string(),
                dims: l.ty().dims.clone(),
                words: (0..l.ty().elements()).map(|i| l.word(i)).collect(),
            })
            .collect(),
    };
    serde_json::to_string(&file).map_err(|e| Error::Internal(format!("a graph cannot be written as JSON: {e}")))
}

/// The graph and the values of its captured inputs.
///
/// # Errors
/// [`Error::Load`] for text that is no such graph, [`Error::Verify`] for a graph that breaks a rule.
pub fn from_json(text: &str) -> Result<(Graph, Vec<Literal>)> {
    let file: File = serde_json::from_str(text).map_err(|e| Error::Load(e.to_string()))?;
    if file.schema != SCHEMA {
        return Err(Error::Load(format!("its format has number {}, this version reads {SCHEMA}", file.schema)));
    }
    let count = file.nodes.len();
    let ids = |list: &[usize]| -> Result<Vec<NodeId>> {
        let bad = list.iter().find(|&&i| i >= count);
        if let Some(bad) = bad {
            return Err(Error::Load(format!("node {bad} is referred to, but there are {count}")));
        }
        Ok(list.iter().map(|&i| NodeId::new(i)).collect())
    };
    let mut graph = Graph::new();
    for n in &file.nodes {
        let ty = parse_type(&n.dtype, &n.dims)?;
        graph.nodes.push(Node { op: n.op.clone(), args: ids(&n.args)?, ty, loc: Loc::UNKNOWN });
    }
    graph.inputs = ids(&file.inputs)?;
    graph.outputs = ids(&file.outputs)?;
    verify(&graph, "loading")?;
    if file.captured.len() > graph.inputs.len() {
        return Err(Error::Load("it has more captured values than inputs".into()));
    }
    let first = graph.inputs.len() - file.captured.len();
    let mut captured = Vec::new();
    for (l, &input) in file.captured.iter().zip(&graph.inputs[first..]) {
        let ty = parse_type(&l.dtype, &l.dims)?;
        if ty != *graph.ty(input) || ty.elements() != l.words.len() {
            return Err(Error::Load(format!("a captured value of type {ty} does not fit input {input}")));
        }
        captured.push(Literal::from_fn(ty, |i| l.words[i]));
    }
    Ok((graph, captured))
}
