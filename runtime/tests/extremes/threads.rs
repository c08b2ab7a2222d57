//! Many threads, many launches, buffers that go while work is pending.

use super::*;

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
