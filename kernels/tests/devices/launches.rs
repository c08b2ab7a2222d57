//! Grids, specialisation, and launches that are refused.

use crate::common::{assert_same, garbage, on_every_device, upload};
use tilewright::dsl::*;
use tilewright::{DeviceKind, Error};

#[kernel]
fn count_up(y: Ptr<i32>, n: i32, #[comptime] block: usize) {
    let i = program_id(0) * block + arange(0, block);
    (y + i).store_if(i < n, i);
}

#[test]
fn few_variants_of_many_lengths() {
    on_every_device(|dev| {
        let path = concat!(module_path!(), "::count_up");
        let before = dev.variants_of(path);
        for n in [1usize, 3, 16, 32, 48, 17] {
            let y = garbage::<i32>(dev, n);
            count_up(y.slice(..).unwrap(), n as i32, 64).grid([n.div_ceil(64)]).launch().unwrap();
            assert_same(&format!("{n} elements"), &y.to_vec().unwrap(), &(0..n as i32).collect::<Vec<_>>());
        }
        let variants = dev.variants_of(path) - before;
        assert!((1..=3).contains(&variants), "{variants} variants");
    });
}

/// Each program says where it is.
#[kernel]
fn places(y: Ptr<i32>, limit: i32) {
    let (x_id, y_id, z_id) = (program_id(0), program_id(1), program_id(2));
    let at = x_id + num_programs(0) * (y_id + num_programs(1) * z_id);
    (y + at).store_if(at < limit, at * 2 + 1);
}

#[test]
fn grids_of_any_extent() {
    on_every_device(|dev| {
        // Vulkan promises no more than 65535 programs along an axis for one dispatch.
        for grid in [[1, 1, 1], [5, 3, 7], [1, 9, 2], [100_001, 1, 1], [65_536, 2, 1]] {
            let n: usize = grid.iter().product();
            let y = garbage::<i32>(dev, n);
            places(y.slice(..).unwrap(), n as i32).grid(grid).num_warps(1).launch().unwrap();
            let expected: Vec<i32> = (0..n as i32).map(|i| i * 2 + 1).collect();
            assert_same(&format!("grid {grid:?}"), &y.to_vec().unwrap(), &expected);
        }
    });
}

#[test]
fn a_grid_of_nothing_does_nothing() {
    on_every_device(|dev| {
        let y = upload(dev, &[5, 5]);
        for grid in [[0, 1, 1], [1, 0, 1], [3, 2, 0]] {
            places(y.slice(..).unwrap(), 2).grid(grid).launch().unwrap();
        }
        assert_eq!(y.to_vec().unwrap(), [5, 5]);
    });
}

#[test]
fn what_cannot_be_launched_is_refused_and_the_device_goes_on() {
    on_every_device(|dev| {
        let y = upload(dev, &[5, 5]);
        let refused = |launch: tilewright::Launch<'_>| launch.launch().unwrap_err();
        let launch = || places(y.slice(..).unwrap(), 2);

        let e = refused(launch().grid([1 << 40]));
        assert!(matches!(e, Error::Grid { axis: 0, extent, .. } if extent == 1 << 40), "{e}");
        assert!(e.to_string().contains("places") && e.to_string().contains("help"), "{e}");
        if dev.info().kind == DeviceKind::Cuda {
            let e = refused(launch().grid([1, 65_536]));
            assert!(e.to_string().contains("put the longest extent on axis 0"), "{e}");
        }
        let e = refused(launch());
        assert!(e.to_string().contains("no grid"), "{e}");
        for warps in [0, 3, 64] {
            let e = refused(launch().grid([1]).num_warps(warps));
            assert!(e.to_string().contains("num_warps"), "{e}");
        }
        assert_eq!(y.to_vec().unwrap(), [5, 5]);
        launch().grid([2]).launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [1, 3]);
    });
}

/// More registers and more shared memory than any device has: a transpose of a megabyte by one program.
#[kernel]
fn too_large(x: In<f32, 2>, y: Out<f32, 2>) {
    y.store([0, 0], trans(x.load([0, 0], [512, 512])));
}

#[test]
fn a_kernel_too_large_for_the_device_is_an_error_or_right() {
    on_every_device(|dev| {
        let n = 512;
        let host: Vec<f32> = (0..n * n).map(|i| i as f32).collect();
        let (x, y) = (upload(dev, &host), garbage::<f32>(dev, n * n));
        match too_large(x.view([n, n]).unwrap(), y.view([n, n]).unwrap()).grid([1]).launch() {
            Ok(()) => {
                let expected: Vec<f32> = (0..n * n).map(|i| host[i % n * n + i / n]).collect();
                assert_same("transpose", &y.to_vec().unwrap(), &expected);
            }
            Err(e) => {
                let text = e.to_string();
                assert!(text.contains("too_large") && text.contains("help: use smaller tiles"), "{text}");
            }
        }
    });
}

#[test]
fn arguments_of_two_devices_are_refused() {
    on_every_device(|dev| {
        if dev.info().kind == DeviceKind::Cpu {
            return;
        }
        let cpu = tilewright::Device::open("cpu").unwrap();
        let (a, b) = (upload(dev, &[1.0f32; 4]), upload(&cpu, &[1.0f32; 4]));
        let e = tilewright_kernels::vector_add(a.view([4]).unwrap(), b.view([4]).unwrap(), a.view([4]).unwrap())
            .and_then(|l| l.launch())
            .unwrap_err();
        assert!(matches!(e, Error::DifferentDevices { .. }), "{e}");
    });
}
