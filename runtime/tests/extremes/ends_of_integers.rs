//! Offsets and loops at the ends of i32.

use super::*;

#[kernel]
fn load_at(x: In<i32, 1>, y: Out<i32, 1>, at: i32, #[comptime] block: usize) {
    y.store([0], x.load_or([at], [block], -7));
}

#[kernel]
fn store_at(y: Out<i32, 1>, at: i32, #[comptime] block: usize) {
    y.store([at], arange(0, block));
}

#[kernel]
fn load_at2(x: In<i32, 2>, y: Out<i32, 2>, i: i32, j: i32, #[comptime] m: usize, #[comptime] n: usize) {
    y.store([0, 0], x.load_or([i, j], [m, n], -7));
}

const PLACES: [i32; 16] = [
    0,
    1,
    -1,
    -3,
    60,
    63,
    64,
    65,
    1000,
    i32::MAX,
    i32::MAX - 1,
    i32::MAX - 15,
    i32::MAX - 16,
    i32::MIN,
    i32::MIN + 1,
    i32::MIN + 16,
];

#[test]
fn offsets_at_the_ends_of_i32() {
    on_every_device(|dev| {
        let host: Vec<i32> = (0..64).collect();
        let x = dev.buffer_from(&host).unwrap();
        for at in PLACES {
            for block in [1usize, 16, 128] {
                let y = dev.zeros::<i32>(block).unwrap();
                let expect = |len: i64, stride: i64| -> Vec<i32> {
                    (0..block as i64)
                        .map(|i| i + i64::from(at))
                        .map(|i| if (0..len).contains(&i) { (i * stride) as i32 } else { -7 })
                        .collect()
                };
                load_at(x.view([64]).unwrap(), y.view([block]).unwrap(), at, block).grid([1]).launch().unwrap();
                assert_eq!(y.to_vec().unwrap(), expect(64, 1), "{} {at} {block}", dev.name());
                load_at(x.view([63]).unwrap(), y.view([block]).unwrap(), at, block).grid([1]).launch().unwrap();
                assert_eq!(y.to_vec().unwrap(), expect(63, 1), "{} {at} {block}", dev.name());
                // As long as a view can be.
                for len in [i32::MAX as usize, 1 << 30, i32::MAX as usize - 15] {
                    load_at(x.view_strided(0, [len], [0]).unwrap(), y.view([block]).unwrap(), at, block)
                        .grid([1])
                        .launch()
                        .unwrap();
                    assert_eq!(y.to_vec().unwrap(), expect(len as i64, 0), "{} {at} {block} long {len}", dev.name());
                }
                let z = dev.zeros::<i32>(64).unwrap();
                store_at(z.view([64]).unwrap(), at, block).grid([1]).launch().unwrap();
                let mut want = vec![0i32; 64];
                for i in 0..block as i64 {
                    let k = i64::from(at) + i;
                    if (0..64).contains(&k) {
                        want[k as usize] = i as i32
                    }
                }
                assert_eq!(z.to_vec().unwrap(), want, "{} store {at} {block}", dev.name());
                store_at(z.view_strided(5, [i32::MAX as usize], [0]).unwrap(), at, 1).grid([1]).launch().unwrap();
            }
        }
    });
}

#[test]
fn offsets_of_two_dimensions_at_the_ends_of_i32() {
    on_every_device(|dev| {
        let host: Vec<i32> = (0..64).collect();
        let x = dev.buffer_from(&host).unwrap();
        let y = dev.zeros::<i32>(32).unwrap();
        for (m, n, s0, s1) in [
            (8usize, 8usize, 8isize, 1isize),
            (i32::MAX as usize, 8, 0, 1),
            (8, i32::MAX as usize, 8, 0),
            (1, 64, 1 << 40, 1),
            (1, 64, isize::MIN, 1),
            (1, 64, i32::MIN as isize, 1),
            (1, 64, i32::MAX as isize, 1),
            (1, 1, isize::MAX, isize::MAX),
        ] {
            let v = x.view_strided(0, [m, n], [s0, s1]).unwrap();
            for i in PLACES {
                for j in PLACES {
                    load_at2(v, y.view([2, 16]).unwrap(), i, j, 2, 16).grid([1]).launch().unwrap();
                    let got = y.to_vec().unwrap();
                    for a in 0..2i64 {
                        for b in 0..16i64 {
                            let (r, c) = (i64::from(i) + a, i64::from(j) + b);
                            let inside = (0..m as i64).contains(&r) && (0..n as i64).contains(&c);
                            let want = if inside {
                                (r.wrapping_mul(s0 as i64) + c.wrapping_mul(s1 as i64)) as i32
                            } else {
                                -7
                            };
                            assert_eq!(got[(a * 16 + b) as usize], want, "{} {m}x{n} {s0} {s1} at {i} {j}", dev.name());
                        }
                    }
                }
            }
        }
    });
}

#[kernel]
fn count(y: Out<i32, 1>, lo: i32, hi: i32, step: i32) {
    let mut n = 0;
    let mut last = -1;
    for i in range(lo, hi, step) {
        n += 1;
        last = i;
    }
    y.store([0], reshape(n, [1]));
    y.store([1], reshape(last, [1]));
}

#[kernel]
fn count_fixed(y: Out<i32, 1>, lo: i32, hi: i32, #[comptime] step: i32) {
    let mut n = 0;
    let mut last = -1;
    for i in range(lo, hi, step) {
        n += 1;
        last = i;
    }
    y.store([0], reshape(n, [1]));
    y.store([1], reshape(last, [1]));
}

#[kernel]
fn count_up(y: Out<i32, 1>, hi: i32, #[comptime] step: usize) {
    let mut n = 0;
    for _ in (0..hi).step_by(step) {
        n += 1;
    }
    y.store([0], reshape(n, [1]));
}

#[test]
fn loops_at_the_ends_of_i32() {
    on_every_device(|dev| {
        let y = dev.zeros::<i32>(2).unwrap();
        let cases = [
            (0, 10, 3),
            (10, 0, -3),
            (0, 10, -1),
            (10, 0, 1),
            (0, i32::MAX, 1 << 30),
            (0, i32::MAX, i32::MAX),
            (i32::MAX - 3, i32::MAX, 2),
            (i32::MIN + 3, i32::MIN, -2),
            (i32::MIN, i32::MAX, 1 << 30),
            (i32::MAX, i32::MIN, -(1 << 30)),
            (0, i32::MIN, i32::MIN),
            (i32::MIN, i32::MAX, i32::MAX),
            (5, 5, 1),
            (5, 5, -1),
            (i32::MAX, i32::MIN, i32::MIN),
        ];
        for (lo, hi, step) in cases {
            let mut want = (0, -1);
            let mut i = i64::from(lo);
            while if step > 0 { i < i64::from(hi) } else { i > i64::from(hi) } {
                want = (want.0 + 1, i as i32);
                i += i64::from(step);
            }
            count(y.view([2]).unwrap(), lo, hi, step).grid([1]).launch().unwrap();
            assert_eq!(y.to_vec().unwrap(), [want.0, want.1], "{} {lo}..{hi} by {step}", dev.name());
            count_fixed(y.view([2]).unwrap(), lo, hi, step).grid([1]).launch().unwrap();
            assert_eq!(y.to_vec().unwrap(), [want.0, want.1], "{} {lo}..{hi} by fixed {step}", dev.name());
        }
        for (step, part) in [(0usize, "step of a loop is 0"), (1 << 31, "does not fit"), (usize::MAX, "does not fit")] {
            let e = count_up(y.view([2]).unwrap(), 10, step).grid([1]).launch().unwrap_err().to_string();
            assert!(e.contains(part), "{e}");
        }
        // A step of 0 that only the device knows.
        count(y.view([2]).unwrap(), 0, 10, 0).grid([1]).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [0, -1], "{}", dev.name());
    });
}
