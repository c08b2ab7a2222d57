//! The subcommands about what is stored.

use super::args::Which;
use super::report;
use super::select::{self, records};
use super::{Exit, Outcome, Stop};
use crate::config::Config;
use crate::key::Dims;
use crate::plan::Plan;
use crate::plot;
use crate::record::{Conditions, Entry, Outcome as Result_, Record, SCHEMA, Subject, date, device_name};
use crate::registry;
use crate::store::Store;
use crate::tunable::{Problem, Tunable, Work};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::time::Duration;
use tilewright_runtime::{DType, Device, files, prune_cache};

pub fn list(store: &Store, json: bool, out: &mut dyn Write) -> Outcome {
    let (records, _) = store.all();
    let stored = |name: &str| records.iter().filter(|(_, r)| r.subject.kernel == name).count();
    if json {
        let all: Vec<_> = registry::all()
            .iter()
            .map(|(t, place)| {
                serde_json::json!({
                    "kernel": t.name(), "sizes": t.dims(), "example": select::example(t), "configurations": t.space().size(),
                    "dtypes": t.listed_dtypes().iter().map(ToString::to_string).collect::<Vec<_>>(),
                    "records": stored(t.name()), "place": place, "runnable": t.has_inputs(),
                })
            })
            .collect();
        writeln!(out, "{:#}", serde_json::Value::Array(all))?;
        return Ok(Exit::Done);
    }
    writeln!(out, "{:<16} {:>14} {:>8}  {:<24} example", "kernel", "configurations", "records", "element types")?;
    for (t, place) in registry::all() {
        let dtypes: Vec<_> = t.listed_dtypes().iter().map(ToString::to_string).collect();
        let dtypes = if dtypes.is_empty() { "-".to_owned() } else { dtypes.join(",") };
        let example = if t.has_inputs() { format!("--shape {}", select::example(t)) } else { "no inputs".into() };
        writeln!(
            out,
            "{:<16} {:>14} {:>8}  {dtypes:<24} {example}   # {place}",
            t.name(),
            t.space().size(),
            stored(t.name())
        )?;
    }
    Ok(Exit::Done)
}

pub fn show(store: &Store, which: &Which, json: bool, out: &mut dyn Write, err: &mut dyn Write) -> Outcome {
    let all = records(store, which, err)?;
    if json {
        let all: Vec<_> = all.iter().map(|(_, r)| r).collect();
        let text = serde_json::to_string_pretty(&all).map_err(std::io::Error::from)?;
        writeln!(out, "{text}")?;
        return Ok(Exit::Done);
    }
    for (path, r) in &all {
        heading(r, out)?;
        writeln!(out, "  {}", path.display())?;
        report::table(r, work(r), None, out)?;
    }
    Ok(Exit::Done)
}

fn heading(r: &Record, out: &mut dyn Write) -> std::io::Result<()> {
    let last = r.entries.iter().map(|e| e.at).max().unwrap_or(0);
    writeln!(out, "{} on {} ({}), {} UTC", r.subject.kernel, r.subject.device, r.subject.key, date(last))
}

/// How much a launch of the record's problem does, if the kernel is in this program.
fn work(r: &Record) -> Work {
    let found = registry::find(&r.subject.kernel).ok().zip(r.entries.first());
    found.and_then(|(t, e)| Some(t.work_of(&select::dims(t, &e.problem).ok()?, dtype(r)))).unwrap_or_default()
}

fn dtype(r: &Record) -> DType {
    r.subject.key.dtype.as_ref().and_then(|d| d.parse().ok()).unwrap_or(DType::F32)
}

pub fn explain(store: &Store, which: &Which, json: bool, out: &mut dyn Write, err: &mut dyn Write) -> Outcome {
    let all = records(store, which, err)?;
    if json {
        let all: Vec<_> = all.iter().map(|(_, r)| explained(r)).collect();
        writeln!(out, "{:#}", serde_json::Value::Array(all))?;
        return Ok(Exit::Done);
    }
    for (_, r) in all {
        heading(&r, out)?;
        let c = &r.conditions;
        writeln!(out, "  holds for Tilewright {}, code generation {}, driver {}", c.tilewright, c.codegen, c.driver)?;
        if let (Ok(t), Some(first)) = (registry::find(&r.subject.kernel), r.entries.first())
            && let Ok(dims) = select::dims(t, &first.problem)
            && let Ok(candidates) = t.space().candidates(&dims)
        {
            writeln!(
                out,
                "  the space has {} configurations, {} allowed for {dims}",
                t.space().size(),
                candidates.configs.len()
            )?;
            for (name, n) in candidates.removed {
                writeln!(out, "    {n} removed by `{name}`")?;
            }
        }
        let same = r.entries.iter().filter(|e| matches!(e.outcome, Result_::SameAs(_))).count();
        if same > 0 {
            writeln!(out, "  {same} compile to the code of another")?;
        }
        for e in &r.entries {
            if let Result_::Failed(f) = &e.outcome {
                writeln!(out, "  {}: {}: {}", e.config, f.kind.name(), f.line())?;
            }
        }
        let mut rounds: BTreeMap<usize, usize> = BTreeMap::new();
        let timings =
            r.entries.iter().filter_map(|e| if let Result_::Measured(t) = &e.outcome { Some(t) } else { None });
        timings.filter_map(|t| t.eliminated_in_round).for_each(|n| *rounds.entry(n).or_default() += 1);
        for (round, n) in rounds {
            writeln!(out, "  {n} given up in round {round}")?;
        }
        let Some(winner) = r.winner() else {
            let imported = r.entries.iter().filter(|e| e.imported).count();
            match imported {
                0 => writeln!(out, "  no configuration works")?,
                n => writeln!(out, "  {n} configurations were imported; none was measured here yet: `run` does it")?,
            }
            continue;
        };
        writeln!(out, "  winner: {} ({:.2} us)", winner.config, winner.median().unwrap_or(f64::NAN))?;
        for e in r.ranking().into_iter().skip(1) {
            if let Result_::Measured(t) = &e.outcome
                && t.finalist
            {
                let slower = (t.median_us / winner.median().unwrap_or(f64::NAN) - 1.0) * 100.0;
                writeln!(out, "    run-off: {} is {slower:.1} % slower", e.config)?;
            }
        }
        for (name, best) in best_by_value(&r) {
            let all: Vec<_> = best.iter().map(|(v, us)| format!("{} {us:.1}", v.trim_start())).collect();
            writeln!(out, "    the best times by {name}, in us: {}", all.join(", "))?;
        }
    }
    Ok(Exit::Done)
}

/// What [`explain`] says of a record, as JSON.
fn explained(r: &Record) -> serde_json::Value {
    let dims = registry::find(&r.subject.kernel).ok().zip(r.entries.first());
    let removed = dims.and_then(|(t, first)| {
        let dims = select::dims(t, &first.problem).ok()?;
        Some(t.space().candidates(&dims).ok()?.removed.into_iter().collect::<BTreeMap<String, usize>>())
    });
    let failed = r.entries.iter().filter_map(|e| match &e.outcome {
        Result_::Failed(f) => Some(serde_json::json!({ "config": e.config, "kind": f.kind, "message": f.message })),
        _ => None,
    });
    let timed = r.ranking().into_iter().filter_map(|e| match &e.outcome {
        Result_::Measured(t) => Some(serde_json::json!({
            "config": e.config, "median_us": t.median_us, "samples": t.samples, "finalist": t.finalist,
            "given_up_in_round": t.eliminated_in_round, "imported": e.imported,
        })),
        _ => None,
    });
    serde_json::json!({
        "subject": r.subject, "conditions": r.conditions, "removed_by": removed,
        "same_code": r.entries.iter().filter(|e| matches!(e.outcome, Result_::SameAs(_))).count(),
        "failed": failed.collect::<Vec<_>>(), "measured": timed.collect::<Vec<_>>(),
        "winner": r.winner().map(|e| &e.config), "best_by_value": best_by_value(r),
    })
}

/// For each parameter with a choice: the best median with each of its values.
fn best_by_value(r: &Record) -> BTreeMap<String, BTreeMap<String, f64>> {
    let mut all: BTreeMap<String, BTreeMap<String, f64>> = BTreeMap::new();
    for e in r.ranking() {
        let names = e.config.params().map(|(n, _)| n.to_owned()).chain(["num_warps".into(), "num_stages".into()]);
        for name in names.collect::<Vec<_>>() {
            let Some(value) = e.config.value(&name) else { continue };
            let us = e.median().unwrap_or(f64::INFINITY);
            let best = all.entry(name).or_default().entry(format!("{value:>6}")).or_insert(f64::INFINITY);
            *best = best.min(us);
        }
    }
    all.retain(|_, values| values.len() > 1);
    all
}

pub fn diff(store: &Store, other: &Path, out: &mut dyn Write, err: &mut dyn Write) -> Outcome {
    let (ours, aside) = store.all();
    for a in aside {
        writeln!(err, "note: {a}")?;
    }
    let theirs = if other.is_dir() {
        Store::at(other).all().0.into_iter().map(|(_, r)| r).collect()
    } else {
        read_export(other)?
    };
    let ours: BTreeMap<Subject, Record> = ours.into_iter().map(|(_, r)| (r.subject.clone(), r)).collect();
    let theirs: BTreeMap<Subject, Record> = theirs.into_iter().map(|r| (r.subject.clone(), r)).collect();
    let name = |s: &Subject| format!("{} ({}) on {}", s.kernel, s.key, s.device);
    let mut differs = false;
    for (subject, a) in &ours {
        let Some(b) = theirs.get(subject) else {
            differs = true;
            writeln!(out, "only here:  {}", name(subject))?;
            continue;
        };
        // An export's times are its own, imported or not.
        match (a.ranking().first().copied(), b.ranking().first().copied()) {
            (Some(x), Some(y)) => {
                let ratio = y.median().unwrap_or(f64::NAN) / x.median().unwrap_or(f64::NAN);
                let same = x.config == y.config;
                differs |= !same;
                let what =
                    if same { format!("the same winner {}", x.config) } else { format!("{} / {}", x.config, y.config) };
                writeln!(out, "{}: {what}; theirs takes {ratio:.3}x the time", name(subject))?;
            }
            (x, y) => {
                let side = |e: Option<&Entry>| if e.is_some() { "a winner" } else { "none" };
                differs |= x.is_some() != y.is_some();
                writeln!(out, "{}: {} here, {} there", name(subject), side(x), side(y))?;
            }
        }
    }
    for subject in theirs.keys().filter(|s| !ours.contains_key(s)) {
        differs = true;
        writeln!(out, "only there: {}", name(subject))?;
    }
    Ok(if differs { Exit::Differs } else { Exit::Done })
}

/// What can be said of a record in this program, on this machine.
enum Verdict {
    Valid,
    /// It holds, but these configurations are not in the kernel's space any more.
    Partly(Vec<Config>),
    /// It does not hold any more.
    Stale(String),
    /// It cannot be judged here.
    Unknown(String),
}

fn judge(r: &Record, devices: &[Device]) -> Verdict {
    let tunable = match registry::find(&r.subject.kernel) {
        Ok(t) => t,
        Err(_) => return Verdict::Unknown("the kernel is not in this program".into()),
    };
    let Some(device) = devices.iter().find(|d| device_name(d) == r.subject.device) else {
        return Verdict::Unknown(format!("this machine has no {}", r.subject.device));
    };
    if let Some(why) = r.conditions.difference(&Conditions::now(device)) {
        return Verdict::Stale(why);
    }
    let Some(dims) = r.entries.first().and_then(|e| select::dims(tunable, &e.problem).ok()) else {
        return Verdict::Stale("its sizes are not the kernel's".into());
    };
    match plan(tunable, device, dtype(r), &dims) {
        Err(e) => Verdict::Unknown(e),
        Ok((plan, _)) if plan.subject != r.subject => Verdict::Stale("the kernel has changed".into()),
        Ok((plan, changed)) => {
            let gone: Vec<Config> =
                r.entries.iter().map(|e| &e.config).filter(|c| !plan.candidates.contains(c)).cloned().collect();
            let mut rest = r.clone();
            rest.entries.retain(|e| plan.candidates.contains(&e.config));
            if changed(&rest) {
                Verdict::Stale("the code of its winner has changed".into())
            } else if gone.is_empty() {
                Verdict::Valid
            } else {
                Verdict::Partly(gone)
            }
        }
    }
}

type Changed = Box<dyn Fn(&Record) -> bool>;

fn plan(tunable: &'static Tunable, device: &Device, dtype: DType, dims: &Dims) -> Result<(Plan, Changed), String> {
    let problem = Problem { device: device.clone(), dtype, dims: dims.clone(), seed: 1 };
    let instance = tunable.instantiate(&problem).map_err(|e| e.to_string())?;
    let plan = Plan::new(tunable, device, dtype, dims, &|c: &Config| instance.launch(c)).map_err(|e| e.to_string())?;
    let changed = {
        let plan = plan.clone();
        move |r: &Record| {
            let source = |c: &Config| instance.launch(c);
            let current = crate::tuning::current(r.clone(), &plan, &source);
            current.winner().map(|e| &e.config) != r.winner().map(|e| &e.config)
        }
    };
    Ok((plan, Box::new(changed)))
}

fn devices() -> Vec<Device> {
    let usable = Device::list().into_iter().filter(|d| d.unusable.is_none());
    usable.filter_map(|d| Device::open(&d.name).ok()).collect()
}

pub fn verify(store: &Store, json: bool, out: &mut dyn Write, err: &mut dyn Write) -> Outcome {
    let (all, aside) = store.all();
    let devices = devices();
    let mut bad = aside.len();
    for a in &aside {
        writeln!(err, "note: {a}")?;
    }
    let mut told = Vec::new();
    for (path, r) in &all {
        let (word, text) = match judge(r, &devices) {
            Verdict::Valid => ("holds", "holds".to_owned()),
            Verdict::Partly(gone) => (
                "holds",
                format!("holds, less {} configurations that are not in the kernel's space any more", gone.len()),
            ),
            Verdict::Unknown(why) => ("unknown", format!("cannot be judged here: {why}")),
            Verdict::Stale(why) => {
                bad += 1;
                ("stale", format!("STALE: {why}"))
            }
        };
        if json {
            let why = text.as_str();
            told.push(serde_json::json!({ "file": path, "subject": r.subject, "verdict": word, "text": why }));
        } else {
            writeln!(out, "{} ({}) on {}: {text}", r.subject.kernel, r.subject.key, r.subject.device)?;
        }
    }
    let damaged = store.damaged();
    bad += damaged.len();
    if json {
        let aside: Vec<_> = aside.iter().map(ToString::to_string).collect();
        let json = serde_json::json!({ "records": told, "passed_over": aside, "damaged": damaged, "bad": bad });
        writeln!(out, "{json:#}")?;
    } else {
        for path in damaged {
            writeln!(out, "{}: DAMAGED, set aside", path.display())?;
        }
        writeln!(out, "{} records, {bad} that do not hold", all.len())?;
    }
    Ok(if bad > 0 { Exit::Differs } else { Exit::Done })
}

/// Compiled code that was not used for this long is removed by `prune`.
const UNUSED: Duration = Duration::from_secs(30 * 86_400);

pub fn prune(store: &Store, dry_run: bool, out: &mut dyn Write, err: &mut dyn Write) -> Outcome {
    let (all, aside) = store.all();
    for a in &aside {
        writeln!(err, "note: {a}")?;
    }
    let devices = devices();
    let verb = if dry_run { "would remove" } else { "removed" };
    let mut count = 0;
    for (_, r) in &all {
        let name = format!("{} ({}) on {}", r.subject.kernel, r.subject.key, r.subject.device);
        match judge(r, &devices) {
            Verdict::Stale(why) => {
                if !dry_run {
                    store.remove(r)?;
                }
                count += 1;
                writeln!(out, "{verb} {name}: {why}")?;
            }
            // The other configurations' times hold as before.
            Verdict::Partly(gone) => {
                if !dry_run {
                    store.take_out(r, &gone)?;
                }
                let n = gone.len();
                writeln!(out, "{verb} {n} configurations of {name}: they are not in the kernel's space any more")?;
            }
            Verdict::Valid | Verdict::Unknown(_) => {}
        }
    }
    for path in store.damaged() {
        if !dry_run {
            std::fs::remove_file(&path)?;
        }
        count += 1;
        writeln!(out, "{verb} {}: damaged", path.display())?;
    }
    if !dry_run {
        let left = store.evict(u64::MAX);
        if left > 0 {
            writeln!(out, "{verb} {left} unfinished files that nobody writes any more")?;
        }
    }
    writeln!(out, "{verb} {count}")?;
    if let Some(p) = prune_cache(UNUSED, dry_run) {
        let mb = |bytes: u64| bytes as f64 / 1e6;
        writeln!(
            out,
            "of {} entries of compiled code ({:.1} MB) {verb} {} ({:.1} MB): unused for 30 days, left over or over the limit",
            p.entries,
            mb(p.bytes),
            p.removed,
            mb(p.removed_bytes)
        )?;
    }
    Ok(Exit::Done)
}

pub fn export(store: &Store, file: &Path, which: &Which, out: &mut dyn Write, err: &mut dyn Write) -> Outcome {
    let all: Vec<Record> = records(store, which, err)?.into_iter().map(|(_, r)| r).collect();
    let json = serde_json::json!({ "schema": SCHEMA, "records": all });
    if file == Path::new("-") {
        writeln!(out, "{json:#}")?;
    } else {
        let fail = |e: std::io::Error| Stop(Exit::Failed, format!("cannot write {}: {e}", file.display()));
        std::fs::write(file, format!("{json:#}\n")).map_err(fail)?;
        writeln!(err, "{} records written to {}", all.len(), file.display())?;
    }
    Ok(Exit::Done)
}

fn read_export(file: &Path) -> Result<Vec<Record>, Stop> {
    let fail = |why: String| Stop(Exit::Failed, format!("cannot read {}: {why}", file.display()));
    // Most bytes of an export: some thousand records.
    const LARGEST: u64 = 1 << 30;
    let bytes = files::read(file, LARGEST).map_err(|e| fail(e.to_string()))?;
    let json: serde_json::Value = serde_json::from_slice(&bytes).map_err(|e| fail(e.to_string()))?;
    match json.get("schema").and_then(serde_json::Value::as_u64) {
        Some(n) if n == u64::from(SCHEMA) => {}
        Some(n) => return Err(fail(format!("its schema is {n}, this program's is {SCHEMA}"))),
        None => return Err(fail("it is no export of a store".into())),
    }
    serde_json::from_value(json["records"].clone()).map_err(|e| fail(e.to_string()))
}

pub fn import(store: &Store, file: &Path, out: &mut dyn Write, err: &mut dyn Write) -> Outcome {
    let (mut taken, mut left) = (0, 0);
    for record in read_export(file)? {
        let imported = store
            .import(&record)
            .map_err(|e| Stop(Exit::NotStored, format!("cannot write to {}: {e}", store.dir().display())))?;
        if imported {
            taken += 1;
        } else {
            left += 1;
            let s = &record.subject;
            writeln!(
                err,
                "note: {} ({}) on {} holds under other conditions than the record here; left out",
                s.kernel, s.key, s.device
            )?;
        }
    }
    writeln!(out, "{taken} records imported, {left} left out")?;
    if taken > 0 {
        writeln!(out, "what they say is used once `autotune run` has measured it here; it begins with their fastest")?;
    }
    Ok(Exit::Done)
}

pub fn plot(store: &Store, which: &Which, output: Option<&Path>, out: &mut dyn Write, err: &mut dyn Write) -> Outcome {
    let all = records(store, which, err)?;
    if all.len() > 1 {
        let names: Vec<_> = all
            .iter()
            .map(|(_, r)| format!("  {} ({}) on {}", r.subject.kernel, r.subject.key, r.subject.device))
            .collect();
        let message =
            format!("several records are meant; narrow it down with --shape, --dtype, --device:\n{}", names.join("\n"));
        return Err(Stop(Exit::Usage, message));
    }
    let svg = plot::svg(&all[0].1);
    match output.filter(|path| *path != Path::new("-")) {
        Some(path) => {
            let fail = |e: std::io::Error| Stop(Exit::Failed, format!("cannot write {}: {e}", path.display()));
            std::fs::write(path, svg).map_err(fail)?;
            writeln!(err, "written to {}", path.display())?;
        }
        None => write!(out, "{svg}")?,
    }
    Ok(Exit::Done)
}
