//! Measures a decoder of GPT-2's size through the graph compiler on one device. See `benches/README.md`.

use clap::{Parser, ValueEnum};
use std::error::Error;
use std::path::PathBuf;
use tilewright_benches::gpt2::model::Config;
use tilewright_benches::gpt2::{self, Case, FULL, Line, Run, TINY};
use tilewright_benches::machine::Machine;
use tilewright_benches::report::{self, Measurement, Report};
use tilewright_benches::timing::Effort;
use tilewright_runtime::Device;

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Size {
    /// GPT-2's size, 163 million weights with those of the head.
    Full,
    /// Small enough for a processor.
    Tiny,
}

#[derive(Parser)]
#[command(about = "Measures a decoder of GPT-2's size through the graph compiler, and checks the results")]
struct Args {
    /// The device: `cuda:0`, `vulkan:0`, `opencl:0`, `cpu`.
    #[arg(long, default_value = "cuda:0")]
    device: String,
    /// Shorter measurements.
    #[arg(long)]
    quick: bool,
    /// The size of the decoder.
    #[arg(long, value_enum, default_value = "full")]
    config: Size,
    /// The modes of `compile`, with commas between.
    #[arg(long, default_value = "default", value_delimiter = ',')]
    modes: Vec<String>,
    /// Only cases that have this in their name, such as `backward` or `1x128`.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Writes the results to this file too, as they come.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Times each kernel, too, and prints those that take the longest.
    #[arg(long)]
    profile: bool,
    /// How many kernels `--profile` and `--plan` print.
    #[arg(long, default_value_t = 25)]
    top: usize,
    /// Captures and cuts into kernels, runs nothing, and prints the kernels that move the most. A device without a GPU's tile sizes
    /// (`cpu`) gets others; `vulkan:0` on a software driver has a GPU's.
    #[arg(long)]
    plan: bool,
    /// Skips the comparison of the small decoder with the interpreter.
    #[arg(long)]
    no_check: bool,
}

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn main() {
    if let Err(error) = run(&Args::parse()) {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

fn run(args: &Args) -> Outcome {
    let config = if args.config == Size::Full { FULL } else { TINY };
    let cases: Vec<Case> = Case::all(args.config == Size::Full).into_iter().filter(|c| args.wanted(c)).collect();
    if args.plan {
        return plan(args, &config, &cases);
    }
    let dev = Device::open(&args.device)?;
    let machine = Machine::here(dev.info());
    println!("{}\n{}", machine.line(), report::head());
    let mut report = Report::new(machine, args.json.as_deref());
    if !args.no_check {
        for mode in &args.modes {
            let name = format!("gpt2 small, {mode}");
            match gpt2::check(&args.device, mode) {
                Ok(check) if check.passed() => {
                    println!("{name}: agrees with the interpreter within {:.1e}", check.error)
                }
                Ok(check) => {
                    let why =
                        format!("differs from the interpreter by {:.1e}, over {:.0e}", check.error, check.tolerance);
                    report.add_failure(&name, "gpt2", &why, true)?;
                }
                Err(e) => report.add_failure(&name, "gpt2", &e.to_string(), true)?,
            }
        }
    }
    let weights = gpt2::weights(&dev, &config)?;
    for case in &cases {
        for mode in &args.modes {
            let name = format!("{}, {mode}", case.name());
            let effort = if args.quick { Effort::QUICK } else { Effort::FULL };
            let run = Run { mode, effort, profile: args.profile, rounds: if args.quick { 2 } else { 5 } };
            match gpt2::measure(&dev, &config, &weights, case, &run) {
                Ok(outcome) => {
                    let lines = gpt2::lines(&outcome.kernels);
                    let mut m = Measurement::new(name, "gpt2", "ms", outcome.time).checked(outcome.check);
                    m.extra = outcome.facts;
                    for (key, value) in [("mode", mode.as_str().into()), ("train", case.train.into())] {
                        m.extra.insert(key.into(), value);
                    }
                    m.extra.insert("batch".into(), case.batch.into());
                    m.extra.insert("seq".into(), case.length.into());
                    if !lines.is_empty() {
                        m.extra.insert("profile".into(), lines.iter().map(Line::json).collect());
                    }
                    report.add(&m)?;
                    summary(&m);
                    print_lines(&lines, args.top);
                }
                Err(e) => report.add_failure(&name, "gpt2", &e.to_string(), true)?,
            }
        }
    }
    let failures = report.failures();
    if failures.is_empty() {
        return Ok(());
    }
    Err(format!("{} of the measurements failed:\n{}", failures.len(), failures.join("\n")).into())
}

impl Args {
    fn wanted(&self, case: &Case) -> bool {
        self.only.as_ref().is_none_or(|only| case.name().contains(only.as_str()))
    }
}

/// What is worth knowing of a measurement beside its time.
fn summary(m: &Measurement) {
    let number = |key: &str| m.extra.get(key).and_then(serde_json::Value::as_f64);
    let seconds = |key: &str| number(key).map_or("?".into(), |s| format!("{s:.2} s"));
    println!(
        "    first call {} (capture {}, plan {}, our compilation {}, assembling {}); {} kernels, {} compiled; {:.2} GB moved, {:.2} GB of \
         results and intermediates planned, {:.2} GB in buffers at most so far",
        seconds("first_call_s"),
        seconds("capture_s"),
        seconds("plan_s"),
        seconds("compile_s"),
        seconds("driver_s"),
        number("kernels").unwrap_or(0.0),
        number("variants").unwrap_or(0.0),
        number("bytes_moved").unwrap_or(0.0) / 1e9,
        number("plan_peak_bytes").unwrap_or(0.0) / 1e9,
        number("bytes_peak_so_far").unwrap_or(0.0) / 1e9,
    );
}

fn print_lines(lines: &[Line], top: usize) {
    let all: f64 = lines.iter().map(|l| l.ms).sum();
    for line in lines.iter().take(top) {
        println!("{}", line.text(all));
    }
    if !lines.is_empty() {
        println!("{all:>9.3} ms in all {} kernels", lines.iter().map(|l| l.count).sum::<usize>());
    }
}

fn plan(args: &Args, config: &Config, cases: &[Case]) -> Outcome {
    for case in cases {
        let e = gpt2::plan(&args.device, config, case)?;
        let facts = gpt2::explained(&e);
        println!("{}\n    {}", case.name(), serde_json::Value::Object(facts));
        for line in gpt2::planned(&e).iter().take(args.top) {
            println!("{}", line.planned());
        }
    }
    Ok(())
}
