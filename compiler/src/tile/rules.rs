//! The typing rules of [`Op`], in one place: the builder asks before it makes an op, the verifier asks again.

use super::ops::{BinaryOp, Op, ReduceOp, UnaryOp};
use super::types::{Elem, Shape, TileType};
use crate::dtype::{DType, Kind};

/// A broken rule: what is wrong, and advice if there is any.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// What is wrong, with the types of the operands.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
}

impl Problem {
    fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), help: None }
    }

    fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

type Check = Result<(), Problem>;

fn ensure(condition: bool, problem: impl FnOnce() -> Problem) -> Check {
    if condition { Ok(()) } else { Err(problem()) }
}

/// The type `dot` accumulates in for operands of `dtype`, if it takes them.
pub const fn dot_accumulator(dtype: DType) -> Option<DType> {
    match dtype {
        DType::F16 | DType::BF16 | DType::F32 => Some(DType::F32),
        DType::F64 => Some(DType::F64),
        DType::I8 | DType::U8 => Some(DType::I32),
        _ => None,
    }
}

/// The type a sum or product of elements of `dtype` is taken in: `bool` and signed integers below 32 bits
/// widen to `i32`, unsigned ones to `u32`; all others keep theirs.
pub const fn sum_dtype(dtype: DType) -> DType {
    match dtype {
        DType::Bool | DType::I8 | DType::I16 => DType::I32,
        DType::U8 | DType::U16 => DType::U32,
        d => d,
    }
}

/// The shape both operands of an elementwise op broadcast to, if there is one: a scalar goes with everything; else the
/// ranks agree and extents agree or are 1.
pub fn broadcast_shape(a: &Shape, b: &Shape) -> Result<Shape, Problem> {
    if a.rank() == 0 {
        return Ok(b.clone());
    }
    if b.rank() == 0 {
        return Ok(a.clone());
    }
    let problem = |why: String| Problem::new(format!("shapes {a} and {b} do not broadcast together: {why}"));
    if a.rank() != b.rank() {
        return Err(problem(format!("they have {} and {} dimensions", a.rank(), b.rank()))
            .help("insert a dimension of extent 1 with `expand_dims` so that the ranks agree"));
    }
    let mut dims = Vec::with_capacity(a.rank());
    for (axis, (&x, &y)) in a.dims().iter().zip(b.dims()).enumerate() {
        if x != y && x != 1 && y != 1 {
            return Err(problem(format!("dimension {axis} is {x} in one and {y} in the other")));
        }
        dims.push(x.max(y));
    }
    Ok(Shape::new(dims))
}

/// Is `op` defined for elements of this type?
fn unary_takes(op: UnaryOp, dtype: DType) -> bool {
    match op {
        UnaryOp::Neg | UnaryOp::Abs => dtype.is_int() || dtype.is_float(),
        UnaryOp::Not => dtype.is_int() || dtype == DType::Bool,
        _ => dtype.is_float(),
    }
}

fn binary_takes(op: BinaryOp, dtype: DType) -> bool {
    match op {
        BinaryOp::Add
        | BinaryOp::Sub
        | BinaryOp::Mul
        | BinaryOp::Div
        | BinaryOp::Rem
        | BinaryOp::Min
        | BinaryOp::Max => dtype.is_int() || dtype.is_float(),
        BinaryOp::FloorDiv | BinaryOp::FloorMod | BinaryOp::MulHi | BinaryOp::Shl | BinaryOp::Shr => dtype.is_int(),
        BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => dtype.is_int() || dtype == DType::Bool,
        BinaryOp::FMin | BinaryOp::FMax => dtype.is_float(),
    }
}

fn reduce_takes(op: ReduceOp, dtype: DType) -> bool {
    match op {
        // The builder widens before, so that the result's type is the operand's.
        ReduceOp::Sum | ReduceOp::Prod => sum_dtype(dtype) == dtype,
        ReduceOp::Min | ReduceOp::Max => dtype.is_int() || dtype.is_float(),
        ReduceOp::And | ReduceOp::Or | ReduceOp::Xor => dtype.is_int() || dtype == DType::Bool,
    }
}

fn scalar_of(ty: &TileType) -> Result<DType, Problem> {
    match ty.elem {
        Elem::Scalar(d) => Ok(d),
        Elem::Ptr(_) => {
            Err(Problem::new(format!("operand of type {ty} is a pointer"))
                .help("load from it first, or move it with `+`"))
        }
    }
}

/// The result's element type; numbers alone.
fn result_scalar(results: &[TileType]) -> Result<DType, Problem> {
    match results[0].elem {
        Elem::Scalar(d) => Ok(d),
        Elem::Ptr(_) => Err(Problem::new(format!("the result has type {}, but only numbers can be made", results[0]))
            .help("addresses come from parameters, and are moved by `ptr_add`")),
    }
}

fn same_types(operands: &[TileType]) -> Check {
    for other in &operands[1..] {
        ensure(other == &operands[0], || {
            Problem::new(format!("operands have different types: {} and {other}", operands[0]))
        })?;
    }
    Ok(())
}

/// Is the operand a scalar of a type in `wanted`?
fn is_scalar_of(ty: &TileType, wanted: &[DType], what: &str) -> Check {
    let ok = ty.is_scalar() && matches!(ty.elem, Elem::Scalar(d) if wanted.contains(&d));
    ensure(ok, || {
        let names: Vec<_> = wanted.iter().map(DType::to_string).collect();
        Problem::new(format!("{what} must be a scalar of type {}, but it has type {ty}", names.join(" or ")))
    })
}

/// Are these scalars of one type, `i32` or `i64`?
fn are_indices(list: &[TileType], what: &str) -> Check {
    is_scalar_of(&list[0], &[DType::I32, DType::I64], what)?;
    for other in &list[1..] {
        is_scalar_of(other, &[list[0].dtype()], what)?;
    }
    Ok(())
}

fn count(what: &str, list: &[TileType], allowed: std::ops::RangeInclusive<usize>) -> Check {
    ensure(allowed.contains(&list.len()), || {
        let expected = if allowed.start() == allowed.end() {
            allowed.start().to_string()
        } else {
            format!("{} to {}", allowed.start(), allowed.end())
        };
        let plural = if expected == "1" { "" } else { "s" };
        Problem::new(format!("expected {expected} {what}{plural}, got {}", list.len()))
    })
}

fn result_is(results: &[TileType], expected: &TileType) -> Check {
    ensure(&results[0] == expected, || Problem::new(format!("the result has type {}, expected {expected}", results[0])))
}

fn axis_in(axis: u8, ty: &TileType) -> Check {
    ensure(usize::from(axis) < ty.shape.rank(), || {
        Problem::new(format!(
            "axis {axis} is out of range for a tile of type {ty}, which has {} dimensions",
            ty.shape.rank()
        ))
    })
}

/// Checks `op` against the types of its operands and results. What lies in regions is the verifier's to check.
pub fn check(op: &Op, operands: &[TileType], results: &[TileType]) -> Check {
    let info = op.info();
    count("operand", operands, info.operands)?;
    count("result", results, info.results)?;
    for ty in results {
        ty.shape.check().map_err(|why| {
            Problem::new(why)
                .help("tile extents are powers of two; use a larger tile and a mask, or a view, for ragged sizes")
        })?;
    }
    match op {
        Op::ProgramId { axis } | Op::NumPrograms { axis } => {
            ensure(*axis < 3, || {
                Problem::new(format!("axis {axis} of the grid; a grid has axes 0, 1 and 2"))
                    .help("fold further dimensions into one axis, and take them apart with `/` and `%`")
            })?;
            result_is(results, &TileType::scalar(DType::I32))
        }
        Op::Const(_) => result_scalar(results).map(|_| ()),
        Op::Arange { start } => {
            let ok = results[0].elem == Elem::Scalar(DType::I32) && results[0].shape.rank() == 1;
            ensure(ok, || Problem::new(format!("arange gives i32[n], not {}", results[0])))?;
            ensure(start.checked_add(results[0].shape.elements() as i32 - 1).is_some(), || {
                Problem::new(format!("arange from {start} leaves the range of i32"))
            })
        }
        Op::Unary(u) => {
            let d = scalar_of(&operands[0])?;
            ensure(unary_takes(*u, d), || Problem::new(format!("`{u}` is not defined for {}", operands[0])))?;
            result_is(results, &operands[0])
        }
        Op::Binary(b) => {
            let d = scalar_of(&operands[0])?;
            same_types(operands)?;
            ensure(binary_takes(*b, d), || Problem::new(format!("`{b}` is not defined for {}", operands[0])))?;
            result_is(results, &operands[0])
        }
        Op::Compare(_) => {
            scalar_of(&operands[0])?;
            same_types(operands)?;
            result_is(results, &operands[0].with_dtype(DType::Bool))
        }
        Op::Select => {
            same_types(&operands[1..])?;
            ensure(operands[0] == operands[1].with_dtype(DType::Bool), || {
                Problem::new(format!(
                    "the condition has type {}, expected {}",
                    operands[0],
                    operands[1].with_dtype(DType::Bool)
                ))
            })?;
            result_is(results, &operands[1])
        }
        Op::Fma => {
            let d = scalar_of(&operands[0])?;
            same_types(operands)?;
            ensure(d.is_float(), || Problem::new(format!("`fma` is not defined for {}", operands[0])))?;
            result_is(results, &operands[0])
        }
        Op::Cast => {
            scalar_of(&operands[0])?;
            let d = result_scalar(results)?;
            result_is(results, &operands[0].with_dtype(d))
        }
        Op::Bitcast => {
            let (from, to) = (scalar_of(&operands[0])?, result_scalar(results)?);
            ensure(from.bits() == to.bits() && from != DType::Bool && to != DType::Bool, || {
                Problem::new(format!(
                    "cannot reinterpret the bits of {from} as {to}: {} and {} bits",
                    from.bits(),
                    to.bits()
                ))
                .help("use a cast to convert the values")
            })?;
            result_is(results, &operands[0].with_dtype(to))
        }
        Op::Broadcast => {
            let (from, to) = (&operands[0], &results[0]);
            let fits = from.shape.rank() == 0
                || from.shape.rank() == to.shape.rank()
                    && from.shape.dims().iter().zip(to.shape.dims()).all(|(&f, &t)| f == t || f == 1);
            ensure(fits && from.elem == to.elem, || {
                Problem::new(format!("{from} does not broadcast to {to}"))
                    .help("only extents of 1, and scalars, are repeated")
            })
        }
        Op::Reshape => {
            let (from, to) = (&operands[0], &results[0]);
            ensure(from.shape.elements() == to.shape.elements() && from.elem == to.elem, || {
                Problem::new(format!(
                    "cannot reshape {from} to {to}: {} elements against {}",
                    from.shape.elements(),
                    to.shape.elements()
                ))
                .help("a reshape keeps the elements: the products of the extents are equal; `broadcast_to` repeats elements")
            })
        }
        Op::Permute(perm) => {
            let mut sorted = perm.clone();
            sorted.sort_unstable();
            ensure(sorted.iter().copied().eq(0..operands[0].shape.rank() as u8), || {
                Problem::new(format!("{perm:?} is not a permutation of the dimensions of {}", operands[0]))
                    .help("name each dimension of the operand once, in the order of the result")
            })?;
            let dims: Vec<_> = perm.iter().map(|&p| operands[0].shape.dims()[usize::from(p)]).collect();
            result_is(results, &operands[0].with_shape(Shape::new(dims)))
        }
        Op::PtrAdd => {
            let ok = operands[0].elem.is_ptr()
                && matches!(operands[1].elem, Elem::Scalar(d) if d.is_int())
                && operands[0].shape == operands[1].shape;
            ensure(ok, || {
                Problem::new(format!("cannot move {} by {}", operands[0], operands[1]))
                    .help("a pointer tile moves by an integer tile of the same shape, counted in elements")
            })?;
            result_is(results, &operands[0])
        }
        Op::Load => {
            let Elem::Ptr(d) = operands[0].elem else {
                return Err(Problem::new(format!("cannot load from {}: not a pointer", operands[0])));
            };
            let value = operands[0].with_dtype(d);
            mask_and_other(operands, 1, &value)?;
            result_is(results, &value)
        }
        Op::Store => {
            let Elem::Ptr(d) = operands[0].elem else {
                return Err(Problem::new(format!("cannot store to {}: not a pointer", operands[0])));
            };
            let value = operands[0].with_dtype(d);
            ensure(operands[1] == value, || {
                Problem::new(format!("cannot store {} through {}: expected {value}", operands[1], operands[0]))
                    .help("cast the value to the pointer's element type")
            })?;
            mask_and_other(operands, 2, &value)
        }
        Op::ViewLoad { rank } => {
            let dtype = view_operands(*rank, operands)?;
            if let Some(pad) = operands.get(1 + 3 * usize::from(*rank)) {
                ensure(*pad == TileType::scalar(dtype), || {
                    Problem::new(format!("the pad value has type {pad}, expected {dtype}"))
                })?;
            }
            ensure(results[0].shape.rank() == usize::from(*rank), || {
                Problem::new(format!("a view of {rank} dimensions gives tiles of as many, not {}", results[0]))
            })?;
            result_is(results, &results[0].with_dtype(dtype))
        }
        Op::ViewStore { rank } => {
            let dtype = view_operands(*rank, operands)?;
            let value = &operands[1 + 3 * usize::from(*rank)];
            ensure(value.elem == Elem::Scalar(dtype), || {
                Problem::new(format!("cannot store {value} in a view of {dtype}"))
                    .help("cast the value to the view's element type")
            })?;
            ensure(value.shape.rank() == usize::from(*rank), || {
                Problem::new(format!("cannot store a tile of type {value} in a view of {rank} dimensions"))
            })
        }
        Op::Reduce { op, axis } => {
            let d = scalar_of(&operands[0])?;
            axis_in(*axis, &operands[0])?;
            ensure(reduce_takes(*op, d), || Problem::new(format!("`reduce_{op}` is not defined for {}", operands[0])))?;
            result_is(results, &operands[0].with_shape(operands[0].shape.without((*axis).into())))
        }
        Op::ArgReduce { axis, .. } => {
            let d = scalar_of(&operands[0])?;
            axis_in(*axis, &operands[0])?;
            ensure(d.kind() != Kind::Bool, || {
                Problem::new(format!("argmax and argmin are not defined for {}", operands[0]))
            })?;
            result_is(results, &TileType::new(DType::I32, operands[0].shape.without((*axis).into())))
        }
        Op::Dot { .. } => dot(operands, results),
        Op::For => {
            are_indices(&operands[..3], "a bound or step of the loop")?;
            carried(&operands[3..], results)
        }
        Op::While => carried(operands, results),
        Op::If | Op::Condition => is_scalar_of(&operands[0], &[DType::Bool], "the condition"),
        Op::Yield => Ok(()),
    }
}

fn carried(inits: &[TileType], results: &[TileType]) -> Check {
    ensure(inits == results, || {
        Problem::new(format!("the loop carries values of types {inits:?} in but {results:?} out"))
    })
}

fn mask_and_other(operands: &[TileType], at: usize, value: &TileType) -> Check {
    if let Some(mask) = operands.get(at) {
        let expected = value.with_dtype(DType::Bool);
        ensure(*mask == expected, || Problem::new(format!("the mask has type {mask}, expected {expected}")))?;
    }
    if let Some(other) = operands.get(at + 1) {
        ensure(other == value, || {
            Problem::new(format!("the value for masked-out lanes has type {other}, expected {value}"))
        })?;
    }
    Ok(())
}

/// Checks base, dims, strides and offsets of a view access; gives the element type.
fn view_operands(rank: u8, operands: &[TileType]) -> Result<DType, Problem> {
    let rank = usize::from(rank);
    ensure((1..=Shape::MAX_RANK).contains(&rank), || Problem::new(format!("a view of {rank} dimensions")))?;
    let (base, rest) = (&operands[0], &operands[1..]);
    let Elem::Ptr(dtype) = base.elem else {
        return Err(Problem::new(format!("the base of a view has type {base}: not a pointer")));
    };
    ensure(base.is_scalar(), || Problem::new(format!("the base of a view has type {base}: not one address")))?;
    for dim in &rest[..rank] {
        is_scalar_of(dim, &[DType::I32], "an extent of the view")?;
    }
    are_indices(&rest[rank..2 * rank], "a stride of the view")?;
    for offset in &rest[2 * rank..3 * rank] {
        is_scalar_of(offset, &[DType::I32], "an offset into the view")?;
    }
    Ok(dtype)
}

fn dot(operands: &[TileType], results: &[TileType]) -> Check {
    let (a, b, acc) = (&operands[0], &operands[1], &operands[2]);
    let (da, db) = (scalar_of(a)?, scalar_of(b)?);
    ensure(a.shape.rank() == 2 && b.shape.rank() == 2, || {
        Problem::new(format!("`dot` multiplies two matrices, not {a} and {b}"))
            .help("take one matrix of the batch at a time: drop dimensions of extent 1 with `squeeze` or `reshape`")
    })?;
    ensure(a.shape.dims()[1] == b.shape.dims()[0], || {
        Problem::new(format!(
            "`dot` of {a} and {b}: the inner extents are {} and {}",
            a.shape.dims()[1],
            b.shape.dims()[0]
        ))
        .help("the columns of the first operand are as many as the rows of the second; transpose one with `trans`")
    })?;
    let wide = dot_accumulator(da).filter(|_| da == db).ok_or_else(|| {
        Problem::new(format!("`dot` is not defined for {da} and {db}"))
            .help("both operands are of one type: f16, bf16, f32, f64, i8 or u8")
    })?;
    let expected = TileType::new(wide, [a.shape.dims()[0], b.shape.dims()[1]]);
    ensure(*acc == expected, || {
        Problem::new(format!("`dot` of {a} and {b} accumulates in {expected}, not {acc}"))
            .help(format!("start from zeros::<{wide}>({})", expected.shape))
    })?;
    result_is(results, &expected)
}
