//! Tilewright facade.
