//! Random kernels against the same programs in plain Rust. `cargo xtask frontend --seed S` makes and compares others.

#[rustfmt::skip]
#[allow(clippy::all, unused)]
mod programs;
pub mod twin;

use crate::common::on_every_device;

#[test]
fn random_programs_are_what_they_say() {
    on_every_device(|device| {
        let found = twin::differences(device, programs::PROGRAMS);
        assert!(found.is_empty(), "{}", found.join("\n"));
    });
}
