"""The RESP door against redis-server: CL.THROTTLE beside GET, and beside the same decision by a script."""

import json
import os
from pathlib import Path

import rivals
from processes import on_load_core

SECONDS = float(os.environ.get("BENCH_SECONDS", "4"))
CONNECTIONS = 50
KEYS = 10_000
BUCKET = ["1000000", "1000000", "1"]  # max_burst, count, period: nothing is refused.

# What CL.THROTTLE does and answers, as a script for redis.
SCRIPT = """
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local capacity, interval = ARGV[1] + 1, ARGV[3] * 1000000 / ARGV[2]
local tau = capacity * interval
local base = math.max(tonumber(redis.call('GET', KEYS[1]) or '0'), now)
local new = base + interval
local limited, retry = 0, -1
if new - now > tau then
  limited, retry, new = 1, math.ceil((new - tau - now) / 1000000), base
else
  redis.call('SET', KEYS[1], string.format('%.3f', new), 'PX', math.ceil((new - now) / 1000))
end
return {limited, capacity, math.floor((tau - (new - now)) / interval), retry, math.ceil((new - now) / 1000000)}
"""


def resp(binary, folder):
    tools = Path(binary).parent / "bin"
    throttle = ["CL.THROTTLE", "key:__rand_int__", *BUCKET]
    get = ["GET", "key:__rand_int__"]

    def weir(socket=False):
        return lambda: rivals.weir_resp(binary, folder, socket)

    def redis():
        return rivals.redis(folder)

    def script(server):
        digest = redis_cli(server, "SCRIPT", "LOAD", SCRIPT)
        return ["EVALSHA", digest, "1", "key:__rand_int__", *BUCKET]

    def filled(server):
        load(server, tools, ["SET", "key:__rand_int__", "value"], 32, 1)
        return get

    many, one = "CL.THROTTLE, pipeline 32", "CL.THROTTLE, pipeline 1"
    return [
        row(tools, many, (weir(), throttle), ("redis EVALSHA, the equal script", redis, script), 32, 12),
        row(tools, many, (weir(), throttle), ("redis GET", redis, filled), 32, 1.4),
        row(tools, one, (weir(), throttle), ("redis GET", redis, filled), 1, 1.0),
        row(tools, f"{one}, unix socket", (weir(socket=True), throttle), ("weir over TCP", weir(), throttle), 1, 1.6),
    ]


def row(tools, name, weir, rival, pipeline, wanted):
    """The rival, weir, the rival, weir; the better value of each counts."""
    (start_weir, command), (rival_name, start_rival, rival_command) = weir, rival
    runs = {"weir": [], rival_name: []}
    for _ in range(2):
        runs[rival_name].append(measured(start_rival, tools, rival_command, pipeline))
        runs["weir"].append(measured(start_weir, tools, command, pipeline))
    best = {who: min(values) for who, values in runs.items()}
    ratio = best[rival_name] / best["weir"]
    print(
        f"resp: {name}: weir {best['weir']:.2f}, {rival_name} {best[rival_name]:.2f} cpu us/request, "
        f"ratio {ratio:.2f} (wanted {wanted})",
        flush=True,
    )
    return {
        "group": "resp",
        "name": name,
        "value": round(best["weir"], 2),
        "unit": "cpu us/request",
        "rival": rival_name,
        "rival_value": round(best[rival_name], 2),
        "ratio": round(ratio, 2),
        "wanted": wanted,
        "all_cpu_us": {who: [round(value, 3) for value in values] for who, values in runs.items()},
    }


def measured(start, tools, command, pipeline):
    """CPU microseconds of the server for each request."""
    with start() as server:
        words = command(server) if callable(command) else command
        load(server, tools, words, pipeline, 1)
        before = server.cpu_seconds()
        requests = load(server, tools, words, pipeline, SECONDS)
        return (server.cpu_seconds() - before) * 1e6 / requests


def load(server, tools, words, pipeline, seconds):
    """How many requests were answered."""
    command = [tools / "resp_load", server.address, CONNECTIONS, pipeline, seconds, KEYS, *words]
    return json.loads(on_load_core(command))["requests"]


def redis_cli(server, *words):
    return on_load_core(["redis-cli", "-p", server.port, *words]).strip()
