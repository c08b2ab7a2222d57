//! Structures of tensors: what a captured function takes and gives.

use super::Tensor;
use std::fmt::Write;

/// A tensor, or a tuple, vector, array, option or struct of structures. Numbers and strings in it are part of what a graph is
/// captured for: another value means another graph.
pub trait Structure: Clone {
    /// Appends its tensors, in order.
    fn flatten(&self, out: &mut Vec<Tensor>);
    /// The same structure with other tensors, taken in the same order.
    #[must_use]
    fn rebuild(&self, tensors: &mut dyn Iterator<Item = Tensor>) -> Self;
    /// Describes everything a captured graph depends on: the structure, the tensors' types, the other values.
    fn describe(&self, out: &mut String);

    /// Its tensors, in order.
    fn tensors(&self) -> Vec<Tensor> {
        let mut out = Vec::new();
        self.flatten(&mut out);
        out
    }
}

impl Structure for Tensor {
    fn flatten(&self, out: &mut Vec<Tensor>) {
        out.push(self.clone());
    }
    fn rebuild(&self, tensors: &mut dyn Iterator<Item = Tensor>) -> Self {
        // There are as many tensors as `flatten` gave; the tensor itself stands in otherwise.
        tensors.next().unwrap_or_else(|| self.clone())
    }
    fn describe(&self, out: &mut String) {
        let _ = write!(out, "{}", self.ty());
    }
}

impl<T: Structure> Structure for Vec<T> {
    fn flatten(&self, out: &mut Vec<Tensor>) {
        self.iter().for_each(|t| t.flatten(out));
    }
    fn rebuild(&self, tensors: &mut dyn Iterator<Item = Tensor>) -> Self {
        self.iter().map(|t| t.rebuild(tensors)).collect()
    }
    fn describe(&self, out: &mut String) {
        out.push('[');
        for t in self {
            t.describe(out);
            out.push_str("; ");
        }
        out.push(']');
    }
}

impl<T: Structure, const N: usize> Structure for [T; N] {
    fn flatten(&self, out: &mut Vec<Tensor>) {
        self.iter().for_each(|t| t.flatten(out));
    }
    fn rebuild(&self, tensors: &mut dyn Iterator<Item = Tensor>) -> Self {
        std::array::from_fn(|i| self[i].rebuild(tensors))
    }
    fn describe(&self, out: &mut String) {
        out.push('[');
        for t in self {
            t.describe(out);
            out.push_str("; ");
        }
        out.push(']');
    }
}

impl<T: Structure> Structure for Option<T> {
    fn flatten(&self, out: &mut Vec<Tensor>) {
        if let Some(t) = self {
            t.flatten(out);
        }
    }
    fn rebuild(&self, tensors: &mut dyn Iterator<Item = Tensor>) -> Self {
        self.as_ref().map(|t| t.rebuild(tensors))
    }
    fn describe(&self, out: &mut String) {
        match self {
            Some(t) => {
                out.push_str("some ");
                t.describe(out);
            }
            None => out.push_str("none"),
        }
    }
}

impl Structure for () {
    fn flatten(&self, _: &mut Vec<Tensor>) {}
    fn rebuild(&self, _: &mut dyn Iterator<Item = Tensor>) -> Self {}
    fn describe(&self, out: &mut String) {
        out.push_str("()");
    }
}

macro_rules! tuples {
    ($(($($name:ident $index:tt),*);)*) => { $(
        impl<$($name: Structure),*> Structure for ($($name,)*) {
            fn flatten(&self, out: &mut Vec<Tensor>) {
                $(self.$index.flatten(out);)*
            }
            fn rebuild(&self, tensors: &mut dyn Iterator<Item = Tensor>) -> Self {
                ($(self.$index.rebuild(tensors),)*)
            }
            fn describe(&self, out: &mut String) {
                out.push('(');
                $(self.$index.describe(out); out.push_str(", ");)*
                out.push(')');
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
}

macro_rules! statics {
    ($($ty:ty),*) => { $(
        impl Structure for $ty {
            fn flatten(&self, _: &mut Vec<Tensor>) {}
            fn rebuild(&self, _: &mut dyn Iterator<Item = Tensor>) -> Self {
                self.clone()
            }
            fn describe(&self, out: &mut String) {
                let _ = write!(out, "{self:?}");
            }
        }
    )* };
}
statics!(bool, i32, i64, u32, u64, usize, f32, f64, String);

/// Makes a struct of structures a [`Structure`]: `structure!(Layer { weight, bias });` The struct derives `Clone`.
#[macro_export]
macro_rules! structure {
    ($name:ident { $($field:ident),* $(,)? }) => {
        impl $crate::Structure for $name {
            fn flatten(&self, out: &mut Vec<$crate::Tensor>) {
                $($crate::Structure::flatten(&self.$field, out);)*
            }
            fn rebuild(&self, tensors: &mut dyn Iterator<Item = $crate::Tensor>) -> Self {
                Self { $($field: $crate::Structure::rebuild(&self.$field, tensors)),* }
            }
            fn describe(&self, out: &mut String) {
                out.push_str(concat!(stringify!($name), " { "));
                $(
                    out.push_str(concat!(stringify!($field), ": "));
                    $crate::Structure::describe(&self.$field, out);
                    out.push_str(", ");
                )*
                out.push('}');
            }
        }
    };
}
