//! Control flow, memory of every width, shared memory, barriers, shuffles, places and parameters.

use super::{access, bytes, caps, gpu, launch, launch_at, params, u32s};
use tilewright_compiler::thread::{AbiTy, Access, Builder, Cmp, Conv, FBin, IBin, Op, SharedBuf, Special, Ty, Value};

/// The address of element `i` of `size` bytes.
fn element(b: &mut Builder, base: Value, i: Value, size: i64) -> Value {
    let wide = b.conv(Conv::ZExt64, i, Ty::I64);
    let offset = b.mul_imm(wide, size);
    b.add(base, offset)
}

fn store32(b: &mut Builder, base: Value, i: Value, v: Value) {
    let address = element(b, base, i, 4);
    b.global_store(access(32, 1), address, &[v], None);
}

#[test]
fn programs_know_their_place() {
    let Some(gpu) = gpu() else { return };
    let mut b = Builder::new("place", params(&[AbiTy::Ptr]), 2, 1);
    let out = b.param(0);
    let id = [0, 1, 2].map(|axis| b.special(Special::ProgramId(axis)));
    let num = [0, 1, 2].map(|axis| b.special(Special::NumPrograms(axis)));
    let base = [10, 20, 30];
    let [x, y, z] = [0, 1, 2].map(|k| b.add_imm(id[k], -base[k]));
    // ((z * ny + y) * nx + x) * 2 + thread, rows of 6.
    let mut row = b.mul(z, num[1]);
    row = b.add(row, y);
    row = b.mul(row, num[0]);
    row = b.add(row, x);
    row = b.mul_imm(row, 2);
    let thread = b.special(Special::Thread);
    row = b.add(row, thread);
    row = b.mul_imm(row, 6);
    for (k, v) in (0..).zip(id.into_iter().chain(num)) {
        let at = b.add_imm(row, k);
        store32(&mut b, out, at, v);
    }
    let func = b.finish();
    let grid = [3, 4, 2];
    let out = gpu.buffer(&vec![0; 3 * 4 * 2 * 2 * 6 * 4]);
    launch_at(&gpu, &caps(&gpu), &func, &[out.address], grid, base.map(|x| x as u32));
    let got = u32s(&gpu.take(out));
    for (i, row) in got.chunks(6).enumerate() {
        let p = i as u32 / 2;
        assert_eq!(row, [10 + p % 3, 20 + p / 3 % 4, 30 + p / 12, 3, 4, 2], "row {i}");
    }
}

#[test]
fn parameters_of_every_type_arrive_both_ways() {
    let Some(gpu) = gpu() else { return };
    // 6 parameters fit the push constants, 60 do not.
    for repeat in [1, 12] {
        let mut types = vec![AbiTy::Ptr];
        let mut args = vec![];
        for i in 0..repeat {
            types.extend([AbiTy::I32, AbiTy::F64, AbiTy::F32, AbiTy::I64, AbiTy::I32]);
            let float = f32::to_bits(1.5 + i as f32).into();
            args.extend([0xffff_fff0 + i, f64::to_bits(-0.25 * i as f64), float, 0x1234_5678_9abc_0000 + i, 7 * i]);
        }
        let mut b = Builder::new("parameters", params(&types), 1, 1);
        let out = b.param(0);
        for i in 1..types.len() as u32 {
            let v = b.param(i);
            let to = b.add_imm(out, (i as i64 - 1) * 8);
            b.global_store(access(b.ty(v).bits() as u8, 1), to, &[v], None);
        }
        let out = gpu.buffer(&vec![0; args.len() * 8]);
        let all: Vec<u64> = [out.address].into_iter().chain(args.iter().copied()).collect();
        launch(&gpu, &b.finish(), &all, [1, 1, 1]);
        let got = gpu.take(out);
        let want: Vec<u8> = args.iter().flat_map(|a| a.to_le_bytes()).collect();
        assert_eq!(got, want);
    }
}

#[test]
fn loops_and_ifs_diverge() {
    let Some(gpu) = gpu() else { return };
    let threads = 64;
    let mut b = Builder::new("collatz", params(&[AbiTy::Ptr]), threads, 1);
    let (out, thread) = (b.param(0), b.special(Special::Thread));
    let (start, zero) = (b.add_imm(thread, 1), b.i32(0));
    // Steps of the Collatz sequence, its greatest number, and a Fibonacci pair swapped on the way.
    let one = b.i32(1);
    let c = b.begin_loop(&[start, zero, start, zero, one]);
    let go_on = b.icmp_s(Cmp::Gt, c[0], one);
    let c = b.loop_body(go_on);
    let odd = b.and_imm(c[0], 1);
    let odd = b.icmp_u(Cmp::Ne, odd, zero);
    b.begin_if(odd);
    let up = b.mul_imm(c[0], 3);
    let up = b.add_imm(up, 1);
    b.begin_else(&[up]);
    let down = b.shift_imm(IBin::ShrU, c[0], 1);
    let next = b.end_if(&[down])[0];
    // No second block: the greatest so far.
    let above = b.icmp_s(Cmp::Gt, next, c[2]);
    b.begin_if(above);
    b.begin_else(&[next]);
    let greatest = b.end_if(&[c[2]])[0];
    let (steps, sum) = (b.add_imm(c[1], 1), b.add(c[3], c[4]));
    let r = b.end_loop(&[next, steps, greatest, c[4], sum]);
    let row = b.mul_imm(thread, 3);
    for (k, v) in [r[1], r[2], r[3]].into_iter().enumerate() {
        let at = b.add_imm(row, k as i64);
        store32(&mut b, out, at, v);
    }
    let out = gpu.buffer(&vec![0; threads as usize * 12]);
    launch(&gpu, &b.finish(), &[out.address], [1, 1, 1]);
    let got = u32s(&gpu.take(out));
    for t in 0..threads {
        let (mut n, mut steps, mut greatest, mut pair) = (t + 1, 0, t + 1, (0u32, 1u32));
        while n > 1 {
            n = if n % 2 == 1 { 3 * n + 1 } else { n / 2 };
            (steps, greatest, pair) = (steps + 1, greatest.max(n), (pair.1, pair.0.wrapping_add(pair.1)));
        }
        assert_eq!(got[t as usize * 3..][..3], [steps, greatest, pair.0], "thread {t}");
    }
}

#[test]
fn global_accesses_of_every_width() {
    let Some(gpu) = gpu() else { return };
    let threads = 32usize;
    for (bits, n) in [(8, 1), (8, 2), (8, 4), (16, 1), (16, 2), (16, 4), (32, 1), (32, 2), (32, 4), (64, 1), (64, 2)] {
        let size = usize::from(bits) / 8 * usize::from(n);
        let types: &[Ty] = match bits {
            64 => &[Ty::I64, Ty::F64],
            32 => &[Ty::I32, Ty::F32],
            _ => &[Ty::I32],
        };
        for &ty in types {
            // Copies the even elements of `from + size`, and sees the others as -1; `wide` gets the registers whole.
            let mut b = Builder::new("copy", params(&[AbiTy::Ptr; 3]), threads as u32, 1);
            let (from, to, wide, thread) = (b.param(0), b.param(1), b.param(2), b.special(Special::Thread));
            let bit = b.and_imm(thread, 1);
            let zero = b.i32(0);
            let even = b.icmp_u(Cmp::Eq, bit, zero);
            // Where the guard is false the address is not one.
            let good = element(&mut b, from, thread, size as i64);
            let null = b.i64(64);
            let address = b.select(even, good, null);
            let other = b.constant(ty, u64::MAX);
            let a = Access { bits, n, offset: size as i32 };
            let v = b.global_load(a, ty, address, Some((even, &vec![other; n.into()])));
            let good = element(&mut b, to, thread, size as i64);
            let address = b.select(even, good, null);
            b.global_store(access(bits, n), address, &v, Some(even));
            let reg = ty.bits() as u8;
            let row = element(&mut b, wide, thread, i64::from(n) * i64::from(reg) / 8);
            for (k, &v) in v.iter().enumerate() {
                let a = Access { bits: reg, n: 1, offset: k as i32 * i32::from(reg) / 8 };
                b.global_store(a, row, &[v], None);
            }
            let func = b.finish();
            let input: Vec<u8> = (0..(threads + 1) * size).map(|i| (i * 37 + 129) as u8).collect();
            let (from, to) = (gpu.buffer(&input), gpu.buffer(&vec![0x55; threads * size]));
            let reg = usize::from(reg) / 8;
            let wide = gpu.buffer(&vec![0x77; threads * usize::from(n) * reg]);
            launch(&gpu, &func, &[from.address, to.address, wide.address], [1, 1, 1]);
            gpu.take(from);
            let (to, wide) = (gpu.take(to), gpu.take(wide));
            let each = usize::from(bits) / 8;
            for t in 0..threads {
                let source = &input[(t + 1) * size..][..size];
                let want = if t % 2 == 0 { source.to_vec() } else { vec![0x55; size] };
                assert_eq!(to[t * size..][..size], want, "{n} x {bits} bits of {ty}, thread {t}");
                for k in 0..usize::from(n) {
                    let mut want = vec![if t % 2 == 0 { 0 } else { 0xff }; reg];
                    if t % 2 == 0 {
                        want[..each].copy_from_slice(&source[k * each..][..each]);
                    }
                    let got = &wide[(t * usize::from(n) + k) * reg..][..reg];
                    assert_eq!(got, want, "{n} x {bits} bits of {ty}, thread {t}, register {k}");
                }
            }
        }
    }
}

#[test]
fn shared_memory_of_every_width_is_seen_after_a_barrier() {
    let Some(gpu) = gpu() else { return };
    let threads = 64u32;
    for bits in [8u8, 16, 32, 64] {
        let size = u32::from(bits) / 8;
        let ty = if bits == 64 { Ty::I64 } else { Ty::I32 };
        let mut b = Builder::new("mirror", params(&[AbiTy::Ptr]), threads, 1);
        let buf = |b: &mut Builder, offset, count| {
            b.shared(SharedBuf { bytes: threads * size * count, align: size, elem_bits: bits, offset })
        };
        // Two buffers of one array, and one of another width between.
        let first = buf(&mut b, 0, 1);
        b.shared(SharedBuf { bytes: 64, align: 4, elem_bits: if bits == 32 { 16 } else { 32 }, offset: 0 });
        let second = buf(&mut b, threads * size, 2);
        let (out, thread) = (b.param(0), b.special(Special::Thread));
        let byte = b.mul_imm(thread, size.into());
        let last = b.i32(threads as i32 - 1);
        let mirror = b.sub(last, thread);
        let mirror_byte = b.mul_imm(mirror, size.into());
        let mut value = b.mul_imm(thread, 0x0103_0507);
        if ty == Ty::I64 {
            value = b.conv(Conv::SExt64, value, Ty::I64);
            value = b.mul_imm(value, 0x1_0000_0001);
        }
        b.shared_store(first, access(bits, 1), byte, &[value], None);
        let zero = b.iconst(ty, 0);
        let two = b.mul_imm(byte, 2);
        b.shared_store(second, access(bits, 2), two, &[zero, zero], None);
        b.barrier();
        let v = b.shared_load(first, access(bits, 1), ty, mirror_byte)[0];
        // A pair with an offset, by half of the threads.
        let half = b.i32(threads as i32 / 2);
        let low = b.icmp_s(Cmp::Lt, thread, half);
        let plus = b.add_imm(v, 1);
        let a = Access { bits, n: 2, offset: size as i32 * 4 };
        let two_back = b.add_imm(two, -4 * i64::from(size));
        b.shared_store(second, a, two_back, &[v, plus], Some(low));
        b.barrier();
        let both = b.shared_load(second, access(bits, 2), ty, two);
        for (k, v) in [v, both[0], both[1]].into_iter().enumerate() {
            let row = b.mul_imm(thread, 3);
            let at = b.add_imm(row, k as i64);
            let address = element(&mut b, out, at, 8);
            b.global_store(access(ty.bits() as u8, 1), address, &[v], None);
        }
        let out = gpu.buffer(&vec![0; threads as usize * 24]);
        launch(&gpu, &b.finish(), &[out.address], [1, 1, 1]);
        let got: Vec<u64> =
            gpu.take(out).chunks_exact(8).map(|c| u64::from_le_bytes(c.try_into().expect("8 bytes"))).collect();
        let mask = u64::MAX >> (64 - u32::from(bits));
        for t in 0..threads {
            let i = (threads - 1 - t) as i32;
            let value = i.wrapping_mul(0x0103_0507);
            let value = if bits == 64 { i64::from(value).wrapping_mul(0x1_0000_0001) as u64 } else { value as u64 };
            let (v, plus) = (value & mask, (value & mask).wrapping_add(1) & mask);
            // The first half wrote pairs, which the narrow buffer holds truncated.
            let want = if t < threads / 2 { [v, v, plus] } else { [v, 0, 0] };
            assert_eq!(got[t as usize * 3..][..3], want, "{bits} bits, thread {t}");
        }
    }
}

/// A sum by halves in shared memory: barriers in a loop, guarded stores, in warps of `warp` lanes.
fn tree_sum(warp: u32, threads: u32) {
    let Some(gpu) = gpu() else { return };
    let mut b = Builder::new("sum", params(&[AbiTy::Ptr, AbiTy::Ptr]), threads, warp);
    let buf = b.shared(SharedBuf { bytes: threads * 4, align: 4, elem_bits: 32, offset: 0 });
    let (from, to) = (b.param(0), b.param(1));
    let (thread, program) = (b.special(Special::Thread), b.special(Special::ProgramId(0)));
    let byte = b.mul_imm(thread, 4);
    let first = b.mul_imm(program, threads.into());
    let i = b.add(first, thread);
    let address = element(&mut b, from, i, 4);
    let v = b.global_load(access(32, 1), Ty::F32, address, None);
    b.shared_store(buf, access(32, 1), byte, &v, None);
    b.barrier();
    let half = b.i32(threads as i32 / 2);
    let c = b.begin_loop(&[half]);
    let zero = b.i32(0);
    let more = b.icmp_s(Cmp::Gt, c[0], zero);
    let c = b.loop_body(more);
    let active = b.icmp_s(Cmp::Lt, thread, c[0]);
    b.begin_if(active);
    let other = b.add(thread, c[0]);
    let other = b.mul_imm(other, 4);
    let x = b.shared_load(buf, access(32, 1), Ty::F32, byte)[0];
    let y = b.shared_load(buf, access(32, 1), Ty::F32, other)[0];
    let sum = b.fbin(FBin::Add, x, y);
    b.shared_store(buf, access(32, 1), byte, &[sum], None);
    b.begin_else(&[]);
    b.end_if(&[]);
    b.barrier();
    let next = b.shift_imm(IBin::ShrU, c[0], 1);
    b.end_loop(&[next]);
    let zero = b.i32(0);
    let total = b.shared_load(buf, access(32, 1), Ty::F32, zero)[0];
    let leader = b.icmp_s(Cmp::Eq, thread, zero);
    let address = element(&mut b, to, program, 4);
    b.global_store(access(32, 1), address, &[total], Some(leader));
    let func = b.finish();
    let input: Vec<u32> = (0..threads * 3).map(|i| (i as f32).to_bits()).collect();
    let (from, to) = (gpu.buffer(&bytes(&input)), gpu.buffer(&[0; 12]));
    launch(&gpu, &func, &[from.address, to.address], [3, 1, 1]);
    gpu.take(from);
    let got: Vec<f32> = u32s(&gpu.take(to)).into_iter().map(f32::from_bits).collect();
    let want: Vec<f32> = (0..3).map(|p| (p * threads..(p + 1) * threads).map(|i| i as f32).sum()).collect();
    assert_eq!(got, want);
}

#[test]
fn barriers_in_loops() {
    for threads in [1, 2, 32, 256, 1024] {
        tree_sum(1, threads);
    }
    let warp = gpu().map_or(1, |gpu| gpu.subgroup);
    tree_sum(warp, warp);
    tree_sum(warp, warp * 16);
}

#[test]
fn global_stores_are_seen_after_a_barrier() {
    let Some(gpu) = gpu() else { return };
    let threads = 256u32;
    let mut b = Builder::new("rotate", params(&[AbiTy::Ptr]), threads, 1);
    let (data, thread) = (b.param(0), b.special(Special::Thread));
    let address = element(&mut b, data, thread, 4);
    let next = b.add_imm(thread, 1);
    let next = b.and_imm(next, i64::from(threads) - 1);
    let next = element(&mut b, data, next, 4);
    let (zero, rounds) = (b.i32(0), b.i32(10));
    let c = b.begin_loop(&[zero]);
    let more = b.icmp_s(Cmp::Lt, c[0], rounds);
    let c = b.loop_body(more);
    let v = b.global_load(access(32, 1), Ty::I32, next, None);
    b.barrier();
    b.global_store(access(32, 1), address, &v, None);
    b.barrier();
    let i = b.add_imm(c[0], 1);
    b.end_loop(&[i]);
    let data = gpu.buffer(&bytes(&(0..threads).collect::<Vec<_>>()));
    launch(&gpu, &b.finish(), &[data.address], [1, 1, 1]);
    let want: Vec<u32> = (0..threads).map(|i| (i + 10) % threads).collect();
    assert_eq!(u32s(&gpu.take(data)), want);
}

#[test]
fn lanes_exchange_values() {
    let Some(gpu) = gpu() else { return };
    let warp = gpu.subgroup;
    if warp == 1 {
        println!("skipped: {} has no shuffles", gpu.name);
        return;
    }
    let threads = warp * 4;
    let mut b = Builder::new("lanes", params(&[AbiTy::Ptr]), threads, warp);
    let out = b.param(0);
    let [thread, lane, w] = [Special::Thread, Special::Lane, Special::Warp].map(|s| b.special(s));
    let seven = b.mul_imm(thread, 7);
    let float = b.conv(Conv::SToF, seven, Ty::F32);
    // In a loop that all threads run alike.
    let (one, width) = (b.i32(1), b.i32(warp as i32));
    let c = b.begin_loop(&[one, seven]);
    let more = b.icmp_s(Cmp::Lt, c[0], width);
    let c = b.loop_body(more);
    let from = b.ibin(IBin::Xor, lane, c[0]);
    let v = b.shuffle_index(c[1], from);
    let sum = b.add(c[1], v);
    b.emit(Op::WarpBarrier, vec![], &[]);
    let next = b.shift_imm(IBin::Shl, c[0], 1);
    let total = b.end_loop(&[next, sum])[1];
    let x = b.shuffle_xor(float, 1);
    let x = b.conv(Conv::FToS, x, Ty::I32);
    let y = b.shuffle_xor(seven, warp / 2);
    let row = b.mul_imm(thread, 6);
    for (k, v) in [thread, lane, w, total, x, y].into_iter().enumerate() {
        let at = b.add_imm(row, k as i64);
        store32(&mut b, out, at, v);
    }
    let out = gpu.buffer(&vec![0xff; threads as usize * 24]);
    launch(&gpu, &b.finish(), &[out.address], [1, 1, 1]);
    let got = u32s(&gpu.take(out));
    for (t, row) in (0..threads).zip(got.chunks(6)) {
        let first = t / warp * warp;
        let total: u32 = (first..first + warp).map(|i| i * 7).sum();
        assert_eq!(row, [t, t % warp, t / warp, total, (t ^ 1) * 7, (t ^ (warp / 2)) * 7], "thread {t}");
    }
}
