//! Tensors on the host: a type and the bytes of the elements, row-major.

use crate::graph::TensorType;
use half::{bf16, f16};
use tilewright_compiler::DType;
use tilewright_compiler::tile::Constant;
pub use tilewright_runtime::Element;

/// A host number that can be an element, seen by its bits.
pub trait Number: Element {
    /// The bits, in the low ones of the word.
    fn to_word(self) -> u64;
    /// The number with these bits.
    fn from_word(word: u64) -> Self;
}

macro_rules! numbers {
    ($($ty:ty, |$v:ident| $to:expr, |$w:ident| $from:expr;)*) => { $(
        impl Number for $ty {
            fn to_word(self) -> u64 {
                let $v = self;
                $to
            }
            fn from_word($w: u64) -> Self {
                $from
            }
        }
    )* };
}

numbers! {
    bool, |v| u64::from(v), |w| w & 0xff != 0;
    i8, |v| u64::from(v as u8), |w| w as i8;
    i16, |v| u64::from(v as u16), |w| w as i16;
    i32, |v| u64::from(v as u32), |w| w as i32;
    i64, |v| v as u64, |w| w as i64;
    u8, |v| v.into(), |w| w as u8;
    u16, |v| v.into(), |w| w as u16;
    u32, |v| v.into(), |w| w as u32;
    u64, |v| v, |w| w;
    f16, |v| v.to_bits().into(), |w| f16::from_bits(w as u16);
    bf16, |v| v.to_bits().into(), |w| bf16::from_bits(w as u16);
    f32, |v| v.to_bits().into(), |w| f32::from_bits(w as u32);
    f64, |v| v.to_bits(), |w| f64::from_bits(w);
}

/// A tensor on the host.
#[derive(Clone, PartialEq, Debug)]
pub struct Literal {
    ty: TensorType,
    bytes: Vec<u8>,
}

impl Literal {
    /// A tensor of zeros.
    pub fn zeros(ty: TensorType) -> Self {
        let bytes = vec![0; ty.bytes()];
        Self { ty, bytes }
    }

    /// A tensor of these bytes, as many as the type needs.
    pub fn from_bytes(ty: TensorType, bytes: Vec<u8>) -> Option<Self> {
        (bytes.len() == ty.bytes()).then_some(Self { ty, bytes })
    }

    /// A tensor of these elements, if they are as many as the extents say.
    pub fn from_slice<T: Number>(values: &[T], dims: &[usize]) -> Option<Self> {
        let ty = TensorType::new(T::DTYPE, dims);
        if ty.elements() != values.len() {
            return None;
        }
        let mut this = Self::zeros(ty);
        for (i, &v) in values.iter().enumerate() {
            this.set(i, v.to_word());
        }
        Some(this)
    }

    /// A tensor whose element `i`, row-major, has the bits `f(i)`.
    pub fn from_fn(ty: TensorType, mut f: impl FnMut(usize) -> u64) -> Self {
        let mut this = Self::zeros(ty);
        for i in 0..this.ty.elements() {
            this.set(i, f(i));
        }
        this
    }

    /// Its type.
    pub fn ty(&self) -> &TensorType {
        &self.ty
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bits of element `i`, row-major.
    pub fn word(&self, i: usize) -> u64 {
        let size = self.ty.dtype.bytes();
        let mut word = [0; 8];
        word[..size].copy_from_slice(&self.bytes[i * size..][..size]);
        u64::from_le_bytes(word)
    }

    /// Element `i`, row-major, as a double.
    pub fn f64(&self, i: usize) -> f64 {
        Constant(self.word(i)).as_f64(self.ty.dtype)
    }

    /// Element `i`, row-major, as an integer; `None` for floats.
    pub fn i64(&self, i: usize) -> Option<i64> {
        Constant(self.word(i)).as_i64(self.ty.dtype)
    }

    /// The elements, if `T` is their type.
    pub fn to_vec<T: Number>(&self) -> Option<Vec<T>> {
        (T::DTYPE == self.ty.dtype).then(|| (0..self.ty.elements()).map(|i| T::from_word(self.word(i))).collect())
    }

    /// The same elements in another shape of as many.
    pub(crate) fn reshaped(&self, dims: &[usize]) -> Self {
        Self { ty: TensorType::new(self.ty.dtype, dims), bytes: self.bytes.clone() }
    }

    pub(crate) fn set(&mut self, i: usize, word: u64) {
        let size = self.ty.dtype.bytes();
        self.bytes[i * size..][..size].copy_from_slice(&word.to_le_bytes()[..size]);
    }
}

/// The bits of `value` in a type.
pub(crate) fn word_of(dtype: DType, value: f64) -> u64 {
    Constant::from_f64(dtype, value).0
}
