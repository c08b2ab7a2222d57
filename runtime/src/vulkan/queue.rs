//! The queue: command buffers in flight, in order.
//!
//! Each submission signals the next value of one timeline semaphore, so "is it done" and "what may be reused or freed" are
//! comparisons with one number.

use super::gpu::Vk;
use super::instance::error;
use crate::error::Result;
use ash::vk;
use std::collections::VecDeque;

/// Command buffers in flight at most; the host waits for the oldest when they run out.
const MAX_SLOTS: usize = 128;

/// The queue's state, behind the device's lock.
pub(super) struct Queue {
    queue: vk::Queue,
    pool: vk::CommandPool,
    pub timeline: vk::Semaphore,
    /// The value of the latest submission.
    pub submitted: u64,
    /// Oldest first.
    slots: VecDeque<Slot>,
    /// What to destroy once the timeline has passed a value; oldest first.
    garbage: VecDeque<(u64, Garbage)>,
}

struct Slot {
    value: u64,
    commands: vk::CommandBuffer,
    /// Parameters of a kernel that has too many for push constants.
    params: Option<Mapped>,
}

/// A buffer with its memory, and where the host sees it.
#[derive(Clone, Copy)]
pub(super) struct Mapped {
    pub buffer: vk::Buffer,
    pub memory: vk::DeviceMemory,
    pub addr: u64,
    /// Null if the host does not see it.
    pub host: *mut u8,
}

// SAFETY: the pointer is to mapped memory that lives as long as the buffer; its users order their accesses.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}

/// What is destroyed late.
pub(super) enum Garbage {
    Buffer(Mapped),
    Query(vk::QueryPool),
}

/// What a recording function may use.
pub(super) struct Recording<'a> {
    pub commands: vk::CommandBuffer,
    params: &'a mut Option<Mapped>,
}

impl Recording<'_> {
    /// A buffer for the parameters of this submission, made on first use.
    pub fn params(&mut self, make: impl FnOnce() -> Result<Mapped>) -> Result<Mapped> {
        if let Some(mapped) = self.params {
            return Ok(*mapped);
        }
        Ok(*self.params.insert(make()?))
    }
}

impl Queue {
    pub fn new(vk: &Vk) -> Result<Queue> {
        let fail = |call| move |code| error(&vk.name, call, code);
        let flags = vk::CommandPoolCreateFlags::RESET_COMMAND_BUFFER;
        let pool = vk::CommandPoolCreateInfo::default().queue_family_index(vk.family).flags(flags);
        let mut kind = vk::SemaphoreTypeCreateInfo::default().semaphore_type(vk::SemaphoreType::TIMELINE);
        let semaphore = vk::SemaphoreCreateInfo::default().push_next(&mut kind);
        // SAFETY: the device is alive, the structures are valid, and the queue was asked for when the device was made.
        unsafe {
            let timeline = vk.device.create_semaphore(&semaphore, None).map_err(fail("vkCreateSemaphore"))?;
            let pool = vk.device.create_command_pool(&pool, None).map_err(|code| {
                vk.device.destroy_semaphore(timeline, None);
                error(&vk.name, "vkCreateCommandPool", code)
            })?;
            let queue = vk.device.get_device_queue(vk.family, 0);
            Ok(Queue { queue, pool, timeline, submitted: 0, slots: VecDeque::new(), garbage: VecDeque::new() })
        }
    }

    /// Records commands and submits them, after all work submitted before. Gives the value that marks their end.
    pub fn submit(&mut self, vk: &Vk, record: impl FnOnce(&mut Recording<'_>) -> Result<()>) -> Result<u64> {
        let mut slot = self.slot(vk)?;
        let result = self.record_and_submit(vk, &mut slot, record);
        if let Ok(value) = result {
            slot.value = value;
            self.slots.push_back(slot);
        } else {
            // The commands never ran: the slot is free at once, but recording may still be under way.
            // SAFETY: the command buffer is not in flight, and its pool allows it to be reset.
            let _ = unsafe { vk.device.reset_command_buffer(slot.commands, vk::CommandBufferResetFlags::empty()) };
            slot.value = 0;
            self.slots.push_front(slot);
        }
        result
    }

    fn record_and_submit(
        &mut self,
        vk: &Vk,
        slot: &mut Slot,
        record: impl FnOnce(&mut Recording<'_>) -> Result<()>,
    ) -> Result<u64> {
        let fail = |call| move |code| error(&vk.name, call, code);
        let commands = slot.commands;
        let begin = vk::CommandBufferBeginInfo::default().flags(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT);
        // SAFETY: the command buffer is not in flight (its value has passed) and its pool allows it to be reset by this.
        unsafe { vk.device.begin_command_buffer(commands, &begin) }.map_err(fail("vkBeginCommandBuffer"))?;
        barrier(vk, commands);
        record(&mut Recording { commands, params: &mut slot.params })?;
        // SAFETY: recording is under way.
        unsafe { vk.device.end_command_buffer(commands) }.map_err(fail("vkEndCommandBuffer"))?;

        let value = self.submitted + 1;
        let (signals, values, buffers) = ([self.timeline], [value], [commands]);
        let mut timeline = vk::TimelineSemaphoreSubmitInfo::default().signal_semaphore_values(&values);
        let submit =
            vk::SubmitInfo::default().command_buffers(&buffers).signal_semaphores(&signals).push_next(&mut timeline);
        // SAFETY: the queue is used under the lock alone; all handles are alive until the value has passed.
        unsafe { vk.device.queue_submit(self.queue, &[submit], vk::Fence::null()) }.map_err(fail("vkQueueSubmit"))?;
        self.submitted = value;
        Ok(value)
    }

    fn slot(&mut self, vk: &Vk) -> Result<Slot> {
        let oldest = self.slots.front().map(|s| s.value);
        if let Some(value) = oldest
            && (self.slots.len() >= MAX_SLOTS || value <= self.completed(vk)?)
        {
            self.wait(vk, value)?;
            return Ok(self.slots.pop_front().expect("there is an oldest slot"));
        }
        let allocate = vk::CommandBufferAllocateInfo::default()
            .command_pool(self.pool)
            .level(vk::CommandBufferLevel::PRIMARY)
            .command_buffer_count(1);
        // SAFETY: the pool is alive and used under the lock alone.
        let commands = unsafe { vk.device.allocate_command_buffers(&allocate) }
            .map_err(|code| error(&vk.name, "vkAllocateCommandBuffers", code))?[0];
        Ok(Slot { value: 0, commands, params: None })
    }

    /// The value that the device has reached.
    pub fn completed(&self, vk: &Vk) -> Result<u64> {
        // SAFETY: the semaphore is alive.
        unsafe { vk.device.get_semaphore_counter_value(self.timeline) }
            .map_err(|code| error(&vk.name, "vkGetSemaphoreCounterValue", code))
    }

    /// Waits until the device has reached a value, and destroys what was kept for it.
    pub fn wait(&mut self, vk: &Vk, value: u64) -> Result<()> {
        wait_for(vk, self.timeline, value)?;
        self.collect(vk)
    }

    /// Destroys what the device is done with.
    pub fn collect(&mut self, vk: &Vk) -> Result<()> {
        if self.garbage.is_empty() {
            return Ok(());
        }
        let completed = self.completed(vk)?;
        while self.garbage.front().is_some_and(|(value, _)| *value <= completed) {
            let (_, garbage) = self.garbage.pop_front().expect("it was looked at");
            destroy(vk, garbage);
        }
        Ok(())
    }

    /// Destroys something once the work submitted so far is done.
    pub fn destroy_later(&mut self, vk: &Vk, garbage: Garbage) {
        self.garbage.push_back((self.submitted, garbage));
        // If the device is lost the rest goes when it is closed.
        let _ = self.collect(vk);
    }

    /// Destroys everything. The device is idle.
    pub fn close(&mut self, vk: &Vk) {
        for (_, garbage) in self.garbage.drain(..) {
            destroy(vk, garbage);
        }
        for slot in self.slots.drain(..) {
            if let Some(params) = slot.params {
                destroy(vk, Garbage::Buffer(params));
            }
        }
        // SAFETY: the device is idle; both are destroyed once. The pool takes its command buffers along.
        unsafe {
            vk.device.destroy_command_pool(self.pool, None);
            vk.device.destroy_semaphore(self.timeline, None);
        }
    }
}

/// Waits until a timeline has reached a value. Needs no lock.
pub(super) fn wait_for(vk: &Vk, timeline: vk::Semaphore, value: u64) -> Result<()> {
    let (semaphores, values) = ([timeline], [value]);
    let wait = vk::SemaphoreWaitInfo::default().semaphores(&semaphores).values(&values);
    // SAFETY: the semaphore lives as long as the device.
    unsafe { vk.device.wait_semaphores(&wait, u64::MAX) }.map_err(|code| error(&vk.name, "vkWaitSemaphores", code))
}

/// All that was written before is seen by all that comes after, and nothing before is overtaken.
pub(super) fn barrier(vk: &Vk, commands: vk::CommandBuffer) {
    let writes = vk::AccessFlags::SHADER_WRITE | vk::AccessFlags::TRANSFER_WRITE;
    let all = writes | vk::AccessFlags::SHADER_READ | vk::AccessFlags::TRANSFER_READ;
    let memory = vk::MemoryBarrier::default().src_access_mask(writes).dst_access_mask(all);
    let stages = vk::PipelineStageFlags::COMPUTE_SHADER | vk::PipelineStageFlags::TRANSFER;
    // SAFETY: recording is under way.
    unsafe {
        vk.device.cmd_pipeline_barrier(commands, stages, stages, vk::DependencyFlags::empty(), &[memory], &[], &[]);
    }
}

/// Makes what commands before it wrote visible to the host, once they are waited for.
pub(super) fn host_barrier(vk: &Vk, commands: vk::CommandBuffer) {
    let writes = vk::AccessFlags::SHADER_WRITE | vk::AccessFlags::TRANSFER_WRITE;
    let memory = vk::MemoryBarrier::default().src_access_mask(writes).dst_access_mask(vk::AccessFlags::HOST_READ);
    let stages = vk::PipelineStageFlags::COMPUTE_SHADER | vk::PipelineStageFlags::TRANSFER;
    let none = vk::DependencyFlags::empty();
    // SAFETY: recording is under way.
    unsafe {
        vk.device.cmd_pipeline_barrier(commands, stages, vk::PipelineStageFlags::HOST, none, &[memory], &[], &[])
    };
}

fn destroy(vk: &Vk, garbage: Garbage) {
    // SAFETY: the device is done with it, and it is destroyed once. Freeing memory unmaps it.
    unsafe {
        match garbage {
            Garbage::Buffer(b) => {
                vk.device.destroy_buffer(b.buffer, None);
                vk.device.free_memory(b.memory, None);
            }
            Garbage::Query(pool) => vk.device.destroy_query_pool(pool, None),
        }
    }
}
