//! Random functions of nested `If`s and `Loop`s, against a plain interpreter.

use super::pure::Random;
use super::{access, gpu, launch, params, u32s};
use tilewright_compiler::entity::Entity;
use tilewright_compiler::thread::{AbiTy, Block, Builder, Cmp, Conv, Function, IBin, Op, Special, Ty, Value, eval};

const THREADS: u32 = 16;
const OUTPUTS: usize = 4;

struct Generator {
    b: Builder,
    random: Random,
}

impl Generator {
    fn below(&mut self, n: usize) -> usize {
        (self.random.next() % n as u64) as usize
    }

    fn pick(&mut self, pool: &[Value], ty: Ty) -> Value {
        let of: Vec<Value> = pool.iter().copied().filter(|&v| self.b.ty(v) == ty).collect();
        of[self.below(of.len())]
    }

    fn some(&mut self, pool: &[Value], types: &[Ty]) -> Vec<Value> {
        types.iter().map(|&ty| self.pick(pool, ty)).collect()
    }

    /// Types of up to three results.
    fn types(&mut self) -> Vec<Ty> {
        let n = self.below(4);
        (0..n).map(|_| [Ty::I32, Ty::I32, Ty::I64, Ty::Pred][self.below(4)]).collect()
    }

    /// Adds some ops; gives all values in scope at the end.
    fn block(&mut self, depth: usize, mut pool: Vec<Value>) -> Vec<Value> {
        for _ in 0..2 + self.below(5) {
            let choice = self.below(if depth == 0 { 6 } else { 10 });
            let ty = [Ty::I32, Ty::I32, Ty::I64][self.below(3)];
            let (x, y) = (self.pick(&pool, ty), self.pick(&pool, ty));
            match choice {
                0..3 => {
                    use IBin::*;
                    let op = [Add, Sub, Mul, MulHiS, And, Or, Xor, MinS, MaxU][self.below(9)];
                    pool.push(self.b.ibin(op, x, y));
                }
                3 => pool.push(self.b.icmp_s([Cmp::Lt, Cmp::Ge, Cmp::Ne][choice % 3], x, y)),
                4 => {
                    let p = self.pick(&pool, Ty::Pred);
                    pool.push(self.b.select(p, x, y));
                }
                5 if ty == Ty::I64 => pool.push(self.b.conv(Conv::Trunc32, x, Ty::I32)),
                5 => pool.push(self.b.conv(Conv::SExt64, x, Ty::I64)),
                6..8 => {
                    let (p, types) = (self.pick(&pool, Ty::Pred), self.types());
                    self.b.begin_if(p);
                    let inner = self.block(depth - 1, pool.clone());
                    let results = self.some(&inner, &types);
                    self.b.begin_else(&results);
                    // Sometimes there is nothing in the second block.
                    let inner = if self.below(3) == 0 { pool.clone() } else { self.block(depth - 1, pool.clone()) };
                    let results = self.some(&inner, &types);
                    pool.extend(self.b.end_if(&results));
                }
                _ => {
                    let types = self.types();
                    let mut inits = self.some(&pool, &types);
                    // At most three rounds, and perhaps fewer.
                    inits.push(self.b.i32(0));
                    let carried = self.b.begin_loop(&inits);
                    let mut inside = self.block(depth - 1, [&pool[..], &carried].concat());
                    let three = self.b.i32(3);
                    let bounded = self.b.icmp_s(Cmp::Lt, carried[types.len()], three);
                    inside.push(bounded);
                    let p = self.pick(&inside, Ty::Pred);
                    let either = self.b.ibin(IBin::Or, p, bounded);
                    let go_on = self.b.and(either, bounded);
                    let carried = self.b.loop_body(go_on);
                    let inner = self.block(depth - 1, [&pool[..], &carried].concat());
                    let mut next = self.some(&inner, &types);
                    next.push(self.b.add_imm(carried[types.len()], 1));
                    pool.extend(self.b.end_loop(&next));
                }
            }
        }
        pool
    }

    fn function(seed: u64) -> Function {
        let b = Builder::new("random", params(&[AbiTy::Ptr, AbiTy::I32]), THREADS, 1);
        let mut g = Self { b, random: Random(seed) };
        let (out, n, thread) = (g.b.param(0), g.b.param(1), g.b.special(Special::Thread));
        let wide = g.b.conv(Conv::ZExt64, thread, Ty::I64);
        let bit = g.b.and_imm(thread, 1);
        let zero = g.b.i32(0);
        let odd = g.b.icmp_u(Cmp::Ne, bit, zero);
        let pool = g.block(3, vec![n, thread, wide, odd]);
        // The last values of the function: what it comes to.
        let last: Vec<Value> = pool.into_iter().filter(|&v| g.b.ty(v) == Ty::I32).rev().take(OUTPUTS).collect();
        let row = g.b.mul_imm(wide, 4 * OUTPUTS as i64);
        let mut address = g.b.add(out, row);
        for v in last {
            g.b.global_store(access(32, 1), address, &[v], None);
            address = g.b.add_imm(address, 4);
        }
        g.b.finish()
    }
}

/// Runs one thread; memory is a list of what is stored.
struct Interpreter<'a> {
    func: &'a Function,
    env: Vec<u64>,
    args: [u64; 2],
    thread: u64,
    stored: Vec<(u64, u32)>,
}

impl Interpreter<'_> {
    fn get(&self, values: &[Value]) -> Vec<u64> {
        values.iter().map(|v| self.env[v.index()]).collect()
    }

    fn set(&mut self, values: &[Value], bits: Vec<u64>) {
        values.iter().zip(bits).for_each(|(v, x)| self.env[v.index()] = x);
    }

    /// Gives the operands of the terminator.
    fn block(&mut self, block: Block) -> Vec<u64> {
        let func = self.func;
        let mut operands = vec![];
        for &inst in &func.blocks[block].insts {
            let inst = &func.insts[inst];
            operands = self.get(&inst.operands);
            let result = match &inst.op {
                Op::Param(i) => vec![self.args[*i as usize]],
                Op::Special(Special::Thread) => vec![self.thread],
                Op::GlobalStore(_) => {
                    self.stored.push((operands[0], operands[1] as u32));
                    vec![]
                }
                Op::If => self.block(inst.blocks[usize::from(operands[0] == 0)]),
                Op::Loop => {
                    let mut carried = operands.clone();
                    loop {
                        self.set(&func.blocks[inst.blocks[0]].params, carried.clone());
                        if self.block(inst.blocks[0]) == [0] {
                            break carried;
                        }
                        self.set(&func.blocks[inst.blocks[1]].params, carried);
                        carried = self.block(inst.blocks[1]);
                    }
                }
                Op::Yield | Op::Condition => vec![],
                op => {
                    let types: Vec<Ty> = inst.operands.iter().map(|&v| func.ty(v)).collect();
                    vec![eval::eval(op, &types, &operands, func.ty(inst.results[0])).expect("the op is pure")]
                }
            };
            self.set(&inst.results, result);
        }
        operands
    }
}

#[test]
fn random_functions() {
    let Some(gpu) = gpu() else { return };
    for seed in 0..60 {
        let func = Generator::function(seed);
        let n = (0x1234_5678 * (seed + 1)) & 0xffff_ffff;
        let mut want = vec![0x5555_5555; THREADS as usize * OUTPUTS];
        for thread in 0..THREADS.into() {
            let env = vec![0; func.values.len()];
            let mut run = Interpreter { func: &func, env, args: [0, n], thread, stored: vec![] };
            run.block(func.body);
            for (address, v) in run.stored {
                want[address as usize / 4] = v;
            }
        }
        let out = gpu.buffer(&vec![0x55; want.len() * 4]);
        launch(&gpu, &func, &[out.address, n], [1, 1, 1]);
        assert_eq!(u32s(&gpu.take(out)), want, "seed {seed}");
    }
}
