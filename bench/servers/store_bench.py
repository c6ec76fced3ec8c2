"""A shared store: what one core of the server decides, and what clients notice while it stands still."""

import contextlib
import http.client
import json
import os
import signal
import socket
import threading
import time
from pathlib import Path

import rivals
from processes import connections_to, on_load_core, sampled

SECONDS = float(os.environ.get("BENCH_SECONDS", "4"))
PAUSE_S = 5


def store(binary, folder):
    tools = Path(binary).parent / "bin"
    return one_core(tools, folder) + paused(binary, tools, folder)


# --- One core of the server.


def one_core(tools, folder):
    """Decisions for each second of the server's CPU: all clients in turn, twice, on one server; the better counts."""
    best = {}
    with rivals.redis(folder) as server:

        def load(who, seconds):
            before = server.cpu_seconds()
            ran = json.loads(on_load_core([tools / "store_load", who, server.address, seconds]))
            used = server.cpu_seconds() - before
            return {
                "per_cpu_s": ran["decisions"] / used,
                "per_s": ran["decisions"] / ran["seconds"],
                "busy": used / ran["seconds"],
            }

        for who in ("plain", "bucket", "weir"):
            load(who, 1)  # Its keys and scripts are there afterwards.
        for _ in range(2):
            for who in ("plain", "bucket", "weir"):
                run = load(who, SECONDS)
                if who not in best or run["per_cpu_s"] > best[who]["per_cpu_s"]:
                    best[who] = run
    rows = []
    rival_names = {"plain": "one EVALSHA each, same script", "bucket": "one EVALSHA each, script of one bucket only"}
    for who, rival in rival_names.items():
        rows.append(
            {
                "group": "store",
                "name": "decisions of one saturated core of redis",
                "value": round(best["weir"]["per_cpu_s"]),
                "unit": "decisions/cpu s",
                "rival": rival,
                "rival_value": round(best[who]["per_cpu_s"]),
                "ratio": round(best["weir"]["per_cpu_s"] / best[who]["per_cpu_s"], 2),
                "wanted": 1.5 if who == "plain" else None,
                "runs": {name: {key: round(value, 2) for key, value in best[name].items()} for name in ("weir", who)},
            }
        )
        print(
            f"store: one core of redis: weir {rows[-1]['value']}, {rival} {rows[-1]['rival_value']} decisions/cpu s, "
            f"ratio {rows[-1]['ratio']} (wanted {rows[-1]['wanted']}); the core was busy for "
            f"{best['weir']['busy']:.0%} and {best[who]['busy']:.0%}",
            flush=True,
        )
    return rows


# --- A server that stands still.


def paused(binary, tools, folder):
    def run(how):
        with rivals.redis(folder) as server:
            config = {"kind": "redis", "url": f"redis://{server.address}/0", "timeout": "50ms", "nodes": 1}
            with rivals.weir(binary, folder, _plenty(), store=config) as weir:
                return _pause(how, tools, server, weir)

    rows = []
    for how in ("CLIENT PAUSE", "SIGSTOP"):
        rows += min((run(how) for _ in range(2)), key=lambda measured: measured[0]["value"])  # By its p99.
    for row in rows:
        print(f"store: {row['name']}: {row['value']} {row['unit']} (wanted {row['wanted']})", flush=True)
    return rows


def _plenty():
    return [{"name": "per-client", "per": ["client"], "rate": "1000000/day"}]


def _pause(how, tools, server, weir, clients=100, rate=10):
    """1,000 checks a second, all of them while the server is paused; then how soon it decides again."""

    def load(seconds):
        command = [tools / "paced_load", weir.address, seconds, clients, rate, 0, "check"]
        run = json.loads(on_load_core(command))["clients"]
        if run["denied"] or run["other"]:
            raise RuntimeError(f"calls failed: {run}")
        return run

    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", weir.port, timeout=10)) as probe:
        _stop_shortly(server, probe)  # The pages of the node's own table are there afterwards.
        quiet = load(2)
        before_bytes = weir.rss_bytes()
        most = {"bytes": 0, "connections": 0}

        def look():
            most["bytes"] = max(most["bytes"], weir.rss_bytes())
            most["connections"] = max(most["connections"], connections_to(server.port))

        ended = threading.Event()
        pausing = threading.Thread(target=_stand_still, args=(how, server, ended))
        pausing.start()
        with sampled(look):
            run = load(PAUSE_S - 0.5)
        if _source(probe) != "fallback":
            raise RuntimeError("the server was not paused")
        ended.wait()
        recovery_s = _until_source(probe, "redis")
        pausing.join()
    what = f"redis paused by {how}, {clients * rate} checks/s, timeout 50 ms"
    rows = [
        {
            "name": f"{what}: p99",
            "value": round(run["p99_us"] / 1000, 2),
            "unit": "ms",
            "wanted": "at most 100",
            "rival": "not paused, p99",
            "rival_value": round(quiet["p99_us"] / 1000, 2),
            "run": run,
        },
        {"name": f"{what}: calls that failed", "value": run["other"], "unit": "of " + str(run["calls"]), "wanted": 0},
        {"name": f"{what}: connections to redis", "value": most["connections"], "unit": "", "wanted": "at most 8"},
        {
            "name": f"{what}: memory that grew",
            "value": round((most["bytes"] - before_bytes) / 2**20, 2),
            "unit": "MiB",
            "wanted": "at most 8",
        },
        {
            "name": f"{what}: decides again after",
            "value": round(recovery_s * 1000),
            "unit": "ms",
            "wanted": "at most 1000",
        },
    ]
    return [{"group": "store", **row} for row in rows]


def _source(probe, client="probe"):
    body = json.dumps({"attributes": {"client": client}})
    probe.request("POST", "/v1/check", body, {"Content-Type": "application/json"})
    return json.loads(probe.getresponse().read())["source"]


def _until_source(probe, source, timeout_s=10):
    """Asks until that is who decides; gives the seconds that it took."""
    began = time.monotonic()
    while _source(probe) != source:
        if time.monotonic() - began > timeout_s:
            raise RuntimeError(f"not decided by {source}")
        time.sleep(0.005)
    return time.monotonic() - began


def _stop_shortly(server, probe):
    os.kill(server.work_pid, signal.SIGSTOP)
    for client in range(100):
        while _source(probe, f"client-{client}") != "fallback":
            pass
    os.kill(server.work_pid, signal.SIGCONT)
    _until_source(probe, "redis")


def _stand_still(how, server, ended):
    """For PAUSE_S; sets `ended` when the server goes on."""
    if how == "SIGSTOP":
        os.kill(server.work_pid, signal.SIGSTOP)
        time.sleep(PAUSE_S)
        os.kill(server.work_pid, signal.SIGCONT)
    else:
        with socket.create_connection(("127.0.0.1", server.port), 10) as console:
            console.sendall(f"CLIENT PAUSE {PAUSE_S * 1000} ALL\r\n".encode())
            console.recv(64)
            began = time.monotonic()
            console.sendall(b"PING\r\n")  # Answered when the pause is over.
            console.recv(64)
            if time.monotonic() - began < PAUSE_S - 1:
                raise RuntimeError("the server was not paused")
    ended.set()
