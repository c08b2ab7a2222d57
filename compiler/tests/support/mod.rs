//! A stand-in for the runtime crate: what `#[kernel]` refers to, without devices.

pub use tilewright_compiler::dsl;

use std::marker::PhantomData;
use tilewright_compiler::dsl::{Access, Element, KernelDef};

/// A view of nothing.
pub struct View<'a, T, const R: usize>(pub PhantomData<&'a T>);

/// A slice of nothing.
pub struct Slice<'a, T>(pub PhantomData<&'a T>);

/// What was passed.
#[derive(Debug, PartialEq)]
pub enum KernelArg {
    /// A view, and what is done with it.
    View(Access),
    /// A slice.
    Slice,
    /// A number, by the name of its type.
    Scalar(&'static str),
}

impl KernelArg {
    /// An argument for a view parameter.
    pub fn from_view<T: Element, const R: usize>(_view: View<'_, T, R>, access: Access) -> Self {
        KernelArg::View(access)
    }
    /// An argument for a pointer parameter.
    pub fn from_slice<T: Element>(_slice: Slice<'_, T>) -> Self {
        KernelArg::Slice
    }
    /// An argument for a number.
    pub fn from_scalar<T: Element>(_value: T) -> Self {
        KernelArg::Scalar(T::DTYPE.name())
    }
}

/// A launch that goes nowhere.
#[must_use]
pub struct Launch<'a> {
    /// What is launched.
    pub def: KernelDef,
    /// The arguments, by name.
    pub args: Vec<(&'static str, KernelArg)>,
    life: PhantomData<&'a ()>,
}

impl<'a> Launch<'a> {
    /// A launch of `def`.
    pub fn new(def: KernelDef, args: Vec<(&'static str, KernelArg)>) -> Self {
        Self { def, args, life: PhantomData }
    }
}
