//! Compiled functions on disk: the captured graph as `graph.json`, the captured tensors as `weights.safetensors`.

use super::backend::{self, Lowered, Program};
use super::explain::Explanation;
use super::options::Options;
use crate::error::{Error, Result};
use crate::graph::json::{self, Saved, SavedValue};
use crate::graph::{Graph, TensorType, Varying};
use crate::tensor::{Structure, Tensor};
use crate::weights::{Weights, write_file};
use sha2::{Digest, Sha256};
use std::path::Path;

const GRAPH: &str = "graph.json";
const WEIGHTS: &str = "weights.safetensors";

/// A graph that was saved, ready to be called. Where [`super::Compiled`] captures anew for arguments of another kind, this
/// takes arguments of the kind it was captured for.
pub struct Loaded {
    graph: Graph,
    /// What the arguments must be described as.
    takes: Option<String>,
    captured: Vec<Tensor>,
    program: Box<dyn Program>,
}

impl Loaded {
    /// Loads what [`super::Compiled::save`] has left in a folder. The options that say how a
    /// function is captured (`fullgraph`, `dynamic`) do not matter.
    ///
    /// # Errors
    /// [`Error::Load`] and [`Error::Verify`] for a graph that is not usable, [`Error::Weights`] for weights that are not, or
    /// are not those saved with it; [`Error::Options`]; what the device says.
    pub fn open(folder: impl AsRef<Path>, options: Options) -> Result<Loaded> {
        let path = folder.as_ref().join(GRAPH);
        let text = std::fs::read_to_string(&path)
            .map_err(|e| Error::Load(format!("{} cannot be read: {e}", path.display())))?;
        let saved = json::read(&text)?;
        if saved.captured.iter().all(|v| matches!(v, SavedValue::Inline(_))) {
            return Self::new(saved, &Weights::new(), &options);
        }
        let path = folder.as_ref().join(WEIGHTS);
        let origin = path.display().to_string();
        let failed = |message| Error::Weights { origin: origin.clone(), message };
        let bytes = std::fs::read(&path).map_err(|e| failed(format!("cannot be read: {e}")))?;
        if saved.checksum.as_ref().is_some_and(|sum| *sum != checksum(&bytes)) {
            return Err(failed(
                "is not the file that was saved with the graph: its checksum is another\n  help: save both again; to use \
                 other weights on purpose, remove `checksum` from graph.json"
                    .into(),
            ));
        }
        let weights = Weights::parse(&bytes, &origin)?;
        Self::new(saved, &weights, &options)
    }

    /// Loads the text that [`super::Compiled::to_json`] gives.
    ///
    /// # Errors
    /// As [`Loaded::open`].
    pub fn from_json(text: &str, options: Options) -> Result<Loaded> {
        Self::new(json::read(text)?, &Weights::new(), &options)
    }

    fn new(saved: Saved, weights: &Weights, options: &Options) -> Result<Loaded> {
        options.check()?;
        let backend = backend::find(options.backend_name())?;
        let value = |v| match v {
            SavedValue::Inline(literal) => Ok(literal.into()),
            SavedValue::Named(name, ty) => named(weights, &name, &ty),
        };
        let captured = saved.captured.into_iter().map(value).collect::<Result<Vec<Tensor>>>()?;
        // Saved graphs are simplified, but a file may come from elsewhere.
        let Lowered { graph, program, .. } = backend.lower(&saved.graph, options, &mut |_| Varying::default())?;
        Ok(Loaded { graph, takes: saved.takes, captured, program })
    }

    /// The results for these arguments: all tensors of the function's result, in order.
    ///
    /// # Errors
    /// [`Error::Arguments`] for arguments of another kind than the graph was captured for; what the device says.
    pub fn call(&self, x: &impl Structure) -> Result<Vec<Tensor>> {
        let mut args = x.tensors();
        for t in &args {
            t.check()?;
        }
        let own = self.graph.inputs.len() - self.captured.len();
        let types = || self.graph.inputs[..own].iter().map(|&i| self.graph.ty(i));
        let mut given = String::new();
        x.describe(&mut given);
        if args.len() != own
            || !types().eq(args.iter().map(Tensor::ty))
            || self.takes.as_ref().is_some_and(|t| *t != given)
        {
            let list = || types().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            return Err(Error::Arguments { takes: self.takes.clone().unwrap_or_else(list), given });
        }
        args.extend(self.captured.iter().cloned());
        self.program.run(&args)
    }

    /// The graph, simplified.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// What it was captured for, in the words of [`Structure::describe`].
    pub fn takes(&self) -> Option<&str> {
        self.takes.as_deref()
    }

    /// What became of the graph.
    pub fn explain(&self) -> Explanation {
        let mut explanation = Explanation {
            graphs: 1,
            primitives: self.graph.nodes.len() - self.graph.inputs.len(),
            guards: self.takes.iter().cloned().collect(),
            ..Explanation::default()
        };
        self.program.explain(&mut explanation);
        explanation
    }
}

impl std::fmt::Debug for Loaded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Loaded(graph of {} nodes for {})", self.graph.nodes.len(), self.takes.as_deref().unwrap_or("?"))
    }
}

/// A captured tensor among the weights.
fn named(weights: &Weights, name: &str, ty: &TensorType) -> Result<Tensor> {
    let tensor = weights.get(name, &ty.dims)?;
    if tensor.dtype() != ty.dtype {
        return Err(Error::Weights {
            origin: weights.origin().to_owned(),
            message: format!("tensor `{name}` is {}, where the graph needs {ty}", tensor.ty()),
        });
    }
    Ok(tensor)
}

fn checksum(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

/// Writes both files.
pub(super) fn save(folder: &Path, graph: &Graph, takes: &str, captured: &[Tensor]) -> Result<()> {
    let failed = |path: &Path, e: std::io::Error| Error::Weights {
        origin: path.display().to_string(),
        message: format!("cannot be written: {e}"),
    };
    std::fs::create_dir_all(folder).map_err(|e| failed(folder, e))?;
    let mut weights = Weights::new();
    let mut values = Vec::with_capacity(captured.len());
    for (i, tensor) in captured.iter().enumerate() {
        let name = format!("captured.{i}");
        values.push(SavedValue::Named(name.clone(), tensor.ty().clone()));
        weights.insert(name, tensor.clone());
    }
    let bytes = weights.to_bytes()?;
    let saved = Saved {
        graph: graph.clone(),
        takes: Some(takes.to_owned()),
        checksum: Some(checksum(&bytes)),
        captured: values,
    };
    // A graph beside the weights of another one, should this end in between, is found out by the checksum.
    for (name, bytes) in [(WEIGHTS, &bytes[..]), (GRAPH, json::write(&saved)?.as_bytes())] {
        let path = folder.join(name);
        write_file(&path, bytes).map_err(|e| failed(&path, e))?;
    }
    Ok(())
}
