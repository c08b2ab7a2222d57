use super::fit_registers;
use crate::thread::{AbiParam, AbiTy, Access, Builder, FBin, Function, Op, SharedBuf, Ty, verify};

const WORD: Access = Access { bits: 32, n: 1, offset: 0 };
const N: usize = 16;

fn builder() -> Builder {
    let params = ["x", "y", "z"].map(|name| AbiParam { name: name.into(), ty: AbiTy::Ptr });
    Builder::new("ordered", params.to_vec(), 32, 32)
}

fn at(i: usize) -> Access {
    Access { offset: 4 * i as i32, ..WORD }
}

/// `y[i] = z[i] = x[i] + 1`, tile op by tile op.
fn increments() -> Function {
    let mut b = builder();
    let [x, y, z] = [0, 1, 2].map(|p| b.param(p));
    let loaded: Vec<_> = (0..N).map(|i| b.global_load(at(i), Ty::F32, x, None)[0]).collect();
    let one = b.fconst(Ty::F32, 1.0);
    let sums: Vec<_> = loaded.iter().map(|&v| b.fbin(FBin::Add, v, one)).collect();
    for to in [y, z] {
        for (i, &v) in sums.iter().enumerate() {
            b.global_store(at(i), to, &[v], None);
        }
    }
    b.finish()
}

/// The accesses to memory, as letters in their order.
fn accesses(func: &Function) -> String {
    let mut text = String::new();
    func.walk(func.body, &mut |i| {
        text += match func.insts[i].op {
            Op::GlobalLoad(_) => "l",
            Op::GlobalStore(_) => "S",
            Op::SharedStore(..) => "W",
            Op::SharedLoad(..) => "r",
            Op::Barrier => "|",
            _ => "",
        };
    });
    text
}

#[test]
fn what_fits_stays() {
    let mut func = increments();
    let before = func.clone();
    fit_registers(&mut func, &[0, 1, 2], 100, 100);
    assert_eq!(func, before);
}

#[test]
fn each_store_comes_after_what_it_needs_and_stores_take_turns() {
    let mut func = increments();
    fit_registers(&mut func, &[0, 1, 2], 0, 0);
    verify(&func).unwrap();
    // One load ahead costs no register: a sum takes that of what is added.
    assert_eq!(accesses(&func), format!("lS{}S", "lSS".repeat(N - 1)));
}

#[test]
fn loads_run_as_far_ahead_as_registers_allow() {
    let mut func = increments();
    // Three addresses; loads of three stores beside the sum of one.
    fit_registers(&mut func, &[0, 1, 2], 4, 4);
    verify(&func).unwrap();
    let text = accesses(&func);
    assert!(text.starts_with("lll") && text.contains("lSSl"), "{text}");
}

#[test]
fn accesses_to_the_same_memory_keep_their_order() {
    let mut func = increments();
    fit_registers(&mut func, &[0, 0, 0], 0, 0);
    verify(&func).unwrap();
    assert_eq!(accesses(&func), format!("{}{}", "l".repeat(N), "S".repeat(2 * N)));
    // y may be x, z is not.
    let mut func = increments();
    fit_registers(&mut func, &[0, 0, 1], 0, 0);
    let text = accesses(&func);
    let first_of_y = text.find("lS").unwrap();
    assert_eq!(text[..=first_of_y].matches('l').count(), N, "no load after a store that it may see: {text}");
}

#[test]
fn what_only_the_last_stretch_needs_comes_after_the_barrier() {
    let mut b = builder();
    let buf = b.shared(SharedBuf { bytes: 4 * N as u32, align: 16, elem_bits: 32, offset: 0 });
    let [x, y, z] = [0, 1, 2].map(|p| b.param(p));
    let zero = b.i32(0);
    let exchanged: Vec<_> = (0..N).map(|i| b.global_load(at(i), Ty::F32, x, None)[0]).collect();
    let added: Vec<_> = (0..N).map(|i| b.global_load(at(i), Ty::F32, y, None)[0]).collect();
    let squares: Vec<_> = added.iter().map(|&v| b.fbin(FBin::Mul, v, v)).collect();
    for (i, &v) in exchanged.iter().enumerate() {
        b.shared_store(buf, at(i), zero, &[v], None);
    }
    b.barrier();
    for (i, &s) in squares.iter().enumerate() {
        let other = b.shared_load(buf, at(N - 1 - i), Ty::F32, zero)[0];
        let sum = b.fbin(FBin::Add, s, other);
        b.global_store(at(i), z, &[sum], None);
    }
    let before = b.finish();

    let mut func = before.clone();
    fit_registers(&mut func, &[0, 1, 2], 0, 0);
    verify(&func).unwrap();
    assert_eq!(accesses(&func), format!("{}|{}", "lW".repeat(N), "lrS".repeat(N)));

    // Where z may be y, other threads may have stored what is loaded: the loads stay before the barrier.
    let mut func = before;
    fit_registers(&mut func, &[0, 1, 1], 0, 0);
    verify(&func).unwrap();
    let text = accesses(&func);
    assert_eq!(text.split('|').next().unwrap().matches('l').count(), 2 * N, "{text}");
}

/// `n` stretches of loads and stores of the same memory between barriers, the last one in a loop, and one long one.
fn long(n: usize) -> Function {
    let mut b = builder();
    let [x, y] = [0, 1].map(|p| b.param(p));
    let one = b.fconst(Ty::F32, 1.0);
    let mut sums = Vec::new();
    for round in 0..n {
        for i in 0..4 {
            let v = b.global_load(at(4 * round + i), Ty::F32, x, None)[0];
            let sum = b.fbin(FBin::Add, v, one);
            b.global_store(at(4 * round + i), y, &[sum], None);
            sums.push(sum);
        }
        b.barrier();
    }
    for (i, &v) in sums.iter().enumerate() {
        b.global_store(at(i), y, &[v], None);
    }
    b.finish()
}

#[test]
fn ordering_takes_linear_time() {
    let time = |n| {
        let runs = (0..3).map(|_| {
            let mut func = long(n);
            let start = std::time::Instant::now();
            fit_registers(&mut func, &[0, 0, 0], 8, 8);
            start.elapsed()
        });
        runs.min().unwrap()
    };
    let (small, large) = (time(500), time(4000));
    // Eight times as much; 64 times as long if each stretch looked at all others, or each store at all before it.
    assert!(large < small * 24, "{small:?} for 500 stretches, {large:?} for 4000");
}
