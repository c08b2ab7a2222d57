//! [`Carry`]: state that lives through device loops and branches.
//!
//! The macros see which variables a loop or branch mentions in a way that may change them; their types tell which of them
//! are device state (see [`super::watch`]). All of these are handed over; what turns out unchanged is no state of the
//! region when it is closed.

use super::context::Raw;
use super::element::Element;
use super::ptr::Ptr;
use super::tile::Tile;

/// A variable that a device loop or branch may change: tiles, pointers, and tuples, arrays, options, vectors and structs
/// (`#[derive(Carry)]`) of them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be changed by a device loop or branch",
    label = "not device state",
    note = "only tiles and pointers (also in tuples, arrays and structs with `#[derive(Carry)]`) can be changed where the device decides; make a number a tile with `scalar::<f32>(0.0)`",
    note = "if the condition is known while the kernel is built, write `comptime(..)` around it; a loop over host values is `for i in unroll(0..n)`"
)]
pub trait Carry: Clone {
    /// Appends the handles it consists of.
    #[doc(hidden)]
    fn leaves(&self, out: &mut Leaves);
    /// The same structure of other handles, taken in the same order.
    #[doc(hidden)]
    fn rebuild(&self, from: &mut Rebuild<'_>) -> Self;
}

/// The handles of carried state, each with the number of the variable it belongs to.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct Leaves {
    pub(crate) variable: usize,
    pub(crate) raws: Vec<(usize, Raw)>,
}

/// New handles for carried state.
#[doc(hidden)]
#[derive(Debug)]
pub struct Rebuild<'a>(pub(crate) std::slice::Iter<'a, Raw>);

impl Rebuild<'_> {
    fn next(&mut self, old: Raw) -> Raw {
        // A structure that grew was reported; its further parts stay as they are.
        self.0.next().copied().unwrap_or(old)
    }
}

impl<T: Element> Carry for Tile<T> {
    fn leaves(&self, out: &mut Leaves) {
        out.raws.push((out.variable, self.raw));
    }
    fn rebuild(&self, from: &mut Rebuild<'_>) -> Self {
        Tile::new(from.next(self.raw))
    }
}

impl<T: Element> Carry for Ptr<T> {
    fn leaves(&self, out: &mut Leaves) {
        out.raws.push((out.variable, self.raw));
    }
    fn rebuild(&self, from: &mut Rebuild<'_>) -> Self {
        Ptr::new(from.next(self.raw))
    }
}

impl<C: Carry, const N: usize> Carry for [C; N] {
    fn leaves(&self, out: &mut Leaves) {
        self.iter().for_each(|c| c.leaves(out));
    }
    fn rebuild(&self, from: &mut Rebuild<'_>) -> Self {
        self.each_ref().map(|c| c.rebuild(from))
    }
}

impl<C: Carry> Carry for Vec<C> {
    fn leaves(&self, out: &mut Leaves) {
        self.iter().for_each(|c| c.leaves(out));
    }
    fn rebuild(&self, from: &mut Rebuild<'_>) -> Self {
        self.iter().map(|c| c.rebuild(from)).collect()
    }
}

impl<C: Carry> Carry for Option<C> {
    fn leaves(&self, out: &mut Leaves) {
        self.iter().for_each(|c| c.leaves(out));
    }
    fn rebuild(&self, from: &mut Rebuild<'_>) -> Self {
        self.as_ref().map(|c| c.rebuild(from))
    }
}

impl Carry for () {
    fn leaves(&self, _out: &mut Leaves) {}
    fn rebuild(&self, _from: &mut Rebuild<'_>) -> Self {}
}

macro_rules! tuples {
    ($(($($name:ident $index:tt),*);)*) => { $(
        impl<$($name: Carry),*> Carry for ($($name,)*) {
            fn leaves(&self, out: &mut Leaves) {
                $(self.$index.leaves(out);)*
            }
            fn rebuild(&self, from: &mut Rebuild<'_>) -> Self {
                ($(self.$index.rebuild(from),)*)
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

/// The variables a region changes: `(&mut a, (&mut b, ()))`, as written by the macros.
#[doc(hidden)]
pub trait Variables {
    /// Their values.
    type Saved;
    /// Appends their handles.
    fn leaves(&self, out: &mut Leaves);
    /// Their values, to set them again.
    fn save(&self) -> Self::Saved;
    /// Sets them to saved values.
    fn restore(&mut self, saved: &Self::Saved);
    /// Sets them to the structure of `like` made of other handles.
    fn rebuild(&mut self, like: &Self::Saved, from: &mut Rebuild<'_>);
    /// What is known of those that are no device state, since they were saved; `index` is the number of the first.
    fn watched(&self, saved: &Self::Saved, index: usize, found: &mut Vec<(usize, Sight)>);
}

/// What happened to a variable that a region cannot carry.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sight {
    /// It changed, and is host state.
    Changed,
    /// It changed, and is device state that the macro cannot hand over.
    ChangedState,
    /// It may have changed: nothing tells.
    Unknown,
}

impl Variables for () {
    type Saved = ();
    fn leaves(&self, _out: &mut Leaves) {}
    fn save(&self) {}
    fn restore(&mut self, _saved: &()) {}
    fn rebuild(&mut self, _like: &(), _from: &mut Rebuild<'_>) {}
    fn watched(&self, _saved: &(), _index: usize, _found: &mut Vec<(usize, Sight)>) {}
}

impl<C: Carry, Rest: Variables> Variables for (&mut [C], Rest) {
    type Saved = (Vec<C>, Rest::Saved);
    fn leaves(&self, out: &mut Leaves) {
        self.0.iter().for_each(|c| c.leaves(out));
        out.variable += 1;
        self.1.leaves(out);
    }
    fn save(&self) -> Self::Saved {
        (self.0.to_vec(), self.1.save())
    }
    fn restore(&mut self, saved: &Self::Saved) {
        self.0.clone_from_slice(&saved.0);
        self.1.restore(&saved.1);
    }
    fn rebuild(&mut self, like: &Self::Saved, from: &mut Rebuild<'_>) {
        self.0.iter_mut().zip(&like.0).for_each(|(to, like)| *to = like.rebuild(from));
        self.1.rebuild(&like.1, from);
    }
    fn watched(&self, saved: &Self::Saved, index: usize, found: &mut Vec<(usize, Sight)>) {
        self.1.watched(&saved.1, index + 1, found);
    }
}

impl<C: Carry, Rest: Variables> Variables for (&mut C, Rest) {
    type Saved = (C, Rest::Saved);
    fn leaves(&self, out: &mut Leaves) {
        self.0.leaves(out);
        out.variable += 1;
        self.1.leaves(out);
    }
    fn save(&self) -> Self::Saved {
        (self.0.clone(), self.1.save())
    }
    fn restore(&mut self, saved: &Self::Saved) {
        *self.0 = saved.0.clone();
        self.1.restore(&saved.1);
    }
    fn rebuild(&mut self, like: &Self::Saved, from: &mut Rebuild<'_>) {
        *self.0 = like.0.rebuild(from);
        self.1.rebuild(&like.1, from);
    }
    fn watched(&self, saved: &Self::Saved, index: usize, found: &mut Vec<(usize, Sight)>) {
        self.1.watched(&saved.1, index + 1, found);
    }
}
