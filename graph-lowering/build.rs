//! Gives the graph compiler a fingerprint of its own sources, so that graphs cached on disk by another state of it are never
//! taken for this one's.

use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=src");
    let mut hash = 0xcbf2_9ce4_8422_2325;
    add(Path::new("src"), &mut hash);
    println!("cargo::rustc-env=TILEWRIGHT_GRAPH_FINGERPRINT={hash:016x}");
}

/// Adds the names and contents below `path`, in order of name, to an FNV-1a hash.
fn add(path: &Path, hash: &mut u64) {
    let mut feed =
        |bytes: &[u8]| bytes.iter().for_each(|b| *hash = (*hash ^ u64::from(*b)).wrapping_mul(0x100_0000_01b3));
    feed(path.as_os_str().as_encoded_bytes());
    if path.is_dir() {
        let mut entries: Vec<_> = std::fs::read_dir(path)
            .expect("the crate's sources are readable")
            .map(|e| e.expect("the crate's sources are readable").path())
            .collect();
        entries.sort();
        entries.iter().for_each(|e| add(e, hash));
    } else {
        feed(&std::fs::read(path).expect("the crate's sources are readable"));
    }
}
