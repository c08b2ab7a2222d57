//! Execution: a graph's kernels with their buffers, ready to be called.

use crate::error::{Error, Result};
use crate::fuse::{self, kernel::Kernel};
use crate::graph::{Graph, NodeId, TensorType};
use crate::literal::Literal;
use crate::prim::{Class, Op};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tilewright_runtime::{Buffer, Device, DeviceKind, KernelArg, Launch};

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

/// The kernels of a graph on a device.
#[derive(Debug)]
pub struct Executable {
    graph: Arc<Graph>,
    device: Device,
    plan: fuse::Plan,
    kernels: Vec<Kernel>,
    /// The last kernel that reads each buffer.
    last_use: HashMap<NodeId, usize>,
}

impl Executable {
    /// Cuts a graph without composite primitives into kernels for a device.
    ///
    /// # Errors
    /// A broken invariant, or what the device says.
    pub fn new(graph: Graph, device: &Device, fusion: bool) -> Result<Self> {
        // A row of so many elements is one tile: beyond it registers, or the interpreter's caches, run out.
        let row_limit = if device.info().kind == DeviceKind::Cpu { 1 << 14 } else { 1 << 13 };
        let graph = Arc::new(if fusion { graph } else { crate::passes::expand_attention(&graph)? });
        let plan = fuse::plan(&graph, fusion, row_limit).map_err(Error::Internal)?;
        let kernels =
            plan.groups.iter().map(|g| fuse::kernel::kernel(&graph, g, device)).collect::<Result<Vec<_>>>()?;
        let mut last_use = HashMap::new();
        for (i, k) in kernels.iter().enumerate() {
            for p in &k.params {
                last_use.insert(p.node, i);
            }
        }
        for &o in &plan.outputs {
            last_use.insert(o, usize::MAX);
        }
        Ok(Self { graph, device: device.clone(), plan, kernels, last_use })
    }

    /// The kernels, in order.
    pub fn kernels(&self) -> &[Kernel] {
        &self.kernels
    }

    /// The groups behind the kernels, and why others were not formed.
    pub fn plan(&self) -> &fuse::Plan {
        &self.plan
    }

    /// The graph it executes.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Bytes that all kernels read and write.
    pub fn bytes(&self) -> u64 {
        let size = |p: &fuse::kernel::Param| (p.dims.iter().product::<usize>() * p.dtype.bytes()) as u64;
        self.kernels.iter().flat_map(|k| &k.params).map(size).sum()
    }

    fn alloc(&self, node: NodeId) -> Result<Buffer<u8>> {
        let ty = self.graph.ty(node);
        match self.plan.fills.get(&node) {
            None => Ok(self.device.alloc(ty.bytes())?),
            Some(0) => Ok(self.device.zeros(ty.bytes())?),
            Some(&word) => Ok(self.device.buffer_from(Literal::from_fn(ty.clone(), |_| word).bytes())?),
        }
    }

    /// Runs all kernels.
    ///
    /// # Errors
    /// What the device says.
    pub fn run(&self, args: &[Arc<DeviceArray>]) -> Result<Vec<DeviceArray>> {
        let mut buffers: BTreeMap<NodeId, Buffer<u8>> = BTreeMap::new();
        for (&input, arg) in self.graph.inputs.iter().zip(args) {
            buffers.insert(input, arg.buffer.clone());
        }
        // Also when no kernel writes into it: a tensor of parts without elements.
        for &node in self.plan.fills.keys().chain(&self.plan.outputs) {
            if self.graph.nodes[node].op.class() == Class::Assemble {
                buffers.insert(node, self.alloc(node)?);
            }
        }
        for (i, kernel) in self.kernels.iter().enumerate() {
            for p in &kernel.params {
                if let Entry::Vacant(place) = buffers.entry(p.node) {
                    place.insert(self.alloc(p.node)?);
                }
            }
            self.launch(kernel, &buffers)?;
            for p in &kernel.params {
                if self.last_use.get(&p.node) == Some(&i) && self.graph.nodes[p.node].op != Op::Input {
                    buffers.remove(&p.node);
                }
            }
        }
        let result = |(&root, &output): (&NodeId, &NodeId)| {
            let buffer = buffers.get(&root).cloned();
            let buffer = buffer.ok_or_else(|| Error::Internal(format!("output {root} was not stored")))?;
            Ok(DeviceArray { ty: self.graph.ty(output).clone(), buffer })
        };
        self.plan.outputs.iter().zip(&self.graph.outputs).map(result).collect()
    }

    fn launch(&self, kernel: &Kernel, buffers: &BTreeMap<NodeId, Buffer<u8>>) -> Result<()> {
        if kernel.grid == 0 {
            return Ok(());
        }
        let mut args = Vec::with_capacity(kernel.params.len());
        for p in &kernel.params {
            let buffer = buffers.get(&p.node).ok_or_else(|| Error::Internal(format!("{} has no buffer", p.node)))?;
            let arg = KernelArg::from_memory(buffer.memory(), p.dtype, p.offset, &p.dims, &p.strides, p.access)?;
            args.push((p.name, arg));
        }
        Launch::new(kernel.def.clone(), args).grid([kernel.grid]).options(kernel.options).on(&self.device).launch()?;
        Ok(())
    }
}
