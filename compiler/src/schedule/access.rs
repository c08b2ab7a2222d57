//! How a load or store touches memory: in which layout, and how many elements at a time.

use super::WidthReason;
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
    /// Why it covers fewer than 16 bytes, if so.
    pub narrow: Option<WidthReason>,
}

/// What a memory access is about, apart from layouts.
struct Facts {
    shape: Shape,
    elem_bytes: usize,
    axis: Option<usize>,
    vec: usize,
    narrow: Option<WidthReason>,
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
        let narrow = if vec < facts.vec { Some(WidthReason::Threads(lanes * warps)) } else { facts.narrow };
        Self { layout, axis: facts.axis, vec, narrow }
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
    let (vec, narrow) = best.map_or((1, Some(WidthReason::Scattered)), |a| {
        let (run, divisor) = (u64::from(facts.contiguity[a]), facts.divisibility[a]);
        let constant = mask.map_or(u64::MAX, |&m| axis.of(m).constancy[a].into());
        let extent = ty.shape.dims()[a];
        let whole = if run == extent as u64 { WidthReason::Short(extent) } else { WidthReason::Run(run) };
        let limits = [
            (run, whole),
            (divisor / elem_bytes as u64, WidthReason::Alignment(divisor)),
            (constant, WidthReason::Mask(constant)),
        ];
        largest_vec(elem_bytes, limits)
    });
    Facts { shape: ty.shape.clone(), elem_bytes, axis: best, vec, narrow }
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
    let (vec, narrow) = unit.map_or((1, Some(WidthReason::NoUnitStride)), |a| {
        let base = divisor(data.operands[0]);
        // A dimension of which only one coordinate is ever valid contributes nothing... but which one is not known here, so
        // every other stride counts.
        let others = (0..rank).filter(|&other| other != a).map(|dim| {
            let (value, divisor) = (strides[dim], divisor(strides[dim]));
            (divisor, WidthReason::Stride { dim, value, divisor })
        });
        let extent = divisor(dims[a]);
        let offset = divisor(offsets[a]);
        let limits = [
            (shape.dims()[a] as u64, WidthReason::Short(shape.dims()[a])),
            (base / elem_bytes as u64, WidthReason::Alignment(base)),
            (extent, WidthReason::Extent { dim: a, value: dims[a], divisor: extent }),
            (offset, WidthReason::Begin { dim: a, divisor: offset }),
        ];
        largest_vec(elem_bytes, limits.into_iter().chain(others))
    });
    Facts { shape, elem_bytes, axis: unit, vec, narrow }
}

/// The largest power of two within all limits and within 16 bytes, and which limit it is, if it is not 16 bytes.
fn largest_vec(
    elem_bytes: usize,
    limits: impl IntoIterator<Item = (u64, WidthReason)>,
) -> (usize, Option<WidthReason>) {
    let most = (16 / elem_bytes) as u64;
    let (vec, narrow) =
        limits.into_iter().fold(
            (most, None),
            |(vec, narrow), (limit, reason)| {
                if limit < vec { (limit, Some(reason)) } else { (vec, narrow) }
            },
        );
    (1 << vec.max(1).ilog2(), narrow)
}
