//! The simulator: runs Thread IR on the CPU, and finds what is wrong with it that hardware would not say.
//!
//! **In**: a [`Function`] lowered for any target, its arguments, a [`Memory`] that stands for the device's, a grid.
//! **Out**: the memory as the kernel leaves it, and a [`Report`] of what the kernel did (accesses, bank conflicts,
//! sectors), or the first mistake as [`Error::Execution`]: what, which thread of which program, in which instruction.
//! **Holds**: programs run one after the other, the threads of a program in lockstep, so results are deterministic. A
//! mistake is found by the rules of the programming model and not by its outcome: lockstep excuses no missing barrier.
//!
//! What is found:
//! - accesses to global memory outside every buffer, and to a shared buffer outside of it, though other buffers may lie
//!   there; unaligned accesses;
//! - shared memory read before it is written, or read through a buffer other than the one it was written through;
//! - two threads of a program touching one byte of shared or global memory, at least one of them writing, without a
//!   barrier between them (a warp barrier orders the lanes of its warp). Also two threads writing one byte at once;
//! - bytes touched while an asynchronous copy into them is in flight;
//! - barriers not reached by all threads of the program, warp-wide ops not reached by all lanes of the warp, shuffles from
//!   lanes that do not exist;
//! - integer division by zero and shifts by the width or more, which [`crate::thread::ops`] forbids;
//! - shared memory read by a tensor-core product of four warps (`wgmma`) without a fence after its write, or written before
//!   the product is waited for; results of products in flight that anything else reads;
//! - loops without end.
//!
//! Not found: races between programs.

mod access;
mod exec;
mod memory;
mod pure;
mod report;
mod shadow;
mod shared;
mod warp;
mod wgmma;

#[cfg(test)]
mod tests;

pub use memory::Memory;
pub use report::{Accesses, Report};

use crate::error::{Diagnostic, Error, Loc, Result};
use crate::target::Caps;
use crate::thread::{Access, Function, Op, Shared, WgmmaLeft, eval, verify};

/// What a simulation checks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SimOptions {
    /// May one byte of shared memory be accessed in several widths ([`crate::target::Caps::untyped_shared`])? If not,
    /// buffers with elements of one width share an array of their own.
    pub untyped_shared: bool,
    /// Report races on global memory between the threads of one program?
    pub check_global_races: bool,
    /// Most instructions of one program, each counted once for all threads.
    pub step_limit: u64,
}

impl Default for SimOptions {
    fn default() -> Self {
        Self { untyped_shared: true, check_global_races: true, step_limit: 20_000_000 }
    }
}

impl SimOptions {
    /// The checks that fit code lowered for a target.
    pub fn of(caps: &Caps) -> Self {
        Self { untyped_shared: caps.untyped_shared, ..Self::default() }
    }
}

/// More than any device has. Every byte and every register of every thread costs memory of the host.
const MAX_SHARED_BYTES: u32 = 16 << 20;
const MAX_THREADS: u32 = 1 << 16;

/// Runs every program of a grid. `args` are the bits of the parameters, in order.
///
/// # Errors
/// [`Error::Verify`] if the function breaks the rules of Thread IR; [`Error::Execution`] at the first mistake found, in
/// which case memory is left as it was then.
pub fn run(func: &Function, args: &[u64], memory: &mut Memory, grid: [u32; 3], options: &SimOptions) -> Result<Report> {
    verify(func)?;
    let refuse = |message: String| {
        Err(Error::Execution { kernel: func.name.clone(), diagnostic: Diagnostic::new(Loc::UNKNOWN, message) })
    };
    if args.len() != func.params.len() {
        return refuse(format!("{} arguments given where {} are expected", args.len(), func.params.len()));
    }
    if func.threads > MAX_THREADS {
        return refuse(format!("{} threads of one program; at most {MAX_THREADS} are simulated", func.threads));
    }
    let shared_bytes = func.shared_bytes(None);
    if shared_bytes > MAX_SHARED_BYTES {
        return refuse(format!("{shared_bytes} bytes of shared memory; at most {MAX_SHARED_BYTES} are simulated"));
    }
    if !options.untyped_shared
        && let Some(message) = wrong_width(func)
    {
        return refuse(message);
    }
    let args: Vec<u64> = args.iter().zip(&func.params).map(|(&a, p)| eval::truncate(p.ty.ty(), a)).collect();
    let mut machine = exec::Machine::new(func, &args, memory, grid, options);
    for z in 0..grid[2] {
        for y in 0..grid[1] {
            for x in 0..grid[0] {
                machine.program([x, y, z])?;
            }
        }
    }
    Ok(machine.into_report())
}

/// The first access to shared memory that is not of its buffer's element width.
fn wrong_width(func: &Function) -> Option<String> {
    let mut found = None;
    func.walk(func.body, &mut |inst| {
        let wrong = |buf: Shared, width: u32| {
            let elem = u32::from(func.shared[buf].elem_bits);
            (width != elem).then(|| {
                let text = func.inst_text(inst);
                format!("an access of {width} bits to {buf}, which has elements of {elem} bits, in `{text}`")
            })
        };
        let message = match func.insts[inst].op {
            Op::SharedLoad(buf, Access { bits, n, .. }) | Op::SharedStore(buf, Access { bits, n, .. }) => {
                wrong(buf, u32::from(bits) * u32::from(n))
            }
            Op::CpAsync { buf, bytes, .. } => wrong(buf, 8 * u32::from(bytes)),
            Op::LdMatrix { buf, .. } => wrong(buf, 128),
            Op::Wgmma { a, b, .. } => match a {
                WgmmaLeft::Shared(a) => wrong(a.buf, 128).or_else(|| wrong(b.buf, 128)),
                WgmmaLeft::Registers => wrong(b.buf, 128),
            },
            _ => None,
        };
        found = found.take().or(message);
    });
    found
}
