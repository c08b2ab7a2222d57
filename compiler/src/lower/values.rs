//! The registers of values: in the layout asked for, computed or converted if need be.

use super::{Lowering, Regs};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::tile::{Op, OpId, Value};
use std::collections::HashMap;
use std::rc::Rc;

/// Registers known in one open region.
#[derive(Default)]
pub(super) struct Scope {
    known: HashMap<Value, Vec<(Layout, Regs)>>,
}

impl Lowering<'_> {
    /// Notes that `value` is in these registers, in the innermost open region.
    pub(super) fn define(&mut self, value: Value, layout: Layout, regs: Regs) {
        debug_assert_eq!(layout.registers(), regs.len(), "{value} in {layout}");
        if let Some(scope) = self.scopes.last_mut() {
            scope.known.entry(value).or_default().push((layout, regs));
        }
    }

    /// Notes that `value`, defined in the innermost open region, is in other registers from now on.
    pub(super) fn redefine(&mut self, value: Value, layout: Layout, regs: Regs) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.known.insert(value, vec![(layout, regs)]);
        }
    }

    fn known(&self, value: Value, layout: &Layout) -> Option<Regs> {
        let in_scope = |s: &Scope| s.known.get(&value)?.iter().find(|(l, _)| l == layout).map(|(_, r)| r.clone());
        self.scopes.iter().rev().find_map(in_scope)
    }

    /// The layout `value` was first known in, in the innermost region that knows it.
    fn known_somehow(&self, value: Value) -> Option<(Layout, Regs)> {
        self.scopes.iter().rev().find_map(|s| s.known.get(&value).and_then(|list| list.first().cloned()))
    }

    /// The registers of `value` in `layout`.
    pub(super) fn regs(&mut self, value: Value, layout: &Layout) -> Result<Regs> {
        // Operands before what is computed from them, by a list of our own: chains of ops may be long.
        let mut todo = vec![(value, layout.clone(), false)];
        while let Some((value, layout, operands_known)) = todo.pop() {
            if self.known(value, &layout).is_some() {
                continue;
            }
            let stays = self.has_home(value) && !self.is_widened(value);
            let regs = if let Some((home, regs)) = self.known_somehow(value).filter(|_| stays) {
                self.convert(&regs, &home, &layout, self.func.ty(value).elem)?
            } else if let Some(op) = self.func.def_op(value) {
                if !operands_known {
                    let operands = self.operands_in(op, &layout);
                    todo.push((value, layout, true));
                    todo.extend(operands.into_iter().rev().map(|(x, l)| (x, l, false)));
                    continue;
                }
                self.compute(op, &layout)?
            } else {
                return Err(Error::Internal(format!("{value} is asked for before it is defined")));
            };
            self.define(value, layout, regs);
        }
        self.known(value, layout).ok_or_else(|| Error::Internal(format!("{value} was not computed in {layout}")))
    }

    /// The operands that [`Lowering::compute`] asks for, in their layouts.
    fn operands_in(&self, op: OpId, layout: &Layout) -> Vec<(Value, Layout)> {
        let data = &self.func.ops[op];
        let shape = |x: Value| &self.func.ty(x).shape;
        match &data.op {
            Op::Reshape => vec![(data.operands[0], layout.reshape(shape(data.operands[0])))],
            Op::Permute(perm) => vec![(data.operands[0], layout.unpermute(perm))],
            Op::Broadcast => vec![(data.operands[0], layout.broadcast_operand(shape(data.operands[0])))],
            o if o.is_elementwise() => data.operands.iter().map(|&x| (x, layout.clone())).collect(),
            _ => Vec::new(),
        }
    }

    /// Is it the same numbers as others of fewer bytes, which are cheaper to move to another layout?
    fn is_widened(&self, mut value: Value) -> bool {
        loop {
            let Some(op) = self.func.def_op(value) else { return false };
            let data = &self.func.ops[op];
            let operand = match data.op {
                Op::Reshape | Op::Permute(_) | Op::Cast => data.operands[0],
                _ => return false,
            };
            if matches!(data.op, Op::Cast) {
                let bytes = |v: Value| self.func.ty(v).dtype().bytes();
                return bytes(operand) < bytes(value);
            }
            value = operand;
        }
    }

    fn has_home(&self, value: Value) -> bool {
        self.schedule.homes.contains_key(&value) || self.func.def_op(value).is_none()
    }

    /// The one register of a scalar.
    pub(super) fn scalar(&mut self, value: Value) -> Result<crate::thread::Value> {
        let layout = self.schedule.scalar();
        Ok(self.regs(value, &layout)?[0])
    }

    /// Where `value` lives; the usual layout of its shape if nowhere in particular.
    pub(super) fn home_or_default(&self, value: Value) -> Layout {
        self.schedule.homes.get(&value).cloned().unwrap_or_else(|| {
            Layout::default_for(&self.func.ty(value).shape, self.schedule.lanes, self.schedule.warps)
        })
    }

    /// Computes the result of a pure op in `layout` from its operands in the layouts that fit.
    pub(super) fn compute(&mut self, op: OpId, layout: &Layout) -> Result<Regs> {
        let func = self.func;
        let data = &func.ops[op];
        let result = func.ty(data.results[0]);
        let n = layout.registers();
        match &data.op {
            Op::Const(c) => {
                let reg = self.constant(result.dtype(), *c);
                Ok(vec![reg; n].into())
            }
            Op::ProgramId { axis } => Ok(Rc::new([self.b.special(crate::thread::Special::ProgramId(*axis))])),
            Op::NumPrograms { axis } => Ok(Rc::new([self.b.special(crate::thread::Special::NumPrograms(*axis))])),
            Op::Arange { start } => {
                let thread = self.thread_coord(layout, 0);
                Ok((0..n).map(|r| self.b.add_imm(thread, i64::from(layout.reg_index(r)) + i64::from(*start))).collect())
            }
            Op::Reshape => self.regs(data.operands[0], &layout.reshape(&func.ty(data.operands[0]).shape)),
            Op::Permute(perm) => {
                let from = layout.unpermute(perm);
                self.regs(data.operands[0], &from)
            }
            Op::Broadcast => self.broadcast(data.operands[0], layout),
            o if o.is_elementwise() => {
                let mut operands = Vec::with_capacity(data.operands.len());
                for &x in &data.operands {
                    operands.push(self.regs(x, layout)?);
                }
                let elems: Vec<_> = data.operands.iter().map(|&x| func.ty(x).elem).collect();
                let mut regs = Vec::with_capacity(n);
                for r in 0..n {
                    let xs: Vec<_> = operands.iter().map(|o| o[r]).collect();
                    regs.push(self.elementwise(op, &elems, result.elem, &xs)?);
                }
                Ok(regs.into())
            }
            other => Err(Error::Internal(format!("`{}` is not computed on demand", other.mnemonic()))),
        }
    }

    /// A repeated tile: each register is that of the operand's element.
    fn broadcast(&mut self, operand: Value, layout: &Layout) -> Result<Regs> {
        let shape = &self.func.ty(operand).shape;
        let from = layout.broadcast_operand(shape);
        let source = self.regs(operand, &from)?;
        if shape.rank() == 0 {
            return Ok(vec![source[0]; layout.registers()].into());
        }
        (0..layout.registers())
            .map(|r| {
                let mut index = 0;
                for (axis, stride) in from.shape.strides().into_iter().enumerate() {
                    if from.shape.dims()[axis] > 1 {
                        index += layout.reg_coord(r, axis) * stride as u32;
                    }
                }
                let reg = from.reg_of_index(index).ok_or_else(|| {
                    Error::Internal(format!("{from} has no register for element {index} of {layout}"))
                })?;
                Ok(source[reg])
            })
            .collect()
    }

    /// Opens a region: what becomes known in it is forgotten by [`Lowering::close_scope`].
    pub(super) fn open_scope(&mut self) {
        self.scopes.push(Scope::default());
    }

    /// Closes the innermost region.
    pub(super) fn close_scope(&mut self) {
        self.scopes.pop();
    }
}
