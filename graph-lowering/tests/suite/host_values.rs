//! What a function does on the host while it is captured: it reads values back, takes numbers, uses tensors and numbers of its own.

use crate::common::{assert_close, noise};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;
use tilewright_graph_lowering::{
    CheckCaptures, DType, Dynamic, Error, Mode, Options, Tensor, compile, grad, value_and_grad,
};

fn cpu() -> Options {
    Options::new().device("cpu")
}

fn first(x: &Tensor) -> f32 {
    x.cast(DType::F32).to_vec::<f32>().unwrap()[0]
}

#[test]
fn found_g14() {
    let runs = AtomicUsize::new(0);
    // The function insists on its values.
    let line = line!() + 3;
    let f = |x: &Tensor| {
        runs.fetch_add(1, Relaxed);
        if x.to_vec::<f32>().unwrap()[0] > 0.0 { x.exp() } else { (x * 2.0).sum(&[0]) + 1.0 }
    };
    let strict = compile(f, cpu().fullgraph(true)).unwrap();
    let e = strict.call(&Tensor::vector(&[1.0f32, 2.0])).unwrap_err().to_string();
    assert!(e.contains(&format!("host_values.rs:{line}:")), "{e}");
    for backend in ["tilewright", "interpreter", "eager"] {
        let loose = compile(f, cpu().backend(backend)).unwrap();
        runs.store(0, Relaxed);
        for x in [[1.0f32, 2.0], [-1.0, 2.0], [0.5, 0.0], [-3.0, 1.0]] {
            let x = Tensor::vector(&x);
            assert_close(backend, &loose.call(&x).unwrap(), &f(&x), 1e-6);
        }
        // Each call ran it once, and the test once more.
        assert_eq!(runs.load(Relaxed), 8, "{backend}");
    }
}

#[test]
fn found_g14_within_gradients_and_other_captures() {
    // What is computed on the way, a captured tensor, a value inside a gradient, and one inside a function that is itself captured.
    let weight = noise(3, &[2, 2]);
    let inner = compile(|x: &Tensor| x * f64::from(first(&x.sum(&[0, 1]))), cpu()).unwrap();
    let f = |x: &Tensor| {
        let y = x.matmul(&weight).tanh();
        let loss = |y: &Tensor| (y * f64::from(first(&(y * 3.0)))).exp().sum(&[0, 1]);
        let (value, g) = value_and_grad(loss, &y).unwrap();
        inner.call(&(g * f64::from(first(&value)))).unwrap()
    };
    let x = noise(5, &[3, 2]);
    let compiled = compile(f, cpu()).unwrap();
    for _ in 0..3 {
        assert_close("read back", &compiled.call(&x).unwrap(), &f(&x), 1e-5);
    }
    assert_eq!(compiled.explain().breaks.len(), 1);
    // Eagerly, too: the number read is a constant of the gradient.
    let g = grad(|x: &Tensor| (x * f64::from(first(x))).sum(&[0]), &Tensor::vector(&[3.0f32, 4.0])).unwrap();
    assert_eq!(g.to_vec::<f32>().unwrap(), [3.0, 3.0]);
    // Two programs cannot be made of it ahead of time.
    assert!(matches!(compile(f, cpu()).unwrap().vjp(&x), Err(Error::ReadBack { .. })));
}

#[test]
fn found_g16_numbers_are_arguments_of_one_program() {
    for options in [cpu(), cpu().mode("reduce-overhead"), cpu().dynamic(Dynamic::Always), cpu().fusion(false)] {
        let f = |(w, rate, power): &(Tensor, f64, i64)| {
            let g = grad(|w: &Tensor| (w * w).sum(&[0]) * *rate, w).unwrap();
            (w - g * *rate / (1.0 - *rate), w.cast(DType::I32) * *power)
        };
        let compiled = compile(f, options).unwrap();
        let mut graphs = 0;
        for step in 0..200i64 {
            let x = (noise(1, &[7]) * 9.0, 0.5 / (step + 1) as f64, step % 5);
            let (got, expected) = (compiled.call(&x).unwrap(), f(&x));
            assert_close("floats", &got.0, &expected.0, 1e-6);
            assert_close("integers", &got.1, &expected.1, 0.0);
            graphs = compiled.explain().graphs;
        }
        // The first, and one with what varies as inputs (of powers of 0 and 1 another is seen a step later).
        assert!(graphs <= 3, "{}", compiled.explain());
        assert!(compiled.explain().renumbered >= 190, "{}", compiled.explain());
    }
}

#[test]
fn found_g16_a_number_that_decides_the_way_makes_another_graph() {
    let f = |(x, n): &(Tensor, f64)| if *n > 2.0 { x * *n } else { x.exp() + *n };
    let compiled = compile(f, cpu()).unwrap();
    for n in [1.0, 3.0, 1.5, 4.0, 2.5, -1.0, 0.0, f64::NAN, f64::INFINITY, 1.0, 3.0] {
        let x = (noise(1, &[5]), n);
        assert_close(&format!("{n}"), &compiled.call(&x).unwrap(), &f(&x), 1e-6);
    }
    assert_eq!(compiled.explain().graphs, 4, "{}", compiled.explain());
    let never = compile(f, cpu().dynamic(Dynamic::Never)).unwrap();
    for n in [1.0, 1.5, 1.0, 1.75] {
        let x = (noise(1, &[5]), n);
        assert_close(&format!("{n}"), &never.call(&x).unwrap(), &f(&x), 1e-6);
    }
    assert_eq!(never.explain().graphs, 3);
}

#[test]
fn found_g16_many_extents_in_turn_are_looked_up() {
    let f = |x: &Tensor| x.softmax(0) * 2.0;
    let compiled = compile(f, cpu()).unwrap();
    let all: Vec<Tensor> = (0..1000).map(|n| Tensor::zeros(DType::F32, &[n + 2])).collect();
    for x in &all {
        compiled.plan(x).unwrap();
    }
    let captures = compiled.explain().captures;
    let begin = Instant::now();
    for x in &all {
        compiled.plan(x).unwrap();
        compiled.plan(x).unwrap();
    }
    // The second calls look whether the function still captures the same; others do not.
    assert_eq!(compiled.explain().captures, captures + 2000, "{:?}", begin.elapsed());
    for x in &all {
        compiled.plan(x).unwrap();
    }
    assert_eq!((compiled.explain().captures, compiled.explain().graphs), (captures + 3000 - 1000, 1000));
}

#[test]
fn found_g16_the_graph_used_longest_ago_is_dropped() {
    let f = compile(|x: &Tensor| x + 1.0, cpu().backend("interpreter").set("graphs", "3")).unwrap();
    let call = |n: usize| f.call(&Tensor::zeros(DType::F32, &[n])).unwrap();
    for n in [1, 2, 3, 1, 4, 1, 3] {
        call(n);
    }
    // 2 was used longest ago when 4 came.
    assert_eq!(f.explain().graphs, 4);
    assert!(
        f.explain().recompiles.iter().any(|r| r.contains("more than 3 graphs: that for f32[2]")),
        "{}",
        f.explain()
    );
    call(2);
    assert_eq!(f.explain().graphs, 5);
    let e = compile(|x: &Tensor| x + 1.0, Options::new().graphs(0)).map(|_| ()).unwrap_err().to_string();
    assert!(e.contains("option `graphs` is at least 1"), "{e}");
    let e = compile(|x: &Tensor| x + 1.0, Options::new().set("graphs", "many")).map(|_| ()).unwrap_err().to_string();
    assert!(e.contains("is a number such as"), "{e}");
    assert_eq!(Options::new().chosen_mode(), Mode::Default);
}

#[test]
fn found_g18() {
    for options in [cpu(), cpu().fusion(false), cpu().backend("interpreter"), cpu().mode("reduce-overhead")] {
        let weight = Mutex::new(noise(1, &[4]));
        let f = compile(|x: &Tensor| x * &*weight.lock().unwrap(), options).unwrap();
        let x = Tensor::full(DType::F32, &[4], 2.0);
        // Replaced at every call, then not for a while, then again: the old ones are gone, which is noticed at once.
        for seed in [1, 2, 3, 4, 4, 4, 4, 4, 4, 4, 5, 5, 5, 6] {
            *weight.lock().unwrap() = noise(seed, &[4]);
            assert_close("a weight behind a lock", &f.call(&x).unwrap(), &(noise(seed, &[4]) * 2.0), 0.0);
        }
        assert_eq!(f.explain().graphs, 1, "{}", f.explain());
        assert_eq!(f.explain().changes.len(), 1);
    }
    // Results of one step are the weights of the next.
    let weight = Mutex::new(noise(1, &[4]));
    let step = compile(|x: &Tensor| &*weight.lock().unwrap() - x * 0.5, cpu()).unwrap();
    let mut expected = noise(1, &[4]);
    for i in 0..20 {
        let x = noise(i, &[4]);
        let next = step.call(&x).unwrap();
        expected = expected - x * 0.5;
        assert_close("a step", &next, &expected, 1e-6);
        *weight.lock().unwrap() = next;
    }
    assert_eq!(step.explain().graphs, 1);
}

#[test]
fn found_g18_what_is_still_held_elsewhere() {
    // A number, and a tensor of which somebody keeps the old one.
    let (number, kept) = (AtomicUsize::new(1), [noise(1, &[4]), noise(2, &[4])]);
    let f = |x: &Tensor| (x + number.load(Relaxed)) * &kept[number.load(Relaxed) % 2];
    let x = noise(3, &[4]);
    let always = compile(f, cpu().check_captures(CheckCaptures::Always)).unwrap();
    let auto = compile(f, cpu()).unwrap();
    let never = compile(f, cpu().set("check_captures", "never")).unwrap();
    let old = never.call(&x).unwrap();
    let mut wrong = 0;
    for i in 0..40 {
        // From the second call on it changes at each: found out at once.
        number.store(i, Relaxed);
        assert_close("always", &always.call(&x).unwrap(), &f(&x), 1e-6);
        assert_close("auto", &auto.call(&x).unwrap(), &f(&x), 1e-6);
        wrong += usize::from(never.call(&x).unwrap().to_f64s().unwrap() != f(&x).to_f64s().unwrap());
    }
    assert!(wrong > 30);
    assert_close("never", &never.call(&x).unwrap(), &old, 0.0);
    // It changes after some calls that saw no change: an error, not old values for ever; then right.
    number.store(1, Relaxed);
    let late = compile(f, cpu()).unwrap();
    for _ in 0..5 {
        late.call(&x).unwrap();
    }
    number.store(4, Relaxed);
    let e = (0..4).find_map(|_| late.call(&x).err()).unwrap();
    assert!(matches!(e, Error::CapturesChanged { .. }) && e.to_string().contains("host_values.rs"), "{e}");
    for i in 5..9 {
        number.store(i, Relaxed);
        assert_close("late", &late.call(&x).unwrap(), &f(&x), 1e-6);
    }
    // Made anew by the function at every call, but always the same.
    let made = compile(|x: &Tensor| x * Tensor::vector(&[1.0f32, 2.0, 3.0, 4.0]), cpu()).unwrap();
    for _ in 0..9 {
        made.call(&x).unwrap();
    }
    assert!(made.explain().changes.is_empty() && made.explain().graphs == 1, "{}", made.explain());
}
