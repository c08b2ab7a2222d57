//! What the families of hand-made random kernels share: a builder with buffers, and random choices.

use crate::common::{Arg, Case};
use crate::families::{Tolerance, Typed};
use tilewright_compiler::DType;
use tilewright_compiler::tile::{
    BinaryOp, Builder, Cmp, Constant, ParamHint, ReduceOp, Shape, TileType, Value, ViewValue,
};

/// A kernel being made, with its arguments.
pub struct Maker {
    pub b: Builder,
    state: u64,
    args: Vec<Arg>,
    buffers: Vec<Vec<u8>>,
    dtypes: Vec<DType>,
    pub grid: u32,
}

/// What buffers are filled with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    /// Whole numbers from -2 to 2 (unsigned: 0 to 4).
    Small,
    /// Few different numbers, of floats also NaN, infinities and both zeros.
    Special,
    /// Fractions from -1 to 1, of integers as [`Fill::Small`].
    Fractions,
    /// Of floats: magnitudes from the least to the greatest, and what is special. Of integers any bits.
    Wide,
    /// What the kernel overwrites.
    Output,
}

impl Maker {
    pub fn new(seed: u64) -> Self {
        let mut z = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0xd1b5_4a32_d192_ed03);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let b = Builder::new("random");
        Self { b, state: z | 1, args: Vec::new(), buffers: Vec::new(), dtypes: Vec::new(), grid: 1 }
    }

    pub fn finish(self) -> Typed {
        let case = Case { func: self.b.finish(), args: self.args, buffers: self.buffers, grid: [self.grid, 1, 1] };
        Typed { case, dtypes: self.dtypes, tolerance: Tolerance::Exact }
    }

    // ---- choices ------------------------------------------------------------------------------------------------

    pub fn below(&mut self, n: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        ((self.state >> 20) % n as u64) as usize
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    /// A power of two whose logarithm is in `low..=high`.
    pub fn size(&mut self, low: usize, high: usize) -> usize {
        1 << (low + self.below(high - low + 1))
    }

    /// Extents of up to `rank` dimensions with `2^bits` elements in all.
    pub fn dims(&mut self, rank: usize, bits: usize) -> Vec<usize> {
        let mut dims = vec![1; rank];
        for _ in 0..bits {
            let axis = self.below(rank);
            dims[axis] *= 2;
        }
        dims
    }

    pub fn perm(&mut self, rank: usize) -> Vec<usize> {
        let mut perm: Vec<usize> = (0..rank).collect();
        for i in (1..rank).rev() {
            let j = self.below(i + 1);
            perm.swap(i, j);
        }
        perm
    }

    // ---- parameters ---------------------------------------------------------------------------------------------

    pub fn buffer(&mut self, dtype: DType, elements: usize, fill: Fill) -> usize {
        let mut bytes = Vec::with_capacity(elements * dtype.bytes());
        for _ in 0..elements {
            let n = self.below(5) as i64;
            let signed = if dtype.is_signed() || dtype.is_float() { n - 2 } else { n };
            let c = match fill {
                Fill::Output => Constant::from_i64(dtype, if dtype == DType::Bool { 1 } else { 0x77 }),
                Fill::Special if dtype.is_float() && self.chance(5) => {
                    let special = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0];
                    Constant::from_f64(dtype, self.pick(&special))
                }
                Fill::Fractions if dtype.is_float() => {
                    let fraction = self.below(1 << 20) as f64 / f64::from(1 << 19) - 1.0;
                    Constant::from_f64(dtype, fraction)
                }
                Fill::Wide if dtype.is_float() => {
                    let special = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 1.0, -1.0, 0.5];
                    let sign = if self.chance(50) { -1.0 } else { 1.0 };
                    let magnitude = 1.0 + self.below(1 << 20) as f64 / f64::from(1 << 20);
                    let exponent = match (self.below(3), dtype) {
                        (0 | 1, _) => self.below(16) as i32 - 8,
                        (_, DType::F16) => self.below(30) as i32 - 14,
                        (_, DType::F64) => self.below(2000) as i32 - 1000,
                        _ => self.below(250) as i32 - 125,
                    };
                    let some = sign * magnitude * 2f64.powi(exponent);
                    let value = if self.chance(15) { self.pick(&special) } else { some };
                    Constant::from_f64(dtype, value)
                }
                Fill::Wide if dtype.is_int() => Constant::from_i64(dtype, (self.below(1 << 40) as i64) << 20),
                _ if dtype == DType::Bool => Constant::from_i64(dtype, n & 1),
                _ => Constant::from_i64(dtype, signed),
            };
            bytes.extend(&c.0.to_le_bytes()[..dtype.bytes()]);
        }
        self.buffers.push(bytes);
        self.dtypes.push(dtype);
        self.buffers.len() - 1
    }

    fn address_hint(&mut self, byte: usize, class: u32) -> ParamHint {
        // Buffers are aligned to 16 bytes.
        let aligned = if byte == 0 { 16 } else { 1 << byte.trailing_zeros().min(4) };
        let divisor = self.pick(&[1, aligned, aligned]);
        ParamHint { divisor, known: None, alias_class: class }
    }

    /// A parameter that points `element` elements into a buffer.
    pub fn pointer(&mut self, name: &str, buffer: usize, element: usize, class: u32) -> Value {
        let dtype = self.dtypes[buffer];
        let hint = self.address_hint(element * dtype.bytes(), class);
        self.args.push(Arg::Buf(buffer, element * dtype.bytes()));
        self.b.param_ptr(name, dtype, hint)
    }

    /// A hint that is true of `value`.
    fn number_hint(&mut self, value: i64) -> ParamHint {
        match self.below(4) {
            0 => ParamHint { known: Some(value), ..ParamHint::default() },
            1 | 2 => {
                let divisor = if value == 0 { 16 } else { 1 << value.trailing_zeros().min(4) };
                ParamHint { divisor, ..ParamHint::default() }
            }
            _ => ParamHint::default(),
        }
    }

    pub fn scalar(&mut self, name: &str, dtype: DType, value: i64) -> Value {
        let hint = self.number_hint(value);
        self.args.push(Arg::Bits(Constant::from_i64(dtype, value).0));
        self.b.param_scalar(name, dtype, hint)
    }

    /// A view with these extents and strides whose first element is `element` elements into the buffer.
    pub fn view(
        &mut self,
        name: &str,
        buffer: usize,
        element: usize,
        class: u32,
        dims: &[usize],
        strides: &[i64],
    ) -> ViewValue {
        let dtype = self.dtypes[buffer];
        let index = self.pick(&[DType::I32, DType::I64]);
        let mut hints = vec![self.address_hint(element * dtype.bytes(), class)];
        self.args.push(Arg::Buf(buffer, element * dtype.bytes()));
        for &d in dims {
            hints.push(self.number_hint(d as i64));
            self.args.push(Arg::Bits(d as u64));
        }
        for &s in strides {
            let hint = if s.abs() == 1 && self.chance(70) {
                ParamHint { known: Some(s), ..ParamHint::default() }
            } else {
                self.number_hint(s)
            };
            hints.push(hint);
            self.args.push(Arg::Bits(Constant::from_i64(index, s).0));
        }
        self.b.param_view(name, dtype, dims.len() as u8, index, &hints)
    }

    // ---- values -------------------------------------------------------------------------------------------------

    pub fn i32(&mut self, value: i64) -> Value {
        self.b.const_i64(DType::I32, value).unwrap()
    }

    pub fn add(&mut self, x: Value, y: Value) -> Value {
        self.b.binary(BinaryOp::Add, x, y).unwrap()
    }

    /// The row-major number of each element.
    pub fn numbered(&mut self, dims: &[usize]) -> Value {
        let n = self.b.arange(0, dims.iter().product()).unwrap();
        self.b.reshape(n, Shape::new(dims.to_vec())).unwrap()
    }

    /// A permutation of `0..elements` in the shape, as row-major numbers: affine, exchanged bits, or transposed.
    pub fn shuffled(&mut self, dims: &[usize]) -> Value {
        let elements: usize = dims.iter().product();
        let last = self.i32(elements as i64 - 1);
        match self.below(4) {
            0 => self.numbered(dims),
            1 => {
                let by = 2 * self.below(elements) as i64 + 1;
                let (by, start) = (self.i32(by), self.below(elements) as i64);
                let (x, start) = (self.numbered(dims), self.i32(start));
                let x = self.b.binary(BinaryOp::Mul, x, by).unwrap();
                let x = self.add(x, start);
                self.b.binary(BinaryOp::And, x, last).unwrap()
            }
            2 => {
                let (x, by) = (self.numbered(dims), self.below(elements) as i64);
                let by = self.i32(by);
                self.b.binary(BinaryOp::Xor, x, by).unwrap()
            }
            _ => {
                let perm = self.perm(dims.len());
                let mut from = vec![0; dims.len()];
                for (to, &p) in perm.iter().enumerate() {
                    from[p] = dims[to];
                }
                let x = self.numbered(&from);
                self.b.permute(x, &perm).unwrap()
            }
        }
    }

    /// A mask that depends on the elements' places.
    pub fn mask(&mut self, dims: &[usize]) -> Value {
        let elements: usize = dims.iter().product();
        let x = self.shuffled(dims);
        match self.below(3) {
            0 => {
                let limit = self.below(elements + 1) as i64;
                let limit = self.i32(limit);
                self.b.compare(Cmp::Lt, x, limit).unwrap()
            }
            1 => {
                let (some, zero) = (self.below(8) as i64 + 1, self.i32(0));
                let some = self.i32(some);
                let x = self.b.binary(BinaryOp::And, x, some).unwrap();
                self.b.compare(Cmp::Eq, x, zero).unwrap()
            }
            _ => {
                // Constant along some dimension.
                let axis = self.below(dims.len());
                let lane = self.b.arange(0, dims[axis]).unwrap();
                let mut shape = vec![1; dims.len()];
                shape[axis] = dims[axis];
                let lane = self.b.reshape(lane, Shape::new(shape)).unwrap();
                let limit = self.below(dims[axis] + 1) as i64;
                let limit = self.i32(limit);
                let m = self.b.compare(Cmp::Lt, lane, limit).unwrap();
                self.b.broadcast(m, Shape::new(dims.to_vec())).unwrap()
            }
        }
    }

    /// Loads a whole tile from `2^n` elements at `base`.
    pub fn load(&mut self, base: Value, dims: &[usize]) -> Value {
        let dtype = self.b.ty(base).dtype();
        let index = self.shuffled(dims);
        let p = self.b.ptr_add(base, index).unwrap();
        let mask = if self.chance(40) { Some(self.mask(dims)) } else { None };
        let other = if mask.is_some() && self.chance(60) {
            Some(if self.chance(50) {
                let lane = self.numbered(dims);
                let three = self.i32(3);
                let lane = self.b.binary(BinaryOp::And, lane, three).unwrap();
                self.b.cast(lane, dtype).unwrap()
            } else {
                let c = Constant::from_i64(dtype, 1);
                self.b.full(TileType::new(dtype, Shape::new(dims.to_vec())), c).unwrap()
            })
        } else {
            None
        };
        self.b.load(p, mask, other).unwrap()
    }

    /// Stores a tile to distinct addresses.
    pub fn store(&mut self, base: Value, x: Value) {
        let dims = self.b.ty(x).shape.dims().to_vec();
        let index = if dims.is_empty() { self.i32(0) } else { self.shuffled(&dims) };
        let p = self.b.ptr_add(base, index).unwrap();
        let mask = if !dims.is_empty() && self.chance(30) { Some(self.mask(&dims)) } else { None };
        self.b.store(p, x, mask).unwrap();
    }

    /// Some op on two tiles of one shape and type, exact and in range for small numbers.
    pub fn combine(&mut self, x: Value, y: Value) -> Value {
        let dtype = self.b.ty(x).dtype();
        if dtype == DType::Bool {
            let op = self.pick(&[BinaryOp::And, BinaryOp::Or, BinaryOp::Xor]);
            return self.b.binary(op, x, y).unwrap();
        }
        match self.below(5) {
            0 => {
                let op = self.pick(&[Cmp::Lt, Cmp::Ge, Cmp::Ne]);
                let c = self.b.compare(op, x, y).unwrap();
                self.b.select(c, x, y).unwrap()
            }
            1 => self.b.binary(BinaryOp::Sub, x, y).unwrap(),
            2 => {
                let any = [BinaryOp::Min, BinaryOp::Max, BinaryOp::FMin, BinaryOp::FMax];
                let op = self.pick(&any[..if dtype.is_float() { 4 } else { 2 }]);
                self.b.binary(op, x, y).unwrap()
            }
            _ => self.add(x, y),
        }
    }

    /// The same number of elements, spread and arranged differently.
    pub fn rearrange(&mut self, x: Value) -> Value {
        let dims = self.b.ty(x).shape.dims().to_vec();
        if dims.is_empty() {
            return x;
        }
        match self.below(3) {
            0 => {
                let bits = dims.iter().product::<usize>().ilog2() as usize;
                let rank = 1 + self.below(3);
                let dims = self.dims(rank, bits);
                self.b.reshape(x, Shape::new(dims)).unwrap()
            }
            _ => {
                let perm = self.perm(dims.len());
                self.b.permute(x, &perm).unwrap()
            }
        }
    }

    /// `x` in a shape with as many elements, rearranged on the way.
    pub fn in_shape(&mut self, x: Value, dims: &[usize]) -> Value {
        let x = if self.chance(50) { self.rearrange(x) } else { x };
        self.b.reshape(x, Shape::new(dims.to_vec())).unwrap()
    }

    /// A reduction over a random axis, exact whatever its order.
    pub fn reduce(&mut self, x: Value, sums: bool) -> Value {
        let ty = self.b.ty(x).clone();
        let axis = self.below(ty.shape.rank());
        match self.below(if sums { 6 } else { 4 }) {
            0 if ty.dtype() != DType::Bool => self.b.arg_reduce(true, x, axis).unwrap(),
            1 if ty.dtype() != DType::Bool => self.b.arg_reduce(false, x, axis).unwrap(),
            2 if ty.dtype() != DType::Bool => self.b.reduce(ReduceOp::Max, x, axis).unwrap(),
            3 if ty.dtype() != DType::Bool => self.b.reduce(ReduceOp::Min, x, axis).unwrap(),
            _ if ty.dtype() == DType::Bool => {
                let op = self.pick(&[ReduceOp::And, ReduceOp::Or, ReduceOp::Xor]);
                self.b.reduce(op, x, axis).unwrap()
            }
            _ => self.b.reduce(ReduceOp::Sum, x, axis).unwrap(),
        }
    }
}
