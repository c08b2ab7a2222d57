//! Choosing homes: forward from loads, dots and reductions through everything computed from them.

use super::{DotPlan, MemoryAccess, Schedule};
use crate::analysis::alias::{Aliases, aliases};
use crate::analysis::axis::AxisInfo;
use crate::entity::Entity;
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::pipeline::Options;
use crate::target::Caps;
use crate::tile::{Function, Op, OpId, Region, Value};
use std::collections::{HashMap, HashSet};

/// Most elements of one tile that a thread may hold. Each is an instruction or more in everything done with the tile: beyond
/// this, compilers behind Tilewright take minutes. Every tile fits with the most warps.
const MAX_REGISTERS: usize = 1024;

/// Loops nested deeper than this are planned once instead of until their layouts settle.
const MAX_DEPTH: u32 = 4;

pub(super) struct Planner<'a> {
    pub(super) func: &'a Function,
    pub(super) caps: &'a Caps,
    pub(super) options: &'a Options,
    pub(super) schedule: Schedule,
    /// Layouts that loads and stores would like their pointers and masks in.
    wishes: HashMap<Value, Layout>,
    /// Accumulators of dots, and values in their layouts: cheap to keep, costly to store from.
    accumulators: HashSet<Value>,
    /// Dots that make the left operand of another, or take it from one.
    chained: HashSet<OpId>,
    /// Of the accumulators: those on the way from one dot to the next. What meets them comes to their layout.
    links: HashSet<Value>,
    pub(super) uses: HashMap<Value, Vec<OpId>>,
    pub(super) aliases: Aliases,
    /// Loops around the op being planned.
    depth: u32,
}

pub(super) fn plan(func: &Function, axis: &AxisInfo, caps: &Caps, options: &Options) -> Result<Schedule> {
    check(func, caps, options)?;
    // Never fewer than one warp of the target, nor more threads than it allows.
    let threads = (32 * options.num_warps).min(1 << caps.max_threads.ilog2()).max(caps.warp_width);
    let schedule = Schedule {
        lanes: caps.warp_width,
        warps: threads / caps.warp_width,
        homes: HashMap::new(),
        accesses: HashMap::new(),
        dots: HashMap::new(),
        reductions: HashMap::new(),
        pipelines: HashMap::new(),
        dot_reasons: HashMap::new(),
        ahead_reasons: HashMap::new(),
    };
    let mut uses: HashMap<Value, Vec<OpId>> = HashMap::new();
    func.walk(func.body, &mut |op| {
        for &operand in &func.ops[op].operands {
            uses.entry(operand).or_default().push(op);
        }
    });
    let mut p = Planner {
        func,
        caps,
        options,
        schedule,
        wishes: HashMap::new(),
        accumulators: HashSet::new(),
        chained: HashSet::new(),
        links: HashSet::new(),
        uses,
        aliases: aliases(func),
        depth: 0,
    };
    p.find_chains();
    p.plan_accesses(axis);
    p.region(func.body);
    p.plan_fragments();
    p.plan_pipelines();
    p.check_size()?;
    Ok(p.schedule)
}

/// Refuses options and devices that no schedule can be made for.
fn check(func: &Function, caps: &Caps, options: &Options) -> Result<()> {
    let refuse = |what: String, help: &str| {
        Err(Error::Unsupported { kernel: func.name.clone(), target: caps.name.clone(), what, help: Some(help.into()) })
    };
    if let Some((what, may)) = options.mistake() {
        return refuse(what, &may);
    }
    if caps.max_threads < caps.warp_width {
        let what = format!("a warp has {} lanes, but the device allows {} threads", caps.warp_width, caps.max_threads);
        return refuse(what, "use another device");
    }
    Ok(())
}

impl Planner<'_> {
    fn default_layout(&self, value: Value) -> Layout {
        Layout::default_for(&self.func.ty(value).shape, self.schedule.lanes, self.schedule.warps)
    }

    /// Refuses programs that would be too long.
    fn check_size(&self) -> Result<()> {
        let mut largest: Option<(usize, OpId, &Layout)> = None;
        self.func.walk(self.func.body, &mut |op| {
            let homes = self.func.ops[op].results.iter().filter_map(|r| self.home(*r));
            let access = self.schedule.accesses.get(&op).map(|a| &a.layout);
            for layout in homes.chain(access).chain(self.schedule.reductions.get(&op)) {
                if largest.is_none_or(|(n, ..)| layout.registers() > n) {
                    largest = Some((layout.registers(), op, layout));
                }
            }
        });
        let Some((registers, op, layout)) = largest.filter(|(n, ..)| *n > MAX_REGISTERS) else { return Ok(()) };
        let threads = self.schedule.threads();
        let loc = self.func.ops[op].loc;
        let place = if loc.is_known() { format!("\n  --> {loc}") } else { String::new() };
        Err(Error::Unsupported {
            kernel: self.func.name.clone(),
            target: self.caps.name.clone(),
            what: format!(
                "each of {threads} threads would hold {registers} elements of a tile of shape {}, more than {MAX_REGISTERS}{place}",
                layout.shape
            ),
            help: Some("use smaller tiles in a loop, or more warps".into()),
        })
    }

    pub(super) fn home(&self, value: Value) -> Option<&Layout> {
        self.schedule.homes.get(&value)
    }

    fn set_home(&mut self, value: Value, layout: Layout) {
        debug_assert_eq!(layout.shape, self.func.ty(value).shape, "a home has the shape of its value {value}");
        self.schedule.homes.insert(value, layout);
    }

    /// Finds dots whose result becomes, element by element, the left operand of another.
    fn find_chains(&mut self) {
        let func = self.func;
        let mut dots = Vec::new();
        func.walk(func.body, &mut |op| {
            if matches!(func.ops[op].op, Op::Dot { .. }) {
                dots.push(op);
            }
        });
        for dot in dots {
            let left = func.ops[dot].operands[0];
            let mut todo = vec![left];
            let mut seen = HashSet::new();
            while let Some(value) = todo.pop() {
                let Some(op) = func.def_op(value) else { continue };
                if !seen.insert(value) || func.ty(value).shape != func.ty(left).shape {
                    continue;
                }
                let data = &func.ops[op];
                if matches!(data.op, Op::Dot { .. }) {
                    self.chained.extend([op, dot]);
                    self.links.insert(value);
                } else if data.op.is_elementwise() {
                    todo.extend(&data.operands);
                }
            }
        }
    }

    /// Finds dots whose left operand lies in the registers that the instruction takes it from.
    fn plan_fragments(&mut self) {
        for (&op, plan) in &mut self.schedule.dots {
            let left = self.func.ops[op].operands[0];
            let ty = self.func.ty(left);
            let home = self.schedule.homes.get(&left);
            match plan {
                DotPlan::Mma(plan) => {
                    plan.a_in_registers = ty.dtype().bytes() == 2 && home == Some(&plan.a_fragments(&ty.shape));
                }
                DotPlan::Wgmma(plan) => plan.a_in_registers = home == Some(&plan.a_fragments(&ty.shape)),
                DotPlan::Fma(_) => {}
            }
        }
    }

    /// Loads, stores and dots do not depend on anything decided later.
    fn plan_accesses(&mut self, axis: &AxisInfo) {
        let (lanes, warps) = (self.schedule.lanes, self.schedule.warps);
        let plan_dot =
            |p: &Self, op, chained, barred| DotPlan::new(p.func, op, p.caps, (lanes, warps), chained, barred);
        // Chained products go the same way, so that what passes between them stays in registers.
        let cannot = |op: &OpId| !matches!(plan_dot(self, *op, true, None).0, DotPlan::Wgmma(_));
        let barred = self.chained.iter().copied().filter(cannot).min_by_key(|op| op.index());
        let mut ops = Vec::new();
        self.func.walk(self.func.body, &mut |op| ops.push(op));
        for op in ops {
            match self.func.ops[op].op {
                Op::Load | Op::Store | Op::ViewLoad { .. } | Op::ViewStore { .. } => {
                    let access = MemoryAccess::plan(self.func, axis, op, lanes, warps);
                    let data = &self.func.ops[op];
                    match data.op {
                        Op::Load => {
                            for &operand in &data.operands {
                                self.wish(operand, &access.layout);
                            }
                        }
                        Op::Store => {
                            for &operand in data.operands.iter().take(1).chain(data.operands.get(2)) {
                                self.wish(operand, &access.layout);
                            }
                        }
                        _ => {}
                    }
                    self.schedule.accesses.insert(op, access);
                }
                Op::Dot { .. } => {
                    let chained = self.chained.contains(&op);
                    let barred = barred.filter(|&other| chained && other != op);
                    let (plan, reasons) = plan_dot(self, op, chained, barred);
                    self.schedule.dots.insert(op, plan);
                    self.schedule.dot_reasons.insert(op, reasons);
                }
                _ => {}
            }
        }
    }

    /// Notes that `value`, and what it is computed from element by element, is wanted in `layout`.
    fn wish(&mut self, value: Value, layout: &Layout) {
        let mut todo = vec![value];
        while let Some(value) = todo.pop() {
            if self.wishes.contains_key(&value) || self.func.ty(value).shape != layout.shape {
                continue;
            }
            self.wishes.insert(value, layout.clone());
            if let Some(op) = self.func.def_op(value)
                && self.func.ops[op].op.is_elementwise()
            {
                todo.extend(&self.func.ops[op].operands);
            }
        }
    }

    fn region(&mut self, region: Region) {
        for &op in &self.func.regions[region].ops {
            self.op(op);
        }
    }

    fn op(&mut self, op: OpId) {
        let func = self.func;
        let data = &func.ops[op];
        match &data.op {
            Op::Load | Op::ViewLoad { .. } => {
                let layout = self.schedule.accesses[&op].layout.clone();
                self.set_home(data.results[0], layout);
            }
            Op::Dot { .. } => {
                let layout = self.schedule.dots[&op].acc().clone();
                self.set_home(data.results[0], layout);
                self.accumulators.insert(data.results[0]);
            }
            Op::Reduce { axis, .. } | Op::ArgReduce { axis, .. } => {
                let x = data.operands[0];
                let source = self.home(x).cloned().unwrap_or_else(|| self.default_layout(x));
                self.set_home(data.results[0], source.without((*axis).into()));
                self.schedule.reductions.insert(op, source);
            }
            Op::Reshape => self.rearranged(op, |home| home.reshape(&func.ty(data.results[0]).shape)),
            Op::Permute(perm) => self.rearranged(op, |home| home.permute(perm)),
            o if o.is_elementwise() => self.elementwise(op),
            Op::For => self.for_loop(op),
            Op::While => self.while_loop(op),
            Op::If => self.branch(op),
            _ => {}
        }
    }

    /// The same elements in the same registers, under other coordinates: what was costly to store from still is.
    fn rearranged(&mut self, op: OpId, layout: impl FnOnce(&Layout) -> Layout) {
        let data = &self.func.ops[op];
        let (from, to) = (data.operands[0], data.results[0]);
        let Some(home) = self.home(from).map(layout) else { return };
        self.set_home(to, home);
        if self.accumulators.contains(&from) {
            self.accumulators.insert(to);
        }
    }

    /// An elementwise result lives where its operands do; where they differ, not in an accumulator's layout, unless it is on
    /// its way to the next dot.
    fn elementwise(&mut self, op: OpId) {
        let data = &self.func.ops[op];
        let with_home = || data.operands.iter().copied().filter(|&x| self.schedule.homes.contains_key(&x));
        let link = with_home().find(|x| self.links.contains(x));
        let Some(pick) =
            link.or_else(|| with_home().find(|x| !self.accumulators.contains(x))).or_else(|| with_home().next())
        else {
            return;
        };
        if link.is_some() {
            self.links.insert(data.results[0]);
        }
        let home = self.schedule.homes[&pick].clone();
        if self.accumulators.contains(&pick) {
            self.accumulators.insert(data.results[0]);
        }
        self.set_home(data.results[0], home);
    }

    /// Finds layouts for carried values that their bodies leave unchanged: first as they come in, then as they go round.
    fn carried(&mut self, inits: &[Value], params: &[&[Value]], next: &[Value], run: &mut dyn FnMut(&mut Self)) {
        let set = |p: &mut Self, i: usize, layout: &Layout| {
            for list in params {
                p.set_home(list[i], layout.clone());
            }
        };
        for (i, &init) in inits.iter().enumerate() {
            let layout = self.home(init).or_else(|| self.wishes.get(&params.last().unwrap_or(&inits)[i])).cloned();
            match layout {
                Some(layout) => set(self, i, &layout),
                None if self.func.ty(init).is_scalar() => {
                    let layout = self.schedule.scalar();
                    set(self, i, &layout);
                }
                None if self.depth >= MAX_DEPTH => {
                    let layout = self.default_layout(init);
                    set(self, i, &layout);
                }
                None => {
                    for list in params {
                        self.schedule.homes.remove(&list[i]);
                    }
                }
            }
        }
        // Twice is enough for a layout to travel from one carried value to another in most loops; what still differs
        // then is converted at the end of the body. Each try plans the loops inside anew, so that deep nests get one.
        self.depth += 1;
        for _ in 0..if self.depth <= MAX_DEPTH { 2 } else { 0 } {
            run(self);
            for (i, &n) in next.iter().enumerate() {
                match self.home(n).cloned() {
                    Some(layout) => {
                        if self.accumulators.contains(&n) {
                            self.accumulators.extend(params.iter().map(|list| list[i]));
                        }
                        set(self, i, &layout);
                    }
                    None if self.home(params[0][i]).is_none() => {
                        let layout = self.default_layout(n);
                        set(self, i, &layout);
                    }
                    None => {}
                }
            }
        }
        run(self);
        self.depth -= 1;
    }

    fn for_loop(&mut self, op: OpId) {
        let func = self.func;
        let data = &func.ops[op];
        let body = &func.regions[data.regions[0]];
        let next = &func.ops[func.terminator(data.regions[0])].operands;
        let scalar = self.schedule.scalar();
        self.set_home(body.params[0], scalar);
        self.carried(&data.operands[3..], &[&data.results, &body.params[1..]], next, &mut |p| {
            p.region(data.regions[0])
        });
    }

    fn while_loop(&mut self, op: OpId) {
        let func = self.func;
        let data = &func.ops[op];
        let (condition, body) = (data.regions[0], data.regions[1]);
        let next = &func.ops[func.terminator(body)].operands;
        let params = [&data.results[..], &func.regions[condition].params, &func.regions[body].params];
        self.carried(&data.operands, &params, next, &mut |p| {
            p.region(condition);
            p.region(body);
        });
    }

    fn branch(&mut self, op: OpId) {
        let func = self.func;
        let data = &func.ops[op];
        for &region in &data.regions {
            self.region(region);
        }
        for (i, &result) in data.results.iter().enumerate() {
            let given = data.regions.iter().map(|&r| func.ops[func.terminator(r)].operands[i]);
            let layout = given
                .filter_map(|v| self.home(v).cloned())
                .next()
                .or_else(|| self.wishes.get(&result).cloned())
                .unwrap_or_else(|| self.default_layout(result));
            self.set_home(result, layout);
        }
    }
}
