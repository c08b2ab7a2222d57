#!/usr/bin/env python3
"""The twin of the example `train_gpt` in JAX: the same weights, batches and optimiser, written independently.

    python3 -m pip install "jax[cpu]"
    python3 examples/data/train_gpt_twin.py --steps 10 --out examples/data/train_gpt_losses.json

Computes in double precision, from the same single-precision weights, so that what is recorded has no rounding of its own.
"""

import argparse
import json
import math
import os
import platform

os.environ.setdefault("JAX_PLATFORMS", "cpu")
import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)

WIDTH, HEADS, LAYERS, CONTEXT, BATCH = 128, 4, 4, 64, 8
SCALE = 0.035
LR, BETA1, BETA2, EPS, DECAY = 6e-4, 0.9, 0.95, 1e-8, 0.01
TEXT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sonnets.txt")


def random_bits(sequence, i):
    """SplitMix64 at place `i` of a sequence; `i` may be an array."""
    with np.errstate(over="ignore"):
        z = (np.uint64(sequence << 32) + np.asarray(i, np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def uniform(sequence, n):
    bits = (random_bits(sequence, np.arange(n)) >> np.uint64(40)).astype(np.float32)
    return bits / np.float32(1 << 23) - np.float32(1)


def weights(vocabulary):
    """Every tensor in the order of the Rust structure; tensor number `i` has the random sequence `i`."""
    all_tensors = []

    def random(scale, *dims):
        values = uniform(len(all_tensors), math.prod(dims)) * np.float32(scale)
        all_tensors.append(values.reshape(dims))

    def constant(value, n):
        all_tensors.append(np.full(n, value, np.float32))

    def norm():
        constant(1, WIDTH)
        constant(0, WIDTH)

    def linear(scale, out, inner):
        random(scale, out, inner)
        constant(0, out)

    small = SCALE / math.sqrt(2.0 * LAYERS)
    random(SCALE, vocabulary, WIDTH)
    random(SCALE, CONTEXT, WIDTH)
    for _ in range(LAYERS):
        norm()
        linear(SCALE, 3 * WIDTH, WIDTH)
        linear(small, WIDTH, WIDTH)
        norm()
        linear(SCALE, 4 * WIDTH, WIDTH)
        linear(small, WIDTH, 4 * WIDTH)
    norm()
    return [jnp.asarray(t, jnp.float64) for t in all_tensors]


def layer_norm(x, scale, shift):
    mean = jnp.mean(x, -1, keepdims=True)
    variance = jnp.mean((x - mean) ** 2, -1, keepdims=True)
    return (x - mean) / jnp.sqrt(variance + 1e-5) * scale + shift


def logits(params, index):
    params = iter(params)
    tokens, places = next(params), next(params)
    batch, length = index.shape
    x = tokens[index] + places[:length]
    seen = jnp.tril(jnp.ones((length, length), bool))
    for _ in range(LAYERS):
        n1, n1b, qkv_w, qkv_b, proj_w, proj_b, n2, n2b, up_w, up_b, down_w, down_b = (next(params) for _ in range(12))
        qkv = layer_norm(x, n1, n1b) @ qkv_w.T + qkv_b
        q, k, v = (
            t.reshape(batch, length, HEADS, WIDTH // HEADS).transpose(0, 2, 1, 3) for t in jnp.split(qkv, 3, axis=-1)
        )
        scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(WIDTH // HEADS)
        mixed = jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(jnp.where(seen, scores, -jnp.inf), -1), v)
        x = x + mixed.transpose(0, 2, 1, 3).reshape(batch, length, WIDTH) @ proj_w.T + proj_b
        inner = layer_norm(x, n2, n2b) @ up_w.T + up_b
        x = x + jax.nn.gelu(inner, approximate=True) @ down_w.T + down_b
    return layer_norm(x, next(params), next(params)) @ tokens.T


def loss(params, index, target):
    logp = jax.nn.log_softmax(logits(params, index), -1)
    return -jnp.mean(jnp.take_along_axis(logp, target[..., None], -1))


@jax.jit
def step(params, means, squares, number, index, target):
    value, gradient = jax.value_and_grad(loss)(params, index, target)
    means = [BETA1 * m + (1 - BETA1) * g for m, g in zip(means, gradient)]
    squares = [BETA2 * v + (1 - BETA2) * g * g for v, g in zip(squares, gradient)]
    params = [
        p * (1 - LR * DECAY) - LR * (m / (1 - BETA1**number)) / (jnp.sqrt(v / (1 - BETA2**number)) + EPS)
        for p, m, v in zip(params, means, squares)
    ]
    return value, params, means, squares


def main():
    parser = argparse.ArgumentParser(description="Trains the twin of the example train_gpt")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--out", help="writes the losses to this file")
    args = parser.parse_args()
    with open(TEXT, encoding="utf-8") as file:
        text = file.read()
    characters = sorted(set(text))
    tokens = np.array([characters.index(c) for c in text], np.int32)
    params = weights(len(characters))
    means = [jnp.zeros_like(p) for p in params]
    squares = [jnp.zeros_like(p) for p in params]
    losses = []
    for number in range(args.steps):
        rows = number * BATCH + np.arange(BATCH)
        starts = (random_bits(1 << 20, rows) % np.uint64(len(tokens) - CONTEXT)).astype(np.int64)
        places = starts[:, None] + np.arange(CONTEXT)
        value, params, means, squares = step(
            params, means, squares, float(number + 1), tokens[places], tokens[places + 1]
        )
        losses.append(float(value))
        print(f"step {number + 1:>4}  loss {losses[-1]:.6f}", flush=True)
    if args.out:
        made = {
            "made_by": "examples/data/train_gpt_twin.py",
            "precision": "float64",
            "versions": {"python": platform.python_version(), "jax": jax.__version__, "numpy": np.__version__},
            "losses": losses,
        }
        with open(args.out, "w", encoding="utf-8") as file:
            json.dump(made, file, indent=2)
            file.write("\n")


if __name__ == "__main__":
    main()
