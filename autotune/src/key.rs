//! Problem sizes, and the keys under which results are kept: sizes in buckets.
//!
//! A bucket may be coarse, for a winner is only a preference. Whether a configuration is *allowed* for a size is never
//! decided by its bucket: constraints are evaluated for the exact sizes each time.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use tilewright_runtime::DType;

/// The sizes of one problem, by name, in the order the kernel declares them.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Dims {
    names: &'static [&'static str],
    values: Vec<i64>,
}

impl Dims {
    /// Sizes for these names; `None` unless there is one for each.
    pub fn new(names: &'static [&'static str], values: &[i64]) -> Option<Self> {
        (names.len() == values.len()).then(|| Self { names, values: values.to_vec() })
    }

    /// The size of that name; 0 for a name the kernel does not declare.
    pub fn get(&self, name: &str) -> i64 {
        self.names.iter().position(|n| *n == name).map_or(0, |i| self.values[i])
    }

    /// The size of that name as a length.
    pub fn size(&self, name: &str) -> usize {
        usize::try_from(self.get(name)).unwrap_or(0)
    }

    /// Name and size, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, i64)> + '_ {
        self.names.iter().copied().zip(self.values.iter().copied())
    }

    /// The sizes alone.
    pub fn values(&self) -> &[i64] {
        &self.values
    }
}

impl fmt::Display for Dims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, value)) in self.iter().enumerate() {
            write!(f, "{}{name}={value}", if i > 0 { "," } else { "" })?;
        }
        Ok(())
    }
}

/// Which sizes share a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bucket {
    /// Only the size itself.
    Exact,
    /// Sizes up to the same power of two that are divisible by the same of 1, 2, 4, 8, 16: kernels are compiled
    /// for these divisors, so sizes that differ in them are different kernels.
    Pow2,
    /// Sizes up to the same multiple of this, and divisible alike.
    Multiple(u32),
}

impl Bucket {
    /// The bucket's name: `1000`, or `513-1024/8` for sizes of that range divisible by 8.
    pub fn of(self, size: i64) -> String {
        let divisor = 1i64 << size.trailing_zeros().min(4);
        match self {
            _ if size <= 0 => size.to_string(),
            Bucket::Exact => size.to_string(),
            Bucket::Pow2 => {
                let Some(top) = (size as u64).checked_next_power_of_two() else { return size.to_string() };
                if top <= 2 { size.to_string() } else { format!("{}-{top}/{divisor}", top / 2 + 1) }
            }
            Bucket::Multiple(step) => {
                let step = u64::from(step.max(1));
                let top = (size as u64).div_ceil(step).saturating_mul(step);
                if step == 1 { size.to_string() } else { format!("{}-{top}/{divisor}", top.saturating_sub(step) + 1) }
            }
        }
    }
}

/// Under what a result is kept, beside kernel and device.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Key {
    /// The element type; absent for kernels without a choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dtype: Option<String>,
    /// The bucket of each size.
    pub dims: BTreeMap<String, String>,
}

impl Key {
    /// The key of sizes and an element type.
    pub fn new(dims: &Dims, buckets: &[Bucket], dtype: Option<DType>) -> Self {
        let named = dims.iter().zip(buckets).map(|((n, v), b)| (n.to_owned(), b.of(v)));
        Self { dtype: dtype.map(|d| d.to_string()), dims: named.collect() }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.dtype.as_deref().unwrap_or("-"))?;
        self.dims.iter().try_for_each(|(n, v)| write!(f, " {n}={v}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_keep_divisors_apart() {
        assert_eq!(Bucket::Pow2.of(1000), "513-1024/8");
        assert_eq!(Bucket::Pow2.of(1024), "513-1024/16");
        assert_eq!(Bucket::Pow2.of(1008), Bucket::Pow2.of(1024));
        assert_ne!(Bucket::Pow2.of(1001), Bucket::Pow2.of(1000));
        assert_ne!(Bucket::Pow2.of(1025), Bucket::Pow2.of(1023));
        assert_eq!(Bucket::Exact.of(1000), "1000");
        assert_eq!(Bucket::Multiple(64).of(100), "65-128/4");
        assert_eq!(Bucket::Multiple(0).of(100), "100");
        for size in [i64::MIN, -1, 0, 1, 2, i64::MAX] {
            for bucket in [Bucket::Pow2, Bucket::Exact, Bucket::Multiple(7)] {
                assert!(!bucket.of(size).is_empty());
            }
        }
        assert_eq!(Bucket::Pow2.of(0), "0");
    }

    #[test]
    fn a_key_has_names_and_a_dtype() {
        let dims = Dims::new(&["rows", "cols"], &[2048, 1000]).unwrap();
        let key = Key::new(&dims, &[Bucket::Pow2, Bucket::Exact], Some(DType::F32));
        assert_eq!(key.to_string(), "f32 cols=1000 rows=1025-2048/16");
        assert_eq!(serde_json::from_str::<Key>(&serde_json::to_string(&key).unwrap()).unwrap(), key);
        assert!(Dims::new(&["rows"], &[1, 2]).is_none());
        assert_eq!((dims.get("rows"), dims.size("cols"), dims.get("no")), (2048, 1000, 0));
    }
}
