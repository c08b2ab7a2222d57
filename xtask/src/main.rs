//! Long checks: `cargo xtask fuzz --minutes 30` runs every generator of inputs with its check and ends without a difference.

mod alloc;
mod bytes;
mod children;
mod families;
mod frontend;
mod mutate;
mod report;
mod targets;

use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: alloc::Counting = alloc::Counting;

#[derive(Parser)]
#[command(name = "xtask", about = "Long checks of Tilewright")]
struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs generators of inputs with their checks; exit code 1 if something was found.
    Fuzz {
        /// How long in all; the families share it equally. Building does not count.
        #[arg(long, default_value_t = 10.0)]
        minutes: f64,
        /// Where the seeds begin: the same seed gives the same inputs. By default the time of day.
        #[arg(long)]
        seed: Option<u64>,
        /// Only families with this in their name.
        #[arg(long)]
        family: Option<String>,
    },
    /// Lists the families.
    Families,
    /// Compares random kernels with the same programs in plain Rust.
    Frontend {
        /// Where the programs begin.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// How many.
        #[arg(long, default_value_t = 200)]
        programs: usize,
        /// Writes their source to a file instead.
        #[arg(long)]
        write: Option<PathBuf>,
    },
    /// Runs one input that was kept.
    FuzzInput {
        /// The family.
        #[arg(long)]
        family: String,
        /// The file.
        file: PathBuf,
    },
    /// What `fuzz` starts for families of bytes.
    #[command(hide = true)]
    FuzzTarget {
        name: String,
        #[arg(long)]
        seed: u64,
        #[arg(long)]
        milliseconds: u64,
        #[arg(long)]
        folder: PathBuf,
    },
}

fn main() -> ExitCode {
    let result = match Options::parse().command {
        Command::Fuzz { minutes, seed, family } => fuzz(minutes, seed, family.as_deref()),
        Command::Families => {
            families::all().iter().for_each(|f| println!("{:<14} {}", f.name, f.about));
            Ok(true)
        }
        Command::Frontend { seed, programs, write: Some(file) } => {
            std::fs::write(&file, frontend::source(seed, programs))
                .map(|()| true)
                .map_err(|e| format!("cannot write {}: {e}", file.display()))
        }
        Command::Frontend { seed, programs, write: None } => {
            let report = frontend::run(seed, programs);
            println!("{report}");
            Ok(report.clean())
        }
        Command::FuzzInput { family, file } => one(&family, &file),
        Command::FuzzTarget { name, seed, milliseconds, folder } => match bytes::find(&name) {
            Some(target) => bytes::serve(target, seed, Duration::from_millis(milliseconds), &folder)
                .map(|()| true)
                .map_err(|e| e.to_string()),
            None => Err(format!("no target is called `{name}`")),
        },
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::from(2)
        }
    }
}

fn fuzz(minutes: f64, seed: Option<u64>, wanted: Option<&str>) -> Result<bool, String> {
    let time = Duration::try_from_secs_f64(minutes * 60.0).map_err(|_| "give --minutes as a positive number")?;
    let families: Vec<_> = families::all().into_iter().filter(|f| wanted.is_none_or(|w| f.name.contains(w))).collect();
    if families.is_empty() {
        return Err(format!("no family has `{}` in its name; see `cargo xtask families`", wanted.unwrap_or_default()));
    }
    let clock = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let seed = seed.unwrap_or_else(clock);
    for family in &families {
        family.prepare().map_err(|e| format!("{}: {e}", family.name))?;
    }
    println!("seed {seed}, {} families, {minutes} minutes", families.len());
    let start = Instant::now();
    let mut sound = true;
    for (i, family) in families.iter().enumerate() {
        // What one family left of its time the others get.
        let left = time.saturating_sub(start.elapsed()) / (families.len() - i) as u32;
        let begun = Instant::now();
        let report = family.run(seed, left).map_err(|e| format!("{}: {e}", family.name))?;
        let seconds = begun.elapsed().as_secs_f64();
        println!(
            "{:<14} {:>10} inputs in {seconds:.0} s, {} faults",
            family.name,
            report.programs,
            report.faults.len()
        );
        report.notes.iter().for_each(|n| println!("    {n}"));
        report.faults.iter().for_each(|f| println!("  FAULT {f}"));
        sound &= report.faults.is_empty();
    }
    println!("{}", if sound { "no difference" } else { "faults were found" });
    Ok(sound)
}

fn one(family: &str, file: &std::path::Path) -> Result<bool, String> {
    let target = bytes::find(family).ok_or_else(|| format!("no family of bytes is called `{family}`"))?;
    let input = std::fs::read(file).map_err(|e| format!("cannot read {}: {e}", file.display()))?;
    let start = Instant::now();
    let result = bytes::once(target, &input);
    println!(
        "{} bytes, {:.3} s: {}",
        input.len(),
        start.elapsed().as_secs_f64(),
        result.as_ref().err().map_or("fine", |e| e)
    );
    Ok(result.is_ok())
}
