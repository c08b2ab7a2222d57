//! Sizes, depths and settings beyond what there is: errors, not crashes.

use super::*;

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
            fails(add_one(x, 64).grid([1]).num_warps(warps), "num_warps is a power of two, 1 to 32");
        }
        for stages in [0, 100, u32::MAX] {
            fails(add_one(x, 64).grid([1]).num_stages(stages), "num_stages is 1 (no pipeline) to 16");
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
                assert!(e.contains("elements of a tile of shape [1048576]") && e.contains("extremes/main.rs:"), "{e}");
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
            .args(["--exact", "identity::kernels_of_one_name_in_two_functions_are_two_kernels"])
            .env(name, value)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&out.stdout);
        assert!(out.status.success() && text.contains("1 passed"), "{name}={value}: {text}");
    }
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
