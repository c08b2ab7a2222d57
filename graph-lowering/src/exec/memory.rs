//! The memory plan: where the values between kernels lie.
//!
//! **In**: each value's size, and the kernels between which it is needed. **Out**: arenas, and a place in one of them for each
//! value. **Holds**: values that are needed at the same time do not overlap; every place is aligned to [`ALIGN`] bytes, so
//! that no kernel is compiled anew for where its arguments happen to lie.
//!
//! Places are given by decreasing size, each in the smallest gap it fits (Pisarchyk and Lee, "Efficient Memory Management for
//! Deep Neural Net Inference", 2020: greedy by size).

use crate::graph::NodeId;
use std::collections::HashMap;

/// Alignment of places, in bytes: that of the drivers' own allocations.
pub const ALIGN: usize = 256;

/// Most bytes of one arena, unless one value alone needs more: devices limit the size of one allocation, OpenCL to as little
/// as a quarter of their memory.
pub const ARENA: usize = 1 << 30;

/// A value between kernels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interval {
    /// Whose.
    pub node: NodeId,
    /// Its size.
    pub bytes: usize,
    /// The first step that writes it.
    pub first: usize,
    /// The last step that uses it.
    pub last: usize,
}

/// Where a value lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// In which arena.
    pub arena: usize,
    /// Its first byte there.
    pub offset: usize,
}

/// Where all values lie.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct MemoryPlan {
    /// The size of each arena in bytes.
    pub arenas: Vec<usize>,
    /// The place of each value.
    pub places: HashMap<NodeId, Place>,
    /// Bytes of all values, each by itself.
    pub sum: usize,
    /// The most bytes of values that are needed at the same time: no plan takes less.
    pub peak: usize,
}

impl MemoryPlan {
    /// Gives every value a place.
    pub fn new(values: &[Interval]) -> Self {
        Self::within(values, ARENA)
    }

    fn within(values: &[Interval], most: usize) -> Self {
        let size = |v: &Interval| v.bytes.next_multiple_of(ALIGN);
        let mut plan = Self { sum: values.iter().map(size).sum(), peak: peak(values, size), ..Self::default() };
        let mut order: Vec<&Interval> = values.iter().collect();
        order.sort_by_key(|v| (std::cmp::Reverse(v.bytes), v.first, v.node));
        let mut placed: Vec<Vec<(usize, usize, &Interval)>> = Vec::new();
        for value in order {
            let bytes = size(value);
            let found = placed.iter_mut().enumerate().find_map(|(arena, there)| {
                let offset = gap(there, value, bytes)?;
                (offset == 0 || offset + bytes <= most).then_some(Place { arena, offset })
            });
            let place = found.unwrap_or_else(|| {
                placed.push(Vec::new());
                plan.arenas.push(0);
                Place { arena: placed.len() - 1, offset: 0 }
            });
            plan.arenas[place.arena] = plan.arenas[place.arena].max(place.offset + bytes);
            let there = &mut placed[place.arena];
            let at = there.partition_point(|&(offset, _, _)| offset < place.offset);
            there.insert(at, (place.offset, bytes, value));
            plan.places.insert(value.node, place);
        }
        plan
    }

    /// Bytes of all arenas.
    pub fn planned(&self) -> usize {
        self.arenas.iter().sum()
    }
}

/// The offset of the smallest gap for a value among those, in order of their offsets, that are needed when it is; the end
/// of the last one always fits.
fn gap(there: &[(usize, usize, &Interval)], value: &Interval, bytes: usize) -> Option<usize> {
    let mut best: Option<(usize, usize)> = None;
    let mut end = 0;
    for &(offset, size, other) in there {
        if other.last < value.first || value.last < other.first {
            continue;
        }
        let room = offset.saturating_sub(end);
        if room >= bytes && best.is_none_or(|(least, _)| room < least) {
            best = Some((room, end));
        }
        end = end.max(offset.checked_add(size)?);
    }
    Some(best.map_or(end, |(_, offset)| offset))
}

fn peak(values: &[Interval], size: impl Fn(&Interval) -> usize) -> usize {
    let steps = values.iter().map(|v| v.last + 1).max().unwrap_or(0);
    let mut change = vec![0isize; steps + 1];
    for v in values {
        change[v.first] += size(v) as isize;
        change[v.last + 1] -= size(v) as isize;
    }
    let mut now = 0;
    change.iter().map(|c| (now += c, now).1).max().unwrap_or(0).unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_compiler::entity::Entity;

    fn value(i: usize, bytes: usize, first: usize, last: usize) -> Interval {
        Interval { node: NodeId::new(i), bytes, first, last }
    }

    fn check(values: &[Interval], most: usize) -> MemoryPlan {
        let plan = MemoryPlan::within(values, most);
        for a in values {
            let at = plan.places[&a.node];
            assert!(at.offset.is_multiple_of(ALIGN) && at.offset + a.bytes <= plan.arenas[at.arena], "{a:?} at {at:?}");
            for b in values.iter().filter(|b| b.node != a.node) {
                let other = plan.places[&b.node];
                let together = a.first <= b.last && b.first <= a.last && at.arena == other.arena;
                let apart = at.offset + a.bytes <= other.offset || other.offset + b.bytes <= at.offset;
                assert!(!together || apart, "{a:?} at {at:?} and {b:?} at {other:?}");
            }
        }
        assert!(plan.peak <= plan.planned() && plan.planned() <= plan.sum, "{plan:?}");
        plan
    }

    #[test]
    fn a_chain_needs_two_places() {
        let chain: Vec<_> = (0..10).map(|i| value(i, 1000, i, i + 1)).collect();
        let plan = check(&chain, ARENA);
        assert_eq!((plan.planned(), plan.sum, plan.peak), (2048, 10240, 2048));
    }

    #[test]
    fn nothing_and_values_without_bytes() {
        assert_eq!(check(&[], ARENA).planned(), 0);
        let plan = check(&[value(0, 0, 0, 3), value(1, 0, 1, 1)], ARENA);
        assert_eq!((plan.arenas.len(), plan.planned()), (1, 0));
    }

    #[test]
    fn the_smallest_gap_is_taken() {
        // Two that stay leave gaps of 1024 and 512 bytes before them when the others end.
        let values = [
            value(0, 1024, 0, 1),
            value(1, 768, 0, 9),
            value(2, 512, 0, 1),
            value(3, 300, 2, 9),
            value(4, 256, 2, 9),
            value(5, 400, 0, 9),
        ];
        let plan = check(&values, ARENA);
        assert_eq!(plan.planned(), 1024 + 768 + 512 + 512);
        assert_eq!(plan.places[&NodeId::new(3)].offset, 1024 + 768);
    }

    #[test]
    fn arenas_have_a_limit() {
        let values: Vec<_> = (0..6).map(|i| value(i, 1024, 0, 5)).collect();
        assert_eq!(check(&values, 2048).arenas, [2048, 2048, 2048]);
        // One that is larger than the limit has an arena of its own.
        let mut more = values.clone();
        more.push(value(6, 5000, 0, 5));
        assert_eq!(check(&more, 2048).arenas, [5120, 2048, 2048, 2048]);
    }

    #[test]
    fn random_values_never_meet() {
        let mut state = 1u64;
        let mut random = |n: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 20) % n
        };
        let mut saved = 0.0;
        for _ in 0..200 {
            let values: Vec<_> = (0..random(60) as usize)
                .map(|i| {
                    let first = random(40) as usize;
                    value(i, random(5000) as usize, first, first + random(6) as usize)
                })
                .collect();
            let plan = check(&values, if random(2) == 0 { ARENA } else { 8192 });
            saved += 1.0 - plan.planned() as f64 / plan.sum.max(1) as f64;
        }
        assert!(saved > 100.0, "{saved}");
    }
}
