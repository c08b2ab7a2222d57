//! What ptxas makes of the kernels that run on four warps at once: nothing is serialised, nothing is spilled.

use crate::assembled::assemble;
use crate::cases::{self, Case};
use tilewright::dsl::{DotElement, Float, bf16, f16};
use tilewright::{DeviceKind, Element, Options};
use tilewright_compiler::pipeline;
use tilewright_compiler::target::{Caps, Code};
use tilewright_kernels::AttentionConfig;

/// What ptxas says of a kernel for Hopper.
struct Facts {
    name: String,
    registers: u32,
    shared_bytes: u32,
    log: String,
}

fn facts(case: &Case) -> Option<Facts> {
    let dir = tempfile::tempdir().unwrap();
    let caps = Caps::ptx(90);
    let compiled = pipeline::compile(&case.func, &caps, &case.options).unwrap();
    let Code::Ptx(ptx) = &compiled.code else { panic!("{}: no PTX", case.name) };
    assert!(ptx.contains("wgmma.mma_async"), "{}: {ptx}", case.name);
    if let Ok(to) = std::env::var("DUMP") {
        std::fs::write(format!("{to}/{}.ptx", case.name.replace([' ', ',', '{', '}', ':'], "_")), ptx).unwrap();
    }
    let output = assemble(dir.path(), 0, &caps.name, ptx)?;
    let log = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {log}", case.name);
    let registers = log.split("Used ").nth(1).and_then(|s| s.split(' ').next()).and_then(|n| n.parse().ok());
    let registers = registers.unwrap_or_else(|| panic!("{}: {log}", case.name));
    Some(Facts { name: case.name.clone(), registers, shared_bytes: compiled.shared_bytes, log })
}

fn attention<T: Float + DotElement + Element>(width: usize, causal: bool) {
    for (bm, bn, num_warps, num_stages) in [
        (64, 64, 4, 2),
        (64, 128, 4, 2),
        (128, 64, 4, 2),
        (128, 64, 8, 2),
        (128, 64, 8, 3),
        (128, 128, 8, 2),
        (128, 128, 8, 3),
    ] {
        let config = AttentionConfig { bm, bn, options: Options { num_warps, num_stages } };
        let case = cases::attention::<T>(&cases::cpu(), DeviceKind::Cuda, [4096, width], causal, Some(config));
        let Some(f) = facts(&case) else { return };
        let spills = !f.log.contains("0 bytes spill stores, 0 bytes spill loads");
        println!(
            "{}: {} registers, {} shared{} {}",
            f.name,
            f.registers,
            f.shared_bytes,
            if spills { ", SPILLS" } else { "" },
            if f.log.contains("wgmma") { &f.log } else { "" }
        );
    }
}

#[test]
fn attention_is_neither_serialised_nor_spilled() {
    for (width, causal) in [(64, false), (128, false), (64, true), (128, true)] {
        attention::<f16>(width, causal);
    }
    attention::<bf16>(64, false);
}
