//! How matrix products are done: by tensor cores, or by each thread for its block of the result.

use crate::dtype::DType;
use crate::layout::Layout;
use crate::layout::distributed::axis_bits;
use crate::target::Caps;
use crate::thread::MmaKind;
use crate::tile::{DotPrecision, Function, Op, OpId, Shape};
use std::fmt;

/// The tensor-core way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MmaPlan {
    /// The instruction.
    pub kind: MmaKind,
    /// The layout of the accumulator.
    pub acc: Layout,
    /// Warps along the rows of the result.
    pub warps_m: u32,
    /// Warps along its columns.
    pub warps_n: u32,
    /// Does it make the left operand of another product, or take it from one? Then the accumulators of both are alive at once, and
    /// registers are short.
    pub chained: bool,
    /// Does the left operand come from registers, where it lies as the instruction wants it?
    pub a_in_registers: bool,
}

impl MmaPlan {
    /// The layout in which a left operand of `shape` is a sequence of the instruction's fragments, for 16-bit elements: that of
    /// an accumulator of the same shape whose warps are split along its rows.
    pub fn a_fragments(&self, shape: &Shape) -> Layout {
        let ((m0, m_bits), (k0, k_bits)) = (axis_bits(shape, 0), axis_bits(shape, 1));
        let (mb, kb) = (|i: u32| 1 << (m0 + i), |i: u32| 1 << (k0 + i));
        let wm_bits = self.warps_m.trailing_zeros();
        let mut reg = vec![kb(0), mb(3)];
        reg.extend((3..k_bits).map(kb));
        reg.extend((4..m_bits - wm_bits).map(mb));
        let lane = vec![kb(1), kb(2), mb(0), mb(1), mb(2)];
        let mut warp = vec![0; self.warps_n.trailing_zeros() as usize];
        warp.extend((m_bits - wm_bits..m_bits).map(mb));
        warp.resize(self.acc.warp.len(), 0);
        Layout { shape: shape.clone(), reg, lane, warp }
    }
}

/// The tensor-core way of four warps at once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WgmmaPlan {
    /// The elements.
    pub kind: MmaKind,
    /// The layout of the accumulator.
    pub acc: Layout,
    /// Columns of one instruction.
    pub n: u32,
    /// Does the left operand come from registers, where it lies as the instruction wants it?
    pub a_in_registers: bool,
}

impl WgmmaPlan {
    /// The layout in which a left operand of `shape` is a sequence of the instruction's fragments: that of an accumulator of the
    /// same shape whose groups of warps are split along its rows.
    pub fn a_fragments(&self, shape: &Shape) -> Layout {
        let groups = 1 << (self.acc.warp.len() - 2);
        wgmma_accumulator(shape, groups, 1)
    }
}

/// The layout of an accumulator of `wgmma`, split among groups of four warps.
fn wgmma_accumulator(shape: &Shape, groups_m: u32, groups_n: u32) -> Layout {
    let ((m0, m_bits), (n0, n_bits)) = (axis_bits(shape, 0), axis_bits(shape, 1));
    let (mb, nb) = (|i: u32| 1 << (m0 + i), |i: u32| 1 << (n0 + i));
    let (gm_bits, gn_bits) = (groups_m.trailing_zeros(), groups_n.trailing_zeros());
    // An instruction: 64 rows, of which a warp has 16. Then the instructions of a group, by columns and by rows.
    let mut reg = vec![nb(0), mb(3)];
    reg.extend((3..n_bits - gn_bits).map(nb));
    reg.extend((6..m_bits - gm_bits).map(mb));
    let lane = vec![nb(1), nb(2), mb(0), mb(1), mb(2)];
    let mut warp = vec![mb(4), mb(5)];
    warp.extend((m_bits - gm_bits..m_bits).map(mb));
    warp.extend((n_bits - gn_bits..n_bits).map(nb));
    Layout { shape: shape.clone(), reg, lane, warp }
}

/// Columns that one instruction has at least: with fewer the tensor cores wait.
const LEAST_COLUMNS: u32 = 32;
/// Columns that one instruction has at most.
const MOST_COLUMNS: u32 = 256;

/// The way one `dot` is done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DotPlan {
    /// By `mma.sync`, operands through swizzled shared memory.
    Mma(MmaPlan),
    /// By `wgmma`, operands in swizzled shared memory, the left one perhaps in registers.
    Wgmma(WgmmaPlan),
    /// By multiply-adds of each thread, operands through shared memory; the accumulator's layout.
    Fma(Layout),
}

impl DotPlan {
    /// The layout of the accumulator and of the result.
    pub fn acc(&self) -> &Layout {
        match self {
            DotPlan::Mma(m) => &m.acc,
            DotPlan::Wgmma(w) => &w.acc,
            DotPlan::Fma(l) => l,
        }
    }

    /// Decides for `op`. `chained`: it makes the left operand of another product, or takes it from one; `fours`: may it be done by
    /// four warps at once?
    pub fn new(func: &Function, op: OpId, caps: &Caps, (lanes, warps): (u32, u32), chained: bool, fours: bool) -> Self {
        let data = &func.ops[op];
        let Op::Dot { precision } = data.op else { unreachable!("only dots come here") };
        let a = func.ty(data.operands[0]);
        let shape = func.ty(data.results[0]).shape.clone();
        let kind = match (a.dtype(), precision) {
            (DType::F16, _) => Some((MmaKind::F16, 16)),
            (DType::BF16, _) => Some((MmaKind::Bf16, 16)),
            (DType::F32, DotPrecision::Tf32) => Some((MmaKind::Tf32, 8)),
            _ => None,
        };
        let (m, n, k) = (shape.dims()[0], shape.dims()[1], a.shape.dims()[1]);
        if let Some((kind @ (MmaKind::F16 | MmaKind::Bf16), depth)) = kind
            && caps.wgmma
            && fours
            && k >= depth
            && let Some(plan) = Self::wgmma(kind, &shape, warps, chained)
        {
            return plan;
        }
        match kind {
            Some((kind, depth)) if caps.mma_sync && lanes == 32 && m >= 16 && n >= 8 && k >= depth => {
                Self::mma(kind, &shape, warps, chained)
            }
            _ => Self::Fma(Layout::blocked(&shape, &[1, 0], 4, lanes, warps)),
        }
    }

    /// Splits the result among groups of four warps: rows first, since each group reads all columns of its own. Chained products
    /// are split along the rows alone: then a row and all that becomes of it stay within a warp.
    fn wgmma(kind: MmaKind, shape: &Shape, warps: u32, chained: bool) -> Option<Self> {
        let (m, n) = (shape.dims()[0] as u32, shape.dims()[1] as u32);
        if !warps.is_multiple_of(4) || m < 64 || n < LEAST_COLUMNS {
            return None;
        }
        let groups = warps / 4;
        let groups_m = groups.min(m / 64);
        let groups_n = groups / groups_m;
        // A group's columns begin with a block of 128 bytes.
        if groups_n > 1 && (chained || n / groups_n < 64) {
            return None;
        }
        let acc = wgmma_accumulator(shape, groups_m, groups_n);
        let n = (n / groups_n).min(MOST_COLUMNS);
        Some(Self::Wgmma(WgmmaPlan { kind, acc, n, a_in_registers: false }))
    }

    /// Splits the result among the warps so that each reads as little as it can: blocks near square. Chained products are split
    /// along the rows, if these suffice: then a row and all that becomes of it stay within a warp.
    fn mma(kind: MmaKind, shape: &Shape, warps: u32, chained: bool) -> Self {
        let (m, n) = (shape.dims()[0] as u32, shape.dims()[1] as u32);
        let splits = (0..=warps.trailing_zeros()).map(|bit| (1 << bit, warps >> bit));
        let rows_suffice = chained && m / warps >= 16;
        let fitting = splits.filter(|&(wm, wn)| m / wm >= 16 && n / wn >= 8 && (wn == 1 || !rows_suffice));
        // With more warps than blocks of 16 x 8 some warps do the same work; they take one block each.
        let (warps_m, warps_n) = fitting
            .min_by_key(|&(wm, wn)| (m / wm + n / wn, wm))
            .unwrap_or_else(|| (warps.min(m / 16), (warps / warps.min(m / 16)).min(n / 8)));
        let ((m0, m_bits), (n0, n_bits)) = (axis_bits(shape, 0), axis_bits(shape, 1));
        let (mb, nb) = (|i: u32| 1 << (m0 + i), |i: u32| 1 << (n0 + i));
        let (wm_bits, wn_bits) = (warps_m.trailing_zeros(), warps_n.trailing_zeros());
        let mut reg = vec![nb(0), mb(3)];
        reg.extend((3..n_bits - wn_bits).map(nb));
        reg.extend((4..m_bits - wm_bits).map(mb));
        let lane = vec![nb(1), nb(2), mb(0), mb(1), mb(2)];
        let mut warp: Vec<u32> = (n_bits - wn_bits..n_bits).map(nb).collect();
        warp.extend((m_bits - wm_bits..m_bits).map(mb));
        warp.resize(warps.trailing_zeros() as usize, 0);
        let acc = Layout { shape: shape.clone(), reg, lane, warp };
        Self::Mma(MmaPlan { kind, acc, warps_m, warps_n, chained, a_in_registers: false })
    }
}

impl fmt::Display for DotPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let in_registers = match self {
            DotPlan::Mma(m) => {
                write!(f, "mma {:?} on {} x {} warps in {}", m.kind, m.warps_m, m.warps_n, m.acc)?;
                m.a_in_registers
            }
            DotPlan::Wgmma(w) => {
                write!(f, "wgmma {:?} m64n{} in {}", w.kind, w.n, w.acc)?;
                w.a_in_registers
            }
            DotPlan::Fma(l) => {
                write!(f, "fma in {l}")?;
                false
            }
        };
        if in_registers { f.write_str(", left operand in registers") } else { Ok(()) }
    }
}
