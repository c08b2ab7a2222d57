//! Which loads of loops run ahead of their use.

use super::plan::Planner;
use super::{AheadReason, DotPlan, PipelinePlan};
use crate::entity::Entity;
use crate::layout::Layout;
use crate::tile::{Op, OpId, Region, Value, ValueDef};
use std::collections::{BTreeSet, HashSet};

impl Planner<'_> {
    pub(super) fn plan_pipelines(&mut self) {
        let mut loops = Vec::new();
        self.func.walk(self.func.body, &mut |op| {
            if matches!(self.func.ops[op].op, Op::For | Op::While) {
                loops.push(op);
            }
        });
        for op in loops {
            self.plan_pipeline(op);
        }
    }

    /// Plans the loads of one loop, those of loops in it apart.
    fn plan_pipeline(&mut self, op: OpId) {
        let data = &self.func.ops[op];
        let in_while = data.op == Op::While;
        let mut loads = Vec::new();
        let mut carried = BTreeSet::new();
        for &region in &data.regions {
            for (load, in_branch) in self.loads_of(region) {
                match self.can_run_ahead(region, load, in_while, in_branch) {
                    Ok(needed) => {
                        loads.push(load);
                        carried.extend(needed);
                    }
                    Err(why) => {
                        self.schedule.ahead_reasons.insert(load, why);
                    }
                }
            }
        }
        if !loads.is_empty() {
            let carried = carried.into_iter().collect();
            let mut plan = PipelinePlan { stages: self.options.num_stages, loads, carried, ..PipelinePlan::default() };
            self.plan_rounds(data.regions[0], &mut plan);
            self.schedule.pipelines.insert(op, plan);
        }
    }

    /// The loads of a loop's region, without those of loops in it, and whether each is in a branch.
    fn loads_of(&self, region: Region) -> Vec<(OpId, bool)> {
        let mut found = Vec::new();
        let mut todo = vec![(region, false)];
        while let Some((region, in_branch)) = todo.pop() {
            for &op in &self.func.regions[region].ops {
                let data = &self.func.ops[op];
                match data.op {
                    Op::Load | Op::ViewLoad { .. } => found.push((op, in_branch)),
                    Op::If => todo.extend(data.regions.iter().map(|&r| (r, true))),
                    _ => {}
                }
            }
        }
        found
    }

    /// May the load be started iterations before its use? It must feed only dots on tensor cores, read 0 outside,
    /// move at least 4 bytes at a time, and its address must be computable ahead.
    fn can_run_ahead(
        &self,
        body: Region,
        load: OpId,
        in_while: bool,
        in_branch: bool,
    ) -> Result<BTreeSet<usize>, AheadReason> {
        let data = &self.func.ops[load];
        let result = data.results[0];
        // What the kernel does comes before what options and device do: it tells more.
        self.feeds_only_mma(body, result)?;
        if in_while {
            return Err(AheadReason::While);
        }
        if in_branch {
            return Err(AheadReason::Branch);
        }
        if !self.caps.cp_async {
            return Err(AheadReason::NoCopies);
        }
        if self.options.num_stages < 2 {
            return Err(AheadReason::OneStage);
        }
        let outside = match data.op {
            Op::Load => data.operands.get(2),
            Op::ViewLoad { rank } => data.operands.get(1 + 3 * usize::from(rank)),
            _ => unreachable!("only loads come here"),
        };
        if outside.is_some_and(|&other| self.func.const_of(other).is_none_or(|c| c.0 != 0)) {
            return Err(AheadReason::Padding);
        }
        let access = &self.schedule.accesses[&load];
        if access.axis.is_none() {
            return Err(AheadReason::Scattered);
        }
        let bytes = access.vec * self.func.ty(result).dtype().bytes();
        if bytes < 4 {
            return Err(AheadReason::Bytes(bytes));
        }
        // The copies of a replicated layout would all write the same bytes.
        if !access.layout.is_injective() {
            return Err(AheadReason::Repeated);
        }
        if let Some(store) = self.may_be_stored_to(body, data.operands[0]) {
            return Err(AheadReason::Store(store));
        }
        self.computable_ahead(body, &data.operands, &access.layout)
    }

    /// Where the loop stores to what `pointer` may lead to: a load must not pass the stores of earlier rounds.
    fn may_be_stored_to(&self, body: Region, pointer: Value) -> Option<OpId> {
        let mut stored = None;
        self.func.walk(body, &mut |op| {
            let data = &self.func.ops[op];
            if data.op.writes_memory() && self.aliases.may_alias(data.operands[0], pointer) {
                stored = stored.or(Some(op));
            }
        });
        stored
    }

    /// Is the value used as an operand of products on tensor cores of this loop, and by nothing else?
    fn feeds_only_mma(&self, body: Region, value: Value) -> Result<(), AheadReason> {
        let uses = self.uses.get(&value).map_or(&[][..], Vec::as_slice);
        let mut in_order: Vec<OpId> = uses.to_vec();
        in_order.sort_by_key(|op| op.index());
        let mut refused = None;
        let mut product = false;
        for user in in_order {
            match self.takes_copies(body, value, user) {
                Ok(()) => product = true,
                Err(why) => refused = refused.or(Some(why)),
            }
        }
        match refused {
            Some(AheadReason::Use(op, also)) => Err(AheadReason::Use(op, also || product)),
            Some(why) => Err(why),
            None if product => Ok(()),
            None => Err(AheadReason::Unused),
        }
    }

    /// Can this use of a value take it from shared memory, where copies go?
    fn takes_copies(&self, body: Region, value: Value, user: OpId) -> Result<(), AheadReason> {
        let data = &self.func.ops[user];
        let ty = self.func.ty(value);
        if !self.func.regions[body].ops.contains(&user) {
            return Err(AheadReason::Use(user, false));
        }
        match &data.op {
            Op::Permute(_) if ty.shape.rank() == 2 => self.feeds_only_mma(body, data.results[0]),
            Op::Reshape if self.func.ty(data.results[0]).shape.is_matrix_of(&ty.shape) => {
                self.feeds_only_mma(body, data.results[0])
            }
            Op::Dot { .. } if data.operands[2] == value => Err(AheadReason::Accumulator(user)),
            Op::Dot { .. } if matches!(self.schedule.dots[&user], DotPlan::Fma(_)) => Err(AheadReason::Fma(user)),
            Op::Dot { .. } => Ok(()),
            _ => Err(AheadReason::Use(user, false)),
        }
    }

    /// Are `values` computed in `body` by pure ops alone, from outside values, the induction variable, and carried values whose
    /// next value is so computed, too? Gives those carried values. Tiles among them must stay in `layout`, in which the
    /// load takes its pointers: nothing may be converted ahead.
    fn computable_ahead(
        &self,
        body: Region,
        values: &[Value],
        layout: &Layout,
    ) -> Result<BTreeSet<usize>, AheadReason> {
        let next = &self.func.ops[self.func.terminator(body)].operands;
        let stays = |v: Value| self.func.ty(v).is_scalar() || self.home(v) == Some(layout);
        let mut todo = values.to_vec();
        let mut seen = HashSet::new();
        let mut carried = BTreeSet::new();
        while let Some(value) = todo.pop() {
            if !seen.insert(value) {
                continue;
            }
            match self.func.values[value].def {
                ValueDef::Param { region, index } if region == body && index > 0 => {
                    let i = index as usize - 1;
                    if !stays(value) || !stays(next[i]) {
                        return Err(AheadReason::Carried);
                    }
                    carried.insert(i);
                    todo.push(next[i]);
                }
                ValueDef::Result { op, .. } if self.func.regions[body].ops.contains(&op) => {
                    let data = &self.func.ops[op];
                    let computed_anywhere = data.op.is_pure()
                        && !matches!(data.op, Op::Reduce { .. } | Op::ArgReduce { .. } | Op::Dot { .. });
                    if !computed_anywhere {
                        return Err(AheadReason::Address(op));
                    }
                    todo.extend(&data.operands);
                }
                _ => {}
            }
        }
        Ok(carried)
    }
}
