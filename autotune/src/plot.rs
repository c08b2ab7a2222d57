//! A record as a picture: one bar for each configuration, fastest first.

use crate::record::{Outcome, Record, date};
use std::fmt::Write;

/// Most bars.
const BARS: usize = 60;
const ROW: usize = 20;
const LEFT: usize = 330;
const WIDTH: usize = 520;

/// The record as SVG. The bar is the median; the line across its end goes from the 20th to the 80th percentile.
pub fn svg(record: &Record) -> String {
    let ranking = record.ranking();
    let shown = &ranking[..ranking.len().min(BARS)];
    let top = shown
        .iter()
        .filter_map(|e| if let Outcome::Measured(t) = &e.outcome { Some(t.p80_us.max(t.median_us)) } else { None })
        .fold(0.0, f64::max);
    let x = |us: f64| LEFT as f64 + if top > 0.0 { (us / top).clamp(0.0, 1.0) * WIDTH as f64 } else { 0.0 };
    let failed = record.entries.iter().filter(|e| matches!(e.outcome, Outcome::Failed(_))).count();
    let height = 70 + ROW * shown.len().max(1) + 30;
    let mut s = String::new();
    let mut line = |text: std::fmt::Arguments<'_>| {
        // Writing to a string cannot fail.
        let _ = s.write_fmt(text);
        s.push('\n');
    };
    line(format_args!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{height}" viewBox="0 0 {0} {height}" font-family="sans-serif" font-size="12">"#,
        LEFT + WIDTH + 110
    ));
    line(format_args!(r#"<rect width="100%" height="100%" fill="white"/>"#));
    let subject = &record.subject;
    line(format_args!(
        r#"<text x="12" y="24" font-size="15" font-weight="bold">{} ({})</text>"#,
        escape(&subject.kernel),
        escape(&subject.key.to_string())
    ));
    let last = record.entries.iter().map(|e| e.at).max().unwrap_or(0);
    line(format_args!(
        r##"<text x="12" y="44" fill="#555">{}; median time of a launch in microseconds; {} UTC</text>"##,
        escape(&subject.device),
        date(last)
    ));
    for (i, e) in shown.iter().enumerate() {
        let Outcome::Measured(t) = &e.outcome else { continue };
        let y = 60 + i * ROW;
        let colour = match (i, t.eliminated_in_round) {
            (0, _) => "#2a9d54",
            (_, None) => "#4a7fc1",
            (_, Some(_)) => "#b9c3cf",
        };
        line(format_args!(
            r#"<text x="{}" y="{}" text-anchor="end">{}</text>"#,
            LEFT - 8,
            y + 13,
            escape(&e.config.to_string())
        ));
        let end = x(t.median_us);
        line(format_args!(
            r#"<rect x="{LEFT}" y="{}" width="{:.1}" height="{}" fill="{colour}"/>"#,
            y + 2,
            end - LEFT as f64,
            ROW - 5
        ));
        line(format_args!(
            r##"<line x1="{:.1}" x2="{:.1}" y1="{2}" y2="{2}" stroke="#222"/>"##,
            x(t.p20_us),
            x(t.p80_us),
            y + ROW / 2
        ));
        line(format_args!(r#"<text x="{:.1}" y="{}">{:.2}</text>"#, x(t.p80_us).max(end) + 6.0, y + 13, t.median_us));
    }
    let mut foot = Vec::new();
    if ranking.len() > shown.len() {
        foot.push(format!("{} slower ones are not shown", ranking.len() - shown.len()));
    }
    if failed > 0 {
        foot.push(format!("{failed} configurations failed"));
    }
    foot.push("green: winner; grey: given up early".into());
    line(format_args!(r##"<text x="12" y="{}" fill="#555">{}</text>"##, height - 12, foot.join("; ")));
    line(format_args!("</svg>"));
    s
}

fn escape(text: &str) -> String {
    // Control characters have no place in XML, and this may be shown in a terminal.
    let text: String = text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::{conditions, measured, subject};

    #[test]
    fn bars_are_sorted_and_text_is_escaped() {
        let mut r = Record::new(subject("a<b"), conditions());
        r.merge(&[measured(64, 20.0, 1), measured(128, 10.0, 1)]);
        let s = svg(&r);
        assert!(s.starts_with("<svg") && s.trim_end().ends_with("</svg>") && s.contains("a&lt;b"));
        let (fast, slow) = (s.find("block=128").unwrap(), s.find("block=64").unwrap());
        assert!(fast < slow);
        assert!(s.contains(r#"width="260.0""#) && s.contains(r#"width="520.0""#), "{s}");
        assert_eq!(s.matches("<text").count(), s.matches("</text>").count());
        // A record without times, or with times of 0, is a picture too.
        assert!(svg(&Record::new(subject("k"), conditions())).contains("</svg>"));
        let mut zero = Record::new(subject("k"), conditions());
        zero.merge(&[measured(1, 0.0, 1)]);
        assert!(!svg(&zero).contains("NaN"));
    }
}
