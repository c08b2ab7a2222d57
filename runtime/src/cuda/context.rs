//! One device: its primary context, memory, streams and events.
//!
//! The device's own stream is one of ours, not the driver's null stream, which would wait for everyone. All memory
//! operations happen on it. Streams made beside it are ordered against it as [`Backend`] promises: before a memory operation
//! the own stream waits for what the others were given, and before a launch another stream waits for the memory operations
//! so far; all by events on the device, the host waits for nothing.

use super::{assembler, driver, graph, kernel};
use crate::backend::{Assembled, Backend, Image, Loaded, RawEvent, RawGraph, RawLaunch, RawMem, RawStream, Target};
use crate::device::DeviceInfo;
use crate::error::{Error, Result};
use cudarc::driver::sys::{
    self, CUcontext, CUdevice, CUdevice_attribute, CUevent, CUmemPool_attribute, CUmemoryPool, CUresult, CUstream,
};
use std::any::Any;
use std::ffi::{c_uint, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tilewright_compiler::target::{Caps, Compiled};

/// `CU_STREAM_NON_BLOCKING`: not ordered against the null stream.
const STREAM_NON_BLOCKING: c_uint = 1;
/// `CU_EVENT_DISABLE_TIMING`.
const EVENT_DISABLE_TIMING: c_uint = 2;

/// Opens device `index`.
pub(crate) fn open(index: usize) -> Result<Arc<dyn Backend>> {
    let name = format!("cuda:{index}");
    let version = driver::init()
        .map_err(|why| crate::device::unknown(&name, why, "install the NVIDIA driver, or choose another device"))?;
    let count = driver::count();
    if index >= count {
        let why = format!("the driver has {count} devices");
        return Err(crate::device::unknown(
            &name,
            why,
            "device numbers start at 0; CUDA_VISIBLE_DEVICES may hide some",
        ));
    }
    let (device, info, sm) = driver::info(index, version)?;
    if let Some(why) = &info.unusable {
        return Err(crate::device::unknown(&name, why.clone(), "choose another device"));
    }
    Ok(Arc::new(Cuda(Arc::new(Context::new(device, info, sm)?))))
}

/// The context and what belongs to it; kernels and events keep it alive.
pub(super) struct Context {
    pub info: DeviceInfo,
    pub sm: u32,
    caps: Caps,
    /// Driver, model and assembler, for the code cache.
    identity: String,
    device: CUdevice,
    context: CUcontext,
    stream: CUstream,
    /// Orders other streams behind the own stream's memory operations.
    own_event: CUevent,
    /// Stream-ordered allocation, if the device has it.
    pool: Option<CUmemoryPool>,
    /// Counts memory operations on the own stream.
    epoch: AtomicU64,
    others: Mutex<Vec<Arc<Other>>>,
    /// Is `others` not empty? Spares the lock.
    has_others: AtomicBool,
    lost: OnceLock<String>,
}

// SAFETY: the driver's handles may be used from any thread; `bind` makes the context current on the one that calls.
unsafe impl Send for Context {}
// SAFETY: the driver locks for itself; our own state is behind atomics and a lock.
unsafe impl Sync for Context {}

/// A stream beside the device's own.
pub(super) struct Other {
    pub stream: CUstream,
    event: CUevent,
    /// Was it given work that the own stream has not been made to wait for?
    dirty: AtomicBool,
    /// The memory operations it waits for, by `Context::epoch`.
    seen: AtomicU64,
}

// SAFETY: as for `Context`.
unsafe impl Send for Other {}
// SAFETY: as for `Context`.
unsafe impl Sync for Other {}

impl Context {
    fn new(device: CUdevice, info: DeviceInfo, sm: u32) -> Result<Self> {
        let name = info.name.clone();
        let mut context = ptr::null_mut();
        // SAFETY: writes one handle; `Drop` releases it.
        driver::check(&name, "cuDevicePrimaryCtxRetain", unsafe {
            sys::cuDevicePrimaryCtxRetain(&mut context, device)
        })?;
        let identity = format!("{} {} {}", info.driver, info.model, assembler::identity());
        // From here on `Drop` cleans up what is there.
        let mut this = Context {
            info,
            sm,
            caps: Caps::ptx(sm),
            identity,
            device,
            context,
            stream: ptr::null_mut(),
            own_event: ptr::null_mut(),
            pool: None,
            epoch: AtomicU64::new(0),
            others: Mutex::default(),
            has_others: AtomicBool::new(false),
            lost: OnceLock::new(),
        };
        this.bind()?;
        this.stream = this.create_stream()?;
        this.own_event = this.create_event(EVENT_DISABLE_TIMING)?;
        let pools = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED;
        if driver::attribute(&name, device, pools)? != 0 {
            let mut pool = ptr::null_mut();
            // SAFETY: writes one handle, which the device owns.
            this.check("cuDeviceGetDefaultMemPool", unsafe { sys::cuDeviceGetDefaultMemPool(&mut pool, device) })?;
            // Freed memory stays with the pool: giving it back at every wait would make allocation slow.
            let mut keep = u64::MAX;
            // SAFETY: this attribute is one u64.
            this.check("cuMemPoolSetAttribute", unsafe {
                let which = CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
                sys::cuMemPoolSetAttribute(pool, which, (&raw mut keep).cast())
            })?;
            this.pool = Some(pool);
        }
        Ok(this)
    }

    /// Makes the context current on this thread.
    pub fn bind(&self) -> Result<()> {
        let mut current = ptr::null_mut();
        // SAFETY: writes one handle.
        let code = unsafe { sys::cuCtxGetCurrent(&mut current) };
        if code == CUresult::CUDA_SUCCESS && current == self.context {
            return Ok(());
        }
        // SAFETY: the context lives as long as `self`.
        self.check("cuCtxSetCurrent", unsafe { sys::cuCtxSetCurrent(self.context) })
    }

    /// A result code as our error; remembers the loss of the device.
    pub fn check(&self, call: &'static str, code: CUresult) -> Result<()> {
        if code == CUresult::CUDA_SUCCESS {
            return Ok(());
        }
        self.failed(call, code)
    }

    #[cold]
    fn failed(&self, call: &'static str, code: CUresult) -> Result<()> {
        let error = match driver::check(&self.info.name, call, code) {
            Err(e) => e,
            Ok(()) => return Ok(()),
        };
        if let Error::DeviceLost { cause, .. } = &error {
            // The first cause is the true one: what follows are echoes.
            let first = self.lost.get_or_init(|| cause.clone());
            return Err(Error::DeviceLost { device: self.info.name.clone(), cause: first.clone() });
        }
        Err(error)
    }

    /// Binds the context, unless the device is lost.
    pub fn enter(&self) -> Result<()> {
        if let Some(cause) = self.lost.get() {
            return Err(Error::DeviceLost { device: self.info.name.clone(), cause: cause.clone() });
        }
        self.bind()
    }

    fn create_stream(&self) -> Result<CUstream> {
        let mut stream = ptr::null_mut();
        // SAFETY: writes one handle.
        self.check("cuStreamCreate", unsafe { sys::cuStreamCreate(&mut stream, STREAM_NON_BLOCKING) })?;
        Ok(stream)
    }

    fn create_event(&self, flags: c_uint) -> Result<CUevent> {
        let mut event = ptr::null_mut();
        // SAFETY: writes one handle.
        self.check("cuEventCreate", unsafe { sys::cuEventCreate(&mut event, flags) })?;
        Ok(event)
    }

    fn record_event(&self, event: CUevent, stream: CUstream) -> Result<()> {
        // SAFETY: both handles are of this context and alive.
        self.check("cuEventRecord", unsafe { sys::cuEventRecord(event, stream) })
    }

    fn make_wait(&self, stream: CUstream, event: CUevent) -> Result<()> {
        // SAFETY: both handles are of this context and alive; the flags must be 0.
        self.check("cuStreamWaitEvent", unsafe { sys::cuStreamWaitEvent(stream, event, 0) })
    }

    /// Prepares a memory operation on the own stream: it comes after the work given to other streams.
    fn memory_operation(&self) -> Result<()> {
        self.enter()?;
        if self.has_others.load(SeqCst) {
            for other in self.others.lock().unwrap_or_else(PoisonError::into_inner).iter() {
                self.join(other)?;
            }
        }
        self.epoch.fetch_add(1, SeqCst);
        Ok(())
    }

    fn join(&self, other: &Other) -> Result<()> {
        if other.dirty.swap(false, SeqCst) {
            self.record_event(other.event, other.stream)?;
            self.make_wait(self.stream, other.event)?;
        }
        Ok(())
    }

    /// The driver's stream for a launch or an event, ordered behind the memory operations so far.
    pub fn stream_for(&self, raw: RawStream) -> Result<CUstream> {
        if raw == RawStream::DEFAULT {
            return Ok(self.stream);
        }
        let other = self.other(raw);
        other.dirty.store(true, SeqCst);
        let epoch = self.epoch.load(SeqCst);
        if other.seen.load(Relaxed) != epoch {
            // The event is shared, and recording and waiting are two calls: the lock keeps them together.
            let _guard = self.others.lock().unwrap_or_else(PoisonError::into_inner);
            self.record_event(self.own_event, self.stream)?;
            self.make_wait(other.stream, self.own_event)?;
            other.seen.store(epoch, Relaxed);
        }
        Ok(other.stream)
    }

    fn other(&self, raw: RawStream) -> &Other {
        // SAFETY: a handle is the address of an `Other` that `others` owns until `drop_stream`, which the `Stream` that
        // holds the handle calls when it is dropped, after its last use.
        unsafe { &*ptr::with_exposed_provenance::<Other>(raw.0 as usize) }
    }

    fn wait_stream(&self, stream: CUstream) -> Result<()> {
        // SAFETY: the stream is of this context and alive.
        self.check("cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(stream) })
    }

    fn try_alloc(&self, bytes: u64) -> Result<RawMem, CUresult> {
        let mut addr = 0;
        // SAFETY: writes one address; the stream is alive.
        let code = unsafe {
            match self.pool {
                Some(_) => sys::cuMemAllocAsync(&mut addr, bytes as usize, self.stream),
                None => sys::cuMemAlloc_v2(&mut addr, bytes as usize),
            }
        };
        if code == CUresult::CUDA_SUCCESS { Ok(RawMem { addr, handle: 0, bytes }) } else { Err(code) }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // Errors have nobody to go to; a lost device answers all of these with one.
        if self.bind().is_ok() {
            // SAFETY: the handles are ours, each is destroyed once, and null ones are left out. Nothing uses them any more:
            // streams, kernels and events keep the context alive.
            unsafe {
                if !self.stream.is_null() {
                    sys::cuStreamSynchronize(self.stream);
                    sys::cuStreamDestroy_v2(self.stream);
                }
                if !self.own_event.is_null() {
                    sys::cuEventDestroy_v2(self.own_event);
                }
                if let Some(pool) = self.pool {
                    sys::cuMemPoolTrimTo(pool, 0);
                }
            }
        }
        // SAFETY: matches the retain in `new`.
        unsafe { sys::cuDevicePrimaryCtxRelease_v2(self.device) };
    }
}

/// The device as the runtime sees it.
struct Cuda(Arc<Context>);

impl Backend for Cuda {
    fn info(&self) -> &DeviceInfo {
        &self.0.info
    }

    fn target(&self) -> Target<'_> {
        Target::Code(&self.0.caps)
    }

    fn driver(&self) -> &str {
        &self.0.identity
    }

    fn grid_limits(&self) -> [u64; 3] {
        // The same on every compute capability from 3.0 on.
        [i32::MAX as u64, 65_535, 65_535]
    }

    fn alloc(&self, bytes: u64) -> Result<RawMem> {
        let c = &self.0;
        c.enter()?;
        c.epoch.fetch_add(1, SeqCst);
        // The driver calls sizes beyond all reason invalid rather than too large.
        let possible = c.info.memory_bytes.is_none_or(|all| bytes <= all);
        let mut result = if possible { c.try_alloc(bytes) } else { Err(CUresult::CUDA_ERROR_OUT_OF_MEMORY) };
        if let (true, Err(CUresult::CUDA_ERROR_OUT_OF_MEMORY), Some(pool)) = (possible, &result, c.pool) {
            // Memory freed but not yet reached by the stream, or kept in pieces, may serve once it is given back.
            c.wait_stream(c.stream)?;
            // SAFETY: the pool is the device's own.
            c.check("cuMemPoolTrimTo", unsafe { sys::cuMemPoolTrimTo(pool, 0) })?;
            result = c.try_alloc(bytes);
        }
        result.map_err(|code| {
            if code == CUresult::CUDA_ERROR_OUT_OF_MEMORY {
                let (free, total) = self.memory();
                return Error::OutOfMemory { device: c.info.name.clone(), requested: bytes, free, total };
            }
            let call = if c.pool.is_some() { "cuMemAllocAsync" } else { "cuMemAlloc" };
            c.check(call, code).expect_err("a code other than success is an error")
        })
    }

    fn free(&self, mem: RawMem) {
        let c = &self.0;
        // A drop cannot report errors. Memory of a lost device is gone with its context.
        if c.memory_operation().is_err() {
            return;
        }
        // SAFETY: allocated by `alloc` in the same way, and freed once, by its owner. Without a pool the driver itself waits
        // for the device.
        unsafe {
            match c.pool {
                Some(_) => sys::cuMemFreeAsync(mem.addr, c.stream),
                None => sys::cuMemFree_v2(mem.addr),
            };
        }
    }

    fn write(&self, mem: RawMem, offset: u64, data: &[u8]) -> Result<()> {
        let c = &self.0;
        c.memory_operation()?;
        // SAFETY: the buffer has checked that the range is inside the memory; `data` stays borrowed until the wait below.
        c.check("cuMemcpyHtoDAsync", unsafe {
            sys::cuMemcpyHtoDAsync_v2(mem.addr + offset, data.as_ptr().cast(), data.len(), c.stream)
        })?;
        c.wait_stream(c.stream)
    }

    fn read(&self, mem: RawMem, offset: u64, data: &mut [u8]) -> Result<()> {
        let c = &self.0;
        c.memory_operation()?;
        // SAFETY: as in `write`.
        c.check("cuMemcpyDtoHAsync", unsafe {
            sys::cuMemcpyDtoHAsync_v2(data.as_mut_ptr().cast(), mem.addr + offset, data.len(), c.stream)
        })?;
        c.wait_stream(c.stream)
    }

    fn fill(&self, mem: RawMem, offset: u64, bytes: u64, value: u8) -> Result<()> {
        let c = &self.0;
        c.memory_operation()?;
        // SAFETY: the range is inside the memory.
        c.check("cuMemsetD8Async", unsafe { sys::cuMemsetD8Async(mem.addr + offset, value, bytes as usize, c.stream) })
    }

    fn copy(&self, from: RawMem, from_offset: u64, to: RawMem, to_offset: u64, bytes: u64) -> Result<()> {
        let c = &self.0;
        c.memory_operation()?;
        // SAFETY: both ranges are inside their memory and do not overlap.
        c.check("cuMemcpyDtoDAsync", unsafe {
            sys::cuMemcpyDtoDAsync_v2(to.addr + to_offset, from.addr + from_offset, bytes as usize, c.stream)
        })
    }

    fn memory(&self) -> (Option<u64>, Option<u64>) {
        let (mut free, mut total) = (0, 0);
        // SAFETY: writes two integers.
        let known =
            self.0.bind().is_ok() && unsafe { sys::cuMemGetInfo_v2(&mut free, &mut total) } == CUresult::CUDA_SUCCESS;
        if !known {
            return (None, self.0.info.memory_bytes);
        }
        // What the pool keeps but nobody uses is free to us.
        let kept = self.0.pool.map_or(0, |pool| {
            let get = |which| {
                let mut value = 0u64;
                // SAFETY: these attributes are one u64 each.
                let code = unsafe { sys::cuMemPoolGetAttribute(pool, which, (&raw mut value).cast::<c_void>()) };
                if code == CUresult::CUDA_SUCCESS { value } else { 0 }
            };
            get(CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)
                .saturating_sub(get(CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT))
        });
        (Some(free as u64 + kept), Some(total as u64))
    }

    fn assemble(&self, compiled: &Compiled) -> Result<Assembled> {
        self.0.enter()?;
        assembler::assemble(&self.0, compiled)
    }

    fn load(&self, image: &Image<'_>) -> Result<Box<dyn Loaded>> {
        self.0.enter()?;
        match image {
            Image::Code { compiled, binary } => Ok(Box::new(kernel::Kernel::load(self.0.clone(), compiled, *binary)?)),
            Image::Tile(_) => Err(Error::Unsupported {
                device: self.0.info.name.clone(),
                what: "run Tile IR without compiling it".into(),
                help: "use the `cpu` device",
            }),
        }
    }

    fn graph(&self, launches: &[RawLaunch<'_>]) -> Result<Option<Box<dyn RawGraph>>> {
        self.0.enter()?;
        graph::graph(&self.0, launches)
    }

    fn new_stream(&self) -> Result<RawStream> {
        let c = &self.0;
        c.enter()?;
        let stream = c.create_stream()?;
        let event = c.create_event(EVENT_DISABLE_TIMING).inspect_err(|_| {
            // SAFETY: just created, used by nobody.
            unsafe { sys::cuStreamDestroy_v2(stream) };
        })?;
        let other = Other { stream, event, dirty: AtomicBool::new(false), seen: AtomicU64::new(u64::MAX) };
        let other = Arc::new(other);
        let raw = RawStream(Arc::as_ptr(&other).expose_provenance() as u64);
        c.others.lock().unwrap_or_else(PoisonError::into_inner).push(other);
        c.has_others.store(true, SeqCst);
        Ok(raw)
    }

    fn drop_stream(&self, stream: RawStream) {
        let c = &self.0;
        let mut others = c.others.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(index) = others.iter().position(|o| Arc::as_ptr(o).addr() as u64 == stream.0) else { return };
        let other = others.swap_remove(index);
        c.has_others.store(!others.is_empty(), SeqCst);
        drop(others);
        if c.bind().is_ok() {
            // Memory operations to come must still wait for what it was given. An error means that the device is lost.
            let _ = c.join(&other);
            // SAFETY: ours, destroyed once; the driver lets the work given to them finish first.
            unsafe {
                sys::cuStreamDestroy_v2(other.stream);
                sys::cuEventDestroy_v2(other.event);
            }
        }
    }

    fn sync_stream(&self, stream: RawStream) -> Result<()> {
        let c = &self.0;
        c.enter()?;
        let stream = if stream == RawStream::DEFAULT { c.stream } else { c.other(stream).stream };
        c.wait_stream(stream)
    }

    fn sync(&self) -> Result<()> {
        self.0.enter()?;
        // SAFETY: waits for the current context, which `enter` has set.
        self.0.check("cuCtxSynchronize", unsafe { sys::cuCtxSynchronize() })
    }

    fn record(&self, stream: RawStream) -> Result<Box<dyn RawEvent>> {
        let c = &self.0;
        c.enter()?;
        let event = Event { context: c.clone(), event: c.create_event(0)? };
        c.record_event(event.event, c.stream_for(stream)?)?;
        Ok(Box::new(event))
    }

    fn wait_event(&self, stream: RawStream, event: &dyn RawEvent) -> Result<()> {
        self.0.enter()?;
        let event = event.own::<Event>();
        self.0.make_wait(self.0.stream_for(stream)?, event.event)
    }
}

struct Event {
    context: Arc<Context>,
    event: CUevent,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Event {}
// SAFETY: the driver locks for itself.
unsafe impl Sync for Event {}

impl RawEvent for Event {
    fn wait(&self) -> Result<()> {
        self.context.enter()?;
        // SAFETY: the event is alive.
        self.context.check("cuEventSynchronize", unsafe { sys::cuEventSynchronize(self.event) })
    }

    fn is_done(&self) -> Result<bool> {
        self.context.enter()?;
        // SAFETY: the event is alive.
        match unsafe { sys::cuEventQuery(self.event) } {
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            code => self.context.check("cuEventQuery", code).map(|()| true),
        }
    }

    fn elapsed_ms(&self, later: &dyn RawEvent) -> Result<f64> {
        self.wait()?;
        later.wait()?;
        let later = later.own::<Event>();
        let mut ms = 0.0f32;
        let elapsed = elapsed_time_function().ok_or_else(|| Error::Unsupported {
            device: self.context.info.name.clone(),
            what: "tell the time between events: its driver has no cuEventElapsedTime".into(),
            help: "update the driver",
        })?;
        // SAFETY: writes one number; both events are alive and reached.
        let code = unsafe { elapsed(&mut ms, self.event, later.event) };
        self.context.check("cuEventElapsedTime", code)?;
        Ok(ms.into())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

type ElapsedTime = unsafe extern "C" fn(*mut f32, CUevent, CUevent) -> CUresult;

/// `cuEventElapsedTime`, which every driver has. The bindings for CUDA 13 know only `cuEventElapsedTime_v2`, which drivers
/// before 12.8 lack.
fn elapsed_time_function() -> Option<ElapsedTime> {
    static FUNCTION: OnceLock<Option<ElapsedTime>> = OnceLock::new();
    *FUNCTION.get_or_init(|| {
        // SAFETY: the library is loaded, since there is an event; the type is that of the driver's header.
        unsafe { sys::culib().get::<ElapsedTime>(b"cuEventElapsedTime\0") }.ok().map(|f| *f)
    })
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: ours, destroyed once; the driver waits for a pending record.
            unsafe { sys::cuEventDestroy_v2(self.event) };
        }
    }
}
