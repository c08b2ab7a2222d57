//! The code of a small configuration of each kernel, so that a review sees what a change does to it; its Thread IR is read
//! back from its text. `TILEWRIGHT_BLESS=1` writes the files anew.

use crate::cases::{self, Case};
use std::path::Path;
use tilewright::dsl::f16;
use tilewright::{DeviceKind, Options};
use tilewright_compiler::pipeline;
use tilewright_compiler::target::Caps;
use tilewright_compiler::thread::Function;
use tilewright_kernels::{AttentionConfig, MatmulConfig};

fn check(name: &str, case: &Case) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    if !folder.is_dir() {
        println!("skipped: the golden files are not on this machine");
        return;
    }
    let mut differ = Vec::new();
    for (caps, extension) in [
        (Caps::ptx(90), "ptx"),
        (Caps::opencl("an OpenCL device", 1024, 48 << 10, true), "cl"),
        (Caps::spirv("a Vulkan device", 32, 1024, 48 << 10), "spvasm"),
    ] {
        let (_, _, thread) = pipeline::to_thread(&case.func, &caps, &case.options).unwrap();
        let again = thread.to_string().parse::<Function>().unwrap_or_else(|e| panic!("{name}: {e}\n{thread}"));
        assert!(again == thread.renumbered(), "{name}: read back it is another function:\n{thread}\n{again}");
        let code = pipeline::compile(&case.func, &caps, &case.options).unwrap().code.text();
        let file = folder.join(format!("{name}.{extension}"));
        if std::env::var("TILEWRIGHT_BLESS").is_ok_and(|v| v == "1") {
            std::fs::write(&file, &code).unwrap();
            continue;
        }
        let expected = std::fs::read_to_string(&file).unwrap_or_default();
        if expected != code {
            let lines =
                || expected.lines().map(Some).chain(std::iter::repeat(None)).zip(code.lines().map(Some).chain([None]));
            let first = lines().position(|(e, c)| e != c).unwrap_or_default();
            let (e, c) = lines().nth(first).unwrap_or_default();
            let end = "(the end)";
            differ.push(format!(
                "{name}.{extension}, line {}:\n  was {}\n  now {}",
                first + 1,
                e.unwrap_or(end),
                c.unwrap_or(end)
            ));
        }
    }
    assert!(
        differ.is_empty(),
        "generated code changed; if that is meant, run with TILEWRIGHT_BLESS=1\n{}",
        differ.join("\n")
    );
}

#[test]
fn vector_add() {
    check("vector_add", &cases::vector_add::<f32>(&cases::cpu(), 4096));
}

#[test]
fn softmax() {
    check("softmax", &cases::softmax::<f32>(&cases::cpu(), DeviceKind::Cuda, 200));
}

#[test]
fn layer_norm() {
    check("layer_norm", &cases::layer_norm::<f16>(&cases::cpu(), DeviceKind::Cuda, 200));
}

#[test]
fn matmul() {
    let config = MatmulConfig { bm: 32, bn: 32, bk: 32, group: 4, options: Options { num_warps: 2, num_stages: 2 } };
    check("matmul", &cases::matmul::<f16>(&cases::cpu(), 256, config));
}

#[test]
fn attention() {
    let config = AttentionConfig { bm: 32, bn: 16, options: Options { num_warps: 2, num_stages: 2 } };
    let case = cases::attention::<f16>(&cases::cpu(), DeviceKind::Cuda, [256, 16], false, Some(config));
    check("attention", &case);
}
