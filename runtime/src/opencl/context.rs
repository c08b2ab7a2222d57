//! One OpenCL device: memory, copies, events.

use super::graph::Graph;
use super::kernel::Kernel;
use super::platform::{Found, check, find};
use crate::backend::{Backend, Image, Loaded, RawEvent, RawGraph, RawLaunch, RawMem, RawStream, Target};
use crate::device::DeviceInfo;
use crate::error::{Error, Result};
use ocl::core::ffi::{self, cl_command_queue, cl_context, cl_device_id, cl_event, cl_int, cl_mem};
use std::any::Any;
use std::ptr;
use std::sync::Arc;
use tilewright_compiler::target::Caps;

/// Opens device `index`.
pub(crate) fn open(index: usize) -> Result<Arc<dyn Backend>> {
    let name = format!("opencl:{index}");
    let mut found = find();
    if index >= found.len() {
        let why = format!("OpenCL has {} devices", found.len());
        let help = "device numbers start at 0; install an OpenCL driver (package pocl-opencl-icd runs on any CPU)";
        return Err(crate::device::unknown(&name, why, help));
    }
    let found = found.swap_remove(index);
    if let Some(why) = found.info.unusable {
        return Err(crate::device::unknown(&name, why, "choose another device"));
    }
    Ok(Arc::new(OpenCl(Arc::new(Context::new(found)?))))
}

/// The context and its queue; kernels and events keep it alive.
pub(super) struct Context {
    pub info: DeviceInfo,
    pub device: cl_device_id,
    pub context: cl_context,
    pub queue: cl_command_queue,
    caps: Caps,
    max_bytes: u64,
    base_align: u64,
    /// Can quotients and square roots of `f32` be asked to be rounded correctly?
    pub rounds_division: bool,
    identity: String,
}

// SAFETY: OpenCL's objects may be used from any thread ("Shared OpenCL Objects" in the specification).
unsafe impl Send for Context {}
// SAFETY: all functions used on it are thread-safe; `clSetKernelArg`, the one that is not, is locked by `Kernel`.
unsafe impl Sync for Context {}

impl Context {
    fn new(found: Found) -> Result<Context> {
        let _setting_up = super::one_at_a_time();
        let name = &found.info.name;
        let mut code = 0;
        let properties = [ffi::CL_CONTEXT_PLATFORM as isize, found.platform as isize, 0];
        // SAFETY: the properties end in 0; one device handle is given.
        let context =
            unsafe { ffi::clCreateContext(properties.as_ptr(), 1, &found.id, None, ptr::null_mut(), &mut code) };
        check(name, "clCreateContext", code)?;
        // SAFETY: context and device belong together.
        let queue = unsafe { ffi::clCreateCommandQueue(context, found.id, ffi::CL_QUEUE_PROFILING_ENABLE, &mut code) };
        check(name, "clCreateCommandQueue", code).inspect_err(|_| {
            // SAFETY: created above.
            unsafe { ffi::clReleaseContext(context) };
        })?;
        Ok(Context {
            identity: format!("{} {}", found.info.driver, found.info.model),
            info: found.info,
            device: found.id,
            context,
            queue,
            caps: found.caps,
            max_bytes: found.max_bytes,
            base_align: found.base_align,
            rounds_division: found.rounds_division,
        })
    }

    pub fn check(&self, call: &'static str, code: cl_int) -> Result<()> {
        check(&self.info.name, call, code)
    }

    fn out_of_memory(&self, bytes: u64) -> Error {
        Error::OutOfMemory {
            device: self.info.name.clone(),
            requested: bytes,
            free: None,
            total: self.info.memory_bytes,
        }
    }

    /// Hands what is queued to the device without waiting.
    pub fn flush(&self) -> Result<()> {
        // SAFETY: the queue is alive.
        self.check("clFlush", unsafe { ffi::clFlush(self.queue) })
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: ours, released once; memory, kernels and events that still use them hold references of their own.
        unsafe {
            ffi::clFinish(self.queue);
            ffi::clReleaseCommandQueue(self.queue);
            ffi::clReleaseContext(self.context);
        }
    }
}

/// The device as the runtime sees it.
struct OpenCl(Arc<Context>);

fn handle(mem: RawMem) -> cl_mem {
    ptr::with_exposed_provenance_mut(mem.handle as usize)
}

impl Backend for OpenCl {
    fn info(&self) -> &DeviceInfo {
        &self.0.info
    }

    fn target(&self) -> Target<'_> {
        Target::Code(&self.0.caps)
    }

    fn driver(&self) -> &str {
        &self.0.identity
    }

    fn handles(&self) -> bool {
        true
    }

    fn alloc(&self, bytes: u64) -> Result<RawMem> {
        let c = &self.0;
        if bytes > c.max_bytes {
            return Err(c.out_of_memory(bytes));
        }
        let mut code = 0;
        let flags = ffi::CL_MEM_READ_WRITE;
        // SAFETY: no host memory is given.
        let mem = unsafe { ffi::clCreateBuffer(c.context, flags, bytes as usize, ptr::null_mut(), &mut code) };
        match code {
            // MEM_OBJECT_ALLOCATION_FAILURE, OUT_OF_RESOURCES, OUT_OF_HOST_MEMORY, INVALID_BUFFER_SIZE.
            -6..=-4 | -61 => return Err(c.out_of_memory(bytes)),
            _ => c.check("clCreateBuffer", code)?,
        }
        // Kernels get the handle; the address stands for what is known of its alignment.
        let addr = if c.base_align.is_multiple_of(16) { 0 } else { c.base_align };
        Ok(RawMem { addr, handle: mem.expose_provenance() as u64, bytes })
    }

    fn free(&self, mem: RawMem) {
        // SAFETY: released once, by its owner; the driver keeps it until queued commands are done with it.
        unsafe { ffi::clReleaseMemObject(handle(mem)) };
    }

    fn write(&self, mem: RawMem, offset: u64, data: &[u8]) -> Result<()> {
        let c = &self.0;
        let (at, len) = (offset as usize, data.len());
        // SAFETY: the range is inside the buffer; the call returns when the host memory has been read.
        c.check("clEnqueueWriteBuffer", unsafe {
            let source = data.as_ptr().cast();
            ffi::clEnqueueWriteBuffer(
                c.queue,
                handle(mem),
                ffi::CL_TRUE,
                at,
                len,
                source,
                0,
                ptr::null(),
                ptr::null_mut(),
            )
        })
    }

    fn read(&self, mem: RawMem, offset: u64, data: &mut [u8]) -> Result<()> {
        let c = &self.0;
        let (at, len) = (offset as usize, data.len());
        // SAFETY: the range is inside the buffer; the call returns when the host memory has been written.
        c.check("clEnqueueReadBuffer", unsafe {
            let target = data.as_mut_ptr().cast();
            ffi::clEnqueueReadBuffer(
                c.queue,
                handle(mem),
                ffi::CL_TRUE,
                at,
                len,
                target,
                0,
                ptr::null(),
                ptr::null_mut(),
            )
        })
    }

    fn fill(&self, mem: RawMem, offset: u64, bytes: u64, value: u8) -> Result<()> {
        let c = &self.0;
        let (at, len) = (offset as usize, bytes as usize);
        // SAFETY: the range is inside the buffer; the pattern is copied.
        let code = unsafe {
            let pattern = (&raw const value).cast();
            ffi::clEnqueueFillBuffer(c.queue, handle(mem), pattern, 1, at, len, 0, ptr::null(), ptr::null_mut())
        };
        match code {
            // Many drivers allocate at the first use.
            -6..=-4 => Err(c.out_of_memory(mem.bytes)),
            _ => c.check("clEnqueueFillBuffer", code),
        }
    }

    fn copy(&self, from: RawMem, from_offset: u64, to: RawMem, to_offset: u64, bytes: u64) -> Result<()> {
        let c = &self.0;
        let (a, b, len) = (from_offset as usize, to_offset as usize, bytes as usize);
        // SAFETY: both ranges are inside their buffers and do not overlap.
        c.check("clEnqueueCopyBuffer", unsafe {
            ffi::clEnqueueCopyBuffer(c.queue, handle(from), handle(to), a, b, len, 0, ptr::null(), ptr::null_mut())
        })
    }

    fn memory(&self) -> (Option<u64>, Option<u64>) {
        (None, self.0.info.memory_bytes)
    }

    fn load(&self, image: &Image<'_>) -> Result<Box<dyn Loaded>> {
        match image {
            Image::Code { compiled, .. } => Ok(Box::new(Kernel::load(self.0.clone(), compiled)?)),
            Image::Tile(_) => Err(Error::Unsupported {
                device: self.0.info.name.clone(),
                what: "run Tile IR without compiling it".into(),
                help: "use the `cpu` device",
            }),
        }
    }

    fn graph(&self, launches: &[RawLaunch<'_>]) -> Result<Option<Box<dyn RawGraph>>> {
        Ok(Some(Box::new(Graph::new(self.0.clone(), launches)?)))
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
        // SAFETY: the queue is alive.
        self.0.check("clFinish", unsafe { ffi::clFinish(self.0.queue) })
    }

    fn record(&self, _stream: RawStream) -> Result<Box<dyn RawEvent>> {
        let c = &self.0;
        let mut event = ptr::null_mut();
        // SAFETY: writes one handle, which `Event` releases.
        c.check("clEnqueueMarkerWithWaitList", unsafe {
            ffi::clEnqueueMarkerWithWaitList(c.queue, 0, ptr::null(), &mut event)
        })?;
        let event = Event { context: c.clone(), event };
        c.flush()?;
        Ok(Box::new(event))
    }

    fn wait_event(&self, _stream: RawStream, _event: &dyn RawEvent) -> Result<()> {
        // The event is of the same in-order queue, so everything queued later comes after it.
        Ok(())
    }
}

struct Event {
    context: Arc<Context>,
    event: cl_event,
}

// SAFETY: as for `Context`.
unsafe impl Send for Event {}
// SAFETY: as for `Context`.
unsafe impl Sync for Event {}

impl Event {
    /// When the marker was reached, in nanoseconds of the device's clock.
    fn end(&self) -> Result<u64> {
        self.wait()?;
        let mut ns = 0u64;
        let what = ffi::CL_PROFILING_COMMAND_END;
        // SAFETY: the property is one u64; the event is alive.
        let code = unsafe { ffi::clGetEventProfilingInfo(self.event, what, 8, (&raw mut ns).cast(), ptr::null_mut()) };
        self.context.check("clGetEventProfilingInfo", code)?;
        Ok(ns)
    }
}

impl RawEvent for Event {
    fn wait(&self) -> Result<()> {
        // SAFETY: one live event.
        self.context.check("clWaitForEvents", unsafe { ffi::clWaitForEvents(1, &self.event) })
    }

    fn is_done(&self) -> Result<bool> {
        let mut status: cl_int = 0;
        let what = ffi::CL_EVENT_COMMAND_EXECUTION_STATUS;
        // SAFETY: the property is one integer; the event is alive.
        let code = unsafe { ffi::clGetEventInfo(self.event, what, 4, (&raw mut status).cast(), ptr::null_mut()) };
        self.context.check("clGetEventInfo", code)?;
        if status < 0 {
            return Err(check(&self.context.info.name, "the work before an event", status)
                .expect_err("a negative status is an error"));
        }
        // 0 is CL_COMPLETE.
        Ok(status == 0)
    }

    fn elapsed_ms(&self, later: &dyn RawEvent) -> Result<f64> {
        let later = later.own::<Event>();
        let (from, to) = (self.end()?, later.end()?);
        Ok(to.wrapping_sub(from) as i64 as f64 * 1e-6)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: ours, released once.
        unsafe { ffi::clReleaseEvent(self.event) };
    }
}
