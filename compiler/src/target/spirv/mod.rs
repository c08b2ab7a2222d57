//! SPIR-V for Vulkan compute.
//!
//! **In**: a [`Function`] lowered for SPIR-V [`Caps`]. **Out**: the words of a module, [`emit`].
//! **Holds**: SPIR-V 1.5 for Vulkan 1.2 without extensions; one `GLCompute` entry point named as the function, of local
//! size `threads` x 1 x 1; no descriptors.
//!
//! # Push constants
//! | byte | what |
//! |---|---|
//! | 0 | `NumPrograms`: 3 x u32 |
//! | 12 | added to `WorkgroupId`, to split grids too large for one dispatch: 3 x u32 |
//! | 24 | the parameters, each at the next multiple of its size; or, if that would pass [`super::Caps::max_param_bytes`], the address (u64) of a buffer that holds them in the same way from byte 0 |
//!
//! [`param_layout`] gives the offsets.
//!
//! # What the device must have
//! A capability is declared only if the function uses it. Whoever makes the pipeline enables the features behind them:
//! `bufferDeviceAddress` and `shaderInt64` (any global memory), `shaderFloat64` ([`Ty::F64`]), `storageBuffer8BitAccess` /
//! `storageBuffer16BitAccess` (narrow global accesses), `shaderInt8` / `shaderInt16` (narrow shared memory),
//! `vulkanMemoryModel` (a barrier in a function that stores to global memory). If `warp_width` is above 1, subgroups of
//! exactly this size are required (`requiredSubgroupSize` and `REQUIRE_FULL_SUBGROUPS`, unless the device has only one
//! size), with the shuffle operations.
//!
//! # Memory model
//! Under the GLSL450 memory model an access by address is private to its invocation, and nothing but a `Coherent` block
//! member changes that; `Coherent` then costs a trip past the near caches on every access. A barrier promises that global
//! stores before it are seen after it, so functions with both use the Vulkan memory model: accesses are `NonPrivatePointer`
//! and the barrier makes them available and visible among the workgroup, which near caches can do.
//!
//! # Floats
//! Every float op is `NoContraction`; where [`Caps::keep_nan`], NaN, infinities and the signs of zeros are kept. Subnormal results and operands may be flushed to zero where the driver does so, and
//! Vulkan lets division and square root be off by a few units in the last place. Whether a multiply-add is rounded once is
//! the device's choice, too; where it is not ([`Caps::fused_fma`]), it is computed in several steps. Where the driver's compiler
//! forgets NaN and the signs of zeros beside a constant zero ([`Caps::opaque_zeros`]), there are no constant zeros.

mod control;
mod fma;
mod inst;
mod memory;
mod module;
#[cfg(test)]
mod tests;

use super::Caps;
use crate::entity::Entity;
use crate::error::{Error, Result};
use crate::thread::{AbiParam, Function, InstData, Op, Ty, Value};
use module::Module;
use rspirv::binary::Disassemble;
use rspirv::spirv::{Scope, Word};

/// Where the parameters start in the push constants: after two vectors of three `u32`.
const FIRST_PARAM: u32 = 24;

/// Where each parameter is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParamLayout {
    /// The parameters' offsets in bytes: in the push constants, or in the parameter buffer.
    pub offsets: Vec<u32>,
    /// Do the parameters go through a buffer, whose address (aligned to 8 bytes) is at byte 24 of the push constants?
    pub in_buffer: bool,
    /// Bytes of the parameter buffer; 0 if there is none.
    pub buffer_bytes: u32,
    /// Bytes of the push constants, a multiple of 4.
    pub push_bytes: u32,
}

/// Where the parameters of a kernel are. The runtime writes them there, the code reads them.
pub fn param_layout(params: &[AbiParam], caps: &Caps) -> ParamLayout {
    let place = |start: u32| {
        let mut end = start;
        let mut offsets = Vec::with_capacity(params.len());
        for param in params {
            let bytes = param.ty.bytes() as u32;
            let offset = end.next_multiple_of(bytes);
            offsets.push(offset);
            end = offset + bytes;
        }
        (offsets, end)
    };
    let (offsets, push_bytes) = place(FIRST_PARAM);
    if push_bytes <= caps.max_param_bytes {
        return ParamLayout { offsets, in_buffer: false, buffer_bytes: 0, push_bytes };
    }
    let (offsets, buffer_bytes) = place(0);
    ParamLayout { offsets, in_buffer: true, buffer_bytes, push_bytes: FIRST_PARAM + 8 }
}

/// Emits a function as a SPIR-V module.
///
/// # Errors
/// [`Error::Unsupported`] if the function uses an op or a type that SPIR-V or the device has not (the lowering for the same
/// `caps` makes none); [`Error::Internal`] if the function is not well formed.
pub fn emit(func: &Function, caps: &Caps) -> Result<Vec<u32>> {
    let (mut barrier, mut store) = (false, false);
    func.walk(func.body, &mut |inst| match func.insts[inst].op {
        Op::Barrier | Op::WarpBarrier => barrier = true,
        Op::GlobalStore(_) => store = true,
        _ => {}
    });
    let mut emitter = Emitter {
        func,
        caps,
        module: Module::new(barrier && store),
        layout: param_layout(&func.params, caps),
        values: vec![0; func.values.len()],
        label: 0,
        push_block: None,
        shared_arrays: Vec::new(),
    };
    if !caps.f64 && func.values.iter().any(|(_, v)| v.ty == Ty::F64) {
        return Err(emitter.unsupported("arithmetic on `f64`"));
    }
    let (function, label) = emitter.module.begin_function();
    emitter.label = label;
    emitter.block(func.body)?;
    Ok(emitter.module.finish(function, &func.name, func.threads, emitter.caps.keep_nan))
}

/// The text of a module, for people.
pub fn disassemble(words: &[u32]) -> String {
    match rspirv::dr::load_words(words) {
        Ok(module) => module.disassemble(),
        Err(e) => format!("; not a SPIR-V module: {e:?}\n"),
    }
}

/// A function on its way to a module.
struct Emitter<'a> {
    func: &'a Function,
    caps: &'a Caps,
    module: Module,
    layout: ParamLayout,
    /// The id of each register; 0 if it is not defined yet.
    values: Vec<Word>,
    /// The label of the open block: where phis of the next blocks come from.
    label: Word,
    /// The variable of the push constants, once used.
    push_block: Option<Word>,
    /// The variables of shared memory by bits of their elements, once used.
    shared_arrays: Vec<(u8, Word)>,
}

impl Emitter<'_> {
    fn value(&self, value: Value) -> Word {
        let id = self.values[value.index()];
        // Also in release builds: drivers crash on modules that are not valid.
        assert_ne!(id, 0, "{value} is defined before it is used");
        id
    }

    fn define(&mut self, value: Value, id: Word) {
        self.values[value.index()] = id;
    }

    /// Emits one instruction other than a terminator.
    fn inst(&mut self, inst: &InstData) -> Result<()> {
        let value = match &inst.op {
            Op::Const(_)
            | Op::IBin(_)
            | Op::FBin(_)
            | Op::FUn(_)
            | Op::Fma
            | Op::ICmpS(_)
            | Op::ICmpU(_)
            | Op::FCmp(_)
            | Op::Not
            | Op::Select
            | Op::Conv(_)
            | Op::Pack16 => self.pure(inst)?,
            Op::Param(index) => self.param(*index)?,
            Op::Special(special) => self.special(*special)?,
            Op::GlobalLoad(access) => return self.global_load(*access, inst),
            Op::GlobalStore(access) => return self.global_store(*access, inst),
            Op::SharedLoad(buf, access) => return self.shared_load(*buf, *access, inst),
            Op::SharedStore(buf, access) => return self.shared_store(*buf, *access, inst),
            Op::Shuffle(shuffle) => return self.shuffle(*shuffle, inst),
            Op::Barrier => {
                self.barrier(Scope::Workgroup);
                return Ok(());
            }
            Op::WarpBarrier => {
                // A warp of one lane has nobody to wait for.
                if self.func.warp_width > 1 {
                    self.barrier(Scope::Subgroup);
                }
                return Ok(());
            }
            Op::If => return self.emit_if(inst),
            Op::Loop => return self.emit_loop(inst),
            Op::Yield | Op::Condition => return Err(self.internal("a terminator inside a block")),
            op @ (Op::CpAsync { .. }
            | Op::CpAsyncCommit
            | Op::CpAsyncWait(_)
            | Op::LdMatrix { .. }
            | Op::Mma(_)
            | Op::Wgmma { .. }
            | Op::Hold
            | Op::WgmmaFence
            | Op::WgmmaCommit
            | Op::WgmmaWait(_)
            | Op::AsyncProxyFence) => {
                return Err(self.unsupported(&format!("{op:?}")));
            }
        };
        self.define(inst.results[0], value);
        Ok(())
    }

    fn unsupported(&self, what: &str) -> Error {
        Error::Unsupported {
            kernel: self.func.name.clone(),
            target: self.caps.name.clone(),
            what: format!("SPIR-V for this device has no {what}"),
            help: Some("use other element types, or run on another device".into()),
        }
    }

    fn internal(&self, what: &str) -> Error {
        Error::Internal(format!("SPIR-V of `{}`: {what}", self.func.name))
    }
}
