//! From cases to kernels: many cases of the same operands are one launch.

use crate::data::{Array, Case, DATA, Window, word};
use std::any::TypeId;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use tilewright_compiler::dsl::{ComptimeValue, KernelDef, KernelId, Specialization};
use tilewright_compiler::error::Error;
use tilewright_compiler::tile::{
    Builder, Built, Constant, DotPrecision, Function, Op, ParamKind, Shape, TileType, Value, ViewValue, parse,
};
use tilewright_compiler::{DType, Result};

/// Most cases of one kernel, and most operands.
const TOGETHER: usize = 24;
const OPERANDS: usize = 12;

/// An argument; memory is numbered.
pub enum Arg {
    Number(DType, u64),
    Address(usize, DType),
    View(usize, DType, Window),
}

/// Where the result of a case is.
pub struct Place {
    pub case: &'static Case,
    pub memory: usize,
    /// Of its first element.
    pub start: usize,
}

/// A launch.
pub struct Plan {
    pub def: KernelDef,
    pub args: Vec<(&'static str, Arg)>,
    pub memory: Vec<Vec<u8>>,
    pub grid: [usize; 3],
    pub warps: u32,
    pub places: Vec<Place>,
}

/// What a kernel is made of.
#[derive(Clone, Hash, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Kind {
    /// Elementwise, so many elements a program; the result of a case is a row of the memory of its type.
    Lanes(usize),
    /// Whole tiles in one program; the results of a type lie one after the other.
    Tiles,
    /// As the case says.
    Program,
}

/// Plans for the cases; `block` is the number of elements that a program takes of elementwise operations.
pub fn plans(cases: impl Iterator<Item = &'static Case>, block: usize) -> Vec<Plan> {
    let mut groups: BTreeMap<(&[String], bool), Vec<&'static Case>> = BTreeMap::new();
    // By their types: what a device lacks then makes others fail together with it rarely.
    let mut whole: BTreeMap<DType, Vec<&'static Case>> = BTreeMap::new();
    let mut alone = Vec::new();
    for case in cases {
        if case.program.is_some() {
            alone.push(case);
            continue;
        }
        let op = case.op().unwrap_or_else(|| panic!("{} is no operation", case.f));
        if op.is_elementwise() {
            groups.entry((&case.x, case.outer)).or_default().push(case);
        } else {
            let dtype = case.operands().first().map_or(case.y.dtype, |a| a.dtype);
            whole.entry(dtype).or_default().push(case);
        }
    }
    let elementwise = groups.into_values().flat_map(|cases| chunks(cases, 3)).map(|c| lanes(c, block));
    let tiles = whole.into_values().flat_map(|cases| chunks(cases, OPERANDS)).map(tiles);
    elementwise.chain(tiles).chain(alone.into_iter().map(program)).collect()
}

/// Cases of so many operands together.
fn chunks(cases: Vec<&'static Case>, operands: usize) -> Vec<Vec<&'static Case>> {
    let mut all: Vec<Vec<&'static Case>> = Vec::new();
    let mut names = BTreeSet::new();
    for case in cases {
        names.extend(&case.x);
        match all.last_mut() {
            Some(last) if last.len() < TOGETHER && names.len() <= operands => last.push(case),
            _ => {
                names = case.x.iter().collect();
                all.push(vec![case]);
            }
        }
    }
    all
}

/// The plan for one case alone.
pub fn alone(case: &'static Case, block: usize) -> Plan {
    plans(std::iter::once(case), block).remove(0)
}

fn definition(
    kind: Kind,
    cases: &[&'static Case],
    build: impl Fn(&Specialization) -> Built<Function> + Send + Sync + 'static,
) -> KernelDef {
    struct Numpy;
    let which = cases.iter().map(|c| format!("{:p}", *c)).collect();
    let id = KernelId {
        path: "numpy",
        item: TypeId::of::<Numpy>(),
        dtypes: Vec::new(),
        comptime: vec![ComptimeValue::Text(format!("{kind:?}")), ComptimeValue::Text(which)],
    };
    KernelDef::new("numpy", id, move |spec| {
        build(spec).map_err(|d| Error::Kernel { kernel: "numpy".into(), diagnostics: vec![d] })
    })
}

/// Names of parameters live as long as the process, as those of the source do.
fn name(i: usize) -> &'static str {
    const NAMES: [&str; 24] = [
        "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9", "p10", "p11", "p12", "p13", "p14", "p15", "p16",
        "p17", "p18", "p19", "p20", "p21", "p22", "p23",
    ];
    NAMES[i]
}

fn row_major(dims: &[usize]) -> Window {
    let strides = Shape::new(dims).strides().into_iter().map(|s| s as isize).collect();
    Window { d: dims.to_vec(), strides, offset: 0 }
}

/// A kernel whose parameters are all views, with the facts that the launch finds.
struct Views<'a> {
    b: Builder,
    spec: &'a Specialization,
    flat: usize,
    count: usize,
}

impl<'a> Views<'a> {
    fn new(spec: &'a Specialization) -> Self {
        Self { b: Builder::new("numpy"), spec, flat: 0, count: 0 }
    }

    fn next(&mut self, dtype: DType, rank: usize) -> ViewValue {
        let words = 1 + 2 * rank;
        let hints: Vec<_> = (self.flat..self.flat + words).map(|i| self.spec.hint(i)).collect();
        self.flat += words;
        self.count += 1;
        self.b.param_view(name(self.count - 1), dtype, rank as u8, self.spec.index, &hints)
    }
}

/// Memory for the results of each type: its number, and so many elements.
type Outputs = BTreeMap<DType, (usize, usize)>;

fn reserve(
    outputs: &mut Outputs,
    inputs: usize,
    cases: &[&'static Case],
    elements: impl Fn(&Case) -> usize,
) -> Vec<Place> {
    for case in cases {
        outputs.entry(case.y.dtype).or_default();
    }
    for (i, (memory, _)) in outputs.values_mut().enumerate() {
        *memory = inputs + i;
    }
    let mut place = |case: &&'static Case| {
        let (memory, end) = outputs.get_mut(&case.y.dtype).expect("entered above");
        let start = *end;
        *end += elements(case);
        Place { case, memory: *memory, start }
    };
    cases.iter().map(&mut place).collect()
}

/// What no operation gives.
fn blank(dtype: DType, elements: usize) -> Vec<u8> {
    vec![0xa5; elements * dtype.bytes()]
}

// ---- elementwise ------------------------------------------------------------------------------------------------

fn lanes(cases: Vec<&'static Case>, block: usize) -> Plan {
    let first = cases[0];
    let n = first.y.elements();
    let types: Vec<DType> = first.operands().iter().map(|a| a.dtype).collect();
    let mut memory: Vec<Vec<u8>> = (0..types.len()).map(|i| repeated(first, i, n)).collect();
    let mut outputs = Outputs::new();
    let places = reserve(&mut outputs, types.len(), &cases, |_| n);
    let mut args: Vec<(&str, Arg)> =
        types.iter().enumerate().map(|(i, &t)| (name(i), Arg::View(i, t, row_major(&[n])))).collect();
    for (&dtype, &(number, elements)) in &outputs {
        args.push((name(number), Arg::View(number, dtype, row_major(&[elements / n, n]))));
        memory.push(blank(dtype, elements));
    }
    let rows: Vec<i64> = places.iter().map(|p| (p.start / n) as i64).collect();
    let of_outputs: Vec<DType> = outputs.into_keys().collect();
    let def = definition(Kind::Lanes(block), &cases.clone(), move |spec| {
        let mut views = Views::new(spec);
        let inputs: Vec<ViewValue> = types.iter().map(|&t| views.next(t, 1)).collect();
        let results: BTreeMap<DType, ViewValue> = of_outputs.iter().map(|&t| (t, views.next(t, 2))).collect();
        let mut b = views.b;
        let (pid, size) = (b.program_id(0)?, b.const_i64(DType::I32, block as i64)?);
        let start = b.binary(tilewright_compiler::tile::BinaryOp::Mul, pid, size)?;
        let x = inputs.iter().map(|v| b.view_load(v, &[start], [block], None)).collect::<Built<Vec<Value>>>()?;
        for (case, &row) in cases.iter().zip(&rows) {
            let y = apply(&mut b, case, &x)?;
            let (row, y) = (b.const_i64(DType::I32, row)?, b.reshape(y, [1, block])?);
            b.view_store(&results[&case.y.dtype], &[row, start], y)?;
        }
        Ok(b.finish())
    });
    let warps = if block < 32 { 1 } else { 4 };
    Plan { def, args, memory, grid: [n.div_ceil(block), 1, 1], warps, places }
}

/// An operand, repeated for all pairs.
fn repeated(case: &Case, which: usize, n: usize) -> Vec<u8> {
    let (of, size) = (case.operand(which), case.operand(which).dtype.bytes());
    (0..n).flat_map(|lane| &of.bytes[case.source(which, lane) * size..][..size]).copied().collect()
}

// ---- whole tiles ------------------------------------------------------------------------------------------------

fn tiles(cases: Vec<&'static Case>) -> Plan {
    let mut names: Vec<&'static String> = Vec::new();
    for x in cases.iter().flat_map(|c| &c.x) {
        if !names.contains(&x) {
            names.push(x);
        }
    }
    let operands: Vec<&'static Array> = names.iter().map(|x| &DATA.arrays[*x]).collect();
    let mut memory: Vec<Vec<u8>> = operands.iter().map(|a| a.bytes.clone()).collect();
    let mut outputs = Outputs::new();
    let places = reserve(&mut outputs, operands.len(), &cases, |case| case.y.elements());
    // A scalar is a view of one element.
    let dims = |a: &Array| if a.dims.is_empty() { vec![1] } else { a.dims.clone() };
    let mut args: Vec<(&str, Arg)> =
        operands.iter().enumerate().map(|(i, a)| (name(i), Arg::View(i, a.dtype, row_major(&dims(a))))).collect();
    for (&dtype, &(number, elements)) in &outputs {
        args.push((name(number), Arg::View(number, dtype, row_major(&[elements]))));
        memory.push(blank(dtype, elements));
    }
    let starts: Vec<i64> = places.iter().map(|p| p.start as i64).collect();
    let of_outputs: Vec<DType> = outputs.into_keys().collect();
    let def = definition(Kind::Tiles, &cases.clone(), move |spec| {
        let mut views = Views::new(spec);
        let inputs: Vec<ViewValue> = operands.iter().map(|a| views.next(a.dtype, dims(a).len())).collect();
        let results: BTreeMap<DType, ViewValue> = of_outputs.iter().map(|&t| (t, views.next(t, 1))).collect();
        let mut b = views.b;
        let zero = b.const_i64(DType::I32, 0)?;
        let mut all = HashMap::new();
        for ((view, of), name) in inputs.iter().zip(&operands).zip(&names) {
            let tile = b.view_load(view, &vec![zero; view.dims.len()], Shape::new(dims(of)), None)?;
            all.insert(*name, b.reshape(tile, Shape::new(&of.dims[..]))?);
        }
        for (case, &start) in cases.iter().zip(&starts) {
            let x: Vec<Value> = case.x.iter().map(|name| all[name]).collect();
            let y = apply(&mut b, case, &x)?;
            let (start, y) = (b.const_i64(DType::I32, start)?, b.reshape(y, [case.y.elements()])?);
            b.view_store(&results[&case.y.dtype], &[start], y)?;
        }
        Ok(b.finish())
    });
    Plan { def, args, memory, grid: [1, 1, 1], warps: 4, places }
}

/// Builds the operation of a case.
fn apply(b: &mut Builder, case: &Case, x: &[Value]) -> Built {
    match case.op() {
        Some(Op::Unary(op)) => b.unary(op, x[0]),
        Some(Op::Binary(op)) => b.binary(op, x[0], x[1]),
        Some(Op::Compare(op)) => b.compare(op, x[0], x[1]),
        Some(Op::Select) => b.select(x[0], x[1], x[2]),
        Some(Op::Fma) => b.fma(x[0], x[1], x[2]),
        Some(Op::Cast) => b.cast(x[0], case.y.dtype),
        Some(Op::Bitcast) => b.bitcast(x[0], case.y.dtype),
        Some(Op::Broadcast) => b.broadcast(x[0], Shape::new(&case.y.dims[..])),
        Some(Op::Reshape) => b.reshape(x[0], Shape::new(&case.y.dims[..])),
        Some(Op::Permute(_)) => {
            let perm: Vec<usize> = (0..case.p.len()).map(|i| case.index(i)).collect();
            b.permute(x[0], &perm)
        }
        Some(Op::Reduce { op, .. }) => b.reduce(op, x[0], case.index(0)),
        Some(Op::ArgReduce { max, .. }) => b.arg_reduce(max, x[0], case.index(0)),
        Some(Op::Dot { .. }) => {
            let precision: Option<DotPrecision> = case.p[0].as_str().and_then(|p| p.parse().ok());
            b.dot(x[0], x[1], x[2], precision.unwrap_or_else(|| panic!("{:?} is no precision", case.p)))
        }
        Some(Op::Const(_)) => {
            let bits = case.p[0].as_str().and_then(|hex| u64::from_str_radix(hex, 16).ok());
            let bits = Constant(bits.unwrap_or_else(|| panic!("{:?} are no bits", case.p)));
            b.full(TileType::new(case.y.dtype, Shape::new(&case.y.dims[..])), bits)
        }
        Some(Op::Arange { .. }) => {
            let start = case.p[0].as_i64().and_then(|n| i32::try_from(n).ok());
            b.arange(start.unwrap_or_else(|| panic!("{:?} is no start", case.p)), case.y.elements())
        }
        _ => panic!("{} is no operation of tiles alone: write a kernel for it", case.f),
    }
}

// ---- whole kernels ----------------------------------------------------------------------------------------------

fn program(case: &'static Case) -> Plan {
    let of = case.program.as_ref().expect("a case with a kernel");
    let parsed: Result<Function> = parse(&of.ir);
    let mut func = parsed.unwrap_or_else(|e| panic!("{}: {e}\n{}", case.f, of.ir));
    func.params.iter_mut().enumerate().for_each(|(i, p)| p.name = name(i).to_owned());
    let (mut args, mut memory) = (Vec::new(), Vec::new());
    for arg in &of.args {
        args.push(match (&arg.n, &arg.a) {
            (Some(n), None) => Arg::Number(n.dtype, word(n.dtype, &n.bytes, 0)),
            (None, Some(a)) => {
                memory.push(a.bytes.clone());
                memory_arg(memory.len() - 1, a.dtype, arg.window.as_ref())
            }
            _ => panic!("{}: an argument is a number or memory", case.f),
        });
    }
    memory.push(of.init.bytes.clone());
    args.push(memory_arg(memory.len() - 1, case.y.dtype, of.out.as_ref()));
    let fits = func.params.iter().zip(&args).all(|(p, a)| match (&p.kind, a) {
        (ParamKind::Scalar(d), Arg::Number(e, _)) | (ParamKind::Ptr { dtype: d }, Arg::Address(_, e)) => d == e,
        (ParamKind::View { dtype, rank }, Arg::View(_, e, w)) => dtype == e && usize::from(*rank) == w.d.len(),
        _ => false,
    });
    assert!(fits && func.params.len() == args.len(), "{}: arguments that do not fit\n{}", case.f, of.ir);
    let args = args.into_iter().enumerate().map(|(i, a)| (name(i), a)).collect();
    let places = vec![Place { case, memory: memory.len() - 1, start: 0 }];
    let def = definition(Kind::Program, &[case], move |_| Ok(func.clone()));
    Plan { def, args, memory, grid: of.grid, warps: 4, places }
}

fn memory_arg(number: usize, dtype: DType, window: Option<&Window>) -> Arg {
    match window {
        Some(window) => Arg::View(number, dtype, window.clone()),
        None => Arg::Address(number, dtype),
    }
}
