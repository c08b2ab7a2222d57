//! The front end under test: random `#[kernel]` source, compared with the same text as plain Rust.
//!
//! A program is written once. As a kernel it is over `Tile<i32>`; its twin is the same text without the attributes, over a
//! wrapping integer (`kernels/tests/devices/frontend/twin.rs`). Where the two must differ (the head of a device loop, types
//! of parameters, derives) the text has a marker. All programs of a run are one crate, built once and run on every device.

mod make;

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a run found.
#[derive(Debug)]
pub struct Report {
    /// Where the seeds began.
    pub seed: u64,
    /// How many programs were compared, on each device.
    pub programs: usize,
    /// The devices.
    pub devices: Vec<String>,
    /// What differed, and what kept the programs from being built.
    pub differences: Vec<String>,
    /// Where the source is.
    pub source: PathBuf,
}

impl Report {
    /// Was everything the same, on at least one device?
    pub fn clean(&self) -> bool {
        self.differences.is_empty() && !self.devices.is_empty()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for difference in &self.differences {
            writeln!(f, "{difference}")?;
        }
        if !self.differences.is_empty() {
            writeln!(f, "the source is in {}", self.source.display())?;
        }
        let (seed, programs, devices) = (self.seed, self.programs, self.devices.join(", "));
        write!(f, "frontend: seed {seed}, {programs} programs on {devices}: {} differences", self.differences.len())
    }
}

/// Makes `programs` programs from `seed`, builds them as one crate, and compares them with their twins on every device.
pub fn run(seed: u64, programs: usize) -> Report {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the workspace").to_owned();
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let folder = target.join("frontend");
    let source = folder.join("src/programs.rs");
    let mut report = Report { seed, programs, devices: Vec::new(), differences: Vec::new(), source };
    if let Err(error) = compare(&root, &target, &folder, &mut report) {
        report.differences.push(error);
    }
    report
}

fn compare(root: &Path, target: &Path, folder: &Path, report: &mut Report) -> Result<(), String> {
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(folder))
            .and_then(|()| std::fs::write(&path, text))
            .map_err(|error| format!("cannot write {}: {error}", path.display()))
    };
    write("Cargo.toml", &manifest(root))?;
    write("src/main.rs", &MAIN.replace("TWIN", &format!("{}/kernels/tests/devices/frontend/twin.rs", root.display())))?;
    write("src/programs.rs", &source(report.seed, report.programs))?;
    let lock = folder.join("Cargo.lock");
    std::fs::copy(root.join("Cargo.lock"), &lock)
        .map_err(|error| format!("cannot write {}: {error}", lock.display()))?;
    // The profile and the features of the tests, so that the crates below are built already.
    let output = Command::new("cargo")
        .args(["run", "--quiet", "--manifest-path"])
        .arg(folder.join("Cargo.toml"))
        .env("CARGO_TARGET_DIR", target)
        .output()
        .map_err(|error| format!("cannot start cargo: {error}"))?;
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    for line in text.lines() {
        match line.split_once(": ") {
            Some(("device", name)) => report.devices.push(name.to_owned()),
            _ => report.differences.push(line.to_owned()),
        }
    }
    if output.status.success() {
        Ok(())
    } else {
        Err(format!(
            "the programs could not be built or run\n{}",
            errors.lines().take(60).collect::<Vec<_>>().join("\n")
        ))
    }
}

fn manifest(root: &Path) -> String {
    format!(
        "[package]\nname = \"frontend-programs\"\nversion = \"0.0.0\"\nedition = \"2024\"\npublish = false\n\n\
         [dependencies]\ntilewright = {{ package = \"tilewright-runtime\", path = \"{}/runtime\", features = [\"opencl\"] }}\n\n\
         [profile.dev]\nopt-level = 1\ndebug = \"line-tables-only\"\n\n\
         [profile.dev.package.\"*\"]\nopt-level = 2\ndebug = false\n\n[workspace]\n",
        root.display()
    )
}

const MAIN: &str = r#"//! Compares random kernels with their twins.
#[allow(clippy::all, unused)]
mod programs;
#[path = "TWIN"]
mod twin;

fn main() {
    for info in tilewright::Device::list() {
        if info.unusable.is_some() {
            continue;
        }
        match tilewright::Device::open(&info.name) {
            Ok(device) => {
                println!("device: {}", info.name);
                for difference in twin::differences(&device, programs::PROGRAMS) {
                    println!("{}: {difference}", info.name);
                }
            }
            Err(error) => println!("{}: {error}", info.name),
        }
    }
}
"#;

/// The source of `programs` programs, both ways, with a list of them.
pub fn source(seed: u64, programs: usize) -> String {
    let (mut device, mut host, mut list) = (String::new(), String::new(), String::new());
    for i in 0..programs {
        let text = make::program(seed.wrapping_add(i as u64));
        let module = |body: &str| format!("    pub mod p{i} {{\n        use super::*;\n{body}    }}\n");
        device += &module(&as_kernel(&text));
        host += &module(&as_twin(&text));
        list += &format!("    Program {{ name: \"p{i}\", device: device::p{i}::run, host: host::p{i}::run }},\n");
    }
    format!(
        "//! Random programs, as kernels and as plain Rust: `cargo xtask frontend --seed {seed} --programs {programs} --write FILE`.\n\n\
         use super::twin::Program;\n\npub const PROGRAMS: &[Program] = &[\n{list}];\n\n\
         pub mod device {{\n    use tilewright::dsl::*;\n    type V = Tile<i32>;\n\n{device}}}\n\n\
         pub mod host {{\n    use super::super::twin::{{Wrap, Ptr, maximum, minimum, program_id, range, scalar, unroll, where_}};\n    type V = Wrap;\n\n{host}}}\n"
    )
}

/// Device loops stay as they are.
fn as_kernel(text: &str) -> String {
    text.replace("@lo ", "").replace(" @to ", "..").replace(" @hi", "").replace("@number", "i32")
}

fn as_twin(text: &str) -> String {
    text.replace("#[kernel] ", "")
        .replace("#[device_fn] ", "")
        .replace(", Carry)]", ")]")
        .replace("@lo ", "range(")
        .replace(" @to ", ", ")
        .replace(" @hi", ", 1)")
        .replace("@number", "V")
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_programs_of_the_tests_are_those_that_are_made() {
        let kept = include_str!("../../../kernels/tests/devices/frontend/programs.rs");
        assert_eq!(
            kept,
            super::source(1, 40),
            "cargo xtask frontend --seed 1 --programs 40 --write kernels/tests/devices/frontend/programs.rs"
        );
    }
}
