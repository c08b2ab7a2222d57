//! The CUDA device against a stand-in for the driver's library: which calls it makes, and what it makes of errors. What
//! kernels compute is for a real GPU to show.
#![cfg(target_os = "linux")]

extern crate tilewright_runtime as tilewright;

use std::path::Path;
use std::process::Command;
use tilewright::dsl::*;
use tilewright::{Device, DeviceGraphBuilder, Error};

#[kernel]
fn scale(x: In<f32, 1>, y: Out<f32, 1>, s: f32) {
    let start = program_id(0) * 128;
    y.store([start], x.load([start], [128]) * s);
}

/// Builds the stand-in; `None`, with a note, if there is no rustc.
fn build(dir: &Path) -> Option<()> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake_cuda/libcuda.rs");
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let output = Command::new(rustc)
        .args(["--edition", "2024", "--crate-type", "cdylib", "-o"])
        .args([dir.join("libcuda.so"), source])
        .output();
    match output {
        Err(e) => {
            eprintln!("skipped: rustc does not run: {e}");
            None
        }
        Ok(done) => {
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            Some(())
        }
    }
}

#[test]
fn the_driver_is_used_as_it_wants_to_be() {
    let dir = tempfile::tempdir().unwrap();
    let Some(()) = build(dir.path()) else { return };
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_process_uses_the_driver", "--nocapture", "--test-threads=1"])
        .env("LD_LIBRARY_PATH", dir.path())
        .env("TILEWRIGHT_TEST_CHILD", "1")
        .env("TILEWRIGHT_PTXAS", "off")
        .env("TILEWRIGHT_CACHE", "off")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let all = format!("{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{all}");
    // x: base, extent, stride; y: the same; s.
    let bits = 2.0f32.to_bits();
    assert!(text.contains(&format!("launch grid 2 1 1 block 64 1 1 parameters 7 last {bits}")), "{all}");
    assert!(text.contains("entry tw_scale"), "{all}");
    // Everything made is destroyed but the two buffers of the lost device, which a driver takes back with the context.
    assert!(text.contains("closed, 2 live"), "{all}");
    // A launch on another stream waits for the copies before it; a copy waits for that launch.
    assert_eq!(text.matches(" waits for ").count(), 2, "{all}");
    // Two submissions of one graph; between them the one node that reads the first slot was changed.
    assert_eq!(text.matches("graph launch of 2 kernels").count(), 2, "{all}");
    assert_eq!(text.matches("update of a node").count(), 1, "{all}");
    let nodes: Vec<&str> = text.lines().filter(|l| l.starts_with("node ")).collect();
    let s = [2.0f32, 3.0].map(f32::to_bits);
    assert!(nodes[0].ends_with(&format!("last {}", s[0])) && nodes[1].ends_with(&format!("last {}", s[1])), "{all}");
    assert_eq!(nodes[1], nodes[3], "{all}");
    // The address of the first view is another one; nothing else is.
    let parts =
        |i: usize| nodes[i].split_once(" first ").and_then(|(a, b)| Some((a, b.split_once(" last ")?))).unwrap();
    let ((a, (first, last)), (b, (other_first, other_last))) = (parts(0), parts(2));
    assert!((a, last) == (b, other_last) && first != other_first, "{all}");
}

#[test]
fn child_process_uses_the_driver() {
    if std::env::var_os("TILEWRIGHT_TEST_CHILD").is_none() {
        return;
    }
    let list = Device::list();
    assert_eq!(list[0].to_string(), "cuda:0 (Fake GPU)");
    let dev = Device::best().unwrap();
    assert_eq!((dev.name(), dev.info().driver.as_str()), ("cuda:0", "12.8"));
    assert!(matches!(Device::open("cuda:1"), Err(Error::UnknownDevice { .. })));
    {
        let host: Vec<f32> = (0..200).map(|i| i as f32).collect();
        let x = dev.buffer_from(&host).unwrap();
        let y = dev.zeros::<f32>(200).unwrap();
        y.copy_from_buffer(&x).unwrap();
        assert_eq!(y.to_vec().unwrap(), host);
        let (vx, vy) = (x.view([200]).unwrap(), y.view([200]).unwrap());
        let launch = scale(vx, vy, 2.0).grid([2]).num_warps(2);
        launch.launch().unwrap();
        let kernel = launch.compile().unwrap();
        assert_eq!(kernel.metadata().resources.registers, Some(40));
        assert!(kernel.metadata().resources.code_bytes.is_some_and(|n| n > 100));

        let stream = dev.new_stream().unwrap();
        launch.launch_on(&stream).unwrap();
        launch.launch_on(&stream).unwrap();
        y.to_vec().unwrap();
        let (a, b) = (dev.default_stream().record().unwrap(), dev.default_stream().record().unwrap());
        assert_eq!(a.elapsed_ms(&b).unwrap(), 1.5);
        assert!(!a.is_done().unwrap());
        stream.synchronize().unwrap();

        // Many launches as one graph, then again with another buffer to read from.
        {
            let (z, other) = (dev.zeros::<f32>(200).unwrap(), dev.zeros::<f32>(200).unwrap());
            let [mx, my, mz, other] = [&x, &y, &z, &other].map(|b| b.memory());
            let mut graph = DeviceGraphBuilder::new(&dev, &[mx, my, mz]).unwrap();
            graph.launch(&launch, &[0, 1]).unwrap();
            graph.launch(&scale(vy, z.view([200]).unwrap(), 3.0).grid([2]).num_warps(2), &[1, 2]).unwrap();
            let mut graph = graph.finish().unwrap();
            graph.launch(&[mx, my, mz]).unwrap();
            graph.launch(&[other, my, mz]).unwrap();
            assert_eq!((dev.stats().graph_launches, graph.rebound()), (2, 1));
        }

        let e = dev.zeros::<u8>(1 << 40).unwrap_err().to_string();
        assert!(e.contains("1099511627776 bytes asked for, 536870912 of 1073741824 free"), "{e}");
        let e = launch.clone().grid([1, 70_000]).launch().unwrap_err().to_string();
        assert!(e.contains("axis 1") && e.contains("65535"), "{e}");

        // A fault is met by the next wait, and by everything after it.
        scale(vx, vy, 2.0).grid([666]).num_warps(2).launch().unwrap();
        let e = dev.synchronize().unwrap_err();
        assert!(matches!(e, Error::DeviceLost { .. }));
        let e = e.to_string();
        assert!(e.contains("cuCtxSynchronize") && e.contains("an illegal memory access was encountered"), "{e}");
        for later in [y.to_vec().map(|_| ()), launch.launch(), dev.alloc::<u8>(1).map(|_| ()), a.synchronize()] {
            let later = later.unwrap_err().to_string();
            assert!(later.contains("is lost") && later.contains("cuCtxSynchronize"), "{later}");
        }
    }
}
