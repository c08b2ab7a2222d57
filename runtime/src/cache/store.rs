//! The directory of entries.

use super::entry::Entry;
use super::key::CacheKey;
use crate::files;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

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

/// Most bytes of one entry: the largest kernels' code has some megabytes.
const LARGEST: u64 = 256 << 20;
/// Most bytes of all entries unless `TILEWRIGHT_CACHE_LIMIT` says otherwise.
const LIMIT: u64 = 1 << 30;
/// After so many bytes written by this process the directory's size is looked at again.
const LOOK: u64 = 64 << 20;
/// The names of what is kept: compiled kernels, and graphs in a folder of their own.
const EXTENSIONS: &[&str] = &["twcode", "twgraph"];

/// The directory that compiled things are cached in, by the environment; `None` if caches on disk are turned off, or if the
/// directory is not this user's alone and nobody named it (which is told once, on the standard error). It need not
/// exist. Beside compiled kernels others may keep entries in folders of their own.
///
/// `TILEWRIGHT_CACHE=off` turns it off. The directory is `TILEWRIGHT_CACHE_DIR`, else `tilewright` in `XDG_CACHE_HOME`, else
/// `~/.cache/tilewright`, else `tilewright-cache-` and the user's number in the directory for temporary files.
pub fn cache_dir() -> Option<PathBuf> {
    let (dir, named) = choose(|name| std::env::var_os(name).filter(|v| !v.is_empty()))?;
    // Code from there is run. Who names a folder knows with whom it is shared.
    if !named && let Err(e) = files::check_owner(&dir) {
        static TOLD: Once = Once::new();
        TOLD.call_once(|| eprintln!("tilewright: compiled code is not cached: {e} (TILEWRIGHT_CACHE_DIR)"));
        return None;
    }
    Some(dir)
}

/// The directory, and whether it was named.
fn choose(var: impl Fn(&str) -> Option<OsString>) -> Option<(PathBuf, bool)> {
    if var("TILEWRIGHT_CACHE").is_some_and(|v| matches!(v.to_str(), Some("off" | "0" | "false" | "no"))) {
        return None;
    }
    if let Some(dir) = var("TILEWRIGHT_CACHE_DIR") {
        return Some((dir.into(), true));
    }
    // A relative XDG directory is to be ignored: XDG Base Directory Specification, "Environment variables".
    let xdg = var("XDG_CACHE_HOME").map(PathBuf::from).filter(|d| d.is_absolute()).map(|d| d.join("tilewright"));
    let dir = xdg
        .or_else(|| var("HOME").map(|home| PathBuf::from(home).join(".cache/tilewright")))
        .unwrap_or_else(|| std::env::temp_dir().join(format!("tilewright-cache-{}", files::user())));
    Some((dir, false))
}

fn limit() -> u64 {
    let text = std::env::var("TILEWRIGHT_CACHE_LIMIT").ok();
    text.and_then(|t| files::bytes_of(&t)).unwrap_or(LIMIT)
}

/// What there is in the cache of compiled things, and what was removed of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pruned {
    /// Entries before.
    pub entries: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Files removed, those among them that a process left unfinished.
    pub removed: usize,
    /// Their bytes.
    pub removed_bytes: u64,
}

/// Removes from the cache of compiled things what was not used for this long, what is left over of processes that died,
/// and the least recently used of what is over the limit (`TILEWRIGHT_CACHE_LIMIT`, 1 GiB by default). With `dry_run` it only
/// counts. `None` if there is no cache.
pub fn prune_cache(unused: Duration, dry_run: bool) -> Option<Pruned> {
    Some(prune(&cache_dir()?, unused, limit(), dry_run))
}

fn prune(dir: &Path, unused: Duration, limit: u64, dry_run: bool) -> Pruned {
    let (kept, abandoned) = files::list(dir, EXTENSIONS, 2);
    let mut left: u64 = kept.iter().map(|k| k.bytes).sum();
    let mut pruned = Pruned { entries: kept.len(), bytes: left, ..Pruned::default() };
    let old = |k: &files::Kept| k.used.elapsed().is_ok_and(|age| age > unused);
    let mut remove = |file: &files::Kept| {
        if dry_run || std::fs::remove_file(&file.path).is_ok() {
            pruned.removed += 1;
            pruned.removed_bytes += file.bytes;
        }
    };
    abandoned.iter().for_each(&mut remove);
    for file in &kept {
        if old(file) || left > limit {
            left -= file.bytes;
            remove(file);
        }
    }
    pruned
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
        let bytes = match files::read(&path, LARGEST) {
            Ok(bytes) => bytes,
            // Another user's may not be for us to read.
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => {
                return Lookup::Absent;
            }
            Err(_) => return Lookup::Corrupt,
        };
        match Entry::from_bytes(&bytes, key) {
            Some(entry) => {
                files::touch(&path);
                Lookup::Found(entry)
            }
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
        files::make_subfolder(&self.dir, folder)?;
        let bytes = entry.to_bytes(key);
        let mut file = tempfile::Builder::new().prefix(files::UNFINISHED).tempfile_in(folder)?;
        file.write_all(&bytes)?;
        files::share_like_folder(file.as_file(), folder)?;
        file.persist(&path).map_err(|e| e.error)?;
        self.keep_small(bytes.len() as u64);
        Ok(())
    }

    /// Looks at the directory's size with the first entry that this process writes, and then once in a while.
    fn keep_small(&self, written: u64) {
        static SINCE: AtomicU64 = AtomicU64::new(LOOK);
        if SINCE.fetch_add(written, Relaxed) >= LOOK {
            SINCE.store(0, Relaxed);
            files::evict(&self.dir, EXTENSIONS, 2, limit());
        }
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
        assert_eq!(of(&[("TILEWRIGHT_CACHE_DIR", "/a"), ("HOME", "/h")]), Some(("/a".into(), true)));
        assert_eq!(of(&[("XDG_CACHE_HOME", "/x"), ("HOME", "/h")]), Some(("/x/tilewright".into(), false)));
        assert_eq!(of(&[("XDG_CACHE_HOME", "x"), ("HOME", "/h")]), Some(("/h/.cache/tilewright".into(), false)));
        // In a place that all share each user has a name of his own.
        let shared = std::env::temp_dir().join(format!("tilewright-cache-{}", files::user()));
        assert_eq!(of(&[]), Some((shared, false)));
    }

    #[test]
    fn found_t15_the_cache_is_pruned_to_its_limit() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::at(dir.path());
        for i in 0..8 {
            store.save(&CacheKey([i; 32]), &entry()).unwrap();
        }
        let size = entry().to_bytes(&CacheKey([0; 32])).len() as u64;
        let month = Duration::from_secs(30 * 86_400);
        let dry = prune(dir.path(), month, 3 * size, true);
        assert_eq!(dry, Pruned { entries: 8, bytes: 8 * size, removed: 5, removed_bytes: 5 * size });
        assert_eq!(prune(dir.path(), month, 3 * size, false), dry);
        assert_eq!(prune(dir.path(), month, 3 * size, false).removed, 0);
        assert_eq!(prune(dir.path(), Duration::ZERO, u64::MAX, false).removed, 3);
    }

    #[cfg(unix)]
    #[test]
    fn found_t4_a_shared_cache_is_readable_by_its_group() {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        let dir = tempfile::tempdir().unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o777;
        let store = Store::at(dir.path().join("private"));
        store.save(&CacheKey([1; 32]), &entry()).unwrap();
        let path = store.path(&CacheKey([1; 32]));
        assert_eq!((mode(&store.dir), mode(path.parent().unwrap()), mode(&path)), (0o700, 0o700, 0o600));
        let shared = Store::at(dir.path().join("shared"));
        std::fs::create_dir(&shared.dir).unwrap();
        std::fs::set_permissions(&shared.dir, std::fs::Permissions::from_mode(0o770)).unwrap();
        shared.save(&CacheKey([1; 32]), &entry()).unwrap();
        let path = shared.path(&CacheKey([1; 32]));
        assert_eq!((mode(path.parent().unwrap()), mode(&path)), (0o770, 0o660));
    }

    #[cfg(unix)]
    #[test]
    fn found_t10_a_pipe_in_an_entrys_place_is_no_entry() {
        let dir = tempfile::tempdir().unwrap();
        let (store, key) = (Store::at(dir.path()), CacheKey([1; 32]));
        store.save(&key, &entry()).unwrap();
        std::fs::remove_file(store.path(&key)).unwrap();
        assert!(Command::new("mkfifo").arg(store.path(&key)).status().unwrap().success());
        assert!(matches!(store.load(&key), Lookup::Corrupt));
        store.save(&key, &entry()).unwrap();
        assert!(matches!(store.load(&key), Lookup::Found(_)));
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
