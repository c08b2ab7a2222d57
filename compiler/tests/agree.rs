//! The lowering against the interpreter: hand-made kernels, each on every target, run by the simulator.

mod common;

use common::{Arg, Case, bytes, random_f32};
use tilewright_compiler::DType;
use tilewright_compiler::pipeline::Options;
use tilewright_compiler::target::Caps;
use tilewright_compiler::tile::{BinaryOp, Builder, Cmp, DotPrecision, ParamHint, ReduceOp, TileType, UnaryOp, Value};

fn aligned(class: u32) -> ParamHint {
    ParamHint { divisor: 16, known: None, alias_class: class }
}

fn some_options() -> Vec<Options> {
    [(1, 1), (4, 3), (8, 2)].map(|(num_warps, num_stages)| Options { num_warps, num_stages }).to_vec()
}

/// `out[i] = a[i] + b[i]` for `i < n`, with a mask.
fn vector_add(n: u64, block: usize, hint: ParamHint) -> Case {
    let mut b = Builder::new("vector_add");
    let [x, y, out] = [0, 1, 2].map(|i| b.param_ptr(["x", "y", "out"][i], DType::F32, aligned(i as u32)));
    let len = b.param_scalar("n", DType::I32, hint);
    let pid = b.program_id(0).unwrap();
    let size = b.const_i64(DType::I32, block as i64).unwrap();
    let first = b.binary(BinaryOp::Mul, pid, size).unwrap();
    let lanes = b.arange(0, block).unwrap();
    let i = b.binary(BinaryOp::Add, first, lanes).unwrap();
    let mask = b.compare(Cmp::Lt, i, len).unwrap();
    let mut load = |p: Value| {
        let p = b.ptr_add(p, i).unwrap();
        b.load(p, Some(mask), None).unwrap()
    };
    let (xv, yv) = (load(x), load(y));
    let sum = b.binary(BinaryOp::Add, xv, yv).unwrap();
    let p = b.ptr_add(out, i).unwrap();
    b.store(p, sum, Some(mask)).unwrap();
    let n = n as usize;
    Case {
        func: b.finish(),
        args: vec![Arg::Buf(0, 0), Arg::Buf(1, 0), Arg::Buf(2, 0), Arg::Bits(n as u64)],
        buffers: vec![bytes(&random_f32(1, n)), bytes(&random_f32(2, n)), vec![0x77; 4 * n]],
        grid: [n.div_ceil(block) as u32, 1, 1],
    }
}

#[test]
fn vector_add_agrees() {
    for options in some_options() {
        vector_add(1000, 256, ParamHint::default()).agree_exactly(&options);
        vector_add(1024, 1024, aligned(0)).agree_exactly(&options);
        vector_add(3, 16, ParamHint::default()).agree_exactly(&options);
    }
}

#[test]
fn vector_add_moves_16_bytes_at_a_time() {
    let case = vector_add(1 << 12, 1024, aligned(0));
    let (_, report) = case.simulate(&Caps::ptx(90), &Options { num_warps: 8, num_stages: 1 });
    assert!(report.is_coalesced(), "{report:?}");
    let (tile, _, thread) =
        tilewright_compiler::pipeline::to_thread(&case.func, &Caps::ptx(90), &Options { num_warps: 8, num_stages: 1 })
            .unwrap();
    let text = thread.to_string();
    assert_eq!(text.matches("global_load").count(), 2, "{tile}{text}");
}

/// A kernel that reads `x: T[rows, columns]` through a view, applies `f`, and stores the result through a view.
fn map_view(
    dtype: DType,
    dims: [usize; 2],
    tile: [usize; 2],
    out: (DType, Vec<usize>),
    f: impl FnOnce(&mut Builder, Value) -> Value,
) -> Case {
    let mut b = Builder::new("map_view");
    let one = ParamHint { divisor: 1, known: Some(1), alias_class: 0 };
    let any = ParamHint::default();
    let x = b.param_view("x", dtype, 2, DType::I32, &[aligned(0), any, any, any, one]);
    let out_ptr = b.param_ptr("out", out.0, aligned(1));
    let zero = b.const_i64(DType::I32, 0).unwrap();
    let v = b.view_load(&x, &[zero, zero], tile, None).unwrap();
    let y = f(&mut b, v);
    // Stored in row-major order.
    let shape = b.ty(y).shape.clone();
    let n = shape.elements();
    let index = b.arange(0, n).unwrap();
    let index = b.reshape(index, shape).unwrap();
    let p = b.ptr_add(out_ptr, index).unwrap();
    b.store(p, y, None).unwrap();
    let [rows, columns] = dims.map(|d| Arg::Bits(d as u64));
    let x: Vec<f32> = random_f32(7, dims[0] * dims[1]).iter().map(|x| (x * 8.0).round()).collect();
    let x: Vec<u8> = match dtype {
        DType::F32 => bytes(&x),
        DType::I32 => bytes(&x.iter().map(|&x| x as i32).collect::<Vec<_>>()),
        DType::I8 => bytes(&x.iter().map(|&x| x as i8).collect::<Vec<_>>()),
        DType::F16 => x.iter().flat_map(|&x| half::f16::from_f32(x).to_le_bytes()).collect(),
        DType::I64 => bytes(&x.iter().map(|&x| x as i64).collect::<Vec<_>>()),
        DType::F64 => bytes(&x.iter().map(|&x| f64::from(x)).collect::<Vec<_>>()),
        other => unreachable!("no test uses {other}"),
    };
    assert_eq!(out.1.iter().product::<usize>(), n, "the output has the result's size");
    Case {
        func: b.finish(),
        args: vec![Arg::Buf(0, 0), rows, columns, columns, Arg::Bits(1), Arg::Buf(1, 0)],
        buffers: vec![x, vec![0x77; n * out.0.bytes()]],
        grid: [1, 1, 1],
    }
}

const NUMBERS: [DType; 6] = [DType::F32, DType::I32, DType::I8, DType::F16, DType::I64, DType::F64];

#[test]
fn views_are_padded() {
    for options in some_options() {
        for dtype in NUMBERS {
            let case = map_view(dtype, [13, 37], [16, 64], (dtype, vec![16, 64]), |_, x| x);
            case.agree_exactly(&options);
        }
    }
}

#[test]
fn reductions_agree() {
    for options in some_options() {
        for dtype in NUMBERS {
            for (axis, kept) in [(0, 64), (1, 16)] {
                for op in [ReduceOp::Sum, ReduceOp::Max, ReduceOp::Min] {
                    let out =
                        if op == ReduceOp::Sum { tilewright_compiler::tile::rules::sum_dtype(dtype) } else { dtype };
                    let case =
                        map_view(dtype, [16, 64], [16, 64], (out, vec![kept]), |b, x| b.reduce(op, x, axis).unwrap());
                    // The inputs are small whole numbers: sums are exact in every order.
                    case.agree_exactly(&options);
                }
                for max in [false, true] {
                    let case = map_view(dtype, [16, 64], [16, 64], (DType::I32, vec![kept]), |b, x| {
                        b.arg_reduce(max, x, axis).unwrap()
                    });
                    case.agree_exactly(&options);
                }
            }
        }
    }
}

#[test]
fn whole_reductions_agree() {
    for options in some_options() {
        let case = map_view(DType::F32, [32, 64], [32, 64], (DType::F32, vec![1]), |b, x| {
            let rows = b.reduce(ReduceOp::Sum, x, 1).unwrap();
            let all = b.reduce(ReduceOp::Sum, rows, 0).unwrap();
            b.reshape(all, [1]).unwrap()
        });
        case.agree_exactly(&options);
    }
}

#[test]
fn layouts_are_converted() {
    for options in some_options() {
        for dtype in NUMBERS {
            let transposed = map_view(dtype, [32, 64], [32, 64], (dtype, vec![64, 32]), |b, x| b.transpose(x).unwrap());
            transposed.agree_exactly(&options);
            // A tile and its transpose meet in one op.
            let both = map_view(dtype, [32, 32], [32, 32], (dtype, vec![32, 32]), |b, x| {
                let t = b.transpose(x).unwrap();
                b.binary(BinaryOp::Sub, x, t).unwrap()
            });
            both.agree_exactly(&options);
        }
        let reshaped = map_view(DType::F32, [8, 64], [8, 64], (DType::F32, vec![64]), |b, x| {
            let x = b.reshape(x, [8, 8, 8]).unwrap();
            let x = b.permute(x, &[2, 0, 1]).unwrap();
            let x = b.reduce(ReduceOp::Max, x, 1).unwrap();
            b.reshape(x, [64]).unwrap()
        });
        reshaped.agree_exactly(&options);
    }
}

#[test]
fn rows_minus_their_maximum_agree() {
    for options in some_options() {
        let case = map_view(DType::F32, [16, 100], [16, 128], (DType::F32, vec![16, 128]), |b, x| {
            let m = b.reduce(ReduceOp::Max, x, 1).unwrap();
            let m = b.expand_dims(m, 1).unwrap();
            let d = b.binary(BinaryOp::Sub, x, m).unwrap();
            let e = b.unary(UnaryOp::Exp, d).unwrap();
            let s = b.reduce(ReduceOp::Sum, e, 1).unwrap();
            let s = b.expand_dims(s, 1).unwrap();
            b.binary(BinaryOp::Div, e, s).unwrap()
        });
        case.agree_f32(&options, 1e-6);
    }
}

/// `c[m, n] = a[m, k] b[k, n]` in tiles, for ragged sizes; `transposed` reads `b` from memory as `[n, k]`.
fn matmul(
    dtype: DType,
    [m, n, k]: [usize; 3],
    [bm, bn, bk]: [usize; 3],
    transposed: bool,
    precision: DotPrecision,
) -> Case {
    matmul_of(dtype, [m, n, k], [bm, bn, bk], [false, transposed], precision)
}

/// With operands that are read as they are, or transposed.
fn matmul_of(
    dtype: DType,
    [m, n, k]: [usize; 3],
    [bm, bn, bk]: [usize; 3],
    [x_transposed, transposed]: [bool; 2],
    precision: DotPrecision,
) -> Case {
    let mut b = Builder::new("matmul");
    let one = ParamHint { divisor: 1, known: Some(1), alias_class: 0 };
    let by = |x: usize| ParamHint { divisor: 1 << x.trailing_zeros().min(4), known: None, alias_class: 0 };
    let view = |b: &mut Builder, name, rows: usize, columns: usize, class| {
        b.param_view(name, dtype, 2, DType::I32, &[aligned(class), by(rows), by(columns), by(columns), one])
    };
    let x = if x_transposed { view(&mut b, "a", k, m, 0) } else { view(&mut b, "a", m, k, 0) };
    let y = if transposed { view(&mut b, "b", n, k, 1) } else { view(&mut b, "b", k, n, 1) };
    let any = ParamHint::default();
    let z = b.param_view("c", DType::F32, 2, DType::I32, &[aligned(2), any, by(n), by(n), one]);
    let mut tile_at = |axis, size: usize| {
        let pid = b.program_id(axis).unwrap();
        let size = b.const_i64(DType::I32, size as i64).unwrap();
        b.binary(BinaryOp::Mul, pid, size).unwrap()
    };
    let (m0, n0) = (tile_at(0, bm), tile_at(1, bn));
    let acc = b.full(TileType::new(DType::F32, [bm, bn]), tilewright_compiler::tile::Constant(0)).unwrap();
    let (lo, step) = (b.const_i64(DType::I32, 0).unwrap(), b.const_i64(DType::I32, bk as i64).unwrap());
    let hi = x.dims[usize::from(!x_transposed)];
    let (k0, carried) = b.begin_for(lo, hi, step, &[acc]).unwrap();
    let xt = if x_transposed {
        let t = b.view_load(&x, &[k0, m0], [bk, bm], None).unwrap();
        b.transpose(t).unwrap()
    } else {
        b.view_load(&x, &[m0, k0], [bm, bk], None).unwrap()
    };
    let yt = if transposed {
        let t = b.view_load(&y, &[n0, k0], [bn, bk], None).unwrap();
        b.transpose(t).unwrap()
    } else {
        b.view_load(&y, &[k0, n0], [bk, bn], None).unwrap()
    };
    let next = b.dot(xt, yt, carried[0], precision).unwrap();
    let acc = b.end_for(&[next]).unwrap();
    b.view_store(&z, &[m0, n0], acc[0]).unwrap();
    let numbers = |seed, len| -> Vec<u8> {
        let x: Vec<f32> = random_f32(seed, len).iter().map(|x| (x * 8.0).round()).collect();
        match dtype {
            DType::F32 => bytes(&x),
            DType::F16 => x.iter().flat_map(|&x| half::f16::from_f32(x).to_le_bytes()).collect(),
            _ => x.iter().flat_map(|&x| half::bf16::from_f32(x).to_le_bytes()).collect(),
        }
    };
    let bits = |x: usize| Arg::Bits(x as u64);
    let (br, bc) = if transposed { (n, k) } else { (k, n) };
    let (ar, ac) = if x_transposed { (k, m) } else { (m, k) };
    let args = vec![
        Arg::Buf(0, 0),
        bits(ar),
        bits(ac),
        bits(ac),
        bits(1),
        Arg::Buf(1, 0),
        bits(br),
        bits(bc),
        bits(bc),
        bits(1),
        Arg::Buf(2, 0),
        bits(m),
        bits(n),
        bits(n),
        bits(1),
    ];
    Case {
        func: b.finish(),
        args,
        buffers: vec![numbers(3, m * k), numbers(4, k * n), vec![0x77; 4 * m * n]],
        grid: [m.div_ceil(bm) as u32, n.div_ceil(bn) as u32, 1],
    }
}

#[test]
fn matmul_agrees() {
    // Small whole numbers: every order of summation gives the same bits.
    for dtype in [DType::F16, DType::BF16, DType::F32] {
        for transposed in [false, true] {
            for options in some_options() {
                matmul(dtype, [64, 64, 64], [32, 32, 32], transposed, DotPrecision::Ieee).agree_exactly(&options);
                matmul(dtype, [72, 40, 104], [64, 32, 32], transposed, DotPrecision::Ieee).agree_exactly(&options);
            }
            matmul(dtype, [33, 17, 19], [16, 16, 16], transposed, DotPrecision::Ieee)
                .agree_exactly(&Options::default());
            matmul(dtype, [5, 3, 7], [8, 8, 8], transposed, DotPrecision::Ieee).agree_exactly(&Options::default());
        }
    }
    for transposed in [false, true] {
        matmul(DType::F32, [72, 40, 104], [64, 32, 32], transposed, DotPrecision::Tf32)
            .agree_exactly(&Options::default());
    }
}

/// What Hopper's `wgmma` computes, in every order of both operands, block width, and number of groups of warps along rows
/// and columns.
#[test]
fn products_of_four_warps_agree() {
    let caps = Caps::ptx(90);
    for (x_transposed, transposed) in [(false, false), (false, true), (true, false), (true, true)] {
        for (dtype, tile, num_warps, num_stages) in [
            (DType::F16, [64, 32, 16], 4, 1),
            (DType::BF16, [64, 64, 32], 4, 2),
            (DType::F16, [128, 64, 64], 8, 3),
            (DType::BF16, [64, 128, 128], 8, 4),
            (DType::F16, [128, 128, 32], 4, 3),
            (DType::F16, [128, 256, 64], 16, 3),
        ] {
            let [bm, bn, bk] = tile;
            let sizes = [bm + 8, bn, 3 * bk + 8];
            let case = matmul_of(dtype, sizes, tile, [x_transposed, transposed], DotPrecision::Ieee);
            let options = Options { num_warps, num_stages };
            let expected = case.interpret();
            let (got, report) = case.simulate(&caps, &options);
            let what = format!("{dtype} {tile:?}, {num_warps} warps, {num_stages} stages, {x_transposed} {transposed}");
            assert_eq!(expected, got, "{what}\n{}", case.stages(&caps, &options));
            assert!(report.wgmmas > 0 && report.mmas == 0, "{what}: {report:?}");
            assert_eq!(report.bank_conflicts(), 0, "{what}: {report:?}");
        }
    }
}

/// Products stay in flight from round to round where nothing else looks at the sums.
#[test]
fn products_of_four_warps_stay_in_flight() {
    let case = matmul(DType::F16, [128, 128, 256], [128, 128, 64], false, DotPrecision::Ieee);
    let text = |num_stages| {
        let options = Options { num_warps: 8, num_stages };
        tilewright_compiler::pipeline::to_thread(&case.func, &Caps::ptx(90), &options).unwrap().2.to_string()
    };
    let deep = text(4);
    assert!(
        deep.contains("wgmma_wait 1\n") && deep.contains("wgmma_wait 0 (") && deep.contains("cp_async_wait 1"),
        "{deep}"
    );
    let shallow = text(2);
    assert!(!shallow.contains("wgmma_wait 1\n") && shallow.contains("cp_async_wait 0"), "{shallow}");
}

#[test]
fn matmul_uses_tensor_cores_without_bank_conflicts() {
    for transposed in [false, true] {
        let case = matmul(DType::F16, [128, 128, 128], [128, 128, 32], transposed, DotPrecision::Ieee);
        let options = Options { num_warps: 4, num_stages: 3 };
        let (_, report) = case.simulate(&Caps::ptx(80), &options);
        assert_eq!(report.bank_conflicts(), 0, "{report:?}");
        let (_, _, thread) = tilewright_compiler::pipeline::to_thread(&case.func, &Caps::ptx(80), &options).unwrap();
        let text = thread.to_string();
        // 2 steps of k, 4 x 8 products a step.
        assert_eq!(text.matches(" mma").count(), 64, "{text}");
        assert!(text.contains("cp_async"), "{text}");
    }
}

#[test]
fn loops_run_as_often_as_they_should() {
    // x[i] = i + 1; the sum over range(88, -1, -8) with a step known only at run time is 540.
    let mut b = Builder::new("reverse");
    let x = b.param_ptr("x", DType::F32, aligned(0));
    let out = b.param_ptr("out", DType::F32, aligned(1));
    let [lo, hi, step] = ["lo", "hi", "step"].map(|name| b.param_scalar(name, DType::I32, ParamHint::default()));
    let zero = b.const_f64(DType::F32, 0.0).unwrap();
    let (i, carried) = b.begin_for(lo, hi, step, &[zero]).unwrap();
    let p = b.ptr_add(x, i).unwrap();
    let v = b.load(p, None, None).unwrap();
    let sum = b.binary(BinaryOp::Add, carried[0], v).unwrap();
    let sum = b.end_for(&[sum]).unwrap()[0];
    b.store(out, sum, None).unwrap();
    let func = b.finish();
    let data: Vec<f32> = (0..96).map(|i| i as f32 + 1.0).collect();
    let cases = [
        (88, -1, -8, 540.0),
        (0, 96, 1, 4656.0),
        (5, 5, 1, 0.0),
        (0, 10, 0, 0.0),
        (0, 9, 4, 1.0 + 5.0 + 9.0),
        (7, 0, 3, 0.0),
    ];
    for (lo, hi, step, expected) in cases {
        let case = Case {
            func: func.clone(),
            args: vec![Arg::Buf(0, 0), Arg::Buf(1, 0), int(lo), int(hi), int(step)],
            buffers: vec![bytes(&data), vec![0x77; 4]],
            grid: [1, 1, 1],
        };
        assert_eq!(case.interpret()[1], bytes(&[expected as f32]), "{lo} {hi} {step}");
        case.agree_exactly(&Options::default());
    }
}

fn int(x: i32) -> Arg {
    Arg::Bits(u64::from(x as u32))
}

#[test]
fn in_place_updates_wait_for_each_other() {
    // Each element becomes the one that lay before it: loads of all threads come before stores of any.
    let mut b = Builder::new("shift");
    let x = b.param_ptr("x", DType::I32, aligned(0));
    let lanes = b.arange(0, 256).unwrap();
    let p = b.ptr_add(x, lanes).unwrap();
    let one = b.const_i64(DType::I32, 1).unwrap();
    let q = b.ptr_add(p, one).unwrap();
    let (lo, hi) = (b.const_i64(DType::I32, 0).unwrap(), b.const_i64(DType::I32, 3).unwrap());
    b.begin_for(lo, hi, one, &[]).unwrap();
    let v = b.load(p, None, None).unwrap();
    b.store(q, v, None).unwrap();
    b.end_for(&[]).unwrap();
    let data: Vec<i32> = (0..257).collect();
    let case = Case { func: b.finish(), args: vec![Arg::Buf(0, 0)], buffers: vec![bytes(&data)], grid: [1, 1, 1] };
    for options in some_options() {
        case.agree_exactly(&options);
    }
}

/// A kernel from its text, run by one program.
fn from_text(text: &str, args: Vec<Arg>, buffers: Vec<Vec<u8>>) -> Case {
    let func = tilewright_compiler::tile::parse(text).unwrap_or_else(|e| panic!("{e}"));
    tilewright_compiler::tile::verify(&func, "test").unwrap_or_else(|e| panic!("{e}"));
    Case { func, args, buffers, grid: [1, 1, 1] }
}

#[test]
fn barriers_in_loops_that_run_no_round_separate_nothing() {
    // The first store and the last load are of the same memory by different threads; the loop between has a barrier.
    for head in ["for v9: i32 = v1 to v2 step v4 {", "while { v8: bool = lt v1, v2 condition v8 } do {"] {
        let text = format!(
            "kernel @f(%p: *i32 = v0: *i32, %n: i32 = v2: i32) {{
               v1: i32 = const 0
               v4: i32 = const 1
               v5: i32[64] = arange 0
               v6: *i32[64] = broadcast v0
               v7: *i32[64] = ptr_add v6, v5
               store v7, v5
               {head}
                 store v7, v5
                 v10: i32[64] = load v7
                 v11: i32 = reduce_max v10 axis 0
                 store v0, v11
                 yield
               }}
               v12: i32 = const 63
               v13: i32[64] = broadcast v12
               v14: i32[64] = sub v13, v5
               v15: *i32[64] = ptr_add v6, v14
               v16: i32[64] = load v15
               store v7, v16
               yield
             }}"
        );
        for options in some_options() {
            let case = from_text(&text, vec![Arg::Buf(0, 0), int(0)], vec![vec![0x77; 256]]);
            case.agree_exactly(&options);
        }
    }
}

#[test]
fn deep_nests_are_planned_quickly() {
    // 12 loops inside each other, with two tiles that change places: three tries for each loop would be 3^12.
    let mut b = Builder::new("nest");
    let x = b.param_ptr("x", DType::I32, aligned(0));
    let lanes = b.arange(0, 64).unwrap();
    let p = b.ptr_add(x, lanes).unwrap();
    let first = b.load(p, None, None).unwrap();
    let hi = b.param_scalar("n", DType::I32, ParamHint::default());
    let mut carried = vec![b.reshape(first, [8, 8]).unwrap(), b.reshape(lanes, [8, 8]).unwrap()];
    let (zero, one) = (b.const_i64(DType::I32, 0).unwrap(), b.const_i64(DType::I32, 1).unwrap());
    for _ in 0..12 {
        carried = b.begin_for(zero, hi, one, &carried).unwrap().1;
    }
    for _ in 0..12 {
        let t = b.transpose(carried[1]).unwrap();
        let sum = b.binary(BinaryOp::Add, t, carried[0]).unwrap();
        carried = b.end_for(&[carried[1], sum]).unwrap();
    }
    let flat = b.reshape(carried[0], [64]).unwrap();
    b.store(p, flat, None).unwrap();
    let data: Vec<i32> = (0..64).map(|i| i * i).collect();
    let case =
        Case { func: b.finish(), args: vec![Arg::Buf(0, 0), int(1)], buffers: vec![bytes(&data)], grid: [1, 1, 1] };
    case.agree_exactly(&Options::default());
}

/// A product in a loop, whose loads' addresses are computed by `f` from the induction variable.
fn product_with_addresses(f: impl FnOnce(&mut Builder, Value) -> Value) -> Case {
    let mut b = Builder::new("product");
    let x = b.param_ptr("x", DType::F16, aligned(1));
    let out = b.param_ptr("out", DType::F32, aligned(2));
    let (lo, hi) = (b.const_i64(DType::I32, 0).unwrap(), b.const_i64(DType::I32, 3).unwrap());
    let one = b.const_i64(DType::I32, 1).unwrap();
    let acc = b.full(TileType::new(DType::F32, [16, 16]), tilewright_compiler::tile::Constant(0)).unwrap();
    let lanes = b.arange(0, 256).unwrap();
    let lanes = b.reshape(lanes, [16, 16]).unwrap();
    let (i, carried) = b.begin_for(lo, hi, one, &[acc]).unwrap();
    let start = f(&mut b, i);
    let at = b.binary(BinaryOp::Add, lanes, start).unwrap();
    let p = b.ptr_add(x, at).unwrap();
    let v = b.load(p, None, None).unwrap();
    let next = b.dot(v, v, carried[0], DotPrecision::Ieee).unwrap();
    let acc = b.end_for(&[next]).unwrap()[0];
    let p = b.ptr_add(out, lanes).unwrap();
    b.store(p, acc, None).unwrap();
    let data: Vec<u8> =
        random_f32(5, 4096).iter().flat_map(|x| half::f16::from_f32((x * 3.0).round()).to_le_bytes()).collect();
    Case {
        func: b.finish(),
        args: vec![Arg::Buf(0, 0), Arg::Buf(1, 0)],
        buffers: vec![data, vec![0x77; 1024]],
        grid: [1, 1, 1],
    }
}

#[test]
fn addresses_that_share_much_are_examined_once() {
    // Each sum uses the one before twice: 2^64 ways lead to the first.
    let case = product_with_addresses(|b, i| {
        let (mut x, mask) = (i, b.const_i64(DType::I32, 2048).unwrap());
        for _ in 0..64 {
            let y = b.binary(BinaryOp::Xor, x, i).unwrap();
            x = b.binary(BinaryOp::Add, x, y).unwrap();
        }
        b.binary(BinaryOp::And, x, mask).unwrap()
    });
    case.agree_exactly(&Options::default());
    let (_, report) = case.simulate(&Caps::ptx(90), &Options::default());
    assert!(report.async_copies > 0, "the loads run ahead: {report:?}");
}

#[test]
fn long_chains_of_ops_are_lowered() {
    // Nothing in the chain has a place of its own to be computed at: it is computed when the store asks for it.
    let mut b = Builder::new("chain");
    let x = b.param_ptr("x", DType::I32, aligned(1));
    let lanes = b.arange(0, 32).unwrap();
    let mut sum = lanes;
    for i in 0..20_000 {
        let op = [BinaryOp::Mul, BinaryOp::Xor, BinaryOp::Sub][i % 3];
        sum = b.binary(op, sum, lanes).unwrap();
    }
    let p = b.ptr_add(x, lanes).unwrap();
    b.store(p, sum, None).unwrap();
    let case = Case { func: b.finish(), args: vec![Arg::Buf(0, 0)], buffers: vec![vec![0x77; 128]], grid: [1, 1, 1] };
    let (got, _) = case.simulate(&Caps::ptx(90), &Options { num_warps: 1, num_stages: 1 });
    assert_eq!(got, case.interpret());
}

#[test]
fn options_out_of_range_are_errors() {
    let case = matmul(DType::F16, [64, 64, 64], [32, 32, 32], false, DotPrecision::Ieee);
    let refusal = |caps: &Caps, num_warps, num_stages| {
        let options = Options { num_warps, num_stages };
        match tilewright_compiler::pipeline::to_thread(&case.func, caps, &options) {
            Err(e @ tilewright_compiler::Error::Unsupported { .. }) => e.to_string(),
            Err(e) => panic!("{e}"),
            Ok(_) => String::new(),
        }
    };
    let sm90 = Caps::ptx(90);
    for warps in [0, 3, 5, 31, 33, 64, u32::MAX] {
        let text = refusal(&sm90, warps, 2);
        assert!(text.contains(&format!("num_warps is {warps}")) && text.contains("power of two"), "{text}");
    }
    for stages in [0, 17, 300, u32::MAX] {
        assert!(refusal(&sm90, 4, stages).contains(&format!("num_stages is {stages}")), "{stages}");
    }
    let narrow = Caps::spirv("narrow", 64, 32, 64 << 10);
    assert!(refusal(&narrow, 1, 1).contains("a warp has 64 lanes, but the device allows 32 threads"));
    // 8 stages of two tiles of 32 x 32 halves.
    let small = Caps { max_shared_bytes: 16 << 10, ..Caps::ptx(90) };
    let text = refusal(&small, 4, 8);
    assert!(text.contains("needs 32768 bytes of shared memory, the device has 16384"), "{text}");
}

#[test]
fn every_number_of_warps_and_stages_agrees() {
    for (num_warps, num_stages) in [(1, 8), (2, 5), (4, 4), (8, 1), (16, 2), (32, 6)] {
        let options = Options { num_warps, num_stages };
        vector_add(5, 8, ParamHint::default()).agree_exactly(&options);
        matmul(DType::F16, [40, 24, 72], [16, 16, 16], num_stages % 2 == 0, DotPrecision::Ieee).agree_exactly(&options);
    }
}

#[test]
fn devices_with_few_threads_agree() {
    for width in [1, 8, 32, 64] {
        let caps = Caps::spirv("small", width, 64, 16 << 10);
        for num_warps in [1, 4, 32] {
            let options = Options { num_warps, num_stages: 3 };
            let case = matmul(DType::F32, [40, 24, 40], [16, 16, 16], true, DotPrecision::Ieee);
            assert!(case.simulate(&caps, &options).0 == case.interpret(), "{width} lanes, {options:?}");
        }
    }
}

#[test]
fn lanes_of_one_access_read_their_own_other() {
    // One access covers 4 elements, all masked out together; what they read instead differs.
    let text = "kernel @f(%x: *i32 = v0: *i32 {div 16, alias 1}, %out: *i32 = v1: *i32 {div 16, alias 2}) {
        v2: i32[256] = arange 0
        v3: *i32[256] = broadcast v0
        v4: *i32[256] = ptr_add v3, v2
        v5: i32[256] = const 132
        v6: bool[256] = lt v2, v5
        v7: i32[256] = load v4, v6, v2
        v8: *i32[256] = broadcast v1
        v9: *i32[256] = ptr_add v8, v2
        store v9, v7
        yield
    }";
    let case = from_text(text, vec![Arg::Buf(0, 0), Arg::Buf(1, 0)], vec![vec![0x55; 1024], vec![0x77; 1024]]);
    for options in some_options() {
        case.agree_exactly(&options);
    }
    let thread = case.stages(&Caps::ptx(90), &Options { num_warps: 1, num_stages: 1 });
    assert!(thread.contains("global_load.32x4"), "{thread}");
}

#[test]
fn loads_do_not_run_ahead_of_stores_to_the_same_memory() {
    // Each round multiplies what the round before has stored.
    let text = "kernel @f(%x: *f16 = v0: *f16 {div 16}) {
        v1: i32[256] = arange 0
        v2: i32[16, 16] = reshape v1
        v3: *f16[16, 16] = broadcast v0
        v4: *f16[16, 16] = ptr_add v3, v2
        v5: f32[16, 16] = const 0.0
        v6: i32 = const 0
        v7: i32 = const 3
        v8: i32 = const 1
        for v9: i32 = v6 to v7 step v8 {
            v10: f16[16, 16] = load v4
            v11: f32[16, 16] = dot v10, v10, v5 precision ieee
            v12: f16[16, 16] = cast v11
            store v4, v12
            yield
        }
        yield
    }";
    let x: Vec<u8> =
        (0..256).flat_map(|i| half::f16::from_f32(f32::from(u8::from(i % 17 == 0))).to_le_bytes()).collect();
    let x: Vec<u8> = x.chunks(2).enumerate().flat_map(|(i, b)| if i == 3 { [0, 0x40] } else { [b[0], b[1]] }).collect();
    for options in some_options() {
        from_text(text, vec![Arg::Buf(0, 0)], vec![x.clone()]).agree_exactly(&options);
    }
}

/// The product as Triton's tutorial has it: tiles of pointers, moved on each round, with masks at the ends of rows.
fn pointer_matmul([m, n, k]: [usize; 3], [bm, bn, bk]: [usize; 3]) -> Case {
    let mut b = Builder::new("pointer_matmul");
    let [x, y] = [0, 1].map(|i| b.param_ptr(["a", "b"][i], DType::F16, aligned(i as u32)));
    let z = b.param_ptr("c", DType::F32, aligned(2));
    let depth = b.param_scalar("k", DType::I32, aligned(0));
    let int = |b: &mut Builder, v: usize| b.const_i64(DType::I32, v as i64).unwrap();
    let column = |b: &mut Builder, n: usize| {
        let r = b.arange(0, n).unwrap();
        b.expand_dims(r, 1).unwrap()
    };
    let row = |b: &mut Builder, n: usize| {
        let r = b.arange(0, n).unwrap();
        b.expand_dims(r, 0).unwrap()
    };
    let at = |b: &mut Builder, p: Value, r: Value, pitch: usize, c: Value| {
        let pitch = int(b, pitch);
        let r = b.binary(BinaryOp::Mul, r, pitch).unwrap();
        let o = b.binary(BinaryOp::Add, r, c).unwrap();
        b.ptr_add(p, o).unwrap()
    };
    let (rm, ck) = (column(&mut b, bm), row(&mut b, bk));
    let xp = at(&mut b, x, rm, k, ck);
    let (rk, cn) = (column(&mut b, bk), row(&mut b, bn));
    let yp = at(&mut b, y, rk, n, cn);
    let acc = b.full(TileType::new(DType::F32, [bm, bn]), tilewright_compiler::tile::Constant(0)).unwrap();
    let (lo, step) = (int(&mut b, 0), int(&mut b, bk));
    let (k0, carried) = b.begin_for(lo, depth, step, &[acc, xp, yp]).unwrap();
    let left = b.binary(BinaryOp::Sub, depth, k0).unwrap();
    let x_mask = b.compare(Cmp::Lt, ck, left).unwrap();
    let y_mask = b.compare(Cmp::Lt, rk, left).unwrap();
    let xt = b.load(carried[1], Some(x_mask), None).unwrap();
    let yt = b.load(carried[2], Some(y_mask), None).unwrap();
    let next = b.dot(xt, yt, carried[0], DotPrecision::Ieee).unwrap();
    let x_next = b.ptr_add(carried[1], step).unwrap();
    let stride = int(&mut b, bk * n);
    let y_next = b.ptr_add(carried[2], stride).unwrap();
    let acc = b.end_for(&[next, x_next, y_next]).unwrap()[0];
    let (rm, cn) = (column(&mut b, bm), row(&mut b, bn));
    let zp = at(&mut b, z, rm, n, cn);
    b.store(zp, acc, None).unwrap();
    let halves = |seed, len| -> Vec<u8> {
        random_f32(seed, len).iter().flat_map(|x| half::f16::from_f32((x * 8.0).round()).to_le_bytes()).collect()
    };
    assert!((m, n) == (bm, bn), "one program computes the whole product");
    Case {
        func: b.finish(),
        args: vec![Arg::Buf(0, 0), Arg::Buf(1, 0), Arg::Buf(2, 0), Arg::Bits(k as u64)],
        buffers: vec![halves(3, m * k), halves(4, k * n), vec![0x77; 4 * m * n]],
        grid: [1, 1, 1],
    }
}

#[test]
fn pointers_that_move_on_are_loaded_ahead() {
    for stages in 1..=4 {
        let options = Options { num_warps: 4, num_stages: stages };
        for k in [16, 32, 80, 112] {
            pointer_matmul([64, 32, k], [64, 32, 32]).agree_exactly(&options);
        }
    }
    let case = pointer_matmul([64, 64, 96], [64, 64, 32]);
    let (_, report) = case.simulate(&Caps::ptx(90), &Options { num_warps: 4, num_stages: 3 });
    assert!(report.async_copies > 0, "{report:?}");
    assert_eq!(report.bank_conflicts(), 0, "{report:?}");
}

#[test]
fn conversions_that_take_a_buffer_again_agree() {
    // There and back through shared memory: the way back may take the buffer that each thread has just read, from round to
    // round, too. What stands between or around may take that away: a branch, another loop, a sum, a store.
    let turn = "v30: f32[32, 32] = permute v20 [1, 0]  v31: f32[32, 32] = sub v30, v20";
    let sum = "v32: f32[32] = reduce_max v31 axis 0  v33: f32[1, 32] = reshape v32
               v34: f32[32, 32] = broadcast v33  v40: f32[32, 32] = add v31, v34";
    let bodies = [
        format!("{turn} v40: f32[32, 32] = add v31, v30"),
        format!("{turn} {sum}"),
        format!("{turn} v40: f32[32, 32] = add v31, v30 store v5, v40"),
        format!(
            "{turn} v35: bool = lt v10, v8
             v40: f32[32, 32] = if v35 {{
               v41: f32[32, 32] = permute v31 [1, 0] v42: f32[32, 32] = add v41, v20 yield v42
             }} else {{ yield v31 }}"
        ),
        format!(
            "{turn} v40: f32[32, 32] = for v50: i32 = v7 to v1 step v8 carry (v51: f32[32, 32] = v31) {{
               v52: f32[32, 32] = permute v51 [1, 0] v53: f32[32, 32] = sub v52, v51
               v54: f32[32, 32] = add v53, v52 yield v54
             }}"
        ),
    ];
    let numbers: Vec<f32> = random_f32(21, 1024).iter().map(|x| (x * 8.0).round()).collect();
    for body in &bodies {
        let text = format!(
            "kernel @f(%x: *f32 = v0: *f32 {{div 16}}, %n: i32 = v1: i32) {{
               v2: i32[1024] = arange 0
               v3: i32[32, 32] = reshape v2
               v4: *f32[32, 32] = broadcast v0
               v5: *f32[32, 32] = ptr_add v4, v3
               v6: f32[32, 32] = load v5
               v7: i32 = const 0
               v8: i32 = const 1
               v9: f32[32, 32] = for v10: i32 = v7 to v1 step v8 carry (v20: f32[32, 32] = v6) {{
                 {body}
                 yield v40
               }}
               v60: f32[32, 32] = permute v9 [1, 0]
               v61: f32[32, 32] = add v60, v9
               store v5, v61
               yield
             }}"
        );
        for rounds in [0, 1, 3] {
            let case = from_text(&text, vec![Arg::Buf(0, 0), int(rounds)], vec![bytes(&numbers)]);
            for options in some_options() {
                case.agree_exactly(&options);
            }
        }
    }
}
