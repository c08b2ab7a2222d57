//! A crate with a kernel of its own and the command `autotune` in one line.
//!
//! ```sh
//! cargo run --release -p own-kernel -- list                      # the library's kernels, and scale_rows
//! cargo run --release -p own-kernel -- run scale_rows --shape rows=512,cols=1000 --dtype f32 --device cpu --budget 5s
//! ```

mod scale_rows;

fn main() -> std::process::ExitCode {
    tilewright::autotune::main()
}
