//! Random kernels whose results are rounded differently on each target: elementary functions, products of fractions. Each
//! says how far from the interpreter's a result may be.

use crate::families::{Tolerance, Typed};
use crate::maker::{Fill, Maker};
use tilewright_compiler::DType;
use tilewright_compiler::tile::{BinaryOp, Constant, DotPrecision, TileType, UnaryOp};

const FLOATS: [DType; 4] = [DType::F16, DType::BF16, DType::F32, DType::F64];

/// One elementary function, quotient or remainder of numbers of every magnitude, moved before and after.
pub fn functions(seed: u64) -> Typed {
    let mut m = Maker::new(seed);
    let dtype = FLOATS[seed as usize % 4];
    let bits = m.pick(&[3, 6, 8, 9]);
    let input = m.buffer(dtype, 2 << bits, Fill::Wide);
    let p = m.pointer("x", input, 0, 1);
    let rank = 1 + m.below(3);
    let dims = m.dims(rank, bits);
    let x = m.load(p, &dims);
    let x = m.rearrange(x);
    let (y, ulps) = match m.below(10) {
        0 => {
            let other = m.pointer("z", input, 1 << bits, 1);
            let dims = m.b.ty(x).shape.dims().to_vec();
            let z = m.load(other, &dims);
            (m.b.binary(BinaryOp::Div, x, z).unwrap(), 0)
        }
        _ => {
            let op = m.pick(UnaryOp::ALL);
            // `exp2_approx` is as exact as `exp2` where it is not flushed to zero, which is for a test of its own.
            let op = if matches!(op, UnaryOp::Not | UnaryOp::Exp2Approx) { UnaryOp::Exp2 } else { op };
            (m.b.unary(op, x).unwrap(), ulps(op, dtype))
        }
    };
    let y = m.rearrange(y);
    let out = m.buffer(dtype, 1 << bits, Fill::Output);
    let out = m.pointer("out", out, 0, 2);
    m.store(out, y);
    Typed { tolerance: Tolerance::Ulps(ulps), ..m.finish() }
}

/// How many units in the last place lie between two results of an elementary function that are both as exact as the guide
/// promises: the errors of both (the platform's library rounds nearly rightly), or one for a type that is computed wider.
fn ulps(op: UnaryOp, dtype: DType) -> u64 {
    use UnaryOp as U;
    match (op, dtype) {
        (U::Neg | U::Abs | U::Floor | U::Ceil | U::Trunc | U::Round | U::Sqrt | U::Not, _) => 0,
        (_, DType::F64) => 5,
        (_, DType::F32) => 3,
        _ => 1,
    }
}

/// A product of fractions, in rounds, whose sum is off by no more than its terms allow.
pub fn products(seed: u64) -> Typed {
    let mut m = Maker::new(seed);
    let dtype = FLOATS[seed as usize % 4];
    let [rows, columns, depth] = [0; 3].map(|_| m.size(3, 6));
    let rounds = 1 + m.below(4);
    let k = depth * rounds;
    let precision = m.pick(&[DotPrecision::Ieee, DotPrecision::Tf32]);
    let (a, b) = (m.buffer(dtype, rows * k, Fill::Fractions), m.buffer(dtype, k * columns, Fill::Fractions));
    let a = m.view("a", a, 0, 1, &[rows, k], &[k as i64, 1]);
    let b = m.view("b", b, 0, 2, &[k, columns], &[columns as i64, 1]);
    let wide = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let out = m.buffer(wide, rows * columns, Fill::Output);
    let out = m.pointer("c", out, 0, 3);
    let acc = m.b.full(TileType::new(wide, [rows, columns]), Constant(0)).unwrap();
    let limit = m.scalar("k", DType::I32, k as i64);
    let (zero, step) = (m.i32(0), m.i32(depth as i64));
    let (at, inside) = m.b.begin_for(zero, limit, step, &[acc]).unwrap();
    let x = m.b.view_load(&a, &[zero, at], [rows, depth], None).unwrap();
    let y = m.b.view_load(&b, &[at, zero], [depth, columns], None).unwrap();
    let next = m.b.dot(x, y, inside[0], precision).unwrap();
    let c = m.b.end_for(&[next]).unwrap()[0];
    m.store(out, c);
    // Each of `k` additions of terms of at most 1 may be off by half a unit in the last place of the sum, on both sides
    // (tensor cores cut instead of rounding: a unit); and both operands are rounded to tf32's 11 bits where that is asked.
    let unit = if wide == DType::F64 { f64::EPSILON } else { f64::from(f32::EPSILON) };
    let tf32 = if precision == DotPrecision::Tf32 && dtype == DType::F32 { 2f64.powi(-10) } else { 0.0 };
    let k = k as f64;
    Typed { tolerance: Tolerance::Absolute(k * (k.sqrt() * 2.0 * unit + tf32)), ..m.finish() }
}
