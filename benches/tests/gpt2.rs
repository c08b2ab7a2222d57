//! `gpt2_bench` as a process, with the small decoder on the processor.

use serde_json::Value;
use std::process::Command;

fn bench() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpt2_bench"));
    command.args(["--device", "cpu", "--config", "tiny", "--quick"]);
    command
}

#[test]
fn every_case_is_measured_checked_and_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("gpt2.json");
    let output = bench().args(["--profile", "--json"]).arg(&file).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("agrees with the interpreter"), "{text}");
    let json: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let all = json["measurements"].as_array().unwrap();
    assert_eq!(all.len(), 3, "{json:#}");
    for m in all {
        assert!(m["median"].as_f64().unwrap() > 0.0 && m["right"] == true, "{m:#}");
        assert!(m["first_call_s"].as_f64().unwrap() > 0.0 && m["kernels"].as_u64().unwrap() > 10, "{m:#}");
        let lines = m["profile"].as_array().unwrap();
        let launches: u64 = lines.iter().map(|l| l["count"].as_u64().unwrap()).sum();
        assert_eq!(launches, m["kernels"].as_u64().unwrap(), "{m:#}");
        assert!(lines.iter().all(|l| l["ms"].as_f64().unwrap() > 0.0), "{m:#}");
    }
}

#[test]
fn a_mode_that_does_not_exist_is_a_row_and_a_failure() {
    let output = bench().args(["--modes", "default,fastest", "--only", "1x8"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("gpt2 1x8 forward, fastest") && text.contains("`fastest`"), "{text}");
    assert!(text.lines().any(|l| l.starts_with("gpt2 1x8 forward, default") && l.contains("ms")), "{text}");
}

#[test]
fn a_plan_runs_nothing() {
    let output = bench().args(["--plan", "--only", "backward", "--top", "100"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("plan_peak_bytes") && text.contains("scatter_add"), "{text}");
}
