//! The families of random kernels, and when two results are the same.

use crate::common::{Case, Failure};
use crate::{generated, kernels, numeric};
use tilewright_compiler::DType;
use tilewright_compiler::pipeline::Options;
use tilewright_compiler::tile::Constant;

/// A kernel and the element type of each of its buffers.
#[derive(Clone)]
pub struct Typed {
    /// The kernel.
    pub case: Case,
    /// Element types by buffer.
    pub dtypes: Vec<DType>,
    /// How far apart floats may be.
    pub tolerance: Tolerance,
}

/// How far a result may be from the interpreter's.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Tolerance {
    /// The same bits.
    Exact,
    /// So many units in the last place; infinities, NaN and the signs of zeros are the same.
    Ulps(u64),
    /// A difference.
    Absolute(f64),
}

/// Kernels by seed.
pub struct Family {
    /// What it is called.
    pub name: &'static str,
    /// The kernel of a seed.
    pub make: fn(u64) -> Typed,
    /// How many seeds the simulator runs when nobody asks for a number.
    pub seeds: u64,
}

pub const FAMILIES: &[Family] = &[
    Family { name: "generated", make: generated::exact, seeds: 150 },
    Family { name: "generated large", make: generated::large, seeds: 15 },
    Family { name: "generated special", make: generated::special, seeds: 60 },
    Family { name: "reductions", make: kernels::reductions, seeds: 60 },
    Family { name: "views", make: kernels::views, seeds: 100 },
    Family { name: "in place", make: kernels::in_place, seeds: 60 },
    Family { name: "products", make: kernels::products, seeds: 60 },
    Family { name: "carried", make: kernels::carried, seeds: 60 },
    Family { name: "generated data movement", make: generated::movement, seeds: 60 },
    Family { name: "generated narrow", make: generated::narrow, seeds: 170 },
    Family { name: "generated arithmetic", make: generated::arithmetic, seeds: 300 },
    Family { name: "generated contracted", make: generated::contracted, seeds: 40 },
    Family { name: "functions", make: numeric::functions, seeds: 60 },
    Family { name: "float products", make: numeric::products, seeds: 12 },
];

impl Typed {
    /// What the interpreter leaves. Where products and sums may be contracted it runs the kernel as optimised, in which it
    /// is decided which are.
    pub fn expected(&self) -> Result<Vec<Vec<u8>>, Failure> {
        if !self.case.func.fp_fusion {
            return self.case.try_interpret();
        }
        let mut case = self.case.clone();
        tilewright_compiler::passes::optimize(&mut case.func).map_err(|e| Failure::Lowering(e.to_string()))?;
        case.try_interpret()
    }
}

/// The first element that differs.
pub fn difference(dtype: DType, tolerance: Tolerance, expected: &[u8], got: &[u8]) -> Option<String> {
    let n = dtype.bytes();
    for (i, (e, g)) in expected.chunks_exact(n).zip(got.chunks_exact(n)).enumerate() {
        if e != g && !(is_nan(dtype, e) && is_nan(dtype, g)) && !is_close(dtype, tolerance, e, g) {
            let hex = |x: &[u8]| x.iter().rev().map(|b| format!("{b:02x}")).collect::<String>();
            return Some(format!("element {i} is 0x{}, expected 0x{}", hex(g), hex(e)));
        }
    }
    None
}

fn is_close(dtype: DType, tolerance: Tolerance, e: &[u8], g: &[u8]) -> bool {
    if !dtype.is_float() || is_nan(dtype, e) || is_nan(dtype, g) {
        return false;
    }
    let bits = |x: &[u8]| x.iter().rev().fold(0u64, |all, &b| all << 8 | u64::from(b));
    match tolerance {
        Tolerance::Exact => false,
        Tolerance::Ulps(n) => {
            let sign = 1u64 << (dtype.bits() - 1);
            let (e, g) = (bits(e), bits(g));
            // Numbers of one sign are in the order of their bits. Nothing is next to an infinity but by overflow, which
            // comes within as many units.
            e & sign == g & sign && e.abs_diff(g) <= n
        }
        Tolerance::Absolute(most) => {
            let value = |x: &[u8]| Constant(bits(x)).as_f64(dtype);
            (value(e) - value(g)).abs() <= most
        }
    }
}

fn is_nan(dtype: DType, x: &[u8]) -> bool {
    match (dtype, x) {
        (DType::F16, &[a, b]) => half::f16::from_le_bytes([a, b]).is_nan(),
        (DType::BF16, &[a, b]) => half::bf16::from_le_bytes([a, b]).is_nan(),
        (DType::F32, &[a, b, c, d]) => f32::from_le_bytes([a, b, c, d]).is_nan(),
        (DType::F64, _) => x.try_into().is_ok_and(|x| f64::from_le_bytes(x).is_nan()),
        _ => false,
    }
}

/// Warps and stages for a seed.
pub fn options(seed: u64) -> Options {
    Options { num_warps: [4, 1, 2, 8, 16, 32][seed as usize % 6], num_stages: 1 + (seed / 6) as u32 % 4 }
}
