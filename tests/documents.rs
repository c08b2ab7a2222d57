//! What the documents quote is what the code prints.

use tilewright::{Device, dsl::*};

const README: &str = include_str!("../README.md");

// The kernel under "Errors" in the README, where `#[kernel]` is line 4 of its file.
const KERNEL_LINE: u32 = line!() + 1;
#[kernel]
fn center(x: In<f32, 2>, weights: In<f32, 1>, y: Out<f32, 2>, #[comptime] block: usize) {
    let row = program_id(0);
    let v = x.load([row, 0], [1, block]);
    let mean = sum(v, 1) / x.dim(1).to::<f32>();
    let w = weights.load([0], [block]);
    y.store([row, 0], (v - mean) * w);
}

#[test]
fn the_error_in_the_readme_is_real() {
    let dev = Device::open("cpu").unwrap();
    let x = dev.zeros::<f32>(6).unwrap();
    let (matrix, row) = (x.view([2, 3]).unwrap(), x.view([3]).unwrap());
    let error = center(matrix, row, matrix, 4).grid([2]).launch().unwrap_err().to_string();
    let line = KERNEL_LINE + 6;
    let quoted = error.replace(&format!("{}:{line}:", file!()), "src/main.rs:10:");
    assert!(quoted.contains("src/main.rs:10:23"), "{error}");
    assert!(README.contains(&quoted), "the README should quote\n{quoted}");
}

#[test]
fn the_kernel_in_the_readme_is_this_one() {
    let source = include_str!("documents.rs");
    let start = source.find("#[kernel]\n").unwrap();
    let kernel = &source[start..start + source[start..].find("\n}\n").unwrap()];
    assert!(README.contains(kernel));
    let before = &README[..README.find(kernel).unwrap()];
    let fence = before.rfind("```rust\n").unwrap();
    assert_eq!(before[fence..].lines().count(), 4, "three lines and the fence come before `#[kernel]`");
}

#[test]
fn links_to_files_lead_somewhere() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    for document in ["README.md", "CONTRIBUTING.md", "docs/architecture.md", "docs/language.md"] {
        let text = std::fs::read_to_string(root.join(document)).unwrap();
        let folder = root.join(document).parent().unwrap().to_path_buf();
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = target.split('#').next().unwrap();
            // Code such as `k[grid](x, n)` looks like a link.
            if file.is_empty() || file.starts_with("http") || file.contains(' ') {
                continue;
            }
            assert!(folder.join(file).exists(), "{document} links to {target}");
        }
    }
}
