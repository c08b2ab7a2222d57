//! The Tile IR of sums into rows of a table.
//!
//! A program has a part of one row. It goes through the numbers of all updates, a tile at a time, and adds those updates that have its
//! row's number, one by one in their order: no atomics, so that the result is always the same, and no work for the others beyond a
//! comparison.

use super::emit::Emit;
use super::group::canonical;
use super::map::Affine;
use super::operands::operand_coordinates;
use crate::graph::NodeId;
use tilewright_compiler::DType;
use tilewright_compiler::tile::{BinaryOp, Built, Cmp, Constant, ReduceOp, Shape, TileType};

impl Emit<'_> {
    /// Computes the part of the row that this program has.
    pub(super) fn scatter(&mut self, node: NodeId) -> Built<()> {
        let body = self.body;
        let (graph, group) = (&body.graph, &body.group);
        let data = &graph.nodes[node];
        let operands = operand_coordinates(graph, node, group).ok_or_else(|| self.bug("no coordinates"))?;
        let [(updates, update_at), (index, index_at)] = &operands[..] else { return Err(self.bug("two operands")) };
        // The variables of the updates come last: their numbers', then their own.
        let (numbers, single) = (self.rank() - 2, self.rank() - 1);

        let row = self.affine(&body.affine(&canonical(&[Affine::variable(0)], &group.space)[0]))?;
        let row = self.b.cast(row, graph.ty(*index).dtype)?;
        let shape = Shape::new(self.shape(|v| v < numbers));
        let dtype = match data.ty.dtype {
            DType::F16 | DType::BF16 => DType::F32,
            d => d,
        };
        let sum = self.b.full(TileType::new(dtype, shape), Constant(0))?;

        let (outside, origin) = (self.state.clone(), self.origin.clone());
        let [lo, one, last] = [0, 1, -1].map(|v| self.b.const_i64(DType::I32, v));
        let (lo, one, last) = (lo?, one?, last?);
        let hi = self.extent(numbers)?;
        let step = self.b.const_i64(DType::I32, body.variables[numbers].tile as i64)?;
        let (first, carried) = self.b.begin_for(lo, hi, step, &[sum])?;
        let sum = carried[0];
        self.enter(numbers, first);
        let number = self.value(*index, index_at)?;
        let mut mine = self.b.compare(Cmp::Eq, number, row)?;
        if let Some(inside) = self.inside([numbers].into_iter())? {
            mine = self.b.binary(BinaryOp::And, mine, inside)?;
        }
        let place = self.coordinate(numbers)?;
        let ones = self.b.cast(mine, DType::I32)?;
        let count = self.b.reduce(ReduceOp::Sum, ones, numbers)?;
        let count = self.b.reshape(count, Shape::new(vec![]))?;

        let (_, carried) = self.b.begin_for(lo, count, one, &[last, sum])?;
        let (last, sum) = (carried[0], carried[1]);
        let later = self.b.compare(Cmp::Gt, place, last)?;
        let left = self.b.binary(BinaryOp::And, mine, later)?;
        let none = self.b.const_i64(DType::I32, i32::MAX.into())?;
        let place = self.b.select(left, place, none)?;
        let next = self.b.reduce(ReduceOp::Min, place, numbers)?;
        let next = self.b.reshape(next, Shape::new(vec![]))?;
        self.enter(single, next);
        let update = self.value(*updates, update_at)?;
        let update = self.b.cast(update, dtype)?;
        let sum = self.b.binary(BinaryOp::Add, sum, update)?;
        let sum = self.b.end_for(&[next, sum])?[1];
        let sum = self.b.end_for(&[sum])?[0];

        (self.state, self.origin) = (outside, origin);
        let sum = self.b.cast(sum, data.ty.dtype)?;
        let place = group.place(&data.ty.dims).ok_or_else(|| self.bug("the sums have no place"))?;
        self.state.values.insert((node, canonical(&place, &group.space)), sum);
        Ok(())
    }
}
