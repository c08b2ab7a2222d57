//! Tests of the interpreter: kernels made with the builder, against expectations computed another way.

mod control;
mod data;
mod elementwise;
mod kernels;
mod memory;
mod random;
mod reduce;

use super::{ArgValue, MemRegion, Memory, Program};
use crate::dtype::DType;
use crate::error::Result;
use crate::tile::builder::Built;
use crate::tile::{BinaryOp, Builder, Constant, Function, TileType, Value};

/// A value that building gave.
pub(super) fn ok<T>(built: Built<T>) -> T {
    match built {
        Ok(value) => value,
        Err(problem) => panic!("the kernel of a test is valid: {problem}"),
    }
}

/// An argument of a test launch: buffers are copied in before and out after.
pub(super) enum Arg<'a> {
    /// A number.
    Num(u64),
    /// A buffer of bytes that the kernel may write.
    Out(&'a mut [u8]),
    /// A buffer that the kernel may only read.
    In(&'a [u8]),
    /// A buffer behind a view, with extents and strides.
    View(&'a mut [u8], Vec<i64>, Vec<i64>),
}

pub(super) fn out<T: bytemuck::Pod>(data: &mut [T]) -> Arg<'_> {
    Arg::Out(bytemuck::cast_slice_mut(data))
}

pub(super) fn input<T: bytemuck::Pod>(data: &[T]) -> Arg<'_> {
    Arg::In(bytemuck::cast_slice(data))
}

/// A dense row-major view.
pub(super) fn view<'a, T: bytemuck::Pod>(data: &'a mut [T], dims: &[i64]) -> Arg<'a> {
    let strides = (0..dims.len()).map(|i| dims[i + 1..].iter().product()).collect();
    Arg::View(bytemuck::cast_slice_mut(data), dims.to_vec(), strides)
}

/// The flattened arguments and the memory of a launch.
pub(super) fn flatten(args: &mut [Arg<'_>]) -> (Vec<ArgValue>, Memory) {
    let (mut flat, mut regions) = (Vec::new(), Vec::new());
    for arg in args {
        match arg {
            Arg::Num(bits) => flat.push(ArgValue::Bits(*bits)),
            Arg::Out(data) => {
                flat.push(ArgValue::Ptr(data.as_ptr() as u64));
                // SAFETY: the caller keeps the argument borrowed until the launch is over.
                regions.push(unsafe { MemRegion::writable(data) });
            }
            Arg::In(data) => {
                flat.push(ArgValue::Ptr(data.as_ptr() as u64));
                // SAFETY: the caller keeps the argument borrowed until the launch is over.
                regions.push(unsafe { MemRegion::read_only(data) });
            }
            Arg::View(data, dims, strides) => {
                flat.push(ArgValue::Ptr(data.as_ptr() as u64));
                flat.extend(dims.iter().chain(strides.iter()).map(|&v| ArgValue::Bits(v as u64)));
                // SAFETY: the caller keeps the argument borrowed until the launch is over.
                regions.push(unsafe { MemRegion::writable(data) });
            }
        }
    }
    (flat, Memory::new(regions))
}

/// Runs a kernel.
pub(super) fn launch(func: &Function, grid: [u32; 3], mut args: Vec<Arg<'_>>) -> Result<()> {
    let (flat, memory) = flatten(&mut args);
    Program::compile(func)?.run(&flat, &memory, grid)
}

/// The text of the error that a launch gives.
pub(super) fn failure(func: &Function, grid: [u32; 3], args: Vec<Arg<'_>>) -> String {
    launch(func, grid, args).expect_err("the launch of this test fails").to_string()
}

/// A kernel that applies `f` to `n` elements of each of `inputs` and stores the result as `result`. With `dense`
/// the operands are loaded from memory, elements after elements; otherwise each is one scalar broadcast to the tile.
pub(super) fn map_kernel(
    inputs: &[DType],
    result: DType,
    n: usize,
    f: impl FnOnce(&mut Builder, &[Value]) -> Value,
) -> Function {
    let mut b = Builder::new("map");
    let pointers: Vec<Value> = inputs.iter().map(|&d| b.param_ptr("x", d, Default::default())).collect();
    let to = b.param_ptr("out", result, Default::default());
    let lanes = ok(b.arange(0, n));
    let mut values = Vec::new();
    for p in pointers {
        let p = ok(b.ptr_add(p, lanes));
        values.push(ok(b.load(p, None, None)));
    }
    let value = f(&mut b, &values);
    let to = ok(b.ptr_add(to, lanes));
    ok(b.store(to, value, None));
    b.finish()
}

/// A scalar constant.
pub(super) fn int(b: &mut Builder, value: i64) -> Value {
    ok(b.const_i64(DType::I32, value))
}

/// A tile of one number.
pub(super) fn splat(b: &mut Builder, dtype: DType, shape: &[usize], value: f64) -> Value {
    ok(b.full(TileType::new(dtype, crate::tile::Shape::new(shape)), Constant::from_f64(dtype, value)))
}

/// `program_id(axis) * size`.
pub(super) fn block_start(b: &mut Builder, axis: u8, size: usize) -> Value {
    let program = ok(b.program_id(axis));
    let size = int(b, size as i64);
    ok(b.binary(BinaryOp::Mul, program, size))
}

/// Numbers that look random, the same each time.
pub(super) struct Random(pub u64);

impl Random {
    pub fn bits(&mut self) -> u64 {
        // xorshift64*.
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// In -1..1.
    pub fn float(&mut self) -> f32 {
        (self.bits() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }
}
