//! Whole devices against the interpreter: the random kernels of the compiler's tests, through driver and hardware. What the
//! simulator cannot see is met here: emitted code, drivers that optimise wrongly, hardware.
//!
//! `TILEWRIGHT_FUZZ_SEEDS=n` runs n kernels on each device, spread over the families (else some dozens),
//! `TILEWRIGHT_FUZZ_FROM=seed` begins there, `TILEWRIGHT_FUZZ_FAMILY=word` chooses families, `TILEWRIGHT_FUZZ_DEVICE=word` devices by name or model. A kernel
//! that fails is made smaller before it is shown. `TILEWRIGHT_FUZZ_TRACE=1` names each kernel before it runs: a driver may end the process.

extern crate tilewright_runtime as tilewright;

#[path = "../../../compiler/tests/common/mod.rs"]
mod common;
#[path = "../../../compiler/tests/random_agree/families.rs"]
#[allow(dead_code, reason = "how many seeds the simulator runs is nothing to a device")]
mod families;
#[path = "../../../compiler/tests/random_agree/generated.rs"]
mod generated;
#[path = "../../../compiler/tests/random_agree/kernels.rs"]
mod kernels;
#[path = "../../../compiler/tests/random_agree/maker.rs"]
mod maker;
#[path = "../../../compiler/tests/random_agree/numeric.rs"]
mod numeric;
#[path = "../../../compiler/tests/random_agree/shrink.rs"]
mod shrink;

use common::{Arg, Case};
use families::{FAMILIES, Typed, difference, options};
use std::any::TypeId;
use tilewright::dsl::Access;
use tilewright::{Device, DeviceKind, Error, KernelArg, Launch};
use tilewright_compiler::DType;
use tilewright_compiler::dsl::{ComptimeValue, KernelDef, KernelId};
use tilewright_compiler::pipeline::Options;
use tilewright_compiler::tile::{BinaryOp, Constant, Op, ParamKind, UnaryOp};

/// Kernels for each device in the usual run.
const KERNELS: u64 = 60;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn word(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

/// What a device made of a kernel: its buffers, or why it has none.
enum Outcome {
    Buffers(Vec<Vec<u8>>),
    /// The device cannot: too little shared memory, no such type.
    Cannot,
}

/// Runs a kernel on a device.
fn run(device: &Device, case: &Case, dtypes: &[DType], options: &Options) -> tilewright::Result<Outcome> {
    let fail = |e: tilewright_compiler::Error| Error::Compile(e);
    let mut buffers = Vec::new();
    for bytes in &case.buffers {
        buffers.push(device.buffer_from(bytes)?);
    }
    let func = case.func.clone();
    let text = func.to_string();
    let mut flat = case.args.iter();
    let mut args = Vec::new();
    for param in &func.params {
        // Names of kernels live as long as the process, as those of the source do.
        let name: &'static str = String::leak(param.name.clone());
        let mut bits = || match flat.next() {
            Some(&Arg::Bits(bits)) => bits,
            other => panic!("a number was to come, not {other:?}"),
        };
        args.push((
            name,
            match param.kind {
                ParamKind::Scalar(dtype) => KernelArg::from_constant(dtype, Constant(bits())),
                ParamKind::Ptr { dtype } | ParamKind::View { dtype, .. } => {
                    let Some(&Arg::Buf(i, offset)) = flat.next() else { panic!("an address was to come") };
                    let (memory, size) = (buffers[i].memory(), dtypes[i].bytes());
                    match param.kind {
                        ParamKind::View { rank, .. } => {
                            let mut words = |n: u8| {
                                (0..n)
                                    .map(|_| match flat.next() {
                                        Some(&Arg::Bits(bits)) => bits as i64 as isize,
                                        other => panic!("an extent or a stride was to come, not {other:?}"),
                                    })
                                    .collect::<Vec<isize>>()
                            };
                            let (dims, strides) = (words(rank), words(rank));
                            let dims: Vec<usize> = dims.into_iter().map(|d| d as usize).collect();
                            let strides: Vec<isize> = strides.into_iter().map(narrow).collect();
                            KernelArg::from_memory(memory, dtype, offset / size, &dims, &strides, Access::InOut)?
                        }
                        _ => KernelArg::pointer(memory, dtype, offset / size..case.buffers[i].len() / size)?,
                    }
                }
            },
        ));
    }
    let id = KernelId {
        path: "random_devices",
        item: TypeId::of::<Typed>(),
        dtypes: Vec::new(),
        comptime: vec![ComptimeValue::Text(text)],
    };
    let def = KernelDef::new("random", id, move |_| Ok(func.clone()));
    let grid = case.grid.map(|n| n as usize);
    let launched = Launch::new(def, args).grid(grid).options(*options).on(device).launch();
    match launched {
        Err(Error::Compile(tilewright_compiler::Error::Unsupported { .. })) => return Ok(Outcome::Cannot),
        Err(Error::Compile(e)) => return Err(fail(e)),
        other => other?,
    }
    let read: tilewright::Result<_> = buffers.iter().map(|b| b.to_vec()).collect();
    Ok(Outcome::Buffers(read?))
}

/// A stride from the bits of 32 that kernels with such strides are given.
fn narrow(stride: isize) -> isize {
    if stride > i32::MAX as isize && stride <= u32::MAX as isize { stride as u32 as i32 as isize } else { stride }
}

/// The first difference between a device and the interpreter; `None` too if the device cannot run the kernel.
fn fault(device: &Device, typed: &Typed, options: &Options) -> Option<String> {
    let expected = match typed.expected() {
        Ok(expected) => expected,
        Err(e) => return Some(e.to_string()),
    };
    match run(device, &typed.case, &typed.dtypes, options) {
        Ok(Outcome::Cannot) => None,
        Err(e) => Some(format!("error: {e}")),
        Ok(Outcome::Buffers(mut got)) => {
            let mut expected = expected;
            if is_vulkan_gpu(device) {
                let both = expected.iter_mut().zip(&mut got).zip(&typed.dtypes);
                both.for_each(|((e, g), &dtype)| [e, g].into_iter().for_each(|bytes| flush(dtype, bytes)));
            }
            expected.iter().zip(&got).zip(&typed.dtypes).enumerate().find_map(|(i, ((e, g), &dtype))| {
                difference(dtype, typed.tolerance, e, g).map(|why| format!("buffer {i} of {dtype}: {why}"))
            })
        }
    }
}

/// May subnormal numbers be zero, and quotients be off, as the guide says of Vulkan? Software devices do neither.
fn is_vulkan_gpu(device: &Device) -> bool {
    device.info().kind == DeviceKind::Vulkan && device.info().gpu
}

/// Makes zeros of subnormal numbers.
fn flush(dtype: DType, bytes: &mut [u8]) {
    if !dtype.is_float() {
        return;
    }
    let least = match dtype {
        DType::F16 => 2f64.powi(-14),
        DType::F64 => f64::MIN_POSITIVE,
        _ => f64::from(f32::MIN_POSITIVE),
    };
    for x in bytes.chunks_exact_mut(dtype.bytes()) {
        let bits = x.iter().rev().fold(0u64, |all, &b| all << 8 | u64::from(b));
        let value = Constant(bits).as_f64(dtype);
        if value != 0.0 && value.abs() < least {
            x.copy_from_slice(&Constant::from_f64(dtype, 0f64.copysign(value)).0.to_le_bytes()[..dtype.bytes()]);
        }
    }
}

/// Does the kernel use what this device rounds as it likes, as the guide says?
fn is_free(device: &Device, typed: &Typed) -> bool {
    if !is_vulkan_gpu(device) {
        return false;
    }
    let func = &typed.case.func;
    let mut free = false;
    func.walk(func.body, &mut |op| {
        let data = &func.ops[op];
        let dtype = data.results.first().map(|&v| func.ty(v).elem.dtype());
        let float = dtype.is_some_and(DType::is_float);
        let divides = matches!(data.op, Op::Binary(BinaryOp::Div | BinaryOp::Rem) | Op::Unary(UnaryOp::Sqrt));
        free |= float && divides;
    });
    free
}

#[test]
fn random_kernels_agree() {
    let asked = number("TILEWRIGHT_FUZZ_SEEDS");
    let first = number("TILEWRIGHT_FUZZ_FROM").unwrap_or(0);
    let (family, wanted) = (word("TILEWRIGHT_FUZZ_FAMILY"), word("TILEWRIGHT_FUZZ_DEVICE"));
    let families: Vec<_> = FAMILIES.iter().filter(|f| f.name.contains(&family)).collect();
    let mut faults = Vec::new();
    for info in Device::list() {
        if let Some(why) = &info.unusable {
            eprintln!("skipped {}: {why}", info.name);
            continue;
        }
        if !(info.name.contains(&wanted) || info.model.contains(&wanted)) || info.kind == DeviceKind::Cpu {
            continue;
        }
        let device = Device::open(&info.name).unwrap();
        let (mut ran, mut skipped) = (0, 0);
        for n in first..first + asked.unwrap_or(KERNELS) {
            let (family, seed) = (families[n as usize % families.len()], n / families.len() as u64);
            let (typed, options) = ((family.make)(seed), options(seed));
            if is_free(&device, &typed) {
                skipped += 1;
                continue;
            }
            ran += 1;
            if std::env::var_os("TILEWRIGHT_FUZZ_TRACE").is_some() {
                eprintln!("{}: family `{}`, seed {seed}", info.name, family.name);
            }
            let Some(why) = fault(&device, &typed, &options) else { continue };
            let same = |t: &Typed| {
                fault(&device, t, &options).is_some_and(|w| w.starts_with("error") == why.starts_with("error"))
            };
            let small = shrink::shrink(&typed, &same);
            faults.push(format!(
                "== {info}, family `{}`, seed {seed}, {options:?}\nat first: {why}\nmade smaller: {:?}\n{:?}\n{:?}\n{}",
                family.name,
                fault(&device, &small, &options),
                small.case.args,
                small.case.grid,
                small.case.func
            ));
            if faults.len() >= 5 {
                break;
            }
        }
        println!("{info}: {ran} runs, {skipped} skipped");
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
