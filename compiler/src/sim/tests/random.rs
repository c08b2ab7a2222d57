//! Functions broken at random: the verifier refuses them or they run; nothing panics.

use super::{Memory, Random, SimOptions, alloc_words, builder, element, run};
use crate::entity::Entity;
use crate::thread::{
    AbiTy, Access, Block, Cmp, Function, IBin, InstId, MmaKind, Op, Shared, SharedBuf, Special, Ty, Value, verify,
};

/// A function with every kind of op.
fn whole() -> Function {
    let mut b = builder(&[("x", AbiTy::Ptr), ("n", AbiTy::I32)], 64, 32);
    let buf = b.shared(SharedBuf { bytes: 1024, align: 16, elem_bits: 32, offset: 0 });
    let (x, n, t) = (b.param(0), b.param(1), b.special(Special::Thread));
    let (address, byte) = (element(&mut b, x, t, 16), b.shift_imm(IBin::Shl, t, 4));
    let inside = b.icmp_s(Cmp::Lt, t, n);
    let quad = Access { bits: 32, n: 4, offset: 0 };
    let v = b.global_load(quad, Ty::I32, address, Some((inside, &[t; 4])));
    b.shared_store(buf, quad, byte, &v, None);
    b.barrier();
    let m = b.emit(Op::LdMatrix { buf, n: 4, trans: false, offset: 0 }, vec![byte], &[Ty::I32; 4]);
    let d = b.mma(MmaKind::S8, &m, &m[..2], &v);
    b.barrier();
    b.emit(Op::CpAsync { buf, bytes: 16, shared_offset: 0, global_offset: 0 }, vec![byte, address, inside], &[]);
    b.emit(Op::CpAsyncCommit, vec![], &[]);
    b.emit(Op::CpAsyncWait(0), vec![], &[]);
    let s = b.shuffle_xor(d[0], 5);
    b.begin_if(inside);
    let w = b.shared_load(buf, quad, Ty::I32, byte);
    b.begin_else(&[w[1]]);
    let r = b.end_if(&[s])[0];
    let carried = b.begin_loop(&[t, r]);
    let go_on = b.icmp_s(Cmp::Lt, carried[0], n);
    let carried = b.loop_body(go_on);
    let next = b.add_imm(carried[0], 3);
    let sum = b.add(carried[1], next);
    let out = b.end_loop(&[next, sum]);
    b.global_store(quad, address, &[out[1], s, r, t], Some(inside));
    b.finish()
}

/// Changes one thing at random.
fn spoil(f: &mut Function, random: &mut Random) {
    // One beyond the end now and then.
    let mut any = |n: usize| random.below(n as u64 + 1) as usize;
    let inst = InstId::new(any(f.insts.len() - 1));
    let block = Block::new(any(f.blocks.len() - 1));
    let (value, other) = (Value::new(any(f.values.len())), InstId::new(any(f.insts.len())));
    let (to, place, kind) = (Block::new(any(f.blocks.len())), any(5), any(9));
    let ty = [Ty::Pred, Ty::I32, Ty::I64, Ty::F32, Ty::F64][any(4)];
    let put = |list: &mut Vec<Value>| match list.get_mut(place) {
        Some(v) => *v = value,
        None => list.push(value),
    };
    match kind {
        0 => put(&mut f.insts[inst].operands),
        1 => put(&mut f.insts[inst].results),
        2 => _ = f.insts[inst].operands.pop(),
        3 => _ = f.insts[inst].results.pop(),
        4 => f.insts[inst].blocks.push(to),
        5 => put(&mut f.blocks[block].params),
        6 if place < f.blocks[block].insts.len() => f.blocks[block].insts[place] = other,
        7 if value.index() < f.values.len() => f.values[value].ty = ty,
        8 if other.index() < f.insts.len() => f.insts[inst].op = f.insts[other].op.clone(),
        _ => {
            let access = Access { bits: [8, 16, 32, 64, 0, 128][place], n: place as u8, offset: i32::MIN };
            f.insts[inst].op = [
                Op::SharedLoad(Shared::new(place), access),
                Op::GlobalStore(access),
                Op::Mma(MmaKind::F16),
                Op::Param(place as u32),
                Op::LdMatrix { buf: Shared::new(0), n: place as u8, trans: true, offset: i32::MAX },
                Op::IBin(IBin::DivU),
            ][place]
                .clone();
        }
    }
}

#[test]
fn nothing_panics_whatever_the_function() {
    let func = whole();
    assert_eq!(verify(&func), Ok(()));
    let options = SimOptions { step_limit: 500, ..SimOptions::default() };
    let simulate = |f: &Function| {
        let mut memory = Memory::new();
        let x = alloc_words(&mut memory, 0..256);
        run(f, &[x, 40], &mut memory, [2, 1, 1], &options)
    };
    simulate(&func).expect("it makes no mistake");
    let mut random = Random(3);
    let (mut refused, mut mistaken, mut ran) = (0, 0, 0);
    for _ in 0..20_000 {
        let mut f = func.clone();
        for _ in 0..=random.below(2) {
            spoil(&mut f, &mut random);
        }
        match simulate(&f) {
            Ok(_) => ran += 1,
            Err(crate::Error::Verify { .. }) => refused += 1,
            Err(_) => mistaken += 1,
        }
    }
    assert!(refused > 500 && mistaken > 50 && ran > 50, "{refused} refused, {mistaken} mistaken, {ran} ran");
}
