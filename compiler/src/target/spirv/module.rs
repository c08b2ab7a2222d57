//! Module-level SPIR-V: types, constants, variables and capabilities, each declared once and only when used.

use crate::thread::Ty;
use rspirv::binary::Assemble;
use rspirv::dr::{Builder, InsertPoint, Instruction, Operand};
use rspirv::spirv::{
    AddressingModel, BuiltIn, Capability, Decoration, ExecutionMode, ExecutionModel, FunctionControl, GlslStd450Op,
    MemoryModel, Op, StorageClass, Word,
};
use std::collections::HashMap;

/// What identifies a type or a constant: the instruction but for its result.
type Key = (Op, Option<Word>, Vec<Operand>);

/// A SPIR-V module with one function under construction.
pub(super) struct Module {
    builder: Builder,
    globals: HashMap<Key, Word>,
    capabilities: Vec<Capability>,
    glsl: Option<Word>,
    builtins: HashMap<BuiltIn, Word>,
    /// Every global variable: SPIR-V 1.4 and later wants all that the entry point uses in its interface.
    interface: Vec<Word>,
    vulkan_memory: bool,
}

impl Module {
    /// An empty module of SPIR-V 1.5, the version of Vulkan 1.2; all that is used of storage classes and subgroups is in
    /// its core. `vulkan_memory` asks for the Vulkan memory model instead of GLSL450.
    pub(super) fn new(vulkan_memory: bool) -> Self {
        let mut builder = Builder::new();
        builder.set_version(1, 5);
        let mut module = Self {
            builder,
            globals: HashMap::new(),
            capabilities: Vec::new(),
            glsl: None,
            builtins: HashMap::new(),
            interface: Vec::new(),
            vulkan_memory,
        };
        module.capability(Capability::Shader);
        if vulkan_memory {
            module.capability(Capability::VulkanMemoryModel);
        }
        module
    }

    /// Is the memory model Vulkan's?
    pub(super) fn vulkan_memory(&self) -> bool {
        self.vulkan_memory
    }

    /// Declares a capability.
    pub(super) fn capability(&mut self, capability: Capability) {
        if !self.capabilities.contains(&capability) {
            self.capabilities.push(capability);
        }
    }

    /// A fresh id.
    pub(super) fn id(&mut self) -> Word {
        self.builder.id()
    }

    /// Appends an instruction to the open block.
    pub(super) fn push(&mut self, op: Op, ty: Option<Word>, result: Option<Word>, operands: Vec<Operand>) {
        self.builder
            .insert_into_block(InsertPoint::End, Instruction::new(op, ty, result, operands))
            .expect("instructions are emitted while a block is open");
    }

    // ---- types ---------------------------------------------------------------------------------------------------

    fn global(&mut self, op: Op, ty: Option<Word>, operands: Vec<Operand>) -> Word {
        let key = (op, ty, operands);
        if let Some(&id) = self.globals.get(&key) {
            return id;
        }
        let id = self.builder.id();
        let inst = Instruction::new(op, ty, Some(id), key.2.clone());
        self.builder.insert_types_global_values(InsertPoint::End, inst);
        self.globals.insert(key, id);
        id
    }

    /// An unsigned integer type; signedness is in the ops. `Int8` and `Int16` are left to who computes with them: loads,
    /// stores and conversions of 8 and 16 bits need only the storage capabilities.
    pub(super) fn uint(&mut self, bits: u32) -> Word {
        if bits == 64 {
            self.capability(Capability::Int64);
        }
        self.global(Op::TypeInt, None, vec![Operand::LiteralBit32(bits), Operand::LiteralBit32(0)])
    }

    /// A float type.
    pub(super) fn float(&mut self, bits: u32) -> Word {
        if bits == 64 {
            self.capability(Capability::Float64);
        }
        self.global(Op::TypeFloat, None, vec![Operand::LiteralBit32(bits)])
    }

    /// The type of truth values.
    pub(super) fn bool(&mut self) -> Word {
        self.global(Op::TypeBool, None, vec![])
    }

    /// The type of a register.
    pub(super) fn ty(&mut self, ty: Ty) -> Word {
        match ty {
            Ty::Pred => self.bool(),
            Ty::I32 | Ty::I64 => self.uint(ty.bits()),
            Ty::F32 | Ty::F64 => self.float(ty.bits()),
        }
    }

    /// A vector of `n` elements, or the element itself if `n` is 1.
    pub(super) fn vector(&mut self, element: Word, n: u32) -> Word {
        match n {
            1 => element,
            _ => self.global(Op::TypeVector, None, vec![Operand::IdRef(element), Operand::LiteralBit32(n)]),
        }
    }

    /// An array without layout.
    pub(super) fn array(&mut self, element: Word, len: u32) -> Word {
        let len = self.const_u32(len);
        self.global(Op::TypeArray, None, vec![Operand::IdRef(element), Operand::IdRef(len)])
    }

    /// A structure of two members of type `ty`, without layout.
    pub(super) fn pair(&mut self, ty: Word) -> Word {
        self.global(Op::TypeStruct, None, vec![Operand::IdRef(ty), Operand::IdRef(ty)])
    }

    /// A pointer type.
    pub(super) fn pointer(&mut self, class: StorageClass, to: Word) -> Word {
        if class == StorageClass::PhysicalStorageBuffer {
            self.capability(Capability::PhysicalStorageBufferAddresses);
        }
        self.global(Op::TypePointer, None, vec![Operand::StorageClass(class), Operand::IdRef(to)])
    }

    /// A block with members at these byte offsets. Made once, hence not looked up.
    pub(super) fn block(&mut self, members: &[(Word, u32)]) -> Word {
        let id = self.builder.id();
        let operands = members.iter().map(|&(ty, _)| Operand::IdRef(ty)).collect();
        let inst = Instruction::new(Op::TypeStruct, None, Some(id), operands);
        self.builder.insert_types_global_values(InsertPoint::End, inst);
        self.builder.decorate(id, Decoration::Block, []);
        for (member, &(_, offset)) in (0..).zip(members) {
            self.builder.member_decorate(id, member, Decoration::Offset, [Operand::LiteralBit32(offset)]);
        }
        id
    }

    // ---- constants -----------------------------------------------------------------------------------------------

    /// A constant of these bits.
    pub(super) fn constant(&mut self, ty: Ty, bits: u64) -> Word {
        let id = self.ty(ty);
        match ty {
            Ty::Pred if bits & 1 == 1 => self.global(Op::ConstantTrue, Some(id), vec![]),
            Ty::Pred => self.global(Op::ConstantFalse, Some(id), vec![]),
            Ty::I32 | Ty::F32 => self.global(Op::Constant, Some(id), vec![Operand::LiteralBit32(bits as u32)]),
            Ty::I64 | Ty::F64 => self.global(Op::Constant, Some(id), vec![Operand::LiteralBit64(bits)]),
        }
    }

    /// A 32-bit integer constant.
    pub(super) fn const_u32(&mut self, value: u32) -> Word {
        self.constant(Ty::I32, value.into())
    }

    // ---- variables -----------------------------------------------------------------------------------------------

    /// A module variable of type `ty`.
    pub(super) fn variable(&mut self, name: &str, class: StorageClass, ty: Word) -> Word {
        let pointer = self.pointer(class, ty);
        let id = self.builder.id();
        let inst = Instruction::new(Op::Variable, Some(pointer), Some(id), vec![Operand::StorageClass(class)]);
        self.builder.insert_types_global_values(InsertPoint::End, inst);
        self.builder.name(id, name);
        self.interface.push(id);
        id
    }

    /// The input variable of a built-in value: three `u32` for `WorkgroupId`, else one.
    pub(super) fn builtin(&mut self, builtin: BuiltIn) -> Word {
        if let Some(&id) = self.builtins.get(&builtin) {
            return id;
        }
        let u32_ty = self.uint(32);
        let ty = self.vector(u32_ty, if builtin == BuiltIn::WorkgroupId { 3 } else { 1 });
        let id = self.variable(&format!("{builtin:?}"), StorageClass::Input, ty);
        self.builder.decorate(id, Decoration::BuiltIn, [Operand::BuiltIn(builtin)]);
        self.builtins.insert(builtin, id);
        id
    }

    // ---- instructions --------------------------------------------------------------------------------------------

    /// An instruction with a result.
    pub(super) fn op_with(&mut self, op: Op, ty: Word, operands: Vec<Operand>) -> Word {
        let id = self.builder.id();
        self.push(op, Some(ty), Some(id), operands);
        id
    }

    /// An instruction of ids with a result.
    pub(super) fn op(&mut self, op: Op, ty: Word, operands: &[Word]) -> Word {
        self.op_with(op, ty, operands.iter().map(|&id| Operand::IdRef(id)).collect())
    }

    /// An instruction of `GLSL.std.450`.
    pub(super) fn glsl(&mut self, inst: GlslStd450Op, ty: Word, operands: &[Word]) -> Word {
        let set = match self.glsl {
            Some(set) => set,
            None => *self.glsl.insert(self.builder.ext_inst_import("GLSL.std.450")),
        };
        let mut all = vec![Operand::IdRef(set), Operand::LiteralExtInstInteger(inst as u32)];
        all.extend(operands.iter().map(|&id| Operand::IdRef(id)));
        self.op_with(Op::ExtInst, ty, all)
    }

    /// Forbids the driver to fuse or rearrange the instruction.
    pub(super) fn no_contraction(&mut self, id: Word) -> Word {
        self.builder.decorate(id, Decoration::NoContraction, []);
        id
    }

    /// A member of a composite.
    pub(super) fn extract(&mut self, ty: Word, composite: Word, index: u32) -> Word {
        self.op_with(Op::CompositeExtract, ty, vec![Operand::IdRef(composite), Operand::LiteralBit32(index)])
    }

    // ---- blocks --------------------------------------------------------------------------------------------------

    /// Opens a block.
    pub(super) fn begin_block(&mut self, label: Word) {
        self.builder.begin_block(Some(label)).expect("one block is ended before the next begins");
    }

    /// Ends the open block.
    pub(super) fn branch(&mut self, to: Word) {
        self.builder.branch(to).expect("a branch ends an open block");
    }

    /// Ends the open block.
    pub(super) fn branch_conditional(&mut self, condition: Word, then: Word, otherwise: Word) {
        self.builder.branch_conditional(condition, then, otherwise, []).expect("a branch ends an open block");
    }

    /// The index of the open block in the function.
    pub(super) fn open_block(&self) -> usize {
        self.builder.selected_block().expect("a block is open")
    }

    /// Adds an incoming value to the phi that is instruction `index` of a block.
    pub(super) fn add_incoming(&mut self, block: usize, index: usize, value: Word, from: Word) {
        let phi = &mut self.builder.module_mut().functions[0].blocks[block].instructions[index];
        debug_assert_eq!(phi.class.opcode, Op::Phi, "the phis of a loop are the first instructions of its header");
        phi.operands.extend([Operand::IdRef(value), Operand::IdRef(from)]);
    }

    /// Opens the only function, with its first block; gives the function and the block's label.
    pub(super) fn begin_function(&mut self) -> (Word, Word) {
        let void = self.global(Op::TypeVoid, None, vec![]);
        let ty = self.global(Op::TypeFunction, None, vec![Operand::IdRef(void)]);
        let function = self
            .builder
            .begin_function(void, None, FunctionControl::NONE, ty)
            .expect("a module has one function, begun once");
        let label = self.builder.id();
        self.begin_block(label);
        (function, label)
    }

    /// Ends the function and the module: the entry point `name` of `threads` threads.
    pub(super) fn finish(mut self, function: Word, name: &str, threads: u32, keep_nan: [bool; 2]) -> Vec<u32> {
        self.builder.ret().expect("the last block of the function is open");
        self.builder.end_function().expect("the function is open");
        let kept: Vec<u32> = [(32, keep_nan[0]), (64, keep_nan[1] && self.capabilities.contains(&Capability::Float64))]
            .into_iter()
            .filter(|(_, keep)| *keep)
            .map(|(width, _)| width)
            .collect();
        if !kept.is_empty() {
            self.capability(Capability::SignedZeroInfNanPreserve);
        }
        for &capability in &self.capabilities {
            self.builder.capability(capability);
        }
        let addressing = if self.capabilities.contains(&Capability::PhysicalStorageBufferAddresses) {
            AddressingModel::PhysicalStorageBuffer64
        } else {
            AddressingModel::Logical
        };
        let memory = if self.vulkan_memory { MemoryModel::Vulkan } else { MemoryModel::GLSL450 };
        self.builder.memory_model(addressing, memory);
        self.builder.entry_point(ExecutionModel::GLCompute, function, name, &self.interface);
        // In the core since SPIR-V 1.4. Its siblings `DenormPreserve` and `RoundingModeRTE` would go here, too; a module that
        // asks for one that the device has not is invalid there.
        for width in kept {
            self.builder.execution_mode(function, ExecutionMode::SignedZeroInfNanPreserve, [width]);
        }
        self.builder.execution_mode(function, ExecutionMode::LocalSize, [threads, 1, 1]);
        self.builder.name(function, name);
        self.builder.module().assemble()
    }
}
