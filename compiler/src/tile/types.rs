//! Types of Tile IR values: an element and a shape.

use crate::dtype::DType;
use std::fmt;

/// What a tile holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Elem {
    /// Numbers or truth values.
    Scalar(DType),
    /// Addresses of numbers in global memory, aligned to the element size.
    Ptr(DType),
}

impl Elem {
    /// The type of the numbers held, or of those pointed to.
    pub const fn dtype(self) -> DType {
        match self {
            Elem::Scalar(d) | Elem::Ptr(d) => d,
        }
    }

    /// Is this an address?
    pub const fn is_ptr(self) -> bool {
        matches!(self, Elem::Ptr(_))
    }

    /// Bytes of one element of the tile (8 for an address).
    pub const fn bytes(self) -> usize {
        match self {
            Elem::Scalar(d) => d.bytes(),
            Elem::Ptr(_) => 8,
        }
    }
}

impl fmt::Display for Elem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Elem::Scalar(d) => write!(f, "{d}"),
            Elem::Ptr(d) => write!(f, "*{d}"),
        }
    }
}

/// The extents of a tile, outermost first; empty for a scalar. Each extent is a power of two.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Shape(Vec<usize>);

impl Shape {
    /// Most elements of one tile.
    pub const MAX_ELEMENTS: usize = 1 << 20;
    /// Most dimensions of one tile.
    pub const MAX_RANK: usize = 8;

    /// The shape of a scalar.
    pub const SCALAR: Shape = Shape(Vec::new());

    /// A shape with these extents; whether they are allowed is [`Shape::check`]'s to say.
    pub fn new(dims: impl Into<Vec<usize>>) -> Self {
        Shape(dims.into())
    }

    /// The extents, outermost first.
    pub fn dims(&self) -> &[usize] {
        &self.0
    }

    /// How many dimensions.
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// How many elements: the product of the extents, 1 for a scalar.
    pub fn elements(&self) -> usize {
        self.0.iter().product()
    }

    /// The shape without dimension `axis`.
    #[must_use]
    pub fn without(&self, axis: usize) -> Shape {
        let mut dims = self.0.clone();
        dims.remove(axis);
        Shape(dims)
    }

    /// Is this a matrix with the extents of `other` but for those of 1, of which it has none?
    pub fn is_matrix_of(&self, other: &Shape) -> bool {
        self.rank() == 2 && !self.0.contains(&1) && self.0.iter().eq(other.0.iter().filter(|&&d| d != 1))
    }

    /// Row-major strides in elements.
    pub fn strides(&self) -> Vec<usize> {
        let mut strides = vec![1; self.rank()];
        for i in (0..self.rank().saturating_sub(1)).rev() {
            strides[i] = strides[i + 1] * self.0[i + 1];
        }
        strides
    }

    /// Why this shape is not allowed, if it is not: extents must be powers of two, at most
    /// [`Shape::MAX_RANK`] of them, and at most [`Shape::MAX_ELEMENTS`] elements in all.
    pub fn check(&self) -> Result<(), String> {
        if self.rank() > Self::MAX_RANK {
            return Err(format!(
                "shape {self} has {} dimensions; at most {} are supported",
                self.rank(),
                Self::MAX_RANK
            ));
        }
        if let Some(d) = self.0.iter().find(|d| !d.is_power_of_two()) {
            return Err(format!("extent {d} of shape {self} is not a power of two"));
        }
        match self.0.iter().try_fold(1usize, |n, &d| n.checked_mul(d)) {
            Some(n) if n <= Self::MAX_ELEMENTS => Ok(()),
            _ => Err(format!("shape {self} has more than {} elements", Self::MAX_ELEMENTS)),
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dims: Vec<_> = self.0.iter().map(ToString::to_string).collect();
        write!(f, "[{}]", dims.join(", "))
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<const N: usize> From<[usize; N]> for Shape {
    fn from(dims: [usize; N]) -> Self {
        Shape(dims.to_vec())
    }
}

/// The type of a Tile IR value. Printed as `f32` (a scalar), `f32[64, 128]`, `*f16[64]` (addresses).
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct TileType {
    /// What the tile holds.
    pub elem: Elem,
    /// Its extents.
    pub shape: Shape,
}

impl TileType {
    /// A tile of numbers.
    pub fn new(dtype: DType, shape: impl Into<Shape>) -> Self {
        Self { elem: Elem::Scalar(dtype), shape: shape.into() }
    }

    /// One number.
    pub fn scalar(dtype: DType) -> Self {
        Self::new(dtype, Shape::SCALAR)
    }

    /// A tile of addresses.
    pub fn ptr(dtype: DType, shape: impl Into<Shape>) -> Self {
        Self { elem: Elem::Ptr(dtype), shape: shape.into() }
    }

    /// The type of the numbers held, or of those pointed to.
    pub fn dtype(&self) -> DType {
        self.elem.dtype()
    }

    /// The same shape with another element.
    #[must_use]
    pub fn with_elem(&self, elem: Elem) -> Self {
        Self { elem, shape: self.shape.clone() }
    }

    /// The same shape, holding numbers of `dtype`.
    #[must_use]
    pub fn with_dtype(&self, dtype: DType) -> Self {
        self.with_elem(Elem::Scalar(dtype))
    }

    /// The same element in another shape.
    #[must_use]
    pub fn with_shape(&self, shape: impl Into<Shape>) -> Self {
        Self { elem: self.elem, shape: shape.into() }
    }

    /// Is this a tile of rank 0?
    pub fn is_scalar(&self) -> bool {
        self.shape.rank() == 0
    }
}

impl fmt::Display for TileType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.elem)?;
        if !self.is_scalar() {
            write!(f, "{}", self.shape)?;
        }
        Ok(())
    }
}

impl fmt::Debug for TileType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
