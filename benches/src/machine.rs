//! What a result was measured on: device, versions, date, commit.

use crate::bare;
use serde_json::{Value, json};
use std::process::Command;
use std::time::SystemTime;
use tilewright_compiler::pipeline::CODEGEN_VERSION;
use tilewright_runtime::DeviceInfo;

/// The circumstances of a run.
#[derive(Clone, Debug)]
pub struct Machine {
    json: Value,
}

impl Machine {
    /// Those of now, on a device.
    pub fn here(device: &DeviceInfo) -> Self {
        let gpu = bare::index_of(&device.name).and_then(bare::facts);
        let json = json!({
            "machine": {
                "device": device.name, "model": device.model, "driver": device.driver,
                "memory_bytes": device.memory_bytes, "os": std::env::consts::OS, "arch": std::env::consts::ARCH,
                "cpus": std::thread::available_parallelism().map_or(0, usize::from),
                "multiprocessors": gpu.map(|f| f.multiprocessors), "l2_bytes": gpu.map(|f| f.l2_bytes),
            },
            "date": date(SystemTime::now()),
            "commit": commit(),
            "versions": { "tilewright": env!("CARGO_PKG_VERSION"), "codegen": CODEGEN_VERSION },
        });
        Self { json }
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        self.json.clone()
    }

    /// For the head of the output.
    pub fn line(&self) -> String {
        let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
        let m = &self.json["machine"];
        format!(
            "{} ({}, driver {}), {}, commit {}",
            text(&m["device"]),
            text(&m["model"]),
            text(&m["driver"]),
            text(&self.json["date"]),
            text(&self.json["commit"])
        )
    }
}

/// The commit measured: `TILEWRIGHT_COMMIT`, which a bundle sets, or that of the working tree.
fn commit() -> String {
    if let Ok(commit) = std::env::var("TILEWRIGHT_COMMIT") {
        return commit;
    }
    let git = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output();
    match git {
        Ok(o) if o.status.success() => String::from_utf8_lossy(&o.stdout).trim().to_owned(),
        _ => "unknown".to_owned(),
    }
}

/// Day and time in UTC: `2026-11-29T16:22:00Z`.
fn date(time: SystemTime) -> String {
    let seconds = time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Days to a date of the Gregorian calendar: https://howardhinnant.github.io/date_algorithms.html, `civil_from_days`,
    // for days since 1970.
    let z = days + 719_468;
    let (era, day_of_era) = (z / 146_097, z % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let mp = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * mp + 2) / 5 + 1;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let at = |s| date(SystemTime::UNIX_EPOCH + Duration::from_secs(s));
        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(at(1_709_251_199), "2024-02-29T23:59:59Z");
        assert_eq!(at(1_798_761_600), "2027-01-01T00:00:00Z");
    }
}
