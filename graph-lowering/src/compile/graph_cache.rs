//! Simplified graphs and their plans on disk, addressed by the captured graph and all else that decides them.
//!
//! An entry is, with little-endian numbers:
//!
//! | bytes | what |
//! |---|---|
//! | 8 | magic `TWGRAPH` 0x1a |
//! | 4 | schema number |
//! | 32 | the entry's own key |
//! | 32 | SHA-256 of what follows |
//! | 8, n | length and text of the graph (JSON) |
//! | n | the plan, and where each node's place in the source is found (JSON) |
//!
//! An entry is read whole, and its graph and plan are verified, or it is absent; a cache that cannot be read or written costs
//! time, never an answer.

use super::explain::GraphCacheUse;
use super::options::Options;
use crate::error::Result;
use crate::exec::limits;
use crate::fuse::{self, Limits, Plan};
use crate::graph::{Graph, TensorType, json};
use crate::passes;
use crate::weights::write_file;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::path::PathBuf;
use tilewright_compiler::error::Loc;
use tilewright_runtime::{Device, files};

const MAGIC: [u8; 8] = *b"TWGRAPH\x1a";
/// The number of this format, and of what the entries mean.
const SCHEMA: u32 = 1;
const HEADER: usize = 8 + 4 + 32 + 32;

/// Most bytes of an entry: a graph of a hundred thousand nodes has some ten megabytes.
const LARGEST: u64 = 256 << 20;

/// Captured nodes from which on an entry is worth its file.
const LEAST_NODES: usize = 64;

/// The place of one graph in the cache.
pub(super) struct GraphCache {
    key: [u8; 32],
    path: PathBuf,
    fusion: bool,
    limits: Limits,
    /// The places in the source of the captured nodes.
    locs: Vec<Loc>,
    inputs: Vec<TensorType>,
    outputs: Vec<TensorType>,
}

#[derive(Deserialize)]
struct Rest {
    plan: Plan,
    /// For each node: a captured node of the same place in the source, if there is one.
    locs: Vec<Option<usize>>,
}

#[derive(Serialize)]
struct RestRef<'a> {
    plan: &'a Plan,
    locs: Vec<Option<usize>>,
}

fn types(graph: &Graph, inputs: bool) -> Vec<TensorType> {
    let nodes = if inputs { &graph.inputs } else { &graph.outputs };
    nodes.iter().map(|&n| graph.ty(n).clone()).collect()
}

/// For each place in the source the first node that has it.
fn firsts(locs: &[Loc]) -> HashMap<Loc, usize> {
    let mut first = HashMap::new();
    for (i, loc) in locs.iter().enumerate() {
        first.entry(*loc).or_insert(i);
    }
    first
}

impl GraphCache {
    /// The place of a captured graph; `None` if it is too small to be kept, or the cache is off.
    pub fn new(captured: &Graph, options: &Options, device: &Device) -> Option<Self> {
        if captured.nodes.len() < LEAST_NODES || !options.is_graph_cache() {
            return None;
        }
        let folder = match options.chosen_graph_cache_dir() {
            Some(dir) => dir.to_owned(),
            None => tilewright_runtime::cache_dir()?.join("graphs"),
        };
        let (limits, fusion) = (limits(device), options.is_fused());
        let locs: Vec<Loc> = captured.nodes.iter().map(|(_, n)| n.loc).collect();
        let first = firsts(&locs);
        // Which nodes share a place in the source is part of what an entry says; where these are is not.
        let shared: Vec<usize> = locs.iter().map(|loc| first[loc]).collect();
        let key = key(&[
            "tilewright graph cache",
            env!("CARGO_PKG_VERSION"),
            env!("TILEWRIGHT_GRAPH_FINGERPRINT"),
            tilewright_compiler::CODEGEN_FINGERPRINT,
            &format!("{SCHEMA} {fusion} {limits:?} {shared:?}"),
            &json::to_json(captured, &[]).ok()?,
        ]);
        let name: String = key.iter().map(|b| format!("{b:02x}")).collect();
        // 256 folders, so that none grows large.
        let path = folder.join(&name[..2]).join(format!("{}.twgraph", &name[2..]));
        let (inputs, outputs) = (types(captured, true), types(captured, false));
        Some(Self { key, path, fusion, limits, locs, inputs, outputs })
    }

    /// The simplified graph, without what varies, and its plan. Whatever goes wrong, the answer is that there is none.
    pub fn load(&self) -> Option<(Graph, Plan)> {
        let found = self.parse(&files::read(&self.path, LARGEST).ok()?);
        if found.is_some() {
            files::touch(&self.path);
        } else {
            // If it cannot be removed, the next write replaces it.
            let _ = std::fs::remove_file(&self.path);
        }
        found
    }

    fn parse(&self, file: &[u8]) -> Option<(Graph, Plan)> {
        let (header, payload) = file.split_at_checked(HEADER)?;
        if header != self.header(payload) {
            return None;
        }
        let (length, rest) = payload.split_first_chunk::<8>()?;
        let (graph, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        // This verifies the graph, too.
        let (mut graph, captured) = json::from_json(std::str::from_utf8(graph).ok()?).ok()?;
        let rest: Rest = serde_json::from_slice(rest).ok()?;
        let fits = captured.is_empty() && types(&graph, true) == self.inputs && types(&graph, false) == self.outputs;
        if !fits || rest.locs.len() != graph.nodes.len() {
            return None;
        }
        for (node, loc) in graph.nodes.keys().zip(&rest.locs) {
            if let Some(i) = loc {
                graph.nodes[node].loc = *self.locs.get(*i)?;
            }
        }
        self.check(&graph, &rest.plan).ok()?;
        Some((graph, rest.plan))
    }

    fn check(&self, graph: &Graph, plan: &Plan) -> Result<(), String> {
        if self.fusion {
            return fuse::check(graph, plan, self.limits);
        }
        // Without fusion the plan is that of the graph with attention in other primitives.
        let expanded = passes::expand_attention(graph).map_err(|e| e.to_string())?;
        fuse::check(&expanded, plan, self.limits)
    }

    fn header(&self, payload: &[u8]) -> Vec<u8> {
        let mut header = Vec::with_capacity(HEADER);
        header.extend(MAGIC);
        header.extend(SCHEMA.to_le_bytes());
        header.extend(self.key);
        header.extend(Sha256::digest(payload));
        header
    }

    /// Writes the entry: readers see the old one, none, or the new one whole.
    pub fn store(&self, graph: &Graph, plan: &Plan) -> GraphCacheUse {
        match self.write(graph, plan) {
            Some(()) => GraphCacheUse::Stored,
            None => GraphCacheUse::NotStored,
        }
    }

    fn write(&self, graph: &Graph, plan: &Plan) -> Option<()> {
        let first = firsts(&self.locs);
        let locs = graph.nodes.iter().map(|(_, n)| first.get(&n.loc).copied()).collect();
        let text = json::to_json(graph, &[]).ok()?;
        let mut payload = (text.len() as u64).to_le_bytes().to_vec();
        payload.extend(text.as_bytes());
        serde_json::to_writer(&mut payload, &RestRef { plan, locs }).ok()?;
        let mut file = self.header(&payload);
        file.extend(payload);
        let folder = self.path.parent()?;
        files::make_subfolder(folder.parent()?, folder).ok()?;
        write_file(&self.path, &file).ok()
    }
}

/// A hash of parts.
fn key(parts: &[&str]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        // The length keeps neighbouring parts apart.
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().into()
}
