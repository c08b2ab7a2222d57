//! Values of a running program: what a slot holds, and how much of it is written out.
//!
//! Most tiles of a kernel that are not data are regular: constants, `arange`, the offsets, masks and addresses made of
//! them. They are kept as a formula ([`Repr::Uniform`], [`Repr::Affine`]) until an op needs the elements.

use crate::dtype::DType;
use crate::tile::{Elem, Shape, TileType};

/// A tile type with what the executor asks for most.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Type {
    pub elem: Elem,
    pub dims: Vec<usize>,
    /// Elements: the product of `dims`.
    pub n: usize,
    /// Bytes of one element in a slot.
    pub bytes: usize,
}

impl Type {
    pub fn new(ty: &TileType) -> Self {
        let dims = ty.shape.dims().to_vec();
        Self { elem: ty.elem, n: ty.shape.elements(), bytes: ty.elem.bytes(), dims }
    }

    /// 64-bit words that hold every element.
    pub fn words(&self) -> usize {
        (self.n * self.bytes).div_ceil(8)
    }
}

/// The tile whose element at index `(i0, i1, ..)` is `start + i0 * steps[0] + i1 * steps[1] + ..`, an integer or an
/// address. No element leaves the range of the type, so nothing wraps: sums and casts of the formula are exact.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Affine {
    pub start: i64,
    pub steps: [i64; Shape::MAX_RANK],
}

impl Affine {
    /// The least and the greatest element.
    pub fn bounds(&self, dims: &[usize]) -> (i128, i128) {
        let (mut lo, mut hi) = (i128::from(self.start), i128::from(self.start));
        for (&step, &dim) in self.steps.iter().zip(dims) {
            let reach = i128::from(step) * (dim as i128 - 1);
            lo += reach.min(0);
            hi += reach.max(0);
        }
        (lo, hi)
    }

    /// The formula as it is, if each element is of type `elem`: only types whose range is inside that of `i64`.
    pub fn checked(self, elem: Elem, dims: &[usize]) -> Option<Self> {
        let (min, max) = match elem {
            Elem::Scalar(DType::I32) => (i128::from(i32::MIN), i128::from(i32::MAX)),
            Elem::Scalar(DType::U32) => (0, i128::from(u32::MAX)),
            Elem::Scalar(DType::I64) => (i128::from(i64::MIN), i128::from(i64::MAX)),
            Elem::Ptr(_) => (0, i128::from(i64::MAX)),
            Elem::Scalar(_) => return None,
        };
        let (lo, hi) = self.bounds(dims);
        (min <= lo && hi <= max).then_some(self)
    }

    /// Combines two formulas, and each step with each step, unless a number leaves `i64`.
    pub fn zip(&self, other: &Affine, f: impl Fn(i64, i64) -> Option<i64>) -> Option<Affine> {
        let mut result = Affine { start: f(self.start, other.start)?, steps: [0; Shape::MAX_RANK] };
        for (r, (&a, &b)) in result.steps.iter_mut().zip(self.steps.iter().zip(&other.steps)) {
            *r = f(a, b)?;
        }
        Some(result)
    }

    /// The same elements, row-major, in another shape, if a formula says so.
    pub fn reshape(&self, from: &[usize], to: &[usize]) -> Option<Affine> {
        let mut result = Affine { start: self.start, steps: [0; Shape::MAX_RANK] };
        let long = |dims: &[usize]| dims.iter().enumerate().filter(|(_, d)| **d != 1).map(|(i, d)| (i, *d)).collect();
        let (a, b): (Vec<_>, Vec<_>) = (long(from), long(to));
        if a.iter().map(|x| x.1).eq(b.iter().map(|x| x.1)) {
            for (&(i, _), &(j, _)) in a.iter().zip(&b) {
                result.steps[j] = self.steps[i];
            }
            return Some(result);
        }
        // Else the elements must be evenly spaced in row-major order.
        let &(last, _) = a.last()?;
        let step = self.steps[last];
        let mut expected = step;
        for &(i, d) in a.iter().rev() {
            if self.steps[i] != expected {
                return None;
            }
            expected = expected.checked_mul(d as i64)?;
        }
        let mut stride = step;
        for (j, &d) in to.iter().enumerate().rev() {
            result.steps[j] = if d == 1 { 0 } else { stride };
            stride = stride.checked_mul(d as i64)?;
        }
        Some(result)
    }

    /// Writes out every element, each `bytes` wide.
    pub fn write(&self, dims: &[usize], bytes: usize, out: &mut [u8]) {
        let Some((&inner, outer)) = dims.split_last() else {
            put(out, 0, bytes, self.start as u64);
            return;
        };
        let step = self.steps[outer.len()];
        for (row, start) in RowStarts::new(self, outer).enumerate() {
            let out = &mut out[row * inner * bytes..][..inner * bytes];
            if bytes == 4 {
                let out: &mut [u32] = bytemuck::cast_slice_mut(out);
                for (i, o) in out.iter_mut().enumerate() {
                    *o = (start as u32).wrapping_add((step as u32).wrapping_mul(i as u32));
                }
            } else {
                let out: &mut [i64] = bytemuck::cast_slice_mut(out);
                for (i, o) in out.iter_mut().enumerate() {
                    *o = start.wrapping_add(step.wrapping_mul(i as i64));
                }
            }
        }
    }
}

/// The first elements of the rows of a formula, in row-major order.
pub(super) struct RowStarts<'a> {
    affine: &'a Affine,
    outer: &'a [usize],
    row: usize,
    rows: usize,
}

impl<'a> RowStarts<'a> {
    /// The dimensions before those of a row are `outer`.
    pub fn new(affine: &'a Affine, outer: &'a [usize]) -> Self {
        Self { affine, outer, row: 0, rows: outer.iter().product() }
    }
}

impl Iterator for RowStarts<'_> {
    type Item = i64;

    fn next(&mut self) -> Option<i64> {
        if self.row == self.rows {
            return None;
        }
        let (mut rest, mut start) = (self.row, self.affine.start);
        for (&dim, &step) in self.outer.iter().zip(&self.affine.steps).rev() {
            start = start.wrapping_add(step.wrapping_mul((rest % dim) as i64));
            rest /= dim;
        }
        self.row += 1;
        Some(start)
    }
}

/// How the tile in a slot is written down.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Repr {
    /// Every element has these bits.
    Uniform(u64),
    /// A formula.
    Affine(Affine),
    /// The elements are in the slot's buffer, row-major.
    Dense,
}

/// A place for one tile at a time.
#[derive(Debug)]
pub(super) struct Slot {
    pub repr: Repr,
    /// Grows at first need, then is reused: programs after the first allocate nothing.
    pub buffer: Vec<u64>,
}

impl Slot {
    pub fn new() -> Self {
        Self { repr: Repr::Uniform(0), buffer: Vec::new() }
    }

    /// The elements. Of a tile that is not dense: whatever the buffer holds.
    pub fn bytes(&self, ty: &Type) -> &[u8] {
        &bytemuck::cast_slice(&self.buffer)[..ty.n * ty.bytes]
    }

    /// Writes the elements out, if they are not yet.
    pub fn densify(&mut self, ty: &Type) {
        if self.repr == Repr::Dense {
            return;
        }
        reserve(&mut self.buffer, ty);
        let out = &mut bytemuck::cast_slice_mut(&mut self.buffer)[..ty.n * ty.bytes];
        match self.repr {
            Repr::Uniform(bits) => fill(out, ty.bytes, bits),
            Repr::Affine(affine) => affine.write(&ty.dims, ty.bytes, out),
            Repr::Dense => {}
        }
        self.repr = Repr::Dense;
    }

    /// The bits of the first element: of a scalar, its value.
    pub fn first(&self, ty: &Type) -> u64 {
        match self.repr {
            Repr::Uniform(bits) => bits,
            Repr::Affine(affine) if ty.bytes == 4 => u64::from(affine.start as u32),
            Repr::Affine(affine) => affine.start as u64,
            Repr::Dense => get(self.bytes(ty), 0, ty.bytes),
        }
    }

    /// The tile as a formula, if it is an integer or address tile kept as one.
    pub fn affine(&self, ty: &Type) -> Option<Affine> {
        match self.repr {
            Repr::Affine(affine) => Some(affine),
            Repr::Uniform(bits) => {
                let start = match ty.elem {
                    Elem::Scalar(DType::I32) => i64::from(bits as i32),
                    _ => bits as i64,
                };
                Affine { start, steps: [0; Shape::MAX_RANK] }.checked(ty.elem, &[])
            }
            Repr::Dense => None,
        }
    }
}

/// Makes the buffer long enough for a tile.
pub(super) fn reserve(buffer: &mut Vec<u64>, ty: &Type) {
    if buffer.len() < ty.words() {
        buffer.resize(ty.words(), 0);
    }
}

/// Sets every element to the same bits.
pub(super) fn fill(out: &mut [u8], bytes: usize, bits: u64) {
    match bytes {
        1 => out.fill(bits as u8),
        2 => bytemuck::cast_slice_mut(out).fill(bits as u16),
        4 => bytemuck::cast_slice_mut(out).fill(bits as u32),
        _ => bytemuck::cast_slice_mut(out).fill(bits),
    }
}

/// The bits of element `i`.
pub(super) fn get(from: &[u8], i: usize, bytes: usize) -> u64 {
    let mut word = [0; 8];
    word[..bytes].copy_from_slice(&from[i * bytes..][..bytes]);
    u64::from_le_bytes(word)
}

/// Sets the bits of element `i`.
pub(super) fn put(out: &mut [u8], i: usize, bytes: usize, bits: u64) {
    out[i * bytes..][..bytes].copy_from_slice(&bits.to_le_bytes()[..bytes]);
}

#[cfg(not(target_endian = "little"))]
compile_error!("the interpreter takes the low bytes of a word for its low bits");
