#!/usr/bin/env python3
"""Measures weir beside nginx, haproxy and plain clients of redis in one run, and writes RESULTS/servers_GROUP.json.

    bench/servers/run.py BINARY RESULTS [decision_api|forward_auth|gateway|streams|flood|store|resp|rls ...]

The server has core 0, the load (and the upstream of proxies) core 1. What is compared is the CPU time of the serving
process, user and system from /proc/PID/stat, divided by the requests: load generators saturate first, so requests per
second would say little. Machines drift, so each rival is measured before and after weir in the same run, and the
better of its two values counts.
"""

import contextlib
import http.client
import json
import os
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import rivals
from processes import free_port, on_load_core, sampled
from resp_bench import resp
from rls_bench import rls
from store_bench import store

HERE = Path(__file__).parent
SECONDS = float(os.environ.get("BENCH_SECONDS", "4"))
CONNECTIONS = 64
PAIRS = 3
PLENTY = [{"name": "per-client", "per": ["client"], "rate": f"{rivals.RATE_PER_S}/s"}]


def wrk(server, pipeline=1, door="gateway", seconds=SECONDS):
    """One run of wrk, as the callers of that door: requests, and the server's CPU microseconds for each."""
    environment = ["env", f"PIPELINE={pipeline}", f"DOOR={door}"]
    command = [*environment, "wrk", "-t1", f"-c{CONNECTIONS}", f"-d{max(1, round(seconds))}s", "-s", HERE / "wrk.lua"]
    before = server.cpu_seconds()
    output = on_load_core([*command, f"http://{server.address}/"])
    used = server.cpu_seconds() - before
    result = json.loads(output.splitlines()[-1])
    if result["errors"]:
        raise RuntimeError(f"{server.name}: {result['errors']} errors under load\n{output}")
    result["cpu_us"] = used * 1e6 / result["requests"]
    result["per_s"] = result["requests"] * 1e6 / result["duration_us"]
    return result


def measured(start, **options):
    with start() as server:
        wrk(server, seconds=1, **options)  # Connections, pages and pools are there afterwards.
        return wrk(server, **options)


def compared(group, name, weir, rival_starts, weir_options=None, rival_options=None, wanted=None):
    """Rows of weir against each rival: rival, weir, rival, weir; the better value of each counts."""
    rows = []
    for rival_name, start in rival_starts.items():
        runs = {"weir": [], rival_name: []}
        for _ in range(2):
            runs[rival_name].append(measured(start, **(rival_options or {})))
            runs["weir"].append(measured(weir, **(weir_options or {})))
        best = {who: min(values, key=lambda value: value["cpu_us"]) for who, values in runs.items()}
        row = {
            "group": group,
            "name": name,
            "value": round(best["weir"]["cpu_us"], 2),
            "unit": "cpu us/request",
            "rival": rival_name,
            "rival_value": round(best[rival_name]["cpu_us"], 2),
            "ratio": round(best[rival_name]["cpu_us"] / best["weir"]["cpu_us"], 2),
            "wanted": wanted,
            "per_s": round(best["weir"]["per_s"]),
            "rival_per_s": round(best[rival_name]["per_s"]),
            "all_cpu_us": {who: [round(value["cpu_us"], 2) for value in values] for who, values in runs.items()},
        }
        print(
            f"{group}: {name}: weir {row['value']}, {rival_name} {row['rival_value']} cpu us/request, "
            f"ratio {row['ratio']} (wanted {wanted})",
            flush=True,
        )
        rows.append(row)
    return rows


def decision_api(binary, folder):
    def weir():
        return rivals.weir(binary, folder, PLENTY)

    answering = {
        "nginx limit_req": lambda: rivals.nginx_answer(folder),
        "haproxy stick table": lambda: rivals.haproxy_answer(folder),
    }
    rows = compared("decision_api", "keep-alive, 64 connections", weir, answering, {"door": "check"}, wanted=1.0)
    rows += compared(
        "decision_api",
        "16 pipelined requests, 64 connections",
        weir,
        {"nginx limit_req": answering["nginx limit_req"]},
        {"door": "check", "pipeline": 16},
        {"pipeline": 16},
        wanted=5,
    )
    return rows


def forward_auth(binary, folder):
    """The proxy's question alone: what it costs beside a limit of the proxy's own."""
    return compared(
        "forward_auth",
        "keep-alive, 64 connections",
        lambda: rivals.weir(binary, folder, PLENTY, trusted_proxies=["127.0.0.1/32"]),
        {"nginx limit_req": lambda: rivals.nginx_answer(folder)},
        {"door": "authorize"},
        wanted=1.0,
    )


def gateway(binary, folder):
    with rivals.nginx_upstream(folder) as upstream:
        return compared(
            "gateway",
            "pooled keep-alive both sides, 64 connections",
            lambda: rivals.weir(binary, folder, PLENTY, upstream.address),
            {
                "nginx proxy_pass + limit_req": lambda: rivals.nginx_proxy(folder, upstream.address),
                "haproxy stick table": lambda: rivals.haproxy_proxy(folder, upstream.address),
            },
            wanted=1.0,
        )


def _added_p99_us(pair, who):
    return pair[who]["p99_us"] - pair["direct"]["p99_us"]


def _touch_store(server, keys=4096):
    """Decisions for many clients, so that the pages of the store's table are there before streams are weighed."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)) as connection:
        for key in range(keys):
            connection.request("GET", "/", headers={"Authorization": f"Bearer touch-{key}"})
            connection.getresponse().read()  # 502: the upstream of the streams is not there yet.


def streams(binary, folder):
    count, pace_ms, events = 512, 20, int(max(2, SECONDS) * 50)
    tool = Path(binary).parent / "bin" / "sse_load"

    port = free_port()

    def load(address, streams=count):
        return json.loads(on_load_core([tool, port, address, streams, pace_ms, events]))

    pairs, cpu = [], {"weir": 0.0, "nginx": 0.0}
    with (
        rivals.weir(binary, folder, PLENTY, f"127.0.0.1:{port}") as weir,
        rivals.nginx_proxy(folder, f"127.0.0.1:{port}") as nginx,
    ):
        load(weir.address, 8)  # Code and pools are warm; streams are not.
        _touch_store(weir)
        before_bytes = weir.rss_bytes()
        peak = {"bytes": 0}
        for _ in range(PAIRS):  # All three of one minute, since the machine's own tail changes.
            pair = {"direct": load(f"127.0.0.1:{port}")}
            for who, server in (("weir", weir), ("nginx", nginx)):
                cpu[who] -= server.cpu_seconds()
                with sampled(lambda: peak.update(bytes=max(peak["bytes"], weir.rss_bytes()))):
                    pair[who] = load(server.address)
                cpu[who] += server.cpu_seconds()
            pairs.append(pair)
    added = {who: sorted(_added_p99_us(pair, who) for pair in pairs)[PAIRS // 2] for who in cpu}
    cpu_us = {who: seconds * 1e6 / (PAIRS * count * events) for who, seconds in cpu.items()}
    rows = [
        {
            "group": "streams",
            "name": f"{count} streams, an event each {pace_ms} ms: added p99 per event, median of {PAIRS}",
            "value": round(added["weir"] / 1000, 3),
            "unit": "ms",
            "rival": "nginx proxy_pass + limit_req",
            "rival_value": round(added["nginx"] / 1000, 3),
            "wanted": "at most 1",
            "pairs": pairs,
        },
        {
            "group": "streams",
            "name": "memory per stream",
            "value": round(max(0, peak["bytes"] - before_bytes) / count / 1024, 1),
            "unit": "KiB",
            "wanted": "at most 64",
        },
        {
            "group": "streams",
            "name": "cpu per event",
            "value": round(cpu_us["weir"], 2),
            "unit": "cpu us/event",
            "rival": "nginx proxy_pass + limit_req",
            "rival_value": round(cpu_us["nginx"], 2),
            "ratio": round(cpu_us["nginx"] / cpu_us["weir"], 2),
        },
    ]
    for row in rows:
        beside = f", nginx {row['rival_value']}" if "rival_value" in row else ""
        print(f"streams: {row['name']}: {row['value']}{beside} {row['unit']} (wanted {row.get('wanted')})", flush=True)
    return rows


def flood(binary, folder):
    clients, client_rate, flood_rate, seconds = 20, 1.6, 2000, max(10, SECONDS * 5)
    tool = Path(binary).parent / "bin" / "paced_load"
    limits = [{"name": "per-client", "per": ["client"], "rate": "100/min"}]

    def load(address, rate):
        return json.loads(on_load_core([tool, address, seconds, clients, client_rate, rate]))

    with rivals.mock_upstream(binary, folder) as upstream:
        runs = {0: [], flood_rate: []}
        for rate in (0, flood_rate, 0, flood_rate):
            with rivals.weir(binary, folder, limits, upstream.address) as server:
                runs[rate].append(load(server.address, rate))
    if any(run["clients"]["denied"] + run["clients"]["other"] for run in runs[flood_rate]):
        raise RuntimeError(f"well-behaved clients were refused: {runs[flood_rate]}")
    runs = [min(runs[rate], key=lambda run: run["clients"]["p99_us"]) for rate in (0, flood_rate)]
    quiet, flooded = (run["clients"] for run in runs)
    row = {
        "group": "flood",
        "name": f"{clients} clients beside {flood_rate} requests/s from one: their p99",
        "value": round(flooded["p99_us"] / 1000, 3),
        "unit": "ms",
        "rival": "quiet, p99",
        "rival_value": round(quiet["p99_us"] / 1000, 3),
        "ratio": round(flooded["p99_us"] / quiet["p99_us"], 2),
        "wanted": "at most 2, and no 429",
        "denied": flooded["denied"],
        "quiet": runs[0],
        "flooded": runs[1],
    }
    print(
        f"flood: p99 {row['value']} ms against {row['rival_value']} ms quiet, ratio {row['ratio']}; "
        f"{flooded['denied']} of their calls refused; of the flood {runs[1]['flood']['ok']} passed, "
        f"{runs[1]['flood']['denied']} refused",
        flush=True,
    )
    return [row]


GROUPS = {
    "decision_api": decision_api,
    "forward_auth": forward_auth,
    "gateway": gateway,
    "streams": streams,
    "flood": flood,
    "store": store,
    "resp": resp,
    "rls": rls,
}


def main():
    if len(sys.argv) < 3 or any(group not in GROUPS for group in sys.argv[3:]):
        sys.exit(__doc__)
    if (os.cpu_count() or 1) < 2:
        sys.exit("the server benchmarks need two cores: one for the server, one for the load")
    binary, results = str(Path(sys.argv[1]).resolve()), Path(sys.argv[2])
    results.mkdir(parents=True, exist_ok=True)
    for group in sys.argv[3:] or GROUPS:
        with tempfile.TemporaryDirectory(prefix="weir-bench-") as folder:
            os.chmod(folder, 0o755)
            began = time.monotonic()
            rows = GROUPS[group](binary, folder)
        report = {
            "group": group,
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "load_average": round(os.getloadavg()[0], 2),
            "took_s": round(time.monotonic() - began, 1),
            "rows": rows,
        }
        (results / f"servers_{group}.json").write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
