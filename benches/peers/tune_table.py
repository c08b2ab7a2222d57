#!/usr/bin/env python3
"""Our autotuner beside Triton's, over one list of configurations.

    python3 tune_table.py OURS.json [--peer TRITON.json] [--json TABLE.json]

OURS.json is what gpu_tune wrote, TRITON.json what triton_tune.py did.
"""

import argparse
import json

FIELDS = ("configs", "failed", "seconds", "seconds_per_config", "tflops", "best", "right")


def load(path):
    with open(path) as file:
        return json.load(file)


def rows(ours, peer):
    """One row for each product: what each tuner took and gave."""
    by = {"ours": ours, "triton": peer or {}}
    names = dict.fromkeys(t["name"] for r in by.values() for t in r.get("tuning", []))
    found = []
    for name in names:
        row = {"name": name}
        for who, result in by.items():
            for t in result.get("tuning", []):
                if t["name"] == name:
                    row[who] = {field: t[field] for field in FIELDS}
        found.append(row)
    return found


def text(rows):
    """The table for the screen."""
    head = f"{'':<30} {'':<7} {'configs':>7} {'failed':>6} {'seconds':>8} {'s/config':>9} {'TFLOP/s':>9}  best"
    lines = [head]
    for row in rows:
        name = row["name"]
        for who in ("ours", "triton"):
            t = row.get(who)
            if not t:
                continue
            lines.append(
                f"{name:<30} {who:<7} {t['configs']:>7} {t['failed']:>6} {t['seconds']:>8.2f} {t['seconds_per_config']:>9.3f} "
                f"{t['tflops']:>9.3f}  {t['best']}" + ("" if t["right"] else "  WRONG RESULT")
            )
            name = ""
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description="Puts results of gpu_tune and triton_tune.py side by side")
    parser.add_argument("ours", help="the result of gpu_tune")
    parser.add_argument("--peer", help="the result of triton_tune.py")
    parser.add_argument("--json", help="writes the table to this file too")
    args = parser.parse_args()
    ours, peer = load(args.ours), load(args.peer) if args.peer else None
    table = rows(ours, peer)
    print(text(table))
    for who, result in (("ours", ours), ("triton", peer or {})):
        for failure in result.get("failures", []):
            print(f"{who}: {failure}")
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"rows": table, "versions": (peer or {}).get("versions", {})}, file, indent=1)


if __name__ == "__main__":
    main()
