//! Why a kernel is as fast as it is: what was decided about each product, load and store, with places in the source.

use crate::args;
use crate::error::Result;
use crate::launch::Launch;
use crate::metadata::Resources;
use crate::specialize;
use std::fmt;
use tilewright_compiler::pipeline::{self, Options, Stages};
use tilewright_compiler::schedule::Remark;
use tilewright_compiler::target::Caps;
use tilewright_compiler::tile::Value;

/// Registers of a thread from which on it is told which tiles take them.
const MANY_REGISTERS: u32 = 200;

/// What [`Launch::explain`] tells; its `Display` text is for people.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct Explanation {
    /// The kernel's name.
    pub kernel: String,
    /// What it is compiled for: a device, or a kind of device.
    pub target: String,
    /// Warps and stages that were asked for.
    pub options: Options,
    /// Lanes of a warp, warps of a program.
    pub shape: (u32, u32),
    /// What was decided about products, loads and stores, in program order.
    pub remarks: Vec<Remark>,
    /// The tiles that take most registers, with the registers of 32 bits that each takes of a thread.
    pub largest: Vec<(Remark, usize)>,
    /// Bytes of shared memory of a program, and the most that there may be.
    pub shared_bytes: (u32, u32),
    /// What the driver says of the kernel; empty if it was compiled for no device that is here.
    pub resources: Resources,
    /// Programs that a processor of the device runs at once, where the driver says so.
    pub programs_per_processor: Option<u32>,
}

impl Launch<'_> {
    /// Why the kernel is as fast as it is on its device: which instructions do its products and why not faster ones, which loads
    /// run ahead, how wide each access is and what would make it wider, registers and shared memory.
    ///
    /// `None` for the CPU device, which interprets Tile IR and schedules nothing.
    ///
    /// # Errors
    /// As [`Launch::compile`].
    pub fn explain(&self) -> Result<Option<Explanation>> {
        let device = self.device()?;
        let crate::backend::Target::Code(caps) = device.backend.target() else { return Ok(None) };
        let mut explanation = self.explain_for(caps)?;
        let kernel = self.compile()?;
        let info = device.backend.info();
        explanation.target = format!("{} ({})", info.name, info.model);
        explanation.resources = kernel.metadata().resources;
        explanation.programs_per_processor = kernel.loaded.programs_per_processor();
        Ok(Some(explanation))
    }

    /// The same for a device that need not be here, known by what it can do: `Caps::ptx(90)`, for one.
    ///
    /// # Errors
    /// [`crate::Error::Compile`] as for [`Launch::compile`].
    pub fn explain_for(&self, caps: &Caps) -> Result<Explanation> {
        let spec = specialize::specialization(&specialize::key(self.arguments()), self.current_fp_fusion());
        let func = self.def().build(&spec)?;
        args::check(self.def().name, self.arguments(), &func.params)?;
        let options = self.current_options();
        let Stages { tile, schedule, compiled, .. } = pipeline::compile_stages(&func, caps, &options)?;
        let flat = &tile.regions[tile.body].params;
        let numbers = args::numbers(self.arguments());
        let known =
            |value: Value| flat.iter().position(|&v| v == value).and_then(|i| numbers.get(i).copied().flatten());
        Ok(Explanation {
            kernel: func.name.clone(),
            target: caps.name.clone(),
            options,
            shape: (schedule.lanes, schedule.warps),
            remarks: schedule.explain(&tile, &known),
            largest: schedule.largest(&tile, 3),
            shared_bytes: (compiled.shared_bytes, caps.max_shared_bytes),
            resources: Resources::default(),
            programs_per_processor: None,
        })
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (lanes, warps) = self.shape;
        let plural = if warps == 1 { "" } else { "s" };
        writeln!(
            f,
            "{} on {}: {warps} warp{plural} of {lanes} lanes, {} stages",
            self.kernel, self.target, self.options.num_stages
        )?;
        for remark in &self.remarks {
            writeln!(f, "  {remark}")?;
        }
        let (used, most) = self.shared_bytes;
        write!(f, "  resources: {used} of {most} bytes of shared memory")?;
        if let Some(registers) = self.resources.registers {
            write!(f, ", {registers} registers a thread")?;
        }
        match self.resources.spill_bytes.or(self.resources.local_bytes) {
            Some(bytes) if bytes > 0 => write!(f, ", of which {bytes} bytes are spilled to memory")?,
            _ => {}
        }
        if let Some(programs) = self.programs_per_processor {
            write!(f, "; a processor runs {programs} such programs at once")?;
        }
        writeln!(f)?;
        let spills = self.resources.spill_bytes.or(self.resources.local_bytes).is_some_and(|b| b > 0);
        if spills || self.resources.registers.is_some_and(|r| r >= MANY_REGISTERS) {
            for (tile, registers) in &self.largest {
                writeln!(f, "  registers: {registers} of each thread hold {tile}")?;
            }
        }
        Ok(())
    }
}
