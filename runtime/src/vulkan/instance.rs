//! Finding Vulkan devices and what each can do.

use crate::device::{DeviceInfo, DeviceKind, Hardware};
use crate::error::{Error, Result};
use ash::vk;
use std::ffi::CStr;
use std::sync::{Mutex, PoisonError};
use tilewright_compiler::target::Caps;

/// The process's Vulkan instance.
///
/// There is one, and it is never destroyed: with the last instance the loader unloads the drivers. With NVIDIA's driver 580, threads
/// were seen to crash as they ended, in a thread-local destructor whose library was gone; unloading is the likely cause.
pub(super) struct Instance {
    pub instance: ash::Instance,
    // The library must outlive the instance.
    _entry: ash::Entry,
}

impl Instance {
    /// The instance, made when it is first asked for; `Err` says why there is none.
    pub fn shared() -> Result<&'static Instance, String> {
        static SHARED: Mutex<Option<&'static Instance>> = Mutex::new(None);
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        match *shared {
            Some(instance) => Ok(instance),
            None => Ok(shared.insert(Box::leak(Box::new(Instance::new()?)))),
        }
    }

    fn new() -> Result<Instance, String> {
        // SAFETY: opens the system's Vulkan loader, whose initialisers are meant to be run by any program.
        let entry = unsafe { ash::Entry::load() }
            .map_err(|e| format!("the Vulkan loader (libvulkan) is not installed: {e}"))?;
        // SAFETY: no arguments.
        let version = unsafe { entry.try_enumerate_instance_version() }.ok().flatten().unwrap_or(vk::API_VERSION_1_0);
        if version < vk::API_VERSION_1_2 {
            return Err("the Vulkan loader is older than version 1.2".into());
        }
        let app = vk::ApplicationInfo::default().application_name(c"tilewright").api_version(vk::API_VERSION_1_3);
        let create = vk::InstanceCreateInfo::default().application_info(&app);
        // SAFETY: all pointers in the structure are to live values.
        let instance = unsafe { entry.create_instance(&create, None) }
            .map_err(|e| format!("vkCreateInstance failed: {e:?} (is a Vulkan driver installed?)"))?;
        Ok(Instance { instance, _entry: entry })
    }

    /// The devices, in the driver's order.
    pub fn devices(&self) -> Result<Vec<vk::PhysicalDevice>, String> {
        // SAFETY: the instance is alive.
        unsafe { self.instance.enumerate_physical_devices() }
            .map_err(|e| format!("vkEnumeratePhysicalDevices failed: {e:?}"))
    }
}

/// The devices, if there are any.
pub(crate) fn list() -> Vec<DeviceInfo> {
    let Ok(instance) = Instance::shared() else { return Vec::new() };
    let devices = instance.devices().unwrap_or_default();
    devices.iter().enumerate().map(|(i, &d)| Traits::query(instance, i, d).info).collect()
}

/// What is known of a device before it is opened.
pub(super) struct Traits {
    pub info: DeviceInfo,
    pub limits: vk::PhysicalDeviceLimits,
    /// The queue family that work goes to, and the bits of its timestamps (0: none).
    pub family: u32,
    pub timestamp_bits: u32,
    /// May pipelines demand full subgroups of `caps.warp_width`?
    pub full_subgroups: bool,
    /// Most bytes of one allocation and of one buffer.
    pub max_bytes: u64,
    pub caps: Caps,
    pub features: Features,
}

/// The features of a device, in the structures that ask for them and turn them on.
#[derive(Default)]
pub(super) struct Features {
    pub core: vk::PhysicalDeviceFeatures,
    pub v11: vk::PhysicalDeviceVulkan11Features<'static>,
    pub v12: vk::PhysicalDeviceVulkan12Features<'static>,
    pub v13: vk::PhysicalDeviceVulkan13Features<'static>,
    /// Does the device have version 1.3, so that `v13` means something?
    pub has_v13: bool,
}

impl Features {
    fn query(instance: &ash::Instance, device: vk::PhysicalDevice, has_v13: bool) -> Features {
        let mut f = Features { has_v13, ..Features::default() };
        let mut query = vk::PhysicalDeviceFeatures2::default().push_next(&mut f.v11).push_next(&mut f.v12);
        if has_v13 {
            query = query.push_next(&mut f.v13);
        }
        // SAFETY: the chain's structures are of versions that the device has, and are alive.
        unsafe { instance.get_physical_device_features2(device, &mut query) };
        f.core = query.features;
        // The chain's pointers end with this function.
        (f.v11.p_next, f.v12.p_next, f.v13.p_next) = (std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null_mut());
        // What costs time or is of no use here stays off.
        f.core.robust_buffer_access = vk::FALSE;
        f.v11.protected_memory = vk::FALSE;
        f.v12.buffer_device_address_capture_replay = vk::FALSE;
        f.v12.buffer_device_address_multi_device = vk::FALSE;
        f.v13.robust_image_access = vk::FALSE;
        f
    }

    /// Why the device cannot run what is generated, if so.
    fn lacking(&self) -> Option<&'static str> {
        match () {
            () if self.v12.buffer_device_address == vk::FALSE => Some("it lacks buffer device addresses"),
            () if self.core.shader_int64 == vk::FALSE => Some("it lacks 64-bit integers in shaders"),
            () if self.v12.vulkan_memory_model == vk::FALSE => Some("it lacks the Vulkan memory model"),
            () if self.v12.timeline_semaphore == vk::FALSE => Some("it lacks timeline semaphores"),
            () => None,
        }
    }
}

impl Traits {
    /// Asks the driver. A device that cannot be used says so in `info.unusable`.
    pub fn query(instance: &Instance, index: usize, device: vk::PhysicalDevice) -> Traits {
        let instance = &instance.instance;
        // SAFETY: the device is of this instance.
        let basic = unsafe { instance.get_physical_device_properties(device) };
        let version = basic.api_version;
        let (new_enough, has_v13) = (version >= vk::API_VERSION_1_2, version >= vk::API_VERSION_1_3);
        let mut subgroup = vk::PhysicalDeviceVulkan11Properties::default();
        let mut driver = vk::PhysicalDeviceVulkan12Properties::default();
        let mut v13 = vk::PhysicalDeviceVulkan13Properties::default();
        let mut features = Features::default();
        if new_enough {
            let mut query = vk::PhysicalDeviceProperties2::default().push_next(&mut subgroup).push_next(&mut driver);
            if has_v13 {
                query = query.push_next(&mut v13);
            }
            // SAFETY: as in `Features::query`.
            unsafe { instance.get_physical_device_properties2(device, &mut query) };
            features = Features::query(instance, device, has_v13);
        }
        // SAFETY: the device is of this instance.
        let (families, memory) = unsafe {
            (
                instance.get_physical_device_queue_family_properties(device),
                instance.get_physical_device_memory_properties(device),
            )
        };
        // A family for compute alone runs beside graphics; else any that computes.
        let computes = |f: &vk::QueueFamilyProperties| f.queue_flags.contains(vk::QueueFlags::COMPUTE);
        let family = families
            .iter()
            .position(|f| computes(f) && !f.queue_flags.contains(vk::QueueFlags::GRAPHICS))
            .or_else(|| families.iter().position(computes));

        let name = format!("vulkan:{index}");
        let model = text(&basic.device_name);
        let unusable = if !new_enough {
            Some("it is older than Vulkan 1.2".to_owned())
        } else if family.is_none() {
            Some("it has no queue for compute".to_owned())
        } else {
            features.lacking().map(str::to_owned)
        };
        let info = DeviceInfo {
            kind: DeviceKind::Vulkan,
            driver: format!(
                "{} {} ({:#x})",
                text(&driver.driver_name),
                text(&driver.driver_info),
                basic.driver_version
            ),
            memory_bytes: memory
                .memory_heaps_as_slice()
                .iter()
                .filter(|h| h.flags.contains(vk::MemoryHeapFlags::DEVICE_LOCAL))
                .map(|h| h.size)
                .max(),
            gpu: matches!(
                basic.device_type,
                vk::PhysicalDeviceType::DISCRETE_GPU
                    | vk::PhysicalDeviceType::INTEGRATED_GPU
                    | vk::PhysicalDeviceType::VIRTUAL_GPU
            ),
            hardware: hardware(instance, device),
            name,
            model,
            unusable,
        };

        let limits = basic.limits;
        let shuffles = vk::SubgroupFeatureFlags::BASIC | vk::SubgroupFeatureFlags::SHUFFLE;
        let full_subgroups = has_v13
            && features.v13.compute_full_subgroups == vk::TRUE
            && features.v13.subgroup_size_control == vk::TRUE
            && v13.required_subgroup_size_stages.contains(vk::ShaderStageFlags::COMPUTE);
        // Without full subgroups a lane's neighbours are not where a shuffle looks for them.
        let warp_width = if full_subgroups
            && subgroup.subgroup_supported_stages.contains(vk::ShaderStageFlags::COMPUTE)
            && subgroup.subgroup_supported_operations.contains(shuffles)
            && subgroup.subgroup_size.is_power_of_two()
        {
            subgroup.subgroup_size
        } else {
            1
        };
        // Where subgroups are of a demanded size, a work group may hold only so many of them.
        let most =
            if warp_width > 1 { v13.max_compute_workgroup_subgroups.saturating_mul(warp_width) } else { u32::MAX };
        let threads = limits.max_compute_work_group_invocations.min(limits.max_compute_work_group_size[0]).min(most);
        let mut caps = Caps::spirv(info.model.clone(), warp_width, threads, limits.max_compute_shared_memory_size);
        caps.max_param_bytes = limits.max_push_constants_size;
        caps.access8 = features.v12.storage_buffer8_bit_access == vk::TRUE && features.v12.shader_int8 == vk::TRUE;
        caps.access16 = features.v11.storage_buffer16_bit_access == vk::TRUE && features.core.shader_int16 == vk::TRUE;
        // Software devices compute a multiply-add in two steps; GPUs have had it fused for as long as they have addresses.
        caps.fused_fma = basic.device_type != vk::PhysicalDeviceType::CPU;
        caps.opaque_zeros = !caps.fused_fma;
        // They have their host's division.
        caps.divides_by_large = !caps.fused_fma;
        caps.keep_nan = [
            driver.shader_signed_zero_inf_nan_preserve_float32 == vk::TRUE,
            driver.shader_signed_zero_inf_nan_preserve_float64 == vk::TRUE,
        ];
        caps.f64 = features.core.shader_float64 == vk::TRUE;
        let max_buffer = if has_v13 { v13.max_buffer_size } else { u64::MAX };
        Traits {
            info,
            limits,
            timestamp_bits: family.map_or(0, |f| families[f].timestamp_valid_bits),
            family: family.unwrap_or(0) as u32,
            full_subgroups,
            max_bytes: subgroup.max_memory_allocation_size.min(max_buffer),
            caps,
            features,
        }
    }
}

/// What the driver tells of the device's size: Vulkan itself has no word for processors, NVIDIA's extension has.
fn hardware(instance: &ash::Instance, device: vk::PhysicalDevice) -> Hardware {
    // SAFETY: the device is of this instance.
    let extensions = unsafe { instance.enumerate_device_extension_properties(device) }.unwrap_or_default();
    let has = |name: &CStr| extensions.iter().any(|e| e.extension_name_as_c_str() == Ok(name));
    if !has(ash::nv::shader_sm_builtins::NAME) {
        return Hardware::default();
    }
    let mut sizes = vk::PhysicalDeviceShaderSMBuiltinsPropertiesNV::default();
    let mut query = vk::PhysicalDeviceProperties2::default().push_next(&mut sizes);
    // SAFETY: the structure is of an extension that the device has, and is alive.
    unsafe { instance.get_physical_device_properties2(device, &mut query) };
    Hardware {
        processors: Some(sizes.shader_sm_count).filter(|&n| n > 0),
        threads: Some(sizes.shader_warps_per_sm * 32).filter(|&n| n > 0),
        ..Hardware::default()
    }
}

fn text(chars: &[std::ffi::c_char]) -> String {
    // The driver ends its strings with 0 within the array; the bytes are looked at only up to there.
    let bytes: Vec<u8> = chars.iter().map(|&c| c as u8).collect();
    CStr::from_bytes_until_nul(&bytes).map(|s| s.to_string_lossy().into_owned()).unwrap_or_default()
}

/// A Vulkan result as our error.
pub(super) fn error(device: &str, call: &'static str, code: vk::Result) -> Error {
    let message = format!("{code:?} ({code})");
    if code == vk::Result::ERROR_DEVICE_LOST {
        return Error::DeviceLost { device: device.to_owned(), cause: format!("{call} reported {message}") };
    }
    Error::Driver { device: device.to_owned(), call, message }
}
