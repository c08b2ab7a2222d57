//! Statements: declarations, control flow, memory and barriers.

use super::expr::constant;
use super::{SHARED, signed_name, type_name};
use crate::entity::Entity;
use crate::thread::{Access, Block, Conv, Function, InstData, Op, Shared, Shuffle, Ty, Value};
use crate::{Error, Result};
use std::collections::{HashMap, HashSet};
use std::fmt;

/// Prints the statements of a function.
pub(super) struct Emitter<'a> {
    pub(super) func: &'a Function,
    constants: HashMap<Value, u64>,
    /// The variable of a loop's carried value is named after the loop's result.
    alias: HashMap<Value, Value>,
    out: String,
    depth: usize,
    temporaries: u32,
}

impl<'a> Emitter<'a> {
    pub(super) fn new(func: &'a Function) -> Self {
        let (mut constants, mut alias) = (HashMap::new(), HashMap::new());
        func.walk(func.body, &mut |i| {
            let inst = &func.insts[i];
            match inst.op {
                Op::Const(bits) => {
                    constants.insert(inst.results[0], bits);
                }
                Op::Loop => {
                    for &b in &inst.blocks {
                        alias.extend(func.blocks[b].params.iter().copied().zip(inst.results.iter().copied()));
                    }
                }
                _ => {}
            }
        });
        Self { func, constants, alias, out: String::new(), depth: 1, temporaries: 0 }
    }

    /// The statements of the function's body.
    pub(super) fn body(mut self) -> Result<String> {
        self.block(self.func.body)?;
        Ok(self.out)
    }

    fn line(&mut self, text: impl fmt::Display) {
        self.out.push_str(&"    ".repeat(self.depth));
        self.out.push_str(&text.to_string());
        self.out.push('\n');
    }

    fn temporary(&mut self) -> String {
        self.temporaries += 1;
        format!("t{}", self.temporaries)
    }

    /// A value's variable.
    fn variable(&self, v: Value) -> String {
        format!("r{}", self.alias.get(&v).unwrap_or(&v).index())
    }

    /// A value: a constant or its variable.
    pub(super) fn operand(&self, v: Value) -> String {
        match self.constants.get(&v) {
            Some(&bits) => constant(self.func.ty(v), bits),
            None => self.variable(v),
        }
    }

    /// `type variable`.
    fn declared(&self, v: Value) -> String {
        format!("{} {}", type_name(self.func.ty(v)), self.variable(v))
    }

    fn block(&mut self, block: Block) -> Result<()> {
        let func = self.func;
        for &i in &func.blocks[block].insts {
            self.inst(&func.insts[i])?;
        }
        Ok(())
    }

    fn yielded(&self, block: Block) -> &'a [Value] {
        self.func.blocks[block].insts.last().map_or(&[], |&i| &self.func.insts[i].operands)
    }

    fn inst(&mut self, inst: &InstData) -> Result<()> {
        let o = &inst.operands;
        match inst.op {
            Op::Const(_) | Op::Yield | Op::Condition => {}
            Op::If => self.branch(inst)?,
            Op::Loop => self.repeat(inst)?,
            Op::GlobalLoad(access) => {
                let place = global(&self.operand(o[0]), access.offset.into());
                self.load("__global", access, &place, &inst.results, &o[1..]);
            }
            Op::SharedLoad(buf, access) => {
                let place = self.shared(buf, o[0], access.offset);
                self.load("__local", access, &place, &inst.results, &[]);
            }
            Op::GlobalStore(access) => {
                let place = global(&self.operand(o[0]), access.offset.into());
                self.store("__global", access, &place, &o[1..]);
            }
            Op::SharedStore(buf, access) => {
                let place = self.shared(buf, o[0], access.offset);
                self.store("__local", access, &place, &o[1..]);
            }
            Op::Barrier => self.line("barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"),
            // A warp of one lane waits for nobody.
            Op::WarpBarrier if self.func.warp_width == 1 => {}
            Op::WarpBarrier => self.line("sub_group_barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);"),
            Op::Shuffle(how) => {
                let (d, a) = (self.declared(inst.results[0]), self.operand(o[0]));
                match how {
                    Shuffle::Xor(mask) => self.line(format_args!("{d} = sub_group_shuffle_xor({a}, {mask}u);")),
                    Shuffle::Index => {
                        let lane = self.operand(o[1]);
                        self.line(format_args!("{d} = sub_group_shuffle({a}, {lane});"));
                    }
                }
            }
            Op::Conv(c @ (Conv::F16LoToF32 | Conv::F16HiToF32 | Conv::F32ToF16)) => self.half(c, inst),
            Op::Conv(Conv::SToF) => {
                let (from, to) = (self.func.ty(o[0]), type_name(self.func.ty(inst.results[0])));
                let (d, a, s) = (self.declared(inst.results[0]), self.operand(o[0]), signed_name(from));
                self.line(format_args!("{d} = convert_{to}_rte(({s}){a});"));
            }
            ref op if op.is_pure() => {
                let (d, value) = (self.declared(inst.results[0]), self.expression(inst)?);
                self.line(format_args!("{d} = {value};"));
            }
            ref op => return Err(Error::Internal(format!("{op:?} has no OpenCL C"))),
        }
        Ok(())
    }

    /// The conversions from and to `f16` go through memory, where OpenCL has them without an extension.
    fn half(&mut self, conv: Conv, inst: &InstData) {
        let (d, a, t) = (self.declared(inst.results[0]), self.operand(inst.operands[0]), self.temporary());
        match conv {
            Conv::F32ToF16 => {
                self.line(format_args!("ushort {t};"));
                self.line(format_args!("vstore_half_rte({a}, 0, (__private half *)&{t});"));
                self.line(format_args!("{d} = {t};"));
            }
            _ => {
                let shift = if conv == Conv::F16HiToF32 { " >> 16" } else { "" };
                self.line(format_args!("ushort {t} = (ushort)({a}{shift});"));
                self.line(format_args!("{d} = vload_half(0, (__private half *)&{t});"));
            }
        }
    }

    fn branch(&mut self, inst: &InstData) -> Result<()> {
        for &r in &inst.results {
            let d = self.declared(r);
            self.line(format_args!("{d};"));
        }
        let condition = self.operand(inst.operands[0]);
        self.line(format_args!("if ({condition}) {{"));
        self.inner(inst.blocks[0], &inst.results)?;
        if !inst.results.is_empty() || self.func.blocks[inst.blocks[1]].insts.len() > 1 {
            self.line("} else {");
            self.inner(inst.blocks[1], &inst.results)?;
        }
        self.line("}");
        Ok(())
    }

    fn inner(&mut self, block: Block, results: &[Value]) -> Result<()> {
        self.depth += 1;
        self.block(block)?;
        self.copies(results, self.yielded(block));
        self.depth -= 1;
        Ok(())
    }

    fn repeat(&mut self, inst: &InstData) -> Result<()> {
        for (&r, &init) in inst.results.iter().zip(&inst.operands) {
            let (d, init) = (self.declared(r), self.operand(init));
            self.line(format_args!("{d} = {init};"));
        }
        self.line("while (true) {");
        self.inner(inst.blocks[0], &[])?;
        self.depth += 1;
        let go_on = self.operand(self.yielded(inst.blocks[0])[0]);
        self.line(format_args!("if (!{go_on}) break;"));
        self.depth -= 1;
        self.inner(inst.blocks[1], &inst.results)?;
        self.line("}");
        Ok(())
    }

    /// Assigns all `from` to the variables of `to` as if at once.
    fn copies(&mut self, to: &[Value], from: &[Value]) {
        let pairs: Vec<_> = to
            .iter()
            .zip(from)
            .map(|(&d, &s)| (self.variable(d), self.operand(s), type_name(self.func.ty(d))))
            .filter(|(d, s, _)| d != s)
            .collect();
        let written: HashSet<_> = pairs.iter().map(|(d, ..)| d.clone()).collect();
        let mut assignments = vec![];
        for (d, s, ty) in pairs {
            if written.contains(&s) {
                let t = self.temporary();
                self.line(format_args!("{ty} {t} = {s};"));
                assignments.push((d, t));
            } else {
                assignments.push((d, s));
            }
        }
        for (d, s) in assignments {
            self.line(format_args!("{d} = {s};"));
        }
    }

    fn shared(&self, buf: Shared, byte: Value, offset: i32) -> String {
        let offset = i64::from(self.func.shared[buf].offset) + i64::from(offset);
        let byte = match self.constants.get(&byte) {
            Some(&bits) => (i64::from(bits as u32 as i32) + offset).to_string(),
            None => format!("{} + {}u", self.variable(byte), offset as u32),
        };
        format!("({SHARED} + ({byte}))")
    }

    fn load(&mut self, space: &str, access: Access, place: &str, results: &[Value], guard: &[Value]) {
        let ty = element(access, self.func.ty(results[0]));
        for (i, &r) in results.iter().enumerate() {
            let d = self.declared(r);
            match guard.get(i + 1) {
                Some(&other) => {
                    let other = self.operand(other);
                    self.line(format_args!("{d} = {other};"));
                }
                None if results.len() > 1 => self.line(format_args!("{d};")),
                None => {}
            }
        }
        let condition = guard.first().map_or(String::new(), |&p| format!("if ({}) ", self.operand(p)));
        if let [r] = *results {
            let d = if guard.is_empty() { self.declared(r) } else { self.variable(r) };
            self.line(format_args!("{condition}{d} = *({space} const {ty} *){place};"));
            return;
        }
        let t = self.temporary();
        self.line(format_args!("{condition}{{"));
        self.line(format_args!("    {ty}{} {t} = *({space} const {ty}{} *){place};", access.n, access.n));
        for (i, &r) in results.iter().enumerate() {
            let d = self.variable(r);
            self.line(format_args!("    {d} = {t}.s{i};"));
        }
        self.line("}");
    }

    fn store(&mut self, space: &str, access: Access, place: &str, values: &[Value]) {
        let (values, guard) = values.split_at(access.n.into());
        let ty = element(access, self.func.ty(values[0]));
        let cast = |v: &Value| {
            let v = self.operand(*v);
            if access.bits < 32 { format!("({ty}){v}") } else { v }
        };
        let list: Vec<_> = values.iter().map(cast).collect();
        let condition = guard.first().map_or(String::new(), |&p| format!("if ({}) ", self.operand(p)));
        match &list[..] {
            [v] => self.line(format_args!("{condition}*({space} {ty} *){place} = {v};")),
            _ => {
                let vector = format!("{ty}{}", access.n);
                self.line(format_args!("{condition}*({space} {vector} *){place} = ({vector})({});", list.join(", ")));
            }
        }
    }
}

/// A place in global memory.
fn global(address: &str, offset: i64) -> String {
    match offset {
        0 => format!("({address})"),
        1.. => format!("({address} + {offset}ul)"),
        _ => format!("({address} - {}ul)", offset.unsigned_abs()),
    }
}

/// The type of one element in memory.
fn element(access: Access, ty: Ty) -> &'static str {
    match access.bits {
        8 => "uchar",
        16 => "ushort",
        _ => type_name(ty),
    }
}
