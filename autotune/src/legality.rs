//! The resource model: which configurations cannot run on a device, or cannot be worth a try, before a driver sees them.
//!
//! It errs on one side only: what it refuses would certainly fail or spill hopelessly. What it lets through is checked again
//! by the compiler (exact shared memory) and by the driver.

use crate::config::Config;
use crate::failure::{Failure, FailureKind};
use tilewright_compiler::analysis::axis::axis_info;
use tilewright_compiler::passes;
use tilewright_compiler::schedule::Schedule;
use tilewright_compiler::target::Caps;
use tilewright_compiler::tile::{Function, Op};
use tilewright_runtime::{Metadata, Options};

/// Registers of 32 bits that a thread has at most where the device does not tell: 256 on AMD's GPUs, fewer on others.
const REGISTERS_ELSEWHERE: usize = 256;

/// The configuration in the form a device distinguishes: the CPU device knows neither warps nor stages, and no device starts
/// more threads than it allows.
pub fn canonical(config: Config, caps: Option<&Caps>) -> Config {
    let options = config.options();
    let options = match caps {
        None => Options { num_warps: 1, num_stages: 1 },
        Some(caps) => {
            let most = (1u32 << caps.max_threads.max(32).ilog2()) / 32;
            let least = caps.warp_width / 32;
            Options { num_warps: options.num_warps.min(most).max(least), ..options }
        }
    };
    config.with_options(options)
}

/// Judges a configuration by its Tile IR.
///
/// # Errors
/// [`FailureKind::Resources`] with what is missing.
pub fn before_compile(func: &Function, caps: &Caps, options: &Options) -> Result<(), Failure> {
    let mut tile = func.clone();
    if passes::optimize(&mut tile).is_err() {
        // The compiler will tell it properly.
        return Ok(());
    }
    let Ok(schedule) = Schedule::plan(&tile, &axis_info(&tile), caps, options) else { return Ok(()) };
    let refuse = |message: String| Err(Failure::new(FailureKind::Resources, message));
    // Loads under way keep all their stages in shared memory, whatever else needs some.
    let shared: usize = schedule
        .pipelines
        .values()
        .map(|p| {
            let bytes = |op: &_| tile.ops[*op].results.first().map_or(0, |&v| bytes_of(&tile, v));
            p.loads.iter().map(bytes).sum::<usize>() * p.stages as usize
        })
        .max()
        .unwrap_or(0);
    if shared > caps.max_shared_bytes as usize {
        return refuse(format!(
            "the stages of its loads need {shared} bytes of shared memory, the device has {}",
            caps.max_shared_bytes
        ));
    }
    // All elements of a tile that is computed where it stands are in registers at once, and so is all that a loop carries.
    let largest = schedule.homes.keys().map(|&v| bytes_of(&tile, v)).max().unwrap_or(0);
    let registers = carried_bytes(&tile).max(largest) / 4 / schedule.threads().max(1) as usize;
    // Twice over: some of it may be spilled at little cost, but not half of it.
    let most = caps.registers().map_or(REGISTERS_ELSEWHERE, |r| r.thread as usize);
    if has_register_file(caps) && registers > 2 * most {
        return refuse(format!("its tiles take {registers} registers a thread, a thread has {most}"));
    }
    Ok(())
}

/// Judges a compiled configuration by what the driver says of it.
///
/// # Errors
/// [`FailureKind::Resources`] with what is missing.
pub fn after_compile(metadata: &Metadata, caps: Option<&Caps>) -> Result<(), Failure> {
    let Some(caps) = caps else { return Ok(()) };
    let refuse = |message: String| Err(Failure::new(FailureKind::Resources, message));
    if metadata.shared_bytes > caps.max_shared_bytes {
        return refuse(format!(
            "it needs {} bytes of shared memory, the device has {}",
            metadata.shared_bytes, caps.max_shared_bytes
        ));
    }
    if metadata.threads > caps.max_threads {
        return refuse(format!("it needs {} threads, the device allows {}", metadata.threads, caps.max_threads));
    }
    if let (Some(most), Some(registers)) = (caps.registers(), metadata.resources.registers) {
        let all = u64::from(registers) * u64::from(metadata.threads);
        if all > most.program.into() {
            return refuse(format!("it needs {all} registers, the device has {}", most.program));
        }
    }
    Ok(())
}

/// Do a thread's values live in registers that it cannot have more of? On a CPU they live on its stack; CPUs are told by
/// their narrow warps.
fn has_register_file(caps: &Caps) -> bool {
    caps.registers().is_some() || caps.warp_width >= 16
}

fn bytes_of(func: &Function, value: tilewright_compiler::tile::Value) -> usize {
    let ty = func.ty(value);
    ty.shape.elements() * ty.elem.bytes()
}

/// The most bytes of tiles that one loop carries: all of them live at once, spread over the threads.
fn carried_bytes(func: &Function) -> usize {
    let mut most = 0;
    func.walk(func.body, &mut |op| {
        let data = &func.ops[op];
        if matches!(data.op, Op::For | Op::While) {
            let tiles = data.results.iter().filter(|&&v| func.ty(v).shape.rank() > 0);
            most = most.max(tiles.map(|&v| bytes_of(func, v)).sum());
        }
    });
    most
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Matmul;

    #[test]
    fn the_cpu_knows_no_warps() {
        let c = Config::new().with("num_warps", 8).with("num_stages", 3);
        assert_eq!(canonical(c.clone(), None).options(), Options { num_warps: 1, num_stages: 1 });
        assert_eq!(canonical(c.clone(), Some(&Caps::ptx(90))), c);
        let small = Caps::opencl("small", 64, 32 << 10, true);
        assert_eq!(canonical(c, Some(&small)).options().num_warps, 2);
        let wide = Caps::spirv("wide", 64, 1024, 32 << 10);
        assert_eq!(canonical(Config::new().with("num_warps", 1), Some(&wide)).options().num_warps, 2);
    }

    #[test]
    fn too_many_stages_and_too_many_registers_are_refused() {
        let caps = Caps::ptx(90);
        let judge = |bm: usize, bk: usize, num_warps, num_stages| {
            before_compile(&Matmul::ir(bm, bm, bk), &caps, &Options { num_warps, num_stages })
        };
        assert_eq!(judge(64, 32, 4, 3), Ok(()));
        // 6 stages of two tiles of 32 KiB.
        let e = judge(128, 128, 8, 6).unwrap_err();
        assert!(e.kind == FailureKind::Resources && e.message.contains("bytes of shared memory"), "{e:?}");
        let e = judge(256, 16, 2, 1).unwrap_err();
        assert!(e.message.contains("registers a thread"), "{e:?}");
    }
}
