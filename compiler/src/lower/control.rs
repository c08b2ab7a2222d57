//! Loops and branches.

use super::{Lowering, Regs};
use crate::error::Result;
use crate::layout::Layout;
use crate::thread::{self, Cmp, IBin};
use crate::tile::{OpId, Region, Value};

impl Lowering<'_> {
    /// The layouts of carried values or results: their homes.
    fn homes(&self, values: &[Value]) -> Vec<Layout> {
        values.iter().map(|&v| self.home_or_default(v)).collect()
    }

    /// The registers of `values` in `layouts`, one after the other.
    fn flatten(&mut self, values: &[Value], layouts: &[Layout]) -> Result<Vec<thread::Value>> {
        let mut flat = Vec::new();
        for (&v, layout) in values.iter().zip(layouts) {
            flat.extend_from_slice(&self.regs(v, layout)?);
        }
        Ok(flat)
    }

    /// Defines `values` from registers one after the other.
    fn unflatten(&mut self, values: &[Value], layouts: &[Layout], flat: &[thread::Value]) {
        let mut flat = flat;
        for (&v, layout) in values.iter().zip(layouts) {
            let (mine, rest) = flat.split_at(layout.registers());
            let regs: Regs = mine.into();
            self.define(v, layout.clone(), regs);
            flat = rest;
        }
    }

    /// How often a loop runs, as a number of the same integer type, never negative as unsigned.
    pub(super) fn trip_count(&mut self, op: OpId) -> Result<thread::Value> {
        let data = &self.func.ops[op];
        let (lo, hi) = (self.scalar(data.operands[0])?, self.scalar(data.operands[1])?);
        let step = self.scalar(data.operands[2])?;
        let ty = self.b.ty(lo);
        let (zero, one) = (self.b.iconst(ty, 0), self.b.iconst(ty, 1));
        let count = |l: &mut Self, from: thread::Value, to: thread::Value, by: thread::Value| {
            // The distance, as an unsigned number, never overflows.
            let some = l.b.icmp_s(Cmp::Lt, from, to);
            let distance = l.b.sub(to, from);
            let last = l.b.sub(distance, one);
            let rounds = l.b.ibin(IBin::DivU, last, by);
            let n = l.b.add(rounds, one);
            l.b.select(some, n, zero)
        };
        match self.b.int(step) {
            Some(0) => Ok(zero),
            Some(s) if s > 0 => Ok(count(self, lo, hi, step)),
            Some(s) => {
                let by = self.b.iconst(ty, s.wrapping_neg());
                Ok(count(self, hi, lo, by))
            }
            None => {
                let minus = self.b.sub(zero, step);
                let up = self.b.icmp_s(Cmp::Gt, step, zero);
                let size = self.b.select(up, step, minus);
                // A division by zero may trap; its result is not used.
                let still = self.b.icmp_u(Cmp::Eq, step, zero);
                let by = self.b.select(still, one, size);
                let (from, to) = (self.b.select(up, lo, hi), self.b.select(up, hi, lo));
                let n = count(self, from, to, by);
                Ok(self.b.select(still, zero, n))
            }
        }
    }

    /// What may have happened before a round of a loop: what happened before the loop, and in another round of it.
    pub(super) fn enter_loop(&mut self, regions: &[Region]) {
        let mut accesses = Vec::new();
        let mut shared = false;
        for &region in regions {
            self.func.walk(region, &mut |op| {
                let data = &self.func.ops[op];
                if data.op.reads_memory() || data.op.writes_memory() {
                    let elements = data.operands.iter().map(|&v| self.func.ty(v).shape.elements()).max();
                    accesses.push((data.operands[0], data.op.writes_memory(), elements.unwrap_or(0)));
                }
                // Conversions may be anywhere in loops over tiles.
                shared |= data.results.iter().chain(&data.operands).any(|&v| !self.func.ty(v).is_scalar());
            });
        }
        for (pointer, write, elements) in accesses {
            self.hazards.global(pointer, write, elements, None);
        }
        if shared {
            self.hazards.other_round();
        }
        self.hazards.forget_places();
    }

    pub(super) fn for_loop(&mut self, op: OpId) -> Result<()> {
        if self.schedule.pipelines.contains_key(&op) {
            return self.pipelined_loop(op);
        }
        let func = self.func;
        let data = &func.ops[op];
        let body = data.regions[0];
        let params = &func.regions[body].params;
        let layouts = self.homes(&params[1..]);
        let trips = self.trip_count(op)?;
        let (lo, step) = (self.scalar(data.operands[0])?, self.scalar(data.operands[2])?);
        let ty = self.b.ty(trips);
        let zero = self.b.iconst(ty, 0);
        let mut inits = vec![zero, lo];
        inits.extend(self.flatten(&data.operands[3..], &layouts)?);
        self.hold_operands(body, false)?;

        let before = self.hazards.clone();
        self.enter_loop(&[body]);
        let around = self.round_barrier.take();
        let carried = self.b.begin_loop(&inits);
        let go_on = self.b.icmp_u(Cmp::Lt, carried[0], trips);
        let carried = self.b.loop_body(go_on);
        let block = self.b.block();
        self.open_scope();
        let scalar = self.schedule.scalar();
        self.define(params[0], scalar, vec![carried[1]].into());
        self.unflatten(&params[1..], &layouts, &carried[2..]);
        self.region_ops(body)?;
        let mut next = vec![self.b.add_imm(carried[0], 1), self.b.add(carried[1], step)];
        let yielded = &func.ops[func.terminator(body)].operands;
        next.extend(self.flatten(yielded, &layouts)?);
        self.close_scope();
        if let Some(barrier) = std::mem::replace(&mut self.round_barrier, around)
            && barrier.block == block
            && before.shared_is_quiet()
            && self.hazards.redundant(&barrier)
            && !self.touches_global(body)
        {
            self.b.remove(block, barrier.inst);
        }
        let results = self.b.end_loop(&next);
        // No round may have run, and so none of the barriers in it.
        self.hazards.merge(before);
        self.unflatten(&data.results, &layouts, &results[2..]);
        Ok(())
    }

    fn touches_global(&self, region: Region) -> bool {
        let mut found = false;
        self.func.walk(region, &mut |op| {
            let op = &self.func.ops[op].op;
            found |= op.reads_memory() || op.writes_memory();
        });
        found
    }

    pub(super) fn while_loop(&mut self, op: OpId) -> Result<()> {
        let func = self.func;
        let data = &func.ops[op];
        let (condition, body) = (data.regions[0], data.regions[1]);
        let layouts = self.homes(&data.results);
        let inits = self.flatten(&data.operands, &layouts)?;
        self.enter_loop(&data.regions);
        let carried = self.b.begin_loop(&inits);
        self.open_scope();
        self.unflatten(&func.regions[condition].params, &layouts, &carried);
        self.region_ops(condition)?;
        let go_on = self.scalar(func.ops[func.terminator(condition)].operands[0])?;
        self.close_scope();
        // The loop ends here, whether or not a round has run.
        let at_end = self.hazards.clone();
        let carried = self.b.loop_body(go_on);
        self.open_scope();
        self.unflatten(&func.regions[body].params, &layouts, &carried);
        self.region_ops(body)?;
        let next = self.flatten(&func.ops[func.terminator(body)].operands, &layouts)?;
        self.close_scope();
        let results = self.b.end_loop(&next);
        self.hazards = at_end;
        self.unflatten(&data.results, &layouts, &results);
        Ok(())
    }

    pub(super) fn branch(&mut self, op: OpId) -> Result<()> {
        let func = self.func;
        let data = &func.ops[op];
        let condition = self.scalar(data.operands[0])?;
        let layouts = self.homes(&data.results);
        let before = self.hazards.clone();
        let run = |l: &mut Self, region: Region| -> Result<Vec<thread::Value>> {
            l.open_scope();
            l.region_ops(region)?;
            let flat = l.flatten(&func.ops[func.terminator(region)].operands, &layouts)?;
            l.close_scope();
            Ok(flat)
        };
        self.b.begin_if(condition);
        let then = run(self, data.regions[0])?;
        let after_then = std::mem::replace(&mut self.hazards, before.clone());
        self.b.begin_else(&then);
        let otherwise = run(self, data.regions[1])?;
        self.hazards.merge(after_then);
        let results = self.b.end_if(&otherwise);
        self.unflatten(&data.results, &layouts, &results);
        Ok(())
    }
}
