//! The kernels of this library as the autotuner knows them: their spaces, their heuristics, and their tuned launches.
//!
//! Each function has the arguments of its namesake in the crate's root, and chooses the configuration through
//! [`tilewright_autotune::Tuner::global`]: the stored winner, or what that namesake would take.

mod attention;
mod layer_norm;
mod matmul;
mod softmax;
mod vector_add;

pub use attention::attention;
pub use layer_norm::layer_norm;
pub use matmul::matmul;
pub use softmax::softmax;
pub use vector_add::vector_add;

use tilewright_autotune::Tunable;

/// The kernels. Calling this also makes sure that the linker keeps their registrations.
pub fn all() -> [&'static Tunable; 5] {
    [vector_add::tunable(), softmax::tunable(), layer_norm::tunable(), matmul::tunable(), attention::tunable()]
}

tilewright_autotune::register!(
    vector_add::tunable,
    softmax::tunable,
    layer_norm::tunable,
    matmul::tunable,
    attention::tunable
);

/// Calls a generic function for the element type of a problem.
macro_rules! for_dtype {
    ($p:expr, $make:ident) => {
        match $p.dtype {
            tilewright_runtime::DType::F32 => $make::<f32>($p),
            tilewright_runtime::DType::F16 => $make::<half::f16>($p),
            tilewright_runtime::DType::BF16 => $make::<half::bf16>($p),
            tilewright_runtime::DType::F64 => $make::<f64>($p),
            _ => Err($p.unlisted()),
        }
    };
}
use for_dtype;
