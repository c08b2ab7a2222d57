#!/usr/bin/env python3
"""The same kernels at the same sizes through PyTorch and, where it is installed, Triton.

    gpu_bench --print-cases > cases.json
    python3 peers.py --cases cases.json --json peers.json [--quick] [--only NAME]

Measured as gpu_bench measures: events on the device, warm-up, the median of many intervals of at least a millisecond,
random normal inputs, and as many sets of inputs as keep the second-level cache from serving them. Outputs are poisoned with
NaN before and checked after against a reference in double precision.
"""

import argparse
import json
import math
import statistics
import sys
import time
import traceback

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

try:
    import triton
    import triton_kernels
except Exception as error:  # Triton is optional: whatever is wrong with it, PyTorch is still measured.
    triton = None
    print(f"Triton is left out: {error}", file=sys.stderr)

DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}
# Twice ours: cuBLAS may add partial sums in half precision.
TOLERANCE = {"f16": 2e-3, "bf16": 1.6e-2, "f32": 2e-5}
# The same policy as gpu_bench: see `timing.rs`.
ROTATED_BYTES = 256 << 20
MOST_SETS = 64
EPS = 1e-5


def sets_for(total):
    return max(1, min(MOST_SETS, -(-ROTATED_BYTES // total)))


def measure(submit, quick):
    """Milliseconds of one submission: median, least, greatest, number of intervals."""
    rounds, warm_up, interval_ms = (11, 0.02, 0.5) if quick else (41, 0.1, 1.0)
    count = 0

    def run(n):
        nonlocal count
        for _ in range(n):
            submit(count)
            count += 1

    def mark():
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    run(1)
    torch.cuda.synchronize()
    begin, batch = time.monotonic(), 1
    while True:
        start = mark()
        run(batch)
        end = mark()
        end.synchronize()
        ms = start.elapsed_time(end)
        if time.monotonic() - begin >= warm_up:
            batch = min(500, max(1, math.ceil(interval_ms / max(ms / batch, 1e-6))))
            break
        batch = min(batch * 2, 64)
    run(batch)
    marks = [mark()]
    for _ in range(rounds):
        run(batch)
        marks.append(mark())
    torch.cuda.synchronize()
    times = [a.elapsed_time(b) / batch for a, b in zip(marks, marks[1:])]
    return {"median": statistics.median(times), "min": min(times), "max": max(times), "n": len(times)}


def normal(dtype, *dims):
    return torch.randn(*dims, device="cuda", dtype=torch.float32).to(dtype)


def some_rows(rows):
    return sorted({i * (rows - 1) // 63 for i in range(64)})


class Task:
    """One case: inputs, outputs, the reference of some rows, and how each peer computes it."""

    def __init__(self, case):
        dtype, dims = DTYPES[case["dtype"]], case["dims"]
        self.count = sets_for(case["bytes"])
        sets = range(self.count)
        self.peers = {}
        op = case["op"]
        if op == "vector_add":
            (n,) = dims
            self.inputs = [(normal(dtype, n), normal(dtype, n)) for _ in sets]
            self.outputs = [torch.empty(n, device="cuda", dtype=dtype) for _ in sets]
            self.peers["torch"] = lambda i, o: torch.add(*i, out=o)
            self.picked = lambda o: o[::101]
            self.reference = lambda i: i[0][::101].double() + i[1][::101].double()
        elif op in ("softmax", "layer_norm"):
            rows, columns = dims
            some = some_rows(rows)
            self.inputs = [(normal(dtype, rows, columns),) for _ in sets]
            self.outputs = [torch.empty(rows, columns, device="cuda", dtype=dtype) for _ in sets]
            self.picked = lambda o: o[some]
            if op == "softmax":
                self.peers["torch"] = lambda i, o: torch.softmax(i[0], 1, out=o)
                self.reference = lambda i: torch.softmax(i[0][some].double(), 1)
                if triton:
                    self.peers["triton"] = lambda i, o: triton_kernels.softmax(i[0], o)
            else:
                weight, bias = normal(dtype, columns), normal(dtype, columns)
                # Layer norm has no `out`: the allocator gives the same memory again and again.
                self.peers["torch"] = lambda i, o: F.layer_norm(i[0], (columns,), weight, bias, EPS)
                self.reference = lambda i: F.layer_norm(
                    i[0][some].double(), (columns,), weight.double(), bias.double(), EPS
                )
        elif op == "matmul":
            m, n, k = dims
            some = some_rows(m)
            self.inputs = [(normal(dtype, m, k), normal(dtype, k, n)) for _ in sets]
            self.outputs = [torch.empty(m, n, device="cuda", dtype=dtype) for _ in sets]
            self.peers["torch"] = lambda i, o: torch.matmul(*i, out=o)
            self.picked = lambda o: o[some]
            self.reference = lambda i: i[0][some].double() @ i[1].double()
            if triton and case["dtype"] != "f32":
                self.peers["triton"] = lambda i, o: triton_kernels.matmul(*i, o)
        elif op == "attention":
            batch, heads, rows, width, causal = dims
            some = some_rows(rows)
            self.inputs = [tuple(normal(dtype, batch, heads, rows, width) for _ in range(3)) for _ in sets]
            self.outputs = [torch.empty(0, device="cuda", dtype=dtype) for _ in sets]
            attend = lambda i: F.scaled_dot_product_attention(*i, is_causal=bool(causal))

            def through(backend):
                # Attention has no `out`: the allocator gives the same memory again and again.
                def run(i, o):
                    with sdpa_kernel(backend):
                        return attend(i)

                return run

            if case["dtype"] == "f32":
                self.peers["torch"] = lambda i, o: attend(i)
            else:
                self.peers["flash"] = through(SDPBackend.FLASH_ATTENTION)
                self.peers["cudnn"] = through(SDPBackend.CUDNN_ATTENTION)
            self.picked = lambda o: o[0, 0][some]

            def reference(i):
                q, k, v = (x[0, 0].double() for x in i)
                scores = q[some] @ k.T / math.sqrt(width)
                if causal:
                    later = torch.arange(rows, device="cuda")[None, :] > torch.tensor(some, device="cuda")[:, None]
                    scores = scores.masked_fill(later, -math.inf)
                return torch.softmax(scores, 1) @ v

            self.reference = reference
        else:
            raise ValueError(f"no peer computes `{op}`")

    def run(self, peer, quick):
        for o in self.outputs:
            o.fill_(float("nan"))
        compute = self.peers[peer]
        # Peers that cannot write into a given output return one; it is checked instead.
        returned = compute(self.inputs[0], self.outputs[0])
        times = measure(lambda i: compute(self.inputs[i % self.count], self.outputs[i % self.count]), quick)
        output = self.outputs[0] if returned is None else returned
        expected = self.reference(self.inputs[0])
        error = (self.picked(output).double() - expected).abs().max() / expected.abs().max()
        if torch.isnan(output).any():
            error = error * float("nan")
        times["error"] = error.item()
        return times


def copy(quick):
    n = 256 << 20
    source, target = normal(torch.float32, n), torch.empty(n, device="cuda")
    times = measure(lambda _: target.copy_(source), quick)
    return times | {"error": 0.0 if torch.equal(source, target) else math.nan}


def launch(quick):
    """What a small operation costs the host, in PyTorch."""
    x = torch.zeros(1024, device="cuda")
    samples = []
    for round in range(10 if quick else 24):
        torch.cuda.synchronize()
        start = time.perf_counter_ns()
        for _ in range(500):
            x.add_(1)
        if round >= 3:
            samples.append((time.perf_counter_ns() - start) / 500)
    torch.cuda.synchronize()
    return {"median": statistics.median(samples), "min": min(samples), "max": max(samples), "n": len(samples)}


def main():
    parser = argparse.ArgumentParser(description="Measures PyTorch and Triton at the sizes of gpu_bench")
    parser.add_argument("--cases", required=True, help="what `gpu_bench --print-cases` printed")
    parser.add_argument("--json", help="writes the results to this file too, as they come")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter measurements")
    parser.add_argument("--only", default="", help="only what has this in its name")
    args = parser.parse_args()
    torch.manual_seed(0)
    # The reference of products is summed in full precision; so is `f32` everywhere, as ours is.
    torch.backends.cuda.matmul.allow_tf32 = False
    with open(args.cases) as file:
        cases = json.load(file)
    properties = torch.cuda.get_device_properties(0)
    result = {
        "machine": {"model": properties.name, "multiprocessors": properties.multi_processor_count},
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "versions": {
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "triton": triton.__version__ if triton else None,
        },
        "measurements": [],
    }

    def add(name, peer, unit, times, tolerance=None):
        line = f"{name:<36} {peer:<7} {times['median']:>10.4f} {times['min']:>10.4f} {times['max']:>10.4f} {unit}"
        if "error" in times:
            # NaN is no small error.
            times["right"] = times["error"] <= tolerance
            line += f"  {times['error']:.1e}" + ("" if times["right"] else " WRONG")
            if math.isnan(times["error"]):
                times["error"] = None
        print(line, flush=True)
        result["measurements"].append({"name": name, "peer": peer, "unit": unit} | times)
        write()

    def fail(name, peer, error):
        print(f"{name:<36} {peer:<7} failed: {str(error).splitlines()[0] if str(error) else error!r}", flush=True)
        result["measurements"].append({"name": name, "peer": peer, "failure": str(error)})
        write()

    def write():
        if args.json:
            with open(args.json, "w") as file:
                json.dump(result, file, indent=1)

    if args.only in "copy":
        add("copy", "torch", "ms", copy(args.quick), 0.0)
    for case in cases:
        if args.only not in case["name"]:
            continue
        try:
            task = Task(case)
        except Exception as error:
            fail(case["name"], "torch", error)
            continue
        for peer in task.peers:
            try:
                add(case["name"], peer, "ms", task.run(peer, args.quick), TOLERANCE[case["dtype"]])
            except Exception as error:
                traceback.print_exc()
                fail(case["name"], peer, error)
        del task
        torch.cuda.empty_cache()
    if args.only in "launch":
        add("launch", "torch", "ns", launch(args.quick))


if __name__ == "__main__":
    main()
