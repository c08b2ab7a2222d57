//! The CPU device: the launch path, and the interpreter beside plain Rust.
//!
//! `cargo bench -p tilewright-benches --bench cpu [-- --quick] [FILTER]`. At the end the ratios to plain Rust are printed,
//! from runs that take turns.

use criterion::{Criterion, criterion_group};
use std::hint::black_box;
use std::time::{Duration, Instant};
use tilewright_benches::data::normal;
use tilewright_kernels::{matmul, vector_add, vector_add_block};
use tilewright_runtime::{Buffer, Device, Result};

const ADD: usize = 16 << 20;
const PRODUCT: usize = 1024;

fn launches(c: &mut Criterion) -> Result<()> {
    let dev = Device::open("cpu")?;
    let x = dev.zeros::<f32>(1024)?;
    let v = x.view([1024])?;
    let out = dev.zeros::<f32>(1024)?;
    let y = out.view([1024])?;
    for (name, grid) in [("empty", 0), ("one program", 1)] {
        let launch = vector_add_block(v, v, y, 1024).grid([grid]);
        let prepared = launch.prepare()?;
        c.bench_function(&format!("launch/{name}/prepared"), |b| b.iter(|| prepared.launch()));
        c.bench_function(&format!("launch/{name}/again"), |b| b.iter(|| launch.launch()));
        c.bench_function(&format!("launch/{name}/call"), |b| {
            b.iter(|| vector_add_block(v, v, y, 1024).grid([grid]).launch());
        });
    }
    Ok(())
}

/// Arrays on the host and on the device, and what is done with them.
struct Work {
    dev: Device,
    a: Vec<f32>,
    b: Vec<f32>,
    out: Vec<f32>,
    on_device: [Buffer<f32>; 3],
}

impl Work {
    fn new(n: usize) -> Result<Self> {
        let dev = Device::open("cpu")?;
        let (a, b) = (normal(1, n), normal(2, n));
        let on_device = [dev.buffer_from(&a)?, dev.buffer_from(&b)?, dev.zeros(n)?];
        Ok(Self { dev, a, b, out: vec![0.0; n], on_device })
    }

    fn add(&self) -> Result<()> {
        let [x, y, out] = &self.on_device;
        vector_add(x.view([ADD])?, y.view([ADD])?, out.view([ADD])?)?.launch()?;
        self.dev.synchronize()
    }

    fn add_plainly(&mut self) {
        for ((o, x), y) in self.out.iter_mut().zip(&self.a).zip(&self.b) {
            *o = x + y;
        }
        black_box(&mut self.out);
    }

    fn multiply(&self) -> Result<()> {
        let [x, y, out] = &self.on_device;
        let n = PRODUCT;
        matmul(x.view([n, n])?, y.view([n, n])?, out.view([n, n])?)?.launch()?;
        self.dev.synchronize()
    }

    /// Each thread computes its share of the rows with `sgemm`, which has no threads of its own.
    fn multiply_plainly(&mut self, threads: usize) {
        let n = PRODUCT;
        let rows = n.div_ceil(threads);
        let b = &self.b;
        std::thread::scope(|scope| {
            for (c, a) in self.out.chunks_mut(rows * n).zip(self.a.chunks(rows * n)) {
                scope.spawn(move || {
                    let (m, s) = (c.len() / n, n as isize);
                    // SAFETY: `a` and `c` have `m` rows of `n`, `b` has `n` of them; all are row-major and apart.
                    unsafe {
                        matrixmultiply::sgemm(
                            m,
                            n,
                            n,
                            1.0,
                            a.as_ptr(),
                            s,
                            1,
                            b.as_ptr(),
                            s,
                            1,
                            0.0,
                            c.as_mut_ptr(),
                            s,
                            1,
                        );
                    }
                });
            }
        });
    }
}

fn interpreter(c: &mut Criterion) -> Result<()> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut group = c.benchmark_group("interpreter");
    group.sample_size(10);
    let mut add = Work::new(ADD)?;
    group.bench_function("vector_add 16M f32", |b| b.iter(|| add.add()));
    group.bench_function("vector_add 16M f32, plain loop", |b| b.iter(|| add.add_plainly()));
    let mut product = Work::new(PRODUCT * PRODUCT)?;
    group.bench_function("matmul f32 1024^3", |b| b.iter(|| product.multiply()));
    group.bench_function("matmul f32 1024^3, sgemm", |b| b.iter(|| product.multiply_plainly(threads)));
    group.finish();
    Ok(())
}

/// The least times of two contenders that take turns.
fn both(mut ours: impl FnMut() -> Result<()>, mut plain: impl FnMut()) -> Result<[Duration; 2]> {
    let mut best = [Duration::MAX; 2];
    for _ in 0..7 {
        let start = Instant::now();
        ours()?;
        best[0] = best[0].min(start.elapsed());
        let start = Instant::now();
        plain();
        best[1] = best[1].min(start.elapsed());
    }
    Ok(best)
}

fn ratios() -> Result<()> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let line = |what: &str, [ours, plain]: [Duration; 2], bound: f64| {
        let ratio = ours.as_secs_f64() / plain.as_secs_f64();
        let verdict = if ratio <= bound { "PASS" } else { "MISS" };
        println!("{verdict}  {what}: {ours:.1?} beside {plain:.1?}, {ratio:.2} times as long (at most {bound})");
    };
    let work = std::cell::RefCell::new(Work::new(ADD)?);
    let times = both(|| work.borrow().add(), || work.borrow_mut().add_plainly())?;
    line("vector_add 16M f32 beside a plain loop", times, 4.0);
    let work = std::cell::RefCell::new(Work::new(PRODUCT * PRODUCT)?);
    let times = both(|| work.borrow().multiply(), || work.borrow_mut().multiply_plainly(threads))?;
    line(&format!("matmul f32 1024^3 beside sgemm on {threads} threads"), times, 5.0);
    Ok(())
}

fn all(c: &mut Criterion) {
    launches(c).expect("the CPU device launches");
    interpreter(c).expect("the CPU device launches");
}

criterion_group!(benches, all);

fn main() {
    benches();
    ratios().expect("the CPU device launches");
    Criterion::default().configure_from_args().final_summary();
}
