//! Views: strided tensors as kernel parameters, the safe way to memory.
//!
//! What lies outside a view reads the pad value (0 if none is given) and is not stored.

use super::context::{Params, Raw, emit, emit_unit, mistake, poison};
use super::element::Element;
use super::ops::scalar;
use super::ptr::Ptr;
use super::tile::{Operand, Tile};
use crate::dtype::DType;
use crate::tile::{Shape, TileType, Value, ViewValue};
use std::fmt;
use std::marker::PhantomData;

/// What a kernel does with a view.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Access {
    /// Reads it.
    In,
    /// Writes it.
    Out,
    /// Reads and writes it.
    InOut,
}

impl Access {
    /// Does the kernel read it?
    pub const fn reads(self) -> bool {
        matches!(self, Access::In | Access::InOut)
    }

    /// Does the kernel write it?
    pub const fn writes(self) -> bool {
        matches!(self, Access::Out | Access::InOut)
    }
}

/// Base, extents and strides of a view.
#[derive(Clone, Copy, Debug)]
struct Parts<const R: usize> {
    base: Raw,
    dims: [Raw; R],
    strides: [Raw; R],
}

impl<const R: usize> Parts<R> {
    #[track_caller]
    fn param<T: Element>(params: &mut Params<'_>, name: &str) -> Self {
        if !(1..=Shape::MAX_RANK).contains(&R) {
            mistake(
                format!("the view `{name}` has {R} dimensions"),
                format!("views have 1 to {} dimensions; a single number is a pointer", Shape::MAX_RANK),
            );
            let raw = poison();
            return Self { base: raw, dims: [raw; R], strides: [raw; R] };
        }
        let all = params.view(name, T::DTYPE, R as u8);
        Self {
            base: all[0],
            dims: std::array::from_fn(|i| all[1 + i]),
            strides: std::array::from_fn(|i| all[1 + R + i]),
        }
    }

    fn operands(&self, offsets: [Raw; R]) -> Vec<Raw> {
        std::iter::once(self.base).chain(self.dims).chain(self.strides).chain(offsets).collect()
    }

    fn view(dtype: DType, v: &[Value]) -> ViewValue {
        ViewValue { dtype, base: v[0], dims: v[1..=R].to_vec(), strides: v[1 + R..1 + 2 * R].to_vec() }
    }

    #[track_caller]
    fn load<T: Element>(&self, offsets: [Tile<i32>; R], shape: [usize; R], pad: Option<Tile<T>>) -> Tile<T> {
        let mut operands = self.operands(offsets.map(|o| o.raw));
        operands.extend(pad.map(|p| p.raw));
        Tile::new(emit(
            &operands,
            |_| TileType::new(T::DTYPE, shape),
            |b, v| {
                let pad = v.get(1 + 3 * R).copied();
                b.view_load(&Self::view(T::DTYPE, v), &v[1 + 2 * R..1 + 3 * R], shape, pad)
            },
        ))
    }

    #[track_caller]
    fn store<T: Element>(&self, offsets: [Tile<i32>; R], x: Tile<T>) {
        let mut operands = self.operands(offsets.map(|o| o.raw));
        operands.push(x.raw);
        emit_unit(&operands, |b, v| b.view_store(&Self::view(T::DTYPE, v), &v[1 + 2 * R..1 + 3 * R], v[1 + 3 * R]));
    }

    #[track_caller]
    fn dim(&self, axis: usize) -> Tile<i32> {
        match self.dims.get(axis) {
            Some(&raw) => Tile::new(raw),
            None => {
                out_of_range(axis, R);
                scalar::<i32>(1i32)
            }
        }
    }

    #[track_caller]
    fn stride(&self, axis: usize) -> Tile<i64> {
        match self.strides.get(axis) {
            Some(&raw) => {
                Tile::new(emit(&[raw], |_| TileType::new(DType::I64, Shape::SCALAR), |b, v| b.cast(v[0], DType::I64)))
            }
            None => {
                out_of_range(axis, R);
                scalar::<i64>(1i32)
            }
        }
    }
}

#[track_caller]
fn out_of_range(axis: usize, rank: usize) {
    mistake(format!("axis {axis} is out of range for a view of {rank} dimensions"), "axes count from 0");
}

macro_rules! views {
    ($($(#[$doc:meta])* $name:ident, $access:ident;)*) => { $(
        $(#[$doc])*
        pub struct $name<T, const R: usize> {
            parts: Parts<R>,
            element: PhantomData<fn() -> T>,
        }

        impl<T, const R: usize> Clone for $name<T, R> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<T, const R: usize> Copy for $name<T, R> {}

        impl<T: Element, const R: usize> fmt::Debug for $name<T, R> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "<{}, {}>"), T::DTYPE, R)
            }
        }

        impl<T: Element, const R: usize> $name<T, R> {
            /// The extent of dimension `axis`.
            #[track_caller]
            pub fn dim(&self, axis: usize) -> Tile<i32> {
                self.parts.dim(axis)
            }

            /// The stride of dimension `axis`, in elements.
            #[track_caller]
            pub fn stride(&self, axis: usize) -> Tile<i64> {
                self.parts.stride(axis)
            }

            /// The address of element 0, for accesses that a view cannot say. Nothing checks where it leads.
            pub fn ptr(&self) -> Ptr<T> {
                Ptr::new(self.parts.base)
            }
        }

        impl<T: Element, const R: usize> OfView for &Accessed<'_, $name<T, R>> {}
        impl<T: Element, const R: usize> OfView for &Accessed<'_, &$name<T, R>> {}

        impl<T: Element, const R: usize> KernelParam for $name<T, R> {
            type Handle = Self;
            #[track_caller]
            fn param(params: &mut Params<'_>, name: &'static str) -> Self {
                Self { parts: Parts::param::<T>(params, name), element: PhantomData }
            }
        }
    )* };
}

/// The shape of a tile of a view of `R` dimensions: `[usize; R]`, known while the kernel is built.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the shape of a tile of a view of {R} dimensions",
    label = "expected `[usize; {R}]`",
    note = "the extents of a tile are host values (`usize`): literals, or `#[comptime]` parameters of the kernel"
)]
pub trait ViewShape<const R: usize> {
    /// The extents.
    #[doc(hidden)]
    fn extents(self) -> [usize; R];
}

impl<const R: usize> ViewShape<R> for [usize; R] {
    fn extents(self) -> [usize; R] {
        self
    }
}

macro_rules! readable {
    ($($name:ident),*) => { $(
        impl<T: Element, const R: usize> $name<T, R> {
            /// Reads the tile of `shape` at `offsets`; what lies outside the view reads 0.
            #[track_caller]
            pub fn load(&self, offsets: [impl Operand<i32>; R], shape: impl ViewShape<R>) -> Tile<T> {
                let offsets = tiles(offsets);
                self.parts.load(offsets, shape.extents(), None)
            }

            /// Reads the tile of `shape` at `offsets`; what lies outside the view reads `pad`.
            #[track_caller]
            pub fn load_or(
                &self,
                offsets: [impl Operand<i32>; R],
                shape: impl ViewShape<R>,
                pad: impl Operand<T>,
            ) -> Tile<T> {
                let offsets = tiles(offsets);
                let pad = pad.tile();
                self.parts.load(offsets, shape.extents(), Some(pad))
            }
        }
    )* };
}

macro_rules! writable {
    ($($name:ident),*) => { $(
        impl<T: Element, const R: usize> $name<T, R> {
            /// Writes the tile `x` at `offsets`; what falls outside the view is dropped.
            #[track_caller]
            pub fn store(&self, offsets: [impl Operand<i32>; R], x: Tile<T>) {
                let offsets = tiles(offsets);
                self.parts.store(offsets, x);
            }
        }
    )* };
}

views! {
    /// A tensor of `T` with `R` dimensions that the kernel reads.
    In, In;
    /// A tensor of `T` with `R` dimensions that the kernel writes.
    Out, Out;
    /// A tensor of `T` with `R` dimensions that the kernel reads and writes.
    InOut, InOut;
}
readable!(In, InOut);
writable!(Out, InOut);

/// A view that a kernel may write. (`In` has the method for the message alone.)
#[diagnostic::on_unimplemented(
    message = "`{Self}` is a view that the kernel reads: nothing is stored there",
    label = "cannot be stored to",
    note = "declare the parameter `Out<T, R>`, or `InOut<T, R>` if the kernel reads it, too"
)]
#[doc(hidden)]
pub trait Writable {}

/// A view that a kernel may read.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is a view that the kernel writes: nothing is loaded from there",
    label = "cannot be loaded from",
    note = "declare the parameter `In<T, R>`, or `InOut<T, R>` if the kernel writes it, too"
)]
#[doc(hidden)]
pub trait Readable {}

impl<T: Element, const R: usize> In<T, R> {
    /// No kernel does: the view is read.
    #[doc(hidden)]
    pub fn store(&self, _offsets: [impl Operand<i32>; R], _x: Tile<T>)
    where
        Self: Writable,
    {
    }
}

impl<T: Element, const R: usize> Out<T, R> {
    /// No kernel does: the view is written.
    #[doc(hidden)]
    pub fn load(&self, _offsets: [impl Operand<i32>; R], _shape: impl ViewShape<R>) -> Tile<T>
    where
        Self: Readable,
    {
        Tile::new(self.parts.base)
    }
}

#[track_caller]
fn tiles<const R: usize>(offsets: [impl Operand<i32>; R]) -> [Tile<i32>; R] {
    // A closure would lose the caller's place.
    let mut list = Vec::with_capacity(R);
    for offset in offsets {
        list.push(offset.tile());
    }
    std::array::from_fn(|i| list[i])
}

/// What `load` or `store` is called on. Method look-up on `&&Accessed(&x)` finds [`OfView`] if it is a view, else [`OfOther`].
#[doc(hidden)]
#[derive(Debug)]
pub struct Accessed<'a, V>(pub &'a V);

/// Something has offsets of any type of integers.
#[doc(hidden)]
pub trait OfView {
    /// One of them.
    #[track_caller]
    fn __tw_offset(&self, value: impl Operand<i32>) -> Tile<i32> {
        value.tile()
    }
}

/// Something has a method of that name, which takes what it takes.
#[doc(hidden)]
pub trait OfOther {
    /// The argument.
    fn __tw_offset<A>(&self, value: A) -> A {
        value
    }
}
impl<V> OfOther for Accessed<'_, V> {}

/// One offset into a view; `#[kernel]` wraps the elements of array literals in this, so that they may be of mixed types.
#[doc(hidden)]
#[track_caller]
pub fn offset(value: impl Operand<i32>) -> Tile<i32> {
    value.tile()
}

/// What may be a parameter of a kernel: a view, a pointer, or a number (seen as a scalar tile inside).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a kernel parameter",
    label = "expected `In`, `Out`, `InOut`, `Ptr` or a number type",
    note = "a host value (a size, a flag, a string) is a kernel parameter marked `#[comptime]`"
)]
pub trait KernelParam {
    /// What the kernel's body sees.
    type Handle;
    /// Adds the parameter to the kernel being built.
    #[doc(hidden)]
    #[track_caller]
    fn param(params: &mut Params<'_>, name: &'static str) -> Self::Handle;
}

impl<T: Element> KernelParam for Ptr<T> {
    type Handle = Self;
    fn param(params: &mut Params<'_>, name: &'static str) -> Self {
        Ptr::new(params.ptr(name, T::DTYPE))
    }
}

impl<T: Element> KernelParam for T {
    type Handle = Tile<T>;
    fn param(params: &mut Params<'_>, name: &'static str) -> Tile<T> {
        Tile::new(params.scalar(name, T::DTYPE))
    }
}
