//! PTX for NVIDIA GPUs of compute capability 8.0 and up.
//!
//! **In**: a [`Function`] lowered for [`Caps::ptx`]. **Out**: PTX text that both ptxas and the driver's JIT take.
//! **Holds**: one Thread IR op becomes one PTX instruction where PTX has it; constants are immediates; the carried values
//! of loops live in one register each ([`registers`]), so that accumulators of `mma` are updated in place. Float sums and
//! products carry `.rn`, which ptxas never contracts.

mod arith;
mod body;
mod memory;
mod registers;
#[cfg(test)]
mod tests;

use super::{Caps, Language};
use crate::thread::{AbiTy, Function, Ty};
use crate::{Error, Result};
use registers::Registers;
use std::fmt::Write as _;

/// Prints a function as a PTX module with one entry of the function's name.
///
/// # Errors
/// [`Error::Internal`] if `caps` is not PTX or the function was not lowered for it.
pub fn emit(func: &Function, caps: &Caps) -> Result<String> {
    let Language::Ptx { sm, arch_specific } = caps.language else {
        return Err(Error::Internal(format!("PTX asked for the target {}", caps.name)));
    };
    if func.warp_width != 32 {
        let width = func.warp_width;
        return Err(Error::Internal(format!("`{}` is for warps of {width} lanes; PTX has 32", func.name)));
    }
    let registers = Registers::assign(func);
    let mut body = body::Emitter::new(func, &registers);
    body.block(func.body)?;
    let (text, temporaries) = body.finish();

    let mut out = String::new();
    let suffix = if arch_specific { "a" } else { "" };
    let _ = writeln!(out, ".version {}\n.target sm_{sm}{suffix}\n.address_size 64\n", version(sm));
    if func.shared_bytes(None) > 0 {
        let _ = writeln!(out, ".extern .shared .align 1024 .b8 {SHARED}[];\n");
    }
    let _ = write!(out, ".visible .entry {}(", func.name);
    for (i, p) in func.params.iter().enumerate() {
        let ty = match p.ty {
            AbiTy::I32 => "b32",
            AbiTy::I64 => "b64",
            AbiTy::Ptr => "b64 .ptr .global .align 1",
            AbiTy::F32 => "f32",
            AbiTy::F64 => "f64",
        };
        let comma = if i + 1 < func.params.len() { "," } else { "" };
        let _ = write!(out, "\n\t.param .{ty} {}{comma} // {}", param_name(i), p.name);
    }
    let _ = writeln!(out, "{})\n.reqntid {}, 1, 1\n{{", if func.params.is_empty() { "" } else { "\n" }, func.threads);
    for ty in [Ty::Pred, Ty::I32, Ty::I64, Ty::F32, Ty::F64] {
        let (n, t) = (registers.count(ty), temporaries[ty as usize]);
        if n > 0 {
            let _ = writeln!(out, "\t.reg .{} %{}<{n}>;", declared(ty), prefix(ty));
        }
        if t > 0 {
            let _ = writeln!(out, "\t.reg .{} %t{}<{t}>;", declared(ty), prefix(ty));
        }
    }
    if func.shared_bytes(None) > 0 {
        let _ = writeln!(out, "\t.reg .b32 {SHARED_BASE};\n\n\tmov.u32 {SHARED_BASE}, {SHARED};");
    } else {
        out.push('\n');
    }
    out.push_str(&text);
    out.push_str("}\n");
    Ok(out)
}

/// The name of the program's shared memory.
const SHARED: &str = "shared_memory";

/// The register of its address, 32 bits.
const SHARED_BASE: &str = "%shared";

/// Parameters are numbered: their own names might be words of PTX.
fn param_name(index: usize) -> String {
    format!("param_{index}")
}

/// The lowest PTX version that knows the architecture: old drivers take no newer one.
fn version(sm: u32) -> &'static str {
    match sm {
        ..=99 => "8.0",
        100 | 101 => "8.6",
        120 => "8.7",
        103 | 121 => "8.8",
        _ => "9.0",
    }
}

fn prefix(ty: Ty) -> &'static str {
    match ty {
        Ty::Pred => "p",
        Ty::I32 => "r",
        Ty::I64 => "rd",
        Ty::F32 => "f",
        Ty::F64 => "fd",
    }
}

fn declared(ty: Ty) -> &'static str {
    match ty {
        Ty::Pred => "pred",
        Ty::I32 => "b32",
        Ty::I64 => "b64",
        Ty::F32 => "f32",
        Ty::F64 => "f64",
    }
}
