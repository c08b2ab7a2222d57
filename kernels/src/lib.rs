//! The kernel library: `#[kernel]` functions with the configurations that suit each device, and host references.
//!
//! Each function takes views and gives a [`tilewright_runtime::Launch`], so that its code can be looked at before it runs:
//! ```
//! use tilewright_kernels::softmax;
//! use tilewright_runtime::Device;
//! # fn main() -> tilewright_runtime::Result<()> {
//! let dev = Device::open("cpu")?;
//! let x = dev.buffer_from(&[0.0f32, 0.0, 1.0, 1.0])?;
//! let y = dev.zeros::<f32>(4)?;
//! softmax(x.view([2, 2])?, y.view([2, 2])?)?.launch()?;
//! assert_eq!(y.to_vec()?, [0.5; 4]);
//! # Ok(())
//! # }
//! ```

extern crate tilewright_runtime as tilewright;

mod attention;
mod attention_backward;
mod attention_pass;
mod config;
mod layer_norm;
mod matmul;
pub mod reference;
mod softmax;
pub mod tuned;
mod vector_add;

pub use attention::{
    Attention, AttentionConfig, AttentionTiles, attention, attention_lse, attention_masked, attention_masked_lse,
    attention_tiled, attention_with, keeps_order,
};
pub use attention_pass::{AttentionKernel, AttentionPass};
pub use config::{RowConfig, row_config};
pub use layer_norm::{layer_norm, layer_norm_long, layer_norm_row};
pub use matmul::{MatmulConfig, matmul, matmul_tiled, matmul_with};
pub use softmax::{softmax, softmax_long, softmax_row};
pub use vector_add::{vector_add, vector_add_block};
