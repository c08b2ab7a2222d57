//! Long checks: `cargo xtask frontend` compares random kernels with the same programs in plain Rust.

mod frontend;

use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask frontend [--seed S] [--programs N] [--write FILE]";

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    if args.next().as_deref() != Some("frontend") {
        eprintln!("{USAGE}");
        return ExitCode::FAILURE;
    }
    let (mut seed, mut programs, mut file) = (1, 200, None);
    while let Some(option) = args.next() {
        let value = args.next().unwrap_or_default();
        let number = value.parse::<u64>().ok();
        match (option.as_str(), number) {
            ("--seed", Some(number)) => seed = number,
            ("--programs", Some(number @ 1..=10_000)) => programs = number as usize,
            ("--write", _) if !value.is_empty() => file = Some(value),
            _ => {
                eprintln!("`{option} {value}` is not understood\n{USAGE}");
                return ExitCode::FAILURE;
            }
        }
    }
    if let Some(file) = file {
        return match std::fs::write(&file, frontend::source(seed, programs)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("cannot write {file}: {error}");
                ExitCode::FAILURE
            }
        };
    }
    let report = frontend::run(seed, programs);
    println!("{report}");
    if report.clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
