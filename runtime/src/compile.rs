//! From a kernel and the facts of its arguments to a kernel on a device.

use crate::args::{self, KernelArg};
use crate::backend::{Assembled, Image, Target};
use crate::cache::entry::Entry;
use crate::cache::key::CacheKey;
use crate::cache::store::{Lookup, Store};
use crate::device::DeviceInner;
use crate::dump::Dump;
use crate::error::{Error, Result};
use crate::launch::CompiledKernel;
use crate::metadata::{CacheOutcome, Metadata, Resources};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use tilewright_compiler::dsl::{KernelDef, Specialization};
use tilewright_compiler::pipeline::{self, Options};
use tilewright_compiler::target::{Caps, Code, Compiled};
use tilewright_compiler::thread::AbiTy;
use tilewright_compiler::tile::{self, Function};

/// Builds, compiles (or finds on disk) and loads one variant of a kernel.
pub(crate) fn compile(
    device: &DeviceInner,
    def: &KernelDef,
    args: &[(&'static str, KernelArg<'_>)],
    spec: &Specialization,
    options: &Options,
) -> Result<Arc<CompiledKernel>> {
    let start = Instant::now();
    let func = def.build(spec)?;
    let build_time = start.elapsed();
    args::check(def.name, args, &func.params)?;
    if let Some(warning) = stores_nothing(&func) {
        eprintln!("tilewright: {warning}");
    }

    let backend = &device.backend;
    let mut dump = Dump::from_env(&func.name, &backend.info().name);
    if let Some(dump) = &mut dump {
        dump.write("tile.txt", ir_text(&func));
    }
    let metadata = Metadata {
        name: func.name.clone(),
        device: backend.info().name.clone(),
        threads: 1,
        shared_bytes: 0,
        resources: Resources::default(),
        build_time,
        compile_time: Duration::ZERO,
        driver_time: Duration::ZERO,
        cache: CacheOutcome::Off,
    };
    match backend.target() {
        Target::Interpreter => {
            let start = Instant::now();
            let loaded = backend.load(&Image::Tile(&func))?;
            device.counters.compilations.fetch_add(1, Relaxed);
            let metadata = Metadata { compile_time: start.elapsed(), ..metadata };
            Ok(Arc::new(CompiledKernel { loaded, compiled: None, metadata }))
        }
        Target::Code(caps) => compile_code(device, &func, caps, options, dump, metadata),
    }
}

/// What to tell of a kernel without a store: it has no effect, but it is no error, for which stores are built may depend on
/// comptime values.
fn stores_nothing(func: &Function) -> Option<String> {
    let (mut stores, mut first) = (false, None);
    func.walk(func.body, &mut |op| {
        let data = &func.ops[op];
        stores |= data.op.writes_memory();
        first = first.or(Some(data.loc).filter(|loc| loc.is_known()));
    });
    let place = first.map_or(String::new(), |loc| format!(" (its code begins at {loc})"));
    let help = "help: write results with `store`, of a pointer or of an `Out` or `InOut` view";
    (!stores).then(|| {
        format!("warning: kernel `{}` stores nothing{place}, so that launches have no effect\n  {help}", func.name)
    })
}

/// The text of Tile IR, which is also what addresses it in the cache.
pub(crate) fn ir_text(func: &Function) -> String {
    func.to_string()
}

fn compile_code(
    device: &DeviceInner,
    func: &Function,
    caps: &Caps,
    options: &Options,
    mut dump: Option<Dump>,
    mut metadata: Metadata,
) -> Result<Arc<CompiledKernel>> {
    let backend = device.backend.as_ref();
    let store = Store::from_env();
    let key = CacheKey::new(&ir_text(func), options, caps, backend.driver());
    // While dumping, every stage is to happen.
    if let (Some(store), None) = (&store, &dump) {
        match store.load(&key) {
            Lookup::Found(entry) => {
                let start = Instant::now();
                // A verified entry that the driver refuses (an update in place, say) is as good as none.
                if let Ok(kernel) =
                    load(device, func, entry.compiled, entry.binary.as_deref(), entry.resources, &metadata)
                {
                    device.counters.disk_hits.fetch_add(1, Relaxed);
                    return Ok(finish(kernel, start.elapsed(), CacheOutcome::Hit));
                }
                store.remove(&key);
                device.counters.disk_corrupt.fetch_add(1, Relaxed);
            }
            Lookup::Corrupt => {
                device.counters.disk_corrupt.fetch_add(1, Relaxed);
            }
            Lookup::Absent => {}
        }
    }

    let start = Instant::now();
    let stages = pipeline::compile_stages(func, caps, options)?;
    metadata.compile_time = start.elapsed();
    device.counters.compilations.fetch_add(1, Relaxed);
    let compiled = stages.compiled;
    if let Some(dump) = &mut dump {
        dump.write("optimised.txt", tile::print_with_locs(&stages.tile));
        dump.write("schedule.txt", &stages.schedule);
        let remarks = stages.schedule.explain(&stages.tile, &|_| None);
        dump.write("explanation.txt", remarks.iter().map(|r| format!("{r}\n")).collect::<String>());
        dump.write("thread.txt", &stages.thread);
        let name = match compiled.code {
            Code::Ptx(_) => "code.ptx",
            Code::SpirV(_) => "code.spvasm",
            Code::OpenClC(_) => "code.cl",
        };
        dump.write(name, compiled.code.text());
    }
    let start = Instant::now();
    let Assembled { binary, log, resources } = backend.assemble(&compiled)?;
    if let Some(dump) = &mut dump
        && !log.is_empty()
    {
        dump.write("assembler.log", &log);
    }
    let kernel = load(device, func, compiled, binary.as_deref(), resources, &metadata)?;
    let driver_time = start.elapsed();
    if let (Some(store), Some(compiled)) = (&store, &kernel.compiled) {
        let entry = Entry { compiled: compiled.clone(), binary, resources: kernel.metadata.resources };
        if store.save(&key, &entry).is_err() {
            device.counters.disk_write_failures.fetch_add(1, Relaxed);
        }
    }
    let outcome = if store.is_some() { CacheOutcome::Miss } else { CacheOutcome::Off };
    Ok(finish(kernel, driver_time, outcome))
}

fn load(
    device: &DeviceInner,
    func: &Function,
    compiled: Compiled,
    binary: Option<&[u8]>,
    resources: Resources,
    metadata: &Metadata,
) -> Result<CompiledKernel> {
    check_abi(func, &compiled)?;
    let loaded = device.live()?.load(&Image::Code { compiled: &compiled, binary })?;
    let metadata = Metadata {
        threads: compiled.threads,
        shared_bytes: compiled.shared_bytes,
        resources: loaded.resources().or(resources),
        ..metadata.clone()
    };
    Ok(CompiledKernel { loaded, compiled: Some(compiled), metadata })
}

fn finish(mut kernel: CompiledKernel, driver_time: Duration, cache: CacheOutcome) -> Arc<CompiledKernel> {
    kernel.metadata.driver_time = driver_time;
    kernel.metadata.cache = cache;
    Arc::new(kernel)
}

/// The launch packs one word for each flattened parameter; code that expects others would read beyond them.
fn check_abi(func: &Function, compiled: &Compiled) -> Result<()> {
    let flat = &func.regions[func.body].params;
    let fits = flat.len() == compiled.params.len()
        && flat.iter().zip(&compiled.params).all(|(&v, p)| func.ty(v).elem.is_ptr() == (p.ty == AbiTy::Ptr));
    if fits {
        return Ok(());
    }
    Err(Error::Compile(tilewright_compiler::Error::Internal(format!(
        "kernel `{}` has {} flattened parameters, but its code takes {}, or pointers at other places",
        func.name,
        flat.len(),
        compiled.params.len()
    ))))
}

#[cfg(test)]
mod tests {
    use super::stores_nothing;

    #[test]
    fn kernels_without_a_store_are_told() {
        let parse = |text: &str| tilewright_compiler::tile::parse(text).unwrap();
        let loads = "kernel @f(%x: *f32 = v0: *f32) {\n  v1: f32 = load v0\n  yield\n}";
        let text = stores_nothing(&parse(loads)).unwrap();
        assert!(text.starts_with("warning: kernel `f` stores nothing (its code begins at <ir>:2:3)"), "{text}");
        // A store of which nobody knows if it happens.
        let in_branch = "kernel @f(%x: *f32 = v0: *f32, %b: bool = v1: bool) {\n  if v1 {\n    v2: f32 = const 0.0\n    \
                         store v0, v2\n    yield\n  } else {\n    yield\n  }\n  yield\n}";
        assert_eq!(stores_nothing(&parse(in_branch)), None);
    }
}
