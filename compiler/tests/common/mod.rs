//! Runs one kernel by the interpreter and, lowered for several targets, by the simulator, and compares the memory left.

#![allow(dead_code, reason = "each test program uses its own part of this")]

use std::fmt;
use tilewright_compiler::Error;
use tilewright_compiler::interp::{self, ArgValue, MemRegion};
use tilewright_compiler::pipeline::{Options, to_thread};
use tilewright_compiler::sim::{self, Report, SimOptions};
use tilewright_compiler::target::Caps;
use tilewright_compiler::thread::order::fit_registers;
use tilewright_compiler::thread::{self, verify};
use tilewright_compiler::tile::Function;

/// An argument for one flattened parameter.
#[derive(Clone, Copy, Debug)]
pub enum Arg {
    /// Buffer number, and bytes into it.
    Buf(usize, usize),
    /// A scalar's bits.
    Bits(u64),
}

/// A kernel with its arguments.
#[derive(Clone)]
pub struct Case {
    pub func: Function,
    pub args: Vec<Arg>,
    pub buffers: Vec<Vec<u8>>,
    pub grid: [u32; 3],
}

/// The targets every kernel is lowered for: those of real devices, and subgroups of 8 and 64 lanes.
pub fn targets() -> Vec<Caps> {
    let mut all = vec![Caps::ptx(90), Caps::ptx(80)];
    all.extend([8, 32, 64].map(|width| Caps::spirv(format!("vulkan with {width} lanes"), width, 1024, 64 << 10)));
    all.push(Caps::spirv("vulkan without shuffles", 1, 1024, 64 << 10));
    all.push(Caps::opencl("opencl", 1024, 64 << 10, true));
    all
}

/// Why a kernel could not be run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The target cannot do it, which is for the caller to judge.
    Unsupported(String),
    /// Any other error of lowering.
    Lowering(String),
    /// The interpreter's error.
    Interpreter(String),
    /// What the simulator found.
    Simulator(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Unsupported(e) | Failure::Lowering(e) => write!(f, "lowering: {e}"),
            Failure::Interpreter(e) => write!(f, "interpreter: {e}"),
            Failure::Simulator(e) => write!(f, "simulator: {e}"),
        }
    }
}

impl Case {
    /// The buffers after the interpreter ran the kernel.
    pub fn interpret(&self) -> Vec<Vec<u8>> {
        self.try_interpret().unwrap_or_else(|e| panic!("{e}\n{}", self.func))
    }

    /// The same; the interpreter may refuse.
    pub fn try_interpret(&self) -> Result<Vec<Vec<u8>>, Failure> {
        // Words of 16 bytes, so that every buffer is aligned as a device's would be.
        let mut memory: Vec<Vec<u128>> = self
            .buffers
            .iter()
            .map(|b| {
                let mut words = vec![0u128; b.len().div_ceil(16)];
                bytes_of_mut(&mut words)[..b.len()].copy_from_slice(b);
                words
            })
            .collect();
        let regions = memory
            .iter_mut()
            .zip(&self.buffers)
            // SAFETY: each buffer outlives the run, and nothing else touches it meanwhile.
            .map(|(m, b)| unsafe { MemRegion::new(m.as_mut_ptr().cast(), b.len(), true) })
            .collect();
        let args: Vec<ArgValue> = self
            .args
            .iter()
            .map(|a| match *a {
                Arg::Buf(i, offset) => ArgValue::Ptr(memory[i].as_ptr() as u64 + offset as u64),
                Arg::Bits(bits) => ArgValue::Bits(bits),
            })
            .collect();
        let refused = |e: Error| Failure::Interpreter(e.to_string());
        let program = interp::Program::compile(&self.func).map_err(refused)?;
        program.run_serial(&args, &interp::Memory::new(regions).checking_races(true), self.grid).map_err(refused)?;
        Ok(memory.into_iter().zip(&self.buffers).map(|(m, b)| bytemuck::cast_slice(&m)[..b.len()].to_vec()).collect())
    }

    /// Passes, schedule and Thread IR, as text.
    pub fn stages(&self, caps: &Caps, options: &Options) -> String {
        match to_thread(&self.func, caps, options) {
            Ok((tile, schedule, thread)) => format!("{tile}\n{schedule}\n{thread}"),
            Err(e) => e.to_string(),
        }
    }

    /// The buffers after the simulator ran the kernel lowered for `caps`, and what it counted.
    pub fn simulate(&self, caps: &Caps, options: &Options) -> (Vec<Vec<u8>>, Report) {
        self.try_simulate(caps, options)
            .unwrap_or_else(|e| panic!("{}, {e}\n{}\n{}", caps.name, self.func, self.stages(caps, options)))
    }

    /// The same; lowering or the simulator may refuse.
    pub fn try_simulate(&self, caps: &Caps, options: &Options) -> Result<(Vec<Vec<u8>>, Report), Failure> {
        let (tile, _, thread) = to_thread(&self.func, caps, options).map_err(|e| match e {
            Error::Unsupported { .. } => Failure::Unsupported(e.to_string()),
            e => Failure::Lowering(e.to_string()),
        })?;
        round_trip(&thread).map_err(Failure::Lowering)?;
        let (out, report) = self.simulate_function(&thread, caps)?;
        // With as few registers as can be: the same results.
        let classes: Vec<u32> = tile.hints.iter().map(|hint| hint.alias_class).collect();
        let mut ordered = thread.clone();
        fit_registers(&mut ordered, &classes, 0, 0);
        if ordered != thread {
            verify(&ordered).map_err(|e| Failure::Lowering(format!("ordered for few registers: {e}")))?;
            if self.simulate_function(&ordered, caps)?.0 != out {
                return Err(Failure::Simulator("the order for few registers gives other results".into()));
            }
        }
        Ok((out, report))
    }

    /// The buffers after the simulator ran a lowered function.
    pub fn simulate_function(&self, thread: &thread::Function, caps: &Caps) -> Result<(Vec<Vec<u8>>, Report), Failure> {
        let mut memory = sim::Memory::new();
        let addresses: Vec<u64> = self.buffers.iter().map(|b| memory.alloc_with(b.clone())).collect();
        let args: Vec<u64> = self
            .args
            .iter()
            .map(|a| match *a {
                Arg::Buf(i, offset) => addresses[i] + offset as u64,
                Arg::Bits(bits) => bits,
            })
            .collect();
        let report = sim::run(thread, &args, &mut memory, self.grid, &SimOptions::of(caps))
            .map_err(|e| Failure::Simulator(e.to_string()))?;
        let out = addresses
            .iter()
            .zip(&self.buffers)
            .map(|(&a, b)| memory.read(a, b.len()).expect("the buffer is there").to_vec())
            .collect();
        Ok((out, report))
    }

    /// Checks that all targets leave what the interpreter leaves: to the byte, or where `close` says so of two
    /// buffers that differ.
    pub fn agree(&self, options: &Options, close: impl Fn(usize, &[u8], &[u8]) -> Result<(), String>) {
        let expected = self.interpret();
        for caps in targets() {
            let (got, _) = self.simulate(&caps, options);
            for (i, (e, g)) in expected.iter().zip(&got).enumerate() {
                if e != g
                    && let Err(why) = close(i, e, g)
                {
                    panic!(
                        "{}, buffer {i}: {why}\n{}\noptimised: {}",
                        caps.name,
                        self.func,
                        self.stages(&caps, options)
                    );
                }
            }
        }
    }

    /// Checks that all targets leave the same bytes as the interpreter.
    pub fn agree_exactly(&self, options: &Options) {
        self.agree(options, |_, e, g| {
            let at = e.iter().zip(g).position(|(a, b)| a != b).unwrap_or(0);
            let word = at / 4 * 4;
            Err(format!(
                "byte {at} differs: {:x?} instead of {:x?}",
                &g[word..(word + 8).min(g.len())],
                &e[word..(word + 8).min(e.len())]
            ))
        });
    }

    /// Checks `f32` buffers to a tolerance relative to the greatest element.
    pub fn agree_f32(&self, options: &Options, tolerance: f32) {
        self.agree(options, |_, e, g| {
            let (e, g): (Vec<f32>, Vec<f32>) = (floats(e), floats(g));
            let scale = e.iter().filter(|x| x.is_finite()).fold(0f32, |m, x| m.max(x.abs()));
            for (i, (a, b)) in e.iter().zip(&g).enumerate() {
                let same = a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
                if !same && (a - b).abs().partial_cmp(&(tolerance * scale)) != Some(std::cmp::Ordering::Less) {
                    return Err(format!("element {i} is {b}, expected {a}"));
                }
            }
            Ok(())
        });
    }
}

/// Checks that the text of a lowered function is all there is to it.
pub fn round_trip(func: &thread::Function) -> Result<(), String> {
    let text = func.to_string();
    let again = thread::parse(&text).map_err(|e| format!("what was printed is not parsed: {e}\n{text}"))?;
    if again == func.renumbered() { Ok(()) } else { Err(format!("read back it is another function:\n{text}\n{again}")) }
}

/// The bytes of a slice.
pub fn bytes<T: bytemuck::NoUninit>(x: &[T]) -> Vec<u8> {
    bytemuck::cast_slice(x).to_vec()
}

/// The floats that bytes are.
pub fn floats(x: &[u8]) -> Vec<f32> {
    x.chunks_exact(4).map(|c| f32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect()
}

fn bytes_of_mut(words: &mut [u128]) -> &mut [u8] {
    bytemuck::cast_slice_mut(words)
}

/// Pseudo-random floats in -1 .. 1.
pub fn random_f32(seed: u64, n: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..n)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
        })
        .collect()
}
