//! The bytes of one entry.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | magic `TWCODE` 0x1a 0x0a |
//! | 4 | schema number |
//! | 32 | the entry's own key |
//! | 8 | length of what follows the next field |
//! | 32 | SHA-256 of what follows |
//! | 8, n | length and text of the metadata (JSON) |
//! | 8, n | length and bytes of the code |
//! | 8, n | length and bytes of the driver's binary; may be empty |
//!
//! All numbers are little-endian.

use super::key::CacheKey;
use crate::metadata::Resources;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tilewright_compiler::target::{Code, Compiled};
use tilewright_compiler::thread::{AbiParam, AbiTy};

const MAGIC: [u8; 8] = *b"TWCODE\x1a\n";
const SCHEMA: u32 = 1;
const HEADER: usize = 8 + 4 + 32 + 8 + 32;

/// What the cache keeps of a kernel.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Entry {
    pub compiled: Compiled,
    pub binary: Option<Vec<u8>>,
    pub resources: Resources,
}

/// The JSON part: all but the code.
#[derive(Serialize, Deserialize)]
struct Meta {
    entry: String,
    threads: u32,
    shared_bytes: u32,
    params: Vec<(String, String)>,
    language: String,
    resources: Resources,
    /// For people who look into the file.
    compiler: String,
}

impl Entry {
    /// The file's bytes.
    pub fn to_bytes(&self, key: &CacheKey) -> Vec<u8> {
        let (language, code) = match &self.compiled.code {
            Code::Ptx(text) => ("ptx", text.clone().into_bytes()),
            Code::OpenClC(text) => ("opencl", text.clone().into_bytes()),
            Code::SpirV(words) => ("spirv", words.iter().flat_map(|w| w.to_le_bytes()).collect()),
        };
        let meta = Meta {
            entry: self.compiled.entry.clone(),
            threads: self.compiled.threads,
            shared_bytes: self.compiled.shared_bytes,
            params: self.compiled.params.iter().map(|p| (p.name.clone(), ty_name(p.ty).to_owned())).collect(),
            language: language.to_owned(),
            resources: self.resources,
            compiler: format!("tilewright {}", env!("CARGO_PKG_VERSION")),
        };
        let meta = serde_json::to_vec(&meta).expect("strings and numbers always serialise");
        let mut payload = Vec::new();
        for part in [&meta[..], &code, self.binary.as_deref().unwrap_or_default()] {
            payload.extend((part.len() as u64).to_le_bytes());
            payload.extend(part);
        }
        let mut file = Vec::with_capacity(HEADER + payload.len());
        file.extend(MAGIC);
        file.extend(SCHEMA.to_le_bytes());
        file.extend(key.0);
        file.extend((payload.len() as u64).to_le_bytes());
        file.extend(Sha256::digest(&payload));
        file.extend(payload);
        file
    }

    /// The entry in a file's bytes; `None` if a single bit is not as it was written for this key.
    pub fn from_bytes(file: &[u8], key: &CacheKey) -> Option<Entry> {
        let (header, payload) = file.split_at_checked(HEADER)?;
        let mut expected = Vec::with_capacity(HEADER);
        expected.extend(MAGIC);
        expected.extend(SCHEMA.to_le_bytes());
        expected.extend(key.0);
        expected.extend((payload.len() as u64).to_le_bytes());
        expected.extend(Sha256::digest(payload));
        if header != expected {
            return None;
        }
        let mut rest = payload;
        let (meta, code, binary) = (part(&mut rest)?, part(&mut rest)?, part(&mut rest)?);
        if !rest.is_empty() {
            return None;
        }
        let meta: Meta = serde_json::from_slice(meta).ok()?;
        let code = match meta.language.as_str() {
            "ptx" => Code::Ptx(String::from_utf8(code.to_vec()).ok()?),
            "opencl" => Code::OpenClC(String::from_utf8(code.to_vec()).ok()?),
            "spirv" => {
                let (words, tail) = code.as_chunks::<4>();
                if !tail.is_empty() {
                    return None;
                }
                Code::SpirV(words.iter().map(|w| u32::from_le_bytes(*w)).collect())
            }
            _ => return None,
        };
        let params = meta.params.into_iter().map(|(name, ty)| Some(AbiParam { name, ty: ty_of(&ty)? }));
        Some(Entry {
            compiled: Compiled {
                entry: meta.entry,
                threads: meta.threads,
                shared_bytes: meta.shared_bytes,
                params: params.collect::<Option<_>>()?,
                code,
            },
            binary: (!binary.is_empty()).then(|| binary.to_vec()),
            resources: meta.resources,
        })
    }
}

/// Entries as they are on disk, for checks from outside of what reads them.
pub fn samples() -> Vec<Vec<u8>> {
    let codes = [
        Code::Ptx(".version 8.0".into()),
        Code::OpenClC("__kernel void k() {}".into()),
        Code::SpirV(vec![0x0723_0203, 1, u32::MAX]),
    ];
    let params: Vec<_> = TYPES.iter().map(|&(ty, name)| AbiParam { name: format!("p_{name}"), ty }).collect();
    let entry = |code| {
        let params = params.clone();
        let compiled = Compiled { entry: "k".into(), threads: 128, shared_bytes: 4096, params, code };
        Entry { compiled, binary: Some(vec![1, 2, 3]), resources: Resources::default() }
    };
    codes.into_iter().map(|code| entry(code).to_bytes(&CacheKey([7; 32]))).collect()
}

/// An entry read, whatever key it says it is of, and written again; `None` if it is refused.
pub fn reread(file: &[u8]) -> Option<Vec<u8>> {
    let key = CacheKey(file.get(12..44)?.try_into().ok()?);
    Some(Entry::from_bytes(file, &key)?.to_bytes(&key))
}

/// Takes a length and as many bytes off the front.
fn part<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (len, tail) = rest.split_first_chunk::<8>()?;
    let (part, tail) = tail.split_at_checked(usize::try_from(u64::from_le_bytes(*len)).ok()?)?;
    *rest = tail;
    Some(part)
}

const TYPES: [(AbiTy, &str); 5] =
    [(AbiTy::I32, "i32"), (AbiTy::I64, "i64"), (AbiTy::F32, "f32"), (AbiTy::F64, "f64"), (AbiTy::Ptr, "ptr")];

fn ty_name(ty: AbiTy) -> &'static str {
    match ty {
        AbiTy::I32 => "i32",
        AbiTy::I64 => "i64",
        AbiTy::F32 => "f32",
        AbiTy::F64 => "f64",
        AbiTy::Ptr => "ptr",
    }
}

fn ty_of(name: &str) -> Option<AbiTy> {
    TYPES.iter().find(|(_, n)| *n == name).map(|(t, _)| *t)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn sample(code: Code, binary: Option<Vec<u8>>) -> Entry {
        let params = TYPES.iter().map(|&(ty, name)| AbiParam { name: format!("p_{name}"), ty }).collect();
        Entry {
            compiled: Compiled { entry: "k".into(), threads: 128, shared_bytes: 4096, params, code },
            binary,
            resources: Resources { registers: Some(40), code_bytes: Some(1234), ..Resources::default() },
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let key = CacheKey([7; 32]);
        for entry in [
            sample(Code::Ptx(".version 8.0".into()), Some(vec![1, 2, 3])),
            sample(Code::OpenClC("__kernel void k() {}".into()), None),
            sample(Code::SpirV(vec![0x0723_0203, 1, u32::MAX]), None),
        ] {
            assert_eq!(Entry::from_bytes(&entry.to_bytes(&key), &key), Some(entry));
        }
    }

    #[test]
    fn every_truncation_and_every_flipped_bit_is_seen() {
        let key = CacheKey([9; 32]);
        let bytes = sample(Code::Ptx("abc".into()), Some(vec![0; 8])).to_bytes(&key);
        for n in 0..bytes.len() {
            assert_eq!(Entry::from_bytes(&bytes[..n], &key), None, "cut to {n} bytes");
        }
        for bit in 0..bytes.len() * 8 {
            let mut bad = bytes.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Entry::from_bytes(&bad, &key), None, "bit {bit}");
        }
        let mut long = bytes.clone();
        long.push(0);
        assert_eq!(Entry::from_bytes(&long, &key), None);
        assert_eq!(Entry::from_bytes(&bytes, &CacheKey([8; 32])), None, "another key's entry");
    }
}
