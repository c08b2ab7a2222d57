//! Random functions store the same before and after optimisation, when the interpreter runs them.

use tilewright_compiler::DType;
use tilewright_compiler::interp::{ArgValue, MemRegion, Memory, Program};
use tilewright_compiler::passes::optimize;
use tilewright_compiler::tile::generate::{Argument, Config, arguments, random_function};
use tilewright_compiler::tile::{Constant, Function};

/// Buffers and flattened arguments of one launch; the same ones every time.
struct Launch {
    buffers: Vec<(DType, bool, Vec<u64>)>,
    args: Vec<ArgValue>,
}

fn launch(args: &[Argument]) -> Launch {
    let mut launch = Launch { buffers: Vec::new(), args: Vec::new() };
    for (n, arg) in args.iter().enumerate() {
        let mut buffer = |dtype: DType, elements: usize, written: bool| {
            let mut words = vec![0u64; (elements * dtype.bytes()).div_ceil(8) + 2];
            let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
            for i in 0..elements {
                let value = if written { 0.0 } else { ((i * 37 + n * 11) % 41) as f64 * 0.5 - 7.0 };
                let bits = Constant::from_f64(dtype, value).0.to_le_bytes();
                bytes[i * dtype.bytes()..][..dtype.bytes()].copy_from_slice(&bits[..dtype.bytes()]);
            }
            let address = words.as_ptr() as u64;
            // Addresses are multiples of 16 bytes.
            let skip = (16 - address % 16) % 16;
            words.rotate_right(skip as usize / 8);
            launch.buffers.push((dtype, written, words));
            launch.args.push(ArgValue::Ptr(address + skip));
        };
        match arg {
            Argument::Scalar { dtype, value } => {
                launch.args.push(ArgValue::Bits(Constant::from_i64(*dtype, *value).0));
            }
            Argument::Ptr { dtype, elements, written } => buffer(*dtype, *elements, *written),
            Argument::View { dtype, dims, strides, elements, written } => {
                buffer(*dtype, *elements, *written);
                launch.args.extend(dims.iter().chain(strides).map(|&n| ArgValue::Bits(n as u64)));
            }
        }
    }
    launch
}

/// The elements of all outputs after a run, each NaN as one.
fn outputs(func: &Function, args: &[Argument], programs: usize) -> Vec<u64> {
    let mut launch = launch(args);
    // SAFETY: the buffers live until the end of this function, and are not used while the kernel runs.
    let regions =
        launch.buffers.iter_mut().map(|(_, _, words)| unsafe { MemRegion::writable(&mut words[..]) }).collect();
    let program = Program::compile(func).expect("a valid function");
    program.run_serial(&launch.args, &Memory::new(regions), [programs as u32, 1, 1]).expect("accesses in bounds");
    let mut out = Vec::new();
    for (dtype, _, words) in launch.buffers.iter().filter(|b| b.1) {
        let bytes: &[u8] = bytemuck::cast_slice(words);
        for element in bytes.chunks_exact(dtype.bytes()) {
            let mut bits = [0; 8];
            bits[..element.len()].copy_from_slice(element);
            let bits = Constant(u64::from_le_bytes(bits));
            let is_nan = dtype.is_float() && bits.as_f64(*dtype).is_nan();
            out.push(if is_nan { u64::MAX } else { bits.0 });
        }
    }
    out
}

#[test]
fn optimised_functions_store_the_same() {
    let config = Config { ops: 40, ..Config::runnable() };
    let programs = config.runnable.map_or(1, |r| r.programs());
    let (mut before, mut after) = (0, 0);
    for seed in 0..1500 {
        let mut func = random_function(seed, &config);
        // Contraction changes roundings, as it may.
        func.fp_fusion = false;
        let args = arguments(&func, &config);
        let mut optimised = func.clone();
        optimize(&mut optimised).expect("valid IR after every pass");
        func.walk(func.body, &mut |_| before += 1);
        optimised.walk(optimised.body, &mut |_| after += 1);
        assert_eq!(
            outputs(&func, &args, programs),
            outputs(&optimised, &args, programs),
            "seed {seed}:\n{func}\n{optimised}"
        );
    }
    assert!(after < before, "{before} ops become {after}");
}
