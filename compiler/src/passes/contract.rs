//! Contraction: `a * b + c` of floats becomes one `fma`, where the function allows it (`fp_fusion`).
//!
//! **Before**: valid IR. **After**: the same meaning up to the rounding of contracted products, which then is left out.
//! Only products with no other use are contracted: else the work would be done twice. Of `a * b + c * d` the first
//! product is contracted. Functions without `fp_fusion` are not touched.

use super::rewrite::{Walk, emit};
use crate::analysis::UseCounts;
use crate::tile::{BinaryOp, Function, Op, OpId, UnaryOp, Value};

/// Runs the pass; true if it changed anything.
pub fn run(func: &mut Function) -> bool {
    if !func.fp_fusion {
        return false;
    }
    let mut pass = Contract { uses: UseCounts::new(func), func, changed: false };
    pass.walk(pass.func.body);
    pass.changed
}

struct Contract<'a> {
    func: &'a mut Function,
    uses: UseCounts,
    changed: bool,
}

impl Contract<'_> {
    /// The factors of a product of floats that is used only once.
    fn product(&self, value: Value) -> Option<[Value; 2]> {
        let data = &self.func.ops[self.func.def_op(value)?];
        let is_product = data.op == Op::Binary(BinaryOp::Mul) && self.uses.of(value) == 1;
        (is_product && self.func.ty(value).dtype().is_float()).then(|| [data.operands[0], data.operands[1]])
    }
}

impl Walk for Contract<'_> {
    fn func(&mut self) -> &mut Function {
        self.func
    }

    fn op(&mut self, id: OpId, out: &mut Vec<OpId>) {
        let data = &self.func.ops[id];
        let Op::Binary(op @ (BinaryOp::Add | BinaryOp::Sub)) = data.op else { return };
        let (x, y, loc) = (data.operands[0], data.operands[1], data.loc);
        let (factors, term, negate_factor) = match (self.product(x), self.product(y)) {
            (Some(factors), _) => (factors, y, false),
            (None, Some(factors)) => (factors, x, op == BinaryOp::Sub),
            (None, None) => return,
        };
        let [mut a, b] = factors;
        let mut c = term;
        if op == BinaryOp::Sub {
            // x * y - z is fma(x, y, -z), z - x * y is fma(-x, y, z): negation is exact.
            let negated = if negate_factor { &mut a } else { &mut c };
            let ty = self.func.ty(*negated).clone();
            *negated = emit(self.func, out, Op::Unary(UnaryOp::Neg), vec![*negated], ty, loc);
        }
        let data = &mut self.func.ops[id];
        data.op = Op::Fma;
        data.operands = vec![a, b, c];
        self.changed = true;
    }
}
