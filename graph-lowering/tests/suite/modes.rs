//! Memory plans, and calls that keep their memory.

use crate::common::{assert_close, noise, other_devices};
use tilewright_graph_lowering::{Options, Structure, Tensor, compile};
use tilewright_runtime::Device;

/// Every device, the CPU first.
fn devices() -> Vec<String> {
    let mut all = vec!["cpu".to_owned()];
    all.extend(other_devices());
    all
}

/// A chain of kernels, when nothing is fused.
fn chain(x: &Tensor) -> Tensor {
    (0..10).fold(x.clone(), |x, i| (&x * 0.5 + f64::from(i)).tanh())
}

#[test]
fn values_share_memory() {
    let x = noise(1, &[64, 64]);
    let f = compile(chain, Options::new().device("cpu").fusion(false)).unwrap();
    assert_close("chain", &f.call(&x).unwrap(), &chain(&x), 1e-6);
    let m = f.explain().memory;
    // 30 kernels, 29 values between them; two are needed at a time.
    assert_eq!((m.planned, m.separate, m.least), (2 * 16384, 29 * 16384, 2 * 16384));
    assert!(f.explain().to_string().contains("values between kernels in 32768 bytes (475136 if"), "{}", f.explain());
    // One allocation for all of them, and one for the result.
    let device = Device::open("cpu").unwrap();
    let y = f.call(&x).unwrap();
    let before = device.stats();
    drop(y);
    f.call(&x).unwrap();
    // Other tests use the device, too: this is a bound, which 30 allocations a call would break.
    assert!(device.stats().allocations - before.allocations < 30);
}

/// One of the parts is padded with bits that no byte fills, one with zeros, some are results and some are not.
fn parts(x: &(Tensor, Tensor)) -> Vec<Tensor> {
    let (a, b) = x;
    let padded = a.exp().pad(&[1, 0], &[2, 3], -1.5);
    let zeros = b.tanh().pad(&[0, 2], &[1, 0], 0.0);
    let joined = Tensor::cat(&[&padded.sum(&[1]), &zeros.sum(&[1])], 0);
    vec![joined.exp(), padded * 2.0, a.clone(), b.reshape(&[24]), b.tanh().pad(&[1, 1], &[1, 1], 7.0), joined.sum(&[0])]
}

#[test]
fn kept_memory_gives_the_same_results() {
    for device in devices() {
        for fusion in [true, false] {
            let options = Options::new().device(&device).fusion(fusion).mode("reduce-overhead");
            let f = compile(parts, options).unwrap();
            for seed in 0..6 {
                let x = (noise(seed, &[4, 6]), noise(seed + 50, &[4, 6]));
                let what = format!("{device}, fusion {fusion}, seed {seed}");
                for (got, expected) in f.call(&x).unwrap().iter().zip(&parts(&x)) {
                    assert_close(&what, got, expected, 1e-5);
                }
            }
            assert_eq!(f.explain().mode, "reduce-overhead");
        }
    }
}

#[test]
fn results_that_are_held_are_never_written_again() {
    for device in devices() {
        let options = Options::new().device(&device).mode("reduce-overhead");
        let f = compile(|x: &Tensor| (x * 2.0, (x + 1.0).sum(&[0])), options).unwrap();
        let value = |i: usize| Tensor::vector(&[i as f32; 300]);
        // All are held; then some; then none, of which the last ones are given away.
        let held: Vec<_> = (0..12).map(|i| f.call(&value(i)).unwrap()).collect();
        for i in 12..40 {
            let (y, _) = f.call(&value(i)).unwrap();
            assert_eq!(y.to_vec::<f32>().unwrap(), [2.0 * i as f32; 300], "{device}");
        }
        // One result of several is enough to hold.
        let sums: Vec<Tensor> = (40..52).map(|i| f.call(&value(i)).unwrap().1).collect();
        for (i, (y, sum)) in held.iter().enumerate() {
            assert_eq!(y.to_vec::<f32>().unwrap(), [2.0 * i as f32; 300], "{device}");
            assert_eq!(sum.to_vec::<f32>().unwrap(), [300.0 * (i as f32 + 1.0)], "{device}");
        }
        for (i, sum) in (40..).zip(&sums) {
            assert_eq!(sum.to_vec::<f32>().unwrap(), [300.0 * (i as f32 + 1.0)], "{device}");
        }
    }
}

#[test]
fn results_feed_back_and_into_other_functions() {
    for device in devices() {
        let options = || Options::new().device(&device).mode("reduce-overhead");
        let step = compile(|(x, v): &(Tensor, Tensor)| (x + v, v * 0.5, x.clone()), options()).unwrap();
        let twice = compile(|x: &Tensor| x * 2.0, options()).unwrap();
        let mut state = (Tensor::vector(&[0.0f32; 70]), Tensor::vector(&[1.0f32; 70]));
        let mut seen = Vec::new();
        for i in 0..12 {
            let (x, v, old) = step.call(&state).unwrap();
            seen.push((twice.call(&x).unwrap(), old));
            state = (x, v);
            assert_eq!(state.0.to_vec::<f32>().unwrap(), [2.0 - 2.0 * 0.5f32.powi(i + 1); 70], "{device}, step {i}");
        }
        for (i, (doubled, old)) in seen.iter().enumerate() {
            let x = |i: usize| 2.0 - 2.0 * 0.5f32.powi(i as i32);
            assert_eq!(doubled.to_vec::<f32>().unwrap(), [2.0 * x(i + 1); 70], "{device}, step {i}");
            assert_eq!(old.to_vec::<f32>().unwrap(), [x(i); 70], "{device}, step {i}");
        }
    }
}

#[test]
fn one_argument_may_be_given_twice() {
    let f = compile(|(a, b): &(Tensor, Tensor)| a - b, Options::new().device("cpu").mode("reduce-overhead")).unwrap();
    let (x, y) = (noise(1, &[50]), noise(2, &[50]));
    for _ in 0..3 {
        assert_eq!(f.call(&(x.clone(), x.clone())).unwrap().to_f64s().unwrap(), [0.0; 50]);
        assert_close("a - b", &f.call(&(x.clone(), y.clone())).unwrap(), &(&x - &y), 0.0);
    }
}

#[test]
fn threads_may_call_one_function_at_once() {
    for device in devices() {
        let f = compile(chain, Options::new().device(&device).fusion(false).mode("reduce-overhead")).unwrap();
        std::thread::scope(|scope| {
            for t in 0..4 {
                let (f, device) = (&f, &device);
                scope.spawn(move || {
                    for i in 0..8 {
                        let x = noise(100 * t + i, &[33]);
                        assert_close(&format!("{device}, thread {t}"), &f.call(&x).unwrap(), &chain(&x), 1e-5);
                    }
                });
            }
        });
    }
}

#[test]
fn kept_memory_is_not_allocated_again() {
    // A device of its own, so that other tests do not change its counters: the CPU's are shared.
    for device in other_devices() {
        let f = compile(chain, Options::new().device(&device).fusion(false).mode("reduce-overhead")).unwrap();
        let device = Device::open(&device).unwrap();
        let x = f.call(&noise(1, &[64])).unwrap();
        let _ = f.call(&x).unwrap();
        let before = device.stats();
        for _ in 0..5 {
            f.call(&x).unwrap();
        }
        let after = device.stats();
        assert!(after.graph_launches - before.graph_launches >= 5, "{device}");
    }
}

#[test]
fn kept_memory_costs_the_host_no_more_than_the_default() {
    for device in devices() {
        let double = compile(|x: &Tensor| x * 2.0, Options::new().device(&device)).unwrap();
        let x = double.call(&Tensor::vector(&[0.5f32; 64])).unwrap();
        let opened = Device::open(&device).unwrap();
        let ways = ["default", "reduce-overhead"].map(|mode| {
            let f = compile(chain, Options::new().device(&device).fusion(false).mode(mode)).unwrap();
            f.call(&x).unwrap();
            f
        });
        // The least of many, in turns: what else the machine does adds to some of them.
        let mut least = [f64::INFINITY; 2];
        for _ in 0..60 {
            for (f, least) in ways.iter().zip(&mut least) {
                opened.synchronize().unwrap();
                let start = std::time::Instant::now();
                let y = f.call(&x).unwrap();
                *least = least.min(start.elapsed().as_secs_f64() * 1e6);
                drop(y);
            }
        }
        eprintln!("{device}: a call of 30 kernels takes the host {:.1} us, kept {:.1} us", least[0], least[1]);
        assert!(least[1] < 1.5 * least[0], "{device}: {least:?}");
    }
}

#[test]
fn tensors_without_elements_are_no_exception() {
    for mode in ["default", "reduce-overhead"] {
        let f = |x: &Tensor| (x.narrow(0, 2, 0).exp(), x.narrow(1, 0, 0).mean(&[1]), x.narrow(0, 1, 0).sum(&[0]) * 2.0);
        let compiled = compile(f, Options::new().device("cpu").fusion(false).mode(mode)).unwrap();
        for seed in 0..3 {
            let x = noise(seed, &[4, 6]);
            let (got, expected) = (compiled.call(&x).unwrap(), f(&x));
            for (g, e) in got.tensors().iter().zip(expected.tensors()) {
                assert_close(mode, g, &e, 1e-6);
            }
        }
    }
}

#[test]
fn kernels_are_tuned_once_and_choices_are_kept() {
    let store = tempfile::tempdir().unwrap();
    let options = |budget: u64| {
        let options = Options::new().device("cpu").fusion(false).mode("max-autotune");
        options.tuning_budget(std::time::Duration::from_millis(budget)).tuning_store(store.path())
    };
    let f = |(x, w): &(Tensor, Tensor)| {
        let y = (0..4).fold(x.clone(), |y, _| (y * 0.5).exp());
        (y.softmax(1), y.matmul(w).sum(&[1]))
    };
    let x = (noise(1, &[40, 70]), noise(2, &[70, 30]));
    let expected = f(&x);
    let check = |what: &str, budget: u64| {
        let compiled = compile(f, options(budget)).unwrap();
        for _ in 0..2 {
            let got = compiled.call(&x).unwrap();
            assert_close(what, &got.0, &expected.0, 1e-5);
            assert_close(what, &got.1, &expected.1, 1e-5);
        }
        compiled.explain()
    };
    let e = check("without time", 0);
    assert!(!e.tuned.is_empty() && e.tuned.iter().all(|l| l.ends_with(", not measured")), "{:#?}", e.tuned);
    let e = check("tuned", 4000);
    // Four products by a half and four exponentials are two kernels to tune.
    // .. the softmax has one more of the latter.
    for again in ["mul (in 4 kernels)", "exp (in 5 kernels)"] {
        assert_eq!(e.tuned.iter().filter(|l| l.starts_with(again)).count(), 1, "{:#?}", e.tuned);
    }
    assert!(e.kernels >= e.tuned.len() + 7, "{:#?}", e.tuned);
    assert!(e.tuned.iter().all(|l| l.contains("configurations measured)") && l.contains(" us")), "{:#?}", e.tuned);
    assert!(e.to_string().contains("tuned: "), "{e}");
    assert_eq!(e.mode, "max-autotune");
    // From here on the store knows.
    let known = check("known", 4000);
    let all_known = known.tuned.iter().all(|l| l.ends_with("us (known)"));
    assert!(all_known, "{:#?}", known.tuned);
    let without_time = check("known, without time", 0);
    assert_eq!(known.tuned, without_time.tuned);
}

#[test]
fn a_store_that_cannot_be_written_is_no_error() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let options = Options::new().device("cpu").set("mode", "max-autotune-no-graphs").set("tuning_budget", "200ms");
    let f = compile(|x: &Tensor| x.softmax(1), options.tuning_store(file.path())).unwrap();
    let x = noise(1, &[5, 9]);
    assert_close("softmax", &f.call(&x).unwrap(), &x.softmax(1), 1e-6);
    assert_eq!(f.explain().tuned.len(), 1);
}

#[test]
fn tuned_kernels_are_right_on_other_devices() {
    for device in other_devices() {
        let store = tempfile::tempdir().unwrap();
        let options = Options::new().device(&device).mode("max-autotune").set("tuning_budget", "3s");
        let f = |(x, w): &(Tensor, Tensor)| (x.softmax(1), x.matmul(w).tanh(), x.sum(&[0]), x.argmax(1));
        let compiled = compile(f, options.tuning_store(store.path())).unwrap();
        let x = (noise(1, &[50, 70]), noise(2, &[70, 30]));
        let (got, expected) = (compiled.call(&x).unwrap(), f(&x));
        for (g, e) in got.tensors().iter().zip(expected.tensors()) {
            assert_close(&device, g, &e, 1e-4);
        }
        eprintln!("{}", compiled.explain().tuned.join("\n"));
    }
}
