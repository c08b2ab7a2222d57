//! Every operation of the language against NumPy: `tests/golden/values.jsonl`, which `tests/golden/make.py` writes, on
//! every device of the machine.
//!
//! `TILEWRIGHT_TEST_DEVICES`, a list such as `cpu,cuda:0`, chooses devices; `TILEWRIGHT_ORACLE_ONLY=exp` operations.
//! The compilers of software devices take a tenth of a second for a reduction: they are given a share, which has every
//! operation on every type; `TILEWRIGHT_ORACLE_ALL=1` gives them all.

extern crate tilewright_runtime as tilewright;

mod complete;
mod data;
mod plan;

use data::{Allowance, Case, DATA, least_normal, shown, word};
use plan::{Arg, Place, Plan, alone, plans};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use tilewright::dsl::Access;
use tilewright::{Device, DeviceKind, Error, KernelArg, Launch};
use tilewright_compiler::DType;
use tilewright_compiler::pipeline::Options;
use tilewright_compiler::tile::Constant;

/// The devices to compare on.
fn devices() -> Vec<Device> {
    let wanted = std::env::var("TILEWRIGHT_TEST_DEVICES").unwrap_or_default();
    if !wanted.trim().is_empty() {
        return wanted.split(',').map(|name| Device::open(name.trim()).unwrap_or_else(|e| panic!("{e}"))).collect();
    }
    let usable = |info: &tilewright::DeviceInfo| match &info.unusable {
        Some(why) => {
            eprintln!("skipped {}: {why}", info.name);
            false
        }
        None => true,
    };
    Device::list().into_iter().filter(usable).map(|info| Device::open(&info.name).unwrap()).collect()
}

/// Runs a launch: the memory it leaves, or nothing if the device has not what it takes.
fn run(device: &Device, plan: &Plan) -> tilewright::Result<Option<Vec<Vec<u8>>>> {
    let mut buffers = Vec::new();
    for bytes in &plan.memory {
        buffers.push(device.buffer_from(bytes)?);
    }
    let mut args = Vec::new();
    for (name, arg) in &plan.args {
        let arg = match arg {
            &Arg::Number(dtype, bits) => KernelArg::from_constant(dtype, Constant(bits)),
            &Arg::Address(i, dtype) => {
                KernelArg::pointer(buffers[i].memory(), dtype, 0..plan.memory[i].len() / dtype.bytes())?
            }
            Arg::View(i, dtype, w) => {
                KernelArg::from_memory(buffers[*i].memory(), *dtype, w.offset, &w.d, &w.strides, Access::InOut)?
            }
        };
        args.push((*name, arg));
    }
    let options = Options { num_warps: plan.warps, ..Options::default() };
    let launched = Launch::new(plan.def.clone(), args).grid(plan.grid).options(options).on(device).launch();
    match launched {
        Err(Error::Compile(tilewright_compiler::Error::Unsupported { .. })) => return Ok(None),
        other => other?,
    }
    let read: tilewright::Result<_> = buffers.iter().map(|b| b.to_vec()).collect();
    read.map(Some)
}

/// What the guide lets the device do beyond the bounds of the data.
fn allowance(device: &Device) -> Allowance {
    match (device.info().kind, device.info().gpu) {
        (DeviceKind::Vulkan, true) => Allowance { ulps: 3, flush: true, fma_twice: false },
        (DeviceKind::Vulkan, false) => Allowance { fma_twice: true, ..Allowance::default() },
        _ => Allowance::default(),
    }
}

/// Is this `fma` of `f64` a product and a sum, where the guide allows that: beyond the bounds it names?
fn is_rounded_twice(case: &Case, lane: usize, got: u64) -> bool {
    if case.f != "fma" || case.y.dtype != DType::F64 {
        return false;
    }
    let [a, b, c] = [0, 1, 2].map(|i| f64::from_bits(case.operand(i).word(case.source(i, lane))));
    let (low, high) = (2f64.powi(-900), 2f64.powi(900));
    let beyond = a.abs().max(b.abs()) >= 2f64.powi(400) || !(low..high).contains(&(a * b).abs()) || c.abs() >= high;
    beyond && [a, b, c].iter().all(|x| x.is_finite()) && got == (a * b + c).to_bits()
}

/// Does an operand of this element count as zero on the device?
fn flushed(case: &Case, lane: usize) -> bool {
    case.op().is_some_and(|op| op.is_elementwise())
        && case.program.is_none()
        && case.operands().iter().enumerate().any(|(i, a)| {
            let value = Constant(a.word(case.source(i, lane))).as_f64(a.dtype);
            a.dtype.is_float() && value != 0.0 && value.abs() < least_normal(a.dtype)
        })
}

/// The first difference between a result and what it should be.
fn fault(place: &Place, memory: &[Vec<u8>], allowance: Allowance) -> Option<String> {
    let case = place.case;
    if allowance.flush && case.f == "rem" && case.y.dtype.is_float() {
        return None;
    }
    let wrong = |&lane: &usize| {
        let got = word(case.y.dtype, &memory[place.memory], place.start + lane);
        let free = allowance.flush && flushed(case, lane) || allowance.fma_twice && is_rounded_twice(case, lane, got);
        !free && !case.close(got, lane, allowance)
    };
    let all: Vec<usize> = (0..case.y.elements()).filter(wrong).collect();
    let lane = *all.first()?;
    let got = word(case.y.dtype, &memory[place.memory], place.start + lane);
    let mut what = format!(
        "{}: {} elements, first {lane}: {} instead of {}",
        case.what(),
        all.len(),
        shown(case.y.dtype, got),
        shown(case.y.dtype, case.y.word(lane))
    );
    if case.op().is_some_and(|op| op.is_elementwise()) && case.program.is_none() {
        for (i, a) in case.operands().iter().enumerate() {
            let _ = write!(what, ", operand {i} {}", shown(a.dtype, a.word(case.source(i, lane))));
        }
    }
    if let Some(program) = &case.program {
        let _ = write!(what, "\n{}", program.ir);
    }
    Some(what)
}

/// Compares the launches; gives how many cases the device cannot run.
fn compare(device: &Device, plans: Vec<Plan>, block: usize, faults: &mut Vec<String>) -> usize {
    let mut cannot = 0;
    for plan in plans {
        match run(device, &plan) {
            Ok(Some(memory)) => {
                let found = plan.places.iter().filter_map(|p| fault(p, &memory, allowance(device)));
                faults.extend(found.map(|f| format!("{}: {f}", device.name())));
            }
            // One of the types is missing on the device: others are not.
            Ok(None) if plan.places.len() > 1 => {
                let each = plan.places.iter().map(|p| alone(p.case, block)).collect();
                cannot += compare(device, each, block, faults);
            }
            Ok(None) => {
                let case = plan.places[0].case;
                let double = case.operands().iter().map(|a| a.dtype).chain([case.y.dtype]).any(|d| d == DType::F64);
                assert!(double, "{} cannot {}", device.name(), case.what());
                cannot += 1;
            }
            Err(e) => faults.push(format!("{}: {}: {e}", device.name(), plan.places[0].case.what())),
        }
    }
    cannot
}

/// Does the device get a share of the cases?
fn gets_a_share(device: &Device) -> bool {
    device.info().kind != DeviceKind::Cpu && !device.info().gpu && std::env::var_os("TILEWRIGHT_ORACLE_ALL").is_none()
}

/// Of the cases of each operation and type one, of another shape from one operation and type to the next.
fn share<'a>(cases: Vec<&'a Case>) -> Vec<&'a Case> {
    let mut kinds: BTreeMap<(&str, DType), Vec<&'a Case>> = BTreeMap::new();
    for case in cases {
        kinds.entry((&case.f, case.operands().first().map_or(case.y.dtype, |a| a.dtype))).or_default().push(case);
    }
    kinds.into_values().enumerate().map(|(i, same)| same[i * 7 % same.len()]).collect()
}

/// Compares what `choose` takes for each device; elementwise operations `block` elements a program.
fn everywhere(choose: impl Fn(&Device) -> Vec<(&'static Case, usize)>) {
    let only = std::env::var("TILEWRIGHT_ORACLE_ONLY").ok();
    let mut faults = Vec::new();
    for device in devices() {
        let began = std::time::Instant::now();
        let mut of_blocks: BTreeMap<usize, Vec<&'static Case>> = BTreeMap::new();
        for (case, block) in choose(&device) {
            if only.as_ref().is_none_or(|o| *o == case.f) {
                of_blocks.entry(block).or_default().push(case);
            }
        }
        let (mut cannot, mut all) = (0, 0);
        for (block, cases) in of_blocks {
            all += cases.len();
            cannot += compare(&device, plans(cases.into_iter(), block), block, &mut faults);
        }
        assert!(cannot == 0 || device.info().kind != DeviceKind::Cpu, "the interpreter can do everything");
        println!("{}: {all} cases in {:.1?}, {cannot} not possible", device.name(), began.elapsed());
    }
    assert!(faults.is_empty(), "{} differ:\n{}", faults.len(), faults.join("\n"));
}

/// The elementwise operations, or the others.
fn cases(elementwise: bool) -> impl Iterator<Item = &'static Case> {
    let is_elementwise = |c: &Case| c.program.is_none() && c.op().is_some_and(|op| op.is_elementwise());
    DATA.cases.iter().filter(move |c| is_elementwise(c) == elementwise)
}

/// Results as small as those of tiles smaller than a warp are compared with.
fn is_small(case: &Case) -> bool {
    case.y.elements() <= 128
}

#[test]
fn elementwise_operations_mean_what_numpy_means() {
    everywhere(|device| {
        let all = !gets_a_share(device);
        let block = if all { 256 } else { 128 };
        cases(true).filter(|c| all || !is_small(c)).map(|c| (c, block)).collect()
    });
}

/// Scalars, and tiles smaller than a warp.
#[test]
fn elementwise_operations_of_small_tiles() {
    everywhere(|device| {
        let all = !gets_a_share(device);
        let blocks = |case: &'static Case| {
            let odd = case.operand(0).dtype as usize % 2;
            [1, 2].into_iter().filter(move |&b| all || b == 1 + odd).map(move |b| (case, b))
        };
        cases(true).filter(|c| is_small(c)).flat_map(blocks).collect()
    });
}

#[test]
fn other_operations_mean_what_numpy_means() {
    everywhere(|device| {
        let all: Vec<&Case> = cases(false).collect();
        let chosen = if gets_a_share(device) { share(all) } else { all };
        chosen.into_iter().map(|c| (c, 1)).collect()
    });
}
