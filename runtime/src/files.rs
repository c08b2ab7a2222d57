//! Files of caches: read only if they are what a cache writes, kept in folders that only their owner can change.
//!
//! What is read here may have been left by anybody: a file is regular and of bounded size before a byte of it is read, and a
//! folder that nobody chose by name belongs to this user alone, for whoever can write to it decides what code runs.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Reads a whole file, if it is a regular one of at most `most` bytes. Never waits for a pipe's other end.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] for what is no regular file or too large; what the file system says.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        // A pipe without a writer would be waited for.
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32);
    }
    let file = options.open(path)?;
    let found = file.metadata()?;
    let refuse = |why: String| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    if !found.is_file() {
        return refuse("it is no regular file".into());
    }
    if found.len() > most {
        return refuse(format!("it has {} bytes, more than the {most} that are read", found.len()));
    }
    let mut bytes = Vec::with_capacity(found.len() as usize);
    // It may grow while it is read.
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { refuse(format!("it has more than {most} bytes")) } else { Ok(bytes) }
}

/// Makes a folder, with those above it, for this user alone. One that exists stays as it is.
///
/// # Errors
/// What the file system says.
pub fn make_folder(path: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Makes a folder inside one that need not exist yet, with the rights of that.
///
/// # Errors
/// What the file system says.
pub fn make_subfolder(root: &Path, folder: &Path) -> io::Result<()> {
    make_folder(root)?;
    match std::fs::create_dir(folder) {
        Ok(()) => {}
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        Err(e) => return Err(e),
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        let mode = std::fs::metadata(root)?.mode() & 0o3777;
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(mode))?;
    }
    Ok(())
}

/// Does a folder belong to this user (or to the system's), so that nobody else has put things in it? One that does not exist
/// does.
///
/// # Errors
/// [`io::ErrorKind::PermissionDenied`], with what to do, if it is another user's, or anybody may write to it.
#[cfg(unix)]
pub fn check_owner(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let found = match std::fs::metadata(path) {
        Ok(found) => found,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(e),
    };
    let me = rustix::process::geteuid().as_raw();
    let refuse = |why: String| {
        let message = format!(
            "{} {why}: what is in it may be another's; name a folder of yours, or remove this one",
            path.display()
        );
        Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
    };
    if found.uid() != me && found.uid() != 0 {
        return refuse(format!("belongs to user {}", found.uid()));
    }
    if found.mode() & 0o002 != 0 {
        return refuse("can be written by anybody".into());
    }
    Ok(())
}

/// Does a folder belong to this user? Where users have no numbers the file system's own rights decide.
///
/// # Errors
/// None here.
#[cfg(not(unix))]
pub fn check_owner(_: &Path) -> io::Result<()> {
    Ok(())
}

/// A part of a name that tells users apart, for folders in places that all share.
pub fn user() -> String {
    #[cfg(unix)]
    return rustix::process::geteuid().as_raw().to_string();
    #[cfg(not(unix))]
    return std::env::var("USERNAME").unwrap_or_else(|_| "user".into());
}

/// Gives a new file the rights that its folder's say: readable by the group if the folder is the group's, and so on.
///
/// # Errors
/// What the file system says.
pub fn share_like_folder(file: &File, folder: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        let mode = std::fs::metadata(folder)?.mode() & 0o666;
        file.set_permissions(std::fs::Permissions::from_mode(mode | 0o600))?;
    }
    #[cfg(not(unix))]
    let _ = (file, folder);
    Ok(())
}

/// Before a file of a cache is written under its own name it has this prefix; what a process that died left has it for ever.
pub const UNFINISHED: &str = ".new-";
/// How old an unfinished file is before nobody can be writing to it any more.
const ABANDONED: Duration = Duration::from_secs(3600);
/// A file's time of last use is written no more often than this.
const STAMP: Duration = Duration::from_secs(3600);

/// Notes that a file was used now, so that it is not among those that are removed first.
pub fn touch(path: &Path) {
    let now = SystemTime::now();
    let old = |m: Metadata| m.modified().is_ok_and(|t| now.duration_since(t).is_ok_and(|age| age > STAMP));
    if std::fs::metadata(path).is_ok_and(old) {
        // Of another user's file the time cannot be set: then its owner's use counts.
        let _ = File::options().write(true).open(path).and_then(|f| f.set_modified(now));
    }
}

/// A file of a cache.
#[derive(Debug)]
pub struct Kept {
    /// Where.
    pub path: std::path::PathBuf,
    /// Bytes.
    pub bytes: u64,
    /// When it was used last.
    pub used: SystemTime,
}

/// The regular files with one of these extensions in a folder and, `depth` levels down, in those inside it, used least recently
/// first; and unfinished files that nobody can be writing to. Links are not followed.
pub fn list(folder: &Path, extensions: &[&str], depth: usize) -> (Vec<Kept>, Vec<Kept>) {
    let (mut kept, mut abandoned) = (Vec::new(), Vec::new());
    collect(folder, extensions, depth, &mut kept, &mut abandoned);
    kept.sort_by(|a: &Kept, b: &Kept| a.used.cmp(&b.used).then_with(|| a.path.cmp(&b.path)));
    (kept, abandoned)
}

fn collect(folder: &Path, extensions: &[&str], depth: usize, kept: &mut Vec<Kept>, abandoned: &mut Vec<Kept>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let (path, Ok(found)) = (entry.path(), entry.metadata()) else { continue };
        if found.is_dir() && depth > 0 {
            collect(&path, extensions, depth - 1, kept, abandoned);
        }
        if !found.is_file() {
            continue;
        }
        let used = found.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        let bytes = found.len();
        let unfinished = entry.file_name().to_string_lossy().starts_with(UNFINISHED);
        if unfinished && used.elapsed().is_ok_and(|age| age > ABANDONED) {
            abandoned.push(Kept { path, bytes, used });
        } else if path.extension().is_some_and(|e| extensions.iter().any(|x| e == *x)) {
            kept.push(Kept { path, bytes, used });
        }
    }
}

/// Removes what has been used least recently until no more than `limit` bytes are left (and a fifth of them is free again), with
/// what is abandoned. Gives the files removed and their bytes.
pub fn evict(folder: &Path, extensions: &[&str], depth: usize, limit: u64) -> (usize, u64) {
    let (kept, abandoned) = list(folder, extensions, depth);
    let mut total: u64 = kept.iter().map(|k| k.bytes).sum();
    let target = if total > limit { limit - limit / 5 } else { u64::MAX };
    let mut removed = (0, 0);
    let over = kept.into_iter().take_while(|k| {
        let go = total > target;
        total -= if go { k.bytes } else { 0 };
        go
    });
    for file in abandoned.into_iter().chain(over.collect::<Vec<_>>()) {
        if std::fs::remove_file(&file.path).is_ok() {
            removed = (removed.0 + 1, removed.1 + file.bytes);
        }
    }
    removed
}

/// A number of bytes as `500M`, `2G`, `65536`.
pub fn bytes_of(text: &str) -> Option<u64> {
    let text = text.trim();
    let (number, factor) = match text.chars().last()?.to_ascii_lowercase() {
        'k' => (&text[..text.len() - 1], 1 << 10),
        'm' => (&text[..text.len() - 1], 1 << 20),
        'g' => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    number.trim().parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn found_t10_only_regular_files_of_bounded_size_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let start = std::time::Instant::now();
        for path in [&pipe, Path::new("/dev/zero"), Path::new("/dev/null"), dir.path()] {
            assert!(read(path, 1000).is_err(), "{}", path.display());
        }
        assert!(start.elapsed() < Duration::from_secs(1));
        let file = dir.path().join("file");
        std::fs::write(&file, [7; 1000]).unwrap();
        assert_eq!(read(&file, 1000).unwrap(), [7; 1000]);
        assert!(read(&file, 999).unwrap_err().to_string().contains("1000 bytes"));
        assert_eq!(read(&dir.path().join("absent"), 9).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[cfg(unix)]
    #[test]
    fn found_t8_folders_are_private_and_others_are_refused() {
        use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("a/b");
        make_folder(&folder).unwrap();
        assert_eq!(std::fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
        check_owner(&folder).unwrap();
        check_owner(&dir.path().join("absent")).unwrap();
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(check_owner(&folder).unwrap_err().to_string().contains("can be written by anybody"));
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
        // Only the system's user can give a folder away.
        if chown(&folder, Some(12_345), None).is_ok() {
            let e = check_owner(&folder).unwrap_err();
            assert!(e.kind() == io::ErrorKind::PermissionDenied && e.to_string().contains("user 12345"), "{e}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn found_t4_files_are_as_readable_as_their_folder() {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        let dir = tempfile::tempdir().unwrap();
        for (folder, file) in [(0o700, 0o600), (0o770, 0o660), (0o755, 0o644), (0o2775, 0o664)] {
            std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(folder)).unwrap();
            let made = tempfile::NamedTempFile::new_in(dir.path()).unwrap();
            share_like_folder(made.as_file(), dir.path()).unwrap();
            assert_eq!(made.as_file().metadata().unwrap().mode() & 0o777, file, "{folder:o}");
        }
    }

    #[test]
    fn found_t15_the_least_recently_used_go_first() {
        let dir = tempfile::tempdir().unwrap();
        let make = |name: &str, age: u64| {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, [0; 100]).unwrap();
            let then = SystemTime::now() - Duration::from_secs(age);
            File::options().write(true).open(&path).unwrap().set_modified(then).unwrap();
            path
        };
        let files: Vec<_> = (0..10).map(|i| make(&format!("{i}/x.twcode"), 10_000 * (10 - i))).collect();
        let (other, fresh) = (make("note.txt", 1 << 20), make("3/.new-a", 10));
        let left = make("3/.new-b", 100_000);
        touch(&files[0]);
        assert_eq!(evict(dir.path(), &["twcode"], 1, 5000).0, 1, "what is left over");
        assert!(!left.exists() && fresh.exists());
        assert_eq!(evict(dir.path(), &["twcode"], 1, 500), (6, 600));
        let stay: Vec<_> = (0..10).filter(|&i| files[i].exists()).collect();
        assert_eq!(stay, [0, 7, 8, 9]);
        assert!(other.exists());
        assert_eq!(
            (bytes_of("2G"), bytes_of("64 k"), bytes_of("7"), bytes_of("x"), bytes_of("")),
            (Some(2 << 30), Some(65_536), Some(7), None, None)
        );
    }
}
