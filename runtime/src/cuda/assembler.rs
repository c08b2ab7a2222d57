//! PTX to machine code.
//!
//! A ptxas found on the machine goes first: it is often newer than the driver, and several run at once, while the driver's
//! compiler takes one kernel at a time. What ptxas refuses (an old one may not know the PTX version) goes to the driver's
//! linker, which gives machine code to cache too.

use super::context::Context;
use super::kernel::c_string;
use crate::backend::Assembled;
use crate::error::{Error, Result};
use crate::metadata::Resources;
use cudarc::driver::sys::{self, CUjit_option, CUjitInputType};
use std::ffi::{OsStr, c_uint, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr;
use std::sync::OnceLock;
use tilewright_compiler::target::{Code, Compiled, Language};

/// Machine code for the context's device. The context is current.
pub(super) fn assemble(context: &Context, compiled: &Compiled) -> Result<Assembled> {
    let Code::Ptx(ptx) = &compiled.code else {
        return Err(Error::Compile(tilewright_compiler::Error::Internal(
            "code of another language was compiled for a CUDA device".into(),
        )));
    };
    let mut refused = String::new();
    if let Some(ptxas) = ptxas() {
        match run_ptxas(&ptxas.path, ptx, context.sm) {
            Ok(assembled) => return Ok(assembled),
            Err(log) => refused = format!("{} refused the code: {log}\n", ptxas.path.display()),
        }
    }
    // Left to itself the linker may aim at the plain architecture, which lacks the specific one's instructions.
    let linked = match specific_target(context.sm) {
        Some(target) => link(context, ptx, Some(target)).or_else(|_| link(context, ptx, None)),
        None => link(context, ptx, None),
    };
    match linked {
        Ok(assembled) => Ok(Assembled { log: refused + &assembled.log, ..assembled }),
        // The linker is stricter than the loader, about targets for one. Without a binary the loader gets the text, and its
        // verdict is the one that counts.
        Err(Error::Driver { message, .. }) => Ok(Assembled { log: refused + &message, ..Assembled::default() }),
        Err(error) => Err(error),
    }
}

/// Which assembler will be used, for the code cache.
pub(super) fn identity() -> String {
    ptxas().map_or_else(|| "driver".into(), |p| p.version.clone())
}

struct Ptxas {
    path: PathBuf,
    version: String,
}

/// The ptxas of this machine, looked for once: `TILEWRIGHT_PTXAS` (`off` for none), then `PATH`, then `CUDA_HOME`,
/// `CUDA_PATH` and `/usr/local/cuda`.
fn ptxas() -> Option<&'static Ptxas> {
    static PTXAS: OnceLock<Option<Ptxas>> = OnceLock::new();
    PTXAS
        .get_or_init(|| {
            let var = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty());
            let usable = |path: PathBuf| version(&path).map(|version| Ptxas { path, version });
            if let Some(path) = var("TILEWRIGHT_PTXAS") {
                return if path == OsStr::new("off") { None } else { usable(path.into()) };
            }
            let mut folders: Vec<PathBuf> =
                var("PATH").map(|p| std::env::split_paths(&p).collect()).unwrap_or_default();
            folders.extend(["CUDA_HOME", "CUDA_PATH"].iter().filter_map(|n| var(n)).map(|d| Path::new(&d).join("bin")));
            folders.push("/usr/local/cuda/bin".into());
            let file = format!("ptxas{}", std::env::consts::EXE_SUFFIX);
            folders.into_iter().map(|d| d.join(&file)).filter(|p| p.is_file()).find_map(usable)
        })
        .as_ref()
}

/// The last line that `ptxas --version` prints; `None` if it does not run.
fn version(path: &Path) -> Option<String> {
    let output = Command::new(path).arg("--version").output().ok().filter(|o| o.status.success())?;
    Some(format!("ptxas {}", String::from_utf8_lossy(&output.stdout).trim().lines().last().unwrap_or_default()))
}

fn run_ptxas(ptxas: &Path, ptx: &str, sm: u32) -> Result<Assembled, String> {
    let dir = tempfile::tempdir().map_err(|e| format!("cannot make a temporary folder: {e}"))?;
    let (input, output) = (dir.path().join("kernel.ptx"), dir.path().join("kernel.cubin"));
    std::fs::write(&input, ptx).map_err(|e| format!("cannot write {}: {e}", input.display()))?;
    let run = Command::new(ptxas)
        .args(["-v", &format!("-arch={}", arch(sm)), "-o"])
        .args([&output, &input])
        .output()
        .map_err(|e| format!("cannot run it: {e}"))?;
    let log = String::from_utf8_lossy(&run.stderr).into_owned();
    if !run.status.success() {
        return Err(format!("{}\n{log}", run.status));
    }
    let binary = std::fs::read(&output).map_err(|e| format!("it wrote no output: {e}"))?;
    let resources = Resources { code_bytes: Some(binary.len() as u64), ..parse_log(&log) };
    Ok(Assembled { binary: Some(binary), log, resources })
}

/// The architecture as ptxas calls it: what the code generator emits for.
fn arch(sm: u32) -> String {
    match tilewright_compiler::target::Caps::ptx(sm).language {
        Language::Ptx { sm, arch_specific: true } => format!("sm_{sm}a"),
        _ => format!("sm_{sm}"),
    }
}

/// `CU_TARGET_COMPUTE_90A`.
const COMPUTE_90A: usize = 90 + 0x1_0000;

/// The linker's name for the specific architecture that code is generated for, if it is.
fn specific_target(sm: u32) -> Option<usize> {
    match tilewright_compiler::target::Caps::ptx(sm).language {
        Language::Ptx { sm: 90, arch_specific: true } => Some(COMPUTE_90A),
        _ => None,
    }
}

/// Assembles with the driver's linker, for this target or for the context's device.
fn link(context: &Context, ptx: &str, target: Option<usize>) -> Result<Assembled> {
    let text = c_string(ptx)?;
    let mut log = JitLog::new();
    let (options, values) = log.options();
    let (mut options, mut values) = (options.to_vec(), values.to_vec());
    if let Some(target) = target {
        options.push(CUjit_option::CU_JIT_TARGET);
        values.push(ptr::without_provenance_mut(target));
    }
    let mut state = ptr::null_mut();
    // SAFETY: options and values are two arrays of the same length; the buffers they name outlive the link state.
    let code =
        unsafe { sys::cuLinkCreate_v2(options.len() as c_uint, options.as_mut_ptr(), values.as_mut_ptr(), &mut state) };
    context.check("cuLinkCreate", code)?;
    // SAFETY: the state is alive; the text is copied, its length includes the 0 at its end.
    let code = unsafe {
        sys::cuLinkAddData_v2(
            state,
            CUjitInputType::CU_JIT_INPUT_PTX,
            text.as_ptr().cast_mut().cast(),
            text.as_bytes_with_nul().len(),
            c"kernel.ptx".as_ptr(),
            0,
            ptr::null_mut(),
            ptr::null_mut(),
        )
    };
    let added = context.check("cuLinkAddData", code);
    let (mut cubin, mut size) = (ptr::null_mut(), 0);
    let linked = added.and_then(|()| {
        // SAFETY: writes a pointer into memory of the state, and its size.
        let code = unsafe { sys::cuLinkComplete(state, &mut cubin, &mut size) };
        context.check("cuLinkComplete", code)
    });
    let binary = linked.as_ref().ok().map(|()| {
        // SAFETY: the linker has written `size` bytes, which live as long as the state.
        unsafe { std::slice::from_raw_parts(cubin.cast::<u8>(), size) }.to_vec()
    });
    // SAFETY: created above, destroyed once; nothing borrows from it any more.
    unsafe { sys::cuLinkDestroy(state) };
    linked.map_err(|e| log.explain(e))?;
    let text = log.info();
    let code_bytes = binary.as_ref().map(|b| b.len() as u64);
    Ok(Assembled { binary, resources: Resources { code_bytes, ..parse_log(&text) }, log: text })
}

/// What the driver's compiler says.
pub(super) struct JitLog {
    info: Vec<u8>,
    error: Vec<u8>,
}

impl JitLog {
    const BYTES: usize = 64 * 1024;

    pub fn new() -> JitLog {
        JitLog { info: vec![0; Self::BYTES], error: vec![0; Self::BYTES] }
    }

    /// Options that make the driver write here. The buffers must outlive the driver's use of them.
    pub fn options(&mut self) -> ([CUjit_option; 5], [*mut c_void; 5]) {
        // Small numbers are passed in place of pointers.
        let number = |n: usize| ptr::without_provenance_mut::<c_void>(n);
        (
            [
                CUjit_option::CU_JIT_INFO_LOG_BUFFER,
                CUjit_option::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
                CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                CUjit_option::CU_JIT_LOG_VERBOSE,
            ],
            [
                self.info.as_mut_ptr().cast(),
                number(Self::BYTES),
                self.error.as_mut_ptr().cast(),
                number(Self::BYTES),
                number(1),
            ],
        )
    }

    pub fn info(&self) -> String {
        text(&self.info)
    }

    /// Adds what the compiler complained of to an error.
    pub fn explain(&self, mut error: Error) -> Error {
        if let Error::Driver { message, .. } = &mut error {
            message.push_str(&format!("\n{}{}", text(&self.error), text(&self.info)));
        }
        error
    }
}

/// The text up to the first 0.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.split(|&b| b == 0).next().unwrap_or_default()).into_owned()
}

/// The facts in the log of `ptxas -v`, which the driver's compiler writes in the same form.
fn parse_log(log: &str) -> Resources {
    let before = |what: &str| {
        let (head, _) = log.split_once(what)?;
        head.rsplit(|c: char| !c.is_ascii_digit()).next()?.parse::<u32>().ok()
    };
    let spills = [before(" bytes spill stores"), before(" bytes spill loads")];
    Resources {
        registers: before(" registers"),
        spill_bytes: spills.iter().flatten().copied().reduce(|a, b| a.saturating_add(b)),
        local_bytes: before(" bytes stack frame"),
        code_bytes: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_tells_registers_and_spills() {
        let log = "ptxas info    : 0 bytes gmem\nptxas info    : Compiling entry function 'k' for 'sm_90a'\n\
                   ptxas info    : Function properties for k\n    8 bytes stack frame, 12 bytes spill stores, 20 bytes spill loads\n\
                   ptxas info    : Used 168 registers, used 1 barriers, 384 bytes cmem[0]\n";
        let r = parse_log(log);
        assert_eq!((r.registers, r.spill_bytes, r.local_bytes), (Some(168), Some(32), Some(8)));
        assert_eq!(parse_log("nothing known"), Resources::default());
    }

    #[test]
    fn architectures_are_named_as_the_generator_names_them() {
        assert_eq!((arch(80), arch(90), arch(120)), ("sm_80".into(), "sm_90a".into(), "sm_120".into()));
    }

    #[test]
    fn a_ptxas_that_is_found_assembles() {
        let Some(ptxas) = ptxas() else {
            eprintln!("skipped: no ptxas on this machine");
            return;
        };
        let ptx = ".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p) {\n\
                   .reg .b64 %rd<2>;\n.reg .b32 %r<2>;\nld.param.u64 %rd1, [p];\nmov.u32 %r1, 7;\n\
                   st.global.u32 [%rd1], %r1;\nret;\n}\n";
        let done = run_ptxas(&ptxas.path, ptx, 90).unwrap();
        assert!(done.binary.is_some_and(|b| b.starts_with(b"\x7fELF")), "{}", done.log);
        assert!(done.resources.registers.is_some_and(|r| r > 0), "{}", done.log);
        assert_eq!(done.resources.spill_bytes, Some(0), "{}", done.log);
        let e = run_ptxas(&ptxas.path, "no code", 90).unwrap_err();
        assert!(e.contains("error") || e.contains("fatal"), "{e}");
    }

    #[test]
    fn a_ptxas_that_fails_reports_what_it_said() {
        let e = run_ptxas(Path::new("/nonexistent/ptxas"), "", 90).unwrap_err();
        assert!(e.contains("cannot run it"), "{e}");
    }
}
