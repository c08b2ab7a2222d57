//! The directory of entries.

use super::entry::Entry;
use super::key::CacheKey;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;

/// A directory of entries, shared by several processes.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    dir: PathBuf,
}

/// What a look into the cache found.
#[derive(Debug)]
pub(crate) enum Lookup {
    Found(Entry),
    Absent,
    /// There was something, but not what was written for this key; it is removed.
    Corrupt,
}

/// The directory that compiled things are cached in, by the environment; `None` if caches on disk are turned off. It need not
/// exist. Beside compiled kernels others may keep entries in folders of their own.
///
/// `TILEWRIGHT_CACHE=off` turns it off. The directory is `TILEWRIGHT_CACHE_DIR`, else `tilewright` in `XDG_CACHE_HOME`, else
/// `~/.cache/tilewright`, else `tilewright-cache` in the directory for temporary files.
pub fn cache_dir() -> Option<PathBuf> {
    choose(|name| std::env::var_os(name).filter(|v| !v.is_empty()))
}

fn choose(var: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    if var("TILEWRIGHT_CACHE").is_some_and(|v| matches!(v.to_str(), Some("off" | "0" | "false" | "no"))) {
        return None;
    }
    let dir = var("TILEWRIGHT_CACHE_DIR")
        .map(PathBuf::from)
        // A relative XDG directory is to be ignored: XDG Base Directory Specification, "Environment variables".
        .or_else(|| var("XDG_CACHE_HOME").map(PathBuf::from).filter(|d| d.is_absolute()).map(|d| d.join("tilewright")))
        .or_else(|| var("HOME").map(|home| PathBuf::from(home).join(".cache/tilewright")))
        .unwrap_or_else(|| std::env::temp_dir().join("tilewright-cache"));
    Some(dir)
}

impl Store {
    /// The store that the environment asks for; `None` if it is turned off.
    pub fn from_env() -> Option<Store> {
        Some(Store { dir: cache_dir()? })
    }

    /// A store in this directory, which need not exist yet.
    #[cfg(test)]
    pub fn at(dir: impl Into<PathBuf>) -> Store {
        Store { dir: dir.into() }
    }

    fn path(&self, key: &CacheKey) -> PathBuf {
        let name = key.to_string();
        // 256 folders, so that none grows large.
        self.dir.join(&name[..2]).join(format!("{}.twcode", &name[2..]))
    }

    /// Reads an entry. Whatever goes wrong, the answer is that there is none.
    pub fn load(&self, key: &CacheKey) -> Lookup {
        let path = self.path(key);
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Lookup::Absent,
            Err(_) => return Lookup::Corrupt,
        };
        match Entry::from_bytes(&bytes, key) {
            Some(entry) => Lookup::Found(entry),
            None => {
                // If it cannot be removed, the next write replaces it; if that fails too, every look finds it corrupt.
                let _ = std::fs::remove_file(&path);
                Lookup::Corrupt
            }
        }
    }

    /// Writes an entry: readers see the old one, none, or the new one whole.
    ///
    /// # Errors
    /// What the file system says; the cache is then as before.
    pub fn save(&self, key: &CacheKey, entry: &Entry) -> io::Result<()> {
        let path = self.path(key);
        let folder = path.parent().expect("an entry's path has a folder");
        std::fs::create_dir_all(folder)?;
        let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(folder)?;
        file.write_all(&entry.to_bytes(key))?;
        file.persist(&path).map_err(|e| e.error)?;
        Ok(())
    }

    /// Removes an entry that turned out to be of no use.
    pub fn remove(&self, key: &CacheKey) {
        // If it stays, it is met and refused again: a matter of time, not of results.
        let _ = std::fs::remove_file(self.path(key));
    }
}

#[cfg(test)]
mod tests {
    use super::super::entry::tests::sample;
    use super::*;
    use std::process::Command;
    use tilewright_compiler::target::Code;

    fn entry() -> Entry {
        sample(Code::Ptx("some code ".repeat(20_000)), Some(vec![5; 100_000]))
    }

    #[test]
    fn the_environment_chooses_the_directory() {
        let of = |vars: &[(&str, &str)]| choose(|n| vars.iter().find(|(k, _)| *k == n).map(|(_, v)| OsString::from(v)));
        assert_eq!(of(&[("TILEWRIGHT_CACHE", "off"), ("HOME", "/h")]), None);
        assert_eq!(of(&[("TILEWRIGHT_CACHE_DIR", "/a"), ("HOME", "/h")]), Some("/a".into()));
        assert_eq!(of(&[("XDG_CACHE_HOME", "/x"), ("HOME", "/h")]), Some("/x/tilewright".into()));
        assert_eq!(of(&[("XDG_CACHE_HOME", "x"), ("HOME", "/h")]), Some("/h/.cache/tilewright".into()));
        assert_eq!(of(&[]), Some(std::env::temp_dir().join("tilewright-cache")));
    }

    #[test]
    fn damaged_entries_are_misses_and_are_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let (store, key) = (Store::at(dir.path()), CacheKey([1; 32]));
        assert!(matches!(store.load(&key), Lookup::Absent));
        store.save(&key, &entry()).unwrap();
        assert!(matches!(store.load(&key), Lookup::Found(e) if e == entry()));
        let path = store.path(&key);
        let good = std::fs::read(&path).unwrap();
        for damage in [&good[..good.len() / 2], &[], b"not ours"] {
            std::fs::write(&path, damage).unwrap();
            assert!(matches!(store.load(&key), Lookup::Corrupt));
            assert!(matches!(store.load(&key), Lookup::Absent), "the damaged file is removed");
        }
        store.save(&key, &entry()).unwrap();
        assert!(matches!(store.load(&key), Lookup::Found(_)));
        // A directory in the entry's place.
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(matches!(store.load(&key), Lookup::Corrupt));
        assert!(store.save(&key, &entry()).is_err());
    }

    #[test]
    fn an_unwritable_directory_is_an_error_of_save_alone() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        let store = Store::at(file.join("below"));
        assert!(store.save(&CacheKey([2; 32]), &entry()).is_err());
        assert!(!matches!(store.load(&CacheKey([2; 32])), Lookup::Found(_)));
    }

    /// Writes and reads one entry over and over: what is found must always be whole.
    fn hammer(store: &Store) {
        let key = CacheKey([3; 32]);
        let entry = entry();
        for _ in 0..60 {
            store.save(&key, &entry).unwrap();
            match store.load(&key) {
                Lookup::Found(e) => assert!(e == entry),
                Lookup::Absent => panic!("an entry once written vanished"),
                Lookup::Corrupt => panic!("a torn entry was read"),
            }
        }
    }

    #[test]
    fn threads_share_a_directory() {
        let dir = tempfile::tempdir().unwrap();
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| hammer(&Store::at(dir.path())));
            }
        });
        assert_eq!(std::fs::read_dir(dir.path().join("03")).unwrap().count(), 1, "no temporary file is left");
    }

    /// Run by `processes_share_a_directory` in processes of their own; alone it does nothing.
    #[test]
    fn child_process_hammers() {
        if let Some(dir) = std::env::var_os("TILEWRIGHT_TEST_HAMMER") {
            hammer(&Store::at(dir));
        }
    }

    #[test]
    fn processes_share_a_directory() {
        let dir = tempfile::tempdir().unwrap();
        let exe = std::env::current_exe().unwrap();
        let children: Vec<_> = (0..3)
            .map(|_| {
                Command::new(&exe)
                    .args(["--exact", "cache::store::tests::child_process_hammers"])
                    .env("TILEWRIGHT_TEST_HAMMER", dir.path())
                    .stdout(std::process::Stdio::piped())
                    .spawn()
                    .unwrap()
            })
            .collect();
        for child in children {
            let output = child.wait_with_output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && text.contains("1 passed"), "{text}");
        }
        assert!(matches!(Store::at(dir.path()).load(&CacheKey([3; 32])), Lookup::Found(_)));
    }
}
