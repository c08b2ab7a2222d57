//! A kernel in SPIR-V assembled by hand, in the form the code generator gives.

use crate::Device;
use crate::backend::{Image, PackedArgs, RawStream};
use crate::device::DeviceKind;
use tilewright_compiler::target::{Code, Compiled};
use tilewright_compiler::thread::{AbiParam, AbiTy};

/// `out[program * 32 + lane] = program + 1000 * extent of the grid`, for 32 lanes.
const FILL: &str = include_str!("fill.spvasm");

/// Assembles with spirv-as; `None`, with a note, if it is not installed.
fn assemble(text: &str) -> Option<Vec<u32>> {
    let dir = tempfile::tempdir().unwrap();
    let (input, output) = (dir.path().join("k.spvasm"), dir.path().join("k.spv"));
    std::fs::write(&input, text).unwrap();
    let run = std::process::Command::new("spirv-as")
        .args(["--target-env", "vulkan1.2", "-o"])
        .args([&output, &input])
        .output();
    match run {
        Err(e) => {
            eprintln!("skipped: spirv-as (package spirv-tools) does not run: {e}");
            None
        }
        Ok(done) => {
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            let bytes = std::fs::read(&output).unwrap();
            Some(bytes.as_chunks::<4>().0.iter().map(|c| u32::from_le_bytes(*c)).collect())
        }
    }
}

fn devices() -> Vec<Device> {
    let all = Device::list();
    let usable = all.iter().filter(|d| d.kind == DeviceKind::Vulkan && d.unusable.is_none());
    let found: Vec<_> = usable.map(|d| Device::open(&d.name).unwrap()).collect();
    if found.is_empty() {
        eprintln!("skipped: no Vulkan device");
    }
    found
}

#[test]
fn a_kernel_gets_addresses_numbers_and_a_grid_of_any_size() {
    let Some(words) = assemble(FILL) else { return };
    let params = [("out", AbiTy::Ptr), ("n", AbiTy::I32)];
    let compiled = Compiled {
        entry: "fill".into(),
        threads: 32,
        shared_bytes: 0,
        params: params.iter().map(|&(name, ty)| AbiParam { name: name.into(), ty }).collect(),
        code: Code::SpirV(words),
    };
    for dev in devices() {
        let backend = &dev.inner.backend;
        let assembled = backend.assemble(&compiled).unwrap();
        for binary in [None, assembled.binary.as_deref(), Some(&[1, 2, 3][..])] {
            let kernel = backend.load(&Image::Code { compiled: &compiled, binary }).unwrap();
            // More programs than one dispatch may have on devices with the least limit.
            for programs in [1u32, 5, 65_535 + 7] {
                let out = dev.zeros::<i32>(programs as usize * 32 + 1).unwrap();
                let words = [out.memory().addr(), u64::from(programs)];
                let args = PackedArgs { words: &words, regions: &[] };
                kernel.launch(RawStream::DEFAULT, [programs, 1, 1], &args).unwrap();
                let result = out.to_vec().unwrap();
                for (i, v) in result[..programs as usize * 32].iter().enumerate() {
                    assert_eq!(*v, (i as i32 / 32).wrapping_add(1000 * programs as i32), "element {i} of {programs}");
                }
                assert_eq!(result.last(), Some(&0));
            }
        }
    }
}

#[test]
fn subgroups_are_used_where_the_device_offers_them() {
    for dev in devices() {
        let caps = dev.caps().unwrap();
        eprintln!("{caps:?}");
        assert!(caps.warp_width.is_power_of_two() && caps.max_threads >= 128 && caps.max_param_bytes >= 128);
        if caps.name.contains("llvmpipe") {
            assert!(caps.warp_width > 1, "llvmpipe has shuffles and full subgroups");
            assert!(!caps.fused_fma);
        }
    }
}
