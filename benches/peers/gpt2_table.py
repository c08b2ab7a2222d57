#!/usr/bin/env python3
"""Ours beside PyTorch's modes for the decoder of GPT-2's size.

    python3 gpt2_table.py OURS.json [--peers PEERS.json] [--json TABLE.json]

Milliseconds of a call and seconds of the first one. The ratio is a speed: PyTorch's best time over ours, above 1 where ours is
faster.
"""

import argparse
import json


def load(path):
    with open(path) as file:
        return json.load(file)


def ours_rows(result):
    for m in result["measurements"]:
        if m.get("group") == "gpt2" and "median" in m:
            yield {
                "batch": m["batch"],
                "seq": m["seq"],
                "train": m["train"],
                "mode": m["mode"],
                "ms": m["median"],
                "first_call_s": m["first_call_s"],
                "peak_bytes": m.get("bytes_peak_so_far"),
                "kernels": m.get("kernels"),
                "right": m.get("right"),
            }


def table(ours, peers):
    """One row for each case and mode, ours and theirs."""
    rows = [{"who": "tilewright"} | r for r in ours]
    rows += [{"who": "torch"} | r for r in peers]
    order = list(dict.fromkeys((r["batch"], r["seq"], r["train"]) for r in rows))
    rows.sort(key=lambda r: (order.index((r["batch"], r["seq"], r["train"])), r["who"] != "tilewright"))
    for r in rows:
        best = [
            p["ms"] for p in peers if "ms" in p and all(p[k] == r[k] for k in ("batch", "seq", "train"))
        ]
        if r["who"] == "tilewright" and best:
            r["of_torch_best"] = min(best) / r["ms"]
    return rows


def text(rows):
    lines = [f"{'case':<26} {'':<10} {'mode':<16} {'ms':>9} {'first, s':>9} {'kernels':>8} {'peak, GB':>9} {'of best':>8}"]
    for r in rows:
        case = f"{r['batch']}x{r['seq']} {'forward+backward' if r['train'] else 'forward'}"
        head = f"{case:<26} {r['who']:<10} {r['mode']:<16}"
        if "ms" not in r:
            lines.append(f"{head} {r.get('error', 'was not measured')[:80]}")
            continue
        peak = f"{r['peak_bytes'] / 1e9:.2f}" if r.get("peak_bytes") else ""
        ratio = f"{r['of_torch_best']:.3f}" if "of_torch_best" in r else ""
        wrong = "  WRONG RESULT" if r.get("right") is False else ""
        lines.append(
            f"{head} {r['ms']:>9.3f} {r['first_call_s']:>9.2f} {r.get('kernels') or '':>8} {peak:>9} {ratio:>8}{wrong}".rstrip()
        )
    return "\n".join(lines)


def main():
    p = argparse.ArgumentParser(description="Compares results of gpt2_bench with those of gpt2_peer.py")
    p.add_argument("ours", help="the result of gpt2_bench")
    p.add_argument("--peers", help="the result of gpt2_peer.py")
    p.add_argument("--json", help="writes the table to this file too")
    a = p.parse_args()
    rows = table(list(ours_rows(load(a.ours))), load(a.peers)["rows"] if a.peers else [])
    print(text(rows))
    if a.json:
        with open(a.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
