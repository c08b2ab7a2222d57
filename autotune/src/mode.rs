//! Modes: what a launch of a tunable kernel may do.

use std::fmt;
use std::str::FromStr;

/// What a launch of a tunable kernel does about tuning.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Mode {
    /// Heuristics only; the store is not even read.
    Off,
    /// The stored winner if there is one, else heuristics. Never measures: the default, so that no launch stalls unasked.
    #[default]
    CachedOnly,
    /// The stored winner; where there is none the first launch tunes, within a budget, and stores the result.
    On,
    /// As [`Mode::On`], but what is stored is measured again, once for each key and process.
    Force,
}

/// The environment variable that sets the mode.
pub const VARIABLE: &str = "TILEWRIGHT_AUTOTUNE";

impl Mode {
    /// The mode that the environment names, or the default, with a message if what is named is none.
    pub fn from_env() -> (Self, Option<String>) {
        match std::env::var(VARIABLE) {
            Ok(text) if !text.is_empty() => match text.parse() {
                Ok(mode) => (mode, None),
                Err(e) => (Mode::default(), Some(format!("{VARIABLE}: {e}; `{}` is used", Mode::default()))),
            },
            _ => (Mode::default(), None),
        }
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        match s.trim().to_ascii_lowercase().replace('_', "-").as_str() {
            "off" | "0" => Ok(Mode::Off),
            "cached-only" | "cached" => Ok(Mode::CachedOnly),
            "on" | "1" => Ok(Mode::On),
            "force" => Ok(Mode::Force),
            _ => Err(format!("no mode is called `{s}`; there are off, cached-only, on and force")),
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Mode::Off => "off",
            Mode::CachedOnly => "cached-only",
            Mode::On => "on",
            Mode::Force => "force",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings() {
        for mode in [Mode::Off, Mode::CachedOnly, Mode::On, Mode::Force] {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        assert_eq!("CACHED_ONLY".parse(), Ok(Mode::CachedOnly));
        assert!("always".parse::<Mode>().unwrap_err().contains("there are off"));
    }
}
