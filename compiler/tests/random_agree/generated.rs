//! Kernels of `tile::generate`.

use crate::Typed;
use crate::common::{Arg, Case};
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

/// Larger tiles, fewer ops.
pub fn large(seed: u64) -> Typed {
    let runnable = Some(Runnable { elements: 4096, programs: 2 });
    make(seed, &Config { ops: 20, max_elements: 4096, runnable, ..Config::runnable() })
}

/// Mostly what moves data: layouts meet and are converted.
pub fn movement(seed: u64) -> Typed {
    let allow = |op: &Op| {
        !matches!(op, Op::Unary(_) | Op::Fma | Op::Cast | Op::Bitcast | Op::ProgramId { .. } | Op::NumPrograms { .. })
    };
    let runnable = Some(Runnable { elements: 1024, programs: 1 });
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
        grid: [config.runnable.map_or(1, |r| r.programs as u32), 1, 1],
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
    Typed { case, dtypes }
}
