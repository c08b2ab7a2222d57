//! Loops and branches.

use super::{Arg, failure, input, int, launch, ok, out};
use crate::dtype::DType;
use crate::interp::Program;
use crate::tile::builder::Built;
use crate::tile::{BinaryOp, Builder, Cmp, Function, Op, ReduceOp, TileType, Value};

/// Counts the rounds of `for i in lo..hi step step`, and sums and keeps the last of the `i`.
fn count_kernel(index: DType) -> Function {
    let mut b = Builder::new("count");
    let [lo, hi, step] = ["lo", "hi", "step"].map(|name| b.param_scalar(name, index, Default::default()));
    let to = b.param_ptr("out", DType::I64, Default::default());
    let zero = ok(b.const_i64(DType::I64, 0));
    let one = ok(b.const_i64(DType::I64, 1));
    let (i, carried) = ok(b.begin_for(lo, hi, step, &[zero, zero, zero]));
    let i = ok(b.cast(i, DType::I64));
    let count = ok(b.binary(BinaryOp::Add, carried[0], one));
    let sum = ok(b.binary(BinaryOp::Add, carried[1], i));
    let results = ok(b.end_for(&[count, sum, i]));
    for (k, &r) in results.iter().enumerate() {
        let k = int(&mut b, k as i64);
        let p = ok(b.ptr_add(to, k));
        ok(b.store(p, r, None));
    }
    b.finish()
}

#[test]
fn loops_visit_what_they_should_and_end() {
    let run = |index, lo: i64, hi: i64, step: i64| {
        let mut got = [0i64; 3];
        let args = vec![Arg::Num(lo as u64), Arg::Num(hi as u64), Arg::Num(step as u64), out(&mut got)];
        launch(&count_kernel(index), [1, 1, 1], args).unwrap();
        got
    };
    for index in [DType::I32, DType::I64] {
        assert_eq!(run(index, 0, 10, 1), [10, 45, 9]);
        assert_eq!(run(index, 0, 10, 3), [4, 18, 9]);
        assert_eq!(run(index, 10, 0, -3), [4, 22, 1]);
        assert_eq!(run(index, 5, 5, 1), [0, 0, 0]);
        assert_eq!(run(index, 5, 4, 1), [0, 0, 0]);
        assert_eq!(run(index, 4, 5, -1), [0, 0, 0]);
        assert_eq!(run(index, 0, 10, 0), [0, 0, 0], "a step of zero runs never");
        assert_eq!(run(index, -2, 2, 1), [4, -2, 1]);
    }
    // The step beyond the last leaves the type's range.
    let (min, max) = (i64::from(i32::MIN), i64::from(i32::MAX));
    assert_eq!(run(DType::I32, max - 2, max, 2), [1, max - 2, max - 2]);
    assert_eq!(run(DType::I32, max - 3, max, 2), [2, 2 * max - 4, max - 1]);
    assert_eq!(run(DType::I32, min + 3, min, -2), [2, 2 * min + 4, min + 1]);
    assert_eq!(run(DType::I64, i64::MAX - 3, i64::MAX, 2)[0], 2);
    assert_eq!(run(DType::I64, i64::MIN + 1, i64::MIN, -5)[0], 1);
    assert_eq!(run(DType::I64, i64::MIN, i64::MAX, i64::MAX)[0], 3, "MIN, -1, MAX - 1");
}

#[test]
fn a_reverse_loop_with_a_run_time_step_sums_each_block_once() {
    // x[i] = i + 1; blocks of 8 at 88, 80, .., 8, 0 would be 12 rounds; the range ends above -1.
    let mut b = Builder::new("reverse");
    let x = b.param_ptr("x", DType::F32, Default::default());
    let [lo, hi, step] = ["lo", "hi", "step"].map(|name| b.param_scalar(name, DType::I32, Default::default()));
    let to = b.param_ptr("out", DType::F32, Default::default());
    let zero = ok(b.const_f64(DType::F32, 0.0));
    let (i, carried) = ok(b.begin_for(lo, hi, step, &[zero]));
    let p = ok(b.ptr_add(x, i));
    let v = ok(b.load(p, None, None));
    let sum = ok(b.binary(BinaryOp::Add, carried[0], v));
    let result = ok(b.end_for(&[sum]));
    ok(b.store(to, result[0], None));
    let func = b.finish();
    let x: Vec<f32> = (0..96).map(|i| i as f32 + 1.0).collect();
    let mut got = [0f32];
    let num = |v: i32| Arg::Num(v as u32 as u64);
    launch(&func, [1, 1, 1], vec![input(&x), num(88), num(-1), num(-8), out(&mut got)]).unwrap();
    assert_eq!(got[0], 540.0);
}

/// Runs a kernel that makes an `i32[n]` from one scalar.
fn run_scalar(n: usize, argument: i64, f: impl FnOnce(&mut Builder, Value) -> Value) -> Vec<i32> {
    let mut b = Builder::new("kernel");
    let x = b.param_scalar("x", DType::I32, Default::default());
    let to = b.param_ptr("out", DType::I32, Default::default());
    let result = f(&mut b, x);
    let lanes = ok(b.arange(0, n));
    let p = ok(b.ptr_add(to, lanes));
    ok(b.store(p, result, None));
    let func = b.finish();
    let mut got = vec![0; n];
    launch(&func, [1, 1, 1], vec![Arg::Num(argument as u64), out(&mut got)]).unwrap();
    got
}

#[test]
fn while_runs_as_long_as_its_condition_holds() {
    // Collatz steps, the numbers themselves in a tile that grows.
    let steps = |n: i64| {
        run_scalar(1, n, |b, x| {
            let zero = int(b, 0);
            let inside = b.begin_while(&[x, zero]);
            let one = int(b, 1);
            let go_on = ok(b.compare(Cmp::Ne, inside[0], one));
            let inside = ok(b.while_body(go_on));
            let (one, two, three) = (int(b, 1), int(b, 2), int(b, 3));
            let odd = ok(b.binary(BinaryOp::And, inside[0], one));
            let odd = ok(b.cast(odd, DType::Bool));
            ok(b.begin_if(odd));
            let up = ok(b.binary(BinaryOp::Mul, inside[0], three));
            let up = ok(b.binary(BinaryOp::Add, up, one));
            b.begin_else(&[up]);
            let down = ok(b.binary(BinaryOp::Div, inside[0], two));
            let next = ok(b.end_if(&[down]));
            let count = ok(b.binary(BinaryOp::Add, inside[1], one));
            let result = ok(b.end_while(&[next[0], count]));
            ok(b.reshape(result[1], [1]))
        })[0]
    };
    assert_eq!(steps(1), 0);
    assert_eq!(steps(6), 8);
    assert_eq!(steps(27), 111);
}

#[test]
fn carried_tiles_may_change_places() {
    // (a, b, c) <- (c, a, a + b) on tiles, with a dense one among them: all three are read before any is written.
    let n = 16;
    let got = run_scalar(n, 5, |b, x| {
        let lanes = ok(b.arange(0, n));
        let square = ok(b.binary(BinaryOp::Mul, lanes, lanes));
        let fill = ok(b.broadcast(x, [n]));
        let (lo, step, hi) = (int(b, 0), int(b, 1), int(b, 7));
        let (_, c) = ok(b.begin_for(lo, hi, step, &[lanes, square, fill]));
        let sum = ok(b.binary(BinaryOp::Add, c[0], c[1]));
        let r = ok(b.end_for(&[c[2], c[0], sum]));
        let (hundred, ten) = (int(b, 10_000), int(b, 100));
        let r0 = ok(b.binary(BinaryOp::Mul, r[0], hundred));
        let r1 = ok(b.binary(BinaryOp::Mul, r[1], ten));
        let s = ok(b.binary(BinaryOp::Add, r0, r1));
        ok(b.binary(BinaryOp::Add, s, r[2]))
    });
    for (i, &got) in got.iter().enumerate() {
        let i = i as i32;
        let (mut a, mut b, mut c) = (i, i * i, 5);
        for _ in 0..7 {
            (a, b, c) = (c, a, a + b);
        }
        assert_eq!(got, a * 10_000 + b * 100 + c, "lane {i}");
    }
}

#[test]
fn one_value_may_be_yielded_twice_and_outer_values_too() {
    let n = 16;
    let got = run_scalar(n, 3, |b, x| {
        let lanes = ok(b.arange(0, n));
        let outer = ok(b.binary(BinaryOp::Mul, lanes, lanes));
        let zero = ok(b.broadcast(x, [n]));
        let (lo, step) = (int(b, 0), int(b, 1));
        let (_, c) = ok(b.begin_for(lo, x, step, &[zero, zero, zero, zero]));
        let sum = ok(b.binary(BinaryOp::Add, c[0], outer));
        let r = ok(b.end_for(&[sum, sum, outer, c[3]]));
        let s = ok(b.binary(BinaryOp::Add, r[0], r[1]));
        let s = ok(b.binary(BinaryOp::Add, s, r[2]));
        let s = ok(b.binary(BinaryOp::Add, s, r[3]));
        // The outer tile is still there after the loop.
        ok(b.binary(BinaryOp::Add, s, outer))
    });
    for (i, &got) in got.iter().enumerate() {
        let square = (i * i) as i32;
        let sum = 3 + 3 * square;
        assert_eq!(got, sum + sum + square + 3 + square, "lane {i}");
    }
}

#[test]
fn loops_within_loops_keep_their_own_values() {
    let got = run_scalar(8, 4, |b, x| {
        let lanes = ok(b.arange(1, 8));
        let (lo, step) = (int(b, 0), int(b, 1));
        let acc = ok(b.binary(BinaryOp::Xor, lanes, lanes));
        let (i, outer) = ok(b.begin_for(lo, x, step, &[acc]));
        let scaled = ok(b.binary(BinaryOp::Mul, lanes, i));
        let (j, inner) = ok(b.begin_for(lo, i, step, &[outer[0]]));
        let t = ok(b.binary(BinaryOp::Add, scaled, j));
        let t = ok(b.binary(BinaryOp::Add, inner[0], t));
        let r = ok(b.end_for(&[t]));
        let r = ok(b.end_for(&[r[0]]));
        r[0]
    });
    for (k, &got) in got.iter().enumerate() {
        let lane = k as i32 + 1;
        let expected: i32 = (0..4).flat_map(|i| (0..i).map(move |j| lane * i + j)).sum();
        assert_eq!(got, expected);
    }
}

#[test]
fn an_if_runs_one_branch_only() {
    for (argument, expected) in [(1, 10), (0, 20)] {
        let got = run_scalar(4, argument, |b, x| {
            let lanes = ok(b.arange(0, 4));
            let c = ok(b.cast(x, DType::Bool));
            ok(b.begin_if(c));
            let ten = int(b, 10);
            let t = ok(b.binary(BinaryOp::Add, lanes, ten));
            b.begin_else(&[t]);
            let twenty = int(b, 20);
            let t = ok(b.binary(BinaryOp::Add, lanes, twenty));
            ok(b.end_if(&[t]))[0]
        });
        assert_eq!(got, [0, 1, 2, 3].map(|i| i + expected));
    }
}

#[test]
fn grids_have_three_axes() {
    let mut b = Builder::new("ids");
    let to = b.param_ptr("out", DType::I32, Default::default());
    let [x, y, z] = [0, 1, 2].map(|axis| ok(b.program_id(axis)));
    let [nx, ny, nz] = [0, 1, 2].map(|axis| ok(b.num_programs(axis)));
    let mut index = ok(b.binary(BinaryOp::Mul, z, ny));
    index = ok(b.binary(BinaryOp::Add, index, y));
    index = ok(b.binary(BinaryOp::Mul, index, nx));
    index = ok(b.binary(BinaryOp::Add, index, x));
    let p = ok(b.ptr_add(to, index));
    let value = ok(b.binary(BinaryOp::Add, index, nz));
    ok(b.store(p, value, None));
    let func = b.finish();
    let mut got = vec![0i32; 60];
    launch(&func, [3, 4, 5], vec![out(&mut got)]).unwrap();
    assert_eq!(got, (5..65).collect::<Vec<_>>());
    let mut untouched = [7i32];
    launch(&func, [3, 0, 5], vec![out(&mut untouched)]).unwrap();
    assert_eq!(untouched, [7]);
    let text = failure(&func, [u32::MAX, 1, 1], vec![out(&mut untouched)]);
    assert!(text.contains("a grid of 4294967295 x 1 x 1 programs is too large"), "{text}");
}

#[test]
fn wrong_arguments_are_named() {
    let func = count_kernel(DType::I32);
    let mut buffer = [0i64; 3];
    let text = failure(&func, [1, 1, 1], vec![Arg::Num(0), out(&mut buffer)]);
    assert!(text.contains("2 flattened arguments were given, but the kernel takes 4"), "{text}");
    let text = failure(&func, [1, 1, 1], vec![Arg::Num(0), Arg::Num(0), Arg::Num(0), Arg::Num(0)]);
    assert!(text.contains("flattened argument 3 is Bits(0), but the kernel takes *i64"), "{text}");
}

/// A kernel of one op, whose operand types are changed afterwards so that it is wrong.
#[test]
fn invalid_ir_is_refused_and_never_run() {
    // A value used before it is defined.
    let mut b = Builder::new("bad");
    let one = int(&mut b, 1);
    let two = ok(b.binary(BinaryOp::Add, one, one));
    let three = ok(b.binary(BinaryOp::Add, one, two));
    let mut func = b.finish();
    let op = func.def_op(two).unwrap();
    func.ops[op].operands[0] = three;
    let text = Program::compile(&func).expect_err("used before defined").to_string();
    assert!(text.contains("v2 is used where it is not defined"), "{text}");

    // A tile added to a scalar.
    let mut b = Builder::new("bad");
    let lanes = ok(b.arange(0, 4));
    let sum = ok(b.binary(BinaryOp::Add, lanes, lanes));
    let one = int(&mut b, 1);
    let mut func = b.finish();
    let op = func.def_op(sum).unwrap();
    func.ops[op].operands[1] = one;
    assert!(Program::compile(&func).is_err());

    // No terminator.
    let mut func = Builder::new("bad").finish();
    let body = func.body;
    func.regions[body].ops.clear();
    let text = Program::compile(&func).expect_err("no terminator").to_string();
    assert!(text.contains("region0 has no terminator"), "{text}");

    // A loop whose body takes another type, too large to be one.
    let mut b = Builder::new("bad");
    let (lo, hi, step) = (int(&mut b, 0), int(&mut b, 4), int(&mut b, 1));
    let (_, carried) = ok(b.begin_for(lo, hi, step, &[lo]));
    ok(b.end_for(&carried));
    let mut func = b.finish();
    func.values[carried[0]].ty = TileType::new(DType::I32, [1 << 40, 1 << 40]);
    let text = Program::compile(&func).expect_err("wrong parameters").to_string();
    assert!(text.contains("the parameters of region1 have wrong types"), "{text}");

    // A region inside itself.
    let mut b = Builder::new("bad");
    let c = ok(b.full(TileType::scalar(DType::Bool), crate::tile::Constant(1)));
    ok(b.begin_if(c));
    b.begin_else(&[]);
    ok(b.end_if(&[]));
    let mut func = b.finish();
    let op = func.ops.iter().find(|(_, data)| data.op == Op::If).unwrap().0;
    func.ops[op].regions[1] = func.body;
    let text = Program::compile(&func).expect_err("a cycle").to_string();
    assert!(text.contains("region0 is used twice"), "{text}");
}

#[test]
fn nesting_is_bounded() {
    let nested = |depth: usize| -> Built<Function> {
        let mut b = Builder::new("deep");
        let c = b.full(TileType::scalar(DType::Bool), crate::tile::Constant(1))?;
        for _ in 0..depth {
            b.begin_if(c)?;
        }
        for _ in 0..depth {
            b.begin_else(&[]);
            b.end_if(&[])?;
        }
        Ok(b.finish())
    };
    assert!(launch(&ok(nested(100)), [1, 1, 1], vec![]).is_ok());
    let text = Program::compile(&ok(nested(5000))).expect_err("too deep").to_string();
    assert!(text.contains("nested more than 128 deep"), "{text}");
}

#[test]
fn a_reduction_can_decide_a_branch() {
    let got = run_scalar(4, 3, |b, x| {
        let lanes = ok(b.arange(0, 4));
        let hit = ok(b.compare(Cmp::Eq, lanes, x));
        let any = ok(b.reduce(ReduceOp::Or, hit, 0));
        ok(b.begin_if(any));
        b.begin_else(&[lanes]);
        let other = ok(b.binary(BinaryOp::Sub, lanes, x));
        ok(b.end_if(&[other]))[0]
    });
    assert_eq!(got, [0, 1, 2, 3]);
}

#[test]
fn what_does_not_end_is_ended() {
    use std::time::{Duration, Instant};
    // A loop of 2^62 rounds in each of a few programs; and programs without a loop, more than can be run.
    let long = Program::compile(&count_kernel(DType::I64)).unwrap();
    let mut got = [0i64; 3];
    let ends = |grid: [u32; 3], hi: i64, serial: bool, got: &mut [i64; 3]| {
        let mut args = vec![Arg::Num(0), Arg::Num(hi as u64), Arg::Num(1), out(got)];
        let (flat, memory) = super::flatten(&mut args);
        let start = Instant::now();
        let until = Some(start + Duration::from_millis(100));
        let result = if serial {
            long.run_serial_until(&flat, &memory, grid, until)
        } else {
            long.run_until(&flat, &memory, grid, until)
        };
        assert!(start.elapsed() < Duration::from_secs(20), "it ended after {:?}", start.elapsed());
        result
    };
    for (grid, hi, serial) in [([1; 3], 1 << 62, true), ([3, 1, 1], 1 << 62, false), ([1 << 30, 1, 1], 0, true)] {
        match ends(grid, hi, serial, &mut got) {
            Err(crate::Error::TimedOut { kernel, .. }) => assert_eq!(kernel, "count"),
            other => panic!("{grid:?}: {other:?}"),
        }
    }
    // What is quick enough is not disturbed, by workers that were ended before neither.
    ends([1; 3], 10, true, &mut got).unwrap();
    assert_eq!(got, [10, 45, 9]);
}
