//! Building Tile IR by hand: every method checks its operands and says what is wrong with them.
//!
//! The typed handles of [`crate::dsl`] sit on this; the graph compiler uses it directly.

use super::function::{Function, OpId, Param, ParamHint, ParamKind, Region, RegionData, Value};
use super::ops::{BinaryOp, Cmp, Constant, DotPrecision, Op, ReduceOp, UnaryOp};
use super::rules;
use super::types::{Shape, TileType};
use crate::dtype::DType;
use crate::error::{Diagnostic, Loc};

/// The result of building one op.
pub type Built<T = Value> = Result<T, Diagnostic>;

/// The flattened values of a view parameter.
#[derive(Clone, PartialEq, Debug)]
pub struct ViewValue {
    /// What is viewed.
    pub dtype: DType,
    /// Address of element 0.
    pub base: Value,
    /// Extents, `i32`.
    pub dims: Vec<Value>,
    /// Strides in elements, all `i32` or all `i64`.
    pub strides: Vec<Value>,
}

/// An open region: what is being built inside which op.
#[derive(Debug)]
enum Frame {
    For { operands: Vec<Value>, region: Region, loc: Loc },
    WhileCondition { inits: Vec<Value>, region: Region, loc: Loc },
    WhileBody { inits: Vec<Value>, condition: Region, body: Region, loc: Loc },
    Then { condition: Value, region: Region, loc: Loc },
    Else { condition: Value, then: Region, then_types: Vec<TileType>, region: Region, loc: Loc },
}

impl Frame {
    fn region(&self) -> Region {
        match self {
            Frame::For { region, .. }
            | Frame::WhileCondition { region, .. }
            | Frame::Then { region, .. }
            | Frame::Else { region, .. } => *region,
            Frame::WhileBody { body, .. } => *body,
        }
    }
}

/// Builds a [`Function`] op by op, at the end of the innermost open region.
#[derive(Debug)]
pub struct Builder {
    func: Function,
    frames: Vec<Frame>,
    loc: Loc,
}

impl Builder {
    /// A kernel without parameters yet.
    pub fn new(name: impl Into<String>) -> Self {
        Self { func: Function::new(name), frames: Vec::new(), loc: Loc::UNKNOWN }
    }

    /// The place in the user's source that ops made from now on come from.
    pub fn set_loc(&mut self, loc: Loc) {
        self.loc = loc;
    }

    /// The place that ops made now come from.
    pub fn loc(&self) -> Loc {
        self.loc
    }

    /// May products and sums written apart be contracted to one `fma`?
    pub fn set_fp_fusion(&mut self, on: bool) {
        self.func.fp_fusion = on;
    }

    /// The function as built so far.
    pub fn func(&self) -> &Function {
        &self.func
    }

    /// The type of a value.
    pub fn ty(&self, value: Value) -> &TileType {
        self.func.ty(value)
    }

    /// How many regions are open inside the body.
    pub fn depth(&self) -> usize {
        self.frames.len()
    }

    fn region(&self) -> Region {
        self.frames.last().map_or(self.func.body, Frame::region)
    }

    /// A diagnostic at the current place.
    pub fn error(&self, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(self.loc, message)
    }

    // ---- parameters -------------------------------------------------------------------------------------------

    fn add_param(&mut self, name: &str, kind: ParamKind, flat: Vec<(TileType, ParamHint)>) -> Vec<Value> {
        self.func.params.push(Param { name: name.to_owned(), kind });
        let body = self.func.body;
        flat.into_iter()
            .map(|(ty, hint)| {
                self.func.hints.push(hint);
                self.func.add_region_param(body, ty)
            })
            .collect()
    }

    /// Adds a parameter that is one number.
    pub fn param_scalar(&mut self, name: &str, dtype: DType, hint: ParamHint) -> Value {
        self.add_param(name, ParamKind::Scalar(dtype), vec![(TileType::scalar(dtype), hint)])[0]
    }

    /// Adds a parameter that is an address.
    pub fn param_ptr(&mut self, name: &str, dtype: DType, hint: ParamHint) -> Value {
        self.add_param(name, ParamKind::Ptr { dtype }, vec![(TileType::ptr(dtype, Shape::SCALAR), hint)])[0]
    }

    /// Adds a parameter that is a strided view of a tensor; `index` (`i32` or `i64`) is the type of its strides, `hints`
    /// are those of base, extents and strides in that order (missing ones mean "nothing known").
    pub fn param_view(&mut self, name: &str, dtype: DType, rank: u8, index: DType, hints: &[ParamHint]) -> ViewValue {
        let n = usize::from(rank);
        let types = std::iter::once(TileType::ptr(dtype, Shape::SCALAR))
            .chain(std::iter::repeat_n(TileType::scalar(DType::I32), n))
            .chain(std::iter::repeat_n(TileType::scalar(index), n));
        let flat = types.enumerate().map(|(i, ty)| (ty, hints.get(i).copied().unwrap_or_default())).collect();
        let values = self.add_param(name, ParamKind::View { dtype, rank }, flat);
        ViewValue { dtype, base: values[0], dims: values[1..=n].to_vec(), strides: values[n + 1..].to_vec() }
    }

    // ---- ops --------------------------------------------------------------------------------------------------

    /// Makes any op that has no regions, after checking it.
    pub fn op(&mut self, op: Op, operands: Vec<Value>, result_types: Vec<TileType>) -> Built<OpId> {
        let types: Vec<TileType> = operands.iter().map(|&v| self.ty(v).clone()).collect();
        rules::check(&op, &types, &result_types).map_err(|p| Diagnostic {
            message: p.message,
            loc: self.loc,
            help: p.help,
        })?;
        let id = self.func.create_op(op, operands, result_types, Vec::new(), self.loc);
        let region = self.region();
        self.func.regions[region].ops.push(id);
        Ok(id)
    }

    fn op1(&mut self, op: Op, operands: Vec<Value>, result: TileType) -> Built {
        let id = self.op(op, operands, vec![result])?;
        Ok(self.func.ops[id].results[0])
    }

    /// This program's coordinate along `axis` of the grid.
    pub fn program_id(&mut self, axis: u8) -> Built {
        self.op1(Op::ProgramId { axis }, vec![], TileType::scalar(DType::I32))
    }

    /// The grid's extent along `axis`.
    pub fn num_programs(&mut self, axis: u8) -> Built {
        self.op1(Op::NumPrograms { axis }, vec![], TileType::scalar(DType::I32))
    }

    /// A tile all of whose elements are one number.
    pub fn full(&mut self, ty: TileType, value: Constant) -> Built {
        self.op1(Op::Const(value), vec![], ty)
    }

    /// A scalar integer (or, for float types, the nearest float).
    pub fn const_i64(&mut self, dtype: DType, value: i64) -> Built {
        self.full(TileType::scalar(dtype), Constant::from_i64(dtype, value))
    }

    /// A scalar float (or, for integer types, Rust's `as`).
    pub fn const_f64(&mut self, dtype: DType, value: f64) -> Built {
        self.full(TileType::scalar(dtype), Constant::from_f64(dtype, value))
    }

    /// `i32[n]`: `start, start + 1, ..`.
    pub fn arange(&mut self, start: i32, n: usize) -> Built {
        self.op1(Op::Arange { start }, vec![], TileType::new(DType::I32, [n]))
    }

    /// An elementwise function of one operand.
    pub fn unary(&mut self, op: UnaryOp, x: Value) -> Built {
        let ty = self.ty(x).clone();
        self.op1(Op::Unary(op), vec![x], ty)
    }

    /// Repeats the two operands so that they have one shape.
    pub fn broadcast_together(&mut self, x: Value, y: Value) -> Built<(Value, Value)> {
        let shape = rules::broadcast_shape(&self.ty(x).shape, &self.ty(y).shape).map_err(|p| Diagnostic {
            message: p.message,
            loc: self.loc,
            help: p.help,
        })?;
        Ok((self.broadcast(x, shape.clone())?, self.broadcast(y, shape)?))
    }

    /// An elementwise function of two operands, broadcast together.
    pub fn binary(&mut self, op: BinaryOp, x: Value, y: Value) -> Built {
        let (x, y) = self.broadcast_together(x, y)?;
        let ty = self.ty(x).clone();
        self.op1(Op::Binary(op), vec![x, y], ty)
    }

    /// A comparison of two operands, broadcast together.
    pub fn compare(&mut self, op: Cmp, x: Value, y: Value) -> Built {
        let (x, y) = self.broadcast_together(x, y)?;
        let ty = self.ty(x).with_dtype(DType::Bool);
        self.op1(Op::Compare(op), vec![x, y], ty)
    }

    /// `x` where `condition` holds, else `y`; the three are broadcast together.
    pub fn select(&mut self, condition: Value, x: Value, y: Value) -> Built {
        let (x, y) = self.broadcast_together(x, y)?;
        let (condition, x) = self.broadcast_together(condition, x)?;
        let (_, y) = self.broadcast_together(condition, y)?;
        let ty = self.ty(x).clone();
        self.op1(Op::Select, vec![condition, x, y], ty)
    }

    /// `x * y + z` rounded once; the three are broadcast together.
    pub fn fma(&mut self, x: Value, y: Value, z: Value) -> Built {
        let (x, y) = self.broadcast_together(x, y)?;
        let (x, z) = self.broadcast_together(x, z)?;
        let (_, y) = self.broadcast_together(x, y)?;
        let ty = self.ty(x).clone();
        self.op1(Op::Fma, vec![x, y, z], ty)
    }

    /// Rust's `as`. A cast to the same type is no op.
    pub fn cast(&mut self, x: Value, dtype: DType) -> Built {
        let ty = self.ty(x).clone();
        if ty.elem == super::Elem::Scalar(dtype) {
            return Ok(x);
        }
        self.op1(Op::Cast, vec![x], ty.with_dtype(dtype))
    }

    /// The same bits as another type of the same width.
    pub fn bitcast(&mut self, x: Value, dtype: DType) -> Built {
        let ty = self.ty(x).with_dtype(dtype);
        self.op1(Op::Bitcast, vec![x], ty)
    }

    /// Repeats `x` to fill `shape`. No op if it already does.
    pub fn broadcast(&mut self, x: Value, shape: impl Into<Shape>) -> Built {
        let ty = self.ty(x).with_shape(shape);
        if &ty == self.ty(x) {
            return Ok(x);
        }
        self.op1(Op::Broadcast, vec![x], ty)
    }

    /// The same elements, row-major, in another shape. No op if it is the same.
    pub fn reshape(&mut self, x: Value, shape: impl Into<Shape>) -> Built {
        let ty = self.ty(x).with_shape(shape);
        if &ty == self.ty(x) {
            return Ok(x);
        }
        self.op1(Op::Reshape, vec![x], ty)
    }

    /// Inserts a dimension of extent 1 before dimension `axis`.
    pub fn expand_dims(&mut self, x: Value, axis: usize) -> Built {
        let mut dims = self.ty(x).shape.dims().to_vec();
        if axis > dims.len() {
            let rank = dims.len();
            return Err(self
                .error(format!("cannot insert dimension {axis} in a tile of type {}", self.ty(x)))
                .help(format!("the new dimension stands before dimension `axis`, or last: `axis` is at most {rank}")));
        }
        dims.insert(axis, 1);
        self.reshape(x, Shape::new(dims))
    }

    /// Dimension `i` of the result is dimension `perm[i]` of `x`.
    pub fn permute(&mut self, x: Value, perm: &[usize]) -> Built {
        let ty = self.ty(x).clone();
        let perm: Vec<u8> = perm.iter().map(|&p| u8::try_from(p).unwrap_or(u8::MAX)).collect();
        // A wrong permutation is reported by the rules; the type made here is then of no matter.
        let dims: Vec<usize> =
            perm.iter().map(|&p| ty.shape.dims().get(usize::from(p)).copied().unwrap_or(1)).collect();
        self.op1(Op::Permute(perm), vec![x], ty.with_shape(Shape::new(dims)))
    }

    /// Swaps the two dimensions of a matrix.
    pub fn transpose(&mut self, x: Value) -> Built {
        if self.ty(x).shape.rank() != 2 {
            return Err(self
                .error(format!("cannot transpose a tile of type {}: it has not two dimensions", self.ty(x)))
                .help("use `permute` to reorder the dimensions of other tiles"));
        }
        self.permute(x, &[1, 0])
    }

    /// `p` moved by `offset` elements; the two are broadcast together.
    pub fn ptr_add(&mut self, p: Value, offset: Value) -> Built {
        let (p, offset) = self.broadcast_together(p, offset)?;
        let ty = self.ty(p).clone();
        self.op1(Op::PtrAdd, vec![p, offset], ty)
    }

    /// Reads through `p`; `mask` and `other` are broadcast to its shape.
    pub fn load(&mut self, p: Value, mask: Option<Value>, other: Option<Value>) -> Built {
        let ty = self.ty(p).clone();
        let mut operands = vec![p];
        if let Some(mask) = mask {
            operands.push(self.broadcast(mask, ty.shape.clone())?);
        }
        if let Some(other) = other {
            if mask.is_none() {
                return Err(self.error("a value for masked-out lanes was given without a mask"));
            }
            operands.push(self.broadcast(other, ty.shape.clone())?);
        }
        self.op1(Op::Load, operands, ty.with_dtype(ty.dtype()))
    }

    /// Writes `x` through `p`; `x` and `mask` are broadcast to its shape.
    pub fn store(&mut self, p: Value, x: Value, mask: Option<Value>) -> Built<()> {
        let shape = self.ty(p).shape.clone();
        let mut operands = vec![p, self.broadcast(x, shape.clone())?];
        if let Some(mask) = mask {
            operands.push(self.broadcast(mask, shape)?);
        }
        self.op(Op::Store, operands, vec![]).map(|_| ())
    }

    fn view_operands(&mut self, view: &ViewValue, offsets: &[Value]) -> Built<Vec<Value>> {
        if offsets.len() != view.dims.len() {
            return Err(self.error(format!("{} offsets into a view of {} dimensions", offsets.len(), view.dims.len())));
        }
        let mut operands = vec![view.base];
        operands.extend(&view.dims);
        operands.extend(&view.strides);
        operands.extend(offsets);
        Ok(operands)
    }

    /// Reads the tile of `shape` at `offsets` of a view; elements outside read `pad`, or 0.
    pub fn view_load(
        &mut self,
        view: &ViewValue,
        offsets: &[Value],
        shape: impl Into<Shape>,
        pad: Option<Value>,
    ) -> Built {
        let mut operands = self.view_operands(view, offsets)?;
        operands.extend(pad);
        let rank = view.dims.len() as u8;
        self.op1(Op::ViewLoad { rank }, operands, TileType::new(view.dtype, shape))
    }

    /// Writes the tile `x` at `offsets` of a view; elements outside are dropped.
    pub fn view_store(&mut self, view: &ViewValue, offsets: &[Value], x: Value) -> Built<()> {
        let mut operands = self.view_operands(view, offsets)?;
        operands.push(x);
        let rank = view.dims.len() as u8;
        self.op(Op::ViewStore { rank }, operands, vec![]).map(|_| ())
    }

    /// Combines the elements along `axis`. Sums and products of `bool` and of integers below 32 bits are
    /// widened to 32 bits first.
    pub fn reduce(&mut self, op: ReduceOp, x: Value, axis: usize) -> Built {
        let x = match op {
            ReduceOp::Sum | ReduceOp::Prod if !self.ty(x).elem.is_ptr() => {
                self.cast(x, rules::sum_dtype(self.ty(x).dtype()))?
            }
            _ => x,
        };
        let ty = self.reduced(x, axis)?;
        self.op1(Op::Reduce { op, axis: axis as u8 }, vec![x], ty)
    }

    /// The index of the greatest (`max`) or least element along `axis`, as `i32`.
    pub fn arg_reduce(&mut self, max: bool, x: Value, axis: usize) -> Built {
        let ty = self.reduced(x, axis)?.with_dtype(DType::I32);
        self.op1(Op::ArgReduce { max, axis: axis as u8 }, vec![x], ty)
    }

    fn reduced(&self, x: Value, axis: usize) -> Built<TileType> {
        let ty = self.ty(x);
        if axis >= ty.shape.rank() {
            let rank = ty.shape.rank();
            return Err(self
                .error(format!("axis {axis} is out of range for a tile of type {ty}, which has {rank} dimensions"))
                .help(match rank {
                    0 => "a scalar has no axis: reduce a tile, or drop the reduction".to_owned(),
                    1 => "axes count from 0: the only axis is 0".to_owned(),
                    _ => format!("axes count from 0: the last is {}", rank - 1),
                }));
        }
        Ok(ty.with_shape(ty.shape.without(axis)))
    }

    /// `acc + a b`.
    pub fn dot(&mut self, a: Value, b: Value, acc: Value, precision: DotPrecision) -> Built {
        let ty = self.ty(acc).clone();
        self.op1(Op::Dot { precision }, vec![a, b, acc], ty)
    }

    // ---- control flow -----------------------------------------------------------------------------------------

    fn open(&mut self, params: Vec<TileType>) -> (Region, Vec<Value>) {
        let region = self.func.regions.push(RegionData::default());
        let values = params.into_iter().map(|ty| self.func.add_region_param(region, ty)).collect();
        (region, values)
    }

    fn terminate(&mut self, region: Region, op: Op, operands: Vec<Value>) {
        let id = self.func.create_op(op, operands, vec![], vec![], self.loc);
        self.func.regions[region].ops.push(id);
    }

    fn types(&self, values: &[Value]) -> Vec<TileType> {
        values.iter().map(|&v| self.ty(v).clone()).collect()
    }

    /// Makes an op with regions, at the end of the region now open.
    fn close(
        &mut self,
        op: Op,
        operands: Vec<Value>,
        results: Vec<TileType>,
        regions: Vec<Region>,
        loc: Loc,
    ) -> Vec<Value> {
        let id = self.func.create_op(op, operands, results, regions, loc);
        let region = self.region();
        self.func.regions[region].ops.push(id);
        self.func.ops[id].results.clone()
    }

    fn check_carried(&self, what: &str, expected: &[TileType], got: &[Value]) -> Built<()> {
        let got = self.types(got);
        if got.len() != expected.len() {
            return Err(self.error(format!("{what} gives {} values, expected {}", got.len(), expected.len())));
        }
        for (i, (e, g)) in expected.iter().zip(&got).enumerate() {
            if e != g {
                return Err(self
                    .error(format!("{what} changes the type of carried value {i} from {e} to {g}"))
                    .help("give the variable its final type and shape before the loop or branch"));
            }
        }
        Ok(())
    }

    /// Opens `for iv in lo..hi step step` with carried values; gives `(iv, carried values inside)`.
    pub fn begin_for(&mut self, lo: Value, hi: Value, step: Value, inits: &[Value]) -> Built<(Value, Vec<Value>)> {
        let mut operands = vec![lo, hi, step];
        operands.extend(inits);
        let types = self.types(&operands);
        rules::check(&Op::For, &types, &types[3..]).map_err(|p| Diagnostic {
            message: p.message,
            loc: self.loc,
            help: p.help,
        })?;
        if self.func.const_of(step).is_some_and(|c| c.0 == 0) {
            return Err(self.error("the step of a loop is 0").help("a step of 0 would never reach the end"));
        }
        let mut params = vec![types[0].clone()];
        params.extend_from_slice(&types[3..]);
        let (region, values) = self.open(params);
        self.frames.push(Frame::For { operands, region, loc: self.loc });
        Ok((values[0], values[1..].to_vec()))
    }

    /// Closes the innermost region, which is a `for`; gives the carried values after the loop.
    ///
    /// # Panics
    /// If the innermost open region is not that of a `for`.
    pub fn end_for(&mut self, next: &[Value]) -> Built<Vec<Value>> {
        let Some(Frame::For { operands, region, loc }) = self.frames.pop() else {
            panic!("end_for closes a region opened by begin_for");
        };
        let types = self.types(&operands[3..]);
        // On a mistake the loop is still closed, with its initial values, so that building can go on.
        let checked = self.check_carried("the loop body", &types, next);
        let next = if checked.is_ok() { next.to_vec() } else { operands[3..].to_vec() };
        self.terminate(region, Op::Yield, next);
        let results = self.close(Op::For, operands, types, vec![region], loc);
        checked.map(|()| results)
    }

    /// Opens the condition of `while`; gives the carried values inside it.
    pub fn begin_while(&mut self, inits: &[Value]) -> Vec<Value> {
        let types = self.types(inits);
        let (region, values) = self.open(types);
        self.frames.push(Frame::WhileCondition { inits: inits.to_vec(), region, loc: self.loc });
        values
    }

    /// Ends the condition of `while` and opens its body; gives the carried values inside it.
    ///
    /// # Panics
    /// If the innermost open region is not the condition of a `while`.
    pub fn while_body(&mut self, condition: Value) -> Built<Vec<Value>> {
        let Some(Frame::WhileCondition { inits, region, loc }) = self.frames.pop() else {
            panic!("while_body follows begin_while");
        };
        let checked = rules::check(&Op::Condition, &[self.ty(condition).clone()], &[]);
        self.terminate(region, Op::Condition, vec![condition]);
        let types = self.types(&inits);
        let (body, values) = self.open(types);
        self.frames.push(Frame::WhileBody { inits, condition: region, body, loc });
        checked.map(|()| values).map_err(|p| Diagnostic { message: p.message, loc: self.loc, help: p.help })
    }

    /// Closes the body of `while`; gives the carried values after the loop.
    ///
    /// # Panics
    /// If the innermost open region is not the body of a `while`.
    pub fn end_while(&mut self, next: &[Value]) -> Built<Vec<Value>> {
        let Some(Frame::WhileBody { inits, condition, body, loc }) = self.frames.pop() else {
            panic!("end_while follows while_body");
        };
        let types = self.types(&inits);
        let checked = self.check_carried("the loop body", &types, next);
        let next = if checked.is_ok() { next.to_vec() } else { inits.clone() };
        self.terminate(body, Op::Yield, next);
        let results = self.close(Op::While, inits, types, vec![condition, body], loc);
        checked.map(|()| results)
    }

    /// Opens the first branch of `if`.
    pub fn begin_if(&mut self, condition: Value) -> Built<()> {
        rules::check(&Op::If, &[self.ty(condition).clone()], &[]).map_err(|p| Diagnostic {
            message: p.message,
            loc: self.loc,
            help: p.help.or(Some("a branch is taken by the whole program; use `select` to choose per element".into())),
        })?;
        let (region, _) = self.open(vec![]);
        self.frames.push(Frame::Then { condition, region, loc: self.loc });
        Ok(())
    }

    /// Ends the first branch, giving its results, and opens the second.
    ///
    /// # Panics
    /// If the innermost open region is not the first branch of an `if`.
    pub fn begin_else(&mut self, results: &[Value]) {
        let Some(Frame::Then { condition, region: then, loc }) = self.frames.pop() else {
            panic!("begin_else follows begin_if");
        };
        let then_types = self.types(results);
        self.terminate(then, Op::Yield, results.to_vec());
        let (region, _) = self.open(vec![]);
        self.frames.push(Frame::Else { condition, then, then_types, region, loc });
    }

    /// Ends the second branch, giving its results; gives the results of the `if`.
    ///
    /// # Panics
    /// If the innermost open region is not the second branch of an `if`.
    pub fn end_if(&mut self, results: &[Value]) -> Built<Vec<Value>> {
        let Some(Frame::Else { condition, then, then_types, region, loc }) = self.frames.pop() else {
            panic!("end_if follows begin_else");
        };
        // On a mistake the `if` is dropped whole: the function is not going to be used.
        self.check_carried("the second branch", &then_types, results)?;
        self.terminate(region, Op::Yield, results.to_vec());
        Ok(self.close(Op::If, vec![condition], then_types, vec![then, region], loc))
    }

    /// Given the results of the region op built last: removes those that the op leaves as they were, and gives for each
    /// the value that stands for it now.
    pub fn drop_unchanged(&mut self, results: &[Value]) -> Vec<Value> {
        match results.first().and_then(|&first| self.func.def_op(first)) {
            Some(op) => self.func.drop_unchanged(op),
            None => results.to_vec(),
        }
    }

    /// Ends the kernel.
    ///
    /// # Panics
    /// If a region is still open.
    pub fn finish(mut self) -> Function {
        assert!(self.frames.is_empty(), "every region is closed before the kernel ends");
        let body = self.func.body;
        self.terminate(body, Op::Yield, vec![]);
        self.func
    }
}
