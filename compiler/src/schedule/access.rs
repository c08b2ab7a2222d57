//! How a load or store touches memory: in which layout, and how many elements at a time.

use crate::analysis::axis::AxisInfo;
use crate::layout::Layout;
use crate::tile::{Function, Op, OpId, Shape};

/// A load's or store's way to memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemoryAccess {
    /// Neighbouring threads touch neighbouring addresses.
    pub layout: Layout,
    /// The dimension along which addresses are consecutive, if there is one.
    pub axis: Option<usize>,
    /// Elements that are consecutive in memory, aligned to their total size, and inside or outside (of the mask, of
    /// the view) all together: what one access may cover. At most 16 bytes.
    pub vec: usize,
}

/// What a memory access is about, apart from layouts.
struct Facts {
    shape: Shape,
    elem_bytes: usize,
    axis: Option<usize>,
    vec: usize,
}

impl MemoryAccess {
    /// Decides for load or store `op`.
    pub fn plan(func: &Function, axis: &AxisInfo, op: OpId, lanes: u32, warps: u32) -> Self {
        let facts = match &func.ops[op].op {
            Op::ViewLoad { .. } | Op::ViewStore { .. } => view_facts(func, axis, op),
            _ => pointer_facts(func, axis, op),
        };
        let mut order: Vec<usize> = (0..facts.shape.rank()).rev().collect();
        if let Some(fast) = facts.axis {
            order.retain(|&a| a != fast);
            order.insert(0, fast);
        }
        // One access fills 16 bytes where it can; more elements a thread only where there are more than enough.
        let layout = Layout::blocked(&facts.shape, &order, facts.vec, lanes, warps);
        let vec = facts.axis.map_or(1, |a| facts.vec.min(layout.run_along(a)));
        debug_assert!(vec * facts.elem_bytes <= 16, "one access moves at most 16 bytes");
        Self { layout, axis: facts.axis, vec }
    }

    /// How many elements one access may cover in `layout`.
    pub fn vec_in(&self, layout: &Layout) -> usize {
        self.axis.map_or(1, |axis| self.vec.min(layout.run_along(axis)))
    }
}

fn pointer_facts(func: &Function, axis: &AxisInfo, op: OpId) -> Facts {
    let data = &func.ops[op];
    let pointer = data.operands[0];
    let ty = func.ty(pointer);
    let elem_bytes = ty.dtype().bytes();
    let mask = match data.op {
        Op::Load => data.operands.get(1),
        _ => data.operands.get(2),
    };
    let facts = axis.of(pointer);
    let best = (0..ty.shape.rank())
        .rev()
        // Layouts need no proof that no index wraps.
        .max_by_key(|&a| (facts.likely_contiguity[a].min(ty.shape.dims()[a] as u32), a))
        .filter(|&a| facts.likely_contiguity[a] > 1);
    let vec = best.map_or(1, |a| {
        let aligned = facts.divisibility[a] / elem_bytes as u64;
        let constant = mask.map_or(u64::MAX, |&m| axis.of(m).constancy[a].into());
        largest_vec(elem_bytes, [facts.contiguity[a].into(), aligned, constant])
    });
    Facts { shape: ty.shape.clone(), elem_bytes, axis: best, vec }
}

fn view_facts(func: &Function, axis: &AxisInfo, op: OpId) -> Facts {
    let data = &func.ops[op];
    let (rank, shape) = match data.op {
        Op::ViewLoad { rank } => (usize::from(rank), func.ty(data.results[0]).shape.clone()),
        Op::ViewStore { rank } => (usize::from(rank), func.ty(data.operands[1 + 3 * usize::from(rank)]).shape.clone()),
        _ => unreachable!("only views come here"),
    };
    let elem_bytes = func.ty(data.operands[0]).dtype().bytes();
    let dims = &data.operands[1..=rank];
    let strides = &data.operands[1 + rank..=2 * rank];
    let offsets = &data.operands[1 + 2 * rank..=3 * rank];
    // Of several dimensions of stride 1 (extents of 1 among them) the one with most to give.
    let unit = (0..rank).filter(|&a| axis.of(strides[a]).constant == Some(1)).max_by_key(|&a| (shape.dims()[a], a));
    let divisor = |v| axis.of(v).divisibility[0];
    let vec = unit.map_or(1, |a| {
        let base = divisor(data.operands[0]) / elem_bytes as u64;
        let others = (0..rank)
            .filter(|&other| other != a)
            // A dimension of which only one coordinate is ever valid contributes nothing... but which one is not known
            // here, so every other stride counts.
            .map(|other| divisor(strides[other]))
            .min()
            .unwrap_or(u64::MAX);
        let run = [shape.dims()[a] as u64, base, others, divisor(dims[a]), divisor(offsets[a])];
        largest_vec(elem_bytes, run)
    });
    Facts { shape, elem_bytes, axis: unit, vec }
}

/// The largest power of two within all `limits` and within 16 bytes.
fn largest_vec<const N: usize>(elem_bytes: usize, limits: [u64; N]) -> usize {
    let most = limits.into_iter().fold((16 / elem_bytes) as u64, u64::min).max(1);
    1 << most.ilog2()
}
