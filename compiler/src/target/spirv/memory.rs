//! Parameters, places, global and shared memory, shuffles and barriers.

use super::{Emitter, FIRST_PARAM};
use crate::error::Result;
use crate::thread::{Access, InstData, Shared, Shuffle, Special, Ty, Value};
use rspirv::dr::Operand;
use rspirv::spirv::{BuiltIn, Capability, MemoryAccess, MemorySemantics, Op, Scope, StorageClass, Word};

/// Members of the push constants before the parameters: two vectors of three `u32`, each member one `u32`.
const HEADER_MEMBERS: u32 = FIRST_PARAM / 4;

impl Emitter<'_> {
    fn u32(&mut self, op: Op, operands: &[Word]) -> Word {
        let ty = self.module.uint(32);
        self.module.op(op, ty, operands)
    }

    fn load(&mut self, ty: Word, pointer: Word) -> Word {
        self.module.op(Op::Load, ty, &[pointer])
    }

    // ---- parameters and places -----------------------------------------------------------------------------------

    /// A member of the push constants.
    fn push_constant(&mut self, member: u32, ty: Ty) -> Word {
        let block = self.push_block.unwrap_or_else(|| self.declare_push_constants());
        let ty = self.module.ty(ty);
        let pointer = self.module.pointer(StorageClass::PushConstant, ty);
        let index = self.module.const_u32(member);
        let pointer = self.module.op(Op::AccessChain, pointer, &[block, index]);
        self.load(ty, pointer)
    }

    /// The number of programs along the first axis.
    pub(super) fn num_programs(&mut self) -> Word {
        self.push_constant(0, Ty::I32)
    }

    fn declare_push_constants(&mut self) -> Word {
        let u32_ty = self.module.uint(32);
        let mut members: Vec<_> = (0..HEADER_MEMBERS).map(|i| (u32_ty, i * 4)).collect();
        if self.layout.in_buffer {
            members.push((self.module.uint(64), FIRST_PARAM));
        } else {
            for (param, &offset) in self.func.params.iter().zip(&self.layout.offsets) {
                members.push((self.module.ty(param.ty.ty()), offset));
            }
        }
        let block = self.module.block(&members);
        let variable = self.module.variable("push", StorageClass::PushConstant, block);
        self.push_block = Some(variable);
        variable
    }

    pub(super) fn param(&mut self, index: u32) -> Result<Word> {
        let Some(param) = self.func.params.get(index as usize) else {
            return Err(self.internal(&format!("there is no parameter {index}")));
        };
        let ty = param.ty;
        if !self.layout.in_buffer {
            return Ok(self.push_constant(HEADER_MEMBERS + index, ty.ty()));
        }
        let base = self.push_constant(HEADER_MEMBERS, Ty::I64);
        let word = self.module.ty(ty.ty());
        let pointer = self.address(base, self.layout.offsets[index as usize].into(), word);
        // Nothing writes the parameters while the kernel runs: no need to be visible to other invocations.
        let access = vec![
            Operand::IdRef(pointer),
            Operand::MemoryAccess(MemoryAccess::ALIGNED),
            Operand::LiteralBit32(ty.bytes() as u32),
        ];
        Ok(self.module.op_with(Op::Load, word, access))
    }

    pub(super) fn special(&mut self, special: Special) -> Result<Word> {
        Ok(match special {
            Special::Lane if self.func.warp_width == 1 => self.module.const_u32(0),
            Special::Lane => self.builtin(BuiltIn::SubgroupLocalInvocationId),
            Special::Warp if self.func.warp_width == 1 => self.builtin(BuiltIn::LocalInvocationIndex),
            Special::Warp => self.builtin(BuiltIn::SubgroupId),
            Special::Thread if self.func.warp_width == 1 => self.builtin(BuiltIn::LocalInvocationIndex),
            // Not LocalInvocationIndex: Vulkan does not say that invocations are numbered along subgroups.
            Special::Thread => {
                let (warp, lane) =
                    (self.builtin(BuiltIn::SubgroupId), self.builtin(BuiltIn::SubgroupLocalInvocationId));
                let width = self.module.const_u32(self.func.warp_width);
                let first = self.u32(Op::IMul, &[warp, width]);
                self.u32(Op::IAdd, &[first, lane])
            }
            Special::ProgramId(axis @ 0..3) => {
                let axis = u32::from(axis);
                let u32_ty = self.module.uint(32);
                let vector = self.module.vector(u32_ty, 3);
                let variable = self.module.builtin(BuiltIn::WorkgroupId);
                let ids = self.load(vector, variable);
                let id = self.module.extract(u32_ty, ids, axis);
                let base = self.push_constant(3 + axis, Ty::I32);
                self.u32(Op::IAdd, &[id, base])
            }
            Special::NumPrograms(axis @ 0..3) => self.push_constant(axis.into(), Ty::I32),
            Special::ProgramId(axis) | Special::NumPrograms(axis) => {
                return Err(self.internal(&format!("a grid has three axes, not {axis}")));
            }
        })
    }

    fn builtin(&mut self, builtin: BuiltIn) -> Word {
        if matches!(builtin, BuiltIn::SubgroupId | BuiltIn::SubgroupLocalInvocationId) {
            self.module.capability(Capability::GroupNonUniform);
        }
        let variable = self.module.builtin(builtin);
        let ty = self.module.uint(32);
        self.load(ty, variable)
    }

    // ---- global memory -------------------------------------------------------------------------------------------

    /// The pointer to a `ty` at `base + offset`.
    fn address(&mut self, base: Word, offset: i64, ty: Word) -> Word {
        let mut address = base;
        if offset != 0 {
            let u64_ty = self.module.uint(64);
            let offset = self.module.constant(Ty::I64, offset as u64);
            address = self.module.op(Op::IAdd, u64_ty, &[base, offset]);
        }
        let pointer = self.module.pointer(StorageClass::PhysicalStorageBuffer, ty);
        self.module.op(Op::ConvertUToPtr, pointer, &[address])
    }

    /// The type in memory of an element in registers of types `tys`: a float if all of them are, else an integer.
    fn element(&mut self, bits: u8, mut tys: impl Iterator<Item = Ty>) -> Word {
        if bits >= 32 && tys.all(Ty::is_float) {
            return self.module.float(bits.into());
        }
        self.module.uint(bits.into())
    }

    fn check_access(&mut self, access: Access, registers: &[Value], what: &str) -> Result<()> {
        let Access { bits, n, .. } = access;
        let wide = bits == 64;
        let fits = matches!((bits, n), (8 | 16 | 32, 1 | 2 | 4) | (64, 1 | 2)) && registers.len() == usize::from(n);
        let narrow_floats = bits < 32 && registers.iter().any(|&v| self.func.ty(v).is_float());
        if !fits || narrow_floats || registers.iter().any(|&v| (self.func.ty(v).bits() == 64) != wide) {
            return Err(self.internal(&format!("a {what} of {n} x {bits} bits and {} registers", registers.len())));
        }
        Ok(())
    }

    /// The capability for a global access of narrow elements.
    fn narrow_global(&mut self, bits: u8) -> Result<()> {
        let (has, capability) = match bits {
            8 => (self.caps.access8, Capability::StorageBuffer8BitAccess),
            16 => (self.caps.access16, Capability::StorageBuffer16BitAccess),
            _ => return Ok(()),
        };
        if !has {
            return Err(self.unsupported(&format!("access of {bits} bits to global memory")));
        }
        self.module.capability(capability);
        Ok(())
    }

    fn global_access(&self, access: Access) -> [Operand; 2] {
        let private = match self.module.vulkan_memory() {
            true => MemoryAccess::NON_PRIVATE_POINTER,
            false => MemoryAccess::NONE,
        };
        let bytes = u32::from(access.bits) / 8 * u32::from(access.n);
        [Operand::MemoryAccess(MemoryAccess::ALIGNED | private), Operand::LiteralBit32(bytes)]
    }

    pub(super) fn global_load(&mut self, access: Access, inst: &InstData) -> Result<()> {
        self.check_access(access, &inst.results, "global load")?;
        self.narrow_global(access.bits)?;
        let (base, n) = (self.value(inst.operands[0]), u32::from(access.n));
        let guard = inst.operands.get(1).map(|&p| {
            let others = inst.operands[2..].iter().map(|&v| self.value(v)).collect();
            (self.value(p), others)
        });
        let func = self.func;
        self.guarded(guard, &inst.results, |e| {
            let element = e.element(access.bits, inst.results.iter().map(|&v| func.ty(v)));
            let ty = e.module.vector(element, n);
            let pointer = e.address(base, access.offset.into(), ty);
            let operands = [Operand::IdRef(pointer)].into_iter().chain(e.global_access(access)).collect();
            let mut loaded = e.module.op_with(Op::Load, ty, operands);
            let mut part = element;
            if access.bits < 32 {
                part = e.module.uint(32);
                let wide = e.module.vector(part, n);
                loaded = e.module.op(Op::UConvert, wide, &[loaded]);
            }
            let parts = (0..n).map(|i| if n == 1 { loaded } else { e.module.extract(part, loaded, i) });
            let parts: Vec<_> = parts.collect();
            inst.results.iter().zip(parts).map(|(&v, id)| e.bitcast(id, part, func.ty(v))).collect()
        });
        Ok(())
    }

    pub(super) fn global_store(&mut self, access: Access, inst: &InstData) -> Result<()> {
        let n = usize::from(access.n);
        let Some((&address, rest)) = inst.operands.split_first().filter(|(_, rest)| rest.len() >= n) else {
            return Err(self.internal("a store has too few operands"));
        };
        let (registers, guard) = rest.split_at(n);
        self.check_access(access, registers, "global store")?;
        self.narrow_global(access.bits)?;
        let base = self.value(address);
        let guard = guard.first().map(|&p| (self.value(p), vec![]));
        let func = self.func;
        self.guarded(guard, &[], |e| {
            let element = e.element(access.bits, registers.iter().map(|&v| func.ty(v)));
            // What the registers are before they are narrowed.
            let part = if access.bits < 32 { e.module.uint(32) } else { element };
            let parts: Vec<_> = registers
                .iter()
                .map(|&v| {
                    let id = e.value(v);
                    e.bitcast_to(id, func.ty(v), part)
                })
                .collect();
            let ty = e.module.vector(element, n as u32);
            let mut stored = parts[0];
            if n > 1 {
                let wide = e.module.vector(part, n as u32);
                stored = e.module.op(Op::CompositeConstruct, wide, &parts);
            }
            if access.bits < 32 {
                stored = e.module.op(Op::UConvert, ty, &[stored]);
            }
            let pointer = e.address(base, access.offset.into(), ty);
            let operands =
                [Operand::IdRef(pointer), Operand::IdRef(stored)].into_iter().chain(e.global_access(access)).collect();
            e.module.push(Op::Store, None, None, operands);
            vec![]
        });
        Ok(())
    }

    /// A value of the SPIR-V type `from` as a register of type `to`, of the same bits.
    fn bitcast(&mut self, id: Word, from: Word, to: Ty) -> Word {
        let to = self.module.ty(to);
        if from == to { id } else { self.module.op(Op::Bitcast, to, &[id]) }
    }

    /// The register of type `from` as a value of the SPIR-V type `to`, of the same bits.
    fn bitcast_to(&mut self, id: Word, from: Ty, to: Word) -> Word {
        let from = self.module.ty(from);
        if from == to { id } else { self.module.op(Op::Bitcast, to, &[id]) }
    }

    // ---- shared memory -------------------------------------------------------------------------------------------

    /// The array of all shared buffers with elements of `bits`.
    fn shared_array(&mut self, bits: u8) -> Word {
        if let Some(&(_, id)) = self.shared_arrays.iter().find(|&&(b, _)| b == bits) {
            return id;
        }
        // Variables of narrow elements need the arithmetic capabilities: those of storage are for buffers.
        match bits {
            8 => self.module.capability(Capability::Int8),
            16 => self.module.capability(Capability::Int16),
            _ => {}
        }
        let len = self.func.shared_bytes(Some(bits)).div_ceil(u32::from(bits) / 8).max(1);
        let element = self.module.uint(bits.into());
        let array = self.module.array(element, len);
        let id = self.module.variable(&format!("shared{bits}"), StorageClass::Workgroup, array);
        self.shared_arrays.push((bits, id));
        id
    }

    /// The pointer to element `i` of an access.
    fn shared_pointer(&mut self, buf: Shared, access: Access, byte: Word, i: u32) -> Word {
        let array = self.shared_array(access.bits);
        let bytes = u32::from(access.bits) / 8;
        // Wraps, as the sum does.
        let offset = (self.func.shared[buf].offset).wrapping_add_signed(access.offset).wrapping_add(i * bytes);
        let mut index = byte;
        if offset != 0 {
            let offset = self.module.const_u32(offset);
            index = self.u32(Op::IAdd, &[index, offset]);
        }
        if bytes > 1 {
            let shift = self.module.const_u32(bytes.trailing_zeros());
            index = self.u32(Op::ShiftRightLogical, &[index, shift]);
        }
        let element = self.module.uint(access.bits.into());
        let pointer = self.module.pointer(StorageClass::Workgroup, element);
        self.module.op(Op::AccessChain, pointer, &[array, index])
    }

    fn check_shared(&mut self, buf: Shared, access: Access, registers: &[Value], what: &str) -> Result<()> {
        self.check_access(access, registers, what)?;
        let elem_bits = self.func.shared[buf].elem_bits;
        if elem_bits != access.bits {
            return Err(self.internal(&format!("a {what} of {} bits in a buffer of {elem_bits}", access.bits)));
        }
        Ok(())
    }

    fn shared_access(&self) -> impl Iterator<Item = Operand> + use<> {
        let vulkan = self.module.vulkan_memory();
        vulkan.then_some(Operand::MemoryAccess(MemoryAccess::NON_PRIVATE_POINTER)).into_iter()
    }

    pub(super) fn shared_load(&mut self, buf: Shared, access: Access, inst: &InstData) -> Result<()> {
        self.check_shared(buf, access, &inst.results, "shared load")?;
        let byte = self.value(inst.operands[0]);
        let element = self.module.uint(access.bits.into());
        for (&result, i) in inst.results.iter().zip(0..) {
            let pointer = self.shared_pointer(buf, access, byte, i);
            let operands = [Operand::IdRef(pointer)].into_iter().chain(self.shared_access()).collect();
            let loaded = self.module.op_with(Op::Load, element, operands);
            let id = if access.bits < 32 {
                self.u32(Op::UConvert, &[loaded])
            } else {
                self.bitcast(loaded, element, self.func.ty(result))
            };
            self.define(result, id);
        }
        Ok(())
    }

    pub(super) fn shared_store(&mut self, buf: Shared, access: Access, inst: &InstData) -> Result<()> {
        let n = usize::from(access.n);
        let Some((&byte, rest)) = inst.operands.split_first().filter(|(_, rest)| rest.len() >= n) else {
            return Err(self.internal("a store has too few operands"));
        };
        let (registers, guard) = rest.split_at(n);
        self.check_shared(buf, access, registers, "shared store")?;
        let byte = self.value(byte);
        let guard = guard.first().map(|&p| (self.value(p), vec![]));
        let func = self.func;
        self.guarded(guard, &[], |e| {
            let element = e.module.uint(access.bits.into());
            for (&register, i) in registers.iter().zip(0..) {
                let id = e.value(register);
                let stored = if access.bits < 32 {
                    e.module.op(Op::UConvert, element, &[id])
                } else {
                    e.bitcast_to(id, func.ty(register), element)
                };
                let pointer = e.shared_pointer(buf, access, byte, i);
                let operands = [Operand::IdRef(pointer), Operand::IdRef(stored)];
                let operands = operands.into_iter().chain(e.shared_access()).collect();
                e.module.push(Op::Store, None, None, operands);
            }
            vec![]
        });
        Ok(())
    }

    // ---- other threads -------------------------------------------------------------------------------------------

    pub(super) fn shuffle(&mut self, shuffle: Shuffle, inst: &InstData) -> Result<()> {
        if self.func.warp_width == 1 {
            return Err(self.unsupported("shuffle in warps of one lane"));
        }
        self.module.capability(Capability::GroupNonUniform);
        self.module.capability(Capability::GroupNonUniformShuffle);
        let scope = self.module.const_u32(Scope::Subgroup as u32);
        let value = self.value(inst.operands[0]);
        let (op, lane) = match shuffle {
            Shuffle::Xor(mask) => (Op::GroupNonUniformShuffleXor, self.module.const_u32(mask)),
            Shuffle::Index => (Op::GroupNonUniformShuffle, self.value(inst.operands[1])),
        };
        let ty = self.module.ty(self.func.ty(inst.results[0]));
        let operands = vec![Operand::IdScope(scope), Operand::IdRef(value), Operand::IdRef(lane)];
        let id = self.module.op_with(op, ty, operands);
        self.define(inst.results[0], id);
        Ok(())
    }

    /// A barrier among the invocations of `scope`. In the Vulkan memory model it also makes what they wrote available,
    /// and what others wrote visible to them.
    pub(super) fn barrier(&mut self, scope: Scope) {
        let mut semantics =
            MemorySemantics::ACQUIRE_RELEASE | MemorySemantics::WORKGROUP_MEMORY | MemorySemantics::UNIFORM_MEMORY;
        if self.module.vulkan_memory() {
            semantics |= MemorySemantics::MAKE_AVAILABLE | MemorySemantics::MAKE_VISIBLE;
        }
        let scope = self.module.const_u32(scope as u32);
        let semantics = self.module.const_u32(semantics.bits());
        let operands = vec![Operand::IdScope(scope), Operand::IdScope(scope), Operand::IdMemorySemantics(semantics)];
        self.module.push(Op::ControlBarrier, None, None, operands);
    }
}
