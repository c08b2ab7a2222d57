//! Thread IR run on a Vulkan device through the SPIR-V emitter, compared with what its ops mean. Without a device the tests
//! pass with a message, unless `TILEWRIGHT_REQUIRE_TOOLS=1`.

mod device;
mod flow;
mod pure;
mod random;

use device::Gpu;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use tilewright_compiler::target::{Caps, spirv};
use tilewright_compiler::thread::{AbiParam, AbiTy, Access, Function};

static GPU: LazyLock<Result<Mutex<Gpu>, String>> = LazyLock::new(|| Gpu::open().map(Mutex::new));

/// The device, for one test at a time.
fn gpu() -> Option<MutexGuard<'static, Gpu>> {
    match &*GPU {
        Ok(gpu) => Some(gpu.lock().unwrap_or_else(PoisonError::into_inner)),
        Err(e) => {
            let required = std::env::var("TILEWRIGHT_REQUIRE_TOOLS").is_ok_and(|v| v == "1");
            assert!(!required, "a Vulkan device is required: {e}");
            println!("skipped: {e}");
            None
        }
    }
}

fn caps(gpu: &Gpu) -> Caps {
    Caps { max_param_bytes: gpu.push_bytes, ..Caps::spirv(&gpu.name, gpu.subgroup, 1024, gpu.shared_bytes) }
}

fn access(bits: u8, n: u8) -> Access {
    Access { bits, n, offset: 0 }
}

fn params(types: &[AbiTy]) -> Vec<AbiParam> {
    types.iter().enumerate().map(|(i, &ty)| AbiParam { name: format!("p{i}"), ty }).collect()
}

/// Runs a function over a grid; `args` are the bits of its parameters. `base` is added to the ids of programs.
fn launch_at(gpu: &Gpu, caps: &Caps, func: &Function, args: &[u64], grid: [u32; 3], base: [u32; 3]) {
    let words = spirv::emit(func, caps).expect("the function is emitted");
    let layout = spirv::param_layout(&func.params, caps);
    let mut push: Vec<u8> = grid.iter().chain(&base).flat_map(|x| x.to_le_bytes()).collect();
    push.resize(layout.push_bytes as usize, 0);
    let mut buffer = vec![0; layout.buffer_bytes as usize];
    let place = if layout.in_buffer { &mut buffer } else { &mut push };
    assert_eq!(args.len(), func.params.len());
    for ((param, &offset), arg) in func.params.iter().zip(&layout.offsets).zip(args) {
        let bytes = param.ty.bytes();
        place[offset as usize..][..bytes].copy_from_slice(&arg.to_le_bytes()[..bytes]);
    }
    let buffer = gpu.buffer(&buffer);
    if layout.in_buffer {
        push[24..32].copy_from_slice(&buffer.address.to_le_bytes());
    }
    gpu.run(&words, &func.name, &push, grid, func.warp_width);
    gpu.take(buffer);
}

/// As [`launch_at`], from program 0.
fn launch(gpu: &Gpu, func: &Function, args: &[u64], grid: [u32; 3]) {
    launch_at(gpu, &caps(gpu), func, args, grid, [0; 3]);
}

fn u32s(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect()
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}
