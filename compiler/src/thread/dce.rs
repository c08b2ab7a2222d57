//! Dead code: pure instructions whose results nobody uses.

use super::function::Function;
use crate::entity::Entity;

/// Takes pure instructions whose results nobody uses out of their blocks.
pub fn remove_unused(func: &mut Function) {
    let mut used = vec![false; func.values.len()];
    let mut order = Vec::new();
    func.walk(func.body, &mut |inst| order.push(inst));
    // Users come after what they use, but for what a loop carries round, which is used by an instruction that stays.
    for &inst in order.iter().rev() {
        let data = &func.insts[inst];
        if !data.op.is_pure() || data.results.iter().any(|r| used[r.index()]) {
            for operand in &data.operands {
                used[operand.index()] = true;
            }
        }
    }
    for block in func.blocks.keys() {
        let insts = std::mem::take(&mut func.blocks[block].insts);
        func.blocks[block].insts = insts
            .into_iter()
            .filter(|&i| {
                let data = &func.insts[i];
                !data.op.is_pure() || data.results.iter().any(|r| used[r.index()])
            })
            .collect();
    }
}
