//! The text of a small kernel; and, with the feature `opencl-tests`, every op run on a device and compared with
//! [`crate::thread::eval`].

use super::emit;
use crate::target::Caps;
use crate::thread::{AbiParam, AbiTy, Access, Builder, Cmp, Function, IBin, SharedBuf, Special, Ty};

pub(super) fn caps() -> Caps {
    Caps::opencl("test", 256, 32 * 1024, true)
}

pub(super) fn kernel(params: &[AbiTy], threads: u32) -> Builder {
    let params = params.iter().enumerate().map(|(i, &ty)| AbiParam { name: format!("x{i}"), ty }).collect();
    Builder::new("test_kernel", params, threads, 1)
}

pub(super) fn access(bits: u8, n: u8, offset: i32) -> Access {
    Access { bits, n, offset }
}

/// Each thread reverses its row through shared memory, guarded by a count, and does a loop and a branch: 4 numbers in,
/// 4 out.
pub(super) fn reverse() -> Function {
    let mut b = kernel(&[AbiTy::Ptr, AbiTy::Ptr, AbiTy::I32], 8);
    let (from, to, count) = (b.param(0), b.param(1), b.param(2));
    let buf = b.shared(SharedBuf { bytes: 128, align: 16, elem_bits: 32, offset: 16 });
    let thread = b.special(Special::Thread);
    let guard = b.icmp_s(Cmp::Lt, thread, count);
    let byte = b.shift_imm(IBin::Shl, thread, 4);
    let byte64 = b.conv(crate::thread::Conv::ZExt64, byte, Ty::I64);
    let from = b.add(from, byte64);
    let others: Vec<_> = [-1, -2, -3, -4].iter().map(|&v| b.i32(v)).collect();
    let row = b.global_load(access(32, 4, 0), Ty::I32, from, Some((guard, &others)));
    b.shared_store(buf, access(32, 4, 0), byte, &row, None);
    b.barrier();
    let last = b.i32(7 * 16);
    let mirrored = b.sub(last, byte);
    let row = b.shared_load(buf, access(32, 4, 0), Ty::I32, mirrored);
    // Swap the first two as often as the thread's number says, counting in the third.
    let zero = b.i32(0);
    let c = b.begin_loop(&[row[0], row[1], zero, thread]);
    let go_on = b.icmp_s(Cmp::Gt, c[3], zero);
    let c = b.loop_body(go_on);
    let more = b.add_imm(c[2], 1);
    let left = b.add_imm(c[3], -1);
    let c = b.end_loop(&[c[1], c[0], more, left]);
    let four = b.i32(4);
    let small = b.icmp_s(Cmp::Lt, thread, four);
    b.begin_if(small);
    let less = b.sub(zero, c[2]);
    b.begin_else(&[less]);
    let fourth = b.end_if(&[row[3]]);
    let to = b.add(to, byte64);
    b.global_store(access(32, 4, 0), to, &[c[0], c[1], c[2], fourth[0]], Some(guard));
    b.finish()
}

#[test]
fn small_kernel_as_text() {
    insta::assert_snapshot!(emit(&reverse(), &caps()).unwrap());
}

#[test]
fn other_targets_are_refused() {
    let func = kernel(&[], 1).finish();
    assert!(emit(&func, &Caps::ptx(80)).is_err());
    let mut b = kernel(&[AbiTy::F32], 1);
    let x = b.param(0);
    b.fun(crate::thread::FUn::Exp2Approx, x);
    assert!(emit(&b.finish(), &caps()).is_err(), "an approximation that OpenCL C does not have");
}

#[cfg(feature = "opencl-tests")]
#[path = "tests_run.rs"]
mod run;
