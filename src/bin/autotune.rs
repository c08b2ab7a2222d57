//! The command `autotune` for the kernels of the library: `cargo run --release --bin autotune -- --help`.

fn main() -> std::process::ExitCode {
    tilewright::autotune::main()
}
