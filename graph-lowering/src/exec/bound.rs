//! Calls at the least cost to the host: everything is allocated and prepared by the first of them.
//!
//! A [`Bound`] executable keeps its arenas, and a few *sets*: buffers for the outputs with a device graph that writes them. A
//! call takes a set whose outputs nobody holds any more, replaces the inputs that are not those of the set's last call,
//! and submits the graph. Results that the caller still holds are never written again: while all sets are held, a call
//! makes a new one or gives an old one new buffers.

use super::{Buffers, DeviceArray, Executable, Home};
use crate::error::{Error, Result};
use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError};
use tilewright_runtime::{Buffer, DeviceGraph, DeviceGraphBuilder, Memory};

/// Most sets of outputs. Loops that feed results back use two; who collects results needs new buffers in any case.
const MOST_SETS: usize = 4;

/// An executable that launches without allocating or preparing anything.
#[derive(Debug)]
pub struct Bound {
    executable: Executable,
    /// Held while a call is submitted: calls on one device run in the order of submission, so that they can share the arenas.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    arenas: Option<Vec<Buffer<u8>>>,
    sets: Vec<Set>,
    calls: u64,
}

#[derive(Debug)]
struct Set {
    graph: DeviceGraph,
    outputs: Vec<Buffer<u8>>,
    /// The results as they are handed out; `None` for those that are inputs.
    results: Vec<Option<Arc<DeviceArray>>>,
    /// The last call that used it.
    call: u64,
}

impl Set {
    fn results(executable: &Executable, outputs: &[Buffer<u8>]) -> Result<Vec<Option<Arc<DeviceArray>>>> {
        let one = |i: usize| match executable.results[i] {
            Home::Input(_) => Ok(None),
            _ => executable.result(i, &[], outputs).map(|r| Some(Arc::new(r))),
        };
        (0..executable.results.len()).map(one).collect()
    }

    /// Does nobody hold any of the outputs? Nobody can begin to, then: there is no reference to copy but this one.
    fn is_free(&self) -> bool {
        let unshared = |r: &Arc<DeviceArray>| Arc::strong_count(r) == 1;
        let mut held = !self.results.iter().flatten().all(unshared);
        for output in &self.outputs {
            let ours =
                self.results.iter().flatten().filter(|r| Arc::ptr_eq(r.buffer.memory(), output.memory())).count();
            held |= Arc::strong_count(output.memory()) != 1 + ours;
        }
        // What the last holders did with them comes before what is done now.
        fence(Ordering::Acquire);
        !held
    }
}

impl Bound {
    /// Of an executable.
    pub fn new(executable: Executable) -> Self {
        Self { executable, state: Mutex::default() }
    }

    /// What it executes.
    pub fn executable(&self) -> &Executable {
        &self.executable
    }

    /// Runs all kernels.
    ///
    /// # Errors
    /// What the device says.
    pub fn run(&self, args: &[Arc<DeviceArray>]) -> Result<Vec<Arc<DeviceArray>>> {
        let e = &self.executable;
        e.check(args)?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { arenas, sets, calls } = &mut *state;
        *calls += 1;
        let arenas: &[Buffer<u8>] = match arenas {
            Some(arenas) => arenas,
            None => arenas.insert(e.alloc_arenas()?),
        };
        // Of the free sets the one that needs least to be replaced.
        let differences = |set: &Set| set.graph.differences(&memories(args, arenas, &set.outputs));
        let free = sets.iter().enumerate().filter(|(_, s)| s.is_free()).min_by_key(|(_, s)| differences(s));
        let chosen = match free {
            Some((i, _)) => i,
            None if sets.len() < MOST_SETS => {
                sets.push(self.make(args, arenas)?);
                sets.len() - 1
            }
            None => {
                let oldest = sets.iter().enumerate().min_by_key(|(_, s)| s.call).map_or(0, |(i, _)| i);
                let outputs = e.alloc_outputs()?;
                sets[oldest].results = Set::results(e, &outputs)?;
                sets[oldest].outputs = outputs;
                oldest
            }
        };
        let set = &mut sets[chosen];
        set.call = *calls;
        e.fill(&Buffers { inputs: args, arenas, outputs: &set.outputs })?;
        set.graph.launch(&memories(args, arenas, &set.outputs))?;
        let result = |(i, known): (usize, &Option<Arc<DeviceArray>>)| match known {
            Some(result) => Ok(result.clone()),
            None => e.result(i, args, &[]).map(Arc::new),
        };
        set.results.iter().enumerate().map(result).collect()
    }

    fn make(&self, args: &[Arc<DeviceArray>], arenas: &[Buffer<u8>]) -> Result<Set> {
        let e = &self.executable;
        let outputs = e.alloc_outputs()?;
        let slot = |home: &Home| match *home {
            Home::Input(i) => i,
            Home::Arena(i, _) => args.len() + i,
            Home::Output(i) => args.len() + arenas.len() + i,
        };
        let mut graph = DeviceGraphBuilder::new(&e.device, &memories(args, arenas, &outputs))?;
        e.launches(&Buffers { inputs: args, arenas, outputs: &outputs }, |_, launch, homes| {
            graph.launch(launch, &homes.iter().map(slot).collect::<Vec<_>>())
        })?;
        let graph = graph.finish().map_err(Error::from)?;
        Ok(Set { graph, results: Set::results(e, &outputs)?, outputs, call: 0 })
    }
}

/// All memory of a call: inputs, arenas, outputs.
fn memories<'a>(
    args: &'a [Arc<DeviceArray>],
    arenas: &'a [Buffer<u8>],
    outputs: &'a [Buffer<u8>],
) -> Vec<&'a Arc<Memory>> {
    args.iter().map(|a| &a.buffer).chain(arenas).chain(outputs).map(Buffer::memory).collect()
}
