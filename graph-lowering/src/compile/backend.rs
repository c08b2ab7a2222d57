//! Backends: what runs a captured graph.

use super::explain::{Explanation, GraphCacheUse, KernelInfo, MemoryUse};
use super::graph_cache::GraphCache;
use super::options::{Mode, Options, unknown};
use crate::error::{Error, Result};
use crate::exec::{DeviceArray, Executable, KernelTime, bound::Bound};
use crate::fuse::Plan;
use crate::graph::{Graph, Varying, interpret::interpret};
use crate::literal::Literal;
use crate::passes;
use crate::tensor::{Repr, Tensor};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, RwLock, Weak};
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
    /// A captured graph simplified, and its program. `vary` says which numbers of the simplified graph vary.
    ///
    /// # Errors
    /// As [`Backend::compile`]; [`Error::Verify`] for a graph that breaks a rule.
    fn lower(&self, captured: &Graph, options: &Options, vary: &mut dyn FnMut(&Graph) -> Varying) -> Result<Lowered> {
        let mut graph = passes::optimise(captured)?;
        graph.varying = vary(&graph);
        let program = self.compile(&graph, options)?;
        Ok(Lowered { graph, program, cache: GraphCacheUse::Unused })
    }
}

/// What [`Backend::lower`] gives.
pub struct Lowered {
    /// The simplified graph.
    pub graph: Graph,
    /// What runs it.
    pub program: Box<dyn Program>,
    /// What the cache of graphs on disk did.
    pub cache: GraphCacheUse,
}

/// A graph ready to run.
pub trait Program: Send + Sync {
    /// The results for these arguments.
    ///
    /// # Errors
    /// What the device says.
    fn run(&self, args: &[Tensor]) -> Result<Vec<Tensor>>;
    /// A number for each of its kernels, the same for the same kernel.
    fn identities(&self) -> Vec<u64> {
        Vec::new()
    }
    /// How long each kernel takes for these arguments, as the mean of so many rounds.
    ///
    /// # Errors
    /// What the device says; by default, that there are no kernels to time.
    fn profile(&self, _args: &[Tensor], _rounds: usize) -> Result<Vec<KernelTime>> {
        Err(Error::Options("this backend has no kernels to time; use `tilewright`".into()))
    }
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
    runner: Runner,
    mode: Mode,
    device: Device,
    uploaded: Mutex<Uploaded>,
}

impl Backend for Fused {
    fn name(&self) -> &str {
        "tilewright"
    }
    fn compile(&self, graph: &Graph, options: &Options) -> Result<Box<dyn Program>> {
        Ok(Box::new(OnDevice::new(graph, None, &open(options)?, options)?))
    }
    fn lower(&self, captured: &Graph, options: &Options, vary: &mut dyn FnMut(&Graph) -> Varying) -> Result<Lowered> {
        let device = open(options)?;
        let place = GraphCache::new(captured, options, &device);
        if let Some((mut graph, plan)) = place.as_ref().and_then(GraphCache::load) {
            graph.varying = vary(&graph);
            // If no kernels come of it after all, it is made anew.
            if let Ok(program) = OnDevice::new(&graph, Some(plan), &device, options) {
                return Ok(Lowered { graph, program: Box::new(program), cache: GraphCacheUse::Hit });
            }
        }
        let mut graph = passes::optimise(captured)?;
        graph.varying = vary(&graph);
        let program = OnDevice::new(&graph, None, &device, options)?;
        let cache = place.map(|place| place.store(&graph, program.runner.executable().plan())).unwrap_or_default();
        Ok(Lowered { graph, program: Box::new(program), cache })
    }
}

fn open(options: &Options) -> Result<Device> {
    Ok(match options.device_name() {
        Some(name) => Device::open(name)?,
        None => Device::best()?,
    })
}

/// What calls do about memory.
enum Runner {
    /// Each has its own.
    Allocating(Executable),
    /// It is kept between them.
    Bound(Bound),
}

impl Runner {
    fn executable(&self) -> &Executable {
        match self {
            Runner::Allocating(e) => e,
            Runner::Bound(b) => b.executable(),
        }
    }
}

/// Host tensors copied to the device by the last call, so that weights are copied once.
#[derive(Default)]
struct Uploaded {
    /// The number of the call.
    call: u64,
    /// By the address of the values, which the reference keeps from being used for others (though it does not keep the values); with the
    /// last call that used it.
    arrays: HashMap<usize, (Weak<Literal>, Arc<DeviceArray>, u64)>,
}

impl OnDevice {
    /// The program of a simplified graph, with its plan if that is known.
    fn new(graph: &Graph, plan: Option<Plan>, device: &Device, options: &Options) -> Result<Self> {
        let mode = options.chosen_mode();
        let tuning = mode.is_tuned().then(|| options.tuning());
        let executable = Executable::planned(graph.clone(), plan, device, options.is_fused(), tuning.as_ref())?;
        let runner =
            if mode.is_bound() { Runner::Bound(Bound::new(executable)) } else { Runner::Allocating(executable) };
        Ok(Self { runner, mode, device: device.clone(), uploaded: Mutex::default() })
    }

    fn upload(&self, args: &[Tensor]) -> Result<Vec<Arc<DeviceArray>>> {
        let mut kept = self.uploaded.lock().unwrap_or_else(PoisonError::into_inner);
        kept.call += 1;
        let call = kept.call;
        let mut all = Vec::with_capacity(args.len());
        for tensor in args {
            all.push(match &tensor.0 {
                Repr::Device(d) if d.device() == self.device => d.clone(),
                Repr::Host(literal) => match kept.arrays.entry(Arc::as_ptr(literal).addr()) {
                    Entry::Occupied(mut known) => {
                        known.get_mut().2 = call;
                        known.get().1.clone()
                    }
                    Entry::Vacant(place) => {
                        let array = Arc::new(DeviceArray::upload(&self.device, literal)?);
                        place.insert((Arc::downgrade(literal), array.clone(), call));
                        array
                    }
                },
                _ => Arc::new(DeviceArray::upload(&self.device, tensor.to_literal()?.as_ref())?),
            });
        }
        kept.arrays.retain(|_, (_, _, last)| *last == call);
        Ok(all)
    }
}

impl Program for OnDevice {
    fn run(&self, args: &[Tensor]) -> Result<Vec<Tensor>> {
        let args = self.upload(args)?;
        let results = match &self.runner {
            Runner::Allocating(e) => e.run(&args)?.into_iter().map(Arc::new).collect(),
            Runner::Bound(b) => b.run(&args)?,
        };
        Ok(results.into_iter().map(|d| Tensor(Repr::Device(d))).collect())
    }

    fn identities(&self) -> Vec<u64> {
        let identity = |k: &crate::fuse::kernel::Kernel| {
            let mut h = DefaultHasher::new();
            (&k.def.id, &k.options).hash(&mut h);
            h.finish()
        };
        self.runner.executable().kernels().iter().map(identity).collect()
    }

    fn profile(&self, args: &[Tensor], rounds: usize) -> Result<Vec<KernelTime>> {
        self.runner.executable().profile(&self.upload(args)?, rounds)
    }

    fn explain(&self, out: &mut Explanation) {
        let executable = self.runner.executable();
        out.mode = self.mode.name();
        let memory = executable.memory();
        out.memory = MemoryUse { planned: memory.planned(), separate: memory.sum, least: memory.peak };
        out.device = self.device.name().to_owned();
        out.kernels = executable.kernels().len();
        out.bytes = executable.bytes();
        out.peak_bytes = executable.peak_bytes();
        out.refusals.clone_from(&executable.plan().refusals);
        out.tuned = executable.tuning().iter().map(ToString::to_string).collect();
        let info = |k: &crate::fuse::kernel::Kernel| KernelInfo {
            name: k.name().to_owned(),
            primitives: k.nodes().map(|n| format!("{n} = {}", executable.graph().nodes[n].op)).collect(),
            programs: k.grid,
            bytes: k.bytes(),
            flops: k.flops(),
            source: k.source().unwrap_or_else(|e| e.to_string()),
            ir: k.ir().unwrap_or_else(|e| e.to_string()),
        };
        out.groups = executable.kernels().iter().map(info).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_compiler::error::Loc;

    #[test]
    fn what_every_call_uses_is_copied_once() {
        let mut graph = Graph::new();
        let weight = Tensor::vector(&[1.0f32; 8]);
        for _ in 0..2 {
            let input = graph.add_input(weight.ty().clone(), Loc::UNKNOWN);
            graph.outputs = vec![input];
        }
        let device = Device::open("cpu").unwrap();
        let executable = Executable::new(graph, &device, true).unwrap();
        let runner = Runner::Allocating(executable);
        let program = OnDevice { runner, mode: Mode::Default, device, uploaded: Mutex::default() };
        let mut first: Option<Arc<DeviceArray>> = None;
        for i in 0..5 {
            let x = Tensor::vector(&[i as f32; 8]);
            let arrays = program.upload(&[x.clone(), weight.clone()]).unwrap();
            assert_eq!(arrays[0].read().unwrap(), x.to_literal().unwrap());
            let first = first.get_or_insert_with(|| arrays[1].clone());
            assert!(Arc::ptr_eq(first, &arrays[1]), "call {i} copies the weight again");
            // What only an earlier call used is let go.
            assert_eq!(program.uploaded.lock().unwrap().arrays.len(), 2);
        }
    }
}
