//! Fuzzing of what reads bytes: each input must end in an answer or an error, soon, in little memory, and without a panic.
//!
//! A target runs in a child process, for a stack that overflows, memory that ends or a loop without end takes the process with
//! it. The child writes each input down before it runs it; what it was at when it ended is the fault.

use crate::alloc;
use crate::mutate::{Rng, mutate};
use crate::report::Report;
use crate::targets::{TARGETS, Target};
use std::io::{self, Seek, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long one input may take.
const TIME: Duration = Duration::from_secs(10);
/// How much memory one input may take, in bytes.
const MEMORY: usize = 200 << 20;
/// Where an allocation fails, so that no input fills the machine.
const CEILING: usize = 1 << 30;
/// A family is given up after so many faults.
const FAULTS: usize = 5;
/// The exit status of a child that has found a fault and told it.
const TOLD: i32 = 3;

/// Runs a target from a seed for a time, in child processes.
pub fn run(target: &Target, seed: u64, time: Duration) -> io::Result<Report> {
    let until = Instant::now() + time;
    let folder = tempfile::tempdir()?;
    let mut report = Report::default();
    let mut from = seed;
    while Instant::now() < until && report.faults.len() < FAULTS {
        let left = until.saturating_duration_since(Instant::now());
        let (ran, fault) = child(target, from, left, folder.path())?;
        report.programs += ran;
        from += ran.max(1);
        let Some(fault) = fault else { continue };
        let input = std::fs::read(folder.path().join("input")).unwrap_or_default();
        let path = keep(target, &input)?;
        report.faults.push(format!(
            "{fault}\n    again: cargo xtask fuzz-input --family {} {}",
            target.name,
            path.display()
        ));
    }
    Ok(report)
}

/// One child: how many inputs it ran, and its fault.
fn child(target: &Target, seed: u64, time: Duration, folder: &Path) -> io::Result<(u64, Option<String>)> {
    // `cargo` may build anew while this runs; the file is another then.
    let mut child = Command::new(program()?)
        .args(["fuzz-target", target.name, "--seed", &seed.to_string()])
        .args(["--milliseconds", &time.as_millis().to_string()])
        .arg("--folder")
        .arg(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let output = drain(child.stderr.take());
    let until = Instant::now() + time + 3 * TIME;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if Instant::now() > until {
            child.kill()?;
            child.wait()?;
            break None;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let text = output.join().unwrap_or_default();
    let ran = std::fs::read_to_string(folder.join("count")).ok().and_then(|t| t.trim().parse().ok()).unwrap_or(0);
    let last = || text.lines().rfind(|l| !l.trim().is_empty()).unwrap_or("no message").to_owned();
    let fault = match status {
        Some(status) if status.success() => None,
        Some(status) if status.code() == Some(TOLD) => Some(text.trim().to_owned()),
        Some(status) => Some(format!("the process ended: {status}: {}", last())),
        None => Some(format!("it did not end within {} s", TIME.as_secs())),
    };
    Ok((ran, fault.map(|f| format!("seed {}: {f}", seed + ran.saturating_sub(1)))))
}

fn program() -> io::Result<PathBuf> {
    std::env::current_exe()
}

fn drain(stream: Option<impl io::Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(mut stream) = stream {
            // What could be read is told.
            let _ = stream.read_to_end(&mut text);
        }
        String::from_utf8_lossy(&text).into_owned()
    })
}

/// Keeps an input under a name that says its content.
fn keep(target: &Target, input: &[u8]) -> io::Result<PathBuf> {
    let folder =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from).join("fuzz");
    std::fs::create_dir_all(&folder)?;
    let digest = crate::targets::digest(input);
    let path = folder.join(format!("{}-{digest}.input", target.name));
    std::fs::write(&path, input)?;
    Ok(path)
}

/// The child: inputs from `seed` on until the time is up.
pub fn serve(target: &Target, seed: u64, time: Duration, folder: &Path) -> io::Result<()> {
    let corpus = (target.corpus)();
    let until = Instant::now() + time;
    let mut input_file = std::fs::File::create(folder.join("input"))?;
    let mut count_file = std::fs::File::create(folder.join("count"))?;
    let started = watch();
    // The faults are told in a line; what the hook prints would hide them.
    std::panic::set_hook(Box::new(|_| {}));
    let mut number = seed;
    while Instant::now() < until {
        let mut rng = Rng::new(number);
        let mut input = mutate(&mut rng, &corpus, target.words);
        if let Some(repair) = target.repair {
            input = repair(&mut rng, input);
        }
        overwrite(&mut input_file, &input)?;
        number += 1;
        overwrite(&mut count_file, (number - seed).to_string().as_bytes())?;
        *started.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        if let Err(fault) = once(target, &input) {
            eprintln!("{fault}");
            std::process::exit(TOLD);
        }
        *started.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
    Ok(())
}

fn overwrite(file: &mut std::fs::File, bytes: &[u8]) -> io::Result<()> {
    file.rewind()?;
    file.write_all(bytes)?;
    file.set_len(bytes.len() as u64)
}

/// Ends the process when an input takes too long.
fn watch() -> Arc<Mutex<Option<Instant>>> {
    let started = Arc::new(Mutex::new(None::<Instant>));
    let seen = started.clone();
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Duration::from_millis(100));
            let since = *seen.lock().unwrap_or_else(PoisonError::into_inner);
            if since.is_some_and(|s| s.elapsed() > TIME) {
                eprintln!("it did not end within {} s", TIME.as_secs());
                std::process::exit(TOLD);
            }
        }
    });
    started
}

/// Runs one input in this process.
pub fn once(target: &Target, input: &[u8]) -> Result<(), String> {
    // What is counted is the whole process's.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let before = alloc::start(CEILING);
    let result = catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    let peak = alloc::stop().saturating_sub(before);
    match result {
        Ok(Ok(())) if peak > MEMORY => Err(format!("it took {} MB for {} bytes of input", peak >> 20, input.len())),
        Ok(result) => result,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
            Err(format!("panic: {}", text.unwrap_or("without a message")))
        }
    }
}

/// The target of that name.
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|t| t.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thousand inputs for each target, in this process.
    #[test]
    fn nothing_that_is_read_panics() {
        for target in TARGETS {
            let corpus = (target.corpus)();
            for input in &corpus {
                once(target, input).unwrap_or_else(|e| panic!("{}: {e}", target.name));
            }
            for seed in 0..1000 {
                let mut rng = Rng::new(seed);
                let mut input = mutate(&mut rng, &corpus, target.words);
                if let Some(repair) = target.repair {
                    input = repair(&mut rng, input);
                }
                once(target, &input).unwrap_or_else(|e| panic!("{}, seed {seed}: {e}", target.name));
            }
        }
    }

    #[test]
    fn panics_and_memory_are_faults() {
        fn panics(_: &[u8]) -> Result<(), String> {
            panic!("planted")
        }
        fn fills(_: &[u8]) -> Result<(), String> {
            std::hint::black_box(vec![1u8; MEMORY + 1]);
            Ok(())
        }
        let target = |run| Target { name: "planted", corpus: Vec::new, words: &[], repair: None, run };
        assert!(once(&target(panics), b"").unwrap_err().contains("planted"));
        assert!(once(&target(fills), b"").unwrap_err().contains("it took"));
    }
}
