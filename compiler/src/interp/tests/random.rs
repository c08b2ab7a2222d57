//! Random kernels, run with slots, formulas and moves on one side, and by a plain walk over the IR on the other.

use super::super::scalar::eval_elementwise;
use super::{Arg, Random, flatten, int, ok, out};
use crate::dtype::DType;
use crate::entity::Entity;
use crate::interp::Program;
use crate::tile::{BinaryOp, Builder, Cmp, Constant, Function, Op, Region, TileType, Value};
use std::collections::HashMap;

const N: usize = 8;

/// Adds random ops; `pool` holds the `i32[N]` tiles made so far, which grow by those of this region.
fn grow(b: &mut Builder, random: &mut Random, pool: &mut Vec<Value>, depth: usize) {
    let mut below = |n: usize| (random.bits() >> 33) as usize % n;
    let mut plan: Vec<usize> = (0..3 + below(6)).map(|_| below(12)).collect();
    plan.push(0);
    for what in plan {
        let pick = |random: &mut Random| pool[(random.bits() >> 33) as usize % pool.len()];
        let new = match what {
            0..=4 => {
                let ops = [BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Xor, BinaryOp::Max, BinaryOp::Div];
                let op = ops[(random.bits() >> 33) as usize % ops.len()];
                let (x, y) = (pick(random), pick(random));
                ok(b.binary(op, x, y))
            }
            5 => ok(b.arange((random.bits() % 100) as i32 - 50, N)),
            6 => {
                let value = Constant(random.bits() & 0xffff_ffff);
                ok(b.full(TileType::new(DType::I32, [N]), value))
            }
            7 => {
                let (x, y) = (pick(random), pick(random));
                let c = ok(b.compare(Cmp::Lt, x, y));
                let (x, y) = (pick(random), pick(random));
                ok(b.select(c, x, y))
            }
            8 | 9 if depth > 0 => {
                let inits: Vec<Value> = (0..1 + random.bits() % 3).map(|_| pick(random)).collect();
                let [lo, hi, step] = [0, (random.bits() % 4) as i64, 1].map(|v| int(b, v));
                let (i, carried) = ok(b.begin_for(lo, hi, step, &inits));
                let mut inner = pool.clone();
                inner.extend(&carried);
                inner.push(ok(b.broadcast(i, [N])));
                grow(b, random, &mut inner, depth - 1);
                let turn = (random.bits() >> 33) as usize;
                let next: Vec<Value> = (0..inits.len())
                    .map(|i| match random.bits() % 3 {
                        // Another carried value, so that some change places.
                        0 => carried[(i + turn) % carried.len()],
                        _ => recent(random, &inner),
                    })
                    .collect();
                let results = ok(b.end_for(&next));
                pool.extend(&results);
                results[0]
            }
            10 if depth > 0 => {
                let x = pick(random);
                let any = ok(b.reduce(crate::tile::ReduceOp::Max, x, 0));
                let zero = int(b, 0);
                let c = ok(b.compare(Cmp::Gt, any, zero));
                ok(b.begin_if(c));
                let mut inner = pool.clone();
                grow(b, random, &mut inner, depth - 1);
                b.begin_else(&[recent(random, &inner), recent(random, &inner)]);
                let mut inner = pool.clone();
                grow(b, random, &mut inner, depth - 1);
                let results = ok(b.end_if(&[recent(random, &inner), recent(random, &inner)]));
                pool.extend(&results);
                results[0]
            }
            11 if depth > 0 => {
                let zero = int(b, 0);
                let (x, y) = (pick(random), pick(random));
                let inside = b.begin_while(&[zero, x, y]);
                let limit = int(b, (random.bits() % 4) as i64);
                let go_on = ok(b.compare(Cmp::Lt, inside[0], limit));
                let inside = ok(b.while_body(go_on));
                let one = int(b, 1);
                let count = ok(b.binary(BinaryOp::Add, inside[0], one));
                let mut inner = pool.clone();
                inner.extend(&inside[1..]);
                grow(b, random, &mut inner, depth - 1);
                let results = ok(b.end_while(&[count, recent(random, &inner), recent(random, &inner)]));
                pool.extend(&results[1..]);
                results[1]
            }
            _ => pick(random),
        };
        pool.push(new);
    }
}

/// One of the last values of a pool, so that carried values, ops and outer values all come up.
fn recent(random: &mut Random, pool: &[Value]) -> Value {
    pool[pool.len() - 1 - (random.bits() >> 33) as usize % pool.len().min(6)]
}

/// The results of a plain walk: one number per lane and value, nothing reused.
struct Walk<'f> {
    func: &'f Function,
    values: HashMap<usize, Vec<u64>>,
    stored: Vec<u64>,
}

impl Walk<'_> {
    fn of(&self, v: Value) -> Vec<u64> {
        self.values[&v.index()].clone()
    }

    fn bind(&mut self, values: &[Value], to: Vec<Vec<u64>>) {
        for (v, x) in values.iter().zip(to) {
            self.values.insert(v.index(), x);
        }
    }

    /// Runs a region; gives the values it ends with.
    fn run(&mut self, region: Region) -> Vec<Vec<u64>> {
        let func = self.func;
        for &id in &func.regions[region].ops {
            let data = &func.ops[id];
            let args: Vec<Vec<u64>> = data.operands.iter().map(|&v| self.of(v)).collect();
            let n = data.results.first().map_or(1, |&r| func.ty(r).shape.elements());
            let results = match &data.op {
                Op::Yield | Op::Condition => return args,
                Op::Const(c) => vec![vec![c.0; n]],
                Op::Arange { start } => vec![(0..n as i32).map(|i| u64::from((start + i) as u32)).collect()],
                Op::Broadcast => vec![vec![args[0][0]; n]],
                Op::Reduce { .. } => {
                    vec![vec![args[0].iter().map(|&x| x as i32).max().map_or(0, |x| u64::from(x as u32))]]
                }
                Op::For => {
                    let [lo, hi] = [args[0][0], args[1][0]];
                    let mut carried = args[3..].to_vec();
                    for i in lo..hi {
                        let params = &func.regions[data.regions[0]].params;
                        self.bind(&params[..1], vec![vec![i]]);
                        self.bind(&params[1..], carried);
                        carried = self.run(data.regions[0]);
                    }
                    carried
                }
                Op::While => {
                    let mut carried = args;
                    loop {
                        let [condition, body] = [0, 1].map(|i| data.regions[i]);
                        self.bind(&func.regions[condition].params, carried.clone());
                        if self.run(condition)[0][0] == 0 {
                            break carried;
                        }
                        self.bind(&func.regions[body].params, carried);
                        carried = self.run(body);
                    }
                }
                Op::If => self.run(data.regions[usize::from(args[0][0] == 0)]),
                Op::PtrAdd => vec![vec![0; n]],
                Op::Store => {
                    self.stored.extend(&args[1]);
                    vec![]
                }
                op => {
                    let types: Vec<DType> = data.operands.iter().map(|&v| func.ty(v).dtype()).collect();
                    let result = func.ty(data.results[0]).dtype();
                    let lane = |i: usize| {
                        let bits: Vec<u64> = args.iter().map(|a| a[i]).collect();
                        eval_elementwise(op, &types, &bits, result).expect("the op is elementwise")
                    };
                    vec![(0..n).map(lane).collect()]
                }
            };
            self.bind(&data.results, results);
        }
        unreachable!("a region ends in its terminator");
    }
}

#[test]
fn random_kernels_agree_with_a_plain_walk() {
    for seed in 1..400 {
        let mut random = Random(seed * 0x9E37_79B9);
        let mut b = Builder::new("random");
        let x = b.param_scalar("x", DType::I32, Default::default());
        let to = b.param_ptr("out", DType::I32, Default::default());
        let lanes = ok(b.arange(-3, N));
        let mut pool = vec![lanes, ok(b.broadcast(x, [N]))];
        grow(&mut b, &mut random, &mut pool, 3);
        let lanes = ok(b.arange(0, N));
        let stored: Vec<Value> = (0..4).map(|_| recent(&mut random, &pool)).collect();
        for (k, &v) in stored.iter().enumerate() {
            let k = int(&mut b, (k * N) as i64);
            let offset = ok(b.binary(BinaryOp::Add, lanes, k));
            let p = ok(b.ptr_add(to, offset));
            ok(b.store(p, v, None));
        }
        let func = b.finish();
        let mut walk = Walk { func: &func, values: HashMap::new(), stored: Vec::new() };
        walk.bind(&func.regions[func.body].params, vec![vec![5], vec![0]]);
        walk.run(func.body);
        // Two programs on one worker: what the first leaves behind must not matter to the second.
        let mut got = [0u32; 4 * N];
        let (flat, memory) = flatten(&mut [Arg::Num(5), out(&mut got)]);
        Program::compile(&func).unwrap().run_serial(&flat, &memory, [2, 1, 1]).unwrap();
        let got: Vec<u64> = got.iter().map(|&v| v.into()).collect();
        assert_eq!(got, walk.stored, "seed {seed}");
    }
}
