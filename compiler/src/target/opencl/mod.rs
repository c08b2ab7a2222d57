//! OpenCL C 1.2.
//!
//! **In**: a [`Function`] lowered for [`Caps::opencl`]. **Out**: OpenCL C text with one kernel of the function's name.
//! **Holds**: one statement for each Thread IR op, in order; integers are unsigned so that they wrap; constants are given
//! by their bits.
//!
//! The host must build it with `-cl-fp32-correctly-rounded-divide-sqrt` where the device has that, and without any of
//! the fast-math options, which change results.

mod expr;
mod stmt;
#[cfg(test)]
mod tests;

use super::{Caps, Language};
use crate::thread::{AbiTy, Function, Op, Ty};
use crate::{Error, Result};
use std::fmt::Write as _;

/// Prints a function as an OpenCL C program with one kernel of the function's name.
///
/// # Errors
/// [`Error::Internal`] if `caps` is not OpenCL or the function was not lowered for it.
pub fn emit(func: &Function, caps: &Caps) -> Result<String> {
    if caps.language != Language::OpenClC {
        return Err(Error::Internal(format!("OpenCL C asked for the target {}", caps.name)));
    }
    let body = stmt::Emitter::new(func).body()?;
    let mut out = String::new();
    if func.values.iter().any(|(_, v)| v.ty == Ty::F64) || func.params.iter().any(|p| p.ty == AbiTy::F64) {
        out.push_str("#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n");
    }
    let mut shuffles = false;
    func.walk(func.body, &mut |i| shuffles |= matches!(func.insts[i].op, Op::Shuffle(_) | Op::WarpBarrier));
    if shuffles && func.warp_width > 1 {
        out.push_str(SUBGROUPS);
    }
    out.push_str("#pragma OPENCL FP_CONTRACT OFF\n\n");
    let _ = write!(out, "__kernel __attribute__((reqd_work_group_size({}, 1, 1)))\nvoid {}(", func.threads, func.name);
    for (i, p) in func.params.iter().enumerate() {
        let ty = match p.ty {
            AbiTy::I32 => "int ",
            AbiTy::I64 => "long ",
            AbiTy::F32 => "float ",
            AbiTy::F64 => "double ",
            AbiTy::Ptr => "__global uchar *",
        };
        // A memory object has no address on the host: where in it the parameter points to is an argument of its own.
        let offset = if p.ty == AbiTy::Ptr { format!(", ulong {}_offset", argument(i)) } else { String::new() };
        let comma = if i + 1 < func.params.len() { "," } else { "" };
        let _ = write!(out, "\n    {ty}{}{offset}{comma} // {}", argument(i), p.name);
    }
    out.push_str(if func.params.is_empty() { ")\n{\n" } else { "\n)\n{\n" });
    let bytes = func.shared_bytes(None);
    if bytes > 0 {
        let align = func.shared.iter().map(|(_, b)| b.align).max().unwrap_or(1).max(16);
        let _ = writeln!(out, "    __local uchar {SHARED}[{bytes}] __attribute__((aligned({align})));");
    }
    out.push_str(&body);
    out.push_str("}\n");
    Ok(out)
}

/// The name of the program's shared memory.
const SHARED: &str = "shared_memory";

/// Shuffles are an extension under one of two names.
const SUBGROUPS: &str = "\
#ifdef cl_khr_subgroup_shuffle
#pragma OPENCL EXTENSION cl_khr_subgroup_shuffle : enable
#else
#pragma OPENCL EXTENSION cl_intel_subgroups : enable
#define sub_group_shuffle intel_sub_group_shuffle
#define sub_group_shuffle_xor intel_sub_group_shuffle_xor
#endif
";

/// Parameters are numbered: their own names might be words of OpenCL C.
fn argument(index: usize) -> String {
    format!("arg{index}")
}

/// The type of a variable.
fn type_name(ty: Ty) -> &'static str {
    match ty {
        Ty::Pred => "bool",
        Ty::I32 => "uint",
        Ty::I64 => "ulong",
        Ty::F32 => "float",
        Ty::F64 => "double",
    }
}

/// The signed type of the width of an integer type.
fn signed_name(ty: Ty) -> &'static str {
    if ty == Ty::I64 { "long" } else { "int" }
}
