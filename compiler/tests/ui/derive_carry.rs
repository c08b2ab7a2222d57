#![allow(unused)]
#[path = "../support/mod.rs"]
mod tilewright;
use tilewright::dsl::*;

#[derive(Clone, Carry)]
#[carry(crate = crate::tilewright)]
enum Either {
    Left(Tile<f32>),
    Right(Tile<i32>),
}

#[derive(Clone, Carry)]
#[carry(crate = crate::tilewright)]
struct Named {
    name: String,
    tile: Tile<f32>,
}

fn main() {}
