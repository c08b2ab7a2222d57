//! Kernels written with `#[kernel]`, launched on every device of this machine: one source, the same results.

extern crate tilewright_runtime as tilewright;

use std::process::Command;
use tilewright::dsl::*;
use tilewright::{CacheOutcome, Device, Error};

#[kernel]
fn scale<T: Float>(x: In<T, 1>, y: Out<T, 1>, s: f32, #[comptime] block: usize) {
    let start = program_id(0) * block;
    let v = x.load([start], [block]).to::<f32>() * s;
    y.store([start], v.to::<T>());
}

#[kernel]
fn add_into(x: Ptr<f32>, y: Ptr<f32>, n: i32, #[comptime] block: usize) {
    let i = program_id(0) * block + arange(0, block);
    let mask = i < n;
    (y + i).store_if(mask, (x + i).load_if(mask) + (y + i).load_if(mask));
}

#[kernel]
fn transpose(x: In<i32, 2>, y: Out<i32, 2>, #[comptime] block: usize) {
    let (i, j) = (program_id(0) * block, program_id(1) * block);
    y.store([j, i], trans(x.load([i, j], [block, block])));
}

#[kernel]
fn softmax<T: Float>(x: In<T, 2>, y: Out<T, 2>, #[comptime] block: usize) {
    let row = program_id(0);
    let v = x.load_or([row, 0], [1, block], -inf()).to::<f32>();
    let e = exp(v - max(v, 1));
    y.store([row, 0], (e / sum(e, 1)).to::<T>());
}

#[kernel]
fn matmul(a: In<f32, 2>, b: In<f32, 2>, c: Out<f32, 2>, k: i32, #[comptime] bm: usize, #[comptime] bn: usize) {
    let (m0, n0) = (program_id(0) * bm, program_id(1) * bn);
    let mut acc = zeros::<f32>([bm, bn]);
    for k0 in (0..k).step_by(16) {
        acc = dot(a.load([m0, k0], [bm, 16]), b.load([k0, n0], [16, bn]), acc);
    }
    c.store([m0, n0], acc);
}

/// Writes through a pointer where the launch gave it nothing.
#[kernel]
fn stray(y: Ptr<f32>, at: i32) {
    (y + at).store(1.0);
}

/// The coordinates and the extents of the grid, by each program.
#[kernel]
fn whoami(y: Out<i32, 1>) {
    let id = program_id(0) + num_programs(0) * (program_id(1) + num_programs(1) * program_id(2));
    y.store([id], reshape(id, [1]));
}

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

fn numbers(n: usize) -> Vec<f32> {
    (0..n).map(|i| (i as f32 * 0.37).sin()).collect()
}

#[test]
fn views_of_any_length_and_type() {
    on_every_device(|dev| {
        for n in [1, 255, 256, 1000, 1024] {
            let host: Vec<f16> = numbers(n).into_iter().map(f16::from_f32).collect();
            let x = dev.buffer_from(&host).unwrap();
            let y = dev.zeros::<f16>(n + 1).unwrap();
            scale(x.view([n]).unwrap(), y.view([n]).unwrap(), 2.0, 256).grid([n.div_ceil(256)]).launch().unwrap();
            let got = y.to_vec().unwrap();
            for i in 0..n {
                assert_eq!(got[i].to_f32(), host[i].to_f32() * 2.0, "{}: element {i} of {n}", dev.name());
            }
            assert_eq!(got[n], f16::ZERO, "nothing beyond the view is written");
        }
    });
}

#[test]
fn misaligned_pointers_after_aligned_ones() {
    on_every_device(|dev| {
        let host = numbers(2048);
        let x = dev.buffer_from(&host).unwrap();
        let before = dev.variants_of(concat!(module_path!(), "::add_into"));
        for (from, to) in [(0, 0), (1, 0), (3, 5), (4, 8), (0, 1)] {
            let y = dev.buffer_from(&host).unwrap();
            let n = 1000;
            let (xs, ys) = (x.slice(from..from + n).unwrap(), y.slice(to..to + n).unwrap());
            add_into(xs, ys, n as i32, 256).grid([4]).launch().unwrap();
            let got = y.to_vec().unwrap();
            for i in 0..2048usize {
                let j = i.wrapping_sub(to);
                let expected = if j < n { host[i] + host[from + j] } else { host[i] };
                assert_eq!(got[i], expected, "{}: element {i}, offsets {from} and {to}", dev.name());
            }
        }
        let variants = dev.variants_of(concat!(module_path!(), "::add_into")) - before;
        assert!((1..=4).contains(&variants), "{variants} variants for two alignments of two pointers");
    });
}

#[test]
fn in_place_and_overlapping_arguments() {
    on_every_device(|dev| {
        let host = numbers(512);
        let x = dev.buffer_from(&host).unwrap();
        let v = x.view([512]).unwrap();
        scale(v, v, 3.0, 256).grid([2]).launch().unwrap();
        assert_eq!(x.to_vec().unwrap(), host.iter().map(|v| v * 3.0).collect::<Vec<_>>());
    });
}

#[test]
fn strided_negative_and_repeated_views() {
    on_every_device(|dev| {
        let host: Vec<f32> = (0..100).map(|i| i as f32).collect();
        let x = dev.buffer_from(&host).unwrap();
        let y = dev.zeros::<f32>(64).unwrap();
        let run = |offset, n: usize, stride| {
            let x = x.view_strided(offset, [n], [stride]).unwrap();
            scale(x, y.view([n]).unwrap(), 1.0, 32).grid([n.div_ceil(32)]).launch().unwrap();
            y.to_vec().unwrap()[..n].to_vec()
        };
        assert_eq!(run(1, 33, 3), (0..33).map(|i| 1.0 + 3.0 * i as f32).collect::<Vec<_>>());
        assert_eq!(run(99, 40, -2), (0..40).map(|i| 99.0 - 2.0 * i as f32).collect::<Vec<_>>());
        assert_eq!(run(7, 50, 0), vec![7.0; 50]);
    });
}

#[test]
fn matrices() {
    on_every_device(|dev| {
        let (m, n) = (45, 70);
        let host: Vec<i32> = (0..m * n).map(|i| i as i32).collect();
        let x = dev.buffer_from(&host).unwrap();
        let y = dev.zeros::<i32>(m * n).unwrap();
        let launch = transpose(x.view([m, n]).unwrap(), y.view([n, m]).unwrap(), 16);
        launch.grid([m.div_ceil(16), n.div_ceil(16)]).launch().unwrap();
        let got = y.to_vec().unwrap();
        for i in 0..m {
            for j in 0..n {
                assert_eq!(got[j * m + i], host[i * n + j], "{}: ({i}, {j})", dev.name());
            }
        }
    });
}

#[test]
fn reductions_and_products() {
    on_every_device(|dev| {
        let (rows, cols) = (5, 300);
        let host = numbers(rows * cols);
        let x = dev.buffer_from(&host).unwrap();
        let y = dev.zeros::<f32>(rows * cols).unwrap();
        softmax(x.view([rows, cols]).unwrap(), y.view([rows, cols]).unwrap(), 512).grid([rows]).launch().unwrap();
        let got = y.to_vec().unwrap();
        for r in 0..rows {
            let row = &host[r * cols..(r + 1) * cols];
            let total: f64 = row.iter().map(|v| f64::from(*v).exp()).sum();
            for c in 0..cols {
                let expected = f64::from(row[c]).exp() / total;
                let error = (f64::from(got[r * cols + c]) - expected).abs();
                assert!(error < 1e-7, "{}: ({r}, {c}) is off by {error}", dev.name());
            }
        }

        let (m, n, k) = (50, 33, 70);
        let (a, b) = (numbers(m * k), numbers(k * n));
        let (da, db, dc) =
            (dev.buffer_from(&a).unwrap(), dev.buffer_from(&b).unwrap(), dev.zeros::<f32>(m * n).unwrap());
        let (va, vb, vc) = (da.view([m, k]).unwrap(), db.view([k, n]).unwrap(), dc.view([m, n]).unwrap());
        matmul(va, vb, vc, k as i32, 32, 32).grid([m.div_ceil(32), n.div_ceil(32)]).launch().unwrap();
        let got = dc.to_vec().unwrap();
        for i in 0..m {
            for j in 0..n {
                let exact: f64 = (0..k).map(|l| f64::from(a[i * k + l]) * f64::from(b[l * n + j])).sum();
                let error = (f64::from(got[i * n + j]) - exact).abs();
                assert!(error < 1e-4, "{}: ({i}, {j}) is off by {error}", dev.name());
            }
        }
    });
}

#[test]
fn grids_of_three_axes_and_beyond_one_dispatch() {
    on_every_device(|dev| {
        for grid in [[3, 4, 5], [70_000, 1, 1], [1, 65_535, 2]] {
            let n = grid.iter().product();
            let y = dev.alloc::<i32>(n).unwrap();
            whoami(y.view([n]).unwrap()).grid(grid).num_warps(1).launch().unwrap();
            assert!(y.to_vec().unwrap().iter().copied().eq(0..n as i32), "{}: grid {grid:?}", dev.name());
        }
    });
}

#[test]
fn launches_of_one_stream_are_in_order_and_prepared_ones_repeat() {
    on_every_device(|dev| {
        let x = dev.buffer_from(&[1.0f32; 1000]).unwrap();
        let v = x.view([1000]).unwrap();
        let stream = dev.new_stream().unwrap();
        let launch = scale(v, v, 2.0, 256).grid([4]);
        let prepared = launch.prepare().unwrap();
        let start = stream.record().unwrap();
        for _ in 0..10 {
            prepared.launch_on(&stream).unwrap();
        }
        launch.launch_on(&stream).unwrap();
        let end = stream.record().unwrap();
        assert_eq!(x.to_vec().unwrap(), [2048.0; 1000], "{}: a copy waits for every stream", dev.name());
        assert!(start.elapsed_ms(&end).unwrap() > 0.0);
    });
}

#[test]
fn metadata_ir_and_code_can_be_printed() {
    on_every_device(|dev| {
        let x = dev.zeros::<f32>(512).unwrap();
        let v = x.view([512]).unwrap();
        let launch = scale(v, v, 1.0, 256).grid([2]).num_warps(2);
        let kernel = launch.compile().unwrap();
        let meta = kernel.metadata();
        assert_eq!((meta.name.as_str(), meta.device.as_str()), ("scale", dev.name()));
        assert!(launch.ir().unwrap().contains("view_load"), "{}", launch.ir().unwrap());
        let code = launch.code().unwrap();
        match dev.info().kind {
            tilewright::DeviceKind::Cpu => assert!(code.contains("view_load"), "{code}"),
            tilewright::DeviceKind::Cuda => {
                assert!(code.contains(".entry"), "{code}");
                assert!(meta.resources.registers.is_some_and(|r| r > 0) && meta.threads == 64, "{meta:?}");
            }
            tilewright::DeviceKind::Vulkan => assert!(code.contains("OpEntryPoint GLCompute"), "{code}"),
            tilewright::DeviceKind::OpenCl => assert!(code.contains("__kernel"), "{code}"),
        }
        eprintln!("{meta:?}");
    });
}

#[test]
fn a_stray_access_is_an_error_on_the_cpu() {
    let dev = Device::open("cpu").unwrap();
    let y = dev.zeros::<f32>(16).unwrap();
    let e = stray(y.slice(4..8).unwrap(), 4).grid([1]).launch().unwrap_err().to_string();
    assert!(e.contains("stray") && e.contains("kernels.rs"), "{e}");
    assert_eq!(y.to_vec().unwrap(), [0.0; 16]);
    stray(y.slice(4..8).unwrap(), 3).grid([1]).launch().unwrap();
    assert_eq!(y.to_vec().unwrap()[7], 1.0);
}

/// Launches once on a device that compiles, and says what the cache did; for the tests below, in a process of its own.
#[test]
fn child_process_launches() {
    let Ok(device) = std::env::var("TILEWRIGHT_TEST_CHILD") else { return };
    let dev = Device::open(&device).unwrap();
    let x = dev.buffer_from(&[1.0f32; 300]).unwrap();
    let v = x.view([300]).unwrap();
    let launch = scale(v, v, 5.0, 256).grid([2]);
    launch.launch().unwrap();
    assert_eq!(x.to_vec().unwrap(), [5.0; 300]);
    let s = dev.stats();
    let outcome = match launch.compile().unwrap().metadata().cache {
        CacheOutcome::Hit => "hit",
        CacheOutcome::Miss => "miss",
        CacheOutcome::Off => "off",
    };
    println!(
        "outcome={outcome} compiled={} hits={} corrupt={} unwritten={}",
        s.compilations, s.disk_hits, s.disk_corrupt, s.disk_write_failures
    );
}

fn child(device: &str, vars: &[(&str, &str)]) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child_process_launches", "--nocapture"]);
    command.env_remove("TILEWRIGHT_CACHE").env_remove("TILEWRIGHT_CACHE_DIR").env_remove("TILEWRIGHT_DUMP");
    let output = command.env("TILEWRIGHT_TEST_CHILD", device).envs(vars.iter().copied()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    text.lines().find(|l| l.contains("outcome=")).unwrap_or_else(|| panic!("no outcome in {text}")).to_owned()
}

/// A device whose code is compiled and cached.
fn compiling_device() -> Option<String> {
    let found = Device::list().into_iter().find(|d| d.kind != tilewright::DeviceKind::Cpu && d.unusable.is_none());
    if found.is_none() {
        eprintln!("skipped: no device here compiles code");
    }
    found.map(|d| d.name)
}

fn files(dir: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { all.extend(files(&path)) } else { all.push(path) }
    }
    all.sort();
    all
}

#[test]
fn code_is_cached_on_disk_across_processes_and_damage_is_a_miss() {
    let Some(device) = compiling_device() else { return };
    let dir = tempfile::tempdir().unwrap();
    let vars = [("TILEWRIGHT_CACHE_DIR", dir.path().to_str().unwrap())];
    assert!(child(&device, &vars).contains("outcome=miss compiled=1 hits=0 corrupt=0 unwritten=0"));
    assert!(child(&device, &vars).contains("outcome=hit compiled=0 hits=1 corrupt=0 unwritten=0"));
    let entries = files(dir.path());
    assert_eq!(entries.len(), 1, "{entries:?}");
    let mut bytes = std::fs::read(&entries[0]).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&entries[0], &bytes).unwrap();
    assert!(child(&device, &vars).contains("outcome=miss compiled=1 hits=0 corrupt=1 unwritten=0"));
    assert!(child(&device, &vars).contains("outcome=hit"));
    std::fs::write(&entries[0], &bytes[..middle]).unwrap();
    assert!(child(&device, &vars).contains("outcome=miss compiled=1 hits=0 corrupt=1 unwritten=0"));
}

#[test]
fn a_cache_that_is_off_or_unwritable_stops_nothing() {
    let Some(device) = compiling_device() else { return };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let below = file.join("cache");
    let unwritable = child(&device, &[("TILEWRIGHT_CACHE_DIR", below.to_str().unwrap())]);
    assert!(unwritable.contains("compiled=1") && unwritable.contains("unwritten=1"), "{unwritable}");
    let off = [("TILEWRIGHT_CACHE", "off"), ("TILEWRIGHT_CACHE_DIR", dir.path().to_str().unwrap())];
    assert!(child(&device, &off).contains("outcome=off compiled=1"));
    assert_eq!(files(dir.path()), [file]);
}

#[test]
fn every_stage_is_dumped_on_request() {
    let Some(device) = compiling_device() else { return };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    child(&device, &[("TILEWRIGHT_DUMP", path), ("TILEWRIGHT_DUMP_FILTER", "other"), ("TILEWRIGHT_CACHE", "off")]);
    assert_eq!(files(dir.path()).len(), 0);
    child(&device, &[("TILEWRIGHT_DUMP", path), ("TILEWRIGHT_DUMP_FILTER", "sca"), ("TILEWRIGHT_CACHE", "off")]);
    let names: Vec<_> =
        files(dir.path()).iter().map(|p| p.file_name().unwrap().to_string_lossy().into_owned()).collect();
    let stages = ["00-tile.txt", "01-optimised.txt", "02-schedule.txt", "03-explanation.txt", "04-thread.txt"];
    assert_eq!(names[..5], stages, "{names:?}");
    assert!(names[5].starts_with("05-code."), "{names:?}");
}

#[test]
fn a_kernel_that_is_not_valid_says_where() {
    #[kernel]
    fn wrong(x: In<f32, 1>, #[comptime] block: usize) {
        let v = x.load([0], [block]);
        let w = x.load([0], [block * 2]);
        let _ = v + w;
    }
    let dev = Device::open("cpu").unwrap();
    let x = dev.zeros::<f32>(16).unwrap();
    let e = wrong(x.view([16]).unwrap(), 16).grid([1]).launch().unwrap_err();
    assert!(matches!(e, Error::Compile(_)));
    let e = e.to_string();
    assert!(e.contains("kernels.rs:") && e.contains("[16]") && e.contains("[32]"), "{e}");
}
