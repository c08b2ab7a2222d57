//! The progress bar: on a terminal only.

use crate::session::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar on the standard error; nothing where that is no terminal.
pub struct Bar(ProgressBar);

impl Bar {
    pub fn new(kernel: &str, hidden: bool) -> Self {
        let target = if hidden { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(Some(1), target);
        if let Ok(style) = ProgressStyle::with_template("{prefix} [{bar:24}] {pos}/{len} {wide_msg}") {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_prefix(kernel.to_owned());
        Self(bar)
    }

    pub fn show(&self, p: &Progress) {
        self.0.set_length(p.total as u64);
        self.0.set_position(p.done as u64);
        let best = p.best.as_ref().map(|(c, us)| format!(", best {us:.1} us: {c}")).unwrap_or_default();
        self.0.set_message(format!("{}, {:.0} s left{best}", p.stage, p.left.as_secs_f64()));
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
