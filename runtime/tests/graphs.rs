//! Device graphs on every device of this machine: the same results as launches one by one, whatever memory they get.

extern crate tilewright_runtime as tilewright;

use tilewright::dsl::*;
use tilewright::{Buffer, Device, DeviceGraphBuilder, Error};

const N: usize = 1000;

#[kernel]
fn scale(x: In<f32, 1>, y: Out<f32, 1>, s: f32) {
    let start = program_id(0) * 128;
    y.store([start], x.load([start], [128]) * s);
}

#[kernel]
fn add(x: In<f32, 1>, y: In<f32, 1>, z: Out<f32, 1>) {
    let start = program_id(0) * 128;
    z.store([start], x.load([start], [128]) + y.load([start], [128]));
}

fn on_every_device(body: impl Fn(&Device)) {
    for info in Device::list() {
        match &info.unusable {
            Some(why) => eprintln!("skipped {}: {why}", info.name),
            None => body(&Device::open(&info.name).unwrap()),
        }
    }
}

fn numbers(from: f32) -> Vec<f32> {
    (0..N).map(|i| from + i as f32).collect()
}

#[test]
fn graphs_do_what_their_launches_do_with_any_memory() {
    on_every_device(|dev| {
        let grid = [N.div_ceil(128)];
        let buffers: Vec<Buffer<f32>> = (0..3).map(|_| dev.zeros(N).unwrap()).collect();
        let x = dev.buffer_from(&numbers(1.0)).unwrap();
        let all = [x.memory(), buffers[0].memory(), buffers[1].memory(), buffers[2].memory()];
        let mut graph = DeviceGraphBuilder::new(dev, &all).unwrap();
        let (vx, [v0, v1, v2]) = (x.view([N]).unwrap(), [0, 1, 2].map(|i| buffers[i].view([N]).unwrap()));
        // A chain in which every launch needs the one before: 2x, 2x + x, 3 * (2x + x).
        graph.launch(&scale(vx, v0, 2.0).grid(grid), &[0, 1]).unwrap();
        graph.launch(&add(v0, vx, v1).grid(grid), &[1, 0, 2]).unwrap();
        graph.launch(&scale(v1, v2, 3.0).grid([0]), &[2, 3]).unwrap();
        graph.launch(&scale(v1, v2, 3.0).grid(grid), &[2, 3]).unwrap();
        let mut graph = graph.finish().unwrap();
        assert_eq!(graph.len(), 3);
        let nine = |from: f32| numbers(from).iter().map(|x| x * 9.0).collect::<Vec<_>>();
        for _ in 0..3 {
            graph.launch(&all).unwrap();
        }
        assert_eq!((buffers[2].to_vec().unwrap(), graph.rebound()), (nine(1.0), 0), "{dev}");

        // Another input and another output: what was written before stays.
        for i in 2..6 {
            let (x, y) = (dev.buffer_from(&numbers(i as f32)).unwrap(), dev.zeros::<f32>(N).unwrap());
            graph.launch(&[x.memory(), all[1], all[2], y.memory()]).unwrap();
            // Memory may go as soon as the launches are submitted.
            drop(x);
            assert_eq!(y.to_vec().unwrap(), nine(i as f32), "{dev}");
        }
        assert_eq!(buffers[2].to_vec().unwrap(), nine(1.0), "{dev}");
    });
}

#[test]
fn memory_that_does_not_fit_is_refused() {
    on_every_device(|dev| {
        let (x, y) = (dev.zeros::<f32>(N).unwrap(), dev.zeros::<f32>(N).unwrap());
        let launch = scale(x.view([N]).unwrap(), y.view([N]).unwrap(), 2.0).grid([8]);
        let mut graph = DeviceGraphBuilder::new(dev, &[x.memory(), y.memory()]).unwrap();
        for slots in [&[0][..], &[1, 0], &[0, 2]] {
            assert!(matches!(graph.launch(&launch, slots), Err(Error::Arguments { .. })), "{slots:?}");
        }
        graph.launch(&launch, &[0, 1]).unwrap();
        let mut graph = graph.finish().unwrap();
        let small = dev.zeros::<f32>(N - 1).unwrap();
        let e = graph.launch(&[x.memory(), small.memory()]).unwrap_err().to_string();
        assert!(e.contains("slot 1 was made for 4000 bytes"), "{e}");
        let e = graph.launch(&[x.memory(), x.memory()]).unwrap_err().to_string();
        assert!(e.contains("writes memory that another of its slots has too"), "{e}");
        let e = graph.launch(&[x.memory()]).unwrap_err().to_string();
        assert!(e.contains("2 pieces of memory, not 1"), "{e}");
        let other = Device::open("cpu").unwrap().zeros::<f32>(N).unwrap();
        let elsewhere = graph.launch(&[other.memory(), y.memory()]);
        assert_eq!(elsewhere.is_ok(), dev.name() == "cpu");
        graph.launch(&[x.memory(), y.memory()]).unwrap();
    });
}
