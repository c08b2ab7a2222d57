//! Products of four warps whose left operand is in registers: what they give, and what must not be done while they run.

use super::{Memory, SimOptions, builder, element, run, run_one};
use crate::thread::{
    AbiTy, Access, Builder, Cmp, Conv, IBin, MmaKind, Op, Shared, SharedBuf, Special, Ty, Value, WgmmaLeft, WgmmaMatrix,
};

/// Columns of the product.
const N: u16 = 8;

/// 128 threads; the right operand, 16 x 8 with rows along k, in shared memory: element (k, n) is `k + n / 8`.
struct Case {
    b: Builder,
    out: Value,
    thread: Value,
    buf: Shared,
}

fn case() -> Case {
    let mut b = builder(&[("out", AbiTy::Ptr)], 128, 32);
    let buf = b.shared(SharedBuf { bytes: 256, align: 1024, elem_bits: 16, offset: 0 });
    let (out, thread) = (b.param(0), b.special(Special::Thread));
    // Thread `16 n + k` writes one element: bit 4 of the byte is exchanged by bit 7.
    let k = b.and_imm(thread, 15);
    let n = b.shift_imm(IBin::ShrU, thread, 4);
    let eighth = b.fconst(Ty::F32, 0.125);
    let (kf, nf) = (b.conv(Conv::SToF, k, Ty::F32), b.conv(Conv::SToF, n, Ty::F32));
    let value = b.fma(nf, eighth, kf);
    let value = b.conv(Conv::F32ToF16, value, Ty::I32);
    let byte = b.shift_imm(IBin::Shl, thread, 1);
    let high = b.shift_imm(IBin::ShrU, byte, 3);
    let high = b.and_imm(high, 16);
    let byte = b.xor(byte, high);
    b.shared_store(buf, Access { bits: 16, n: 1, offset: 0 }, byte, &[value], None);
    b.emit(Op::AsyncProxyFence, vec![], &[]);
    b.barrier();
    Case { b, out, thread, buf }
}

impl Case {
    /// Two equal halves in a register.
    fn pair(&mut self, value: Value) -> Value {
        let half = self.b.conv(Conv::SToF, value, Ty::F32);
        let half = self.b.conv(Conv::F32ToF16, half, Ty::I32);
        self.b.pack16(half, half)
    }

    fn product(&mut self, a: [Value; 4], c: Option<&[Value]>) -> Vec<Value> {
        let zero = self.b.i32(0);
        let b = WgmmaMatrix { buf: self.buf, offset: 0, swizzle: 32, k_inner: true, block: 256 };
        self.b.wgmma(MmaKind::F16, N, (WgmmaLeft::Registers, &a), (b, zero), c)
    }

    fn fence(&mut self) {
        self.b.emit(Op::WgmmaFence, vec![], &[]);
    }

    fn commit(&mut self) {
        self.b.emit(Op::WgmmaCommit, vec![], &[]);
    }

    fn store(&mut self, d: &[Value]) {
        let at = element(&mut self.b, self.out, self.thread, 16);
        self.b.global_store(Access { bits: 32, n: 4, offset: 0 }, at, d, None);
    }

    fn message(self) -> String {
        let mut memory = Memory::new();
        let out = memory.alloc(128 * 16);
        let func = self.b.finish();
        match run(&func, &[out], &mut memory, [1; 3], &SimOptions::default()) {
            Ok(_) => panic!("no mistake is found\n{func}"),
            Err(e) => e.to_string(),
        }
    }
}

#[test]
fn rows_come_from_registers() {
    let mut c = case();
    // Row r of the left operand is r everywhere.
    let warp = c.b.special(Special::Warp);
    let lane = c.b.special(Special::Lane);
    let (row, first) = (c.b.shift_imm(IBin::ShrU, lane, 2), c.b.mul_imm(warp, 16));
    let row = c.b.add(row, first);
    let below = c.b.add_imm(row, 8);
    let (a0, a1) = (c.pair(row), c.pair(below));
    c.fence();
    let d = c.product([a0, a1, a0, a1], None);
    let d = c.product([a0, a1, a0, a1], Some(&d));
    c.commit();
    let d = c.b.wgmma_wait(0, &d);
    c.store(&d);
    let mut memory = Memory::new();
    let out = memory.alloc(128 * 16);
    let report = run_one(&c.b.finish(), &[out], &mut memory);
    assert_eq!(report.wgmmas, 2);
    let got = super::words(&memory, out, 512);
    for (i, bits) in got.into_iter().enumerate() {
        let (thread, part) = (i / 4, i % 4);
        let row = 16 * (thread / 32) + thread % 32 / 4 + 8 * (part / 2);
        let column = 2 * (thread % 4) + part % 2;
        let expected: f32 = (0..16).map(|k| 2.0 * row as f32 * (k as f32 + column as f32 / 8.0)).sum();
        assert_eq!(f32::from_bits(bits), expected, "row {row}, column {column}");
    }
}

#[test]
fn registers_are_written_before_the_fence() {
    let mut c = case();
    c.fence();
    let a = c.b.emit(Op::Pack16, vec![c.thread, c.thread], &[Ty::I32])[0];
    let d = c.product([a; 4], None);
    c.commit();
    let d = c.b.wgmma_wait(0, &d);
    c.store(&d);
    let text = c.message();
    assert!(text.contains("which was written after the last fence\n  by threads 0-127"), "{text}");
}

#[test]
fn registers_keep_what_products_in_flight_read() {
    for waits in [false, true] {
        let mut c = case();
        let (zero, end) = (c.b.i32(0), c.b.i32(3));
        let carried = c.b.begin_loop(&[zero]);
        let go_on = c.b.icmp_s(Cmp::Lt, carried[0], end);
        let carried = c.b.loop_body(go_on);
        let a = c.pair(carried[0]);
        c.fence();
        let d = c.product([a; 4], None);
        c.commit();
        if waits {
            let d = c.b.wgmma_wait(0, &d);
            c.store(&d);
        }
        let next = c.b.add_imm(carried[0], 1);
        c.b.end_loop(&[next]);
        if waits {
            let mut memory = Memory::new();
            let out = memory.alloc(128 * 16);
            run_one(&c.b.finish(), &[out], &mut memory);
        } else {
            let text = c.message();
            assert!(text.contains("is written while a product in flight reads it\n"), "{text}");
        }
    }
}

#[test]
fn only_groups_that_are_waited_for_are_finished() {
    for last in [false, true] {
        let mut c = case();
        let a = c.pair(c.thread);
        c.fence();
        let first = c.product([a; 4], None);
        c.commit();
        let second = c.product([a; 4], None);
        c.commit();
        let both = c.b.wgmma_wait(1, &[first, second].concat());
        c.store(if last { &both[4..] } else { &both[..4] });
        if last {
            let text = c.message();
            assert!(text.contains("is read while the product that gives it is in flight\n"), "{text}");
        } else {
            let mut memory = Memory::new();
            let out = memory.alloc(128 * 16);
            run_one(&c.b.finish(), &[out], &mut memory);
        }
    }
}
