//! What a family of generated inputs came to.

/// Counts and faults of one family.
#[derive(Debug, Default)]
pub struct Report {
    /// Inputs, kernels, graphs or programs that were run.
    pub programs: u64,
    /// What else there is to say, a line each.
    pub notes: Vec<String>,
    /// What went wrong, each with what is needed to see it again.
    pub faults: Vec<String>,
}

impl Report {
    /// Adds what another run of the same family came to.
    pub fn add(&mut self, other: Report) {
        self.programs = self.programs.saturating_add(other.programs);
        // Of counts that each run tells anew the last ones are enough.
        if !other.notes.is_empty() {
            self.notes = other.notes;
        }
        self.faults.extend(other.faults);
    }
}
