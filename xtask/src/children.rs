//! Generators that are tests of other crates: run as child processes that take their seeds from the environment.

use crate::report::Report;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Tests that run seeds.
pub struct Tests {
    /// The package.
    pub package: &'static str,
    /// Which binary of it, as arguments of `cargo test`.
    pub binary: &'static [&'static str],
    /// Features of the package that are on if it builds with them: OpenCL wants a library to link.
    pub features: &'static [&'static str],
    /// Which tests of that.
    pub filter: &'static str,
    /// The variable with the first seed.
    pub from: &'static str,
    /// The variable with the number of seeds.
    pub count: &'static str,
    /// How many seeds a first slice has: some seconds of work.
    pub first: u64,
}

/// How much longer than asked for a slice may take before it counts as hanging.
const GRACE: Duration = Duration::from_secs(300);

/// Features with which a package did not build: it goes on without.
static MISSING: Mutex<Vec<&str>> = Mutex::new(Vec::new());

fn missing() -> MutexGuard<'static, Vec<&'static str>> {
    MISSING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn cargo(tests: &Tests) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["test", "--release", "--quiet", "--package", tests.package]).args(tests.binary);
    for feature in tests.features.iter().filter(|f| !missing().contains(f)) {
        command.args(["--features", feature]);
    }
    command
}

/// A test binary, and the folder that cargo runs it in.
#[derive(Clone)]
struct Binary {
    program: PathBuf,
    folder: PathBuf,
}

/// What was built, by what cargo was asked for: sources that change during a run change nothing.
static BUILT: Mutex<BTreeMap<(&str, &[&str]), Binary>> = Mutex::new(BTreeMap::new());

/// Builds the tests.
///
/// # Errors
/// If they do not build.
pub fn build(tests: &Tests) -> io::Result<()> {
    let mut binary = build_once(tests)?;
    if binary.is_none() && !tests.features.is_empty() {
        eprintln!("{} does not build with {}; trying without", tests.package, tests.features.join(", "));
        missing().extend(tests.features);
        binary = build_once(tests)?;
    }
    let binary = binary.ok_or_else(|| io::Error::other(format!("{} does not build", tests.package)))?;
    BUILT.lock().unwrap_or_else(PoisonError::into_inner).insert((tests.package, tests.binary), binary);
    Ok(())
}

/// `None` if cargo could not build them; it has said why.
fn build_once(tests: &Tests) -> io::Result<Option<Binary>> {
    let mut command = cargo(tests);
    command.args(["--no-run", "--message-format", "json-render-diagnostics"]).stderr(Stdio::inherit());
    let output = command.output()?;
    if !output.status.success() {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let messages = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let binary = |m: serde_json::Value| {
        let folder = Path::new(m["manifest_path"].as_str()?).parent()?.to_owned();
        Some(Binary { program: m["executable"].as_str()?.into(), folder })
    };
    Ok(messages.filter_map(binary).next_back())
}

/// Runs `count` seeds from `seed` on; what takes much longer than `time` is ended, and a fault.
///
/// # Errors
/// If the process cannot be started.
pub fn run(tests: &Tests, seed: u64, count: u64, time: Duration) -> io::Result<Report> {
    let built = BUILT.lock().unwrap_or_else(PoisonError::into_inner).get(&(tests.package, tests.binary)).cloned();
    let Some(Binary { program, folder }) = built else {
        return Err(io::Error::other(format!("the tests of {} were not built", tests.package)));
    };
    let mut command = Command::new(program);
    command.arg(tests.filter).arg("--nocapture").current_dir(folder);
    command.env(tests.from, seed.to_string()).env(tests.count, count.to_string());
    // It may have children: all are ended by ending their group.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (out, err) = (read(child.stdout.take()), read(child.stderr.take()));
    let until = Instant::now() + time + GRACE;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if Instant::now() > until {
            end(&mut child)?;
            break None;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    let (out, err) = (out.join().unwrap_or_default(), err.join().unwrap_or_default());
    let mut report = Report { programs: count, ..Report::default() };
    report.notes = out.lines().filter(|l| l.contains(" runs, ")).map(|l| l.trim().to_owned()).collect();
    let again = format!("{}={seed} {}={count} cargo test --release -p {}", tests.from, tests.count, tests.package);
    let fault = match status {
        Some(status) if status.success() && ran_something(&out) => return Ok(report),
        Some(status) if status.success() => "no test has this name any more".to_owned(),
        Some(status) => format!("{status}\n{}", tail(&format!("{out}\n{err}"), 60)),
        None => format!("it did not end within {} s", (time + GRACE).as_secs()),
    };
    report.faults.push(format!("{fault}\n    again: {again} {} -- {}", tests.binary.join(" "), tests.filter));
    Ok(report)
}

/// Does the output of a test run say that a test passed?
fn ran_something(out: &str) -> bool {
    out.lines().any(|l| l.starts_with("test result: ok.") && !l.contains(" 0 passed"))
}

#[cfg(unix)]
fn end(child: &mut std::process::Child) -> io::Result<()> {
    // The group has the child's number, as it was started.
    Command::new("kill").args(["-KILL", "--", &format!("-{}", child.id())]).status()?;
    child.wait().map(drop)
}

#[cfg(not(unix))]
fn end(child: &mut std::process::Child) -> io::Result<()> {
    child.kill()?;
    child.wait().map(drop)
}

fn read(stream: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(mut stream) = stream {
            // What could be read is told.
            let _ = stream.read_to_end(&mut text);
        }
        String::from_utf8_lossy(&text).into_owned()
    })
}

fn tail(text: &str, lines: usize) -> String {
    let all: Vec<_> = text.lines().filter(|l| !l.trim().is_empty()).collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}
