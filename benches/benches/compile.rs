//! How long each stage of compilation takes, for the four kernels and the three languages.
//!
//! `cargo bench -p tilewright-benches --bench compile [-- --quick] [FILTER]`; a name is `stage/kernel` or
//! `stage/kernel/language`.

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use half::f16;
use std::error::Error;
use std::hint::black_box;
use tilewright_compiler::DType;
use tilewright_compiler::analysis::axis::axis_info;
use tilewright_compiler::dsl::{KernelDef, Specialization};
use tilewright_compiler::lower::lower;
use tilewright_compiler::passes::optimize;
use tilewright_compiler::pipeline::{self, Options};
use tilewright_compiler::schedule::Schedule;
use tilewright_compiler::target::{Caps, opencl, ptx, spirv};
use tilewright_compiler::tile::ParamHint;
use tilewright_kernels::{layer_norm_row, matmul_tiled, softmax_row, vector_add_block};
use tilewright_runtime::Device;

/// A kernel as a launch on large aligned arrays specialises it.
struct Kernel {
    name: &'static str,
    def: KernelDef,
    spec: Specialization,
    options: Options,
}

fn kernels() -> Result<Vec<Kernel>, Box<dyn Error>> {
    let dev = Device::open("cpu")?;
    let x = dev.zeros::<f32>(16)?;
    let h = dev.zeros::<f16>(16)?;
    let (v, m, hm) = (x.view([16])?, x.view([4, 4])?, h.view([4, 4])?);
    // Views by their ranks; then, for layer norm, a number.
    let kernel =
        |name, launch: tilewright_runtime::Launch<'_>, ranks: &[usize], scalars, num_warps, num_stages| Kernel {
            name,
            def: launch.def().clone(),
            spec: aligned(ranks, scalars),
            options: Options { num_warps, num_stages },
        };
    Ok(vec![
        kernel("vector_add", vector_add_block(v, v, v, 1024), &[1, 1, 1], 0, 8, 1),
        kernel("softmax", softmax_row(m, m, 4096), &[2, 2], 0, 8, 1),
        kernel("layer_norm", layer_norm_row(m, v, v, m, 1e-5, 4096), &[2, 1, 1, 2], 1, 8, 1),
        kernel("matmul", matmul_tiled(hm, hm, hm, 128, 128, 32, 8), &[2, 2, 2], 0, 4, 4),
    ])
}

/// Aligned addresses, extents that are multiples of 16, row-major, no two arrays overlapping.
fn aligned(ranks: &[usize], scalars: usize) -> Specialization {
    let by_16 = ParamHint { divisor: 16, ..ParamHint::default() };
    let mut hints = Vec::new();
    for (i, &rank) in ranks.iter().enumerate() {
        hints.push(ParamHint { alias_class: i as u32 + 1, ..by_16 });
        hints.extend(vec![by_16; 2 * rank - 1]);
        hints.push(ParamHint { known: Some(1), ..ParamHint::default() });
    }
    hints.extend(vec![ParamHint::default(); scalars]);
    Specialization { index: DType::I32, hints, fp_fusion: false }
}

fn targets() -> [(&'static str, Caps); 3] {
    [
        ("ptx", Caps::ptx(90)),
        ("spirv", Caps::spirv("vulkan", 32, 1024, 48 << 10)),
        ("opencl", Caps::opencl("opencl", 1024, 64 << 10, true)),
    ]
}

fn stages(c: &mut Criterion) {
    let kernels = kernels().expect("the CPU device opens everywhere, and the views fit their buffers");
    for Kernel { name, def, spec, options } in &kernels {
        let built = def.build(spec).expect("the library's kernels build");
        c.bench_function(&format!("build/{name}"), |b| b.iter(|| black_box(def.build(spec))));
        c.bench_function(&format!("passes/{name}"), |b| {
            b.iter_batched(|| built.clone(), |mut f| optimize(&mut f).map(|()| f), BatchSize::SmallInput);
        });
        let mut tile = built.clone();
        optimize(&mut tile).expect("the library's kernels are valid");
        for (language, caps) in &targets() {
            let id = |stage: &str| format!("{stage}/{name}/{language}");
            let plan = || Schedule::plan(&tile, &axis_info(&tile), caps, options);
            // A target may be too small for a configuration meant for another.
            let Ok(schedule) = plan() else { continue };
            let Ok(thread) = lower(&tile, schedule.clone(), caps) else { continue };
            c.bench_function(&id("schedule"), |b| b.iter(|| black_box(plan())));
            c.bench_function(&id("lower"), |b| {
                b.iter_batched(|| schedule.clone(), |s| lower(&tile, s, caps), BatchSize::SmallInput);
            });
            match *language {
                "ptx" => c.bench_function(&id("emit"), |b| b.iter(|| black_box(ptx::emit(&thread, caps)))),
                "spirv" => c.bench_function(&id("emit"), |b| b.iter(|| black_box(spirv::emit(&thread, caps)))),
                _ => c.bench_function(&id("emit"), |b| b.iter(|| black_box(opencl::emit(&thread, caps)))),
            };
            c.bench_function(&id("all"), |b| {
                b.iter(|| def.build(spec).and_then(|f| pipeline::compile(&f, caps, options)));
            });
        }
    }
}

criterion_group!(benches, stages);
criterion_main!(benches);
