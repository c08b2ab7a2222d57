//! Random Tile IR: valid functions for tests and fuzzers, the same for the same seed on every machine.
//!
//! [`random_function`] gives a function that passes the verifier, made of all ops, element types, ranks and control
//! flow, as far as the [`Config`] allows. With [`Config::runnable`] the function can also be executed, on any device,
//! and gives the same results everywhere. This is the contract of that mode:
//!
//! - **Launch.** The grid is [`Runnable::grid`]. [`arguments`] says for each kernel parameter what to pass. Inputs
//!   (`inN`) are to be filled by the caller: any integers, but floats of moderate size without NaN, infinities and
//!   subnormals unless [`Config::floats`] is [`Floats::All`]. Outputs (`outN`) are to be filled with the same bytes
//!   wherever the function is executed, since not every element of them is stored to.
//! - **Bounds.** Every address touched is inside the buffer of its parameter: offsets of pointers are taken modulo the
//!   buffer's length. Accesses through views may leave the view, which is what views are for.
//! - **Order.** Inputs are never written, outputs never read. Each output is stored to by one op at most, which
//!   stores to distinct addresses, the same ones each time it is executed, and other ones in other programs.
//! - **Ends.** A loop has at most [`Config::max_trips`] iterations.
//! - **Floats.** See [`Floats`]: by default, what is stored is the same on each device that rounds basic operations
//!   correctly and keeps subnormals. The bits of a NaN are not fixed: any two are to be taken for equal.

mod maker;

use super::function::{Function, ParamHint, ParamKind};
use super::ops::Op;
use crate::dtype::DType;

/// Which operations on floats may occur.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Floats {
    /// Those whose result is the same wherever it is computed: moves, casts, comparisons, selections, `neg`, `abs`,
    /// minima, maxima, rounding to integers, `add`, `sub`, `mul`, `fma`. No bit casts from or to floats (which would
    /// show a NaN's bits), no sums along an axis (whose order depends on the layout).
    Exact,
    /// All.
    All,
}

/// What a runnable function may assume of its launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Runnable {
    /// Elements of each buffer for each program: a power of two, at least 16.
    pub elements: usize,
    /// Programs along each axis of the grid.
    pub grid: [usize; 3],
}

impl Runnable {
    /// Programs in all.
    pub fn programs(&self) -> usize {
        self.grid.iter().product()
    }
}

/// What a random function is to be like.
#[derive(Clone, Debug)]
pub struct Config {
    /// About how many ops to make, beside those needed to give them operands.
    pub ops: usize,
    /// Most elements of a tile; of a runnable function at most [`Runnable::elements`].
    pub max_elements: usize,
    /// How deep loops and branches may be nested; 0 means straight code.
    pub max_nesting: usize,
    /// Most dimensions of a tile or a view: 1 to [`super::Shape::MAX_RANK`].
    pub max_rank: usize,
    /// Most iterations of a loop of a runnable function: a power of two.
    pub max_trips: usize,
    /// Element types that numbers rather have; `bool` and `i32` occur always, as conditions and offsets at least.
    pub dtypes: Vec<DType>,
    /// Which operations on floats may occur.
    pub floats: Floats,
    /// Which ops may occur. Asked with the attributes of the op about to be made. What operands and addresses are made
    /// with (`program_id`, `const`, `arange`, `broadcast`, `reshape`, `cast`, `ptr_add`, and `add`, `mul`, `and`, `lt`
    /// of `i32`) may occur in any case.
    pub allow: fn(&Op) -> bool,
    /// May addresses be selected, reshaped, permuted, broadcast and carried through loops and branches, like numbers?
    pub address_values: bool,
    /// The function is to be executed: see the [module](self).
    pub runnable: Option<Runnable>,
}

impl Default for Config {
    /// All there is, in functions of moderate size that are not for running.
    fn default() -> Self {
        Self {
            ops: 30,
            max_elements: 256,
            max_nesting: 2,
            max_rank: 3,
            max_trips: 4,
            dtypes: DType::ALL.to_vec(),
            floats: Floats::All,
            allow: |_| true,
            address_values: true,
            runnable: None,
        }
    }
}

impl Config {
    /// Functions for running, with results that do not depend on the device: 3 programs, buffers of 256 elements each.
    pub fn runnable() -> Self {
        Self { floats: Floats::Exact, runnable: Some(Runnable { elements: 256, grid: [3, 1, 1] }), ..Self::default() }
    }

    /// Elements of a buffer behind a pointer parameter.
    fn buffer_elements(&self) -> usize {
        self.runnable.map_or(0, |r| r.elements * r.programs())
    }
}

/// A valid function, the same for the same seed and configuration.
///
/// # Panics
/// If the configuration asks for a runnable function with buffers whose size is not a power of two of at least 16, or
/// with no or too many programs (more than 2^20 elements in all).
pub fn random_function(seed: u64, config: &Config) -> Function {
    if let Some(r) = config.runnable {
        assert!(
            r.elements.is_power_of_two() && (16..=1 << 20).contains(&r.elements),
            "a buffer has a power of two of elements for each program, 16 to 2^20, not {}",
            r.elements
        );
        assert!(
            (1..=(1 << 20) / r.elements).contains(&r.programs()),
            "the buffers of all {} programs together have at most 2^20 elements",
            r.programs()
        );
    }
    maker::make(Random::new(seed), config)
}

/// What to pass for a kernel parameter of a runnable function.
#[derive(Clone, PartialEq, Debug)]
pub enum Argument {
    /// A number of this type and value (for a float type: to be converted).
    Scalar {
        /// The type.
        dtype: DType,
        /// The value; 0 or 1 for `bool`.
        value: i64,
    },
    /// The address, a multiple of 16 bytes, of a buffer of its own.
    Ptr {
        /// The element type.
        dtype: DType,
        /// How many elements the buffer has.
        elements: usize,
        /// Is it an output?
        written: bool,
    },
    /// A view of a buffer of its own, whose address is a multiple of 16 bytes.
    View {
        /// The element type.
        dtype: DType,
        /// The view's extents.
        dims: Vec<usize>,
        /// The view's strides in elements.
        strides: Vec<usize>,
        /// How many elements the buffer has.
        elements: usize,
        /// Is it an output?
        written: bool,
    },
}

/// The arguments that a function made with this [runnable](Config::runnable) configuration is to be launched with. The
/// values of scalars are those that the hints promise, otherwise some number between -128 and 127.
pub fn arguments(func: &Function, config: &Config) -> Vec<Argument> {
    let mut flat = 0;
    let mut arguments = Vec::new();
    for param in &func.params {
        let written = param.name.starts_with("out");
        arguments.push(match param.kind {
            ParamKind::Scalar(dtype) => Argument::Scalar { dtype, value: scalar_value(dtype, func.hints[flat], flat) },
            ParamKind::Ptr { dtype } => Argument::Ptr { dtype, elements: config.buffer_elements(), written },
            ParamKind::View { dtype, rank } => {
                let (dims, strides) = view_extents(rank, config);
                let elements = dims[0] * strides[0];
                Argument::View { dtype, dims, strides, elements, written }
            }
        });
        flat += param.kind.flat_len();
    }
    arguments
}

/// Some value that agrees with the hint.
fn scalar_value(dtype: DType, hint: ParamHint, index: usize) -> i64 {
    let some = (index as i64 * 37 + 11) % 100;
    match (dtype, hint.known) {
        (_, Some(known)) => known,
        (DType::Bool, None) => some % 2,
        (d, None) => {
            let signed = if d.is_signed() || d.is_float() { some - 50 } else { some };
            signed - signed % i64::from(hint.divisor)
        }
    }
}

/// Extents that no tile divides, and strides that leave gaps between rows.
fn view_extents(rank: u8, config: &Config) -> (Vec<usize>, Vec<usize>) {
    let n = config.buffer_elements();
    match usize::from(rank) {
        1 => (vec![n - 3], vec![1]),
        2 => (vec![n / 8 - 1, 7], vec![8, 1]),
        3 => (vec![(n / 16 - 1).max(1), 3, 3], vec![12, 4, 1]),
        rank => {
            // Dimensions of 2, 1 and 3 elements inside of the first one, a gap after each row of the last.
            let dims: Vec<usize> = (0..rank).map(|axis| [2, 1, 3][axis % 3]).collect();
            let mut strides = vec![1; rank];
            for axis in (0..rank - 1).rev() {
                strides[axis] = strides[axis + 1] * dims[axis + 1] + usize::from(axis + 2 == rank);
            }
            let rows = (n / strides[0]).saturating_sub(1).max(1);
            ([vec![rows], dims[1..].to_vec()].concat(), strides)
        }
    }
}

/// A xorshift generator (Marsaglia's, with Vigna's multiplier): small, and the same everywhere.
#[derive(Clone, Debug)]
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        // Seeds that differ in one bit are spread (splitmix64's finaliser); the state must not be 0.
        let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self((z ^ (z >> 31)) | 1)
    }

    fn bits(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `n`, which is not 0.
    fn below(&mut self, n: usize) -> usize {
        ((self.bits() >> 32) as usize) % n
    }

    /// True in `percent` of 100 cases.
    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        if items.is_empty() { None } else { Some(&items[self.below(items.len())]) }
    }
}
