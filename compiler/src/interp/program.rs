//! Preparing a function for execution: which loop runs each op, which slot holds each value, what may be reused.

use super::dot;
use super::elementwise;
use super::exec::Worker;
use super::reduce;
use super::value::Type;
use crate::dtype::DType;
use crate::entity::Entity;
use crate::error::{Diagnostic, Error, Loc, Result};
use crate::tile::{BinaryOp, Cmp, Elem, Function, Op, OpData, OpId, Region, TileType, Value, ValueDef, rules};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

/// Regions nested deeper than this are refused: they would exhaust the stack.
const MAX_DEPTH: usize = 128;

/// A function prepared for execution. It can be run any number of times, from several threads at once.
#[derive(Debug)]
pub struct Program {
    pub(super) name: String,
    /// Types of the flattened parameters, whose slots are the first ones.
    pub(super) params: Vec<Arc<Type>>,
    pub(super) body: Code,
    pub(super) slots: usize,
    /// Workers of earlier runs with their buffers, for the next run.
    pub(super) workers: Mutex<Vec<Worker>>,
}

/// Instructions in order of execution.
pub(super) type Code = Vec<Inst>;

/// A value: where it is and what type it has there.
#[derive(Clone, Debug)]
pub(super) struct Ref {
    pub slot: usize,
    pub ty: Arc<Type>,
}

/// One instruction.
#[derive(Debug)]
pub(super) struct Inst {
    pub action: Action,
    pub operands: Vec<Ref>,
    pub results: Vec<Ref>,
    pub loc: Loc,
}

/// What an instruction does.
#[derive(Debug)]
pub(super) enum Action {
    ProgramId(usize),
    NumPrograms(usize),
    Const(u64),
    Arange(i32),
    /// A loop over elements; the rule computes a formula from formulas instead, where it can.
    Map(elementwise::Kernel, Rule),
    /// The same bits in another type.
    Bitcast,
    Broadcast,
    Reshape,
    Permute(Vec<usize>),
    Load,
    Store,
    ViewLoad(usize),
    ViewStore(usize),
    Reduce(reduce::Kernel, reduce::Geometry),
    /// `steal`: the accumulator is not used afterwards, so that its buffer becomes the result's.
    Dot {
        kernel: dot::Kernel,
        steal: bool,
    },
    For {
        iv: Ref,
        /// Parameters of the body; they are the results of the loop, too.
        carried: Vec<Ref>,
        body: Code,
    },
    While {
        carried: Vec<Ref>,
        condition: Code,
        /// What the condition's region ends with.
        go_on: Ref,
        body: Code,
    },
    If {
        then: Code,
        otherwise: Code,
    },
    /// Ends a region: brings its values to the slots of those they become. All `through` first, by way of copies
    /// taken at once; then `copies`; then `swaps`, from slots that are not used afterwards.
    Move {
        through: Vec<(Ref, Ref)>,
        copies: Vec<(Ref, Ref)>,
        swaps: Vec<(Ref, Ref)>,
    },
}

/// How an elementwise op computes formulas (see [`super::value::Affine`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rule {
    None,
    Add,
    Sub,
    Mul,
    /// A sum of an address and so many elements of this many bytes.
    PtrAdd(i64),
    Cast,
    Compare(Cmp),
}

impl Program {
    /// Prepares a function.
    ///
    /// # Errors
    /// [`Error::Verify`] if an op breaks the rules of the Tile IR, so that it has no meaning.
    pub fn compile(func: &Function) -> Result<Program> {
        check_structure(func)?;
        let mut lowering = Lowering {
            func,
            types: HashMap::new(),
            values: vec![None; func.values.len()],
            free: HashMap::new(),
            slots: 0,
        };
        let params = &func.regions[func.body].params;
        let flat: usize = func.params.iter().map(|p| p.kind.flat_len()).sum();
        if flat != params.len() {
            return Err(invalid(
                func,
                Loc::UNKNOWN,
                format!("{flat} flattened parameters, but {} values", params.len()),
            ));
        }
        if let Some(&p) = params.iter().find(|&&p| func.values.get(p).is_none_or(|data| !data.ty.is_scalar())) {
            return Err(invalid(func, Loc::UNKNOWN, format!("the kernel parameter {p} is not a scalar")));
        }
        let params = params.iter().map(|&p| lowering.define(p).ty).collect::<Vec<_>>();
        let body = lowering.region(func.body, &[])?.code;
        Ok(Program { name: func.name.clone(), params, body, slots: lowering.slots, workers: Mutex::default() })
    }

    /// The kernel's name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

fn invalid(func: &Function, loc: Loc, message: String) -> Error {
    Error::Verify {
        function: func.name.clone(),
        stage: "before it is interpreted".into(),
        diagnostics: vec![Diagnostic::new(loc, message)],
    }
}

/// Checks, without recursion, that regions form a tree of bounded depth and are ended as their ops demand.
fn check_structure(func: &Function) -> Result<()> {
    let mut seen = HashSet::new();
    let mut todo = vec![(func.body, 0)];
    while let Some((region, depth)) = todo.pop() {
        if func.regions.get(region).is_none() {
            return Err(invalid(func, Loc::UNKNOWN, format!("{region} does not exist")));
        }
        if !seen.insert(region) {
            return Err(invalid(func, Loc::UNKNOWN, format!("{region} is used twice")));
        }
        let ops = &func.regions[region].ops;
        for (i, &id) in ops.iter().enumerate() {
            let Some(op) = func.ops.get(id) else {
                return Err(invalid(func, Loc::UNKNOWN, format!("{id} does not exist")));
            };
            if depth >= MAX_DEPTH && !op.regions.is_empty() {
                return Err(invalid(func, op.loc, format!("loops and branches are nested more than {MAX_DEPTH} deep")));
            }
            if op.op.is_terminator() != (i + 1 == ops.len()) {
                return Err(invalid(func, op.loc, format!("`{}` in {region} is misplaced", op.op.mnemonic())));
            }
            if op.regions.len() != op.op.info().regions {
                return Err(invalid(func, op.loc, format!("`{}` has {} regions", op.op.mnemonic(), op.regions.len())));
            }
            todo.extend(op.regions.iter().map(|&r| (r, depth + 1)));
        }
        if ops.is_empty() {
            return Err(invalid(func, Loc::UNKNOWN, format!("{region} has no terminator")));
        }
    }
    Ok(())
}

/// A region made into code.
struct Lowered {
    code: Code,
    /// Where the value that `condition` ends the region with is, just after the code.
    go_on: Option<Ref>,
}

struct Lowering<'f> {
    func: &'f Function,
    types: HashMap<TileType, Arc<Type>>,
    /// Where each value is, from its definition to its last use.
    values: Vec<Option<Ref>>,
    /// Slots that hold no value now, by their size in words.
    free: HashMap<usize, Vec<usize>>,
    slots: usize,
}

impl Lowering<'_> {
    fn ty(&mut self, ty: &TileType) -> Arc<Type> {
        self.types.entry(ty.clone()).or_insert_with(|| Arc::new(Type::new(ty))).clone()
    }

    /// Gives a value a slot.
    fn define(&mut self, value: Value) -> Ref {
        let func = self.func;
        let ty = self.ty(func.ty(value));
        let slot = self.free.get_mut(&ty.words()).and_then(Vec::pop).unwrap_or_else(|| {
            self.slots += 1;
            self.slots - 1
        });
        self.bind(value, Ref { slot, ty })
    }

    fn bind(&mut self, value: Value, place: Ref) -> Ref {
        self.values[value.index()] = Some(place.clone());
        place
    }

    /// Ends a value's life: its slot may hold another from now on.
    fn release(&mut self, value: Value) {
        if let Some(place) = self.values[value.index()].take() {
            self.free.entry(place.ty.words()).or_default().push(place.slot);
        }
    }

    fn place(&self, value: Value, loc: Loc) -> Result<Ref> {
        let place = self.values.get(value.index()).and_then(Clone::clone);
        place.ok_or_else(|| invalid(self.func, loc, format!("{value} is used where it is not defined")))
    }

    /// Lowers a region whose parameters have their slots; the values it ends with go to `targets`.
    fn region(&mut self, region: Region, targets: &[Ref]) -> Result<Lowered> {
        let func = self.func;
        let ops = &func.regions[region].ops;
        let here: HashSet<OpId> = ops.iter().copied().collect();
        let is_condition = func.ops[func.terminator(region)].op == Op::Condition;
        let mut last_use = HashMap::new();
        for (at, &op) in ops.iter().enumerate() {
            let mut note = |op: OpId| last_use.extend(func.ops[op].operands.iter().map(|&v| (v, at)));
            note(op);
            for &inner in &func.ops[op].regions {
                func.walk(inner, &mut note);
            }
        }
        let (mut code, mut go_on) = (Code::new(), None);
        for (at, &id) in ops.iter().enumerate() {
            let data = &func.ops[id];
            if let Some(v) = data.operands.iter().chain(&data.results).find(|v| func.values.get(**v).is_none()) {
                return Err(invalid(func, data.loc, format!("{v} does not exist")));
            }
            let types = |values: &[Value]| values.iter().map(|&v| func.ty(v).clone()).collect::<Vec<_>>();
            rules::check(&data.op, &types(&data.operands), &types(&data.results))
                .map_err(|p| invalid(func, data.loc, p.message))?;
            let operands = data.operands.iter().map(|&v| self.place(v, data.loc)).collect::<Result<Vec<_>>>()?;
            let defined_here =
                |v: Value| matches!(func.values[v].def, ValueDef::Result { op, .. } if here.contains(&op));
            if matches!(data.op, Op::Yield) {
                code.push(self.end(region, &here, data, operands, targets)?);
            } else if matches!(data.op, Op::Condition) {
                go_on = Some(operands[0].clone());
            } else {
                let steal = match (&data.op, data.operands.as_slice()) {
                    (Op::Dot { .. }, &[a, b, acc]) => {
                        // The parameters of a condition are also those of the body that follows.
                        let own = matches!(func.values[acc].def, ValueDef::Param { region: r, .. } if r == region);
                        let mortal = defined_here(acc) || own && !is_condition;
                        mortal && last_use[&acc] == at && acc != a && acc != b
                    }
                    _ => false,
                };
                code.push(self.op(data, operands, steal)?);
            }
            // Values defined here die at their last use; parameters are their loop's to release.
            for &v in data.results.iter().filter(|v| !last_use.contains_key(v)) {
                self.release(v);
            }
            let mut dying: Vec<Value> = Vec::new();
            let mut note = |op: OpId| {
                for &v in &func.ops[op].operands {
                    if last_use[&v] == at && defined_here(v) && !dying.contains(&v) {
                        dying.push(v);
                    }
                }
            };
            note(id);
            for &inner in &data.regions {
                func.walk(inner, &mut note);
            }
            for v in dying {
                self.release(v);
            }
        }
        Ok(Lowered { code, go_on })
    }

    /// The moves that end a region.
    fn end(
        &self,
        region: Region,
        here: &HashSet<OpId>,
        data: &OpData,
        from: Vec<Ref>,
        targets: &[Ref],
    ) -> Result<Inst> {
        let func = self.func;
        let wrong = from.len() != targets.len() || from.iter().zip(targets).any(|(f, t)| f.ty != t.ty);
        if wrong {
            return Err(invalid(func, data.loc, format!("{region} does not end with the values it should")));
        }
        let (mut through, mut copies, mut swaps) = (Vec::new(), Vec::new(), Vec::new());
        for (i, (from, to)) in from.into_iter().zip(targets.iter().cloned()).enumerate() {
            let value = data.operands[i];
            if from.slot == to.slot {
                continue;
            }
            match func.values[value].def {
                ValueDef::Param { region: r, .. } if r == region => through.push((from, to)),
                // Of several uses the last takes the slot's content away.
                ValueDef::Result { op, .. } if here.contains(&op) && !data.operands[i + 1..].contains(&value) => {
                    swaps.push((from, to));
                }
                _ => copies.push((from, to)),
            }
        }
        Ok(Inst { action: Action::Move { through, copies, swaps }, operands: vec![], results: vec![], loc: data.loc })
    }

    /// Checks that the parameters of a region have the types of `values`, which they stand for.
    fn check_params(&self, region: Region, values: &[Value], loc: Loc) -> Result<()> {
        let params = &self.func.regions[region].params;
        let same = params.len() == values.len()
            && params
                .iter()
                .zip(values)
                .all(|(&p, &v)| self.func.values.get(p).is_some_and(|d| d.ty == *self.func.ty(v)));
        if same { Ok(()) } else { Err(invalid(self.func, loc, format!("the parameters of {region} have wrong types"))) }
    }

    /// Gives the parameters of a region slots, after checking their types.
    fn params(&mut self, region: Region, values: &[Value], loc: Loc) -> Result<Vec<Ref>> {
        self.check_params(region, values, loc)?;
        Ok(self.func.regions[region].params.iter().map(|&p| self.define(p)).collect())
    }

    fn op(&mut self, data: &OpData, operands: Vec<Ref>, steal: bool) -> Result<Inst> {
        let types: Vec<Arc<Type>> = operands.iter().map(|r| r.ty.clone()).collect();
        let action = match data.op {
            Op::For => {
                let values: Vec<Value> = data.operands[..1].iter().chain(&data.operands[3..]).copied().collect();
                let mut carried = self.params(data.regions[0], &values, data.loc)?;
                let body = self.region(data.regions[0], &carried[1..])?.code;
                let iv = carried.remove(0);
                self.release(self.func.regions[data.regions[0]].params[0]);
                self.become_results(data, &carried);
                Action::For { iv, carried, body }
            }
            Op::While => {
                let carried = self.params(data.regions[0], &data.operands, data.loc)?;
                self.check_params(data.regions[1], &data.operands, data.loc)?;
                let Lowered { code: condition, go_on: Some(go_on) } = self.region(data.regions[0], &[])? else {
                    return Err(invalid(self.func, data.loc, "the condition of `while` ends in `yield`".into()));
                };
                let body_params = &self.func.regions[data.regions[1]].params;
                for (&p, place) in body_params.iter().zip(&carried) {
                    self.bind(p, place.clone());
                }
                let body = self.region(data.regions[1], &carried)?.code;
                self.become_results(data, &carried);
                Action::While { carried, condition, go_on, body }
            }
            Op::If => {
                let results: Vec<Ref> = data.results.iter().map(|&v| self.define(v)).collect();
                for &r in &data.regions {
                    if !self.func.regions[r].params.is_empty() {
                        return Err(invalid(self.func, data.loc, "a branch of `if` has parameters".into()));
                    }
                }
                let then = self.region(data.regions[0], &results)?.code;
                let otherwise = self.region(data.regions[1], &results)?.code;
                Action::If { then, otherwise }
            }
            _ => {
                for &v in &data.results {
                    self.define(v);
                }
                self.simple_action(data, &types, steal)?
            }
        };
        let results = data.results.iter().map(|&v| self.place(v, data.loc)).collect::<Result<Vec<_>>>()?;
        Ok(Inst { action, operands, results, loc: data.loc })
    }

    /// The results of a loop are its carried values, where they are; its parameters are no more.
    fn become_results(&mut self, data: &OpData, carried: &[Ref]) {
        for &region in &data.regions {
            for &p in &self.func.regions[region].params {
                self.values[p.index()] = None;
            }
        }
        for (&v, place) in data.results.iter().zip(carried) {
            self.bind(v, place.clone());
        }
    }

    fn simple_action(&self, data: &OpData, types: &[Arc<Type>], steal: bool) -> Result<Action> {
        let missing = || invalid(self.func, data.loc, format!("`{}` is not defined here", data.op.mnemonic()));
        let operand = types.first().map(|t| t.elem.dtype());
        let result = data.results.first().map(|&v| self.func.ty(v).dtype());
        let map = |rule| {
            let kernel = operand.zip(result).and_then(|(o, r)| elementwise::kernel(&data.op, o, r));
            kernel.map(|k| Action::Map(k, rule)).ok_or_else(missing)
        };
        match &data.op {
            Op::ProgramId { axis } => Ok(Action::ProgramId((*axis).into())),
            Op::NumPrograms { axis } => Ok(Action::NumPrograms((*axis).into())),
            Op::Const(c) => Ok(Action::Const(truncate(result.ok_or_else(missing)?, c.0))),
            Op::Arange { start } => Ok(Action::Arange(*start)),
            Op::Binary(BinaryOp::Add) => map(Rule::Add),
            Op::Binary(BinaryOp::Sub) => map(Rule::Sub),
            Op::Binary(BinaryOp::Mul) => map(Rule::Mul),
            Op::Compare(c) => map(Rule::Compare(*c)),
            Op::Cast => map(Rule::Cast),
            Op::Unary(_) | Op::Binary(_) | Op::Fma => map(Rule::None),
            Op::Select => Ok(Action::Map(elementwise::select_kernel(types[1].bytes), Rule::None)),
            Op::PtrAdd => {
                let bytes = types[0].elem.dtype().bytes();
                let kernel = elementwise::ptr_add_kernel(types[1].elem.dtype(), bytes).ok_or_else(missing)?;
                Ok(Action::Map(kernel, Rule::PtrAdd(bytes as i64)))
            }
            Op::Bitcast => Ok(Action::Bitcast),
            Op::Broadcast => Ok(Action::Broadcast),
            Op::Reshape => Ok(Action::Reshape),
            Op::Permute(perm) => Ok(Action::Permute(perm.iter().map(|&p| p.into()).collect())),
            Op::Load => Ok(Action::Load),
            Op::Store => Ok(Action::Store),
            Op::ViewLoad { rank } => Ok(Action::ViewLoad((*rank).into())),
            Op::ViewStore { rank } => Ok(Action::ViewStore((*rank).into())),
            Op::Reduce { op, axis } => {
                let kernel = operand.and_then(|o| reduce::kernel(*op, o)).ok_or_else(missing)?;
                Ok(Action::Reduce(kernel, reduce::Geometry::new(&types[0].dims, (*axis).into())))
            }
            Op::ArgReduce { max, axis } => {
                let kernel = reduce::arg_kernel(*max, operand.ok_or_else(missing)?);
                Ok(Action::Reduce(kernel, reduce::Geometry::new(&types[0].dims, (*axis).into())))
            }
            Op::Dot { .. } => {
                let kernel = operand.and_then(dot::kernel).ok_or_else(missing)?;
                Ok(Action::Dot { kernel, steal })
            }
            Op::For | Op::While | Op::If | Op::Yield | Op::Condition => Err(missing()),
        }
    }
}

/// The bits that a value of a type keeps.
pub(super) fn truncate(dtype: DType, bits: u64) -> u64 {
    use super::scalar::{Element, dispatch};
    dispatch!(dtype, T => T::from_bits64(bits).to_bits64())
}

/// The bits that an element of a slot keeps.
pub(super) fn truncate_elem(elem: Elem, bits: u64) -> u64 {
    match elem {
        Elem::Scalar(d) => truncate(d, bits),
        Elem::Ptr(_) => bits,
    }
}
