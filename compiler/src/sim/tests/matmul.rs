//! One program of a tensor-core matrix product as the PTX lowering would make it: asynchronous copies into swizzled
//! shared memory, `ldmatrix`, `mma`.

use super::{Memory, Random, builder, element, run_one, words};
use crate::thread::{AbiTy, Access, Builder, Function, IBin, MmaKind, Op, SharedBuf, Special, Ty, Value};
use std::time::Instant;

const M: usize = 128;
const N: usize = 128;
const K: usize = 64;

/// The byte of chunk `chunk` (16 bytes) of row `row` (128 bytes), chunks swizzled by the row.
fn swizzled(b: &mut Builder, row: Value, chunk: Value) -> Value {
    let low = b.and_imm(row, 7);
    let chunk = b.xor(chunk, low);
    let (row, chunk) = (b.shift_imm(IBin::Shl, row, 7), b.shift_imm(IBin::Shl, chunk, 4));
    b.add(row, chunk)
}

/// `c = a b^T` of `f16` matrices `a` of M x K and `b` of N x K, `c` of `f32`, by 4 warps of 64 x 64 each.
fn kernel() -> Function {
    let mut b = builder(&[("a", AbiTy::Ptr), ("b", AbiTy::Ptr), ("c", AbiTy::Ptr)], 128, 32);
    let bufs = [0, 1].map(|i| {
        b.shared(SharedBuf { bytes: (M * K * 2) as u32, align: 128, elem_bits: 16, offset: (i * M * K * 2) as u32 })
    });
    let (t, lane, warp) = (b.special(Special::Thread), b.special(Special::Lane), b.special(Special::Warp));
    for (i, buf) in bufs.into_iter().enumerate() {
        let base = b.param(i as u32);
        let (row, chunk) = (b.shift_imm(IBin::ShrU, t, 3), b.and_imm(t, 7));
        for j in 0..8 {
            let row = b.add_imm(row, 16 * j);
            let byte = swizzled(&mut b, row, chunk);
            let index = b.shift_imm(IBin::Shl, row, 3);
            let index = b.add(index, chunk);
            let address = element(&mut b, base, index, 16);
            b.emit(Op::CpAsync { buf, bytes: 16, shared_offset: 0, global_offset: 0 }, vec![byte, address], &[]);
        }
    }
    b.emit(Op::CpAsyncCommit, vec![], &[]);
    b.emit(Op::CpAsyncWait(0), vec![], &[]);
    b.barrier();
    let (wm, wn) = (b.and_imm(warp, 1), b.shift_imm(IBin::ShrU, warp, 1));
    let (row0, column0) = (b.shift_imm(IBin::Shl, wm, 6), b.shift_imm(IBin::Shl, wn, 6));
    let zero = b.fconst(Ty::F32, 0.0);
    let mut acc = vec![vec![vec![zero; 4]; 8]; 4];
    for step in 0..K as i64 / 16 {
        let load = |b: &mut Builder, operand: usize, first: Value, i: i64| {
            // Of `a` the four matrices are rows 0, 8 and then chunk 1; of `b` chunk 0, 1 and then row 8.
            let low = b.and_imm(lane, if operand == 0 { 15 } else { 7 });
            let high = b.shift_imm(IBin::ShrU, lane, 4);
            let (row, chunk) = if operand == 0 {
                (low, high)
            } else {
                let chunk = b.shift_imm(IBin::ShrU, lane, 3);
                let eight = b.shift_imm(IBin::Shl, high, 3);
                (b.add(low, eight), b.and_imm(chunk, 1))
            };
            let row = b.add(first, row);
            let (row, chunk) = (b.add_imm(row, 16 * i), b.add_imm(chunk, 2 * step));
            let byte = swizzled(b, row, chunk);
            let op = Op::LdMatrix { buf: bufs[operand], n: 4, trans: false, offset: 0 };
            b.emit(op, vec![byte], &[Ty::I32; 4])
        };
        let a: Vec<_> = (0..4).map(|i| load(&mut b, 0, row0, i)).collect();
        let m: Vec<_> = (0..4).map(|j| load(&mut b, 1, column0, j)).collect();
        for (a, acc) in a.iter().zip(&mut acc) {
            for (j, acc) in acc.iter_mut().enumerate() {
                *acc = b.mma(MmaKind::F16, a, &m[j / 2][2 * (j % 2)..][..2], acc);
            }
        }
    }
    let c = b.param(2);
    let (group, in_group) = (b.shift_imm(IBin::ShrU, lane, 2), b.and_imm(lane, 3));
    for (i, acc) in acc.iter().enumerate() {
        for (j, acc) in acc.iter().enumerate() {
            for half in 0..2 {
                let row = b.add(row0, group);
                let row = b.add_imm(row, 16 * i as i64 + 8 * half);
                let column = b.shift_imm(IBin::Shl, in_group, 1);
                let column = b.add(column0, column);
                let column = b.add_imm(column, 8 * j as i64);
                let index = b.mul_imm(row, N as i64);
                let index = b.add(index, column);
                let address = element(&mut b, c, index, 4);
                let values = &acc[2 * half as usize..][..2];
                b.global_store(Access { bits: 32, n: 2, offset: 0 }, address, values, None);
            }
        }
    }
    b.finish()
}

#[test]
fn a_tensor_core_matmul_is_right_coalesced_free_of_conflicts_and_fast_to_simulate() {
    let func = kernel();
    let mut random = Random(7);
    let mut matrix = |rows: usize| -> Vec<f32> { (0..rows * K).map(|_| random.below(17) as f32 - 8.0).collect() };
    let (a, m) = (matrix(M), matrix(N));
    let mut memory = Memory::new();
    let halves = |x: &[f32]| x.iter().flat_map(|&x| half::f16::from_f32(x).to_le_bytes()).collect::<Vec<_>>();
    let args = [memory.alloc_with(halves(&a)), memory.alloc_with(halves(&m)), memory.alloc(4 * M * N)];
    let start = Instant::now();
    let report = run_one(&func, &args, &mut memory);
    let seconds = start.elapsed().as_secs_f64();
    let found = words(&memory, args[2], M * N);
    for (i, &bits) in found.iter().enumerate() {
        let (row, column) = (i / N, i % N);
        let expected: f32 = (0..K).map(|k| a[row * K + k] * m[column * K + k]).sum();
        assert_eq!(f32::from_bits(bits), expected, "row {row}, column {column}");
    }
    assert_eq!(report.mmas, (M * N * K / (16 * 8 * 16)) as u64);
    assert_eq!(report.bank_conflicts(), 0);
    assert!(report.is_coalesced(), "{report:?}");
    assert_eq!(report.global_loads.bytes, ((M + N) * K * 2) as u64);
    assert_eq!(report.global_stores.bytes, (M * N * 4) as u64);
    // About 0.01 s; the limit is for a machine that does much else.
    assert!(seconds < 1.0, "{seconds} s");
}
