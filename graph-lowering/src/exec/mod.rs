//! Execution: a graph's kernels with their buffers, ready to be called.
//!
//! **In**: a graph without composite primitives. **Out**: an [`Executable`]: kernels in order, and for each of their views where
//! it lies: in an input, in an output, or in an arena of the [memory plan](memory). A call allocates the arenas and the
//! outputs and launches the kernels; a [`bound`] call only launches them.

pub mod bound;
pub mod memory;
mod profile;

use crate::error::{Error, Result};
use crate::fuse::tune::{Tuned, Tuning, tune};
use crate::fuse::{self, kernel::Kernel};
use crate::graph::{Graph, NodeId, TensorType};
use crate::literal::Literal;
use crate::prim::Op;
use memory::{Interval, MemoryPlan};
pub use profile::KernelTime;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Once, OnceLock};
use tilewright_runtime::{Buffer, Device, DeviceKind, Launch, Memory};

/// A tensor in a device's memory.
#[derive(Clone, Debug)]
pub struct DeviceArray {
    pub(crate) ty: TensorType,
    buffer: Buffer<u8>,
}

impl DeviceArray {
    /// Copies a host tensor to a device.
    ///
    /// # Errors
    /// What the device says.
    pub fn upload(device: &Device, literal: &Literal) -> Result<Self> {
        Ok(Self { ty: literal.ty().clone(), buffer: device.buffer_from(literal.bytes())? })
    }

    /// Copies it to the host.
    ///
    /// # Errors
    /// What the device says.
    pub fn read(&self) -> Result<Arc<Literal>> {
        let bytes = self.buffer.to_vec()?;
        Literal::from_bytes(self.ty.clone(), bytes)
            .map(Arc::new)
            .ok_or_else(|| Error::Internal(format!("a buffer of {} bytes for {}", self.buffer.len(), self.ty)))
    }

    /// The device it is on.
    pub fn device(&self) -> Device {
        self.buffer.device()
    }
}

/// The memory that a value lies in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Home {
    Input(usize),
    /// Arena, and first byte in it.
    Arena(usize, usize),
    Output(usize),
}

/// What memory holds before the kernels run.
#[derive(Clone, Debug)]
struct Fill {
    node: NodeId,
    home: Home,
    /// Every byte the same, or else a tensor of this element's bits to copy.
    byte: Option<u8>,
    word: u64,
}

/// So many elements are one tile: beyond it registers, or the interpreter's caches, run out.
pub(crate) fn limits(device: &Device) -> fuse::Limits {
    match device.info().kind {
        DeviceKind::Cpu => fuse::Limits { row: 1 << 14, column: 1 << 14 },
        _ => fuse::Limits { row: 1 << 13, column: 64 },
    }
}

/// The kernels of a graph on a device.
#[derive(Debug)]
pub struct Executable {
    graph: Arc<Graph>,
    device: Device,
    plan: fuse::Plan,
    kernels: Vec<Kernel>,
    /// What was chosen for them, if they were tuned.
    tuned: Vec<Tuned>,
    /// Where the views of each kernel lie.
    homes: Vec<Vec<Home>>,
    memory: MemoryPlan,
    /// What each buffer for outputs holds, and the home of each output of the graph.
    outputs: Vec<NodeId>,
    results: Vec<Home>,
    fills: Vec<Fill>,
    /// What is copied to where no byte fills: made by the first call.
    constants: OnceLock<HashMap<NodeId, Buffer<u8>>>,
    /// Are the kernels compiled?
    compiled: Once,
}

/// The memory of one call.
struct Buffers<'a> {
    inputs: &'a [Arc<DeviceArray>],
    arenas: &'a [Buffer<u8>],
    outputs: &'a [Buffer<u8>],
}

impl Buffers<'_> {
    fn memory(&self, home: Home) -> Option<&Arc<Memory>> {
        let buffer = match home {
            Home::Input(i) => &self.inputs.get(i)?.buffer,
            Home::Arena(i, _) => self.arenas.get(i)?,
            Home::Output(i) => self.outputs.get(i)?,
        };
        Some(buffer.memory())
    }
}

impl Executable {
    /// Cuts a graph without composite primitives into kernels for a device.
    ///
    /// # Errors
    /// A broken invariant, or what the device says.
    pub fn new(graph: Graph, device: &Device, fusion: bool) -> Result<Self> {
        Self::tuned(graph, device, fusion, None)
    }

    /// The same with kernels tiled as measuring says, if it is said how to measure.
    ///
    /// # Errors
    /// As [`Executable::new`].
    pub fn tuned(graph: Graph, device: &Device, fusion: bool, tuning: Option<&Tuning>) -> Result<Self> {
        Self::planned(graph, None, device, fusion, tuning)
    }

    /// The same with a plan that is known and checked.
    pub(crate) fn planned(
        graph: Graph,
        plan: Option<fuse::Plan>,
        device: &Device,
        fusion: bool,
        tuning: Option<&Tuning>,
    ) -> Result<Self> {
        let graph = Arc::new(if fusion { graph } else { crate::passes::expand_attention(&graph)? });
        let plan = match plan {
            Some(plan) => plan,
            None => fuse::plan(&graph, fusion, limits(device)).map_err(Error::Internal)?,
        };
        let mut kernels =
            plan.groups.iter().map(|g| fuse::kernel::kernel(&graph, g, device)).collect::<Result<Vec<_>>>()?;
        let tuned = match tuning {
            Some(how) => tune(&graph, &mut kernels, device, how)?,
            None => Vec::new(),
        };
        let mut this = Self {
            tuned,
            graph,
            device: device.clone(),
            plan,
            kernels,
            homes: Vec::new(),
            memory: MemoryPlan::default(),
            outputs: Vec::new(),
            results: Vec::new(),
            fills: Vec::new(),
            constants: OnceLock::new(),
            compiled: Once::new(),
        };
        this.place()?;
        Ok(this)
    }

    /// Decides where every value lies.
    fn place(&mut self) -> Result<()> {
        let graph = self.graph.clone();
        let mut homes: HashMap<NodeId, Home> =
            graph.inputs.iter().enumerate().map(|(i, &node)| (node, Home::Input(i))).collect();
        for &root in self.plan.outputs.iter().collect::<BTreeSet<_>>() {
            if graph.nodes[root].op != Op::Input {
                homes.insert(root, Home::Output(self.outputs.len()));
                self.outputs.push(root);
            }
        }
        let mut between: BTreeMap<NodeId, Interval> = BTreeMap::new();
        for (i, kernel) in self.kernels.iter().enumerate() {
            for node in kernel.params.iter().map(|p| p.node).filter(|n| !homes.contains_key(n)) {
                // What is filled is so before the first kernel.
                let first = if self.plan.fills.contains_key(&node) { 0 } else { i };
                let bytes = graph.ty(node).bytes();
                between.entry(node).or_insert(Interval { node, bytes, first, last: i }).last = i;
            }
        }
        self.memory = MemoryPlan::new(&between.into_values().collect::<Vec<_>>());
        homes.extend(self.memory.places.iter().map(|(&node, p)| (node, Home::Arena(p.arena, p.offset))));

        let home = |node: NodeId| {
            homes.get(&node).copied().ok_or_else(|| Error::Internal(format!("{node} has no place in memory")))
        };
        self.homes = self
            .kernels
            .iter()
            .map(|k| k.params.iter().map(|p| home(p.node)).collect::<Result<Vec<_>>>())
            .collect::<Result<_>>()?;
        self.results = self.plan.outputs.iter().map(|&root| home(root)).collect::<Result<_>>()?;
        for (&node, &word) in &self.plan.fills {
            let Some(&home) = homes.get(&node) else { continue };
            let element = Literal::from_fn(TensorType::new(graph.ty(node).dtype, [1]), |_| word);
            let byte = element.bytes().first().copied().filter(|b| element.bytes().iter().all(|x| x == b));
            if graph.ty(node).bytes() > 0 {
                self.fills.push(Fill { node, home, byte, word });
            }
        }
        Ok(())
    }

    /// The kernels, in order.
    pub fn kernels(&self) -> &[Kernel] {
        &self.kernels
    }

    /// The groups behind the kernels, and why others were not formed.
    pub fn plan(&self) -> &fuse::Plan {
        &self.plan
    }

    /// What was chosen for the kernels, if they were tuned.
    pub fn tuning(&self) -> &[Tuned] {
        &self.tuned
    }

    /// The graph it executes.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Where the values between kernels lie.
    pub fn memory(&self) -> &MemoryPlan {
        &self.memory
    }

    /// Bytes that all kernels read and write.
    pub fn bytes(&self) -> u64 {
        self.kernels.iter().map(Kernel::bytes).sum()
    }

    /// Bytes of a call: its results and all that lies between kernels.
    pub fn peak_bytes(&self) -> u64 {
        let outputs: usize = self.outputs.iter().map(|&node| self.graph.ty(node).bytes()).sum();
        (self.memory.planned() + outputs) as u64
    }

    fn alloc_arenas(&self) -> Result<Vec<Buffer<u8>>> {
        self.memory.arenas.iter().map(|&bytes| Ok(self.device.alloc(bytes)?)).collect()
    }

    fn alloc_outputs(&self) -> Result<Vec<Buffer<u8>>> {
        self.outputs.iter().map(|&node| Ok(self.device.alloc(self.graph.ty(node).bytes())?)).collect()
    }

    /// Fills what the kernels do not write as a whole.
    fn fill(&self, buffers: &Buffers<'_>) -> Result<()> {
        for f in &self.fills {
            let memory = buffers.memory(f.home).ok_or_else(|| Error::Internal(format!("{} has no memory", f.node)))?;
            let at = if let Home::Arena(_, offset) = f.home { offset as u64 } else { 0 };
            let bytes = self.graph.ty(f.node).bytes() as u64;
            match f.byte {
                Some(byte) => memory.fill_range(at, bytes, byte)?,
                None => {
                    let constants = self.constants()?;
                    let from = constants.get(&f.node).ok_or_else(|| Error::Internal("a constant is missing".into()))?;
                    memory.copy_range(at, from.memory(), 0, bytes)?;
                }
            }
        }
        Ok(())
    }

    fn constants(&self) -> Result<&HashMap<NodeId, Buffer<u8>>> {
        if let Some(made) = self.constants.get() {
            return Ok(made);
        }
        let mut all = HashMap::new();
        for f in self.fills.iter().filter(|f| f.byte.is_none()) {
            let value = Literal::from_fn(self.graph.ty(f.node).clone(), |_| f.word);
            all.insert(f.node, self.device.buffer_from(value.bytes())?);
        }
        // Two threads may have made them: one of both is kept.
        Ok(self.constants.get_or_init(|| all))
    }

    /// Compiles, or loads from the cache on disk, what the first call will launch: kernels side by side, which assemblers
    /// and drivers allow. What fails here fails again, with its error, when it is launched.
    fn compile(&self, buffers: &Buffers<'_>) -> Result<()> {
        let mut launches = Vec::with_capacity(self.kernels.len());
        for (kernel, homes) in self.kernels.iter().zip(&self.homes).filter(|(k, _)| k.grid > 0) {
            launches.push(self.launch(kernel, homes, buffers)?);
        }
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some(launch) = launches.get(next.fetch_add(1, Relaxed)) {
                let _ = launch.compile();
            }
        };
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get()).min(launches.len());
        std::thread::scope(|scope| {
            (1..threads).for_each(|_| {
                scope.spawn(work);
            });
            work();
        });
        Ok(())
    }

    fn launch<'a>(&self, kernel: &Kernel, homes: &[Home], buffers: &'a Buffers<'_>) -> Result<Launch<'a>> {
        let mut places = Vec::with_capacity(kernel.params.len());
        for (p, &home) in kernel.params.iter().zip(homes) {
            let memory = buffers.memory(home);
            let memory = memory.ok_or_else(|| Error::Internal(format!("{} has no memory", p.node)))?;
            let start = if let Home::Arena(_, offset) = home { offset / p.dtype.bytes() } else { 0 };
            places.push((memory, start));
        }
        let launch = Launch::new(kernel.def.clone(), kernel.args(&places)?).grid([kernel.grid]).options(kernel.options);
        Ok(launch.on(&self.device))
    }

    /// Calls a function with each kernel that runs, its launch, and the homes of its views.
    fn launches(
        &self,
        buffers: &Buffers<'_>,
        mut each: impl FnMut(&Kernel, &Launch<'_>, &[Home]) -> tilewright_runtime::Result<()>,
    ) -> Result<()> {
        let mut result = Ok(());
        self.compiled.call_once(|| result = self.compile(buffers));
        result?;
        for (kernel, homes) in self.kernels.iter().zip(&self.homes) {
            if kernel.grid > 0 {
                each(kernel, &self.launch(kernel, homes, buffers)?, homes)?;
            }
        }
        Ok(())
    }

    fn check(&self, args: &[Arc<DeviceArray>]) -> Result<()> {
        let fits = args.len() == self.graph.inputs.len()
            && args.iter().zip(&self.graph.inputs).all(|(a, &i)| a.ty == *self.graph.ty(i));
        if fits { Ok(()) } else { Err(Error::Internal("the arguments are not what the graph was captured for".into())) }
    }

    fn result(&self, i: usize, args: &[Arc<DeviceArray>], outputs: &[Buffer<u8>]) -> Result<DeviceArray> {
        let buffer = match self.results[i] {
            Home::Input(k) => args.get(k).map(|a| &a.buffer),
            Home::Output(k) => outputs.get(k),
            Home::Arena(..) => None,
        };
        let output = self.graph.outputs[i];
        let buffer = buffer.ok_or_else(|| Error::Internal(format!("output {output} was not stored")))?.clone();
        Ok(DeviceArray { ty: self.graph.ty(output).clone(), buffer })
    }

    /// Runs all kernels.
    ///
    /// # Errors
    /// What the device says.
    pub fn run(&self, args: &[Arc<DeviceArray>]) -> Result<Vec<DeviceArray>> {
        self.run_with(args, |_, launch| launch.launch())
    }

    /// Runs all kernels, each as `each` does it.
    fn run_with(
        &self,
        args: &[Arc<DeviceArray>],
        mut each: impl FnMut(&Kernel, &Launch<'_>) -> tilewright_runtime::Result<()>,
    ) -> Result<Vec<DeviceArray>> {
        self.check(args)?;
        let (arenas, outputs) = (self.alloc_arenas()?, self.alloc_outputs()?);
        let buffers = Buffers { inputs: args, arenas: &arenas, outputs: &outputs };
        self.fill(&buffers)?;
        self.launches(&buffers, |kernel, launch, _| each(kernel, launch))?;
        (0..self.results.len()).map(|i| self.result(i, args, &outputs)).collect()
    }
}
