//! The `#[kernel]` and `#[device_fn]` attribute macros.
