//! The address of an entry: a hash of all that decides the code.

use sha2::{Digest, Sha256};
use std::fmt;
use tilewright_compiler::pipeline::{self, Options};
use tilewright_compiler::target::Caps;

/// The address of compiled code.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct CacheKey(pub [u8; 32]);

impl CacheKey {
    /// The address of the code of this Tile IR for this target, made by this compiler and assembled by this driver.
    pub fn new(ir: &str, options: &Options, caps: &Caps, driver: &str) -> Self {
        let mut hash = Sha256::new();
        let parts = [
            "tilewright code cache",
            env!("CARGO_PKG_VERSION"),
            &format!("{} {}", pipeline::CODEGEN_VERSION, tilewright_compiler::CODEGEN_FINGERPRINT),
            driver,
            &format!("{caps:?}"),
            &format!("{options:?}"),
            ir,
        ];
        for part in parts {
            // The length keeps neighbouring parts apart.
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
        CacheKey(hash.finalize().into())
    }
}

impl fmt::Display for CacheKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl fmt::Debug for CacheKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_decides_the_code_changes_the_key() {
        let (caps, options) = (Caps::ptx(90), Options::default());
        let base = CacheKey::new("ir", &options, &caps, "driver");
        assert_eq!(base, CacheKey::new("ir", &options, &caps, "driver"));
        assert_eq!(base.to_string().len(), 64);
        let others = [
            CacheKey::new("ir2", &options, &caps, "driver"),
            CacheKey::new("ir", &Options { num_warps: 8, ..options }, &caps, "driver"),
            CacheKey::new("ir", &Options { num_stages: 1, ..options }, &caps, "driver"),
            CacheKey::new("ir", &options, &Caps::ptx(80), "driver"),
            CacheKey::new("ir", &options, &Caps { f64: false, ..caps.clone() }, "driver"),
            CacheKey::new("ir", &options, &caps, "driver2"),
        ];
        for (i, a) in others.iter().enumerate() {
            assert_ne!(*a, base, "{i}");
            assert!(others[..i].iter().all(|b| a != b), "{i}");
        }
    }
}
