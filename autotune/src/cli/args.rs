//! The command line.

use crate::measure::CachePolicy;
use crate::search::Search;
use crate::tuning::Isolation;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Parser, Debug)]
#[command(
    name = "autotune",
    version,
    about = "Finds the fastest configuration of kernels and remembers it",
    after_help = "Exit codes:
  0    done
  1    something failed that no other code names
  2    the command line is wrong
  3    no configuration works, or nothing is stored for what was asked
  4    the device cannot be used
  5    measured, but the results could not be stored
  6    verify: records that do not hold; diff: other winners
  130  ended by Ctrl-C; what was measured is stored

Environment:
  TILEWRIGHT_AUTOTUNE       what launches do: off, cached-only (default), on, force
  TILEWRIGHT_AUTOTUNE_DIR   the store; else tilewright/autotune in XDG_CACHE_HOME or ~/.cache
  TILEWRIGHT_AUTOTUNE_LIMIT most bytes of all records, such as 256M (the default)
  TILEWRIGHT_CACHE_LIMIT    most bytes of compiled code, such as 1G (the default)"
)]
pub struct Options {
    /// The store's directory, instead of the one the environment names.
    #[arg(long, global = true, value_name = "DIR")]
    pub store: Option<PathBuf>,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Lists the kernels of this program.
    List {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Tunes a kernel, or all.
    Run(Run),
    /// Shows what is stored.
    Show {
        #[command(flatten)]
        which: Which,
        /// As JSON: the records as they are stored.
        #[arg(long)]
        json: bool,
    },
    /// Explains a result: what was removed, what failed, what was given up when, and which parameters matter.
    Explain {
        #[command(flatten)]
        which: Which,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Compares winners and times with another store or an exported file.
    Diff {
        /// The other store's directory, or a file written by export.
        other: PathBuf,
    },
    /// Says which records hold for this program and this machine.
    Verify {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Removes records and configurations that do not hold any more, damaged and left-over files, and compiled code that was not
    /// used for 30 days.
    Prune {
        /// Only say what would be removed.
        #[arg(long)]
        dry_run: bool,
    },
    /// Writes records to one file, to be imported elsewhere or kept in a repository.
    Export {
        /// The file; `-` for the standard output.
        file: PathBuf,
        #[command(flatten)]
        which: Which,
    },
    /// Takes records from a file written by export.
    Import {
        /// The file.
        file: PathBuf,
    },
    /// Draws a result as SVG.
    Plot {
        #[command(flatten)]
        which: Which,
        /// The file; the standard output if not given, or `-`.
        #[arg(short, long)]
        output: Option<PathBuf>,
    },
}

impl Command {
    /// Is what it prints meant for programs?
    pub fn is_for_programs(&self) -> bool {
        match self {
            Command::List { json } | Command::Show { json, .. } | Command::Explain { json, .. } => *json,
            Command::Verify { json } => *json,
            Command::Run(run) => run.json,
            Command::Export { .. } | Command::Plot { .. } => true,
            Command::Diff { .. } | Command::Prune { .. } | Command::Import { .. } => false,
        }
    }
}

/// Which records.
#[derive(Args, Debug, Default)]
pub struct Which {
    /// Only of this kernel.
    pub kernel: Option<String>,
    /// Only those that hold for these sizes, such as rows=2048,cols=1000.
    #[arg(long)]
    pub shape: Option<String>,
    /// Only of this element type.
    #[arg(long)]
    pub dtype: Option<String>,
    /// Only of devices whose name contains this, such as cpu or h200.
    #[arg(long)]
    pub device: Option<String>,
}

#[derive(Args, Debug)]
pub struct Run {
    /// The kernel.
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    pub kernel: Option<String>,
    /// Every kernel of this program, at its example sizes and in its first element type.
    #[arg(long)]
    pub all: bool,
    /// The sizes, such as rows=2048,cols=1000; the kernel's example sizes if not given.
    #[arg(long)]
    pub shape: Option<String>,
    /// The element type; the kernel's first if not given.
    #[arg(long)]
    pub dtype: Option<String>,
    /// The device, such as cpu, cuda:0, vulkan:0, opencl:0; by default the best there is.
    #[arg(long)]
    pub device: Option<String>,
    /// How long one problem may take: 500ms, 20s, 2m.
    #[arg(long, default_value = "30s", value_parser = duration)]
    pub budget: Duration,
    /// In which order candidates are tried: auto, exhaustive, random.
    #[arg(long, default_value_t = Search::auto())]
    pub search: Search,
    /// Seed of random orders and inputs.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Measure what is stored again.
    #[arg(long)]
    pub force: bool,
    /// Where candidates run: auto (on the CPU device here, elsewhere in worker processes), always, never.
    #[arg(long, default_value = "auto", value_parser = isolation)]
    pub isolate: Isolation,
    /// How long a launch of a candidate may take before it has failed: by default 20s where it can be ended (on the CPU device, in
    /// worker processes), 60s elsewhere.
    #[arg(long, value_parser = some_time)]
    pub timeout: Option<Duration>,
    /// What launches find in the device's cache: cold or warm; by default cold on GPUs.
    #[arg(long, value_parser = policy)]
    pub cache: Option<CachePolicy>,
    /// Results as JSON.
    #[arg(long)]
    pub json: bool,
}

fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = match unit.trim() {
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("`{unit}` is no unit; there are ms, s, m and h")),
    };
    let number: f64 = number.parse().map_err(|_| "write a time as 500ms, 20s or 2m".to_owned())?;
    Duration::try_from_secs_f64(number * factor).map_err(|e| e.to_string())
}

/// A duration in which something can happen.
fn some_time(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("no launch ends in no time; give more, such as 20s".into()),
        some => Ok(some),
    }
}

fn isolation(text: &str) -> Result<Isolation, String> {
    match text {
        "auto" => Ok(Isolation::Auto),
        "always" => Ok(Isolation::Always),
        "never" => Ok(Isolation::Never),
        _ => Err("there are auto, always and never".into()),
    }
}

fn policy(text: &str) -> Result<CachePolicy, String> {
    match text {
        "cold" => Ok(CachePolicy::Cold),
        "warm" => Ok(CachePolicy::Warm),
        _ => Err("there are cold and warm".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Options::command().debug_assert();
    }

    #[test]
    fn found_t16_no_time_is_no_timeout() {
        let parse = |timeout: &str| Options::try_parse_from(["autotune", "run", "k", "--timeout", timeout]);
        assert!(parse("0s").unwrap_err().to_string().contains("no launch ends in no time"));
        assert!(parse("0.0ms").is_err() && parse("1ms").is_ok());
    }

    #[test]
    fn durations() {
        assert_eq!(duration("20s"), Ok(Duration::from_secs(20)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("3"), Ok(Duration::from_secs(3)));
        for bad in ["", "s", "3x", "1e400s", "-1s", "1.2.3s", "999999999999999999999h"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
