//! Records: what was measured of one kernel, on one device, for one key.

use crate::bench::{Facts, hash};
use crate::config::Config;
use crate::failure::Failure;
use crate::key::Key;
use crate::measure::CachePolicy;
use serde::{Deserialize, Serialize};
use std::time::{SystemTime, UNIX_EPOCH};
use tilewright_runtime::Device;

/// The format of records. One with another number is left alone.
pub const SCHEMA: u32 = 1;

/// What a record is about: together its address.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Subject {
    /// The kernel's name.
    pub kernel: String,
    /// Hash of its Tile IR in the first configuration of its space: another kernel of the same name is another subject.
    pub kernel_hash: String,
    /// Driver and model of the device.
    pub device: String,
    /// Element type and size buckets.
    pub key: Key,
}

impl Subject {
    /// A short name for files: readable, and different for different subjects.
    pub fn slug(&self) -> String {
        let clean = |s: &str| -> String {
            s.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).take(40).collect()
        };
        let digest = hash(&[&self.kernel, &self.kernel_hash, &self.device, &self.key.to_string()]);
        format!("{}-{digest}", clean(&self.kernel))
    }
}

/// The device as records name it: results hold for every device of one model.
pub fn device_name(device: &Device) -> String {
    let info = device.info();
    format!("{:?}/{}", info.kind, info.model).to_lowercase()
}

/// Under what the results hold; if one of these has changed they are stale.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Conditions {
    /// Tilewright's version.
    pub tilewright: String,
    /// Fingerprint of its code generation.
    pub codegen: String,
    /// Version of the device's driver.
    pub driver: String,
}

impl Conditions {
    /// Those of this program and this device.
    pub fn now(device: &Device) -> Self {
        let version = tilewright_compiler::pipeline::CODEGEN_VERSION;
        Self {
            tilewright: env!("CARGO_PKG_VERSION").into(),
            codegen: format!("{version}-{}", hash(&[tilewright_compiler::CODEGEN_FINGERPRINT])),
            driver: device.info().driver.clone(),
        }
    }

    /// What differs, for a message.
    pub fn difference(&self, now: &Conditions) -> Option<String> {
        let pairs = [
            ("Tilewright's version", &self.tilewright, &now.tilewright),
            ("the code generation", &self.codegen, &now.codegen),
            ("the driver", &self.driver, &now.driver),
        ];
        let (what, old, new) = pairs.into_iter().find(|(_, a, b)| a != b)?;
        Some(format!("{what} was {old} and is {new}"))
    }
}

/// Times of one configuration, in microseconds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Timing {
    /// The middle of all samples; of finalists, as the run-off corrected it.
    pub median_us: f64,
    /// The least.
    pub min_us: f64,
    /// The 20th and 80th percentiles.
    pub p20_us: f64,
    /// See `p20_us`.
    pub p80_us: f64,
    /// How many launches were timed.
    pub samples: usize,
    /// After how many rounds it was given up, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eliminated_in_round: Option<usize>,
    /// Did it take part in the run-off?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub finalist: bool,
    /// What launches found in the device's cache.
    pub cache: CachePolicy,
}

/// What became of one configuration.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It is right, and this fast.
    Measured(Timing),
    /// It compiles to the code of another one.
    SameAs(Config),
    /// It cannot be used.
    Failed(Failure),
}

/// One configuration's result.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// The configuration.
    pub config: Config,
    /// What became of it.
    pub outcome: Outcome,
    /// What is known of its code, if it compiled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<Facts>,
    /// The exact problem it was measured for.
    pub problem: String,
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// Was it measured elsewhere and imported? Such a one is tried first, and used once it was measured here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub imported: bool,
}

/// The longest launch that is believed, in microseconds: more than a day.
const LONGEST_US: f64 = 1e11;
/// How far clocks of machines that share a store may lie apart, in milliseconds: a day.
const SKEW: u64 = 86_400_000;

impl Entry {
    /// Why this can be no measurement, if so: records are files that anybody may have written. `now` is in milliseconds.
    pub fn implausible(&self, now: u64) -> Option<String> {
        if self.at > now.saturating_add(SKEW) {
            return Some(format!("it is dated {}", date(self.at)));
        }
        let Outcome::Measured(t) = &self.outcome else { return None };
        let times = [
            ("median", t.median_us),
            ("least", t.min_us),
            ("20th percentile", t.p20_us),
            ("80th percentile", t.p80_us),
        ];
        if let Some((what, us)) = times.iter().find(|(_, us)| !(us.is_finite() && *us > 0.0 && *us <= LONGEST_US)) {
            return Some(format!("its {what} is {us:e} us"));
        }
        // The run-off corrects a median by comparison, but never far.
        if t.median_us < t.min_us / 2.0 || t.min_us > t.p80_us || t.p20_us > t.p80_us || t.samples == 0 {
            return Some("its times contradict each other".into());
        }
        if self.facts.as_ref().is_none_or(|f| f.source.is_empty() || f.code.is_empty()) {
            return Some("it has a time, but does not say of which code".into());
        }
        None
    }

    /// Its median, if it was measured.
    pub fn median(&self) -> Option<f64> {
        if let Outcome::Measured(t) = &self.outcome { Some(t.median_us) } else { None }
    }
}

/// A record.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Record {
    /// [`SCHEMA`].
    pub schema: u32,
    /// What it is about.
    pub subject: Subject,
    /// Under what it holds.
    pub conditions: Conditions,
    /// One for each configuration tried, in canonical order.
    pub entries: Vec<Entry>,
}

impl Record {
    /// An empty one.
    pub fn new(subject: Subject, conditions: Conditions) -> Self {
        Self { schema: SCHEMA, subject, conditions, entries: Vec::new() }
    }

    /// The entry of a configuration.
    pub fn entry(&self, config: &Config) -> Option<&Entry> {
        self.entries.iter().find(|e| e.config == *config)
    }

    /// Puts in entries; of two of one configuration the later one stays. Merging is the same in any order, so
    /// that processes and machines may exchange records as they like.
    /// What was measured here stands above what was imported.
    pub fn merge(&mut self, entries: &[Entry]) {
        for new in entries {
            match self.entries.iter_mut().find(|e| e.config == new.config) {
                Some(old) => {
                    // Of equally late ones any, but always the same.
                    let rank = |e: &Entry| (!e.imported, e.at, serde_json::to_string(e).unwrap_or_default());
                    if rank(new) > rank(old) {
                        *old = new.clone();
                    }
                }
                None => self.entries.push(new.clone()),
            }
        }
        self.entries.sort_by(|a, b| a.config.cmp(&b.config));
    }

    /// The measured entries, fastest first.
    pub fn ranking(&self) -> Vec<&Entry> {
        let mut all: Vec<_> = self.entries.iter().filter(|e| e.median().is_some_and(f64::is_finite)).collect();
        all.sort_by(|a, b| {
            let time = |e: &Entry| e.median().unwrap_or(f64::INFINITY);
            time(a).total_cmp(&time(b)).then_with(|| a.config.cmp(&b.config))
        });
        all
    }

    /// The fastest configuration that was measured here.
    pub fn winner(&self) -> Option<&Entry> {
        self.ranking().into_iter().find(|e| !e.imported)
    }

    /// Takes out what can be no measurement; gives the configurations, each with why.
    pub fn take_implausible(&mut self) -> Vec<(Config, String)> {
        let now = now();
        let mut out = Vec::new();
        self.entries.retain(|e| match e.implausible(now) {
            Some(why) => {
                out.push((e.config.clone(), why));
                false
            }
            None => true,
        });
        out
    }
}

/// Milliseconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64)
}

/// A moment, in milliseconds since 1970, as `2026-01-31 23:59:59` in UTC.
pub fn date(milliseconds: u64) -> String {
    let seconds = milliseconds / 1000;
    let (days, rest) = ((seconds / 86_400) as i64, seconds % 86_400);
    // Days to a civil date: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", civil_from_days.
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let (day, month) = (doy - (153 * mp + 2) / 5 + 1, if mp < 10 { mp + 3 } else { mp - 9 });
    let year = yoe + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}", rest / 3600, rest / 60 % 60, rest % 60)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::failure::FailureKind;

    pub fn subject(kernel: &str) -> Subject {
        let key = Key { dtype: Some("f32".into()), dims: [("n".to_owned(), "513-1024/8".to_owned())].into() };
        Subject { kernel: kernel.into(), kernel_hash: "0123".into(), device: "cpu/interpreter".into(), key }
    }

    pub fn conditions() -> Conditions {
        Conditions { tilewright: "0.1.0".into(), codegen: "1-x".into(), driver: "d".into() }
    }

    pub fn measured(block: i64, us: f64, at: u64) -> Entry {
        let timing = Timing {
            median_us: us,
            min_us: us,
            p20_us: us,
            p80_us: us,
            samples: 3,
            eliminated_in_round: None,
            finalist: false,
            cache: CachePolicy::Warm,
        };
        let config = Config::new().with("block", block);
        let facts = Facts { source: "00".into(), code: format!("{block:02x}"), ..Facts::default() };
        Entry {
            config,
            outcome: Outcome::Measured(timing),
            facts: Some(facts),
            problem: "n=1000".into(),
            at,
            imported: false,
        }
    }

    #[test]
    fn merging_is_the_same_in_any_order() {
        let mut failed = measured(64, 1.0, 5);
        failed.outcome = Outcome::Failed(Failure::new(FailureKind::Timeout, "t"));
        let all =
            [measured(64, 2.0, 3), failed.clone(), measured(128, 3.0, 1), measured(128, 4.0, 1), measured(32, 9.0, 9)];
        let merged = |order: &[usize]| {
            let mut r = Record::new(subject("k"), conditions());
            order.iter().for_each(|&i| r.merge(&all[i..=i]));
            r
        };
        let a = merged(&[0, 1, 2, 3, 4]);
        assert_eq!(a, merged(&[4, 3, 2, 1, 0]));
        assert_eq!(a, merged(&[2, 1, 4, 0, 3]));
        assert_eq!(a.entries.len(), 3);
        assert_eq!(a.entry(&failed.config), Some(&failed));
        assert_eq!(a.winner().unwrap().config.to_string(), "block=128 warps=4 stages=1");
    }

    #[test]
    fn found_t6_and_t7_what_can_be_no_measurement_is_not_believed() {
        let now = now();
        let good = measured(64, 2.5, now);
        assert_eq!(good.implausible(now), None);
        for us in [-1.0, 0.0, 1e308, f64::NAN, f64::INFINITY, 1e12] {
            assert!(measured(64, us, now).implausible(now).is_some(), "{us}");
        }
        // The year 2100.
        assert!(measured(64, 1.0, 4_102_444_800_000).implausible(now).unwrap().contains("dated 2100"));
        let bare = Entry { facts: None, ..good.clone() };
        assert!(bare.implausible(now).unwrap().contains("of which code"));
        let mut odd = good.clone();
        if let Outcome::Measured(t) = &mut odd.outcome {
            t.median_us = 0.001;
        }
        assert!(odd.implausible(now).unwrap().contains("contradict"));
        // A foreign one is shown, but neither wins nor replaces what was measured here.
        let foreign = Entry { imported: true, ..measured(64, 0.5, now + 5) };
        let mut r = Record::new(subject("k"), conditions());
        r.merge(&[odd, measured(128, 1.0, now)]);
        assert_eq!((r.take_implausible().len(), r.entries.len()), (1, 1));
        let mut r = Record::new(subject("k"), conditions());
        r.merge(std::slice::from_ref(&foreign));
        assert!(r.winner().is_none() && r.ranking().len() == 1);
        r.merge(std::slice::from_ref(&good));
        r.merge(&[foreign]);
        assert_eq!(r.winner(), Some(&good));
    }

    #[test]
    fn a_record_survives_json_and_dates_are_right() {
        let mut r = Record::new(subject("k"), conditions());
        r.merge(&[measured(64, 2.5, 3)]);
        assert_eq!(serde_json::from_str::<Record>(&serde_json::to_string(&r).unwrap()).unwrap(), r);
        assert_eq!(date(0), "1970-01-01 00:00:00");
        assert_eq!(date(951_827_696_000), "2000-02-29 12:34:56");
        assert_eq!(date(1_798_761_599_999), "2026-12-31 23:59:59");
        let other = Conditions { driver: "e".into(), ..conditions() };
        assert_eq!(r.conditions.difference(&other).unwrap(), "the driver was d and is e");
    }
}
