//! Runs functions without memory: for tests of what is built and printed from Thread IR.

use super::eval::{Bits, eval};
use super::{Block, Function, Op, Value};
use crate::entity::Entity;

/// What a function of the given parameters stores to global memory, in order.
pub(crate) fn run(func: &Function, params: &[Bits]) -> Vec<Bits> {
    let mut machine = Machine { func, params, bits: vec![0; func.values.len()], stored: vec![] };
    machine.block(func.body);
    machine.stored
}

struct Machine<'a> {
    func: &'a Function,
    params: &'a [Bits],
    bits: Vec<Bits>,
    stored: Vec<Bits>,
}

impl Machine<'_> {
    /// Gives the operands of the block's terminator.
    fn block(&mut self, block: Block) -> Vec<Bits> {
        let func = self.func;
        for &i in &func.blocks[block].insts {
            let inst = &func.insts[i];
            let operands: Vec<Bits> = inst.operands.iter().map(|v| self.bits[v.index()]).collect();
            let results = match inst.op {
                Op::Param(p) => vec![self.params[p as usize]],
                Op::If => self.block(inst.blocks[usize::from(operands[0] == 0)]),
                Op::Loop => {
                    let mut carried = operands;
                    loop {
                        self.set(&func.blocks[inst.blocks[0]].params, &carried);
                        if self.block(inst.blocks[0])[0] == 0 {
                            break carried;
                        }
                        self.set(&func.blocks[inst.blocks[1]].params, &carried);
                        carried = self.block(inst.blocks[1]);
                    }
                }
                Op::Yield | Op::Condition => return operands,
                Op::GlobalStore(access) => {
                    self.stored.extend(&operands[1..=usize::from(access.n)]);
                    continue;
                }
                ref op => {
                    let types: Vec<_> = inst.operands.iter().map(|&v| func.ty(v)).collect();
                    vec![eval(op, &types, &operands, func.ty(inst.results[0])).expect("a pure op")]
                }
            };
            self.set(&inst.results, &results);
        }
        vec![]
    }

    fn set(&mut self, values: &[Value], bits: &[Bits]) {
        values.iter().zip(bits).for_each(|(&v, &b)| self.bits[v.index()] = b);
    }
}
