//! What a launch checks, packs and specialises.

use super::fake;
use super::{id, on_every_device, scale_kernel};
use crate::{Access, Device, Error, KernelArg, Launch, Options, View};

use std::time::{Duration, Instant};
use tilewright_compiler::dsl::KernelDef;

fn scale<'a>(x: View<'a, f32, 1>, y: View<'a, f32, 1>, s: f32) -> Launch<'a> {
    Launch::new(
        scale_kernel(),
        vec![
            ("x", KernelArg::from_view(x, Access::In)),
            ("y", KernelArg::from_view(y, Access::Out)),
            ("scale", KernelArg::from_scalar(s)),
        ],
    )
}

#[test]
fn arguments_arrive_as_words_in_parameter_order() {
    let (dev, log) = fake::logging();
    let x = dev.zeros::<f32>(1000).unwrap();
    let y = dev.zeros::<f32>(1000).unwrap();
    let addr = |b: &crate::Buffer<f32>| b.memory().addr();
    let launch = scale(x.view_strided(8, [300], [2]).unwrap(), y.view([300]).unwrap(), 2.0);
    launch.clone().grid([2]).launch().unwrap();
    launch.clone().grid([2, 3]).prepare().unwrap().launch().unwrap();
    launch.grid([1, 0, 7]).launch().unwrap();
    let words = vec![addr(&x) + 32, 300, 2, addr(&y), 300, 1, u64::from(2.0f32.to_bits())];
    let seen = log.0.lock().unwrap().clone();
    assert_eq!(seen.len(), 2, "a grid without programs launches nothing");
    assert_eq!(seen[0], fake::Seen { grid: [2, 1, 1], words: words.clone() });
    assert_eq!(seen[1], fake::Seen { grid: [2, 3, 1], words });
    assert_eq!(dev.stats().launches, 2);
}

#[test]
fn variants_are_few_and_counted() {
    let dev = fake::device();
    let (x, y) = (dev.zeros::<f32>(4096).unwrap(), dev.zeros::<f32>(4096).unwrap());
    let run = |at: usize, n: usize, stride: isize| {
        let x = x.view_strided(at, [n], [stride]).unwrap();
        scale(x, y.view([n]).unwrap(), 1.0).grid([1]).launch().unwrap();
    };
    for at in [0, 4, 8, 256] {
        for n in [16, 32, 48, 1024] {
            run(at, n, 1);
        }
    }
    assert_eq!(dev.stats().variants, 1, "aligned, divisible by 16");
    run(1, 16, 1);
    assert_eq!(dev.stats().variants, 2, "a misaligned pointer after aligned ones");
    run(2, 64, 1);
    run(3, 64, 1);
    assert_eq!(dev.stats().variants, 2, "misaligned is one class");
    run(0, 17, 1);
    run(0, 1023, 1);
    assert_eq!(dev.stats().variants, 3, "odd extents");
    run(0, 16, 2);
    assert_eq!(dev.stats().variants, 4, "a stride that is not 1");
    assert_eq!(dev.stats().compilations, 4);
    assert_eq!(dev.variants_of("tests::scale"), 4);
    assert_eq!(dev.variants_of("tests::other"), 0);
}

#[test]
fn in_place_is_another_variant_than_apart() {
    let dev = fake::device();
    let (x, y) = (dev.zeros::<f32>(256).unwrap(), dev.zeros::<f32>(256).unwrap());
    scale(x.view([256]).unwrap(), y.view([256]).unwrap(), 1.0).grid([1]).launch().unwrap();
    scale(y.view([256]).unwrap(), x.view([256]).unwrap(), 1.0).grid([1]).launch().unwrap();
    assert_eq!(dev.stats().variants, 1);
    let in_place = scale(x.view([256]).unwrap(), x.view([256]).unwrap(), 1.0).grid([1]);
    in_place.launch().unwrap();
    assert_eq!(dev.stats().variants, 2);
}

#[test]
fn options_are_part_of_a_variant_and_are_checked() {
    let dev = fake::device();
    let x = dev.zeros::<f32>(256).unwrap();
    let launch = scale(x.view([256]).unwrap(), x.view([256]).unwrap(), 1.0).grid([1]);
    launch.launch().unwrap();
    launch.clone().num_warps(8).launch().unwrap();
    launch.clone().options(Options { num_warps: 8, num_stages: 3 }).launch().unwrap();
    launch.clone().num_stages(1).launch().unwrap();
    launch.clone().fp_fusion(true).launch().unwrap();
    assert_eq!(dev.stats().variants, 4);
    for bad in [0, 3, 64, u32::MAX] {
        let e = launch.clone().num_warps(bad).launch().unwrap_err().to_string();
        assert!(e.contains(&format!("num_warps is {bad}")), "{e}");
    }
    assert!(launch.clone().num_stages(0).launch().is_err());
    assert_eq!(dev.stats().variants, 4);
}

#[test]
fn wrong_arguments_are_errors_that_name_them() {
    let dev = fake::device();
    let x = dev.zeros::<f32>(256).unwrap();
    let h = dev.zeros::<half::f16>(256).unwrap();
    let view = KernelArg::from_view(x.view([256]).unwrap(), Access::InOut);
    let one = KernelArg::from_scalar(1.0f32);
    let error = |args: Vec<(&'static str, KernelArg<'_>)>| {
        let e = Launch::new(scale_kernel(), args).grid([1]).launch().unwrap_err();
        assert!(matches!(e, Error::Arguments { .. }), "{e:?}");
        e.to_string()
    };
    let e = error(vec![("x", view), ("y", view)]);
    assert!(e.contains("3 parameters (`x`, `y`, `scale`), but 2 arguments"), "{e}");
    let e = error(vec![("x", view), ("z", view), ("scale", one)]);
    assert!(e.contains("parameter 1 is `y`, but the argument there is named `z`"), "{e}");
    let half = KernelArg::from_view(h.view([256]).unwrap(), Access::In);
    let e = error(vec![("x", half), ("y", view), ("scale", one)]);
    assert!(e.contains("`x` is a view of f32 with 1 dimensions, but a view of f16"), "{e}");
    let e =
        error(vec![("x", KernelArg::from_view(x.view([16, 16]).unwrap(), Access::In)), ("y", view), ("scale", one)]);
    assert!(e.contains("with 2 dimensions was given"), "{e}");
    let e = error(vec![("x", KernelArg::from_slice(x.slice(..).unwrap())), ("y", view), ("scale", one)]);
    assert!(e.contains("a pointer to f32 was given"), "{e}");
    let e = error(vec![("x", view), ("y", view), ("scale", KernelArg::from_scalar(1.0f64))]);
    assert!(e.contains("`scale` is a number of type f32, but a number of type f64"), "{e}");
    let e = error(vec![]);
    assert!(e.contains("the device is unknown"), "{e}");
    // A wrong launch after a right one with the same facts is not taken for it.
    Launch::new(scale_kernel(), vec![("x", view), ("y", view), ("scale", one)]).grid([1]).launch().unwrap();
    error(vec![("y", view), ("x", view), ("scale", one)]);
}

#[test]
fn grids_are_checked_against_the_device() {
    let dev = fake::device();
    let x = dev.zeros::<f32>(256).unwrap();
    let launch = scale(x.view([256]).unwrap(), x.view([256]).unwrap(), 1.0);
    let e = launch.launch().unwrap_err().to_string();
    assert!(e.contains("no grid was given"), "{e}");
    let e = launch.clone().grid([1, 65_536]).launch().unwrap_err().to_string();
    assert!(e.contains("65536 programs along axis 1, fake:0 allows 65535"), "{e}");
    let e = launch.clone().grid([1usize << 31]).launch().unwrap_err().to_string();
    assert!(e.contains("along axis 0"), "{e}");
    assert!(launch.clone().grid([1, 1, usize::MAX]).launch().is_err());
    launch.grid([(1usize << 31) - 1, 65_535, 65_535]).launch().unwrap();
}

#[test]
fn devices_do_not_mix_in_a_launch() {
    let (a, b) = (fake::device(), Device::open("cpu").unwrap());
    let (x, y) = (a.zeros::<f32>(256).unwrap(), b.zeros::<f32>(256).unwrap());
    let e = scale(x.view([256]).unwrap(), y.view([256]).unwrap(), 1.0).grid([1]).launch().unwrap_err().to_string();
    assert!(e.contains("`x` and `y`") && e.contains("fake:0") && e.contains("cpu"), "{e}");
    let launch = scale(x.view([256]).unwrap(), x.view([256]).unwrap(), 1.0).grid([1]);
    assert!(matches!(launch.launch_on(&b.default_stream()), Err(Error::DifferentDevices { .. })));
    assert!(matches!(launch.clone().on(&b).launch(), Err(Error::DifferentDevices { .. })));
    launch.on(&a).launch_on(&a.default_stream()).unwrap();
}

#[test]
fn threads_that_want_one_variant_compile_it_once() {
    let dev = fake::device();
    let x = dev.zeros::<f32>(256).unwrap();
    std::thread::scope(|s| {
        for _ in 0..8 {
            s.spawn(|| scale(x.view([256]).unwrap(), x.view([256]).unwrap(), 1.0).grid([1]).launch().unwrap());
        }
    });
    assert_eq!((dev.stats().compilations, dev.stats().variants), (1, 1));
}

#[test]
fn a_prepared_launch_outlives_its_buffers() {
    let (dev, log) = fake::logging();
    let prepared = {
        let x = dev.zeros::<f32>(256).unwrap();
        scale(x.view([256]).unwrap(), x.view([256]).unwrap(), 1.0).grid([1]).prepare().unwrap()
    };
    assert_eq!(dev.stats().bytes_in_use, 1024);
    prepared.launch().unwrap();
    assert_eq!(log.0.lock().unwrap().len(), 1);
    drop(prepared);
    assert_eq!(dev.stats().bytes_in_use, 0);
}

/// Prints what a launch costs the host beside the driver's call: `cargo test --release -- --nocapture launch_cost`.
#[test]
fn launch_cost() {
    let dev = fake::device();
    let x = dev.zeros::<f32>(256).unwrap();
    let def = scale_kernel();
    let make = || {
        let view = x.view([256]).unwrap();
        let args = vec![
            ("x", KernelArg::from_view(view, Access::In)),
            ("y", KernelArg::from_view(view, Access::Out)),
            ("scale", KernelArg::from_scalar(1.0f32)),
        ];
        Launch::new(def.clone(), args).grid([1])
    };
    let launch = make();
    launch.launch().unwrap();
    let prepared = launch.prepare().unwrap();
    let time = |what: &str, body: &dyn Fn()| {
        const N: u32 = 20_000;
        let best = (0..5).map(|_| {
            let start = Instant::now();
            (0..N).for_each(|_| body());
            start.elapsed().as_nanos() as f64 / f64::from(N)
        });
        let best = best.fold(f64::INFINITY, f64::min);
        eprintln!("{what}: {best:.0} ns");
        best
    };
    let all = time("made and launched", &|| make().launch().unwrap());
    time("launched again", &|| launch.launch().unwrap());
    time("prepared", &|| prepared.launch().unwrap());
    // Without optimisation and on a busy machine this is many times the true cost; it only keeps out what is absurd.
    assert!(all < 50_000.0, "a launch costs {all} ns");
}

#[test]
fn a_launch_that_ends_in_time_is_like_any_other() {
    on_every_device(|dev| {
        let (x, y) = (dev.buffer_from(&[3.0f32; 1000]).unwrap(), dev.zeros::<f32>(1000).unwrap());
        let launch = scale(x.view([1000]).unwrap(), y.view([1000]).unwrap(), 2.0).grid([4]).prepare().unwrap();
        launch.launch_within(Duration::from_secs(60)).unwrap();
        assert_eq!(y.to_vec().unwrap(), [6.0; 1000]);
        // Limits that no clock reaches are limits too.
        assert!(launch.time_within(Duration::MAX).unwrap() >= 0.0);
    });
}

#[test]
fn a_device_that_a_launch_keeps_busy_for_ever_is_given_up() {
    let dev = fake::hanging();
    let (x, y) = (dev.alloc::<f32>(16).unwrap(), dev.alloc::<f32>(16).unwrap());
    let launch = scale(x.view([16]).unwrap(), y.view([16]).unwrap(), 2.0).grid([1]).prepare().unwrap();
    let start = Instant::now();
    let error = launch.time_within(Duration::from_millis(50)).unwrap_err();
    assert!(matches!(error, Error::TimedOut { .. }) && start.elapsed() < Duration::from_secs(10), "{error}");
    assert!(error.to_string().contains("kernel `scale` did not end within 0.05 s on fake:0"), "{error}");
    // From now on nothing waits; not even giving everything back.
    let lost = |e: Error| assert!(matches!(&e, Error::DeviceLost { cause, .. } if cause.contains("scale")), "{e}");
    lost(launch.launch().unwrap_err());
    lost(launch.launch_within(Duration::from_secs(1)).unwrap_err());
    lost(dev.synchronize().unwrap_err());
    lost(y.to_vec().unwrap_err());
    lost(dev.alloc::<f32>(1).unwrap_err());
    lost(dev.default_stream().record().unwrap_err());
    drop((launch, x, y, dev));
}

/// A thousand specialisations do not stay: those launched last do.
#[test]
fn found_t15_variants_are_limited() {
    let dev = Device::open("cpu").unwrap();
    let (x, y) = (dev.buffer_from(&[3.0f32; 4]).unwrap(), dev.zeros::<f32>(4).unwrap());
    let launch = |path: &'static str| {
        let scale = scale_kernel();
        let def = KernelDef::new("scale", id(path), move |spec| scale.build(spec));
        let args = vec![
            ("x", KernelArg::from_view(x.view([4]).unwrap(), Access::In)),
            ("y", KernelArg::from_view(y.view([4]).unwrap(), Access::Out)),
            ("scale", KernelArg::from_scalar(2.0f32)),
        ];
        Launch::new(def, args).grid([1])
    };
    let paths: Vec<&'static str> = (0..1000).map(|i| &*format!("tests::many::{i}").leak()).collect();
    for path in &paths {
        launch(path).launch().unwrap();
        // The first one stays in use.
        launch(paths[0]).launch().unwrap();
    }
    let stay = paths.iter().filter(|p| dev.variants_of(p) > 0).count();
    assert!((400..=512).contains(&stay), "{stay} of 1000 stay");
    assert!(dev.variants_of(paths[0]) == 1 && dev.variants_of(paths[999]) == 1 && dev.variants_of(paths[1]) == 0);
    launch(paths[1]).launch().unwrap();
    assert_eq!(y.to_vec().unwrap(), [6.0; 4]);
}

/// A launch moved to other memory does there what it would have done.
#[test]
fn launches_are_moved_to_other_memory() {
    on_every_device(|dev| {
        let (x, y) = (dev.buffer_from(&[3.0f32; 8]).unwrap(), dev.zeros::<f32>(8).unwrap());
        let args = vec![
            ("x", KernelArg::from_view(x.view_strided(7, [4], [-2]).unwrap(), Access::In)),
            ("y", KernelArg::from_view(y.view_strided(2, [4], [1]).unwrap(), Access::Out)),
            ("scale", KernelArg::from_scalar(2.0f32)),
        ];
        let launch = Launch::new(scale_kernel(), args).grid([1]);
        let (other_x, other_y) = (dev.buffer_from(&[5.0f32; 300]).unwrap(), dev.zeros::<f32>(300).unwrap());
        let place = |r: &crate::Reach<'_>| Ok((if r.name == "x" { other_x.memory() } else { other_y.memory() }, 256));
        launch.relocated(place).unwrap().launch().unwrap();
        assert_eq!(y.to_vec().unwrap(), [0.0; 8]);
        let got = other_y.to_vec().unwrap();
        assert!(got.iter().enumerate().all(|(i, &v)| v == if (64..68).contains(&i) { 10.0 } else { 0.0 }), "{got:?}");
        let small = dev.zeros::<f32>(3).unwrap();
        assert!(launch.relocated(|_| Ok((small.memory(), 0))).is_err());
    });
}
