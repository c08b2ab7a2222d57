//! Passes: better Tile IR with the same meaning.
//!
//! **In** and **out**: verified Tile IR. **Holds**: a pass keeps what the function stores, bit for bit (only [`contract`]
//! drops a rounding, where the function allows it), and its hints; each file says what else holds after it. Every pass walks
//! the function a fixed number of times. Ops no longer used stay in the arenas, in no region.
//!
//! | pass | does |
//! |---|---|
//! | [`known`] | integers that can only be one number |
//! | [`fold`] | constants, identities, branches and loops that are decided |
//! | [`cse`] | merges equal ops |
//! | [`licm`] | moves what does not change out of loops |
//! | [`dce`] | removes what is not needed |
//! | [`divmod`] | division by constants to multiplications and shifts |
//! | [`contract`] | `a * b + c` to `fma` |

pub mod contract;
pub mod cse;
pub mod dce;
pub mod divmod;
pub mod fold;
pub mod known;
pub mod licm;
mod rewrite;
#[cfg(test)]
mod soundness;

use crate::error::Result;
use crate::tile::Function;

/// A pass: true if it changed the function.
pub type Pass = fn(&mut Function) -> bool;

/// Every pass with its name.
const PASSES: &[(&str, Pass)] = &[
    ("known", known::run),
    ("fold", fold::run),
    ("cse", cse::run),
    ("licm", licm::run),
    ("dce", dce::run),
    ("divmod", divmod::run),
    ("contract", contract::run),
];

/// The rounds of [`optimize`]: each is repeated until nothing changes, but at most [`MAX_ROUNDS`] times.
const SCHEDULE: &[&[&str]] =
    &[&["known", "fold", "cse", "licm", "dce"], &["divmod", "fold", "cse", "licm", "dce"], &["contract", "dce"]];

/// What one round leaves for the next gets less quickly; what is left after these is not worth the time.
const MAX_ROUNDS: usize = 4;

/// The pass called `name`.
pub fn by_name(name: &str) -> Option<Pass> {
    PASSES.iter().find(|(n, _)| *n == name).map(|(_, pass)| *pass)
}

/// The names of all passes.
pub fn names() -> impl Iterator<Item = &'static str> {
    PASSES.iter().map(|(name, _)| *name)
}

/// Runs all passes in the standard order.
///
/// # Errors
/// [`crate::Error::Verify`] if a pass broke the IR; checked only in builds with debug assertions.
pub fn optimize(func: &mut Function) -> Result<()> {
    optimize_with(func, &mut |_, _| {})
}

/// The same; `after` is shown the function after each pass that changed it, with the pass's name.
///
/// # Errors
/// As [`optimize`].
pub fn optimize_with(func: &mut Function, after: &mut dyn FnMut(&'static str, &Function)) -> Result<()> {
    for round in SCHEDULE {
        for _ in 0..MAX_ROUNDS {
            let mut changed = false;
            for (name, pass) in round.iter().filter_map(|wanted| PASSES.iter().find(|(n, _)| n == wanted)) {
                if pass(func) {
                    changed = true;
                    if cfg!(debug_assertions) {
                        crate::tile::verify::verify(func, name)?;
                    }
                    after(name, func);
                }
            }
            if !changed {
                break;
            }
        }
    }
    Ok(())
}
