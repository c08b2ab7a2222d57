//! Where addresses come from: which kernel parameters, and hence which alias classes.
//!
//! **Lattice**: a set of flattened kernel parameters; meeting two facts gives the union; nothing known is the set of all
//! parameters that are addresses. Addresses cannot be made from numbers or loaded from memory, so every address comes
//! from parameters.
//!
//! **Transfer**: `ptr_add`, `broadcast`, `reshape` and `permute` keep the set, `select`, `if` and loops unite.

use super::forward::{self, Analysis, Facts};
use crate::entity::Entity;
use crate::tile::{Function, Op, OpData, Value};

/// The origins of a function's addresses.
#[derive(Clone, PartialEq, Debug)]
pub struct Aliases {
    roots: Vec<Vec<u32>>,
    classes: Vec<u32>,
}

impl Aliases {
    /// The flattened kernel parameters that an address may come from, in order; none for a value that is no address.
    pub fn roots(&self, value: Value) -> &[u32] {
        &self.roots[value.index()]
    }

    /// May accesses through the two addresses touch the same memory? What is no address touches none.
    pub fn may_alias(&self, a: Value, b: Value) -> bool {
        let class = |&root: &u32| self.classes.get(root as usize).copied().unwrap_or(0);
        self.roots(a).iter().any(|ra| self.roots(b).iter().any(|rb| class(ra) == class(rb)))
    }
}

/// Finds the origin of every address.
pub fn aliases(func: &Function) -> Aliases {
    Aliases { roots: forward::run(&Rules, func), classes: func.hints.iter().map(|hint| hint.alias_class).collect() }
}

struct Rules;

fn union(a: &[u32], b: &[u32]) -> Vec<u32> {
    let mut all = [a, b].concat();
    all.sort_unstable();
    all.dedup();
    all
}

impl Analysis for Rules {
    type Fact = Vec<u32>;

    fn unknown(&self, func: &Function, value: Value) -> Self::Fact {
        if !func.ty(value).elem.is_ptr() {
            return Vec::new();
        }
        let params = func.regions[func.body].params.iter().enumerate();
        params.filter(|(_, p)| func.ty(**p).elem.is_ptr()).map(|(i, _)| i as u32).collect()
    }

    fn param(&self, func: &Function, index: usize, value: Value) -> Self::Fact {
        if func.ty(value).elem.is_ptr() { vec![index as u32] } else { Vec::new() }
    }

    fn meet(&self, _: &Function, _: Value, a: &Self::Fact, b: &Self::Fact) -> Self::Fact {
        union(a, b)
    }

    fn widen(&self, _: &Function, _: Value, _: &Self::Fact, new: Self::Fact) -> Self::Fact {
        new
    }

    fn induction(&self, _: &Function, _: &OpData, _: &Facts<Self::Fact>) -> Self::Fact {
        Vec::new()
    }

    fn transfer(&self, func: &Function, op: &OpData, facts: &Facts<Self::Fact>) -> Self::Fact {
        if !func.ty(op.results[0]).elem.is_ptr() {
            return Vec::new();
        }
        match op.op {
            Op::Select => union(facts.of(op.operands[1]), facts.of(op.operands[2])),
            _ => facts.of(op.operands[0]).clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::tile::{Builder, ParamHint};

    #[test]
    fn classes_tell_addresses_apart_and_choices_unite_them() {
        let mut b = Builder::new("alias");
        let hint = |alias_class| ParamHint { alias_class, ..ParamHint::default() };
        let [p, same, other] = [("p", 1), ("q", 1), ("r", 2)].map(|(n, c)| b.param_ptr(n, DType::F32, hint(c)));
        let condition = b.param_scalar("c", DType::Bool, ParamHint::default());
        let (zero, one) = (b.const_i64(DType::I32, 0).unwrap(), b.const_i64(DType::I32, 1).unwrap());
        let lanes = b.arange(0, 8).unwrap();
        let moved = b.ptr_add(p, lanes).unwrap();
        let chosen = b.select(condition, p, other).unwrap();
        // Swapped in each iteration: after the loop either may be either.
        let (_, carried) = b.begin_for(zero, one, one, &[same, other]).unwrap();
        let swapped = b.end_for(&[carried[1], carried[0]]).unwrap();
        let func = b.finish();
        let aliases = aliases(&func);
        assert!(aliases.may_alias(p, same) && aliases.may_alias(moved, p));
        assert!(!aliases.may_alias(p, other) && !aliases.may_alias(moved, other));
        assert!(aliases.may_alias(chosen, other) && aliases.may_alias(chosen, same));
        assert!(aliases.may_alias(swapped[0], other) && aliases.may_alias(swapped[1], p));
        assert!(!aliases.may_alias(p, lanes));
        assert_eq!(aliases.roots(swapped[0]), [1, 2]);
    }
}
