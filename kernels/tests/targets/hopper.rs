//! The kernels that run on four warps at once: right in the simulator; and what ptxas makes of them: products are not serialised,
//! registers are not spilled.

use crate::assembled::assemble;
use crate::cases::{self, Case};
use tilewright::dsl::{DotElement, Float, bf16, f16};
use tilewright::{DType, DeviceKind, Element, Options};
use tilewright_compiler::pipeline;
use tilewright_compiler::sim::{self, SimOptions};
use tilewright_compiler::target::{Caps, Code};
use tilewright_kernels::reference::{self, AttentionDims, largest_error};
use tilewright_kernels::{AttentionConfig, MatmulConfig};

/// Registers of one processor.
const REGISTERS: u32 = 64 << 10;
/// Bytes of shared memory of one processor, 1 KiB of which each program takes beside its own.
const SHARED_BYTES: u32 = 228 << 10;

/// Bytes that a thread may spill: where a program takes all registers, ptxas keeps a few addresses of the stores at its end
/// elsewhere through its loops. 128 queries of width 128 on four warps spill most, 64 bytes, and are the fastest all the same.
const SPILLED: u32 = 64;

/// Assembles a kernel for Hopper; gives how many of its programs fit a processor at once, `None` where there is no ptxas. Fails
/// where more than a few addresses are spilled, or products wait for each other.
fn programs(case: &Case) -> Option<u32> {
    let dir = tempfile::tempdir().unwrap();
    let caps = Caps::ptx(90);
    let compiled = pipeline::compile(&case.func, &caps, &case.options).unwrap();
    let Code::Ptx(ptx) = &compiled.code else { panic!("{}: no PTX", case.name) };
    assert!(ptx.contains("wgmma.mma_async") && !ptx.contains("mma.sync"), "{}: {ptx}", case.name);
    let output = assemble(dir.path(), 0, &caps.name, ptx)?;
    let log = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    // Its messages about products that wait name the instruction.
    assert!(output.status.success() && !log.contains("wgmma"), "{}: {log}", case.name);
    let number = |before: &str| {
        let found = log.split(before).nth(1).and_then(|s| s.split(' ').next()).and_then(|n| n.parse::<u32>().ok());
        found.unwrap_or_else(|| panic!("{}: {log}", case.name))
    };
    let registers = number("Used ").next_multiple_of(8);
    let spilled = number("stack frame, ").max(number("spill stores, "));
    assert!(spilled == 0 || (registers == 256 && spilled <= SPILLED), "{}: {log}", case.name);
    let fit = (REGISTERS / (registers * compiled.threads)).min(SHARED_BYTES / (compiled.shared_bytes + 1024));
    println!("{}: {registers} registers, {} bytes, {fit} programs", case.name, compiled.shared_bytes);
    Some(fit)
}

fn attention<T: Float + DotElement + Element>(width: usize, causal: bool, config: AttentionConfig) -> Option<u32> {
    programs(&cases::attention::<T>(&cases::cpu(), DeviceKind::Cuda, [4096, width], causal, Some(config)))
}

#[test]
fn attention_is_neither_serialised_nor_spilled() {
    for (width, fit) in [(32, 2), (64, 2), (128, 1), (256, 1)] {
        let config = AttentionConfig::of_wgmma(4096, 4096, width, false);
        for causal in [false, true] {
            for found in [attention::<f16>(width, causal, config), attention::<bf16>(width, causal, config)] {
                assert!(found.is_none_or(|n| n >= fit), "{found:?} programs of width {width} fit, not {fit}");
            }
        }
    }
}

#[test]
fn attention_waits_for_products_at_once_or_a_round_later() {
    // Without stages to spare, and with.
    for num_stages in [2, 3] {
        for (width, bm, bn, num_warps) in [(64, 64, 64, 4), (64, 128, 128, 8), (128, 128, 64, 8)] {
            let config = AttentionConfig { bm, bn, options: Options { num_warps, num_stages } };
            attention::<f16>(width, true, config);
        }
    }
}

#[test]
fn attention_in_graphs_is_neither_serialised_nor_spilled() {
    for width in [64, 128] {
        for mask in [None, Some(DType::Bool), Some(DType::F16), Some(DType::F32)] {
            let config = AttentionConfig::of_wgmma(4096, 4096, width, mask.is_some());
            programs(&cases::attention_forward::<f16>(width, mask, config));
        }
    }
    for (width, causal) in [(64, false), (64, true), (128, false), (128, true)] {
        let backward = |of_keys| AttentionConfig::backward_of_wgmma(4096, 4096, width, of_keys);
        let [of_queries, of_keys] = &cases::attention_backward::<f16>([4096, width], causal, backward)[..] else {
            panic!("there are two kernels");
        };
        programs(of_queries);
        // Both sums of width 128 leave a few addresses in local memory.
        if width == 64 {
            programs(of_keys);
        }
    }
}

#[test]
fn products_are_neither_serialised_nor_spilled() {
    // Sizes for which each tile is the best.
    for dims in [[4096, 4096, 4096], [1024, 1024, 1024], [512, 512, 512]] {
        let config = MatmulConfig::of_wgmma(dims, 132);
        programs(&cases::matmul::<f16>(&cases::cpu(), 256, config));
        programs(&cases::matmul::<bf16>(&cases::cpu(), 256, config));
    }
}

/// Runs attention of one head in the simulator and compares it with the reference; every program of it.
fn simulate<T: Float + DotElement + Element + Half>([n, width]: [usize; 2], causal: bool, config: AttentionConfig) {
    let case = cases::attention::<T>(&cases::cpu(), DeviceKind::Cuda, [n, width], causal, Some(config));
    let caps = Caps::ptx(90);
    let (_, _, thread) = pipeline::to_thread(&case.func, &caps, &case.options).unwrap();
    let numbers = |seed| tilewright_autotune::noise(seed, n * width).map(|x| T::of(x as f32 * 2.0)).collect::<Vec<T>>();
    let tensors = [1, 2, 3].map(numbers);
    let mut memory = sim::Memory::new();
    let mut addresses: Vec<u64> = Vec::new();
    for t in &tensors {
        let bytes: Vec<u8> = t.iter().flat_map(|x| x.bits().to_le_bytes()).collect();
        addresses.push(memory.alloc_with(bytes));
    }
    addresses.push(memory.alloc(2 * n * width));
    let all = (n * width) as u64;
    let view = [1, 1, n as u64, width as u64, all, all, width as u64, 1];
    let args: Vec<u64> = addresses.iter().flat_map(|&a| [&[a][..], &view[..]].concat()).collect();
    let grid = [n.div_ceil(config.bm) as u32, 1, 1];
    let report = sim::run(&thread, &args, &mut memory, grid, &SimOptions::of(&caps))
        .unwrap_or_else(|e| panic!("{}: {e}", case.name));
    let wide = tensors.map(|t| t.iter().map(|x| x.wide()).collect::<Vec<f64>>());
    let dims = AttentionDims { batch: 1, heads: 1, kv_heads: 1, queries: n, keys: n, width, value_width: width };
    let hidden = |_, _, i: usize, j: usize| if causal && j > i { f64::NEG_INFINITY } else { 0.0 };
    let (expected, _) = reference::attention(&wide[0], &wide[1], &wide[2], dims, 1.0 / (width as f64).sqrt(), hidden);
    let got = memory.read(addresses[3], 2 * n * width).unwrap();
    let got: Vec<f64> = got.chunks(2).map(|b| T::from_bits(u16::from_le_bytes([b[0], b[1]])).wide()).collect();
    let error = largest_error(&got, &expected);
    assert!(error < T::TOLERANCE, "{}: {error}", case.name);
    assert!(report.wgmmas > 0 && report.mmas == 0, "{}: {report:?}", case.name);
    // Narrow pieces are written to rows for wide ones.
    assert!(report.bank_conflicts() == 0 || !width.is_multiple_of(8), "{}: {report:?}", case.name);
}

/// Numbers of 16 bits.
trait Half {
    const TOLERANCE: f64;
    fn of(x: f32) -> Self;
    fn bits(&self) -> u16;
    fn from_bits(bits: u16) -> Self;
    fn wide(&self) -> f64;
}

macro_rules! half {
    ($T:ty, $tolerance:literal) => {
        impl Half for $T {
            const TOLERANCE: f64 = $tolerance;
            fn of(x: f32) -> Self {
                <$T>::from_f32(x)
            }
            fn bits(&self) -> u16 {
                self.to_bits()
            }
            fn from_bits(bits: u16) -> Self {
                <$T>::from_bits(bits)
            }
            fn wide(&self) -> f64 {
                self.to_f64()
            }
        }
    };
}

half!(f16, 2e-3);
half!(bf16, 1.6e-2);

#[test]
fn attention_is_right_in_the_simulator() {
    for (bm, bn, num_warps, num_stages) in
        [(64, 32, 4, 1), (64, 64, 4, 2), (128, 64, 8, 3), (128, 128, 8, 3), (128, 64, 4, 4)]
    {
        let config = AttentionConfig { bm, bn, options: Options { num_warps, num_stages } };
        for (width, causal) in [(32, true), (64, false), (128, true), (256, false)] {
            if width == 256 && (bn > 64 || num_stages > 2) {
                continue;
            }
            // Some keys and queries of the last tiles are not there.
            simulate::<f16>([200, width], causal, config);
        }
        simulate::<bf16>([200, 64], true, config);
        // Rows that copies of 8 bytes fit, and rows that none fits.
        simulate::<f16>([150, 20], true, config);
        simulate::<f16>([150, 33], false, config);
    }
}
