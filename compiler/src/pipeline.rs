//! The whole way from Tile IR to code.

use crate::analysis::axis::axis_info;
use crate::error::Result;
use crate::lower;
use crate::passes;
use crate::schedule::Schedule;
use crate::target::{Caps, Code, Compiled, Language, opencl, ptx, spirv};
use crate::thread;
use crate::tile::Function;

/// Changes whenever the code made from the same Tile IR may change, so that stored code is not used for another compiler's.
pub const CODEGEN_VERSION: u32 = 1;

/// The choices of a launch that are not the kernel's own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Options {
    /// Warps of 32 threads of one program: a power of two. The number of threads is 32 times this on every target,
    /// whatever the width of its warps, unless the device allows fewer.
    pub num_warps: u32,
    /// Depth of the software pipeline of loads that feed `dot` in loops: 1 means none.
    pub num_stages: u32,
}

impl Options {
    /// Most warps of 32 threads of one program: no device allows more than 1024 threads.
    pub const MAX_WARPS: u32 = 32;

    /// Deepest pipeline: beyond it nothing is gained, and the code before the loop grows with each stage.
    pub const MAX_STAGES: u32 = 16;

    /// What is wrong with the options on any device, if something is: their value, and what it may be.
    pub fn mistake(&self) -> Option<(String, String)> {
        let Options { num_warps, num_stages } = *self;
        if !num_warps.is_power_of_two() || num_warps > Self::MAX_WARPS {
            let may = format!("num_warps is a power of two, 1 to {}", Self::MAX_WARPS);
            return Some((format!("num_warps is {num_warps}"), may));
        }
        if num_stages == 0 || num_stages > Self::MAX_STAGES {
            let may = format!("num_stages is 1 (no pipeline) to {}", Self::MAX_STAGES);
            return Some((format!("num_stages is {num_stages}"), may));
        }
        None
    }
}

impl Default for Options {
    /// 4 warps, 3 stages: Triton's defaults on its first supported chips.
    fn default() -> Self {
        Self { num_warps: 4, num_stages: 3 }
    }
}

/// What each stage of compilation gave, for printing and for tests.
#[derive(Clone, Debug)]
pub struct Stages {
    /// Tile IR after the passes.
    pub tile: Function,
    /// The decisions.
    pub schedule: Schedule,
    /// What one thread does.
    pub thread: thread::Function,
    /// The code.
    pub compiled: Compiled,
}

/// Compiles a function for a target: passes, schedule, lowering, emission.
///
/// # Errors
/// [`crate::Error::Unsupported`] if the target cannot do what the function asks.
pub fn compile(func: &Function, caps: &Caps, options: &Options) -> Result<Compiled> {
    Ok(compile_stages(func, caps, options)?.compiled)
}

/// The same, keeping what each stage gave.
///
/// # Errors
/// As [`compile`].
pub fn compile_stages(func: &Function, caps: &Caps, options: &Options) -> Result<Stages> {
    let (tile, schedule, thread) = to_thread(func, caps, options)?;
    let code = match caps.language {
        Language::Ptx { .. } => Code::Ptx(ptx::emit(&thread, caps)?),
        Language::SpirV => Code::SpirV(spirv::emit(&thread, caps)?),
        Language::OpenClC => Code::OpenClC(opencl::emit(&thread, caps)?),
    };
    let untyped = [8, 16, 32, 64].into_iter().map(|bits| thread.shared_bytes(Some(bits))).sum();
    let compiled = Compiled {
        entry: thread.name.clone(),
        threads: thread.threads,
        shared_bytes: if caps.untyped_shared { thread.shared_bytes(None) } else { untyped },
        params: thread.params.clone(),
        code,
    };
    Ok(Stages { tile, schedule, thread, compiled })
}

/// Passes, schedule and lowering: all but the emission.
///
/// # Errors
/// As [`compile`].
pub fn to_thread(func: &Function, caps: &Caps, options: &Options) -> Result<(Function, Schedule, thread::Function)> {
    let mut tile = func.clone();
    passes::optimize(&mut tile)?;
    let schedule = Schedule::plan(&tile, &axis_info(&tile), caps, options)?;
    let mut thread = lower::lower(&tile, schedule.clone(), caps)?;
    if let Some(registers) = caps.thread_registers(thread.threads) {
        let classes: Vec<u32> = tile.hints.iter().map(|hint| hint.alias_class).collect();
        // Assemblers order arithmetic for themselves, and need some registers of their own.
        let (most, aim) = (registers * 5 / 4, registers - 24);
        thread::order::fit_registers(&mut thread, &classes, most as usize, aim as usize);
    }
    if cfg!(debug_assertions) {
        thread::verify::verify(&thread)?;
    }
    Ok((tile, schedule, thread))
}
