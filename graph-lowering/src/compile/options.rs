//! Options of `compile`.

use crate::error::{Error, Result};

/// How a function is compiled. Mistakes in names are reported by `compile`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    backend: String,
    device: Option<String>,
    fullgraph: bool,
    fusion: bool,
    mistake: Option<String>,
}

/// Names of the options that [`Options::set`] knows.
const NAMES: [&str; 5] = ["backend", "device", "fullgraph", "fusion", "mode"];

impl Default for Options {
    fn default() -> Self {
        Self { backend: "tilewright".into(), device: None, fullgraph: false, fusion: true, mistake: None }
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

    /// Sets an option by its name: `backend`, `device`, `fullgraph`, `fusion`, `mode`.
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
            ("fullgraph", Some(on)) => return self.fullgraph(on),
            ("fusion", Some(on)) => return self.fusion(on),
            ("fullgraph" | "fusion", None) => format!("option `{name}` is `on` or `off`, not `{value}`"),
            ("mode", _) if value == "default" => return self,
            ("mode", _) => format!("mode `{value}` does not exist; there is `default`"),
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

    pub(super) fn is_fullgraph(&self) -> bool {
        self.fullgraph
    }

    /// Are primitives to be fused?
    pub fn is_fused(&self) -> bool {
        self.fusion
    }
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
        let e = Options::new().set("mode", "max-autotune").check().unwrap_err().to_string();
        assert!(e.contains("does not exist"), "{e}");
        assert_eq!(Options::new().set("fusion", "off"), Options::new().fusion(false));
    }
}
