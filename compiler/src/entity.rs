//! Entity references: `u32` newtypes whose `Display` is the textual syntax, and the arenas they index.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// A reference into an [`Arena`].
pub trait Entity: Copy + Eq {
    /// The reference to element `index`.
    fn new(index: usize) -> Self;
    /// The index of the element referred to.
    fn index(self) -> usize;
}

/// Declares an entity: a `u32` newtype printed as a prefix and its number.
#[macro_export]
macro_rules! entity {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(u32);

        impl $crate::entity::Entity for $name {
            fn new(index: usize) -> Self {
                Self(u32::try_from(index).expect("fewer than 2^32 entities"))
            }
            fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

/// A growing table of `T`, indexed by the entity `K`. Elements are never removed, so references stay valid.
#[derive(Clone, PartialEq)]
pub struct Arena<K, T> {
    items: Vec<T>,
    key: PhantomData<K>,
}

impl<K: Entity, T> Arena<K, T> {
    /// An empty arena.
    pub const fn new() -> Self {
        Self { items: Vec::new(), key: PhantomData }
    }

    /// Appends `item` and gives its reference.
    pub fn push(&mut self, item: T) -> K {
        let key = K::new(self.items.len());
        self.items.push(item);
        key
    }

    /// How many elements there are.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Is the arena empty?
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Every reference with its element, in order of creation.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (K, &T)> + DoubleEndedIterator {
        self.items.iter().enumerate().map(|(i, t)| (K::new(i), t))
    }

    /// Every reference, in order of creation.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = K> + DoubleEndedIterator + use<K, T> {
        (0..self.items.len()).map(K::new)
    }

    /// The element, if the reference is of this arena.
    pub fn get(&self, key: K) -> Option<&T> {
        self.items.get(key.index())
    }
}

impl<K: Entity, T> Default for Arena<K, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Entity, T> Index<K> for Arena<K, T> {
    type Output = T;
    fn index(&self, key: K) -> &T {
        &self.items[key.index()]
    }
}

impl<K: Entity, T> IndexMut<K> for Arena<K, T> {
    fn index_mut(&mut self, key: K) -> &mut T {
        &mut self.items[key.index()]
    }
}

impl<K: Entity + fmt::Debug, T: fmt::Debug> fmt::Debug for Arena<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
