//! Unusual but legitimate uses: results must be right, and mistakes must be errors.

extern crate tilewright_runtime as tilewright;

use tilewright::dsl::*;
use tilewright::{Device, DeviceKind, Element as HostElement, Error};

fn on_every_device(body: impl Fn(&Device)) {
    for info in Device::list() {
        match &info.unusable {
            Some(why) => eprintln!("skipped {}: {why}", info.name),
            None => {
                eprintln!("on {info}");
                body(&Device::open(&info.name).unwrap());
            }
        }
    }
}

fn write_one(dev: &Device) -> i32 {
    #[kernel]
    fn constant(y: Out<i32, 1>) {
        y.store([0], full([1], 1));
    }
    let y = dev.zeros::<i32>(1).unwrap();
    constant(y.view([1]).unwrap()).grid([1]).launch().unwrap();
    y.to_vec().unwrap()[0]
}

fn write_two(dev: &Device) -> i32 {
    #[kernel]
    fn constant(y: Out<i32, 1>) {
        y.store([0], full([1], 2));
    }
    let y = dev.zeros::<i32>(1).unwrap();
    constant(y.view([1]).unwrap()).grid([1]).launch().unwrap();
    y.to_vec().unwrap()[0]
}

#[test]
fn kernels_of_one_name_in_two_functions_are_two_kernels() {
    on_every_device(|dev| {
        assert_eq!((write_one(dev), write_two(dev), write_one(dev)), (1, 2, 1));
    });
}

#[kernel]
fn signed_zero(y: Out<f32, 1>, #[comptime] z: f64, #[comptime] s: Vec<f32>) {
    y.store([0], full([1], 1.0) / (zeros::<f32>([1]) + z) + full([1], s[0]));
}

#[test]
fn comptime_zeros_of_both_signs_differ() {
    on_every_device(|dev| {
        for z in [0.0, -0.0f64, 0.0] {
            let y = dev.zeros::<f32>(1).unwrap();
            signed_zero(y.view([1]).unwrap(), z, vec![z as f32]).grid([1]).launch().unwrap();
            // 0 + -0 is 0.
            assert_eq!(y.to_vec().unwrap(), [f32::INFINITY], "{z}");
        }
    });
}

/// `y[i] = x[i] + 1` where x and y may overlap in one buffer.
#[kernel]
fn shift_in_place(x: In<i32, 1>, y: Out<i32, 1>, #[comptime] block: usize) {
    for start in (0..x.dim(0)).step_by(block) {
        let v = x.load([start], [block]);
        y.store([start], v + 1);
    }
}

#[test]
fn overlapping_views_within_one_program() {
    on_every_device(|dev| {
        let n = 300usize;
        for (xo, yo) in [(0, 0), (0, 1), (1, 0), (0, 7), (64, 0), (0, 64), (3, 130)] {
            for block in [1, 16, 64, 256] {
                let mut host: Vec<i32> = (0..600).collect();
                let b = dev.buffer_from(&host).unwrap();
                let (x, y) = (b.view_strided(xo, [n], [1]).unwrap(), b.view_strided(yo, [n], [1]).unwrap());
                shift_in_place(x, y, block).grid([1]).launch().unwrap();
                for start in (0..n).step_by(block) {
                    let end = (start + block).min(n);
                    let v: Vec<i32> = host[xo + start..xo + end].to_vec();
                    for (i, v) in v.iter().enumerate() {
                        host[yo + start + i] = v + 1;
                    }
                }
                assert_eq!(b.to_vec().unwrap(), host, "{} {xo} {yo} {block}", dev.name());
            }
        }
    });
}

/// A view whose own elements overlap: rows shifted by one.
#[kernel]
fn windows(x: InOut<i32, 2>, #[comptime] width: usize) {
    for i in 0..x.dim(0) {
        let v = x.load([i, 0], [1, width]);
        x.store([i, 0], v * 3 + 1);
    }
}

#[test]
fn a_view_that_overlaps_itself() {
    on_every_device(|dev| {
        for (rows, width, stride) in [(5usize, 8usize, 1isize), (9, 64, 3), (4, 32, -2), (6, 128, 5)] {
            let mut host: Vec<i32> = (0..400).collect();
            let offset = 150usize;
            let b = dev.buffer_from(&host).unwrap();
            let x = b.view_strided(offset, [rows, width], [stride, 1]).unwrap();
            windows(x, width).grid([1]).launch().unwrap();
            for i in 0..rows {
                for j in 0..width {
                    let at = (offset as isize + i as isize * stride) as usize + j;
                    host[at] = host[at] * 3 + 1;
                }
            }
            assert_eq!(b.to_vec().unwrap(), host, "{} {rows} {width} {stride}", dev.name());
        }
    });
}

#[kernel]
fn copy2<T: Element>(x: In<T, 2>, y: Out<T, 2>, #[comptime] bm: usize, #[comptime] bn: usize) {
    let (i, j) = (program_id(0) * bm, program_id(1) * bn);
    y.store([i, j], x.load([i, j], [bm, bn]));
}

#[test]
fn every_geometry_of_two_dimensions() {
    on_every_device(|dev| {
        let host: Vec<u8> = (0..4096u32).map(|i| (i * 37 % 251) as u8).collect();
        let wide: Vec<i64> = host.iter().map(|v| i64::from(*v)).collect();
        let x = dev.buffer_from(&host).unwrap();
        let xw = dev.buffer_from(&wide).unwrap();
        for (m, n) in [(0usize, 5usize), (5, 0), (1, 1), (33, 1), (7, 9), (32, 48)] {
            for (s0, s1) in [(n as isize, 1), (1, m as isize), (0, 1), (1, 0), (48, -1), (-48, 1), (50, 1)] {
                for offset in [0usize, 1, 2000] {
                    let Ok(v) = x.view_strided(offset, [m, n], [s0, s1]) else { continue };
                    let vw = xw.view_strided(offset, [m, n], [s0, s1]).unwrap();
                    for (bm, bn) in [(1, 64), (16, 16)] {
                        let y = dev.buffer_from(&vec![77u8; m * n + 3]).unwrap();
                        let yw = dev.buffer_from(&vec![77i64; m * n + 3]).unwrap();
                        let grid = [m.div_ceil(bm) + 1, n.div_ceil(bn) + 1];
                        copy2(v, y.view([m, n]).unwrap(), bm, bn).grid(grid).launch().unwrap();
                        copy2(vw, yw.view([m, n]).unwrap(), bm, bn).grid(grid).launch().unwrap();
                        let (got, gotw) = (y.to_vec().unwrap(), yw.to_vec().unwrap());
                        for i in 0..m {
                            for j in 0..n {
                                let at = (offset as isize + i as isize * s0 + j as isize * s1) as usize;
                                let what =
                                    || format!("{} {m}x{n} {s0},{s1} at {offset} by {bm}x{bn}: {i},{j}", dev.name());
                                assert_eq!(got[i * n + j], host[at], "{}", what());
                                assert_eq!(gotw[i * n + j], wide[at], "i64 {}", what());
                            }
                        }
                        assert_eq!(got[m * n..], [77; 3]);
                        assert_eq!(gotw[m * n..], [77; 3]);
                    }
                }
            }
        }
    });
}

#[test]
fn too_much_memory_is_an_error() {
    on_every_device(|dev| {
        let mut sizes = vec![usize::MAX, usize::MAX / 2, usize::MAX / 4, 1 << 60, 1 << 47, 1 << 44];
        if dev.name() == "cpu" {
            // Linux would promise this much, and kill the process that writes it.
            sizes.extend(dev.memory().0.map(|free| free as usize + (1 << 30)));
        }
        for n in sizes {
            let e = dev.zeros::<u8>(n).map(|_| ()).unwrap_err();
            assert!(matches!(e, Error::OutOfMemory { .. }), "{} {n}: {e}", dev.name());
            let e = dev.alloc::<f64>(n).map(|_| ()).unwrap_err();
            assert!(matches!(e, Error::OutOfMemory { .. }), "{} {n}: {e}", dev.name());
        }
    });
}

#[kernel]
fn add_one(x: InOut<i32, 1>, #[comptime] block: usize) {
    let start = program_id(0) * block;
    x.store([start], x.load([start], [block]) + 1);
}

#[test]
fn many_live_buffers() {
    on_every_device(|dev| {
        let buffers: Vec<_> = (0..6000).map(|i| dev.buffer_from(&[i, i + 1, i + 2]).unwrap()).collect();
        for b in buffers.iter().step_by(100) {
            add_one(b.view([3]).unwrap(), 4).grid([1]).launch().unwrap();
        }
        for (i, b) in buffers.iter().enumerate() {
            let d = i as i32 + i32::from(i % 100 == 0);
            assert_eq!(b.to_vec().unwrap(), [d, d + 1, d + 2], "{}", dev.name());
        }
    });
}

#[test]
fn senseless_sizes_and_options_are_errors() {
    on_every_device(|dev| {
        let x = dev.zeros::<i32>(64).unwrap();
        let x = x.view([64]).unwrap();
        let fails = |launch: tilewright::Launch<'_>, part: &str| {
            let e = launch.launch().unwrap_err().to_string();
            assert!(e.contains(part), "{}: {e}", dev.name());
        };
        for block in [0, 3, (1 << 63) + 2, usize::MAX] {
            fails(add_one(x, block).grid([1]), "is not a power of two");
        }
        for block in [1 << 21, 1 << 30, 1 << 31, 1 << 32] {
            fails(add_one(x, block).grid([1]), "has more than 1048576 elements");
        }
        for warps in [0, 3, 64, 1024, u32::MAX] {
            fails(add_one(x, 64).grid([1]).num_warps(warps), "must be 1, 2, 4, 8, 16 or 32");
        }
        for stages in [0, 100, u32::MAX] {
            fails(add_one(x, 64).grid([1]).num_stages(stages), "must be from 1 to 16");
        }
        for grid in [[usize::MAX, 1, 1], [1, usize::MAX, 1], [1, 1, 1 << 32]] {
            fails(add_one(x, 64).grid(grid), "programs along axis");
        }
        fails(add_one(x, 64), "no grid was given");
        for grid in [[0, 5, 5], [5, 0, 1], [1, 1, 0]] {
            add_one(x, 64).grid(grid).launch().unwrap();
        }
    });
}

#[test]
fn tiles_too_large_for_the_threads_are_refused_at_once() {
    on_every_device(|dev| {
        let x = dev.buffer_from(&[5i32; 1000]).unwrap();
        let v = x.view([1000]).unwrap();
        add_one(v, 1 << 16).grid([1]).num_warps(32).launch().unwrap();
        assert_eq!(x.to_vec().unwrap(), [6; 1000], "{}", dev.name());
        // 32768 elements for each thread would keep the driver's compiler busy for hours.
        match add_one(v, 1 << 20).grid([1]).num_warps(1).launch() {
            Ok(()) => assert_eq!(dev.name(), "cpu"),
            Err(e) => {
                let e = e.to_string();
                assert!(e.contains("elements of a tile of shape [1048576]") && e.contains("extremes.rs:"), "{e}");
                assert!(e.contains("or more warps"), "{e}");
            }
        }
    });
}

#[kernel]
fn panics(x: InOut<i32, 1>, #[comptime] list: Vec<usize>) {
    x.store([0], full([1], 1));
    for _ in 0..10 {
        let n = list[3];
        x.store([0], full([n], 1));
    }
}

#[kernel]
fn launches_inside(x: InOut<i32, 1>) {
    let dev = Device::open("cpu").unwrap();
    let y = dev.zeros::<i32>(4).unwrap();
    add_one(y.view([4]).unwrap(), 4).grid([1]).launch().unwrap();
    let n = y.to_vec().unwrap()[0];
    x.store([0], full([1], n) + x.load([0], [1]));
}

#[test]
fn kernels_that_panic_and_kernels_that_launch() {
    on_every_device(|dev| {
        let x = dev.buffer_from(&[10i32]).unwrap();
        for _ in 0..2 {
            let e = panics(x.view([1]).unwrap(), vec![1]).grid([1]).launch().unwrap_err().to_string();
            assert!(e.contains("the kernel's host code panicked: index out of bounds"), "{e}");
        }
        launches_inside(x.view([1]).unwrap()).grid([1]).launch().unwrap();
        assert_eq!(x.to_vec().unwrap(), [11]);
    });
}

#[device_fn]
fn forever(x: Tile<i32>) -> Tile<i32> {
    if x > 0 { forever(x - 1) } else { x }
}

#[kernel]
fn recursion(x: InOut<i32, 1>) {
    x.store([0], reshape(forever(reshape(x.load([0], [1]), [])), [1]));
}

#[test]
fn recursion_that_the_device_decides_is_an_error() {
    let dev = Device::open("cpu").unwrap();
    let x = dev.buffer_from(&[10i32]).unwrap();
    let e = recursion(x.view([1]).unwrap()).grid([1]).launch().unwrap_err().to_string();
    assert!(e.contains("nested more than 128 deep") && e.contains("recursion"), "{e}");
    // The thread can build other kernels.
    add_one(x.view([1]).unwrap(), 1).grid([1]).launch().unwrap();
    assert_eq!(x.to_vec().unwrap(), [11]);
}

#[kernel]
fn deep(x: InOut<i32, 1>, #[comptime] n: usize) {
    let mut v = reshape(x.load([0], [1]), []);
    v = nest(v, n);
    x.store([0], reshape(v, [1]));
}

#[device_fn]
fn nest(v: Tile<i32>, #[comptime] n: usize) -> Tile<i32> {
    let mut v = v;
    if n > 0 {
        if v >= 0 {
            for _ in 0..1 {
                v = nest(v + 1, n - 1);
            }
        }
    }
    v
}

#[test]
fn deeply_nested_kernels() {
    on_every_device(|dev| {
        for n in [10usize, 63] {
            let x = dev.buffer_from(&[1i32]).unwrap();
            deep(x.view([1]).unwrap(), n).grid([1]).launch().unwrap();
            assert_eq!(x.to_vec().unwrap(), [1 + n as i32], "{}", dev.name());
        }
        let x = dev.buffer_from(&[1i32]).unwrap();
        let e = deep(x.view([1]).unwrap(), 65).grid([1]).launch().unwrap_err().to_string();
        assert!(e.starts_with("kernel `deep` is not valid") && e.contains("nested more than 128 deep"), "{e}");
    });
}

#[test]
fn threads_launch_on_one_device() {
    on_every_device(|dev| {
        std::thread::scope(|s| {
            for t in 0..6 {
                s.spawn(move || {
                    for round in 0..40 {
                        let n = 100 + t * 17 + round;
                        let x = dev.buffer_from(&vec![t as i32; n]).unwrap();
                        for _ in 0..5 {
                            add_one(x.view([n]).unwrap(), [16, 64, 256][round % 3])
                                .grid([n.div_ceil([16, 64, 256][round % 3])])
                                .launch()
                                .unwrap();
                        }
                        assert_eq!(x.to_vec().unwrap(), vec![t as i32 + 5; n], "{}", dev.name());
                    }
                });
            }
        });
    });
}

#[test]
fn interleaved_launches_and_copies() {
    on_every_device(|dev| {
        let stream = dev.new_stream().unwrap();
        let x = dev.zeros::<i32>(1000).unwrap();
        let y = dev.zeros::<i32>(1000).unwrap();
        for i in 0..300 {
            add_one(x.view([1000]).unwrap(), 256).grid([4]).launch_on(&stream).unwrap();
            let event = stream.record().unwrap();
            dev.default_stream().wait(&event).unwrap();
            add_one(x.view([1000]).unwrap(), 128).grid([8]).launch().unwrap();
            let event = dev.default_stream().record().unwrap();
            stream.wait(&event).unwrap();
            y.copy_from_buffer(&x).unwrap();
            if i % 7 == 0 {
                assert_eq!(y.to_vec().unwrap(), vec![2 * i + 2; 1000], "{}", dev.name());
            }
            if i % 50 == 0 {
                let tmp = dev.buffer_from(&vec![0i32; 5000]).unwrap();
                for _ in 0..20 {
                    add_one(tmp.view([5000]).unwrap(), 64).grid([79]).launch_on(&stream).unwrap();
                }
                drop(tmp);
            }
        }
        assert_eq!(x.to_vec().unwrap(), vec![600; 1000]);
    });
}

#[kernel]
fn many_params(
    y: Out<i32, 1>,
    a0: i32,
    a1: i32,
    a2: i32,
    a3: i32,
    a4: i32,
    a5: i32,
    a6: i32,
    a7: i32,
    a8: i32,
    a9: i32,
    a10: i32,
    a11: i32,
    a12: i32,
    a13: i32,
    a14: i32,
    a15: i32,
    a16: i32,
    a17: i32,
    a18: i32,
    a19: i32,
    a20: i32,
    a21: i32,
    a22: i32,
    a23: i32,
    a24: i32,
    a25: i32,
    a26: i32,
    a27: i32,
    a28: i32,
    a29: i32,
    a30: i32,
    a31: i32,
    a32: i32,
    a33: i32,
    a34: i32,
    a35: i32,
    a36: i32,
    a37: i32,
    a38: i32,
    a39: i32,
    a40: i32,
    a41: i32,
    a42: i32,
    a43: i32,
    a44: i32,
    a45: i32,
    a46: i32,
    a47: i32,
    a48: i32,
    a49: i32,
    a50: i32,
    a51: i32,
    a52: i32,
    a53: i32,
    a54: i32,
    a55: i32,
    a56: i32,
    a57: i32,
    a58: i32,
    a59: i32,
    a60: i32,
    a61: i32,
    a62: i32,
    a63: i32,
    a64: i32,
    a65: i32,
    a66: i32,
    a67: i32,
    a68: i32,
    a69: i32,
    a70: i32,
    a71: i32,
    a72: i32,
    a73: i32,
    a74: i32,
    a75: i32,
    a76: i32,
    a77: i32,
    a78: i32,
    a79: i32,
    a80: i32,
    a81: i32,
    a82: i32,
    a83: i32,
    a84: i32,
    a85: i32,
    a86: i32,
    a87: i32,
    a88: i32,
    a89: i32,
    a90: i32,
    a91: i32,
    a92: i32,
    a93: i32,
    a94: i32,
    a95: i32,
    a96: i32,
    a97: i32,
    a98: i32,
    a99: i32,
    a100: i32,
    a101: i32,
    a102: i32,
    a103: i32,
    a104: i32,
    a105: i32,
    a106: i32,
    a107: i32,
    a108: i32,
    a109: i32,
    a110: i32,
    a111: i32,
    a112: i32,
    a113: i32,
    a114: i32,
    a115: i32,
    a116: i32,
    a117: i32,
    a118: i32,
    a119: i32,
    a120: i32,
    a121: i32,
    a122: i32,
    a123: i32,
    a124: i32,
    a125: i32,
    a126: i32,
    a127: i32,
    a128: i32,
    a129: i32,
    a130: i32,
    a131: i32,
    a132: i32,
    a133: i32,
    a134: i32,
    a135: i32,
    a136: i32,
    a137: i32,
    a138: i32,
    a139: i32,
    a140: i32,
    a141: i32,
    a142: i32,
    a143: i32,
    a144: i32,
    a145: i32,
    a146: i32,
    a147: i32,
    a148: i32,
    a149: i32,
    a150: i32,
    a151: i32,
    a152: i32,
    a153: i32,
    a154: i32,
    a155: i32,
    a156: i32,
    a157: i32,
    a158: i32,
    a159: i32,
    a160: i32,
    a161: i32,
    a162: i32,
    a163: i32,
    a164: i32,
    a165: i32,
    a166: i32,
    a167: i32,
    a168: i32,
    a169: i32,
    a170: i32,
    a171: i32,
    a172: i32,
    a173: i32,
    a174: i32,
    a175: i32,
    a176: i32,
    a177: i32,
    a178: i32,
    a179: i32,
    a180: i32,
    a181: i32,
    a182: i32,
    a183: i32,
    a184: i32,
    a185: i32,
    a186: i32,
    a187: i32,
    a188: i32,
    a189: i32,
    a190: i32,
    a191: i32,
    a192: i32,
    a193: i32,
    a194: i32,
    a195: i32,
    a196: i32,
    a197: i32,
    a198: i32,
    a199: i32,
) {
    let v = a0 * 0
        + a1 * 1
        + a2 * 2
        + a3 * 3
        + a4 * 4
        + a5 * 5
        + a6 * 6
        + a7 * 0
        + a8 * 1
        + a9 * 2
        + a10 * 3
        + a11 * 4
        + a12 * 5
        + a13 * 6
        + a14 * 0
        + a15 * 1
        + a16 * 2
        + a17 * 3
        + a18 * 4
        + a19 * 5
        + a20 * 6
        + a21 * 0
        + a22 * 1
        + a23 * 2
        + a24 * 3
        + a25 * 4
        + a26 * 5
        + a27 * 6
        + a28 * 0
        + a29 * 1
        + a30 * 2
        + a31 * 3
        + a32 * 4
        + a33 * 5
        + a34 * 6
        + a35 * 0
        + a36 * 1
        + a37 * 2
        + a38 * 3
        + a39 * 4
        + a40 * 5
        + a41 * 6
        + a42 * 0
        + a43 * 1
        + a44 * 2
        + a45 * 3
        + a46 * 4
        + a47 * 5
        + a48 * 6
        + a49 * 0
        + a50 * 1
        + a51 * 2
        + a52 * 3
        + a53 * 4
        + a54 * 5
        + a55 * 6
        + a56 * 0
        + a57 * 1
        + a58 * 2
        + a59 * 3
        + a60 * 4
        + a61 * 5
        + a62 * 6
        + a63 * 0
        + a64 * 1
        + a65 * 2
        + a66 * 3
        + a67 * 4
        + a68 * 5
        + a69 * 6
        + a70 * 0
        + a71 * 1
        + a72 * 2
        + a73 * 3
        + a74 * 4
        + a75 * 5
        + a76 * 6
        + a77 * 0
        + a78 * 1
        + a79 * 2
        + a80 * 3
        + a81 * 4
        + a82 * 5
        + a83 * 6
        + a84 * 0
        + a85 * 1
        + a86 * 2
        + a87 * 3
        + a88 * 4
        + a89 * 5
        + a90 * 6
        + a91 * 0
        + a92 * 1
        + a93 * 2
        + a94 * 3
        + a95 * 4
        + a96 * 5
        + a97 * 6
        + a98 * 0
        + a99 * 1
        + a100 * 2
        + a101 * 3
        + a102 * 4
        + a103 * 5
        + a104 * 6
        + a105 * 0
        + a106 * 1
        + a107 * 2
        + a108 * 3
        + a109 * 4
        + a110 * 5
        + a111 * 6
        + a112 * 0
        + a113 * 1
        + a114 * 2
        + a115 * 3
        + a116 * 4
        + a117 * 5
        + a118 * 6
        + a119 * 0
        + a120 * 1
        + a121 * 2
        + a122 * 3
        + a123 * 4
        + a124 * 5
        + a125 * 6
        + a126 * 0
        + a127 * 1
        + a128 * 2
        + a129 * 3
        + a130 * 4
        + a131 * 5
        + a132 * 6
        + a133 * 0
        + a134 * 1
        + a135 * 2
        + a136 * 3
        + a137 * 4
        + a138 * 5
        + a139 * 6
        + a140 * 0
        + a141 * 1
        + a142 * 2
        + a143 * 3
        + a144 * 4
        + a145 * 5
        + a146 * 6
        + a147 * 0
        + a148 * 1
        + a149 * 2
        + a150 * 3
        + a151 * 4
        + a152 * 5
        + a153 * 6
        + a154 * 0
        + a155 * 1
        + a156 * 2
        + a157 * 3
        + a158 * 4
        + a159 * 5
        + a160 * 6
        + a161 * 0
        + a162 * 1
        + a163 * 2
        + a164 * 3
        + a165 * 4
        + a166 * 5
        + a167 * 6
        + a168 * 0
        + a169 * 1
        + a170 * 2
        + a171 * 3
        + a172 * 4
        + a173 * 5
        + a174 * 6
        + a175 * 0
        + a176 * 1
        + a177 * 2
        + a178 * 3
        + a179 * 4
        + a180 * 5
        + a181 * 6
        + a182 * 0
        + a183 * 1
        + a184 * 2
        + a185 * 3
        + a186 * 4
        + a187 * 5
        + a188 * 6
        + a189 * 0
        + a190 * 1
        + a191 * 2
        + a192 * 3
        + a193 * 4
        + a194 * 5
        + a195 * 6
        + a196 * 0
        + a197 * 1
        + a198 * 2
        + a199 * 3;
    y.store([0], reshape(v, [1]));
}

#[test]
fn two_hundred_parameters() {
    on_every_device(|dev| {
        let y = dev.zeros::<i32>(1).unwrap();
        many_params(
            y.view([1]).unwrap(),
            -100,
            -97,
            -94,
            -91,
            -88,
            -85,
            -82,
            -79,
            -76,
            -73,
            -70,
            -67,
            -64,
            -61,
            -58,
            -55,
            -52,
            -49,
            -46,
            -43,
            -40,
            -37,
            -34,
            -31,
            -28,
            -25,
            -22,
            -19,
            -16,
            -13,
            -10,
            -7,
            -4,
            -1,
            2,
            5,
            8,
            11,
            14,
            17,
            20,
            23,
            26,
            29,
            32,
            35,
            38,
            41,
            44,
            47,
            50,
            53,
            56,
            59,
            62,
            65,
            68,
            71,
            74,
            77,
            80,
            83,
            86,
            89,
            92,
            95,
            98,
            101,
            104,
            107,
            110,
            113,
            116,
            119,
            122,
            125,
            128,
            131,
            134,
            137,
            140,
            143,
            146,
            149,
            152,
            155,
            158,
            161,
            164,
            167,
            170,
            173,
            176,
            179,
            182,
            185,
            188,
            191,
            194,
            197,
            200,
            203,
            206,
            209,
            212,
            215,
            218,
            221,
            224,
            227,
            230,
            233,
            236,
            239,
            242,
            245,
            248,
            251,
            254,
            257,
            260,
            263,
            266,
            269,
            272,
            275,
            278,
            281,
            284,
            287,
            290,
            293,
            296,
            299,
            302,
            305,
            308,
            311,
            314,
            317,
            320,
            323,
            326,
            329,
            332,
            335,
            338,
            341,
            344,
            347,
            350,
            353,
            356,
            359,
            362,
            365,
            368,
            371,
            374,
            377,
            380,
            383,
            386,
            389,
            392,
            395,
            398,
            401,
            404,
            407,
            410,
            413,
            416,
            419,
            422,
            425,
            428,
            431,
            434,
            437,
            440,
            443,
            446,
            449,
            452,
            455,
            458,
            461,
            464,
            467,
            470,
            473,
            476,
            479,
            482,
            485,
            488,
            491,
            494,
            497,
        )
        .grid([1])
        .launch()
        .unwrap();
        assert_eq!(y.to_vec().unwrap(), [(0..200).map(|i| (i * 3 - 100) * (i % 7)).sum::<i32>()], "{}", dev.name());
    });
}

#[test]
fn launches_from_tasks_of_rayon() {
    // While a plain thread's launch is under way, every thread of rayon's pool may be waiting for the device.
    on_every_device(|dev| {
        let work = |i: i32| {
            let x = dev.buffer_from(&vec![i; 5_000]).unwrap();
            add_one(x.view([5_000]).unwrap(), 16).grid([313]).launch().unwrap();
            assert_eq!(x.to_vec().unwrap(), vec![i + 1; 5_000], "{}", dev.name());
        };
        std::thread::scope(|s| {
            s.spawn(|| (0..200).for_each(work));
            rayon::scope(|r| (0..200).for_each(|i| r.spawn(move |_| work(i))));
        });
    });
}

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

#[kernel]
fn mark(y: Out<i32, 3>) {
    let (a, b, c) = (program_id(0), program_id(1), program_id(2));
    y.store([c, b, a], full([1, 1, 1], 1) + a + b * 10 + c * 100);
}

#[test]
fn long_axes() {
    on_every_device(|dev| {
        for (x, y, z) in [(70_000usize, 1usize, 1usize), (1, 70_000, 1), (1, 1, 70_000), (3, 5, 7)] {
            let b = dev.zeros::<i32>(x * y * z).unwrap();
            let launched = mark(b.view([z, y, x]).unwrap()).grid([x, y, z]).num_warps(1).launch();
            // CUDA's second and third axis end at 65,535, and it says so.
            if dev.info().kind == DeviceKind::Cuda && y.max(z) > 65_535 {
                assert!(launched.unwrap_err().to_string().contains("put the longest extent on axis 0"));
                continue;
            }
            launched.unwrap();
            let got = b.to_vec().unwrap();
            for c in 0..z {
                for bb in 0..y {
                    for a in 0..x {
                        assert_eq!(
                            got[(c * y + bb) * x + a],
                            1 + a as i32 + bb as i32 * 10 + c as i32 * 100,
                            "{}",
                            dev.name()
                        );
                    }
                }
            }
        }
    });
}

#[test]
fn dropped_while_pending() {
    on_every_device(|dev| {
        let keep = dev.zeros::<i32>(4096).unwrap();
        for round in 0..50 {
            let tmp = dev.buffer_from(&vec![round; 4096]).unwrap();
            let p = add_one(tmp.view([4096]).unwrap(), 64).grid([64]).prepare().unwrap();
            for _ in 0..10 {
                p.launch().unwrap()
            }
            keep.copy_from_buffer(&tmp).unwrap();
            drop(tmp);
            p.launch().unwrap();
            drop(p);
            let other = dev.buffer_from(&vec![-1i32; 4096]).unwrap();
            assert_eq!(keep.to_vec().unwrap(), vec![round + 10; 4096], "{}", dev.name());
            assert_eq!(other.to_vec().unwrap(), vec![-1; 4096]);
        }
    });
}

#[kernel]
fn größe(r#type: In<f32, 1>, длина: Out<f32, 1>, arg_длина: f32, #[comptime] r#loop: usize) {
    длина.store([0], r#type.load([0], [r#loop]) * arg_длина);
}

#[kernel]
fn r#match(x: InOut<i32, 1>, x_dim0: i32, x_stride0: i32) {
    x.store([0], x.load([0], [4]) + x_dim0 + x.dim(0) * x_stride0);
}

#[test]
fn names_that_are_no_names_elsewhere() {
    on_every_device(|dev| {
        let x = dev.buffer_from(&[1.0f32, 2.0]).unwrap();
        let y = dev.zeros::<f32>(2).unwrap();
        größe(x.view([2]).unwrap(), y.view([2]).unwrap(), 3.0, 2).grid([1]).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [3.0, 6.0], "{}", dev.name());
        let x = dev.buffer_from(&[1, 2]).unwrap();
        r#match(x.view([2]).unwrap(), 10, 100).grid([1]).launch().unwrap();
        assert_eq!(x.to_vec().unwrap(), [211, 212], "{}", dev.name());
    });
}

#[kernel]
fn bits<T: Int>(x: In<T, 1>, y: Out<T, 1>) {
    let v = x.load([0], [8]);
    y.store([0], ((v & 12) | 1) ^ !(v << 1));
}

#[test]
fn integers_have_the_bitwise_operators() {
    on_every_device(|dev| {
        let host = [0i64, 1, 5, 12, -1, i64::MAX, i64::MIN, 77];
        let (x, y) = (dev.buffer_from(&host).unwrap(), dev.zeros::<i64>(8).unwrap());
        bits(x.view([8]).unwrap(), y.view([8]).unwrap()).grid([1]).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), host.map(|v| ((v & 12) | 1) ^ !(v << 1)));
    });
}

/// Each program writes the sum of what its neighbours' rows hold, through three views of one buffer.
#[kernel]
fn same_buffer<T: Num>(a: In<T, 2>, b: In<T, 2>, c: InOut<T, 2>, #[comptime] n: usize, #[comptime] twice: bool) {
    for i in 0..a.dim(0) {
        let mut v = a.load([i, 0], [1, n]) + trans(b.load([0, i], [n, 1]));
        if twice {
            v = v + v;
        }
        c.store([i, 0], v + c.load([i, 0], [1, n]));
    }
}

fn same_buffer_case<T: HostElement + Num + PartialEq + std::fmt::Debug>(
    dev: &Device,
    of: impl Fn(i64) -> T,
    add: impl Fn(T, T) -> T,
) {
    for (ao, bo, co, twice) in
        [(0usize, 64usize, 128usize, false), (0, 3, 5, true), (8, 0, 0, false), (0, 0, 8, true), (1, 2, 64, false)]
    {
        let mut host: Vec<T> = (0..300).map(|i| of(i % 5)).collect();
        let x = dev.buffer_from(&host).unwrap();
        let (rows, n) = (6usize, 8usize);
        let a = x.view_strided(ao, [rows, n], [8, 1]).unwrap();
        let b = x.view_strided(bo, [n, rows], [1, 8]).unwrap();
        let c = x.view_strided(co, [rows, n], [8, 1]).unwrap();
        same_buffer(a, b, c, n, twice).grid([1]).launch().unwrap();
        for i in 0..rows {
            let v: Vec<T> = (0..n)
                .map(|j| {
                    let v = add(host[ao + i * 8 + j], host[bo + i * 8 + j]);
                    add(if twice { add(v, v) } else { v }, host[co + i * 8 + j])
                })
                .collect();
            host[co + i * 8..co + i * 8 + n].copy_from_slice(&v);
        }
        assert_eq!(x.to_vec().unwrap(), host, "{} {ao} {bo} {co} {twice}", dev.name());
    }
}

#[test]
fn one_kernel_with_types_and_values_interleaved() {
    on_every_device(|dev| {
        for _ in 0..2 {
            same_buffer_case::<i32>(dev, |i| i as i32, i32::wrapping_add);
            same_buffer_case::<u8>(dev, |i| i as u8, u8::wrapping_add);
            same_buffer_case::<f32>(dev, |i| i as f32, |a, b| a + b);
            same_buffer_case::<i64>(dev, |i| i << 40, i64::wrapping_add);
            same_buffer_case::<f16>(dev, |i| f16::from_f32(i as f32), |a, b| a + b);
            same_buffer_case::<f64>(dev, |i| i as f64, |a, b| a + b);
        }
    });
}

/// Blocks of different kinds of values in one struct, `Option`s and branches that change them.
#[kernel]
fn carried(y: Out<i32, 1>, n: i32, #[comptime] depth: usize) {
    let mut a = (zeros::<i32>([8]), scalar::<i32>(1));
    let mut swap = [arange(0, 8), arange(8, 16)];
    for i in 0..n {
        let t = swap[0];
        swap[0] = swap[1];
        swap[1] = t;
        if i % 3 == 0 {
            a.0 = a.0 + swap[0];
        } else if i % 3 == 1 {
            a.1 = a.1 + 1;
            let mut k = a.1;
            while k > 3 {
                k -= 2;
                a.0 = a.0 + k;
            }
        }
        for _ in unroll(0..depth) {
            a = (a.0 + a.1, a.1);
        }
    }
    y.store([0], a.0 * 2 + swap[1]);
}

#[test]
fn swapped_and_nested_state() {
    on_every_device(|dev| {
        for (n, depth) in [(0, 1usize), (1, 0), (7, 2), (20, 1)] {
            let y = dev.zeros::<i32>(8).unwrap();
            carried(y.view([8]).unwrap(), n, depth).grid([1]).launch().unwrap();
            let (mut a, mut count) = ([0i32; 8], 1i32);
            let mut swap: [[i32; 8]; 2] = [std::array::from_fn(|i| i as i32), std::array::from_fn(|i| 8 + i as i32)];
            for i in 0..n {
                swap.swap(0, 1);
                if i % 3 == 0 {
                    (0..8).for_each(|j| a[j] += swap[0][j]);
                } else if i % 3 == 1 {
                    count += 1;
                    let mut k = count;
                    while k > 3 {
                        k -= 2;
                        a.iter_mut().for_each(|v| *v += k);
                    }
                }
                for _ in 0..depth {
                    a.iter_mut().for_each(|v| *v += count);
                }
            }
            let want: Vec<i32> = (0..8).map(|j| a[j] * 2 + swap[1][j]).collect();
            assert_eq!(y.to_vec().unwrap(), want, "{} {n} {depth}", dev.name());
        }
    });
}

thread_local! { static KEPT: std::cell::Cell<Option<Tile<i32>>> = const { std::cell::Cell::new(None) }; }

#[kernel]
fn keeps(y: Out<i32, 1>) {
    let v = arange(0, 4);
    KEPT.set(Some(v));
    y.store([0], v);
}

#[kernel]
fn takes(y: Out<i32, 1>) {
    let v = KEPT.get().unwrap_or(arange(0, 4));
    y.store([0], v + 1);
}

#[test]
fn tiles_of_another_kernel_are_refused() {
    let dev = Device::open("cpu").unwrap();
    let y = dev.zeros::<i32>(4).unwrap();
    keeps(y.view([4]).unwrap()).grid([1]).launch().unwrap();
    let e = takes(y.view([4]).unwrap()).grid([1]).launch().unwrap_err().to_string();
    assert!(e.contains("a value made outside this kernel is used in it"), "{e}");
}

#[kernel]
fn wide<T: Num>(x: In<T, 8>, y: Out<T, 8>) {
    y.store([0; 8], x.load([0; 8], [2; 8]) + 1);
}

#[test]
fn views_of_eight_dimensions() {
    on_every_device(|dev| {
        let host: Vec<i64> = (0..256).map(|i| i * i).collect();
        let (x, y) = (dev.buffer_from(&host).unwrap(), dev.zeros::<i64>(256).unwrap());
        let reversed: [isize; 8] = std::array::from_fn(|i| -(1 << i));
        wide(x.view_strided(255, [2; 8], reversed).unwrap(), y.view([2; 8]).unwrap()).grid([1]).launch().unwrap();
        let want: Vec<i64> = (0..256u32).map(|i| host[255 - (i.reverse_bits() >> 24) as usize] + 1).collect();
        assert_eq!(y.to_vec().unwrap(), want, "{}", dev.name());
    });
}

#[test]
fn variables_with_senseless_values_stop_nothing() {
    // In a process of its own: the environment is read by every thread.
    let exe = std::env::current_exe().unwrap();
    for (name, value) in [
        ("TILEWRIGHT_CACHE_DIR", "/dev/null"),
        ("TILEWRIGHT_CACHE_DIR", "/proc/nothing"),
        ("TILEWRIGHT_CACHE", "maybe"),
        ("TILEWRIGHT_DUMP", "/dev/null/x"),
        ("TILEWRIGHT_PTXAS", "/nothing"),
        ("HOME", "/dev/null"),
    ] {
        let out = std::process::Command::new(&exe)
            .args(["--exact", "kernels_of_one_name_in_two_functions_are_two_kernels"])
            .env(name, value)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&out.stdout);
        assert!(out.status.success() && text.contains("1 passed"), "{name}={value}: {text}");
    }
}
