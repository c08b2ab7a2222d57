//! Tunable kernels: a name, sizes, a space, and how to launch one configuration.

use crate::config::Config;
use crate::key::{Bucket, Dims, Key};
use crate::space::Space;
use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;
use tilewright_runtime::{Buffer, DType, Device, Element, Error, Launch, Result};

/// One problem for which the command makes inputs.
#[derive(Clone, Debug)]
pub struct Problem {
    /// Where.
    pub device: Device,
    /// The element type, of those the kernel lists; `F32` for kernels without a choice.
    pub dtype: DType,
    /// The sizes.
    pub dims: Dims,
    /// For random inputs.
    pub seed: u64,
}

impl Problem {
    /// A buffer of random numbers for a tensor of these sizes: floats in -1 .. 1, integers in -100 .. 100 (from 0 if
    /// unsigned). `which` tells the buffers of one problem apart.
    ///
    /// # Errors
    /// If it is too large.
    pub fn random<T: Element>(&self, which: u64, sizes: &[usize]) -> Result<Buffer<T>> {
        let n = Self::elements(sizes)?;
        if MAKING.with_borrow_mut(|m| m.count(n, T::DTYPE)) {
            return self.device.alloc(0);
        }
        let seed = self.seed.wrapping_mul(31).wrapping_add(which);
        macro_rules! made {
            ($of:expr) => {
                Box::new(filled(&self.device, n, noise(seed, n).map($of))?) as Box<dyn Any>
            };
        }
        let any = match T::DTYPE {
            DType::Bool => made!(|v| v > 0.0),
            DType::I8 => made!(|v| (v * 100.0) as i8),
            DType::I16 => made!(|v| (v * 100.0) as i16),
            DType::I32 => made!(|v| (v * 100.0) as i32),
            DType::I64 => made!(|v| (v * 100.0) as i64),
            DType::U8 => made!(|v| (v.abs() * 100.0) as u8),
            DType::U16 => made!(|v| (v.abs() * 100.0) as u16),
            DType::U32 => made!(|v| (v.abs() * 100.0) as u32),
            DType::U64 => made!(|v| (v.abs() * 100.0) as u64),
            DType::F16 => made!(half::f16::from_f64),
            DType::BF16 => made!(half::bf16::from_f64),
            DType::F32 => made!(|v| v as f32),
            DType::F64 => made!(|v| v),
        };
        Ok(*any.downcast::<Buffer<T>>().expect("the element type of that dtype is T"))
    }

    /// A buffer of zeros for a tensor of these sizes.
    ///
    /// # Errors
    /// If it is too large.
    pub fn zeros<T: Element>(&self, sizes: &[usize]) -> Result<Buffer<T>> {
        let n = Self::elements(sizes)?;
        if MAKING.with_borrow_mut(|m| m.count(n, T::DTYPE)) {
            return self.device.alloc(0);
        }
        self.device.zeros(n)
    }

    fn elements(sizes: &[usize]) -> Result<usize> {
        let n = sizes.iter().try_fold(1usize, |n, &s| n.checked_mul(s));
        n.filter(|&n| n <= isize::MAX as usize / 8).ok_or_else(|| Error::Arguments {
            kernel: "autotune".into(),
            message: format!("a tensor of the sizes {sizes:?} is too large"),
        })
    }

    /// That the kernel has no inputs of this problem's element type.
    pub fn unlisted(&self) -> Error {
        Error::Arguments { kernel: "autotune".into(), message: format!("there are no inputs of type {}", self.dtype) }
    }
}

/// How inputs are made at the moment, in this thread.
#[derive(Default)]
struct Making {
    /// Nothing is made, the bytes are counted.
    counting: bool,
    bytes: u64,
    /// When it must be done.
    until: Option<Instant>,
}

impl Making {
    fn count(&mut self, elements: usize, dtype: DType) -> bool {
        self.bytes = self.bytes.saturating_add((elements as u64).saturating_mul(dtype.bytes() as u64));
        self.counting
    }
}

thread_local! {
    static MAKING: RefCell<Making> = RefCell::default();
}

/// A buffer of these values, written in parts: a second copy on the host may not fit, and making them may take too long.
fn filled<T: Element>(device: &Device, n: usize, values: impl Iterator<Item = T>) -> Result<Buffer<T>> {
    const PART: usize = 1 << 20;
    let buffer = device.alloc::<T>(n)?;
    let mut part = Vec::with_capacity(n.min(PART));
    let mut at = 0;
    for v in values {
        part.push(v);
        if part.len() == PART || at + part.len() == n {
            buffer.slice(at..at + part.len())?.copy_from(&part)?;
            at += part.len();
            part.clear();
            if at < n && MAKING.with_borrow(|m| m.until.is_some_and(|u| Instant::now() >= u)) {
                return Err(Error::Arguments {
                    kernel: "autotune".into(),
                    message: "making its inputs took the whole budget; give more time with --budget, or smaller sizes"
                        .into(),
                });
            }
        }
    }
    Ok(buffer)
}

/// Inputs and outputs of one problem, in device memory.
pub trait Instance {
    /// The launch in one configuration. All of them read and write the same memory.
    ///
    /// # Errors
    /// If the configuration cannot be launched.
    fn launch(&self, config: &Config) -> Result<Launch<'_>>;
}

struct Bound<B, F>(B, F);

impl<B, F: for<'a> Fn(&'a B, &Config) -> Result<Launch<'a>>> Instance for Bound<B, F> {
    fn launch(&self, config: &Config) -> Result<Launch<'_>> {
        (self.1)(&self.0, config)
    }
}

/// An instance from buffers, in any form, and a function that launches on them.
pub fn instance<B: 'static>(
    buffers: B,
    launch: impl for<'a> Fn(&'a B, &Config) -> Result<Launch<'a>> + 'static,
) -> Box<dyn Instance> {
    Box::new(Bound(buffers, launch))
}

/// How much one launch does, for throughputs in tables.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Work {
    /// Bytes that must move between memory and chip.
    pub bytes: f64,
    /// Floating-point operations; 0 if memory is what counts.
    pub flops: f64,
}

type Heuristic = dyn Fn(&Device, DType, &Dims) -> Config + Send + Sync;
type Make = dyn Fn(&Problem) -> Result<Box<dyn Instance>> + Send + Sync;
type Count = dyn Fn(&Dims, DType) -> Work + Send + Sync;

/// A kernel that can be tuned.
pub struct Tunable {
    name: &'static str,
    names: &'static [&'static str],
    buckets: Vec<Bucket>,
    dtypes: Vec<DType>,
    space: Space,
    heuristic: Option<Box<Heuristic>>,
    make: Option<Box<Make>>,
    work: Option<Box<Count>>,
    tolerance: Option<f64>,
    example: Vec<i64>,
}

impl Tunable {
    /// A kernel of this name with these sizes; every size is kept in buckets of powers of two unless [`Tunable::bucket`]
    /// says otherwise.
    pub fn new(name: &'static str, dims: &'static [&'static str], space: Space) -> Self {
        Self {
            name,
            names: dims,
            buckets: vec![Bucket::Pow2; dims.len()],
            dtypes: Vec::new(),
            space,
            heuristic: None,
            make: None,
            work: None,
            tolerance: None,
            example: vec![1024; dims.len()],
        }
    }

    /// How the size of this name is put in buckets. A name the kernel does not have changes nothing.
    #[must_use]
    pub fn bucket(mut self, dim: &str, bucket: Bucket) -> Self {
        if let Some(i) = self.names.iter().position(|n| *n == dim) {
            self.buckets[i] = bucket;
        }
        self
    }

    /// The element types the kernel can be instantiated for by the command.
    #[must_use]
    pub fn dtypes(mut self, dtypes: &[DType]) -> Self {
        self.dtypes = dtypes.to_vec();
        self
    }

    /// The configuration when nothing was tuned; also the one that others' results are compared with. By default the first of
    /// the space that is allowed.
    #[must_use]
    pub fn heuristic(mut self, f: impl Fn(&Device, DType, &Dims) -> Config + Send + Sync + 'static) -> Self {
        self.heuristic = Some(Box::new(f));
        self
    }

    /// How the command makes inputs.
    #[must_use]
    pub fn inputs(mut self, f: impl Fn(&Problem) -> Result<Box<dyn Instance>> + Send + Sync + 'static) -> Self {
        self.make = Some(Box::new(f));
        self
    }

    /// How much one launch does.
    #[must_use]
    pub fn work(mut self, f: impl Fn(&Dims, DType) -> Work + Send + Sync + 'static) -> Self {
        self.work = Some(Box::new(f));
        self
    }

    /// How far results may lie apart, relative to the greater of an element's magnitude and what is usual near it. By default it follows from the output's element type, see [`crate::check::tolerance`].
    #[must_use]
    pub fn tolerance(mut self, relative: f64) -> Self {
        self.tolerance = Some(relative);
        self
    }

    /// The sizes `run --all` takes, in the order of the names.
    #[must_use]
    pub fn example(mut self, dims: &[i64]) -> Self {
        if dims.len() == self.names.len() {
            self.example = dims.to_vec();
        }
        self
    }

    /// The name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The names of the sizes.
    pub fn dims(&self) -> &'static [&'static str] {
        self.names
    }

    /// The element types; empty for kernels without a choice.
    pub fn listed_dtypes(&self) -> &[DType] {
        &self.dtypes
    }

    /// The space.
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// The space, to be changed: for kernels made at run time.
    pub fn space_mut(&mut self) -> &mut Space {
        &mut self.space
    }

    /// The sizes `run --all` takes.
    pub fn example_dims(&self) -> Option<Dims> {
        Dims::new(self.names, &self.example)
    }

    /// The tolerance, if one was set.
    pub fn set_tolerance(&self) -> Option<f64> {
        self.tolerance
    }

    /// How much one launch does, if known.
    pub fn work_of(&self, dims: &Dims, dtype: DType) -> Work {
        self.work.as_ref().map(|f| f(dims, dtype)).unwrap_or_default()
    }

    /// The key of a problem.
    pub fn key(&self, dims: &Dims, dtype: DType) -> Key {
        Key::new(dims, &self.buckets, (!self.dtypes.is_empty()).then_some(dtype))
    }

    /// What to use when nothing was tuned: the heuristic's choice, in the form the device distinguishes, or the first
    /// allowed configuration. `None` if none is allowed.
    pub fn default_config(&self, device: &Device, dtype: DType, dims: &Dims) -> Option<Config> {
        let config = match &self.heuristic {
            Some(f) => f(device, dtype, dims),
            None => self.space.candidates(dims).ok()?.configs.into_iter().next()?,
        };
        Some(crate::legality::canonical(config, device.caps()))
    }

    /// Has the kernel a heuristic of its own?
    pub fn has_heuristic(&self) -> bool {
        self.heuristic.is_some()
    }

    /// Inputs and outputs for a problem.
    ///
    /// # Errors
    /// If the kernel does not say how to make inputs, or a buffer cannot be made.
    pub fn instantiate(&self, problem: &Problem) -> Result<Box<dyn Instance>> {
        self.instantiate_by(problem, None)
    }

    /// The same, given up when it is not done `until` a moment. Refuses inputs larger than the memory there is before any is
    /// made.
    pub(crate) fn instantiate_by(&self, problem: &Problem, until: Option<Instant>) -> Result<Box<dyn Instance>> {
        let make = self.make.as_ref().ok_or_else(|| Error::Arguments {
            kernel: self.name.into(),
            message: "it does not say how to make inputs, so the command cannot run it; give it `.inputs(..)`".into(),
        })?;
        // Made of nothing first, which only counts. What fails then fails again below, or for want of memory.
        MAKING.set(Making { counting: true, ..Making::default() });
        let _ = catch_unwind(AssertUnwindSafe(|| make(problem).map(drop)));
        let bytes = MAKING.take().bytes;
        // Configurations run on copies.
        let requested = bytes.saturating_mul(2);
        let (free, total) = problem.device.memory();
        if free.or(total).is_some_and(|most| requested > most) {
            let device = problem.device.name().to_owned();
            return Err(Error::OutOfMemory { device, requested, free, total });
        }
        MAKING.set(Making { until, ..Making::default() });
        let made = make(problem);
        MAKING.take();
        made
    }

    /// Can the command run it?
    pub fn has_inputs(&self) -> bool {
        self.make.is_some()
    }
}

impl fmt::Debug for Tunable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tunable")
            .field("name", &self.name)
            .field("dims", &self.names)
            .field("space", &self.space)
            .finish()
    }
}

/// Pseudo-random numbers in -1 .. 1, the same for the same seed.
pub fn noise(seed: u64, n: usize) -> impl Iterator<Item = f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..n).map(move |_| {
        // xorshift64 (Marsaglia, 2003).
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f64 / f64::from(1 << 23) - 1.0
    })
}
