//! The CUDA driver without us: an empty kernel launched by `cuLaunchKernel`, the least a launch can cost.

use cudarc::driver::sys::{self, CUdevice, CUdevice_attribute, CUfunction, CUmodule, CUresult, CUstream};
use std::ffi::{c_int, c_uint, c_void};
use std::ptr;

/// A kernel with three pointers that does nothing.
const EMPTY: &std::ffi::CStr = c".version 7.0
.target sm_80
.address_size 64
.visible .entry empty(.param .u64 a, .param .u64 b, .param .u64 c)
{
    ret;
}
";

/// What the driver tells of a GPU beyond its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Facts {
    /// How many multiprocessors.
    pub multiprocessors: i32,
    /// Bytes of its second-level cache.
    pub l2_bytes: i32,
}

/// The number in a name such as `cuda:0`; `None` for other devices.
pub fn index_of(device: &str) -> Option<c_int> {
    device.strip_prefix("cuda:")?.parse().ok()
}

/// Facts of CUDA device `index`, if the driver is there.
pub fn facts(index: c_int) -> Option<Facts> {
    let device = device(index).ok()?;
    let get = |which| {
        let mut value = 0;
        // SAFETY: writes one integer; the driver is initialised.
        let code = unsafe { sys::cuDeviceGetAttribute(&mut value, which, device) };
        (code == CUresult::CUDA_SUCCESS).then_some(value)
    };
    Some(Facts {
        multiprocessors: get(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        l2_bytes: get(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?,
    })
}

fn device(index: c_int) -> Result<CUdevice, String> {
    // Every other function would panic without the library.
    // SAFETY: opens the driver's library, whose initialisers are meant to be run by any program.
    if !unsafe { sys::is_culib_present() } {
        return Err("the CUDA driver library is not installed".into());
    }
    // SAFETY: the flags must be 0; may be called any number of times.
    check("cuInit", unsafe { sys::cuInit(0) })?;
    let mut device = 0;
    // SAFETY: writes one handle.
    check("cuDeviceGet", unsafe { sys::cuDeviceGet(&mut device, index) })?;
    Ok(device)
}

fn check(call: &str, code: CUresult) -> Result<(), String> {
    if code == CUresult::CUDA_SUCCESS { Ok(()) } else { Err(format!("{call} failed: {code:?}")) }
}

/// The empty kernel, loaded, and a stream to launch it on.
pub struct Bare {
    device: CUdevice,
    module: CUmodule,
    function: CUfunction,
    stream: CUstream,
}

impl Bare {
    /// On CUDA device `index`, in its primary context, which becomes current on this thread.
    ///
    /// # Errors
    /// What the driver says.
    pub fn new(index: c_int) -> Result<Self, String> {
        let device = device(index)?;
        let mut context = ptr::null_mut();
        // SAFETY: writes one handle; `Drop` releases it.
        check("cuDevicePrimaryCtxRetain", unsafe { sys::cuDevicePrimaryCtxRetain(&mut context, device) })?;
        let mut bare = Self { device, module: ptr::null_mut(), function: ptr::null_mut(), stream: ptr::null_mut() };
        // SAFETY: the context is retained until `Drop`.
        check("cuCtxSetCurrent", unsafe { sys::cuCtxSetCurrent(context) })?;
        // SAFETY: the image is PTX text ended by 0.
        check("cuModuleLoadData", unsafe { sys::cuModuleLoadData(&mut bare.module, EMPTY.as_ptr().cast()) })?;
        // SAFETY: writes one handle; the module is loaded, the name ends in 0.
        check("cuModuleGetFunction", unsafe {
            sys::cuModuleGetFunction(&mut bare.function, bare.module, c"empty".as_ptr())
        })?;
        // 1 is CU_STREAM_NON_BLOCKING: as our own streams are.
        // SAFETY: writes one handle.
        check("cuStreamCreate", unsafe { sys::cuStreamCreate(&mut bare.stream, 1) })?;
        Ok(bare)
    }

    /// One launch of one block of `threads`.
    ///
    /// # Errors
    /// What the driver says.
    #[inline]
    pub fn launch(&self, threads: c_uint) -> Result<(), String> {
        let mut words = [0u64; 3];
        let mut params: [*mut c_void; 3] = words.each_mut().map(|w| ptr::from_mut(w).cast());
        // SAFETY: the function has three parameters of 8 bytes, which the driver copies before it returns and which the
        // kernel never uses.
        let code = unsafe {
            sys::cuLaunchKernel(
                self.function,
                1,
                1,
                1,
                threads,
                1,
                1,
                0,
                self.stream,
                params.as_mut_ptr(),
                ptr::null_mut(),
            )
        };
        check("cuLaunchKernel", code)
    }

    /// Waits for all launches.
    ///
    /// # Errors
    /// What the driver says.
    pub fn synchronize(&self) -> Result<(), String> {
        // SAFETY: the stream is alive.
        check("cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(self.stream) })
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        // SAFETY: the handles are ours, each is destroyed once, and null ones are left out; the release matches the retain
        // in `new`.
        unsafe {
            if !self.stream.is_null() {
                sys::cuStreamSynchronize(self.stream);
                sys::cuStreamDestroy_v2(self.stream);
            }
            if !self.module.is_null() {
                sys::cuModuleUnload(self.module);
            }
            sys::cuDevicePrimaryCtxRelease_v2(self.device);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_cuda_devices_have_numbers() {
        assert_eq!((index_of("cuda:3"), index_of("cpu"), index_of("vulkan:0")), (Some(3), None, None));
    }

    #[test]
    fn an_absent_driver_is_an_error() {
        // On a machine with a driver, a device that is not there.
        assert!(Bare::new(9999).is_err());
        assert_eq!(facts(9999), None);
    }
}
