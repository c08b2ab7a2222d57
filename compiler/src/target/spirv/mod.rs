//! SPIR-V for Vulkan compute.
//!
//! # Push constants
//! | byte | what |
//! |---|---|
//! | 0 | `NumPrograms`: 3 x u32 |
//! | 12 | added to `WorkgroupId`, to split grids too large for one dispatch: 3 x u32 |
//! | 24 | the parameters, each at the next multiple of its size; or, if that would pass [`super::Caps::max_param_bytes`], the address (u64) of a buffer that holds them in the same way from byte 0 |
