//! The machine: registers of all threads, and control flow with a mask of active threads.

use super::memory::Memory;
use super::report::Report;
use super::shadow::{Clock, GlobalShadow};
use super::shared::SharedMemory;
use super::wgmma::InFlight;
use super::{SimOptions, pure};
use crate::entity::Entity;
use crate::error::{Diagnostic, Error, Loc, Result};
use crate::thread::{Block, Function, InstData, InstId, Op, Value};

/// Which threads run.
#[derive(Clone, Debug)]
pub(super) struct Mask {
    active: Vec<bool>,
    count: usize,
}

impl Mask {
    fn full(threads: usize) -> Self {
        Self { active: vec![true; threads], count: threads }
    }

    fn is_full(&self) -> bool {
        self.count == self.active.len()
    }

    /// The active threads where the condition is `value`.
    fn where_is(&self, condition: &[u64], value: u64) -> Self {
        let active: Vec<_> = self.active.iter().zip(condition).map(|(&a, &c)| a && c == value).collect();
        let count = active.iter().filter(|&&a| a).count();
        Self { active, count }
    }

    pub fn has(&self, thread: usize) -> bool {
        self.active[thread]
    }

    /// The active threads, in order.
    pub fn threads(&self) -> impl Iterator<Item = usize> {
        self.active.iter().enumerate().filter(|&(_, &a)| a).map(|(t, _)| t)
    }
}

/// `0-31, 64`.
pub(super) fn ranges(numbers: impl Iterator<Item = usize>) -> String {
    let mut found: Vec<(usize, usize)> = Vec::new();
    for n in numbers {
        match found.last_mut() {
            Some((_, last)) if *last + 1 == n => *last = n,
            _ => found.push((n, n)),
        }
    }
    let text = |&(a, b): &(usize, usize)| if a == b { a.to_string() } else { format!("{a}-{b}") };
    found.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// Runs programs one after the other.
pub(super) struct Machine<'a> {
    pub func: &'a Function,
    pub args: &'a [u64],
    pub memory: &'a mut Memory,
    pub grid: [u32; 3],
    pub options: &'a SimOptions,
    pub program: [u32; 3],
    /// For each register its bits in every thread.
    pub regs: Vec<Vec<u64>>,
    pub shared: SharedMemory,
    pub global_shadow: GlobalShadow,
    pub clock: Clock,
    pub report: Report,
    /// Of this program.
    steps: u64,
    /// Products of four warps in flight, if the function has such products.
    pub in_flight: Option<InFlight>,
}

impl<'a> Machine<'a> {
    pub fn new(
        func: &'a Function,
        args: &'a [u64],
        memory: &'a mut Memory,
        grid: [u32; 3],
        options: &'a SimOptions,
    ) -> Self {
        Self {
            func,
            args,
            memory,
            grid,
            options,
            program: [0; 3],
            regs: vec![vec![0; func.threads as usize]; func.values.len()],
            shared: SharedMemory::new(func, options.untyped_shared),
            global_shadow: GlobalShadow::default(),
            clock: Clock::new(func.threads, func.warp_width),
            report: Report::default(),
            steps: 0,
            in_flight: func.insts.iter().any(|(_, i)| matches!(i.op, Op::Wgmma { .. })).then(InFlight::default),
        }
    }

    pub fn into_report(self) -> Report {
        self.report
    }

    /// Runs one program from its beginning.
    pub fn program(&mut self, program: [u32; 3]) -> Result<()> {
        self.program = program;
        self.shared = SharedMemory::new(self.func, self.options.untyped_shared);
        self.global_shadow.clear();
        self.clock = Clock::new(self.func.threads, self.func.warp_width);
        self.steps = 0;
        self.in_flight = self.in_flight.take().map(|_| InFlight::default());
        self.block(self.func.body, &Mask::full(self.func.threads as usize))?;
        self.report.steps += self.steps;
        Ok(())
    }

    /// Runs a block; gives the operands of its terminator.
    fn block(&mut self, block: Block, mask: &Mask) -> Result<&'a [Value]> {
        let func = self.func;
        for &id in &func.blocks[block].insts {
            let inst = &func.insts[id];
            self.steps += 1;
            if self.steps > self.options.step_limit {
                let limit = self.options.step_limit;
                let what = format!("it did not end within {limit} instructions; is there a loop without end?");
                return Err(self.fail(id, &what, mask.threads()));
            }
            if matches!(inst.op, Op::Yield | Op::Condition) {
                return Ok(&inst.operands);
            }
            self.check_in_flight(id, inst, mask)?;
            self.inst(id, inst, mask)?;
        }
        Err(Error::Internal("a verified block ends with a terminator".into()))
    }

    fn inst(&mut self, id: InstId, inst: &'a InstData, mask: &Mask) -> Result<()> {
        match inst.op {
            Op::If => self.branch(inst, mask),
            Op::Loop => self.repeat(inst, mask),
            Op::Barrier => {
                if !mask.is_full() {
                    let what = format!("a barrier that not all {} threads of the program reach", self.func.threads);
                    return Err(self.fail(id, &what, mask.threads()));
                }
                self.clock.barrier();
                self.report.barriers += 1;
                Ok(())
            }
            Op::WarpBarrier => {
                for warp in self.whole_warps(id, mask)? {
                    self.clock.warp_barrier(warp);
                    self.report.warp_barriers += 1;
                }
                Ok(())
            }
            Op::GlobalLoad(a) => self.global_load(id, inst, a, mask),
            Op::GlobalStore(a) => self.global_store(id, inst, a, mask),
            Op::SharedLoad(buf, a) => self.shared_load(id, inst, buf, a, mask),
            Op::SharedStore(buf, a) => self.shared_store(id, inst, buf, a, mask),
            Op::CpAsync { buf, bytes, shared_offset, global_offset } => {
                self.cp_async(id, inst, buf, bytes.into(), (shared_offset, global_offset), mask)
            }
            Op::CpAsyncCommit => {
                mask.threads().for_each(|t| self.shared.commit(t));
                Ok(())
            }
            Op::CpAsyncWait(n) => {
                mask.threads().for_each(|t| self.shared.wait(t, n.into(), &self.clock));
                Ok(())
            }
            Op::LdMatrix { buf, n, trans, offset } => self.ldmatrix(id, inst, buf, (n.into(), trans, offset), mask),
            Op::Mma(kind) => self.mma(id, inst, kind, mask),
            Op::Wgmma { kind, n, a, b } => self.wgmma(id, inst, (kind, n.into()), (a, b), mask),
            Op::Hold => Ok(()),
            Op::WgmmaFence => self.wgmma_fence(id, mask),
            Op::AsyncProxyFence => {
                mask.threads().for_each(|t| self.shared.fence(t));
                Ok(())
            }
            Op::WgmmaCommit => self.wgmma_commit(id, mask),
            Op::WgmmaWait(pending) => self.wgmma_wait(id, inst, pending.into(), mask),
            Op::Shuffle(shuffle) => self.shuffle(id, inst, shuffle, mask),
            _ => {
                if let Op::IBin(op) = inst.op {
                    self.check_integers(id, inst, op, mask)?;
                }
                pure::run(self, inst);
                Ok(())
            }
        }
    }

    fn branch(&mut self, inst: &'a InstData, mask: &Mask) -> Result<()> {
        for (value, &block) in [1, 0].into_iter().zip(&inst.blocks) {
            let taken = mask.where_is(self.reg(inst.operands[0]), value);
            if taken.count > 0 {
                let yielded = self.block(block, &taken)?;
                self.copy(&inst.results, yielded, &taken);
            }
        }
        Ok(())
    }

    fn repeat(&mut self, inst: &'a InstData, mask: &Mask) -> Result<()> {
        let func = self.func;
        let (condition, body) = (inst.blocks[0], inst.blocks[1]);
        let (in_condition, in_body) = (&func.blocks[condition].params, &func.blocks[body].params);
        self.copy(in_condition, &inst.operands, mask);
        let mut active = mask.clone();
        loop {
            let go_on = self.block(condition, &active)?[0];
            let leaving = active.where_is(self.reg(go_on), 0);
            if leaving.count > 0 {
                self.copy(&inst.results, in_condition, &leaving);
                active = active.where_is(self.reg(go_on), 1);
            }
            if active.count == 0 {
                return Ok(());
            }
            self.copy(in_body, in_condition, &active);
            let next = self.block(body, &active)?;
            self.copy(in_condition, next, &active);
        }
    }

    /// Copies registers of the active threads. No register is on both sides: blocks and results have their own.
    fn copy(&mut self, to: &[Value], from: &[Value], mask: &Mask) {
        for (&to, &from) in to.iter().zip(from) {
            if let Some(in_flight) = &mut self.in_flight {
                in_flight.copied(to, from, mask.is_full());
            }
            let mut d = self.take(to);
            let s = self.reg(from);
            if mask.is_full() {
                d.copy_from_slice(s);
            } else {
                for t in mask.threads() {
                    d[t] = s[t];
                }
            }
            self.put(to, d);
        }
    }

    /// A register in every thread.
    pub fn reg(&self, v: Value) -> &[u64] {
        &self.regs[v.index()]
    }

    /// Takes a register to write it while others are read; [`Machine::put`] puts it back.
    pub fn take(&mut self, v: Value) -> Vec<u64> {
        std::mem::take(&mut self.regs[v.index()])
    }

    pub fn put(&mut self, v: Value, bits: Vec<u64>) {
        self.regs[v.index()] = bits;
    }

    /// The warps that run a warp-wide op: all lanes of each must.
    pub fn whole_warps(&self, id: InstId, mask: &Mask) -> Result<Vec<usize>> {
        let width = self.func.warp_width as usize;
        let mut warps = Vec::new();
        for (warp, lanes) in mask.active.chunks(width).enumerate() {
            match lanes.iter().filter(|&&a| a).count() {
                0 => {}
                n if n == width => warps.push(warp),
                _ => {
                    let what = format!("a warp-wide op that not all {width} lanes of warp {warp} reach");
                    let active = (warp * width..(warp + 1) * width).filter(|&t| mask.has(t));
                    return Err(self.fail(id, &what, active));
                }
            }
        }
        Ok(warps)
    }

    /// The error of a mistake that these threads make in an instruction.
    pub fn fail(&self, id: InstId, what: &str, threads: impl Iterator<Item = usize>) -> Error {
        let [x, y, z] = self.program;
        let threads = ranges(threads);
        let s = if threads.contains(['-', ',']) { "s" } else { "" };
        let text = self.func.inst_text(id);
        let message = format!("{what}\n  by thread{s} {threads} of program ({x}, {y}, {z}) in `{text}`");
        Error::Execution { kernel: self.func.name.clone(), diagnostic: Diagnostic::new(Loc::UNKNOWN, message) }
    }
}
