//! Trains a small decoder in the shape of GPT-2 on some of Shakespeare's sonnets, character by character. Forward pass, gradient and
//! optimiser are one captured step.
//!
//! ```sh
//! cargo run --release --example train_gpt -- --steps 50
//! cargo run --release --example train_gpt -- --device cuda:0 --mode max-autotune --steps 500
//! cargo run --release --example train_gpt -- --steps 10 --losses losses.json
//! ```

mod data;
mod model;

use clap::Parser;
use data::Text;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use model::{Config, Gpt, State};
use std::error::Error;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Instant;
use tilewright::graph::{Options, Tensor, compile};

#[derive(Parser)]
#[command(about = "Trains a small decoder on Shakespeare's sonnets")]
struct Args {
    /// The device: `cpu`, `cuda:0`, `vulkan:0`, `opencl:0`; by default the best there is.
    #[arg(long)]
    device: Option<String>,
    /// The mode of `compile`.
    #[arg(long, default_value = "default")]
    mode: String,
    /// Steps of training.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    steps: u32,
    /// Writes the loss of every step to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    losses: Option<PathBuf>,
    /// Characters to generate at the end.
    #[arg(long, default_value_t = 200)]
    generate: usize,
}

fn main() {
    if let Err(error) = run(&Args::parse()) {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    let text = Text::sonnets();
    let config = model::small(text.vocabulary());
    let mut options = Options::new().fullgraph(true).set("mode", &args.mode);
    if let Some(device) = &args.device {
        options = options.device(device);
    }
    let step = compile(model::step, options.clone())?;
    let mut state = State::new(Gpt::new(&config));
    let bar = bar(args.steps);
    let mut losses = Vec::new();
    let begin = Instant::now();
    for number in 0..args.steps as usize {
        let x = (state, Tensor::scalar((number + 1) as f32), text.batch(number, model::BATCH, config.context));
        let (loss, next) = step.call(&x)?;
        state = next;
        losses.push(loss.to_vec::<f32>()?[0]);
        bar.show(number + 1, losses[number]);
        if number == 0 {
            let e = step.explain();
            bar.say(&format!(
                "one step: {} primitives in {} kernels on {}; captured and compiled in {:.1} s",
                e.primitives,
                e.kernels,
                e.device,
                begin.elapsed().as_secs_f64()
            ));
        }
    }
    bar.end();
    println!(
        "loss {:.4} before, {:.4} at step {}; {:.1} s",
        losses[0],
        losses[losses.len() - 1],
        losses.len(),
        begin.elapsed().as_secs_f64()
    );
    if args.generate > 0 {
        println!("\n{}", generate(&text, &config, options, state.model, args.generate)?);
    }
    if let Some(path) = &args.losses {
        let json = serde_json::json!({"device": step.explain().device, "mode": args.mode, "losses": losses});
        std::fs::write(path, format!("{json:#}\n")).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
    }
    Ok(())
}

/// The text that the model finds likely after a beginning: of the likeliest characters one at random, the same ones each time.
fn generate(
    text: &Text,
    config: &Config,
    options: Options,
    model: Gpt,
    count: usize,
) -> Result<String, Box<dyn Error>> {
    // The next characters' logits, for a window that ends at a given place.
    let next = compile(
        |(model, window, last): &(Gpt, Tensor, Tensor)| {
            let rows = model.logits(window).reshape(&[config.context, config.vocabulary]);
            rows.gather_rows(last)
        },
        options,
    )?;
    let mut tokens = text.encode("\n");
    for i in 0..count {
        let seen = &tokens[tokens.len().saturating_sub(config.context)..];
        // Places beyond the end do not matter: attention is causal.
        let mut window = seen.to_vec();
        window.resize(config.context, 0);
        let last = Tensor::vector(&[seen.len() as i32 - 1]);
        let x = (model.clone(), Tensor::new(&window, &[1, config.context]), last);
        let logits = next.call(&x)?.to_vec::<f32>()?;
        tokens.push(sample(&logits, model::random_bits(1 << 21, i as u64)));
    }
    Ok(text.decode(&tokens[1..]))
}

/// One of the characters, by their probabilities at a temperature of 0.8.
fn sample(logits: &[f32], bits: u64) -> i32 {
    let top = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let weights: Vec<f64> = logits.iter().map(|l| f64::from((l - top) / 0.8).exp()).collect();
    let mut rest = (bits >> 11) as f64 / (1u64 << 53) as f64 * weights.iter().sum::<f64>();
    let chosen = weights.iter().position(|w| {
        rest -= w;
        rest < 0.0
    });
    chosen.unwrap_or(0) as i32
}

/// Shows the progress: as a bar on a terminal, else as a line for every tenth of the steps.
struct Bar {
    bar: ProgressBar,
    terminal: bool,
    steps: usize,
}

fn bar(steps: u32) -> Bar {
    let terminal = std::io::stderr().is_terminal();
    let bar = ProgressBar::with_draw_target(
        Some(steps.into()),
        if terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() },
    );
    let template = "{bar:30} step {pos}/{len}, {msg}, {eta} left";
    bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
    Bar { bar, terminal, steps: steps as usize }
}

impl Bar {
    fn show(&self, step: usize, loss: f32) {
        self.bar.set_message(format!("loss {loss:.4}"));
        self.bar.set_position(step as u64);
        if !self.terminal && (step == 1 || step.is_multiple_of(self.steps.div_ceil(10)) || step == self.steps) {
            println!("step {step:>5}  loss {loss:.4}");
        }
    }

    /// A line above the bar.
    fn say(&self, line: &str) {
        if self.terminal { self.bar.println(line) } else { println!("{line}") }
    }

    fn end(&self) {
        self.bar.finish_and_clear();
    }
}
