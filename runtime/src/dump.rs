//! Every stage of a kernel, written to files for people to read.
//!
//! `TILEWRIGHT_DUMP=DIR` writes each kernel variant compiled to a folder of its own in `DIR`;
//! `TILEWRIGHT_DUMP_FILTER=TEXT` only those whose name contains the text. While dumping, the cache on disk is not read, so
//! that every stage happens.

use std::fmt::Display;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Where the stages of one kernel go.
#[derive(Debug)]
pub(crate) struct Dump {
    dir: PathBuf,
    stage: u32,
}

impl Dump {
    /// The dump that the environment asks for, if it does for this kernel.
    pub fn from_env(kernel: &str, device: &str) -> Option<Dump> {
        let dir = std::env::var_os("TILEWRIGHT_DUMP").filter(|d| !d.is_empty())?;
        let filter = std::env::var("TILEWRIGHT_DUMP_FILTER").unwrap_or_default();
        kernel.contains(&filter).then(|| Dump::new(dir.into(), kernel, device))
    }

    fn new(dir: PathBuf, kernel: &str, device: &str) -> Dump {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Relaxed);
        // The process id keeps processes that dump to one directory apart.
        let name = format!("{kernel}-{}-{}-{number:03}", device.replace(':', ""), std::process::id());
        Dump { dir: dir.join(name), stage: 0 }
    }

    /// Writes one stage as `NN-name`. A dump that cannot be written says so on the standard error and stops nothing.
    pub fn write(&mut self, name: &str, text: impl Display) {
        let path = self.dir.join(format!("{:02}-{name}", self.stage));
        self.stage += 1;
        let result = std::fs::create_dir_all(&self.dir).and_then(|()| std::fs::write(&path, text.to_string()));
        if let Err(e) = result {
            eprintln!("tilewright: cannot write the dump {}: {e}", path.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_numbered_files_in_a_folder_for_each_kernel() {
        let dir = tempfile::tempdir().unwrap();
        let mut dump = Dump::new(dir.path().into(), "k", "cuda:0");
        dump.write("tile.txt", "a");
        dump.write("code.ptx", "b");
        assert_eq!(std::fs::read_to_string(dump.dir.join("01-code.ptx")).unwrap(), "b");
        assert_ne!(Dump::new(dir.path().into(), "k", "cuda:0").dir, dump.dir);
    }

    #[test]
    fn an_unwritable_directory_stops_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        std::fs::write(&file, "").unwrap();
        Dump::new(file.clone(), "k", "cpu").write("x", "y");
        assert_eq!(std::fs::read_to_string(file).unwrap(), "");
    }
}
