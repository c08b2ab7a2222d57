//! A product whose result becomes the left operand of another, as in attention: on every target against the interpreter, and
//! what becomes of it on tensor cores.

mod common;

use common::{Arg, Case, bytes, random_f32};
use tilewright_compiler::DType;
use tilewright_compiler::pipeline::{Options, to_thread};
use tilewright_compiler::target::Caps;
use tilewright_compiler::tile::{BinaryOp, Builder, Cmp, Constant, DotPrecision, ParamHint, ReduceOp, TileType, Value};

fn aligned(class: u32) -> ParamHint {
    ParamHint { divisor: 16, known: None, alias_class: class }
}

/// `out = sum over blocks of clamp(x yᵀ + mask, -2, 2) z` for x `[m, d]`, y and z `[n, d]`: tiles of `bm` rows against blocks of
/// `bn`. Where there is no mask, the rows of a sum are halved before those blocks in which a row of x meets a row of y that is
/// like it. All but the mask are views of 4 dimensions, the first two of extent 1.
fn chained(dtype: DType, [m, n, d]: [usize; 3], [bm, bn, bd]: [usize; 3], masked: bool) -> Case {
    let mut b = Builder::new("chained");
    let known = |v: i64| ParamHint { divisor: 1, known: Some(v), alias_class: 0 };
    let by = |x: usize| ParamHint { divisor: 1 << x.trailing_zeros().min(4), known: None, alias_class: 0 };
    let view = |b: &mut Builder, name, dtype, rows: usize, class| {
        let dims = [known(1), known(1), by(rows), by(d)];
        let strides = [by(rows * d), by(rows * d), by(d), known(1)];
        b.param_view(name, dtype, 4, DType::I32, &[&[aligned(class)], &dims[..], &strides[..]].concat())
    };
    let [x, y, z] =
        [("x", m, 0), ("y", n, 1), ("z", n, 2)].map(|(name, rows, class)| view(&mut b, name, dtype, rows, class));
    let out = view(&mut b, "out", DType::F32, m, 3);
    let mask = b.param_view("mask", DType::F32, 2, DType::I32, &[aligned(4), by(m), by(n), by(n), known(1)]);
    let zero = b.const_i64(DType::I32, 0).unwrap();
    let pid = b.program_id(0).unwrap();
    let size = b.const_i64(DType::I32, bm as i64).unwrap();
    let m0 = b.binary(BinaryOp::Mul, pid, size).unwrap();
    let load = |b: &mut Builder, view, at: Value, rows: usize| {
        let tile = b.view_load(view, &[zero, zero, at, zero], [1, 1, rows, bd], None).unwrap();
        b.reshape(tile, [rows, bd]).unwrap()
    };
    let number = |b: &mut Builder, shape: [usize; 2], value: f64| {
        b.full(TileType::new(DType::F32, shape), Constant::from_f64(DType::F32, value)).unwrap()
    };
    let xt = load(&mut b, &x, m0, bm);
    let acc = number(&mut b, [bm, bd], 0.0);
    let step = b.const_i64(DType::I32, bn as i64).unwrap();
    let (n0, carried) = b.begin_for(zero, y.dims[2], step, &[acc]).unwrap();
    let (yt, zt) = (load(&mut b, &y, n0, bn), load(&mut b, &z, n0, bn));
    let yt = b.transpose(yt).unwrap();
    let none = number(&mut b, [bm, bn], 0.0);
    let mut s = b.dot(xt, yt, none, DotPrecision::Ieee).unwrap();
    if masked {
        let m = b.view_load(&mask, &[m0, n0], [bm, bn], None).unwrap();
        s = b.binary(BinaryOp::Add, m, s).unwrap();
    }
    let (low, high) = (number(&mut b, [bm, bn], -2.0), number(&mut b, [bm, bn], 2.0));
    let s = b.binary(BinaryOp::Max, s, low).unwrap();
    let s = b.binary(BinaryOp::Min, s, high).unwrap();
    let p = b.cast(s, dtype).unwrap();
    let mut sum = carried[0];
    if !masked {
        let most = b.reduce(ReduceOp::Max, s, 1).unwrap();
        let most = b.expand_dims(most, 1).unwrap();
        let (one, half) = (number(&mut b, [bm, 1], 1.0), number(&mut b, [bm, 1], 0.5));
        let alike = b.compare(Cmp::Gt, most, one).unwrap();
        let shrink = b.select(alike, half, one).unwrap();
        sum = b.binary(BinaryOp::Mul, sum, shrink).unwrap();
    }
    let next = b.dot(p, zt, sum, DotPrecision::Ieee).unwrap();
    let acc = b.end_for(&[next]).unwrap()[0];
    let acc = b.reshape(acc, [1, 1, bm, bd]).unwrap();
    b.view_store(&out, &[zero, zero, m0, zero], acc).unwrap();

    let whole = |seed, len| -> Vec<f32> { random_f32(seed, len).iter().map(|x| (x * 3.0).round()).collect() };
    let numbers = |seed, len| -> Vec<u8> {
        let x = whole(seed, len);
        match dtype {
            DType::F32 => bytes(&x),
            DType::F16 => x.iter().flat_map(|&x| half::f16::from_f32(x).to_le_bytes()).collect(),
            _ => x.iter().flat_map(|&x| half::bf16::from_f32(x).to_le_bytes()).collect(),
        }
    };
    let mut args = Vec::new();
    for (buffer, rows) in [(0, m), (1, n), (2, n), (3, m)] {
        args.push(Arg::Buf(buffer, 0));
        args.extend([1, 1, rows, d, rows * d, rows * d, d, 1].map(|x| Arg::Bits(x as u64)));
    }
    args.push(Arg::Buf(4, 0));
    args.extend([m, n, n, 1].map(|x| Arg::Bits(x as u64)));
    Case {
        func: b.finish(),
        args,
        buffers: vec![
            numbers(3, m * d),
            numbers(4, n * d),
            numbers(5, n * d),
            vec![0x77; 4 * m * d],
            bytes(&whole(6, m * n)),
        ],
        grid: [m.div_ceil(bm) as u32, 1, 1],
    }
}

#[test]
fn chained_products_agree() {
    // Small whole numbers: every order of summation gives the same bits.
    for dtype in [DType::F16, DType::BF16, DType::F32] {
        for masked in [false, true] {
            for (num_warps, num_stages) in [(1, 1), (4, 3), (8, 2)] {
                let options = Options { num_warps, num_stages };
                chained(dtype, [64, 96, 32], [64, 32, 32], masked).agree_exactly(&options);
                chained(dtype, [70, 50, 24], [32, 16, 32], masked).agree_exactly(&options);
            }
            chained(dtype, [17, 33, 64], [16, 64, 64], masked).agree_exactly(&Options { num_warps: 4, num_stages: 2 });
            chained(dtype, [128, 64, 16], [128, 32, 16], masked)
                .agree_exactly(&Options { num_warps: 4, num_stages: 2 });
        }
    }
}

/// The scores stay in the registers of the warp that computed them; x is written to shared memory once; y and z are copied
/// ahead.
#[test]
fn the_first_result_stays_in_registers() {
    for masked in [false, true] {
        let case = chained(DType::F16, [128, 256, 64], [128, 32, 64], masked);
        let options = Options { num_warps: 4, num_stages: 2 };
        let (_, report) = case.simulate(&Caps::ptx(80), &options);
        assert_eq!(report.bank_conflicts(), 0, "{report:?}");
        // y and z in pieces of 16 bytes, 32 threads at a time.
        assert!(report.async_copies as usize >= 2 * 256 * 64 * 2 / 16 / 32, "{report:?}");
        let (_, schedule, _) = to_thread(&case.func, &Caps::ptx(80), &options).unwrap();
        let text = schedule.to_string();
        assert_eq!(text.matches("mma F16 on 4 x 1 warps").count(), 2, "{text}");
        assert_eq!(text.matches("left operand in registers").count(), 1, "{text}");
        if !masked {
            // A step of 16 along the width takes 2 reads of x and 1 of each two columns of y; one along the keys 1 of each two
            // columns of z.
            let each_warp = (64 / 16) * (2 + 2) + (32 / 16) * 4;
            assert_eq!(report.ldmatrices as usize, 4 * 8 * each_warp, "{report:?}");
        }
    }
}

/// On Hopper both products go to four warps at once, the scores from registers: widths whose rows are narrower than, as wide as
/// and wider than a swizzled block; one and more groups, of 64 rows and of 128.
#[test]
fn chained_products_of_four_warps_agree() {
    let caps = Caps::ptx(90);
    for (dtype, [bm, bn, bd], num_warps, num_stages) in [
        (DType::F16, [64, 32, 32], 4, 1),
        (DType::BF16, [64, 64, 64], 4, 2),
        (DType::F16, [128, 32, 64], 4, 3),
        (DType::BF16, [128, 64, 128], 8, 2),
        (DType::F16, [128, 128, 64], 8, 3),
        (DType::F16, [64, 64, 256], 4, 2),
        (DType::BF16, [256, 32, 32], 8, 4),
        (DType::F16, [128, 64, 128], 8, 3),
        (DType::BF16, [64, 128, 64], 4, 5),
    ] {
        for masked in [false, true] {
            let case = chained(dtype, [bm + 6, 2 * bn + 18, bd - 8], [bm, bn, bd], masked);
            let options = Options { num_warps, num_stages };
            let expected = case.interpret();
            let (got, report) = case.simulate(&caps, &options);
            let what = format!("{dtype} {bm} x {bn} x {bd}, {num_warps} warps, {num_stages} stages, masked: {masked}");
            assert_eq!(expected, got, "{what}\n{}", case.stages(&caps, &options));
            let programs = 2;
            let (first, second) = (bm / 64 * bd.div_ceil(16), bm / 64 * (bn / 16 * bd.div_ceil(256)));
            // With stages to spare and many sums the first one goes a round ahead, beyond the last.
            let sums = bm * (bn + bd) / (32 * num_warps as usize);
            let rounds = if num_stages > 2 && sums >= 96 { 4 } else { 3 };
            assert_eq!(report.wgmmas as usize, programs * (rounds * first + 3 * second), "{what}: {report:?}");
            assert_eq!((report.mmas, report.ldmatrices), (0, 0), "{what}: {report:?}");
        }
    }
}
