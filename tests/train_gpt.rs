//! The decoder of the example `train_gpt` beside its twin in JAX, `examples/data/train_gpt_twin.py`.

// The example's own model and data, of which the test needs a part.
#[allow(dead_code)]
#[path = "../examples/train_gpt/data.rs"]
mod data;
#[allow(dead_code)]
#[path = "../examples/train_gpt/model.rs"]
mod model;

use data::Text;
use model::{Gpt, State};
use tilewright::graph::{Options, Tensor, compile};

const RECORDED: &str = include_str!("../examples/data/train_gpt_losses.json");

/// Trains so many steps on a device; every loss must be that of the twin, which computes in double precision.
fn compare(device: &str, steps: usize) {
    let recorded: serde_json::Value = serde_json::from_str(RECORDED).unwrap();
    let recorded: Vec<f64> = serde_json::from_value(recorded["losses"].clone()).unwrap();
    assert!(recorded.len() >= steps);
    let text = Text::sonnets();
    let config = model::small(text.vocabulary());
    let step = compile(model::step, Options::new().fullgraph(true).device(device)).unwrap();
    let mut state = State::new(Gpt::new(&config));
    for (number, expected) in recorded.iter().take(steps).enumerate() {
        let x = (state, Tensor::scalar((number + 1) as f32), text.batch(number, model::BATCH, config.context));
        let (loss, next) = step.call(&x).unwrap();
        let loss = f64::from(loss.to_vec::<f32>().unwrap()[0]);
        // Sums of up to 512 terms in single precision are off by some 1e-6; the optimiser divides gradients by their size, which
        // makes errors of small ones matter, and every step adds to those before.
        let tolerance = 1e-5 * (number + 1) as f64;
        assert!((loss / expected - 1.0).abs() < tolerance, "loss {number} on {device} is {loss}, expected {expected}");
        state = next;
    }
    assert_eq!(step.explain().graphs, 1);
}

#[test]
fn ten_losses_are_those_of_the_twin() {
    compare("cpu", 10);
}

#[test]
fn other_devices_have_the_first_losses_too() {
    for device in tilewright::Device::list() {
        if device.unusable.is_none() && device.name != "cpu" {
            compare(&device.name, 2);
        }
    }
}
