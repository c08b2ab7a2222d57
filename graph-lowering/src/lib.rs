//! Placeholder until the crate below it stands.
