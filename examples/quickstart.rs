//! A first look at Tilewright: three kernels on the best device present, checked against the host; then the autotuner, and the
//! graph compiler.
//!
//! ```sh
//! cargo run --release --example quickstart                       # the best device
//! cargo run --release --example quickstart -- --device cpu       # or by name: cuda:0, vulkan:0, opencl:0
//! cargo run --release --example quickstart -- --list             # what there is
//! cargo run --release --example quickstart -- --show             # also print the Tile IR and the generated code
//! ```

use clap::Parser;
use std::error::Error;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tilewright::autotune::{self, Dims, How, Isolation, Problem, Settings, Store};
use tilewright::dsl::*;
use tilewright::graph::{Options, Tensor, compile};
use tilewright::kernels::{self, reference};
use tilewright::{Buffer, DType, Device, DeviceKind, Launch};

/// `out = x + y`: each program adds `block` elements.
#[kernel]
fn vector_add(x: In<f32, 1>, y: In<f32, 1>, out: Out<f32, 1>, #[comptime] block: usize) {
    let start = program_id(0) * block;
    // Views check bounds: what lies beyond the end reads 0 and is not stored.
    let sum = x.load([start], [block]) + y.load([start], [block]);
    out.store([start], sum);
}

#[derive(Parser)]
#[command(about = "Runs vector add, softmax and matmul and checks them, tunes the softmax, and compiles a small graph")]
struct Args {
    /// The device: `cpu`, `cuda:0`, `vulkan:0`, `opencl:0`; by default the best there is.
    #[arg(long)]
    device: Option<String>,
    /// Lists the devices and ends.
    #[arg(long)]
    list: bool,
    /// Prints the Tile IR and the generated code of the vector addition.
    #[arg(long)]
    show: bool,
    /// Takes arrays of a few elements, for tools that check every access.
    #[arg(long)]
    small: bool,
    /// Leaves the tuning out, for tools that do not follow copies into the middle of a buffer.
    #[arg(long)]
    no_tuning: bool,
}

/// How large the arrays are.
#[derive(Clone, Copy)]
enum Size {
    Small,
    Medium,
    Large,
}

impl Size {
    fn pick<T>(self, small: T, medium: T, large: T) -> T {
        match self {
            Size::Small => small,
            Size::Medium => medium,
            Size::Large => large,
        }
    }

    /// Extents of the softmax.
    fn rows(self) -> [usize; 2] {
        self.pick([3, 100], [512, 1000], [16384, 4096])
    }
}

/// One line of the table.
struct Row {
    kernel: String,
    compile_ms: f64,
    driver_ms: f64,
    run_ms: f64,
    throughput: String,
    error: f64,
    tolerance: f64,
}

fn main() {
    if let Err(error) = run(&Args::parse()) {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    if args.list {
        for device in Device::list() {
            println!("{device}");
        }
        return Ok(());
    }
    let dev = match &args.device {
        Some(name) => Device::open(name)?,
        None => Device::best()?,
    };
    println!("device: {}", dev.info());
    // GPUs get arrays that keep them busy.
    let size = match (args.small, dev.info().gpu) {
        (true, _) => Size::Small,
        (false, true) => Size::Large,
        (false, false) => Size::Medium,
    };

    let rows = [add_rows(&dev, size, args.show)?, softmax_rows(&dev, size)?, matmul_rows(&dev, size)?];
    println!(
        "{:<22} {:>12} {:>12} {:>10}  {:<14} {:>13}  tolerance",
        "kernel", "compile, ms", "driver, ms", "run, ms", "throughput", "largest error"
    );
    let mut wrong = false;
    for r in &rows {
        // A NaN is no small error.
        let right = r.error <= r.tolerance;
        wrong |= !right;
        println!(
            "{:<22} {:>12.2} {:>12.2} {:>10.3}  {:<14} {:>13.1e}  {:.0e}{}",
            r.kernel,
            r.compile_ms,
            r.driver_ms,
            r.run_ms,
            r.throughput,
            r.error,
            r.tolerance,
            if right { "" } else { "  WRONG" }
        );
    }
    if wrong {
        return Err("a result is outside its tolerance".into());
    }
    if !args.no_tuning {
        let store = tune_softmax(&dev, size)?;
        show_record(&dev, &store, size)?;
    }
    compile_graph(&dev)
}

/// Tunes the library's softmax for one size. `kernels::tuned::softmax` takes the winner from the store that the environment names.
fn tune_softmax(dev: &Device, size: Size) -> Result<Store, Box<dyn Error>> {
    let softmax = kernels::tuned::all().into_iter().find(|k| k.name() == "softmax").ok_or("there is no softmax")?;
    let [rows, columns] = size.rows();
    let dims = Dims::new(softmax.dims(), &[rows as i64, columns as i64]).ok_or("softmax has rows and columns")?;
    let problem = Problem { device: dev.clone(), dtype: DType::F32, dims, seed: 1 };
    // Not among the user's own results, unless the environment names a store.
    let store = match std::env::var_os("TILEWRIGHT_AUTOTUNE_DIR") {
        Some(_) => Store::from_env(),
        None => Store::temporary("tilewright-quickstart"),
    };
    let budget = Duration::from_millis(size.pick(200, 2000, 4000));
    let settings = Settings { budget, ..Settings::default() };
    let how = How { settings, isolation: Isolation::Never, ..How::default() };
    let report = autotune::tune(softmax, &problem, &store, &how, &AtomicBool::new(false), &mut |_| {})?;
    let (new, known) = (report.new.len(), report.summary.known);
    println!(
        "\ntuned softmax: {new} configurations tried, {known} known from before, stored in {}",
        store.dir().display()
    );
    Ok(store)
}

/// As the command does: `autotune --store DIR show softmax --shape rows=512,cols=1000 --device cpu`.
fn show_record(dev: &Device, store: &Store, size: Size) -> Result<(), Box<dyn Error>> {
    let [rows, columns] = size.rows();
    let (dir, shape) = (store.dir().to_string_lossy(), format!("rows={rows},cols={columns}"));
    let driver = format!("{:?}", dev.info().kind);
    let command = ["autotune", "--store", &dir, "show", "softmax", "--shape", &shape, "--device", &driver];
    match autotune::cli::run(command, &mut std::io::stdout(), &mut std::io::stderr()) {
        autotune::cli::Exit::Done => Ok(()),
        other => Err(format!("the record cannot be shown: {other:?}").into()),
    }
}

/// Two lines of tensors become one kernel.
fn compile_graph(dev: &Device) -> Result<(), Box<dyn Error>> {
    let weighted = |(x, w): &(Tensor, Tensor)| {
        let y = x * w;
        y.softmax(1)
    };
    let compiled = compile(weighted, Options::new().device(dev.name()))?;
    let x = Tensor::new(&noise(6, 3 * 100), &[3, 100]);
    let y = compiled.call(&(x.clone(), x))?;
    println!("\ncompiled a graph of {:?} to {} kernel:", y.dims(), compiled.explain().kernels);
    for group in &compiled.explain().groups {
        println!("{}", group.source);
    }
    Ok(())
}

fn add_rows(dev: &Device, size: Size, show: bool) -> Result<Row, Box<dyn Error>> {
    let n = size.pick(3000, 1 << 20, 1 << 26);
    let (a, b) = (noise(1, n), noise(2, n));
    let (x, y, out) = (dev.buffer_from(&a)?, dev.buffer_from(&b)?, dev.zeros::<f32>(n)?);
    // The grid: as many programs as it takes to cover all elements. A GPU likes 4 elements a thread.
    let block = if dev.info().kind == DeviceKind::Cpu { 8192 } else { 1024 };
    let launch = vector_add(x.view([n])?, y.view([n])?, out.view([n])?, block).grid([n.div_ceil(block)]).num_warps(8);
    if show {
        println!("\n---- Tile IR ----\n{}\n---- code for {} ----\n{}\n", launch.ir()?, dev.name(), launch.code()?);
    }
    let (mut row, ms) = measure(dev, &launch, "vector_add f32")?;
    row.throughput = format!("{:.1} GB/s", 12.0 * n as f64 / ms / 1e6);
    let expected: Vec<f64> = a.iter().zip(&b).map(|(a, b)| f64::from(a + b)).collect();
    row.error = reference::largest_error(&read(&out)?, &expected);
    row.tolerance = 0.0;
    Ok(row)
}

fn softmax_rows(dev: &Device, size: Size) -> Result<Row, Box<dyn Error>> {
    let [rows, columns] = size.rows();
    let a = noise(3, rows * columns);
    let (x, y) = (dev.buffer_from(&a)?, dev.zeros::<f32>(rows * columns)?);
    let launch = kernels::softmax(x.view([rows, columns])?, y.view([rows, columns])?)?;
    let (mut row, ms) = measure(dev, &launch, &format!("softmax {rows}x{columns}"))?;
    row.throughput = format!("{:.1} GB/s", 8.0 * (rows * columns) as f64 / ms / 1e6);
    row.error = reference::largest_error(&read(&y)?, &reference::softmax(&wide(&a), columns));
    row.tolerance = 1e-5;
    Ok(row)
}

fn matmul_rows(dev: &Device, size: Size) -> Result<Row, Box<dyn Error>> {
    let n = size.pick(40, 256, 4096);
    let half = |v: Vec<f32>| v.into_iter().map(f16::from_f32).collect::<Vec<_>>();
    let (a, b) = (half(noise(4, n * n)), half(noise(5, n * n)));
    let (x, y, z) = (dev.buffer_from(&a)?, dev.buffer_from(&b)?, dev.zeros::<f16>(n * n)?);
    let launch = kernels::matmul(x.view([n, n])?, y.view([n, n])?, z.view([n, n])?)?;
    let (mut row, ms) = measure(dev, &launch, &format!("matmul f16 {n}x{n}x{n}"))?;
    row.throughput = format!("{:.3} TFLOP/s", 2.0 * (n as f64).powi(3) / ms / 1e9);
    // A few rows of the result stand for all: the product on the host takes long.
    let some = n.min(64);
    let wide = |v: &[f16]| v.iter().map(|x| x.to_f64()).collect::<Vec<_>>();
    let expected = reference::matmul(&wide(&a[..some * n]), &wide(&b), [some, n, n]);
    let got = wide(&z.to_vec()?);
    row.error = reference::largest_error(&got[..some * n], &expected);
    if got.iter().any(|v| v.is_nan()) {
        row.error = f64::NAN;
    }
    // f16 has 11 bits: the result is rounded once.
    row.tolerance = 1e-3;
    Ok(row)
}

/// Compiles, warms up, and times the launch: the median of several runs, in milliseconds by the device's clock.
fn measure(dev: &Device, launch: &Launch<'_>, name: &str) -> Result<(Row, f64), Box<dyn Error>> {
    let compiled = launch.compile()?;
    let meta = compiled.metadata();
    let stream = dev.default_stream();
    launch.launch()?;
    dev.synchronize()?;
    let mut times = Vec::new();
    for _ in 0..5 {
        let start = stream.record()?;
        launch.launch()?;
        let end = stream.record()?;
        times.push(start.elapsed_ms(&end)?);
    }
    times.sort_by(f64::total_cmp);
    let run_ms = times[times.len() / 2];
    let row = Row {
        kernel: name.to_owned(),
        compile_ms: (meta.build_time + meta.compile_time).as_secs_f64() * 1e3,
        driver_ms: meta.driver_time.as_secs_f64() * 1e3,
        run_ms,
        throughput: String::new(),
        error: f64::NAN,
        tolerance: 0.0,
    };
    Ok((row, run_ms))
}

fn read(buffer: &Buffer<f32>) -> Result<Vec<f64>, tilewright::Error> {
    Ok(wide(&buffer.to_vec()?))
}

fn wide(x: &[f32]) -> Vec<f64> {
    x.iter().map(|&v| f64::from(v)).collect()
}

/// Pseudo-random numbers in -1 .. 1.
fn noise(seed: u64, n: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    (0..n).map(|_| next()).collect()
}
