//! What the code of the kernels must be like, whatever else changes: instructions, accesses, conflicts, compile time.

use crate::cases::{self, Case};
use std::time::{Duration, Instant};
use tilewright::dsl::{bf16, f16};
use tilewright::{DType, DeviceKind};
use tilewright_compiler::pipeline;
use tilewright_compiler::sim::{self, Report, SimOptions};
use tilewright_compiler::target::{Caps, Code};
use tilewright_kernels::AttentionConfig;

fn ptx(case: &Case) -> String {
    ptx_for(case, 90)
}

fn ptx_for(case: &Case, sm: u32) -> String {
    match pipeline::compile(&case.func, &Caps::ptx(sm), &case.options).unwrap().code {
        Code::Ptx(text) => text,
        other => panic!("{other:?}"),
    }
}

/// How many lines hold this.
fn count(text: &str, part: &str) -> usize {
    text.lines().filter(|l| l.contains(part)).count()
}

/// Runs one program of a product of `n` x `n` matrices of ones in the simulator and checks what it wrote.
fn simulate_matmul(case: &Case, n: usize) -> Report {
    // Before products of four warps.
    let caps = Caps::ptx(80);
    let (_, _, thread) = pipeline::to_thread(&case.func, &caps, &case.options).unwrap();
    let mut memory = sim::Memory::new();
    let ones: Vec<u8> = f16::ONE.to_bits().to_le_bytes().repeat(n * n);
    let addresses = [memory.alloc_with(ones.clone()), memory.alloc_with(ones), memory.alloc(2 * n * n)];
    let (n64, one) = (n as u64, 1);
    let args: Vec<u64> = addresses.iter().flat_map(|&a| [a, n64, n64, n64, one]).collect();
    let report =
        sim::run(&thread, &args, &mut memory, [1, 1, 1], &SimOptions::of(&caps)).unwrap_or_else(|e| panic!("{e}"));
    let first = memory.read(addresses[2], 2).unwrap();
    assert_eq!(f16::from_le_bytes([first[0], first[1]]).to_f32(), n as f32);
    report
}

#[test]
fn the_default_f16_matmul_uses_the_matrix_units_well() {
    let config = cases::default_config::<f16>(DeviceKind::Cuda);
    let n = 256;
    let case = cases::matmul::<f16>(&cases::cpu(), n, config);
    let text = ptx_for(&case, 80);
    let warps = config.options.num_warps as usize;
    // One mma.sync multiplies 16 x 16 by 16 x 8.
    let mmas = config.bm * config.bn * config.bk / (16 * 8 * 16) / warps;
    let report = simulate_matmul(&case, n);
    println!("{config:?}: {report:?}");
    assert_eq!(report.mmas as usize, mmas * warps * (n / config.bk), "no more products than needed");
    assert!(count(&text, "mma.sync") >= mmas && count(&text, "mma.sync").is_multiple_of(mmas), "{text}");
    // All copies are asynchronous and of 16 bytes; fragments come four 8 x 8 matrices at a time.
    assert_eq!(count(&text, "cp.async.ca"), 0, "copies of fewer than 16 bytes");
    assert!(count(&text, "cp.async.cg.shared.global") > 0, "{text}");
    assert_eq!(count(&text, "ldmatrix"), count(&text, "ldmatrix.sync.aligned.m8n8.x4"), "{text}");
    assert!(report.ldmatrices > 0);
    // Per warp and step of 16 along k, an operand of r rows needs r * 16 / 256 of them.
    let fragments = (config.bm + config.bn) * config.bk / 256;
    assert!(report.ldmatrices as usize >= fragments * (n / config.bk), "{}", report.ldmatrices);
    assert_eq!(report.bank_conflicts(), 0, "{report:?}");
    assert!(report.is_coalesced(), "{report:?}");
    let copies = (config.bm + config.bn) * config.bk * 2 / (16 * 32) * (n / config.bk);
    assert!(report.async_copies as usize >= copies, "{} copies, {copies} needed", report.async_copies);
}

#[test]
fn the_default_f16_attention_uses_the_matrix_units_well() {
    for width in [64, 128] {
        let n = 256;
        let config = AttentionConfig::of_kind(DeviceKind::Cuda, DType::F16, n, n, width);
        let case = cases::attention::<f16>(&cases::cpu(), DeviceKind::Cuda, [n, width], false, None);
        // Before products of four warps.
        let text = ptx_for(&case, 80);
        let caps = Caps::ptx(80);
        let (_, _, thread) = pipeline::to_thread(&case.func, &caps, &case.options).unwrap();
        let mut memory = sim::Memory::new();
        let ones: Vec<u8> = f16::ONE.to_bits().to_le_bytes().repeat(n * width);
        let mut addresses: Vec<u64> = (0..3).map(|_| memory.alloc_with(ones.clone())).collect();
        addresses.push(memory.alloc(2 * n * width));
        let all = (n * width) as u64;
        let view = [1, 1, n as u64, width as u64, all, all, width as u64, 1];
        let args: Vec<u64> = addresses.iter().flat_map(|&a| [&[a][..], &view[..]].concat()).collect();
        let report =
            sim::run(&thread, &args, &mut memory, [1, 1, 1], &SimOptions::of(&caps)).unwrap_or_else(|e| panic!("{e}"));
        println!("{config:?}: {report:?}");
        let first = memory.read(addresses[3], 2).unwrap();
        assert_eq!(f16::from_le_bytes([first[0], first[1]]), f16::ONE, "the mean of ones");
        // Both products, 16 x 16 by 16 x 8 at a time, and no more.
        assert_eq!(report.mmas as usize, config.bm / 16 * (n / 8 * width / 16 + width / 8 * n / 16));
        // Keys and values, and nothing else, are copied ahead, 16 bytes at a time.
        assert_eq!(count(&text, "cp.async.ca"), 0, "copies of fewer than 16 bytes");
        assert!(report.async_copies as usize >= 2 * n * width * 2 / (16 * 32), "{report:?}");
        assert_eq!(count(&text, "ldmatrix"), count(&text, "ldmatrix.sync.aligned.m8n8.x4"), "{text}");
        // Each 16 queries of a warp read queries 16 x 16 at a time; each warp reads keys and values likewise.
        let (warps, steps) = (config.options.num_warps as usize, width / 16);
        let reads = config.bm / 16 * steps * (n / config.bn) + warps * 2 * steps * (n / 16);
        assert_eq!(report.ldmatrices as usize, reads, "{report:?}");
        assert!(report.is_coalesced(), "{report:?}");
    }
}

#[test]
fn streams_are_accessed_16_bytes_at_a_time() {
    for case in [
        cases::vector_add::<f32>(&cases::cpu(), 4096),
        cases::vector_add::<f16>(&cases::cpu(), 4096),
        cases::vector_add::<u8>(&cases::cpu(), 4096),
        cases::vector_add::<f64>(&cases::cpu(), 4096),
        cases::softmax::<f32>(&cases::cpu(), DeviceKind::Cuda, 4096),
        cases::softmax::<f16>(&cases::cpu(), DeviceKind::Cuda, 4096),
        cases::softmax::<bf16>(&cases::cpu(), DeviceKind::Cuda, 8192),
        cases::layer_norm::<f16>(&cases::cpu(), DeviceKind::Cuda, 4096),
    ] {
        let text = ptx(&case);
        for access in ["ld.global", "st.global"] {
            let wide = [".v4.b32", ".v4.f32", ".v2.b64", ".v2.f64", ".v4.u32", ".v2.u64"];
            let all: Vec<&str> = text.lines().filter(|l| l.contains(access)).collect();
            assert!(!all.is_empty(), "{}: no {access}", case.name);
            let narrow: Vec<_> = all.iter().filter(|l| !wide.iter().any(|w| l.contains(w))).collect();
            assert!(narrow.is_empty(), "{}: {narrow:?}", case.name);
        }
    }
}

#[test]
fn compiling_takes_little_time() {
    for case in [
        cases::vector_add::<f32>(&cases::cpu(), 4096),
        cases::softmax::<f32>(&cases::cpu(), DeviceKind::Cuda, 4096),
        cases::layer_norm::<f32>(&cases::cpu(), DeviceKind::Cuda, 4096),
        cases::matmul::<f16>(&cases::cpu(), 256, cases::default_config::<f16>(DeviceKind::Cuda)),
    ] {
        // The best of several: other tests run at the same time.
        let times = (0..7).map(|_| {
            let start = Instant::now();
            ptx(&case);
            start.elapsed()
        });
        let best = times.min().unwrap();
        println!("{}: {best:?} to PTX", case.name);
        assert!(best < Duration::from_millis(100), "{}: {best:?}", case.name);
    }
}
