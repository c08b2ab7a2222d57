//! The Tile IR of a group.
//!
//! Every tile has one dimension for each variable of the kernel, of extent 1 where it does not depend on the variable. What
//! lies outside a tensor reads 0 and is never stored; reductions mask it.

use super::group::canonical;
use super::kernel::{Body, Variable, intern};
use super::map::{Affine, linear};
use super::operands::{Step, operand_coordinates, step, storage};
use super::varying::{Meaning, Number};
use crate::graph::NodeId;
use crate::prim::{Class, Op, index::outside};
use std::collections::{HashMap, HashSet};
use tilewright_compiler::DType;
use tilewright_compiler::dsl::Specialization;
use tilewright_compiler::error::{Diagnostic, Error, Result};
use tilewright_compiler::tile::{
    BinaryOp, Builder, Built, Cmp, Constant, DotPrecision, Function, ParamHint, ReduceOp, Shape, TileType, Value,
    ViewValue, rules,
};

/// Tiles of a matrix product from which on their order matters for the cache.
const MANY_TILES: usize = 32;
/// Rows of tiles in a group.
const GROUP_ROWS: i64 = 8;

/// Builds the kernel's IR for what is known of its arguments. The numbers it takes after its views depend on the body alone.
pub(super) fn function(body: &Body, spec: &Specialization) -> Result<(Function, Vec<Number>)> {
    if let Some(kernel) = &body.attention {
        return super::attention::function(kernel, body, spec).map(|function| (function, vec![]));
    }
    let mut b = Builder::new(body.name);
    b.set_fp_fusion(spec.fp_fusion);
    let mut flat = 0;
    let views = body
        .params
        .iter()
        .map(|p| {
            let n = 1 + 2 * p.dims.len();
            let hints: Vec<_> = (flat..flat + n).map(|i| spec.hint(i)).collect();
            flat += n;
            b.param_view(p.name, p.dtype, p.dims.len() as u8, spec.index, &hints)
        })
        .collect();
    let mut emit = Emit {
        body,
        b,
        views,
        hints: spec.hints.get(flat..).unwrap_or_default(),
        numbers: Vec::new(),
        known: HashMap::new(),
        origin: vec![],
        state: State::default(),
        unflat: HashMap::new(),
    };
    match emit.kernel() {
        Ok(()) => Ok((emit.b.finish(), emit.numbers)),
        Err(diagnostic) => Err(Error::Kernel { kernel: body.name.to_owned(), diagnostics: vec![diagnostic] }),
    }
}

/// What has been computed in the open regions.
#[derive(Clone, Default)]
pub(super) struct State {
    pub(super) values: HashMap<(NodeId, Vec<Affine>), Value>,
    coordinates: HashMap<usize, Value>,
    loaded: HashMap<usize, Value>,
}

pub(super) struct Emit<'a> {
    pub(super) body: &'a Body,
    pub(super) b: Builder,
    views: Vec<ViewValue>,
    /// What is known of the numbers.
    hints: &'a [ParamHint],
    /// Parameters after the views.
    numbers: Vec<Number>,
    /// Which value each is.
    known: HashMap<Meaning, Value>,
    /// First value of each variable in this tile.
    pub(super) origin: Vec<Value>,
    pub(super) state: State,
    /// What a tile was before dimensions of extent 1 were inserted.
    unflat: HashMap<Value, Value>,
}

/// An accumulator of a looped reduction.
enum Accumulator {
    Tile(NodeId, Value),
    Arg(NodeId, Value, Value),
    Dot(NodeId, Value),
}

impl Accumulator {
    fn values(&self) -> Vec<Value> {
        match *self {
            Accumulator::Tile(_, v) | Accumulator::Dot(_, v) => vec![v],
            Accumulator::Arg(_, v, i) => vec![v, i],
        }
    }

    fn with(&self, next: &mut impl Iterator<Item = Value>) -> Self {
        let mut take = |old: Value| next.next().unwrap_or(old);
        match *self {
            Accumulator::Tile(n, v) => Accumulator::Tile(n, take(v)),
            Accumulator::Dot(n, v) => Accumulator::Dot(n, take(v)),
            Accumulator::Arg(n, v, i) => Accumulator::Arg(n, take(v), take(i)),
        }
    }
}

impl Emit<'_> {
    fn kernel(&mut self) -> Built<()> {
        self.origins()?;
        let body = self.body;
        if let Some(node) = body.group.scatter {
            self.scatter(node)?;
            return self.stores(|_| true);
        }
        let nodes: Vec<NodeId> = body.group.nodes.iter().copied().collect();
        if !body.group.looped {
            for &node in &nodes {
                self.member(node)?;
            }
            return self.stores(|_| true);
        }
        let levels = self.levels();
        let level = |n: NodeId| levels.get(&n).copied().unwrap_or(0);
        let inner: HashSet<NodeId> = nodes.iter().copied().filter(|&n| self.in_loop(n)).collect();
        let stored: HashSet<NodeId> = body.group.stores.iter().map(|s| s.node).collect();
        let loops: Vec<usize> =
            (0..body.variables.len()).filter(|&v| body.variables[v].reduced && body.variables[v].tiled()).collect();
        // Every level goes through the rows once. What has no element for each value of a reduced variable is computed between.
        let last = nodes.iter().map(|&n| level(n)).max().unwrap_or(0);
        for now in 0..=last {
            for &node in &nodes {
                if level(node) == now && !inner.contains(&node) && !self.is_reduction(node) {
                    self.member(node)?;
                }
            }
            // A reduction is finished one level above that of its operand.
            let reductions: Vec<NodeId> =
                nodes.iter().copied().filter(|&n| self.is_reduction(n) && level(n) == now + 1).collect();
            let inner: Vec<NodeId> = nodes.iter().copied().filter(|n| inner.contains(n) && level(*n) == now).collect();
            if reductions.is_empty() && !inner.iter().any(|n| stored.contains(n)) {
                continue;
            }
            let mut accumulators = Vec::new();
            for &r in &reductions {
                let init = self.init(r)?;
                accumulators.push(init);
            }
            let outside = self.state.clone();
            let accumulators = self.nest(&loops, accumulators, &inner)?;
            self.state = outside;
            for a in &accumulators {
                self.finish_reduction(a)?;
            }
        }
        self.stores(|n| !inner.contains(&n))
    }

    /// Loops over the variables in `loops`, then the body of the innermost loop.
    fn nest(&mut self, loops: &[usize], accumulators: Vec<Accumulator>, inner: &[NodeId]) -> Built<Vec<Accumulator>> {
        let Some((&v, rest)) = loops.split_first() else {
            for &node in inner {
                self.member(node)?;
            }
            self.stores(|n| inner.contains(&n))?;
            let mut next = Vec::new();
            for a in accumulators {
                next.push(self.accumulate(a)?);
            }
            return Ok(next);
        };
        let inits: Vec<Value> = accumulators.iter().flat_map(Accumulator::values).collect();
        let lo = self.b.const_i64(DType::I32, 0)?;
        let hi = self.extent(v)?;
        let step = self.b.const_i64(DType::I32, self.body.variables[v].tile as i64)?;
        let (iv, carried) = self.b.begin_for(lo, hi, step, &inits)?;
        let (origin, state) = (self.origin[v], self.state.clone());
        self.enter(v, iv);
        let mut carried = carried.into_iter();
        let accumulators: Vec<Accumulator> = accumulators.iter().map(|a| a.with(&mut carried)).collect();
        let next = self.nest(rest, accumulators, inner)?;
        let values: Vec<Value> = next.iter().flat_map(Accumulator::values).collect();
        let mut results = self.b.end_for(&values)?.into_iter();
        (self.origin[v], self.state) = (origin, state);
        Ok(next.iter().map(|a| a.with(&mut results)).collect())
    }

    /// The body of a loop in which a variable begins here.
    pub(super) fn enter(&mut self, v: usize, origin: Value) {
        self.origin[v] = origin;
        // Coordinates and loads that depend on the variable belong to the loop; others found again are merged later.
        self.state.coordinates.remove(&v);
        self.state.loaded.clear();
    }

    /// Where this program's tile begins.
    fn origins(&mut self) -> Built<()> {
        let variables = &self.body.variables;
        let zero = self.b.const_i64(DType::I32, 0)?;
        self.origin = vec![zero; variables.len()];
        let tiled: Vec<usize> =
            (0..variables.len()).filter(|&v| !variables[v].reduced && variables[v].tiled()).collect();
        if tiled.is_empty() {
            return Ok(());
        }
        let mut rest = self.b.program_id(0)?;
        let mut tiled = tiled;
        if let Some(pair) = self.matrix_tiles(&tiled) {
            rest = self.matrix_origins(rest, pair, tiled.len() == 2)?;
            tiled.truncate(tiled.len() - 2);
        }
        for (i, &v) in tiled.iter().enumerate().rev() {
            let mut number = rest;
            if i > 0 {
                let tiles = self.tiles(v)?;
                number = self.b.binary(BinaryOp::Rem, rest, tiles)?;
                rest = self.b.binary(BinaryOp::Div, rest, tiles)?;
            }
            let tile = self.b.const_i64(DType::I32, variables[v].tile as i64)?;
            self.origin[v] = self.b.binary(BinaryOp::Mul, number, tile)?;
        }
        Ok(())
    }

    /// Rows and columns of tiles of a matrix product that has many of both.
    fn matrix_tiles(&self, tiled: &[usize]) -> Option<[usize; 2]> {
        let n = self.rank();
        let [.., m, last] = *tiled else { return None };
        let variables = &self.body.variables;
        let many = [m, last].iter().any(|&v| variables[v].varies)
            || variables[m].tiles() * variables[last].tiles() >= MANY_TILES;
        (self.body.group.dot.is_some() && many && m + 3 == n && last + 1 == n).then_some([m, last])
    }

    /// The origin of a tile of a matrix product. Tiles are numbered in groups of rows, column by column, so that programs that
    /// run at once share rows of one operand and columns of the other in the cache. Gives what is left of the number.
    fn matrix_origins(&mut self, number: Value, [m, n]: [usize; 2], only: bool) -> Built {
        let (rows, columns) = (self.tiles(m)?, self.tiles(n)?);
        let (mut tile, mut rest) = (number, number);
        if !only {
            let count = self.product(rows, columns)?;
            tile = self.b.binary(BinaryOp::Rem, number, count)?;
            rest = self.b.binary(BinaryOp::Div, number, count)?;
        }
        let height = self.b.const_i64(DType::I32, GROUP_ROWS)?;
        let in_group = self.product(height, columns)?;
        let group = self.b.binary(BinaryOp::Div, tile, in_group)?;
        let first = self.b.binary(BinaryOp::Mul, group, height)?;
        let left = self.b.binary(BinaryOp::Sub, rows, first)?;
        let rows = self.b.binary(BinaryOp::Min, left, height)?;
        let within = self.b.binary(BinaryOp::Rem, tile, in_group)?;
        let row = self.b.binary(BinaryOp::Rem, within, rows)?;
        let row = self.b.binary(BinaryOp::Add, first, row)?;
        let column = self.b.binary(BinaryOp::Div, within, rows)?;
        for (v, number) in [(m, row), (n, column)] {
            let size = self.b.const_i64(DType::I32, self.body.variables[v].tile as i64)?;
            self.origin[v] = self.b.binary(BinaryOp::Mul, number, size)?;
        }
        Ok(rest)
    }

    pub(super) fn bug(&self, what: &str) -> Diagnostic {
        self.b.error(format!("internal error of the kernel generator: {what}"))
    }

    fn is_reduction(&self, node: NodeId) -> bool {
        matches!(self.body.graph.nodes[node].op.class(), Class::Reduce | Class::Dot)
    }

    /// Has the node an element for each value of a reduced variable?
    fn in_loop(&self, node: NodeId) -> bool {
        let group = &self.body.group;
        !self.is_reduction(node)
            && group
                .place(&self.body.graph.ty(node).dims)
                .is_some_and(|at| at.iter().any(|a| group.reduced.iter().any(|&r| a.of(r) != 0)))
    }

    /// How many times in a row the group's reductions must have been finished before a node is known; nothing for those before any.
    fn levels(&self) -> HashMap<NodeId, usize> {
        let (graph, group) = (&self.body.graph, &self.body.group);
        let mut levels: HashMap<NodeId, usize> = HashMap::new();
        for &node in &group.nodes {
            let mut seen = HashSet::new();
            let mut stack = graph.nodes[node].args.clone();
            let mut level = 0;
            while let Some(a) = stack.pop() {
                if !seen.insert(a) {
                    continue;
                }
                if group.nodes.contains(&a) {
                    level = level.max(levels.get(&a).copied().unwrap_or(0));
                } else if !group.leaves.contains(&a) {
                    stack.extend(&graph.nodes[a].args);
                }
            }
            levels.insert(node, level + usize::from(self.is_reduction(node)));
        }
        levels
    }

    // ---- tiles ------------------------------------------------------------------------------------------------

    pub(super) fn rank(&self) -> usize {
        self.body.variables.len()
    }

    /// The shape of a tile that depends on these variables.
    pub(super) fn shape(&self, depends: impl Fn(usize) -> bool) -> Vec<usize> {
        self.body.variables.iter().enumerate().map(|(v, var)| if depends(v) { var.tile } else { 1 }).collect()
    }

    /// A number that the kernel takes as a parameter.
    fn number(&mut self, meaning: Meaning, dtype: DType, value: Constant) -> Built {
        if let Some(&known) = self.known.get(&meaning) {
            return Ok(known);
        }
        let i = self.numbers.len();
        let name = intern(&format!("n{}", self.views.len() + i));
        let param = self.b.param_scalar(name, dtype, self.hints.get(i).copied().unwrap_or_default());
        self.numbers.push(Number { name, dtype, value });
        self.known.insert(meaning, param);
        Ok(param)
    }

    /// An integer that varies with the extents if anything does.
    fn integer(&mut self, meaning: impl FnOnce() -> Meaning, varies: bool, dtype: DType, value: i64) -> Built {
        if varies {
            return self.number(meaning(), dtype, Constant::from_i64(dtype, value));
        }
        self.b.const_i64(dtype, value)
    }

    /// How many values a variable takes.
    pub(super) fn extent(&mut self, v: usize) -> Built {
        let Variable { extent, varies, .. } = self.body.variables[v];
        if varies {
            // Every view that has the variable tells.
            for (p, view) in self.body.params.iter().zip(&self.views) {
                if let Some(i) = p.variables.iter().position(|&w| w == v) {
                    return Ok(view.dims[i]);
                }
            }
        }
        self.integer(|| Meaning::Extent(v), varies, DType::I32, extent as i64)
    }

    /// How many tiles cover a variable's extent, which is not 0 if a program runs.
    fn tiles(&mut self, v: usize) -> Built {
        let Variable { tile, varies, .. } = self.body.variables[v];
        if !varies {
            return self.b.const_i64(DType::I32, self.body.variables[v].tiles() as i64);
        }
        let (extent, one) = (self.extent(v)?, self.b.const_i64(DType::I32, 1)?);
        let last = self.b.binary(BinaryOp::Sub, extent, one)?;
        let tile = self.b.const_i64(DType::I32, tile as i64)?;
        let last = self.b.binary(BinaryOp::Div, last, tile)?;
        self.b.binary(BinaryOp::Add, last, one)
    }

    /// A product of two integers, as a constant if they are.
    fn product(&mut self, x: Value, y: Value) -> Built {
        let known = |v| self.b.func().const_of(v).and_then(|c| c.as_i64(DType::I32));
        match (known(x), known(y)) {
            (Some(a), Some(b)) => self.b.const_i64(DType::I32, a * b),
            _ => self.b.binary(BinaryOp::Mul, x, y),
        }
    }

    /// A scalar as a tile of one element.
    fn unit(&mut self, value: Value) -> Built {
        self.b.reshape(value, Shape::new(vec![1; self.rank()]))
    }

    fn constant(&mut self, dtype: DType, value: Constant) -> Built {
        let ty = TileType::new(dtype, Shape::new(vec![1; self.rank()]));
        self.b.full(ty, value)
    }

    /// The values of a variable in this tile, `i32`.
    pub(super) fn coordinate(&mut self, v: usize) -> Built {
        if let Some(&known) = self.state.coordinates.get(&v) {
            return Ok(known);
        }
        let shape = self.shape(|w| w == v);
        let range = self.b.arange(0, self.body.variables[v].tile)?;
        let range = self.b.reshape(range, Shape::new(shape))?;
        let value = self.b.binary(BinaryOp::Add, range, self.origin[v])?;
        self.state.coordinates.insert(v, value);
        Ok(value)
    }

    /// The values of a function of the variables in this tile, `i32`.
    pub(super) fn affine(&mut self, a: &Affine) -> Built {
        let varies = self.body.varies;
        let mut sum = if a.offset != 0 && varies {
            let offset = Constant::from_i64(DType::I32, a.offset);
            let offset = self.number(Meaning::Offset(a.clone()), DType::I32, offset)?;
            self.unit(offset)?
        } else {
            self.constant(DType::I32, Constant::from_i64(DType::I32, a.offset))?
        };
        for (&v, &c) in &a.terms {
            let mut term = self.coordinate(v)?;
            if c != 1 {
                let factor = self.integer(|| Meaning::Coefficient(a.clone(), v), varies, DType::I32, c)?;
                term = self.b.binary(BinaryOp::Mul, term, factor)?;
            }
            sum = self.b.binary(BinaryOp::Add, sum, term)?;
        }
        Ok(sum)
    }

    /// Which lanes lie inside the extents of these variables; `None` if all do.
    pub(super) fn inside(&mut self, variables: impl Iterator<Item = usize>) -> Built<Option<Value>> {
        let mut mask = None;
        for v in variables {
            if !self.body.variables[v].ragged() {
                continue;
            }
            let at = self.coordinate(v)?;
            let extent = self.extent(v)?;
            let below = self.b.compare(Cmp::Lt, at, extent)?;
            mask = Some(match mask {
                None => below,
                Some(m) => self.b.binary(BinaryOp::And, m, below)?,
            });
        }
        Ok(mask)
    }

    fn load(&mut self, param: usize) -> Built {
        if let Some(&known) = self.state.loaded.get(&param) {
            return Ok(known);
        }
        let p = &self.body.params[param];
        let (offsets, tile) = self.window(param)?;
        let view = self.views[param].clone();
        let loaded = self.b.view_load(&view, &offsets, Shape::new(tile), None)?;
        let value = self.b.reshape(loaded, Shape::new(self.shape(|v| p.variables.contains(&v))))?;
        self.unflat.insert(value, loaded);
        self.state.loaded.insert(param, value);
        Ok(value)
    }

    /// Offsets and extents of this tile in a parameter's view.
    fn window(&mut self, param: usize) -> Built<(Vec<Value>, Vec<usize>)> {
        let variables = &self.body.params[param].variables;
        if variables.is_empty() {
            return Ok((vec![self.b.const_i64(DType::I32, 0)?], vec![1]));
        }
        let offsets = variables.iter().map(|&v| self.origin[v]).collect();
        Ok((offsets, variables.iter().map(|&v| self.body.variables[v].tile).collect()))
    }

    fn stores(&mut self, which: impl Fn(NodeId) -> bool) -> Built<()> {
        let body = self.body;
        for (store, &param) in body.group.stores.iter().zip(&body.stores) {
            if !which(store.node) {
                continue;
            }
            let at = body.group.place(&body.graph.ty(store.node).dims).ok_or_else(|| self.bug("no place to store"))?;
            let value = self.value(store.node, &at)?;
            let (offsets, tile) = self.window(param)?;
            let variables = &body.params[param].variables;
            let full = self.b.broadcast(value, Shape::new(self.shape(|v| variables.contains(&v))))?;
            let flat = self.b.reshape(full, Shape::new(tile))?;
            let view = self.views[param].clone();
            self.b.view_store(&view, &offsets, flat)?;
        }
        Ok(())
    }

    // ---- nodes ------------------------------------------------------------------------------------------------

    /// The tile of a node of the group.
    fn member(&mut self, node: NodeId) -> Built {
        let body = self.body;
        let data = &body.graph.nodes[node];
        let place = body.group.place(&data.ty.dims).ok_or_else(|| self.bug("a member has no place"))?;
        let key = (node, canonical(&place, &body.group.space));
        if let Some(&known) = self.state.values.get(&key) {
            return Ok(known);
        }
        self.b.set_loc(data.loc);
        let value = if data.op.class() == Class::Create {
            self.made(node, &place)?
        } else if self.is_reduction(node) {
            let operand = self.reduced_operand(node)?;
            self.reduce(node, operand)?
        } else {
            let operands =
                operand_coordinates(&body.graph, node, &body.group).ok_or_else(|| self.bug("no coordinates"))?;
            if data.op.class() == Class::Gather {
                self.gather(node, &place, &operands)?
            } else {
                let mut args = Vec::new();
                for (arg, at) in operands {
                    args.push(self.value(arg, &at)?);
                }
                if data.op.class() == Class::View { args[0] } else { self.pointwise(node, &args)? }
            }
        };
        self.state.values.insert(key, value);
        Ok(value)
    }

    fn pointwise(&mut self, node: NodeId, args: &[Value]) -> Built {
        let data = &self.body.graph.nodes[node];
        self.b.set_loc(data.loc);
        data.op.primitive().emit(&mut self.b, args)
    }

    /// The tile of any node at coordinates.
    pub(super) fn value(&mut self, node: NodeId, at: &[Affine]) -> Built {
        let body = self.body;
        let (graph, group) = (&body.graph, &body.group);
        let at = canonical(at, &group.space);
        if group.has(graph, node, &at) {
            return self.member(node);
        }
        let key = (node, at.clone());
        if let Some(&known) = self.state.values.get(&key) {
            return Ok(known);
        }
        let data = &graph.nodes[node];
        let value = if group.leaves.contains(&node) {
            self.read(node, &linear(&at, &data.ty.dims))?
        } else {
            match step(graph, node, &at, &group.space) {
                Step::Stored(root) => self.read(root, &linear(&at, &data.ty.dims))?,
                Step::Through(operands) => {
                    let mut args = Vec::new();
                    for (arg, at) in operands {
                        args.push(self.value(arg, &at)?);
                    }
                    if data.op.class() == Class::View { args[0] } else { self.pointwise(node, &args)? }
                }
                Step::Made => self.made(node, &at)?,
            }
        };
        self.state.values.insert(key, value);
        Ok(value)
    }

    /// A tensor made without operands.
    fn made(&mut self, node: NodeId, at: &[Affine]) -> Built {
        match &self.body.graph.nodes[node].op {
            Op::Full(full) if self.body.graph.varying.word(node) => {
                let number = self.number(Meaning::Word(node), full.dtype, Constant(full.word))?;
                self.unit(number)
            }
            Op::Full(full) => self.constant(full.dtype, Constant(full.word)),
            Op::Iota(iota) => {
                let place = self.body.affine(&at[iota.axis]);
                let tile = self.affine(&place)?;
                self.b.cast(tile, iota.dtype)
            }
            _ => Err(self.bug("a node is neither read nor computed")),
        }
    }

    fn read(&mut self, node: NodeId, place: &Affine) -> Built {
        let key = (node, self.body.affine(place));
        match self.body.loads.get(&key) {
            Some(&param) => self.load(param),
            None => Err(self.bug("a read has no parameter")),
        }
    }

    fn gather(&mut self, node: NodeId, place: &[Affine], operands: &[(NodeId, Vec<Affine>)]) -> Built {
        let body = self.body;
        let graph = &body.graph;
        let (table, index) = (operands[0].0, &operands[1]);
        let table_dims = graph.ty(table).dims.clone();
        let row: usize = table_dims[1..].iter().product();
        let number = self.value(index.0, &index.1)?;
        let dtype = graph.ty(index.0).dtype;
        let zero = self.b.const_i64(dtype, 0)?;
        let varies = graph.varying.any_dim(table);
        let rows = self.integer(|| Meaning::Rows(table), varies, dtype, table_dims[0] as i64)?;
        let low = self.b.compare(Cmp::Ge, number, zero)?;
        let high = self.b.compare(Cmp::Lt, number, rows)?;
        let mut mask = self.b.binary(BinaryOp::And, low, high)?;
        let rest = body.affine(&linear(&canonical(&place[index.1.len()..], &body.group.space), &table_dims[1..]));
        if let Some(inside) = self.inside(rest.terms.keys().copied())? {
            mask = self.b.binary(BinaryOp::And, mask, inside)?;
        }
        let step = self.integer(|| Meaning::Row(table), varies && row > 1, dtype, row as i64)?;
        let first = self.b.binary(BinaryOp::Mul, number, step)?;
        let rest = self.affine(&rest)?;
        let rest = self.b.cast(rest, dtype)?;
        let offset = self.b.binary(BinaryOp::Add, first, rest)?;
        let param = *body.tables.get(&storage(graph, table)).ok_or_else(|| self.bug("a table has no parameter"))?;
        let base = self.views[param].base;
        let pointer = self.b.ptr_add(base, offset)?;
        let out = graph.ty(node).dtype;
        let other = self.constant(out, Constant(outside(out)))?;
        let shape = self.b.ty(pointer).shape.clone();
        let mask = self.b.broadcast(mask, shape)?;
        self.b.load(pointer, Some(mask), Some(other))
    }

    // ---- reductions -------------------------------------------------------------------------------------------

    fn reduced_variables(&self) -> Vec<usize> {
        (0..self.rank()).filter(|&v| self.body.variables[v].reduced).collect()
    }

    /// The type a reduction accumulates in: halves and small integers would lose too much.
    fn accumulator_dtype(&self, node: NodeId) -> DType {
        let data = &self.body.graph.nodes[node];
        let dtype = self.body.graph.ty(data.args[0]).dtype;
        match &data.op {
            Op::Reduce(r) if matches!(r.op, ReduceOp::Sum | ReduceOp::Prod) => match dtype {
                DType::F16 | DType::BF16 => DType::F32,
                d => rules::sum_dtype(d),
            },
            _ => dtype,
        }
    }

    fn identity(&self, node: NodeId, dtype: DType) -> Constant {
        match &self.body.graph.nodes[node].op {
            Op::Reduce(r) => r.identity(dtype),
            Op::ArgReduce(r) => {
                let op = if r.max { ReduceOp::Max } else { ReduceOp::Min };
                crate::prim::Reduce { op, axes: vec![] }.identity(dtype)
            }
            _ => Constant(0),
        }
    }

    /// The operand of a reduction, of the full extent of the reduced variables, with what lies outside replaced by what
    /// changes nothing.
    fn reduced_operand(&mut self, node: NodeId) -> Built {
        let body = self.body;
        let operands = operand_coordinates(&body.graph, node, &body.group).ok_or_else(|| self.bug("no coordinates"))?;
        let value = self.value(operands[0].0, &operands[0].1)?;
        let dtype = self.accumulator_dtype(node);
        let value = self.b.cast(value, dtype)?;
        let mut shape = self.b.ty(value).shape.dims().to_vec();
        for v in self.reduced_variables() {
            shape[v] = body.variables[v].tile;
        }
        let value = self.b.broadcast(value, Shape::new(shape))?;
        let identity = self.identity(node, dtype);
        self.masked(value, identity)
    }

    fn masked(&mut self, value: Value, outside: Constant) -> Built {
        let reduced = self.reduced_variables();
        match self.inside(reduced.into_iter())? {
            None => Ok(value),
            Some(mask) => {
                let dtype = self.b.ty(value).dtype();
                let other = self.constant(dtype, outside)?;
                self.b.select(mask, value, other)
            }
        }
    }

    /// Combines a tile along the reduced variables, which stay with extent 1.
    fn reduce(&mut self, node: NodeId, mut value: Value) -> Built {
        let data = &self.body.graph.nodes[node];
        for v in self.reduced_variables() {
            let mut shape = self.b.ty(value).shape.dims().to_vec();
            shape[v] = 1;
            value = match &data.op {
                Op::Reduce(r) => self.b.reduce(r.op, value, v)?,
                Op::ArgReduce(r) => self.b.arg_reduce(r.max, value, v)?,
                _ => return Err(self.bug("no reduction")),
            };
            value = self.b.reshape(value, Shape::new(shape))?;
        }
        if self.reduced_variables().is_empty() && matches!(data.op, Op::ArgReduce(_)) {
            return self.constant(DType::I32, Constant(0));
        }
        self.b.cast(value, data.ty.dtype)
    }

    /// What an accumulator holds before the loop.
    fn init(&mut self, node: NodeId) -> Built<Accumulator> {
        let body = self.body;
        let data = &body.graph.nodes[node];
        if data.op.class() == Class::Dot {
            let n = self.rank();
            let shape = Shape::new(vec![body.variables[n - 3].tile, body.variables[n - 1].tile]);
            let dtype = rules::dot_accumulator(data.ty.dtype).ok_or_else(|| self.bug("no accumulator type"))?;
            return Ok(Accumulator::Dot(node, self.b.full(TileType::new(dtype, shape), Constant(0))?));
        }
        let dtype = self.accumulator_dtype(node);
        let shape = Shape::new(self.shape(|_| true));
        let identity = self.identity(node, dtype);
        let value = self.b.full(TileType::new(dtype, shape.clone()), identity)?;
        if matches!(data.op, Op::ArgReduce(_)) {
            let none = Constant::from_i64(DType::I32, i64::from(i32::MAX));
            return Ok(Accumulator::Arg(node, value, self.b.full(TileType::new(DType::I32, shape), none)?));
        }
        Ok(Accumulator::Tile(node, value))
    }

    /// One step of the loop.
    fn accumulate(&mut self, accumulator: Accumulator) -> Built<Accumulator> {
        let body = self.body;
        match accumulator {
            Accumulator::Tile(node, old) => {
                let tile = self.reduced_operand(node)?;
                let Op::Reduce(r) = &body.graph.nodes[node].op else { return Err(self.bug("no reduction")) };
                Ok(Accumulator::Tile(node, self.b.binary(r.combine(), old, tile)?))
            }
            Accumulator::Arg(node, old, old_at) => {
                let tile = self.reduced_operand(node)?;
                let shape = self.b.ty(old).shape.clone();
                let tile = self.b.broadcast(tile, shape.clone())?;
                let Op::ArgReduce(r) = &body.graph.nodes[node].op else { return Err(self.bug("no reduction")) };
                let mut better = self.b.compare(if r.max { Cmp::Gt } else { Cmp::Lt }, tile, old)?;
                // A lane that has seen nothing takes what it sees; the first NaN beats every number.
                let none = self.b.const_i64(DType::I32, i64::from(i32::MAX))?;
                let empty = self.b.compare(Cmp::Eq, old_at, none)?;
                let inside = self.inside(self.reduced_variables().into_iter())?;
                let empty = match inside {
                    Some(m) => self.b.binary(BinaryOp::And, empty, m)?,
                    None => empty,
                };
                better = self.b.binary(BinaryOp::Or, better, empty)?;
                if self.b.ty(old).dtype().is_float() {
                    let nan = self.b.compare(Cmp::Ne, tile, tile)?;
                    let number = self.b.compare(Cmp::Eq, old, old)?;
                    let first = self.b.binary(BinaryOp::And, nan, number)?;
                    better = self.b.binary(BinaryOp::Or, better, first)?;
                }
                let v = *self.reduced_variables().first().ok_or_else(|| self.bug("nothing is reduced"))?;
                let at = self.coordinate(v)?;
                let value = self.b.select(better, tile, old)?;
                Ok(Accumulator::Arg(node, value, self.b.select(better, at, old_at)?))
            }
            Accumulator::Dot(node, old) => {
                let operands =
                    operand_coordinates(&body.graph, node, &body.group).ok_or_else(|| self.bug("no coordinates"))?;
                let n = self.rank();
                let sides = [[n - 3, n - 2], [n - 2, n - 1]];
                let mut tiles = Vec::new();
                for ((arg, at), side) in operands.iter().zip(sides) {
                    let value = self.value(*arg, at)?;
                    tiles.push(self.matrix(value, side)?);
                }
                Ok(Accumulator::Dot(node, self.b.dot(tiles[0], tiles[1], old, DotPrecision::Ieee)?))
            }
        }
    }

    /// An operand of a matrix product as a matrix.
    fn matrix(&mut self, value: Value, side: [usize; 2]) -> Built {
        let shape = side.map(|v| self.body.variables[v].tile);
        if let Some(&loaded) = self.unflat.get(&value)
            && self.b.ty(loaded).shape.dims() == shape
        {
            return Ok(loaded);
        }
        let full = self.b.broadcast(value, Shape::new(self.shape(|v| side.contains(&v))))?;
        // Lanes beyond the end of k must be 0, which only loads that have k see to.
        let full = self.masked(full, Constant(0))?;
        self.b.reshape(full, Shape::new(shape.to_vec()))
    }

    /// The result of an accumulator after the loop.
    fn finish_reduction(&mut self, accumulator: &Accumulator) -> Built<()> {
        let body = self.body;
        let (node, value) = match *accumulator {
            Accumulator::Tile(node, value) => (node, self.reduce(node, value)?),
            Accumulator::Dot(node, value) => {
                let n = self.rank();
                let shape = self.shape(|v| v == n - 3 || v == n - 1);
                let value = self.b.cast(value, body.graph.ty(node).dtype)?;
                (node, self.b.reshape(value, Shape::new(shape))?)
            }
            Accumulator::Arg(node, value, at) => {
                let Op::ArgReduce(r) = &body.graph.nodes[node].op else { return Err(self.bug("no reduction")) };
                let v = *self.reduced_variables().first().ok_or_else(|| self.bug("nothing is reduced"))?;
                let mut shape = self.b.ty(value).shape.dims().to_vec();
                shape[v] = 1;
                let best = self.b.reduce(if r.max { ReduceOp::Max } else { ReduceOp::Min }, value, v)?;
                let best = self.b.reshape(best, Shape::new(shape.clone()))?;
                let equal = self.b.compare(Cmp::Eq, value, best)?;
                let nan = self.b.compare(Cmp::Ne, value, value)?;
                let chosen = self.b.binary(BinaryOp::Or, equal, nan)?;
                let none = self.b.const_i64(DType::I32, i64::from(i32::MAX))?;
                let at = self.b.select(chosen, at, none)?;
                let first = self.b.reduce(ReduceOp::Min, at, v)?;
                (node, self.b.reshape(first, Shape::new(shape))?)
            }
        };
        let place = body.group.place(&body.graph.ty(node).dims).ok_or_else(|| self.bug("a member has no place"))?;
        self.state.values.insert((node, canonical(&place, &body.group.space)), value);
        Ok(())
    }
}
