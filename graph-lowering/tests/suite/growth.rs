//! Capturing, planning and generating take time and memory in proportion to the graph: chains, trees and diamonds of single
//! numbers, of short and of longer tensors, and many parameters. `TILEWRIGHT_GROWTH` is by how much larger they are than in
//! the default run.

use crate::allocated;
use crate::common::noise;
use std::sync::LazyLock;
use std::time::{Duration, Instant};
use tilewright_graph_lowering::{DType, Options, Structure, Tensor, compile, grad};

/// Steeper than a product with the logarithm, and well below a square.
const EXPONENT: f64 = 1.3;
/// By how much the larger graph is larger.
const TIMES: usize = 4;

fn planned<I: Structure, O: Structure>(f: impl Fn(&I) -> O, x: &I) {
    compile(f, Options::new().device("cpu").graph_cache(false)).unwrap().plan(x).unwrap();
}

/// How long this thread has run, which is no longer for the other tests beside it; where the system does not tell, the time.
fn now() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = told.and_then(|t| t.split_whitespace().next()?.parse().ok());
    nanoseconds.map_or_else(|| START.elapsed(), Duration::from_nanos)
}

/// The mean of as many runs as it takes to measure them: the system counts in steps of some milliseconds.
fn mean(run: impl Fn()) -> Duration {
    let begin = now();
    for count in 1.. {
        run();
        let all = now() - begin;
        if all >= Duration::from_millis(30) {
            return all / count;
        }
    }
    Duration::ZERO
}

/// Fails if `TIMES` the size asks for much more than `TIMES` the memory, or takes much more than `TIMES` the time, every
/// time that it is measured.
fn grows_evenly(what: &str, size: usize, run: impl Fn(usize)) {
    let size = size * std::env::var("TILEWRIGHT_GROWTH").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    let limit = (TIMES as f64).powf(EXPONENT);
    // The second run: the first fills what is kept for later ones.
    let bytes = |n| {
        run(n);
        let before = allocated::bytes();
        run(n);
        allocated::bytes() - before
    };
    let [small, large] = [size, size * TIMES].map(bytes);
    assert!(
        large as f64 <= limit * small as f64,
        "{what}: {size} ask for {small} bytes, {} for {large}: more than {limit:.1} times as many",
        size * TIMES
    );
    let mut seen = Vec::new();
    for _ in 0..4 {
        let [small, large] = [size, size * TIMES].map(|n| mean(|| run(n)));
        if large.as_secs_f64() <= limit * small.as_secs_f64() {
            return;
        }
        seen.push((small, large));
    }
    panic!("{what}: {size} and {} take {seen:?}: more than {limit:.1} times as long", size * TIMES);
}

fn start(dims: &[usize]) -> Tensor {
    noise(1, dims)
}

/// A step of Runge and Kutta's method: its four slopes meet again in the sum.
fn runge_kutta(y: &Tensor) -> Tensor {
    let slope = |y: &Tensor| y.sin() * y - y;
    let k1 = slope(y);
    let k2 = slope(&(y + &k1 * 0.05));
    let k3 = slope(&(y + &k2 * 0.05));
    let k4 = slope(&(y + &k3 * 0.1));
    y + (k1 + (k2 + k3) * 2.0 + k4) * (0.1 / 6.0)
}

#[test]
fn found_g15_steps_of_a_single_number() {
    let f = |y: &Tensor| (0..40).fold(y.clone(), |y, _| runge_kutta(&y));
    for dims in [vec![], vec![1], vec![1, 1], vec![2]] {
        let y = start(&dims);
        let compiled = compile(f, Options::new().device("cpu")).unwrap();
        let begin = Instant::now();
        let got = compiled.call(&y).unwrap();
        assert!(begin.elapsed() < Duration::from_secs(60), "{dims:?} took {:?}", begin.elapsed());
        crate::common::assert_close("Runge-Kutta", &got, &f(&y), 1e-5);
    }
}

#[test]
fn found_g15_time_grows_evenly_with_the_graph() {
    for dims in [vec![], vec![1], vec![2], vec![64]] {
        let x = start(&dims);
        grows_evenly(&format!("a chain of {dims:?}"), 128, |n| {
            planned(|x: &Tensor| (0..n).fold(x.clone(), |y, i| y.sin() + i as f64), &x)
        });
        grows_evenly(&format!("diamonds of {dims:?}"), 128, |n| {
            planned(|x: &Tensor| (0..n).fold(x.clone(), |y, _| &y * &y.cos() + &y), &x)
        });
        grows_evenly(&format!("a tree of {dims:?}"), 128, |n| {
            let tree = |x: &Tensor| {
                let mut level: Vec<Tensor> = (0..n).map(|i| (x + i as f64).sin()).collect();
                while level.len() > 1 {
                    level = level.chunks(2).map(|c| c.iter().skip(1).fold(c[0].clone(), |a, b| a * b)).collect();
                }
                level.remove(0)
            };
            planned(tree, &x)
        });
        grows_evenly(&format!("reductions one after the other of {dims:?}"), 32, |n| {
            let all: Vec<usize> = (0..dims.len()).collect();
            planned(|x: &Tensor| (0..n).fold(x.clone(), |y, _| &y * (y.sin().sum(&all) + 1.0)), &x)
        });
        grows_evenly(&format!("the gradient of a chain of {dims:?}"), 128, |n| {
            let all: Vec<usize> = (0..dims.len()).collect();
            let f = |x: &Tensor| (0..n).fold(x.clone(), |y, _| y.sin() * 1.5).sum(&all);
            planned(|x: &Tensor| grad(f, x).unwrap(), &x)
        });
    }
}

#[test]
fn found_g15_time_grows_evenly_with_parameters_and_layers() {
    grows_evenly("parameters", 32, |n| {
        let x: Vec<Tensor> = (0..n).map(|i| noise(i as u64, &[3, 4])).collect();
        let norm = |x: &Vec<Tensor>| x.iter().map(|p| (p * p).sum(&[0, 1])).reduce(|a, b| a + b).unwrap();
        planned(|x: &Vec<Tensor>| grad(norm, x).unwrap(), &x)
    });
    grows_evenly("results", 128, |n| {
        planned(|x: &Tensor| (0..n).map(|i| (x + i as f64).exp()).collect::<Vec<_>>(), &start(&[5, 7]))
    });
    grows_evenly("extents", 16, |n| {
        let x: Vec<Tensor> = (0..n).map(|i| noise(i as u64, &[i + 2, 4])).collect();
        planned(|x: &Vec<Tensor>| x.iter().map(|x| x.softmax(0) * 2.0).collect::<Vec<_>>(), &x)
    });
    grows_evenly("layers", 4, |n| {
        let weights: Vec<Tensor> = (0..4 * n).map(|i| noise(i as u64, &[16, 16])).collect();
        let forward = |(x, w): &(Tensor, Vec<Tensor>)| {
            let layer = |x: Tensor, w: &[Tensor]| {
                let y = x.layer_norm(None, None, 1e-5);
                let [q, k, v] = [0, 1, 2].map(|i| y.matmul(&w[i]));
                let x = q.attention(&k, &v, None, true, None) + x;
                x.matmul(&w[3]).gelu() + x
            };
            w.chunks(4).fold(x.clone(), layer).sum(&[0, 1])
        };
        planned(|x: &(Tensor, Vec<Tensor>)| grad(forward, x).unwrap(), &(noise(1, &[8, 16]), weights))
    });
    grows_evenly("slices of slices", 64, |n| {
        let f = |x: &Tensor| {
            (0..n).fold((x.clone(), x.narrow(0, 0, 1)), |(x, y), _| {
                let x = x.slice_axis(0, 1..);
                (x.clone(), y + x.narrow(0, 0, 1))
            })
        };
        planned(|x: &Tensor| f(x).1, &noise(1, &[8192, 2]))
    });
    let pull = |n: usize| {
        let f = move |x: &Tensor| (0..n).fold(x.clone(), |y, _| y.softmax(1).exp() * 0.5);
        let x = Tensor::zeros(DType::F32, &[4, 4]);
        let compiled = compile(f, Options::new().device("cpu").graph_cache(false)).unwrap();
        compiled.vjp(&x).unwrap();
    };
    grows_evenly("what a pullback keeps", 8, pull);
}
