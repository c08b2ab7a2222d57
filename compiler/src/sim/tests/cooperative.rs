//! Shuffles, `ldmatrix`, `mma` and asynchronous copies, against what they should give.

use super::{Memory, Random, WORD, alloc_words, builder, element, run_one, words};
use crate::thread::{AbiTy, Access, IBin, MmaKind, Op, SharedBuf, Special, Ty};

#[test]
fn shuffles_move_values_in_warps_of_every_width() {
    for width in [1u32, 8, 32, 64] {
        let mask = width / 2;
        let mut b = builder(&[("y", AbiTy::Ptr)], 128, width);
        let (y, t, lane) = (b.param(0), b.special(Special::Thread), b.special(Special::Lane));
        let exchanged = b.shuffle_xor(t, mask);
        let next = b.add_imm(lane, 1);
        let next = b.and_imm(next, i64::from(width) - 1);
        let rotated = b.shuffle_index(t, next);
        let address = element(&mut b, y, t, 8);
        b.global_store(Access { n: 2, ..WORD }, address, &[exchanged, rotated], None);
        let func = b.finish();
        let mut memory = Memory::new();
        let y = memory.alloc(8 * 128);
        let report = run_one(&func, &[y], &mut memory);
        let expected: Vec<u32> =
            (0..128).flat_map(|t| [t ^ mask, t / width * width + (t % width + 1) % width]).collect();
        assert_eq!(words(&memory, y, 256), expected, "width {width}");
        assert_eq!(report.shuffles, u64::from(2 * 128 / width));
    }
}

/// Element `i` of a lane's operand `a` as (row, k), of `b` as (k, column), in the words of the PTX manual: sections
/// "Matrix Fragments for mma.m16n8k16 with floating point type", "mma.m16n8k8" and "mma.m16n8k32".
fn place_a(kind: MmaKind, lane: usize, i: usize) -> (usize, usize) {
    let (group, in_group) = (lane >> 2, lane % 4);
    match kind {
        MmaKind::F16 | MmaKind::Bf16 => {
            let row = if i < 2 || (4..6).contains(&i) { group } else { group + 8 };
            (row, in_group * 2 + (i & 1) + if i < 4 { 0 } else { 8 })
        }
        MmaKind::Tf32 => {
            (if i == 0 || i == 2 { group } else { group + 8 }, if i < 2 { in_group } else { in_group + 4 })
        }
        MmaKind::S8 | MmaKind::U8 => {
            let row = if i < 4 || (8..12).contains(&i) { group } else { group + 8 };
            (row, in_group * 4 + (i & 3) + if i < 8 { 0 } else { 16 })
        }
    }
}

fn place_b(kind: MmaKind, lane: usize, i: usize) -> (usize, usize) {
    let (group, in_group) = (lane >> 2, lane % 4);
    let k = match kind {
        MmaKind::F16 | MmaKind::Bf16 => in_group * 2 + (i & 1) + if i < 2 { 0 } else { 8 },
        MmaKind::Tf32 => in_group + 4 * i,
        MmaKind::S8 | MmaKind::U8 => in_group * 4 + (i & 3) + if i < 4 { 0 } else { 16 },
    };
    (k, group)
}

fn place_c(lane: usize, i: usize) -> (usize, usize) {
    let (group, in_group) = (lane >> 2, lane % 4);
    (if i < 2 { group } else { group + 8 }, in_group * 2 + (i & 1))
}

/// The bits of an operand's element of this value, and how many there are in a register.
fn encode(kind: MmaKind, value: i32) -> (u32, usize) {
    match kind {
        MmaKind::F16 => (half::f16::from_f32(value as f32).to_bits().into(), 2),
        MmaKind::Bf16 => (half::bf16::from_f32(value as f32).to_bits().into(), 2),
        // The low bits are noise that the instruction must not see.
        MmaKind::Tf32 => ((value as f32).to_bits() | 0x1abc, 1),
        MmaKind::S8 | MmaKind::U8 => ((value as u8).into(), 4),
    }
}

/// Registers of all lanes, lane by lane.
fn fragments(registers: usize, kind: MmaKind, value: impl Fn(usize, usize) -> i32) -> Vec<u32> {
    let mut found = Vec::new();
    let per = encode(kind, 0).1;
    for lane in 0..32 {
        for r in 0..registers {
            let element = |i: usize| encode(kind, value(lane, r * per + i)).0 << (32 / per * i % 32);
            found.push((0..per).map(element).fold(0, |a, b| a | b));
        }
    }
    found
}

#[test]
fn mma_is_a_matrix_product() {
    for kind in [MmaKind::F16, MmaKind::Bf16, MmaKind::Tf32, MmaKind::S8, MmaKind::U8] {
        let depth = match kind {
            MmaKind::F16 | MmaKind::Bf16 => 16,
            MmaKind::Tf32 => 8,
            MmaKind::S8 | MmaKind::U8 => 32,
        };
        let integers = matches!(kind, MmaKind::S8 | MmaKind::U8);
        let mut random = Random(depth as u64);
        let mut number = || match kind {
            MmaKind::S8 => random.below(256) as i32 - 128,
            MmaKind::U8 => random.below(256) as i32,
            _ => random.below(65) as i32 - 32,
        };
        let a: Vec<Vec<i32>> = (0..16).map(|_| (0..depth).map(|_| number()).collect()).collect();
        let m: Vec<Vec<i32>> = (0..depth).map(|_| (0..8).map(|_| number()).collect()).collect();
        let c: Vec<Vec<i32>> = (0..16).map(|_| (0..8).map(|_| number()).collect()).collect();

        let c_ty = if integers { Ty::I32 } else { Ty::F32 };
        let mut b = builder(&["a", "b", "c", "d"].map(|n| (n, AbiTy::Ptr)), 32, 32);
        let t = b.special(Special::Thread);
        let at = [0, 1, 2, 3].map(|i| {
            let base = b.param(i);
            element(&mut b, base, t, if i == 1 { 8 } else { 16 })
        });
        let four = Access { n: 4, ..WORD };
        let ra = b.global_load(four, Ty::I32, at[0], None);
        let rb = b.global_load(Access { n: 2, ..WORD }, Ty::I32, at[1], None);
        let rc = b.global_load(four, c_ty, at[2], None);
        let rd = b.mma(kind, &ra, &rb, &rc);
        b.global_store(four, at[3], &rd, None);
        let func = b.finish();

        let mut memory = Memory::new();
        let in_a = |lane, i| {
            let (row, k) = place_a(kind, lane, i);
            a[row][k]
        };
        let in_b = |lane, i| {
            let (k, column) = place_b(kind, lane, i);
            m[k][column]
        };
        let of_accumulator = |x: i32| if integers { x as u32 } else { (x as f32).to_bits() };
        let accumulators = |value: &dyn Fn(usize, usize) -> i32| -> Vec<u32> {
            (0..128)
                .map(|i| {
                    let (row, column) = place_c(i / 4, i % 4);
                    of_accumulator(value(row, column))
                })
                .collect()
        };
        let args = [
            alloc_words(&mut memory, fragments(4, kind, in_a)),
            alloc_words(&mut memory, fragments(2, kind, in_b)),
            alloc_words(&mut memory, accumulators(&|row, column| c[row][column])),
            memory.alloc(4 * 128),
        ];
        let report = run_one(&func, &args, &mut memory);
        let product =
            |row: usize, column: usize| c[row][column] + (0..depth).map(|k| a[row][k] * m[k][column]).sum::<i32>();
        assert_eq!(words(&memory, args[3], 128), accumulators(&product), "{kind:?}");
        assert_eq!(report.mmas, 1);
    }
}

/// Stores the halves `0..4 * 64` to shared memory, row by row of four 8x8 matrices, and reads them by `ldmatrix`.
#[test]
fn ldmatrix_hands_out_rows_or_columns() {
    for (n, trans) in [(1u8, false), (2, false), (4, false), (1, true), (2, true), (4, true)] {
        let mut b = builder(&[("y", AbiTy::Ptr)], 64, 32);
        let buf = b.shared(SharedBuf { bytes: 1024, align: 128, elem_bits: 16, offset: 0 });
        let (y, t, lane, warp) =
            (b.param(0), b.special(Special::Thread), b.special(Special::Lane), b.special(Special::Warp));
        // Each warp has 512 bytes of its own; a lane writes the row of 16 bytes that it later gives the address of.
        let first = b.shift_imm(IBin::Shl, t, 3);
        let row = b.shift_imm(IBin::Shl, t, 4);
        let mut quads = Vec::new();
        for i in 0..4 {
            let (low, high) = (b.add_imm(first, 2 * i), b.add_imm(first, 2 * i + 1));
            quads.push(b.pack16(low, high));
        }
        b.shared_store(buf, Access { n: 4, ..WORD }, row, &quads, None);
        b.emit(Op::WarpBarrier, vec![], &[]);
        let d = b.emit(Op::LdMatrix { buf, n, trans, offset: 0 }, vec![row], &vec![Ty::I32; n.into()]);
        let index = b.shift_imm(IBin::Shl, warp, 5);
        let index = b.add(index, lane);
        let index = b.mul_imm(index, n.into());
        let address = element(&mut b, y, index, 4);
        b.global_store(Access { n, ..WORD }, address, &d, None);
        let func = b.finish();
        let mut memory = Memory::new();
        let y = memory.alloc(4 * 64 * usize::from(n));
        let report = run_one(&func, &[y], &mut memory);
        let n = u32::from(n);
        let mut expected = Vec::new();
        for t in 0..64 {
            for matrix in 0..n {
                let (lane, base) = (t % 32, t / 32 * 256 + matrix * 64);
                // A thread gets row lane / 4, columns 2 (lane % 4) and the next; of the transposed matrix if asked.
                let (i, j) = (lane / 4, 2 * (lane % 4));
                let at = |i: u32, j: u32| if trans { base + 8 * j + i } else { base + 8 * i + j };
                expected.push(at(i, j) | at(i, j + 1) << 16);
            }
        }
        assert_eq!(words(&memory, y, 64 * n as usize), expected, "x{n} trans {trans}");
        assert_eq!((report.ldmatrices, report.bank_conflicts()), (2, 0));
        assert_eq!(report.shared_loads.bytes, u64::from(2 * n * 128));
    }
}

/// Two stages of asynchronous copies, each waited for in time; the second is zero where it is not wanted.
#[test]
fn asynchronous_copies_arrive_when_waited_for() {
    let mut b = builder(&[("x", AbiTy::Ptr), ("y", AbiTy::Ptr)], 64, 32);
    let buf = b.shared(SharedBuf { bytes: 512, align: 16, elem_bits: 32, offset: 16 });
    let (x, y, t) = (b.param(0), b.param(1), b.special(Special::Thread));
    let byte = b.shift_imm(IBin::Shl, t, 2);
    let from = element(&mut b, x, t, 4);
    let odd = b.and_imm(t, 1);
    let zero = b.i32(0);
    let even = b.icmp_u(crate::thread::Cmp::Eq, odd, zero);
    let stage = |i: i32| Op::CpAsync { buf, bytes: 4, shared_offset: 256 * i, global_offset: 256 * i };
    b.emit(stage(0), vec![byte, from], &[]);
    b.emit(Op::CpAsyncCommit, vec![], &[]);
    b.emit(stage(1), vec![byte, from, even], &[]);
    b.emit(Op::CpAsyncCommit, vec![], &[]);
    let to = element(&mut b, y, t, 4);
    // Every thread reads what its mirror image copied.
    let mirror = b.i32(63);
    let mirror = b.sub(mirror, t);
    let mirror = b.shift_imm(IBin::Shl, mirror, 2);
    for (i, pending) in [(0, 1), (1, 0)] {
        b.emit(Op::CpAsyncWait(pending), vec![], &[]);
        b.barrier();
        let v = b.shared_load(buf, Access { offset: 256 * i, ..WORD }, Ty::I32, mirror);
        b.global_store(Access { offset: 256 * i, ..WORD }, to, &v, None);
    }
    let func = b.finish();
    let mut memory = Memory::new();
    // The odd elements of the second half are never touched: the buffer ends before its last one.
    let (x, y) = (alloc_words(&mut memory, 1..128), memory.alloc(512));
    let report = run_one(&func, &[x, y], &mut memory);
    let second = |t: u32| if t.is_multiple_of(2) { 65 + t } else { 0 };
    let expected: Vec<u32> = (0..64).map(|t| 64 - t).chain((0..64).map(|t| second(63 - t))).collect();
    assert_eq!(words(&memory, y, 128), expected);
    assert_eq!((report.async_copies, report.barriers, report.bank_conflicts()), (4, 2, 0));
    assert_eq!((report.global_loads.bytes, report.shared_stores.bytes), (256 + 128, 512));
}

/// The transpose of a 32 x 32 matrix through shared memory, with rows of this many words.
fn transpose(row_words: i64) -> crate::sim::Report {
    let mut b = builder(&[("x", AbiTy::Ptr), ("y", AbiTy::Ptr)], 32, 32);
    let buf = b.shared(SharedBuf { bytes: 32 * 4 * row_words as u32, align: 16, elem_bits: 32, offset: 0 });
    let (x, y, t) = (b.param(0), b.param(1), b.special(Special::Thread));
    let (along, down) = (element(&mut b, x, t, 4), b.shift_imm(IBin::Shl, t, 2));
    let out = element(&mut b, y, t, 4);
    for i in 0..32 {
        let v = b.global_load(Access { offset: 128 * i, ..WORD }, Ty::I32, along, None);
        let to = Access { offset: 4 * row_words as i32 * i, ..WORD };
        b.shared_store(buf, to, down, &v, None);
    }
    b.barrier();
    let row = b.mul_imm(t, 4 * row_words);
    for i in 0..32 {
        let v = b.shared_load(buf, Access { offset: 4 * i, ..WORD }, Ty::I32, row);
        b.global_store(Access { offset: 128 * i, ..WORD }, out, &v, None);
    }
    let func = b.finish();
    let mut memory = Memory::new();
    let (x, y) = (alloc_words(&mut memory, 0..1024), memory.alloc(4096));
    let report = run_one(&func, &[x, y], &mut memory);
    assert_eq!(words(&memory, y, 1024), (0..1024).map(|i| i % 32 * 32 + i / 32).collect::<Vec<_>>());
    report
}

#[test]
fn bank_conflicts_of_a_transpose_are_seen_and_padding_removes_them() {
    let report = transpose(32);
    assert_eq!((report.wavefronts, report.ideal_wavefronts), (32 + 32 * 32, 64));
    let report = transpose(33);
    assert_eq!((report.wavefronts, report.ideal_wavefronts), (64, 64));
    assert!(report.is_coalesced());
    assert_eq!((report.sectors, report.global_loads.instructions, report.shared_stores.bytes), (256, 32, 4096));
}
