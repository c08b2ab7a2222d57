//! Finding OpenCL devices and what each can do.

use crate::device::{DeviceInfo, DeviceKind, Hardware};
use crate::error::{Error, Result};
use ocl::core::ffi::{self, cl_device_id, cl_int, cl_platform_id};
use std::ffi::c_void;
use tilewright_compiler::target::Caps;

/// `CL_DEVICE_DOUBLE_FP_CONFIG`, which the bindings have only with OpenCL 1.2's headers turned on.
const DEVICE_DOUBLE_FP_CONFIG: u32 = 0x1032;

/// A device before it is opened.
pub(super) struct Found {
    pub id: cl_device_id,
    pub platform: cl_platform_id,
    pub info: DeviceInfo,
    pub caps: Caps,
    /// Most bytes of one buffer.
    pub max_bytes: u64,
    /// Bytes that every buffer is aligned to.
    pub base_align: u64,
    /// Can quotients and square roots of `f32` be asked to be rounded correctly?
    pub rounds_division: bool,
}

/// The devices of all platforms, in order.
pub(super) fn find() -> Vec<Found> {
    let _setting_up = super::one_at_a_time();
    // `ocl`'s own function waits for seconds when there is no platform.
    let platforms = ids(|n, out, count| {
        // SAFETY: room for `n` handles, or none asked for.
        unsafe { ffi::clGetPlatformIDs(n, out, count) }
    });
    let mut found = Vec::new();
    for platform in platforms {
        let devices = ids(|n, out, count| {
            // SAFETY: the platform is valid; room for `n` handles, or none asked for.
            unsafe { ffi::clGetDeviceIDs(platform, ffi::CL_DEVICE_TYPE_ALL, n, out, count) }
        });
        for id in devices {
            found.push(query(platform, id, found.len()));
        }
    }
    found
}

/// The devices, if there are any.
pub(crate) fn list() -> Vec<DeviceInfo> {
    find().into_iter().map(|d| d.info).collect()
}

fn ids(get: impl Fn(u32, *mut *mut c_void, *mut u32) -> cl_int) -> Vec<*mut c_void> {
    let mut count = 0;
    if get(0, std::ptr::null_mut(), &mut count) != ffi::CL_SUCCESS || count == 0 {
        return Vec::new();
    }
    let mut out = vec![std::ptr::null_mut(); count as usize];
    let mut given = 0;
    if get(count, out.as_mut_ptr(), &mut given) != ffi::CL_SUCCESS {
        return Vec::new();
    }
    out.truncate(given.min(count) as usize);
    out
}

fn query(platform: cl_platform_id, id: cl_device_id, index: usize) -> Found {
    let model = text(id, ffi::CL_DEVICE_NAME);
    let kind = number(id, ffi::CL_DEVICE_TYPE);
    let memory = number(id, ffi::CL_DEVICE_GLOBAL_MEM_SIZE);
    let version = text(id, ffi::CL_DEVICE_VERSION);
    let driver = format!("{version} {}", text(id, ffi::CL_DRIVER_VERSION));
    let unusable = if number(id, ffi::CL_DEVICE_AVAILABLE) == 0 {
        Some("it is not available")
    } else if number(id, ffi::CL_DEVICE_COMPILER_AVAILABLE) == 0 {
        Some("it has no compiler")
    } else if number(id, ffi::CL_DEVICE_ENDIAN_LITTLE) == 0 {
        Some("it is big-endian")
    } else if number(id, ffi::CL_DEVICE_ADDRESS_BITS) != 64 {
        Some("its addresses have not 64 bits")
    } else if version.starts_with("OpenCL 1.0") || version.starts_with("OpenCL 1.1") {
        Some("it is older than OpenCL 1.2")
    } else if is_pocl_5(&driver) && std::env::var("POCL_WORK_GROUP_METHOD").as_deref() != Ok("cbs") {
        Some(
            "PoCL 5 gives wrong results where kernels have barriers in loops; install PoCL 6, or set POCL_WORK_GROUP_METHOD=cbs",
        )
    } else {
        None
    };
    let threads = number(id, ffi::CL_DEVICE_MAX_WORK_GROUP_SIZE)
        .min(numbers(id, ffi::CL_DEVICE_MAX_WORK_ITEM_SIZES).first().copied().unwrap_or(1));
    let small = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    let shared = small(number(id, ffi::CL_DEVICE_LOCAL_MEM_SIZE));
    let mut caps = Caps::opencl(model.clone(), small(threads), shared, number(id, DEVICE_DOUBLE_FP_CONFIG) != 0);
    caps.max_param_bytes = small(number(id, ffi::CL_DEVICE_MAX_PARAMETER_SIZE));
    Found {
        id,
        platform,
        caps,
        max_bytes: number(id, ffi::CL_DEVICE_MAX_MEM_ALLOC_SIZE),
        base_align: number(id, ffi::CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8,
        rounds_division: number(id, ffi::CL_DEVICE_SINGLE_FP_CONFIG) & ffi::CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT != 0,
        info: DeviceInfo {
            name: format!("opencl:{index}"),
            kind: DeviceKind::OpenCl,
            driver,
            model,
            memory_bytes: (memory > 0).then_some(memory),
            gpu: kind & ffi::CL_DEVICE_TYPE_GPU != 0,
            hardware: Hardware {
                processors: Some(small(number(id, ffi::CL_DEVICE_MAX_COMPUTE_UNITS))).filter(|&n| n > 0),
                ..Hardware::default()
            },
            unusable: unusable.map(str::to_owned),
        },
    }
}

/// Is it the driver ([`DeviceInfo::driver`]) that miscompiles work-items with barriers in loops? PoCL 5.0 (of Ubuntu 24.04) did on a
/// processor with AVX-512, attention and the gradient of layer norm among them. With its other way of making loops of
/// work-items (`cbs`) results were right; so are those of PoCL 3.1 and 6.0 as they come.
pub(super) fn is_pocl_5(driver: &str) -> bool {
    driver.contains("PoCL") && driver.rsplit(' ').next().is_some_and(|v| v.starts_with("5."))
}

/// The bytes of one of a device's properties; empty if it has not this property.
fn bytes(id: cl_device_id, what: u32) -> Vec<u8> {
    let mut size = 0;
    // SAFETY: asks for the size alone.
    if unsafe { ffi::clGetDeviceInfo(id, what, 0, std::ptr::null_mut(), &mut size) } != ffi::CL_SUCCESS {
        return Vec::new();
    }
    let mut out = vec![0u8; size];
    // SAFETY: there is room for as many bytes as the driver said.
    let code = unsafe { ffi::clGetDeviceInfo(id, what, size, out.as_mut_ptr().cast(), std::ptr::null_mut()) };
    if code == ffi::CL_SUCCESS { out } else { Vec::new() }
}

fn text(id: cl_device_id, what: u32) -> String {
    String::from_utf8_lossy(&bytes(id, what)).trim_end_matches('\0').trim().to_owned()
}

/// A property that is a number of any width; 0 if the device has it not.
fn number(id: cl_device_id, what: u32) -> u64 {
    let mut word = [0; 8];
    let bytes = bytes(id, what);
    let n = bytes.len().min(8);
    word[..n].copy_from_slice(&bytes[..n]);
    u64::from_ne_bytes(word)
}

/// A property that is a list of `size_t`.
fn numbers(id: cl_device_id, what: u32) -> Vec<u64> {
    bytes(id, what).as_chunks::<8>().0.iter().map(|c| u64::from_ne_bytes(*c)).collect()
}

/// A result code as our error.
pub(super) fn check(device: &str, call: &'static str, code: cl_int) -> Result<()> {
    if code == ffi::CL_SUCCESS {
        return Ok(());
    }
    Err(Error::Driver { device: device.to_owned(), call, message: code_text(code) })
}

/// The codes a launch or a copy can meet, by name.
pub(super) fn code_text(code: cl_int) -> String {
    let name = match code {
        -2 => "CL_DEVICE_NOT_AVAILABLE",
        -4 => "CL_MEM_OBJECT_ALLOCATION_FAILURE",
        -5 => "CL_OUT_OF_RESOURCES",
        -6 => "CL_OUT_OF_HOST_MEMORY",
        -7 => "CL_PROFILING_INFO_NOT_AVAILABLE",
        -11 => "CL_BUILD_PROGRAM_FAILURE",
        -14 => "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST",
        -30 => "CL_INVALID_VALUE",
        -33 => "CL_INVALID_DEVICE",
        -34 => "CL_INVALID_CONTEXT",
        -36 => "CL_INVALID_COMMAND_QUEUE",
        -38 => "CL_INVALID_MEM_OBJECT",
        -43 => "CL_INVALID_BUILD_OPTIONS",
        -46 => "CL_INVALID_KERNEL_NAME",
        -49 => "CL_INVALID_ARG_INDEX",
        -50 => "CL_INVALID_ARG_VALUE",
        -51 => "CL_INVALID_ARG_SIZE",
        -52 => "CL_INVALID_KERNEL_ARGS",
        -54 => "CL_INVALID_WORK_GROUP_SIZE",
        -55 => "CL_INVALID_WORK_ITEM_SIZE",
        -58 => "CL_INVALID_EVENT",
        -61 => "CL_INVALID_BUFFER_SIZE",
        -63 => "CL_INVALID_GLOBAL_WORK_SIZE",
        _ => "an OpenCL error",
    };
    format!("{name} ({code})")
}

#[cfg(test)]
mod tests {
    use super::is_pocl_5;

    #[test]
    fn pocl_5_is_known_by_its_version() {
        let driver = |version: &str| format!("OpenCL 3.0 PoCL HSTR: cpu-x86_64-pc-linux-gnu-skylake-avx512 {version}");
        assert!(is_pocl_5(&driver("5.0")));
        for other in [driver("3.1"), driver("6.0"), "OpenCL 3.0 CUDA 550.54".into(), "OpenCL 3.0 NEO 5.1".into()] {
            assert!(!is_pocl_5(&other), "{other}");
        }
    }
}
