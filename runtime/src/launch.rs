//! Launches: arguments, grid and options of a kernel, and the table of variants already loaded.

use crate::args::{self, KernelArg, Words};
use crate::backend::{Loaded, PackedArgs, RawEvent, RawStream, Region};
use crate::buffer::Memory;
use crate::device::{Device, DeviceInner};
use crate::error::{Error, Result};
use crate::metadata::Metadata;
use crate::specialize::{self, Key};
use crate::stream::{Stream, same_device};
use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};
use tilewright_compiler::dsl::{KernelDef, KernelId};
use tilewright_compiler::pipeline::Options;
use tilewright_compiler::target::Compiled;

/// A kernel with its arguments, ready to be given a grid and launched.
#[derive(Clone)]
#[must_use = "a launch does nothing until `.launch()`"]
pub struct Launch<'a> {
    def: KernelDef,
    args: Vec<(&'static str, KernelArg<'a>)>,
    grid: Option<[u64; 3]>,
    options: Options,
    fp_fusion: bool,
    device: Option<Device>,
}

/// The number of programs along up to three axes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grid([u64; 3]);

impl From<usize> for Grid {
    fn from(x: usize) -> Self {
        Grid([x as u64, 1, 1])
    }
}

impl From<[usize; 1]> for Grid {
    fn from([x]: [usize; 1]) -> Self {
        Grid([x as u64, 1, 1])
    }
}

impl From<[usize; 2]> for Grid {
    fn from([x, y]: [usize; 2]) -> Self {
        Grid([x as u64, y as u64, 1])
    }
}

impl From<[usize; 3]> for Grid {
    fn from(g: [usize; 3]) -> Self {
        Grid(g.map(|n| n as u64))
    }
}

impl<'a> Launch<'a> {
    /// A launch of `def` with named arguments in the order of its parameters. Whether they fit is checked when the kernel is
    /// first compiled for them.
    pub fn new(def: KernelDef, args: Vec<(&'static str, KernelArg<'a>)>) -> Self {
        Self { def, args, grid: None, options: Options::default(), fp_fusion: false, device: None }
    }

    /// The number of programs: `x`, `[x]`, `[x, y]` or `[x, y, z]`. If one of them is 0 the launch does nothing.
    pub fn grid(mut self, grid: impl Into<Grid>) -> Self {
        self.grid = Some(grid.into().0);
        self
    }

    /// Warps of 32 threads of one program: a power of two.
    pub fn num_warps(mut self, warps: u32) -> Self {
        self.options.num_warps = warps;
        self
    }

    /// Depth of the software pipeline of loads in loops; 1 means none.
    pub fn num_stages(mut self, stages: u32) -> Self {
        self.options.num_stages = stages;
        self
    }

    /// All options at once.
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// May products and sums written apart be contracted to one `fma`? No by default.
    pub fn fp_fusion(mut self, on: bool) -> Self {
        self.fp_fusion = on;
        self
    }

    /// Names the device; needed only if no argument is in a device's memory.
    pub fn on(mut self, device: &Device) -> Self {
        self.device = Some(device.clone());
        self
    }

    /// Launches on the default stream of the arguments' device. Returns once the work is submitted; faults of the kernel are
    /// reported by the next wait or copy.
    ///
    /// # Errors
    /// [`Error::Compile`], [`Error::Arguments`], [`Error::Grid`], [`Error::DifferentDevices`], or what the driver says.
    pub fn launch(&self) -> Result<()> {
        let device = self.device()?;
        self.launch_raw(&device, RawStream::DEFAULT)
    }

    /// Launches on a stream.
    ///
    /// # Errors
    /// As [`Launch::launch`].
    pub fn launch_on(&self, stream: &Stream) -> Result<()> {
        let device = self.device()?;
        same_device("the arguments and the stream", &device, &stream.device)?;
        self.launch_raw(&device, stream.raw)
    }

    fn launch_raw(&self, device: &Arc<DeviceInner>, stream: RawStream) -> Result<()> {
        let grid = self.checked_grid(device)?;
        let kernel = self.variant(device)?;
        let words = args::pack(&self.args, device.backend.as_ref());
        run(device, kernel.loaded.as_ref(), stream, grid, &words.words, &words.regions)
    }

    /// Compiles and packs everything now, for launching many times at the least cost.
    ///
    /// # Errors
    /// As [`Launch::launch`].
    pub fn prepare(&self) -> Result<Prepared> {
        let device = self.device()?;
        let grid = self.checked_grid(&device)?;
        let kernel = self.variant(&device)?;
        let memory = self.args.iter().filter_map(|(_, a)| a.memory().cloned()).collect();
        let words = args::pack(&self.args, device.backend.as_ref());
        Ok(Prepared { device, kernel, grid, words, _memory: memory })
    }

    /// Compiles without launching, or finds what was compiled before.
    ///
    /// # Errors
    /// As [`Launch::launch`].
    pub fn compile(&self) -> Result<Arc<CompiledKernel>> {
        self.variant(&self.device()?)
    }

    /// The Tile IR of the kernel as specialised for these arguments.
    ///
    /// # Errors
    /// [`Error::Compile`] with the mistakes in the kernel.
    pub fn ir(&self) -> Result<String> {
        let func = self.def.build(&specialize::specialization(&specialize::key(&self.args), self.fp_fusion))?;
        Ok(crate::compile::ir_text(&func))
    }

    /// The code generated for these arguments and their device: PTX, OpenCL C, or SPIR-V assembly; Tile IR for the CPU
    /// device, which interprets it.
    ///
    /// # Errors
    /// As [`Launch::compile`].
    pub fn code(&self) -> Result<String> {
        match &self.compile()?.compiled {
            Some(compiled) => Ok(compiled.code.text()),
            None => self.ir(),
        }
    }

    /// The kernel.
    pub fn def(&self) -> &KernelDef {
        &self.def
    }

    /// The options as set so far.
    pub fn current_options(&self) -> Options {
        self.options
    }

    pub(crate) fn current_fp_fusion(&self) -> bool {
        self.fp_fusion
    }

    pub(crate) fn arguments(&self) -> &[(&'static str, KernelArg<'a>)] {
        &self.args
    }

    /// The same launch of other arguments.
    pub(crate) fn with_arguments<'b>(&self, args: Vec<(&'static str, KernelArg<'b>)>) -> Launch<'b> {
        let Launch { def, args: _, grid, options, fp_fusion, device } = self.clone();
        Launch { def, args, grid, options, fp_fusion, device }
    }

    pub(crate) fn device(&self) -> Result<Arc<DeviceInner>> {
        args::device_of(self.def.name, &self.args, self.device.as_ref().map(|d| &d.inner))
    }

    pub(crate) fn checked_grid(&self, device: &DeviceInner) -> Result<[u32; 3]> {
        let grid = self.grid.ok_or_else(|| Error::Arguments {
            kernel: self.def.name.to_owned(),
            message: "no grid was given; say how many programs to run with `.grid([n])`".into(),
        })?;
        let limits = device.backend.grid_limits();
        for axis in 0..3 {
            if grid[axis] > limits[axis] {
                return Err(Error::Grid {
                    kernel: self.def.name.to_owned(),
                    device: device.backend.info().name.clone(),
                    axis,
                    extent: grid[axis],
                    limit: limits[axis],
                    help: if axis == 0 {
                        "give each program more work, or launch several times"
                    } else {
                        "put the longest extent on axis 0, which allows the most programs"
                    },
                });
            }
        }
        Ok(grid.map(|n| n as u32))
    }

    pub(crate) fn variant(&self, device: &Arc<DeviceInner>) -> Result<Arc<CompiledKernel>> {
        let key = specialize::key(&self.args);
        let hash = self.hash(&key);
        if let Some(kernel) = device.kernels.find(hash, self, &key) {
            return Ok(kernel);
        }
        self.variant_slow(device, hash, &key)
    }

    #[cold]
    fn variant_slow(&self, device: &Arc<DeviceInner>, hash: u64, key: &Key) -> Result<Arc<CompiledKernel>> {
        let fail = |message: String| Error::Arguments { kernel: self.def.name.to_owned(), message };
        if let Some((what, may)) = self.options.mistake() {
            return Err(fail(format!("{what}; {may}")));
        }
        // One thread compiles a variant, others that want the same one wait for it; different variants go in parallel.
        let turn = device.kernels.turn(hash);
        let guard = turn.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kernel) = device.kernels.find(hash, self, key) {
            return Ok(kernel);
        }
        let spec = specialize::specialization(key, self.fp_fusion);
        let result = crate::compile::compile(device, &self.def, &self.args, &spec, &self.options);
        if let Ok(kernel) = &result {
            device.kernels.insert(hash, Variant::new(self, key, kernel.clone()));
            device.counters.variants.fetch_add(1, Relaxed);
        }
        drop(guard);
        device.kernels.end_turn(hash);
        result
    }

    fn hash(&self, key: &Key) -> u64 {
        let mut h = Fx::default();
        self.def.id.path.hash(&mut h);
        for d in &self.def.id.dtypes {
            h.write_u8(*d as u8);
        }
        self.def.id.comptime.hash(&mut h);
        self.options.hash(&mut h);
        h.write_u8(self.fp_fusion.into());
        h.write(key);
        h.finish()
    }
}

impl fmt::Debug for Launch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launch")
            .field("kernel", &self.def)
            .field("args", &self.args)
            .field("grid", &self.grid)
            .field("options", &self.options)
            .finish()
    }
}

/// A launch with everything decided: running it is one call of the driver. It keeps its buffers' memory alive.
pub struct Prepared {
    device: Arc<DeviceInner>,
    kernel: Arc<CompiledKernel>,
    grid: [u32; 3],
    words: Words,
    _memory: Vec<Arc<Memory>>,
}

impl Prepared {
    /// Launches on the default stream.
    ///
    /// # Errors
    /// What the driver says.
    pub fn launch(&self) -> Result<()> {
        self.launch_raw(RawStream::DEFAULT)
    }

    /// Launches on a stream.
    ///
    /// # Errors
    /// [`Error::DifferentDevices`], or what the driver says.
    pub fn launch_on(&self, stream: &Stream) -> Result<()> {
        same_device("the arguments and the stream", &self.device, &stream.device)?;
        self.launch_raw(stream.raw)
    }

    /// Launches on the default stream and waits for the end, for at most `limit`.
    ///
    /// On the CPU device a kernel that takes longer is ended. Other devices have no way to end it: if it takes longer the device is
    /// given up, that is, all further calls on it say [`Error::DeviceLost`] until the process starts anew, and none of them
    /// waits. What the kernel wrote till then stays written.
    ///
    /// # Errors
    /// [`Error::TimedOut`], or what the driver says.
    pub fn launch_within(&self, limit: Duration) -> Result<()> {
        self.launch_and_wait(limit).map(drop)
    }

    /// [`Prepared::launch_within`], timed: milliseconds by the device's clock.
    ///
    /// # Errors
    /// As there.
    pub fn time_within(&self, limit: Duration) -> Result<f64> {
        let start = self.device.live()?.record(RawStream::DEFAULT)?;
        let end = self.launch_and_wait(limit)?;
        start.elapsed_ms(end.as_ref())
    }

    /// The event of the end, which is reached.
    fn launch_and_wait(&self, limit: Duration) -> Result<Box<dyn RawEvent>> {
        let backend = self.device.live()?;
        let late = |detail| Error::TimedOut {
            kernel: self.kernel.metadata.name.clone(),
            device: backend.info().name.clone(),
            limit,
            detail,
        };
        let start = Instant::now();
        // A moment beyond what the clock can say is never reached.
        let until = start.checked_add(limit).unwrap_or_else(|| start + Duration::from_secs(u32::MAX.into()));
        if !self.grid.contains(&0) {
            self.device.counters.launches.fetch_add(1, Relaxed);
            let args = PackedArgs { words: &self.words.words, regions: &self.words.regions };
            let launched = self.kernel.loaded.launch_until(RawStream::DEFAULT, self.grid, &args, until);
            launched.map_err(|e| match e {
                Error::Compile(tilewright_compiler::Error::TimedOut { diagnostic, .. }) => late(diagnostic.to_string()),
                other => other,
            })?;
        }
        let end = backend.record(RawStream::DEFAULT)?;
        while !end.is_done()? {
            if Instant::now() >= until {
                let e = late("it cannot be ended here: the device is given up for the life of the process".to_owned());
                self.device.give_up(e.to_string());
                // The driver may wait for the work before it.
                std::mem::forget(end);
                return Err(e);
            }
            // Asked for often at first, then less and less: no more than a sixteenth of the time is lost.
            match start.elapsed() / 16 {
                short if short < Duration::from_micros(20) => std::thread::yield_now(),
                pause => std::thread::sleep(pause.min(Duration::from_millis(5))),
            }
        }
        Ok(end)
    }

    /// The kernel.
    pub fn kernel(&self) -> &Arc<CompiledKernel> {
        &self.kernel
    }

    fn launch_raw(&self, stream: RawStream) -> Result<()> {
        run(&self.device, self.kernel.loaded.as_ref(), stream, self.grid, &self.words.words, &self.words.regions)
    }
}

impl fmt::Debug for Prepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Prepared({}, grid {:?})", self.kernel.metadata.name, self.grid)
    }
}

fn run(
    device: &DeviceInner,
    kernel: &dyn Loaded,
    stream: RawStream,
    grid: [u32; 3],
    words: &[u64],
    regions: &[Region],
) -> Result<()> {
    if grid.contains(&0) {
        return Ok(());
    }
    device.live()?;
    device.counters.launches.fetch_add(1, Relaxed);
    kernel.launch(stream, grid, &PackedArgs { words, regions })
}

/// A kernel on a device.
pub struct CompiledKernel {
    pub(crate) loaded: Box<dyn Loaded>,
    /// `None` where Tile IR is interpreted.
    pub(crate) compiled: Option<Compiled>,
    pub(crate) metadata: Metadata,
}

impl CompiledKernel {
    /// What is known of it.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The compiler's output; `None` on the CPU device, which interprets Tile IR.
    pub fn compiled(&self) -> Option<&Compiled> {
        self.compiled.as_ref()
    }
}

impl fmt::Debug for CompiledKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CompiledKernel").field(&self.metadata).finish()
    }
}

/// One loaded variant, with all that decides it.
struct Variant {
    id: KernelId,
    names: Vec<&'static str>,
    options: Options,
    fp_fusion: bool,
    key: Vec<u8>,
    kernel: Arc<CompiledKernel>,
    /// The table's clock when it was launched last.
    used: AtomicU64,
}

impl Variant {
    fn new(launch: &Launch<'_>, key: &Key, kernel: Arc<CompiledKernel>) -> Self {
        Self {
            id: launch.def.id.clone(),
            names: launch.args.iter().map(|(n, _)| *n).collect(),
            options: launch.options,
            fp_fusion: launch.fp_fusion,
            key: key.to_vec(),
            kernel,
            used: AtomicU64::new(0),
        }
    }

    fn is(&self, launch: &Launch<'_>, key: &Key) -> bool {
        self.key == **key
            && self.options == launch.options
            && self.fp_fusion == launch.fp_fusion
            && self.id == launch.def.id
            && self.names.iter().eq(launch.args.iter().map(|(n, _)| n))
    }
}

/// The variants loaded on a device, at most [`most_variants`]: of more the least recently launched ones go. Lookups take a shared
/// lock and allocate nothing.
#[derive(Default)]
pub(crate) struct KernelTable {
    variants: RwLock<HashMap<u64, Vec<Variant>, BuildHasherDefault<Fx>>>,
    turns: Mutex<HashMap<u64, Arc<Mutex<()>>>>,
    /// Goes on with each variant added: fine enough to tell which ones are out of use, and seldom enough for launches to
    /// share the line of memory it is in.
    clock: AtomicU64,
}

/// Most variants that stay loaded on a device: `TILEWRIGHT_MAX_KERNELS`, 512 by default. A model has some dozens; what makes more
/// is a kernel specialised for values that change all the time.
fn most_variants() -> usize {
    static MOST: LazyLock<usize> = LazyLock::new(|| {
        let text = std::env::var("TILEWRIGHT_MAX_KERNELS").ok();
        text.and_then(|t| t.trim().parse().ok()).unwrap_or(512usize).max(1)
    });
    *MOST
}

impl KernelTable {
    fn find(&self, hash: u64, launch: &Launch<'_>, key: &Key) -> Option<Arc<CompiledKernel>> {
        let table = self.variants.read().unwrap_or_else(PoisonError::into_inner);
        let variant = table.get(&hash)?.iter().find(|v| v.is(launch, key))?;
        let now = self.clock.load(Relaxed);
        // Most launches find it as it is, and write nothing that other threads read.
        if variant.used.load(Relaxed) != now {
            variant.used.store(now, Relaxed);
        }
        Some(variant.kernel.clone())
    }

    fn insert(&self, hash: u64, variant: Variant) {
        variant.used.store(self.clock.fetch_add(1, Relaxed) + 1, Relaxed);
        let mut table = self.variants.write().unwrap_or_else(PoisonError::into_inner);
        table.entry(hash).or_default().push(variant);
        let gone = evict(&mut table, most_variants());
        drop(table);
        // Unloading calls the driver: not while launches wait for the lock. What a `Prepared` holds stays loaded.
        drop(gone);
    }

    fn turn(&self, hash: u64) -> Arc<Mutex<()>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner).entry(hash).or_default().clone()
    }

    fn end_turn(&self, hash: u64) {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner).remove(&hash);
    }

    pub fn variants_of(&self, path: &str) -> usize {
        let table = self.variants.read().unwrap_or_else(PoisonError::into_inner);
        table.values().flatten().filter(|v| v.id.path == path).count()
    }
}

/// Takes out the least recently used variants beyond `most`.
fn evict(table: &mut HashMap<u64, Vec<Variant>, BuildHasherDefault<Fx>>, most: usize) -> Vec<Variant> {
    let mut gone = Vec::new();
    while table.values().map(Vec::len).sum::<usize>() > most {
        let used = |v: &Variant| v.used.load(Relaxed);
        let oldest = table.iter().flat_map(|(&hash, all)| all.iter().enumerate().map(move |(i, v)| (used(v), hash, i)));
        let Some((_, hash, i)) = oldest.min() else { break };
        if let Some(all) = table.get_mut(&hash) {
            gone.push(all.swap_remove(i));
            if all.is_empty() {
                table.remove(&hash);
            }
        }
    }
    gone
}

/// The multiply-and-rotate hash of Firefox and rustc: a few nanoseconds for the keys here, which nobody chooses to collide.
#[derive(Default)]
struct Fx(u64);

impl Fx {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

impl Hasher for Fx {
    fn write(&mut self, bytes: &[u8]) {
        let (chunks, tail) = bytes.as_chunks::<8>();
        for c in chunks {
            self.add(u64::from_le_bytes(*c));
        }
        let mut last = [0; 8];
        last[..tail.len()].copy_from_slice(tail);
        self.add(u64::from_le_bytes(last) ^ bytes.len() as u64);
    }

    fn write_u8(&mut self, n: u8) {
        self.add(n.into());
    }

    fn write_u32(&mut self, n: u32) {
        self.add(n.into());
    }

    fn write_u64(&mut self, n: u64) {
        self.add(n);
    }

    fn write_usize(&mut self, n: usize) {
        self.add(n as u64);
    }

    fn finish(&self) -> u64 {
        // The high bits are the best mixed; the table takes its index from the low ones.
        self.0.rotate_left(26)
    }
}
