//! ptxas, spirv-val and an OpenCL driver take every kernel.

use crate::cases::{self, Case};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use tilewright::{Device, DeviceKind};
use tilewright_compiler::Error;
use tilewright_compiler::pipeline;
use tilewright_compiler::target::{Caps, Code, Compiled};

/// Does `work` for every item on all cores; fails with all that failed.
fn in_parallel<T: Sync>(items: &[T], work: impl Fn(&T) -> Result<(), String> + Sync) {
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Relaxed)) {
                    if let Err(why) = work(item) {
                        failures.lock().unwrap().push(why);
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} failed:\n{}", failures.len(), failures.join("\n"));
}

/// Compiles, or says why not. `None` where the configuration needs more than the target has.
fn compile(case: &Case, caps: &Caps) -> Result<Option<Compiled>, String> {
    match pipeline::compile(&case.func, caps, &case.options) {
        Ok(compiled) if compiled.shared_bytes <= caps.max_shared_bytes => Ok(Some(compiled)),
        Ok(compiled) => {
            Err(format!("{} for {}: {} bytes of shared memory", case.name, caps.name, compiled.shared_bytes))
        }
        Err(Error::Unsupported { .. }) if !case.in_registers => Ok(None),
        Err(e) => Err(format!("{} for {}: {e}", case.name, caps.name)),
    }
}

/// Runs a tool; `None`, with a message, where it is not there and need not be.
fn tool(command: &mut Command) -> Option<Output> {
    match command.output() {
        Ok(output) => Some(output),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            let required = std::env::var("TILEWRIGHT_REQUIRE_TOOLS").is_ok_and(|v| v == "1");
            assert!(!required, "{:?} is required but not there", command.get_program());
            None
        }
        Err(e) => panic!("{:?} cannot be run: {e}", command.get_program()),
    }
}

fn check(output: &Output, what: impl Fn() -> String) -> Result<String, String> {
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(text) } else { Err(format!("{}: {text}", what())) }
}

fn ptxas() -> PathBuf {
    std::env::var_os("TILEWRIGHT_PTXAS").filter(|p| p != "off").map_or_else(|| "ptxas".into(), PathBuf::from)
}

/// Assembles, and gives what ptxas says of registers and spills.
pub fn assemble(dir: &Path, number: usize, arch: &str, ptx: &str) -> Option<Output> {
    let file = dir.join(format!("{number}-{arch}.ptx"));
    std::fs::write(&file, ptx).unwrap();
    tool(Command::new(ptxas()).arg("-v").arg(format!("-arch={arch}")).args(["-o", "/dev/null"]).arg(file))
}

#[test]
fn every_kernel_is_assembled_for_three_generations() {
    let dir = tempfile::tempdir().unwrap();
    let cases = cases::all(&cases::cpu(), DeviceKind::Cuda);
    let work: Vec<(usize, &Case, u32)> =
        cases.iter().enumerate().flat_map(|(i, case)| [80, 90, 120].map(|sm| (i, case, sm))).collect();
    if assemble(dir.path(), 0, "sm_80", ".version 8.0\n.target sm_80\n.address_size 64\n").is_none() {
        println!("skipped: no ptxas; set TILEWRIGHT_PTXAS");
        return;
    }
    in_parallel(&work, |&(i, case, sm)| {
        let caps = Caps::ptx(sm);
        let Some(compiled) = compile(case, &caps)? else { return Ok(()) };
        let Code::Ptx(ptx) = &compiled.code else { return Err(format!("{}: no PTX", case.name)) };
        let output = assemble(dir.path(), i, &caps.name, ptx).expect("ptxas was there before");
        let what = || format!("{} for {}", case.name, caps.name);
        let log = check(&output, what)?;
        // What Hopper runs instead is assembled in `hopper.rs`.
        let asked = case.in_registers && !(caps.wgmma && case.before_hopper);
        if asked && !log.contains("0 bytes spill stores, 0 bytes spill loads") {
            return Err(format!("{} spills: {log}", what()));
        }
        Ok(())
    });
}

#[test]
fn every_kernel_is_valid_spirv_for_subgroups_of_any_width() {
    let dir = tempfile::tempdir().unwrap();
    let cases = cases::all(&cases::cpu(), DeviceKind::Vulkan);
    let work: Vec<(usize, &Case, u32)> =
        cases.iter().enumerate().flat_map(|(i, case)| [1, 8, 32, 64].map(|width| (i, case, width))).collect();
    if tool(Command::new("spirv-val").arg("--version")).is_none() {
        println!("skipped: no spirv-val");
        return;
    }
    in_parallel(&work, |&(i, case, width)| {
        let mut caps = Caps::spirv(format!("a Vulkan device with subgroups of {width}"), width, 1024, 48 << 10);
        // Half of the targets without the fused operation, which takes other code.
        caps.fused_fma = width > 8;
        let Some(compiled) = compile(case, &caps)? else { return Ok(()) };
        let Code::SpirV(words) = &compiled.code else { return Err(format!("{}: no SPIR-V", case.name)) };
        let file = dir.path().join(format!("{i}-{width}.spv"));
        std::fs::write(&file, words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<_>>()).unwrap();
        let output = tool(Command::new("spirv-val").args(["--target-env", "vulkan1.2"]).arg(file));
        check(&output.expect("spirv-val was there before"), || format!("{} for {}", case.name, caps.name)).map(drop)
    });
}

#[test]
fn every_kernel_is_built_by_opencl_devices() {
    let mut devices = Device::list();
    devices.retain(|d| d.kind == DeviceKind::OpenCl && d.unusable.is_none());
    if devices.is_empty() {
        println!("skipped: no OpenCL device, or built without the feature `opencl`");
    }
    for info in devices {
        let dev = Device::open(&info.name).unwrap();
        let cases = cases::all(&dev, DeviceKind::OpenCl);
        let failures: Vec<_> = cases
            .into_iter()
            .filter_map(|case| case.built.err().filter(|e| case.in_registers || !e.contains("shared memory")))
            .collect();
        assert!(failures.is_empty(), "on {dev}:\n{}", failures.join("\n"));
    }
}
