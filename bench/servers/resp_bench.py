"""The RESP door against redis-server: CL.THROTTLE beside GET, and beside the same decision by a script."""

import json
from functools import partial
from pathlib import Path

import rivals
from in_turn import cpu_us, row
from processes import on_load_core

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
    over_tcp = ("weir over TCP", weir(), throttle)
    return [
        compare(tools, many, (weir(), throttle), ("redis EVALSHA, the equal script", redis, script), 32, 12),
        compare(tools, many, (weir(), throttle), ("redis GET", redis, filled), 32, 1.4),
        compare(tools, one, (weir(), throttle), ("redis GET", redis, filled), 1, 1.0),
        compare(tools, f"{one}, unix socket", (weir(socket=True), throttle), over_tcp, 1, 1.6),
    ]


def compare(tools, name, weir, rival, pipeline, wanted):
    (start_weir, command), (rival_name, start_rival, rival_command) = weir, rival
    ours = measure(start_weir, tools, command, pipeline)
    theirs = measure(start_rival, tools, rival_command, pipeline)
    return row("resp", name, ours, (rival_name, theirs), wanted)


def measure(start, tools, command, pipeline):
    def load_of(server):
        words = command(server) if callable(command) else command
        return partial(load, server, tools, words, pipeline)

    return lambda: cpu_us(start, load_of)


def load(server, tools, words, pipeline, seconds):
    """How many requests were answered."""
    command = [tools / "resp_load", server.address, CONNECTIONS, pipeline, seconds, KEYS, *words]
    return json.loads(on_load_core(command))["requests"]


def redis_cli(server, *words):
    return on_load_core(["redis-cli", "-p", server.port, *words]).strip()
