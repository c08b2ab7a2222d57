//! For tests: a plain evaluator of Tile IR that shows every value it computes, and random functions to run it on.
//!
//! Analyses are checked against every element of every value in every iteration; passes by comparing what is stored.

use super::int;
use crate::dtype::DType;
use crate::entity::Entity;
use crate::interp::scalar::eval_elementwise;
use crate::tile::{
    BinaryOp, Builder, Cmp, Constant, Elem, Function, Op, OpId, ParamHint, ReduceOp, Region, Shape, TileType, UnaryOp,
    Value,
};
use std::collections::BTreeMap;

/// The seeds of a random test: `count` from `first` on, unless `TILEWRIGHT_FUZZ_FROM` and `TILEWRIGHT_FUZZ_SEEDS` name others.
pub(crate) fn seeds(first: u64, count: u64) -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let first = number("TILEWRIGHT_FUZZ_FROM").unwrap_or(first);
    first..first.saturating_add(number("TILEWRIGHT_FUZZ_SEEDS").unwrap_or(count))
}

/// A small deterministic source of random numbers (xorshift64*).
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        ((self.next() >> 33) % n as u64) as usize
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// Numbers that make trouble: small ones, powers of two and their neighbours, the ends of each type.
    pub(crate) fn number(&mut self) -> i64 {
        let power = 1i64 << self.below(63);
        match self.below(6) {
            0 => self.below(9) as i64 - 4,
            1 => power,
            2 => -power,
            3 => power.wrapping_add(self.below(3) as i64 - 1),
            4 => self
                .pick(&[i8::MIN as i64, i16::MIN as i64, i32::MIN as i64, i64::MIN])
                .wrapping_sub(self.below(2) as i64),
            _ => self.next() as i64,
        }
    }
}

/// Runs one program of a function.
pub(crate) struct Machine<'a> {
    func: &'a Function,
    program: [i32; 3],
    env: Vec<Option<Vec<u64>>>,
    seen: &'a mut dyn FnMut(Value, &[u64]),
    /// What has been stored where.
    pub(crate) memory: BTreeMap<u64, u64>,
}

impl<'a> Machine<'a> {
    /// Runs `func` on the bits of its flattened arguments; `seen` is shown each value when it is computed.
    pub(crate) fn run(
        func: &'a Function,
        args: &[u64],
        program: [i32; 3],
        seen: &'a mut dyn FnMut(Value, &[u64]),
    ) -> BTreeMap<u64, u64> {
        let mut machine = Machine { func, program, env: vec![None; func.values.len()], seen, memory: BTreeMap::new() };
        for (&param, &arg) in func.regions[func.body].params.iter().zip(args) {
            machine.define(param, vec![arg]);
        }
        machine.region(func.body);
        machine.memory
    }

    fn define(&mut self, value: Value, tile: Vec<u64>) {
        assert_eq!(tile.len(), self.func.ty(value).shape.elements(), "{value} has its shape");
        (self.seen)(value, &tile);
        self.env[value.index()] = Some(tile);
    }

    fn get(&self, value: Value) -> Vec<u64> {
        self.env[value.index()].clone().unwrap_or_else(|| panic!("{value} is defined before it is used"))
    }

    fn int(&self, value: Value) -> i128 {
        int::of_constant(self.func.ty(value).dtype(), Constant(self.get(value)[0])).expect("an integer")
    }

    /// Runs a region; gives the operands of its terminator.
    fn region(&mut self, region: Region) -> Vec<Vec<u64>> {
        let (last, ops) = self.func.regions[region].ops.split_last().expect("a region has a terminator");
        for &op in ops {
            self.op(op);
        }
        self.func.ops[*last].operands.iter().map(|&v| self.get(v)).collect()
    }

    fn define_all(&mut self, values: &[Value], tiles: Vec<Vec<u64>>) {
        assert_eq!(values.len(), tiles.len(), "as many values as tiles");
        for (&value, tile) in values.iter().zip(tiles) {
            self.define(value, tile);
        }
    }

    fn op(&mut self, id: OpId) {
        let func = self.func;
        let data = &func.ops[id];
        let operands: Vec<Vec<u64>> = data.operands.iter().map(|&v| self.get(v)).collect();
        match data.op {
            Op::For => {
                let [mut iv, hi, step] = [0, 1, 2].map(|i| self.int(data.operands[i]));
                let params = &func.regions[data.regions[0]].params;
                let mut carried = operands[3..].to_vec();
                while (step > 0 && iv < hi) || (step < 0 && iv > hi) {
                    self.define(params[0], vec![int::to_constant(func.ty(params[0]).dtype(), iv).0]);
                    self.define_all(&params[1..], carried);
                    carried = self.region(data.regions[0]);
                    iv += step;
                }
                self.define_all(&data.results, carried);
            }
            Op::While => {
                let mut carried = operands;
                loop {
                    self.define_all(&func.regions[data.regions[0]].params, carried.clone());
                    if self.region(data.regions[0])[0][0] == 0 {
                        break;
                    }
                    self.define_all(&func.regions[data.regions[1]].params, carried);
                    carried = self.region(data.regions[1]);
                }
                self.define_all(&data.results, carried);
            }
            Op::If => {
                let results = self.region(data.regions[usize::from(operands[0][0] == 0)]);
                self.define_all(&data.results, results);
            }
            Op::Store => {
                for (i, &address) in operands[0].iter().enumerate() {
                    if operands.get(2).is_none_or(|mask| mask[i] != 0) {
                        self.memory.insert(address, operands[1][i]);
                    }
                }
            }
            _ => {
                let tile = self.simple(id, &operands);
                self.define(data.results[0], tile);
            }
        }
    }

    fn simple(&self, id: OpId, operands: &[Vec<u64>]) -> Vec<u64> {
        let func = self.func;
        let data = &func.ops[id];
        let ty = func.ty(data.results[0]);
        let n = ty.shape.elements();
        let dtype_of = |i: usize| func.ty(data.operands[i]).dtype();
        let shape_of = |i: usize| &func.ty(data.operands[i]).shape;
        match &data.op {
            Op::ProgramId { axis } => vec![self.program[usize::from(*axis)] as u32 as u64],
            Op::NumPrograms { .. } => vec![i32::MAX as u64],
            Op::Const(c) => vec![c.0; n],
            Op::Arange { start } => (0..n as i32).map(|i| u64::from((start + i) as u32)).collect(),
            Op::PtrAdd => {
                let d = dtype_of(1);
                let bytes = dtype_of(0).bytes() as u64;
                let offset = |bits: u64| int::of_constant(d, Constant(bits)).expect("an integer") as u64;
                operands[0]
                    .iter()
                    .zip(&operands[1])
                    .map(|(p, o)| p.wrapping_add(offset(*o).wrapping_mul(bytes)))
                    .collect()
            }
            Op::Select => (0..n).map(|i| operands[if operands[0][i] != 0 { 1 } else { 2 }][i]).collect(),
            op if op.is_elementwise() => {
                let types: Vec<DType> = (0..operands.len()).map(dtype_of).collect();
                let at = |i: usize| operands.iter().map(|o| o[i]).collect::<Vec<_>>();
                (0..n).map(|i| eval_elementwise(op, &types, &at(i), ty.dtype()).expect("a typed op")).collect()
            }
            Op::Broadcast => {
                let (from, strides) = (shape_of(0), shape_of(0).strides());
                let source =
                    |at: Vec<usize>| -> usize { (0..from.rank()).map(|d| (at[d] % from.dims()[d]) * strides[d]).sum() };
                (0..n).map(|i| operands[0][source(coordinates(&ty.shape, i))]).collect()
            }
            Op::Reshape => operands[0].clone(),
            Op::Permute(perm) => {
                let strides = shape_of(0).strides();
                let source =
                    |at: Vec<usize>| -> usize { at.iter().zip(perm).map(|(c, p)| c * strides[usize::from(*p)]).sum() };
                (0..n).map(|i| operands[0][source(coordinates(&ty.shape, i))]).collect()
            }
            Op::Load => (0..n)
                .map(|i| {
                    if operands.get(1).is_some_and(|mask| mask[i] == 0) {
                        return operands.get(2).map_or(0, |other| other[i]);
                    }
                    let address = operands[0][i];
                    let fresh = address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 17;
                    let bits = self.memory.get(&address).copied().unwrap_or(fresh);
                    Constant::from_i64(ty.dtype(), bits as i64).0
                })
                .collect(),
            Op::Reduce { op, axis } => {
                let binary = match op {
                    ReduceOp::Sum => BinaryOp::Add,
                    ReduceOp::Prod => BinaryOp::Mul,
                    ReduceOp::Min => BinaryOp::Min,
                    ReduceOp::Max => BinaryOp::Max,
                    ReduceOp::And => BinaryOp::And,
                    ReduceOp::Or => BinaryOp::Or,
                    ReduceOp::Xor => BinaryOp::Xor,
                };
                let d = dtype_of(0);
                let combine =
                    |a: u64, b: u64| eval_elementwise(&Op::Binary(binary), &[d, d], &[a, b], d).expect("typed");
                let lines = lines(shape_of(0), usize::from(*axis));
                lines.map(|line| line.map(|i| operands[0][i]).reduce(combine).expect("not empty")).collect()
            }
            Op::ArgReduce { max, axis } => {
                let d = dtype_of(0);
                let cmp = Op::Compare(if *max { Cmp::Gt } else { Cmp::Lt });
                let better = |a: u64, b: u64| eval_elementwise(&cmp, &[d, d], &[a, b], DType::Bool) == Some(1);
                lines(shape_of(0), usize::from(*axis))
                    .map(|line| {
                        let elements: Vec<u64> = line.map(|i| operands[0][i]).collect();
                        let best =
                            (1..elements.len()).fold(0, |b, i| if better(elements[i], elements[b]) { i } else { b });
                        best as u64
                    })
                    .collect()
            }
            other => panic!("the test evaluator does not know {other:?}"),
        }
    }
}

/// The coordinates of row-major element `index`.
fn coordinates(shape: &Shape, index: usize) -> Vec<usize> {
    shape.strides().iter().zip(shape.dims()).map(|(s, n)| index / s % n).collect()
}

/// The indices of the elements along `axis`, for each choice of the other coordinates in row-major order.
pub(crate) fn lines(shape: &Shape, axis: usize) -> impl Iterator<Item = impl Iterator<Item = usize>> {
    let (stride, n) = (shape.strides()[axis], shape.dims()[axis]);
    let starts: Vec<usize> = (0..shape.elements()).filter(move |i| i / stride % n == 0).collect();
    starts.into_iter().map(move |start| (0..n).map(move |i| start + i * stride))
}

const FLOATS: [DType; 4] = [DType::F16, DType::BF16, DType::F32, DType::F64];

const INTS: [DType; 8] = [DType::I8, DType::I16, DType::I32, DType::I64, DType::U8, DType::U16, DType::U32, DType::U64];

/// Builds a random function of integers, truth values and addresses, with loops and branches, and arguments for it.
pub(crate) struct Generator {
    pub(crate) rng: Rng,
    b: Builder,
    pool: Vec<Value>,
    out: Value,
    stores: i64,
}

impl Generator {
    /// A random function of about `ops` ops, and what determines its arguments.
    pub(crate) fn function(seed: u64, ops: usize) -> Function {
        let mut rng = Rng::new(seed);
        let mut b = Builder::new("random");
        let mut pool = Vec::new();
        let hint = |divisor, known| ParamHint { divisor, known, alias_class: 0 };
        for (name, dtype) in
            [("a", DType::I32), ("b", DType::I32), ("c", DType::I64), ("d", DType::U32), ("e", DType::U8)]
        {
            let divisor = rng.pick(&[1, 1, 4, 16, 64]);
            let known = (rng.below(8) == 0).then(|| int::wrap(dtype, (rng.number() & !0x3f).into()) as i64);
            pool.push(b.param_scalar(name, dtype, hint(divisor, known)));
        }
        for (name, dtype) in [("p", DType::I32), ("q", DType::I16), ("r", DType::I8)] {
            let divisor = rng.pick(&[dtype.bytes() as u32, 16, 64]);
            pool.push(b.param_ptr(name, dtype, hint(divisor, None)));
        }
        let out = b.param_ptr("out", DType::I64, hint(8, None));
        let mut generator = Generator { rng, b, pool, out, stores: 0 };
        generator.steps(ops, 0);
        for _ in 0..6 {
            generator.store();
        }
        generator.b.finish()
    }

    /// Arguments that keep to the hints of a function.
    pub(crate) fn arguments(func: &Function, rng: &mut Rng) -> Vec<u64> {
        let params = func.regions[func.body].params.iter();
        let args = params.zip(&func.hints).enumerate().map(|(i, (&param, hint))| {
            if func.ty(param).elem.is_ptr() {
                return (i as u64 + 1) * 0x1_0000_0000_0000 + u64::from(hint.divisor) * rng.below(1 << 20) as u64;
            }
            let value = rng.number() as u64 & !(u64::from(hint.divisor) - 1);
            Constant::from_i64(func.ty(param).dtype(), hint.known.unwrap_or(value as i64)).0
        });
        args.collect()
    }

    fn steps(&mut self, n: usize, depth: usize) {
        for _ in 0..n {
            match self.rng.below(24) {
                0 if depth < 2 => self.for_loop(depth),
                1 if depth < 2 => self.branch(depth),
                2 if depth < 2 => self.while_loop(depth),
                3 => self.store(),
                _ => {
                    if let Some(value) = self.value() {
                        self.pool.push(value);
                    }
                }
            }
        }
    }

    fn any(&mut self) -> Value {
        // Later values are taken more often, so that expressions get deep.
        let n = self.pool.len();
        let at = self.rng.below(n).max(self.rng.below(n));
        self.pool[at]
    }

    fn any_where(&mut self, accepts: impl Fn(&TileType) -> bool) -> Option<Value> {
        for _ in 0..12 {
            let v = self.any();
            if accepts(self.b.ty(v)) {
                return Some(v);
            }
        }
        None
    }

    fn any_int(&mut self) -> Option<Value> {
        self.any_where(|t| !t.elem.is_ptr() && t.dtype().is_int())
    }

    fn constant(&mut self, dtype: DType) -> Value {
        if dtype.is_float() {
            let value = self.rng.pick(&[0.0, -0.0, 1.0, -1.0, 2.0, 0.25, -8.0, 3.0, 1e-5, f64::INFINITY, f64::NAN]);
            return self.b.const_f64(dtype, value).expect("a constant");
        }
        let value = self.rng.number();
        self.b.const_i64(dtype, value).expect("a constant")
    }

    /// A value that goes with `x`: of one type of number, and broadcastable.
    fn partner(&mut self, x: Value) -> Value {
        let (elem, shape) = (self.b.ty(x).elem, self.b.ty(x).shape.clone());
        let fits = |t: &TileType| t.elem == elem && crate::tile::rules::broadcast_shape(&shape, &t.shape).is_ok();
        match self.any_where(fits) {
            Some(y) if self.rng.below(3) != 0 || elem.is_ptr() => y,
            _ if elem.is_ptr() => x,
            _ => self.constant(elem.dtype()),
        }
    }

    fn value(&mut self) -> Option<Value> {
        let kind = self.rng.below(34);
        let b = &mut self.b;
        let built = match kind {
            0 => b.program_id(self.rng.below(3) as u8),
            1 | 2 => {
                let start = self.rng.pick(&[0, 0, 0, 1, 8, 64, -64, -3]);
                b.arange(start, self.rng.pick(&[1, 4, 16, 64, 512]))
            }
            3..=8 => {
                let x = self.any_int()?;
                let y = self.partner(x);
                let op = self.rng.pick(&[
                    BinaryOp::Add,
                    BinaryOp::Add,
                    BinaryOp::Add,
                    BinaryOp::Sub,
                    BinaryOp::Mul,
                    BinaryOp::Mul,
                    BinaryOp::Div,
                    BinaryOp::Rem,
                    BinaryOp::FloorDiv,
                    BinaryOp::FloorMod,
                    BinaryOp::MulHi,
                    BinaryOp::And,
                    BinaryOp::Or,
                    BinaryOp::Xor,
                    BinaryOp::Shl,
                    BinaryOp::Shr,
                    BinaryOp::Min,
                    BinaryOp::Max,
                ]);
                if self.rng.below(4) == 0 { self.b.binary(op, y, x) } else { self.b.binary(op, x, y) }
            }
            9 => {
                let x = self.any_int()?;
                self.b.unary(self.rng.pick(&[UnaryOp::Neg, UnaryOp::Not, UnaryOp::Abs]), x)
            }
            10 | 11 => {
                let x = self.any_int()?;
                let y = self.partner(x);
                self.b.compare(self.rng.pick(Cmp::ALL), x, y)
            }
            12 if self.rng.below(2) == 0 => {
                let condition = self.any_where(|t| t.elem == Elem::Scalar(DType::Bool))?;
                let x = self.any();
                let y = self.partner(x);
                self.b.select(condition, x, y)
            }
            // A choice that changes along the tile.
            12 => {
                let x = self.any_where(|t| t.shape.rank() > 0 && !t.elem.is_ptr() && t.dtype().is_int())?;
                let bound = self.partner(x);
                let other = self.partner(x);
                let op = self.rng.pick(Cmp::ALL);
                self.b.compare(op, x, bound).and_then(|condition| self.b.select(condition, x, other))
            }
            13 | 14 => {
                let x = self.any_where(|t| !t.elem.is_ptr())?;
                self.b.cast(x, self.rng.pick(&INTS))
            }
            15 => {
                let x = self.any_int()?;
                let bits = self.b.ty(x).dtype().bits();
                let to = INTS.into_iter().filter(|d| d.bits() == bits).collect::<Vec<_>>();
                self.b.bitcast(x, self.rng.pick(&to))
            }
            16 | 17 => {
                let x = self.any_where(|t| t.shape.rank() > 0)?;
                let n = self.b.ty(x).shape.elements();
                let first = 1 << self.rng.below(n.ilog2() as usize + 1);
                let second = 1 << self.rng.below((n / first).ilog2() as usize + 1);
                match self.rng.below(4) {
                    0 => self.b.reshape(x, [n]),
                    1 => self.b.reshape(x, [first, n / first]),
                    2 => self.b.reshape(x, [first, second, n / first / second]),
                    _ => self.b.expand_dims(x, self.rng.below(2)),
                }
            }
            18 => {
                let x = self.any_where(|t| t.shape.rank() >= 2)?;
                let mut perm: Vec<usize> = (0..self.b.ty(x).shape.rank()).collect();
                let at = self.rng.below(perm.len() - 1);
                perm.swap(at, at + 1);
                self.b.permute(x, &perm)
            }
            19 => {
                let p = self.any_where(|t| t.elem.is_ptr())?;
                let offset = self.any_int()?;
                self.b.ptr_add(p, offset)
            }
            20 => {
                let p = self.any_where(|t| t.elem.is_ptr())?;
                self.b.load(p, None, None)
            }
            21 => {
                let x = self.any_where(|t| !t.elem.is_ptr() && t.dtype().is_int() && t.shape.rank() > 0)?;
                let axis = self.rng.below(self.b.ty(x).shape.rank());
                match self.rng.below(8) {
                    7 => self.b.arg_reduce(true, x, axis),
                    i => self.b.reduce(ReduceOp::ALL[i], x, axis),
                }
            }
            22 => {
                let dtype = self.rng.pick(&INTS);
                Ok(self.constant(dtype))
            }
            23 => {
                let x = self.any_where(|t| t.shape.dims().contains(&1))?;
                let dims: Vec<usize> = self
                    .b
                    .ty(x)
                    .shape
                    .dims()
                    .iter()
                    .map(|&n| if n == 1 { self.rng.pick(&[1, 4, 8]) } else { n })
                    .collect();
                self.b.broadcast(x, Shape::new(dims))
            }
            24 | 25 => {
                let x = self.any_where(|t| !t.elem.is_ptr())?;
                self.b.cast(x, self.rng.pick(&FLOATS))
            }
            26 | 27 => {
                let x = self.any_where(|t| !t.elem.is_ptr() && t.dtype().is_float())?;
                let y = self.partner(x);
                let op = self.rng.pick(&[
                    BinaryOp::Add,
                    BinaryOp::Sub,
                    BinaryOp::Mul,
                    BinaryOp::Div,
                    BinaryOp::Min,
                    BinaryOp::FMax,
                ]);
                match self.rng.below(8) {
                    0 => self.b.unary(UnaryOp::Neg, x),
                    1 => self.b.binary(op, y, x),
                    2 => self.b.compare(self.rng.pick(Cmp::ALL), x, y),
                    _ => self.b.binary(op, x, y),
                }
            }
            // What kernels do most: an index and its neighbours.
            _ => {
                let base = self.any_where(|t| t.is_scalar() && !t.elem.is_ptr() && t.dtype().is_int())?;
                let dtype = self.b.ty(base).dtype();
                let scale = 1i64 << self.rng.below(8);
                let n = self.rng.pick(&[4, 16, 64, 512]);
                let (runs, shift) = (self.rng.below(3) == 0, self.rng.below(6) as i64);
                let mut go = || {
                    let scale = self.b.const_i64(dtype, scale)?;
                    let base = self.b.binary(BinaryOp::Mul, base, scale)?;
                    let lane = self.b.arange(0, n)?;
                    let lane = self.b.cast(lane, dtype)?;
                    let index = self.b.binary(BinaryOp::Add, base, lane)?;
                    // Runs of equal elements, too.
                    let shift = self.b.const_i64(dtype, shift)?;
                    if runs { self.b.binary(BinaryOp::Shr, index, shift) } else { Ok(index) }
                };
                go()
            }
        };
        // Operands that do not fit (too many elements, ranks that differ) just give no value.
        built.ok().filter(|&v| self.b.ty(v).shape.elements() <= 1024)
    }

    /// Stores any number at a place of its own, as an `i64`: of floats the bits, but 0 for each NaN.
    fn store(&mut self) {
        let Some(x) = self.any_where(|t| !t.elem.is_ptr()) else { return };
        let n = self.b.ty(x).shape.elements();
        self.stores += 1;
        let mut go = || {
            let x = self.b.reshape(x, [n])?;
            let bits = match self.b.ty(x).dtype() {
                DType::F16 | DType::BF16 => self.b.bitcast(x, DType::I16)?,
                DType::F32 => self.b.bitcast(x, DType::I32)?,
                DType::F64 => self.b.bitcast(x, DType::I64)?,
                _ => x,
            };
            let is_number = self.b.compare(Cmp::Eq, x, x)?;
            let zero = self.b.const_i64(self.b.ty(bits).dtype(), 0)?;
            let bits = self.b.select(is_number, bits, zero)?;
            let x = self.b.cast(bits, DType::I64)?;
            let base = self.b.const_i64(DType::I32, self.stores * 2048)?;
            let lane = self.b.arange(0, n)?;
            let offset = self.b.binary(BinaryOp::Add, base, lane)?;
            let p = self.b.ptr_add(self.out, offset)?;
            self.b.store(p, x, None)
        };
        go().expect("a well-typed store");
    }

    fn carried(&mut self) -> Vec<Value> {
        (0..self.rng.below(4)).map(|_| self.any()).collect()
    }

    /// A value for each carried one of the same type: one just computed if there is one.
    fn next(&mut self, carried: &[Value]) -> Vec<Value> {
        let mut next = Vec::new();
        for &c in carried {
            let ty = self.b.ty(c).clone();
            next.push(self.any_where(|t| *t == ty).unwrap_or(c));
        }
        next
    }

    fn for_loop(&mut self, depth: usize) {
        let dtype = self.rng.pick(&[DType::I32, DType::I64]);
        let inits = self.carried();
        let (lo, trips) = (self.rng.pick(&[0i64, 0, 16, -32, 7]), self.rng.below(4) as i64);
        let step = self.rng.pick(&[1i64, 16, 3, -4, 64]);
        let bound = lo + trips * step;
        let mut go = || {
            let lo = self.b.const_i64(dtype, lo)?;
            let hi = self.b.const_i64(dtype, bound)?;
            let step = self.b.const_i64(dtype, step)?;
            self.b.begin_for(lo, hi, step, &inits)
        };
        let (iv, carried) = go().expect("a well-typed loop");
        let outside = self.pool.len();
        self.pool.push(iv);
        self.pool.extend(&carried);
        let ops = 2 + self.rng.below(6);
        self.steps(ops, depth + 1);
        let next = self.next(&carried);
        let results = self.b.end_for(&next).expect("a well-typed body");
        self.pool.truncate(outside);
        self.pool.extend(results);
    }

    fn while_loop(&mut self, depth: usize) {
        let mut inits = self.carried();
        let start = self.b.const_i64(DType::I32, 0).expect("a constant");
        inits.push(start);
        let outside = self.pool.len();
        let inside = self.b.begin_while(&inits);
        let trips = self.rng.below(4) as i64;
        let limit = self.b.const_i64(DType::I32, trips * 16).expect("a constant");
        let counter = inside[inside.len() - 1];
        let go_on = self.b.compare(Cmp::Lt, counter, limit).expect("a comparison");
        let carried = self.b.while_body(go_on).expect("a condition");
        self.pool.extend(&carried);
        let ops = 2 + self.rng.below(6);
        self.steps(ops, depth + 1);
        let counter = carried[carried.len() - 1];
        let mut next = self.next(&carried[..carried.len() - 1]);
        let step = self.b.const_i64(DType::I32, 16).expect("a constant");
        next.push(self.b.binary(BinaryOp::Add, counter, step).expect("a sum"));
        let results = self.b.end_while(&next).expect("a well-typed body");
        self.pool.truncate(outside);
        self.pool.extend(results);
    }

    fn branch(&mut self, depth: usize) {
        let Some(condition) = self.any_where(|t| *t == TileType::scalar(DType::Bool)) else { return };
        let outside = self.pool.len();
        self.b.begin_if(condition).expect("a condition");
        let ops = 1 + self.rng.below(5);
        self.steps(ops, depth + 1);
        let results: Vec<Value> = (0..self.rng.below(3)).map(|_| self.any()).collect();
        let types: Vec<TileType> = results.iter().map(|&v| self.b.ty(v).clone()).collect();
        self.pool.truncate(outside);
        self.b.begin_else(&results);
        let ops = 1 + self.rng.below(5);
        self.steps(ops, depth + 1);
        let mut others = Vec::new();
        for ty in &types {
            let value = match self.any_where(|t| t == ty) {
                Some(v) => Ok(v),
                None if ty.elem.is_ptr() => {
                    let base = self.pool[..8].iter().copied().find(|&v| self.b.ty(v).elem == ty.elem);
                    self.b.broadcast(base.expect("a pointer parameter of each type"), ty.shape.clone())
                }
                None => self.b.full(ty.clone(), Constant::from_i64(ty.dtype(), 16)),
            };
            others.push(value.expect("a value of the type"));
        }
        let results = self.b.end_if(&others).expect("branches of one type");
        self.pool.truncate(outside);
        self.pool.extend(results);
    }
}
