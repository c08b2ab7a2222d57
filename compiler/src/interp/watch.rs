//! Ending kernels that do not end by themselves.

use std::time::{Duration, Instant};

/// How often the clock is read, at least, while the iterations of loops stay as long as they are.
const OFTEN: Duration = Duration::from_millis(1);
/// Most iterations between two readings of the clock.
const MOST: u32 = 1 << 12;

/// A deadline, asked for at each turn of a loop. Reading the clock takes as long as a small instruction, so it is read only
/// about every millisecond.
#[derive(Debug)]
pub(super) struct Watch {
    until: Option<Instant>,
    /// Turns until the clock is read again.
    left: u32,
    /// Turns between the last two readings.
    between: u32,
    last: Option<Instant>,
}

impl Watch {
    /// No deadline for `None`.
    pub fn new(until: Option<Instant>) -> Self {
        Self { until, left: 0, between: 1, last: None }
    }

    /// Is the time up?
    pub fn is_over(&mut self) -> bool {
        let Some(until) = self.until else { return false };
        if self.left > 0 {
            self.left -= 1;
            return false;
        }
        let now = Instant::now();
        let long = self.last.is_some_and(|last| now - last > OFTEN);
        self.between = if long { (self.between / 4).max(1) } else { (self.between * 2).min(MOST) };
        (self.left, self.last) = (self.between, Some(now));
        now >= until
    }
}
