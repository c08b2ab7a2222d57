//! The store: a directory with one JSON file for each record, shared by any number of processes without locks.
//!
//! A file's name ends in a revision. Whoever adds entries reads the revisions there are, merges those of its subject and
//! conditions, and creates the next one under a name that must not exist yet; if another process was faster, it starts over with that
//! one's entries. So nothing is lost, readers always see a whole file, and a process that dies holds nobody up. Then the
//! revisions that were merged are removed, and no others: what could not be read, or holds under other conditions, or is of another
//! schema, is somebody else's.
//!
//! A file that is damaged is set aside under another name, with a message; the newest good revision counts.

use crate::config::Config;
use crate::record::{Conditions, Entry, Record, SCHEMA, Subject};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tilewright_runtime::files;

/// A directory of records.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Store {
    dir: PathBuf,
    /// Did somebody name it, who knows with whom it is shared?
    named: bool,
}

/// Most bytes of one record: an entry has some hundred, a space at most a million configurations.
const LARGEST: u64 = 64 << 20;
/// Most bytes of all records unless `TILEWRIGHT_AUTOTUNE_LIMIT` says otherwise.
const LIMIT: u64 = 256 << 20;

/// Why a record was not used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Aside {
    /// It is damaged; the file was renamed to this, if that was possible.
    Corrupt(PathBuf, Option<PathBuf>, String),
    /// It holds under other conditions.
    Stale(PathBuf, String),
    /// It is another program's or user's: of another schema, not what its name says, or not to be read.
    Foreign(PathBuf, String),
    /// Entries in it can be no measurements.
    Implausible(PathBuf, String),
}

impl std::fmt::Display for Aside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Aside::Corrupt(path, Some(to), why) => {
                write!(f, "{} is damaged ({why}); set aside as {}", path.display(), to.display())
            }
            Aside::Corrupt(path, None, why) => write!(f, "{} is damaged ({why}); passed over", path.display()),
            Aside::Stale(path, why) => write!(f, "{} is stale: {why}", path.display()),
            Aside::Foreign(path, why) => write!(f, "{} is foreign ({why}); passed over", path.display()),
            Aside::Implausible(path, why) => write!(f, "in {} an entry is not believed: {why}", path.display()),
        }
    }
}

/// A record that was looked for, and what was passed over on the way.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The record, valid under the conditions given.
    pub record: Option<Record>,
    /// What was passed over.
    pub aside: Vec<Aside>,
}

/// How often a reader or a writer starts over because others were faster. Every time somebody else has got on, so
/// this many is out of reach for any real number of processes.
const ATTEMPTS: usize = 1000;

impl Store {
    /// The store that the environment names: `TILEWRIGHT_AUTOTUNE_DIR`, else `tilewright/autotune` in `XDG_CACHE_HOME`, else
    /// in `~/.cache`, else a directory of this user among those for temporary files.
    pub fn from_env() -> Self {
        Self::choose(|name| std::env::var_os(name).filter(|v| !v.is_empty()))
    }

    fn choose(var: impl Fn(&str) -> Option<OsString>) -> Self {
        if let Some(dir) = var("TILEWRIGHT_AUTOTUNE_DIR") {
            return Self::at(dir);
        }
        // A relative XDG directory is to be ignored: XDG Base Directory Specification, "Environment variables".
        let xdg = var("XDG_CACHE_HOME").map(PathBuf::from).filter(|d| d.is_absolute());
        let dir = xdg
            .map(|d| d.join("tilewright/autotune"))
            .or_else(|| var("HOME").map(|home| PathBuf::from(home).join(".cache/tilewright/autotune")))
            .unwrap_or_else(|| std::env::temp_dir().join(format!("tilewright-autotune-{}", files::user())));
        Self { dir, named: false }
    }

    /// A store in this directory, which need not exist yet, and may be shared with whom its rights say.
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into(), named: true }
    }

    /// A store in a directory for temporary files, of this user alone: what is there of another's is not used.
    pub fn temporary(name: &str) -> Self {
        Self { dir: std::env::temp_dir().join(format!("{name}-{}", files::user())), named: false }
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// May what is in the directory be used, and new things be put there?
    fn check(&self) -> io::Result<()> {
        if self.named { Ok(()) } else { files::check_owner(&self.dir) }
    }

    /// The record of a subject that holds under these conditions.
    pub fn load(&self, subject: &Subject, conditions: &Conditions) -> Found {
        let mut found = Found::default();
        let all = self.read(&subject.slug(), &mut found.aside);
        let mut stale = None;
        for (path, record) in all.into_iter().rev() {
            if record.subject != *subject {
                found.aside.push(Aside::Foreign(path, "its content is not of the subject its name says".into()));
            } else if let Some(why) = record.conditions.difference(conditions) {
                stale.get_or_insert(Aside::Stale(path, why));
            } else {
                files::touch(&path);
                found.record = Some(record);
                return found;
            }
        }
        found.aside.extend(stale);
        found
    }

    /// Adds entries to the record of a subject under these conditions, and gives the record as it then is.
    ///
    /// # Errors
    /// What the file system says; the store is then as before.
    pub fn add(&self, subject: &Subject, conditions: &Conditions, entries: &[Entry]) -> io::Result<Record> {
        self.write(subject, conditions, &|record| record.merge(entries))
    }

    /// Takes configurations out of a record.
    ///
    /// # Errors
    /// What the file system says; the store is then as before.
    pub fn take_out(&self, record: &Record, configs: &[Config]) -> io::Result<Record> {
        self.write(&record.subject, &record.conditions, &|r| r.entries.retain(|e| !configs.contains(&e.config)))
    }

    fn write(&self, subject: &Subject, conditions: &Conditions, change: &dyn Fn(&mut Record)) -> io::Result<Record> {
        let slug = subject.slug();
        self.check()?;
        files::make_folder(&self.dir)?;
        for _ in 0..ATTEMPTS {
            let revision = self.revisions(&slug).keys().next_back().copied().unwrap_or(0);
            let mut record = Record::new(subject.clone(), conditions.clone());
            let merged = self.own(&slug, subject, conditions);
            merged.iter().for_each(|(_, r)| record.merge(&r.entries));
            change(&mut record);
            let next =
                revision.checked_add(1).ok_or_else(|| io::Error::other(format!("{slug} has no next revision")))?;
            let mut file = tempfile::Builder::new().prefix(files::UNFINISHED).tempfile_in(&self.dir)?;
            serde_json::to_writer_pretty(&mut file, &record)?;
            file.write_all(b"\n")?;
            files::share_like_folder(file.as_file(), &self.dir)?;
            file.as_file().sync_data()?;
            let path = self.path(&slug, next);
            match file.persist_noclobber(&path) {
                Ok(_) => {}
                Err(e) if e.error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(e) => return Err(e.error),
            }
            // The newest that this process can read under these conditions.
            let newest = self.own(&slug, subject, conditions).pop();
            let holds = newest.as_ref().is_some_and(|(newest, r)| {
                let mut again = r.clone();
                change(&mut again);
                *newest == path || again == *r
            });
            if holds {
                for (old, _) in merged.iter().filter(|(old, _)| *old != path) {
                    // Whoever meets it passes it over for the newer one.
                    let _ = std::fs::remove_file(old);
                }
                self.keep_small();
                return Ok(record);
            }
            // Others had gone on and removed the revision this one was made from: it is not the newest, and
            // the newest may not have these entries.
            let _ = std::fs::remove_file(&path);
        }
        Err(io::Error::other(format!("other processes kept writing {slug}")))
    }

    /// The revisions of a subject under conditions that can be read, oldest first.
    fn own(&self, slug: &str, subject: &Subject, conditions: &Conditions) -> Vec<(PathBuf, Record)> {
        let mut all = self.read(slug, &mut Vec::new());
        all.retain(|(_, r)| r.subject == *subject && r.conditions == *conditions);
        all
    }

    /// Once for each process: no more records than the limit, those used least recently first, and nothing that a process left
    /// unfinished.
    fn keep_small(&self) {
        static LOOKED: AtomicBool = AtomicBool::new(false);
        if !LOOKED.swap(true, Relaxed) {
            self.evict(limit());
        }
    }

    /// Removes the least recently used records beyond so many bytes, and what processes that died left unfinished. Gives the
    /// number of files.
    pub fn evict(&self, bytes: u64) -> usize {
        files::evict(&self.dir, &["json", "corrupt"], 0, bytes).0
    }

    /// Every record that can be read, with its path (of several revisions under the same conditions the newest), and what was
    /// passed over.
    pub fn all(&self) -> (Vec<(PathBuf, Record)>, Vec<Aside>) {
        let mut slugs: Vec<String> = Vec::new();
        if let Ok(dir) = std::fs::read_dir(&self.dir) {
            let names = dir.filter_map(|e| e.ok()?.file_name().into_string().ok());
            slugs = names.filter_map(|n| Some(split(&n)?.0.to_owned())).collect();
        }
        slugs.sort();
        slugs.dedup();
        let (mut all, mut aside) = (Vec::<(PathBuf, Record)>::new(), Vec::new());
        for slug in &slugs {
            let first = all.len();
            for (path, record) in self.read(slug, &mut aside).into_iter().rev() {
                if record.subject.slug() != *slug {
                    let why = "its content is not of the subject its name says".into();
                    aside.push(Aside::Foreign(path, why));
                } else if all[first..].iter().all(|(_, r)| r.conditions != record.conditions) {
                    all.push((path, record));
                }
            }
        }
        (all, aside)
    }

    /// Takes a record out of another store or an export. Its entries are marked as imported: they are the first to be tried, and
    /// used once they were measured here. What can be no measurement is left out.
    ///
    /// # Errors
    /// What the file system says.
    pub fn import(&self, record: &Record) -> io::Result<bool> {
        let present = self.read(&record.subject.slug(), &mut Vec::new()).pop();
        if present.is_some_and(|(_, r)| r.conditions != record.conditions) {
            return Ok(false);
        }
        let mut record = record.clone();
        record.take_implausible();
        record.entries.iter_mut().for_each(|e| e.imported = true);
        self.add(&record.subject, &record.conditions, &record.entries)?;
        Ok(true)
    }

    /// Removes the files of a record: the revisions of its subject under its conditions.
    ///
    /// # Errors
    /// What the file system says.
    pub fn remove(&self, record: &Record) -> io::Result<()> {
        let slug = record.subject.slug();
        self.own(&slug, &record.subject, &record.conditions).iter().try_for_each(|(path, _)| std::fs::remove_file(path))
    }

    /// Files set aside because they were damaged.
    pub fn damaged(&self) -> Vec<PathBuf> {
        let Ok(dir) = std::fs::read_dir(&self.dir) else { return Vec::new() };
        let mut all: Vec<_> = dir.filter_map(|e| Some(e.ok()?.path())).collect();
        all.retain(|p| p.extension().is_some_and(|e| e == "corrupt"));
        all.sort();
        all
    }

    fn path(&self, slug: &str, revision: u64) -> PathBuf {
        self.dir.join(format!("{slug}.r{revision}.json"))
    }

    fn revisions(&self, slug: &str) -> BTreeMap<u64, PathBuf> {
        let Ok(dir) = std::fs::read_dir(&self.dir) else { return BTreeMap::new() };
        let entries = dir.filter_map(|e| {
            let path = e.ok()?.path();
            let (s, revision) = split(path.file_name()?.to_str()?)?;
            (s == slug).then_some(()).map(|()| (revision, path.clone()))
        });
        entries.collect()
    }

    /// The revisions that can be read, oldest first.
    fn read(&self, slug: &str, aside: &mut Vec<Aside>) -> Vec<(PathBuf, Record)> {
        if let Err(e) = self.check() {
            aside.push(Aside::Foreign(self.dir.clone(), e.to_string()));
            return Vec::new();
        }
        for _ in 0..ATTEMPTS {
            let (mut all, mut passed, mut vanished) = (Vec::new(), Vec::new(), false);
            for (_, path) in self.revisions(slug) {
                let bytes = match files::read(&path, LARGEST) {
                    Ok(bytes) => bytes,
                    // Somebody has written a newer one and removed this.
                    Err(e) if e.kind() == io::ErrorKind::NotFound => {
                        vanished = true;
                        break;
                    }
                    Err(e) => {
                        passed.push(Aside::Foreign(path, e.to_string()));
                        continue;
                    }
                };
                match parse(&bytes) {
                    Ok((record, doubts)) => {
                        passed.extend(doubts.into_iter().map(|d| Aside::Implausible(path.clone(), d)));
                        all.push((path, record));
                    }
                    Err(Bad::Foreign(why)) => passed.push(Aside::Foreign(path, why)),
                    Err(Bad::Corrupt(why)) => {
                        let to = path.with_extension("corrupt");
                        let moved = std::fs::rename(&path, &to).is_ok();
                        passed.push(Aside::Corrupt(path, moved.then_some(to), why));
                    }
                }
            }
            if !vanished {
                aside.extend(passed);
                return all;
            }
        }
        Vec::new()
    }
}

fn limit() -> u64 {
    let text = std::env::var("TILEWRIGHT_AUTOTUNE_LIMIT").ok();
    text.and_then(|t| files::bytes_of(&t)).unwrap_or(LIMIT)
}

/// The record in the bytes of a file.
///
/// # Errors
/// Why it is none.
pub fn parse_record(bytes: &[u8]) -> Result<Record, String> {
    parse(bytes).map(|(record, _)| record).map_err(|bad| match bad {
        Bad::Corrupt(why) | Bad::Foreign(why) => why,
    })
}

enum Bad {
    Corrupt(String),
    Foreign(String),
}

/// The record, without what can be no measurement, and why that is not believed.
fn parse(bytes: &[u8]) -> Result<(Record, Vec<String>), Bad> {
    let json: serde_json::Value = serde_json::from_slice(bytes).map_err(|e| Bad::Corrupt(e.to_string()))?;
    match json.get("schema").and_then(serde_json::Value::as_u64) {
        Some(n) if n == u64::from(SCHEMA) => {}
        Some(n) => return Err(Bad::Foreign(format!("its schema is {n}, this program's is {SCHEMA}"))),
        None => return Err(Bad::Corrupt("it has no schema number".into())),
    }
    let by = json.pointer("/conditions/tilewright").and_then(serde_json::Value::as_str).map(str::to_owned);
    let mut record: Record = serde_json::from_value(json).map_err(|e| match by {
        // Another version may know more words.
        Some(by) if by != env!("CARGO_PKG_VERSION") => Bad::Foreign(format!("it is of version {by}: {e}")),
        _ => Bad::Corrupt(e.to_string()),
    })?;
    // One entry for each configuration, in order, whoever wrote it.
    let entries = std::mem::take(&mut record.entries);
    record.merge(&entries);
    let doubts = record.take_implausible().into_iter().map(|(config, why)| format!("{config}: {why}"));
    Ok((record, doubts.collect()))
}

/// Slug and revision of a file's name.
fn split(name: &str) -> Option<(&str, u64)> {
    let (slug, revision) = name.strip_suffix(".json")?.rsplit_once(".r")?;
    Some((slug, revision.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::{conditions, measured, subject};
    use std::process::{Command, Stdio};

    #[test]
    fn the_environment_chooses_the_directory() {
        let of = |vars: &[(&str, &str)]| {
            Store::choose(|n| vars.iter().find(|(k, _)| *k == n).map(|(_, v)| OsString::from(v))).dir
        };
        assert_eq!(of(&[("TILEWRIGHT_AUTOTUNE_DIR", "/a"), ("HOME", "/h")]), PathBuf::from("/a"));
        assert_eq!(of(&[("XDG_CACHE_HOME", "/x")]), PathBuf::from("/x/tilewright/autotune"));
        assert_eq!(of(&[("XDG_CACHE_HOME", "x"), ("HOME", "/h")]), PathBuf::from("/h/.cache/tilewright/autotune"));
        assert!(of(&[]).ends_with(format!("tilewright-autotune-{}", files::user())));
    }

    #[test]
    fn entries_are_added_and_one_file_stays() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::at(dir.path().join("new"));
        let (s, c) = (subject("k"), conditions());
        assert!(store.load(&s, &c).record.is_none());
        store.add(&s, &c, &[measured(1, 2.0, 1)]).unwrap();
        let r = store.add(&s, &c, &[measured(2, 1.0, 1)]).unwrap();
        assert_eq!(store.load(&s, &c).record.as_ref(), Some(&r));
        assert_eq!(r.entries.len(), 2);
        assert_eq!(std::fs::read_dir(store.dir()).unwrap().count(), 1);
        assert_eq!(store.all().0.len(), 1);
        store.remove(&r).unwrap();
        assert!(store.all().0.is_empty());
    }

    #[test]
    fn damaged_stale_and_foreign_records_are_set_aside() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::at(dir.path());
        let (s, c) = (subject("k"), conditions());
        store.add(&s, &c, &[measured(1, 2.0, 1)]).unwrap();
        let path = store.path(&s.slug(), 1);
        let good = std::fs::read(&path).unwrap();
        for damage in [&good[..good.len() / 2], &b""[..], b"{}", b"\xff\xfe"] {
            std::fs::write(&path, damage).unwrap();
            let found = store.load(&s, &c);
            assert!(found.record.is_none());
            assert!(matches!(&found.aside[..], [Aside::Corrupt(_, Some(_), _)]), "{:?}", found.aside);
            assert_eq!(store.damaged().len(), 1);
            assert!(store.load(&s, &c).aside.is_empty(), "told once");
        }
        // A damaged newest revision leaves the one before it.
        std::fs::write(&path, &good).unwrap();
        std::fs::write(store.path(&s.slug(), 2), &good[..9]).unwrap();
        assert!(store.load(&s, &c).record.is_some());

        let other = Conditions { driver: "newer".into(), ..c.clone() };
        assert!(matches!(&store.load(&s, &other).aside[..], [Aside::Stale(_, why)] if why.contains("the driver")));
        let newer = String::from_utf8(good.clone()).unwrap().replacen("\"schema\": 1", "\"schema\": 99", 1);
        std::fs::write(&path, newer).unwrap();
        assert!(matches!(&store.load(&s, &c).aside[..], [Aside::Foreign(_, why)] if why.contains("99")));
        assert!(path.exists(), "a newer program's record is left alone");
        std::fs::rename(&path, store.path(&subject("other").slug(), 1)).unwrap();
        std::fs::write(store.path(&subject("other").slug(), 1), &good).unwrap();
        assert!(matches!(&store.load(&subject("other"), &c).aside[..], [Aside::Foreign(..)]));
        // After all that the store still takes entries; stale ones are replaced.
        std::fs::write(&path, &good).unwrap();
        let r = store.add(&s, &other, &[measured(5, 1.0, 1)]).unwrap();
        assert_eq!((r.entries.len(), &r.conditions), (1, &other));
        // Both are there, each for who it holds for.
        assert_eq!(store.load(&s, &c).record.unwrap().entries.len(), 1);
        assert_eq!(store.all().0.len(), 2);
        store.remove(&r).unwrap();
        assert_eq!(store.all().0.len(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn found_t4_and_t5_what_was_not_merged_is_not_removed() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let store = Store::at(dir.path());
        let (s, c) = (subject("k"), conditions());
        store.add(&s, &c, &[measured(1, 2.0, 1)]).unwrap();
        // Another user's revision that this one cannot read: a pipe, for the system's user reads every file.
        let unreadable = store.path(&s.slug(), 7);
        assert!(Command::new("mkfifo").arg(&unreadable).status().unwrap().success());
        let future = store.path(&s.slug(), 9);
        std::fs::write(&future, r#"{"schema": 99, "new": "words"}"#).unwrap();
        let newer = store.path(&s.slug(), 10);
        std::fs::write(&newer, r#"{"schema": 1, "conditions": {"tilewright": "99.0.0"}, "entries": "otherwise"}"#)
            .unwrap();
        let r = store.add(&s, &c, &[measured(2, 1.0, 1)]).unwrap();
        assert_eq!(r.entries.len(), 2, "what could be read is merged");
        let found = store.load(&s, &c);
        assert_eq!((found.record, found.aside.len()), (Some(r), 3));
        assert!(unreadable.exists() && future.exists() && newer.exists());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 4);
        // Readable by whom the folder is for.
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o770)).unwrap();
        store.add(&s, &c, &[measured(3, 1.0, 1)]).unwrap();
        let mode = |p: &Path| std::fs::metadata(p).unwrap().permissions().mode() & 0o777;
        let newest = store.revisions(&s.slug()).into_values().next_back().unwrap();
        assert_eq!(mode(&newest), 0o660);
        let own = Store::at(dir.path().join("own"));
        own.add(&s, &c, &[measured(3, 1.0, 1)]).unwrap();
        assert_eq!((mode(own.dir()), mode(&own.path(&s.slug(), 1))), (0o700, 0o600));
    }

    #[test]
    fn found_t6_a_record_of_the_future_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::at(dir.path());
        let (s, c) = (subject("k"), conditions());
        let mut record = Record::new(s.clone(), c.clone());
        record.merge(&[measured(1, 1.0, 4_102_444_800_000), measured(2, 5.0, 7)]);
        std::fs::write(store.path(&s.slug(), 1), serde_json::to_vec(&record).unwrap()).unwrap();
        let found = store.load(&s, &c);
        assert_eq!(found.record.unwrap().entries.len(), 1);
        assert!(found.aside[0].to_string().contains("not believed: block=1 warps=4 stages=1: it is dated 2100"));
        let r = store.add(&s, &c, &[measured(1, 3.0, 8)]).unwrap();
        assert_eq!(r.entries[0].median(), Some(3.0));
    }

    #[cfg(unix)]
    #[test]
    fn found_t8_a_folder_that_anybody_may_write_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let (s, c) = (subject("k"), conditions());
        let open = Store { dir: dir.path().join("x"), named: false };
        open.add(&s, &c, &[measured(1, 2.0, 1)]).unwrap();
        std::fs::set_permissions(open.dir(), std::fs::Permissions::from_mode(0o777)).unwrap();
        let found = open.load(&s, &c);
        assert!(found.record.is_none() && found.aside[0].to_string().contains("can be written by anybody"));
        assert!(open.add(&s, &c, &[measured(1, 2.0, 1)]).is_err());
        // Who names it has chosen so.
        assert!(Store::at(open.dir()).load(&s, &c).record.is_some());
    }

    #[test]
    fn found_t15_records_are_limited_and_left_over_files_go() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::at(dir.path());
        for i in 0..10 {
            store.add(&subject(&format!("k{i}")), &conditions(), &[measured(1, 2.0, 1)]).unwrap();
        }
        let left = dir.path().join(".new-x");
        std::fs::write(&left, "half").unwrap();
        let old = std::time::SystemTime::now() - std::time::Duration::from_secs(1 << 20);
        std::fs::File::options().write(true).open(&left).unwrap().set_modified(old).unwrap();
        assert_eq!(store.evict(LIMIT), 1);
        assert!(!left.exists() && store.all().0.len() == 10);
        let size = std::fs::metadata(store.path(&subject("k0").slug(), 1)).unwrap().len();
        assert!(store.evict(5 * size) >= 5 && !store.all().0.is_empty());
    }

    #[test]
    fn an_unwritable_place_is_an_error_of_add_alone() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "").unwrap();
        let store = Store::at(file.join("below"));
        assert!(store.add(&subject("k"), &conditions(), &[measured(1, 1.0, 1)]).is_err());
        assert!(store.load(&subject("k"), &conditions()).record.is_none());
    }

    fn hammer(store: &Store, who: i64) {
        for i in 0..12 {
            store.add(&subject("k"), &conditions(), &[measured(who * 1000 + i, 1.0, 1)]).unwrap();
        }
    }

    /// Run by `eight_processes_lose_nothing` in processes of their own; alone it does nothing.
    #[test]
    fn child_process_adds() {
        if let (Some(dir), Ok(who)) = (std::env::var_os("TILEWRIGHT_TEST_ADD"), std::env::var("TILEWRIGHT_TEST_WHO")) {
            hammer(&Store::at(dir), who.parse().unwrap());
        }
    }

    #[test]
    fn eight_processes_lose_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let children: Vec<_> = (0..8)
            .map(|who| {
                Command::new(std::env::current_exe().unwrap())
                    .args(["--exact", "store::tests::child_process_adds"])
                    .env("TILEWRIGHT_TEST_ADD", dir.path())
                    .env("TILEWRIGHT_TEST_WHO", who.to_string())
                    .stdout(Stdio::piped())
                    .spawn()
                    .unwrap()
            })
            .collect();
        for child in children {
            let out = child.wait_with_output().unwrap();
            let text = String::from_utf8_lossy(&out.stdout);
            assert!(out.status.success() && text.contains("1 passed"), "{text}");
        }
        let found = Store::at(dir.path()).load(&subject("k"), &conditions());
        assert_eq!(found.record.unwrap().entries.len(), 8 * 12);
        assert!(found.aside.is_empty());
        let files: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert!(files.len() <= 2, "old revisions are removed: {files:?}");
    }
}
