//! Graphs on disk: JSON, with the values of captured tensors inline or in a safetensors file beside it.

use super::{Graph, Node, NodeId, TensorType, verify};
use crate::error::{Error, Result};
use crate::literal::Literal;
use crate::prim::Op;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tilewright_compiler::entity::Entity;
use tilewright_compiler::error::Loc;

impl Serialize for NodeId {
    fn serialize<S: Serializer>(&self, s: S) -> std::result::Result<S::Ok, S::Error> {
        self.index().serialize(s)
    }
}

impl<'d> Deserialize<'d> for NodeId {
    fn deserialize<D: Deserializer<'d>>(d: D) -> std::result::Result<Self, D::Error> {
        u32::deserialize(d).map(|i| NodeId::new(i as usize))
    }
}

/// The number of this format; another one is refused.
const SCHEMA: u32 = 1;

#[derive(Serialize, Deserialize)]
struct File {
    schema: u32,
    /// What the graph was captured for: see [`crate::Structure::describe`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    takes: Option<String>,
    /// The SHA-256 of the file with the captured values, if they are not inline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checksum: Option<String>,
    nodes: Vec<FileNode>,
    inputs: Vec<usize>,
    outputs: Vec<usize>,
    /// Values of the last inputs: those the function captured.
    captured: Vec<FileValue>,
}

#[derive(Serialize, Deserialize)]
struct FileNode {
    op: Op,
    args: Vec<usize>,
    dtype: String,
    dims: Vec<usize>,
}

#[derive(Serialize, Deserialize)]
struct FileValue {
    dtype: String,
    dims: Vec<usize>,
    #[serde(flatten)]
    place: Place,
}

/// Where a value is.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Place {
    /// Here: the bits of each element.
    Words(Vec<u64>),
    /// In the file with the values, by this name.
    Tensor(String),
}

/// A graph as a file has it.
#[derive(Debug)]
pub(crate) struct Saved {
    pub graph: Graph,
    pub takes: Option<String>,
    pub checksum: Option<String>,
    /// The last inputs.
    pub captured: Vec<SavedValue>,
}

/// A captured value.
#[derive(Clone, Debug)]
pub(crate) enum SavedValue {
    Inline(Literal),
    /// In the file with the values.
    Named(String, TensorType),
}

fn parse_type(dtype: &str, dims: &[usize]) -> Result<TensorType> {
    let ty = TensorType::new(dtype.parse().map_err(Error::Load)?, dims);
    verify::check_size(&ty).map_err(Error::Load)?;
    Ok(ty)
}

/// The graph as JSON text, with the values of its last `captured.len()` inputs.
///
/// # Errors
/// [`Error::Internal`] if it has no form in JSON.
pub fn to_json(graph: &Graph, captured: &[&Literal]) -> Result<String> {
    write(&Saved {
        graph: graph.clone(),
        takes: None,
        checksum: None,
        captured: captured.iter().map(|&l| SavedValue::Inline(l.clone())).collect(),
    })
}

/// The graph and the values of its captured inputs.
///
/// # Errors
/// [`Error::Load`] for text that is no such graph, or whose values are in another file; [`Error::Verify`] for a graph that
/// breaks a rule.
pub fn from_json(text: &str) -> Result<(Graph, Vec<Literal>)> {
    let saved = read(text)?;
    let inline = |v| match v {
        SavedValue::Inline(literal) => Ok(literal),
        SavedValue::Named(name, _) => Err(Error::Load(format!(
            "the values of `{name}` are in a file beside it; load the folder with `Loaded::open`"
        ))),
    };
    Ok((saved.graph, saved.captured.into_iter().map(inline).collect::<Result<_>>()?))
}

pub(crate) fn write(saved: &Saved) -> Result<String> {
    let graph = &saved.graph;
    let indices = |ids: &[NodeId]| ids.iter().map(|i| i.index()).collect();
    let value = |v: &SavedValue| {
        let (ty, place) = match v {
            SavedValue::Inline(l) => (l.ty(), Place::Words((0..l.ty().elements()).map(|i| l.word(i)).collect())),
            SavedValue::Named(name, ty) => (ty, Place::Tensor(name.clone())),
        };
        FileValue { dtype: ty.dtype.to_string(), dims: ty.dims.clone(), place }
    };
    let node = |n: &Node| FileNode {
        op: n.op.clone(),
        args: indices(&n.args),
        dtype: n.ty.dtype.to_string(),
        dims: n.ty.dims.clone(),
    };
    let file = File {
        schema: SCHEMA,
        takes: saved.takes.clone(),
        checksum: saved.checksum.clone(),
        nodes: graph.nodes.iter().map(|(_, n)| node(n)).collect(),
        inputs: indices(&graph.inputs),
        outputs: indices(&graph.outputs),
        captured: saved.captured.iter().map(value).collect(),
    };
    serde_json::to_string(&file).map_err(|e| Error::Internal(format!("a graph cannot be written as JSON: {e}")))
}

pub(crate) fn read(text: &str) -> Result<Saved> {
    /// Read first: another schema may have other fields.
    #[derive(Deserialize)]
    struct Head {
        schema: u32,
    }
    let head: Head = serde_json::from_str(text).map_err(|e| Error::Load(e.to_string()))?;
    if head.schema != SCHEMA {
        return Err(Error::Load(format!("its format has number {}, this version reads {SCHEMA}", head.schema)));
    }
    let file: File = serde_json::from_str(text).map_err(|e| Error::Load(e.to_string()))?;
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
    let Some(first) = graph.inputs.len().checked_sub(file.captured.len()) else {
        return Err(Error::Load("it has more captured values than inputs".into()));
    };
    let mut captured = Vec::new();
    for (value, &input) in file.captured.into_iter().zip(&graph.inputs[first..]) {
        let ty = parse_type(&value.dtype, &value.dims)?;
        let filled = !matches!(&value.place, Place::Words(words) if words.len() != ty.elements());
        if ty != *graph.ty(input) || !filled {
            return Err(Error::Load(format!("a captured value of type {ty} does not fit input {input}")));
        }
        captured.push(match value.place {
            Place::Words(words) => SavedValue::Inline(Literal::from_fn(ty, |i| words[i])),
            Place::Tensor(name) => SavedValue::Named(name, ty),
        });
    }
    Ok(Saved { graph, takes: file.takes, checksum: file.checksum, captured })
}
