//! `#[comptime]` arguments: how a host value becomes part of a kernel's identity.
//!
//! Two values are the same argument if they are the same *value*; what they print as is of no matter. The identity of
//! numbers, text and lists is written out ([`Comptime`], also by derive), bit by bit for floats: -0.0 is not 0.0, and a
//! NaN is itself. Any other type says by `Eq` and `Hash` which of its values are the same.

use super::def::ComptimeValue;
use half::{bf16, f16};
use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// What may be a `#[comptime]` parameter beside types with `Eq` and `Hash`: a host value with an identity.
///
/// `#[derive(Comptime)]` makes it of the identities of all fields, for structs and enums, floats included.
/// ```text
/// #[derive(Clone, Comptime)]
/// enum Activation { Relu, Leaky { slope: f32 } }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a `#[comptime]` parameter",
    label = "not a comptime value",
    note = "a kernel is built anew for each comptime value, so it must be known which are the same: derive `Comptime`, or `PartialEq`, `Eq` and `Hash`",
    note = "a comptime type is also `Clone + Send + Sync + 'static`"
)]
pub trait Comptime: Clone + Send + Sync + 'static {
    /// Appends what tells this value from all others of its type.
    fn identity(&self, out: &mut Identity);
}

/// The identity of a value: bytes that are the same only for the same value of a type.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
pub struct Identity(Vec<u8>);

impl Identity {
    /// Appends bytes of a length that the type decides.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Appends a number, such as a length or which variant of an enum it is.
    pub fn number(&mut self, number: usize) {
        self.bytes(&(number as u64).to_le_bytes());
    }
}

macro_rules! numbers {
    ($($ty:ty),*) => { $(
        impl Comptime for $ty {
            fn identity(&self, out: &mut Identity) {
                out.bytes(&self.to_le_bytes());
            }
        }
    )* };
}
numbers!(i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize, f16, bf16, f32, f64);

impl Comptime for bool {
    fn identity(&self, out: &mut Identity) {
        out.bytes(&[u8::from(*self)]);
    }
}

impl Comptime for char {
    fn identity(&self, out: &mut Identity) {
        out.bytes(&u32::from(*self).to_le_bytes());
    }
}

impl Comptime for &'static str {
    fn identity(&self, out: &mut Identity) {
        out.number(self.len());
        out.bytes(self.as_bytes());
    }
}

impl Comptime for String {
    fn identity(&self, out: &mut Identity) {
        out.number(self.len());
        out.bytes(self.as_bytes());
    }
}

impl Comptime for crate::dtype::DType {
    fn identity(&self, out: &mut Identity) {
        out.number(*self as usize);
    }
}

impl<C: Comptime> Comptime for Vec<C> {
    fn identity(&self, out: &mut Identity) {
        out.number(self.len());
        self.iter().for_each(|c| c.identity(out));
    }
}

impl<C: Comptime> Comptime for &'static [C] {
    fn identity(&self, out: &mut Identity) {
        out.number(self.len());
        self.iter().for_each(|c| c.identity(out));
    }
}

impl<C: Comptime, const N: usize> Comptime for [C; N] {
    fn identity(&self, out: &mut Identity) {
        self.iter().for_each(|c| c.identity(out));
    }
}

impl<C: Comptime> Comptime for Option<C> {
    fn identity(&self, out: &mut Identity) {
        out.bytes(&[u8::from(self.is_some())]);
        self.iter().for_each(|c| c.identity(out));
    }
}

impl<C: Comptime> Comptime for Box<C> {
    fn identity(&self, out: &mut Identity) {
        C::identity(self, out);
    }
}

impl<C: Comptime> Comptime for Arc<C> {
    fn identity(&self, out: &mut Identity) {
        C::identity(self, out);
    }
}

impl Comptime for () {
    fn identity(&self, _out: &mut Identity) {}
}

macro_rules! tuples {
    ($(($($name:ident $index:tt),*);)*) => { $(
        impl<$($name: Comptime),*> Comptime for ($($name,)*) {
            fn identity(&self, out: &mut Identity) {
                $(self.$index.identity(out);)*
            }
        }
    )* };
}

tuples! {
    (A 0);
    (A 0, B 1);
    (A 0, B 1, C 2);
    (A 0, B 1, C 2, D 3);
    (A 0, B 1, C 2, D 3, E 4);
    (A 0, B 1, C 2, D 3, E 4, F 5);
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6);
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
}

// ---- how a kernel's definition asks ---------------------------------------------------------------------------------

/// A comptime argument, borrowed. Method look-up on `&&&&Asked(&value)` finds the first of these traits that holds:
/// [`Exact`] for numbers, flags and strings, [`Written`] for [`Comptime`], [`ByEq`] for `Eq + Hash`; else [`Neither`].
#[doc(hidden)]
#[derive(Debug)]
pub struct Asked<'a, C>(pub &'a C);

/// Values with an identity of their own.
#[doc(hidden)]
pub trait Exact {
    /// It.
    fn comptime_value(&self) -> ComptimeValue;
}

macro_rules! exact {
    ($($ty:ty, |$v:ident| $value:expr;)*) => { $(
        impl Exact for &&&Asked<'_, $ty> {
            fn comptime_value(&self) -> ComptimeValue {
                let $v = self.0;
                $value
            }
        }
    )* };
}

exact! {
    bool, |v| ComptimeValue::Bool(*v);
    i8, |v| ComptimeValue::Int((*v).into());
    i16, |v| ComptimeValue::Int((*v).into());
    i32, |v| ComptimeValue::Int((*v).into());
    i64, |v| ComptimeValue::Int((*v).into());
    isize, |v| ComptimeValue::Int(*v as i128);
    u8, |v| ComptimeValue::Int((*v).into());
    u16, |v| ComptimeValue::Int((*v).into());
    u32, |v| ComptimeValue::Int((*v).into());
    u64, |v| ComptimeValue::Int((*v).into());
    usize, |v| ComptimeValue::Int(*v as i128);
    f64, |v| ComptimeValue::Float(v.to_bits());
    &'static str, |v| ComptimeValue::Text((*v).to_owned());
    String, |v| ComptimeValue::Text(v.clone());
}

/// Values whose identity is written out.
#[doc(hidden)]
pub trait Written {
    /// It.
    fn comptime_value(&self) -> ComptimeValue;
}

impl<C: Comptime> Written for &&Asked<'_, C> {
    fn comptime_value(&self) -> ComptimeValue {
        let mut identity = Identity::default();
        self.0.identity(&mut identity);
        ComptimeValue::Written(identity)
    }
}

/// Values that are compared.
#[doc(hidden)]
pub trait ByEq {
    /// It.
    fn comptime_value(&self) -> ComptimeValue;
}

impl<C: Eq + Hash + Clone + Send + Sync + 'static> ByEq for &Asked<'_, C> {
    fn comptime_value(&self) -> ComptimeValue {
        ComptimeValue::Equal(EqualValue(Arc::new(self.0.clone())))
    }
}

/// All else, which is a mistake.
#[doc(hidden)]
pub trait Neither<C> {
    /// Never: no type without [`Comptime`] satisfies it.
    fn comptime_value(&self) -> ComptimeValue
    where
        C: Comptime;
}

impl<C> Neither<C> for Asked<'_, C> {
    fn comptime_value(&self) -> ComptimeValue
    where
        C: Comptime,
    {
        (&&self).comptime_value()
    }
}

/// A value of any type that `Eq` and `Hash` tell from others of its type.
#[derive(Clone)]
pub struct EqualValue(Arc<dyn Key>);

trait Key: Any + Send + Sync {
    fn same(&self, other: &dyn Key) -> bool;
    fn feed(&self, hasher: &mut dyn Hasher);
    fn type_name(&self) -> &'static str;
}

impl<C: Eq + Hash + Send + Sync + 'static> Key for C {
    fn same(&self, other: &dyn Key) -> bool {
        let other: &dyn Any = other;
        other.downcast_ref::<C>() == Some(self)
    }
    fn feed(&self, mut hasher: &mut dyn Hasher) {
        self.hash(&mut hasher);
    }
    fn type_name(&self) -> &'static str {
        std::any::type_name::<C>()
    }
}

impl PartialEq for EqualValue {
    fn eq(&self, other: &Self) -> bool {
        self.0.same(&*other.0)
    }
}

impl Eq for EqualValue {}

impl Hash for EqualValue {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.feed(state);
    }
}

impl fmt::Debug for EqualValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.type_name())
    }
}
