//! Every mistake that is found, with its message.

use super::{Memory, SimOptions, WORD, alloc_words, builder, element, run};
use crate::error::Error;
use crate::thread::{
    AbiTy, Access, Builder, Cmp, FBin, Function, IBin, MmaKind, Op, Shared, SharedBuf, Special, Ty, Value,
};

/// What the cases have in common: 64 threads in 2 warps; `x` points to 64 words, each its own index.
struct Case {
    b: Builder,
    x: Value,
    thread: Value,
    /// Four times the thread.
    byte: Value,
    /// The address of word `thread`.
    address: Value,
    buf: Shared,
}

fn case() -> Case {
    let mut b = builder(&[("x", AbiTy::Ptr)], 64, 32);
    let buf = b.shared(SharedBuf { bytes: 256, align: 16, elem_bits: 32, offset: 0 });
    let (x, thread) = (b.param(0), b.special(Special::Thread));
    let byte = b.shift_imm(IBin::Shl, thread, 2);
    let address = element(&mut b, x, thread, 4);
    Case { b, x, thread, byte, address, buf }
}

impl Case {
    fn store(&mut self, byte: Value) {
        self.b.shared_store(self.buf, WORD, byte, &[self.thread], None);
    }

    fn load(&mut self, byte: Value) -> Value {
        self.b.shared_load(self.buf, WORD, Ty::I32, byte)[0]
    }

    /// The byte index of the word of thread `thread ^ mask`.
    fn byte_of(&mut self, mask: i64) -> Value {
        let mask = self.b.i32(4 * mask as i32);
        self.b.xor(self.byte, mask)
    }

    fn below(&mut self, limit: i32) -> Value {
        let limit = self.b.i32(limit);
        self.b.icmp_s(Cmp::Lt, self.thread, limit)
    }

    fn copy(&mut self, byte: Value, address: Value) {
        let op = Op::CpAsync { buf: self.buf, bytes: 4, shared_offset: 0, global_offset: 0 };
        self.b.emit(op, vec![byte, address], &[]);
    }

    fn emit(&mut self, op: Op) {
        self.b.emit(op, vec![], &[]);
    }

    fn message(self) -> String {
        message(&self.b.finish(), &SimOptions::default())
    }

    fn check_fine(self) {
        let func = self.b.finish();
        let result = simulate(&func, &SimOptions::default());
        assert_eq!(result, Ok(()), "{func}");
    }
}

fn simulate(func: &Function, options: &SimOptions) -> Result<(), Error> {
    let mut memory = Memory::new();
    let x = alloc_words(&mut memory, 0..64);
    run(func, &[x], &mut memory, [1, 1, 1], options).map(|_| ())
}

fn message(func: &Function, options: &SimOptions) -> String {
    match simulate(func, options) {
        Err(Error::Execution { kernel, diagnostic }) => {
            assert_eq!(kernel, "f");
            diagnostic.message
        }
        other => panic!("the mistake is not found: {other:?}\n{func}"),
    }
}

// ---- bounds and alignment --------------------------------------------------------------------------------------------

#[test]
fn global_accesses_stay_in_their_buffer() {
    let mut c = case();
    c.b.global_load(Access { offset: 16, ..WORD }, Ty::I32, c.address, None);
    assert_eq!(
        c.message(),
        "global load out of bounds: 4 bytes at 0x700000100, byte 256 of the nearest buffer (256 bytes at 0x700000000)\
         \n  by thread 60 of program (0, 0, 0) in `r8: i32 = global_load.32 [r7 + 16]`"
    );
    let mut c = case();
    c.b.global_store(Access { offset: -4, ..WORD }, c.address, &[c.thread], None);
    assert_eq!(
        c.message(),
        "global store out of bounds: 4 bytes at 0x6fffffffc, 4 bytes before the nearest buffer (256 bytes at \
         0x700000000)\n  by thread 0 of program (0, 0, 0) in `global_store.32 [r7 - 4] = r1`"
    );
    let mut c = case();
    c.b.emit(Op::CpAsync { buf: c.buf, bytes: 4, shared_offset: 0, global_offset: 8 }, vec![c.byte, c.address], &[]);
    assert_eq!(
        c.message(),
        "global load out of bounds: 4 bytes at 0x700000100, byte 256 of the nearest buffer (256 bytes at 0x700000000)\
         \n  by thread 62 of program (0, 0, 0) in `cp_async.4 shared0[r3] = [r7 + 8]`"
    );
}

#[test]
fn global_accesses_are_aligned() {
    let mut c = case();
    c.b.global_load(Access { n: 2, ..WORD }, Ty::I32, c.address, None);
    assert_eq!(
        c.message(),
        "unaligned global load: address 0x700000004, needs a multiple of 8\
         \n  by thread 1 of program (0, 0, 0) in `r8: i32, r9: i32 = global_load.32x2 [r7]`"
    );
}

#[test]
fn shared_accesses_stay_in_their_buffer() {
    // Another buffer lies where the access goes.
    let mut c = case();
    c.b.shared(SharedBuf { bytes: 256, align: 16, elem_bits: 32, offset: 256 });
    c.b.shared_store(c.buf, Access { offset: 4, ..WORD }, c.byte, &[c.thread], None);
    assert_eq!(
        c.message(),
        "shared access out of bounds: bytes 256..260 of shared0, which has 256 bytes\
         \n  by thread 63 of program (0, 0, 0) in `shared_store.32 shared0[r3 + 4] = r1`"
    );
    let mut c = case();
    c.b.shared_load(c.buf, Access { offset: -8, ..WORD }, Ty::I32, c.byte);
    assert_eq!(
        c.message(),
        "shared access out of bounds: bytes -8..-4 of shared0, which has 256 bytes\
         \n  by thread 0 of program (0, 0, 0) in `r8: i32 = shared_load.32 shared0[r3 - 8]`"
    );
}

#[test]
fn shared_accesses_are_aligned() {
    let mut c = case();
    let op = Op::CpAsync { buf: c.buf, bytes: 16, shared_offset: 8, global_offset: 0 };
    c.b.emit(op, vec![c.byte, c.x], &[]);
    assert_eq!(
        c.message(),
        "unaligned shared access: byte 8 of shared0 (which starts at 0), needs a multiple of 16\
         \n  by thread 0 of program (0, 0, 0) in `cp_async.16 shared0[r3 + 8] = [r0]`"
    );
    let mut c = case();
    let op = Op::LdMatrix { buf: c.buf, n: 1, trans: false, offset: 0 };
    c.b.emit(op, vec![c.byte], &[Ty::I32]);
    assert_eq!(
        c.message(),
        "unaligned shared access: byte 4 of shared0 (which starts at 0), needs a multiple of 16\
         \n  by thread 1 of program (0, 0, 0) in `r8: i32 = ldmatrix.x1 shared0[r3]`"
    );
}

// ---- what shared memory holds ----------------------------------------------------------------------------------------

#[test]
fn shared_memory_is_written_before_it_is_read() {
    let mut c = case();
    let few = c.below(60);
    c.b.shared_store(c.buf, WORD, c.byte, &[c.thread], Some(few));
    c.load(c.byte);
    assert_eq!(
        c.message(),
        "byte 240 of shared0 is read before it is written\
         \n  by thread 60 of program (0, 0, 0) in `r10: i32 = shared_load.32 shared0[r3]`"
    );
}

#[test]
fn programs_do_not_inherit_shared_memory() {
    let mut c = case();
    let (id, zero) = (c.b.special(Special::ProgramId(1)), c.b.i32(0));
    let first = c.b.icmp_s(Cmp::Eq, id, zero);
    c.b.shared_store(c.buf, WORD, c.byte, &[c.thread], Some(first));
    c.load(c.byte);
    let func = c.b.finish();
    let mut memory = Memory::new();
    let x = memory.alloc(0);
    let error = run(&func, &[x], &mut memory, [2, 2, 2], &SimOptions::default()).expect_err("nothing is written");
    assert_eq!(
        error.to_string(),
        "kernel `f` failed\nerror: byte 0 of shared0 is read before it is written\
         \n  by thread 0 of program (0, 1, 0) in `r11: i32 = shared_load.32 shared0[r3]`"
    );
}

#[test]
fn overlapping_buffers_do_not_share_bytes() {
    let mut c = case();
    let other = c.b.shared(SharedBuf { bytes: 256, align: 16, elem_bits: 16, offset: 128 });
    c.store(c.byte);
    c.emit(Op::Barrier);
    c.b.shared_store(other, WORD, c.byte, &[c.thread], None);
    c.emit(Op::Barrier);
    c.load(c.byte);
    assert_eq!(
        c.message(),
        "byte 128 of shared0 is read, but was last written as part of shared1\
         \n  by thread 32 of program (0, 0, 0) in `r8: i32 = shared_load.32 shared0[r3]`"
    );
}

#[test]
fn buffers_of_different_widths_do_not_overlap_where_memory_is_typed() {
    let mut c = case();
    let other = c.b.shared(SharedBuf { bytes: 256, align: 16, elem_bits: 16, offset: 0 });
    c.store(c.byte);
    let half = Access { bits: 16, ..WORD };
    let byte = c.b.shift_imm(IBin::Shl, c.thread, 1);
    c.b.shared_store(other, half, byte, &[c.thread], None);
    c.load(c.byte);
    c.b.shared_load(other, half, Ty::I32, byte);
    let func = c.b.finish();
    let typed = SimOptions { untyped_shared: false, ..SimOptions::default() };
    assert_eq!(simulate(&func, &typed), Ok(()));
    assert!(message(&func, &SimOptions::default()).starts_with("data race: byte 2 of shared1 is written"));

    let mut c = case();
    let byte = c.b.shift_imm(IBin::Shl, c.thread, 1);
    c.b.shared_store(c.buf, half, byte, &[c.thread], None);
    assert_eq!(
        message(&c.b.finish(), &typed),
        "an access of 16 bits to shared0, which has elements of 32 bits, in `shared_store.16 shared0[r9] = r1`"
    );
}

// ---- races -----------------------------------------------------------------------------------------------------------

#[test]
fn reading_what_another_thread_wrote_needs_a_barrier() {
    let mut c = case();
    c.store(c.byte);
    let other = c.byte_of(32);
    c.load(other);
    assert_eq!(
        c.message(),
        "data race: byte 128 of shared0 is read, and thread 32 wrote it without a barrier between, in \
         `shared_store.32 shared0[r3] = r1`\
         \n  by thread 0 of program (0, 0, 0) in `r10: i32 = shared_load.32 shared0[r9]`"
    );
    let mut c = case();
    c.store(c.byte);
    c.emit(Op::Barrier);
    let other = c.byte_of(32);
    c.load(other);
    c.check_fine();
}

#[test]
fn a_warp_barrier_orders_the_lanes_of_a_warp_only() {
    // Lockstep is no excuse: without it this is a race even inside a warp.
    let mut c = case();
    c.store(c.byte);
    let other = c.byte_of(1);
    c.load(other);
    assert_eq!(
        c.message(),
        "data race: byte 4 of shared0 is read, and thread 1 wrote it without a barrier between, in \
         `shared_store.32 shared0[r3] = r1`\
         \n  by thread 0 of program (0, 0, 0) in `r10: i32 = shared_load.32 shared0[r9]`"
    );
    for (mask, fine) in [(1, true), (32, false)] {
        let mut c = case();
        c.store(c.byte);
        c.emit(Op::WarpBarrier);
        let other = c.byte_of(mask);
        c.load(other);
        if fine {
            c.check_fine();
        } else {
            assert!(c.message().starts_with("data race: byte 128 of shared0 is read, and thread 32 wrote it"));
        }
    }
    // A shuffle orders nothing.
    let mut c = case();
    c.store(c.byte);
    c.b.shuffle_xor(c.thread, 1);
    let other = c.byte_of(1);
    c.load(other);
    assert!(c.message().starts_with("data race: byte 4 of shared0 is read, and thread 1 wrote it"));
}

#[test]
fn overwriting_what_another_thread_reads_needs_a_barrier() {
    let mut c = case();
    c.store(c.byte);
    c.emit(Op::Barrier);
    let other = c.byte_of(63);
    c.load(other);
    c.store(c.byte);
    assert_eq!(
        c.message(),
        "data race: byte 0 of shared0 is written, and thread 63 read it without a barrier between, in \
         `r10: i32 = shared_load.32 shared0[r9]`\
         \n  by thread 0 of program (0, 0, 0) in `shared_store.32 shared0[r3] = r1`"
    );
}

#[test]
fn two_threads_do_not_write_one_byte_at_once() {
    let mut c = case();
    let (value, zero) = (c.b.i32(7), c.b.i32(0));
    c.b.shared_store(c.buf, WORD, zero, &[value], None);
    assert_eq!(
        c.message(),
        "data race: byte 0 of shared0 is written, and thread 0 wrote it without a barrier between, in \
         `shared_store.32 shared0[r9] = r8`\
         \n  by thread 1 of program (0, 0, 0) in `shared_store.32 shared0[r9] = r8`"
    );
}

#[test]
fn ldmatrix_reads_for_the_lane_that_gets_the_element() {
    // Each lane writes 8 bytes of the rows; `ldmatrix` gives them to others.
    let build = |barrier: bool| {
        let mut c = case();
        let byte = c.b.shift_imm(IBin::Shl, c.thread, 2);
        c.store(byte);
        if barrier {
            c.emit(Op::Barrier);
        }
        let row = c.b.and_imm(c.thread, 7);
        let row = c.b.shift_imm(IBin::Shl, row, 4);
        c.b.emit(Op::LdMatrix { buf: c.buf, n: 1, trans: true, offset: 0 }, vec![row], &[Ty::I32]);
        c
    };
    build(true).check_fine();
    assert_eq!(
        build(false).message(),
        "data race: byte 16 of shared0 is read, and thread 4 wrote it without a barrier between, in \
         `shared_store.32 shared0[r3] = r1`\
         \n  by thread 0 of program (0, 0, 0) in `r12: i32 = ldmatrix.x1.trans shared0[r11]`"
    );
}

#[test]
fn races_on_global_memory_are_found_unless_they_are_not_looked_for() {
    let build = |barrier: bool| {
        let mut c = case();
        c.b.global_store(WORD, c.address, &[c.thread], None);
        if barrier {
            c.emit(Op::Barrier);
        }
        let mask = c.b.i32(32);
        let other = c.b.xor(c.thread, mask);
        let other = element(&mut c.b, c.x, other, 4);
        c.b.global_load(WORD, Ty::I32, other, None);
        c.b.finish()
    };
    let options = SimOptions::default();
    assert_eq!(simulate(&build(true), &options), Ok(()));
    assert_eq!(simulate(&build(false), &SimOptions { check_global_races: false, ..options }), Ok(()));
    assert_eq!(
        message(&build(false), &options),
        "data race: global byte 0x700000080 is read, and thread 32 wrote it without a barrier between, in \
         `global_store.32 [r7] = r1`\
         \n  by thread 0 of program (0, 0, 0) in `r13: i32 = global_load.32 [r12]`"
    );
}

// ---- divergence ------------------------------------------------------------------------------------------------------

#[test]
fn barriers_are_reached_by_all_threads() {
    let mut c = case();
    let few = c.below(40);
    c.b.begin_if(few);
    c.emit(Op::Barrier);
    c.b.begin_else(&[]);
    c.emit(Op::Barrier);
    c.b.end_if(&[]);
    assert_eq!(
        c.message(),
        "a barrier that not all 64 threads of the program reach\
         \n  by threads 0-39 of program (0, 0, 0) in `barrier`"
    );
    // In a loop that runs longer in one warp than in the other.
    let mut c = case();
    let (warp, zero) = (c.b.special(Special::Warp), c.b.i32(0));
    let trips = c.b.add_imm(warp, 1);
    let carried = c.b.begin_loop(&[zero]);
    let go_on = c.b.icmp_s(Cmp::Lt, carried[0], trips);
    let carried = c.b.loop_body(go_on);
    c.emit(Op::Barrier);
    let next = c.b.add_imm(carried[0], 1);
    c.b.end_loop(&[next]);
    assert_eq!(
        c.message(),
        "a barrier that not all 64 threads of the program reach\
         \n  by threads 32-63 of program (0, 0, 0) in `barrier`"
    );
}

#[test]
fn warp_wide_ops_are_reached_by_all_lanes() {
    type Emit = fn(&mut Case);
    let build = |emit: Emit, limit: i32| {
        let mut c = case();
        c.store(c.byte);
        c.emit(Op::Barrier);
        let few = c.below(limit);
        c.b.begin_if(few);
        emit(&mut c);
        c.b.begin_else(&[]);
        c.b.end_if(&[]);
        c
    };
    let ops: [(Emit, &str); 4] = [
        (|c| _ = c.b.shuffle_xor(c.thread, 1), "r10: i32 = shuffle.xor r1, 1"),
        (|c| c.emit(Op::WarpBarrier), "warp_barrier"),
        (
            |c| {
                let op = Op::LdMatrix { buf: c.buf, n: 2, trans: false, offset: 0 };
                let zero = c.b.i32(0);
                c.b.emit(op, vec![zero], &[Ty::I32; 2]);
            },
            "r11: i32, r12: i32 = ldmatrix.x2 shared0[r10]",
        ),
        (
            |c| {
                let t = c.thread;
                c.b.mma(MmaKind::S8, &[t; 4], &[t; 2], &[t; 4]);
            },
            "r10: i32, r11: i32, r12: i32, r13: i32 = mma.s8 (r1, r1, r1, r1), (r1, r1), (r1, r1, r1, r1)",
        ),
    ];
    for (emit, text) in ops {
        assert_eq!(
            build(emit, 40).message(),
            format!(
                "a warp-wide op that not all 32 lanes of warp 1 reach\
                 \n  by threads 32-39 of program (0, 0, 0) in `{text}`"
            )
        );
        // One whole warp is enough.
        build(emit, 32).check_fine();
    }
}

#[test]
fn shuffles_stay_in_their_warp() {
    let mut c = case();
    let lane = c.b.add_imm(c.thread, 1);
    c.b.shuffle_index(c.thread, lane);
    assert_eq!(
        c.message(),
        "a shuffle from lane 32 of a warp of 32\
         \n  by thread 31 of program (0, 0, 0) in `r10: i32 = shuffle.index r1, r9`"
    );
}

// ---- asynchronous copies ---------------------------------------------------------------------------------------------

#[test]
fn asynchronous_copies_are_waited_for() {
    // A wait that lets the group be pending is none.
    for wait in [None, Some(1)] {
        let mut c = case();
        c.copy(c.byte, c.address);
        c.emit(Op::CpAsyncCommit);
        if let Some(n) = wait {
            c.emit(Op::CpAsyncWait(n));
        }
        c.emit(Op::Barrier);
        c.load(c.byte);
        assert_eq!(
            c.message(),
            "byte 0 of shared0 is read while an asynchronous copy into it is in flight, started by thread 0 in \
             `cp_async.4 shared0[r3] = [r7]`\
             \n  by thread 0 of program (0, 0, 0) in `r8: i32 = shared_load.32 shared0[r3]`"
        );
    }
    // Neither is one for copies that belong to no group yet.
    let mut c = case();
    c.copy(c.byte, c.address);
    c.emit(Op::CpAsyncWait(0));
    c.load(c.byte);
    assert!(c.message().starts_with("byte 0 of shared0 is read while an asynchronous copy"));
}

#[test]
fn other_threads_see_asynchronous_copies_after_a_barrier() {
    let build = |before: bool, after: bool, mask: i64| {
        let mut c = case();
        c.copy(c.byte, c.address);
        c.emit(Op::CpAsyncCommit);
        if before {
            c.emit(Op::Barrier);
        }
        c.emit(Op::CpAsyncWait(0));
        if after {
            c.emit(Op::Barrier);
        }
        let other = c.byte_of(mask);
        c.load(other);
        c
    };
    build(false, true, 32).check_fine();
    build(false, false, 0).check_fine();
    // A barrier before the wait is of no use.
    assert_eq!(
        build(true, false, 32).message(),
        "data race: byte 128 of shared0 is read, and thread 32 wrote it without a barrier between, in \
         `cp_async.4 shared0[r3] = [r7]`\
         \n  by thread 0 of program (0, 0, 0) in `r10: i32 = shared_load.32 shared0[r9]`"
    );
}

#[test]
fn bytes_in_flight_are_not_overwritten() {
    let mut c = case();
    c.copy(c.byte, c.address);
    c.emit(Op::CpAsyncCommit);
    c.store(c.byte);
    assert_eq!(
        c.message(),
        "byte 0 of shared0 is written while an asynchronous copy into it is in flight, started by thread 0 in \
         `cp_async.4 shared0[r3] = [r7]`\
         \n  by thread 0 of program (0, 0, 0) in `shared_store.32 shared0[r3] = r1`"
    );
    let mut c = case();
    c.copy(c.byte, c.address);
    c.copy(c.byte, c.address);
    assert!(c.message().starts_with("byte 0 of shared0 is written while an asynchronous copy into it is in flight"));
    // The copy itself must not start while others still read.
    let mut c = case();
    c.store(c.byte);
    c.emit(Op::Barrier);
    let other = c.byte_of(32);
    c.load(other);
    c.copy(c.byte, c.address);
    assert_eq!(
        c.message(),
        "data race: byte 0 of shared0 is written, and thread 32 read it without a barrier between, in \
         `r10: i32 = shared_load.32 shared0[r9]`\
         \n  by thread 0 of program (0, 0, 0) in `cp_async.4 shared0[r3] = [r7]`"
    );
}

// ---- the rest --------------------------------------------------------------------------------------------------------

#[test]
fn loops_end() {
    let mut c = case();
    let carried = c.b.begin_loop(&[c.thread]);
    let one = c.b.i32(1);
    let go_on = c.b.icmp_s(Cmp::Ge, carried[0], one);
    let carried = c.b.loop_body(go_on);
    c.b.end_loop(&carried);
    let options = SimOptions { step_limit: 1000, ..SimOptions::default() };
    assert_eq!(
        message(&c.b.finish(), &options),
        "it did not end within 1000 instructions; is there a loop without end?\
         \n  by threads 1-63 of program (0, 0, 0) in `r10: pred = icmp_s.ge r8, r9`"
    );
}

#[test]
fn integers_are_divided_and_shifted_by_what_is_defined() {
    let message = |op: IBin, a: Option<i32>, b: Option<i32>| {
        let mut c = case();
        let operands = [a, b].map(|x| x.map_or(c.thread, |x| c.b.i32(x)));
        c.b.emit(Op::IBin(op), operands.into(), &[Ty::I32]);
        c.message()
    };
    for (op, name) in [(IBin::DivS, "div_s"), (IBin::DivU, "div_u"), (IBin::RemS, "rem_s"), (IBin::RemU, "rem_u")] {
        assert_eq!(
            message(op, Some(5), None),
            format!("division by zero\n  by thread 0 of program (0, 0, 0) in `r9: i32 = {name} r8, r1`")
        );
    }
    assert_eq!(
        message(IBin::DivS, Some(i32::MIN), Some(-1)),
        "the least integer divided by -1\n  by threads 0-63 of program (0, 0, 0) in `r10: i32 = div_s r8, r9`"
    );
    assert_eq!(
        message(IBin::Shl, Some(1), None),
        "a shift by the width of the register or more\
         \n  by threads 32-63 of program (0, 0, 0) in `r9: i32 = shl r8, r1`"
    );
    // Threads that are not there do not count.
    let mut c = case();
    let zero = c.b.i32(0);
    let some = c.b.icmp_s(Cmp::Ne, c.thread, zero);
    c.b.begin_if(some);
    c.b.emit(Op::IBin(IBin::DivS), vec![c.thread, c.thread], &[Ty::I32]);
    c.b.begin_else(&[]);
    c.b.end_if(&[]);
    c.check_fine();
}

#[test]
fn arguments_and_functions_are_checked_first() {
    let func = case().b.finish();
    let mut memory = Memory::new();
    let error = run(&func, &[], &mut memory, [1; 3], &SimOptions::default()).expect_err("an argument is missing");
    assert_eq!(error.to_string(), "kernel `f` failed\nerror: 0 arguments given where 1 are expected");
    let mut large = func.clone();
    large.shared.push(SharedBuf { bytes: 1 << 30, align: 16, elem_bits: 32, offset: 0 });
    let text = "1073741824 bytes of shared memory; at most 16777216 are simulated";
    assert_eq!(message(&large, &SimOptions::default()), text);
    let mut large = func;
    large.threads = 1 << 20;
    let text = "1048576 threads of one program; at most 65536 are simulated";
    assert_eq!(message(&large, &SimOptions::default()), text);
    let mut c = case();
    c.b.emit(Op::FBin(FBin::Add), vec![c.thread, c.thread], &[Ty::F32]);
    let error = simulate(&c.b.finish(), &SimOptions::default()).expect_err("the types are wrong");
    assert_eq!(
        error.to_string(),
        "invalid IR in `f` (Thread IR)\nerror: the types are (i32, i32) -> (f32) where (F, F) -> F is expected, in \
         `r8: f32 = fadd r1, r1`"
    );
}
