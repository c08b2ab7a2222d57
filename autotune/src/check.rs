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
            let scale = root_mean_square(dtype, expected, untouched);
            let poison = vec![CANDIDATE_POISON; size];
            let (mut missing, mut wrong) = ((0usize, 0usize), (0usize, String::new()));
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
                    if !dtype.is_float() || !close(w, h, tolerance, scale) {
                        note(&mut wrong, || format!("element {e} is {h:e}, the reference gives {w:e}"));
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
                let message = format!("`{name}`: {} of {all} elements are wrong; {}", wrong.0, wrong.1);
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

fn close(want: f64, have: f64, tolerance: f64, scale: f64) -> bool {
    // Equal infinities have no difference; NaN agrees with NaN.
    want == have || (want.is_nan() && have.is_nan()) || (want - have).abs() <= tolerance * want.abs().max(scale)
}

fn root_mean_square(dtype: DType, bytes: &[u8], skip: impl Fn(usize) -> bool) -> f64 {
    let (mut sum, mut count) = (0.0, 0usize);
    for (e, x) in bytes.chunks(dtype.bytes()).enumerate() {
        let v = number(dtype, x);
        if v.is_finite() && !skip(e) {
            sum += v * v;
            count += 1;
        }
    }
    if count == 0 { 0.0 } else { (sum / count as f64).sqrt() }
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

    fn outputs(dtype_f32: bool) -> Outputs {
        let dev = Device::open("cpu").unwrap();
        let id = KernelId { path: "k", item: std::any::TypeId::of::<()>(), dtypes: vec![], comptime: vec![] };
        let def = KernelDef::new("k", id, |_| Err(tilewright_compiler::Error::Internal("not built".into())));
        if dtype_f32 {
            let y = dev.zeros::<f32>(4).unwrap();
            let arg = KernelArg::from_view(y.view([4]).unwrap(), Access::Out);
            Outputs::save(&Launch::new(def, vec![("y", arg)])).unwrap()
        } else {
            let y = dev.zeros::<i64>(4).unwrap();
            let arg = KernelArg::from_view(y.view([4]).unwrap(), Access::Out);
            Outputs::save(&Launch::new(def, vec![("y", arg)])).unwrap()
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
