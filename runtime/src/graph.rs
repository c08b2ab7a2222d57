//! Device graphs: launches prepared once and submitted together, many times, with other memory if need be.
//!
//! On CUDA they are one CUDA graph, on the other devices as few submissions as the driver takes. Preparing compiles the
//! kernels, packs their arguments and checks the grids; a submission compares the memory it is given with what is bound and
//! replaces the pointers that differ.

use crate::args::{self, Words};
use crate::backend::{PackedArgs, RawGraph, RawLaunch, RawStream};
use crate::buffer::Memory;
use crate::device::{Device, DeviceInner};
use crate::error::{Error, Result};
use crate::launch::{CompiledKernel, Launch};
use crate::stream::same_device;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Launches that are submitted together, in order, on the device's default stream.
///
/// Memory is named by slots. The graph keeps none of it alive: each submission is given all of it.
pub struct DeviceGraph {
    // Goes before the kernels it refers to.
    raw: Option<Box<dyn RawGraph>>,
    nodes: Vec<Node>,
    slots: Vec<Slot>,
    device: Arc<DeviceInner>,
    /// Nodes whose pointers were replaced for this submission.
    changed: Vec<bool>,
    rebound: u64,
}

struct Node {
    kernel: Arc<CompiledKernel>,
    grid: [u32; 3],
    words: Words,
}

/// A piece of memory, as it is bound now.
struct Slot {
    addr: u64,
    handle: u64,
    bytes: u64,
    written: bool,
    uses: Vec<Use>,
}

/// A pointer to a slot's memory among the arguments of a node.
struct Use {
    node: usize,
    word: usize,
    region: usize,
}

/// Collects the launches of a [`DeviceGraph`].
pub struct DeviceGraphBuilder {
    device: Arc<DeviceInner>,
    nodes: Vec<Node>,
    slots: Vec<Slot>,
}

impl DeviceGraphBuilder {
    /// For launches on this memory, each piece in the slot of its position.
    ///
    /// # Errors
    /// [`Error::DifferentDevices`].
    pub fn new(device: &Device, memories: &[&Arc<Memory>]) -> Result<Self> {
        let device = device.inner.clone();
        let slot = |m: &&Arc<Memory>| {
            same_device("the graph and its memory", &device, &m.device)?;
            Ok(Slot { addr: m.addr(), handle: m.handle(), bytes: m.bytes(), written: false, uses: Vec::new() })
        };
        let slots = memories.iter().map(slot).collect::<Result<_>>()?;
        Ok(Self { device, nodes: Vec::new(), slots })
    }

    /// Compiles and packs a launch. `slots` names the memory of each of its views and slices, in the order of the
    /// parameters. A launch of an empty grid is left out.
    ///
    /// # Errors
    /// As [`Launch::launch`]; [`Error::Arguments`] if an argument's memory is not that of its slot.
    pub fn launch(&mut self, launch: &Launch<'_>, slots: &[usize]) -> Result<()> {
        let device = launch.device()?;
        same_device("the graph and the launch", &self.device, &device)?;
        let fail = |message: String| Error::Arguments { kernel: launch.def().name.to_owned(), message };
        let grid = launch.checked_grid(&device)?;
        let kernel = launch.variant(&device)?;
        let words = args::pack(launch.arguments(), device.backend.as_ref());
        let pointers = args::pointers(launch.arguments(), device.backend.as_ref());
        if pointers.len() != slots.len() {
            return Err(fail(format!("{} slots were named for {} pieces of memory", slots.len(), pointers.len())));
        }
        for (p, &slot) in pointers.iter().zip(slots) {
            let known = self.slots.get(slot).filter(|s| (s.addr, s.handle) == (p.memory.addr(), p.memory.handle()));
            if known.is_none() {
                return Err(fail(format!("the memory of an argument is not that of slot {slot}")));
            }
        }
        if grid.contains(&0) {
            return Ok(());
        }
        for (region, (p, &slot)) in pointers.iter().zip(slots).enumerate() {
            let slot = &mut self.slots[slot];
            slot.written |= p.written;
            slot.uses.push(Use { node: self.nodes.len(), word: p.word, region });
        }
        self.nodes.push(Node { kernel, grid, words });
        Ok(())
    }

    /// The graph.
    ///
    /// # Errors
    /// What the driver says.
    pub fn finish(self) -> Result<DeviceGraph> {
        let Self { device, nodes, slots } = self;
        let launches: Vec<RawLaunch<'_>> = nodes
            .iter()
            .map(|n| RawLaunch { kernel: n.kernel.loaded.as_ref(), grid: n.grid, words: &n.words.words })
            .collect();
        let raw = device.backend.graph(&launches)?;
        let changed = vec![false; nodes.len()];
        Ok(DeviceGraph { raw, nodes, slots, device, changed, rebound: 0 })
    }
}

impl DeviceGraph {
    /// Submits all launches on this memory: of the sizes that the graph was made for, in the order of the slots.
    ///
    /// # Errors
    /// [`Error::Arguments`] for memory that does not fit the graph, or what the driver says.
    pub fn launch(&mut self, memories: &[&Arc<Memory>]) -> Result<()> {
        self.bind(memories)?;
        if self.nodes.is_empty() {
            return Ok(());
        }
        self.device.counters.launches.fetch_add(self.nodes.len() as u64, Relaxed);
        self.device.counters.graph_launches.fetch_add(1, Relaxed);
        if let Some(raw) = &mut self.raw {
            return raw.launch(RawStream::DEFAULT);
        }
        for n in &self.nodes {
            let args = PackedArgs { words: &n.words.words, regions: &n.words.regions };
            n.kernel.loaded.launch(RawStream::DEFAULT, n.grid, &args)?;
        }
        Ok(())
    }

    /// How many launches it makes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Does it launch nothing?
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// How often a piece of memory was replaced by another.
    pub fn rebound(&self) -> u64 {
        self.rebound
    }

    /// How many of these pieces of memory are not those that are bound.
    pub fn differences(&self, memories: &[&Arc<Memory>]) -> usize {
        self.slots.iter().zip(memories).filter(|(s, m)| (s.addr, s.handle) != (m.addr(), m.handle())).count()
    }

    fn bind(&mut self, memories: &[&Arc<Memory>]) -> Result<()> {
        let fail = |message: String| Err(Error::Arguments { kernel: "a device graph".into(), message });
        if memories.len() != self.slots.len() {
            return fail(format!("it takes {} pieces of memory, not {}", self.slots.len(), memories.len()));
        }
        if self.differences(memories) == 0 {
            return Ok(());
        }
        // What the kernels were compiled for must hold: the alignment, the extents, and that what is written is nobody
        // else's.
        for (i, (slot, m)) in self.slots.iter().zip(memories).enumerate() {
            same_device("the graph and its memory", &self.device, &m.device)?;
            if m.bytes() != slot.bytes || m.addr() % 16 != slot.addr % 16 {
                return fail(format!(
                    "slot {i} was made for {} bytes; {} bytes at another alignment or of another size do not fit",
                    slot.bytes,
                    m.bytes()
                ));
            }
        }
        let mut all: Vec<(u64, u64, bool)> =
            self.slots.iter().zip(memories).map(|(s, m)| (m.addr(), m.handle(), s.written)).collect();
        all.retain(|&(addr, handle, _)| (addr, handle) != (0, 0));
        all.sort_unstable();
        if all.windows(2).any(|w| (w[0].0, w[0].1) == (w[1].0, w[1].1) && (w[0].2 || w[1].2)) {
            return fail("it writes memory that another of its slots has too".into());
        }
        self.changed.fill(false);
        let handles = self.device.backend.handles();
        for (slot, m) in self.slots.iter_mut().zip(memories) {
            let (addr, handle) = (m.addr(), m.handle());
            if (slot.addr, slot.handle) == (addr, handle) {
                continue;
            }
            for u in &slot.uses {
                let words = &mut self.nodes[u.node].words;
                let word = &mut words.words[u.word];
                *word = if handles { handle } else { *word - slot.addr + addr };
                let region = &mut words.regions[u.region];
                region.addr = region.addr - slot.addr + addr;
                self.changed[u.node] = true;
            }
            (slot.addr, slot.handle) = (addr, handle);
            self.rebound += 1;
        }
        let Some(raw) = &mut self.raw else { return Ok(()) };
        for (i, node) in self.nodes.iter().enumerate() {
            if self.changed[i] {
                let launch =
                    RawLaunch { kernel: node.kernel.loaded.as_ref(), grid: node.grid, words: &node.words.words };
                if raw.update(i, &launch).is_err() {
                    // The driver's copy has pointers of both kinds now: go on without it. If the device is lost, the
                    // launches to come say so.
                    self.raw = None;
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

impl fmt::Debug for DeviceGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceGraph({}, {} launches)", self.device.backend.info().name, self.nodes.len())
    }
}

impl fmt::Debug for DeviceGraphBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceGraphBuilder({}, {} launches)", self.device.backend.info().name, self.nodes.len())
    }
}
