//! What ptxas makes of the kernels that run on four warps at once: products are not serialised, registers are not spilled.

use crate::assembled::assemble;
use crate::cases::{self, Case};
use tilewright::dsl::{DotElement, Float, bf16, f16};
use tilewright::{DType, DeviceKind, Element, Options};
use tilewright_compiler::pipeline;
use tilewright_compiler::target::{Caps, Code};
use tilewright_kernels::{AttentionConfig, MatmulConfig};

/// Registers of one processor.
const REGISTERS: u32 = 64 << 10;
/// Bytes of shared memory of one processor, 1 KiB of which each program takes beside its own.
const SHARED_BYTES: u32 = 228 << 10;

/// Assembles a kernel for Hopper; gives how many of its programs fit a processor at once, `None` where there is no ptxas. Fails
/// where something spills, or products wait for each other.
fn programs(case: &Case) -> Option<u32> {
    let dir = tempfile::tempdir().unwrap();
    let caps = Caps::ptx(90);
    let compiled = pipeline::compile(&case.func, &caps, &case.options).unwrap();
    let Code::Ptx(ptx) = &compiled.code else { panic!("{}: no PTX", case.name) };
    assert!(ptx.contains("wgmma.mma_async") && !ptx.contains("mma.sync"), "{}: {ptx}", case.name);
    let output = assemble(dir.path(), 0, &caps.name, ptx)?;
    let log = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let fine = output.status.success() && log.contains("0 bytes spill stores, 0 bytes spill loads");
    // Its messages about such products name the instruction.
    assert!(fine && !log.contains("wgmma"), "{}: {log}", case.name);
    let used = log.split("Used ").nth(1).and_then(|s| s.split(' ').next()).and_then(|n| n.parse::<u32>().ok());
    let registers = used.unwrap_or_else(|| panic!("{}: {log}", case.name)).next_multiple_of(8);
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
        let config = AttentionConfig::of_hopper(4096, 4096, width, false);
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
            let config = AttentionConfig::of_hopper(4096, 4096, width, mask.is_some());
            programs(&cases::attention_forward::<f16>(width, mask, config));
        }
    }
    for (width, causal) in [(64, false), (64, true), (128, false), (128, true)] {
        let backward = |of_keys| AttentionConfig::backward_of_hopper(4096, 4096, width, of_keys);
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
    for dims in [[8192, 8192, 8192], [4096, 4096, 4096], [2048, 2048, 2048], [1024, 1024, 1024], [512, 512, 512]] {
        let config = MatmulConfig::of_hopper(dims);
        programs(&cases::matmul::<f16>(&cases::cpu(), 256, config));
        programs(&cases::matmul::<bf16>(&cases::cpu(), 256, config));
    }
}
