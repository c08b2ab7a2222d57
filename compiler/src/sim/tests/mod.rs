//! Kernels built by hand: what they compute, what they count, and every mistake that is found.

mod cooperative;
mod matmul;
mod mistakes;
mod numeric;
mod random;
mod wgmma;

use super::{Memory, Report, SimOptions, run};
use crate::thread::{AbiParam, AbiTy, Access, Builder, Function, IBin, Value};

/// One element of 32 bits.
const WORD: Access = Access { bits: 32, n: 1, offset: 0 };

/// A kernel `f` of these parameters.
fn builder(params: &[(&str, AbiTy)], threads: u32, warp_width: u32) -> Builder {
    let params = params.iter().map(|&(name, ty)| AbiParam { name: name.into(), ty }).collect();
    Builder::new("f", params, threads, warp_width)
}

/// The address of element `index` of a buffer with elements of `bytes`.
fn element(b: &mut Builder, base: Value, index: Value, bytes: u32) -> Value {
    let wide = b.conv(crate::thread::Conv::SExt64, index, crate::thread::Ty::I64);
    let offset = b.shift_imm(IBin::Shl, wide, bytes.trailing_zeros());
    b.add(base, offset)
}

/// Runs one program that makes no mistake.
fn run_one(func: &Function, args: &[u64], memory: &mut Memory) -> Report {
    run(func, args, memory, [1; 3], &SimOptions::default()).unwrap_or_else(|e| panic!("{e}\n{func}"))
}

fn words(memory: &Memory, address: u64, n: usize) -> Vec<u32> {
    let bytes = memory.read(address, 4 * n).expect("the buffer holds so many words");
    bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

fn alloc_words(memory: &mut Memory, words: impl IntoIterator<Item = u32>) -> u64 {
    memory.alloc_with(words.into_iter().flat_map(u32::to_le_bytes).collect::<Vec<_>>())
}

/// A sequence of numbers without order.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}
