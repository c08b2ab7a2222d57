//! The CPU device: host memory, and the interpreter of Tile IR.
//!
//! Work is done when it is submitted, under one lock: every stream is the same queue, and a copy never meets a running
//! kernel. Events are readings of the monotonic clock.

mod execute;

use crate::backend::{Backend, Image, Loaded, PackedArgs, RawEvent, RawMem, RawStream, Target};
use crate::device::{DeviceInfo, DeviceKind, Hardware};
use crate::error::{Error, Result};
use crate::metadata::Resources;
use std::alloc::Layout;
use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Alignment of buffers: a cache line, so that vector accesses to whole rows never straddle one needlessly.
const ALIGN: usize = 64;

/// Bytes from which on an allocation is compared with the memory there is.
const LARGE: u64 = 256 << 20;

/// The device as listed.
pub(crate) fn info() -> DeviceInfo {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    DeviceInfo {
        name: "cpu".into(),
        kind: DeviceKind::Cpu,
        model: format!("built-in interpreter, {threads} threads"),
        driver: env!("CARGO_PKG_VERSION").into(),
        memory_bytes: memory_info().1,
        gpu: false,
        hardware: Hardware::default(),
        unusable: None,
    }
}

/// Opens the device, which is always there.
pub(crate) fn open() -> Arc<dyn Backend> {
    Arc::new(Cpu { info: info(), queue: Arc::default() })
}

struct Cpu {
    info: DeviceInfo,
    queue: Arc<Queue>,
}

/// Held while work is done.
#[derive(Default)]
struct Queue(Mutex<()>);

impl Queue {
    fn enter(&self) -> MutexGuard<'_, ()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn layout(bytes: u64) -> Option<Layout> {
    Layout::from_size_align(usize::try_from(bytes).ok()?, ALIGN).ok()
}

/// The bytes `offset..offset + bytes` of memory, as a pointer; the caller has checked the range.
fn at(mem: RawMem, offset: u64) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut((mem.addr + offset) as usize)
}

impl Backend for Cpu {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn target(&self) -> Target<'_> {
        Target::Interpreter
    }

    fn driver(&self) -> &str {
        &self.info.driver
    }

    fn alloc(&self, bytes: u64) -> Result<RawMem> {
        // Linux promises memory that it does not have, and kills the process that uses it.
        let promised = bytes >= LARGE && self.memory().0.is_some_and(|free| bytes > free);
        let pointer = match layout(bytes).filter(|_| !promised) {
            // SAFETY: `bytes` is not 0. Zeroed, so that the bytes are initialised for whoever reads them.
            Some(layout) if layout.size() > 0 => unsafe { std::alloc::alloc_zeroed(layout) },
            _ => std::ptr::null_mut(),
        };
        if pointer.is_null() {
            let (free, total) = self.memory();
            return Err(Error::OutOfMemory { device: "cpu".into(), requested: bytes, free, total });
        }
        Ok(RawMem { addr: pointer.expose_provenance() as u64, handle: 0, bytes })
    }

    fn free(&self, mem: RawMem) {
        let layout = layout(mem.bytes).expect("the layout was valid when the memory was allocated");
        let _turn = self.queue.enter();
        // SAFETY: allocated by `alloc` with this layout, and freed once, by its owner.
        unsafe { std::alloc::dealloc(at(mem, 0), layout) };
    }

    fn write(&self, mem: RawMem, offset: u64, data: &[u8]) -> Result<()> {
        let _turn = self.queue.enter();
        // SAFETY: the buffer has checked that the range is inside the memory; the lock keeps everyone else away.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), at(mem, offset), data.len()) };
        Ok(())
    }

    fn read(&self, mem: RawMem, offset: u64, data: &mut [u8]) -> Result<()> {
        let _turn = self.queue.enter();
        // SAFETY: as in `write`.
        unsafe { std::ptr::copy_nonoverlapping(at(mem, offset), data.as_mut_ptr(), data.len()) };
        Ok(())
    }

    fn fill(&self, mem: RawMem, offset: u64, bytes: u64, value: u8) -> Result<()> {
        let _turn = self.queue.enter();
        // SAFETY: as in `write`.
        unsafe { std::ptr::write_bytes(at(mem, offset), value, bytes as usize) };
        Ok(())
    }

    fn copy(&self, from: RawMem, from_offset: u64, to: RawMem, to_offset: u64, bytes: u64) -> Result<()> {
        let _turn = self.queue.enter();
        // SAFETY: as in `write`, for both ranges.
        unsafe { std::ptr::copy(at(from, from_offset), at(to, to_offset), bytes as usize) };
        Ok(())
    }

    fn memory(&self) -> (Option<u64>, Option<u64>) {
        memory_info()
    }

    fn load(&self, image: &Image<'_>) -> Result<Box<dyn Loaded>> {
        match image {
            Image::Tile(func) => {
                Ok(Box::new(Kernel { program: execute::Program::new(func)?, queue: self.queue.clone() }))
            }
            Image::Code { .. } => Err(Error::Unsupported {
                device: "cpu".into(),
                what: "load compiled code".into(),
                help: "the CPU device interprets Tile IR",
            }),
        }
    }

    fn new_stream(&self) -> Result<RawStream> {
        // All streams are the one queue.
        Ok(RawStream::DEFAULT)
    }

    fn drop_stream(&self, _stream: RawStream) {}

    fn sync_stream(&self, _stream: RawStream) -> Result<()> {
        self.sync()
    }

    fn sync(&self) -> Result<()> {
        drop(self.queue.enter());
        Ok(())
    }

    fn record(&self, _stream: RawStream) -> Result<Box<dyn RawEvent>> {
        let _turn = self.queue.enter();
        Ok(Box::new(Moment(Instant::now())))
    }

    fn wait_event(&self, _stream: RawStream, _event: &dyn RawEvent) -> Result<()> {
        Ok(())
    }
}

struct Kernel {
    program: execute::Program,
    queue: Arc<Queue>,
}

impl Loaded for Kernel {
    fn launch(&self, _stream: RawStream, grid: [u32; 3], args: &PackedArgs<'_>) -> Result<()> {
        let _turn = self.queue.enter();
        // SAFETY: the regions are parts of buffers that the caller borrows, initialised when they were allocated; the lock keeps
        // everyone else away.
        unsafe { self.program.run(grid, args, None) }
    }

    fn launch_until(&self, _stream: RawStream, grid: [u32; 3], args: &PackedArgs<'_>, until: Instant) -> Result<()> {
        let _turn = self.queue.enter();
        // SAFETY: as in `launch`.
        unsafe { self.program.run(grid, args, Some(until)) }
    }

    fn resources(&self) -> Resources {
        Resources::default()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// An event: all work before it was done when it was made.
struct Moment(Instant);

impl RawEvent for Moment {
    fn wait(&self) -> Result<()> {
        Ok(())
    }

    fn is_done(&self) -> Result<bool> {
        Ok(true)
    }

    fn elapsed_ms(&self, later: &dyn RawEvent) -> Result<f64> {
        let later = later.own::<Moment>();
        let forward = later.0.checked_duration_since(self.0).map(|d| d.as_secs_f64());
        let seconds = forward.unwrap_or_else(|| -self.0.duration_since(later.0).as_secs_f64());
        Ok(seconds * 1e3)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Bytes available and in all, where Linux tells.
fn memory_info() -> (Option<u64>, Option<u64>) {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let field = |name: &str| {
        let line = text.lines().find(|l| l.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib * 1024)
    };
    (field("MemAvailable:"), field("MemTotal:"))
}
