//! Loads and stores: through pointer tiles, and the pieces that views, conversions and reductions share.

use super::hazard::{Place, SharedPlace};
use super::{Lowering, reg_ty};
use crate::error::Result;
use crate::layout::Layout;
use crate::thread::{Access, IBin, InstId, Shared, Ty, Value};
use crate::tile::{Elem, OpId};

/// A place in memory that one thread accesses.
#[derive(Clone, Copy)]
pub(super) enum Space {
    /// An address, and bytes to add to it.
    Global(Value, i32),
    /// A byte index in a shared buffer, and bytes to add to it.
    Shared(Shared, Value, i32),
}

/// How `vec` elements of `elem_bytes` are moved: bits of one access element, how many of them, and the register type for
/// elements that fill a register.
fn access_of(elem_bytes: usize, vec: usize) -> (u8, u8) {
    match elem_bytes * vec {
        bytes @ (1 | 2) => (bytes as u8 * 8, 1),
        bytes if elem_bytes < 8 => (32, (bytes / 4) as u8),
        bytes => (64, (bytes / 8) as u8),
    }
}

impl Lowering<'_> {
    /// Loads `vec` consecutive elements; where `guard` is false the registers `others` (as memory would hold them) instead.
    pub(super) fn load_vec(
        &mut self,
        space: Space,
        elem: Elem,
        vec: usize,
        guard: Option<(Value, Value)>,
    ) -> Vec<Value> {
        let bytes = elem.bytes();
        let (bits, n) = access_of(bytes, vec);
        // Elements that fill registers are loaded as what they are, others as words to take apart.
        let whole = bytes * 8 == usize::from(bits);
        let ty = match (whole, reg_ty(elem)) {
            (true, ty @ (Ty::F32 | Ty::F64 | Ty::I64)) => ty,
            _ => Ty::I32,
        };
        let guard = guard.map(|(p, other)| {
            let other = if whole { other } else { self.repeat(other, bytes as u32, bits.into()) };
            (p, vec![other; n.into()])
        });
        let guard = guard.as_ref().map(|(p, others)| (*p, &others[..]));
        let words = match space {
            Space::Global(address, offset) => self.b.global_load(Access { bits, n, offset }, ty, address, guard),
            Space::Shared(buf, byte, offset) => self.b.shared_load(buf, Access { bits, n, offset }, ty, byte),
        };
        if whole {
            return words;
        }
        let per_word = usize::from(bits) / (8 * bytes);
        let mut out = Vec::with_capacity(vec);
        for word in words {
            for i in 0..per_word {
                let high = self.b.shift_imm(IBin::ShrU, word, (i * bytes * 8) as u32);
                // The topmost element needs no mask.
                let last = (i + 1) * bytes == 4;
                out.push(if last { high } else { self.b.and_imm(high, (1 << (8 * bytes)) - 1) });
            }
        }
        out
    }

    /// An element's bits repeated to fill a word.
    fn repeat(&mut self, x: Value, elem_bytes: u32, word_bits: u32) -> Value {
        let mut word = self.b.and_imm(x, (1 << (8 * elem_bytes)) - 1);
        let mut filled = 8 * elem_bytes;
        while filled < word_bits {
            let high = self.b.shift_imm(IBin::Shl, word, filled);
            word = self.b.or(word, high);
            filled *= 2;
        }
        word
    }

    /// Stores consecutive elements (as memory holds them), where `guard` holds.
    pub(super) fn store_vec(&mut self, space: Space, elem: Elem, values: &[Value], guard: Option<Value>) {
        let bytes = elem.bytes();
        let (bits, n) = access_of(bytes, values.len());
        let per_word = usize::from(bits) / (8 * bytes);
        let words: Vec<Value> = values.chunks(per_word).map(|chunk| self.pack(chunk, bytes)).collect();
        let access = |offset| Access { bits, n, offset };
        match space {
            Space::Global(address, offset) => self.b.global_store(access(offset), address, &words, guard),
            Space::Shared(buf, byte, offset) => self.b.shared_store(buf, access(offset), byte, &words, guard),
        }
    }

    fn pack(&mut self, elems: &[Value], elem_bytes: usize) -> Value {
        match elems {
            [one] => *one,
            [low, high] if elem_bytes == 2 => self.b.pack16(*low, *high),
            _ => {
                let mut word = self.b.i32(0);
                for (i, &e) in elems.iter().enumerate() {
                    let low = self.b.and_imm(e, (1 << (8 * elem_bytes)) - 1);
                    let part = self.b.shift_imm(IBin::Shl, low, (i * elem_bytes * 8) as u32);
                    word = self.b.or(word, part);
                }
                word
            }
        }
    }

    /// All threads arrive before any goes on.
    pub(super) fn barrier(&mut self) -> InstId {
        self.hazards.barrier();
        self.b.barrier()
    }

    /// A shared buffer is needed no longer: its memory is another's after a barrier.
    pub(super) fn free_shared(&mut self, buf: Shared, place: Option<SharedPlace>) {
        self.hazards.freed(buf, place);
        self.shared.close(buf);
    }

    /// Notes an access to global memory, after a barrier if one is needed.
    pub(super) fn touch_global(&mut self, pointer: crate::tile::Value, write: bool, place: Place) {
        if self.hazards.before_global(&self.aliases, pointer, write, &place) {
            self.barrier();
        }
        self.hazards.global(pointer, write, place.layout.shape.elements(), Some(place));
    }

    /// Fails if the device cannot access elements of this size.
    pub(super) fn check_access(&self, op: OpId, elem: Elem) -> Result<()> {
        let bits = elem.bytes() * 8;
        let able = match bits {
            8 => self.caps.access8,
            16 => self.caps.access16,
            _ => true,
        };
        if able {
            return Ok(());
        }
        Err(self.unsupported_at(
            op,
            format!("it accesses {bits}-bit elements in memory, which the device cannot"),
            "use a 32-bit type",
        ))
    }

    pub(super) fn load(&mut self, op: OpId) -> Result<()> {
        let func = self.func;
        let data = &func.ops[op];
        let result = data.results[0];
        if self.staged.contains_key(&result) {
            return Ok(());
        }
        let elem = func.ty(result).elem;
        self.check_access(op, elem)?;
        let access = self.schedule.accesses[&op].clone();
        let layout = access.layout.clone();
        let pointers = self.regs(data.operands[0], &layout)?;
        let masks = data.operands.get(1).map(|&m| self.regs(m, &layout)).transpose()?;
        let others = data.operands.get(2).map(|&o| self.regs(o, &layout)).transpose()?;
        self.touch_global(data.operands[0], false, Place { address: vec![data.operands[0]], layout: layout.clone() });
        // A constant `other` is the same in all elements of one access; a varying one is selected afterwards.
        let uniform = data.operands.get(2).is_none_or(|&o| func.const_of(o).is_some());
        let zero = self.zero_storage(elem);
        let mut out = vec![None; layout.registers()];
        for first in 0..layout.registers() {
            if out[first].is_some() {
                continue;
            }
            let group = vector_group(&layout, access.axis, access.vec, first);
            let guard = masks.as_ref().map(|m| {
                let other = others.as_ref().filter(|_| uniform).map_or(zero, |o| o[first]);
                (m[first], self.storage_of(elem, other))
            });
            let raw = self.load_vec(Space::Global(pointers[first], 0), elem, group.len(), guard);
            for (&r, raw) in group.iter().zip(raw) {
                let mut value = self.register_of(elem, raw);
                if let (Some(m), Some(o), false) = (&masks, &others, uniform) {
                    value = self.b.select(m[r], value, o[r]);
                }
                out[r] = Some(value);
            }
        }
        self.define(result, layout, out.into_iter().flatten().collect());
        Ok(())
    }

    /// The bits of zero, as a register of the element.
    pub(super) fn zero_storage(&mut self, elem: Elem) -> Value {
        self.b.constant(reg_ty(elem), 0)
    }

    pub(super) fn store(&mut self, op: OpId) -> Result<()> {
        let func = self.func;
        let data = &func.ops[op];
        let (pointer, value) = (data.operands[0], data.operands[1]);
        let elem = func.ty(value).elem;
        self.check_access(op, elem)?;
        let access = self.schedule.accesses[&op].clone();
        let layout = self.store_layout(op, value);
        let vec = access.vec_in(&layout);
        let pointers = self.regs(pointer, &layout)?;
        let values = self.regs(value, &layout)?;
        let masks = data.operands.get(2).map(|&m| self.regs(m, &layout)).transpose()?;
        self.touch_global(pointer, true, Place { address: vec![pointer], layout: layout.clone() });
        let first_copy = self.is_first_copy(&layout);
        let mut done = vec![false; layout.registers()];
        for first in 0..layout.registers() {
            if done[first] {
                continue;
            }
            let group = vector_group(&layout, access.axis, vec, first);
            let guard = match (&masks, first_copy) {
                (Some(m), Some(f)) => Some(self.b.and(m[first], f)),
                (Some(m), None) => Some(m[first]),
                (None, f) => f,
            };
            let raw: Vec<_> = group.iter().map(|&r| self.storage_of(elem, values[r])).collect();
            self.store_vec(Space::Global(pointers[first], 0), elem, &raw, guard);
            group.iter().for_each(|&r| done[r] = true);
        }
        Ok(())
    }

    /// The layout a store takes its value in: where the value lives if that touches memory as well as the store's own layout.
    pub(super) fn store_layout(&self, op: OpId, value: crate::tile::Value) -> Layout {
        let access = &self.schedule.accesses[&op];
        let Some(home) = self.schedule.homes.get(&value) else { return access.layout.clone() };
        let bytes = self.func.ty(value).elem.bytes() as u32;
        let same_work = home.registers() == access.layout.registers();
        if home == &access.layout
            || same_work && self.sectors(home, access, bytes) <= self.sectors(&access.layout, access, bytes)
        {
            home.clone()
        } else {
            access.layout.clone()
        }
    }

    /// Pieces of 32 bytes that the first warp touches per element it stores, times 1024, plus a price for each
    /// instruction.
    fn sectors(&self, layout: &Layout, access: &crate::schedule::MemoryAccess, elem_bytes: u32) -> u32 {
        let vec = access.vec_in(layout) as u32;
        let Some(axis) = access.axis else { return u32::from(layout != &access.layout) };
        // Only the dimension of consecutive addresses is known; along the others every step is far.
        let low = crate::layout::distributed::axis_bits(&layout.shape, axis).0;
        let mask = crate::layout::distributed::axis_mask(&layout.shape, axis);
        let mut touched: Vec<(u32, u32)> = (0..1usize << layout.lane.len())
            .map(|lane| {
                let index = layout.index(0, lane, 0);
                (index & !mask, ((index & mask) >> low) * elem_bytes / 32)
            })
            .collect();
        touched.sort_unstable();
        touched.dedup();
        let elements = vec << layout.lane.len();
        touched.len() as u32 * 1024 * 32 / (elements * elem_bytes) + 256 / (vec * elem_bytes).max(1)
    }
}

/// The registers that hold `vec` consecutive elements along `axis` from register `first` on; `first` is the lowest of them.
pub(super) fn vector_group(layout: &Layout, axis: Option<usize>, vec: usize, first: usize) -> Vec<usize> {
    let Some(axis) = axis.filter(|_| vec > 1) else { return vec![first] };
    debug_assert!(layout.run_along(axis) >= vec, "{layout} holds {vec} side by side");
    // The lowest register bits lie along the axis, in order.
    (first..first + vec).collect()
}
