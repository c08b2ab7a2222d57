//! Running one program of the grid: the loop over instructions, and how each acts on the slots.

use super::access;
use super::elementwise;
use super::memory::Memory;
use super::program::{Action, Code, Inst, Program, Ref, Rule, truncate_elem};
use super::races::Races;
use super::reduce;
use super::shape;
use super::value::{Affine, Repr, Slot, fill, get, reserve};
use super::watch::Watch;
use crate::error::{Diagnostic, Error, Result};
use crate::tile::{Cmp, Elem, Shape};

/// Elements that elementwise loops take at a time where an operand is uniform and must be written out.
const CHUNK: usize = 1024;

/// What a thread needs to run programs: the slots and scratch memory, reused from program to program.
#[derive(Debug)]
pub(super) struct Worker {
    pub slots: Vec<Slot>,
    /// A chunk of each uniform operand of an elementwise loop.
    fills: [Vec<u64>; 3],
    scratch: reduce::Scratch,
    pub watch: Watch,
    /// Counts stores, where races are looked for.
    pub stores: u32,
}

/// Where a program is in its grid, and the memory it works on.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub kernel: &'a str,
    pub memory: &'a Memory,
    pub grid: [u32; 3],
    pub id: [u32; 3],
    /// The program's number in the grid, from 1.
    pub number: u32,
    /// Notes on who accesses what, if races are looked for.
    pub races: Option<&'a Races>,
}

impl Context<'_> {
    /// The error of an access by `inst`, for what happened to the element at `lane` of a tile with these extents.
    pub fn fault(&self, inst: &Inst, what: &str, lane: usize, dims: &[usize], help: &str) -> Error {
        let [x, y, z] = self.id;
        let place = if dims.is_empty() {
            String::new()
        } else {
            let (mut rest, mut index) = (lane, vec![0; dims.len()]);
            for (i, d) in index.iter_mut().zip(dims).rev() {
                (*i, rest) = (rest % d, rest / d);
            }
            format!("lane {index:?} of ")
        };
        Error::Execution {
            kernel: self.kernel.to_owned(),
            diagnostic: Diagnostic::new(inst.loc, format!("{what} ({place}program [{x}, {y}, {z}])")).help(help),
        }
    }
}

impl Worker {
    pub fn new(program: &Program) -> Self {
        Self {
            slots: (0..program.slots).map(|_| Slot::new()).collect(),
            fills: std::array::from_fn(|_| vec![0; CHUNK]),
            scratch: Default::default(),
            watch: Watch::new(None),
            stores: 0,
        }
    }

    /// Runs instructions in order.
    pub fn run(&mut self, code: &Code, context: Context<'_>) -> Result<()> {
        for inst in code {
            self.step(inst, context)?;
        }
        Ok(())
    }

    /// # Errors
    /// [`Error::TimedOut`] at the loop `inst`, if the time is up.
    fn in_time(&mut self, inst: &Inst, context: Context<'_>) -> Result<()> {
        if !self.watch.is_over() {
            return Ok(());
        }
        let [x, y, z] = context.id;
        Err(Error::TimedOut {
            kernel: context.kernel.to_owned(),
            diagnostic: Diagnostic::new(inst.loc, format!("this loop was still running in program [{x}, {y}, {z}]"))
                .help("look for a condition that never becomes false, or give it more time"),
        })
    }

    fn step(&mut self, inst: &Inst, context: Context<'_>) -> Result<()> {
        let args = inst.operands.as_slice();
        match &inst.action {
            Action::ProgramId(axis) => self.set(&inst.results[0], Repr::Uniform(context.id[*axis].into())),
            Action::NumPrograms(axis) => self.set(&inst.results[0], Repr::Uniform(context.grid[*axis].into())),
            Action::Const(bits) => self.set(&inst.results[0], Repr::Uniform(*bits)),
            Action::Arange(start) => {
                let mut steps = [0; Shape::MAX_RANK];
                steps[0] = 1;
                self.set(&inst.results[0], Repr::Affine(Affine { start: i64::from(*start), steps }));
            }
            Action::Map(kernel, rule) => self.map(*kernel, *rule, args, &inst.results[0]),
            Action::Bitcast => {
                if matches!(self.slots[args[0].slot].repr, Repr::Affine(_)) {
                    self.densify(&args[0]);
                }
                self.copy(&args[0], &inst.results[0]);
            }
            Action::Broadcast => {
                let (from, to) = (&args[0].ty.dims, &inst.results[0].ty.dims);
                let strides = shape::broadcast_strides(from, to);
                self.rearrange(&args[0], &inst.results[0], &strides);
            }
            Action::Permute(perm) => {
                let own = shape::strides(&args[0].ty.dims);
                let mut strides = [0; Shape::MAX_RANK];
                for (s, &p) in strides.iter_mut().zip(perm) {
                    *s = own[p];
                }
                self.rearrange_by(&args[0], &inst.results[0], &strides, |steps| {
                    let mut result = [0; Shape::MAX_RANK];
                    for (r, &p) in result.iter_mut().zip(perm) {
                        *r = steps[p];
                    }
                    result
                });
            }
            Action::Reshape => {
                let (x, out) = (&args[0], &inst.results[0]);
                if let Repr::Affine(affine) = self.slots[x.slot].repr {
                    if let Some(affine) = affine.reshape(&x.ty.dims, &out.ty.dims) {
                        self.set(out, Repr::Affine(affine));
                        return Ok(());
                    }
                    self.densify(x);
                }
                self.copy(x, out);
            }
            Action::Load => return access::load(self, inst, context),
            Action::Store => return access::store(self, inst, context),
            Action::ViewLoad(rank) => return access::view_load(self, inst, *rank, context),
            Action::ViewStore(rank) => return access::view_store(self, inst, *rank, context),
            Action::Reduce(kernel, geometry) => {
                self.densify(&args[0]);
                let mut scratch = std::mem::take(&mut self.scratch);
                self.write(&inst.results[0], |worker, out| {
                    kernel(out, worker.slots[args[0].slot].bytes(&args[0].ty), *geometry, &mut scratch);
                });
                self.scratch = scratch;
            }
            Action::Dot { kernel, steal } => {
                let (a, b, acc, out) = (&args[0], &args[1], &args[2], &inst.results[0]);
                self.densify(a);
                self.densify(b);
                if *steal {
                    self.slots.swap(acc.slot, out.slot);
                } else {
                    self.copy(acc, out);
                }
                self.densify(out);
                let dims = [a.ty.dims[0], a.ty.dims[1], b.ty.dims[1]];
                let mut scratch = std::mem::take(&mut self.scratch);
                self.write(out, |worker, out| {
                    let (a, b) = (worker.slots[a.slot].bytes(&a.ty), worker.slots[b.slot].bytes(&b.ty));
                    kernel(out, a, b, dims, &mut scratch[0]);
                });
                self.scratch = scratch;
            }
            Action::For { iv, carried, body } => {
                for (from, to) in args[3..].iter().zip(carried) {
                    self.copy(from, to);
                }
                let [lo, hi, step] = [0, 1, 2].map(|i| self.index(&args[i]));
                let mut i = lo;
                while if step > 0 { i < hi } else { step < 0 && i > hi } {
                    self.in_time(inst, context)?;
                    self.set(iv, Repr::Uniform(truncate_elem(iv.ty.elem, i as u64)));
                    self.run(body, context)?;
                    // A sum outside of i64 lies beyond any end.
                    let Some(next) = i.checked_add(step) else { break };
                    i = next;
                }
            }
            Action::While { carried, condition, go_on, body } => {
                for (from, to) in args.iter().zip(carried) {
                    self.copy(from, to);
                }
                loop {
                    self.in_time(inst, context)?;
                    self.run(condition, context)?;
                    if self.scalar(go_on) == 0 {
                        break;
                    }
                    self.run(body, context)?;
                }
            }
            Action::If { then, otherwise } => {
                let code = if self.scalar(&args[0]) != 0 { then } else { otherwise };
                self.run(code, context)?;
            }
            Action::Move { through, copies, swaps } => {
                if !through.is_empty() {
                    self.permute_carried(through, copies, swaps);
                } else {
                    self.move_values(copies, swaps);
                }
            }
        }
        Ok(())
    }

    fn move_values(&mut self, copies: &[(Ref, Ref)], swaps: &[(Ref, Ref)]) {
        for (from, to) in copies {
            self.copy(from, to);
        }
        for (from, to) in swaps {
            self.slots.swap(from.slot, to.slot);
        }
    }

    /// The moves of a loop whose carried values change places: rare, so the copies may allocate.
    fn permute_carried(&mut self, through: &[(Ref, Ref)], copies: &[(Ref, Ref)], swaps: &[(Ref, Ref)]) {
        let taken: Vec<_> = through
            .iter()
            .map(|(from, _)| {
                let slot = &self.slots[from.slot];
                let dense = slot.repr == Repr::Dense;
                (slot.repr, if dense { slot.buffer.clone() } else { Vec::new() })
            })
            .collect();
        self.move_values(copies, swaps);
        for ((repr, buffer), (_, to)) in taken.into_iter().zip(through) {
            self.slots[to.slot].repr = repr;
            if repr == Repr::Dense {
                self.slots[to.slot].buffer = buffer;
            }
        }
    }

    // ---- slots ------------------------------------------------------------------------------------------------

    pub fn set(&mut self, place: &Ref, repr: Repr) {
        self.slots[place.slot].repr = repr;
    }

    /// The bits of a scalar.
    pub fn scalar(&self, place: &Ref) -> u64 {
        self.slots[place.slot].first(&place.ty)
    }

    /// The value of a scalar `i32` or `i64`.
    pub fn index(&self, place: &Ref) -> i64 {
        let bits = self.scalar(place);
        if place.ty.bytes == 4 { i64::from(bits as i32) } else { bits as i64 }
    }

    pub fn densify(&mut self, place: &Ref) {
        self.slots[place.slot].densify(&place.ty);
    }

    /// Writes the elements of a tile through `f`, which finds in the buffer what it held before, and may read the
    /// other slots.
    pub fn write<R>(&mut self, place: &Ref, f: impl FnOnce(&mut Worker, &mut [u8]) -> R) -> R {
        let mut buffer = std::mem::take(&mut self.slots[place.slot].buffer);
        reserve(&mut buffer, &place.ty);
        let out = &mut bytemuck::cast_slice_mut(&mut buffer)[..place.ty.n * place.ty.bytes];
        let result = f(self, out);
        let slot = &mut self.slots[place.slot];
        // One element is kept as such, which is cheaper for all that follows.
        slot.repr = if place.ty.n == 1 { Repr::Uniform(get(out, 0, place.ty.bytes)) } else { Repr::Dense };
        slot.buffer = buffer;
        result
    }

    /// The same elements in another place, whatever its shape.
    pub fn copy(&mut self, from: &Ref, to: &Ref) {
        match self.slots[from.slot].repr {
            Repr::Dense => self.write(to, |worker, out| out.copy_from_slice(worker.slots[from.slot].bytes(&from.ty))),
            repr => self.set(to, repr),
        }
    }

    fn rearrange(&mut self, x: &Ref, out: &Ref, strides: &[usize; Shape::MAX_RANK]) {
        let (from, to) = (&x.ty.dims, &out.ty.dims);
        self.rearrange_by(x, out, strides, |steps| {
            let mut result = [0; Shape::MAX_RANK];
            if !from.is_empty() {
                for (i, r) in result.iter_mut().take(to.len()).enumerate() {
                    *r = if from[i] == 1 { 0 } else { steps[i] };
                }
            }
            result
        });
    }

    /// The tile whose elements are those of `x` at other strides; `steps` does the same to a formula.
    fn rearrange_by(
        &mut self,
        x: &Ref,
        out: &Ref,
        strides: &[usize; Shape::MAX_RANK],
        steps: impl Fn(&[i64; Shape::MAX_RANK]) -> [i64; Shape::MAX_RANK],
    ) {
        match self.slots[x.slot].repr {
            Repr::Uniform(bits) => self.set(out, Repr::Uniform(bits)),
            Repr::Affine(a) => self.set(out, Repr::Affine(Affine { start: a.start, steps: steps(&a.steps) })),
            Repr::Dense => self.write(out, |worker, buffer| {
                let x = worker.slots[x.slot].bytes(&x.ty);
                shape::rearrange(buffer, x, &out.ty.dims, strides, out.ty.bytes);
            }),
        }
    }

    // ---- elementwise ------------------------------------------------------------------------------------------

    fn map(&mut self, kernel: elementwise::Kernel, rule: Rule, args: &[Ref], out: &Ref) {
        let formulas = args.iter().any(|a| matches!(self.slots[a.slot].repr, Repr::Affine(_)));
        if formulas || matches!(rule, Rule::PtrAdd(_)) {
            if let Some(repr) = self.apply(rule, args, out) {
                self.set(out, repr);
                return;
            }
            for a in args {
                if matches!(self.slots[a.slot].repr, Repr::Affine(_)) {
                    self.densify(a);
                }
            }
        }
        let uniform = |i: usize| match self.slots[args[i].slot].repr {
            Repr::Uniform(bits) => Some(bits),
            _ => None,
        };
        let mut fills = std::mem::take(&mut self.fills);
        let all = (0..args.len()).all(|i| uniform(i).is_some());
        let (n, chunk) = if all { (1, 1) } else { (out.ty.n, CHUNK.min(out.ty.n)) };
        for (i, arg) in args.iter().enumerate() {
            if let Some(bits) = uniform(i) {
                fill(&mut bytemuck::cast_slice_mut(&mut fills[i])[..chunk * arg.ty.bytes], arg.ty.bytes, bits);
            }
        }
        if all {
            let mut word = [0u64];
            let one: [&[u8]; 3] = std::array::from_fn(|i| {
                args.get(i).map_or(&[][..], |a| &bytemuck::cast_slice(&fills[i])[..a.ty.bytes])
            });
            let bytes = out.ty.bytes;
            kernel(&mut bytemuck::cast_slice_mut(&mut word)[..bytes], one);
            self.set(out, Repr::Uniform(word[0]));
        } else {
            self.write(out, |worker, buffer| {
                let bytes = out.ty.bytes;
                let mut start = 0;
                while start < n {
                    let operands: [&[u8]; 3] = std::array::from_fn(|i| {
                        let Some(a) = args.get(i) else { return &[][..] };
                        let slot = &worker.slots[a.slot];
                        match slot.repr {
                            Repr::Dense => &slot.bytes(&a.ty)[start * a.ty.bytes..][..chunk * a.ty.bytes],
                            _ => &bytemuck::cast_slice(&fills[i])[..chunk * a.ty.bytes],
                        }
                    });
                    kernel(&mut buffer[start * bytes..][..chunk * bytes], operands);
                    start += chunk;
                }
            });
        }
        self.fills = fills;
    }

    /// The result as a formula, if the operands are formulas and the result is one.
    fn apply(&self, rule: Rule, args: &[Ref], out: &Ref) -> Option<Repr> {
        let formula = |i: usize| self.slots[args[i].slot].affine(&args[i].ty);
        let dims = &out.ty.dims;
        let result = match rule {
            Rule::None => return None,
            Rule::Add => formula(0)?.zip(&formula(1)?, i64::checked_add)?,
            Rule::Sub => formula(0)?.zip(&formula(1)?, i64::checked_sub)?,
            Rule::Mul => {
                let (x, y) = (formula(0)?, formula(1)?);
                let (x, factor) = if y.steps == [0; Shape::MAX_RANK] { (x, y.start) } else { (y, x.start) };
                // Of two formulas with steps the product is none.
                if formula(0)?.steps != [0; Shape::MAX_RANK] && formula(1)?.steps != [0; Shape::MAX_RANK] {
                    return None;
                }
                x.zip(&x, |v, _| v.checked_mul(factor))?
            }
            Rule::PtrAdd(bytes) => formula(0)?.zip(&formula(1)?, |p, o| p.checked_add(o.checked_mul(bytes)?))?,
            Rule::Cast => formula(0)?,
            Rule::Compare(op) => {
                let difference = formula(0)?.zip(&formula(1)?, i64::checked_sub)?;
                let (lo, hi) = difference.bounds(dims);
                return decide(op, lo, hi).map(|b| Repr::Uniform(b.into()));
            }
        };
        let result = result.checked(out.ty.elem, dims)?;
        Some(match (result.steps == [0; Shape::MAX_RANK], out.ty.elem) {
            (true, Elem::Ptr(_)) => Repr::Uniform(result.start as u64),
            (true, elem) => Repr::Uniform(truncate_elem(elem, result.start as u64)),
            _ => Repr::Affine(result),
        })
    }
}

/// How `x op y` comes out for every element of a tile whose differences `x - y` span `lo..=hi`, if all agree.
fn decide(op: Cmp, lo: i128, hi: i128) -> Option<bool> {
    let (always, never) = match op {
        Cmp::Lt => (hi < 0, lo >= 0),
        Cmp::Le => (hi <= 0, lo > 0),
        Cmp::Gt => (lo > 0, hi <= 0),
        Cmp::Ge => (lo >= 0, hi < 0),
        Cmp::Eq => (lo == 0 && hi == 0, lo > 0 || hi < 0),
        Cmp::Ne => (lo > 0 || hi < 0, lo == 0 && hi == 0),
    };
    if always { Some(true) } else { never.then_some(false) }
}
