//! Every elementwise op: one element through [`eval_elementwise`], whole tiles through kernels, both against
//! expectations in wider arithmetic.

use super::super::scalar::eval_elementwise;
use super::{input, launch, map_kernel, ok, out};
use crate::dtype::{DType, Kind};
use crate::tile::{BinaryOp, Builder, Cmp, Constant, Op, UnaryOp, Value};
use half::{bf16, f16};

/// The values of an integer type that its 8 low bits stand for, or for wider types its interesting ones.
fn samples(dtype: DType) -> Vec<i128> {
    let width = dtype.bits();
    if width == 8 {
        return (0..256).map(|b| wrap(dtype, b)).collect();
    }
    let (min, max) = range(dtype);
    let mut all = vec![0, 1, 2, 3, 7, 10, 31, 32, 33, 63, 64, 100, min, min + 1, min / 2, max, max - 1, max / 2];
    if min < 0 {
        all.extend([-1, -2, -3, -7, -10, -64]);
    }
    all
}

fn range(dtype: DType) -> (i128, i128) {
    let width = dtype.bits();
    if dtype.is_signed() { (-(1 << (width - 1)), (1 << (width - 1)) - 1) } else { (0, (1 << width) - 1) }
}

/// The value of the type that is congruent.
fn wrap(dtype: DType, x: i128) -> i128 {
    let (min, max) = range(dtype);
    let low = x.rem_euclid(max - min + 1);
    if low > max { low - (max - min + 1) } else { low }
}

fn bits(dtype: DType, x: i128) -> u64 {
    x as u64 & if dtype.bits() == 64 { u64::MAX } else { (1 << dtype.bits()) - 1 }
}

/// What the table of ops says, in exact arithmetic.
fn expected_binary(op: BinaryOp, d: DType, x: i128, y: i128) -> Option<i128> {
    let width = d.bits();
    let shift = y.rem_euclid(width.into()) as u32;
    Some(match op {
        BinaryOp::Add => x + y,
        BinaryOp::Sub => x - y,
        BinaryOp::Mul => x.wrapping_mul(y),
        BinaryOp::Div => x.checked_div(y).unwrap_or(0),
        BinaryOp::Rem => x.checked_rem(y).unwrap_or(x),
        BinaryOp::FloorDiv => match y {
            0 => 0,
            _ => (x - (x % y + y) % y) / y,
        },
        BinaryOp::FloorMod => match y {
            0 => x,
            _ => (x % y + y) % y,
        },
        BinaryOp::MulHi if d == DType::U64 => ((x as u128 * y as u128) >> 64) as i128,
        BinaryOp::MulHi => (x * y) >> width,
        BinaryOp::And => x & y,
        BinaryOp::Or => x | y,
        BinaryOp::Xor => x ^ y,
        BinaryOp::Shl => x << shift,
        BinaryOp::Shr => x >> shift,
        BinaryOp::Min => x.min(y),
        BinaryOp::Max => x.max(y),
        BinaryOp::FMin | BinaryOp::FMax => return None,
    })
}

const INTS: [DType; 8] = [DType::I8, DType::I16, DType::I32, DType::I64, DType::U8, DType::U16, DType::U32, DType::U64];

#[test]
fn integer_binary_ops_agree_with_exact_arithmetic() {
    for d in INTS {
        let values = samples(d);
        for &op in BinaryOp::ALL {
            for &x in &values {
                for &y in &values {
                    let expected = expected_binary(op, d, x, y).map(|v| bits(d, v));
                    let got = eval_elementwise(&Op::Binary(op), &[d, d], &[bits(d, x), bits(d, y)], d);
                    assert_eq!(got, expected, "{op} of {x} and {y} as {d}");
                }
            }
        }
    }
}

#[test]
fn integer_tiles_agree_with_single_elements() {
    for d in INTS {
        // Every pair of 16 samples, as a tile: also through the loops that vectorise.
        let values: Vec<u64> = samples(d).iter().step_by(samples(d).len() / 16).take(16).map(|&v| bits(d, v)).collect();
        let (mut x, mut y) = (Vec::new(), Vec::new());
        for &a in &values {
            for &b in &values {
                x.extend(&a.to_le_bytes()[..d.bytes()]);
                y.extend(&b.to_le_bytes()[..d.bytes()]);
            }
        }
        for &op in BinaryOp::ALL.iter().filter(|op| !matches!(op, BinaryOp::FMin | BinaryOp::FMax)) {
            let func = map_kernel(&[d, d], d, 256, |b, v| ok(b.binary(op, v[0], v[1])));
            let mut result = vec![0u64; 256 * d.bytes() / 8];
            launch(&func, [1, 1, 1], vec![input(&aligned(&x)), input(&aligned(&y)), out(&mut result)]).unwrap();
            let result: &[u8] = bytemuck::cast_slice(&result);
            for i in 0..256 {
                let expected =
                    eval_elementwise(&Op::Binary(op), &[d, d], &[values[i / 16], values[i % 16]], d).unwrap();
                assert_eq!(
                    result[i * d.bytes()..][..d.bytes()],
                    expected.to_le_bytes()[..d.bytes()],
                    "{op} of {d}, {i}"
                );
            }
        }
    }
}

/// The bytes in 8-byte words, so that they may be read as any type.
fn aligned(bytes: &[u8]) -> Vec<u64> {
    let mut words = vec![0u64; bytes.len().div_ceil(8)];
    bytemuck::cast_slice_mut::<u64, u8>(&mut words)[..bytes.len()].copy_from_slice(bytes);
    words
}

#[test]
fn integer_unary_ops_wrap() {
    for d in INTS {
        for x in samples(d) {
            let eval = |op| eval_elementwise(&Op::Unary(op), &[d], &[bits(d, x)], d);
            assert_eq!(eval(UnaryOp::Neg), Some(bits(d, -x)), "-{x} as {d}");
            assert_eq!(eval(UnaryOp::Not), Some(bits(d, -1 - x)), "!{x} as {d}");
            assert_eq!(eval(UnaryOp::Abs), Some(bits(d, x.abs())), "|{x}| as {d}");
            assert_eq!(eval(UnaryOp::Exp), None);
        }
    }
}

#[test]
fn bool_has_logic_and_nothing_else() {
    let d = DType::Bool;
    for (x, y) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let eval = |op| eval_elementwise(&Op::Binary(op), &[d, d], &[x, y], d);
        assert_eq!(eval(BinaryOp::And), Some(x & y));
        assert_eq!(eval(BinaryOp::Or), Some(x | y));
        assert_eq!(eval(BinaryOp::Xor), Some(x ^ y));
        assert_eq!(eval(BinaryOp::Add), None);
        assert_eq!(eval_elementwise(&Op::Unary(UnaryOp::Not), &[d], &[x], d), Some(1 - x));
        for (op, expected) in [(Cmp::Lt, x < y), (Cmp::Eq, x == y), (Cmp::Ge, x >= y)] {
            assert_eq!(eval_elementwise(&Op::Compare(op), &[d, d], &[x, y], d), Some(expected.into()));
        }
    }
}

#[test]
fn comparisons_respect_sign_and_nan() {
    let eval = |op, d, x, y| eval_elementwise(&Op::Compare(op), &[d, d], &[x, y], DType::Bool).unwrap() == 1;
    assert!(eval(Cmp::Lt, DType::I8, 0xff, 0), "-1 < 0");
    assert!(eval(Cmp::Gt, DType::U8, 0xff, 0), "255 > 0");
    for d in DType::ALL.into_iter().filter(|d| d.is_float()) {
        let c = |v| Constant::from_f64(d, v).0;
        for other in [0.0, 1.0, f64::INFINITY, f64::NAN] {
            for op in [Cmp::Eq, Cmp::Lt, Cmp::Le, Cmp::Gt, Cmp::Ge] {
                assert!(!eval(op, d, c(f64::NAN), c(other)) && !eval(op, d, c(other), c(f64::NAN)), "{op} {d}");
            }
            assert!(eval(Cmp::Ne, d, c(f64::NAN), c(other)));
        }
        assert!(eval(Cmp::Eq, d, c(0.0), c(-0.0)));
        assert!(eval(Cmp::Lt, d, c(f64::NEG_INFINITY), c(-1.0)));
    }
}

// ---- floats -----------------------------------------------------------------------------------------------------

/// Every finite value of a 16-bit float, ascending, as doubles with their bits; -0 is left out.
fn table(decode: impl Fn(u16) -> f64) -> Vec<(f64, u16)> {
    let mut all: Vec<(f64, u16)> =
        (0..=u16::MAX).map(|bits| (decode(bits), bits)).filter(|(v, bits)| v.is_finite() && *bits != 0x8000).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    all
}

/// Decodes a 16-bit float with so many bits of mantissa and of exponent, from the definition.
fn decode(bits: u16, mantissa_bits: u32, exponent_bits: u32) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let mantissa = f64::from(bits & ((1 << mantissa_bits) - 1)) / f64::from(1u32 << mantissa_bits);
    let (all_ones, bias) = ((1i32 << exponent_bits) - 1, (1i32 << (exponent_bits - 1)) - 1);
    match i32::from(bits >> mantissa_bits) & all_ones {
        0 => sign * mantissa * f64::powi(2.0, 1 - bias),
        e if e == all_ones && mantissa == 0.0 => sign * f64::INFINITY,
        e if e == all_ones => f64::NAN,
        e => sign * (1.0 + mantissa) * f64::powi(2.0, e - bias),
    }
}

/// The nearest of the table's values, ties to the even one, infinity half a step beyond the last; +0 for zeros.
fn nearest(table: &[(f64, u16)], x: f64, infinity: u16) -> u16 {
    let (last, before) = (table[table.len() - 1].0, table[table.len() - 2].0);
    if x.abs() >= last + (last - before) / 2.0 {
        return infinity | if x < 0.0 { 0x8000 } else { 0 };
    }
    let i = table.partition_point(|(v, _)| *v < x);
    if i == table.len() {
        return table[i - 1].1;
    }
    if i == 0 || table[i].0 == x {
        return table[i].1;
    }
    let ((a, a_bits), (b, b_bits)) = (table[i - 1], table[i]);
    // Exact: neighbours differ by a power of two, and x has at most 53 bits in the range tested.
    match (x - a).total_cmp(&(b - x)) {
        std::cmp::Ordering::Less => a_bits,
        std::cmp::Ordering::Greater => b_bits,
        std::cmp::Ordering::Equal => {
            if a_bits & 1 == 0 {
                a_bits
            } else {
                b_bits
            }
        }
    }
}

/// The types of 16 bits with: bits of mantissa, of exponent, the bits of infinity.
const HALVES: [(DType, u32, u32, u16); 2] = [(DType::F16, 10, 5, 0x7c00), (DType::BF16, 7, 8, 0x7f80)];

fn cast(from: DType, to: DType, bits: u64) -> u64 {
    eval_elementwise(&Op::Cast, &[from], &[bits], to).unwrap()
}

#[test]
fn all_16_bit_floats_convert_exactly() {
    for (d, m, e, _) in HALVES {
        for bits in 0..=u16::MAX {
            let expected = decode(bits, m, e);
            let wide = f32::from_bits(cast(d, DType::F32, bits.into()) as u32);
            let double = f64::from_bits(cast(d, DType::F64, bits.into()));
            if expected.is_nan() {
                assert!(wide.is_nan() && double.is_nan());
                assert!(decode(cast(DType::F32, d, wide.to_bits().into()) as u16, m, e).is_nan());
                assert_eq!(cast(d, DType::I32, bits.into()), 0, "NaN to integer");
                continue;
            }
            assert_eq!(f64::from(wide).to_bits(), expected.to_bits());
            assert_eq!(double.to_bits(), expected.to_bits());
            assert_eq!(cast(DType::F32, d, wide.to_bits().into()), bits.into());
            assert_eq!(cast(DType::F64, d, double.to_bits()), bits.into());
            // Rust's `as` of the exact value, for each integer type.
            assert_eq!(cast(d, DType::I8, bits.into()), u64::from(expected as i8 as u8));
            assert_eq!(cast(d, DType::U16, bits.into()), u64::from(expected as u16));
            assert_eq!(cast(d, DType::I64, bits.into()), expected as i64 as u64);
            assert_eq!(cast(d, DType::U64, bits.into()), expected as u64);
            assert_eq!(cast(d, DType::Bool, bits.into()), u64::from(expected != 0.0));
        }
    }
}

#[test]
fn casts_to_16_bit_floats_round_once() {
    for (d, m, e, infinity) in HALVES {
        let table = table(|bits| decode(bits, m, e));
        // Around every tie between neighbours: the tie, and just above and below it, as near as f64 can say.
        for pair in table.windows(2).step_by(7) {
            let tie = (pair[0].0 + pair[1].0) / 2.0;
            for x in [tie, tie.next_up(), tie.next_down(), pair[0].0 + (tie - pair[0].0) / 2.0] {
                let got = cast(DType::F64, d, x.to_bits()) as u16;
                let expected = nearest(&table, x, infinity);
                assert!(
                    got == expected || got | 0x8000 == 0x8000 && expected == 0,
                    "{x:e} as {d}: {got:#x} {expected:#x}"
                );
            }
        }
        let largest = table[table.len() - 1].0;
        for x in [largest * 1.0001, largest * 2.0, 1e300, f64::INFINITY] {
            assert_eq!(cast(DType::F64, d, x.to_bits()) as u16, nearest(&table, x, infinity));
            assert_eq!(cast(DType::F64, d, (-x).to_bits()) as u16, nearest(&table, -x, infinity));
        }
        assert_eq!(cast(DType::F64, d, 1e-300f64.to_bits()), 0);
        assert_eq!(cast(DType::F64, d, (-1e-300f64).to_bits()), 0x8000);
        assert!(decode(cast(DType::F64, d, f64::NAN.to_bits()) as u16, m, e).is_nan());
        // Integers around ties, too wide for f64 or f32 to hold.
        for shift in 12..63 {
            for near in [-1i64, 0, 1] {
                // One and a half steps of the 8 or 11 significant bits.
                let x = (1i64 << shift) + (3i64 << (shift - i64::from(m) - 1)) + near;
                let exact = cast(DType::I64, d, x as u64) as u16;
                let tie_is_even =
                    nearest(&table, ((1i64 << shift) as f64) * (1.0 + 1.5 * f64::powi(2.0, -(m as i32))), infinity);
                let down = nearest(&table, ((1i64 << shift) as f64) * (1.0 + f64::powi(2.0, -(m as i32))), infinity);
                if shift < 16 || d == DType::BF16 {
                    let expected = if near < 0 { down } else { tie_is_even };
                    assert_eq!(exact, expected, "{x} as {d}");
                    assert_eq!(cast(DType::U64, d, x as u64) as u16, expected, "{x} as {d}");
                    assert_eq!(cast(DType::I64, d, -x as u64) as u16, expected | 0x8000, "-{x} as {d}");
                } else {
                    assert_eq!(exact, infinity);
                }
            }
        }
    }
}

#[test]
fn constants_round_like_casts() {
    for (d, m, e, _) in HALVES {
        for pair in table(|bits| decode(bits, m, e)).windows(2).step_by(13) {
            let tie = (pair[0].0 + pair[1].0) / 2.0;
            for x in [tie.next_down(), tie, tie.next_up()] {
                assert_eq!(Constant::from_f64(d, x).0, cast(DType::F64, d, x.to_bits()), "{x:e} as {d}");
            }
        }
    }
}

#[test]
fn arithmetic_of_16_bit_floats_rounds_the_exact_result() {
    let mut random = super::Random(1);
    for (d, m, e, infinity) in HALVES {
        let table = table(|bits| decode(bits, m, e));
        let mut tested = 0;
        while tested < 20_000 {
            let (x, y) = (random.bits() as u16, random.bits() as u16);
            let (fx, fy) = (decode(x, m, e), decode(y, m, e));
            // Sums of operands far apart are not exact in f64; those the f32 rounding decides as well.
            if !fx.is_finite() || !fy.is_finite() || fx == 0.0 || fy == 0.0 || (fx / fy).abs().log2().abs() > 12.0 {
                continue;
            }
            tested += 1;
            for (op, exact) in
                [(BinaryOp::Add, fx + fy), (BinaryOp::Sub, fx - fy), (BinaryOp::Mul, fx * fy), (BinaryOp::Div, fx / fy)]
            {
                // Results below the normal range of bf16 are below that of f32, too, and round twice.
                if exact != 0.0 && exact.abs() < f64::powi(2.0, -100) {
                    continue;
                }
                let got = eval_elementwise(&Op::Binary(op), &[d, d], &[x.into(), y.into()], d).unwrap() as u16;
                let expected = nearest(&table, exact, infinity);
                assert!(got == expected || expected == 0 && got == 0x8000, "{op} of {fx:e} and {fy:e} as {d}");
            }
        }
    }
}

#[test]
fn every_unary_op_of_every_f16_agrees_between_tile_and_element() {
    let all: Vec<u16> = (0..=u16::MAX).collect();
    for &op in UnaryOp::ALL.iter().filter(|op| **op != UnaryOp::Not) {
        let func = map_kernel(&[DType::F16], DType::F16, 1 << 16, |b, v| ok(b.unary(op, v[0])));
        let mut got = vec![0u16; 1 << 16];
        launch(&func, [1, 1, 1], vec![input(&all), out(&mut got)]).unwrap();
        for x in all.iter().copied() {
            let expected = eval_elementwise(&Op::Unary(op), &[DType::F16], &[x.into()], DType::F16).unwrap() as u16;
            let (g, e) = (f16::from_bits(got[usize::from(x)]), f16::from_bits(expected));
            assert!(g.to_bits() == e.to_bits() || g.is_nan() && e.is_nan(), "{op} of {x:#x}: {g} {e}");
        }
    }
}

/// A double-precision reference of each function.
fn reference(op: UnaryOp, x: f64) -> f64 {
    match op {
        UnaryOp::Neg => -x,
        UnaryOp::Not => f64::NAN,
        UnaryOp::Abs => x.abs(),
        UnaryOp::Exp => x.exp(),
        UnaryOp::Exp2 | UnaryOp::Exp2Approx => x.exp2(),
        UnaryOp::Log => x.ln(),
        UnaryOp::Log2 => x.log2(),
        UnaryOp::Sin => x.sin(),
        UnaryOp::Cos => x.cos(),
        UnaryOp::Tanh => x.tanh(),
        // The Taylor series, good for small arguments; else the op is tested by its limits.
        UnaryOp::Erf => {
            let (mut term, mut sum) = (x, x);
            for n in 1..60 {
                term *= -x * x / f64::from(n);
                sum += term / f64::from(2 * n + 1);
            }
            sum * std::f64::consts::FRAC_2_SQRT_PI
        }
        UnaryOp::Sqrt => x.sqrt(),
        UnaryOp::Rsqrt => x.sqrt().recip(),
        UnaryOp::Floor => x.floor(),
        UnaryOp::Ceil => x.ceil(),
        UnaryOp::Trunc => x.trunc(),
        UnaryOp::Round => x.round_ties_even(),
    }
}

#[test]
fn elementary_functions_of_f32_are_accurate() {
    let mut x = Vec::new();
    for i in 0..1024 {
        x.push((i as f32 - 512.0) / 256.0);
    }
    for &op in UnaryOp::ALL.iter().filter(|op| **op != UnaryOp::Not) {
        let func = map_kernel(&[DType::F32], DType::F32, 1024, |b, v| ok(b.unary(op, v[0])));
        let mut got = vec![0f32; 1024];
        launch(&func, [1, 1, 1], vec![input(&x), out(&mut got)]).unwrap();
        for (&x, &got) in x.iter().zip(&got) {
            let expected = reference(op, f64::from(x));
            let ulp = f64::from(f32::EPSILON) * expected.abs().max(1e-30);
            let same = expected.is_nan() && got.is_nan() || f64::from(got) == expected;
            assert!(same || (f64::from(got) - expected).abs() <= 1.01 * ulp, "{op} of {x}: {got}, expected {expected}");
        }
    }
}

#[test]
fn functions_at_the_edges() {
    for d in DType::ALL.into_iter().filter(|d| d.is_float()) {
        let c = |v| Constant::from_f64(d, v);
        let eval = |op, x| Constant(eval_elementwise(&Op::Unary(op), &[d], &[c(x).0], d).unwrap()).as_f64(d);
        let inf = f64::INFINITY;
        for (op, x, expected) in [
            (UnaryOp::Exp, -inf, 0.0),
            (UnaryOp::Exp, inf, inf),
            (UnaryOp::Exp2, 10.0, 1024.0),
            (UnaryOp::Log, 0.0, -inf),
            (UnaryOp::Log, inf, inf),
            (UnaryOp::Log2, 8.0, 3.0),
            (UnaryOp::Tanh, inf, 1.0),
            (UnaryOp::Tanh, -inf, -1.0),
            (UnaryOp::Erf, inf, 1.0),
            (UnaryOp::Erf, -30.0, -1.0),
            (UnaryOp::Rsqrt, 0.0, inf),
            (UnaryOp::Rsqrt, inf, 0.0),
            (UnaryOp::Rsqrt, 4.0, 0.5),
            (UnaryOp::Round, 2.5, 2.0),
            (UnaryOp::Round, 3.5, 4.0),
            (UnaryOp::Round, -0.5, -0.0),
            (UnaryOp::Trunc, -1.75, -1.0),
            (UnaryOp::Floor, -1.25, -2.0),
            (UnaryOp::Ceil, -1.25, -1.0),
            (UnaryOp::Neg, 0.0, -0.0),
            (UnaryOp::Abs, -0.0, 0.0),
            (UnaryOp::Sqrt, -0.0, -0.0),
            (UnaryOp::Sin, -0.0, -0.0),
            (UnaryOp::Cos, 0.0, 1.0),
        ] {
            assert_eq!(eval(op, x).to_bits(), expected.to_bits(), "{op} of {x} as {d}");
        }
        for (op, x) in [(UnaryOp::Log, -1.0), (UnaryOp::Sqrt, -1.0), (UnaryOp::Rsqrt, -1.0), (UnaryOp::Sin, inf)] {
            assert!(eval(op, x).is_nan(), "{op} of {x} as {d}");
        }
        for &op in UnaryOp::ALL.iter().filter(|op| **op != UnaryOp::Not) {
            assert!(eval(op, f64::NAN).is_nan(), "{op} of NaN as {d}");
        }
    }
}

#[test]
fn minimum_and_maximum_order_zeros_and_treat_nan() {
    for d in DType::ALL.into_iter().filter(|d| d.is_float()) {
        let c = |v| Constant::from_f64(d, v).0;
        let eval = |op, x, y| Constant(eval_elementwise(&Op::Binary(op), &[d, d], &[c(x), c(y)], d).unwrap()).as_f64(d);
        for (x, y) in [(0.0, -0.0), (-0.0, 0.0)] {
            for op in [BinaryOp::Min, BinaryOp::FMin] {
                assert_eq!(eval(op, x, y).to_bits(), (-0.0f64).to_bits(), "{op} {d}");
            }
            for op in [BinaryOp::Max, BinaryOp::FMax] {
                assert_eq!(eval(op, x, y).to_bits(), 0.0f64.to_bits(), "{op} {d}");
            }
        }
        for (x, y) in [(1.0, f64::NAN), (f64::NAN, 1.0)] {
            assert!(eval(BinaryOp::Min, x, y).is_nan() && eval(BinaryOp::Max, x, y).is_nan());
            assert_eq!((eval(BinaryOp::FMin, x, y), eval(BinaryOp::FMax, x, y)), (1.0, 1.0));
        }
        assert!(eval(BinaryOp::FMin, f64::NAN, f64::NAN).is_nan());
        for (x, y) in [(1.0, 2.0), (2.0, 1.0), (f64::NEG_INFINITY, 3.0), (-1.0, -2.0), (5.0, 5.0)] {
            for (op, expected) in [(BinaryOp::Min, f64::min(x, y)), (BinaryOp::FMax, f64::max(x, y))] {
                assert_eq!(eval(op, x, y), expected, "{op} of {x} and {y} as {d}");
            }
        }
    }
}

#[test]
fn float_division_remainder_and_fma() {
    for d in DType::ALL.into_iter().filter(|d| d.is_float()) {
        let c = |v| Constant::from_f64(d, v).0;
        let eval = |op, x, y| Constant(eval_elementwise(&Op::Binary(op), &[d, d], &[c(x), c(y)], d).unwrap()).as_f64(d);
        assert_eq!(eval(BinaryOp::Div, 1.0, 0.0), f64::INFINITY);
        assert_eq!(eval(BinaryOp::Div, 1.0, -0.0), f64::NEG_INFINITY);
        assert!(eval(BinaryOp::Div, 0.0, 0.0).is_nan());
        assert_eq!(eval(BinaryOp::Rem, -7.5, 2.0), -1.5);
        assert_eq!(eval(BinaryOp::Rem, 7.5, -2.0), 1.5);
        assert!(eval(BinaryOp::Rem, 1.0, 0.0).is_nan());
        assert_eq!(eval(BinaryOp::Rem, 1.0, f64::INFINITY), 1.0);
        assert_eq!(eval_elementwise(&Op::Binary(BinaryOp::And), &[d, d], &[0, 0], d), None);
        let fma = eval_elementwise(&Op::Fma, &[d; 3], &[c(3.0), c(4.0), c(5.0)], d).unwrap();
        assert_eq!(Constant(fma).as_f64(d), 17.0);
    }
    // (1 + e)^2 - 1 - 2e is e^2 exactly: lost if the product were rounded.
    let x = 1.0 + f32::EPSILON;
    let c = |v: f32| u64::from(v.to_bits());
    let z = -1.0 - 2.0 * f32::EPSILON;
    let got = eval_elementwise(&Op::Fma, &[DType::F32; 3], &[c(x), c(x), c(z)], DType::F32).unwrap();
    assert_eq!(f32::from_bits(got as u32), f32::EPSILON * f32::EPSILON);
}

#[test]
fn integer_casts_are_rusts() {
    for from in INTS {
        for x in samples(from) {
            for to in INTS {
                assert_eq!(cast(from, to, bits(from, x)), bits(to, wrap(to, x)), "{x} from {from} to {to}");
            }
            assert_eq!(cast(from, DType::Bool, bits(from, x)), u64::from(x != 0));
            assert_eq!(cast(from, DType::F64, bits(from, x)), (x as f64).to_bits());
            assert_eq!(cast(from, DType::F32, bits(from, x)), u64::from((x as f32).to_bits()));
        }
    }
    for to in DType::ALL {
        assert_eq!(cast(DType::Bool, to, 1), Constant::from_i64(to, 1).0);
        assert_eq!(cast(DType::Bool, to, 0), 0);
    }
}

#[test]
fn float_to_integer_saturates() {
    for from in [DType::F32, DType::F64] {
        let c = |v| Constant::from_f64(from, v).0;
        for to in INTS {
            let (min, max) = range(to);
            assert_eq!(cast(from, to, c(f64::INFINITY)), bits(to, max));
            assert_eq!(cast(from, to, c(f64::NEG_INFINITY)), bits(to, min));
            assert_eq!(cast(from, to, c(1e30)), bits(to, max));
            assert_eq!(cast(from, to, c(f64::NAN)), 0);
            assert_eq!(cast(from, to, c(2.9)), 2);
            assert_eq!(cast(from, to, c(-2.9)), bits(to, (-2).max(min)));
        }
        assert_eq!(cast(from, DType::Bool, c(f64::NAN)), 1);
        assert_eq!(cast(from, DType::Bool, c(-0.0)), 0);
    }
}

#[test]
fn every_pair_of_types_casts_the_same_in_tiles() {
    for from in DType::ALL {
        // 64 elements with all sorts of bits; a bool tile holds 0 and 1 only.
        let mut random = super::Random(7);
        let elements: Vec<u64> = (0..64)
            .map(|_| if from == DType::Bool { random.bits() & 1 } else { random.bits() >> (64 - from.bits()) })
            .collect();
        let bytes: Vec<u8> = elements.iter().flat_map(|e| e.to_le_bytes()[..from.bytes()].to_vec()).collect();
        for to in DType::ALL.into_iter().filter(|&to| to != from) {
            let func = map_kernel(&[from], to, 64, |b, v| ok(b.cast(v[0], to)));
            let mut got = vec![0u64; 8 * to.bytes()];
            launch(&func, [1, 1, 1], vec![input(&aligned(&bytes)), out(&mut got)]).unwrap();
            let got: &[u8] = bytemuck::cast_slice(&got);
            for (i, &x) in elements.iter().enumerate() {
                let expected = cast(from, to, x).to_le_bytes();
                let nan = to.is_float() && Constant(cast(from, to, x)).as_f64(to).is_nan();
                assert!(nan || got[i * to.bytes()..][..to.bytes()] == expected[..to.bytes()], "{x:#x}: {from} to {to}");
            }
        }
    }
}

#[test]
fn bitcasts_keep_bits() {
    assert_eq!(eval_elementwise(&Op::Bitcast, &[DType::F32], &[0x3f80_0000], DType::I32), Some(0x3f80_0000));
    assert_eq!(eval_elementwise(&Op::Bitcast, &[DType::F32], &[0], DType::I64), None);
    // An arange is kept as a formula of integers, which means nothing as floats.
    let func = map_kernel(&[], DType::F32, 8, |b, _| {
        let lanes = ok(b.arange(0x3f80_0000, 8));
        ok(b.bitcast(lanes, DType::F32))
    });
    let mut got = [0f32; 8];
    launch(&func, [1, 1, 1], vec![out(&mut got)]).unwrap();
    assert_eq!(got, std::array::from_fn(|i| f32::from_bits(0x3f80_0000 + i as u32)));
}

#[test]
fn select_takes_either_side() {
    for d in DType::ALL {
        let n = 16;
        let (x, y): (Vec<u64>, Vec<u64>) = (vec![0; 16], vec![0x0101_0101_0101_0101; 16]);
        let condition: [u8; 16] = std::array::from_fn(|i| (i % 3 == 0).into());
        let func = map_kernel(&[DType::Bool, d, d], d, n, |b, v| ok(b.select(v[0], v[1], v[2])));
        let mut got = [0u64; 16];
        launch(&func, [1, 1, 1], vec![input(&condition), input(&x), input(&y), out(&mut got)]).unwrap();
        let got: &[u8] = bytemuck::cast_slice(&got);
        for i in 0..n {
            // The upper byte of the pattern is 1 in every type, also in bool.
            assert_eq!(got[(i + 1) * d.bytes() - 1], u8::from(i % 3 != 0), "{d}");
        }
    }
}

#[test]
fn uniform_and_formula_operands_mean_the_same_as_dense_ones() {
    // The same numbers: as a formula (arange), and loaded.
    let n = 2048;
    let data: Vec<i32> = (0..n as i32).map(|i| i - 1000).collect();
    type Case = (&'static str, fn(&mut Builder, Value) -> Value);
    let ops: Vec<Case> = vec![
        ("x * 3 + 7", |b, x| {
            let (three, seven) = (super::int(b, 3), super::int(b, 7));
            let x = ok(b.binary(BinaryOp::Mul, three, x));
            ok(b.binary(BinaryOp::Add, x, seven))
        }),
        ("x * x", |b, x| ok(b.binary(BinaryOp::Mul, x, x))),
        ("x * 3000000 wraps", |b, x| {
            let big = super::int(b, 3_000_000);
            ok(b.binary(BinaryOp::Mul, x, big))
        }),
        ("10 - x", |b, x| {
            let ten = super::int(b, 10);
            ok(b.binary(BinaryOp::Sub, ten, x))
        }),
        ("x / 3", |b, x| {
            let three = super::int(b, 3);
            ok(b.binary(BinaryOp::Div, x, three))
        }),
        ("i32(u32(x))", |b, x| {
            let x = ok(b.cast(x, DType::U32));
            ok(b.cast(x, DType::I32))
        }),
        ("i32(i64(x) * 2^31)", |b, x| {
            let x = ok(b.cast(x, DType::I64));
            let big = ok(b.const_i64(DType::I64, 1 << 31));
            let x = ok(b.binary(BinaryOp::Mul, x, big));
            ok(b.cast(x, DType::I32))
        }),
        ("i32(x < 5)", |b, x| {
            let five = super::int(b, 5);
            let c = ok(b.compare(Cmp::Lt, x, five));
            ok(b.cast(c, DType::I32))
        }),
        ("i32(x >= -1000)", |b, x| {
            let least = super::int(b, -1000);
            let c = ok(b.compare(Cmp::Ge, x, least));
            ok(b.cast(c, DType::I32))
        }),
        ("i32(x == x)", |b, x| {
            let c = ok(b.compare(Cmp::Eq, x, x));
            ok(b.cast(c, DType::I32))
        }),
        ("i32(f32(x))", |b, x| {
            let x = ok(b.cast(x, DType::F32));
            ok(b.cast(x, DType::I32))
        }),
    ];
    for (name, op) in ops {
        let dense = map_kernel(&[DType::I32], DType::I32, n, |b, v| op(b, v[0]));
        let formula = map_kernel(&[], DType::I32, n, |b, _| {
            let x = ok(b.arange(-1000, n));
            op(b, x)
        });
        let (mut a, mut c) = (vec![0i32; n], vec![1i32; n]);
        launch(&dense, [1, 1, 1], vec![input(&data), out(&mut a)]).unwrap();
        launch(&formula, [1, 1, 1], vec![out(&mut c)]).unwrap();
        assert_eq!(a, c, "{name}");
    }
}

#[test]
fn undefined_combinations_are_none() {
    let (f, i) = (DType::F32, DType::I32);
    assert_eq!(eval_elementwise(&Op::Binary(BinaryOp::Add), &[f, i], &[0, 0], f), None);
    assert_eq!(eval_elementwise(&Op::Binary(BinaryOp::Add), &[f], &[0], f), None);
    assert_eq!(eval_elementwise(&Op::Binary(BinaryOp::Add), &[f, f], &[0, 0], i), None);
    assert_eq!(eval_elementwise(&Op::Fma, &[i; 3], &[0; 3], i), None);
    assert_eq!(eval_elementwise(&Op::Reshape, &[i], &[0], i), None);
    assert_eq!(i.kind(), Kind::Signed);
}

#[test]
fn bf16_tiles_agree_with_elements() {
    let x: Vec<bf16> = (0..512).map(|i| bf16::from_f32(i as f32 * 0.37 - 60.0)).collect();
    let y: Vec<bf16> = (0..512).map(|i| bf16::from_f32(3.0 - i as f32 * 0.01)).collect();
    for op in [BinaryOp::Add, BinaryOp::Mul, BinaryOp::Div, BinaryOp::Max, BinaryOp::FMin, BinaryOp::Rem] {
        let func = map_kernel(&[DType::BF16; 2], DType::BF16, 512, |b, v| ok(b.binary(op, v[0], v[1])));
        let mut got = vec![bf16::ZERO; 512];
        launch(&func, [1, 1, 1], vec![input(&x), input(&y), out(&mut got)]).unwrap();
        for i in 0..512 {
            let bits = [u64::from(x[i].to_bits()), u64::from(y[i].to_bits())];
            let expected = eval_elementwise(&Op::Binary(op), &[DType::BF16; 2], &bits, DType::BF16).unwrap();
            assert_eq!(u64::from(got[i].to_bits()), expected, "{op} of {} and {}", x[i], y[i]);
        }
    }
}
