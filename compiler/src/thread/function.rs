//! Thread IR functions: values, instructions, blocks and shared buffers in arenas.

use super::ops::{Op, Ty};
use crate::entity::Arena;
use std::collections::HashMap;

crate::entity! {
    /// A register: defined once.
    Value, "r"
}
crate::entity! {
    /// An instruction.
    InstId, "inst"
}
crate::entity! {
    /// A list of instructions with parameters.
    Block, "block"
}
crate::entity! {
    /// A buffer in shared memory.
    Shared, "shared"
}

/// How a kernel parameter is passed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AbiTy {
    /// 4 bytes; also narrower integers and the bits of `f16`/`bf16`, zero or sign-extended, and `bool` as 0 or 1.
    I32,
    /// 8 bytes.
    I64,
    /// 4 bytes.
    F32,
    /// 8 bytes.
    F64,
    /// An address in global memory, 8 bytes; an `I64` register.
    Ptr,
}

impl AbiTy {
    /// Every one.
    pub const ALL: [AbiTy; 5] = [AbiTy::I32, AbiTy::I64, AbiTy::F32, AbiTy::F64, AbiTy::Ptr];

    /// The name in IR text.
    pub const fn name(self) -> &'static str {
        match self {
            AbiTy::I32 => "i32",
            AbiTy::I64 => "i64",
            AbiTy::F32 => "f32",
            AbiTy::F64 => "f64",
            AbiTy::Ptr => "ptr",
        }
    }

    /// The register type.
    pub const fn ty(self) -> Ty {
        match self {
            AbiTy::I32 => Ty::I32,
            AbiTy::I64 | AbiTy::Ptr => Ty::I64,
            AbiTy::F32 => Ty::F32,
            AbiTy::F64 => Ty::F64,
        }
    }

    /// Bytes, which is also the alignment.
    pub const fn bytes(self) -> usize {
        match self {
            AbiTy::I32 | AbiTy::F32 => 4,
            AbiTy::I64 | AbiTy::F64 | AbiTy::Ptr => 8,
        }
    }
}

/// A kernel parameter.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct AbiParam {
    /// Its name, unique in the function: an identifier.
    pub name: String,
    /// How it is passed.
    pub ty: AbiTy,
}

/// A buffer in shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SharedBuf {
    /// Its size.
    pub bytes: u32,
    /// Its alignment, a power of two, at least `elem_bits / 8`.
    pub align: u32,
    /// Bits of its elements. On targets without [`crate::target::Caps::untyped_shared`] every access has this width and
    /// `n = 1`.
    pub elem_bits: u8,
    /// Where it starts. On targets with untyped shared memory: bytes from the start of the program's shared memory; else
    /// bytes from the start of the array of all buffers with these `elem_bits`. Buffers that are never live at once may
    /// overlap.
    pub offset: u32,
}

/// A register's type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ValueData {
    /// Its type.
    pub ty: Ty,
}

/// One instruction.
#[derive(Clone, PartialEq, Debug)]
pub struct InstData {
    /// What it does.
    pub op: Op,
    /// What it takes, in the order [`Op`] states.
    pub operands: Vec<Value>,
    /// What it gives.
    pub results: Vec<Value>,
    /// Its blocks, for `If` and `Loop`.
    pub blocks: Vec<Block>,
}

/// A list of instructions, the last of which is the terminator.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct BlockData {
    /// Carried values of a loop.
    pub params: Vec<Value>,
    /// Instructions in order.
    pub insts: Vec<InstId>,
}

/// What one thread of a program does.
#[derive(Clone, PartialEq, Debug)]
pub struct Function {
    /// The entry point's name: an identifier.
    pub name: String,
    /// Parameters in launch order.
    pub params: Vec<AbiParam>,
    /// Threads of one program: a power of two, a multiple of `warp_width`.
    pub threads: u32,
    /// Lanes of a warp: a power of two; 1 on targets without shuffles.
    pub warp_width: u32,
    /// Shared buffers.
    pub shared: Arena<Shared, SharedBuf>,
    /// Registers.
    pub values: Arena<Value, ValueData>,
    /// Instructions.
    pub insts: Arena<InstId, InstData>,
    /// Blocks.
    pub blocks: Arena<Block, BlockData>,
    /// The body, ended by `Yield` without values.
    pub body: Block,
}

impl Function {
    /// The type of a register.
    pub fn ty(&self, value: Value) -> Ty {
        self.values[value].ty
    }

    /// Bytes of shared memory in the array of buffers of `elem_bits` (`None`: of all buffers, untyped).
    pub fn shared_bytes(&self, elem_bits: Option<u8>) -> u32 {
        let of = |b: &&SharedBuf| elem_bits.is_none_or(|bits| bits == b.elem_bits);
        self.shared.iter().map(|(_, b)| b).filter(of).map(|b| b.offset + b.bytes).max().unwrap_or(0)
    }

    /// Calls `f` on every instruction reachable from `block`, in order, one before those in its blocks.
    pub fn walk(&self, block: Block, f: &mut impl FnMut(InstId)) {
        for &inst in &self.blocks[block].insts {
            f(inst);
            for &inner in &self.insts[inst].blocks {
                self.walk(inner, f);
            }
        }
    }

    /// The same function with everything numbered in the order of its text, and nothing that stands in no block: what
    /// [`super::parse()`] makes of the text. For functions that obey [`super::verify()`].
    #[must_use]
    pub fn renumbered(&self) -> Function {
        let mut new = Function {
            name: self.name.clone(),
            params: self.params.clone(),
            threads: self.threads,
            warp_width: self.warp_width,
            shared: self.shared.clone(),
            values: Arena::new(),
            insts: Arena::new(),
            blocks: Arena::new(),
            body: self.body,
        };
        let mut values = HashMap::new();
        self.number(self.body, &mut new, &mut values);
        new.body = self.renumber(self.body, &mut new, &mut values);
        new
    }

    /// Numbers what is defined in a block and in those inside it.
    fn number(&self, block: Block, new: &mut Function, values: &mut HashMap<Value, Value>) {
        for &v in &self.blocks[block].params {
            values.entry(v).or_insert_with(|| new.values.push(self.values[v]));
        }
        for &inst in &self.blocks[block].insts {
            for &v in &self.insts[inst].results {
                values.entry(v).or_insert_with(|| new.values.push(self.values[v]));
            }
            for &inner in &self.insts[inst].blocks {
                self.number(inner, new, values);
            }
        }
    }

    fn renumber(&self, block: Block, new: &mut Function, values: &mut HashMap<Value, Value>) -> Block {
        let named = |of: &[Value], new: &mut Function, values: &mut HashMap<Value, Value>| -> Vec<Value> {
            of.iter().map(|&v| *values.entry(v).or_insert_with(|| new.values.push(self.values[v]))).collect()
        };
        let params = named(&self.blocks[block].params, new, values);
        let to = new.blocks.push(BlockData { params, insts: Vec::new() });
        for &inst in &self.blocks[block].insts {
            let data = &self.insts[inst];
            let (operands, results) = (named(&data.operands, new, values), named(&data.results, new, values));
            let id = new.insts.push(InstData { op: data.op.clone(), operands, results, blocks: Vec::new() });
            new.blocks[to].insts.push(id);
            for &inner in &data.blocks {
                let inner = self.renumber(inner, new, values);
                new.insts[id].blocks.push(inner);
            }
        }
        to
    }
}
