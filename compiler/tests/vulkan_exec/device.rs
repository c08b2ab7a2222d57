//! The least of Vulkan that runs a compute shader on buffers reached by address.

use ash::vk;
use std::ffi::CString;

/// A device with one compute queue.
pub struct Gpu {
    _entry: ash::Entry,
    instance: ash::Instance,
    physical: vk::PhysicalDevice,
    device: ash::Device,
    queue: vk::Queue,
    family: u32,
    /// Its name.
    pub name: String,
    /// Lanes of a subgroup with shuffles; 1 if it has none.
    pub subgroup: u32,
    /// Bytes of push constants.
    pub push_bytes: u32,
    /// Bytes of shared memory.
    pub shared_bytes: u32,
}

/// A buffer in memory that the host sees, too.
pub struct Buffer {
    buffer: vk::Buffer,
    memory: vk::DeviceMemory,
    mapped: *mut u8,
    bytes: usize,
    /// Its address for kernels.
    pub address: u64,
}

// SAFETY: the mapped pointer is only used through `Gpu`, which is behind a mutex.
unsafe impl Send for Buffer {}

impl Gpu {
    /// The first device with all features, or why there is none.
    pub fn open() -> Result<Self, String> {
        // SAFETY: loading the system's Vulkan loader has no preconditions.
        let entry = unsafe { ash::Entry::load() }.map_err(|e| format!("no Vulkan loader: {e}"))?;
        let app = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_3);
        let info = vk::InstanceCreateInfo::default().application_info(&app);
        // SAFETY: the structure is complete and lives through the call.
        let instance = unsafe { entry.create_instance(&info, None) }.map_err(|e| format!("no instance: {e}"))?;
        // SAFETY: the instance is alive.
        let devices = unsafe { instance.enumerate_physical_devices() }.map_err(|e| format!("no devices: {e}"))?;
        let wanted = std::env::var("TILEWRIGHT_TEST_VULKAN_DEVICE").ok();
        let mut reasons = vec!["no suitable device".to_owned()];
        for physical in devices {
            match Self::open_device(&entry, &instance, physical) {
                Ok(gpu) if wanted.as_ref().is_none_or(|w| gpu.name.contains(w)) => return Ok(gpu),
                Ok(gpu) => reasons.push(format!("{} is not asked for", gpu.name)),
                Err(e) => reasons.push(e),
            }
        }
        Err(reasons.join("; "))
    }

    fn open_device(entry: &ash::Entry, instance: &ash::Instance, physical: vk::PhysicalDevice) -> Result<Self, String> {
        let mut subgroup = vk::PhysicalDeviceSubgroupProperties::default();
        let mut properties = vk::PhysicalDeviceProperties2::default().push_next(&mut subgroup);
        // SAFETY: the instance and the chain of structures live through the call.
        unsafe { instance.get_physical_device_properties2(physical, &mut properties) };
        let p = properties.properties;
        let name = p.device_name_as_c_str().map_or_else(|_| "?".into(), |n| n.to_string_lossy().into_owned());
        if p.api_version < vk::API_VERSION_1_3 {
            return Err(format!("{name} has no Vulkan 1.3"));
        }
        let (mut f11, mut f12, mut f13) = (
            vk::PhysicalDeviceVulkan11Features::default(),
            vk::PhysicalDeviceVulkan12Features::default(),
            vk::PhysicalDeviceVulkan13Features::default(),
        );
        let mut features =
            vk::PhysicalDeviceFeatures2::default().push_next(&mut f11).push_next(&mut f12).push_next(&mut f13);
        // SAFETY: as above.
        unsafe { instance.get_physical_device_features2(physical, &mut features) };
        let f = features.features;
        let has = [
            (f.shader_int64, "shaderInt64"),
            (f.shader_int16, "shaderInt16"),
            (f.shader_float64, "shaderFloat64"),
            (f11.storage_buffer16_bit_access, "storageBuffer16BitAccess"),
            (f12.storage_buffer8_bit_access, "storageBuffer8BitAccess"),
            (f12.shader_int8, "shaderInt8"),
            (f12.buffer_device_address, "bufferDeviceAddress"),
            (f12.vulkan_memory_model, "vulkanMemoryModel"),
            (f13.subgroup_size_control, "subgroupSizeControl"),
            (f13.compute_full_subgroups, "computeFullSubgroups"),
        ];
        if let Some((_, feature)) = has.iter().find(|(has, _)| *has == vk::FALSE) {
            return Err(format!("{name} has no {feature}"));
        }
        // SAFETY: the instance is alive.
        let families = unsafe { instance.get_physical_device_queue_family_properties(physical) };
        let family = families.iter().position(|q| q.queue_flags.contains(vk::QueueFlags::COMPUTE));
        let family = family.ok_or_else(|| format!("{name} has no compute queue"))? as u32;

        let core = vk::PhysicalDeviceFeatures::default().shader_int64(true).shader_int16(true).shader_float64(true);
        let mut f11 = vk::PhysicalDeviceVulkan11Features::default().storage_buffer16_bit_access(true);
        let mut f12 = vk::PhysicalDeviceVulkan12Features::default()
            .storage_buffer8_bit_access(true)
            .shader_int8(true)
            .buffer_device_address(true)
            .vulkan_memory_model(true);
        let mut f13 =
            vk::PhysicalDeviceVulkan13Features::default().subgroup_size_control(true).compute_full_subgroups(true);
        let queues = [vk::DeviceQueueCreateInfo::default().queue_family_index(family).queue_priorities(&[1.0])];
        let info = vk::DeviceCreateInfo::default()
            .queue_create_infos(&queues)
            .enabled_features(&core)
            .push_next(&mut f11)
            .push_next(&mut f12)
            .push_next(&mut f13);
        // SAFETY: the device has the features and the queue, and the structures live through the call.
        let device = unsafe { instance.create_device(physical, &info, None) }.map_err(|e| format!("{name}: {e}"))?;
        // SAFETY: the queue was made with the device.
        let queue = unsafe { device.get_device_queue(family, 0) };
        let shuffles = vk::SubgroupFeatureFlags::BASIC | vk::SubgroupFeatureFlags::SHUFFLE;
        let in_compute = subgroup.supported_stages.contains(vk::ShaderStageFlags::COMPUTE);
        let shuffles = in_compute && subgroup.supported_operations.contains(shuffles);
        Ok(Self {
            _entry: entry.clone(),
            instance: instance.clone(),
            physical,
            device,
            queue,
            family,
            name,
            subgroup: if shuffles { subgroup.subgroup_size } else { 1 },
            push_bytes: p.limits.max_push_constants_size,
            shared_bytes: p.limits.max_compute_shared_memory_size,
        })
    }

    /// A buffer of these bytes.
    pub fn buffer(&self, bytes: &[u8]) -> Buffer {
        let size = bytes.len().max(16) as u64;
        let usage = vk::BufferUsageFlags::STORAGE_BUFFER | vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS;
        let info = vk::BufferCreateInfo::default().size(size).usage(usage);
        // SAFETY: the device is alive; every handle below was made by it just before; the memory is mapped whole, at least
        // `bytes` long, and nothing else uses it yet.
        unsafe {
            let buffer = self.device.create_buffer(&info, None).expect("a buffer");
            let needs = self.device.get_buffer_memory_requirements(buffer);
            let types = self.instance.get_physical_device_memory_properties(self.physical);
            let seen = vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
            let index = types
                .memory_types_as_slice()
                .iter()
                .enumerate()
                .position(|(i, t)| needs.memory_type_bits & (1 << i) != 0 && t.property_flags.contains(seen));
            let mut flags = vk::MemoryAllocateFlagsInfo::default().flags(vk::MemoryAllocateFlags::DEVICE_ADDRESS);
            let info = vk::MemoryAllocateInfo::default()
                .allocation_size(needs.size)
                .memory_type_index(index.expect("memory that the host sees") as u32)
                .push_next(&mut flags);
            let memory = self.device.allocate_memory(&info, None).expect("memory");
            self.device.bind_buffer_memory(buffer, memory, 0).expect("the memory fits the buffer");
            let mapped = self.device.map_memory(memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty());
            let mapped = mapped.expect("the memory is mapped").cast::<u8>();
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), mapped, bytes.len());
            let info = vk::BufferDeviceAddressInfo::default().buffer(buffer);
            let address = self.device.get_buffer_device_address(&info);
            Buffer { buffer, memory, mapped, bytes: bytes.len(), address }
        }
    }

    /// What a buffer holds; frees it.
    pub fn take(&self, buffer: Buffer) -> Vec<u8> {
        // SAFETY: `run` waits for the device, so nothing uses the buffer; it is mapped and `bytes` long.
        unsafe {
            let bytes = std::slice::from_raw_parts(buffer.mapped, buffer.bytes).to_vec();
            self.device.destroy_buffer(buffer.buffer, None);
            self.device.free_memory(buffer.memory, None);
            bytes
        }
    }

    /// Runs a module over a grid and waits. With `subgroup` above 1, in full subgroups of this width.
    pub fn run(&self, words: &[u32], entry: &str, push: &[u8], grid: [u32; 3], subgroup: u32) {
        let name = CString::new(entry).expect("an entry point's name has no zero byte");
        let ranges =
            [vk::PushConstantRange { stage_flags: vk::ShaderStageFlags::COMPUTE, offset: 0, size: push.len() as u32 }];
        let d = &self.device;
        // SAFETY: every handle is made by the device just before it is used and destroyed once, after the device is idle;
        // the structures live through the calls. The kernel touches only the buffers of the test.
        unsafe {
            let module = d.create_shader_module(&vk::ShaderModuleCreateInfo::default().code(words), None);
            let module = module.expect("a shader module");
            let info = vk::PipelineLayoutCreateInfo::default().push_constant_ranges(&ranges);
            let layout = d.create_pipeline_layout(&info, None).expect("a pipeline layout");
            let mut size =
                vk::PipelineShaderStageRequiredSubgroupSizeCreateInfo::default().required_subgroup_size(subgroup);
            let mut stage = vk::PipelineShaderStageCreateInfo::default()
                .stage(vk::ShaderStageFlags::COMPUTE)
                .module(module)
                .name(&name);
            if subgroup > 1 {
                stage = stage.flags(vk::PipelineShaderStageCreateFlags::REQUIRE_FULL_SUBGROUPS).push_next(&mut size);
            }
            let info = [vk::ComputePipelineCreateInfo::default().stage(stage).layout(layout)];
            let pipeline = d.create_compute_pipelines(vk::PipelineCache::null(), &info, None).expect("a pipeline")[0];
            let pool = vk::CommandPoolCreateInfo::default().queue_family_index(self.family);
            let pool = d.create_command_pool(&pool, None).expect("a command pool");
            let info = vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(1);
            let commands = d.allocate_command_buffers(&info).expect("a command buffer");
            let c = commands[0];
            d.begin_command_buffer(c, &vk::CommandBufferBeginInfo::default()).expect("recording begins");
            d.cmd_bind_pipeline(c, vk::PipelineBindPoint::COMPUTE, pipeline);
            d.cmd_push_constants(c, layout, vk::ShaderStageFlags::COMPUTE, 0, push);
            d.cmd_dispatch(c, grid[0], grid[1], grid[2]);
            let barrier = [vk::MemoryBarrier::default()
                .src_access_mask(vk::AccessFlags::SHADER_WRITE)
                .dst_access_mask(vk::AccessFlags::HOST_READ)];
            let (from, to) = (vk::PipelineStageFlags::COMPUTE_SHADER, vk::PipelineStageFlags::HOST);
            d.cmd_pipeline_barrier(c, from, to, vk::DependencyFlags::empty(), &barrier, &[], &[]);
            d.end_command_buffer(c).expect("recording ends");
            let submit = [vk::SubmitInfo::default().command_buffers(&commands)];
            d.queue_submit(self.queue, &submit, vk::Fence::null()).expect("submission");
            d.queue_wait_idle(self.queue).expect("the kernel runs to its end");
            d.destroy_command_pool(pool, None);
            d.destroy_pipeline(pipeline, None);
            d.destroy_pipeline_layout(layout, None);
            d.destroy_shader_module(module, None);
        }
    }
}
