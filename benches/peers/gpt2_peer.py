#!/usr/bin/env python3
"""The PyTorch twin of `gpt2_bench`: a decoder in the shape of GPT-2's smallest, bf16, random weights, eager and compiled.

    python3 gpt2_peer.py [--json FILE.json] [--modes eager,default,reduce-overhead,max-autotune] [--quick]

Prints, per case and mode, the median milliseconds of a call (L2 flushed between runs) and the seconds of the first call. A mode that
fails is a row with the error. Needs a CUDA GPU with torch and triton.
"""

import argparse
import json
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from triton.testing import do_bench

V, D, HEADS, LAYERS, T_MAX = 50304, 768, 12, 12, 1024
# Batch, tokens, with the loss and its gradient? `Case::all` in benches/src/gpt2.rs has the same.
CASES = [(8, 1024, False), (1, 128, False), (8, 1024, True)]


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.qkv, self.proj = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.up, self.down = nn.Linear(D, 4 * D), nn.Linear(4 * D, D)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, HEADS, D // HEADS).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(a.transpose(1, 2).reshape(b, t, D))
        return x + self.down(F.gelu(self.up(self.ln2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok, self.pos = nn.Embedding(V, D), nn.Embedding(T_MAX, D)
        self.blocks = nn.ModuleList([Block() for _ in range(LAYERS)])
        self.ln, self.head = nn.LayerNorm(D), nn.Linear(D, V, bias=False)

    def forward(self, ids):
        x = self.tok(ids) + self.pos(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.ln(x))


def measure(model, batch, seq, train, mode, rep):
    """One row: a case in a mode."""
    torch._dynamo.reset()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    ids = torch.randint(0, V, (batch, seq), device="cuda")
    target = torch.randint(0, V, (batch, seq), device="cuda")
    f = model if mode == "eager" else torch.compile(model, mode=mode, dynamic=False)

    def step():
        if not train:
            with torch.no_grad():
                return f(ids)
        F.cross_entropy(f(ids).float().view(-1, V), target.view(-1)).backward()
        for q in model.parameters():
            q.grad = None

    start = time.time()
    step()
    torch.cuda.synchronize()
    first = time.time() - start
    ms = do_bench(step, warmup=50, rep=rep, return_mode="median")
    return {"ms": ms, "first_call_s": first, "peak_bytes": torch.cuda.max_memory_allocated()}


def main():
    p = argparse.ArgumentParser(description="Measures a decoder of GPT-2's size in PyTorch")
    p.add_argument("--json", "--out", dest="json")
    p.add_argument("--modes", default="eager,default,reduce-overhead")
    p.add_argument("--quick", action="store_true")
    a = p.parse_args()
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    model = Gpt().cuda().bfloat16()
    rows = []
    for batch, seq, train in CASES:
        for mode in a.modes.split(","):
            row = {"batch": batch, "seq": seq, "train": train, "mode": mode}
            try:
                row |= measure(model, batch, seq, train, mode, 60 if a.quick else 200)
            except Exception as e:  # A row that says so is worth more than no rows.
                row["error"] = f"{type(e).__name__}: {e}"[:500]
            rows.append(row)
            print(row, flush=True)
            # As they come, so that a run cut short leaves what it had.
            if a.json:
                versions = {"torch": torch.__version__, "cuda": torch.version.cuda}
                with open(a.json, "w") as file:
                    json.dump({"device": torch.cuda.get_device_name(), "versions": versions, "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
