//! The command `autotune` as a process: its store, its exit codes, its worker processes, and Ctrl-C.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const SOFTMAX: [&str; 10] =
    ["run", "softmax", "--shape", "rows=64,cols=1000", "--dtype", "f32", "--device", "cpu", "--budget", "5s"];

fn autotune(store: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_autotune"));
    command.arg("--store").arg(store).env_remove("TILEWRIGHT_AUTOTUNE");
    command
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn softmax_is_tuned_once() {
    let dir = tempfile::tempdir().unwrap();
    let list = autotune(dir.path()).arg("list").output().unwrap();
    for kernel in ["vector_add", "softmax", "layer_norm", "matmul"] {
        assert!(text(&list).contains(kernel), "{}", text(&list));
    }
    let first = autotune(dir.path()).args(SOFTMAX).output().unwrap();
    assert!(first.status.success() && text(&first).contains("winner"), "{}", text(&first));
    let again = autotune(dir.path()).args(SOFTMAX).output().unwrap();
    assert!(again.status.success() && text(&again).contains("nothing was measured"), "{}", text(&again));
}

#[test]
fn eight_processes_leave_one_valid_store() {
    let dir = tempfile::tempdir().unwrap();
    let start = || autotune(dir.path()).args(SOFTMAX).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let children: Vec<_> = (0..8).map(|_| start()).collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
    }
    let verify = autotune(dir.path()).arg("verify").output().unwrap();
    assert!(verify.status.success() && text(&verify).contains("1 records, 0 that do not hold"), "{}", text(&verify));
    let again = autotune(dir.path()).args(SOFTMAX).output().unwrap();
    assert!(text(&again).contains("nothing was measured"), "{}", text(&again));
}

#[test]
fn workers_find_what_this_process_finds() {
    let dir = tempfile::tempdir().unwrap();
    let output = autotune(dir.path()).args(SOFTMAX).args(["--isolate", "always", "--json"]).output().unwrap();
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(output.status.success() && json["failed"] == 0 && json["stored"] == true, "{json:#}");
    assert_eq!(json["measured"], 4, "{json:#}");
}

#[test]
fn a_store_that_cannot_be_written_is_exit_code_5() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let output = autotune(&file.join("below")).args(SOFTMAX).output().unwrap();
    assert_eq!(output.status.code(), Some(5), "{}", text(&output));
    assert!(text(&output).contains("winner") && text(&output).contains("are not stored"), "{}", text(&output));
}

#[test]
fn mistakes_have_their_exit_codes() {
    let dir = tempfile::tempdir().unwrap();
    let code = |args: &[&str]| autotune(dir.path()).args(args).output().unwrap().status.code();
    assert_eq!(code(&["run", "softmaxx"]), Some(2));
    assert_eq!(code(&["run", "softmax", "--shape", "rows=-1,cols=2"]), Some(2));
    assert_eq!(code(&["show"]), Some(3));
    assert_eq!(code(&["run", "softmax", "--device", "cuda:99"]), Some(4));
    // More memory than any machine has: an error, no crash.
    assert_eq!(code(&["run", "softmax", "--shape", "rows=2147483647,cols=2147483647", "--device", "cpu"]), Some(1));
}

#[cfg(unix)]
#[test]
fn ctrl_c_keeps_what_was_measured() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = autotune(dir.path())
        .args(["run", "matmul", "--shape", "m=512,n=512,k=512", "--dtype", "f32", "--device", "cpu", "--budget", "60s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let start = Instant::now();
    let stored =
        || std::fs::read_dir(dir.path()).unwrap().any(|e| e.unwrap().path().extension().is_some_and(|e| e == "json"));
    while !stored() {
        assert!(child.try_wait().unwrap().is_none() && start.elapsed() < Duration::from_secs(50), "nothing is stored");
        std::thread::sleep(Duration::from_millis(20));
    }
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output));
    assert!(text(&output).contains("interrupted") && text(&output).contains("winner"), "{}", text(&output));
    let show = autotune(dir.path()).args(["show", "matmul"]).output().unwrap();
    assert!(show.status.success() && text(&show).contains("winner"), "{}", text(&show));
}
