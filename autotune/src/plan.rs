//! What there is to tune for one problem: the record's subject, and the candidates.

use crate::bench::source_hash;
use crate::config::Config;
use crate::key::Dims;
use crate::legality::canonical;
use crate::record::{Conditions, Subject, device_name};
use crate::tunable::Tunable;
use std::collections::HashSet;
use tilewright_runtime::{DType, Device, Error, Launch, Result};

/// The subject and the candidates of one problem.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What the record is about.
    pub subject: Subject,
    /// Under what it holds now.
    pub conditions: Conditions,
    /// The configurations, the default among them, in the form the device distinguishes, each once.
    pub candidates: Vec<Config>,
    /// How many each constraint removed.
    pub removed: Vec<(String, usize)>,
    /// How many differ only in what the device does not distinguish.
    pub merged: usize,
    /// What is used when nothing was tuned, and the reference.
    pub default: Config,
}

impl Plan {
    /// The plan for a kernel and a problem; `launch` makes launches for it.
    ///
    /// # Errors
    /// If the space is too large or has nothing for this problem, or the kernel cannot be built.
    pub fn new<'a>(
        tunable: &Tunable,
        device: &Device,
        dtype: DType,
        dims: &Dims,
        launch: &dyn Fn(&Config) -> Result<Launch<'a>>,
    ) -> Result<Self> {
        let fail = |message: String| Error::Arguments { kernel: tunable.name().to_owned(), message };
        let nothing = || fail(format!("its space has no configuration that is allowed for {dims}"));
        let subject = subject(tunable, device, dtype, dims, launch)?;
        let all = tunable.space().candidates(dims).map_err(fail)?;
        let before = all.configs.len();
        let mut seen = HashSet::new();
        let mut candidates: Vec<Config> = all.configs.into_iter().map(|c| canonical(c, device.caps())).collect();
        candidates.retain(|c| seen.insert(c.clone()));
        let merged = before - candidates.len();
        let default = tunable.default_config(device, dtype, dims).or_else(|| candidates.first().cloned());
        let default = default.ok_or_else(nothing)?;
        if !seen.contains(&default) {
            candidates.insert(0, default.clone());
        }
        let conditions = Conditions::now(device);
        Ok(Self { subject, conditions, candidates, removed: all.removed, merged, default })
    }
}

/// The subject of a problem. The kernel is identified by the first configuration of its space, whatever its sizes.
///
/// # Errors
/// If the space is empty, or the kernel cannot be built.
pub fn subject<'a>(
    tunable: &Tunable,
    device: &Device,
    dtype: DType,
    dims: &Dims,
    launch: &dyn Fn(&Config) -> Result<Launch<'a>>,
) -> Result<Subject> {
    let first = tunable.space().first().ok_or_else(|| Error::Arguments {
        kernel: tunable.name().to_owned(),
        message: "its space is empty: a parameter has no values".into(),
    })?;
    Ok(Subject {
        kernel: tunable.name().to_owned(),
        kernel_hash: source_hash(launch(&first)?.def())?,
        device: device_name(device),
        key: tunable.key(dims, dtype),
    })
}
