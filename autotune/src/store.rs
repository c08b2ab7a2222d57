//! The store: a directory with one JSON file for each record, shared by any number of processes without locks.
//!
//! A file's name ends in a revision. Whoever adds entries reads the newest revision, merges, and creates the next one under
//! a name that must not exist yet; if another process was faster, it starts over with that one's entries. So nothing is lost,
//! readers always see a whole file, and a process that dies holds nobody up. Older revisions are then removed.
//!
//! A file that is damaged is set aside under another name, with a message; the newest good revision counts.

use crate::record::{Conditions, Entry, Record, SCHEMA, Subject};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A directory of records.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Store {
    dir: PathBuf,
}

/// Why a record was not used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Aside {
    /// It is damaged; the file was renamed to this, if that was possible.
    Corrupt(PathBuf, Option<PathBuf>, String),
    /// It holds under other conditions.
    Stale(PathBuf, String),
    /// It is another program's: of another schema, or not what its name says.
    Foreign(PathBuf, String),
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
    /// in `~/.cache`, else a directory for temporary files.
    pub fn from_env() -> Self {
        Self::choose(|name| std::env::var_os(name).filter(|v| !v.is_empty()))
    }

    fn choose(var: impl Fn(&str) -> Option<OsString>) -> Self {
        let dir = var("TILEWRIGHT_AUTOTUNE_DIR")
            .map(PathBuf::from)
            // A relative XDG directory is to be ignored: XDG Base Directory Specification, "Environment variables".
            .or_else(|| {
                let xdg = var("XDG_CACHE_HOME").map(PathBuf::from).filter(|d| d.is_absolute());
                xdg.map(|d| d.join("tilewright/autotune"))
            })
            .or_else(|| var("HOME").map(|home| PathBuf::from(home).join(".cache/tilewright/autotune")))
            .unwrap_or_else(|| std::env::temp_dir().join("tilewright-autotune"));
        Self { dir }
    }

    /// A store in this directory, which need not exist yet.
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The record of a subject that holds under these conditions.
    pub fn load(&self, subject: &Subject, conditions: &Conditions) -> Found {
        let mut found = Found::default();
        let Some((path, record)) = self.newest(&subject.slug(), &mut found.aside) else { return found };
        if record.subject != *subject {
            found.aside.push(Aside::Foreign(path, "its content is not of the subject its name says".into()));
        } else if let Some(why) = record.conditions.difference(conditions) {
            found.aside.push(Aside::Stale(path, why));
        } else {
            found.record = Some(record);
        }
        found
    }

    /// Adds entries to the record of a subject, and gives the record as it then is. Entries under other conditions
    /// are dropped from it.
    ///
    /// # Errors
    /// What the file system says; the store is then as before.
    pub fn add(&self, subject: &Subject, conditions: &Conditions, entries: &[Entry]) -> io::Result<Record> {
        let slug = subject.slug();
        std::fs::create_dir_all(&self.dir)?;
        for _ in 0..ATTEMPTS {
            let revision = self.revisions(&slug).keys().next_back().copied().unwrap_or(0);
            let mut record = self
                .load(subject, conditions)
                .record
                .unwrap_or_else(|| Record::new(subject.clone(), conditions.clone()));
            record.merge(entries);
            let next = revision + 1;
            let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(&self.dir)?;
            serde_json::to_writer_pretty(&mut file, &record)?;
            file.write_all(b"\n")?;
            file.as_file().sync_data()?;
            match file.persist_noclobber(self.path(&slug, next)) {
                Ok(_) => {}
                Err(e) if e.error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(e) => return Err(e.error),
            }
            let now = self.revisions(&slug);
            if now.keys().next_back() == Some(&next) || self.contains(&slug, subject, conditions, entries) {
                for (_, path) in now.range(..next) {
                    // Whoever meets it passes it over for the newer one.
                    let _ = std::fs::remove_file(path);
                }
                return Ok(record);
            }
            // Others had gone on and removed the revision this one was made from: it is not the newest, and
            // the newest may not have these entries.
            let _ = std::fs::remove_file(self.path(&slug, next));
        }
        Err(io::Error::other(format!("other processes kept writing {slug}")))
    }

    /// Does the newest revision have all these entries, or later ones?
    fn contains(&self, slug: &str, subject: &Subject, conditions: &Conditions, entries: &[Entry]) -> bool {
        let Some((_, newest)) = self.newest(slug, &mut Vec::new()) else { return false };
        let mut merged = newest.clone();
        merged.merge(entries);
        newest.subject == *subject && newest.conditions == *conditions && merged == newest
    }

    /// Every record that can be read, with its path, and what was passed over.
    pub fn all(&self) -> (Vec<(PathBuf, Record)>, Vec<Aside>) {
        let mut slugs: Vec<String> = Vec::new();
        if let Ok(dir) = std::fs::read_dir(&self.dir) {
            let names = dir.filter_map(|e| e.ok()?.file_name().into_string().ok());
            slugs = names.filter_map(|n| Some(split(&n)?.0.to_owned())).collect();
        }
        slugs.sort();
        slugs.dedup();
        let mut aside = Vec::new();
        let all = slugs.iter().filter_map(|slug| {
            let (path, record) = self.newest(slug, &mut aside)?;
            if record.subject.slug() == *slug {
                return Some((path, record));
            }
            aside.push(Aside::Foreign(path, "its content is not of the subject its name says".into()));
            None
        });
        let all = all.collect();
        (all, aside)
    }

    /// Takes a record out of another store or an export: its entries are added if it holds under the same conditions as what is
    /// there, or nothing is there.
    ///
    /// # Errors
    /// What the file system says.
    pub fn import(&self, record: &Record) -> io::Result<bool> {
        let present = self.newest(&record.subject.slug(), &mut Vec::new());
        if present.is_some_and(|(_, r)| r.conditions != record.conditions) {
            return Ok(false);
        }
        self.add(&record.subject, &record.conditions, &record.entries)?;
        Ok(true)
    }

    /// Removes every revision of a record.
    ///
    /// # Errors
    /// What the file system says.
    pub fn remove(&self, subject: &Subject) -> io::Result<()> {
        self.revisions(&subject.slug()).values().try_for_each(std::fs::remove_file)
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

    /// The newest revision that can be read.
    fn newest(&self, slug: &str, aside: &mut Vec<Aside>) -> Option<(PathBuf, Record)> {
        for _ in 0..ATTEMPTS {
            let mut vanished = false;
            for (_, path) in self.revisions(slug).into_iter().rev() {
                let bytes = match std::fs::read(&path) {
                    Ok(bytes) => bytes,
                    // Somebody has written a newer one and removed this.
                    Err(e) if e.kind() == io::ErrorKind::NotFound => {
                        vanished = true;
                        break;
                    }
                    Err(e) => {
                        aside.push(Aside::Foreign(path, e.to_string()));
                        continue;
                    }
                };
                match parse(&bytes) {
                    Ok(record) => return Some((path, record)),
                    Err(Bad::Foreign(why)) => aside.push(Aside::Foreign(path, why)),
                    Err(Bad::Corrupt(why)) => {
                        let to = path.with_extension("corrupt");
                        let moved = std::fs::rename(&path, &to).is_ok();
                        aside.push(Aside::Corrupt(path, moved.then_some(to), why));
                    }
                }
            }
            if !vanished {
                return None;
            }
        }
        None
    }
}

/// The record in the bytes of a file.
///
/// # Errors
/// Why it is none.
pub fn parse_record(bytes: &[u8]) -> Result<Record, String> {
    parse(bytes).map_err(|bad| match bad {
        Bad::Corrupt(why) | Bad::Foreign(why) => why,
    })
}

enum Bad {
    Corrupt(String),
    Foreign(String),
}

fn parse(bytes: &[u8]) -> Result<Record, Bad> {
    let json: serde_json::Value = serde_json::from_slice(bytes).map_err(|e| Bad::Corrupt(e.to_string()))?;
    match json.get("schema").and_then(serde_json::Value::as_u64) {
        Some(n) if n == u64::from(SCHEMA) => serde_json::from_value(json).map_err(|e| Bad::Corrupt(e.to_string())),
        Some(n) => Err(Bad::Foreign(format!("its schema is {n}, this program's is {SCHEMA}"))),
        None => Err(Bad::Corrupt("it has no schema number".into())),
    }
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
        store.remove(&s).unwrap();
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
