//! Tables.

use crate::record::{Entry, Outcome, Record};
use crate::store::Store;
use crate::tunable::{Problem, Tunable, Work};
use crate::tuning::Report;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Most lines of measured configurations.
const LINES: usize = 24;

/// What `run` prints.
pub fn print(
    tunable: &Tunable,
    problem: &Problem,
    report: &Report,
    store: &Store,
    out: &mut dyn Write,
) -> io::Result<()> {
    let s = &report.summary;
    let subject = &report.plan.subject;
    writeln!(out, "{} {} on {} ({})", subject.kernel, problem.dims, problem.device.info(), subject.key)?;
    for (name, n) in &report.plan.removed {
        writeln!(out, "  {n} configurations removed by `{name}`")?;
    }
    if report.plan.merged > 0 {
        writeln!(out, "  {} configurations differ only in what this device does not distinguish", report.plan.merged)?;
    }
    if s.measured + s.failed + s.same + s.left_out == 0 {
        writeln!(out, "  all {} configurations are known; nothing was measured", s.known)?;
    } else {
        let mut parts = vec![format!("{} measured", s.measured)];
        let mut add = |n: usize, what: &str| {
            if n > 0 {
                parts.push(format!("{n} {what}"));
            }
        };
        add(s.failed, "failed");
        add(s.same, "with the code of another");
        add(s.known, "known before");
        add(s.left_out, if s.lost { "not tried: the device was lost" } else { "not tried: the time was up" });
        writeln!(out, "  {}{}", parts.join(", "), if s.interrupted { "; interrupted" } else { "" })?;
    }
    if s.too_short {
        writeln!(out, "  the time was up before the reference configuration had run; give more with --budget")?;
    }
    if let Some(failure) = &s.hopeless {
        writeln!(out, "  no configuration works; the reference: {}", failure.message)?;
    }
    table(&report.record, tunable.work_of(&problem.dims, problem.dtype), Some(&report.plan.default), out)?;
    if report.not_stored.is_none() {
        writeln!(out, "  stored in {}", store.dir().display())?;
    }
    Ok(())
}

/// One record as a table. `default` is the configuration used when nothing is tuned.
pub fn table(record: &Record, work: Work, default: Option<&crate::Config>, out: &mut dyn Write) -> io::Result<()> {
    let ranking = record.ranking();
    let width = ranking.iter().take(LINES).map(|e| e.config.to_string().len()).max().unwrap_or(0).max(13);
    let rate = |us: f64| match (us > 0.0, work.flops > 0.0, work.bytes > 0.0) {
        (true, true, _) => format!("{:9.2} GFLOP/s", work.flops / us / 1e3),
        (true, _, true) => format!("{:9.2} GB/s   ", work.bytes / us / 1e3),
        _ => String::new(),
    };
    if !ranking.is_empty() {
        writeln!(out, "  {:<width$} {:>12} {:>12} {:>7}", "configuration", "median, us", "least, us", "samples")?;
    }
    for (i, e) in ranking.iter().take(LINES).enumerate() {
        let Outcome::Measured(t) = &e.outcome else { continue };
        let mut notes = Vec::new();
        if record.winner() == Some(e) {
            notes.push("winner".to_owned());
        }
        if e.imported {
            notes.push("imported, not measured here".to_owned());
        }
        if default == Some(&e.config) {
            let best = ranking[0].median().unwrap_or(f64::NAN);
            let slower = if best > 0.0 { t.median_us / best } else { 1.0 };
            notes.push(if i == 0 { "default".into() } else { format!("default, {slower:.2}x the winner's time") });
        }
        if t.finalist && i > 0 {
            notes.push("finalist".into());
        }
        if let Some(round) = t.eliminated_in_round {
            notes.push(format!("given up in round {round}"));
        }
        if let Some(f) = &e.facts {
            let spill = f.spill_bytes.filter(|&b| b > 0);
            notes.extend(f.registers.map(|r| format!("{r} registers")));
            notes.extend(spill.map(|b| format!("{b} bytes spilled")));
        }
        writeln!(
            out,
            "  {:<width$} {:>12.2} {:>12.2} {:>7}  {}  {}",
            e.config.to_string(),
            t.median_us,
            t.min_us,
            t.samples,
            rate(t.median_us),
            notes.join(", ")
        )?;
    }
    if ranking.len() > LINES {
        writeln!(out, "  ... and {} slower ones", ranking.len() - LINES)?;
    }
    failures(&record.entries, out)
}

/// Failures: one line for each kind, with the first of it.
fn failures(entries: &[Entry], out: &mut dyn Write) -> io::Result<()> {
    let mut kinds = BTreeMap::new();
    for e in entries {
        if let Outcome::Failed(f) = &e.outcome {
            kinds.entry(f.kind).or_insert_with(Vec::new).push((e, f));
        }
    }
    for (kind, all) in kinds {
        let (e, f) = all[0];
        writeln!(out, "  {} failed ({}), such as {}: {}", all.len(), kind.name(), e.config, f.line())?;
    }
    Ok(())
}

/// What `run --json` prints.
pub fn json(report: &Report) -> Value {
    let s = &report.summary;
    json!({
        "kernel": report.plan.subject.kernel,
        "device": report.plan.subject.device,
        "key": report.plan.subject.key,
        "measured": s.measured,
        "failed": s.failed,
        "same_code": s.same,
        "known": s.known,
        "not_tried": s.left_out,
        "interrupted": s.interrupted,
        "stored": report.not_stored.is_none(),
        "default": report.plan.default,
        "reference": s.reference,
        "winner": report.record.winner().map(|e| &e.config),
        "median_us": report.record.winner().and_then(Entry::median),
        "record": report.record,
    })
}
