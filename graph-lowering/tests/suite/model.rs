//! A small decoder, trained: everything together.

use crate::common::{assert_close, noise};
use tilewright_graph_lowering::optim::AdamW;
use tilewright_graph_lowering::{DType, Options, Reduction, Structure, Tensor, compile, structure, value_and_grad};

const VOCABULARY: usize = 11;
const WIDTH: usize = 16;
const HEADS: usize = 2;
const LENGTH: usize = 8;

#[derive(Clone)]
struct Decoder {
    tokens: Tensor,
    places: Tensor,
    norm1: (Tensor, Tensor),
    attention: (Tensor, Tensor),
    norm2: (Tensor, Tensor),
    mlp: (Tensor, Tensor),
}
structure!(Decoder { tokens, places, norm1, attention, norm2, mlp });

impl Decoder {
    fn new() -> Self {
        let weight = |seed, dims: &[usize]| noise(seed, dims) * 0.3;
        let norm = || (Tensor::full(DType::F32, &[WIDTH], 1.0), Tensor::zeros(DType::F32, &[WIDTH]));
        Self {
            tokens: weight(1, &[VOCABULARY, WIDTH]),
            places: weight(2, &[LENGTH, WIDTH]),
            norm1: norm(),
            attention: (weight(3, &[3 * WIDTH, WIDTH]), weight(4, &[WIDTH, WIDTH])),
            norm2: norm(),
            mlp: (weight(5, &[4 * WIDTH, WIDTH]), weight(6, &[WIDTH, 4 * WIDTH])),
        }
    }

    /// The logits of the next token at each place of `[batch, length]`.
    fn logits(&self, index: &Tensor) -> Tensor {
        let batch = index.dims()[0];
        let x = self.tokens.embedding(index) + &self.places;
        let normed = x.layer_norm(Some(&self.norm1.0), Some(&self.norm1.1), 1e-5);
        let qkv = normed.linear(&self.attention.0, None);
        let part = |i: usize| {
            let heads = [batch, LENGTH, HEADS, WIDTH / HEADS];
            qkv.narrow(2, i * WIDTH, WIDTH).reshape(&heads).permute(&[0, 2, 1, 3])
        };
        let mixed = part(0).attention(&part(1), &part(2), None, true, None);
        let mixed = mixed.permute(&[0, 2, 1, 3]).reshape(&[batch, LENGTH, WIDTH]);
        let x = x + mixed.linear(&self.attention.1, None);
        let normed = x.layer_norm(Some(&self.norm2.0), Some(&self.norm2.1), 1e-5);
        let x = &x + normed.linear(&self.mlp.0, None).gelu_tanh().linear(&self.mlp.1, None);
        // The table of tokens reads them out, too.
        x.linear(&self.tokens, None)
    }
}

/// One step of training: the loss, and the next parameters, means and mean squares.
type State = (Decoder, Vec<Tensor>, Vec<Tensor>);

fn train((state, step, index, target): &(State, Tensor, Tensor, Tensor)) -> (Tensor, State) {
    let (model, m, v) = state;
    let loss = |model: &Decoder| model.logits(index).cross_entropy(target, None, Reduction::Mean);
    let (loss, gradient) = value_and_grad(loss, model).unwrap();
    let optimiser = AdamW { lr: 1e-2, ..AdamW::default() };
    let (mut params, mut means, mut squares) = (vec![], vec![], vec![]);
    for (((p, g), m), v) in model.tensors().iter().zip(gradient.tensors()).zip(m).zip(v) {
        let (p, m, v) = optimiser.step(p, &g, m, v, step);
        params.push(p);
        means.push(m);
        squares.push(v);
    }
    (loss, (model.rebuild(&mut params.into_iter()), means, squares))
}

fn start() -> (State, Tensor, Tensor) {
    let model = Decoder::new();
    let zeros: Vec<Tensor> = model.tensors().iter().map(Tensor::zeros_like).collect();
    let text: Vec<i32> = (0..=2 * LENGTH as i32).map(|i| i * i % VOCABULARY as i32).collect();
    let index = Tensor::new(&text[..2 * LENGTH], &[2, LENGTH]);
    let target = Tensor::new(&text[1..], &[2, LENGTH]);
    ((model, zeros.clone(), zeros), index, target)
}

#[test]
fn a_decoder_trains_alike_on_the_host_and_in_fused_kernels() {
    let (mut state, index, target) = start();
    let host = compile(train, Options::new().backend("interpreter")).unwrap();
    let fused = compile(train, Options::new().device("cpu").fullgraph(true)).unwrap();
    let mut losses = Vec::new();
    for step in 1..=30 {
        let x = (state, Tensor::scalar(step as f32), index.clone(), target.clone());
        let (loss, next) = fused.call(&x).unwrap();
        if step <= 3 {
            let (expected, expected_next) = host.call(&x).unwrap();
            assert_close("loss", &loss, &expected, 1e-5);
            for (a, b) in next.tensors().iter().zip(expected_next.tensors()) {
                // The first steps divide gradients by their own size: tiny ones may differ in sign.
                assert_close("state", a, &b, 3e-2);
            }
        }
        losses.push(loss.to_f64s().unwrap()[0]);
        state = next;
    }
    assert!(losses[29] < 0.5 * losses[0], "{losses:?}");
    let e = fused.explain();
    assert_eq!(e.graphs, 1);
    assert!(e.kernels < e.primitives / 4, "{} kernels for {} primitives\n{e}", e.kernels, e.primitives);
}

#[test]
fn the_first_losses_are_the_same_in_every_way() {
    let (state, index, target) = start();
    let x = (state, Tensor::scalar(1.0f32), index, target);
    crate::common::everywhere("one step of training", |x| train(x).0, &x, 1e-5);
}
