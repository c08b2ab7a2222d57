//! Structured control flow: blocks, `If`, `Loop`, and the guards of memory accesses.

use super::Emitter;
use crate::error::Result;
use crate::thread::{Block, InstData, Op as ThreadOp, Value};
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

    fn phi(&mut self, value: Value, incoming: &[(Word, Word)]) {
        let ty = self.module.ty(self.func.ty(value));
        let operands = incoming.iter().flat_map(|&(v, from)| [Operand::IdRef(v), Operand::IdRef(from)]).collect();
        let id = self.module.op_with(Op::Phi, ty, operands);
        self.define(value, id);
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
        self.selection(condition, then_label, else_label, merge);

        self.begin(then_label);
        let then_values = self.block(then)?;
        let then_end = self.label;
        self.module.branch(merge);

        if !empty {
            self.begin(else_label);
        }
        let else_values = self.block(otherwise)?;
        let mut else_end = header;
        if !empty {
            else_end = self.label;
            self.module.branch(merge);
        }

        self.begin(merge);
        for ((&result, a), b) in inst.results.iter().zip(then_values).zip(else_values) {
            self.phi(result, &[(a, then_end), (b, else_end)]);
        }
        Ok(())
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
        self.module.branch(header);

        self.begin(header);
        let header_index = self.module.open_block();
        for (i, &result) in inst.results.iter().enumerate() {
            let init = self.value(inst.operands[i]);
            self.phi(result, &[(init, preheader)]);
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
        self.selection(guard, then, merge, merge);
        self.begin(then);
        let values = f(self);
        let then_end = self.label;
        self.module.branch(merge);
        self.begin(merge);
        for ((&result, value), other) in results.iter().zip(values).zip(others) {
            self.phi(result, &[(value, then_end), (other, header)]);
        }
    }
}
