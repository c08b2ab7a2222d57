//! Named tensors on disk, as safetensors: the format in which models are exchanged.

use crate::compile::nearest;
use crate::error::{Error, Result};
use crate::graph::{TensorType, verify::check_size};
use crate::literal::Literal;
use crate::tensor::Tensor;
use safetensors::tensor::{Dtype, SafeTensors, View, serialize};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use tilewright_compiler::DType;

/// Tensors by name, as a safetensors file holds them.
///
/// ```
/// use tilewright_graph_lowering::{Tensor, Weights};
/// # fn main() -> tilewright_graph_lowering::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("model.safetensors");
/// let mut weights = Weights::new();
/// weights.insert("scale", Tensor::vector(&[1.0f32, 2.0, 3.0]));
/// weights.write(&path)?;
///
/// let weights = Weights::read(&path)?;
/// let scale = weights.get("scale", &[3])?; // its name, and the extents it must have
/// assert_eq!(scale.to_vec::<f32>()?, [1.0, 2.0, 3.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Weights {
    tensors: BTreeMap<String, Tensor>,
    metadata: BTreeMap<String, String>,
    /// What messages call them: the file, if they come from one.
    origin: String,
}

impl Weights {
    /// No tensors.
    pub fn new() -> Self {
        Self { origin: "the weights".into(), ..Self::default() }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// [`Error::Weights`] if it cannot be read, is no safetensors file, or has an element type that Tilewright lacks.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let origin = path.as_ref().display().to_string();
        let bytes = std::fs::read(path.as_ref())
            .map_err(|e| Error::Weights { origin: origin.clone(), message: format!("cannot be read: {e}") })?;
        Self::parse(&bytes, &origin)
    }

    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// As [`Weights::read`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::parse(bytes, "the weights")
    }

    pub(crate) fn parse(bytes: &[u8], origin: &str) -> Result<Self> {
        let failed = |message: String| Error::Weights { origin: origin.to_owned(), message };
        let damaged = |e: String| failed(format!("is no whole safetensors file: {e}"));
        check_offsets(bytes).map_err(damaged)?;
        let file = SafeTensors::deserialize(bytes).map_err(|e| damaged(e.to_string()))?;
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(|e| damaged(e.to_string()))?;
        let mut tensors = BTreeMap::new();
        for (name, view) in file.iter() {
            let refused = |why: String| failed(format!("tensor `{name}`: {why}"));
            let dtype = from_file(view.dtype()).ok_or_else(|| {
                refused(format!("its element type {} does not exist here; convert it to one of {KNOWN}", view.dtype()))
            })?;
            let ty = TensorType::new(dtype, view.shape());
            check_size(&ty).map_err(refused)?;
            if dtype == DType::Bool
                && let Some(byte) = view.data().iter().find(|&&b| b > 1)
            {
                return Err(refused(format!("a truth value is 0 or 1, not {byte}")));
            }
            let literal = Literal::from_bytes(ty, view.data().to_vec())
                .ok_or_else(|| refused("its bytes are not as many as its extents need".into()))?;
            tensors.insert(name.to_owned(), literal.into());
        }
        let metadata = header.metadata().clone().unwrap_or_default().into_iter().collect();
        Ok(Self { tensors, metadata, origin: origin.to_owned() })
    }

    /// What messages call them.
    pub(crate) fn origin(&self) -> &str {
        &self.origin
    }

    /// Adds a tensor, or replaces the one of the same name.
    pub fn insert(&mut self, name: impl Into<String>, tensor: Tensor) {
        self.tensors.insert(name.into(), tensor);
    }

    /// The tensor of this name, which must have these extents.
    ///
    /// # Errors
    /// [`Error::Weights`] if there is none, or it has others.
    pub fn get(&self, name: &str, dims: &[usize]) -> Result<Tensor> {
        let failed = |message| Error::Weights { origin: self.origin.clone(), message };
        let tensor = self.find(name).ok_or_else(|| {
            let guess = nearest(name, self.tensors.keys().map(String::as_str));
            let guess = guess.map_or_else(String::new, |n| format!("; did you mean `{n}`?"));
            failed(format!("there is no tensor `{name}` among the {} in it{guess}", self.tensors.len()))
        })?;
        if tensor.dims() != dims {
            return Err(failed(format!("tensor `{name}` is {}, where extents {dims:?} are needed", tensor.ty())));
        }
        Ok(tensor.clone())
    }

    /// The tensor of this name, if there is one.
    pub fn find(&self, name: &str) -> Option<&Tensor> {
        self.tensors.get(name)
    }

    /// All tensors with their names, in the order of these.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        self.tensors.iter().map(|(n, t)| (n.as_str(), t))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.tensors.len()
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.tensors.is_empty()
    }

    /// Texts that the file holds beside the tensors, by name.
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    /// The same for a file to be written.
    pub fn metadata_mut(&mut self) -> &mut BTreeMap<String, String> {
        &mut self.metadata
    }

    /// The bytes of a file.
    ///
    /// # Errors
    /// The mistake of a failed tensor; what the device says when values are read.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut all = Vec::with_capacity(self.tensors.len());
        for (name, tensor) in &self.tensors {
            all.push((name, Stored(tensor.to_literal()?)));
        }
        // (An ordinary map would do, but this is the one the crate takes.)
        let metadata: HashMap<String, String> = self.metadata.clone().into_iter().collect();
        serialize(all, (!metadata.is_empty()).then_some(metadata))
            .map_err(|e| Error::Weights { origin: self.origin.clone(), message: format!("cannot be written: {e}") })
    }

    /// Writes a file: readers see the old one or the new one whole.
    ///
    /// # Errors
    /// As [`Weights::to_bytes`]; [`Error::Weights`] if the file cannot be written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        write_file(path, &self.to_bytes()?).map_err(|e| Error::Weights {
            origin: path.display().to_string(),
            message: format!("cannot be written: {e}"),
        })
    }
}

/// Writes a file beside its place and moves it there.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = path.parent().filter(|f| !f.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".new-");
    #[cfg(unix)]
    {
        // Readable as other files are; temporary files are private otherwise.
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let mut file = builder.tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.persist(path).map_err(|e| e.error)?;
    Ok(())
}

/// A tensor as the crate wants to see it.
struct Stored(Arc<Literal>);

impl View for Stored {
    fn dtype(&self) -> Dtype {
        to_file(self.0.ty().dtype)
    }
    fn shape(&self) -> &[usize] {
        &self.0.ty().dims
    }
    fn data(&self) -> Cow<'_, [u8]> {
        self.0.bytes().into()
    }
    fn data_len(&self) -> usize {
        self.0.bytes().len()
    }
}

fn to_file(dtype: DType) -> Dtype {
    match dtype {
        DType::Bool => Dtype::BOOL,
        DType::I8 => Dtype::I8,
        DType::I16 => Dtype::I16,
        DType::I32 => Dtype::I32,
        DType::I64 => Dtype::I64,
        DType::U8 => Dtype::U8,
        DType::U16 => Dtype::U16,
        DType::U32 => Dtype::U32,
        DType::U64 => Dtype::U64,
        DType::F16 => Dtype::F16,
        DType::BF16 => Dtype::BF16,
        DType::F32 => Dtype::F32,
        DType::F64 => Dtype::F64,
    }
}

const KNOWN: &str = "BOOL, I8 to I64, U8 to U64, F16, BF16, F32, F64";

fn from_file(dtype: Dtype) -> Option<DType> {
    DType::ALL.into_iter().find(|&d| to_file(d) == dtype)
}

/// Are all offsets within the file? The crate adds them up without minding overflow.
fn check_offsets(bytes: &[u8]) -> std::result::Result<(), String> {
    let Some((size, rest)) = bytes.split_first_chunk::<8>() else { return Err("it is shorter than 8 bytes".into()) };
    let header = usize::try_from(u64::from_le_bytes(*size)).ok().and_then(|n| rest.get(..n));
    let Some(header) = header else { return Err("it is shorter than its header".into()) };
    let entries: HashMap<String, serde_json::Value> =
        serde_json::from_slice(header).map_err(|e| format!("its header is not readable: {e}"))?;
    let end = (rest.len() - header.len()) as u64;
    let beyond = |entry: &serde_json::Value| {
        let offsets = entry.get("data_offsets").and_then(serde_json::Value::as_array);
        offsets.is_some_and(|all| all.iter().filter_map(serde_json::Value::as_u64).any(|o| o > end))
    };
    match entries.iter().find(|(_, entry)| beyond(entry)) {
        Some((name, _)) => Err(format!("it ends before tensor `{name}` does")),
        None => Ok(()),
    }
}
