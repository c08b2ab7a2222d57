//! The tuned kernels: every kind of configuration runs and agrees on each device of this machine, and tuned launches are right.

use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tilewright_autotune::record::Outcome;
use tilewright_autotune::{Dims, How, Isolation, Problem, Settings, Store, tune};
use tilewright_kernels::{reference, tuned};
use tilewright_runtime::{DType, Device};

fn devices() -> Vec<Device> {
    // Without the feature the last is not there, like any device that is absent.
    let names = ["cpu", "vulkan:0", "opencl:0"];
    names.iter().filter_map(|n| Device::open(n).ok()).collect()
}

#[test]
fn every_kernel_can_be_tuned_on_every_device() {
    let dir = tempfile::tempdir().unwrap();
    for device in devices() {
        for tunable in tuned::all() {
            let sizes: &[i64] = match tunable.name() {
                "matmul" => &[48, 40, 72],
                "vector_add" => &[5003],
                "attention" => &[1, 2, 14, 15, 32, 1],
                _ => &[6, 300],
            };
            let dims = Dims::new(tunable.dims(), sizes).unwrap();
            let problem = Problem { device: device.clone(), dtype: DType::F32, dims, seed: 7 };
            let budget = Duration::from_secs(3);
            let settings = Settings { budget, ..Settings::default() };
            let how = How { settings, isolation: Isolation::Never, ..How::default() };
            let report =
                tune(tunable, &problem, &Store::at(dir.path()), &how, &AtomicBool::new(false), &mut |_| {}).unwrap();
            assert!(report.record.winner().is_some(), "{} on {device}: {:?}", tunable.name(), report.summary);
            for e in &report.record.entries {
                // A device may lack resources; no configuration may be wrong.
                if let Outcome::Failed(f) = &e.outcome {
                    assert_eq!(
                        f.kind.name(),
                        "resources",
                        "{} on {device}, {}: {}",
                        tunable.name(),
                        e.config,
                        f.message
                    );
                }
            }
        }
    }
}

#[test]
fn tuned_launches_are_right() {
    let dev = Device::open("cpu").unwrap();
    let (rows, cols) = (5, 37);
    let host: Vec<f32> = tilewright_autotune::noise(3, rows * cols).map(|v| v as f32).collect();
    let wide = |v: &[f32]| v.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
    let x = dev.buffer_from(&host).unwrap();
    let y = dev.zeros::<f32>(rows * cols).unwrap();
    let view = |b| tilewright_runtime::Buffer::<f32>::view(b, [rows, cols]).unwrap();
    tuned::softmax(view(&x), view(&y)).unwrap().launch().unwrap();
    let expected = reference::softmax(&wide(&host), cols);
    assert!(reference::largest_error(&wide(&y.to_vec().unwrap()), &expected) < 1e-5);

    let (w, b) = (dev.buffer_from(&host[..cols]).unwrap(), dev.buffer_from(&host[cols..2 * cols]).unwrap());
    let (wv, bv) = (w.view([cols]).unwrap(), b.view([cols]).unwrap());
    tuned::layer_norm(view(&x), wv, bv, view(&y), 1e-5).unwrap().launch().unwrap();
    let expected = reference::layer_norm(&wide(&host), &wide(&host[..cols]), &wide(&host[cols..2 * cols]), 1e-5);
    assert!(reference::largest_error(&wide(&y.to_vec().unwrap()), &expected) < 1e-5);

    let c = dev.zeros::<f32>(rows * rows).unwrap();
    let transposed = x.view_strided(0, [cols, rows], [1, cols as isize]).unwrap();
    tuned::matmul(view(&x), transposed, c.view([rows, rows]).unwrap()).unwrap().launch().unwrap();
    let t: Vec<f64> = (0..cols * rows).map(|i| f64::from(host[i % rows * cols + i / rows])).collect();
    let expected = reference::matmul(&wide(&host), &t, [rows, rows, cols]);
    assert!(reference::largest_error(&wide(&c.to_vec().unwrap()), &expected) < 1e-5);

    let flat = |b| tilewright_runtime::Buffer::<f32>::view(b, [rows * cols]).unwrap();
    tuned::vector_add(flat(&x), flat(&x), flat(&y)).unwrap().launch().unwrap();
    assert_eq!(y.to_vec().unwrap(), host.iter().map(|v| v + v).collect::<Vec<_>>());

    let short = dev.zeros::<f32>(3).unwrap();
    assert!(tuned::vector_add(flat(&x), flat(&x), short.view([3]).unwrap()).is_err());
    assert!(tuned::matmul(view(&x), view(&x), c.view([rows, rows]).unwrap()).is_err());
}
