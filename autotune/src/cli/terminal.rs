//! What goes to a terminal: names that files hold cannot steer it, and lines fit its width.

use std::io::{self, Write};

/// A stream that shows control characters instead of sending them, and breaks lines at blanks.
pub struct Plain<'a> {
    to: &'a mut dyn Write,
    /// Where lines are broken, in characters; nowhere if not given.
    width: Option<usize>,
    line: String,
}

/// Narrower than this nothing is broken any further.
const NARROWEST: usize = 20;
/// What a line that goes on is indented by.
const INDENT: &str = "      ";

impl<'a> Plain<'a> {
    pub fn new(to: &'a mut dyn Write, width: Option<usize>) -> Self {
        Self { to, width: width.map(|w| w.max(NARROWEST)), line: String::new() }
    }

    /// Sends what there is of the last line.
    pub fn finish(mut self) -> io::Result<()> {
        self.send("")?;
        self.to.flush()
    }

    fn send(&mut self, end: &str) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        let text = match self.width {
            Some(width) => fold(line.trim_end(), width),
            None => line,
        };
        self.to.write_all(text.as_bytes())?;
        self.to.write_all(end.as_bytes())
    }
}

impl Write for Plain<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Pieces of text come whole.
        for c in String::from_utf8_lossy(bytes).chars() {
            match c {
                '\n' => self.send("\n")?,
                '\t' => self.line.push(c),
                c if steers(c) => self.line.extend(c.escape_unicode()),
                c => self.line.push(c),
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Does a terminal do something on this character, other than to show it? Controls, and what turns the direction of text round.
pub fn steers(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Breaks a line at blanks. A word that is too long for a line is broken anywhere.
fn fold(line: &str, width: usize) -> String {
    let mut out = String::new();
    let mut rest: Vec<char> = line.chars().collect();
    while rest.len() > width {
        let indent = rest.iter().take_while(|c| **c == ' ').count();
        let blank = (indent + 1..=width).rev().find(|&i| rest[i] == ' ').filter(|&i| i > INDENT.len());
        let tail = rest.split_off(blank.unwrap_or(width));
        out.extend(rest.iter());
        out.truncate(out.trim_end().len());
        out.push('\n');
        rest = INDENT.chars().chain(tail.into_iter().skip_while(|c| *c == ' ')).collect();
    }
    out.extend(rest);
    out
}

/// The width of the terminal that the standard output is, if it is one.
pub fn width() -> Option<usize> {
    #[cfg(unix)]
    {
        let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
        (size.ws_col > 0).then_some(size.ws_col.into())
    }
    #[cfg(not(unix))]
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str, width: Option<usize>) -> String {
        let mut out = Vec::new();
        let mut plain = Plain::new(&mut out, width);
        write!(plain, "{text}").unwrap();
        plain.finish().unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn found_t16_names_cannot_steer_a_terminal() {
        assert_eq!(plain("a\u{1b}[2Jb\rc\u{9b}d\u{202e}e\u{7}", None), "a\\u{1b}[2Jb\\u{d}c\\u{9b}d\\u{202e}e\\u{7}");
        assert_eq!(plain("grün\tλ\n", None), "grün\tλ\n");
    }

    #[test]
    fn found_t16_lines_fit_a_narrow_terminal() {
        let table =
            "  bm=128 bn=64 warps=4 stages=3        12.50        12.10      20       3.21 GFLOP/s  winner, default\n";
        for width in [20, 40, 60] {
            let text = plain(&table.repeat(3), Some(width));
            assert!(text.lines().all(|l| l.chars().count() <= width), "{text}");
            assert!(text.contains("winner,") && text.contains("GFLOP/s"), "{text}");
        }
        assert_eq!(plain(table, Some(200)), table);
        let long = "x".repeat(100);
        assert!(plain(&long, Some(60)).lines().all(|l| l.len() <= 60));
    }
}
