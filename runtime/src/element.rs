//! Host types that can be elements of buffers, by their bytes.

use tilewright_compiler::DType;
use tilewright_compiler::dtype::Kind;

pub use tilewright_compiler::dsl::Element;

/// The bytes of host elements.
pub(crate) fn bytes_of<T: Element>(values: &[T]) -> &[u8] {
    // SAFETY: the element types, a closed set of numbers and `bool`, have no padding, so all bytes are initialised; the
    // length is that of the same memory.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// A value as a kernel argument: sign- or zero-extended, or the bits of a float.
pub(crate) fn to_word<T: Element>(value: T) -> u64 {
    let mut bytes = [0; 8];
    let own = bytes_of(std::slice::from_ref(&value));
    bytes[..own.len()].copy_from_slice(own);
    let word = u64::from_le_bytes(bytes);
    match T::DTYPE.kind() {
        Kind::Signed => {
            let unused = 64 - T::DTYPE.bits();
            ((word << unused) as i64 >> unused) as u64
        }
        Kind::Bool | Kind::Unsigned | Kind::Float => word,
    }
}

/// Makes bytes that came from a device valid values of `dtype`: a truth value is 0 or 1.
pub(crate) fn sanitize(dtype: DType, bytes: &mut [u8]) {
    if dtype == DType::Bool {
        for b in bytes {
            *b = u8::from(*b != 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_extended_by_sign() {
        assert_eq!(to_word(-1i8), u64::MAX);
        assert_eq!(to_word(i32::MIN), 0xffff_ffff_8000_0000);
        assert_eq!(to_word(i64::MIN), 1 << 63);
        assert_eq!(to_word(255u8), 255);
        assert_eq!(to_word(true), 1);
        assert_eq!(to_word(half::f16::ONE), 0x3c00);
        assert_eq!(to_word(-0.0f32), 0x8000_0000);
        assert_eq!(to_word(1.0f64), 1.0f64.to_bits());
    }
}
