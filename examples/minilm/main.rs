//! A real model: how alike sentences are, by the encoder all-MiniLM-L6-v2 with its published weights.
//!
//! ```sh
//! cargo run --release --example minilm -- "a cat sits" "a kitten rests" "stock markets fell"
//! cargo run --release --example minilm -- --device cpu "one" "another"   # or cuda:0, vulkan:0, opencl:0
//! cargo run --release --example minilm -- --explain "one"                # also which kernels it became
//! ```

mod model;

use clap::Parser;
use model::files::Files;
use model::{Encoder, similarity};
use std::error::Error;
use std::time::Instant;
use tilewright::graph::Options;

#[derive(Parser)]
#[command(about = "Says how alike sentences are")]
struct Args {
    /// The sentences.
    #[arg(required = true)]
    sentences: Vec<String>,
    /// The device: `cpu`, `cuda:0`, `vulkan:0`, `opencl:0`; by default the best there is.
    #[arg(long)]
    device: Option<String>,
    /// What runs the graph: `tilewright`, `interpreter` or `eager`.
    #[arg(long, default_value = "tilewright")]
    backend: String,
    /// How the graph is run; see `Options::set`.
    #[arg(long, default_value = "default")]
    mode: String,
    /// Prints what the network was compiled to.
    #[arg(long)]
    explain: bool,
}

fn main() {
    if let Err(error) = run(&Args::parse()) {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    let mut options = Options::new().backend(&args.backend).set("mode", &args.mode);
    if let Some(device) = &args.device {
        options = options.device(device);
    }
    let start = Instant::now();
    let files = Files::find()?;
    let encoder = Encoder::new(&files, options)?;
    let loaded = start.elapsed();
    let sentences: Vec<&str> = args.sentences.iter().map(String::as_str).collect();
    let embeddings = encoder.encode(&sentences)?;
    let first = start.elapsed() - loaded;
    let again = Instant::now();
    encoder.encode(&sentences)?;

    let explanation = encoder.network().explain();
    if args.explain {
        println!("{explanation}");
    }
    for (i, sentence) in sentences.iter().enumerate() {
        let row: Vec<String> = embeddings.iter().map(|e| format!("{:6.3}", similarity(&embeddings[i], e))).collect();
        println!("{}  {sentence}", row.join(" "));
    }
    println!(
        "loaded in {:.2} s; {} kernels on {}; first call {:.2} s, with compiling; again {:.3} s",
        loaded.as_secs_f64(),
        explanation.kernels,
        if explanation.device.is_empty() { "the host" } else { &explanation.device },
        first.as_secs_f64(),
        again.elapsed().as_secs_f64()
    );
    Ok(())
}
