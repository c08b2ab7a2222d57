//! Kernels of `tile::generate`.

use crate::common::{Arg, Case};
use crate::families::{Tolerance, Typed};
use tilewright_compiler::DType;
use tilewright_compiler::tile::generate::{Argument, Config, Floats, Runnable, arguments, random_function};
use tilewright_compiler::tile::{Constant, Op, ReduceOp, UnaryOp};

/// All ops whose results are exact.
pub fn exact(seed: u64) -> Typed {
    let mut config = Config::runnable();
    config.ops = 10 + seed as usize % 60;
    config.max_nesting = seed as usize % 4;
    make(seed, &config)
}

/// The sets of element types that kernels of [`narrow`] have: each type alone, what belongs together, each pair.
fn type_sets() -> Vec<Vec<DType>> {
    let numbers: Vec<DType> = DType::ALL.into_iter().filter(|&d| d != DType::Bool).collect();
    let of = |accept: &dyn Fn(DType) -> bool| numbers.iter().copied().filter(|&d| accept(d)).collect::<Vec<_>>();
    let mut sets: Vec<Vec<DType>> = numbers.iter().map(|&d| vec![d]).collect();
    sets.push(of(&|d| d.is_int() && !d.is_signed()));
    sets.push(of(&DType::is_signed));
    sets.push(of(&DType::is_float));
    sets.extend([1, 2, 4, 8].map(|bytes| of(&|d| d.bytes() == bytes)));
    for (i, &a) in numbers.iter().enumerate() {
        sets.extend(numbers[..i].iter().map(|&b| vec![a, b]));
    }
    sets
}

/// Few element types, so that rules that hold for most types only are met; up to 8 dimensions, grids of three axes,
/// loops of more rounds.
pub fn narrow(seed: u64) -> Typed {
    make(seed, &narrow_config(seed))
}

fn narrow_config(seed: u64) -> Config {
    let sets = type_sets();
    let round = seed as usize / sets.len();
    Config {
        ops: [25, 12, 50][seed as usize % 3],
        max_nesting: seed as usize % 3,
        max_rank: [3, 8, 2, 5][round % 4],
        max_trips: [4, 8, 16][seed as usize % 3],
        dtypes: sets[seed as usize % sets.len()].clone(),
        runnable: Some(Runnable { elements: 256, grid: [[2, 1, 1], [1, 2, 2], [2, 1, 3], [1; 3]][seed as usize % 4] }),
        ..Config::runnable()
    }
}

/// Nothing but arithmetic on small tiles, of few element types: every rule that rewrites it is met.
pub fn arithmetic(seed: u64) -> Typed {
    let allow = |op: &Op| {
        let is = |op: &Op| op.is_elementwise() || matches!(op, Op::Const(_) | Op::Load | Op::Store);
        is(op) && !matches!(op, Op::Bitcast)
    };
    let sets = type_sets();
    let runnable = Some(Runnable { elements: 16, grid: [1; 3] });
    let dtypes = sets[seed as usize % sets.len()].clone();
    let base = Config { ops: 40, max_elements: 16, max_nesting: 0, max_rank: 1, allow, runnable, ..Config::runnable() };
    make(seed, &Config { dtypes, address_values: false, ..base })
}

/// The same, where products and sums may be contracted.
pub fn contracted(seed: u64) -> Typed {
    let floats = [DType::F16, DType::BF16, DType::F32, DType::F64];
    let mut typed = make(seed, &Config { dtypes: vec![floats[seed as usize % 4]], ..narrow_config(seed) });
    typed.case.func.fp_fusion = true;
    typed
}

/// Larger tiles, fewer ops.
pub fn large(seed: u64) -> Typed {
    let runnable = Some(Runnable { elements: 4096, grid: [2, 1, 1] });
    make(seed, &Config { ops: 20, max_elements: 4096, runnable, ..Config::runnable() })
}

/// Mostly what moves data: layouts meet and are converted.
pub fn movement(seed: u64) -> Typed {
    let allow = |op: &Op| {
        !matches!(op, Op::Unary(_) | Op::Fma | Op::Cast | Op::Bitcast | Op::ProgramId { .. } | Op::NumPrograms { .. })
    };
    let runnable = Some(Runnable { elements: 1024, grid: [1; 3] });
    make(seed, &Config { ops: 40, max_elements: 1024, allow, runnable, ..Config::runnable() })
}

/// Numbers of every kind, infinities, NaN and subnormals among them, in ops that are rounded once.
pub fn special(seed: u64) -> Typed {
    let allow = |op: &Op| match op {
        Op::Unary(op) => {
            use UnaryOp::{Abs, Ceil, Floor, Neg, Not, Round, Sqrt, Trunc};
            matches!(op, Abs | Ceil | Floor | Neg | Not | Round | Sqrt | Trunc)
        }
        // The order of additions, and the bits of a NaN, are free.
        Op::Reduce { op, .. } => !matches!(op, ReduceOp::Sum | ReduceOp::Prod),
        Op::Dot { .. } | Op::Bitcast => false,
        _ => true,
    };
    make(seed, &Config { floats: Floats::All, ops: 40, allow, ..Config::runnable() })
}

fn make(seed: u64, config: &Config) -> Typed {
    let func = random_function(seed, config);
    let mut case = Case {
        func,
        args: Vec::new(),
        buffers: Vec::new(),
        grid: config.runnable.map_or([1; 3], |r| r.grid.map(|n| n as u32)),
    };
    let mut dtypes = Vec::new();
    for argument in arguments(&case.func, config) {
        let mut buffer = |dtype: DType, elements: usize, written: bool| {
            let mut bytes = Vec::new();
            for i in 0..elements {
                let n = if written { 0x77 } else { (i * 7919 + case.buffers.len() * 31) as i64 % 201 - 100 };
                let n = if dtype == DType::Bool { n & 1 } else { n };
                bytes.extend(&Constant::from_i64(dtype, n).0.to_le_bytes()[..dtype.bytes()]);
            }
            case.args.push(Arg::Buf(case.buffers.len(), 0));
            case.buffers.push(bytes);
            dtypes.push(dtype);
        };
        match argument {
            Argument::Scalar { dtype, value } => case.args.push(Arg::Bits(Constant::from_i64(dtype, value).0)),
            Argument::Ptr { dtype, elements, written } => buffer(dtype, elements, written),
            Argument::View { dtype, dims, strides, elements, written } => {
                buffer(dtype, elements, written);
                case.args.extend(dims.iter().chain(&strides).map(|&n| Arg::Bits(n as u64)));
            }
        }
    }
    Typed { case, dtypes, tolerance: Tolerance::Exact }
}
