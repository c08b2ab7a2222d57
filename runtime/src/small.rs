//! A short list on the stack.

use std::ops::{Deref, DerefMut};

/// Up to `N` elements inline, more on the heap.
pub(crate) struct Small<T, const N: usize> {
    inline: [T; N],
    len: usize,
    spill: Vec<T>,
}

impl<T: Copy + Default, const N: usize> Small<T, N> {
    pub fn push(&mut self, value: T) {
        if self.len < N {
            self.inline[self.len] = value;
        } else {
            if self.len == N {
                self.spill.extend_from_slice(&self.inline);
            }
            self.spill.push(value);
        }
        self.len += 1;
    }
}

impl<T: Copy + Default, const N: usize> Default for Small<T, N> {
    fn default() -> Self {
        Self { inline: [T::default(); N], len: 0, spill: Vec::new() }
    }
}

impl<T, const N: usize> Deref for Small<T, N> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        if self.len <= N { &self.inline[..self.len] } else { &self.spill }
    }
}

impl<T, const N: usize> DerefMut for Small<T, N> {
    fn deref_mut(&mut self) -> &mut [T] {
        if self.len <= N { &mut self.inline[..self.len] } else { &mut self.spill }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spills_without_losing_anything() {
        let mut s = Small::<u32, 4>::default();
        for i in 0..11 {
            assert_eq!(&*s, &(0..i).collect::<Vec<_>>()[..]);
            s.push(i);
        }
    }
}
