//! Tunes matrix products over a list of configurations, from nothing, and prints how long it takes and what it finds. See
//! `benches/README.md`.

use clap::Parser;
use serde_json::{Value, json};
use std::error::Error;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;
use tilewright_autotune::{Isolation, worker};
use tilewright_benches::cases::Case;
use tilewright_benches::machine::Machine;
use tilewright_benches::tuning;
use tilewright_runtime::Device;

#[derive(Parser)]
#[command(about = "Tunes matrix products over a list of configurations, and says how long it took and what it found")]
struct Args {
    /// The device: `cuda:0`, `vulkan:0`, `opencl:0`, `cpu`. Those that are no GPU get small sizes and a short list.
    #[arg(long, default_value = "cuda:0")]
    device: String,
    /// The most seconds one product may take.
    #[arg(long, default_value_t = 60)]
    budget: u64,
    /// Runs candidates in this process, not in workers: faster, but one that hangs ends the run.
    #[arg(long)]
    in_process: bool,
    /// Writes the results to this file too, as they come.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Prints cases and configurations as JSON, for the peer's script, and ends.
    #[arg(long)]
    print_list: bool,
    /// Tunes one product and prints the result as JSON: what runs in a process of its own, with an empty cache.
    #[arg(long, value_name = "CASE", hide = true)]
    child: Option<String>,
}

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn main() {
    worker::serve_if_asked();
    if let Err(error) = run(&Args::parse()) {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

fn run(args: &Args) -> Outcome {
    let info = Device::list().into_iter().find(|d| d.name == args.device);
    let gpu = info.as_ref().is_some_and(|d| d.gpu);
    if args.print_list {
        println!("{:#}", tuning::list(gpu));
        return Ok(());
    }
    if let Some(name) = &args.child {
        return child(args, name);
    }
    // Opened by the processes that measure, one after the other.
    let Some(info) = info else { return Device::open(&args.device).map(drop).map_err(Into::into) };
    let machine = Machine::here(&info);
    println!("{}", machine.line());
    println!(
        "{:<30} {:>7} {:>6} {:>8} {:>9} {:>9}  best",
        "product", "configs", "failed", "seconds", "s/config", "TFLOP/s"
    );
    let (mut tuned, mut failures): (Vec<Value>, Vec<String>) = Default::default();
    for case in tuning::cases(gpu) {
        let name = case.name();
        match in_process_of_its_own(args, &case) {
            Ok(t) => {
                let number = |field: &str| t[field].as_f64().unwrap_or(f64::NAN);
                let right = t["right"] == true;
                println!(
                    "{name:<30} {:>7} {:>6} {:>8.2} {:>9.3} {:>9.3}  {}{}",
                    t["configs"].as_u64().unwrap_or(0),
                    t["failed"].as_u64().unwrap_or(0),
                    number("seconds"),
                    number("seconds_per_config"),
                    number("tflops"),
                    t["best"].as_str().unwrap_or_default(),
                    if right { "" } else { "  WRONG RESULT" }
                );
                if !right {
                    failures.push(format!("{name}: the winner's result is wrong"));
                }
                tuned.push(t);
            }
            Err(e) => {
                println!("{name:<30} failed: {e}");
                failures.push(format!("{name}: {e}"));
            }
        }
        if let Some(path) = &args.json {
            let mut all = machine.json();
            all["tuning"] = tuned.clone().into();
            all["failures"] = json!(failures);
            std::fs::write(path, format!("{all:#}\n"))?;
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n").into()) }
}

fn child(args: &Args, name: &str) -> Outcome {
    let dev = Device::open(&args.device)?;
    let case = tuning::cases(dev.info().gpu).into_iter().find(|c| c.name() == name).ok_or("there is no such case")?;
    let isolation = if args.in_process { Isolation::Never } else { Isolation::Auto };
    println!("{}", tuning::measure(&dev, &case, Duration::from_secs(args.budget), isolation)?.json());
    Ok(())
}

/// Nothing compiled before may help: the cache is empty, and the driver's is off.
fn in_process_of_its_own(args: &Args, case: &Case) -> Outcome<Value> {
    let cache = tempfile::tempdir()?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--device", &args.device, "--budget", &args.budget.to_string(), "--child", &case.name()]);
    if args.in_process {
        command.arg("--in-process");
    }
    command.env("TILEWRIGHT_CACHE_DIR", cache.path()).env_remove("TILEWRIGHT_CACHE").env("CUDA_CACHE_DISABLE", "1");
    let output = command.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("the process that tunes it ended with {}", output.status).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}
