//! Backends: what runs a captured graph.

use super::explain::{Explanation, KernelInfo};
use super::options::{Options, unknown};
use crate::error::{Error, Result};
use crate::exec::{DeviceArray, Executable};
use crate::graph::{Graph, interpret::interpret};
use crate::tensor::{Repr, Tensor};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, RwLock};
use tilewright_runtime::Device;

/// What turns graphs into programs.
pub trait Backend: Send + Sync {
    /// Its name.
    fn name(&self) -> &str;
    /// A program for a graph.
    ///
    /// # Errors
    /// Whatever keeps it from running the graph.
    fn compile(&self, graph: &Graph, options: &Options) -> Result<Box<dyn Program>>;
}

/// A graph ready to run.
pub trait Program: Send + Sync {
    /// The results for these arguments.
    ///
    /// # Errors
    /// What the device says.
    fn run(&self, args: &[Tensor]) -> Result<Vec<Tensor>>;
    /// Adds what there is to say of it.
    fn explain(&self, _: &mut Explanation) {}
}

type Registry = RwLock<BTreeMap<String, Arc<dyn Backend>>>;

fn registry() -> &'static Registry {
    static BACKENDS: LazyLock<Registry> = LazyLock::new(|| {
        let all: [Arc<dyn Backend>; 3] = [Arc::new(Eager), Arc::new(Interpreter), Arc::new(Fused)];
        RwLock::new(all.into_iter().map(|b| (b.name().to_owned(), b)).collect())
    });
    &BACKENDS
}

/// The names of all backends: `eager` (no graph), `interpreter` (the graph, on the host), `tilewright` (generated kernels, the
/// default), and those registered.
pub fn list_backends() -> Vec<String> {
    registry().read().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
}

/// Adds a backend, or replaces the one of the same name.
pub fn register_backend(backend: Arc<dyn Backend>) {
    registry().write().unwrap_or_else(PoisonError::into_inner).insert(backend.name().to_owned(), backend);
}

pub(super) fn find(name: &str) -> Result<Arc<dyn Backend>> {
    let all = registry().read().unwrap_or_else(PoisonError::into_inner);
    all.get(name).cloned().ok_or_else(|| {
        let names: Vec<&str> = all.keys().map(String::as_str).collect();
        Error::Options(unknown("backend", name, &names))
    })
}

/// Calls the function itself; `compile` never asks it for a program.
struct Eager;

impl Backend for Eager {
    fn name(&self) -> &str {
        "eager"
    }
    fn compile(&self, graph: &Graph, options: &Options) -> Result<Box<dyn Program>> {
        Interpreter.compile(graph, options)
    }
}

/// Runs the graph on the host, node by node.
struct Interpreter;

struct Interpreted(Graph);

impl Backend for Interpreter {
    fn name(&self) -> &str {
        "interpreter"
    }
    fn compile(&self, graph: &Graph, _: &Options) -> Result<Box<dyn Program>> {
        Ok(Box::new(Interpreted(graph.clone())))
    }
}

impl Program for Interpreted {
    fn run(&self, args: &[Tensor]) -> Result<Vec<Tensor>> {
        let args = args.iter().map(Tensor::to_literal).collect::<Result<Vec<_>>>()?;
        Ok(interpret(&self.0, &args)?.into_iter().map(Tensor::from).collect())
    }
}

/// Generates kernels.
struct Fused;

struct OnDevice {
    executable: Executable,
    device: Device,
    /// Host tensors copied to the device before, by their address, which they keep as long as they are here: weights are
    /// copied once.
    uploaded: Mutex<HashMap<usize, (Tensor, Arc<DeviceArray>)>>,
    /// How many of the last inputs are worth keeping on the device: those the function captured.
    inputs: usize,
}

impl Backend for Fused {
    fn name(&self) -> &str {
        "tilewright"
    }
    fn compile(&self, graph: &Graph, options: &Options) -> Result<Box<dyn Program>> {
        let device = match options.device_name() {
            Some(name) => Device::open(name)?,
            None => Device::best()?,
        };
        let executable = Executable::new(graph.clone(), &device, options.is_fused())?;
        Ok(Box::new(OnDevice { executable, device, uploaded: Mutex::default(), inputs: graph.inputs.len() }))
    }
}

/// Tensors up to this many bytes are copied again rather than kept.
const SMALL: usize = 4096;
/// Tensors kept on the device beyond the inputs of one call would be arguments of earlier calls: they are let go.
const KEPT_CALLS: usize = 1;

impl OnDevice {
    fn upload(&self, tensor: &Tensor) -> Result<Arc<DeviceArray>> {
        match &tensor.0 {
            Repr::Device(d) if d.device() == self.device => Ok(d.clone()),
            Repr::Host(literal) if literal.bytes().len() > SMALL => {
                let key = Arc::as_ptr(literal).addr();
                let mut kept = self.uploaded.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some((_, array)) = kept.get(&key) {
                    return Ok(array.clone());
                }
                if kept.len() > self.inputs * KEPT_CALLS {
                    kept.clear();
                }
                let array = Arc::new(DeviceArray::upload(&self.device, literal)?);
                kept.insert(key, (tensor.clone(), array.clone()));
                Ok(array)
            }
            _ => Ok(Arc::new(DeviceArray::upload(&self.device, tensor.to_literal()?.as_ref())?)),
        }
    }
}

impl Program for OnDevice {
    fn run(&self, args: &[Tensor]) -> Result<Vec<Tensor>> {
        let args = args.iter().map(|t| self.upload(t)).collect::<Result<Vec<_>>>()?;
        let results = self.executable.run(&args)?;
        Ok(results.into_iter().map(|d| Tensor(Repr::Device(Arc::new(d)))).collect())
    }

    fn explain(&self, out: &mut Explanation) {
        let executable = &self.executable;
        out.device = self.device.name().to_owned();
        out.kernels = executable.kernels().len();
        out.bytes = executable.bytes();
        out.refusals.clone_from(&executable.plan().refusals);
        let info = |k: &crate::fuse::kernel::Kernel| KernelInfo {
            name: k.name().to_owned(),
            primitives: k.nodes().map(|n| format!("{n} = {}", executable.graph().nodes[n].op)).collect(),
            programs: k.grid,
            source: k.source().unwrap_or_else(|e| e.to_string()),
            ir: k.ir().unwrap_or_else(|e| e.to_string()),
        };
        out.groups = executable.kernels().iter().map(info).collect();
    }
}
