//! Memory, copies, streams and events.

use super::on_every_device;
use crate::{Device, Element, Error};
use half::{bf16, f16};
use std::fmt::Debug;

fn round_trip<T: Element + PartialEq + Debug>(dev: &Device, values: &[T]) {
    let x = dev.buffer_from(values).unwrap();
    assert_eq!((x.len(), x.dtype()), (values.len(), T::DTYPE));
    assert_eq!(x.to_vec().unwrap(), values);
    let mut host = values.to_vec();
    host.reverse();
    x.copy_from(&host).unwrap();
    let y = dev.alloc::<T>(values.len()).unwrap();
    y.copy_from_buffer(&x).unwrap();
    let mut back = values.to_vec();
    y.copy_to(&mut back).unwrap();
    assert_eq!(back, host);
}

#[test]
fn every_type_goes_to_the_device_and_back() {
    on_every_device(|dev| {
        round_trip(dev, &[true, false, true]);
        round_trip(dev, &[i8::MIN, -1, 7]);
        round_trip(dev, &[i16::MIN, 3]);
        round_trip(dev, &[i32::MIN, i32::MAX]);
        round_trip(dev, &[i64::MIN, i64::MAX, 5]);
        round_trip(dev, &[u8::MAX, 1, 2, 3, 4]);
        round_trip(dev, &[u16::MAX]);
        round_trip(dev, &[u32::MAX, 0]);
        round_trip(dev, &[u64::MAX, 1]);
        round_trip(dev, &[f16::MAX, f16::from_f32(-0.5)]);
        round_trip(dev, &[bf16::MAX, bf16::from_f32(-0.5)]);
        round_trip(dev, &[f32::MIN_POSITIVE, -0.0, f32::INFINITY]);
        round_trip(dev, &[f64::EPSILON, 1e300]);
    });
}

#[test]
fn zeros_are_zero_and_bytes_of_bool_become_truth_values() {
    on_every_device(|dev| {
        assert!(dev.zeros::<f64>(1001).unwrap().to_vec().unwrap().iter().all(|v| v.to_bits() == 0));
        assert_eq!(dev.zeros::<u8>(3).unwrap().to_vec().unwrap(), [0; 3]);
        let b = dev.zeros::<bool>(5).unwrap();
        b.fill_bytes(0x7f).unwrap();
        assert_eq!(b.to_vec().unwrap(), [true; 5]);
    });
}

#[test]
fn large_copies_are_whole() {
    on_every_device(|dev| {
        // Above the staging buffer of devices that have one, and no multiple of anything.
        let values: Vec<u32> = (0..9_000_001u32).map(|i| i.wrapping_mul(2_654_435_761)).collect();
        assert!(dev.buffer_from(&values).unwrap().to_vec().unwrap() == values);
    });
}

#[test]
fn slices_copy_their_part() {
    on_every_device(|dev| {
        let x = dev.zeros::<u16>(10).unwrap();
        x.slice(3..6).unwrap().copy_from(&[7, 8, 9]).unwrap();
        assert_eq!(x.to_vec().unwrap(), [0, 0, 0, 7, 8, 9, 0, 0, 0, 0]);
        assert_eq!(x.slice(4..=6).unwrap().to_vec().unwrap(), [8, 9, 0]);
        assert_eq!(x.slice(10..).unwrap().to_vec().unwrap(), [0u16; 0]);
        assert!(matches!(x.slice(3..6).unwrap().copy_from(&[1]), Err(Error::LengthMismatch { .. })));
    });
}

#[test]
fn empty_buffers_are_buffers() {
    on_every_device(|dev| {
        let x = dev.zeros::<f32>(0).unwrap();
        assert!(x.is_empty());
        assert_eq!(x.to_vec().unwrap(), [0f32; 0]);
        x.copy_from(&[]).unwrap();
        assert_eq!(x.view([0]).unwrap().dims(), [0]);
        assert!(x.view([1]).is_err());
    });
}

#[test]
fn wrong_lengths_and_ranges_are_errors_that_tell_both_sides() {
    let dev = Device::open("cpu").unwrap();
    let x = dev.zeros::<f32>(4).unwrap();
    let e = x.copy_from(&[1.0; 5]).unwrap_err().to_string();
    assert!(e.contains("the buffer has 4 elements, the host slice 5"), "{e}");
    let e = x.copy_to(&mut [0.0; 3]).unwrap_err().to_string();
    assert!(e.contains("the buffer has 4 elements, the host slice 3"), "{e}");
    let e = x.view([2, 3]).unwrap_err().to_string();
    assert!(e.contains("[2, 3]") && e.contains("the buffer has 4 elements of f32"), "{e}");
    #[expect(clippy::reversed_empty_ranges, reason = "a mistake that must be an error")]
    let reversed = x.slice(3..1);
    assert!(reversed.is_err());
    assert!(x.slice(..5).is_err());
    assert!(x.slice(..=usize::MAX).is_err());
    assert!(x.view([usize::MAX, usize::MAX]).is_err());
}

#[test]
fn too_much_memory_is_an_error_with_the_bytes_asked_for() {
    on_every_device(|dev| {
        for len in [1usize << 50, usize::MAX / 4, usize::MAX] {
            let e = dev.zeros::<f32>(len).unwrap_err();
            assert!(matches!(e, Error::OutOfMemory { .. }), "{}: {e}", dev.name());
        }
        // And the device still works.
        round_trip(dev, &[1, 2, 3]);
    });
}

#[test]
fn memory_is_counted_and_given_back() {
    on_every_device(|dev| {
        let before = dev.stats();
        let x = dev.zeros::<f32>(1000).unwrap();
        let shared = x.clone();
        drop(x);
        assert!(dev.stats().bytes_in_use >= 4000);
        assert!(dev.stats().bytes_peak >= 4000);
        drop(shared);
        assert!(dev.stats().frees > before.frees);
        assert!(dev.stats().allocations > before.allocations);
        let before = dev.stats().frees;
        for _ in 0..40 {
            dev.alloc::<u8>(1 << 20).unwrap();
        }
        assert!(dev.stats().frees >= before + 40);
    });
}

#[test]
fn events_tell_device_time() {
    on_every_device(|dev| {
        let stream = dev.new_stream().unwrap();
        let start = stream.record().unwrap();
        let x = dev.zeros::<u8>(64 << 20).unwrap();
        let y = dev.zeros::<u8>(64 << 20).unwrap();
        y.copy_from_buffer(&x).unwrap();
        let end = dev.default_stream().record().unwrap();
        stream.wait(&end).unwrap();
        let last = stream.record().unwrap();
        let ms = start.elapsed_ms(&end).unwrap();
        assert!((1e-3..60e3).contains(&ms), "{}: filling and copying 64 MiB took {ms} ms", dev.name());
        assert!(start.elapsed_ms(&last).unwrap() >= ms);
        assert!((end.elapsed_ms(&start).unwrap() + ms).abs() < 1e-2, "time runs backwards too");
        last.synchronize().unwrap();
        assert!(last.is_done().unwrap() && start.is_done().unwrap());
        stream.synchronize().unwrap();
        dev.synchronize().unwrap();
    });
}

#[test]
fn things_of_different_devices_do_not_mix() {
    let cpu = Device::open("cpu").unwrap();
    let other = super::fake::device();
    let e = cpu.zeros::<f32>(4).unwrap().copy_from_buffer(&other.zeros::<f32>(4).unwrap()).unwrap_err().to_string();
    assert!(e.contains("cpu") && e.contains("fake:0"), "{e}");
    let event = other.default_stream().record().unwrap();
    assert!(matches!(cpu.default_stream().wait(&event), Err(Error::DifferentDevices { .. })));
    let mine = cpu.default_stream().record().unwrap();
    assert!(matches!(mine.elapsed_ms(&event), Err(Error::DifferentDevices { .. })));
}

#[test]
fn threads_share_a_device() {
    on_every_device(|dev| {
        std::thread::scope(|s| {
            for t in 0..4u32 {
                s.spawn(move || {
                    for i in 0..50 {
                        let values = vec![t * 1000 + i; 777];
                        let x = dev.buffer_from(&values).unwrap();
                        let y = dev.zeros::<u32>(777).unwrap();
                        y.copy_from_buffer(&x).unwrap();
                        let event = dev.default_stream().record().unwrap();
                        assert_eq!(y.to_vec().unwrap(), values);
                        event.synchronize().unwrap();
                    }
                });
            }
        });
    });
}
