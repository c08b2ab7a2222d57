#!/usr/bin/env python3
"""Ours beside the peers, and whether the targets are met.

    python3 table.py OURS.json [OURS_AGAIN.json] [--peers PEERS.json] [--json TABLE.json]

Ours is measured before and after the peers: where the two differ by more than a few per cent, the machine has drifted, and
the ratios mean little. Each ratio is a speed: ours over the peer's, above 1 where ours is faster. Ours stands for the mean of
its two medians.
"""

import argparse
import json
import statistics

COMPILE_MS = 10
LAUNCH_NS = 1000
VECTOR_ADD, SOFTMAX, MATMUL = 0.95, 0.85, 0.55
# Streams count from here on: smaller ones fit a cache, or are over before the memory is busy.
LARGE_BYTES = 256 << 20


def load(path):
    with open(path) as file:
        return json.load(file)


def by_name(result):
    return {m["name"]: m for m in result["measurements"] if "median" in m}


def compare(ours, peers):
    """One row for each of our measurements."""
    runs = [by_name(o) for o in ours]
    rows = []
    for name in dict.fromkeys(name for run in runs for name in run):
        found = [run[name] for run in runs if name in run]
        row = {
            "name": name,
            "group": found[0]["group"],
            "unit": found[0]["unit"],
            "ours": [m["median"] for m in found],
            "bytes": found[0].get("bytes"),
            "rate": statistics.mean(m["rate"] for m in found) if "rate" in found[0] else None,
            "rate_unit": found[0].get("rate_unit"),
            "of_copy": statistics.mean(m["ratio"] for m in found) if "ratio" in found[0] else None,
            "over_bare_ns": statistics.mean(m["over_bare_ns"] for m in found) if "over_bare_ns" in found[0] else None,
            "right": all(m.get("right", True) for m in found),
            "peers": {},
        }
        mean = statistics.mean(row["ours"])
        for m in peers["measurements"] if peers else []:
            if m["name"] == name and "median" in m:
                row["peers"][m["peer"]] = {"time": m["median"], "ratio": m["median"] / mean, "right": m.get("right")}
        rows.append(row)
    return rows


def targets(rows):
    """What the product promises, and what was measured."""
    by = {r["name"]: r for r in rows}
    found = []

    def target(what, value, least=None, most=None, form="{:.3f}"):
        met = value >= least if least is not None else value < most
        bound = f">= {least}" if least is not None else f"< {most}"
        found.append({"target": what, "bound": bound, "measured": form.format(value), "met": bool(met)})

    for r in rows:
        if r["of_copy"] is not None and (r["bytes"] or 0) >= LARGE_BYTES and r["group"] in ("vector_add", "softmax"):
            least = VECTOR_ADD if r["group"] == "vector_add" else SOFTMAX
            target(f"{r['name']}, of the copy bandwidth", r["of_copy"], least=least)
    torch = by.get("matmul f16 4096x4096x4096", {}).get("peers", {}).get("torch")
    if torch:
        target("matmul f16 4096x4096x4096, of torch.matmul", torch["ratio"], least=MATMUL)
    for name in ("launch", "launch prepared"):
        over = by.get(name, {}).get("over_bare_ns")
        if over is not None:
            target(f"{name}, ns over a bare cuLaunchKernel", over, most=LAUNCH_NS, form="{:.0f}")
    for kernel in ("vector_add", "softmax", "layer_norm", "matmul"):
        for kind in ("cold", "warm"):
            row = by.get(f"compile {kernel}, {kind}")
            if row:
                target(f"compile {kernel} to code, {kind}, ms", statistics.mean(row["ours"]), most=COMPILE_MS)
    return found


def text(rows, found):
    """The table for the screen."""
    names = list(dict.fromkeys(p for r in rows for p in r["peers"]))
    head = f"{'name':<36} {'ours':>10} {'again':>10} {'':<2} {'rate':>15} {'of copy':>8}"
    lines = [head + "".join(f" {p:>10} {'ours/' + p:>12}" for p in names)]
    for r in rows:
        digits = 0 if r["unit"] == "ns" else 4
        again = f"{r['ours'][1]:.{digits}f}" if len(r["ours"]) > 1 else ""
        rate = f"{r['rate']:.1f} {r['rate_unit']}" if r["rate"] is not None else ""
        of_copy = f"{r['of_copy']:.3f}" if r["of_copy"] is not None else ""
        line = f"{r['name']:<36} {r['ours'][0]:>10.{digits}f} {again:>10} {r['unit']:<2} {rate:>15} {of_copy:>8}"
        for p in names:
            peer = r["peers"].get(p)
            line += f" {peer['time']:>10.{digits}f} {peer['ratio']:>12.3f}" if peer else f" {'':>10} {'':>12}"
        lines.append((line.rstrip() + ("" if r["right"] else "  WRONG RESULT")).rstrip())
    lines.append("")
    for t in found:
        lines.append(f"{'PASS' if t['met'] else 'MISS'}  {t['target']}: {t['measured']} ({t['bound']})")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description="Compares results of gpu_bench with those of peers.py")
    parser.add_argument("ours", nargs="+", help="one or two results of gpu_bench")
    parser.add_argument("--peers", help="the result of peers.py")
    parser.add_argument("--json", help="writes the table to this file too")
    args = parser.parse_args()
    rows = compare([load(p) for p in args.ours], load(args.peers) if args.peers else None)
    found = targets(rows)
    print(text(rows, found))
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"rows": rows, "targets": found}, file, indent=1)


if __name__ == "__main__":
    main()
