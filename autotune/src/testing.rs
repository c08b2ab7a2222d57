//! Kernels for the tests: a good one, and ones with every fault a configuration can have.

use crate::config::Config;
use crate::space::Space;
use crate::tunable::{Problem, Tunable, instance};
use std::sync::LazyLock;
use tilewright_compiler::dsl::Specialization;
use tilewright_compiler::tile::Function;
use tilewright_runtime::dsl::*;
use tilewright_runtime::{Buffer, DType, Launch, Result};

/// A matrix product, to be judged without running.
pub struct Matmul;

#[kernel]
fn product(
    a: In<f16, 2>,
    b: In<f16, 2>,
    c: Out<f16, 2>,
    #[comptime] bm: usize,
    #[comptime] bn: usize,
    #[comptime] bk: usize,
) {
    let mut acc = zeros::<f32>([bm, bn]);
    for k0 in (0..a.dim(1)).step_by(bk) {
        acc = dot(a.load([0, k0], [bm, bk]), b.load([k0, 0], [bk, bn]), acc);
    }
    c.store([0, 0], acc.to::<f16>());
}

impl Matmul {
    pub fn ir(bm: usize, bn: usize, bk: usize) -> Function {
        let mut spec = Specialization::general();
        // As for contiguous matrices of extents divisible by 16: what pipelines need.
        let view = |class: u32| {
            let hint =
                |divisor, known, alias_class| tilewright_compiler::tile::ParamHint { divisor, known, alias_class };
            [hint(16, None, class), hint(16, None, 0), hint(16, None, 0), hint(16, None, 0), hint(1, Some(1), 0)]
        };
        spec.index = DType::I32;
        spec.hints = [view(0), view(1), view(2)].concat();
        product::definition(bm, bn, bk).build(&spec).expect("the kernel is valid")
    }
}

/// `y = 2 x + y0`-like kernel with planted faults: `fault` 0 is right.
#[kernel]
fn faulty(x: In<f32, 1>, y: Out<f32, 1>, #[comptime] block: usize, #[comptime] fault: i64) {
    let start = program_id(0) * block;
    let v = x.load([start], [block]) * 2.0;
    if fault == 1 {
        // One element in a thousand is wrong.
        y.store([start], where_((start + arange(0, block)) % 1000 == 7, v + 1.0, v));
    } else if fault == 2 {
        // The last program writes nothing.
        if start + block < x.dim(0) {
            y.store([start], v);
        }
    } else if fault == 3 {
        let mut n = x.dim(0);
        while n > 0 {
            // Something to be seen from outside, so that no compiler leaves the loop out.
            y.store([start], v * n.to::<f32>());
            n = n + 1 - 1;
        }
        y.store([start], v * n.to::<f32>());
    } else {
        y.store([start], v);
    }
}

/// The values of `fault` in [`faults`].
pub const WRONG: i64 = 1;
pub const PARTIAL: i64 = 2;
pub const HANG: i64 = 3;
/// The process ends while it is compiled.
pub const EXIT: i64 = 4;
/// The launch cannot be made.
pub const REFUSED: i64 = 5;
/// The source panics.
pub const PANIC: i64 = 6;

struct Buffers {
    x: Buffer<f32>,
    y: Buffer<f32>,
    n: usize,
}

fn launch<'a>(b: &'a Buffers, config: &Config) -> Result<Launch<'a>> {
    let (block, fault) = (config.get::<usize>("block")?, config.get::<i64>("fault")?);
    match fault {
        EXIT if std::env::var_os(WORKER_VARIABLE).is_some() => std::process::exit(7),
        REFUSED => return Err(tilewright_runtime::Error::View("planted".into())),
        PANIC => panic!("planted"),
        _ => {}
    }
    let launch = faulty(b.x.view([b.n])?, b.y.view([b.n])?, block, fault);
    Ok(launch.grid([b.n.div_ceil(block)]).options(config.options()))
}

fn make(p: &Problem) -> Result<Box<dyn crate::Instance>> {
    let n = p.dims.size("n");
    let x: Vec<f32> = crate::noise(p.seed, n).map(|v| v as f32).collect();
    let buffers = Buffers { x: p.device.buffer_from(&x)?, y: p.device.zeros(n)?, n };
    Ok(instance(buffers, launch))
}

fn tunable(name: &'static str, blocks: &[i64], faults: &[i64]) -> Tunable {
    let space = Space::new().param("fault", faults.iter().copied()).param("block", blocks.iter().copied());
    Tunable::new(name, &["n"], space).inputs(make).example(&[5000])
}

/// Right in every configuration.
pub fn good() -> &'static Tunable {
    static T: LazyLock<Tunable> = LazyLock::new(|| tunable("good", &[64, 256, 1024], &[0]));
    &T
}

/// The same kernel with one configuration more.
pub fn good_and_one() -> &'static Tunable {
    static T: LazyLock<Tunable> = LazyLock::new(|| tunable("good", &[64, 256, 1024, 4096], &[0]));
    &T
}

/// `y = y + x`, in place.
#[kernel]
pub fn accumulate(x: In<f32, 1>, y: InOut<f32, 1>, #[comptime] block: usize) {
    let start = program_id(0) * block;
    y.store([start], y.load([start], [block]) + x.load([start], [block]));
}

/// In place.
pub fn in_place() -> &'static Tunable {
    static T: LazyLock<Tunable> =
        LazyLock::new(|| Tunable::new("in_place", &["n"], Space::new().param("block", [64, 256, 1024])));
    &T
}

/// A transposed tile: where threads exchange elements, it goes through shared memory.
#[kernel]
fn transposed(x: In<f32, 2>, y: Out<f32, 2>, #[comptime] block: usize) {
    let (i, j) = (program_id(0) * block, program_id(1) * block);
    y.store([j, i], permute(x.load([i, j], [block, block]), [1, 0]));
}

/// Tiles from small to larger than any device's shared memory.
pub fn transpose() -> &'static Tunable {
    static T: LazyLock<Tunable> = LazyLock::new(|| {
        Tunable::new("transpose", &["n"], Space::new().param("block", [16, 256]).param("num_warps", [8]))
            .inputs(|p| {
                let n = p.dims.size("n");
                let buffers = (p.random::<f32>(0, &[n, n])?, p.zeros::<f32>(&[n, n])?, n);
                Ok(instance(buffers, |(x, y, n), c| {
                    let block = c.get::<usize>("block")?;
                    let launch = transposed(x.view([*n, *n])?, y.view([*n, *n])?, block);
                    Ok(launch.grid([n.div_ceil(block); 2]).options(c.options()))
                }))
            })
            .example(&[256])
    });
    &T
}

/// All faults but the ones that end or hang the process.
pub fn faults() -> &'static Tunable {
    static T: LazyLock<Tunable> = LazyLock::new(|| tunable("faults", &[256], &[0, WRONG, PARTIAL, REFUSED, PANIC]));
    &T
}

/// Faults that need a worker.
pub fn fatal() -> &'static Tunable {
    static T: LazyLock<Tunable> = LazyLock::new(|| tunable("fatal", &[256], &[0, EXIT, WRONG, HANG]));
    &T
}

/// One that hangs, between two that do not.
pub fn hangs() -> &'static Tunable {
    static T: LazyLock<Tunable> = LazyLock::new(|| tunable("hangs", &[256], &[0, HANG, WRONG]));
    &T
}

/// Doubles `x`, through pointers: `far` elements behind the end are written too, or `x` itself is changed.
#[kernel]
fn careless(x: Ptr<f32>, y: Ptr<f32>, n: i32, #[comptime] far: usize, #[comptime] spoils: bool) {
    let at = program_id(0) * 256 + arange(0, 256);
    let v = (x + at).load_if(at < n);
    if spoils {
        (x + at).store_if(at < n, v + 1.0);
    }
    (y + at).store_if(at < n + far, v * 2.0);
}

/// Configurations that write where they must not, between one that does not.
pub fn carelessness() -> &'static Tunable {
    static T: LazyLock<Tunable> = LazyLock::new(|| {
        let space = Space::new().param("spoils", [false, true]).param("far", [0, 5000]).param("num_warps", [1]);
        Tunable::new("careless", &["n"], space).inputs(|p| {
            let n = p.dims.size("n");
            let buffers = (p.random::<f32>(0, &[n])?, p.zeros::<f32>(&[n])?, n);
            Ok(instance(buffers, |(x, y, n), c| {
                let far: usize = c.get("far")?;
                let launch = careless(x.slice(..)?, y.slice(..)?, *n as i32, far, c.get("spoils")?);
                Ok(launch.grid([(*n + far).div_ceil(256)]).options(c.options()))
            }))
        })
    });
    &T
}

crate::register!(carelessness, good, faults, fatal, transpose, hangs);

/// Set in worker processes of the tests.
pub const WORKER_VARIABLE: &str = "TILEWRIGHT_TEST_AUTOTUNE_WORKER";

/// The right kernel on these views.
pub fn launch_on<'a>(
    x: tilewright_runtime::View<'a, f32, 1>,
    y: tilewright_runtime::View<'a, f32, 1>,
    block: usize,
) -> Launch<'a> {
    let [n] = x.dims();
    faulty(x, y, block, 0).grid([n.div_ceil(block)]).num_warps(1).num_stages(1)
}
