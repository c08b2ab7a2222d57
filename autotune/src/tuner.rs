//! Launching tuned kernels: the stored winner, found once for each size and then at the cost of a table look-up.

use crate::bench::{Local, source_hash};
use crate::config::Config;
use crate::key::Dims;
use crate::measure::CachePolicy;
use crate::mode::Mode;
use crate::plan::{Plan, subject};
use crate::record::{Conditions, Record, Subject};
use crate::session::{Session, Settings, limit_on};
use crate::store::Store;
use crate::tunable::Tunable;
use crate::tuning::{Keeper, current};
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, RwLock};
use std::time::Duration;
use tilewright_runtime::{DType, Device, Error, Launch, Result};

/// Chooses configurations for launches.
pub struct Tuner {
    mode: Mode,
    store: Store,
    settings: Settings,
    quiet: bool,
    table: RwLock<HashMap<u64, Vec<Slot>, BuildHasherDefault<Passed>>>,
    /// One tuning at a time: two at once would disturb each other's times.
    tuning: Mutex<()>,
    /// Records read or made here.
    records: Mutex<HashMap<Subject, Record>>,
    forced: Mutex<HashSet<Subject>>,
    /// Configurations measured or failed here.
    measured: AtomicUsize,
}

/// A configuration chosen, and how it compares.
#[derive(Clone, PartialEq, Debug)]
pub struct Choice {
    /// The configuration.
    pub config: Config,
    /// What would be used had nothing been tuned, if anything is allowed.
    pub default: Option<Config>,
    /// The median time of a launch in microseconds, if it was measured.
    pub median_us: Option<f64>,
    /// That of the default.
    pub default_us: Option<f64>,
    /// Configurations measured or failed for this choice; 0 if the store had it.
    pub measured: usize,
}

/// A choice made, with all that decided it.
struct Slot {
    tunable: *const Tunable,
    device: String,
    dtype: DType,
    dims: Box<[i64]>,
    config: Arc<Config>,
}

// SAFETY: the pointer is compared with others, never followed.
unsafe impl Send for Slot {}
// SAFETY: as above.
unsafe impl Sync for Slot {}

impl Tuner {
    /// A tuner of this mode on this store.
    pub fn new(mode: Mode, store: Store) -> Self {
        Self {
            mode,
            store,
            settings: Settings { budget: Duration::from_secs(10), ..Settings::default() },
            quiet: false,
            table: RwLock::default(),
            tuning: Mutex::default(),
            records: Mutex::default(),
            forced: Mutex::default(),
            measured: AtomicUsize::new(0),
        }
    }

    /// The same with these settings for tuning at a launch; the budget is 10 s by default.
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// The same without messages on the standard error.
    #[must_use]
    pub fn quiet(mut self) -> Self {
        self.quiet = true;
        self
    }

    /// The tuner that launches use: mode from `TILEWRIGHT_AUTOTUNE`, store from [`Store::from_env`], read once.
    pub fn global() -> &'static Tuner {
        static GLOBAL: LazyLock<Tuner> = LazyLock::new(|| {
            let (mode, warning) = Mode::from_env();
            let tuner = Tuner::new(mode, Store::from_env());
            if let Some(warning) = warning {
                tuner.say(&warning);
            }
            tuner
        });
        &GLOBAL
    }

    /// The mode.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The launch of a tunable kernel in the configuration chosen for these sizes. `source` makes the launch for a configuration.
    ///
    /// The choice is the fastest stored configuration that is allowed for exactly these sizes and compiles for exactly these
    /// arguments; else the heuristic's. In the modes `on` and `force` the first launch of a size may tune: it runs
    /// many configurations on these very arguments and puts what they wrote back as it was.
    ///
    /// # Errors
    /// If no configuration can be launched: the first reason.
    pub fn launch<'a>(
        &self,
        tunable: &'static Tunable,
        device: &Device,
        dtype: DType,
        dims: &[i64],
        source: impl Fn(&Config) -> Result<Launch<'a>>,
    ) -> Result<Launch<'a>> {
        let hash = hash(tunable, device.name(), dtype, dims);
        if let Some(config) = self.find(hash, tunable, device.name(), dtype, dims) {
            let launch = source(&config)?;
            // Compiled long since, unless these arguments are of another alignment than those the choice was made for.
            if launch.compile().is_ok() {
                return Ok(launch);
            }
            return self.choose(tunable, device, dtype, dims, &source).map(|(_, launch)| launch);
        }
        let (config, launch) = self.choose(tunable, device, dtype, dims, &source)?;
        let slot =
            Slot { tunable, device: device.name().to_owned(), dtype, dims: dims.into(), config: Arc::new(config) };
        self.table.write().unwrap_or_else(PoisonError::into_inner).entry(hash).or_default().push(slot);
        Ok(launch)
    }

    /// What [`Tuner::launch`] would choose, for kernels made at run time: nothing is remembered beside the store and what
    /// this tuner has read of it.
    ///
    /// # Errors
    /// As [`Tuner::launch`].
    pub fn choice<'a>(
        &self,
        tunable: &Tunable,
        device: &Device,
        dtype: DType,
        dims: &[i64],
        source: impl Fn(&Config) -> Result<Launch<'a>>,
    ) -> Result<Choice> {
        let before = self.measured.load(Relaxed);
        let (config, _) = self.choose(tunable, device, dtype, dims, &source)?;
        let measured = self.measured.load(Relaxed) - before;
        let dims = Dims::new(tunable.dims(), dims);
        let default = dims.as_ref().and_then(|dims| tunable.default_config(device, dtype, dims));
        let mut times = (None, None);
        if let Some(dims) = &dims {
            let subject = subject(tunable, device, dtype, dims, &source)?;
            let records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
            let time = |c: &Config| records.get(&subject)?.entry(c)?.median();
            times = (time(&config), default.as_ref().and_then(time));
        }
        Ok(Choice { config, default, median_us: times.0, default_us: times.1, measured })
    }

    fn find(&self, hash: u64, tunable: &Tunable, device: &str, dtype: DType, dims: &[i64]) -> Option<Arc<Config>> {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        let same =
            |s: &&Slot| std::ptr::eq(s.tunable, tunable) && s.dtype == dtype && *s.dims == *dims && s.device == device;
        table.get(&hash)?.iter().find(same).map(|s| s.config.clone())
    }

    #[cold]
    fn choose<'a>(
        &self,
        tunable: &Tunable,
        device: &Device,
        dtype: DType,
        dims: &[i64],
        source: &dyn Fn(&Config) -> Result<Launch<'a>>,
    ) -> Result<(Config, Launch<'a>)> {
        let fail = |message: String| Error::Arguments { kernel: tunable.name().to_owned(), message };
        let dims = Dims::new(tunable.dims(), dims)
            .ok_or_else(|| fail(format!("it has the sizes {:?}, but {} were given", tunable.dims(), dims.len())))?;
        let record = match self.mode {
            Mode::Off => None,
            _ => self.record(tunable, device, dtype, &dims, source)?,
        };
        let mut reason = None;
        if record.as_ref().is_some_and(|r| r.winner().is_none() && r.entries.iter().any(|e| e.imported)) {
            self.say(&format!(
                "what is stored of {} for {dims} was imported and not measured here yet: not used; `autotune run` does it",
                tunable.name()
            ));
        }
        for entry in record.iter().flat_map(Record::ranking).filter(|e| !e.imported) {
            // A stored winner is only a wish: it must be allowed for these sizes, be the same code as when it was measured,
            // and compile for these arguments.
            let usable = || {
                tunable.space().allows(&entry.config, &dims, device.caps()).or_else(|why| {
                    let default = tunable.default_config(device, dtype, &dims);
                    if default.as_ref() == Some(&entry.config) { Ok(()) } else { Err(why) }
                })?;
                let launch = source(&entry.config).map_err(|e| e.to_string())?;
                let now = source_hash(launch.def()).map_err(|e| e.to_string())?;
                if entry.facts.as_ref().is_none_or(|f| f.source != now) {
                    return Err(format!("the kernel has changed since `{}` was measured", entry.config));
                }
                launch.compile().map_err(|e| e.to_string())?;
                Ok(launch)
            };
            match usable() {
                Ok(launch) => return Ok((entry.config.clone(), launch)),
                Err(why) => {
                    let line = why.lines().next().unwrap_or_default().to_owned();
                    self.say(&format!("{}: a stored configuration is passed over: {line}", tunable.name()));
                }
            }
        }
        let default = tunable.default_config(device, dtype, &dims);
        let rest = tunable.space().candidates(&dims).map_err(fail)?.configs;
        let rest = rest.into_iter().map(|c| crate::legality::canonical(c, device.caps()));
        for config in default.into_iter().chain(rest) {
            let launch = source(&config).and_then(|l| l.compile().map(|_| l));
            match launch {
                Ok(launch) => return Ok((config, launch)),
                // A mistake in the kernel or its arguments is the same in every configuration.
                Err(e @ Error::Compile(tilewright_compiler::Error::Kernel { .. })) => return Err(reason.unwrap_or(e)),
                Err(e) => {
                    reason.get_or_insert(e);
                }
            }
        }
        Err(reason.unwrap_or_else(|| fail(format!("its space has no configuration that is allowed for {dims}"))))
    }

    /// The record for these sizes, tuned if the mode says so.
    fn record<'a>(
        &self,
        tunable: &Tunable,
        device: &Device,
        dtype: DType,
        dims: &Dims,
        source: &dyn Fn(&Config) -> Result<Launch<'a>>,
    ) -> Result<Option<Record>> {
        let subject = subject(tunable, device, dtype, dims, source)?;
        let find = || {
            let own = self.records.lock().unwrap_or_else(PoisonError::into_inner).get(&subject).cloned();
            own.or_else(|| {
                let found = self.store.load(&subject, &Conditions::now(device));
                found.aside.iter().for_each(|a| self.say(&a.to_string()));
                // Other sizes of the bucket need not read it again.
                if let Some(record) = &found.record {
                    let mut own = self.records.lock().unwrap_or_else(PoisonError::into_inner);
                    own.insert(subject.clone(), record.clone());
                }
                found.record
            })
        };
        let first_force = || self.forced.lock().unwrap_or_else(PoisonError::into_inner).insert(subject.clone());
        let known = find();
        let has_winner = |r: &Option<Record>| r.as_ref().is_some_and(|r| r.winner().is_some());
        match self.mode {
            Mode::Off | Mode::CachedOnly => return Ok(known),
            Mode::On if has_winner(&known) => return Ok(known),
            Mode::On | Mode::Force => {}
        }
        let _turn = self.tuning.lock().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have tuned it meanwhile.
        let known = find();
        let force = self.mode == Mode::Force && first_force();
        if has_winner(&known) && !force {
            return Ok(known);
        }
        let plan = Plan::new(tunable, device, dtype, dims, source)?;
        let record = known.unwrap_or_else(|| Record::new(plan.subject.clone(), plan.conditions.clone()));
        let record = current(record, &plan, source);
        let seconds = self.settings.budget.as_secs_f64();
        self.say(&format!("tuning {} for {dims} on {} (up to {seconds:.0} s)", tunable.name(), device.name()));
        let settings = Settings { force, ..self.settings.clone() };
        let mut keep = Keeper { store: &self.store, plan: &plan, record: record.clone(), new: Vec::new(), error: None };
        {
            let limit = settings.limit.unwrap_or_else(|| limit_on(device));
            let bench = Local::new(&source, &plan.default, CachePolicy::of(device), tunable.set_tolerance(), limit);
            let mut bench = match bench {
                Ok(bench) => bench,
                // The launch itself needs no copies of its arguments.
                Err(e @ Error::OutOfMemory { .. }) => {
                    self.say(&format!(
                        "{} is not tuned: there is no memory for copies of its arguments: {e}",
                        tunable.name()
                    ));
                    return Ok(Some(record));
                }
                Err(e) => return Err(e),
            };
            let session = Session {
                candidates: &plan.candidates,
                reference: plan.default.clone(),
                record: &record,
                problem: dims.to_string(),
                settings: &settings,
                stop: &AtomicBool::new(false),
            };
            let summary = session.run(&mut bench, &mut |_| {}, &mut |entries| keep.add(entries));
            if summary.lost {
                self.say(&format!(
                    "a configuration of {} has taken the device {} with it; it is stored as failed and not tried again. \
                     Tune with the command, which uses worker processes",
                    tunable.name(),
                    device.name()
                ));
            }
        }
        if let Some(e) = &keep.error {
            self.say(&format!("the result holds for this process only: {e}"));
        }
        self.measured.fetch_add(keep.new.len(), Relaxed);
        let record = keep.record.clone();
        self.records.lock().unwrap_or_else(PoisonError::into_inner).insert(plan.subject.clone(), record.clone());
        Ok(Some(record))
    }

    fn say(&self, message: &str) {
        if !self.quiet {
            eprintln!("tilewright autotune: {message}");
        }
    }
}

impl std::fmt::Debug for Tuner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tuner").field("mode", &self.mode).field("store", &self.store).finish()
    }
}

/// The multiply-and-rotate hash of Firefox and rustc: a few nanoseconds, for keys that nobody chooses to collide.
fn hash(tunable: &Tunable, device: &str, dtype: DType, dims: &[i64]) -> u64 {
    let add = |h: u64, word: u64| (h.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    let mut h = add(0, std::ptr::from_ref(tunable).addr() as u64);
    h = add(h, dtype as u64);
    h = device.bytes().fold(h, |h, b| add(h, b.into()));
    h = dims.iter().fold(h, |h, &d| add(h, d as u64));
    // The high bits are the best mixed; the table takes its index from the low ones.
    h.rotate_left(26)
}

/// A hash that is one already.
#[derive(Default)]
struct Passed(u64);

impl Hasher for Passed {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |h, b| h.wrapping_mul(31).wrapping_add((*b).into()));
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = n;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
