//! Modules of every op and access pass `spirv-val`; a few small ones are compared with text.

use super::*;
use crate::entity::Entity;
use crate::thread::{AbiTy, Access, Builder, Cmp, Conv, FBin, FUn, IBin, MmaKind, Shared, SharedBuf, Special};
use std::process::Command;

fn caps(warp_width: u32) -> Caps {
    Caps::spirv("test device", warp_width, 1024, 32 << 10)
}

#[test]
fn nan_is_kept_where_the_device_can() {
    let build = |ty: Ty| {
        let mut b = Builder::new("k", params(&[AbiTy::Ptr]), 32, 1);
        let p = b.param(0);
        let bits = ty.bits() as u8;
        let x = b.global_load(Access { bits, n: 1, offset: 0 }, ty, p, None)[0];
        let y = b.fbin(FBin::Add, x, x);
        b.global_store(Access { bits, n: 1, offset: 0 }, p, &[y], None);
        b.finish()
    };
    let keeps = |ty, keep_nan| {
        let text = valid(&build(ty), &Caps { keep_nan, ..caps(1) });
        [32, 64].map(|width| text.contains(&format!("SignedZeroInfNanPreserve {width}")))
    };
    assert_eq!(keeps(Ty::F32, [true, true]), [true, false]);
    assert_eq!(keeps(Ty::F64, [true, true]), [true, true]);
    assert_eq!(keeps(Ty::F64, [true, false]), [true, false]);
    assert_eq!(keeps(Ty::F32, [false, false]), [false, false]);
}

fn params(types: &[AbiTy]) -> Vec<AbiParam> {
    types.iter().enumerate().map(|(i, &ty)| AbiParam { name: format!("p{i}"), ty }).collect()
}

fn access(bits: u8, n: u8) -> Access {
    Access { bits, n, offset: 0 }
}

/// Runs `spirv-val`. Without it the test passes with a message, unless the environment asks for all tools.
fn validate(words: &[u32]) {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = dir.path().join("module.spv");
    std::fs::write(&path, bytemuck::cast_slice::<u32, u8>(words)).expect("the module is written");
    match Command::new("spirv-val").args(["--target-env", "vulkan1.2"]).arg(&path).output() {
        Ok(out) => {
            let text = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
            assert!(out.status.success(), "{text}\n{}", disassemble(words));
        }
        Err(e) => {
            let required = std::env::var("TILEWRIGHT_REQUIRE_TOOLS").is_ok_and(|v| v == "1");
            assert!(!required, "spirv-val is required but cannot run: {e}");
            println!("skipped: spirv-val cannot run: {e}");
        }
    }
}

fn valid(func: &Function, caps: &Caps) -> String {
    let words = emit(func, caps).expect("the function is emitted");
    validate(&words);
    let text = disassemble(&words);
    // NVIDIA's compiler ends the process over some phis of truth values.
    if let Some((head, _)) = text.split_once(" = OpTypeBool") {
        let truth = head.rsplit('\n').next().unwrap_or_default();
        let phi = text.lines().find(|l| l.contains(&format!("= OpPhi  {truth} ")));
        assert_eq!(phi, None, "phis are of numbers\n{text}");
    }
    text
}

/// A function with a register of each type that is not known when it is built: `(p, i32, i64, f32, f64)`, from the
/// parameters, and the address `out`.
struct All {
    b: Builder,
    out: Value,
    of: Vec<[Value; 3]>,
}

const TYPES: [Ty; 5] = [Ty::Pred, Ty::I32, Ty::I64, Ty::F32, Ty::F64];

impl All {
    fn new(warp_width: u32) -> Self {
        let mut types = vec![AbiTy::Ptr];
        for ty in [AbiTy::I32, AbiTy::I64, AbiTy::F32, AbiTy::F64] {
            types.extend([ty; 3]);
        }
        let mut b = Builder::new("all", params(&types), 64, warp_width);
        let out = b.param(0);
        let mut of: Vec<[Value; 3]> = (0..4).map(|t| [0, 1, 2].map(|i| b.param(1 + t * 3 + i))).collect();
        let zero = b.i32(0);
        let preds = of[0].map(|v| b.icmp_s(Cmp::Lt, v, zero));
        of.insert(0, preds);
        Self { b, out, of }
    }

    fn get(&self, ty: Ty) -> [Value; 3] {
        self.of[TYPES.iter().position(|&t| t == ty).expect("every type is listed")]
    }

    /// Stores a register of any type.
    fn store(&mut self, v: Value) {
        let ty = self.b.ty(v);
        let v = if ty == Ty::Pred { self.b.conv(Conv::PredToI32, v, Ty::I32) } else { v };
        self.b.global_store(access(ty.bits().max(32) as u8, 1), self.out, &[v], None);
    }

    fn pure(&mut self, op: Op, operands: &[Value], ty: Ty) {
        let v = self.b.pure(op, operands.to_vec(), ty);
        self.store(v);
    }
}

#[test]
fn every_pure_op_is_valid() {
    use IBin::*;
    let mut f = All::new(1);
    for ty in [Ty::I32, Ty::I64] {
        let [x, y, _] = f.get(ty);
        for op in [
            Add, Sub, Mul, MulHiS, MulHiU, DivS, DivU, RemS, RemU, MinS, MinU, MaxS, MaxU, And, Or, Xor, Shl, ShrS,
            ShrU,
        ] {
            f.pure(Op::IBin(op), &[x, y], ty);
        }
    }
    for ty in [Ty::F32, Ty::F64] {
        let [x, y, z] = f.get(ty);
        for op in [FBin::Add, FBin::Sub, FBin::Mul, FBin::Div, FBin::Min, FBin::Max, FBin::MinNan, FBin::MaxNan] {
            f.pure(Op::FBin(op), &[x, y], ty);
        }
        for op in [FUn::Neg, FUn::Abs, FUn::Sqrt, FUn::Floor, FUn::Ceil, FUn::Trunc, FUn::RoundEven] {
            f.pure(Op::FUn(op), &[x], ty);
        }
        f.pure(Op::Fma, &[x, y, z], ty);
    }
    let [p, q, _] = f.get(Ty::Pred);
    for op in [And, Or, Xor] {
        f.pure(Op::IBin(op), &[p, q], Ty::Pred);
    }
    f.pure(Op::Not, &[p], Ty::Pred);
    for ty in TYPES {
        let [x, y, _] = f.get(ty);
        f.pure(Op::Select, &[p, x, y], ty);
        for cmp in [Cmp::Eq, Cmp::Ne, Cmp::Lt, Cmp::Le, Cmp::Gt, Cmp::Ge] {
            if ty.is_int() {
                f.pure(Op::ICmpS(cmp), &[x, y], Ty::Pred);
                f.pure(Op::ICmpU(cmp), &[x, y], Ty::Pred);
            }
            if ty.is_float() {
                f.pure(Op::FCmp(cmp), &[x, y], Ty::Pred);
            }
        }
    }
    let mut conv = |conv, from, to| {
        let x = f.get(from)[0];
        f.pure(Op::Conv(conv), &[x], to);
    };
    conv(Conv::SExt64, Ty::I32, Ty::I64);
    conv(Conv::ZExt64, Ty::I32, Ty::I64);
    conv(Conv::Trunc32, Ty::I64, Ty::I32);
    conv(Conv::SExt8, Ty::I32, Ty::I32);
    conv(Conv::SExt16, Ty::I32, Ty::I32);
    for int in [Ty::I32, Ty::I64] {
        for float in [Ty::F32, Ty::F64] {
            conv(Conv::SToF, int, float);
            conv(Conv::UToF, int, float);
            conv(Conv::FToS, float, int);
            conv(Conv::FToU, float, int);
        }
    }
    conv(Conv::F32ToF64, Ty::F32, Ty::F64);
    conv(Conv::F64ToF32, Ty::F64, Ty::F32);
    for (a, b) in [(Ty::I32, Ty::F32), (Ty::I64, Ty::F64)] {
        conv(Conv::Bitcast, a, b);
        conv(Conv::Bitcast, b, a);
    }
    conv(Conv::PredToI32, Ty::Pred, Ty::I32);
    let [x, y, _] = f.get(Ty::I32);
    f.pure(Op::Pack16, &[x, y], Ty::I32);
    for (ty, bits) in [
        (Ty::F32, 0x7fc1_2345),
        (Ty::F32, 0x8000_0000),
        (Ty::F64, 0x7ff8_0000_dead_beef),
        (Ty::I64, u64::MAX),
        (Ty::Pred, 1),
    ] {
        let v = f.b.constant(ty, bits);
        f.store(v);
    }
    for special in [Special::Thread, Special::Lane, Special::Warp] {
        let v = f.b.special(special);
        f.store(v);
    }
    for axis in 0..3 {
        for special in [Special::ProgramId(axis), Special::NumPrograms(axis)] {
            let v = f.b.special(special);
            f.store(v);
        }
    }
    let text = valid(&f.b.finish(), &caps(1));
    assert!(!text.contains("GroupNonUniform"), "warps of one lane need no subgroups");
}

#[test]
fn fma_without_a_fused_one_is_valid() {
    let mut f = All::new(1);
    let [x, y, z] = f.get(Ty::F32);
    f.pure(Op::Fma, &[x, y, z], Ty::F32);
    let func = f.b.finish();
    let text = valid(&func, &Caps { fused_fma: false, ..caps(1) });
    assert!(!text.contains("Fma"), "{text}");
    assert!(valid(&func, &caps(1)).contains("Fma"));
}

#[test]
fn only_exchange_through_global_memory_takes_the_vulkan_memory_model() {
    for (store, barrier) in [(false, true), (true, false), (true, true)] {
        let mut b = Builder::new("model", params(&[AbiTy::Ptr]), 64, 1);
        let (p, x) = (b.param(0), b.i32(1));
        if barrier {
            b.barrier();
        }
        if store {
            b.global_store(access(32, 1), p, &[x], None);
        }
        let text = valid(&b.finish(), &caps(1));
        assert_eq!(text.contains("VulkanMemoryModel"), store && barrier);
        assert_eq!(text.contains("NonPrivatePointer"), store && barrier);
    }
}

#[test]
fn every_access_is_valid() {
    let widths = [(8, 1), (8, 2), (8, 4), (16, 1), (16, 2), (16, 4), (32, 1), (32, 2), (32, 4), (64, 1), (64, 2)];
    for (bits, n) in widths {
        let types: &[Ty] = match bits {
            64 => &[Ty::I64, Ty::F64],
            32 => &[Ty::I32, Ty::F32],
            _ => &[Ty::I32],
        };
        for &ty in types {
            for guarded in [false, true] {
                let mut f = All::new(1);
                let buf = f.b.shared(SharedBuf { bytes: 256, align: 16, elem_bits: bits, offset: 64 });
                let p = f.get(Ty::Pred)[0];
                let byte = f.get(Ty::I32)[0];
                let others = vec![f.get(ty)[0]; n.into()];
                let a = Access { bits, n, offset: -16 };
                let guard = guarded.then_some(p);
                let values = f.b.global_load(a, ty, f.out, guard.map(|p| (p, &others[..])));
                f.b.global_store(a, f.out, &values, guard);
                f.b.shared_store(buf, a, byte, &values, guard);
                f.b.barrier();
                let values = f.b.shared_load(buf, a, ty, byte);
                f.b.global_store(a, f.out, &values, None);
                let text = valid(&f.b.finish(), &caps(1));
                // Narrow buffers need storage only; narrow shared memory needs the type.
                assert_eq!(text.contains("OpCapability Int8"), bits == 8);
                assert_eq!(text.contains("OpCapability StorageBuffer16BitAccess"), bits == 16);
            }
        }
    }
}

#[test]
fn mixed_registers_of_one_access_are_valid() {
    let mut f = All::new(1);
    let (i, x) = (f.get(Ty::I32)[0], f.get(Ty::F32)[0]);
    f.b.global_store(access(32, 2), f.out, &[i, x], None);
    let both = f.b.emit(Op::GlobalLoad(access(32, 2)), vec![f.out], &[Ty::F32, Ty::I32]);
    both.into_iter().for_each(|v| f.store(v));
    valid(&f.b.finish(), &caps(1));
}

#[test]
fn subgroups_are_valid() {
    let mut f = All::new(32);
    for special in [Special::Thread, Special::Lane, Special::Warp] {
        let v = f.b.special(special);
        f.store(v);
    }
    for ty in [Ty::I32, Ty::F32] {
        let x = f.get(ty)[0];
        let lane = f.get(Ty::I32)[1];
        let v = f.b.shuffle_xor(x, 4);
        f.store(v);
        let v = f.b.shuffle_index(x, lane);
        f.store(v);
    }
    f.b.emit(Op::WarpBarrier, vec![], &[]);
    valid(&f.b.finish(), &caps(32));
}

#[test]
fn truth_values_pass_phis_as_numbers() {
    let mut f = All::new(1);
    let [p, q, r] = f.get(Ty::Pred);
    // Two arms that compute, an arm without instructions, a loop that swaps.
    f.b.begin_if(p);
    let both = f.b.ibin(IBin::And, q, r);
    f.b.begin_else(&[both]);
    let either = f.b.ibin(IBin::Or, q, r);
    let chosen = f.b.end_if(&[either])[0];
    f.b.begin_if(chosen);
    f.b.begin_else(&[q]);
    let kept = f.b.end_if(&[chosen])[0];
    let carried = f.b.begin_loop(&[kept, r]);
    let carried = f.b.loop_body(carried[0]);
    let after = f.b.end_loop(&[carried[1], carried[0]]);
    after.into_iter().for_each(|v| f.store(v));
    let text = valid(&f.b.finish(), &caps(1));
    assert_eq!(text.matches("= OpPhi ").count(), 4, "{text}");
}

#[test]
fn nested_control_flow_is_valid() {
    let mut f = All::new(1);
    let (p, q) = (f.get(Ty::Pred)[0], f.get(Ty::Pred)[1]);
    let (i, x) = (f.get(Ty::I32)[0], f.get(Ty::F32)[0]);
    let carried = f.b.begin_loop(&[i, x, p]);
    // An `if` in the condition, a loop in one arm, an arm without instructions.
    f.b.begin_if(q);
    f.b.barrier();
    f.b.begin_else(&[p]);
    let go_on = f.b.end_if(&[carried[2]])[0];
    let carried = f.b.loop_body(go_on);
    f.b.begin_if(carried[2]);
    let inner = f.b.begin_loop(&[carried[0]]);
    let more = f.b.icmp_s(Cmp::Lt, inner[0], i);
    let inner = f.b.loop_body(more);
    let next = f.b.add_imm(inner[0], 1);
    f.store(next);
    let inner = f.b.end_loop(&[next]);
    f.b.begin_else(&[inner[0], x]);
    f.b.barrier();
    let sum = f.b.fbin(FBin::Add, carried[1], x);
    let r = f.b.end_if(&[carried[0], sum]);
    // Swapped carried values: phis are parallel.
    let r = f.b.end_loop(&[r[0], r[1], q]);
    r.into_iter().for_each(|v| f.store(v));
    // Nothing in either arm.
    f.b.begin_if(p);
    f.b.begin_else(&[]);
    f.b.end_if(&[]);
    valid(&f.b.finish(), &caps(1));
}

#[test]
fn parameters_beyond_the_push_constants_go_through_a_buffer() {
    let mut types = vec![AbiTy::I32, AbiTy::Ptr];
    types.extend([AbiTy::F64; 13]);
    let list = params(&types);
    let c = caps(1);
    let layout = param_layout(&list, &c);
    assert!(layout.in_buffer);
    assert_eq!((layout.push_bytes, layout.buffer_bytes), (32, 16 + 13 * 8));
    assert_eq!(layout.offsets[..3], [0, 8, 16]);
    let fewer = param_layout(&list[..13], &c);
    assert!(!fewer.in_buffer);
    assert_eq!((fewer.push_bytes, fewer.buffer_bytes), (128, 0));
    assert_eq!(fewer.offsets[..3], [24, 32, 40]);
    assert_eq!(param_layout(&[], &c).push_bytes, 24);

    let mut b = Builder::new("many", list, 1, 1);
    let (out, x) = (b.param(1), b.param(14));
    b.global_store(access(64, 1), out, &[x], None);
    let n = b.param(0);
    b.global_store(access(32, 1), out, &[n], None);
    valid(&b.finish(), &c);
}

#[test]
fn what_spirv_has_not_is_an_error() {
    let build = |op: Op, ty: Ty, result: Ty, n: usize| {
        let mut f = All::new(1);
        let x = f.get(ty)[0];
        f.b.emit(op, vec![x; n], &[result]);
        f.b.finish()
    };
    let ops = [
        (Op::Conv(Conv::F32ToF16), Ty::F32, Ty::I32, 1, "F32ToF16"),
        (Op::Conv(Conv::F32ToBf16), Ty::F32, Ty::I32, 1, "F32ToBf16"),
        (Op::Conv(Conv::F32ToTf32), Ty::F32, Ty::F32, 1, "F32ToTf32"),
        (Op::Conv(Conv::F16LoToF32), Ty::I32, Ty::F32, 1, "F16LoToF32"),
        (Op::Conv(Conv::F16HiToF32), Ty::I32, Ty::F32, 1, "F16HiToF32"),
        (Op::FUn(FUn::Exp2Approx), Ty::F32, Ty::F32, 1, "Exp2Approx"),
        (Op::Mma(MmaKind::F16), Ty::I32, Ty::F32, 10, "Mma"),
        (Op::CpAsyncCommit, Ty::I32, Ty::I32, 0, "CpAsyncCommit"),
        (Op::CpAsyncWait(0), Ty::I32, Ty::I32, 0, "CpAsyncWait"),
        (Op::LdMatrix { buf: Shared::new(0), n: 1, trans: false, offset: 0 }, Ty::I32, Ty::I32, 1, "LdMatrix"),
        (Op::Shuffle(crate::thread::Shuffle::Xor(1)), Ty::I32, Ty::I32, 1, "shuffle"),
    ];
    for (op, ty, result, n, name) in ops {
        match emit(&build(op, ty, result, n), &caps(1)) {
            Err(Error::Unsupported { what, .. }) => assert!(what.contains(name), "{what}"),
            other => panic!("{name}: {other:?}"),
        }
    }
    let mut c = caps(1);
    c.f64 = false;
    assert!(matches!(emit(&All::new(1).b.finish(), &c), Err(Error::Unsupported { .. })));
    let mut c = caps(1);
    c.access16 = false;
    let mut b = Builder::new("narrow", params(&[AbiTy::Ptr]), 1, 1);
    let p = b.param(0);
    b.global_load(access(16, 1), Ty::I32, p, None);
    assert!(matches!(emit(&b.finish(), &c), Err(Error::Unsupported { .. })));
}

#[test]
fn emission_takes_linear_time() {
    let build = |n: usize| {
        let mut f = All::new(1);
        let mut v = f.get(Ty::F32)[0];
        for i in 0..n {
            let c = f.b.fconst(Ty::F32, i as f64);
            v = f.b.fbin(FBin::Add, v, c);
        }
        f.store(v);
        f.b.finish()
    };
    let time = |n| {
        let func = build(n);
        let start = std::time::Instant::now();
        let words = emit(&func, &caps(1)).expect("the function is emitted");
        (start.elapsed(), words.len())
    };
    let (_, small) = time(2_000);
    let (elapsed, large) = time(40_000);
    assert!(large > small * 15);
    // Quadratic lookup of as many constants takes minutes.
    assert!(elapsed.as_secs() < 20, "{elapsed:?}");
}

#[test]
fn text_of_a_copy() {
    let mut b = Builder::new("copy", params(&[AbiTy::Ptr, AbiTy::Ptr, AbiTy::I32]), 64, 1);
    let (from, to, n) = (b.param(0), b.param(1), b.param(2));
    let (program, thread) = (b.special(Special::ProgramId(0)), b.special(Special::Thread));
    let first = b.shift_imm(IBin::Shl, program, 6);
    let i = b.add(first, thread);
    let inside = b.icmp_s(Cmp::Lt, i, n);
    let wide = b.conv(Conv::SExt64, i, Ty::I64);
    let bytes = b.mul_imm(wide, 4);
    let (from, to) = (b.add(from, bytes), b.add(to, bytes));
    let zero = b.fconst(Ty::F32, 0.0);
    let v = b.global_load(access(32, 1), Ty::F32, from, Some((inside, &[zero])));
    b.global_store(access(32, 1), to, &v, Some(inside));
    insta::assert_snapshot!(valid(&b.finish(), &caps(1)));
}

#[test]
fn text_of_a_loop() {
    let mut b = Builder::new("power", params(&[AbiTy::Ptr, AbiTy::F32, AbiTy::I32]), 1, 1);
    let (out, x, n) = (b.param(0), b.param(1), b.param(2));
    let (zero, one) = (b.i32(0), b.fconst(Ty::F32, 1.0));
    let c = b.begin_loop(&[zero, one]);
    let more = b.icmp_s(Cmp::Lt, c[0], n);
    let c = b.loop_body(more);
    let (i, y) = (b.add_imm(c[0], 1), b.fbin(FBin::Mul, c[1], x));
    let r = b.end_loop(&[i, y]);
    b.global_store(access(32, 1), out, &[r[1]], None);
    insta::assert_snapshot!(valid(&b.finish(), &caps(1)));
}

#[test]
fn text_of_shared_memory_and_subgroups() {
    let mut b = Builder::new("reverse", params(&[AbiTy::Ptr]), 64, 32);
    let buf = b.shared(SharedBuf { bytes: 128, align: 2, elem_bits: 16, offset: 0 });
    let (out, thread) = (b.param(0), b.special(Special::Thread));
    let (byte, mirror) = (b.shift_imm(IBin::Shl, thread, 1), b.i32(63));
    let mirror = b.sub(mirror, thread);
    let mirror = b.shift_imm(IBin::Shl, mirror, 1);
    b.shared_store(buf, access(16, 1), mirror, &[thread], None);
    b.barrier();
    let v = b.shared_load(buf, access(16, 1), Ty::I32, byte)[0];
    let v = b.shuffle_xor(v, 1);
    let offset = b.conv(Conv::ZExt64, byte, Ty::I64);
    let out = b.add(out, offset);
    b.global_store(access(16, 1), out, &[v], None);
    insta::assert_snapshot!(valid(&b.finish(), &caps(32)));
}
