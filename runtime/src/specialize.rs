//! Specialisation: what of the arguments' values a kernel is compiled for.
//!
//! Few variants: an address is 16-byte aligned or element-aligned; an extent or a stride falls in the divisor classes 1, 2,
//! 4, 8, 16 (of coarse views: 1 and 16); a stride may be known to be 1; an integer is a multiple of 16 or not; strides are 32 or 64 bits wide; and
//! written memory that overlaps other arguments' memory is said to. The key is canonical: arguments with the same facts
//! have the same key, whatever their addresses.

use crate::args::{KernelArg, Repr};
use crate::small::Small;
use std::sync::Arc;
use tilewright_compiler::DType;
use tilewright_compiler::dsl::Specialization;
use tilewright_compiler::tile::ParamHint;

/// The facts of a launch's arguments, as bytes: the width of strides, then for each argument its kind, its dtype, and what
/// is known of its flattened parameters.
pub(crate) type Key = Small<u8, 128>;

const SCALAR: u8 = 0;
const SLICE: u8 = 1;
const VIEW: u8 = 2;
/// The code of a stride that is exactly 1; other codes are binary logarithms of a divisor.
const ONE: u8 = 0x80;

/// The key of these arguments.
pub(crate) fn key(args: &[(&'static str, KernelArg<'_>)]) -> Key {
    let mut key = Key::default();
    let reach = args.iter().map(|(_, a)| if let Repr::View { shape, .. } = &a.0 { shape.reach } else { 0 }).max();
    key.push(u8::from(reach.unwrap_or(0) > i32::MAX as u64 || args.iter().any(|(_, a)| has_wide_stride(a))));
    let classes = alias_classes(args);
    let mut pointer = 0;
    let mut class = || {
        pointer += 1;
        classes[pointer - 1]
    };
    for (_, arg) in args {
        match &arg.0 {
            Repr::Scalar { dtype, word } => {
                key.push(SCALAR);
                key.push(*dtype as u8);
                key.push(if dtype.is_int() && word % 16 == 0 { 4 } else { 0 });
            }
            Repr::Slice { memory, dtype, lo, .. } => {
                key.push(SLICE);
                key.push(*dtype as u8);
                key.push(address_divisor(memory.addr() + lo, *dtype));
                key.push(class());
            }
            Repr::View { memory, shape, coarse, .. } => {
                key.push(VIEW);
                key.push(shape.dtype as u8);
                key.push(address_divisor(memory.addr() + shape.base, shape.dtype));
                key.push(class());
                key.push(shape.rank);
                let rank = usize::from(shape.rank);
                let (dims, strides) = (&shape.dims[..rank], &shape.strides[..rank]);
                for (&d, &s) in dims.iter().zip(strides) {
                    let d = i64::from(d);
                    // Vectors lie along the contiguous dimension: they ask for no divisor of other extents.
                    let coarse_divisor = if s == 1 { sixteenth(d) } else { 0 };
                    key.push(if *coarse { coarse_divisor } else { divisor(d) });
                }
                for &s in strides {
                    let divisor = if *coarse { sixteenth } else { divisor };
                    key.push(if s == 1 { ONE } else { divisor(s) });
                }
            }
        }
    }
    key
}

/// What a key says, for the compiler.
pub(crate) fn specialization(key: &[u8], fp_fusion: bool) -> Specialization {
    let mut hints = Vec::new();
    let log2 = |code: u8| ParamHint { divisor: 1 << code, ..ParamHint::default() };
    let mut rest = &key[1..];
    while let [kind, _dtype, code, tail @ ..] = rest {
        rest = tail;
        if *kind == SCALAR {
            hints.push(log2(*code));
            continue;
        }
        hints.push(ParamHint { alias_class: u32::from(rest[0]), ..log2(*code) });
        rest = &rest[1..];
        if *kind == VIEW {
            let flat = 2 * usize::from(rest[0]);
            for &code in &rest[1..=flat] {
                hints.push(if code == ONE { ParamHint { known: Some(1), ..ParamHint::default() } } else { log2(code) });
            }
            rest = &rest[1 + flat..];
        }
    }
    Specialization { index: if key[0] == 0 { DType::I32 } else { DType::I64 }, hints, fp_fusion }
}

/// A stride of a dimension of extent 0 or 1 reaches nothing, but must still be passed exactly.
fn has_wide_stride(arg: &KernelArg<'_>) -> bool {
    match &arg.0 {
        Repr::View { shape, .. } => shape.strides[..usize::from(shape.rank)].iter().any(|&s| i32::try_from(s).is_err()),
        _ => false,
    }
}

/// The binary logarithm of the largest divisor among 1, 2, 4, 8, 16.
fn divisor(value: i64) -> u8 {
    value.trailing_zeros().min(4) as u8
}

/// 4 for multiples of 16, 0 for others.
fn sixteenth(value: i64) -> u8 {
    if value % 16 == 0 { 4 } else { 0 }
}

fn address_divisor(address: u64, dtype: DType) -> u8 {
    if address.is_multiple_of(16) { 4 } else { dtype.bytes().trailing_zeros() as u8 }
}

/// One class for each pointer, in order of first appearance; two pointers share one if their memory overlaps and at least
/// one of them is written, directly or through others.
fn alias_classes(args: &[(&'static str, KernelArg<'_>)]) -> Small<u8, 32> {
    // Which memory, the bytes of it, and whether they are written.
    let mut ranges = Small::<(usize, u64, u64, bool), 32>::default();
    for (_, arg) in args {
        match arg.0 {
            Repr::View { memory, shape, access, .. } => {
                ranges.push((Arc::as_ptr(memory).addr(), shape.lo, shape.hi, access.writes()));
            }
            // A raw pointer may be written; the launch cannot know.
            Repr::Slice { memory, lo, hi, .. } => ranges.push((Arc::as_ptr(memory).addr(), lo, hi, true)),
            Repr::Scalar { .. } => {}
        }
    }
    let mut classes = Small::<u8, 32>::default();
    if ranges.len() > usize::from(u8::MAX) {
        // Too many to number in a byte: one class for all claims nothing.
        ranges.iter().for_each(|_| classes.push(0));
        return classes;
    }
    for (i, a) in ranges.iter().enumerate() {
        classes.push(i as u8);
        for (j, b) in ranges[..i].iter().enumerate() {
            let overlap = a.0 == b.0 && a.1 < b.2 && b.1 < a.2 && (a.3 || b.3);
            if overlap && classes[i] != classes[j] {
                let (from, to) = (classes[i], classes[j]);
                classes.iter_mut().filter(|c| **c == from).for_each(|c| *c = to);
            }
        }
    }
    // Number the classes by first appearance. A class is the index of one of its members, not always the first one, so
    // renumbered ones are told apart by walking once with a table.
    let mut numbers = [u8::MAX; 256];
    let mut next = 0;
    for class in classes.iter_mut() {
        let number = &mut numbers[usize::from(*class)];
        if *number == u8::MAX {
            *number = next;
            next += 1;
        }
        *class = *number;
    }
    classes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Access, Device};

    fn classes(args: &[KernelArg<'_>]) -> Vec<u8> {
        let args: Vec<_> = args.iter().map(|a| ("x", *a)).collect();
        alias_classes(&args).to_vec()
    }

    #[test]
    fn overlap_with_a_write_shares_a_class() {
        let dev = Device::open("cpu").unwrap();
        let (x, y) = (dev.zeros::<f32>(64).unwrap(), dev.zeros::<f32>(64).unwrap());
        let read = |from: usize, n: usize| KernelArg::from_view(x.view_strided(from, [n], [1]).unwrap(), Access::In);
        let write = |from: usize, n: usize| KernelArg::from_view(x.view_strided(from, [n], [1]).unwrap(), Access::Out);
        let other = KernelArg::from_view(y.view([64]).unwrap(), Access::InOut);
        assert_eq!(classes(&[read(0, 64), read(0, 64), other]), [0, 1, 2]);
        assert_eq!(classes(&[read(0, 32), other, write(32, 32)]), [0, 1, 2]);
        assert_eq!(classes(&[read(0, 33), other, write(32, 32)]), [0, 1, 0]);
        // The first two meet only through the third.
        assert_eq!(classes(&[read(0, 10), read(20, 10), other, write(5, 20)]), [0, 0, 1, 0]);
        assert_eq!(classes(&[write(0, 0), read(0, 64)]), [0, 1]);
        let slice = KernelArg::from_slice(x.slice(8..).unwrap());
        assert_eq!(classes(&[slice, other, read(0, 9)]), [0, 1, 0]);
        let many = vec![other; 300];
        assert_eq!(classes(&many), vec![0; 300]);
    }

    #[test]
    fn hints_say_what_holds_and_no_more() {
        let dev = Device::open("cpu").unwrap();
        let x = dev.zeros::<f32>(1024).unwrap();
        let args = [
            ("v", KernelArg::from_view(x.view_strided(1, [24, 7], [32, 1]).unwrap(), Access::In)),
            ("p", KernelArg::from_slice(x.slice(4..).unwrap())),
            ("n", KernelArg::from_scalar(48i32)),
            ("m", KernelArg::from_scalar(-8i64)),
            ("a", KernelArg::from_scalar(16.0f32)),
        ];
        let spec = specialization(&key(&args), true);
        assert_eq!(spec.index, DType::I32);
        assert!(spec.fp_fusion);
        let divisors: Vec<u32> = spec.hints.iter().map(|h| h.divisor).collect();
        assert_eq!(divisors, [4, 8, 1, 16, 1, 16, 16, 1, 1]);
        let known: Vec<_> = spec.hints.iter().map(|h| h.known).collect();
        assert_eq!(known, [None, None, None, None, Some(1), None, None, None, None]);
        // The view is only read but the pointer may write what it reads.
        assert_eq!((spec.hints[0].alias_class, spec.hints[5].alias_class), (0, 0));
    }

    #[test]
    fn same_facts_have_one_key_and_other_facts_another() {
        let dev = Device::open("cpu").unwrap();
        let (x, y) = (dev.zeros::<f32>(4096).unwrap(), dev.zeros::<f32>(4096).unwrap());
        let of = |b: &crate::Buffer<f32>, at: usize, n: usize| {
            key(&[("v", KernelArg::from_view(b.view_strided(at, [n], [1]).unwrap(), Access::In))]).to_vec()
        };
        assert_eq!(of(&x, 0, 64), of(&y, 32, 4000));
        assert_ne!(of(&x, 0, 64), of(&x, 1, 64));
        assert_ne!(of(&x, 0, 64), of(&x, 0, 63));
        assert_eq!(of(&x, 1, 65), of(&x, 2, 63));
    }

    #[test]
    fn coarse_views_tell_only_multiples_of_sixteen_apart() {
        let dev = Device::open("cpu").unwrap();
        let x = dev.zeros::<f32>(4096).unwrap();
        let of = |rows: usize, columns: usize| {
            let view = x.view_strided(0, [rows, columns], [columns as isize, 1]).unwrap();
            key(&[("v", KernelArg::from_view(view, Access::In).coarse())]).to_vec()
        };
        let some = [(3, 5), (4, 6), (8, 20), (16, 24)].map(|(r, c)| of(r, c));
        assert!(some.iter().all(|k| *k == some[0]));
        assert_eq!(of(16, 32), of(48, 16));
        let kinds = [of(3, 5), of(3, 16), of(3, 1)];
        for (i, a) in kinds.iter().enumerate() {
            assert!(kinds[..i].iter().all(|b| a != b), "{i}");
        }
        let spec = specialization(&of(48, 32), false);
        assert_eq!(spec.hints.iter().map(|h| h.divisor).collect::<Vec<_>>(), [16, 1, 16, 16, 1]);
        assert_eq!(spec.hints[4].known, Some(1));
    }

    #[test]
    fn wide_strides_ask_for_wide_indices() {
        let dev = Device::open("cpu").unwrap();
        let x = dev.zeros::<u8>(8).unwrap();
        let narrow = KernelArg::from_view(x.view_strided(0, [1, 8], [i32::MAX as isize, 1]).unwrap(), Access::In);
        let wide = KernelArg::from_view(x.view_strided(0, [1, 8], [1 << 31, 1]).unwrap(), Access::In);
        assert_eq!(specialization(&key(&[("x", narrow)]), false).index, DType::I32);
        assert_eq!(specialization(&key(&[("x", wide)]), false).index, DType::I64);
    }
}
