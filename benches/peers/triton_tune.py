#!/usr/bin/env python3
"""Triton's autotuner over the configurations of gpu_tune: how long it takes and what it finds.

    gpu_tune --print-list > list.json
    python3 triton_tune.py --list list.json --json triton.json [--limit SECONDS]

The first call of a kernel that knows nothing yet is timed: it compiles every configuration and measures it. Each case has a
process and a cache of compiled code of its own, and the driver's cache is off. The winner is then measured as peers.py measures
all products, and checked. What cannot be measured (no Triton, no GPU, an error, a case that takes longer than the limit) is
said, in the JSON too.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

TOLERANCE = 2e-3


def tune(case, configs):
    """One case, in this process: a row of the result."""
    import torch
    import triton
    import triton_kernels
    from peers import Task

    if not torch.cuda.is_available():
        raise RuntimeError("PyTorch finds no CUDA device")
    torch.manual_seed(0)
    task = Task(case)
    kernel = triton_kernels.matmul_tuned([triton_kernels.product_config(**c) for c in configs])

    def compute(inputs, output):
        triton_kernels.matmul(*inputs, output, kernel=kernel)

    # Driver, PyTorch and inputs are ready before the clock starts.
    torch.cuda.synchronize()
    start = time.monotonic()
    compute(task.inputs[0], task.outputs[0])
    torch.cuda.synchronize()
    seconds = time.monotonic() - start
    task.peers["tuned"] = compute
    times = task.run("tuned", quick=True)
    # A configuration that does not fit the device has infinite times.
    timings = getattr(kernel, "configs_timings", None) or {}
    least = [min(t) if isinstance(t, (list, tuple)) else t for t in timings.values()]
    return {
        "name": case["name"],
        "configs": len(configs),
        "failed": sum(1 for t in least if t == float("inf")),
        "seconds": seconds,
        "seconds_per_config": seconds / len(configs),
        "best": str(kernel.best_config),
        "ms": times["median"],
        "tflops": case["flops"] / times["median"] / 1e9,
        "right": times["error"] <= TOLERANCE,
        "versions": {"torch": torch.__version__, "cuda": torch.version.cuda, "triton": triton.__version__},
    }


def in_process_of_its_own(number, listed, limit):
    """Case `number` of the file `listed`; raises what went wrong."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as cache:
        env = os.environ | {"TRITON_CACHE_DIR": cache, "CUDA_CACHE_DISABLE": "1"}
        command = [sys.executable, __file__, "--list", listed, "--child", str(number)]
        done = subprocess.run(command, env=env, timeout=limit, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise RuntimeError(lines[-1])
    return json.loads(done.stdout.strip().splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description="Times Triton's autotuner over the configurations of gpu_tune")
    parser.add_argument("--list", required=True, help="what `gpu_tune --print-list` printed")
    parser.add_argument("--json", help="writes the results to this file too, as they come")
    parser.add_argument("--limit", type=int, default=120, help="the most seconds one case may take")
    parser.add_argument("--child", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    with open(args.list) as file:
        listed = json.load(file)
    if args.child is not None:
        print(json.dumps(tune(listed["cases"][args.child], listed["configs"])))
        return 0
    result = {"versions": {}, "tuning": [], "failures": []}
    print(f"{'product':<30} {'configs':>7} {'failed':>6} {'seconds':>8} {'s/config':>9} {'TFLOP/s':>9}  best")
    for number, case in enumerate(listed["cases"]):
        name = case["name"]
        try:
            row = in_process_of_its_own(number, args.list, args.limit)
            result["versions"] = row.pop("versions")
            result["tuning"].append(row)
            print(
                f"{name:<30} {row['configs']:>7} {row['failed']:>6} {row['seconds']:>8.2f} "
                f"{row['seconds_per_config']:>9.3f} {row['tflops']:>9.3f}  {row['best']}"
                + ("" if row["right"] else "  WRONG RESULT"),
                flush=True,
            )
        except Exception as error:
            text = f"longer than {args.limit} s" if isinstance(error, subprocess.TimeoutExpired) else str(error)
            result["failures"].append(f"{name}: {text}")
            print(f"{name:<30} failed: {text}", flush=True)
        if args.json:
            with open(args.json, "w") as file:
                json.dump(result, file, indent=1)
    return 0 if result["tuning"] else 1


if __name__ == "__main__":
    sys.exit(main())
