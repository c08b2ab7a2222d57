//! Unusual but legitimate uses: results must be right, and mistakes must be errors.

extern crate tilewright_runtime as tilewright;

mod ends_of_integers;
mod identity;
mod limits;
mod parameters;
mod state;
mod threads;
mod views;

use tilewright::dsl::*;
use tilewright::{Device, DeviceKind, Element as HostElement, Error};

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

#[kernel]
fn add_one(x: InOut<i32, 1>, #[comptime] block: usize) {
    let start = program_id(0) * block;
    x.store([start], x.load([start], [block]) + 1);
}
