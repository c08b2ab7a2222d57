//! Targets: what a device can do ([`Caps`]), and the emitters that print Thread IR for it.
//!
//! **In**: a [`crate::thread::Function`] lowered for these [`Caps`]. **Out**: code the device's driver takes.
//! **Holds**: an emitter prints what the Thread IR says and decides nothing.

pub mod opencl;
pub mod ptx;
pub mod spirv;

/// The language of a target.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Language {
    /// NVIDIA PTX for compute capability `sm` (80 for sm_80); `arch_specific` allows the `a` features (`sm_90a`).
    Ptx {
        /// Compute capability, major times ten plus minor.
        sm: u32,
        /// May features of exactly this architecture be used?
        arch_specific: bool,
    },
    /// SPIR-V for Vulkan compute.
    SpirV,
    /// OpenCL C 1.2.
    OpenClC,
}

/// What a device can do, as far as lowering and code generation care.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Caps {
    /// Name for messages, such as `sm_90a` or `llvmpipe`.
    pub name: String,
    /// What is emitted.
    pub language: Language,
    /// Lanes of a warp (subgroup), a power of two; 1 if the device has no shuffles.
    pub warp_width: u32,
    /// Most threads of one program.
    pub max_threads: u32,
    /// Most bytes of shared memory of one program.
    pub max_shared_bytes: u32,
    /// May one byte of shared memory be accessed in several widths?
    pub untyped_shared: bool,
    /// Most bytes of kernel parameters passed directly; beyond it they go through a buffer. Vulkan push constants.
    pub max_param_bytes: u32,
    /// Are 8-bit global accesses supported?
    pub access8: bool,
    /// Are 16-bit global accesses supported?
    pub access16: bool,
    /// Is `F64` arithmetic supported?
    pub f64: bool,
    /// Does the device round [`crate::thread::Op::Fma`] once? Where it does not, the emitter of SPIR-V computes it
    /// in steps, slowly: of `F32` rightly; of `F64` rightly where factors are below 2^400 and the product is between 2^-900 and
    /// 2^900 (beyond, it is rounded twice). False for llvmpipe.
    pub fused_fma: bool,
    /// Does the driver's compiler treat a float operation with a constant zero as if there were no NaN, infinities and
    /// signs of zeros, though it was asked to keep them? Then zeros are numbers that it cannot know. True for llvmpipe,
    /// whose code generator (`lp_build_mul`, `lp_build_add`, `lp_build_div`) has shortcuts for them.
    pub opaque_zeros: bool,
    /// Is a quotient of `F32` right where the divisor is above 2^126? Vulkan asks that of no device, and where division is a
    /// multiplication by the reciprocal, which is 0 then, infinity divided by such a number is NaN.
    pub divides_by_large: bool,
    /// Can code ask for zeros, infinities and NaN of `F32` and of `F64` to be kept as IEEE 754 has them
    /// (`shaderSignedZeroInfNanPreserveFloat32` and `64` of Vulkan)? Without asking, drivers may take `a < b ? a : b` for a
    /// minimum, which it is not where b is NaN. Other languages always keep them.
    pub keep_nan: [bool; 2],
    /// Are the `f16` conversions of [`crate::thread::Conv`] supported?
    pub f16_convert: bool,
    /// Is [`crate::thread::Conv::F32ToBf16`] supported?
    pub bf16_convert: bool,
    /// Are the approximations of [`crate::thread::FUn`] supported?
    pub approx: bool,
    /// Are `Mma` and `LdMatrix` supported?
    pub mma_sync: bool,
    /// Is `CpAsync` supported?
    pub cp_async: bool,
    /// Are `Wgmma` and the ops around it supported?
    pub wgmma: bool,
}

/// The most registers of 32 bits that a kernel may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Registers {
    /// Of one thread.
    pub thread: u32,
    /// Of all threads of a program together.
    pub program: u32,
}

impl Caps {
    /// Registers of 32 bits that a thread may have, if programs have so many threads; `None` where that is not known.
    pub fn thread_registers(&self, threads: u32) -> Option<u32> {
        self.registers().map(|r| (r.program / threads.max(1)).min(r.thread))
    }

    /// Registers of 32 bits that there are; `None` where that is not known.
    pub fn registers(&self) -> Option<Registers> {
        // https://docs.nvidia.com/cuda/cuda-c-programming-guide, "Technical Specifications per Compute Capability".
        matches!(self.language, Language::Ptx { .. }).then_some(Registers { thread: 255, program: 65_536 })
    }

    /// NVIDIA compute capability `sm` (80 and up; 90 means `sm_90a`).
    pub fn ptx(sm: u32) -> Self {
        let arch_specific = sm == 90;
        Self {
            name: format!("sm_{sm}{}", if arch_specific { "a" } else { "" }),
            language: Language::Ptx { sm, arch_specific },
            warp_width: 32,
            max_threads: 1024,
            // What one block may ask for: https://docs.nvidia.com/cuda/cuda-c-programming-guide, "Technical
            // Specifications per Compute Capability".
            max_shared_bytes: match sm {
                80 | 87 => 163 * 1024,
                90 | 100 | 103 => 227 * 1024,
                _ => 99 * 1024,
            },
            untyped_shared: true,
            max_param_bytes: 4096,
            access8: true,
            access16: true,
            f64: true,
            fused_fma: true,
            opaque_zeros: false,
            divides_by_large: true,
            keep_nan: [true; 2],
            f16_convert: true,
            bf16_convert: true,
            approx: true,
            mma_sync: true,
            cp_async: true,
            wgmma: arch_specific,
        }
    }

    /// An OpenCL device without subgroups, such as a CPU: the common ground of OpenCL 1.2.
    pub fn opencl(name: impl Into<String>, max_threads: u32, max_shared_bytes: u32, f64: bool) -> Self {
        Self {
            name: name.into(),
            language: Language::OpenClC,
            warp_width: 1,
            max_threads,
            max_shared_bytes,
            untyped_shared: true,
            max_param_bytes: 1024,
            access8: true,
            access16: true,
            f64,
            fused_fma: true,
            opaque_zeros: false,
            divides_by_large: true,
            keep_nan: [true; 2],
            f16_convert: true,
            bf16_convert: false,
            approx: false,
            mma_sync: false,
            cp_async: false,
            wgmma: false,
        }
    }

    /// A Vulkan device with subgroups of `warp_width` (1: no shuffles).
    pub fn spirv(name: impl Into<String>, warp_width: u32, max_threads: u32, max_shared_bytes: u32) -> Self {
        Self {
            name: name.into(),
            language: Language::SpirV,
            warp_width,
            max_threads,
            max_shared_bytes,
            untyped_shared: false,
            max_param_bytes: 128,
            access8: true,
            access16: true,
            f64: true,
            fused_fma: true,
            opaque_zeros: false,
            divides_by_large: false,
            keep_nan: [false; 2],
            f16_convert: false,
            bf16_convert: false,
            approx: false,
            mma_sync: false,
            cp_async: false,
            wgmma: false,
        }
    }
}

/// Compiled code, in the language of its target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Code {
    /// PTX text. One `.param` for each [`crate::thread::AbiParam`]; launched with `threads` x 1 x 1 threads and
    /// `shared_bytes` of dynamic shared memory.
    Ptx(String),
    /// SPIR-V words: a `GLCompute` entry point of local size `threads` x 1 x 1. Push constants: see
    /// [`spirv`]. No descriptors: buffers are reached by address.
    SpirV(Vec<u32>),
    /// OpenCL C text: `__kernel` with one argument for each [`crate::thread::AbiParam`] (`Ptr`: two arguments, a
    /// `__global uchar *` and a `ulong`, the byte offset of what is pointed to;
    /// `I32`: `int`, `I64`: `long`, `F32`: `float`, `F64`: `double`), `reqd_work_group_size(threads, 1, 1)`, shared memory
    /// declared inside.
    OpenClC(String),
}

impl Code {
    /// The code for people to read: PTX and OpenCL C as they are, SPIR-V disassembled.
    pub fn text(&self) -> String {
        match self {
            Code::Ptx(text) | Code::OpenClC(text) => text.clone(),
            Code::SpirV(words) => match rspirv::dr::load_words(words) {
                Ok(module) => rspirv::binary::Disassemble::disassemble(&module),
                Err(e) => format!("; not valid SPIR-V: {e:?}\n"),
            },
        }
    }
}

/// A kernel compiled for a target: all that a launch needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Compiled {
    /// The entry point's name.
    pub entry: String,
    /// Threads of one program.
    pub threads: u32,
    /// Bytes of shared memory of one program.
    pub shared_bytes: u32,
    /// Parameters in launch order.
    pub params: Vec<crate::thread::AbiParam>,
    /// The code.
    pub code: Code,
}
