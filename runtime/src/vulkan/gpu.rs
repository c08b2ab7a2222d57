//! One Vulkan device: memory, copies, events.

use super::instance::{Instance, Traits, error};
use super::kernel::{Graph, Kernel};
use super::queue::{Garbage, Mapped, Queue, host_barrier, wait_for};
use crate::backend::{Assembled, Backend, Image, Loaded, RawEvent, RawGraph, RawLaunch, RawMem, RawStream, Target};
use crate::device::DeviceInfo;
use crate::error::{Error, Result};
use ash::vk;
use ash::vk::Handle;
use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tilewright_compiler::target::{Caps, Compiled};

/// Bytes of the buffer that copies go through where the host does not see device memory.
const STAGING_BYTES: u64 = 32 << 20;

/// Opens device `index`.
pub(crate) fn open(index: usize) -> Result<Arc<dyn Backend>> {
    let name = format!("vulkan:{index}");
    let absent = |why| crate::device::unknown(&name, why, "install a Vulkan driver, or choose another device");
    let instance = Instance::shared().map_err(absent)?;
    let devices = instance.devices().map_err(absent)?;
    let Some(&physical) = devices.get(index) else {
        let why = match devices.len() {
            1 => "Vulkan has 1 device".to_owned(),
            n => format!("Vulkan has {n} devices"),
        };
        return Err(crate::device::unknown(&name, why, "device numbers start at 0"));
    };
    let traits = Traits::query(instance, index, physical);
    if let Some(why) = traits.info.unusable {
        return Err(crate::device::unknown(&name, why, "choose another device"));
    }
    Ok(Arc::new(Vulkan { gpu: Arc::new(Gpu::new(instance, physical, traits)?) }))
}

/// The device's functions and limits.
pub(super) struct Vk {
    pub name: String,
    pub device: ash::Device,
    pub family: u32,
    pub limits: vk::PhysicalDeviceLimits,
    pub timestamp_bits: u32,
    pub full_subgroups: bool,
    pub caps: Caps,
    memory_types: vk::PhysicalDeviceMemoryProperties,
    max_bytes: u64,
    info: DeviceInfo,
}

/// A device with its queue and memory; kernels and events keep it alive.
pub(super) struct Gpu {
    pub vk: Vk,
    queue: Mutex<Queue>,
    /// Every live buffer, by the number of its handle.
    buffers: Mutex<HashMap<u64, Mapped>>,
    staging: Mutex<Option<Mapped>>,
    lost: OnceLock<String>,
    identity: String,
}

impl Gpu {
    fn new(instance: &Instance, physical: vk::PhysicalDevice, mut traits: Traits) -> Result<Gpu> {
        let name = traits.info.name.clone();
        let priorities = [1.0];
        let queues =
            [vk::DeviceQueueCreateInfo::default().queue_family_index(traits.family).queue_priorities(&priorities)];
        let f = &mut traits.features;
        let mut create = vk::DeviceCreateInfo::default()
            .queue_create_infos(&queues)
            .enabled_features(&f.core)
            .push_next(&mut f.v11)
            .push_next(&mut f.v12);
        if f.has_v13 {
            create = create.push_next(&mut f.v13);
        }
        // SAFETY: the structures are alive, and turn on what the device has said it offers.
        let device = unsafe { instance.instance.create_device(physical, &create, None) }
            .map_err(|code| error(&name, "vkCreateDevice", code))?;
        // SAFETY: the device is of this instance.
        let memory_types = unsafe { instance.instance.get_physical_device_memory_properties(physical) };
        let identity = format!("{} {}", traits.info.driver, traits.info.model);
        let vk = Vk {
            name,
            device,
            family: traits.family,
            limits: traits.limits,
            timestamp_bits: traits.timestamp_bits,
            full_subgroups: traits.full_subgroups,
            caps: traits.caps,
            memory_types,
            max_bytes: traits.max_bytes,
            info: traits.info,
        };
        let queue = Queue::new(&vk).inspect_err(|_| {
            // SAFETY: nothing of the device is left.
            unsafe { vk.device.destroy_device(None) };
        })?;
        Ok(Gpu {
            vk,
            queue: Mutex::new(queue),
            buffers: Mutex::default(),
            staging: Mutex::default(),
            lost: OnceLock::new(),
            identity,
        })
    }

    pub fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers the loss of the device, so that later errors tell the first cause.
    pub fn note<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|e| match e {
            Error::DeviceLost { device, cause } => {
                let first = self.lost.get_or_init(|| cause);
                Error::DeviceLost { device, cause: first.clone() }
            }
            other => other,
        })
    }

    /// A buffer that kernels reach by address, mapped if `host` or if the host sees the device's memory anyway.
    pub fn create_buffer(&self, bytes: u64, host: bool) -> Result<Mapped> {
        let vk = &self.vk;
        let oom = || Error::OutOfMemory {
            device: vk.name.clone(),
            requested: bytes,
            free: None,
            total: vk.info.memory_bytes,
        };
        // Fills work on whole words.
        let size = bytes.checked_next_multiple_of(4).filter(|&s| s <= vk.max_bytes).ok_or_else(oom)?;
        let usage = vk::BufferUsageFlags::STORAGE_BUFFER
            | vk::BufferUsageFlags::TRANSFER_SRC
            | vk::BufferUsageFlags::TRANSFER_DST
            | vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS;
        let create = vk::BufferCreateInfo::default().size(size).usage(usage);
        let failed = |call, code| match code {
            vk::Result::ERROR_OUT_OF_DEVICE_MEMORY | vk::Result::ERROR_OUT_OF_HOST_MEMORY => oom(),
            vk::Result::ERROR_TOO_MANY_OBJECTS => Error::Unsupported {
                device: vk.name.clone(),
                what: format!("hold more than {} buffers at once", vk.limits.max_memory_allocation_count),
                help: "drop buffers no longer needed, or put several tensors into one buffer and use `view_strided` and `slice`",
            },
            code => error(&vk.name, call, code),
        };
        // SAFETY: the structure is valid; the buffer is destroyed below if anything fails, else by its owner.
        let buffer =
            unsafe { vk.device.create_buffer(&create, None) }.map_err(|code| failed("vkCreateBuffer", code))?;
        // SAFETY: the buffer is alive.
        let needs = unsafe { vk.device.get_buffer_memory_requirements(buffer) };
        let mut memory = vk::DeviceMemory::null();
        let made = (|| {
            let (index, mapped) = self.memory_type(needs.memory_type_bits, host).ok_or_else(oom)?;
            let mut flags = vk::MemoryAllocateFlagsInfo::default().flags(vk::MemoryAllocateFlags::DEVICE_ADDRESS);
            let allocate = vk::MemoryAllocateInfo::default()
                .allocation_size(needs.size)
                .memory_type_index(index)
                .push_next(&mut flags);
            // SAFETY: the memory is of a type the buffer allows, and large enough; it is bound once and mapped once.
            unsafe {
                memory = vk.device.allocate_memory(&allocate, None).map_err(|code| failed("vkAllocateMemory", code))?;
                vk.device
                    .bind_buffer_memory(buffer, memory, 0)
                    .map_err(|code| error(&vk.name, "vkBindBufferMemory", code))?;
                let host = if mapped {
                    vk.device
                        .map_memory(memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty())
                        .map_err(|code| failed("vkMapMemory", code))?
                        .cast()
                } else {
                    std::ptr::null_mut()
                };
                let addr = vk.device.get_buffer_device_address(&vk::BufferDeviceAddressInfo::default().buffer(buffer));
                Ok(Mapped { buffer, memory, addr, host })
            }
        })();
        made.inspect_err(|_| {
            // SAFETY: both are ours and unused; destroying a null handle does nothing.
            unsafe {
                vk.device.destroy_buffer(buffer, None);
                vk.device.free_memory(memory, None);
            }
        })
    }

    /// A memory type among those allowed, and whether to map it.
    fn memory_type(&self, allowed: u32, host: bool) -> Option<(u32, bool)> {
        let types = self.vk.memory_types.memory_types_as_slice();
        let find = |flags: vk::MemoryPropertyFlags| {
            let fits = |(i, t): &(usize, &vk::MemoryType)| allowed >> i & 1 == 1 && t.property_flags.contains(flags);
            types.iter().enumerate().find(fits).map(|(i, _)| i as u32)
        };
        let visible = vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
        let local = vk::MemoryPropertyFlags::DEVICE_LOCAL;
        if host {
            // Read by the host as well as written: cached if there is such a type.
            let cached = find(visible | vk::MemoryPropertyFlags::HOST_CACHED);
            return cached.or_else(|| find(visible)).map(|i| (i, true));
        }
        // Where all device memory is visible (integrated and software devices) copies need no detour. Elsewhere visible
        // device memory is a small or slow window.
        let unified = types.iter().all(|t| !t.property_flags.contains(local) || t.property_flags.contains(visible));
        if unified && let Some(i) = find(local | visible) {
            return Some((i, true));
        }
        find(local).or_else(|| find(vk::MemoryPropertyFlags::empty())).map(|i| (i, false))
    }

    fn buffer(&self, mem: RawMem) -> Mapped {
        let buffers = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        *buffers.get(&mem.handle).expect("live memory is in the table")
    }

    /// Waits until all work is done.
    fn idle(&self) -> Result<()> {
        // The wait itself is without the lock, so that other threads can submit meanwhile.
        let (timeline, value) = {
            let queue = self.queue();
            (queue.timeline, queue.submitted)
        };
        self.note(wait_for(&self.vk, timeline, value))
    }

    /// Runs `copy` for parts of a range through the staging buffer: bytes done so far, bytes of this part, staging buffer.
    fn staged(&self, bytes: usize, mut copy: impl FnMut(usize, usize, &Mapped) -> Result<()>) -> Result<()> {
        let mut staging = self.staging.lock().unwrap_or_else(PoisonError::into_inner);
        let staging = match &mut *staging {
            Some(s) => s,
            none => none.insert(self.create_buffer(STAGING_BYTES, true)?),
        };
        let mut done = 0;
        while done < bytes {
            let part = (bytes - done).min(STAGING_BYTES as usize);
            copy(done, part, staging)?;
            done += part;
        }
        Ok(())
    }

    /// Copies between buffers and waits.
    fn copy_now(&self, from: vk::Buffer, to: vk::Buffer, region: vk::BufferCopy) -> Result<()> {
        let mut queue = self.queue();
        let result = queue.submit(&self.vk, |r| {
            // SAFETY: recording is under way; the ranges are inside the buffers.
            unsafe { self.vk.device.cmd_copy_buffer(r.commands, from, to, &[region]) };
            host_barrier(&self.vk, r.commands);
            Ok(())
        });
        let result = result.and_then(|value| queue.wait(&self.vk, value));
        self.note(result)
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        // SAFETY: nothing else uses the device any more: kernels and events keep it alive.
        unsafe {
            // If the device is lost there is nothing to wait for.
            let _ = self.vk.device.device_wait_idle();
        }
        let vk = &self.vk;
        let queue = self.queue.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(staging) = self.staging.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            queue.destroy_later(vk, Garbage::Buffer(staging));
        }
        queue.close(vk);
        // SAFETY: everything made from it is destroyed.
        unsafe { vk.device.destroy_device(None) };
    }
}

/// The device as the runtime sees it.
struct Vulkan {
    gpu: Arc<Gpu>,
}

impl Backend for Vulkan {
    fn info(&self) -> &DeviceInfo {
        &self.gpu.vk.info
    }

    fn target(&self) -> Target<'_> {
        Target::Code(&self.gpu.vk.caps)
    }

    fn driver(&self) -> &str {
        &self.gpu.identity
    }

    fn alloc(&self, bytes: u64) -> Result<RawMem> {
        let g = &self.gpu;
        let mut made = g.create_buffer(bytes, false);
        if matches!(made, Err(Error::OutOfMemory { .. } | Error::Unsupported { .. })) {
            // What was freed may still wait for its last use.
            g.idle()?;
            g.queue().collect(&g.vk)?;
            made = g.create_buffer(bytes, false);
        }
        let buffer = made?;
        let handle = buffer.buffer.as_raw();
        g.buffers.lock().unwrap_or_else(PoisonError::into_inner).insert(handle, buffer);
        Ok(RawMem { addr: buffer.addr, handle, bytes })
    }

    fn free(&self, mem: RawMem) {
        let buffer = self.gpu.buffers.lock().unwrap_or_else(PoisonError::into_inner).remove(&mem.handle);
        if let Some(buffer) = buffer {
            self.gpu.queue().destroy_later(&self.gpu.vk, Garbage::Buffer(buffer));
        }
    }

    fn write(&self, mem: RawMem, offset: u64, data: &[u8]) -> Result<()> {
        let (g, buffer) = (&self.gpu, self.gpu.buffer(mem));
        if !buffer.host.is_null() {
            g.idle()?;
            // SAFETY: the range is inside the mapped memory, and the device is done with it. The memory is coherent, and a
            // submission makes earlier host writes visible to the device.
            unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), buffer.host.add(offset as usize), data.len()) };
            return Ok(());
        }
        g.staged(data.len(), |done, part, staging| {
            // SAFETY: the part is inside both; the last use of the staging buffer was waited for.
            unsafe { std::ptr::copy_nonoverlapping(data[done..].as_ptr(), staging.host, part) };
            let region = vk::BufferCopy::default().dst_offset(offset + done as u64).size(part as u64);
            g.copy_now(staging.buffer, buffer.buffer, region)
        })
    }

    fn read(&self, mem: RawMem, offset: u64, data: &mut [u8]) -> Result<()> {
        let (g, buffer) = (&self.gpu, self.gpu.buffer(mem));
        if !buffer.host.is_null() {
            g.idle()?;
            // SAFETY: as in `write`; every kernel's writes were made visible to the host by its submission.
            unsafe { std::ptr::copy_nonoverlapping(buffer.host.add(offset as usize), data.as_mut_ptr(), data.len()) };
            return Ok(());
        }
        g.staged(data.len(), |done, part, staging| {
            let region = vk::BufferCopy::default().src_offset(offset + done as u64).size(part as u64);
            g.copy_now(buffer.buffer, staging.buffer, region)?;
            // SAFETY: the part is inside both; the copy was waited for.
            unsafe { std::ptr::copy_nonoverlapping(staging.host, data[done..].as_mut_ptr(), part) };
            Ok(())
        })
    }

    fn fill(&self, mem: RawMem, offset: u64, bytes: u64, value: u8) -> Result<()> {
        let (g, buffer) = (&self.gpu, self.gpu.buffer(mem));
        debug_assert!(offset.is_multiple_of(4), "fills start at whole words");
        let word = u32::from_ne_bytes([value; 4]);
        let result = g.queue().submit(&g.vk, |r| {
            // SAFETY: recording is under way; buffers are a whole number of words long, so rounding up stays inside.
            unsafe { g.vk.device.cmd_fill_buffer(r.commands, buffer.buffer, offset, bytes.next_multiple_of(4), word) };
            host_barrier(&g.vk, r.commands);
            Ok(())
        });
        g.note(result.map(|_| ()))
    }

    fn copy(&self, from: RawMem, from_offset: u64, to: RawMem, to_offset: u64, bytes: u64) -> Result<()> {
        let g = &self.gpu;
        let (from, to) = (g.buffer(from), g.buffer(to));
        let region = vk::BufferCopy::default().src_offset(from_offset).dst_offset(to_offset).size(bytes);
        let result = g.queue().submit(&g.vk, |r| {
            // SAFETY: recording is under way; the ranges are inside the buffers.
            unsafe { g.vk.device.cmd_copy_buffer(r.commands, from.buffer, to.buffer, &[region]) };
            host_barrier(&g.vk, r.commands);
            Ok(())
        });
        g.note(result.map(|_| ()))
    }

    fn memory(&self) -> (Option<u64>, Option<u64>) {
        (None, self.gpu.vk.info.memory_bytes)
    }

    fn assemble(&self, compiled: &Compiled) -> Result<Assembled> {
        Ok(Assembled { binary: Kernel::pipeline_cache(&self.gpu, compiled)?, ..Assembled::default() })
    }

    fn load(&self, image: &Image<'_>) -> Result<Box<dyn Loaded>> {
        match image {
            Image::Code { compiled, binary } => Ok(Box::new(Kernel::load(self.gpu.clone(), compiled, *binary)?)),
            Image::Tile(_) => Err(Error::Unsupported {
                device: self.gpu.vk.name.clone(),
                what: "run Tile IR without compiling it".into(),
                help: "use the `cpu` device",
            }),
        }
    }

    fn graph(&self, launches: &[RawLaunch<'_>]) -> Result<Option<Box<dyn RawGraph>>> {
        Ok(Some(Box::new(Graph::new(self.gpu.clone(), launches))))
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
        self.gpu.idle()?;
        self.gpu.queue().collect(&self.gpu.vk)
    }

    fn record(&self, _stream: RawStream) -> Result<Box<dyn RawEvent>> {
        let g = &self.gpu;
        let mut query = None;
        if g.vk.timestamp_bits > 0 {
            let create = vk::QueryPoolCreateInfo::default().query_type(vk::QueryType::TIMESTAMP).query_count(1);
            // SAFETY: the structure is valid; the event destroys it.
            let pool = unsafe { g.vk.device.create_query_pool(&create, None) }
                .map_err(|code| error(&g.vk.name, "vkCreateQueryPool", code))?;
            query = Some(pool);
        }
        // From here on the event owns the query.
        let mut queue = g.queue();
        let mut event = Event { gpu: g.clone(), timeline: queue.timeline, value: 0, query };
        let result = queue.submit(&g.vk, |r| {
            if let Some(pool) = query {
                // SAFETY: recording is under way; the query is reset before it is written.
                unsafe {
                    g.vk.device.cmd_reset_query_pool(r.commands, pool, 0, 1);
                    let last = vk::PipelineStageFlags::BOTTOM_OF_PIPE;
                    g.vk.device.cmd_write_timestamp(r.commands, last, pool, 0);
                }
            }
            Ok(())
        });
        // The event's drop takes the lock.
        drop(queue);
        event.value = g.note(result)?;
        Ok(Box::new(event))
    }

    fn wait_event(&self, _stream: RawStream, _event: &dyn RawEvent) -> Result<()> {
        // The event is of the same queue, so everything submitted later comes after it.
        Ok(())
    }
}

struct Event {
    gpu: Arc<Gpu>,
    timeline: vk::Semaphore,
    value: u64,
    query: Option<vk::QueryPool>,
}

impl Event {
    fn ticks(&self) -> Result<u64> {
        let g = &self.gpu;
        let Some(pool) = self.query else {
            return Err(Error::Unsupported {
                device: g.vk.name.clone(),
                what: "tell the time of events: its queue has no timestamps".into(),
                help: "measure on the host around `synchronize()`",
            });
        };
        self.wait()?;
        let mut ticks = [0u64];
        let flags = vk::QueryResultFlags::TYPE_64 | vk::QueryResultFlags::WAIT;
        // SAFETY: the query was written, and there is room for its one result.
        unsafe { g.vk.device.get_query_pool_results(pool, 0, &mut ticks, flags) }
            .map_err(|code| error(&g.vk.name, "vkGetQueryPoolResults", code))?;
        Ok(ticks[0])
    }
}

impl RawEvent for Event {
    fn wait(&self) -> Result<()> {
        self.gpu.note(wait_for(&self.gpu.vk, self.timeline, self.value))
    }

    fn is_done(&self) -> Result<bool> {
        let completed = self.gpu.queue().completed(&self.gpu.vk);
        Ok(self.gpu.note(completed)? >= self.value)
    }

    fn elapsed_ms(&self, later: &dyn RawEvent) -> Result<f64> {
        let later = later.own::<Event>();
        let (from, to) = (self.ticks()?, later.ticks()?);
        // Counters of fewer than 64 bits wrap: the difference is taken modulo their width, as a signed number.
        let unused = 64 - self.gpu.vk.timestamp_bits.min(64);
        let ticks = (to.wrapping_sub(from) << unused) as i64 >> unused;
        Ok(ticks as f64 * f64::from(self.gpu.vk.limits.timestamp_period) * 1e-6)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if let Some(pool) = self.query.take() {
            self.gpu.queue().destroy_later(&self.gpu.vk, Garbage::Query(pool));
        }
    }
}
