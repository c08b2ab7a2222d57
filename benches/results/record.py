#!/usr/bin/env python3
"""Records the results of a run of the GPU bundle.

    python3 record.py FOLDER          writes <date>-<machine>.json beside this script, and the table README.md anew
    python3 record.py                 only the table

FOLDER holds what `run.sh` wrote: `ours-1.json`, `ours-2.json`, `peers.json`, `table.json`, `tests.json`; `tune.json`, `tune-ours.json`;
`gpt2-table.json`; those that are absent are left out. What a reader should know of the run besides goes into `remarks.txt` there.
"""

import json
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent


def load(path):
    return json.loads(path.read_text()) if path.is_file() else None


def record(folder):
    ours = [r for r in (load(folder / "ours-1.json"), load(folder / "ours-2.json")) if r]
    tuned = load(folder / "tune-ours.json")
    if not ours and not tuned:
        sys.exit(f"{folder} has neither ours-1.json nor tune-ours.json: is it the folder that run.sh wrote its results to?")
    first = ours[0] if ours else tuned
    result = {
        "machine": first["machine"],
        "date": first["date"],
        "commit": first["commit"],
        "versions": first["versions"],
        "ours": [{"date": r["date"], "measurements": r["measurements"], "failures": r.get("failures", [])} for r in ours],
        "peers": load(folder / "peers.json"),
        "table": load(folder / "table.json"),
        "tuning": load(folder / "tune.json"),
        "gpt2": load(folder / "gpt2-table.json"),
        "tests": load(folder / "tests.json"),
        "remarks": remarks.read_text().strip() if (remarks := folder / "remarks.txt").is_file() else None,
    }
    machine = re.sub(r"[^a-z0-9]+", "-", first["machine"]["model"].lower()).strip("-")
    path = HERE / f"{first['date'][:10]}-{machine}.json"
    number = 2
    while path.exists():
        # Another run of the same day stands beside the first; the same run again replaces itself.
        if load(path)["date"] == result["date"]:
            break
        path = HERE / f"{first['date'][:10]}-{machine}-{number}.json"
        number += 1
    path.write_text(json.dumps(result, indent=1) + "\n")
    print(path.name)


def number(value, digits=3):
    return "" if value is None else f"{value:.{digits}f}"


def section(path):
    """One recorded run, as Markdown."""
    result = load(path)
    m, versions = result["machine"], dict(result["versions"])
    for peer in ("tuning", "peers"):
        versions |= {k: v for k, v in (result.get(peer) or {}).get("versions", {}).items() if v}
    lines = [
        f"## {result['date'][:10]}, {m['model']}",
        "",
        f"Device `{m['device']}`, driver {m['driver']}, commit `{result['commit']}`; "
        + ", ".join(f"{k} {v}" for k, v in versions.items())
        + f". All numbers: [{path.name}]({path.name}).",
        "",
    ]
    if result.get("tests"):
        lines += ["| tests | passed | failed |", "|---|---|---|"]
        lines += [f"| {t['name']} | {t['passed']} | {t['failed']} |" for t in result["tests"]]
        lines.append("")
    if result.get("remarks"):
        lines += [result["remarks"], ""]
    if (tuning := result.get("tuning")) and tuning["rows"]:
        heads = ["autotuning", "tuner", "configurations", "failed", "seconds", "seconds each", "best, TFLOP/s", "best"]
        lines += ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
        for row in tuning["rows"]:
            for who in (w for w in ("ours", "triton") if w in row):
                t = row[who]
                cells = [row["name"] + ("" if t["right"] else " (wrong result)"), who, t["configs"], t["failed"]]
                cells += [number(t["seconds"], 1), number(t["seconds_per_config"]), number(t["tflops"], 1), t["best"]]
                lines.append("| " + " | ".join(str(c) for c in cells) + " |")
        lines.append("")
    if gpt2 := result.get("gpt2"):
        heads = ["decoder of GPT-2's size", "by", "mode", "ms", "first call, s", "kernels", "of the best of torch"]
        lines += ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
        for r in gpt2:
            case = f"{r['batch']}x{r['seq']} forward" + ("+backward" if r["train"] else "")
            cells = [case, r["who"], r["mode"], number(r.get("ms")), number(r.get("first_call_s"), 2)]
            cells += [r.get("kernels") or "", number(r.get("of_torch_best"))]
            lines.append("| " + " | ".join(str(c) for c in cells) + " |")
        lines.append("")
    table = result.get("table")
    if table:
        lines += ["| target | bound | measured | |", "|---|---|---|---|"]
        for t in table["targets"]:
            lines.append(f"| {t['target']} | {t['bound']} | {t['measured']} | {'met' if t['met'] else 'missed'} |")
        peers = list(dict.fromkeys(p for r in table["rows"] for p in r["peers"]))
        heads = ["", "ours", "again", "unit", "rate", "of copy"] + [f"ours / {p}" for p in peers]
        lines += ["", "| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
        for r in table["rows"]:
            digits = 0 if r["unit"] == "ns" else 4
            cells = [
                r["name"] + ("" if r["right"] else " (wrong result)"),
                number(r["ours"][0], digits),
                number(r["ours"][1], digits) if len(r["ours"]) > 1 else "",
                r["unit"],
                f"{r['rate']:.1f} {r['rate_unit']}" if r["rate"] is not None else "",
                number(r["of_copy"]),
            ]
            cells += [number(r["peers"].get(p, {}).get("ratio")) for p in peers]
            lines.append("| " + " | ".join(cells) + " |")
        lines.append("")
    return "\n".join(lines)


def readme():
    runs = sorted(HERE.glob("*.json"), key=lambda path: load(path)["date"], reverse=True)
    head = """# Results

Written by `record.py`; what is measured and how is said in [the folder above](../README.md). Times are medians; ratios are
speeds, ours over the peer's, above 1 where ours is faster. "Again" is ours once more after the peers: where it differs,
the machine has drifted.
"""
    body = [section(path) for path in runs] or ["Nothing is recorded yet.\n"]
    (HERE / "README.md").write_text(head + "\n" + "\n".join(body))


if __name__ == "__main__":
    if len(sys.argv) > 2:
        sys.exit(__doc__)
    if len(sys.argv) == 2:
        record(pathlib.Path(sys.argv[1]))
    readme()
