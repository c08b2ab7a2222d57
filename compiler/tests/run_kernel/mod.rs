//! The commands `lower` and `run` of the filetests.
//!
//! `run` takes the kernel's arguments from comment lines of the file, one for each kernel parameter:
//!
//! ```text
//! ; arg n = 5                                   a number
//! ; arg x = [1 2.5 nan -inf]                    an address: of a buffer with these elements, of the parameter's type
//! ; arg y = [0 x 64]  [1 .. 8]                  64 zeros; then the whole numbers 1 to 7
//! ; arg z = x + 3                               an address in the buffer of `x`, which is 3 elements further
//! ; arg v = [1 .. 7] dims 2 3 strides 3 1       a view
//! ; arg w = x + 1 dims 2 strides 2              a view of the same buffer
//! ```

use super::{Case, Outcome, valid};
use crate::common::{self, Arg};
use std::collections::HashMap;
use std::fmt::Write;
use tilewright_compiler::DType;
use tilewright_compiler::passes;
use tilewright_compiler::pipeline::{Options, to_thread};
use tilewright_compiler::target::Caps;
use tilewright_compiler::tile::{Constant, Function, ParamKind, parse};

/// The optimised kernel, the schedule, and what one thread does.
pub(super) fn test_lower(case: &Case) -> Result<Outcome, String> {
    let mut words = case.arguments.split_whitespace();
    let caps = target(words.next().unwrap_or_default())?;
    let mut options = Options::default();
    for word in words {
        let (name, value) = word.split_once('=').ok_or_else(|| format!("`{word}` is not `name=number`"))?;
        let value = value.parse().map_err(|e| format!("`{word}`: {e}"))?;
        match name {
            "warps" => options.num_warps = value,
            "stages" => options.num_stages = value,
            _ => return Err(format!("there is no option `{name}`; there are warps and stages")),
        }
    }
    let mut func = valid(case)?;
    passes::optimize(&mut func).map_err(|e| e.to_string())?;
    // Normalised, so that the numbers of values do not depend on how many the passes made and dropped.
    let func = parse(&func.to_string()).map_err(|e| e.to_string())?;
    match to_thread(&func, &caps, &options) {
        Ok((_, schedule, thread)) => {
            common::round_trip(&thread)?;
            Ok(Outcome::Text(format!("{func}\n{schedule}\n{thread}")))
        }
        Err(e) => Ok(Outcome::Text(e.to_string())),
    }
}

pub(super) fn target(name: &str) -> Result<Caps, String> {
    let number = |prefix: &str| name.strip_prefix(prefix)?.parse::<u32>().ok();
    if let Some(sm) = number("sm_") {
        return Ok(Caps::ptx(sm));
    }
    if let Some(width) = number("vulkan") {
        return Ok(Caps::spirv(name, width, 1024, 64 << 10));
    }
    match name {
        "opencl" => Ok(Caps::opencl(name, 1024, 64 << 10, true)),
        _ => Err(format!(
            "there is no target `{name}`; there are sm_80, sm_90, vulkan1, vulkan8, vulkan32, vulkan64, opencl"
        )),
    }
}

/// The buffers that the kernel leaves.
pub(super) fn test_run(case: &Case) -> Result<Outcome, String> {
    let func = valid(case)?;
    let mut run = common::Case { func, args: Vec::new(), buffers: Vec::new(), grid: [1, 1, 1] };
    let mut simulate = false;
    for word in case.arguments.split_whitespace() {
        match word.split_once('=') {
            Some(("grid", sizes)) => {
                for (size, text) in run.grid.iter_mut().zip(sizes.split(',')) {
                    *size = text.parse().map_err(|e| format!("`{word}`: {e}"))?;
                }
            }
            None if word == "simulate" => simulate = true,
            _ => return Err(format!("there is no option `{word}`; there are grid=X,Y,Z and simulate")),
        }
    }
    let buffers = arguments(case.text, &mut run)?;
    let after = run.try_interpret().map_err(|e| e.to_string())?;
    if simulate {
        for caps in common::targets() {
            let (got, _) = run.try_simulate(&caps, &Options::default()).map_err(|e| format!("{}: {e}", caps.name))?;
            for ((name, dtype), (expected, got)) in buffers.iter().zip(after.iter().zip(&got)) {
                if expected != got {
                    let (expected, got) = (numbers(*dtype, expected), numbers(*dtype, got));
                    return Err(format!(
                        "lowered for {}, {name} becomes\n{got}, by the interpreter\n{expected}",
                        caps.name
                    ));
                }
            }
        }
    }
    let mut out = String::new();
    for ((name, dtype), bytes) in buffers.iter().zip(&after) {
        write!(out, "{name} = {}", numbers(*dtype, bytes)).map_err(|e| e.to_string())?;
    }
    Ok(Outcome::Text(out))
}

/// Reads the lines `; arg NAME = ...` into the case; gives the buffers' names and types.
fn arguments(text: &str, run: &mut common::Case) -> Result<Vec<(String, DType)>, String> {
    let mut given = HashMap::new();
    for line in text.lines().filter_map(|l| l.strip_prefix("; arg ")) {
        let (name, value) = line.split_once('=').ok_or_else(|| format!("`; arg {line}` has no `=`"))?;
        given.insert(name.trim().to_owned(), value.trim().to_owned());
    }
    let func: Function = run.func.clone();
    let mut buffers: Vec<(String, DType)> = Vec::new();
    let mut starts: HashMap<String, usize> = HashMap::new();
    for param in &func.params {
        let value =
            given.remove(&param.name).ok_or_else(|| format!("there is no line `; arg {} = ...`", param.name))?;
        let wrong = |what: &str| format!("`; arg {} = {value}`: {what}", param.name);
        let (dtype, rank) = match param.kind {
            ParamKind::Scalar(dtype) => {
                let c = element(dtype, &value).ok_or_else(|| wrong("not a number of the parameter's type"))?;
                run.args.push(Arg::Bits(c.0));
                continue;
            }
            ParamKind::Ptr { dtype } => (dtype, 0),
            ParamKind::View { dtype, rank } => (dtype, usize::from(rank)),
        };
        let (place, sizes) = value.split_once("dims").unwrap_or((&value, ""));
        if place.starts_with('[') {
            let bytes = elements(dtype, place).ok_or_else(|| wrong("not a list of elements"))?;
            starts.insert(param.name.clone(), buffers.len());
            run.args.push(Arg::Buf(buffers.len(), 0));
            run.buffers.push(bytes);
            buffers.push((param.name.clone(), dtype));
        } else {
            let (of, by) = place.split_once('+').unwrap_or((place, "0"));
            let buffer = *starts.get(of.trim()).ok_or_else(|| wrong("no earlier buffer of that name"))?;
            let by: usize = by.trim().parse().map_err(|_| wrong("the distance is no number"))?;
            run.args.push(Arg::Buf(buffer, by * dtype.bytes()));
        }
        if rank > 0 {
            let sizes: Vec<i64> =
                sizes.replace("strides", " ").split_whitespace().filter_map(|s| s.parse().ok()).collect();
            if sizes.len() != 2 * rank {
                return Err(wrong("a view has as many dims and strides as dimensions"));
            }
            for size in sizes {
                let param = func.regions[func.body].params[run.args.len()];
                run.args.push(Arg::Bits(Constant::from_i64(func.ty(param).dtype(), size).0));
            }
        }
    }
    match given.keys().next() {
        Some(name) => Err(format!("the kernel has no parameter `{name}`")),
        None => Ok(buffers),
    }
}

pub(super) fn element(dtype: DType, text: &str) -> Option<Constant> {
    match text {
        "true" => Some(Constant(1)),
        "false" => Some(Constant(0)),
        _ if dtype.is_float() => text.parse().ok().map(|x| Constant::from_f64(dtype, x)),
        _ => text.parse().ok().map(|x| Constant::from_i64(dtype, x)),
    }
}

/// The bytes of lists such as `[1 2 3] [0 x 5] [1 .. 4]`.
pub(super) fn elements(dtype: DType, text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for list in text.split(']').map(str::trim).filter(|l| !l.is_empty()) {
        let list = list.strip_prefix('[')?;
        let all: Vec<Constant> = if let Some((from, to)) = list.split_once("..") {
            let (from, to) = (from.trim().parse::<i64>().ok()?, to.trim().parse::<i64>().ok()?);
            (from..to).map(|x| Constant::from_i64(dtype, x)).collect()
        } else if let Some((x, n)) = list.split_once('x') {
            vec![element(dtype, x.trim())?; n.trim().parse().ok()?]
        } else {
            list.split_whitespace().map(|x| element(dtype, x)).collect::<Option<_>>()?
        };
        bytes.extend(all.iter().flat_map(|c| c.0.to_le_bytes().into_iter().take(dtype.bytes())));
    }
    Some(bytes)
}

/// Elements as text, 16 a line.
pub(super) fn numbers(dtype: DType, bytes: &[u8]) -> String {
    let one = |x: &[u8]| {
        let mut word = [0; 8];
        word[..x.len()].copy_from_slice(x);
        let c = Constant(u64::from_le_bytes(word));
        match dtype {
            DType::F16 => half::f16::from_bits(c.0 as u16).to_string(),
            DType::BF16 => half::bf16::from_bits(c.0 as u16).to_string(),
            DType::F32 => f32::from_bits(c.0 as u32).to_string(),
            DType::F64 => f64::from_bits(c.0).to_string(),
            DType::Bool => (c.0 != 0).to_string(),
            DType::U64 => c.0.to_string(),
            _ => c.as_i64(dtype).unwrap_or_default().to_string(),
        }
    };
    let all: Vec<String> = bytes.chunks_exact(dtype.bytes()).map(one).collect();
    let lines: Vec<String> = all.chunks(16).map(|c| c.join(" ")).collect();
    format!("[{}]\n", lines.join("\n  "))
}
