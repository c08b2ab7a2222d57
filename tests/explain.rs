//! The explanations of the example, word for word: what users read when a kernel is slow.

#[path = "../examples/explain.rs"]
#[allow(dead_code, reason = "its `main` is for people")]
mod explain;

use tilewright::compiler::target::Caps;

/// Places as they are in the example, whichever crate it is compiled into.
fn report(caps: &Caps) -> String {
    explain::report(None, caps).unwrap().replace("tests/../examples/", "examples/")
}

#[test]
fn slow_kernels_are_explained() {
    insta::assert_snapshot!(report(&Caps::ptx(90)));
}

#[test]
fn a_device_without_matrix_instructions_says_so() {
    let text = report(&Caps::spirv("a Vulkan device", 32, 1024, 48 << 10));
    assert!(text.contains("multiply-adds of each thread: the device has no matrix instruction"), "{text}");
}

#[test]
fn the_cpu_device_explains_nothing() {
    let cpu = tilewright::Device::open("cpu").unwrap();
    let error = explain::report(Some(&cpu), &Caps::ptx(90)).unwrap_err();
    assert!(error.to_string().contains("the CPU device schedules nothing"), "{error}");
}
