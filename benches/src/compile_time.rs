//! From a kernel's definition to code, and the driver's part beside it.
//!
//! Each kernel is compiled in a process of its own, with no code cache of ours (`TILEWRIGHT_CACHE=off`) and none of the
//! driver's (`CUDA_CACHE_DISABLE=1`). The first compilation of the process is the cold one; the warm ones are of variants
//! that differ in a number and no more.

use crate::report::{Measurement, kernel_json};
use crate::timing::Summary;
use half::f16;
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use std::time::Duration;
use tilewright_kernels::{MatmulConfig, layer_norm, matmul_with, softmax, vector_add};
use tilewright_runtime::{CompiledKernel, Device};

/// The kernels whose compilation is measured.
pub const KERNELS: [&str; 4] = ["vector_add", "softmax", "layer_norm", "matmul"];
/// Warm compilations in each process.
const WARM: usize = 4;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Who turns PTX to machine code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Assembler {
    /// As a user gets it: ptxas if the machine has one.
    Default,
    /// The driver's own compiler.
    Driver,
}

/// In a process started by [`measure`]: compiles one kernel, cold and warm, and gives the times as JSON.
///
/// # Errors
/// What the compiler or the device says.
pub fn child(device: &str, kernel: &str) -> Outcome<Value> {
    let dev = Device::open(device)?;
    let cold = compile(&dev, kernel, 0)?;
    let (mut ours, mut driver) = (Vec::new(), Vec::new());
    for variant in 1..=WARM {
        let warm = compile(&dev, kernel, variant)?;
        ours.push(ms(own_part(&warm)));
        driver.push(ms(warm.metadata().driver_time));
    }
    Ok(json!({
        "cold_ms": ms(own_part(&cold)), "cold_driver_ms": ms(cold.metadata().driver_time),
        "warm_ms": ours, "warm_driver_ms": driver, "kernel": kernel_json(&cold),
    }))
}

fn ms(d: Duration) -> f64 {
    d.as_secs_f64() * 1e3
}

/// Definition to code.
fn own_part(kernel: &CompiledKernel) -> Duration {
    kernel.metadata().build_time + kernel.metadata().compile_time
}

/// Compiles the `variant`-th variant of a kernel, as large as the benchmarks have it; what it is compiled for depends on
/// the extents' divisors only, so the matrices have few rows.
fn compile(dev: &Device, kernel: &str, variant: usize) -> Outcome<std::sync::Arc<CompiledKernel>> {
    // Warps and stages are part of what is compiled; on these kernels stages change no code.
    let stages = 1 + variant as u32;
    let (rows, columns) = (16, 4096);
    let n = rows * columns;
    Ok(match kernel {
        "vector_add" => {
            let (x, y, out) = (dev.zeros::<f32>(n)?, dev.zeros::<f32>(n)?, dev.zeros::<f32>(n)?);
            vector_add(x.view([n])?, y.view([n])?, out.view([n])?)?.num_stages(stages).compile()?
        }
        "softmax" => {
            let (x, y) = (dev.zeros::<f32>(n)?, dev.zeros::<f32>(n)?);
            softmax(x.view([rows, columns])?, y.view([rows, columns])?)?.num_stages(stages).compile()?
        }
        "layer_norm" => {
            let (x, y) = (dev.zeros::<f32>(n)?, dev.zeros::<f32>(n)?);
            let (w, b) = (dev.zeros::<f32>(columns)?, dev.zeros::<f32>(columns)?);
            let (x, y) = (x.view([rows, columns])?, y.view([rows, columns])?);
            layer_norm(x, w.view([columns])?, b.view([columns])?, y, 1e-5)?.num_stages(stages).compile()?
        }
        "matmul" => {
            // Large enough for the configuration of large products.
            let n = 4096;
            let (a, b, c) = (dev.zeros::<f16>(n * n)?, dev.zeros::<f16>(n * n)?, dev.zeros::<f16>(n * n)?);
            let chosen = MatmulConfig::heuristic(dev, c.dtype(), [n, n, n]);
            let config = MatmulConfig { group: chosen.group + variant, ..chosen };
            matmul_with(a.view([n, n])?, b.view([n, n])?, c.view([n, n])?, config)?.compile()?
        }
        other => return Err(format!("no kernel `{other}`; there are {}", KERNELS.join(", ")).into()),
    })
}

/// The times of one kernel: ours cold and warm, and the driver's. `processes` give one cold time each.
///
/// # Errors
/// If a process cannot be started or fails.
pub fn measure(device: &str, kernel: &str, assembler: Assembler, processes: usize) -> Outcome<Vec<Measurement>> {
    let (mut cold, mut warm, mut cold_driver, mut driver) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut facts = Value::Null;
    for _ in 0..processes {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--device", device, "--compile-child", kernel]);
        command.env("TILEWRIGHT_CACHE", "off").env("CUDA_CACHE_DISABLE", "1").env_remove("TILEWRIGHT_DUMP");
        if assembler == Assembler::Driver {
            command.env("TILEWRIGHT_PTXAS", "off");
        }
        let output = command.stderr(Stdio::inherit()).output()?;
        if !output.status.success() {
            return Err(format!("the process that compiles {kernel} ended with {}", output.status).into());
        }
        let times: Value = serde_json::from_slice(&output.stdout)?;
        let numbers = |key: &str| match &times[key] {
            Value::Array(all) => all.iter().filter_map(Value::as_f64).collect(),
            one => one.as_f64().into_iter().collect::<Vec<f64>>(),
        };
        cold.extend(numbers("cold_ms"));
        warm.extend(numbers("warm_ms"));
        cold_driver.extend(numbers("cold_driver_ms"));
        driver.extend(numbers("warm_driver_ms"));
        facts = times["kernel"].clone();
    }
    if [&cold, &warm, &cold_driver, &driver].iter().any(|v| v.is_empty()) {
        return Err(format!("the process that compiles {kernel} printed no times").into());
    }
    let name = |what: &str| format!("compile {kernel}{what}");
    let line = |what: &str, samples| Measurement::new(name(what), "compile", "ms", Summary::of(samples));
    Ok(match assembler {
        Assembler::Default => {
            let mut first = line(", cold", cold);
            first.extra.insert("kernel".into(), facts);
            vec![first, line(", warm", warm), line(": assembler, cold", cold_driver), line(": assembler, warm", driver)]
        }
        Assembler::Driver => vec![line(": driver only, cold", cold_driver), line(": driver only, warm", driver)],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_child_compiles_every_kernel() {
        for kernel in KERNELS {
            let times = child("cpu", kernel).unwrap();
            assert!(times["cold_ms"].as_f64().unwrap() > 0.0);
            assert_eq!(times["warm_ms"].as_array().unwrap().len(), WARM);
        }
        assert!(child("cpu", "no such").unwrap_err().to_string().contains("vector_add"));
    }
}
