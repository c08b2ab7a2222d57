//! Control flow, copies and the names of operands.

use super::registers::{Registers, yielded};
use super::{SHARED, SHARED_BASE, prefix};
use crate::Result;
use crate::thread::{Block, Function, InstData, InstId, Op, Ty, Value};
use std::collections::HashMap;
use std::fmt;

/// Prints the instructions of a function.
pub(super) struct Emitter<'a> {
    pub(super) func: &'a Function,
    pub(super) registers: &'a Registers,
    out: String,
    labels: u32,
    temporaries: [u32; 5],
    /// For each open block: where in shared memory the bytes in a register are, as far as already computed.
    shared_addresses: Vec<HashMap<Value, String>>,
    /// Likewise the lower halves of descriptors for `wgmma`, by the register of the address and the leading offset.
    descriptors: Vec<HashMap<(String, u32), String>>,
}

impl<'a> Emitter<'a> {
    pub(super) fn new(func: &'a Function, registers: &'a Registers) -> Self {
        Self {
            func,
            registers,
            out: String::new(),
            labels: 0,
            temporaries: [0; 5],
            shared_addresses: vec![],
            descriptors: vec![],
        }
    }

    /// The text, and how many temporary registers of each type it uses.
    pub(super) fn finish(mut self) -> (String, [u32; 5]) {
        self.line(format_args!("ret"));
        (self.out, self.temporaries)
    }

    /// One instruction.
    pub(super) fn line(&mut self, text: impl fmt::Display) {
        self.out.push('\t');
        self.out.push_str(&text.to_string());
        self.out.push_str(";\n");
    }

    /// Several instructions with registers of their own.
    pub(super) fn scope(&mut self, text: impl fmt::Display) {
        self.out.push_str(&format!("\t{{ {text}; }}\n"));
    }

    fn label(&mut self, label: &str) {
        self.out.push_str(label);
        self.out.push_str(":\n");
    }

    fn new_label(&mut self, what: &str) -> String {
        self.labels += 1;
        format!("${what}_{}", self.labels)
    }

    /// A register that only one op uses.
    pub(super) fn temporary(&mut self, ty: Ty) -> String {
        let n = &mut self.temporaries[ty as usize];
        *n += 1;
        format!("%t{}{}", prefix(ty), *n - 1)
    }

    /// A value's register.
    pub(super) fn register(&self, v: Value) -> String {
        format!("%{}{}", prefix(self.func.ty(v)), self.registers.of(v))
    }

    /// A value: an immediate if it is a constant, else its register.
    pub(super) fn operand(&self, v: Value) -> String {
        match self.registers.constants.get(&v) {
            Some(&bits) if self.func.ty(v) != Ty::Pred => immediate(self.func.ty(v), bits),
            _ => self.register(v),
        }
    }

    /// Values in braces, or one alone.
    pub(super) fn vector(&self, values: &[Value]) -> String {
        match values {
            [v] => self.operand(*v),
            _ => self.braces(values),
        }
    }

    /// Values in braces.
    pub(super) fn braces(&self, values: &[Value]) -> String {
        format!("{{{}}}", values.iter().map(|&v| self.operand(v)).collect::<Vec<_>>().join(", "))
    }

    /// An address in shared memory: byte `v + offset` counted from the start of the program's.
    pub(super) fn shared_address(&mut self, v: Value, offset: i64) -> String {
        if let Some(&bits) = self.registers.constants.get(&v) {
            return address(SHARED, i64::from(bits as u32 as i32) + offset);
        }
        let register = self.shared_register(v);
        address(&register, offset)
    }

    /// A register and a constant whose sum is the address in shared memory of byte `v + offset`.
    pub(super) fn shared_sum(&mut self, v: Value, offset: i64) -> (String, i64) {
        match self.registers.constants.get(&v) {
            Some(&bits) => (SHARED_BASE.into(), i64::from(bits as u32 as i32) + offset),
            None => (self.shared_register(v), offset),
        }
    }

    /// The register of the address of byte `v`, which is no constant.
    fn shared_register(&mut self, v: Value) -> String {
        let known = self.shared_addresses.iter().find_map(|block| block.get(&v)).cloned();
        known.unwrap_or_else(|| {
            let t = self.temporary(Ty::I32);
            self.line(format_args!("add.u32 {t}, {}, {SHARED_BASE}", self.register(v)));
            if let Some(block) = self.shared_addresses.last_mut() {
                block.insert(v, t.clone());
            }
            t
        })
    }

    /// The lower half of the descriptor of a matrix at the address in a register.
    pub(super) fn descriptor_start(&mut self, base: &str, leading: u32) -> String {
        let key = (base.to_owned(), leading);
        if let Some(known) = self.descriptors.iter().find_map(|block| block.get(&key)) {
            return known.clone();
        }
        let low = self.temporary(Ty::I32);
        self.line(format_args!("bfe.u32 {low}, {base}, 4, 14"));
        self.line(format_args!("or.b32 {low}, {low}, {}", (leading << 16) as i32));
        if let Some(block) = self.descriptors.last_mut() {
            block.insert(key, low.clone());
        }
        low
    }

    /// Prints a block without its terminator.
    pub(super) fn block(&mut self, block: Block) -> Result<()> {
        let func = self.func;
        self.shared_addresses.push(HashMap::new());
        self.descriptors.push(HashMap::new());
        for &i in &func.blocks[block].insts {
            let inst = &func.insts[i];
            match inst.op {
                Op::If => self.branch(inst)?,
                Op::Loop => self.repeat(inst)?,
                Op::Yield | Op::Condition => {}
                _ => self.inst(i, inst)?,
            }
        }
        self.shared_addresses.pop();
        self.descriptors.pop();
        Ok(())
    }

    fn branch(&mut self, inst: &InstData) -> Result<()> {
        let [then, otherwise] = [inst.blocks[0], inst.blocks[1]];
        let condition = self.register(inst.operands[0]);
        let (no, end) = (self.new_label("else"), self.new_label("endif"));
        self.line(format_args!("@!{condition} bra {no}"));
        self.block(then)?;
        self.copies(&inst.results, yielded(self.func, then));
        let before = self.out.len();
        self.line(format_args!("bra {end}"));
        self.label(&no);
        let empty = self.out.len();
        self.block(otherwise)?;
        self.copies(&inst.results, yielded(self.func, otherwise));
        if self.out.len() == empty {
            self.out.truncate(before);
            self.label(&no);
        } else {
            self.label(&end);
        }
        Ok(())
    }

    fn repeat(&mut self, inst: &InstData) -> Result<()> {
        let [condition, body] = [inst.blocks[0], inst.blocks[1]];
        self.copies(&inst.results, &inst.operands);
        let (head, end) = (self.new_label("loop"), self.new_label("endloop"));
        self.label(&head);
        self.block(condition)?;
        let go_on = self.register(yielded(self.func, condition)[0]);
        self.line(format_args!("@!{go_on} bra {end}"));
        self.block(body)?;
        self.copies(&inst.results, yielded(self.func, body));
        self.line(format_args!("bra {head}"));
        self.label(&end);
        Ok(())
    }

    /// Copies all `from` to the registers of `to` as if at once.
    pub(super) fn copies(&mut self, to: &[Value], from: &[Value]) {
        let mut pending: Vec<(String, String, Ty)> = to
            .iter()
            .zip(from)
            .map(|(&d, &s)| (self.register(d), self.operand(s), self.func.ty(d)))
            .filter(|(d, s, _)| d != s)
            .collect();
        while !pending.is_empty() {
            let free = pending.iter().position(|(d, ..)| pending.iter().all(|(_, s, _)| s != d));
            let (d, s, ty) = match free {
                Some(i) => pending.remove(i),
                None => {
                    // Only cycles are left: free the first destination by keeping its old value aside.
                    let (d, _, ty) = pending[0].clone();
                    let t = self.temporary(ty);
                    pending.iter_mut().filter(|(_, s, _)| *s == d).for_each(|(_, s, _)| s.clone_from(&t));
                    (t, d, ty)
                }
            };
            self.line(format_args!("mov.{} {d}, {s}", super::declared(ty)));
        }
    }

    fn inst(&mut self, id: InstId, inst: &InstData) -> Result<()> {
        let registers = self.registers;
        if registers.skipped.contains(&id) {
            return Ok(());
        }
        if let Some(&(conv, pair)) = registers.packs.get(&id) {
            self.pack_converted(conv, pair, inst.results[0]);
            return Ok(());
        }
        if inst.op.is_pure() { self.pure(inst) } else { self.effect(inst) }
    }
}

/// `[base + offset]`.
pub(super) fn address(base: &str, offset: i64) -> String {
    if offset == 0 { format!("[{base}]") } else { format!("[{base}+{offset}]") }
}

fn immediate(ty: Ty, bits: u64) -> String {
    match ty {
        Ty::Pred => (bits & 1).to_string(),
        Ty::I32 => (bits as u32 as i32).to_string(),
        Ty::I64 => (bits as i64).to_string(),
        Ty::F32 => format!("0f{:08X}", bits as u32),
        Ty::F64 => format!("0d{bits:016X}"),
    }
}
