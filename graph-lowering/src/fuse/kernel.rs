//! A group as a kernel: its loop variables, its parameters, its tiles and how it is launched.

use super::emit;
use super::group::{Group, Read, Store, canonical};
use super::map::{Affine, linear};
use super::operands::{Step, address, operand_coordinates, step, storage};
use super::varying::{self, Number, bucket};
use crate::error::{Error, Result};
use crate::graph::{Graph, NodeId, strides};
use crate::prim::{Class, Op};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use tilewright_compiler::DType;
use tilewright_compiler::dsl::{ComptimeValue, KernelDef, KernelId, Specialization};
use tilewright_compiler::error::Error as CompilerError;
use tilewright_kernels::{AttentionKernel, MatmulConfig};
use tilewright_runtime::{Access, Device, DeviceKind, KernelArg, Memory, Options as LaunchOptions};

/// A loop variable of a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Variable {
    /// How many values it takes.
    pub extent: usize,
    /// How many of them one tile holds: a power of two.
    pub tile: usize,
    /// Does a reduction remove it?
    pub reduced: bool,
    /// Is the extent a parameter of the kernel, which serves others with the same tile, too?
    pub varies: bool,
}

impl Variable {
    /// Tiles that cover the extent.
    pub fn tiles(&self) -> usize {
        self.extent.div_ceil(self.tile)
    }

    /// May there be more than one tile?
    pub fn tiled(&self) -> bool {
        self.varies || self.tiles() != 1
    }

    /// May the last tile have elements beyond the extent?
    pub fn ragged(&self) -> bool {
        self.varies || self.extent == 0 || !self.extent.is_multiple_of(self.tile)
    }
}

/// A view that a kernel gets: the variables it depends on, with their strides.
#[derive(Clone, PartialEq, Debug)]
pub struct Param {
    /// Its name in the kernel.
    pub name: &'static str,
    /// Whose buffer.
    pub node: NodeId,
    /// Its element type.
    pub dtype: DType,
    /// Read or written?
    pub access: Access,
    /// Place of the first element.
    pub offset: usize,
    /// Variables, in order, that the place depends on.
    pub variables: Vec<usize>,
    /// Extents of the view; at least one.
    pub dims: Vec<usize>,
    /// Strides of the view in elements.
    pub strides: Vec<isize>,
    /// Do extents of the tensor vary?
    pub varies: bool,
}

/// A generated kernel.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Its definition, for launches.
    pub def: KernelDef,
    /// Its views: what it reads, then what it stores.
    pub params: Vec<Param>,
    /// Numbers that it takes after them.
    pub numbers: Vec<Number>,
    /// Programs.
    pub grid: usize,
    /// Warps and stages.
    pub options: LaunchOptions,
    /// What it was made from.
    pub(super) body: Arc<Body>,
}

/// Everything the kernel's IR is built from.
#[derive(Clone, Debug)]
pub(super) struct Body {
    pub graph: Arc<Graph>,
    pub group: Group,
    pub name: &'static str,
    pub variables: Vec<Variable>,
    /// For each old variable: the new one it is the last part of, if it is.
    pub last_of: HashMap<usize, usize>,
    pub params: Vec<Param>,
    /// Which parameter reads what.
    pub loads: HashMap<(NodeId, Affine), usize>,
    /// Which parameter is the table of a gather.
    pub tables: HashMap<NodeId, usize>,
    /// The parameter of each store.
    pub stores: Vec<usize>,
    /// Does anything in it vary? Then coefficients are parameters, too.
    pub varies: bool,
    /// The library's kernel, if this is attention.
    pub attention: Option<AttentionKernel>,
}

impl Body {
    /// A function of the group's variables as one of the kernel's.
    pub fn affine(&self, old: &Affine) -> Affine {
        let terms = old.terms.iter().filter_map(|(v, &c)| self.last_of.get(v).map(|&n| (n, c))).collect();
        Affine { offset: old.offset, terms }
    }
}

/// Every function of the variables that matters to how they may be joined.
#[derive(Default)]
pub(super) struct Uses {
    reads: BTreeSet<(NodeId, Affine)>,
    tables: BTreeSet<NodeId>,
    others: BTreeSet<Affine>,
}

impl Uses {
    /// Those of a group's nodes, without its stores.
    pub(super) fn of(graph: &Graph, group: &Group) -> Self {
        let mut uses = Self::default();
        let mut seen = HashSet::new();
        for &node in &group.nodes {
            // Every member has coordinates; it could not have joined without.
            let Some(mut operands) = operand_coordinates(graph, node, group) else { continue };
            if let (Op::Iota(iota), Some(at)) = (&graph.nodes[node].op, group.place(&graph.ty(node).dims)) {
                // Coordinates that are a result of their own need their axis.
                uses.others.insert(at[iota.axis].clone());
            }
            if graph.nodes[node].op.class() == Class::Gather {
                let (table, _) = operands.remove(0);
                uses.tables.insert(storage(graph, table));
                if let Some(at) = group.place(&graph.ty(node).dims) {
                    let rank = graph.ty(graph.nodes[node].args[1]).rank();
                    uses.others.insert(linear(&at[rank..], &graph.ty(table).dims[1..]));
                }
            }
            uses.visit(graph, group, operands, &mut seen);
        }
        uses
    }

    /// All functions.
    pub(super) fn all(&self) -> impl Iterator<Item = &Affine> {
        self.reads.iter().map(|(_, a)| a).chain(&self.others)
    }

    /// What operands read that are no members. Each is `seen` once at the same coordinates, however many ways lead to it.
    fn visit(
        &mut self,
        graph: &Graph,
        group: &Group,
        operands: Vec<(NodeId, Vec<Affine>)>,
        seen: &mut HashSet<(NodeId, Vec<Affine>)>,
    ) {
        let mut todo = operands;
        while let Some((node, at)) = todo.pop() {
            let at = canonical(&at, &group.space);
            if group.has(graph, node, &at) || !seen.insert((node, at.clone())) {
                continue;
            }
            let dims = &graph.ty(node).dims;
            if group.leaves.contains(&node) {
                self.reads.insert((node, address(&Read { node, dims: dims.clone(), at })));
                continue;
            }
            match step(graph, node, &at, &group.space) {
                Step::Made => {
                    if let Op::Iota(iota) = &graph.nodes[node].op {
                        self.others.insert(at[iota.axis].clone());
                    }
                }
                Step::Through(args) => todo.extend(args),
                Step::Stored(root) => {
                    self.reads.insert((root, linear(&at, dims)));
                }
            }
        }
    }
}

/// The kernel of a group on a device.
///
/// # Errors
/// A broken invariant.
pub fn kernel(graph: &Arc<Graph>, group: &Group, device: &Device) -> Result<Kernel> {
    if let Some(attention) = &group.attention {
        return attention.kernel(graph, group, device);
    }
    let mut uses = Uses::of(graph, group);
    let broken = |what: &str| Error::Internal(what.to_owned());
    let mut stores = Vec::new();
    for store in &group.stores {
        let dims = &graph.ty(store.node).dims;
        let at = group.place(dims).ok_or_else(|| broken("a stored node has no place"))?;
        if !group.nodes.contains(&store.node) {
            uses.visit(graph, group, vec![(store.node, at.clone())], &mut HashSet::new());
        }
        let place = stored_at(graph, store, &at);
        uses.others.insert(place.clone());
        stores.push((store, place));
    }

    if group.scatter.is_some() {
        // The row's number is looked for, so it stays a variable of its own.
        uses.others.insert(canonical(&[Affine::variable(0)], &group.space).remove(0));
    }
    let (variables, last_of) = join_variables(group, &uses, &varying::space(graph, group));
    let mut body = Body {
        graph: graph.clone(),
        group: group.clone(),
        name: intern(&kernel_name(graph, group)),
        variables,
        last_of,
        params: Vec::new(),
        loads: HashMap::new(),
        tables: HashMap::new(),
        stores: Vec::new(),
        varies: false,
        attention: None,
    };
    for (node, place) in &uses.reads {
        let affine = body.affine(place);
        let index = add_param(&mut body, *node, "x", Access::In, &affine);
        body.loads.insert((*node, affine), index);
    }
    for &node in &uses.tables {
        let name = intern(&format!("x{}", body.params.len()));
        let (dims, strides) = (vec![graph.ty(node).elements()], vec![1]);
        let dtype = graph.ty(node).dtype;
        body.tables.insert(node, body.params.len());
        let (access, varies) = (Access::In, graph.varying.any_dim(node));
        body.params.push(Param { name, node, dtype, access, offset: 0, variables: vec![], dims, strides, varies });
    }
    for (store, place) in &stores {
        let affine = body.affine(place);
        let index = add_param(&mut body, store.target, "y", Access::Out, &affine);
        body.stores.push(index);
    }
    let options = choose_tiles(&mut body, device);
    finish(body, None, options)
}

/// Where in the buffer of its target the element at coordinates `at` of a stored node goes.
pub(super) fn stored_at(graph: &Graph, store: &Store, at: &[Affine]) -> Affine {
    let steps = strides(&graph.ty(store.target).dims);
    match (&store.place, &graph.nodes[store.target].op) {
        (None, Op::Permute(p)) if store.node != store.target => {
            let step = |(i, &d): (usize, &usize)| at[d].scale(steps[i] as i64);
            p.perm.iter().enumerate().map(step).fold(Affine::default(), |sum, a| sum.add(&a))
        }
        (None, _) => linear(at, &graph.ty(store.node).dims),
        (Some(p), _) => (0..at.len()).fold(Affine::default(), |sum, i| {
            let coordinate = at[i].scale(p.step[i] as i64).plus(p.start[i] as i64);
            sum.add(&coordinate.scale(steps[i] as i64))
        }),
    }
}

/// The kernel of a body whose variables have their tiles; its grid follows from them unless it is given.
pub(super) fn finish(mut body: Body, grid: Option<usize>, options: LaunchOptions) -> Result<Kernel> {
    let tiles = || body.variables.iter().filter(|v| !v.reduced).map(Variable::tiles).product();
    let grid = grid.unwrap_or_else(tiles);
    body.varies = body.variables.iter().any(|v| v.varies) || body.params.iter().any(|p| p.varies);
    let body = Arc::new(body);
    let (function, numbers) = emit::function(&body, &Specialization::general())?;
    let text = function.to_string();
    let id = KernelId {
        path: body.name,
        // No function of the source: the text of its IR is what tells one generated kernel from another.
        item: std::any::TypeId::of::<Kernel>(),
        dtypes: vec![],
        comptime: vec![ComptimeValue::Text(text)],
    };
    let built = body.clone();
    let def = KernelDef::new(body.name, id, move |spec: &Specialization| -> std::result::Result<_, CompilerError> {
        emit::function(&built, spec).map(|(function, _)| function)
    });
    Ok(Kernel { def, params: body.params.clone(), numbers, grid, options, body })
}

fn add_param(body: &mut Body, node: NodeId, prefix: &str, access: Access, place: &Affine) -> usize {
    let mut variables: Vec<usize> = place.terms.keys().copied().collect();
    if access.writes() && body.group.dot.is_some() {
        // The tile of a matrix product has rows and columns, also where the tensor has but one.
        let n = body.variables.len();
        for v in [n - 3, n - 1] {
            if !variables.contains(&v) {
                variables.push(v);
            }
        }
        variables.sort_unstable();
    }
    let mut dims: Vec<usize> = variables.iter().map(|&v| body.variables[v].extent).collect();
    let mut strides: Vec<isize> = variables.iter().map(|&v| place.of(v).max(1) as isize).collect();
    if dims.is_empty() {
        (dims, strides) = (vec![1], vec![1]);
    }
    let dtype = body.graph.ty(node).dtype;
    let name = intern(&format!("{prefix}{}", body.params.len()));
    let (offset, varies) = (place.offset as usize, body.graph.varying.any_dim(node));
    body.params.push(Param { name, node, dtype, access, offset, variables, dims, strides, varies });
    body.params.len() - 1
}

type Joined = (Vec<Variable>, HashMap<usize, usize>);

/// Joins neighbouring variables that every function steps through as through one, and drops those of extent 1.
fn join_variables(group: &Group, uses: &Uses, varying: &BTreeSet<usize>) -> Joined {
    let all: Vec<&Affine> = uses.all().collect();
    let mut order: Vec<usize> = (0..group.space.len()).filter(|v| !group.reduced.contains(v)).collect();
    order.extend(&group.reduced);
    let mut matrix = group.space.len();
    if group.dot.is_some() {
        // [batch.., m.., k, n]: the tiles of both operands are then matrices as they are.
        let n = group.space.len();
        order = (0..n - 2).chain([n - 1, n - 2]).collect();
        matrix = group.rows().start;
    }
    let mut variables: Vec<Variable> = Vec::new();
    let mut last_of = HashMap::new();
    let mut previous: Option<usize> = None;
    for v in order {
        let reduced = group.reduced.contains(&v);
        let varies = varying.contains(&v) && group.space[v] > 1;
        let variable = Variable { extent: group.space[v], tile: 1, reduced, varies };
        if v >= matrix {
            // The variables of the rows are one, whatever their extents; so are n and k.
            let more_rows = group.rows().contains(&v) && v != matrix;
            match variables.last_mut() {
                Some(row) if more_rows => {
                    row.extent *= group.space[v];
                    row.varies |= varies;
                }
                _ => variables.push(variable),
            }
            if more_rows && group.space[v] != 1 {
                last_of.retain(|p, _| !group.rows().contains(p));
            }
            if group.space[v] != 1 {
                last_of.insert(v, variables.len() - 1);
            }
            continue;
        }
        if group.space[v] == 1 {
            continue;
        }
        let joins = previous.is_some_and(|p| {
            group.reduced.contains(&p) == reduced && all.iter().all(|a| a.of(p) == a.of(v) * group.space[v] as i64)
        });
        if let (true, Some(p), Some(joined)) = (joins, previous, variables.last_mut()) {
            joined.extent *= group.space[v];
            joined.varies |= varies;
            last_of.remove(&p);
        } else {
            variables.push(variable);
        }
        last_of.insert(v, variables.len() - 1);
        previous = Some(v);
    }
    if variables.is_empty() {
        variables.push(Variable { extent: 1, tile: 1, reduced: false, varies: false });
    }
    (variables, last_of)
}

/// Programs that reductions of columns are shared by, if there are enough columns.
const COLUMN_PROGRAMS: usize = 128;

/// Gives each variable its tile.
fn choose_tiles(body: &mut Body, device: &Device) -> LaunchOptions {
    let cpu = device.info().kind == DeviceKind::Cpu;
    let power = |v: &Variable, most: usize| {
        // Few tiles for many extents: each is a kernel.
        let enough = if v.varies { bucket(v.extent) } else { v.extent.next_power_of_two() };
        enough.min(most).max(1)
    };
    let count = body.variables.len();
    if let Some(dot) = body.group.dot {
        let extents = [count - 3, count - 1, count - 2].map(|v| body.variables[v].extent);
        let config = MatmulConfig::heuristic(device, body.graph.ty(dot).dtype, extents);
        body.variables[count - 3].tile = config.bm;
        body.variables[count - 2].tile = config.bk;
        body.variables[count - 1].tile = config.bn;
        return config.options;
    }
    let mut budget = if cpu { 8192 } else { 1024 };
    if body.group.scatter.is_some() {
        // Both variables of the updates are there, since there are at least two; then one program has a part of one row.
        body.variables[count - 2].tile = power(&body.variables[count - 2], budget);
        for v in (0..count - 2).rev().filter(|v| Some(v) != body.last_of.get(&0)) {
            body.variables[v].tile = power(&body.variables[v], budget);
            budget = (budget / body.variables[v].tile).max(1);
        }
        return LaunchOptions { num_warps: if cpu { 1 } else { 4 }, num_stages: 1 };
    }
    let reduced: Vec<usize> = (0..count).filter(|&v| body.variables[v].reduced).collect();
    let kept: Vec<usize> = (0..count).filter(|&v| !body.variables[v].reduced).collect();
    // Neighbours in memory should be neighbours in a tile: those along the rows, or those of several columns. The most elements
    // decide, since a vector beside a matrix may lie in either way.
    let neighbours = |v: &usize| -> usize {
        let along = |p: &&Param| p.variables.iter().zip(&p.strides).any(|(u, s)| u == v && *s == 1);
        body.params.iter().filter(along).map(|p| p.dims.iter().product::<usize>()).sum()
    };
    let columns = kept.last().map_or(0, neighbours) > reduced.iter().map(neighbours).sum();
    if body.group.looped && columns && !cpu {
        // Few columns a program, so that there are many programs, but a whole sector of memory of each row.
        let (last, column) = (reduced[reduced.len() - 1], kept[kept.len() - 1]);
        let bytes = body.params.iter().map(|p| p.dtype.bytes()).min().unwrap_or(4);
        let all: usize = kept.iter().map(|&v| body.variables[v].extent).product();
        let wide = (all / COLUMN_PROGRAMS).next_power_of_two();
        body.variables[column].tile = power(&body.variables[column], wide.clamp(32 / bytes, 64));
        body.variables[last].tile = power(&body.variables[last], 4096 / body.variables[column].tile);
        return LaunchOptions { num_warps: 8, num_stages: 1 };
    }
    if body.group.looped {
        if let Some(&last) = reduced.last() {
            body.variables[last].tile = power(&body.variables[last], if columns { 64 } else { budget });
        }
    } else {
        // The whole row is one tile: exact powers of two, as half of a larger one would be wasted, but not the smallest.
        let row: usize = reduced.iter().map(|&v| body.variables[v].extent.next_power_of_two()).product();
        for &v in &reduced {
            let least = if body.variables[v].varies && row <= 1024 { 16 } else { 1 };
            body.variables[v].tile = body.variables[v].extent.next_power_of_two().max(least);
        }
    }
    let row: usize = reduced.iter().map(|&v| body.variables[v].tile).product();
    budget = (budget / row).max(if columns && !reduced.is_empty() { 32 } else { 1 });
    for &v in kept.iter().rev() {
        body.variables[v].tile = power(&body.variables[v], budget);
        budget = (budget / body.variables[v].tile).max(1);
    }
    let elements: usize = body.variables.iter().map(|v| v.tile).product();
    let warps = if cpu { 1 } else { (elements / 256).next_power_of_two().clamp(1, 8) as u32 };
    LaunchOptions { num_warps: warps, num_stages: 1 }
}

/// A name that says what the kernel does: its first and last few primitives.
pub(super) fn kernel_name(graph: &Graph, group: &Group) -> String {
    let mut names: Vec<String> = group.nodes.iter().map(|&n| graph.nodes[n].op.primitive().name()).collect();
    names.dedup();
    if names.len() > 6 {
        names.drain(3..names.len() - 3);
    }
    if names.is_empty() { "copy".into() } else { names.join("_") }
}

/// Names of kernels and parameters live as long as the process, as those of `#[kernel]` functions do; each is kept once.
pub(super) fn intern(name: &str) -> &'static str {
    static NAMES: LazyLock<Mutex<HashMap<String, &'static str>>> = LazyLock::new(Mutex::default);
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    let leaked: &'static str = Box::leak(name.to_owned().into_boxed_str());
    names.insert(name.to_owned(), leaked);
    leaked
}

/// What of a kernel may be chosen without changing what it computes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tiling {
    /// The tile of each variable: powers of two.
    pub tiles: Vec<usize>,
    /// Warps and stages.
    pub options: LaunchOptions,
}

impl Kernel {
    /// Its loop variables.
    pub fn variables(&self) -> &[Variable] {
        &self.body.variables
    }

    /// Does it loop over tiles of what it reduces?
    pub fn is_looped(&self) -> bool {
        self.body.group.looped
    }

    /// May its variables have other tiles? Those of a sum into rows are what it is.
    pub(super) fn is_tileable(&self) -> bool {
        self.body.group.scatter.is_none() && self.body.attention.is_none()
    }

    /// Is there a matrix product in it? The last three variables are then its rows, `k` and its columns.
    pub fn has_dot(&self) -> bool {
        self.body.group.dot.is_some()
    }

    /// How it is tiled.
    pub fn tiling(&self) -> Tiling {
        Tiling { tiles: self.body.variables.iter().map(|v| v.tile).collect(), options: self.options }
    }

    /// The same kernel tiled otherwise.
    ///
    /// # Errors
    /// [`Error::Internal`] for tiles that do not fit the variables: one for each, powers of two, all of what is reduced at
    /// once in one tile.
    pub fn tiled(&self, tiling: &Tiling) -> Result<Self> {
        let mut body = Body::clone(&self.body);
        let whole = !body.group.looped && body.group.dot.is_none();
        let fits = |(v, &tile): (&Variable, &usize)| tile.is_power_of_two() && !(whole && v.reduced && tile < v.extent);
        if tiling.tiles.len() != body.variables.len() || !body.variables.iter().zip(&tiling.tiles).all(fits) {
            return Err(Error::Internal(format!("the tiles {:?} do not fit kernel {}", tiling.tiles, body.name)));
        }
        body.variables.iter_mut().zip(&tiling.tiles).for_each(|(v, &tile)| v.tile = tile);
        finish(body, None, tiling.options)
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.body.name
    }

    /// The nodes it computes.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.body.group.nodes.iter().copied()
    }

    /// Its arguments, for the memory of each of [`Kernel::params`] and the element at which the tensor begins there.
    ///
    /// # Errors
    /// If a tensor does not lie inside its memory.
    pub fn args<'a>(
        &self,
        places: &[(&'a Arc<Memory>, usize)],
    ) -> tilewright_runtime::Result<Vec<(&'static str, KernelArg<'a>)>> {
        let mut args = Vec::with_capacity(self.params.len() + self.numbers.len());
        for (p, &(memory, start)) in self.params.iter().zip(places) {
            let arg = KernelArg::from_memory(memory, p.dtype, start + p.offset, &p.dims, &p.strides, p.access)?;
            args.push((p.name, if p.varies { arg.coarse() } else { arg }));
        }
        args.extend(self.numbers.iter().map(|n| (n.name, KernelArg::from_constant(n.dtype, n.value))));
        Ok(args)
    }

    /// Bytes it reads and writes, if each element of a view is moved once. Of a table as many as are looked up.
    pub fn bytes(&self) -> u64 {
        let tables: BTreeSet<usize> = self.body.tables.values().copied().collect();
        let graph = &self.body.graph;
        let gathers = self.nodes().filter(|&n| graph.nodes[n].op.class() == Class::Gather);
        let looked_up: usize = gathers.map(|n| graph.ty(n).bytes()).sum();
        let views = self.params.iter().enumerate().filter(|(i, _)| !tables.contains(i));
        let moved: usize = views.map(|(_, p)| p.dims.iter().product::<usize>() * p.dtype.bytes()).sum();
        (moved + looked_up) as u64
    }

    /// Operations on elements.
    pub fn flops(&self) -> u64 {
        let graph = &self.body.graph;
        let cost = |n: NodeId| {
            let args: Vec<_> = graph.nodes[n].args.iter().map(|&a| graph.ty(a)).collect();
            graph.nodes[n].op.cost(&args, graph.ty(n)).flops
        };
        self.nodes().map(cost).sum()
    }

    /// Its Tile IR when nothing is known of the arguments.
    ///
    /// # Errors
    /// A broken invariant of the generator.
    pub fn ir(&self) -> Result<String> {
        Ok(emit::function(&self.body, &Specialization::general())?.0.to_string())
    }

    /// The kernel as `#[kernel]` source, after the primitives it comes from.
    ///
    /// # Errors
    /// A broken invariant of the generator.
    pub fn source(&self) -> Result<String> {
        let (mut function, _) = emit::function(&self.body, &Specialization::general())?;
        // What is computed twice or for nothing is not worth reading.
        tilewright_compiler::passes::cse::run(&mut function);
        tilewright_compiler::passes::dce::run(&mut function);
        let mut header = String::new();
        for node in self.nodes() {
            let data = &self.body.graph.nodes[node];
            let args: Vec<_> = data.args.iter().map(ToString::to_string).collect();
            let place = if data.loc.is_known() { format!("  // {}", data.loc) } else { String::new() };
            header.push_str(&format!("// {node}: {} = {}({}){place}\n", data.ty, data.op, args.join(", ")));
        }
        let access: Vec<Access> = self.params.iter().map(|p| p.access).collect();
        Ok(header + &super::source::source(&function, &access)?)
    }
}
