//! Options of `compile`.

use super::dynamic::Dynamic;
use crate::error::{Error, Result};
use crate::fuse::tune::Tuning;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What a compiled function is made fast for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum Mode {
    /// Little time to compile, little memory kept between calls.
    #[default]
    Default,
    /// Calls cost the host as little as possible: memory for everything is kept, and all kernels are submitted at once, on
    /// CUDA as a device graph.
    ReduceOverhead,
    /// As [`Mode::ReduceOverhead`], and every kernel's tiles, warps and stages are chosen by measuring them on the device, once:
    /// the choices are kept in the tuner's store.
    MaxAutotune,
    /// Tuned kernels, but nothing is kept between calls.
    MaxAutotuneNoGraphs,
}

impl Mode {
    /// All modes, by name.
    const ALL: [(&str, Mode); 4] = [
        ("default", Mode::Default),
        ("reduce-overhead", Mode::ReduceOverhead),
        ("max-autotune", Mode::MaxAutotune),
        ("max-autotune-no-graphs", Mode::MaxAutotuneNoGraphs),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, m)| *m == self).map_or("default", |(name, _)| name)
    }

    /// Are launches bound to memory that is kept between calls?
    pub(super) fn is_bound(self) -> bool {
        matches!(self, Mode::ReduceOverhead | Mode::MaxAutotune)
    }

    /// Are kernels tuned?
    pub(super) fn is_tuned(self) -> bool {
        matches!(self, Mode::MaxAutotune | Mode::MaxAutotuneNoGraphs)
    }
}

/// When is a compiled function captured again, to see whether it still uses the same tensors and numbers of its own, such as weights
/// behind a `Mutex`? A captured tensor that nobody else holds any more is noticed at once in any case.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CheckCaptures {
    /// At the second call, the fourth, the eighth and so on; at every call once it was found to use others.
    #[default]
    Auto,
    /// At every call.
    Always,
    /// Never.
    Never,
}

impl CheckCaptures {
    const NAMES: [&str; 3] = ["auto", "always", "never"];

    fn named(name: &str) -> Option<Self> {
        let all = [CheckCaptures::Auto, CheckCaptures::Always, CheckCaptures::Never];
        Self::NAMES.iter().position(|n| *n == name).map(|i| all[i])
    }
}

/// How a function is compiled. Mistakes in names are reported by `compile`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    backend: String,
    device: Option<String>,
    fullgraph: bool,
    fusion: bool,
    mode: Mode,
    tuning_budget: Duration,
    tuning_store: Option<PathBuf>,
    dynamic: Dynamic,
    graph_cache: bool,
    graph_cache_dir: Option<PathBuf>,
    graphs: Option<usize>,
    check_captures: CheckCaptures,
    mistake: Option<String>,
}

/// How long all kernels of a graph are tuned together, unless the user says otherwise.
const TUNING_BUDGET: Duration = Duration::from_secs(120);

/// Names of the options that [`Options::set`] knows.
const NAMES: [&str; 12] = [
    "backend",
    "check_captures",
    "device",
    "dynamic",
    "fullgraph",
    "fusion",
    "graph_cache",
    "graph_cache_dir",
    "graphs",
    "mode",
    "tuning_budget",
    "tuning_store",
];

impl Default for Options {
    fn default() -> Self {
        Self {
            backend: "tilewright".into(),
            device: None,
            fullgraph: false,
            fusion: true,
            mode: Mode::Default,
            tuning_budget: TUNING_BUDGET,
            tuning_store: None,
            dynamic: Dynamic::Auto,
            graph_cache: true,
            graph_cache_dir: None,
            graphs: None,
            check_captures: CheckCaptures::Auto,
            mistake: None,
        }
    }
}

impl Options {
    /// The default: fused kernels on the best device.
    pub fn new() -> Self {
        Self::default()
    }

    /// What runs the graphs; see [`crate::list_backends`].
    #[must_use]
    pub fn backend(mut self, name: &str) -> Self {
        name.clone_into(&mut self.backend);
        self
    }

    /// The device, by a name that `Device::open` takes; by default the best one.
    #[must_use]
    pub fn device(mut self, name: &str) -> Self {
        self.device = Some(name.to_owned());
        self
    }

    /// Is it an error if the function cannot be captured whole?
    #[must_use]
    pub fn fullgraph(mut self, on: bool) -> Self {
        self.fullgraph = on;
        self
    }

    /// Are primitives fused into common kernels? On by default.
    #[must_use]
    pub fn fusion(mut self, on: bool) -> Self {
        self.fusion = on;
        self
    }

    /// What it is made fast for: `default`, `reduce-overhead`, `max-autotune`, `max-autotune-no-graphs`; see [`Mode`].
    #[must_use]
    pub fn mode(mut self, name: &str) -> Self {
        let names = Mode::ALL.map(|(name, _)| name);
        match Mode::ALL.iter().find(|(known, _)| *known == name) {
            Some((_, mode)) => self.mode = *mode,
            None => {
                self.mistake.get_or_insert_with(|| unknown("mode", name, &names));
            }
        }
        self
    }

    /// In the modes that tune: how long all kernels of a graph may take together, roughly; 2 minutes by default. What is in
    /// the store takes no time.
    #[must_use]
    pub fn tuning_budget(mut self, budget: Duration) -> Self {
        self.tuning_budget = budget;
        self
    }

    /// In the modes that tune: the directory that results are kept in, instead of the one that
    /// `TILEWRIGHT_AUTOTUNE_DIR` names.
    #[must_use]
    pub fn tuning_store(mut self, directory: impl Into<PathBuf>) -> Self {
        self.tuning_store = Some(directory.into());
        self
    }

    /// Are extents parameters of kernels? By default those that have been seen to differ from call to call.
    #[must_use]
    pub fn dynamic(mut self, dynamic: Dynamic) -> Self {
        self.dynamic = dynamic;
        self
    }

    /// Are simplified graphs and their plans kept on disk? On by default, for graphs that are worth it.
    #[must_use]
    pub fn graph_cache(mut self, on: bool) -> Self {
        self.graph_cache = on;
        self
    }

    /// The directory that graphs are kept in, instead of `graphs` in the one that `TILEWRIGHT_CACHE_DIR` names.
    #[must_use]
    pub fn graph_cache_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.graph_cache_dir = Some(directory.into());
        self
    }

    /// How many graphs of a function are kept, at least 1; the one that was used longest ago is dropped for another. By default 1024, or
    /// 64 in the modes that keep memory between calls.
    #[must_use]
    pub fn graphs(mut self, most: usize) -> Self {
        if most == 0 {
            self.mistake.get_or_insert_with(|| "option `graphs` is at least 1".into());
        }
        self.graphs = Some(most);
        self
    }

    /// When it is looked whether a function still uses the same tensors of its own; see [`CheckCaptures`].
    #[must_use]
    pub fn check_captures(mut self, how: CheckCaptures) -> Self {
        self.check_captures = how;
        self
    }

    /// Sets an option by its name: `backend`, `check_captures`, `device`, `dynamic`, `fullgraph`, `fusion`, `graph_cache`, `graph_cache_dir`,
    /// `graphs`, `mode`, `tuning_budget` (as `30s` or `2m`), `tuning_store`.
    #[must_use]
    pub fn set(mut self, name: &str, value: &str) -> Self {
        let flag = match value {
            "on" | "true" | "1" => Some(true),
            "off" | "false" | "0" => Some(false),
            _ => None,
        };
        let problem = match (name, flag) {
            ("backend", _) => return self.backend(value),
            ("device", _) => return self.device(value),
            ("dynamic", _) => match Dynamic::named(value) {
                Some(dynamic) => return self.dynamic(dynamic),
                None => unknown("value of option `dynamic`:", value, &Dynamic::NAMES),
            },
            ("check_captures", _) => match CheckCaptures::named(value) {
                Some(how) => return self.check_captures(how),
                None => unknown("value of option `check_captures`:", value, &CheckCaptures::NAMES),
            },
            ("graphs", _) => match value.parse() {
                Ok(most) => return self.graphs(most),
                Err(_) => format!("option `graphs` is a number such as `256`, not `{value}`"),
            },
            ("fullgraph", Some(on)) => return self.fullgraph(on),
            ("fusion", Some(on)) => return self.fusion(on),
            ("graph_cache", Some(on)) => return self.graph_cache(on),
            ("graph_cache_dir", _) => return self.graph_cache_dir(value),
            ("fullgraph" | "fusion" | "graph_cache", None) => {
                format!("option `{name}` is `on` or `off`, not `{value}`")
            }
            ("mode", _) => return self.mode(value),
            ("tuning_store", _) => return self.tuning_store(value),
            ("tuning_budget", _) => match duration(value) {
                Some(budget) => return self.tuning_budget(budget),
                None => format!("option `tuning_budget` is a time such as `30s`, `500ms` or `2m`, not `{value}`"),
            },
            _ => unknown("option", name, &NAMES),
        };
        self.mistake.get_or_insert(problem);
        self
    }

    pub(super) fn check(&self) -> Result<()> {
        self.mistake.as_ref().map_or(Ok(()), |m| Err(Error::Options(m.clone())))
    }

    pub(super) fn backend_name(&self) -> &str {
        &self.backend
    }

    /// The device's name, if one was named.
    pub fn device_name(&self) -> Option<&str> {
        self.device.as_deref()
    }

    /// What it is made fast for.
    pub fn chosen_mode(&self) -> Mode {
        self.mode
    }

    /// How kernels are tuned in the modes that do. `TILEWRIGHT_AUTOTUNE` may forbid to measure.
    pub(super) fn tuning(&self) -> Tuning {
        let forced = std::env::var_os(tilewright_autotune::mode::VARIABLE).is_some_and(|v| !v.is_empty());
        let mode = if forced { tilewright_autotune::Mode::from_env().0 } else { tilewright_autotune::Mode::On };
        let store = match &self.tuning_store {
            Some(dir) => tilewright_autotune::Store::at(dir),
            None => tilewright_autotune::Store::from_env(),
        };
        Tuning { budget: self.tuning_budget, store, mode }
    }

    pub(super) fn is_graph_cache(&self) -> bool {
        self.graph_cache
    }

    pub(super) fn chosen_graph_cache_dir(&self) -> Option<&Path> {
        self.graph_cache_dir.as_deref()
    }

    pub(super) fn most_graphs(&self) -> usize {
        let default = if self.mode.is_bound() { 64 } else { 1024 };
        self.graphs.unwrap_or(default).max(1)
    }

    pub(super) fn checks_captures(&self) -> CheckCaptures {
        self.check_captures
    }

    pub(super) fn is_fullgraph(&self) -> bool {
        self.fullgraph
    }

    pub(super) fn is_dynamic(&self) -> Dynamic {
        self.dynamic
    }

    /// Are primitives to be fused?
    pub fn is_fused(&self) -> bool {
        self.fusion
    }
}

/// A time such as `30s`, `500ms` or `2m`; seconds without a unit.
fn duration(text: &str) -> Option<Duration> {
    let unit = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let number: f64 = text[..unit].trim().parse().ok()?;
    let seconds = match &text[unit..] {
        "ms" => number / 1000.0,
        "" | "s" => number,
        "m" | "min" => number * 60.0,
        "h" => number * 3600.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(seconds).ok()
}

/// The message for a name that does not exist, with the nearest one that does.
pub(super) fn unknown(what: &str, name: &str, known: &[&str]) -> String {
    let guess = nearest(name, known.iter().copied()).map_or(String::new(), |k| format!("; did you mean `{k}`?"));
    format!("unknown {what} `{name}`{guess}\n  known: {}", known.join(", "))
}

/// The known name that was meant by `name`, if one is like it.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known.map(|k| (edits(name, k), k)).min().filter(|(n, _)| *n <= 3).map(|(_, k)| k)
}

/// Letters to insert, remove, replace or swap with their neighbour to turn `a` into `b`.
fn edits(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut d = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            d[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let replaced = d[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let mut best = replaced.min(d[i - 1][j] + 1).min(d[i][j - 1] + 1);
                if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    best = best.min(d[i - 2][j - 2] + 1);
                }
                best
            };
        }
    }
    d[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_reported_with_what_was_meant() {
        let e = Options::new().set("fusoin", "on").check().unwrap_err().to_string();
        assert!(e.contains("unknown option `fusoin`; did you mean `fusion`?"), "{e}");
        let e = Options::new().set("fusion", "maybe").check().unwrap_err().to_string();
        assert!(e.contains("`on` or `off`"), "{e}");
        let e = Options::new().set("mode", "reduce-overheda").check().unwrap_err().to_string();
        assert!(e.contains("unknown mode `reduce-overheda`; did you mean `reduce-overhead`?"), "{e}");
        let e = Options::new().mode("fastest").check().unwrap_err().to_string();
        assert!(e.contains("known: default, reduce-overhead, max-autotune"), "{e}");
        assert_eq!(Options::new().set("mode", "reduce-overhead").chosen_mode(), Mode::ReduceOverhead);
        let minute = Options::new().tuning_budget(Duration::from_secs(60));
        for text in ["60", "60s", "1m", "60000ms"] {
            assert_eq!(Options::new().set("tuning_budget", text), minute);
        }
        for text in ["", "s", "-1s", "1 day", "NaN", "inf", "1e300h"] {
            let e = Options::new().set("tuning_budget", text).check().unwrap_err().to_string();
            assert!(e.contains("is a time such as"), "{e}");
        }
        let e = Options::new().set("dynamic", "allways").check().unwrap_err().to_string();
        assert!(e.contains("unknown value of option `dynamic`: `allways`; did you mean `always`?"), "{e}");
        assert_eq!(Options::new().set("dynamic", "never"), Options::new().dynamic(Dynamic::Never));
        assert_eq!(Options::new().set("fusion", "off"), Options::new().fusion(false));
    }
}
