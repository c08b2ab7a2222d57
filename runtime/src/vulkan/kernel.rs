//! Kernels on a Vulkan device: a compute pipeline, push constants, dispatches.

use super::gpu::Gpu;
use super::instance::error;
use super::queue::{Recording, barrier, host_barrier};
use crate::backend::{Loaded, PackedArgs, RawGraph, RawLaunch, RawStream};
use crate::error::{Error, Result};
use crate::metadata::Resources;
use ash::vk;
use std::any::Any;
use std::ffi::CString;
use std::sync::Arc;
use tilewright_compiler::target::spirv::{ParamLayout, param_layout};
use tilewright_compiler::target::{Caps, Code, Compiled};
use tilewright_compiler::thread::AbiParam;

/// Where parameters start in the push constants: after the grid and the first program's coordinates.
const PARAMS_START: usize = 24;

/// A loaded kernel.
pub(super) struct Kernel {
    gpu: Arc<Gpu>,
    dispatch: Dispatch,
    resources: Resources,
}

/// What recording a launch takes.
#[derive(Clone)]
struct Dispatch {
    layout: vk::PipelineLayout,
    pipeline: vk::Pipeline,
    params: Arc<Params>,
}

/// Where each parameter goes.
struct Params {
    layout: ParamLayout,
    /// Bytes of each parameter.
    sizes: Vec<usize>,
}

impl Params {
    fn new(params: &[AbiParam], caps: &Caps) -> Params {
        Params { layout: param_layout(params, caps), sizes: params.iter().map(|p| p.ty.bytes()).collect() }
    }

    /// Writes the words' low bytes to their places.
    fn write(&self, words: &[u64], bytes: &mut [u8]) {
        for ((&offset, &size), word) in self.layout.offsets.iter().zip(&self.sizes).zip(words) {
            let offset = offset as usize;
            bytes[offset..offset + size].copy_from_slice(&word.to_le_bytes()[..size]);
        }
    }
}

impl Kernel {
    /// What the driver wants to remember of the pipeline: makes loading it again fast. `None` if it remembers nothing.
    pub fn pipeline_cache(gpu: &Arc<Gpu>, compiled: &Compiled) -> Result<Option<Vec<u8>>> {
        let kernel = Pipeline::create(gpu, compiled, None)?;
        // SAFETY: the cache is alive.
        let data = unsafe { gpu.vk.device.get_pipeline_cache_data(kernel.cache) };
        kernel.destroy_all(gpu);
        // Failing to remember costs time alone.
        Ok(data.ok().filter(|d| !d.is_empty()))
    }

    /// Makes the pipeline; `binary` is what `pipeline_cache` gave.
    pub fn load(gpu: Arc<Gpu>, compiled: &Compiled, binary: Option<&[u8]>) -> Result<Kernel> {
        let params = Params::new(&compiled.params, &gpu.vk.caps);
        if params.layout.buffer_bytes as usize > MAX_PARAM_BUFFER {
            return Err(Error::Unsupported {
                device: gpu.vk.name.clone(),
                what: format!("pass {} parameters to kernel `{}`", compiled.params.len(), compiled.entry),
                help: "split the kernel, or put its numbers in a buffer",
            });
        }
        let made = Pipeline::create(&gpu, compiled, binary)?;
        // SAFETY: the pipeline is made, so the cache has done its work.
        unsafe { gpu.vk.device.destroy_pipeline_cache(made.cache, None) };
        let Code::SpirV(words) = &compiled.code else { return Err(wrong_language()) };
        Ok(Kernel {
            dispatch: Dispatch { params: Arc::new(params), layout: made.layout, pipeline: made.pipeline },
            resources: Resources { code_bytes: Some(words.len() as u64 * 4), ..Resources::default() },
            gpu,
        })
    }
}

/// The driver's objects of a kernel.
struct Pipeline {
    cache: vk::PipelineCache,
    layout: vk::PipelineLayout,
    pipeline: vk::Pipeline,
}

impl Pipeline {
    fn create(gpu: &Gpu, compiled: &Compiled, binary: Option<&[u8]>) -> Result<Pipeline> {
        let vk = &gpu.vk;
        let fail = |call| move |code| error(&vk.name, call, code);
        let Code::SpirV(words) = &compiled.code else { return Err(wrong_language()) };
        let entry = CString::new(compiled.entry.as_str()).map_err(|_| wrong_language())?;
        let params = Params::new(&compiled.params, &vk.caps);
        let mut made = Pipeline {
            cache: vk::PipelineCache::null(),
            layout: vk::PipelineLayout::null(),
            pipeline: vk::Pipeline::null(),
        };
        // SAFETY: every structure is valid and alive; the words are a SPIR-V module for the features that are on. The driver
        // checks the header of the cache's data and ignores what is not its own.
        let result = unsafe {
            (|| {
                let cache = vk::PipelineCacheCreateInfo::default().initial_data(binary.unwrap_or_default());
                made.cache = vk.device.create_pipeline_cache(&cache, None).map_err(fail("vkCreatePipelineCache"))?;
                let range = vk::PushConstantRange::default()
                    .stage_flags(vk::ShaderStageFlags::COMPUTE)
                    .size(params.layout.push_bytes);
                let ranges = [range];
                let layout = vk::PipelineLayoutCreateInfo::default().push_constant_ranges(&ranges);
                made.layout =
                    vk.device.create_pipeline_layout(&layout, None).map_err(fail("vkCreatePipelineLayout"))?;
                let shader = vk::ShaderModuleCreateInfo::default().code(words);
                let shader = vk.device.create_shader_module(&shader, None).map_err(fail("vkCreateShaderModule"))?;
                let mut width = vk::PipelineShaderStageRequiredSubgroupSizeCreateInfo::default()
                    .required_subgroup_size(vk.caps.warp_width);
                let mut stage = vk::PipelineShaderStageCreateInfo::default()
                    .stage(vk::ShaderStageFlags::COMPUTE)
                    .module(shader)
                    .name(&entry);
                if vk.full_subgroups && vk.caps.warp_width > 1 && compiled.threads.is_multiple_of(vk.caps.warp_width) {
                    stage =
                        stage.flags(vk::PipelineShaderStageCreateFlags::REQUIRE_FULL_SUBGROUPS).push_next(&mut width);
                }
                let create = vk::ComputePipelineCreateInfo::default().stage(stage).layout(made.layout);
                let pipelines = vk.device.create_compute_pipelines(made.cache, &[create], None);
                vk.device.destroy_shader_module(shader, None);
                made.pipeline = pipelines.map_err(|(_, code)| error(&vk.name, "vkCreateComputePipelines", code))?[0];
                Ok(())
            })()
        };
        match result {
            Ok(()) => Ok(made),
            Err(e) => {
                made.destroy_all(gpu);
                Err(e)
            }
        }
    }

    fn destroy_all(self, gpu: &Gpu) {
        // SAFETY: ours, destroyed once, never used; null handles are ignored.
        unsafe {
            gpu.vk.device.destroy_pipeline(self.pipeline, None);
            gpu.vk.device.destroy_pipeline_layout(self.layout, None);
            gpu.vk.device.destroy_pipeline_cache(self.cache, None);
        }
    }
}

fn wrong_language() -> Error {
    Error::Compile(tilewright_compiler::Error::Internal("code of another language was compiled for Vulkan".into()))
}

impl Dispatch {
    /// Bytes it takes of the submission's parameter buffer.
    fn buffer_bytes(&self) -> usize {
        if self.params.layout.in_buffer { (self.params.layout.buffer_bytes as usize).next_multiple_of(16) } else { 0 }
    }

    /// Records a launch; `at` is its place in the parameter buffer.
    fn record(&self, g: &Gpu, r: &mut Recording<'_>, at: usize, grid: [u32; 3], words: &[u64]) -> Result<()> {
        let vk = &g.vk;
        let mut push = [0u8; 256];
        let mut long_push;
        let layout = &self.params.layout;
        let push_bytes = layout.push_bytes as usize;
        let push = if push_bytes <= push.len() {
            &mut push[..push_bytes]
        } else {
            long_push = vec![0u8; push_bytes];
            &mut long_push[..]
        };
        put(push, 0, grid);
        if layout.in_buffer {
            // One buffer for each command buffer in flight, large enough for any kernel's parameters.
            let buffer = r.params(|| g.create_buffer(MAX_PARAM_BUFFER as u64, true))?;
            let bytes = layout.buffer_bytes as usize;
            assert!(at + bytes <= MAX_PARAM_BUFFER, "submissions are cut where the parameter buffer ends");
            // SAFETY: the buffer is mapped, has these bytes, and the device is done with its earlier contents.
            let host = unsafe { std::slice::from_raw_parts_mut(buffer.host.add(at), bytes) };
            self.params.write(words, host);
            push[PARAMS_START..PARAMS_START + 8].copy_from_slice(&(buffer.addr + at as u64).to_le_bytes());
        } else {
            self.params.write(words, push);
        }
        let compute = vk::ShaderStageFlags::COMPUTE;
        // SAFETY: recording is under way. The push constants fill the layout's range, and no dispatch has more work groups
        // than the device allows.
        unsafe {
            vk.device.cmd_bind_pipeline(r.commands, vk::PipelineBindPoint::COMPUTE, self.pipeline);
            for (base, count) in parts(grid, vk.limits.max_compute_work_group_count) {
                put(push, 12, base);
                vk.device.cmd_push_constants(r.commands, self.layout, compute, 0, push);
                vk.device.cmd_dispatch(r.commands, count[0], count[1], count[2]);
            }
        }
        Ok(())
    }
}

impl Loaded for Kernel {
    fn launch(&self, _stream: RawStream, grid: [u32; 3], args: &PackedArgs<'_>) -> Result<()> {
        let g = &self.gpu;
        let result = g.queue().submit(&g.vk, |r| {
            self.dispatch.record(g, r, 0, grid, args.words)?;
            host_barrier(&g.vk, r.commands);
            Ok(())
        });
        g.note(result.map(|_| ()))
    }

    fn resources(&self) -> Resources {
        self.resources
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Launches that are recorded together: one submission costs the host more than many dispatches.
pub(super) struct Graph {
    gpu: Arc<Gpu>,
    launches: Vec<(Dispatch, [u32; 3], Vec<u64>)>,
}

impl Graph {
    /// Of these launches.
    pub fn new(gpu: Arc<Gpu>, launches: &[RawLaunch<'_>]) -> Graph {
        let stored = |l: &RawLaunch<'_>| {
            let kernel = l.kernel.as_any().downcast_ref::<Kernel>().expect("kernels of one device are of one kind");
            (kernel.dispatch.clone(), l.grid, l.words.to_vec())
        };
        Graph { gpu, launches: launches.iter().map(stored).collect() }
    }
}

impl RawGraph for Graph {
    fn update(&mut self, index: usize, launch: &RawLaunch<'_>) -> Result<()> {
        self.launches[index].2.copy_from_slice(launch.words);
        Ok(())
    }

    fn launch(&mut self, _stream: RawStream) -> Result<()> {
        let g = &self.gpu;
        let mut next = 0;
        while next < self.launches.len() {
            let result = g.queue().submit(&g.vk, |r| {
                let (mut used, first) = (0, next);
                while let Some((dispatch, grid, words)) = self.launches.get(next) {
                    let bytes = dispatch.buffer_bytes();
                    if next > first {
                        if used + bytes > MAX_PARAM_BUFFER {
                            break;
                        }
                        barrier(&g.vk, r.commands);
                    }
                    dispatch.record(g, r, used, *grid, words)?;
                    used += bytes;
                    next += 1;
                }
                host_barrier(&g.vk, r.commands);
                Ok(())
            });
            g.note(result.map(|_| ()))?;
        }
        Ok(())
    }
}

/// Bytes of a parameter buffer: more than any kernel's parameters, which are checked when it is loaded.
const MAX_PARAM_BUFFER: usize = 64 * 1024;

fn put(bytes: &mut [u8], at: usize, values: [u32; 3]) {
    for (i, v) in values.into_iter().enumerate() {
        bytes[at + 4 * i..at + 4 * i + 4].copy_from_slice(&v.to_le_bytes());
    }
}

/// Cuts a grid into pieces that one dispatch each can run: the first program's coordinates, and the extents.
fn parts(grid: [u32; 3], limit: [u32; 3]) -> impl Iterator<Item = ([u32; 3], [u32; 3])> {
    let axis = move |a: usize| {
        let step = limit[a].max(1);
        (0..grid[a]).step_by(step as usize).map(move |base| (base, step.min(grid[a] - base)))
    };
    axis(2)
        .flat_map(move |(z, nz)| axis(1).flat_map(move |(y, ny)| axis(0).map(move |(x, nx)| ([x, y, z], [nx, ny, nz]))))
}

impl Drop for Kernel {
    fn drop(&mut self) {
        // Launches in flight use the pipeline.
        let mut queue = self.gpu.queue();
        let submitted = queue.submitted;
        // If the device is lost nothing is in flight.
        let _ = queue.wait(&self.gpu.vk, submitted);
        // SAFETY: ours, destroyed once, no longer in use.
        unsafe {
            self.gpu.vk.device.destroy_pipeline(self.dispatch.pipeline, None);
            self.gpu.vk.device.destroy_pipeline_layout(self.dispatch.layout, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_compiler::thread::AbiTy;

    fn params(types: &[AbiTy]) -> Vec<AbiParam> {
        types.iter().map(|&ty| AbiParam { name: "p".into(), ty }).collect()
    }

    #[test]
    fn words_go_to_their_places_low_bytes_first() {
        use AbiTy::{I32, I64, Ptr};
        let caps = Caps::spirv("test", 1, 128, 1024);
        let p = Params::new(&params(&[I32, Ptr, I32]), &caps);
        let mut bytes = [0; 44];
        p.write(&[u64::MAX, 0x0102_0304_0506_0708, 7], &mut bytes);
        assert_eq!(bytes[24..44], [255, 255, 255, 255, 0, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1, 7, 0, 0, 0]);
        let spills = Params::new(&params(&[I64; 14]), &caps);
        assert!(spills.layout.in_buffer && spills.layout.buffer_bytes == 112);
    }

    #[test]
    fn grids_are_cut_into_dispatches_that_cover_each_program_once() {
        let all: Vec<_> = parts([5, 3, 2], [2, 3, 1]).collect();
        assert_eq!(all.len(), 6);
        let mut seen = std::collections::HashSet::new();
        for (base, count) in all {
            for z in 0..count[2] {
                for y in 0..count[1] {
                    for x in 0..count[0] {
                        assert!(seen.insert([base[0] + x, base[1] + y, base[2] + z]));
                    }
                }
            }
        }
        assert_eq!(seen.len(), 30);
        assert_eq!(parts([i32::MAX as u32, 1, 1], [65_535, 65_535, 65_535]).count(), 32_769);
    }
}
