//! Views of every geometry, and views that overlap.

use super::*;

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
