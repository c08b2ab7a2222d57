//! Programs that depend on each other: the `cpu` device says so, with both places.

extern crate tilewright_runtime as tilewright;

use tilewright::dsl::*;
use tilewright::{Buffer, Device, Result};

fn cpu() -> Device {
    Device::open("cpu").unwrap()
}

/// Is the check on in this build? Where it is not, nothing is to be tested: `TILEWRIGHT_RACES=on` turns it on.
fn is_checked() -> bool {
    match std::env::var("TILEWRIGHT_RACES") {
        Ok(asked) => asked == "on",
        Err(_) => cfg!(debug_assertions),
    }
}

fn ints(n: usize) -> Buffer<i32> {
    cpu().zeros(n).unwrap()
}

/// The message of an error that there must be.
fn message(result: Result<()>) -> Option<String> {
    if !is_checked() {
        result.unwrap();
        return None;
    }
    Some(result.expect_err("the kernel races").to_string())
}

#[kernel]
fn count(h: Ptr<i32>) {
    h.store(h.load() + 1);
}

/// A thousand programs that add to one number.
#[test]
fn found_l8() {
    let h = ints(1);
    let Some(e) = message(count(h.slice(..).unwrap()).grid([1000]).launch()) else { return };
    assert!(e.contains("race: "), "{e}");
    assert!(e.contains("element 0 of a buffer of 1 i32"), "{e}");
    // Both accesses are in the same line of the source, at columns of their own.
    assert_eq!(e.matches("found_races.rs:35").count(), 2, "{e}");
    assert!(e.contains("TILEWRIGHT_RACES=off"), "{e}");
    // One program alone is no race.
    let h = ints(1);
    count(h.slice(..).unwrap()).grid([1]).launch().unwrap();
    assert_eq!(h.to_vec().unwrap(), [1]);
}

#[kernel]
fn lanes(y: Ptr<i32>, #[comptime] shift: usize) {
    let lane = arange(0, 8);
    (y + (lane >> shift as i32)).store(lane);
}

#[test]
fn two_lanes_of_one_store_meet() {
    let y = ints(8);
    lanes(y.slice(..).unwrap(), 0).grid([1]).launch().unwrap();
    let Some(e) = message(lanes(y.slice(..).unwrap(), 1).grid([1]).launch()) else { return };
    assert!(e.contains("another lane of the same store"), "{e}");
}

#[kernel]
fn twice(y: Out<i32, 1>) {
    let lane = arange(0, 8);
    y.store([0], lane);
    y.store([0], lane * 2);
}

#[test]
fn stores_of_one_program_are_in_order() {
    let y = ints(8);
    twice(y.view([8]).unwrap()).grid([1]).launch().unwrap();
    assert_eq!(y.to_vec().unwrap(), [0, 2, 4, 6, 8, 10, 12, 14]);
}

#[kernel]
fn flag(y: Ptr<i32>, which: i32) {
    y.store(program_id(0) * which + 7);
}

/// What everyone agrees on is no race.
#[test]
fn programs_may_store_the_same_value() {
    let y = ints(1);
    flag(y.slice(..).unwrap(), 0).grid([100]).launch().unwrap();
    assert_eq!(y.to_vec().unwrap(), [7]);
    let Some(e) = message(flag(y.slice(..).unwrap(), 1).grid([100]).launch()) else { return };
    assert!(e.contains("stores to"), "{e}");
}

#[kernel]
fn shift(x: InOut<i32, 1>, #[comptime] block: usize, by: i32) {
    let start = program_id(0) * block;
    x.store([start], x.load([start + by], [block]) + 1);
}

/// Each program reads what another one overwrites; where all stay among themselves it is right.
#[test]
fn a_neighbour_is_read() {
    let x = ints(1024);
    shift(x.view([1024]).unwrap(), 32, 0).grid([32]).launch().unwrap();
    for by in [1, -1, 32] {
        let Some(e) = message(shift(x.view([1024]).unwrap(), 32, by).grid([32]).launch()) else { return };
        assert!(e.contains("race: ") && e.contains("program ["), "{by}: {e}");
    }
}

#[kernel]
fn halves(x: InOut<u8, 1>, y: InOut<u8, 1>) {
    let at = program_id(0);
    y.store([at], x.load([at], [1]) + 1);
}

/// The same memory by two arguments.
#[test]
fn overlapping_arguments_are_one_memory() {
    let memory = cpu().zeros::<u8>(64).unwrap();
    let (x, y) = (memory.view_strided(0, [32], [1]).unwrap(), memory.view_strided(32, [32], [1]).unwrap());
    halves(x, y).grid([32]).launch().unwrap();
    let y = memory.view_strided(1, [32], [1]).unwrap();
    let Some(e) = message(halves(x, y).grid([32]).launch()) else { return };
    assert!(e.contains("race: ") && e.contains("of 32 u8"), "{e}");
}
