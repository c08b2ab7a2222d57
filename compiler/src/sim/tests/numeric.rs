//! Arithmetic, specials, control flow.

use super::{Memory, Random, SimOptions, WORD, builder, element, run, run_one, words};
use crate::thread::{AbiTy, Access, Cmp, Conv, FBin, FUn, IBin, Op, Special, Ty, eval};

const INTS: [Ty; 2] = [Ty::I32, Ty::I64];
const FLOATS: [Ty; 2] = [Ty::F32, Ty::F64];
const CMPS: [Cmp; 6] = [Cmp::Eq, Cmp::Ne, Cmp::Lt, Cmp::Le, Cmp::Gt, Cmp::Ge];

/// Every pure op of operands, with the types of operands and result.
fn ops() -> Vec<(Op, Vec<Ty>, Ty)> {
    use IBin::*;
    let mut ops = Vec::new();
    for ty in INTS {
        let all = [
            Add, Sub, Mul, MulHiS, MulHiU, DivS, DivU, RemS, RemU, MinS, MinU, MaxS, MaxU, And, Or, Xor, Shl, ShrS,
            ShrU,
        ];
        ops.extend(all.map(|op| (Op::IBin(op), vec![ty; 2], ty)));
        for c in CMPS {
            ops.push((Op::ICmpS(c), vec![ty; 2], Ty::Pred));
            ops.push((Op::ICmpU(c), vec![ty; 2], Ty::Pred));
        }
        for f in FLOATS {
            ops.extend([Conv::SToF, Conv::UToF].map(|c| (Op::Conv(c), vec![ty], f)));
            ops.extend([Conv::FToS, Conv::FToU].map(|c| (Op::Conv(c), vec![f], ty)));
        }
    }
    ops.extend([And, Or, Xor].map(|op| (Op::IBin(op), vec![Ty::Pred; 2], Ty::Pred)));
    for ty in FLOATS {
        use FBin as B;
        use FUn as U;
        let two = [B::Add, B::Sub, B::Mul, B::Div, B::Min, B::Max, B::MinNan, B::MaxNan];
        ops.extend(two.map(|op| (Op::FBin(op), vec![ty; 2], ty)));
        let one = [U::Neg, U::Abs, U::Sqrt, U::Floor, U::Ceil, U::Trunc, U::RoundEven];
        ops.extend(one.map(|op| (Op::FUn(op), vec![ty], ty)));
        ops.push((Op::Fma, vec![ty; 3], ty));
        ops.extend(CMPS.map(|c| (Op::FCmp(c), vec![ty; 2], Ty::Pred)));
    }
    let approx = [FUn::Exp2Approx, FUn::Log2Approx, FUn::RcpApprox, FUn::RsqrtApprox];
    ops.extend(approx.map(|op| (Op::FUn(op), vec![Ty::F32], Ty::F32)));
    ops.push((Op::Not, vec![Ty::Pred], Ty::Pred));
    for ty in [Ty::Pred, Ty::I32, Ty::I64, Ty::F32, Ty::F64] {
        ops.push((Op::Select, vec![Ty::Pred, ty, ty], ty));
    }
    let conversions = [
        (Conv::SExt64, Ty::I32, Ty::I64),
        (Conv::ZExt64, Ty::I32, Ty::I64),
        (Conv::Trunc32, Ty::I64, Ty::I32),
        (Conv::SExt8, Ty::I32, Ty::I32),
        (Conv::SExt16, Ty::I32, Ty::I32),
        (Conv::F32ToF64, Ty::F32, Ty::F64),
        (Conv::F64ToF32, Ty::F64, Ty::F32),
        (Conv::F16LoToF32, Ty::I32, Ty::F32),
        (Conv::F16HiToF32, Ty::I32, Ty::F32),
        (Conv::F32ToF16, Ty::F32, Ty::I32),
        (Conv::F32ToBf16, Ty::F32, Ty::I32),
        (Conv::F32ToTf32, Ty::F32, Ty::I32),
        (Conv::Bitcast, Ty::I32, Ty::F32),
        (Conv::Bitcast, Ty::F64, Ty::I64),
        (Conv::PredToI32, Ty::Pred, Ty::I32),
    ];
    ops.extend(conversions.map(|(c, from, to)| (Op::Conv(c), vec![from], to)));
    ops.push((Op::Pack16, vec![Ty::I32; 2], Ty::I32));
    ops
}

/// Operand bits: the special ones, small ones and any.
fn bits(random: &mut Random, ty: Ty) -> u64 {
    let special: &[u64] = match ty {
        Ty::F32 => &[0, 0x8000_0000, 0x7f80_0000, 0xff80_0000, 0x7fc0_0000, 0x3f80_0000, 1, 0x4f00_0000],
        Ty::F64 => &[0, 1 << 63, 0x7ff0 << 48, 0xfff0 << 48, 0x7ff8 << 48, 0x3ff0 << 48, 1, 0x41e0 << 48],
        _ => &[0, 1, u64::MAX, 0x8000_0000, 1 << 63, 0x7fff_ffff, 0xffff_0000],
    };
    let any = random.next();
    eval::truncate(
        ty,
        match random.below(3) {
            0 => special[random.below(special.len() as u64) as usize],
            1 if ty == Ty::F32 => (((any % 2001) as f32 - 1000.0) / 8.0).to_bits().into(),
            1 if ty == Ty::F64 => (((any % 2001) as f64 - 1000.0) / 8.0).to_bits(),
            1 => any % 100,
            _ => any,
        },
    )
}

fn is_nan(ty: Ty, bits: u64) -> bool {
    match ty {
        Ty::F32 => f32::from_bits(bits as u32).is_nan(),
        Ty::F64 => f64::from_bits(bits).is_nan(),
        _ => false,
    }
}

#[test]
fn every_pure_op_is_what_eval_says() {
    const THREADS: usize = 256;
    let mut random = Random(1);
    for (op, types, result) in ops() {
        // Operand `i` of thread `t` is at 8 (i THREADS + t), and so is the result, in a buffer of its own.
        let mut b = builder(&[("x", AbiTy::Ptr), ("y", AbiTy::Ptr)], THREADS as u32, 32);
        let (x, y, t) = (b.param(0), b.param(1), b.special(Special::Thread));
        let (from, to) = (element(&mut b, x, t, 8), element(&mut b, y, t, 8));
        let mut operands = Vec::new();
        for (i, &ty) in types.iter().enumerate() {
            let loaded = if ty == Ty::Pred { Ty::I32 } else { ty };
            let access = Access { bits: loaded.bits() as u8, n: 1, offset: (8 * i * THREADS) as i32 };
            let mut v = b.global_load(access, loaded, from, None)[0];
            if ty == Ty::Pred {
                let zero = b.i32(0);
                v = b.icmp_u(Cmp::Ne, v, zero);
            }
            operands.push(v);
        }
        let mut d = b.emit(op.clone(), operands, &[result])[0];
        if result == Ty::Pred {
            d = b.conv(Conv::PredToI32, d, Ty::I32);
        }
        let access = Access { bits: b.ty(d).bits() as u8, ..WORD };
        b.global_store(access, to, &[d], None);
        let func = b.finish();

        let mut inputs: Vec<Vec<u64>> =
            types.iter().map(|&ty| (0..THREADS).map(|_| bits(&mut random, ty)).collect()).collect();
        if let Some(second) = inputs.get_mut(1) {
            for bits in second {
                match op {
                    Op::IBin(IBin::Shl | IBin::ShrS | IBin::ShrU) => *bits %= u64::from(types[0].bits()),
                    // Neither 0 nor -1.
                    Op::IBin(IBin::DivS | IBin::DivU | IBin::RemS | IBin::RemU) => *bits = (*bits & !2) | 1,
                    _ => {}
                }
            }
        }
        let mut memory = Memory::new();
        let bytes: Vec<u8> = inputs.iter().flatten().flat_map(|b| b.to_le_bytes()).collect();
        let args = [memory.alloc_with(bytes), memory.alloc(8 * THREADS)];
        run_one(&func, &args, &mut memory);
        let results = words(&memory, args[1], 2 * THREADS);
        for t in 0..THREADS {
            let o: Vec<u64> = inputs.iter().map(|i| i[t]).collect();
            let expected = eval::eval(&op, &types, &o, result).expect("a pure op");
            let found = u64::from(results[2 * t]) | u64::from(results[2 * t + 1]) << 32;
            let same = found == expected || (is_nan(result, found) && is_nan(result, expected));
            assert!(same, "{op:?} of {types:?} {o:x?}: {found:#x}, not {expected:#x}");
        }
    }
}

#[test]
fn threads_and_programs_know_where_they_are() {
    for width in [1, 8, 32, 64] {
        let specials = [
            Special::Thread,
            Special::Lane,
            Special::Warp,
            Special::ProgramId(0),
            Special::ProgramId(1),
            Special::ProgramId(2),
            Special::NumPrograms(0),
            Special::NumPrograms(1),
            Special::NumPrograms(2),
        ];
        let mut b = builder(&[("y", AbiTy::Ptr), ("n", AbiTy::I32)], 64, width);
        let (y, t) = (b.param(0), b.special(Special::Thread));
        let (px, py, pz) =
            (b.special(Special::ProgramId(0)), b.special(Special::ProgramId(1)), b.special(Special::ProgramId(2)));
        // The grid is 3 x 2 x 2.
        let program = {
            let row = b.mul_imm(pz, 2);
            let row = b.add(row, py);
            let row = b.mul_imm(row, 3);
            b.add(row, px)
        };
        let index = b.mul_imm(program, 64);
        let index = b.add(index, t);
        let index = b.mul_imm(index, 10);
        let address = element(&mut b, y, index, 4);
        for (i, s) in specials.into_iter().enumerate() {
            let v = b.special(s);
            b.global_store(Access { offset: 4 * i as i32, ..WORD }, address, &[v], None);
        }
        let n = b.param(1);
        b.global_store(Access { offset: 36, ..WORD }, address, &[n], None);
        let func = b.finish();
        let mut memory = Memory::new();
        let y = memory.alloc(12 * 64 * 40);
        // Bits beyond the parameter's type do not matter.
        run(&func, &[y, 0xdead_0000_0007], &mut memory, [3, 2, 2], &SimOptions::default()).expect("no mistakes");
        let found = words(&memory, y, 12 * 64 * 10);
        for (i, row) in found.chunks(10).enumerate() {
            let (t, p) = (i as u32 % 64, i as u32 / 64);
            assert_eq!(row, [t, t % width, t / width, p % 3, p / 3 % 2, p / 6, 3, 2, 2, 7], "width {width}, row {i}");
        }
    }
}

/// The length of the sequence 3n+1 from the thread's number: the loop ends at another time in each thread, and each goes
/// its own way in the branch inside.
#[test]
fn loops_and_branches_may_diverge() {
    let mut b = builder(&[("y", AbiTy::Ptr)], 128, 32);
    let (y, t) = (b.param(0), b.special(Special::Thread));
    let (start, zero, one) = (b.add_imm(t, 1), b.i32(0), b.i32(1));
    let carried = b.begin_loop(&[start, zero]);
    let go_on = b.icmp_u(Cmp::Ne, carried[0], one);
    let carried = b.loop_body(go_on);
    let odd = b.and_imm(carried[0], 1);
    let odd = b.icmp_u(Cmp::Eq, odd, one);
    b.begin_if(odd);
    let three = b.mul_imm(carried[0], 3);
    let up = b.add_imm(three, 1);
    b.begin_else(&[up]);
    let down = b.shift_imm(IBin::ShrU, carried[0], 1);
    let next = b.end_if(&[down])[0];
    let steps = b.add_imm(carried[1], 1);
    let out = b.end_loop(&[next, steps]);
    let address = element(&mut b, y, t, 4);
    b.global_store(WORD, address, &[out[1]], None);
    let func = b.finish();
    let mut memory = Memory::new();
    let y = memory.alloc(4 * 128);
    run_one(&func, &[y], &mut memory);
    let expected: Vec<u32> = (1u32..=128)
        .map(|mut n| {
            let mut steps = 0;
            while n != 1 {
                n = if n % 2 == 1 { 3 * n + 1 } else { n / 2 };
                steps += 1;
            }
            steps
        })
        .collect();
    assert_eq!(words(&memory, y, 128), expected);
}

/// A loop whose body swaps what it carries, run a different number of times in each thread.
#[test]
fn carried_values_change_at_once() {
    let mut b = builder(&[("y", AbiTy::Ptr)], 32, 32);
    let (y, t, zero) = (b.param(0), b.special(Special::Thread), b.i32(0));
    let (p, q) = (b.i32(100), b.i32(200));
    let carried = b.begin_loop(&[zero, p, q]);
    let go_on = b.icmp_s(Cmp::Lt, carried[0], t);
    let carried = b.loop_body(go_on);
    let next = b.add_imm(carried[0], 1);
    let out = b.end_loop(&[next, carried[2], carried[1]]);
    let address = element(&mut b, y, t, 8);
    b.global_store(Access { n: 2, ..WORD }, address, &out[1..], None);
    let func = b.finish();
    let mut memory = Memory::new();
    let y = memory.alloc(8 * 32);
    run_one(&func, &[y], &mut memory);
    let expected: Vec<u32> = (0..32).flat_map(|t| if t % 2 == 0 { [100, 200] } else { [200, 100] }).collect();
    assert_eq!(words(&memory, y, 64), expected);
}

#[test]
fn guarded_accesses_touch_no_memory() {
    let mut b = builder(&[("x", AbiTy::Ptr), ("y", AbiTy::Ptr)], 64, 32);
    let (x, y, t) = (b.param(0), b.param(1), b.special(Special::Thread));
    let limit = b.i32(10);
    let inside = b.icmp_s(Cmp::Lt, t, limit);
    let (other, address) = (b.i32(-1), element(&mut b, x, t, 2));
    let v = b.global_load(Access { bits: 16, ..WORD }, Ty::I32, address, Some((inside, &[other])));
    let address = element(&mut b, y, t, 4);
    let not_last = b.icmp_s(Cmp::Ne, t, limit);
    b.global_store(WORD, address, &v, Some(not_last));
    let func = b.finish();
    let mut memory = Memory::new();
    let x = memory.alloc_with((0..10u16).flat_map(|i| (0xfff0 + i).to_le_bytes()).collect::<Vec<_>>());
    let y = memory.alloc(4 * 64);
    let report = run_one(&func, &[x, y], &mut memory);
    let expected: Vec<u32> = (0..64)
        .map(|t| match t {
            0..10 => 0xfff0 + t,
            10 => 0,
            _ => u32::MAX,
        })
        .collect();
    assert_eq!(words(&memory, y, 64), expected);
    assert_eq!((report.global_loads.instructions, report.global_loads.bytes), (1, 20));
    assert_eq!((report.global_stores.instructions, report.global_stores.bytes), (2, 63 * 4));
}
