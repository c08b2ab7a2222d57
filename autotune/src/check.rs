//! Comparing a configuration's results with those of the reference configuration.
//!
//! The reference runs twice, over two different poisons: elements that hold the poison both times are not written by the
//! kernel at all, and must stay unwritten. Every other element must be written by every configuration.

use crate::failure::{Failure, FailureKind};
use crate::outputs::{CANDIDATE_POISON, Outputs, POISONS};
use half::{bf16, f16};
use tilewright_runtime::DType;

/// What the reference configuration gave.
#[derive(Debug)]
pub struct Reference {
    values: Vec<Vec<u8>>,
    /// For each piece: is element `i` left alone? Empty if every element is written.
    untouched: Vec<Vec<bool>>,
    tolerance: Option<f64>,
}

/// How far two results may lie apart by default: what sums in another order may differ by. Integers and truth values
/// must agree exactly.
pub fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => 1e-11,
        DType::F32 => 1e-4,
        DType::F16 => 4e-3,
        DType::BF16 => 3e-2,
        _ => 0.0,
    }
}

impl Reference {
    /// From the two runs over [`POISONS`].
    pub fn new(outputs: &Outputs, first: Vec<Vec<u8>>, second: &[Vec<u8>], tolerance: Option<f64>) -> Self {
        let untouched = outputs.0.iter().zip(first.iter().zip(second)).map(|(o, (a, b))| {
            if !o.only_written {
                return Vec::new();
            }
            let size = o.dtype.bytes();
            let is = |x: &[u8], poison: u8| x.iter().all(|&v| v == poison);
            let marks: Vec<bool> =
                a.chunks(size).zip(b.chunks(size)).map(|(x, y)| is(x, POISONS[0]) && is(y, POISONS[1])).collect();
            if marks.contains(&true) { marks } else { Vec::new() }
        });
        let untouched = untouched.collect();
        Self { values: first, untouched, tolerance }
    }

    /// Compares what a run over [`CANDIDATE_POISON`] left.
    ///
    /// # Errors
    /// [`FailureKind::PartialWrite`] or [`FailureKind::WrongResult`], with the first element that shows it.
    pub fn compare(&self, outputs: &Outputs, got: &[Vec<u8>]) -> Result<(), Failure> {
        for (i, output) in outputs.0.iter().enumerate() {
            let (expected, got, dtype) = (&self.values[i], &got[i], output.dtype);
            let size = dtype.bytes();
            let untouched = |e: usize| self.untouched[i].get(e).copied().unwrap_or(false);
            let tolerance = if dtype.is_float() { self.tolerance.unwrap_or(tolerance(dtype)) } else { 0.0 };
            let near = Near { dtype, expected };
            let poison = vec![CANDIDATE_POISON; size];
            let (mut missing, mut wrong) = ((0usize, 0usize), (0usize, String::new()));
            // NaN or infinity on one side only.
            let mut special = 0usize;
            for (e, (want, have)) in expected.chunks(size).zip(got.chunks(size)).enumerate() {
                if untouched(e) {
                    if have != poison {
                        note(&mut wrong, || format!("element {e} is written, but not by the reference"));
                    }
                } else if output.only_written && have == poison && want != poison {
                    if missing.0 == 0 {
                        missing.1 = e;
                    }
                    missing.0 += 1;
                } else if want != have {
                    let (w, h) = (number(dtype, want), number(dtype, have));
                    let close = || dtype.is_float() && close(w, h, tolerance, &|| near.magnitude(e), smallest(dtype));
                    if !close() {
                        note(&mut wrong, || format!("element {e} is {h:e}, the reference gives {w:e}"));
                        special += usize::from(w.is_finite() != h.is_finite() || w.is_nan() != h.is_nan());
                    }
                }
            }
            let (name, all) = (output.name, expected.len() / size);
            if missing.0 > 0 {
                let message =
                    format!("`{name}`: {} of {all} elements are not written, the first is {}", missing.0, missing.1);
                return Err(Failure::new(FailureKind::PartialWrite, message));
            }
            if wrong.0 > 0 {
                let kinds = match special {
                    0 => String::new(),
                    n => format!(" ({n} of them NaN or infinite on one side only)"),
                };
                let message = format!("`{name}`: {} of {all} elements are wrong{kinds}; {}", wrong.0, wrong.1);
                return Err(Failure::new(FailureKind::WrongResult, message));
            }
        }
        Ok(())
    }
}

fn note(found: &mut (usize, String), text: impl FnOnce() -> String) {
    if found.0 == 0 {
        found.1 = text();
    }
    found.0 += 1;
}

/// Does a result agree? Infinities and NaN only with the same; numbers within the tolerance of the wanted one's own magnitude, or
/// of what is usual near it, for a sum of large terms may come out small.
fn close(want: f64, have: f64, tolerance: f64, near: &dyn Fn() -> f64, smallest: f64) -> bool {
    if !want.is_finite() || !have.is_finite() {
        return want == have || (want.is_nan() && have.is_nan());
    }
    let apart = (want - have).abs();
    // Where the default tolerance is 0 nothing but the same will do, rounding of the smallest numbers included.
    let floor = if tolerance > 0.0 { smallest } else { 0.0 };
    apart <= tolerance * want.abs() || apart <= floor || apart <= tolerance * near()
}

/// A difference that says nothing: devices may take subnormal numbers for 0, and an f16 has only few of them.
fn smallest(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => f64::MIN_POSITIVE,
        DType::F16 => 2.0f64.powi(-23),
        _ => f32::MIN_POSITIVE.into(),
    }
}

/// Elements of one neighbourhood.
const BLOCK: usize = 32;

/// The wanted elements around one.
struct Near<'a> {
    dtype: DType,
    expected: &'a [u8],
}

impl Near<'_> {
    /// The magnitude that is usual around element `e`: of three neighbourhoods, its own and the two beside it, the largest one that a
    /// tenth of the neighbourhood reaches. So an element at the edge of a row is measured by its own row, and one element
    /// that is far larger than all others, or some, excuse nothing.
    fn magnitude(&self, e: usize) -> f64 {
        let size = self.dtype.bytes();
        let all = self.expected.len() / size;
        let block = e / BLOCK;
        let of = |b: usize| {
            let range = (b * BLOCK).min(all) * size..((b + 1) * BLOCK).min(all) * size;
            let values = self.expected[range].chunks(size).map(|x| number(self.dtype, x).abs());
            let mut values: Vec<f64> = values.filter(|v| v.is_finite() && *v > 0.0).collect();
            values.sort_by(f64::total_cmp);
            match values.len() {
                0 => 0.0,
                // Of two nobody can say which is out of the usual.
                n @ (1 | 2) => values[n - 1],
                n => values[(n - 1) * 9 / 10],
            }
        };
        of(block).max(of(block + 1)).max(if block > 0 { of(block - 1) } else { 0.0 })
    }
}

/// An element as a number; 64-bit integers lose low digits, which only messages show.
fn number(dtype: DType, bytes: &[u8]) -> f64 {
    let mut word = [0u8; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    let word = u64::from_le_bytes(word);
    match dtype {
        DType::F64 => f64::from_bits(word),
        DType::F32 => f32::from_bits(word as u32).into(),
        DType::F16 => f16::from_bits(word as u16).into(),
        DType::BF16 => bf16::from_bits(word as u16).into(),
        _ if dtype.is_signed() => {
            let unused = 64 - 8 * bytes.len() as u32;
            ((word << unused) as i64 >> unused) as f64
        }
        _ => word as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_runtime::dsl::{Access, KernelDef, KernelId};
    use tilewright_runtime::{Device, KernelArg, Launch};

    fn saved(launch: &Launch<'_>) -> Outputs {
        let mut arena = crate::arena::Arena::new(&launch.target().unwrap());
        arena.cover(launch).unwrap();
        Outputs::of(&arena.relocate(launch).unwrap(), &arena).unwrap()
    }

    /// Judges one whole output of these elements.
    fn judged(want: &[f32], have: &[f32]) -> Result<(), Failure> {
        let dev = Device::open("cpu").unwrap();
        let id = KernelId { path: "k", item: std::any::TypeId::of::<()>(), dtypes: vec![], comptime: vec![] };
        let def = KernelDef::new("k", id, |_| Err(tilewright_compiler::Error::Internal("not built".into())));
        let y = dev.zeros::<f32>(want.len()).unwrap();
        let arg = KernelArg::from_view(y.view([want.len()]).unwrap(), Access::Out);
        let outputs = saved(&Launch::new(def, vec![("y", arg)]));
        let bytes = |v: &[f32]| vec![v.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>()];
        Reference::new(&outputs, bytes(want), &bytes(want), None).compare(&outputs, &bytes(have))
    }

    #[test]
    fn found_t1_infinities_agree_in_sign_and_place() {
        let inf = f32::INFINITY;
        for (want, have) in
            [(inf, -5.0), (inf, -inf), (-inf, inf), (1.0, inf), (inf, f32::NAN), (f32::NAN, inf), (f32::NAN, 1.0)]
        {
            let e = judged(&[1.0, want, 2.0], &[1.0, have, 2.0]).unwrap_err();
            assert_eq!(e.kind, FailureKind::WrongResult, "{want} {have}");
        }
        assert!(judged(&[1.0, inf, 2.0], &[1.0, 3.0, 2.0]).unwrap_err().message.contains("1 of them NaN or infinite"));
        for same in [inf, -inf, f32::NAN] {
            judged(&[1.0, same, 2.0], &[1.0, same, 2.0]).unwrap();
        }
        // An infinity beside it excuses nothing.
        assert!(judged(&[inf, 1.0, 2.0], &[inf, 1.1, 2.0]).is_err());
    }

    #[test]
    fn found_t14_one_large_element_excuses_no_others() {
        let mut want = vec![1.0f32; 1000];
        for large in [0, 500, 999] {
            want[large] = 1e9;
            let wrong: Vec<f32> = want.iter().map(|&v| if v > 1.0 { v } else { 1.5 }).collect();
            let e = judged(&want, &wrong).unwrap_err();
            assert!(e.message.contains("of 1000 elements are wrong"), "{e}");
            let healthy: Vec<f32> = want.iter().map(|v| v * (1.0 + 1e-6)).collect();
            judged(&want, &healthy).unwrap();
        }
        // Sums of large terms that come out small among others of the usual size, in rows of very different sizes.
        let row = |scale: f32| {
            (0..200).map(move |i| if i % 7 == 0 { 1e-7 * scale } else { scale * (1.0 + i as f32 / 100.0) })
        };
        let want: Vec<f32> = row(1e6).chain(row(1e-6)).chain(row(1.0)).collect();
        let shifted = |by: f32| -> Vec<f32> {
            let scales = [1e6f32, 1e-6, 1.0];
            want.iter().enumerate().map(|(i, v)| v + by * scales[i / 200]).collect()
        };
        judged(&want, &shifted(2e-5)).unwrap();
        assert!(judged(&want, &shifted(1e-3)).is_err());
        // In the middle of the row of small ones a difference of the others' size is wrong.
        let mut one = want.clone();
        one[300] += 1e-3;
        assert!(judged(&want, &one).unwrap_err().message.contains("1 of 600"));
    }

    fn outputs(dtype_f32: bool) -> Outputs {
        let dev = Device::open("cpu").unwrap();
        let id = KernelId { path: "k", item: std::any::TypeId::of::<()>(), dtypes: vec![], comptime: vec![] };
        let def = KernelDef::new("k", id, |_| Err(tilewright_compiler::Error::Internal("not built".into())));
        if dtype_f32 {
            let y = dev.zeros::<f32>(4).unwrap();
            let arg = KernelArg::from_view(y.view([4]).unwrap(), Access::Out);
            saved(&Launch::new(def, vec![("y", arg)]))
        } else {
            let y = dev.zeros::<i64>(4).unwrap();
            let arg = KernelArg::from_view(y.view([4]).unwrap(), Access::Out);
            saved(&Launch::new(def, vec![("y", arg)]))
        }
    }

    fn bytes(values: [f32; 4]) -> Vec<Vec<u8>> {
        vec![values.iter().flat_map(|v| v.to_le_bytes()).collect()]
    }

    #[test]
    fn wrong_missing_and_extra_elements_are_told_apart() {
        let outputs = outputs(true);
        let (a, b) = (f32::from_bits(0xA5A5_A5A5), f32::from_bits(0x5A5A_5A5A));
        let poison = f32::from_bits(u32::MAX);
        // The kernel never writes the last element.
        let r = Reference::new(&outputs, bytes([1.0, 2.0, f32::NAN, a]), &bytes([1.0, 2.0, f32::NAN, b]), None);
        let check = |v| r.compare(&outputs, &bytes(v));
        assert_eq!(check([1.0, 2.0, f32::NAN, poison]), Ok(()));
        assert_eq!(check([1.00001, 2.0, f32::NAN, poison]), Ok(()));
        assert_eq!(check([1.001, 2.0, f32::NAN, poison]).unwrap_err().kind, FailureKind::WrongResult);
        assert_eq!(check([1.0, 2.0, 3.0, poison]).unwrap_err().kind, FailureKind::WrongResult);
        assert_eq!(check([1.0, poison, f32::NAN, poison]).unwrap_err().kind, FailureKind::PartialWrite);
        let extra = check([1.0, 2.0, f32::NAN, 0.0]).unwrap_err();
        assert!(extra.message.contains("element 3 is written, but not by the reference"), "{extra:?}");
        let strict = Reference::new(&outputs, bytes([1.0; 4]), &bytes([1.0; 4]), Some(0.0));
        assert!(strict.compare(&outputs, &bytes([1.0, 1.0, 1.000_001, 1.0])).is_err());
    }

    #[test]
    fn integers_agree_exactly_even_where_f64_does_not_see_it() {
        let outputs = outputs(false);
        let of = |v: i64| vec![[v; 4].iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>()];
        let r = Reference::new(&outputs, of(i64::MAX), &of(i64::MAX), Some(1.0));
        assert_eq!(r.compare(&outputs, &of(i64::MAX)), Ok(()));
        assert!(r.compare(&outputs, &of(i64::MAX - 2)).is_err());
    }
}
