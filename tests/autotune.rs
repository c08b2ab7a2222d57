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

#[cfg(unix)]
mod found {
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::process::Child;

    /// The processes that this one has started, by Linux's account.
    fn children(of: u32) -> Vec<u32> {
        let tasks = std::fs::read_to_string(format!("/proc/{of}/task/{of}/children")).unwrap_or_default();
        tasks.split_whitespace().filter_map(|p| p.parse().ok()).collect()
    }

    fn signal(name: &str, to: &str) {
        assert!(Command::new("kill").args([name, "--", to]).status().unwrap().success());
    }

    /// A long run in worker processes, in a process group of its own, and its first worker.
    fn with_a_worker(dir: &Path) -> (Child, u32) {
        let mut child = autotune(dir)
            .args(["run", "matmul", "--shape", "m=512,n=512,k=512", "--dtype", "f32", "--device", "cpu"])
            .args(["--budget", "60s", "--isolate", "always"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(30) {
            if let Some(&worker) = children(child.id()).first() {
                return (child, worker);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        child.kill().and_then(|()| child.wait()).unwrap();
        panic!("no worker was started");
    }

    fn failures(dir: &Path) -> Vec<String> {
        let show = autotune(dir).args(["show", "--json"]).output().unwrap();
        let json: serde_json::Value = serde_json::from_slice(&show.stdout).unwrap_or_default();
        let entries =
            json.as_array().into_iter().flatten().flat_map(|r| r["entries"].as_array().cloned().unwrap_or_default());
        entries.filter(|e| !e["outcome"]["failed"].is_null()).map(|e| e.to_string()).collect()
    }

    #[test]
    fn found_t2_signals_blame_no_configuration() {
        if !cfg!(target_os = "linux") {
            return;
        }
        // Ctrl-C goes to the whole process group; a worker that is ended once from outside is started again.
        for ctrl_c in [true, false] {
            let dir = tempfile::tempdir().unwrap();
            let (child, worker) = with_a_worker(dir.path());
            std::thread::sleep(Duration::from_millis(400));
            if !ctrl_c {
                signal("-TERM", &worker.to_string());
                std::thread::sleep(Duration::from_millis(1500));
            }
            signal("-INT", &format!("-{}", child.id()));
            let output = child.wait_with_output().unwrap();
            assert_eq!(output.status.code(), Some(130), "{}", text(&output));
            assert_eq!(failures(dir.path()), [""; 0]);
        }
    }

    #[test]
    fn found_t10_workers_end_with_who_started_them() {
        if !cfg!(target_os = "linux") {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let (mut child, worker) = with_a_worker(dir.path());
        std::thread::sleep(Duration::from_millis(200));
        child.kill().unwrap();
        child.wait().unwrap();
        let start = Instant::now();
        let alive = || {
            let stat = std::fs::read_to_string(format!("/proc/{worker}/stat")).unwrap_or_default();
            !stat.is_empty() && !stat.contains(") Z ")
        };
        while alive() {
            assert!(start.elapsed() < Duration::from_secs(10), "the worker outlives its parent");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    #[test]
    fn found_t10_a_pipe_in_the_store_hangs_nothing() {
        let dir = tempfile::tempdir().unwrap();
        assert!(autotune(dir.path()).args(SOFTMAX).output().unwrap().status.success());
        let record = std::fs::read_dir(dir.path()).unwrap().next().unwrap().unwrap().path();
        std::fs::remove_file(&record).unwrap();
        assert!(Command::new("mkfifo").arg(&record).status().unwrap().success());
        let start = Instant::now();
        let output = autotune(dir.path()).arg("verify").output().unwrap();
        assert!(text(&output).contains("no regular file"), "{}", text(&output));
        let link = record.with_file_name("softmax-0.r1.json");
        std::os::unix::fs::symlink("/dev/zero", link).unwrap();
        assert!(text(&autotune(dir.path()).arg("verify").output().unwrap()).contains("no regular file"));
        assert!(start.elapsed() < Duration::from_secs(20));
        assert!(autotune(dir.path()).args(SOFTMAX).output().unwrap().status.success());
        assert!(std::fs::symlink_metadata(&record).is_ok(), "what is not ours stays");
    }

    #[test]
    fn found_t11_budgets_and_memory_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let run = |shape: &str, more: &[&str]| {
            let start = Instant::now();
            let args = ["run", "matmul", "--shape", shape, "--dtype", "f32", "--device", "cpu", "--budget", "2s"];
            (autotune(dir.path()).args(args).args(more).output().unwrap(), start.elapsed())
        };
        // More than any machine of today has: refused before it is made.
        let (output, took) = run("m=2000000,n=2000000,k=2000000", &[]);
        assert!(text(&output).contains("out of memory") && took < Duration::from_secs(5), "{took:?} {}", text(&output));
        // A product of minutes, here and in a worker.
        for more in [&[][..], &["--isolate", "always"]] {
            let (output, took) = run("m=3000,n=3000,k=3000", more);
            assert!(took < Duration::from_secs(12), "{took:?} {}", text(&output));
        }
    }

    #[test]
    fn found_t16_a_closed_pipe_is_no_failure() {
        let dir = tempfile::tempdir().unwrap();
        let mut child = autotune(dir.path())
            .args(["list", "--json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success() && text(&output).is_empty(), "{:?} {}", output.status, text(&output));
    }
}
