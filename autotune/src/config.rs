//! Configurations: the values of a kernel's comptime parameters, its warps and its stages.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;
use tilewright_runtime::{Error, Options, Result};

/// The name under which a space lists warps.
pub const NUM_WARPS: &str = "num_warps";
/// The name under which a space lists stages.
pub const NUM_STAGES: &str = "num_stages";

/// The value of one parameter.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A word.
    Text(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bool(v) => v.fmt(f),
            Value::Int(v) => v.fmt(f),
            Value::Text(v) => v.fmt(f),
        }
    }
}

macro_rules! ints {
    ($($ty:ty),*) => { $(
        impl From<$ty> for Value {
            fn from(v: $ty) -> Self {
                // A tile size beyond `i64` is refused by every kernel; saturating keeps it refused.
                Value::Int(i64::try_from(v).unwrap_or(i64::MAX))
            }
        }
        impl FromValue for $ty {
            fn from_value(value: &Value) -> Option<Self> {
                if let Value::Int(v) = value { <$ty>::try_from(*v).ok() } else { None }
            }
        }
    )* };
}

/// Types that a parameter's value can be read as.
pub trait FromValue: Sized {
    /// The value as this type, if it is one.
    fn from_value(value: &Value) -> Option<Self>;
}

ints!(i32, i64, u32, usize);

impl From<bool> for Value {
    fn from(v: bool) -> Self {
        Value::Bool(v)
    }
}

impl FromValue for bool {
    fn from_value(value: &Value) -> Option<Self> {
        if let Value::Bool(v) = value { Some(*v) } else { None }
    }
}

impl From<&str> for Value {
    fn from(v: &str) -> Self {
        Value::Text(v.to_owned())
    }
}

impl FromValue for String {
    fn from_value(value: &Value) -> Option<Self> {
        if let Value::Text(v) = value { Some(v.clone()) } else { None }
    }
}

/// One configuration. Its text and its JSON are canonical: parameters by name, then warps and stages.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Config {
    params: BTreeMap<String, Value>,
    options: Options,
}

impl Default for Config {
    fn default() -> Self {
        Self::new()
    }
}

impl Config {
    /// No parameters; 4 warps, 1 stage.
    pub fn new() -> Self {
        Self { params: BTreeMap::new(), options: Options { num_warps: 4, num_stages: 1 } }
    }

    /// The same with one parameter set; `num_warps` and `num_stages` are the launch's.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        let value = value.into();
        match (name, &value) {
            (NUM_WARPS, Value::Int(v)) => self.options.num_warps = u32::try_from(*v).unwrap_or(u32::MAX),
            (NUM_STAGES, Value::Int(v)) => self.options.num_stages = u32::try_from(*v).unwrap_or(u32::MAX),
            _ => {
                self.params.insert(name.to_owned(), value);
            }
        }
        self
    }

    /// The same with these warps and stages.
    #[must_use]
    pub fn with_options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// A parameter as a number, a flag or a word.
    ///
    /// # Errors
    /// [`Error::Arguments`] if there is no such parameter, or it is of another type.
    pub fn get<T: FromValue>(&self, name: &str) -> Result<T> {
        if let Some(v) = self.params.get(name).and_then(T::from_value) {
            return Ok(v);
        }
        self.option(name).and_then(|v| T::from_value(&v)).ok_or_else(|| self.absent(name))
    }

    #[cold]
    fn absent(&self, name: &str) -> Error {
        Error::Arguments {
            kernel: "autotune".into(),
            message: match self.params.get(name) {
                Some(v) => format!("the parameter `{name}` is `{v}`, which is not of the type asked for"),
                None => format!("the configuration `{self}` has no parameter `{name}`; add it to the kernel's space"),
            },
        }
    }

    fn option(&self, name: &str) -> Option<Value> {
        match name {
            NUM_WARPS => Some(self.options.num_warps.into()),
            NUM_STAGES => Some(self.options.num_stages.into()),
            _ => None,
        }
    }

    /// Warps and stages.
    pub fn options(&self) -> Options {
        self.options
    }

    /// The parameters besides warps and stages, by name.
    pub fn params(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.params.iter().map(|(n, v)| (n.as_str(), v))
    }

    /// The value of a parameter, or of `num_warps` or `num_stages`.
    pub fn value(&self, name: &str) -> Option<Value> {
        self.params.get(name).cloned().or_else(|| self.option(name))
    }

    fn all(&self) -> BTreeMap<String, Value> {
        let mut all = self.params.clone();
        all.insert(NUM_WARPS.into(), self.options.num_warps.into());
        all.insert(NUM_STAGES.into(), self.options.num_stages.into());
        all
    }
}

impl PartialOrd for Config {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Config {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let rest = |c: &Config| (c.options.num_warps, c.options.num_stages);
        self.params.cmp(&other.params).then(rest(self).cmp(&rest(other)))
    }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.params {
            write!(f, "{name}={value} ")?;
        }
        write!(f, "warps={} stages={}", self.options.num_warps, self.options.num_stages)
    }
}

impl Serialize for Config {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        self.all().serialize(s)
    }
}

impl<'de> Deserialize<'de> for Config {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let mut params = BTreeMap::<String, Value>::deserialize(d)?;
        let mut take = |name: &str| match params.remove(name) {
            Some(Value::Int(v)) => u32::try_from(v).map_err(|_| D::Error::custom(format!("{name} is {v}"))),
            _ => Err(D::Error::custom(format!("a configuration has the number {name}"))),
        };
        let options = Options { num_warps: take(NUM_WARPS)?, num_stages: take(NUM_STAGES)? };
        Ok(Self { params, options })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_json_are_canonical() {
        let c =
            Config::new().with("bn", 64).with("num_warps", 8).with("bm", 128).with("swap", true).with("num_stages", 3);
        assert_eq!(c.to_string(), "bm=128 bn=64 swap=true warps=8 stages=3");
        let json = serde_json::to_string(&c).unwrap();
        assert_eq!(json, r#"{"bm":128,"bn":64,"num_stages":3,"num_warps":8,"swap":true}"#);
        assert_eq!(serde_json::from_str::<Config>(&json).unwrap(), c);
        assert!(serde_json::from_str::<Config>(r#"{"bm":1}"#).is_err());
        assert!(serde_json::from_str::<Config>(r#"{"num_warps":-1,"num_stages":1}"#).is_err());
    }

    #[test]
    fn values_are_read_as_their_types() {
        let c = Config::new().with("block", 64usize).with("kind", "fast").with("flag", false);
        assert_eq!(c.get::<usize>("block").unwrap(), 64);
        assert_eq!(c.get::<u32>("num_warps").unwrap(), 4);
        assert_eq!(c.get::<String>("kind").unwrap(), "fast");
        assert!(!c.get::<bool>("flag").unwrap());
        let e = c.get::<usize>("blok").unwrap_err().to_string();
        assert!(e.contains("no parameter `blok`"), "{e}");
        let e = c.get::<bool>("block").unwrap_err().to_string();
        assert!(e.contains("is `64`, which is not of the type"), "{e}");
    }
}
