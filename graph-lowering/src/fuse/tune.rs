//! Tiles, warps and stages of generated kernels, chosen by measuring.
//!
//! **In**: the kernels of a graph. **Out**: the same kernels, tiled as is fastest on the device, and a line on each. **Holds**:
//! kernels that are the same are tuned once; what the tuner's store knows is not measured again; a candidate that
//! fails is a fact in the store, never an error.

use super::kernel::{Kernel, Tiling, Variable};
use crate::error::Result;
use crate::graph::{Graph, TensorType};
use crate::literal::Literal;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tilewright_autotune::{Bucket, Choice, Config, Dims, Mode, Settings, Space, Store, Tunable, Tuner};
use tilewright_compiler::DType;
use tilewright_runtime::{Buffer, Device, Launch};

/// Most elements of a kernel's tile on a GPU; the interpreter takes [`MOST_ON_CPU`].
const MOST_ELEMENTS: usize = 1 << 14;
const MOST_ON_CPU: usize = 1 << 17;
/// Different numbers in noise; larger tensors repeat them.
const NOISE: usize = (1 << 20) + 7;
/// The longest any one kernel is tuned, however large the budget.
const LONGEST: Duration = Duration::from_secs(30);

/// How kernels are tuned.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tuning {
    /// How long all kernels of a graph may take together, roughly.
    pub budget: Duration,
    /// Where results are kept.
    pub store: Store,
    /// Whether anything is measured.
    pub mode: Mode,
}

/// What was chosen for one kernel.
#[derive(Clone, PartialEq, Debug)]
pub struct Tuned {
    /// The kernel's name.
    pub kernel: &'static str,
    /// How often it occurs.
    pub times: usize,
    /// The choice; `None` if the tuner had none.
    pub choice: Option<Choice>,
    /// Why not.
    pub problem: Option<String>,
}

impl std::fmt::Display for Tuned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.kernel)?;
        if self.times > 1 {
            write!(f, " (in {} kernels)", self.times)?;
        }
        let Some(c) = &self.choice else {
            return write!(f, ": as by default, {}", self.problem.as_deref().unwrap_or("nothing was measured"));
        };
        write!(f, ": {}", c.config)?;
        match (c.median_us, c.default_us) {
            (Some(t), Some(d)) if c.default.as_ref() != Some(&c.config) => {
                write!(f, ", {t:.2} us where the default takes {d:.2} us")?;
            }
            (Some(t), _) => write!(f, ", {t:.2} us")?,
            (None, _) => return write!(f, ", not measured"),
        }
        match c.measured {
            0 => write!(f, " (known)"),
            n => write!(f, " ({n} configurations measured)"),
        }
    }
}

/// Retiles the kernels of a graph.
///
/// # Errors
/// A broken invariant. What goes wrong while tuning is in the report.
pub fn tune(graph: &Graph, kernels: &mut [Kernel], device: &Device, how: &Tuning) -> Result<Vec<Tuned>> {
    let mut same: Vec<Vec<usize>> = Vec::new();
    let mut known: HashMap<Identity, usize> = HashMap::new();
    for (i, kernel) in kernels.iter().enumerate().filter(|(_, k)| k.grid > 0 && k.is_tileable()) {
        let group = *known.entry(Identity::of(kernel)).or_insert(same.len());
        if group == same.len() {
            same.push(Vec::new());
        }
        same[group].push(i);
    }
    let start = Instant::now();
    let mut report = Vec::new();
    for (done, group) in same.iter().enumerate() {
        let left = how.budget.saturating_sub(start.elapsed());
        let share = left / u32::try_from(same.len() - done).unwrap_or(u32::MAX);
        let kernel = &kernels[group[0]];
        let mut tuned = Tuned { kernel: kernel.name(), times: group.len(), choice: None, problem: None };
        match choose(graph, kernel, device, how, share.min(LONGEST)) {
            Ok(choice) => {
                let tiling = tiling(kernel, &choice.config)?;
                if tiling != kernel.tiling() {
                    for &i in group {
                        kernels[i] = kernels[i].tiled(&tiling)?;
                    }
                }
                tuned.choice = Some(choice);
            }
            Err(e) => tuned.problem = Some(e.to_string().lines().next().unwrap_or_default().to_owned()),
        }
        report.push(tuned);
    }
    Ok(report)
}

/// Kernels that are tuned alike: of the same code, on views of the same extents and strides.
#[derive(PartialEq, Eq, Hash)]
struct Identity {
    code: tilewright_compiler::dsl::KernelId,
    views: Vec<(usize, Vec<usize>, Vec<isize>, bool)>,
}

impl Identity {
    fn of(kernel: &Kernel) -> Self {
        let views = kernel.params.iter();
        let views = views.map(|p| (p.offset % 16, p.dims.clone(), p.strides.clone(), p.access.writes())).collect();
        Self { code: kernel.def.id.clone(), views }
    }
}

fn choose(
    graph: &Graph,
    kernel: &Kernel,
    device: &Device,
    how: &Tuning,
    budget: Duration,
) -> tilewright_runtime::Result<Choice> {
    let default = config(kernel, &kernel.tiling());
    let names = names(kernel.variables().len());
    // A kernel for many extents is tuned for the first of them.
    let size = |v: &Variable| if v.varies { v.tile } else { v.extent } as i64;
    let dims: Vec<i64> = kernel.variables().iter().map(size).chain([layout(kernel)]).collect();
    let heuristic = default.clone();
    let mut tunable = Tunable::new(kernel.name(), names, space(kernel, device, &default))
        .heuristic(move |_: &Device, _: DType, _: &Dims| heuristic.clone());
    for (i, name) in names.iter().enumerate() {
        // Extents that vary share a choice with those near them.
        let varies = kernel.variables().get(i).is_some_and(|v| v.varies);
        tunable = tunable.bucket(name, if varies { Bucket::Pow2 } else { Bucket::Exact });
    }
    let mut buffers = HashMap::new();
    for p in &kernel.params {
        buffers.insert(p.node, device.alloc(graph.ty(p.node).bytes())?);
    }
    let source = |c: &Config| {
        let tiled = tiling(kernel, c).and_then(|t| kernel.tiled(&t)).map_err(|e| {
            let message = e.to_string();
            tilewright_runtime::Error::Arguments { kernel: kernel.name().to_owned(), message }
        })?;
        let places: Vec<_> = tiled.params.iter().map(|p| (buffers[&p.node].memory(), 0)).collect();
        Ok(Launch::new(tiled.def.clone(), tiled.args(&places)?).grid([tiled.grid]).options(tiled.options).on(device))
    };
    let choose = |mode: Mode| {
        let tuner = Tuner::new(mode, how.store.clone()).settings(Settings { budget, ..Settings::default() }).quiet();
        tuner.choice(&tunable, device, DType::F32, &dims, source)
    };
    // What is known needs no numbers to compute with, and without time nothing is measured.
    let measures = matches!(how.mode, Mode::On | Mode::Force) && !budget.is_zero();
    let known = choose(if measures { Mode::CachedOnly } else { unmeasured(how.mode) })?;
    if !measures || (how.mode == Mode::On && known.median_us.is_some()) {
        return Ok(known);
    }
    for (i, p) in kernel.params.iter().enumerate() {
        fill(&buffers[&p.node], graph.ty(p.node), i as u64 + 1)?;
    }
    choose(how.mode)
}

fn unmeasured(mode: Mode) -> Mode {
    if mode == Mode::Off { Mode::Off } else { Mode::CachedOnly }
}

/// Puts noise into memory: small numbers where they are whole, so that rows of tables are found.
fn fill(buffer: &Buffer<u8>, ty: &TensorType, seed: u64) -> tilewright_runtime::Result<()> {
    let noise: Vec<f64> = tilewright_autotune::noise(seed, ty.elements().min(NOISE)).collect();
    let word = |i: usize| {
        let x = noise[i % NOISE];
        match ty.dtype {
            DType::F64 => x.to_bits(),
            DType::F32 => u64::from((x as f32).to_bits()),
            DType::F16 => u64::from(half::f16::from_f64(x).to_bits()),
            DType::BF16 => u64::from(half::bf16::from_f64(x).to_bits()),
            DType::Bool => u64::from(x > 0.0),
            _ => (x.abs() * 100.0) as u64,
        }
    };
    buffer.copy_from(Literal::from_fn(ty.clone(), word).bytes())
}

/// A number for the strides and places of a kernel's views, on which a choice depends as on the extents.
fn layout(kernel: &Kernel) -> i64 {
    let mut hash = DefaultHasher::new();
    for p in &kernel.params {
        (p.dtype as u8, p.access.writes(), p.dims.len()).hash(&mut hash);
        if !p.varies {
            (p.offset % 16, &p.dims, &p.strides).hash(&mut hash);
        }
    }
    // 48 bits: exact in JSON, wherever it is read.
    (hash.finish() >> 16) as i64
}

/// The names of a kernel's sizes: its variables, and its layout.
fn names(variables: usize) -> &'static [&'static str] {
    static NAMES: LazyLock<Mutex<HashMap<usize, &'static [&'static str]>>> = LazyLock::new(Mutex::default);
    let mut known = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    known.entry(variables).or_insert_with(|| {
        let each = (0..variables).map(tile_name);
        Box::leak(each.chain(["layout"]).collect::<Vec<_>>().into_boxed_slice())
    })
}

/// The name of a variable's tile in configurations: interned, one for each number.
fn tile_name(variable: usize) -> &'static str {
    super::kernel::intern(&format!("v{variable}"))
}

fn config(kernel: &Kernel, tiling: &Tiling) -> Config {
    let tiles = (0..kernel.variables().len()).map(|v| (tile_name(v), tiling.tiles[v]));
    tiles.fold(Config::new(), |c, (name, tile)| c.with(name, tile)).with_options(tiling.options)
}

fn tiling(kernel: &Kernel, config: &Config) -> Result<Tiling> {
    let tiles = (0..kernel.variables().len()).map(|v| config.get(tile_name(v))).collect::<Result<_, _>>()?;
    Ok(Tiling { tiles, options: config.options() })
}

/// The configurations worth a try, around the default.
fn space(kernel: &Kernel, device: &Device, default: &Config) -> Space {
    let variables = kernel.variables();
    let cpu = device.caps().is_none();
    let count = variables.len();
    let mut choices: Vec<Vec<usize>> = variables.iter().map(|v| vec![v.tile]).collect();
    let around = |v: usize, factors: &[(usize, usize)]| -> Vec<usize> {
        let most = variables[v].extent.next_power_of_two().max(1);
        let mut all: Vec<usize> =
            factors.iter().map(|&(up, down)| (variables[v].tile * up / down).clamp(1, most)).collect();
        all.push(variables[v].tile);
        all.sort_unstable();
        all.dedup();
        all
    };
    let (warps, stages): (&[u32], &[u32]);
    if kernel.has_dot() {
        let fits = |v: usize, tiles: &[usize]| -> Vec<usize> {
            let most = (2 * variables[v].extent).next_power_of_two().max(32);
            let mut all: Vec<usize> = tiles.iter().copied().filter(|&t| t <= most).collect();
            all.push(variables[v].tile);
            all.sort_unstable();
            all.dedup();
            all
        };
        choices[count - 3] = fits(count - 3, &[32, 64, 128, 256]);
        choices[count - 2] = fits(count - 2, &[16, 32, 64, 128]);
        choices[count - 1] = fits(count - 1, &[32, 64, 128, 256]);
        (warps, stages) = (&[2, 4, 8], &[1, 2, 3, 4, 5]);
    } else {
        let wide = [(1, 8), (1, 4), (1, 2), (2, 1), (4, 1), (8, 1)];
        let kept: Vec<usize> = (0..count).filter(|&v| !variables[v].reduced).collect();
        if let Some(last) = kept.last() {
            choices[*last] = around(*last, &wide);
        }
        if let [.., before, _] = kept[..] {
            choices[before] = around(before, &[(1, 2), (2, 1), (4, 1)]);
        }
        if kernel.is_looped()
            && let Some(last) = (0..count).rev().find(|&v| variables[v].reduced)
        {
            choices[last] = around(last, &wide);
        }
        (warps, stages) = (&[1, 2, 4, 8][..], if kernel.is_looped() { &[1, 2, 3][..] } else { &[1][..] });
    }
    let mut space = Space::new();
    for (v, tiles) in choices.into_iter().enumerate() {
        space = space.param(tile_name(v), tiles);
    }
    let (warps, stages) = if cpu { (&[1][..], &[1][..]) } else { (warps, stages) };
    space = space.param("num_warps", warps.to_vec()).param("num_stages", stages.to_vec());
    let dot = kernel.has_dot();
    let default = default.clone();
    space.keep("a tile is neither too small nor too large for its threads", move |c, _| {
        if *c == default {
            return true;
        }
        let tile = |v: usize| c.get::<usize>(tile_name(v)).unwrap_or(1);
        let (threads, all) = (32 * c.options().num_warps as usize, (0..count).map(tile).product::<usize>());
        match (cpu, dot) {
            (true, false) => all <= MOST_ON_CPU,
            (true, true) => true,
            (false, false) => all <= MOST_ELEMENTS && (1..=64).contains(&(all / threads)),
            (false, true) => (8..=256).contains(&(tile(count - 3) * tile(count - 1) / threads)),
        }
    })
}
