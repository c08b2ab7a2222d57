//! The CUDA driver: whether it is there, its devices, its errors.

use crate::device::{DeviceInfo, DeviceKind, Hardware};
use crate::error::{Error, Result};
use cudarc::driver::sys::{self, CUdevice, CUdevice_attribute, CUresult};
use std::ffi::{CStr, c_int};
use std::sync::OnceLock;

/// The oldest driver that has every function used here: CUDA 11.2 brought stream-ordered allocation.
const OLDEST_DRIVER: c_int = 11_020;
/// The oldest architecture that code is generated for.
const OLDEST_SM: u32 = 80;

/// The driver's version (1000 * major + 10 * minor), or why there is no driver. Initialised once.
pub(super) fn init() -> Result<c_int, String> {
    static DRIVER: OnceLock<Result<c_int, String>> = OnceLock::new();
    DRIVER
        .get_or_init(|| {
            // Every other function would panic without the library.
            // SAFETY: opens the driver's library, whose initialisers are meant to be run by any program.
            if !unsafe { sys::is_culib_present() } {
                return Err("the CUDA driver library (libcuda) is not installed".into());
            }
            let mut version = 0;
            // SAFETY: writes one integer; needs no initialisation.
            let code = unsafe { sys::cuDriverGetVersion(&mut version) };
            if code != CUresult::CUDA_SUCCESS {
                return Err(format!("cuDriverGetVersion failed: {}", text(code)));
            }
            if version < OLDEST_DRIVER {
                return Err(format!(
                    "the CUDA driver is of version {}; at least 11.2 is needed",
                    version_text(version)
                ));
            }
            // SAFETY: the flags must be 0; may be called any number of times.
            let code = unsafe { sys::cuInit(0) };
            if code != CUresult::CUDA_SUCCESS {
                return Err(format!("cuInit failed: {}", text(code)));
            }
            Ok(version)
        })
        .clone()
}

/// `13.0` for 13000.
pub(super) fn version_text(version: c_int) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

/// The devices, if there are any.
pub(crate) fn list() -> Vec<DeviceInfo> {
    let Ok(version) = init() else { return Vec::new() };
    (0..count()).filter_map(|i| info(i, version).ok().map(|(_, info, _)| info)).collect()
}

/// How many devices there are.
pub(super) fn count() -> usize {
    let mut n = 0;
    // SAFETY: writes one integer; the driver is initialised, or it answers with an error.
    let code = unsafe { sys::cuDeviceGetCount(&mut n) };
    if code == CUresult::CUDA_SUCCESS { usize::try_from(n).unwrap_or(0) } else { 0 }
}

/// Handle, description and compute capability of device `index`.
pub(super) fn info(index: usize, version: c_int) -> Result<(CUdevice, DeviceInfo, u32)> {
    let name = format!("cuda:{index}");
    let ordinal = c_int::try_from(index).unwrap_or(c_int::MAX);
    let mut device = 0;
    // SAFETY: writes one handle.
    check(&name, "cuDeviceGet", unsafe { sys::cuDeviceGet(&mut device, ordinal) })?;
    let mut model = [0; 128];
    // SAFETY: writes at most 128 bytes, ended by 0.
    check(&name, "cuDeviceGetName", unsafe { sys::cuDeviceGetName(model.as_mut_ptr(), 128, device) })?;
    let mut bytes = 0;
    // SAFETY: writes one integer.
    check(&name, "cuDeviceTotalMem", unsafe { sys::cuDeviceTotalMem_v2(&mut bytes, device) })?;
    let major = attribute(&name, device, CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
    let minor = attribute(&name, device, CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
    let sm = (major * 10 + minor).unsigned_abs();
    // SAFETY: the driver has written a string ended by 0 to the array, which was all 0 before.
    let model = unsafe { CStr::from_ptr(model.as_ptr()) }.to_string_lossy().into_owned();
    let unusable = (sm < OLDEST_SM).then(|| {
        format!("its compute capability is {major}.{minor}; at least 8.0 is needed for the code generated here")
    });
    // What a driver does not tell is not known; nothing depends on it but speed.
    let ask = |which| attribute(&name, device, which).ok().and_then(|n| u32::try_from(n).ok()).filter(|&n| n > 0);
    let hardware = Hardware {
        processors: ask(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
        registers: ask(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR),
        shared_bytes: ask(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
        threads: ask(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR),
        l2_bytes: ask(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE).map(u64::from),
    };
    let info = DeviceInfo {
        name,
        kind: DeviceKind::Cuda,
        model,
        driver: version_text(version),
        memory_bytes: Some(bytes as u64),
        gpu: true,
        hardware,
        unusable,
    };
    Ok((device, info, sm))
}

/// One of a device's attributes.
pub(super) fn attribute(name: &str, device: CUdevice, which: CUdevice_attribute) -> Result<c_int> {
    let mut value = 0;
    // SAFETY: writes one integer.
    check(name, "cuDeviceGetAttribute", unsafe { sys::cuDeviceGetAttribute(&mut value, which, device) })?;
    Ok(value)
}

/// A result code as our error.
pub(super) fn check(device: &str, call: &'static str, code: CUresult) -> Result<()> {
    match code {
        CUresult::CUDA_SUCCESS => Ok(()),
        _ => Err(error(device, call, code)),
    }
}

#[cold]
fn error(device: &str, call: &'static str, code: CUresult) -> Error {
    if is_fatal(code) {
        return Error::DeviceLost { device: device.to_owned(), cause: format!("{call} reported {}", text(code)) };
    }
    Error::Driver { device: device.to_owned(), call, message: text(code) }
}

/// Errors after which the context answers every call with the same error.
pub(super) fn is_fatal(code: CUresult) -> bool {
    matches!(
        code,
        CUresult::CUDA_ERROR_ECC_UNCORRECTABLE
            | CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
            | CUresult::CUDA_ERROR_LAUNCH_TIMEOUT
            | CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED
            | CUresult::CUDA_ERROR_ASSERT
            | CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR
            | CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION
            | CUresult::CUDA_ERROR_MISALIGNED_ADDRESS
            | CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE
            | CUresult::CUDA_ERROR_INVALID_PC
            | CUresult::CUDA_ERROR_LAUNCH_FAILED
    )
}

/// `CUDA_ERROR_INVALID_VALUE (invalid argument)`.
pub(super) fn text(code: CUresult) -> String {
    let mut description = std::ptr::null();
    // SAFETY: writes a pointer to a static string, or null.
    let known = unsafe { sys::cuGetErrorString(code, &mut description) } == CUresult::CUDA_SUCCESS;
    if !known || description.is_null() {
        return format!("{code:?}");
    }
    // SAFETY: a static string ended by 0.
    let description = unsafe { CStr::from_ptr(description) }.to_string_lossy();
    format!("{code:?} ({description})")
}
