//! Makes random functions op by op: operands are values made before, or are made to fit.

use super::{Config, Floats, Random};
use crate::dtype::DType;
use crate::error::Loc;
use crate::tile::rules;
use crate::tile::{
    BinaryOp, Builder, Cmp, Constant, DotPrecision, Elem, Function, Op, ParamHint, ReduceOp, Shape, TileType, UnaryOp,
    Value, ViewValue,
};

/// Why the builder takes what is made here.
const VALID: &str = "operands were chosen to fit";

/// Makes one function.
pub(super) fn make(rng: Random, config: &Config) -> Function {
    let mut max = config.max_elements.clamp(1, Shape::MAX_ELEMENTS);
    if let Some(r) = config.runnable {
        max = max.min(r.elements);
    }
    let mut dtypes = vec![DType::Bool, DType::I32];
    dtypes.extend(config.dtypes.iter().filter(|d| !matches!(d, DType::Bool | DType::I32)));
    let mut maker = Maker {
        b: Builder::new("random"),
        rng,
        config,
        dtypes,
        preferred: config.dtypes.clone(),
        max_exponent: max.ilog2() as usize,
        pool: Vec::new(),
        inputs: Vec::new(),
        outputs: Vec::new(),
        views: Vec::new(),
        output_views: Vec::new(),
        first: None,
        line: 0,
        budget: config.ops,
    };
    maker.params();
    if let Some(r) = config.runnable {
        let mut pid = maker.b.program_id(0).expect(VALID);
        let mut programs = r.grid[0];
        for (axis, &n) in r.grid.iter().enumerate().skip(1).filter(|(_, n)| **n > 1) {
            let (slice, number) = (maker.i32(programs as i64), maker.b.program_id(axis as u8).expect(VALID));
            let before = maker.b.binary(BinaryOp::Mul, number, slice).expect(VALID);
            pid = maker.b.binary(BinaryOp::Add, pid, before).expect(VALID);
            programs *= n;
        }
        let elements = maker.i32(r.elements as i64);
        let first = maker.b.binary(BinaryOp::Mul, pid, elements).expect(VALID);
        maker.first = Some((pid, first));
        maker.pool.push(pid);
    }
    while maker.budget > 0 {
        maker.step(0);
    }
    maker.store_outputs();
    maker.b.finish()
}

struct Maker<'a> {
    b: Builder,
    rng: Random,
    config: &'a Config,
    dtypes: Vec<DType>,
    /// Those that numbers rather have.
    preferred: Vec<DType>,
    /// Binary logarithm of the greatest number of elements of a tile.
    max_exponent: usize,
    /// The values that may be used here.
    pool: Vec<Value>,
    /// Buffers to read from.
    inputs: Vec<(DType, Value)>,
    /// Buffers not yet written to.
    outputs: Vec<(DType, Value)>,
    views: Vec<ViewValue>,
    output_views: Vec<ViewValue>,
    /// Of a runnable function: the program's number, and the first element of each buffer that is its own.
    first: Option<(Value, Value)>,
    line: u32,
    /// Ops still to be made.
    budget: usize,
}

impl Maker<'_> {
    // ---- choices ----------------------------------------------------------------------------------------------

    fn dtype(&mut self) -> DType {
        let narrow = self.preferred.len() < DType::ALL.len() && self.rng.chance(80);
        let from = if narrow && !self.preferred.is_empty() { &self.preferred } else { &self.dtypes };
        from[self.rng.below(from.len())]
    }

    fn shape_of_rank(&mut self, rank: usize) -> Shape {
        let mut left = self.max_exponent;
        let dims: Vec<usize> = (0..rank)
            .map(|_| {
                let exponent = self.rng.below(left.min(6) + 1);
                left -= exponent;
                1 << exponent
            })
            .collect();
        Shape::new(dims)
    }

    /// Mostly the shape of a value there is, so that ops find operands.
    fn shape(&mut self) -> Shape {
        if self.rng.chance(60)
            && let Some(v) = self.pick(|ty| !ty.is_scalar())
        {
            return self.b.ty(v).shape.clone();
        }
        let rank = [0, 0, 1, 1, 1, 2, 2, 2, 3, 3][self.rng.below(10)];
        let rank = if rank == 3 { 3 + self.rng.below(self.config.max_rank.max(3) - 2) } else { rank };
        self.shape_of_rank(rank.min(self.config.max_rank))
    }

    /// A value of the pool with such a type, rather a recent one.
    fn pick(&mut self, accept: impl Fn(&TileType) -> bool) -> Option<Value> {
        let fitting: Vec<Value> = self.pool.iter().copied().filter(|&v| accept(self.b.ty(v))).collect();
        if fitting.is_empty() {
            return None;
        }
        let at = self.rng.below(fitting.len()).max(self.rng.below(fitting.len()));
        Some(fitting[at])
    }

    /// A number or a tile of numbers, rather a tile.
    fn pick_number(&mut self) -> Option<Value> {
        if self.rng.chance(60)
            && let Some(v) = self.pick(|ty| !ty.elem.is_ptr() && !ty.is_scalar())
        {
            return Some(v);
        }
        self.pick(|ty| !ty.elem.is_ptr())
    }

    /// A value of this type: one there is, or one made for the purpose. `None` for addresses that cannot be made.
    fn value_of(&mut self, ty: &TileType) -> Option<Value> {
        if self.rng.chance(85)
            && let Some(v) = self.pick(|t| t == ty)
        {
            return Some(v);
        }
        match ty.elem {
            Elem::Ptr(dtype) => self.address(dtype, &ty.shape),
            Elem::Scalar(_) => Some(self.number_of(ty)),
        }
    }

    fn number_of(&mut self, ty: &TileType) -> Value {
        let dtype = ty.dtype();
        if self.rng.chance(50)
            && let Some(v) = self.pick(|t| t.shape == ty.shape && !t.elem.is_ptr())
        {
            return self.b.cast(v, dtype).expect(VALID);
        }
        if !ty.is_scalar() && self.rng.chance(50) {
            // Elements that differ, so that it shows when they change places.
            let start = self.rng.below(20) as i32 - 10;
            let lane = self.b.arange(start, ty.shape.elements()).expect(VALID);
            let lane = self.b.reshape(lane, ty.shape.clone()).expect(VALID);
            return self.b.cast(lane, dtype).expect(VALID);
        }
        let c = self.constant(dtype);
        self.b.full(ty.clone(), c).expect(VALID)
    }

    fn constant(&mut self, dtype: DType) -> Constant {
        let bits = self.rng.bits();
        let n = self.rng.below(10);
        if !dtype.is_float() {
            return Constant::from_i64(
                dtype,
                match n {
                    0..=5 => (bits % 17) as i64 - 4,
                    6 => i64::MAX >> (64 - dtype.bits()),
                    7 => i64::MIN >> (64 - dtype.bits()),
                    _ => bits as i64,
                },
            );
        }
        let moderate = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.25, 100.0, 0.1, -7.0];
        if self.config.floats == Floats::All && n >= 7 {
            return match n {
                7 => Constant::from_f64(dtype, f64::INFINITY),
                8 => Constant::from_f64(dtype, f64::NAN),
                // Any bits: subnormals, NaNs with payload.
                _ => Constant::from_i64(
                    match dtype.bits() {
                        16 => DType::U16,
                        32 => DType::U32,
                        _ => DType::U64,
                    },
                    bits as i64,
                ),
            };
        }
        Constant::from_f64(dtype, moderate[(bits % 10) as usize])
    }

    fn i32(&mut self, value: i64) -> Value {
        self.b.const_i64(DType::I32, value).expect(VALID)
    }

    /// May this op occur with these types?
    fn allowed(&self, op: &Op, operands: &[TileType], results: &[TileType]) -> bool {
        let exact = || {
            let is_float = |ty: &TileType| matches!(ty.elem, Elem::Scalar(d) if d.is_float());
            if !operands.iter().chain(results).any(is_float) {
                return true;
            }
            match op {
                Op::Unary(op) => {
                    use UnaryOp::{Abs, Ceil, Floor, Neg, Round, Trunc};
                    matches!(op, Neg | Abs | Floor | Ceil | Trunc | Round)
                }
                Op::Binary(op) => !matches!(op, BinaryOp::Div | BinaryOp::Rem),
                Op::Reduce { op, .. } => !matches!(op, ReduceOp::Sum | ReduceOp::Prod),
                Op::Bitcast | Op::Dot { .. } => false,
                _ => true,
            }
        };
        (self.config.allow)(op) && (self.config.floats == Floats::All || exact())
    }

    /// Makes an op with one result if the rules and the configuration take it.
    fn emit(&mut self, op: Op, operands: Vec<Value>, result: TileType) -> bool {
        let types: Vec<TileType> = operands.iter().map(|&v| self.b.ty(v).clone()).collect();
        let results = [result];
        let fits = results[0].shape.elements() <= 1 << self.max_exponent;
        if !fits || !self.allowed(&op, &types, &results) || rules::check(&op, &types, &results).is_err() {
            return false;
        }
        let id = self.b.op(op, operands, results.to_vec()).expect(VALID);
        let result = self.b.func().ops[id].results[0];
        self.pool.push(result);
        true
    }

    // ---- parameters -------------------------------------------------------------------------------------------

    fn params(&mut self) {
        for i in 0..self.rng.below(4) {
            let dtype = self.dtype();
            let hint = self.scalar_hint(dtype);
            let v = self.b.param_scalar(&format!("n{i}"), dtype, hint);
            self.pool.push(v);
        }
        for i in 0..1 + self.rng.below(3) {
            let (dtype, hint) = (self.dtype(), self.address_hint(i));
            let base = self.b.param_ptr(&format!("in{i}"), dtype, hint);
            self.inputs.push((dtype, base));
            if self.config.address_values {
                self.pool.push(base);
            }
        }
        for i in 0..self.rng.below(3) {
            let view = self.view(&format!("in_view{i}"), 10 + i);
            self.views.push(view);
        }
        for i in 0..1 + self.rng.below(3) {
            let (dtype, hint) = (self.dtype(), self.address_hint(20 + i));
            let base = self.b.param_ptr(&format!("out{i}"), dtype, hint);
            self.outputs.push((dtype, base));
            if self.config.runnable.is_none() && self.config.address_values {
                self.pool.push(base);
            }
        }
        for i in 0..self.rng.below(2) {
            let view = self.view(&format!("out_view{i}"), 30 + i);
            self.output_views.push(view);
        }
    }

    fn scalar_hint(&mut self, dtype: DType) -> ParamHint {
        let mut hint = ParamHint::default();
        if dtype.is_int() {
            match self.rng.below(4) {
                0 => hint.divisor = 16,
                1 => hint.known = Some(self.rng.below(100) as i64),
                _ => {}
            }
        }
        hint
    }

    /// Each buffer is of its own, so that classes may all differ; or nothing is said of them.
    fn address_hint(&mut self, class: usize) -> ParamHint {
        let divisor = [1, 4, 16][self.rng.below(3)];
        let alias_class = if self.rng.chance(50) { class as u32 + 1 } else { 0 };
        ParamHint { divisor, known: None, alias_class }
    }

    fn view(&mut self, name: &str, class: usize) -> ViewValue {
        let dtype = self.dtype();
        let rank = 1 + self.rng.below(self.config.max_rank) as u8;
        let index = if self.dtypes.contains(&DType::I64) && self.rng.chance(50) { DType::I64 } else { DType::I32 };
        let mut hints = vec![ParamHint::default(); 1 + 2 * usize::from(rank)];
        hints[0] = self.address_hint(class);
        if self.rng.chance(50) {
            hints[2 * usize::from(rank)].known = Some(1);
        }
        let view = self.b.param_view(name, dtype, rank, index, &hints);
        self.pool.extend(view.dims.iter().chain(&view.strides));
        view
    }

    // ---- ops --------------------------------------------------------------------------------------------------

    /// Makes an op, with what it needs.
    fn step(&mut self, depth: usize) {
        self.budget = self.budget.saturating_sub(1);
        self.line += 1;
        self.b.set_loc(Loc { file: "generated", line: self.line, col: 1 });
        for _ in 0..20 {
            if self.try_step(depth).unwrap_or(false) {
                return;
            }
        }
    }

    /// Tries one kind of op. False, or `None`: it cannot be made here.
    fn try_step(&mut self, depth: usize) -> Option<bool> {
        Some(match self.rng.below(100) {
            0..3 => {
                let axis = self.rng.below(3) as u8;
                let op = if self.rng.chance(50) { Op::ProgramId { axis } } else { Op::NumPrograms { axis } };
                self.emit(op, vec![], TileType::scalar(DType::I32))
            }
            3..10 => {
                let (dtype, shape) = (self.dtype(), self.shape());
                let c = self.constant(dtype);
                self.emit(Op::Const(c), vec![], TileType::new(dtype, shape))
            }
            10..14 => {
                let (start, shape) = (self.rng.below(100) as i32 - 20, self.shape_of_rank(1));
                self.emit(Op::Arange { start }, vec![], TileType::new(DType::I32, shape))
            }
            14..24 => {
                let x = self.pick_number()?;
                let op = *self.rng.pick(UnaryOp::ALL)?;
                self.emit(Op::Unary(op), vec![x], self.b.ty(x).clone())
            }
            24..42 => {
                let x = self.pick_number()?;
                let op = *self.rng.pick(BinaryOp::ALL)?;
                let ty = self.b.ty(x).clone();
                let y = self.value_of(&ty)?;
                self.emit(Op::Binary(op), vec![x, y], ty)
            }
            42..48 => {
                let x = self.pick_number()?;
                let op = *self.rng.pick(Cmp::ALL)?;
                let ty = self.b.ty(x).clone();
                let y = self.value_of(&ty)?;
                self.emit(Op::Compare(op), vec![x, y], ty.with_dtype(DType::Bool))
            }
            48..52 => {
                let x = self.pick(|_| true)?;
                let ty = self.b.ty(x).clone();
                let y = self.value_of(&ty)?;
                let condition = self.value_of(&ty.with_dtype(DType::Bool))?;
                self.emit(Op::Select, vec![condition, x, y], ty)
            }
            52..55 => {
                let x = self.pick(|ty| matches!(ty.elem, Elem::Scalar(d) if d.is_float()))?;
                let ty = self.b.ty(x).clone();
                let (y, z) = (self.value_of(&ty)?, self.value_of(&ty)?);
                self.emit(Op::Fma, vec![x, y, z], ty)
            }
            55..61 => {
                let (x, dtype) = (self.pick_number()?, self.dtype());
                self.emit(Op::Cast, vec![x], self.b.ty(x).with_dtype(dtype))
            }
            61..63 => {
                let (x, dtype) = (self.pick_number()?, self.dtype());
                self.emit(Op::Bitcast, vec![x], self.b.ty(x).with_dtype(dtype))
            }
            63..67 => {
                let x = self.pick(|_| true)?;
                let dims = self.b.ty(x).shape.dims().to_vec();
                let shape = match dims.len() {
                    0 => self.shape(),
                    n => {
                        let wider = self.shape_of_rank(n);
                        let dim = |(&d, &w): (&usize, &usize)| if d == 1 { w } else { d };
                        Shape::new(dims.iter().zip(wider.dims()).map(dim).collect::<Vec<_>>())
                    }
                };
                self.emit(Op::Broadcast, vec![x], self.b.ty(x).with_shape(shape))
            }
            67..70 => {
                let x = self.pick(|_| true)?;
                let shape = self.other_shape(self.b.ty(x).shape.elements());
                self.emit(Op::Reshape, vec![x], self.b.ty(x).with_shape(shape))
            }
            70..73 => {
                let x = self.pick(|ty| ty.shape.rank() >= 2)?;
                let dims = self.b.ty(x).shape.dims().to_vec();
                let mut perm: Vec<u8> = (0..dims.len() as u8).collect();
                for i in (1..perm.len()).rev() {
                    perm.swap(i, self.rng.below(i + 1));
                }
                let shape = Shape::new(perm.iter().map(|&p| dims[usize::from(p)]).collect::<Vec<_>>());
                self.emit(Op::Permute(perm), vec![x], self.b.ty(x).with_shape(shape))
            }
            73..75 => {
                // A runnable function makes addresses only where it knows them to be in bounds.
                let (dtype, _) = *self.rng.pick(&self.inputs)?;
                let shape = self.shape();
                let p = self.address(dtype, &shape)?;
                if self.config.address_values {
                    self.pool.push(p);
                }
                self.config.address_values
            }
            75..81 => self.load()?,
            81..84 => self.store()?,
            84..87 => self.view_load()?,
            87..89 => self.view_store()?,
            89..92 => {
                let op = *self.rng.pick(ReduceOp::ALL)?;
                let mut x = self.pick(|ty| !ty.elem.is_ptr() && ty.shape.rank() > 0)?;
                if matches!(op, ReduceOp::Sum | ReduceOp::Prod) {
                    let wide = rules::sum_dtype(self.b.ty(x).dtype());
                    if !self.dtypes.contains(&wide) {
                        return None;
                    }
                    x = self.b.cast(x, wide).expect(VALID);
                }
                let (axis, ty) = self.reduced(x);
                self.emit(Op::Reduce { op, axis }, vec![x], ty)
            }
            92..94 => {
                let x = self.pick(|ty| !ty.elem.is_ptr() && ty.shape.rank() > 0)?;
                let (axis, ty) = self.reduced(x);
                let max = self.rng.chance(50);
                self.emit(Op::ArgReduce { max, axis }, vec![x], ty.with_dtype(DType::I32))
            }
            94..96 => self.dot()?,
            _ if depth >= self.config.max_nesting => return None,
            96 => self.make_while(depth)?,
            97 => self.make_if(depth)?,
            _ => self.make_for(depth)?,
        })
    }

    /// A shape with as many elements.
    fn other_shape(&mut self, elements: usize) -> Shape {
        let max = self.config.max_rank;
        let rank = if elements == 1 { self.rng.below(max + 1) } else { 1 + self.rng.below(max) };
        let mut left = elements;
        let mut dims = Vec::new();
        for axis in 0..rank {
            let dim = if axis + 1 == rank { left } else { 1 << self.rng.below(left.ilog2() as usize + 1) };
            left /= dim;
            dims.push(dim);
        }
        Shape::new(dims)
    }

    fn reduced(&mut self, x: Value) -> (u8, TileType) {
        let ty = self.b.ty(x).clone();
        let axis = self.rng.below(ty.shape.rank());
        (axis as u8, ty.with_shape(ty.shape.without(axis)))
    }

    fn dot(&mut self) -> Option<bool> {
        let dtype = self.dtype();
        let wide = rules::dot_accumulator(dtype).filter(|d| self.dtypes.contains(d))?;
        let side = self.max_exponent / 2 + 1;
        let [m, k, n] = [0; 3].map(|_| 1usize << self.rng.below(side));
        let (a, b) = (TileType::new(dtype, [m, k]), TileType::new(dtype, [k, n]));
        let acc = TileType::new(wide, [m, n]);
        let precision = *self.rng.pick(DotPrecision::ALL)?;
        let operands = vec![self.value_of(&a)?, self.value_of(&b)?, self.value_of(&acc)?];
        Some(self.emit(Op::Dot { precision }, operands, acc))
    }

    // ---- memory -----------------------------------------------------------------------------------------------

    /// Addresses inside an input (of a function that is not runnable: anywhere).
    fn address(&mut self, dtype: DType, shape: &Shape) -> Option<Value> {
        let bases: Vec<Value> = self.inputs.iter().filter(|(d, _)| *d == dtype).map(|(_, base)| *base).collect();
        let base = *self.rng.pick(&bases)?;
        let Some((runnable, (_, first))) = self.config.runnable.zip(self.first) else {
            let ints: Vec<DType> = self.dtypes.iter().copied().filter(|d| d.is_int()).collect();
            let int = *self.rng.pick(&ints)?;
            let offset = self.value_of(&TileType::new(int, shape.clone()))?;
            return Some(self.b.ptr_add(base, offset).expect(VALID));
        };
        let index = self.value_of(&TileType::new(DType::I32, shape.clone()))?;
        let last = self.i32(runnable.elements as i64 - 1);
        let mut offset = self.b.binary(BinaryOp::And, index, last).expect(VALID);
        if self.rng.chance(50) {
            offset = self.b.binary(BinaryOp::Add, offset, first).expect(VALID);
        }
        // The offset is never negative, and so the same number in other types that are wide enough.
        let wide = [DType::I64, DType::U32, DType::U64][self.rng.below(3)];
        if self.dtypes.contains(&wide) && self.rng.chance(25) {
            offset = self.b.cast(offset, wide).expect(VALID);
        }
        Some(self.b.ptr_add(base, offset).expect(VALID))
    }

    fn load(&mut self) -> Option<bool> {
        if !(self.config.allow)(&Op::Load) {
            return None;
        }
        let known = if self.rng.chance(40) { self.pick(|ty| ty.elem.is_ptr()) } else { None };
        let p = match known {
            Some(p) => p,
            None => {
                let (dtype, _) = *self.rng.pick(&self.inputs)?;
                let shape = self.shape();
                self.address(dtype, &shape)?
            }
        };
        let ty = self.b.ty(p).with_dtype(self.b.ty(p).dtype());
        let mut operands = vec![p];
        if self.rng.chance(50) {
            operands.push(self.value_of(&ty.with_dtype(DType::Bool))?);
            if self.rng.chance(50) {
                operands.push(self.value_of(&ty)?);
            }
        }
        Some(self.emit(Op::Load, operands, ty))
    }

    fn store(&mut self) -> Option<bool> {
        if !(self.config.allow)(&Op::Store) {
            return None;
        }
        let at = self.outputs.len().checked_sub(1)?;
        let (dtype, base) = self.outputs[at];
        let x = self.pick(|ty| ty.elem == Elem::Scalar(dtype))?;
        if self.config.runnable.is_some() {
            self.outputs.swap_remove(at);
        }
        self.store_to(base, x);
        Some(true)
    }

    /// Stores `x` to places of its own in the buffer at `base`.
    fn store_to(&mut self, base: Value, x: Value) {
        let shape = self.b.ty(x).shape.clone();
        let mask = TileType::new(DType::Bool, shape.clone());
        let mask = if self.rng.chance(40) { self.value_of(&mask) } else { None };
        let lane = self.b.arange(0, shape.elements()).expect(VALID);
        let mut offset = self.b.reshape(lane, shape).expect(VALID);
        if let Some((runnable, (_, first))) = self.config.runnable.zip(self.first) {
            // Turning the buffer keeps the addresses distinct; the turn is a constant so that a loop stores
            // to the same ones each time.
            let turn = self.rng.below(runnable.elements) as i64;
            let (turn, last) = (self.i32(turn), self.i32(runnable.elements as i64 - 1));
            offset = self.b.binary(BinaryOp::Add, offset, turn).expect(VALID);
            offset = self.b.binary(BinaryOp::And, offset, last).expect(VALID);
            offset = self.b.binary(BinaryOp::Add, offset, first).expect(VALID);
        }
        let p = self.b.ptr_add(base, offset).expect(VALID);
        self.b.store(p, x, mask).expect(VALID);
    }

    fn view_load(&mut self) -> Option<bool> {
        let view = self.rng.pick(&self.views)?.clone();
        let rank = view.dims.len();
        let mut operands = vec![view.base];
        operands.extend(view.dims.iter().chain(&view.strides));
        for _ in 0..rank {
            let mut offset = self.value_of(&TileType::scalar(DType::I32))?;
            if self.config.runnable.is_some() {
                // A little outside of the view at times, but never near the ends of `i32`.
                let (mask, low) = (self.i32(31), self.i32(-8));
                offset = self.b.binary(BinaryOp::And, offset, mask).expect(VALID);
                offset = self.b.binary(BinaryOp::Add, offset, low).expect(VALID);
            }
            operands.push(offset);
        }
        if self.rng.chance(40) {
            operands.push(self.value_of(&TileType::scalar(view.dtype))?);
        }
        let shape = self.shape_of_rank(rank);
        Some(self.emit(Op::ViewLoad { rank: rank as u8 }, operands, TileType::new(view.dtype, shape)))
    }

    fn view_store(&mut self) -> Option<bool> {
        let at = self.output_views.len().checked_sub(1)?;
        let view = self.output_views[at].clone();
        if !(self.config.allow)(&(Op::ViewStore { rank: view.dims.len() as u8 })) {
            return None;
        }
        let x = self.pick(|ty| ty.elem == Elem::Scalar(view.dtype))?;
        if self.config.runnable.is_some() {
            self.output_views.swap_remove(at);
        }
        self.store_to_view(&view, x);
        Some(true)
    }

    /// Stores `x` to the rows of a view that are this program's own.
    fn store_to_view(&mut self, view: &ViewValue, x: Value) {
        let rank = view.dims.len();
        let mut shape = self.b.ty(x).shape.clone();
        if shape.rank() != rank {
            let mut dims = vec![1; rank];
            dims[self.rng.below(rank)] = shape.elements();
            shape = Shape::new(dims);
        }
        let rows = shape.dims()[0] as i64;
        let x = self.b.reshape(x, shape).expect(VALID);
        let mut offsets = Vec::new();
        for axis in 0..rank {
            offsets.push(match (self.first, axis) {
                (Some((pid, _)), 0) => {
                    let rows = self.i32(rows);
                    self.b.binary(BinaryOp::Mul, pid, rows).expect(VALID)
                }
                _ => self.i32(0),
            });
        }
        self.b.view_store(view, &offsets, x).expect(VALID);
    }

    /// Stores something to each output that has got nothing yet, so that the function is not idle.
    fn store_outputs(&mut self) {
        if (self.config.allow)(&Op::Store) {
            for (dtype, base) in std::mem::take(&mut self.outputs) {
                let x = self.result_of(dtype);
                self.store_to(base, x);
            }
        }
        for view in std::mem::take(&mut self.output_views) {
            if (self.config.allow)(&(Op::ViewStore { rank: view.dims.len() as u8 })) {
                let x = self.result_of(view.dtype);
                self.store_to_view(&view, x);
            }
        }
    }

    fn result_of(&mut self, dtype: DType) -> Value {
        if let Some(x) = self.pick(|ty| ty.elem == Elem::Scalar(dtype)) {
            return x;
        }
        match self.pick_number() {
            Some(x) => self.b.cast(x, dtype).expect(VALID),
            None => {
                let c = self.constant(dtype);
                self.b.full(TileType::scalar(dtype), c).expect(VALID)
            }
        }
    }

    // ---- control flow -----------------------------------------------------------------------------------------

    /// Values to be carried through a loop, or given by branches.
    fn carried(&mut self) -> Vec<Value> {
        (0..self.rng.below(4)).filter_map(|_| self.pick(|_| true)).collect()
    }

    /// Some ops; their number is taken from the budget.
    fn steps(&mut self, depth: usize) {
        for _ in 0..1 + self.rng.below(5) {
            self.step(depth);
        }
    }

    /// Values of the types of `like`, which are used themselves where nothing else can be made.
    fn like(&mut self, like: &[Value]) -> Vec<Value> {
        let types: Vec<TileType> = like.iter().map(|&v| self.b.ty(v).clone()).collect();
        types.iter().zip(like).map(|(ty, &v)| self.value_of(ty).unwrap_or(v)).collect()
    }

    fn make_for(&mut self, depth: usize) -> Option<bool> {
        if !(self.config.allow)(&Op::For) {
            return None;
        }
        let wide = self.dtypes.contains(&DType::I64) && self.rng.chance(30);
        let index = if wide { DType::I64 } else { DType::I32 };
        let mut step = 1 + self.rng.below(3) as i64;
        if self.rng.chance(30) {
            step = -step;
        }
        let bound = TileType::scalar(index);
        let step_value = self.b.const_i64(index, step).expect(VALID);
        let (lo, hi) = if self.config.runnable.is_none() && self.rng.chance(50) {
            (self.value_of(&bound)?, self.value_of(&bound)?)
        } else if self.rng.chance(50) {
            let lo = self.rng.below(20) as i64 - 10;
            let hi = lo + step * self.rng.below(self.config.max_trips + 1) as i64;
            (self.b.const_i64(index, lo).expect(VALID), self.b.const_i64(index, hi).expect(VALID))
        } else {
            // Bounds known only when the program runs: lo in 0..16, fewer iterations than the most.
            let (lo, n) = (self.value_of(&bound)?, self.value_of(&bound)?);
            let few = self.config.max_trips as i64 - 1;
            let [fifteen, few] = [15, few].map(|c| self.b.const_i64(index, c).expect(VALID));
            let lo = self.b.binary(BinaryOp::And, lo, fifteen).expect(VALID);
            let n = self.b.binary(BinaryOp::And, n, few).expect(VALID);
            let length = self.b.binary(BinaryOp::Mul, n, step_value).expect(VALID);
            (lo, self.b.binary(BinaryOp::Add, lo, length).expect(VALID))
        };
        let inits = self.carried();
        let mark = self.pool.len();
        let (iv, inside) = self.b.begin_for(lo, hi, step_value, &inits).expect(VALID);
        self.pool.push(iv);
        self.pool.extend(&inside);
        self.steps(depth + 1);
        let next = self.like(&inside);
        let results = self.b.end_for(&next).expect(VALID);
        self.pool.truncate(mark);
        self.pool.extend(results);
        Some(true)
    }

    fn make_while(&mut self, depth: usize) -> Option<bool> {
        if !(self.config.allow)(&Op::While) {
            return None;
        }
        let mut inits = vec![self.i32(0)];
        inits.extend(self.carried());
        let mark = self.pool.len();
        let inside = self.b.begin_while(&inits);
        self.pool.extend(&inside);
        if self.rng.chance(50) {
            self.step(depth + 1);
        }
        let limit = self.rng.below(self.config.max_trips + 1) as i64;
        let limit = self.i32(limit);
        let mut condition = self.b.compare(Cmp::Lt, inside[0], limit).expect(VALID);
        if self.rng.chance(50)
            && (self.config.allow)(&Op::Binary(BinaryOp::And))
            && let Some(also) = self.value_of(&TileType::scalar(DType::Bool))
        {
            condition = self.b.binary(BinaryOp::And, condition, also).expect(VALID);
        }
        self.pool.truncate(mark);
        let inside = self.b.while_body(condition).expect(VALID);
        self.pool.extend(&inside);
        self.steps(depth + 1);
        let mut next = self.like(&inside);
        let one = self.i32(1);
        next[0] = self.b.binary(BinaryOp::Add, inside[0], one).expect(VALID);
        let results = self.b.end_while(&next).expect(VALID);
        self.pool.truncate(mark);
        self.pool.extend(results);
        Some(true)
    }

    fn make_if(&mut self, depth: usize) -> Option<bool> {
        if !(self.config.allow)(&Op::If) {
            return None;
        }
        let condition = self.value_of(&TileType::scalar(DType::Bool))?;
        let like = self.carried();
        let mark = self.pool.len();
        self.b.begin_if(condition).expect(VALID);
        self.steps(depth + 1);
        let first = self.like(&like);
        self.pool.truncate(mark);
        self.b.begin_else(&first);
        if self.rng.chance(70) {
            self.steps(depth + 1);
        }
        let second = self.like(&like);
        let results = self.b.end_if(&second).expect(VALID);
        self.pool.truncate(mark);
        self.pool.extend(results);
        Some(true)
    }
}
