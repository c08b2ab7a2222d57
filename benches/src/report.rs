//! One measurement, the table on the screen, and the JSON that is recorded.

use crate::data::Check;
use crate::machine::Machine;
use crate::timing::Summary;
use serde_json::{Map, Value, json};
use std::path::Path;
use std::time::Duration;
use tilewright_runtime::CompiledKernel;

/// One line of the table.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// What results are compared by.
    pub name: String,
    /// Kernel or topic.
    pub group: &'static str,
    /// `ms` or `ns`.
    pub unit: &'static str,
    /// The samples.
    pub time: Summary,
    /// Work a second, and its unit.
    pub rate: Option<(f64, &'static str)>,
    /// Rate over that of a ceiling, and the ceiling's name.
    pub ratio: Option<(f64, String)>,
    /// The comparison with the reference.
    pub check: Option<Check>,
    /// More facts, for the JSON.
    pub extra: Map<String, Value>,
}

impl Measurement {
    /// A time.
    pub fn new(name: impl Into<String>, group: &'static str, unit: &'static str, time: Summary) -> Self {
        Self { name: name.into(), group, unit, time, rate: None, ratio: None, check: None, extra: Map::new() }
    }

    /// With the rate that comes of moving `bytes` in a time in ms.
    #[must_use]
    pub fn bytes(mut self, bytes: u64) -> Self {
        self.rate = Some((bytes as f64 / self.time.median / 1e6, "GB/s"));
        self.extra.insert("bytes".into(), bytes.into());
        self
    }

    /// With the rate that comes of `flops` operations in a time in ms.
    #[must_use]
    pub fn flops(mut self, flops: f64) -> Self {
        self.rate = Some((flops / self.time.median / 1e9, "TFLOP/s"));
        self.extra.insert("flops".into(), flops.into());
        self
    }

    /// With the ratio of its rate to a ceiling's.
    #[must_use]
    pub fn against(mut self, name: &str, ceiling: f64) -> Self {
        self.ratio = self.rate.map(|(rate, _)| (rate / ceiling, name.to_owned()));
        self
    }

    /// With a comparison.
    #[must_use]
    pub fn checked(mut self, check: Check) -> Self {
        self.check = Some(check);
        self
    }

    /// With what is known of the kernel.
    #[must_use]
    pub fn kernel(mut self, kernel: &CompiledKernel) -> Self {
        self.extra.insert("kernel".into(), kernel_json(kernel));
        self
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        let mut all = self.extra.clone();
        all.insert("name".into(), self.name.clone().into());
        all.insert("group".into(), self.group.into());
        all.insert("unit".into(), self.unit.into());
        for (key, value) in [("median", self.time.median), ("min", self.time.min), ("max", self.time.max)] {
            all.insert(key.into(), value.into());
        }
        all.insert("n".into(), self.time.n.into());
        if let Some((rate, unit)) = self.rate {
            all.insert("rate".into(), rate.into());
            all.insert("rate_unit".into(), unit.into());
        }
        if let Some((ratio, ceiling)) = &self.ratio {
            all.insert("ratio".into(), (*ratio).into());
            all.insert("ceiling".into(), ceiling.clone().into());
        }
        if let Some(check) = self.check {
            // NaN becomes null.
            all.insert("error".into(), check.error.into());
            all.insert("tolerance".into(), check.tolerance.into());
            all.insert("right".into(), check.passed().into());
        }
        Value::Object(all)
    }

    fn line(&self) -> String {
        let Summary { median, min, max, n } = self.time;
        let rate = self.rate.map(|(r, unit)| format!("{r:.1} {unit}")).unwrap_or_default();
        let ratio = self.ratio.as_ref().map(|(r, of)| format!("{r:.3} {of}")).unwrap_or_default();
        let check = match &self.check {
            Some(c) if c.passed() => format!("{:.1e}", c.error),
            Some(c) => format!("{:.1e} WRONG, over {:.0e}", c.error, c.tolerance),
            None => String::new(),
        };
        let digits = if self.unit == "ns" { 0 } else { 4 };
        let text = format!(
            "{:<36} {median:>10.digits$} {min:>10.digits$} {max:>10.digits$} {n:>4} {:<2}  {rate:>15}  {ratio:<12} {check}",
            self.name, self.unit
        );
        text.trim_end().to_owned()
    }
}

/// The head of the table.
pub fn head() -> String {
    format!(
        "{:<36} {:>10} {:>10} {:>10} {:>4} {:<2}  {:>15}  {:<12} error",
        "name", "median", "min", "max", "n", "", "rate", "of ceiling"
    )
}

/// What a kernel takes of the device.
pub fn kernel_json(kernel: &CompiledKernel) -> Value {
    let m = kernel.metadata();
    let ms = |d: Duration| d.as_secs_f64() * 1e3;
    json!({
        "name": m.name, "threads": m.threads, "shared_bytes": m.shared_bytes,
        "registers": m.resources.registers, "spill_bytes": m.resources.spill_bytes,
        "local_bytes": m.resources.local_bytes, "code_bytes": m.resources.code_bytes,
        "build_ms": ms(m.build_time), "compile_ms": ms(m.compile_time), "driver_ms": ms(m.driver_time),
        "cache": format!("{:?}", m.cache),
    })
}

/// What was measured so far. Every addition is printed, and written at once, so that a run cut short leaves what it had.
pub struct Report<'a> {
    machine: Machine,
    path: Option<&'a Path>,
    measurements: Vec<Value>,
    failures: Vec<String>,
}

impl<'a> Report<'a> {
    /// An empty one, to be written to `path`.
    pub fn new(machine: Machine, path: Option<&'a Path>) -> Self {
        Self { machine, path, measurements: Vec::new(), failures: Vec::new() }
    }

    /// Adds a measurement.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn add(&mut self, m: &Measurement) -> std::io::Result<()> {
        println!("{}", m.line());
        if m.check.is_some_and(|c| !c.passed()) {
            self.failures.push(format!("{}: the result is wrong", m.name));
        }
        self.measurements.push(m.json());
        self.write()
    }

    /// Adds what could not be measured. If it `counts`, the run has failed.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn add_failure(&mut self, name: &str, group: &str, why: &str, counts: bool) -> std::io::Result<()> {
        println!("{name:<36} {}", why.lines().next().unwrap_or_default());
        if counts {
            self.failures.push(format!("{name}: {why}"));
        }
        self.measurements.push(json!({"name": name, "group": group, "failure": why}));
        self.write()
    }

    /// What failed.
    pub fn failures(&self) -> &[String] {
        &self.failures
    }

    fn write(&self) -> std::io::Result<()> {
        let Some(path) = self.path else { return Ok(()) };
        let mut all = self.machine.json();
        all["measurements"] = self.measurements.clone().into();
        all["failures"] = self.failures.clone().into();
        std::fs::write(path, format!("{all:#}\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_ratios_follow_from_the_median() {
        let time = Summary { median: 2.0, min: 1.0, max: 3.0, n: 5 };
        let m = Measurement::new("copy", "copy", "ms", time).bytes(4_000_000).against("copy", 4.0);
        assert_eq!(m.rate, Some((2.0, "GB/s")));
        assert_eq!(m.ratio, Some((0.5, "copy".into())));
        let json = m.checked(Check { error: f64::NAN, tolerance: 1.0 }).json();
        assert_eq!((&json["right"], &json["error"], &json["n"]), (&Value::Bool(false), &Value::Null, &json!(5)));
    }
}
