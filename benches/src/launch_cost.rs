//! What the host pays for a launch: the bare `cuLaunchKernel` of an empty kernel beside ours of an equally small one.
//!
//! Only the submission is timed, not the kernel: fewer launches in a row than the driver queues, by the host's clock, and a
//! wait outside the timed part. The contenders take turns, so that a drift of the machine meets all of them.

use crate::bare::{self, Bare};
use crate::report::Measurement;
use crate::timing::Summary;
use std::time::Instant;
use tilewright_runtime::dsl::*;
use tilewright_runtime::{Device, Launch, View};

/// Does nothing with three views.
#[kernel]
fn nothing(x: In<f32, 1>, y: In<f32, 1>, out: Out<f32, 1>) {
    let _ = (x, y, out);
}

/// Launches in a row; the driver queues 1024 and then blocks.
const CALLS: usize = 500;
const WARPS: u32 = 1;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// One way to launch.
struct Contender<'a> {
    name: &'static str,
    launch: Box<dyn Fn() -> Outcome<()> + 'a>,
    wait: Box<dyn Fn() -> Outcome<()> + 'a>,
    ns: Vec<f64>,
}

/// Nanoseconds of one call, by each way. The first is the bare one, where the device is a CUDA device.
///
/// # Errors
/// What the driver says.
pub fn measure(dev: &Device, rounds: usize) -> Outcome<Vec<Measurement>> {
    let n = 1024;
    let (x, y, out) = (dev.zeros::<f32>(n)?, dev.zeros::<f32>(n)?, dev.zeros::<f32>(n)?);
    let (x, y, out) = (x.view([n])?, y.view([n])?, out.view([n])?);
    let launch = launch_of(x, y, out);
    let prepared = launch.prepare()?;
    let bare = match bare::index_of(dev.name()) {
        Some(index) => Some(Bare::new(index)?),
        None => None,
    };
    let wait = || Ok(dev.synchronize()?);

    let mut all = Vec::new();
    if let Some(bare) = &bare {
        all.push(Contender {
            name: "launch bare",
            launch: Box::new(|| Ok(bare.launch(WARPS * 32)?)),
            wait: Box::new(|| Ok(bare.synchronize()?)),
            ns: Vec::new(),
        });
    }
    all.push(Contender {
        name: "launch prepared",
        launch: Box::new(|| Ok(prepared.launch()?)),
        wait: Box::new(wait),
        ns: Vec::new(),
    });
    all.push(Contender {
        name: "launch",
        launch: Box::new(|| Ok(launch.launch()?)),
        wait: Box::new(wait),
        ns: Vec::new(),
    });
    all.push(Contender {
        name: "launch call",
        launch: Box::new(|| Ok(launch_of(x, y, out).launch()?)),
        wait: Box::new(wait),
        ns: Vec::new(),
    });

    for round in 0..rounds + 3 {
        // Another one goes first each round.
        for i in 0..all.len() {
            let at = (i + round) % all.len();
            let c = &mut all[at];
            let start = Instant::now();
            for _ in 0..CALLS {
                (c.launch)()?;
            }
            let ns = start.elapsed().as_secs_f64() * 1e9 / CALLS as f64;
            (c.wait)()?;
            // The first rounds warm up.
            if round >= 3 {
                c.ns.push(ns);
            }
        }
    }

    let mut results: Vec<_> =
        all.into_iter().map(|c| Measurement::new(c.name, "launch", "ns", Summary::of(c.ns))).collect();
    if bare.is_some() {
        let least = results[0].time.median;
        for m in &mut results[1..] {
            m.extra.insert("over_bare_ns".into(), (m.time.median - least).into());
        }
    }
    Ok(results)
}

/// The typed call that a user writes.
fn launch_of<'a>(x: View<'a, f32, 1>, y: View<'a, f32, 1>, out: View<'a, f32, 1>) -> Launch<'a> {
    nothing(x, y, out).grid([1]).num_warps(WARPS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_is_measured_on_the_cpu() {
        let results = measure(&Device::open("cpu").unwrap(), 2).unwrap();
        let names: Vec<_> = results.iter().map(|m| m.name.as_str()).collect();
        assert_eq!(names, ["launch prepared", "launch", "launch call"]);
        assert!(results.iter().all(|m| m.time.n == 2 && m.time.min > 0.0));
    }
}
