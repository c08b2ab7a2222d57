//! Every op is assembled by ptxas; what must not get slower (copies in loops, spills) is asserted.

use super::emit;
use crate::target::Caps;
use crate::thread::{
    AbiParam, AbiTy, Access, Builder, Cmp, Conv, FBin, FUn, Function, IBin, MmaKind, Op, SharedBuf, Shuffle, Special,
    Ty, Value,
};
use std::path::PathBuf;
use std::process::Command;

/// Where ptxas is: `TILEWRIGHT_PTXAS`, then `PATH`, then `target/tools`.
fn ptxas() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("TILEWRIGHT_PTXAS") {
        return Some(path.into());
    }
    let in_path = std::env::var_os("PATH")
        .and_then(|path| std::env::split_paths(&path).map(|dir| dir.join("ptxas")).find(|file| file.is_file()));
    in_path.or_else(|| find(concat!(env!("CARGO_MANIFEST_DIR"), "/../target/tools").into(), 8))
}

fn find(dir: PathBuf, depth: u32) -> Option<PathBuf> {
    let entries: Vec<_> = std::fs::read_dir(dir).ok()?.flatten().map(|e| e.path()).collect();
    let here = entries.iter().find(|p| p.is_file() && p.file_name().is_some_and(|n| n == "ptxas")).cloned();
    here.or_else(|| entries.into_iter().filter(|p| p.is_dir() && depth > 0).find_map(|p| find(p, depth - 1)))
}

/// Assembles a function for several architectures and checks that nothing spills; gives the PTX for sm_80.
fn assemble(func: &Function) -> String {
    let tool = ptxas();
    if tool.is_none() {
        assert_ne!(std::env::var("TILEWRIGHT_REQUIRE_TOOLS").as_deref(), Ok("1"), "ptxas not found");
        eprintln!("skipped assembling: no ptxas (set TILEWRIGHT_PTXAS)");
    }
    for sm in [80, 90, 120] {
        let caps = Caps::ptx(sm);
        let text = emit(func, &caps).unwrap();
        if let Some(tool) = &tool {
            let dir = tempfile::tempdir().unwrap();
            let file = dir.path().join("kernel.ptx");
            std::fs::write(&file, &text).unwrap();
            let mut run = Command::new(tool);
            run.arg("-v").arg(format!("-arch={}", caps.name)).arg(&file).arg("-o").arg(dir.path().join("kernel.cubin"));
            let out = run_of(&mut run);
            assert!(out.contains("0 bytes spill stores, 0 bytes spill loads"), "{}\n{out}\n{text}", caps.name);
        }
    }
    emit(func, &Caps::ptx(80)).unwrap()
}

fn run_of(command: &mut Command) -> String {
    let out = command.output().unwrap();
    let text = String::from_utf8_lossy(&out.stderr).into_owned() + &String::from_utf8_lossy(&out.stdout);
    let file = command.get_args().nth(2).and_then(|f| std::fs::read_to_string(f).ok()).unwrap_or_default();
    assert!(out.status.success(), "{command:?}\n{text}\n{file}");
    text
}

fn param(name: &str, ty: AbiTy) -> AbiParam {
    AbiParam { name: name.into(), ty }
}

fn kernel(params: &[AbiTy]) -> Builder {
    let params = params.iter().enumerate().map(|(i, &ty)| param(&format!("x{i}"), ty)).collect();
    Builder::new("kernel", params, 128, 32)
}

fn access(bits: u8, n: u8, offset: i32) -> Access {
    Access { bits, n, offset }
}

/// Stores values of any type one after another, so that ptxas keeps what computes them.
struct Sink {
    base: Value,
    next: i32,
}

impl Sink {
    fn put(&mut self, b: &mut Builder, v: Value) {
        let v = if b.ty(v) == Ty::Pred { b.conv(Conv::PredToI32, v, Ty::I32) } else { v };
        let bits = b.ty(v).bits() as u8;
        b.global_store(access(bits, 1, self.next), self.base, &[v], None);
        self.next += 8;
    }
}

const INTEGERS: [IBin; 19] = [
    IBin::Add,
    IBin::Sub,
    IBin::Mul,
    IBin::MulHiS,
    IBin::MulHiU,
    IBin::DivS,
    IBin::DivU,
    IBin::RemS,
    IBin::RemU,
    IBin::MinS,
    IBin::MinU,
    IBin::MaxS,
    IBin::MaxU,
    IBin::And,
    IBin::Or,
    IBin::Xor,
    IBin::Shl,
    IBin::ShrS,
    IBin::ShrU,
];
const FLOATS: [FBin; 8] =
    [FBin::Add, FBin::Sub, FBin::Mul, FBin::Div, FBin::Min, FBin::Max, FBin::MinNan, FBin::MaxNan];
const COMPARES: [Cmp; 6] = [Cmp::Eq, Cmp::Ne, Cmp::Lt, Cmp::Le, Cmp::Gt, Cmp::Ge];

#[test]
fn integer_ops_assemble() {
    let mut b = kernel(&[AbiTy::Ptr, AbiTy::I32, AbiTy::I32, AbiTy::I64, AbiTy::I64]);
    let p: Vec<_> = (0..5).map(|i| b.param(i)).collect();
    let mut sink = Sink { base: p[0], next: 0 };
    for (x, y) in [(p[1], p[2]), (p[3], p[4])] {
        let ty = b.ty(x);
        let five = b.iconst(ty, 5);
        for op in INTEGERS {
            for (x, y) in [(x, y), (x, five), (five, y)] {
                let v = b.ibin(op, x, y);
                sink.put(&mut b, v);
            }
        }
        for c in COMPARES {
            for v in [b.icmp_s(c, x, y), b.icmp_u(c, x, five), b.icmp_u(c, five, y)] {
                sink.put(&mut b, v);
            }
        }
        for (c, to) in [(Conv::SToF, Ty::F32), (Conv::UToF, Ty::F32), (Conv::SToF, Ty::F64), (Conv::UToF, Ty::F64)] {
            let v = b.conv(c, x, to);
            sink.put(&mut b, v);
        }
    }
    for (c, x, to) in [
        (Conv::SExt64, p[1], Ty::I64),
        (Conv::ZExt64, p[1], Ty::I64),
        (Conv::Trunc32, p[3], Ty::I32),
        (Conv::SExt8, p[1], Ty::I32),
        (Conv::SExt16, p[1], Ty::I32),
        (Conv::Bitcast, p[1], Ty::F32),
        (Conv::Bitcast, p[3], Ty::F64),
        (Conv::F16LoToF32, p[1], Ty::F32),
        (Conv::F16HiToF32, p[1], Ty::F32),
    ] {
        let v = b.conv(c, x, to);
        sink.put(&mut b, v);
    }
    let v = b.pack16(p[1], p[2]);
    sink.put(&mut b, v);
    // Truth values: logic, selection and constants.
    let (lt, eq) = (b.icmp_s(Cmp::Lt, p[1], p[2]), b.icmp_s(Cmp::Eq, p[3], p[4]));
    let yes = b.pred(true);
    for v in [b.and(lt, eq), b.or(lt, eq), b.xor(lt, eq), b.not(lt), b.select(lt, eq, yes), b.select(eq, lt, eq)] {
        sink.put(&mut b, v);
    }
    for v in [b.select(lt, p[1], p[2]), b.select(lt, p[3], p[4])] {
        sink.put(&mut b, v);
    }
    for special in [Special::Thread, Special::Lane, Special::Warp, Special::ProgramId(1), Special::NumPrograms(2)] {
        let v = b.special(special);
        sink.put(&mut b, v);
    }
    assemble(&b.finish());
}

#[test]
fn float_ops_assemble() {
    let mut b = kernel(&[AbiTy::Ptr, AbiTy::F32, AbiTy::F32, AbiTy::F64, AbiTy::F64]);
    let p: Vec<_> = (0..5).map(|i| b.param(i)).collect();
    let mut sink = Sink { base: p[0], next: 0 };
    for (x, y) in [(p[1], p[2]), (p[3], p[4])] {
        let ty = b.ty(x);
        let c = b.fconst(ty, -1.5);
        let mut all: Vec<_> =
            FLOATS.iter().flat_map(|&op| [b.fbin(op, x, y), b.fbin(op, x, c), b.fbin(op, c, y)]).collect();
        all.extend([b.fma(x, y, c), b.fma(x, c, y), b.fma(x, y, x)]);
        for op in [FUn::Neg, FUn::Abs, FUn::Sqrt, FUn::Floor, FUn::Ceil, FUn::Trunc, FUn::RoundEven] {
            all.push(b.fun(op, x));
        }
        all.extend(COMPARES.iter().flat_map(|&c2| [b.fcmp(c2, x, y), b.fcmp(c2, x, c)]));
        for op in [Conv::FToS, Conv::FToU] {
            all.extend([b.conv(op, x, Ty::I32), b.conv(op, x, Ty::I64)]);
        }
        let less = b.fcmp(Cmp::Lt, x, y);
        all.push(b.select(less, x, c));
        all.iter().for_each(|&v| sink.put(&mut b, v));
    }
    for op in [FUn::Exp2Approx, FUn::Log2Approx, FUn::RcpApprox, FUn::RsqrtApprox] {
        let v = b.fun(op, p[1]);
        sink.put(&mut b, v);
    }
    for (c, x, to) in [
        (Conv::F32ToF64, p[1], Ty::F64),
        (Conv::F64ToF32, p[3], Ty::F32),
        (Conv::F32ToF16, p[1], Ty::I32),
        (Conv::F32ToBf16, p[1], Ty::I32),
        (Conv::F32ToTf32, p[1], Ty::I32),
        (Conv::Bitcast, p[1], Ty::I32),
        (Conv::Bitcast, p[3], Ty::I64),
    ] {
        let v = b.conv(c, x, to);
        sink.put(&mut b, v);
    }
    let text = assemble(&b.finish());
    assert!(!text.contains("\tadd.f32") && !text.contains("\tmul.f32"), "ptxas would contract these");
}

#[test]
fn memory_ops_assemble() {
    let mut b = kernel(&[AbiTy::Ptr, AbiTy::I32]);
    let (base, x) = (b.param(0), b.param(1));
    let buf = b.shared(SharedBuf { bytes: 4096, align: 16, elem_bits: 8, offset: 1024 });
    let thread = b.special(Special::Thread);
    let byte = b.shift_imm(IBin::Shl, thread, 4);
    let zero = b.i32(0);
    let guard = b.icmp_s(Cmp::Lt, thread, x);
    for ty in [Ty::I32, Ty::I64, Ty::F32, Ty::F64] {
        for n in [1, 2, 4] {
            for bits in [8, 16, 32, 64] {
                let fits = u32::from(bits) * u32::from(n) <= 128;
                let suits = if bits < 32 { ty == Ty::I32 } else { u32::from(bits) == ty.bits() };
                if !(fits && suits) {
                    continue;
                }
                let a = access(bits, n, -32);
                let other = b.constant(ty, 7);
                let others = vec![other; n.into()];
                let plain = b.global_load(a, ty, base, None);
                let guarded = b.global_load(a, ty, base, Some((guard, &others)));
                b.shared_store(buf, access(bits, n, 16), byte, &plain, None);
                b.shared_store(buf, access(bits, n, 0), zero, &guarded, Some(guard));
                b.barrier();
                let back = b.shared_load(buf, a, ty, byte);
                b.global_store(access(bits, n, 64), base, &back, None);
                b.global_store(access(bits, n, 128), base, &back, Some(guard));
                b.global_store(access(bits, n, 256), base, &others, None);
                b.shared_store(buf, access(bits, n, 16), byte, &others, None);
            }
        }
    }
    for bytes in [4, 8, 16] {
        let op = Op::CpAsync { buf, bytes, shared_offset: 16, global_offset: 32 };
        b.emit(op.clone(), vec![byte, base], &[]);
        b.emit(op, vec![byte, base, guard], &[]);
        b.emit(Op::CpAsyncCommit, vec![], &[]);
    }
    b.emit(Op::CpAsyncWait(1), vec![], &[]);
    b.emit(Op::WarpBarrier, vec![], &[]);
    let mut sink = Sink { base, next: 512 };
    for n in [1, 2, 4] {
        for trans in [false, true] {
            let op = Op::LdMatrix { buf, n, trans, offset: 64 };
            for v in b.emit(op, vec![byte], &vec![Ty::I32; n.into()]) {
                sink.put(&mut b, v);
            }
        }
    }
    let f = b.bitcast(x, Ty::F32);
    for v in [b.shuffle_xor(x, 16), b.shuffle_xor(f, 1), b.shuffle_index(x, zero), b.shuffle_index(f, thread)] {
        sink.put(&mut b, v);
    }
    assert_eq!(b.emit(Op::Shuffle(Shuffle::Xor(2)), vec![x], &[Ty::I32]).len(), 1);
    assemble(&b.finish());
}

/// A loop over `n` tensor-core products with accumulators of type `ty`.
fn mma_loop(kind: MmaKind, ty: Ty, n: usize) -> Function {
    let mut b = kernel(&[AbiTy::Ptr, AbiTy::I32]);
    let (base, count) = (b.param(0), b.param(1));
    let buf = b.shared(SharedBuf { bytes: 4096, align: 16, elem_bits: 16, offset: 0 });
    let lane = b.special(Special::Lane);
    let byte = b.shift_imm(IBin::Shl, lane, 4);
    let zero = b.constant(ty, 0);
    let mut inits = vec![zero; 4 * n];
    inits.push(count);
    let carried = b.begin_loop(&inits);
    let none = b.i32(0);
    let go_on = b.icmp_s(Cmp::Gt, carried[4 * n], none);
    let carried = b.loop_body(go_on);
    let a = b.emit(Op::LdMatrix { buf, n: 4, trans: false, offset: 0 }, vec![byte], &[Ty::I32; 4]);
    let mut next = vec![];
    for i in 0..n {
        let op = Op::LdMatrix { buf, n: 2, trans: true, offset: 64 * i as i32 };
        let bb = b.emit(op, vec![byte], &[Ty::I32; 2]);
        let once = b.mma(kind, &a, &bb, &carried[4 * i..4 * i + 4]);
        next.extend(b.mma(kind, &a, &bb, &once));
    }
    next.push(b.add_imm(carried[4 * n], -1));
    let sums = b.end_loop(&next);
    for i in 0..n {
        b.global_store(access(32, 4, 16 * i as i32), base, &sums[4 * i..4 * i + 4], None);
    }
    b.finish()
}

#[test]
fn accumulators_stay_in_place() {
    for (kind, ty) in [
        (MmaKind::F16, Ty::F32),
        (MmaKind::Bf16, Ty::F32),
        (MmaKind::Tf32, Ty::F32),
        (MmaKind::S8, Ty::I32),
        (MmaKind::U8, Ty::I32),
    ] {
        let text = assemble(&mma_loop(kind, ty, 4));
        let (_, rest) = text.split_once("$loop_1:").unwrap();
        let (inside, _) = rest.split_once("$endloop_2:").unwrap();
        assert_eq!(inside.matches("mma.sync").count(), 8);
        assert!(!inside.contains("mov."), "nothing is copied in the loop:\n{text}");
    }
}

#[test]
fn loop_with_accumulators_as_text() {
    insta::assert_snapshot!(emit(&mma_loop(MmaKind::Bf16, Ty::F32, 1), &Caps::ptx(90)).unwrap());
}

/// Runs the integer control flow of PTX text: `mov`, `add`, `setp`, `bra` and stores of `%r` registers.
fn run_text(text: &str, param: i64) -> Vec<i64> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let mut registers = std::collections::HashMap::<String, i64>::new();
    let mut stored = vec![];
    let mut at = lines.iter().position(|l| *l == "{").unwrap();
    for _ in 0..10_000 {
        let line = lines[at].trim_end_matches(';');
        at += 1;
        let (guard, line) = match line.strip_prefix('@') {
            Some(rest) => rest.split_once(' ').map(|(p, l)| (Some(p), l)).unwrap(),
            None => (None, line),
        };
        let (op, operands) = line.split_once(' ').unwrap_or((line, ""));
        let operands: Vec<_> = operands.split(", ").collect();
        let value = |s: &str| s.parse().unwrap_or_else(|_| registers.get(s).copied().unwrap_or(0));
        if guard.is_some_and(|p| (value(p.trim_start_matches('!')) != 0) == p.starts_with('!')) {
            continue;
        }
        let result = match op.split('.').next().unwrap() {
            "ret" => return stored,
            "ld" => param,
            "mov" => value(operands[1]),
            "add" => value(operands[1]) + value(operands[2]),
            "setp" => i64::from(match op.split('.').nth(1).unwrap() {
                "gt" => value(operands[1]) > value(operands[2]),
                "lt" => value(operands[1]) < value(operands[2]),
                other => panic!("{other}"),
            }),
            "st" => {
                stored.push(value(operands[1]));
                continue;
            }
            "bra" => {
                at = lines.iter().position(|l| l.strip_suffix(':') == Some(operands[0])).unwrap();
                continue;
            }
            _ => continue,
        };
        registers.insert(operands[0].to_owned(), result);
    }
    panic!("does not end:\n{text}");
}

#[test]
fn carried_values_move_at_once() {
    // a, b = b, a + b, and a third value that keeps the first's last: Fibonacci numbers with a rotation.
    let mut b = kernel(&[AbiTy::I32, AbiTy::Ptr]);
    let (count, base) = (b.param(0), b.param(1));
    let (zero, one) = (b.i32(0), b.i32(1));
    let c = b.begin_loop(&[zero, one, zero, one, count]);
    let go_on = b.icmp_s(Cmp::Gt, c[4], zero);
    let c = b.loop_body(go_on);
    let sum = b.add(c[0], c[1]);
    let left = b.add_imm(c[4], -1);
    let r = b.end_loop(&[c[1], sum, c[3], c[2], left]);
    for (i, &v) in r.iter().enumerate() {
        b.global_store(access(32, 1, 4 * i as i32), base, &[v], None);
    }
    let text = assemble(&b.finish());
    assert_eq!(run_text(&text, 11), [89, 144, 1, 0, 0], "{text}");
    assert_eq!(run_text(&text, 0), [0, 1, 0, 1, 0], "{text}");
}

#[test]
fn values_that_outlive_the_loop_are_kept() {
    // The initial value is read in and after the loop, the old carried value after the new one is made, and an `if`
    // in the loop gives either the old or a new value.
    let mut b = kernel(&[AbiTy::I32, AbiTy::Ptr]);
    let (count, base) = (b.param(0), b.param(1));
    let start = b.add_imm(count, 100);
    let zero = b.i32(0);
    let c = b.begin_loop(&[start, zero, count]);
    let go_on = b.icmp_s(Cmp::Gt, c[2], zero);
    let c = b.loop_body(go_on);
    let new = b.add(c[0], start);
    let total = b.add(c[1], c[0]);
    let five = b.i32(5);
    let small = b.icmp_s(Cmp::Lt, c[2], five);
    b.begin_if(small);
    let more = b.add_imm(total, 1000);
    b.begin_else(&[more, c[0]]);
    let r = b.end_if(&[total, new]);
    let left = b.add_imm(c[2], -1);
    let r = b.end_loop(&[r[1], r[0], left]);
    for (i, &v) in [r[0], r[1], start].iter().enumerate() {
        b.global_store(access(32, 1, 4 * i as i32), base, &[v], None);
    }
    let text = assemble(&b.finish());
    let expected = |count: i64| {
        let start = count + 100;
        let (mut x, mut sum) = (start, 0);
        for left in (1..=count).rev() {
            sum += x;
            if left < 5 {
                sum += 1000;
            } else {
                x += start;
            }
        }
        vec![x, sum, start]
    };
    for count in [0, 1, 3, 5, 9] {
        assert_eq!(run_text(&text, count), expected(count), "{text}");
    }
}

#[test]
fn nested_loops_keep_their_values() {
    // for i in count..0 { for j in i..0 { s += j }; t += s }
    let mut b = kernel(&[AbiTy::I32, AbiTy::Ptr]);
    let (count, base) = (b.param(0), b.param(1));
    let zero = b.i32(0);
    let o = b.begin_loop(&[count, zero, zero]);
    let go_on = b.icmp_s(Cmp::Gt, o[0], zero);
    let o = b.loop_body(go_on);
    let i = b.begin_loop(&[o[0], o[1]]);
    let inner = b.icmp_s(Cmp::Gt, i[0], zero);
    let i = b.loop_body(inner);
    let s = b.add(i[1], i[0]);
    let j = b.add_imm(i[0], -1);
    let i = b.end_loop(&[j, s]);
    let t = b.add(o[2], i[1]);
    let next = b.add_imm(o[0], -1);
    let o = b.end_loop(&[next, i[1], t]);
    for (k, &v) in o.iter().enumerate() {
        b.global_store(access(32, 1, 4 * k as i32), base, &[v], None);
    }
    let text = assemble(&b.finish());
    let (mut s, mut t) = (0, 0);
    for i in (1..=6).rev() {
        s += i * (i + 1) / 2;
        t += s;
    }
    assert_eq!(run_text(&text, 6), [0, s, t], "{text}");
}

#[test]
fn pairs_of_conversions_are_one_instruction() {
    let mut b = kernel(&[AbiTy::Ptr, AbiTy::F32, AbiTy::F32]);
    let (base, x, y) = (b.param(0), b.param(1), b.param(2));
    let mut sink = Sink { base, next: 0 };
    for conv in [Conv::F32ToF16, Conv::F32ToBf16] {
        let (lo, hi) = (b.conv(conv, x, Ty::I32), b.conv(conv, y, Ty::I32));
        let v = b.pack16(lo, hi);
        sink.put(&mut b, v);
    }
    let text = assemble(&b.finish());
    assert!(text.contains("cvt.rn.f16x2.f32 %r") && text.contains("cvt.rn.bf16x2.f32 %r"), "{text}");
    assert!(text.contains(", %f1, %f0;") && !text.contains("prmt"), "high operand first:\n{text}");
    assert_eq!(text.matches("cvt.rn").count(), 2, "the single conversions are not printed:\n{text}");
}

#[test]
fn other_targets_are_refused() {
    let b = kernel(&[]);
    let func = b.finish();
    assert!(emit(&func, &Caps::opencl("x", 128, 0, true)).is_err());
    assert!(emit(&Builder::new("k", vec![], 64, 1).finish(), &Caps::ptx(80)).is_err());
}
