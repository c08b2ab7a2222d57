//! Kernels on an OpenCL device.

use super::context::Context;
use super::platform::{code_text, is_pocl_5};
use crate::backend::{Loaded, PackedArgs, RawStream};
use crate::error::{Error, Result};
use crate::metadata::Resources;
use ocl::core::ffi::{self, cl_kernel, cl_program};
use std::any::Any;
use std::ffi::CString;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};
use tilewright_compiler::target::{Code, Compiled};
use tilewright_compiler::thread::AbiTy;

/// A built kernel.
pub(super) struct Kernel {
    context: Arc<Context>,
    program: cl_program,
    /// Locked while arguments are set and the launch is queued: the kernel object holds the arguments.
    kernel: Mutex<RawKernel>,
    /// Bytes of each argument. A pointer parameter is two: a memory handle and a byte offset.
    pub sizes: Vec<usize>,
    pub threads: usize,
    entry: CString,
    resources: Resources,
}

struct RawKernel(cl_kernel);

// SAFETY: OpenCL's objects may be used from any thread; this one under a lock.
unsafe impl Send for RawKernel {}
// SAFETY: the program is only released; the kernel is behind a lock.
unsafe impl Send for Kernel {}
// SAFETY: as above.
unsafe impl Sync for Kernel {}

/// `-cl-std` as generated, and rounding as the language has it; nothing that loosens the meaning of floating point.
fn build_options(context: &Context) -> CString {
    let mut options = String::from("-cl-std=CL1.2");
    // Where it may be used at all, what it gets right was seen without optimisation.
    if is_pocl_5(&context.info.driver) {
        options.push_str(" -cl-opt-disable");
    }
    // Without it a quotient of `f32` may be off by 2.5 units in the last place, and is, by one, on NVIDIA's GPUs.
    if context.rounds_division {
        options.push_str(" -cl-fp32-correctly-rounded-divide-sqrt");
    }
    CString::new(options).expect("options are words without zeros")
}

impl Kernel {
    /// Builds from source.
    pub fn load(context: Arc<Context>, compiled: &Compiled) -> Result<Kernel> {
        let wrong = || {
            Error::Compile(tilewright_compiler::Error::Internal(
                "code of another language was compiled for OpenCL".into(),
            ))
        };
        let Code::OpenClC(source) = &compiled.code else { return Err(wrong()) };
        let entry = CString::new(compiled.entry.as_str()).map_err(|_| wrong())?;
        let _setting_up = super::one_at_a_time();
        let mut code = 0;
        let (mut text, length) = (source.as_ptr().cast(), source.len());
        // SAFETY: one string with its length.
        let program = unsafe { ffi::clCreateProgramWithSource(context.context, 1, &raw mut text, &length, &mut code) };
        context.check("clCreateProgramWithSource", code)?;
        // From here on `Drop` releases what is there.
        let mut this = Kernel {
            sizes: compiled
                .params
                .iter()
                .flat_map(|p| {
                    let pointer = p.ty == AbiTy::Ptr;
                    [Some(p.ty.bytes()), pointer.then_some(8)].into_iter().flatten()
                })
                .collect(),
            threads: compiled.threads as usize,
            entry,
            resources: Resources::default(),
            kernel: Mutex::new(RawKernel(ptr::null_mut())),
            program,
            context,
        };
        let options = build_options(&this.context);
        // SAFETY: the options end in 0; no callback.
        let code =
            unsafe { ffi::clBuildProgram(program, 1, &this.context.device, options.as_ptr(), None, ptr::null_mut()) };
        if code != ffi::CL_SUCCESS {
            let message = format!("{}\n{}", code_text(code), this.build_log());
            return Err(Error::Driver { device: this.context.info.name.clone(), call: "clBuildProgram", message });
        }
        let kernel = this.another()?;
        *this.kernel.get_mut().unwrap_or_else(PoisonError::into_inner) = RawKernel(kernel);
        let mut local = 0u64;
        // SAFETY: the property is one u64; kernel and device belong together.
        let code = unsafe {
            let what = ffi::CL_KERNEL_PRIVATE_MEM_SIZE;
            ffi::clGetKernelWorkGroupInfo(
                kernel,
                this.context.device,
                what,
                8,
                (&raw mut local).cast(),
                ptr::null_mut(),
            )
        };
        if code == ffi::CL_SUCCESS {
            this.resources.local_bytes = u32::try_from(local).ok();
        }
        Ok(this)
    }

    /// One more kernel object, for the caller to release.
    pub fn another(&self) -> Result<cl_kernel> {
        let mut code = 0;
        // SAFETY: the program is built; the name ends in 0.
        let kernel = unsafe { ffi::clCreateKernel(self.program, self.entry.as_ptr(), &mut code) };
        self.context.check("clCreateKernel", code)?;
        Ok(kernel)
    }

    fn build_log(&self) -> String {
        let (device, what) = (self.context.device, ffi::CL_PROGRAM_BUILD_LOG);
        let mut size = 0;
        // SAFETY: asks for the size alone.
        unsafe { ffi::clGetProgramBuildInfo(self.program, device, what, 0, ptr::null_mut(), &mut size) };
        let mut log = vec![0u8; size];
        // SAFETY: there is room for as many bytes as the driver said.
        unsafe {
            ffi::clGetProgramBuildInfo(self.program, device, what, size, log.as_mut_ptr().cast(), ptr::null_mut())
        };
        String::from_utf8_lossy(&log).trim_end_matches('\0').to_owned()
    }
}

impl Loaded for Kernel {
    fn launch(&self, _stream: RawStream, grid: [u32; 3], args: &PackedArgs<'_>) -> Result<()> {
        let c = &self.context;
        let kernel = self.kernel.lock().unwrap_or_else(PoisonError::into_inner);
        for (i, (word, &size)) in args.words.iter().zip(&self.sizes).enumerate() {
            set_argument(c, kernel.0, i, word, size)?;
        }
        enqueue(c, kernel.0, grid, self.threads)?;
        c.flush()
    }

    fn resources(&self) -> Resources {
        self.resources
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Sets one argument of a kernel object, which nobody else uses meanwhile.
pub(super) fn set_argument(c: &Context, kernel: cl_kernel, i: usize, word: &u64, size: usize) -> Result<()> {
    // SAFETY: the word's low bytes are the argument's value; the driver copies them. A memory handle is the value of a
    // `cl_mem`, 0 for memory without bytes.
    let code = unsafe { ffi::clSetKernelArg(kernel, i as u32, size, ptr::from_ref(word).cast()) };
    c.check("clSetKernelArg", code)
}

/// Queues a launch of a kernel object whose arguments are all set.
pub(super) fn enqueue(c: &Context, kernel: cl_kernel, grid: [u32; 3], threads: usize) -> Result<()> {
    let local = [threads, 1, 1];
    let global = [grid[0] as usize * threads, grid[1] as usize, grid[2] as usize];
    // SAFETY: all arguments are set; sizes have three extents as said.
    let code = unsafe {
        ffi::clEnqueueNDRangeKernel(
            c.queue,
            kernel,
            3,
            ptr::null(),
            global.as_ptr(),
            local.as_ptr(),
            0,
            ptr::null(),
            ptr::null_mut(),
        )
    };
    c.check("clEnqueueNDRangeKernel", code)
}

impl Drop for Kernel {
    fn drop(&mut self) {
        let kernel = self.kernel.get_mut().unwrap_or_else(PoisonError::into_inner).0;
        // SAFETY: ours, released once; launches in flight hold references of their own.
        unsafe {
            if !kernel.is_null() {
                ffi::clReleaseKernel(kernel);
            }
            ffi::clReleaseProgram(self.program);
        }
    }
}
