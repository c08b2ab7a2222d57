//! Loads and stores: masks, views, and what is said of accesses that are not allowed.

use super::{Arg, block_start, failure, input, int, launch, ok, out, splat, view};
use crate::dtype::DType;
use crate::error::Loc;
use crate::tile::{BinaryOp, Builder, Cmp, Function, Value};

/// `out[i] = x[i + shift]` for the lanes that `mask` leaves, else 9 (or nothing), in blocks of 16 lanes.
fn masked_copy(dense: bool, with_other: bool) -> Function {
    let mut b = Builder::new("masked_copy");
    let x = b.param_ptr("x", DType::I32, Default::default());
    let m = b.param_ptr("mask", DType::Bool, Default::default());
    let to = b.param_ptr("out", DType::I32, Default::default());
    let lanes = ok(b.arange(0, 16));
    let p = ok(b.ptr_add(m, lanes));
    let mask = ok(b.load(p, None, None));
    let mut p = ok(b.ptr_add(x, lanes));
    if dense {
        // The same addresses, written out.
        p = ok(b.select(mask, p, p));
    }
    let other = with_other.then(|| splat(&mut b, DType::I32, &[16], 9.0));
    let v = ok(b.load(p, Some(mask), other));
    let q = ok(b.ptr_add(to, lanes));
    ok(b.store(q, v, None));
    b.finish()
}

#[test]
fn masked_lanes_read_other_and_touch_nothing() {
    let x: Vec<i32> = (100..116).collect();
    for pattern in [0u16, 0xffff, 0x00ff, 0xff00, 0x5555, 0x8001, 0x0ff6] {
        let mask: Vec<u8> = (0..16).map(|i| (pattern >> i & 1) as u8).collect();
        // The buffer ends after the last lane that takes part.
        let len = (16 - pattern.leading_zeros()) as usize;
        for dense in [false, true] {
            for with_other in [false, true] {
                let mut got = [-1i32; 16];
                let args = vec![input(&x[..len]), input(&mask), out(&mut got)];
                launch(&masked_copy(dense, with_other), [1, 1, 1], args).unwrap();
                let filler = if with_other { 9 } else { 0 };
                let expected: Vec<i32> =
                    (0..16).map(|i| if pattern >> i & 1 == 1 { 100 + i } else { filler }).collect();
                assert_eq!(got[..], expected, "{pattern:#x}, dense: {dense}");
            }
        }
    }
}

#[test]
fn masked_stores_leave_the_other_lanes_alone() {
    let mut b = Builder::new("store");
    let to = b.param_ptr("out", DType::I16, Default::default());
    let n = b.param_scalar("n", DType::I32, Default::default());
    let start = block_start(&mut b, 0, 16);
    let lanes = ok(b.arange(0, 16));
    let offset = ok(b.binary(BinaryOp::Add, start, lanes));
    let mask = ok(b.compare(Cmp::Lt, offset, n));
    let p = ok(b.ptr_add(to, offset));
    let v = ok(b.cast(offset, DType::I16));
    ok(b.store(p, v, Some(mask)));
    let func = b.finish();
    for n in [0, 1, 15, 16, 17, 40, 48] {
        let mut got = vec![-1i16; n];
        launch(&func, [3, 1, 1], vec![out(&mut got), Arg::Num(n as u64)]).unwrap();
        assert_eq!(got, (0..n as i16).collect::<Vec<_>>());
    }
}

#[test]
fn addresses_without_order_gather_and_scatter() {
    let mut b = Builder::new("gather");
    let x = b.param_ptr("x", DType::F64, Default::default());
    let index = b.param_ptr("index", DType::I32, Default::default());
    let to = b.param_ptr("out", DType::F64, Default::default());
    let lanes = ok(b.arange(0, 8));
    let p = ok(b.ptr_add(index, lanes));
    let index = ok(b.load(p, None, None));
    let p = ok(b.ptr_add(x, index));
    let v = ok(b.load(p, None, None));
    let q = ok(b.ptr_add(to, index));
    ok(b.store(q, v, None));
    let func = b.finish();
    let x: Vec<f64> = (0..8).map(f64::from).collect();
    let index = [3, 4, 5, 0, 7, 7, 1, 2];
    let mut got = vec![-1.0; 8];
    launch(&func, [1, 1, 1], vec![input(&x), input(&index), out(&mut got)]).unwrap();
    assert_eq!(got, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, -1.0, 7.0]);
}

#[test]
fn evenly_spaced_addresses_are_checked_to_the_last() {
    // out[i] = x[start + step * i], of every width; the mask leaves lanes out at both ends.
    for d in [DType::U8, DType::I16, DType::F32, DType::I64] {
        let mut b = Builder::new("spaced");
        let x = b.param_ptr("x", d, Default::default());
        let [start, step] = ["start", "step"].map(|n| b.param_scalar(n, DType::I32, Default::default()));
        let to = b.param_ptr("out", d, Default::default());
        let lanes = ok(b.arange(0, 8));
        let [one, seven] = [1, 7].map(|v| int(&mut b, v));
        let (above, below) = (ok(b.compare(Cmp::Ge, lanes, one)), ok(b.compare(Cmp::Lt, lanes, seven)));
        let mask = ok(b.binary(BinaryOp::And, above, below));
        let offset = ok(b.binary(BinaryOp::Mul, lanes, step));
        let offset = ok(b.binary(BinaryOp::Add, offset, start));
        let p = ok(b.ptr_add(x, offset));
        let v = ok(b.load(p, Some(mask), None));
        // Every second element of the output, last first.
        let minus = int(&mut b, -2);
        let offset = ok(b.binary(BinaryOp::Mul, lanes, minus));
        let fourteen = int(&mut b, 14);
        let offset = ok(b.binary(BinaryOp::Add, offset, fourteen));
        let p = ok(b.ptr_add(to, offset));
        ok(b.store(p, v, None));
        let func = b.finish();
        let element = |data: &[u64], i: usize| -> Vec<u8> {
            bytemuck::cast_slice::<u64, u8>(data)[i * d.bytes()..][..d.bytes()].to_vec()
        };
        // Exactly 32 elements.
        let mut random = super::Random(6);
        let x: Vec<u64> = (0..4 * d.bytes()).map(|_| random.bits()).collect();
        let run = |start: i32, step: i32| {
            let mut got = vec![0u64; 2 * d.bytes()];
            let num = |v: i32| Arg::Num(v as u32 as u64);
            launch(&func, [1, 1, 1], vec![input(&x), num(start), num(step), out(&mut got)]).map(|()| got)
        };
        for (start, step) in [(0, 4), (31, -4), (5, 0), (-4, 4), (7, 4), (35, -4), (3, 1)] {
            let got = run(start, step).unwrap();
            for i in 0..8 {
                let expected = match i {
                    1..=6 => element(&x, (start + step * i) as usize),
                    _ => vec![0; d.bytes()],
                };
                assert_eq!(element(&got, 14 - 2 * i as usize), expected, "{d}: {start} + {step} * {i}");
            }
        }
        for (start, step, lane, index) in [(8, 4, 6, 32), (-5, 4, 1, -1), (23, -4, 6, -1), (40, -4, 1, 36)] {
            let text = run(start, step).expect_err("out of bounds").to_string();
            assert!(text.contains(&format!("element {index} of a buffer of 32 {d} (lane [{lane}] of")), "{text}");
        }
    }
}

#[test]
fn offsets_of_every_integer_type_are_exact() {
    // x points at the middle; signed offsets go back, unsigned ones of the same bits far forward.
    for d in [DType::I8, DType::I16, DType::I32, DType::I64] {
        for dense in [false, true] {
            let mut b = Builder::new("offsets");
            let x = b.param_ptr("x", DType::I32, Default::default());
            let to = b.param_ptr("out", DType::I32, Default::default());
            let lanes = ok(b.arange(-4, 4));
            let mut offset = ok(b.cast(lanes, d));
            if dense {
                let zero = splat(&mut b, d, &[4], 0.0);
                offset = ok(b.binary(BinaryOp::Or, offset, zero));
            }
            // Forward by 8 first, as x is the start of the buffer.
            let eight = int(&mut b, 8);
            let p = ok(b.ptr_add(x, eight));
            let p = ok(b.ptr_add(p, offset));
            let v = ok(b.load(p, None, None));
            let lanes = ok(b.arange(0, 4));
            let q = ok(b.ptr_add(to, lanes));
            ok(b.store(q, v, None));
            let func = b.finish();
            let x: Vec<i32> = (0..8).collect();
            let mut got = [0; 4];
            launch(&func, [1, 1, 1], vec![input(&x), out(&mut got)]).unwrap();
            assert_eq!(got, [4, 5, 6, 7], "{d}, dense: {dense}");
        }
    }
    // 200 as u8 is 200 elements, not -56.
    let mut b = Builder::new("offsets");
    let x = b.param_ptr("x", DType::I32, Default::default());
    let offset = ok(b.const_i64(DType::U8, 200));
    let p = ok(b.ptr_add(x, offset));
    let v = int(&mut b, 5);
    ok(b.store(p, v, None));
    let mut data = [0; 201];
    launch(&b.finish(), [1, 1, 1], vec![out(&mut data)]).unwrap();
    assert_eq!(data[200], 5);
}

// ---- what is not allowed ------------------------------------------------------------------------------------------

/// Loads (or stores) `f32` at 8 lanes from `offset` on.
fn access(store: bool) -> Function {
    let mut b = Builder::new("access");
    let x = b.param_ptr("x", DType::F32, Default::default());
    let offset = b.param_scalar("offset", DType::I64, Default::default());
    let lanes = ok(b.arange(0, 8));
    let lanes = ok(b.cast(lanes, DType::I64));
    let offset = ok(b.binary(BinaryOp::Add, lanes, offset));
    let p = ok(b.ptr_add(x, offset));
    b.set_loc(Loc { file: "kernel.rs", line: 7, col: 13 });
    if store {
        let v = splat(&mut b, DType::F32, &[8], 1.0);
        ok(b.store(p, v, None));
    } else {
        ok(b.load(p, None, None));
    }
    b.finish()
}

#[test]
fn an_access_out_of_bounds_is_explained() {
    let mut data = vec![0f32; 1024];
    let text = failure(&access(false), [1, 1, 1], vec![out(&mut data), Arg::Num(1020)]);
    assert_eq!(
        text,
        "kernel `access` failed\nerror: load of f32 out of bounds: element 1024 of a buffer of 1024 f32 (lane [4] of program [0, 0, 0])
  --> kernel.rs:7:13
  help: mask the lanes that lie outside, or use a view, whose accesses are checked against its extents"
    );
    let text = failure(&access(true), [1, 1, 1], vec![out(&mut data), Arg::Num(-3i64 as u64)]);
    assert_eq!(
        text,
        "kernel `access` failed\nerror: store of f32 out of bounds: element -3 of a buffer of 1024 f32 (lane [0] of program [0, 0, 0])
  --> kernel.rs:7:13
  help: mask the lanes that lie outside, or use a view, whose accesses are checked against its extents"
    );
    let text = failure(&access(true), [1, 1, 1], vec![input(&data), Arg::Num(3)]);
    assert_eq!(
        text,
        "kernel `access` failed\nerror: store of f32 to element 3 of a buffer of 1024 f32 that is read-only (lane [0] of program [0, 0, 0])
  --> kernel.rs:7:13
  help: pass the buffer as an output"
    );
}

#[test]
fn addresses_that_belong_to_no_buffer_are_explained() {
    use crate::interp::{ArgValue, Memory, Program};
    let program = Program::compile(&access(false)).unwrap();
    let run = |address: u64, memory: &Memory| {
        program.run(&[ArgValue::Ptr(address), ArgValue::Bits(0)], memory, [1, 1, 1]).expect_err("no buffer").to_string()
    };
    let text = run(0x1000, &Memory::default());
    assert!(text.contains("load of f32 at address 0x1000, but the launch has no buffers (lane [0]"), "{text}");
    let mut data = [0f32; 16];
    let (flat, memory) = super::flatten(&mut [out(&mut data)]);
    let ArgValue::Ptr(start) = flat[0] else { panic!("a buffer is passed by address") };
    let text = run(start + 2, &memory);
    assert!(text.contains(&format!("load of f32 at address {:#x}, which is not a multiple of 4", start + 2)), "{text}");
    let text = run(0, &memory);
    assert!(text.contains("at address 0x0, which is far from every buffer"), "{text}");
    // Addresses up to the last do no harm.
    let text = run(u64::MAX - 3, &memory);
    assert!(text.contains("which is far from every buffer"), "{text}");
}

#[test]
fn the_first_failing_program_is_reported_whatever_the_threads_do() {
    // Programs from 700 on fail; the last lane that fits is 11199.
    let mut b = Builder::new("late");
    let x = b.param_ptr("x", DType::I32, Default::default());
    let start = block_start(&mut b, 0, 16);
    let lanes = ok(b.arange(0, 16));
    let offset = ok(b.binary(BinaryOp::Add, start, lanes));
    let p = ok(b.ptr_add(x, offset));
    ok(b.store(p, offset, None));
    let func = b.finish();
    let mut data = vec![0i32; 16 * 700];
    let texts: Vec<String> = (0..20).map(|_| failure(&func, [1000, 1, 1], vec![out(&mut data)])).collect();
    assert!(
        texts[0].contains("element 11200 of a buffer of 11200 i32 (lane [0] of program [700, 0, 0])"),
        "{}",
        texts[0]
    );
    assert!(texts.iter().all(|t| *t == texts[0]));
    assert!(data.iter().enumerate().all(|(i, &v)| v == i as i32), "the programs before it did their work");
}

#[test]
fn a_run_over_two_neighbouring_buffers_is_allowed_element_by_element() {
    let mut data = [1f32; 16];
    let (a, c) = data.split_at_mut(4);
    // The offset argument comes second, so the halves are passed by hand.
    use crate::interp::{ArgValue, MemRegion, Memory, Program};
    let start = a.as_ptr() as u64;
    // SAFETY: the array outlives the run and is not used meanwhile.
    let memory = Memory::new(unsafe { vec![MemRegion::writable(a), MemRegion::writable(c)] });
    Program::compile(&access(true))
        .unwrap()
        .run(&[ArgValue::Ptr(start), ArgValue::Bits(0)], &memory, [1, 1, 1])
        .unwrap();
}

// ---- views ------------------------------------------------------------------------------------------------------

/// Copies the tile at `(r0, c0)` of a view to that of another, reading `pad` outside.
fn view_copy(shape: [usize; 2], index: DType, pad: bool) -> Function {
    let mut b = Builder::new("view_copy");
    let x = b.param_view("x", DType::I32, 2, index, &[]);
    let [r0, c0] = ["r0", "c0"].map(|n| b.param_scalar(n, DType::I32, Default::default()));
    let y = b.param_view("y", DType::I32, 2, index, &[]);
    let [r1, c1] = ["r1", "c1"].map(|n| b.param_scalar(n, DType::I32, Default::default()));
    let pad: Option<Value> = pad.then(|| int(&mut b, -7));
    let t = ok(b.view_load(&x, &[r0, c0], shape, pad));
    ok(b.view_store(&y, &[r1, c1], t));
    b.finish()
}

#[test]
fn views_are_ragged_on_every_side() {
    let (rows, columns) = (5i64, 7i64);
    let x: Vec<i32> = (0..35).map(|i| i + 1).collect();
    let shape = [4usize, 8usize];
    for index in [DType::I32, DType::I64] {
        for pad in [false, true] {
            let func = view_copy(shape, index, pad);
            for (r0, c0) in [
                (0, 0),
                (-2, 0),
                (3, 0),
                (0, -3),
                (0, 4),
                (-1, -1),
                (4, 6),
                (5, 0),
                (-4, 0),
                (0, 7),
                (0, -8),
                (i32::MIN, i32::MAX),
                (i32::MAX, i32::MIN),
            ] {
                for (r1, c1) in [(0i64, 0i64), (-1, 2), (3, -5)] {
                    let mut source = x.clone();
                    let mut got = vec![-1i32; 30];
                    let num = |v: i64| Arg::Num(v as u64);
                    let args = vec![
                        view(&mut source, &[rows, columns]),
                        num(r0.into()),
                        num(c0.into()),
                        view(&mut got, &[6, 5]),
                        num(r1),
                        num(c1),
                    ];
                    launch(&func, [1, 1, 1], args).unwrap();
                    let mut expected = vec![-1i32; 30];
                    for i in 0..shape[0] as i64 {
                        for j in 0..shape[1] as i64 {
                            let (r, c) = (i64::from(r0) + i, i64::from(c0) + j);
                            let inside = (0..rows).contains(&r) && (0..columns).contains(&c);
                            let v = if inside {
                                x[(r * columns + c) as usize]
                            } else if pad {
                                -7
                            } else {
                                0
                            };
                            let (r, c) = (r1 + i, c1 + j);
                            if (0..6).contains(&r) && (0..5).contains(&c) {
                                expected[(r * 5 + c) as usize] = v;
                            }
                        }
                    }
                    assert_eq!(got, expected, "from {r0} {c0} to {r1} {c1}, pad {pad}");
                }
            }
        }
    }
}

#[test]
fn views_have_any_strides() {
    // A transposed source: strides (1, 4); the target has gaps.
    let mut x: Vec<i32> = (0..16).collect();
    let mut got = vec![-1i32; 4 * 10];
    let func = view_copy([4, 4], DType::I32, false);
    let args = vec![
        Arg::View(bytemuck::cast_slice_mut(&mut x), vec![4, 4], vec![1, 4]),
        Arg::Num(0),
        Arg::Num(0),
        Arg::View(bytemuck::cast_slice_mut(&mut got), vec![4, 4], vec![10, 2]),
        Arg::Num(0),
        Arg::Num(0),
    ];
    launch(&func, [1, 1, 1], args).unwrap();
    for i in 0..4 {
        for j in 0..4 {
            assert_eq!(got[i * 10 + 2 * j], (j * 4 + i) as i32);
        }
    }
    // Stride 0 repeats a row.
    let mut got = vec![-1i32; 16];
    let args = vec![
        Arg::View(bytemuck::cast_slice_mut(&mut x), vec![4, 4], vec![0, 1]),
        Arg::Num(0),
        Arg::Num(0),
        view(&mut got, &[4, 4]),
        Arg::Num(0),
        Arg::Num(0),
    ];
    launch(&func, [1, 1, 1], args).unwrap();
    assert_eq!(got, [0, 1, 2, 3].repeat(4));
}

#[test]
fn views_of_one_and_three_dimensions() {
    let mut b = Builder::new("three");
    let x = b.param_view("x", DType::U8, 3, DType::I32, &[]);
    let y = b.param_view("y", DType::U8, 1, DType::I64, &[]);
    let [one, zero, minus] = [1, 0, -1].map(|v| int(&mut b, v));
    let t = ok(b.view_load(&x, &[minus, one, zero], [2, 2, 4], None));
    let t = ok(b.reshape(t, [16]));
    ok(b.view_store(&y, &[minus], t));
    let func = b.finish();
    let mut data: Vec<u8> = (1..=18).collect();
    let mut got = vec![99u8; 13];
    launch(&func, [1, 1, 1], vec![view(&mut data, &[2, 3, 3]), view(&mut got, &[13])]).unwrap();
    // The tile: a plane outside, then rows 1 and 2 of plane 0, each 3 wide and one element of pad; from element 1 on.
    assert_eq!(got, [0, 0, 0, 0, 0, 0, 0, 4, 5, 6, 0, 7, 8]);
}

#[test]
fn wrong_views_do_not_wrap_into_memory() {
    // A view that says it is larger than its buffer.
    let func = view_copy([4, 4], DType::I64, false);
    let run = |strides: Vec<i64>, r0: i64| {
        // The other buffer follows at once, so that the address as such is allowed.
        let mut both = [0i32; 32];
        let (x, y) = both.split_at_mut(16);
        let args = vec![
            Arg::View(bytemuck::cast_slice_mut(x), vec![1 << 30, 1 << 30], strides),
            Arg::Num(r0 as u64),
            Arg::Num(0),
            view(y, &[4, 4]),
            Arg::Num(0),
            Arg::Num(0),
        ];
        failure(&func, [1, 1, 1], args)
    };
    let text = run(vec![4, 1], 2);
    assert!(text.contains("load of i32 out of bounds: element 16 of a buffer of 16 i32 (lane [2, 0] of"), "{text}");
    // 2^30 rows of 2^62 elements: 2^94 bytes on, which is 0 modulo 2^64.
    let text = run(vec![1 << 62, 1], 1 << 29);
    assert!(text.contains("which is far from every buffer"), "{text}");
}

#[test]
fn bools_in_memory_read_as_zero_or_one() {
    let mut b = Builder::new("bools");
    let x = b.param_view("x", DType::Bool, 1, DType::I32, &[]);
    let y = b.param_view("y", DType::Bool, 1, DType::I32, &[]);
    let zero = int(&mut b, 0);
    let t = ok(b.view_load(&x, &[zero], [8], None));
    ok(b.view_store(&y, &[zero], t));
    let func = b.finish();
    let mut data = [0u8, 1, 2, 255, 0, 128, 0, 7];
    let mut got = [9u8; 8];
    launch(&func, [1, 1, 1], vec![view(&mut data, &[8]), view(&mut got, &[8])]).unwrap();
    assert_eq!(got, [0, 1, 1, 1, 0, 1, 0, 1]);
}
