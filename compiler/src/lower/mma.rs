//! Matrix products on tensor cores: `mma.sync` with operands read by `ldmatrix` from swizzled shared memory.

use super::memory::{Space, vector_group};
use super::pipelined::Staged;
use super::{Lowering, Regs};
use crate::error::Result;
use crate::layout::distributed::axis_bits;
use crate::layout::{Layout, Swizzle};
use crate::schedule::{DotPlan, MmaPlan};
use crate::thread::{Access, Conv, IBin, MmaKind, Op, Shared, Special, Ty, Value};
use crate::tile::{self, OpId, Region, Shape};
use std::collections::HashSet;

/// A thread's way into a swizzled matrix: the byte of its row and chunk, from which each access differs by constants.
#[derive(Clone, Copy)]
pub(super) struct SwizzledBase(Value);

impl Lowering<'_> {
    /// The way of a thread whose part of the coordinates is (`row`, `column`), the column in elements, into a matrix that
    /// begins at byte `start`, a multiple of a row's.
    pub(super) fn swizzled_base(
        &mut self,
        swizzle: Swizzle,
        elem_bytes: u32,
        row: Value,
        column: Value,
        start: Value,
    ) -> SwizzledBase {
        let per_chunk = 16 / elem_bytes;
        let (shift, mask) = swizzle.shift_and_mask();
        let chunk = self.b.shift_imm(IBin::ShrU, column, per_chunk.trailing_zeros());
        let within = self.b.and_imm(column, i64::from(per_chunk) - 1);
        let within = self.b.mul_imm(within, elem_bytes.into());
        let by_row = self.b.shift_imm(IBin::ShrU, row, shift);
        let by_row = self.b.and_imm(by_row, mask.into());
        let mut row_start = self.b.mul_imm(row, swizzle.row_bytes.into());
        let mut chunk = chunk;
        if swizzle.has_blocks() {
            let block = self.b.shift_imm(IBin::ShrU, chunk, swizzle.chunks().trailing_zeros());
            let block = self.b.mul_imm(block, swizzle.block_bytes.into());
            row_start = self.b.add(row_start, block);
            chunk = self.b.and_imm(chunk, i64::from(swizzle.chunks()) - 1);
        }
        let chunk = self.b.xor(chunk, by_row);
        let chunk = self.b.mul_imm(chunk, 16);
        let at = self.b.add(row_start, within);
        let at = self.b.add(at, chunk);
        SwizzledBase(self.b.add(at, start))
    }

    /// Byte index and constant offset of the element that is (`row`, `column`) further on. The constants' bits are disjoint
    /// from the thread's, and the bits of chunks from those of rows and of the start: so the chunk is exchanged in place.
    pub(super) fn swizzled_at(
        &mut self,
        swizzle: Swizzle,
        elem_bytes: u32,
        base: SwizzledBase,
        row: u32,
        column: u32,
    ) -> (Value, i32) {
        let (chunk, offset) = swizzled_constants(swizzle, elem_bytes, row, column);
        let exchanged = self.b.i32(chunk as i32);
        (self.b.xor(base.0, exchanged), offset)
    }

    /// Where a dot's operand lies in shared memory already, if it does; seen through permutations of matrices, and through
    /// reshapes that give a matrix by leaving out dimensions of extent 1.
    fn staged_operand(&self, x: tile::Value) -> Option<Staged> {
        let mut base = x;
        let mut swapped = false;
        loop {
            if let Some(staged) = self.staged.get(&base) {
                return Some(Staged { inner: staged.inner ^ usize::from(swapped), ..*staged });
            }
            let data = &self.func.ops[self.func.def_op(base)?];
            match &data.op {
                tile::Op::Permute(perm) if perm.len() == 2 => swapped ^= perm[..] == [1, 0],
                tile::Op::Reshape if self.func.ty(base).shape.is_matrix_of(&self.func.ty(data.operands[0]).shape) => {}
                _ => return None,
            }
            base = data.operands[0];
        }
    }

    /// Is `x` a pipelined load, or a permutation of one, so that it has no registers?
    pub(super) fn is_staged(&self, x: tile::Value) -> bool {
        self.staged_operand(x).is_some()
    }

    /// Writes operands of a loop's dots that the loop does not change to shared memory, once, before it. There they stay to the end
    /// of the region that the loop stands in: other loops may use them. If `awaited`, each round of the loop begins with a barrier
    /// (and a fence, for `wgmma`) before it reads shared memory.
    pub(super) fn hold_operands(&mut self, body: Region, awaited: bool) -> Result<()> {
        let func = self.func;
        let mut inside = HashSet::new();
        func.walk(body, &mut |op| inside.extend(func.ops[op].results.iter().copied()));
        inside.extend(func.regions[body].params.iter().copied());
        let mut new: Vec<tile::Value> = Vec::new();
        for &op in &func.regions[body].ops {
            let first = match self.schedule.dots.get(&op) {
                Some(DotPlan::Mma(plan)) => usize::from(plan.a_in_registers),
                Some(DotPlan::Wgmma(plan)) => usize::from(plan.a_in_registers),
                _ => continue,
            };
            for &x in &func.ops[op].operands[first..2] {
                if !inside.contains(&x) && !new.contains(&x) && !self.is_staged(x) {
                    new.push(x);
                }
            }
        }
        if new.is_empty() {
            return Ok(());
        }
        for &x in &new {
            let layout = self.home_or_default(x);
            self.regs(x, &layout)?;
        }
        if self.hazards.before_shared_write() {
            self.barrier();
        }
        let published = awaited && new.iter().all(|&x| self.only_in(body, x));
        for x in new {
            let staged = self.stage(x)?;
            self.staged.insert(x, staged);
            self.held.push(x);
        }
        if published {
            return Ok(());
        }
        // Any loop that comes later may multiply by them.
        if self.schedule.dots.values().any(|plan| matches!(plan, DotPlan::Wgmma(_))) {
            self.b.emit(Op::AsyncProxyFence, vec![], &[]);
        }
        self.barrier();
        Ok(())
    }

    /// Do only ops that stand directly in this region use the value?
    fn only_in(&self, region: Region, x: tile::Value) -> bool {
        let func = self.func;
        let inside = &func.regions[region].ops;
        let mut only = true;
        func.walk(func.body, &mut |op| only &= !func.ops[op].operands.contains(&x) || inside.contains(&op));
        only
    }

    /// The region is over whose loops held operands, all but the first `kept`: their memory may be used for something else.
    pub(super) fn release_operands(&mut self, kept: usize) {
        for x in self.held.split_off(kept) {
            if let Some(staged) = self.staged.remove(&x) {
                self.free_shared(staged.buf, None);
            }
        }
    }

    /// Writes a dot's operand to swizzled shared memory. The caller sees to the barriers.
    fn stage(&mut self, x: tile::Value) -> Result<Staged> {
        let func = self.func;
        let layout = self.home_or_default(x);
        let regs = self.regs(x, &layout)?;
        let inner = if layout.run_along(0) > layout.run_along(1) { 0 } else { 1 };
        let elem = func.ty(x).elem;
        let bytes = elem.bytes() as u32;
        let (rows, width) = (layout.shape.dims()[1 - inner] as u32, layout.shape.dims()[inner] as u32);
        let swizzle = Swizzle::new(rows, width * bytes);
        let buf = self.shared.open(&mut self.b, staged_bytes(&layout.shape, elem.bytes()), bytes as u8 * 8);
        let guard = self.is_first_copy(&layout);
        let (row, column) = (self.thread_coord(&layout, 1 - inner), self.thread_coord(&layout, inner));
        let start = self.b.i32(0);
        let base = self.swizzled_base(swizzle, bytes, row, column, start);
        let vec = layout.run_along(inner).min(16 / bytes as usize);
        for first in (0..layout.registers()).step_by(vec) {
            let group = vector_group(&layout, Some(inner), vec, first);
            let raw: Vec<_> = group.iter().map(|&r| self.storage_of(elem, regs[r])).collect();
            let (row, column) = (layout.reg_coord(first, 1 - inner), layout.reg_coord(first, inner));
            let (byte, offset) = self.swizzled_at(swizzle, bytes, base, row, column);
            self.store_vec(Space::Shared(buf, byte, offset), elem, &raw, guard);
        }
        Ok(Staged { buf, start, inner, swizzle })
    }

    /// Operands of a dot in shared memory, ready to be read, by `wgmma` if `fenced`; and the buffers made for them.
    pub(super) fn mma_operands(
        &mut self,
        operands: &[tile::Value],
        fenced: bool,
    ) -> Result<(Vec<Staged>, Vec<Shared>)> {
        let missing: Vec<_> = operands.iter().copied().filter(|&x| !self.is_staged(x)).collect();
        // Getting at registers may convert, with barriers of its own: all that comes before the first write.
        for &v in &missing {
            let layout = self.home_or_default(v);
            self.regs(v, &layout)?;
        }
        if !missing.is_empty() && self.hazards.before_shared_write() {
            self.barrier();
        }
        let mut made = Vec::new();
        let mut ready = Vec::new();
        for &x in operands {
            ready.push(match self.staged_operand(x) {
                Some(staged) => staged,
                None => {
                    let staged = self.stage(x)?;
                    made.push(staged.buf);
                    staged
                }
            });
        }
        if !made.is_empty() {
            if fenced {
                self.b.emit(Op::AsyncProxyFence, vec![], &[]);
            }
            self.barrier();
        }
        Ok((ready, made))
    }

    pub(super) fn dot_mma(&mut self, op: OpId, plan: &MmaPlan) -> Result<()> {
        let func = self.func;
        let data = &func.ops[op];
        let x = data.operands[0];
        let acc = &plan.acc;
        let mut sums = self.regs(data.operands[2], acc)?.to_vec();
        let fragments = if plan.a_in_registers {
            let layout = plan.a_fragments(&func.ty(x).shape);
            Some(self.regs(x, &layout)?)
        } else {
            None
        };
        let from_shared = if fragments.is_some() { &data.operands[1..2] } else { &data.operands[..2] };
        let (staged, made) = self.mma_operands(from_shared, false)?;
        let bytes = func.ty(x).elem.bytes() as u32;
        let (m, n) = (acc.shape.dims()[0] as u32, acc.shape.dims()[1] as u32);
        let depth = func.ty(x).shape.dims()[1] as u32;
        let (m_tiles, n_tiles) = ((m / plan.warps_m / 16) as usize, (n / plan.warps_n / 8) as usize);
        let warp = self.b.special(Special::Warp);
        let warp_row = self.spread_bits(warp, &of_warps(acc, 0));
        let warp_column = self.spread_bits(warp, &of_warps(acc, 1));
        let a_reader = match staged[..] {
            [a, _] => Some(Reader { tight: plan.chained, ..self.reader(a, bytes, warp_row, Role::A) }),
            _ => None,
        };
        let b_reader = self.reader(staged[staged.len() - 1], bytes, warp_column, Role::B);
        // One instruction takes 32 bytes of k.
        let step = 32 / bytes;
        for k in (0..depth).step_by(step as usize) {
            let mut a_frags = Vec::with_capacity(m_tiles);
            for tile in 0..m_tiles {
                a_frags.push(match (&a_reader, &fragments) {
                    (Some(reader), _) => self.read_a(reader, plan.kind, tile as u32 * 16, k),
                    (None, Some(regs)) => {
                        // Four pairs of neighbours along k.
                        let first = 8 * ((k / step) as usize + (depth / step) as usize * tile);
                        regs[first..first + 8].chunks(2).map(|pair| self.b.pack16(pair[0], pair[1])).collect()
                    }
                    (None, None) => unreachable!("the left operand is in shared memory or in registers"),
                });
            }
            // All fragments of a step are read before they are used; where registers are short, two at a time.
            let at_once = if plan.chained { 2 } else { n_tiles };
            for first in (0..n_tiles).step_by(at_once) {
                let columns = first..(first + at_once).min(n_tiles);
                let mut b_frags: Vec<[Value; 2]> = Vec::with_capacity(columns.len());
                while b_frags.len() < columns.len() {
                    let pair = columns.len() - b_frags.len() >= 2;
                    let n = (first + b_frags.len()) as u32 * 8;
                    b_frags.extend(self.read_b(&b_reader, plan.kind, n, k, pair));
                }
                for (i, a) in a_frags.iter().enumerate() {
                    for (j, b) in columns.clone().zip(&b_frags) {
                        let at = 4 * (j + n_tiles * i);
                        let d = self.b.mma(plan.kind, a, b, &sums[at..at + 4]);
                        sums[at..at + 4].copy_from_slice(&d);
                    }
                }
            }
        }
        for buf in made {
            self.free_shared(buf, None);
        }
        let regs: Regs = sums.into();
        self.define(data.results[0], acc.clone(), regs);
        Ok(())
    }

    /// How this thread's lane addresses the 8x8 matrices of an operand whose rows (of `A`) or columns (of `B`) start at
    /// `warp_base`.
    fn reader(&mut self, staged: Staged, bytes: u32, warp_base: Value, role: Role) -> Reader {
        let lane = self.b.special(Special::Lane);
        let per_chunk = 16 / bytes;
        // Is k the inner dimension, along which a row of 16 bytes lies?
        let k_inner = staged.inner
            == match role {
                Role::A => 1,
                Role::B => 0,
            };
        // Matrices 0..4 of one `ldmatrix`: A: (m, k) = (0, 0), (8, 0), (0, 8), (8, 8); B: (n, k) = (0, 0), (0, 8), (8, 0), (8, 8).
        let low3 = self.b.and_imm(lane, 7);
        let bit3 = self.b.and_imm(lane, 8);
        let bit4 = self.b.shift_imm(IBin::ShrU, lane, 4);
        let first = |l: &mut Self, eights: Value| l.b.add(low3, eights);
        let chunk_of_bit3 = {
            let c = self.b.shift_imm(IBin::ShrU, bit3, 3);
            self.b.mul_imm(c, per_chunk.into())
        };
        let chunk_of_bit4 = self.b.mul_imm(bit4, per_chunk.into());
        let rows_of_bit4 = self.b.mul_imm(bit4, 8);
        let (row, column) = match (role, k_inner) {
            (Role::A, true) => (first(self, bit3), chunk_of_bit4),
            (Role::A, false) => (first(self, rows_of_bit4), chunk_of_bit3),
            (Role::B, true) => (first(self, rows_of_bit4), chunk_of_bit3),
            (Role::B, false) => (first(self, bit3), chunk_of_bit4),
        };
        let (row, column) =
            if k_inner { (self.b.add(row, warp_base), column) } else { (row, self.b.add(column, warp_base)) };
        let base = self.swizzled_base(staged.swizzle, bytes, row, column, staged.start);
        // Wider elements cannot be transposed by `ldmatrix`; they are read one by one.
        let single = (bytes == 4 && !k_inner).then(|| {
            let group = self.b.shift_imm(IBin::ShrU, lane, 2);
            let in_group = self.b.and_imm(lane, 3);
            let column = self.b.add(group, warp_base);
            self.swizzled_base(staged.swizzle, bytes, in_group, column, staged.start)
        });
        Reader { staged, bytes, base, single, k_inner, tight: false }
    }

    fn ldmatrix(&mut self, r: &Reader, n: u8, row: u32, column: u32) -> Vec<Value> {
        let (byte, offset) = if r.tight {
            let (chunk, offset) = swizzled_constants(r.staged.swizzle, r.bytes, row, column);
            let chunk = self.b.i32(chunk as i32);
            (self.b.emit(Op::IBin(IBin::Xor), vec![r.base.0, chunk], &[Ty::I32])[0], offset)
        } else {
            self.swizzled_at(r.staged.swizzle, r.bytes, r.base, row, column)
        };
        let op = Op::LdMatrix { buf: r.staged.buf, n, trans: !r.k_inner, offset };
        self.b.emit(op, vec![byte], &vec![Ty::I32; n.into()])
    }

    /// One element of a matrix whose rows are k: row `k`, column `outer`, relative to the thread's.
    fn read_single(&mut self, r: &Reader, base: SwizzledBase, k: u32, outer: u32) -> Value {
        let (byte, offset) = self.swizzled_at(r.staged.swizzle, r.bytes, base, k, outer);
        self.b.shared_load(r.staged.buf, Access { bits: 32, n: 1, offset }, Ty::I32, byte)[0]
    }

    fn fragment(&mut self, kind: MmaKind, regs: Vec<Value>) -> Vec<Value> {
        if kind != MmaKind::Tf32 {
            return regs;
        }
        regs.into_iter()
            .map(|r| {
                let float = self.b.bitcast(r, Ty::F32);
                self.b.conv(Conv::F32ToTf32, float, Ty::I32)
            })
            .collect()
    }

    /// The fragment of `A` at (`m`, `k`).
    fn read_a(&mut self, r: &Reader, kind: MmaKind, m: u32, k: u32) -> Vec<Value> {
        let regs = match r.single {
            Some(base) => {
                [(0, 0), (8, 0), (0, 4), (8, 4)].map(|(dm, dk)| self.read_single(r, base, k + dk, m + dm)).to_vec()
            }
            None if r.k_inner => self.ldmatrix(r, 4, m, k),
            None => self.ldmatrix(r, 4, k, m),
        };
        self.fragment(kind, regs)
    }

    /// The fragments of `B` at (`k`, `n`), and, of a pair, at (`k`, `n + 8`).
    fn read_b(&mut self, r: &Reader, kind: MmaKind, n: u32, k: u32, pair: bool) -> Vec<[Value; 2]> {
        let count = if pair { 4 } else { 2 };
        let regs = match r.single {
            Some(base) => {
                let all = [(0, 0), (0, 4), (8, 0), (8, 4)];
                all[..count].iter().map(|&(dn, dk)| self.read_single(r, base, k + dk, n + dn)).collect()
            }
            None if r.k_inner => self.ldmatrix(r, count as u8, n, k),
            None => self.ldmatrix(r, count as u8, k, n),
        };
        let regs = self.fragment(kind, regs);
        regs.chunks(2).map(|p| [p[0], p[1]]).collect()
    }
}

/// What the bits of the warp's number contribute to a coordinate of an accumulator.
pub(super) fn of_warps(acc: &Layout, axis: usize) -> Vec<u32> {
    let (first, bits) = axis_bits(&acc.shape, axis);
    acc.warp.iter().map(|b| (b >> first) & ((1 << bits) - 1)).collect()
}

/// Which operand of a product.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    A,
    B,
}

/// How a thread reads an operand.
struct Reader {
    staged: Staged,
    bytes: u32,
    base: SwizzledBase,
    /// For elements read one by one: row `lane % 4`, column `lane / 4`.
    single: Option<SwizzledBase>,
    k_inner: bool,
    /// Are registers short, so that addresses are computed where they are used?
    tight: bool,
}

/// Bytes that a staged matrix takes.
pub(super) fn staged_bytes(shape: &Shape, elem_bytes: usize) -> u32 {
    (shape.elements() * elem_bytes) as u32
}

/// What (`row`, `column`) further on comes to: bits to exchange in the byte index, and bytes to add.
fn swizzled_constants(swizzle: Swizzle, elem_bytes: u32, row: u32, column: u32) -> (u32, i32) {
    let per_chunk = 16 / elem_bytes;
    let (shift, mask) = swizzle.shift_and_mask();
    let chunk = column / per_chunk;
    let (block, chunk) = (chunk / swizzle.chunks(), chunk % swizzle.chunks());
    let offset = block * swizzle.block_bytes + row * swizzle.row_bytes + column % per_chunk * elem_bytes;
    ((chunk ^ ((row >> shift) & mask)) * 16, offset as i32)
}
