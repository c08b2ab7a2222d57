//! Building Thread IR: constants are folded, equal pure ops shared, and every pure op is placed in the outermost open
//! block where its operands exist, so that what does not change in a loop is computed before it.

use super::eval;
use super::function::{
    AbiParam, AbiTy, Block, BlockData, Function, InstData, InstId, Shared, SharedBuf, Value, ValueData,
};
use super::ops::{Access, Cmp, Conv, FBin, FUn, IBin, MmaKind, Op, Shuffle, Special, Ty, WgmmaLeft, WgmmaMatrix};
use crate::entity::{Arena, Entity};
use std::collections::HashMap;

type Key = (Op, Vec<Value>, Ty);

#[derive(Debug)]
struct Open {
    block: Block,
    /// Pure ops already in this block.
    memo: HashMap<Key, Value>,
}

#[derive(Debug)]
enum Frame {
    Then { condition: Value, then: Block },
    Else { condition: Value, then: Block, otherwise: Block },
    Condition { inits: Vec<Value>, condition: Block },
    Body { inits: Vec<Value>, condition: Block, body: Block },
}

/// Builds a [`Function`].
#[derive(Debug)]
pub struct Builder {
    func: Function,
    open: Vec<Open>,
    frames: Vec<Frame>,
    /// For each value, the index in `open` of the block it is defined in.
    level: Vec<usize>,
    /// For each value, its bits, if it is a constant.
    known: Vec<Option<u64>>,
    /// For each value, the instruction that defines it, unless it is a block parameter.
    def: Vec<Option<InstId>>,
}

impl Builder {
    /// A function for programs of `threads` threads in warps of `warp_width` lanes.
    pub fn new(name: impl Into<String>, params: Vec<AbiParam>, threads: u32, warp_width: u32) -> Self {
        let mut blocks = Arena::new();
        let body = blocks.push(BlockData::default());
        let func = Function {
            name: name.into(),
            params,
            threads,
            warp_width,
            shared: Arena::new(),
            values: Arena::new(),
            insts: Arena::new(),
            blocks,
            body,
        };
        let open = vec![Open { block: body, memo: HashMap::new() }];
        Self { func, open, frames: Vec::new(), level: Vec::new(), known: Vec::new(), def: Vec::new() }
    }

    /// The function as built so far.
    pub fn func(&self) -> &Function {
        &self.func
    }

    /// Adds a shared buffer; its offset is set by whoever allocates shared memory.
    pub fn shared(&mut self, buf: SharedBuf) -> Shared {
        self.func.shared.push(buf)
    }

    /// Changes a shared buffer (its offset, when shared memory is allocated).
    pub fn shared_mut(&mut self, buf: Shared) -> &mut SharedBuf {
        &mut self.func.shared[buf]
    }

    /// The type of a register.
    pub fn ty(&self, v: Value) -> Ty {
        self.func.ty(v)
    }

    /// The bits of a register that is a constant.
    pub fn bits(&self, v: Value) -> Option<u64> {
        self.known[v.index()]
    }

    /// The signed value of an integer register that is a constant.
    pub fn int(&self, v: Value) -> Option<i64> {
        let bits = self.bits(v)?;
        match self.ty(v) {
            Ty::I32 => Some(i64::from(bits as u32 as i32)),
            Ty::I64 => Some(bits as i64),
            _ => None,
        }
    }

    fn new_value(&mut self, ty: Ty, level: usize) -> Value {
        self.level.push(level);
        self.known.push(None);
        self.def.push(None);
        self.func.values.push(ValueData { ty })
    }

    fn append(&mut self, level: usize, op: Op, operands: Vec<Value>, types: &[Ty], blocks: Vec<Block>) -> Vec<Value> {
        let results: Vec<_> = types.iter().map(|&ty| self.new_value(ty, level)).collect();
        let inst = self.func.insts.push(InstData { op, operands, results: results.clone(), blocks });
        for result in &results {
            self.def[result.index()] = Some(inst);
        }
        let block = self.open[level].block;
        self.func.blocks[block].insts.push(inst);
        results
    }

    /// An op placed exactly here, at the end of the innermost open block.
    pub fn emit(&mut self, op: Op, operands: Vec<Value>, types: &[Ty]) -> Vec<Value> {
        self.append(self.open.len() - 1, op, operands, types, vec![])
    }

    /// A pure op: folded, shared, or placed in the outermost open block where its operands exist.
    pub fn pure(&mut self, op: Op, operands: Vec<Value>, ty: Ty) -> Value {
        if let Some(v) = self.simplify(&op, &operands, ty) {
            return v;
        }
        let level = operands.iter().map(|o| self.level[o.index()]).max().unwrap_or(0);
        let key = (op, operands, ty);
        if let Some(&v) = self.open[level].memo.get(&key) {
            return v;
        }
        let (op, operands, _) = key.clone();
        let bits = if let Op::Const(bits) = op { Some(bits) } else { None };
        let v = self.append(level, op, operands, &[ty], vec![])[0];
        self.known[v.index()] = bits;
        self.open[level].memo.insert(key, v);
        v
    }

    /// What a pure op comes to without making it, if that is known.
    fn simplify(&mut self, op: &Op, operands: &[Value], ty: Ty) -> Option<Value> {
        if matches!(op, Op::Const(_)) {
            return None;
        }
        let known: Vec<_> = operands.iter().map(|&o| self.bits(o)).collect();
        if !operands.is_empty() && known.iter().all(Option::is_some) {
            let types: Vec<_> = operands.iter().map(|&o| self.ty(o)).collect();
            let bits: Vec<_> = known.iter().map(|k| k.unwrap_or_default()).collect();
            if let Some(r) = eval::eval(op, &types, &bits, ty) {
                return Some(self.constant(ty, r));
            }
        }
        let (x, y) = (operands.first().copied()?, operands.get(1).copied());
        match op {
            Op::Select => {
                if let Some(c) = known[0] {
                    return Some(operands[if c & 1 == 1 { 1 } else { 2 }]);
                }
                (operands[1] == operands[2]).then_some(operands[1])
            }
            Op::IBin(b) => {
                let y = y?;
                let ones = eval::truncate(ty, u64::MAX);
                let (kx, ky) = (known[0], known[1]);
                match b {
                    // Constants to the right, so that sums of constants meet.
                    IBin::Add | IBin::Mul | IBin::And | IBin::Or | IBin::Xor if kx.is_some() && ky.is_none() => {
                        Some(self.pure(Op::IBin(*b), vec![y, x], ty))
                    }
                    IBin::Add => match ky? {
                        0 => Some(x),
                        c => {
                            let (inner, c0) = self.add_constant(x)?;
                            let sum = self.constant(ty, eval::ibin(IBin::Add, ty, c0, c));
                            Some(self.pure(Op::IBin(IBin::Add), vec![inner, sum], ty))
                        }
                    },
                    IBin::Sub if x == y => Some(self.constant(ty, 0)),
                    IBin::Sub => match ky? {
                        0 => Some(x),
                        c => {
                            let minus = self.constant(ty, eval::ibin(IBin::Sub, ty, 0, c));
                            Some(self.pure(Op::IBin(IBin::Add), vec![x, minus], ty))
                        }
                    },
                    IBin::Mul => match ky? {
                        0 => Some(y),
                        1 => Some(x),
                        c if c.is_power_of_two() => {
                            let s = self.constant(ty, u64::from(c.trailing_zeros()));
                            Some(self.pure(Op::IBin(IBin::Shl), vec![x, s], ty))
                        }
                        _ => None,
                    },
                    IBin::DivU => match ky? {
                        1 => Some(x),
                        c if c.is_power_of_two() => {
                            let s = self.constant(ty, u64::from(c.trailing_zeros()));
                            Some(self.pure(Op::IBin(IBin::ShrU), vec![x, s], ty))
                        }
                        _ => None,
                    },
                    IBin::RemU => match ky? {
                        c if c.is_power_of_two() => {
                            let m = self.constant(ty, c - 1);
                            Some(self.pure(Op::IBin(IBin::And), vec![x, m], ty))
                        }
                        _ => None,
                    },
                    IBin::And if x == y => Some(x),
                    IBin::And => match ky? {
                        0 => Some(y),
                        c if c == ones => Some(x),
                        _ => None,
                    },
                    IBin::Or if x == y => Some(x),
                    IBin::Or => match ky? {
                        0 => Some(x),
                        c if c == ones => Some(y),
                        _ => None,
                    },
                    IBin::Xor if x == y => Some(self.constant(ty, 0)),
                    IBin::Xor => match ky? {
                        0 => Some(x),
                        1 if ty == Ty::Pred => Some(self.not(x)),
                        _ => None,
                    },
                    IBin::Shl | IBin::ShrS | IBin::ShrU if ky == Some(0) || kx == Some(0) => Some(x),
                    IBin::MinS | IBin::MinU | IBin::MaxS | IBin::MaxU if x == y => Some(x),
                    IBin::MinS | IBin::MinU | IBin::MaxS | IBin::MaxU => self.extreme_widened(*b, x, y),
                    _ => None,
                }
            }
            Op::ICmpS(cmp) => self.compare_widened(*cmp, true, x, y?),
            Op::ICmpU(cmp) => self.compare_widened(*cmp, false, x, y?),
            Op::Not => {
                let inst = self.def(x)?;
                matches!(inst.op, Op::Not).then(|| inst.operands[0])
            }
            Op::Conv(Conv::Bitcast) if self.ty(x) == ty => Some(x),
            _ => None,
        }
    }

    /// `x` as a sum of a register and a constant.
    fn add_constant(&self, x: Value) -> Option<(Value, u64)> {
        let inst = self.def(x)?;
        match inst.op {
            Op::IBin(IBin::Add) => Some((inst.operands[0], self.bits(inst.operands[1])?)),
            _ => None,
        }
    }

    /// The instruction that defines `v`, unless it is a block parameter.
    pub fn def(&self, v: Value) -> Option<&InstData> {
        self.def[v.index()].map(|inst| &self.func.insts[inst])
    }

    /// How deep in the open blocks `v` is computed: 0 for the body. What is computed at a smaller level changes less often.
    pub fn level(&self, v: Value) -> usize {
        self.level[v.index()]
    }

    /// How many blocks are open: the body, and one for each `If` or `Loop` being built.
    pub fn depth(&self) -> usize {
        self.open.len()
    }

    // ---- constants, parameters ----------------------------------------------------------------------------------

    /// The register of these bits.
    pub fn constant(&mut self, ty: Ty, bits: u64) -> Value {
        self.pure(Op::Const(eval::truncate(ty, bits)), vec![], ty)
    }

    /// An `I32` constant.
    pub fn i32(&mut self, value: i32) -> Value {
        self.constant(Ty::I32, value as u32 as u64)
    }

    /// An `I64` constant.
    pub fn i64(&mut self, value: i64) -> Value {
        self.constant(Ty::I64, value as u64)
    }

    /// An integer constant of type `ty`.
    pub fn iconst(&mut self, ty: Ty, value: i64) -> Value {
        self.constant(ty, value as u64)
    }

    /// A float constant of type `ty`: the nearest float to `value`.
    pub fn fconst(&mut self, ty: Ty, value: f64) -> Value {
        let bits = if ty == Ty::F32 { u64::from((value as f32).to_bits()) } else { value.to_bits() };
        self.constant(ty, bits)
    }

    /// A truth value.
    pub fn pred(&mut self, value: bool) -> Value {
        self.constant(Ty::Pred, value.into())
    }

    /// A kernel parameter.
    pub fn param(&mut self, index: u32) -> Value {
        let ty: AbiTy = self.func.params[index as usize].ty;
        self.pure(Op::Param(index), vec![], ty.ty())
    }

    /// Where the thread stands.
    pub fn special(&mut self, special: Special) -> Value {
        self.pure(Op::Special(special), vec![], Ty::I32)
    }

    // ---- arithmetic ----------------------------------------------------------------------------------------------

    /// An integer op; also `And`, `Or`, `Xor` of truth values.
    pub fn ibin(&mut self, op: IBin, a: Value, b: Value) -> Value {
        let ty = self.ty(a);
        debug_assert_eq!(ty, self.ty(b), "operands of {op:?} have one type");
        self.pure(Op::IBin(op), vec![a, b], ty)
    }

    /// Integer sum.
    pub fn add(&mut self, a: Value, b: Value) -> Value {
        self.ibin(IBin::Add, a, b)
    }

    /// Integer difference.
    pub fn sub(&mut self, a: Value, b: Value) -> Value {
        self.ibin(IBin::Sub, a, b)
    }

    /// Integer product.
    pub fn mul(&mut self, a: Value, b: Value) -> Value {
        self.ibin(IBin::Mul, a, b)
    }

    /// Bitwise or logical and.
    pub fn and(&mut self, a: Value, b: Value) -> Value {
        self.ibin(IBin::And, a, b)
    }

    /// Bitwise or logical or.
    pub fn or(&mut self, a: Value, b: Value) -> Value {
        self.ibin(IBin::Or, a, b)
    }

    /// Bitwise exclusive or.
    pub fn xor(&mut self, a: Value, b: Value) -> Value {
        self.ibin(IBin::Xor, a, b)
    }

    /// Sum with an integer constant.
    pub fn add_imm(&mut self, a: Value, imm: i64) -> Value {
        let c = self.iconst(self.ty(a), imm);
        self.add(a, c)
    }

    /// Product with an integer constant.
    pub fn mul_imm(&mut self, a: Value, imm: i64) -> Value {
        let c = self.iconst(self.ty(a), imm);
        self.mul(a, c)
    }

    /// Bitwise and with a constant.
    pub fn and_imm(&mut self, a: Value, imm: i64) -> Value {
        let c = self.iconst(self.ty(a), imm);
        self.and(a, c)
    }

    /// A shift by a constant below the width.
    pub fn shift_imm(&mut self, op: IBin, a: Value, amount: u32) -> Value {
        let c = self.iconst(self.ty(a), amount.into());
        self.ibin(op, a, c)
    }

    /// A float op of two operands.
    pub fn fbin(&mut self, op: FBin, a: Value, b: Value) -> Value {
        let ty = self.ty(a);
        debug_assert_eq!(ty, self.ty(b), "operands of {op:?} have one type");
        self.pure(Op::FBin(op), vec![a, b], ty)
    }

    /// A float function of one operand.
    pub fn fun(&mut self, op: FUn, a: Value) -> Value {
        let ty = self.ty(a);
        self.pure(Op::FUn(op), vec![a], ty)
    }

    /// `a * b + c`, rounded once.
    pub fn fma(&mut self, a: Value, b: Value, c: Value) -> Value {
        let ty = self.ty(a);
        self.pure(Op::Fma, vec![a, b, c], ty)
    }

    /// Signed comparison.
    pub fn icmp_s(&mut self, op: Cmp, a: Value, b: Value) -> Value {
        self.pure(Op::ICmpS(op), vec![a, b], Ty::Pred)
    }

    /// Unsigned comparison.
    pub fn icmp_u(&mut self, op: Cmp, a: Value, b: Value) -> Value {
        self.pure(Op::ICmpU(op), vec![a, b], Ty::Pred)
    }

    /// Float comparison.
    pub fn fcmp(&mut self, op: Cmp, a: Value, b: Value) -> Value {
        self.pure(Op::FCmp(op), vec![a, b], Ty::Pred)
    }

    /// Logical complement.
    pub fn not(&mut self, a: Value) -> Value {
        self.pure(Op::Not, vec![a], Ty::Pred)
    }

    /// `a` if `condition`, else `b`.
    pub fn select(&mut self, condition: Value, a: Value, b: Value) -> Value {
        let ty = self.ty(a);
        debug_assert_eq!(ty, self.ty(b), "operands of select have one type");
        self.pure(Op::Select, vec![condition, a, b], ty)
    }

    /// A conversion to `to`.
    pub fn conv(&mut self, op: Conv, a: Value, to: Ty) -> Value {
        self.pure(Op::Conv(op), vec![a], to)
    }

    /// The same bits in the integer or float register type of the same width.
    pub fn bitcast(&mut self, a: Value, to: Ty) -> Value {
        self.conv(Conv::Bitcast, a, to)
    }

    /// Low halves of two registers in one.
    pub fn pack16(&mut self, low: Value, high: Value) -> Value {
        self.pure(Op::Pack16, vec![low, high], Ty::I32)
    }

    // ---- memory --------------------------------------------------------------------------------------------------

    /// Loads `access.n` registers of type `ty` from global memory; `guard` is a predicate and what to read where it is
    /// false.
    pub fn global_load(
        &mut self,
        access: Access,
        ty: Ty,
        address: Value,
        guard: Option<(Value, &[Value])>,
    ) -> Vec<Value> {
        let mut operands = vec![address];
        if let Some((p, others)) = guard
            && self.bits(p) != Some(1)
        {
            operands.push(p);
            operands.extend_from_slice(others);
        }
        self.emit(Op::GlobalLoad(access), operands, &vec![ty; access.n.into()])
    }

    /// Stores registers to global memory, where `guard` holds.
    pub fn global_store(&mut self, access: Access, address: Value, values: &[Value], guard: Option<Value>) {
        let mut operands = vec![address];
        operands.extend_from_slice(values);
        operands.extend(guard.filter(|&g| self.bits(g) != Some(1)));
        self.emit(Op::GlobalStore(access), operands, &[]);
    }

    /// Loads registers of type `ty` from a shared buffer.
    pub fn shared_load(&mut self, buf: Shared, access: Access, ty: Ty, byte: Value) -> Vec<Value> {
        self.emit(Op::SharedLoad(buf, access), vec![byte], &vec![ty; access.n.into()])
    }

    /// Stores registers to a shared buffer, where `guard` holds.
    pub fn shared_store(&mut self, buf: Shared, access: Access, byte: Value, values: &[Value], guard: Option<Value>) {
        let mut operands = vec![byte];
        operands.extend_from_slice(values);
        operands.extend(guard.filter(|&g| self.bits(g) != Some(1)));
        self.emit(Op::SharedStore(buf, access), operands, &[]);
    }

    /// A tensor-core instruction: `a b + c`.
    pub fn mma(&mut self, kind: MmaKind, a: &[Value], b: &[Value], c: &[Value]) -> Vec<Value> {
        let types: Vec<_> = c.iter().map(|&v| self.ty(v)).collect();
        self.emit(Op::Mma(kind), [a, b, c].concat(), &types)
    }

    /// Starts a product of four warps, see [`Op::Wgmma`]: `a` with its byte in shared memory or its registers, `b` with its byte,
    /// and `c` unless it is 0.
    pub fn wgmma(
        &mut self,
        kind: MmaKind,
        n: u16,
        (a, a_operands): (WgmmaLeft, &[Value]),
        (b, b_byte): (WgmmaMatrix, Value),
        c: Option<&[Value]>,
    ) -> Vec<Value> {
        let operands = [a_operands, &[b_byte], c.unwrap_or_default()].concat();
        self.emit(Op::Wgmma { kind, n, a, b }, operands, &vec![Ty::F32; usize::from(n) / 2])
    }

    /// Waits until at most `n` groups of products are pending; gives these values of them, finished.
    pub fn wgmma_wait(&mut self, n: u8, values: &[Value]) -> Vec<Value> {
        let types: Vec<_> = values.iter().map(|&v| self.ty(v)).collect();
        self.emit(Op::WgmmaWait(n), values.to_vec(), &types)
    }

    /// The value of lane `lane ^ mask`.
    pub fn shuffle_xor(&mut self, a: Value, mask: u32) -> Value {
        let ty = self.ty(a);
        self.emit(Op::Shuffle(Shuffle::Xor(mask)), vec![a], &[ty])[0]
    }

    /// The value of lane `lane`.
    pub fn shuffle_index(&mut self, a: Value, lane: Value) -> Value {
        let ty = self.ty(a);
        self.emit(Op::Shuffle(Shuffle::Index), vec![a, lane], &[ty])[0]
    }

    /// All threads arrive before any goes on.
    pub fn barrier(&mut self) -> InstId {
        self.emit(Op::Barrier, vec![], &[]);
        InstId::new(self.func.insts.len() - 1)
    }

    /// The innermost open block.
    pub fn block(&self) -> Block {
        self.open[self.open.len() - 1].block
    }

    /// Takes an instruction without results out of its block.
    pub fn remove(&mut self, block: Block, inst: InstId) {
        debug_assert!(self.func.insts[inst].results.is_empty(), "nothing uses what is removed");
        self.func.blocks[block].insts.retain(|&i| i != inst);
    }

    // ---- control flow --------------------------------------------------------------------------------------------

    fn open_block(&mut self, types: &[Ty]) -> (Block, Vec<Value>) {
        let block = self.func.blocks.push(BlockData::default());
        self.open.push(Open { block, memo: HashMap::new() });
        let level = self.open.len() - 1;
        let params: Vec<_> = types.iter().map(|&ty| self.new_value(ty, level)).collect();
        self.func.blocks[block].params.clone_from(&params);
        (block, params)
    }

    fn close_block(&mut self, op: Op, operands: Vec<Value>) {
        self.emit(op, operands, &[]);
        self.open.pop();
    }

    fn types(&self, values: &[Value]) -> Vec<Ty> {
        values.iter().map(|&v| self.ty(v)).collect()
    }

    /// Opens the first block of an `If`.
    pub fn begin_if(&mut self, condition: Value) {
        let (then, _) = self.open_block(&[]);
        self.frames.push(Frame::Then { condition, then });
    }

    /// Ends the first block of an `If` and opens the second.
    ///
    /// # Panics
    /// If the innermost open block is not the first of an `If`.
    pub fn begin_else(&mut self, results: &[Value]) {
        let Some(Frame::Then { condition, then }) = self.frames.pop() else {
            panic!("begin_else follows begin_if");
        };
        self.close_block(Op::Yield, results.to_vec());
        let (otherwise, _) = self.open_block(&[]);
        self.frames.push(Frame::Else { condition, then, otherwise });
    }

    /// Ends the second block of an `If`; gives its results.
    ///
    /// # Panics
    /// If the innermost open block is not the second of an `If`.
    pub fn end_if(&mut self, results: &[Value]) -> Vec<Value> {
        let Some(Frame::Else { condition, then, otherwise }) = self.frames.pop() else {
            panic!("end_if follows begin_else");
        };
        let types = self.types(results);
        self.close_block(Op::Yield, results.to_vec());
        self.append(self.open.len() - 1, Op::If, vec![condition], &types, vec![then, otherwise])
    }

    /// Opens the condition of a loop; gives the carried values in it.
    pub fn begin_loop(&mut self, inits: &[Value]) -> Vec<Value> {
        let (condition, params) = self.open_block(&self.types(inits));
        self.frames.push(Frame::Condition { inits: inits.to_vec(), condition });
        params
    }

    /// Ends the condition of a loop and opens its body; gives the carried values in it.
    ///
    /// # Panics
    /// If the innermost open block is not the condition of a loop.
    pub fn loop_body(&mut self, go_on: Value) -> Vec<Value> {
        let Some(Frame::Condition { inits, condition }) = self.frames.pop() else {
            panic!("loop_body follows begin_loop");
        };
        self.close_block(Op::Condition, vec![go_on]);
        let (body, params) = self.open_block(&self.types(&inits));
        self.frames.push(Frame::Body { inits, condition, body });
        params
    }

    /// Ends the body of a loop; gives the carried values after it.
    ///
    /// # Panics
    /// If the innermost open block is not the body of a loop.
    pub fn end_loop(&mut self, next: &[Value]) -> Vec<Value> {
        let Some(Frame::Body { inits, condition, body }) = self.frames.pop() else {
            panic!("end_loop follows loop_body");
        };
        let types = self.types(&inits);
        debug_assert_eq!(types, self.types(next), "a loop carries values of fixed types");
        self.close_block(Op::Yield, next.to_vec());
        self.append(self.open.len() - 1, Op::Loop, inits, &types, vec![condition, body])
    }

    /// Ends the function.
    ///
    /// # Panics
    /// If a block other than the body is open.
    pub fn finish(mut self) -> Function {
        assert!(self.frames.is_empty(), "every block is closed before the function ends");
        self.emit(Op::Yield, vec![], &[]);
        self.func
    }
}
