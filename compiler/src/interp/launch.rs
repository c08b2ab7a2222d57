//! Running every program of a grid, one after the other or on several threads.

use super::exec::{Context, Worker};
use super::memory::Memory;
use super::program::{Program, truncate_elem};
use super::races::Races;
use super::value::Repr;
use super::watch::Watch;
use crate::error::{Diagnostic, Error, Loc, Result};
use crate::tile::Elem;
use rayon::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// The value of one flattened kernel parameter (see [`crate::tile::ParamKind`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArgValue {
    /// A number: its bits, in the low ones.
    Bits(u64),
    /// An address of host memory.
    Ptr(u64),
}

/// What all programs of one launch share.
#[derive(Clone, Copy)]
struct Call<'a> {
    args: &'a [u64],
    memory: &'a Memory,
    grid: [u32; 3],
    until: Option<Instant>,
    /// The first program that has failed.
    failed: &'a AtomicU64,
    /// Notes on who accesses what, if that is asked for.
    races: Option<&'a Races>,
}

impl Program {
    /// Runs every program of the grid, on the threads of the current rayon pool. `args` are the flattened arguments.
    ///
    /// The results are the same bits for any number of threads, unless programs of the grid race in memory.
    ///
    /// # Errors
    /// [`Error::Execution`] if the arguments do not fit, or if the kernel touches memory outside of `memory`: then of
    /// the first such program in the grid's order. What was stored before stays stored. Also if programs race and
    /// [`Memory::checking_races`] is on.
    pub fn run(&self, args: &[ArgValue], memory: &Memory, grid: [u32; 3]) -> Result<()> {
        self.run_until(args, memory, grid, None)
    }

    /// The same until a moment, if one is given.
    ///
    /// # Errors
    /// As [`Program::run`]; [`Error::TimedOut`] soon after the moment if programs still run then.
    pub fn run_until(&self, args: &[ArgValue], memory: &Memory, grid: [u32; 3], until: Option<Instant>) -> Result<()> {
        let (bits, programs) = self.check(args, grid)?;
        let races = self.races(memory, grid, programs);
        let failed = &AtomicU64::new(u64::MAX);
        let call = Call { args: &bits, memory, grid, until, failed, races: races.as_ref() };
        let threads = rayon::current_num_threads() as u64;
        if threads == 1 || programs == 1 {
            return self.run_range(0..programs, call);
        }
        // Several chunks per thread even out programs of different length.
        let chunk = programs.div_ceil(threads * 8).max(1);
        let errors: Vec<Option<Error>> = (0..programs.div_ceil(chunk))
            .into_par_iter()
            .map(|c| self.run_range(c * chunk..((c + 1) * chunk).min(programs), call).err())
            .collect();
        // Chunks are in order, and each stopped at its first failure.
        errors.into_iter().flatten().next().map_or(Ok(()), Err)
    }

    /// The same on the current thread alone, program after program in the grid's order (axis 0 fastest).
    ///
    /// # Errors
    /// As [`Program::run`].
    pub fn run_serial(&self, args: &[ArgValue], memory: &Memory, grid: [u32; 3]) -> Result<()> {
        self.run_serial_until(args, memory, grid, None)
    }

    /// The same until a moment, if one is given.
    ///
    /// # Errors
    /// As [`Program::run_until`].
    pub fn run_serial_until(
        &self,
        args: &[ArgValue],
        memory: &Memory,
        grid: [u32; 3],
        until: Option<Instant>,
    ) -> Result<()> {
        let (bits, programs) = self.check(args, grid)?;
        let races = self.races(memory, grid, programs);
        let failed = &AtomicU64::new(u64::MAX);
        self.run_range(0..programs, Call { args: &bits, memory, grid, until, failed, races: races.as_ref() })
    }

    /// Notes for the check of races, if it is asked for.
    fn races(&self, memory: &Memory, grid: [u32; 3], programs: u64) -> Option<Races> {
        let elements = self.params.iter().map(|ty| ty.elem);
        memory.check_races.then(|| Races::new(memory, elements, grid, programs)).flatten()
    }

    fn error(&self, message: String, help: &str) -> Error {
        Error::Execution {
            kernel: self.name.clone(),
            diagnostic: Diagnostic::new(Loc::UNKNOWN, message).help(help.to_owned()),
        }
    }

    /// That the time was up before this program began.
    fn late(&self, program: u64) -> Error {
        let message = format!("{program} of the programs had run");
        let help = "give it more time, or launch fewer programs";
        Error::TimedOut {
            kernel: self.name.clone(),
            diagnostic: Diagnostic::new(Loc::UNKNOWN, message).help(help.to_owned()),
        }
    }

    /// The bits of the arguments, and the number of programs.
    fn check(&self, args: &[ArgValue], grid: [u32; 3]) -> Result<(Vec<u64>, u64)> {
        if args.len() != self.params.len() {
            let (expected, got) = (self.params.len(), args.len());
            return Err(self.error(
                format!("{got} flattened arguments were given, but the kernel takes {expected}"),
                "a view stands for its base address, its extents and its strides",
            ));
        }
        let mut bits = Vec::with_capacity(args.len());
        for (i, (arg, ty)) in args.iter().zip(&self.params).enumerate() {
            bits.push(match (arg, ty.elem) {
                (ArgValue::Bits(b), Elem::Scalar(_)) => truncate_elem(ty.elem, *b),
                (ArgValue::Ptr(p), Elem::Ptr(_)) => *p,
                (arg, elem) => {
                    return Err(self.error(
                        format!("flattened argument {i} is {arg:?}, but the kernel takes {elem}"),
                        "pass addresses for pointers and for the bases of views, numbers for all else",
                    ));
                }
            });
        }
        let programs = grid.iter().try_fold(1u64, |n, &g| n.checked_mul(g.into()));
        match programs {
            Some(n) if grid.iter().all(|&g| i32::try_from(g).is_ok()) => Ok((bits, n)),
            _ => Err(self.error(
                format!("a grid of {} x {} x {} programs is too large", grid[0], grid[1], grid[2]),
                "each extent is below 2^31, and their product below 2^64",
            )),
        }
    }

    /// Runs some programs in order up to the first that fails; none after one that has failed elsewhere.
    fn run_range(&self, programs: std::ops::Range<u64>, call: Call<'_>) -> Result<()> {
        let Call { args, memory, grid, until, failed, races } = call;
        let mut worker = self.take_worker();
        worker.watch = Watch::new(until);
        let [gx, gy] = [u64::from(grid[0]), u64::from(grid[1])];
        for program in programs {
            if failed.load(Ordering::Relaxed) < program {
                break;
            }
            if worker.watch.is_over() {
                failed.fetch_min(program, Ordering::Relaxed);
                return Err(self.late(program));
            }
            for (slot, &bits) in worker.slots.iter_mut().zip(args) {
                slot.repr = Repr::Uniform(bits);
            }
            let id = [program % gx, program / gx % gy, program / gx / gy].map(|i| i as u32);
            // Numbers that do not fit are of launches that are not checked.
            let number = u32::try_from(program + 1).unwrap_or(0);
            let context = Context { kernel: &self.name, memory, grid, id, number, races };
            if let Err(error) = worker.run(&self.body, context) {
                failed.fetch_min(program, Ordering::Relaxed);
                // The worker is dropped: its slots are as the failure left them.
                return Err(error);
            }
        }
        if let Ok(mut workers) = self.workers.lock() {
            workers.push(worker);
        }
        Ok(())
    }

    fn take_worker(&self) -> Worker {
        let idle = self.workers.lock().ok().and_then(|mut workers| workers.pop());
        idle.unwrap_or_else(|| Worker::new(self))
    }
}
