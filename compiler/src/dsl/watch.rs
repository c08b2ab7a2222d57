//! Variables that a device loop or branch *may* change: which are device state, and what to do with the others.
//!
//! The macros know names, not types: that a method is called on `s` says nothing. So they hand over every variable that
//! the code could change, and its type decides. Method look-up on a reference to [`Probe`], which tries fewer
//! dereferences first, gives the tag of the first that holds:
//!
//! | the variable | tag | what happens to it |
//! |---|---|---|
//! | [`Carry`], or a slice of it | [`Carried`] | it is state of the region; unchanged, it is dropped again |
//! | `&mut` to [`Carry`] | [`Reference`] | the same with what it refers to |
//! | `Debug` | [`Watched`] | host state: a mistake is reported if its text differs after the region |
//! | any other `&mut` | [`Opaque`] | reported: nothing tells whether it changes |
//! | all else | [`Opaque`] if it is `mut`, else nothing | |
//!
//! Host code in a device region runs once, while the kernel is built, so host state that changes there is a mistake, also
//! behind `Cell`, `RefCell`, locks and atomics, whose `Debug` text shows what they hold. What hides its state from
//! `Debug`, or is reached without being named (a static of another crate, a thread-local, a file), is not seen.

use super::carry::{Carry, Leaves, Rebuild, Sight, Variables};
use std::fmt::{self, Debug, Write};
use std::hash::{DefaultHasher, Hasher};
use std::marker::PhantomData;

/// Asks what a variable is.
#[doc(hidden)]
#[derive(Debug)]
pub struct Probe<C: ?Sized>(PhantomData<fn() -> PhantomData<C>>);

impl<C: ?Sized> Probe<C> {
    /// For the type of this variable.
    pub fn of(_variable: &C) -> Self {
        Probe(PhantomData)
    }
}

/// Says what a variable is.
#[doc(hidden)]
pub trait Tagged {
    /// The kind, as a type.
    type Tag: Default;
    /// The same as a value.
    fn tag(&self) -> Self::Tag {
        Self::Tag::default()
    }
}

impl<C: Carry> Tagged for &&&&Probe<C> {
    type Tag = Carried;
}
impl<C: Carry> Tagged for &&&&Probe<[C]> {
    type Tag = Carried;
}
impl<C: Carry> Tagged for &&&Probe<&mut C> {
    type Tag = Reference;
}
impl<C: Carry> Tagged for &&&Probe<&mut [C]> {
    type Tag = Reference;
}
impl<C: Debug + ?Sized> Tagged for &&Probe<C> {
    type Tag = Watched;
}
impl<C: ?Sized> Tagged for &Probe<&mut C> {
    type Tag = Opaque;
}
impl<C: ?Sized> Tagged for Probe<C> {
    type Tag = Unseen;
}

/// Device state.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct Carried;
/// A `&mut` reference to device state.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct Reference;
/// Host state that can be compared.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct Watched;
/// A `&mut` reference to something that cannot be compared.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct Opaque;
/// Something that cannot be compared.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct Unseen;

// ---- bindings that are `mut` --------------------------------------------------------------------------------------

impl Carried {
    /// The variable itself.
    pub fn wrap<C: ?Sized>(self, variable: &mut C) -> &mut C {
        variable
    }
}

impl Reference {
    /// What it refers to.
    pub fn wrap<'a, C: ?Sized>(self, variable: &'a mut &mut C) -> &'a mut C {
        variable
    }
}

impl Watched {
    /// To be compared.
    pub fn wrap<C: Debug + ?Sized>(self, variable: &mut C) -> Watch<'_, Watched, C> {
        Watch(variable, PhantomData)
    }
}

impl Opaque {
    /// Reported.
    pub fn wrap<C: ?Sized>(self, variable: &mut C) -> Watch<'_, Opaque, C> {
        Watch(variable, PhantomData)
    }
}

impl Unseen {
    /// Reported: it is `mut`, and code that may change it is called.
    pub fn wrap<C: ?Sized>(self, variable: &mut C) -> Watch<'_, Opaque, C> {
        Watch(variable, PhantomData)
    }
}

// ---- bindings that are not ----------------------------------------------------------------------------------------

/// A `&mut` reference to device state: method look-up finds this before [`Seen`] if the variable is one.
#[doc(hidden)]
pub trait Behind {
    /// What it refers to.
    fn __tw_hand<K>(&mut self, _tag: K) -> &mut Self {
        self
    }
    /// The same, where it is surely assigned.
    fn __tw_behind(&mut self) -> &mut Self {
        self
    }
}
impl<C: Carry> Behind for C {}
impl<C: Carry> Behind for [C] {}

/// Anything, borrowed.
#[doc(hidden)]
pub trait Seen {
    /// To be compared as the tag says.
    fn __tw_hand<K>(&self, _tag: K) -> Watch<'_, K, Self> {
        Watch(self, PhantomData)
    }
}
impl<T: ?Sized> Seen for T {}

/// A variable that a region cannot carry, and how it is compared.
#[doc(hidden)]
#[derive(Debug)]
pub struct Watch<'a, K, T: ?Sized>(&'a T, PhantomData<K>);

/// How a value is told from what it was.
#[doc(hidden)]
pub trait Look<T: ?Sized> {
    /// What a difference means.
    const DIFFERENT: Sight;
    /// A number that is another one if the value is; `None` if nothing tells.
    fn look(value: &T) -> Option<u64>;
}

impl<C: Carry> Look<C> for Carried {
    const DIFFERENT: Sight = Sight::ChangedState;
    fn look(value: &C) -> Option<u64> {
        let mut leaves = Leaves::default();
        value.leaves(&mut leaves);
        Watched::look(&leaves)
    }
}

impl<C: Carry> Look<[C]> for Carried {
    const DIFFERENT: Sight = Sight::ChangedState;
    fn look(value: &[C]) -> Option<u64> {
        let mut leaves = Leaves::default();
        value.iter().for_each(|c| c.leaves(&mut leaves));
        Watched::look(&leaves)
    }
}

impl<T: Debug + ?Sized> Look<T> for Watched {
    const DIFFERENT: Sight = Sight::Changed;
    fn look(value: &T) -> Option<u64> {
        /// Takes the text without keeping it.
        struct Digest(DefaultHasher);
        impl Write for Digest {
            fn write_str(&mut self, text: &str) -> fmt::Result {
                self.0.write(text.as_bytes());
                Ok(())
            }
        }
        let mut digest = Digest(DefaultHasher::new());
        write!(digest, "{value:?}").ok()?;
        Some(digest.0.finish())
    }
}

impl<T: ?Sized> Look<T> for Reference {
    const DIFFERENT: Sight = Sight::Unknown;
    fn look(_value: &T) -> Option<u64> {
        None
    }
}

impl<T: ?Sized> Look<T> for Opaque {
    const DIFFERENT: Sight = Sight::Unknown;
    fn look(_value: &T) -> Option<u64> {
        None
    }
}

impl<T: ?Sized> Look<T> for Unseen {
    const DIFFERENT: Sight = Sight::Unknown;
    fn look(_value: &T) -> Option<u64> {
        Some(0)
    }
}

impl<T: ?Sized, K: Look<T>, Rest: Variables> Variables for (Watch<'_, K, T>, Rest) {
    type Saved = (Option<u64>, Rest::Saved);
    fn leaves(&self, out: &mut Leaves) {
        out.variable += 1;
        self.1.leaves(out);
    }
    fn save(&self) -> Self::Saved {
        (K::look(self.0.0), self.1.save())
    }
    fn restore(&mut self, saved: &Self::Saved) {
        self.1.restore(&saved.1);
    }
    fn rebuild(&mut self, like: &Self::Saved, from: &mut Rebuild<'_>) {
        self.1.rebuild(&like.1, from);
    }
    fn watched(&self, saved: &Self::Saved, index: usize, found: &mut Vec<(usize, Sight)>) {
        match saved.0 {
            None => found.push((index, Sight::Unknown)),
            before if before != K::look(self.0.0) => found.push((index, K::DIFFERENT)),
            _ => {}
        }
        self.1.watched(&saved.1, index + 1, found);
    }
}
