//! Lowering: from operations on tiles to what one thread does.
//!
//! **In**: Tile IR and the [`Schedule`] made for it. **Out**: Thread IR for the same [`Caps`].
//! **Holds**: the Thread IR computes what the Tile IR means: every element of a value is in each register that the
//! value's layout gives it to; barriers separate accesses of different threads to the same memory; only ops that the
//! target has are used.
//!
//! Ops are lowered in program order. A value with a home is computed where it stands; others (constants, ranges, masks and
//! addresses made of them, repeated tiles) when they are asked for, in the layout asked for, so that they cost no
//! conversions; [`crate::thread::Builder`] then moves what does not change in a loop out of it.

mod arith;
mod control;
mod convert;
mod dot;
mod hazard;
mod memory;
mod mma;
mod pipelined;
mod reduce;
mod shared;
mod values;
mod view;
mod wgmma;

pub mod half;
pub mod math;

use crate::analysis::alias::{Aliases, aliases};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::schedule::{DotPlan, Schedule};
use crate::target::Caps;
use crate::thread::{self, AbiParam, AbiTy, Builder, Special, Ty};
use crate::tile::{Elem, Function, Op, OpId, ParamKind, Region, Value};
use hazard::{Hazards, RoundBarrier};
use pipelined::{Early, Staged};
use shared::SharedPool;
use std::collections::{HashMap, HashSet};
use values::Scope;

/// The registers of one thread that hold its part of a tile, in the order of the layout's register number.
type Regs = std::rc::Rc<[thread::Value]>;

/// The state of lowering one function.
struct Lowering<'a> {
    func: &'a Function,
    aliases: Aliases,
    caps: &'a Caps,
    schedule: Schedule,
    b: Builder,
    /// Registers known in the open regions, innermost last.
    scopes: Vec<Scope>,
    hazards: Hazards,
    /// The first barrier of a round of the loop being lowered, if it may turn out not to be needed.
    round_barrier: Option<RoundBarrier>,
    shared: SharedPool,
    /// Operands of dots that lie in shared memory already: loads that ran ahead, and what loops do not change.
    staged: HashMap<Value, Staged>,
    /// Of those: what loops of the open regions do not change.
    held: Vec<Value>,
    /// Products of four warps that the loop around them waits for, one round later.
    in_flight: HashSet<OpId>,
    /// Carried sums of products of the round before, for each product that waits for them together with its own.
    finish_with: HashMap<OpId, Vec<(Value, Layout)>>,
    /// Those that the op which first looks at them waits for.
    finish_before: HashMap<OpId, Vec<(Value, Layout)>>,
    /// The product of the loop being lowered that is issued one round ahead.
    early: Option<Early>,
    /// The warp's number, known to be the same in all its lanes, if there are products of four warps.
    uniform_warp: Option<thread::Value>,
}

/// Lowers a function.
///
/// # Errors
/// [`Error::Unsupported`] if the target lacks what the function needs.
pub fn lower(func: &Function, schedule: Schedule, caps: &Caps) -> Result<thread::Function> {
    let params = abi(func);
    // Names of every target language's own stay out of the way.
    let b = Builder::new(format!("tw_{}", ascii(&func.name)), params, schedule.threads(), schedule.lanes);
    let mut l = Lowering {
        func,
        aliases: aliases(func),
        caps,
        schedule,
        b,
        scopes: vec![Scope::default()],
        hazards: Hazards::default(),
        round_barrier: None,
        shared: SharedPool::default(),
        staged: HashMap::new(),
        in_flight: HashSet::new(),
        finish_with: HashMap::new(),
        finish_before: HashMap::new(),
        early: None,
        uniform_warp: None,
        held: Vec::new(),
    };
    l.params();
    if l.schedule.dots.values().any(|plan| matches!(plan, DotPlan::Wgmma(_))) {
        let (warp, first) = (l.b.special(Special::Warp), l.b.i32(0));
        l.uniform_warp = Some(l.b.shuffle_index(warp, first));
    }
    l.region_ops(func.body)?;
    let bytes = l.shared.allocate(&mut l.b, caps.untyped_shared);
    if bytes > caps.max_shared_bytes {
        return Err(l.unsupported(
            format!("it needs {bytes} bytes of shared memory, the device has {}", caps.max_shared_bytes),
            "use smaller tiles or fewer stages",
        ));
    }
    let mut thread = l.b.finish();
    thread::dce::remove_unused(&mut thread);
    Ok(thread)
}

/// How the kernel's flattened parameters are passed.
pub fn abi(func: &Function) -> Vec<AbiParam> {
    let flat = |name: String, elem: Elem| AbiParam {
        name,
        ty: match elem {
            Elem::Ptr(_) => AbiTy::Ptr,
            Elem::Scalar(DType::I64 | DType::U64) => AbiTy::I64,
            Elem::Scalar(DType::F32) => AbiTy::F32,
            Elem::Scalar(DType::F64) => AbiTy::F64,
            Elem::Scalar(_) => AbiTy::I32,
        },
    };
    let values = &func.regions[func.body].params;
    let mut names = Vec::new();
    for param in &func.params {
        // The prefix keeps names apart from the words and registers of every target language.
        let name = format!("arg_{}", param.name);
        match &param.kind {
            ParamKind::Scalar(_) | ParamKind::Ptr { .. } => names.push(name),
            ParamKind::View { rank, .. } => {
                names.push(name.clone());
                names.extend((0..*rank).map(|i| format!("{name}_dim{i}")));
                names.extend((0..*rank).map(|i| format!("{name}_stride{i}")));
            }
        }
    }
    let mut seen = HashSet::new();
    let mut unique = |(i, name): (usize, String)| {
        let plain = ascii(&name);
        // No parameter's own name begins with a digit, so numbered names meet no others.
        let name = if plain == name && !seen.contains(&name) { name } else { format!("arg_{i}_{plain}") };
        seen.insert(name.clone());
        name
    };
    let names: Vec<String> = names.into_iter().enumerate().map(&mut unique).collect();
    names.into_iter().zip(values).map(|(name, &v)| flat(name, func.ty(v).elem)).collect()
}

/// The name in letters that every target language has in its names. Rust's may be of any script, or raw.
fn ascii(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

impl Lowering<'_> {
    fn unsupported(&self, what: impl Into<String>, help: impl Into<String>) -> Error {
        Error::Unsupported {
            kernel: self.func.name.clone(),
            target: self.caps.name.clone(),
            what: what.into(),
            help: Some(help.into()),
        }
    }

    /// The same, at the place of an op.
    fn unsupported_at(&self, op: OpId, what: impl Into<String>, help: impl Into<String>) -> Error {
        let loc = self.func.ops[op].loc;
        let mut what = what.into();
        if loc.is_known() {
            what.push_str(&format!(" (at {loc})"));
        }
        self.unsupported(what, help)
    }

    /// Loads the kernel's parameters; a value known at compile time is a constant.
    fn params(&mut self) {
        let scalar = self.schedule.scalar();
        for (i, &v) in self.func.regions[self.func.body].params.iter().enumerate() {
            let elem = self.func.ty(v).elem;
            let known = self.func.hints.get(i).and_then(|h| h.known);
            let reg = match (known, elem) {
                (Some(known), Elem::Scalar(d)) if d.is_int() => self.b.iconst(reg_ty(elem), known),
                _ => {
                    let raw = self.b.param(i as u32);
                    self.register_of(elem, raw)
                }
            };
            self.define(v, scalar.clone(), vec![reg].into());
        }
    }

    fn region_ops(&mut self, region: Region) -> Result<()> {
        let held = self.held.len();
        for &op in &self.func.regions[region].ops {
            self.op(op)?;
        }
        self.release_operands(held);
        Ok(())
    }

    /// Lowers what must happen where the op stands; what need not is lowered when asked for.
    fn op(&mut self, op: OpId) -> Result<()> {
        let func = self.func;
        if let Some(sums) = self.finish_before.remove(&op) {
            self.finish_sums_before(op, sums)?;
        }
        let data = &func.ops[op];
        match &data.op {
            Op::Load => self.load(op),
            Op::Store => self.store(op),
            Op::ViewLoad { .. } => self.view_load(op),
            Op::ViewStore { .. } => self.view_store(op),
            Op::Reduce { op: reduce, axis } => self.reduce(op, *reduce, (*axis).into()),
            Op::ArgReduce { max, axis } => self.arg_reduce(op, *max, (*axis).into()),
            Op::Dot { .. } => self.dot(op),
            Op::For => self.for_loop(op),
            Op::While => self.while_loop(op),
            Op::If => self.branch(op),
            Op::Yield | Op::Condition => Ok(()),
            _ => {
                if let Some(home) = self.schedule.homes.get(&data.results[0]).cloned()
                    && !self.is_staged(data.results[0])
                {
                    let regs = self.compute(op, &home)?;
                    self.define(data.results[0], home, regs);
                }
                Ok(())
            }
        }
    }

    /// This thread's lane and warp.
    fn lane_and_warp(&mut self) -> (thread::Value, thread::Value) {
        (self.b.special(Special::Lane), self.b.special(Special::Warp))
    }

    /// What this thread contributes to a linear map: `lane_bases[i]` for bit `i` of its lane, and likewise for its warp.
    /// The bases' bits must be disjoint.
    fn thread_part(&mut self, lane_bases: &[u32], warp_bases: &[u32]) -> thread::Value {
        // The thread's number is its lane below its warp: runs of bits may cross from one to the other.
        let thread = self.b.special(Special::Thread);
        self.spread_bits(thread, &[lane_bases, warp_bases].concat())
    }

    /// Sum of `bases[i]` over the set bits `i` of `x`: runs of bits that move together cost one mask and one shift.
    fn spread_bits(&mut self, x: thread::Value, bases: &[u32]) -> thread::Value {
        let mut sum = self.b.i32(0);
        let mut i = 0;
        while i < bases.len() {
            if bases[i] == 0 {
                i += 1;
                continue;
            }
            let mut n = 1;
            while i + n < bases.len() && bases[i].checked_shl(n as u32) == Some(bases[i + n]) {
                n += 1;
            }
            let part = if bases[i].is_power_of_two() {
                let to = bases[i].trailing_zeros() as usize;
                // (x >> i & mask) << to, with one shift where it can be.
                let mask = ((1i64 << n) - 1) << i;
                let whole = i + n == bases.len() && i == 0;
                let masked = if whole { x } else { self.b.and_imm(x, mask) };
                match to.cmp(&i) {
                    std::cmp::Ordering::Less => self.b.shift_imm(thread::IBin::ShrU, masked, (i - to) as u32),
                    std::cmp::Ordering::Equal => masked,
                    std::cmp::Ordering::Greater => self.b.shift_imm(thread::IBin::Shl, masked, (to - i) as u32),
                }
            } else {
                let low = self.b.shift_imm(thread::IBin::ShrU, x, i as u32);
                let masked = self.b.and_imm(low, (1i64 << n) - 1);
                self.b.mul_imm(masked, bases[i].into())
            };
            sum = self.b.add(sum, part);
            i += n;
        }
        sum
    }

    /// The coordinate along `axis` of the elements in this thread's register 0.
    fn thread_coord(&mut self, layout: &Layout, axis: usize) -> thread::Value {
        let (low, bits) = crate::layout::distributed::axis_bits(&layout.shape, axis);
        let of = |bases: &[u32]| bases.iter().map(|b| (b >> low) & ((1 << bits) - 1)).collect::<Vec<_>>();
        self.thread_part(&of(&layout.lane), &of(&layout.warp))
    }

    /// Holds in one of the threads that have copies of the same elements; `None` if there are no copies.
    fn is_first_copy(&mut self, layout: &Layout) -> Option<thread::Value> {
        let (lanes, warps) = layout.copies();
        let (lane, warp) = self.lane_and_warp();
        let mut first = None;
        for (x, mask) in [(lane, lanes), (warp, warps)] {
            if mask != 0 {
                let bits = self.b.and_imm(x, mask.into());
                let zero = self.b.i32(0);
                let p = self.b.icmp_u(thread::Cmp::Eq, bits, zero);
                first = Some(first.map_or(p, |f| self.b.and(f, p)));
            }
        }
        first
    }
}

/// The register type of a tile's element.
fn reg_ty(elem: Elem) -> Ty {
    match elem {
        Elem::Ptr(_) => Ty::I64,
        Elem::Scalar(d) => match d {
            DType::Bool => Ty::Pred,
            DType::I64 | DType::U64 => Ty::I64,
            DType::F32 => Ty::F32,
            DType::F64 => Ty::F64,
            _ => Ty::I32,
        },
    }
}
