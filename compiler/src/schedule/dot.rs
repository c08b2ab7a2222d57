//! How matrix products are done: by tensor cores, or by each thread for its block of the result.

use super::DotReason;
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

    /// Decides for `op`, and says why it is not done a faster way. `chained`: it makes the left operand of another product, or
    /// takes it from one; `barred`: one of its chain that groups of four warps cannot do.
    pub fn new(
        func: &Function,
        op: OpId,
        caps: &Caps,
        size: (u32, u32),
        chained: bool,
        barred: Option<OpId>,
    ) -> (Self, DotReasons) {
        let facts = Facts::of(func, op, chained);
        let mut reasons = DotReasons::default();
        match barred.map_or_else(|| facts.wgmma(caps, size.1), |other| Err(DotReason::Chain(other))) {
            Ok(plan) => return (plan, reasons),
            Err(why) => reasons.wgmma = Some(why),
        }
        match facts.mma(caps, size) {
            Ok(plan) => return (plan, reasons),
            Err(why) => reasons.mma = Some(why),
        }
        (Self::Fma(Layout::blocked(facts.shape, &[1, 0], 4, size.0, size.1)), reasons)
    }
}

/// Why a product is not done by the instructions of tensor cores; `None` for the one that does it, and those that would be slower.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DotReasons {
    /// Not by `wgmma`.
    pub wgmma: Option<DotReason>,
    /// Not by `mma.sync`.
    pub mma: Option<DotReason>,
}

/// What a product is, apart from how it is done.
struct Facts<'a> {
    elements: DType,
    precision: DotPrecision,
    /// Of the result.
    shape: &'a Shape,
    /// Rows and columns of the result, terms of each of its sums.
    size: [usize; 3],
    chained: bool,
}

impl<'a> Facts<'a> {
    fn of(func: &'a Function, op: OpId, chained: bool) -> Self {
        let data = &func.ops[op];
        let Op::Dot { precision } = data.op else { unreachable!("only dots come here") };
        let a = func.ty(data.operands[0]);
        let shape = &func.ty(data.results[0]).shape;
        let size = [shape.dims()[0], shape.dims()[1], a.shape.dims()[1]];
        Self { elements: a.dtype(), precision, shape, size, chained }
    }

    /// The kind of the elements, and the depth of one instruction.
    fn kind(&self) -> Result<(MmaKind, usize), DotReason> {
        match (self.elements, self.precision) {
            (DType::F16, _) => Ok((MmaKind::F16, 16)),
            (DType::BF16, _) => Ok((MmaKind::Bf16, 16)),
            (DType::F32, DotPrecision::Tf32) => Ok((MmaKind::Tf32, 8)),
            (elements, precision) => Err(DotReason::Elements(elements, precision)),
        }
    }

    /// Splits the result among groups of four warps: rows first, since each group reads all columns of its own. Chained products
    /// are split along the rows alone: then a row and all that becomes of it stay within a warp.
    fn wgmma(&self, caps: &Caps, warps: u32) -> Result<DotPlan, DotReason> {
        if !caps.wgmma {
            return Err(DotReason::NoInstruction);
        }
        let (kind, depth) = self.kind()?;
        if !matches!(kind, MmaKind::F16 | MmaKind::Bf16) {
            return Err(DotReason::Elements(self.elements, self.precision));
        }
        if !warps.is_multiple_of(4) {
            return Err(DotReason::Warps(warps));
        }
        self.at_least([64, LEAST_COLUMNS as usize, depth])?;
        let [rows, columns, _] = self.size;
        let (m, n) = (rows as u32, columns as u32);
        let groups = warps / 4;
        let groups_m = groups.min(m / 64);
        let groups_n = groups / groups_m;
        // A group's columns begin with a block of 128 bytes.
        if groups_n > 1 && (self.chained || n / groups_n < 64) {
            return Err(DotReason::Groups { groups, rows, columns });
        }
        let acc = wgmma_accumulator(self.shape, groups_m, groups_n);
        let n = (n / groups_n).min(MOST_COLUMNS);
        Ok(DotPlan::Wgmma(WgmmaPlan { kind, acc, n, a_in_registers: false }))
    }

    fn at_least(&self, least: [usize; 3]) -> Result<(), DotReason> {
        let [[rows, columns, depth], [least_rows, least_columns, least_depth]] = [self.size, least];
        match () {
            () if rows < least_rows => Err(DotReason::Rows { found: rows, least: least_rows }),
            () if columns < least_columns => Err(DotReason::Columns { found: columns, least: least_columns }),
            () if depth < least_depth => Err(DotReason::Depth { found: depth, least: least_depth }),
            () => Ok(()),
        }
    }

    /// Splits the result among the warps so that each reads as little as it can: blocks near square. Chained products are split
    /// along the rows, if these suffice: then a row and all that becomes of it stay within a warp.
    fn mma(&self, caps: &Caps, (lanes, warps): (u32, u32)) -> Result<DotPlan, DotReason> {
        if !caps.mma_sync {
            return Err(DotReason::NoInstruction);
        }
        if lanes != 32 {
            return Err(DotReason::Lanes(lanes));
        }
        let (kind, depth) = self.kind()?;
        self.at_least([16, 8, depth])?;
        let (shape, chained) = (self.shape, self.chained);
        let (m, n) = (self.size[0] as u32, self.size[1] as u32);
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
        Ok(DotPlan::Mma(MmaPlan { kind, acc, warps_m, warps_n, chained, a_in_registers: false }))
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
