#!/usr/bin/env python3
"""The machine's description, and one table of all benchmark results.

scripts/bench_report.py machine          JSON on standard output
scripts/bench_report.py table FOLDER     Markdown on standard output; also FOLDER/all.json
"""

import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path


def first_line(*command):
    try:
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        return (run.stdout or run.stderr).splitlines()[0].strip()
    except (OSError, IndexError):
        return "unknown"


def processor():
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.machine()


def system():
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "unknown")
    except OSError:
        return "unknown"


def machine():
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "processor": processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": system(),
        "kernel": platform.release(),
        "compiler": first_line("c++", "--version"),
        "commit": first_line("git", "describe", "--always", "--dirty"),
        "load_before": round(os.getloadavg()[0], 2),
    }


def micro_rows(path):
    """Rows of one Google Benchmark file; of repeated runs only the median."""
    runs = json.loads(path.read_text(encoding="utf-8")).get("benchmarks", [])
    repeated = any(run.get("run_type") == "aggregate" for run in runs)
    for run in runs:
        if run.get("error_occurred") or (repeated and run.get("aggregate_name") != "median"):
            continue
        row = {
            "group": path.stem.removeprefix("micro_"),
            "name": run["name"],
            "value": round(run["real_time"], 2),
            "unit": run["time_unit"],
        }
        for key in ("items_per_second", "bytes_per_second"):
            if key in run:
                row[key] = round(run[key])
        yield row


def server_rows(path):
    yield from json.loads(path.read_text(encoding="utf-8"))["rows"]


def table(folder):
    rows = []
    for path in sorted(folder.glob("micro_*.json")):
        rows += micro_rows(path)
    for path in sorted(folder.glob("servers_*.json")):
        rows += server_rows(path)
    described = folder / "machine.json"
    where = json.loads(described.read_text(encoding="utf-8")) if described.exists() else machine()
    (folder / "all.json").write_text(json.dumps({"machine": where, "rows": rows}, indent=1) + "\n", encoding="utf-8")
    print("; ".join(f"{key}: {value}" for key, value in where.items()), end="\n\n")
    print("| group | what | value | unit | rival | its value | ratio |\n|---|---|---|---|---|---|---|")
    for row in rows:
        cells = [row.get(key, "") for key in ("group", "name", "value", "unit", "rival", "rival_value", "ratio")]
        print("| " + " | ".join(str(cell) for cell in cells) + " |")


if __name__ == "__main__":
    if sys.argv[1:] == ["machine"]:
        print(json.dumps(machine(), indent=1))
    elif len(sys.argv) == 3 and sys.argv[1] == "table":
        table(Path(sys.argv[2]))
    else:
        sys.exit(__doc__)
