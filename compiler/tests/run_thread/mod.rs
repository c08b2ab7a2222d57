//! The commands of `.thread` files.
//!
//! `simulate` takes the arguments from comment lines of the file, one for each parameter:
//!
//! ```text
//! ; arg n = 5                  a number
//! ; arg x = f32 [1 2.5 nan]    the address of a buffer with these elements; see `run_kernel` for lists
//! ```

use super::run_kernel::{element, elements, numbers, target};
use super::{Case, Command, Outcome};
use crate::common::round_trip;
use std::collections::HashMap;
use std::fmt::Write;
use tilewright_compiler::DType;
use tilewright_compiler::sim::{self, Memory, Report, SimOptions};
use tilewright_compiler::target::{Language, opencl, ptx, spirv};
use tilewright_compiler::thread::dce::remove_unused;
use tilewright_compiler::thread::order::fit_registers;
use tilewright_compiler::thread::{AbiTy, Function, parse, verify};

/// The commands by name.
pub(super) const COMMANDS: &[(&str, Command)] = &[
    // The normalised text of the function, which need not be valid.
    ("parse", test_parse),
    // The message about text that cannot be parsed.
    ("parse-error", test_parse_error),
    // The function is valid.
    ("verify", test_verify),
    // The messages about a function that is not.
    ("verify-error", test_verify_error),
    // `order MOST AIM`: the function in an order that fits the registers; each parameter points into memory of its own.
    ("order", test_order),
    // The function without what is not used.
    ("dce", test_dce),
    // `simulate [grid=X[,Y[,Z]]] [untyped=no]`: the buffers that the function leaves and what the simulator counted, or the
    // mistake that it found.
    ("simulate", test_simulate),
    // `emit TARGET`: the code. Targets as for `lower` of Tile IR.
    ("emit", test_emit),
];

fn parsed(case: &Case) -> Result<Function, String> {
    let func = parse(case.text).map_err(|e| e.to_string())?;
    round_trip(&func)?;
    Ok(func)
}

fn valid(case: &Case) -> Result<Function, String> {
    let func = parsed(case)?;
    verify(&func).map_err(|e| e.to_string())?;
    Ok(func)
}

/// The text of what was made of a function, normalised.
fn normalised(func: &Function) -> Result<Outcome, String> {
    verify(func).map_err(|e| format!("{e}\n{func}"))?;
    Ok(Outcome::Text(func.renumbered().to_string()))
}

fn test_parse(case: &Case) -> Result<Outcome, String> {
    Ok(Outcome::Text(parsed(case)?.to_string()))
}

fn test_parse_error(case: &Case) -> Result<Outcome, String> {
    match parse(case.text) {
        Ok(_) => Err("the text is parsed, but a mistake was expected".into()),
        Err(e) => Ok(Outcome::Text(e.to_string())),
    }
}

fn test_verify(case: &Case) -> Result<Outcome, String> {
    valid(case).map(|_| Outcome::Pass)
}

fn test_verify_error(case: &Case) -> Result<Outcome, String> {
    match verify(&parsed(case)?) {
        Ok(()) => Err("the function is valid, but a mistake was expected".into()),
        Err(e) => Ok(Outcome::Text(e.to_string())),
    }
}

fn test_order(case: &Case) -> Result<Outcome, String> {
    let mut func = valid(case)?;
    let limits: Option<Vec<usize>> = case.arguments.split_whitespace().map(|w| w.parse().ok()).collect();
    let Some([most, aim]) = limits.as_deref() else { return Err("`order` takes two numbers of registers".into()) };
    let classes: Vec<u32> = (1..=func.params.len() as u32).collect();
    fit_registers(&mut func, &classes, *most, *aim);
    normalised(&func)
}

fn test_dce(case: &Case) -> Result<Outcome, String> {
    let mut func = valid(case)?;
    remove_unused(&mut func);
    normalised(&func)
}

fn test_emit(case: &Case) -> Result<Outcome, String> {
    let (func, caps) = (valid(case)?, target(case.arguments)?);
    let code = match caps.language {
        Language::Ptx { .. } => ptx::emit(&func, &caps),
        Language::SpirV => spirv::emit(&func, &caps).map(|words| spirv::disassemble(&words)),
        Language::OpenClC => opencl::emit(&func, &caps),
    };
    code.map(Outcome::Text).map_err(|e| e.to_string())
}

fn test_simulate(case: &Case) -> Result<Outcome, String> {
    let func = valid(case)?;
    let (mut grid, mut options) = ([1, 1, 1], SimOptions::default());
    for word in case.arguments.split_whitespace() {
        match word.split_once('=') {
            Some(("grid", sizes)) => {
                for (size, text) in grid.iter_mut().zip(sizes.split(',')) {
                    *size = text.parse().map_err(|e| format!("`{word}`: {e}"))?;
                }
            }
            Some(("untyped", "no")) => options.untyped_shared = false,
            _ => return Err(format!("there is no option `{word}`; there are grid=X,Y,Z and untyped=no")),
        }
    }
    let (mut memory, mut args, mut buffers) = (Memory::new(), Vec::new(), Vec::new());
    let mut given: HashMap<&str, &str> = HashMap::new();
    for line in case.text.lines().filter_map(|l| l.strip_prefix("; arg ")) {
        let (name, value) = line.split_once('=').ok_or_else(|| format!("`; arg {line}` has no `=`"))?;
        given.insert(name.trim(), value.trim());
    }
    for param in &func.params {
        let wrong = |what: &str| format!("`; arg {}`: {what}", param.name);
        let value = given.remove(param.name.as_str()).ok_or_else(|| wrong("there is no such line"))?;
        let dtype = match param.ty {
            AbiTy::I32 => DType::I32,
            AbiTy::I64 => DType::I64,
            AbiTy::F32 => DType::F32,
            AbiTy::F64 => DType::F64,
            AbiTy::Ptr => {
                let (dtype, list) = value.split_once(' ').ok_or_else(|| wrong("an element type and a list"))?;
                let dtype: DType = dtype.parse()?;
                let bytes = elements(dtype, list).ok_or_else(|| wrong("not a list of elements"))?;
                let (length, address) = (bytes.len(), memory.alloc_with(bytes));
                args.push(address);
                buffers.push((&param.name, dtype, address, length));
                continue;
            }
        };
        args.push(element(dtype, value).ok_or_else(|| wrong("not a number of the parameter's type"))?.0);
    }
    if let Some(name) = given.keys().next() {
        return Err(format!("the function has no parameter `{name}`"));
    }
    let report = match sim::run(&func, &args, &mut memory, grid, &options) {
        Ok(report) => report,
        Err(e) => return Ok(Outcome::Text(e.to_string())),
    };
    let mut out = String::new();
    for (name, dtype, address, length) in buffers {
        write!(out, "{name} = {}", numbers(dtype, memory.read(address, length)?)).map_err(|e| e.to_string())?;
    }
    Ok(Outcome::Text(out + &counts(&report)))
}

/// What the simulator counted, but for what there was none of.
fn counts(report: &Report) -> String {
    let counted = [
        ("global loads", report.global_loads.instructions),
        ("global stores", report.global_stores.instructions),
        ("sectors beyond the fewest", report.sectors - report.ideal_sectors),
        ("shared loads", report.shared_loads.instructions),
        ("shared stores", report.shared_stores.instructions),
        ("bank conflicts", report.bank_conflicts()),
        ("barriers", report.barriers),
        ("warp barriers", report.warp_barriers),
        ("shuffles", report.shuffles),
        ("mma", report.mmas),
        ("wgmma", report.wgmmas),
        ("ldmatrix", report.ldmatrices),
        ("asynchronous copies", report.async_copies),
    ];
    counted.iter().filter(|(_, n)| *n > 0).map(|(what, n)| format!("{what}: {n}\n")).collect()
}
