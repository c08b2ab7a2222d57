//! Pointers: masks, gathers, scalars, overlaps, alignment.

use crate::common::{assert_same, bits, garbage, on_every_device, upload};
use tilewright::dsl::*;

#[kernel]
fn masked(x: Ptr<f32>, y: Ptr<f32>, lo: i32, hi: i32, #[comptime] block: usize) {
    let i = program_id(0) * block + arange(0, block);
    let inside = i >= lo && i < hi;
    let v = (x + i).load_or(inside, -7.0);
    (y + i).store(v);
    (y + i).store_if(!inside && i % 2 == 0, v * 2.0);
}

#[test]
fn masked_lanes_touch_nothing_and_read_other() {
    on_every_device(|dev| {
        let n = 1024;
        let host: Vec<f32> = (0..n).map(|i| i as f32).collect();
        for (lo, hi) in [(0, 1024), (3, 1000), (17, 17), (-5, 64), (1000, 5)] {
            let (x, y) = (upload(dev, &host), garbage::<f32>(dev, n));
            masked(x.slice(..).unwrap(), y.slice(..).unwrap(), lo, hi, 256).grid([4]).launch().unwrap();
            let expected: Vec<f32> = (0..n as i32)
                .map(|i| match (i >= lo && i < hi, i % 2 == 0) {
                    (true, _) => i as f32,
                    (false, true) => -14.0,
                    (false, false) => -7.0,
                })
                .collect();
            assert_same(&format!("{lo}..{hi}"), &y.to_vec().unwrap(), &expected);
        }
    });
}

/// Addresses from loaded indices.
#[kernel]
fn gather(x: Ptr<u16>, index: Ptr<i64>, y: Ptr<u16>, #[comptime] block: usize) {
    let i = program_id(0) * block + arange(0, block);
    let at = (index + i).load();
    (y + at).store((x + i).load() + 1);
}

#[test]
fn scatter_by_loaded_indices() {
    on_every_device(|dev| {
        let n = 512;
        let index: Vec<i64> = (0..n as i64).map(|i| i * 77 % n as i64).collect();
        let host: Vec<u16> = (0..n as u64).map(|i| bits(i) as u16).collect();
        let (x, at, y) = (upload(dev, &host), upload(dev, &index), garbage::<u16>(dev, n));
        gather(x.slice(..).unwrap(), at.slice(..).unwrap(), y.slice(..).unwrap(), 128).grid([4]).launch().unwrap();
        let mut expected = vec![0; n];
        for i in 0..n {
            expected[index[i] as usize] = host[i].wrapping_add(1);
        }
        assert_same("scattered", &y.to_vec().unwrap(), &expected);
    });
}

#[kernel]
fn scalars(bytes: Ptr<i8>, flags: Ptr<bool>, wide: Ptr<u64>, half: Ptr<f16>, k: u64, h: f16, f: bool) {
    let i = program_id(0);
    let b = (bytes + i).load();
    (bytes + i).store(b + 1);
    (flags + i).store(b % 2 == 0 && f);
    (wide + i).store(b.to::<u64>() * k);
    (half + i).store(b.to::<f16>() * h);
}

#[test]
fn scalars_of_every_width() {
    on_every_device(|dev| {
        let host: Vec<i8> = (-100..100).map(|i| (i + i / 2) as i8).collect();
        let n = host.len();
        let bytes = upload(dev, &host);
        let (flags, wide, half) = (garbage::<bool>(dev, n), garbage::<u64>(dev, n), garbage::<f16>(dev, n));
        scalars(
            bytes.slice(..).unwrap(),
            flags.slice(..).unwrap(),
            wide.slice(..).unwrap(),
            half.slice(..).unwrap(),
            0x1234_5678_9abc,
            f16::from_f32(0.5),
            true,
        )
        .grid([n])
        .num_warps(1)
        .launch()
        .unwrap();
        let map = |f: fn(i8) -> u64| host.iter().map(|&b| f(b)).collect::<Vec<_>>();
        assert_same("i8", &bytes.to_vec().unwrap(), &host.iter().map(|b| b.wrapping_add(1)).collect::<Vec<_>>());
        assert_same("bool", &flags.to_vec().unwrap(), &host.iter().map(|b| b % 2 == 0).collect::<Vec<_>>());
        assert_same("u64", &wide.to_vec().unwrap(), &map(|b| (b as u64).wrapping_mul(0x1234_5678_9abc)));
        let halves: Vec<f16> = host.iter().map(|&b| f16::from_f32(f32::from(b) * 0.5)).collect();
        assert_same("f16", &half.to_vec().unwrap(), &halves);
    });
}

/// All is read before anything is written, though other threads write what a thread reads.
#[kernel]
fn shift(x: Ptr<i32>, by: i32, #[comptime] block: usize) {
    let i = arange(0, block);
    let v = (x + i).load();
    (x + (i + by)).store(v);
    // And read again after it was written.
    let w = (x + (i + by + 1)).load_if(i < block - 1);
    (x + i).store_if(i < block - 1, w + 1);
}

#[test]
fn a_shift_in_place() {
    on_every_device(|dev| {
        for (block, by) in [(1024usize, 1usize), (1024, 3), (256, 40), (2048, 500)] {
            let host: Vec<i32> = (0..(block + by) as i32).map(|i| 10 * i).collect();
            let x = upload(dev, &host);
            shift(x.slice(..).unwrap(), by as i32, block).grid([1]).launch().unwrap();
            let mut expected = host.clone();
            expected[by..].copy_from_slice(&host[..block]);
            let read: Vec<i32> = (0..block - 1).map(|i| expected[i + by + 1] + 1).collect();
            expected[..block - 1].copy_from_slice(&read);
            assert_same(&format!("{block} by {by}"), &x.to_vec().unwrap(), &expected);
        }
    });
}

#[kernel]
fn double<T: Num>(x: Ptr<T>, y: Ptr<T>, n: i32, #[comptime] block: usize) {
    let i = program_id(0) * block + arange(0, block);
    let v = (x + i).load_if(i < n);
    (y + i).store_if(i < n, v + v);
}

#[test]
fn misaligned_after_aligned() {
    on_every_device(|dev| {
        let n = 640;
        let host: Vec<f16> = (0..n + 8).map(|i| f16::from_f32(i as f32 / 2.0)).collect();
        let x = upload(dev, &host);
        for start in [0usize, 1, 2, 3, 0, 5, 8] {
            let y = upload(dev, &vec![f16::ONE; n + 8]);
            let (vx, vy) = (x.slice(start..start + n).unwrap(), y.slice(start..start + n).unwrap());
            double(vx, vy, n as i32, 256).grid([3]).launch().unwrap();
            let expected: Vec<f16> = (0..n + 8)
                .map(|i| if (start..start + n).contains(&i) { f16::from_f32(i as f32) } else { f16::ONE })
                .collect();
            assert_same(&format!("from {start}"), &y.to_vec().unwrap(), &expected);
        }
    });
}
