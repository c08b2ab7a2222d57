//! `#[comptime]` arguments: how any host value becomes part of a kernel's identity.

use super::def::ComptimeValue;
use std::fmt::Debug;

/// What may be a `#[comptime]` parameter: host values that can be copied into the definition and told apart by their
/// `Debug` text.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a `#[comptime]` parameter",
    label = "not a comptime value",
    note = "a comptime type is `Clone + Debug + Send + Sync + 'static`; derive `Clone` and `Debug` for it"
)]
pub trait Comptime: Clone + Debug + Send + Sync + 'static {}
impl<C: Clone + Debug + Send + Sync + 'static> Comptime for C {}

/// A comptime argument, borrowed. Method look-up on `&&Identity(&value)` finds [`Exact`] for numbers, flags and strings
/// and [`ByDebug`] for all else.
#[doc(hidden)]
#[derive(Debug)]
pub struct Identity<'a, C>(pub &'a C);

/// Values with an identity of their own.
#[doc(hidden)]
pub trait Exact {
    /// It.
    fn comptime_value(&self) -> ComptimeValue;
}

macro_rules! exact {
    ($($ty:ty, |$v:ident| $value:expr;)*) => { $(
        impl Exact for &Identity<'_, $ty> {
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
    f32, |v| ComptimeValue::Float(f64::from(*v).to_bits());
    f64, |v| ComptimeValue::Float(v.to_bits());
    &'static str, |v| ComptimeValue::Text((*v).to_owned());
    String, |v| ComptimeValue::Text(v.clone());
}

/// Every other value, by its `Debug` text.
#[doc(hidden)]
pub trait ByDebug {
    /// It.
    fn comptime_value(&self) -> ComptimeValue;
}

impl<C: Debug> ByDebug for Identity<'_, C> {
    fn comptime_value(&self) -> ComptimeValue {
        ComptimeValue::Text(format!("{:?}", self.0))
    }
}

/// Checks that a type may be a `#[comptime]` parameter.
#[doc(hidden)]
pub const fn check_comptime<C: Comptime>() {}
