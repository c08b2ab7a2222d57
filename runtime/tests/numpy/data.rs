//! The data: operands, cases, and when a result is what it should be.

use serde::Deserialize;
use std::collections::HashMap;
use std::str::FromStr;
use std::sync::LazyLock;
use tilewright_compiler::DType;
use tilewright_compiler::tile::{Constant, Op, parse::every_op};

const TEXT: &str = include_str!("../golden/values.jsonl");

/// Everything in the file.
pub static DATA: LazyLock<Data> = LazyLock::new(|| Data::read(TEXT));

/// An array as the file has it: type, extents, elements in hexadecimal, little-endian.
#[derive(Deserialize)]
#[serde(try_from = "Packed")]
pub struct Array {
    pub dtype: DType,
    pub dims: Vec<usize>,
    pub bytes: Vec<u8>,
}

#[derive(Deserialize)]
struct Packed {
    t: String,
    d: Vec<usize>,
    w: String,
}

impl TryFrom<Packed> for Array {
    type Error = String;

    fn try_from(p: Packed) -> Result<Self, String> {
        let dtype = DType::from_str(&p.t)?;
        let byte = |i: usize| u8::from_str_radix(&p.w[2 * i..2 * i + 2], 16).map_err(|e| e.to_string());
        let bytes = (0..p.w.len() / 2).map(byte).collect::<Result<Vec<u8>, String>>()?;
        let elements: usize = p.d.iter().product();
        if bytes.len() != elements * dtype.bytes() {
            return Err(format!("{} bytes for {elements} elements of {dtype}", bytes.len()));
        }
        Ok(Self { dtype, dims: p.d, bytes })
    }
}

impl Array {
    pub fn elements(&self) -> usize {
        self.dims.iter().product()
    }

    pub fn word(&self, i: usize) -> u64 {
        word(self.dtype, &self.bytes, i)
    }
}

/// The bits of element `i`.
pub fn word(dtype: DType, bytes: &[u8], i: usize) -> u64 {
    let at = &bytes[i * dtype.bytes()..][..dtype.bytes()];
    at.iter().rev().fold(0, |all, &b| all << 8 | u64::from(b))
}

/// An argument of a whole kernel.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramArg {
    /// A number,
    pub n: Option<Array>,
    /// or memory,
    pub a: Option<Array>,
    /// seen so.
    #[serde(flatten)]
    pub window: Option<Window>,
}

/// A view, in elements.
#[derive(Deserialize, Clone)]
pub struct Window {
    pub d: Vec<usize>,
    pub strides: Vec<isize>,
    pub offset: usize,
}

/// A whole kernel.
#[derive(Deserialize)]
pub struct Program {
    pub ir: String,
    pub args: Vec<ProgramArg>,
    pub grid: [usize; 3],
    pub init: Array,
    pub out: Option<Window>,
}

/// What an operation gives.
#[derive(Deserialize)]
pub struct Case {
    /// The operation as Tile IR names it.
    pub f: String,
    /// Names of the operands.
    pub x: Vec<String>,
    /// Are the operands all pairs, or triples, of elements?
    #[serde(default)]
    pub outer: bool,
    /// Attributes.
    #[serde(default)]
    pub p: Vec<serde_json::Value>,
    pub y: Array,
    /// Units in the last place that the result may be off.
    #[serde(default)]
    ulp: u64,
    #[serde(default)]
    abs: f64,
    /// Why NumPy's result is another.
    pub differs: Option<String>,
    /// Which elements differ,
    #[serde(default)]
    pub at: Vec<usize>,
    /// and what NumPy gives there.
    pub theirs: Option<Array>,
    #[serde(flatten)]
    pub program: Option<Program>,
}

/// What is allowed beyond the tolerance.
#[derive(Clone, Copy, Default)]
pub struct Allowance {
    /// Units in the last place of quotients, roots, and what is made of them.
    pub ulps: u64,
    /// May subnormal numbers be zero?
    pub flush: bool,
    /// May `fma` of huge and of tiny `f64` be rounded twice?
    pub fma_twice: bool,
}

impl Case {
    /// The operation with attributes of no matter, `None` for what is no operation.
    pub fn op(&self) -> Option<Op> {
        static OPS: LazyLock<HashMap<String, Op>> =
            LazyLock::new(|| every_op().into_iter().map(|op| (op.mnemonic(), op)).collect());
        OPS.get(&self.f).cloned()
    }

    /// Attribute `i`, a number that is not negative.
    pub fn index(&self, i: usize) -> usize {
        self.p[i].as_u64().unwrap_or_else(|| panic!("{}: attribute {i} of {:?}", self.f, self.p)) as usize
    }

    pub fn operand(&self, i: usize) -> &'static Array {
        DATA.arrays.get(&self.x[i]).unwrap_or_else(|| panic!("no array {}", self.x[i]))
    }

    pub fn operands(&self) -> Vec<&'static Array> {
        (0..self.x.len()).map(|i| self.operand(i)).collect()
    }

    /// The element of operand `which` that element `lane` of the result is made of, if the operation is elementwise.
    pub fn source(&self, which: usize, lane: usize) -> usize {
        if !self.outer {
            return lane;
        }
        let inner: usize = (which + 1..self.x.len()).map(|i| self.operand(i).elements()).product();
        lane / inner % self.operand(which).elements()
    }

    /// Is `got` close enough to element `i` of the result?
    pub fn close(&self, got: u64, i: usize, allowance: Allowance) -> bool {
        let (dtype, expected) = (self.y.dtype, self.y.word(i));
        if !dtype.is_float() || got == expected {
            return got == expected;
        }
        let flushed = |word: u64| {
            let value = Constant(word).as_f64(dtype);
            if allowance.flush && value.abs() < least_normal(dtype) { 0.0 } else { value }
        };
        let (g, e) = (flushed(got), flushed(expected));
        if g.is_nan() || e.is_nan() {
            return g.is_nan() && e.is_nan();
        }
        if g == 0.0 && e == 0.0 {
            return allowance.flush || self.abs > 0.0;
        }
        if g.is_infinite() || e.is_infinite() {
            return g == e;
        }
        let rounds = self.ulp > 0 || matches!(self.f.as_str(), "div" | "sqrt");
        let ulps = self.ulp + if rounds { allowance.ulps } else { 0 };
        steps(dtype, got).abs_diff(steps(dtype, expected)) <= ulps || (g - e).abs() <= self.abs
    }

    /// The case in words.
    pub fn what(&self) -> String {
        let attributes = if self.p.is_empty() { String::new() } else { format!(" {:?}", self.p) };
        let dims: Vec<String> = self.operands().iter().map(|a| format!("{}{:?}", a.dtype, a.dims)).collect();
        format!("{}{attributes} of {} to {}{:?}", self.f, dims.join(", "), self.y.dtype, self.y.dims)
    }
}

/// The least number that is not subnormal.
pub fn least_normal(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 2f64.powi(-14),
        DType::F64 => f64::MIN_POSITIVE,
        _ => f64::from(f32::MIN_POSITIVE),
    }
}

/// The bits of a float as a number that grows with it by 1 for each unit in the last place.
fn steps(dtype: DType, word: u64) -> i64 {
    let sign = 1u64 << (dtype.bits() - 1);
    let size = (word & (sign - 1)) as i64;
    if word & sign == 0 { size } else { -size }
}

/// A number as text.
pub fn shown(dtype: DType, word: u64) -> String {
    if dtype.is_float() {
        return format!("{:?} ({word:#x})", Constant(word).as_f64(dtype));
    }
    Constant(word).as_i64(dtype).filter(|_| dtype != DType::U64).map_or_else(|| word.to_string(), |v| v.to_string())
}

fn read<'a, T: Deserialize<'a>>(line: &'a str) -> T {
    serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))
}

/// The file.
pub struct Data {
    pub arrays: HashMap<String, Array>,
    pub cases: Vec<Case>,
}

impl Data {
    /// # Panics
    /// If a line is not as `make.py` says, or lines are missing.
    fn read(text: &str) -> Self {
        #[derive(Deserialize)]
        struct Named {
            array: String,
            #[serde(flatten)]
            value: Array,
        }
        let mut lines = text.lines();
        let head: serde_json::Value = serde_json::from_str(lines.next().expect("a first line")).unwrap();
        let (mut arrays, mut cases) = (HashMap::new(), Vec::<Case>::new());
        for line in lines {
            if line.starts_with("{\"array\"") {
                let named: Named = read(line);
                arrays.insert(named.array, named.value);
            } else {
                cases.push(read(line));
            }
        }
        let values: usize = cases.iter().map(|c| c.y.elements()).sum();
        assert_eq!((head["cases"].as_u64(), head["values"].as_u64()), (Some(cases.len() as u64), Some(values as u64)));
        Self { arrays, cases }
    }
}
