//! The interpreter, as the CPU device calls it.

use crate::backend::PackedArgs;
use crate::error::Result;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::LazyLock;
use std::time::Instant;
use tilewright_compiler::interp::{self, ArgValue, MemRegion, Memory};
use tilewright_compiler::tile::Function;

/// A kernel made ready for the interpreter.
pub(super) struct Program {
    program: interp::Program,
    /// Is flattened parameter `i` an address?
    pointers: Vec<bool>,
}

impl Program {
    pub fn new(func: &Function) -> Result<Program> {
        let params = &func.regions[func.body].params;
        Ok(Program {
            program: interp::Program::compile(func)?,
            pointers: params.iter().map(|&v| func.ty(v).elem.is_ptr()).collect(),
        })
    }

    /// Runs every program of the grid, until a moment if one is given. The kernel reaches the regions of the arguments and nothing else.
    ///
    /// # Safety
    /// The regions are live, initialised memory that nobody else uses meanwhile.
    pub unsafe fn run(&self, grid: [u32; 3], args: &PackedArgs<'_>, until: Option<Instant>) -> Result<()> {
        let value = |(&pointer, &word)| if pointer { ArgValue::Ptr(word) } else { ArgValue::Bits(word) };
        let values: Vec<ArgValue> = self.pointers.iter().zip(args.words).map(value).collect();
        let regions = args.regions.iter().filter(|r| r.bytes > 0).map(|r| {
            let start = std::ptr::with_exposed_provenance_mut(r.addr as usize);
            // SAFETY: the caller vouches for the memory.
            unsafe { MemRegion::new(start, r.bytes as usize, r.writable) }
        });
        let memory = Memory::new(regions.collect()).checking_races(checks_races());
        let run = || self.program.run_until(&values, &memory, grid, until);
        let result = match threads() {
            // No other thread is needed for one program.
            Some(threads) if grid != [1; 3] => {
                if rayon::current_thread_index().is_none() {
                    threads.install(run)
                } else {
                    // A thread of rayon that waits takes up other tasks, which may launch too and wait for this launch to
                    // end: another thread waits in its place.
                    std::thread::scope(|s| s.spawn(|| threads.install(run)).join())
                        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                }
            }
            _ => self.program.run_serial_until(&values, &memory, grid, until),
        };
        Ok(result?)
    }
}

/// Are races between the programs of a launch errors? `TILEWRIGHT_RACES=on` or `off` decides; else they are in builds with debug
/// assertions, as overflows of integers are.
fn checks_races() -> bool {
    static ON: LazyLock<bool> = LazyLock::new(|| match std::env::var("TILEWRIGHT_RACES").as_deref() {
        Ok("on") => true,
        Ok("off") => false,
        _ => cfg!(debug_assertions),
    });
    *ON
}

/// The interpreter's own threads: those of rayon's global pool may all be waiting for the device. `None` if the system
/// gives no more threads.
fn threads() -> Option<&'static ThreadPool> {
    static THREADS: LazyLock<Option<ThreadPool>> = LazyLock::new(|| {
        let name = |i| format!("tilewright cpu {i}");
        ThreadPoolBuilder::new().thread_name(name).build().ok()
    });
    THREADS.as_ref()
}
