//! Loads and stores of views: bounds are checked, and addresses computed, from coordinates.

use super::hazard::Place;
use super::memory::{Space, vector_group};
use super::{Lowering, Regs};
use crate::error::Result;
use crate::layout::Layout;
use crate::layout::distributed::axis_mask;
use crate::schedule::MemoryAccess;
use crate::thread::{Cmp, Conv, Ty, Value};
use crate::tile::{Elem, Op, OpId};
use std::collections::HashMap;

/// The addresses and bounds of one thread's part of a view access.
pub(super) struct ViewAccess {
    /// Address of the element in register 0.
    base: Value,
    /// For each dimension: the coordinate in the view of register 0's element, and the view's extent.
    coords: Vec<(Value, Value)>,
    /// Strides in bytes, `I64`.
    strides: Vec<Value>,
    /// Strides in elements that are known.
    known: Vec<Option<i64>>,
    layout: Layout,
    elem_bytes: i64,
    /// Addresses and predicates of the parts that many registers share.
    rows: HashMap<Vec<u32>, Value>,
    inside: HashMap<(usize, u32), Value>,
}

impl Lowering<'_> {
    /// Prepares the access of `op` to a view in `layout`.
    pub(super) fn view_access(&mut self, op: OpId, layout: &Layout) -> Result<ViewAccess> {
        let func = self.func;
        let data = &func.ops[op];
        let (Op::ViewLoad { rank } | Op::ViewStore { rank }) = data.op else { unreachable!("only views come here") };
        let rank = usize::from(rank);
        let elem_bytes = func.ty(data.operands[0]).dtype().bytes() as i64;
        let mut address = self.scalar(data.operands[0])?;
        let mut coords = Vec::with_capacity(rank);
        let mut strides = Vec::with_capacity(rank);
        let mut known = Vec::with_capacity(rank);
        // Terms that change least first, so that what does not change in a loop is summed outside it.
        let mut terms = Vec::with_capacity(rank);
        for axis in 0..rank {
            let dim = self.scalar(data.operands[1 + axis])?;
            let stride = self.scalar(data.operands[1 + rank + axis])?;
            let offset = self.scalar(data.operands[1 + 2 * rank + axis])?;
            let thread = self.thread_coord(layout, axis);
            let coord = self.b.add(offset, thread);
            coords.push((coord, dim));
            known.push(self.b.int(stride));
            // With 32-bit strides every offset of an element inside the view fits 32 bits; what wraps is outside.
            let product = if self.b.ty(stride) == Ty::I32 {
                let p = self.b.mul(coord, stride);
                self.b.conv(Conv::SExt64, p, Ty::I64)
            } else {
                let wide = self.b.conv(Conv::SExt64, coord, Ty::I64);
                self.b.mul(wide, stride)
            };
            let bytes = self.b.mul_imm(product, elem_bytes);
            let wide = if self.b.ty(stride) == Ty::I32 { self.b.conv(Conv::SExt64, stride, Ty::I64) } else { stride };
            strides.push(self.b.mul_imm(wide, elem_bytes));
            terms.push(bytes);
        }
        terms.sort_by_key(|&t| self.b.level(t));
        for term in terms {
            address = self.b.add(address, term);
        }
        Ok(ViewAccess {
            base: address,
            coords,
            strides,
            known,
            layout: layout.clone(),
            elem_bytes,
            rows: HashMap::new(),
            inside: HashMap::new(),
        })
    }

    /// Address and constant byte offset of the element in register `reg`.
    pub(super) fn view_address(&mut self, view: &mut ViewAccess, reg: usize) -> (Value, i32) {
        let rank = view.coords.len();
        let mut constant = 0i64;
        let mut moved = vec![0u32; rank];
        for (axis, m) in moved.iter_mut().enumerate() {
            let by = view.layout.reg_coord(reg, axis);
            match view.known[axis] {
                Some(stride) if (i64::from(by) * stride * view.elem_bytes).abs() < 1 << 20 => {
                    constant += i64::from(by) * stride * view.elem_bytes;
                }
                _ => *m = by,
            }
        }
        (self.moved_address(view, moved), constant as i32)
    }

    /// The address `moved` further along each dimension: from the one without the lowest of all set bits, so that few
    /// multiples of strides stay in registers throughout a loop.
    fn moved_address(&mut self, view: &mut ViewAccess, mut moved: Vec<u32>) -> Value {
        let mut steps = Vec::new();
        let mut address = loop {
            if let Some(&address) = view.rows.get(&moved) {
                break address;
            }
            let lowest = |&(_, &by): &(usize, &u32)| by & by.wrapping_neg();
            let Some((axis, &by)) = moved.iter().enumerate().filter(|(_, by)| **by != 0).min_by_key(lowest) else {
                break view.base;
            };
            let bit = by & by.wrapping_neg();
            steps.push((moved.clone(), axis, bit));
            moved[axis] &= !bit;
        };
        for (moved, axis, bit) in steps.into_iter().rev() {
            let step = self.b.mul_imm(view.strides[axis], bit.into());
            address = self.b.add(address, step);
            view.rows.insert(moved, address);
        }
        address
    }

    /// Is the element in register `reg` inside the view, and does `also` hold? `None`: certainly.
    pub(super) fn view_inside(&mut self, view: &mut ViewAccess, reg: usize, also: Option<Value>) -> Option<Value> {
        // What registers have in common, and then what changes least: so that most is computed once.
        let mut all: Vec<(bool, Value)> = also.into_iter().map(|p| (false, p)).collect();
        for axis in 0..view.coords.len() {
            let by = view.layout.reg_coord(reg, axis);
            let inside = match view.inside.get(&(axis, by)) {
                Some(&p) => p,
                None => {
                    let (coord, dim) = view.coords[axis];
                    let at = self.b.add_imm(coord, by.into());
                    // As unsigned numbers, negative coordinates lie above every extent.
                    let p = self.b.icmp_u(Cmp::Lt, at, dim);
                    view.inside.insert((axis, by), p);
                    p
                }
            };
            let mask = axis_mask(&view.layout.shape, axis);
            let along = view.layout.reg.iter().filter(|&b| b & mask != 0).count();
            all.push((1 << along > view.layout.run_along(axis), inside));
        }
        all.retain(|&(_, p)| self.b.bits(p) != Some(1));
        all.sort_by_key(|&(differs, p)| (differs, self.b.level(p)));
        all.into_iter().map(|(_, p)| p).reduce(|a, p| self.b.and(a, p))
    }

    fn view_place(&self, op: OpId, rank: usize, layout: &Layout) -> Place {
        let address = self.func.ops[op].operands[..1 + 3 * rank].to_vec();
        Place { address, layout: layout.clone() }
    }

    pub(super) fn view_load(&mut self, op: OpId) -> Result<()> {
        let func = self.func;
        let data = &func.ops[op];
        let Op::ViewLoad { rank } = data.op else { unreachable!("only views come here") };
        let result = data.results[0];
        if self.staged.contains_key(&result) {
            return Ok(());
        }
        let elem = func.ty(result).elem;
        self.check_access(op, elem)?;
        let MemoryAccess { layout, axis, vec, .. } = self.schedule.accesses[&op].clone();
        let pad = match data.operands.get(1 + 3 * usize::from(rank)) {
            Some(&pad) => self.scalar(pad)?,
            None => self.zero_storage(elem),
        };
        let pad = self.storage_of(elem, pad);
        let mut view = self.view_access(op, &layout)?;
        self.touch_global(data.operands[0], false, self.view_place(op, rank.into(), &layout));
        let mut out: Vec<Option<Value>> = vec![None; layout.registers()];
        for first in 0..layout.registers() {
            if out[first].is_some() {
                continue;
            }
            let group = vector_group(&layout, axis, vec, first);
            let inside = self.view_inside(&mut view, first, None);
            let (address, offset) = self.view_address(&mut view, first);
            let raw = self.load_vec(Space::Global(address, offset), elem, group.len(), inside.map(|p| (p, pad)));
            for (&r, raw) in group.iter().zip(raw) {
                out[r] = Some(self.register_of(elem, raw));
            }
        }
        let regs: Regs = out.into_iter().flatten().collect();
        self.define(result, layout, regs);
        Ok(())
    }

    pub(super) fn view_store(&mut self, op: OpId) -> Result<()> {
        let func = self.func;
        let data = &func.ops[op];
        let Op::ViewStore { rank } = data.op else { unreachable!("only views come here") };
        let value = data.operands[1 + 3 * usize::from(rank)];
        let elem: Elem = func.ty(value).elem;
        self.check_access(op, elem)?;
        let access = self.schedule.accesses[&op].clone();
        let layout = self.store_layout(op, value);
        let vec = access.vec_in(&layout);
        let values = self.regs(value, &layout)?;
        let mut view = self.view_access(op, &layout)?;
        self.touch_global(data.operands[0], true, self.view_place(op, rank.into(), &layout));
        let first_copy = self.is_first_copy(&layout);
        let mut done = vec![false; layout.registers()];
        for first in 0..layout.registers() {
            if done[first] {
                continue;
            }
            let group = vector_group(&layout, access.axis, vec, first);
            let inside = self.view_inside(&mut view, first, None);
            let guard = match (inside, first_copy) {
                (Some(p), Some(f)) => Some(self.b.and(p, f)),
                (p, f) => p.or(f),
            };
            let (address, offset) = self.view_address(&mut view, first);
            let raw: Vec<_> = group.iter().map(|&r| self.storage_of(elem, values[r])).collect();
            self.store_vec(Space::Global(address, offset), elem, &raw, guard);
            group.iter().for_each(|&r| done[r] = true);
        }
        Ok(())
    }
}
