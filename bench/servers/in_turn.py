"""Weir and a rival in turn: the rival, Weir, the rival, Weir; the better value of each counts."""

import os

SECONDS = float(os.environ.get("BENCH_SECONDS", "4"))


def cpu_us(start, load_of):
    """CPU microseconds of the server for each request; load_of(server)(seconds) says how many were answered."""
    with start() as server:
        load = load_of(server)
        load(1)  # Connections, pages and pools are there afterwards.
        before = server.cpu_seconds()
        requests = load(SECONDS)
        return (server.cpu_seconds() - before) * 1e6 / requests


def row(group, name, weir, rival, wanted):
    """`weir` and `rival` measure once when called; the rival is (name, measure)."""
    rival_name, measure_rival = rival
    runs = {"weir": [], rival_name: []}
    for _ in range(2):
        runs[rival_name].append(measure_rival())
        runs["weir"].append(weir())
    best = {who: min(values) for who, values in runs.items()}
    ratio = best[rival_name] / best["weir"]
    print(
        f"{group}: {name}: weir {best['weir']:.2f}, {rival_name} {best[rival_name]:.2f} cpu us/request, "
        f"ratio {ratio:.2f} (wanted {wanted})",
        flush=True,
    )
    return {
        "group": group,
        "name": name,
        "value": round(best["weir"], 2),
        "unit": "cpu us/request",
        "rival": rival_name,
        "rival_value": round(best[rival_name], 2),
        "ratio": round(ratio, 2),
        "wanted": wanted,
        "all_cpu_us": {who: [round(value, 3) for value in values] for who, values in runs.items()},
    }
