//! Tests that go through a whole device. The same bodies run on every device that is there; a device that is not there is
//! skipped, and the test says so.

mod buffers;
mod fake;
mod launches;
#[cfg(feature = "opencl")]
mod opencl;
mod vulkan;

use crate::Device;
use std::any::TypeId;
use tilewright_compiler::DType;
use tilewright_compiler::dsl::{KernelDef, KernelId};
use tilewright_compiler::tile::builder::Builder;

/// Runs a body on every device of this machine that can be opened.
fn on_every_device(body: impl Fn(&Device)) {
    for info in Device::list() {
        match &info.unusable {
            Some(why) => eprintln!("skipped {}: {why}", info.name),
            None => {
                eprintln!("on {info}");
                body(&Device::open(&info.name).unwrap());
            }
        }
    }
}

fn id(path: &'static str) -> KernelId {
    KernelId { path, item: TypeId::of::<()>(), dtypes: vec![DType::F32], comptime: Vec::new() }
}

/// `y[i] = x[i] * scale` for views of rank 1, 256 elements by each program.
fn scale_kernel() -> KernelDef {
    KernelDef::new("scale", id("tests::scale"), |spec| {
        let fail = |d| tilewright_compiler::Error::Kernel { kernel: "scale".into(), diagnostics: vec![d] };
        let mut b = Builder::new("scale");
        let hints: Vec<_> = (0..7).map(|i| spec.hint(i)).collect();
        let x = b.param_view("x", DType::F32, 1, spec.index, &hints[..3]);
        let y = b.param_view("y", DType::F32, 1, spec.index, &hints[3..6]);
        let s = b.param_scalar("scale", DType::F32, hints[6]);
        let mut body = || {
            let pid = b.program_id(0)?;
            let n = b.const_i64(DType::I32, 256)?;
            let start = b.binary(tilewright_compiler::tile::BinaryOp::Mul, pid, n)?;
            let v = b.view_load(&x, &[start], [256], None)?;
            let v = b.binary(tilewright_compiler::tile::BinaryOp::Mul, v, s)?;
            b.view_store(&y, &[start], v)
        };
        body().map_err(fail)?;
        Ok(b.finish())
    })
}
