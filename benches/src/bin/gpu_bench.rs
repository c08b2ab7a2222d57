//! Measures the kernel library on one device: bandwidths, products, launch cost, compile times. See `benches/README.md`.

use clap::Parser;
use half::{bf16, f16};
use std::error::Error;
use std::path::PathBuf;
use tilewright_benches::attention::{self, Attending};
use tilewright_benches::cases::{Case, Op, cases};
use tilewright_benches::compile_time::{self, Assembler};
use tilewright_benches::data::Number;
use tilewright_benches::machine::Machine;
use tilewright_benches::product::{Product, config_name, sweep};
use tilewright_benches::report::{self, Measurement, Report};
use tilewright_benches::timing::Effort;
use tilewright_benches::{launch_cost, rows, streams};
use tilewright_runtime::dsl::DotElement;
use tilewright_runtime::{DType, Device};

#[derive(Parser)]
#[command(about = "Measures the kernel library on one device, and checks every result")]
struct Args {
    /// The device: `cuda:0`, `vulkan:0`, `opencl:0`, `cpu`. Those that are no GPU get small sizes.
    #[arg(long, default_value = "cuda:0")]
    device: String,
    /// Fewer and shorter measurements.
    #[arg(long)]
    quick: bool,
    /// Writes the results to this file too, as they come.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Only what has this in its name, such as `softmax`, `matmul f16`, `launch`, `compile`, `sweep`.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Also one product and one attention in many configurations.
    #[arg(long)]
    sweep: bool,
    /// Prints the list of cases as JSON, for the peers' script, and ends.
    #[arg(long)]
    print_cases: bool,
    /// Compiles one kernel and prints the times: what the compile measurement runs in processes of their own.
    #[arg(long, value_name = "KERNEL", hide = true)]
    compile_child: Option<String>,
}

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn main() {
    if let Err(error) = run(&Args::parse()) {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

fn run(args: &Args) -> Outcome {
    if let Some(kernel) = &args.compile_child {
        println!("{}", compile_time::child(&args.device, kernel)?);
        return Ok(());
    }
    if args.print_cases {
        let gpu = Device::list().iter().any(|d| d.name == args.device && d.gpu);
        let all: Vec<_> = cases(gpu).iter().map(Case::json).collect();
        println!("{:#}", serde_json::Value::from(all));
        return Ok(());
    }
    let dev = Device::open(&args.device)?;
    let machine = Machine::here(dev.info());
    println!("{}\n{}", machine.line(), report::head());
    let mut bench = Bench {
        report: Report::new(machine, args.json.as_deref()),
        effort: if args.quick { Effort::QUICK } else { Effort::FULL },
        args,
        dev,
        copy_rate: None,
    };
    bench.all()?;
    let failures = bench.report.failures();
    if failures.is_empty() {
        return Ok(());
    }
    Err(format!("{} of the measurements failed:\n{}", failures.len(), failures.join("\n")).into())
}

struct Bench<'a> {
    args: &'a Args,
    dev: Device,
    effort: Effort,
    report: Report<'a>,
    /// GB/s of the copy.
    copy_rate: Option<f64>,
}

impl Bench<'_> {
    fn all(&mut self) -> Outcome {
        self.copy("copy")?;
        for case in cases(self.dev.info().gpu) {
            let name = case.name();
            if !self.wanted(&name) {
                continue;
            }
            match self.case(&case) {
                Ok(m) => self.report.add(&m)?,
                Err(e) => self.report.add_failure(&name, case.op.name(), &e.to_string(), true)?,
            }
        }
        if self.wanted("launch") {
            match launch_cost::measure(&self.dev, if self.args.quick { 7 } else { 21 }) {
                Ok(all) => self.add_all(&all)?,
                Err(e) => self.report.add_failure("launch", "launch", &e.to_string(), true)?,
            }
        }
        if self.args.sweep || self.args.only.as_deref().is_some_and(|o| o.contains("sweep")) {
            self.sweep()?;
            self.sweep_attention()?;
        }
        for kernel in compile_time::KERNELS {
            if self.wanted(&format!("compile {kernel}")) {
                self.compile(kernel)?;
            }
        }
        // Again, to see whether the machine has drifted meanwhile.
        self.copy("copy, at the end")
    }

    fn wanted(&self, name: &str) -> bool {
        self.args.only.as_ref().is_none_or(|only| name.contains(only.as_str()))
    }

    fn add_all(&mut self, all: &[Measurement]) -> Outcome {
        for m in all {
            self.report.add(m)?;
        }
        Ok(())
    }

    /// The ceiling of streams. Always measured: the others are compared with it.
    fn copy(&mut self, name: &str) -> Outcome {
        match streams::copy(&self.dev, self.effort, name) {
            Ok(m) => {
                self.copy_rate = self.copy_rate.or(m.rate.map(|r| r.0));
                self.report.add(&m)?;
            }
            Err(e) => self.report.add_failure(name, "copy", &e.to_string(), true)?,
        }
        Ok(())
    }

    fn case(&self, case: &Case) -> Outcome<Measurement> {
        let m = match case.dtype {
            DType::F32 => self.typed_case::<f32>(case)?,
            DType::F16 => self.typed_case::<f16>(case)?,
            DType::BF16 => self.typed_case::<bf16>(case)?,
            other => return Err(format!("no case is measured in {other}").into()),
        };
        Ok(match (case.op, self.copy_rate) {
            (Op::VectorAdd | Op::Softmax | Op::LayerNorm, Some(rate)) => m.against("copy", rate),
            _ => m,
        })
    }

    fn typed_case<T: Number + DotElement>(&self, case: &Case) -> tilewright_runtime::Result<Measurement> {
        match case.op {
            Op::VectorAdd => streams::add::<T>(&self.dev, self.effort, case),
            Op::Softmax | Op::LayerNorm => rows::measure::<T>(&self.dev, self.effort, case),
            Op::Matmul => {
                Product::<T>::new(&self.dev, case)?.measure(&self.dev, self.effort, None, case.name(), "matmul")
            }
            Op::Attention => {
                Attending::<T>::new(&self.dev, case)?.measure(&self.dev, self.effort, None, case.name(), "attention")
            }
        }
    }

    /// One product in many configurations. One that does not fit the device is listed with the reason.
    fn sweep(&mut self) -> Outcome {
        let gpu = self.dev.info().gpu;
        let n = if gpu { 4096 } else { 128 };
        let case = Case { op: Op::Matmul, dtype: DType::F16, dims: vec![n; 3] };
        let product = Product::<f16>::new(&self.dev, &case)?;
        for config in sweep(gpu, self.args.quick) {
            let name = format!("sweep {n}^3 {}", config_name(&config));
            match product.measure(&self.dev, Effort::QUICK, Some(config), name.clone(), "sweep") {
                Ok(m) => self.report.add(&m)?,
                Err(e @ tilewright_runtime::Error::Compile(_)) => {
                    self.report.add_failure(&name, "sweep", &e.to_string(), false)?;
                }
                Err(e) => self.report.add_failure(&name, "sweep", &e.to_string(), true)?,
            }
        }
        Ok(())
    }

    /// Attention of two widths, causal and not, in many configurations.
    fn sweep_attention(&mut self) -> Outcome {
        let gpu = self.dev.info().gpu;
        for (width, causal) in [(64, 0), (128, 0), (64, 1), (128, 1)] {
            let [heads, rows] = if gpu { [16, 4096] } else { [1, 128] };
            let case = Case { op: Op::Attention, dtype: DType::F16, dims: vec![4, heads, rows, width, causal] };
            let attending = Attending::<f16>::new(&self.dev, &case)?;
            for config in attention::sweep(gpu, width) {
                let name = format!("sweep {} {}", case.name(), attention::config_name(&config));
                match attending.measure(&self.dev, Effort::QUICK, Some(config), name.clone(), "sweep") {
                    Ok(m) => self.report.add(&m)?,
                    Err(e @ tilewright_runtime::Error::Compile(_)) => {
                        self.report.add_failure(&name, "sweep", &e.to_string(), false)?;
                    }
                    Err(e) => self.report.add_failure(&name, "sweep", &e.to_string(), true)?,
                }
            }
        }
        Ok(())
    }

    fn compile(&mut self, kernel: &str) -> Outcome {
        let device = self.dev.name().to_owned();
        let processes = if self.args.quick { 1 } else { 3 };
        let mut turns = vec![(Assembler::Default, processes)];
        // Elsewhere the driver is always the assembler.
        if device.starts_with("cuda") {
            turns.push((Assembler::Driver, 1));
        }
        for (assembler, processes) in turns {
            match compile_time::measure(&device, kernel, assembler, processes) {
                Ok(all) => self.add_all(&all)?,
                Err(e) => {
                    self.report.add_failure(&format!("compile {kernel}"), "compile", &e.to_string(), true)?;
                }
            }
        }
        Ok(())
    }
}
