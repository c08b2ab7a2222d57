//! What a call of a compiled function costs the host: 30 small kernels, in the modes `default` and `reduce-overhead`, on every
//! device of this machine.
//!
//! `cargo bench -p tilewright-benches --features opencl --bench modes [-- --quick] [FILTER]`. `submit` is the time until the
//! call returns, with the device idle before each; `whole` includes waiting for the result.

use criterion::{Criterion, criterion_group, criterion_main};
use std::time::{Duration, Instant};
use tilewright_graph_lowering::{Error, Options, Result, Tensor, compile};
use tilewright_runtime::Device;

/// 30 kernels when nothing is fused.
fn chain(x: &Tensor) -> Tensor {
    (0..10).fold(x.clone(), |x, i| (&x * 0.5 + f64::from(i)).tanh())
}

fn calls(c: &mut Criterion) {
    for info in Device::list().into_iter().filter(|d| d.unusable.is_none()) {
        for mode in ["default", "reduce-overhead"] {
            bench(c, &info.name, mode).unwrap_or_else(|e| panic!("{}: {e}", info.name));
        }
    }
}

fn bench(c: &mut Criterion, name: &str, mode: &str) -> Result<()> {
    let device = Device::open(name)?;
    let double = compile(|x: &Tensor| x * 2.0, Options::new().device(name))?;
    let f = compile(chain, Options::new().device(name).fusion(false).mode(mode))?;
    // On the device, as the result of another function.
    let x = double.call(&Tensor::vector(&[0.5f32; 64]))?;
    f.call(&x)?;
    assert_eq!(f.explain().kernels, 30);
    c.bench_function(&format!("{name}/{mode}/submit"), |b| {
        b.iter_custom(|n| {
            let mut time = Duration::ZERO;
            for _ in 0..n {
                device.synchronize().expect("the device works");
                let start = Instant::now();
                let y = f.call(&x).expect("the call works");
                time += start.elapsed();
                drop(y);
            }
            time
        });
    });
    c.bench_function(&format!("{name}/{mode}/whole"), |b| {
        b.iter(|| {
            let y = f.call(&x)?;
            device.synchronize()?;
            drop(y);
            Ok::<(), Error>(())
        });
    });
    Ok(())
}

criterion_group!(benches, calls);
criterion_main!(benches);
