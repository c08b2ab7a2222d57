//! Why a kernel is slow: six products of matrices, of which one takes the fast path and five fall off it, each explained.
//!
//! ```sh
//! cargo run --release --example explain                       # as an H200 would run them; no GPU is needed
//! cargo run --release --example explain -- --device cuda:0    # on this device, with what its driver says
//! ```

use clap::Parser;
use half::f16;
use std::error::Error;
use tilewright::compiler::target::Caps;
use tilewright::dsl::*;
use tilewright::{Device, Launch};

/// `out = a b`, a tile of 64 x 64 a program.
#[kernel]
fn product(a: In<f16, 2>, b: In<f16, 2>, out: Out<f32, 2>) {
    let (row, column) = (program_id(0) * 64, program_id(1) * 64);
    let mut sum = zeros::<f32>([64, 64]);
    for k in (0..a.dim(1)).step_by(64) {
        let left = a.load([row, k], [64, 64]);
        let right = b.load([k, column], [64, 64]);
        sum = dot(left, right, sum);
    }
    out.store([row, column], sum);
}

/// [`product`] that also sums the rows of `a`, from the tiles that it multiplies.
#[kernel]
fn product_and_sums(a: In<f16, 2>, b: In<f16, 2>, out: Out<f32, 2>, sums: Out<f32, 1>) {
    let (row, column) = (program_id(0) * 64, program_id(1) * 64);
    let mut product = zeros::<f32>([64, 64]);
    let mut total = zeros::<f32>([64, 1]);
    for k in (0..a.dim(1)).step_by(64) {
        let left = a.load([row, k], [64, 64]);
        let right = b.load([k, column], [64, 64]);
        product = dot(left, right, product);
        total = total + sum(left.to::<f32>(), 1);
    }
    out.store([row, column], product);
    sums.store([row], reshape(total, [64]));
}

/// [`product`] that stops at the end of a row by itself.
#[kernel]
fn product_while(a: In<f16, 2>, b: In<f16, 2>, out: Out<f32, 2>) {
    let (row, column) = (program_id(0) * 64, program_id(1) * 64);
    let mut sum = zeros::<f32>([64, 64]);
    let mut k = scalar(0);
    while k < a.dim(1) {
        sum = dot(a.load([row, k], [64, 64]), b.load([k, column], [64, 64]), sum);
        k += 64;
    }
    out.store([row, column], sum);
}

/// A product of bytes.
#[kernel]
fn product_of_bytes(a: In<i8, 2>, b: In<i8, 2>, out: Out<i32, 2>) {
    let (row, column) = (program_id(0) * 64, program_id(1) * 64);
    let mut sum = zeros::<i32>([64, 64]);
    for k in (0..a.dim(1)).step_by(64) {
        sum = dot(a.load([row, k], [64, 64]), b.load([k, column], [64, 64]), sum);
    }
    out.store([row, column], sum);
}

#[derive(Parser)]
#[command(about = "Explains why kernels are as fast as they are")]
struct Args {
    /// The device; without it the kernels are explained as for an H200 that need not be here.
    #[arg(long)]
    device: Option<String>,
}

/// The explanations of all, one after another: on a device, or on one that is known by what it can do.
pub fn report(device: Option<&Device>, caps: &Caps) -> Result<String, Box<dyn Error>> {
    let cpu = Device::open("cpu")?;
    let memory = device.unwrap_or(&cpu);
    let (n, odd) = (512, 511);
    let a = memory.zeros::<f16>(n * n)?;
    let bytes = memory.zeros::<i8>(n * n)?;
    let out = memory.zeros::<f32>(n * n)?;
    let whole = memory.zeros::<i32>(n * n)?;
    let sums = memory.zeros::<f32>(n)?;
    let [x, y] = [a.view([n, n])?, a.view([n, n])?];
    let narrow = a.view_strided(0, [n, odd], [odd as isize, 1])?;
    let result = out.view([n, n])?;
    let grid = [n / 64, n / 64];
    let launches: [(&str, Launch<'_>); 6] = [
        ("the fast path", product(x, y, result).grid(grid).num_warps(4)),
        ("two warps", product(x, y, result).grid(grid).num_warps(2)),
        ("a load with another use", product_and_sums(x, y, result, sums.view([n])?).grid(grid).num_warps(4)),
        ("rows of an odd length", product(narrow, y, result).grid(grid).num_warps(4)),
        ("a `while` loop", product_while(x, y, result).grid(grid).num_warps(4)),
        ("bytes", {
            let [x, y] = [bytes.view([n, n])?, bytes.view([n, n])?];
            product_of_bytes(x, y, whole.view([n, n])?).grid(grid).num_warps(4)
        }),
    ];
    let mut text = String::new();
    for (title, launch) in launches {
        let explanation = match device {
            Some(_) => launch.explain()?.ok_or("the CPU device schedules nothing: choose another")?,
            None => launch.explain_for(caps)?,
        };
        text += &format!("== {title}\n{explanation}\n");
    }
    Ok(text)
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let device = args.device.map(|name| Device::open(&name)).transpose()?;
    print!("{}", report(device.as_ref(), &Caps::ptx(90))?);
    Ok(())
}
