//! Loops whose loads run ahead: `cp.async` into as many shared buffers as there are stages. What a round does, and when, says the
//! schedule ([`crate::schedule::PipelinePlan`]).

use super::memory::vector_group;
use super::mma::staged_bytes;
use super::{Lowering, Regs};
use crate::error::{Error, Result};
use crate::layout::{Layout, Swizzle};
use crate::schedule::{DotPlan, InFlight, MemoryAccess, Moment, Step};
use crate::thread::{Cmp, Op, Shared, Value};
use crate::tile::{self, OpId, Region, Shape};

/// A matrix in swizzled shared memory.
#[derive(Clone, Copy)]
pub(super) struct Staged {
    /// The buffer.
    pub buf: Shared,
    /// The byte its first element lies at (the stage).
    pub start: Value,
    /// The dimension along which a row of shared memory lies.
    pub inner: usize,
    /// How rows are swizzled.
    pub swizzle: Swizzle,
}

/// A load that runs ahead: where it goes.
struct Ahead {
    load: OpId,
    access: MemoryAccess,
    buf: Shared,
    bytes: u32,
    /// The layout as one of a matrix: without dimensions of extent 1.
    matrix: Layout,
    inner: usize,
    swizzle: Swizzle,
}

/// A carried value of which a copy runs ahead.
struct Running {
    param: tile::Value,
    next: tile::Value,
    layout: Layout,
}

/// A product that is issued one round ahead.
pub(super) struct Early {
    pub op: OpId,
    /// It is issued just before this product, which stays in flight.
    pub before: OpId,
    /// Its sums of this round.
    pub sums: Vec<Value>,
    /// Those of the next round, when it is issued.
    next: Vec<Value>,
    /// The stage that the next round reads.
    stage: Value,
    /// Copies it is made of: their results and the bytes of a stage.
    loads: Vec<(tile::Value, u32)>,
    /// Groups of copies that may be pending when it is issued.
    pending: u32,
}

/// The round that copies are started for.
struct Round {
    iv: Value,
    stage: Value,
    /// Is there such a round?
    in_time: Value,
}

impl Lowering<'_> {
    pub(super) fn pipelined_loop(&mut self, op: OpId) -> Result<()> {
        let func = self.func;
        let data = &func.ops[op];
        let body = data.regions[0];
        let plan = self.schedule.pipelines[&op].clone();
        let stages = plan.stages;
        let params = &func.regions[body].params;
        let layouts: Vec<_> = params[1..].iter().map(|&v| self.home_or_default(v)).collect();
        let trips = self.trip_count(op)?;
        let (lo, step) = (self.scalar(data.operands[0])?, self.scalar(data.operands[2])?);
        let ty = self.b.ty(trips);

        let next_values = &func.ops[func.terminator(body)].operands;
        let running: Vec<Running> = plan
            .carried
            .iter()
            .map(|&i| Running { param: params[1 + i], next: next_values[i], layout: layouts[i].clone() })
            .collect();
        self.hold_operands(body, true)?;
        let loads: Vec<Ahead> = plan.loads.iter().map(|&load| self.open_stages(load, stages)).collect();
        let (distance, early) = (plan.distance, plan.issued_ahead());
        self.hazards.forget_places();
        for l in &loads {
            self.touch_ahead(l);
        }
        if self.hazards.before_shared_write() {
            self.barrier();
        }
        // The first rounds' copies.
        let mut ahead = lo;
        let mut ahead_regs = Vec::with_capacity(running.len());
        for (&i, r) in plan.carried.iter().zip(&running) {
            ahead_regs.push(self.regs(data.operands[3 + i], &r.layout)?);
        }
        for stage in 0..distance {
            let round = self.b.iconst(ty, stage.into());
            let in_time = self.b.icmp_u(Cmp::Lt, round, trips);
            let stage = self.b.i32(stage as i32);
            let round = Round { iv: ahead, stage, in_time };
            ahead_regs = self.start_copies(&loads, body, &round, &running, &ahead_regs)?;
            ahead = self.b.add(ahead, step);
        }

        // Carried: round, induction variable, that of the round ahead, stage read, stage written, values that run ahead, and
        // the kernel's own.
        let zero = self.b.iconst(ty, 0);
        let first = self.b.i32(0);
        let next_stage = self.b.i32(distance as i32);
        let mut inits = vec![zero, lo, ahead, first, next_stage];
        inits.extend(ahead_regs.iter().flat_map(|regs| regs.iter().copied()));
        let early_at = inits.len();
        let mut own_inits = Vec::new();
        for (&v, layout) in data.operands[3..].iter().zip(&layouts) {
            own_inits.extend_from_slice(&self.regs(v, layout)?);
        }
        if let Some(op) = early {
            self.wait_for_copies(body, distance - 1);
            self.stage_at(&loads, first);
            self.open_scope();
            let sums = self.start_wgmma_alone(op)?;
            self.close_scope();
            // Waited for at once: in the first round no other product follows it.
            inits.extend(self.b.wgmma_wait(0, &sums));
        }
        let own = inits.len();
        inits.extend(own_inits);
        let before = self.hazards.clone();
        self.enter_loop(&[body]);
        let carried = self.b.begin_loop(&inits);
        let go_on = self.b.icmp_u(Cmp::Lt, carried[0], trips);
        let carried = self.b.loop_body(go_on);
        let (round, iv, ahead, read, write) = (carried[0], carried[1], carried[2], carried[3], carried[4]);

        for step in plan.at(Moment::Begin) {
            if let &Step::WaitForCopies(pending) = step {
                self.wait_for_copies(body, pending);
            }
        }
        let coming = self.b.add_imm(round, distance.into());
        // Rounds are counted without sign and never come near the end of the type: the last one started is `trips - 1`.
        let in_time = self.b.icmp_u(Cmp::Lt, coming, trips);
        let mut ahead_flat = &carried[5..early_at];
        let mut ahead_regs: Vec<Regs> = running
            .iter()
            .map(|r| {
                let (mine, rest) = ahead_flat.split_at(r.layout.registers());
                ahead_flat = rest;
                mine.into()
            })
            .collect();
        let ahead_round = Round { iv: ahead, stage: write, in_time };
        if plan.at(Moment::Begin).any(|step| *step == Step::StartCopies) {
            ahead_regs = self.start_copies(&loads, body, &ahead_round, &running, &ahead_regs)?;
        }
        for l in &loads {
            self.hazards.global(func.ops[l.load].operands[0], false, 0, None);
        }

        self.open_scope();
        let scalar = self.schedule.scalar();
        self.define(params[0], scalar, vec![iv].into());
        let mut flat = &carried[own..];
        for (&v, layout) in params[1..].iter().zip(&layouts) {
            let (mine, rest) = flat.split_at(layout.registers());
            self.define(v, layout.clone(), mine.into());
            flat = rest;
        }
        self.stage_at(&loads, read);
        self.in_flight.extend(plan.in_flight.iter().map(|p| p.product));
        let sums = |products: &[OpId]| -> Vec<(tile::Value, Layout)> {
            let carried = plan.in_flight.iter().filter(|p| products.contains(&p.product)).map(|p| p.carried);
            carried.map(|i| (params[1 + i], layouts[i].clone())).collect()
        };
        for (moment, step) in &plan.steps {
            match (moment, step) {
                (Moment::Before(op), Step::Finish { products, .. }) => {
                    self.finish_before.insert(*op, sums(products));
                }
                (Moment::After(op), Step::Finish { products, .. }) => {
                    self.finish_with.insert(*op, sums(products));
                }
                (&Moment::Issue(before), &Step::IssueAhead(op)) => {
                    let pending = plan.at(Moment::Issue(before)).find_map(|step| match step {
                        Step::WaitForCopies(pending) => Some(*pending),
                        _ => None,
                    });
                    self.early = Some(Early {
                        op,
                        before,
                        sums: carried[early_at..own].to_vec(),
                        next: vec![],
                        stage: self.next_stage(read, stages),
                        loads: loads.iter().map(|l| (func.ops[l.load].results[0], l.bytes)).collect(),
                        pending: pending.unwrap_or(0),
                    });
                }
                _ => {}
            }
        }
        self.region_ops(body)?;
        for p in &plan.in_flight {
            self.in_flight.remove(&p.product);
        }
        for step in plan.at(Moment::End) {
            if let &Step::Finish { pending, .. } = step {
                self.b.wgmma_wait(pending, &[]);
            }
        }
        let mut yielded = Vec::new();
        for (&v, layout) in func.ops[func.terminator(body)].operands.iter().zip(&layouts) {
            yielded.extend_from_slice(&self.regs(v, layout)?);
        }
        self.close_scope();
        let mut next_sums = Vec::new();
        for step in plan.at(Moment::Next) {
            match step {
                Step::StartCopies => {
                    ahead_regs = self.start_copies(&loads, body, &ahead_round, &running, &ahead_regs)?;
                }
                &Step::Finish { pending, .. } => {
                    if let Some(early) = self.early.take() {
                        next_sums = self.b.wgmma_wait(pending, &early.next);
                    }
                }
                _ => {}
            }
        }
        let mut next = vec![self.b.add_imm(round, 1), self.b.add(iv, step), self.b.add(ahead, step)];
        next.push(self.next_stage(read, stages));
        next.push(self.next_stage(write, stages));
        next.extend(ahead_regs.iter().flat_map(|regs| regs.iter().copied()));
        next.extend(next_sums);
        next.extend(yielded);
        for l in &loads {
            self.staged.remove(&func.ops[l.load].results[0]);
        }
        let mut results = self.b.end_loop(&next);
        self.finish_products(&plan.in_flight, &layouts, own, &mut results);
        // Only empty groups are left, but the buffers may be written again only when none is under way.
        self.b.emit(Op::CpAsyncWait(0), vec![], &[]);
        // No round may have run, and so none of the barriers in it.
        self.hazards.merge(before);
        for l in &loads {
            self.free_shared(l.buf, None);
        }
        let mut flat = &results[own..];
        for (&v, layout) in data.results.iter().zip(&layouts) {
            let (mine, rest) = flat.split_at(layout.registers());
            self.define(v, layout.clone(), mine.into());
            flat = rest;
        }
        Ok(())
    }

    /// Waits until at most so many groups of copies are pending; what the others brought is there for all.
    fn wait_for_copies(&mut self, body: Region, pending: u32) {
        self.b.emit(Op::CpAsyncWait(pending as u8), vec![], &[]);
        if self.has_wgmma(body) {
            self.b.emit(Op::AsyncProxyFence, vec![], &[]);
        }
        self.barrier();
    }

    /// The stage after this one.
    fn next_stage(&mut self, stage: Value, stages: u32) -> Value {
        let up = self.b.add_imm(stage, 1);
        let end = self.b.i32(stages as i32);
        let wraps = self.b.icmp_u(Cmp::Eq, up, end);
        let zero = self.b.i32(0);
        self.b.select(wraps, zero, up)
    }

    /// Loads that ran ahead are in this stage.
    fn stage_at(&mut self, loads: &[Ahead], stage: Value) {
        for l in loads {
            let start = self.b.mul_imm(stage, l.bytes.into());
            let staged = Staged { buf: l.buf, start, inner: l.inner, swizzle: l.swizzle };
            self.staged.insert(self.func.ops[l.load].results[0], staged);
        }
    }

    /// The sums, in flight, of a product whose operands are in shared memory already.
    fn start_wgmma_alone(&mut self, op: OpId) -> Result<Vec<Value>> {
        match self.schedule.dots.get(&op).cloned() {
            Some(DotPlan::Wgmma(plan)) => Ok(self.start_wgmma(op, &plan)?.0),
            _ => Err(Error::Internal(format!("{op} is no product of four warps"))),
        }
    }

    /// Issues the product that goes a round ahead, when the copies that it is made of are there.
    pub(super) fn issue_early(&mut self) -> Result<()> {
        let Some(early) = self.early.take() else { return Ok(()) };
        self.b.emit(Op::CpAsyncWait(early.pending as u8), vec![], &[]);
        self.b.emit(Op::AsyncProxyFence, vec![], &[]);
        self.barrier();
        let mut now = Vec::new();
        for &(load, bytes) in &early.loads {
            let start = self.b.mul_imm(early.stage, bytes.into());
            if let Some(staged) = self.staged.get_mut(&load) {
                now.push((load, std::mem::replace(&mut staged.start, start)));
            }
        }
        let next = self.start_wgmma_alone(early.op)?;
        for (load, start) in now {
            if let Some(staged) = self.staged.get_mut(&load) {
                staged.start = start;
            }
        }
        self.early = Some(Early { next, ..early });
        Ok(())
    }

    /// Has the loop a product of four warps?
    fn has_wgmma(&self, body: Region) -> bool {
        let mut found = false;
        self.func.walk(body, &mut |op| found |= matches!(self.schedule.dots.get(&op), Some(DotPlan::Wgmma(_))));
        found
    }

    /// Waits for the products among carried values, the first of which is at `own`.
    fn finish_products(&mut self, in_flight: &[InFlight], layouts: &[Layout], own: usize, carried: &mut [Value]) {
        let mut places = Vec::new();
        for &InFlight { carried: i, .. } in in_flight {
            let start = own + layouts[..i].iter().map(Layout::registers).sum::<usize>();
            places.extend(start..start + layouts[i].registers());
        }
        if places.is_empty() {
            return;
        }
        let values: Vec<Value> = places.iter().map(|&i| carried[i]).collect();
        for (i, value) in places.into_iter().zip(self.b.wgmma_wait(0, &values)) {
            carried[i] = value;
        }
    }

    fn open_stages(&mut self, load: OpId, stages: u32) -> Ahead {
        let func = self.func;
        let result = func.ops[load].results[0];
        let ty = func.ty(result);
        let elem_bytes = ty.elem.bytes();
        let access = self.schedule.accesses[&load].clone();
        let axis = access.axis.unwrap_or(ty.shape.rank() - 1);
        let dims = ty.shape.dims();
        let (matrix, inner) = if dims.len() == 2 {
            (access.layout.clone(), axis)
        } else {
            let kept = Shape::new(dims.iter().copied().filter(|&d| d > 1).collect::<Vec<_>>());
            (access.layout.reshape(&kept), dims[..axis].iter().filter(|&&d| d > 1).count())
        };
        let rows = ty.shape.elements() / dims[axis];
        let swizzle = Swizzle::new(rows as u32, (dims[axis] * elem_bytes) as u32);
        let bytes = staged_bytes(&ty.shape, elem_bytes);
        let buf = self.shared.open(&mut self.b, bytes * stages, elem_bytes as u8 * 8);
        Ahead { load, access, buf, bytes, matrix, inner, swizzle }
    }

    fn touch_ahead(&mut self, l: &Ahead) {
        let pointer = self.func.ops[l.load].operands[0];
        let place = super::hazard::Place { address: vec![pointer], layout: l.access.layout.clone() };
        self.touch_global(pointer, false, place);
    }

    /// Starts the copies of all loads for a round, and ends their group. Takes the carried values of that round that
    /// addresses are made of, and gives those of the round after it.
    fn start_copies(
        &mut self,
        loads: &[Ahead],
        body: Region,
        round: &Round,
        running: &[Running],
        regs: &[Regs],
    ) -> Result<Vec<Regs>> {
        // Addresses are computed as in the body, but for another round: what is known of the body now is hidden.
        self.open_scope();
        let scalar = self.schedule.scalar();
        self.define(self.func.regions[body].params[0], scalar, vec![round.iv].into());
        for (r, regs) in running.iter().zip(regs) {
            self.define(r.param, r.layout.clone(), regs.clone());
        }
        for l in loads {
            self.start_copy(l, round.stage, round.in_time)?;
        }
        let next = running.iter().map(|r| self.regs(r.next, &r.layout)).collect::<Result<_>>()?;
        self.close_scope();
        self.b.emit(Op::CpAsyncCommit, vec![], &[]);
        Ok(next)
    }

    fn start_copy(&mut self, l: &Ahead, stage: Value, in_time: Value) -> Result<()> {
        let func = self.func;
        let data = &func.ops[l.load];
        let layout = &l.access.layout;
        let elem_bytes = func.ty(data.results[0]).elem.bytes() as u32;
        let bytes = (l.access.vec as u32 * elem_bytes) as u8;
        let (row, column) = (self.thread_coord(&l.matrix, 1 - l.inner), self.thread_coord(&l.matrix, l.inner));
        let start = self.b.mul_imm(stage, l.bytes.into());
        let base = self.swizzled_base(l.swizzle, elem_bytes, row, column, start);
        let is_view = matches!(data.op, tile::Op::ViewLoad { .. });
        let mut view = if is_view { Some(self.view_access(l.load, layout)?) } else { None };
        let (pointers, masks) = if is_view {
            (None, None)
        } else {
            let pointers = self.regs(data.operands[0], layout)?;
            let masks = data.operands.get(1).map(|&m| self.regs(m, layout)).transpose()?;
            (Some(pointers), masks)
        };
        for first in (0..layout.registers()).step_by(l.access.vec) {
            debug_assert_eq!(vector_group(layout, l.access.axis, l.access.vec, first)[0], first, "groups are aligned");
            let (row, column) = (l.matrix.reg_coord(first, 1 - l.inner), l.matrix.reg_coord(first, l.inner));
            let (byte, shared_offset) = self.swizzled_at(l.swizzle, elem_bytes, base, row, column);
            let (address, global_offset, guard) = match (&mut view, &pointers) {
                (Some(view), _) => {
                    let inside = self.view_inside(view, first, Some(in_time));
                    let (address, offset) = self.view_address(view, first);
                    (address, offset, inside)
                }
                (None, Some(pointers)) => {
                    let guard = masks.as_ref().map_or(in_time, |m| self.b.and(m[first], in_time));
                    (pointers[first], 0, Some(guard))
                }
                (None, None) => unreachable!("a load is of a view or of pointers"),
            };
            let mut operands = vec![byte, address];
            operands.extend(guard.filter(|&g| self.b.bits(g) != Some(1)));
            self.b.emit(Op::CpAsync { buf: l.buf, bytes, shared_offset, global_offset }, operands, &[]);
        }
        Ok(())
    }
}
