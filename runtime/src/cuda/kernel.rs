//! Kernels on a CUDA device.

use super::assembler::JitLog;
use super::context::Context;
use crate::backend::{Loaded, PackedArgs, RawStream};
use crate::error::{Error, Result};
use crate::metadata::Resources;
use cudarc::driver::sys::{self, CUfunction, CUfunction_attribute, CUmodule};
use std::any::Any;
use std::ffi::{CString, c_int, c_uint, c_void};
use std::ptr;
use std::sync::Arc;
use tilewright_compiler::target::{Code, Compiled};

/// Shared memory of a block beyond which the function must opt in.
const SHARED_WITHOUT_OPT_IN: u32 = 48 * 1024;
/// Parameters whose addresses fit on the stack.
const INLINE_PARAMS: usize = 64;

/// A loaded kernel.
pub(super) struct Kernel {
    context: Arc<Context>,
    module: CUmodule,
    pub function: CUfunction,
    pub threads: c_uint,
    pub shared_bytes: c_uint,
    resources: Resources,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Kernel {}
// SAFETY: the driver locks for itself.
unsafe impl Sync for Kernel {}

impl Kernel {
    /// Loads machine code, or PTX through the driver's compiler. The context is current.
    pub fn load(context: Arc<Context>, compiled: &Compiled, binary: Option<&[u8]>) -> Result<Kernel> {
        let mut module = ptr::null_mut();
        match (binary, &compiled.code) {
            (Some(cubin), _) => {
                // SAFETY: the image is a whole cubin, which says its own length; it is copied.
                let code = unsafe { sys::cuModuleLoadData(&mut module, cubin.as_ptr().cast()) };
                context.check("cuModuleLoadData", code)?;
            }
            (None, Code::Ptx(text)) => {
                let text = c_string(text)?;
                let mut log = JitLog::new();
                let (mut options, mut values) = log.options();
                // SAFETY: the image is a string ended by 0; options and values are two arrays of the same length, and the
                // buffers they name outlive the call.
                let code = unsafe {
                    sys::cuModuleLoadDataEx(
                        &mut module,
                        text.as_ptr().cast(),
                        options.len() as c_uint,
                        options.as_mut_ptr(),
                        values.as_mut_ptr(),
                    )
                };
                context.check("cuModuleLoadDataEx", code).map_err(|e| log.explain(e))?;
            }
            (None, Code::SpirV(_) | Code::OpenClC(_)) => {
                return Err(Error::Compile(tilewright_compiler::Error::Internal(
                    "code of another language was compiled for a CUDA device".into(),
                )));
            }
        }
        // From here on `Drop` unloads the module.
        let mut kernel = Kernel {
            context,
            module,
            function: ptr::null_mut(),
            threads: compiled.threads,
            shared_bytes: compiled.shared_bytes,
            resources: Resources::default(),
        };
        let entry = c_string(&compiled.entry)?;
        // SAFETY: writes one handle; the module is loaded, the name ends in 0.
        let code = unsafe { sys::cuModuleGetFunction(&mut kernel.function, module, entry.as_ptr()) };
        kernel.context.check("cuModuleGetFunction", code)?;
        if compiled.shared_bytes > SHARED_WITHOUT_OPT_IN {
            let which = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            // SAFETY: the function is of the loaded module.
            let code = unsafe { sys::cuFuncSetAttribute(kernel.function, which, compiled.shared_bytes as c_int) };
            kernel.context.check("cuFuncSetAttribute", code)?;
        }
        kernel.resources = Resources {
            registers: Some(kernel.attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?),
            local_bytes: Some(kernel.attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?),
            code_bytes: binary.map(|b| b.len() as u64),
            spill_bytes: None,
        };
        Ok(kernel)
    }

    fn attribute(&self, which: CUfunction_attribute) -> Result<u32> {
        let mut value = 0;
        // SAFETY: writes one integer; the function is of the loaded module.
        let code = unsafe { sys::cuFuncGetAttribute(&mut value, which, self.function) };
        self.context.check("cuFuncGetAttribute", code)?;
        Ok(value.unsigned_abs())
    }
}

impl Loaded for Kernel {
    fn launch(&self, stream: RawStream, grid: [u32; 3], args: &PackedArgs<'_>) -> Result<()> {
        self.context.bind()?;
        let stream = self.context.stream_for(stream)?;
        // The driver wants the address of each parameter's value and reads as many bytes as the parameter has.
        let mut inline = [ptr::null_mut::<c_void>(); INLINE_PARAMS];
        let mut spilled: Vec<*mut c_void>;
        let address = |word: &u64| ptr::from_ref(word).cast_mut().cast::<c_void>();
        let params: *mut *mut c_void = if args.words.len() <= INLINE_PARAMS {
            for (slot, word) in inline.iter_mut().zip(args.words) {
                *slot = address(word);
            }
            inline.as_mut_ptr()
        } else {
            spilled = args.words.iter().map(address).collect();
            spilled.as_mut_ptr()
        };
        // SAFETY: the function is loaded in the current context. It has one parameter of at most 8 bytes for each word: the
        // compiler of the launch has checked their number. The driver copies the values before it returns.
        let code = unsafe {
            sys::cuLaunchKernel(
                self.function,
                grid[0],
                grid[1],
                grid[2],
                self.threads,
                1,
                1,
                self.shared_bytes,
                stream,
                params,
                ptr::null_mut(),
            )
        };
        self.context.check("cuLaunchKernel", code)
    }

    fn resources(&self) -> Resources {
        self.resources
    }

    fn programs_per_processor(&self) -> Option<u32> {
        self.context.bind().ok()?;
        let (mut programs, threads) = (0, self.threads as c_int);
        // SAFETY: writes one integer; the function is of the loaded module.
        let code = unsafe {
            sys::cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &mut programs,
                self.function,
                threads,
                self.shared_bytes as usize,
            )
        };
        self.context.check("cuOccupancyMaxActiveBlocksPerMultiprocessor", code).ok()?;
        u32::try_from(programs).ok()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: loaded once, unloaded once; the driver waits for launches in flight.
            unsafe { sys::cuModuleUnload(self.module) };
        }
    }
}

/// A string for the driver.
pub(super) fn c_string(text: &str) -> Result<CString> {
    CString::new(text)
        .map_err(|_| Error::Compile(tilewright_compiler::Error::Internal("generated code contains a zero byte".into())))
}
