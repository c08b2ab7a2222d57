//! Structured control flow: blocks, `If`, `Loop`, and the guards of memory accesses.
//!
//! Phis are of numbers, never of truth values, which pass as 0 and 1: NVIDIA's compiler (driver 580) ends the process with
//! some loops whose phis are of `OpTypeBool`.

use super::Emitter;
use crate::error::Result;
use crate::thread::{Block, InstData, Op as ThreadOp, Ty, Value};
use rspirv::dr::Operand;
use rspirv::spirv::{LoopControl, Op, SelectionControl, Word};

impl Emitter<'_> {
    /// Emits the instructions of a block up to its terminator; gives the values the terminator takes.
    pub(super) fn block(&mut self, block: Block) -> Result<Vec<Word>> {
        let func = self.func;
        let Some((&last, insts)) = func.blocks[block].insts.split_last() else {
            return Err(self.internal(&format!("{block} has no terminator")));
        };
        for &inst in insts {
            self.inst(&func.insts[inst])?;
        }
        let last = &func.insts[last];
        match last.op {
            ThreadOp::Yield | ThreadOp::Condition => Ok(last.operands.iter().map(|&v| self.value(v)).collect()),
            ref op => Err(self.internal(&format!("{block} is ended by {op:?}"))),
        }
    }

    fn begin(&mut self, label: Word) {
        self.module.begin_block(label);
        self.label = label;
    }

    fn selection(&mut self, condition: Word, then: Word, otherwise: Word, merge: Word) {
        let none = Operand::SelectionControl(SelectionControl::NONE);
        self.module.push(Op::SelectionMerge, None, None, vec![Operand::IdRef(merge), none]);
        self.module.branch_conditional(condition, then, otherwise);
    }

    /// The phi of a value; `incoming` holds what `outgoing` made. What it gives is not the value yet: see `arrive`.
    fn phi(&mut self, value: Value, incoming: &[(Word, Word)]) -> Word {
        let ty = match self.func.ty(value) {
            Ty::Pred => Ty::I32,
            ty => ty,
        };
        let ty = self.module.ty(ty);
        let operands = incoming.iter().flat_map(|&(v, from)| [Operand::IdRef(v), Operand::IdRef(from)]).collect();
        self.module.op_with(Op::Phi, ty, operands)
    }

    /// A value that becomes `value` through a phi, as the phi takes it; in the block that it comes from.
    fn outgoing(&mut self, value: Value, id: Word) -> Word {
        match self.func.ty(value) {
            Ty::Pred => {
                let (one, zero) = (self.module.const_u32(1), self.module.const_u32(0));
                self.typed(Op::Select, Ty::I32, &[id, one, zero])
            }
            _ => id,
        }
    }

    fn all_outgoing(&mut self, values: &[Value], ids: Vec<Word>) -> Vec<Word> {
        values.iter().zip(ids).map(|(&value, id)| self.outgoing(value, id)).collect()
    }

    /// Defines values by their phis, after the last phi of the block.
    fn arrive(&mut self, values: &[Value], phis: Vec<Word>) {
        for (&value, phi) in values.iter().zip(phis) {
            let id = match self.func.ty(value) {
                Ty::Pred => {
                    let zero = self.module.const_u32(0);
                    self.typed(Op::INotEqual, Ty::Pred, &[phi, zero])
                }
                _ => phi,
            };
            self.define(value, id);
        }
    }

    /// What follows two ways on which `values` became other things.
    fn merge(&mut self, label: Word, values: &[Value], ways: [(Vec<Word>, Word); 2]) {
        self.begin(label);
        let [(a, from_a), (b, from_b)] = ways;
        let incoming = a.into_iter().zip(b);
        let phis = values.iter().zip(incoming).map(|(&v, (a, b))| self.phi(v, &[(a, from_a), (b, from_b)])).collect();
        self.arrive(values, phis);
    }

    pub(super) fn emit_if(&mut self, inst: &InstData) -> Result<()> {
        let [then, otherwise] = inst.blocks[..] else {
            return Err(self.internal("an `if` has two blocks"));
        };
        let condition = self.value(inst.operands[0]);
        let header = self.label;
        let (then_label, merge) = (self.module.id(), self.module.id());
        // A second block that does nothing is not emitted: its values come straight from the header.
        let empty = self.func.blocks[otherwise].insts.len() == 1;
        let else_label = if empty { merge } else { self.module.id() };
        let mut else_way = (Vec::new(), header);
        if empty {
            let values = self.block(otherwise)?;
            else_way.0 = self.all_outgoing(&inst.results, values);
        }
        self.selection(condition, then_label, else_label, merge);

        let then_way = self.way(then_label, then, merge, &inst.results)?;
        if !empty {
            else_way = self.way(else_label, otherwise, merge, &inst.results)?;
        }
        self.merge(merge, &inst.results, [then_way, else_way]);
        Ok(())
    }

    /// One way of an `If`: what it makes of the results, and the block that it ends in.
    fn way(&mut self, label: Word, block: Block, merge: Word, results: &[Value]) -> Result<(Vec<Word>, Word)> {
        self.begin(label);
        let values = self.block(block)?;
        let values = self.all_outgoing(results, values);
        let end = self.label;
        self.module.branch(merge);
        Ok((values, end))
    }

    /// The carried values are phis of the header; both blocks and what follows the loop read them there.
    pub(super) fn emit_loop(&mut self, inst: &InstData) -> Result<()> {
        let [condition, body] = inst.blocks[..] else {
            return Err(self.internal("a loop has two blocks"));
        };
        let func = self.func;
        let preheader = self.label;
        let header = self.module.id();
        let (test, body_label) = (self.module.id(), self.module.id());
        let (next, merge) = (self.module.id(), self.module.id());
        let first = inst.operands.iter().map(|&v| self.value(v)).collect();
        let first = self.all_outgoing(&inst.results, first);
        self.module.branch(header);

        self.begin(header);
        let header_index = self.module.open_block();
        let phis = inst.results.iter().zip(first).map(|(&v, init)| self.phi(v, &[(init, preheader)])).collect();
        self.arrive(&inst.results, phis);
        for (i, &result) in inst.results.iter().enumerate() {
            let id = self.value(result);
            self.define(func.blocks[condition].params[i], id);
            self.define(func.blocks[body].params[i], id);
        }
        let none = Operand::LoopControl(LoopControl::NONE);
        self.module.push(Op::LoopMerge, None, None, vec![Operand::IdRef(merge), Operand::IdRef(next), none]);
        self.module.branch(test);

        self.begin(test);
        let go_on = self.block(condition)?;
        let [go_on] = go_on[..] else {
            return Err(self.internal("the first block of a loop ends in one condition"));
        };
        self.module.branch_conditional(go_on, body_label, merge);

        self.begin(body_label);
        let carried = self.block(body)?;
        let carried = self.all_outgoing(&inst.results, carried);
        self.module.branch(next);

        self.begin(next);
        self.module.branch(header);
        for (i, value) in carried.into_iter().enumerate() {
            self.module.add_incoming(header_index, i, value, next);
        }
        self.begin(merge);
        Ok(())
    }

    /// Emits `f`, which gives the values of `results`, where the guard holds; elsewhere they are the others.
    pub(super) fn guarded(
        &mut self,
        guard: Option<(Word, Vec<Word>)>,
        results: &[Value],
        f: impl FnOnce(&mut Self) -> Vec<Word>,
    ) {
        let Some((guard, others)) = guard else {
            for (&result, id) in results.iter().zip(f(self)) {
                self.define(result, id);
            }
            return;
        };
        let header = self.label;
        let (then, merge) = (self.module.id(), self.module.id());
        let others = self.all_outgoing(results, others);
        self.selection(guard, then, merge, merge);
        self.begin(then);
        let values = f(self);
        let values = self.all_outgoing(results, values);
        let then_end = self.label;
        self.module.branch(merge);
        self.merge(merge, results, [(values, then_end), (others, header)]);
    }
}
