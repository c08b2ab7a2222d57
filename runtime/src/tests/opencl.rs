//! Kernels written in OpenCL C by hand, in the form the code generator gives.

use crate::Device;
use crate::backend::{Image, PackedArgs, RawStream};
use crate::device::DeviceKind;
use tilewright_compiler::target::{Code, Compiled};
use tilewright_compiler::thread::{AbiParam, AbiTy};

fn compiled(source: &str) -> Compiled {
    let params = [("x", AbiTy::Ptr), ("y", AbiTy::Ptr), ("n", AbiTy::I32), ("s", AbiTy::F32)];
    Compiled {
        entry: "scale".into(),
        threads: 32,
        shared_bytes: 0,
        params: params.iter().map(|&(name, ty)| AbiParam { name: name.into(), ty }).collect(),
        code: Code::OpenClC(source.into()),
    }
}

const SCALE: &str = "
__kernel __attribute__((reqd_work_group_size(32, 1, 1)))
void scale(__global uchar *x, ulong x_offset, __global uchar *y, ulong y_offset, int n, float s) {
    int i = get_group_id(0) * 32 + get_local_id(0);
    if (i < n) {
        ((__global float *)(y + y_offset))[i] = ((__global const float *)(x + x_offset))[i] * s;
    }
}";

fn devices() -> Vec<Device> {
    let all = Device::list();
    // One that is listed may be of no use: its number says nothing.
    let usable = all.iter().filter(|d| d.kind == DeviceKind::OpenCl && d.unusable.is_none());
    let found: Vec<_> = usable.map(|d| Device::open(&d.name).unwrap()).collect();
    if found.is_empty() {
        eprintln!("skipped: no usable OpenCL device");
    }
    found
}

/// Every device that a test opens by itself is one that can be used.
#[test]
fn found_b1_only_usable_devices_are_opened() {
    let listed = Device::list();
    for dev in devices() {
        assert!(listed.iter().any(|d| d.name == dev.name() && d.unusable.is_none()), "{dev}");
    }
}

#[test]
fn a_kernel_gets_handles_offsets_and_numbers() {
    for dev in devices() {
        let backend = &dev.inner.backend;
        let kernel = backend.load(&Image::Code { compiled: &compiled(SCALE), binary: None }).unwrap();
        let x = dev.buffer_from(&(0..100).map(|i| i as f32).collect::<Vec<_>>()).unwrap();
        let y = dev.zeros::<f32>(100).unwrap();
        // x from element 10, y from element 3, 80 elements.
        let (xm, ym) = (x.memory().handle(), y.memory().handle());
        let words = [xm, 40, ym, 12, 80, u64::from(2.0f32.to_bits())];
        kernel.launch(RawStream::DEFAULT, [3, 1, 1], &PackedArgs { words: &words, regions: &[] }).unwrap();
        let result = y.to_vec().unwrap();
        for (i, v) in result.iter().enumerate() {
            let expected = if (3..83).contains(&i) { (i + 7) as f32 * 2.0 } else { 0.0 };
            assert_eq!(*v, expected, "element {i}");
        }
        drop(kernel);
        dev.synchronize().unwrap();
    }
}

#[test]
fn code_that_does_not_build_gives_the_compilers_words() {
    for dev in devices() {
        let bad = compiled("__kernel void scale(__global uchar *x) { this is no code }");
        let Err(e) = dev.inner.backend.load(&Image::Code { compiled: &bad, binary: None }) else {
            panic!("it was built");
        };
        let e = e.to_string();
        assert!(e.contains("clBuildProgram failed") && e.contains("error"), "{e}");
    }
}
