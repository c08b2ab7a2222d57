//! [`Ptr`]: a typed address, or a tile of them.

use super::context::{Raw, emit, emit_unit};
use super::element::{Element, Int};
use super::ops::IntoShape;
use super::tile::{Operand, Tile, broadcast_raw};
use crate::tile::TileType;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Add, AddAssign};

/// An address of `T` in global memory, or a tile of addresses: `p + offsets` moves by elements and broadcasts.
/// Nothing checks that an address lies inside its buffer; give a mask, or use the views [`super::In`] and [`super::Out`].
pub struct Ptr<T> {
    pub(crate) raw: Raw,
    element: PhantomData<fn() -> T>,
}

impl<T> Clone for Ptr<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Ptr<T> {}

impl<T: Element> fmt::Debug for Ptr<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ptr<{}>({:?})", T::DTYPE, self.raw)
    }
}

/// What a pointer moves by: a tile of any integer type, or a host integer. Counted in elements.
#[diagnostic::on_unimplemented(
    message = "a pointer cannot move by `{Self}`",
    label = "expected a tile of integers or a host integer",
    note = "offsets count elements; a loaded or computed float offset is converted with `.to::<i64>()`"
)]
pub trait Offset: Copy {
    /// The offset as a value.
    #[doc(hidden)]
    fn offset(self) -> OffsetValue;
}

/// An offset ready to use.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct OffsetValue(Raw);

impl<T: Int> Offset for Tile<T> {
    fn offset(self) -> OffsetValue {
        OffsetValue(self.raw)
    }
}

macro_rules! host_offsets {
    ($($ty:ty),*) => { $(
        impl Offset for $ty {
            #[track_caller]
            fn offset(self) -> OffsetValue {
                let small: Result<i32, _> = self.try_into();
                OffsetValue(match small {
                    Ok(small) => super::ops::constant::<i32, i32>(small).raw,
                    Err(_) => super::ops::constant::<i64, $ty>(self).raw,
                })
            }
        }
    )* };
}

host_offsets!(i32, i64, isize, u32, u64, usize);

impl<T: Element, O: Offset> Add<O> for Ptr<T> {
    type Output = Ptr<T>;
    #[track_caller]
    fn add(self, offset: O) -> Ptr<T> {
        let offset = offset.offset().0;
        let guess = |t: &[TileType]| t[0].with_shape(super::tile::guess_shape(t));
        Ptr::new(emit(&[self.raw, offset], guess, |b, v| b.ptr_add(v[0], v[1])))
    }
}

impl<T: Element, O: Offset> AddAssign<O> for Ptr<T> {
    #[track_caller]
    fn add_assign(&mut self, offset: O) {
        *self = *self + offset;
    }
}

impl<T: Element> Ptr<T> {
    pub(crate) fn new(raw: Raw) -> Self {
        Self { raw, element: PhantomData }
    }

    /// Reads through every address.
    #[track_caller]
    pub fn load(self) -> Tile<T> {
        self.read(&[self.raw])
    }

    /// Reads where `mask` holds, 0 elsewhere; masked-out lanes touch no memory.
    #[track_caller]
    pub fn load_if(self, mask: impl Operand<bool>) -> Tile<T> {
        self.read(&[self.raw, mask.tile().raw])
    }

    /// Reads where `mask` holds, `other` elsewhere; masked-out lanes touch no memory.
    #[track_caller]
    pub fn load_or(self, mask: impl Operand<bool>, other: impl Operand<T>) -> Tile<T> {
        self.read(&[self.raw, mask.tile().raw, other.tile().raw])
    }

    #[track_caller]
    fn read(self, operands: &[Raw]) -> Tile<T> {
        let guess = |t: &[TileType]| TileType::new(T::DTYPE, t[0].shape.clone());
        Tile::new(emit(operands, guess, |b, v| b.load(v[0], v.get(1).copied(), v.get(2).copied())))
    }

    /// Writes `x`, broadcast to the shape of the addresses.
    #[track_caller]
    pub fn store(self, x: impl Operand<T>) {
        emit_unit(&[self.raw, x.tile().raw], |b, v| b.store(v[0], v[1], None));
    }

    /// Writes `x` where `mask` holds; masked-out lanes touch no memory.
    #[track_caller]
    pub fn store_if(self, mask: impl Operand<bool>, x: impl Operand<T>) {
        emit_unit(&[self.raw, x.tile().raw, mask.tile().raw], |b, v| b.store(v[0], v[1], Some(v[2])));
    }

    /// Repeats the addresses along their extents of 1 (a scalar: to anything) until they have `shape`.
    #[track_caller]
    pub fn broadcast_to(self, shape: impl IntoShape) -> Self {
        Ptr::new(broadcast_raw(self.raw, shape.into_shape()))
    }
}
